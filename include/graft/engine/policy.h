/* policy.h - deciding: locations in canonical order, and the choice among them.
 *
 * Rules stay packed; one at a time is unpacked into the workspace. Of locations their number per rule
 * is kept, and the chosen one is found again; with enough memory also where nothing fits (keep.h). */
#ifndef GRAFT_ENGINE_POLICY_H
#define GRAFT_ENGINE_POLICY_H

typedef struct graft_policy_memory {
    graft_order order;
    graft_index *anchors; /* Nodes that run at inference, by operator, then in order. */
    uint16_t *counts;     /* (rules) */
    uint64_t *seen;       /* (steps + 1): hashes of the graphs so far */
    uint64_t *hashes;     /* (values): scratch of graft_graph_hash */
    graft_estimator estimator;
    graft_kept kept;
    graft_network_memory network;
} graft_policy_memory;

/* Enumerates the locations of the unpacked rule. */
typedef struct graft_finder {
    graft_index position; /* One past the anchor's place in `anchors`. */
    graft_index end;
    bool at_anchor;
    bool matched; /* At this anchor, whatever became of it. */
    graft_apply_options apply;
    graft_matcher matcher;
} graft_finder;

/* The part of a decision that is behind us: rules before `rule` have been looked at, and of that one
 * `count` locations. */
typedef struct graft_scan {
    graft_estimated now;
    graft_scores scores; /* The best so far. */
    int64_t least;
    uint32_t rule;
    uint16_t count;
    bool in_rule;
    bool open; /* Some rule has a location. */
} graft_scan;

typedef enum graft_phase {
    GRAFT_PHASE_BEGIN,
    GRAFT_PHASE_FOLLOW,
    GRAFT_PHASE_DECIDE,
    GRAFT_PHASE_END
} graft_phase;

/* A call in progress. Lies in the workspace, so that the next call can go on and the stack is small. */
typedef struct graft_optimize_run {
    graft_graph *graph;
    const graft_policy *policy;
    graft_report *report;
    uint32_t seen_count;
    uint32_t budget;   /* Candidates that this call may still look at. */
    uint32_t unpacked; /* The number of `rule`, if this graph may have it; rule_count: none. */
    graft_phase phase;
    bool first_known; /* What rewriting began with costs: as given, of the graph before plans... */
    uint64_t first_cost; /* ...and simplification, or of the one that is decided about. */
    graft_policy_memory memory;
    graft_scan scan;
    graft_decision decision; /* That is being made. */
    graft_optimize_options options;
    graft_application application; /* At the location that is looked at, which is the matcher's. */
    graft_finder finder;
    graft_report own_report;                /* Where the caller wants none. */
    uint32_t operators[GRAFT_OP_WORDS];     /* Those of the graph, const nodes' too: bit op. */
    graft_index anchor_end[GRAFT_OP_COUNT]; /* By operator: one past the last of memory.anchors. */
    graft_rule rule;                        /* The one that is unpacked... */
    graft_made made;                        /* ...and what it would make at the location. */
} graft_optimize_run;

graft_optimize_options graft_optimize_options_default(void)
{
    graft_optimize_options options;
    options.first_cost = 0;
    options.weight_bytes_limit = 0;
    options.step_limit = 256;
    options.call_ns = 0;
    options.use_plans = true;
    options.simplify = true;
    options.guard = true;
    options.exact = false;
    options.skipped_rules = NULL;
    options.node_tags = NULL;
    options.observe = NULL;
    options.observe_context = NULL;
    return options;
}

size_t graft_policy_rows_bytes(const graft_policy *policy)
{
    return ((size_t)policy->rule_count + 1) * policy->width;
}

/* ------------------------------------------------------------------- rules */

static bool graft_bit_is_set(const uint8_t *bits, uint32_t i)
{
    return ((uint32_t)bits[i / 8] >> i % 8 & 1u) != 0;
}

graft_status graft_policy_rule(const graft_policy *policy, uint32_t r, graft_rule *rule)
{
    size_t size = 0;
    const uint32_t *offsets = policy->rule_offsets;
    if (r >= policy->rule_count || offsets[r] > offsets[r + 1] ||
        offsets[r + 1] > offsets[policy->rule_count]) {
        return GRAFT_BAD_INPUT;
    }
    return graft_read_valid_rule(rule, policy->rule_pairs, policy->rules + offsets[r],
                                 offsets[r + 1] - offsets[r], &size);
}

