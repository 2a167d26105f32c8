/* generalist.c - see generalist.h: where a tariff leads, and how its rows lean and are tuned; then
 * the stages, which graft_generalist_make lists. */
#include "emit/policy/generalist.h"

#include "emit/command/command_table.h"
#include "emit/command/contents.h"
#include "emit/command/known_policy.h"
#include "emit/header/graphtable.h"
#include "emit/header/header.h"
#include "emit/header/pairs.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/policyfile.h"
#include "train/search/appraisal.h"
#include "train/tariff/tuning.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rule, and what it brought on the models that are learnt from. */
typedef struct {
    uint32_t rule;
    uint32_t uses;
    uint64_t gain;  /* Parts of graphs, in units of 2^-32. */
    uint32_t bytes; /* Packed. */
    bool always;
} rule_use;

/* What some method made of a model. */
typedef struct {
    double ns;
    double part; /* Of the model as given; greedy search's alone. */
    uint32_t steps;
    uint32_t estimated; /* Estimates in the price. */
    uint64_t priced;    /* Graphs whose price was asked for. */
    double seconds;
} outcome;

typedef struct {
    outcome given;
    outcome greedy;
    outcome policy;
    double guessed; /* Part of the estimate of the graph as given that rests on the fallback. */
} model_row;

typedef struct {
    const graft_generalist_options *options;
    graft_session_options session;
    graft_env *env; /* Where what follows lives: models come and go in others. */
    graft_table_model *models;
    uint32_t count;
    uint64_t learnt;      /* Bit m: model m is learnt from. */
    const char *held_out; /* The family of the others, or NULL. */
    const char *out;      /* The folder of the policy in hand. */
    graft_graph **graphs; /* By model, as given. */
    graft_apply_options apply;
    uint32_t step_limit;      /* Of the engine's loop, enough for each model. */
    const char *device;       /* By its whole name. */
    graft_database *database; /* What the fallback learns from besides, or NULL. */
    graft_book book;
    graft_tariff measured; /* Rows as measured: what graphs are judged by that have estimates. */
    graft_device *device_of_prices;
    graft_cost *prices; /* What the others are judged by. It measures nothing. */
    graft_leaning_rows leaning_rows;
    graft_leaning leaning;
    graft_tariff tariff; /* The one that leans and is tuned: what ships. */
    uint32_t rule_count; /* Those that the device can use... */
    graft_rule *rules;
    const char **names;
    const uint64_t *exact; /* Ids of those that give the same bits. */
    uint32_t exact_count;
    rule_use *uses;
    const char **kept_names; /* ...and of those in `policy`. */
    graft_policy policy;
    model_row *rows;
    /* By model: how many estimates more than the graph as given the graph may rest on that a tariff
     * leads to. */
    uint32_t estimates_most[GRAFT_TABLE_MODELS];
} generalist;

static inline bool learns_from(const generalist *g, uint32_t model)
{
    return (g->learnt >> model & 1u) != 0;
}

enum { TUNING_BLURS = 64, TUNING_BLURS_MOST = 512 };

/* Of the mean cost of the graphs that the policy ends at: what leaning has to bring. */
static const double leaning_least = 1e-5;
/* Of a model's cost: what tuned rows have to bring. Less is noise, and moves activations apart that
 * other runtimes fuse. */
static const double tuning_least = 1e-3;
/* How far the policy may be behind greedy search over prices before more is tried. */
static const double tuning_behind = 3e-3;
/* The cheapest of many graphs by guesses is one that is guessed too low. */
static const double guessed_more = 0.25;

/* ---------------------------------------------------------------- where a tariff leads */

/* A policy that decides by the tariff over some of the rules. */
static graft_status open_policy(generalist *g, const graft_rule *rules, uint32_t count)
{
    return graft_policy_of_tariff(g->env, &g->tariff, rules, count, &g->policy);
}

