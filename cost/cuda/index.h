/* index.h - where elements lie: the index arithmetic of the CUDA kernels, for both compilers.
 *
 * A *walk* visits the elements of a box in order and says, for each of up to four operands, where
 * its element lies: sizes, and per operand a step for each axis and a first place. Steps of 0
 * repeat an element (broadcasting). Concatenation, splitting, slicing, padding, transposing,
 * changes of layout, broadcasting and reductions are all walks; moves.c makes them from signatures.
 *
 * Everything here is compiled by nvcc for the device and by the C compiler for the tests, which run
 * every thread of a kernel one after another (tests/cuda/test_moves.c). */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define CUDA_BOTH static inline __host__ __device__
#else
#define CUDA_BOTH static inline
#endif

#ifdef __CUDA_ARCH__
#define CUDA_READS_AHEAD _Pragma("unroll 4") /* Reads of the next turns do not wait for this one. */
#define CUDA_UNROLL      _Pragma("unroll")
#else
#define CUDA_READS_AHEAD
#define CUDA_UNROLL
#endif

enum { CUDA_RANK = 6, CUDA_OPERANDS = 4, CUDA_PIECES = 3, CUDA_TILE = 32 };

/* Operand 0 is what is written. */
typedef struct cuda_walk {
    uint32_t rank; /* At least 1. */
    uint32_t sizes[CUDA_RANK];
    uint64_t count; /* The product of the sizes. */
    int64_t steps[CUDA_OPERANDS][CUDA_RANK];
    int64_t first[CUDA_OPERANDS];
} cuda_walk;

/* Division of what fits 32 bits is several times as fast on a GPU. */
CUDA_BOTH uint64_t cuda_quotient(uint64_t index, uint32_t size)
{
    return index >> 32 == 0 ? (uint32_t)index / size : index / size;
}

/* 1/x and 2^x within 2 units in the last place, in one instruction on a GPU; what is subnormal may
 * be 0. */
CUDA_BOTH float cuda_near_reciprocal(float x)
{
#ifdef __CUDA_ARCH__
    asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return 1.0F / x;
#endif
}

CUDA_BOTH float cuda_near_power(float x)
{
#ifdef __CUDA_ARCH__
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return exp2f(x);
#endif
}

/* The places of the first `operands` operands at element `index`; index < count. */
CUDA_BOTH void cuda_walk_at(const cuda_walk *walk, uint64_t index, uint32_t operands, int64_t *at)
{
    for (uint32_t k = 0; k < operands; k++) {
        at[k] = walk->first[k];
    }
    for (uint32_t i = walk->rank; i-- > 0;) {
        uint64_t rest = i == 0 ? 0 : cuda_quotient(index, walk->sizes[i]);
        int64_t place = (int64_t)(index - rest * walk->sizes[i]);
        for (uint32_t k = 0; k < operands; k++) {
            at[k] += place * walk->steps[k][i];
        }
        index = rest;
    }
}

/* ------------------------------------------------------------- movement */

/* A box that is copied from an input (or filled) to an output. Counted in units of some bytes, see
 * cuda_move. */
typedef struct cuda_piece {
    cuda_walk walk;  /* Operand 0: where to; operand 1: where from. */
    uint32_t input;  /* Which input it comes from; CUDA_FILL: from nowhere. */
    uint32_t output; /* Which output it goes to. */
} cuda_piece;

#define CUDA_FILL UINT32_MAX

/* Pieces that together write every element of the outputs once. */
typedef struct cuda_move {
    uint32_t count;
    uint32_t unit_bytes; /* 2, 4, 8 or 16: what one thread copies. */
    uint32_t fill;       /* The bits of the value that pieces are filled with, in each half. */
    uint64_t total;      /* Units of all pieces. */
    cuda_piece pieces[CUDA_PIECES];
} cuda_move;

/* What thread `index` of a move does, index < total. */
typedef struct cuda_step {
    uint32_t input;
    uint32_t output;
    int64_t from;
    int64_t to;
} cuda_step;

CUDA_BOTH cuda_step cuda_move_at(const cuda_move *move, uint64_t index)
{
    uint32_t i = 0;
    while (i + 1 < move->count && index >= move->pieces[i].walk.count) {
        index -= move->pieces[i].walk.count;
        i++;
    }
    const cuda_piece *piece = &move->pieces[i];
    int64_t at[2];
    cuda_walk_at(&piece->walk, index, 2, at);
    cuda_step step = {piece->input, piece->output, at[1], at[0]};
    return step;
}

/* ---------------------------------------------------------- transposition */

/* A box copied tile by tile through shared memory, because what is consecutive in the input is not
 * in the output: `columns` elements lie side by side in the input, `rows` in the output. Elements
 * have unit_bytes bytes. Tiles have CUDA_TILE rows and columns, or twice as many where pairs of
 * elements can be read and written as one: sizes and places are even then. */
