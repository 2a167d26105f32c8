/* target.c - see target.h. */
#include "emit/header/target.h"

#include "graft/graft.h"

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

graft_target_sizes graft_target_sizes_of(graft_target target)
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
    return (graft_target_sizes){.id = id,
                                .node = extents[NODE].bytes,
                                .value = extents[VALUE].bytes,
                                .graph = extents[GRAPH].bytes,
                                .run = extents[RUN].bytes};
}
