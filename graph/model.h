/* model.h - a model: the engine's graph, the weights' data, the names, and the file it came from.
 *
 * Reading maps each ONNX node to one or more nodes of the engine's graph; what Graft does not know
 * (operators, element types, ranks over 6, sizes that stay unknown) becomes an opaque node. A
 * node's `source` is the number of its record here, so a rewritten copy of the graph still tells
 * where each node came from; the `source` of an input or weight is its number in `inputs` or
 * `weights`.
 *
 * Sizes that a file leaves open (a name, or nothing) are bound when the model is read: to what the
 * options say, else to 1. Shapes, costs and the rules' preconditions then hold for those sizes
 * only. So a graph that no rule changed is written with the open sizes as they were, while a
 * rewritten one is written with the bound sizes in the declarations of its inputs and outputs. With
 * `keep_open` they are only looked at with those values, and stay open in a rewritten one too.
 *
 * Whole-number computations on sizes (Shape, Gather, Concat ... before a Reshape) are carried out
 * while reading; they leave no nodes behind. An initializer that is also a graph input counts as a
 * weight, whose default cannot be set any more, unless the options have it `settable`. */
#pragma once

#include "graph/base/bytes.h"
#include "graph/base/env.h"

typedef struct graft_model_port {
    const char *name;
    graft_shape shape; /* Rank GRAFT_RANK_UNKNOWN for what is not a tensor or not known. */
    uint8_t dtype;     /* In the file, also where the graph has binary32 in its place. */
    const void *data;  /* Of an input of a later stage: what an earlier one made. Else NULL. */
} graft_model_port;

typedef struct graft_model_weight {
    const char *name;  /* NULL when reading computed it (e.g. from batch normalisation). */
    graft_shape shape; /* Rank GRAFT_RANK_UNKNOWN: more than 6 axes, no elements, or sparse. */
    const void *data;  /* Row-major, of shape.dtype, but binary32 in place of float16 and bfloat16;
                          NULL for texts, sparse and unknown types. */
    size_t data_bytes;
    /* The tensor in the file, dense or sparse; both NULL when reading computed it. */
    const struct Onnx__TensorProto *tensor;
    const struct Onnx__SparseTensorProto *sparse;
} graft_model_weight;

/* A size that the file left open and the value that it was bound to. */
typedef struct graft_model_size {
    const char *name; /* The file's name for it; "INPUT.AXIS" when it has none. */
    int32_t value;
    int32_t other; /* Of a size that stays open: the second value that it was looked at with. */
} graft_model_size;

/* Which ONNX node a node of the graph came from, and which of its parts it is. */
typedef struct graft_model_record {
    uint32_t onnx_node; /* Place in the file. */
    uint32_t part;
} graft_model_record;

/* A tensor of which a stage is told: what an earlier one made. */
typedef struct graft_model_told {
    const char *name;
    graft_shape shape; /* Sizes may be 0. */
    const void *data;  /* Row-major, of shape.dtype. */
} graft_model_told;

struct graft_onnx; /* What only the ONNX reader and writer know (onnx.h). */

/* Lives in the arena given to the call that made it. Read only. */
typedef struct graft_model {
    const char *file;  /* For messages: path or zoo name. */
    graft_graph graph; /* With room for rewriting. */
    uint32_t input_count;
    uint32_t output_count;
    uint32_t weight_count;
    uint32_t size_count;
    uint32_t record_count;
    uint32_t opaque_count;
    bool is_open;    /* Sizes stay open: see graft_model_options. */
    bool is_chosen;  /* If nodes became branches, which bound sizes may have decided. */
    bool is_apart;   /* Nodes came apart, to be run (onnx_apart.h): it cannot be written. */
    bool has_halves; /* Values of float16 or bfloat16. */
    const graft_model_port *inputs;
    const graft_model_port *outputs;
    const graft_model_weight *weights;
    const graft_model_size *sizes;
    const graft_model_size *frozen; /* As the options had them: the model has no such sizes. */
    uint32_t frozen_count;
    const graft_model_record *records;
    const struct graft_onnx *onnx;
    /* Of a model that is read in stages (graft_model_options.staged). `outputs` are those of the
     * file that this stage makes, then what others read of it; `told` is what was worked out while
     * it was read, of both; `promised` are all outputs of the file. */
    const struct Onnx__ModelProto *rest; /* For the stages behind it; NULL: it is the last one. */
    const graft_model_told *told;
    uint32_t told_count;
    const struct Onnx__ModelProto *again; /* Of graft_model_options.again; else NULL. */
    const graft_model_port *promised;
    uint32_t promised_count;
    struct graft_folds *folds;       /* As in the options. */
    const struct graft_model *other; /* Of a model whose sizes stay open: read at other sizes. */
    const bool
        *unsure; /* Likewise, by ONNX node: sizes of what it makes may be others elsewhere. */
} graft_model;

enum { GRAFT_UNROLL_MOST = 256 };

/* What an If, Loop or Scan runs, as a model of its own: what it reads from outside are inputs, or
 * weights. */
