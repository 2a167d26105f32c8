/* confirmed.c - see confirmed.h. */
#include "emit/report/confirmed.h"

#include "cost/device/device_program.h"
#include "graph/base/log.h"

enum { ROUNDS = 21 };

static const char *const names[] = {
    [GRAFT_VERDICT_NONE] = "not asked", [GRAFT_VERDICT_FASTER] = "faster",
    [GRAFT_VERDICT_SAME] = "same",      [GRAFT_VERDICT_SLOWER] = "slower",
    [GRAFT_VERDICT_FAILED] = "failed",
};

static graft_verdict judge(const graft_comparison *c)
{
    return graft_comparison_is_gain(c) ? GRAFT_VERDICT_FASTER
           : c->ratio <= 1.0           ? GRAFT_VERDICT_SAME
                                       : GRAFT_VERDICT_SLOWER;
}

/* Adds ROUNDS rounds to the times that there are. */
static graft_status time_more(graft_env *env, graft_session *session,
                              const char *const paths[GRAFT_CONTENDERS], uint32_t rounds,
                              double *const times[GRAFT_CONTENDERS], const char **refusal)
{
    double *more[GRAFT_CONTENDERS];
    for (uint32_t k = 0; k < GRAFT_CONTENDERS; k++) {
        more[k] = times[k] + rounds;
    }
    const graft_device_turns turns = {session->model, paths, GRAFT_CONTENDERS, ROUNDS, more};
    return graft_device_time_models(env, session->device, &turns, refusal);
}

graft_status graft_confirm_files(graft_env *env, graft_session *session,
                                 const graft_confirm_pair *pair, graft_comparison *comparison,
                                 const char **refusal)
{
    GRAFT_SCOPED(env->unit);
    const char *const paths[GRAFT_CONTENDERS] = {pair->before, pair->after, pair->before};
    double *times[GRAFT_CONTENDERS];
    uint32_t rounds = 0;
    bool certain = false;
    for (uint32_t k = 0; k < GRAFT_CONTENDERS; k++) {
        times[k] = GRAFT_NEW(env->unit, double, (size_t)pair->rounds_most + ROUNDS);
    }
    do {
        GRAFT_PASS(time_more(env, session, paths, rounds, times, refusal));
        if (*refusal != NULL) {
            return GRAFT_OK;
        }
        rounds += ROUNDS;
        graft_comparison_of(env, (const double *const *)times, rounds, comparison);
        certain =
            comparison->ratio >= 1.0 || (rounds > ROUNDS && graft_comparison_is_gain(comparison));
    } while (rounds < pair->rounds_most && !certain);
    return GRAFT_OK;
}

graft_status graft_confirm(graft_env *env, graft_session *session, const char *path,
                           graft_confirmation *confirmation)
{
    GRAFT_SCOPED(env->scratch);
    graft_confirmation found = {.verdict = GRAFT_VERDICT_FAILED};
    const graft_confirm_pair pair = {.after = path, .rounds_most = ROUNDS};
    const char *refusal = NULL;
    GRAFT_PASS(graft_confirm_files(env, session, &pair, &found.comparison, &refusal));
    if (refusal != NULL) {
        graft_log(env, 1, "whole models could not be timed (%s): the model is written as it was",
                  refusal);
    } else {
        found.verdict = judge(&found.comparison);
        found.kept = found.verdict != GRAFT_VERDICT_SLOWER;
        graft_log(env, 1,
                  "whole models in turns: %.4f +- %.4f of the model's time (itself: %.4f)%s",
                  found.comparison.ratio, found.comparison.ratio_spread, found.comparison.control,
                  found.kept ? "" : ": the model is written as it was");
    }
    *confirmation = found;
    return GRAFT_OK;
}

void graft_confirmation_print(const graft_confirmation *confirmation)
{
    static const char *const words[] = {
        [GRAFT_VERDICT_FASTER] = "faster",
        [GRAFT_VERDICT_SAME] = "no faster beyond noise",
        [GRAFT_VERDICT_SLOWER] = "slower, so the model is as it was",
    };
    const graft_comparison *c = &confirmation->comparison;
    if (confirmation->verdict == GRAFT_VERDICT_FAILED) {
        (void)printf("whole models could not be timed: the model is as it was\n");
    } else if (confirmation->verdict != GRAFT_VERDICT_NONE) {
        (void)printf("timed as wholes, in turns: %.3f ms -> %.3f ms, 100 -> %.1f +- %.1f (%s)\n",
                     c->a.median_ns / 1e6, c->b.median_ns / 1e6, 100.0 * c->ratio,
                     100.0 * c->ratio_spread, words[confirmation->verdict]);
    }
}

void graft_confirmation_add(const graft_confirmation *confirmation, graft_json *json)
{
    const graft_comparison *c = &confirmation->comparison;
    if (confirmation->verdict == GRAFT_VERDICT_NONE) {
        return;
    }
    graft_json_string(json, "confirmed", names[confirmation->verdict]);
    if (confirmation->verdict != GRAFT_VERDICT_FAILED) {
        graft_json_add(json,
                       "whole_ns_before=%g whole_ns_after=%g whole_ratio=%g whole_ratio_spread=%g "
                       "whole_control=%g whole_rounds=%u",
                       c->a.median_ns, c->b.median_ns, c->ratio, c->ratio_spread, c->control,
                       c->rounds);
    }
}
