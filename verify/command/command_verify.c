/* command_verify.c - `graft verify` (see command.h). */
#include "verify/command/command.h"

#include "graph/base/json.h"
#include "graph/base/log.h"
#include "verify/command/listing.h"
#include "verify/command/parts.h"
#include "verify/command/userrules.h"
#include "verify/set/canon.h"
#include "verify/set/derive.h"
#include "verify/set/price.h"
#include "verify/sweep/cover.h"
#include "verify/trial.h"

#include <string.h>

static const double ns_per_ms = 1e6;

typedef struct {
    const char *file;
    const char *set;
    const char *smt;
    uint32_t sample;
    const char *only;
    bool unbounded;
    bool merge;
    bool accept; /* Merge what holds within bounds, too. */
    bool plain;  /* Without suggestions. */
} choices;

typedef struct {
    graft_env *env;
    const choices *choices;
    graft_user_rule *rules;
    graft_rule *bare; /* The same rules, without their names. */
    graft_trial *trials;
    uint32_t count;
    uint32_t verdicts[GRAFT_VERDICT_ERROR + 1]; /* How many got each. */
} docket;

/* ---------------------------------------------------------------- reporting */

static void print_json(graft_env *env, const graft_user_rule *rule, const graft_trial *trial)
{
    bool proved = trial->verdict == GRAFT_VERDICT_PROVED;
    bool bounded = trial->verdict == GRAFT_VERDICT_WITHIN_BOUNDS;
    bool holds = proved || bounded;
    graft_json_print(
        env->unit, stdout,
        "name=%s verdict=%s proof=%s counterexample=(%s) ms=%g numeric=%s points=%u cover=%u "
        "swept=%s bounds=(%s) reason=%s suggestion=%s",
        rule->name[0] == '\0' ? NULL : rule->name, graft_verdict_name(trial->verdict),
        holds ? graft_proof_name(trial->check.proof) : NULL,
        graft_user_rule_retell(env->unit, rule,
                               graft_trial_refutation_json(env->unit, &rule->rule, trial)),
        (double)trial->time_ns / ns_per_ms, holds ? graft_numeric_name(trial->check.numeric) : NULL,
        trial->check.sweep.agreed, holds ? trial->check.cover : 0,
        trial->rounded ? "binary64" : "exact",
        bounded ? graft_trial_bounds_json(env->unit, trial) : "null", proved ? NULL : trial->reason,
        trial->suggestion == NULL ? NULL
                                  : graft_user_rule_retell(env->unit, rule, trial->suggestion));
}

static void print_refutation(graft_env *env, const graft_user_rule *rule, const graft_trial *trial,
                             bool suggest)
{
    if (trial->has_refutation) {
        graft_buffer text = {.arena = env->unit};
        graft_refutation_print(&text, &rule->rule, &trial->refutation);
        (void)fputs(graft_user_rule_retell(env->unit, rule, text.data), stdout);
    }
    if (trial->suggestion != NULL) {
        (void)printf("    it would be true where %s\n",
                     graft_user_rule_retell(env->unit, rule, trial->suggestion));
    } else if (trial->check.outcome == GRAFT_CHECK_REFUTED && suggest) {
        (void)printf("    no single precondition was found that would make it true\n");
    }
}

static void print_text(graft_env *env, const graft_user_rule *rule, const graft_trial *trial,
                       bool suggest)
{
    double ms = (double)trial->time_ns / ns_per_ms;
    const graft_check *check = &trial->check;
    const char *numeric = graft_numeric_name(check->numeric);
    if (trial->verdict == GRAFT_VERDICT_PROVED) {
        (void)printf("%s: proved (%s; %u instances swept%s%s, %u proved by Z3; %.0f ms)\n",
                     rule->name, numeric, check->sweep.agreed, check->complete ? " (all)" : "",
                     trial->rounded ? " in binary64" : "", check->cover, ms);
    } else if (trial->verdict == GRAFT_VERDICT_WITHIN_BOUNDS) {
        (void)printf("%s: holds within bounds (%s; %s; %.0f ms)\n    %s\n", rule->name, numeric,
                     graft_trial_bounds(env->unit, trial), ms, trial->reason);
    } else if (trial->verdict == GRAFT_VERDICT_ERROR) {
        (void)printf("%s%serror: %s\n", rule->name, rule->name[0] == '\0' ? "" : ": ",
                     trial->reason);
    } else {
        (void)printf("%s: %s (%.0f ms): %s\n", rule->name, graft_verdict_name(trial->verdict), ms,
                     trial->reason);
        print_refutation(env, rule, trial, suggest);
    }
}

