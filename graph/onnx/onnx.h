/* onnx.h - what the parts of the ONNX reader and writer share; private to graph/onnx/, model.c
 * and to models/, which builds messages with the calls at the end.
 *
 *      bytes -> message -> names -> topological order -> plans -> graph + records      (reading)
 *      graph -> units -> names -> nodes and initializers -> message -> bytes           (writing)
 *
 * Reading looks at one ONNX node at a time, producers first. A plan says which operators of the
 * engine compute the node's outputs; when one of its checks fails, the node becomes opaque instead.
 * The plan is kept (a group), because writing must know whether all that an ONNX node became is
 * still there, wired as it was: only then can the original node be written again. */
#pragma once

#include "graph/base/bits.h"
#include "graph/base/half.h"
#include "graph/base/wire.h"
#include "graph/model.h"
#include "graph/names.h"

#include "graph/onnx/onnx_attribute.h"

/* Default-domain opsets whose operators are known; all nodes are opaque outside. */
enum { GRAFT_ONNX_OPSET_FIRST = 6, GRAFT_ONNX_OPSET_LAST = 28 };
/* New nodes are written in the forms of this opset or of the model's, whichever is later. */
enum { GRAFT_ONNX_OPSET_WRITE = 7 };

/* A small whole-number tensor that is known while reading: a scalar or a list. */
typedef struct graft_onnx_ints {
    const int64_t *items;
    uint32_t count;
    uint8_t rank;  /* 0 or 1 */
    uint8_t dtype; /* GRAFT_DTYPE_I64 or GRAFT_DTYPE_I32 */
} graft_onnx_ints;

typedef enum graft_onnx_entry_kind {
    GRAFT_ONNX_INPUT = 0,    /* of the model; `index` is its number in model->inputs */
    GRAFT_ONNX_WEIGHT = 1,   /* an initializer, also sparse */
    GRAFT_ONNX_COMPUTED = 2, /* output `slot` of node `index` of the file */
    GRAFT_ONNX_TOLD = 3      /* of an earlier stage; known */
} graft_onnx_entry_kind;

/* A name of the main graph. */
typedef struct graft_onnx_entry {
    const char *name;
    uint32_t index;
    uint32_t slot;
    uint8_t kind;        /* graft_onnx_entry_kind */
    uint32_t read_count; /* By nodes, by subgraphs and as outputs of the model. */
    uint64_t spare; /* Bytes of the file that an initializer is, or what a known result is made of
                       that nothing else reads. */
    graft_index value; /* In the graph being built; GRAFT_NONE until something reads it. */
    uint32_t weight;   /* Number of the weight whose data this is (also of Constant nodes and of
                          Identity nodes of weights); GRAFT_NONE otherwise. */
    const graft_model_weight *known; /* What a node of constants computes; NULL when not known. */
    const graft_onnx_ints *ints;     /* The numbers of that or of the weight, once asked for. */
    const Onnx__TypeProto *type;     /* As declared; NULL when the file does not say. */
    bool of_data; /* Known by what an earlier stage made: other data would give another. */
    bool late;    /* A later stage makes it. */
    bool handed;  /* To later stages. */
} graft_onnx_entry;

typedef enum graft_onnx_operand_kind {
    GRAFT_ONNX_OPERAND_NONE = 0,
    GRAFT_ONNX_OPERAND_INPUT = 1, /* input `index` of the ONNX node */
    GRAFT_ONNX_OPERAND_PART = 2,  /* output `slot` of part `index` */
    GRAFT_ONNX_OPERAND_WEIGHT = 3 /* weight `index`, made for this node */
} graft_onnx_operand_kind;

typedef struct graft_onnx_operand {
    uint32_t index;
    uint8_t kind; /* graft_onnx_operand_kind */
    uint8_t slot;
} graft_onnx_operand;

/* One operator of the engine. */
typedef struct graft_onnx_part {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_onnx_operand inputs[GRAFT_MAX_INPUTS];
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    uint8_t op;
} graft_onnx_part;

