/* Generated headers: their bytes, and what compilers make of them. */
#include "emit/header/graphtable.h"
#include "emit/header/header.h"
#include "tests/support/policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_BYTES = 4096 };

/* The policy that is written in the folder of the case. */
typedef struct {
    graft_env *env;
    policy_kit *kit;
} bench;

static bench open_bench(graft_env *env)
{
    bench b = {env, policy_kit_open(env, &policy_kit_plain)};
    return b;
}

static void write_text(const bench *b, const char *name, const char *text)
{
    CHECK_OK(graft_file_write(b->env, check_path(name), text, strlen(text)));
}

static void write_header(const bench *b, const char *file, const char *name, bool amalgamate)
{
    const graft_header_options options = {
        .name = name,
        .generator = "graft test",
        .rule_names = policy_kit_names,
        .amalgamate = amalgamate,
    };
    CHECK_OK(graft_header_write(b->env, &b->kit->policy, &options, check_path(file), NULL));
}

/* Runs a command in the folder; GRAFT_ROOT is the project's. The output is in *output. */
static int run_command(const bench *b, const char *command, const char **output)
{
    char root[COMMAND_BYTES];
    assert_non_null(getcwd(root, sizeof root));
    // NOLINTNEXTLINE(cert-env33-c): running a compiler is the point.
    int status = system(graft_arena_printf(b->env->life,
                                           "GRAFT_ROOT='%s'; cd '%s' && { %s; } > output.txt 2>&1",
                                           root, check_folder(), command));
    *output = check_text(check_path("output.txt"));
    return status;
}

static void assert_runs(const bench *b, const char *command)
{
    const char *output = NULL;
    if (run_command(b, command, &output) != 0) {
        fail_msg("%s: %s", command, output);
    }
}

static bool has_tool(const bench *b, const char *tool)
{
    const char *output = NULL;
    return run_command(b, graft_arena_printf(b->env->life, "command -v %s", tool), &output) == 0;
}

#define CC_STRICT "gcc -std=c99 -pedantic -Wall -Wextra -Werror -O2 "
/* Where what a program says is of interest: compiles in a third of the time. */
#define CC_QUICK "gcc -std=c99 -pedantic -Wall -Wextra -Werror -O0 -I \"$GRAFT_ROOT/include\" "

/* ------------------------------------------------------------------- cases */

CHECK_CASE(test_same_bytes)
{
    bench b = open_bench(env);
    graft_arena *arena = graft_arena_new(1 << 20);
    graft_buffer texts[2] = {{.arena = arena}, {.arena = arena}};
    graft_header_sizes sizes;
    const graft_header_options options = {"Kit-1", "graft test", NULL, true, {{0}}, false};
    for (uint32_t i = 0; i < 2; i++) {
        const policy_kit *kit = policy_kit_open(b.env, &policy_kit_plain);
        CHECK_OK(graft_header_print(b.env, &kit->policy, &options, &texts[i], &sizes));
    }
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].size);
    assert_int_equal(sizes.header, texts[0].size);
    assert_non_null(strstr(texts[0].data, "const graft_policy graft_policy_kit_1 = {"));
    assert_null(strstr(texts[0].data, check_folder()));
    print_message("# bytes of const data: rules %zu, network %zu, in all %zu\n", sizes.rules,
                  sizes.network, sizes.total);
    graft_arena_free(arena);
}

/* The engine may need nothing but what compilers call by themselves. */
CHECK_CASE(test_freestanding)
{
    bench b = open_bench(env);
    const char *output = NULL;
    write_header(&b, "graft_policy.h", "kit", false);
    write_text(&b, "one.c", "#define GRAFT_IMPLEMENTATION\n#include \"graft_policy.h\"\n");
    assert_runs(&b, CC_STRICT "-ffreestanding -nostdlib -I \"$GRAFT_ROOT/include\" -c one.c");
    assert_int_equal(
        run_command(&b, "nm -u one.o | awk '$2 !~ /^(memcpy|memset|memmove|memcmp)$/'", &output),
        0);
    assert_string_equal(output, "");
    /* No floating point either: without its registers it must compile just as well. */
    assert_runs(&b, "uname -m | grep -qv x86_64 || " CC_STRICT
                    "-mgeneral-regs-only -ffreestanding -I \"$GRAFT_ROOT/include\" -c one.c");
}

/* One header is all that a product needs, in C and in C++; a second file includes it plainly. */
CHECK_CASE(test_amalgamated)
{
    bench b = open_bench(env);
    write_header(&b, "graft_policy.h", "kit", true);
    write_text(&b, "one.c", "#define GRAFT_IMPLEMENTATION\n#include \"graft_policy.h\"\n");
    write_text(&b, "two.c",
               "#include \"graft_policy.h\"\n"
               "int main(void) { return GRAFT_POLICY.rule_count == 7 ? 0 : 1; }\n");
    assert_runs(&b, CC_STRICT "one.c two.c -o c && ./c");
    if (!has_tool(&b, "g++")) {
        CHECK_SKIP("C++ needs g++ (package g++)");
    }
    assert_runs(&b, "g++ -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror one.c two.c -o cpp && "
                    "./cpp");
}

