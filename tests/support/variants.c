/* variants.c - see variants.h. */
#include "tests/support/variants.h"

#include "tests/support/build.h"
#include "tests/support/rows.h"

graft_graph *variant_regenerated(graft_arena *arena, const graft_model *model)
{
    graft_graph *graph = graft_model_graph_copy(arena, &model->graph);
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_OPAQUE) {
            graph->nodes[n].source = GRAFT_NONE;
        }
    }
    return graph;
}

/* Not the product's rules, which are proved: only what makes each fused operator and chain occur.
 */
static const char fold_into_conv[] =
    "scale_shift(conv#1(a,b),c,d) = "
    "conv_bias#1(a,mul(b,reshape(c,dim=[dim(c,0),1,1,1])),d,activation=none)";
static const char fold_into_conv_bias[] =
    "scale_shift(conv_bias#1(a,b,e,activation=none),c,d) = "
    "conv_bias#1(a,mul(b,reshape(c,dim=[dim(c,0),1,1,1])),add(mul(e,c),d),activation=none)";
static const char *const rule_texts[] = {
    fold_into_conv,
    fold_into_conv_bias,
    "relu(conv_bias#1(a,b,c,activation=none)) = conv_bias#1(a,b,c,activation=relu)",
    "clip(conv_bias#1(a,b,c,activation=none),low=0,high=6) = conv_bias#1(a,b,c,activation=relu6)",
    "sigmoid(conv_bias#1(a,b,c,activation=none)) = conv_bias#1(a,b,c,activation=sigmoid)",
    "add(conv_bias#1(a,b,c,activation=none),d) = conv_bias_add#1(a,b,c,d,activation=none)",
    "relu(conv_bias_add#1(a,b,c,d,activation=none)) = conv_bias_add#1(a,b,c,d,activation=relu)",
    "relu(matmul_bias(a,b,c,activation=none)) = matmul_bias(a,b,c,activation=relu)",
    "tanh(matmul_bias(a,b,c,activation=none)) = matmul_bias(a,b,c,activation=tanh)",
    "identity(a) = a",
};

enum { RULE_COUNT = sizeof(rule_texts) / sizeof(rule_texts[0]), ROUNDS_MOST = 1000 };

graft_graph *variant_fused(graft_env *env, graft_arena *arena, const graft_model *model,
                           uint32_t *applied)
{
    graft_rule *rules = GRAFT_NEW(arena, graft_rule, RULE_COUNT);
    graft_graph *graph = graft_model_graph_copy(arena, &model->graph);
    *applied = 0;
    for (uint32_t r = 0; r < RULE_COUNT; r++) {
        rules[r] = rows_parse(env, rule_texts[r]);
    }
    bool changed = true;
    while (changed && *applied < ROUNDS_MOST) {
        changed = false;
        for (uint32_t r = 0; r < RULE_COUNT && !changed; r++) {
            changed = build_apply(arena, graph, &rules[r]);
            *applied += changed;
        }
    }
    graft_graph_remove_dead(graph);
    return graph;
}