/* Runs the engine's own loop on a model, in env->unit. */
static graft_status follow(graft_env *env, const generalist *g, const graft_policy *policy,
                           uint32_t model, graft_state *state, graft_report *report)
{
    const graft_optimize_options options = {.weight_bytes_limit = g->apply.weight_bytes_limit,
                                            .step_limit = g->step_limit};
    GRAFT_PASS(graft_state_make(env, env->unit, g->graphs[model], state));
    size_t bytes =
        graft_optimize_workspace_most_bytes(policy, &state->graph.limits, options.step_limit);
    *report = (graft_report){.decisions = GRAFT_NEW(env->unit, graft_decision, options.step_limit),
                             .decision_limit = options.step_limit};
    graft_status status = graft_optimize(&state->graph, policy, &options,
                                         graft_arena_alloc(env->unit, bytes), bytes, report);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the policy failed on %s: %s", g->models[model].name,
                          graft_status_name(status));
    }
    return status;
}

/* Notes what each rule brings on the models when a tariff decides. */
static graft_status count_uses(generalist *g, const graft_tariff *tariff)
{
    graft_env *env = g->env;
    graft_policy policy = g->policy;
    policy.tariff = tariff;
    for (uint32_t m = 0; m < g->count; m++) {
        GRAFT_SCOPED(env->unit);
        graft_state state;
        graft_report report;
        if (!learns_from(g, m)) {
            continue;
        }
        GRAFT_PASS(follow(env, g, &policy, m, &state, &report));
        const double whole = (double)report.estimated_before.cost;
        for (uint32_t i = 0; i < report.step_count; i++) {
            const graft_decision *decision = &report.decisions[i];
            g->uses[decision->rule].uses++;
            g->uses[decision->rule].gain +=
                (uint64_t)(-(double)decision->cost_change / whole * 4294967296.0);
        }
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- leaning */

/* What a graph costs in parts of the model as given. */
typedef struct {
    double priced;
    double part; /* The same; where a cost was not measured, by the rows as measured, and a quarter
                    more where no row is. */
    uint32_t estimated_more; /* Costs that were not measured, beyond those of the graph as given. */
} judgement;

static graft_status judge_state(graft_env *env, const generalist *g, uint32_t model,
                                graft_state *found, judgement *judged)
{
    graft_cost_total totals[2];
    graft_estimated estimated[2];
    graft_estimator estimator;
    graft_state first;
    const graft_limits *limits = &found->graph.limits;
    graft_state_open(env->unit, limits, &first);
    GRAFT_PASS(graft_state_set(env, &first, g->graphs[model]));
    GRAFT_PASS(graft_state_refresh(env, &first));
    GRAFT_PASS(graft_state_refresh(env, found));
    GRAFT_PASS(graft_cost_graph(env, g->prices, &first.graph, &first.order, &totals[0]));
    GRAFT_PASS(graft_cost_graph(env, g->prices, &found->graph, &found->order, &totals[1]));
    judged->estimated_more = totals[1].estimated_count > totals[0].estimated_count
                                 ? totals[1].estimated_count - totals[0].estimated_count
                                 : 0;
    judged->priced = totals[0].ns > 0.0 ? totals[1].ns / totals[0].ns : 1.0;
    judged->part = judged->priced;
    if (totals[0].estimated_count + totals[1].estimated_count == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_estimator_make(env, env->unit, &g->measured, limits, &estimator));
    GRAFT_PASS(graft_estimate(&estimator, &first.graph, &first.order, &estimated[0]));
    GRAFT_PASS(graft_estimate(&estimator, &found->graph, &found->order, &estimated[1]));
    double found_cost =
        (double)estimated[1].cost + guessed_more * (double)estimated[1].fallback_cost;
    judged->part = estimated[0].cost > 0 ? found_cost / (double)estimated[0].cost : 1.0;
    return GRAFT_OK;
}

/* Of the graph that a tariff leads to. */
static graft_status judge_model(graft_env *env, const generalist *g, const graft_tariff *tariff,
                                uint32_t model, judgement *judged)
{
    graft_policy policy = g->policy;
    graft_state found;
    graft_report report;
    GRAFT_SCOPED(env->unit);
    policy.tariff = tariff;
    GRAFT_PASS(follow(env, g, &policy, model, &found, &report));
    return judge_state(env, g, model, &found, judged);
}

/* The mean over the models. */
static graft_status judge_tariff(graft_env *env, void *context, const graft_tariff *tariff,
                                 double *loss)
{
    const generalist *g = context;
    uint64_t parts[GRAFT_TABLE_MODELS] = {0}; /* By model: a double's bits, 0 from other ranks. */
    uint32_t count = 0;
    double sum = 0.0;
    for (uint32_t m = graft_ranks_own(env); m < g->count; m += graft_ranks_count(env)) {
        judgement judged = {0};
        if (learns_from(g, m)) {
            GRAFT_PASS(judge_model(env, g, tariff, m, &judged));
        }
        memcpy(&parts[m], &judged.part, sizeof judged.part);
    }
    graft_ranks_add(env, parts, g->count);
    for (uint32_t m = 0; m < g->count; m++) {
        double part;
        memcpy(&part, &parts[m], sizeof part);
        sum += part;
        count += learns_from(g, m) ? 1 : 0;
    }
    *loss = sum / count;
    return GRAFT_OK;
}

/* Lets rows lean and notes what each rule brings then. A policy without a family does not lean:
 * hardly a form of the family has a row that could. */
static graft_status lean_rows(generalist *g)
{
    const uint32_t most = g->held_out == NULL ? 100 : 0;
    graft_env *env = g->env;
    graft_rule *used = GRAFT_NEW(env->life, graft_rule, g->rule_count);
    uint32_t used_count = 0;
    const graft_leaning_judge judge = {judge_tariff, g};
    for (uint32_t r = 0; r < g->rule_count; r++) {
        g->uses[r] = (rule_use){.rule = r, .always = graft_rule_is_always(&g->rules[r])};
    }
    uint16_t *values = GRAFT_NEW(env->life, uint16_t, g->measured.row_count);
    graft_leaning_open(env->life, &g->book, &g->measured, &g->leaning_rows);
    GRAFT_PASS(open_policy(g, g->rules, g->rule_count));
    for (uint32_t part = 0; part <= most; part += 50) {
        memset(g->leaning.parts, (int)part, sizeof g->leaning.parts);
        g->tariff = graft_leaning_apply(&g->leaning_rows, &g->leaning, values);
        GRAFT_PASS(count_uses(g, &g->tariff));
    }
    for (uint32_t r = 0; r < g->rule_count; r++) {
        if (g->uses[r].uses > 0) {
            used[used_count++] = g->rules[r];
        }
        g->uses[r].uses = 0;
        g->uses[r].gain = 0;
    }
    GRAFT_PASS(open_policy(g, used, used_count));
    if (g->held_out == NULL) {
        GRAFT_PASS(graft_leaning_search(env, &g->leaning_rows, &judge, leaning_least, &g->leaning));
    }
    g->tariff = graft_leaning_apply(&g->leaning_rows, &g->leaning, values);
    GRAFT_PASS(open_policy(g, g->rules, g->rule_count));
    return count_uses(g, &g->tariff);
}

/* ---------------------------------------------------------------- tuning */

/* By prices and by rows, whichever says more. A graph counts for nothing that rests on more
 * estimates than the one that untuned rows lead to: the cheapest of many would be estimated too
 * low. */
static graft_status judge_tuned(graft_env *env, void *context, const graft_tariff *tariff,
                                uint32_t model, double *part)
{
    const generalist *g = context;
    judgement judged;
    GRAFT_PASS(judge_model(env, g, tariff, model, &judged));
    *part = judged.estimated_more <= g->estimates_most[model] ? fmax(judged.part, judged.priced)
                                                              : HUGE_VAL;
    return GRAFT_OK;
}

/* Tunes rows to the graphs that the policy ends at; nor is one tuned without a family. */
static graft_status tune_rows(generalist *g)
{
    const graft_tuning_judge judge = {judge_tuned, g};
    double aims[GRAFT_TABLE_MODELS] = {0.0};
    const graft_tuning_options options = {.models = g->learnt,
                                          .blurs = TUNING_BLURS,
                                          .aims = aims,
                                          .blurs_most = TUNING_BLURS_MOST,
                                          .least = tuning_least,
                                          .seed = 1};
    uint32_t tuned = 0;
    for (uint32_t m = 0; m < g->count && g->held_out == NULL; m++) {
        judgement judged = {0};
        if (learns_from(g, m)) {
            GRAFT_PASS(judge_model(g->env, g, &g->tariff, m, &judged));
        }
        g->estimates_most[m] = judged.estimated_more;
        aims[m] = g->rows[m].greedy.part + tuning_behind;
    }
    if (g->held_out == NULL) {
        GRAFT_PASS(
            graft_tuning_search(g->env, &g->leaning_rows, &judge, &options, &g->tariff, &tuned));
        graft_log(g->env, 1, "%u of %u costs of nodes were tuned", tuned, g->tariff.row_count);
    }
    return GRAFT_OK;
}

bool graft_generalist_means(const char *model)
{
    return strcmp(model, "zoo") == 0 || strchr(model, ',') != NULL;
}

/* ---------------------------------------------------------------- costs */

static void take_rules(generalist *g, const graft_xfers *xfers)
{
    graft_arena *arena = g->env->life;
    g->rule_count = xfers->count;
    g->rules = GRAFT_COPY(arena, xfers->rules, xfers->count);
    g->names = GRAFT_NEW(arena, const char *, xfers->count);
    g->uses = GRAFT_NEW(arena, rule_use, xfers->count);
    for (uint32_t r = 0; r < xfers->count; r++) {
        g->names[r] = graft_arena_strdup(arena, xfers->names[r]);
    }
}

/* What a session knows that is needed when it is closed. */
static graft_status take_session(graft_env *env, void *context, graft_session *session,
                                 uint32_t model)
{
    generalist *g = context;
    const graft_environment *environment = &session->environment;
    (void)env;
    if (model == 0) {
        take_rules(g, &session->xfers);
        g->exact = graft_ruleset_exact(&session->rules, g->env->life, &g->exact_count);
        g->apply = environment->options.apply;
        g->device = graft_arena_strdup(g->env->life, graft_device_name(session->device));
    }
    const uint32_t steps = graft_session_steps_most(session);
    g->step_limit = steps > g->step_limit ? steps : g->step_limit;
    if (session->xfers.count != g->rule_count) {
        return GRAFT_FAIL(g->env, GRAFT_UNSUPPORTED,
                          "%s: %u of the rules can be used, of the models before it %u",
                          g->models[model].name, session->xfers.count, g->rule_count);
    }
    return graft_graph_renumber(g->env, g->env->life, &environment->first.graph, &g->graphs[model]);
}

/* What greedy search meets on a device that is here, so that twins can be leveled. */
static graft_status measure_costs(graft_env *env, void *context, graft_session *session,
                                  uint32_t model)
{
    graft_plan_found found;
    (void)context, (void)model;
    return graft_search_greedy(env, env->life, &session->environment, NULL, &found);
}

/* On a device that is not here what is estimated stays so, and is no gain: of many prices a search
 * finds those that are too low. */
static graft_status search_known(graft_env *env, graft_session *session, graft_plan_found *found)
{
    graft_environment *environment = &session->environment;
    const graft_price price = environment->options.price;
    graft_known_price known;
    graft_status status = graft_device_present(session->device)
                              ? GRAFT_OK
                              : graft_known_price_set(env, session, &known);
    if (status == GRAFT_OK) {
        status = graft_search_greedy(env, env->life, environment, NULL, found);
    }
    environment->options.price = price;
    return status == GRAFT_OK ? graft_environment_reprice(env, environment) : status;
}

/* Says what greedy search brings and, of a model that is learnt from, what its nodes cost. */
static graft_status learn_costs(graft_env *env, void *context, graft_session *session,
                                uint32_t model, graft_share *share)
{
    const generalist *g = context;
    graft_plan_found found;
    graft_book book;
    GRAFT_PASS(search_known(env, session, &found));
    const outcome greedy = {.ns = found.cost_ns,
                            .part = found.cost_ns / session->environment.first_ns,
                            .steps = found.step_count,
                            .priced = found.evaluations,
                            .seconds = found.seconds};
    graft_buffer piece = {.arena = env->life};
    graft_buffer_append(&piece, &greedy, sizeof greedy);
    graft_book_open(env->life, &book);
    if (learns_from(g, model)) {
        GRAFT_PASS(graft_table_teach(env, session, &book, model, &found));
    }
    graft_book_pack(&book, &piece);
    return graft_share_say(share, piece.data, piece.size);
}

static graft_status take_costs(graft_env *env, void *context, uint32_t model, const void *piece,
                               size_t bytes)
{
    generalist *g = context;
    (void)env;
    memcpy(&g->rows[model].greedy, piece, sizeof(outcome));
    graft_book_add(&g->book, (const uint8_t *)piece + sizeof(outcome), bytes - sizeof(outcome));
    return GRAFT_OK;
}

static uint32_t count_of_device(const graft_database *database)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *record = graft_database_at(database, i);
        count += graft_database_find(database, &record->signature) == &record->entry;
    }
    return count;
}

