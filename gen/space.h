/* space.h - every value that a set's operators can compute, each evaluated once.
 *
 * Idea. A *node* is a configuration (operator with attributes) applied to values; nodes with equal
 * configuration and arguments are one node. A *value* is a class of nodes' outputs that agree on
 * shape and on every sample: two nodes that compute the same value are a candidate law. The
 * cheapest node that reaches a value is its *representative*: the one with the smallest graph, then
 * with the fewest operators that run at inference, then the first. Arguments are values, so a graph
 * is built of representatives everywhere but at its root: what holds inside an argument was a law
 * before.
 *
 *      x ── mul ──┐                      node 7 = add(value 9, value 11)
 *      y ──┘      add   value 15  ◄───   node 8 = mul(value 0, value 5)
 *      x ── mul ──┘                      so: add(mul(x,y), mul(x,z)) = mul(x, add(y,z))
 *
 * The *closure* of a node is the set of nodes that it needs, itself included: the operators of its
 * graph. Inputs of equal shape and role may be exchanged; these renamings form a group that acts on
 * values and nodes. The space is closed under it: whenever a node is made, all its renamings are.
 *
 * A graph that computes a constant in a roundabout way (x - x) is not built upon, and no law is
 * looked for that only tells such graphs apart: real models do not contain them.
 *
 * Nodes are made in levels by closure size; level k takes its arguments from closed sets of k - 1
 * representatives (one of each orbit). Of the last level only those nodes are kept that compute
 * what others compute too (last.h); their values keep a hash, not data. Numbers of nodes and values
 * do not depend on the number of threads. */
#pragma once

#include "gen/gen.h"
#include "graph/base/table.h"
#include "graph/meaning/algebra_field.h"

#include <xxhash.h>

#define GRAFT_GEN_NONE UINT32_MAX

/* The element behind the last one of an array, which is counted and may move (GRAFT_PUSH). */
enum { GRAFT_GEN_FIRST_CAPACITY = 1024 };
#define GRAFT_GEN_PUSH(arena, array, count, capacity)                                              \
    GRAFT_PUSH((arena), (array), (count), (capacity), GRAFT_GEN_FIRST_CAPACITY)

enum {
    GRAFT_GEN_MAX_RENAMINGS = 120,
    GRAFT_GEN_SAMPLES = 8,
    GRAFT_GEN_FIRST_SAMPLES = 1,   /* Enough to tell most graphs apart (last.h). */
    GRAFT_GEN_MAX_ELEMENTS = 2048, /* Of a value; larger ones are left out. */
    GRAFT_GEN_MAX_NODES = 1 << 30,
    GRAFT_GEN_MAX_CLOSURE = 16 /* Nodes; depth at most, more after a renaming in rare cases. */
};

typedef struct graft_gen_value {
    XXH128_hash_t hash; /* Of the shape and the residues of all samples. */
    uint32_t node;      /* Representative; GRAFT_GEN_NONE for inputs. */
    uint16_t shape;
    uint8_t slot; /* Output of the representative. */
    uint8_t size; /* Nodes in the closure; 0 for inputs. */
    bool is_weight;
    bool is_idle; /* The same number everywhere, although computed from tensors (x - x). */
} graft_gen_value;

typedef struct graft_gen_node {
    uint32_t args[GRAFT_MAX_INPUTS];  /* Values; GRAFT_GEN_NONE past the inputs. */
    uint32_t outs[GRAFT_MAX_OUTPUTS]; /* Values; GRAFT_GEN_NONE when undefined on a sample. */
    uint16_t shapes[GRAFT_MAX_OUTPUTS];
    uint16_t config;
    uint8_t size; /* Operators in the closure. */
    uint8_t live; /* Of those, the ones that depend on an activation. */
} graft_gen_node;

/* Sorted node numbers; all a node or a graph needs. */
typedef struct graft_gen_closure {
    uint32_t nodes[GRAFT_GEN_MAX_CLOSURE];
    uint32_t count;
} graft_gen_closure;

/* What values are told apart on: GRAFT_GEN_SAMPLES samples of the seed, and behind them those draws
 * of fresh samples that once told graphs apart which the first had not (refine.h). */
typedef struct graft_gen_samples {
    uint64_t seed;
    graft_arena *arena; /* For the draws. */
    uint32_t *draws;
    uint32_t draw_count;
    uint32_t capacity;
} graft_gen_samples;

