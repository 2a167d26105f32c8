/* optimize.h - the loop: rewriting by decisions, simplification and recorded plans, in one call or in
 * slices. */
#ifndef GRAFT_ENGINE_OPTIMIZE_H
#define GRAFT_ENGINE_OPTIMIZE_H

/* ---------------------------------------------------------------- rewriting */

/* The tag of what target node `n` makes: that of the matched node whose output it takes over, else the
 * anchor's. */
static uint32_t tag_of_made(const graft_optimize_run *run, uint32_t n)
{
    const graft_rule *rule = run->memory.rule;
    for (uint32_t i = 0; i < rule_outputs(rule); i++) {
        graft_operand x = rule->target.outputs[i];
        if (GRAFT_OPERAND_IS_NODE(x) && GRAFT_OPERAND_NODE_OF(x) == n) {
            uint32_t source = GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]);
            return run->options.node_tags[run->match.nodes[source]];
        }
    }
    return run->options.node_tags[run->match.nodes[0]];
}

/* Applies the unpacked rule at the location and tags what it makes. */
static graft_status apply_location(graft_optimize_run *run, graft_effect *effect)
{
    graft_application application;
    uint32_t tags[GRAFT_RULE_MAX_NODES];
    const graft_policy_memory *memory = &run->memory;
    const uint32_t count = run->options.node_tags != NULL ? memory->rule->target.node_count : 0;
    graft_apply_options apply;
    apply.weight_bytes_limit = run->options.weight_bytes_limit;
    for (uint32_t n = 0; n < count; n++) {
        tags[n] = tag_of_made(run, n);
    }
    start_application(&application, memory->rule, &run->match, &memory->order, run->graph,
                      memory->scratch, memory->made);
    graft_status status = apply_match(run->graph, &application, &apply, effect);
    for (uint32_t n = 0; status == GRAFT_OK && n < count; n++) {
        if (effect->created[n] != GRAFT_NONE) {
            run->options.node_tags[effect->created[n]] = tags[n];
        }
    }
    return status;
}

/* Applies the unpacked rule at the location, orders the graph again and notes the decision. */
static graft_status rewrite(graft_optimize_run *run)
{
    graft_effect effect;
    graft_report *report = run->report;
    graft_decision *decision = &run->decision;
    decision->node_count = run->memory.rule->source.node_count;
    for (uint32_t i = 0; i < decision->node_count; i++) {
        decision->nodes[i] = run->match.nodes[i];
    }
    graft_status status = apply_location(run, &effect);
    if (status != GRAFT_OK) {
        return status;
    }
    if (report->decisions != NULL && report->step_count < report->decision_limit) {
        report->decisions[report->step_count] = *decision;
    }
    report->step_count++;
    report->plan_step_count += decision->origin == GRAFT_FROM_PLAN;
    report->simplify_step_count += decision->origin == GRAFT_FROM_SIMPLIFY;
    report->weight_bytes = add_saturating(report->weight_bytes, effect.weight_bytes);
    status = order_graph(run);
    if (status == GRAFT_OK && run->options.observe != NULL) {
        run->options.observe(run->options.observe_context, run->graph, decision);
    }
    return status;
}

static void start_decision(graft_optimize_run *run, uint32_t rule, uint32_t location,
                           graft_decision_origin origin)
{
    zero_bytes(&run->decision, sizeof run->decision);
    run->decision.rule = (uint16_t)rule;
    run->decision.location = (uint16_t)location;
    run->decision.origin = (uint8_t)origin;
}

/* Applies what the policy decided. *stopped is set and nothing is applied when it wants nothing. */
static graft_status take_step(graft_optimize_run *run, bool *stopped)
{
    const graft_scores *scores = &run->scan.scores;
    start_decision(run, scores->rule, scores->location, GRAFT_FROM_POLICY);
    *stopped = scores->rule == run->policy->rule_count;
    if (*stopped) {
        run->report->stop = run->scan.open ? GRAFT_STOP_NO_OP : GRAFT_STOP_NO_RULE;
        return GRAFT_OK;
    }
    run->decision.location_count = scores->counts[scores->rule];
    run->decision.cost_change = scores->change.cost;
    graft_status status =
        find_location(run, scores->rule, scores->location, run->options.weight_bytes_limit);
    status = status == GRAFT_OK ? rewrite(run) : status;
    return status == GRAFT_OK ? GRAFT_OK : GRAFT_INTERNAL; /* It was tried before. */
}

static uint64_t hash_now(graft_optimize_run *run)
{
    return graft_graph_hash(run->graph, &run->memory.order, run->memory.hashes);
}

/* What the graph costs by the policy's tariff. */
static graft_status estimate_now(graft_optimize_run *run, graft_estimated *estimated)
{
    return graft_estimate(&run->memory.estimator, run->graph, &run->memory.order, estimated);
}