/* Costs in place of a network. */
CHECK_CASE(test_by_tariff)
{
    bench b = open_bench(env);
    b.kit->policy = b.kit->table;
    write_header(&b, "graft_policy.h", "kit", false);
    write_text(&b, "one.c",
               graft_arena_printf(
                   b.env->life,
                   "#define GRAFT_IMPLEMENTATION\n#include \"graft_policy.h\"\n"
                   "int main(void) { const graft_tariff *t = GRAFT_POLICY.tariff;\n"
                   "  return t->row_count == %u && t->keys[3] == %uu && t->values[3] == %u &&\n"
                   "    t->tree_count == 0 && GRAFT_POLICY.hidden == 0 &&\n"
                   "    GRAFT_POLICY.decider == GRAFT_DECIDER_TARIFF ? 0 : 1; }\n",
                   b.kit->policy.tariff->row_count, b.kit->policy.tariff->keys[3],
                   b.kit->policy.tariff->values[3]));
    assert_runs(&b, CC_QUICK "one.c -o one && ./one");
}

CHECK_CASE(test_two_policies)
{
    bench b = open_bench(env);
    write_header(&b, "first.h", "first", false);
    write_header(&b, "second.h", "second", true);
    write_text(
        &b, "one.c",
        "#define GRAFT_IMPLEMENTATION\n#include \"first.h\"\n#include \"second.h\"\n"
        "int main(void) { return graft_policy_first.rules == graft_policy_second.rules; }\n");
    assert_runs(&b, CC_QUICK "one.c -o one && ./one");
}

/* The second would be left out, and its product rewritten by the first. */
CHECK_CASE(test_same_name)
{
    bench b = open_bench(env);
    const char *output = NULL;
    write_header(&b, "first.h", "kit", false);
    b.kit->policy = b.kit->table;
    write_header(&b, "second.h", "kit", false);
    write_text(&b, "one.c", "#include \"first.h\"\n#include \"first.h\"\n");
    write_text(&b, "two.c", "#include \"first.h\"\n#include \"second.h\"\n");
    assert_runs(&b, CC_QUICK "-c one.c");
    assert_true(run_command(&b, CC_QUICK "-c two.c", &output) != 0);
    assert_non_null(strstr(output, "another policy is called kit, too"));
}

/* A header for another engine says so instead of misbehaving. */
CHECK_CASE(test_mismatch)
{
    bench b = open_bench(env);
    const char *output = NULL;
    write_header(&b, "graft_policy.h", "kit", false);
    write_text(&b, "one.c", "#define GRAFT_IMPLEMENTATION\n#include \"graft_policy.h\"\n");
    assert_runs(&b, "sed 's/GRAFT_ABI != [0-9]*/GRAFT_ABI != 9999/' graft_policy.h > other.h && "
                    "mv other.h graft_policy.h");
    assert_true(run_command(&b, "gcc -std=c99 -I \"$GRAFT_ROOT/include\" -c one.c", &output) != 0);
    assert_non_null(strstr(output, "this policy was generated for graft.h with ABI"));
}

CHECK_CASE(test_plans_and_metadata)
{
    bench b = open_bench(env);
    const graft_plan_step steps[2] = {
        {KIT_DROP_IDENTITY, 3},
        {KIT_FOLD_SCALE,    1}
    };
    graft_recorded_plan plans[1] = {
        {.steps = steps, .step_count = 2}
    };
    CHECK_OK(graft_plan_record(b.env, b.env->life, &b.kit->policy, b.kit->graph, &plans[0]));
    CHECK_OK(graft_policy_set_plans(b.env, b.env->life, plans, 1, &b.kit->policy));
    b.kit->policy.metadata = "{\"a\":\"*/ ?\?/ \\ \xc3\xbc\n\"}";
    write_header(&b, "graft_policy.h", "kit", false);
    write_text(&b, "one.c",
               graft_arena_printf(
                   b.env->life,
                   "#define GRAFT_IMPLEMENTATION\n#include \"graft_policy.h\"\n#include <stdio.h>\n"
                   "int main(void) { const graft_recorded_plan *p = GRAFT_POLICY.plans;\n"
                   "  fputs(GRAFT_POLICY.metadata, stdout);\n"
                   "  return GRAFT_POLICY.plan_count == 1 && p->step_count == 2 &&\n"
                   "    p->graph_hash == UINT64_C(%llu) && p->steps[0].location == 3 ? 0 : 1; }\n",
                   (unsigned long long)plans[0].graph_hash));
    const char *output = NULL;
    assert_runs(&b, CC_QUICK "one.c -o one");
    assert_int_equal(run_command(&b, "./one", &output), 0);
    assert_string_equal(output, b.kit->policy.metadata);
}

