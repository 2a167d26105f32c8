/* candidates_learning.c - what the candidate-scoring agent learns from episodes; see
 * candidates.h. */
#include "train/agent/candidates.h"

#include "graph/base/log.h"
#include "train/nn/kernels.h"
#include "train/nn/losses.h"
#include "train/nn/optimiser.h"
#include "train/nn/ragged.h"

#include <assert.h>
#include <math.h>

static const double gradient_norm_most = 1.0;
static const float value_weight = 0.5F;
#define STREAM_LEARNING (UINT64_C(1) << 40)

/* A minibatch. */
typedef struct {
    graft_candidates *agent;
    const graft_transition *const *transitions;
    uint32_t count;
    graft_candidates_report reports[GRAFT_SHARD_COUNT];
    double losses[GRAFT_SHARD_COUNT];
} learning;

static void measure_shift(const learning *l, const graft_matrix *log_p, const float *old,
                          graft_candidates_report *report)
{
    for (uint32_t i = 0; i < log_p->rows; i++) {
        double shift = (double)(log_p->value[i] - old[i]);
        report->kl += (exp(shift) - 1.0 - shift) / l->count;
    }
}

static void work_on_shard(void *context, uint32_t shard, graft_tape *tape)
{
    learning *l = context;
    const graft_agent_settings *s = l->agent->settings;
    const graft_span span = graft_shards_span(l->count, shard);
    const float each = 1.0F / (float)l->count;
    graft_candidates_report *report = &l->reports[shard];
    if (span.count == 0) {
        return;
    }
    const graft_scene **scenes = GRAFT_NEW(tape->arena, const graft_scene *, span.count);
    uint32_t *rows = GRAFT_NEW(tape->arena, uint32_t, span.count);
    float *old = GRAFT_NEW(tape->arena, float, span.count);
    float *advantages = GRAFT_NEW(tape->arena, float, span.count);
    float *gains = GRAFT_NEW(tape->arena, float, span.count);
    for (uint32_t i = 0; i < span.count; i++) {
        const graft_transition *t = l->transitions[span.first + i];
        scenes[i] = &t->scene;
        old[i] = t->log_p;
        advantages[i] = t->advantage;
        gains[i] = t->gain;
    }
    const uint32_t *first = NULL;
    const uint32_t *row_scene = NULL;
    const graft_scored scores =
        graft_scorer_look(&l->agent->scorer, tape, scenes, span.count, &first, &row_scene);
    for (uint32_t i = 0; i < span.count; i++) {
        rows[i] = first[i] + l->transitions[span.first + i]->choice;
    }
    const graft_matrix *log_p = graft_gather_rows(tape, scores.log_p, rows, span.count);
    const graft_surrogate surrogate = {old, advantages, (float)s->candidates_clip, each};
    const graft_target target = {gains, NULL, each};
    const graft_matrix *entropy = graft_weighted_sum(
        tape, graft_ragged_entropy(tape, scores.log_p, row_scene, span.count), NULL, each);
    const float entropy_weight = -(float)s->candidates_entropy;
    report->policy_loss = graft_loss_use(tape, graft_loss_policy(tape, log_p, &surrogate), 1.0F);
    report->entropy = graft_loss_use(tape, entropy, entropy_weight);
    report->value_loss =
        graft_loss_use(tape, graft_loss_squared(tape, scores.value, &target), value_weight);
    l->losses[shard] = report->policy_loss + (double)entropy_weight * report->entropy +
                       (double)value_weight * report->value_loss;
    measure_shift(l, log_p, old, report);
    if (tape->recording) {
        graft_tape_backward(tape);
    }
}

static void add_report(graft_candidates_report *sum, const graft_candidates_report *part,
                       double weight)
{
    sum->policy_loss += weight * part->policy_loss;
    sum->value_loss += weight * part->value_loss;
    sum->entropy += weight * part->entropy;
    sum->kl += weight * part->kl;
}

