/* generate_prove.c - from rules to proved ones. All are filtered first, which is cheap. Then the
 * solver is asked about those that do not follow from others; where one of these fails, what would
 * have followed from it gets its turn. */
#include "verify/pipeline.h"

#include "graph/base/log.h"
#include "graph/rule/ruleprint.h"
#include "verify/lift/narrow.h"
#include "verify/set/reverse.h"

#include <stdlib.h>
#include <string.h>

/* Wall-clock limit of a rule: far beyond what any takes; reaching it fails the run. */
static const uint64_t check_limit_ns = UINT64_C(3600000000000);

/* Rules that take longer are named in a verbose log. */
static const uint64_t slow_ns = UINT64_C(2000000000);

enum { SMALL = 2 }; /* Operators of a rule that is kept as a step of its own. */

typedef struct {
    graft_pipeline *p;
    graft_rulebook taken;     /* Rules that are proved or selected, */
    graft_rulebook saving;    /* those of them that save operators, */
    graft_rulebook equations; /* all in both directions. */
    graft_deriver *deriver;
} selector;

/* ----------------------------------------------------------------- sweeping */

/* A check on its way between processes, or between runs: of what it points to, whether it is there.
 * It follows. */
typedef struct {
    graft_check check;
    uint64_t is_restricted;
} packed_check;

static void append_check(graft_buffer *to, const graft_check *check)
{
    packed_check packed;
    memset(&packed, 0, sizeof packed);
    memcpy(&packed.check, check, sizeof *check);
    packed.check.instances = NULL;
    packed.check.cover_points = NULL;
    packed.check.restricted = NULL;
    packed.is_restricted = check->restricted != NULL ? 1 : 0;
    graft_buffer_append(to, &packed, sizeof packed);
    if (check->restricted != NULL) {
        graft_buffer_append(to, check->restricted, sizeof *check->restricted);
    }
    graft_buffer_append(to, check->instances, check->cover * sizeof *check->instances);
    graft_buffer_append(to, check->cover_points, check->cover_bytes);
}

/* A check from what was appended: what it points to lies there. */
static graft_check read_check(uint8_t *bytes)
{
    packed_check packed;
    uint8_t *at = bytes + sizeof packed;
    memcpy(&packed, bytes, sizeof packed);
    if (packed.is_restricted != 0) {
        packed.check.restricted = (graft_found_rule *)(void *)at;
        at += sizeof *packed.check.restricted;
    }
    packed.check.instances = (graft_point *)(void *)at;
    packed.check.cover_points = at + packed.check.cover * sizeof *packed.check.instances;
    return packed.check;
}

/* What a child is sent of a rule: this, and to prove it its check. */
typedef struct {
    graft_found_rule found;
    bool restricts; /* Whether a restriction may be proved instead. */
} rule_task;

/* Rules that children have to do with, and what is sent of each. */
typedef struct {
    graft_pipeline *p;
    uint32_t *rules;
    graft_buffer *sent;
    uint32_t count;
} rule_list;

static rule_list make_list(graft_pipeline *p)
{
    return (rule_list){.p = p,
                       .rules = GRAFT_NEW(p->arena, uint32_t, p->rule_count),
                       .sent = GRAFT_NEW(p->arena, graft_buffer, p->rule_count)};
}

/* Byte by byte: what is sent is also what answers are found again by. */
static void list_rule(rule_list *list, uint32_t i, bool with_check)
{
    const graft_lifted *r = &list->p->rules[i];
    graft_buffer *sent = &list->sent[list->count];
    rule_task task;
    memset(&task, 0, sizeof task);
    memcpy(&task.found.rule, &r->rule, sizeof task.found.rule);
    memcpy(&task.found.origin, &r->origin, sizeof task.found.origin);
    task.restricts = !r->is_restricted;
    sent->arena = list->p->arena;
    graft_buffer_append(sent, &task, sizeof task);
    if (with_check) {
        append_check(sent, &r->check);
    }
    list->rules[list->count++] = i;
}

