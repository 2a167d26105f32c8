/* kernels.cu - our own kernels: data movement, elementwise operators, rows, and plain forms of
 * everything else, for what cuDNN does not have (see moves.h, index.h, threads.inc).
 *
 * Movement copies units of up to 16 bytes, whatever they hold; transpositions go through a tile of
 * shared memory, so that reads and writes are both side by side. Elementwise kernels compute in
 * binary32 on as many elements as fit 16 bytes. Rows are reduced by a warp or a block each. */
#include "cost/cuda/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

/* One element, or the 16 bytes from an aligned place on, as floats. */
static __host__ __device__ inline float to_float(float x) { return x; }
static __host__ __device__ inline float to_float(__half x) { return __half2float(x); }
static __host__ __device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
static __host__ __device__ inline void load_many(const T *from, uint32_t width, float *x)
{
    if (width == 1) {
        x[0] = to_float(*from);
        return;
    }
    const uint4 bits = *(const uint4 *)from;
    const T *elements = (const T *)&bits;
    for (uint32_t i = 0; i < 16 / sizeof(T); i++) {
        x[i] = to_float(elements[i]);
    }
}

#define LOADS(p, width, x) load_many(p, width, x)

/* The instantiations of threads.inc under one name each (real.inc). */
template <typename T> struct real;

#define REAL        float
#define THREAD(f)   f##_f32
#define LOAD(p)     (*(p))
#define STORE(p, x) (*(p) = (x))
#include "cost/cuda/threads.inc"
#include "cost/cuda/real.inc"
#undef REAL
#undef THREAD
#undef LOAD
#undef STORE

#define REAL        __half
#define THREAD(f)   f##_f16
#define LOAD(p)     __half2float(*(p))
#define STORE(p, x) (*(p) = __float2half_rn(x))
#include "cost/cuda/threads.inc"
#include "cost/cuda/real.inc"
#undef REAL
#undef THREAD
#undef LOAD
#undef STORE

#define REAL        __nv_bfloat16
#define THREAD(f)   f##_bf16
#define LOAD(p)     __bfloat162float(*(p))
#define STORE(p, x) (*(p) = __float2bfloat16_rn(x))
#include "cost/cuda/threads.inc"
#include "cost/cuda/real.inc"
#undef REAL
#undef THREAD
#undef LOAD
#undef STORE

enum { THREADS = 256, TILE_ROWS = 8, WARP = 32 };

static const uint64_t blocks_most = 1 << 20;

/* Operands of a launch. */
struct operands {
    const void *in[3];
    void *out[2];
};

static __device__ inline uint64_t first_thread()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline uint64_t all_threads() { return (uint64_t)gridDim.x * blockDim.x; }

/* --------------------------------------------------------------- movement */

/* The first `sizeof(U)` bytes of the value repeated. */
template <typename U> static __device__ inline U filled(uint32_t bits)
{
    union {
        uint32_t words[4];
        U unit;
    } all = {{bits, bits, bits, bits}};
    return all.unit;
}

template <typename U>
static __global__ void __launch_bounds__(THREADS)
    move_units(const __grid_constant__ cuda_move move, const __grid_constant__ operands data)
{
    for (uint64_t i = first_thread(); i < move.total; i += all_threads()) {
        cuda_step step = cuda_move_at(&move, i);
        U *to = (U *)data.out[step.output] + step.to;
        *to = step.input == CUDA_FILL ? filled<U>(move.fill)
                                      : ((const U *)data.in[step.input])[step.from];
    }
}

