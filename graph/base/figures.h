/* figures.h - a file of figures that grows while a benchmark runs.
 *
 * Benchmarks take minutes to hours, and what one has measured must not be lost when it is
 * interrupted or crashes. They print lines to a stream; whenever that is flushed, the file is
 * replaced by all whole lines so far (as graft_file_write does it, whoever kills the program), and
 * those that are new are echoed to the standard output. */
#pragma once

#include "env.h"

typedef struct graft_figures {
    FILE *stream; /* To print to, and to flush. */
    graft_env *env;
    const char *path;
    char *text;
    size_t size;
    size_t capacity;
    size_t shown;        /* Of the text: in the file, and echoed. */
    graft_status status; /* The first failure to write. */
} graft_figures;

/* Opens a stream for the file `path`, which stays as it is until the first line is flushed. Keeps
 * env, path and the address of `figures`. GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_figures_open(graft_env *env, const char *path,
                                               graft_figures *figures);
/* Flushes, writes (also when there is no line) and closes. `status` is how the benchmark ended, and
 * is returned unless it is GRAFT_OK and something could not be written: then graft_file_write's
 * failure, or GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_figures_close(graft_figures *figures, graft_status status);

/* A figure that was measured several times. */
typedef struct graft_figure {
    const char *name;
    const char *unit;
    double median;
    double spread; /* Between the quartiles. */
    uint32_t rounds;
} graft_figure;

/* Prints a line: {"name", "unit", "median", "spread", "rounds"}. Uses env->scratch. */
void graft_figure_print(graft_env *env, FILE *out, const graft_figure *figure);
/* For qsort: doubles, the least first. */
int graft_compare_doubles(const void *a, const void *b);
