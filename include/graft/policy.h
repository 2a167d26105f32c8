/* policy.h - the learned policy: what it sees, what it holds, how it decides; and the loop that
 * optimises a graph with it. Included by graft.h; declarations only.
 *
 * The network is the float network of train/agent/scorer.h in int8 weights: integers in, integers out,
 * every rounding spelled out. Equal graphs give equal decisions on every processor.
 *
 *      nodes, edges ──► encoder (graph network) ──┬──► mean, max of a match's nodes ──┐
 *                                                 └──► latent of the graph ───────────┤
 *      tariff ──► facts: what a match would take away and add, and what that costs ───┼──► score
 *      rule ──► a row of the header, made of its patterns by the same encoder ────────┘
 *
 * Which rules and places exist is not the network's to say: it scores what the matcher finds and
 * graft_match_try accepts. The locations of a rule are numbered 0, 1, ... in canonical order: by the
 * anchor's place in topological order, then in the matcher's order, only those where graft_match_try
 * succeeds, at most `location_limit`. */
#ifndef GRAFT_POLICY_H
#define GRAFT_POLICY_H

/* ---------------------------------------------------------------- features */

/* Stands for 1.0: the float network is given entry / GRAFT_FEATURE_SCALE. */
#define GRAFT_FEATURE_SCALE 64

/* Where each feature begins in a row; features.def says what it is. */
enum {
#define FEATURE(name, width)                                                                       \
    GRAFT_FEATURE_##name, GRAFT_FEATURE_END_##name = GRAFT_FEATURE_##name + (width)-1,
#include "features.def"
    GRAFT_FEATURE_COUNT
};
enum {
#define EDGE_FEATURE(name, width)                                                                  \
    GRAFT_EDGE_FEATURE_##name,                                                                     \
        GRAFT_EDGE_FEATURE_END_##name = GRAFT_EDGE_FEATURE_##name + (width)-1,
#include "features.def"
    GRAFT_EDGE_FEATURE_COUNT
};

/* FNV-1a over the rows of features.def and operators.def; a generated header compiles only with the
 * number it was made for. tests/emit computes it anew. Not in it are the flags of operators, and the
 * lists of scenes and facts below, which a network sees too: when these change GRAFT_ABI rises. */
#define GRAFT_FEATURE_HASH 0x8a2fa704u

/* The policy's graph: its nodes are the nodes that run at each inference (not is_const) in the
 * order of `order`; an edge runs from producer to reader for each operand of a node that
 * graft_edge_exists. `out` has GRAFT_FEATURE_COUNT entries. */
void graft_node_features(const graft_graph *graph, const graft_order *order, graft_index node,
                         int8_t *out);
/* Whether operand `operand` of `node` is computed by a node of the policy's graph. */
bool graft_edge_exists(const graft_graph *graph, graft_index node, uint32_t operand);
/* Features of that edge; `out` has GRAFT_EDGE_FEATURE_COUNT entries. */
void graft_edge_features(const graft_graph *graph, graft_index node, uint32_t operand, int8_t *out);
/* ----------------------------------------------------------------- network */

/* Weights are int8; activations are int16 within GRAFT_ACTIVATION_MOST: a latent moves so little
 * from one rewrite to the next that int8 activations would change one choice in twenty. Most inputs
 * of a layer and largest bias: 2048 * 127 * 4095 + 2^30 < 2^31, so no sum overflows. */
#define GRAFT_ACTIVATION_MOST  4095
#define GRAFT_DENSE_MAX_INPUTS 2048
#define GRAFT_DENSE_MAX_BIAS   (1 << 30)

/* Multiplies by multiplier / 2^shift and rounds to nearest, halves away from zero. Sixteen bits are
 * more than an activation has, and make four bytes of a row's scale. */
typedef struct graft_scale {
    uint16_t multiplier; /* 0, or 2^15 to 2^16 - 1. */
    uint8_t shift;       /* 0 to 62 */
} graft_scale;

/* y = x W + b, one row of weights per output: sum, then the row's scale. */
typedef struct graft_dense {
    const int8_t *weights;     /* (outputs, inputs), -127 to 127 */
    const int32_t *bias;       /* (outputs), in units of the sum */
    const graft_scale *scales; /* (outputs) */
    uint16_t inputs;
    uint16_t outputs;
} graft_dense;

