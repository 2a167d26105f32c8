/* optimize.h - the loop: rewriting by decisions, simplification and recorded plans, in one call or in
 * slices. */
#ifndef GRAFT_ENGINE_OPTIMIZE_H
#define GRAFT_ENGINE_OPTIMIZE_H

/* ---------------------------------------------------------------- rewriting */

/* The output that target node `n` takes over; where it takes over none, output 0, whose source node is
 * the anchor. */
static uint32_t graft_output_of_made(const graft_rule *rule, uint32_t n)
{
    uint32_t output = 0;
    for (uint32_t i = 1; i < graft_rule_outputs(rule); i++) {
        graft_operand x = rule->target.outputs[i];
        output = GRAFT_OPERAND_IS_NODE(x) && GRAFT_OPERAND_NODE_OF(x) == n ? i : output;
    }
    return output;
}

/* Applies the unpacked rule at the location, as it was planned, and tags what it makes: as the matched
 * node whose output it takes over, else as the anchor. */
static void graft_apply_location(graft_optimize_run *run, graft_effect *effect)
{
    uint32_t tags[GRAFT_RULE_OUTPUTS]; /* By output, read before ids are used again. */
    const graft_rule *rule = &run->rule;
    const graft_index *matched = run->application.match->nodes;
    uint32_t *node_tags = run->options.node_tags;
    for (uint32_t i = 0; node_tags != NULL && i < graft_rule_outputs(rule); i++) {
        tags[i] = node_tags[matched[GRAFT_OPERAND_NODE_OF(rule->source.outputs[i])]];
    }
    graft_apply_planned(run->graph, &run->application, effect);
    for (uint32_t n = 0; node_tags != NULL && n < rule->target.node_count; n++) {
        if (effect->created[n] != GRAFT_NONE) {
            node_tags[effect->created[n]] = tags[graft_output_of_made(rule, n)];
        }
    }
}

/* Applies the unpacked rule at the location that was found, orders the graph again and notes the
 * decision. What could fail was asked when the location was found; a rewrite closes no cycle. */
static void graft_rewrite(graft_optimize_run *run)
{
    graft_effect effect;
    graft_report *report = run->report;
    graft_decision *decision = &run->decision;
    decision->node_count = run->rule.source.node_count;
    graft_copy_bytes(decision->nodes, run->application.match->nodes,
                     decision->node_count * sizeof(graft_index));
    graft_apply_location(run, &effect);
    if (report->decisions != NULL && report->step_count < report->decision_limit) {
        report->decisions[report->step_count] = *decision;
    }
    report->step_count++;
    report->plan_step_count += decision->origin == GRAFT_FROM_PLAN;
    report->simplify_step_count += decision->origin == GRAFT_FROM_SIMPLIFY;
    report->weight_bytes = graft_add_saturating(report->weight_bytes, effect.weight_bytes);
    (void)graft_order_graph(run);
    if (run->options.observe != NULL) {
        run->options.observe(run->options.observe_context, run->graph, decision);
    }
}

static void graft_start_decision(graft_optimize_run *run, uint32_t rule, uint32_t location,
                                 graft_decision_origin origin)
{
    graft_zero_bytes(&run->decision, sizeof run->decision);
    run->decision.rule = (uint16_t)rule;
    run->decision.location = (uint16_t)location;
    run->decision.origin = (uint8_t)origin;
}

/* Applies what the policy decided; false, and nothing is applied, when it wants nothing. */
static bool graft_take_step(graft_optimize_run *run)
{
    const graft_scores *scores = &run->scan.scores;
    graft_start_decision(run, scores->rule, scores->location, GRAFT_FROM_POLICY);
    if (scores->rule == run->policy->rule_count) {
        run->report->stop = run->scan.open ? GRAFT_STOP_NO_OP : GRAFT_STOP_NO_RULE;
        return false;
    }
    run->decision.location_count = scores->counts[scores->rule];
    run->decision.cost_change = scores->change.cost;
    (void)graft_find_location(run, scores->rule, scores->location, run->options.weight_bytes_limit);
    graft_rewrite(run); /* It was found when it was looked at. */
    return true;
}

