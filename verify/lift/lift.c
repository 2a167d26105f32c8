/* lift.c - the search for expressions and constraints. See lift.h. */
#include "verify/lift/lift.h"

#include "verify/instances/idle.h"
#include "verify/sweep/neighbours.h"

#include <assert.h>
#include <string.h>

/* Points per trial and those that the result must survive, and how many combinations of expressions
 * are tried at most. */
enum { SAMPLE = 80, FINAL_POINTS = 600, TRIALS = 160 };

/* A point in the draft's own terms, so that it keeps its meaning when slots change. */
typedef struct {
    graft_shape vars[GRAFT_RULE_MAX_VARS];
    int32_t values[GRAFT_PLACES_MOST];
    uint64_t idle; /* Places that do nothing there, as bits. */
    bool agrees;
    bool trivial; /* Some operator of the source does nothing there. */
} record;

enum { RECORDS_MOST = 4000, ROUNDS_MOST = 6, AGREED_LEAST = 4, LEARNERS_MOST = 3 };

typedef struct {
    graft_env *env;
    const graft_sweeper *sweeper;
    const graft_draft *draft;
    uint64_t seed;   /* Changes with every trial. */
    record *records; /* The last ones, RECORDS_MOST at most. */
    uint32_t record_count;
    uint32_t accepted; /* acceptance() of the last clean trial. */
} lifter;

/* What a trial of a choice has shown. */
typedef struct {
    uint32_t agreed;
    uint32_t differed;
    uint32_t fitted; /* graft_domain */
    uint32_t refused;
} tally;

/* Of the places where the source fits, how many are rewritten, in thousandths. */
static uint32_t acceptance(const tally *t)
{
    uint64_t all = (uint64_t)t->fitted + t->refused;
    return all == 0 ? 0 : (uint32_t)((uint64_t)t->fitted * 1000 / all);
}

static bool is_clean(const tally *t) { return t->differed == 0 && t->agreed >= AGREED_LEAST; }

/* ------------------------------------------------------------------ trials */

static uint64_t idle_places(const graft_draft *draft, const graft_instance *instance)
{
    uint64_t idle = 0;
    for (uint32_t p = 0; p < draft->place_count; p++) {
        bool does_nothing =
            graft_idle_attribute(instance, draft->places[p].node, draft->places[p].attr);
        idle |= does_nothing ? UINT64_C(1) << p : 0;
    }
    return idle;
}

/* The point of a record under a choice's slots; false when its slots cannot have these values. */
static bool point_of_record(const lifter *l, const uint8_t *slot_of, const record *r,
                            graft_point *point)
{
    uint64_t bound = 0;
    memset(point, 0, sizeof *point);
    memcpy(point->vars, r->vars, sizeof r->vars);
    for (uint32_t p = 0; p < l->draft->place_count; p++) {
        if (slot_of[p] == UINT8_MAX) {
            if (r->values[p] != l->draft->places[p].value) {
                return false;
            }
            continue;
        }
        uint64_t bit = UINT64_C(1) << slot_of[p];
        if ((bound & bit) != 0 && point->slots[slot_of[p]] != r->values[p]) {
            return false;
        }
        bound |= bit;
        point->slots[slot_of[p]] = r->values[p];
    }
    return true;
}

static graft_point origin_point(const lifter *l, const uint8_t *slot_of)
{
    graft_point point = l->draft->origin;
    for (uint32_t p = 0; p < l->draft->place_count; p++) {
        if (slot_of[p] != UINT8_MAX) {
            point.slots[slot_of[p]] = l->draft->places[p].value;
        }
    }
    return point;
}

/* When a trial ends early. */
typedef enum {
    PATIENT,  /* Never: what differs is to be learnt from. */
    DOUBTFUL, /* When it does not seem to agree anywhere. */
    HURRIED   /* At the first few differences. */
} patience;

/* A trial under way. */
typedef struct {
    lifter *l;
    const graft_rule *rule;
    uint8_t slot_of[GRAFT_PLACES_MOST];
    tally tally;
    uint64_t seed; /* Of the next point. */
    patience patience;
} trial;

