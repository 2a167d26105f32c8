/* generate.c - the pipeline. See generate.h. */
#include "verify/generate.h"

#include "graph/log.h"
#include "graph/ruleprint.h"
#include "verify/canon.h"
#include "verify/derive.h"
#include "verify/lift.h"
#include "verify/pool.h"
#include "verify/reverse.h"
#include "verify/subsume.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Wall-clock limits: far beyond what any item takes; reaching one fails the run. */
static const uint64_t lift_limit_ns = UINT64_C(300000000000);
static const uint64_t check_limit_ns = UINT64_C(120000000000);

enum {
    EXAMPLES = 4, /* Instances at which one rule is seen to follow from others. */
    SMALL = 2     /* Operators of a rule that is kept as a step of its own. */
};

graft_generate_options graft_generate_defaults(void)
{
    return (graft_generate_options){.seed = 1, .check = graft_check_defaults()};
}

typedef enum {
    RULE_OPEN,
    RULE_SELECTED, /* For the solver. */
    RULE_PROVED,
    RULE_GONE /* Rejected, or follows from a proved rule. */
} rule_state;

/* A rule on its way into the set. */
typedef struct {
    graft_rule rule;
    graft_point origin;
    uint64_t id;
    uint32_t candidate; /* The first one that was lifted to it. */
    int32_t gain;
    rule_state state;
    graft_derivation derivations[EXAMPLES]; /* From other rules, as far as these are proved. */
    uint32_t derivation_count;
    graft_check check;
} lifted;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_candidates *candidates;
    const graft_generate_options *options;
    const graft_sweeper *sweeper;
    graft_generate_counts *counts;
    uint32_t *group_first; /* By skeleton: where its candidates begin in group_items. */
    uint32_t *group_items;
    lifted *rules;
    uint32_t rule_count;
    uint32_t *selected;       /* Rules that the solver is asked about. */
    graft_rulebook taken;     /* Rules that are proved or selected, */
    graft_rulebook saving;    /* those of them that save operators, */
    graft_rulebook equations; /* all in both directions. */
    graft_deriver *deriver;
} generator;

/* ------------------------------------------------------------------ lifting */

/* Candidates by skeleton, in their own order. */
static void group_candidates(generator *g)
{
    const graft_candidates *c = g->candidates;
    g->group_first = GRAFT_NEW(g->arena, uint32_t, (size_t)c->skeleton_count + 1);
    g->group_items = GRAFT_NEW(g->arena, uint32_t, c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        g->group_first[c->items[i].skeleton + 1]++;
    }
    for (uint32_t s = 0; s < c->skeleton_count; s++) {
        g->group_first[s + 1] += g->group_first[s];
    }
    uint32_t *next = GRAFT_NEW(g->arena, uint32_t, (size_t)c->skeleton_count + 1);
    memcpy(next, g->group_first, (size_t)c->skeleton_count * sizeof *next);
    for (uint32_t i = 0; i < c->count; i++) {
        g->group_items[next[c->items[i].skeleton]++] = i;
    }
}

/* What a child tells about one candidate. */
typedef struct {
    uint32_t candidate;
    uint8_t outcome; /* graft_lift_outcome */
    bool is_covered; /* By a rule of the same group. */
    graft_rule rule;
    graft_point origin;
} lift_report;

/* Whether one of the rules found so far does what the candidate does. */
static bool is_covered(graft_env *env, const graft_candidate *candidate, const lift_report *found,
                       uint32_t count)
{
    graft_point point;
    memset(&point, 0, sizeof point);
    memcpy(point.vars, candidate->shapes, sizeof point.vars);
    for (uint32_t i = 0; i < count; i++) {
        if (graft_rule_follows(env, &candidate->rule, &point, 1, &found[i].rule)) {
            return true;
        }
    }
    return false;
}