/* What an ONNX node became. No parts and not opaque: its outputs are known numbers or weights. */
typedef struct graft_onnx_group {
    const graft_onnx_part *parts;
    const graft_onnx_operand *outputs; /* By ONNX output; kind NONE: not computed (unused). */
    const uint32_t *captured;          /* Entries that its subgraphs read. */
    uint32_t part_count;
    uint32_t first_record; /* Records of the parts, or of the opaque node, in a row. */
    uint32_t captured_count;
    bool is_opaque;
    const char *refusal;     /* Why it is opaque. */
    struct graft_flow *flow; /* Of an If, Loop or Scan, where the model is read to be run. */
    bool is_late;            /* It is left for a later stage. */
} graft_onnx_group;

typedef struct graft_onnx {
    const Onnx__ModelProto *proto;
    graft_names *names;    /* Of `entries`. */
    graft_names *settable; /* Initializers that are inputs, by name; NULL: none are. */
    graft_names *inner;    /* Names that subgraphs define; new names avoid them too. */
    graft_onnx_entry *entries;
    graft_onnx_group *groups; /* By ONNX node. */
    uint32_t *order;          /* ONNX nodes, producers first, else as in the file. */
    uint32_t entry_count;
    uint32_t node_count;
    int64_t opset; /* Of the default domain; 1 when the file imports none. */
    bool keep_all; /* Training information or own operators by the default domain's names: nodes
                      stay opaque and initializers stay even when nothing seems to read them. */
    bool tight;    /* As in the reader. */
} graft_onnx;

/* ------------------------------------------------------------ onnx_read.c */

/* Opaque nodes of one operator for one reason. */
typedef struct graft_onnx_opaque_kind {
    const char *op_type;
    const char *why;
    uint32_t count;
} graft_onnx_opaque_kind;

/* A model that is being read. */
typedef struct graft_onnx_reader {
    graft_env *env;
    graft_arena *arena;
    graft_model *model;
    graft_onnx *onnx;
    const graft_model_options *options;
    const bool *bound;             /* By ONNX node: kept as it is (onnx_open.c); NULL: none. */
    uint32_t sample;               /* Which of the sizes count: see bind_size. */
    const graft_model *first;      /* What sample 1 gave, to read sample 2. */
    const graft_model_size *known; /* What sizes follow from: those bound by now, those frozen. */
    uint32_t known_count;
    const char *folder;      /* Of the file; NULL: tensors in other files are refused. */
    graft_model_port *ports; /* model->inputs */
    uint32_t port_capacity;
    graft_model_weight *weights;
    uint32_t weight_count;
    uint32_t weight_capacity;
    graft_model_size *sizes;
    uint32_t size_count;
    uint32_t size_capacity;
    graft_model_size *given; /* Of the caller's inputs. */
    uint32_t given_count;
    uint32_t given_capacity;
    uint64_t known_bytes; /* Held by what nodes of constants compute. */
    bool flows;           /* Bodies are read, to be run. */
    bool tight; /* What nodes of constants compute is a weight only where it is hardly larger than
                   what leaves the file with it: else the file would grow. */
    uint64_t grown; /* By what is larger all the same, as in graft_onnx_may_grow. */
    graft_model_record *records;
    uint32_t record_count;
    uint32_t record_capacity;
    Onnx__GraphProto *own_graph; /* With parts of nodes behind those given (onnx_apart.c); NULL. */
    uint32_t node_capacity;      /* Of that and of onnx->groups. */
    uint32_t entry_capacity;
    uint32_t apart_count; /* Names given to parts. */
    bool has_left_parts;  /* Of nodes that stayed whole all the same. */
    graft_onnx_opaque_kind *opaque_kinds;
    uint32_t opaque_kind_count;
    uint32_t opaque_kind_capacity;
} graft_onnx_reader;