static GRAFT_APART uint64_t graft_hash_now(graft_optimize_run *run)
{
    return graft_graph_hash(run->graph, &run->memory.order, run->memory.hashes);
}

/* Prepares a call: checks, hashes, and an empty report. */
/* NOLINTNEXTLINE(readability-function-size): the interface's. */
static graft_status graft_open_report(graft_graph *graph, const graft_policy *policy,
                                      const graft_optimize_options *options, uint32_t step_limit,
                                      void *workspace, size_t workspace_bytes, graft_report *report)
{
    graft_optimize_run *run = graft_run_in(workspace);
    graft_status status =
        graft_open_run(graph, policy, options, step_limit, workspace, workspace_bytes);
    if (report != NULL) {
        graft_zero_bytes(&report->step_count, sizeof *report - offsetof(graft_report, step_count));
    }
    if (status == GRAFT_OK) {
        run->report = report != NULL ? report : &run->own_report;
        run->report->hash_before = graft_hash_now(run);
        run->report->active_before = graft_graph_active_count(run->graph);
        graft_estimate_now(run, &run->report->estimated_before);
        graft_note_first(run, run->report->estimated_before.cost);
    }
    return status;
}

static void graft_close_report(graft_optimize_run *run)
{
    run->report->hash_after = graft_hash_now(run);
    run->report->active_after = graft_graph_active_count(run->graph);
    graft_estimate_now(run, &run->report->estimated_after);
}

graft_status graft_policy_step(graft_graph *graph, const graft_policy *policy,
                               const graft_optimize_options *options, void *workspace,
                               size_t workspace_bytes, graft_decision *decision)
{
    graft_optimize_run *run = graft_run_in(workspace);
    graft_status status = graft_open_run(graph, policy, options, 0, workspace, workspace_bytes);
    if (status == GRAFT_OK) {
        graft_decide_at_once(run);
        (void)graft_take_step(run);
        *decision = run->decision;
    }
    return status;
}

/* ---------------------------------------------------------------- simplify */

/* Applies one rule marked "always"; false when none fits. Such a rule leaves fewer nodes. */
static bool graft_simplify_once(graft_optimize_run *run)
{
    const graft_policy *policy = run->policy;
    const graft_rule *rule = &run->rule;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if ((policy->rule_flags[r] & GRAFT_RULE_ALWAYS) != 0 &&
            graft_find_location(run, r, 0, run->options.weight_bytes_limit) &&
            rule->target.node_count < rule->source.node_count) {
            graft_start_decision(run, r, 0, GRAFT_FROM_SIMPLIFY);
            graft_rewrite(run);
            return true;
        }
    }
    return false;
}

static void graft_simplify_all(graft_optimize_run *run)
{
    while (run->report->step_count < run->options.step_limit && graft_simplify_once(run)) {
    }
}

graft_status graft_simplify(graft_graph *graph, const graft_policy *policy,
                            const graft_optimize_options *options, void *workspace,
                            size_t workspace_bytes, graft_report *report)
{
    graft_optimize_run *run = graft_run_in(workspace);
    graft_status status =
        graft_open_report(graph, policy, options, 0, workspace, workspace_bytes, report);
    if (status == GRAFT_OK) {
        graft_simplify_all(run);
        run->report->stop = run->report->step_count < options->step_limit ? GRAFT_STOP_NO_RULE
                                                                          : GRAFT_STOP_STEP_LIMIT;
        graft_close_report(run);
    }
    return status;
}

/* ------------------------------------------------------------------- plans */

#ifndef GRAFT_WITHOUT_PLANS

static const graft_recorded_plan *graft_find_plan(const graft_policy *policy, uint64_t hash)
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

/* Replays a plan; true when every step was found and the result is the recorded one. Locations were
 * counted without a limit on new weights. */
