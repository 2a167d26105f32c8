/* SPDX-License-Identifier: MIT */
/* graft.h - the Graft engine: tensor graphs in caller-owned memory, proved substitutions, a learned
 * policy that says which to apply where.
 *
 * The offline tools, the training environment and the firmware all run this code. It is C99 (and
 * valid C++), freestanding: no allocator, no recursion, no libm, no floating-point arithmetic, no
 * mutable statics, no operating system. Every loop is bounded by the capacities of the graph it is
 * given. Calls on different graphs may run at the same time.
 *
 * Use: define GRAFT_IMPLEMENTATION in exactly one C file before including this header (or the
 * generated graft_policy.h, which includes it); elsewhere include it plainly. With GRAFT_WITHOUT_NETWORK
 * defined there too, policies that decide by a network are refused, and their code is left out. With
 * GRAFT_SMALL_GRAPHS defined wherever it is included, ids have 16 bits instead of 32: policies take graphs
 * of at most 32,000 nodes and 65,000 values and edges, and much less memory. Decisions and hashes are the
 * same. With GRAFT_WITHOUT_TEXTS what checks find is all called "invalid". GRAFT_WITHOUT_CHECKS,
 * GRAFT_WITHOUT_KEEPING and GRAFT_WITHOUT_PLANS leave out what a product with a policy of its own does
 * not use, GRAFT_NEAR_WEIGHTS what graphs with less than 1 MB of weights, all known, do not;
 * GRAFT_OPERATORS says which operators it has, a bit for each id (those from 64 on in
 * GRAFT_OPERATORS_64): docs/embedding.md.
 *
 *      graft_graph graph;                         // 1. describe the model
 *      graft_graph_init(&graph, &limits, memory, sizeof memory);
 *      graft_graph_add_input(&graph, &shape, 0, &x);
 *      graft_graph_add_weight(&graph, &filter, 0, &w);
 *      graft_graph_add_node(&graph, GRAFT_OP_conv, attrs, inputs, 2, &node);
 *      graft_graph_add_output(&graph, graft_node_output(&graph, node, 0));
 *      graft_optimize(&graph, &GRAFT_POLICY, ...);  // 2. rewrite it
 *      ...                                        // 3. read the nodes in topological order
 *
 * Words (docs/architecture.md): a value is a tensor flowing in the graph; a node is one operator
 * applied to values; a rule is a pair of patterns, source and target, over the same variables; a
 * match is a place where a rule's source fits. Nodes whose inputs are all weights form the weight
 * program: they are run once, when the model is loaded, and cost nothing per inference. The engine
 * never computes tensor values. */
#ifndef GRAFT_H
#define GRAFT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if CHAR_BIT != 8 || UINT_MAX < 0xffffffffu
#error "Graft's engine needs bytes of 8 bits and an int of 32 bits at least"
#endif

/* The tables' macros; a product may have its own of these names. */
#pragma push_macro("OP")
#pragma push_macro("FUNCTION")
#pragma push_macro("ATTR")
#pragma push_macro("FEATURE")
#pragma push_macro("EDGE_FEATURE")
#undef OP
#undef FUNCTION
#undef ATTR
#undef FEATURE
#undef EDGE_FEATURE

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a struct, the rule encoding or the policy's features change: a generated header
 * refuses to compile against another number. */
#define GRAFT_ABI 5

/* Of the project: the program and its packages read it here. */
#define GRAFT_VERSION "0.1.0"

#include "rule.h"

#if defined(__GNUC__)
#define GRAFT_MUST_USE __attribute__((warn_unused_result))
#else
#define GRAFT_MUST_USE
#endif

/* ------------------------------------------------------------------ status */

/* Numbers are stable; 0 is success. */
typedef enum graft_status {
    GRAFT_OK = 0,
    GRAFT_BAD_INPUT = 1,   /* The caller's data breaks a rule that is documented here. */
    GRAFT_IO = 2,          /* A file could not be read or written (host only). */
    GRAFT_NO_MEMORY = 3,   /* The system, or the caller's buffer, is too small. */
    GRAFT_CAPACITY = 4,    /* A graph or workspace is full; what it held is unchanged. */
    GRAFT_UNSUPPORTED = 5, /* Valid, but outside what this build handles. */
    GRAFT_UNDECIDED = 6,   /* A solver gave up (host only). */
    GRAFT_INTERRUPTED = 7, /* The user asked to stop (host only). */
    GRAFT_NO_MATCH = 8,    /* The rule does not apply there: shapes, preconditions or a cycle. */
    GRAFT_INTERNAL = 9,    /* A promise of this code was broken. */
    GRAFT_REFUTED = 10     /* What was to be checked is false (host only). */
} graft_status;

