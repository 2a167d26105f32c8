/* fit.c - see fit.h. */
#include "emit/header/fit.h"

#include "emit/header/graphtable.h"
#include "emit/header/rehearsal.h"
#include "graph/base/log.h"

#include <string.h>

/* Ids of 16 bits: see graft.h. */
enum { SMALL_NODES_MOST = 32000, SMALL_OTHERS_MOST = 65000 };

static graft_status measure(graft_env *env, graft_fit *fit)
{
    const graft_target target = {fit->options.pointer_bytes,
                                 fit->small ? sizeof(uint16_t) : sizeof(uint32_t)};
    return graft_ram_measure(env, fit->options.policy, &fit->limits, fit->step_limit, target,
                             &fit->ram);
}

static bool fits(const graft_fit *fit)
{
    return fit->options.budget == 0 || fit->ram.total <= fit->options.budget;
}

/* `need` is what it would take at best. */
static graft_status refuse(graft_env *env, const graft_fit *need)
{
    const graft_ram *ram = &need->ram;
    graft_ram_part largest = 0;
    for (graft_ram_part p = 1; p < GRAFT_RAM_PARTS; p++) {
        largest = ram->parts[p] > ram->parts[largest] ? p : largest;
    }
    return GRAFT_FAIL(env, GRAFT_CAPACITY,
                      "%s: needs %zu bytes of RAM with pointers of %zu bits when all is lowered "
                      "that loses nothing, and the budget is %zu (--max-ram); the largest part is "
                      "'%s', %zu bytes",
                      need->options.model, ram->total, 8 * need->options.pointer_bytes,
                      need->options.budget, graft_ram_part_name(largest), ram->parts[largest]);
}

/* --------------------------------------------------------------- lowering */

/* Says what was lowered, if it was of use. */
static void note(graft_env *env, graft_fit *fit, size_t before, const char *what, const char *cost)
{
    if (fit->ram.total < before) {
        fit->lowered[fit->lowered_count++] = graft_arena_printf(
            env->life, "%s: %zu bytes less; %s", what, before - fit->ram.total, cost);
    }
}

static graft_status lower_ids(graft_env *env, graft_fit *fit)
{
    const size_t before = fit->ram.total;
    if (fit->limits.nodes > SMALL_NODES_MOST || fit->limits.values > SMALL_OTHERS_MOST ||
        fit->limits.edges > SMALL_OTHERS_MOST) {
        return GRAFT_OK;
    }
    fit->small = true;
    GRAFT_PASS(measure(env, fit));
    note(env, fit, before, "ids of 16 bits", "the whole program defines GRAFT_SMALL_GRAPHS");
    return GRAFT_OK;
}

/* One more than it takes, so that it stops by itself. */
static graft_status lower_steps(graft_env *env, const graft_rehearsal *rehearsal, graft_fit *fit)
{
    const size_t before = fit->ram.total;
    const uint32_t steps = rehearsal->steps_most + 1;
    if (steps >= fit->step_limit) {
        return GRAFT_OK;
    }
    const char *what = graft_arena_printf(env->life, "steps %u -> %u", fit->step_limit, steps);
    fit->step_limit = steps;
    GRAFT_PASS(measure(env, fit));
    note(env, fit, before, what, "the policy takes no more on this graph");
    return GRAFT_OK;
}

/* What is left of the room for rewriting, in parts of GRAFT_GRAPHTABLE_ROOM. */
typedef struct {
    uint32_t nodes;
    uint32_t values;
    uint32_t edges;
} rooms;

/* Takes one part of `*room` away, if the decisions stay the same; *kept is false when they do
 * not. */
