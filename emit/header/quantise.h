/* quantise.h - from the float network to the integer network that ships.
 *
 * Symmetric: real value = unit * integer. An activation's unit makes twice its largest magnitude
 * over the calibration scenes GRAFT_ACTIVATION_MOST. The unit of an input is multiplied into the
 * float weights, then each row of weights gets the unit that makes its largest weight 127 (Jacob et
 * al. 2018, section 3, with a unit per row). What brings a row's sum to the next unit is a 16-bit
 * multiplier and a shift. Docs: docs/quantisation.md. */
#pragma once

#include "graph/base/env.h"
#include "train/agent/scorer.h"

/* Largest magnitudes seen. */
typedef struct graft_ranges {
    float h[GRAFT_ENCODER_ROUNDS_MOST + 1];    /* Before each round, and after the last. */
    float incoming[GRAFT_ENCODER_ROUNDS_MOST]; /* Means of messages. */
    float outgoing[GRAFT_ENCODER_ROUNDS_MOST];
    float first; /* Hidden layers of candidates. */
    float second;
} graft_ranges;

/* Widens `ranges` by what the network did with scenes of graphs. */
void graft_ranges_widen(graft_ranges *ranges, const graft_scorer *scorer,
                        const graft_scored *scored);

/* The nearest factor that a graft_scale can express; 0 when below 2^-47. False when `factor` is
 * negative, not finite or 2^16 and more. */
bool graft_scale_make(double factor, graft_scale *scale);

/* Fills the network of `policy`, whose rules are packed already, but for the prior; its tables lie
 * in `arena`. `rows` is what each rule, and then NO-OP, adds to a place: (rule_count + 1, width).
 * GRAFT_BAD_INPUT when a weight is not finite or a layer has too many inputs; the message names the
 * layer. */
GRAFT_MUST_USE graft_status graft_quantise(graft_env *env, graft_arena *arena,
                                           const graft_scorer *scorer, const graft_ranges *ranges,
                                           const float *rows, graft_policy *policy);