graft_status graft_policy_skip_unrunnable(const graft_policy *policy, const uint8_t *operators,
                                          uint8_t *skipped)
{
    graft_rule rule;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        graft_status status = graft_policy_rule(policy, r, &rule);
        if (status != GRAFT_OK) {
            return status;
        }
        for (uint32_t n = 0; n < rule.target.node_count; n++) {
            if (!graft_bit_is_set(operators, rule.target.nodes[n].op)) {
                skipped[r / 8] = (uint8_t)(skipped[r / 8] | 1u << r % 8);
            }
        }
    }
    return GRAFT_OK;
}

static bool graft_rule_is_allowed(const graft_optimize_run *run, uint32_t r)
{
    const graft_optimize_options *options = &run->options;
    return (options->skipped_rules == NULL || !graft_bit_is_set(options->skipped_rules, r)) &&
           (!options->exact || (run->policy->rule_flags[r] & GRAFT_RULE_EXACT) != 0);
}

/* ---------------------------------------------------------------- workspace */

#ifndef GRAFT_WITHOUT_NETWORK
/* The widest input of a layer but the first and those of `pooled` and `latent`. */
static size_t graft_widest_input(const graft_policy *policy)
{
    size_t round = (size_t)3 * policy->hidden;
    size_t place = (size_t)2 * policy->hidden + GRAFT_FACT_SEEN;
    return round > place ? round : place;
}

static void graft_carve_network(graft_carver *carver, const graft_policy *policy,
                                const graft_limits *limits, graft_network_memory *memory)
{
    size_t hidden = policy->hidden;
    memory->rows = graft_carve_ids(carver, limits->nodes);
    memory->h = (int16_t *)graft_carve(carver, limits->nodes, hidden * sizeof(int16_t));
    memory->means = (int16_t *)graft_carve(carver, limits->nodes, 2 * hidden * sizeof(int16_t));
    memory->far_sums = (int32_t *)graft_carve(carver, limits->nodes, hidden * sizeof(int32_t));
    memory->message_sum = (uint32_t *)graft_carve(carver, hidden, sizeof(uint32_t));
    memory->vector = (int16_t *)graft_carve(carver, graft_widest_input(policy), sizeof(int16_t));
    memory->pooled = (int16_t *)graft_carve(carver, policy->global.inputs, sizeof(int16_t));
    memory->latent = (int16_t *)graft_carve(carver, policy->latent, sizeof(int16_t));
    memory->scene_sums = (int32_t *)graft_carve(carver, policy->width, sizeof(int32_t));
    memory->place = (int16_t *)graft_carve(carver, policy->width, sizeof(int16_t));
    memory->second = (int16_t *)graft_carve(carver, policy->width, sizeof(int16_t));
    memory->row_count = 0;
}
#endif

/* The run comes first (graft_run_in). */
static void graft_carve_policy(graft_carver *carver, const graft_policy *policy,
                               const graft_limits *limits, uint32_t step_limit,
                               graft_policy_memory *memory)
{
    (void)graft_carve(carver, 1, sizeof(graft_optimize_run));
    graft_carve_order(carver, limits, &memory->order);
    memory->seen = (uint64_t *)graft_carve(carver, (size_t)step_limit + 1, sizeof(uint64_t));
    memory->anchors = graft_carve_ids(carver, limits->nodes);
    memory->counts = (uint16_t *)graft_carve(carver, policy->rule_count, sizeof(uint16_t));
    graft_carve_estimator(carver, limits, &memory->estimator);
    memory->hashes = (uint64_t *)(void *)memory->estimator.scratch.use_count;
#ifndef GRAFT_WITHOUT_NETWORK
    if (policy->hidden > 0) {
        graft_carve_network(carver, policy, limits, &memory->network);
    }
#endif
}

static graft_optimize_run *graft_run_in(void *workspace)
{
    return (graft_optimize_run *)(void *)graft_align_buffer(workspace);
}

size_t graft_optimize_workspace_bytes(const graft_policy *policy, const graft_limits *limits,
                                      uint32_t step_limit)
{
    graft_carver carver = {NULL, 0};
    graft_policy_memory memory;
    graft_carve_policy(&carver, policy, limits, step_limit, &memory);
    return carver.used + 7u;
}