/* What is known of an entry, or the weight that it is; NULL: neither. */
static inline const graft_model_weight *graft_onnx_known_of(const graft_onnx_entry *entry,
                                                            const graft_model_weight *weights)
{
    return entry->known != NULL          ? entry->known
           : entry->weight == GRAFT_NONE ? NULL
                                         : &weights[entry->weight];
}

/* Whether the model is to be run, not written again. */
static inline bool graft_onnx_is_to_run(const graft_onnx_reader *reader)
{
    return reader->options != NULL && reader->options->as_binary32;
}

/* A message and where it comes from. */
typedef struct graft_onnx_source {
    Onnx__ModelProto *proto;
    const char *file;   /* For messages. */
    const char *folder; /* Where the files of external tensors lie; NULL: they are refused. */
} graft_onnx_source;

/* Reads a model from a message in `arena`, which it keeps and changes (data of other files is taken
 * in). Fails as graft_model_read does. */
GRAFT_MUST_USE graft_status graft_onnx_read_message(graft_env *env, graft_arena *arena,
                                                    const graft_onnx_source *source,
                                                    const graft_model_options *options,
                                                    graft_model **model);

/* A copy of a message in `arena` that shares its initializers, which may be large, and which reading
 * does not change but for data that it takes in. */
GRAFT_MUST_USE graft_status graft_onnx_copy_message(graft_env *env, graft_arena *arena,
                                                    const char *file, const Onnx__ModelProto *from,
                                                    Onnx__ModelProto **copy);

/* ----------------------------------------------------------- onnx_size.c */

/* Whether the name of a size may say how it follows from others. */
bool graft_onnx_is_formula(const char *name);
/* What such a name comes to: sums, differences, products and quotients, rounded down, of whole
 * numbers and of `sizes`; -1 where it is none, names another size or comes to none. */
int32_t graft_onnx_evaluate_size(const char *name, const graft_model_size *sizes, uint32_t count);

/* --------------------------------------------------------- onnx_freeze.c */

/* Fixes the options' frozen sizes in the message, which is in `arena`. GRAFT_BAD_INPUT for one that
 * no input has open. */
GRAFT_MUST_USE graft_status graft_onnx_freeze(graft_env *env, graft_arena *arena,
                                              const graft_onnx_source *source,
                                              const graft_model_options *options);

/* -------------------------------------------------------- onnx_inline.c */

/* Replaces each If whose condition `model`, a reading of the message, knows by the branch that it
 * chooses; how many. The model is of no use then. What is made is in `arena`. */
uint32_t graft_onnx_inline(graft_arena *arena, Onnx__ModelProto *proto, const graft_model *model);

/* -------------------------------------------------------- onnx_bodies.c */

enum { GRAFT_ONNX_SCAN_PLAIN = 9 }; /* The first opset whose Scan has no axis for a batch. */

/* The names of the attributes of a node that it runs; how many, 0 for most nodes. */
uint32_t graft_onnx_list_bodies(const Onnx__NodeProto *node, const char *names[2]);
/* A body of a node whose inputs are in the graph, as a message of its own. Its declared inputs have
 * the shapes `formals`, unless that is NULL. */
GRAFT_MUST_USE graft_status graft_onnx_copy_body(graft_onnx_reader *reader,
                                                 const Onnx__NodeProto *node, const char *name,
                                                 const graft_shape *formals,
                                                 Onnx__ModelProto **copy);
/* Finds what the bodies of node `index` read from outside. GRAFT_BAD_INPUT for a name that nothing
 * produces, and for an If, Loop or Scan without a body or with one that makes too little. */
GRAFT_MUST_USE graft_status graft_onnx_look_into(graft_onnx_reader *reader, size_t index);
bool graft_onnx_has_bodies(const Onnx__ModelProto *proto);
/* Bodies that were rewritten in a message. */
typedef struct graft_onnx_bodies {
    struct graft_onnx_taken *taken;
    uint32_t count;
    uint32_t capacity;
    bool lean; /* To be set: no new weights. */
} graft_onnx_bodies;
/* Has the options' `bodies` rewrite those of If, Loop and Scan in the message, of which `model` is
 * a reading that is of no use then. */
