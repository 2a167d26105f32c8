/* grounding.c - see grounding.h. */
#include "train/grounding.h"

#include "train/kernels.h"
#include "train/losses.h"
#include "train/numeric.h"

#include <string.h>

static graft_layer add_head(graft_parameters *set, const char *const names[2], uint32_t latent,
                            uint32_t outputs)
{
    return graft_parameters_layer(set, names, latent, outputs, 1.0F);
}

void graft_grounding_init(graft_grounding *grounding, graft_arena *arena, uint32_t latent,
                          uint32_t xfers, uint32_t operators, uint64_t seed)
{
    static const char *const names[5][2] = {
        {"legality.weight",  "legality.bias" },
        {"counts.weight",    "counts.bias"   },
        {"gain.weight",      "gain.bias"     },
        {"cost.weight",      "cost.bias"     },
        {"histogram.weight", "histogram.bias"}
    };
    graft_parameters *set = &grounding->parameters;
    graft_parameters_init(set, "grounding");
    grounding->xfers = xfers;
    grounding->operators = operators;
    grounding->legality = add_head(set, names[0], latent, xfers);
    grounding->counts = add_head(set, names[1], latent, xfers);
    grounding->gain = add_head(set, names[2], latent, xfers);
    grounding->cost = add_head(set, names[3], latent, 1);
    grounding->histogram = add_head(set, names[4], latent, operators);
    graft_parameters_seal(set, arena, seed);
}

/* One evaluation: what the shards share, and where each leaves its losses. */
typedef struct {
    const graft_encoder *encoder;
    const graft_grounding *grounding;
    const graft_grounding_batch *batch;
    uint32_t known_total; /* Gains that are known, whole batch. */
    graft_grounding_loss loss[GRAFT_SHARD_COUNT];
} grounding_job;

/* The facts of one shard as matrices. */
typedef struct {
    float *legal;     /* (count, xfers), 0 or 1 */
    float *log_count; /* (count, xfers) */
    float *gain;      /* (count, xfers), 0 where not known */
    float *known;     /* (count, xfers): 1 where gain is known */
    float *cost;      /* (count) */
    float *histogram; /* (count, operators) */
} shard_facts;

static const graft_grounding_sample *sample_at(const graft_grounding_batch *batch, uint32_t i)
{
    return &batch->samples[batch->index[i]];
}

static bool gain_known(const graft_grounding_sample *sample, size_t x)
{
    return sample->location_counts[x] > 0 && sample->gain != NULL &&
           sample->gain[x] > GRAFT_GAIN_UNKNOWN;
}

static shard_facts collect_facts(const grounding_job *job, graft_arena *arena, graft_span span)
{
    size_t xfers = job->grounding->xfers;
    size_t operators = job->grounding->operators;
    shard_facts facts;
    facts.legal = GRAFT_NEW(arena, float, span.count *xfers);
    facts.log_count = GRAFT_NEW(arena, float, span.count *xfers);
    facts.gain = GRAFT_NEW(arena, float, span.count *xfers);
    facts.known = GRAFT_NEW(arena, float, span.count *xfers);
    facts.cost = GRAFT_NEW(arena, float, span.count);
    facts.histogram = GRAFT_NEW(arena, float, span.count *operators);
    for (uint32_t i = 0; i < span.count; i++) {
        const graft_grounding_sample *sample = sample_at(job->batch, span.first + i);
        for (size_t x = 0; x < xfers; x++) {
            bool legal = sample->location_counts[x] > 0;
            facts.legal[i * xfers + x] = legal ? 1.0F : 0.0F;
            facts.log_count[i * xfers + x] = graft_log(1.0F + (float)sample->location_counts[x]);
            bool known = gain_known(sample, x);
            facts.gain[i * xfers + x] = known ? sample->gain[x] : 0.0F;
            facts.known[i * xfers + x] = known ? 1.0F : 0.0F;
        }
        facts.cost[i] = sample->cost;
        memcpy(facts.histogram + i * operators, sample->histogram, operators * sizeof(float));
    }
    return facts;
}

/* Copies the shard's graphs into one batch. */
static graft_graph_batch collect_graphs(const grounding_job *job, graft_arena *arena,
                                        graft_span span)
{
    graft_graph_arrays *graphs = GRAFT_NEW(arena, graft_graph_arrays, span.count);
    for (uint32_t i = 0; i < span.count; i++) {
        graphs[i] = sample_at(job->batch, span.first + i)->graph;
    }
    return graft_graph_batch_join(arena, &job->encoder->size, graphs, NULL, span.count);
}

