/* bench_search.c - what long searches gain, how well costs put rewritten graphs in order, and how
 * long a search waits for the price of a graph.
 *
 * `graft bench [NAME]` measures on this CPU with one thread, in the database
 * out/bench/search.costs, and prints JSON Lines.
 *
 * search: for models with published best gains, by the committed rules: TASO's backtracking search
 * (1,000 dequeues, at most five minutes) in up to three passes, between which the costs that the
 * graph found rests on are measured again (refine.h); the passes' graphs are then timed.
 *   search.MODEL.passN      pass N's graph / the best of the passes before and the graph as given
 *   search.MODEL.best       whose graph is taken
 *   search.MODEL.predicted  cost of the graph found / cost of the graph as given
 *   search.MODEL.measured   the same of whole graphs, interleaved: median of paired ratios
 *   search.MODEL.control    a graph against itself
 *   search.MODEL.before     the graph as given, layouts chosen jointly, in ms
 *   search.MODEL.nhwc, .nchw16c  the graph found / the base: the graph as given in one layout
 *                           throughout, direct implementations, copies (graft_cost_set_base, in
 *                           out/bench/base.costs); .base: the base in ms
 *   search.MODEL.gain       the better base / the graph found
 *   search.MODEL.layouts    as given, layouts of the convention / chosen jointly
 *   search.MODEL.steps      rewrites taken
 *
 * order: for each model 100 graphs along random walks of up to ten rewrites, priced, and measured
 * whole in turns with the graph as given; both as parts of what that one costs and takes:
 *   order.MODEL.right     of the pairs whose measured parts differ by more than three spreads, the
 *                         share whose costs differ in the same direction; rounds: such pairs (1.0
 *                         when there is none)
 *   order.MODEL.excluded  the share of pairs that do not differ by so much
 *   order.MODEL.graphs    graphs that were met
 *   order.MODEL.ratio     cost / measured over all of them; spread: between the quartiles
 *
 * cost: for some models of the zoo, by the committed rules and the costs in out/bench/search.costs:
 *   cost.MODEL.same     microseconds to price the graph as given, just after it was priced
 *   cost.MODEL.rewrite  the same after one rewrite, each of those that it offers: the median over
 *                       rewrites; rounds: their number
 *   cost.MODEL.rewrite_most  what nine in ten of them stay below
 *   cost.MODEL.lookup   nanoseconds to find one entry that the price rests on
 * Each is the median of several times; nothing is measured meanwhile. */
#include "cost/measure/clock.h"
#include "cost/measure/whole.h"
#include "emit/command/command.h"
#include "emit/command/session.h"
#include "emit/command/session_options.h"
#include "emit/policy/refine.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"
#include "models/zoo.h"
#include "train/search/search.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 41, GAIN_ROUNDS = 81, PASSES = 3, DEQUEUES = 1000, SECONDS = 300 };
enum { QUIET_TURNS = 3, QUIET_ROUNDS = 9 };
enum { GRAPHS = 100, WALK = 10, ORDER_SEED = 71, SPREADS_APART = 3 };
enum { REPEATS = 15, LOOKUPS = 2000 };
enum { PLACES = 3, PLACE_ROUNDS = 5 }; /* In which each graph is measured, and how often in each. */

static const char database_path[] = "out/bench/search.costs";
static const char base_path[] = "out/bench/base.costs"; /* Of direct implementations only. */

static const char *const price_models[] = {"resnet50", "squeezenet"};

/* Those with a published best gain on such a processor, and small ones. */
static const char *const search_models[] = {"squeezenet", "resnet50", "inceptionv3",
                                            "bert",       "lstm",     "nasrnn"};
static const char *const order_models[] = {"dscnn",    "resnet8",     "mobilenetv1", "autoencoder",
                                           "lstm",     "nasrnn",      "squeezenet",  "resnet18",
                                           "resnet50", "mobilenetv2", "bert"};

/* What a benchmark has measured must not be lost when it is interrupted: the file is written anew
 * with each line. After a failure to write it goes on; its end tells. */
typedef struct {
    const char *path;
    graft_buffer text;
    graft_status status;
} figures;

