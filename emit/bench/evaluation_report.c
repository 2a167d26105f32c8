/* evaluation_report.c - the page of an evaluation, and its plots (see evaluation.h). */
#include "emit/bench/evaluation.h"
#include "graph/base/file.h"
#include "graph/base/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MOST = 128, RULES_MOST = 24, NAMES_MOST = 512 };

/* The cells of a model and a method, over seeds. */
typedef struct {
    uint32_t count;
    double mean; /* Of the cost, percent of the graph as given. */
    double half; /* Of the interval that holds the mean with 95 %; 0 for one cell. */
    double least;
    double worst;
    double graphs; /* Means. */
    double seconds;
    double steps;
    double peak;     /* Bytes. */
    double measured; /* Of the one cell that was run whole; 0: none. */
    double measured_spread;
    bool cut;       /* Some cell. */
    bool estimated; /* Some cell rests on more estimates than the graph as given. */
} summary;

typedef struct {
    graft_env *env;
    const graft_cells *cells;
    const char **models; /* In the order of the cells. */
    uint32_t model_count;
    const graft_method *methods;
    uint32_t method_count;
    graft_buffer page;
    const char *folder;
} report;

/* Student's t for 95 %, by degrees of freedom. */
static double quantile(uint32_t freedom)
{
    static const double t[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447, 2.365,  2.306, 2.262, 2.228};
    return freedom < sizeof t / sizeof t[0] ? t[freedom] : 2.0;
}

static summary summarise(const report *r, const char *model, const char *method)
{
    double values[SAMPLES_MOST];
    double squares = 0.0;
    summary s = {.count = 0, .least = HUGE_VAL};
    for (uint32_t i = 0; i < r->cells->count && s.count < SAMPLES_MOST; i++) {
        const graft_cell *cell = &r->cells->items[i];
        if (strcmp(cell->model, model) != 0 || strcmp(cell->method, method) != 0) {
            continue;
        }
        const double value = 100.0 * cell->cost_ns / cell->first_ns;
        values[s.count++] = value;
        s.mean += value;
        s.least = fmin(s.least, value);
        s.worst = fmax(s.worst, value);
        s.graphs += (double)cell->graphs;
        s.seconds += cell->seconds;
        s.steps += cell->steps;
        s.peak += (double)cell->peak_bytes;
        if (cell->measured > 0) {
            s.measured = cell->measured;
            s.measured_spread = cell->measured_spread;
        }
        s.cut = s.cut || cell->cut;
        s.estimated = s.estimated || cell->estimates > cell->first_estimates;
    }
    const double n = s.count > 0 ? (double)s.count : 1.0;
    s.mean /= n;
    s.graphs /= n;
    s.seconds /= n;
    s.steps /= n;
    s.peak /= n;
    for (uint32_t i = 0; i < s.count; i++) {
        squares += (values[i] - s.mean) * (values[i] - s.mean);
    }
    s.half = s.count > 1 ? quantile(s.count - 1) * sqrt(squares / (n - 1.0) / n) : 0.0;
    return s;
}

/* The cheapest graph of all cells that rests on no more estimates than the one given. */
static const graft_cell *find_best(const report *r, const char *model)
{
    const graft_cell *best = NULL;
    for (uint32_t i = 0; i < r->cells->count; i++) {
        const graft_cell *cell = &r->cells->items[i];
        if (strcmp(cell->model, model) == 0 && cell->estimates <= cell->first_estimates &&
            (best == NULL || cell->cost_ns < best->cost_ns)) {
            best = cell;
        }
    }
    return best;
}

typedef bool says_something(const summary *s);

static bool has_cells(const summary *s) { return s->count > 0; }

static bool has_times(const summary *s) { return s->measured > 0; }

static bool is_sampled(const graft_method *method) { return method->kind == GRAFT_METHOD_SAMPLED; }

/* Whether any model has a cell of the method that says something. */
static bool was_run(const report *r, const graft_method *method, says_something *says)
{
    bool run = false;
    for (uint32_t m = 0; m < r->model_count && !run; m++) {
        const summary s = summarise(r, r->models[m], method->name);
        run = says(&s);
    }
    return run;
}

/* ------------------------------------------------------------------- tables */

typedef void print_field(graft_buffer *page, const summary *s);

