/* policy.h - deciding and optimising: locations in canonical order, the choice, plans, the loop.
 *
 * Rules stay packed; one at a time is unpacked into the workspace. Nothing about locations is kept
 * but their number per rule: the chosen one is found again. */
#ifndef GRAFT_ENGINE_POLICY_H
#define GRAFT_ENGINE_POLICY_H

#define POLICY_NODES_MOST 65535u

typedef struct graft_policy_memory {
    graft_network_memory network;
    graft_order order;
    graft_rule *rule; /* The one that is unpacked. */
    uint16_t *counts; /* (rules) */
    uint64_t *seen;   /* (steps + 1): hashes of the graphs so far */
    uint64_t *hashes; /* (values): scratch of graft_graph_hash */
    void *order_memory;
    size_t order_bytes;
    void *scratch; /* For graft_match_try and graft_apply. */
} graft_policy_memory;

/* A call in progress. */
typedef struct graft_optimize_run {
    graft_graph *graph;
    const graft_policy *policy;
    const graft_optimize_options *options;
    graft_report *report;
    graft_policy_memory memory;
} graft_optimize_run;

graft_optimize_options graft_optimize_options_default(void)
{
    graft_optimize_options options;
    options.weight_bytes_limit = 0;
    options.step_limit = 256;
    options.use_plans = true;
    options.simplify = true;
    options.guard = true;
    return options;
}

void graft_global_features(const uint16_t *counts, uint32_t rule_count, int8_t *out)
{
    for (uint32_t r = 0; r < rule_count; r++) {
        out[r] = log_feature((uint64_t)counts[r] + 1u, 4);
    }
}

/* ---------------------------------------------------------------- workspace */

/* The widest input of a layer, or output of the trunk: what `vector` holds. */
static size_t widest_input(const graft_policy *policy)
{
    size_t widest = GRAFT_FEATURE_COUNT;
    size_t candidates[3];
    candidates[0] = (size_t)3 * policy->hidden;
    candidates[1] = (size_t)policy->latent + policy->count_features;
    candidates[2] = (size_t)policy->trunk_width + policy->embedding_width;
    for (uint32_t i = 0; i < 3; i++) {
        widest = candidates[i] > widest ? candidates[i] : widest;
    }
    return widest;
}

static void carve_network(graft_carver *carver, const graft_policy *policy,
                          const graft_limits *limits, graft_network_memory *memory)
{
    size_t hidden = policy->hidden;
    memory->rows = (graft_index *)carve(carver, limits->nodes, sizeof(graft_index));
    memory->h = (int16_t *)carve(carver, limits->nodes * hidden, sizeof(int16_t));
    memory->means = (int16_t *)carve(carver, limits->nodes * hidden * 2, sizeof(int16_t));
    memory->far_sums = (int32_t *)carve(carver, limits->nodes * hidden, sizeof(int32_t));
    memory->message_sum = (uint32_t *)carve(carver, hidden, sizeof(uint32_t));
    memory->vector = (int16_t *)carve(carver, widest_input(policy), sizeof(int16_t));
    memory->pooled = (int16_t *)carve(carver, policy->global.inputs, sizeof(int16_t));
    memory->tanhs = (int32_t *)carve(carver, policy->latent, sizeof(int32_t));
    memory->latent = (int16_t *)carve(carver, policy->latent, sizeof(int16_t));
    memory->place = (int16_t *)carve(carver, policy->trunk_width, sizeof(int16_t));
    memory->trunk = (int16_t *)carve(carver, policy->trunk_width, sizeof(int16_t));
    memory->xfer_logits = (int32_t *)carve(carver, (size_t)policy->rule_count + 1, sizeof(int32_t));
    memory->location_logits = (int32_t *)carve(carver, policy->location_limit, sizeof(int32_t));
    memory->row_count = 0;
}

