/* idle.c - see idle.h. */
#include "verify/instances/idle.h"

#include <string.h>

bool graft_idle_pads(const graft_instance *instance)
{
    bool idle = false;
    for (uint32_t n = 0; n < instance->rule->source.node_count; n++) {
        const int32_t *attrs = instance->source.attrs[n];
        idle = idle || (instance->rule->source.nodes[n].op == GRAFT_OP_pad &&
                        attrs[GRAFT_ATTR_pad_before] == 0 && attrs[GRAFT_ATTR_pad_after] == 0);
    }
    return idle;
}

/* Taps of the window of a convolution or pooling along the height (0) or width (1). */
static int32_t count_taps(const graft_instance *instance, uint32_t n, uint32_t axis)
{
    const graft_pattern_node *node = &instance->rule->source.nodes[n];
    if (node->op == GRAFT_OP_max_pool || node->op == GRAFT_OP_avg_pool) {
        return instance->source.attrs[n][GRAFT_ATTR_max_pool_kernel_h + axis];
    }
    return graft_instance_shape(instance, &instance->source, node->inputs[1])->dims[2 + axis];
}

bool graft_idle_attribute(const graft_instance *instance, uint32_t n, uint32_t attribute)
{
    static const char *const names[2][2] = {
        {"stride_h",   "stride_w"  },
        {"dilation_h", "dilation_w"}
    };
    const char *name = graft_op_attr(instance->rule->source.nodes[n].op, attribute)->name;
    for (uint32_t axis = 0; axis < 2; axis++) {
        if (strcmp(name, names[0][axis]) == 0) {
            return instance->source.shapes[n][0].dims[2 + axis] == 1;
        }
        if (strcmp(name, names[1][axis]) == 0) {
            return count_taps(instance, n, axis) == 1;
        }
    }
    return false;
}
