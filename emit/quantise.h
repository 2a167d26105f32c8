/* quantise.h - from the float network to the integer network that ships.
 *
 * Symmetric: real value = unit * integer. An activation's unit makes twice its largest magnitude
 * over the calibration states GRAFT_ACTIVATION_MOST. The unit of an input is multiplied into the
 * float weights, then each row of weights gets the unit that makes its largest weight 127 (Jacob et
 * al. 2018, section 3, with a unit per row). What brings a row's sum to the next unit is a 16-bit
 * multiplier and a shift. Docs: docs/quantisation.md. */
#ifndef GRAFT_QUANTISE_H
#define GRAFT_QUANTISE_H

#include "emit/reference.h"
#include "emit/scale.h"
#include "graph/env.h"

/* Fills the network of `policy`; its tables lie in `arena`. Rules, plans and metadata are
 * untouched. GRAFT_BAD_INPUT when a weight is not finite or a layer has too many inputs; the
 * message names the layer. */
GRAFT_MUST_USE graft_status graft_quantise(graft_env *env, graft_arena *arena,
                                           const graft_float_policy *network,
                                           const graft_ranges *ranges, graft_policy *policy);

/* What the engine's tanh is given in. */
#define GRAFT_TANH_UNIT (1.0 / (double)(1 << 26))

/* How one entry of the latent comes from its tanh: slope * tanh + shift; the slope is positive. */
typedef struct graft_latent_line {
    double slope;
    double shift;
} graft_latent_line;

/* One entry's line as the engine has it. */
GRAFT_MUST_USE graft_status graft_latent_quantise(graft_env *env, const graft_ranges *ranges,
                                                  graft_latent_line line, int32_t *centre,
                                                  graft_scale *scale);

#endif