static void carve_policy(graft_carver *carver, const graft_policy *policy,
                         const graft_limits *limits, uint32_t step_limit,
                         graft_policy_memory *memory)
{
    memory->order_bytes = graft_order_bytes(limits);
    memory->order_memory = carve(carver, memory->order_bytes, 1);
    memory->scratch = carve(carver, graft_match_scratch_bytes(limits), 1);
    memory->seen = (uint64_t *)carve(carver, (size_t)step_limit + 1, sizeof(uint64_t));
    memory->hashes = (uint64_t *)carve(carver, limits->values, sizeof(uint64_t));
    memory->rule = (graft_rule *)carve(carver, 1, sizeof(graft_rule));
    memory->counts = (uint16_t *)carve(carver, policy->rule_count, sizeof(uint16_t));
    carve_network(carver, policy, limits, &memory->network);
}

size_t graft_optimize_workspace_bytes(const graft_policy *policy, const graft_limits *limits,
                                      uint32_t step_limit)
{
    graft_carver carver = {NULL, 0};
    graft_policy_memory memory;
    carve_policy(&carver, policy, limits, step_limit, &memory);
    return carver.used + 7u;
}

/* ---------------------------------------------------------------- checking */

static bool dense_fits(const graft_dense *dense, size_t inputs, size_t outputs)
{
    return dense->inputs == inputs && dense->outputs == outputs && inputs <= GRAFT_DENSE_MAX_INPUTS;
}

static bool encoder_fits(const graft_policy *policy)
{
    size_t hidden = policy->hidden;
    bool fits = dense_fits(&policy->input, GRAFT_FEATURE_COUNT, hidden) &&
                dense_fits(&policy->global, 2 * hidden + policy->global_features, policy->latent) &&
                (policy->global_features == 0 || policy->global_features == policy->rule_count);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        const graft_policy_round *round = &policy->rounds[r];
        fits = fits && dense_fits(&round->incoming, hidden + GRAFT_EDGE_FEATURE_COUNT, hidden) &&
               dense_fits(&round->outgoing, hidden + GRAFT_EDGE_FEATURE_COUNT, hidden) &&
               dense_fits(&round->node, 3 * hidden, hidden);
    }
    return fits;
}

static bool heads_fit(const graft_policy *policy)
{
    size_t width = policy->trunk_width;
    bool fits = (policy->count_features == 0 || policy->count_features == policy->rule_count) &&
                (policy->trunk_count == 1 || policy->trunk_count == 2) &&
                dense_fits(&policy->xfer, width, (size_t)policy->rule_count + 1) &&
                dense_fits(&policy->location_trunk, width + policy->embedding_width, width) &&
                dense_fits(&policy->location, width, policy->location_limit);
    for (uint32_t k = 0; k < policy->trunk_count; k++) {
        size_t inputs = k == 0 ? (size_t)policy->latent + policy->count_features : width;
        fits = fits && dense_fits(&policy->trunk[k], inputs, width);
    }
    return fits;
}

static graft_status unpack_rule(graft_optimize_run *run, uint32_t r)
{
    size_t size = 0;
    const uint32_t *offsets = run->policy->rule_offsets;
    return graft_rule_unpack(run->memory.rule, run->policy->rules + offsets[r],
                             offsets[r + 1] - offsets[r], &size);
}

static graft_status order_graph(graft_optimize_run *run)
{
    return graft_order_build(&run->memory.order, run->graph, run->memory.order_memory,
                             run->memory.order_bytes);
}

/* Lays out the workspace, orders the graph and checks everything that could fail later. */
static graft_status open_run(graft_optimize_run *run, void *workspace, size_t workspace_bytes,
                             uint32_t step_limit)
{
    const graft_policy *policy = run->policy;
    if (policy->abi != GRAFT_ABI || policy->feature_hash != GRAFT_FEATURE_HASH ||
        !encoder_fits(policy) || !heads_fit(policy)) {
        return GRAFT_BAD_INPUT;
    }
    if (run->graph->node_end > POLICY_NODES_MOST) {
        return GRAFT_CAPACITY;
    }
    if (workspace == NULL ||
        workspace_bytes < graft_optimize_workspace_bytes(policy, &run->graph->limits, step_limit)) {
        return GRAFT_NO_MEMORY;
    }
    graft_carver carver = {align_buffer(workspace), 0};
    carve_policy(&carver, policy, &run->graph->limits, step_limit, &run->memory);
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (unpack_rule(run, r) != GRAFT_OK) {
            return GRAFT_BAD_INPUT;
        }
    }
    return order_graph(run);
}

