/* host_threads.c - see host_threads.h. The loops over blocks and lanes stand here as they do in
 * kernels.cu; where elements lie, and what is computed from them, is the same code. */
#include "tests/cuda/host_threads.h"
#include "tests/support/check.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define REAL               float
#define THREAD(f)          host_##f
#define LOAD(p)            (*(p))
#define STORE(p, x)        (*(p) = (x))
#define LOADS(p, width, x) memcpy(x, p, (width) * sizeof(float))
#include "cost/cuda/threads.inc"

/* Copies one unit, or fills it. */
static void copy_unit(const cuda_move *move, const cuda_step *step, const void *const *in,
                      void *const *out, uint8_t *const *written)
{
    size_t size = move->unit_bytes;
    char *to = (char *)out[step->output] + (size_t)step->to * size;
    if (step->input == CUDA_FILL) {
        for (size_t i = 0; i < size; i += 2) {
            memcpy(to + i, (const char *)&move->fill + i % 4, 2);
        }
    } else {
        memcpy(to, (const char *)in[step->input] + (size_t)step->from * size, size);
    }
    for (size_t i = 0; i < size && written != NULL; i++) {
        written[step->output][(size_t)step->to * size + i]++;
    }
}

static void copy_tile(const cuda_turn *turn, uint64_t index, const void *in, void *out,
                      uint8_t *written)
{
    cuda_tile tile = cuda_turn_tile(turn, index);
    size_t size = turn->unit_bytes;
    for (uint32_t row = 0; row < turn->tile; row++) {
        for (uint32_t column = 0; column < turn->tile; column++) {
            if (cuda_turn_has(turn, &tile, row, column)) {
                size_t to = (size_t)cuda_turn_to(turn, &tile, row, column) * size;
                size_t from = (size_t)cuda_turn_from(turn, &tile, row, column) * size;
                if (turn->tile > CUDA_TILE && row % 2 == 0 && column % 2 == 0) { /* A pair. */
                    assert_int_equal(to / size % 2, 0);
                    assert_int_equal(from / size % 2, 0);
                    assert_true(cuda_turn_has(turn, &tile, row + 1, column + 1));
                }
                memcpy((char *)out + to, (const char *)in + from, size);
                for (size_t i = 0; i < size && written != NULL; i++) {
                    written[to + i]++;
                }
            }
        }
    }
}

/* A group of rows by as many threads as a warp has, one after another. */
static void reduce(const cuda_rows *rows, uint64_t group, const float *in, float *out)
{
    enum { LANES = 32 };
    float found[CUDA_WIDTH_MOST] = {0.0F};
    int64_t at[2];
    cuda_walk_at(&rows->kept, cuda_group_row(rows, group), 2, at);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        float parts[CUDA_WIDTH_MOST];
        host_row_parts(rows, rows->is_column != 0, rows->width, in + at[1], lane, LANES, parts);
        for (uint32_t k = 0; k < rows->width; k++) {
            found[k] = lane == 0 ? parts[k] : host_join(rows->mode, found[k], parts[k]);
        }
    }
    for (uint32_t k = 1; k < rows->width && rows->is_column == 0; k++) {
        found[0] = host_join(rows->mode, found[0], found[k]);
    }
    for (uint32_t k = 0; k < (rows->is_column != 0 ? rows->width : 1U); k++) {
        cuda_walk_at(&rows->kept, cuda_group_row(rows, group) + k, 2, at);
        out[at[0]] = host_row_result(rows, found[k]);
    }
}

/* The largest element of a row, or its mean. */
static float find_centre(const cuda_rows *rows, const float *in)
{
    float result = 0.0F;
    for (uint64_t i = 0; i < rows->row.count; i++) {
        int64_t at[2];
        cuda_walk_at(&rows->row, i, 2, at);
        result = rows->mode != CUDA_ROW_SOFTMAX ? result + in[at[1]]
                 : i == 0                       ? in[at[1]]
                                                : host_largest(result, in[at[1]]);
    }
    return rows->mode == CUDA_ROW_SOFTMAX ? result : result / (float)rows->row.count;
}