static void lift_group(graft_env *env, void *context, uint32_t group, graft_buffer *answer)
{
    const generator *g = context;
    uint32_t first = g->group_first[group];
    uint32_t size = g->group_first[group + 1] - first;
    lift_report *found = GRAFT_NEW(env->unit, lift_report, size);
    uint32_t found_count = 0;
    graft_lift_options options = graft_lift_defaults();
    for (uint32_t i = 0; i < size; i++) {
        lift_report report;
        memset(&report, 0, sizeof report);
        report.candidate = g->group_items[first + i];
        const graft_candidate *candidate = &g->candidates->items[report.candidate];
        report.is_covered = is_covered(env, candidate, found, found_count);
        report.outcome = GRAFT_LIFT_STUCK;
        if (!report.is_covered) {
            graft_lift_outcome outcome = GRAFT_LIFT_STUCK;
            if (graft_lift(env, g->sweeper, candidate, &options, &outcome, &report.rule,
                           &report.origin) != GRAFT_OK) {
                graft_env_clear(env); /* Too large for a draft: it stays unlifted. */
            }
            report.outcome = (uint8_t)outcome;
            if (outcome == GRAFT_LIFT_DONE) {
                graft_rule_canonicalise(&report.rule, &report.origin);
                found[found_count++] = report;
            }
        }
        graft_buffer_append(answer, &report, sizeof report);
    }
}

static void count_report(generator *g, const lift_report *report)
{
    if (report->is_covered) {
        g->counts->covered++;
    } else if (report->outcome == GRAFT_LIFT_FALSE) {
        g->counts->not_true++;
    } else if (report->outcome == GRAFT_LIFT_STUCK) {
        g->counts->not_lifted++;
        const graft_candidate *c = &g->candidates->items[report->candidate];
        graft_log(g->env, 2, "not lifted: %s", graft_rule_print_line(g->env->scratch, &c->rule));
    }
}

static bool is_known(const generator *g, uint64_t id)
{
    for (uint32_t i = 0; i < g->rule_count; i++) {
        if (g->rules[i].id == id) {
            return true;
        }
    }
    return false;
}

/* Takes a lifted rule unless it is there already, says nothing, can never match or, when only
 * others are wanted, can only add operators. */
static void take_lifted(generator *g, const lift_report *report)
{
    uint64_t id = graft_rule_id(&report->rule);
    int32_t gain = graft_rule_gain(&report->rule);
    bool matches = gain != INT32_MIN && !graft_rule_is_trivial(&report->rule);
    if (matches && gain < 0 && !g->options->all) {
        g->counts->growing++;
    } else if (matches && !is_known(g, id)) {
        g->rules[g->rule_count++] = (lifted){.rule = report->rule,
                                             .origin = report->origin,
                                             .id = id,
                                             .candidate = report->candidate,
                                             .gain = gain};
    }
}

/* Fails when an item ran out of time: a verdict must not depend on a clock. */
static graft_status check_pool(generator *g, const graft_pool_result *results, uint32_t count,
                               const char *what)
{
    for (uint32_t i = 0; i < count; i++) {
        if (results[i].outcome == GRAFT_POOL_KILLED) {
            return GRAFT_FAIL(g->env, GRAFT_UNDECIDED,
                              "%s: item %u was killed after running out of time", what, i);
        }
        if (results[i].outcome == GRAFT_POOL_CRASHED) {
            graft_log(g->env, 1, "%s: item %u crashed; it is rejected", what, i);
        }
    }
    return GRAFT_OK;
}

static graft_status lift_all(generator *g)
{
    graft_status status = GRAFT_OK;
    uint32_t groups = g->candidates->skeleton_count;
    graft_pool_result *results = GRAFT_NEW(g->arena, graft_pool_result, groups);
    graft_pool_job job = {.label = "lift",
                          .unit = "forms",
                          .item_count = groups,
                          .limit_ns = lift_limit_ns,
                          .run = lift_group,
                          .context = g};
    group_candidates(g);
    GRAFT_CHECK(graft_pool_run(g->env, g->arena, &job, results));
    GRAFT_CHECK(check_pool(g, results, groups, "lift"));
    g->rules = GRAFT_NEW(g->arena, lifted, g->candidates->count);
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t count = (uint32_t)(results[i].bytes / sizeof(lift_report));
        for (uint32_t k = 0; k < count; k++) {
            lift_report report;
            memcpy(&report, &results[i].answer[k * sizeof report], sizeof report);
            count_report(g, &report);
            if (report.outcome == GRAFT_LIFT_DONE) {
                take_lifted(g, &report);
            }
        }
        if (results[i].outcome == GRAFT_POOL_CRASHED) {
            g->counts->not_lifted += g->group_first[i + 1] - g->group_first[i];
        }
    }
    g->counts->rules = g->rule_count;
done:
    return status;
}

/* ----------------------------------------------------------------- sweeping */

