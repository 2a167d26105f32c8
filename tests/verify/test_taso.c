/* TASO's files: their bytes, and what their operators mean. */
#include "verify/command/taso.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "tests/support/taso_write.h"
#include "verify/sweep/domain.h"
#include "verify/trial.h"

#include <string.h>

#define IN(n)                                                                                      \
    {                                                                                              \
        -(n), 0                                                                                    \
    }
#define OUT(n)                                                                                     \
    {                                                                                              \
        (n), 0                                                                                     \
    }
#define MATMUL(a, b)                                                                               \
    {                                                                                              \
        GRAFT_TASO_MATMUL, 2, 1, {a, b}, {GRAFT_TASO_ACTI}, { 0 }                                  \
    }
#define UNARY(type, a)                                                                             \
    {                                                                                              \
        (type), 1, 0, {a}, {0}, { 0 }                                                              \
    }
#define BINARY(type, a, b)                                                                         \
    {                                                                                              \
        (type), 2, 0, {a, b}, {0}, { 0 }                                                           \
    }
#define CONV(a, b, kernel, pad, act)                                                               \
    {                                                                                              \
        GRAFT_TASO_CONV2D, 2, 6, {a, b},                                                           \
            {GRAFT_TASO_KERNEL_H, GRAFT_TASO_KERNEL_W, GRAFT_TASO_STRIDE_H,                        \
             GRAFT_TASO_STRIDE_W, GRAFT_TASO_PAD,      GRAFT_TASO_ACTI},                           \
        {                                                                                          \
            kernel, kernel, 1, 1, pad, act                                                         \
        }                                                                                          \
    }
#define CONCAT(a, b, axis, rank)                                                                   \
    {                                                                                              \
        GRAFT_TASO_CONCAT, 2, 3, {a, b},                                                           \
            {GRAFT_TASO_NUM_INPUTS, GRAFT_TASO_AXIS, GRAFT_TASO_NUMDIM},                           \
        {                                                                                          \
            2, axis, rank                                                                          \
        }                                                                                          \
    }
#define SPLIT(a, axis)                                                                             \
    {                                                                                              \
        GRAFT_TASO_SPLIT, 1, 2, {a}, {GRAFT_TASO_NUM_OUTPUTS, GRAFT_TASO_AXIS}, { 2, axis }        \
    }
#define TRANSPOSE(a)                                                                               \
    {                                                                                              \
        GRAFT_TASO_TRANSPOSE, 1, 3, {a},                                                           \
            {GRAFT_TASO_NUMDIM, GRAFT_TASO_PERM, GRAFT_TASO_OUTSHUFFLE},                           \
        {                                                                                          \
            2, 2, 1                                                                                \
        }                                                                                          \
    }
#define ENLARGE(a, kernel)                                                                         \
    {                                                                                              \
        GRAFT_TASO_ENLARGE, 1, 2, {a}, {GRAFT_TASO_KERNEL_H, GRAFT_TASO_KERNEL_W},                 \
        {                                                                                          \
            kernel, kernel                                                                         \
        }                                                                                          \
    }
#define MAPS(s, d)                                                                                 \
    {                                                                                              \
        {                                                                                          \
            s, d                                                                                   \
        }                                                                                          \
    }

