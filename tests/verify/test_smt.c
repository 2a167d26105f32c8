/* Obligations as SMT-LIB: read back from their text, true claims are unsat and false ones are not.
 */
#include "verify/export/smt.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/domain.h"

#include <string.h>
#include <z3.h>

static const struct {
    const char *text;
    bool holds;
} cases[] = {
    {"relu(relu(a)) = relu(a)",                                                       true },
    {"mul(a, div(b, c)) = div(mul(a, b), c)",                                         true },
    {"sub(a, b) = sub(b, a)",                                                         false},
    {"relu(mul(a, fill#1(value=-0.75))) = mul(relu(a), fill#1(value=-0.75))",         false},
    {"mul(a, fill#1(value=-0.75)) = mul(fill#1(value=-0.75), a)",                     true },
    {"add(mul(a, fill#1(value=0.75)), mul(a, fill#2(value=0.25))) = a",               true },
    {"mul(div(a, b), b) = a",                                                         true },
    {"add(a, sub(b, b)) = add(a, sub(div(a, b), div(a, b)))",                         false}, /* Only undefined. */
    {"add(a, sub(b, b)) = mul(div(a, b), b)",                                         false}, /* Divides by 0. */
    {"relu(a) = div(mul(relu(a), sigmoid(a)), sigmoid(a))",                           true },
    {"add(tanh(a), tanh(sub(b, a))) = sub(tanh(a), tanh(sub(a, b)))",                 true },
    {"matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where same_shape(a, b)", true },
    {"matmul(a, b) = matmul(b, a)",                                                   false},
};

typedef struct {
    uint32_t unsat;
    uint32_t sat;
} tally;

/* Puts the text to Z3 as a stranger would: through its reader. */
static tally run_text(const char *text)
{
    tally found = {0, 0};
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    (void)Z3_eval_smtlib2_string(z3, "(set-option :rlimit 3000000)");
    const char *answers = Z3_eval_smtlib2_string(z3, text);
    for (const char *at = answers; *at != '\0'; at += strcspn(at, "\n") + 1) {
        found.unsat += strncmp(at, "unsat\n", 6) == 0 ? 1 : 0;
        found.sat += strncmp(at, "sat\n", 4) == 0 ? 1 : 0;
        if (strncmp(at, "(error", 6) == 0) {
            fail_msg("%.*s", (int)strcspn(at, "\n"), at);
        }
    }
    Z3_del_context(z3);
    return found;
}

static void read_rule(graft_env *env, const char *text, graft_rule *rule, graft_domain *domain)
{
    const graft_domain_options options = {.points = 8, .attempts = 20000, .seed = 6};
    CHECK_OK(graft_rule_parse(env, "rule", text, rule));
    *domain = graft_domain_find(env, env->unit, rule, &options);
    assert_true(domain->count > 0);
}

