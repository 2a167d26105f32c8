/* results.c - see results.h. */
#include "emit/report/results.h"

#include "emit/report/decisions.h"
#include "graph/base/file.h"
#include "graph/base/settings.h"

#include <assert.h>

graft_result *graft_results_add(graft_results *results, const char *method, const char *how)
{
    assert(results->count < GRAFT_RESULTS_MOST);
    graft_result *row = &results->rows[results->count++];
    *row = (graft_result){.method = method, .how = how};
    return row;
}

static void print_row(graft_buffer *text, const graft_result *row)
{
    graft_buffer_printf(text,
                        "{\"method\": \"%s\", \"how\": \"%s\", \"cost_ns\": %.1f, "
                        "\"estimated\": %llu, \"interactions\": %llu, \"seconds\": %.3f, "
                        "\"measured_ns\": %.1f, \"spread_ns\": %.1f, \"measured_ratio\": %.5f, "
                        "\"steps\": %u, \"plan\": [",
                        row->method, row->how, row->cost_ns, (unsigned long long)row->estimated,
                        (unsigned long long)row->interactions, row->seconds, row->measured_ns,
                        row->spread_ns, row->measured_ratio, row->step_count);
    for (uint32_t i = 0; i < row->step_count; i++) {
        graft_buffer_printf(text, "%s[%u, %u]", i > 0 ? ", " : "", row->steps[i].xfer,
                            row->steps[i].location);
    }
    graft_buffer_printf(text, "]}");
}

graft_status graft_results_write(graft_env *env, const graft_results *results, const char *path)
{
    GRAFT_SCOPED(env->unit);
    graft_buffer text = {.arena = env->unit};
    graft_buffer_printf(&text, "[\n");
    for (uint32_t i = 0; i < results->count; i++) {
        print_row(&text, &results->rows[i]);
        graft_buffer_printf(&text, "%s\n", i + 1 < results->count ? "," : "");
    }
    graft_buffer_printf(&text, "]\n");
    return graft_file_write(env, path, text.data, text.size);
}

/* ---------------------------------------------------------------- reading */

static graft_status read_action(graft_env *env, const graft_yaml *item, graft_action *action)
{
    uint64_t numbers[2] = {0, 0};
    bool right = item->kind == GRAFT_YAML_SEQUENCE && item->count == 2;
    for (uint32_t i = 0; right && i < 2; i++) {
        const char *text = item->items[i].text;
        right = item->items[i].kind == GRAFT_YAML_SCALAR &&
                graft_text_number(&text, 10, UINT16_MAX, &numbers[i]) && *text == '\0';
    }
    if (!right) {
        return graft_yaml_fail(env, item, "expected [xfer, location]");
    }
    *action = (graft_action){.xfer = (uint16_t)numbers[0], .location = (uint16_t)numbers[1]};
    return GRAFT_OK;
}

static graft_status read_plan(graft_env *env, graft_arena *arena, const graft_yaml *item,
                              graft_result *row)
{
    const graft_yaml *plan = graft_yaml_find(item, "plan");
    if (plan == NULL || plan->kind != GRAFT_YAML_SEQUENCE || plan->count != row->step_count) {
        return graft_yaml_fail(env, item, "'plan' must list %u steps", row->step_count);
    }
    row->steps = GRAFT_NEW(arena, graft_action, row->step_count);
    for (uint32_t i = 0; i < plan->count; i++) {
        GRAFT_PASS(read_action(env, &plan->items[i], &row->steps[i]));
    }
    return GRAFT_OK;
}

static graft_status read_numbers(graft_env *env, const graft_yaml *item, graft_result *row)
{
    int64_t estimated = 0;
    int64_t interactions = 0;
    int64_t steps = 0;
    GRAFT_PASS(graft_yaml_real(env, item, "cost_ns", 0, 1e18, &row->cost_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "seconds", 0, 1e9, &row->seconds));
    GRAFT_PASS(graft_yaml_real(env, item, "measured_ns", 0, 1e18, &row->measured_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "spread_ns", 0, 1e18, &row->spread_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "measured_ratio", 0, 1e9, &row->measured_ratio));
    GRAFT_PASS(graft_yaml_integer(env, item, "estimated", 0, INT32_MAX, &estimated));
    GRAFT_PASS(graft_yaml_integer(env, item, "interactions", 0, INT64_MAX / 2, &interactions));
    GRAFT_PASS(graft_yaml_integer(env, item, "steps", 0, 1 << 20, &steps));
    row->estimated = (uint64_t)estimated;
    row->interactions = (uint64_t)interactions;
    row->step_count = (uint32_t)steps;
    return GRAFT_OK;
}

static graft_status read_row(graft_env *env, graft_arena *arena, const graft_yaml *item,
                             graft_results *results)
{
    const char *method = NULL;
    const char *how = NULL;
    GRAFT_PASS(graft_yaml_text(env, item, "method", &method));
    GRAFT_PASS(graft_yaml_text(env, item, "how", &how));
    graft_result *row = graft_results_add(results, method, how);
    GRAFT_PASS(read_numbers(env, item, row));
    return read_plan(env, arena, item, row);
}

graft_status graft_results_read(graft_env *env, graft_arena *arena, const char *path,
                                graft_results *results)
{
    const graft_yaml *root = NULL;
    results->count = 0;
    GRAFT_PASS(graft_yaml_read(env, arena, path, &root));
    if (root->kind != GRAFT_YAML_SEQUENCE || root->count > GRAFT_RESULTS_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: expected a list of at most %d results", path,
                          GRAFT_RESULTS_MOST);
    }
    for (uint32_t i = 0; i < root->count; i++) {
        GRAFT_PASS(read_row(env, arena, &root->items[i], results));
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------- printing */

void graft_results_print(const graft_results *results, FILE *out)
{
    const double base_ns = results->count > 0 ? results->rows[0].cost_ns : 0;
    (void)fprintf(out, "%-20s %-22s %10s %7s %11s %9s %7s %6s %9s %9s %5s\n", "method", "how",
                  "cost ms", "of", "measured ms", "+/- ms", "of", "steps", "graphs", "seconds",
                  "est.");
    for (uint32_t i = 0; i < results->count; i++) {
        const graft_result *row = &results->rows[i];
        (void)fprintf(out, "%-20s %-22s %10.3f %6.1f%%", row->method, row->how, row->cost_ns / 1e6,
                      base_ns > 0 ? 100.0 * row->cost_ns / base_ns : 0.0);
        if (row->measured_ns > 0) {
            (void)fprintf(out, " %11.3f %9.3f %6.1f%%", row->measured_ns / 1e6,
                          row->spread_ns / 1e6, 100.0 * row->measured_ratio);
        } else {
            (void)fprintf(out, " %11s %9s %7s", "-", "-", "-");
        }
        (void)fprintf(out, " %6u %9llu %9.1f %5llu\n", row->step_count,
                      (unsigned long long)row->interactions, row->seconds,
                      (unsigned long long)row->estimated);
    }
}
