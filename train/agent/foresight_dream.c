/* foresight_dream.c - see foresight_dream.h. */
#include "train/agent/foresight_dream.h"

#include "train/nn/numeric.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define STREAM_DREAMS (UINT64_C(1) << 41)

/* Most of a rule that open in one step. */
static const float openings_most = 12.0F;
static const float temperature_least = 0.05F;
/* Changes of facts that are less are taken for none: most facts stay as they are, and small errors
 * add up from step to step. */
static const float change_least = 0.02F;

void graft_dreamt_open(graft_arena *arena, const graft_foresight *model,
                       const graft_repertoire *repertoire, const graft_scene_options *scenes,
                       graft_dreamt *dream)
{
    const size_t most = GRAFT_DREAM_CANDIDATES;
    *dream = (graft_dreamt){.model = model, .repertoire = repertoire, .scenes = *scenes};
    dream->latent = GRAFT_NEW(arena, float, model->latent);
    dream->places = GRAFT_NEW(arena, float, most * model->width);
    dream->facts = GRAFT_NEW(arena, float, most *GRAFT_FACT_COUNT);
    dream->priors = GRAFT_NEW(arena, float, most);
    dream->rules = GRAFT_NEW(arena, uint32_t, most);
    dream->members = GRAFT_NEW(arena, uint32_t, most * GRAFT_RULE_MAX_NODES);
    dream->rows = GRAFT_NEW(arena, uint32_t, most);
    dream->kinds = GRAFT_NEW(arena, uint32_t, most);
    dream->waiting = GRAFT_NEW(arena, uint32_t, most);
    dream->memory.hidden = GRAFT_NEW(arena, float, model->hidden);
    dream->memory.cell = GRAFT_NEW(arena, float, model->hidden);
}

/* ------------------------------------------------------------------- candidates */

static float *facts_of(const graft_dreamt *d, uint32_t i)
{
    return &d->facts[(size_t)i * GRAFT_FACT_COUNT];
}

static uint32_t *members_of(const graft_dreamt *d, uint32_t i)
{
    return &d->members[(size_t)i * GRAFT_RULE_MAX_NODES];
}

static float *place_of(const graft_dreamt *d, uint32_t i)
{
    return &d->places[(size_t)i * d->model->width];
}

static void move_candidate(graft_dreamt *d, uint32_t to, uint32_t from)
{
    if (to != from) {
        memcpy(place_of(d, to), place_of(d, from), d->model->width * sizeof(float));
        memcpy(facts_of(d, to), facts_of(d, from), GRAFT_FACT_COUNT * sizeof(float));
        memcpy(members_of(d, to), members_of(d, from), GRAFT_RULE_MAX_NODES * sizeof(uint32_t));
        d->priors[to] = d->priors[from];
        d->rules[to] = d->rules[from];
        d->rows[to] = d->rows[from];
        d->kinds[to] = d->kinds[from];
    }
}

/* Sets what follows from the gain. */
static void settle_gain(graft_dreamt *d, uint32_t i)
{
    float *facts = facts_of(d, i);
    const float low = d->model->gain_low[d->rules[i]];
    const float high = d->model->gain_high[d->rules[i]];
    if (low <= high) { /* Else no story learnt from had the rule. */
        facts[GRAFT_FACT_GAIN] = fmaxf(low, fminf(high, facts[GRAFT_FACT_GAIN]));
    }
    const double part = graft_fact_part(facts[GRAFT_FACT_GAIN]);
    facts[GRAFT_FACT_GAIN_PLAIN] = (float)fmax(-1.0, fmin(1.0, 20.0 * part));
    facts[GRAFT_FACT_GAINS] = graft_fact_gains(facts) ? 1.0F : 0.0F;
    d->priors[i] = graft_fact_prior(&d->scenes, facts);
}