/* Prints a verdict as soon as it stands: whoever interrupts the program has what it knew. */
static void report(void *context, uint32_t index, const graft_trial *trial)
{
    docket *d = context;
    graft_env *env = d->env;
    GRAFT_SCOPED(env->unit);
    if (env->json) {
        print_json(env, &d->rules[index], trial);
    } else {
        print_text(env, &d->rules[index], trial, !d->choices->plain);
    }
    (void)fflush(stdout);
    d->verdicts[trial->verdict]++;
}

/* What all verdicts come to: bad input before false rules, these before undecided ones. */
static graft_status conclude(const docket *d)
{
    const uint32_t *v = d->verdicts;
    graft_status status = v[GRAFT_VERDICT_ERROR] > 0           ? GRAFT_BAD_INPUT
                          : v[GRAFT_VERDICT_REFUTED] > 0       ? GRAFT_REFUTED
                          : v[GRAFT_VERDICT_PROVED] < d->count ? GRAFT_UNDECIDED
                                                               : GRAFT_OK;
    if (status != GRAFT_OK) {
        status = GRAFT_FAIL(d->env, status,
                            "%s: %u of %u rules are not proved: %u refuted, %u within bounds, %u "
                            "unknown, %u that cannot be tried",
                            d->choices->file, d->count - v[GRAFT_VERDICT_PROVED], d->count,
                            v[GRAFT_VERDICT_REFUTED], v[GRAFT_VERDICT_WITHIN_BOUNDS],
                            v[GRAFT_VERDICT_UNKNOWN], v[GRAFT_VERDICT_ERROR]);
    }
    return status;
}

/* ------------------------------------------------------------------ merging */

/* A rule of the set that does the same already, at each instance that Z3 was asked about: at a few
 * of them a slice may be of all that there is, and any rule that drops it seems to do. */
static const char *implied_by(graft_env *env, const graft_ruleset *set, const graft_rule *rule,
                              const graft_trial *trial)
{
    graft_point *points = NULL;
    const uint32_t count = trial->check.cover;
    if (!graft_cover_unpack(env->unit, rule, trial->check.cover_points, trial->check.cover_bytes,
                            trial->check.cover, &points)) {
        return NULL;
    }
    for (uint32_t i = 0; i < set->count && count > 0; i++) {
        if (graft_rule_follows(env, rule, points, count, &set->entries[i].rule)) {
            return set->entries[i].name;
        }
    }
    return NULL;
}

/* Whether a rule with this verdict may be merged. */
static bool is_wanted(const docket *d, const graft_trial *trial)
{
    return trial->verdict == GRAFT_VERDICT_PROVED ||
           (d->choices->accept && trial->verdict == GRAFT_VERDICT_WITHIN_BOUNDS);
}

/* The wanted rules in their canonical form, proved again in that form: the certificate names
 * variables and slots by number. */
static graft_status retry_canonical(graft_env *env, const docket *d, docket *canonical)
{
    graft_trial_options options = graft_trial_defaults();
    options.suggest = false;
    *canonical = (docket){.rules = GRAFT_NEW(env->life, graft_user_rule, d->count),
                          .bare = GRAFT_NEW(env->life, graft_rule, d->count),
                          .trials = GRAFT_NEW(env->life, graft_trial, d->count)};
    for (uint32_t i = 0; i < d->count; i++) {
        if (!is_wanted(d, &d->trials[i])) {
            continue;
        }
        graft_rule *rule = &canonical->bare[canonical->count];
        *rule = d->bare[i];
        if (graft_rule_is_trivial(rule) || graft_rule_gain(rule) == INT32_MIN) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "rule '%s' cannot be merged: %s",
                              d->rules[i].name,
                              graft_rule_is_trivial(rule)
                                  ? "its sides are the same"
                                  : "its outputs depend on no input, so that it never applies");
        }
        graft_rule_canonicalise(rule, NULL);
        canonical->rules[canonical->count++] = d->rules[i];
    }
    return graft_trial_run(env, canonical->bare, canonical->count, &options, canonical->trials);
}