double graft_candidates_differentiate(graft_candidates *agent,
                                      const graft_transition *const transitions[], uint32_t count,
                                      graft_candidates_report *report)
{
    learning l = {.agent = agent, .transitions = transitions, .count = count};
    double loss = 0.0;
    graft_shards_differentiate(&agent->shards, work_on_shard, &l);
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        add_report(report, &l.reports[s], 1.0);
        loss += l.losses[s];
    }
    return loss;
}

/* ------------------------------------------------------------------- an update */

static void shuffle(const graft_transition **steps, uint32_t count, graft_rng *rng)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = graft_rng_below(rng, i);
        const graft_transition *held = steps[i - 1];
        steps[i - 1] = steps[j];
        steps[j] = held;
    }
}

/* Sum and sum of squares. */
typedef struct {
    double sum;
    double squares;
} moments;

static void add_moment(moments *m, double x)
{
    m->sum += x;
    m->squares += x * x;
}

static double variance_of(const moments *m, uint32_t count)
{
    double mean = m->sum / count;
    return m->squares / count - mean * mean;
}

/* Advantages of every `stride`th episode, which are those of one environment, to mean 0 and
 * deviation 1: what is much in one model is little in another. Adds to what is left of the returns'
 * variance when the values are taken off, and to that variance. */
static void normalise(const graft_episode_kept *kept, uint32_t episodes, uint32_t stride,
                      double *left, double *whole)
{
    moments advantages = {0, 0};
    moments gains = {0, 0};
    uint32_t total = 0;
    for (uint32_t e = 0; e < episodes; e += stride) {
        for (uint32_t t = 0; t < kept[e].count && !kept[e].steps[0].repeated; t++) {
            total++;
            add_moment(&advantages, (double)kept[e].steps[t].advantage);
            add_moment(&gains, (double)kept[e].steps[t].gain);
        }
    }
    const double variance = total > 0 ? variance_of(&advantages, total) : 0.0;
    const double scale = variance > 1e-16 ? 1.0 / sqrt(variance) : 1.0;
    for (uint32_t e = 0; e < episodes; e += stride) {
        for (uint32_t t = 0; t < kept[e].count; t++) {
            float *advantage = &kept[e].steps[t].advantage;
            const double mean = kept[e].steps[t].repeated ? 0.0 : advantages.sum / total;
            *advantage = (float)(((double)*advantage - mean) * scale);
            *advantage = kept[e].steps[t].repeated ? fmaxf(*advantage, 0.0F) : *advantage;
        }
    }
    *left += variance * total;
    *whole += total > 0 ? variance_of(&gains, total) * total : 0.0;
}

/* Several epochs of minibatches, until the policy has moved too far. */
static void learn(graft_candidates *agent, const graft_transition **steps, uint32_t count,
                  graft_rng *rng, graft_candidates_report *report)
{
    const graft_agent_settings *s = agent->settings;
    const uint32_t most = (uint32_t)s->candidates_minibatch;
    graft_candidates_report sum = {.episodes = 0};
    uint32_t minibatches = 0;
    bool stopped = false;
    for (int64_t epoch = 0; epoch < s->candidates_epochs && !stopped; epoch++) {
        shuffle(steps, count, rng);
        for (uint32_t first = 0; first < count && !stopped; first += most) {
            const uint32_t size = count - first < most ? count - first : most;
            graft_candidates_report part = {.episodes = 0};
            (void)graft_candidates_differentiate(agent, steps + first, size, &part);
            stopped = part.kl > s->candidates_kl;
            if (!stopped) {
                add_report(&sum, &part, 1.0);
                minibatches++;
                (void)graft_adam_step(agent->shards.sets, agent->shards.set_count,
                                      s->candidates_learning_rate, gradient_norm_most);
            }
        }
    }
    add_report(report, &sum, minibatches > 0 ? 1.0 / minibatches : 0.0);
}