size_t graft_optimize_workspace_most_bytes(const graft_policy *policy, const graft_limits *limits,
                                           uint32_t step_limit)
{
    graft_carver carver = {NULL, 0};
    graft_policy_memory memory;
    graft_carve_policy(&carver, policy, limits, step_limit, &memory);
    graft_carve_kept(&carver, policy, limits, &memory.kept);
    return carver.used + 7u;
}

/* ---------------------------------------------------------------- checking */

#ifndef GRAFT_WITHOUT_NETWORK
static bool graft_dense_fits(const graft_dense *dense, size_t inputs, size_t outputs)
{
    return dense->inputs == inputs && dense->outputs == outputs && inputs <= GRAFT_DENSE_MAX_INPUTS;
}

static bool graft_encoder_fits(const graft_policy *policy)
{
    size_t hidden = policy->hidden;
    bool fits = graft_dense_fits(&policy->input, GRAFT_SCENE_FEATURES, hidden) &&
                graft_dense_fits(&policy->global, 2 * hidden + GRAFT_SCENE_GLOBALS, policy->latent);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        const graft_policy_round *round = &policy->rounds[r];
        fits = fits &&
               graft_dense_fits(&round->incoming, hidden + GRAFT_EDGE_FEATURE_COUNT, hidden) &&
               graft_dense_fits(&round->outgoing, hidden + GRAFT_EDGE_FEATURE_COUNT, hidden) &&
               graft_dense_fits(&round->node, 3 * hidden, hidden);
    }
    return fits;
}

static bool graft_scorer_fits(const graft_policy *policy)
{
    const size_t inputs = (size_t)policy->latent + 2 * policy->hidden + GRAFT_FACT_SEEN;
    return policy->width > 0 && policy->rule_rows != NULL &&
           graft_dense_fits(&policy->place, inputs, policy->width) &&
           graft_dense_fits(&policy->second, policy->width, policy->width) &&
           graft_dense_fits(&policy->score, policy->width, 1);
}
#endif

static bool graft_network_fits(const graft_policy *policy)
{
#ifdef GRAFT_WITHOUT_NETWORK
    (void)policy;
    return false;
#else
    return graft_encoder_fits(policy) && graft_scorer_fits(policy);
#endif
}

static bool graft_policy_fits(const graft_policy *policy)
{
    bool by_tariff = policy->decider == GRAFT_DECIDER_TARIFF;
    bool by_network = policy->decider == GRAFT_DECIDER_NETWORK;
#ifdef GRAFT_WITHOUT_PLANS
    if (policy->plan_count > 0) {
        return false;
    }
#endif
    return policy->abi == GRAFT_ABI && policy->feature_hash == GRAFT_FEATURE_HASH &&
           policy->tariff != NULL && (by_tariff || (by_network && policy->hidden > 0)) &&
           (policy->hidden == 0 || graft_network_fits(policy));
}

static const uint8_t *graft_packed_rule(const graft_optimize_run *run, uint32_t r)
{
    return run->policy->rules + run->policy->rule_offsets[r];
}

/* Unpacks rule `r`; opening the run has checked it, or the caller answers for it. False when the graph
 * lacks an operator of its source: the rest is not read then. */
static bool graft_unpack_rule(graft_optimize_run *run, uint32_t r)
{
    const graft_policy *policy = run->policy;
    if (run->unpacked == r) {
        return true;
    }
    graft_reader reader = graft_open_reader(policy->rule_pairs, graft_packed_rule(run, r),
                                            policy->rule_offsets[r + 1] - policy->rule_offsets[r]);
    run->unpacked = policy->rule_count;
    if (!graft_read_rule(&run->rule, &reader, run->operators)) {
        return false;
    }
    run->unpacked = r;
    return true;
}

/* Sorts the nodes by operator; stable, so each operator's stay in order. */
static void graft_list_anchors(graft_optimize_run *run)
{
    const graft_order *order = &run->memory.order;
    const graft_node *nodes = run->graph->nodes;
    uint32_t *operators = run->operators;
    uint32_t count = 0;
    run->unpacked = run->policy->rule_count;
    graft_zero_bytes(operators, sizeof run->operators);
    for (uint32_t i = 0; i < order->count; i++) {
        const uint32_t op = nodes[order->order[i]].op;
        if (op < GRAFT_OP_COUNT) {
            operators[op / 32] |= 1u << op % 32;
        }
    }
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t i = 0; graft_has_operator(operators, op) && i < order->count; i++) {
            const graft_index n = order->order[i];
            if (nodes[n].op == op && !nodes[n].is_const) {
                run->memory.anchors[count++] = n;
            }
        }
        run->anchor_end[op] = (graft_index)count;
    }
}

