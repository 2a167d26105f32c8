/* idle.h - operators and attributes of a rule's source that do nothing at some instance. That a
 * rule holds there says nothing of them: a padding by nothing is the same along any axis, and a
 * stride where there is but one position may be anything. */
#pragma once

#include "verify/instances/instance.h"

/* Whether some operator of the source pads nothing. */
bool graft_idle_pads(const graft_instance *instance);
/* Whether an attribute of source node `n` is a stride where the window has one position, or a
 * dilation where it has one tap. */
bool graft_idle_attribute(const graft_instance *instance, uint32_t n, uint32_t attribute);