GRAFT_MUST_USE graft_status graft_onnx_rewrite_bodies(graft_env *env, graft_arena *arena,
                                                      const graft_onnx_source *source,
                                                      const graft_model_options *options,
                                                      const graft_model *model,
                                                      graft_onnx_bodies *bodies);
/* Puts what was rewritten back. */
void graft_onnx_restore_bodies(const graft_onnx_source *source, graft_onnx_bodies *bodies);

/* ---------------------------------------------------------- onnx_flow.c */

/* Where the options ask for it, reads the bodies of an If, Loop or Scan whose inputs are in the
 * graph, and gives the shapes of its outputs where these can be run. */
GRAFT_MUST_USE graft_status graft_onnx_read_flow(graft_onnx_reader *reader, uint32_t index,
                                                 graft_shape *shapes);

/* ----------------------------------------------------- onnx_functions.c */

/* Replaces calls of functions that the message brings along by their bodies, which are copied, and
 * drops functions that nothing calls any more. GRAFT_BAD_INPUT for one that calls itself or is
 * given twice; too large a result or other operator sets leave calls as they are, and the log says
 * so. */
GRAFT_MUST_USE graft_status graft_onnx_inline_functions(graft_env *env, graft_arena *arena,
                                                        const graft_onnx_source *source);

/* ---------------------------------------------------------- onnx_stage.c */

/* Whether the options ask for stages, and nodes are known. */
bool graft_onnx_is_staged(const graft_onnx_reader *reader);
/* Names what earlier stages made. */
GRAFT_MUST_USE graft_status graft_onnx_name_told(graft_onnx_reader *reader);
/* Before a node is planned: leaves it for later (*done) where it reads what is late or where its
 * sizes are found from elements that are not known, and works it out (*done) where they are. */
GRAFT_MUST_USE graft_status graft_onnx_stage_node(graft_onnx_reader *reader, uint32_t index,
                                                  bool *done);
/* Whether a node that would be opaque, of results of such shapes, is left for later instead. */
bool graft_onnx_waits(graft_onnx_reader *reader, uint32_t index, const graft_shape *shapes);
/* Works out a Split of a list of whole numbers that is known, in any stage; false where it is none.
 * (onnx_told.c) */
bool graft_onnx_split_known(graft_onnx_reader *reader, uint32_t index);
/* What the model makes: outputs of the file, and what others read. Sets `rest`. Adds the names of
 * the graph's outputs to `outputs`, which has room for all entries. */
void graft_onnx_cut(graft_onnx_reader *reader, const char **outputs, uint32_t *count);

/* ----------------------------------------------------------- onnx_peel.c */

/* Puts rounds of Loops that a reading of the message left for later, although all that they begin
 * with is known, before them, as nodes of the message; how many. The model is of no use then.
 * GRAFT_CAPACITY, with the node, for more rounds than are peeled. */
GRAFT_MUST_USE graft_status graft_onnx_peel(graft_env *env, graft_arena *arena,
                                            const graft_onnx_source *source,
                                            const graft_model *model, uint32_t *count);

/* The entry of a name; NULL when it stands for nothing. */
graft_onnx_entry *graft_onnx_entry_named(const graft_onnx *onnx, const char *name);
/* Whether a name is that of an initializer. */
bool graft_onnx_names_weight(const graft_onnx *onnx, const char *name);
/* The entry of input `k` of a node; NULL when it is not given. */
graft_onnx_entry *graft_onnx_input(const graft_onnx *onnx, const Onnx__NodeProto *node, size_t k);
/* Number of the weight; grows the table. Data is borrowed. */
uint32_t graft_onnx_add_weight(graft_onnx_reader *reader, const graft_model_weight *weight);
/* The shape under which the engine knows input `k` of a node; of unknown rank when it is not
 * given. */
