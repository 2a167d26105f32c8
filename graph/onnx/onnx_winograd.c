/* onnx_winograd.c - see onnx_winograd.h. */
#include "graph/onnx/onnx_winograd.h"

#include <assert.h>
#include <string.h>

static const double points[GRAFT_WINOGRAD_POINTS_MOST - 1] = {0.0, 1.0, -1.0, 2.0, -2.0};

/* The coefficients of the product of (x - p) over the first `count` points but `without`. */
static void multiply_out(uint32_t count, uint32_t without, double *coefficients)
{
    coefficients[0] = 1.0;
    for (uint32_t i = 0, degree = 0; i < count; i++) {
        if (i == without) {
            continue;
        }
        coefficients[++degree] = 0.0;
        for (uint32_t k = degree; k > 0; k--) {
            coefficients[k] = coefficients[k - 1] - points[i] * coefficients[k];
        }
        coefficients[0] *= -points[i];
    }
}

void graft_onnx_winograd_make(uint32_t outputs, uint32_t taps, graft_onnx_winograd *winograd)
{
    const uint32_t n = outputs + taps - 1;
    const uint32_t last = n - 1; /* Infinity: the leading coefficients. */
    assert(n >= 1 && n <= GRAFT_WINOGRAD_POINTS_MOST);
    memset(winograd, 0, sizeof(*winograd));
    winograd->outputs = outputs;
    winograd->taps = taps;
    winograd->points = n;
    winograd->ones = n > 2 ? 1 : 0;
    for (uint32_t i = 0; i < last; i++) {
        double others = 1.0; /* The product of this point's distances from the others. */
        double power = 1.0;
        multiply_out(last, i, winograd->bt[i]);
        for (uint32_t j = 0; j < last; j++) {
            others *= j == i ? 1.0 : points[i] - points[j];
        }
        for (uint32_t k = 0; k < taps || k < outputs; k++) {
            if (k < taps) {
                winograd->g[i][k] = power / others;
            }
            if (k < outputs) {
                winograd->at[k][i] = power;
            }
            power *= points[i];
        }
    }
    multiply_out(last, last, winograd->bt[last]);
    winograd->g[last][taps - 1] = 1.0;
    winograd->at[outputs - 1][last] = 1.0;
}
