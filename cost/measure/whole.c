/* whole.c - see whole.h. */
#include "cost/measure/whole.h"

#include "graph/base/log.h"

#include <math.h>
#include <string.h>

enum { MORE_ROUNDS = 3, FIRST_LOOKS = 3, SHORT_ROUNDS = 50 };

static const double short_ns = 2e6;

graft_status graft_whole_parts(graft_env *env, graft_cost *cost, const graft_graph *graph,
                               const graft_executor *executor, graft_calibration_sample *sample)
{
    const graft_schedule *schedule = graft_executor_schedule(executor);
    memset(sample->parts, 0, sizeof(sample->parts));
    sample->estimated_ns = 0.0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        graft_cost_entry entry;
        GRAFT_PASS(graft_cost_step(env, cost, graph, schedule, i, &entry));
        graft_calibration_add(sample, &schedule->steps[i].signature, &entry);
    }
    return GRAFT_OK;
}

/* Steps up to before `to`, from where the segment before ends. */
typedef struct {
    uint32_t to;
    double *samples; /* By round. */
    double *factors;
} segment;

typedef struct {
    graft_env *env;
    graft_executor *executor;
    graft_anchor *anchor;
    segment *segments;
    uint32_t segment_count;
    uint32_t runs; /* Of the one segment of a short graph. */
    uint32_t rounds;
} whole_run;

/* The least of a few runs of each step. */
static graft_status look_at_steps(whole_run *w, uint32_t count, double *step_ns)
{
    for (uint32_t round = 0; round < FIRST_LOOKS; round++) {
        for (uint32_t i = 0; i < count; i++) {
            double ns = 0.0;
            GRAFT_PASS(graft_executor_time_steps(w->env, w->executor, i, i + 1, 1, &ns));
            step_ns[i] = round == 0 ? ns : fmin(ns, step_ns[i]);
        }
    }
    return GRAFT_OK;
}

static graft_status plan_segments(whole_run *w, uint32_t rounds_most)
{
    graft_arena *scratch = w->env->scratch;
    uint32_t count = graft_executor_schedule(w->executor)->step_count;
    double *step_ns = GRAFT_NEW(scratch, double, count);
    double ns = 0.0;
    w->segments = GRAFT_NEW(scratch, segment, count);
    GRAFT_PASS(look_at_steps(w, count, step_ns));
    for (uint32_t i = 0; i < count; i++) {
        ns += step_ns[i];
        if (ns >= GRAFT_SLICE_NS || i + 1 == count) {
            segment *s = &w->segments[w->segment_count++];
            s->to = i + 1;
            s->samples = GRAFT_NEW(scratch, double, rounds_most);
            s->factors = GRAFT_NEW(scratch, double, rounds_most);
            w->runs = w->segment_count == 1 ? (uint32_t)(GRAFT_SLICE_NS / fmax(ns, 1.0)) + 1 : 1;
            ns = 0.0;
        }
    }
    return GRAFT_OK;
}

static graft_status run_round(whole_run *w)
{
    uint32_t from = 0;
    double before = graft_anchor_wait(w->anchor);
    for (uint32_t i = 0; i < w->segment_count; i++) {
        segment *s = &w->segments[i];
        double ns = 0.0;
        GRAFT_PASS(graft_executor_time_steps(w->env, w->executor, from, s->to, w->runs, &ns));
        double after = graft_anchor_look(w->anchor);
        s->factors[w->rounds] = fmin(before, after);
        s->samples[w->rounds] = ns * s->factors[w->rounds];
        before = after < 1.0 ? graft_anchor_wait(w->anchor) : after;
        from = s->to;
    }
    w->rounds++;
    return graft_interrupted_while(w->env, "measuring");
}

/* Rounds that were quiet, of the segment that has had fewest of them. */
static uint32_t count_quiet(const whole_run *w)
{
    uint32_t least = w->rounds;
    for (uint32_t i = 0; i < w->segment_count; i++) {
        uint32_t quiet = graft_anchor_quiet(w->segments[i].factors, w->rounds);
        least = quiet < least ? quiet : least;
    }
    return least;
}

static void sum_segments(const whole_run *w, graft_timing *timing)
{
    double squares = 0.0;
    *timing = (graft_timing){.rounds = w->rounds};
    for (uint32_t i = 0; i < w->segment_count; i++) {
        const segment *s = &w->segments[i];
        double median = 0.0;
        double spread = 0.0;
        uint32_t rounds = graft_anchor_summarise(w->env->scratch, s->samples, s->factors, w->rounds,
                                                 &median, &spread);
        timing->median_ns += median;
        timing->rounds = rounds < timing->rounds ? rounds : timing->rounds;
        squares += spread * spread;
    }
    timing->spread_ns = sqrt(squares);
}

graft_status graft_whole_time(graft_env *env, graft_cost *cost, graft_executor *executor,
                              uint32_t rounds, graft_timing *timing)
{
    GRAFT_SCOPED(env->scratch);
    whole_run w = {.env = env, .executor = executor};
    GRAFT_PASS(graft_cost_anchor(env, cost, &w.anchor));
    if (w.anchor == NULL || graft_executor_schedule(executor)->step_count == 0) {
        GRAFT_PASS(graft_executor_time(env, executor, rounds, timing));
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_executor_time(env, executor, 1, timing)); /* Warms up, on some inputs. */
    if (timing->median_ns < short_ns && rounds < SHORT_ROUNDS) {
        rounds = SHORT_ROUNDS; /* That is quickly done. */
    }
    GRAFT_PASS(plan_segments(&w, rounds * MORE_ROUNDS));
    while (w.rounds < rounds || (w.rounds < rounds * MORE_ROUNDS && count_quiet(&w) < rounds / 2)) {
        GRAFT_PASS(run_round(&w));
    }
    sum_segments(&w, timing);
    return GRAFT_OK;
}
