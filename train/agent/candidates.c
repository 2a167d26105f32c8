/* candidates.c - see candidates.h. Playing; what is learnt from it is in candidates_learning.c. */
#include "train/agent/candidates.h"

#include "graph/base/log.h"
#include "train/nn/blas.h"
#include "train/nn/numeric.h"

#include <assert.h>

static const double percent = 100.0;

void graft_candidates_open(graft_arena *arena, const graft_agent_settings *settings, uint64_t seed,
                           uint32_t thread_count, graft_candidates *agent)
{
    const graft_scorer_size size = {.hidden = (uint32_t)settings->candidates_hidden,
                                    .latent = (uint32_t)settings->candidates_latent,
                                    .rounds = (uint32_t)settings->candidates_rounds,
                                    .width = (uint32_t)settings->candidates_width};
    graft_blas_open();
    *agent = (graft_candidates){.settings = settings, .arena = arena, .seed = seed};
    graft_scorer_init(&agent->scorer, arena, &size, seed);
    graft_parameters *sets[] = {&agent->scorer.encoder.parameters, &agent->scorer.parameters};
    graft_shards_open(&agent->shards, arena, thread_count, sets, 2);
}

void graft_candidates_close(graft_candidates *agent) { graft_shards_close(&agent->shards); }

graft_scene_options graft_candidates_scenes(const graft_agent_settings *settings)
{
    return (graft_scene_options){.limit = (uint32_t)settings->candidates_limit,
                                 .alike = (uint32_t)settings->candidates_alike,
                                 .sharpness = settings->candidates_sharpness,
                                 .reserve = settings->candidates_reserve};
}

/* ------------------------------------------------------------------- rewards */

static double part_saved(double before, double after, double first)
{
    return first > 0.0 ? (before - after) / first : 0.0;
}

/* What happened between two scenes of an episode, in percent. */
static double reward_of(const graft_candidates *agent, const graft_observer *o, double saved,
                        const graft_estimated *before, const graft_estimated *after)
{
    const graft_agent_settings *s = agent->settings;
    return saved +
           percent *
               (s->candidates_reward_bytes * part_saved((double)before->bytes, (double)after->bytes,
                                                        (double)o->first.bytes) +
                s->candidates_reward_flops * part_saved((double)before->flops, (double)after->flops,
                                                        (double)o->first.flops) +
                s->candidates_reward_launches *
                    part_saved(before->nodes, after->nodes, o->first.nodes));
}

/* Moves its part of all rewards to the last step. */
static void delay_rewards(double part, graft_transition *steps, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t t = 0; t < count; t++) {
        sum += part * (double)steps[t].reward;
        steps[t].reward *= (float)(1.0 - part);
    }
    if (count > 0) {
        steps[count - 1].reward += (float)sum;
    }
}

/* ------------------------------------------------------------------- episodes */

/* Where an episode has been: it ends when it comes back. */
typedef struct {
    uint32_t count;
    uint64_t *hashes;
} way;

static way open_way(graft_arena *arena, graft_observer *o)
{
    way w = {.hashes = GRAFT_NEW(arena, uint64_t, o->environment->options.step_limit + 1)};
    w.hashes[w.count++] = graft_state_hash(&o->environment->state);
    return w;
}

/* Notes where it is now; says whether it was there before. */
static bool comes_back(way *w, graft_observer *o)
{
    const uint64_t hash = graft_state_hash(&o->environment->state);
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->hashes[i] == hash) {
            return true;
        }
    }
    w->hashes[w->count++] = hash;
    return false;
}

/* Generalised advantages (Schulman et al. 2016, eq. 16); `next_value` of the state after the
 * end. */
static void estimate_advantages(const graft_agent_settings *s, graft_transition *steps,
                                uint32_t count, double next_value)
{
    double advantage = 0.0;
    for (uint32_t t = count; t-- > 0;) {
        double value = (double)steps[t].value;
        double surprise = (double)steps[t].reward + s->candidates_discount * next_value - value;
        double lambda = steps[t].repeated ? 1.0 : s->candidates_lambda;
        advantage = surprise + s->candidates_discount * lambda * advantage;
        steps[t].advantage = (float)advantage;
        steps[t].gain = (float)(advantage + value);
        next_value = value;
    }
}

void graft_candidates_credit(const graft_candidates *agent, const graft_episode_kept *kept)
{
    delay_rewards(agent->settings->candidates_reward_end, kept->steps, kept->count);
    estimate_advantages(agent->settings, kept->steps, kept->count, kept->next_value);
}

static uint32_t draw(const float *log_p, uint32_t count, graft_rng *rng)
{
    double left = graft_rng_uniform(rng);
    uint32_t i = 0;
    while (i + 1 < count && left >= (double)graft_exp(log_p[i])) {
        left -= (double)graft_exp(log_p[i++]);
    }
    return i;
}

static uint32_t find_likeliest(const float *log_p, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        best = log_p[i] > log_p[best] ? i : best;
    }
    return best;
}

