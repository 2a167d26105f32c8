/* Users' rules: faults are named with file, line and what was expected; verdicts; counterexamples
 * are small and replay; the missing precondition is found; nothing is proved without a solver. */
#include "verify/command/userrules.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/rows.h"
#include "verify/lift/suggest.h"
#include "verify/trial.h"

#include <math.h>
#include <string.h>

static graft_status parse_file(graft_env *env, const char *text, graft_user_rule **rules,
                               uint32_t *count)
{
    graft_status status = graft_user_rules_parse(
        env, env->unit, (graft_bytes){"my.yaml", (const uint8_t *)text, strlen(text)}, rules,
        count);
    for (uint32_t i = 0; status == GRAFT_OK && i < *count; i++) {
        status = (*rules)[i].fault == NULL
                     ? GRAFT_OK
                     : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s", (*rules)[i].fault);
    }
    return status;
}

/* ------------------------------------------------------------------ reading */

CHECK_CASE(test_file)
{
    graft_user_rule *rules = NULL;
    uint32_t count = 0;
    const char *text = "rules:\n"
                       "  - name: one\n"
                       "    source: relu(relu(a))\n"
                       "    target: relu(a)\n"
                       "  - name: two\n"
                       "    family: mine\n"
                       "    source: matmul(add(a, b), c)\n"
                       "    target: add(matmul(a, c), matmul(b, c))\n"
                       "    where:\n"
                       "      - same_shape(a, b)\n"
                       "      - rank(c) = 2\n";
    CHECK_OK(parse_file(env, text, &rules, &count));
    assert_int_equal(count, 2);
    assert_string_equal(rules[0].name, "one");
    assert_string_equal(rules[0].family, "user");
    assert_int_equal(rules[0].line, 2);
    assert_int_equal(rules[0].where_line, 0);
    assert_string_equal(rules[1].family, "mine");
    assert_int_equal(rules[1].target_line, 8);
    assert_int_equal(rules[1].where_line, 9);
    assert_string_equal(graft_rule_print(env->unit, &rules[1].rule).where,
                        "same_shape(a, b) and rank(c) = 2");
}

CHECK_CASE(test_faults_of_files)
{
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"rule: x\n",                                                                            "my.yaml:1: expected 'rules:'"                                    },
        {"rules: []\n",                                                                          "my.yaml:1: expected 1 to"                                        },
        {"rules:\n - relu(a) = a\n",                                                             "my.yaml:2: a rule must be a mapping"                             },
        {"rules:\n - name: x\n   sources: a\n",                                                  "my.yaml:3: "                                                     },
        {"rules:\n - name: x\n   source: relu(a)\n",                                             "target"                                                          },
        {"rules:\n - name: x y\n   source: relu(a)\n   target: a\n",                             "my.yaml:2: the name 'x y'"                                       },
        {"rules:\n - name: x\n   source: relu(a)\n   target: a\n - name: x\n   source: relu(a)\n"
         "   target: a\n",                                                              "my.yaml:5: the name 'x' is taken by the rule in line 2"          },
        {"rules:\n - name: x\n   source: relu(a\n   target: a\n",
         "my.yaml:3: source: column 7: expected ',', found ''"                                                                                                     },
        {"rules:\n - name: x\n   source: relu(a)\n   target: conv(a, a)\n",
         "my.yaml:4: target: column 11: an attribute of the operator before is missing"                                                                            },
        {"rules:\n - name: x\n   source: relu(a)\n   target: a\n   where:\n    - rank(a) = 1\n"
         "    - rank(a) 2\n",                                                           "my.yaml:7: where: column 9: expected the end of the precondition"},
        {"rules:\n - name: x\n   source: relu(a)\n   target: a\n   where: #1.axis = 1\n",
         "my.yaml:5: 'where' is empty: a '#' behind a blank"                                                                                                       },
        {"rules:\n - name: x\n   source: clip#1(a)\n   target: clip(a, low=fmin(0, #1.low))\n",
         "begins a comment unless the text is in quotes"                                                                                                           },
        {"rules:\n - name: x\n   source: a\n   target: relu(a)\n",
         "my.yaml:3: source: a rule has too many"                                                                                                                  },
        {"rules:\n - name: x\n   source: split#1(a, axis=3).0\n   target: split#1(a).0\n",
         "the attribute 'axis' is fixed in the source, so the target has to repeat its value"                                                                      },
        {"rules:\n - name: x\n   source: slice#1(a)\n   target: relu#1(slice(a, axis=#1.at))\n",
         "no source operator of this number has such an attribute slot"                                                                                            },
        {"rules:\n - name: x\n   source: add(a)\n   target: a\n",
         "my.yaml:3: source: column 7: the operator before has too few operands"                                                                                   },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_user_rule *rules = NULL;
        uint32_t count = 0;
        graft_status status = parse_file(env, rows[i].text, &rules, &count);
        check_failed(env, status, GRAFT_BAD_INPUT, rows[i].message);
    }
}