typedef struct {
    graft_env *env;
    figures *figures;
    const char *kind; /* First part of the figures' names. */
    const char *model;
    graft_session session;
} bench_run;

static void print_figure(const bench_run *run, const char *what, const char *unit, double median,
                         double spread, uint32_t rounds)
{
    GRAFT_SCOPED(run->env->scratch);
    figures *f = run->figures;
    graft_json json;
    graft_json_begin(&json, run->env->scratch);
    graft_json_add(&json, "name=%s unit=%s median=%g spread=%g rounds=%u",
                   graft_arena_printf(run->env->scratch, "%s.%s.%s", run->kind, run->model, what),
                   unit, median, spread, rounds);
    graft_json_end(&json, stdout);
    graft_buffer_append(&f->text, json.text.data, json.text.size);
    f->status = f->status != GRAFT_OK
                    ? f->status
                    : graft_file_write(run->env, f->path, f->text.data, f->text.size);
}

static graft_status open_session(bench_run *run, const char *database)
{
    graft_session_options options = graft_session_defaults(run->env);
    options.model = run->model;
    options.database = database;
    return graft_session_open(run->env, &options, &run->session);
}

static graft_status open_executor_of(bench_run *run, graft_cost *cost, const graft_graph *graph,
                                     graft_executor **executor)
{
    return graft_executor_open_folded(run->env, run->env->unit, cost, run->session.model, graph,
                                      executor);
}

static graft_status open_executor(bench_run *run, const graft_graph *graph,
                                  graft_executor **executor)
{
    return open_executor_of(run, run->session.cost, graph, executor);
}

/* ------------------------------------------------------------------- search */

static graft_status compare(bench_run *run, const char *what, graft_executor *a, graft_executor *b,
                            bool control)
{
    graft_comparison c;
    GRAFT_PASS(graft_executor_compare(run->env, a, b, GAIN_ROUNDS, &c));
    print_figure(run, what, "1", c.ratio, c.ratio_spread, GAIN_ROUNDS);
    if (control) {
        print_figure(run, "control", "1", c.control, c.control_spread, GAIN_ROUNDS);
        print_figure(run, "before", "ms", c.a.median_ns / 1e6, c.a.spread_ns / 1e6, GAIN_ROUNDS);
    }
    return GRAFT_OK;
}

static bool has_layout(const graft_executor *executor, uint32_t layout)
{
    const graft_schedule *schedule = graft_executor_schedule(executor);
    bool found = false;
    for (uint32_t i = 0; i < schedule->region_count; i++) {
        found = found || schedule->regions[i].layout == layout;
    }
    return found;
}

/* What a graph found takes of its base, both timed in quiet slices (whole.h), in turns, of which
 * the fastest of each counts. */
static graft_status compare_quietly(bench_run *run, graft_executor *base, graft_executor *found,
                                    double *ratio)
{
    graft_timing timing;
    double base_ns = (double)INFINITY;
    double found_ns = (double)INFINITY;
    for (uint32_t i = 0; i < QUIET_TURNS; i++) {
        GRAFT_PASS(graft_whole_time(run->env, run->session.cost, base, QUIET_ROUNDS, &timing));
        base_ns = fmin(base_ns, timing.median_ns);
        GRAFT_PASS(graft_whole_time(run->env, run->session.cost, found, QUIET_ROUNDS, &timing));
        found_ns = fmin(found_ns, timing.median_ns);
    }
    *ratio = found_ns / base_ns;
    return GRAFT_OK;
}

/* The graph found against the graph as given in one layout throughout, directly computed; a layout
 * that no tensor of the graph takes is passed over. */
static graft_status compare_base(bench_run *run, graft_executor *found, uint32_t layout,
                                 graft_comparison *c, double *quiet)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_cost *cost = NULL;
    graft_executor *base = NULL;
    GRAFT_CHECK(graft_cost_open(env, run->session.device, base_path, &cost));
    graft_cost_set_base(cost, layout);
    GRAFT_CHECK(open_executor_of(run, cost, &run->session.environment.first.graph, &base));
    if (has_layout(base, layout) || layout == GRAFT_LAYOUT_NHWC) {
        GRAFT_CHECK(graft_executor_compare(env, base, found, GAIN_ROUNDS, c));
        GRAFT_CHECK(compare_quietly(run, base, found, quiet));
        print_figure(run, graft_layout_name(layout), "1", c->ratio, c->ratio_spread, GAIN_ROUNDS);
        print_figure(run, graft_arena_printf(env->unit, "%s.base", graft_layout_name(layout)), "ms",
                     c->a.median_ns / 1e6, c->a.spread_ns / 1e6, GAIN_ROUNDS);
    }