/* One round of message passing. Messages are sums over [h, edge] and leave their scale in units of
 * 1/16 of the mean's; `node` maps [h, mean in, mean out] and adds the old h, scaled by `keep`, both
 * in units of 1/16 of the new h's. */
typedef struct graft_policy_round {
    graft_dense incoming; /* (hidden, hidden + edge features) */
    graft_dense outgoing; /* (hidden, hidden + edge features) */
    graft_dense node;     /* (hidden, 3 hidden) */
    graft_scale keep;
} graft_policy_round;

/* ------------------------------------------------------------------- costs */

/* What a device taught about its costs, as data: what the nodes of a graph cost there, and from it
 * what a graph costs and what a rewrite would change. All integers, so equal everywhere.
 *
 *      graft_estimator_open(&estimator, &TARIFF, &limits, memory, bytes);       // once
 *      graft_estimate(&estimator, &graph, &order, &estimated);                 // for each graph
 *      while (graft_matcher_next(&matcher, &match)) {                          // for each match
 *          if (graft_match_plan(&graph, rule, &match, &order, ..., &made) == GRAFT_OK) {
 *              graft_estimate_match(&estimator, rule, &match, &made, &change);
 *          }
 *      }
 *
 * The estimate is the sum over the nodes that run at each inference. Equal nodes (the same
 * operator, attributes and operands, which count as the same when their nodes are equal) count
 * once, as in a product that merges them; opaque nodes are equal to nothing. */

/* Costs are in units of 1 / GRAFT_COST_UNITS nanoseconds. A node's cost is below 2^47 units, and its
 * call's below 2^26, so the sum over GRAFT_ESTIMATE_NODES nodes is below 2^63. */
#define GRAFT_COST_UNITS 1024
#ifdef GRAFT_SMALL_GRAPHS
#define GRAFT_ESTIMATE_NODES 32000
#else
#define GRAFT_ESTIMATE_NODES 65535
#endif

/* What the cost of a node depends on. A node of a graph has one, and so has a node that a rewrite
 * would make. Borrows what it points to. */
typedef struct graft_form {
    uint8_t op;
    uint8_t const_mask; /* Bit k: input k is const, for the first GRAFT_MAX_INPUTS. */
    uint16_t input_count;
    uint16_t output_count;
    const int32_t *attrs;                          /* GRAFT_MAX_ATTRS of them. */
    const graft_shape *inputs[GRAFT_MAX_INPUTS];   /* The first ones; NULL beyond the last. */
    const graft_shape *outputs[GRAFT_MAX_OUTPUTS]; /* Likewise. */
    const graft_shape *weight;                     /* Of the first const operand, or NULL. */
    uint64_t input_elements;                       /* Of all operands that are not const... */
    uint64_t weight_elements;                      /* ...and of those that are. */
    uint64_t bytes; /* Of all operands and outputs, float16 and bfloat16 taken for binary32. */
    uint8_t reach;  /* Of the first const operand, see graft_estimator_form; 0 unless that says. */
} graft_form;

/* The form of a node of `graph`, and of target node `n` of an application. */
void graft_form_of_node(const graft_graph *graph, graft_index node, graft_form *form);
void graft_form_of_made(const graft_graph *graph, const graft_made *made, uint32_t n,
                        graft_form *form);
/* How far away a weight lies, its reach: 0 when less than 1 MB of weights, which a core's caches keep, is
 * read between two readings of it, then one more for each octave, to GRAFT_REACH_MOST. */
enum { GRAFT_REACH_LEAST_LOG2 = 19, GRAFT_REACH_MOST = 5 };
/* A hash of everything in a form but its reach: operator, attributes, shapes and element types of
 * operands and outputs, and which operands are const. */
uint64_t graft_form_hash(const graft_form *form);

/* What the fallback sees: the node's features, as far as its form has them (what reads a node is
 * none of its form; of a convolution or matrix product those of the product alone, without bias,
 * residual and activation; of an elementwise node that repeats no operand no shapes, as these are all one
 * to it), then logarithms of its sizes, finer than those of the features (64 an octave),
 * beginning with FLOPs and bytes; then whether it need not move a number: a reshape, or a cut or
 * joint of pieces that lie one behind the other; last its reach. */
