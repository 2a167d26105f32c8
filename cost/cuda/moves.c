/* moves.c - from signatures to jobs (see moves.h). */
#include "cost/cuda/moves.h"

#include "cost/plan/nest.h"

#include <string.h>

enum { VECTOR_BYTES = 16, LEAST_TURN = 8 };
/* Tiles of pairs from which on a transposition is made of these. */
enum { PAIR_TILES = 256 };
/* Rows side by side from which on each has a thread of its own, and groups of them from which on a
 * thread has several: fewer would leave multiprocessors without work. */
enum { COLUMN_ROWS = 256, WIDE_GROUPS = 4096 };

/* ------------------------------------------------------------------- walks */

static void begin_walk(cuda_walk *walk)
{
    memset(walk, 0, sizeof(*walk));
    walk->count = 1;
}

static void add_axis(cuda_walk *walk, int32_t size, int64_t to, int64_t from)
{
    uint32_t i = walk->rank++;
    walk->sizes[i] = (uint32_t)size;
    walk->count *= (uint64_t)size;
    walk->steps[0][i] = to;
    walk->steps[1][i] = from;
}

/* Whether an operand's steps along the first `count` axes are multiples of `width`. */
static bool are_multiples(const cuda_walk *walk, uint32_t operand, uint32_t count, uint32_t width)
{
    bool are = true;
    for (uint32_t i = 0; i < count; i++) {
        are = are && walk->steps[operand][i] % width == 0;
    }
    return are;
}

/* Few axes, the last one being what lies side by side in the output: threads that follow one
 * another then write side by side. */
static void finish_walk(cuda_walk *walk)
{
    graft_shape shape = {.rank = (uint8_t)walk->rank};
    graft_nest nest;
    for (uint32_t i = 0; i < walk->rank; i++) {
        shape.dims[i] = (int32_t)walk->sizes[i];
    }
    graft_nest_make(&shape, CUDA_OPERANDS, (const int64_t(*)[GRAFT_MAX_RANK])walk->steps, 0, &nest);
    walk->rank = nest.rank;
    for (uint32_t i = 0; i < CUDA_RANK; i++) {
        walk->sizes[i] = (uint32_t)nest.sizes[i];
    }
    memcpy(walk->steps, nest.steps, sizeof(walk->steps));
}

/* Steps of a smaller tensor along the axes of a larger one that it is repeated over. */
static void broadcast_strides(const graft_shape *from, const int64_t *strides,
                              const graft_shape *to, int64_t steps[GRAFT_MAX_RANK])
{
    for (uint32_t back = 1; back <= to->rank; back++) {
        bool there = back <= from->rank && from->dims[from->rank - back] != 1;
        steps[to->rank - back] = there ? strides[from->rank - back] : 0;
    }
}

/* -------------------------------------------------------------- movement */

/* A box of the size of `shape` from a tensor to another. */
static cuda_piece make_piece(const graft_shape *shape, const int64_t *to, const int64_t *from)
{
    cuda_piece piece = {.input = 0};
    begin_walk(&piece.walk);
    for (uint32_t i = 0; i < shape->rank; i++) {
        add_axis(&piece.walk, shape->dims[i], to[i], from[i]);
    }
    return piece;
}

/* Whether units of `width` elements can be moved. */
static bool fits_width(const cuda_piece *piece, uint32_t width)
{
    const cuda_walk *walk = &piece->walk;
    uint32_t last = walk->rank - 1;
    uint32_t operands = piece->input == CUDA_FILL ? 1 : 2;
    bool fits = walk->sizes[last] % width == 0;
    for (uint32_t k = 0; k < operands; k++) {
        fits = fits && walk->first[k] % width == 0 &&
               (walk->steps[k][last] == 1 || walk->count == 1) &&
               are_multiples(walk, k, last, width);
    }
    return fits;
}

