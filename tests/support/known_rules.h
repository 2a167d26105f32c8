/* known_rules.h - rules that are known to be true, and some that are known to be false, written by
 * hand: what the engine's tests apply whatever rule set the verifier has made. */
#pragma once

#include "graph/base/env.h"

typedef struct known_rules {
    graft_rule *rules;
    uint32_t count;
} known_rules;

/* Every rule in `arena`, read from its text and packed and unpacked once; asserts that all are
 * valid. */
known_rules known_rules_true(graft_env *env, graft_arena *arena);
known_rules known_rules_false(graft_env *env, graft_arena *arena);
/* The rules of rules/graft.rules, in env->life. */
known_rules known_rules_proved(graft_env *env);
