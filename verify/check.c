/* check.c - see check.h. */
#include "verify/check.h"

#include "verify/set/price.h"
#include "verify/sizes/symmodel.h"
#include "verify/sweep/boundary.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/numeric.h"
#include "verify/sweep/rounding.h"

#include <string.h>

/* Choices that finding instances may take. Where they are rare, it takes many to find some. */
enum { ATTEMPTS_FEW = 80000, ATTEMPTS_MOST = 2000000 };
/* Points of the filter, the least that say anything, and samples of each. */
enum { FILTER_POINTS = 300, POINTS_LEAST = 6, SAMPLES = 2 };

graft_check_options graft_check_defaults(void)
{
    return (graft_check_options){.points = 2000, .cover = 64, .prove = graft_prove_defaults()};
}

const char *graft_check_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {
        "swept",   "proved",    "refuted", "too few instances", "refuted by the solver",
        "unknown", "restricted"};
    return outcome < sizeof names / sizeof names[0] ? names[outcome] : "unknown";
}

static void pick_cover(const graft_checking *c, const graft_domain *domain, graft_check *check)
{
    check->instances = graft_cover_pick(c->env, c->rule, domain, c->options->cover, &check->cover);
}

/* Sweeps a domain and picks a covering set of it. */
static void sweep_points(const graft_checking *c, const graft_domain *domain, graft_check *check)
{
    memset(check, 0, sizeof *check);
    check->complete = domain->complete;
    check->points = domain->count;
    graft_sweep_domain(c->env, c->sweeper, c->rule, domain, SAMPLES, &check->sweep);
    check->outcome = GRAFT_CHECK_REFUTED;
    if (!check->sweep.refuted) {
        bool enough = check->sweep.agreed >= POINTS_LEAST || domain->complete;
        bool decided = check->sweep.undecided * 2 <= domain->count;
        check->outcome = GRAFT_CHECK_THIN;
        if (check->sweep.agreed > 0 && enough && decided) {
            check->outcome = GRAFT_CHECK_SWEPT;
            pick_cover(c, domain, check);
        }
    }
}

/* Sweeps up to `points` instances, as many as are found. */
static void sweep_some(const graft_checking *c, uint32_t points, uint32_t attempts,
                       graft_check *check)
{
    const graft_domain_options find = {.points = points,
                                       .attempts = attempts,
                                       .enumerate = true,
                                       .seed = graft_rule_id(c->rule),
                                       .origin = c->origin};
    const graft_domain domain = graft_domain_find(c->env, c->env->unit, c->rule, &find);
    sweep_points(c, &domain, check);
}

void graft_check_filter(const graft_checking *c, graft_check *check)
{
    sweep_some(c, FILTER_POINTS, ATTEMPTS_FEW, check);
    if (check->outcome == GRAFT_CHECK_THIN) {
        sweep_some(c, FILTER_POINTS, ATTEMPTS_MOST, check);
    }
}

/* ------------------------------------------------------------------ past the bounds */

enum { AGREED_LEAST = 40, MODELS = 48 };

/* What instances at the boundaries may take, of rules that are not proved for all sizes and of
 * those that are. */
static const uint64_t boundary_effort = 6000000;
static const uint64_t boundary_tests_effort = 150000;
static const uint64_t model_resources = 500000;

/* Sweeps at the numbers that the rule names, which lie past the bounds mostly, beside some points.
 * `agreed` does not count what is found there. */
static void sweep_boundary(const graft_checking *c, const graft_boundary_options *options,
                           graft_check *check)
{
    graft_sweep_result result;
    const graft_domain domain = graft_boundary_find(c->env, c->rule, options);
    graft_sweep_domain(c->env, c->sweeper, c->rule, &domain, SAMPLES, &result);
    if (result.refuted) {
        result.agreed = check->sweep.agreed;
        check->sweep = result;
        check->outcome = GRAFT_CHECK_REFUTED;
        check->cover_bytes = 0;
    }
}

/* Points that Z3 finds where sizes are related, to look beside; there is room for MODELS. */
static graft_boundary_options find_models(const graft_checking *c, graft_point *points)
{
    uint32_t count = graft_symbolic_models(c->env, c->rule, model_resources, points, MODELS);
    return (graft_boundary_options){points, count, boundary_effort};
}

void graft_check_sweep(const graft_checking *c, graft_check *check)
{
    sweep_some(c, c->options->points, ATTEMPTS_MOST, check);
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        sweep_boundary(
            c, &(graft_boundary_options){check->instances, check->cover, boundary_effort}, check);
    }
    if (check->outcome == GRAFT_CHECK_SWEPT && !check->complete &&
        check->sweep.agreed < AGREED_LEAST) {
        check->outcome = GRAFT_CHECK_THIN;
    }
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        graft_point points[MODELS];
        const graft_boundary_options models = find_models(c, points);
        if (models.count > 0) {
            sweep_boundary(c, &models, check);
        }
    }
}

