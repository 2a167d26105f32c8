/* ragged.h - choices among sets of different sizes: the options of all choosers stand in one
 * column, and `chooser` says for each row whose option it is. Rows in any order; every chooser has
 * one. */
#pragma once

#include "train/nn/tape.h"

/* Log of softmax over the rows of each chooser: (n, 1) -> (n, 1). */
graft_matrix *graft_ragged_log_softmax(graft_tape *tape, const graft_matrix *logits,
                                       const uint32_t *chooser, uint32_t chooser_count);
/* Entropy in nats of each chooser's log-probabilities: (n, 1) -> (chooser_count, 1). */
graft_matrix *graft_ragged_entropy(graft_tape *tape, const graft_matrix *log_p,
                                   const uint32_t *chooser, uint32_t chooser_count);
