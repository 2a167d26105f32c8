/* Samples that follow the precondition: what is read from it, and how many more instances are
 * found.
 */
#include "verify/sweep/guide.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/sweep.h"

CHECK_CASE(test_facts)
{
    static const struct {
        const char *where;
        uint32_t facts;
    } rows[] = {
        {"rank(a) = 2",                                                      1},
        {"rank(a) = 2 and dim(a,1) = dim(b,0) and same_shape(a, b)",         3},
        {"rank(a) = 2 or dim(a,1) = dim(b,0)",                               0},
        {"(rank(a) = 2 or rank(a) = 3) and dim(b,0) = 1",                    1},
        {"dim(b,0) = 1 and not (rank(a) = 2)",                               1},
        {"dim(a,0) <= 3 and divides(#1.groups, dim(a,1)) and 1 = #1.groups", 1},
        {"dim(a,0) + 1 = dim(b,0)",                                          0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_guide guide;
        graft_rule rule = rows_parse(env, graft_arena_printf(env->unit,
                                                             "conv#1(a, b) = conv#1(a, b) "
                                                             "where %s",
                                                             rows[i].where));
        graft_guide_read(&rule, &guide);
        assert_int_equal(guide.count, rows[i].facts);
    }
    graft_rule plain = rows_parse(env, "relu(a) = relu(a)");
    graft_guide guide;
    graft_guide_read(&plain, &guide);
    assert_int_equal(guide.count, 0);
}

static graft_domain find_points(graft_env *env, const graft_rule *rule, uint32_t points)
{
    const graft_domain_options options = {.points = points, .attempts = points * 300, .seed = 9};
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    return domain;
}

/* A merge of two convolutions of one kernel size, as TASO writes it: wrong for several groups,
 * which hardly any unguided sample has. */
static const char narrow[] =
    "[conv#1(a, b, stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, "
    "dilation_h=1, dilation_w=1), conv#2(a, c, stride_h=1, stride_w=1, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1)] = "
    "[split(conv#1(a, concat(b, c, axis=0), stride_h=1, stride_w=1, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), axis=1, at=dim(b,0)).0, "
    "split(conv#1(a, concat(b, c, axis=0), stride_h=1, stride_w=1, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), axis=1, at=dim(b,0)).1] "
    "where dim(b,2) = 3 and dim(b,3) = 3 and dim(c,2) = 3 and dim(c,3) = 3";

CHECK_CASE(test_narrow_preconditions)
{
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_sweep_result result;
    graft_rule rule = rows_parse(env, narrow);
    graft_domain guided = find_points(env, &rule, 1000);
    assert_int_equal(guided.count, 1000);
    graft_sweep_open(sweeper);
    graft_sweep_domain(env, sweeper, &rule, &guided, 2, &result);
    assert_true(result.refuted);
}

/* Points that a visitor has seen. */
typedef struct {
    graft_point points[200];
    uint32_t count;
    uint32_t most;
} visited;

static bool see_point(void *context, const graft_point *point)
{
    visited *v = context;
    v->points[v->count++] = *point;
    return v->count < v->most;
}

/* A visitor sees the points in order, and those before it stops are those without it. */
CHECK_CASE(test_visitor)
{
    graft_rule rule =
        rows_parse(env, "relu(transpose#1(a)) = transpose#1(relu(a)) where rank(a) = 2");
    graft_domain whole = find_points(env, &rule, 60);
    assert_true(whole.count > 20);
    for (uint32_t most = 1; most <= whole.count; most += 7) {
        visited *v = GRAFT_NEW(env->unit, visited, 1);
        v->most = most;
        const graft_domain_options options = {
            .points = 60, .attempts = 60 * 300, .seed = 9, .visit = see_point, .context = v};
        const graft_domain domain = graft_domain_find(env, env->unit, &rule, &options);
        assert_int_equal(domain.count, most);
        assert_int_equal(v->count, most);
        assert_memory_equal(v->points, whole.points, most * sizeof whole.points[0]);
        assert_memory_equal(domain.points, whole.points, most * sizeof whole.points[0]);
    }
}