typedef struct graft_model_body {
    const char *where;             /* Which one it is, for messages. */
    const char *path;              /* The ONNX file that it is in. */
    const graft_model_size *sizes; /* Those of the options that it has, too. */
    uint32_t size_count;
    bool lean; /* No new weights: others still read the old ones. */
} graft_model_body;

/* Who rewrites bodies: puts another file in the place of one. GRAFT_UNSUPPORTED: the body stays. */
typedef struct graft_model_bodies {
    graft_status (*rewrite)(graft_env *env, void *context, const graft_model_body *body);
    /* Told whether all bodies since the last call keep what was put there; NULL: nobody is. */
    void (*settle)(void *context, bool kept);
    void *context;
    const char *path; /* Where bodies are put, one after the other. */
} graft_model_bodies;

/* What a caller has for an input. */
typedef struct graft_model_given {
    const char *name;
    graft_shape shape;
} graft_model_given;

typedef struct graft_model_options {
    const graft_model_size *sizes; /* Values for open sizes; others become 1. */
    uint32_t size_count;
    const graft_model_given *given; /* Say open sizes that `sizes` does not. */
    uint32_t given_count;
    /* The graph is to hold for all sizes, not only for those it is bound to: it is read at others
     * too, and nodes that differ there stay opaque. Sizes without a value then become 1 where an
     * axis is the first, 320 in images and 64 elsewhere. */
    bool keep_open;
    /* Open sizes that are fixed first, in what is written too, and named in its metadata as
     * "graft.frozen.NAME". */
    const graft_model_size *frozen;
    uint32_t frozen_count;
    /* Float16 and bfloat16 are taken for binary32: for who runs the model and does not write it. */
    bool as_binary32;
    /* An initializer that is an input too is an input and nothing else, and is written as both: a
     * caller may set it. Not in files before IR version 4, which list all of them. */
    bool settable;
    uint32_t unroll; /* LSTM, GRU and RNN of at most so many steps become their parts; 0: none. */
    bool flows;      /* Bodies of If, Loop and Scan are read, to be run (flow.h). */
    /* What has sizes that only data tell, and what follows, is left for another stage
     * (graft_model_read_rest). For who runs the model. */
    bool staged;
    const graft_model_told *told; /* Of a later stage: what earlier ones made. */
    uint32_t told_count;
    bool again; /* A copy of the message is kept, for graft_model_read_again. */
    struct graft_folds *folds; /* See graft_folds_new; NULL: what is folded is the model's own. */
    /* Bodies of If, Loop and Scan are rewritten before the rest is read; NULL: they stay. */
    const graft_model_bodies *bodies;
} graft_model_options;

/* Reads an ONNX file. `options` may be NULL. Tensors in files beside the model are read too.
 * GRAFT_IO when a file cannot be read. GRAFT_BAD_INPUT, with one line that names file, node and
 * field, for bytes that are not an ONNX model, names that are given twice or to nothing, cycles,
 * tensors whose data does not fit their shape, options for sizes that the model does not have.
 * GRAFT_UNSUPPORTED when a node has more than 65535 inputs or outputs. */
GRAFT_MUST_USE graft_status graft_model_read(graft_env *env, graft_arena *arena, const char *path,
                                             const graft_model_options *options,
                                             graft_model **model);
/* Same, from memory. Tensors in other files are refused. */
GRAFT_MUST_USE graft_status graft_model_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                              const graft_model_options *options,
                                              graft_model **model);

/* Reads the next stage: model->rest, with `options` as they were but for what is told now. The
 * model before and what is told must outlive it. Fails as graft_model_parse does, and with
 * GRAFT_UNSUPPORTED, naming the node, where nothing more can be run or worked out. */
GRAFT_MUST_USE graft_status graft_model_read_rest(graft_env *env, graft_arena *arena,
                                                  const graft_model *model,
                                                  const graft_model_options *options,
                                                  graft_model **next);

/* Reads a model once more, at other sizes: `options` as they were but for sizes, what is given, and
 * `again`. Weights of the file have the same data, so `model`, which was read with `again`, must
 * outlive it. Fails as graft_model_parse does. */
GRAFT_MUST_USE graft_status graft_model_read_again(graft_env *env, graft_arena *arena,
                                                   const graft_model *model,
                                                   const graft_model_options *options,
                                                   graft_model **next);

/* Whether two readings of a stage, or of stages, compute the same of their inputs, so that what was
 * made to run the one runs the other: graph, weights, and what its opaque nodes are. Data of inputs
 * may differ. */
bool graft_model_is_alike(graft_arena *scratch, const graft_model *a, const graft_model *b);

typedef struct graft_model_write_options {
    bool external_data; /* Weights into a file beside the model; done anyhow above 1.5 GB. */
    bool simplify; /* Nodes that compute the same (equal.h) are written once, and results of nodes
                      that are known beforehand in their place. */
} graft_model_write_options;

