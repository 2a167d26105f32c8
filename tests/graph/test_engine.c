/* The graph engine: building, order, hash, byte code, packing, matching, applying. */
#include "graph/base/rng.h"
#include "tests/support/build.h"
#include "tests/support/rows.h"

#include <string.h>

enum { SCRATCH_BYTES = 1 << 16 };

/* Number of matches of a rule over all anchors. */
static uint32_t count_matches(graft_env *env, const graft_graph *graph, const graft_rule *rule)
{
    graft_order order = build_order(env->scratch, graph);
    uint32_t count = 0;
    for (graft_index i = 0; i < order.count; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rule, graph, &order, order.order[i]);
        while (graft_matcher_next(&matcher, &match)) {
            count++;
        }
    }
    return count;
}

static graft_status apply_first(graft_env *env, graft_graph *graph, const graft_rule *rule,
                                uint64_t weight_bytes_limit, graft_effect *effect)
{
    graft_order order = build_order(env->scratch, graph);
    graft_apply_options options = {.weight_bytes_limit = weight_bytes_limit};
    const graft_match match = build_match(graph, rule, &order);
    assert_true(graft_match_scratch_bytes(&graph->limits) <= SCRATCH_BYTES);
    void *scratch = graft_arena_alloc(env->scratch, SCRATCH_BYTES);
    graft_status tried = graft_match_try(graph, rule, &match, &order, &options, scratch);
    graft_status status = graft_apply(graph, rule, &match, &order, &options, scratch, effect);
    assert_int_equal(tried, status);
    build_check(env->scratch, graph);
    return status;
}

/* x -> conv(w) -> scale_shift(s, t) -> relu -> output. */
static graft_graph *build_block(graft_env *env)
{
    const built b = build_text(env->life, "x = input 1 3 8 8; w = weight 5 3 3 3; s = weight 5;"
                                          "t = weight 5; y = conv x w" PADDED
                                          "; y = scale_shift y s t; y = relu y; out y");
    build_check(env->scratch, b.graph);
    return b.graph;
}

/* --------------------------------------------------------------- building */

CHECK_CASE(test_capacity_leaves_graph)
{
    graft_graph *graph = build_graph_within(env->life, (graft_limits){1, 3, 3, 1});
    graft_index a = build_input(graph, SHAPE(4), 0);
    graft_index b = build_node(graph, GRAFT_OP_relu, NULL, a, 0, 0);
    graft_index node = 77;
    assert_int_equal(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &b, 0, &node),
                     GRAFT_CAPACITY);
    assert_int_equal(node, 77);
    assert_int_equal(graft_graph_node_count(graph), 1);
    CHECK_OK(graft_graph_add_output(graph, b));
    assert_int_equal(graft_graph_add_output(graph, b), GRAFT_CAPACITY);
    assert_int_equal(graft_graph_add_output(graph, 99), GRAFT_BAD_INPUT);
    assert_int_equal(graft_graph_add_node(graph, 250, NULL, &b, 0, &node), GRAFT_BAD_INPUT);
    build_check(env->scratch, graph);
}

/* All tables are full to their ends; what a dead node in their midst had is used again. */
CHECK_CASE(test_full_tables_reuse)
{
    graft_graph *graph = build_graph_within(env->life, (graft_limits){3, 4, 6, 1});
    built b = {.graph = graph};
    graft_index node = GRAFT_NONE;
    build_more(&b, "x = input 4; k = relu x; d = tanh x; l = sigmoid k; out l");
    assert_int_equal(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &b.at['l'], 0, &node),
                     GRAFT_CAPACITY);
    graft_graph_remove_dead(graph);
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &b.at['l'], 0, &node));
    assert_int_equal(graft_node_output(graph, node, 0), b.at['d']);
    assert_int_equal(graft_node_input(graph, graph->values[b.at['l']].node, 0), b.at['k']);
    build_check(env->scratch, graph);
}