/* ------------------------------------------------------------ proofs for all sizes */

/* The same where all may take less. */
static graft_prove_options with_most(const graft_prove_options *options, graft_effort most)
{
    graft_prove_options less = *options;
    less.most = most;
    return less;
}

/* A rule on its way through proofs, those of its restrictions included. They share a solver. */
typedef struct {
    const graft_checking *c;
    graft_check *check;
    graft_prover prover;
    graft_prove_result counts; /* Of the task at hand. */
    graft_symbolic *symbolic;
} checker;

/* Whether a rule is proved for all sizes. It may take options->most. */
static bool is_proved_unbounded(checker *k, const graft_rule *rule,
                                const graft_prove_options *options)
{
    graft_check *check = k->check;
    graft_symbolic_try(k->symbolic, rule, options, &check->unbounded);
    check->effort = graft_effort_add(check->effort, check->unbounded.effort);
    check->prove.questions += check->unbounded.questions;
    check->prove.resource_count += check->unbounded.effort.resource_count;
    return check->unbounded.proved;
}

/* ------------------------------------------------------------------- restrictions */

/* A search for a restriction. One that is wider than what is proved already may take a few times
 * what that took: where it takes more it hardly ever ends, and each of many would take all. */
typedef struct {
    checker *k;
    const graft_found_rule *found;
    graft_found_rule narrow; /* The widest that is proved, */
    graft_effort took;       /* and what the first proof took; */
    bool is_proved;          /* if any is. */
} restrictor;

static const graft_effort effort_base = {4000000, 40000};
enum { EFFORT_TIMES = 4 };

/* Whether it is the rule that is to be restricted: what failed, fails. */
static bool is_found(const restrictor *r, const graft_rule *rule)
{
    return graft_rule_id(rule) == graft_rule_id(&r->found->rule);
}

/* Whether a rule is proved with what it may take. */
static bool try_proof(restrictor *r, const graft_rule *rule)
{
    const graft_prove_options *share = &r->k->c->options->prove;
    const graft_effort before = r->k->check->effort;
    graft_effort left = graft_effort_left(share->most, before);
    if (r->is_proved) {
        graft_effort most = effort_base;
        for (uint32_t i = 0; i < EFFORT_TIMES; i++) {
            most = graft_effort_add(most, r->took);
        }
        left = graft_effort_least(left, most);
    }
    const graft_prove_options options = with_most(share, left);
    bool proved = is_proved_unbounded(r->k, rule, &options);
    if (proved && !r->is_proved) {
        r->took = graft_effort_left(r->k->check->effort, before);
        r->is_proved = true;
    }
    return proved;
}

typedef enum { TRY_INVALID, TRY_FAILED, TRY_PROVED } try_outcome;

/* Restricts the rule to what it was found at: some slots to what they were, variables to their
 * ranks. */
static try_outcome try_restriction(restrictor *r, uint64_t slots)
{
    graft_found_rule pinned;
    graft_found_rule narrow;
    graft_env *env = r->k->c->env;
    if (!graft_rule_pin(env, r->found, slots, &pinned) ||
        !graft_rule_narrow(env, &pinned.rule, &pinned.origin, &narrow.rule) ||
        is_found(r, &narrow.rule)) {
        return TRY_INVALID;
    }
    if (!try_proof(r, &narrow.rule)) {
        return TRY_FAILED;
    }
    narrow.origin = pinned.origin;
    r->narrow = narrow;
    return TRY_PROVED;
}

/* The lower half of some bits. */
static uint64_t lower_half(uint64_t bits)
{
    uint64_t half = 0;
    for (int left = __builtin_popcountll(bits) / 2; left > 0; left--) {
        half |= bits & ~half & -(bits & ~half);
    }
    return half;
}

/* Leaves out some of the slots that are pinned, as many as the proof does without: all at once,
 * else in two parts, of which `first` is one if it is a part of them and not all. */
static void leave_out(restrictor *r, uint64_t *pinned, uint64_t some, uint64_t first)
{
    if (some == 0 || try_restriction(r, *pinned & ~some) == TRY_PROVED) {
        *pinned &= ~some;
        return;
    }
    uint64_t part = first == 0 || first == some ? lower_half(some) : first;
    if (part != 0) {
        leave_out(r, pinned, part, 0);
        leave_out(r, pinned, some & ~part, 0);
    }
}

/* All slots, where that can be proved; then as few as suffice, the target's left out first. */
static bool pin_slots(restrictor *r)
{
    const graft_rule *rule = &r->found->rule;
    uint64_t pinned = graft_rule_pinnable(rule, false);
    if (try_restriction(r, pinned) == TRY_FAILED) {
        return false;
    }
    leave_out(r, &pinned, pinned, pinned & ~graft_rule_pinnable(rule, true));
    return r->is_proved;
}