template <typename U>
static __global__ void __launch_bounds__(CUDA_TILE *TILE_ROWS)
    turn_tiles(const __grid_constant__ cuda_turn turn, const U *in, U *out)
{
    __shared__ U held[CUDA_TILE][CUDA_TILE + 1]; /* No two rows in the same bank. */
    for (uint64_t t = blockIdx.x; t < turn.tiles; t += gridDim.x) {
        cuda_tile tile = cuda_turn_tile(&turn, t);
        U read[CUDA_TILE / TILE_ROWS] = {}; /* All reads are under way before the first is waited for. */
#pragma unroll
        for (uint32_t i = 0; i < CUDA_TILE / TILE_ROWS; i++) {
            const uint32_t row = i * TILE_ROWS + threadIdx.y;
            if (cuda_turn_has(&turn, &tile, row, threadIdx.x)) {
                read[i] = in[cuda_turn_from(&turn, &tile, row, threadIdx.x)];
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < CUDA_TILE / TILE_ROWS; i++) {
            held[i * TILE_ROWS + threadIdx.y][threadIdx.x] = read[i];
        }
        __syncthreads();
        for (uint32_t column = threadIdx.y; column < CUDA_TILE; column += TILE_ROWS) {
            if (cuda_turn_has(&turn, &tile, threadIdx.x, column)) {
                out[cuda_turn_to(&turn, &tile, threadIdx.x, column)] = held[threadIdx.x][column];
            }
        }
        __syncthreads(); /* Before the next tile overwrites this one. */
    }
}

/* The same with tiles twice as wide and high, of pairs: P is two of U. */
template <typename U, typename P>
static __global__ void __launch_bounds__(CUDA_TILE *TILE_ROWS)
    turn_pairs(const __grid_constant__ cuda_turn turn, const U *in, U *out)
{
    union pair {
        P both;
        U each[2];
    };
    __shared__ P held[2 * CUDA_TILE][CUDA_TILE + 1];
    const uint32_t x = threadIdx.x;
    for (uint64_t t = blockIdx.x; t < turn.tiles; t += gridDim.x) {
        cuda_tile tile = cuda_turn_tile(&turn, t);
        P read[2 * CUDA_TILE / TILE_ROWS] = {}; /* As above. */
#pragma unroll
        for (uint32_t i = 0; i < 2 * CUDA_TILE / TILE_ROWS; i++) {
            const uint32_t row = i * TILE_ROWS + threadIdx.y;
            if (cuda_turn_has(&turn, &tile, row, 2 * x)) {
                read[i] = *(const P *)&in[cuda_turn_from(&turn, &tile, row, 2 * x)];
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < 2 * CUDA_TILE / TILE_ROWS; i++) {
            held[i * TILE_ROWS + threadIdx.y][x] = read[i];
        }
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < CUDA_TILE; i += TILE_ROWS) {
            const uint32_t column = i + threadIdx.y;
            if (cuda_turn_has(&turn, &tile, 2 * x, 2 * column)) {
                const pair upper = {held[2 * x][column]};
                const pair lower = {held[2 * x + 1][column]};
                pair left;
                pair right;
                left.each[0] = upper.each[0];
                left.each[1] = lower.each[0];
                right.each[0] = upper.each[1];
                right.each[1] = lower.each[1];
                *(P *)&out[cuda_turn_to(&turn, &tile, 2 * x, 2 * column)] = left.both;
                *(P *)&out[cuda_turn_to(&turn, &tile, 2 * x, 2 * column + 1)] = right.both;
            }
        }
        __syncthreads(); /* Before the next tile overwrites this one. */
    }
}

/* ------------------------------------------------------------ elementwise */

/* 16 bytes as elements. */
template <typename T> union pack {
    uint4 bits;
    T elements[16 / sizeof(T)];
    __device__ pack() {}
};

template <typename T>
static __device__ inline void load_operand(const cuda_point *point, const T *from, uint32_t k,
                                           float *x)
{
    const uint32_t width = 16 / sizeof(T);
    pack<T> p;
    if (point->walk.steps[k][point->walk.rank - 1] == 0) {
        float repeated = real<T>::load(from);
        for (uint32_t i = 0; i < width; i++) {
            x[i] = repeated;
        }
        return;
    }
    p.bits = *(const uint4 *)from;
    for (uint32_t i = 0; i < width; i++) {
        x[i] = real<T>::load(&p.elements[i]);
    }
}

/* The function of an elementwise kernel: one that is known when it is compiled, or, with
 * CUDA_FUNCTIONS, whatever the operands say. A kernel of all functions is large, and small tensors
 * take as long as it takes to begin. */
template <typename T, uint32_t F>
static __device__ inline float apply(const cuda_point &point, float a, float b, float c)
{
    if (F == CUDA_FUNCTIONS) {
        return real<T>::point(&point, a, b, c);
    }
    cuda_point known;
    known.function = F;
    known.activation = point.activation;
    known.low = point.low;
    known.high = point.high;
    return real<T>::point(&known, a, b, c);
}

template <typename T, uint32_t F>
static __global__ void __launch_bounds__(THREADS)
    wide_points(const __grid_constant__ cuda_point point, const __grid_constant__ operands data)
{
    const uint32_t width = 16 / sizeof(T);
    for (uint64_t i = first_thread(); i < point.walk.count; i += all_threads()) {
        int64_t at[CUDA_OPERANDS];
        float x[3][width] = {};
        pack<T> result;
        cuda_walk_at(&point.walk, i, CUDA_OPERANDS, at); /* All: places stay in registers. */
#pragma unroll
        for (uint32_t k = 0; k < 3; k++) {
            if (k < point.inputs) {
                load_operand<T>(&point, (const T *)data.in[k] + at[k + 1], k + 1, x[k]);
            }
        }
#pragma unroll
        for (uint32_t e = 0; e < width; e++) {
            real<T>::store(&result.elements[e], apply<T, F>(point, x[0][e], x[1][e], x[2][e]));
        }
        *(uint4 *)((T *)data.out[0] + at[0]) = result.bits;
    }
}

template <typename T, uint32_t F>
static __global__ void __launch_bounds__(THREADS)
    single_points(const __grid_constant__ cuda_point point, const __grid_constant__ operands data)
{
    for (uint64_t i = first_thread(); i < point.walk.count; i += all_threads()) {
        int64_t at[CUDA_OPERANDS];
        float x[3] = {};
        cuda_walk_at(&point.walk, i, CUDA_OPERANDS, at);
#pragma unroll
        for (uint32_t k = 0; k < 3; k++) {
            if (k < point.inputs) {
                x[k] = real<T>::load((const T *)data.in[k] + at[k + 1]);
            }
        }
        real<T>::store((T *)data.out[0] + at[0], apply<T, F>(point, x[0], x[1], x[2]));
    }
}

/* ------------------------------------------------- windows and products */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    pool_windows(const __grid_constant__ cuda_window w, uint64_t count, const T *in, T *out)
{
    for (uint64_t i = first_thread(); i < count; i += all_threads()) {
        real<T>::pool(&w, in, out, i);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    conv_windows(const __grid_constant__ cuda_window w, uint64_t count, const T *in,
                 const T *filters, T *out)
{
    for (uint64_t i = first_thread(); i < count; i += all_threads()) {
        real<T>::conv(&w, in, filters, out, i);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ cuda_product job, uint64_t count, const T *a, const T *b,
             T *out)
{
    for (uint64_t i = first_thread(); i < count; i += all_threads()) {
        real<T>::product(&job, a, b, out, i);
    }
}

/* A row and `lanes` units of columns a block. A warp adds its slices up, then the block its warps. */
template <typename T, uint32_t W>
static __global__ void __launch_bounds__(THREADS)
    multiply_thin(const __grid_constant__ cuda_thin t, const T *a, const T *b, const T *bias,
                  T *out)
{
    __shared__ float held[THREADS / WARP][WARP * W];
    const uint32_t lane = threadIdx.x % t.lanes;
    const uint32_t unit = blockIdx.x * t.lanes + lane;
    float sums[W] = {};
    if (unit * W < t.p) {
        real<T>::thin_part(&t, W, a, b, blockIdx.y, unit, threadIdx.x / t.lanes, THREADS / t.lanes,
                           sums);
    }
    for (uint32_t step = WARP / 2; step >= t.lanes; step /= 2) {
#pragma unroll
        for (uint32_t w = 0; w < W; w++) {
            sums[w] += __shfl_xor_sync(0xffffffffU, sums[w], (int)step);
        }
    }
    if (threadIdx.x % WARP < t.lanes) {
#pragma unroll
        for (uint32_t w = 0; w < W; w++) {
            held[threadIdx.x / WARP][lane * W + w] = sums[w];
        }
    }
    __syncthreads();
    const uint32_t column = blockIdx.x * t.lanes * W + threadIdx.x;
    if (threadIdx.x < t.lanes * W && column < t.p) {
        float x = t.has_bias != 0 ? real<T>::load(&bias[column]) : 0.0F;
        for (uint32_t i = 0; i < THREADS / WARP; i++) {
            x += held[i][threadIdx.x];
        }
        real<T>::store(&out[(uint64_t)blockIdx.y * t.p + column],
                       real<T>::activate(t.activation, x));
    }
}

/* --------------------------------------------------------------------- rows */

static __device__ inline float larger(float a, float b) { return a != a || a > b ? a : b; }

/* The sum or the largest of a value per thread, for every thread of the warp; all call this. */
static __device__ float over_warp(float x, bool largest)
{
    for (uint32_t step = WARP / 2; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffU, x, (int)step);
        x = largest ? larger(x, other) : x + other;
    }
    return x;
}

/* The same for every thread of the block. `held` has a place per warp. */
static __device__ float over_block(float x, bool largest, float *held)
{
    x = over_warp(x, largest);
    __syncthreads(); /* Nobody reads what is held from the last time any more. */
    if (threadIdx.x % WARP == 0) {
        held[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    x = held[0];
    for (uint32_t i = 1; i < THREADS / WARP; i++) {
        x = largest ? larger(x, held[i]) : x + held[i];
    }
    return x;
}

static __device__ inline bool seeks_largest(uint32_t mode)
{
    return mode == CUDA_ROW_MAX || mode == CUDA_ROW_SOFTMAX;
}

template <typename T>
static __device__ float part_of_row(const cuda_rows *rows, const T *in, int64_t from, uint32_t lane,
                                    uint32_t lanes)
{
    bool largest = seeks_largest(rows->mode);
    float result = largest ? -INFINITY : 0.0F;
    for (uint64_t i = lane; i < rows->row.count; i += lanes) {
        int64_t at[2];
        cuda_walk_at(&rows->row, i, 2, at);
        float x = real<T>::load(&in[from + at[1]]);
        result = largest ? larger(result, x) : result + x;
    }
    return result;
}

/* Exponentials over their sum; differences from the mean over the deviation, or from 0 over the root
 * of the mean square. */
template <typename T>
static __device__ void write_row(const cuda_rows *rows, const operands *data, const int64_t *row,
                                 float centre, float *held)
{
    const T *in = (const T *)data->in[0];
    bool softmax = rows->mode == CUDA_ROW_SOFTMAX;
    float total = 0.0F;
    int64_t at[2];
    for (uint64_t i = threadIdx.x; i < rows->row.count; i += THREADS) {
        cuda_walk_at(&rows->row, i, 2, at);
        float d = real<T>::load(&in[row[1] + at[1]]) - centre;
        total += softmax ? expf(d) : d * d;
    }
    total = over_block(total, false, held);
    float scale =
        softmax ? 1.0F / total : 1.0F / sqrtf(total / (float)rows->row.count + rows->epsilon);
    for (uint64_t i = threadIdx.x; i < rows->row.count; i += THREADS) {
        cuda_walk_at(&rows->row, i, 2, at);
        float d = real<T>::load(&in[row[1] + at[1]]) - centre;
        float x = softmax ? expf(d) * scale
                          : d * scale * real<T>::load((const T *)data->in[1] + i);
        if (rows->mode == CUDA_ROW_LAYER_NORM) {
            x += real<T>::load((const T *)data->in[2] + i);
        }
        real<T>::store((T *)data->out[0] + row[0] + at[0], x);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    block_rows(const __grid_constant__ cuda_rows rows, const __grid_constant__ operands data)
{
    __shared__ float held[THREADS / WARP];
    for (uint64_t r = blockIdx.x; r < rows.kept.count; r += gridDim.x) {
        int64_t row[2];
        cuda_walk_at(&rows.kept, r, 2, row);
        float x = 0.0F;
        if (rows.mode != CUDA_ROW_RMS_NORM) {
            x = part_of_row<T>(&rows, (const T *)data.in[0], row[1], threadIdx.x, THREADS);
            x = over_block(x, seeks_largest(rows.mode), held);
            x = rows.mode == CUDA_ROW_LAYER_NORM ? x / (float)rows.row.count : x;
        }
        write_row<T>(&rows, &data, row, x, held);
    }
}

template <uint32_t LANES>
static __device__ inline float over_lanes(float x, bool largest, float *held)
{
    return LANES == WARP ? over_warp(x, largest) : over_block(x, largest, held);
}

template <typename T>
static __device__ inline void store_many(T *to, uint32_t width, const float *x)
{
    if (width == 1) {
        real<T>::store(to, x[0]);
        return;
    }
    pack<T> p;
#pragma unroll
    for (uint32_t i = 0; i < 16 / sizeof(T); i++) {
        real<T>::store(&p.elements[i], x[i]);
    }
    *(uint4 *)to = p.bits;
}

/* How often a thread reads, of a row that registers hold. */
template <uint32_t W> struct held_reads {
    static const uint32_t most = W == 1 ? 8 : 4;
};

/* What block_rows computes, of rows whose elements lie side by side: they are read once, and kept by
 * `LANES` threads, a warp or the block. W: what is read at once. */
template <typename T, uint32_t W, uint32_t LANES>
static __global__ void __launch_bounds__(THREADS)
    held_rows(const __grid_constant__ cuda_rows rows, const __grid_constant__ operands data)
{
    const uint32_t most = held_reads<W>::most;
    const uint32_t lane = threadIdx.x % LANES;
    const uint32_t reads = (uint32_t)rows.row.count / W;
    const bool softmax = rows.mode == CUDA_ROW_SOFTMAX;
    const float count = (float)rows.row.count;
    __shared__ float held[THREADS / WARP];
    for (uint64_t r = (uint64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
         r < rows.kept.count; r += (uint64_t)gridDim.x * (THREADS / LANES)) {
        int64_t at[2];
        float x[most][W];
        float centre = softmax ? -INFINITY : 0.0F;
        float total = 0.0F;
        cuda_walk_at(&rows.kept, r, 2, at);
        const T *in = (const T *)data.in[0] + at[1];
        T *out = (T *)data.out[0] + at[0];
#pragma unroll
        for (uint32_t i = 0; i < most; i++) {
            if (lane + i * LANES < reads) {
                load_many(in + (lane + i * LANES) * W, W, x[i]);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < most; i++) {
            for (uint32_t k = 0; k < W && lane + i * LANES < reads; k++) {
                centre = softmax ? larger(centre, x[i][k]) : centre + x[i][k];
            }
        }
        centre = rows.mode == CUDA_ROW_RMS_NORM ? 0.0F : over_lanes<LANES>(centre, softmax, held);
        centre = rows.mode == CUDA_ROW_LAYER_NORM ? centre / count : centre;
#pragma unroll
        for (uint32_t i = 0; i < most; i++) {
            for (uint32_t k = 0; k < W && lane + i * LANES < reads; k++) {
                const float d = x[i][k] - centre;
                x[i][k] = softmax ? expf(d) : d;
                total += softmax ? x[i][k] : d * d;
            }
        }
        total = over_lanes<LANES>(total, false, held);
        const float scale = softmax ? 1.0F / total : 1.0F / sqrtf(total / count + rows.epsilon);
#pragma unroll
        for (uint32_t i = 0; i < most; i++) {
            const uint32_t first = (lane + i * LANES) * W;
            float factor[W];
            float shift[W];
            if (lane + i * LANES >= reads) {
                break;
            }
            if (!softmax) {
                load_many((const T *)data.in[1] + first, W, factor);
            }
            if (rows.mode == CUDA_ROW_LAYER_NORM) {
                load_many((const T *)data.in[2] + first, W, shift);
            }
            for (uint32_t k = 0; k < W; k++) {
                x[i][k] *= softmax ? scale : scale * factor[k];
                x[i][k] += rows.mode == CUDA_ROW_LAYER_NORM ? shift[k] : 0.0F;
            }
            store_many(out + first, W, x[i]);
        }
    }
}

/* Reductions along the row: `LANES` threads, a warp or the block, have a row. W: its width. */
template <typename T, uint32_t W, uint32_t LANES>
static __global__ void __launch_bounds__(THREADS)
    reduce_rows(const __grid_constant__ cuda_rows rows, const T *in, T *out)
{
    const uint64_t rows_at_once = (uint64_t)gridDim.x * (THREADS / LANES);
    const uint32_t lane = threadIdx.x % LANES;
    __shared__ float held[THREADS / WARP];
    for (uint64_t r = (uint64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
         r < rows.kept.count; r += rows_at_once) {
        int64_t at[2];
        float parts[CUDA_WIDTH_MOST];
        cuda_walk_at(&rows.kept, r, 2, at);
        real<T>::row_parts(&rows, false, W, in + at[1], lane, LANES, parts);
#pragma unroll
        for (uint32_t k = 1; k < W; k++) {
            parts[0] = real<T>::join(rows.mode, parts[0], parts[k]);
        }
        /* Lanes of one warp have the same row, so that all are here. */
        float x = over_lanes<LANES>(parts[0], rows.mode == CUDA_ROW_MAX, held);
        if (lane == 0) {
            real<T>::store(out + at[0], real<T>::row_result(&rows, x));
        }
    }
}

enum { COLUMN_LANES = THREADS / WARP };

/* Reductions of rows that lie side by side: threads side by side have W rows each, and the lanes of
 * a block share the elements of these. */
template <typename T, uint32_t W>
static __global__ void __launch_bounds__(THREADS)
    reduce_columns(const __grid_constant__ cuda_rows rows, uint64_t groups, const T *in, T *out)
{
    __shared__ float held[COLUMN_LANES][WARP][W];
    const uint32_t column = threadIdx.x % WARP;
    const uint32_t lane = threadIdx.x / WARP;
    for (uint64_t first = (uint64_t)blockIdx.x * WARP; first < groups;
         first += (uint64_t)gridDim.x * WARP) {
        const uint64_t group = first + column;
        int64_t at[2];
        float parts[CUDA_WIDTH_MOST];
        if (group < groups) {
            cuda_walk_at(&rows.kept, cuda_group_row(&rows, group), 2, at);
            real<T>::row_parts(&rows, true, W, in + at[1], lane, COLUMN_LANES, parts);
#pragma unroll
            for (uint32_t k = 0; k < W; k++) {
                held[lane][column][k] = parts[k];
            }
        }
        __syncthreads();
        if (group < groups && lane == 0) {
            for (uint32_t k = 0; k < W; k++) {
                float x = held[0][column][k];
                for (uint32_t i = 1; i < COLUMN_LANES; i++) {
                    x = real<T>::join(rows.mode, x, held[i][column][k]);
                }
                cuda_walk_at(&rows.kept, cuda_group_row(&rows, group) + k, 2, at);
                real<T>::store(out + at[0], real<T>::row_result(&rows, x));
            }
        }
        __syncthreads(); /* Before the next groups overwrite what is held. */
    }
}

/* ---------------------------------------------------------------- launching */

static unsigned blocks_for(uint64_t threads, uint64_t each)
{
    uint64_t blocks = (threads + each - 1) / each;
    return (unsigned)(blocks > blocks_most ? blocks_most : blocks);
}

static void launch_move(const cuda_move *move, const operands *data, cudaStream_t stream)
{
    unsigned blocks = blocks_for(move->total, THREADS);
    switch (move->unit_bytes) {
    case 16:
        move_units<uint4><<<blocks, THREADS, 0, stream>>>(*move, *data);
        break;
    case 8:
        move_units<uint2><<<blocks, THREADS, 0, stream>>>(*move, *data);
        break;
    case 4:
        move_units<uint32_t><<<blocks, THREADS, 0, stream>>>(*move, *data);
        break;
    default:
        move_units<uint16_t><<<blocks, THREADS, 0, stream>>>(*move, *data);
        break;
    }
}

static void launch_turn(const cuda_turn *turn, const operands *data, cudaStream_t stream)
{
    unsigned blocks = blocks_for(turn->tiles, 1);
    const dim3 threads(CUDA_TILE, TILE_ROWS);
    const void *in = data->in[0];
    void *out = data->out[0];
    if (turn->unit_bytes == 4 && turn->tile > CUDA_TILE) {
        turn_pairs<uint32_t, uint2>
            <<<blocks, threads, 0, stream>>>(*turn, (const uint32_t *)in, (uint32_t *)out);
    } else if (turn->unit_bytes == 4) {
        turn_tiles<uint32_t>
            <<<blocks, threads, 0, stream>>>(*turn, (const uint32_t *)in, (uint32_t *)out);
    } else if (turn->tile > CUDA_TILE) {
        turn_pairs<uint16_t, uint32_t>
            <<<blocks, threads, 0, stream>>>(*turn, (const uint16_t *)in, (uint16_t *)out);
    } else {
        turn_tiles<uint16_t>
            <<<blocks, threads, 0, stream>>>(*turn, (const uint16_t *)in, (uint16_t *)out);
    }
}

template <typename T>
static void launch_thin(const cuda_thin *t, const operands *data, cudaStream_t stream)
{
    const dim3 blocks(blocks_for(t->p / t->width, t->lanes), t->m);
    const T *a = (const T *)data->in[0];
    const T *b = (const T *)data->in[1];
    const T *bias = (const T *)data->in[2];
    T *out = (T *)data->out[0];
    if (t->width > 1) {
        multiply_thin<T, 16 / sizeof(T)><<<blocks, THREADS, 0, stream>>>(*t, a, b, bias, out);
    } else {
        multiply_thin<T, 1><<<blocks, THREADS, 0, stream>>>(*t, a, b, bias, out);
    }
}

/* Rows that registers hold have a warp each if one has room for them, else a block. */
template <typename T, uint32_t W>
static bool launch_held(const cuda_job *job, const operands *data, cudaStream_t stream)
{
    const cuda_rows *rows = &job->as.rows;
    const uint64_t reads = rows->row.count / W;
    if (rows->row.rank != 1 || rows->row.steps[0][0] != 1 || rows->row.steps[1][0] != 1 ||
        reads > held_reads<W>::most * THREADS) {
        return false;
    }
    if (reads <= held_reads<W>::most * WARP) {
        held_rows<T, W, WARP>
            <<<blocks_for(job->threads, THREADS / WARP), THREADS, 0, stream>>>(*rows, *data);
    } else {
        held_rows<T, W, THREADS><<<blocks_for(job->threads, 1), THREADS, 0, stream>>>(*rows, *data);
    }
    return true;
}

/* Softmax and normalisations. */
template <typename T>
static void launch_rows(const cuda_job *job, const operands *data, cudaStream_t stream)
{
    bool is_held = job->as.rows.width > 1 ? launch_held<T, 16 / sizeof(T)>(job, data, stream)
                                          : launch_held<T, 1>(job, data, stream);
    if (!is_held) {
        block_rows<T><<<blocks_for(job->threads, 1), THREADS, 0, stream>>>(job->as.rows, *data);
    }
}

/* Rows that one warp reads in a few steps have a warp each. */
template <typename T, uint32_t W>
static void launch_reduction(const cuda_job *job, const T *in, T *out, cudaStream_t stream)
{
    const cuda_rows *rows = &job->as.rows;
    if (rows->is_column) {
        reduce_columns<T, W>
            <<<blocks_for(job->threads, WARP), THREADS, 0, stream>>>(*rows, job->threads, in, out);
    } else if (cuda_row_reads(rows) <= 16 * WARP) {
        reduce_rows<T, W, WARP>
            <<<blocks_for(job->threads, THREADS / WARP), THREADS, 0, stream>>>(*rows, in, out);
    } else {
        reduce_rows<T, W, THREADS>
            <<<blocks_for(job->threads, 1), THREADS, 0, stream>>>(*rows, in, out);
    }
}

template <typename T, uint32_t F>
static void launch_function(const cuda_point &point, const operands *data, unsigned blocks,
                            cudaStream_t stream)
{
    if (point.width > 1) {
        wide_points<T, F><<<blocks, THREADS, 0, stream>>>(point, *data);
    } else {
        single_points<T, F><<<blocks, THREADS, 0, stream>>>(point, *data);
    }
}

/* Every function that has a name here has kernels of its own; F: the first that it may be. */
template <typename T, uint32_t F>
static void launch_points(const cuda_point &point, const operands *data, unsigned blocks,
                          cudaStream_t stream)
{
    if constexpr (F > CUDA_BIAS_ADD) {
        launch_function<T, CUDA_FUNCTIONS>(point, data, blocks, stream);
    } else if (point.function == F) {
        launch_function<T, F>(point, data, blocks, stream);
    } else {
        launch_points<T, F + 1>(point, data, blocks, stream);
    }
}

template <typename T>
static void launch_typed(const cuda_job *job, const operands *data, cudaStream_t stream)
{
    unsigned blocks = blocks_for(job->threads, THREADS);
    const T *a = (const T *)data->in[0];
    const T *b = (const T *)data->in[1];
    T *out = (T *)data->out[0];
    switch (job->kind) {
    case CUDA_JOB_POINT:
        launch_points<T, CUDA_RELU>(job->as.point, data, blocks, stream);
        break;
    case CUDA_JOB_POOL:
        pool_windows<T><<<blocks, THREADS, 0, stream>>>(job->as.window, job->threads, a, out);
        break;
    case CUDA_JOB_CONV:
        conv_windows<T><<<blocks, THREADS, 0, stream>>>(job->as.window, job->threads, a, b, out);
        break;
    case CUDA_JOB_PRODUCT:
        multiply<T><<<blocks, THREADS, 0, stream>>>(job->as.product, job->threads, a, b, out);
        break;
    case CUDA_JOB_THIN:
        launch_thin<T>(&job->as.thin, data, stream);
        break;
    case CUDA_JOB_ROWS:
        if (job->as.rows.mode >= CUDA_ROW_SOFTMAX) {
            launch_rows<T>(job, data, stream);
        } else if (job->as.rows.width > 1) {
            launch_reduction<T, 16 / sizeof(T)>(job, a, out, stream);
        } else {
            launch_reduction<T, 1>(job, a, out, stream);
        }
        break;
    default: /* Movement does not depend on the type. */
        break;
    }
}

extern "C" cudaError_t cuda_job_launch(const cuda_job *job, cuda_type type, const void *const *in,
                                       void *const *out, cudaStream_t stream)
{
    const operands data = {
        {in[0], in[1], in[2]},
        {out[0],     out[1]    }
    };
    if (job->kind == CUDA_JOB_MOVE) {
        launch_move(&job->as.move, &data, stream);
    } else if (job->kind == CUDA_JOB_TURN) {
        launch_turn(&job->as.turn, &data, stream);
    } else if (type == CUDA_F16) {
        launch_typed<__half>(job, &data, stream);
    } else if (type == CUDA_BF16) {
        launch_typed<__nv_bfloat16>(job, &data, stream);
    } else {
        launch_typed<float>(job, &data, stream);
    }
    return cudaGetLastError();
}