static void widen(cuda_walk *walk, uint32_t width)
{
    uint32_t last = walk->rank - 1;
    for (uint32_t k = 0; k < 2; k++) {
        walk->first[k] /= width;
        for (uint32_t i = 0; i < last; i++) {
            walk->steps[k][i] /= width;
        }
    }
    walk->sizes[last] /= width;
    walk->count /= width;
}

static void finish_move(cuda_job *job, cuda_type type)
{
    cuda_move *move = &job->as.move;
    uint32_t width = VECTOR_BYTES / cuda_type_bytes(type);
    for (uint32_t i = 0; i < move->count; i++) {
        finish_walk(&move->pieces[i].walk);
    }
    for (uint32_t i = 0; i < move->count; i++) {
        while (width > 1 && !fits_width(&move->pieces[i], width)) {
            width /= 2;
        }
    }
    for (uint32_t i = 0; i < move->count; i++) {
        if (width > 1) {
            widen(&move->pieces[i].walk, width);
        }
        move->total += move->pieces[i].walk.count;
    }
    move->unit_bytes = width * cuda_type_bytes(type);
    job->kind = CUDA_JOB_MOVE;
    job->threads = move->total;
}

/* The axis along which the input's elements lie side by side, or the rank. */
static uint32_t find_unit_axis(const cuda_walk *walk)
{
    uint32_t axis = 0;
    while (axis < walk->rank && walk->steps[1][axis] != 1) {
        axis++;
    }
    return axis;
}

static void cut_tiles(cuda_turn *turn, uint32_t tile)
{
    turn->tile = tile;
    turn->tile_rows = (turn->rows + tile - 1) / tile;
    turn->tile_columns = (turn->columns + tile - 1) / tile;
    turn->tiles = turn->batch.count * turn->tile_rows * turn->tile_columns;
}

/* Whether elements that lie side by side are aligned pairs, in the input and in the output. */
static bool has_pairs(const cuda_turn *turn)
{
    const cuda_walk *batch = &turn->batch;
    return turn->rows % 2 == 0 && turn->columns % 2 == 0 && turn->from_row % 2 == 0 &&
           turn->to_column % 2 == 0 && batch->first[0] % 2 == 0 && batch->first[1] % 2 == 0 &&
           are_multiples(batch, 0, batch->rank, 2) && are_multiples(batch, 1, batch->rank, 2);
}

/* A single box becomes a transposition when input and output disagree about what lies side by
 * side. */
static void turn_move(cuda_job *job, cuda_type type)
{
    cuda_walk walk = job->as.move.pieces[0].walk;
    finish_walk(&walk);
    uint32_t rows = walk.rank - 1;
    uint32_t columns = find_unit_axis(&walk);
    if (walk.steps[0][rows] != 1 || columns >= rows || walk.sizes[rows] < LEAST_TURN ||
        walk.sizes[columns] < LEAST_TURN) {
        finish_move(job, type);
        return;
    }
    cuda_turn turn = {.rows = walk.sizes[rows],
                      .columns = walk.sizes[columns],
                      .from_row = walk.steps[1][rows],
                      .to_column = walk.steps[0][columns],
                      .unit_bytes = cuda_type_bytes(type)};
    walk.count /= (uint64_t)turn.rows * turn.columns;
    walk.sizes[rows] = 1;
    walk.sizes[columns] = 1;
    finish_walk(&walk);
    turn.batch = walk;
    cut_tiles(&turn, 2 * CUDA_TILE);
    if (turn.tiles < PAIR_TILES || !has_pairs(&turn)) {
        cut_tiles(&turn, CUDA_TILE);
    }
    job->kind = CUDA_JOB_TURN;
    job->threads = turn.tiles;
    job->as.turn = turn;
}

typedef struct {
    int64_t in[2][GRAFT_MAX_RANK];
    int64_t out[2][GRAFT_MAX_RANK];
} strides_of;