static void keep_record(const trial *t, const graft_instance *instance, bool agrees)
{
    lifter *l = t->l;
    if (l->record_count == RECORDS_MOST) {
        return;
    }
    record *r = &l->records[l->record_count++];
    memcpy(r->vars, instance->point->vars, sizeof r->vars);
    for (uint32_t p = 0; p < l->draft->place_count; p++) {
        bool is_constant = t->slot_of[p] == UINT8_MAX;
        r->values[p] =
            is_constant ? l->draft->places[p].value : instance->point->slots[t->slot_of[p]];
    }
    r->agrees = agrees;
    r->idle = idle_places(l->draft, instance);
    r->trivial = graft_idle_pads(instance);
}

static void judge_point(trial *t, const graft_point *point, uint64_t seed)
{
    graft_instance instance;
    if (graft_instance_build(&instance, t->rule, point) != GRAFT_FIT_OK) {
        return;
    }
    graft_sweep_verdict verdict =
        graft_sweep_instance(t->l->env, t->l->sweeper, &instance, 2, seed, NULL);
    if (verdict != GRAFT_SWEEP_UNDECIDED) {
        bool agrees = verdict == GRAFT_SWEEP_AGREES;
        t->tally.agreed += agrees ? 1 : 0;
        t->tally.differed += agrees ? 0 : 1;
        keep_record(t, &instance, agrees);
    }
}

/* Points that refuted an earlier choice and that this one lets through again. */
static void recheck_failures(trial *t)
{
    lifter *l = t->l;
    const uint32_t count = l->record_count;
    for (uint32_t i = 0; i < count && t->tally.differed == 0; i++) {
        graft_point point;
        if (!l->records[i].agrees && point_of_record(l, t->slot_of, &l->records[i], &point)) {
            uint32_t kept = l->record_count;
            judge_point(t, &point, i);
            l->record_count = kept; /* It is there already. */
        }
    }
}

enum { DIFFERENCES_ENOUGH = 3, DIFFERENCES_MANY = 16, WORK_MOST = 6000 };
enum { ATTEMPTS = 100, ATTEMPTS_FINAL = 200 }; /* For each point wanted. */
enum { AROUND = 24, NEIGHBOURS = 600 }; /* Points whose neighbours are tried, and how many. */

/* Goes on to the neighbours of a domain's first points. */
static void try_neighbours(trial *t, const graft_domain *domain)
{
    uint32_t count = domain->count < AROUND ? domain->count : AROUND;
    const graft_domain around =
        graft_neighbours_find(t->l->env->unit, t->rule, domain->points, count, NEIGHBOURS);
    for (uint32_t i = 0; i < around.count && t->tally.differed < DIFFERENCES_ENOUGH; i++) {
        judge_point(t, &around.points[i], t->l->seed + i);
    }
}

static bool judge_visited(void *context, const graft_point *point)
{
    trial *t = context;
    judge_point(t, point, t->seed++);
    switch (t->patience) {
    case HURRIED:
        return t->tally.differed < DIFFERENCES_ENOUGH;
    case DOUBTFUL:
        return t->tally.agreed > 0 || t->tally.differed < DIFFERENCES_MANY;
    case PATIENT:
        break;
    }
    return true;
}