void graft_candidates_choose(const graft_candidates *agent, graft_arena *scratch, graft_rng *rng,
                             graft_transition *step)
{
    GRAFT_SCOPED(scratch);
    const graft_scorer *scorer = &agent->scorer;
    const graft_scene *scene = &step->scene;
    graft_tape tape;
    graft_tape_init(&tape, scratch, false);
    graft_tape_bind(&tape, &scorer->encoder.parameters, NULL);
    graft_tape_bind(&tape, &scorer->parameters, NULL);
    const uint32_t *first = NULL;
    const uint32_t *row_scene = NULL;
    const graft_scored scored = graft_scorer_look(scorer, &tape, &scene, 1, &first, &row_scene);
    if (step->choice == GRAFT_CHOICE_DRAWN) {
        step->choice = draw(scored.log_p->value, scene->count, rng);
    } else if (step->choice == GRAFT_CHOICE_LIKELIEST) {
        step->choice = find_likeliest(scored.log_p->value, scene->count);
    }
    step->log_p = scored.log_p->value[step->choice];
    step->value = scored.value->value[0];
}

/* Takes the scene's choice. */
static graft_status take_step(graft_env *env, graft_candidates *agent, graft_observer *o,
                              const graft_transition *step, graft_outcome *outcome)
{
    const graft_action action = step->scene.actions[step->choice];
    agent->interactions++;
    return graft_environment_step(env, o->environment, action.xfer, action.location, outcome);
}

graft_status graft_candidates_episode(graft_env *env, graft_arena *arena, graft_candidates *agent,
                                      graft_observer *o, const graft_best *best,
                                      graft_episode_kept *kept)
{
    const graft_agent_settings *s = agent->settings;
    graft_scene scene;
    graft_rng rng;
    graft_outcome outcome = {.reward = 0.0};
    graft_rng_derive(&rng, agent->seed, agent->episodes++);
    const bool nameless = graft_rng_uniform(&rng) < s->candidates_hide;
    *kept = (graft_episode_kept){
        .steps = GRAFT_NEW(arena, graft_transition, o->environment->options.step_limit + 1)};
    GRAFT_PASS(graft_environment_reset(env, o->environment));
    GRAFT_PASS(graft_scene_take(env, arena, o, nameless, &scene));
    way w = open_way(arena, o);
    bool over = o->environment->terminal;
    while (!over) {
        graft_transition *step = &kept->steps[kept->count++];
        step->scene = scene;
        step->repeated = best != NULL;
        step->choice = best != NULL ? best->choices[kept->count - 1] : GRAFT_CHOICE_DRAWN;
        graft_candidates_choose(agent, env->scratch, &rng, step);
        GRAFT_PASS(take_step(env, agent, o, step, &outcome));
        GRAFT_PASS(graft_scene_take(env, arena, o, nameless, &scene));
        step->reward =
            (float)(reward_of(agent, o, outcome.reward, &step->scene.estimated, &scene.estimated) *
                    s->candidates_reward_scale);
        step->reward -= (float)(s->candidates_step_cost * s->candidates_reward_scale);
        kept->saved += outcome.reward;
        over = outcome.terminal || comes_back(&w, o);
    }
    graft_transition *last = &kept->steps[kept->count]; /* Where it ended. */
    *last = (graft_transition){.scene = scene, .choice = GRAFT_CHOICE_LIKELIEST};
    if (outcome.truncated) {
        graft_candidates_choose(agent, env->scratch, &rng, last);
    }
    kept->next_value = (double)last->value;
    return GRAFT_OK;
}

graft_status graft_candidates_play(graft_env *env, graft_arena *arena, graft_candidates *agent,
                                   graft_observer *o, graft_rng *rng, graft_plan_found *found)
{
    graft_environment *e = o->environment;
    const uint64_t start_ns = graft_clock_ns();
    GRAFT_SCOPED(env->unit);
    graft_transition step = {.choice = 0};
    graft_outcome outcome;
    assert(arena != env->unit);
    *found = (graft_plan_found){.steps = GRAFT_NEW(arena, graft_action, e->options.step_limit)};
    GRAFT_PASS(graft_environment_reset(env, e));
    way w = open_way(env->unit, o);
    const graft_mark mark_of_step = graft_arena_mark(env->unit);
    GRAFT_PASS(graft_scene_take(env, env->unit, o, false, &step.scene));
    bool over = e->terminal;
    while (!over) {
        step.choice = rng != NULL ? GRAFT_CHOICE_DRAWN : GRAFT_CHOICE_LIKELIEST;
        graft_candidates_choose(agent, env->scratch, rng, &step);
        found->steps[found->step_count] = step.scene.actions[step.choice];
        found->step_count += found->steps[found->step_count].xfer < e->xfers->count ? 1 : 0;
        GRAFT_PASS(take_step(env, agent, o, &step, &outcome));
        graft_arena_release(env->unit, mark_of_step);
        GRAFT_PASS(graft_scene_take(env, env->unit, o, false, &step.scene));
        GRAFT_PASS(graft_search_go_on(env));
        /* NO-OP ends it anyway. */
        over = outcome.terminal || comes_back(&w, o);
    }
    if (step.scene.estimated.cost > o->first.cost) {
        found->step_count = 0;
        GRAFT_PASS(graft_environment_reset(env, e));
    }
    found->cost_ns = e->cost_ns;
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}
