/* evaluate.c - values of nodes over all samples, on several threads, and their fingerprints.
 *
 * A fingerprint is XXH3-128 of the shape and of the residues of every sample. Some samples mix
 * signs, some lean to negative and some to positive numbers: with one sample, or one sign, most
 * candidates about relu and max would be false. Numbers are rationals, most of them no integers:
 * integers obey laws of order that the reals do not. */
#include "gen/space.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/base/rng.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH_NODES = 4096, CHUNK_NODES = 64, SHOWN_NODES = 20000, MAX_THREADS = 256 };

/* ----------------------------------------------------------------- samples */

/* How a sample is drawn: magnitudes of at most `most`, or half, a quarter or an eighth of it;
 * negative with this probability. */
typedef struct {
    double negative_share;
    int32_t most;
} sample_style;

static const sample_style styles[GRAFT_GEN_SAMPLES] = {
    {0.5,  24},
    {0.4,  2 },
    {0.97, 16},
    {0.05, 32},
    {0.5,  8 },
    {0.6,  16},
    {0.8,  3 },
    {0.2,  10},
};

enum {
    DENOMINATORS = 8,       /* Different ones in a tensor: inverses are what takes time. */
    MOST_FOR_FUNCTIONS = 10 /* exp(-x) of larger numbers is too near 0 for its sign to be told. */
};

/* Kernels and matrices are scaled down by the root of what is summed over them, so that sums stay
 * where clip and tanh still tell numbers apart. */
static int32_t choose_scale(const graft_shape *shape, bool is_weight)
{
    int32_t summed = 1;
    for (uint32_t i = 1; i < shape->rank && shape->rank == 4; i++) {
        summed *= shape->dims[i];
    }
    summed = shape->rank == 2 ? shape->dims[0] : summed;
    int32_t root = 1;
    while (is_weight && root * root < summed) {
        root++;
    }
    return root;
}

/* x times a whole number. */
static graft_field multiply_whole(graft_field x, int64_t factor)
{
    uint64_t magnitude = (uint64_t)(factor < 0 ? -factor : factor);
    uint64_t residue = (uint64_t)((unsigned __int128)x.residue * magnitude % GRAFT_FIELD_PRIME);
    bool negate = factor < 0 && residue != 0;
    return (graft_field){negate ? GRAFT_FIELD_PRIME - residue : residue, x.shadow * (double)factor};
}

static bool uses_function(const graft_gen_step *step)
{
    if ((graft_op(step->op)->flags & GRAFT_FLAG_UNKNOWN_FN) != 0) {
        return true;
    }
    for (uint32_t i = 0; i < graft_op(step->op)->attr_count; i++) {
        if (graft_op_attr(step->op, i)->kind == GRAFT_ATTR_ACTIVATION &&
            step->attrs[i] >= GRAFT_ACT_SIGMOID) {
            return true;
        }
    }
    return false;
}

int32_t graft_gen_config_most(const graft_gen_config *config)
{
    for (uint32_t s = 0; s < config->step_count; s++) {
        if (uses_function(&config->steps[s])) {
            return MOST_FOR_FUNCTIONS;
        }
    }
    return INT32_MAX;
}

int32_t graft_gen_set_most(const graft_gen_set *set)
{
    int32_t most = INT32_MAX;
    for (uint32_t c = 0; c < set->config_count; c++) {
        int32_t own = graft_gen_config_most(&set->configs[c]);
        most = own < most ? own : most;
    }
    return most;
}

