/* models.c - the zoo on a GPU: costs of everything that the rules make of a model, and the model
 * itself before and after a search (greedy with escapes), end to end.
 *
 * The search asks for the cost of every graph that one rewrite leads to, along its whole path, and
 * random walks ask for more: what is asked for is measured and kept in the database, which is what
 * a policy can later be trained with on another machine. When a model's time is up, what is still
 * missing is estimated and counted, never left out silently. */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "cost/measure/clock.h"
#include "cost/plan/executor.h"
#include "cost/plan/layout.h"
#include "graph/base/log.h"
#include "graph/meaning/algebra_float.h"
#include "graph/rule/rulefile.h"
#include "models/zoo.h"
#include "train/search/search.h"
#include "train/search/survey.h"

#include <math.h>
#include <string.h>

enum { TIMING_ROUNDS = 9, LOCATIONS = 200, STEPS = 250, WALKS = 4, SURVEYS = 8 };
enum { INPUT_SEED = 51, WALL_CLOCK = 2, SIGNATURES_MOST = 512 };

static const uint64_t weight_bytes_limit = (uint64_t)1 << 30;
/* The plain loops of the reference do about a billion products a second. */
static const uint64_t reference_flops_most = 6000000000U;
/* Of whole models against the reference or against themselves; the roundings of a hundred layers.
 */
static const double tolerances[CUDA_TYPE_COUNT] = {1e-3, 2e-2, 6e-2, 3e-1};

typedef struct {
    check_run *run;
    const char *name;
    const check_type *type;
    uint64_t deadline_ns; /* By graft_clock_ns. */
    graft_device *device;
    graft_cost *cost;
    graft_model *model;
    graft_environment environment;
    graft_xfers xfers;
    bool late;
} subject;

/* The figures of a graph. */
typedef struct {
    graft_cost_total total;
    graft_timing timing;
    float **outputs;
} figures;

/* --------------------------------------------------------------- search */

static graft_status price(graft_env *env, void *context, const graft_graph *graph,
                          const graft_order *order, double *ns)
{
    subject *t = context;
    if (!t->late && (check_late(t->run) || graft_clock_ns() > t->deadline_ns)) {
        t->late = true;
        graft_cost_set_estimating(t->cost, true);
    }
    return graft_cost_price(env, t->cost, graph, order, ns);
}

/* Of a GPU that is not here: what moves, and a tenth of a thousandth of what is computed. No
 * time. */
static graft_status price_dry(graft_env *env, void *context, const graft_graph *graph,
                              const graft_order *order, double *ns)
{
    subject *t = context;
    double sum = 0.0;
    (void)env;
    (void)order;
    (void)check_late(t->run);
    for (graft_index node = 0; node < graph->node_end; node++) {
        const graft_layout_choice rows = {.inputs = {0}};
        graft_signature s;
        uint32_t op = graph->nodes[node].op;
        if (op != GRAFT_OP_NONE && op != GRAFT_OP_OPAQUE && !graph->nodes[node].is_const) {
            graft_signature_of_node(graph, node, &rows, false, &s);
            sum += (double)graft_signature_bytes(&s) + 1e-4 * (double)graft_signature_flops(&s);
        }
    }
    *ns = sum;
    return GRAFT_OK;
}

/* Rules that the device can use and that find a place in some rewrite of the model. */
static graft_status choose_rules(subject *t, const graft_graph *graph,
                                 const graft_environment_options *options)
{
    graft_env *env = t->run->env;
    graft_ruleset set;
    graft_xfers all;
    uint32_t count = 0;
    const graft_survey survey = {.episodes = SURVEYS, .preference = 2.0, .seed = INPUT_SEED};
    GRAFT_PASS(graft_rulefile_read(env, env->unit, "rules/graft.rules", &set));
    graft_rule *rules = GRAFT_NEW(env->unit, graft_rule, set.count);
    const char **names = GRAFT_NEW(env->unit, const char *, set.count);
    for (uint32_t i = 0; i < set.count; i++) {
        if (graft_survey_suits(t->device, &set.entries[i].rule)) {
            rules[count] = set.entries[i].rule;
            names[count++] = set.entries[i].name;
        }
    }
    graft_xfers_index(env->unit, rules, names, count, &all);
    graft_survey_result met = {.met = GRAFT_NEW(env->unit, bool, count)};
    const int verbosity = env->verbosity;
    env->verbosity = 0; /* No progress in the log. */
    const graft_status status = graft_survey_run(env, graph, &all, options, &survey, &met);
    env->verbosity = verbosity;
    GRAFT_PASS(status);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (met.met[i]) {
            rules[kept] = rules[i];
            names[kept++] = names[i];
        }
    }
    graft_xfers_index(env->unit, rules, names, kept, &t->xfers);
    return GRAFT_OK;
}