graft_shape graft_onnx_shape_of_input(const graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                      size_t k);
/* The weight that is input `k` of a node; NULL when that is none. */
const graft_model_weight *graft_onnx_weight_of_input(const graft_onnx_reader *reader,
                                                     const Onnx__NodeProto *node, size_t k);
/* The element type that the graph has for one of the file: itself, or binary32 where the options
 * want it in place of float16 and bfloat16. */
uint8_t graft_onnx_dtype(const graft_onnx_reader *reader, int64_t type);
/* The element type that the file declares; `absent` where it declares none. */
uint8_t graft_onnx_declared_dtype(const Onnx__TypeProto *type, uint8_t absent);
/* The shape of a tensor type under the bound sizes; rank unknown where a size stays open. */
graft_shape graft_onnx_shape_of_type(const graft_onnx_reader *reader, const Onnx__TypeProto *type);
/* The shape under which the engine knows an entry. */
graft_shape graft_onnx_shape_of_entry(const graft_onnx_reader *reader,
                                      const graft_onnx_entry *entry);
/* The numbers of an entry: folded, or an int64 or int32 weight of rank 0 or 1; NULL otherwise. */
const graft_onnx_ints *graft_onnx_ints_of_entry(graft_onnx_reader *reader, graft_onnx_entry *entry);

/* ----------------------------------------------------------- onnx_open.c */

/* What depends on the sizes at which a file was read, by ONNX node. */
typedef struct graft_onnx_open {
    const bool *bound;  /* The node does. */
    const bool *unsure; /* The sizes of what it makes may, though they were the same. */
    uint32_t count;     /* Of those bound. */
} graft_onnx_open;
/* Models `a` and `b` are two readings of one message at different sizes. In `arena`. */
graft_onnx_open graft_onnx_find_open(graft_arena *arena, const graft_model *a,
                                     const graft_model *b);

/* --------------------------------------------------------- onnx_build.c */

/* Plans every node and builds model->graph, records and outputs; names are known and sorted. */
GRAFT_MUST_USE graft_status graft_onnx_build(graft_onnx_reader *reader);
/* Makes a tensor that is known beforehand, and that something reads, a weight of its name. */
GRAFT_MUST_USE graft_status graft_onnx_know_weight(graft_onnx_reader *reader,
                                                   graft_onnx_entry *entry);

/* ---------------------------------------------------------- onnx_opaque.c */

/* The shape of output `k` of a node that stays opaque: as declared, or inferred where the operator
 * is simple enough; rank unknown otherwise. */
graft_shape graft_onnx_shape_of_opaque(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                       size_t k);
/* What a node makes of which ONNX's own inference says that it has no elements: a constant without
 * data, in the model's arena. NULL where it says something else, or nothing. */
const graft_model_weight *graft_onnx_without_elements(graft_onnx_reader *reader,
                                                      const Onnx__NodeProto *node);
/* The same where tensors have no elements: the inputs have the shapes `in`, and sizes may be 0. Of
 * what only ONNX' own library knows it takes that; rank unknown without it. */
graft_shape graft_onnx_shape_of_none(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                     const graft_shape *in, size_t k);
/* The numbers that Shape makes of a shape; the result is how many. */
uint32_t graft_onnx_sizes(const Onnx__NodeProto *node, const graft_shape *of, int64_t *sizes);
/* What Gather makes of places along an axis of the data; rank unknown where that cannot be. */
graft_shape graft_onnx_gathered_shape(const graft_shape *data, const graft_shape *places,
                                      int64_t axis);
/* The shape of what a node is that is one of those of foreign.h (onnx_constant.c). */
graft_shape graft_onnx_shape_of_foreign(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                        uint32_t k);
/* What a DequantizeLinear of weights makes, and its shape; NULL where it is none. */
const float *graft_onnx_dequantised(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                    graft_shape *shape);

/* ---------------------------------------------------------- onnx_tensor.c */