CHECK_CASE(test_init_needs_bytes)
{
    graft_graph graph;
    graft_limits limits = {4, 4, 8, 1};
    unsigned char memory[4096];
    assert_true(graft_graph_bytes(&limits) <= sizeof memory);
    assert_int_equal(graft_graph_init(&graph, &limits, memory, graft_graph_bytes(&limits) - 1),
                     GRAFT_NO_MEMORY);
    CHECK_OK(graft_graph_init(&graph, &limits, memory + 1, graft_graph_bytes(&limits)));
}

CHECK_CASE(test_opaque_may_omit_inputs)
{
    graft_graph *graph = build_graph(env->life);
    graft_index x = build_input(graph, SHAPE(4), 0);
    const graft_index inputs[3] = {x, GRAFT_NONE, x};
    graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 7, inputs, 3, &unknown, 1, &node));
    CHECK_OK(graft_graph_add_output(graph, graft_node_output(graph, node, 0)));
    build_check(env->scratch, graph);
    graft_order order = build_order(env->life, graph);
    assert_int_equal(order.use_count[x], 2);
    assert_int_equal(graft_graph_active_count(graph), 1);
}

static graft_index build_opaque(graft_graph *graph, graft_index first, graft_index second)
{
    const graft_index inputs[3] = {first, GRAFT_NONE, second};
    const graft_shape shape = SHAPE(4);
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 7, inputs, 3, &shape, 1, &node));
    return node;
}

/* Only of weights, and only when somebody said so. */
CHECK_CASE(test_opaque_is_const)
{
    graft_graph *graph = build_graph(env->life);
    graft_index x = build_input(graph, SHAPE(4), 0);
    graft_index w = build_weight(graph, SHAPE(4), 0);
    graft_index unknown = build_opaque(graph, w, w);
    graft_index mixed = build_opaque(graph, w, x);
    graft_index folded = build_opaque(graph, w, w);
    graft_graph_set_repeatable(graph, mixed);
    graft_graph_set_repeatable(graph, folded);
    graft_index value = graft_node_output(graph, folded, 0);
    graft_index reader = build_node(graph, GRAFT_OP_tanh, NULL, value, 0, 0);
    assert_false(graph->nodes[unknown].is_const);
    assert_false(graph->nodes[mixed].is_const);
    assert_true(graph->nodes[folded].is_const);
    assert_true(graph->values[value].is_const);
    assert_true(graph->values[reader].is_const);
    assert_int_equal(graft_graph_active_count(graph), 2);
    build_check(env->scratch, graph);
    graph->nodes[mixed].is_const = true;
    graph->values[graft_node_output(graph, mixed, 0)].is_const = true;
    size_t bytes = graft_order_bytes(&graph->limits);
    assert_non_null(graft_graph_check(graph, graft_arena_alloc(env->unit, bytes), bytes));
}

/* Whatever was removed, what is added has the lowest numbers that are free: costs follow the order
 * of nodes, and that their numbers. */
CHECK_CASE(test_lowest_slots_are_taken)
{
    enum { ROUNDS = 40, ADDED = 6 };
    graft_graph *graph = build_graph_within(env->life, (graft_limits){64, 64, 256, 64});
    graft_rng rng = check_rng(7);
    graft_index x = build_input(graph, SHAPE(4), 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ADDED; i++) {
            graft_index node = 0;
            graft_index value = 0;
            while (node < graph->node_end && graph->nodes[node].op != GRAFT_OP_NONE) {
                node++;
            }
            while (value < graph->value_end && graph->values[value].kind != GRAFT_VALUE_FREE) {
                value++;
            }
            graft_index made = graft_rng_below(&rng, 4) == 0
                                   ? build_weight(graph, SHAPE(4), 0)
                                   : build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
            assert_int_equal(made, value);
            if (graph->values[made].kind == GRAFT_VALUE_COMPUTED) {
                assert_int_equal(graph->values[made].node, node);
            }
        }
        graph->output_count = 0;
        for (graft_index v = 0; v < graph->value_end; v++) {
            if (graph->values[v].kind != GRAFT_VALUE_FREE && graft_rng_below(&rng, 3) > 0) {
                CHECK_OK(graft_graph_add_output(graph, v));
            }
        }
        graft_graph_remove_dead(graph);
    }
}

