/* symaxes.c - see symaxes.h. */
#include "verify/export/symaxes.h"

#include <assert.h>

/* An index: of the output's axes whose bits are set, and as it stands (of one axis) or not. */
typedef struct rd_int {
    uint8_t axes;
    bool plain;
} rd_int;

typedef struct rd {
    uint32_t op;
    uint32_t output;
    const uint32_t *ranks;
    uint32_t out_rank;
    const int32_t *choices;
    graft_sym_axes *result;
} rd;

typedef int rd_num; /* Nothing. */
typedef int rd_cond;

static uint32_t rd_op(const rd *r) { return r->op; }
static uint32_t rd_output(const rd *r) { return r->output; }
static uint32_t rd_out_rank(const rd *r) { return r->out_rank; }

static uint32_t rd_rank(const rd *r, uint32_t i)
{
    assert(r->ranks[i] <= GRAFT_MAX_RANK);
    return r->ranks[i];
}

static uint32_t rd_choice(const rd *r, uint32_t k) { return (uint32_t)r->choices[k]; }

/* -------------------------------------------------------------------- indices */

static rd_int rd_at(const rd *r, uint32_t axis)
{
    assert(axis < r->out_rank || axis == 0); /* A scalar's index is not looked at. */
    return (rd_int){.axes = (uint8_t)(1u << axis), .plain = true};
}

static rd_int rd_fixed(rd *r, uint32_t axis)
{
    assert(axis < r->out_rank);
    r->result->fixed |= (uint8_t)(1u << axis);
    return (rd_int){.axes = (uint8_t)(1u << axis)};
}

static rd_int join(rd_int a, rd_int b) { return (rd_int){.axes = a.axes | b.axes}; }

/* Sizes and numbers are of no axis. */
static rd_int none(const rd *r, uint32_t a, uint32_t b)
{
    (void)r, (void)a, (void)b;
    return (rd_int){.axes = 0};
}

static rd_int rd_add(const rd *r, rd_int a, rd_int b)
{
    (void)r;
    return join(a, b);
}

static rd_int rd_group(const rd *r, rd_int output, rd_int outputs, rd_int groups)
{
    (void)r, (void)outputs, (void)groups;
    return join(output, output);
}

#define rd_dim(r, i, axis)  none(r, i, axis)
#define rd_out_dim(r, axis) none(r, axis, 0)
#define rd_attr(r, k)       none(r, k, 0)
#define rd_whole(r, n)      ((void)(n), none(r, 0, 0))
#define rd_sub              rd_add
#define rd_quotient         rd_add
#define rd_mul              rd_add

static rd_int rd_spread(const rd *r, rd_int size, rd_int out, rd_int at)
{
    (void)r, (void)size, (void)out;
    return at;
}

static void rd_replace(const rd *r, rd_int *index)
{
    for (uint32_t i = 0; i < rd_rank(r, 0); i++) {
        index[i].axes = (uint8_t)((1u << r->out_rank) - 1);
    }
}

/* What is asked of an index is something that is done along its axes. */
static rd_cond rd_less(rd *r, rd_int a, rd_int b)
{
    r->result->busy |= a.axes | b.axes;
    return 0;
}

#define rd_at_most            rd_less
#define rd_not(r, c)          ((void)(r), (c))
#define rd_and(r, c, d)       ((void)(r), (c) | (d))
#define rd_enter(r, c)        ((void)(r), (void)(c), true)
#define rd_leave(r)           ((void)(r))
#define rd_select(r, c, a, b) ((void)(r), (c) | (a) | (b))

/* -------------------------------------------------------------------- numbers */

static rd_num rd_read(rd *r, uint32_t i, const rd_int *index)
{
    for (uint32_t axis = 0; axis < rd_rank(r, i); axis++) {
        if (index[axis].plain) {
            r->result->lined[i][axis] |= index[axis].axes;
        } else {
            r->result->busy |= index[axis].axes;
            r->result->busy_in[i] |= (uint8_t)(1u << axis);
        }
    }
    return 0;
}

#define rd_choose(r, c, a, b)  ((void)(r), (c) | (a) | (b))
#define rd_nothing(r)          ((void)(r), 0)
#define rd_float(r, k)         ((void)(r), (void)(k), 0)
#define rd_compute(r, a, b)    ((void)(r), (a) | (b))
#define rd_plus                rd_compute
#define rd_minus               rd_compute
#define rd_times               rd_compute
#define rd_over                rd_compute
#define rd_shifted             rd_compute
#define rd_exp(r, x)           ((void)(r), (x))
#define rd_log                 rd_exp
#define rd_root                rd_exp
#define rd_tidy                rd_exp
#define rd_activate(r, how, x) ((void)(r), (void)(how), (x))

#include "graph/meaning/reading.inc"

static bool rd_slide(rd *r, const rd_window *window, rd_int *at)
{
    (void)r;
    *at = join(window->position, window->before);
    return true;
}

static rd_num rd_fold(rd *r, rd_kind kind, uint32_t count, const rd_int *sizes, rd_body body,
                      const void *context)
{
    const rd_int at[GRAFT_MAX_RANK] = {{.axes = 0}};
    (void)kind, (void)sizes;
    assert(count <= GRAFT_MAX_RANK);
    return body(r, at, context);
}

static rd_num rd_row_shift(rd *r, const rd_along *along)
{
    (void)r, (void)along;
    return 0;
}

graft_sym_axes graft_sym_axes_of(uint32_t op, uint32_t output, const uint32_t *ranks,
                                 uint32_t out_rank, const int32_t *choices)
{
    graft_sym_axes result = {.busy = 0};
    rd r = {.op = op,
            .output = output,
            .ranks = ranks,
            .out_rank = out_rank,
            .choices = choices,
            .result = &result};
    uint32_t lined = 0;
    (void)read_element(&r);
    for (uint32_t i = 0; i < graft_op(op)->input_count; i++) {
        for (uint32_t axis = 0; axis < ranks[i]; axis++) {
            lined |= result.lined[i][axis];
        }
    }
    result.busy |= (uint8_t)(~lined & ((1u << out_rank) - 1));
    return result;
}
