/* report_page.c - see report_page.h; graph/base/page/report.js reads what is written here. Graphviz
 * gets numbers and sizes only, no text from outside, and files instead of pipes: neither side can
 * wait for the other. */
#include "emit/report/report_page.h"

#include "cost/measure/report.h"
#include "emit/report/trace.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/page.h"
#include "graph/model.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/rulewords.h"
#include "verify/command/rulepage.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct graft_report_graph {
    const graft_model *model; /* That the graph is of, rewritten or not. */
    const graft_graph *graph;
    const uint32_t *steps; /* By node: the step that removed or made it (trace.h). */
} graft_report_graph;

static graft_status fail_file(graft_env *env)
{
    return GRAFT_FAIL(env, GRAFT_IO, "no temporary file for Graphviz: %s", strerror(errno));
}

/* Runs it to its end; NULL, or why there is no result. */
static const char *run_dot(FILE *in, FILE *out)
{
    static char program[] = "dot";
    static char format[] = "-Tplain";
    char *const arguments[] = {program, format, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int how = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    int failed = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return "Graphviz (the program dot) is not installed";
    }
    while (waitpid(child, &how, 0) < 0) {
        if (errno != EINTR) {
            return "Graphviz was lost";
        }
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0 ? NULL : "Graphviz (the program dot) failed";
}

static graft_status read_all(graft_env *env, graft_arena *arena, FILE *file, const char **text)
{
    graft_buffer all = {.arena = arena};
    char chunk[1 << 12];
    size_t got = 0;
    rewind(file);
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        graft_buffer_append(&all, chunk, got);
    }
    *text = all.size > 0 ? all.data : "";
    return ferror(file) ? fail_file(env) : GRAFT_OK;
}

/* Hands `text`, one digraph or several, to `dot -Tplain`; *plain, in `arena`, is what it printed.
 * Where there is no such program, or it fails, *plain is NULL and *reason says why: no failure.
 * GRAFT_IO when there is no temporary file. */
static graft_status ask_graphviz(graft_env *env, graft_arena *arena, const graft_buffer *text,
                                 const char **plain, const char **reason)
{
    graft_status status = GRAFT_OK;
    FILE *in = tmpfile();
    FILE *out = tmpfile();
    *plain = NULL;
    if (in == NULL || out == NULL || fwrite(text->data, 1, text->size, in) != text->size ||
        fflush(in) != 0 || fseek(in, 0, SEEK_SET) != 0) {
        status = fail_file(env);
        goto done;
    }
    *reason = run_dot(in, out);
    if (*reason == NULL) {
        GRAFT_CHECK(read_all(env, arena, out, plain));
    }
done:
    if (in != NULL) {
        (void)fclose(in);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    return status;
}

/* What takes a place in the list. */
typedef struct {
    const char *kind; /* "input", "node", "output" */
    const char *op;
    const char *name;
    const graft_shape *shape; /* NULL: it has no output. */
    uint32_t step;
} listed;

typedef struct {
    graft_env *env;
    const graft_model *model;
    const graft_graph *graph;
    graft_buffer nodes;
    graft_buffer *dot;
    uint32_t *place; /* By value: of what makes it. */
    uint32_t count;
} lister;

static const char *print_shape(graft_arena *arena, const graft_shape *shape)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_append(&text, "", 0);
    if (shape != NULL && shape->rank != GRAFT_RANK_UNKNOWN) {
        for (uint32_t i = 0; i < shape->rank; i++) {
            graft_buffer_printf(&text, "%s%d", i > 0 ? "x" : "", shape->dims[i]);
        }
    }
    return text.data;
}

/* Inches that a label takes; graph/base/page/report.js shortens what is longer. */
static double width_of(const listed *item, const char *shape)
{
    enum { CHARACTERS_LEAST = 6, CHARACTERS_MOST = 22 };
    const double per_character = 0.095;
    size_t most = strlen(item->op) > strlen(shape) ? strlen(item->op) : strlen(shape);
    most = most < CHARACTERS_LEAST ? CHARACTERS_LEAST : most;
    return per_character * (double)(most > CHARACTERS_MOST ? CHARACTERS_MOST : most) + 0.2;
}

