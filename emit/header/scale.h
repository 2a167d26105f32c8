/* scale.h - factors as the engine's integers have them. */
#ifndef GRAFT_EMIT_SCALE_H
#define GRAFT_EMIT_SCALE_H

#include "graft/graft.h"

/* The nearest factor that a graft_scale can express; 0 when below 2^-47. False when `factor` is
 * negative, not finite or 2^16 and more. */
bool graft_scale_make(double factor, graft_scale *scale);

#endif
