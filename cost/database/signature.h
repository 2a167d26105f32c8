/* signature.h - what a cost is the cost of: one operator with everything that its time depends on,
 * but for the device.
 *
 * Operator, attributes, shapes, element types, which operands are weights, the layout of every
 * operand, and whether the residual input may be overwritten. A conversion between layouts is a
 * signature too. Equal signatures are equal byte for byte, so that they can be hashed and compared
 * as memory: build them with the calls below only. */
#pragma once

#include "cost/plan/layout.h"
#include "graph/base/file.h"
#include "graph/opaque.h"

/* How far away from the processor an operator's data lie when its turn comes, in the network that
 * it is part of: the same convolution takes twice as long when its filter comes from memory. A
 * network runs its other weights through the caches between two reads of a weight, so their size
 * decides. The limits are constants, not those of the machine at hand, so that a graph
 * has the same signatures wherever it is priced; so are the bytes that copies of weights take while
 * an operator of that distance is measured (trial.c). Where these lie is up to the machine; what is
 * said here holds for a second-level cache of 1 to 2 MB a core and a third of some 16 MB. */
typedef enum graft_distance {
    GRAFT_DISTANCE_SHARED = 0, /* Weights come from the third level, shared by all cores. */
    GRAFT_DISTANCE_OWN = 1,    /* All weights stay in the caches of the core. */
    GRAFT_DISTANCE_MEMORY = 2, /* Weights come from memory. */
    GRAFT_DISTANCE_EDGE = 3,   /* All weights fill the caches of the core, or more than that. */
    GRAFT_DISTANCE_NEAR = 4,   /* All weights half fill the caches of the core, or fill them. */
    GRAFT_DISTANCE_FAR = 5,    /* All weights fill the third level, or what others leave of it. */
    GRAFT_DISTANCE_COUNT = 6
} graft_distance;

enum {
    GRAFT_DISTANCE_OWN_BYTES = 3 << 18,  /* 0.75 MB */
    GRAFT_DISTANCE_NEAR_BYTES = 3 << 19, /* 1.5 MB */
    GRAFT_DISTANCE_EDGE_BYTES = 3 << 20,
    GRAFT_DISTANCE_SHARED_BYTES = 10 << 20,
    GRAFT_DISTANCE_FAR_BYTES = 20 << 20
};

/* Its place among all of them, from the nearest, 0, on. */
uint8_t graft_distance_place(uint32_t distance);

/* What copies of weights are to take while an operator is measured: what the networks of that
 * distance read between two reads of the same weight, and a quarter of a megabyte where activations
 * and code want room beside them. 0: one copy. From memory: so much that the shared cache holds
 * none of what was read before; on a processor with 260 MB of it, that many others used, the knee
 * was at 30 MB. */
size_t graft_distance_copies_bytes(uint32_t distance);

/* By the bytes of different const values that are read, by nodes which run, since the same one was
 * read before, in the order of the nodes and in runs that follow one another: all of them in a
 * network that reads each once; in a cell unrolled over time at most what one step reads. What has
 * been hoisted out of a cell is read once, so it is as far away as all weights together. What the
 * largest node reads and writes besides is added. A weight above GRAFT_DISTANCE_OWN_BYTES that is
 * read again is never nearer than GRAFT_DISTANCE_EDGE. Tables that opaque nodes select from do not
 * count. */
typedef struct graft_distances {
    const uint8_t *nodes; /* Of the largest weight of each node, `others` when it has none. */
    uint8_t others;       /* Of conversions too: the mean over the bytes that are read. */
} graft_distances;
/* In `arena`. */
void graft_distances_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                          graft_distances *distances);

/* Stands in `op` for a conversion of input 0 to layout outputs[0]. Not an operator of graphs. */
enum { GRAFT_COST_REORDER = 254 };
/* Quantised operators (graph/meaning/quantised.h): opaque nodes of graphs. Scales, zero points and
 * biases do not matter to their time; their results are of the type of input 0, or signed bytes. */
enum {
    GRAFT_COST_QUANTISE = 249,
    GRAFT_COST_DEQUANTISE = 250,
    GRAFT_COST_QUANTISED_CONV = 251,
    GRAFT_COST_QUANTISED_MATMUL = 252
};
/* Attention as some devices run it at once, softmax(scale Q K + mask) V: a group of nodes of graphs
 * (cost/plan/groups.h). Q is (b,h,s,d), K (b,h,d,t), V (b,h,t,e) and the mask, of the second,
 * anything that is repeated over (b,h,s,t). attrs[0] is the scale, bit k of attrs[1] says that
 * input k is given as (b,rows,h,columns), K as (b,t,h,d). */
enum { GRAFT_COST_MASKED_ATTENTION = 247, GRAFT_COST_ATTENTION = 248 };
/* Sums and products of 8-bit integers, as some devices run them at once: groups of nodes as well
 * (cost/plan/integers.h). Inputs 0 and 1 are the operands, row 2 holds scales and zero points. The
 * attributes are those of `conv`, of `matmul` or none, then the activation and the type of the
 * result. */
