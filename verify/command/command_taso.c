/* command_taso.c - see parts.h. */
#include "verify/command/parts.h"

#include "graph/base/json.h"
#include "graph/rule/ruleprint.h"
#include "verify/command/taso.h"
#include "verify/set/canon.h"
#include "verify/set/derive.h"
#include "verify/trial.h"

#include <string.h>

typedef enum {
    FOUND_IMPLIED,
    FOUND_SAME,
    FOUND_NEW,
    FOUND_WITHIN,
    FOUND_REFUTED,
    FOUND_UNKNOWN,
    FOUND_FOREIGN
} finding;

enum { FINDINGS = FOUND_FOREIGN + 1, NO_TRIAL = UINT32_MAX };

static const char *const finding_names[FINDINGS] = {
    "implied", "same", "proved", "within-bounds", "refuted", "unknown", "not expressible"};

/* One rule of the file. */
typedef struct {
    graft_rule rule;
    const char *why; /* Not expressible: why. */
    const char *by;  /* Implied: the rules of the set. */
    uint32_t trial;  /* Place in `trials`. */
    uint8_t found;   /* finding */
    bool as_equations;
} subject;

typedef struct {
    graft_env *env;
    const graft_ruleset *set;
    subject *subjects;
    uint32_t count;
    graft_rule *rules; /* Those on trial. */
    graft_trial *trials;
    uint32_t trial_count;
    uint32_t tally[FINDINGS];
    uint32_t as_equations; /* Of those implied. */
} inquiry;

/* ------------------------------------------------------------------ implied */

enum { POINTS = 6, ATTEMPTS = 60000 };

/* Appends "merge, then drop": the rules of a derivation. */
static void name_derivation(graft_buffer *out, const graft_ruleset *set,
                            const graft_derivation *derivation)
{
    for (uint32_t i = 0; i < derivation->count; i++) {
        graft_buffer_printf(out, "%s%s", i > 0 ? ", then " : "",
                            set->entries[derivation->steps[i]].name);
    }
}

/* Whether a rule follows at each point; with `right` as equations. `first` are the derivations at
 * the first point: from the source, and then from the target. */
static bool follows(graft_deriver *left, graft_deriver *right, const graft_rulebook *book,
                    const graft_rule *rule, const graft_domain *domain, graft_derivation first[2])
{
    bool does = domain->count > 0;
    for (uint32_t i = 0; i < domain->count && does; i++) {
        const graft_point *point = &domain->points[i];
        graft_derivation sides[2] = {{.count = 0}};
        does = right == NULL ? graft_derive(left, rule, point, book, false, &sides[0])
                             : graft_equate(left, right, rule, point, book, sides);
        if (i == 0) {
            memcpy(first, sides, sizeof sides);
        }
    }
    return does;
}

const char *graft_taso_implied(graft_env *env, graft_arena *arena, const graft_ruleset *set,
                               const graft_rule *rule, bool *as_equations)
{
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 7};
    graft_derivation first[2] = {{.count = 0}};
    graft_buffer by = {.arena = arena};
    graft_rulebook book;
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    GRAFT_SCOPED(env->scratch);
    graft_deriver *left = graft_deriver_new(env->scratch);
    graft_rulebook_open(&book, env->scratch);
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rulebook_add(&book, &set->entries[i].rule, i);
    }
    *as_equations = false;
    if (follows(left, NULL, &book, rule, &domain, first)) {
        name_derivation(&by, set, &first[0]);
    } else if (follows(left, graft_deriver_new(env->scratch), &book, rule, &domain, first)) {
        *as_equations = true;
        for (uint32_t side = 0; side < 2; side++) {
            graft_buffer_printf(&by, "%s by ",
                                side == 0 ? "as equations: from the left" : ", from the right");
            name_derivation(&by, set, &first[side]);
            graft_buffer_printf(&by, "%s", first[side].count == 0 ? "nothing" : "");
        }
    }
    return by.data;
}

/* ------------------------------------------------------------------ inquiry */

static graft_status read_subjects(inquiry *q, const char *path)
{
    graft_env *env = q->env;
    graft_taso_rule *rules = NULL;
    GRAFT_PASS(graft_taso_read(env, env->life, path, &rules, &q->count));
    q->subjects = GRAFT_NEW(env->life, subject, q->count);
    q->rules = GRAFT_NEW(env->life, graft_rule, q->count);
    q->trials = GRAFT_NEW(env->life, graft_trial, q->count);
    for (uint32_t i = 0; i < q->count; i++) {
        subject *s = &q->subjects[i];
        s->trial = NO_TRIAL;
        s->why = graft_taso_import(env, env->life, &rules[i], &s->rule);
        s->found = s->why != NULL                    ? FOUND_FOREIGN
                   : graft_rule_is_trivial(&s->rule) ? FOUND_SAME
                                                     : FOUND_UNKNOWN;
        if (s->found == FOUND_UNKNOWN) {
            s->trial = q->trial_count;
            q->rules[q->trial_count++] = s->rule;
        }
    }
    return GRAFT_OK;
}

