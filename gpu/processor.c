/* processor.c - what the rest asks of the processor's kernels, which are not in this program: they
 * need oneDNN. */
#include "cost/cpu/kernel.h"

/* Only measure.c's protocol asks, which a GPU does not use. */
bool graft_kernel_is_direct(const char *name)
{
    (void)name;
    return true;
}