/* Sweeps a sample of the choice's domain and records it. */
static tally try_choice(lifter *l, const graft_choice *choice, uint32_t sample, patience how)
{
    graft_rule rule;
    trial t = {.l = l, .rule = &rule, .patience = how};
    bool final = sample >= FINAL_POINTS;
    if (!graft_draft_rule(l->draft, choice, &rule, t.slot_of)) {
        return (tally){.differed = 1};
    }
    GRAFT_SCOPED(l->env->unit);
    t.seed = ++l->seed;
    graft_point origin = origin_point(l, t.slot_of);
    graft_domain_options options = {.points = sample,
                                    .attempts = sample * (final ? ATTEMPTS_FINAL : ATTEMPTS),
                                    .seed = l->seed,
                                    .work = WORK_MOST,
                                    .origin = &origin,
                                    .visit = judge_visited,
                                    .context = &t};
    recheck_failures(&t);
    if (how != HURRIED || t.tally.differed == 0) {
        const graft_domain domain = graft_domain_find(l->env, l->env->unit, &rule, &options);
        t.tally.fitted = domain.fitted;
        t.tally.refused = domain.refused;
        if (final && t.tally.differed == 0) {
            try_neighbours(&t, &domain);
        }
    }
    return t.tally;
}

/* ------------------------------------------------------------- expressions */

/* Attributes that are taken from a source attribute of the same name are varied only when nothing
 * else helps. */
static bool is_firm(const graft_draft *draft, uint32_t t)
{
    const graft_expression *first = &draft->options[t][0];
    if (draft->option_count[t] == 1) {
        return true;
    }
    return first->code == GRAFT_CODE_END && first->a.kind == GRAFT_LEAF_PLACE;
}

/* Gives the first `count` ranks a sum, each as much as it can take; what is left over. */
static uint32_t spread_sum(const uint8_t *varied, const uint8_t *counts, uint32_t count,
                           uint32_t sum, uint8_t *ranks)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t most = counts[varied[i]] - 1u;
        ranks[i] = (uint8_t)(sum < most ? sum : most);
        sum -= ranks[i];
    }
    return sum;
}

/* The combinations of options in the order of their summed ranks: sets the next one with the same
 * sum, or returns false. The last varied attribute runs slowest. */
static bool next_combination(const uint8_t *varied, const uint8_t *counts, uint32_t count,
                             uint32_t sum, uint8_t *ranks, bool first)
{
    if (first) {
        return spread_sum(varied, counts, count, sum, ranks) == 0;
    }
    uint32_t before = 0; /* Sum of the ranks before i. */
    for (uint32_t i = 0; i + 1 < count; i++) {
        before += ranks[i];
        if (before > 0 && ranks[i + 1] < counts[varied[i + 1]] - 1u) {
            ranks[i + 1]++;
            (void)spread_sum(varied, counts, i + 1, before - 1, ranks);
            return true;
        }
    }
    return false;
}

/* The best choices met: clean ones by acceptance, others by the share of agreement. */
typedef struct {
    graft_choice clean;
    uint32_t clean_acceptance;
    bool has_clean;
    graft_choice learners[LEARNERS_MOST]; /* Best first. */
    uint32_t shares[LEARNERS_MOST];       /* Agreements among the differences, in thousandths. */
    uint32_t learner_count;
} findings;

static void note_learner(findings *f, const graft_choice *choice, const tally *t)
{
    uint32_t decided = t->agreed + t->differed;
    uint32_t share = decided == 0 ? 0 : t->agreed * 1000 / decided;
    uint32_t at = f->learner_count;
    while (at > 0 && f->shares[at - 1] * 2 + 20 < share) { /* The earlier one is preferred. */
        at--;
    }
    if (at == LEARNERS_MOST || t->agreed == 0) {
        return;
    }
    f->learner_count += f->learner_count < LEARNERS_MOST ? 1 : 0;
    for (uint32_t i = f->learner_count - 1; i > at; i--) {
        f->learners[i] = f->learners[i - 1];
        f->shares[i] = f->shares[i - 1];
    }
    f->learners[at] = *choice;
    f->shares[at] = share;
}

enum { GOOD_ACCEPTANCE = 900, TRIALS_AFTER_CLEAN = 20 };