static void append_check(graft_buffer *answer, const graft_check *check)
{
    graft_buffer_append(answer, check, sizeof *check);
    if (check->cover > 0) {
        graft_buffer_append(answer, check->instances, check->cover * sizeof *check->instances);
    }
    if (check->cover_bytes > 0) {
        graft_buffer_append(answer, check->cover_points, check->cover_bytes);
    }
}

/* The check of a finished item: what it points to lies in the answer. */
static graft_check read_check(const graft_pool_result *result)
{
    graft_check check;
    memcpy(&check, result->answer, sizeof check);
    check.instances = (graft_point *)(void *)(result->answer + sizeof check);
    check.cover_points = result->answer + sizeof check + check.cover * sizeof *check.instances;
    return check;
}

static void sweep_item(graft_env *env, void *context, uint32_t item, graft_buffer *answer)
{
    const generator *g = context;
    graft_check check;
    graft_check_sweep(env, env->unit, g->sweeper, &g->rules[item].rule, &g->rules[item].origin,
                      &g->options->check, &check);
    append_check(answer, &check);
}

static void prove_item(graft_env *env, void *context, uint32_t item, graft_buffer *answer)
{
    const generator *g = context;
    const lifted *r = &g->rules[g->selected[item]];
    graft_check check = r->check;
    graft_check_prove(env, env->unit, &r->rule, &g->options->check, &check);
    append_check(answer, &check);
}

static void log_rejected(const generator *g, const lifted *r)
{
    bool gave_up = r->check.outcome == GRAFT_CHECK_UNKNOWN;
    graft_log(g->env, gave_up ? 1 : 2, "%s: %s%s%s", graft_check_outcome_name(r->check.outcome),
              graft_rule_print_line(g->env->scratch, &r->rule), gave_up ? ": " : "",
              gave_up ? r->check.prove.reason : "");
}

static graft_status take_check(generator *g, lifted *r, const graft_pool_result *result)
{
    if (result->outcome == GRAFT_POOL_DONE) {
        r->check = read_check(result);
    } else {
        r->check.outcome = GRAFT_CHECK_UNKNOWN;
        (void)snprintf(r->check.prove.reason, sizeof r->check.prove.reason, "the solver crashed");
    }
    graft_generate_counts *c = g->counts;
    r->state = RULE_GONE;
    switch ((graft_check_outcome)r->check.outcome) {
    case GRAFT_CHECK_SWEPT:
        r->state = RULE_OPEN;
        return GRAFT_OK;
    case GRAFT_CHECK_PROVED:
        r->state = RULE_PROVED;
        c->proved++;
        break;
    case GRAFT_CHECK_REFUTED:
    case GRAFT_CHECK_SAT:
        c->refuted++;
        break;
    case GRAFT_CHECK_THIN:
        c->thin++;
        break;
    case GRAFT_CHECK_UNKNOWN:
        c->unknown++;
        break;
    case GRAFT_CHECK_CONTRADICTION:
        return GRAFT_FAIL(g->env, GRAFT_INTERNAL, "polynomials refute what the solver proved: %s",
                          graft_rule_print_line(g->env->scratch, &r->rule));
    }
    c->solver_questions += r->check.prove.questions;
    if (r->state == RULE_GONE) {
        log_rejected(g, r);
    }
    return GRAFT_OK;
}

static graft_status sweep_all(generator *g)
{
    graft_status status = GRAFT_OK;
    graft_pool_result *results = GRAFT_NEW(g->arena, graft_pool_result, g->rule_count);
    graft_pool_job job = {.label = "sweep",
                          .unit = "rules",
                          .item_count = g->rule_count,
                          .limit_ns = check_limit_ns,
                          .run = sweep_item,
                          .context = g};
    GRAFT_CHECK(graft_pool_run(g->env, g->arena, &job, results));
    GRAFT_CHECK(check_pool(g, results, g->rule_count, "sweep"));
    for (uint32_t i = 0; i < g->rule_count; i++) {
        GRAFT_CHECK(take_check(g, &g->rules[i], &results[i]));
    }
done:
    return status;
}

/* -------------------------------------------------------- selecting and proving */

