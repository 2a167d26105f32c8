/* Laws that the families must find: each source graph is rewritten by the candidates, with the
 * engine's own matcher, until the target graph appears. A row tells how many steps that may take.
 */
#include "gen/gen.h"
#include "graph/base/log.h"
#include "tests/support/build.h"
#include "tests/support/rows.h"

#include <stdlib.h>
#include <string.h>

#define SAME3                                                                                      \
    ", stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, "   \
    "dilation_w=1, groups=1"
#define HALF3                                                                                      \
    ", stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, "   \
    "dilation_w=1, groups=1"
#define POINT                                                                                      \
    ", stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, "   \
    "dilation_w=1, groups=1"
#define PAIR3                                                                                      \
    ", stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, "   \
    "dilation_w=1, groups=2"
#define MAX3                                                                                       \
    ", kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=0, pad_left=0, pad_bottom=0, "      \
    "pad_right=0, dilation_h=1, dilation_w=1"
#define AVG2                                                                                       \
    ", kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, pad_top=0, pad_left=0, pad_bottom=0, "      \
    "pad_right=0, count_pad=0"
#define ACT(name) ", activation=" name
#define RELU6     ", low=0, high=6"
#define ZERO2     "fill(value=0, dim=[2])"
#define NONE      "fill(value=0, dim=[])"
#define ONE       "fill(value=1, dim=[])"

enum { STATES_MOST = 4096 };

/* Shapes of the variables, in order; "w" marks a weight. */
typedef struct {
    const char *name;
    const char *shapes;
    const char *rule;
    uint32_t steps;
} law;