static double count_right(const graft_matrix *logits, const float *legal)
{
    double right = 0.0;
    size_t size = graft_matrix_size(logits);
    for (size_t k = 0; k < size; k++) {
        right += (logits->value[k] > 0.0F) == (legal[k] > 0.0F) ? 1.0 : 0.0;
    }
    return right;
}

/* Half squared error of a head. */
static double regress(graft_tape *tape, const grounding_job *job, graft_layer head,
                      const graft_matrix *latent, graft_target target)
{
    const graft_matrix *out = graft_layer_apply(tape, &job->grounding->parameters, head, latent);
    return graft_loss_use(tape, graft_loss_squared(tape, out, &target), 1.0F);
}

static void work_on_shard(void *context, uint32_t shard, graft_tape *tape)
{
    grounding_job *job = context;
    const graft_grounding *heads = job->grounding;
    graft_span span = graft_shards_span(job->batch->count, shard);
    if (span.count == 0) {
        return;
    }
    shard_facts facts = collect_facts(job, tape->arena, span);
    graft_graph_batch graphs = collect_graphs(job, tape->arena, span);
    const graft_matrix *z = graft_encoder_apply(job->encoder, tape, &graphs).latent;
    float each = 1.0F / (float)job->batch->count;
    float per_xfer = each / (float)heads->xfers;
    float per_known = 1.0F / (float)(job->known_total > 0 ? job->known_total : 1);
    graft_grounding_loss *loss = &job->loss[shard];
    const graft_matrix *logits = graft_layer_apply(tape, &heads->parameters, heads->legality, z);
    graft_target legal = {facts.legal, NULL, per_xfer};
    loss->legality = graft_loss_use(tape, graft_loss_binary(tape, logits, &legal), 1.0F);
    loss->legal_right = count_right(logits, facts.legal) * (double)per_xfer;
    loss->counts =
        regress(tape, job, heads->counts, z, (graft_target){facts.log_count, NULL, per_xfer});
    loss->gain =
        regress(tape, job, heads->gain, z, (graft_target){facts.gain, facts.known, per_known});
    loss->cost = regress(tape, job, heads->cost, z, (graft_target){facts.cost, NULL, each});
    loss->histogram =
        regress(tape, job, heads->histogram, z,
                (graft_target){facts.histogram, NULL, each / (float)heads->operators});
    if (tape->recording) {
        graft_tape_backward(tape);
    }
}

static uint32_t count_known(const graft_grounding *grounding, const graft_grounding_batch *batch)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        for (uint32_t x = 0; x < grounding->xfers; x++) {
            const graft_grounding_sample *sample = sample_at(batch, i);
            total += gain_known(sample, x) ? 1U : 0U;
        }
    }
    return total;
}

static graft_grounding_loss add_shards(const grounding_job *job)
{
    graft_grounding_loss sum = job->loss[0];
    for (uint32_t s = 1; s < GRAFT_SHARD_COUNT; s++) {
        sum.legality += job->loss[s].legality;
        sum.counts += job->loss[s].counts;
        sum.gain += job->loss[s].gain;
        sum.cost += job->loss[s].cost;
        sum.histogram += job->loss[s].histogram;
        sum.legal_right += job->loss[s].legal_right;
    }
    return sum;
}

graft_grounding_loss graft_grounding_differentiate(const graft_encoder *encoder,
                                                   const graft_grounding *grounding,
                                                   graft_shards *shards,
                                                   const graft_grounding_batch *batch)
{
    grounding_job job = {.encoder = encoder, .grounding = grounding, .batch = batch};
    job.known_total = count_known(grounding, batch);
    graft_shards_differentiate(shards, work_on_shard, &job);
    return add_shards(&job);
}

graft_grounding_loss graft_grounding_evaluate(const graft_encoder *encoder,
                                              const graft_grounding *grounding,
                                              graft_shards *shards,
                                              const graft_grounding_batch *batch)
{
    grounding_job job = {.encoder = encoder, .grounding = grounding, .batch = batch};
    job.known_total = count_known(grounding, batch);
    graft_shards_run(shards, work_on_shard, &job);
    return add_shards(&job);
}
