/* blas.c - OpenBLAS set-up. Its releases name processors by model number and treat every number
 * they have not met as a Prescott of 2004: on a 2023 server that costs a factor of five. The
 * kernels can be chosen by OPENBLAS_CORETYPE, but only before the library is loaded; the two
 * functions below are what its loader calls, so the choice can be repeated here. They are not in
 * its header, hence weak: where they are absent the library's own choice stands. */
#include "train/nn/blas.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));

/* The best kernel family that this processor can run, or NULL. */
static const char *choose_core(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return "SkylakeX";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return "Haswell";
    }
#endif
    return NULL;
}

void graft_blas_open(void)
{
    openblas_set_num_threads(1);
    const char *core = choose_core();
    bool fell_back = strcmp(openblas_get_corename(), "Prescott") == 0;
    bool can_repeat = gotoblas_dynamic_quit != NULL && gotoblas_dynamic_init != NULL;
    if (!fell_back || !can_repeat || core == NULL || getenv("OPENBLAS_CORETYPE") != NULL) {
        return;
    }
    if (setenv("OPENBLAS_CORETYPE", core, 1) == 0) {
        gotoblas_dynamic_quit();
        gotoblas_dynamic_init();
        unsetenv("OPENBLAS_CORETYPE");
    }
}

const char *graft_blas_core(void) { return openblas_get_corename(); }

static int as_int(uint32_t size)
{
    assert(size <= INT_MAX);
    return (int)size;
}

/* ------------------------------------------------------------------- products with few rows */

/* A recurrent network multiplies two or three rows by a large matrix, over and over. For that
 * OpenBLAS first copies the matrix into its own layout, which takes longer than the product (by a
 * factor of five with its AVX2 kernels). Below, the matrix is read once, as it lies, eight of its
 * rows at a time. */
enum { FEW_ROWS = 12, GROUP_ROWS = 3, DEPTH = 8 };

/* out (rows, cols) += a (rows, inner) b (inner, cols), with `rows` known when it is inlined. */
static inline __attribute__((always_inline)) void
multiply_group(uint32_t rows, const float *restrict a, const graft_factor *b, float *restrict out)
{
    size_t inner = b->rows;
    size_t cols = b->cols;
    size_t k = 0;
    for (; k + DEPTH <= inner; k += DEPTH) {
        const float *restrict from = b->value + k * cols;
        for (size_t j = 0; j < cols; j++) {
            for (uint32_t i = 0; i < rows; i++) {
                float sum = out[i * cols + j];
#pragma GCC unroll 8
                for (size_t d = 0; d < DEPTH; d++) {
                    sum += a[i * inner + k + d] * from[d * cols + j];
                }
                out[i * cols + j] = sum;
            }
        }
    }
    for (; k < inner; k++) {
        for (uint32_t i = 0; i < rows; i++) {
            for (size_t j = 0; j < cols; j++) {
                out[i * cols + j] += a[i * inner + k] * b->value[k * cols + j];
            }
        }
    }
}

/* out *= beta; 0 does not read. */
static void scale_floats(size_t count, float beta, float *out)
{
    for (size_t i = 0; i < count && beta != 1.0F; i++) {
        out[i] = beta == 0.0F ? 0.0F : beta * out[i];
    }
}

static void multiply_few(const graft_factor *a, const graft_factor *b, float beta, float *out)
{
    scale_floats((size_t)a->rows * b->cols, beta, out);
    uint32_t row = 0;
    for (; row + GROUP_ROWS <= a->rows; row += GROUP_ROWS) {
        multiply_group(GROUP_ROWS, a->value + (size_t)row * a->cols, b,
                       out + (size_t)row * b->cols);
    }
    if (a->rows - row == 2) {
        multiply_group(2, a->value + (size_t)row * a->cols, b, out + (size_t)row * b->cols);
    } else if (a->rows - row == 1) {
        multiply_group(1, a->value + (size_t)row * a->cols, b, out + (size_t)row * b->cols);
    }
}

void graft_blas_multiply(graft_factor a, graft_factor b, float beta, float *out)
{
    uint32_t rows = a.transposed ? a.cols : a.rows;
    uint32_t inner = a.transposed ? a.rows : a.cols;
    uint32_t cols = b.transposed ? b.rows : b.cols;
    assert(inner == (b.transposed ? b.cols : b.rows));
    if (rows == 0 || cols == 0) {
        return;
    }
    if (inner == 0) {
        scale_floats((size_t)rows * cols, beta, out);
        return;
    }
    if (rows <= FEW_ROWS && !a.transposed && !b.transposed) {
        multiply_few(&a, &b, beta, out);
        return;
    }
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, as_int(rows), as_int(cols), as_int(inner),
                1.0F, a.value, as_int(a.cols), b.value, as_int(b.cols), beta, out, as_int(cols));
}
