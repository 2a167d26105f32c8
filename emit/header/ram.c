/* ram.c - see ram.h. */
#include "emit/header/ram.h"

/* What the engine's functions that are called carve_... do, counted. */
typedef struct {
    graft_target_sizes of;
    const graft_policy *policy;
    size_t nodes, values, edges, outputs;
    size_t used;
} counter;

static void take(counter *c, size_t count, size_t bytes)
{
    c->used = (c->used + 7) / 8 * 8 + count * bytes;
}

/* What a function of the engine says of a buffer that may lie anywhere. */
static size_t take_back(counter *c)
{
    const size_t bytes = c->used + 7;
    c->used = 0;
    return bytes;
}

static size_t count_graph(counter *c)
{
    take(c, c->nodes, c->of.node);
    take(c, c->values, c->of.value);
    take(c, c->edges, c->of.id);
    take(c, c->outputs, c->of.id);
    return take_back(c);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void count_order(counter *c)
{
    take(c, c->nodes, c->of.id);
    take(c, c->nodes, c->of.id);
    take(c, c->values + 1, c->of.id);
    take(c, c->edges, c->of.id);
    take(c, larger(c->values, c->nodes), c->of.id);
}

static size_t power_of_two(size_t n)
{
    size_t power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

/* The estimator's, which begin with those of an application and are hashes of values at times. */
static void count_costs(counter *c)
{
    const size_t hashes_end = (c->used + 7) / 8 * 8 + c->values * sizeof(uint64_t);
    const size_t made = (size_t)GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS;
    const size_t more = c->nodes + GRAFT_RULE_MAX_NODES;
    take(c, c->values + made, c->of.id);
    take(c, made + larger(c->values, c->nodes), c->of.id);
    take(c, c->nodes, 1);
    take(c, c->nodes, sizeof(uint32_t));
    take(c, c->nodes, c->of.id);
    take(c, more, c->of.id);
    take(c, c->nodes + more, c->of.id);
    take(c, c->nodes, c->of.id);
    take(c, more, c->of.id);
    take(c, more, c->of.id);
    take(c, 2 * power_of_two(more), c->of.id);
    take(c, more, 1);
    c->used = larger(c->used, hashes_end);
    take(c, power_of_two(more), sizeof(uint64_t));
    take(c, c->values, 1);
}

static void count_network(counter *c)
{
    const graft_policy *policy = c->policy;
    const size_t hidden = policy->hidden;
    const size_t numbers[] = {larger(3 * hidden, 2 * hidden + GRAFT_FACT_SEEN),
                              policy->global.inputs, policy->latent};
    if (hidden == 0) {
        return;
    }
    take(c, c->nodes, c->of.id);
    take(c, c->nodes, hidden * sizeof(int16_t));
    take(c, c->nodes, 2 * hidden * sizeof(int16_t));
    take(c, c->nodes, hidden * sizeof(int32_t));
    take(c, hidden, sizeof(uint32_t));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        take(c, numbers[i], sizeof(int16_t));
    }
    take(c, policy->width, sizeof(int32_t));
    take(c, policy->width, sizeof(int16_t));
    take(c, policy->width, sizeof(int16_t));
}

/* Takes `bytes` in the workspace and gives them to a part, with the bytes that aligning took. */
static void take_part(counter *c, graft_ram *ram, graft_ram_part part, size_t bytes)
{
    const size_t before = c->used;
    take(c, bytes, 1);
    ram->parts[part] += c->used - before;
}

/* Likewise what a function takes. */
static void count_part(counter *c, graft_ram *ram, graft_ram_part part, void (*count)(counter *c))
{
    const size_t before = c->used;
    count(c);
    ram->parts[part] += c->used - before;
}

static void count_all(counter *c, uint32_t step_limit, graft_ram *ram)
{
    *ram = (graft_ram){.buffer = count_graph(c)};
    ram->parts[GRAFT_RAM_GRAPH] = c->of.graph + ram->buffer;
    take_part(c, ram, GRAFT_RAM_RUN, c->of.run);
    count_part(c, ram, GRAFT_RAM_ORDER, count_order);
    take_part(c, ram, GRAFT_RAM_SEEN, ((size_t)step_limit + 1) * sizeof(uint64_t));
    take_part(c, ram, GRAFT_RAM_CANDIDATES, c->nodes * c->of.id);
    take_part(c, ram, GRAFT_RAM_CANDIDATES, c->policy->rule_count * sizeof(uint16_t));
    count_part(c, ram, GRAFT_RAM_COSTS, count_costs);
    count_part(c, ram, GRAFT_RAM_NETWORK, count_network);
    ram->work = take_back(c);
    ram->parts[GRAFT_RAM_RUN] += 7;
    ram->total = c->of.graph + ram->buffer + ram->work;
}

static graft_ram count_for(const graft_policy *policy, const graft_limits *limits,
                           uint32_t step_limit, graft_target target)
{
    graft_ram ram;
    counter c = {.of = graft_target_sizes_of(target),
                 .policy = policy,
                 .nodes = limits->nodes,
                 .values = limits->values,
                 .edges = limits->edges,
                 .outputs = limits->outputs};
    count_all(&c, step_limit, &ram);
    return ram;
}

const char *graft_ram_part_name(graft_ram_part part)
{
    static const char *const names[GRAFT_RAM_PARTS] = {[GRAFT_RAM_GRAPH] = "graph",
                                                       [GRAFT_RAM_ORDER] = "order",
                                                       [GRAFT_RAM_RUN] = "run",
                                                       [GRAFT_RAM_SEEN] = "graphs seen",
                                                       [GRAFT_RAM_CANDIDATES] = "candidates",
                                                       [GRAFT_RAM_COSTS] = "costs",
                                                       [GRAFT_RAM_NETWORK] = "network"};
    return names[part];
}

/* NOLINTNEXTLINE(readability-function-size): what it depends on. */
graft_status graft_ram_measure(graft_env *env, const graft_policy *policy,
                               const graft_limits *limits, uint32_t step_limit, graft_target target,
                               graft_ram *ram)
{
    const graft_target here = {sizeof(void *), sizeof(graft_index)};
    const graft_ram own = count_for(policy, limits, step_limit, here);
    const size_t work = graft_optimize_workspace_bytes(policy, limits, step_limit);
    if (own.buffer != graft_graph_bytes(limits) || own.work != work ||
        own.total != own.buffer + own.work + sizeof(graft_graph)) {
        return GRAFT_FAIL(
            env, GRAFT_INTERNAL,
            "the structs of emit/header/target.c are not those of the engine: %zu + %zu "
            "bytes in place of %zu + %zu",
            own.buffer, own.work, graft_graph_bytes(limits), work);
    }
    *ram = count_for(policy, limits, step_limit, target);
    return GRAFT_OK;
}
