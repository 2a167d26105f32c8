/* Rules as text: what is printed parses to the same rule, faults are named with part and column,
 * preconditions in words, the picture. */
#include "graph/rule/rounding.h"
#include "graph/rule/rulefile.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/rulewords.h"
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/rows.h"

#include <string.h>

/* Rules with two operators that are alike cannot be written: a term that occurs twice is one. */
CHECK_CASE(test_print_and_parse)
{
    known_rules known = known_rules_true(env, env->unit);
    uint32_t alike = 0;
    for (uint32_t i = 0; i < known.count; i++) {
        const char *line = graft_rule_print_line(env->unit, &known.rules[i]);
        graft_rule again;
        if (graft_rule_parse(env, "rule", line, &again) == GRAFT_OK) {
            assert_string_equal(graft_rule_print_line(env->unit, &again), line);
        } else {
            check_failed(env, GRAFT_BAD_INPUT, GRAFT_BAD_INPUT, "a source output is named twice");
            alike++;
        }
    }
    assert_int_equal(alike, 2);
}

/* Numbers inside fmin, fmax and fle are binary32, not bits. */
CHECK_CASE(test_floats_in_code)
{
    const char *text = "relu(clip#1(a)) = clip(a, low=fmax(#1.low, 0.5), high=#1.high) where "
                       "fle(-1.25, #1.high) and fle(#1.low, inf)";
    graft_rule rule = rows_parse(env, text);
    uint32_t count = 0;
    assert_string_equal(graft_rule_print_line(env->unit, &rule), text);
    const char *const *parts = graft_rule_words_where(env->unit, &rule, &count);
    assert_int_equal(count, 2);
    assert_string_equal(parts[0], "-1.25 is at most high of #1");
    assert_string_equal(parts[1], "low of #1 is at most inf");
}

/* What a list leaves out is 0, also where the other attributes of the operator are variables. */
CHECK_CASE(test_short_lists)
{
    static const char *const lists[] = {"[2]", "[2, 3]", "[]"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        graft_rule rule =
            rows_parse(env, graft_arena_printf(env->unit, "mul(a, fill#1(dim=%s)) = a", lists[i]));
        assert_int_equal(rule.slot_count, 1); /* The number. */
        assert_int_equal(rule.source.nodes[1].attrs[GRAFT_ATTR_fill_dim_5].kind, GRAFT_TERM_CONST);
    }
}

/* Parentheses that a text needs are printed, and no others. */
CHECK_CASE(test_grouping)
{
    static const char *const parts[] = {"dim(a,0) - (dim(a,1) - 1) = 2",
                                        "dim(a,0) - dim(a,1) - 1 = 2",
                                        "dim(a,0) / (dim(a,1) / 2) = 2",
                                        "dim(a,0) * (dim(a,1) + 1) = 2",
                                        "dim(a,0) mod (2 * dim(a,1)) = 0",
                                        "(rank(a) = 1 or rank(a) = 2) and dim(a,0) = 1",
                                        "rank(a) = 1 or rank(a) = 2 and dim(a,0) = 1"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *text = graft_arena_printf(env->unit, "relu(a) = abs(a) where %s", parts[i]);
        graft_rule rule = rows_parse(env, text);
        assert_string_equal(graft_rule_print_line(env->unit, &rule), text);
    }
}

/* A term that is written twice is one operator; the limit is on operators, not on words. */
CHECK_CASE(test_repeated_terms)
{
    graft_rule rule;
    const char *deep = "sigmoid(tanh(relu(exp(add(a, b)))))";
    const char *text =
        graft_arena_printf(env->unit, "add(%s, %s) = add(%s, %s)", deep, deep, deep, deep);
    rule = rows_parse(env, text);
    assert_int_equal(rule.source.node_count, 6);
    assert_int_equal(rule.target.node_count, 6);
    assert_string_equal(graft_rule_print_line(env->unit, &rule), text);
    const char *second = "exp(relu(relu(relu(relu(relu(relu(relu(a))))))))";
    text = graft_arena_printf(env->unit, "relu(add(%s, %s)) = a", deep, second);
    check_failed(env, graft_rule_parse(env, "rule", text, &rule), GRAFT_BAD_INPUT,
                 "the side has too many operators");
}