typedef struct cuda_turn {
    cuda_walk batch; /* Of everything else; operands as in a piece. */
    uint32_t rows;
    uint32_t columns;
    int64_t from_row;  /* Step in the input from one row to the next. */
    int64_t to_column; /* Step in the output from one column to the next. */
    uint32_t unit_bytes;
    uint32_t tile;      /* Rows and columns of a tile. */
    uint32_t tile_rows; /* Tiles along the rows and columns of one box. */
    uint32_t tile_columns;
    uint64_t tiles; /* Of all boxes. */
} cuda_turn;

/* One tile: where its corner lies. */
typedef struct cuda_tile {
    int64_t from;
    int64_t to;
    uint32_t row;
    uint32_t column;
} cuda_tile;

CUDA_BOTH cuda_tile cuda_turn_tile(const cuda_turn *turn, uint64_t tile)
{
    uint64_t per_box = (uint64_t)turn->tile_rows * turn->tile_columns;
    uint64_t box = per_box >> 32 == 0 ? cuda_quotient(tile, (uint32_t)per_box) : tile / per_box;
    uint32_t within = (uint32_t)(tile - box * per_box);
    int64_t at[2];
    cuda_walk_at(&turn->batch, box, 2, at);
    cuda_tile corner;
    corner.row = within / turn->tile_columns * turn->tile;
    corner.column = within % turn->tile_columns * turn->tile;
    corner.from = at[1] + corner.row * turn->from_row + corner.column;
    corner.to = at[0] + corner.column * turn->to_column + corner.row;
    return corner;
}

/* Whether element (row, column) of a tile exists, and its places. */
CUDA_BOTH int cuda_turn_has(const cuda_turn *turn, const cuda_tile *tile, uint32_t row,
                            uint32_t column)
{
    return tile->row + row < turn->rows && tile->column + column < turn->columns;
}

CUDA_BOTH int64_t cuda_turn_from(const cuda_turn *turn, const cuda_tile *tile, uint32_t row,
                                 uint32_t column)
{
    return tile->from + row * turn->from_row + column;
}

CUDA_BOTH int64_t cuda_turn_to(const cuda_turn *turn, const cuda_tile *tile, uint32_t row,
                               uint32_t column)
{
    return tile->to + column * turn->to_column + row;
}

/* ------------------------------------------------------------ computation */

typedef enum cuda_function {
    CUDA_RELU,
    CUDA_CLIP, /* low, high */
    CUDA_SIGMOID,
    CUDA_TANH,
    CUDA_EXP,
    CUDA_SQRT,
    CUDA_ERF,
    CUDA_LEAKY, /* slope in low */
    CUDA_GELU,
    CUDA_ADD,
    CUDA_SUB,
    CUDA_MUL,
    CUDA_DIV,
    CUDA_MAX,
    CUDA_MIN,
    CUDA_SCALE_SHIFT, /* a b + c */
    CUDA_BIAS,        /* activation(a + b) */
    CUDA_BIAS_ADD,    /* activation(a + b + c) */
    CUDA_FUNCTIONS =
        64 /* FUNCTION rows of operators.def by their ids; attributes in low and high */
} cuda_function;

/* out = function(a, b, c): operands 1 to 3 of the walk. */
typedef struct cuda_point {
    cuda_walk walk;
    uint32_t function; /* cuda_function */
    uint32_t inputs;
    int32_t activation; /* enum graft_activation */
    float low;
    float high;
    uint32_t width; /* Elements that one thread computes, along the last axis. */
} cuda_point;

/* Windows over images: pools and convolutions. Places of an element (n, c, y, x) are sums of its
 * subscripts times the strides of its tensor. */
typedef struct cuda_window {
    int32_t batch;
    int32_t channels; /* Of the output. */
    int32_t in_size[2];
    int32_t out_size[2];
    int32_t kernel[2];
    int32_t stride[2];
    int32_t before[2];
    int32_t dilation[2];
    int64_t in_steps[4];
    int64_t out_steps[4];
    int32_t mode;           /* Pools: 0 largest, 1 mean of what is there, 2 mean with padding. */
    int32_t group_inputs;   /* Convolutions: channels of the input per group... */
    int32_t group_outputs;  /* ...and of the output. */
    int32_t out_order_nhwc; /* Whether consecutive threads write consecutive channels. */
} cuda_window;

