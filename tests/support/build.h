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
/* The first `rank` of the sizes. */
graft_shape build_shape(uint32_t rank, int32_t a, int32_t b, int32_t c, int32_t d);
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

/* Appends a node to a pattern. Unset attributes are constant 0; `slot` >= 0 makes attribute i slot
 * `slot` + i for every attribute but those that later calls overwrite. */
graft_pattern_node *build_pattern_node(graft_pattern *pattern, uint32_t op, graft_operand a,
                                       graft_operand b, graft_operand c, int32_t slot);

/* relu(conv_bias(x, w, b, none)) = conv_bias(x, w, b, relu). */
graft_rule build_rule_fuse_relu(void);
/* scale_shift(conv(x, w), s, t) = conv_bias(x, mul(w, reshape(s)), t, none). */
graft_rule build_rule_fold_scale(void);
/* matmul(x, u), matmul(x, v) = split(matmul(x, concat(u, v))), for matrices. */
graft_rule build_rule_merge_matmul(void);
/* identity(x) = x. */
graft_rule build_rule_drop_identity(void);

#define VAR(v)     GRAFT_OPERAND_VAR(v)
#define NODE(n, o) GRAFT_OPERAND_NODE(n, o)
