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

/* A graph written as text, and its values by their names, which are letters; one that is given again
 * means the last. Statements are separated by ';':
 *
 *      x = input 1 3 8 8             binary32; without sizes a scalar
 *      w = weight 5 3 3 3            sources are numbered as they come, weights apart from inputs
 *      y = conv x w : 1 1 0 0 0 0 1 1 1        operands, and attributes, of which the rest are 0; a
 *      a b = split y : 1 2                     number with a point is a float
 *      o = opaque y _                an operator that nobody knows; results have an operand's shape
 *      out y a
 *
 * The text is a format, as printf takes it. */
typedef struct built {
    graft_graph *graph;
    graft_index at['z' + 1];
} built;
/* In a graph of build_graph's; in one that there is, whose names are those of before. */
__attribute__((format(printf, 2, 3))) built build_text(graft_arena *arena, const char *format, ...);
__attribute__((format(printf, 2, 3))) void build_more(built *b, const char *format, ...);
/* Attributes of a convolution: stride 1, padded by 1 on every side or not at all. */
#define PADDED   " : 1 1 1 1 1 1 1 1 1"
#define UNPADDED " : 1 1 0 0 0 0 1 1 1"
/* What RULE_FOLD_SCALE, RULE_FUSE_RELU and RULE_DROP_IDENTITY make one node of, on an image y of three
 * channels. */
#define BUILD_BLOCK                                                                                \
    "w = weight 3 3 3 3; s = weight 3; t = weight 3; y = conv y w" PADDED                          \
    "; y = scale_shift y s t; y = relu y; y = identity y; "

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