CHECK_CASE(test_answers)
{
    uint32_t failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        graft_domain domain;
        graft_buffer text = {.arena = env->unit};
        uint32_t checks = 0;
        read_rule(env, cases[i].text, &rule, &domain);
        const graft_smt_claim claim = {.title = cases[i].text,
                                       .solver = "nobody",
                                       .rule = &rule,
                                       .points = domain.points,
                                       .count = domain.count};
        CHECK_OK(graft_smt_print(env, &claim, &text, &checks));
        assert_int_equal(checks, domain.count);
        tally found = run_text(text.data);
        if (found.unsat + found.sat != checks || (found.sat == 0) != cases[i].holds) {
            print_message("# %s: %u unsat, %u sat\n", cases[i].text, found.unsat, found.sat);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

CHECK_CASE(test_refusals)
{
    graft_rule rule;
    graft_domain domain;
    graft_buffer text = {.arena = env->unit};
    uint32_t checks = 0;
    read_rule(env, "matmul(a, b) = matmul(a, identity(b))", &rule, &domain);
    graft_smt_claim claim = {
        .solver = "nobody", .rule = &rule, .points = domain.points, .count = 1, .unbounded = true};
    domain.points[0].vars[0].dims[domain.points[0].vars[0].rank - 1] = 77;
    check_failed(env, graft_smt_print(env, &claim, &text, &checks), GRAFT_BAD_INPUT,
                 "is no instance");
    assert_int_equal(text.size, 0);
}

/* `asks`: the proof needs the solver, not only the normal form. */
static const struct {
    const char *text;
    bool holds;
    bool asks;
} sized[] = {
    {"relu(relu(a)) = relu(a)",                                              true,  false},
    {"matmul(concat#1(a, b), concat#2(c, d)) = add(matmul(a, c), matmul(b, d)) "
     "where rank(a) = 2",                                               true,  true },
    {"[split#1(concat#1(a, b)).0, split#1(concat#1(a, b)).1] = [a, b]",      true,  true },
    {"slice#1(pad#2(a)) = slice#1(pad#1(a, before=#2.before, after=#1.start, "
     "value=#2.value))",                                                true,  true },
    {"conv#1(concat(a, b, axis=1), concat(c, d, axis=1), groups=1) = "
     "add(conv#1(a, c, groups=1), conv#1(b, d, groups=1))",             true,  true },
    {"relu(max_pool#1(a)) = max_pool#1(relu(a))",                            true,  true },
    {"div(exp(a), reduce_sum(exp(a), axes=2, keep=1)) = softmax(a, axis=1)", true,  true },
    {"clip#1(min(a, b)) = min(clip#1(a), clip#1(b))",                        true,  true },
    {"reshape#1(mul(a, b)) = mul(reshape#1(a), reshape#1(b)) "
     "where same_shape(a, b) and rank(a) = 2",                          true,  false},
    {"slice#1(concat#1(a, b), start=1) = a",                                 false, true },
    {"conv#1(add(a, b), c) = add(conv#1(a, c), conv#1(b, c))",               false, true },
};

/* What a proof for all sizes rests on holds when a stranger reads it. */
CHECK_CASE(test_sizes)
{
    for (size_t i = 0; i < sizeof sized / sizeof sized[0]; i++) {
        graft_rule rule;
        graft_buffer text = {.arena = env->unit};
        uint32_t checks = 0;
        rule = rows_parse(env, sized[i].text);
        const graft_smt_claim claim = {.solver = "nobody", .rule = &rule, .unbounded = true};
        graft_status status = graft_smt_print_sizes(env, &claim, &text, &checks);
        if (!sized[i].holds) {
            check_failed(env, status, GRAFT_UNDECIDED, "does not succeed again");
            assert_int_equal(text.size, 0);
            continue;
        }
        CHECK_OK(status);
        tally found = run_text(text.data);
        if (found.unsat != checks || found.sat > 0 || (checks > 0) != sized[i].asks) {
            fail_msg("%s: %u questions, %u unsat, %u sat", sized[i].text, checks, found.unsat,
                     found.sat);
        }
    }
}

/* A rule whose proof Z3 has given up at times. */
static const char borderline[] =
    "max_pool#1(max_pool(a, kernel_h=#1.kernel_h, kernel_w=#1.kernel_w, stride_h=1, stride_w=1, "
    "pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, dilation_w=1), pad_top=1, "
    "dilation_h=1, dilation_w=1) = max_pool(max_pool(a, kernel_h=#1.kernel_h, "
    "kernel_w=#1.kernel_w, stride_h=1, stride_w=1, pad_top=1, pad_left=#1.pad_left, "
    "pad_bottom=#1.pad_bottom, pad_right=#1.pad_right, dilation_h=1, dilation_w=1), "
    "kernel_h=#1.kernel_h, kernel_w=#1.kernel_w, stride_h=#1.stride_h, stride_w=#1.stride_w, "
    "pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, dilation_w=1)";

CHECK_CASE(test_borderline_sizes)
{
    graft_buffer text = {.arena = env->unit};
    uint32_t checks = 0;
    const graft_rule rule = rows_parse(env, borderline);
    const graft_smt_claim claim = {.solver = "nobody", .rule = &rule, .unbounded = true};
    CHECK_OK(graft_smt_print_sizes(env, &claim, &text, &checks));
    tally found = run_text(text.data);
    assert_int_equal(found.unsat, checks);
}

/* Only what is unsatisfiable is written: without the negated goal a question is not. */
CHECK_CASE(test_sizes_are_meant)
{
    graft_rule rule;
    graft_buffer text = {.arena = env->unit};
    uint32_t checks = 0;
    rule = rows_parse(env, sized[2].text);
    const graft_smt_claim claim = {.solver = "nobody", .rule = &rule, .unbounded = true};
    CHECK_OK(graft_smt_print_sizes(env, &claim, &text, &checks));
    char *at = strstr(text.data, "(or false");
    assert_non_null(at);
    for (const char *from = "(or true "; *from != '\0'; from++) {
        *at++ = *from;
    }
    tally found = run_text(text.data);
    assert_int_equal(found.sat, 1);
    assert_int_equal(found.unsat, checks - 1);
}
