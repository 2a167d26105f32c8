/* rewriting.c - see rewriting.h. */
#include "tests/support/rewriting.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/application.h"
#include "tests/support/check.h"
#include "tests/support/proposal.h"
#include "tests/support/random_graph.h"
#include "tests/support/rebuild.h"

#include <string.h>

enum {
    CHAIN_MOST = 8,      /* Applications in a row on one graph. */
    MATCHES_MOST = 24,   /* Of one rule in one graph. */
    SHRINK_TRIES = 6,    /* Choices of capacities per match while shrinking. */
    PLANTED = 3,         /* Rules whose patterns are planted in a graph. */
    BARREN_GRAPHS = 2000 /* Graphs in a row without an application: the rules cannot match. */
};

/* Matches of one rule in one graph. */
typedef struct {
    graft_match items[MATCHES_MOST];
    uint32_t count;
} match_list;

typedef struct {
    graft_env *env;
    const rewriting_options *options;
    rewriting_report *report;
    match_list *matches;    /* By rule. */
    uint32_t *matching;     /* Rules with a match. */
    const graft_rule *rule; /* Of the application in hand. */
    uint64_t graph_number;
} runner;

/* ---------------------------------------------------------------- matching */

static bool same_match(const graft_rule *rule, const graft_match *a, const graft_match *b)
{
    return memcmp(a->nodes, b->nodes, rule->source.node_count * sizeof a->nodes[0]) == 0 &&
           memcmp(a->vars, b->vars, rule->var_count * sizeof a->vars[0]) == 0;
}

/* NULL, or the fault that a match is offered twice. */
static const char *find_matches(const application_state *state, const graft_rule *rule,
                                match_list *list)
{
    list->count = 0;
    for (graft_index i = 0; i < state->order.count; i++) {
        graft_matcher matcher;
        uint32_t first = list->count;
        graft_matcher_start(&matcher, rule, state->graph, &state->order, state->order.order[i]);
        while (list->count < MATCHES_MOST &&
               graft_matcher_next(&matcher, &list->items[list->count])) {
            for (uint32_t k = first; k < list->count; k++) {
                if (same_match(rule, &list->items[k], &list->items[list->count])) {
                    return "a match is offered twice";
                }
            }
            list->count++;
        }
    }
    return NULL;
}

/* --------------------------------------------------------------- shrinking */

/* The fault of some match of the rule in `graph`, or NULL. */
static const char *find_fault(graft_arena *arena, const graft_graph *graph, const graft_rule *rule,
                              uint64_t sample)
{
    application_state state = application_open(arena, graph, sample);
    match_list list;
    if (state.tensors == NULL) {
        return NULL;
    }
    const char *fault = find_matches(&state, rule, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        for (uint32_t attempt = 0; fault == NULL && attempt < SHRINK_TRIES; attempt++) {
            graft_rng rng = check_rng(attempt);
            fault = application_check(arena, &rng, &state, rule, &list.items[i]).fault;
        }
    }
    return fault;
}

/* A graph with one output or node fewer that still fails, or NULL. */
static graft_graph *shrink_once(graft_arena *arena, const graft_graph *graph,
                                const graft_rule *rule, uint64_t sample)
{
    for (graft_index i = 0; graph->output_count > 1 && i < graph->output_count; i++) {
        graft_graph *smaller = rebuild_without_output(arena, graph, i);
        if (find_fault(arena, smaller, rule, sample) != NULL) {
            return smaller;
        }
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_NONE) {
            graft_graph *smaller = rebuild_without_node(arena, graph, n);
            if (find_fault(arena, smaller, rule, sample) != NULL) {
                return smaller;
            }
        }
    }
    return NULL;
}

static void report_failure(runner *r, const application_state *state, const char *fault)
{
    graft_env *env = r->env;
    GRAFT_SCOPED(env->scratch);
    const graft_graph *graph = state->graph;
    const graft_graph *smaller = graph;
    while (smaller != NULL) {
        graph = smaller;
        smaller = shrink_once(env->scratch, graph, r->rule, state->sample);
    }
    const char *last = find_fault(env->scratch, graph, r->rule, state->sample);
    r->report->failure_nodes = graft_graph_node_count(graph);
    r->report->failure = graft_arena_printf(
        env->life, "seed %llu, graph %llu: %s\nrule: %s\n%s%s%s",
        (unsigned long long)r->options->seed, (unsigned long long)r->graph_number, fault,
        graft_rule_print_line(env->scratch, r->rule), last != NULL ? "the smallest graph: " : "",
        last != NULL ? last : "it does not fail again; the graph as it was:",
        graft_arena_printf(env->scratch, "\n%s", rebuild_print(env->scratch, graph)));
}

/* --------------------------------------------------------------- rewriting */