static void make_concat(const graft_signature *s, const strides_of *st, cuda_job *job,
                        cuda_type type)
{
    uint32_t axis = (uint32_t)s->attrs[GRAFT_ATTR_concat_axis];
    cuda_move *move = &job->as.move;
    move->count = 2;
    for (uint32_t k = 0; k < 2; k++) {
        move->pieces[k] = make_piece(&s->inputs[k], st->out[0], st->in[k]);
        move->pieces[k].input = k;
    }
    move->pieces[1].walk.first[0] = s->inputs[0].dims[axis] * st->out[0][axis];
    finish_move(job, type);
}

static void make_split(const graft_signature *s, const graft_shape *outputs, const strides_of *st,
                       cuda_job *job, cuda_type type)
{
    uint32_t axis = (uint32_t)s->attrs[GRAFT_ATTR_split_axis];
    cuda_move *move = &job->as.move;
    move->count = 2;
    for (uint32_t k = 0; k < 2; k++) {
        move->pieces[k] = make_piece(&outputs[k], st->out[k], st->in[0]);
        move->pieces[k].output = k;
    }
    move->pieces[1].walk.first[1] = s->attrs[GRAFT_ATTR_split_at] * st->in[0][axis];
    finish_move(job, type);
}

/* The box itself, and what stands before and behind it. */
static void make_pad(const graft_signature *s, const graft_shape *output, const strides_of *st,
                     cuda_job *job, cuda_type type)
{
    uint32_t axis = (uint32_t)s->attrs[GRAFT_ATTR_pad_axis];
    const int32_t sizes[CUDA_PIECES] = {s->inputs[0].dims[axis], s->attrs[GRAFT_ATTR_pad_before],
                                        s->attrs[GRAFT_ATTR_pad_after]};
    const int32_t places[CUDA_PIECES] = {sizes[1], 0, sizes[1] + sizes[0]};
    static const int64_t nowhere[GRAFT_MAX_RANK] = {0};
    cuda_move *move = &job->as.move;
    uint32_t bits = cuda_to_bits(type, graft_float_of_bits(s->attrs[GRAFT_ATTR_pad_value]));
    move->fill = cuda_type_bytes(type) == 2 ? bits | bits << 16 : bits;
    for (uint32_t i = 0; i < CUDA_PIECES; i++) {
        graft_shape box = *output;
        box.dims[axis] = sizes[i];
        if (sizes[i] == 0) {
            continue;
        }
        cuda_piece *piece = &move->pieces[move->count++];
        *piece = make_piece(&box, st->out[0], i == 0 ? st->in[0] : nowhere);
        piece->input = i == 0 ? 0 : CUDA_FILL;
        piece->walk.first[0] = places[i] * st->out[0][axis];
    }
    finish_move(job, type);
}

static void make_copy(const graft_shape *output, int64_t first, const strides_of *st, cuda_job *job,
                      cuda_type type)
{
    job->as.move.count = 1;
    job->as.move.pieces[0] = make_piece(output, st->out[0], st->in[0]);
    job->as.move.pieces[0].walk.first[1] = first;
    turn_move(job, type);
}

static void make_transpose(const graft_signature *s, const graft_shape *output,
                           const strides_of *st, cuda_job *job, cuda_type type)
{
    strides_of turned = *st;
    for (uint32_t i = 0; i < output->rank; i++) {
        turned.in[0][i] = st->in[0][s->attrs[GRAFT_ATTR_transpose_axis_0 + i]];
    }
    make_copy(output, 0, &turned, job, type);
}

void cuda_job_of_filter(const graft_shape *filter, cuda_type type, cuda_job *job)
{
    strides_of st;
    memset(job, 0, sizeof(*job));
    graft_layout_strides(filter, GRAFT_LAYOUT_ROW, st.in[0]);
    graft_layout_strides(filter, GRAFT_LAYOUT_NHWC, st.out[0]);
    make_copy(filter, 0, &st, job, type);
}

