/* fit.c - see fit.h. Whether a policy rewrites a graph as before when it has less room is asked by
 * letting it, once with no new weights and once with as many as it likes. */
#include "emit/header/fit.h"

#include "emit/header/graphtable.h"
#include "graft/graft.h"
#include "graph/base/arena.h"
#include "graph/base/env.h"
#include "graph/base/log.h"

#include <xxhash.h>

enum { REHEARSAL_RUNS = 2 };

/* What the policy makes of a graph. */
typedef struct rehearsed {
    graft_status status;
    uint64_t hash;      /* Of the graph that comes out. */
    uint64_t decisions; /* A hash of them. */
    uint32_t step_count;
} rehearsed;

typedef struct rehearsing {
    graft_arena *arena;       /* NULL: closed. */
    const graft_graph *graph; /* As a product loads it. */
    const graft_policy *policy;
    graft_limits least; /* Of what is loaded. */
    rehearsed before[REHEARSAL_RUNS];
    uint32_t steps_most; /* Of both. */
} rehearsing;

static uint64_t hash_decisions(const graft_decision *decisions, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t pair[] = {decisions[i].rule, decisions[i].location};
        hash = XXH3_64bits_withSeed(pair, sizeof pair, hash);
    }
    return hash;
}

static rehearsed rewrite(const rehearsing *rehearsal, const graft_limits *limits,
                         const graft_optimize_options *options)
{
    graft_arena *arena = rehearsal->arena;
    GRAFT_SCOPED(arena);
    const size_t bytes = graft_graph_bytes(limits);
    const size_t work =
        graft_optimize_workspace_bytes(rehearsal->policy, limits, options->step_limit);
    graft_graph graph;
    graft_report report = {.decisions = GRAFT_NEW(arena, graft_decision, options->step_limit),
                           .decision_limit = options->step_limit};
    graft_status status = graft_graph_init(&graph, limits, graft_arena_alloc(arena, bytes), bytes);
    status = status == GRAFT_OK ? graft_graph_copy(&graph, rehearsal->graph) : status;
    status = status == GRAFT_OK ? graft_optimize(&graph, rehearsal->policy, options,
                                                 graft_arena_alloc(arena, work), work, &report)
                                : status;
    const rehearsed run = {.status = status,
                           .hash = report.hash_after,
                           .decisions = hash_decisions(report.decisions, report.step_count),
                           .step_count = report.step_count};
    return run;
}

static void rewrite_all(const rehearsing *rehearsal, const graft_limits *limits,
                        uint32_t step_limit, rehearsed *runs)
{
    static const uint64_t weight_bytes[REHEARSAL_RUNS] = {0, UINT64_MAX};
    graft_optimize_options options = graft_optimize_options_default();
    options.step_limit = step_limit;
    for (uint32_t i = 0; i < REHEARSAL_RUNS; i++) {
        options.weight_bytes_limit = weight_bytes[i];
        runs[i] = rewrite(rehearsal, limits, &options);
    }
}

/* Rewrites it with these limits. Fails as graft_optimize does. To be closed in any case. */
static graft_status open_rehearsal(graft_env *env, const graft_graph *graph,
                                   const graft_policy *policy, const graft_limits *limits,
                                   uint32_t step_limit, rehearsing *rehearsal)
{
    graft_graph *loaded = NULL;
    *rehearsal = (rehearsing){.arena = graft_arena_new((size_t)1 << 16),
                              .policy = policy,
                              .least = graft_graphtable_limits(graph, 0)};
    GRAFT_PASS(graft_graph_renumber(env, rehearsal->arena, graph, &loaded));
    rehearsal->graph = loaded;
    rewrite_all(rehearsal, limits, step_limit, rehearsal->before);
    for (uint32_t i = 0; i < REHEARSAL_RUNS; i++) {
        const rehearsed *run = &rehearsal->before[i];
        if (run->status != GRAFT_OK) {
            return GRAFT_FAIL(env, run->status, "the policy cannot rewrite the graph: %s",
                              graft_status_name(run->status));
        }
        rehearsal->steps_most =
            run->step_count > rehearsal->steps_most ? run->step_count : rehearsal->steps_most;
    }
    return GRAFT_OK;
}

/* Whether it comes to the same, step by step, with these. */
static bool is_same(const rehearsing *rehearsal, const graft_limits *limits, uint32_t step_limit)
{
    rehearsed runs[REHEARSAL_RUNS];
    bool same = true;
    rewrite_all(rehearsal, limits, step_limit, runs);
    for (uint32_t i = 0; i < REHEARSAL_RUNS; i++) {
        const rehearsed *before = &rehearsal->before[i];
        same = same && runs[i].status == GRAFT_OK && runs[i].hash == before->hash &&
               runs[i].decisions == before->decisions && runs[i].step_count == before->step_count;
    }
    return same;
}

static void close_rehearsal(rehearsing *rehearsal)
{
    graft_arena_free(rehearsal->arena);
    rehearsal->arena = NULL;
}

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
static graft_status lower_steps(graft_env *env, const rehearsing *rehearsal, graft_fit *fit)
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
static graft_status narrow(graft_env *env, const rehearsing *rehearsal, rooms *left, uint32_t *room,
                           graft_fit *fit, bool *kept)
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
    *kept = is_same(rehearsal, &lower.limits, lower.step_limit);
    if (*kept) {
        *fit = lower;
    } else {
        ++*room;
    }
    return GRAFT_OK;
}