static void print_cost(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, "%.2f", s->mean);
    if (s->count > 1 && s->half >= 0.005) {
        graft_buffer_printf(page, " ± %.2f", s->half);
    }
    graft_buffer_printf(page, "%s%s", s->cut ? "+" : "", s->estimated ? " (e)" : "");
}

static void print_graphs(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, "%.0f", s->graphs);
}

static void print_seconds(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, s->seconds < 1.0 ? "%.3f" : "%.1f", s->seconds);
}

static void print_steps(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, "%.0f", s->steps);
}

static void print_peak(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, s->peak < 1e6 ? "%.3f" : "%.1f", s->peak / 1e6);
}

static void print_measured(graft_buffer *page, const summary *s)
{
    graft_buffer_printf(page, "%.1f ± %.1f", 100.0 * s->measured, 100.0 * s->measured_spread);
}

/* Which rows a table has, and what is in its fields. */
typedef struct {
    bool sampled;
    bool given; /* Also the graph as given. */
    says_something *says;
    print_field *print;
} table;

/* A row for each method, a column for each model. */
static void print_rows(report *r, const table *t)
{
    graft_buffer *page = &r->page;
    graft_buffer_printf(page, "|");
    for (uint32_t m = 0; m < r->model_count; m++) {
        graft_buffer_printf(page, " | %s", r->models[m]);
    }
    graft_buffer_printf(page, " |\n|---|");
    for (uint32_t m = 0; m < r->model_count; m++) {
        graft_buffer_printf(page, "---|");
    }
    for (uint32_t k = 0; k < r->method_count; k++) {
        const graft_method *method = &r->methods[k];
        if ((method->kind == GRAFT_METHOD_GIVEN && !t->given) || is_sampled(method) != t->sampled ||
            !was_run(r, method, t->says)) {
            continue;
        }
        graft_buffer_printf(page, "\n| %s", method->name);
        for (uint32_t m = 0; m < r->model_count; m++) {
            const summary s = summarise(r, r->models[m], method->name);
            graft_buffer_printf(page, " | ");
            if (!t->says(&s)) {
                graft_buffer_printf(page, "–");
            } else {
                t->print(page, &s);
            }
        }
        graft_buffer_printf(page, " |");
    }
    graft_buffer_printf(page, "\n\n");
}

static void print_table(report *r, bool sampled, print_field *print)
{
    print_rows(r, &(table){.sampled = sampled, .says = has_cells, .print = print});
}

static void print_gap(graft_buffer *page, const summary *s, double value, double base)
{
    if (s->count == 0) {
        graft_buffer_printf(page, " – |");
    } else {
        graft_buffer_printf(page, " %+.2f |", value - base);
    }
}

/* How far the policy and what begins with it are from greedy and from the best known. */
static void print_goals(report *r)
{
    graft_buffer *page = &r->page;
    graft_buffer_printf(
        page,
        "## Goals\n\nPoints of cost. Of what is drawn: the mean, and the worst seed. *Best "
        "known* is the cheapest graph of\nany row above, without more estimates than the "
        "graph as given.\n\n| | best known | by | greedy over it | policy − greedy | unseen − "
        "greedy | refined − greedy | worst | guided − best known | worst "
        "|\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t m = 0; m < r->model_count; m++) {
        const char *model = r->models[m];
        const graft_cell *best = find_best(r, model);
        const summary greedy = summarise(r, model, "greedy");
        if (best == NULL || greedy.count == 0) {
            continue;
        }
        const summary policy = summarise(r, model, "policy");
        const summary unseen = summarise(r, model, "unseen");
        const summary refined = summarise(r, model, "refined");
        const summary guided = summarise(r, model, "guided");
        const double least = 100.0 * best->cost_ns / best->first_ns;
        graft_buffer_printf(page, "| %s | %.2f | %s |", model, least, best->method);
        print_gap(page, &greedy, greedy.mean, least);
        print_gap(page, &policy, policy.mean, greedy.mean);
        print_gap(page, &unseen, unseen.mean, greedy.mean);
        print_gap(page, &refined, refined.mean, greedy.mean);
        print_gap(page, &refined, refined.worst, greedy.mean);
        print_gap(page, &guided, guided.mean, least);
        print_gap(page, &guided, guided.worst, least);
        graft_buffer_printf(page, "\n");
    }
    graft_buffer_printf(page, "\n");
}

/* ------------------------------------------------------------------- rules */

typedef struct {
    const char *name;
    uint32_t *uses; /* By model. */
    uint32_t sum;
} used_rule;

