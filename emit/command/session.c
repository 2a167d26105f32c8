/* session.c - see session.h. */
#include "emit/command/session.h"

#include "cost/device/device_program.h"
#include "emit/header/graphtable.h"
#include "emit/policy/simplify.h"
#include "graph/base/half.h"
#include "graph/base/log.h"
#include "graph/byte_groups.h"
#include "graph/model.h"
#include "graph/rule/rounding.h"
#include "models/zoo.h"
#include "train/search/matches.h"
#include "train/search/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    graft_env *env;
    const graft_model *model;
    const graft_rewrite_judge *sizes;
    bool *grouped; /* By node of the graph that is looked at. */
    graft_index capacity;
} whole_groups;

static void look_at(void *context, const graft_graph *graph, const graft_order *order)
{
    whole_groups *g = context;
    GRAFT_SCOPED(g->env->scratch);
    const bool *found = graft_byte_groups_find(g->env->scratch, g->model, graph, order);
    if (g->capacity < graph->limits.nodes) {
        g->capacity = graph->limits.nodes;
        g->grouped = GRAFT_NEW(g->env->life, bool, g->capacity);
    }
    memset(g->grouped, 0, g->capacity * sizeof(g->grouped[0]));
    if (found != NULL) {
        memcpy(g->grouped, found, graph->node_end * sizeof(g->grouped[0]));
    }
    if (g->sizes != NULL) {
        g->sizes->look_at(g->sizes->context, graph, order);
    }
}

static bool holds(void *context, const graft_rule *rule, const graft_match *match)
{
    const whole_groups *g = context;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        if (g->grouped[match->nodes[n]]) {
            return false;
        }
    }
    return g->sizes == NULL || g->sizes->holds(g->sizes->context, rule, match);
}

static bool has_changes(graft_env *env, const graft_model *model)
{
    GRAFT_SCOPED(env->scratch);
    const size_t bytes = graft_order_bytes(&model->graph.limits);
    graft_order order;
    const bool placed =
        graft_order_build(&order, &model->graph, graft_arena_alloc(env->scratch, bytes), bytes) ==
        GRAFT_OK;
    return placed && graft_byte_groups_find(env->scratch, model, &model->graph, &order);
}

/* Who refuses matches that have a node in a group of byte_groups.h, in model->graph and its copies,
 * and asks `sizes`, which may be NULL, about others; lies in env->life. `sizes` itself where the
 * model changes nothing to or from 8 bits. */
static const graft_rewrite_judge *make_judge(graft_env *env, const graft_model *model,
                                             const graft_rewrite_judge *sizes)
{
    if (!has_changes(env, model)) {
        return sizes;
    }
    whole_groups *g = GRAFT_NEW(env->life, whole_groups, 1);
    graft_rewrite_judge *judge = GRAFT_NEW(env->life, graft_rewrite_judge, 1);
    *g = (whole_groups){.env = env, .model = model, .sizes = sizes};
    *judge = (graft_rewrite_judge){look_at, holds, g};
    return judge;
}

/* Of the cost of a model: what a rewrite of a file has to bring. Runtimes differ by more than this
 * from the costs that are measured here. */
static const double least_gain = 0.002;

/* Their kernels are others too: what one takes there differs from what is measured here by about
 * this part, each by itself. */
static const double kernels_differ = 0.1;
static const double calls_differ = 0.5; /* And what is around it, by this part of a call. */

/* ---------------------------------------------------------------- prices */

uint16_t graft_session_call_ns(const graft_session *session)
{
    const bool calls = session->runtime != NULL && !graft_device_is_program(session->device);
    return calls ? GRAFT_CALL_NS : 0;
}

graft_status graft_session_fuse(graft_env *env, const graft_session *session, graft_arena *arena,
                                const graft_model *model, const graft_graph **graph,
                                const graft_order **order, uint32_t *calls)
{
    *calls = 0;
    if (graft_session_call_ns(session) > 0) {
        return graft_runtime_calls(env, arena, session->runtime, model, graph, order, calls);
    }
    return session->runtime == NULL
               ? GRAFT_OK
               : graft_runtime_fuse(env, arena, &session->runtime->priced, graph, order);
}