/* Has children do the rules of a list; `run` is NULL for provers, who are there already. */
static graft_status run_list(const rule_list *list, const char *label, graft_pool_work run,
                             graft_pool_result **results)
{
    graft_pipeline *p = list->p;
    const graft_pool_job job = {.label = label,
                                .unit = "rules",
                                .item_count = list->count,
                                .sent = list->sent,
                                .kept = p->kept,
                                .limit_ns = check_limit_ns,
                                .memory_bytes = graft_pool_prover_bytes,
                                .run = run,
                                .context = p};
    *results = GRAFT_NEW(p->arena, graft_pool_result, list->count);
    GRAFT_PASS(run == NULL ? graft_pool_do(p->provers, p->arena, &job, *results)
                           : graft_pool_run(p->env, p->arena, &job, *results));
    return graft_pipeline_judge(p, *results, list->count, label);
}

static const graft_found_rule *found_of(const graft_pool_item *item)
{
    return &((const rule_task *)(const void *)item->data)->found;
}

static void sweep_item(graft_env *env, void *context, const graft_pool_item *item,
                       graft_buffer *answer)
{
    const graft_pipeline *p = context;
    const graft_found_rule *r = found_of(item);
    graft_check check;
    graft_check_filter(&(graft_checking){env, p->sweeper, &p->options->check, &r->rule, &r->origin},
                       &check);
    append_check(answer, &check);
}

/* The pipeline is as it was before anything was proposed. */
static void prove_item(graft_env *env, void *context, const graft_pool_item *item,
                       graft_buffer *answer)
{
    const graft_pipeline *p = context;
    const rule_task *task = (const rule_task *)(const void *)item->data;
    const graft_found_rule *r = &task->found;
    graft_check check = read_check(item->data + sizeof *task);
    graft_check_options options = p->options->check;
    options.restricts = task->restricts;
    uint64_t start_ns = graft_clock_ns();
    graft_check_prove(&(graft_checking){env, p->sweeper, &options, &r->rule, &r->origin}, &check);
    uint64_t taken_ns = graft_clock_ns() - start_ns;
    if (taken_ns > slow_ns) {
        graft_log(env, 2, "%.1f s: %s", (double)taken_ns / 1e9,
                  graft_rule_print_line(env->unit, &r->rule));
    }
    append_check(answer, &check);
}

graft_status graft_pipeline_open_provers(graft_pipeline *p)
{
    const graft_pool_job job = {
        .memory_bytes = graft_pool_prover_bytes, .is_fresh = true, .run = prove_item, .context = p};
    return graft_pool_open(p->env, p->arena, &job, &p->provers);
}

static void log_rejected(const graft_pipeline *p, const graft_lifted *r)
{
    bool gave_up = r->check.outcome == GRAFT_CHECK_UNKNOWN;
    bool bounded = r->check.outcome == GRAFT_CHECK_PROVED;
    const char *reason = gave_up ? r->check.prove.reason : bounded ? r->check.unbounded.reason : "";
    /* The rule comes last: a long one is cut. */
    graft_log(p->env, gave_up || bounded ? 1 : 2, "%s%s%s: %s",
              bounded ? "within bounds only" : graft_check_outcome_name(r->check.outcome),
              reason[0] == '\0' ? "" : ": ", reason,
              graft_rule_print_line(p->env->scratch, &r->rule));
}

/* Puts a restriction of a rule in its place, to go through everything once more. */
static void take_narrower(graft_pipeline *p, graft_lifted *r, const graft_found_rule *narrower)
{
    uint64_t id = graft_rule_id(&narrower->rule);
    if (!graft_pipeline_has(p, id)) {
        r->rule = narrower->rule;
        r->origin = narrower->origin;
        r->id = id;
        r->is_narrowed = true;
        r->state = GRAFT_RULE_NARROWED;
        p->counts->narrowed++;
    }
}