/* Tries combinations of the varied attributes' options; true when a good one was found. */
static bool vary_options(lifter *l, const graft_choice *base, const uint8_t *varied, uint32_t count,
                         uint32_t *trials, findings *f)
{
    const graft_draft *d = l->draft;
    uint8_t ranks[GRAFT_TARGETS_MOST];
    uint32_t most = 0;
    uint32_t after = 0;
    for (uint32_t i = 0; i < count; i++) {
        most += d->option_count[varied[i]] - 1u;
    }
    for (uint32_t sum = 0; sum <= most; sum++) {
        bool more = next_combination(varied, d->option_count, count, sum, ranks, true);
        while (more) {
            if (*trials == 0 || (f->has_clean && after++ == TRIALS_AFTER_CLEAN)) {
                return f->has_clean;
            }
            (*trials)--;
            graft_choice choice = *base;
            for (uint32_t i = 0; i < count; i++) {
                choice.option[varied[i]] = ranks[i];
            }
            tally t = try_choice(l, &choice, SAMPLE / 2, DOUBTFUL);
            uint32_t accepted = acceptance(&t);
            if (is_clean(&t) && (!f->has_clean || accepted > f->clean_acceptance * 11 / 10)) {
                f->clean = choice;
                f->clean_acceptance = accepted;
                f->has_clean = true;
            }
            if (!is_clean(&t)) {
                note_learner(f, &choice, &t);
            }
            if (f->has_clean && f->clean_acceptance >= GOOD_ACCEPTANCE) {
                return true;
            }
            more = next_combination(varied, d->option_count, count, sum, ranks, false);
        }
    }
    return f->has_clean;
}

static void find_expressions(lifter *l, const graft_choice *base, findings *f)
{
    uint8_t varied[GRAFT_TARGETS_MOST];
    uint32_t count = 0;
    uint32_t trials = TRIALS;
    for (uint32_t t = 0; t < l->draft->target_count; t++) {
        if (!is_firm(l->draft, t) && count < GRAFT_TARGETS_MOST) {
            varied[count++] = (uint8_t)t;
        }
    }
    if (vary_options(l, base, varied, count, &trials, f) || f->learner_count > 0) {
        return;
    }
    for (uint32_t t = 0; t < l->draft->target_count; t++) {
        if (is_firm(l->draft, t) && l->draft->option_count[t] > 1) {
            varied[count++] = (uint8_t)t;
        }
    }
    trials = TRIALS / 2;
    (void)vary_options(l, base, varied, count, &trials, f);
}

/* ------------------------------------------------------------- constraints */

static bool holds_at(const lifter *l, const graft_constraint *c, const record *r)
{
    return graft_constraint_holds(l->draft, c, r->vars, r->values);
}

/* Whether a constraint says something of a place that does nothing at a record. */
static bool is_idle_at(const graft_constraint *c, const record *r)
{
    bool a = (r->idle >> c->a & 1u) != 0;
    return (c->kind == GRAFT_CONSTRAINT_PLACE_CONST && a) ||
           (c->kind == GRAFT_CONSTRAINT_PLACES_EQUAL && (a || (r->idle >> c->b & 1u) != 0));
}

/* Whether a choice allows a record; with `idly` also one of which it forbids only what is said of
 * places that do nothing there. */
static bool allows(const lifter *l, const graft_choice *choice, const record *r, bool idly)
{
    for (uint32_t i = 0; i < l->draft->constraint_count; i++) {
        const graft_constraint *c = &l->draft->constraints[i];
        if (graft_choice_requires(choice, i) && !holds_at(l, c, r) && !(idly && is_idle_at(c, r))) {
            return false;
        }
    }
    return true;
}

static bool any_failure_allowed(const lifter *l, const graft_choice *choice)
{
    for (uint32_t i = 0; i < l->record_count; i++) {
        if (!l->records[i].agrees && allows(l, choice, &l->records[i], false)) {
            return true;
        }
    }
    return false;
}

