/* report.c - the table of a model's costs (see report.h). */
#include "cost/measure/report.h"

#include "graph/base/json.h"

#include <stdlib.h>

/* -------------------------------------------------------------------- rows */

static int compare_shares(const void *a, const void *b)
{
    const graft_cost_row *left = a;
    const graft_cost_row *right = b;
    double difference =
        left->entry.median_ns * (double)left->count - right->entry.median_ns * (double)right->count;
    if (difference != 0.0) {
        return difference < 0.0 ? 1 : -1;
    }
    return graft_signature_compare(&left->signature, &right->signature);
}

graft_status graft_cost_rows(graft_env *env, graft_cost *cost, const graft_graph *graph,
                             const graft_schedule *schedule, graft_cost_row **rows, uint32_t *count)
{
    graft_cost_row *list = GRAFT_NEW(env->life, graft_cost_row, schedule->step_count);
    uint32_t used = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const graft_step *step = &schedule->steps[i];
        bool opaque = step->signature.op == GRAFT_OP_OPAQUE; /* No two of them are known equal. */
        uint32_t at = opaque ? used : 0;
        while (at < used && !graft_signature_equal(&list[at].signature, &step->signature)) {
            at++;
        }
        if (at == used) {
            list[used].signature = step->signature;
            list[used].node = step->node;
            GRAFT_PASS(graft_cost_step(env, cost, graph, schedule, i, &list[used].entry));
            used++;
        }
        list[at].count++;
    }
    qsort(list, used, sizeof(list[0]), compare_shares);
    *rows = list;
    *count = used;
    return GRAFT_OK;
}

static void print_json_row(graft_env *env, const graft_cost_row *row, double total_ns,
                           const graft_ceiling *ceiling)
{
    GRAFT_SCOPED(env->scratch);
    graft_json json;
    graft_buffer signature = {.arena = env->scratch};
    const graft_cost_entry *e = &row->entry;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "operator", graft_signature_operator(&row->signature));
    if (row->signature.op != GRAFT_OP_OPAQUE) {
        graft_signature_print(&row->signature, &signature);
    }
    graft_json_string(&json, "signature", signature.data);
    graft_json_integer(&json, "count", row->count);
    graft_json_number(&json, "median_ns", e->median_ns);
    graft_json_number(&json, "spread_ns", e->spread_ns);
    graft_json_integer(&json, "rounds", e->rounds);
    graft_json_string(&json, "source", graft_cost_source_name(e));
    graft_json_string(&json, "implementation",
                      e->implementation[0] == '\0' ? NULL : e->implementation);
    graft_json_number(&json, "share", e->median_ns * row->count / total_ns);
    graft_json_number(&json, "gflops_per_s", (double)e->flops / e->median_ns);
    graft_json_number(&json, "gbytes_per_s", (double)e->bytes / e->median_ns);
    graft_json_number(&json, "of_roofline", graft_ceiling_reached(ceiling, e));
    graft_json_end(&json, stdout);
}

/* "1x64x56x56, 256x64x1x1" */
static void print_shapes(const graft_signature *s, graft_buffer *text)
{
    for (uint32_t k = 0; k < s->input_count && k < 2; k++) {
        graft_buffer_printf(text, "%s", k == 0 ? "" : ", ");
        for (uint32_t i = 0; i < s->inputs[k].rank; i++) {
            graft_buffer_printf(text, "%s%d", i == 0 ? "" : "x", s->inputs[k].dims[i]);
        }
    }
}

static void print_text_row(graft_env *env, const graft_cost_row *row, double total_ns,
                           const graft_ceiling *ceiling)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer shapes = {.arena = env->scratch};
    const graft_cost_entry *e = &row->entry;
    graft_buffer_printf(&shapes, "%s", "");
    print_shapes(&row->signature, &shapes);
    bool measured = e->source == GRAFT_COST_MEASURED;
    (void)printf(
        "%5.1f %% %4u x %s%9.1f us +- %7.1f %8.1f GFLOP/s %7.1f GB/s %5.0f %% of roof  %-15s %-28s "
        "%s\n",
        100.0 * e->median_ns * row->count / total_ns, row->count, measured ? " " : "~",
        e->median_ns / 1e3, e->spread_ns / 1e3, (double)e->flops / e->median_ns,
        (double)e->bytes / e->median_ns, 100.0 * graft_ceiling_reached(ceiling, e),
        graft_signature_operator(&row->signature), shapes.data,
        measured ? e->implementation : "(estimated)");
}

