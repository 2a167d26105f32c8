/* Packed rules from hostile bytes: unpacking refuses or gives a rule that keeps every promise,
 * packs to bytes that mean the same, prints, and is matched and applied without harm in a random
 * graph that its pattern was planted in. Whatever a rule says, the graph stays sound: that it is
 * false changes what is computed, never what is safe. */
#include "graph/rule/ruleprint.h"
#include "tests/support/build.h"
#include "tests/support/random_graph.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RULE_BYTES_MOST = 512, APPLICATIONS_MOST = 4 };

/* Packing gives bytes that unpack to the same bytes again; less room is never written past. */
static void check_packing(const graft_rule *rule)
{
    uint8_t bytes[RULE_BYTES_MOST];
    uint8_t again[RULE_BYTES_MOST];
    graft_rule copy;
    size_t used = 0;
    size_t size = graft_rule_pack(rule, bytes, sizeof bytes);
    assert(size > 0);
    assert(graft_rule_unpack(&copy, bytes, size, &used) == GRAFT_OK && used == size);
    assert(graft_rule_pack(&copy, again, size) == size && memcmp(bytes, again, size) == 0);
    memset(again, 0x5a, sizeof again);
    assert(graft_rule_pack(&copy, again, size - 1) == 0 && again[size - 1] == 0x5a);
}

/* Every program that the rule names, on shapes from scalars to the largest ones. */
static void run_code(const graft_rule *rule)
{
    static const graft_shape shapes[4] = {
        {.rank = 0,  .dtype = GRAFT_DTYPE_F32},
        {.dims = {7, 3, 2, 5, 1, 4},          .rank = 6, .dtype = GRAFT_DTYPE_F32},
        {.dims = {INT32_MAX},.rank = 1, .dtype = GRAFT_DTYPE_F32},
        {.rank = GRAFT_RANK_UNKNOWN         },
    };
    const graft_shape *vars[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        vars[v] = &shapes[v % 4];
        is_const[v] = v % 2 == 1;
    }
    for (int32_t s = 0; s < GRAFT_RULE_MAX_SLOTS; s++) {
        slots[s] = s % 3 == 0 ? s : s % 3 == 1 ? INT32_MIN + s : INT32_MAX - s;
    }
    int64_t result = 0;
    if (rule->condition != 255) {
        (void)graft_code_run(rule, rule->condition, vars, is_const, slots, &result);
    }
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
            const graft_term *term = &rule->target.nodes[n].attrs[i];
            if (term->kind == GRAFT_TERM_CODE) {
                (void)graft_code_run(rule, (uint32_t)term->value, vars, is_const, slots, &result);
            }
        }
    }
}

/* Applies the rule at the first match that takes it; false when none does. */
static bool apply_once(graft_arena *arena, graft_graph *graph, const graft_rule *rule)
{
    graft_order order = build_order(arena, graph);
    graft_apply_options options = {UINT64_MAX};
    void *scratch = build_scratch(arena, graph);
    for (graft_index i = 0; i < order.count; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rule, graph, &order, order.order[i]);
        for (uint32_t k = 0; k < 64 && graft_matcher_next(&matcher, &match); k++) {
            graft_status tried = graft_match_try(graph, rule, &match, &order, &options, scratch);
            graft_status status = graft_apply(graph, rule, &match, &order, &options, scratch, NULL);
            assert(tried == status);
            if (status == GRAFT_OK) {
                return true;
            }
        }
    }
    return false;
}

static void rewrite(graft_env *env, const graft_rule *rule, uint64_t seed)
{
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    random_graph_options options = {&rule, 1, 6, seed};
    graft_graph *graph = random_graph_draw(env->unit, &rng, &options);
    size_t bytes = graft_order_bytes(&graph->limits);
    void *workspace = graft_arena_alloc(env->unit, bytes);
    for (int i = 0; i < APPLICATIONS_MOST && apply_once(env->unit, graph, rule); i++) {
        assert(graft_graph_check(graph, workspace, bytes) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_rule rule;
    graft_env env;
    size_t used = 0;
    if (graft_rule_unpack(&rule, data, size, &used) != GRAFT_OK ||
        graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    assert(used <= size && graft_rule_check(&rule) == NULL);
    check_packing(&rule);
    run_code(&rule);
    assert(strlen(graft_rule_print_line(env.unit, &rule)) > 0);
    assert(strlen(graft_rule_print_name(env.unit, &rule)) > 0);
    for (uint64_t seed = 0; seed < 3; seed++) {
        rewrite(&env, &rule, seed + size);
    }
    graft_env_close(&env);
    return 0;
}