void graft_gen_sample(graft_rng *rng, const graft_gen_draw *draw, const graft_shape *shape,
                      graft_field *data)
{
    const sample_style *style = &styles[draw->sample];
    int32_t limit = style->most < draw->most ? style->most : draw->most;
    size_t count = (size_t)graft_shape_elements(shape);
    int32_t scale = choose_scale(shape, draw->is_weight);
    int32_t bottoms[DENOMINATORS];
    graft_field parts[DENOMINATORS];
    for (uint32_t i = 0; i < DENOMINATORS; i++) {
        bottoms[i] = 17 + (int32_t)graft_rng_below(rng, 200);
        parts[i] = graft_field_rational(1, (int64_t)bottoms[i] * scale);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t pick = graft_rng_below(rng, DENOMINATORS);
        uint32_t most = (uint32_t)(bottoms[pick] * limit) >> graft_rng_below(rng, 4);
        int32_t top = 1 + (int32_t)graft_rng_below(rng, most);
        /* Scalars have few elements: up to three of them see every combination of signs. */
        bool by_turns = count == 1 && !draw->is_fresh;
        double negative_share = count == 1 ? 0.5 : style->negative_share;
        bool negative = by_turns ? ((draw->sample >> (draw->stream % 3)) & 1u) != 0
                                 : graft_rng_uniform(rng) < negative_share;
        data[i] = shape->dtype == GRAFT_DTYPE_BOOL
                      ? graft_field_integer((int64_t)graft_rng_below(rng, 2))
                  : shape->dtype == GRAFT_DTYPE_I8
                      ? graft_field_integer((int64_t)graft_rng_below(rng, 256) - 128)
                      : multiply_whole(parts[pick], negative ? -top : top);
    }
}

void graft_gen_sample_fresh(uint64_t seed, uint32_t draw, graft_gen_draw how,
                            const graft_shape *shape, graft_field *data)
{
    graft_rng rng;
    how.sample = draw % GRAFT_GEN_SAMPLES;
    how.is_fresh = true;
    graft_rng_derive(&rng, seed + draw, how.stream);
    graft_gen_sample(&rng, &how, shape, data);
}

graft_gen_print graft_gen_data_print(const graft_shape *shape, const graft_field *data,
                                     uint32_t sample_count)
{
    uint64_t words[GRAFT_MAX_RANK + 1 + GRAFT_GEN_SAMPLES * GRAFT_GEN_MAX_ELEMENTS];
    graft_gen_print print = {.is_uniform = true};
    size_t count = (size_t)graft_shape_elements(shape) * sample_count;
    size_t block = (size_t)graft_shape_elements(shape) * GRAFT_GEN_SAMPLES;
    size_t size = 0;
    words[size++] = shape->rank + (shape->dtype == GRAFT_DTYPE_F32 ? 0 : 8U * shape->dtype);
    for (uint32_t i = 0; i < shape->rank; i++) {
        words[size++] = (uint64_t)shape->dims[i];
    }
    for (size_t first = 0; first < count; first += block) {
        for (size_t i = first; i < count && i < first + block; i++) {
            words[size++] = data[i].residue;
            print.is_uniform = print.is_uniform && data[i].residue == data[0].residue;
        }
        print.hash = XXH3_128bits(words, size * sizeof words[0]);
        size = 0; /* Further samples are hashed together with the hash of those before them. */
        words[size++] = print.hash.low64;
        words[size++] = print.hash.high64;
    }
    return print;
}

/* ------------------------------------------------------------ one operator */

/* The shapes of all tensors of a configuration; false where an operator does not take its inputs.
 */
static bool infer(const graft_gen_config *config, const graft_shape *in, graft_shape *shapes)
{
    bool fits = true;
    memcpy(shapes, in, config->input_count * sizeof *in);
    for (uint32_t s = 0; s < config->step_count && fits; s++) {
        const graft_gen_step *step = &config->steps[s];
        graft_shape args[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < graft_op(step->op)->input_count; i++) {
            args[i] = shapes[step->args[i]];
        }
        fits = graft_infer_shapes(step->op, step->attrs, args, &shapes[GRAFT_GEN_STEP(s, 0)]) ==
               GRAFT_OK;
    }
    return fits;
}

bool graft_gen_config_infer(const graft_gen_config *config, const graft_shape *in, graft_shape *out)
{
    graft_shape known[GRAFT_GEN_CONFIG_TENSORS];
    if ((config->rank != 0 && in[0].rank != config->rank) || !infer(config, in, known)) {
        return false;
    }
    for (uint32_t o = 0; o < config->output_count; o++) {
        out[o] = known[config->outputs[o]];
        if (graft_shape_elements(&out[o]) > GRAFT_GEN_MAX_ELEMENTS) {
            return false;
        }
    }
    return true;
}

void graft_gen_config_shapes(const graft_gen_config *config, const graft_shape *in_shapes,
                             graft_shape *shapes)
{
    const bool fits = infer(config, in_shapes, shapes);
    assert(fits); /* Checked when the node was made. */
    (void)fits;
}