/* `values` are read, of which those that are const are not drawn. */
static void add_listed(lister *l, const listed *item, const graft_index *values, uint32_t count)
{
    GRAFT_SCOPED(l->env->scratch);
    graft_buffer in = {.arena = l->env->scratch};
    const char *shape = print_shape(l->env->scratch, item->shape);
    graft_json json;
    graft_buffer_printf(l->dot, "n%u[width=%.2f]\n", l->count, width_of(item, shape));
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] != GRAFT_NONE && !l->graph->values[values[i]].is_const) {
            const uint32_t from = l->place[values[i]];
            graft_buffer_printf(&in, "%s%u", in.size > 0 ? "," : "", from);
            graft_buffer_printf(l->dot, "n%u->n%u\n", from, l->count);
        }
    }
    graft_json_begin(&json, l->env->scratch);
    graft_json_add(&json, "kind=%s op=%s name=%s shape=%s", item->kind, item->op, item->name,
                   shape);
    graft_json_list(&json, "in", &in);
    graft_json_integer(&json, "step",
                       item->step == GRAFT_TRACE_SIMPLIFIED ? -1 : (int64_t)item->step);
    graft_json_append(&json, &l->nodes);
    l->count++;
}

static void add_input(lister *l, graft_index value)
{
    const graft_value *v = &l->graph->values[value];
    const bool known = v->source < l->model->input_count;
    const listed item = {.kind = "input",
                         .op = "input",
                         .name = known ? l->model->inputs[v->source].name : "",
                         .shape = &v->shape};
    l->place[value] = l->count;
    add_listed(l, &item, NULL, 0);
}

static void add_node(lister *l, graft_index id, uint32_t step)
{
    const graft_node *node = &l->graph->nodes[id];
    const graft_index *values = &l->graph->edges[node->first_edge];
    const listed item = {.kind = "node",
                         .op = node->op == GRAFT_OP_OPAQUE ? graft_model_node_type(l->model, node)
                                                           : graft_op(node->op)->name,
                         .name = graft_model_node_name(l->model, node),
                         .shape = node->output_count == 0
                                      ? NULL
                                      : &l->graph->values[values[node->input_count]].shape,
                         .step = step};
    for (uint32_t o = 0; o < node->output_count; o++) {
        l->place[values[node->input_count + o]] = l->count;
    }
    add_listed(l, &item, values, node->input_count);
}

static void add_output(lister *l, uint32_t number)
{
    const graft_index value = l->graph->outputs[number];
    const bool known = number < l->model->output_count;
    const listed item = {.kind = "output",
                         .op = "output",
                         .name = known ? l->model->outputs[number].name : "",
                         .shape = &l->graph->values[value].shape};
    add_listed(l, &item, &value, 1);
}

/* Adds to `json` the list `key`: what runs at each inference, in order, between the graph's inputs
 * and outputs, each {"kind", "op", "name", "shape", "in": places in the list, "step"}. To `dot` a
 * digraph is appended whose nodes are "n" and their place in the list. GRAFT_BAD_INPUT when the
 * graph has a cycle. */
static graft_status add_graph(graft_env *env, const graft_report_graph *report, const char *key,
                              graft_json *json, graft_buffer *dot)
{
    GRAFT_SCOPED(env->unit);
    const graft_graph *graph = report->graph;
    graft_state state;
    lister l = {.env = env,
                .model = report->model,
                .graph = graph,
                .nodes = {.arena = env->unit},
                .dot = dot,
                .place = GRAFT_NEW(env->unit, uint32_t, graph->value_end)};
    GRAFT_PASS(graft_state_make(env, env->unit, graph, &state));
    graft_buffer_printf(dot, "strict digraph{nodesep=0.18;ranksep=0.3;node[shape=box,"
                             "fixedsize=true,height=0.5]"
                             "edge[arrowsize=0.5]\n");
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_INPUT) {
            add_input(&l, v);
        }
    }
    for (graft_index i = 0; i < state.order.count; i++) {
        const graft_index node = state.order.order[i];
        if (!graph->nodes[node].is_const) {
            add_node(&l, node, report->steps[node]);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        add_output(&l, i);
    }
    graft_buffer_printf(dot, "}\n");
    graft_json_list(json, key, &l.nodes);
    return GRAFT_OK;
}

/* More than this takes Graphviz minutes. */
enum { DRAWN_MOST = 4000 };

/* -------------------------------------------------------------------- graphs */

/* What becomes of each node of the model's graph, by id. */
static const uint32_t *steps_before(graft_env *env, const graft_report_page *page)
{
    const graft_graph *graph = &page->session->model->graph;
    uint32_t *steps = GRAFT_NEW(env->life, uint32_t, graph->node_end);
    for (graft_index n = 0; n < graph->node_end && !page->unchanged; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op != GRAFT_OP_NONE && node->source != GRAFT_NONE) {
            steps[n] = page->trace->removed[node->source];
        }
    }
    return steps;
}

