/* calibrate.h - quantises a policy over recorded states, and says how often integers and floats
 * decide alike.
 *
 * The latent of a graph moves little from rewrite to rewrite, so what matters is not its value but
 * its standardised change. Each entry of the integer encoder is therefore fitted to the float one
 * (a line, by least squares over the states): this takes out what rounding shifts and scales in the
 * same way for all states. Docs: docs/quantisation.md. */
#ifndef GRAFT_CALIBRATE_H
#define GRAFT_CALIBRATE_H

#include "emit/quantise.h"
#include "emit/states.h"

/* Fills the network of `policy`; its tables lie in `arena`. The policy has its rules already
 * (graft_policy_pack_rules): those of the states. Fails as graft_quantise; GRAFT_BAD_INPUT when
 * there is no state; GRAFT_INTERNAL when the engine counts other locations than the states have. */
GRAFT_MUST_USE graft_status graft_policy_calibrate(graft_env *env, graft_arena *arena,
                                                   const graft_float_policy *network,
                                                   const graft_states *states,
                                                   graft_policy *policy);

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