/* A table that is full of gaps is packed rather than refused. */
CHECK_CASE(test_edges_are_compacted)
{
    built b = {.graph = build_graph_within(env->life, (graft_limits){8, 10, 8, 2})};
    for (int round = 0; round < 3; round++) {
        graft_graph_clear(b.graph); /* The dead node leaves a gap of two edges. */
        build_more(&b, "x = input 4; k = tanh x; d = relu x; s = add k x; out s");
        graft_graph_remove_dead(b.graph);
        build_more(&b, "y = relu s");
        b.graph->outputs[0] = b.at['y'];
        build_check(env->scratch, b.graph);
        assert_int_equal(graft_graph_node_count(b.graph), 3);
    }
}

/* ----------------------------------------------------------- order and hash */

CHECK_CASE(test_order_puts_producers_first)
{
    graft_graph *graph = build_block(env);
    graft_order order = build_order(env->life, graph);
    assert_int_equal(order.count, 3);
    for (graft_index i = 0; i < order.count; i++) {
        assert_int_equal(order.position[order.order[i]], i);
    }
    assert_int_equal(graph->nodes[order.order[0]].op, GRAFT_OP_conv);
    assert_int_equal(graph->nodes[order.order[2]].op, GRAFT_OP_relu);
}

CHECK_CASE(test_hash_ignores_ids_only)
{
    static const char *const texts[4] = {
        "y = input 3 4; x = input 3 4; z = sub x y; z = relu z; out z",
        "z = input 3 4; v = input 3 4; a = tanh z; b = relu a; z = sub v z; z = relu z; out z",
        "x = input 3 4; y = input 3 4; z = sub x y; z = relu z; out z",
        "y = input 3 4; x = input 3 4; z = sub x y; z = tanh z; out z"};
    uint64_t hashes[4];
    for (int variant = 0; variant < 4; variant++) {
        graft_graph *graph = build_text(env->life, "%s", texts[variant]).graph;
        graft_graph_remove_dead(graph); /* The second one has other ids, and the same meaning. */
        hashes[variant] = build_hash(env->scratch, graph);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2]);
    assert_true(hashes[0] != hashes[3]);
}

/* An input is never taken for a weight, whatever their numbers. */
CHECK_CASE(test_hash_tells_sources_apart)
{
    enum { SOURCES = 8 };
    uint64_t hashes[2 * SOURCES];
    for (graft_index i = 0; i < 2 * SOURCES; i++) {
        graft_graph *graph = build_graph(env->life);
        graft_shape shape = SHAPE(4);
        graft_index x =
            i < SOURCES ? build_input(graph, shape, i) : build_weight(graph, shape, i - SOURCES);
        CHECK_OK(graft_graph_add_output(graph, x));
        hashes[i] = build_hash(env->scratch, graph);
        for (graft_index k = 0; k < i; k++) {
            assert_true(hashes[k] != hashes[i]);
        }
    }
}

/* --------------------------------------------------------------- byte code */

typedef struct {
    const char *name;
    uint8_t code[36];
    uint8_t bytes;
    bool runs;
    int64_t want;
} code_case;