/* ---------------------------------------------------------------- locations */

/* Enumerates the locations of the unpacked rule. */
typedef struct graft_finder {
    const graft_optimize_run *run;
    graft_apply_options apply;
    graft_matcher matcher;
    graft_index position; /* One past the anchor's place in the order. */
    bool at_anchor;
} graft_finder;

static void start_finder(graft_finder *finder, const graft_optimize_run *run, uint64_t limit)
{
    finder->run = run;
    finder->apply.weight_bytes_limit = limit;
    finder->position = 0;
    finder->at_anchor = false;
}

/* Moves on to the next node that can be the rule's anchor. */
static bool next_anchor(graft_finder *finder)
{
    const graft_policy_memory *memory = &finder->run->memory;
    while (finder->position < memory->order.count) {
        graft_index n = memory->order.order[finder->position++];
        const graft_node *node = &finder->run->graph->nodes[n];
        if (node->op == memory->rule->source.nodes[0].op && !node->is_const) {
            graft_matcher_start(&finder->matcher, memory->rule, finder->run->graph, &memory->order,
                                n);
            return true;
        }
    }
    return false;
}

static bool next_location(graft_finder *finder, graft_match *match)
{
    const graft_optimize_run *run = finder->run;
    for (;;) {
        if (!finder->at_anchor && !next_anchor(finder)) {
            return false;
        }
        finder->at_anchor = graft_matcher_next(&finder->matcher, match);
        if (finder->at_anchor &&
            graft_match_try(run->graph, run->memory.rule, match, &run->memory.order, &finder->apply,
                            run->memory.scratch) == GRAFT_OK) {
            return true;
        }
    }
}

/* Number of locations of rule `r`, at most location_limit; the rule is then unpacked. */
static graft_status count_locations(graft_optimize_run *run, uint32_t r, uint16_t *count)
{
    graft_finder finder;
    graft_match match;
    graft_status status = unpack_rule(run, r);
    *count = 0;
    start_finder(&finder, run, run->options->weight_bytes_limit);
    while (status == GRAFT_OK && *count < run->policy->location_limit &&
           next_location(&finder, &match)) {
        (*count)++;
    }
    return status;
}

/* Location number `location` of rule `r`, counted under `limit`; GRAFT_NO_MATCH when it has fewer.
 */
static graft_status find_location(graft_optimize_run *run, uint32_t r, uint32_t location,
                                  uint64_t limit, graft_match *match)
{
    graft_finder finder;
    graft_status status = unpack_rule(run, r);
    start_finder(&finder, run, limit);
    for (uint32_t i = 0; status == GRAFT_OK && i <= location; i++) {
        if (!next_location(&finder, match)) {
            status = GRAFT_NO_MATCH;
        }
    }
    return status;
}

/* ----------------------------------------------------------------- deciding */

/* The index of the largest logit with a location, NO-OP (the last) included; the lowest on ties. */
static uint32_t choose_rule(const graft_policy *policy, const uint16_t *counts,
                            const int32_t *logits)
{
    uint32_t best = policy->rule_count;
    for (uint32_t r = policy->rule_count; r-- > 0;) {
        if (counts[r] > 0 && logits[r] >= logits[best]) {
            best = r;
        }
    }
    return best;
}

static uint32_t choose_location(const int32_t *logits, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return best;
}