bool graft_gen_config_run(graft_field_state *field, const graft_gen_config *config,
                          const graft_shape *shapes, const graft_field *const in[],
                          graft_field *const out[], graft_field *workspace)
{
    const graft_field *known[GRAFT_GEN_CONFIG_TENSORS] = {NULL};
    field->ambiguous_count = 0;
    field->invalid_count = 0;
    memcpy(known, in, config->input_count * sizeof *known);
    for (uint32_t s = 0; s < config->step_count; s++) {
        const graft_gen_step *step = &config->steps[s];
        const graft_op_info *info = graft_op(step->op);
        graft_shape arg_shapes[GRAFT_MAX_INPUTS];
        const graft_field *args[GRAFT_MAX_INPUTS] = {NULL};
        graft_field *results[GRAFT_MAX_OUTPUTS] = {NULL};
        for (uint32_t i = 0; i < info->input_count; i++) {
            arg_shapes[i] = shapes[step->args[i]];
            args[i] = known[step->args[i]];
        }
        for (uint32_t o = 0; o < info->output_count; o++) {
            results[o] = workspace;
            workspace += graft_shape_elements(&shapes[GRAFT_GEN_STEP(s, o)]);
            for (uint32_t k = 0; k < config->output_count; k++) {
                results[o] = config->outputs[k] == GRAFT_GEN_STEP(s, o) ? out[k] : results[o];
            }
            known[GRAFT_GEN_STEP(s, o)] = results[o];
        }
        graft_call call = {step->attrs, arg_shapes, &shapes[GRAFT_GEN_STEP(s, 0)]};
        graft_field_run(field, step->op, &call, args, results);
    }
    return field->ambiguous_count == 0 && field->invalid_count == 0;
}

size_t graft_gen_config_workspace(const graft_gen_config *config, const graft_shape *shapes)
{
    size_t count = 0;
    for (uint32_t s = 0; s < config->step_count; s++) {
        for (uint32_t o = 0; o < graft_op(config->steps[s].op)->output_count; o++) {
            count += (size_t)graft_shape_elements(&shapes[GRAFT_GEN_STEP(s, o)]);
        }
    }
    return count;
}

/* --------------------------------------------------------------- all nodes */

/* A batch of nodes that threads take in chunks; each result has its own place. */
typedef struct {
    const graft_gen_space *space;
    const graft_gen_node *nodes;
    uint32_t count;
    uint32_t sample_count;
    atomic_uint next;
    graft_gen_print *prints; /* GRAFT_MAX_OUTPUTS per node. */
    graft_field **kept;      /* Where the outputs go, per node; NULL when they are not kept. */
} batch;

/* Memory of one thread, grown as needed. */
typedef struct {
    batch *work;
    graft_arena *arena;
    graft_field_state field;
} worker;

/* Evaluates one node on the batch's samples. Outputs stand one behind the other, each with its
 * samples. */
static void evaluate_node(worker *self, const graft_gen_node *node, graft_field *results,
                          graft_gen_print *prints)
{
    const graft_gen_space *space = self->work->space;
    uint32_t sample_count = self->work->sample_count;
    const graft_gen_config *config = &space->set->configs[node->config];
    graft_shape in_shapes[GRAFT_MAX_INPUTS];
    size_t in_counts[GRAFT_MAX_INPUTS];
    for (uint32_t i = 0; i < config->input_count; i++) {
        in_shapes[i] = space->shapes[space->values[node->args[i]].shape];
        in_counts[i] = (size_t)graft_shape_elements(&in_shapes[i]);
    }
    size_t out_count = (size_t)graft_shape_elements(&space->shapes[node->shapes[0]]);
    size_t second_count = config->output_count < 2
                              ? 0
                              : (size_t)graft_shape_elements(&space->shapes[node->shapes[1]]);
    graft_field *second = results + out_count * sample_count;
    graft_shape shapes[GRAFT_GEN_CONFIG_TENSORS];
    graft_gen_config_shapes(config, in_shapes, shapes);
    graft_field *workspace =
        GRAFT_NEW(self->arena, graft_field, graft_gen_config_workspace(config, shapes));
    for (uint32_t s = 0; s < sample_count; s++) {
        const graft_field *in[GRAFT_MAX_INPUTS] = {NULL};
        for (uint32_t i = 0; i < config->input_count; i++) {
            in[i] = space->data[node->args[i]] + s * in_counts[i];
        }
        graft_field *out[GRAFT_MAX_OUTPUTS] = {results + s * out_count, second + s * second_count};
        if (!graft_gen_config_run(&self->field, config, shapes, in, out, workspace)) {
            return; /* The prints stay zero: undefined. */
        }
    }
    prints[0] = graft_gen_data_print(&space->shapes[node->shapes[0]], results, sample_count);
    if (config->output_count == 2) {
        prints[1] = graft_gen_data_print(&space->shapes[node->shapes[1]], second, sample_count);
    }
}

