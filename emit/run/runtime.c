/* runtime.c - see runtime.h. */
#include "emit/run/runtime.h"

#include "graph/equal.h"
#include "graph/rule/rulefile.h"
#include "graph/rule/ruleparse.h"

#include <string.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

#define ZERO_BIAS "fill(value=0,dim=[dim(b,0)])"
#define ACTIVATIONS(before, after)                                                                 \
    "relu(" before ") = " after "relu)", "clip(" before ",low=0,high=6) = " after "relu6)",        \
        "sigmoid(" before ") = " after "sigmoid)", "tanh(" before ") = " after "tanh)"

/* A product takes an activation. */
static const char *const activations[] = {
    ACTIVATIONS("conv_bias#1(a,b,c,activation=none)", "conv_bias#1(a,b,c,activation="),
    ACTIVATIONS("conv#1(a,b)", "conv_bias#1(a,b," ZERO_BIAS ",activation="),
    ACTIVATIONS("conv_bias_add#1(a,b,c,d,activation=none)", "conv_bias_add#1(a,b,c,d,activation="),
    ACTIVATIONS("matmul_bias(a,b,c,activation=none)", "matmul_bias(a,b,c,activation="),
};

#define FREE(product)                                                                              \
    "relu(" product ") = " product, "clip#2(" product ") = " product,                              \
        "sigmoid(" product ") = " product, "tanh(" product ") = " product,                         \
        "leaky_relu#2(" product ") = " product

/* A convolution along one axis is one of images of one row, between reshapes. */
#define FREE_OF_ROWS(product) FREE("reshape#3(" product ")")

/* Of a device that does not say what it fuses. It takes no time there: what is measured for one
 * with and one without differs by less than by what runtimes differ, and no rewrite may find the
 * difference worth parting them. */
static const char *const free_activations[] = {
    FREE("conv#1(a,b)"),
    FREE("conv_bias#1(a,b,c,activation=none)"),
    FREE("conv_bias_add#1(a,b,c,d,activation=none)"),
    FREE("matmul_bias(a,b,c,activation=none)"),
    FREE_OF_ROWS("conv#1(a,b)"),
    FREE_OF_ROWS("conv_bias#1(a,b,c,activation=none)"),
    "conv_bias#1(a,b,c) = conv_bias#1(a,b,c,activation=none) where 1 <= #1.activation",
    ("conv_bias_add#1(a,b,c,d) = conv_bias_add#1(a,b,c,d,activation=none)"
     " where 1 <= #1.activation"),
    "matmul_bias#1(a,b,c) = matmul_bias(a,b,c,activation=none) where 1 <= #1.activation",
};

#define PADDED(conv, more)                                                                         \
    conv "(pad#2(a,axis=2,value=0),b" more ") = " conv "(a,b" more                                 \
         ",pad_top=#1.pad_top + #2.before,pad_bottom=#1.pad_bottom + #2.after)",                   \
        conv "(pad#2(a,axis=3,value=0),b" more ") = " conv "(a,b" more                             \
             ",pad_left=#1.pad_left + #2.before,pad_right=#1.pad_right + #2.after)"

/* A product takes a bias and a residual input, and what is constant in every channel goes into the
 * weights. A convolution pads by itself. */
#define BIASED(condition)                                                                          \
    "mul(conv_bias#1(a,b,c,activation=none),d) = conv_bias#1(a,"                                   \
    "mul(b,reshape(d,dim=[dim(b,0),1,1,1])),mul(c,reshape(d,dim=[dim(b,0)])),activation=none)"     \
    " where const(b) and const(c) and const(d) and " condition,                                    \
        "add(conv_bias#1(a,b,c,activation=none),d) ="                                              \
        " conv_bias#1(a,b,add(c,reshape(d,dim=[dim(b,0)])),activation=none)"                       \
        " where const(c) and const(d) and " condition