/* What a rule is read as, and what becomes of it. */
static const struct {
    graft_taso_rule rule;
    const char *text; /* The rule; or why it is none. */
    uint8_t verdict;  /* graft_verdict; UINT8_MAX: not expressible. */
} rows[] = {
    {{.source = {MATMUL(IN(1), IN(2)), MATMUL(OUT(0), IN(3))},
      .source_count = 2,
      .target = {MATMUL(IN(2), IN(3)), MATMUL(IN(1), OUT(0))},
      .target_count = 2,
      .outputs = MAPS(OUT(1), OUT(1)),
      .output_count = 1},
     "matmul(matmul(a, b), c) = matmul(a, matmul(b, c)) "
     "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2",                                       GRAFT_VERDICT_PROVED },
    {{.source = {MATMUL(IN(1), IN(2)), MATMUL(IN(1), IN(3))},
      .source_count = 2,
      .target = {CONCAT(IN(2), IN(3), 1, 2), MATMUL(IN(1), OUT(0)), SPLIT(OUT(1), 1)},
      .target_count = 3,
      .outputs = {{OUT(0), {2, 0}}, {OUT(1), {2, 1}}},
      .output_count = 2},
     "[matmul(a, b), matmul(a, c)] = [split(matmul(a, concat(b, c, axis=1)), axis=1, "
     "at=dim(b,1)).0, split(matmul(a, concat(b, c, axis=1)), axis=1, at=dim(b,1)).1] "
     "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2",                                       GRAFT_VERDICT_PROVED },
    {{.source = {CONCAT(IN(1), IN(2), 1, 2),
                 SPLIT(OUT(0), 1),
                 UNARY(GRAFT_TASO_RELU, OUT(1)),
                 {GRAFT_TASO_RELU, 1, 0, {{1, 1}}, {0}, {0}}},
      .source_count = 4,
      .target = {UNARY(GRAFT_TASO_RELU, IN(1)), UNARY(GRAFT_TASO_RELU, IN(2))},
      .target_count = 2,
      .outputs = {{OUT(2), OUT(0)}, {OUT(3), OUT(1)}},
      .output_count = 2},
     "[relu(split#1(concat(a, b, axis=1), axis=1).0), relu(split#1(concat(a, b, axis=1), "
     "axis=1).1)] = [relu(a), relu(b)] where rank(a) = 2 and rank(b) = 2 and #1.at = dim(a,1)", GRAFT_VERDICT_PROVED },
    {{.source = {CONV(IN(1), IN(2), 3, 0, 2)},
      .source_count = 1,
      .target = {CONV(IN(1), IN(2), 3, 0, 0), UNARY(GRAFT_TASO_RELU, OUT(0))},
      .target_count = 2,
      .outputs = MAPS(OUT(0), OUT(1)),
      .output_count = 1},
     "relu(conv#1(a, b, stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, "
     "dilation_h=1, dilation_w=1)) = relu(conv(a, b, stride_h=1, stride_w=1, pad_top=1, "
     "pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1, groups=dim(a,1) / "
     "dim(b,1))) where rank(a) = 4 and rank(b) = 4 and dim(b,2) = 3 and dim(b,3) = 3",          GRAFT_VERDICT_PROVED },
 /* Groups are not looked at: as TASO matches it, this is wrong for two groups. */
    {{.source = {CONV(IN(1), IN(2), 1, 1, 0), CONV(IN(1), IN(3), 1, 1, 0)},
      .source_count = 2,
      .target = {CONCAT(IN(2), IN(3), 0, 4), CONV(IN(1), OUT(0), 1, 1, 0), SPLIT(OUT(1), 1)},
      .target_count = 3,
      .outputs = {{OUT(0), {2, 0}}, {OUT(1), {2, 1}}},
      .output_count = 2},
     NULL,                                                                                      GRAFT_VERDICT_REFUTED},
    {{.source = {CONV(IN(1), IN(2), 1, 0, 0)},
      .source_count = 1,
      .target = {ENLARGE(IN(2), 3), CONV(IN(1), OUT(0), 3, 0, 0)},
      .target_count = 2,
      .outputs = MAPS(OUT(0), OUT(1)),
      .output_count = 1},
     NULL,                                                                                      GRAFT_VERDICT_PROVED },
    {{.source = {TRANSPOSE(IN(1)), TRANSPOSE(IN(2)), MATMUL(OUT(0), OUT(1))},
      .source_count = 3,
      .target = {MATMUL(IN(2), IN(1)), TRANSPOSE(OUT(0))},
      .target_count = 2,
      .outputs = MAPS(OUT(2), OUT(1)),
      .output_count = 1},
     "matmul(transpose(a, axis=[1, 0]), transpose(b, axis=[1, 0])) = transpose(matmul(b, a), "
     "axis=[1, 0]) where rank(a) = 2 and rank(b) = 2",                                          GRAFT_VERDICT_PROVED },
    {{.source = {BINARY(GRAFT_TASO_EW_ADD, IN(1), IN(2))},
      .source_count = 1,
      .target = {BINARY(GRAFT_TASO_EW_MUL, IN(1), IN(2))},
      .target_count = 1,
      .outputs = MAPS(OUT(0), OUT(0)),
      .output_count = 1},
     "add(a, b) = mul(a, b) where same_shape(a, b)",                                            GRAFT_VERDICT_REFUTED},
    {{.source = {BINARY(GRAFT_TASO_MUL, IN(1), IN(2)), BINARY(GRAFT_TASO_MUL, OUT(0), IN(3))},
      .source_count = 2,
      .target = {BINARY(GRAFT_TASO_MUL, IN(1), IN(3)), BINARY(GRAFT_TASO_MUL, OUT(0), IN(2))},
      .target_count = 2,
      .outputs = MAPS(OUT(1), OUT(1)),
      .output_count = 1},
     "mul(mul(a, b), c) = mul(mul(a, c), b) where rank(b) = 0 and rank(c) = 0",                 GRAFT_VERDICT_PROVED },
    {{.source = {UNARY(GRAFT_TASO_RELU, IN(1)), SPLIT(OUT(0), 1)},
      .source_count = 2,
      .target = {UNARY(GRAFT_TASO_RELU, IN(1)), SPLIT(OUT(0), 1)},
      .target_count = 2,
      .outputs = MAPS(OUT(1), OUT(1)),
      .output_count = 1},
     "a split where nothing was joined",                                                        UINT8_MAX            },
    {{.source = {UNARY(GRAFT_TASO_RELU, IN(1))},
      .source_count = 1,
      .target = {{GRAFT_TASO_CONSTANT_IMM, 0, 0, {{0, 0}}, {0}, {0}}},
      .target_count = 1,
      .outputs = MAPS(OUT(0), OUT(0)),
      .output_count = 1},
     "there is no operator like TASO's constant_imm",                                           UINT8_MAX            },
    {{.source = {UNARY(GRAFT_TASO_RELU, IN(1))},
      .source_count = 1,
      .target = {UNARY(GRAFT_TASO_RELU, IN(2))},
      .target_count = 1,
      .outputs = MAPS(OUT(0), OUT(0)),
      .output_count = 1},
     "the target reads an input that the source does not read",                                 UINT8_MAX            },
    {{.source = {UNARY(GRAFT_TASO_RELU, IN(1)), UNARY(GRAFT_TASO_TANH, IN(1))},
      .source_count = 2,
      .target = {UNARY(GRAFT_TASO_RELU, IN(1))},
      .target_count = 1,
      .outputs = MAPS(OUT(0), OUT(0)),
      .output_count = 1},
     "the source has an operator that no output needs",                                         UINT8_MAX            },
};

