/* quantise.h - from the float network to the integer network that ships.
 *
 * Symmetric: real value = unit * integer. An activation's unit is its largest magnitude over the
 * calibration states, / 127. The unit of an input column is multiplied into the float weights, then
 * each row of weights gets the unit that makes its largest weight 127 (Jacob et al. 2018, section
 * 3, with a unit per row). What brings a row's sum to the next unit is a 16-bit multiplier and a
 * shift. Docs: docs/quantisation.md. */
#ifndef GRAFT_QUANTISE_H
#define GRAFT_QUANTISE_H

#include "emit/reference.h"
#include "graph/env.h"

/* Fills the network of `policy`; its tables lie in `arena`. The other members are untouched, save
 * abi and feature_hash. `ranges` must have seen at least one state. GRAFT_BAD_INPUT when a weight
 * is not finite or a layer has too many inputs; the message names the layer. */
GRAFT_MUST_USE graft_status graft_quantise(graft_env *env, graft_arena *arena,
                                           const graft_float_policy *network,
                                           const graft_ranges *ranges, graft_policy *policy);

/* The nearest factor that a graft_scale can express; 0 when below 2^-47. False when `factor` is
 * negative, not finite or 2^16 and more. */
bool graft_scale_make(double factor, graft_scale *scale);

/* Integer beside float decisions. */
typedef struct graft_agreement {
    uint32_t state_count;
    uint32_t rule_count;     /* States with the same rule, NO-OP included; of those: */
    uint32_t location_count; /* with the same location. */
    double latent_error;     /* Sum over states of the mean |difference| of the latent. */
    double margin_lost;      /* Largest float logit given up by another choice of rule. */
} graft_agreement;

/* Compares the choices for one state with those of the integer network. */
void graft_agreement_add(graft_agreement *agreement, const graft_float_policy *network,
                         graft_arena *scratch, const graft_graph_arrays *state,
                         const graft_scores *scores);

#endif
