/* variants.c - see variants.h. */
#include "tests/support/variants.h"

#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
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

static const void *draw_input(graft_arena *arena, const graft_value *value, uint64_t seed)
{
    const size_t count = (size_t)graft_shape_elements(&value->shape);
    graft_rng rng;
    graft_rng_derive(&rng, seed, value->source);
    int64_t *wholes = GRAFT_NEW(arena, int64_t, count);
    float *numbers = GRAFT_NEW(arena, float, count);
    for (size_t i = 0; i < count; i++) {
        wholes[i] = graft_rng_below(&rng, 2);
        numbers[i] = (float)graft_rng_normal(&rng);
    }
    return value->shape.dtype == GRAFT_DTYPE_I64 ? (const void *)wholes : numbers;
}

const float **variant_values(graft_env *env, const graft_model *model, const graft_graph *graph,
                             uint64_t seed)
{
    const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_WEIGHT) {
            values[v] = model->weights[value->source].data;
        } else if (value->kind == GRAFT_VALUE_INPUT) {
            values[v] = draw_input(env->unit, value, seed);
        }
    }
    return values;
}

const float **variant_run(graft_env *env, const graft_model *model, const graft_graph *graph,
                          uint64_t seed)
{
    const graft_order order = build_order(env->unit, graph);
    const float **values = variant_values(env, model, graph, seed);
    CHECK_OK(graft_float_model(env, env->unit, model, graph, &order, values));
    return values;
}
