/* known_price.h - a price that refuses graphs which rest on more roofline estimates than the graph
 * as given: their cost is no result, and a search by such a price takes none of them. */
#pragma once

#include "emit/command/session.h"

typedef struct graft_known_price {
    graft_session *session;
    uint32_t first_estimates; /* Of the graph as given. */
} graft_known_price;

/* The environment of the session is priced so from now on; `price` is kept. Graphs are priced as
 * they are, not as a runtime would fuse them. */
GRAFT_MUST_USE graft_status graft_known_price_set(graft_env *env, graft_session *session,
                                                  graft_known_price *price);
/* What a graph costs, and how many of the costs are estimates; refuses none. */
GRAFT_MUST_USE graft_status graft_known_price_count(graft_env *env, graft_session *session,
                                                    const graft_state *state, double *ns,
                                                    uint32_t *estimates);
