/* Rules that are false only past what is listed and swept (tests/verify/corpus/outside.yaml) are
 * refuted, with counterexamples that a person can look at and that the float executor gives again;
 * true ones that name the same numbers are not. And the parts: which numbers a rule names, which
 * instances are made of them, and what Z3 finds. */
#include "graph/base/bits.h"
#include "verify/command/userrules.h"
#include "verify/sizes/symmodel.h"
#include "verify/sweep/boundary.h"
#include "verify/sweep/named.h"
#include "verify/trial.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"

#include <string.h>

enum { EFFORT = 600000, ELEMENTS_MOST = 4000, UNDECIDED_SHARE = 20, MODELS = 48 };

static const uint64_t resources = 500000;

/* ------------------------------------------------------------------- corpus */

typedef struct {
    graft_user_rule *named;
    graft_rule *rules;
    graft_trial *trials;
    uint32_t count;
} docket;

static docket try_file(graft_env *env, const char *path)
{
    docket d = {0};
    graft_trial_options options = graft_trial_defaults();
    options.suggest = false;
    CHECK_OK(graft_user_rules_read(env, env->life, path, &d.named, &d.count));
    d.rules = GRAFT_NEW(env->life, graft_rule, d.count);
    d.trials = GRAFT_NEW(env->life, graft_trial, d.count);
    for (uint32_t i = 0; i < d.count; i++) {
        d.rules[i] = d.named[i].rule;
    }
    CHECK_OK(graft_trial_run(env, d.rules, d.count, &options, d.trials));
    return d;
}

/* Whether there are inputs of few elements on which binary32 shows a difference, and does so again.
 */
static bool is_shown(graft_env *env, const graft_rule *rule, const graft_trial *trial)
{
    uint64_t elements = 0;
    graft_refutation again = trial->refutation;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        elements += graft_shape_elements(&trial->refutation.point.vars[v]);
    }
    return trial->has_refutation && trial->refutation.replayed && elements <= ELEMENTS_MOST &&
           graft_refutation_replay(env, rule, &again);
}

CHECK_CASE(test_false_rules)
{
    docket d = try_file(env, "tests/verify/corpus/outside.yaml");
    uint32_t undecided = 0;
    for (uint32_t i = 0; i < d.count; i++) {
        const graft_trial *t = &d.trials[i];
        if (t->verdict == GRAFT_VERDICT_PROVED && t->check.proof == GRAFT_PROOF_UNBOUNDED) {
            fail_msg("%s is proved for all sizes", d.named[i].name);
        }
        if (t->verdict == GRAFT_VERDICT_REFUTED && !is_shown(env, &d.rules[i], t)) {
            fail_msg("%s is refuted without a counterexample to look at", d.named[i].name);
        }
        if (t->verdict != GRAFT_VERDICT_REFUTED) {
            print_message("# undecided %s: %s\n", d.named[i].name, t->reason);
            undecided++;
        }
    }
    assert_true(d.count >= 100);
    assert_true(undecided * UNDECIDED_SHARE <= d.count);
}

static const graft_trial *try_text(graft_env *env, const char *text)
{
    const graft_rule rule = rows_parse(env, text);
    graft_trial *trial = GRAFT_NEW(env->life, graft_trial, 1);
    const graft_trial_options options = graft_trial_defaults();
    CHECK_OK(graft_trial_run(env, &rule, 1, &options, trial));
    return trial;
}

/* The smallest numbers of binary32, whose bits are those of small whole numbers. */
CHECK_CASE(test_smallest)
{
    static const char *const texts[] = {
        "leaky_relu#1(a) = relu(a) where fle(#1.slope, 1e-45)",
        "elu#1(a) = relu(a) where fle(#1.alpha, 1e-45)",
        "clip#1(a) = clip#1(relu(a)) where fle(-1e-45, #1.low)",
        "pad#1(a) = pad(a, axis=#1.axis, before=#1.before, after=#1.after, value=0.0) where "
        "fle(0.0, #1.value) and fle(#1.value, 1e-45)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (try_text(env, texts[i])->verdict != GRAFT_VERDICT_REFUTED) {
            fail_msg("%s is not refuted", texts[i]);
        }
    }
}

/* Nothing is known where a rule names a number that nothing is tried at. */
CHECK_CASE(test_past)
{
    const graft_trial *trial =
        try_text(env, "slice#1(a, axis=0) = slice(a, axis=0, start=min(#1.start, 3000), "
                      "end=min(#1.start, 3000) + #1.end - #1.start)");
    assert_int_equal(trial->verdict, GRAFT_VERDICT_UNKNOWN);
    assert_non_null(strstr(trial->reason, "a number beyond what is tried (2048)"));
}

