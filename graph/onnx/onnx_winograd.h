/* onnx_winograd.h - Winograd's convolution (Lavin and Gray, CVPR 2016) in matrices, of any number of
 * outputs m and taps r (Cook and Toom; Blahut, Fast Algorithms for Digital Signal Processing, 5.2):
 *
 *     y = at ((g w) * (bt x))        for m outputs y, r taps w and n = m + r - 1 inputs x
 *
 * Products of polynomials are had by their values at n points: 0, 1, -1, 2, -2 and infinity, as many
 * as are needed. Along two axes it is done along each. */
#pragma once

#include <stdint.h>

enum { GRAFT_WINOGRAD_POINTS_MOST = 6 };

typedef struct graft_onnx_winograd {
    uint32_t outputs; /* m */
    uint32_t taps;    /* r */
    uint32_t points;  /* n, up to GRAFT_WINOGRAD_POINTS_MOST; 1 for one output and one tap. */
    double bt[GRAFT_WINOGRAD_POINTS_MOST][GRAFT_WINOGRAD_POINTS_MOST]; /* n x n, whole numbers. */
    double g[GRAFT_WINOGRAD_POINTS_MOST][GRAFT_WINOGRAD_POINTS_MOST];  /* n x r */
    double at[GRAFT_WINOGRAD_POINTS_MOST][GRAFT_WINOGRAD_POINTS_MOST]; /* m x n, whole numbers. */
    uint32_t ones; /* A point whose column in `at` is all ones: what is added there is to all. */
} graft_onnx_winograd;

/* The matrices of `outputs` outputs and `taps` taps. */
void graft_onnx_winograd_make(uint32_t outputs, uint32_t taps, graft_onnx_winograd *winograd);