/* Percent that a rewrite is expected to bring at once, by its facts. */
static float computed_gain(const graft_dreamt *dream, uint32_t choice)
{
    const float *facts = facts_of(dream, choice);
    return facts[GRAFT_FACT_NOOP] > 0.5F
               ? 0.0F
               : (float)(100.0 * graft_fact_part(facts[GRAFT_FACT_GAIN]) * dream->cost);
}

/* The kind of a candidate of the first scene: that of an earlier one of its rule which changes the
 * same, as scene.c has it. */
static uint32_t find_kind(graft_dreamt *d, uint32_t i)
{
    static const uint32_t same_facts[] = {GRAFT_FACT_GAIN,  GRAFT_FACT_GAIN_PLAIN, GRAFT_FACT_NODES,
                                          GRAFT_FACT_FLOPS, GRAFT_FACT_BYTES,      GRAFT_FACT_ALIKE,
                                          GRAFT_FACT_RECENT};
    for (uint32_t k = 0; k < i; k++) {
        bool same = d->rules[k] == d->rules[i];
        for (size_t f = 0; f < sizeof same_facts / sizeof same_facts[0] && same; f++) {
            const float difference = facts_of(d, k)[same_facts[f]] - facts_of(d, i)[same_facts[f]];
            same = fabsf(difference) < 1e-6F;
        }
        if (same) {
            return d->kinds[k];
        }
    }
    return d->kind_count++;
}

/* How many there are like a candidate, on offer or not. */
static uint32_t count_alike(const graft_dreamt *d, uint32_t i)
{
    return (uint32_t)lround(expm1(4.0 * (double)facts_of(d, i)[GRAFT_FACT_ALIKE]));
}

/* ------------------------------------------------------------------- beginning */

static graft_foreseen apply_step(const graft_foresight *m, graft_tape *tape, const float *latent,
                                 const float *place, const float *facts, graft_lstm_state *memory)
{
    float *input = GRAFT_NEW(tape->arena, float, graft_foresight_inputs(m));
    graft_foresight_input(m, latent, place, facts, input);
    return graft_foresight_apply(m, tape, input, 1, memory, memory);
}

static void open_tape(const graft_dreamt *d, graft_arena *scratch, graft_tape *tape)
{
    graft_tape_init(tape, scratch, false);
    graft_tape_bind(tape, &d->model->parameters, NULL);
}

void graft_dreamt_begin(graft_dreamt *dream, graft_arena *scratch, const graft_story *story,
                        uint32_t t)
{
    const graft_foresight *m = dream->model;
    const uint32_t first = story->first[t];
    memset(dream->memory.hidden, 0, m->hidden * sizeof(float));
    memset(dream->memory.cell, 0, m->hidden * sizeof(float));
    for (uint32_t s = 0; s < t; s++) {
        GRAFT_SCOPED(scratch);
        const size_t row = story->chosen[s];
        graft_tape tape;
        open_tape(dream, scratch, &tape);
        (void)apply_step(m, &tape, &story->latents[(size_t)s * m->latent],
                         &story->places[row * m->width], &story->facts[row * GRAFT_FACT_COUNT],
                         &dream->memory);
    }
    dream->count = story->first[t + 1] - first;
    assert(dream->count <= GRAFT_DREAM_CANDIDATES); /* candidates.limit, and NO-OP. */
    dream->cost = (double)story->costs[t];
    memcpy(dream->latent, &story->latents[(size_t)t * m->latent], m->latent * sizeof(float));
    memcpy(dream->places, &story->places[(size_t)first * m->width],
           (size_t)dream->count * m->width * sizeof(float));
    memcpy(dream->facts, &story->facts[(size_t)first * GRAFT_FACT_COUNT],
           (size_t)dream->count * GRAFT_FACT_COUNT * sizeof(float));
    memcpy(dream->priors, &story->priors[first], dream->count * sizeof(float));
    memcpy(dream->rules, &story->rules[first], dream->count * sizeof(uint32_t));
    memcpy(dream->members, &story->members[(size_t)first * GRAFT_RULE_MAX_NODES],
           (size_t)dream->count * GRAFT_RULE_MAX_NODES * sizeof(uint32_t));
    dream->kind_count = 0;
    memset(dream->waiting, 0, GRAFT_DREAM_CANDIDATES * sizeof(uint32_t));
    for (uint32_t i = 0; i < dream->count; i++) {
        dream->rows[i] = first + i;
        dream->kinds[i] = find_kind(dream, i);
        dream->waiting[dream->kinds[i]] = count_alike(dream, i);
    }
    for (uint32_t i = 0; i < dream->count; i++) {
        uint32_t *waiting = &dream->waiting[dream->kinds[i]];
        *waiting -= *waiting > 0 ? 1 : 0; /* It is on offer. */
    }
}