/* The output element (n, c, y, x) of thread `index`. */
CUDA_BOTH void cuda_window_at(const cuda_window *w, uint64_t index, int32_t *place)
{
    bool nhwc = w->out_order_nhwc != 0;
    uint32_t rows = (uint32_t)w->out_size[0];
    uint32_t columns = (uint32_t)w->out_size[1];
    uint32_t channels = (uint32_t)w->channels;
    const uint32_t size[3] = {nhwc ? rows : channels, nhwc ? columns : rows,
                              nhwc ? channels : columns};
    uint64_t lines = cuda_quotient(index, size[2]);
    uint64_t planes = cuda_quotient(lines, size[1]);
    uint64_t images = cuda_quotient(planes, size[0]);
    uint32_t inner = (uint32_t)(index - lines * size[2]);
    uint32_t middle = (uint32_t)(lines - planes * size[1]);
    uint32_t outer = (uint32_t)(planes - images * size[0]);
    place[0] = (int32_t)images;
    place[1] = (int32_t)(nhwc ? inner : outer);
    place[2] = (int32_t)(nhwc ? outer : middle);
    place[3] = (int32_t)(nhwc ? middle : inner);
}

CUDA_BOTH int64_t cuda_window_out(const cuda_window *w, const int32_t *place)
{
    return place[0] * w->out_steps[0] + place[1] * w->out_steps[1] + place[2] * w->out_steps[2] +
           place[3] * w->out_steps[3];
}

/* Taps [range[0], range[1]) of axis i that lie inside the input at output position `position`. */
CUDA_BOTH void cuda_window_taps(const cuda_window *w, uint32_t i, int32_t position, int32_t *range)
{
    int32_t start = position * w->stride[i] - w->before[i];
    int32_t end = w->in_size[i] - start; /* Distances below this are inside. */
    range[0] = start < 0 ? (-start + w->dilation[i] - 1) / w->dilation[i] : 0;
    range[1] = end <= 0 ? 0 : (end - 1) / w->dilation[i] + 1;
    range[1] = range[1] < w->kernel[i] ? range[1] : w->kernel[i];
}

/* Rows of a reduction, a softmax or a normalisation: `kept` says where row i begins in the output
 * (operand 0) and the input (operand 1), `row` where its elements lie relative to that. */
typedef enum cuda_row_mode {
    CUDA_ROW_SUM,
    CUDA_ROW_MEAN,
    CUDA_ROW_MAX,
    CUDA_ROW_SOFTMAX,
    CUDA_ROW_LAYER_NORM,
    CUDA_ROW_RMS_NORM
} cuda_row_mode;

typedef struct cuda_rows {
    cuda_walk kept;
    cuda_walk row;
    uint32_t mode; /* cuda_row_mode */
    float epsilon;
    uint32_t is_column; /* Reductions: consecutive rows begin side by side, so that threads that lie
                           side by side have a row each. */
    uint32_t width;     /* Elements that are read at once: along the row, whose elements lie side by
                           side if there are several, or of so many rows. */
} cuda_rows;

enum { CUDA_WIDTH_MOST = 8 };

/* Reductions. A group is one row, or `width` rows side by side in columns. Its first row. */
CUDA_BOTH uint64_t cuda_group_row(const cuda_rows *rows, uint64_t group)
{
    return rows->is_column != 0 ? group * rows->width : group;
}

/* How often something is read of a row, and where, relative to the row. */
CUDA_BOTH uint64_t cuda_row_reads(const cuda_rows *rows)
{
    return rows->is_column != 0 ? rows->row.count : rows->row.count / rows->width;
}

/* `is_column` and `width` are those of the rows, known when this is compiled. */
CUDA_BOTH int64_t cuda_row_read(const cuda_rows *rows, bool is_column, uint32_t width,
                                uint64_t read)
{
    int64_t at[2];
    if (!is_column && width > 1) {
        return (int64_t)(read * width);
    }
    cuda_walk_at(&rows->row, read, 2, at);
    return at[1];
}

/* Products: out(batch, m, p) = a(batch, m, n) b(batch, n, p); `batch` has operands out, a, b. */
typedef struct cuda_product {
    cuda_walk batch;
    uint32_t m;
    uint32_t n;
    uint32_t p;
} cuda_product;

/* Products with few rows, which take as long as reading b takes: out(m, p) = activation(a(m, n)
 * b(n, p) [+ bias(p)]). A block has a row, `lanes` units of `width` columns each, and as many
 * slices of n as it has threads left for; slice s reads rows s, s + slices... of b. */
typedef struct cuda_thin {
    uint32_t m;
    uint32_t n;
    uint32_t p;
    uint32_t width; /* Columns that are read at once: 1, or 16 bytes; p is a multiple. */
    uint32_t lanes; /* A power of two, at most the threads of a warp. */
    uint32_t has_bias;
    int32_t activation; /* enum graft_activation */
} cuda_thin;

enum { CUDA_THIN_ROWS = 8, CUDA_THIN_COLUMNS = 1 << 24, CUDA_THIN_AHEAD = 8 };
