/* states.h - graphs that occurred in recorded episodes, for quantising and comparing policies. The
 * episodes are replayed with the engine; no environment is asked. */
#ifndef GRAFT_STATES_H
#define GRAFT_STATES_H

#include "train/recording.h"

typedef struct graft_policy_state {
    const graft_graph *graph;
    graft_graph_arrays arrays; /* As the float network sees it. */
    const uint16_t *counts;    /* (rules): locations of each */
} graft_policy_state;

/* What the episodes were played with. */
typedef struct graft_states_source {
    const graft_graph *graph; /* The first of every episode. */
    const graft_xfers *xfers;
    uint32_t location_limit;
    graft_apply_options apply;
    uint32_t most; /* So many states are taken. */
} graft_states_source;

typedef struct graft_states {
    uint32_t count;
    graft_policy_state *items;
    graft_apply_options apply; /* That of the source: it decides what is a location. */
} graft_states;

/* At most source->most different graphs, evenly spread over the episodes, the first graph among
 * them; in `arena`. GRAFT_BAD_INPUT when an action does not fit: the episodes are not from this
 * source. */
GRAFT_MUST_USE graft_status graft_states_collect(graft_env *env, graft_arena *arena,
                                                 const graft_states_source *source,
                                                 const graft_episode *episodes, uint32_t count,
                                                 graft_states *states);

#endif