enum {
    GRAFT_TARIFF_SIZES = 17,
    GRAFT_TARIFF_INPUTS = GRAFT_FEATURE_COUNT + GRAFT_TARIFF_SIZES,
    GRAFT_TARIFF_STILL = GRAFT_TARIFF_INPUTS - 2,
    GRAFT_TREE_TESTS = 15,
    GRAFT_TREE_LEAVES = 16
};
/* `out` has GRAFT_TARIFF_INPUTS entries. */
void graft_tariff_inputs(const graft_form *form, int16_t *out);

/* What a node of a kind takes at least, and each of its bytes and FLOPs; in 1024ths of an octave above
 * one unit. A node takes the largest of the three: the roofline model (S. Williams, A. Waterman,
 * D. Patterson, CACM 52, 2009). */
typedef struct graft_roof {
    int32_t node; /* Each within 16 bits. */
    int32_t byte;
    int32_t flop;
} graft_roof;
/* Convolutions and matrix products; all else. */
enum { GRAFT_TARIFF_ROOFS = 2 };
/* Which roof is the node's that has these inputs. */
uint32_t graft_tariff_roof(const int16_t *inputs);

/* Rows of 6 bytes: a form's key and its cost. Values are logarithms: 0 means that the node costs
 * nothing, v that it costs 2^((v - 1) / 1024) units, to 0.034 %.
 *
 * A key of 32 bits suffices: a table is made with a seed for which no two of its forms, nor any
 * other that its maker met, have equal keys; a form that nobody met is taken for one of n rows with
 * a probability of n / 2^32, one in 400,000 for 10,000 rows. */
typedef struct graft_tariff {
    const uint32_t *keys;   /* (row_count), ascending */
    const uint16_t *values; /* (row_count) */
    uint32_t row_count;
    uint32_t seed;
    /* The fallback, for forms without a row. What need not move a number is worth `still`; anything
     * else what its roof says, corrected by regression trees. From test 0 of a tree, test i goes on at
     * 2 i + 2 where the input that it names is above its bound, else at 2 i + 1; number 15 + k is
     * leaf k. The guess is the roof and all leaves reached, together. Trees of even numbers are one
     * half, the others another, which were grown on other samples: what the halves differ by is doubt.
     * Without trees such forms cost nothing; they are marked all the same. */
    const uint8_t *tests;  /* (tree_count, GRAFT_TREE_TESTS): which input */
    const int16_t *bounds; /* (tree_count, GRAFT_TREE_TESTS) */
    const int16_t *leaves; /* (tree_count, GRAFT_TREE_LEAVES): 1024ths of an octave */
    uint16_t tree_count;
    uint16_t still; /* As a row's value. */
    graft_roof roofs[GRAFT_TARIFF_ROOFS];
} graft_tariff;

/* What the roof of a node with these inputs says, as a row's value, which it may be beyond: the guess is
 * none that a row could not have. */
int32_t graft_tariff_base(const graft_tariff *tariff, const int16_t *inputs);

/* The row key of a form with this hash, in a table with this seed. */
uint32_t graft_tariff_key(uint32_t seed, uint64_t form_hash);
/* The row of a key; row_count when there is none. */
uint32_t graft_tariff_row(const graft_tariff *tariff, uint32_t key);
/* Checks that a table keeps these promises. NULL when it does, else a static text. */
const char *graft_tariff_check(const graft_tariff *tariff);

typedef struct graft_node_price {
    uint64_t cost;
    uint64_t flops;
    uint64_t bytes;
    bool fallback; /* No row of the table. */
} graft_node_price;
/* What the fallback gives, as a row's value; 0 when there is none. One half of the trees is `skew` above
 * it, the other as far below, in 1024ths of an octave; an octave is the most. */
typedef struct graft_guess {
    uint16_t value;
    int16_t skew;
} graft_guess;
enum { GRAFT_SKEW_MOST = 1024 };
graft_guess graft_tariff_guess(const graft_tariff *tariff, const int16_t *inputs);
/* The units of a row's value. */
uint64_t graft_tariff_value(uint32_t value);
graft_node_price graft_tariff_price(const graft_tariff *tariff, const graft_form *form);

