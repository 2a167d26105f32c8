/* foresight_training.c - what the world model over candidates learns from stories; see
 * foresight.h. */
#include "train/agent/foresight.h"
#include "train/nn/losses.h"

#include <math.h>

/* What parts count for in the sum: closings are rare among all candidates, contents are wide. */
static const float closing_weight = 4.0F;
static const float change_weight = 4.0F;
static const float content_weight = 0.05F;
static const float next_weight = 0.05F;
static const float scale_least = 1e-3F;

/* ------------------------------------------------------------------- scales */

/* Running sums of columns. */
typedef struct {
    uint32_t cols;
    uint64_t rows;
    double *sums;
    double *squares;
} columns;

static columns open_columns(graft_arena *arena, uint32_t cols)
{
    return (columns){.cols = cols,
                     .sums = GRAFT_NEW(arena, double, cols),
                     .squares = GRAFT_NEW(arena, double, cols)};
}

static void add_value(columns *c, uint32_t col, float x)
{
    c->sums[col] += (double)x;
    c->squares[col] += (double)x * (double)x;
}

static float mean_of(const columns *c, uint32_t col)
{
    return c->rows > 0 ? (float)(c->sums[col] / (double)c->rows) : 0.0F;
}

static float scale_of(const columns *c, uint32_t col)
{
    double mean = (double)mean_of(c, col);
    double variance = c->rows > 0 ? c->squares[col] / (double)c->rows - mean * mean : 1.0;
    return fmaxf((float)sqrt(fmax(variance, 0.0)), scale_least);
}

static void add_story(const graft_foresight *m, const graft_story *s, columns *latent,
                      columns *content, columns *reward)
{
    for (uint32_t t = 0; t < s->steps; t++) {
        const float *z = &s->latents[(size_t)t * m->latent];
        for (uint32_t d = 0; d < m->latent; d++) {
            add_value(latent, d, z[m->latent + d] - z[d]);
        }
        add_value(reward, 0, s->beyond[t]);
        latent->rows++;
        reward->rows++;
    }
    for (uint32_t i = 0; i < s->row_count; i++) {
        for (uint32_t d = 0; d < content->cols && s->opened[i] > 0.5F; d++) {
            add_value(content, d,
                      d < m->width ? s->places[(size_t)i * m->width + d]
                                   : s->facts[(size_t)i * GRAFT_FACT_COUNT + d - m->width]);
        }
        content->rows += s->opened[i] > 0.5F ? 1 : 0;
    }
}

static void widen(float *low, float *high, float x)
{
    *low = fminf(*low, x);
    *high = fmaxf(*high, x);
}

static void find_ranges(graft_foresight *m, const graft_story *stories, uint32_t count)
{
    for (uint32_t r = 0; r < GRAFT_REPERTOIRE_MOST; r++) {
        m->gain_low[r] = INFINITY;
        m->gain_high[r] = -INFINITY;
    }
    m->beyond_range[0] = m->beyond_range[1] = 0.0F;
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t i = 0; i < stories[s].row_count; i++) {
            const uint32_t rule = stories[s].rules[i];
            widen(&m->gain_low[rule], &m->gain_high[rule],
                  stories[s].facts[(size_t)i * GRAFT_FACT_COUNT + GRAFT_FACT_GAIN]);
        }
        for (uint32_t t = 0; t < stories[s].steps; t++) {
            widen(&m->beyond_range[0], &m->beyond_range[1], stories[s].beyond[t]);
        }
    }
}

void graft_foresight_calibrate(graft_foresight *model, const graft_story *stories, uint32_t count)
{
    GRAFT_ARENA(arena, 1 << 16);
    columns latent = open_columns(arena, model->latent);
    columns content = open_columns(arena, model->content.dims);
    columns reward = open_columns(arena, 1);
    for (uint32_t s = 0; s < count; s++) {
        add_story(model, &stories[s], &latent, &content, &reward);
    }
    for (uint32_t d = 0; d < model->latent; d++) {
        model->latent_scale[d] = scale_of(&latent, d);
    }
    for (uint32_t d = 0; d < content.cols; d++) {
        model->content_mean[d] = mean_of(&content, d);
        model->content_scale[d] = scale_of(&content, d);
    }
    model->reward_mean = mean_of(&reward, 0);
    model->reward_scale = scale_of(&reward, 0);
    find_ranges(model, stories, count);
}

/* ------------------------------------------------------------------- one story */