void graft_cost_print_rows(graft_env *env, const graft_cost_row *rows, uint32_t count,
                           double total_ns, const graft_ceiling *ceiling)
{
    for (uint32_t i = 0; i < count; i++) {
        if (env->json) {
            print_json_row(env, &rows[i], total_ns, ceiling);
        } else {
            print_text_row(env, &rows[i], total_ns, ceiling);
        }
    }
}

/* ----------------------------------------------------------------- summary */

static void print_json_summary(graft_env *env, const graft_cost *cost, const graft_cost_summary *s)
{
    graft_json json;
    graft_cost_statistics statistics;
    graft_cost_statistics_of(cost, &statistics);
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "model", s->model);
    graft_json_string(&json, "device", graft_device_name(graft_cost_device(cost)));
    graft_json_string(&json, "library", graft_device_library(graft_cost_device(cost)));
    graft_json_number(&json, "sum_ns", s->total.ns);
    graft_json_number(&json, "reorder_ns", s->total.reorder_ns);
    graft_json_integer(&json, "launches", s->total.launches);
    graft_json_integer(&json, "flops", (int64_t)s->total.flops);
    graft_json_integer(&json, "bytes", (int64_t)s->total.bytes);
    graft_json_integer(&json, "estimated", s->total.estimated_count);
    graft_json_integer(&json, "calibrated_by", graft_cost_calibration(cost).graphs);
    graft_json_integer(&json, "measured_now", statistics.measured);
    graft_json_number(&json, "measuring_s", (double)statistics.measuring_ns / 1e9);
    if (s->timing.rounds > 0) {
        graft_json_number(&json, "whole_ns", s->timing.median_ns);
        graft_json_number(&json, "whole_spread_ns", s->timing.spread_ns);
        graft_json_integer(&json, "rounds", s->timing.rounds);
    }
    if (s->memory.peak_bytes > 0) { /* Not known of a program. */
        graft_json_integer(&json, "peak_bytes", (int64_t)s->memory.peak_bytes);
        graft_json_integer(&json, "packed_bytes", (int64_t)s->memory.packed_bytes);
        graft_json_integer(&json, "pack_ns", (int64_t)s->memory.pack_ns);
    }
    if (s->timing.rounds == 0) {
        graft_json_raw(&json, "whole_ns", "null");
        graft_json_string(&json, "reason", s->reason);
    }
    graft_json_end(&json, stdout);
}

static void print_text_summary(const graft_cost *cost, const graft_cost_summary *s)
{
    graft_cost_statistics statistics;
    graft_cost_statistics_of(cost, &statistics);
    (void)printf("\n%s on %s, %s\n", s->model, graft_device_name(graft_cost_device(cost)),
                 graft_device_library(graft_cost_device(cost)));
    (void)printf("sum of %u steps: %.3f ms, of which %u conversions %.3f ms; %.2f GFLOP, %.1f MB "
                 "moved\n",
                 s->total.launches, s->total.ns / 1e6, s->total.reorder_count,
                 s->total.reorder_ns / 1e6, (double)s->total.flops / 1e9,
                 (double)s->total.bytes / 1e6);
    const graft_calibration calibration = graft_cost_calibration(cost);
    if (calibration.graphs > 0) {
        (void)printf(
            "times are as in networks, corrected by factors fitted to %u whole graphs with "
            "a median error of %.1f %%\n",
            calibration.graphs, 100.0 * calibration.error);
    }
    if (s->total.estimated_count > 0) {
        (void)printf("of these, %u steps are estimates, marked ~\n", s->total.estimated_count);
    }
    if (statistics.measured > 0) {
        (void)printf("measured now: %u operators in %.1f s\n", statistics.measured,
                     (double)statistics.measuring_ns / 1e9);
    }
    if (s->timing.rounds == 0) {
        (void)printf("whole graph: not run: %s\n", s->reason);
        return;
    }
    (void)printf("whole graph: %.3f ms +- %.3f (%u rounds); sum / whole = %.3f\n",
                 s->timing.median_ns / 1e6, s->timing.spread_ns / 1e6, s->timing.rounds,
                 s->total.ns / s->timing.median_ns);
    if (s->memory.peak_bytes > 0) {
        (void)printf("memory: %.2f MB for tensors; weights: %.1f MB packed in %.1f ms\n",
                     (double)s->memory.peak_bytes / 1e6, (double)s->memory.packed_bytes / 1e6,
                     (double)s->memory.pack_ns / 1e6);
    }
}

void graft_cost_print_summary(graft_env *env, const graft_cost *cost,
                              const graft_cost_summary *summary)
{
    if (env->json) {
        print_json_summary(env, cost, summary);
    } else {
        print_text_summary(cost, summary);
    }
}