/* Writes `graph`, which is model->graph or a rewritten copy of it, as an ONNX file. What the rules
 * left alone is written as it was read (nodes, names, doc strings, metadata, opset imports), whole,
 * also where an ONNX node became several of the graph; what they made is generated; the weight
 * program is run and its results are stored; weights that nothing reads are left out. Inputs and
 * outputs keep names, number and order. The same graph gives the same bytes. `options` may be NULL.
 * GRAFT_IO when a file cannot be written; GRAFT_UNSUPPORTED when a new node has no form in the
 * model's opset; GRAFT_CAPACITY when a number of a new weight has no place in its type. */
GRAFT_MUST_USE graft_status graft_model_write(graft_env *env, const graft_model *model,
                                              const graft_graph *graph, const char *path,
                                              const graft_model_write_options *options);
/* Same, into `arena`, weights included. */
GRAFT_MUST_USE graft_status graft_model_pack(graft_env *env, graft_arena *arena,
                                             const graft_model *model, const graft_graph *graph,
                                             uint8_t **data, size_t *size);

/* Whether new nodes of an operator can be written in the model's opset, whatever their shapes. */
bool graft_model_has_form(const graft_model *model, uint32_t op);

/* What would be written for a graph, equal nodes once. */
typedef struct graft_model_form {
    uint32_t nodes; /* ONNX nodes, without those that compute constants. */
    uint32_t made;  /* Of these, such as are not nodes of the file that the model was read from. */
} graft_model_form;
GRAFT_MUST_USE graft_status graft_model_form_of(graft_env *env, const graft_model *model,
                                                const graft_graph *graph, graft_model_form *form);

/* By node, in `arena`: the piece of the file that it would be written in, of *count; GRAFT_NONE
 * where nothing is written for it. A piece is a node of the file that the model was read from, or
 * what is generated for one operator, or for a chain of them that ONNX has one for. */
GRAFT_MUST_USE graft_status graft_model_pieces(graft_env *env, graft_arena *arena,
                                               const graft_model *model, const graft_graph *graph,
                                               const uint32_t **pieces, uint32_t *count);

/* A copy of `graph` with its capacities, in `arena`. */
graft_graph *graft_model_graph_copy(graft_arena *arena, const graft_graph *graph);

/* The ONNX name of a value of `graph` (a copy of model->graph, rewritten or not): of an input, a
 * weight, or a node's output that the file names. NULL for values that rules or reading made. */
const char *graft_model_value_name(const graft_model *model, const graft_graph *graph,
                                   graft_index value);
/* An axis of an input, or of what an opaque node makes, of a model whose sizes stay open. */
typedef struct graft_model_axis {
    bool fixed;       /* The value's shape says its size. */
    const char *name; /* Of its size, the same wherever it stands; NULL: the file gives none. */
} graft_model_axis;
/* What the file declares, else whether the size was the same at both sets of sizes. */
graft_model_axis graft_model_axis_of(const graft_model *model, const graft_graph *graph,
                                     graft_index value, uint32_t axis);
/* The name, or else the first output's name, of the ONNX node that a node came from; "" when a rule
 * made it. For messages. */
const char *graft_model_node_name(const graft_model *model, const graft_node *node);
/* The ONNX operator, e.g. "Resize", likewise; "" when a rule made the node. */
const char *graft_model_node_type(const graft_model *model, const graft_node *node);
/* Why reading left an opaque node of the file as it is, e.g. "inner dimensions differ". */
const char *graft_model_node_refusal(const graft_model *model, const graft_node *node);

/* How many nodes of a kind the file of a model has. */
typedef struct graft_model_kind {
    const char *name; /* The ONNX operator. */
    uint32_t count;
} graft_model_kind;
/* All kinds but Constant, by name, in `arena`; `*count` receives how many. */
const graft_model_kind *graft_model_kinds(graft_arena *arena, const graft_model *model,
                                          uint32_t *count);

/* Data of the weights that a graph reads, by value id: binary32 where it is real, else of the
 * value's own type. */
typedef struct graft_weights {
    graft_index value_count;
    graft_index spoilt; /* The first value that a rule made infinite, no number or too small for its
                         * precision of what was not; GRAFT_NONE. */
    const bool *divides; /* By value id: whether something is divided by it. */
    const float *const *data;
} graft_weights;

/* Runs the weight program of `graph`, in binary32 whatever the type: gives data to every const
 * value that a node which is not const, or an output of the graph, reads. Data of plain weights is
 * borrowed from the model, the rest is binary32 and lies in `arena`. GRAFT_BAD_INPUT when the graph
 * has a cycle. */
GRAFT_MUST_USE graft_status graft_model_fold_weights(graft_env *env, graft_arena *arena,
                                                     const graft_model *model,
                                                     const graft_graph *graph,
                                                     graft_weights *weights);
/* Results of the weight programs of several models, stages of `first` (graft_model_options.folds),
 * which compute them once, so that kernels share what they pack of them: of nodes that read the
 * file's weights, or such results. In `arena`, which outlives the models; as many bytes as the
 * file's weights take at most, what comes then is each model's own. */
typedef struct graft_folds graft_folds;
graft_folds *graft_folds_new(graft_arena *arena, const graft_model *first);
/* Row-major elements; NULL for values without data (not const, not read, texts). */
const float *graft_weights_data(const graft_weights *weights, graft_index value);
