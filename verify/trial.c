/* trial.c - see trial.h. An answer is a graft_trial, then what it points to: the inputs of the
 * counterexample, the certificate's points, the suggestion and the reason. */
#include "verify/trial.h"

#include "graph/base/log.h"
#include "verify/lift/suggest.h"
#include "verify/pool.h"
#include "verify/sweep/choices.h"
#include "verify/sweep/named.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t limit_default_ns = UINT64_C(120000000000);

graft_trial_options graft_trial_defaults(void)
{
    return (graft_trial_options){
        .check = graft_check_defaults(), .limit_ns = limit_default_ns, .suggest = true};
}

typedef struct {
    const graft_rule *rules;
    const graft_trial_options *options;
    const graft_sweeper *sweeper;
    const graft_sweeper *rounded; /* In binary64. */
    graft_arena *arena;           /* The parent's, and what it knows while they run. */
    graft_trial *trials;
} court;

/* ------------------------------------------------------------------- child */

static bool find_refutation(graft_env *env, const court *c, const graft_rule *rule,
                            const graft_check *check, graft_refutation *refutation)
{
    if (check->outcome == GRAFT_CHECK_REFUTED) {
        graft_refute(env, c->sweeper, rule, &check->sweep.counterexample, refutation);
        return true;
    }
    bool caught = check->outcome == GRAFT_CHECK_UNKNOWN &&
                  strcmp(check->prove.reason, GRAFT_PROVE_CAUGHT) == 0;
    return (check->outcome == GRAFT_CHECK_SAT || caught) && check->prove.failed < check->cover &&
           graft_refute_point(env, rule, &check->instances[check->prove.failed], refutation);
}

/* Whether a difference is one of the exact arithmetic, which lacks a law of a function, alone. */
static bool may_lack_a_law(const graft_rule *rule, const graft_trial *t)
{
    return t->check.outcome == GRAFT_CHECK_REFUTED && !t->refutation.replayed &&
           graft_refute_needs_laws(rule);
}

/* Sweeps in binary64 what the exact arithmetic cannot; takes a proof for all sizes, which does not
 * rest on sweeps, or a difference that binary32 shows. */
static void try_rounded(graft_env *env, const court *c, const graft_rule *rule, graft_trial *t)
{
    graft_check check;
    graft_check_rule(&(graft_checking){env, c->rounded, &c->options->check, rule, NULL}, &check);
    if (check.outcome == GRAFT_CHECK_PROVED && check.proof == GRAFT_PROOF_UNBOUNDED) {
        t->check = check;
        t->has_refutation = false;
        t->rounded = true;
    } else if (check.outcome == GRAFT_CHECK_REFUTED) {
        graft_refutation shown;
        graft_refute(env, c->rounded, rule, &check.sweep.counterexample, &shown);
        if (shown.replayed) {
            t->check = check;
            t->refutation = shown;
        }
    }
}

/* What the solver says of itself in its own words, in plain ones; our own as they are. */
static const char *explain_solver(const char *reason)
{
    static const struct {
        const char *part;
        const char *plain;
    } words[] = {
        {"incomplete",     "products of unknown numbers are past its procedures"},
        {"resource limit", "one question took more than its share"              },
        {"canceled",       "one question took more than its share"              },
        {"memory",         "it ran out of memory"                               },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(reason, words[i].part) != NULL) {
            return words[i].plain;
        }
    }
    return reason[0] == '\0' ? "no reason given" : reason;
}