static graft_status graft_order_graph(graft_optimize_run *run)
{
    graft_status status = graft_build_order(&run->memory.order, run->graph);
    if (status == GRAFT_OK) {
        graft_list_anchors(run);
    }
    return status;
}

/* What rewriting began with costs, unless it is known. Only a network asks. */
static void graft_note_first(graft_optimize_run *run, uint64_t cost)
{
#ifdef GRAFT_WITHOUT_NETWORK
    (void)run;
    (void)cost;
#else
    run->first_cost = run->first_known ? run->first_cost : cost;
    run->first_known = true;
#endif
}

/* Lays out the workspace, orders the graph and checks everything that could fail later. */
static graft_status graft_open_run(graft_graph *graph, const graft_policy *policy,
                                   const graft_optimize_options *options, uint32_t step_limit,
                                   void *workspace, size_t workspace_bytes)
{
    if (!graft_policy_fits(policy)) {
        return GRAFT_BAD_INPUT;
    }
    if (graph->node_end > GRAFT_ESTIMATE_NODES) {
        return GRAFT_CAPACITY;
    }
    if (workspace == NULL ||
        workspace_bytes < graft_optimize_workspace_bytes(policy, &graph->limits, step_limit)) {
        return GRAFT_NO_MEMORY;
    }
    graft_optimize_run *run = graft_run_in(workspace);
    graft_carver carver = {graft_align_buffer(workspace), 0};
    graft_zero_bytes(run, sizeof *run);
    graft_carve_policy(&carver, policy, &graph->limits, step_limit, &run->memory);
#ifndef GRAFT_WITHOUT_KEEPING
    if (workspace_bytes >=
        graft_optimize_workspace_most_bytes(policy, &graph->limits, step_limit)) {
        graft_carve_kept(&carver, policy, &graph->limits, &run->memory.kept);
    }
#endif
    run->graph = graph;
    run->policy = policy;
    run->options = *options;
    run->application.scratch = run->memory.estimator.scratch;
    graft_start_application(&run->application, &run->rule, &run->finder.matcher.match,
                            &run->memory.order, &run->made);
    graft_matcher_start(&run->finder.matcher, &run->rule, graph, &run->memory.order, GRAFT_NONE);
    run->report = &run->own_report;
    if (options->first_cost > 0) {
        graft_note_first(run, options->first_cost);
    }
    graft_open_kept(&run->memory.kept);
#ifndef GRAFT_WITHOUT_CHECKS
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (graft_policy_rule(policy, r, &run->rule) != GRAFT_OK) {
            return GRAFT_BAD_INPUT;
        }
    }
#endif
    run->memory.estimator.call_ns = options->call_ns;
    graft_status status =
        graft_open_estimator(&run->memory.estimator, policy->tariff, &graph->limits);
    return status == GRAFT_OK ? graft_order_graph(run) : status;
}

/* ---------------------------------------------------------------- locations */

/* Begins to look for locations of rule `r`; false when it can have none. */
static bool graft_enter_rule(graft_optimize_run *run, uint32_t r, uint64_t limit)
{
    graft_finder *finder = &run->finder;
    uint32_t op = graft_packed_anchor(graft_packed_rule(run, r));
    finder->apply.weight_bytes_limit = limit;
    finder->position = run->anchor_end[op - 1u];
    finder->end = run->anchor_end[op];
    finder->at_anchor = false;
    return graft_rule_is_allowed(run, r) && finder->position < finder->end;
}

/* Goes to the next node that can be the anchor of rule `r`. There is one; it is the last when the graph
 * lacks an operator of the source. */
static void graft_next_anchor(graft_optimize_run *run, uint32_t r)
{
    graft_finder *finder = &run->finder;
    finder->at_anchor = graft_unpack_rule(run, r);
    graft_restart_matcher(&finder->matcher, run->memory.anchors[finder->position]);
    finder->position = finder->at_anchor ? (graft_index)(finder->position + 1u) : finder->end;
    finder->matched = false;
}

/* Whether costs can still be added up once the target stands. Small graphs have no more nodes anyway. */
static bool graft_can_be_estimated(const graft_optimize_run *run)
{
#ifdef GRAFT_SMALL_GRAPHS
    (void)run;
    return true;
#else
    const graft_rule *rule = &run->rule;
    return run->memory.order.count + rule->target.node_count <=
           GRAFT_ESTIMATE_NODES + (uint32_t)rule->source.node_count;
#endif
}

