/* ruletypes.h - the element types of what a rule is applied to. */
#pragma once

#include "graft/rule.h"

/* The element type that each variable has: binary32, booleans (graft_rule_booleans), or 8 bits where
 * it goes into a `dequantise`, or is moved together with what does or comes out of a `quantise`. Of
 * slots those in `bound` (bits) have values; int8 where the type hangs on another one. */
void graft_rule_types(const graft_rule *rule, const int32_t *slots, uint64_t bound,
                      uint8_t types[GRAFT_RULE_MAX_VARS]);