static const char *const sums[] = {
    BIASED("rank(d) = 3 and dim(d,1) = 1 and dim(d,2) = 1 and dim(d,0) = dim(b,0)"),
    BIASED(
        "rank(d) = 4 and dim(d,0) = 1 and dim(d,2) = 1 and dim(d,3) = 1 and dim(d,1) = dim(b,0)"),
    "add(conv#1(a,b),c) = conv_bias#1(a,b,reshape(c,dim=[dim(b,0)]),activation=none)"
    " where const(c) and rank(c) = 3 and dim(c,1) = 1 and dim(c,2) = 1",
    "add(conv#1(a,b),c) = conv_bias#1(a,b,reshape(c,dim=[dim(b,0)]),activation=none)"
    " where const(c) and rank(c) = 4 and dim(c,2) = 1 and dim(c,3) = 1",
    "mul(conv#1(a,b),c) = conv#1(a,mul(b,reshape(c,dim=[dim(b,0),1,1,1])))"
    " where const(b) and const(c) and rank(c) = 3 and dim(c,1) = 1 and dim(c,2) = 1",
    "scale_shift(conv#1(a,b),c,d) ="
    " conv_bias#1(a,mul(b,reshape(c,dim=[dim(c,0),1,1,1])),d,activation=none)"
    " where const(b) and const(c) and const(d)",
    "scale_shift(conv_bias#1(a,b,e,activation=none),c,d) ="
    " conv_bias#1(a,mul(b,reshape(c,dim=[dim(c,0),1,1,1])),add(mul(e,c),d),activation=none)"
    " where const(b) and const(c) and const(d) and const(e)",
    "add(conv_bias#1(a,b,c,activation=none),d) = conv_bias_add#1(a,b,c,d,activation=none)",
    "add(conv#1(a,b),c) = conv_bias_add#1(a,b," ZERO_BIAS ",c,activation=none)",
    "add(matmul(a,b),c) = matmul_bias(a,b,c,activation=none) where const(c) and rank(c) = 1",
    PADDED("conv#1", ""),
    PADDED("conv_bias#1", ",c"),
    PADDED("conv_bias_add#1", ",c,d"),
};

#define NUMBER(value)   "fill(value=" value ",dim=[])"
#define HALF            NUMBER("0.5")
#define ONE             NUMBER("1")
#define ERF_BELL(inner) "add(erf(" inner ")," ONE ")"
#define ERF_GELU(inner)                                                                            \
    "mul(mul(a," ERF_BELL(inner) ")," HALF ") = gelu(a)",                                          \
        "mul(mul(a," HALF ")," ERF_BELL(inner) ") = gelu(a)",                                      \
        "mul(a,mul(" ERF_BELL(inner) "," HALF ")) = gelu(a)"
#define TANH_BELL                                                                                  \
    "add(tanh(mul(add(a,mul(mul(mul(a,a),a)," NUMBER("0.044715") "))," NUMBER(                     \
        "0.7978846") "))," ONE ")"
#define ROOT "sqrt(add(reduce_mean#1(mul(a,a)),fill#2(dim=[])))"
#define OVER_ROOT(quotient, rank, axes)                                                            \
    "mul(" quotient ",b) = rms_norm(a,b,epsilon=#2.value)"                                         \
    " where rank(b) = 1 and rank(a) = " rank " and #1.axes = " axes " and #1.keep = 1"
#define MEAN_SQUARE(rank, axes)                                                                    \
    OVER_ROOT("div(a," ROOT ")", rank, axes),                                                      \
        OVER_ROOT("mul(a,div(" ONE "," ROOT "))", rank, axes),                                     \
        "add(rms_norm#1(sub(a,reduce_mean#2(a)),b),c) = layer_norm(a,b,c,epsilon=#1.epsilon)"      \
        " where rank(c) = 1 and rank(a) = " rank " and #2.axes = " axes " and #2.keep = 1"