/* Whether the matcher's anchor has a further location; run->application is then for it. */
static bool graft_next_at_anchor(graft_optimize_run *run)
{
    graft_finder *finder = &run->finder;
    while (finder->at_anchor) {
        finder->at_anchor = graft_next_match(&finder->matcher);
        finder->matched = finder->matched || finder->at_anchor;
        if (finder->at_anchor && graft_can_be_estimated(run) &&
            graft_decide(run->graph, &run->application, &finder->apply) == GRAFT_OK) {
            return true;
        }
    }
    return false;
}

/* The next location of rule `r`, which has been entered. */
static GRAFT_APART bool graft_next_location(graft_optimize_run *run, uint32_t r)
{
    while (!graft_next_at_anchor(run)) {
        if (run->finder.position == run->finder.end) {
            return false;
        }
        graft_next_anchor(run, r);
    }
    return true;
}

/* Location number `location` of rule `r`, counted under `limit`, into run->application; false when it
 * has fewer. */
static bool graft_find_location(graft_optimize_run *run, uint32_t r, uint32_t location,
                                uint64_t limit)
{
    bool found = graft_enter_rule(run, r, limit);
    for (uint32_t i = 0; found && i <= location; i++) {
        found = graft_next_location(run, r);
    }
    return found;
}

/* ----------------------------------------------------------------- deciding */

