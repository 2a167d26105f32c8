/* plot.h - the roofline of a device with a model's operators under it, as an SVG file. */
#pragma once

#include "cost/measure/ceiling.h"
#include "cost/measure/report.h"

typedef struct graft_plot {
    const char *title; /* Written above. */
    const graft_ceiling *ceiling;
    const graft_cost_row *rows;
    uint32_t count;
    double total_ns; /* Of which a row's time is a share. */
} graft_plot;

/* Operations per byte to the right, operations per second upwards, both logarithmic; a disc per row
 * that computes, its area being its share of the total. GRAFT_IO when the file cannot be written;
 * GRAFT_UNSUPPORTED when the ceiling is not known. */
GRAFT_MUST_USE graft_status graft_plot_write(graft_env *env, const char *path,
                                             const graft_plot *plot);