static void judge_subject(inquiry *q, subject *s)
{
    if (s->trial == NO_TRIAL) {
        return;
    }
    const graft_trial *trial = &q->trials[s->trial];
    GRAFT_SCOPED(q->env->unit);
    if (trial->verdict == GRAFT_VERDICT_REFUTED) {
        s->found = FOUND_REFUTED;
    } else {
        s->by = graft_taso_implied(q->env, q->env->life, q->set, &s->rule, &s->as_equations);
        s->found = s->by != NULL                                   ? FOUND_IMPLIED
                   : trial->verdict == GRAFT_VERDICT_PROVED        ? FOUND_NEW
                   : trial->verdict == GRAFT_VERDICT_WITHIN_BOUNDS ? FOUND_WITHIN
                                                                   : FOUND_UNKNOWN;
    }
}

/* ---------------------------------------------------------------- reporting */

static const char *subject_reason(const inquiry *q, const subject *s)
{
    switch ((finding)s->found) {
    case FOUND_IMPLIED:
        return s->by;
    case FOUND_SAME:
        return "both sides are the same operators here";
    case FOUND_NEW:
        return "it was not derived from the set";
    case FOUND_WITHIN:
    case FOUND_REFUTED:
    case FOUND_UNKNOWN:
        return q->trials[s->trial].reason;
    case FOUND_FOREIGN:
        break;
    }
    return s->why;
}

static void print_json(const inquiry *q, uint32_t i)
{
    const subject *s = &q->subjects[i];
    graft_env *env = q->env;
    const graft_trial *refuted = s->found == FOUND_REFUTED ? &q->trials[s->trial] : NULL;
    graft_json_print(
        env->unit, stdout, "rule=%u finding=%s reason=%s text=%s counterexample=(%s) suggestion=%s",
        i, finding_names[s->found], subject_reason(q, s),
        s->why == NULL ? graft_rule_print_line(env->unit, &s->rule) : NULL,
        refuted == NULL ? "null" : graft_trial_refutation_json(env->unit, &s->rule, refuted),
        refuted == NULL ? NULL : refuted->suggestion);
}

static void print_text(const inquiry *q, uint32_t i)
{
    const subject *s = &q->subjects[i];
    (void)printf("rule %u: %s: %s\n", i, finding_names[s->found], subject_reason(q, s));
    if (s->why == NULL) {
        (void)printf("    %s\n", graft_rule_print_line(q->env->unit, &s->rule));
    }
    if (s->found == FOUND_REFUTED && q->trials[s->trial].has_refutation) {
        graft_buffer text = {.arena = q->env->unit};
        graft_refutation_print(&text, &s->rule, &q->trials[s->trial].refutation);
        (void)fwrite(text.data, 1, text.size, stdout);
    }
    if (s->found == FOUND_REFUTED && q->trials[s->trial].suggestion != NULL) {
        (void)printf("    it would be true where %s\n", q->trials[s->trial].suggestion);
    }
}

static void print_summary(const inquiry *q)
{
    if (q->env->json) {
        graft_json json;
        graft_json_begin(&json, q->env->unit);
        graft_json_integer(&json, "rules", q->count);
        for (uint32_t f = 0; f < FINDINGS; f++) {
            graft_json_integer(&json, finding_names[f], q->tally[f]);
        }
        graft_json_integer(&json, "as-equations", q->as_equations);
        graft_json_end(&json, stdout);
        return;
    }
    (void)printf("%u rules: %u implied by the set (%u of them as equations), %u the same on both "
                 "sides, %u proved but not "
                 "implied, %u within bounds, %u refuted, %u unknown, %u not expressible\n",
                 q->count, q->tally[FOUND_IMPLIED], q->as_equations, q->tally[FOUND_SAME],
                 q->tally[FOUND_NEW], q->tally[FOUND_WITHIN], q->tally[FOUND_REFUTED],
                 q->tally[FOUND_UNKNOWN], q->tally[FOUND_FOREIGN]);
}

graft_status graft_taso_report(graft_env *env, const graft_ruleset *set, const char *path)
{
    graft_trial_options options = graft_trial_defaults();
    inquiry q = {.env = env, .set = set};
    uint32_t killed = 0;
    GRAFT_PASS(read_subjects(&q, path));
    GRAFT_PASS(graft_trial_run(env, q.rules, q.trial_count, &options, q.trials));
    for (uint32_t i = 0; i < q.count; i++) {
        judge_subject(&q, &q.subjects[i]);
        q.tally[q.subjects[i].found]++;
        q.as_equations += q.subjects[i].as_equations ? 1 : 0;
        GRAFT_SCOPED(env->unit);
        if (env->json) {
            print_json(&q, i);
        } else {
            print_text(&q, i);
        }
    }
    print_summary(&q);
    for (uint32_t i = 0; i < q.trial_count; i++) {
        killed += q.trials[i].was_killed ? 1 : 0;
    }
    return killed == 0 ? GRAFT_OK
                       : GRAFT_FAIL(env, GRAFT_UNDECIDED, "%s: %u rules were killed for their time",
                                    path, killed);
}