static size_t count_results(const graft_gen_space *space, const graft_gen_node *node,
                            uint32_t sample_count)
{
    size_t count = 0;
    for (uint32_t o = 0; o < space->set->configs[node->config].output_count; o++) {
        count += (size_t)graft_shape_elements(&space->shapes[node->shapes[o]]);
    }
    return count * sample_count;
}

static void *run_worker(void *argument)
{
    worker *self = argument;
    batch *work = self->work;
    for (;;) {
        uint32_t start = atomic_fetch_add(&work->next, CHUNK_NODES);
        if (start >= work->count) {
            return NULL;
        }
        for (uint32_t n = start; n < work->count && n < start + CHUNK_NODES; n++) {
            const graft_gen_node *node = &work->nodes[n];
            graft_arena_reset(self->arena);
            graft_field *results =
                work->kept != NULL
                    ? work->kept[n]
                    : GRAFT_NEW(self->arena, graft_field,
                                count_results(work->space, node, work->sample_count));
            evaluate_node(self, node, results, &work->prints[(size_t)n * GRAFT_MAX_OUTPUTS]);
        }
    }
}

static void run_batch(graft_env *env, batch *work)
{
    uint32_t wanted = env->thread_count < MAX_THREADS ? env->thread_count : MAX_THREADS;
    uint32_t most = (work->count + CHUNK_NODES - 1) / CHUNK_NODES;
    uint32_t count = wanted < most ? wanted : most;
    pthread_t threads[MAX_THREADS];
    worker *workers = GRAFT_NEW(env->scratch, worker, count);
    uint32_t started = 1;
    for (uint32_t i = 0; i < count; i++) {
        workers[i].work = work;
        workers[i].arena = graft_arena_new(1 << 20);
    }
    while (started < count &&
           pthread_create(&threads[started], NULL, run_worker, &workers[started]) == 0) {
        started++; /* Fewer threads than asked for change the time, not the result. */
    }
    (void)run_worker(&workers[0]);
    for (uint32_t i = 1; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        graft_arena_free(workers[i].arena);
    }
}

/* What a value's data is in the results of its node, and how much that is. */
static const graft_field *results_of(const graft_gen_space *space, const graft_gen_value *value,
                                     graft_field *const *kept, uint32_t first_node, size_t *bytes)
{
    const graft_gen_node *node = &space->nodes[value->node];
    size_t samples = space->sample_count;
    size_t first = (size_t)graft_shape_elements(&space->shapes[node->shapes[0]]);
    const graft_field *from = kept[value->node - first_node];
    *bytes = (size_t)graft_shape_elements(&space->shapes[value->shape]) * samples * sizeof *from;
    return from == NULL ? NULL : from + (value->slot == 0 ? 0 : first * samples);
}

/* Copies the data of values that the batch brought; the rest of its buffers is given back. */
static void keep_data(graft_gen_space *space, uint32_t first_value, uint32_t first_node,
                      graft_field *const *kept)
{
    size_t bytes = 0;
    for (uint32_t v = first_value; v < space->value_count; v++) {
        const graft_field *from = results_of(space, &space->values[v], kept, first_node, &bytes);
        space->data[v] = GRAFT_NEW(space->arena, graft_field, bytes / sizeof *from);
        memcpy(space->data[v], from, bytes);
    }
}