/* What the fallback learns from besides the models: the file that is named, or the device's own. */
static graft_status open_measured(generalist *g)
{
    graft_env *env = g->env;
    const char *path = g->options->measured != NULL ? g->options->measured
                                                    : graft_known_samples_path(env, g->device);
    if (path == NULL) {
        graft_log(env, 1,
                  "rules/samples has no file of '%s': the fallback learns from models alone",
                  g->device);
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_table_open_measured(env, &g->options->session, path, &g->database));
    graft_log(env, 1, "the fallback learns from models and from %u operators of '%s' in %s",
              count_of_device(g->database), g->device, path);
    return GRAFT_OK;
}

/* Costs get at most four sevenths of the flash, rules what remains: at least 48 of 112 KiB. */
static graft_status make_tariff(generalist *g)
{
    const graft_tariff_options options = {.models = g->learnt,
                                          .bytes_most = g->options->flash / 7 * 4,
                                          .rows = true,
                                          .trees = GRAFT_TARIFF_TREES,
                                          .database = g->database};
    return graft_tariff_make(g->env, g->env->life, &g->book, &options, &g->measured);
}

/* ---------------------------------------------------------------- rules that ship */

/* What brought most first; of those that were not used, simplifications first, then short ones:
 * they may find a place in other graphs. */
