/* bench.c - see bench.h. Numbers are random; only sizes matter. */
#include "train/bench.h"

#include "graph/figures.h"
#include "graph/json.h"
#include "graph/log.h"
#include "train/blas.h"
#include "train/dream.h"
#include "train/grounding.h"
#include "train/optimiser.h"
#include "train/ppo.h"
#include "train/world_training.h"

#include <stdlib.h>

enum { REPEATS = 15, NODES = 175, EDGES = 190, SEQUENCES = 10, STEPS = 150, XFERS = 100 };
enum { NODE_FEATURES = 48, EDGE_FEATURES = 8, OPERATORS = 40, DREAMS = 64, HORIZON = 50 };

typedef void bench_body(void *context);

/* Runs `body` REPEATS times after one warm-up; prints milliseconds over `divisor`. */
static void measure(graft_env *env, FILE *out, const char *name, double divisor, bench_body *body,
                    void *context)
{
    double ms[REPEATS];
    body(context);
    for (uint32_t i = 0; i < REPEATS; i++) {
        uint64_t start = graft_clock_ns();
        body(context);
        ms[i] = (double)(graft_clock_ns() - start) / 1e6 / divisor;
    }
    qsort(ms, REPEATS, sizeof ms[0], graft_compare_doubles);
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", name);
    graft_json_string(&json, "unit", "ms");
    graft_json_number(&json, "median", ms[REPEATS / 2]);
    graft_json_number(&json, "low", ms[REPEATS / 4]);
    graft_json_number(&json, "high", ms[REPEATS - 1 - REPEATS / 4]);
    graft_json_string(&json, "blas", graft_blas_core());
    graft_json_end(&json, out);
    graft_arena_release(env->scratch, mark);
}

static float *random_floats(graft_arena *arena, graft_rng *rng, size_t count)
{
    float *value = GRAFT_NEW(arena, float, count);
    for (size_t i = 0; i < count; i++) {
        value[i] = (float)graft_rng_normal(rng);
    }
    return value;
}

static uint32_t *random_indices(graft_arena *arena, graft_rng *rng, size_t count, uint32_t below)
{
    uint32_t *value = GRAFT_NEW(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        value[i] = graft_rng_below(rng, below);
    }
    return value;
}

static uint16_t *random_counts(graft_arena *arena, graft_rng *rng, size_t count)
{
    uint16_t *value = GRAFT_NEW(arena, uint16_t, count);
    for (size_t i = 0; i < count; i++) {
        value[i] = (uint16_t)(graft_rng_below(rng, 10) == 0 ? 1 + graft_rng_below(rng, 20) : 0);
    }
    return value;
}

/* -------------------------------------------------------------------------------------- encoder */

typedef struct {
    graft_encoder encoder;
    graft_grounding grounding;
    graft_shards shards;
    graft_grounding_sample sample;
    graft_grounding_batch batch;
} encoder_bench;

static void run_encoder_forward(void *context)
{
    encoder_bench *bench = context;
    (void)graft_grounding_evaluate(&bench->encoder, &bench->grounding, &bench->shards,
                                   &bench->batch);
}

static void run_encoder_differentiate(void *context)
{
    encoder_bench *bench = context;
    (void)graft_grounding_differentiate(&bench->encoder, &bench->grounding, &bench->shards,
                                        &bench->batch);
}

static void bench_encoder(graft_env *env, FILE *out)
{
    static const uint32_t first = 0;
    graft_mark mark = graft_arena_mark(env->unit);
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    encoder_bench *bench = GRAFT_NEW(env->unit, encoder_bench, 1);
    graft_encoder_size size = graft_encoder_defaults(
        (graft_encoder_size){.node_features = NODE_FEATURES, .edge_features = EDGE_FEATURES});
    graft_encoder_init(&bench->encoder, env->unit, &size, 1);
    graft_grounding_init(&bench->grounding, env->unit, size.latent, XFERS, OPERATORS, 2);
    graft_parameters *sets[2] = {&bench->encoder.parameters, &bench->grounding.parameters};
    graft_shards_open(&bench->shards, env->unit, 1, sets, 2);
    bench->sample = (graft_grounding_sample){
        .graph = {.node_count = NODES,
                  .edge_count = EDGES,
                  .nodes = random_floats(env->unit, &rng, NODES * NODE_FEATURES),
                  .edges = random_floats(env->unit, &rng, EDGES * EDGE_FEATURES),
                  .senders = random_indices(env->unit, &rng, EDGES, NODES),
                  .receivers = random_indices(env->unit, &rng, EDGES, NODES)},
        .location_counts = random_counts(env->unit, &rng, XFERS),
        .gain = random_floats(env->unit, &rng, XFERS),
        .histogram = random_floats(env->unit, &rng, OPERATORS)
    };
    bench->batch = (graft_grounding_batch){&bench->sample, &first, 1};
    measure(env, out, "encoder.forward", 1.0, run_encoder_forward, bench);
    measure(env, out, "encoder.differentiate", 1.0, run_encoder_differentiate, bench);
    graft_shards_close(&bench->shards);
    graft_arena_release(env->unit, mark);
}

/* ---------------------------------------------------------------------- world model, controller */