CHECK_CASE(test_parts)
{
    const graft_rule_part where[2] = {
        {"where 1", "same_shape(a, b)"},
        {"where 2", "rank(c) = 2"     }
    };
    graft_rule_parts parts = {
        .source = {"source", "matmul(add(a, b), c)"           },
        .target = {"target", "add(matmul(a, c), matmul(b, c))"},
        .where = where,
        .where_count = 2
    };
    graft_rule rule;
    CHECK_OK(graft_rule_parse_parts(env, &parts, &rule, NULL));
    graft_rule whole =
        rows_parse(env, "matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where "
                        "same_shape(a, b) and rank(c) = 2");
    assert_true(graft_rule_id(&rule) == graft_rule_id(&whole));
    parts.where_count = 0;
    CHECK_OK(graft_rule_parse_parts(env, &parts, &rule, NULL));
    assert_int_equal(rule.condition, 255);
}

/* Which part is at fault, and where. */
CHECK_CASE(test_faults_of_parts)
{
    static const struct {
        const char *source;
        const char *target;
        const char *where;
        const char *message;
    } rows[] = {
        {"relu(a",                       "a",          "rank(a) = 1",  "source: column 7: expected ','"                       },
        {"relu(a) x",                    "a",          "rank(a) = 1",  "source: column 9: expected the end of the source"     },
        {"rleu(a)",                      "a",          "rank(a) = 1",  "source: column 1: expected a variable or an operator" },
        {"relu(a, b)",                   "a",          "rank(a) = 1",  "source: column 9: expected an operand or an attribute"},
        {"add(a)",                       "a",          "rank(a) = 1",
         "source: column 7: the operator before has too few operands"                                                         },
        {"add(a, c)",                    "a",          "rank(a) = 1",  "source: column 10: variables must be a, b, c"         },
        {"relu(a)",                      "conv(a, a)", "rank(a) = 1",  "target: column 11: an attribute of the operator"      },
        {"relu(a)",                      "b",          "rank(a) = 1",  "target: column 2: variables must be"                  },
        {"relu(a)",                      "[a, a]",     "rank(a) = 1",  "target: column 1: the sides have different numbers"   },
        {"relu(a)",                      "a",          "rank(a)) = 1", "where: column 8: expected the end of the precondition"},
        {"relu(a)",                      "a",          "#1.axis = 1",  "where: column 4: no source operator of this number"   },
        {"relu(a)",                      "a",          "rank(b) = 1",  "where: column 12: variables must be"                  },
        {"a",                            "relu(a)",    "rank(a) = 1",  "source: a rule has too many variables or slots, or "  },
        {"[relu(a), relu(a)]",           "[a, a]",     "rank(a) = 1",  "source: a source output is named twice"               },
        {"slice#1(a, start=#1.end + 1)", "a",          "rank(a) = 1",
         "source: column 28: an attribute of the source must be a number or one attribute "
         "variable"                                                                                                           },
        {"leaky_relu(a, slope=1e-46)",   "a",          "rank(a) = 1",
         "source: column 21: a decimal number is too large or too small for binary32"                                         },
        {"clip(a, low=0, high=1e39)",    "a",          "rank(a) = 1",
         "source: column 21: a decimal number is too large or too small for binary32"                                         },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const graft_rule_part where = {"where", rows[i].where};
        const graft_rule_parts parts = {
            .source = {"source", rows[i].source},
            .target = {"target", rows[i].target},
            .where = &where,
            .where_count = 1
        };
        graft_rule rule;
        graft_status status = graft_rule_parse_parts(env, &parts, &rule, NULL);
        check_failed(env, status, GRAFT_BAD_INPUT, rows[i].message);
    }
}