enum { ROWS = sizeof rows / sizeof rows[0] };

CHECK_CASE(test_meanings)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        graft_rule rule;
        const char *why = graft_taso_import(env, env->unit, &rows[i].rule, &rule);
        if (rows[i].verdict == UINT8_MAX) {
            assert_non_null(why);
            assert_non_null(strstr(why, rows[i].text));
            continue;
        }
        if (why != NULL) {
            fail_msg("row %u: %s", i, why);
        }
        if (rows[i].text != NULL) {
            assert_string_equal(graft_rule_print_line(env->unit, &rule), rows[i].text);
        }
    }
}

CHECK_CASE(test_verdicts)
{
    graft_rule rules[ROWS];
    uint8_t wanted[ROWS];
    uint32_t count = 0;
    graft_trial *trials = GRAFT_NEW(env->life, graft_trial, ROWS);
    graft_trial_options options = graft_trial_defaults();
    for (uint32_t i = 0; i < ROWS; i++) {
        if (graft_taso_import(env, env->unit, &rows[i].rule, &rules[count]) == NULL) {
            wanted[count++] = rows[i].verdict;
        }
    }
    options.suggest = false;
    env->thread_count = 2;
    CHECK_OK(graft_trial_run(env, rules, count, &options, trials));
    for (uint32_t i = 0; i < count; i++) {
        if (trials[i].verdict != wanted[i]) {
            fail_msg("%s: %s", graft_rule_print_line(env->unit, &rules[i]), trials[i].reason);
        }
    }
}

/* ------------------------------------------------------------------- bytes */

/* relu(x) is relu(x): a file written by hand from the format's description, not by our encoder. */
static const uint8_t by_hand[] = {
    0x0a, 0x3c,                                                             /* rule, 60 bytes */
    0x0a, 0x11, 0x08, 0x08,                                                 /* srcOp, type 8 */
    0x12, 0x0d, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* opId -1 */
    0x01, 0x10, 0x00,                                                       /* tsId 0 */
    0x12, 0x1d, 0x08, 0x12,                                                 /* dstOp, type 18 */
    0x12, 0x0d, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x01, 0x10, 0x00, 0x1a, 0x04, 0x08, 0x09, 0x10, 0x02,       /* para, key 9, value 2 */
    0x1a, 0x04, 0x08, 0x0c, 0x10, 0x07,                         /* para, key 12, value 7 */
    0x1a, 0x08, 0x08, 0x00, 0x10, 0x00, 0x18, 0x00, 0x20, 0x00, /* mappedOutput */
};

