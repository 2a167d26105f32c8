/* follow.c - see follow.h. */
#include "emit/policy/follow.h"

#include "graph/base/log.h"
#include "graph/rule/rounding.h"

#include <string.h>

enum { ROUNDS = 3 };

/* A policy at work: what its graphs cost. */
typedef struct {
    graft_env *env;
    graft_session *session;
    const graft_follow_options *o;
    graft_optimize_options options;
    const graft_rule *rules;
    uint8_t *skipped;   /* As in graft_optimize_options. */
    double *gains_ns;   /* By rule: of its rewrites together. */
    graft_trace *trace; /* NULL: rewrites are not noted. */
    graft_state state;  /* To price each graph in. */
    double last_ns;
    double least_ns;
    uint32_t count; /* Rewrites so far. */
    uint32_t least_count;
    graft_status status; /* The first failure. */
} following;

static graft_status unpack_rules(graft_env *env, const graft_follow_options *o, graft_rule *rules)
{
    for (uint32_t r = 0; r < o->policy->rule_count; r++) {
        graft_status status = graft_policy_rule(o->policy, r, &rules[r]);
        if (status != GRAFT_OK) {
            return GRAFT_FAIL(env, status, "%s: rule %u is malformed", o->path, r);
        }
    }
    return GRAFT_OK;
}

static void skip(following *f, uint32_t rule)
{
    f->skipped[rule / 8] = (uint8_t)(f->skipped[rule / 8] | 1U << rule % 8);
}

/* Only rules that give the same bits in the types that the model has. */
static void be_exact(following *f)
{
    f->options.exact = true;
    for (uint32_t r = 0; r < f->o->policy->rule_count; r++) {
        if (f->session->model->has_halves && !graft_rule_rounds_alike(&f->rules[r])) {
            skip(f, r);
        }
    }
}

static graft_status price(following *f, const graft_graph *graph, double *ns)
{
    GRAFT_PASS(graft_state_set(f->env, &f->state, graph));
    return graft_session_price(f->env, f->session, &f->state.graph, &f->state.order, ns);
}

static void observe(void *context, const graft_graph *graph, const graft_decision *decision)
{
    following *f = context;
    graft_trace_step step = {.rule = &f->rules[decision->rule],
                             .name = f->o->names[decision->rule]};
    if (f->status == GRAFT_OK) {
        f->status = price(f, graph, &step.ns);
    }
    if (f->status != GRAFT_OK) {
        return;
    }
    if (f->trace != NULL) {
        graft_trace_add(f->trace, graph, &step, decision->nodes, decision->node_count);
    }
    f->gains_ns[decision->rule] += f->last_ns - step.ns;
    f->last_ns = step.ns;
    f->count++;
    if (step.ns <= f->least_ns) {
        f->least_ns = step.ns;
        f->least_count = f->count;
    }
}

/* The rewrites that the policy makes of the model, `most` at most, without the skipped rules. The
 * environment has what they lead to as its state. */
static graft_status take_rewrites(following *f, uint32_t most)
{
    graft_env *env = f->env;
    graft_environment *environment = &f->session->environment;
    const graft_graph *first = &environment->first.graph;
    const graft_policy *policy = f->o->policy;
    graft_report report = {.decisions = NULL};
    graft_state state;
    GRAFT_SCOPED(env->scratch);
    graft_state_open(env->scratch, &first->limits, &state);
    GRAFT_PASS(graft_state_set(env, &state, first));
    f->options.step_limit = most;
    f->last_ns = environment->first_ns;
    f->least_ns = environment->first_ns;
    f->count = 0;
    f->least_count = 0;
    memset(f->gains_ns, 0, policy->rule_count * sizeof f->gains_ns[0]);
    size_t bytes = graft_optimize_workspace_most_bytes(policy, &first->limits, most);
    graft_status status = graft_optimize(&state.graph, policy, &f->options,
                                         graft_arena_alloc(env->scratch, bytes), bytes, &report);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "%s: the policy failed on the model: %s", f->o->path,
                          graft_status_name(status));
    }
    GRAFT_PASS(f->status);
    return graft_state_set(env, &environment->state, &state.graph);
}

/* Leaves out what made graphs dearer; false when there is nothing of that kind. */
static bool skip_what_loses(following *f)
{
    bool any = false;
    for (uint32_t r = 0; r < f->o->policy->rule_count; r++) {
        if (f->gains_ns[r] < 0.0) {
            skip(f, r);
            any = true;
        }
    }
    return any;
}

/* How many rewrites, without which rules, lead to the cheapest graph. */
static graft_status find_what_pays(following *f, uint32_t most, uint32_t *count)
{
    const size_t bytes = f->o->policy->rule_count / 8u + 1u;
    const graft_environment *environment = &f->session->environment;
    const double first_ns = environment->first_ns;
    double least_ns = first_ns * (1.0 - environment->options.least_gain);
    GRAFT_SCOPED(f->env->scratch);
    uint8_t *best = GRAFT_COPY(f->env->scratch, f->skipped, bytes);
    *count = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        GRAFT_PASS(take_rewrites(f, most));
        if (f->least_ns < least_ns) {
            least_ns = f->least_ns;
            *count = f->least_count;
            memcpy(best, f->skipped, bytes);
        }
        graft_log(f->env, 1, "the policy's %u rewrites cost %.3f of the model, the first %u %.3f",
                  f->count, f->last_ns / first_ns, f->least_count, f->least_ns / first_ns);
        if (!skip_what_loses(f)) {
            break;
        }
    }
    memcpy(f->skipped, best, bytes);
    return GRAFT_OK;
}

graft_status graft_follow(graft_env *env, graft_session *session,
                          const graft_follow_options *options, graft_plan_found *found)
{
    const graft_environment *environment = &session->environment;
    const uint32_t rules = options->policy->rule_count;
    uint32_t count = environment->options.step_limit;
    following f = {
        .env = env,
        .session = session,
        .o = options,
        .options = {.weight_bytes_limit = environment->options.apply.weight_bytes_limit,
                    .call_ns = graft_session_call_ns(session),
                    .simplify = true,
                    .guard = true,
                    .observe = observe}
    };
    graft_rule *unpacked = GRAFT_NEW(env->life, graft_rule, rules);
    GRAFT_PASS(unpack_rules(env, options, unpacked));
    f.rules = unpacked;
    f.skipped = GRAFT_NEW(env->life, uint8_t, rules / 8u + 1u);
    f.gains_ns = GRAFT_NEW(env->life, double, rules);
    f.options.skipped_rules = f.skipped;
    f.options.observe_context = &f;
    graft_state_open(env->life, &environment->first.graph.limits, &f.state);
    const uint64_t start_ns = graft_clock_ns();
    if (options->exact) {
        be_exact(&f);
    }
    if (!options->all) {
        GRAFT_PASS(find_what_pays(&f, count, &count));
    }
    f.trace = options->trace;
    GRAFT_PASS(take_rewrites(&f, count));
    *found = (graft_plan_found){.cost_ns = f.last_ns,
                                .step_count = f.count,
                                .seconds = (double)(graft_clock_ns() - start_ns) / 1e9};
    return GRAFT_OK;
}