/* Bytes of an element; 0 for texts and for types that are not known or narrower than a byte. */
size_t graft_onnx_type_bytes(int32_t type);
/* Whether a tensor is of 4 bits. Where a model is read to be run, a weight of these has 8. */
bool graft_onnx_is_of_nibbles(const Onnx__TensorProto *tensor);
/* Whether that is what input `k` of a node is. */
bool graft_onnx_is_nibble_weight(const graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                 size_t k);
/* Likewise as the data of a weight: float16 and bfloat16 are binary32 there. */
size_t graft_onnx_held_bytes(uint32_t dtype);
/* Takes the data of external tensors, wherever they are in the message, into the message. */
GRAFT_MUST_USE graft_status graft_onnx_load_external(graft_onnx_reader *reader,
                                                     Onnx__ModelProto *proto);
/* The weight that a tensor describes, its data borrowed. GRAFT_BAD_INPUT, naming `what`, when data
 * and shape do not fit. */
GRAFT_MUST_USE graft_status graft_onnx_weight_of_tensor(graft_onnx_reader *reader,
                                                        const Onnx__TensorProto *tensor,
                                                        const char *what,
                                                        graft_model_weight *weight);
/* Moves the data of large initializers of a message that is about to be written into `data`, and
 * names `location` there. Both are in `arena`. */
void graft_onnx_store_external(graft_arena *arena, Onnx__GraphProto *graph, const char *location,
                               uint8_t *data);
/* Whether two tensors with raw_data have the same elements. */
bool graft_onnx_tensors_equal(const Onnx__TensorProto *a, const Onnx__TensorProto *b);
/* Bytes that graft_onnx_store_external will put into `data`. */
size_t graft_onnx_external_bytes(const Onnx__GraphProto *graph);
/* More of them do not go into a file with the nodes. */
#define GRAFT_ONNX_INLINE_MOST ((size_t)1500 * 1000 * 1000)

/* ----------------------------------------------------------- onnx_order.c */

/* Subgraph `i` of a node's attributes; NULL past the last. */
Onnx__GraphProto *graft_onnx_subgraph(const Onnx__NodeProto *node, size_t i);
/* Shows `visit` all names that a graph defines, but for those in its subgraphs. */
void graft_onnx_definitions(const Onnx__GraphProto *graph,
                            void (*visit)(void *context, char **name), void *context);
/* Entries that the subgraphs of a node read from the main graph, each once. */
typedef struct graft_onnx_captured {
    const uint32_t *entries; /* In `arena`. */
    uint32_t count;
    const char *undefined; /* A name that they read and that stands for nothing; NULL: none. */
} graft_onnx_captured;
graft_onnx_captured graft_onnx_find_captured(graft_arena *arena, graft_arena *scratch,
                                             const graft_onnx *onnx, const Onnx__NodeProto *node);
/* Sorts items so that those they depend on come first, otherwise by number. `first[i]` to
 * `first[i + 1]` are the dependencies of item i in `items`. True, or false with *on_cycle set to an
 * item of a cycle. `order` has room for `count`. */
bool graft_onnx_sort(graft_arena *scratch, uint32_t count, const uint32_t *first,
                     const uint32_t *items, uint32_t *order, uint32_t *on_cycle);

/* ------------------------------------------------- onnx_plan.c, onnx_map*.c */

/* A group while it is being planned, in env->scratch. */
typedef struct graft_onnx_plan {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    int64_t opset;
    bool any_type;       /* Elements are only moved, whatever their type. */
    uint8_t dtype;       /* Of all that the parts read and make. */
    uint8_t op;          /* The engine's operator, of planners that several ONNX operators share. */
    const char *refusal; /* Why the node must be opaque, the first reason; NULL so far. */
    graft_onnx_part *parts;
    uint32_t part_count;
    uint32_t part_capacity;
    graft_onnx_operand *outputs;
    graft_model_weight weights[2]; /* To be made: operands WEIGHT 0 and 1 until then. */
    uint32_t weight_count;
} graft_onnx_plan;

/* Plans a node of the default domain. The plan's refusal says whether that worked. */
void graft_onnx_plan_node(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                          graft_onnx_plan *plan);