/* Scores the ordered graph. `open` receives whether any rule has a location. */
static graft_status decide_next(graft_optimize_run *run, graft_scores *scores, bool *open)
{
    const graft_policy *policy = run->policy;
    graft_network_memory *network = &run->memory.network;
    const graft_network_input input = {policy, run->graph, &run->memory.order, network};
    *open = false;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        graft_status status = count_locations(run, r, &run->memory.counts[r]);
        if (status != GRAFT_OK) {
            return status;
        }
        *open = *open || run->memory.counts[r] > 0;
    }
    run_network(&input, run->memory.counts);
    uint32_t rule = choose_rule(policy, run->memory.counts, network->xfer_logits);
    scores->counts = run->memory.counts;
    scores->tanhs = network->tanhs;
    scores->latent = network->latent;
    scores->xfer_logits = network->xfer_logits;
    scores->location_logits = NULL;
    scores->rule = (uint16_t)rule;
    scores->location = 0;
    if (rule < policy->rule_count) {
        run_location_head(policy, network, rule);
        scores->location_logits = network->location_logits;
        scores->location =
            (uint16_t)choose_location(network->location_logits, run->memory.counts[rule]);
    }
    return GRAFT_OK;
}

graft_status graft_policy_scores(const graft_graph *graph, const graft_policy *policy,
                                 const graft_optimize_options *options, void *workspace,
                                 size_t workspace_bytes, graft_scores *scores)
{
    bool open = false;
    graft_graph view = *graph; /* Nothing below writes to it. */
    graft_optimize_run run;
    run.graph = &view;
    run.policy = policy;
    run.options = options;
    run.report = NULL;
    graft_status status = open_run(&run, workspace, workspace_bytes, 0);
    return status == GRAFT_OK ? decide_next(&run, scores, &open) : status;
}

/* ---------------------------------------------------------------- rewriting */

/* Applies the unpacked rule at `match`, orders the graph again and notes the rewrite. */
static graft_status rewrite(graft_optimize_run *run, const graft_match *match,
                            graft_decision *decision)
{
    graft_apply_options apply;
    graft_effect effect;
    graft_report *report = run->report;
    apply.weight_bytes_limit = run->options->weight_bytes_limit;
    graft_status status = graft_apply(run->graph, run->memory.rule, match, &run->memory.order,
                                      &apply, run->memory.scratch, &effect);
    if (status != GRAFT_OK) {
        return status;
    }
    decision->node_count = run->memory.rule->source.node_count;
    for (uint32_t i = 0; i < decision->node_count; i++) {
        decision->nodes[i] = match->nodes[i];
    }
    if (report->decisions != NULL && report->step_count < report->decision_limit) {
        report->decisions[report->step_count] = *decision;
    }
    report->step_count++;
    report->plan_step_count += decision->origin == GRAFT_FROM_PLAN;
    report->simplify_step_count += decision->origin == GRAFT_FROM_SIMPLIFY;
    report->weight_bytes = add_saturating(report->weight_bytes, effect.weight_bytes);
    return order_graph(run);
}

static void start_decision(graft_decision *decision, uint32_t rule, uint32_t location,
                           graft_decision_origin origin)
{
    zero_bytes(decision, sizeof *decision);
    decision->rule = (uint16_t)rule;
    decision->location = (uint16_t)location;
    decision->origin = (uint8_t)origin;
}

/* Follows the policy for one step. *stop is set and nothing is applied when it wants none. */
static graft_status step_policy(graft_optimize_run *run, graft_decision *decision, graft_stop *stop,
                                bool *stopped)
{
    bool open = false;
    graft_scores scores;
    graft_match match;
    graft_status status = decide_next(run, &scores, &open);
    start_decision(decision, run->policy->rule_count, 0, GRAFT_FROM_POLICY);
    *stopped = status == GRAFT_OK && scores.rule == run->policy->rule_count;
    if (status != GRAFT_OK || *stopped) {
        *stop = open ? GRAFT_STOP_NO_OP : GRAFT_STOP_NO_RULE;
        return status;
    }
    decision->rule = scores.rule;
    decision->location = scores.location;
    decision->location_count = scores.counts[scores.rule];
    status =
        find_location(run, scores.rule, scores.location, run->options->weight_bytes_limit, &match);
    status = status == GRAFT_OK ? rewrite(run, &match, decision) : status;
    return status == GRAFT_OK ? GRAFT_OK : GRAFT_INTERNAL; /* It was tried before. */
}