typedef struct {
    graft_env *env;
    graft_world_model model;
    graft_controller controller;
    graft_shards world_shards;
    graft_shards controller_shards;
    graft_trajectory trajectories[SEQUENCES];
    graft_world_batch batch;
    graft_dream_starts starts;
    graft_rollout rollout;
    uint32_t *rows;
    uint32_t row_count;
} world_bench;

static void run_world_forward(void *context)
{
    world_bench *bench = context;
    graft_mark mark = graft_arena_mark(bench->env->scratch);
    (void)graft_world_model_evaluate(&bench->model, &bench->world_shards, bench->env->scratch,
                                     &bench->batch);
    graft_arena_release(bench->env->scratch, mark);
}

static void run_world_differentiate(void *context)
{
    world_bench *bench = context;
    (void)graft_world_model_differentiate(&bench->model, &bench->world_shards, &bench->batch, NULL);
}

static void run_world_update(void *context)
{
    world_bench *bench = context;
    run_world_differentiate(context);
    (void)graft_adam_step(bench->world_shards.sets, 1, 1e-4, 1.0);
}

static void run_dream(void *context)
{
    world_bench *bench = context;
    graft_dream(&bench->model, &bench->controller, &bench->controller_shards, &bench->starts,
                &(graft_dream_settings){.temperature = 1.0F, .seed = 3}, &bench->rollout);
}

static void run_ppo(void *context)
{
    world_bench *bench = context;
    graft_ppo_settings settings = graft_ppo_defaults();
    (void)graft_ppo_differentiate(&bench->controller, &bench->controller_shards, &bench->rollout,
                                  bench->rows, bench->row_count, &settings);
}

static void fill_trajectories(world_bench *bench, graft_arena *arena, graft_rng *rng)
{
    const graft_world_size *size = &bench->model.size;
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        graft_trajectory *t = &bench->trajectories[i];
        *t = graft_trajectory_new(arena, STEPS, size->latent, XFERS);
        t->z = random_floats(arena, rng, (size_t)(STEPS + 1) * size->latent);
        t->reward = random_floats(arena, rng, STEPS);
        t->location_counts = random_counts(arena, rng, (size_t)(STEPS + 1) * XFERS);
        for (uint32_t k = 0; k < STEPS; k++) {
            t->xfer[k] = (uint16_t)graft_rng_below(rng, XFERS);
            t->location[k] = (uint16_t)graft_rng_below(rng, 20);
        }
    }
}

/* Rows of the rollout that hold a step, at most 256 of them. */
static void list_rows(world_bench *bench, graft_arena *arena)
{
    bench->rows = GRAFT_NEW(arena, uint32_t, 256);
    for (uint32_t e = 0; e < DREAMS; e++) {
        for (uint32_t t = 0; t < bench->rollout.length[e] && bench->row_count < 256; t++) {
            bench->rows[bench->row_count++] = e * HORIZON + t;
        }
    }
}

static void bench_world(graft_env *env, FILE *out)
{
    static const uint32_t order[SEQUENCES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    graft_mark mark = graft_arena_mark(env->unit);
    graft_rng rng;
    graft_rng_seed(&rng, 2);
    world_bench *bench = GRAFT_NEW(env->unit, world_bench, 1);
    bench->env = env;
    graft_world_size size = graft_world_defaults((graft_world_size){.latent = 64, .xfers = XFERS});
    graft_world_model_init(&bench->model, env->unit, &size, 1);
    graft_controller_size small =
        graft_controller_defaults((graft_controller_size){.latent = 64, .xfers = XFERS});
    graft_controller_init(&bench->controller, env->unit, &small, 2);
    graft_parameters *world = &bench->model.parameters;
    graft_parameters *controller = &bench->controller.parameters;
    graft_shards_open(&bench->world_shards, env->unit, 1, &world, 1);
    graft_shards_open(&bench->controller_shards, env->unit, 1, &controller, 1);
    fill_trajectories(bench, env->unit, &rng);
    graft_world_model_calibrate(&bench->model, bench->trajectories, SEQUENCES);
    bench->batch = (graft_world_batch){bench->trajectories, order, NULL, SEQUENCES, 0};
    measure(env, out, "world.forward", 1.0, run_world_forward, bench);
    measure(env, out, "world.differentiate", 1.0, run_world_differentiate, bench);
    measure(env, out, "world.update", 1.0, run_world_update, bench);
    bench->starts = (graft_dream_starts){STEPS + 1, bench->trajectories[0].z,
                                         bench->trajectories[0].location_counts};
    bench->rollout = graft_rollout_new(env->unit, DREAMS, HORIZON, 64, XFERS);
    run_dream(bench);
    double dreamed = DREAMS * graft_rollout_mean_length(&bench->rollout);
    measure(env, out, "dream", dreamed, run_dream, bench);
    list_rows(bench, env->unit);
    measure(env, out, "ppo.differentiate", 1.0, run_ppo, bench);
    graft_shards_close(&bench->world_shards);
    graft_shards_close(&bench->controller_shards);
    graft_arena_release(env->unit, mark);
}

void graft_numerics_bench(graft_env *env, FILE *out)
{
    graft_blas_open();
    bench_encoder(env, out);
    bench_world(env, out);
}