/* What the executor has a kernel for. Roots of two and of two by pi are the nearest numbers. */
static const char *const own_kernels[] = {
    "mul(a,sigmoid(a)) = swish(a,alpha=1)",
    "div(mul(a,clip(add(a," NUMBER("3") "),low=0,high=6))," NUMBER("6") ") = hard_swish(a)",
    ERF_GELU("div(a," NUMBER("1.4142135") ")"),
    ERF_GELU("mul(a," NUMBER("0.70710677") ")"),
    "mul(mul(a," HALF ")," TANH_BELL ") = gelu_tanh(a)",
    MEAN_SQUARE("2", "2"),
    MEAN_SQUARE("3", "4"),
    MEAN_SQUARE("4", "8"),
};

/* Constants are not looked at: a rewrite that parts such a chain loses, whatever they are. */
#define BELL       "add(erf(div(a,b)),c)"
#define BELL_TIMES "add(erf(mul(a,b)),c)"
#define CONST_BCD  " where const(b) and const(c) and const(d)"
#define CONST_BCDE CONST_BCD " and const(e)"
/* With the half anywhere else onnxruntime leaves the parts. */
#define TANH_GELU(bend) "mul(mul(a,b),add(tanh(" bend "),c)) = gelu(a)"
/* By the root of the mean square; layer normalisation is that of what has no mean, and a summand.
 * Without their factors runtimes see neither. */
#define NORMAL(rank, axes)                                                                         \
    "mul(div(a,sqrt(add(reduce_mean#1(mul(a,a)),b))),c) = rms_norm(a,c,epsilon=0.00001)"           \
    " where const(b) and rank(c) = 1 and rank(a) = " rank " and #1.axes = " axes,                  \
        "add(rms_norm#1(sub(a,reduce_mean#2(a)),b),c) = layer_norm(a,b,c,epsilon=0.00001)"         \
        " where rank(c) = 1 and rank(a) = " rank " and #2.axes = " axes

/* One number that scales a product is a factor of its kernel, whichever side it stands on. */
#define SCALED(condition)                                                                          \
    "mul(matmul(a,b),c) = matmul(a,b) where const(c) and " condition,                              \
        "div(matmul(a,b),c) = matmul(a,b) where const(c) and " condition,                          \
        "matmul(mul(a,c),b) = matmul(a,b) where const(c) and " condition,                          \
        "matmul(div(a,c),b) = matmul(a,b) where const(c) and " condition,                          \
        "matmul(a,mul(b,c)) = matmul(a,b) where const(c) and " condition,                          \
        "matmul(a,div(b,c)) = matmul(a,b) where const(c) and " condition

/* Heads that part for the scores of attention and come together again: a kernel for all of it moves
 * nothing. Here reshapes stand for the moves, which take no time. */
#define HEADS(x)                 "transpose(" x ",axis=[0,2,1,3])"
#define KEYS(x)                  "transpose(" x ",axis=[0,2,3,1])"
#define MOVED(x, d0, d1, d2, d3) "reshape(" x ",dim=[" d0 "," d1 "," d2 "," d3 "])"

