/* corpus.c - see corpus.h. */
#include "tests/support/corpus.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "verify/pool.h"
#include "verify/sizes/symbolic.h"

const corpus_file corpus_files[CORPUS_FILES] = {
    {"tests/verify/corpus/false.yaml",    CORPUS_FALSE },
    {"tests/verify/corpus/mutants.yaml",  CORPUS_FALSE },
    {"tests/verify/corpus/beyond.yaml",   CORPUS_BEYOND},
    {"tests/verify/corpus/true.yaml",     CORPUS_TRUE  },
    {"tests/verify/corpus/variants.yaml", CORPUS_TRUE  },
};

corpus_rules corpus_read(graft_env *env, const char *path, uint32_t first, uint32_t every)
{
    corpus_rules rules = {0};
    graft_user_rule *all = NULL;
    uint32_t count = 0;
    if (graft_user_rules_read(env, env->life, path, &all, &count) != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    rules.named = GRAFT_NEW(env->life, graft_user_rule, count);
    rules.rules = GRAFT_NEW(env->life, graft_rule, count);
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].fault != NULL) {
            fail_msg("%s", all[i].fault);
        }
    }
    for (uint32_t i = first; i < count; i += every) {
        rules.named[rules.count] = all[i];
        rules.rules[rules.count++] = all[i].rule;
    }
    return rules;
}

static bool is_wrong(corpus_kind kind, const graft_trial *trial)
{
    bool proved = trial->verdict == GRAFT_VERDICT_PROVED;
    bool accepted = proved || trial->verdict == GRAFT_VERDICT_WITHIN_BOUNDS;
    switch (kind) {
    case CORPUS_TRUE:
        return trial->verdict == GRAFT_VERDICT_REFUTED;
    case CORPUS_FALSE:
        return accepted;
    case CORPUS_BEYOND:
        break;
    }
    return proved;
}

corpus_tally corpus_try(graft_env *env, const corpus_rules *rules, corpus_kind kind,
                        const graft_trial_options *options)
{
    corpus_tally tally = {.count = rules->count};
    graft_trial *trials = GRAFT_NEW(env->life, graft_trial, rules->count);
    if (rules->count == 0) {
        return tally;
    }
    CHECK_OK(graft_trial_run(env, rules->rules, rules->count, options, trials));
    for (uint32_t i = 0; i < rules->count; i++) {
        const graft_trial *t = &trials[i];
        bool wrong = is_wrong(kind, t);
        bool proved = t->verdict == GRAFT_VERDICT_PROVED;
        tally.proved += proved || t->verdict == GRAFT_VERDICT_WITHIN_BOUNDS ? 1 : 0;
        tally.unbounded += proved ? 1 : 0;
        tally.refuted += t->verdict == GRAFT_VERDICT_REFUTED ? 1 : 0;
        tally.unknown += t->verdict == GRAFT_VERDICT_UNKNOWN ? 1 : 0;
        tally.wrong += wrong ? 1 : 0;
        if (wrong || (kind == CORPUS_TRUE && !proved)) {
            print_message("# %s %s (%s): %s: %s\n", wrong ? "WRONG" : "undecided",
                          rules->named[i].name, graft_verdict_name(t->verdict),
                          graft_rule_print_line(env->unit, &rules->rules[i]), t->reason);
        }
    }
    return tally;
}

static void prove_symbolic(graft_env *env, void *context, const graft_pool_item *item,
                           graft_buffer *answer)
{
    const corpus_rules *rules = context;
    graft_symbolic_result result;
    graft_prove_options options = graft_prove_defaults();
    graft_symbolic_prove(env, &rules->rules[item->index], &options, &result);
    graft_buffer_append(answer, &result.proved, sizeof result.proved);
}

uint32_t corpus_try_symbolic(graft_env *env, const corpus_rules *rules, corpus_kind kind,
                             uint64_t limit_ns)
{
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, rules->count);
    corpus_rules copy = *rules;
    uint32_t proved = 0;
    const graft_pool_job job = {.label = "all sizes",
                                .unit = "rules",
                                .item_count = rules->count,
                                .limit_ns = limit_ns,
                                .is_fresh = true,
                                .run = prove_symbolic,
                                .context = &copy};
    CHECK_OK(graft_pool_run(env, env->life, &job, results));
    for (uint32_t i = 0; i < rules->count; i++) {
        bool accepted = results[i].outcome == GRAFT_POOL_DONE && results[i].answer[0] != 0;
        proved += accepted ? 1 : 0;
        if (accepted && kind != CORPUS_TRUE) {
            print_message("# WRONG %s (proved for all sizes): %s\n", rules->named[i].name,
                          graft_rule_print_line(env->unit, &rules->rules[i]));
        }
    }
    return proved;
}