static uint64_t hash_now(graft_optimize_run *run)
{
    return graft_graph_hash(run->graph, &run->memory.order, run->memory.hashes);
}

/* Prepares a call: checks, hashes, and an empty report. */
static graft_status open_report(graft_optimize_run *run, void *workspace, size_t workspace_bytes,
                                uint32_t step_limit)
{
    graft_report *report = run->report;
    graft_status status = open_run(run, workspace, workspace_bytes, step_limit);
    graft_decision *decisions = report->decisions;
    uint32_t decision_limit = report->decision_limit;
    zero_bytes(report, sizeof *report);
    report->decisions = decisions;
    report->decision_limit = decision_limit;
    if (status == GRAFT_OK) {
        report->hash_before = hash_now(run);
        report->active_before = graft_graph_active_count(run->graph);
    }
    return status;
}

static void close_report(graft_optimize_run *run)
{
    run->report->hash_after = hash_now(run);
    run->report->active_after = graft_graph_active_count(run->graph);
}

graft_status graft_policy_step(graft_graph *graph, const graft_policy *policy,
                               const graft_optimize_options *options, void *workspace,
                               size_t workspace_bytes, graft_decision *decision)
{
    graft_report report;
    graft_optimize_run run;
    graft_stop stop = GRAFT_STOP_NO_OP;
    bool stopped = false;
    zero_bytes(&report, sizeof report);
    run.graph = graph;
    run.policy = policy;
    run.options = options;
    run.report = &report;
    graft_status status = open_run(&run, workspace, workspace_bytes, 0);
    return status == GRAFT_OK ? step_policy(&run, decision, &stop, &stopped) : status;
}

/* ---------------------------------------------------------------- simplify */

/* Applies one rule marked "always"; *found is false when none fits. Such a rule leaves fewer nodes.
 */
static graft_status simplify_once(graft_optimize_run *run, bool *found)
{
    const graft_policy *policy = run->policy;
    graft_match match;
    graft_decision decision;
    *found = false;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if ((policy->rule_flags[r] & GRAFT_RULE_ALWAYS) == 0) {
            continue;
        }
        graft_status status = find_location(run, r, 0, run->options->weight_bytes_limit, &match);
        if (status == GRAFT_OK &&
            run->memory.rule->target.node_count < run->memory.rule->source.node_count) {
            *found = true;
            start_decision(&decision, r, 0, GRAFT_FROM_SIMPLIFY);
            return rewrite(run, &match, &decision);
        }
    }
    return GRAFT_OK;
}

static graft_status simplify_all(graft_optimize_run *run)
{
    bool found = true;
    graft_status status = GRAFT_OK;
    while (status == GRAFT_OK && found && run->report->step_count < run->options->step_limit) {
        status = simplify_once(run, &found);
    }
    return status;
}

graft_status graft_simplify(graft_graph *graph, const graft_policy *policy,
                            const graft_optimize_options *options, void *workspace,
                            size_t workspace_bytes, graft_report *report)
{
    graft_report unused;
    graft_optimize_run run;
    zero_bytes(&unused, sizeof unused);
    run.graph = graph;
    run.policy = policy;
    run.options = options;
    run.report = report != NULL ? report : &unused;
    graft_status status = open_report(&run, workspace, workspace_bytes, 0);
    if (status == GRAFT_OK) {
        status = simplify_all(&run);
        run.report->stop = run.report->step_count < options->step_limit ? GRAFT_STOP_NO_RULE
                                                                        : GRAFT_STOP_STEP_LIMIT;
        close_report(&run);
    }
    return status;
}

/* ------------------------------------------------------------------- plans */