void cuda_job_of_repeat(const graft_shape *from, const graft_shape *to, cuda_type type,
                        cuda_job *job)
{
    strides_of st;
    int64_t strides[GRAFT_MAX_RANK];
    memset(job, 0, sizeof(*job));
    graft_layout_strides(from, GRAFT_LAYOUT_ROW, strides);
    graft_layout_strides(to, GRAFT_LAYOUT_ROW, st.out[0]);
    broadcast_strides(from, strides, to, st.in[0]);
    make_copy(to, 0, &st, job, type);
}

/* ----------------------------------------------------------- elementwise */

/* Several elements at once where all operands that are not repeated lie side by side. */
static void widen_points(cuda_point *point, cuda_type type)
{
    cuda_walk *walk = &point->walk;
    uint32_t last = walk->rank - 1;
    uint32_t width = VECTOR_BYTES / cuda_type_bytes(type);
    bool fits = walk->sizes[last] % width == 0 && walk->steps[0][last] == 1;
    for (uint32_t k = 0; k <= point->inputs; k++) {
        bool repeated = walk->steps[k][last] == 0;
        fits = fits &&
               (repeated || (walk->steps[k][last] == 1 && are_multiples(walk, k, last, width)));
    }
    point->width = fits ? width : 1;
    if (fits) {
        walk->sizes[last] /= width;
        walk->count /= width;
        for (uint32_t k = 0; k <= point->inputs; k++) {
            walk->steps[k][last] *= width;
        }
    }
}

/* `steps[k]` are those of input k along the axes of the output. */
static void make_points(const graft_shape *output, const int64_t *to,
                        int64_t steps[3][GRAFT_MAX_RANK], cuda_job *job, cuda_type type)
{
    cuda_point *point = &job->as.point;
    begin_walk(&point->walk);
    for (uint32_t i = 0; i < output->rank; i++) {
        add_axis(&point->walk, output->dims[i], to[i], steps[0][i]);
        for (uint32_t k = 1; k < point->inputs; k++) {
            point->walk.steps[k + 1][i] = steps[k][i];
        }
    }
    finish_walk(&point->walk);
    widen_points(point, type);
    job->kind = CUDA_JOB_POINT;
    job->threads = point->walk.count;
}

static const uint8_t functions[GRAFT_OP_COUNT] = {
    [GRAFT_OP_relu] = CUDA_RELU + 1,       [GRAFT_OP_clip] = CUDA_CLIP + 1,
    [GRAFT_OP_sigmoid] = CUDA_SIGMOID + 1, [GRAFT_OP_tanh] = CUDA_TANH + 1,
    [GRAFT_OP_exp] = CUDA_EXP + 1,         [GRAFT_OP_sqrt] = CUDA_SQRT + 1,
    [GRAFT_OP_erf] = CUDA_ERF + 1,         [GRAFT_OP_leaky_relu] = CUDA_LEAKY + 1,
    [GRAFT_OP_gelu] = CUDA_GELU + 1,       [GRAFT_OP_add] = CUDA_ADD + 1,
    [GRAFT_OP_sub] = CUDA_SUB + 1,         [GRAFT_OP_mul] = CUDA_MUL + 1,
    [GRAFT_OP_div] = CUDA_DIV + 1,         [GRAFT_OP_max] = CUDA_MAX + 1,
    [GRAFT_OP_min] = CUDA_MIN + 1,         [GRAFT_OP_scale_shift] = CUDA_SCALE_SHIFT + 1,
#define OP(id, name, inputs, outputs, attributes, flags, onnx)
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body)                             \
    [id] = CUDA_FUNCTIONS + (id) + 1,
#include "graft/operators.def"
};