graft_status graft_session_price(graft_env *env, void *context, const graft_graph *graph,
                                 const graft_order *order, double *ns)
{
    graft_session *session = context;
    GRAFT_SCOPED(env->scratch);
    uint32_t calls = 0;
    GRAFT_PASS(
        graft_session_fuse(env, session, env->scratch, session->model, &graph, &order, &calls));
    GRAFT_PASS(graft_cost_price(env, session->cost, graph, order, ns));
    *ns += GRAFT_CALL_NS * calls;
    return GRAFT_OK;
}

graft_status graft_session_plan(graft_env *env, graft_session *session, graft_arena *arena,
                                const graft_graph *graph, const graft_order *order,
                                graft_schedule *schedule)
{
    if (session->runtime != NULL) {
        GRAFT_PASS(graft_runtime_fuse(env, arena, &session->runtime->priced, &graph, &order));
    }
    return graft_cost_plan(env, session->cost, arena, graph, order, schedule);
}

graft_status graft_session_total(graft_env *env, graft_session *session, const graft_model *model,
                                 const graft_graph *graph, const graft_order *order,
                                 graft_cost_total *total)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t calls = 0;
    GRAFT_PASS(graft_session_fuse(env, session, env->scratch, model, &graph, &order, &calls));
    GRAFT_PASS(graft_cost_graph(env, session->cost, graph, order, total));
    total->ns += GRAFT_CALL_NS * calls;
    return GRAFT_OK;
}

/* What the price of a graph rests on, sorted, in `arena`. */
static graft_status list_signatures(graft_env *env, graft_session *session, graft_arena *arena,
                                    const graft_state *state, graft_signature **signatures,
                                    uint32_t *count)
{
    graft_schedule schedule;
    GRAFT_PASS(graft_session_plan(env, session, arena, &state->graph, &state->order, &schedule));
    *signatures = GRAFT_NEW(arena, graft_signature, schedule.step_count);
    *count = 0;
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        if (schedule.steps[i].signature.op != GRAFT_OP_OPAQUE) {
            (*signatures)[(*count)++] = schedule.steps[i].signature;
        }
    }
    qsort(*signatures, *count, sizeof((*signatures)[0]), graft_signature_compare);
    return GRAFT_OK;
}

