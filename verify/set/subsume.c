/* subsume.c - see subsume.h. */
#include "verify/set/subsume.h"

#include "verify/set/plot.h"
#include "verify/set/price.h"

/* ----------------------------------------------------------------- applying */

/* Whether some application of `other` to the source gives a graph with the hash `wanted`. */
static bool reaches(graft_plot *source, graft_plot *work, const graft_rule *other, uint64_t wanted)
{
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    bool found = false;
    for (graft_index i = 0; i < source->order.count && !found; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, other, &source->graph, &source->order,
                            source->order.order[i]);
        while (!found && graft_matcher_next(&matcher, &match)) {
            found = graft_graph_copy(&work->graph, &source->graph) == GRAFT_OK &&
                    graft_apply(&work->graph, other, &match, &source->order, &options,
                                work->scratch, NULL) == GRAFT_OK &&
                    graft_plot_hash(work) == wanted;
        }
    }
    return found;
}

bool graft_rule_follows(graft_env *env, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_rule *other)
{
    GRAFT_SCOPED(env->scratch);
    graft_plot source = graft_plot_new(env->scratch);
    graft_plot work = graft_plot_new(env->scratch);
    bool follows = count > 0;
    for (uint32_t i = 0; i < count && follows; i++) {
        graft_instance instance;
        follows = graft_instance_build(&instance, rule, &points[i]) == GRAFT_FIT_OK &&
                  graft_plot_build(&work, &instance, &instance.target);
        uint64_t wanted = follows ? graft_plot_hash(&work) : 0;
        follows = follows && graft_plot_build(&source, &instance, &instance.source) &&
                  graft_plot_sort(&source) && reaches(&source, &work, other, wanted);
    }
    return follows;
}

/* --------------------------------------------------------------------- gain */

static int32_t count_bits(uint32_t bits) { return __builtin_popcount(bits); }

int32_t graft_rule_gain(const graft_rule *rule)
{
    int32_t best = INT32_MIN;
    for (uint32_t dynamic = 1; dynamic < 1u << rule->var_count; dynamic++) {
        uint32_t source = graft_pattern_reached(&rule->source, dynamic);
        uint32_t target = graft_pattern_reached(&rule->target, dynamic);
        bool matches = true; /* The engine leaves const outputs alone. */
        for (uint32_t i = 0; i < rule->output_count; i++) {
            uint32_t n = GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]);
            matches = matches && (source >> n & 1u) != 0;
        }
        int32_t gain = count_bits(source) - count_bits(target);
        best = matches && gain > best ? gain : best;
    }
    return best;
}
