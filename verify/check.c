/* check.c - see check.h. */
#include "verify/check.h"

#include "verify/set/price.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/numeric.h"
#include "verify/sweep/resweep.h"
#include "verify/sweep/rounding.h"

#include <string.h>

/* Choices that finding instances may take. Where they are rare, it takes many to find some. */
enum { ATTEMPTS_FEW = 80000, ATTEMPTS_MOST = 2000000 };
enum { POINTS_LEAST = 6 };

graft_check_options graft_check_defaults(void)
{
    return (graft_check_options){.filter = 300,
                                 .points = 2000,
                                 .cover = 64,
                                 .samples = 2,
                                 .attempts = ATTEMPTS_MOST,
                                 .prove = graft_prove_defaults()};
}

const char *graft_check_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {
        "swept",   "proved",    "refuted", "too few instances", "refuted by the solver",
        "unknown", "restricted"};
    return outcome < sizeof names / sizeof names[0] ? names[outcome] : "unknown";
}

static void find_domain(graft_env *env, const graft_rule *rule, const graft_point *origin,
                        const graft_check_options *options, graft_domain *domain)
{
    graft_domain_options find = {.points = options->points,
                                 .attempts = options->attempts,
                                 .enumerate = true,
                                 .seed = graft_rule_id(rule),
                                 .origin = origin};
    graft_domain_find(env, env->unit, rule, &find, domain);
}

static graft_check_outcome judge(const graft_check *check)
{
    switch ((graft_verdict)check->prove.verdict) {
    case GRAFT_VERDICT_PROVED:
        return GRAFT_CHECK_PROVED;
    case GRAFT_VERDICT_REFUTED:
        return GRAFT_CHECK_SAT;
    case GRAFT_VERDICT_UNKNOWN:
    case GRAFT_VERDICT_WITHIN_BOUNDS:
    case GRAFT_VERDICT_ERROR:
        break;
    }
    return GRAFT_CHECK_UNKNOWN;
}

static void pick_cover(graft_env *env, const graft_rule *rule, const graft_domain *domain,
                       uint32_t limit, graft_check *check)
{
    graft_cover cover;
    graft_cover_pick(env, env->unit, rule, domain, limit, &cover);
    check->cover = cover.count;
    check->triples = cover.triples;
    check->all_triples = cover.all_triples;
    check->instances = GRAFT_NEW(env->unit, graft_point, cover.count);
    for (uint32_t i = 0; i < cover.count; i++) {
        check->instances[i] = domain->points[cover.points[i]];
    }
}

/* Sweeps a domain and picks a covering set of it. */
static void sweep_points(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                         const graft_domain *domain, const graft_check_options *options,
                         graft_check *check)
{
    memset(check, 0, sizeof *check);
    check->complete = domain->complete;
    check->points = domain->count;
    graft_sweep_domain(env, sweeper, rule, domain, options->samples, &check->sweep);
    check->outcome = GRAFT_CHECK_REFUTED;
    if (!check->sweep.refuted) {
        bool enough = check->sweep.agreed >= POINTS_LEAST || domain->complete;
        bool decided = check->sweep.undecided * 2 <= domain->count;
        check->outcome = GRAFT_CHECK_THIN;
        if (check->sweep.agreed > 0 && enough && decided) {
            check->outcome = GRAFT_CHECK_SWEPT;
            pick_cover(env, rule, domain, options->cover, check);
        }
    }
}

/* Sweeps up to `points` instances, as many as are found. */
static void sweep_some(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                       const graft_point *origin, const graft_check_options *options,
                       graft_check *check)
{
    graft_domain domain;
    find_domain(env, rule, origin, options, &domain);
    sweep_points(env, sweeper, rule, &domain, options, check);
}

void graft_check_filter(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_point *origin, const graft_check_options *options,
                        graft_check *check)
{
    graft_check_options few = *options;
    few.points = options->filter;
    few.attempts = ATTEMPTS_FEW;
    sweep_some(env, sweeper, rule, origin, &few, check);
    if (check->outcome == GRAFT_CHECK_THIN) {
        few.attempts = options->attempts;
        sweep_some(env, sweeper, rule, origin, &few, check);
    }
}

void graft_check_sweep(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                       const graft_point *origin, const graft_check_options *options,
                       graft_check *check)
{
    sweep_some(env, sweeper, rule, origin, options, check);
    graft_resweep(env, sweeper, rule, options->samples, check);
}

/* ------------------------------------------------------------ proofs for all sizes */

