/* dreamer.c - see dreamer.h. */
#include "train/agent/dreamer.h"

#include "graph/base/file.h"
#include "graph/base/log.h"
#include "train/nn/checkpoint.h"
#include "train/nn/optimiser.h"

#include <math.h>
#include <string.h>

static const double gradient_norm_most = 1.0;
static const double saved_units = 1e9;
static const uint64_t save_every_ns = UINT64_C(10000000000);
enum { SET_COUNT = 4 };
#define STREAM_WORLD  (UINT64_C(1) << 42)
#define STREAM_DREAMS (UINT64_C(1) << 36)

enum { PHASES = 4 };
static const struct {
    const char *name;
    graft_dreamer_phase *run;
} phases[PHASES] = {
    {"stories",     graft_dreamer_record},
    {"world model", graft_dreamer_learn },
    {"check",       graft_dreamer_check },
    {"dreams",      graft_dreamer_dream },
};

static uint32_t curve_size(const graft_candidates *agent)
{
    return 2 * ((uint32_t)agent->settings->foresight_dream_updates + 1);
}

void graft_dreamer_open(graft_env *env, graft_candidates *agent, graft_observer *const observers[],
                        uint32_t count, graft_dreamer *dreamer)
{
    *dreamer = (graft_dreamer){.env = env, .agent = agent, .observers = observers, .count = count};
    dreamer->reports = GRAFT_NEW(env->life, graft_foresight_report, count);
    graft_foresight_init(&dreamer->model, env->life, &agent->scorer, agent->settings,
                         agent->seed + 2);
    graft_parameters *sets[] = {&dreamer->model.parameters};
    graft_shards_open(&dreamer->shards, env->life, env->thread_count, sets, 1);
    graft_repertoire_open(env->life, &agent->scorer, &dreamer->repertoire);
    dreamer->best = agent->scorer.parameters;
    dreamer->best.name = "best";
    dreamer->best.gradient = GRAFT_NEW(env->life, float, dreamer->best.size);
    dreamer->best.moment = GRAFT_NEW(env->life, float, dreamer->best.size);
    dreamer->best.variance = GRAFT_NEW(env->life, float, dreamer->best.size);
    dreamer->best.value = GRAFT_NEW(env->life, float, dreamer->best.size);
    dreamer->first = GRAFT_COPY(env->life, agent->scorer.parameters.value, dreamer->best.size);
    dreamer->curve = GRAFT_NEW(env->life, float, curve_size(agent));
}

void graft_dreamer_close(graft_dreamer *dreamer) { graft_shards_close(&dreamer->shards); }

/* ------------------------------------------------------------------- checkpoints */

typedef struct {
    graft_parameters *sets[SET_COUNT];
    graft_counters counters;
    graft_reals curve;
} kept_parts;

static graft_checkpoint describe(graft_dreamer *d, kept_parts *parts)
{
    graft_scorer *scorer = &d->agent->scorer;
    *parts = (kept_parts){
        .sets = {&scorer->encoder.parameters, &scorer->parameters, &d->model.parameters, &d->best},
    };
    parts->counters = (graft_counters){d->run, (uint64_t *)(void *)&d->progress,
                                       sizeof d->progress / sizeof(uint64_t)};
    parts->curve = (graft_reals){"curve", d->curve, curve_size(d->agent)};
    return (graft_checkpoint){.sets = parts->sets,
                              .counters = &parts->counters,
                              .reals = &parts->curve,
                              .set_count = SET_COUNT,
                              .reals_count = 1,
                              .counters_count = 1};
}

static graft_status save(graft_dreamer *d)
{
    kept_parts parts;
    const graft_checkpoint checkpoint = describe(d, &parts);
    d->progress.agent_updates = d->agent->updates;
    d->saved_ns = graft_clock_ns();
    return graft_checkpoint_save(d->env, d->path, &checkpoint);
}

/* Goes on from the checkpoint when there is one of this run. */
static void load(graft_dreamer *d)
{
    kept_parts parts;
    const graft_checkpoint checkpoint = describe(d, &parts);
    if (d->path == NULL || !graft_file_exists(d->path)) {
        return;
    }
    if (graft_checkpoint_load(d->env, d->path, &checkpoint) != GRAFT_OK) {
        graft_log(d->env, 1, "the checkpoint is of another run and is replaced (%s)",
                  d->env->message);
        graft_env_clear(d->env);
        return;
    }
    d->agent->updates = d->progress.agent_updates;
    d->agent->interactions += d->progress.trial_steps;
    const uint64_t updates = d->progress.dream_updates;
    const float *next = &d->curve[2 * updates];
    const float dreamed = updates > 0 ? next[-2] : 0.0F;
    const float lived = updates > 0 ? next[-1] : 0.0F;
    d->dreamed = (double)dreamed;
    d->lived = (double)(d->progress.tried == updates + 1 ? next[1] : lived);
    graft_log(d->env, 1, "going on from %s", d->path);
}