/* Plans a node that only moves elements as if they were binary32. */
void graft_onnx_plan_moves(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                           graft_onnx_plan *plan);

/* A refused plan may go on: operands are then NONE, which is the result here, shapes scalars,
 * numbers their defaults. */
graft_onnx_operand graft_plan_refuse(graft_onnx_plan *plan, const char *reason);
void graft_plan_refuse_if(graft_onnx_plan *plan, bool refused, const char *reason);
const Onnx__AttributeProto *graft_plan_attribute(const graft_onnx_plan *plan, const char *name);
int64_t graft_plan_int(graft_onnx_plan *plan, const char *name, int64_t absent);
float graft_plan_float(graft_onnx_plan *plan, const char *name, float absent);
/* The attribute's list; *count is 0 and the result not NULL when it is empty; NULL when absent. */
const int64_t *graft_plan_ints(graft_onnx_plan *plan, const char *name, uint32_t *count);
bool graft_plan_has_input(const graft_onnx_plan *plan, uint32_t k);
/* Refuses the plan when another output than the first `count` is read. */
void graft_plan_outputs_at_most(graft_onnx_plan *plan, uint32_t count);
/* Whether something reads output `k`. */
bool graft_plan_is_read(const graft_onnx_plan *plan, uint32_t k);
/* Input `k` as an operand; refuses unless it is a tensor of the plan's type and of known shape. */
graft_onnx_operand graft_plan_input(graft_onnx_plan *plan, uint32_t k);
/* Numbers of input `k`; refuses when they are not known. Never NULL. */
const graft_onnx_ints *graft_plan_const_ints(graft_onnx_plan *plan, uint32_t k);
/* Elements of input `k`, a weight of the plan's type, a real one, and of `*count` elements, in
 * binary32; refuses and gives NULL otherwise. */
const float *graft_plan_const_floats(graft_onnx_plan *plan, uint32_t k, uint64_t *count);
graft_shape graft_plan_shape(const graft_onnx_plan *plan, graft_onnx_operand operand);
bool graft_plan_is_const(const graft_onnx_plan *plan, graft_onnx_operand operand);
/* Adds a part and infers its shapes; refuses when they do not infer. `attrs` may be NULL. The
 * result is its first output. */
graft_onnx_operand graft_plan_add(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                  const graft_onnx_operand *inputs);
graft_onnx_operand graft_plan_add1(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                   graft_onnx_operand input);
graft_onnx_operand graft_plan_add2(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                   graft_onnx_operand a, graft_onnx_operand b);
/* A weight made for this node: `count` elements in the model's arena. */
graft_onnx_operand graft_plan_weight(graft_onnx_plan *plan, const float *data, uint32_t count);
graft_onnx_operand graft_plan_reshape(graft_onnx_plan *plan, graft_onnx_operand x,
                                      const int32_t *dims, uint32_t rank);
/* A tensor of one repeated value, in the weight program. */
graft_onnx_operand graft_plan_constant(graft_onnx_plan *plan, float value, const int32_t *dims,
                                       uint32_t rank);
graft_onnx_operand graft_plan_scalar(graft_onnx_plan *plan, float value);
/* The reduction `op` of x as the node's attributes (or its second input, from opset
 * `input_since` on) say; no axes: all of them, or x itself. */
graft_onnx_operand graft_plan_reduced(graft_onnx_plan *plan, uint32_t op, graft_onnx_operand x,
                                      int64_t input_since);
/* Says that the ONNX node's output `k` is the operand. */
void graft_plan_output(graft_onnx_plan *plan, uint32_t k, graft_onnx_operand operand);
/* An axis counted from the front; refuses when it is not in [-rank, rank). */
uint32_t graft_plan_axis(graft_onnx_plan *plan, int64_t axis, uint32_t rank);
/* A number as an attribute; refuses when it does not fit into an int32. */
int32_t graft_plan_int32(graft_onnx_plan *plan, int64_t value);