static const char *const kernels[] = {
    /* Gelu as exporters write it, by erf and by tanh. */
    "mul(mul(a," BELL "),d) = gelu(a)" CONST_BCD,
    "mul(mul(a,d)," BELL ") = gelu(a)" CONST_BCD,
    "mul(a,mul(" BELL ",d)) = gelu(a)" CONST_BCD,
    "mul(mul(a," BELL_TIMES "),d) = gelu(a)" CONST_BCD,
    "mul(mul(a,d)," BELL_TIMES ") = gelu(a)" CONST_BCD,
    "mul(a,mul(" BELL_TIMES ",d)) = gelu(a)" CONST_BCD,
    TANH_GELU("mul(add(a,mul(mul(mul(a,a),a),e)),d)") CONST_BCDE,
    TANH_GELU("mul(mul(a,d),add(mul(mul(a,e),a),f))") CONST_BCDE " and const(f)",
    "gelu_tanh(a) = gelu(a)",
    /* Normalisation over the last axis. */
    NORMAL("2", "2"),
    NORMAL("3", "4"),
    NORMAL("4", "8"),
    /* So that a search which puts parts together passes by nothing dearer. */
    "mul(layer_norm#1(a,b,c),d) = layer_norm#1(a,d,c) where rank(d) = 1",
    "add(layer_norm#1(a,b,c),d) = layer_norm#1(a,b,d) where rank(d) = 1",
    /* One resizing, whichever axis comes first. */
    "repeat#1(repeat#2(a,axis=3),axis=2) = repeat#2(repeat#1(a,axis=2),axis=3)",
    SCALED("rank(c) = 0"),
    SCALED("rank(c) = 1 and dim(c,0) = 1"),
    /* The scores of attention, masked. */
    "softmax#1(add(matmul(a,b),c)) = softmax#1(matmul(a,b)) where 3 <= rank(a)",
    "softmax#1(matmul(" HEADS("a") "," KEYS("b") ")) = softmax#1(matmul(" MOVED(
        "a", "dim(a,0)", "dim(a,2)", "dim(a,1)", "dim(a,3)") "," MOVED("b", "dim(b,0)", "dim(b,2)",
                                                                       "dim(b,3)", "dim(b,1)") "))",
    /* Queries that are known are stored as they are moved. */
    "softmax#1(matmul(a," KEYS("b") ")) = softmax#1(matmul(a," MOVED(
        "b", "dim(b,0)", "dim(b,2)", "dim(b,3)", "dim(b,1)") ")) where const(a)",
    HEADS("matmul(softmax#1(a)," HEADS("b") ")") " = " MOVED(
        "matmul(softmax#1(a)," MOVED("b", "dim(b,0)", "dim(b,2)", "dim(b,1)", "dim(b,3)") ")",
        "dim(b,0)", "dim(a,2)", "dim(b,2)", "dim(b,3)"),
};

static graft_status parse_rules(graft_env *env, graft_arena *arena, const char *const *texts,
                                size_t count, graft_xfers *xfers)
{
    graft_rule *rules = GRAFT_NEW(arena, graft_rule, count);
    for (size_t i = 0; i < count; i++) {
        GRAFT_PASS(graft_rule_parse(env, "a runtime's fusion", texts[i], &rules[i]));
    }
    graft_xfers_index(arena, rules, texts, (uint32_t)count, xfers);
    return GRAFT_OK;
}

graft_status graft_runtime_open(graft_env *env, graft_arena *arena, const char *const *fuses,
                                uint32_t fuse_count, graft_runtime *runtime)
{
    fuse_count = fuses == NULL ? COUNT_OF(free_activations) : fuse_count;
    fuses = fuses == NULL ? free_activations : fuses;
    enum { RUN = COUNT_OF(activations) + COUNT_OF(sums) };
    const char **run = GRAFT_NEW(arena, const char *, RUN + COUNT_OF(own_kernels));
    const char **priced =
        GRAFT_NEW(arena, const char *, fuse_count + COUNT_OF(sums) + COUNT_OF(kernels));
    memcpy(run, activations, sizeof(activations));
    memcpy(run + COUNT_OF(activations), sums, sizeof(sums));
    memcpy(run + RUN, own_kernels, sizeof(own_kernels));
    for (uint32_t i = 0; i < fuse_count; i++) {
        priced[i] = fuses[i];
    }
    memcpy(priced + fuse_count, sums, sizeof(sums));
    memcpy(priced + fuse_count + COUNT_OF(sums), kernels, sizeof(kernels));
    GRAFT_PASS(parse_rules(env, arena, run, RUN, &runtime->run));
    GRAFT_PASS(parse_rules(env, arena, run, RUN + COUNT_OF(own_kernels), &runtime->own));
    return parse_rules(env, arena, priced, fuse_count + COUNT_OF(sums) + COUNT_OF(kernels),
                       &runtime->priced);
}

/* ---------------------------------------------------------------- fusing */

/* A graph that is being fused. Its order is that of before the pass. */
typedef struct {
    graft_state state;
    bool *made;  /* By node: in this pass, so the order knows nothing of it. */
    bool *fused; /* By node: in any. */
    bool own;    /* By the executor, not by others. */
} fusing;