static int compare_used(const void *a, const void *b)
{
    const used_rule *x = a;
    const used_rule *y = b;
    return x->sum != y->sum ? (x->sum < y->sum ? 1 : -1) : strcmp(x->name, y->name);
}

/* Adds the rules of a cell's plan. */
static graft_status add_rules(report *r, const graft_cell *cell, uint32_t model, used_rule *rules,
                              uint32_t *count)
{
    graft_env *env = r->env;
    const graft_yaml *map = NULL;
    GRAFT_PASS(
        graft_yaml_parse(env, env->scratch, "rules", cell->rules, strlen(cell->rules), &map));
    for (uint32_t i = 0; i < map->count; i++) {
        uint32_t at = 0;
        int64_t uses = 0;
        GRAFT_PASS(graft_yaml_integer(env, map, map->items[i].key, 0, INT32_MAX, &uses));
        while (at < *count && strcmp(rules[at].name, map->items[i].key) != 0) {
            at++;
        }
        if (at == NAMES_MOST) {
            continue;
        }
        if (at == *count) {
            rules[at] = (used_rule){.name = map->items[i].key,
                                    .uses = GRAFT_NEW(env->scratch, uint32_t, r->model_count)};
            memset(rules[at].uses, 0, r->model_count * sizeof(uint32_t));
            (*count)++;
        }
        rules[at].uses[model] += (uint32_t)uses;
        rules[at].sum += (uint32_t)uses;
    }
    return GRAFT_OK;
}

static graft_status write_text(report *r, const char *name, const graft_buffer *text)
{
    return graft_file_write(r->env, graft_arena_printf(r->env->scratch, "%s/%s", r->folder, name),
                            text->data, text->size);
}

static void set_terminal(graft_buffer *plot, const char *name, uint32_t width, uint32_t height)
{
    graft_buffer_printf(plot,
                        "set terminal svg size %u,%u font 'sans,11' background 'white'\nset output "
                        "'%s.svg'\n",
                        width, height, name);
}

