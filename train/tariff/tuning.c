/* tuning.c - see tuning.h. */
#include "train/tariff/tuning.h"

#include "graph/base/log.h"
#include "graph/base/rng.h"
#include "train/tariff/blur.h"

#include <string.h>

/* Most models; the finest part of a mutation that is taken back as one. */
enum { MODELS = 64, FINEST = 32 };

/* Of a gain: what a part of the mutation has to bring to stay. */
static const double part_least = 1.0 / 16;

typedef struct {
    const graft_leaning_rows *rows;
    const graft_tuning_judge *judge;
    const graft_tuning_options *options;
    graft_tariff tariff; /* Its values are those on trial. */
    uint16_t *trial;
    uint16_t *values;     /* Those that are kept. */
    uint32_t *changed;    /* Rows in which the two differ. */
    double parts[MODELS]; /* Of those that are kept. */
    double sum;
} tuning;

static graft_status judge_model(graft_env *env, const tuning *t, uint32_t model, double *part)
{
    if (graft_interrupted()) {
        return GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while tuning rows");
    }
    return t->judge->judge(env, t->judge->context, &t->tariff, model, part);
}

static graft_status judge_all(graft_env *env, const tuning *t, double *parts, double *sum)
{
    *sum = 0.0;
    for (uint32_t m = 0; m < MODELS; m++) {
        if ((t->options->models >> m & 1u) != 0) {
            GRAFT_PASS(judge_model(env, t, m, &parts[m]));
            *sum += parts[m];
        }
    }
    return GRAFT_OK;
}

/* What changes: rows of an operator, or of all, lean by a part, or blur. */
typedef struct {
    uint32_t op; /* GRAFT_OP_COUNT: all. */
    uint32_t part;
    const graft_blur *blur; /* NULL: they lean. */
} mutation;

/* Changes the rows that a model meets; returns how many differ from those that are kept. */
static uint32_t mutate(tuning *t, uint32_t model, const mutation *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->tariff.row_count; i++) {
        const uint8_t op = t->rows->ops[i];
        if ((t->rows->met[i] >> model & 1u) != 0 && (m->op == op || m->op == GRAFT_OP_COUNT)) {
            t->trial[i] = m->blur != NULL
                              ? graft_blur_value(m->blur, 1, t->tariff.keys[i], op, t->values[i])
                              : graft_leaning_value(t->rows, i, m->part);
            if (t->trial[i] != t->values[i]) {
                t->changed[count++] = i;
            }
        }
    }
    return count;
}

/* Takes the changed rows [from, to) back; what they were goes into `mutated`. */
static void take_back(tuning *t, uint32_t from, uint32_t to, uint16_t *mutated)
{
    for (uint32_t i = from; i < to; i++) {
        mutated[i] = t->trial[t->changed[i]];
        t->trial[t->changed[i]] = t->values[t->changed[i]];
    }
}

/* Takes back what the gain does not need, in ever finer parts; *count rows differ then. */
static graft_status prune(graft_env *env, tuning *t, uint32_t model, double part, uint32_t *count)
{
    GRAFT_SCOPED(env->scratch);
    const double least = part_least * (t->parts[model] - part);
    uint16_t *mutated = GRAFT_NEW(env->scratch, uint16_t, *count);
    for (uint32_t parts = 2; parts <= FINEST; parts *= 2) {
        const uint32_t step = (*count + parts - 1) / parts;
        uint32_t kept = 0;
        for (uint32_t from = 0; from < *count; from += step) {
            const uint32_t to = from + step < *count ? from + step : *count;
            double without = 0.0;
            take_back(t, from, to, mutated);
            GRAFT_PASS(judge_model(env, t, model, &without));
            const bool stays = without > part + least;
            part = stays ? part : without;
            for (uint32_t i = from; i < to && stays; i++) {
                t->trial[t->changed[i]] = mutated[i];
                t->changed[kept++] = t->changed[i];
            }
        }
        *count = kept;
    }
    return GRAFT_OK;
}

