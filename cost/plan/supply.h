/* supply.h - many signatures measured at once, and such as no model has. */
#pragma once

#include "cost/cost.h"
#include "graph/base/rng.h"

/* Measures what the database lacks of these signatures and saves every so often: a run that is
 * interrupted goes on from there. Fails as graft_cost_measure and graft_cost_save do. */
GRAFT_MUST_USE graft_status graft_cost_supply(graft_env *env, graft_cost *cost,
                                              const graft_signature *signatures, uint32_t count);

/* Draws the same operator at other sizes: one or two sizes of `from` become others wherever they
 * stand, so that operands fit together as they did. Sizes that are multiples of 16 stay such, for
 * the layouts in blocks. False when what was drawn does not infer or is too large. */
bool graft_signature_vary(const graft_signature *from, graft_rng *rng, graft_signature *to);

/* One of the list's `count` > 0 records: on even turns each is as likely as the other; on odd ones
 * an operator is drawn among those that the list has, then one of its records, for most records are
 * of few operators. */
const graft_signature *graft_supply_draw(const graft_signature *list, uint32_t count, uint64_t turn,
                                         graft_rng *rng);

/* Measures `wanted` different ones, drawn from the records of `from`, those of the device of `cost`
 * alone; equal records and seeds give equal signatures, so that it can be interrupted and repeated.
 * *count is how many were drawn, fewer where there is no more variety. Fails as graft_cost_supply
 * does. */
GRAFT_MUST_USE graft_status graft_cost_supply_random(graft_env *env, graft_cost *cost,
                                                     const graft_database *from, uint32_t wanted,
                                                     uint64_t seed, uint32_t *count);
