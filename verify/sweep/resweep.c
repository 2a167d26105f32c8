/* resweep.c - see resweep.h. */
#include "verify/sweep/resweep.h"

#include "verify/sizes/symmodel.h"
#include "verify/sweep/boundary.h"

enum { POINTS_LEAST = 40, MODELS = 48 };

/* What instances at the boundaries may take, of rules that are not proved for all sizes and of
 * those that are. */
static const uint64_t boundary_effort = 6000000;
static const uint64_t boundary_tests_effort = 150000;
static const uint64_t model_resources = 500000;

/* Sweeps at the numbers that the rule names, which lie past the bounds mostly, beside some points.
 * `agreed` does not count what is found there. */
static void sweep_boundary(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                           uint32_t samples, const graft_boundary_options *options,
                           graft_check *check)
{
    graft_domain domain;
    graft_sweep_result result;
    graft_boundary_find(env, env->unit, rule, options, &domain);
    graft_sweep_domain(env, sweeper, rule, &domain, samples, &result);
    if (result.refuted) {
        result.agreed = check->sweep.agreed;
        check->sweep = result;
        check->outcome = GRAFT_CHECK_REFUTED;
        check->cover_bytes = 0;
    }
}

/* Sweeps beside what Z3 finds where sizes are related. */
static void sweep_models(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                         uint32_t samples, graft_check *check)
{
    graft_point points[MODELS];
    uint32_t count = graft_symbolic_models(env, rule, model_resources, points, MODELS);
    if (count > 0) {
        const graft_boundary_options options = {points, count, boundary_effort};
        sweep_boundary(env, sweeper, rule, samples, &options, check);
    }
}

void graft_resweep(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                   uint32_t samples, graft_check *check)
{
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        const graft_boundary_options options = {check->instances, check->cover, boundary_effort};
        sweep_boundary(env, sweeper, rule, samples, &options, check);
    }
    if (check->outcome == GRAFT_CHECK_SWEPT && !check->complete &&
        check->sweep.agreed < POINTS_LEAST) {
        check->outcome = GRAFT_CHECK_THIN;
    }
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        sweep_models(env, sweeper, rule, samples, check);
    }
}

void graft_resweep_named(graft_env *env, const graft_rule *rule, graft_domain *domain)
{
    graft_point points[MODELS];
    uint32_t count = graft_symbolic_models(env, rule, model_resources, points, MODELS);
    const graft_boundary_options options = {points, count, boundary_effort};
    graft_boundary_find(env, env->unit, rule, &options, domain);
}

void graft_resweep_proved(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                          uint32_t samples, graft_check *check)
{
    if (check->outcome == GRAFT_CHECK_PROVED) {
        const graft_boundary_options options = {check->instances, check->cover,
                                                boundary_tests_effort};
        sweep_boundary(env, sweeper, rule, samples, &options, check);
    }
}
