/* dreamer.c - see dreamer.h. */
#include "train/dreamer.h"

#include "graph/log.h"
#include "train/optimiser.h"

static const double gradient_norm_most = 1.0;
#define STREAM_WORLD  (UINT64_C(1) << 42)
#define STREAM_DREAMS (UINT64_C(1) << 36)

const graft_dreamer_step graft_dreamer_phases[GRAFT_DREAMER_PHASES] = {
    {"stories",     graft_dreamer_record},
    {"world model", graft_dreamer_learn },
    {"check",       graft_dreamer_check },
    {"dreams",      graft_dreamer_dream },
};

void graft_dreamer_open(graft_env *env, graft_candidates *agent, graft_observer *const observers[],
                        uint32_t count, graft_dreamer *dreamer)
{
    *dreamer = (graft_dreamer){.env = env, .agent = agent, .observers = observers, .count = count};
    graft_foresight_init(&dreamer->model, env->life, &agent->scorer, agent->settings,
                         agent->seed + 2);
    graft_parameters *sets[] = {&dreamer->model.parameters};
    graft_shards_open(&dreamer->shards, env->life, env->thread_count, sets, 1);
    graft_repertoire_open(env->life, &agent->scorer, &dreamer->repertoire);
}

void graft_dreamer_close(graft_dreamer *dreamer) { graft_shards_close(&dreamer->shards); }

static graft_status record(graft_dreamer *d, uint32_t per_model, graft_story **stories,
                           graft_stories *list)
{
    graft_status status = GRAFT_OK;
    const uint32_t count = per_model * d->count;
    *stories = GRAFT_NEW(d->env->life, graft_story, count);
    for (uint32_t s = 0; s < count; s++) {
        GRAFT_CHECK(graft_story_play(d->env, d->env->life, d->agent, d->observers[s % d->count],
                                     &d->repertoire, &(*stories)[s]));
        GRAFT_CHECK(graft_search_go_on(d->env));
    }
    *list = (graft_stories){*stories, count};
done:
    return status;
}

graft_status graft_dreamer_record(graft_dreamer *dreamer)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *s = dreamer->agent->settings;
    GRAFT_CHECK(record(dreamer, (uint32_t)s->foresight_episodes, &dreamer->learnt,
                       &dreamer->learnt_stories));
    GRAFT_CHECK(
        record(dreamer, (uint32_t)s->foresight_held_out, &dreamer->held, &dreamer->held_stories));
    graft_foresight_calibrate(&dreamer->model, dreamer->learnt, dreamer->learnt_stories.count);
done:
    return status;
}

graft_status graft_dreamer_learn(graft_dreamer *dreamer)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *s = dreamer->agent->settings;
    const uint64_t start_ns = graft_clock_ns();
    for (int64_t u = 0; u < s->foresight_updates; u++) {
        uint32_t index[GRAFT_SHARD_COUNT];
        graft_rng rng;
        graft_rng_derive(&rng, dreamer->agent->seed, STREAM_WORLD + (uint64_t)u);
        for (uint32_t k = 0; k < GRAFT_SHARD_COUNT; k++) {
            index[k] = graft_rng_below(&rng, dreamer->learnt_stories.count);
        }
        dreamer->loss = graft_foresight_differentiate(&dreamer->model, &dreamer->shards,
                                                      &dreamer->repertoire, dreamer->learnt, index);
        /* The rate falls to a tenth. */
        const double rate =
            s->foresight_learning_rate * (1.0 - 0.9 * (double)u / (double)s->foresight_updates);
        (void)graft_adam_step(dreamer->shards.sets, 1, rate, gradient_norm_most);
        GRAFT_CHECK(graft_search_go_on(dreamer->env));
    }
done:
    dreamer->world_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return status;
}

graft_status graft_dreamer_check(graft_dreamer *dreamer)
{
    dreamer->report =
        graft_foresight_check(dreamer->env, &dreamer->model, &dreamer->repertoire, dreamer->agent,
                              dreamer->learnt_stories, dreamer->held_stories);
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
    graft_mark mark = graft_arena_mark(unit);
    const uint32_t count = (uint32_t)d->agent->settings->foresight_dreams;
    graft_episode_kept *kept = GRAFT_NEW(unit, graft_episode_kept, count);
    graft_candidates_report report = {.episodes = count};
    d->dreamed = 0.0;
    for (uint32_t e = 0; e < count; e++) {
        graft_dreamt_play(unit, d->env->scratch, d->agent, dream, &d->learnt[e % d->count],
                          STREAM_DREAMS + update * count + e, &kept[e]);
        d->dreamed += kept[e].saved / count;
        d->dream_steps += kept[e].count;
    }
    graft_candidates_learn(d->env, d->agent, kept, count, d->count, &report);
    graft_arena_release(unit, mark);
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
    for (int64_t u = 0; u < s->foresight_dream_updates; u++) {
        dream_once(dreamer, &dream, (uint64_t)u);
        GRAFT_CHECK(graft_search_go_on(dreamer->env));
    }
done:
    seal(dreamer, false);
    graft_arena_release(dreamer->env->unit, mark);
    dreamer->dream_seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return status;
}