/* The relu rules of a network's policy: bytes, flags, names and rows go with them, NO-OP's too. */
CHECK_CASE(test_some_operators)
{
    static const uint32_t kept[] = {KIT_DOUBLE_RELU, KIT_SINGLE_RELU, KIT_RULES};
    const graft_policy *all = &policy_kit_open(env, &policy_kit_plain)->policy;
    graft_policy some = *all;
    const char *const *names = policy_kit_names;
    const graft_operator_set relu = {{UINT64_C(1) << GRAFT_OP_relu}};
    graft_policy_keep_operators(env->life, &relu, &some, &names);
    assert_int_equal(some.rule_count, 2);
    for (uint32_t i = 0; i < 3; i++) {
        assert_memory_equal(some.rule_rows + i * some.width, all->rule_rows + kept[i] * some.width,
                            some.width);
    }
    for (uint32_t i = 0; i < 2; i++) {
        graft_rule rules[2];
        CHECK_OK(graft_policy_rule(&some, i, &rules[0]));
        CHECK_OK(graft_policy_rule(all, kept[i], &rules[1]));
        assert_memory_equal(&rules[0], &rules[1], sizeof rules[0]);
        assert_int_equal(some.rule_flags[i], all->rule_flags[kept[i]]);
        assert_string_equal(names[i], policy_kit_names[kept[i]]);
    }
}

CHECK_CASE(test_faults)
{
    bench b = open_bench(env);
    graft_header_options options = {"", "graft test", NULL, false, {{0}}, false};
    const char *path = check_path("graft_policy.h");
    char *long_text = GRAFT_NEW(env->life, char, 4100);
    check_failed(env, graft_header_write(env, &b.kit->policy, &options, path, NULL),
                 GRAFT_BAD_INPUT, "a name has 1 to 63 characters");
    options.name = "kit";
    memset(long_text, 'x', 4099);
    b.kit->policy.metadata = long_text;
    check_failed(env, graft_header_write(env, &b.kit->policy, &options, path, NULL),
                 GRAFT_BAD_INPUT, "metadata");
    b.kit->policy.metadata = "";
    assert_false(graft_file_exists(path));
    check_failed(env, graft_header_write(env, &b.kit->policy, &options, "/dev/null/x/y.h", NULL),
                 GRAFT_IO, "/dev/null");
}

/* -------------------------------------------------------- graphs as tables */

static graft_index add_const_opaque(graft_graph *graph)
{
    const graft_shape shape = {.rank = 1, .dims = {4}, .dtype = GRAFT_DTYPE_F32};
    graft_index weight = GRAFT_NONE;
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_weight(graph, &shape, 5, &weight));
    CHECK_OK(graft_graph_add_opaque(graph, 78, &weight, 1, &shape, 1, &node));
    graft_graph_set_repeatable(graph, node);
    assert_true(graph->nodes[node].is_const);
    return graft_node_output(graph, node, 0);
}

/* Also with opaque nodes, const ones too, omitted inputs and unknown shapes. */
CHECK_CASE(test_graph_table)
{
    bench b = open_bench(env);
    graft_graph *graph = b.kit->graph;
    const graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    const graft_index inputs[2] = {graph->outputs[0], GRAFT_NONE};
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 77, inputs, 2, &unknown, 1, &node));
    CHECK_OK(graft_graph_add_output(graph, graft_node_output(graph, node, 0)));
    const graft_index weight = add_const_opaque(graph);
    CHECK_OK(graft_graph_add_output(graph, weight));
    graft_order order = build_order(b.env->life, graph);
    uint64_t hash =
        graft_graph_hash(graph, &order, GRAFT_NEW(b.env->life, uint64_t, graph->limits.values));
    CHECK_OK(graft_graphtable_write(b.env, graph, "Kit", NULL, check_path("graph.h")));
    write_text(
        &b, "one.c",
        graft_arena_printf(
            b.env->life,
            "#define GRAFT_IMPLEMENTATION\n#include \"graft/graft.h\"\n#include \"graph.h\"\n"
            "static uint64_t memory[65536], order_memory[8192], scratch[1024];\n"
            "int main(void) {\n"
            "  const graft_limits limits = GRAFT_GRAPH_KIT_LIMITS;\n"
            "  graft_graph graph; graft_order order;\n"
            "  if (graft_graph_init(&graph, &limits, memory, sizeof memory) != GRAFT_OK) return "
            "1;\n"
            "  if (graft_graph_load(&graph, GRAFT_GRAPH, sizeof GRAFT_GRAPH / sizeof "
            "GRAFT_GRAPH[0])\n"
            "      != GRAFT_OK) return 2;\n"
            "  if (graft_order_build(&order, &graph, order_memory, sizeof order_memory) != "
            "GRAFT_OK)\n"
            "    return 3;\n"
            "  if (graft_graph_active_count(&graph) != %u) return 5;\n"
            "  return graft_graph_hash(&graph, &order, scratch) == UINT64_C(%llu) ? 0 : 4; }\n",
            graft_graph_active_count(graph), (unsigned long long)hash));
    assert_runs(&b, CC_QUICK "one.c -o one && ./one");
}