typedef struct {
    const graft_foresight *model;
    const graft_repertoire *repertoire;
    const graft_story *stories;
    const uint32_t *index;
    graft_foresight_loss losses[GRAFT_SHARD_COUNT];
} training;

/* Of what there are `count` in a story; each shard is a quarter of the batch. */
static float each_of(uint32_t count)
{
    return 1.0F / (float)((count > 0 ? count : 1) * GRAFT_SHARD_COUNT);
}

static const float *list_inputs(const graft_foresight *m, graft_tape *tape, const graft_story *s)
{
    const uint32_t cols = graft_foresight_inputs(m);
    float *inputs = GRAFT_NEW(tape->arena, float, (size_t)s->steps *cols);
    for (uint32_t t = 0; t < s->steps; t++) {
        const size_t row = s->chosen[t];
        graft_foresight_input(m, &s->latents[(size_t)t * m->latent], &s->places[row * m->width],
                              &s->facts[row * GRAFT_FACT_COUNT], &inputs[(size_t)t * cols]);
    }
    return inputs;
}

static void lose_steps(const graft_foresight *m, graft_tape *tape, const graft_story *s,
                       const graft_foreseen *seen, graft_foresight_loss *loss)
{
    const float each = each_of(s->steps);
    float *moves = GRAFT_NEW(tape->arena, float, (size_t)s->steps * m->latent);
    float *rewards = GRAFT_NEW(tape->arena, float, s->steps);
    for (uint32_t t = 0; t < s->steps; t++) {
        for (uint32_t d = 0; d < m->latent; d++) {
            const size_t at = (size_t)t * m->latent + d;
            moves[at] = (s->latents[at + m->latent] - s->latents[at]) / m->latent_scale[d];
        }
        rewards[t] = (s->beyond[t] - m->reward_mean) / m->reward_scale;
    }
    const graft_target reward = {rewards, NULL, each};
    const graft_target end = {s->ends, NULL, each};
    loss->next = graft_loss_use(tape, graft_loss_mixture(tape, seen->next, moves, &m->next, each),
                                next_weight);
    loss->reward = graft_loss_use(tape, graft_loss_huber(tape, seen->reward, &reward, 1.0F), 1.0F);
    loss->end = graft_loss_use(tape, graft_loss_binary(tape, seen->end, &end), 1.0F);
}

/* All candidates of all scenes but the last one, NO-OP among them: it never closes. */
static void lose_candidates(const graft_foresight *m, graft_tape *tape, const graft_story *s,
                            const graft_matrix *feature, graft_foresight_loss *loss)
{
    const uint32_t rows = s->first[s->steps];
    uint32_t *step = GRAFT_NEW(tape->arena, uint32_t, rows);
    const size_t size = (size_t)rows * GRAFT_SAYS_COUNT;
    float *targets = GRAFT_NEW(tape->arena, float, size);
    float *weights = GRAFT_NEW(tape->arena, float, size);
    float *changes = GRAFT_NEW(tape->arena, float, size);
    for (uint32_t t = 0; t < s->steps; t++) {
        for (uint32_t i = s->first[t]; i < s->first[t + 1]; i++) {
            const size_t at = (size_t)i * GRAFT_SAYS_COUNT;
            step[i] = t;
            targets[at + GRAFT_SAYS_CLOSES] = s->closed[i];
            targets[at + GRAFT_SAYS_GAIN] = s->gain_change[i];
            targets[at + GRAFT_SAYS_ALIKE] = s->alike_change[i];
            weights[at + GRAFT_SAYS_CLOSES] = 1.0F;
            changes[at + GRAFT_SAYS_GAIN] = s->gain_known[i];
            changes[at + GRAFT_SAYS_ALIKE] = s->gain_known[i];
        }
    }
    const graft_foresight_rows all = {rows, step, s->places, s->facts, s->shared};
    const graft_matrix *said = graft_foresight_candidates(m, tape, feature, &all);
    const graft_target close = {targets, weights, each_of(rows)};
    const graft_target change = {targets, changes, each_of(rows)};
    loss->closing = graft_loss_use(tape, graft_loss_binary(tape, said, &close), closing_weight);
    loss->change = graft_loss_use(tape, graft_loss_huber(tape, said, &change, 0.2F), change_weight);
}