static graft_status merge(graft_env *env, const docket *d, const char *path)
{
    graft_ruleset set;
    docket canonical;
    uint32_t added = 0;
    uint32_t count = 0;
    if (!d->choices->accept && d->verdicts[GRAFT_VERDICT_WITHIN_BOUNDS] > 0) {
        graft_log(env, 1,
                  "%u rules that hold within bounds are not merged; --accept-within-bounds takes "
                  "them",
                  d->verdicts[GRAFT_VERDICT_WITHIN_BOUNDS]);
    }
    GRAFT_PASS(graft_rulefile_read(env, env->life, path, &set));
    GRAFT_PASS(retry_canonical(env, d, &canonical));
    graft_rule_entry *entries = GRAFT_NEW(env->life, graft_rule_entry, canonical.count);
    for (uint32_t i = 0; i < canonical.count; i++) {
        const graft_trial *trial = &canonical.trials[i];
        const char *other = NULL;
        if (!is_wanted(d, trial)) {
            return GRAFT_FAIL(env, GRAFT_UNDECIDED,
                              "rule '%s' cannot be merged: its canonical form is not proved: %s",
                              canonical.rules[i].name, trial->reason);
        }
        other = implied_by(env, &set, &canonical.bare[i], trial);
        if (other != NULL) {
            graft_log(env, 1, "rule '%s' is not merged: it follows from %s of the set",
                      canonical.rules[i].name, other);
            continue;
        }
        entries[count++] = graft_trial_entry(&canonical.bare[i], trial, canonical.rules[i].name,
                                             canonical.rules[i].family);
    }
    GRAFT_PASS(graft_trial_merge(env, env->life, &set, entries, count, &added));
    GRAFT_PASS(added > 0 ? graft_rulefile_write(env, path, &set) : GRAFT_OK);
    graft_log(env, 1, "%s: %u rules added, %u in all", path, added, set.count);
    return GRAFT_OK;
}

/* ------------------------------------------------------------- command line */

/* Keeps the rule that --only names. */
static graft_status keep_only(graft_env *env, const char *only, docket *d)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        const graft_user_rule *rule = &d->rules[i];
        uint64_t id = rule->fault == NULL ? graft_rule_id(&rule->rule) : 0;
        if (graft_listing_names(only, rule->name, id)) {
            d->rules[count++] = *rule;
        }
    }
    d->count = count;
    return count > 0 ? GRAFT_OK
                     : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: no rule with the name or id '%s'",
                                  d->choices->file, only);
}

/* Reads the rules of the file; those that cannot be read get their verdict with the others. */
static graft_status read_docket(graft_env *env, docket *d)
{
    const choices *c = d->choices;
    GRAFT_PASS(graft_user_rules_read(env, env->life, c->file, &d->rules, &d->count));
    if (c->only != NULL) {
        GRAFT_PASS(keep_only(env, c->only, d));
    }
    d->bare = GRAFT_NEW(env->life, graft_rule, d->count);
    d->trials = GRAFT_NEW(env->life, graft_trial, d->count);
    for (uint32_t i = 0; i < d->count; i++) {
        d->bare[i] = d->rules[i].rule;
    }
    return GRAFT_OK;
}

static const char *examine(graft_env *env, const void *context, uint32_t index, bool tried)
{
    const docket *d = context;
    const graft_user_rule *rule = &d->rules[index];
    if (rule->fault != NULL || !tried) {
        return rule->fault;
    }
    return graft_user_rule_check_shapes(env, d->choices->file, rule) == GRAFT_OK ? NULL
                                                                                 : env->message;
}