/* clang-format off */
static const law laws[] = {
    /* Arithmetic. */
    {"add associates", "5,7 5,7 5,7", "add(add(a, b), c) = add(a, add(b, c))", 1},
    {"mul associates", "5,7 5,7 5,7", "mul(mul(a, b), c) = mul(a, mul(b, c))", 1},
    {"mul distributes", "5,7 5,7 5,7", "mul(a, add(b, c)) = add(mul(a, b), mul(a, c))", 1},
    {"a common factor", "5,7 5,7 5,7", "add(mul(a, b), mul(a, c)) = mul(a, add(b, c))", 1},
    {"a vector factor", "5,7 5,7 7", "mul(c, add(a, b)) = add(mul(c, a), mul(c, b))", 1},
    {"division distributes", "5,7 5,7 5,7", "div(add(a, b), c) = add(div(a, c), div(b, c))", 1},
    {"add zero", "5,7", "add(a, " NONE ") = a", 1},
    {"times one", "5,7", "mul(a, " ONE ") = a", 1},
    {"identity", "5,7", "identity(a) = a", 1},
    {"subtract what was added", "5,7 5,7", "sub(add(a, b), b) = a", 1},
    /* Order. */
    {"relu of relu", "5,7", "relu(relu(a)) = relu(a)", 1},
    {"relu is a maximum", "5,7", "max(a, " NONE ") = relu(a)", 1},
    {"max absorbs min", "5,7 5,7", "max(a, min(a, b)) = a", 1},
    {"min over max", "5,7 5,7 5,7", "min(a, max(b, c)) = max(min(a, b), min(a, c))", 1},
    {"add over max", "5,7 5,7 5,7", "add(a, max(b, c)) = max(add(a, b), add(a, c))", 1},
    {"clip of relu", "5,7", "clip(relu(a)" RELU6 ") = clip(a" RELU6 ")", 1},
    {"relu of a sigmoid", "5,7", "relu(sigmoid(a)) = sigmoid(a)", 1},
    {"relu of a square", "5,7", "relu(mul(a, a)) = mul(a, a)", 1},
    /* Functions. */
    {"tanh is odd", "5,7", "tanh(sub(" NONE ", a)) = sub(" NONE ", tanh(a))", 1},
    {"sigmoid of minus x", "5,7", "sigmoid(sub(" NONE ", a)) = sub(" ONE ", sigmoid(a))", 1},
    /* Matrices. */
    {"matmul associates", "2,3 3,4 4,5", "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))", 1},
    {"matmul distributes left", "2,3 3,4 3,4", "add(matmul(a, b), matmul(a, c)) = matmul(a, add(b, c))", 1},
    {"matmul distributes right", "2,3 2,3 3,4", "add(matmul(a, c), matmul(b, c)) = matmul(add(a, b), c)", 1},
    {"transpose twice", "2,3", "transpose(transpose(a, axis=[1, 0]), axis=[1, 0]) = a", 1},
    {"transpose of a product", "2,3 3,4",
     "transpose(matmul(a, b), axis=[1, 0]) = matmul(transpose(b, axis=[1, 0]), transpose(a, axis=[1, 0]))", 1},
    {"a scalar moves out", "2,3 3,4 -", "matmul(mul(c, a), b) = mul(c, matmul(a, b))", 1},
    {"matmul takes a bias", "2,3 3,4w 4w", "add(matmul(a, b), c) = matmul_bias(a, b, c" ACT("none") ")", 1},
    {"matmul takes relu", "2,3 3,4w 4w",
     "relu(matmul_bias(a, b, c" ACT("none") ")) = matmul_bias(a, b, c" ACT("relu") ")", 1},
    {"matmul takes tanh", "2,3 3,4w 4w",
     "tanh(matmul_bias(a, b, c" ACT("none") ")) = matmul_bias(a, b, c" ACT("tanh") ")", 1},
    {"products that share a weight", "2,4 4,5w 3,4", "[matmul(a, b), matmul(c, b)] = [split(matmul(concat(a, c, "
     "axis=0), b), axis=0, at=2).0, split(matmul(concat(a, c, axis=0), b), axis=0, at=2).1]", 1},
    {"matmuls share an input", "2,4 4,5w 4,6w", "[matmul(a, b), matmul(a, c)] = [split(matmul(a, concat(b, c, "
     "axis=1)), axis=1, at=5).0, split(matmul(a, concat(b, c, axis=1)), axis=1, at=5).1]", 1},
    {"biased matmuls share an input", "2,4 4,5w 5w 4,6w 6w", "[matmul_bias(a, b, c" ACT("none") "), matmul_bias(a, d, e"
     ACT("none") ")] = [split(matmul_bias(a, concat(b, d, axis=1), concat(c, e, axis=0)" ACT("none")
     "), axis=1, at=5).0, split(matmul_bias(a, concat(b, d, axis=1), concat(c, e, axis=0)" ACT("none")
     "), axis=1, at=5).1]", 1},
    {"blocks of a product", "2,3 2,4 3,5w 4,5w",
     "add(matmul(a, c), matmul(b, d)) = matmul(concat(a, b, axis=1), concat(c, d, axis=0))", 1},
    /* Moves. */
    {"split of concat", "2,5 2,4",
     "[split(concat(a, b, axis=1), axis=1, at=5).0, split(concat(a, b, axis=1), axis=1, at=5).1] = [a, b]", 1},
    {"concat of split", "2,4", "concat(split(a, axis=1, at=2).0, split(a, axis=1, at=2).1, axis=1) = a", 1},
    {"relu and concat", "2,3,2,5 2,4,2,5", "concat(relu(a), relu(b), axis=1) = relu(concat(a, b, axis=1))", 1},
    /* Convolutions. */
    {"convolution is linear in x", "2,3,4,5 2,3,4,5 4,3,3,3w",
     "add(conv(a, c" SAME3 "), conv(b, c" SAME3 ")) = conv(add(a, b), c" SAME3 ")", 1},
    {"convolution is linear in w", "2,3,4,5 4,3,3,3w 4,3,3,3w",
     "add(conv(a, b" HALF3 "), conv(a, c" HALF3 ")) = conv(a, add(b, c)" HALF3 ")", 1},
    {"convolution over channels", "2,3,4,5 2,2,4,5 4,3,3,3w 4,2,3,3w",
     "add(conv(a, c" SAME3 "), conv(b, d" SAME3 ")) = conv(concat(a, b, axis=1), concat(c, d, axis=1)" SAME3 ")", 1},
    {"fold a scale into a convolution", "2,3,4,5 2,3,3,3w 2w 2w", "scale_shift(conv(a, b" SAME3
     "), c, d) = conv_bias(a, mul(b, reshape(c, dim=[2, 1, 1, 1])), d" SAME3 ACT("none") ")", 1},
    {"fold with stride 2", "2,3,4,5 2,3,3,3w 2w 2w", "scale_shift(conv(a, b" HALF3 "), c, d) = conv_bias(a, mul(b, "
     "reshape(c, dim=[2, 1, 1, 1])), d" HALF3 ACT("none") ")", 1},
    {"fold with a bias", "2,3,4,5 2,3,3,3w 2w 2w 2w", "scale_shift(conv_bias(a, b, c" SAME3 ACT("none")
     "), d, e) = conv_bias(a, mul(b, reshape(d, dim=[2, 1, 1, 1])), add(mul(c, d), e)" SAME3 ACT("none") ")", 1},
    {"fold a scale into a grouped convolution", "2,4,4,5 6,2,3,3w 6w 6w", "scale_shift(conv(a, b" PAIR3
     "), c, d) = conv_bias(a, mul(b, reshape(c, dim=[6, 1, 1, 1])), d" PAIR3 ACT("none") ")", 1},
    {"a scale of a scale", "2,3,2 3w 3w 3w 3w",
     "scale_shift(scale_shift(a, b, c), d, e) = scale_shift(a, mul(b, d), add(mul(c, d), e))", 1},
    {"convolution takes relu", "2,3,4,5 2,3,3,3w 2w",
     "relu(conv_bias(a, b, c" SAME3 ACT("none") ")) = conv_bias(a, b, c" SAME3 ACT("relu") ")", 1},
    {"convolution takes relu6", "2,3,4,5 2,3,3,3w 2w",
     "clip(conv_bias(a, b, c" SAME3 ACT("none") ")" RELU6 ") = conv_bias(a, b, c" SAME3 ACT("relu6") ")", 1},
    {"convolution takes sigmoid", "2,3,4,5 2,3,3,3w 2w",
     "sigmoid(conv_bias(a, b, c" SAME3 ACT("none") ")) = conv_bias(a, b, c" SAME3 ACT("sigmoid") ")", 1},
    {"convolution takes tanh", "2,3,4,5 2,3,3,3w 2w",
     "tanh(conv_bias(a, b, c" SAME3 ACT("none") ")) = conv_bias(a, b, c" SAME3 ACT("tanh") ")", 1},
    {"convolution takes a residual", "2,3,4,5 2,3,3,3w 2w 2,2,4,5",
     "add(conv_bias(a, b, c" SAME3 ACT("none") "), d) = conv_bias_add(a, b, c, d" SAME3 ACT("none") ")", 1},
    {"convolution with residual takes relu", "2,3,4,5 2,3,3,3w 2w 2,2,4,5",
     "relu(conv_bias_add(a, b, c, d" SAME3 ACT("none") ")) = conv_bias_add(a, b, c, d" SAME3 ACT("relu") ")", 1},
    {"relu of a convolution without bias", "2,3,4,5 2,3,3,3w",
     "relu(conv(a, b" SAME3 ")) = conv_bias(a, b, " ZERO2 SAME3 ACT("relu") ")", 2},
    {"convolution takes a bias tensor", "2,3,4,5 2,3,3,3w 2,1,1w",
     "add(conv(a, b" SAME3 "), c) = conv_bias(a, b, reshape(c, dim=[2])" SAME3 ACT("none") ")", 2},
    {"convolution takes a batched bias tensor", "2,3,4,5 2,3,3,3w 1,2,1,1w",
     "add(conv(a, b" SAME3 "), c) = conv_bias(a, b, reshape(c, dim=[2])" SAME3 ACT("none") ")", 2},
    {"convolutions that share a kernel", "1,3,4,5 3,3,3,3w 2,3,4,5",
     "[conv(a, b" SAME3 "), conv(c, b" SAME3 ")] = [split(conv(concat(a, c, axis=0), b" SAME3
     "), axis=0, at=1).0, split(conv(concat(a, c, axis=0), b" SAME3 "), axis=0, at=1).1]", 1},
    {"convolutions share an input", "1,3,4,5 2,3,3,3w 4,3,3,3w",
     "[conv(a, b" SAME3 "), conv(a, c" SAME3 ")] = [split(conv(a, concat(b, c, axis=0)" SAME3
     "), axis=1, at=2).0, split(conv(a, concat(b, c, axis=0)" SAME3 "), axis=1, at=2).1]", 1},
    {"biased convolutions share an input", "3,2,5,6 4,2,3,3w 4w 7,2,3,3w 7w",
     "[conv_bias(a, b, c" SAME3 ACT("relu") "), conv_bias(a, d, e" SAME3 ACT("relu") ")] = [split(conv_bias(a, "
     "concat(b, d, axis=0), concat(c, e, axis=0)" SAME3 ACT("relu") "), axis=1, at=4).0, split(conv_bias(a, concat(b, "
     "d, axis=0), concat(c, e, axis=0)" SAME3 ACT("relu") "), axis=1, at=4).1]", 1},
    {"concat of convolutions", "1,3,4,5 2,3,3,3w 4,3,3,3w",
     "concat(conv(a, b" SAME3 "), conv(a, c" SAME3 "), axis=1) = conv(a, concat(b, c, axis=0)" SAME3 ")", 1},
    {"enlarge a kernel", "2,2,6,7 3,2,1,1w", "conv(a, b" POINT ") = conv(a, pad(pad(b, axis=2, before=1, after=1, "
     "value=0), axis=3, before=1, after=1, value=0)" SAME3 ")", 1},
    /* Pools. */
    {"relu and max_pool", "1,2,11,16", "max_pool(relu(a)" MAX3 ") = relu(max_pool(a" MAX3 "))", 1},
    {"1x1 convolution and avg_pool", "1,2,11,16 3,2,1,1w",
     "avg_pool(conv(a, b" POINT ")" AVG2 ") = conv(avg_pool(a" AVG2 "), b" POINT ")", 1},
    {"max_pool and concat", "1,2,11,16 1,3,11,16",
     "concat(max_pool(a" MAX3 "), max_pool(b" MAX3 "), axis=1) = max_pool(concat(a, b, axis=1)" MAX3 ")", 1},
    {"global_avg_pool adds", "1,2,11,16 1,2,11,16",
     "global_avg_pool(add(a, b)) = add(global_avg_pool(a), global_avg_pool(b))", 1},
};
/* clang-format on */