static const code_case code_cases[] = {
    {"constant",          {1, 0xfe, 0},                                                3,  true,  -2         },
    {"constant 32",       {2, 0x78, 0x56, 0x34, 0x92, 0},                              6,  true,  -1842063752},
    {"slot",              {3, 1, 0},                                                   3,  true,  7          },
    {"dim",               {4, 0, 1, 0},                                                4,  true,  4          },
    {"last dim",          {4, 0, 0xff, 0},                                             4,  true,  5          },
    {"missing dim",       {4, 0, 3, 0},                                                4,  false, 0          },
    {"rank",              {5, 0, 0},                                                   3,  true,  3          },
    {"const flag",        {6, 1, 0},                                                   3,  true,  1          },
    {"same shape",        {7, 0, 1, 0},                                                4,  true,  0          },
    {"same, other type",  {7, 0, 2, 0},                                                4,  true,  1          },
    {"sum",               {1, 3, 1, 4, 8, 0},                                          6,  true,  7          },
    {"difference",        {1, 3, 1, 4, 9, 0},                                          6,  true,  -1         },
    {"product",           {1, 3, 1, 4, 10, 0},                                         6,  true,  12         },
    {"exact quotient",    {1, 12, 1, 4, 11, 0},                                        6,  true,  3          },
    {"inexact quotient",  {1, 13, 1, 4, 11, 0},                                        6,  false, 0          },
    {"quotient by zero",  {1, 13, 1, 0, 11, 0},                                        6,  false, 0          },
    {"remainder",         {1, 13, 1, 4, 12, 0},                                        6,  true,  1          },
    {"equal",             {1, 4, 1, 4, 13, 0},                                         6,  true,  1          },
    {"at most",           {1, 5, 1, 4, 14, 0},                                         6,  true,  0          },
    {"divides",           {1, 4, 1, 12, 15, 0},                                        6,  true,  1          },
    {"and",               {1, 1, 1, 0, 16, 0},                                         6,  true,  0          },
    {"or",                {1, 1, 1, 0, 17, 0},                                         6,  true,  1          },
    {"not",               {1, 0, 18, 0},                                               4,  true,  1          },
    {"min",               {1, 3, 1, 0xfd, 19, 0},                                      6,  true,  -3         },
    {"max",               {1, 3, 1, 0xfd, 20, 0},                                      6,  true,  3          },
    {"beyond 64 bits",    {2, 0, 0, 0, 64, 1, 4, 10, 2, 0, 0, 0, 64, 1, 4, 10, 10, 0}, 18, false, 0          },
    {"too few operands",  {1, 3, 8, 0},                                                4,  false, 0          },
    {"two results",       {1, 3, 1, 4, 0},                                             5,  false, 0          },
    {"runs off",          {1, 3},                                                      2,  false, 0          },
    {"nothing",           {0},                                                         0,  false, 0          },
    {"not of nothing",    {18, 0},                                                     2,  false, 0          },
    {"too deep",
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0},
     35,                                                                                   false,
     0                                                                                                       },
    {"no third size",     {4, 3, 3, 0},                                                4,  false, 0          },
    {"no last size",      {4, 3, 0xff, 0},                                             4,  false, 0          },
    {"unknown sizes",     {4, 4, 0, 0},                                                4,  false, 0          },
    {"large sum",         {3, 2, 3, 2, 10, 3, 2, 3, 2, 10, 8, 0},                      12, false, 0          },
    {"large difference",  {1, 0, 3, 2, 3, 2, 10, 9, 3, 2, 3, 2, 10, 9, 0},             15, false, 0          },
    {"large product",     {3, 2, 3, 2, 10, 3, 2, 10, 0},                               9,  false, 0          },
    {"remainder by zero", {1, 3, 1, 0, 12, 0},                                         6,  false, 0          },
    {"remainder of -1",   {1, 0xff, 1, 3, 12, 0},                                      6,  false, 0          },
    {"not a number",      {2, 0xff, 0xff, 0xff, 0x7f, 1, 0, GRAFT_CODE_FLE, 0},        9,  false, 0          },
    {"no second number",  {1, 0, 2, 0xff, 0xff, 0xff, 0x7f, GRAFT_CODE_FMAX, 0},       9,  false, 0          },
    {"does not divide",   {1, 4, 1, 6, 15, 0},                                         6,  true,  0          },
    {"zero divides",      {1, 0, 1, 6, 15, 0},                                         6,  true,  0          },
    {"and of 0 and 1",    {1, 0, 1, 1, 16, 0},                                         6,  true,  0          },
    {"and of 2 and 1",    {1, 2, 1, 1, 16, 0},                                         6,  true,  1          },
    {"or of zeros",       {1, 0, 1, 0, 17, 0},                                         6,  true,  0          },
    {"or of 0 and 2",     {1, 0, 1, 2, 17, 0},                                         6,  true,  1          },
};

