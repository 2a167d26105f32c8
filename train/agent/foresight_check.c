/* foresight_check.c - see foresight_check.h. */
#include "train/agent/foresight_check.h"

#include <math.h>

const uint32_t graft_foresight_horizons[GRAFT_FORESIGHT_HORIZONS] = {1, 2, 4, 8};

enum { DREAMS = 8, EVERY = 3 }; /* Per held-out story; steps between looks ahead. */
static const double reward_above = 0.3;
static const double reward_enough = 0.99;
static const double change_least = 0.9;
static const double return_within = 0.1;

/* ------------------------------------------------------------------- rewards */

typedef struct {
    graft_foresight_reward *each; /* (count) */
    double sum;
    double squares;
    double errors[3]; /* Squared: of the model, the computed gain, the mean of the rule. */
    uint32_t count;
} rewards;

/* Mean reward of each rule in the stories learnt from; 0 for one that was never chosen. */
static double *mean_of_rules(graft_arena *arena, graft_stories learnt)
{
    double *sums = GRAFT_NEW(arena, double, GRAFT_REPERTOIRE_MOST);
    uint32_t *counts = GRAFT_NEW(arena, uint32_t, GRAFT_REPERTOIRE_MOST);
    for (uint32_t s = 0; s < learnt.count; s++) {
        const graft_story *story = &learnt.items[s];
        for (uint32_t t = 0; t < story->steps; t++) {
            const uint32_t rule = story->rules[story->chosen[t]];
            sums[rule] += (double)(story->computed[t] + story->beyond[t]);
            counts[rule]++;
        }
    }
    for (uint32_t r = 0; r < GRAFT_REPERTOIRE_MOST; r++) {
        sums[r] /= counts[r] > 0 ? counts[r] : 1;
    }
    return sums;
}

/* The model sees each step's state; what it remembers is its own. */
static void measure_rewards(graft_arena *scratch, graft_dreamt *dream, const graft_story *story,
                            const double *of_rules, rewards *r)
{
    for (uint32_t t = 0; t < story->steps; t++) {
        graft_dreamt_begin(dream, scratch, story, t);
        const uint32_t choice = story->chosen[t] - story->first[t];
        const double reward = (double)(story->computed[t] + story->beyond[t]);
        const graft_dreamt_step said = graft_dreamt_take(dream, scratch, choice, 1.0F, NULL);
        const double computed = (double)story->computed[t];
        const double guesses[3] = {computed + (double)said.beyond, computed,
                                   of_rules[story->rules[story->chosen[t]]]};
        for (uint32_t g = 0; g < 3; g++) {
            r->errors[g] += (reward - guesses[g]) * (reward - guesses[g]);
        }
        r->each[r->count] = (graft_foresight_reward){guesses[0], reward};
        r->sum += reward;
        r->squares += reward * reward;
        r->count++;
    }
}

static double explained_by(const rewards *r, uint32_t guess)
{
    const double mean = r->count > 0 ? r->sum / r->count : 0.0;
    const double variance = r->squares - mean * r->sum;
    return variance > 1e-12 ? 1.0 - r->errors[guess] / variance : 0.0;
}

/* ------------------------------------------------------------------- changes */

/* True positives, and how many were said and how many there were. */
typedef struct {
    double right;
    double said;
    double were;
} hits;

static double f1_of(const hits *h)
{
    return h->said + h->were > 0.0 ? 2.0 * h->right / (h->said + h->were) : 1.0;
}

static bool has_key(const graft_story *story, uint32_t scene, uint64_t key)
{
    bool found = false;
    for (uint32_t i = story->first[scene]; i < story->first[scene + 1] && !found; i++) {
        found = story->keys[i] == key;
    }
    return found;
}

static bool has_row(const graft_dreamt *dream, uint32_t row)
{
    bool found = false;
    for (uint32_t i = 0; i < dream->count && !found; i++) {
        found = dream->rows[i] == row;
    }
    return found;
}

/* Whether the match of a row of scene t has closed within `ahead` steps. A candidate that is only
 * not on offer any more has not. */
static bool is_closed(const graft_story *story, uint32_t row, uint32_t t, uint32_t ahead)
{
    uint32_t at = row;
    bool closed = false;
    for (uint32_t k = 0; k < ahead && !closed; k++) {
        uint32_t next = story->first[t + k + 1];
        closed = story->closed[at] > 0.5F;
        while (next < story->first[t + k + 2] && story->keys[next] != story->keys[row]) {
            next++;
        }
        if (next == story->first[t + k + 2]) {
            break;
        }
        at = next;
    }
    return closed;
}