enum { LAW_COUNT = sizeof laws / sizeof laws[0] };

static graft_env shared_env;
static graft_candidates found;

/* ------------------------------------------------------------------ graphs */

/* Reads "2,3 4w -" (a scalar) into the graph's inputs and weights. */
static uint32_t build_sources(graft_graph *graph, const char *text, graft_index *values)
{
    uint32_t count = 0;
    while (*text != '\0') {
        graft_shape shape = {.dtype = GRAFT_DTYPE_F32};
        char *end = NULL;
        for (; *text != ' ' && *text != '\0' && *text != 'w'; text = *end == ',' ? end + 1 : end) {
            long size = strtol(text, &end, 10);
            if (*text == '-') {
                end++;
            } else {
                shape.dims[shape.rank++] = (int32_t)size;
            }
        }
        values[count] =
            *text == 'w' ? build_weight(graph, shape, count) : build_input(graph, shape, count);
        count++;
        text += strspn(text, "w ");
    }
    return count;
}

/* Adds a pattern's nodes as soon as their operands are there; `swaps` has a bit for each node whose
 * first two operands are exchanged. */
static void build_pattern(graft_graph *graph, const graft_pattern *pattern, uint32_t output_count,
                          const graft_index *vars, uint32_t swaps)
{
    graft_index nodes[GRAFT_RULE_MAX_NODES];
    uint32_t done = 0;
    while (done != (1u << pattern->node_count) - 1u) {
        for (uint32_t n = 0; n < pattern->node_count; n++) {
            const graft_pattern_node *node = &pattern->nodes[n];
            graft_index inputs[GRAFT_MAX_INPUTS];
            int32_t attrs[GRAFT_MAX_ATTRS] = {0};
            bool ready = (done >> n & 1u) == 0;
            for (uint32_t i = 0; i < graft_op(node->op)->input_count && ready; i++) {
                graft_operand from = node->inputs[(swaps >> n & 1u) != 0 && i < 2 ? 1 - i : i];
                bool is_node = GRAFT_OPERAND_IS_NODE(from);
                ready = !is_node || (done >> GRAFT_OPERAND_NODE_OF(from) & 1u) != 0;
                inputs[i] = !ready    ? GRAFT_NONE
                            : is_node ? graft_node_output(graph, nodes[GRAFT_OPERAND_NODE_OF(from)],
                                                          GRAFT_OPERAND_SLOT_OF(from))
                                      : vars[from];
            }
            for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
                attrs[i] = node->attrs[i].value;
            }
            if (ready) {
                CHECK_OK(
                    graft_graph_add_node(graph, node->op, attrs, inputs, GRAFT_NONE, &nodes[n]));
                done |= 1u << n;
            }
        }
    }
    for (uint32_t o = 0; o < output_count; o++) {
        graft_operand output = pattern->outputs[o];
        graft_index value = GRAFT_OPERAND_IS_NODE(output)
                                ? graft_node_output(graph, nodes[GRAFT_OPERAND_NODE_OF(output)],
                                                    GRAFT_OPERAND_SLOT_OF(output))
                                : vars[output];
        CHECK_OK(graft_graph_add_output(graph, value));
    }
    graft_graph_remove_dead(graph);
}

