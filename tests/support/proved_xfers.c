/* proved_xfers.c - see proved_xfers.h. */
#include "tests/support/proved_xfers.h"

#include "graph/rule/rulefile.h"
#include "tests/support/check.h"

graft_xfers proved_xfers(graft_env *env)
{
    graft_ruleset set;
    graft_xfers xfers;
    CHECK_OK(graft_rulefile_read(env, env->life, "rules/graft.rules", &set));
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, set.count);
    const char **names = GRAFT_NEW(env->life, const char *, set.count);
    for (uint32_t i = 0; i < set.count; i++) {
        rules[i] = set.entries[i].rule;
        names[i] = set.entries[i].name;
    }
    graft_xfers_index(env->life, rules, names, set.count, &xfers);
    return xfers;
}
