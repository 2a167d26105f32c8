/* pointwise.c - see pointwise.h. */
#include "verify/instances/pointwise.h"

#include <string.h>

static bool has_constant_attributes(const graft_pattern_node *node)
{
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        if (node->attrs[i].kind != GRAFT_TERM_CONST) {
            return false;
        }
    }
    return true;
}

/* Makes one side scalar. */
static bool reduce_side(graft_pattern *side)
{
    for (uint32_t n = 0; n < side->node_count; n++) {
        graft_pattern_node *node = &side->nodes[n];
        if (node->op == GRAFT_OP_fill) {
            for (uint32_t i = GRAFT_ATTR_fill_dim_0; i < graft_op(node->op)->attr_count; i++) {
                node->attrs[i] = (graft_term){.kind = GRAFT_TERM_CONST};
            }
        } else if ((graft_op(node->op)->flags & GRAFT_FLAG_ELEMENTWISE) == 0) {
            return false;
        }
        if (!has_constant_attributes(node)) {
            return false;
        }
    }
    return true;
}

bool graft_pointwise_rule(const graft_rule *rule, graft_rule *scalar, graft_point *point)
{
    graft_instance instance;
    *scalar = *rule;
    scalar->condition = 255;
    memset(point, 0, sizeof *point);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        point->vars[v].dtype = GRAFT_DTYPE_F32;
    }
    return reduce_side(&scalar->source) && reduce_side(&scalar->target) &&
           graft_instance_build(&instance, scalar, point) == GRAFT_FIT_OK;
}