/* ------------------------------------------------------------------ search */

typedef struct {
    graft_arena *arena;
    graft_graph *states[STATES_MOST];
    uint64_t hashes[STATES_MOST];
    uint32_t count;
    uint64_t targets[256]; /* The target in every order of its commuting operands. */
    uint32_t target_count;
} search;

static bool is_target(const search *find, uint64_t hash)
{
    for (uint32_t i = 0; i < find->target_count; i++) {
        if (find->targets[i] == hash) {
            return true;
        }
    }
    return false;
}

static void add_state(search *find, graft_graph *graph, uint64_t hash)
{
    for (uint32_t i = 0; i < find->count; i++) {
        if (find->hashes[i] == hash) {
            return;
        }
    }
    if (find->count < STATES_MOST) {
        find->states[find->count] = graph;
        find->hashes[find->count++] = hash;
    }
}

/* Applies one candidate everywhere; true when the target appears. */
static bool apply_candidate(search *find, const graft_graph *from, const graft_rule *rule)
{
    const graft_apply_options options = {UINT64_MAX};
    graft_order order = build_order(find->arena, from);
    void *scratch = build_scratch(find->arena, from);
    for (uint32_t n = 0; n < order.count; n++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rule, from, &order, order.order[n]);
        while (graft_matcher_next(&matcher, &match)) {
            graft_graph *next = build_graph(find->arena);
            CHECK_OK(graft_graph_copy(next, from));
            if (graft_apply(next, rule, &match, &order, &options, scratch, NULL) == GRAFT_OK) {
                uint64_t hash = build_hash(find->arena, next);
                if (is_target(find, hash)) {
                    return true;
                }
                add_state(find, next, hash);
            }
        }
    }
    return false;
}