static int compare_uses(const void *a, const void *b)
{
    const rule_use *x = a;
    const rule_use *y = b;
    if (x->gain != y->gain) {
        return x->gain < y->gain ? 1 : -1;
    }
    if (x->always != y->always) {
        return x->always ? -1 : 1;
    }
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? -1 : 1;
    }
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

static int compare_rules(const void *a, const void *b)
{
    const rule_use *x = a;
    const rule_use *y = b;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* How many of the policy's rules, the first ones, a header has room for beside the costs. */
static uint32_t count_fitting(const generalist *g)
{
    const size_t costs = graft_tariff_bytes(&g->tariff);
    uint32_t low = 0;
    uint32_t high = g->policy.rule_count;
    while (low < high) {
        GRAFT_SCOPED(g->env->scratch);
        const uint32_t middle = high - (high - low) / 2;
        graft_policy some = g->policy;
        some.rule_count = (uint16_t)middle;
        some = graft_rules_shorten(g->env->scratch, &some);
        if (costs + graft_rules_bytes(&some) <= g->options->flash) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Keeps as many rules as there is room for, in the order of the set. */
static graft_status choose_rules(generalist *g)
{
    graft_arena *arena = g->env->life;
    graft_rule *rules = GRAFT_NEW(arena, graft_rule, g->rule_count);
    g->kept_names = GRAFT_NEW(arena, const char *, g->rule_count);
    for (uint32_t r = 0; r < g->rule_count; r++) {
        g->uses[r].bytes = g->policy.rule_offsets[r + 1] - g->policy.rule_offsets[r];
    }
    qsort(g->uses, g->rule_count, sizeof(g->uses[0]), compare_uses);
    for (uint32_t i = 0; i < g->rule_count; i++) {
        rules[i] = g->rules[g->uses[i].rule];
    }
    GRAFT_PASS(open_policy(g, rules, g->rule_count));
    const uint32_t kept = count_fitting(g);
    assert(kept > 0); /* Costs leave three sevenths to rules. */
    for (uint32_t i = kept; i < g->rule_count && g->uses[i].uses > 0; i++) {
        graft_log(g->env, 1, "rule %s was used %u times, but there is no room for it",
                  g->names[g->uses[i].rule], g->uses[i].uses);
    }
    qsort(g->uses, kept, sizeof(g->uses[0]), compare_rules);
    for (uint32_t i = 0; i < kept; i++) {
        rules[i] = g->rules[g->uses[i].rule];
        g->kept_names[i] = g->names[g->uses[i].rule];
    }
    return open_policy(g, rules, kept);
}

/* ---------------------------------------------------------------- results */

static graft_status try_model(graft_env *env, void *context, graft_session *session, uint32_t model,
                              graft_share *share)
{
    const generalist *g = context;
    model_row row = g->rows[model];
    graft_state found;
    graft_report report;
    uint64_t start_ns = graft_clock_ns();
    GRAFT_PASS(follow(env, g, &g->policy, model, &found, &report));
    row.policy.seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    row.policy.steps = report.step_count;
    row.guessed = report.estimated_before.cost > 0 ? (double)report.estimated_before.fallback_cost /
                                                         (double)report.estimated_before.cost
                                                   : 0.0;
    GRAFT_PASS(graft_known_price_count(env, session, &session->environment.first, &row.given.ns,
                                       &row.given.estimated));
    GRAFT_PASS(graft_state_refresh(env, &found));
    GRAFT_PASS(
        graft_known_price_count(env, session, &found, &row.policy.ns, &row.policy.estimated));
    return graft_share_say(share, &row, sizeof row);
}

static graft_status take_row(graft_env *env, void *context, uint32_t model, const void *piece,
                             size_t bytes)
{
    generalist *g = context;
    (void)env;
    memcpy(&g->rows[model], piece, bytes);
    return GRAFT_OK;
}

static void print_table(const generalist *g)
{
    (void)printf("cost by the database of '%s', in percent of the graph as given [estimates in "
                 "the price]\n\n%-16s %-7s %14s %14s %6s %9s %8s\n",
                 g->device, "model", "", "greedy", "policy", "steps", "time", "guessed");
    for (uint32_t m = 0; m < g->count; m++) {
        const model_row *row = &g->rows[m];
        (void)printf("%-16s %-7s %7.2f %%      %7.2f %% [%2u] %6u %6.1f ms %6.1f %%\n",
                     g->models[m].name, learns_from(g, m) ? "" : "unseen",
                     100.0 * row->greedy.ns / row->given.ns, 100.0 * row->policy.ns / row->given.ns,
                     row->policy.estimated, row->policy.steps, 1e3 * row->policy.seconds,
                     100.0 * row->guessed);
    }
}

static void put_outcome(graft_json *json, graft_arena *scratch, const char *name, const outcome *o)
{
    graft_json_number(json, graft_arena_printf(scratch, "%s_ns", name), o->ns);
    graft_json_integer(json, graft_arena_printf(scratch, "%s_steps", name), o->steps);
    graft_json_integer(json, graft_arena_printf(scratch, "%s_priced", name), (int64_t)o->priced);
    graft_json_number(json, graft_arena_printf(scratch, "%s_seconds", name), o->seconds);
}

static graft_status write_results(const generalist *g, const char *path)
{
    GRAFT_SCOPED(g->env->scratch);
    graft_arena *scratch = g->env->scratch;
    graft_buffer text = {.arena = scratch};
    for (uint32_t m = 0; m < g->count; m++) {
        graft_json json;
        graft_json_begin(&json, scratch);
        graft_json_add(&json, "model=%s family=%s unseen=%c", g->models[m].name,
                       g->models[m].family, !learns_from(g, m));
        put_outcome(&json, scratch, "given", &g->rows[m].given);
        put_outcome(&json, scratch, "greedy", &g->rows[m].greedy);
        put_outcome(&json, scratch, "policy", &g->rows[m].policy);
        graft_json_add(&json, "given_estimates=%u policy_estimates=%u guessed=%g",
                       g->rows[m].given.estimated, g->rows[m].policy.estimated, g->rows[m].guessed);
        graft_buffer_printf(&text, "%s", graft_json_line(&json));
    }
    return graft_file_write(g->env, path, text.data, text.size);
}

static graft_status write_files(generalist *g)
{
    graft_env *env = g->env;
    const char *out = g->out;
    graft_header_sizes sizes;
    const char *name = g->options->name;
    const graft_header_options header = {.name = name != NULL ? name : "generalist",
                                         .generator = "graft " GRAFT_VERSION,
                                         .rule_names = g->kept_names,
                                         .amalgamate = g->options->amalgamate};
    const char *path = graft_arena_printf(env->life, "%s/graft_policy.h", out);
    graft_policy_mark_exact(env->life, g->exact, g->exact_count, &g->policy);
    g->policy.metadata = graft_arena_printf(
        env->life, "{\"models\": \"%s\", \"held out\": \"%s\", \"device\": \"%s\", \"rules\": %u}",
        g->options->session.model, g->held_out != NULL ? g->held_out : "", g->device,
        g->policy.rule_count);
    GRAFT_PASS(graft_header_write(env, &g->policy, &header, path, &sizes));
    GRAFT_PASS(graft_policyfile_write(env, &g->policy, g->kept_names,
                                      graft_arena_printf(env->life, "%s/policy.graft", out)));
    GRAFT_PASS(write_results(g, graft_arena_printf(env->life, "%s/results.json", out)));
    (void)printf("%s: %u rules in %zu bytes, %u costs of nodes and their fallback in %zu\n", path,
                 g->policy.rule_count, sizes.rules, g->tariff.row_count, sizes.costs);
    print_table(g);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- all */

static bool is_each(const generalist *g)
{
    return g->options->held_out != NULL && strcmp(g->options->held_out, "each") == 0;
}

/* From now on nothing is learnt from a family (NULL: from none is nothing learnt). */
static graft_status hold_out(generalist *g, const char *family)
{
    g->held_out = family;
    g->learnt = 0;
    for (uint32_t m = 0; m < g->count; m++) {
        bool held = family != NULL && strcmp(g->models[m].family, family) == 0;
        g->learnt |= held ? 0 : UINT64_C(1) << m;
    }
    if (g->learnt == 0 || (family != NULL && g->learnt == UINT64_MAX >> (64 - g->count))) {
        return GRAFT_FAIL(g->env, GRAFT_BAD_INPUT, "--hold-out: %s is the family of %s", family,
                          g->learnt == 0 ? "every model" : "no model");
    }
    return GRAFT_OK;
}

static graft_status choose_models(generalist *g)
{
    GRAFT_PASS(graft_table_models(g->env, g->options->session.model, &g->models, &g->count));
    g->rows = GRAFT_NEW(g->env->life, model_row, g->count);
    g->graphs = GRAFT_NEW(g->env->life, graft_graph *, g->count);
    return hold_out(g, is_each(g) ? NULL : g->options->held_out);
}

/* Costs of several models are leveled; where they are measured on the way, that comes first. */
static graft_status level_costs(generalist *g)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    if (g->count > 1) {
        GRAFT_CHECK(graft_device_open(g->env, g->session.device, 1, &device));
        if (graft_device_present(device) && !graft_device_is_program(device)) {
            GRAFT_CHECK(
                graft_table_each(g->env, &g->session, g->models, g->count, measure_costs, g));
        }
        g->session.level = true;
    }
done:
    graft_device_close(device);
    return status;
}

/* Costs that graphs are judged by, as sessions had them at the end. */
static graft_status open_prices(generalist *g)
{
    uint32_t count = 0;
    GRAFT_PASS(graft_device_open(g->env, g->session.device, 1, &g->device_of_prices));
    GRAFT_PASS(graft_cost_open(g->env, g->device_of_prices, g->session.database, &g->prices));
    graft_cost_set_estimating(g->prices, true);
    if (g->session.level) {
        GRAFT_PASS(graft_cost_level(g->env, g->prices, &count));
    }
    return GRAFT_OK;
}

/* A policy of what was learnt from the models that are not held out. */
static graft_status make_policy(generalist *g)
{
    const graft_table_work trying = {"trying the policy", try_model, take_row, g};
    GRAFT_PASS(make_tariff(g));
    GRAFT_PASS(lean_rows(g));
    GRAFT_PASS(choose_rules(g));
    GRAFT_PASS(tune_rows(g));
    GRAFT_PASS(graft_table_share(g->env, &g->session, g->models, g->count, &trying));
    if (graft_ranks_own(g->env) == 0) {
        GRAFT_PASS(write_files(g));
    }
    return GRAFT_OK;
}

/* One policy more for each family, without it. */
static graft_status make_folds(generalist *g)
{
    for (uint32_t m = 0; m < g->count; m++) {
        const char *family = g->models[m].family;
        bool is_first = true;
        for (uint32_t i = 0; i < m; i++) {
            is_first = is_first && strcmp(g->models[i].family, family) != 0;
        }
        if (is_first) {
            GRAFT_PASS(hold_out(g, family));
            g->out = graft_arena_printf(g->env->life, "%s/%s", g->options->out, family);
            GRAFT_PASS(make_policy(g));
        }
    }
    return GRAFT_OK;
}

graft_status graft_generalist_make(graft_env *env, const graft_generalist_options *options)
{
    graft_status status = GRAFT_OK;
    generalist *g = GRAFT_NEW(env->life, generalist, 1);
    const graft_table_work learning = {"learning costs", learn_costs, take_costs, g};
    *g = (generalist){
        .options = options, .session = options->session, .env = env, .out = options->out};
    GRAFT_CHECK(choose_models(g));
    graft_book_open(env->life, &g->book);
    GRAFT_CHECK(level_costs(g));
    GRAFT_CHECK(graft_table_each(env, &g->session, g->models, g->count, take_session, g));
    GRAFT_CHECK(graft_table_share(env, &g->session, g->models, g->count, &learning));
    if (options->priced != NULL) {
        *options->priced = g->book.priced;
        for (uint32_t m = 0; m < g->count; m++) {
            *options->priced += g->rows[m].greedy.priced;
        }
    }
    GRAFT_CHECK(open_measured(g));
    GRAFT_CHECK(open_prices(g));
    GRAFT_CHECK(make_policy(g));
    if (is_each(g)) {
        GRAFT_CHECK(make_folds(g));
    }
done:
    graft_database_close(g->database);
    return graft_cost_finish(env, g->prices, g->device_of_prices, status);
}