static const graft_option options_taken[] = {
    GRAFT_WORD(choices, file, "[FILE]", "rules to prove or refute (docs/rule-format.md)"),
    GRAFT_FLAG(choices, merge, "--merge", "add what is proved and does not follow to the set"),
    GRAFT_SHIPPED(choices, set, "--rules", "FILE", "rules/graft.rules", "the rule set"),
    GRAFT_TEXT(choices, smt, "--emit-smt", "FOLDER", NULL, "write the obligations of the rule set"),
    GRAFT_NUMBER(choices, sample, "--sample", "N", NULL, 1, UINT32_MAX,
                 "with --emit-smt: N rules, spread over the set"),
    GRAFT_FLAG(choices, unbounded, "--unbounded", "prove the rule set for all sizes again"),
    GRAFT_TEXT(choices, only, "--only", "NAME", NULL, "one rule, by name or identity"),
    GRAFT_FLAG(choices, plain, "--no-suggest", "look for no missing precondition"),
    GRAFT_FLAG(choices, accept, "--accept-within-bounds",
               "with --merge: also what holds within bounds only"),
};

static graft_status judge_choices(graft_env *env, const choices *c)
{
    const char *fault = NULL;
    if (c->unbounded) {
        bool alone = c->file == NULL && c->smt == NULL && !c->merge;
        fault = alone ? NULL : "--unbounded proves the rules of a set (--rules FILE)";
    } else if (c->smt == NULL && c->file == NULL) {
        fault = "FILE is missing";
    } else if (c->smt != NULL && (c->file != NULL || c->merge || c->plain)) {
        fault = "--emit-smt writes the obligations of a rule set (--rules FILE); "
                "it takes no file of users' rules, which can be merged into one";
    } else if (c->sample > 0 && (c->smt == NULL || c->only != NULL)) {
        fault = "--sample needs --emit-smt DIR, not --only";
    } else if (c->accept && !c->merge) {
        fault = "--accept-within-bounds needs --merge";
    }
    return fault == NULL ? GRAFT_OK : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "verify: %s", fault);
}

static graft_status emit_smt(graft_env *env, const choices *c)
{
    graft_status status = GRAFT_OK;
    graft_ruleset set;
    GRAFT_CHECK(graft_rulefile_read(env, env->life, c->set, &set));
    if (c->only != NULL) {
        const graft_rule_entry *entry = NULL;
        GRAFT_CHECK(graft_listing_find(env, &set, c->only, &entry));
        set.entries[0] = *entry;
        set.count = 1;
    }
    GRAFT_TRY(env, graft_smt_save(env, &set, c->sample, c->smt),
              "while writing the obligations of %s", c->set);
done:
    return status;
}

static graft_status prove_unbounded(graft_env *env, const choices *c)
{
    graft_ruleset set;
    GRAFT_PASS(graft_rulefile_read(env, env->life, c->set, &set));
    return graft_unbounded_report(env, &set, c->only);
}

static graft_status verify_file(graft_env *env, const choices *c)
{
    docket d = {.env = env, .choices = c};
    graft_trial_options options = graft_trial_defaults();
    options.suggest = !c->plain;
    options.examine = examine;
    options.stands = report;
    options.context = &d;
    GRAFT_PASS(read_docket(env, &d));
    GRAFT_PASS(graft_trial_run(env, d.bare, d.count, &options, d.trials));
    if (c->merge) {
        GRAFT_PASS(merge(env, &d, c->set));
    }
    return conclude(&d);
}

static graft_status run(graft_env *env, void *given)
{
    const choices *c = given;
    GRAFT_PASS(judge_choices(env, c));
    return c->smt != NULL ? emit_smt(env, c)
           : c->unbounded ? prove_unbounded(env, c)
                          : verify_file(env, c);
}

const graft_command graft_command_verify = {
    .name = "verify",
    .summary = "prove or refute rules that you wrote",
    .forms = "graft verify FILE.yaml [--merge]              prove or refute rules\n"
             "graft verify --emit-smt FOLDER [--sample N]   write the obligations of a rule set\n"
             "graft verify --unbounded                      prove the rules of a set for all sizes "
             "again",
    .notes =
        "Each rule gets its verdict as soon as it stands: proved (for all sizes and all values "
        "of\nattributes), within-bounds (swept and proved at instances; the bounds are "
        "printed), refuted,\nunknown, or error (it cannot be read or has no instances, and "
        "the exit status is 2).",
    .failed = "some rule is refuted",
    .undecided = "no rule is refuted, and some is unknown or holds within bounds only",
    GRAFT_TAKES(choices, options_taken),
    .run = run,
};
