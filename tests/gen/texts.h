/* texts.h - families that are texts, and laws that are found of them. */
#pragma once

#include "gen/gen.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"

#include <string.h>

/* What is found with seed 1, in env->life. */
static inline graft_candidates run_text(graft_env *env, const char *text)
{
    graft_gen_family *family = GRAFT_NEW(env->life, graft_gen_family, 1);
    graft_candidates run;
    const graft_gen_options options = {.seed = 1};
    CHECK_OK(graft_gen_family_parse(env, env->life, "text", text, strlen(text), family));
    CHECK_OK(graft_gen_run(env, env->life, family, 1, &options, &run));
    return run;
}

/* The candidate that says "source => target"; NULL when there is none. */
static inline const graft_candidate *find_text(graft_env *env, const graft_candidates *run,
                                               const char *text)
{
    for (uint32_t i = 0; i < run->count; i++) {
        graft_rule_text rule = graft_rule_print(env->life, &run->items[i].rule);
        const char *line = graft_arena_printf(env->life, "%s => %s", rule.source, rule.target);
        if (strcmp(line, text) == 0) {
            return &run->items[i];
        }
    }
    return NULL;
}
