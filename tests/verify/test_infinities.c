/* Nothing but the float executor: at small whole numbers, many of them 0, a number of the source is
 * none that the target makes an infinity or NaN, for any rule of the committed set. Of two that it
 * once had this was not so. */
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/domain.h"
#include "verify/sweep/refute.h"

#include <math.h>

enum { POINTS = 8, ATTEMPTS = 20000 };

/* Whether some inputs make the target undefined where the source is a number. */
static bool is_undefined(graft_env *env, const graft_rule *rule, uint32_t *tried)
{
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 77};
    bool found = false;
    graft_arena_reset(env->unit);
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    for (uint32_t i = 0; i < domain.count && !found; i++) {
        graft_refutation r;
        found = graft_refute_point(env, rule, &domain.points[i], &r) && !isfinite(r.target);
    }
    *tried += domain.count;
    return found;
}

CHECK_CASE(test_committed_rules)
{
    const graft_ruleset set = rows_committed(env);
    uint32_t tried = 0;
    uint32_t undefined = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        if (is_undefined(env, &set.entries[i].rule, &tried)) {
            print_error("%s\n", set.entries[i].name);
            undefined++;
        }
    }
    assert_int_equal(undefined, 0);
    assert_true(tried > set.count * (POINTS / 2));
}

CHECK_CASE(test_rules_that_were_committed)
{
    static const char *const texts[] = {
        "div(a, div(div(a, b), a)) = div(b, div(div(b, a), b))",
        "div(reduce_mean#1(mul(a, a)), mul(b, div(reduce_mean#1(mul(a, a)), a))) = "
        "div(a, div(mul(a, b), a))",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const graft_rule rule = rows_parse(env, texts[i]);
        uint32_t tried = 0;
        if (!is_undefined(env, &rule, &tried)) {
            fail_msg("no inputs found: %s", texts[i]);
        }
    }
}