/* ------------------------------------------------------------------- a step */

/* What has this logit; a temperature below 1 makes the likely surer. */
static bool happens(float logit, float temperature, graft_rng *rng)
{
    const float sharp = logit / fmaxf(temperature, temperature_least);
    return rng != NULL ? graft_rng_uniform(rng) < (double)graft_logistic(sharp) : logit > 0.0F;
}

static void change_facts(graft_dreamt *d, uint32_t i, const float *said)
{
    float *facts = facts_of(d, i);
    const float gain = said[GRAFT_SAYS_GAIN];
    const float alike = said[GRAFT_SAYS_ALIKE];
    facts[GRAFT_FACT_GAIN] += fabsf(gain) > change_least ? gain : 0.0F;
    facts[GRAFT_FACT_ALIKE] += fabsf(alike) > change_least ? alike : 0.0F;
    facts[GRAFT_FACT_ALIKE] = fmaxf((float)(log1p(1.0) / 4.0), facts[GRAFT_FACT_ALIKE]);
    settle_gain(d, i);
}

/* After a candidate has closed another of its kind takes its turn, if one is left to copy and some
 * are waiting; how many there are like it is predicted, too, and the lower counts. */
static void take_turns(graft_dreamt *d, const uint32_t *closed_kinds, uint32_t closed_count)
{
    for (uint32_t c = 0; c < closed_count && d->count < GRAFT_DREAM_CANDIDATES; c++) {
        uint32_t offered = 0;
        uint32_t like = UINT32_MAX;
        for (uint32_t i = 0; i < d->count; i++) {
            offered += d->kinds[i] == closed_kinds[c] ? 1 : 0;
            like = d->kinds[i] == closed_kinds[c] ? i : like;
        }
        if (like != UINT32_MAX && offered < d->scenes.alike && offered < count_alike(d, like) &&
            closed_kinds[c] < GRAFT_DREAM_CANDIDATES && d->waiting[closed_kinds[c]] > 0) {
            const uint32_t i = d->count++;
            d->waiting[closed_kinds[c]]--;
            move_candidate(d, i, like);
            memset(members_of(d, i), 0xff, GRAFT_RULE_MAX_NODES * sizeof(uint32_t));
            facts_of(d, i)[GRAFT_FACT_RECENT] = 0.0F;
            d->rows[i] = GRAFT_DREAM_TURN;
        }
    }
}