CHECK_CASE(test_code)
{
    graft_shape x = SHAPE(3, 4, 5);
    graft_shape y = SHAPE(3, 4, 1);
    graft_shape bytes = x;
    bytes.dtype = GRAFT_DTYPE_U8;
    const graft_shape scalar = {.rank = 0, .dtype = GRAFT_DTYPE_F32};
    const graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    const graft_shape *vars[] = {&x, &y, &bytes, &scalar, &unknown};
    const bool is_const[] = {false, true, false, false, false};
    const int32_t slots[] = {6, 7, INT32_MAX};
    for (size_t i = 0; i < sizeof code_cases / sizeof code_cases[0]; i++) {
        const code_case *c = &code_cases[i];
        graft_rule rule = {.code_bytes = c->bytes};
        int64_t result = 99;
        memcpy(rule.code, c->code, c->bytes);
        bool runs = graft_code_run(&rule, 0, vars, is_const, slots, &result);
        if (runs != c->runs || (runs && result != c->want) || (!runs && result != 99)) {
            fail_msg("%s: ran %d, result %lld", c->name, runs, (long long)result);
        }
    }
}

/* Orders of binary32 numbers by their bits: -1 < -0 <= 0 < 1; NaN has none. */
CHECK_CASE(test_code_floats)
{
    static const struct {
        uint32_t a, b;
        int at_most;
    } cases[] = {
        {0xbf800000u, 0x80000000u, 1 },
        {0x00000000u, 0x80000000u, 1 },
        {0x3f800000u, 0xbf800000u, 0 },
        {0x7fc00000u, 0x00000000u, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule = {
            .code_bytes = 6, .code = {3, 0, 3, 1, GRAFT_CODE_FLE, 0}
        };
        int32_t slots[2];
        memcpy(&slots[0], &cases[i].a, 4);
        memcpy(&slots[1], &cases[i].b, 4);
        int64_t result = 0;
        bool runs = graft_code_run(&rule, 0, NULL, NULL, slots, &result);
        assert_int_equal(runs, cases[i].at_most >= 0);
        assert_true(!runs || result == cases[i].at_most);
    }
}

/* ----------------------------------------------------------------- packing */

CHECK_CASE(test_pack_round_trip)
{
    graft_rule rules[] = {rows_parse(env, RULE_FUSE_RELU), rows_parse(env, RULE_FOLD_SCALE),
                          rows_parse(env, RULE_MERGE_MATMUL), rows_parse(env, RULE_DROP_IDENTITY)};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        uint8_t bytes[512];
        graft_rule back;
        size_t used = 0;
        assert_null(graft_rule_check(&rules[i]));
        size_t size = graft_rule_pack(&rules[i], bytes, sizeof bytes);
        assert_in_range(size, 6, 80);
        CHECK_OK(graft_rule_unpack(&back, bytes, size, &used));
        assert_int_equal(used, size);
        uint8_t again[512];
        assert_int_equal(graft_rule_pack(&back, again, sizeof again), size);
        assert_memory_equal(again, bytes, size);
        assert_int_equal(back.target.nodes[0].op, rules[i].target.nodes[0].op);
        assert_int_equal(graft_rule_pack(&rules[i], bytes, size - 1), 0);
        for (size_t cut = 0; cut < size; cut++) {
            assert_int_equal(graft_rule_unpack(&back, bytes, cut, &used), GRAFT_BAD_INPUT);
        }
    }
}

/* Every single-byte change is refused or gives a rule that passes the check. */
CHECK_CASE(test_unpack_survives_changes)
{
    graft_rule rule = rows_parse(env, RULE_FOLD_SCALE);
    uint8_t bytes[512];
    size_t size = graft_rule_pack(&rule, bytes, sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t changed[512];
            graft_rule back;
            size_t used = 0;
            memcpy(changed, bytes, size);
            changed[i] = (uint8_t)value;
            if (graft_rule_unpack(&back, changed, size, &used) == GRAFT_OK) {
                assert_null(graft_rule_check(&back));
                assert_true(used <= size);
            }
        }
    }
}