enum {
    GRAFT_COST_INTEGER_ADD = 244,
    GRAFT_COST_INTEGER_CONV = 245,
    GRAFT_COST_INTEGER_MATMUL = 246
};
/* The signature of no operator at all: a fitted factor, see calibration.h. attrs[0] says which; its
 * median is in thousandths, or in ns per step, its rounds are the graphs it was fitted to. Or what
 * the anchor takes, see anchor.h. */
enum { GRAFT_COST_FACTOR = 253, GRAFT_COST_ANCHOR = 6, GRAFT_COST_FACTORS = 7 };

typedef struct graft_signature {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape inputs[GRAFT_MAX_INPUTS];
    uint8_t op; /* Or one of the above. */
    uint8_t input_count;
    uint8_t output_count;
    uint8_t const_mask; /* Bit k: input k is const. */
    uint8_t in_layouts[GRAFT_MAX_INPUTS];
    uint8_t out_layouts[GRAFT_MAX_OUTPUTS];
    uint8_t in_place; /* conv_bias_add: input 3 lies where the output goes. */
    uint8_t distance; /* graft_distance */
} graft_signature;

/* The signature of a node that is neither const nor opaque, at GRAFT_DISTANCE_SHARED; `distance`
 * may be set by the caller. */
void graft_signature_of_node(const graft_graph *graph, graft_index node,
                             const graft_layout_choice *choice, bool in_place,
                             graft_signature *signature);
/* The same node with other layouts. */
void graft_signature_set_layouts(graft_signature *signature, const graft_layout_choice *choice);
void graft_signature_of_reorder(const graft_shape *shape, uint32_t from, uint32_t to,
                                graft_signature *signature);

/* Attention over the values of `inputs`; the mask, inputs[3], may be GRAFT_NONE. All row-major. */
void graft_signature_of_attention(const graft_graph *graph,
                                  const graft_index inputs[GRAFT_MAX_INPUTS], float scale,
                                  uint32_t turned, graft_signature *signature);

/* Of an opaque node, GRAFT_DISTANCE_OWN. False when it is no quantised operator of a form that has a
 * cost. */
bool graft_signature_of_opaque(const graft_opaque *opaque, graft_signature *signature);
bool graft_signature_is_quantised(const graft_signature *signature);
/* Whether it is a group of nodes on integers, and the type of its result. */
bool graft_signature_is_integer(const graft_signature *signature);
uint32_t graft_signature_result(const graft_signature *signature);
/* Of such a group or a fused operator; GRAFT_ACT_NONE of others. */
int32_t graft_signature_activation(const graft_signature *signature);
void graft_signature_set_input(graft_signature *signature, uint32_t k, const graft_shape *shape);
/* Sets the operator and what stands behind its own attributes. */
void graft_signature_set_integer(graft_signature *signature, uint32_t op, int32_t activation,
                                 uint32_t result);
/* The name of the operator; "opaque" for a step that nothing more is known of. */
const char *graft_signature_operator(const graft_signature *signature);

bool graft_signature_equal(const graft_signature *a, const graft_signature *b);
/* An order of signatures, also for qsort; 0 when equal. */
int graft_signature_compare(const void *a, const void *b);
/* XXH3 of all bytes; `seed` separates devices. */
uint64_t graft_signature_hash(const graft_signature *signature, uint64_t seed);

bool graft_signature_is_attention(const graft_signature *signature);
/* Whether it is a convolution, a matrix product, or either, fused or not. */
bool graft_signature_is_conv(const graft_signature *signature);
bool graft_signature_is_matmul(const graft_signature *signature);
bool graft_signature_is_product(const graft_signature *signature);

static inline bool graft_shape_is_byte(const graft_shape *shape)
{
    return shape->dtype == GRAFT_DTYPE_I8 || shape->dtype == GRAFT_DTYPE_U8;
}

/* The shapes of the outputs, inferred by the engine. GRAFT_BAD_INPUT when they do not infer. */
GRAFT_MUST_USE graft_status graft_signature_outputs(const graft_signature *signature,
                                                    graft_shape outputs[GRAFT_MAX_OUTPUTS]);
/* Bytes of a tensor as it is priced: no device times float16 and bfloat16, so they cost what
 * binary32 of the same shape does. */
uint64_t graft_cost_bytes(const graft_shape *shape);
/* Floating-point operations; bytes of all operands, each counted once. 0 when they do not infer. */
uint64_t graft_signature_flops(const graft_signature *signature);
uint64_t graft_signature_bytes(const graft_signature *signature);

/* One line, for the database and for people:
 *      conv_bias(stride_h=1, ..., activation=1) f32[1,64,56,56]@nhwc f32[64,64,1,1]@const
 *      f32[64]@const -> nhwc
 * with " in-place" behind it where that holds, then " own", " near", " edge", " far" or " memory"
 * for the distance. Float attributes are written as their bits; elements may also be u8, i8, i32.
 */
void graft_signature_print(const graft_signature *signature, graft_buffer *text);
/* Reads that line back. GRAFT_BAD_INPUT with the place in the text when it is malformed, names an
 * operator that does not exist, or has operands that do not fit together. */
GRAFT_MUST_USE graft_status graft_signature_parse(graft_env *env, const char *text,
                                                  graft_signature *signature);