static void make_function(const graft_signature *s, const graft_shape *output, const strides_of *st,
                          cuda_job *job, cuda_type type)
{
    int64_t steps[3][GRAFT_MAX_RANK] = {{0}};
    cuda_point *point = &job->as.point;
    point->function = functions[s->op] - 1U;
    point->inputs = s->input_count;
    for (uint32_t k = 0; k < s->input_count && s->op != GRAFT_OP_scale_shift; k++) {
        broadcast_strides(&s->inputs[k], st->in[k], output, steps[k]);
    }
    if (s->op == GRAFT_OP_scale_shift) {
        memcpy(steps[0], st->in[0], sizeof(steps[0]));
        steps[1][1] = 1;
        steps[2][1] = 1;
    } else if (s->op == GRAFT_OP_clip) {
        point->low = graft_float_of_bits(s->attrs[GRAFT_ATTR_clip_low]);
        point->high = graft_float_of_bits(s->attrs[GRAFT_ATTR_clip_high]);
    } else if (s->op == GRAFT_OP_leaky_relu) {
        point->low = graft_float_of_bits(s->attrs[GRAFT_ATTR_leaky_relu_slope]);
    } else if (point->function >= CUDA_FUNCTIONS) {
        point->low = graft_float_of_bits(s->attrs[0]);
        point->high = graft_float_of_bits(s->attrs[1]);
    }
    make_points(output, st->out[0], steps, job, type);
}

void cuda_job_of_finish(const graft_signature *signature, const graft_shape *output, cuda_type type,
                        cuda_job *job)
{
    int64_t to[GRAFT_MAX_RANK];
    int64_t steps[3][GRAFT_MAX_RANK] = {{0}};
    bool matmul = signature->op == GRAFT_OP_matmul_bias;
    memset(job, 0, sizeof(*job));
    cuda_point *point = &job->as.point;
    graft_layout_strides(output, signature->out_layouts[0], to);
    memcpy(steps[0], to, sizeof(steps[0]));
    steps[1][matmul ? output->rank - 1 : 1] = 1;
    memcpy(steps[2], to, sizeof(steps[2]));
    point->function = signature->op == GRAFT_OP_conv_bias_add ? CUDA_BIAS_ADD : CUDA_BIAS;
    point->inputs = signature->op == GRAFT_OP_conv_bias_add ? 3 : 2;
    point->activation = graft_signature_activation(signature);
    make_points(output, to, steps, job, type);
}

/* ---------------------------------------------------- windows and products */

static void make_window(const graft_signature *s, const graft_shape *output, const strides_of *st,
                        cuda_job *job)
{
    cuda_window *w = &job->as.window;
    bool nhwc = s->out_layouts[0] == GRAFT_LAYOUT_NHWC;
    w->batch = output->dims[0];
    w->channels = output->dims[1];
    w->out_order_nhwc = nhwc;
    for (uint32_t i = 0; i < 2; i++) {
        w->in_size[i] = s->inputs[0].dims[2 + i];
        w->out_size[i] = output->dims[2 + i];
    }
    memcpy(w->in_steps, st->in[0], sizeof(w->in_steps));
    memcpy(w->out_steps, st->out[0], sizeof(w->out_steps));
    job->threads = graft_shape_elements(output);
}

static void make_pool(const graft_signature *s, cuda_job *job)
{
    cuda_window *w = &job->as.window;
    bool largest = s->op == GRAFT_OP_max_pool;
    for (uint32_t i = 0; i < 2; i++) { /* The first attributes of both pools are the same. */
        w->kernel[i] = s->attrs[GRAFT_ATTR_max_pool_kernel_h + i];
        w->stride[i] = s->attrs[GRAFT_ATTR_max_pool_stride_h + i];
        w->before[i] = s->attrs[GRAFT_ATTR_max_pool_pad_top + i];
        w->dilation[i] = largest ? s->attrs[GRAFT_ATTR_max_pool_dilation_h + i] : 1;
    }
    w->mode = largest ? 0 : 1 + s->attrs[GRAFT_ATTR_avg_pool_count_pad];
    job->kind = CUDA_JOB_POOL;
}

