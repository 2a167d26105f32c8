/* story.c - see story.h. */
#include "train/agent/story.h"

#include "train/agent/candidates.h"

#include <math.h>
#include <string.h>

void graft_repertoire_open(graft_arena *arena, const graft_scorer *scorer,
                           graft_repertoire *repertoire)
{
    *repertoire = (graft_repertoire){.width = scorer->size.width};
    repertoire->rules = GRAFT_NEW(arena, float, (size_t)GRAFT_REPERTOIRE_MOST * repertoire->width);
}

static uint32_t find_rule(graft_repertoire *r, const graft_sheet *sheet)
{
    uint32_t i = 0;
    while (i < r->count && r->ids[i] != sheet->id) {
        i++;
    }
    if (i == r->count && i < GRAFT_REPERTOIRE_MOST) {
        r->ids[i] = sheet->id;
        r->sheets[i] = sheet;
        r->count++;
    }
    return i;
}

static bool is_present(const graft_scene *scene, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = scene->present_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (scene->present[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < scene->present_count && scene->present[low] == key;
}

static bool is_noop(const graft_scene *scene, uint32_t i) { return i + 1 == scene->count; }

/* ------------------------------------------------------------------- latents */

/* Encodes a scene into the story's rows, and its rules into the repertoire. */
static void encode_scene(graft_env *env, const graft_scorer *scorer, const graft_scene *scene,
                         uint32_t s, graft_repertoire *repertoire, graft_story *story)
{
    GRAFT_SCOPED(env->scratch);
    const uint32_t first = story->first[s];
    const size_t width = scorer->size.width;
    graft_tape tape;
    graft_tape_init(&tape, env->scratch, false);
    graft_tape_bind(&tape, &scorer->encoder.parameters, NULL);
    graft_tape_bind(&tape, &scorer->parameters, NULL);
    const graft_scene_batch batch = graft_scene_batch_join(env->scratch, &scene, 1);
    const graft_scored scored = graft_scorer_apply(scorer, &tape, &batch);
    memcpy(&story->latents[(size_t)s * scorer->size.latent], scored.latent->value,
           scorer->size.latent * sizeof(float));
    memcpy(&story->places[first * width], scored.places->value,
           scene->count * width * sizeof(float));
    memcpy(&story->facts[(size_t)first * GRAFT_FACT_COUNT], scene->facts,
           (size_t)scene->count * GRAFT_FACT_COUNT * sizeof(float));
    memcpy(&story->priors[first], scene->priors, scene->count * sizeof(float));
    memcpy(&story->keys[first], scene->keys, scene->count * sizeof(uint64_t));
    for (uint32_t i = 0; i < scene->count; i++) {
        const uint32_t rule = find_rule(repertoire, scene->sheets[i]);
        story->rules[first + i] = rule;
        if (rule < GRAFT_REPERTOIRE_MOST) { /* Else the story fails in the end. */
            memcpy(&repertoire->rules[rule * width],
                   &scored.rules->value[batch.row_rule[i] * width], width * sizeof(float));
        }
    }
}

/* ------------------------------------------------------------------- what changed */

static bool has_member(const uint32_t *members, uint32_t node)
{
    bool found = false;
    for (uint32_t n = 0; n < GRAFT_RULE_MAX_NODES && !found; n++) {
        found = members[n] == node && node != UINT32_MAX;
    }
    return found;
}

/* The part of the nodes of `a` that are in `b`. */
static float share_of(const uint32_t *a, const uint32_t *b)
{
    uint32_t count = 0;
    uint32_t both = 0;
    for (uint32_t n = 0; n < GRAFT_RULE_MAX_NODES && a[n] != UINT32_MAX; n++) {
        both += has_member(b, a[n]) ? 1 : 0;
        count++;
    }
    return count > 0 ? (float)both / (float)count : 0.0F;
}

void graft_story_share(const uint32_t *members, const uint32_t *others, float shared[2])
{
    shared[0] = share_of(members, others);
    shared[1] = share_of(others, members);
}

static void tell_members(const graft_scene *scene, uint32_t *members)
{
    uint32_t filled = 0;
    memset(members, 0xff, (size_t)scene->count * GRAFT_RULE_MAX_NODES * sizeof *members);
    for (uint32_t m = 0; m < scene->member_count; m++) {
        const uint32_t candidate = scene->member_candidates[m];
        filled = m > 0 && scene->member_candidates[m - 1] == candidate ? filled + 1 : 0;
        members[(size_t)candidate * GRAFT_RULE_MAX_NODES + filled] = scene->member_nodes[m];
    }
}

static const uint32_t *members_of(const graft_story *story, uint32_t row)
{
    return &story->members[(size_t)row * GRAFT_RULE_MAX_NODES];
}

/* From one scene to the next: `a` and `b` are their first rows. */
static void tell_changes(const graft_scene *now, const graft_scene *next, uint32_t a, uint32_t b,
                         graft_story *story)
{
    for (uint32_t i = 0; !is_noop(now, i); i++) {
        story->closed[a + i] = is_present(next, now->keys[i]) ? 0.0F : 1.0F;
    }
    for (uint32_t j = 0; !is_noop(next, j); j++) {
        story->opened[b + j] = is_present(now, next->keys[j]) ? 0.0F : 1.0F;
        for (uint32_t i = 0; !is_noop(now, i); i++) {
            if (now->keys[i] == next->keys[j]) {
                story->gain_known[a + i] = 1.0F;
                story->alike_change[a + i] =
                    next->facts[(size_t)j * GRAFT_FACT_COUNT + GRAFT_FACT_ALIKE] -
                    now->facts[(size_t)i * GRAFT_FACT_COUNT + GRAFT_FACT_ALIKE];
                story->gain_change[a + i] =
                    next->facts[(size_t)j * GRAFT_FACT_COUNT + GRAFT_FACT_GAIN] -
                    now->facts[(size_t)i * GRAFT_FACT_COUNT + GRAFT_FACT_GAIN];
            }
        }
    }
}

/* ------------------------------------------------------------------- telling */

static void open_story(graft_arena *arena, const graft_scorer *scorer,
                       const graft_episode_kept *kept, graft_story *s)
{
    *s = (graft_story){.steps = kept->count, .saved = (float)kept->saved};
    s->first = GRAFT_NEW(arena, uint32_t, s->steps + 2);
    for (uint32_t t = 0; t <= s->steps; t++) {
        s->first[t + 1] = s->first[t] + kept->steps[t].scene.count;
    }
    const size_t rows = s->row_count = s->first[s->steps + 1];
    s->latents = GRAFT_NEW(arena, float, ((size_t)s->steps + 1) * scorer->size.latent);
    s->places = GRAFT_NEW(arena, float, rows * scorer->size.width);
    s->facts = GRAFT_NEW(arena, float, rows *GRAFT_FACT_COUNT);
    s->priors = GRAFT_NEW(arena, float, rows);
    s->rules = GRAFT_NEW(arena, uint32_t, rows);
    s->keys = GRAFT_NEW(arena, uint64_t, rows);
    s->members = GRAFT_NEW(arena, uint32_t, rows * GRAFT_RULE_MAX_NODES);
    s->costs = GRAFT_NEW(arena, float, (size_t)s->steps + 1);
    s->shared = GRAFT_NEW(arena, float, 2 * rows);
    s->closed = GRAFT_NEW(arena, float, rows);
    s->alike_change = GRAFT_NEW(arena, float, rows);
    s->gain_change = GRAFT_NEW(arena, float, rows);
    s->gain_known = GRAFT_NEW(arena, float, rows);
    s->opened = GRAFT_NEW(arena, float, rows);
    s->chosen = GRAFT_NEW(arena, uint32_t, s->steps);
    s->computed = GRAFT_NEW(arena, float, s->steps);
    s->beyond = GRAFT_NEW(arena, float, s->steps);
    s->ends = GRAFT_NEW(arena, float, s->steps);
}

/* Percent of the first graph's cost that the tariff expects of a candidate. */
static float expect_gain(const graft_observer *o, const graft_scene *scene, const float *facts)
{
    const double part = graft_fact_part(facts[GRAFT_FACT_GAIN]);
    return (float)(100.0 * part * (double)scene->estimated.cost / (double)o->first.cost);
}

graft_status graft_story_play(graft_env *env, graft_arena *arena, graft_candidates *agent,
                              graft_observer *observer, graft_repertoire *repertoire,
                              graft_story *story)
{
    GRAFT_SCOPED(env->unit);
    graft_episode_kept kept;
    const double scale = agent->settings->candidates_reward_scale;
    GRAFT_PASS(graft_candidates_episode(env, env->unit, agent, observer, NULL, &kept));
    open_story(arena, &agent->scorer, &kept, story);
    for (uint32_t t = 0; t <= story->steps; t++) {
        const graft_scene *scene = &kept.steps[t].scene;
        tell_members(scene, &story->members[(size_t)story->first[t] * GRAFT_RULE_MAX_NODES]);
        story->costs[t] = (float)((double)scene->estimated.cost / (double)observer->first.cost);
        encode_scene(env, &agent->scorer, scene, t, repertoire, story);
    }
    for (uint32_t t = 0; t < story->steps; t++) {
        const graft_transition *step = &kept.steps[t];
        const uint32_t row = story->first[t] + step->choice;
        const bool stops = is_noop(&step->scene, step->choice);
        const float *facts = &story->facts[(size_t)row * GRAFT_FACT_COUNT];
        story->chosen[t] = row;
        story->computed[t] = stops ? 0.0F : expect_gain(observer, &step->scene, facts);
        story->beyond[t] = (float)((double)step->reward / scale) - story->computed[t];
        story->ends[t] = t + 1 == story->steps && !stops ? 1.0F : 0.0F;
        for (uint32_t i = story->first[t]; i < story->first[t + 1]; i++) {
            graft_story_share(members_of(story, i), members_of(story, row),
                              &story->shared[2 * (size_t)i]);
        }
        tell_changes(&step->scene, &kept.steps[t + 1].scene, story->first[t], story->first[t + 1],
                     story);
    }
    if (repertoire->count == GRAFT_REPERTOIRE_MOST) {
        return GRAFT_FAIL(env, GRAFT_CAPACITY, "more than %d rules find a place",
                          GRAFT_REPERTOIRE_MOST - 1);
    }
    return GRAFT_OK;
}
