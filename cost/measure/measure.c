/* measure.c - the rounds of a measurement over many signatures (see measure.h). */
#include "cost/measure/measure.h"

#include "cost/device/backend.h"
#include "cost/measure/trial.h"
#include "graph/base/log.h"

#include <string.h>

enum { BATCH_TRIALS = 16, LEAST_ROUNDS = 5, PRUNE_ROUND = 5, DEFAULT_ROUNDS = 15 };
enum { MORE_ROUNDS = 2 };

/* Tensors and copies of weights that may be open at once. */
static const uint64_t most_bytes = (uint64_t)1 << 30;

graft_measure_options graft_measure_options_default(void)
{
    return (graft_measure_options){.rounds = DEFAULT_ROUNDS, .batch_ns = 1000000};
}

/* Signatures that take turns with one another. */
typedef struct {
    graft_trial trials[BATCH_TRIALS];
    uint32_t count;
    uint64_t bytes;
} batch;

typedef struct {
    graft_env *env;
    graft_device *device;
    const graft_measure_options *options;
    uint32_t rounds_most;
    graft_progress progress;
} measurement;

/* Opens signatures until the batch is full. `*next` is the first that is not in it. */
static graft_status fill_batch(measurement *m, const graft_signature *signatures, uint32_t count,
                               uint32_t *next, batch *b)
{
    b->count = 0;
    b->bytes = 0;
    while (*next < count && b->count < BATCH_TRIALS && b->bytes < most_bytes) {
        graft_trial *trial = &b->trials[b->count++];
        double *samples =
            GRAFT_NEW(m->env->scratch, double, (size_t)GRAFT_KERNEL_MOST * 2 * m->rounds_most);
        const char *only = m->options->only == NULL ? NULL : m->options->only[*next];
        GRAFT_PASS(graft_trial_open(m->env, m->device, &signatures[*next], only, samples,
                                    m->rounds_most, trial));
        if (m->options->direct) {
            graft_trial_restrict(trial);
        }
        GRAFT_PASS(graft_trial_qualify(m->env, trial));
        b->bytes += trial->bytes;
        (*next)++;
        GRAFT_PASS(graft_interrupted_while(m->env, "measuring"));
    }
    return GRAFT_OK;
}

/* Contestants of all trials in one line; entry i of round r is place (i + r) of that line. */
static graft_status run_round(measurement *m, batch *b, uint32_t round)
{
    for (uint32_t i = 0; i < b->count; i++) {
        graft_trial *trial = &b->trials[(i + round) % b->count];
        for (uint32_t k = 0; k < trial->contestant_count; k++) {
            graft_contestant *c = &trial->contestants[(k + round) % trial->contestant_count];
            if (!c->dropped) {
                GRAFT_PASS(
                    graft_trial_round(m->env, trial, c, m->options->batch_ns, m->options->anchor));
            }
        }
        GRAFT_PASS(graft_interrupted_while(m->env, "measuring"));
    }
    return GRAFT_OK;
}

/* Whether every signature has had its rounds; on a machine that others keep busy, more of them are
 * taken, up to a limit, until enough were quiet. */
static bool is_enough(const measurement *m, const batch *b, uint32_t rounds)
{
    uint32_t quiet = rounds;
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t count = graft_trial_quiet_rounds(&b->trials[i]);
        quiet = count < quiet ? count : quiet;
    }
    return rounds >= m->rounds_most ||
           (rounds >= m->options->rounds && quiet >= m->options->rounds / 2);
}

static void close_batch(graft_arena *scratch, batch *b, graft_status status,
                        graft_cost_entry *entries)
{
    uint32_t least = status == GRAFT_OK ? 1 : LEAST_ROUNDS;
    for (uint32_t i = 0; i < b->count; i++) {
        graft_trial_finish(scratch, &b->trials[i], least, &entries[i]);
        graft_trial_close(&b->trials[i]);
    }
}

static graft_status measure_batch(measurement *m, const graft_signature *signatures, uint32_t count,
                                  uint32_t *next, graft_cost_entry *entries)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(m->env->scratch);
    batch *b = GRAFT_NEW(m->env->scratch, batch, 1);
    uint32_t first = *next;
    GRAFT_CHECK(fill_batch(m, signatures, count, next, b));
    for (uint32_t round = 0; !is_enough(m, b, round); round++) {
        GRAFT_CHECK(run_round(m, b, round));
        for (uint32_t i = 0; i < b->count && round + 1 == PRUNE_ROUND; i++) {
            graft_trial_prune(m->env->scratch, &b->trials[i]);
        }
        graft_progress_update(&m->progress, first + b->count * (round + 1) / m->rounds_most, NULL);
    }
done:
    close_batch(m->env->scratch, b, status, entries + first);
    if (m->options->beat != NULL) {
        m->options->beat(m->options->beat_context);
    }
    return status;
}

graft_status graft_measure(graft_env *env, graft_device *device, const graft_signature *signatures,
                           uint32_t count, const graft_measure_options *options,
                           graft_cost_entry *entries)
{
    graft_status status = GRAFT_OK;
    graft_env quiet = *env;
    measurement m = {
        .env = env, .device = device, .options = options, .rounds_most = options->rounds};
    if (options->anchor != NULL) {
        m.rounds_most *= MORE_ROUNDS;
    }
    memset(entries, 0, count * sizeof(entries[0]));
    if (!graft_device_present(device)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' is not here: it cannot be measured",
                          graft_device_name(device));
    }
    const graft_backend *backend = graft_device_head_at(device)->backend;
    if (backend->measure != NULL) {
        return backend->measure(env, device, signatures, count, options, entries);
    }
    quiet.verbosity = options->quiet ? 0 : env->verbosity;
    graft_progress_start(&m.progress, &quiet, "measuring", "operators", count);
    for (uint32_t next = 0; next < count;) {
        GRAFT_CHECK(measure_batch(&m, signatures, count, &next, entries));
    }
done:
    graft_progress_finish(&m.progress);
    return status;
}