done:
    graft_executor_close(base);
    return graft_cost_finish(env, cost, NULL, status);
}

/* Against the better of the two layouts. */
static graft_status bench_bases(bench_run *run, graft_executor *found)
{
    graft_comparison last = {.ratio = 0.0};
    graft_comparison blocked = {.ratio = 0.0};
    double quiet[2] = {0.0};
    GRAFT_PASS(compare_base(run, found, GRAFT_LAYOUT_NHWC, &last, &quiet[0]));
    GRAFT_PASS(compare_base(run, found, GRAFT_LAYOUT_BLOCKED, &blocked, &quiet[1]));
    const graft_comparison *better = blocked.ratio > last.ratio ? &blocked : &last;
    print_figure(run, "gain", "1", 1.0 / better->ratio,
                 better->ratio_spread / (better->ratio * better->ratio), GAIN_ROUNDS);
    print_figure(run, "quiet_gain", "1", 1.0 / fmax(quiet[0], quiet[1]), 0.0, QUIET_TURNS);
    return GRAFT_OK;
}

static graft_status search_once(graft_env *env, void *context, graft_plan_found *found)
{
    graft_environment *environment = &((bench_run *)context)->session.environment;
    const graft_search_choice options = {.alpha = 1.05, .dequeues = DEQUEUES};
    environment->options.deadline_ns = graft_clock_ns() + (uint64_t)(SECONDS * 1e9);
    graft_status status = graft_search_backtracking(env, env->life, environment, &options, found);
    environment->options.deadline_ns = 0;
    return status;
}

/* Leaves the best graph as the environment's state. */
static graft_status find_best(bench_run *run)
{
    const graft_environment *environment = &run->session.environment;
    const graft_refine_options options = {
        .search = search_once, .context = run, .passes = PASSES, .rounds = ROUNDS};
    graft_refine_report report;
    graft_plan_found found;
    GRAFT_PASS(graft_refine(run->env, &run->session, &options, &found, &report));
    for (uint32_t i = 0; i < report.count; i++) {
        const graft_refine_pass *pass = &report.passes[i];
        const char *name = graft_arena_printf(run->env->life, "pass%u", i + 1);
        print_figure(run, name, "1", pass->measured, pass->spread, ROUNDS);
    }
    print_figure(run, "best", "1", report.best + 1, 0.0, 1);
    print_figure(run, "predicted", "1", found.cost_ns / environment->first_ns, 0.0, 1);
    print_figure(run, "steps", "1", found.step_count, 0.0, 1);
    print_figure(run, "dequeues", "1", (double)found.dequeues, 0.0, 1);
    return GRAFT_OK;
}

static graft_status bench_gain(bench_run *run)
{
    graft_status status = GRAFT_OK;
    graft_environment *environment = &run->session.environment;
    graft_executor *executors[3] = {NULL};
    GRAFT_CHECK(find_best(run));
    GRAFT_CHECK(open_executor(run, &environment->first.graph, &executors[0]));
    GRAFT_CHECK(open_executor(run, &environment->state.graph, &executors[1]));
    GRAFT_CHECK(compare(run, "measured", executors[0], executors[1], true));
    GRAFT_CHECK(bench_bases(run, executors[1]));
    graft_cost_set_convention(run->session.cost, true);
    status = open_executor(run, &environment->first.graph, &executors[2]);
    graft_cost_set_convention(run->session.cost, false);
    GRAFT_CHECK(status);
    GRAFT_CHECK(compare(run, "layouts", executors[0], executors[2], false));
done:
    for (uint32_t i = 0; i < 3; i++) {
        graft_executor_close(executors[i]);
    }
    return status;
}