/* What is left of a rule's share of the solver. */
static graft_prove_options rest_of(const graft_prove_options *options, graft_effort used)
{
    graft_prove_options rest = *options;
    rest.most = graft_effort_left(options->most, used);
    return rest;
}

/* A rule on its way through proofs, those of its restrictions included. They share a solver. */
typedef struct {
    graft_env *env;
    const graft_rule *rule;
    const graft_check_options *options;
    graft_check *check;
    graft_prover prover;
    graft_prove_result counts; /* Of the task at hand. */
    graft_symbolic *symbolic;  /* NULL before it is needed. */
} checker;

static void open_checker(checker *c)
{
    graft_prover_open(&c->prover, &c->options->prove, &c->counts);
    c->symbolic = NULL;
}

static void close_checker(checker *c)
{
    if (c->symbolic != NULL) {
        graft_symbolic_close(c->symbolic);
    }
    graft_prover_close(&c->prover);
}

static graft_symbolic *symbolic_of(checker *c)
{
    if (c->symbolic == NULL) {
        c->symbolic = graft_symbolic_open(c->env, &c->prover);
    }
    return c->symbolic;
}

static void count_proof(graft_check *check, graft_effort effort, uint32_t questions)
{
    check->effort = graft_effort_add(check->effort, effort);
    check->prove.questions += questions;
}

/* Whether a rule is proved for all sizes. It may take options->most. */
static bool is_proved_unbounded(checker *c, const graft_rule *rule, const graft_point *points,
                                uint32_t count, const graft_prove_options *options)
{
    graft_check *check = c->check;
    graft_symbolic_try(symbolic_of(c), rule, points, count, options, &check->unbounded);
    count_proof(check, check->unbounded.effort, check->unbounded.questions);
    check->prove.resource_count += check->unbounded.effort.resource_count;
    return check->unbounded.proved;
}

/* ------------------------------------------------------------------- restrictions */

/* A search for a restriction. One that is wider than what is proved already may take a few times
 * what that took: where it takes more it hardly ever ends, and each of many would take all. */