static uint32_t count_steps(search *find, uint32_t most)
{
    uint32_t done = 0;
    for (uint32_t step = 1; step <= most; step++) {
        uint32_t end = find->count;
        for (; done < end; done++) {
            for (uint32_t i = 0; i < found.count; i++) {
                if (apply_candidate(find, find->states[done], &found.items[i].rule)) {
                    return step;
                }
            }
        }
    }
    return UINT32_MAX;
}

/* Steps from a rule's source to its target; UINT32_MAX when it takes more than `most`. */
static uint32_t find_law(const char *shapes, const char *text, uint32_t most)
{
    graft_env *env = &shared_env;
    graft_rule rule;
    graft_index vars[GRAFT_RULE_MAX_VARS];
    graft_arena_reset(env->unit);
    search *find = GRAFT_NEW(env->unit, search, 1);
    find->arena = env->unit;
    rule = rows_parse(env, text);
    graft_graph *start = build_graph(env->unit);
    assert_int_equal(build_sources(start, shapes, vars), rule.var_count);
    build_pattern(start, &rule.source, rule.output_count, vars, 0);
    add_state(find, start, build_hash(env->unit, start));
    for (uint32_t swaps = 0; swaps < 1u << rule.target.node_count; swaps++) {
        bool valid = true;
        for (uint32_t n = 0; n < rule.target.node_count; n++) {
            bool commutes = (graft_op(rule.target.nodes[n].op)->flags & GRAFT_FLAG_COMMUTES) != 0;
            valid = valid && (commutes || (swaps >> n & 1u) == 0);
        }
        if (valid) {
            graft_graph *target = build_graph(env->unit);
            (void)build_sources(target, shapes, vars);
            build_pattern(target, &rule.target, rule.output_count, vars, swaps);
            find->targets[find->target_count++] = build_hash(env->unit, target);
        }
    }
    return count_steps(find, most);
}