typedef struct graft_estimated {
    uint64_t cost;
    uint64_t fallback_cost; /* The part of it that rests on the fallback. */
    int64_t skew;           /* Sum of cost and skew of what is guessed, in octaves. */
    uint64_t flops;
    uint64_t bytes;          /* Read and written. */
    uint32_t nodes;          /* Different nodes that run at each inference. */
    uint32_t fallback_nodes; /* Those without a row. */
} graft_estimated;

/* What applying a rule at a match would change: exactly the difference of the estimates after and
 * before. Nodes that die or merge with the match are in it. */
typedef struct graft_change {
    int64_t cost;            /* Of what comes, less that of what goes. */
    uint64_t weight_bytes;   /* As in graft_effect. */
    graft_estimated removed; /* The nodes that go... */
    graft_estimated added;   /* ...and those that come. */
} graft_change;

/* What graft_estimate found out about a graph; all arrays lie in the workspace. */
typedef struct graft_estimator {
    const graft_tariff *tariff;
    const graft_graph *graph; /* Of the last graft_estimate. */
    const graft_order *order;
    graft_limits limits;
    uint32_t *prices;     /* By node id, see graft_estimator_cost. */
    graft_index *first;   /* By node id: its class, the first node that it is equal to... */
    graft_index *label;   /* ...and after the rewrite that is looked at, which adds nodes. */
    graft_index *members; /* By class: how many nodes it has. */
    graft_apply_scratch scratch;
    graft_index *touched; /* Node ids that die, a heap of places in the order; from the end on, node
                               ids that have a new class. */
    graft_index *entries; /* Nodes with a new key... */
    graft_index *slots;   /* Hash table of keys. */
    graft_index *filled;  /* ...and the slots that they take. */
    uint64_t *cache;      /* Hashes of forms, in their lowest bits prices: they outlast a graph. */
    uint8_t *flags;       /* By node id. */
    uint8_t *reaches;     /* By value id: of the weights of the first graph that was estimated... */
    uint8_t reach;        /* ...and what has no weight has the reach of all weights together. */
    bool begun;           /* There was one. */
    uint16_t call_ns;     /* That each node of an estimate costs besides; the caller may set it. */
    uint32_t slot_mask;
    uint32_t cache_mask;
} graft_estimator;

/* Bytes for an estimator of graphs within `limits`. */
size_t graft_estimator_bytes(const graft_limits *limits);
/* GRAFT_NO_MEMORY when the workspace is too small, GRAFT_BAD_INPUT for a broken table, which is
 * kept, as is the workspace. */
GRAFT_MUST_USE graft_status graft_estimator_open(graft_estimator *estimator,
                                                 const graft_tariff *tariff,
                                                 const graft_limits *limits, void *workspace,
                                                 size_t workspace_bytes);
/* Estimates a graph; it and `order` are kept for graft_estimate_match, until they change.
 * GRAFT_CAPACITY beyond the limits or GRAFT_ESTIMATE_NODES. */
GRAFT_MUST_USE graft_status graft_estimate(graft_estimator *estimator, const graft_graph *graph,
                                           const graft_order *order, graft_estimated *estimated);
/* The same of a graph that came from the last one, where the engine is compiled with GRAFT_LARGE_GRAPHS:
 * nodes that are `same`, by id, have the price that they had, and nothing is summed. Neither such a node
 * may have changed, nor what the weights that it reads are made of. */
GRAFT_MUST_USE graft_status graft_estimate_again(graft_estimator *estimator,
                                                 const graft_graph *graph, const graft_order *order,
                                                 const bool *same);
/* The cost of a node of that graph that is not const, without its call, and whether it rests on the
 * fallback. */
uint64_t graft_estimator_cost(const graft_estimator *estimator, graft_index node, bool *fallback);
/* The form of a node of that graph, with its reach. Between two readings of a weight lie the bytes that
 * nodes read of weights from its first reading on to its second, in the order of the first graph that was
 * estimated and as they were there; all weights of that graph where it is read once. What is made of a
 * weight, as its first operand, lies as far away as it: a rewrite that joins the weights of one step of a
 * loop is made in the next step as well. A weight that alone fills a core's caches is never nearer than 2. */
