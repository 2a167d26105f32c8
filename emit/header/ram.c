/* ram.c - see ram.h. */
#include "emit/header/ram.h"

#include "graft/graft.h"

/* That the lists are right for this computer is asked with each header (graft_ram_measure), for
 * others in tests/emit/test_ram.sh. */

/* Bytes of those that hold ids or pointers and lie in memory. */
typedef struct target_sizes {
    size_t id;
    size_t node;
    size_t value;
    size_t graph;
    size_t run; /* graft_optimize_run, a call in progress */
} target_sizes;

/* What members are: numbers of so many bytes, what the target decides, structs. A struct stands
 * behind those that it holds. */
enum {
    END,
    BYTE,
    SHORT,
    WORD,
    LONG,
    ENUM,
    POINTER,
    ID,
    SHAPE,
    VALUE,
    NODE,
    LIMITS,
    GRAPH,
    ORDER,
    MATCH,
    MADE_NODE,
    MADE,
    TERM,
    PATTERN_NODE,
    PATTERN,
    RULE,
    APPLICATION,
    MATCHER,
    FINDER,
    ESTIMATED,
    CHANGE,
    SCORES,
    SCAN,
    ESTIMATOR,
    KEPT,
    NETWORK,
    MEMORY,
    DECISION,
    OPTIONS,
    REPORT,
    RUN,
    KINDS
};

typedef struct {
    uint8_t kind;
    uint8_t count;
} member;

enum { MEMBERS_MOST = 17 };

/* The members of graft_shape, graft_value... in their order, neighbours of a kind together.
 * clang-format 14 falls over a table whose rows differ in length. */
/* clang-format off */
static const member structs[KINDS][MEMBERS_MOST + 1] = {
    [SHAPE] = {{WORD, GRAFT_MAX_RANK}, {BYTE, 2}},
    [VALUE] = {{BYTE, 2}, {SHORT, 1}, {ID, 2}, {SHAPE, 1}},
    [NODE] = {{BYTE, 2}, {SHORT, 2}, {ID, 2}, {WORD, GRAFT_MAX_ATTRS}},
    [LIMITS] = {{ID, 4}},
    [GRAPH] = {{LIMITS, 1}, {ID, 4}, {BYTE, 1}, {POINTER, 4}, {ID, 2}},
    [ORDER] = {{ID, 1}, {POINTER, 5}},
    [MATCH] = {{ID, GRAFT_RULE_MAX_NODES + GRAFT_RULE_MAX_VARS}, {WORD, GRAFT_RULE_MAX_SLOTS}},
    [MADE_NODE] = {{NODE, 1}, {ID, GRAFT_MAX_INPUTS}, {SHAPE, GRAFT_MAX_OUTPUTS}},
    [MADE] = {{LONG, 1}, {MADE_NODE, GRAFT_RULE_MAX_NODES}},
    [TERM] = {{WORD, 1}, {BYTE, 1}},
    [PATTERN_NODE] = {{BYTE, 1 + GRAFT_MAX_INPUTS}, {TERM, GRAFT_MAX_ATTRS}},
    [PATTERN] = {{BYTE, 1 + GRAFT_RULE_MAX_OUTPUTS}, {PATTERN_NODE, GRAFT_RULE_MAX_NODES}},
    [RULE] = {{BYTE, 5}, {PATTERN, 2}, {BYTE, GRAFT_RULE_MAX_CODE}},
    [APPLICATION] = {{POINTER, 7},
                     {ID, GRAFT_RULE_MAX_OUTPUTS + GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS}},
    [MATCHER] = {{POINTER, 3}, {BYTE, 1}, {WORD, 3 * GRAFT_RULE_MAX_NODES + 2}, {MATCH, 1}},
    [FINDER] = {{ID, 2}, {BYTE, 2}, {LONG, 1}, {MATCHER, 1}},
    [ESTIMATED] = {{LONG, 5}, {WORD, 2}},
    [CHANGE] = {{LONG, 2}, {ESTIMATED, 2}},
    [SCORES] = {{POINTER, 2}, {LONG, 2}, {CHANGE, 1}, {SHORT, 2}},
    [SCAN] = {{ESTIMATED, 1}, {SCORES, 1}, {LONG, 1}, {WORD, 1}, {SHORT, 1}, {BYTE, 2}},
    [ESTIMATOR] = {{POINTER, 3}, {LIMITS, 1}, {POINTER, 14}, {BYTE, 2}, {WORD, 2}},
    [KEPT] = {{POINTER, 5}, {ID, 1}, {BYTE, 1}},
    [NETWORK] = {{POINTER, 11}, {WORD, 1}},
    [MEMORY] = {{ORDER, 1}, {POINTER, 4}, {ESTIMATOR, 1}, {KEPT, 1}, {NETWORK, 1}},
    [DECISION] = {{ID, GRAFT_RULE_MAX_NODES}, {SHORT, 3}, {BYTE, 2}, {LONG, 1}},
    [OPTIONS] = {{LONG, 1}, {WORD, 1}, {LONG, 1}, {BYTE, 4}, {POINTER, 4}},
    [REPORT] = {{POINTER, 1}, {WORD, 4}, {ENUM, 1}, {BYTE, 1}, {LONG, 3}, {ID, 2}, {ESTIMATED, 2}},
    [RUN] = {{POINTER, 3}, {WORD, 3}, {ENUM, 1}, {BYTE, 1}, {LONG, 1}, {MEMORY, 1},
             {SCAN, 1}, {DECISION, 1}, {OPTIONS, 1}, {APPLICATION, 1}, {FINDER, 1}, {REPORT, 1},
             {WORD, (GRAFT_OP_COUNT + 31) / 32}, {ID, GRAFT_OP_COUNT}, {RULE, 1}, {MADE, 1}},
};
/* clang-format on */

typedef struct {
    size_t bytes;
    size_t alignment;
} extent;

static size_t round_up(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

static extent lay_out(const member *members, const extent *extents)
{
    extent all = {0, 1};
    for (; members->kind != END; members++) {
        const extent one = extents[members->kind];
        all.bytes = round_up(all.bytes, one.alignment) + members->count * one.bytes;
        all.alignment = all.alignment > one.alignment ? all.alignment : one.alignment;
    }
    all.bytes = round_up(all.bytes, all.alignment);
    return all;
}

static target_sizes sizes_of(graft_target target)
{
    extent extents[KINDS];
    const size_t pointer = target.pointer_bytes;
    const size_t id = target.id_bytes;
    const size_t numbers[SHAPE] = {0, 1, 2, 4, 8, 4, pointer, id}; /* From END on. */
    for (uint32_t kind = END; kind < SHAPE; kind++) {
        extents[kind] = (extent){numbers[kind], numbers[kind]};
    }
    for (uint32_t kind = SHAPE; kind < KINDS; kind++) {
        extents[kind] = lay_out(structs[kind], extents);
    }
    return (target_sizes){.id = id,
                          .node = extents[NODE].bytes,
                          .value = extents[VALUE].bytes,
                          .graph = extents[GRAPH].bytes,
                          .run = extents[RUN].bytes};
}

/* What the engine's functions that are called carve_... do, counted. */
typedef struct {
    target_sizes of;
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
    counter c = {.of = sizes_of(target),
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
        return GRAFT_FAIL(env, GRAFT_INTERNAL,
                          "the structs of emit/header/ram.c are not those of the engine: %zu + %zu "
                          "bytes in place of %zu + %zu",
                          own.buffer, own.work, graft_graph_bytes(limits), work);
    }
    *ram = count_for(policy, limits, step_limit, target);
    return GRAFT_OK;
}