/* A refuted rule may hold where it was found. It gets one more chance there. */
static void narrow_rule(graft_pipeline *p, graft_lifted *r)
{
    graft_found_rule narrowed = {.origin = r->origin};
    if (!r->is_narrowed && graft_rule_narrow(p->env, &r->rule, &r->origin, &narrowed.rule)) {
        take_narrower(p, r, &narrowed);
    }
}

static void take_check(graft_pipeline *p, graft_lifted *r, const graft_pool_result *result)
{
    if (result->outcome == GRAFT_POOL_DONE) {
        r->check = read_check(result->answer);
    } else {
        r->check.outcome = GRAFT_CHECK_UNKNOWN;
        (void)snprintf(r->check.prove.reason, sizeof r->check.prove.reason, "the solver %s",
                       graft_pool_outcome_name(result->outcome));
    }
    graft_generate_counts *c = p->counts;
    r->state = GRAFT_RULE_GONE;
    switch ((graft_check_outcome)r->check.outcome) {
    case GRAFT_CHECK_SWEPT:
        r->state = GRAFT_RULE_OPEN;
        return;
    case GRAFT_CHECK_PROVED:
        if (r->check.proof == GRAFT_PROOF_UNBOUNDED) {
            r->state = GRAFT_RULE_PROVED;
            c->proved++;
        } else {
            c->bounded++;
        }
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
    case GRAFT_CHECK_RESTRICTED:
        c->restricted++;
        r->is_restricted = true;
        r->is_weakened = true; /* As far as the proof goes. */
        take_narrower(p, r, r->check.restricted);
        return;
    }
    if (r->state == GRAFT_RULE_GONE) {
        log_rejected(p, r);
    }
    if (r->check.outcome == GRAFT_CHECK_REFUTED || r->check.outcome == GRAFT_CHECK_SAT) {
        narrow_rule(p, r);
    }
}

/* Sweeps the rules that are in a state. */
static graft_status sweep_state(graft_pipeline *p, graft_rule_state state)
{
    rule_list list = make_list(p);
    graft_pool_result *results = NULL;
    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].state == state) {
            list_rule(&list, i, false);
        }
    }
    if (list.count == 0) {
        return GRAFT_OK;
    }
    uint64_t start_ns = graft_pipeline_clock_ns();
    GRAFT_PASS(run_list(&list, "sweep", sweep_item, &results));
    for (uint32_t i = 0; i < list.count; i++) {
        take_check(p, &p->rules[list.rules[i]], &results[i]);
    }
    p->counts->times.sweep_ns += graft_pipeline_clock_ns() - start_ns;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ weakening */

static bool holds_without(graft_env *env, const graft_pipeline *p, const graft_found_rule *r,
                          const graft_rule *weaker)
{
    graft_check check;
    const graft_checking c = {env, p->sweeper, &p->options->check, weaker, &r->origin};
    GRAFT_SCOPED(env->unit);
    graft_check_filter(&c, &check);
    if (check.outcome == GRAFT_CHECK_SWEPT) {
        graft_check_sweep(&c, &check);
    }
    return check.outcome == GRAFT_CHECK_SWEPT;
}

/* Leaves out one part of the precondition after the other, as far as no sweep misses it. */
static void weaken_item(graft_env *env, void *context, const graft_pool_item *item,
                        graft_buffer *answer)
{
    const graft_pipeline *p = context;
    const graft_found_rule *r = found_of(item);
    graft_rule rule = r->rule;
    graft_rule weaker;
    for (uint32_t part = 0; graft_rule_without(env, &rule, part, &weaker);) {
        if (holds_without(env, p, r, &weaker)) {
            rule = weaker;
        } else {
            part++;
        }
    }
    graft_buffer_append(answer, &rule, sizeof rule);
}