/* One of `count` rules, given by `list` or else all of them: the rarest applied of a few drawn. */
static uint32_t choose_rule(const runner *r, graft_rng *rng, const uint32_t *list, uint32_t count)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < PLANTED; i++) {
        uint32_t k = graft_rng_below(rng, count);
        uint32_t drawn = list != NULL ? list[k] : k;
        if (best == UINT32_MAX || r->report->applied[drawn] < r->report->applied[best]) {
            best = drawn;
        }
    }
    return best;
}

/* A random match of a random rule; NULL when there is none. Sets r->rule. */
static const graft_match *choose_match(runner *r, graft_rng *rng, const application_state *state,
                                       const char **fault)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->options->rule_count; i++) {
        r->rule = &r->options->rules[i];
        *fault = find_matches(state, r->rule, &r->matches[i]);
        if (*fault != NULL) {
            return NULL;
        }
        if (r->matches[i].count > 0) {
            r->matching[count++] = i;
        }
    }
    if (count == 0) {
        return NULL;
    }
    uint32_t chosen = choose_rule(r, rng, r->matching, count);
    r->rule = &r->options->rules[chosen];
    return &r->matches[chosen].items[graft_rng_below(rng, r->matches[chosen].count)];
}

static void count_result(runner *r, application_result result)
{
    switch (result) {
    case APPLICATION_DONE:
        r->report->application_count++;
        r->report->applied[r->rule - r->options->rules]++;
        break;
    case APPLICATION_REFUSED:
        r->report->refused_count++;
        break;
    case APPLICATION_FULL:
        r->report->full_count++;
        break;
    case APPLICATION_SKIPPED:
        r->report->skipped_count++;
        break;
    }
}

/* Whether the rule in hand has been applied so often that others should have their turn. */
static bool is_common(const runner *r)
{
    uint64_t applied = r->report->applied[r->rule - r->options->rules];
    return applied * r->options->rule_count > 4 * r->report->application_count;
}

static void rewrite_graph(runner *r, graft_rng *rng, const graft_graph *graph, uint64_t sample)
{
    graft_arena *arena = r->env->unit;
    application_state state = application_open(arena, graph, sample);
    bool patient = proposal_once_in(rng, 4);
    for (uint32_t step = 0; step < CHAIN_MOST && state.tensors != NULL; step++) {
        application_outcome outcome = {.fault = NULL};
        const graft_match *match = choose_match(r, rng, &state, &outcome.fault);
        if (match != NULL) {
            outcome = application_check(arena, rng, &state, r->rule, match);
        }
        if (outcome.fault != NULL) {
            report_failure(r, &state, outcome.fault);
        }
        if (outcome.fault != NULL || match == NULL) {
            return;
        }
        count_result(r, outcome.result);
        state = outcome.after;
        if (is_common(r) && !patient) {
            return;
        }
    }
}

void rewriting_run(graft_env *env, const rewriting_options *options, rewriting_report *report)
{
    runner r = {.env = env, .options = options, .report = report};
    *report = (rewriting_report){.graph_count = 0};
    report->applied = GRAFT_NEW(env->life, uint64_t, options->rule_count);
    r.matches = GRAFT_NEW(env->life, match_list, options->rule_count);
    r.matching = GRAFT_NEW(env->life, uint32_t, options->rule_count);
    uint64_t last_count = 0;
    uint64_t last_graph = 0;
    for (; report->failure == NULL && report->application_count < options->application_count;
         r.graph_number++) {
        graft_rng rng;
        graft_rng_derive(&rng, options->seed, r.graph_number);
        const graft_rule *planted[PLANTED];
        for (uint32_t i = 0; i < PLANTED; i++) {
            planted[i] = &options->rules[choose_rule(&r, &rng, NULL, options->rule_count)];
        }
        random_graph_options draw = {planted, PLANTED, 3 + graft_rng_below(&rng, 14),
                                     graft_rng_next(&rng)};
        graft_arena_reset(env->unit);
        const graft_graph *graph = random_graph_draw(env->unit, &rng, &draw);
        for (graft_index n = 0; n < graph->node_end; n++) {
            uint32_t op = graph->nodes[n].op;
            report->operators[op < GRAFT_OP_COUNT ? op : 0] += op != GRAFT_OP_NONE;
        }
        report->graph_count++;
        rewrite_graph(&r, &rng, graph, draw.sample);
        if (report->application_count > last_count) {
            last_count = report->application_count;
            last_graph = r.graph_number;
        } else if (r.graph_number - last_graph > BARREN_GRAPHS) {
            report->failure = "no rule matches anything that is drawn";
        }
    }
}

void rewriting_check(graft_env *env, const rewriting_options *options, rewriting_report *report)
{
    rewriting_run(env, options, report);
    print_message("# %llu graphs, %llu applications compared, %llu refused, %llu without room, "
                  "%llu skipped\n",
                  (unsigned long long)report->graph_count,
                  (unsigned long long)report->application_count,
                  (unsigned long long)report->refused_count, (unsigned long long)report->full_count,
                  (unsigned long long)report->skipped_count);
    if (report->failure != NULL) {
        fail_msg("%s", report->failure);
    }
}
