/* states.c - see states.h. */
#include "emit/states.h"

#include <assert.h>

/* A collection in progress. */
typedef struct {
    graft_arena *arena;
    const graft_states_source *source;
    graft_states *states;
    uint64_t *hashes; /* Of the graphs taken. */
    graft_state state;
    graft_matches matches;
} collector;

static bool is_new(const collector *c, uint64_t hash)
{
    for (uint32_t i = 0; i < c->states->count; i++) {
        if (c->hashes[i] == hash) {
            return false;
        }
    }
    return true;
}

static graft_graph *copy_graph(graft_arena *arena, const graft_graph *graph)
{
    graft_graph *copy = GRAFT_NEW(arena, graft_graph, 1);
    size_t bytes = graft_graph_bytes(&graph->limits);
    graft_status status =
        graft_graph_init(copy, &graph->limits, graft_arena_alloc(arena, bytes), bytes);
    status = status == GRAFT_OK ? graft_graph_copy(copy, graph) : status;
    assert(status == GRAFT_OK); /* Same limits. */
    (void)status;
    return copy;
}

/* Takes the present graph unless it is there already. Matches are those of this graph. */
static void take_state(collector *c)
{
    uint64_t hash = graft_state_hash(&c->state);
    if (c->states->count == c->source->most || !is_new(c, hash)) {
        return;
    }
    uint32_t xfers = c->source->xfers->count;
    uint16_t *counts = GRAFT_NEW(c->arena, uint16_t, xfers);
    for (uint32_t x = 0; x < xfers; x++) {
        counts[x] = (uint16_t)graft_matches_count(&c->matches, x);
    }
    c->hashes[c->states->count] = hash;
    graft_policy_state *taken = &c->states->items[c->states->count++];
    taken->graph = copy_graph(c->arena, &c->state.graph);
    taken->counts = counts;
    graft_arrays_take(c->arena, &c->state.graph, &c->state.order, counts, xfers, &taken->arrays);
}

static void find_matches(collector *c)
{
    graft_matches_find(&c->matches, &c->state, &c->source->apply);
}

static graft_status replay_step(graft_env *env, collector *c, uint32_t xfer, uint32_t location)
{
    if (location >= graft_matches_count(&c->matches, xfer)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "an episode does not fit its graph: rule %u has no location %u", xfer,
                          location);
    }
    graft_status status =
        graft_state_apply(env, &c->state, &c->source->xfers->rules[xfer],
                          graft_matches_get(&c->matches, xfer, location), &c->source->apply);
    find_matches(c);
    return status;
}

/* Replays one episode and takes every `stride`-th graph; `phase` counts on from episode to episode.
 */
static graft_status replay_episode(graft_env *env, collector *c, const graft_episode *episode,
                                   uint32_t stride, uint32_t *phase)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(graft_state_set(env, &c->state, c->source->graph));
    find_matches(c);
    for (uint32_t i = 0; i < episode->step_count && episode->xfers[i] < c->source->xfers->count;
         i++) {
        if ((*phase)++ % stride == 0) {
            take_state(c);
        }
        GRAFT_CHECK(replay_step(env, c, episode->xfers[i], episode->locations[i]));
    }
done:
    return status;
}

graft_status graft_states_collect(graft_env *env, graft_arena *arena,
                                  const graft_states_source *source, const graft_episode *episodes,
                                  uint32_t count, graft_states *states)
{
    graft_status status = GRAFT_OK;
    graft_arena *work = graft_arena_new((size_t)1 << 20); /* Tables of matches grow. */
    if (work == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory for replaying episodes");
    }
    graft_limits limits = graft_state_limits(source->graph);
    collector c = {.arena = arena, .source = source, .states = states};
    uint32_t phase = 0;
    uint64_t steps = 1;
    states->count = 0;
    states->apply = source->apply;
    states->items = GRAFT_NEW(arena, graft_policy_state, source->most);
    c.hashes = GRAFT_NEW(work, uint64_t, source->most);
    graft_state_open(work, &limits, &c.state);
    graft_matches_open(work, source->xfers, source->location_limit, &c.matches);
    GRAFT_CHECK(graft_state_set(env, &c.state, source->graph));
    find_matches(&c);
    take_state(&c);
    for (uint32_t i = 0; i < count; i++) {
        steps += episodes[i].step_count;
    }
    uint32_t stride = (uint32_t)(steps / source->most + 1);
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_CHECK(replay_episode(env, &c, &episodes[i], stride, &phase));
    }
done:
    graft_arena_free(work);
    return status;
}