static void forget(tuning *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        t->trial[t->changed[i]] = t->values[t->changed[i]];
    }
}

/* One mutation for one model: kept when all models gain by it together. */
static graft_status attempt(graft_env *env, tuning *t, uint32_t model, const mutation *m)
{
    double parts[MODELS] = {0.0};
    double part = 0.0;
    double sum = 0.0;
    uint32_t count = mutate(t, model, m);
    if (count > 0) {
        GRAFT_PASS(judge_model(env, t, model, &part));
    }
    if (count == 0 || part >= t->parts[model] - t->options->least) {
        forget(t, count);
        return GRAFT_OK;
    }
    GRAFT_PASS(prune(env, t, model, part, &count));
    GRAFT_PASS(judge_all(env, t, parts, &sum));
    if (sum >= t->sum - t->options->least) {
        forget(t, count);
        return GRAFT_OK;
    }
    graft_log(env, 2, "model %u: %.3f to %.3f %% by %u rows", model, 100.0 * t->parts[model],
              100.0 * parts[model], count);
    memcpy(t->parts, parts, sizeof parts);
    memcpy(t->values, t->trial, t->tariff.row_count * sizeof *t->values);
    t->sum = sum;
    return GRAFT_OK;
}

/* Each operator's rows, last those of all, lean by each part. */
static graft_status lean_model(graft_env *env, tuning *t, uint32_t model)
{
    for (uint32_t op = 0; op <= GRAFT_OP_COUNT; op++) {
        for (uint32_t k = 0; k < GRAFT_LEANING_PARTS; k++) {
            const mutation m = {.op = op, .part = graft_leaning_parts[k]};
            GRAFT_PASS(attempt(env, t, model, &m));
        }
    }
    return GRAFT_OK;
}

static graft_status blur_model(graft_env *env, tuning *t, uint32_t model)
{
    static const double sigmas[] = {0.01, 0.03, 0.1, 0.3};
    graft_rng rng;
    graft_rng_derive(&rng, t->options->seed, model);
    const graft_tuning_options *o = t->options;
    for (uint32_t i = 0; i < (t->parts[model] > o->aims[model] ? o->blurs_most : o->blurs); i++) {
        const graft_blur blur = {graft_rng_next(&rng), sigmas[i % 4], i / 4 % 2 == 1};
        const mutation m = {.op = GRAFT_OP_COUNT, .blur = &blur};
        GRAFT_PASS(attempt(env, t, model, &m));
    }
    return GRAFT_OK;
}

graft_status graft_tuning_search(graft_env *env, const graft_leaning_rows *rows,
                                 const graft_tuning_judge *judge,
                                 const graft_tuning_options *options, graft_tariff *tariff,
                                 uint32_t *tuned)
{
    GRAFT_SCOPED(env->scratch);
    tuning t = {.rows = rows, .judge = judge, .options = options, .tariff = *tariff};
    graft_progress progress;
    t.values = GRAFT_COPY(env->life, tariff->values, tariff->row_count);
    t.trial = GRAFT_COPY(env->scratch, tariff->values, tariff->row_count);
    t.changed = GRAFT_NEW(env->scratch, uint32_t, tariff->row_count);
    t.tariff.values = t.trial;
    GRAFT_PASS(judge_all(env, &t, t.parts, &t.sum));
    graft_progress_start(&progress, env, "tuning rows", "models",
                         (uint64_t)__builtin_popcountll(options->models));
    for (uint32_t m = 0; m < MODELS; m++) {
        if ((options->models >> m & 1u) != 0) {
            GRAFT_PASS(lean_model(env, &t, m));
            GRAFT_PASS(blur_model(env, &t, m));
            graft_progress_update(&progress, progress.done + 1, NULL);
        }
    }
    graft_progress_finish(&progress);
    *tuned = 0;
    for (uint32_t i = 0; i < tariff->row_count; i++) {
        *tuned += t.values[i] != tariff->values[i] ? 1 : 0;
    }
    tariff->values = t.values;
    return GRAFT_OK;
}
