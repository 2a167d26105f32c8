/* roofline.h - times that were not measured: a straight line through those that were.
 *
 *      ns = launch + bytes / bandwidth + operations / peak
 *
 * with three coefficients that are not negative, fitted by least squares of relative errors to a
 * device's own measurements, one line for products (convolutions, matrix products) and one for
 * everything else. An estimate always says that it is one, and how far such estimates were off. */
#pragma once

#include "cost/database/database.h"

typedef struct graft_roofline_line {
    double launch_ns;
    double ns_per_byte;
    double ns_per_flop;
    double error;    /* Median of |estimate / measured - 1| over the points. */
    uint32_t points; /* Measurements it was fitted to; 0: there is no line. */
} graft_roofline_line;

typedef struct graft_roofline {
    graft_roofline_line products;
    graft_roofline_line others;
} graft_roofline;

/* Least number of measurements of a class that a line is fitted to. */
enum { GRAFT_ROOFLINE_LEAST_POINTS = 6 };

/* Solves equations of a matrix that is positive definite or singular by Gauss-Jordan: rows of its
 * elements and the right side, which are lost. False when it is singular. */
bool graft_cost_solve(double *equations, uint32_t count, double *x);

/* Fits both lines to the measured entries of the selected device. A class with too few of them
 * takes the other's line; when both have too few, neither has points. */
void graft_roofline_fit(graft_env *env, const graft_database *database, graft_roofline *roofline);

/* A line through `count` points (bytes, flops, ns). */
graft_roofline_line graft_roofline_fit_line(graft_env *env, const graft_cost_entry *points,
                                            uint32_t count);

/* The estimate for an operator (GRAFT_OP_OPAQUE: by its bytes), marked as one. False when the
 * roofline has no points. */
bool graft_roofline_estimate(const graft_roofline *roofline, uint32_t op, uint64_t flops,
                             uint64_t bytes, graft_cost_entry *entry);

/* Signatures that span the range of sizes, `*count` of them in `arena`: what to measure where a
 * database has too little to fit a line to. */
graft_signature *graft_roofline_probes(graft_arena *arena, uint32_t *count);