/* ---------------------------------------------------- matching and applying */

/* Which matches there are is held against every assignment (test_matching.c), what an application
 * makes against a naive one (test_rewriting.c). Here is what it says of itself. */

CHECK_CASE(test_fold_then_fuse)
{
    graft_graph *graph = build_block(env);
    graft_rule fold = rows_parse(env, RULE_FOLD_SCALE);
    graft_rule fuse = rows_parse(env, RULE_FUSE_RELU);
    graft_index output = graph->outputs[0];
    graft_effect effect;
    assert_int_equal(count_matches(env, graph, &fuse), 0);
    CHECK_OK(apply_first(env, graph, &fold, 1 << 20, &effect));
    assert_int_equal(effect.weight_bytes, 5 * 3 * 3 * 3 * 4);
    assert_int_equal(graft_graph_node_count(graph), 4);
    assert_int_equal(graft_graph_active_count(graph), 2);
    CHECK_OK(apply_first(env, graph, &fuse, 0, &effect));
    assert_int_equal(graft_graph_active_count(graph), 1);
    assert_int_equal(graph->outputs[0], output); /* The output kept its id. */
    const graft_node *last = &graph->nodes[graph->values[output].node];
    assert_int_equal(last->op, GRAFT_OP_conv_bias);
    assert_int_equal(last->attrs[GRAFT_ATTR_conv_bias_activation], GRAFT_ACT_RELU);
    assert_int_equal(last->attrs[GRAFT_ATTR_conv_bias_pad_top], 1);
}

CHECK_CASE(test_weight_limit_refuses)
{
    graft_graph *graph = build_block(env);
    uint64_t before = build_hash(env->scratch, graph);
    graft_rule fold = rows_parse(env, RULE_FOLD_SCALE);
    assert_int_equal(apply_first(env, graph, &fold, 539, NULL), GRAFT_NO_MATCH);
    assert_true(build_hash(env->scratch, graph) == before);
    CHECK_OK(apply_first(env, graph, &fold, 540, NULL));
}

/* split(x) = slice(x), slice(x), with nobody reading the second part. */
CHECK_CASE(test_unread_output_leaves_nothing)
{
    const built b = build_text(env->life, "x = input 8; f g = split x : 0 3; out f");
    graft_rule rule =
        rows_parse(env, "[split(a, axis=0, at=3).0, split(a, axis=0, at=3).1] = "
                        "[slice(a, axis=0, start=0, end=3), slice(a, axis=0, start=3, end=8)]");
    graft_effect effect;
    CHECK_OK(apply_first(env, b.graph, &rule, 0, &effect));
    assert_int_equal(graft_graph_node_count(b.graph), 1);
    assert_int_equal(effect.created_count, 2);
    assert_int_equal(effect.created[0], b.graph->values[b.at['f']].node);
    assert_int_equal(effect.created[1], GRAFT_NONE);
}

/* sub(x, x) = w and exp(x) = mul(add(x, w), w), each with a new w: const tensors that are created
 * are weights, whoever reads them, and each is one weight. */
CHECK_CASE(test_created_weights_are_counted)
{
    static const char *const texts[2] = {
        "sub(a, a) = fill(value=0.0, dim=[8])",
        "exp(a) = mul(add(a, fill(value=0.0, dim=[8])), fill(value=0.0, dim=[8]))"};
    for (uint32_t i = 0; i < 2; i++) {
        graft_graph *graph =
            build_text(env->life, "x = input 8; y = %s; out y", i == 0 ? "sub x x" : "exp x").graph;
        graft_effect effect;
        const graft_rule rule = rows_parse(env, texts[i]);
        assert_int_equal(apply_first(env, graph, &rule, 31, NULL), GRAFT_NO_MATCH);
        CHECK_OK(apply_first(env, graph, &rule, 32, &effect));
        assert_int_equal(effect.weight_bytes, 32);
    }
}
