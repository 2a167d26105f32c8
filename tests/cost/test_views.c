/* Which concatenations, splits, slices and transposes are views, and where their pieces lie. */
#include "cost/plan/schedule.h"

#include "tests/support/build.h"

typedef struct {
    graft_graph *graph;
    graft_index x; /* An input of 32 channels... */
    graft_index a; /* ...and two results of that shape. */
    graft_index b;
} subject;

static graft_index join(subject *s, int32_t axis, graft_index left, graft_index right)
{
    return build_node(s->graph, GRAFT_OP_concat, &axis, left, right, 0);
}

static graft_index relu(subject *s, graft_index x)
{
    return build_node(s->graph, GRAFT_OP_relu, NULL, x, 0, 0);
}

static graft_index piece(subject *s, graft_index x, int32_t start, int32_t end)
{
    const int32_t attrs[3] = {1, start, end};
    return build_node(s->graph, GRAFT_OP_slice, attrs, x, 0, 0);
}

/* ------------------------------------------------------------------- cases */

static void join_results(subject *s) { (void)relu(s, join(s, 1, s->a, s->b)); }

static void join_twice(subject *s) { (void)relu(s, join(s, 1, s->a, s->a)); }

static void join_alias(subject *s)
{
    (void)join(s, 1, s->a, build_node(s->graph, GRAFT_OP_identity, NULL, s->a, 0, 0));
}

static void join_aliases(subject *s)
{
    (void)join(s, 1, s->b, build_node(s->graph, GRAFT_OP_identity, NULL, s->a, 0, 0));
}

static void join_input(subject *s) { (void)join(s, 1, s->x, s->a); }

static void join_weight(subject *s)
{
    (void)join(s, 1, s->a, build_weight(s->graph, SHAPE(1, 3, 5, 6), 0));
}

static void join_in_two(subject *s)
{
    (void)join(s, 1, s->a, s->b);
    (void)join(s, 1, relu(s, s->x), s->a); /* The first one has it. */
}

static void join_in_two_alike(subject *s)
{
    (void)join(s, 1, s->a, s->x); /* A copy, so it does not count. */
    (void)join(s, 1, s->b, s->a);
}

static void join_joined(subject *s) { (void)join(s, 1, join(s, 1, s->a, s->b), relu(s, s->a)); }

static void join_pieces(subject *s)
{
    (void)join(s, 1, piece(s, s->a, 16, 32), piece(s, s->a, 0, 16));
}

static void cut_joined(subject *s) { (void)relu(s, piece(s, join(s, 1, s->a, s->b), 16, 48)); }

static void cut_piece(subject *s) { (void)piece(s, piece(s, s->x, 16, 32), 0, 8); }

static void cut_off_line(subject *s) { (void)piece(s, s->a, 1, 32); }

static void cut_split(subject *s)
{
    (void)build_node(s->graph, GRAFT_OP_split, (const int32_t[2]){1, 16}, s->a, 0, 0);
}

static void cut_rows(subject *s)
{
    (void)build_node(s->graph, GRAFT_OP_split, (const int32_t[2]){2, 2}, s->a, 0, 0);
}

static void join_batches(subject *s) { (void)join(s, 0, s->a, s->b); }

static void join_channels_of_batches(subject *s)
{
    graft_index batches = join(s, 0, s->a, s->b);
    (void)join(s, 1, relu(s, batches), relu(s, batches));
}

/* Channels last: the convolution's result is converted, and the conversion writes its piece. */
static void join_convolution(subject *s)
{
    graft_index w = build_weight(s->graph, SHAPE(32, 32, 3, 3), 0);
    graft_index rows = build_node(s->graph, GRAFT_OP_softmax, (const int32_t[1]){3}, s->b, 0, 0);
    (void)join(s, 1, rows, build_conv(s->graph, s->a, w, 1));
}

static graft_index turn(subject *s, graft_index x, int32_t a, int32_t b, int32_t c)
{
    return build_node(s->graph, GRAFT_OP_transpose, (const int32_t[6]){0, a, b, c}, x, 0, 0);
}

static graft_index convolve(subject *s)
{
    return build_conv(s->graph, s->a, build_weight(s->graph, SHAPE(32, 32, 3, 3), 0), 1);
}

static void turn_convolution(subject *s) { (void)turn(s, convolve(s), 2, 3, 1); }

static void turn_rows(subject *s) { (void)turn(s, s->a, 2, 3, 1); }

static void turn_otherwise(subject *s) { (void)turn(s, convolve(s), 3, 1, 2); }

static void turn_pixel(subject *s)
{
    graft_index pixel = build_node(s->graph, GRAFT_OP_global_avg_pool, NULL, s->a, 0, 0);
    (void)turn(s, pixel, 2, 3, 1);
}

static void join_turned(subject *s)
{
    graft_index turned = turn(s, convolve(s), 2, 3, 1);
    (void)join(s, 0, turned, relu(s, turned));
}