/* Leaves the environment at the best graph that was found. */
static graft_status optimise(subject *t)
{
    graft_env *env = t->run->env;
    graft_plan_found found;
    graft_plan_found walked;
    const graft_search_choice walks = {.episodes = WALKS, .seed = INPUT_SEED};
    const graft_environment_options options = {
        .price = {.cost_ns = t->cost == NULL ? price_dry : price, .context = t},
        .location_limit = LOCATIONS,
        .step_limit = STEPS,
        .cost_limit = 1.3,
        .apply.weight_bytes_limit = weight_bytes_limit,
        .deadline_ns = t->deadline_ns,
    };
    graft_graph *graph = graft_model_graph_copy(env->unit, &t->model->graph);
    GRAFT_PASS(choose_rules(t, graph, &options));
    GRAFT_PASS(graft_environment_open(env, env->unit, graph, &t->xfers, &options, &t->environment));
    GRAFT_PASS(graft_search_escape(env, env->unit, &t->environment, NULL, &found));
    if (!t->late) { /* For more of what an agent may meet; the first plan stays the result. */
        GRAFT_PASS(graft_search_random(env, env->unit, &t->environment, &walks, &walked));
    }
    GRAFT_PASS(graft_plan_replay(env, &t->environment, found.steps, found.step_count));
    t->late = t->late || graft_clock_ns() > t->deadline_ns; /* The search ends by itself then. */
    return GRAFT_OK;
}

/* ------------------------------------------------------------ whole models */

static float *draw_input(subject *t, const graft_shape *shape, uint32_t k)
{
    float *data = GRAFT_NEW(t->run->env->unit, float, (size_t)graft_shape_bytes(shape) / 4 + 1);
    graft_executor_draw(shape, INPUT_SEED, k, data);
    return data;
}

static float **allocate_outputs(graft_arena *arena, const graft_graph *graph)
{
    float **outputs = GRAFT_NEW(arena, float *, graph->output_count);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const graft_shape *shape = &graph->values[graph->outputs[i]].shape;
        outputs[i] = GRAFT_NEW(arena, float, (size_t)graft_shape_bytes(shape) / 4 + 1);
    }
    return outputs;
}

static graft_status run_executor(subject *t, graft_executor *executor, const graft_graph *graph,
                                 figures *f)
{
    graft_env *env = t->run->env;
    uint32_t count = graft_executor_input_count(executor);
    const float **inputs = GRAFT_NEW(env->unit, const float *, count);
    for (uint32_t k = 0; k < count; k++) {
        inputs[k] = draw_input(t, &graph->values[graft_executor_input(executor, k)].shape, k);
    }
    f->outputs = allocate_outputs(env->unit, graph);
    GRAFT_PASS(graft_executor_run(env, executor, inputs, f->outputs));
    return graft_executor_time(env, executor, TIMING_ROUNDS, &f->timing);
}

/* Cost, time and outputs of a graph of the model. */
static graft_status run_graph(subject *t, const graft_graph *graph, figures *f)
{
    graft_status status = GRAFT_OK;
    graft_env *env = t->run->env;
    graft_order order;
    graft_executor *executor = NULL;
    size_t bytes = graft_order_bytes(&graph->limits);
    GRAFT_CHECK(graft_order_build(&order, graph, graft_arena_alloc(env->unit, bytes), bytes));
    GRAFT_CHECK(graft_cost_graph(env, t->cost, graph, &order, &f->total));
    GRAFT_CHECK(graft_executor_open_folded(env, env->unit, t->cost, t->model, graph, &executor));
    GRAFT_CHECK(run_executor(t, executor, graph, f));
done:
    graft_executor_close(executor);
    return status;
}

/* Largest difference relative to the largest output; infinite where one is not a number. */
static double distance(const graft_graph *graph, float *const *got, float *const *want)
{
    double largest = 0.0;
    double furthest = 0.0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const graft_shape *shape = &graph->values[graph->outputs[i]].shape;
        uint64_t count = shape->dtype == GRAFT_DTYPE_F32 ? graft_shape_elements(shape) : 0;
        for (uint64_t k = 0; k < count; k++) {
            double d = fabs((double)got[i][k] - (double)want[i][k]);
            largest = fmax(largest, fabs((double)want[i][k]));
            furthest = isnan(d) ? (double)INFINITY : fmax(furthest, d);
        }
    }
    return largest > 0.0 ? furthest / largest : furthest;
}