graft_status graft_session_noise(graft_env *env, void *context, const graft_state *before,
                                 const graft_state *after, double *ns)
{
    graft_session *session = context;
    GRAFT_SCOPED(env->scratch);
    const graft_state *states[2] = {before, after};
    graft_signature *lists[2] = {NULL, NULL};
    uint32_t counts[2] = {0, 0};
    uint32_t at[2] = {0, 0};
    double squares = 0.0;
    for (uint32_t s = 0; s < 2; s++) {
        GRAFT_PASS(list_signatures(env, session, env->scratch, states[s], &lists[s], &counts[s]));
    }
    while (at[0] < counts[0] || at[1] < counts[1]) {
        int order = at[0] == counts[0] ? 1
                    : at[1] == counts[1]
                        ? -1
                        : graft_signature_compare(&lists[0][at[0]], &lists[1][at[1]]);
        graft_cost_entry entry;
        if (order != 0) {
            uint32_t s = order > 0;
            GRAFT_PASS(graft_cost_signature(env, session->cost, &lists[s][at[s]], &entry));
            const double elsewhere =
                graft_session_call_ns(session) > 0
                    ? kernels_differ * entry.median_ns + calls_differ * GRAFT_CALL_NS
                    : 0.0;
            squares += entry.spread_ns * entry.spread_ns + elsewhere * elsewhere;
        }
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
    *ns = sqrt(squares);
    return GRAFT_OK;
}

/* Fewer nodes in the file, then fewer that are not those of the file it came from. */
static graft_status find_form(graft_env *env, void *context, const graft_graph *graph,
                              uint64_t *form)
{
    const graft_session *session = context;
    graft_model_form found;
    graft_status status = graft_model_form_of(env, session->model, graph, &found);
    *form = status == GRAFT_OK ? (uint64_t)found.nodes << 32 | found.made : 0;
    return status;
}

/* What a graph that is refused costs more, in first graphs. */
static const double refusal = 100.0;

static graft_status price_known(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    const graft_known_price *price = context;
    graft_cost_total total;
    GRAFT_PASS(graft_cost_graph(env, price->session->cost, graph, order, &total));
    *ns = total.ns;
    if (total.estimated_count > price->first_estimates) {
        *ns += refusal * price->session->environment.first_ns;
    }
    return GRAFT_OK;
}

graft_status graft_known_price_count(graft_env *env, graft_session *session,
                                     const graft_state *state, double *ns, uint32_t *estimates)
{
    graft_cost_total total;
    GRAFT_PASS(graft_cost_graph(env, session->cost, &state->graph, &state->order, &total));
    *ns = total.ns;
    *estimates = total.estimated_count;
    return GRAFT_OK;
}

graft_status graft_known_price_set(graft_env *env, graft_session *session, graft_known_price *price)
{
    graft_environment *environment = &session->environment;
    double ns = 0.0;
    price->session = session;
    GRAFT_PASS(
        graft_known_price_count(env, session, &environment->first, &ns, &price->first_estimates));
    environment->options.price = (graft_price){.cost_ns = price_known, .context = price};
    return graft_environment_reprice(env, environment);
}

/* ----------------------------------------------------------------- rules */

void graft_session_open_judge(graft_env *env, graft_session *session)
{
    if (session->model->is_open) {
        graft_rewrite_judge *judge = GRAFT_NEW(env->life, graft_rewrite_judge, 1);
        session->open = graft_open_sizes_open(env, session->model);
        *judge =
            (graft_rewrite_judge){graft_open_sizes_look_at, graft_open_sizes_hold, session->open};
        session->sizes = judge;
    }
    session->judge = make_judge(env, session->model, session->sizes);
}

/* Adds the device's own that are not there yet; *first is the place of the first. */
static graft_status add_rules(graft_env *env, graft_session *session, uint32_t *first)
{
    graft_ruleset *set = &session->rules;
    graft_ruleset more = {.count = 0};
    const char *path = graft_device_rules(env, session->device);
    const graft_ruleset given = *set;
    *first = set->count;
    if (path != NULL) {
        GRAFT_PASS(graft_rulefile_read(env, env->life, path, &more));
    }
    graft_rule_entry *all = GRAFT_NEW(env->life, graft_rule_entry, set->count + more.count);
    memcpy(all, set->entries, set->count * sizeof(all[0]));
    for (uint32_t i = 0; i < more.count; i++) {
        if (graft_ruleset_find(&given, more.entries[i].id) == NULL) {
            all[set->count++] = more.entries[i];
        }
    }
    set->entries = all;
    return GRAFT_OK;
}

/* Whether a rule gives the same bits in the types that the model has. */
static bool is_exact(const graft_model *model, const graft_rule_entry *entry)
{
    return graft_numeric_is_exact(entry->numeric) &&
           (!model->has_halves || graft_rule_rounds_alike(&entry->rule));
}

/* Whether what a rule makes can be written into the model's file. */
static bool has_form(const graft_model *model, const graft_rule *rule)
{
    bool has = true;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        has = has && graft_model_has_form(model, rule->target.nodes[n].op);
    }
    return has;
}

/* Whether a runtime runs the same kernel on both sides: a bias of zeros is none. */
static bool is_idle(const graft_rule *rule)
{
    const graft_pattern *to = &rule->target;
    return rule->source.node_count == 1 && to->node_count == 2 &&
           graft_pattern_has(to, GRAFT_OP_fill) &&
           (graft_pattern_has(to, GRAFT_OP_matmul_bias) ||
            graft_pattern_has(to, GRAFT_OP_conv_bias));
}

/* A model of 16 bits has its numbers rounded to its type; with those of a rule rounded likewise the
 * rule matches them, and is not the one that was proved. So a user has to ask for it. */
static void round_rules(graft_env *env, graft_session *session)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < session->rules.count; i++) {
        graft_rule_entry *entry = &session->rules.entries[i];
        if (graft_rule_round(&entry->rule, session->model->graph.dtype)) {
            entry->id = graft_rule_id(&entry->rule);
            count++;
        }
    }
    if (count > 0) {
        graft_log(env, 1,
                  "%u rules name numbers that the model's type lacks and are taken with these "
                  "rounded, which is not what was proved",
                  count);
    }
}

