/* command_verify.c - `graft verify` (see command.h). */
#include "verify/command.h"

#include "graph/json.h"
#include "graph/log.h"
#include "graph/options.h"
#include "verify/canon.h"
#include "verify/command_smt.h"
#include "verify/command_unbounded.h"
#include "verify/cover.h"
#include "verify/subsume.h"
#include "verify/trial.h"
#include "verify/userrules.h"

#include <inttypes.h>
#include <string.h>

enum { POINTS_COMPARED = 3 };

static const double ns_per_ms = 1e6;

typedef struct {
    const char *file;
    const char *set;
    const char *smt;
    const char *sample;
    const char *only;
    bool unbounded;
    bool merge;
    bool plain; /* Without suggestions. */
} choices;

typedef struct {
    graft_user_rule *rules;
    graft_rule *bare; /* The same rules, without their names. */
    graft_trial *trials;
    uint32_t count;
} docket;

/* ---------------------------------------------------------------- reporting */

static void print_json(graft_env *env, const graft_user_rule *rule, const graft_trial *trial)
{
    graft_json json;
    bool proved = trial->verdict == GRAFT_VERDICT_PROVED;
    graft_buffer refutation = {.arena = env->unit};
    if (trial->has_refutation) {
        graft_refutation_json(&refutation, &rule->rule, &trial->refutation);
    }
    graft_json_begin(&json, env->unit);
    graft_json_string(&json, "name", rule->name);
    graft_json_string(&json, "verdict", graft_verdict_name(trial->verdict));
    graft_json_string(&json, "proof", proved ? graft_proof_name(trial->check.proof) : NULL);
    if (trial->has_refutation) {
        graft_json_raw(&json, "counterexample", refutation.data);
    } else {
        graft_json_string(&json, "counterexample", NULL);
    }
    graft_json_number(&json, "ms", (double)trial->time_ns / ns_per_ms);
    graft_json_string(&json, "numeric", proved ? graft_numeric_name(trial->check.numeric) : NULL);
    graft_json_integer(&json, "points", trial->check.sweep.agreed);
    graft_json_integer(&json, "cover", proved ? trial->check.cover : 0);
    graft_json_string(&json, "swept", trial->rounded ? "binary64" : "exact");
    graft_json_string(&json, "reason", proved ? NULL : trial->reason);
    graft_json_string(&json, "suggestion", trial->suggestion);
    graft_json_end(&json, stdout);
}

static void print_text(graft_env *env, const graft_user_rule *rule, const graft_trial *trial,
                       bool suggest)
{
    double ms = (double)trial->time_ns / ns_per_ms;
    if (trial->verdict == GRAFT_VERDICT_PROVED) {
        (void)printf("%s: proved (%s, %s; %u instances swept%s%s, %u proved by Z3; %.0f ms)\n",
                     rule->name, graft_proof_name(trial->check.proof),
                     graft_numeric_name(trial->check.numeric), trial->check.sweep.agreed,
                     trial->check.complete ? " (all)" : "", trial->rounded ? " in binary64" : "",
                     trial->check.cover, ms);
        if (trial->check.proof == GRAFT_PROOF_BOUNDED) {
            (void)printf("    not for all sizes: %s\n", trial->check.unbounded.reason);
        }
        return;
    }
    (void)printf("%s: %s (%.0f ms): %s\n", rule->name, graft_verdict_name(trial->verdict), ms,
                 trial->reason);
    if (trial->has_refutation) {
        graft_buffer text = {.arena = env->unit};
        graft_refutation_print(&text, &rule->rule, &trial->refutation);
        (void)fwrite(text.data, 1, text.size, stdout);
    }
    if (trial->suggestion != NULL) {
        (void)printf("    it would be true where %s\n", trial->suggestion);
    } else if (trial->check.outcome == GRAFT_CHECK_REFUTED && suggest) {
        (void)printf("    no single precondition was found that would make it true\n");
    }
}

static uint32_t report(graft_env *env, const docket *d, bool suggest)
{
    uint32_t proved = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        graft_mark mark = graft_arena_mark(env->unit);
        if (env->json) {
            print_json(env, &d->rules[i], &d->trials[i]);
        } else {
            print_text(env, &d->rules[i], &d->trials[i], suggest);
        }
        proved += d->trials[i].verdict == GRAFT_VERDICT_PROVED ? 1 : 0;
        graft_arena_release(env->unit, mark);
    }
    return proved;
}

/* ------------------------------------------------------------------ merging */