/* A heatmap of greedy's rules: the most used ones by model. */
static graft_status plot_rules(report *r)
{
    graft_env *env = r->env;
    graft_buffer data = {.arena = env->scratch};
    graft_buffer plot = {.arena = env->scratch};
    used_rule *rules = GRAFT_NEW(env->scratch, used_rule, NAMES_MOST);
    uint32_t count = 0;
    for (uint32_t m = 0; m < r->model_count; m++) {
        const graft_cell *cell = graft_cells_find(r->cells, r->models[m], "greedy", 0);
        if (cell != NULL) {
            GRAFT_PASS(add_rules(r, cell, m, rules, &count));
        }
    }
    if (count == 0) {
        return GRAFT_OK;
    }
    qsort(rules, count, sizeof rules[0], compare_used);
    count = count < RULES_MOST ? count : RULES_MOST;
    graft_buffer_printf(&data, "rule");
    for (uint32_t m = 0; m < r->model_count; m++) {
        graft_buffer_printf(&data, ",%s", r->models[m]);
    }
    for (uint32_t i = 0; i < count; i++) {
        graft_buffer_printf(&data, "\n\"%s\"", rules[i].name);
        for (uint32_t m = 0; m < r->model_count; m++) {
            graft_buffer_printf(&data, ",%u", rules[i].uses[m]);
        }
    }
    graft_buffer_printf(&data, "\n");
    GRAFT_PASS(write_text(r, "rules.csv", &data));
    set_terminal(&plot, "rules", 900, 560);
    graft_buffer_printf(
        &plot, "set datafile separator ','\nset title 'How often greedy search applies a rule'\n"
               "set xtics rotate by 45 right\nset ytics noenhanced\nset palette defined (0 "
               "'white', 1 '#9ecae1', 10 '#3182bd', 40 '#08306b')\nset yrange [*:*] reverse\nplot "
               "'rules.csv' matrix rowheaders columnheaders using 1:2:3 with image notitle\n");
    GRAFT_PASS(write_text(r, "rules.gp", &plot));
    graft_buffer_printf(&r->page,
                        "## Rules\n\nOf greedy search's plans, the %u rules that are "
                        "applied most.\n\n![rules by model](evaluation/rules.svg)\n\n",
                        count);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- plots */

/* Costs by model, a group of bars each. */
static graft_status plot_costs(report *r)
{
    static const char *const shown[] = {"greedy", "policy", "unseen", "refined", "guided"};
    enum { SHOWN = sizeof shown / sizeof shown[0] };
    graft_buffer data = {.arena = r->env->scratch};
    graft_buffer plot = {.arena = r->env->scratch};
    for (uint32_t m = 0; m < r->model_count; m++) {
        graft_buffer_printf(&data, "%s", r->models[m]);
        for (uint32_t i = 0; i < SHOWN; i++) {
            const summary s = summarise(r, r->models[m], shown[i]);
            graft_buffer_printf(&data, s.count > 0 ? ",%.3f,%.3f,%.3f" : ",NaN,NaN,NaN", s.mean,
                                s.least, s.worst);
        }
        graft_buffer_printf(&data, "\n");
    }
    GRAFT_PASS(write_text(r, "costs.csv", &data));
    set_terminal(&plot, "costs", 900, 420);
    graft_buffer_printf(
        &plot, "set datafile separator ','\nset style data histograms\nset style histogram "
               "errorbars gap 1 lw 1\nset style fill solid 0.8\nset bars 0.5\nset yrange "
               "[60:102]\nset ylabel 'cost, percent of the graph as given'\nset grid ytics\nset "
               "key top left horizontal\nset xtics rotate by 30 right\nplot ");
    for (uint32_t i = 0; i < SHOWN; i++) {
        graft_buffer_printf(&plot, "%s'costs.csv' using %u:%u:%u:xtic(1) title '%s'",
                            i > 0 ? ", " : "", 3 * i + 2, 3 * i + 3, 3 * i + 4, shown[i]);
    }
    graft_buffer_printf(&plot, "\n");
    return write_text(r, "costs.gp", &plot);
}

/* Sampled rollouts by temperature, a line for each model. */
static graft_status plot_temperatures(report *r)
{
    graft_buffer data = {.arena = r->env->scratch};
    graft_buffer plot = {.arena = r->env->scratch};
    for (uint32_t k = 0; k < r->method_count; k++) {
        if (is_sampled(&r->methods[k])) {
            graft_buffer_printf(&data, "%g", r->methods[k].choice.temperature);
            for (uint32_t m = 0; m < r->model_count; m++) {
                const summary s = summarise(r, r->models[m], r->methods[k].name);
                graft_buffer_printf(&data, s.count > 0 ? ",%.3f" : ",NaN", s.mean);
            }
            graft_buffer_printf(&data, "\n");
        }
    }
    GRAFT_PASS(write_text(r, "temperature.csv", &data));
    set_terminal(&plot, "temperature", 900, 420);
    graft_buffer_printf(&plot, "set datafile separator ','\nset logscale x\nset xlabel "
                               "'temperature'\nset ylabel 'cost, percent'\nset grid\nset key "
                               "outside right\nplot ");
    for (uint32_t m = 0; m < r->model_count; m++) {
        graft_buffer_printf(&plot, "%s'temperature.csv' using 1:%u with linespoints title '%s'",
                            m > 0 ? ", " : "", m + 2, r->models[m]);
    }
    graft_buffer_printf(&plot, "\n");
    return write_text(r, "temperature.gp", &plot);
}

/* ------------------------------------------------------------------- the page */

static void list_models(report *r)
{
    r->models = GRAFT_NEW(r->env->life, const char *, r->cells->count + 1);
    for (uint32_t i = 0; i < r->cells->count; i++) {
        const char *model = r->cells->items[i].model;
        uint32_t at = 0;
        while (at < r->model_count && strcmp(r->models[at], model) != 0) {
            at++;
        }
        if (at == r->model_count) {
            r->models[r->model_count++] = model;
        }
    }
}

/* Sampled rollouts, and where what they are led to ends beside the policy's own way. */
static void print_sampled(report *r)
{
    uint32_t both = 0;
    uint32_t near = 0;
    for (uint32_t m = 0; m < r->model_count; m++) {
        const summary own = summarise(r, r->models[m], "policy");
        const summary led = summarise(r, r->models[m], "sampled 3");
        both += own.count > 0 && led.count > 0 ? 1 : 0;
        near += own.count > 0 && led.count > 0 && led.mean <= own.mean + 1.0 ? 1 : 0;
    }
    graft_buffer_printf(&r->page,
                        "## Temperature\n\nOne rollout of the policy's table, steps drawn "
                        "by a softmax over what they gain, in units of a\nthousandth of "
                        "the cost times the temperature.\n\n");
    print_table(r, true, print_cost);
    if (both > 0) {
        graft_buffer_printf(&r->page,
                            "Steps that are drawn lead to states of the graph where the policy's "
                            "own way does not come by.\nAt temperature 3 it ends at most a point "
                            "dearer from there on %u of %u models, in the mean.\n\n",
                            near, both);
    }
    graft_buffer_printf(&r->page, "![cost by temperature](evaluation/temperature.svg)\n\n");
}

/* What was run whole, and memory. */
static void print_whole(report *r)
{
    bool timed = false;
    for (uint32_t k = 0; k < r->method_count && !timed; k++) {
        timed = was_run(r, &r->methods[k], has_times);
    }
    if (timed) {
        graft_buffer_printf(
            &r->page, "## Measured\n\nThe graphs themselves, run in Graft's executor in turns with "
                      "the graph as given on the processor whose\ncosts these are, one thread: "
                      "median of the ratios of rounds and the distance between their\nquartiles, "
                      "percent. Of what is drawn, the first seed.\n\n");
        print_rows(r, &(table){.says = has_times, .print = print_measured});
    }
    graft_buffer_printf(&r->page, "## Peak memory\n\nOf activations, as planned for the cheapest "
                                  "layouts, MB; the mean over seeds.\n\n");
    print_rows(r, &(table){.given = true, .says = has_cells, .print = print_peak});
}

static void print_head(report *r, const char *device)
{
    graft_buffer_printf(
        &r->page,
        "# Evaluation\n\n`make eval` writes this page: what each method finds on each model, by "
        "the recorded costs of\n`%s`, leveled ([cost.md](cost.md), *Leveling*): what twins differ "
        "by is noise. A method's row is explained\nin [agent.md](agent.md).\n\n"
        "* *policy*: the committed policy for many models, alone in the engine's own loop; no "
        "price is asked.\n"
        "* *unseen*: a policy made in the same way without any model of the family, so that every "
        "price is guessed.\n"
        "* *table*: greedy over a table of the model's own rows as they were measured: no "
        "learning, but the prices of all\n  that walks met.\n"
        "* *refined*: what `graft policy MODEL` ships: the better of policy and refined policy, in "
        "that loop.\n"
        "* *guided*: search that the policy's table guides, at most %d graphs priced.\n"
        "* Searches price graphs of no more estimates than the graph as given, each for at most "
        "the seconds of `--seconds`.\n"
        "* `+`: cut by the time, so another machine finds another graph. (e): rests on more "
        "estimates than the graph as\n  given, no result. ±: half of the interval that holds the "
        "mean over seeds with 95 %%. –: not run.\n\n",
        device, GRAFT_GUIDED_GRAPHS);
}

graft_status graft_evaluation_report(graft_env *env, const graft_cells *cells, const char *device,
                                     const char *page, const char *folder)
{
    GRAFT_SCOPED(env->scratch);
    report r = {.env = env, .cells = cells, .folder = folder, .page = {.arena = env->scratch}};
    r.methods = graft_methods(&r.method_count);
    list_models(&r);
    print_head(&r, device);
    graft_buffer_printf(&r.page, "## Cost\n\nPercent of the graph as given.\n\n");
    print_table(&r, false, print_cost);
    graft_buffer_printf(&r.page, "![cost by model](evaluation/costs.svg)\n\nBars: the mean over "
                                 "seeds; whiskers: best and worst seed.\n\n");
    print_goals(&r);
    print_whole(&r);
    graft_buffer_printf(&r.page, "## Graphs priced\n\nAll real interactions, those of refining "
                                 "and of walks included; not those that the committed policy\nwas "
                                 "made of.\n\n");
    print_table(&r, false, print_graphs);
    graft_buffer_printf(&r.page, "## Rewrites\n\n");
    print_table(&r, false, print_steps);
    graft_buffer_printf(&r.page, "## Seconds\n\nOf deciding or searching, matching and pricing "
                                 "included, one thread; in one run, not in turns.\n\n");
    print_table(&r, false, print_seconds);
    print_sampled(&r);
    GRAFT_PASS(plot_costs(&r));
    GRAFT_PASS(plot_temperatures(&r));
    GRAFT_PASS(plot_rules(&r));
    GRAFT_PASS(graft_evaluation_dreams(env, r.models, r.model_count, folder, &r.page));
    return graft_file_write(env, page, r.page.data, r.page.size - 1);
}