/* After each update: whether to go on, and a checkpoint every now and then. */
static graft_status after_update(graft_dreamer *d)
{
    graft_status status = graft_search_go_on(d->env);
    if (d->path != NULL &&
        (status == GRAFT_INTERRUPTED || graft_clock_ns() - d->saved_ns > save_every_ns)) {
        graft_status saved = save(d);
        status = status == GRAFT_OK ? saved : status;
    }
    return status;
}

/* ------------------------------------------------------------------- phases */

static graft_status record(graft_dreamer *d, uint32_t per_model, graft_story **stories,
                           graft_stories *list)
{
    const uint32_t count = per_model * d->count;
    *stories = GRAFT_NEW(d->env->life, graft_story, count);
    for (uint32_t s = 0; s < count; s++) {
        GRAFT_PASS(graft_story_play(d->env, d->env->life, d->agent, d->observers[s / per_model],
                                    &d->repertoire, &(*stories)[s]));
        GRAFT_PASS(graft_search_go_on(d->env));
    }
    *list = (graft_stories){*stories, count};
    return GRAFT_OK;
}

graft_status graft_dreamer_record(graft_dreamer *dreamer)
{
    const graft_agent_settings *s = dreamer->agent->settings;
    GRAFT_PASS(record(dreamer, (uint32_t)s->foresight_episodes, &dreamer->learnt,
                      &dreamer->learnt_stories));
    GRAFT_PASS(
        record(dreamer, (uint32_t)s->foresight_held_out, &dreamer->held, &dreamer->held_stories));
    graft_foresight_calibrate(&dreamer->model, dreamer->learnt, dreamer->learnt_stories.count);
    return GRAFT_OK;
}

graft_status graft_dreamer_learn(graft_dreamer *dreamer)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *s = dreamer->agent->settings;
    const int64_t updates = s->foresight_updates * dreamer->count;
    const uint64_t start_ns = graft_clock_ns();
    graft_progress progress;
    graft_progress_start(&progress, dreamer->env, "world model", "updates", (uint64_t)updates);
    for (int64_t u = (int64_t)dreamer->progress.world_updates; u < updates; u++) {
        uint32_t index[GRAFT_SHARD_COUNT];
        graft_rng rng;
        graft_rng_derive(&rng, dreamer->agent->seed, STREAM_WORLD + (uint64_t)u);
        for (uint32_t k = 0; k < GRAFT_SHARD_COUNT; k++) {
            index[k] = graft_rng_below(&rng, dreamer->learnt_stories.count);
        }
        dreamer->loss = graft_foresight_differentiate(&dreamer->model, &dreamer->shards,
                                                      &dreamer->repertoire, dreamer->learnt, index);
        /* The rate falls to a tenth. */
        const double rate = s->foresight_learning_rate * (1.0 - 0.9 * (double)u / (double)updates);
        (void)graft_adam_step(dreamer->shards.sets, 1, rate, gradient_norm_most);
        dreamer->progress.world_updates++;
        graft_progress_update(&progress, (uint64_t)u + 1, NULL);
        GRAFT_CHECK(after_update(dreamer));
    }
    graft_progress_finish(&progress);
done:
    dreamer->world_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return status;
}

static graft_foresight_report check(const graft_dreamer *d, uint32_t first, uint32_t count)
{
    const uint32_t learnt = d->learnt_stories.count / d->count;
    const uint32_t held = d->held_stories.count / d->count;
    const graft_stories of_learnt = {&d->learnt[first * learnt], count * learnt};
    const graft_stories of_held = {&d->held[first * held], count * held};
    return graft_foresight_check(d->env, &d->model, &d->repertoire, d->agent, of_learnt, of_held);
}

/* By the policy that told the stories, whatever it has dreamt since. */
graft_status graft_dreamer_check(graft_dreamer *dreamer)
{
    graft_parameters *set = &dreamer->agent->scorer.parameters;
    float *now = set->value;
    set->value = dreamer->first;
    dreamer->report = check(dreamer, 0, dreamer->count);
    for (uint32_t m = 0; m < dreamer->count && dreamer->count > 1; m++) {
        dreamer->reports[m] = check(dreamer, m, 1);
    }
    set->value = now;
    return graft_search_go_on(dreamer->env);
}

static void seal(const graft_dreamer *d, bool sealed)
{
    for (uint32_t m = 0; m < d->count; m++) {
        d->observers[m]->environment->sealed = sealed;
    }
}