static graft_status add_layout(graft_env *env, const graft_graph *const graphs[2],
                               const graft_buffer *dot, graft_json *json)
{
    const char *plain = NULL;
    const char *reason = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const graft_index nodes = graft_graph_active_count(graphs[i]);
        if (nodes > DRAWN_MOST) {
            reason = graft_arena_printf(env->life,
                                        "a graph of %u operators is not drawn, %d are "
                                        "the most",
                                        nodes, DRAWN_MOST);
        }
    }
    if (reason == NULL) {
        GRAFT_PASS(ask_graphviz(env, env->life, dot, &plain, &reason));
    }
    graft_json_add(json, "layout=%s layout_lacks=%s", plain, reason);
    return GRAFT_OK;
}

static graft_status add_graphs(graft_env *env, const graft_report_page *page, graft_json *json)
{
    const graft_model *model = page->session->model;
    const graft_report_graph before = {
        .model = model, .graph = &model->graph, .steps = steps_before(env, page)};
    const graft_report_graph rewritten = {.model = model,
                                          .graph = &page->session->environment.state.graph,
                                          .steps = page->trace->born};
    const graft_report_graph *after = page->unchanged ? &before : &rewritten;
    graft_buffer dot = {.arena = env->life};
    GRAFT_PASS(add_graph(env, &before, "before", json, &dot));
    GRAFT_PASS(add_graph(env, after, "after", json, &dot));
    return add_layout(env, (const graft_graph *const[2]){before.graph, after->graph}, &dot, json);
}

/* --------------------------------------------------------------------- rules */

/* A rule that a policy has and the set has not. */
static void append_stranger(graft_env *env, const graft_trace_step *step, graft_buffer *list)
{
    graft_json json;
    graft_json_begin(&json, env->life);
    graft_json_add(&json, "name=%s line=%s", step->name,
                   graft_rule_print_line(env->life, step->rule));
    graft_rule_sketch(&json, env->life, step->rule);
    graft_json_append(&json, list);
}

/* The rules of the steps so far. */
typedef struct {
    uint64_t *ids;
    uint32_t count;
    graft_buffer list;
} rules_used;

/* The place in the list of a step's rule, which is appended when it is not there. */
static uint32_t place_rule(graft_env *env, const graft_ruleset *set, const graft_trace_step *step,
                           rules_used *used)
{
    const uint64_t id = graft_rule_id(step->rule);
    uint32_t r = 0;
    while (r < used->count && used->ids[r] != id) {
        r++;
    }
    if (r == used->count) {
        const graft_rule_entry *entry = graft_ruleset_find(set, id);
        used->ids[used->count++] = id;
        if (entry != NULL) {
            graft_rulepage_append(env, set, entry, &used->list);
        } else {
            append_stranger(env, step, &used->list);
        }
    }
    return r;
}

static void add_steps(graft_env *env, const graft_report_page *page, graft_json *json)
{
    const graft_trace *trace = page->trace;
    const uint32_t count = page->unchanged ? 0 : trace->step_count;
    rules_used used = {.ids = GRAFT_NEW(env->life, uint64_t, count), .list = {.arena = env->life}};
    graft_buffer steps = {.arena = env->life};
    for (uint32_t i = 0; i < count; i++) {
        const graft_trace_step *step = &trace->steps[i];
        graft_buffer roots = {.arena = env->life};
        graft_json one;
        for (uint32_t k = 0; k < step->root_count; k++) {
            graft_buffer_printf(&roots, "%s%u", k > 0 ? "," : "", step->roots[k]);
        }
        graft_json_begin(&one, env->life);
        graft_json_add(&one, "rule=%u place=%s ns=%g",
                       place_rule(env, &page->session->rules, step, &used), step->place, step->ns);
        graft_json_list(&one, "roots", &roots);
        graft_json_append(&one, &steps);
    }
    graft_json_add(json, "simplified=%u first_ns=%g",
                   page->unchanged ? 0 : page->session->simplified,
                   page->session->environment.first_ns);
    graft_json_list(json, "steps", &steps);
    graft_json_list(json, "rules", &used.list);
}

/* --------------------------------------------------------------------- costs */