void graft_estimator_form(const graft_estimator *estimator, graft_index node, graft_form *form);
/* What the rule would change at a match of that graph for which graft_match_plan has made `made`.
 * Looks at what the rewrite touches: about a microsecond. */
void graft_estimate_match(graft_estimator *estimator, const graft_rule *rule,
                          const graft_match *match, const graft_made *made, graft_change *change);

/* ------------------------------------------------------------------ scenes */

/* What a rewrite has to gain, as a part of the cost. */
#define GRAFT_GAIN_SHIFT 15

/* What the network is told of a node: its features (features.def), the flags of its operator, its
 * share of the graph's cost (4 log2 of 65536 times the share) and whether that is guessed. */
enum {
    GRAFT_SCENE_FLAGS = GRAFT_FEATURE_COUNT,
    GRAFT_SCENE_COST = GRAFT_SCENE_FLAGS + 6,
    GRAFT_SCENE_GUESSED,
    GRAFT_SCENE_FEATURES
};
/* Of the graph: its cost as a part of what it was at first, the number of its nodes (8 log2), and the
 * part of its cost that is guessed. */
enum { GRAFT_SCENE_SAVED, GRAFT_SCENE_NODES, GRAFT_SCENE_FALLBACK, GRAFT_SCENE_GLOBALS };

/* Of a candidate, in units of 1 / GRAFT_FACT_ONE. An amount is a part of the graph's as
 * graft_part_log has it. */
#define GRAFT_FACT_ONE 512
typedef enum graft_fact {
    GRAFT_FACT_GAIN,       /* Part of the cost that it takes away, doubts taken off; 1 at least of
                              what gains. */
    GRAFT_FACT_GAIN_PLAIN, /* 20 times that part, at most 1; not a logarithm. */
    GRAFT_FACT_REMOVED,    /* Cost of the nodes that go... */
    GRAFT_FACT_ADDED,      /* ...and of those that come. */
    GRAFT_FACT_NODES,      /* Change of their number; 4 are 1, 8 the most. */
    GRAFT_FACT_FLOPS,
    GRAFT_FACT_BYTES,
    GRAFT_FACT_WEIGHTS, /* Bytes of new weights: log2 / 32. */
    GRAFT_FACT_GUESSED, /* Part of both costs that rests on the fallback. */
    GRAFT_FACT_GAINS,   /* 1 when the tariff alone would take it. */
    GRAFT_FACT_NOOP,    /* 1 for NO-OP, of which all else is 0. */
    GRAFT_FACT_SEEN
} graft_fact;

/* A part of a whole with its sign, in 64ths of an octave above the 2^-GRAFT_GAIN_SHIFT-th part, 0 when
 * it is no more than that: 960 for the whole itself, at most GRAFT_ACTIVATION_MOST. */
int16_t graft_part_log(int64_t amount, uint64_t whole);
/* Of a node of a graph that was just estimated at `whole`; `out` has GRAFT_SCENE_FEATURES entries. */
void graft_scene_node(const graft_estimator *estimator, uint64_t whole, graft_index node,
                      int8_t *out);
/* `first` is the cost of the graph that rewriting began with; `out` has GRAFT_SCENE_GLOBALS entries. */
void graft_scene_globals(const graft_estimated *now, uint64_t first, int8_t *out);
/* Of a rewrite of a graph that was estimated at `now`; `out` has GRAFT_FACT_SEEN entries. */
void graft_candidate_facts(const graft_change *change, const graft_estimated *now, int16_t *out);
/* The cost of a change with what is doubted of it: some seven tenths of what the halves of the trees differ
 * by about it. What both get wrong alike is not doubted, nor a product that takes in a bias. A gain that
 * rests on a guess is none (0) where the rewrite moves more bytes and saves neither FLOPs nor a node. */
int64_t graft_change_doubted(const graft_change *change);

/* Rewrites known to be good for one graph. A location is the place among all matches of the rule,
 * whatever the limit on new weights; each step is matched anew and the plan dropped when one fails.
 */
typedef struct graft_plan_step {
    uint16_t rule;
    uint16_t location;
} graft_plan_step;

typedef struct graft_recorded_plan {
    uint64_t graph_hash;  /* Of the graph it begins with... */
    uint64_t result_hash; /* ...and of the one it ends with. */
    const graft_plan_step *steps;
    uint16_t step_count;
} graft_recorded_plan;