static void count_closed(const graft_dreamt *dream, const graft_story *story, uint32_t t,
                         uint32_t ahead, hits *h)
{
    for (uint32_t i = story->first[t]; i < story->first[t + 1]; i++) {
        const bool said = !has_row(dream, i);
        const bool were = is_closed(story, i, t, ahead);
        h->said += said ? 1 : 0;
        h->were += were ? 1 : 0;
        h->right += said && were ? 1 : 0;
    }
}

/* By rule: which of them it is nobody can tell. */
static void count_opened(graft_arena *scratch, const graft_dreamt *dream, const graft_story *story,
                         uint32_t t, uint32_t ahead, hits *h)
{
    GRAFT_SCOPED(scratch);
    double *said = GRAFT_NEW(scratch, double, GRAFT_REPERTOIRE_MOST);
    double *were = GRAFT_NEW(scratch, double, GRAFT_REPERTOIRE_MOST);
    uint8_t *fresh = GRAFT_NEW(scratch, uint8_t, story->row_count);
    for (uint32_t i = 0; i < dream->count; i++) {
        said[dream->rules[i]] += dream->rows[i] == GRAFT_DREAM_OPENED ? 1.0 : 0.0;
    }
    /* Opened by one of the steps, and there still. */
    for (uint32_t k = 1; k <= ahead; k++) {
        for (uint32_t i = story->first[t + k]; i < story->first[t + k + 1]; i++) {
            fresh[i] = story->opened[i] > 0.5F &&
                       (k == ahead || has_key(story, t + ahead, story->keys[i]));
            were[story->rules[i]] += fresh[i] != 0 ? 1.0 : 0.0;
        }
    }
    for (uint32_t r = 0; r < GRAFT_REPERTOIRE_MOST; r++) {
        h->said += said[r];
        h->were += were[r];
        h->right += fmin(said[r], were[r]);
    }
}

/* The dream's candidate for the one that was chosen at step t + k: itself, or one of its rule that
 * opened in the dream; UINT32_MAX when there is none. */
static uint32_t find_choice(const graft_dreamt *dream, const graft_story *story, uint32_t t,
                            uint32_t k)
{
    const uint32_t chosen = story->chosen[t + k];
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < dream->count; i++) {
        const bool dreamt = dream->rows[i] >= GRAFT_DREAM_TURN;
        const bool same = !dreamt && story->keys[dream->rows[i]] == story->keys[chosen];
        const bool like = dreamt && dream->rules[i] == story->rules[chosen];
        if (same) {
            return i;
        }
        found = like && found == UINT32_MAX ? i : found;
    }
    return found;
}

/* Rolls on from step t. When a recorded action has no candidate in the dream, what it would have
 * changed counts as missed. */
static void look_ahead(graft_arena *scratch, graft_dreamt *dream, const graft_story *story,
                       uint32_t t, uint32_t ahead)
{
    graft_dreamt_begin(dream, scratch, story, t);
    for (uint32_t k = 0; k < ahead; k++) {
        const uint32_t choice = find_choice(dream, story, t, k);
        if (choice != UINT32_MAX) {
            (void)graft_dreamt_take(dream, scratch, choice, 1.0F, NULL);
        }
    }
}

static void measure_changes(graft_arena *scratch, graft_dreamt *dream, graft_stories held,
                            graft_foresight_report *report)
{
    for (uint32_t n = 0; n < GRAFT_FORESIGHT_HORIZONS; n++) {
        const uint32_t ahead = graft_foresight_horizons[n];
        hits closed = {0, 0, 0};
        hits opened = {0, 0, 0};
        for (uint32_t s = 0; s < held.count; s++) {
            const graft_story *story = &held.items[s];
            for (uint32_t t = 0; t + ahead <= story->steps; t += EVERY) {
                look_ahead(scratch, dream, story, t, ahead);
                count_closed(dream, story, t, ahead, &closed);
                count_opened(scratch, dream, story, t, ahead, &opened);
            }
        }
        const hits both = {closed.right + opened.right, closed.said + opened.said,
                           closed.were + opened.were};
        report->ahead[n].closed = f1_of(&closed);
        report->ahead[n].opened = f1_of(&opened);
        report->ahead[n].changed = f1_of(&both);
    }
}

/* ------------------------------------------------------------------- all */