static bool is_old(const fusing *f, const graft_rule *rule, const graft_match *match)
{
    bool old = true;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        old = old && !f->made[match->nodes[n]];
    }
    return old;
}

static void note_made(fusing *f, const graft_effect *effect)
{
    for (uint32_t n = 0; n < effect->created_count; n++) {
        if (effect->created[n] != GRAFT_NONE) {
            f->made[effect->created[n]] = true;
            f->fused[effect->created[n]] = true;
        }
    }
}

/* The operator that makes a value; GRAFT_OP_NONE: none does. */
static uint32_t op_of(const graft_graph *graph, graft_index value)
{
    const graft_value *made = &graph->values[value];
    return made->kind == GRAFT_VALUE_COMPUTED ? graph->nodes[made->node].op : GRAFT_OP_NONE;
}

/* A transpose before a normalisation in parts is moved behind its difference by onnxruntime, which
 * then sees no normalisation but only a root of a mean square. Behind a sum it would make one
 * kernel of both, which takes as long as the parts or longer. */
static bool is_parted(const fusing *f, const graft_rule *rule, const graft_match *match)
{
    const graft_graph *graph = &f->state.graph;
    if (f->own || !graft_pattern_has(&rule->source, GRAFT_OP_sub) ||
        op_of(graph, match->vars[0]) != GRAFT_OP_transpose) {
        return false;
    }
    const graft_index moved = graft_node_input(graph, graph->values[match->vars[0]].node, 0);
    return op_of(graph, moved) != GRAFT_OP_add;
}

/* Applies the first rule that fits at a node. */
static bool fuse_at(fusing *f, const graft_xfers *xfers, graft_index node)
{
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    uint32_t op = f->state.graph.nodes[node].op;
    for (uint32_t i = xfers->anchor_first[op]; i < xfers->anchor_first[op + 1]; i++) {
        const graft_rule *rule = &xfers->rules[xfers->by_anchor[i]];
        graft_matcher matcher;
        graft_match match;
        graft_effect effect;
        graft_matcher_start(&matcher, rule, &f->state.graph, &f->state.order, node);
        while (graft_matcher_next(&matcher, &match)) {
            if (is_old(f, rule, &match) && !is_parted(f, rule, &match) &&
                graft_apply(&f->state.graph, rule, &match, &f->state.order, &options,
                            f->state.scratch, &effect) == GRAFT_OK) {
                note_made(f, &effect);
                return true;
            }
        }
    }
    return false;
}

/* One pass over all nodes, consumers first, so that the largest patterns are met first. What it
 * makes is left alone until the next: the order does not count its readings. */
static bool fuse_once(fusing *f, const graft_xfers *xfers)
{
    bool changed = false;
    memset(f->made, 0, f->state.graph.limits.nodes * sizeof(f->made[0]));
    for (graft_index i = f->state.order.count; i-- > 0;) {
        graft_index n = f->state.order.order[i];
        uint32_t op = f->state.graph.nodes[n].op;
        if (op < GRAFT_OP_COUNT && op != GRAFT_OP_NONE && !f->made[n] && fuse_at(f, xfers, n)) {
            changed = true;
        }
    }
    return changed;
}

/* By which rules, and who does it. */
typedef struct {
    const graft_xfers *xfers;
    bool own; /* The executor. */
} fusions;

/* *fused: by node, whether it was made here; NULL: none was. */
static graft_status fuse(graft_env *env, graft_arena *arena, fusions by, const graft_graph **graph,
                         const graft_order **order, const bool **fused)
{
    graft_equal_merge(arena, graph, order);
    graft_limits limits = graft_state_limits(*graph);
    limits.edges += (*graph)->edge_end; /* Closing gaps takes a time quadratic in nodes. */
    fusing *f = GRAFT_NEW(arena, fusing, 1);
    f->made = GRAFT_NEW(arena, bool, limits.nodes);
    f->fused = GRAFT_NEW(arena, bool, limits.nodes);
    f->own = by.own;
    *fused = NULL;
    graft_state_open(arena, &limits, &f->state);
    GRAFT_PASS(graft_state_copy(env, &f->state, *graph, *order));
    while (fuse_once(f, by.xfers)) {
        if (graft_order_build(&f->state.order, &f->state.graph, f->state.order_memory,
                              f->state.order_bytes) != GRAFT_OK) {
            return GRAFT_FAIL(env, GRAFT_INTERNAL, "a fused graph has a cycle");
        }
        *graph = &f->state.graph;
        *order = &f->state.order;
        *fused = f->fused;
    }
    return GRAFT_OK;
}