/* The model's outputs by the float reference; NULL: too large for its plain loops. */
static graft_status run_reference(subject *t, uint64_t flops, float ***outputs)
{
    graft_env *env = t->run->env;
    const graft_graph *graph = &t->model->graph;
    graft_order order;
    graft_weights weights;
    *outputs = NULL;
    if (flops > reference_flops_most) {
        return GRAFT_OK;
    }
    size_t bytes = graft_order_bytes(&graph->limits);
    GRAFT_PASS(graft_order_build(&order, graph, graft_arena_alloc(env->unit, bytes), bytes));
    GRAFT_PASS(graft_model_fold_weights(env, env->unit, t->model, graph, &weights));
    const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
    uint32_t k = 0;
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_WEIGHT) {
            values[v] = graft_weights_data(&weights, v);
        } else if (graph->values[v].kind == GRAFT_VALUE_INPUT) {
            values[v] = draw_input(t, &graph->values[v].shape, k++);
        }
    }
    GRAFT_PASS(graft_float_model(env, env->unit, t->model, graph, &order, values));
    *outputs = allocate_outputs(env->unit, graph);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        memcpy((*outputs)[i], values[graph->outputs[i]],
               (size_t)graft_shape_bytes(&graph->values[graph->outputs[i]].shape));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ report */

/* What the memory and the processors of the GPU need at least: bytes of all steps over the copy
 * bandwidth, operations over the rate of a large product. */
typedef struct {
    double ns_per_byte;
    double ns_per_flop;
} ceilings;

typedef struct {
    double rewritten; /* Outputs after against before. */
    double reference; /* Outputs before against the float reference; below 0: not compared. */
} differences;

/* The first two items of the stage before, measured here again for as long as a blink. */
static graft_status measure_ceilings(subject *t, ceilings *c)
{
    static const char *const texts[2] = {"identity() f32[134217728]@row -> row",
                                         "matmul() f32[4096,4096]@row f32[4096,4096]@const -> row"};
    const graft_measure_options options = {.rounds = 3, .batch_ns = 500000, .quiet = true};
    graft_signature both[2];
    graft_cost_entry entries[2] = {{.rounds = 0}};
    for (uint32_t i = 0; i < 2; i++) {
        GRAFT_PASS(graft_signature_parse(t->run->env, texts[i], &both[i]));
    }
    GRAFT_PASS(graft_measure(t->run->env, t->device, both, 2, &options, entries));
    c->ns_per_byte = entries[0].median_ns / (double)entries[0].bytes;
    c->ns_per_flop = entries[1].median_ns / (double)entries[1].flops;
    return GRAFT_OK;
}

static void report_limits(graft_json *json, const char *when, graft_arena *arena,
                          const graft_cost_total *total, const ceilings *c)
{
    graft_json_number(json, graft_arena_printf(arena, "%s_bytes_ns", when),
                      (double)total->bytes * c->ns_per_byte);
    graft_json_number(json, graft_arena_printf(arena, "%s_flops_ns", when),
                      (double)total->flops * c->ns_per_flop);
}

static void report(subject *t, FILE *file, const figures *before, const figures *after,
                   const differences *d, const ceilings *c)
{
    graft_json json;
    graft_json_begin(&json, t->run->env->scratch);
    graft_json_add(&json,
                   "model=%s type=%s before_ns=%g before_spread_ns=%g after_ns=%g "
                   "after_spread_ns=%g before_sum_ns=%g after_sum_ns=%g",
                   t->name, t->type->name, before->timing.median_ns, before->timing.spread_ns,
                   after->timing.median_ns, after->timing.spread_ns, before->total.ns,
                   after->total.ns);
    report_limits(&json, "before", t->run->env->scratch, &before->total, c);
    report_limits(&json, "after", t->run->env->scratch, &after->total, c);
    graft_json_add(&json,
                   "before_launches=%u after_launches=%u estimated=%u search_out_of_time=%c "
                   "difference_rewritten=%g difference_reference=%g",
                   before->total.launches, after->total.launches, after->total.estimated_count,
                   t->late, d->rewritten, d->reference);
    graft_json_end(&json, file);
    (void)fprintf(stderr, "gpu-check: %-12s %s  %9.1f us -> %9.1f us (%.2fx), sum / whole %.2f%s\n",
                  t->name, t->type->name, before->timing.median_ns / 1e3,
                  after->timing.median_ns / 1e3, before->timing.median_ns / after->timing.median_ns,
                  before->total.ns / before->timing.median_ns,
                  t->late ? ", search out of time" : "");
}