static void append_row(graft_env *env, const graft_model *model, const graft_graph *graph,
                       const graft_cost_row *row, graft_buffer *list)
{
    graft_buffer text = {.arena = env->life};
    graft_json json;
    const bool opaque = row->signature.op == GRAFT_OP_OPAQUE;
    if (!opaque) {
        graft_signature_print(&row->signature, &text);
    }
    graft_json_begin(&json, env->life);
    graft_json_string(&json, "op",
                      opaque ? graft_model_node_type(model, &graph->nodes[row->node])
                             : graft_signature_operator(&row->signature));
    graft_json_string(&json, "what", text.data);
    graft_json_add(&json, "count=%u ns=%g spread=%g flops=%lld bytes=%lld measured=%c", row->count,
                   row->entry.median_ns, row->entry.spread_ns, (long long)row->entry.flops,
                   (long long)row->entry.bytes, row->entry.source == GRAFT_COST_MEASURED);
    graft_json_append(&json, list);
}

static void append_calls(uint32_t calls, graft_buffer *list)
{
    graft_json_item(list, "op=%s what=%s count=%u ns=%g spread=%d flops=%d bytes=%d measured=%c",
                    "calls", "of kernels", calls, (double)GRAFT_CALL_NS, 0, 0, 0, true);
}

/* Lists what the price of a graph of the model is the sum of, and how it is run. */
static graft_status list_costs(graft_env *env, const graft_report_page *page,
                               const graft_model *model, const graft_graph *of, graft_buffer *list)
{
    graft_status status = GRAFT_OK;
    graft_session *session = page->session;
    const graft_graph *graph = NULL;
    const graft_order *order = NULL;
    graft_schedule schedule;
    graft_cost_row *rows = NULL;
    uint32_t count = 0;
    uint32_t calls = 0;
    graft_state state;
    GRAFT_CHECK(graft_state_make(env, env->life, of, &state));
    graph = &state.graph;
    order = &state.order;
    graft_cost_set_model(session->cost, model);
    GRAFT_CHECK(graft_session_fuse(env, session, env->life, model, &graph, &order, &calls));
    GRAFT_CHECK(graft_cost_plan(env, session->cost, env->life, graph, order, &schedule));
    GRAFT_CHECK(graft_cost_rows(env, session->cost, graph, &schedule, &rows, &count));
    for (uint32_t i = 0; i < count; i++) {
        append_row(env, model, graph, &rows[i], list);
    }
    if (calls > 0) {
        append_calls(calls, list);
    }
done:
    graft_cost_set_model(session->cost, session->model);
    return status;
}

static void add_ceiling(const graft_session *session, graft_json *json)
{
    const graft_ceiling ceiling = graft_ceiling_of(graft_cost_database(session->cost));
    graft_json_add(json, "peak_flops_per_ns=%g peak_bytes_per_ns=%g", ceiling.flops_per_ns,
                   ceiling.bytes_per_ns);
}

/* ------------------------------------------------------------------ headline */

static graft_status add_model(graft_env *env, const graft_model *model, double ns, const char *key,
                              graft_json *json)
{
    uint64_t sizes[GRAFT_WRITTEN_SIZES];
    graft_json one;
    GRAFT_PASS(graft_written_measure(env, model, sizes));
    graft_json_begin(&one, env->life);
    graft_json_add(&one, "file=%s operators=%u ns=%g parameters=%lld flops=%lld bytes=%lld",
                   model->file, graft_written_operators(env, model), ns,
                   (long long)sizes[GRAFT_WRITTEN_PARAMETERS],
                   (long long)sizes[GRAFT_WRITTEN_FLOPS], (long long)sizes[GRAFT_WRITTEN_BYTES]);
    graft_json_raw(json, key, graft_json_close(&one));
    return GRAFT_OK;
}

/* What the model leaves open, and what the figures are at. */
static void add_sizes(graft_env *env, const graft_model *model, graft_json *json)
{
    graft_buffer list = {.arena = env->life};
    for (uint32_t i = 0; i < model->size_count; i++) {
        graft_json_item(&list, "name=%s value=%d", model->sizes[i].name, model->sizes[i].value);
    }
    graft_json_list(json, "sizes", &list);
}

/* What each method found, without what differs from run to run. */
static void add_methods(graft_env *env, const graft_report_page *page, graft_json *json)
{
    graft_buffer list = {.arena = env->life};
    for (uint32_t i = 0; page->methods != NULL && i < page->methods->count; i++) {
        const graft_result *row = &page->methods->rows[i];
        graft_json_item(&list, "method=%s how=%s ns=%g steps=%u graphs=%lld", row->method, row->how,
                        row->cost_ns, row->step_count, (long long)row->interactions);
    }
    graft_json_list(json, "methods", &list);
    graft_json_raw(json, "dreams", page->dreams == NULL ? "null" : page->dreams);
}