/* Without a row's own judgment: what is known of each graph. */
static const struct {
    const char *name;
    void (*make)(subject *s);
    uint32_t copies; /* Steps of concat, split, slice, transpose. */
    uint32_t views;  /* Nodes of these that leave none. */
} cases[] = {
    {"two results",                        join_results,             0, 1},
    {"a value twice",                      join_twice,               1, 0},
    {"a value and its alias",              join_alias,               1, 0},
    {"the alias of a result",              join_aliases,             0, 1},
    {"an input",                           join_input,               1, 0},
    {"a weight",                           join_weight,              1, 0},
    {"a value in two concatenations",      join_in_two,              1, 1},
    {"a value in a copy and a view",       join_in_two_alike,        1, 1},
    {"a concatenation of a concatenation", join_joined,              0, 2},
    {"a concatenation of pieces",          join_pieces,              1, 2},
    {"a piece of a concatenation",         cut_joined,               0, 2},
    {"a piece of a piece",                 cut_piece,                0, 2},
    {"a piece off the cache lines",        cut_off_line,             1, 0},
    {"a split",                            cut_split,                0, 1},
    {"pieces that are not whole",          cut_rows,                 1, 0},
    {"batches",                            join_batches,             0, 1},
    {"channels of two images",             join_channels_of_batches, 1, 1},
    {"a converted convolution",            join_convolution,         0, 1},
    {"channels last, turned to the last",  turn_convolution,         0, 1},
    {"rows, turned so",                    turn_rows,                1, 0},
    {"channels last, turned otherwise",    turn_otherwise,           1, 0},
    {"a pixel, turned",                    turn_pixel,               0, 1},
    {"a turned view, joined",              join_turned,              1, 1},
};

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
            subject s = {.graph = build_graph(env->unit)};
            s.x = build_input(s.graph, SHAPE(1, 32, 5, 6), 0);
            s.a = build_node(s.graph, GRAFT_OP_tanh, NULL, s.x, 0, 0);
            s.b = build_node(s.graph, GRAFT_OP_sigmoid, NULL, s.x, 0, 0);
            cases[i].make(&s);
            give_away(s.graph);
            graft_order order = build_order(env->unit, s.graph);
            graft_schedule_build_in(env->unit, s.graph, &order, GRAFT_LAYOUT_NHWC, views == 1,
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

/* A residual that is a piece may be overwritten only when nobody reads the other pieces, or the
 * whole, afterwards; a convolution that writes into a concatenation does not overwrite. */
static uint32_t count_in_place(graft_env *env, bool whole_read, bool sibling_read, bool joined)
{
    const int32_t attrs[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t count = 0;
    graft_index node = GRAFT_NONE;
    graft_schedule schedule;
    subject s = {.graph = build_graph(env->unit)};
    graft_index x = build_input(s.graph, SHAPE(1, 32, 1, 1), 0);
    graft_index w = build_weight(s.graph, SHAPE(16, 16, 3, 3), 0);
    graft_index bias = build_weight(s.graph, SHAPE(16), 1);
    graft_index whole = build_node(s.graph, GRAFT_OP_tanh, NULL, x, 0, 0);
    graft_index first = build_node(s.graph, GRAFT_OP_split, (const int32_t[2]){1, 16}, whole, 0, 0);
    graft_index second = graft_node_output(s.graph, s.graph->values[first].node, 1);
    const graft_index inputs[4] = {relu(&s, first), w, bias, second};
    CHECK_OK(
        graft_graph_add_node(s.graph, GRAFT_OP_conv_bias_add, attrs, inputs, GRAFT_NONE, &node));
    graft_index y = graft_node_output(s.graph, node, 0);
    if (whole_read) {
        (void)join(&s, 1, relu(&s, y), whole);
    }
    if (sibling_read) {
        (void)build_node(s.graph, GRAFT_OP_add, NULL, y, first, 0);
    }
    if (joined) {
        (void)join(&s, 1, y, relu(&s, piece(&s, x, 0, 16)));
    }
    give_away(s.graph);
    graft_order order = build_order(env->unit, s.graph);
    graft_schedule_build_in(env->unit, s.graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        count += schedule.steps[i].signature.in_place;
    }
    check_regions(&schedule, "residual");
    graft_arena_reset(env->unit);
    return count;
}

CHECK_CASE(test_residuals)
{
    assert_int_equal(count_in_place(env, false, false, false), 1);
    assert_int_equal(count_in_place(env, true, false, false), 0);
    assert_int_equal(count_in_place(env, false, true, false), 0);
    assert_int_equal(count_in_place(env, false, false, true), 0);
}

/* A residual whose turned view is read afterwards is not overwritten. */
static uint32_t count_turned_in_place(graft_env *env, bool read)
{
    const int32_t attrs[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t count = 0;
    graft_index node = GRAFT_NONE;
    graft_schedule schedule;
    subject s = {.graph = build_graph(env->unit)};
    s.a = build_input(s.graph, SHAPE(1, 32, 5, 6), 0);
    graft_index residual = convolve(&s);
    graft_index turned = read ? turn(&s, residual, 2, 3, 1) : GRAFT_NONE;
    const graft_index inputs[4] = {s.a, build_weight(s.graph, SHAPE(32, 32, 3, 3), 1),
                                   build_weight(s.graph, SHAPE(32), 2), residual};
    CHECK_OK(
        graft_graph_add_node(s.graph, GRAFT_OP_conv_bias_add, attrs, inputs, GRAFT_NONE, &node));
    graft_index sum = turn(&s, graft_node_output(s.graph, node, 0), 2, 3, 1);
    if (read) {
        (void)build_node(s.graph, GRAFT_OP_sub, NULL, sum, turned, 0);
    }
    give_away(s.graph);
    graft_order order = build_order(env->unit, s.graph);
    graft_schedule_build_in(env->unit, s.graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        count += schedule.steps[i].signature.in_place;
    }
    graft_arena_reset(env->unit);
    return count;
}

CHECK_CASE(test_turned_residuals)
{
    assert_int_equal(count_turned_in_place(env, false), 1);
    assert_int_equal(count_turned_in_place(env, true), 0);
}