static void make_conv(const graft_signature *s, cuda_job *job)
{
    cuda_window *w = &job->as.window;
    for (uint32_t i = 0; i < 2; i++) {
        w->kernel[i] = s->inputs[1].dims[2 + i];
        w->stride[i] = s->attrs[GRAFT_ATTR_conv_stride_h + i];
        w->before[i] = s->attrs[GRAFT_ATTR_conv_pad_top + i];
        w->dilation[i] = s->attrs[GRAFT_ATTR_conv_dilation_h + i];
    }
    w->group_inputs = s->inputs[1].dims[1];
    w->group_outputs = s->inputs[1].dims[0] / s->attrs[GRAFT_ATTR_conv_groups];
    job->kind = CUDA_JOB_CONV;
}

static void make_product(const graft_signature *s, const graft_shape *output, cuda_job *job)
{
    cuda_product *p = &job->as.product;
    const graft_shape *a = &s->inputs[0];
    const graft_shape *b = &s->inputs[1];
    uint32_t lead = output->rank - 2U;
    graft_shape whole = *output; /* The leading axes alone: boxes of matrices. */
    graft_shape left = *a;
    graft_shape right = *b;
    int64_t strides[3][GRAFT_MAX_RANK];
    int64_t steps[2][GRAFT_MAX_RANK] = {{0}};
    p->m = (uint32_t)a->dims[a->rank - 2];
    p->n = (uint32_t)a->dims[a->rank - 1];
    p->p = (uint32_t)b->dims[b->rank - 1];
    graft_layout_strides(output, GRAFT_LAYOUT_ROW, strides[0]);
    graft_layout_strides(a, GRAFT_LAYOUT_ROW, strides[1]);
    graft_layout_strides(b, GRAFT_LAYOUT_ROW, strides[2]);
    whole.rank = (uint8_t)lead;
    left.rank = (uint8_t)(a->rank - 2);
    right.rank = (uint8_t)(b->rank - 2);
    broadcast_strides(&left, strides[1], &whole, steps[0]);
    broadcast_strides(&right, strides[2], &whole, steps[1]);
    begin_walk(&p->batch);
    for (uint32_t i = 0; i < lead; i++) {
        add_axis(&p->batch, whole.dims[i], strides[0][i], steps[0][i]);
        p->batch.steps[2][i] = steps[1][i];
    }
    finish_walk(&p->batch);
    job->kind = CUDA_JOB_PRODUCT;
    job->threads = graft_shape_elements(output);
}

/* ------------------------------------------------------------------- rows */

/* Bit i: axis i is run along within a row. */
static uint32_t row_axes(const graft_signature *s, uint32_t *mode)
{
    switch (s->op) {
    case GRAFT_OP_global_avg_pool:
        *mode = CUDA_ROW_MEAN;
        return 1U << 2 | 1U << 3;
    case GRAFT_OP_softmax:
        *mode = CUDA_ROW_SOFTMAX;
        return 1U << (uint32_t)s->attrs[GRAFT_ATTR_softmax_axis];
    case GRAFT_OP_layer_norm:
        *mode = CUDA_ROW_LAYER_NORM;
        return 1U << (s->inputs[0].rank - 1U);
    case GRAFT_OP_rms_norm:
        *mode = CUDA_ROW_RMS_NORM;
        return 1U << (s->inputs[0].rank - 1U);
    case GRAFT_OP_reduce_mean:
        *mode = CUDA_ROW_MEAN;
        break;
    case GRAFT_OP_reduce_sum:
        *mode = CUDA_ROW_SUM;
        break;
    default:
        *mode = CUDA_ROW_MAX;
        break;
    }
    return (uint32_t)s->attrs[GRAFT_ATTR_reduce_mean_axes]; /* The same place for all three. */
}

/* 16 bytes are read at once where these lie side by side, aligned: along a row, or, of reductions,
 * of rows whose elements lie side by side. What writes whole rows writes as many. */