static const char *explain_unknown(graft_arena *arena, const graft_check *check)
{
    const char *unbounded = check->unbounded.reason;
    switch ((graft_check_outcome)check->outcome) {
    case GRAFT_CHECK_THIN:
        return graft_arena_printf(
            arena,
            "only %u instances within the bounds (sizes to 4, images to 6, ranks to 4), %u of them "
            "undecided, and %u past them: too few to say anything%s%s",
            check->points, check->sweep.undecided, check->past,
            unbounded[0] == '\0' ? "" : "; not proved for all sizes: ", unbounded);
    case GRAFT_CHECK_UNKNOWN:
        return graft_arena_printf(arena, "the solver gave up: %s",
                                  explain_solver(check->prove.reason));
    case GRAFT_CHECK_SAT:
        return "the solver says that real numbers exist for which the sides differ, or for which "
               "only the source is defined; whole numbers that do were not found";
    case GRAFT_CHECK_SWEPT:
    case GRAFT_CHECK_PROVED:
    case GRAFT_CHECK_REFUTED:
    case GRAFT_CHECK_RESTRICTED:
        break;
    }
    return "";
}

/* Whether it may fail at a number that it names and that nothing was tried at. */
static bool names_past(const graft_rule *rule)
{
    graft_named named;
    graft_named_read(rule, &named);
    return named.is_past;
}

static graft_verdict judge(const graft_rule *rule, const graft_trial *t)
{
    if (t->check.outcome == GRAFT_CHECK_PROVED) {
        return t->check.proof == GRAFT_PROOF_UNBOUNDED ? GRAFT_VERDICT_PROVED
               : names_past(rule)                      ? GRAFT_VERDICT_UNKNOWN
                                                       : GRAFT_VERDICT_WITHIN_BOUNDS;
    }
    bool shown = t->has_refutation && t->refutation.replayed;
    /* And not by a divisor of which nothing was assumed. */
    const bool differs = t->check.outcome == GRAFT_CHECK_SAT &&
                         !graft_pattern_has(&rule->source, GRAFT_OP_div) &&
                         !graft_pattern_has(&rule->target, GRAFT_OP_div);
    if (t->check.outcome != GRAFT_CHECK_REFUTED && !differs && !shown) {
        return GRAFT_VERDICT_UNKNOWN;
    }
    return shown || !graft_refute_needs_laws(rule) ? GRAFT_VERDICT_REFUTED : GRAFT_VERDICT_UNKNOWN;
}

static void conclude(graft_env *env, const graft_rule *rule, graft_trial *t)
{
    t->verdict = (uint8_t)judge(rule, t);
    t->reason = explain_unknown(env->unit, &t->check);
    if (t->verdict == GRAFT_VERDICT_WITHIN_BOUNDS) {
        t->reason = graft_arena_printf(env->unit, "not proved for all sizes: %s",
                                       t->check.unbounded.reason);
    } else if (t->verdict == GRAFT_VERDICT_REFUTED && t->has_refutation) {
        t->reason = "the sides differ";
    } else if (t->verdict == GRAFT_VERDICT_UNKNOWN && t->has_refutation) {
        t->has_refutation = false;
        t->reason = "nothing refutes it: where the exact arithmetic tells the sides apart, "
                    "binary32 does not, so either a law of exp, sqrt, erf or their kin is missing "
                    "(docs/verification.md) or rounding hides a difference";
    } else if (t->check.outcome == GRAFT_CHECK_PROVED && t->verdict == GRAFT_VERDICT_UNKNOWN) {
        t->reason = graft_arena_printf(env->unit,
                                       "it names a number beyond what is tried (%d), and is not "
                                       "proved for all sizes: %s",
                                       GRAFT_NAMED_MOST, t->check.unbounded.reason);
    }
}

/* Whether a rule cannot be tried or, when it was, has no instances; the trial says why. */
static bool is_faulty(graft_env *env, const court *c, uint32_t index, bool tried, graft_trial *t)
{
    const char *fault = c->options->examine == NULL
                            ? NULL
                            : c->options->examine(env, c->options->context, index, tried);
    if (fault != NULL) {
        memset(t, 0, sizeof *t);
        t->verdict = GRAFT_VERDICT_ERROR;
        t->reason = fault;
    }
    return fault != NULL;
}