CHECK_CASE(test_words)
{
    static const struct {
        const char *where;
        const char *words;
    } rows[] = {
        {"rank(a) = 2",                           "the rank of a equals 2"                                    },
        {"dim(a,-1) <= dim(b,0)",                 "the last size of a is at most the size of axis 0 of b"     },
        {"divides(#1.groups, dim(a,1) + 1)",
         "groups of #1 divides (the size of axis 1 of a plus 1)"                                              },
        {"const(b)",                              "b is known before inference (a weight)"                    },
        {"same_shape(a, b) or not (rank(a) = 4)",
         "(a and b have the same shape) or (it is not so that the rank of a equals 4)"                        },
        {"min(dim(a,-2), 300) = 3",               "(the smaller of size 2 from the end of a and 300) equals 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t count = 0;
        graft_rule rule = rows_parse(env, graft_arena_printf(env->unit,
                                                             "conv#1(a, b) = conv#1(a, b) "
                                                             "where (%s) and rank(b) = 4",
                                                             rows[i].where));
        const char *const *parts = graft_rule_words_where(env->unit, &rule, &count);
        assert_int_equal(count, 2);
        assert_string_equal(parts[0], rows[i].words);
        assert_string_equal(parts[1], "the rank of b equals 4");
    }
}

/* An expression that is said several times is one expression of the rule. */
CHECK_CASE(test_repeated)
{
    graft_rule once = rows_parse(env, "relu(a) = split(a, axis=0, at=dim(a,0) - 1).0");
    graft_rule twice = rows_parse(
        env, "[relu(a), gelu(a)] = [split(a, axis=0, at=dim(a,0) - 1).0, split(a, axis=0, "
             "at=dim(a,0) - 1).1]");
    graft_rule apart =
        rows_parse(env, "relu(a) = split(split(a, axis=0, at=dim(a,0) - 1).0, axis=1, "
                        "at=dim(a,0) - 1).0");
    assert_true(once.code_bytes > 0);
    assert_int_equal(twice.target.node_count, 1);
    assert_int_equal(twice.code_bytes, once.code_bytes);
    assert_int_equal(apart.target.node_count, 2);
    assert_int_equal(apart.code_bytes, once.code_bytes);
}

CHECK_CASE(test_steps)
{
    graft_buffer out = {.arena = env->unit};
    graft_rule rule =
        rows_parse(env, "[split#1(relu(a), axis=1).1, relu(a)] = "
                        "[slice(relu(a), axis=1, start=#1.at, end=dim(a,1)), relu(a)]");
    graft_rule_words_steps(&out, &rule, true);
    graft_rule_words_steps(&out, &rule, false);
    assert_string_equal(out.data, "    s1 = relu(a)\n"
                                  "    s2 = split#1(s1) with axis = 1, any at\n"
                                  "    gives s2.1, s1\n"
                                  "    t1 = relu(a)\n"
                                  "    t2 = slice(t1) with axis = 1, start = at of #1, "
                                  "end = the size of axis 1 of a\n"
                                  "    gives t2, t1\n");
}

/* Braces and quotes are balanced, every edge ends at nodes that were declared. */
CHECK_CASE(test_pictures)
{
    known_rules known = known_rules_true(env, env->unit);
    for (uint32_t i = 0; i < known.count; i++) {
        graft_buffer out = {.arena = env->unit};
        int depth = 0;
        uint32_t quotes = 0;
        graft_rule_picture(&out, &known.rules[i], "a \"name\" with \\");
        for (size_t k = 0; k < out.size; k++) {
            if (out.data[k] == '\\') {
                k++; /* The next one is no quote. */
                continue;
            }
            quotes += out.data[k] == '"' ? 1 : 0;
            depth += (out.data[k] == '{') - (out.data[k] == '}');
        }
        assert_int_equal(depth, 0);
        assert_int_equal(quotes % 2, 0);
        assert_non_null(strstr(out.data, "subgraph cluster_source"));
        assert_non_null(strstr(out.data, "subgraph cluster_target"));
        for (uint32_t n = 0; n < known.rules[i].source.node_count; n++) {
            assert_non_null(
                strstr(out.data, graft_arena_printf(env->unit, "    s_n%u [shape=box", n)));
        }
    }
}

static bool rounds(graft_env *env, const char *text, uint32_t dtype, const char *wanted)
{
    graft_rule rule = rows_parse(env, text);
    const graft_rule other = rows_parse(env, wanted);
    const bool changed = graft_rule_round(&rule, dtype);
    assert_true(graft_rule_id(&rule) == graft_rule_id(&other));
    return changed;
}

/* To numbers that the type has; not to an infinity, and not to 0 or what is far from it. */
CHECK_CASE(test_rounding)
{
    static const char root[] =
        "mul(a, fill#1(value=1.41421354)) = mul(fill#1(value=1.41421354), a)";
    static const char near[] = "mul(a, fill#1(value=1.4140625)) = mul(fill#1(value=1.4140625), a)";
    static const char *const kept[] = {"mul(a, fill#1(value=0.5)) = mul(fill#1(value=0.5), a)",
                                       "mul(a, fill#1(value=0)) = mul(fill#1(value=0), a)",
                                       "mul(a, fill#1(value=70000)) = mul(fill#1(value=70000), a)",
                                       "mul(a, fill#1(value=1e-06)) = mul(fill#1(value=1e-06), a)",
                                       "mul(a, fill#1(value=1e-12)) = mul(fill#1(value=1e-12), a)"};
    assert_true(rounds(env, root, GRAFT_DTYPE_F16, near));
    assert_true(rounds(env, root, GRAFT_DTYPE_BF16, near));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        assert_false(rounds(env, kept[i], GRAFT_DTYPE_F16, kept[i]));
    }
}
