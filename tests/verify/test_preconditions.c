/* Every part of the precondition of some committed rules, left out in turn: a place at which the
 * sides differ must appear. Parts for which none does are printed: samples, from which
 * preconditions are learnt, may leave a few that only restate what shapes imply. `make test-long`
 * looks at all. */
#include "tests/support/check.h"
#include "tests/support/preconditions.h"
#include "tests/support/rows.h"

/* One in so many at most. */
enum { NEEDLESS_SHARE = 20, EVERY = 4 };

CHECK_CASE(test_all)
{
    const graft_ruleset set = rows_committed(env);
    preconditions_tally tally = preconditions_try(env, &set, 1, EVERY);
    assert_true(tally.parts > 0);
    assert_true(tally.needless * NEEDLESS_SHARE <= tally.parts);
}
