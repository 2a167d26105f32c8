/* The matcher against every assignment of graph nodes to pattern nodes: it offers each match, each
 * once, at its anchor. */
#include "tests/support/build.h"
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/naive.h"
#include "tests/support/random_graph.h"
#include "tests/support/rebuild.h"

#include "graph/rule/ruleprint.h"

#include <string.h>

enum { GRAPHS = 1000, MATCHES_MOST = 4096 };

typedef struct {
    graft_match items[MATCHES_MOST];
    uint32_t count;
} match_list;

static void keep_match(void *context, const graft_match *match)
{
    match_list *list = context;
    assert_true(list->count < MATCHES_MOST);
    list->items[list->count++] = *match;
}

static bool same_match(const graft_rule *rule, const graft_match *a, const graft_match *b)
{
    return memcmp(a->nodes, b->nodes, rule->source.node_count * sizeof a->nodes[0]) == 0 &&
           memcmp(a->vars, b->vars, rule->var_count * sizeof a->vars[0]) == 0 &&
           memcmp(a->slots, b->slots, rule->slot_count * sizeof a->slots[0]) == 0;
}

static bool is_among(const graft_rule *rule, const graft_match *match, const match_list *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        count += same_match(rule, match, &list->items[i]);
    }
    return count == 1;
}

/* Matches at every anchor, active or not, known or not. */
static void list_matches(const graft_graph *graph, const graft_order *order, const graft_rule *rule,
                         match_list *list)
{
    list->count = 0;
    for (graft_index i = 0; i < order->count; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rule, graph, order, order->order[i]);
        while (graft_matcher_next(&matcher, &match)) {
            assert_int_equal(match.nodes[0], order->order[i]);
            keep_match(list, &match);
        }
        assert_false(graft_matcher_next(&matcher, &match)); /* It stays exhausted. */
    }
}

static void compare_matches(graft_env *env, const graft_graph *graph, const graft_rule *rule,
                            match_list lists[2])
{
    graft_order order = build_order(env->unit, graph);
    list_matches(graph, &order, rule, &lists[0]);
    lists[1].count = 0;
    naive_match(graph, &order, rule, keep_match, &lists[1]);
    bool same = lists[0].count == lists[1].count;
    for (uint32_t i = 0; i < lists[1].count; i++) {
        same = same && is_among(rule, &lists[1].items[i], &lists[0]);
    }
    if (!same) {
        fail_msg("%s: %u matches instead of %u in\n%s", graft_rule_print_line(env->unit, rule),
                 lists[0].count, lists[1].count, rebuild_print(env->unit, graph));
    }
}

CHECK_CASE(test_all_matches_once)
{
    known_rules known = known_rules_true(env, env->life);
    match_list *lists = GRAFT_NEW(env->life, match_list, 2);
    uint64_t found = 0;
    for (uint32_t g = 0; g < GRAPHS; g++) {
        graft_rng rng;
        const graft_rule *planted[2];
        graft_rng_derive(&rng, 3, g);
        graft_arena_reset(env->unit);
        for (uint32_t i = 0; i < 2; i++) {
            planted[i] = &known.rules[graft_rng_below(&rng, known.count)];
        }
        random_graph_options options = {planted, 2, 4 + graft_rng_below(&rng, 8),
                                        graft_rng_next(&rng)};
        const graft_graph *graph = random_graph_draw(env->unit, &rng, &options);
        for (uint32_t i = 0; i < known.count; i++) {
            compare_matches(env, graph, &known.rules[i], lists);
            found += lists[0].count;
        }
    }
    print_message("# %llu matches in %d graphs\n", (unsigned long long)found, GRAPHS);
    assert_true(found > GRAPHS);
}
