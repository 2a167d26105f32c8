/* whole_groups.c - see whole_groups.h. */
#include "emit/run/whole_groups.h"

#include "graph/byte_groups.h"

#include <string.h>

typedef struct {
    graft_env *env;
    const graft_model *model;
    const graft_rewrite_judge *sizes;
    bool *grouped; /* By node of the graph that is looked at. */
    graft_index capacity;
} whole_groups;

static void look_at(void *context, const graft_graph *graph, const graft_order *order)
{
    whole_groups *g = context;
    graft_mark mark = graft_arena_mark(g->env->scratch);
    const bool *found = graft_byte_groups_find(g->env->scratch, g->model, graph, order);
    if (g->capacity < graph->limits.nodes) {
        g->capacity = graph->limits.nodes;
        g->grouped = GRAFT_NEW(g->env->life, bool, g->capacity);
    }
    memset(g->grouped, 0, g->capacity * sizeof(g->grouped[0]));
    if (found != NULL) {
        memcpy(g->grouped, found, graph->node_end * sizeof(g->grouped[0]));
    }
    graft_arena_release(g->env->scratch, mark);
    if (g->sizes != NULL) {
        g->sizes->look_at(g->sizes->context, graph, order);
    }
}

static bool holds(void *context, const graft_rule *rule, const graft_match *match)
{
    const whole_groups *g = context;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        if (g->grouped[match->nodes[n]]) {
            return false;
        }
    }
    return g->sizes == NULL || g->sizes->holds(g->sizes->context, rule, match);
}

static bool has_changes(graft_env *env, const graft_model *model)
{
    GRAFT_SCOPED(env->scratch);
    const size_t bytes = graft_order_bytes(&model->graph.limits);
    graft_order order;
    const bool placed =
        graft_order_build(&order, &model->graph, graft_arena_alloc(env->scratch, bytes), bytes) ==
        GRAFT_OK;
    return placed && graft_byte_groups_find(env->scratch, model, &model->graph, &order);
}

const graft_rewrite_judge *graft_whole_groups_judge(graft_env *env, const graft_model *model,
                                                    const graft_rewrite_judge *sizes)
{
    if (!has_changes(env, model)) {
        return sizes;
    }
    whole_groups *g = GRAFT_NEW(env->life, whole_groups, 1);
    graft_rewrite_judge *judge = GRAFT_NEW(env->life, graft_rewrite_judge, 1);
    *g = (whole_groups){.env = env, .model = model, .sizes = sizes};
    *judge = (graft_rewrite_judge){look_at, holds, g};
    return judge;
}