typedef struct {
    checker *c;
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
static bool try_proof(restrictor *r, const graft_rule *rule, const graft_point *origin)
{
    const graft_effort before = r->c->check->effort;
    graft_prove_options options = rest_of(&r->c->options->prove, before);
    if (r->is_proved) {
        graft_effort most = effort_base;
        for (uint32_t i = 0; i < EFFORT_TIMES; i++) {
            most = graft_effort_add(most, r->took);
        }
        options.most = graft_effort_least(options.most, most);
    }
    bool proved = is_proved_unbounded(r->c, rule, origin, 1, &options);
    if (proved && !r->is_proved) {
        r->took = graft_effort_left(r->c->check->effort, before);
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
    if (!graft_rule_pin(r->c->env, r->found, slots, &pinned) ||
        !graft_rule_narrow(r->c->env, &pinned.rule, &pinned.origin, &narrow.rule) ||
        is_found(r, &narrow.rule)) {
        return TRY_INVALID;
    }
    if (!try_proof(r, &narrow.rule, &pinned.origin)) {
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
static bool find_restriction(checker *c, const graft_point *origin)
{
    graft_env *env = c->env;
    graft_rule weaker;
    if (!c->options->restricts || origin == NULL) {
        return false;
    }
    const graft_found_rule found = {.rule = *c->rule, .origin = *origin};
    restrictor r = {.c = c, .found = &found};
    if (!pin_slots(&r)) {
        return false;
    }
    for (uint32_t part = 0; graft_rule_without(env, &r.narrow.rule, part, &weaker);) {
        if (!is_found(&r, &weaker) && try_proof(&r, &weaker, &r.narrow.origin)) {
            r.narrow.rule = weaker;
        } else {
            part++;
        }
    }
    c->check->outcome = GRAFT_CHECK_RESTRICTED;
    c->check->restricted = GRAFT_NEW(env->unit, graft_found_rule, 1);
    *c->check->restricted = r.narrow;
    return true;
}

/* Of a rule's share, what its instances may take: a few times what any rule of the set needs. Z3
 * multiplies them out, which takes longer than its count says. */
static const uint64_t instance_resources = 15000000;

static graft_prove_options instance_options(const graft_prove_options *options)
{
    graft_prove_options most = *options;
    most.most = graft_effort_least(most.most, (graft_effort){instance_resources, UINT64_MAX});
    return most;
}

/* Asks Z3 about the covering set. */
static void prove_instances(checker *c)
{
    graft_check *check = c->check;
    const graft_prove_options most = instance_options(&c->options->prove);
    graft_prover_begin(&c->prover, &most, &c->counts);
    graft_prove_points(c->env, &c->prover, c->rule, check->instances, check->cover);
    c->counts.questions += check->prove.questions;
    c->counts.resource_count += check->prove.resource_count;
    check->prove = c->counts;
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
static void test_instances(checker *c)
{
    graft_check *check = c->check;
    const graft_prove_options share = instance_options(&c->options->prove);
    uint32_t most = check->cover < TESTS_MOST ? check->cover : TESTS_MOST;
    uint32_t kept = 0;
    uint32_t undecided = 0;
    graft_effort used = {0, 0};
    graft_prove_result *prove = &check->prove;
    prove->verdict = GRAFT_VERDICT_UNKNOWN;
    put_small_first(c->rule, check->instances, check->cover);
    for (uint32_t i = 0; i < most && undecided < (kept > 0 ? UNDECIDED_ENOUGH : UNDECIDED_MOST);
         i++) {
        const graft_prove_options rest = rest_of(&share, used);
        const graft_prove_result *some = &c->counts;
        graft_prover_begin(&c->prover, &rest, &c->counts);
        graft_prove_points(c->env, &c->prover, c->rule, &check->instances[i], most - i);
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

static void prove_all_sizes(checker *c, const graft_sweeper *sweeper)
{
    graft_check *check = c->check;
    test_instances(c);
    check->outcome = (uint8_t)judge(check);
    graft_resweep_proved(c->env, sweeper, c->rule, c->options->samples, check);
    check->proof = GRAFT_PROOF_UNBOUNDED;
}

/* All that can be said of a rule that is not. */
static void prove_cover(checker *c, const graft_sweeper *sweeper, const graft_point *origin)
{
    graft_check *check = c->check;
    const graft_check before = *check;
    graft_check_sweep(c->env, sweeper, c->rule, origin, c->options, check);
    check->unbounded = before.unbounded;
    check->prove = before.prove;
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        prove_instances(c);
        check->outcome = (uint8_t)judge(check);
        check->proof = GRAFT_PROOF_BOUNDED;
    }
}

void graft_check_prove(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                       const graft_point *origin, const graft_check_options *options,
                       graft_check *check)
{
    checker c = {.env = env, .rule = rule, .options = options, .check = check};
    open_checker(&c);
    if (is_proved_unbounded(&c, rule, check->instances, check->cover, &options->prove)) {
        prove_all_sizes(&c, sweeper);
    } else if (!find_restriction(&c, origin)) {
        prove_cover(&c, sweeper, origin);
    }
    if (check->outcome == GRAFT_CHECK_PROVED) {
        check->numeric = (uint8_t)graft_numeric_classify(
            env, symbolic_of(&c), rule, check->instances, check->cover, &options->prove);
        if (check->numeric == GRAFT_NUMERIC_REASSOCIATING) {
            graft_rounding_measure(env, rule, check->instances, check->cover, &check->rounding);
        }
        check->cover_points =
            graft_cover_pack(env->unit, rule, check->instances, check->cover, &check->cover_bytes);
    }
    close_checker(&c);
}

/* A rule may have instances past the bounds alone. A difference there refutes it; where there is
 * none, a proof for all sizes is as good as any, and without one it is what it was. */
static void check_thin(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                       const graft_point *origin, const graft_check_options *options,
                       graft_check *check)
{
    graft_domain domain;
    const graft_check thin = *check;
    graft_resweep_named(env, rule, &domain);
    sweep_points(env, sweeper, rule, &domain, options, check);
    if (check->outcome == GRAFT_CHECK_THIN && check->sweep.agreed > 0) {
        check->outcome = GRAFT_CHECK_SWEPT; /* One is enough beside a proof for all sizes. */
        pick_cover(env, rule, &domain, options->cover, check);
    }
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        graft_check_prove(env, sweeper, rule, origin, options, check);
    }
    bool proved = check->outcome == GRAFT_CHECK_PROVED && check->proof == GRAFT_PROOF_UNBOUNDED;
    if (!proved && check->outcome != GRAFT_CHECK_REFUTED) {
        *check = thin;
        check->past = domain.count;
    }
}

void graft_check_rule(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                      const graft_point *origin, const graft_check_options *options,
                      graft_check *check)
{
    graft_check_filter(env, sweeper, rule, origin, options, check);
    if (check->outcome == GRAFT_CHECK_SWEPT) {
        graft_check_prove(env, sweeper, rule, origin, options, check);
    } else if (check->outcome == GRAFT_CHECK_THIN) {
        check_thin(env, sweeper, rule, origin, options, check);
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