typedef struct graft_gen_space {
    graft_env *env;
    graft_arena *arena; /* Holds everything below. */
    const graft_gen_set *set;

    graft_shape *shapes;
    uint32_t shape_count;

    graft_gen_value *values; /* Inputs first. */
    graft_field **data;      /* By value: samples of its elements; NULL when not kept. */
    uint32_t *images;        /* By value and renaming, for values before `image_end`. */
    uint32_t value_count;
    uint32_t value_capacity;
    uint32_t image_end;
    uint32_t image_capacity;
    graft_table value_table;
    uint32_t sample_count; /* Of each value: the first ones, and those of `samples`. */

    graft_gen_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    graft_table node_table;

    uint32_t *producers;      /* node * 2 + slot of every output, by value, configuration, node. */
    uint32_t *producer_first; /* By value, value_count + 1 entries: where its producers begin. */

    uint8_t (*renamings)[GRAFT_GEN_MAX_VARS]; /* Renaming 0 changes nothing. */
    uint32_t renaming_count;

    graft_gen_samples samples;
    graft_gen_room room;
    graft_gen_counts counts;
} graft_gen_space;

/* Enumerates a set. `room` may be NULL: no folder. The space lives in `arena`, which the caller
 * frees; nothing of it is needed afterwards; `samples` must outlive it. GRAFT_UNSUPPORTED when the
 * set's inputs have more than GRAFT_GEN_MAX_RENAMINGS renamings or there are more than 65535
 * shapes; GRAFT_NO_MEMORY when it takes more than room->memory_bytes; GRAFT_INTERRUPTED on a
 * signal. */
GRAFT_MUST_USE graft_status graft_gen_space_build(graft_env *env, graft_arena *arena,
                                                  const graft_gen_set *set,
                                                  const graft_gen_samples *samples,
                                                  const graft_gen_room *room,
                                                  graft_gen_space *space);

/* The same with all nodes of the last level, as a larger space has them below its own. Of `room` it
 * minds the memory alone; it may be NULL. */
GRAFT_MUST_USE graft_status graft_gen_space_build_whole(graft_env *env, graft_arena *arena,
                                                        const graft_gen_set *set,
                                                        const graft_gen_samples *samples,
                                                        const graft_gen_room *room,
                                                        graft_gen_space *space);

/* ------------------------------------------------- for the files of this folder */

/* GRAFT_NO_MEMORY, with what is needed, when the space and `beside_bytes` more take more than its
 * room. */
GRAFT_MUST_USE graft_status graft_gen_space_check_room(const graft_gen_space *space,
                                                       uint64_t beside_bytes);
/* Appends a draw. Spaces that were built before keep theirs. */
void graft_gen_samples_add(graft_gen_samples *samples, uint32_t draw);

/* Starts an empty space with the set's inputs and their renamings. */
GRAFT_MUST_USE graft_status graft_gen_space_open(graft_gen_space *space);
/* The output shapes of a configuration; false when the arguments do not fit. */
GRAFT_MUST_USE graft_status graft_gen_infer(graft_gen_space *space, uint32_t config,
                                            const uint32_t *args, uint16_t *shapes, bool *fits);
/* The node, or GRAFT_GEN_NONE. Arguments of commutative operators may stand in either order. */
uint32_t graft_gen_node_find(const graft_gen_space *space, uint32_t config, const uint32_t *args);
/* Appends a node that is not there yet, with args in canonical order. */
uint32_t graft_gen_node_add(graft_gen_space *space, uint32_t config, const uint32_t *args,
                            const uint16_t *shapes, uint32_t size);
/* Operators of a closure that depend on an activation: they run at each inference. */
uint32_t graft_gen_count_live(const graft_gen_space *space, const graft_gen_closure *closure);
/* Lists the producers of every value. */
void graft_gen_producers_list(graft_gen_space *space);
/* Whether the node is what stands for one of its outputs in graphs. */
bool graft_gen_is_representative(const graft_gen_space *space, uint32_t node);
/* Sorts the first two arguments of a commutative operator. */
void graft_gen_args_normalise(const graft_gen_config *config, uint32_t *args);
/* The value that a renaming makes of a value, GRAFT_GEN_NONE when it is not in the space. */
uint32_t graft_gen_value_image(const graft_gen_space *space, uint32_t value, uint32_t renaming);
uint32_t graft_gen_node_image(const graft_gen_space *space, uint32_t node, uint32_t renaming);
/* What the evaluation of one output found. */
typedef struct graft_gen_print {
    XXH128_hash_t hash; /* All zero: undefined. */
    bool is_uniform;    /* The same number everywhere. */
} graft_gen_print;
/* Whether a node is made of weights alone. */
bool graft_gen_is_of_weights(const graft_gen_space *space, const graft_gen_node *node);
/* Gives node outputs their values, in node order; `prints` has two entries a node, counted from
 * `first`. */