/* The constraint that excludes most of the failures still allowed per good point lost. */
static uint32_t best_constraint(const lifter *l, const graft_choice *choice)
{
    uint32_t best = GRAFT_CONSTRAINTS_MOST;
    double best_score = 0.0;
    for (uint32_t c = 0; c < l->draft->constraint_count; c++) {
        uint32_t excluded = 0;
        uint32_t lost = 0;
        for (uint32_t i = 0; i < l->record_count && !graft_choice_requires(choice, c); i++) {
            const record *r = &l->records[i];
            if (holds_at(l, &l->draft->constraints[c], r) || !allows(l, choice, r, false)) {
                continue;
            }
            excluded += r->agrees ? 0 : 1;
            lost += r->agrees && !r->trivial ? 1 : 0;
        }
        double score = (double)excluded / (1.0 + (double)lost);
        if (excluded > 0 && score > best_score) {
            best = c;
            best_score = score;
        }
    }
    return best;
}

/* Adds constraints until no recorded failure is allowed; false when that cannot be done. */
static bool exclude_failures(const lifter *l, graft_choice *choice)
{
    graft_choice grown = *choice;
    while (any_failure_allowed(l, &grown)) {
        uint32_t c = best_constraint(l, &grown);
        if (c == GRAFT_CONSTRAINTS_MOST) {
            return false;
        }
        graft_choice_set(&grown, c, true);
    }
    for (uint32_t c = 0; c < l->draft->constraint_count; c++) {
        if (graft_choice_requires(&grown, c) && !graft_choice_requires(choice, c)) {
            graft_choice_set(&grown, c, false);
            if (any_failure_allowed(l, &grown)) {
                graft_choice_set(&grown, c, true);
            }
        }
    }
    *choice = grown;
    return true;
}

/* Whether points that agree differ from a constant only where it or an operator does nothing. */
static bool varies_idly(const lifter *l, const graft_choice *choice, const graft_constraint *c)
{
    bool idly = false;
    for (uint32_t i = 0; i < l->record_count; i++) {
        const record *r = &l->records[i];
        if (r->agrees && allows(l, choice, r, false) && !holds_at(l, c, r)) {
            if (!r->trivial && !is_idle_at(c, r)) {
                return false;
            }
            idly = true;
        }
    }
    return idly;
}

/* Makes attributes constants that vary only there: a padding by nothing is the same along any axis,
 * and a rule about an axis is not one about all. */
static void pin_idle(const lifter *l, graft_choice *choice)
{
    for (uint32_t i = 0; i < l->draft->constraint_count; i++) {
        const graft_constraint *c = &l->draft->constraints[i];
        if (c->kind == GRAFT_CONSTRAINT_PLACE_CONST && !graft_choice_requires(choice, i) &&
            varies_idly(l, choice, c)) {
            graft_choice_set(choice, i, true);
        }
    }
}

/* Learns constraints until a sample is clean. */
static bool learn(lifter *l, graft_choice *choice)
{
    for (uint32_t round = 0; round < ROUNDS_MOST; round++) {
        tally t = try_choice(l, choice, SAMPLE * 2, PATIENT);
        if (is_clean(&t)) {
            l->accepted = acceptance(&t);
            pin_idle(l, choice);
            return true;
        }
        if (t.differed == 0 || !exclude_failures(l, choice)) {
            return false;
        }
    }
    return false;
}

static bool is_structural(const graft_constraint *c)
{
    return c->kind == GRAFT_CONSTRAINT_PLACES_EQUAL || c->kind == GRAFT_CONSTRAINT_PLACE_CONST;
}

/* Good points that only the weaker choice allows, but those where an operator, or what the stronger
 * one says, does nothing. */
static uint32_t count_gained(const lifter *l, const graft_choice *strong, const graft_choice *weak)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->record_count; i++) {
        const record *r = &l->records[i];
        bool gained = r->agrees && !r->trivial && allows(l, weak, r, false);
        count += gained && !allows(l, strong, r, true) ? 1 : 0;
    }
    return count;
}

/* Whether the weaker choice is as true; one with more slots must also be good for something, and
 * not mostly be refused for its target's shapes. */