static void choose_rules(graft_env *env, const graft_session_options *options, uint32_t own_first,
                         graft_session *session)
{
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, session->rules.count);
    const char **names = GRAFT_NEW(env->life, const char *, session->rules.count);
    uint32_t count = 0;
    uint32_t formless = 0;
    session->unproved = 0;
    session->own = 0;
    for (uint32_t i = 0; i < session->rules.count; i++) {
        const graft_rule_entry *entry = &session->rules.entries[i];
        if (entry->proof != GRAFT_PROOF_UNBOUNDED && !options->within_bounds) {
            session->unproved++;
            continue;
        }
        if (options->exact && !is_exact(session->model, entry)) {
            continue;
        }
        if (session->model->is_open && entry->proof != GRAFT_PROOF_UNBOUNDED) {
            continue; /* What was proved at instances says nothing of sizes that are not known. */
        }
        if (options->file && !has_form(session->model, &entry->rule)) {
            formless++;
            continue;
        }
        if (options->file && !graft_device_is_program(session->device) && is_idle(&entry->rule)) {
            continue;
        }
        if (graft_survey_suits(session->device, &entry->rule)) {
            rules[count] = entry->rule;
            names[count++] = entry->name;
            session->own += i >= own_first;
        }
    }
    session->refused = session->rules.count - session->unproved - formless - count;
    if (session->unproved > 0) {
        graft_log(env, 1,
                  "%u rules hold within bounds only and are left out; --accept-within-bounds uses "
                  "them",
                  session->unproved);
    }
    if (formless > 0) {
        graft_log(env, 1, "%u rules make what the model's opset cannot say and are left out",
                  formless);
    }
    graft_xfers_index(env->life, rules, names, count, &session->xfers);
    session->xfers.judge = options->file && !graft_device_times_models(session->device)
                               ? session->judge
                               : session->sizes;
}

static graft_status survey_rules(graft_env *env, graft_session *session, const graft_graph *graph,
                                 const graft_environment_options *options)
{
    const graft_survey survey = {.episodes = (uint32_t)session->settings.survey_episodes,
                                 .preference = session->settings.survey_preference,
                                 .seed = (uint64_t)session->settings.environment_seed};
    const graft_xfers all = session->xfers;
    graft_survey_result found = {.met = GRAFT_NEW(env->life, bool, all.count)};
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, all.count);
    const char **names = GRAFT_NEW(env->life, const char *, all.count);
    uint32_t count = 0;
    uint32_t own = 0;
    GRAFT_PASS(graft_survey_run(env, graph, &all, options, &survey, &found));
    for (uint32_t x = 0; x < all.count; x++) {
        if (found.met[x]) {
            own += x >= all.count - session->own;
            rules[count] = all.rules[x];
            names[count++] = all.names[x];
        }
    }
    if (count == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s: none of the %u rules finds a place in this model",
                          session->model->file, all.count);
    }
    session->unmet = all.count - count;
    session->own = own;
    graft_xfers_index(env->life, rules, names, count, &session->xfers);
    session->xfers.judge = all.judge;
    return GRAFT_OK;
}

/* Signatures that rewriting meets are measured when they come up: shorter than the model's own. */
static const graft_measure_options on_demand = {.rounds = 9, .batch_ns = 300000, .quiet = true};

/* Measures the operators of the model in one go. */
static graft_status measure_model(graft_env *env, graft_session *session, const graft_graph *graph)
{
    GRAFT_SCOPED(env->unit);
    graft_state state;
    graft_signature *signatures = NULL;
    uint32_t count = 0;
    graft_measure_options options = graft_measure_options_default();
    options.quiet = env->verbosity == 0;
    GRAFT_PASS(graft_state_make(env, env->unit, graph, &state));
    graft_cost_set_measuring(session->cost, &options);
    GRAFT_PASS(list_signatures(env, session, env->unit, &state, &signatures, &count));
    if (graft_device_present(session->device)) {
        GRAFT_PASS(graft_cost_measure(env, session->cost, signatures, count, &options));
        GRAFT_PASS(graft_cost_save(env, session->cost));
    }
    graft_cost_set_measuring(session->cost, &on_demand);
    return GRAFT_OK;
}

/* Prices the model, then leaves out what does nothing. */
static graft_status simplify_graph(graft_env *env, graft_session *session, graft_graph **graph)
{
    GRAFT_SCOPED(env->unit);
    graft_state state;
    GRAFT_PASS(graft_state_make(env, env->unit, *graph, &state));
    GRAFT_PASS(graft_session_total(env, session, session->model, &state.graph, &state.order,
                                   &session->given));
    GRAFT_PASS(graft_simplify_rewrite(env, session, *graph, graph, &session->simplified));
    if (session->simplified > 0) {
        graft_log(env, 1, "simplified by %u rewrites", session->simplified);
    }
    return GRAFT_OK;
}

