/* prove.c - see prove.h. */
#include "verify/instances/prove.h"

#include "verify/instances/asking.h"

#include <assert.h>

const char *graft_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"proved", "refuted", "unknown", "within-bounds", "error"};
    return verdict < sizeof names / sizeof names[0] ? names[verdict] : "unknown";
}

graft_effort graft_effort_add(graft_effort a, graft_effort b)
{
    return (graft_effort){a.resource_count + b.resource_count, a.term_count + b.term_count};
}

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

graft_effort graft_effort_least(graft_effort a, graft_effort b)
{
    return (graft_effort){least_of(a.resource_count, b.resource_count),
                          least_of(a.term_count, b.term_count)};
}

static uint64_t left_of(uint64_t most, uint64_t used) { return used < most ? most - used : 0; }

graft_effort graft_effort_left(graft_effort most, graft_effort used)
{
    return (graft_effort){left_of(most.resource_count, used.resource_count),
                          left_of(most.term_count, used.term_count)};
}

const char *graft_prove_solver(graft_arena *arena)
{
    unsigned version[4] = {0};
    Z3_get_version(&version[0], &version[1], &version[2], &version[3]);
    return graft_arena_printf(arena, "z3 %u.%u.%u.%u", version[0], version[1], version[2],
                              version[3]);
}

static graft_verdict prove_point(graft_env *env, graft_prover *p, const graft_instance *instance)
{
    GRAFT_SCOPED(env->scratch);
    graft_obligation o;
    graft_obligation_build(&o, env->scratch, p->z3, instance);
    graft_verdict verdict = graft_prove_obligation(p, &o);
    graft_obligation_close(&o);
    return verdict;
}

void graft_prove_points(graft_env *env, graft_prover *p, const graft_rule *rule,
                        const graft_point *points, uint32_t count)
{
    graft_prove_result *result = p->result;
    result->verdict = count > 0 ? GRAFT_VERDICT_PROVED : GRAFT_VERDICT_UNKNOWN;
    for (uint32_t i = 0; i < count && result->verdict == GRAFT_VERDICT_PROVED; i++) {
        graft_instance instance;
        graft_fit fit = graft_instance_build(&instance, rule, &points[i]);
        assert(fit == GRAFT_FIT_OK);
        (void)fit;
        result->verdict = (uint8_t)prove_point(env, p, &instance);
        result->points += result->verdict == GRAFT_VERDICT_PROVED ? 1 : 0;
        result->failed = i;
    }
}
