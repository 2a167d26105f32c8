/* The world model over candidates: its gradients, its dreams by seed, that they touch no
 * environment, and that it learns what closes. */
#include "tests/support/gradient.h"
#include "tests/train/scenes.h"
#include "train/agent/dreamer.h"

#include <string.h>

/* A dreamer with its stories, of one model. */
typedef struct {
    fixture *f;
    graft_observer *observers[1];
    graft_candidates *agent;
    graft_dreamer dreamer;
} dreaming;

static void close_dreamer(void *dreamer) { graft_dreamer_close(dreamer); }

static dreaming *open_dreaming(graft_env *env, uint64_t seed, uint32_t threads)
{
    dreaming *d = GRAFT_NEW(env->life, dreaming, 1);
    env->thread_count = threads;
    d->f = open_fixture(env, "dscnn");
    d->observers[0] = &d->f->observer;
    d->agent = open_agent(env, seed, threads);
    stir(d->agent);
    graft_dreamer_open(env, d->agent, d->observers, 1, &d->dreamer);
    check_at_end(close_dreamer, &d->dreamer);
    CHECK_OK(graft_dreamer_record(&d->dreamer));
    return d;
}

static double lose(void *context)
{
    graft_dreamer *d = context;
    const uint32_t index[GRAFT_SHARD_COUNT] = {0, 1, 2, 3};
    return graft_foresight_differentiate(&d->model, &d->shards, &d->repertoire, d->learnt, index)
        .total;
}

CHECK_CASE(test_gradients)
{
    dreaming *d = open_dreaming(env, 3, 1);
    (void)lose(&d->dreamer);
    assert_true(gradient_worst_slope(&d->dreamer.model.parameters, lose, &d->dreamer) < 1.0);
}

/* What is on offer in two scenes has neither closed nor opened between them; what was chosen has
 * closed, and something opens now and then. */
CHECK_CASE(test_stories)
{
    dreaming *d = open_dreaming(env, 1, 1);
    uint32_t opened = 0;
    for (uint32_t s = 0; s < d->dreamer.learnt_stories.count; s++) {
        const graft_story *story = &d->dreamer.learnt[s];
        assert_true(story->steps > 1);
        for (uint32_t t = 0; t + 1 < story->steps; t++) {
            const uint32_t end = story->first[t + 2] - 1; /* NO-OP is always there. */
            for (uint32_t j = story->first[t + 1]; j < end; j++) {
                opened += story->opened[j] > 0.5F ? 1 : 0;
                for (uint32_t i = story->first[t]; i + 1 < story->first[t + 1]; i++) {
                    const bool both = story->keys[i] == story->keys[j];
                    assert_false(both && (story->closed[i] > 0.5F || story->opened[j] > 0.5F));
                    assert_true(!both || story->gain_known[i] > 0.5F);
                }
            }
            assert_true(story->closed[story->chosen[t]] > 0.5F);
            assert_true(story->shared[2 * (size_t)story->chosen[t]] > 0.99F);
        }
    }
    assert_true(opened > 0);
}

/* Equal seeds dream the same for any number of threads, and learn the same from it. */
CHECK_CASE(test_same_seed)
{
    float *kept = NULL;
    size_t bytes = 0;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        dreaming *d = open_dreaming(env, 5, threads);
        const graft_parameters *set = &d->agent->scorer.parameters;
        CHECK_OK(graft_dreamer_learn(&d->dreamer));
        CHECK_OK(graft_dreamer_dream(&d->dreamer));
        assert_true(d->dreamer.progress.dream_steps > 0);
        if (kept == NULL) {
            bytes = set->size * sizeof(float);
            kept = GRAFT_NEW(d->f->by_prices->env->life, float, set->size);
            memcpy(kept, set->value, bytes);
        }
        assert_memory_equal(kept, set->value, bytes);
    }
}

typedef struct {
    graft_environment *environment;
    graft_price price;
    uint32_t asked;
} watched_price;

static graft_status watch_price(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    watched_price *w = context;
    assert_false(w->environment->sealed);
    w->asked++;
    return w->price.cost_ns(env, w->price.context, graph, order, ns);
}

/* A price is asked for in trials alone, and the environment can be used again afterwards. */
CHECK_CASE(test_sealed)
{
    dreaming *d = open_dreaming(env, 1, 1);
    graft_environment *e = &d->f->engine;
    watched_price watched = {.environment = e, .price = e->options.price};
    const uint64_t before = e->interactions;
    CHECK_OK(graft_dreamer_learn(&d->dreamer));
    assert_int_equal(e->interactions, before);
    e->options.price = (graft_price){.cost_ns = watch_price, .context = &watched};
    CHECK_OK(graft_dreamer_dream(&d->dreamer));
    e->options.price = watched.price;
    /* Three trials, of at most as many rewrites as there are steps, and each first graph. */
    assert_in_range(watched.asked, 3, 3 * (e->options.step_limit + 1));
    assert_true(d->dreamer.progress.dream_steps > watched.asked);
    assert_false(e->sealed);
    CHECK_OK(graft_environment_reset(d->f->by_prices->env, e));
}