CHECK_CASE(test_true_rules)
{
    docket d = try_file(env, "tests/verify/corpus/true-outside.yaml");
    uint32_t proved = 0;
    for (uint32_t i = 0; i < d.count; i++) {
        if (d.trials[i].verdict == GRAFT_VERDICT_REFUTED) {
            fail_msg("%s is refuted: %s", d.named[i].name,
                     graft_point_print(env->unit, &d.rules[i], &d.trials[i].refutation.point));
        }
        proved += d.trials[i].verdict == GRAFT_VERDICT_PROVED &&
                          d.trials[i].check.proof == GRAFT_PROOF_UNBOUNDED
                      ? 1
                      : 0;
    }
    assert_true(2 * proved > d.count);
}

/* --------------------------------------------------------------------- parts */

static bool names(const graft_named *named, int32_t number)
{
    bool found = false;
    for (uint32_t i = 0; i < named->whole_count; i++) {
        found = found || named->whole[i] == number;
    }
    return found;
}

static bool names_real(const graft_named *named, float number)
{
    bool found = false;
    for (uint32_t i = 0; i < named->real_count; i++) {
        found = found || graft_float_of_bits(named->reals[i]) == number;
    }
    return found;
}

CHECK_CASE(test_named)
{
    static const int32_t expected[] = {
        17, 16, 18,          /* As it is written, */
        35, 34, 36,  7,   5, /* twice, and a divisor, */
        52, 53, 595, 594, 2, /* two of them added, multiplied, divided, */
        5,  6                /* and a root. */
    };
    graft_named named;
    graft_rule rule = rows_parse(env, "clip#1(pad(a, axis=0, before=17, after=35, value=0.25)) = "
                                      "clip(pad(a, axis=0, before=17, after=35, value=0.25), "
                                      "low=fmin(#1.low, 40.0), high=#1.high)");
    graft_named_read(&rule, &named);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (!names(&named, expected[i])) {
            fail_msg("%d is not named", expected[i]);
        }
    }
    assert_true(names_real(&named, 0.25F));
    assert_true(names_real(&named, 40.0F));
    assert_true(names_real(&named, 41.0F));
    assert_true(names_real(&named, 0.5F * (0.25F + 40.0F)));
}

/* Whether a number is a whole one is told by what reads it. */
CHECK_CASE(test_named_past)
{
    static const struct {
        const char *text;
        bool is_past;
    } rows[] = {
        {"slice#1(a, axis=0) = slice(a, axis=0, start=min(#1.start, 2048), end=#1.end)",      false},
        {"slice#1(a, axis=0) = slice(a, axis=0, start=min(#1.start, 2049), end=#1.end)",      true },
        {"slice#1(a, axis=0) = slice(a, axis=0, start=min(#1.start, 2000 + 49), end=#1.end)", true },
        {"slice#1(a, end=2049) = slice#1(relu(a), end=2049)",                                 true },
        {"clip#1(a) = clip(a, low=fmin(#1.low, 40000.0), high=50000.0)",                      false},
        {"fill#1(dim=[1]) = fill#1(dim=[1]) where #1.value = 1065353216",                     false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_named named;
        const graft_rule rule = rows_parse(env, rows[i].text);
        graft_named_read(&rule, &named);
        if (named.is_past != rows[i].is_past) {
            fail_msg("%s", rows[i].text);
        }
    }
    const graft_rule least = rows_parse(env, "leaky_relu#1(a) = relu(a) where fle(#1.slope,1e-45)");
    graft_named named;
    graft_named_read(&least, &named);
    assert_true(names_real(&named, 1e-45F));
}

/* Points are instances, small, and the same every time; some lie where the guard turns. */
CHECK_CASE(test_boundary)
{
    graft_rule rule = rows_parse(
        env, "softmax(a, axis=0) = "
             "softmax(a, axis=min(1, max(0, 3 * dim(a,0) + 7 - 100))) where rank(a) = 2");
    bool before = false;
    bool behind = false;
    const graft_boundary_options options = {NULL, 0, EFFORT};
    const graft_domain domain = graft_boundary_find(env, &rule, &options);
    const graft_domain again = graft_boundary_find(env, &rule, &options);
    assert_true(domain.count > 0);
    assert_int_equal(domain.count, again.count);
    assert_memory_equal(domain.points, again.points, domain.count * sizeof *domain.points);
    for (uint32_t i = 0; i < domain.count; i++) {
        graft_instance instance;
        assert_int_equal(graft_instance_build(&instance, &rule, &domain.points[i]), GRAFT_FIT_OK);
        before = before || domain.points[i].vars[0].dims[0] == 31;
        behind = behind || domain.points[i].vars[0].dims[0] == 32;
    }
    assert_true(before);
    assert_true(behind);
}

/* Related sizes that no draw meets. */
CHECK_CASE(test_models)
{
    graft_rule rule = rows_parse(env, "relu(a) = leaky_relu(a, slope=0.5) where rank(a) = 2 and "
                                      "dim(a,0) * dim(a,0) + dim(a,1) * dim(a,1) = 337");
    graft_point points[MODELS];
    uint32_t count = graft_symbolic_models(env, &rule, resources, points, MODELS);
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        const int32_t *dims = points[i].vars[0].dims;
        assert_int_equal(dims[0] * dims[0] + dims[1] * dims[1], 337);
    }
}