/* Small rules first; of equal size the more general: fewer conditions, more slots. */
static int compare_generality(const void *a, const void *b)
{
    const lifted *x = a;
    const lifted *y = b;
    int64_t keys[5][2] = {
        {x->rule.source.node_count, y->rule.source.node_count},
        {x->rule.target.node_count, y->rule.target.node_count},
        {x->rule.condition != 255,  y->rule.condition != 255 },
        {y->rule.slot_count,        x->rule.slot_count       },
        {x->candidate,              y->candidate             },
    };
    for (int i = 0; i < 5; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

/* Which rules a rule may be derived from. One that saves operators must follow from others that
 * save some, so that a search which never looks past a loss reaches what it reaches. A small one
 * that saves none is a step that a search can take: it must follow from such steps. Larger ones may
 * follow from any equations, read in either direction. */
static const graft_rulebook *choose_book(const generator *g, const lifted *r)
{
    bool small = r->rule.source.node_count <= SMALL && r->rule.target.node_count <= SMALL;
    return r->gain > 0 ? &g->saving : small ? &g->taken : &g->equations;
}

/* Whether the rule follows from others that are proved or about to be, at each of some
 * instances. */
static bool follows_from_taken(const generator *g, lifted *r)
{
    const graft_rulebook *book = choose_book(g, r);
    uint32_t count = r->check.cover < EXAMPLES ? r->check.cover : EXAMPLES;
    bool follows = count > 0;
    r->derivation_count = 0;
    for (uint32_t i = 0; i < count && follows; i++) {
        graft_derivation *d = &r->derivations[r->derivation_count];
        follows = graft_derive(g->deriver, &r->rule, &r->check.instances[i], book,
                               GRAFT_DERIVATION_STEPS, d);
        r->derivation_count += follows ? 1 : 0;
    }
    return follows;
}

static void take_rule(generator *g, uint32_t i)
{
    const lifted *r = &g->rules[i];
    graft_rule *reversed = GRAFT_NEW(g->arena, graft_rule, 1);
    graft_rulebook_add(&g->taken, &r->rule, i);
    graft_rulebook_add(&g->equations, &r->rule, i);
    if (graft_rule_reverse(&r->rule, reversed) == NULL) {
        graft_rulebook_add(&g->equations, reversed, i);
    }
    if (r->gain > 0) {
        graft_rulebook_add(&g->saving, &r->rule, i);
    }
}

/* Marks the rules that the solver shall be asked about: those that do not follow from others. */
static uint32_t select_rules(generator *g)
{
    uint32_t count = 0;
    graft_progress progress;
    graft_rulebook_open(&g->taken, g->arena);
    graft_rulebook_open(&g->saving, g->arena);
    graft_rulebook_open(&g->equations, g->arena);
    for (uint32_t i = 0; i < g->rule_count; i++) {
        if (g->rules[i].state == RULE_PROVED) {
            take_rule(g, i);
        }
    }
    graft_progress_start(&progress, g->env, "select", "rules", g->rule_count);
    for (uint32_t i = 0; i < g->rule_count; i++) {
        lifted *r = &g->rules[i];
        if (r->state == RULE_OPEN && !follows_from_taken(g, r)) {
            r->state = RULE_SELECTED;
            g->selected[count++] = i;
            take_rule(g, i);
        }
        graft_progress_update(&progress, i + 1, NULL);
    }
    graft_progress_finish(&progress);
    return count;
}

static graft_status prove_selected(generator *g, uint32_t count)
{
    graft_status status = GRAFT_OK;
    graft_pool_result *results = GRAFT_NEW(g->arena, graft_pool_result, count);
    graft_pool_job job = {.label = "prove",
                          .unit = "rules",
                          .item_count = count,
                          .limit_ns = check_limit_ns,
                          .run = prove_item,
                          .context = g};
    GRAFT_CHECK(graft_pool_run(g->env, g->arena, &job, results));
    GRAFT_CHECK(check_pool(g, results, count, "prove"));
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_CHECK(take_check(g, &g->rules[g->selected[i]], &results[i]));
    }
done:
    return status;
}

static bool rests_on_proofs(const generator *g, const lifted *r)
{
    for (uint32_t i = 0; i < r->derivation_count; i++) {
        for (uint32_t k = 0; k < r->derivations[i].count; k++) {
            if (g->rules[r->derivations[i].steps[k]].state != RULE_PROVED) {
                return false;
            }
        }
    }
    return true;
}

/* Rules that follow from proved ones are settled; the others are open again. */
static void settle_followers(generator *g)
{
    for (uint32_t i = 0; i < g->rule_count; i++) {
        lifted *r = &g->rules[i];
        if (r->state == RULE_OPEN && rests_on_proofs(g, r)) {
            r->state = RULE_GONE;
            g->counts->dropped++;
        }
    }
}

/* Only rules that do not follow from others are put to the solver. Where one of those fails, what
 * would have followed from it gets its turn. */
static graft_status prove_all(generator *g)
{
    graft_status status = GRAFT_OK;
    uint32_t kept = 0;
    qsort(g->rules, g->rule_count, sizeof *g->rules, compare_generality);
    g->selected = GRAFT_NEW(g->arena, uint32_t, g->rule_count);
    g->deriver = graft_deriver_new(g->arena);
    for (uint32_t count = select_rules(g); count > 0; count = select_rules(g)) {
        GRAFT_CHECK(prove_selected(g, count));
        settle_followers(g);
    }
    for (uint32_t i = 0; i < g->rule_count; i++) {
        if (g->rules[i].state == RULE_PROVED) {
            g->rules[kept++] = g->rules[i];
        }
    }
    g->rule_count = kept;
    g->counts->kept = kept;
done:
    return status;
}

/* ------------------------------------------------------------------- the set */

static graft_rule_entry make_entry(const generator *g, const lifted *r)
{
    return (graft_rule_entry){
        .rule = r->rule,
        .id = r->id,
        .name = graft_rule_print_name(g->arena, &r->rule),
        .family = graft_arena_strdup(g->arena, g->candidates->items[r->candidate].family),
        .gain = r->gain,
        .proof = GRAFT_PROOF_BOUNDED,
        .numeric = r->check.numeric,
        .complete = r->check.complete,
        .points = r->check.sweep.agreed,
        .cover = r->check.cover,
        .resource_count = r->check.prove.resource_count,
        .cover_points = r->check.cover_points,
        .cover_bytes = r->check.cover_bytes,
    };
}

static int compare_entries(const void *a, const void *b)
{
    const graft_rule_entry *x = a;
    const graft_rule_entry *y = b;
    int order = strcmp(x->family, y->family);
    order = order != 0 ? order : strcmp(x->name, y->name);
    return order != 0 ? order : (x->id < y->id ? -1 : 1);
}

/* Rules of the same operators get the first digits of their id behind their names. */
static void make_names_unique(generator *g, graft_ruleset *set)
{
    bool *repeated = GRAFT_NEW(g->arena, bool, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool same = strcmp(set->entries[i].name, set->entries[k].name) == 0;
            repeated[i] = repeated[i] || same;
            repeated[k] = repeated[k] || same;
        }
    }
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rule_entry *e = &set->entries[i];
        if (repeated[i]) {
            e->name = graft_arena_printf(g->arena, "%s~%06" PRIx64, e->name, e->id >> 40);
        }
    }
}

