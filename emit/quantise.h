/* quantise.h - from the float network to the integer network that ships.
 *
 * Symmetric: real value = unit * integer. An activation's unit is its largest magnitude over the
 * calibration states, / 127. The unit of an input column is multiplied into the float weights, then
 * each row of weights gets the unit that makes its largest weight 127 (Jacob et al. 2018, section
 * 3, with a unit per row). What brings a row's sum to the next unit is a 16-bit multiplier and a
 * shift.
 *
 * The latent of a graph moves little from rewrite to rewrite, so what matters is not its value but
 * its standardised change. Each entry of the integer encoder is therefore fitted to the float one
 * (a line, by least squares over the states) before it gets its int8 unit: this takes out what
 * rounding shifts and scales in the same way for all states. Docs: docs/quantisation.md. */
#ifndef GRAFT_QUANTISE_H
#define GRAFT_QUANTISE_H

#include "emit/reference.h"
#include "emit/states.h"

/* Fills the network of `policy`; its tables lie in `arena`. `policy` has its rules already
 * (graft_policy_pack_rules): those of the states. GRAFT_BAD_INPUT when there is no state, a weight
 * is not finite, or a layer has too many inputs, which the message names; GRAFT_INTERNAL when the
 * engine counts other locations than the states have. */
GRAFT_MUST_USE graft_status graft_quantise(graft_env *env, graft_arena *arena,
                                           const graft_float_policy *network,
                                           const graft_states *states, graft_policy *policy);

/* The nearest factor that a graft_scale can express; 0 when below 2^-47. False when `factor` is
 * negative, not finite or 2^16 and more. */
bool graft_scale_make(double factor, graft_scale *scale);

/* Integer beside float decisions. */
typedef struct graft_agreement {
    uint32_t state_count;
    uint32_t rule_count;     /* States with the same rule, NO-OP included; of those: */
    uint32_t location_count; /* with the same location. */
    double latent_error;     /* Root mean square difference of the standardised latents. */
    double margin_lost;      /* Largest float logit given up by another choice of rule. */
} graft_agreement;

/* Compares the choices for all states. Fails as graft_policy_scores. */
GRAFT_MUST_USE graft_status graft_agreement_measure(graft_env *env,
                                                    const graft_float_policy *network,
                                                    const graft_policy *policy,
                                                    const graft_states *states,
                                                    graft_agreement *agreement);

#endif