/* -------------------------------------------------------------------- order */

/* All against the graph as given, which each graph is timed in turns with: between one graph and
 * the next the machine may become a third slower or faster. */
typedef struct {
    double cost;
    double whole;
    double spread;
} priced_graph;

/* The next graph of a walk; the walk begins anew when it has taken its steps, or has none left. */
static graft_status walk_on(bench_run *run, graft_rng *rng)
{
    graft_environment *e = &run->session.environment;
    graft_outcome outcome;
    if (e->step_count >= WALK || e->terminal || e->matches.count == 0) {
        GRAFT_PASS(graft_environment_reset(run->env, e));
    }
    if (e->matches.count == 0) {
        return GRAFT_FAIL(run->env, GRAFT_BAD_INPUT, "%s: no rule has a place", run->model);
    }
    const graft_action action = graft_matches_draw(&e->matches, rng);
    return graft_environment_step(run->env, e, action.xfer, action.location, &outcome);
}

/* Copies of a graph's weights, so that kernels pack them to places of their own. */
static void move_weights(bench_run *run, const graft_graph *graph, graft_weights *weights)
{
    const float **data = GRAFT_NEW(run->env->unit, const float *, weights->value_count);
    for (graft_index v = 0; v < weights->value_count; v++) {
        size_t bytes = (size_t)graft_shape_bytes(&graph->values[v].shape);
        data[v] = weights->data[v];
        if (data[v] != NULL) {
            data[v] = graft_arena_copy(run->env->unit, data[v], bytes, 1);
        }
    }
    weights->data = data;
}

/* Weights that just about fill a cache are faster or slower by where they lie, which rounds do not
 * show: the graph is opened several times, and what these differ by is part of its spread. */
static graft_status measure_graph(bench_run *run, graft_executor *given, priced_graph *priced)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(run->env->unit);
    graft_executor *executors[PLACES] = {NULL};
    const graft_environment *e = &run->session.environment;
    const graft_graph *graph = &e->state.graph;
    double ratios[PLACES];
    double between = 0.0;
    priced->cost = e->cost_ns / e->first_ns;
    priced->spread = 0.0;
    for (uint32_t i = 0; i < PLACES; i++) {
        graft_comparison c;
        graft_weights weights;
        GRAFT_CHECK(graft_model_fold_weights(run->env, run->env->unit, run->session.model, graph,
                                             &weights));
        move_weights(run, graph, &weights);
        GRAFT_CHECK(graft_executor_open_model(run->env, run->session.cost, run->session.model,
                                              graph, &weights, &executors[i]));
        GRAFT_CHECK(graft_executor_compare(run->env, given, executors[i], PLACE_ROUNDS, &c));
        ratios[i] = c.ratio;
        priced->spread = fmax(priced->spread, c.ratio_spread);
        GRAFT_CHECK(graft_search_go_on(run->env));
    }
    graft_cost_median(ratios, PLACES, &priced->whole, &between);
    priced->spread = fmax(priced->spread, ratios[PLACES - 1] - ratios[0]); /* They are sorted. */
done:
    for (uint32_t i = 0; i < PLACES; i++) {
        graft_executor_close(executors[i]);
    }
    return status;
}

static void print_order(const bench_run *run, const priced_graph *graphs, uint32_t count)
{
    double ratios[GRAPHS];
    double median = 0.0;
    double spread = 0.0;
    uint32_t pairs = 0;
    uint32_t apart = 0;
    uint32_t right = 0;
    for (uint32_t i = 0; i < count; i++) {
        ratios[i] = graphs[i].cost / graphs[i].whole;
        for (uint32_t j = 0; j < i; j++) {
            double difference = graphs[i].whole - graphs[j].whole;
            double noise = SPREADS_APART * fmax(graphs[i].spread, graphs[j].spread);
            pairs++;
            if (fabs(difference) > noise) {
                apart++;
                right += (graphs[i].cost - graphs[j].cost) * difference > 0.0;
            }
        }
    }
    graft_cost_median(ratios, count, &median, &spread);
    print_figure(run, "graphs", "1", count, 0.0, 1);
    print_figure(run, "right", "1", apart == 0 ? 1.0 : (double)right / apart, 0.0, apart);
    print_figure(run, "excluded", "1", 1.0 - (double)apart / fmax(pairs, 1.0), 0.0, pairs);
    print_figure(run, "ratio", "1", median, spread, count);
}