static void try_rule(graft_env *env, const court *c, uint32_t index, graft_trial *t)
{
    const graft_rule *rule = &c->rules[index];
    const graft_check_options *options = &c->options->check;
    uint64_t start_ns = graft_clock_ns();
    memset(t, 0, sizeof *t);
    if (is_faulty(env, c, index, false, t)) {
        return;
    }
    graft_check_rule(&(graft_checking){env, c->sweeper, options, rule, NULL}, &t->check);
    if (t->check.outcome == GRAFT_CHECK_THIN && t->check.past == 0 &&
        is_faulty(env, c, index, true, t)) {
        return;
    }
    t->has_refutation = find_refutation(env, c, rule, &t->check, &t->refutation);
    if (may_lack_a_law(rule, t)) {
        try_rounded(env, c, rule, t);
    }
    if (t->check.outcome == GRAFT_CHECK_REFUTED && c->options->suggest) {
        t->suggestion = graft_suggest_condition(env, c->sweeper, rule, options);
    }
    conclude(env, rule, t);
    t->time_ns = graft_clock_ns() - start_ns;
}

static void try_item(graft_env *env, void *context, const graft_pool_item *item,
                     graft_buffer *answer)
{
    const court *c = context;
    graft_trial t;
    try_rule(env, c, item->index, &t);
    graft_buffer_append(answer, &t, sizeof t);
    for (uint32_t v = 0; t.has_refutation && v < c->rules[item->index].var_count; v++) {
        graft_buffer_append(answer, t.refutation.values[v],
                            graft_shape_elements(&t.refutation.point.vars[v]) * sizeof(float));
    }
    graft_buffer_append(answer, t.check.cover_points, t.check.cover_bytes);
    if (t.suggestion != NULL) {
        graft_buffer_append(answer, t.suggestion, strlen(t.suggestion) + 1);
    }
    graft_buffer_append(answer, t.reason, strlen(t.reason) + 1);
}

/* ------------------------------------------------------------------ parent */

static const void *take_bytes(uint8_t **at, size_t size)
{
    const void *taken = *at;
    *at += size;
    return taken;
}

/* What the trial points to stays in the answer. */
static void take_answer(const graft_rule *rule, const graft_pool_result *result, graft_trial *t)
{
    uint8_t *at = result->answer;
    memcpy(t, take_bytes(&at, sizeof *t), sizeof *t);
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        bool has = t->has_refutation && v < rule->var_count;
        uint64_t count = has ? graft_shape_elements(&t->refutation.point.vars[v]) : 0;
        t->refutation.values[v] = has ? take_bytes(&at, count * sizeof(float)) : NULL;
    }
    t->check.instances = NULL; /* They were the child's. */
    t->check.cover_points = at;
    at += t->check.cover_bytes;
    if (t->suggestion != NULL) {
        t->suggestion = take_bytes(&at, strlen((const char *)at) + 1);
    }
    t->reason = (const char *)at;
}

static void settle(void *taker, uint32_t index, const graft_pool_result *result)
{
    const court *c = taker;
    graft_trial *trial = &c->trials[index];
    uint64_t limit_ns = c->options->limit_ns;
    *trial = (graft_trial){.verdict = GRAFT_VERDICT_UNKNOWN, .reason = ""};
    if (result->outcome == GRAFT_POOL_DONE) {
        take_answer(&c->rules[index], result, trial);
    } else if (result->outcome == GRAFT_POOL_KILLED) {
        trial->was_killed = true;
        trial->time_ns = limit_ns;
        trial->reason =
            graft_arena_printf(c->arena, "killed after %u s", (uint32_t)(limit_ns / 1000000000u));
    } else {
        trial->reason =
            graft_arena_printf(c->arena, "the solver %s", graft_pool_outcome_name(result->outcome));
    }
    if (c->options->stands != NULL) {
        c->options->stands(c->options->context, index, trial);
    }
}