#ifndef GRAFT_WITHOUT_NETWORK
static uint64_t graft_least_cost(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Whether the location is better than the best so far by the network; if so, its logit is. */
static bool graft_network_prefers(graft_optimize_run *run, const graft_change *change)
{
    int16_t facts[GRAFT_FACT_SEEN];
    graft_scan *scan = &run->scan;
    const graft_policy *policy = run->policy;
    const uint64_t room = run->first_cost - graft_least_cost(run->first_cost, scan->now.cost);
    if (change->cost > 0 && (uint64_t)change->cost > room) {
        return false;
    }
    graft_candidate_facts(change, &scan->now, facts);
    int64_t logit =
        graft_prior_of(policy, facts) +
        graft_score_candidate(policy, &run->memory.network, scan->rule,
                              run->application.match->nodes, run->rule.source.node_count, facts);
    bool equal = logit == scan->scores.logit && scan->scores.rule < policy->rule_count;
    bool better =
        logit > scan->scores.logit ||
        (equal && graft_change_doubted(change) < graft_change_doubted(&scan->scores.change));
    scan->scores.logit = better ? logit : scan->scores.logit;
    return better;
}
#endif

/* Whether the location is better than the best so far. */
static bool graft_is_preferred(graft_optimize_run *run, const graft_change *change)
{
    graft_scan *scan = &run->scan;
#ifndef GRAFT_WITHOUT_NETWORK
    if (run->policy->decider == GRAFT_DECIDER_NETWORK) {
        return graft_network_prefers(run, change);
    }
#endif
    const int64_t doubted = graft_change_doubted(change);
    if (doubted < scan->least) {
        scan->least = doubted;
        return true;
    }
    /* No dearer with fewer nodes, when nothing gains. */
    return scan->scores.rule == run->policy->rule_count && doubted <= 0 &&
           change->added.nodes < change->removed.nodes;
}

/* Looks at the locations at one anchor; the one that is preferred becomes the choice. */
static void graft_look_at_anchor(graft_optimize_run *run)
{
    const graft_application *a = &run->application;
    graft_scan *scan = &run->scan;
    graft_change change;
    while (scan->count < run->policy->location_limit && graft_next_at_anchor(run)) {
        graft_estimate_match(&run->memory.estimator, a->rule, a->match, a->made, &change);
        if (graft_is_preferred(run, &change)) {
            scan->scores.change = change;
            scan->scores.rule = (uint16_t)scan->rule;
            scan->scores.location = scan->count;
        }
        scan->count++;
    }
}

/* Looks at the locations of the rule that the scan is at. False when the budget ran out before. */
static bool graft_scan_rule(graft_optimize_run *run)
{
    graft_scan *scan = &run->scan;
    graft_kept *kept = &run->memory.kept;
    const uint32_t nodes = graft_packed_source_nodes(graft_packed_rule(run, scan->rule));
    while (scan->count < run->policy->location_limit && run->finder.position < run->finder.end) {
        uint32_t anchor = run->memory.anchors[run->finder.position];
        if (graft_nothing_fits(kept, scan->rule, nodes, anchor)) {
#ifdef GRAFT_CHECK_KEPT
            graft_next_anchor(run, scan->rule);
            if (run->finder.at_anchor && graft_next_match(&run->finder.matcher)) {
                __builtin_trap();
            }
#else
            run->finder.position++;
#endif
            continue;
        }
        if (run->budget == 0) {
            return false;
        }
        run->budget--;
        graft_next_anchor(run, scan->rule);
        graft_look_at_anchor(run);
        if (run->unpacked == scan->rule) {
            graft_keep_finding(kept, &run->rule, scan->rule, anchor, run->finder.matched);
        }
    }
    graft_forget_rest(kept, run->finder.position < run->finder.end);
    return true;
}

#ifndef GRAFT_WITHOUT_NETWORK
/* Encodes the graph and scores NO-OP. */
static void graft_start_network(graft_optimize_run *run)
{
    int16_t facts[GRAFT_FACT_SEEN];
    graft_scan *scan = &run->scan;
    const graft_policy *policy = run->policy;
    const graft_network_input input = {policy,
                                       run->graph,
                                       &run->memory.order,
                                       &run->memory.network,
                                       &run->memory.estimator,
                                       &scan->now,
                                       run->first_cost};
    graft_zero_bytes(facts, sizeof facts);
    facts[GRAFT_FACT_NOOP] = GRAFT_FACT_ONE;
    graft_look_at_scene(&input);
    scan->scores.noop_logit =
        graft_score_candidate(policy, &run->memory.network, policy->rule_count, NULL, 0, facts);
    scan->scores.logit = scan->scores.noop_logit;
    scan->scores.latent = run->memory.network.latent;
}
#endif

/* What the graph costs by the policy's tariff. Opening the run checked that it can be told. */
static GRAFT_APART void graft_estimate_now(graft_optimize_run *run, graft_estimated *estimated)
{
    graft_estimate_graph(&run->memory.estimator, run->graph, &run->memory.order, NULL, estimated);
}

static void graft_start_scan(graft_optimize_run *run)
{
    graft_scan *scan = &run->scan;
    graft_zero_bytes(scan, sizeof *scan);
    scan->scores.counts = run->memory.counts;
    scan->scores.rule = run->policy->rule_count;
    graft_look_for_changes(&run->memory.kept, run->graph, &run->memory.order);
    graft_estimate_now(run, &scan->now);
    graft_note_first(run, scan->now.cost);
    scan->least = -(int64_t)(scan->now.cost >> GRAFT_GAIN_SHIFT);
#ifndef GRAFT_WITHOUT_NETWORK
    if (run->policy->decider == GRAFT_DECIDER_NETWORK) {
        graft_start_network(run);
    }
#endif
}

/* Goes on with the decision; false when the budget ran out before its end. */
static bool graft_decide_next(graft_optimize_run *run)
{
    graft_scan *scan = &run->scan;
    for (; scan->rule < run->policy->rule_count; scan->rule++) {
        if (!scan->in_rule) {
            scan->count = 0;
            scan->in_rule = graft_enter_rule(run, scan->rule, run->options.weight_bytes_limit);
        }
        if (scan->in_rule && !graft_scan_rule(run)) {
            return false;
        }
        scan->in_rule = false;
        run->memory.counts[scan->rule] = scan->count;
        scan->open = scan->open || scan->count > 0;
    }
    return true;
}

/* There are never as many candidates as this budget has. */
static void graft_decide_at_once(graft_optimize_run *run)
{
    graft_start_scan(run);
    run->budget = UINT32_MAX;
    (void)graft_decide_next(run);
}

graft_status graft_policy_scores(const graft_graph *graph, const graft_policy *policy,
                                 const graft_optimize_options *options, void *workspace,
                                 size_t workspace_bytes, graft_scores *scores)
{
    graft_graph view = *graph; /* Nothing below writes to it. */
    graft_optimize_run *run = graft_run_in(workspace);
    graft_status status = graft_open_run(&view, policy, options, 0, workspace, workspace_bytes);
    if (status == GRAFT_OK) {
        graft_decide_at_once(run);
        *scores = run->scan.scores;
    }
    return status;
}

#endif
