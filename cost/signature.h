/* signature.h - what a cost is the cost of: one operator with everything that its time depends on,
 * but for the device.
 *
 * Operator, attributes, shapes, element types, which operands are weights, the layout of every
 * operand, and whether the residual input may be overwritten. A conversion between layouts is a
 * signature too. Equal signatures are equal byte for byte, so that they can be hashed and compared
 * as memory: build them with the calls below only. */
#ifndef GRAFT_COST_SIGNATURE_H
#define GRAFT_COST_SIGNATURE_H

#include "cost/layout.h"
#include "graph/file.h"

/* Stands in `op` for a conversion of input 0 to layout outputs[0]. Not an operator of graphs. */
enum { GRAFT_COST_REORDER = 254 };

typedef struct graft_signature {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape inputs[GRAFT_MAX_INPUTS];
    uint8_t op; /* Or GRAFT_COST_REORDER. */
    uint8_t input_count;
    uint8_t output_count;
    uint8_t const_mask; /* Bit k: input k is const. */
    uint8_t in_layouts[GRAFT_MAX_INPUTS];
    uint8_t out_layouts[GRAFT_MAX_OUTPUTS];
    uint8_t in_place; /* conv_bias_add: input 3 lies where the output goes. */
    uint8_t zero;
} graft_signature;

/* The signature of a node that is neither const nor opaque. */
void graft_signature_of_node(const graft_graph *graph, graft_index node,
                             const graft_layout_choice *choice, bool in_place,
                             graft_signature *signature);
/* The same node with other layouts. */
void graft_signature_set_layouts(graft_signature *signature, const graft_layout_choice *choice);
void graft_signature_of_reorder(const graft_shape *shape, uint32_t from, uint32_t to,
                                graft_signature *signature);

bool graft_signature_equal(const graft_signature *a, const graft_signature *b);
/* An order of signatures, for sorting; 0 when equal. */
int graft_signature_compare(const graft_signature *a, const graft_signature *b);
/* XXH3 of all bytes; `seed` separates devices. */
uint64_t graft_signature_hash(const graft_signature *signature, uint64_t seed);

/* The shapes of the outputs, inferred by the engine. GRAFT_BAD_INPUT when they do not infer. */
GRAFT_MUST_USE graft_status graft_signature_outputs(const graft_signature *signature,
                                                    graft_shape outputs[GRAFT_MAX_OUTPUTS]);
/* Floating-point operations; bytes of all operands, each counted once. 0 when they do not infer. */
uint64_t graft_signature_flops(const graft_signature *signature);
uint64_t graft_signature_bytes(const graft_signature *signature);

/* One line, for the database and for people:
 *      conv_bias(stride_h=1, ..., activation=1) f32[1,64,56,56]@nhwc f32[64,64,1,1]@const
 *      f32[64]@const -> nhwc
 * with " in-place" behind it where that holds. Float attributes are written as their bits. */
void graft_signature_print(const graft_signature *signature, graft_buffer *text);
/* Reads that line back. GRAFT_BAD_INPUT with the place in the text when it is malformed, names an
 * operator that does not exist, or has operands that do not fit together. */
GRAFT_MUST_USE graft_status graft_signature_parse(graft_env *env, const char *text,
                                                  graft_signature *signature);

#endif