static void widen_rows(cuda_rows *rows, cuda_type type)
{
    const cuda_walk *kept = &rows->kept;
    const cuda_walk *row = &rows->row;
    uint32_t last = kept->rank - 1;
    uint32_t width = VECTOR_BYTES / cuda_type_bytes(type);
    bool whole = rows->mode > CUDA_ROW_MAX;
    bool fits = false;
    rows->is_column = !whole && kept->count >= COLUMN_ROWS && kept->steps[1][last] == 1 &&
                      row->steps[1][row->rank - 1] != 1;
    if (rows->is_column != 0) {
        fits = kept->sizes[last] % width == 0 && kept->count / width >= WIDE_GROUPS &&
               are_multiples(kept, 1, last, width) && are_multiples(row, 1, row->rank, width);
    } else {
        fits = row->rank == 1 && row->steps[1][0] == 1 && row->count % width == 0 &&
               are_multiples(kept, 1, kept->rank, width) &&
               (!whole || (row->steps[0][0] == 1 && are_multiples(kept, 0, kept->rank, width)));
    }
    rows->width = fits ? width : 1;
}

static void make_rows(const graft_signature *s, const graft_shape *output, const strides_of *st,
                      cuda_job *job, cuda_type type)
{
    cuda_rows *rows = &job->as.rows;
    uint32_t axes = row_axes(s, &rows->mode);
    bool same = output->rank == s->inputs[0].rank; /* Reduced axes are still there. */
    bool whole = rows->mode >= CUDA_ROW_SOFTMAX;   /* Every element is written. */
    uint32_t at = 0;
    begin_walk(&rows->kept);
    begin_walk(&rows->row);
    for (uint32_t i = 0; i < s->inputs[0].rank; i++) {
        bool reduced = (axes >> i & 1U) != 0;
        if (reduced) {
            add_axis(&rows->row, s->inputs[0].dims[i], whole ? st->out[0][i] : 0, st->in[0][i]);
        } else {
            add_axis(&rows->kept, s->inputs[0].dims[i], st->out[0][same ? i : at], st->in[0][i]);
        }
        at += !reduced;
    }
    finish_walk(&rows->kept);
    finish_walk(&rows->row);
    if (s->op == GRAFT_OP_layer_norm || s->op == GRAFT_OP_rms_norm) {
        _Static_assert((int)GRAFT_ATTR_layer_norm_epsilon == (int)GRAFT_ATTR_rms_norm_epsilon,
                       "the same place for both");
        rows->epsilon = graft_float_of_bits(s->attrs[GRAFT_ATTR_layer_norm_epsilon]);
    }
    widen_rows(rows, type);
    job->kind = CUDA_JOB_ROWS;
    job->threads = rows->is_column != 0 ? rows->kept.count / rows->width : rows->kept.count;
}

/* ------------------------------------------------------------- operators */

/* False for blocked layouts. */
static bool find_strides(const graft_signature *s, const graft_shape *outputs, strides_of *st)
{
    memset(st, 0, sizeof(*st));
    if (memchr(s->in_layouts, GRAFT_LAYOUT_BLOCKED, s->input_count < 2 ? s->input_count : 2) !=
            NULL ||
        memchr(s->out_layouts, GRAFT_LAYOUT_BLOCKED, s->output_count) != NULL) {
        return false;
    }
    for (uint32_t k = 0; k < s->input_count && k < 2; k++) {
        graft_layout_strides(&s->inputs[k], s->in_layouts[k], st->in[k]);
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        graft_layout_strides(&outputs[k], s->out_layouts[k], st->out[k]);
    }
    return true;
}

/* Matrices that are not row-major would need a product of its own. */
static bool is_row_major(const graft_signature *s, const graft_shape *output)
{
    return graft_layout_same(&s->inputs[0], s->in_layouts[0], GRAFT_LAYOUT_ROW) &&
           graft_layout_same(&s->inputs[1], s->in_layouts[1], GRAFT_LAYOUT_ROW) &&
           graft_layout_same(output, s->out_layouts[0], GRAFT_LAYOUT_ROW);
}

