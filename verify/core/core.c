/* core.c - see core.h. */
#include "verify/core/core.h"

#include "verify/core/caught.h"
#include "verify/core/readings.h"
#include "verify/core/symask.h"
#include "verify/core/symassume.h"
#include "verify/core/symcase.h"
#include "verify/core/symread.h"
#include "verify/core/symshape.h"

#include <stdlib.h>
#include <string.h>

typedef struct graft_core {
    graft_sym s;
    /* The proof at hand. */
    const graft_rule *rule;
    graft_prove_result counts;
    graft_core_result *result;
    graft_sym_instance instance;
    graft_sym_side sides[2];
    uint32_t visited; /* Cases. */
    uint32_t parts;   /* Of the case at hand, that were split. */
    bool possible;    /* A case was met of which Z3 does not say that it has no instances. */
    bool holds;
    bool failed; /* In this case: */
    graft_sym_case failed_case;
} proof;

static bool give_up(proof *p, const graft_sym_case *c, const char *why)
{
    (void)snprintf(p->result->reason, sizeof p->result->reason, "%s", why);
    p->holds = false;
    p->failed = true;
    p->failed_case = *c;
    return false;
}

/* Whether a condition follows: at once, or both where a condition of the source from `first` on is
 * given and elsewhere, as one piece of a concatenation may ask what another does. */
static bool follows(graft_sym_asker *a, const graft_facts *facts, Z3_ast condition, uint32_t first)
{
    if (graft_sym_implied(a, facts, condition)) {
        return true;
    }
    while (first < a->given->count &&
           (a->given->items[first].where == NULL || a->given->items[first].binder_count > 0)) {
        first++;
    }
    if (first == a->given->count) {
        return false;
    }
    Z3_ast where = a->given->items[first].where;
    const graft_facts yes = {.outer = facts, .fact = where};
    const graft_facts no = {.outer = facts, .fact = Z3_mk_not(a->s->z3, where)};
    return (graft_sym_holds(a->s, facts, no.fact) || follows(a, &yes, condition, first + 1)) &&
           (graft_sym_holds(a->s, facts, where) || follows(a, &no, condition, first + 1));
}

/* Whether a condition holds where it is asked, for all its binders. */
static bool is_implied(graft_sym_asker *a, const graft_facts *facts, const graft_sym_condition *c)
{
    const graft_facts where = {.outer = facts, .fact = c->where};
    return follows(a, c->where == NULL ? facts : &where, c->holds, 0);
}

/* Whether a condition is that there is a root or logarithm of something else than an element: a few
 * of these may leave single points alone (caught.h). */
static bool ties(const graft_sym *s, const graft_sym_condition *c)
{
    return !c->is_caught && c->is_root &&
           !(graft_sym_kind(s, c->holds) == Z3_OP_GE &&
             graft_sym_is_element(s, graft_sym_arg(s, c->holds, 0)));
}

/* Whether nothing that is caught hangs on the sign of a zero, or no infinity comes up at all: what Z3
 * says of a number that was computed, or compared, it says of finite ones; and what a root ties to
 * another number has no finite ones beside it (caught.h). */
static bool tells_signs(const proof *p, graft_sym_asker *a, const graft_facts *facts)
{
    bool finite = true;
    bool is_signed = graft_rule_jumps(p->rule);
    bool has_root = false;
    bool is_tied = false;
    for (uint32_t i = 0; i < a->given->count; i++) {
        const graft_sym_condition *c = &a->given->items[i];
        is_signed = is_signed || (c->is_caught && c->is_signed);
        has_root = has_root || (!c->is_caught && c->is_root);
        is_tied = is_tied || ties(a->s, c);
    }
    for (uint32_t i = 0; i < a->given->count && finite; i++) {
        const graft_sym_condition *c = &a->given->items[i];
        const bool matters = c->is_caught && (is_signed || is_tied || (has_root && c->is_of_div));
        finite = !matters || is_implied(a, facts, c);
    }
    return finite;
}