static void make_set(generator *g, graft_ruleset *set)
{
    set->solver = graft_prove_solver(g->arena);
    set->count = g->rule_count;
    set->entries = GRAFT_NEW(g->arena, graft_rule_entry, g->rule_count);
    for (uint32_t i = 0; i < g->rule_count; i++) {
        set->entries[i] = make_entry(g, &g->rules[i]);
    }
    qsort(set->entries, set->count, sizeof *set->entries, compare_entries);
    make_names_unique(g, set);
}

graft_status graft_generate_from(graft_env *env, graft_arena *arena,
                                 const graft_candidates *candidates,
                                 const graft_generate_options *options, graft_ruleset *set,
                                 graft_generate_counts *counts)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_sweeper *sweeper = GRAFT_NEW(arena, graft_sweeper, 1);
    generator g = {.env = env,
                   .arena = arena,
                   .candidates = candidates,
                   .options = options,
                   .sweeper = sweeper,
                   .counts = counts};
    graft_sweep_open(sweeper);
    memset(counts, 0, sizeof *counts);
    counts->candidates = candidates->count;
    GRAFT_CHECK(lift_all(&g));
    GRAFT_CHECK(sweep_all(&g));
    GRAFT_CHECK(prove_all(&g));
    make_set(&g, set);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_generate(graft_env *env, graft_arena *arena, const graft_gen_family *families,
                            uint32_t family_count, const graft_generate_options *options,
                            graft_ruleset *set, graft_generate_counts *counts)
{
    graft_status status = GRAFT_OK;
    graft_candidates candidates;
    graft_gen_options propose = {.seed = options->seed, .depth = options->depth};
    GRAFT_CHECK(graft_gen_run(env, arena, families, family_count, &propose, &candidates));
    GRAFT_CHECK(graft_generate_from(env, arena, &candidates, options, set, counts));
done:
    return status;
}