/* What chooses the next rewrite. */
typedef enum graft_decider {
    /* The network: the candidate with the largest logit, NO-OP among them, which it is the tariff's
     * to begin with: a logit is a prior, which rises with the estimated gain, and what the network adds.
     * What the tariff calls dearer than the graph that rewriting began with is no candidate, unless a
     * recorded plan or `simplify` went there (nothing dearer than that is then). It needs a
     * tariff. On ties the larger gain, then the lowest (rule, location); NO-OP before what is equal. */
    GRAFT_DECIDER_NETWORK = 0,
    /* The tariff: of all rewrites the one that lowers the estimate most, as long as one lowers it
     * by more than the 2^-GRAFT_GAIN_SHIFT-th part; the lowest (rule, location) on ties. Where costs
     * are guessed, what is doubted counts against it (graft_change_doubted). Where none gains that much,
     * the first that is no dearer and leaves fewer nodes. Such a policy holds for any graph and ends
     * by itself; what it takes never makes a graph dearer by its own estimate (recorded plans and
     * `simplify` are not asked). It needs no network: `hidden` is 0 then, and so are all members that
     * describe one. */
    GRAFT_DECIDER_TARIFF = 1
} graft_decider;

/* The rule never makes a graph worse and removes at least one node: graft_simplify applies it. */
#define GRAFT_RULE_ALWAYS 1u
/* The rule gives the same bits for every input, infinities and NaN included. Without the flag it is
 * equal over the reals, or nobody noted more. */
#define GRAFT_RULE_EXACT 2u

/* Rules in a header share a table of pairs, two bytes for each value of a byte (byte pair encoding: Gage,
 * The C Users Journal 12(2), 1994). Where the first of the two is the value itself, that byte of a rule
 * stands for itself, else for the two, and they may stand for others: of the bytes that one unfolds to, at
 * most GRAFT_PAIR_DEPTH second ones wait at a time. The first GRAFT_RULE_HEAD bytes of a rule, its anchor's
 * operator the last of them, stand for themselves. */
#define GRAFT_RULE_HEAD  6u
#define GRAFT_PAIR_DEPTH 4u

/* Everything a generated header holds; all tables are const. */
typedef struct graft_policy {
    uint32_t abi;          /* GRAFT_ABI */
    uint32_t feature_hash; /* GRAFT_FEATURE_HASH */
    const char *metadata;  /* JSON: model, versions, seed, device. */

    const uint8_t *rules;         /* Packed, one behind the other. */
    const uint32_t *rule_offsets; /* (rule_count + 1) into `rules`; the last is its size. */
    const uint8_t *rule_pairs;    /* (256, 2); NULL: all bytes of `rules` stand for themselves. */
    const uint8_t *rule_flags;    /* (rule_count), GRAFT_RULE_... */
    uint16_t rule_count;
    uint16_t location_limit;

    uint16_t hidden; /* 0: no network, and none of what follows. */
    uint16_t latent;
    uint16_t width;
    uint16_t round_count;
    graft_dense input; /* (hidden, GRAFT_SCENE_FEATURES), relu */
    const graft_policy_round *rounds;
    graft_dense global; /* (latent, 2 hidden + GRAFT_SCENE_GLOBALS): [mean h, max h, u] in units of
                           1/256, then tanh, in units of 1/4096 */
    graft_dense place;  /* (width, latent + 2 hidden + GRAFT_FACT_SEEN): [latent, mean, max, facts];
                               the rule's row is added, then relu */
    const int8_t
        *rule_rows;     /* (rule_count + 1, width), in units of 1/32 of place's; NO-OP's last */
    graft_dense second; /* (width, width), relu */
    graft_dense score;  /* (1, width): what is added to the prior */
    uint32_t
        prior_slope; /* A gain's part of the prior: logit units for each of graft_part_log... */
    uint32_t prior_reserve; /* ...less this where it does not gain. */

    const graft_recorded_plan *plans; /* By graph hash, ascending. */
    uint16_t plan_count;

    const graft_tariff *tariff;
    uint8_t decider; /* graft_decider */
} graft_policy;

/* Logits are in units of 1 / 65536. */
#define GRAFT_LOGIT_ONE 65536

