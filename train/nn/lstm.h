/* lstm.h - long short-term memory (Hochreiter & Schmidhuber 1997, with forget gate) over whole
 * sequences: one product per step for the recurrent part, everything else batched over time.
 *
 *      i, f, o = logistic, g = tanh of   gates[t] + h[t-1] W
 *      c[t] = f c[t-1] + i g             h[t] = o tanh(c[t])
 */
#pragma once

#include "train/nn/tape.h"

/* Where a sequence starts and where it ended: both (batch, hidden). */
typedef struct {
    float *hidden;
    float *cell;
} graft_lstm_state;

/* `gates` (steps * batch, 4 hidden) is what the input contributes to the gates, bias included; time
 * is the slow index, row = step * batch + sequence; columns are i, f, g, o of `hidden` each.
 * `recurrent` is (hidden, 4 hidden). Starts from `initial` (zeros when NULL; a constant: no
 * gradient flows into it) and copies the last step to `final` unless that is NULL; they may be the
 * same. Returns h, (steps * batch, hidden). */
graft_matrix *graft_lstm(graft_tape *tape, const graft_matrix *gates, const graft_matrix *recurrent,
                         uint32_t batch, const graft_lstm_state *initial,
                         const graft_lstm_state *final);