static bool can_weaken(lifter *l, const graft_choice *strong, const graft_choice *weak,
                       bool structural)
{
    uint32_t kept = l->record_count;
    tally t = try_choice(l, weak, SAMPLE, HURRIED);
    bool better =
        is_clean(&t) &&
        (!structural || (count_gained(l, strong, weak) > 0 && acceptance(&t) * 2 >= l->accepted));
    if (t.differed == 0) {
        l->record_count = kept; /* Only failures are worth remembering. */
    }
    l->accepted = better ? acceptance(&t) : l->accepted;
    return better;
}

static bool is_constant(const graft_draft *d, const graft_constraint *c, graft_attr_kind kind)
{
    return c->kind == GRAFT_CONSTRAINT_PLACE_CONST && d->places[c->a].kind == kind;
}

/* What a step of weakening drops: equalities of places, or constants of a kind of attributes. */
typedef enum { ANY_LINK, OTHER_NAME_LINK, SAME_NAME_LINK, ACTIVATIONS, FLOATS } droppable;

static bool is_among(const graft_draft *d, const graft_constraint *c, droppable what)
{
    if (what == ACTIVATIONS || what == FLOATS) {
        return is_constant(d, c, what == FLOATS ? GRAFT_ATTR_FLOAT : GRAFT_ATTR_ACTIVATION);
    }
    if (c->kind != GRAFT_CONSTRAINT_PLACES_EQUAL || what == ANY_LINK) {
        return c->kind == GRAFT_CONSTRAINT_PLACES_EQUAL; /* Else a and b are no places. */
    }
    bool same = graft_attrs_alike(d->places[c->a].info, d->places[c->b].info);
    return same == (what == SAME_NAME_LINK);
}

/* Drops all of them at once; whether that could be done. */
static bool drop_all(lifter *l, graft_choice *choice, droppable what)
{
    const graft_draft *d = l->draft;
    graft_choice weak = *choice;
    for (uint32_t c = 0; c < d->constraint_count; c++) {
        if (is_among(d, &d->constraints[c], what)) {
            graft_choice_set(&weak, c, false);
        }
    }
    if (memcmp(&weak, choice, sizeof weak) != 0 && !can_weaken(l, choice, &weak, true)) {
        return false;
    }
    *choice = weak;
    return true;
}

/* Where both sides have the same number by different names (the value of a fill, an epsilon), it is
 * one variable if it can be. */
static void share_numbers(lifter *l, graft_choice *choice)
{
    const graft_draft *d = l->draft;
    for (uint32_t c = 0; c < d->constraint_count; c++) {
        graft_choice weak = *choice;
        bool shared = false;
        if (!is_constant(d, &d->constraints[c], GRAFT_ATTR_FLOAT) ||
            !graft_choice_requires(choice, c)) {
            continue;
        }
        for (uint32_t t = 0; t < d->target_count; t++) {
            const graft_leaf *now = &d->options[t][choice->option[t]].a;
            for (uint32_t o = 0; now->kind == GRAFT_LEAF_CONST && o < d->option_count[t]; o++) {
                const graft_expression *e = &d->options[t][o];
                if (e->code == GRAFT_CODE_END && e->a.kind == GRAFT_LEAF_PLACE &&
                    e->a.index == d->constraints[c].a) {
                    weak.option[t] = (uint8_t)o;
                    shared = true;
                }
            }
        }
        graft_choice_set(&weak, c, false);
        if (shared && can_weaken(l, choice, &weak, true)) {
            *choice = weak;
        }
    }
}

/* Drops constraints one by one: the precondition's, or the equalities and constants. */
static void drop_singly(lifter *l, graft_choice *choice, bool structural)
{
    const graft_draft *d = l->draft;
    for (uint32_t c = 0; c < d->constraint_count; c++) {
        if (graft_choice_requires(choice, c) && is_structural(&d->constraints[c]) == structural) {
            graft_choice weak = *choice;
            graft_choice_set(&weak, c, false);
            if (can_weaken(l, choice, &weak, structural)) {
                *choice = weak;
            }
        }
    }
}

