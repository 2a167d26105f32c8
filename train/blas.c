/* blas.c - OpenBLAS set-up. Its releases name processors by model number and treat every number
 * they have not met as a Prescott of 2004: on a 2023 server that costs a factor of five. The
 * kernels can be chosen by OPENBLAS_CORETYPE, but only before the library is loaded; the two
 * functions below are what its loader calls, so the choice can be repeated here. They are not in
 * its header, hence weak: where they are absent the library's own choice stands. */
#include "train/blas.h"

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
        size_t count = (size_t)rows * cols;
        for (size_t i = 0; i < count; i++) {
            out[i] = beta == 0.0F ? 0.0F : beta * out[i];
        }
        return;
    }
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, as_int(rows), as_int(cols), as_int(inner),
                1.0F, a.value, as_int(a.cols), b.value, as_int(b.cols), beta, out, as_int(cols));
}