/* Units that together are 64 bytes of a row of b; half of that where blocks would be few. */
static uint32_t count_lanes(const cuda_thin *t, cuda_type type)
{
    enum { SEGMENT_BYTES = 64, BLOCKS_FEW = 64 };
    uint32_t lanes = SEGMENT_BYTES / (t->width * cuda_type_bytes(type));
    return t->m * (t->p / t->width / lanes) < BLOCKS_FEW ? lanes / 2 : lanes;
}

bool cuda_job_of_thin(const graft_signature *signature, const graft_shape *output, cuda_type type,
                      cuda_job *job)
{
    const graft_signature *s = signature;
    const graft_shape *b = &s->inputs[1];
    cuda_thin *t = &job->as.thin;
    memset(job, 0, sizeof(*job));
    if (!graft_signature_is_matmul(s) || !is_row_major(s, output)) {
        return false;
    }
    const uint64_t columns = (uint64_t)b->dims[b->rank - 1];
    const uint64_t depth = (uint64_t)b->dims[b->rank - 2];
    const uint64_t rows = graft_shape_elements(output) / columns;
    if (rows > CUDA_THIN_ROWS || columns > CUDA_THIN_COLUMNS ||
        graft_shape_elements(b) != columns * depth) {
        return false;
    }
    t->m = (uint32_t)rows;
    t->n = (uint32_t)depth;
    t->p = (uint32_t)columns;
    t->width = VECTOR_BYTES / cuda_type_bytes(type);
    t->width = t->p % t->width == 0 ? t->width : 1;
    t->lanes = count_lanes(t, type);
    t->has_bias = s->op == GRAFT_OP_matmul_bias;
    t->activation = graft_signature_activation(s);
    job->kind = CUDA_JOB_THIN;
    job->threads = rows * (columns / t->width);
    return true;
}

static bool make_job(const graft_signature *s, const graft_shape *outputs, const strides_of *st,
                     cuda_type type, cuda_job *job)
{
    switch (s->op) {
    case GRAFT_COST_REORDER:
    case GRAFT_OP_identity:
        make_copy(outputs, 0, st, job, type);
        return true;
    case GRAFT_OP_slice:
        make_copy(outputs,
                  s->attrs[GRAFT_ATTR_slice_start] * st->in[0][s->attrs[GRAFT_ATTR_slice_axis]], st,
                  job, type);
        return true;
    case GRAFT_OP_concat:
        make_concat(s, st, job, type);
        return true;
    case GRAFT_OP_split:
        make_split(s, outputs, st, job, type);
        return true;
    case GRAFT_OP_pad:
        make_pad(s, outputs, st, job, type);
        return true;
    case GRAFT_OP_transpose:
        make_transpose(s, outputs, st, job, type);
        return true;
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
        make_window(s, outputs, st, job);
        make_pool(s, job);
        return true;
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        make_window(s, outputs, st, job);
        make_conv(s, job);
        return true;
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
        make_product(s, outputs, job);
        return is_row_major(s, outputs);
    case GRAFT_OP_softmax:
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_rms_norm:
    case GRAFT_OP_global_avg_pool:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_reduce_max:
        make_rows(s, outputs, st, job, type);
        return true;
    default:
        return false;
    }
}

bool cuda_job_of(const graft_signature *signature, const graft_shape *outputs, cuda_type type,
                 cuda_job *job)
{
    strides_of st;
    memset(job, 0, sizeof(*job));
    if (!find_strides(signature, outputs, &st)) {
        return false;
    }
    if (signature->op < GRAFT_OP_COUNT && functions[signature->op] != 0) {
        make_function(signature, outputs, &st, job, type);
        return true;
    }
    return make_job(signature, outputs, &st, type, job);
}
