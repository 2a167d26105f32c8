/* results.h - what each method found for one model: a table that `graft policy` fills and writes as
 * a JSON array (one method a line, its plan included), and `graft report` reads back, measures,
 * prints and writes again. */
#pragma once

#include "graph/base/env.h"
#include "train/search/search.h"

enum { GRAFT_RESULTS_MOST = 24 };

typedef struct graft_result {
    const char *method;    /* "before", "greedy", "policy"... */
    const char *how;       /* What the row rests on besides the method: "alone", "with plans"... */
    double cost_ns;        /* By the cost database. */
    uint64_t estimated;    /* Operators of the final graph whose cost is an estimate. */
    uint64_t interactions; /* Graphs of the real environment that the method looked at. */
    double seconds;
    uint32_t step_count;
    graft_action *steps;   /* The plan: (xfer, location) from the model's graph on. */
    double measured_ns;    /* End to end, by `graft report`; 0: not measured. */
    double spread_ns;      /* Interquartile range of that. */
    double measured_ratio; /* Median of paired ratios to the model as given; for that one itself,
                              the control: it against itself. */
} graft_result;

typedef struct graft_results {
    uint32_t count;
    graft_result rows[GRAFT_RESULTS_MOST];
} graft_results;

/* Appends a row and returns it; there must be room. */
graft_result *graft_results_add(graft_results *results, const char *method, const char *how);
/* Writes all rows atomically. */
GRAFT_MUST_USE graft_status graft_results_write(graft_env *env, const graft_results *results,
                                                const char *path);
/* Reads them back into `arena`. GRAFT_IO; GRAFT_BAD_INPUT naming file, line and key. */
GRAFT_MUST_USE graft_status graft_results_read(graft_env *env, graft_arena *arena, const char *path,
                                               graft_results *results);
/* Prints the table for people. */
void graft_results_print(const graft_results *results, FILE *out);
