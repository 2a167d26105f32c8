/* renew.h - a database recorded anew for another version of the library or of our own kernels,
 * without repeating the searches that met its signatures. */
#pragma once

#include "cost/cost.h"

/* Measures what the cost's database lacks of the signatures that `old` has for the same device
 * under any version of the library, kin (confirm.h) side by side, and stores it. `count` receives
 * how many signatures `old` has, `measured` how many of these were measured.
 *
 * Where only our own kernels have another version, the implementations of the library are what they
 * were. So each signature whose fastest was one of these has it measured once more, in the same
 * rounds; how all compare is what was measured then, but the level of kin is what `old` says of
 * those (the median of known / present time). Then new entries can be added up with old ones,
 * however busy the machine was in between.
 *
 * Fails as graft_cost_measure does; what was done until then is kept. */
GRAFT_MUST_USE graft_status graft_cost_renew(graft_env *env, graft_cost *cost,
                                             const graft_database *old, uint32_t *measured,
                                             uint32_t *count);