CHECK_CASE(test_bytes_by_hand)
{
    graft_taso_rule *rules = NULL;
    uint32_t count = 0;
    int32_t value = 0;
    const graft_bytes bytes = {"hand.pb", by_hand, sizeof by_hand};
    CHECK_OK(graft_taso_parse(env, env->unit, bytes, &rules, &count));
    assert_int_equal(count, 1);
    assert_int_equal(rules[0].source_count, 1);
    assert_int_equal(rules[0].source[0].type, GRAFT_TASO_RELU);
    assert_int_equal(rules[0].source[0].inputs[0].op, -1);
    assert_int_equal(rules[0].target[0].type, GRAFT_TASO_MATMUL);
    assert_true(graft_taso_value(&rules[0].target[0], GRAFT_TASO_ACTI, &value) && value == 2);
    assert_true(graft_taso_value(&rules[0].target[0], GRAFT_TASO_PERM, &value) && value == 7);
    assert_int_equal(rules[0].output_count, 1);
    uint8_t *data = NULL;
    size_t size = 0;
    taso_write(env->unit, rules, count, &data, &size);
    assert_int_equal(size, sizeof by_hand);
    assert_memory_equal(data, by_hand, size);
}

/* Every rule survives; every cut and many damages are refused or harmless. */
CHECK_CASE(test_bytes_both_ways)
{
    graft_taso_rule written[ROWS];
    graft_taso_rule *read = NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        written[i] = rows[i].rule;
    }
    taso_write(env->life, written, ROWS, &data, &size);
    const graft_bytes bytes = {"x", data, size};
    CHECK_OK(graft_taso_parse(env, env->life, bytes, &read, &count));
    assert_int_equal(count, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        graft_rule a;
        graft_rule b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        const char *why = graft_taso_import(env, env->unit, &written[i], &a);
        const char *again = graft_taso_import(env, env->unit, &read[i], &b);
        assert_int_equal(why == NULL, again == NULL);
        assert_memory_equal(&a, &b, sizeof a);
    }
    for (size_t cut = 1; cut < size; cut += 7) {
        graft_status status =
            graft_taso_parse(env, env->unit, (graft_bytes){"x", data, cut}, &read, &count);
        assert_true(status == GRAFT_BAD_INPUT || (status == GRAFT_OK && count < ROWS));
        graft_env_clear(env);
    }
}

CHECK_CASE(test_faults)
{
    graft_taso_rule rule = rows[0].rule;
    graft_taso_rule *rules = NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    uint32_t count = 0;
    rule.source[0].inputs[1].op = 0;
    taso_write(env->unit, &rule, 1, &data, &size);
    check_failed(
        env, graft_taso_parse(env, env->unit, (graft_bytes){"f", data, size}, &rules, &count),
        GRAFT_BAD_INPUT, "f: rule 0: srcOp 0 reads output 0 of operator 0, which does not");
    rule = rows[0].rule;
    rule.outputs[0][1].op = 5;
    taso_write(env->unit, &rule, 1, &data, &size);
    check_failed(env,
                 graft_taso_parse(env, env->unit, (graft_bytes){"f", data, size}, &rules, &count),
                 GRAFT_BAD_INPUT, "f: rule 0: mappedOutput 0 names output 0 of operator 5");
    check_failed(env,
                 graft_taso_parse(env, env->unit, (graft_bytes){"f", by_hand, sizeof by_hand - 1},
                                  &rules, &count),
                 GRAFT_BAD_INPUT, "f: byte ");
    check_failed(env, graft_taso_read(env, env->unit, "no/such.pb", &rules, &count), GRAFT_IO,
                 "no/such.pb");
}

/* ------------------------------------------------------- implication, export */

static graft_ruleset set_of(graft_env *env, const char *text)
{
    graft_rule_entry *entry = GRAFT_NEW(env->life, graft_rule_entry, 1);
    *entry = (graft_rule_entry){.name = "ours", .rule = rows_parse(env, text)};
    return (graft_ruleset){"z3", 1, entry};
}

CHECK_CASE(test_implied)
{
    graft_rule rule;
    assert_null(graft_taso_import(env, env->unit, &rows[0].rule, &rule));
    graft_ruleset set = set_of(env, "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))");
    bool as_equations = true;
    assert_string_equal(graft_taso_implied(env, env->unit, &set, &rule, &as_equations), "ours");
    assert_false(as_equations);
    set = set_of(env, "matmul(a, matmul(b, c)) = matmul(matmul(a, b), c)");
    assert_string_equal(graft_taso_implied(env, env->unit, &set, &rule, &as_equations),
                        "as equations: from the left by nothing, from the right by ours");
    assert_true(as_equations);
    set = set_of(env, "add(a, add(b, c)) = add(add(a, b), c)");
    assert_null(graft_taso_implied(env, env->unit, &set, &rule, &as_equations));
    assert_false(as_equations);
}
