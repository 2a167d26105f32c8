/* command_both.c - see parts.h. */
#include "verify/command/parts.h"

#include "graph/base/log.h"
#include "graph/rule/ruleprint.h"
#include "verify/set/canon.h"
#include "verify/set/price.h"
#include "verify/set/reverse.h"
#include "verify/trial.h"

#include <inttypes.h>

typedef struct {
    graft_env *env;
    const graft_ruleset *set;
    graft_rule *rules; /* Reverses to be proved, canonical, */
    uint32_t *origins; /* and the entries that they come from. */
    uint32_t count;
    uint32_t no_reverse;
    uint32_t known; /* In the set, or following from it. */
} turning;

static bool is_listed(const turning *t, const graft_rule *rule)
{
    const uint64_t id = graft_rule_id(rule);
    bool listed = graft_ruleset_find(t->set, id) != NULL;
    for (uint32_t i = 0; i < t->count && !listed; i++) {
        listed = graft_rule_id(&t->rules[i]) == id;
    }
    return listed;
}

static void turn_entry(turning *t, uint32_t i)
{
    const graft_rule_entry *entry = &t->set->entries[i];
    GRAFT_SCOPED(t->env->unit);
    graft_rule reversed;
    if (graft_rule_reverse(&entry->rule, &reversed) != NULL ||
        graft_rule_gain(&reversed) == INT32_MIN || graft_rule_is_trivial(&reversed)) {
        t->no_reverse++;
    } else if (graft_rule_find_reverse(t->env, t->set, entry, &reversed) != NULL) {
        t->known++;
    } else {
        graft_rule_canonicalise(&reversed, NULL);
        if (is_listed(t, &reversed)) {
            t->known++;
        } else {
            t->origins[t->count] = i;
            t->rules[t->count++] = reversed;
        }
    }
}

/* A name that says the operators, with digits of the id behind it: others may have the same. */
static const char *name_reverse(graft_arena *arena, const graft_rule *rule)
{
    return graft_arena_printf(arena, "%s~%08" PRIx64, graft_rule_print_name(arena, rule),
                              graft_rule_id(rule) >> 32);
}

graft_status graft_both_save(graft_env *env, const graft_ruleset *set, const char *path)
{
    graft_trial_options options = graft_trial_defaults();
    turning t = {.env = env,
                 .set = set,
                 .rules = GRAFT_NEW(env->life, graft_rule, set->count),
                 .origins = GRAFT_NEW(env->life, uint32_t, set->count)};
    graft_ruleset both = *set;
    uint32_t proved = 0;
    uint32_t added = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        turn_entry(&t, i);
    }
    options.suggest = false;
    graft_trial *trials = GRAFT_NEW(env->life, graft_trial, t.count);
    graft_rule_entry *entries = GRAFT_NEW(env->life, graft_rule_entry, t.count);
    GRAFT_PASS(graft_trial_run(env, t.rules, t.count, &options, trials));
    for (uint32_t i = 0; i < t.count; i++) {
        if (trials[i].verdict == GRAFT_VERDICT_PROVED) {
            entries[proved++] =
                graft_trial_entry(&t.rules[i], &trials[i], name_reverse(env->life, &t.rules[i]),
                                  set->entries[t.origins[i]].family);
        } else {
            graft_log(env, 1, "the reverse of %s is not proved: %s",
                      set->entries[t.origins[i]].name, trials[i].reason);
        }
    }
    GRAFT_PASS(graft_trial_merge(env, env->life, &both, entries, proved, &added));
    GRAFT_PASS(graft_rulefile_write(env, path, &both));
    graft_log(env, 1,
              "%s: %u reverses added to %u rules; %u were there, %u rules have none, %u not proved",
              path, added, set->count, t.known, t.no_reverse, t.count - proved);
    return GRAFT_OK;
}