/* How many open, for each pair of step and rule. */
static void lose_counts(const graft_foresight *m, graft_tape *tape, const training *job,
                        const graft_story *s, const graft_matrix *feature,
                        graft_foresight_loss *loss)
{
    const uint32_t rules = job->repertoire->count;
    const uint32_t rows = s->steps * rules;
    uint32_t *step = GRAFT_NEW(tape->arena, uint32_t, rows);
    uint32_t *rule = GRAFT_NEW(tape->arena, uint32_t, rows);
    float *counts = GRAFT_NEW(tape->arena, float, rows);
    for (uint32_t t = 0; t < s->steps; t++) {
        for (uint32_t r = 0; r < rules; r++) {
            step[t * rules + r] = t;
            rule[t * rules + r] = r;
        }
        for (uint32_t i = s->first[t + 1]; i < s->first[t + 2]; i++) {
            counts[t * rules + s->rules[i]] += s->opened[i];
        }
    }
    const graft_foresight_pairs pairs = {rows, step, rule};
    const graft_matrix *said =
        graft_foresight_openings(m, tape, feature, job->repertoire, &pairs, NULL);
    const graft_target count = {counts, NULL, each_of(s->steps)};
    loss->counts = graft_loss_use(tape, graft_loss_huber(tape, said, &count, 1.0F), 1.0F);
}

static void lose_contents(const graft_foresight *m, graft_tape *tape, const training *job,
                          const graft_story *s, const graft_matrix *feature,
                          graft_foresight_loss *loss)
{
    uint32_t rows = 0;
    const uint32_t dims = m->content.dims;
    uint32_t *step = GRAFT_NEW(tape->arena, uint32_t, s->row_count);
    uint32_t *rule = GRAFT_NEW(tape->arena, uint32_t, s->row_count);
    float *contents = GRAFT_NEW(tape->arena, float, (size_t)s->row_count *dims);
    for (uint32_t t = 0; t < s->steps; t++) {
        for (uint32_t i = s->first[t + 1]; i < s->first[t + 2]; i++) {
            if (s->opened[i] > 0.5F) {
                graft_foresight_describe(m, &s->places[(size_t)i * m->width],
                                         &s->facts[(size_t)i * GRAFT_FACT_COUNT],
                                         &contents[(size_t)rows * dims]);
                step[rows] = t;
                rule[rows++] = s->rules[i];
            }
        }
    }
    const graft_matrix *content = NULL;
    if (rows == 0) {
        return;
    }
    const graft_foresight_pairs pairs = {rows, step, rule};
    (void)graft_foresight_openings(m, tape, feature, job->repertoire, &pairs, &content);
    loss->content = graft_loss_use(
        tape, graft_loss_mixture(tape, content, contents, &m->content, each_of(rows)),
        content_weight);
}

void graft_foresight_describe(const graft_foresight *m, const float *place, const float *facts,
                              float *out)
{
    for (uint32_t d = 0; d < m->content.dims; d++) {
        const float x = d < m->width ? place[d] : facts[d - m->width];
        out[d] = (x - m->content_mean[d]) / m->content_scale[d];
    }
}

static void work_on_shard(void *context, uint32_t shard, graft_tape *tape)
{
    training *job = context;
    const graft_foresight *m = job->model;
    const graft_story *s = &job->stories[job->index[shard]];
    graft_foresight_loss *loss = &job->losses[shard];
    if (s->steps == 0) {
        return;
    }
    const graft_foreseen seen =
        graft_foresight_apply(m, tape, list_inputs(m, tape, s), s->steps, NULL, NULL);
    lose_steps(m, tape, s, &seen, loss);
    lose_candidates(m, tape, s, seen.feature, loss);
    lose_counts(m, tape, job, s, seen.feature, loss);
    lose_contents(m, tape, job, s, seen.feature, loss);
    if (tape->recording) {
        graft_tape_backward(tape);
    }
}

graft_foresight_loss graft_foresight_differentiate(const graft_foresight *model,
                                                   graft_shards *shards,
                                                   const graft_repertoire *repertoire,
                                                   const graft_story *stories,
                                                   const uint32_t index[GRAFT_SHARD_COUNT])
{
    training job = {.model = model, .repertoire = repertoire, .stories = stories, .index = index};
    graft_foresight_loss sum = {.next = 0.0};
    graft_shards_differentiate(shards, work_on_shard, &job);
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        const graft_foresight_loss *part = &job.losses[s];
        sum.next += part->next;
        sum.reward += part->reward;
        sum.end += part->end;
        sum.closing += part->closing;
        sum.change += part->change;
        sum.counts += part->counts;
        sum.content += part->content;
    }
    sum.total = (double)next_weight * sum.next + sum.reward + sum.end +
                (double)closing_weight * sum.closing + (double)change_weight * sum.change +
                sum.counts + (double)content_weight * sum.content;
    return sum;
}