void graft_gen_values_assign(graft_gen_space *space, uint32_t first, uint32_t end,
                             const graft_gen_print *prints);
/* Fills in the images of all values that have none yet. */
void graft_gen_images_extend(graft_gen_space *space);
/* Evaluates nodes [first, end) on `thread_count` threads, assigns values and, when `keep`, keeps
 * the data of new values. GRAFT_INTERRUPTED on a signal. */
GRAFT_MUST_USE graft_status graft_gen_evaluate(graft_gen_space *space, uint32_t first, uint32_t end,
                                               bool keep);
/* The fingerprints of nodes that are not in the space, on the first GRAFT_GEN_FIRST_SAMPLES alone;
 * `keys` has GRAFT_MAX_OUTPUTS entries a node, 0 where a sample is undefined. */
void graft_gen_evaluate_keys(graft_gen_space *space, const graft_gen_node *nodes, uint32_t count,
                             uint64_t *keys);
/* The fingerprint of a tensor's first samples. */
graft_gen_print graft_gen_data_print(const graft_shape *shape, const graft_field *data,
                                     uint32_t sample_count);
/* The seed of the fresh samples that laws are checked on. */
static inline uint64_t graft_gen_fresh_seed(const graft_gen_space *space)
{
    return space->samples.seed + 1000;
}
/* How a tensor is drawn. */
typedef struct graft_gen_draw {
    uint32_t sample; /* Which of the GRAFT_GEN_SAMPLES kinds of samples. */
    uint32_t
        stream; /* Number of the variable: scalars of different streams take their signs in turn. */
    int32_t most; /* No larger magnitudes than this. */
    bool is_weight;
    bool is_fresh; /* Of a fresh sample: scalars take their signs by chance. */
} graft_gen_draw;
/* The numbers of one variable in fresh sample `draw`. */
void graft_gen_sample_fresh(uint64_t seed, uint32_t draw, graft_gen_draw how,
                            const graft_shape *shape, graft_field *data);
/* The largest magnitude that suits an operator, or all operators of a set. */
int32_t graft_gen_config_most(const graft_gen_config *config);
int32_t graft_gen_set_most(const graft_gen_set *set);
void graft_gen_sample(graft_rng *rng, const graft_gen_draw *draw, const graft_shape *shape,
                      graft_field *data);
/* The output shapes of a configuration; false when the inputs do not fit or an output would be too
 * large. */
bool graft_gen_config_infer(const graft_gen_config *config, const graft_shape *in,
                            graft_shape *out);
/* Inputs and every step's outputs, GRAFT_GEN_STEP(s, o) being output o of step s. */
enum { GRAFT_GEN_CONFIG_TENSORS = GRAFT_MAX_INPUTS + GRAFT_GEN_MAX_STEPS * GRAFT_MAX_OUTPUTS };
/* The shapes of all tensors of a configuration whose inputs fit. */
void graft_gen_config_shapes(const graft_gen_config *config, const graft_shape *in_shapes,
                             graft_shape *shapes);
/* Runs one configuration on tensors of one sample; `shapes` are those of all its tensors.
 * `workspace` has room for the outputs of all steps.
 * False when a number is undefined or an order could not be told: the result says nothing then. */
bool graft_gen_config_run(graft_field_state *field, const graft_gen_config *config,
                          const graft_shape *shapes, const graft_field *const in[],
                          graft_field *const out[], graft_field *workspace);
/* Elements of workspace that graft_gen_config_run needs for these shapes. */
size_t graft_gen_config_workspace(const graft_gen_config *config, const graft_shape *shapes);

/* Closures. Adding keeps them sorted; all return false when GRAFT_GEN_MAX_CLOSURE is not enough. */
bool graft_gen_closure_add(graft_gen_closure *closure, uint32_t node);
bool graft_gen_closure_of_node(const graft_gen_space *space, uint32_t node,
                               graft_gen_closure *closure);
/* Lists the outputs of the closure's nodes that none of them reads; returns how many, which may be
 * more than `capacity`. */
uint32_t graft_gen_closure_outputs(const graft_gen_space *space, const graft_gen_closure *closure,
                                   uint32_t *outputs, uint32_t capacity);