static const char *ask_output(proof *p, graft_sym_asker *a, uint32_t i)
{
    graft_facts room[GRAFT_MAX_RANK];
    graft_sym *s = &p->s;
    const graft_sym_side *sides = p->sides;
    const graft_operand x = p->rule->source.outputs[i];
    const graft_operand y = p->rule->target.outputs[i];
    const graft_facts *facts =
        graft_sym_within(s, graft_sym_shape_of(&p->instance, GRAFT_SYM_SOURCE, x), room);
    Z3_ast left = graft_sym_operand(s, &p->instance, &sides[GRAFT_SYM_SOURCE], x);
    Z3_ast right = graft_sym_operand(s, &p->instance, &sides[GRAFT_SYM_TARGET], y);
    const graft_sym_conditions *asked = graft_sym_operand_conditions(&sides[GRAFT_SYM_TARGET], y);
    a->given = graft_sym_operand_conditions(&sides[GRAFT_SYM_SOURCE], x);
    if (s->numbers != NULL ? !s->numbers->same(s, facts, left, right)
                           : !graft_sym_equal(a, facts, left, right)) {
        return "the sides were not proved equal";
    }
    if (!tells_signs(p, a, facts)) {
        return "the source may make a number of an infinity of either sign";
    }
    for (uint32_t k = 0; k < asked->count; k++) {
        if (!is_implied(a, facts, &asked->items[k])) {
            return "the target was not proved to be defined";
        }
    }
    return NULL;
}

/* --------------------------------------------------------------- one case */

/* Proves what the instance holds; NULL, or why it was not proved. */
static const char *prove_instance(proof *p)
{
    const char *why = NULL;
    graft_sym_asker a = {
        .s = &p->s, .sides = {&p->sides[0], &p->sides[1]}
    };
    if (!graft_sym_read_side(&p->s, &p->instance, GRAFT_SYM_SOURCE, &p->sides[GRAFT_SYM_SOURCE]) ||
        !graft_sym_read_side(&p->s, &p->instance, GRAFT_SYM_TARGET, &p->sides[GRAFT_SYM_TARGET])) {
        why = p->s.refusal;
    }
    for (uint32_t i = 0; i < p->rule->output_count && why == NULL; i++) {
        why = ask_output(p, &a, i);
    }
    why = p->s.refusal != NULL ? p->s.refusal : why;
    return why;
}

static void add_claim(graft_sym_extra *extra, Z3_ast claim)
{
    if (extra->count < GRAFT_LIMIT(PART_CLAIMS)) {
        extra->claims[extra->count++] = claim;
    }
}

/* Finds claims about the instance, of which Z3 says that all hold, or ways on, of which it says that
 * one does. */
static bool find_split(proof *p, graft_sym_split *split)
{
    graft_sym *s = &p->s;
    bool holds = s->hints != NULL && s->hints->split(s, &p->instance, p->sides, split);
    for (uint32_t i = 0; i < split->count && holds; i++) {
        holds = graft_sym_is_of_instance(s, split->claims[i]) &&
                (!split->all || graft_sym_holds(s, NULL, split->claims[i]));
    }
    return holds && split->count > 0 && /* A case that is split into none would be proved. */
           (split->all || graft_sym_holds(s, NULL, Z3_mk_or(s->z3, split->count, split->claims)));
}

/* Why there is no more to be asked: the proof has had its share, counted by Z3 and in terms, never
 * by a clock. NULL before. */
static const char *find_exhausted(const proof *p)
{
    const graft_effort used = graft_sym_effort(&p->s);
    return used.resource_count > GRAFT_LIMIT(RESOURCES) ? graft_limit_reason(GRAFT_LIMIT_RESOURCES)
           : used.term_count > GRAFT_LIMIT(TERMS)       ? graft_limit_reason(GRAFT_LIMIT_TERMS)
           : graft_sym_is_spent(&p->s)                  ? GRAFT_PROVE_SPENT
                                                        : NULL;
}