/* The same where each rank has the results of its part of the `count` nodes. */
static void gather_data(graft_gen_space *space, uint32_t first_value, uint32_t first_node,
                        uint32_t count, graft_field *const *kept)
{
    const graft_env *env = space->env;
    graft_buffer own = {.arena = env->scratch};
    graft_buffer all = {.arena = env->scratch};
    size_t *parts = GRAFT_NEW(env->scratch, size_t, graft_ranks_count(env) + (size_t)1);
    size_t bytes = 0;
    for (uint32_t v = first_value; v < space->value_count; v++) {
        const graft_field *from = results_of(space, &space->values[v], kept, first_node, &bytes);
        if (from != NULL) {
            graft_buffer_append(&own, from, bytes);
        }
    }
    graft_ranks_gather(env, &own, &all, parts);
    uint32_t rank = 0;
    for (uint32_t v = first_value; v < space->value_count; v++) {
        uint32_t n = space->values[v].node - first_node;
        for (; graft_ranks_first(env, rank, count) > n; rank--) {
        }
        for (; graft_ranks_first(env, rank + 1, count) <= n; rank++) {
        }
        (void)results_of(space, &space->values[v], kept, first_node, &bytes);
        space->data[v] = GRAFT_NEW(space->arena, graft_field, bytes / sizeof(graft_field));
        memcpy(space->data[v], all.data + parts[rank], bytes);
        parts[rank] += bytes;
    }
}

/* Ranks evaluate a part of the nodes each. */
static void evaluate_batch(graft_gen_space *space, uint32_t first, uint32_t end, bool keep)
{
    const graft_env *env = space->env;
    graft_arena *scratch = env->scratch;
    GRAFT_SCOPED(scratch);
    uint32_t count = end - first;
    uint32_t own = graft_ranks_first(env, graft_ranks_own(env), count);
    uint32_t own_end = graft_ranks_first(env, graft_ranks_own(env) + 1, count);
    uint32_t first_value = space->value_count;
    graft_gen_print *prints =
        GRAFT_NEW(scratch, graft_gen_print, (size_t)count * GRAFT_MAX_OUTPUTS);
    graft_field **kept = GRAFT_NEW(scratch, graft_field *, count);
    batch work = {.space = space,
                  .nodes = &space->nodes[first + own],
                  .count = own_end - own,
                  .sample_count = space->sample_count,
                  .prints = prints + (size_t)own * GRAFT_MAX_OUTPUTS,
                  .kept = keep ? kept + own : NULL};
    for (uint32_t i = own; i < own_end && keep; i++) {
        kept[i] = GRAFT_NEW(scratch, graft_field,
                            count_results(space, &space->nodes[first + i], space->sample_count));
    }
    run_batch(space->env, &work);
    graft_ranks_fill(env, prints, count, GRAFT_MAX_OUTPUTS * sizeof *prints);
    graft_gen_values_assign(space, first, end, prints);
    if (keep && env->ranks != NULL) {
        gather_data(space, first_value, first, count, kept);
    } else if (keep) {
        keep_data(space, first_value, first, kept);
    }
}

void graft_gen_evaluate_keys(graft_gen_space *space, const graft_gen_node *nodes, uint32_t count,
                             uint64_t *keys)
{
    graft_arena *scratch = space->env->scratch;
    GRAFT_SCOPED(scratch);
    size_t print_count = (size_t)count * GRAFT_MAX_OUTPUTS;
    batch work = {.space = space,
                  .nodes = nodes,
                  .count = count,
                  .sample_count = GRAFT_GEN_FIRST_SAMPLES,
                  .prints = GRAFT_NEW(scratch, graft_gen_print, print_count)};
    run_batch(space->env, &work);
    for (size_t i = 0; i < print_count; i++) {
        keys[i] = work.prints[i].hash.low64;
    }
}

graft_status graft_gen_evaluate(graft_gen_space *space, uint32_t first, uint32_t end, bool keep)
{
    graft_progress progress;
    bool shown = end - first >= SHOWN_NODES;
    if (shown) {
        graft_progress_start(&progress, space->env, space->set->name, "graphs", end - first);
    }
    for (uint32_t at = first; at < end; at += BATCH_NODES) {
        if (graft_interrupted()) {
            return GRAFT_FAIL(space->env, GRAFT_INTERRUPTED, "interrupted");
        }
        uint32_t stop = end - at < BATCH_NODES ? end : at + BATCH_NODES;
        evaluate_batch(space, at, stop, keep);
        if (shown) {
            graft_progress_update(&progress, stop - first, NULL);
        }
    }
    if (shown) {
        graft_progress_finish(&progress);
    }
    return GRAFT_OK;
}