/* Planners: one per operator or family. Each gives the node's first output. */
typedef graft_onnx_operand graft_onnx_planner(graft_onnx_plan *plan);
#define PLAN(op_type, planner, attributes, op, takes_outputs)                                      \
    graft_onnx_planner graft_plan_##planner;
#include "graph/onnx/onnx_plan.def"
graft_onnx_planner graft_plan_function; /* Of all FUNCTION rows. */
/* Whether an operator may come apart, for the model is read to be run
 * (graft_model_options.as_binary32); else refuses. */
bool graft_plan_comes_apart(graft_onnx_plan *plan);
/* More parts than come of a kernel's depths; 0 for a node without. */
uint32_t graft_plan_deep_most(const Onnx__NodeProto *node);
/* More parts than an LSTM, GRU or RNN by its steps becomes; 0 for any other. */
uint32_t graft_plan_recurrent_most(const graft_onnx_reader *reader, const Onnx__NodeProto *node);

/* -------------------------------------------------------- onnx_constant.c */

/* What a node of constants computes, by its plan or, where that is refused, without; NULL when it
 * is none or too large. In the model's arena. */
const graft_model_weight *graft_onnx_fold_constant(graft_onnx_reader *reader,
                                                   const Onnx__NodeProto *node,
                                                   const graft_onnx_plan *plan);

/* Whether a result of `bytes` may be stored in place of a node and of `spare` bytes that leave the
 * file with it: it is larger by 1 KiB at most. `*all`, unless NULL, adds up by how much results are
 * larger than what they take the place of, which may be 16 KiB. */
bool graft_onnx_may_grow(uint64_t bytes, uint64_t spare, uint64_t *all);

/* Whether nodes that run and the constants that they read, as they would be stored, are more than
 * all of the file that was read, of `had` bytes, by a hundredth and some pages. */
bool graft_onnx_swells(graft_env *env, const graft_model *model, uint64_t had);

/* ------------------------------------------------------------ onnx_make.c */

/* A list of pointers to messages with one more at its end. */
void *graft_onnx_append(graft_arena *arena, const void *list, size_t count, void *item);
/* The name of a size that the declaration of `value` leaves open; NULL where it is fixed. */
const char *graft_onnx_open_size(graft_arena *arena, const char *value,
                                 const Onnx__TensorShapeProto *shape, size_t axis);

/* Messages in `arena`. Texts are borrowed, lists copied. */
Onnx__NodeProto *graft_onnx_make_node(graft_arena *arena, const char *op_type,
                                      const char *const *inputs, size_t input_count,
                                      const char *const *outputs, size_t output_count);
void graft_onnx_set_int(graft_arena *arena, Onnx__NodeProto *node, const char *name, int64_t value);
void graft_onnx_set_float(graft_arena *arena, Onnx__NodeProto *node, const char *name, float value);
void graft_onnx_set_text(graft_arena *arena, Onnx__NodeProto *node, const char *name,
                         const char *value);
void graft_onnx_set_ints(graft_arena *arena, Onnx__NodeProto *node, const char *name,
                         const int64_t *values, size_t count);
Onnx__StringStringEntryProto *graft_onnx_make_entry(graft_arena *arena, const char *key,
                                                    const char *value);
/* A tensor with raw_data, which is borrowed: as many bytes as type and sizes need. */
Onnx__TensorProto *graft_onnx_make_tensor(graft_arena *arena, const char *name, int32_t dtype,
                                          const int64_t *dims, size_t rank, const void *data);
/* Likewise from the data of a weight: float16 and bfloat16 are rounded. *fits becomes false when a
 * finite number does not fit into the type. */
Onnx__TensorProto *graft_onnx_make_weight(graft_arena *arena, const char *name,
                                          const graft_shape *shape, const void *data, bool *fits);
/* The declaration of a tensor, e.g. of an input. */
Onnx__ValueInfoProto *graft_onnx_make_port(graft_arena *arena, const char *name, int32_t dtype,
                                           const int64_t *dims, size_t rank);