/* Bytes of `rule_rows`. */
size_t graft_policy_rows_bytes(const graft_policy *policy);

/* --------------------------------------------------------------- deciding */

struct graft_decision;

typedef struct graft_optimize_options {
    uint64_t weight_bytes_limit; /* As in graft_apply_options; 0 unless the product can run a weight
                                    program. */
    uint32_t step_limit;         /* Most rewrites of one call, simplifications included. */
    uint64_t first_cost; /* For decisions one by one: what the tariff estimated of the graph that
                            rewriting began with. 0: it begins with this one. */
    uint16_t call_ns;    /* What calling a kernel takes where the graph will run, besides what the
                            kernel takes: each node costs so much more. */
    bool use_plans;      /* Replay a recorded plan when the graph has one. */
    bool simplify;       /* Apply the rules marked "always" first and after each step. */
    bool guard;          /* Stop when a graph comes back. */
    bool exact;          /* Use only rules marked GRAFT_RULE_EXACT. */
    /* Rules that are not used: bit r % 8 of byte r / 8 for rule r, (rule_count + 7) / 8 bytes. NULL:
     * all are. A plan with such a step, or one that is not exact, is dropped there. */
    const uint8_t *skipped_rules;
    /* Numbers of the caller's, one for each node id (limits.nodes of them), or NULL. A node that a rule
     * makes gets the number of the matched node whose output it takes over, else the one of the node
     * that the match begins with: what belonged to a layer, a line of source or a core still does. */
    uint32_t *node_tags;
    /* Called after each rewrite, or NULL. The graph may be read, not changed. */
    void (*observe)(void *context, const graft_graph *graph, const struct graft_decision *decision);
    void *observe_context;
} graft_optimize_options;

/* No new weights, 256 steps, plans, simplification and guard switched on, every rule. */
graft_optimize_options graft_optimize_options_default(void);

/* Unpacks rule `r`, for products that choose among rules: by the operators of its target, say.
 * GRAFT_BAD_INPUT when there is none of that number, or it is malformed. */
GRAFT_MUST_USE graft_status graft_policy_rule(const graft_policy *policy, uint32_t r,
                                              graft_rule *rule);
/* Marks in `skipped`, as in graft_optimize_options, every rule with a target node whose operator is
 * not among `operators`: bit op % 8 of byte op / 8 is set for what the product can run. The other
 * bits stay as they are. */
GRAFT_MUST_USE graft_status graft_policy_skip_unrunnable(const graft_policy *policy,
                                                         const uint8_t *operators,
                                                         uint8_t *skipped);

typedef enum graft_decision_origin {
    GRAFT_FROM_POLICY = 0,
    GRAFT_FROM_PLAN = 1,
    GRAFT_FROM_SIMPLIFY = 2
} graft_decision_origin;

/* One rewrite, as applied: node ids are those before it. */
typedef struct graft_decision {
    graft_index nodes[GRAFT_RULE_MAX_NODES]; /* Matched nodes, in pattern order. */
    uint16_t rule;                           /* rule_count: NO-OP; all else is 0 then. */
    uint16_t location;
    uint16_t location_count; /* Locations that the rule had; 0 when they were not counted. */
    uint8_t node_count;
    uint8_t origin;      /* graft_decision_origin */
    int64_t cost_change; /* Estimated by the tariff where it decided; 0 otherwise. */
} graft_decision;

typedef enum graft_stop {
    GRAFT_STOP_NO_OP = 0,   /* The policy chose to stop. */
    GRAFT_STOP_NO_RULE = 1, /* No rule has a location. */
    GRAFT_STOP_STEP_LIMIT = 2,
    GRAFT_STOP_REPEATED = 3, /* The graph is one that has been before. */
    GRAFT_STOP_PLAN = 4      /* A recorded plan came to its end. */
} graft_stop;

typedef struct graft_report {
    graft_decision *decisions; /* The caller's, may be NULL: where the first `decision_limit`
                                  rewrites are written. */
    uint32_t decision_limit;
    uint32_t step_count; /* Rewrites in all; of those: */
    uint32_t plan_step_count;
    uint32_t simplify_step_count;
    graft_stop stop;
    bool plan_dropped;     /* A recorded plan did not fit; the policy went on from there. */
    uint64_t weight_bytes; /* New weights created by all rewrites together. */
    uint64_t hash_before;
    uint64_t hash_after;
    graft_index active_before; /* Nodes that run at each inference. */
    graft_index active_after;
    graft_estimated estimated_before; /* By the policy's tariff. */
    graft_estimated estimated_after;
} graft_report;