static void measure_returns(graft_env *env, graft_dreamt *dream, const graft_candidates *agent,
                            graft_stories held, graft_foresight_report *report)
{
    for (uint32_t s = 0; s < held.count; s++) {
        const graft_story *story = &held.items[s];
        for (uint32_t t = 0; t < story->steps; t++) {
            report->real += (double)(story->computed[t] + story->beyond[t]) / held.count;
        }
        for (uint32_t d = 0; d < DREAMS; d++) {
            GRAFT_SCOPED(env->unit);
            const graft_episode_kept kept =
                graft_dreamt_play(env->unit, env->scratch, agent, dream, story,
                                  UINT32_MAX + (uint64_t)s * DREAMS + d);
            report->dreamed += kept.saved / (DREAMS * held.count);
        }
    }
}

static uint32_t count_steps(graft_stories stories)
{
    uint32_t steps = 0;
    for (uint32_t s = 0; s < stories.count; s++) {
        steps += stories.items[s].steps;
    }
    return steps;
}

graft_foresight_report graft_foresight_check(graft_env *env, const graft_foresight *model,
                                             const graft_repertoire *repertoire,
                                             const graft_candidates *agent, graft_stories learnt,
                                             graft_stories held)
{
    GRAFT_SCOPED(env->unit);
    const graft_scene_options scenes = graft_candidates_scenes(agent->settings);
    graft_foresight_report report = {.steps = 0};
    graft_dreamt dream;
    rewards r = {.each = GRAFT_NEW(env->life, graft_foresight_reward, count_steps(held))};
    const double *of_rules = mean_of_rules(env->unit, learnt);
    graft_dreamt_open(env->unit, model, repertoire, &scenes, &dream);
    for (uint32_t s = 0; s < held.count; s++) {
        measure_rewards(env->scratch, &dream, &held.items[s], of_rules, &r);
    }
    report.steps = r.count;
    report.rewards = r.each;
    report.explained = explained_by(&r, 0);
    report.computed = explained_by(&r, 1);
    report.of_rules = explained_by(&r, 2);
    measure_changes(env->scratch, &dream, held, &report);
    measure_returns(env, &dream, agent, held, &report);
    return report;
}

static bool reward_holds(const graft_foresight_report *r)
{
    return r->explained >= fmin(r->of_rules + reward_above, reward_enough);
}

static bool changes_hold(const graft_foresight_report *r)
{
    return r->ahead[0].changed >= change_least;
}

static bool return_holds(const graft_foresight_report *r)
{
    return fabs(r->dreamed - r->real) <= return_within * fabs(r->real);
}

bool graft_foresight_holds(const graft_foresight_report *report)
{
    return reward_holds(report) && changes_hold(report) && return_holds(report);
}

static const char *verdict(bool holds) { return holds ? "holds" : "FAILS"; }

void graft_foresight_write(const graft_foresight_report *report, graft_arena *arena,
                           graft_json *json)
{
    graft_json_add(json, "reward_explained=%g by_computed_gain=%g by_mean_of_rule=%g",
                   report->explained, report->computed, report->of_rules);
    for (uint32_t n = 0; n < GRAFT_FORESIGHT_HORIZONS; n++) {
        graft_json_number(json,
                          graft_arena_printf(arena, "changed_f1_%u", graft_foresight_horizons[n]),
                          report->ahead[n].changed);
    }
    graft_json_add(json, "dreamed=%g real=%g", report->dreamed, report->real);
}

bool graft_foresight_print(const graft_foresight_report *report, FILE *out)
{
    (void)fprintf(
        out,
        "world model, on %u steps of held-out episodes:\n"
        "  reward explained %.3f; by the computed gain %.3f, by the mean of the rule %.3f: "
        "%s (asked: %.1f above the last, or %.2f)\n",
        report->steps, report->explained, report->computed, report->of_rules,
        verdict(reward_holds(report)), reward_above, reward_enough);
    for (uint32_t n = 0; n < GRAFT_FORESIGHT_HORIZONS; n++) {
        (void)fprintf(out, "  %u ahead: F1 of candidates closed %.3f, opened %.3f, together %.3f",
                      graft_foresight_horizons[n], report->ahead[n].closed, report->ahead[n].opened,
                      report->ahead[n].changed);
        (void)fprintf(out, n == 0 ? ": %s (asked: %.1f)\n" : "\n", verdict(changes_hold(report)),
                      change_least);
    }
    (void)fprintf(out, "  dreamed return %.2f %%, real %.2f %%: %s (asked: within %.0f %%)\n",
                  report->dreamed, report->real, verdict(return_holds(report)),
                  100.0 * return_within);
    return graft_foresight_holds(report);
}
