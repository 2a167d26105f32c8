/* evaluation_cells.c - the file of an evaluation's results (see evaluation.h). */
#include "emit/bench/evaluation.h"

#include "emit/report/decisions.h"
#include "graph/base/file.h"
#include "graph/base/settings.h"

#include <inttypes.h>
#include <string.h>

graft_cell *graft_cells_find(const graft_cells *cells, const char *model, const char *method,
                             uint32_t seed)
{
    for (uint32_t i = 0; i < cells->count; i++) {
        graft_cell *cell = &cells->items[i];
        if (cell->seed == seed && strcmp(cell->model, model) == 0 &&
            strcmp(cell->method, method) == 0) {
            return cell;
        }
    }
    return NULL;
}

void graft_cells_put(graft_arena *arena, graft_cells *cells, const graft_cell *cell)
{
    graft_cell *place = graft_cells_find(cells, cell->model, cell->method, cell->seed);
    if (place == NULL) {
        place = &GRAFT_PUSH(arena, cells->items, cells->count, cells->capacity, 256);
    }
    *place = *cell;
}

/* ------------------------------------------------------------------- writing */

void graft_cell_print(graft_buffer *text, const graft_cell *cell)
{
    graft_buffer_printf(text,
                        "{\"model\": \"%s\", \"family\": \"%s\", \"method\": \"%s\", \"seed\": %u, "
                        "\"inputs\": \"%016" PRIx64 "\", \"first_ns\": %.4f, \"cost_ns\": %.4f, "
                        "\"seconds\": %.3f, \"measured\": %.5f, \"measured_spread\": %.5f, "
                        "\"peak_bytes\": %" PRIu64 ", ",
                        cell->model, cell->family, cell->method, cell->seed, cell->inputs,
                        cell->first_ns, cell->cost_ns, cell->seconds, cell->measured,
                        cell->measured_spread, cell->peak_bytes);
    graft_buffer_printf(text,
                        "\"first_estimates\": %u, \"estimates\": %u, \"steps\": %u, \"graphs\": "
                        "%" PRIu64 ", \"cut\": %s, \"rules\": %s}\n",
                        cell->first_estimates, cell->estimates, cell->steps, cell->graphs,
                        cell->cut ? "true" : "false", cell->rules);
}

graft_status graft_cells_write(graft_env *env, const graft_cells *cells, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    for (uint32_t i = 0; i < cells->count; i++) {
        graft_cell_print(&text, &cells->items[i]);
    }
    return graft_file_write(env, path, text.data, text.size);
}

/* ------------------------------------------------------------------- reading */

/* The rules as they were written. */
static graft_status read_rules(graft_env *env, graft_arena *arena, const graft_yaml *item,
                               const char **rules)
{
    const graft_yaml *map = graft_yaml_find(item, "rules");
    graft_buffer text = {.arena = arena};
    if (map == NULL || map->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(env, item, "'rules' must be a mapping");
    }
    graft_buffer_printf(&text, "{");
    for (uint32_t i = 0; i < map->count; i++) {
        const graft_yaml *rule = &map->items[i];
        if (rule->kind != GRAFT_YAML_SCALAR) {
            return graft_yaml_fail(env, rule, "'rules' must have numbers");
        }
        graft_buffer_printf(&text, "%s\"%s\": %s", i > 0 ? ", " : "", rule->key, rule->text);
    }
    graft_buffer_printf(&text, "}");
    *rules = text.data;
    return GRAFT_OK;
}

static graft_status read_cell(graft_env *env, graft_arena *arena, const graft_yaml *item,
                              graft_cell *cell)
{
    const char *inputs = NULL;
    int64_t numbers[6] = {0};
    GRAFT_PASS(graft_yaml_text(env, item, "model", &cell->model));
    GRAFT_PASS(graft_yaml_text(env, item, "family", &cell->family));
    GRAFT_PASS(graft_yaml_text(env, item, "method", &cell->method));
    GRAFT_PASS(graft_yaml_text(env, item, "inputs", &inputs));
    GRAFT_PASS(graft_yaml_real(env, item, "first_ns", 0, 1e18, &cell->first_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "cost_ns", 0, 1e18, &cell->cost_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "seconds", 0, 1e9, &cell->seconds));
    GRAFT_PASS(graft_yaml_real(env, item, "measured", 0, 1e9, &cell->measured));
    GRAFT_PASS(graft_yaml_real(env, item, "measured_spread", 0, 1e9, &cell->measured_spread));
    GRAFT_PASS(graft_yaml_integer(env, item, "peak_bytes", 0, INT64_MAX / 2, &numbers[5]));
    GRAFT_PASS(graft_yaml_integer(env, item, "seed", 0, INT32_MAX, &numbers[0]));
    GRAFT_PASS(graft_yaml_integer(env, item, "first_estimates", 0, INT32_MAX, &numbers[1]));
    GRAFT_PASS(graft_yaml_integer(env, item, "estimates", 0, INT32_MAX, &numbers[2]));
    GRAFT_PASS(graft_yaml_integer(env, item, "steps", 0, INT32_MAX, &numbers[3]));
    GRAFT_PASS(graft_yaml_integer(env, item, "graphs", 0, INT64_MAX / 2, &numbers[4]));
    GRAFT_PASS(graft_yaml_bool(env, item, "cut", &cell->cut));
    GRAFT_PASS(read_rules(env, arena, item, &cell->rules));
    cell->seed = (uint32_t)numbers[0];
    cell->first_estimates = (uint32_t)numbers[1];
    cell->estimates = (uint32_t)numbers[2];
    cell->steps = (uint32_t)numbers[3];
    cell->graphs = (uint64_t)numbers[4];
    cell->peak_bytes = (uint64_t)numbers[5];
    if (!graft_text_number(&inputs, 16, UINT64_MAX, &cell->inputs) || *inputs != '\0') {
        return graft_yaml_fail(env, item, "'inputs' must be a hash");
    }
    return GRAFT_OK;
}

static graft_status take_cell(graft_env *env, graft_arena *arena, void *cells,
                              const graft_yaml *root)
{
    graft_cell cell;
    GRAFT_PASS(read_cell(env, arena, root, &cell));
    graft_cells_put(arena, cells, &cell);
    return GRAFT_OK;
}

graft_status graft_cells_read(graft_env *env, graft_arena *arena, const char *path,
                              graft_cells *cells)
{
    *cells = (graft_cells){.count = 0};
    return graft_yaml_read_lines(env, arena, path, take_cell, cells);
}