/* --------------------------------------------------------------- reproducing */

/* The hash is JSON. */
static void append_file(const char *what, const char *name, const char *hash, graft_buffer *list)
{
    graft_json_item(list, "what=%s name=%s hash=(%s)", what, name, hash);
}

static const char *hash_bytes(graft_env *env, const void *data, size_t size)
{
    const XXH128_hash_t hash = XXH3_128bits(data, size);
    return graft_arena_printf(env->life, "\"%016" PRIx64 "%016" PRIx64 "\"", hash.high64,
                              hash.low64);
}

/* What is no file, such as a model of the zoo, has no hash. */
static graft_status add_file(graft_env *env, const char *what, const char *path, graft_buffer *list)
{
    GRAFT_SCOPED(env->unit);
    uint8_t *data = NULL;
    size_t size = 0;
    if (!graft_file_exists(path)) {
        append_file(what, path, "null", list);
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_file_read(env, env->unit, path, &data, &size));
    append_file(what, path, hash_bytes(env, data, size), list);
    return GRAFT_OK;
}

static graft_status add_command(graft_env *env, graft_json *json)
{
    graft_buffer list = {.arena = env->life};
    uint8_t *words = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->life, "/proc/self/cmdline", &words, &size));
    for (size_t at = 0; at < size; at += strlen((const char *)words + at) + 1) {
        graft_json one;
        graft_json_begin(&one, env->life);
        graft_json_string(&one, "word", (const char *)words + at);
        graft_json_append(&one, &list);
    }
    graft_json_list(json, "command", &list);
    return GRAFT_OK;
}

static graft_status add_origin(graft_env *env, const graft_report_page *page,
                               const graft_buffer *costs, graft_json *json)
{
    const graft_session_options *options = page->options;
    graft_buffer list = {.arena = env->life};
    GRAFT_PASS(add_command(env, json));
    GRAFT_PASS(add_file(env, "model", page->session->model->file, &list));
    GRAFT_PASS(add_file(env, "rules", options->rules, &list));
    GRAFT_PASS(add_file(env, "settings", options->settings, &list));
    if (page->policy != NULL) {
        GRAFT_PASS(add_file(env, "policy", page->policy, &list));
    }
    append_file("costs used", graft_device_name(page->session->device),
                hash_bytes(env, costs->data, costs->size), &list);
    GRAFT_PASS(add_file(env, "result", page->written->model->file, &list));
    graft_json_list(json, "files", &list);
    graft_json_add(json, "version=%s solver=%s library=%s", GRAFT_VERSION,
                   page->session->rules.solver, graft_device_library(page->session->device));
    return GRAFT_OK;
}

graft_status graft_report_page_write(graft_env *env, const graft_report_page *page,
                                     const char *path)
{
    const graft_session *session = page->session;
    const bool as_it_is = session->runtime == NULL && !page->unchanged;
    graft_buffer costs = {.arena = env->life};
    graft_buffer costs_after = {.arena = env->life};
    graft_json json;
    graft_json_begin(&json, env->life);
    graft_json_add(&json, "model=%s device=%s", page->options->model,
                   graft_device_name(session->device));
    add_sizes(env, session->model, &json);
    graft_json_add(&json,
                   "method=%s policy=%c unchanged=%c fused=%c cut=%c checks=%u difference=%g",
                   page->method, page->policy != NULL, page->unchanged, session->runtime != NULL,
                   page->cut, page->check_count, page->difference);
    GRAFT_PASS(add_model(env, session->model, session->given.ns, "given", &json));
    GRAFT_PASS(add_model(env, page->written->model, page->written->total.ns, "made", &json));
    GRAFT_PASS(add_graphs(env, page, &json));
    add_steps(env, page, &json);
    const graft_model *made = as_it_is ? session->model : page->written->model;
    GRAFT_PASS(list_costs(env, page, session->model, &session->model->graph, &costs));
    graft_json_list(&json, "costs_before", &costs);
    GRAFT_PASS(list_costs(env, page, made,
                          as_it_is ? &session->environment.state.graph : &made->graph,
                          &costs_after));
    graft_json_list(&json, "costs_after", &costs_after);
    graft_buffer_append(&costs, costs_after.data, costs_after.size);
    add_ceiling(session, &json);
    add_methods(env, page, &json);
    GRAFT_PASS(add_origin(env, page, &costs, &json));
    GRAFT_PASS(graft_page_write(env, GRAFT_PAGE_REPORT, graft_json_close(&json), path));
    graft_log(env, 1, "wrote %s", path);
    return GRAFT_OK;
}