graft_status graft_runtime_fuse(graft_env *env, graft_arena *arena, const graft_xfers *xfers,
                                const graft_graph **graph, const graft_order **order)
{
    const bool *fused = NULL;
    return fuse(env, arena, (fusions){xfers, false}, graph, order, &fused);
}

graft_status graft_runtime_fuse_own(graft_env *env, graft_arena *arena,
                                    const graft_runtime *runtime, const graft_graph **graph,
                                    const graft_order **order)
{
    const bool *fused = NULL;
    return fuse(env, arena, (fusions){&runtime->own, true}, graph, order, &fused);
}

/* ------------------------------------------------------------------- calls */

/* Runtimes leave these out, or make them parts of their neighbours. */
static bool is_no_kernel(const graft_graph *graph, graft_index node)
{
    const uint32_t op = graph->nodes[node].op;
    return op == GRAFT_OP_identity || op == GRAFT_OP_quantise || op == GRAFT_OP_dequantise;
}

/* Constants are worked out when a model is loaded, but for what stays to be changed from 8 bits. */
static bool is_known(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    return n->is_const && (n->op == GRAFT_OP_fill || n->op == GRAFT_OP_OPAQUE);
}

static bool is_work(const graft_graph *graph, graft_index node)
{
    return !is_no_kernel(graph, node) && graph->nodes[node].op != GRAFT_OP_reshape;
}

/* By piece of the file: the nodes of a graph that are its. */
typedef struct {
    uint32_t nodes;
    uint32_t work;
} piece;

/* Of pieces that are whole, or of which some work is left, each is a call. */
static uint32_t count_pieces(const piece *whole, const piece *left, uint32_t count)
{
    uint32_t calls = 0;
    for (uint32_t p = 0; p < count; p++) {
        calls += left[p].work > 0 || (left[p].nodes > 0 && left[p].nodes == whole[p].nodes);
    }
    return calls;
}

static void note_piece(const graft_graph *graph, const uint32_t *pieces, graft_index node,
                       piece *noted)
{
    if (pieces[node] != GRAFT_NONE && !is_no_kernel(graph, node) && !is_known(graph, node)) {
        noted[pieces[node]].nodes++;
        noted[pieces[node]].work += is_work(graph, node);
    }
}

graft_status graft_runtime_calls(graft_env *env, graft_arena *arena, const graft_runtime *runtime,
                                 const graft_model *model, const graft_graph **graph,
                                 const graft_order **order, uint32_t *calls)
{
    const bool *fused = NULL;
    const uint32_t *pieces = NULL;
    uint32_t count = 0;
    GRAFT_PASS(graft_model_pieces(env, arena, model, *graph, &pieces, &count));
    piece *whole = GRAFT_NEW(arena, piece, count);
    piece *left = GRAFT_NEW(arena, piece, count);
    for (graft_index i = 0; i < (*order)->count; i++) {
        note_piece(*graph, pieces, (*order)->order[i], whole);
    }
    GRAFT_PASS(fuse(env, arena, (fusions){&runtime->priced, false}, graph, order, &fused));
    *calls = 0;
    for (graft_index i = 0; i < (*order)->count; i++) {
        const graft_index n = (*order)->order[i];
        if (fused != NULL && fused[n]) {
            *calls += !(*graph)->nodes[n].is_const && is_work(*graph, n);
        } else {
            note_piece(*graph, pieces, n, left);
        }
    }
    *calls += count_pieces(whole, left, count);
    return GRAFT_OK;
}