/* What closes is learnt from few episodes: whatever shares nodes with the rewrite. */
CHECK_CASE(test_it_learns)
{
    dreaming *d = open_dreaming(env, 1, 1);
    CHECK_OK(graft_dreamer_check(&d->dreamer));
    const double before = d->dreamer.report.ahead[0].closed;
    CHECK_OK(graft_dreamer_learn(&d->dreamer));
    CHECK_OK(graft_dreamer_check(&d->dreamer));
    const double after = d->dreamer.report.ahead[0].closed;
    print_message("F1 of what closes: untrained %.3f, trained %.3f\n", before, after);
    assert_true(after > 0.85 && after > before + 0.3);
}

/* What comes out of the dreams is no worse, where it was tried, than what went in, and trials count
 * as steps in the environment. */
CHECK_CASE(test_best_is_kept)
{
    graft_agent_settings wild = small;
    dreaming *d = open_dreaming(env, 1, 1);
    graft_plan_found before;
    graft_plan_found after;
    wild.candidates_learning_rate = 0.2; /* It is unlearnt at once. */
    wild.candidates_kl = 10;
    CHECK_OK(graft_dreamer_learn(&d->dreamer));
    d->agent->settings = &wild;
    CHECK_OK(graft_candidates_play(env, env->life, d->agent, &d->f->observer, NULL, &before));
    const uint64_t steps = d->agent->interactions;
    CHECK_OK(graft_dreamer_dream(&d->dreamer));
    assert_true(d->agent->interactions > steps);
    CHECK_OK(graft_candidates_play(env, env->life, d->agent, &d->f->observer, NULL, &after));
    assert_true(after.cost_ns <= before.cost_ns);
}

/* Stories stand model by model, each model's are held against the world model by themselves, and it
 * takes as many updates for each. */
CHECK_CASE(test_model_by_model)
{
    fixture *models[2] = {open_fixture(env, "dscnn"), open_fixture(env, "resnet8")};
    graft_observer *const observers[2] = {&models[0]->observer, &models[1]->observer};
    graft_candidates *agent = open_agent(env, 1, 1);
    graft_dreamer dreamer;
    graft_dreamer_open(env, agent, observers, 2, &dreamer);
    CHECK_OK(graft_dreamer_record(&dreamer));
    CHECK_OK(graft_dreamer_check(&dreamer));
    for (uint32_t m = 0; m < 2; m++) {
        const uint32_t each = dreamer.held_stories.count / 2;
        uint32_t steps = 0;
        for (uint32_t s = m * each; s < (m + 1) * each; s++) {
            const graft_story *story = &dreamer.held[s];
            assert_memory_equal(story->facts, dreamer.held[m * each].facts,
                                story->first[1] * GRAFT_FACT_COUNT * sizeof(float));
            steps += story->steps;
        }
        assert_int_equal(dreamer.reports[m].steps, steps);
    }
    assert_int_equal(dreamer.report.steps, dreamer.reports[0].steps + dreamer.reports[1].steps);
    CHECK_OK(graft_dreamer_learn(&dreamer));
    assert_int_equal(dreamer.progress.world_updates, 2 * agent->settings->foresight_updates);
    graft_dreamer_close(&dreamer);
}

/* Of candidates that are alike only some are on offer; the others take their turns in a dream, and
 * when all have been taken there are no more. */
CHECK_CASE(test_turns)
{
    dreaming *d = open_dreaming(env, 1, 1);
    const graft_scene_options scenes = graft_candidates_scenes(d->agent->settings);
    graft_dreamt dream;
    CHECK_OK(graft_dreamer_learn(&d->dreamer));
    graft_dreamt_open(env->unit, &d->dreamer.model, &d->dreamer.repertoire, &scenes, &dream);
    graft_dreamt_begin(&dream, env->scratch, &d->dreamer.learnt[0], 0);
    uint32_t kind = 0;
    for (uint32_t i = 0; i < dream.count; i++) {
        kind = dream.waiting[dream.kinds[i]] > dream.waiting[kind] ? dream.kinds[i] : kind;
    }
    uint32_t offered = 0;
    for (uint32_t i = 0; i < dream.count; i++) {
        offered += dream.kinds[i] == kind;
    }
    const uint32_t all = offered + dream.waiting[kind];
    uint32_t taken = 0;
    for (uint32_t choice = 0; choice < dream.count;) {
        if (dream.kinds[choice] == kind) {
            (void)graft_dreamt_take(&dream, env->scratch, choice, 1.0F, NULL);
            assert_true(++taken <= all);
            choice = 0;
        } else {
            choice++;
        }
    }
    print_message("%u alike, %u on offer, %u taken\n", all, offered, taken);
    assert_true(offered == scenes.alike && taken > offered);
}