/* A short name in lower case, e.g. "bad input"; "unknown status" for other numbers. */
const char *graft_status_name(graft_status status);

/* ------------------------------------------------------------------ shapes */

/* Whether operators and rules are about tensors of a type: binary32, float16, bfloat16. */
bool graft_dtype_is_real(uint32_t dtype);

/* Number of elements, saturating at UINT64_MAX; 0 for an unknown shape. */
uint64_t graft_shape_elements(const graft_shape *shape);
/* Number of bytes, saturating; 0 when shape or element type is unknown. */
uint64_t graft_shape_bytes(const graft_shape *shape);
bool graft_shape_equal(const graft_shape *a, const graft_shape *b);

/* Infers the outputs of one operator. `attrs` has GRAFT_MAX_ATTRS entries (unused ones 0), `in` the
 * operator's inputs, `out` its outputs. Inputs are all of binary32, all of float16 or all of
 * bfloat16, and the outputs are of the same type, binary32 where there is no input. GRAFT_BAD_INPUT
 * when operator, attributes and shapes do not fit together (an attribute outside its domain, two
 * element types, unequal sizes, an empty output, more than INT32_MAX elements); `out` is then
 * untouched. */
GRAFT_MUST_USE graft_status graft_infer_shapes(uint32_t op, const int32_t *attrs,
                                               const graft_shape *in, graft_shape *out);
/* The check that failed, for messages: static text such as "inner dimensions differ". Repeats the
 * inference; NULL when it succeeds. */
const char *graft_infer_explain(uint32_t op, const int32_t *attrs, const graft_shape *in);

/* Multiply-adds count as two; comparisons, additions and function calls as one each. Saturates. */
uint64_t graft_op_flops(uint32_t op, const int32_t *attrs, const graft_shape *in,
                        const graft_shape *out);

/* ------------------------------------------------------------------- rules */

/* Checks that a rule keeps the promises of rule.h (counts, operands, order, attributes within their
 * tables, code that cannot run off its end). NULL when it does, else a static text. */
const char *graft_rule_check(const graft_rule *rule);

/* ------------------------------------------------------------------- graph */

#ifdef GRAFT_SMALL_GRAPHS
typedef uint16_t graft_index;
#define GRAFT_NONE UINT16_MAX
/* Files that disagree about it do not link: whoever builds, reads or rewrites a graph calls one. */
#define graft_graph_init       graft_graph_init_small
#define graft_graph_load       graft_graph_load_small
#define graft_graph_add_node   graft_graph_add_node_small
#define graft_graph_add_output graft_graph_add_output_small
#define graft_node_input       graft_node_input_small
#define graft_node_output      graft_node_output_small
#define graft_order_build      graft_order_build_small
#define graft_optimize         graft_optimize_small
#define graft_optimize_begin   graft_optimize_begin_small
#else
typedef uint32_t graft_index;
#define GRAFT_NONE UINT32_MAX
#endif

typedef enum graft_value_kind {
    GRAFT_VALUE_FREE = 0,
    GRAFT_VALUE_INPUT = 1,
    GRAFT_VALUE_WEIGHT = 2,
    GRAFT_VALUE_COMPUTED = 3
} graft_value_kind;

/* Here and below what is small comes first: a Cortex-M reaches it in two bytes, not four. */
typedef struct graft_value {
    uint8_t kind;       /* graft_value_kind */
    bool is_const;      /* A weight, or computed from weights alone. */
    uint16_t slot;      /* Which output of the producer. */
    graft_index node;   /* Producer; GRAFT_NONE for inputs and weights. */
    graft_index source; /* The caller's number of the input or weight; GRAFT_NONE otherwise. */
    graft_shape shape;
} graft_value;

typedef struct graft_node {
    uint8_t op; /* GRAFT_OP_NONE: free. */
    bool is_const;
    uint16_t input_count;
    uint16_t output_count;
    graft_index first_edge; /* Value ids of the inputs, then of the outputs, in `edges`. */
    graft_index source;     /* The caller's number (e.g. the node of the file this came from);
                               GRAFT_NONE for nodes that a rule created. */
    int32_t attrs[GRAFT_MAX_ATTRS]; /* Unused ones are 0. */
} graft_node;