static void take_weaker(graft_pipeline *p, graft_lifted *r, const graft_pool_result *result)
{
    graft_rule weaker;
    r->is_weakened = true;
    if (result->outcome != GRAFT_POOL_DONE) {
        return;
    }
    memcpy(&weaker, result->answer, sizeof weaker);
    uint64_t id = graft_rule_id(&weaker);
    if (!graft_pipeline_has(p, id)) {
        r->rule = weaker;
        r->id = id;
        r->state = GRAFT_RULE_NARROWED;
    }
}

/* Sweeps what was narrowed, then what is left of it when parts that are not needed are gone. */
static graft_status sweep_narrowed(graft_pipeline *p)
{
    rule_list list = make_list(p);
    graft_pool_result *results = NULL;
    GRAFT_PASS(sweep_state(p, GRAFT_RULE_NARROWED));
    for (uint32_t i = 0; i < p->rule_count; i++) {
        const graft_lifted *r = &p->rules[i];
        if (r->state == GRAFT_RULE_OPEN && r->is_narrowed && !r->is_weakened) {
            list_rule(&list, i, false);
        }
    }
    if (list.count == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(run_list(&list, "weaken", weaken_item, &results));
    for (uint32_t i = 0; i < list.count; i++) {
        take_weaker(p, &p->rules[list.rules[i]], &results[i]);
    }
    return sweep_state(p, GRAFT_RULE_NARROWED);
}

/* -------------------------------------------------------- selecting and proving */

/* Small rules first; of equal size the more general: fewer conditions, more slots. */
static int compare_generality(const void *a, const void *b)
{
    const graft_lifted *x = a;
    const graft_lifted *y = b;
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
 * save some, each where it is applied, so that a search which never looks past a loss, nor past
 * what is neither gain nor loss, reaches what it reaches. A small one that saves none is a step
 * that a search can take: it must follow from such steps. Larger ones may follow from any
 * equations, read in either direction. */
static const graft_rulebook *choose_book(const selector *s, const graft_lifted *r)
{
    bool small = r->rule.source.node_count <= SMALL && r->rule.target.node_count <= SMALL;
    return r->gain > 0 ? &s->saving : small ? &s->taken : &s->equations;
}

/* Whether the rule follows from others that are proved or about to be, at each of some
 * instances. */
static bool follows_from_taken(const selector *s, graft_lifted *r)
{
    const graft_rulebook *book = choose_book(s, r);
    uint32_t most = GRAFT_DERIVED_INSTANCES;
    uint32_t count = r->check.cover < most ? r->check.cover : most;
    bool follows = count > 0;
    r->derivation_count = 0;
    for (uint32_t i = 0; i < count && follows; i++) {
        graft_derivation *d = &r->derivations[r->derivation_count];
        follows = graft_derive(s->deriver, &r->rule, &r->check.instances[i], book, r->gain > 0, d);
        r->derivation_count += follows ? 1 : 0;
    }
    return follows;
}

static void take_rule(selector *s, uint32_t i)
{
    const graft_lifted *r = &s->p->rules[i];
    graft_rule *reversed = GRAFT_NEW(s->p->arena, graft_rule, 1);
    graft_rulebook_add(&s->taken, &r->rule, 2 * i);
    graft_rulebook_add(&s->equations, &r->rule, 2 * i);
    if (graft_rule_reverse(&r->rule, reversed) == NULL) {
        graft_rulebook_add(&s->equations, reversed, 2 * i + 1);
    }
    if (r->gain > 0) {
        graft_rulebook_add(&s->saving, &r->rule, 2 * i);
    }
}

/* Lists the rules that the solver shall be asked about: those that do not follow from others. */
static rule_list select_rules(selector *s)
{
    graft_pipeline *p = s->p;
    rule_list list = make_list(p);
    graft_progress progress;
    uint64_t start_ns = graft_pipeline_clock_ns();
    graft_rulebook_open(&s->taken, p->arena);
    graft_rulebook_open(&s->saving, p->arena);
    graft_rulebook_open(&s->equations, p->arena);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].state == GRAFT_RULE_PROVED) {
            take_rule(s, i);
        }
    }
    graft_progress_start(&progress, p->env, "select", "rules", p->rule_count);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        graft_lifted *r = &p->rules[i];
        if (r->state == GRAFT_RULE_OPEN && !follows_from_taken(s, r)) {
            r->state = GRAFT_RULE_SELECTED;
            list_rule(&list, i, true);
            take_rule(s, i);
        }
        graft_progress_update(&progress, i + 1, NULL);
    }
    graft_progress_finish(&progress);
    p->counts->times.select_ns += graft_pipeline_clock_ns() - start_ns;
    return list;
}

