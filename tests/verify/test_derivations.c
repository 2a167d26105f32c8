/* Derivations of rules that were left out: written, read again, replayed; and what the replay must
 * not let through. */
#include "verify/set/derivations.h"

#include "graph/base/file.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/domain.h"

#include <string.h>

static const char *const kept[] = {
    "relu(relu(a)) = relu(a)",
    "sub(a, add(b, c)) = sub(sub(a, b), c)",
    "concat#1(relu(a), relu(b)) = relu(concat#1(a, b))",
};
enum { KEPT = sizeof kept / sizeof kept[0] };

static graft_ruleset make_set(graft_env *env)
{
    graft_ruleset set = {.solver = "none", .count = KEPT};
    set.entries = GRAFT_NEW(env->life, graft_rule_entry, KEPT);
    for (uint32_t i = 0; i < KEPT; i++) {
        set.entries[i].rule = rows_parse(env, kept[i]);
        set.entries[i].id = graft_rule_id(&set.entries[i].rule);
    }
    return set;
}

/* A follower at one of its points by the given rules: numbers of `kept`, negative ones (less 1)
 * read from right to left. */
static graft_follower make_follower(graft_env *env, const graft_ruleset *set, const char *text,
                                    const int *steps, uint32_t step_count)
{
    const graft_domain_options options = {.points = 1, .attempts = 20000, .seed = 1};
    graft_follower f = {.rule = rows_parse(env, text), .at_count = 1};
    f.id = graft_rule_id(&f.rule);
    const graft_domain domain = graft_domain_find(env, env->life, &f.rule, &options);
    assert_true(domain.count > 0);
    f.at[0].point = domain.points[0];
    f.at[0].step_count = step_count;
    for (uint32_t i = 0; i < step_count; i++) {
        f.at[0].steps[i].reversed = steps[i] < 0;
        f.at[0].steps[i].id = set->entries[steps[i] < 0 ? -1 - steps[i] : steps[i]].id;
    }
    return f;
}

CHECK_CASE(test_replay)
{
    static const struct {
        const char *rule;
        int steps[GRAFT_DERIVATION_STEPS];
        uint32_t step_count;
        const char *trouble; /* Part of it; NULL: none. */
    } rows[] = {
        {"relu(relu(relu(a))) = relu(a)",                           {0, 0}, 2, NULL  },
        {"sub(sub(a, b), c) = sub(a, add(b, c))",                   {-2},   1, NULL  },
        {"concat#1(relu(relu(a)), relu(b)) = relu(concat#1(a, b))", {0, 2}, 2, NULL  },
        {"relu(relu(relu(a))) = relu(a)",                           {0},    1, "lead"},
        {"relu(relu(relu(a))) = relu(a)",                           {0, 1}, 2, "lead"},
        {"relu(relu(a)) = a",                                       {0},    1, "lead"},
        {"sub(sub(a, b), c) = sub(a, add(b, c))",                   {1},    1, "lead"},
    };
    graft_ruleset set = make_set(env);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_follower f =
            make_follower(env, &set, rows[i].rule, rows[i].steps, rows[i].step_count);
        const char *trouble = graft_derivations_replay(env, &set, &f);
        if (rows[i].trouble == NULL ? trouble != NULL
                                    : trouble == NULL || strstr(trouble, rows[i].trouble) == NULL) {
            fail_msg("%s: %s", rows[i].rule, trouble == NULL ? "replayed" : trouble);
        }
    }
    set.count--; /* Without the rule that it needs. */
    graft_follower f = make_follower(env, &set, rows[2].rule, rows[2].steps, 2);
    assert_non_null(strstr(graft_derivations_replay(env, &set, &f), "not in the set"));
}

CHECK_CASE(test_file)
{
    graft_ruleset set = make_set(env);
    const int steps[] = {0, 2};
    const int back[] = {-2};
    graft_follower items[] = {
        make_follower(env, &set, "concat#1(relu(relu(a)), relu(b)) = relu(concat#1(a, b))", steps,
                      2),
        make_follower(env, &set, "sub(sub(a, b), c) = sub(a, add(b, c))", back, 1),
    };
    const graft_followers written = {items, 2};
    graft_followers read = {NULL, 0};
    graft_derivations_report report;
    const char *path = check_path("derivations.txt");
    CHECK_OK(graft_derivations_write(env, path, &written));
    CHECK_OK(graft_derivations_read(env, env->life, path, &read));
    assert_int_equal(read.count, 2);
    graft_derivations_check(env, &set, &read, 100, 1, &report);
    assert_int_equal(report.replayed, 2);
    assert_int_equal(report.failed, 0);
    assert_true(read.items[1].at[0].steps[0].reversed);
    read.items[0].at[0].steps[1].id = set.entries[0].id;
    graft_derivations_check(env, &set, &read, 100, 1, &report);
    assert_int_equal(report.failed, 1);
}

CHECK_CASE(test_bad_files)
{
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"hello\n",                                            "expected 'follows' or 'at'"},
        {"at 0102 0123456789abcdef\n",                         "no rule before"            },
        {"follows 12 relu(relu(a)) = relu(a)\n",               "16 digits"                 },
        {"follows 0123456789abcdef relu(relu(a)) = relu(a)\n", "the rule's id is"          },
        {"follows 0123456789abcdef relu(\n",                   "rule:"                     },
    };
    const char *path = check_path("derivations.txt");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_followers read = {NULL, 0};
        CHECK_OK(graft_file_write(env, path, rows[i].text, strlen(rows[i].text)));
        check_failed(env, graft_derivations_read(env, env->life, path, &read), GRAFT_BAD_INPUT,
                     rows[i].message);
    }
}
