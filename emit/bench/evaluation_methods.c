/* evaluation_methods.c - what each method does to a model, for one cell (see evaluation.h). */
#include "cost/plan/executor.h"
#include "emit/bench/evaluation.h"
#include "emit/header/compile.h"
#include "emit/policy/refined.h"
#include "graph/base/log.h"

#include <xxhash.h>

#define PLAIN(shown, what, is_drawn)                                                               \
    {                                                                                              \
        .name = (shown), .kind = (what), .drawn = (is_drawn)                                       \
    }
#define SEARCH(shown, is_drawn, ...)                                                               \
    {                                                                                              \
        .name = (shown), .kind = GRAFT_METHOD_SEARCH, .drawn = (is_drawn), .choice = {             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SAMPLED(shown, degrees)                                                                    \
    {                                                                                              \
        .name = (shown), .kind = GRAFT_METHOD_SAMPLED, .drawn = true, .choice = {                  \
            .temperature = (degrees)                                                               \
        }                                                                                          \
    }
const graft_method graft_methods[GRAFT_METHODS] = {
    PLAIN("as given", GRAFT_METHOD_GIVEN, false),
    PLAIN("policy", GRAFT_METHOD_POLICY, false),
    PLAIN("unseen", GRAFT_METHOD_UNSEEN, false),
    PLAIN("table", GRAFT_METHOD_TABLE, false),
    PLAIN("refined", GRAFT_METHOD_REFINED, true),
    SEARCH("guided", true, .name = "guided"),
    SEARCH("greedy", false, .name = "greedy"),
    SEARCH("escape", false, .name = "escape"),
    SEARCH("beam 8", false, .name = "beam", .width = 8),
    SEARCH("beam 64", false, .name = "beam", .width = 64),
    SEARCH("annealing", true, .name = "annealing"),
    SEARCH("iterated", true, .name = "iterated"),
    SEARCH("saturation", false, .name = "saturation"),
    SEARCH("backtracking 1000", false, .name = "backtracking", .dequeues = 1000),
    SEARCH("backtracking 50000", false, .name = "backtracking", .dequeues = 50000),
    SEARCH("backtracking equal time", false, .name = "backtracking", .dequeues = UINT32_MAX),
    SAMPLED("sampled 0.1", 0.1),
    SAMPLED("sampled 0.3", 0.3),
    SAMPLED("sampled 1", 1.0),
    SAMPLED("sampled 3", 3.0),
};
#undef PLAIN
#undef SEARCH
#undef SAMPLED

/* How often each rule is applied. */
static const char *list_rules(const graft_cell_run *c, const graft_action *steps, uint32_t count)
{
    const graft_xfers *xfers = &c->session->xfers;
    graft_buffer text = {.arena = c->evaluation->env->life};
    uint32_t *uses = GRAFT_NEW(c->env->unit, uint32_t, xfers->count);
    bool first = true;
    for (uint32_t i = 0; i < count; i++) {
        uses[steps[i].xfer]++;
    }
    graft_buffer_printf(&text, "{");
    for (uint32_t x = 0; x < xfers->count; x++) {
        if (uses[x] > 0) {
            graft_buffer_printf(&text, "%s\"%s\": %u", first ? "" : ", ", xfers->names[x], uses[x]);
            first = false;
        }
    }
    graft_buffer_printf(&text, "}");
    return text.data;
}

static graft_status take_plan(graft_cell_run *c, const graft_plan_found *found)
{
    graft_environment *environment = &c->session->environment;
    GRAFT_PASS(graft_plan_replay(c->env, environment, found->steps, found->step_count));
    GRAFT_PASS(graft_known_price_count(c->env, c->session, &environment->state, &c->cell.cost_ns,
                                       &c->cell.estimates));
    c->made = true;
    c->cell.steps = found->step_count;
    c->cell.graphs = found->evaluations;
    c->cell.seconds = found->seconds;
    c->cell.cut = found->cut;
    c->cell.rules = list_rules(c, found->steps, found->step_count);
    c->found = *found;
    c->has_plan = true;
    return GRAFT_OK;
}

/* Seconds that a cell may take: backtracking without an end as many as guided search took. */
static double limit_of(const graft_cell_run *c)
{
    const graft_cell *guided = graft_cells_find(&c->evaluation->cells, c->cell.model, "guided", 1);
    const bool endless = c->method->choice.dequeues == UINT32_MAX;
    return endless && guided != NULL ? guided->seconds : (double)c->evaluation->seconds;
}

static graft_status run_search(graft_cell_run *c)
{
    graft_env *env = c->env;
    graft_environment *environment = &c->session->environment;
    graft_search_choice choice = c->method->choice;
    graft_plan_found found = {.cost_ns = 0.0};
    choice.seed = c->cell.seed;
    choice.tariff = &c->evaluation->tariff;
    choice.cost = c->session->cost;
    environment->options.deadline_ns = graft_clock_ns() + (uint64_t)(limit_of(c) * 1e9);
    graft_status status =
        graft_search_run(env, env->unit, environment, &c->session->settings, &choice, &found);
    environment->options.deadline_ns = 0;
    GRAFT_PASS(status);
    return take_plan(c, &found);
}

static graft_status run_policy(graft_cell_run *c, const graft_policy *policy)
{
    graft_results *results = GRAFT_NEW(c->env->unit, graft_results, 1);
    const graft_policy_run alone = {.method = "policy", .how = "alone"};
    results->count = 0;
    GRAFT_PASS(graft_policy_evaluate(c->env, c->session, policy, &alone, results));
    const graft_result *row = &results->rows[0];
    c->cell.cost_ns = row->cost_ns;
    c->cell.estimates = (uint32_t)row->estimated;
    c->cell.steps = row->step_count;
    c->cell.rules = list_rules(c, row->steps, row->step_count);
    c->cell.seconds = row->seconds;
    c->made = true;
    return GRAFT_OK;
}

/* Greedy over a table of rows that walks through the model's own rewrites met, as they were
 * measured: what greedy's plan and the walks asked for is counted. */
static graft_status run_table(graft_cell_run *c)
{
    graft_env *env = c->env;
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_plan_found greedy;
    graft_tariff tariff;
    graft_tariff_plan plan;
    graft_book book;
    graft_book_open(env->unit, &book);
    GRAFT_PASS(graft_search_greedy(env, env->unit, &c->session->environment, NULL, &greedy));
    GRAFT_PASS(graft_table_teach(env, c->session, &book, 0, &greedy));
    GRAFT_PASS(graft_tariff_make(env, env->unit, &book, &options, &tariff));
    GRAFT_PASS(graft_search_tariff(env, env->unit, &c->session->environment, &tariff, &plan));
    plan.found.evaluations = greedy.evaluations + book.priced;
    return take_plan(c, &plan.found);
}

static graft_status run_sampled(graft_cell_run *c)
{
    graft_plan_found found;
    const graft_search_choice options = {.tariff = &c->evaluation->tariff,
                                         .cost = c->session->cost,
                                         .graphs = 1,
                                         .temperature = c->method->choice.temperature,
                                         .seed = c->cell.seed};
    GRAFT_PASS(
        graft_guided_sample(c->env, c->env->unit, &c->session->environment, &options, &found));
    return take_plan(c, &found);
}

/* The better of the policy for many models and the refined one; its seconds are those of refining.
 */
static graft_status run_refined(graft_cell_run *c)
{
    graft_results *results = GRAFT_NEW(c->env->unit, graft_results, 1);
    graft_refined refined;
    const uint64_t start_ns = graft_clock_ns();
    results->count = 0;
    const graft_refined_start start = {.tariff = &c->evaluation->tariff, .seed = c->cell.seed};
    GRAFT_PASS(graft_refined_make(c->env, c->session, &start, &refined, results));
    const double seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    GRAFT_PASS(run_policy(c, refined.best));
    c->cell.seconds = seconds;
    c->cell.graphs = refined.graphs;
    return GRAFT_OK;
}

static graft_status run_method(graft_cell_run *c)
{
    switch (c->method->kind) {
    case GRAFT_METHOD_GIVEN:
        return GRAFT_OK;
    case GRAFT_METHOD_POLICY:
        return run_policy(c, &c->evaluation->policy);
    case GRAFT_METHOD_UNSEEN:
        return run_policy(c, &c->evaluation->unseen);
    case GRAFT_METHOD_REFINED:
        return run_refined(c);
    case GRAFT_METHOD_TABLE:
        return run_table(c);
    case GRAFT_METHOD_SAMPLED:
        return run_sampled(c);
    case GRAFT_METHOD_SEARCH:
        break;
    }
    return run_search(c);
}

/* Runs the graph that was found in turns with the one as given. A graph of opaque operators, or of
 * a device that is not here, cannot be run. */
static graft_status time_whole(graft_cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_env *env = c->env;
    GRAFT_SCOPED(env->unit);
    const graft_session *session = c->session;
    const graft_environment *environment = &session->environment;
    const graft_graph *graphs[] = {&environment->first.graph, &environment->state.graph};
    graft_executor *executors[] = {NULL, NULL};
    graft_comparison comparison;
    for (uint32_t i = 0; i < 2; i++) {
        GRAFT_CHECK(graft_executor_open_folded(env, env->unit, session->cost, session->model,
                                               graphs[i], &executors[i]));
    }
    GRAFT_CHECK(graft_executor_compare(env, executors[0], executors[1],
                                       (uint32_t)c->evaluation->rounds, &comparison));
    c->cell.measured = comparison.ratio;
    c->cell.measured_spread = comparison.ratio_spread;
done:
    for (uint32_t i = 0; i < 2; i++) {
        graft_executor_close(executors[i]);
    }
    return status;
}

/* One seed of each method is run whole, where that was asked for. */
static bool is_timed(const graft_cell_run *c)
{
    return c->evaluation->rounds > 0 && c->cell.seed <= 1 &&
           c->method->kind != GRAFT_METHOD_SAMPLED && c->method->kind != GRAFT_METHOD_GIVEN;
}

/* What is said of the graph that was found besides its cost. */
static graft_status look_at_graph(graft_cell_run *c)
{
    const graft_environment *environment = &c->session->environment;
    const graft_state *state = c->made ? &environment->state : &environment->first;
    graft_cost_total total;
    GRAFT_PASS(graft_cost_graph(c->env, c->session->cost, &state->graph, &state->order, &total));
    c->cell.peak_bytes = total.peak_bytes;
    if (is_timed(c)) {
        GRAFT_PASS(time_whole(c));
    }
    return GRAFT_OK;
}

/* What the cell's result rests on. */
static uint64_t hash_inputs(const graft_cell_run *c)
{
    const graft_search_choice *choice = &c->method->choice;
    uint64_t numbers[] = {graft_state_hash(&c->session->environment.first),
                          graft_plans_rules(c->session),
                          graft_plans_costs(c->session),
                          c->method->kind == GRAFT_METHOD_UNSEEN ? c->evaluation->unseen_hash
                                                                 : c->evaluation->policy_hash,
                          choice->dequeues,
                          choice->width,
                          choice->graphs,
                          (uint64_t)(1000.0 * choice->temperature),
                          XXH3_64bits(&c->session->settings, sizeof c->session->settings)};
    return XXH3_64bits(numbers, sizeof numbers) ^ (c->evaluation->estimates ? 1 : 0);
}

/* The cell as it was done before; NULL when that rests on something else, was cut earlier than it
 * would be now, or was not run whole where it is to be. */
static const graft_cell *find_known(const graft_cell_run *c)
{
    const graft_evaluation *run = c->evaluation;
    const graft_cell *known =
        graft_cells_find(&run->cells, c->cell.model, c->method->name, c->cell.seed);
    const bool holds = known != NULL && known->inputs == c->cell.inputs && !run->again &&
                       (!known->cut || known->seconds + 1.0 >= limit_of(c)) &&
                       (!is_timed(c) || known->measured > 0);
    return holds ? known : NULL;
}

graft_status graft_evaluation_cell(graft_cell_run *c)
{
    graft_evaluation *run = c->evaluation;
    c->cell.inputs = hash_inputs(c);
    c->cell.method = c->method->name;
    c->cell.rules = "{}";
    const graft_cell *known = find_known(c);
    if (known != NULL) {
        c->cell = *known;
        c->is_known = true;
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_known_price_count(c->env, c->session, &c->session->environment.first,
                                       &c->cell.first_ns, &c->cell.first_estimates));
    c->cell.cost_ns = c->cell.first_ns;
    c->cell.estimates = c->cell.first_estimates;
    GRAFT_PASS(run_method(c));
    GRAFT_PASS(look_at_graph(c));
    graft_cells_put(run->env->life, &run->cells, &c->cell); /* Later cells look for it. */
    return GRAFT_OK;
}