/* Prepares a call: checks, hashes, and an empty report. */
/* NOLINTNEXTLINE(readability-function-size): the interface's. */
static graft_status open_report(graft_graph *graph, const graft_policy *policy,
                                const graft_optimize_options *options, uint32_t step_limit,
                                void *workspace, size_t workspace_bytes, graft_report *report,
                                graft_optimize_run **opened)
{
    graft_optimize_run *run = NULL;
    graft_status status =
        open_run(graph, policy, options, step_limit, workspace, workspace_bytes, &run);
    if (report != NULL) {
        graft_decision *decisions = report->decisions;
        uint32_t decision_limit = report->decision_limit;
        zero_bytes(report, sizeof *report);
        report->decisions = decisions;
        report->decision_limit = decision_limit;
    }
    if (status == GRAFT_OK) {
        run->report = report != NULL ? report : &run->own_report;
        run->report->hash_before = hash_now(run);
        run->report->active_before = graft_graph_active_count(run->graph);
        status = estimate_now(run, &run->report->estimated_before);
        run->first_cost = run->first_known ? run->first_cost : run->report->estimated_before.cost;
        run->first_known = true;
    }
    *opened = run;
    return status;
}

/* Nothing here can fail: opening the report did the same. */
static void close_report(graft_optimize_run *run)
{
    run->report->hash_after = hash_now(run);
    run->report->active_after = graft_graph_active_count(run->graph);
    (void)estimate_now(run, &run->report->estimated_after);
}

graft_status graft_policy_step(graft_graph *graph, const graft_policy *policy,
                               const graft_optimize_options *options, void *workspace,
                               size_t workspace_bytes, graft_decision *decision)
{
    graft_optimize_run *run = NULL;
    bool stopped = false;
    graft_status status = open_run(graph, policy, options, 0, workspace, workspace_bytes, &run);
    status = status == GRAFT_OK ? start_scan(run) : status;
    if (status != GRAFT_OK) {
        return status;
    }
    decide_at_once(run);
    status = take_step(run, &stopped);
    *decision = run->decision;
    return status;
}

/* ---------------------------------------------------------------- simplify */

/* Applies one rule marked "always"; *found is false when none fits. Such a rule leaves fewer nodes.
 */
static graft_status simplify_once(graft_optimize_run *run, bool *found)
{
    const graft_policy *policy = run->policy;
    *found = false;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if ((policy->rule_flags[r] & GRAFT_RULE_ALWAYS) == 0) {
            continue;
        }
        graft_status status = find_location(run, r, 0, run->options.weight_bytes_limit);
        if (status == GRAFT_OK &&
            run->memory.rule->target.node_count < run->memory.rule->source.node_count) {
            *found = true;
            start_decision(run, r, 0, GRAFT_FROM_SIMPLIFY);
            return rewrite(run);
        }
    }
    return GRAFT_OK;
}

static graft_status simplify_all(graft_optimize_run *run)
{
    bool found = true;
    graft_status status = GRAFT_OK;
    while (status == GRAFT_OK && found && run->report->step_count < run->options.step_limit) {
        status = simplify_once(run, &found);
    }
    return status;
}

graft_status graft_simplify(graft_graph *graph, const graft_policy *policy,
                            const graft_optimize_options *options, void *workspace,
                            size_t workspace_bytes, graft_report *report)
{
    graft_optimize_run *run = NULL;
    graft_status status =
        open_report(graph, policy, options, 0, workspace, workspace_bytes, report, &run);
    if (status == GRAFT_OK) {
        status = simplify_all(run);
        run->report->stop = run->report->step_count < options->step_limit ? GRAFT_STOP_NO_RULE
                                                                          : GRAFT_STOP_STEP_LIMIT;
        close_report(run);
    }
    return status;
}

/* ------------------------------------------------------------------- plans */

#ifndef GRAFT_WITHOUT_PLANS

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
    graft_status status = GRAFT_OK;
    uint32_t step = 0;
    for (; status == GRAFT_OK && step < plan->step_count &&
           run->report->step_count < run->options.step_limit;
         step++) {
        uint32_t rule = plan->steps[step].rule;
        uint32_t location = plan->steps[step].location;
        status = rule < run->policy->rule_count ? find_location(run, rule, location, UINT64_MAX)
                                                : GRAFT_NO_MATCH;
        start_decision(run, rule, location, GRAFT_FROM_PLAN);
        status = status == GRAFT_OK ? rewrite(run) : status;
    }
    *finished =
        status == GRAFT_OK && step == plan->step_count && hash_now(run) == plan->result_hash;
    return status == GRAFT_NO_MATCH || status == GRAFT_CAPACITY ? GRAFT_OK : status;
}

