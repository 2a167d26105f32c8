/* rows.c - see rows.h. */
#include "tests/support/rows.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"

#include <string.h>

graft_rule rows_parse(graft_env *env, const char *text)
{
    graft_rule rule;
    if (graft_rule_parse(env, "rule", text, &rule) != GRAFT_OK) {
        fail_msg("%s: %s", text, env->message);
    }
    return rule;
}

graft_ruleset rows_committed(graft_env *env)
{
    graft_ruleset set;
    CHECK_OK(graft_rulefile_read(env, env->life, "rules/graft.rules", &set));
    return set;
}

static rule_rows open_rows(graft_env *env, size_t capacity)
{
    return (rule_rows){GRAFT_NEW(env->life, graft_rule, capacity),
                       GRAFT_NEW(env->life, const char *, capacity),
                       GRAFT_NEW(env->life, bool, capacity), 0};
}

static void add_row(graft_env *env, rule_rows *r, const char *text, bool holds)
{
    r->rules[r->count] = rows_parse(env, text);
    r->texts[r->count] = text;
    r->holds[r->count++] = holds;
}

rule_rows rows_read(graft_env *env, const char *name)
{
    const char *text = check_text(graft_arena_printf(env->life, "tests/verify/rules/%s.txt", name));
    rule_rows r = open_rows(env, strlen(text) / 8); /* A rule and its sign take more. */
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        if (length > 0 && at[0] != '#') {
            assert_true((at[0] == '+' || at[0] == '-') && at[1] == ' ');
            add_row(env, &r, graft_arena_printf(env->life, "%.*s", (int)length - 2, at + 2),
                    at[0] == '+');
        }
        at += at[length] == '\n' ? length + 1 : length;
    }
    assert_true(r.count > 0);
    return r;
}

rule_rows rows_of(graft_env *env, const rule_rows *all, bool holds)
{
    rule_rows some = open_rows(env, all->count);
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->holds[i] == holds) {
            add_row(env, &some, all->texts[i], holds);
        }
    }
    return some;
}
