/* leaning.c - see leaning.h. */
#include "train/tariff/leaning.h"

#include "graph/base/log.h"

#include <string.h>

const uint8_t graft_leaning_parts[GRAFT_LEANING_PARTS] = {0, 15, 30, 60, 100};

/* 0 for those without an entry. */
static uint8_t operator_of(const int16_t *inputs)
{
    enum { LAST = GRAFT_FEATURE_END_operator - GRAFT_FEATURE_operator };
    uint32_t op = LAST;
    while (op > 0 && inputs[GRAFT_FEATURE_operator + op] == 0) {
        op--;
    }
    return (uint8_t)op;
}

void graft_leaning_open(graft_arena *arena, const graft_book *book, const graft_tariff *measured,
                        graft_leaning_rows *rows)
{
    *rows = (graft_leaning_rows){.measured = measured};
    rows->guesses = GRAFT_COPY(arena, measured->values, measured->row_count);
    rows->ops = GRAFT_NEW(arena, uint8_t, measured->row_count);
    rows->met = GRAFT_NEW(arena, uint64_t, measured->row_count);
    for (uint32_t i = 0; i < book->row_count; i++) {
        uint32_t row =
            graft_tariff_row(measured, graft_tariff_key(measured->seed, book->rows[i].hash));
        if (row == measured->row_count) {
            continue;
        }
        rows->met[row] |= UINT64_C(1) << book->rows[i].model;
        if (rows->ops[row] == 0) {
            rows->ops[row] = operator_of(book->rows[i].inputs);
            rows->guesses[row] = graft_tariff_guess(measured, book->rows[i].inputs).value;
            rows->counts[rows->ops[row]]++;
        }
    }
}

uint16_t graft_leaning_value(const graft_leaning_rows *rows, uint32_t row, uint32_t part)
{
    const uint32_t measured = rows->measured->values[row];
    const uint32_t guess = rows->guesses[row];
    return (uint16_t)(measured == 0 || guess == 0
                          ? measured
                          : (measured * (100u - part) + guess * part + 50u) / 100u);
}

graft_tariff graft_leaning_apply(const graft_leaning_rows *rows, const graft_leaning *leaning,
                                 uint16_t *values)
{
    graft_tariff leant = *rows->measured;
    for (uint32_t i = 0; i < leant.row_count; i++) {
        values[i] = graft_leaning_value(rows, i, leaning->parts[rows->ops[i]]);
    }
    leant.values = values;
    return leant;
}

/* Operators by number of rows, those with most first; returns how many have any. */
static uint32_t list_operators(const graft_leaning_rows *rows, uint8_t *ops)
{
    uint32_t count = 0;
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        uint32_t at = count;
        if (rows->counts[op] == 0) {
            continue;
        }
        for (; at > 0 && rows->counts[ops[at - 1]] < rows->counts[op]; at--) {
            ops[at] = ops[at - 1];
        }
        ops[at] = (uint8_t)op;
        count++;
    }
    return count;
}

typedef struct {
    const graft_leaning_rows *rows;
    const graft_leaning_judge *judge;
    uint16_t *values;
    double least;
    double loss; /* Of the best so far. */
} descent;

static graft_status judge_leaning(graft_env *env, const descent *d, const graft_leaning *leaning,
                                  double *loss)
{
    const graft_tariff tariff = graft_leaning_apply(d->rows, leaning, d->values);
    if (graft_interrupted()) {
        return GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while choosing what rows lean to");
    }
    return d->judge->judge(env, d->judge->context, &tariff, loss);
}

/* Tries each part for one operator. */
static graft_status try_operator(graft_env *env, descent *d, uint32_t op, graft_leaning *leaning)
{
    graft_status status = GRAFT_OK;
    const uint8_t before = leaning->parts[op];
    uint8_t best = before;
    for (uint32_t k = 0; k < GRAFT_LEANING_PARTS; k++) {
        double loss = 0.0;
        leaning->parts[op] = graft_leaning_parts[k];
        if (graft_leaning_parts[k] == before) {
            continue;
        }
        GRAFT_CHECK(judge_leaning(env, d, leaning, &loss));
        if (loss < d->loss - d->least) {
            d->loss = loss;
            best = graft_leaning_parts[k];
        }
    }
done:
    leaning->parts[op] = best;
    return status;
}

/* Where to begin: all rows as measured, or all of them leaning by the same part. Operators that
 * take part in the same rewrites have to lean together before any of them pays. */
static graft_status choose_start(graft_env *env, descent *d, graft_leaning *leaning)
{
    graft_status status = GRAFT_OK;
    uint8_t best = 0;
    *leaning = (graft_leaning){.parts = {0}};
    GRAFT_CHECK(judge_leaning(env, d, leaning, &d->loss));
    for (uint32_t k = 0; k < GRAFT_LEANING_PARTS; k++) {
        double loss = 0.0;
        if (graft_leaning_parts[k] == 0) {
            continue;
        }
        memset(leaning->parts, graft_leaning_parts[k], sizeof leaning->parts);
        GRAFT_CHECK(judge_leaning(env, d, leaning, &loss));
        if (loss < d->loss - d->least) {
            d->loss = loss;
            best = graft_leaning_parts[k];
        }
    }
done:
    memset(leaning->parts, best, sizeof leaning->parts);
    return status;
}

graft_status graft_leaning_search(graft_env *env, const graft_leaning_rows *rows,
                                  const graft_leaning_judge *judge, double least,
                                  graft_leaning *leaning)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t ops[GRAFT_OP_COUNT];
    const uint32_t count = list_operators(rows, ops);
    graft_progress progress;
    descent d = {.rows = rows, .judge = judge, .least = least};
    d.values = GRAFT_NEW(env->scratch, uint16_t, rows->measured->row_count);
    graft_progress_start(&progress, env, "leaning", "operators", count);
    GRAFT_PASS(choose_start(env, &d, leaning));
    for (uint32_t i = 0; i < count; i++) {
        char note[64];
        GRAFT_PASS(try_operator(env, &d, ops[i], leaning));
        (void)snprintf(note, sizeof note, "graphs at %.2f %%", 100.0 * d.loss);
        graft_progress_update(&progress, i + 1, note);
    }
    graft_progress_finish(&progress);
    return GRAFT_OK;
}
