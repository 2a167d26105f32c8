/* scale.h - factors as the engine's integers have them. */
#pragma once

#include "graft/graft.h"

/* The nearest factor that a graft_scale can express; 0 when below 2^-47. False when `factor` is
 * negative, not finite or 2^16 and more. */
bool graft_scale_make(double factor, graft_scale *scale);