/* Drops whatever is not needed, much at once where that works. */
static void weaken(lifter *l, graft_choice *choice)
{
    if (!drop_all(l, choice, ANY_LINK) && drop_all(l, choice, OTHER_NAME_LINK)) {
        (void)drop_all(l, choice, SAME_NAME_LINK);
    }
    (void)drop_all(l, choice, ACTIVATIONS);
    (void)drop_all(l, choice, FLOATS);
    share_numbers(l, choice);
    drop_singly(l, choice, false);
    drop_singly(l, choice, true);
}

/* ------------------------------------------------------------------- whole */

/* Sweeps a large sample; what differs becomes a record. */
static bool survives(lifter *l, const graft_choice *choice)
{
    tally t = try_choice(l, choice, FINAL_POINTS, HURRIED);
    return is_clean(&t);
}

/* Equal attributes are one slot at first, activations and numbers such as the 0 of a relu constant.
 */
static graft_choice first_choice(const graft_draft *draft)
{
    graft_choice choice = {0};
    for (uint32_t c = 0; c < draft->constraint_count; c++) {
        const graft_constraint *k = &draft->constraints[c];
        graft_choice_set(&choice, c,
                         k->kind == GRAFT_CONSTRAINT_PLACES_EQUAL ||
                             is_constant(draft, k, GRAFT_ATTR_ACTIVATION) ||
                             is_constant(draft, k, GRAFT_ATTR_FLOAT));
    }
    return choice;
}

/* From one choice of expressions to a rule that survives. */
static bool finish(lifter *l, graft_choice *choice)
{
    for (uint32_t round = 0; round < ROUNDS_MOST; round++) {
        if (!learn(l, choice)) {
            return false;
        }
        weaken(l, choice);
        if (survives(l, choice)) {
            return true;
        }
        l->record_count = l->record_count < RECORDS_MOST / 2 ? l->record_count : RECORDS_MOST / 2;
        if (!exclude_failures(l, choice)) {
            return false;
        }
    }
    return false;
}

static bool holds_at_origin(lifter *l)
{
    graft_instance instance;
    graft_fit fit = graft_instance_build(&instance, &l->draft->candidate->rule, &l->draft->origin);
    assert(fit == GRAFT_FIT_OK);
    (void)fit;
    return graft_sweep_instance(l->env, l->sweeper, &instance, 6, 1, NULL) == GRAFT_SWEEP_AGREES;
}

static graft_lift_outcome search(lifter *l, graft_choice *choice)
{
    findings *f = GRAFT_NEW(l->env->unit, findings, 1);
    graft_choice base = first_choice(l->draft);
    if (!holds_at_origin(l)) {
        return GRAFT_LIFT_FALSE;
    }
    find_expressions(l, &base, f);
    for (uint32_t i = f->has_clean ? 0 : 1; i <= f->learner_count; i++) {
        *choice = i == 0 ? f->clean : f->learners[i - 1];
        l->record_count = 0;
        if (finish(l, choice)) {
            return GRAFT_LIFT_DONE;
        }
    }
    return GRAFT_LIFT_STUCK;
}

graft_status graft_lift(graft_env *env, const graft_sweeper *sweeper,
                        const graft_candidate *candidate, graft_lift_result *result)
{
    GRAFT_SCOPED(env->unit);
    graft_draft *draft = GRAFT_NEW(env->unit, graft_draft, 1);
    lifter l = {.env = env, .sweeper = sweeper, .draft = draft};
    graft_choice choice;
    l.records = GRAFT_NEW(env->unit, record, RECORDS_MOST);
    result->outcome = GRAFT_LIFT_STUCK;
    GRAFT_PASS(graft_draft_make(env, candidate, draft));
    result->outcome = search(&l, &choice);
    if (result->outcome == GRAFT_LIFT_DONE) {
        uint8_t slot_of[GRAFT_PLACES_MOST];
        bool fits = graft_draft_rule(draft, &choice, &result->rule, slot_of);
        assert(fits);
        (void)fits;
        result->origin = origin_point(&l, slot_of);
    }
    return GRAFT_OK;
}