static void normalise(const cuda_rows *rows, const float *const *in, float *out, const int64_t *at)
{
    float centre = find_centre(rows, in[0] + at[1]);
    float total = 0.0F;
    bool softmax = rows->mode == CUDA_ROW_SOFTMAX;
    int64_t place[2];
    for (uint64_t i = 0; i < rows->row.count; i++) {
        cuda_walk_at(&rows->row, i, 2, place);
        float d = in[0][at[1] + place[1]] - centre;
        total += softmax ? expf(d) : d * d;
    }
    float scale =
        softmax ? 1.0F / total : 1.0F / sqrtf(total / (float)rows->row.count + rows->epsilon);
    for (uint64_t i = 0; i < rows->row.count; i++) {
        cuda_walk_at(&rows->row, i, 2, place);
        float d = in[0][at[1] + place[1]] - centre;
        out[at[0] + place[0]] = softmax ? expf(d) * scale : d * scale * in[1][i] + in[2][i];
    }
}

static void run_rows(const cuda_rows *rows, uint64_t index, const float *const *in, float *out)
{
    int64_t at[2];
    if (rows->mode >= CUDA_ROW_SOFTMAX) {
        cuda_walk_at(&rows->kept, index, 2, at);
        normalise(rows, in, out, at);
    } else {
        reduce(rows, index, in[0], out);
    }
}

/* A unit of columns of a product of few rows, slice by slice. */
static void multiply_thin(const cuda_thin *t, uint64_t index, const float *const *in, float *out)
{
    enum { THREADS = 256 };
    const uint32_t units = t->p / t->width;
    const uint32_t row = (uint32_t)(index / units);
    const uint32_t unit = (uint32_t)(index % units);
    const uint32_t slices = THREADS / t->lanes;
    float sums[CUDA_WIDTH_MOST] = {0.0F};
    for (uint32_t slice = 0; slice < slices; slice++) {
        host_thin_part(t, t->width, in[0], in[1], row, unit, slice, slices, sums);
    }
    for (uint32_t w = 0; w < t->width; w++) {
        const uint32_t column = unit * t->width + w;
        const float x = t->has_bias != 0 ? sums[w] + in[2][column] : sums[w];
        out[row * t->p + column] = host_activate(t->activation, x);
    }
}

static void run_thread(const cuda_job *job, uint64_t i, const float *const *in, float *out)
{
    switch (job->kind) {
    case CUDA_JOB_POINT:
        assert(job->as.point.inputs < CUDA_OPERANDS);
        host_points(&job->as.point, in, out, i);
        break;
    case CUDA_JOB_POOL:
        host_pool(&job->as.window, in[0], out, i);
        break;
    case CUDA_JOB_CONV:
        host_conv(&job->as.window, in[0], in[1], out, i);
        break;
    case CUDA_JOB_PRODUCT:
        host_product(&job->as.product, in[0], in[1], out, i);
        break;
    case CUDA_JOB_THIN:
        multiply_thin(&job->as.thin, i, in, out);
        break;
    case CUDA_JOB_ROWS:
        run_rows(&job->as.rows, i, in, out);
        break;
    case CUDA_JOB_MOVE:
    case CUDA_JOB_TURN:
        break;
    }
}

float host_threads_near_gelu(float x) { return host_near_gelu(x); }

void host_threads_run(const cuda_job *job, const void *const *in, void *const *out,
                      uint8_t *const *written)
{
    const float *reals[3] = {in[0], in[1], in[2]};
    for (uint64_t i = 0; i < job->threads; i++) {
        if (job->kind == CUDA_JOB_MOVE) {
            cuda_step step = cuda_move_at(&job->as.move, i);
            copy_unit(&job->as.move, &step, in, out, written);
        } else if (job->kind == CUDA_JOB_TURN) {
            copy_tile(&job->as.turn, i, in[0], out[0], written == NULL ? NULL : written[0]);
        } else {
            run_thread(job, i, reals, out[0]);
        }
    }
}