uint32_t graft_session_steps_most(const graft_session *session)
{
    const uint32_t set = (uint32_t)session->settings.environment_step_limit;
    const uint32_t operators = session->model->graph.node_end;
    return operators > set ? operators : set;
}

static graft_status open_environment(graft_env *env, const graft_session_options *choice,
                                     graft_session *session)
{
    graft_graph *graph = NULL;
    const graft_environment_options options = {
        .price = {graft_session_price, session, choice->file ? graft_session_noise : NULL,
                  choice->file ? find_form : NULL},
        .deadline_ns = choice->deadline_ns,
        .least_gain = choice->file ? least_gain : 0.0,
        .location_limit = (uint32_t)session->settings.environment_location_limit,
        .step_limit = choice->file ? graft_session_steps_most(session)
                                   : (uint32_t)session->settings.environment_step_limit,
        .cost_limit = session->settings.environment_cost_limit,
        .apply.weight_bytes_limit = (uint64_t)session->settings.environment_weight_megabytes << 20,
    };
    GRAFT_PASS(graft_graph_renumber(env, env->life, &session->model->graph, &graph));
    if (choice->survey) {
        GRAFT_PASS(survey_rules(env, session, graph, &options));
    }
    graft_log(env, 1, "%u rules; not for this device or numeric class: %u, no place found: %u",
              session->rules.count, session->refused, session->unmet);
    if (!choice->estimating) {
        GRAFT_PASS(measure_model(env, session, graph));
    }
    if (choice->file) {
        GRAFT_PASS(simplify_graph(env, session, &graph));
    }
    return graft_environment_open(env, env->life, graph, &session->xfers, &options,
                                  &session->environment);
}

graft_status graft_session_open(graft_env *env, const graft_session_options *options,
                                graft_session *session)
{
    uint32_t fuse_count = 0;
    uint32_t own_first = 0;
    *session = (graft_session){.device = NULL};
    GRAFT_PASS(graft_agent_settings_read(env, options->settings, &session->settings));
    const graft_model_options reading = {.sizes = options->sizes,
                                         .size_count = options->size_count,
                                         .keep_open = options->file,
                                         .frozen = options->frozen,
                                         .frozen_count = options->frozen_count,
                                         .settable = options->file && !options->constants,
                                         .unroll = options->unroll,
                                         .bodies = options->bodies};
    session->settable = reading.settable;
    session->unroll = options->unroll;
    GRAFT_PASS(graft_model_open(env, env->life, options->model, &reading, &session->model));
    if (options->fixed && session->model->is_open) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "%s: leaves the size '%s' open, and a policy does not ask whether a "
                          "rule holds at all sizes: fix it with --freeze, or search",
                          session->model->file, session->model->sizes[0].name);
    }
    GRAFT_PASS_IN(env, graft_rulefile_read(env, env->life, options->rules, &session->rules),
                  "while reading the rule set; `make rules` makes it anew");
    GRAFT_PASS(graft_device_open(env, options->device, options->thread_count, &session->device));
    GRAFT_PASS(add_rules(env, session, &own_first));
    GRAFT_PASS(graft_cost_open(env, session->device, options->database, &session->cost));
    graft_cost_set_model(session->cost, session->model);
    graft_cost_set_deadline(session->cost, options->deadline_ns);
    graft_cost_set_estimating(session->cost, options->estimating);
    if (options->file && !options->as_it_is) {
        graft_cost_set_copies(session->cost); /* Runtimes know no views of parts. */
        session->runtime = GRAFT_NEW(env->life, graft_runtime, 1);
        const char *const *fuses = graft_device_fuses(session->device, &fuse_count);
        GRAFT_PASS_IN(env, graft_runtime_open(env, env->life, fuses, fuse_count, session->runtime),
                      "while reading what the device '%s' fuses",
                      graft_device_name(session->device));
    }
    if (options->level) {
        uint32_t count = 0;
        GRAFT_PASS(graft_cost_level(env, session->cost, &count));
        graft_log(env, 2, "%u costs have the time of their twins", count);
    }
    graft_session_open_judge(env, session);
    if (options->rounded && graft_half_is(session->model->graph.dtype)) {
        round_rules(env, session);
    }
    choose_rules(env, options, own_first, session);
    return open_environment(env, options, session);
}

graft_status graft_session_finish(graft_env *env, graft_session *session, graft_status status)
{
    if (session->open != NULL) {
        graft_open_sizes_close(session->open);
    }
    return graft_cost_finish(env, session->cost, session->device, status);
}
