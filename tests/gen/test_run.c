/* What every run of gen promises: the same bytes from any number of threads, rules that the engine
 * accepts, nothing false, nothing twice. */
#include "gen/check.h"
#include "tests/gen/texts.h"

#include <stdlib.h>
#include <string.h>

/* Whether all that a pattern node reads has a place. */
static bool is_ready(const graft_pattern_node *node, const uint8_t *places)
{
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        if (GRAFT_OPERAND_IS_NODE(node->inputs[i]) &&
            places[GRAFT_OPERAND_NODE_OF(node->inputs[i])] == GRAFT_RULE_MAX_NODES) {
            return false;
        }
    }
    return true;
}

static uint8_t place_operand(graft_operand operand, const uint8_t *places)
{
    return GRAFT_OPERAND_IS_NODE(operand) ? GRAFT_GEN_OUT(places[GRAFT_OPERAND_NODE_OF(operand)],
                                                          GRAFT_OPERAND_SLOT_OF(operand))
                                          : GRAFT_GEN_VAR(operand);
}

/* A pattern as a side of a law, producers first, each operator a configuration of its own. */
static void side_of_pattern(const graft_pattern *pattern, uint32_t output_count,
                            graft_gen_config *configs, uint32_t first_config, graft_gen_side *side)
{
    uint8_t places[GRAFT_RULE_MAX_NODES];
    memset(places, GRAFT_RULE_MAX_NODES, sizeof places);
    while (side->count < pattern->node_count) {
        for (uint32_t n = 0; n < pattern->node_count; n++) {
            const graft_pattern_node *node = &pattern->nodes[n];
            if (places[n] != GRAFT_RULE_MAX_NODES || !is_ready(node, places)) {
                continue;
            }
            graft_gen_config *config = &configs[first_config + side->count];
            graft_gen_config_of_op(node->op, config);
            for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
                config->steps[0].attrs[i] = node->attrs[i].value;
            }
            side->nodes[side->count].config = (uint16_t)(first_config + side->count);
            for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
                side->nodes[side->count].args[i] = place_operand(node->inputs[i], places);
            }
            places[n] = (uint8_t)side->count++;
        }
    }
    for (uint32_t o = 0; o < output_count; o++) {
        side->outputs[o] = place_operand(pattern->outputs[o], places);
    }
}

/* Whether both sides agree on random samples of `seed`, at the shapes drawn. Samples on which a
 * side is undefined say nothing; false when too many are. */
static bool holds(graft_arena *scratch, const graft_candidate *candidate, uint64_t seed,
                  uint32_t sample_count)
{
    GRAFT_SCOPED(scratch);
    const graft_rule *rule = &candidate->rule;
    graft_gen_config *configs =
        GRAFT_NEW(scratch, graft_gen_config, (size_t)2 * GRAFT_RULE_MAX_NODES);
    graft_gen_set set = {.configs = configs, .config_count = 2 * GRAFT_RULE_MAX_NODES};
    graft_gen_law law = {
        .set = &set, .var_count = rule->var_count, .output_count = rule->output_count};
    memcpy(law.var_shapes, candidate->shapes, sizeof candidate->shapes);
    memcpy(law.var_is_weight, candidate->is_weight, sizeof candidate->is_weight);
    for (uint32_t v = 0; v < law.var_count; v++) {
        law.var_streams[v] = (uint8_t)v;
    }
    side_of_pattern(&rule->source, rule->output_count, configs, 0, &law.sides[0]);
    side_of_pattern(&rule->target, rule->output_count, configs, GRAFT_RULE_MAX_NODES,
                    &law.sides[1]);
    graft_gen_checker checker = {.scratch = scratch};
    const graft_gen_fresh fresh = {seed, 0, sample_count};
    bool agree = graft_gen_law_holds(&checker, &law, &fresh, NULL);
    return agree;
}

static graft_candidates run_families(graft_env *env, const char *only, uint64_t seed)
{
    const graft_gen_family *families = NULL;
    uint32_t count = 0;
    graft_candidates candidates;
    const graft_gen_options options = {.seed = seed};
    CHECK_OK(graft_gen_families_read(env, env->life, "rules/families", &families, &count));
    for (uint32_t i = 0; only != NULL && i < count; i++) {
        if (strcmp(families[i].name, only) == 0) {
            families = &families[i];
            count = 1;
        }
    }
    CHECK_OK(graft_gen_run(env, env->life, families, count, &options, &candidates));
    return candidates;
}

static bool same_rule(const graft_candidate *a, const graft_candidate *b)
{
    uint8_t x[512];
    uint8_t y[512];
    size_t size = graft_rule_pack(&a->rule, x, sizeof x);
    assert_true(size > 0);
    return graft_rule_pack(&b->rule, y, sizeof y) == size && memcmp(x, y, size) == 0;
}

static bool same_candidate(const graft_candidate *a, const graft_candidate *b)
{
    for (uint32_t v = 0; v < a->rule.var_count; v++) {
        if (!graft_shape_equal(&a->shapes[v], &b->shapes[v]) ||
            a->is_weight[v] != b->is_weight[v]) {
            return false;
        }
    }
    return same_rule(a, b) && a->pair == b->pair && a->skeleton == b->skeleton &&
           a->is_reversed == b->is_reversed && a->is_macro == b->is_macro &&
           strcmp(a->family, b->family) == 0 && strcmp(a->set, b->set) == 0;
}