static graft_status bench_order(bench_run *run)
{
    graft_status status = GRAFT_OK;
    priced_graph graphs[GRAPHS];
    graft_progress progress;
    graft_rng rng;
    graft_executor *given = NULL;
    uint32_t count = 0;
    graft_rng_seed(&rng, ORDER_SEED);
    graft_progress_start(&progress, run->env, "measure rewritten graphs", "graphs", GRAPHS);
    GRAFT_CHECK(open_executor(run, &run->session.environment.first.graph, &given));
    for (; count < GRAPHS; count++) {
        GRAFT_CHECK(walk_on(run, &rng));
        GRAFT_CHECK(measure_graph(run, given, &graphs[count]));
        graft_progress_update(&progress, count + 1, NULL);
    }
done:
    if (count > 1) { /* Also what there is when it was interrupted: "graphs" tells. */
        print_order(run, graphs, count);
    }
    graft_executor_close(given);
    graft_progress_finish(&progress);
    return status;
}

/* -------------------------------------------------------------------- price */

/* The median time to price a state just after the first graph, which it differs from. */
static graft_status time_price(bench_run *run, const graft_state *state, double *median_ns,
                               double *spread_ns)
{
    const graft_state *first = &run->session.environment.first;
    double samples[REPEATS];
    double ns = 0.0;
    GRAFT_PASS(graft_cost_price(run->env, run->session.cost, &state->graph, &state->order, &ns));
    for (uint32_t i = 0; i < REPEATS; i++) {
        GRAFT_PASS(
            graft_cost_price(run->env, run->session.cost, &first->graph, &first->order, &ns));
        uint64_t start_ns = graft_cost_clock_ns(1);
        GRAFT_PASS(
            graft_cost_price(run->env, run->session.cost, &state->graph, &state->order, &ns));
        samples[i] = (double)(graft_cost_clock_ns(1) - start_ns);
    }
    graft_cost_median(samples, REPEATS, median_ns, spread_ns);
    return GRAFT_OK;
}

static graft_status time_rewrites(bench_run *run)
{
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_matches *matches = &environment->matches;
    uint32_t count = 0;
    double spread_ns = 0.0;
    double median_ns = 0.0;
    graft_state state;
    graft_state_open(env->unit, &environment->first.graph.limits, &state);
    double *times_ns = GRAFT_NEW(env->unit, double, matches->count);
    GRAFT_EACH_ACTION(matches, action)
    {
        GRAFT_PASS(graft_matches_follow(env, matches, &environment->first, action, &state));
        GRAFT_PASS(time_price(run, &state, &times_ns[count++], &spread_ns));
        if (graft_interrupted()) {
            return GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while pricing");
        }
    }
    graft_cost_median(times_ns, count, &median_ns, &spread_ns);
    print_figure(run, "rewrite", "us", median_ns / 1e3, spread_ns / 1e3, count);
    print_figure(run, "rewrite_most", "us", graft_cost_quantile(times_ns, count, 0.9) / 1e3, 0.0,
                 count);
    return GRAFT_OK;
}

/* What the price of the graph as given rests on, one entry after the other. */
static graft_status time_lookups(bench_run *run)
{
    graft_session *session = &run->session;
    const graft_state *first = &session->environment.first;
    graft_schedule schedule;
    double samples[REPEATS];
    double found_ns = 0.0;
    double median_ns = 0.0;
    double spread_ns = 0.0;
    GRAFT_PASS(graft_session_plan(run->env, session, run->env->unit, &first->graph, &first->order,
                                  &schedule));
    for (uint32_t r = 0; r < REPEATS; r++) {
        uint64_t start_ns = graft_cost_clock_ns(1);
        for (uint32_t i = 0; i < LOOKUPS; i++) {
            const graft_cost_entry *entry =
                graft_database_find(graft_cost_database(session->cost),
                                    &schedule.steps[i % schedule.step_count].signature);
            found_ns += entry == NULL ? 0.0 : entry->median_ns;
        }
        samples[r] = (double)(graft_cost_clock_ns(1) - start_ns) / LOOKUPS;
    }
    if (!(found_ns > 0.0)) {
        return GRAFT_FAIL(run->env, GRAFT_INTERNAL, "the benchmark found no entry");
    }
    graft_cost_median(samples, REPEATS, &median_ns, &spread_ns);
    print_figure(run, "lookup", "ns", median_ns, spread_ns, REPEATS);
    return GRAFT_OK;
}