static bool graft_replay_plan(graft_optimize_run *run, const graft_recorded_plan *plan)
{
    for (uint32_t step = 0; step < plan->step_count; step++) {
        const uint32_t rule = plan->steps[step].rule;
        const uint32_t location = plan->steps[step].location;
        if (run->report->step_count == run->options.step_limit || rule >= run->policy->rule_count ||
            !graft_find_location(run, rule, location, UINT64_MAX) ||
            run->made.weight_bytes > run->options.weight_bytes_limit) {
            return false;
        }
        graft_start_decision(run, rule, location, GRAFT_FROM_PLAN);
        graft_rewrite(run);
    }
    return graft_hash_now(run) == plan->result_hash;
}

/* Looks the graph up and replays its plan; true when there is nothing left to decide. */
static bool graft_try_plan(graft_optimize_run *run)
{
    bool finished = false;
    const graft_recorded_plan *plan =
        run->options.use_plans ? graft_find_plan(run->policy, graft_hash_now(run)) : NULL;
    if (plan != NULL) {
        finished = graft_replay_plan(run, plan);
        run->report->stop = GRAFT_STOP_PLAN;
        run->report->plan_dropped |= !finished;
    }
    return finished;
}

#endif

/* -------------------------------------------------------------------- loop */

/* Whether this graph has been before; notes it otherwise. There is room: this is asked once before the
 * first rewrite and at most once behind each. */
static bool graft_note_graph(graft_optimize_run *run)
{
    uint64_t hash = graft_hash_now(run);
    for (uint32_t i = 0; i < run->seen_count; i++) {
        if (run->memory.seen[i] == hash) {
            return true;
        }
    }
    run->memory.seen[run->seen_count++] = hash;
    return false;
}

/* Replays a plan, before or after simplifying; true when there is nothing left to decide. */
static bool graft_follow_plan(graft_optimize_run *run)
{
#ifdef GRAFT_WITHOUT_PLANS
    (void)run; /* Policies with plans were refused. */
    return false;
#else
    bool finished = graft_try_plan(run);
    if (!finished && run->options.simplify) {
        uint32_t step_count = run->report->step_count;
        graft_simplify_all(run);
        finished =
            run->report->step_count > step_count && graft_try_plan(run); /* Recorded after it. */
    }
    return finished;
#endif
}

/* What comes before a decision. */
static GRAFT_APART void graft_prepare_decision(graft_optimize_run *run)
{
    graft_report *report = run->report;
    if (run->options.simplify) {
        graft_simplify_all(run);
    }
    run->phase = GRAFT_PHASE_END;
    if (run->options.guard && graft_note_graph(run)) {
        report->stop = GRAFT_STOP_REPEATED;
    } else if (report->step_count >= run->options.step_limit) {
        report->stop = GRAFT_STOP_STEP_LIMIT;
    } else {
        run->phase = GRAFT_PHASE_DECIDE;
        graft_start_scan(run);
    }
}

/* Goes on until the end, or the budget's. */
static void graft_go_on(graft_optimize_run *run)
{
    while (run->phase != GRAFT_PHASE_END) {
        if (run->phase == GRAFT_PHASE_BEGIN) {
            run->phase = graft_follow_plan(run) ? GRAFT_PHASE_END : GRAFT_PHASE_FOLLOW;
        } else if (run->phase == GRAFT_PHASE_FOLLOW) {
            graft_prepare_decision(run);
        } else if (!graft_decide_next(run)) {
            return; /* The next call goes on. */
        } else {
            run->phase = graft_take_step(run) ? GRAFT_PHASE_FOLLOW : GRAFT_PHASE_END;
        }
    }
    graft_close_report(run);
}

graft_status graft_optimize_begin(graft_graph *graph, const graft_policy *policy,
                                  const graft_optimize_options *options, void *workspace,
                                  size_t workspace_bytes, graft_report *report)
{
    return graft_open_report(graph, policy, options, options->step_limit, workspace,
                             workspace_bytes, report);
}

graft_status graft_optimize_some(void *workspace, uint32_t candidate_limit, bool *finished)
{
    graft_optimize_run *run = graft_run_in(workspace);
    if (run->phase != GRAFT_PHASE_END) {
        run->budget = candidate_limit > 0 ? candidate_limit : 1;
        graft_go_on(run);
    }
    *finished = run->phase == GRAFT_PHASE_END;
    return GRAFT_OK;
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
