/* optimiser.h - Adam (Kingma & Ba 2015) with clipping by the norm of the whole gradient. */
#pragma once

#include "train/nn/parameters.h"

#include <stdbool.h>

/* One Adam step on the sets' `gradient`, first scaled so that their joint norm is at most
 * `norm_most`. Moments decay by 0.9 and 0.999, epsilon 1e-8, bias corrected. False, with nothing
 * changed, when the gradient holds a NaN or an infinity. */
bool graft_adam_step(graft_parameters *const sets[], uint32_t set_count, double learning_rate,
                     double norm_most);