/* Proves a case under extra assumptions; splits it further where that fails. NULL when proved. */
static const char *prove_part(proof *p, const graft_sym_case *c, const graft_sym_extra *extra,
                              uint32_t depth)
{
    const char *why = find_exhausted(p);
    graft_sym_extra more = *extra;
    graft_sym_split r = {.count = 0};
    if (why != NULL) {
        return why;
    }
    graft_sym_fit fit = graft_sym_shapes(&p->s, p->rule, c, extra, &p->instance, &why);
    if (fit == GRAFT_SYM_NEVER) {
        return NULL;
    }
    if (fit == GRAFT_SYM_UNSUPPORTED) {
        return why;
    }
    p->result->cases += depth == 0 ? 1 : 0;
    why = prove_instance(p);
    if (why != NULL && find_exhausted(p) != NULL) {
        return find_exhausted(p);
    }
    if ((why != NULL || !p->possible) && graft_sym_is_impossible(&p->s)) {
        return NULL;
    }
    p->possible = true;
    if (why == NULL || depth >= GRAFT_LIMIT(CASE_SPLITS) || ++p->parts > GRAFT_LIMIT(CASE_PARTS)) {
        return why;
    }
    if (!find_split(p, &r)) {
        return why;
    }
    why = NULL;
    for (uint32_t i = 0; i < r.count && why == NULL; i++) {
        more.count = r.all && i > 0 ? more.count : extra->count;
        add_claim(&more, r.claims[i]);
        why = r.all && i + 1 < r.count ? NULL : prove_part(p, c, &more, depth + 1);
    }
    return why;
}

static bool prove_case(void *context, const graft_sym_case *c)
{
    proof *p = context;
    const graft_sym_extra none = {.count = 0};
    p->parts = 0;
    const char *why = ++p->visited > GRAFT_LIMIT(CASES) ? graft_limit_reason(GRAFT_LIMIT_CASES)
                                                        : prove_part(p, c, &none, 0);
    return why == NULL || give_up(p, c, why);
}

graft_core *graft_core_open(graft_prover *prover)
{
    proof *p = graft_term_room(1, sizeof *p);
    graft_sym_open(&p->s, prover);
    return p;
}

void graft_core_close(graft_core *p)
{
    graft_sym_close(&p->s);
    free(p);
}

graft_sym *graft_core_terms(graft_core *p) { return &p->s; }

const graft_sym_case *graft_core_failed_case(const graft_core *p)
{
    return p->failed ? &p->failed_case : NULL;
}

/* Makes everything ready for the proof of another rule. */
static void begin(proof *p, const graft_rule *rule, graft_core_result *result)
{
    memset(result, 0, sizeof *result);
    p->rule = rule;
    p->result = result;
    p->visited = 0;
    p->possible = false;
    p->holds = true;
    p->failed = false;
    memset((void *)p->sides, 0, sizeof p->sides);
    graft_sym_begin(&p->s);
}

void graft_core_try(graft_core *p, const graft_rule *rule, const graft_sym_hints *hints,
                    graft_sym_numbers *numbers, const graft_prove_options *options,
                    graft_core_result *result)
{
    graft_prover_begin(p->s.prover, options, &p->counts);
    begin(p, rule, result);
    p->s.hints = hints;
    p->s.numbers = numbers;
    (void)graft_sym_cases(rule, prove_case, p);
    result->questions = p->counts.questions;
    result->effort = graft_sym_effort(&p->s);
    if (p->holds && !p->possible) {
        (void)snprintf(result->reason, sizeof result->reason, "no case has instances");
    }
    result->same = p->holds && p->possible && !graft_sym_is_spent(&p->s);
    result->proved = result->same && numbers == NULL;
    p->s.numbers = NULL;
}