static graft_status check_subject(subject *t, FILE *file)
{
    figures before = {.outputs = NULL};
    figures after = {.outputs = NULL};
    differences d = {.reference = -1.0};
    ceilings c = {.ns_per_byte = 0.0};
    float **reference = NULL;
    double tolerance = tolerances[t->type->type];
    GRAFT_PASS(graft_model_open(t->run->env, t->run->env->unit, t->name, NULL, &t->model));
    graft_cost_set_model(t->cost, t->model);
    GRAFT_PASS(measure_ceilings(t, &c));
    (void)check_late(t->run);
    GRAFT_PASS(run_graph(t, &t->model->graph, &before));
    (void)check_late(t->run);
    GRAFT_PASS(optimise(t));
    graft_cost_set_estimating(t->cost, false); /* What is run is measured. */
    graft_cost_set_deadline(t->cost, 0);
    GRAFT_PASS(run_graph(t, &t->environment.state.graph, &after));
    d.rewritten = distance(&t->model->graph, after.outputs, before.outputs);
    (void)check_late(t->run);
    GRAFT_PASS(run_reference(t, before.total.flops, &reference));
    if (reference != NULL) {
        d.reference = distance(&t->model->graph, before.outputs, reference);
    }
    report(t, file, &before, &after, &d, &c);
    if (!(d.rewritten <= tolerance) || !(d.reference <= tolerance)) {
        check_fail(t->run, "%s in %s: outputs differ: %g from before, %g from the reference",
                   t->name, t->type->name, d.rewritten, d.reference);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ dry runs */

/* The operators of a graph, channels last, each once; in 16 bits groups of them as one. */
static uint32_t list_signatures(const subject *t, const graft_graph *graph, graft_signature *all)
{
    graft_env *env = t->run->env;
    graft_order order;
    graft_groups groups = {.of = NULL};
    uint32_t count = 0;
    size_t bytes = graft_order_bytes(&graph->limits);
    if (graft_order_build(&order, graph, graft_arena_alloc(env->unit, bytes), bytes) != GRAFT_OK) {
        return 0;
    }
    uint8_t *layouts = GRAFT_NEW(env->unit, uint8_t, graph->value_end);
    graft_layout_choice *choices = GRAFT_NEW(env->unit, graft_layout_choice, graph->limits.nodes);
    graft_layout_assign(graph, &order, GRAFT_LAYOUT_NHWC, layouts, choices);
    if (t->type->type >= CUDA_F16) {
        const graft_views views = {.joins = NULL};
        graft_groups_find(env->unit, graph, &order,
                          graft_schedule_overwrites(env->unit, graph, &order, &views), t->model,
                          &groups);
    }
    for (graft_index node = 0; node < graph->node_end && count < SIGNATURES_MOST; node++) {
        uint32_t op = graph->nodes[node].op;
        uint32_t i = 0;
        const graft_group *group = graft_group_of(&groups, node);
        if (group != NULL && node != group->nodes[0]) {
            continue;
        }
        if (op == GRAFT_OP_NONE || op == GRAFT_OP_OPAQUE || op == GRAFT_OP_reshape ||
            op == GRAFT_OP_fill || graph->nodes[node].is_const) {
            continue;
        }
        if (group != NULL) {
            all[count] = group->signature;
        } else {
            graft_signature_of_node(graph, node, &choices[node], false, &all[count]);
        }
        while (i < count && !graft_signature_equal(&all[i], &all[count])) {
            i++;
        }
        count += i == count;
    }
    return count;
}

/* How many signatures of a graph can be planned. */
static uint32_t plan_graph(subject *t, const graft_graph *graph, uint32_t *count)
{
    graft_env *env = t->run->env;
    graft_signature *all = GRAFT_NEW(env->unit, graft_signature, SIGNATURES_MOST);
    uint32_t planned = 0;
    *count = list_signatures(t, graph, all);
    for (uint32_t i = 0; i < *count && !check_late(t->run); i++) {
        if (check_plan(t->run, t->device, &all[i], NULL) != NULL) {
            planned++;
        } else {
            check_fail(t->run, "%s in %s", t->name, t->type->name);
        }
    }
    return planned;
}

static graft_status check_dry(subject *t, FILE *file)
{
    uint32_t counts[2];
    uint32_t planned[2];
    GRAFT_PASS(graft_model_open(t->run->env, t->run->env->unit, t->name, NULL, &t->model));
    planned[0] = plan_graph(t, &t->model->graph, &counts[0]);
    GRAFT_PASS(optimise(t));
    planned[1] = plan_graph(t, &t->environment.state.graph, &counts[1]);
    graft_json_print(t->run->env->scratch, file,
                     "model=%s type=%s dry_before_signatures=%u dry_before_planned=%u "
                     "dry_after_signatures=%u dry_after_planned=%u",
                     t->name, t->type->name, counts[0], planned[0], counts[1], planned[1]);
    return GRAFT_OK;
}

static graft_status check_model(check_run *run, const char *name, const check_type *type,
                                uint64_t share_ns, FILE *file)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    GRAFT_SCOPED(env->unit);
    subject t = {
        .run = run, .name = name, .type = type, .deadline_ns = graft_clock_ns() + share_ns};
    GRAFT_CHECK(check_open(run, type->name, "", &t.device));
    if (graft_device_present(t.device)) {
        GRAFT_CHECK(check_costs_open(run, type, t.device, &t.cost));
        graft_cost_set_deadline(t.cost, t.deadline_ns);
        status = check_subject(&t, file);
    } else {
        status = check_dry(&t, file);
    }
done:
    if (t.device != NULL &&
        status != GRAFT_OK) { /* Saved all the same; the first failure counts. */
        check_fail(run, "%s in %s", name, type->name);
        check_probe(run, t.device);
        status = GRAFT_OK;
    }
    run->progress->unfinished += t.late;
    if (t.cost != NULL && graft_cost_close(env, t.cost) != GRAFT_OK) {
        check_fail(run, "the costs of %s", name);
    }
    graft_device_close(t.device);
    return status;
}

static bool is_chosen(const check_run *run, const graft_zoo_entry *entry, const check_type *type)
{
    return !entry->is_quantised && /* Made of operators that only the processor runs. */
           check_is_chosen(run->models, entry->name) && check_is_chosen(run->types, type->name);
}

/* What the stage goes through: every model in every batch in every type, in this order. */
typedef struct {
    const graft_zoo_entry *zoo;
    uint32_t models;
    uint32_t batches;
} plan;

static plan make_plan(const check_run *run)
{
    plan p = {.batches = 1};
    p.zoo = graft_zoo(&p.models);
    while (run->batches != NULL && check_word(run->env->scratch, run->batches, p.batches) != NULL) {
        p.batches++;
    }
    return p;
}

static uint32_t count_items(const plan *p) { return p->models * p->batches * CHECK_TYPES; }

static const graft_zoo_entry *model_of(const plan *p, uint32_t item)
{
    return &p->zoo[item % p->models];
}

static const check_type *type_of(const plan *p, uint32_t item)
{
    return &check_types[item / p->models / p->batches];
}

/* "resnet50", "resnet50@8": see graft_zoo_find. */
static const char *name_of(const check_run *run, const plan *p, uint32_t item)
{
    const char *name = model_of(p, item)->name;
    const char *batch = run->batches == NULL ? "1"
                                             : check_word(run->env->life, run->batches,
                                                          item / p->models % p->batches);
    return batch == NULL || strcmp(batch, "1") == 0
               ? name
               : graft_arena_printf(run->env->life, "%s@%s", name, batch);
}

/* Models that are chosen from `item` on. */
static uint32_t count_left(const check_run *run, const plan *p, uint32_t item)
{
    uint32_t left = 0;
    for (; item < count_items(p); item++) {
        left += is_chosen(run, model_of(p, item), type_of(p, item));
    }
    return left;
}

graft_status check_models(check_run *run)
{
    graft_status status = GRAFT_OK;
    FILE *file = NULL;
    const plan p = make_plan(run);
    uint32_t items = count_items(&p);
    GRAFT_CHECK(check_file(run, "models.jsonl", &file));
    for (uint32_t item = run->progress->next; item < items; item++) {
        if (!is_chosen(run, model_of(&p, item), type_of(&p, item))) {
            continue;
        }
        if (check_cut(run, item, items) || !check_begin(run, item)) {
            break;
        }
        /* Small models leave time for the large ones. */
        uint64_t left_ns = run->deadline_ns - graft_cost_clock_ns(WALL_CLOCK);
        uint32_t left = count_left(run, &p, item);
        uint64_t share_ns = left < 3 ? left_ns : left_ns / left * 2;
        GRAFT_CHECK(check_model(run, name_of(run, &p, item), type_of(&p, item), share_ns, file));
    }
done:
    if (file != NULL) {
        (void)fclose(file);
    }
    return status;
}