static graft_status narrow(graft_env *env, const graft_rehearsal *rehearsal, rooms *left,
                           uint32_t *room, graft_fit *fit, bool *kept)
{
    graft_fit lower = *fit;
    *kept = *room > 0;
    if (!*kept) {
        return GRAFT_OK;
    }
    --*room;
    lower.limits.nodes = graft_graphtable_limits(rehearsal->graph, left->nodes).nodes;
    lower.limits.values = graft_graphtable_limits(rehearsal->graph, left->values).values;
    lower.limits.edges = graft_graphtable_limits(rehearsal->graph, left->edges).edges;
    GRAFT_PASS(measure(env, &lower));
    *kept = graft_rehearsal_same(rehearsal, &lower.limits, lower.step_limit);
    if (*kept) {
        *fit = lower;
    } else {
        ++*room;
    }
    return GRAFT_OK;
}

/* A part of each in turn, until it fits or nothing more can go. */
static graft_status lower_room(graft_env *env, const graft_rehearsal *rehearsal, graft_fit *fit)
{
    const size_t before = fit->ram.total;
    rooms left = {GRAFT_GRAPHTABLE_ROOM, GRAFT_GRAPHTABLE_ROOM, GRAFT_GRAPHTABLE_ROOM};
    uint32_t *const each[] = {&left.nodes, &left.values, &left.edges};
    enum { KINDS = sizeof each / sizeof each[0] };
    bool open[KINDS] = {true, true, true};
    for (uint32_t i = 0; !fits(fit) && (open[0] || open[1] || open[2]); i = (i + 1) % KINDS) {
        if (open[i]) {
            GRAFT_PASS(narrow(env, rehearsal, &left, each[i], fit, &open[i]));
        }
    }
    note(env, fit, before,
         graft_arena_printf(env->life, "room for %u, %u and %u more nodes, values and edges",
                            fit->limits.nodes - rehearsal->least.nodes,
                            fit->limits.values - rehearsal->least.values,
                            fit->limits.edges - rehearsal->least.edges),
         "the decisions on this graph stay the same, with new weights and without");
    return GRAFT_OK;
}

static graft_status lower(graft_env *env, const graft_graph *graph, graft_fit *fit)
{
    graft_status status = GRAFT_OK;
    graft_rehearsal rehearsal = {.arena = NULL};
    GRAFT_CHECK(lower_ids(env, fit));
    if (fits(fit)) {
        goto done;
    }
    GRAFT_TRY(env,
              graft_rehearsal_open(env, graph, fit->options.policy, &fit->limits, fit->step_limit,
                                   &rehearsal),
              "while fitting %s into %zu bytes", fit->options.model, fit->options.budget);
    GRAFT_CHECK(lower_steps(env, &rehearsal, fit));
    GRAFT_CHECK(lower_room(env, &rehearsal, fit));
done:
    graft_rehearsal_close(&rehearsal);
    return status;
}

graft_status graft_fit_make(graft_env *env, const graft_graph *graph,
                            const graft_fit_options *options, graft_fit *fit)
{
    *fit = (graft_fit){.options = *options,
                       .limits = graft_graphtable_limits(graph, GRAFT_GRAPHTABLE_ROOM),
                       .step_limit = graft_optimize_options_default().step_limit};
    GRAFT_PASS(measure(env, fit));
    if (fits(fit)) {
        return GRAFT_OK;
    }
    GRAFT_PASS(lower(env, graph, fit));
    graft_status status = fits(fit) ? GRAFT_OK : refuse(env, fit);
    for (uint32_t i = 0; status == GRAFT_OK && i < fit->lowered_count; i++) {
        graft_log(env, 1, "%s: %s", options->model, fit->lowered[i]);
    }
    return status;
}

graft_status graft_fit_foresee(graft_env *env, const graft_graph *graph,
                               const graft_fit_options *options)
{
    graft_fit least = {.options = *options,
                       .limits = graft_graphtable_limits(graph, 0),
                       .step_limit = 1,
                       .small = true};
    GRAFT_PASS(measure(env, &least));
    return fits(&least) ? GRAFT_OK : refuse(env, &least);
}