/* Restricts a rule to what it was found at, leaves out again what the proof for all sizes does not
 * need of that, and of its precondition. False when there is no such proof. */
static bool find_restriction(checker *k)
{
    const graft_checking *c = k->c;
    graft_rule weaker;
    if (!c->options->restricts || c->origin == NULL) {
        return false;
    }
    const graft_found_rule found = {.rule = *c->rule, .origin = *c->origin};
    restrictor r = {.k = k, .found = &found};
    if (!pin_slots(&r)) {
        return false;
    }
    for (uint32_t part = 0; graft_rule_without(c->env, &r.narrow.rule, part, &weaker);) {
        if (!is_found(&r, &weaker) && try_proof(&r, &weaker)) {
            r.narrow.rule = weaker;
        } else {
            part++;
        }
    }
    k->check->outcome = GRAFT_CHECK_RESTRICTED;
    k->check->restricted = GRAFT_NEW(c->env->unit, graft_found_rule, 1);
    *k->check->restricted = r.narrow;
    return true;
}

/* ----------------------------------------------------------------------- instances */

/* Of a rule's share, what its instances may take: a few times what any rule of the set needs. Z3
 * multiplies them out, which takes longer than its count says. */
static const uint64_t instance_resources = 15000000;

static graft_prove_options instance_options(const graft_prove_options *options)
{
    const graft_effort most = {instance_resources, UINT64_MAX};
    return with_most(options, graft_effort_least(options->most, most));
}

static graft_check_outcome judge(const graft_check *check)
{
    return check->prove.verdict == GRAFT_VERDICT_PROVED    ? GRAFT_CHECK_PROVED
           : check->prove.verdict == GRAFT_VERDICT_REFUTED ? GRAFT_CHECK_SAT
                                                           : GRAFT_CHECK_UNKNOWN;
}

/* Asks Z3 about the covering set. */
static void prove_instances(checker *k)
{
    graft_check *check = k->check;
    const graft_prove_options most = instance_options(&k->c->options->prove);
    graft_prover_begin(&k->prover, &most, &k->counts);
    graft_prove_points(k->c->env, &k->prover, k->c->rule, check->instances, check->cover);
    k->counts.questions += check->prove.questions;
    k->counts.resource_count += check->prove.resource_count;
    check->prove = k->counts;
}

/* A rule that is proved for all sizes needs no proof at each instance; Z3 is asked at some, since a
 * proof that does not rest on symbolic readings is worth having. Where it gives up, it mostly does
 * so again. */
enum { TESTS_MOST = 16, SMALL_FIRST = 3, UNDECIDED_MOST = 8, UNDECIDED_ENOUGH = 2 };

/* Puts a few of the instances with the least work first: Z3 can do something with those. */
static void put_small_first(const graft_rule *rule, graft_point *points, uint32_t count)
{
    for (uint32_t k = 0; k < SMALL_FIRST && k < count; k++) {
        uint32_t best = k;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = k; i < count; i++) {
            graft_instance instance;
            bool fits = graft_instance_build(&instance, rule, &points[i]) == GRAFT_FIT_OK;
            uint64_t work = fits ? graft_instance_work(&instance) : UINT64_MAX;
            best = work < least ? i : best;
            least = work < least ? work : least;
        }
        graft_point small = points[best];
        memmove(&points[k + 1], &points[k], (best - k) * sizeof *points);
        points[k] = small;
    }
}

/* Keeps those of the covering set that are proved. */
static void test_instances(checker *k)
{
    graft_check *check = k->check;
    const graft_prove_options share = instance_options(&k->c->options->prove);
    uint32_t most = check->cover < TESTS_MOST ? check->cover : TESTS_MOST;
    uint32_t kept = 0;
    uint32_t undecided = 0;
    graft_effort used = {0, 0};
    graft_prove_result *prove = &check->prove;
    prove->verdict = GRAFT_VERDICT_UNKNOWN;
    put_small_first(k->c->rule, check->instances, check->cover);
    for (uint32_t i = 0; i < most && undecided < (kept > 0 ? UNDECIDED_ENOUGH : UNDECIDED_MOST);
         i++) {
        const graft_prove_options rest = with_most(&share, graft_effort_left(share.most, used));
        const graft_prove_result *some = &k->counts;
        graft_prover_begin(&k->prover, &rest, &k->counts);
        graft_prove_points(k->c->env, &k->prover, k->c->rule, &check->instances[i], most - i);
        used.resource_count += some->resource_count;
        prove->questions += some->questions;
        prove->resource_count += some->resource_count;
        memmove(&check->instances[kept], &check->instances[i],
                some->points * sizeof *check->instances);
        kept += some->points;
        i += some->points;
        if (some->verdict == GRAFT_VERDICT_REFUTED) {
            prove->verdict = GRAFT_VERDICT_REFUTED;
            prove->failed = i;
            return;
        }
        memcpy(prove->reason, some->reason, sizeof prove->reason);
        undecided++;
    }
    if (kept > 0) {
        prove->verdict = GRAFT_VERDICT_PROVED;
        prove->points = kept;
        check->cover = kept;
    }
}