/* What the policy thinks of a graph; arrays lie in the workspace until its next use. What its
 * decider does not compute is NULL or 0. */
typedef struct graft_scores {
    const uint16_t *counts; /* (rule_count): locations of each rule */
    const int16_t *latent;  /* (latent), in units of 1/4096 */
    int64_t logit;          /* The choice's, and that of NO-OP; 0 where the tariff decides. */
    int64_t noop_logit;
    graft_change change; /* By the tariff: what the choice would change. */
    uint16_t rule;       /* The choice; rule_count: NO-OP. */
    uint16_t location;
} graft_scores;

/* Bytes for the calls below on graphs with these limits; a `step_limit` for graft_optimize. */
size_t graft_optimize_workspace_bytes(const graft_policy *policy, const graft_limits *limits,
                                      uint32_t step_limit);
/* With so many the engine remembers from one decision to the next where rules do not fit, and takes
 * half the time. Decisions stay the same; more bytes are of no use. */
size_t graft_optimize_workspace_most_bytes(const graft_policy *policy, const graft_limits *limits,
                                           uint32_t step_limit);

/* Decides without applying; unless options->first_cost says otherwise, rewriting begins with this
 * graph. This call and the next ones fail before anything is changed, with GRAFT_BAD_INPUT when the
 * policy was made for another build of Graft or is damaged, or the graph has a cycle; GRAFT_NO_MEMORY
 * when the workspace is too small; GRAFT_CAPACITY beyond GRAFT_ESTIMATE_NODES. What would leave more
 * nodes than that is no location. */
GRAFT_MUST_USE graft_status graft_policy_scores(const graft_graph *graph,
                                                const graft_policy *policy,
                                                const graft_optimize_options *options,
                                                void *workspace, size_t workspace_bytes,
                                                graft_scores *scores);
/* Decides and applies one rewrite; `decision->rule` is rule_count when it was NO-OP. */
GRAFT_MUST_USE graft_status graft_policy_step(graft_graph *graph, const graft_policy *policy,
                                              const graft_optimize_options *options,
                                              void *workspace, size_t workspace_bytes,
                                              graft_decision *decision);
/* Applies the rules marked "always" until none fits. `report` as below. */
GRAFT_MUST_USE graft_status graft_simplify(graft_graph *graph, const graft_policy *policy,
                                           const graft_optimize_options *options, void *workspace,
                                           size_t workspace_bytes, graft_report *report);
/* Simplifies, replays a plan or follows the policy until it stops; at most options->step_limit
 * rewrites. `report` may be NULL; its `decisions` and `decision_limit` are read, all else is
 * written. Every status but GRAFT_OK leaves the graph as it was. */
GRAFT_MUST_USE graft_status graft_optimize(graft_graph *graph, const graft_policy *policy,
                                           const graft_optimize_options *options, void *workspace,
                                           size_t workspace_bytes, graft_report *report);

/* The same in slices, for programs that cannot wait: begin, then some candidates at a time until
 * *finished. A candidate is a node where a rule could begin. A network sees the graph in one go at the
 * beginning of a decision; simplifying, replaying a plan and one rewrite are not divided either.
 * Decisions and report are those of graft_optimize, however it is cut. Between the calls graph, policy,
 * workspace and report stay as they are; what options point to does so until the end. */
GRAFT_MUST_USE graft_status graft_optimize_begin(graft_graph *graph, const graft_policy *policy,
                                                 const graft_optimize_options *options,
                                                 void *workspace, size_t workspace_bytes,
                                                 graft_report *report);
/* `workspace` is that of graft_optimize_begin, which succeeded; nothing fails from then on, and the
 * status is GRAFT_OK. The graph is sound after each call, so that a program may also stop here. */
GRAFT_MUST_USE graft_status graft_optimize_some(void *workspace, uint32_t candidate_limit,
                                                bool *finished);

#endif