typedef struct graft_limits {
    graft_index nodes;
    graft_index values;
    graft_index edges; /* Inputs and outputs of all nodes together. */
    graft_index outputs;
} graft_limits;

/* A directed acyclic graph. Ids of nodes and values are stable until what they name is removed;
 * a removed id may be used again. Readable by anyone, changed only through the calls below. */
typedef struct graft_graph {
    graft_limits limits;
    graft_index node_end; /* One past the largest id in use. */
    graft_index value_end;
    graft_index edge_end;
    graft_index output_count;
    uint8_t dtype; /* Of the tensors that nodes without inputs make (`fill`): binary32 at first;
                      whoever builds a graph of float16 or bfloat16 sets it before adding nodes. */
    graft_node *nodes;
    graft_value *values;
    graft_index *edges;
    graft_index *outputs; /* Value ids, in the model's order. */
    /* No slot below these is free, where the engine is compiled with GRAFT_LARGE_GRAPHS: it then
     * finds a free one without looking at all that are used. */
    graft_index node_floor;
    graft_index value_floor;
} graft_graph;

/* Bytes that graft_graph_init needs, any alignment of the buffer included. */
size_t graft_graph_bytes(const graft_limits *limits);
/* An empty graph in the caller's buffer, which must outlive it. GRAFT_NO_MEMORY when too small. */
GRAFT_MUST_USE graft_status graft_graph_init(graft_graph *graph, const graft_limits *limits,
                                             void *memory, size_t memory_bytes);
/* Copies all ids as they are. GRAFT_CAPACITY when `to` is too small (`to` is then untouched). */
GRAFT_MUST_USE graft_status graft_graph_copy(graft_graph *to, const graft_graph *from);
void graft_graph_clear(graft_graph *graph);

/* Building. Inputs must exist before the nodes that use them. GRAFT_CAPACITY leaves the graph as it
 * was; GRAFT_BAD_INPUT for unknown ids, operators or misfitting shapes, likewise. The shapes of
 * inputs, weights and opaque outputs are judged by the operators that read them: what breaks the
 * promises of graft_shape (a size below 1, a rank above GRAFT_MAX_RANK) only opaque nodes can read. */
GRAFT_MUST_USE graft_status graft_graph_add_input(graft_graph *graph, const graft_shape *shape,
                                                  graft_index source, graft_index *value);
GRAFT_MUST_USE graft_status graft_graph_add_weight(graft_graph *graph, const graft_shape *shape,
                                                   graft_index source, graft_index *value);
/* `attrs` may be NULL when the operator has none; it has the operator's attr_count entries. */
GRAFT_MUST_USE graft_status graft_graph_add_node(graft_graph *graph, uint32_t op,
                                                 const int32_t *attrs, const graft_index *inputs,
                                                 graft_index source, graft_index *node);
/* A node that Graft does not understand. An input may be GRAFT_NONE (an omitted optional input). */
GRAFT_MUST_USE graft_status graft_graph_add_opaque(graft_graph *graph, graft_index source,
                                                   const graft_index *inputs, uint16_t input_count,
                                                   const graft_shape *output_shapes,
                                                   uint16_t output_count, graft_index *node);
/* Says that an opaque node computes the same from the same inputs. If these are all const, then so
 * are it and its outputs from now on: part of the weight program. */
void graft_graph_set_repeatable(graft_graph *graph, graft_index node);
GRAFT_MUST_USE graft_status graft_graph_add_output(graft_graph *graph, graft_index value);

/* A graph as a table of integers, as `graft emit-graph` writes it: records, each a kind and what
 * belongs to it. Values are numbered as they come; -1 stands for GRAFT_NONE; a shape is element
 * type, rank, sizes. */
typedef enum graft_record {
    GRAFT_RECORD_INPUT = 1,  /* source, shape */
    GRAFT_RECORD_WEIGHT = 2, /* source, shape */
    GRAFT_RECORD_NODE = 3,   /* operator, source, inputs, attributes */
    GRAFT_RECORD_OPAQUE = 4, /* source, numbers of inputs and outputs, inputs, shapes of outputs */
    GRAFT_RECORD_OUTPUT = 5, /* value */
    GRAFT_RECORD_CONST = 6 /* An opaque node that is const, see graft_graph_set_repeatable: as 4. */
} graft_record;
/* Most inputs, and most outputs, of an opaque node in a table. */
#define GRAFT_TABLE_MAX_OPERANDS 32
/* Replaces what the graph holds. GRAFT_CAPACITY when it is too small, GRAFT_BAD_INPUT when the
 * table is malformed; the graph then holds the part before the fault. */