/* Whether a rule of the set does the same already. */
static const char *implied_by(graft_env *env, const graft_ruleset *set, const graft_rule *rule,
                              const graft_trial *trial)
{
    graft_point *points = NULL;
    uint32_t count = trial->check.cover < POINTS_COMPARED ? trial->check.cover : POINTS_COMPARED;
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

/* The proved rules in their canonical form, proved again in that form: the certificate names
 * variables and slots by number. */
static graft_status retry_canonical(graft_env *env, const docket *d, docket *canonical)
{
    graft_status status = GRAFT_OK;
    graft_trial_options options = graft_trial_defaults();
    options.suggest = false;
    *canonical = (docket){.rules = GRAFT_NEW(env->life, graft_user_rule, d->count),
                          .bare = GRAFT_NEW(env->life, graft_rule, d->count),
                          .trials = GRAFT_NEW(env->life, graft_trial, d->count)};
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->trials[i].verdict != GRAFT_VERDICT_PROVED) {
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
    GRAFT_CHECK(graft_trial_run(env, env->life, canonical->bare, canonical->count, &options,
                                canonical->trials));
done:
    return status;
}

static graft_status merge(graft_env *env, const docket *d, const char *path)
{
    graft_status status = GRAFT_OK;
    graft_ruleset set;
    docket canonical;
    uint32_t added = 0;
    uint32_t count = 0;
    GRAFT_CHECK(graft_rulefile_read(env, env->life, path, &set));
    GRAFT_CHECK(retry_canonical(env, d, &canonical));
    graft_rule_entry *entries = GRAFT_NEW(env->life, graft_rule_entry, canonical.count);
    for (uint32_t i = 0; i < canonical.count; i++) {
        const graft_trial *trial = &canonical.trials[i];
        const char *other = NULL;
        if (trial->verdict != GRAFT_VERDICT_PROVED) {
            status = GRAFT_FAIL(env, GRAFT_UNDECIDED,
                                "rule '%s' cannot be merged: its canonical form is not proved: %s",
                                canonical.rules[i].name, trial->reason);
            goto done;
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
    GRAFT_CHECK(graft_trial_merge(env, env->life, &set, entries, count, &added));
    GRAFT_CHECK(added > 0 ? graft_rulefile_write(env, path, &set) : GRAFT_OK);
    graft_log(env, 1, "%s: %u rules added, %u in all", path, added, set.count);
done:
    return status;
}

/* ------------------------------------------------------------- command line */

static graft_status read_docket(graft_env *env, const choices *c, docket *d)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(graft_user_rules_read(env, env->life, c->file, &d->rules, &d->count));
    d->bare = GRAFT_NEW(env->life, graft_rule, d->count);
    d->trials = GRAFT_NEW(env->life, graft_trial, d->count);
    for (uint32_t i = 0; i < d->count; i++) {
        d->bare[i] = d->rules[i].rule;
        GRAFT_CHECK(graft_user_rule_check_shapes(env, c->file, &d->rules[i]));
    }
done:
    return status;
}

static graft_status read_choices(graft_env *env, int argc, char **argv, choices *c)
{
    graft_status status = GRAFT_OK;
    const graft_option table[] = {
        {.name = "FILE",         .value = &c->file    },
        {.name = "--merge",      .flag = &c->merge    },
        {.name = "--rules",      .value = &c->set     },
        {.name = "--emit-smt",   .value = &c->smt     },
        {.name = "--sample",     .value = &c->sample  },
        {.name = "--unbounded",  .flag = &c->unbounded},
        {.name = "--only",       .value = &c->only    },
        {.name = "--no-suggest", .flag = &c->plain    },
    };
    GRAFT_CHECK(graft_options_parse(env, argc, argv, table, sizeof table / sizeof table[0]));
    if (c->unbounded) {
        bool alone = c->file == NULL && c->smt == NULL && !c->merge;
        status =
            alone ? GRAFT_OK
                  : GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                               "%s: --unbounded proves the rules of a set (--rules FILE)", argv[0]);
    } else if (c->smt == NULL && c->file == NULL) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: FILE is missing", argv[0]);
    } else if (c->smt != NULL && (c->file != NULL || c->merge || c->plain)) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "%s: --emit-smt writes the obligations of a rule set (--rules FILE); "
                            "it takes no file of users' rules, which can be merged into one",
                            argv[0]);
    } else if (c->smt == NULL && c->sample != NULL) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: --sample needs --emit-smt DIR", argv[0]);
    }
done:
    return status;
}

static graft_status emit_smt(graft_env *env, const choices *c)
{
    graft_status status = GRAFT_OK;
    graft_ruleset set;
    uint64_t sample = 0;
    if (c->sample != NULL) {
        GRAFT_CHECK(graft_options_number(env, "--sample", c->sample, 1, UINT32_MAX, &sample));
    }
    GRAFT_CHECK(graft_rulefile_read(env, env->life, c->set, &set));
    GRAFT_TRY(env, graft_smt_save(env, &set, (uint32_t)sample, c->smt),
              "while writing the obligations of %s", c->set);
done:
    return status;
}

static graft_status prove_unbounded(graft_env *env, const choices *c)
{
    graft_status status = GRAFT_OK;
    graft_ruleset set;
    GRAFT_CHECK(graft_rulefile_read(env, env->life, c->set, &set));
    GRAFT_CHECK(graft_unbounded_report(env, &set, c->only));
done:
    return status;
}

graft_status graft_command_verify(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    choices c = {.set = graft_file_shipped(env, "rules/graft.rules")};
    docket d = {0};
    graft_trial_options options = graft_trial_defaults();
    GRAFT_CHECK(read_choices(env, argc, argv, &c));
    if (c.smt != NULL) {
        return emit_smt(env, &c);
    }
    if (c.unbounded) {
        return prove_unbounded(env, &c);
    }
    options.suggest = !c.plain;
    GRAFT_CHECK(read_docket(env, &c, &d));
    GRAFT_CHECK(graft_trial_run(env, env->life, d.bare, d.count, &options, d.trials));
    uint32_t proved = report(env, &d, options.suggest);
    if (c.merge && proved > 0) {
        GRAFT_CHECK(merge(env, &d, c.set));
    }
    if (proved < d.count) {
        status = GRAFT_FAIL(env, GRAFT_UNDECIDED, "%s: %u of %u rules are not proved", c.file,
                            d.count - proved, d.count);
    }
done:
    return status;
}