/* A difference at a few hundred instances at the boundaries would show a mistake of ours in the
 * proof for all sizes. */
static void prove_all_sizes(checker *k)
{
    graft_check *check = k->check;
    test_instances(k);
    check->outcome = (uint8_t)judge(check);
    if (check->outcome == GRAFT_CHECK_PROVED) {
        const graft_boundary_options options = {check->instances, check->cover,
                                                boundary_tests_effort};
        sweep_boundary(k->c, &options, check);
    }
    check->proof = GRAFT_PROOF_UNBOUNDED;
}

/* All that can be said of a rule that is not. */
static void prove_cover(checker *k)
{
    graft_check *check = k->check;
    const graft_check before = *check;
    graft_check_sweep(k->c, check);
    check->unbounded = before.unbounded;
    check->prove = before.prove;
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        prove_instances(k);
        check->outcome = (uint8_t)judge(check);
        check->proof = GRAFT_PROOF_BOUNDED;
    }
}

void graft_check_prove(const graft_checking *c, graft_check *check)
{
    const graft_prove_options *options = &c->options->prove;
    checker k = {.c = c, .check = check};
    graft_prover_open(&k.prover, options, &k.counts);
    k.symbolic = graft_symbolic_open(c->env, &k.prover);
    if (is_proved_unbounded(&k, c->rule, options)) {
        prove_all_sizes(&k);
    } else if (!find_restriction(&k)) {
        prove_cover(&k);
    }
    if (check->outcome == GRAFT_CHECK_PROVED) {
        check->numeric = (uint8_t)graft_numeric_classify(c->env, k.symbolic, c->rule,
                                                         check->instances, check->cover, options);
        if (check->numeric == GRAFT_NUMERIC_REASSOCIATING) {
            graft_rounding_measure(c->env, c->rule, check->instances, check->cover,
                                   &check->rounding);
        }
        check->cover_points = graft_cover_pack(c->env->unit, c->rule, check->instances,
                                               check->cover, &check->cover_bytes);
    }
    graft_symbolic_close(k.symbolic);
    graft_prover_close(&k.prover);
}

/* A rule may have instances past the bounds alone. A difference there refutes it; where there is
 * none, a proof for all sizes is as good as any, and without one it is what it was. */
static void check_thin(const graft_checking *c, graft_check *check)
{
    graft_point points[MODELS];
    const graft_check thin = *check;
    const graft_boundary_options models = find_models(c, points);
    const graft_domain domain = graft_boundary_find(c->env, c->rule, &models);
    sweep_points(c, &domain, check);
    if (check->outcome == GRAFT_CHECK_THIN && check->sweep.agreed > 0) {
        check->outcome = GRAFT_CHECK_SWEPT; /* One is enough beside a proof for all sizes. */
        pick_cover(c, &domain, check);
    }
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        graft_check_prove(c, check);
    }
    bool proved = check->outcome == GRAFT_CHECK_PROVED && check->proof == GRAFT_PROOF_UNBOUNDED;
    if (!proved && check->outcome != GRAFT_CHECK_REFUTED) {
        const graft_symbolic_result unbounded = check->unbounded; /* Why not. */
        *check = thin;
        check->unbounded = unbounded;
        check->past = domain.count;
    }
}

void graft_check_rule(const graft_checking *c, graft_check *check)
{
    graft_check_filter(c, check);
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        graft_check_prove(c, check);
    } else if (check->outcome == GRAFT_CHECK_THIN) {
        check_thin(c, check);
    }
}

graft_rule_entry graft_check_entry(const graft_check *check, const graft_rule *rule)
{
    return (graft_rule_entry){
        .rule = *rule,
        .id = graft_rule_id(rule),
        .gain = graft_rule_gain(rule),
        .proof = check->proof,
        .numeric = check->numeric,
        .rounding = check->rounding,
        .complete = check->complete,
        .points = check->sweep.agreed,
        .cover = check->cover,
        .resource_count = check->prove.resource_count,
        .cases = check->unbounded.proved ? check->unbounded.cases : 0,
        .reason = check->unbounded.reason,
        .cover_points = check->cover_points,
        .cover_bytes = check->cover_bytes,
    };
}
