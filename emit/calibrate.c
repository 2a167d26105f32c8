/* calibrate.c - see calibrate.h. */
#include "emit/calibrate.h"

#include <math.h>

/* -------------------------------------------------------------- the latent */

/* What the engine says about one state; the result is valid until env->scratch is released. */
static graft_status score_state(graft_env *env, const graft_policy *policy,
                                const graft_states *states, uint32_t s, graft_scores *scores)
{
    const graft_policy_state *state = &states->items[s];
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = states->apply.weight_bytes_limit;
    size_t bytes = graft_optimize_workspace_bytes(policy, &state->graph->limits, 0);
    void *workspace = graft_arena_alloc(env->scratch, bytes);
    graft_status status =
        graft_policy_scores(state->graph, policy, &options, workspace, bytes, scores);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the engine cannot score a graph: %s",
                          graft_status_name(status));
    }
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (scores->counts[r] != state->counts[r]) {
            return GRAFT_FAIL(env, GRAFT_INTERNAL, "rule %u has %u locations, recorded were %u", r,
                              scores->counts[r], state->counts[r]);
        }
    }
    return GRAFT_OK;
}

/* Sums over the states for fitting y = slope x + shift: x integer tanh, y float standardised. */
typedef struct {
    double x;
    double y;
    double xx;
    double xy;
} line_sums;

static graft_status sum_latents(graft_env *env, const graft_float_policy *network,
                                const graft_states *states, const graft_policy *policy,
                                line_sums *sums)
{
    graft_status status = GRAFT_OK;
    for (uint32_t s = 0; s < states->count; s++) {
        const graft_policy_state *state = &states->items[s];
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_scores scores;
        status = score_state(env, policy, states, s, &scores);
        if (status == GRAFT_OK) {
            graft_float_scores real =
                graft_reference_run(network, env->scratch, &state->arrays, state->counts, NULL);
            for (uint32_t i = 0; i < network->latent; i++) {
                double x = (double)scores.tanhs[i] * GRAFT_TANH_UNIT;
                double y = (double)real.latent[i];
                sums[i].x += x;
                sums[i].y += y;
                sums[i].xx += x * x;
                sums[i].xy += x * y;
            }
        }
        graft_arena_release(env->scratch, mark);
        if (status != GRAFT_OK) {
            return status;
        }
    }
    return GRAFT_OK;
}

/* The slope lies between half and twice the float network's own: with few states, or an entry that
 * hardly moves, noise must not decide. */
static graft_latent_line fit_line(const line_sums *sums, double count, double float_slope)
{
    double mean_x = sums->x / count;
    double mean_y = sums->y / count;
    double spread = sums->xx / count - mean_x * mean_x;
    double covariance = sums->xy / count - mean_x * mean_y;
    double slope = spread > 1e-14 ? covariance / spread : float_slope;
    slope = fmin(fmax(slope, 0.5 * float_slope), 2.0 * float_slope);
    return (graft_latent_line){slope, mean_y - slope * mean_x};
}

static graft_status fit_latents(graft_env *env, graft_arena *arena,
                                const graft_float_policy *network, const graft_ranges *ranges,
                                const graft_states *states, graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    line_sums *sums = GRAFT_NEW(env->scratch, line_sums, network->latent);
    int32_t *centres = GRAFT_NEW(arena, int32_t, network->latent);
    graft_scale *scales = GRAFT_NEW(arena, graft_scale, network->latent);
    GRAFT_CHECK(sum_latents(env, network, states, policy, sums));
    for (uint32_t i = 0; i < network->latent; i++) {
        double slope = network->latent_scale != NULL ? (double)network->latent_scale[i] : 1.0;
        GRAFT_CHECK(graft_latent_quantise(env, ranges, fit_line(&sums[i], states->count, slope),
                                          &centres[i], &scales[i]));
    }
    policy->latent_centres = centres;
    policy->latent_scales = scales;
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_policy_calibrate(graft_env *env, graft_arena *arena,
                                    const graft_float_policy *network, const graft_states *states,
                                    graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    if (states->count == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "a policy cannot be quantised without states");
    }
    graft_ranges ranges = {0};
    for (uint32_t s = 0; s < states->count; s++) {
        graft_ranges_add(&ranges, network, env->scratch, &states->items[s].arrays,
                         states->items[s].counts);
    }
    GRAFT_CHECK(graft_quantise(env, arena, network, &ranges, policy));
    GRAFT_CHECK(fit_latents(env, arena, network, &ranges, states, policy));
done:
    return status;
}

/* --------------------------------------------------------------- agreement */

/* Products over all states and entries of float (z) and integer (q) latents. */
typedef struct {
    double zz;
    double zq;
    double qq;
} latent_sums;

static void sum_products(latent_sums *sums, const float *z, const int16_t *q, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sums->zz += (double)z[i] * (double)z[i];
        sums->zq += (double)z[i] * q[i];
        sums->qq += (double)q[i] * q[i];
    }
}

static void compare_state(graft_agreement *agreement, latent_sums *sums,
                          const graft_float_policy *network, graft_arena *scratch,
                          const graft_policy_state *state, const graft_scores *scores)
{
    graft_float_scores real =
        graft_reference_run(network, scratch, &state->arrays, state->counts, NULL);
    uint32_t rule = graft_reference_rule(network, real.xfers, state->counts);
    sum_products(sums, real.latent, scores->latent, network->latent);
    agreement->state_count++;
    agreement->margin_lost =
        fmax(agreement->margin_lost, (double)real.xfers[rule] - (double)real.xfers[scores->rule]);
    if (rule == scores->rule) {
        uint32_t location = 0;
        if (rule < network->rule_count) {
            const float *logits =
                graft_reference_locations(network, scratch, real.trunk, rule, NULL);
            location = graft_reference_location(logits, state->counts[rule]);
        }
        agreement->rule_count++;
        agreement->location_count += location == scores->location;
    }
}

graft_status graft_agreement_measure(graft_env *env, const graft_float_policy *network,
                                     const graft_policy *policy, const graft_states *states,
                                     graft_agreement *agreement)
{
    latent_sums sums = {0.0, 0.0, 0.0};
    *agreement = (graft_agreement){.state_count = 0};
    for (uint32_t s = 0; s < states->count; s++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_scores scores;
        graft_status status = score_state(env, policy, states, s, &scores);
        if (status == GRAFT_OK) {
            compare_state(agreement, &sums, network, env->scratch, &states->items[s], &scores);
        }
        graft_arena_release(env->scratch, mark);
        if (status != GRAFT_OK) {
            return status;
        }
    }
    double left = sums.qq > 0.0 ? sums.zz - sums.zq * sums.zq / sums.qq : sums.zz;
    double count = (double)states->count * network->latent;
    agreement->latent_error = count > 0.0 ? sqrt(fmax(left, 0.0) / count) : 0.0;
    return GRAFT_OK;
}
