/* Laws at all graphs of a space: what is called whole says all that the law of its two graphs
 * says. */
#include "gen/apply.h"
#include "gen/propose.h"
#include "tests/support/check.h"

#include <string.h>

static const char *const products = "family: t\n"
                                    "order: 1\n"
                                    "about: products, sums and joins\n"
                                    "sets:\n"
                                    "  - set: s\n"
                                    "    depth: 3\n"
                                    "    outputs: 2\n"
                                    "    sizes: {M: 2, K: 3}\n"
                                    "    inputs:\n"
                                    "      x: [M, K]\n"
                                    "      y: [M, K]\n"
                                    "    weights:\n"
                                    "      w: [K, K]\n"
                                    "      v: [K, K]\n"
                                    "    operators:\n"
                                    "      - {op: matmul}\n"
                                    "      - {op: transpose, rank: 2, axis: [[1, 0]]}\n"
                                    "      - {op: relu}\n"
                                    "      - {op: add, distinct: true}\n"
                                    "      - {op: concat, axis: [0, 1], distinct: true}\n"
                                    "      - {op: split, axis: [0, 1], at: [M, K]}\n";

static const char *const order = "family: t\n"
                                 "order: 1\n"
                                 "about: order and scalars\n"
                                 "sets:\n"
                                 "  - set: s\n"
                                 "    depth: 3\n"
                                 "    sizes: {M: 2, K: 3}\n"
                                 "    inputs:\n"
                                 "      x: [M, K]\n"
                                 "      y: [K]\n"
                                 "      a: []\n"
                                 "    operators:\n"
                                 "      - {op: max}\n"
                                 "      - {op: min}\n"
                                 "      - {op: relu}\n"
                                 "      - {op: add}\n"
                                 "      - {op: sub}\n"
                                 "      - {op: mul}\n";

/* A space, its groups and its laws. */
typedef struct {
    graft_gen_space space;
    graft_gen_groups groups;
    graft_gen_index index;
    graft_gen_laws laws;
    graft_gen_site site;
} world;

static void open_world(graft_env *env, const char *text, uint32_t output_count, world *w)
{
    graft_gen_family *family = GRAFT_NEW(env->life, graft_gen_family, 1);
    memset(w, 0, sizeof *w);
    CHECK_OK(graft_gen_family_parse(env, env->life, "text", text, strlen(text), family));
    const graft_gen_samples samples = {.seed = 1};
    CHECK_OK(graft_gen_space_build(env, env->life, &family->sets[0], &samples, NULL, &w->space));
    w->laws.arena = env->unit;
    CHECK_OK(graft_gen_propose(&w->space, &w->laws));
    graft_gen_groups_build(&w->space, env->life, output_count, &w->groups);
    graft_gen_index_build(&w->groups, NULL, env->life, &w->index);
    w->site = (graft_gen_site){&w->groups, &w->index,
                               GRAFT_NEW(env->life, uint32_t, w->space.node_count), env->life};
}

/* Whether a law joins two graphs, in either direction. */
static bool joins_graphs(const graft_gen_joins *joins, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < joins->count; i++) {
        const graft_gen_join *j = &joins->items[i];
        if ((j->from == a && j->to == b) || (j->from == b && j->to == a)) {
            return true;
        }
    }
    return false;
}

/* The law of two graphs that a law joins wholly joins nothing that the other does not. */
static uint32_t check_whole(const world *w, const graft_gen_joins *joins, const graft_gen_join *j)
{
    graft_gen_law drawn;
    graft_gen_joins narrow = {NULL, 0, 0};
    const graft_gen_graph *graphs = w->groups.graphs;
    if (!graft_gen_law_draw(&w->space, &graphs[j->from].roots, &graphs[j->to].roots,
                            w->groups.output_count, &drawn) ||
        !graft_gen_law_join(&w->site, &drawn, 0, &narrow)) {
        return 0;
    }
    for (uint32_t i = 0; i < narrow.count; i++) {
        assert_true(joins_graphs(joins, narrow.items[i].from, narrow.items[i].to));
    }
    return narrow.count;
}

static void check_instances(graft_env *env, const char *text, uint32_t output_count)
{
    world w;
    uint32_t checked = 0;
    open_world(env, text, output_count, &w);
    for (uint32_t i = 0; i < w.laws.count; i++) {
        graft_gen_joins joins = {NULL, 0, 0};
        if (w.laws.laws[i].output_count != w.groups.output_count ||
            !graft_gen_law_join(&w.site, &w.laws.laws[i], i, &joins)) {
            continue;
        }
        for (uint32_t k = 0; k < joins.count && k < 12; k++) {
            if (joins.items[k].is_whole) {
                checked += check_whole(&w, &joins, &joins.items[k]);
            }
        }
    }
    print_message("# %u joins of laws that are instances of others\n", checked);
    assert_true(checked > 20);
}

CHECK_CASE(test_whole_joins_say_all)
{
    check_instances(env, products, 1);
    check_instances(env, products, 2);
    check_instances(env, order, 1);
}
