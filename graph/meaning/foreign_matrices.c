/* foreign_matrices.c - determinants of square matrices (see foreign.h). */
#include "graph/meaning/algebra.h"
#include "graph/meaning/foreign_rows.h"

#include <math.h>
#include <string.h>

bool graft_foreign_det_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[0];
    const bool fits = x->dtype == GRAFT_DTYPE_F32 && x->rank >= 2 &&
                      x->dims[x->rank - 1U] == x->dims[x->rank - 2U];
    *shape = (graft_shape){.rank = (uint8_t)(fits ? x->rank - 2U : 0), .dtype = x->dtype};
    memcpy(shape->dims, x->dims, shape->rank * sizeof(shape->dims[0]));
    return fits;
}

static void swap_rows(double *a, double *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const double kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* By elimination with the largest pivots; `x` is used up. */
static double determinant(double *x, size_t size)
{
    double product = 1.0;
    for (size_t k = 0; k < size && product != 0.0; k++) {
        size_t pivot = k;
        for (size_t row = k + 1; row < size; row++) {
            pivot = fabs(x[row * size + k]) > fabs(x[pivot * size + k]) ? row : pivot;
        }
        if (pivot != k) {
            swap_rows(x + k * size, x + pivot * size, size);
            product = -product;
        }
        product *= x[k * size + k];
        for (size_t row = k + 1; row < size && product != 0.0; row++) {
            const double factor = x[row * size + k] / x[k * size + k];
            for (size_t i = k; i < size; i++) {
                x[row * size + i] -= factor * x[k * size + i];
            }
        }
    }
    return product;
}

GRAFT_FOREIGN_RUNNER(det)
{
    GRAFT_SCOPED(env->scratch);
    const size_t size = (size_t)opaque->in[0].dims[opaque->in[0].rank - 1U];
    const size_t count = (size_t)graft_shape_elements(&opaque->out);
    double *matrix = GRAFT_NEW(env->scratch, double, size *size);
    for (size_t n = 0; n < count; n++) {
        const float *x = (const float *)opaque->data[0] + n * size * size;
        for (size_t i = 0; i < size * size; i++) {
            matrix[i] = (double)x[i];
        }
        ((float *)out)[n] = (float)determinant(matrix, size);
    }
    return GRAFT_OK;
}
