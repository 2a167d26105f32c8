/* onnx_write.h - what the parts of the ONNX writer share; private to graph/onnx/onnx_write.c,
 * onnx_file.c, onnx_units.c, onnx_declare.c and onnx_emit.c.
 *
 * A graph is written as units, producers first. A unit is one original ONNX node, when all that it
 * became is still in the graph and wired as it was; or one node that a rule made, which is
 * generated; or a chain of such nodes that ONNX can say with one (concat, split, slice, pad). Const
 * nodes are no units, their results are initializers: but for opaque ones and what is computed from
 * these, so that weights of 8 bits stay in the form in which runtimes know them. */
#pragma once

#include "onnx.h"

typedef struct graft_onnx_unit {
    graft_index root;   /* The node whose outputs the unit computes; of a split chain, the first. */
    uint32_t onnx_node; /* GRAFT_NONE: generated. */
} graft_onnx_unit;

/* Everything lies in env->scratch until the message is packed. */
typedef struct graft_onnx_writer {
    graft_env *env;
    graft_arena *arena;
    const graft_model *model;
    const graft_graph *graph;
    graft_order order;
    graft_weights weights;
    bool simplify;               /* See graft_model_write_options. */
    int64_t opset;               /* Of what is written. */
    bool *live;                  /* By node: an output of the graph depends on it. */
    graft_index *use_count;      /* By value: readings by live nodes and as outputs. */
    bool *folded;                /* By node: const, and its results are initializers... */
    bool *kept;                  /* ...but of these, whose ONNX node is written instead. */
    graft_index *node_of_record; /* GRAFT_NONE: gone. */
    bool *intact;                /* By ONNX node. */
    graft_index *absorbed_into;  /* By node: the neighbour in its chain; GRAFT_NONE. */
    uint32_t *unit_of_node;      /* GRAFT_NONE: folded or dead. */
    graft_index *instead;        /* By value: what is read in its place, mostly itself; NULL: so. */
    bool *dropped;               /* By unit: nothing needs it, or an equal one is written. */
    graft_onnx_unit *units;
    uint32_t unit_count;
    uint32_t merged_count;     /* Units that were dropped for an equal one. */
    const char **value_names;  /* By value; NULL until given. */
    const char **weight_names; /* By weight; NULL until something reads it. */
    bool *weight_is_node;      /* By weight: a Constant node of the file, written as such. */
    bool *weight_stays;        /* By weight: a node of the file that is written reads it. */
    graft_names *taken;        /* Every name in the file that is being written. */
    graft_names *restored;     /* Names that an Identity node has given back to subgraphs. */
    uint32_t fresh_count;
    Onnx__NodeProto **nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    const char *misfit; /* The first weight that does not fit into its type; NULL: all do. */
    uint8_t misfit_type;
    Onnx__TensorProto **extra; /* New initializers, in the order of their first use. */
    uint32_t extra_count;
    uint32_t extra_capacity;
} graft_onnx_writer;

/* ----------------------------------------------------------- onnx_units.c */

/* Whether the graph is the model's own, apart from dead nodes: every node, wire and output. */
bool graft_onnx_is_untouched(const graft_onnx_writer *writer);
/* Finds live nodes, folded ones and intact groups. */
void graft_onnx_find_intact(graft_onnx_writer *writer);
/* Forms units and sorts them: *order has writer->unit_count numbers, of dropped ones too.
 * GRAFT_INTERNAL when units wait for each other. */
GRAFT_MUST_USE graft_status graft_onnx_form_units(graft_onnx_writer *writer, uint32_t **order);

/* Whether all that a node of the file computes is known beforehand, Constant nodes apart. */
bool graft_onnx_is_known(const graft_onnx_writer *writer, uint32_t index);
/* Whether a computed value is an initializer in what is written. */
bool graft_onnx_is_folded(const graft_onnx_writer *writer, graft_index value);

/* ----------------------------------------------------------- onnx_write.c */

/* Makes `proto`, and `onnx_graph`, which it points to, in env->scratch; the caller releases them.
 * Fails where the graph is not one of the model's (GRAFT_INTERNAL), and where its weights cannot be
 * folded or do not fit into their types. */
GRAFT_MUST_USE graft_status graft_onnx_make_message(graft_env *env, const graft_model *model,
                                                    const graft_graph *graph, bool simplify,
                                                    Onnx__ModelProto *proto,
                                                    Onnx__GraphProto *onnx_graph);
/* Writes a message in env->scratch as a file, its weights beside it where they are large or
 * `external`; its list of initializers is changed (onnx_file.c). GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_onnx_write_message(graft_env *env, const char *path,
                                                     Onnx__ModelProto *proto, bool external);
/* A name that is not in use; `hint` is part of it. */
const char *graft_onnx_fresh_name(graft_onnx_writer *writer, const char *hint);
/* The name under which a node that is written reads or produces a value. Weights and folded values
 * become initializers. */
const char *graft_onnx_value_name(graft_onnx_writer *writer, graft_index value);
/* Adds a generated node. Texts are borrowed. */
Onnx__NodeProto *graft_onnx_push_node(graft_onnx_writer *writer, const char *op_type,
                                      const char *const *inputs, size_t input_count,
                                      const char *const *outputs, size_t output_count);
/* A new initializer; equal ones are shared. The result is its name. Floats are rounded to the
 * shape's element type. */
const char *graft_onnx_push_floats(graft_onnx_writer *writer, const char *hint, const float *data,
                                   const graft_shape *shape);
/* A scalar of 8 bits. */
const char *graft_onnx_push_byte(graft_onnx_writer *writer, const char *hint, uint8_t dtype,
                                 int32_t value);
const char *graft_onnx_push_ints(graft_onnx_writer *writer, const char *hint, const int64_t *items,
                                 size_t count);

/* --------------------------------------------------------- onnx_declare.c */

/* Inputs, outputs, and shapes of values that are still there. Up to IR version 3 every initializer
 * has to be an input too, and is none all the same: those that are still there stay. From version 4
 * on a caller may give such an input another value, so runtimes do not count on it; and a changed
 * graph has its results in other weights. So a changed graph keeps them only where it must. */
void graft_onnx_list_declarations(graft_onnx_writer *writer, Onnx__GraphProto *graph, bool bind,
                                  bool keep_weights);

/* ------------------------------------------------------------ onnx_emit.c */

/* Generates the ONNX nodes of a unit that is not an original node. GRAFT_UNSUPPORTED when the opset
 * has no form for it. */
GRAFT_MUST_USE graft_status graft_onnx_emit_unit(graft_onnx_writer *writer,
                                                 const graft_onnx_unit *unit);
/* How many nodes that are. */
uint32_t graft_onnx_unit_nodes(const graft_onnx_writer *writer, const graft_onnx_unit *unit);