/* A part of each in turn, until it fits or nothing more can go. */
static graft_status lower_room(graft_env *env, const rehearsing *rehearsal, graft_fit *fit)
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
    rehearsing rehearsal = {.arena = NULL};
    GRAFT_CHECK(lower_ids(env, fit));
    if (fits(fit)) {
        goto done;
    }
    GRAFT_TRY(
        env,
        open_rehearsal(env, graph, fit->options.policy, &fit->limits, fit->step_limit, &rehearsal),
        "while fitting %s into %zu bytes", fit->options.model, fit->options.budget);
    GRAFT_CHECK(lower_steps(env, &rehearsal, fit));
    GRAFT_CHECK(lower_room(env, &rehearsal, fit));
done:
    close_rehearsal(&rehearsal);
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

/* As the columns of the comment, and the macros, have them. */
static const graft_target targets[] = {
    {4, 4},
    {4, 2},
    {8, 4},
    {8, 2}
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static graft_status measure_all(graft_env *env, const graft_fit *fit, graft_ram *rams)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        GRAFT_PASS(graft_ram_measure(env, fit->options.policy, &fit->limits, fit->step_limit,
                                     targets[i], &rams[i]));
    }
    return GRAFT_OK;
}

static void print_parts(const graft_ram *rams, graft_buffer *text)
{
    graft_buffer_printf(text, " *\n *   bits of pointers, ids ");
    for (uint32_t i = 0; i < TARGETS; i++) {
        graft_buffer_printf(text, "%7zu, %2zu", 8 * targets[i].pointer_bytes,
                            8 * targets[i].id_bytes);
    }
    for (graft_ram_part p = 0; p < GRAFT_RAM_PARTS; p++) {
        graft_buffer_printf(text, "\n *   %-22s", graft_ram_part_name(p));
        for (uint32_t i = 0; i < TARGETS; i++) {
            graft_buffer_printf(text, "%11zu", rams[i].parts[p]);
        }
    }
    graft_buffer_printf(text, "\n *   %-22s", "in all");
    for (uint32_t i = 0; i < TARGETS; i++) {
        graft_buffer_printf(text, "%11zu", rams[i].total);
    }
    graft_buffer_printf(text, "\n *\n");
}

static void print_budget(const graft_fit *fit, graft_buffer *text)
{
    const graft_fit_options *options = &fit->options;
    if (options->budget == 0) {
        graft_buffer_printf(text, " * No budget was given (--max-ram).");
    } else {
        graft_buffer_printf(text,
                            " * The budget is %zu bytes with pointers of %zu bits (--max-ram), of "
                            "which it takes %zu.",
                            options->budget, 8 * options->pointer_bytes, fit->ram.total);
    }
    if (fit->lowered_count > 0) {
        graft_buffer_printf(text, " Lowered for that:\n");
    }
    for (uint32_t i = 0; i < fit->lowered_count; i++) {
        graft_buffer_printf(text, "%s *   %s", i > 0 ? "\n" : "", fit->lowered[i]);
    }
    graft_buffer_printf(text, " */\n");
}

/* Bytes that depend on pointers and ids, as an expression of the including program. */
static void print_macros(const graft_fit *fit, const graft_ram *rams, const char *name,
                         graft_buffer *text)
{
    graft_buffer_printf(text,
                        "#define GRAFT_GRAPH_%s_STEPS %u\n"
                        "#define GRAFT_GRAPH_%s_BUFFER_BYTES (GRAFT_NONE > 65535u ? %zu : %zu)\n"
                        "#define GRAFT_GRAPH_%s_WORK_BYTES \\\n"
                        "    (sizeof(void *) > 4 ? (GRAFT_NONE > 65535u ? %zu : %zu) \\\n"
                        "                        : (GRAFT_NONE > 65535u ? %zu : %zu))\n",
                        name, fit->step_limit, name, rams[0].buffer, rams[1].buffer, name,
                        rams[2].work, rams[3].work, rams[0].work, rams[1].work);
    if (fit->small) {
        graft_buffer_printf(text,
                            "#if GRAFT_NONE > 65535\n"
                            "#error \"this graph fits into its %zu bytes with GRAFT_SMALL_GRAPHS: "
                            "define it for the whole program\"\n"
                            "#endif\n",
                            fit->options.budget);
    }
    graft_buffer_printf(text, "\n");
}

graft_status graft_fit_print(graft_env *env, const graft_fit *fit, const graft_identifier *name,
                             graft_buffer *text)
{
    graft_ram rams[TARGETS];
    GRAFT_PASS(measure_all(env, fit, rams));
    graft_buffer_printf(text,
                        "/* Bytes of RAM with a policy of %u rules and so many steps: the graph's "
                        "struct, its buffer and\n"
                        " * the workspace, for arrays. The stack is not in it, nor are decisions "
                        "that are reported.\n",
                        fit->options.policy->rule_count);
    print_parts(rams, text);
    print_budget(fit, text);
    print_macros(fit, rams, name->capitals, text);
    return GRAFT_OK;
}