static graft_status prove_selected(graft_pipeline *p, const rule_list *list)
{
    graft_pool_result *results = NULL;
    GRAFT_PASS(run_list(list, "prove", NULL, &results));
    for (uint32_t i = 0; i < list->count; i++) {
        take_check(p, &p->rules[list->rules[i]], &results[i]);
    }
    return GRAFT_OK;
}

/* What they took is known now. */
static void close_provers(graft_pipeline *p)
{
    uint64_t start_ns = graft_pipeline_clock_ns();
    graft_pool_close(p->provers);
    p->provers = NULL;
    p->counts->times.prove_ns += graft_pipeline_clock_ns() - start_ns;
}

static bool rests_on_proofs(const selector *s, const graft_lifted *r)
{
    for (uint32_t i = 0; i < r->derivation_count; i++) {
        for (uint32_t k = 0; k < r->derivations[i].count; k++) {
            if (s->p->rules[r->derivations[i].steps[k] / 2].state != GRAFT_RULE_PROVED) {
                return false;
            }
        }
    }
    return true;
}

/* Rules that follow from proved ones are settled; the others are open again. */
static void settle_followers(selector *s)
{
    graft_pipeline *p = s->p;
    for (uint32_t i = 0; i < p->rule_count; i++) {
        graft_lifted *r = &p->rules[i];
        if (r->state == GRAFT_RULE_OPEN && rests_on_proofs(s, r)) {
            r->state = GRAFT_RULE_FOLLOWS;
            p->counts->dropped++;
        }
    }
}

/* Notes how the dropped rules follow; before the others leave p->rules. */
static void list_followers(graft_pipeline *p)
{
    graft_followers *list = &p->counts->followers;
    list->items = GRAFT_NEW(p->arena, graft_follower, p->counts->dropped + 1);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        const graft_lifted *r = &p->rules[i];
        if (r->state != GRAFT_RULE_FOLLOWS) {
            continue;
        }
        graft_follower *f = &list->items[list->count++];
        *f = (graft_follower){.rule = r->rule, .id = r->id, .at_count = r->derivation_count};
        for (uint32_t k = 0; k < r->derivation_count; k++) {
            const graft_derivation *d = &r->derivations[k];
            f->at[k].point = r->check.instances[k];
            f->at[k].step_count = d->count;
            for (uint32_t s = 0; s < d->count; s++) {
                f->at[k].steps[s].id = p->rules[d->steps[s] / 2].id;
                f->at[k].steps[s].reversed = d->steps[s] % 2 == 1;
            }
        }
    }
}

graft_status graft_pipeline_prove(graft_pipeline *p)
{
    selector s = {.p = p};
    uint32_t kept = 0;
    GRAFT_PASS(sweep_state(p, GRAFT_RULE_OPEN));
    GRAFT_PASS(sweep_narrowed(p));
    qsort(p->rules, p->rule_count, sizeof *p->rules, compare_generality);
    s.deriver = graft_deriver_new(p->arena);
    for (rule_list list = select_rules(&s); list.count > 0; list = select_rules(&s)) {
        GRAFT_PASS(prove_selected(p, &list));
        settle_followers(&s);
        GRAFT_PASS(sweep_narrowed(p));
    }
    close_provers(p);
    list_followers(p);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].state == GRAFT_RULE_PROVED) {
            p->rules[kept++] = p->rules[i];
        }
    }
    p->rule_count = kept;
    return GRAFT_OK;
}
