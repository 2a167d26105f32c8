/* figures.c - see figures.h. */
#include "figures.h"

#include "file.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

static graft_status append(graft_figures *f, const char *data, size_t size)
{
    if (f->size + size > f->capacity) {
        size_t capacity = 2 * (f->size + size);
        char *grown = realloc(f->text, capacity);
        if (grown == NULL) {
            return GRAFT_FAIL(f->env, GRAFT_NO_MEMORY, "no memory left for a benchmark's figures");
        }
        f->text = grown;
        f->capacity = capacity;
    }
    memcpy(f->text + f->size, data, size);
    f->size += size;
    return GRAFT_OK;
}

/* Writes the whole lines when there are new ones, or when `anyway`. */
static graft_status save(graft_figures *f, bool anyway)
{
    size_t whole = f->size;
    while (whole > f->shown && f->text[whole - 1] != '\n') {
        whole--;
    }
    if (whole == f->shown && !anyway) {
        return GRAFT_OK;
    }
    graft_status status = graft_file_write(f->env, f->path, f->text == NULL ? "" : f->text, whole);
    if (status == GRAFT_OK && whole > f->shown) {
        (void)fwrite(f->text + f->shown, 1, whole - f->shown, stdout);
        (void)fflush(stdout);
        f->shown = whole;
    }
    return status;
}

/* What stdio hands over when the stream is flushed, or full. After a failure nothing is written any
 * more, but the benchmark goes on: its end tells. */
static ssize_t take(void *cookie, const char *data, size_t size)
{
    graft_figures *f = cookie;
    if (f->status == GRAFT_OK) {
        f->status = append(f, data, size);
    }
    if (f->status == GRAFT_OK) {
        f->status = save(f, false);
    }
    return (ssize_t)size;
}

graft_status graft_figures_open(graft_env *env, const char *path, graft_figures *figures)
{
    const cookie_io_functions_t functions = {.write = take};
    *figures = (graft_figures){.env = env, .path = path};
    figures->stream = fopencookie(figures, "w", functions);
    return figures->stream != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a benchmark's figures");
}

graft_status graft_figures_close(graft_figures *figures, graft_status status)
{
    (void)fclose(figures->stream);
    if (status == GRAFT_OK) {
        status = figures->status == GRAFT_OK ? save(figures, figures->shown == 0) : figures->status;
    }
    free(figures->text);
    return status;
}

void graft_figure_print(graft_env *env, FILE *out, const graft_figure *figure)
{
    GRAFT_SCOPED(env->scratch);
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", figure->name);
    graft_json_string(&json, "unit", figure->unit);
    graft_json_number(&json, "median", figure->median);
    graft_json_number(&json, "spread", figure->spread);
    graft_json_integer(&json, "rounds", figure->rounds);
    graft_json_end(&json, out);
}

int graft_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}