/* Closes candidates, the chosen one among them, and changes the facts of the others. */
static void change_candidates(graft_dreamt *d, graft_tape *tape, const graft_matrix *feature,
                              uint32_t choice, float temperature, graft_rng *rng)
{
    uint32_t kept = 0;
    uint32_t closed_count = 0;
    uint32_t *step = GRAFT_NEW(tape->arena, uint32_t, d->count);
    uint32_t *closed_kinds = GRAFT_NEW(tape->arena, uint32_t, d->count);
    float *shared = GRAFT_NEW(tape->arena, float, 2 * (size_t)d->count);
    for (uint32_t i = 0; i < d->count; i++) {
        graft_story_share(members_of(d, i), members_of(d, choice), &shared[2 * (size_t)i]);
        if (i == choice) { /* Those that took a turn have no nodes to tell it by. */
            shared[2 * (size_t)i] = shared[2 * (size_t)i + 1] = 1.0F;
        }
    }
    const graft_foresight_rows rows = {d->count, step, d->places, d->facts, shared};
    const graft_matrix *said = graft_foresight_candidates(d->model, tape, feature, &rows);
    for (uint32_t i = 0; i < d->count; i++) {
        const bool noop = facts_of(d, i)[GRAFT_FACT_NOOP] > 0.5F;
        const float *of = &said->value[(size_t)i * GRAFT_SAYS_COUNT];
        if (i == choice || (!noop && happens(of[GRAFT_SAYS_CLOSES], temperature, rng))) {
            closed_kinds[closed_count++] = d->kinds[i];
            continue;
        }
        move_candidate(d, kept, i);
        facts_of(d, kept)[GRAFT_FACT_RECENT] = !noop && shared[2 * (size_t)i] > 0.0F ? 1.0F : 0.0F;
        if (!noop) {
            change_facts(d, kept, of);
        }
        kept++;
    }
    d->count = kept;
    take_turns(d, closed_kinds, closed_count);
}

/* A whole number near what is expected. */
static uint32_t count_openings(float expected, float temperature, graft_rng *rng)
{
    const float most = fmaxf(0.0F, fminf(openings_most, expected));
    const float drawn = rng != NULL ? ((float)graft_rng_uniform(rng) - 0.5F) * temperature : 0.0F;
    return (uint32_t)fmaxf(0.0F, most + 0.5F + drawn);
}

static void open_candidate(graft_dreamt *d, const float *content, uint32_t rule,
                           const uint32_t *members)
{
    const graft_foresight *m = d->model;
    const uint32_t i = d->count++;
    for (uint32_t k = 0; k < m->content.dims; k++) {
        float *to = k < m->width ? &place_of(d, i)[k] : &facts_of(d, i)[k - m->width];
        *to = m->content_mean[k] + m->content_scale[k] * content[k];
    }
    facts_of(d, i)[GRAFT_FACT_NOOP] = 0.0F;
    facts_of(d, i)[GRAFT_FACT_RECENT] = 1.0F;
    memcpy(members_of(d, i), members, GRAFT_RULE_MAX_NODES * sizeof(uint32_t));
    d->rules[i] = rule;
    d->rows[i] = GRAFT_DREAM_OPENED;
    d->kinds[i] = d->kind_count++;
    settle_gain(d, i);
}

static void open_candidates(graft_dreamt *d, graft_tape *tape, const graft_matrix *feature,
                            const uint32_t *members, float temperature, graft_rng *rng)
{
    const uint32_t rules = d->repertoire->count;
    const graft_matrix *contents = NULL;
    uint32_t *step = GRAFT_NEW(tape->arena, uint32_t, rules);
    uint32_t *rule = GRAFT_NEW(tape->arena, uint32_t, rules);
    float *content = GRAFT_NEW(tape->arena, float, d->model->content.dims);
    for (uint32_t r = 0; r < rules; r++) {
        rule[r] = r;
    }
    const graft_foresight_pairs pairs = {rules, step, rule};
    const graft_matrix *counts =
        graft_foresight_openings(d->model, tape, feature, d->repertoire, &pairs, &contents);
    for (uint32_t r = 0; r < rules; r++) {
        uint32_t left =
            d->repertoire->ids[r] != 0 ? count_openings(counts->value[r], temperature, rng) : 0;
        for (; left > 0 && d->count < GRAFT_DREAM_CANDIDATES; left--) {
            const float *raw = &contents->value[(size_t)r * contents->cols];
            graft_mixture_sample(&d->model->content, raw, temperature, rng, content);
            open_candidate(d, content, r, members);
        }
    }
}

static void move_latent(graft_dreamt *d, graft_tape *tape, const graft_matrix *next,
                        float temperature, graft_rng *rng)
{
    const graft_foresight *m = d->model;
    float *move = GRAFT_NEW(tape->arena, float, m->latent);
    graft_mixture_sample(&m->next, next->value, temperature, rng, move);
    for (uint32_t k = 0; k < m->latent; k++) {
        const float z = d->latent[k] + m->latent_scale[k] * move[k];
        d->latent[k] = fmaxf(-1.0F, fminf(1.0F, z)); /* What tanh gives. */
    }
}