void graft_candidates_learn(graft_env *env, graft_candidates *agent, const graft_episode_kept *kept,
                            uint32_t episodes, uint32_t stride, graft_candidates_report *report)
{
    const int64_t most = agent->settings->candidates_transitions;
    uint32_t count = 0;
    uint32_t total = 0;
    double left = 0.0;
    double whole = 0.0;
    graft_rng rng;
    graft_rng_derive(&rng, agent->seed, STREAM_LEARNING + agent->updates++);
    for (uint32_t e = 0; e < episodes; e++) {
        total += kept[e].count;
    }
    const graft_transition **steps = GRAFT_NEW(env->unit, const graft_transition *, total);
    for (uint32_t e = 0; e < episodes; e++) {
        for (uint32_t t = 0; t < kept[e].count; t++) {
            steps[count++] = &kept[e].steps[t];
        }
    }
    for (uint32_t m = 0; m < stride && m < episodes; m++) {
        normalise(&kept[m], episodes - m, stride, &left, &whole);
    }
    report->explained = whole > 1e-12 ? 1.0 - left / whole : 0.0;
    if (total > 0) {
        shuffle(steps, total, &rng);
        report->transitions = total < most ? total : (uint32_t)most;
        learn(agent, steps, report->transitions, &rng, report);
    }
}

/* Keeps an episode when it is the best of its environment. */
static void keep_best(graft_candidates *agent, uint32_t m, const graft_observer *o,
                      const graft_episode_kept *kept)
{
    graft_best *best = &agent->best[m];
    if (best->choices == NULL) {
        best->choices = GRAFT_NEW(agent->arena, uint32_t, o->environment->options.step_limit + 1);
    }
    if (kept->count > 0 && (best->count == 0 || kept->saved > best->saved)) {
        best->saved = kept->saved;
        best->count = kept->count;
        for (uint32_t t = 0; t < kept->count; t++) {
            best->choices[t] = kept->steps[t].choice;
        }
    }
}

/* Episodes of each environment in turn, the last ones the best so far. */
static graft_status play(graft_env *env, graft_candidates *agent, graft_observer *const observers[],
                         uint32_t count, graft_episode_kept *kept, graft_candidates_report *report)
{
    const double drawn = (double)agent->settings->candidates_episodes;
    for (uint32_t e = 0; e < report->episodes; e++) {
        const uint32_t m = e % count;
        GRAFT_PASS(graft_candidates_episode(env, env->unit, agent, observers[m], NULL, &kept[e]));
        graft_candidates_credit(agent, &kept[e]);
        keep_best(agent, m, observers[m], &kept[e]);
        report->saved += kept[e].saved / report->episodes;
        report->saved_each[m] += kept[e].saved / drawn;
        report->length += (double)kept[e].count / report->episodes;
        GRAFT_PASS(graft_search_go_on(env));
    }
    for (uint32_t m = 0; m < count && agent->settings->candidates_imitate > 0; m++) {
        graft_episode_kept *again = &kept[report->episodes + m];
        GRAFT_PASS(
            graft_candidates_episode(env, env->unit, agent, observers[m], &agent->best[m], again));
        graft_candidates_credit(agent, again);
    }
    return GRAFT_OK;
}

graft_status graft_candidates_update(graft_env *env, graft_candidates *agent,
                                     graft_observer *const observers[], uint32_t count,
                                     graft_candidates_report *report)
{
    GRAFT_SCOPED(env->unit);
    const uint32_t episodes = count * (uint32_t)agent->settings->candidates_episodes;
    graft_episode_kept *kept = GRAFT_NEW(env->unit, graft_episode_kept, episodes + count);
    uint64_t start_ns = graft_clock_ns();
    assert(count <= GRAFT_CANDIDATES_ENVIRONMENTS);
    *report = (graft_candidates_report){.episodes = episodes};
    GRAFT_PASS(play(env, agent, observers, count, kept, report));
    report->play_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    start_ns = graft_clock_ns();
    graft_candidates_learn(env, agent, kept, episodes + count, count, report);
    report->learn_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}