GRAFT_MUST_USE graft_status graft_graph_load(graft_graph *graph, const int32_t *table,
                                             size_t count);

graft_index graft_node_input(const graft_graph *graph, graft_index node, uint32_t k);
graft_index graft_node_output(const graft_graph *graph, graft_index node, uint32_t k);
/* Number of nodes in use; of those, how many run at each inference (are not const). */
graft_index graft_graph_node_count(const graft_graph *graph);
graft_index graft_graph_active_count(const graft_graph *graph);
/* Makes every use of `from`, as an input or as an output of the graph, a use of `to`. */
void graft_graph_redirect(graft_graph *graph, graft_index from, graft_index to);
/* Removes nodes none of whose outputs is used, and weights without a use; inputs stay. */
void graft_graph_remove_dead(graft_graph *graph);
/* Checks every promise of the structure (ids in range, producers agree, acyclic, shapes and
 * const-ness as inferred). NULL when all hold, else a static text. For tests and debug builds. */
const char *graft_graph_check(const graft_graph *graph, void *workspace, size_t workspace_bytes);

/* ---------------------------------------------------------- derived tables */

/* Topological order and uses, derived from a graph and valid until it changes. */
typedef struct graft_order {
    graft_index count;      /* Nodes in `order`. */
    graft_index *order;     /* Node ids, producers first; ties by the smallest id. */
    graft_index *position;  /* By node id: place in `order`; GRAFT_NONE for free slots. */
    graft_index *use_first; /* By value id (value_end + 1 entries): start in `uses`. */
    graft_index *uses;      /* Node ids that read the value, one entry per reading, by node id. */
    graft_index *use_count; /* By value id: readings by nodes plus by the graph's outputs. */
} graft_order;

/* Bytes for graft_order_build on a graph with these capacities. */
size_t graft_order_bytes(const graft_limits *limits);
/* GRAFT_NO_MEMORY when the buffer is too small; GRAFT_BAD_INPUT when the graph has a cycle. */
GRAFT_MUST_USE graft_status graft_order_build(graft_order *order, const graft_graph *graph,
                                              void *memory, size_t memory_bytes);

/* A 64-bit hash of the graph's meaning: operators, attributes, shapes, wiring and the numbers of
 * inputs and weights, independent of ids, and the same in float16 and bfloat16 as in binary32. `scratch` holds one uint64_t per value. */
uint64_t graft_graph_hash(const graft_graph *graph, const graft_order *order, uint64_t *scratch);

/* ------------------------------------------------------------------- rules */

/* Packed form: about 30 to 80 bytes a rule. Headers have it shorter. Format: docs/formats.md. */
/* Bytes written, or 0 when the rule is not valid or `capacity` is too small. */
size_t graft_rule_pack(const graft_rule *rule, uint8_t *bytes, size_t capacity);
/* Reads one rule; sets *size to the bytes it took. GRAFT_BAD_INPUT when malformed. */
GRAFT_MUST_USE graft_status graft_rule_unpack(graft_rule *rule, const uint8_t *bytes,
                                              size_t capacity, size_t *size);

/* ---------------------------------------------------------------- matching */

typedef struct graft_match {
    graft_index nodes[GRAFT_RULE_MAX_NODES]; /* Graph node of each source pattern node. */
    graft_index vars[GRAFT_RULE_MAX_VARS];   /* Graph value of each variable. */
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
} graft_match;

/* Enumerates the matches of `rule` whose anchor is the node `anchor`, in a fixed order. */
typedef struct graft_matcher {
    const graft_rule *rule;
    const graft_graph *graph;
    const graft_order *order;
    uint8_t level; /* The pattern node that is next: 0 at first, the last one behind a match. */
    uint32_t choice[GRAFT_RULE_MAX_NODES];       /* Per pattern node: the next alternative. */
    uint32_t bound[GRAFT_RULE_MAX_NODES + 1][2]; /* Before each pattern node: bits, match.h. */
    graft_match match; /* Being built. Node 0 is the anchor; GRAFT_NONE when no match is left. */
} graft_matcher;

void graft_matcher_start(graft_matcher *matcher, const graft_rule *rule, const graft_graph *graph,
                         const graft_order *order, graft_index anchor);