/* The hint about comments stands where a comment cuts a text off, and nowhere else. */
CHECK_CASE(test_hint)
{
    static const struct {
        const char *source;
        bool is_cut;
    } rows[] = {
        {"relu(a",                   false},
        {"relu(b)",                  false},
        {"slice#1(a, end=#1.start",  false},
        {"relu(a #1)",               true },
        {"add(a, relu(a) # twice",   true },
        {"\"relu(a\" # in quotes",   false},
        {"clip(a, low=0, high= #1)", true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_user_rule *rules = NULL;
        uint32_t count = 0;
        const char *text = graft_arena_printf(
            env->life, "rules:\n - name: x\n   source: %s\n   target: a\n", rows[i].source);
        assert_int_equal(parse_file(env, text, &rules, &count), GRAFT_BAD_INPUT);
        bool hinted = strstr(env->message, "begins a comment") != NULL;
        if (hinted != rows[i].is_cut) {
            fail_msg("%s: %s", rows[i].source, env->message);
        }
        graft_env_clear(env);
    }
}

/* A rule that cannot be read leaves the others alone. */
CHECK_CASE(test_faults_of_single_rules)
{
    graft_user_rule *rules = NULL;
    uint32_t count = 0;
    const char *text = "rules:\n"
                       " - name: bad\n   source: rleu(a)\n   target: a\n"
                       " - name: good\n   source: add(split#2(a).0, split#1(b).1)\n   target: a\n"
                       " - source: relu(a)\n   target: a\n"
                       " - name: good\n   source: relu(a)\n   target: a\n";
    const graft_bytes bytes = {"my.yaml", (const uint8_t *)text, strlen(text)};
    CHECK_OK(graft_user_rules_parse(env, env->unit, bytes, &rules, &count));
    assert_int_equal(count, 4);
    assert_string_equal(rules[0].fault, "my.yaml:3: source: column 1: expected a variable or an "
                                        "operator, found 'rleu(a)'");
    assert_null(rules[1].fault);
    assert_string_equal(rules[2].name, "");
    assert_non_null(strstr(rules[2].fault, "my.yaml:8: "));
    assert_non_null(strstr(rules[3].fault, "my.yaml:10: the name 'good' is taken"));
    /* Printed texts number operators as they come; the author's numbers are another way round. */
    assert_string_equal(graft_user_rule_retell(env->unit, &rules[1], "#1.at = 3 and #2.axis = 0"),
                        "#2.at = 3 and #1.axis = 0");
    assert_string_equal(env->message, "");
}

/* What does not type-check is said, with line, operator and shapes. */
CHECK_CASE(test_faults_of_shapes)
{
    static const struct {
        const char *source;
        const char *target;
        const char *where;
        const char *message; /* NULL: none. */
    } rows[] = {
        {"relu(relu(a))",             "relu(a)",      "rank(a) = 2",                   NULL                                                                           },
        {"matmul(a, b)",              "matmul(b, a)",
         "rank(a) = 2 and rank(b) = 2 and dim(a,0) = 2 and dim(b,1) = 3",              "my.yaml:4: rule 'x': the target does not fit where the source does, as at a: "},
        {"scale_shift(a, a, b)",      "a",            "rank(a) = 1",
         "my.yaml:3: rule 'x': no shapes fit the source"                                                                                                              },
        {"relu(a)",                   "a",            "rank(a) = 9",
         "my.yaml:5: rule 'x': the precondition holds at none of the places"                                                                                          },
        {"transpose(a, axis=[1, 0])", "a",            "dim(a,0) = 2 and dim(a,1) = 3",
         "target: output 0 is 2x3, in the source 3x2"                                                                                                                 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_user_rule *rules = NULL;
        uint32_t count = 0;
        const char *text = graft_arena_printf(
            env->life, "rules:\n - name: x\n   source: %s\n   target: %s\n   where: %s\n",
            rows[i].source, rows[i].target, rows[i].where);
        CHECK_OK(parse_file(env, text, &rules, &count));
        graft_status status = graft_user_rule_check_shapes(env, "my.yaml", &rules[0]);
        if (rows[i].message == NULL) {
            CHECK_OK(status);
        } else {
            check_failed(env, status, GRAFT_BAD_INPUT, rows[i].message);
        }
    }
}

/* ----------------------------------------------------------------- verdicts */

static const graft_trial *try_rules(graft_env *env, const graft_rule *rules, uint32_t count,
                                    bool suggest)
{
    graft_trial *trials = GRAFT_NEW(env->life, graft_trial, count);
    graft_trial_options options = graft_trial_defaults();
    options.suggest = suggest;
    options.check.cover = 8;
    env->thread_count = 2;
    CHECK_OK(graft_trial_run(env, rules, count, &options, trials));
    return trials;
}

/* The same for rows that begin with a rule's text; the rules are in `rules`. */
static const graft_trial *try_rows(graft_env *env, const void *rows, size_t row_bytes,
                                   uint32_t count, graft_rule *rules, bool suggest)
{
    for (uint32_t i = 0; i < count; i++) {
        rules[i] = rows_parse(env, *(const char *const *)((const char *)rows + i * row_bytes));
    }
    return try_rules(env, rules, count, suggest);
}

/* Every false rule is refuted, by whole numbers that replay in the float executor. */
CHECK_CASE(test_refutations_replay)
{
    known_rules known = known_rules_false(env, env->life);
    const graft_trial *trials = try_rules(env, known.rules, known.count, false);
    for (uint32_t i = 0; i < known.count; i++) {
        const graft_refutation *r = &trials[i].refutation;
        graft_refutation again = *r;
        again.output = UINT32_MAX;
        assert_int_equal(trials[i].verdict, GRAFT_VERDICT_REFUTED);
        assert_true(trials[i].has_refutation);
        assert_true(r->replayed);
        assert_true(graft_refutation_replay(env, &known.rules[i], &again));
        assert_int_equal(again.output, r->output);
        assert_true(again.element == r->element && isfinite(again.source));
        assert_memory_equal(&again.source, &r->source, sizeof again.source);
        assert_memory_equal(&again.target, &r->target, sizeof again.target);
    }
}

/* The smallest shapes and inputs that there are. */
CHECK_CASE(test_refutations_are_small)
{
    static const struct {
        const char *rule;
        const char *text;
    } rows[] = {
        {"sub(a, b) = sub(b, a)",                       "    a: shape [] = [1]\n    b: shape [] = [0]\n"
                                  "    output 0, element 0: source 1, target -1\n"},
        {"transpose(a, axis=[1, 0]) = a",
         "    a: shape [2, 2] = [0, 0, 1, 0]\n    output 0, element 1: source 1, target 0\n"                       },
        {"concat(a, b, axis=0) = concat(b, a, axis=0)",
         "    a: shape [1] = [1]\n    b: shape [1] = [0]\n"
         "    output 0, element 0: source 1, target 0\n"                                                           },
        {"relu(slice#1(a)) = slice#1(a)",
         "    a: shape [1] = [-1]\n    #1.axis = 0\n    #1.start = 0\n    #1.end = 1\n"
         "    output 0, element 0: source 0, target -1\n"                                                          },
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    graft_rule rules[ROWS];
    const graft_trial *trials = try_rows(env, rows, sizeof rows[0], ROWS, rules, false);
    for (uint32_t i = 0; i < ROWS; i++) {
        graft_buffer out = {.arena = env->life};
        assert_true(trials[i].has_refutation);
        graft_refutation_print(&out, &rules[i], &trials[i].refutation);
        assert_string_equal(out.data, rows[i].text);
    }
}

CHECK_CASE(test_verdicts)
{
    const graft_rule rules[3] = {
        rows_parse(env, "relu(relu(a)) = relu(a)"),
        rows_parse(env, "exp(add(a, b)) = add(exp(a), exp(b))"),
        /* The source is defined where b is 0, the target is not: only the solver says so. */
        rows_parse(env, "add(mul(a, b), c) = mul(b, add(a, div(c, b)))"),
    };
    const graft_trial *trials = try_rules(env, rules, 3, true);
    assert_int_equal(trials[0].verdict, GRAFT_VERDICT_PROVED);
    assert_int_equal(trials[0].check.numeric, GRAFT_NUMERIC_EXACT);
    assert_true(trials[0].check.cover_bytes > 0);
    assert_int_equal(trials[1].verdict, GRAFT_VERDICT_REFUTED);
    assert_null(trials[1].suggestion);
    assert_int_equal(trials[2].verdict, GRAFT_VERDICT_REFUTED);
    assert_true(trials[2].has_refutation && isfinite(trials[2].refutation.source));
    assert_true(isfinite(trials[2].refutation.target) == 0);
}

/* Laws of functions that the exact arithmetic lacks are proved for all sizes; what only looks like
 * them is refuted. */
CHECK_CASE(test_laws_of_functions)
{
    const char *const texts[] = {
        "exp(add(a, b)) = mul(exp(a), exp(b))",
        "mul(sqrt(a), sqrt(a)) = a",
        "softmax(sub(a, reduce_max(a, axes=2, keep=1)), axis=1) = softmax(a, axis=1)",
        "relu(sqrt(a)) = sqrt(a)",
        "exp(relu(a)) = max(exp(a), fill(value=1, dim=[]))",
        "exp(add(a, b)) = mul(exp(a), exp(a))",
        "sqrt(mul(a, a)) = a",
        "softmax(add(a, b), axis=1) = softmax(a, axis=1)",
        "sqrt(mul(a, b)) = mul(sqrt(a), sqrt(b))",
    };
    enum { COUNT = sizeof texts / sizeof texts[0], TRUE_COUNT = 5, EXACT_FIRST = 3 };
    graft_rule rules[COUNT];
    const graft_trial *trials = try_rows(env, texts, sizeof texts[0], COUNT, rules, false);
    for (uint32_t i = 0; i < COUNT; i++) {
        bool is_true = i < TRUE_COUNT;
        assert_int_equal(trials[i].verdict, is_true ? GRAFT_VERDICT_PROVED : GRAFT_VERDICT_REFUTED);
        assert_int_equal(trials[i].rounded, i < EXACT_FIRST);
        assert_true(!is_true || trials[i].check.proof == GRAFT_PROOF_UNBOUNDED);
    }
}

/* What is not known is not called refuted, and all that failed is told. */
CHECK_CASE(test_reasons)
{
    static const struct {
        const char *rule;
        const char *reason;
    } rows[] = {
        {"reshape#1(reshape#2(a)) = reshape#1(reshape(a, dim=[#1.dim_0, dim(a,1) * dim(a,2)])) "
         "where rank(a) = 3 and dim(a,0) = 5 and 12 <= dim(a,1) and dim(a,1) <= 13 and "
         "dim(a,2) = 1",                                                             "too few to say anything; not proved for all sizes: the sides were not proved equal"},
        {"exp(mul(a, fill(value=0.0000001, dim=[]))) = exp(mul(a, fill(value=0.0, dim=[])))",
         "nothing refutes it: "                                                                                                                                                   },
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    graft_rule rules[ROWS];
    const graft_trial *trials = try_rows(env, rows, sizeof rows[0], ROWS, rules, false);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(trials[i].verdict, GRAFT_VERDICT_UNKNOWN);
        assert_non_null(strstr(trials[i].reason, rows[i].reason));
    }
}

/* A rule without its precondition gets it back. */
CHECK_CASE(test_suggestions)
{
    static const struct {
        const char *rule;
        const char *suggestion;
    } rows[] = {
        {"[conv#1(a, b), conv#1(a, c)] = [split(conv#1(a, concat(b, c, axis=0)), axis=1, "
         "at=dim(b,0)).0, split(conv#1(a, concat(b, c, axis=0)), axis=1, at=dim(b,0)).1]", "#1.groups = 1"},
        {"relu(leaky_relu#1(a)) = leaky_relu#1(a)",                                                 "#1.slope = 0" },
        {"softmax(a, axis=0) = softmax(a, axis=1) where rank(a) = 2",                               NULL           },
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    graft_rule rules[ROWS];
    const graft_trial *trials = try_rows(env, rows, sizeof rows[0], ROWS, rules, true);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(trials[i].verdict, GRAFT_VERDICT_REFUTED);
        if (rows[i].suggestion == NULL) {
            assert_null(trials[i].suggestion);
        } else {
            assert_non_null(trials[i].suggestion);
            assert_string_equal(trials[i].suggestion, rows[i].suggestion);
        }
    }
}

/* Whatever happens to the solver, nothing becomes proved. */
CHECK_CASE(test_no_solver_no_proof)
{
    graft_rule rule = rows_parse(env, "relu(relu(a)) = relu(a)");
    graft_trial trial;
    graft_trial_options options = graft_trial_defaults();
    options.check.prove.solver_is_mute = true;
    CHECK_OK(graft_trial_run(env, &rule, 1, &options, &trial));
    assert_int_equal(trial.verdict, GRAFT_VERDICT_UNKNOWN);
    assert_non_null(strstr(trial.reason, "the solver gave up"));
    options = graft_trial_defaults();
    options.limit_ns = 1;
    rule = rows_parse(env, "conv#1(a, add(b, c)) = add(conv#1(a, b), conv#1(a, c)) "
                           "where same_shape(b, c)");
    CHECK_OK(graft_trial_run(env, &rule, 1, &options, &trial));
    assert_true(trial.verdict == GRAFT_VERDICT_UNKNOWN || trial.time_ns < 400000000u);
}

/* ------------------------------------------------------------------ merging */

CHECK_CASE(test_merging)
{
    const graft_rule rules[2] = {rows_parse(env, "relu(relu(a)) = relu(a)"),
                                 rows_parse(env, "tanh(identity(a)) = tanh(a)")};
    const graft_trial *trials = try_rules(env, rules, 2, false);
    graft_rule_entry entries[2] = {graft_trial_entry(&rules[0], &trials[0], "b", "user"),
                                   graft_trial_entry(&rules[1], &trials[1], "a", "user")};
    graft_ruleset set = {.solver = "z3"};
    uint32_t added = 0;
    CHECK_OK(graft_trial_merge(env, env->life, &set, entries, 2, &added));
    assert_int_equal(added, 2);
    assert_string_equal(set.entries[0].name, "a");
    CHECK_OK(graft_trial_merge(env, env->life, &set, entries, 2, &added));
    assert_int_equal(added, 0);
    assert_int_equal(set.count, 2);
    entries[0] = graft_trial_entry(&rules[1], &trials[1], "b", "user");
    entries[0].id ^= 1;
    check_failed(env, graft_trial_merge(env, env->life, &set, entries, 1, &added), GRAFT_BAD_INPUT,
                 "another rule named 'b'");
}
