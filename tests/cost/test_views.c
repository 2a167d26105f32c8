/* Which concatenations, splits, slices and transposes are views, and where their pieces lie. */
#include "cost/plan/schedule.h"

#include "tests/support/build.h"

/* x is an input of 32 channels, a and b are results of that shape. */
#define IMAGE    "x = input 1 32 5 6; a = tanh x; b = sigmoid x; "
#define CONVOLVE "w = weight 32 32 3 3; c = conv a w" PADDED "; "

/* Of each graph what is known, without a row's own judgment. */
/* clang-format off */
static const struct {
    const char *name;
    const char *graph; /* What nobody reads is an output. */
    uint32_t copies;   /* Steps of concat, split, slice, transpose. */
    uint32_t views;    /* Nodes of these that leave none. */
} cases[] = {
    {"two results", IMAGE "y = concat a b : 1; y = relu y", 0, 1},
    {"a value twice", IMAGE "y = concat a a : 1; y = relu y", 1, 0},
    {"a value and its alias", IMAGE "i = identity a; y = concat a i : 1", 1, 0},
    {"the alias of a result", IMAGE "i = identity a; y = concat b i : 1", 0, 1},
    {"an input", IMAGE "y = concat x a : 1", 1, 0},
    {"a weight", IMAGE "w = weight 1 3 5 6; y = concat a w : 1", 1, 0},
    /* The first one has it. */
    {"a value in two concatenations", IMAGE "y = concat a b : 1; r = relu x; z = concat r a : 1", 1, 1},
    /* The first is a copy, so it does not count. */
    {"a value in a copy and a view", IMAGE "y = concat a x : 1; z = concat b a : 1", 1, 1},
    {"a concatenation of a concatenation", IMAGE "y = concat a b : 1; r = relu a; z = concat y r : 1", 0, 2},
    {"a concatenation of pieces", IMAGE "p = slice a : 1 16 32; q = slice a : 1 0 16; y = concat p q : 1", 1, 2},
    {"a piece of a concatenation", IMAGE "y = concat a b : 1; y = slice y : 1 16 48; y = relu y", 0, 2},
    {"a piece of a piece", IMAGE "y = slice x : 1 16 32; y = slice y : 1 0 8", 0, 2},
    {"a piece off the cache lines", IMAGE "y = slice a : 1 1 32", 1, 0},
    {"a split", IMAGE "y z = split a : 1 16", 0, 1},
    {"pieces that are not whole", IMAGE "y z = split a : 2 2", 1, 0},
    {"batches", IMAGE "y = concat a b", 0, 1},
    {"channels of two images", IMAGE "y = concat a b; p = relu y; q = relu y; z = concat p q : 1", 1, 1},
    /* Channels last: the convolution's result is converted, and the conversion writes its piece. */
    {"a converted convolution", IMAGE "r = softmax b : 3; " CONVOLVE "y = concat r c : 1", 0, 1},
    {"channels last, turned to the last", IMAGE CONVOLVE "y = transpose c : 0 2 3 1", 0, 1},
    {"rows, turned so", IMAGE "y = transpose a : 0 2 3 1", 1, 0},
    {"channels last, turned otherwise", IMAGE CONVOLVE "y = transpose c : 0 3 1 2", 1, 0},
    {"a pixel, turned", IMAGE "y = global_avg_pool a; y = transpose y : 0 2 3 1", 0, 1},
    {"a turned view, joined", IMAGE CONVOLVE "t = transpose c : 0 2 3 1; r = relu t; y = concat t r", 1, 1},
};
/* clang-format on */

static bool is_move(uint32_t op)
{
    return op == GRAFT_OP_concat || op == GRAFT_OP_split || op == GRAFT_OP_slice ||
           op == GRAFT_OP_transpose;
}

/* Every region lies inside of its root, whose life spans its own. */
static void check_regions(const graft_schedule *s, const char *name)
{
    for (uint32_t i = 0; i < s->region_count; i++) {
        const graft_region *region = &s->regions[i];
        const graft_region *root = &s->regions[region->root];
        bool inside = region->offset + region->bytes <= root->bytes && root->root == region->root;
        bool spanned = root->first <= region->first && region->last <= root->last;
        if (!inside || !spanned || region->offset % GRAFT_VIEW_ALIGNMENT != 0) {
            fail_msg("%s: region %u lies badly in region %u", name, i, region->root);
        }
    }
}

/* Everything that nobody reads becomes an output. */
static void give_away(graft_graph *graph)
{
    for (graft_index v = 0; v < graph->value_end; v++) {
        bool read = graph->values[v].kind != GRAFT_VALUE_COMPUTED;
        for (graft_index n = 0; n < graph->node_end && !read; n++) {
            for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
                read = read || graft_node_input(graph, n, k) == v;
            }
        }
        if (!read) {
            CHECK_OK(graft_graph_add_output(graph, v));
        }
    }
}

CHECK_CASE(test_cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (uint32_t views = 0; views < 2; views++) {
            graft_schedule schedule;
            uint32_t copies = 0;
            graft_graph *graph = build_text(env->unit, "%s", cases[i].graph).graph;
            give_away(graph);
            graft_order order = build_order(env->unit, graph);
            graft_schedule_build_in(env->unit, graph, &order, GRAFT_LAYOUT_NHWC, views == 1,
                                    &schedule);
            for (uint32_t k = 0; k < schedule.step_count; k++) {
                copies += is_move(schedule.steps[k].signature.op);
            }
            uint32_t expected = cases[i].copies + (views == 1 ? 0 : cases[i].views);
            if (copies != expected) {
                fail_msg("%s: %u copies, not %u", cases[i].name, copies, expected);
            }
            check_regions(&schedule, cases[i].name);
            graft_arena_reset(env->unit);
        }
    }
}

/* Residuals that are overwritten. One that is a piece may be only when nobody reads the other
 * pieces, or the whole, afterwards; one whose turned view is read is not; a convolution that writes
 * into a concatenation does not overwrite. */
#define PIECE                                                                                      \
    "x = input 1 32 1 1; w = weight 16 16 3 3; b = weight 16; t = tanh x; f s = split t : 1 16; "  \
    "r = relu f; y = conv_bias_add r w b s" PADDED " 1; "
#define TURNED                                                                                     \
    "a = input 1 32 5 6; " CONVOLVE "v = weight 32 32 3 3; b = weight 32; "                        \
    "y = conv_bias_add a v b c" PADDED " 1; y = transpose y : 0 2 3 1; "

CHECK_CASE(test_residuals)
{
    static const struct {
        const char *graph;
        uint32_t in_place;
    } residuals[] = {
        {PIECE,                                                        1},
        {PIECE "r = relu y; z = concat r t : 1",                       0},
        {PIECE "z = add y f",                                          0},
        {PIECE "p = slice x : 1 0 16; p = relu p; z = concat y p : 1", 0},
        {TURNED,                                                       1},
        {TURNED "t = transpose c : 0 2 3 1; z = sub y t",              0},
    };
    for (size_t i = 0; i < sizeof(residuals) / sizeof(residuals[0]); i++) {
        graft_schedule schedule;
        uint32_t count = 0;
        graft_graph *graph = build_text(env->unit, "%s", residuals[i].graph).graph;
        give_away(graph);
        graft_order order = build_order(env->unit, graph);
        graft_schedule_build_in(env->unit, graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
        for (uint32_t k = 0; k < schedule.step_count; k++) {
            count += schedule.steps[k].signature.in_place;
        }
        assert_int_equal(count, residuals[i].in_place);
        check_regions(&schedule, residuals[i].graph);
    }
}
