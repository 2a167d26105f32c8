/* Nothing lost: laws that others have published (tests/verify/rules/published.txt) are given to no
 * stage of Graft, and follow from the committed set: by one rule, read in either direction, or by
 * up to three rules one after the other. */
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/set/derive.h"
#include "verify/set/reverse.h"
#include "verify/sweep/domain.h"

enum { POINTS = 4, ATTEMPTS = 40000 };

static graft_rulebook read_book(graft_env *env)
{
    const graft_ruleset set = rows_committed(env);
    graft_rulebook book;
    graft_rulebook_open(&book, env->life);
    for (uint32_t i = 0; i < set.count; i++) {
        graft_rule *reversed = GRAFT_NEW(env->life, graft_rule, 1);
        graft_rulebook_add(&book, &set.entries[i].rule, 2 * i);
        if (graft_rule_reverse(&set.entries[i].rule, reversed) == NULL) {
            graft_rulebook_add(&book, reversed, 2 * i + 1);
        }
    }
    return book;
}

static bool follows(graft_env *env, const graft_rulebook *book, graft_deriver *deriver,
                    const graft_rule *rule)
{
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 3};
    graft_derivation derivation;
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    for (uint32_t i = 0; i < domain.count; i++) {
        if (!graft_derive(deriver, rule, &domain.points[i], book, false, &derivation)) {
            return false;
        }
    }
    return domain.count > 0;
}

CHECK_CASE(test_published_laws_follow)
{
    graft_rulebook book = read_book(env);
    graft_deriver *deriver = graft_deriver_new(env->life);
    const rule_rows laws = rows_read(env, "published");
    uint32_t missing = 0;
    for (uint32_t i = 0; i < laws.count; i++) {
        if (!follows(env, &book, deriver, &laws.rules[i])) {
            print_message("# not found: %s\n", laws.texts[i]);
            missing++;
        }
        graft_arena_reset(env->unit);
    }
    assert_int_equal(missing, 0);
}

/* What is false must not follow, whatever the book. */
CHECK_CASE(test_false_law_does_not_follow)
{
    graft_rulebook book = read_book(env);
    graft_deriver *deriver = graft_deriver_new(env->life);
    const graft_rule rule = rows_parse(env, "relu(add(a, b)) = add(relu(a), relu(b))");
    assert_false(follows(env, &book, deriver, &rule));
}