#endif

/* Looks the graph up and replays its plan. *finished when there is nothing left to decide. */
static graft_status try_plan(graft_optimize_run *run, bool *finished)
{
    graft_status status = GRAFT_OK;
    *finished = false;
#ifdef GRAFT_WITHOUT_PLANS
    (void)run; /* Policies with plans were refused. */
#else
    const graft_recorded_plan *plan =
        run->options.use_plans ? find_plan(run->policy, hash_now(run)) : NULL;
    if (plan != NULL) {
        status = replay_plan(run, plan, finished);
        run->report->stop = GRAFT_STOP_PLAN;
        run->report->plan_dropped = run->report->plan_dropped || !*finished;
    }
#endif
    return status;
}

/* -------------------------------------------------------------------- loop */

/* Whether this graph has been before; notes it otherwise. */
static bool note_graph(graft_optimize_run *run)
{
    uint64_t hash = hash_now(run);
    for (uint32_t i = 0; i < run->seen_count; i++) {
        if (run->memory.seen[i] == hash) {
            return true;
        }
    }
    if (run->seen_count <= run->options.step_limit) {
        run->memory.seen[run->seen_count++] = hash;
    }
    return false;
}

/* A plan, before or after simplifying. */
static graft_status begin_run(graft_optimize_run *run)
{
    bool finished = false;
    graft_status status = try_plan(run, &finished);
    if (status == GRAFT_OK && !finished && run->options.simplify) {
        uint32_t step_count = run->report->step_count;
        status = simplify_all(run);
        if (status == GRAFT_OK && run->report->step_count > step_count) {
            status = try_plan(run, &finished); /* Recorded after simplifying. */
        }
    }
    run->phase = finished ? GRAFT_PHASE_END : GRAFT_PHASE_FOLLOW;
    return status;
}

/* What comes before a decision. */
static graft_status prepare_decision(graft_optimize_run *run)
{
    graft_report *report = run->report;
    graft_status status = run->options.simplify ? simplify_all(run) : GRAFT_OK;
    if (status != GRAFT_OK) {
        return status;
    }
    run->phase = GRAFT_PHASE_END;
    if (run->options.guard && note_graph(run)) {
        report->stop = GRAFT_STOP_REPEATED;
    } else if (report->step_count >= run->options.step_limit) {
        report->stop = GRAFT_STOP_STEP_LIMIT;
    } else {
        run->phase = GRAFT_PHASE_DECIDE;
        status = start_scan(run);
    }
    return status;
}

static graft_status go_on(graft_optimize_run *run)
{
    graft_status status = GRAFT_OK;
    bool stopped = false;
    while (status == GRAFT_OK && run->phase != GRAFT_PHASE_END) {
        if (run->phase == GRAFT_PHASE_BEGIN) {
            status = begin_run(run);
        } else if (run->phase == GRAFT_PHASE_FOLLOW) {
            status = prepare_decision(run);
        } else if (!decide_next(run)) {
            break; /* The next call goes on. */
        } else {
            status = take_step(run, &stopped);
            run->phase = stopped ? GRAFT_PHASE_END : GRAFT_PHASE_FOLLOW;
        }
    }
    return status;
}

graft_status graft_optimize_begin(graft_graph *graph, const graft_policy *policy,
                                  const graft_optimize_options *options, void *workspace,
                                  size_t workspace_bytes, graft_report *report)
{
    graft_optimize_run *run = NULL;
    return open_report(graph, policy, options, options->step_limit, workspace, workspace_bytes,
                       report, &run);
}

graft_status graft_optimize_some(void *workspace, uint32_t candidate_limit, bool *finished)
{
    graft_optimize_run *run = (graft_optimize_run *)(void *)align_buffer(workspace);
    *finished = run->phase == GRAFT_PHASE_END;
    if (*finished) {
        return GRAFT_OK;
    }
    run->budget = candidate_limit > 0 ? candidate_limit : 1;
    graft_status status = go_on(run);
    if (status != GRAFT_OK) {
        run->phase = GRAFT_PHASE_END;
    }
    *finished = run->phase == GRAFT_PHASE_END;
    if (*finished) {
        close_report(run);
    }
    return status;
}

graft_status graft_optimize(graft_graph *graph, const graft_policy *policy,
                            const graft_optimize_options *options, void *workspace,
                            size_t workspace_bytes, graft_report *report)
{
    bool finished = false;
    graft_status status =
        graft_optimize_begin(graph, policy, options, workspace, workspace_bytes, report);
    while (status == GRAFT_OK && !finished) {
        status = graft_optimize_some(workspace, UINT32_MAX, &finished);
    }
    return status;
}

#endif