static const graft_recorded_plan *find_plan(const graft_policy *policy, uint64_t hash)
{
    uint32_t low = 0;
    uint32_t high = policy->plan_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (policy->plans[middle].graph_hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < policy->plan_count && policy->plans[low].graph_hash == hash ? &policy->plans[low]
                                                                             : NULL;
}

/* Replays a plan; *finished when every step was found and the result is the recorded one. */
static graft_status replay_plan(graft_optimize_run *run, const graft_recorded_plan *plan,
                                bool *finished)
{
    graft_match match;
    graft_decision decision;
    graft_status status = GRAFT_OK;
    uint32_t step = 0;
    for (; status == GRAFT_OK && step < plan->step_count &&
           run->report->step_count < run->options->step_limit;
         step++) {
        uint32_t rule = plan->steps[step].rule;
        uint32_t location = plan->steps[step].location;
        status = rule < run->policy->rule_count
                     ? find_location(run, rule, location, UINT64_MAX, &match)
                     : GRAFT_NO_MATCH;
        start_decision(&decision, rule, location, GRAFT_FROM_PLAN);
        status = status == GRAFT_OK ? rewrite(run, &match, &decision) : status;
    }
    *finished =
        status == GRAFT_OK && step == plan->step_count && hash_now(run) == plan->result_hash;
    return status == GRAFT_NO_MATCH || status == GRAFT_CAPACITY ? GRAFT_OK : status;
}

/* Looks the graph up and replays its plan. *finished when there is nothing left to decide. */
static graft_status try_plan(graft_optimize_run *run, bool *finished)
{
    const graft_recorded_plan *plan =
        run->options->use_plans ? find_plan(run->policy, hash_now(run)) : NULL;
    *finished = false;
    if (plan == NULL) {
        return GRAFT_OK;
    }
    graft_status status = replay_plan(run, plan, finished);
    run->report->stop = GRAFT_STOP_PLAN;
    run->report->plan_dropped = run->report->plan_dropped || !*finished;
    return status;
}

/* -------------------------------------------------------------------- loop */

/* Whether this graph has been before; notes it otherwise. */
static bool note_graph(graft_optimize_run *run, uint32_t *seen_count)
{
    uint64_t hash = hash_now(run);
    for (uint32_t i = 0; i < *seen_count; i++) {
        if (run->memory.seen[i] == hash) {
            return true;
        }
    }
    if (*seen_count <= run->options->step_limit) {
        run->memory.seen[(*seen_count)++] = hash;
    }
    return false;
}

static graft_status follow_policy(graft_optimize_run *run)
{
    graft_report *report = run->report;
    graft_decision decision;
    uint32_t seen_count = 0;
    bool stopped = false;
    graft_status status = GRAFT_OK;
    while (status == GRAFT_OK && !stopped) {
        if (run->options->simplify) {
            status = simplify_all(run);
        }
        if (run->options->guard && note_graph(run, &seen_count)) {
            report->stop = GRAFT_STOP_REPEATED;
            break;
        }
        if (report->step_count >= run->options->step_limit) {
            report->stop = GRAFT_STOP_STEP_LIMIT;
            break;
        }
        if (status == GRAFT_OK) {
            status = step_policy(run, &decision, &report->stop, &stopped);
        }
    }
    return status;
}

graft_status graft_optimize(graft_graph *graph, const graft_policy *policy,
                            const graft_optimize_options *options, void *workspace,
                            size_t workspace_bytes, graft_report *report)
{
    bool finished = false;
    graft_report unused;
    graft_optimize_run run;
    zero_bytes(&unused, sizeof unused);
    run.graph = graph;
    run.policy = policy;
    run.options = options;
    run.report = report != NULL ? report : &unused;
    graft_status status = open_report(&run, workspace, workspace_bytes, options->step_limit);
    if (status != GRAFT_OK) {
        return status;
    }
    status = try_plan(&run, &finished);
    if (status == GRAFT_OK && !finished && options->simplify) {
        uint32_t step_count = run.report->step_count;
        status = simplify_all(&run);
        if (status == GRAFT_OK && run.report->step_count > step_count) {
            status = try_plan(&run, &finished); /* Recorded after simplifying. */
        }
    }
    if (status == GRAFT_OK && !finished) {
        status = follow_policy(&run);
    }
    close_report(&run);
    return status;
}

#endif