CHECK_CASE(test_threads_change_nothing)
{
    graft_candidates runs[3];
    for (uint32_t i = 0; i < 3; i++) {
        env->thread_count = i + 1;
        runs[i] = run_families(env, "dense", 1);
        assert_int_equal(runs[i].count, runs[0].count);
        for (uint32_t c = 0; c < runs[0].count; c++) {
            assert_true(same_candidate(&runs[0].items[c], &runs[i].items[c]));
        }
        for (uint32_t r = 0; r < runs[0].report_count; r++) {
            graft_gen_counts a = runs[0].reports[r].counts;
            graft_gen_counts b = runs[i].reports[r].counts;
            a.time_ns = b.time_ns = 0;
            assert_memory_equal(&a, &b, sizeof a);
        }
    }
}

/* All families: every check that needs a whole run. */
CHECK_CASE(test_candidates_are_sound)
{
    env->thread_count = 2;
    graft_candidates run = run_families(env, NULL, 1);
    uint32_t wrong = 0;
    assert_in_range(run.count, 500, 5000);
    for (uint32_t i = 0; i < run.count; i++) {
        const graft_candidate *candidate = &run.items[i];
        const char *text = graft_rule_print_line(env->life, &candidate->rule);
        const char *reason = graft_rule_check(&candidate->rule);
        if (reason != NULL) {
            fail_msg("%s: %s", reason, text);
        }
        assert_int_equal(candidate->rule.slot_count, 0);
        assert_true(candidate->skeleton < run.skeleton_count);
        if (!holds(env->scratch, candidate, 77777, 64)) {
            print_message("# false: %s\n", text);
            wrong++;
        }
    }
    print_message("# %u of %u candidates are false on fresh samples\n", wrong, run.count);
    assert_true(wrong * 2000 <= run.count); /* At most 0.05 %: verify/ pays for each. */
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The candidates of a run as sorted texts, with the ranks of the variables. */
static const char **sort_texts(graft_env *env, const graft_candidates *run)
{
    const char **texts = GRAFT_NEW(env->life, const char *, run->count);
    for (uint32_t i = 0; i < run->count; i++) {
        graft_buffer text = {.arena = env->life};
        graft_buffer_printf(&text, "%s /", graft_rule_print_line(env->life, &run->items[i].rule));
        for (uint32_t v = 0; v < run->items[i].rule.var_count; v++) {
            graft_buffer_printf(&text, " %u", run->items[i].shapes[v].rank);
        }
        texts[i] = text.data;
    }
    qsort(texts, run->count, sizeof *texts, compare_texts);
    return texts;
}

/* Nothing is found twice; and samples decide what is a candidate, but which samples hardly does. */
CHECK_CASE(test_seed_hardly_matters)
{
    graft_candidates a = run_families(env, NULL, 1);
    graft_candidates b = run_families(env, NULL, 2);
    const char **x = sort_texts(env, &a);
    const char **y = sort_texts(env, &b);
    uint32_t shared = 0;
    for (uint32_t i = 1; i < a.count; i++) {
        assert_string_not_equal(x[i - 1], x[i]);
    }
    for (uint32_t i = 0, j = 0; i < a.count && j < b.count;) {
        int order = strcmp(x[i], y[j]);
        shared += order == 0 ? 1 : 0;
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    print_message("# %u and %u candidates, %u shared\n", a.count, b.count, shared);
    assert_true(shared * 100 >= a.count * 97);
}

/* max(x,0) + x max(x,0) = x max(x + 1, 0) holds for every integer and fails between -1 and 0. */
CHECK_CASE(test_integers_are_not_enough)
{
    graft_candidates run = run_text(env, "family: f\norder: 1\nsets:\n"
                                         "  - set: s\n    depth: 4\n"
                                         "    inputs:\n      x: [3]\n"
                                         "    operators:\n"
                                         "      - {op: fill, value: 1}\n"
                                         "      - {op: relu}\n      - {op: add}\n"
                                         "      - {op: mul}\n");
    assert_null(find_text(env, &run,
                          "add(relu(a), mul(a, relu(a))) => "
                          "mul(a, relu(add(a, fill(value=1, dim=[]))))"));
    assert_null(find_text(env, &run,
                          "mul(a, relu(add(a, fill(value=1, dim=[])))) => "
                          "add(relu(a), mul(a, relu(a)))"));
    assert_non_null(find_text(env, &run, "mul(a, relu(a)) => mul(relu(a), relu(a))"));
    for (uint32_t i = 0; i < run.count; i++) {
        assert_true(holds(env->scratch, &run.items[i], 99, 256));
    }
}

/* A graph that is its own renaming: associativity comes out of a single orbit. */
CHECK_CASE(test_own_renaming)
{
    graft_candidates run = run_text(env, "family: f\norder: 1\nsets:\n"
                                         "  - set: s\n    depth: 2\n"
                                         "    inputs:\n      x: [3]\n      y: [3]\n      z: [3]\n"
                                         "    operators:\n      - {op: add, distinct: true}\n");
    assert_int_equal(run.reports[0].counts.laws, 1);
    assert_int_equal(run.count, 1);
    assert_int_equal(run.items[0].rule.var_count, 3);
}

/* A law is about the tensor that both sides share, whatever computes it. */
CHECK_CASE(test_common_parts_are_cut)
{
    graft_candidates run =
        run_text(env, "family: f\norder: 1\nsets:\n"
                      "  - set: s\n    depth: 3\n"
                      "    inputs:\n      x: [6]\n"
                      "    operators:\n      - {op: reshape, rank: 1, dim: [[2, 3]]}\n"
                      "      - {op: transpose, rank: 2, axis: [[1, 0]]}\n");
    assert_int_equal(run.count, 1);
    assert_string_equal(graft_rule_print_line(env->life, &run.items[0].rule),
                        "transpose(transpose(a, axis=[1, 0]), axis=[1, 0]) = a");
}