graft_dreamt_step graft_dreamt_take(graft_dreamt *dream, graft_arena *scratch, uint32_t choice,
                                    float temperature, graft_rng *rng)
{
    const graft_foresight *m = dream->model;
    GRAFT_SCOPED(scratch);
    graft_tape tape;
    uint32_t members[GRAFT_RULE_MAX_NODES];
    graft_dreamt_step step;
    open_tape(dream, scratch, &tape);
    memcpy(members, members_of(dream, choice), sizeof members);
    const graft_foreseen seen = apply_step(m, &tape, dream->latent, place_of(dream, choice),
                                           facts_of(dream, choice), &dream->memory);
    step.beyond = m->reward_mean + m->reward_scale * seen.reward->value[0];
    step.beyond = fmaxf(m->beyond_range[0], fminf(m->beyond_range[1], step.beyond));
    step.end = happens(seen.end->value[0], temperature, rng);
    dream->cost -= (double)computed_gain(dream, choice) / 100.0;
    change_candidates(dream, &tape, seen.feature, choice, temperature, rng);
    open_candidates(dream, &tape, seen.feature, members, temperature, rng);
    move_latent(dream, &tape, seen.next, temperature, rng);
    return step;
}

/* ------------------------------------------------------------------- episodes */

/* A copy of the dream as a scene, in `arena`. */
static graft_scene take_scene(graft_arena *arena, const graft_dreamt *d)
{
    const size_t count = d->count;
    return (graft_scene){.count = d->count,
                         .latent = GRAFT_COPY(arena, d->latent, d->model->latent),
                         .places = GRAFT_COPY(arena, d->places, count * d->model->width),
                         .facts = GRAFT_COPY(arena, d->facts, count * GRAFT_FACT_COUNT),
                         .priors = GRAFT_COPY(arena, d->priors, count)};
}

graft_episode_kept graft_dreamt_play(graft_arena *arena, graft_arena *scratch,
                                     const graft_candidates *agent, graft_dreamt *dream,
                                     const graft_story *story, uint64_t stream)
{
    const graft_agent_settings *s = agent->settings;
    const uint32_t horizon = (uint32_t)s->foresight_horizon;
    const float scale = (float)s->candidates_reward_scale;
    bool over = false;
    graft_rng rng;
    graft_rng_derive(&rng, agent->seed, STREAM_DREAMS + stream);
    graft_episode_kept kept = {.steps = GRAFT_NEW(arena, graft_transition, horizon + 1)};
    graft_dreamt_begin(dream, scratch, story, 0);
    while (!over && kept.count < horizon) {
        graft_transition *step = &kept.steps[kept.count++];
        step->scene = take_scene(arena, dream);
        step->choice = GRAFT_CHOICE_DRAWN;
        graft_candidates_choose(agent, scratch, &rng, step);
        if (facts_of(dream, step->choice)[GRAFT_FACT_NOOP] > 0.5F) {
            step->reward = -(float)s->candidates_step_cost * scale;
            over = true;
        } else {
            const float computed = computed_gain(dream, step->choice);
            const graft_dreamt_step brought = graft_dreamt_take(
                dream, scratch, step->choice, (float)s->foresight_temperature, &rng);
            step->reward = (computed + brought.beyond) * scale;
            over = brought.end;
        }
        kept.saved += (double)(step->reward / scale);
    }
    graft_transition *last = &kept.steps[kept.count];
    *last = (graft_transition){.scene = take_scene(arena, dream), .choice = GRAFT_CHOICE_LIKELIEST};
    if (!over) {
        graft_candidates_choose(agent, scratch, &rng, last);
    }
    kept.next_value = (double)last->value;
    graft_candidates_credit(agent, &kept);
    return kept;
}