/* Finds the next match whose wiring, attributes, shapes and precondition fit, whose inner values
 * are used nowhere else and whose outputs are not const. False when there is none left. Whether the
 * target fits (shapes, cycles, capacity) is asked by graft_match_try. */
bool graft_matcher_next(graft_matcher *matcher, graft_match *match);

typedef struct graft_apply_options {
    uint64_t weight_bytes_limit; /* New weights that one application may create; 0 on firmware. */
} graft_apply_options;

/* What an application would do or has done. */
typedef struct graft_effect {
    uint64_t weight_bytes;                     /* Created weights (weight program outputs). */
    graft_index created[GRAFT_RULE_MAX_NODES]; /* Node ids, in target pattern order; GRAFT_NONE for
                                                  one that nothing reads. */
    uint8_t created_count;
    uint8_t replaced_count; /* Source pattern nodes. */
} graft_effect;

/* Whether graft_apply would succeed; the graph is unchanged. GRAFT_NO_MATCH when the target's
 * shapes do not infer or its outputs' shapes differ from the source's, when it would close a cycle
 * or needs more new weights than allowed; GRAFT_CAPACITY when the graph is too full. `scratch` has
 * graft_match_scratch_bytes of the graph's limits. */
GRAFT_MUST_USE graft_status graft_match_try(const graft_graph *graph, const graft_rule *rule,
                                            const graft_match *match, const graft_order *order,
                                            const graft_apply_options *options, void *scratch);
size_t graft_match_scratch_bytes(const graft_limits *limits);

/* What an application would make, by node of the target pattern. The nodes' ids would count on from the
 * graph's node_end; those of the values, GRAFT_MAX_OUTPUTS for each node, from its value_end. */
typedef struct graft_made_node {
    graft_node node; /* Without edges in the graph's table. */
    graft_index inputs[GRAFT_MAX_INPUTS];
    graft_shape shapes[GRAFT_MAX_OUTPUTS]; /* Of the outputs. */
} graft_made_node;
typedef struct graft_made {
    uint64_t weight_bytes; /* As in graft_effect. */
    graft_made_node nodes[GRAFT_RULE_MAX_NODES];
} graft_made;
/* graft_match_try that also tells what would be made; `made` is untouched on failure. */
GRAFT_MUST_USE graft_status graft_match_plan(const graft_graph *graph, const graft_rule *rule,
                                             const graft_match *match, const graft_order *order,
                                             const graft_apply_options *options, void *scratch,
                                             graft_made *made);
/* Room for applications, in the caller's scratch. */
typedef struct graft_apply_scratch {
    graft_index *use_count; /* By value id; behind them the estimator has what a target makes. */
    graft_index *pending;   /* A stack; a value or a node is on it at most once. The estimator also
                               stacks what a target makes. */
    uint8_t *seen;          /* By node id. */
} graft_apply_scratch;
/* Replaces the match. On any failure the graph is as it was. Dead nodes are removed. `order` is
 * stale afterwards. `effect` may be NULL. */
GRAFT_MUST_USE graft_status graft_apply(graft_graph *graph, const graft_rule *rule,
                                        const graft_match *match, const graft_order *order,
                                        const graft_apply_options *options, void *scratch,
                                        graft_effect *effect);

#include "policy.h"

#ifdef __cplusplus
}
#endif

#ifdef GRAFT_IMPLEMENTATION
/* In order of use; clang-format would sort them. */
/* clang-format off */
#if defined(GRAFT_SMALL_GRAPHS) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" /* Ids are computed in 32 bits, and fit into 16. */
#endif
#include "engine/operators.h"
#include "engine/shapes.h"
#include "engine/graph.h"
#include "engine/order.h"
#include "engine/code.h"
#include "engine/pack.h"
#include "engine/match.h"
#include "engine/apply.h"
#include "engine/table.h"
#include "engine/features.h"
#include "engine/network.h"
#include "engine/tariff.h"
#include "engine/estimate.h"
#include "engine/change.h"
#include "engine/scene.h"
#include "engine/keep.h"
#include "engine/policy.h"
#include "engine/optimize.h"
#if defined(GRAFT_SMALL_GRAPHS) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
/* clang-format on */
#endif

#pragma pop_macro("OP")
#pragma pop_macro("FUNCTION")
#pragma pop_macro("ATTR")
#pragma pop_macro("FEATURE")
#pragma pop_macro("EDGE_FEATURE")

#endif
