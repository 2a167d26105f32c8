/* build.h - short hands for building graphs and rules in tests. Every call asserts success. */
#pragma once

#include "tests/support/check.h"

/* An empty graph with room for 64 nodes, or as the limits say, in `arena`. */
graft_graph *build_graph(graft_arena *arena);
graft_graph *build_graph_within(graft_arena *arena, graft_limits limits);

/* A binary32 shape of these sizes. */
#define SHAPE(...)                                                                                 \
    ((graft_shape){.dims = {__VA_ARGS__},                                                          \
                   .rank = (uint8_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),          \
                   .dtype = GRAFT_DTYPE_F32})
graft_index build_input(graft_graph *graph, graft_shape shape, graft_index source);
graft_index build_weight(graft_graph *graph, graft_shape shape, graft_index source);

/* A node with one output; returns that value. `attrs` may be NULL. */
graft_index build_node(graft_graph *graph, uint32_t op, const int32_t *attrs, graft_index a,
                       graft_index b, graft_index c);
/* A 3x3 or other convolution, stride 1, padded by `pad` on every side. */
graft_index build_conv(graft_graph *graph, graft_index x, graft_index w, int32_t pad);

/* The order of `graph`, in `arena`; its hash; that nothing is wrong with it. */
graft_order build_order(graft_arena *arena, const graft_graph *graph);
uint64_t build_hash(graft_arena *arena, const graft_graph *graph);
void build_check(graft_arena *arena, const graft_graph *graph);

/* Of these limits, with nothing estimated yet. */
graft_estimator build_estimator(graft_arena *arena, const graft_tariff *tariff,
                                const graft_limits *limits);

/* What the matcher needs to plan or apply. The first match of a rule, which has one. */
void *build_scratch(graft_arena *arena, const graft_graph *graph);
graft_match build_match(const graft_graph *graph, const graft_rule *rule, const graft_order *order);
/* Applies the rule at the first match that takes it; false when none does. */
bool build_apply(graft_arena *arena, graft_graph *graph, const graft_rule *rule);

/* Appends a node to a pattern. Unset attributes are constant 0; `slot` >= 0 makes attribute i slot
 * `slot` + i for every attribute but those that later calls overwrite. */
graft_pattern_node *build_pattern_node(graft_pattern *pattern, uint32_t op, graft_operand a,
                                       graft_operand b, graft_operand c, int32_t slot);

/* Rules that many tests begin with, for rows_parse. */
#define RULE_FUSE_RELU                                                                             \
    "relu(conv_bias#1(a, b, c, activation=none)) = conv_bias#1(a, b, c, activation=relu)"
#define RULE_FOLD_SCALE                                                                            \
    "scale_shift(conv#1(a, b), c, d) = "                                                           \
    "conv_bias#1(a, mul(b, reshape(c, dim=[dim(b,0), 1, 1, 1])), d, activation=none)"
#define RULE_MERGE_MATMUL                                                                          \
    "[matmul(a, b), matmul(a, c)] = "                                                              \
    "[split(matmul(a, concat(b, c, axis=1)), axis=1, at=dim(b,-1)).0, "                            \
    "split(matmul(a, concat(b, c, axis=1)), axis=1, at=dim(b,-1)).1]"
#define RULE_DROP_IDENTITY "identity(a) = a"

#define VAR(v)     GRAFT_OPERAND_VAR(v)
#define NODE(n, o) GRAFT_OPERAND_NODE(n, o)