graft_status graft_trial_run(graft_env *env, const graft_rule *rules, uint32_t count,
                             const graft_trial_options *options, graft_trial *trials)
{
    GRAFT_SCOPED(env->scratch);
    graft_sweeper *sweepers = GRAFT_NEW(env->scratch, graft_sweeper, 2);
    graft_pool_result *results = GRAFT_NEW(env->scratch, graft_pool_result, count);
    court c = {rules, options, &sweepers[0], &sweepers[1], env->life, trials};
    graft_pool_job job = {.label = "verify",
                          .unit = "rules",
                          .item_count = count,
                          .limit_ns = options->limit_ns,
                          .memory_bytes = graft_pool_prover_bytes,
                          .is_fresh = true,
                          .run = try_item,
                          .context = &c,
                          .take = settle,
                          .taker = &c};
    graft_sweep_open(&sweepers[0]);
    graft_sweep_open(&sweepers[1]);
    sweepers[1].rounded = true;
    return graft_pool_run(env, env->life, &job, results);
}

/* ------------------------------------------------------------------- bounds */

const char *graft_trial_bounds(graft_arena *arena, const graft_trial *trial)
{
    const graft_check *check = &trial->check;
    return graft_arena_printf(
        arena,
        "%u instances%s swept with sizes to %d (images to %d) and ranks to %d, thousands more with "
        "sizes to %d and ranks to %d, none differs; %u proved by Z3",
        check->sweep.agreed, check->complete ? ", all that there are," : "", GRAFT_SIZE_MOST,
        GRAFT_IMAGE_MOST, GRAFT_RANK_MOST, GRAFT_NAMED_MOST, GRAFT_MAX_RANK, check->cover);
}

const char *graft_trial_bounds_json(graft_arena *arena, const graft_trial *trial)
{
    const graft_check *check = &trial->check;
    return graft_arena_printf(arena,
                              "{\"instances\": %u, \"all\": %s, \"proved\": %u, \"size\": %d, "
                              "\"image\": %d, \"rank\": %d, "
                              "\"size_past\": %d, \"rank_past\": %d}",
                              check->sweep.agreed, check->complete ? "true" : "false", check->cover,
                              GRAFT_SIZE_MOST, GRAFT_IMAGE_MOST, GRAFT_RANK_MOST, GRAFT_NAMED_MOST,
                              GRAFT_MAX_RANK);
}

const char *graft_trial_refutation_json(graft_arena *arena, const graft_rule *rule,
                                        const graft_trial *trial)
{
    graft_buffer text = {.arena = arena};
    if (!trial->has_refutation) {
        return "null";
    }
    graft_refutation_json(&text, rule, &trial->refutation);
    return text.data;
}

/* ------------------------------------------------------------------ merging */

graft_rule_entry graft_trial_entry(const graft_rule *rule, const graft_trial *trial,
                                   const char *name, const char *family)
{
    graft_rule_entry entry = graft_check_entry(&trial->check, rule);
    entry.name = name;
    entry.family = family;
    return entry;
}

/* Whether the content is in the set; fails when only the name is. */
static graft_status find_entry(graft_env *env, const graft_ruleset *set,
                               const graft_rule_entry *entry, bool *found)
{
    *found = graft_ruleset_find(set, entry->id) != NULL;
    for (uint32_t i = 0; i < set->count && !*found; i++) {
        if (strcmp(set->entries[i].name, entry->name) == 0) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the set has another rule named '%s'",
                              entry->name);
        }
    }
    return GRAFT_OK;
}

graft_status graft_trial_merge(graft_env *env, graft_arena *arena, graft_ruleset *set,
                               const graft_rule_entry *entries, uint32_t count, uint32_t *added)
{
    graft_ruleset larger = *set;
    larger.entries = GRAFT_NEW(arena, graft_rule_entry, (size_t)set->count + count);
    if (set->count > 0) {
        memcpy(larger.entries, set->entries, set->count * sizeof *set->entries);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool found = false;
        GRAFT_PASS(find_entry(env, &larger, &entries[i], &found));
        if (!found) {
            larger.entries[larger.count++] = entries[i];
        }
    }
    qsort(larger.entries, larger.count, sizeof *larger.entries, graft_rule_entry_compare);
    *added = larger.count - set->count;
    *set = larger;
    return GRAFT_OK;
}