static graft_status bench_price(bench_run *run)
{
    double median_ns = 0.0;
    double spread_ns = 0.0;
    GRAFT_PASS(time_price(run, &run->session.environment.first, &median_ns, &spread_ns));
    print_figure(run, "same", "us", median_ns / 1e3, spread_ns / 1e3, REPEATS);
    GRAFT_PASS(time_rewrites(run));
    return time_lookups(run);
}

/* --------------------------------------------------------------- benchmarks */

#define COUNTED(models) models, sizeof(models) / sizeof((models)[0])

/* Each prints JSON Lines. A new benchmark is one more row. */
static const struct {
    const char *name;
    const char *const *models; /* Where none are named. */
    uint32_t model_count;
    graft_status (*run)(bench_run *run);
} benches[] = {
    {"cost",   COUNTED(price_models),  bench_price},
    {"search", COUNTED(search_models), bench_gain },
    {"order",  COUNTED(order_models),  bench_order},
};

enum { BENCH_COUNT = sizeof(benches) / sizeof(benches[0]) };

typedef struct {
    const char *name;
    const char *models;
    const char *folder;
} bench_choices;

static graft_status bench_model(graft_env *env, figures *f, size_t number, const char *model)
{
    bench_run *run = GRAFT_NEW(env->life, bench_run, 1);
    *run = (bench_run){.env = env, .figures = f, .kind = benches[number].name, .model = model};
    graft_status status = open_session(run, database_path);
    status = status == GRAFT_OK ? benches[number].run(run) : status;
    status = graft_session_finish(env, &run->session, status);
    graft_arena_reset(env->unit);
    return status;
}

static graft_status bench_models(graft_env *env, figures *f, size_t number, const char *names)
{
    const char *const *models = benches[number].models;
    uint32_t count = benches[number].model_count;
    if (names != NULL) {
        const char **named = NULL;
        GRAFT_PASS(graft_model_names(env, env->life, names, &named, &count));
        models = named;
    }
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_PASS_IN(env, bench_model(env, f, number, models[i]), "in model %s", models[i]);
    }
    return GRAFT_OK;
}

/* Runs one benchmark into `folder`/NAME.json, which grows with it, and prints it. */
static graft_status run_bench(graft_env *env, size_t number, const bench_choices *c)
{
    graft_status status = GRAFT_OK;
    figures f = {.path =
                     graft_arena_printf(env->life, "%s/%s.json", c->folder, benches[number].name),
                 .text.arena = env->life};
    GRAFT_TRY(env, bench_models(env, &f, number, c->models), "in benchmark %s",
              benches[number].name);
    status = f.text.size == 0 ? graft_file_write(env, f.path, "", 0) : f.status;
done:
    return status;
}

static graft_status run_benches(graft_env *env, void *choices)
{
    const bench_choices *c = choices;
    for (size_t i = 0; i < BENCH_COUNT; i++) {
        if (c->name == NULL || strcmp(c->name, benches[i].name) == 0) {
            GRAFT_PASS(run_bench(env, i, c));
        }
    }
    return GRAFT_OK;
}

static const graft_option options[] = {
    GRAFT_CHOICE(bench_choices, name, "[NAME]", NULL, "cost|search|order", NULL, "one alone"),
    GRAFT_TEXT(bench_choices, models, "--models", "A,B", NULL, "over these"),
    GRAFT_TEXT(bench_choices, folder, "--out", "FOLDER", "out/bench", "for the figures"),
};

const graft_command graft_command_bench = {.name = "bench",
                                           .summary = "run one benchmark or all",
                                           GRAFT_TAKES(bench_choices, options),
                                           .run = run_benches};