/* One update: dreams from the stories of each model in turn. */
static void dream_once(graft_dreamer *d, graft_dreamt *dream, uint64_t update)
{
    graft_arena *unit = d->env->unit;
    GRAFT_SCOPED(unit);
    const uint32_t most = (uint32_t)d->agent->settings->foresight_dreams;
    const uint32_t count = most > d->count ? most : d->count; /* One of each model at least. */
    const uint32_t stories = d->learnt_stories.count / d->count;
    graft_episode_kept *kept = GRAFT_NEW(unit, graft_episode_kept, count);
    graft_candidates_report report = {.episodes = count};
    d->dreamed = 0.0;
    for (uint32_t e = 0; e < count; e++) {
        kept[e] = graft_dreamt_play(unit, d->env->scratch, d->agent, dream,
                                    &d->learnt[e % d->count * stories],
                                    STREAM_DREAMS + update * count + e);
        d->dreamed += kept[e].saved / count;
        d->progress.dream_steps += kept[e].count;
    }
    graft_candidates_learn(d->env, d->agent, kept, count, d->count, &report);
}

static void copy_values(const graft_parameters *from, graft_parameters *to)
{
    memcpy(to->value, from->value, from->size * sizeof from->value[0]);
}

/* Tries the policy in the environments, and keeps it if it is the best so far. */
static graft_status try_policy(graft_dreamer *d)
{
    graft_status status = GRAFT_OK;
    double saved = 0.0;
    const uint64_t before = d->agent->interactions;
    if (d->progress.tried == d->progress.dream_updates + 1) {
        return GRAFT_OK; /* An earlier run did. */
    }
    seal(d, false);
    for (uint32_t m = 0; m < d->count; m++) {
        graft_plan_found found;
        GRAFT_CHECK(
            graft_candidates_play(d->env, d->env->life, d->agent, d->observers[m], NULL, &found));
        const double first_ns = d->observers[m]->environment->first_ns;
        saved += 100.0 * (first_ns - found.cost_ns) / first_ns / d->count;
    }
    d->lived = saved;
    const uint64_t units = (uint64_t)(fmax(saved, 0.0) * saved_units);
    if (d->progress.dream_updates == 0 || units > d->progress.saved) {
        d->progress.saved = units;
        copy_values(&d->agent->scorer.parameters, &d->best);
    }
    d->progress.tried = d->progress.dream_updates + 1;
    d->curve[2 * d->progress.dream_updates + 1] = (float)saved;
    d->progress.trial_steps += d->agent->interactions - before;
done:
    seal(d, true);
    return status;
}

/* After `update` of them, and at the end. */
static void tell(const graft_dreamer *d, uint64_t update)
{
    d->curve[2 * update] = (float)d->dreamed;
    d->curve[2 * update + 1] = (float)d->lived;
    if (d->told != NULL) {
        d->told(d->told_context, d);
    }
}

graft_status graft_dreamer_dream(graft_dreamer *dreamer)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *s = dreamer->agent->settings;
    const graft_scene_options scenes = graft_candidates_scenes(s);
    const uint64_t start_ns = graft_clock_ns();
    graft_mark mark = graft_arena_mark(dreamer->env->unit);
    graft_dreamt dream;
    graft_dreamt_open(dreamer->env->unit, &dreamer->model, &dreamer->repertoire, &scenes, &dream);
    seal(dreamer, true);
    graft_progress progress;
    graft_progress_start(&progress, dreamer->env, "dreams", "updates",
                         (uint64_t)s->foresight_dream_updates);
    for (int64_t u = (int64_t)dreamer->progress.dream_updates; u < s->foresight_dream_updates;
         u++) {
        if (u % s->foresight_trial_every == 0) {
            GRAFT_CHECK(try_policy(dreamer));
        }
        dream_once(dreamer, &dream, (uint64_t)u);
        dreamer->progress.dream_updates++;
        tell(dreamer, (uint64_t)u);
        graft_progress_update(&progress, (uint64_t)u + 1, NULL);
        GRAFT_CHECK(after_update(dreamer));
    }
    graft_progress_finish(&progress);
    GRAFT_CHECK(try_policy(dreamer));
    tell(dreamer, dreamer->progress.dream_updates);
    copy_values(&dreamer->best, &dreamer->agent->scorer.parameters);
done:
    if (status == GRAFT_INTERRUPTED && dreamer->path != NULL) {
        status = save(dreamer) == GRAFT_OK ? GRAFT_INTERRUPTED : status; /* In a trial. */
    }
    seal(dreamer, false);
    graft_arena_release(dreamer->env->unit, mark);
    dreamer->dream_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return status;
}

graft_status graft_dreamer_run(graft_dreamer *dreamer, const char *path, uint64_t identity)
{
    dreamer->path = path;
    dreamer->run =
        graft_arena_printf(dreamer->env->life, "run %016llx", (unsigned long long)identity);
    dreamer->saved_ns = graft_clock_ns();
    for (uint32_t p = 0; p < PHASES; p++) {
        const uint64_t start_ns = graft_clock_ns();
        GRAFT_PASS(phases[p].run(dreamer));
        graft_log(dreamer->env, 1, "%s: %.1f s", phases[p].name,
                  (double)(graft_clock_ns() - start_ns) / 1e9);
        if (p == 0) {
            load(dreamer);
        }
    }
    if (path != NULL) {
        GRAFT_PASS(save(dreamer));
    }
    return GRAFT_OK;
}