static void test_law(void **state)
{
    const law *row = *state;
    uint32_t steps = find_law(row->shapes, row->rule, row->steps);
    if (steps > row->steps) {
        fail_msg("not found in %u steps: %s", row->steps, row->rule);
    }
}

/* ------------------------------------------------------------- false laws */

static const law wrong[] = {
    {"relu is not linear",      "5,7 5,7",          "relu(add(a, b)) = add(relu(a), relu(b))",               2},
    {"relu of a product",       "5,7 5,7",          "relu(mul(a, b)) = mul(relu(a), relu(b))",               2},
    {"relu and avg_pool",       "1,2,11,16",        "avg_pool(relu(a)" AVG2 ") = relu(avg_pool(a" AVG2 "))", 2},
    {"relu and convolution",    "2,3,4,5 2,3,3,3w",
     "conv(relu(a), b" SAME3 ") = relu(conv(a, b" SAME3 "))",                                                1},
    {"matmul does not commute", "2,3 3,2",          "matmul(a, b) = transpose(matmul(a, b), axis=[1, 0])",
     2                                                                                                        },
    {"concat does not commute", "2,4 2,4",          "concat(a, b, axis=1) = concat(b, a, axis=1)",           2},
};

static void test_wrong(void **state)
{
    const law *row = *state;
    assert_int_equal(find_law(row->shapes, row->rule, row->steps), UINT32_MAX);
}

/* -------------------------------------------------------------------- main */

static int open_candidates(void **state)
{
    (void)state;
    const graft_gen_family *families = NULL;
    uint32_t count = 0;
    const graft_gen_options options = {.seed = 1};
    if (graft_env_open(&shared_env) != GRAFT_OK) {
        return 1;
    }
    shared_env.verbosity = 0;
    graft_status status =
        graft_gen_families_read(&shared_env, shared_env.life, "rules/families", &families, &count);
    if (status == GRAFT_OK) {
        status = graft_gen_run(&shared_env, shared_env.life, families, count, &options, &found);
    }
    if (status != GRAFT_OK) {
        print_error("%s\n", shared_env.message);
    }
    return status == GRAFT_OK ? 0 : 1;
}

static int close_candidates(void **state)
{
    (void)state;
    graft_env_close(&shared_env);
    return 0;
}

int main(void)
{
    static law rows[LAW_COUNT];
    static law wrong_rows[sizeof wrong / sizeof wrong[0]];
    static struct CMUnitTest tests[LAW_COUNT + sizeof wrong / sizeof wrong[0]];
    size_t count = 0;
    memcpy(rows, laws, sizeof laws);
    memcpy(wrong_rows, wrong, sizeof wrong);
    for (size_t i = 0; i < LAW_COUNT; i++) {
        tests[count++] = (struct CMUnitTest){rows[i].name, test_law, NULL, NULL, &rows[i]};
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tests[count++] =
            (struct CMUnitTest){wrong_rows[i].name, test_wrong, NULL, NULL, &wrong_rows[i]};
    }
    return cmocka_run_group_tests_name("laws", tests, open_candidates, close_candidates);
}
