/* Hints are not trusted (verify/core/hints.h): whatever they say, no false rule is proved, and what
 * is proved without them needs none. */
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/instances/prove.h"
#include "verify/sizes/hinter.h"

#include "verify/core/core.h"
#include "verify/core/symmatch.h"

#include <string.h>

typedef enum {
    HONEST,
    SILENT,    /* Proposes nothing. */
    SHORT,     /* Leaves out all alternatives of a split but the first. */
    UNIT,      /* All sizes of variables must be 1. */
    SHIFTED,   /* Maps go one too far. */
    COLLAPSED, /* All binders go to the first one. */
    FIRST,     /* Every place is the first, every value 0. */
    ONES,      /* What is equal to something is 1, */
    ITSELF,    /* or what it is and not. */
    POSSIBLE,  /* All can hold, nothing known is of use, and a map is what binders come in order. */
    UNASKED,   /* The question is unsatisfiable, though nobody was asked. */
    UNRELATED, /* Something else is unsatisfiable, as Z3 says, */
    RENAMED,   /* or what the question would be if its symbols were others, */
    COMPOUND,  /* or if one of its terms were one. */
    PLACES,    /* Ways on are places of an element, not instances, */
    THIRDS,    /* numbers of times are a third, */
    NO_GROUPS, /* and there are groups of which there are none. */
    HINTER_COUNT
} lie;

static const char *const lie_names[HINTER_COUNT] = {
    "honest",  "silent",   "short",  "unit",     "shifted",  "collapsed",
    "first",   "ones",     "itself", "possible", "unasked",  "unrelated",
    "renamed", "compound", "places", "thirds",   "no groups"};

/* clang-format off */
static const struct {
    const char *text;
    bool holds;
} cases[] = {
    {"add(a, b) = add(b, a)", true},
    {"matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where same_shape(a, b)", true},
    {"matmul(a, matmul(b, c)) = matmul(matmul(a, b), c)", true},
    {"matmul(concat#1(a, b), concat#2(c, d)) = add(matmul(a, c), matmul(b, d)) where rank(a) = 2 and #1.axis = 1 and "
     "#2.axis = 0", true},
    {"matmul(a, b) = matmul(b, a)", false},
    {"reduce_sum(add(a, b), axes=1, keep=1) = add(reduce_sum(a, axes=1, keep=1), reduce_sum(b, axes=1, keep=1)) where "
     "rank(a) = 1 and rank(b) = 1", false},
    {"reduce_sum(slice(a, axis=0, start=0, end=2), axes=1, keep=1) = reduce_sum(slice(a, axis=0, start=1, end=3), "
     "axes=1, keep=1) where rank(a) = 1", false},
    {"reduce_max(slice(a, axis=0, start=0, end=2), axes=1, keep=1) = reduce_max(slice(a, axis=0, start=1, end=3), "
     "axes=1, keep=1) where rank(a) = 1", false},
    {"reduce_sum(a, axes=1, keep=0) = reduce_sum(a, axes=2, keep=0) where rank(a) = 2", false},
    {"mul(matmul(a, b), matmul(a, b)) = matmul(mul(a, a), mul(b, b)) where rank(a) = 2 and rank(b) = 2", false},
    {"reduce_max(repeat(a, axis=0, times=2), axes=1, keep=1) = reduce_max(a, axes=1, keep=1)", true},
    {"reduce_sum(repeat(a, axis=0, times=2), axes=1, keep=1) = reduce_sum(a, axes=1, keep=1)", false},
    {"repeat(slice(a, axis=0, start=0, end=2), axis=0, times=2) = slice(repeat(a, axis=0, times=2), axis=0, start=2, "
     "end=6)", false},
    {"repeat(slice(a, axis=0, start=0, end=2), axis=0, times=3) = slice(repeat(a, axis=0, times=3), axis=0, start=1, "
     "end=7)", false},
    {"matmul(reverse(a, axis=1), b) = matmul(a, reverse(b, axis=0)) where rank(a) = 2 and rank(b) = 2", true},
    {"matmul(reverse(a, axis=1), b) = matmul(a, b) where rank(a) = 2 and rank(b) = 2", false},
    {"div(a, b) = mul(a, div(b, b))", false},
    {"cumsum(a, axis=0, exclusive=1) = sub(cumsum(a, axis=0, exclusive=0), a)", true},
    {"cumsum(a, axis=0, exclusive=0) = pad(slice(a, axis=0, start=0, end=1), axis=0, before=dim(a,0) - 1, after=0, "
     "value=0)", false},
    {"reduce_max(pad(relu(a), axis=0, before=1, after=1, value=0), axes=1, keep=1) = reduce_max(relu(a), axes=1, "
     "keep=1)", true},
    {"reduce_max(pad#1(a, axis=0, value=0), axes=1, keep=1) = relu(reduce_max(a, axes=1, keep=1))", false},
    {"slice(reduce_sum(pad(add(a, fill(value=0, dim=[1, 1])), axis=0, before=1, after=0, value=0), axes=2, keep=1), "
     "axis=0, start=1, end=2) = slice(reduce_sum(pad(add(a, fill(value=0, dim=[1, 1])), axis=0, before=1, after=0, "
     "value=0), axes=2, keep=1), axis=0, start=0, end=1) where rank(a) = 1", false},
};
/* clang-format on */

typedef struct {
    graft_sym_hints hints; /* First. */
    graft_sym_hinter hinter;
    lie how;
} liar;

static const liar *liar_of(const graft_sym *s) { return (const liar *)s->hints; }

static bool lie_can_hold(const graft_sym *s, uint32_t count, const Z3_ast *conditions)
{
    const liar *l = liar_of(s);
    return l->how == POSSIBLE ||
           (l->how != SILENT && l->hinter.hints.can_hold(s, count, conditions));
}

static void lie_learn(const graft_sym *s)
{
    const liar *l = liar_of(s);
    l->hinter.hints.learn(s);
}

static void lie_leave_out(const graft_sym *s, Z3_ast question, uint32_t count, const Z3_ast *known,
                          bool *left_out)
{
    const liar *l = liar_of(s);
    if (l->how == POSSIBLE) {
        memset(left_out, true, count * sizeof *left_out);
    } else if (l->how != SILENT) {
        l->hinter.hints.leave_out(s, question, count, known, left_out);
    }
}

/* Laws hold of whatever they are about. */
static uint32_t lie_laws(graft_sym *s, Z3_ast question, uint32_t known_count, const Z3_ast *known,
                         graft_sym_law *laws)
{
    const liar *l = liar_of(s);
    if (l->how == FIRST) {
        laws[0] = (graft_sym_law){question, NULL};
        laws[1] = (graft_sym_law){graft_sym_int(s, -1), graft_sym_int(s, -1)};
        return 2;
    }
    if (l->how == NO_GROUPS) {
        Z3_ast zero = graft_sym_int(s, 0);
        Z3_ast of[3] = {zero, graft_sym_int(s, 1), zero};
        laws[0] = (graft_sym_law){Z3_mk_app(s->z3, s->group, 3, of), NULL};
        return 1;
    }
    return l->how == SILENT ? 0 : l->hinter.hints.laws(s, question, known_count, known, laws);
}

static bool lie_solve(const graft_sym *s, Z3_ast difference, graft_sym_solution *x)
{
    const liar *l = liar_of(s);
    bool found = l->how != SILENT && l->hinter.hints.solve(s, difference, x);
    if (found && l->how == ONES) {
        x->value = graft_sym_int(s, 1);
    } else if (found && l->how == ITSELF) {
        x->value = graft_sym_sub(s, graft_sym_add(s, x->symbol, x->symbol), x->value);
        x->opposite = !x->opposite;
    }
    return found;
}

static Z3_ast lie_multiples(const graft_sym *s, Z3_ast x, Z3_ast n)
{
    const liar *l = liar_of(s);
    Z3_ast y = l->how == SILENT ? NULL : l->hinter.hints.multiples(s, x, n);
    return l->how == SHIFTED ? graft_sym_add(s, y, graft_sym_int(s, 1))
           : l->how == ONES  ? graft_sym_int(s, 1)
           : l->how == FIRST ? x
           : l->how == THIRDS && !graft_sym_is_symbol(s, x) ? graft_term_rational(&s->term, 1, 3)
                                                            : y;
}

static bool lie_map(graft_sym *s, const graft_sym_pair *pair, uint32_t way,
                    Z3_ast to[GRAFT_SYM_BINDERS])
{
    const liar *l = liar_of(s);
    if (l->how == SILENT) {
        return false;
    }
    if (l->how != COLLAPSED && l->how != POSSIBLE) {
        bool more = l->hinter.hints.map(s, pair, way, to);
        for (uint32_t i = 0;
             more && l->how == SHIFTED && to[0] != NULL && i < pair->ranges[0].count; i++) {
            to[i] = graft_sym_add(s, to[i], graft_sym_int(s, 1));
        }
        return more;
    }
    for (uint32_t i = 0; i < pair->ranges[0].count; i++) {
        uint32_t k = l->how == COLLAPSED || i >= pair->ranges[1].count ? 0 : i;
        to[i] = pair->ranges[1].binders[k];
    }
    return way == 0;
}

static Z3_ast lie_fixed(graft_sym *s, const graft_sym_range *range, uint32_t binder)
{
    const liar *l = liar_of(s);
    Z3_ast value = l->how == SILENT ? NULL : l->hinter.hints.fixed(s, range, binder);
    return l->how == FIRST                      ? graft_sym_int(s, 0)
           : l->how == COLLAPSED                ? range->binders[0]
           : l->how == SHIFTED && value != NULL ? graft_sym_add(s, value, graft_sym_int(s, 1))
           : l->how == POSSIBLE                 ? graft_term_constant(s->z3, s->integer, "r7")
                                                : value;
}

static void lie_inside(graft_sym *s, const graft_sym_range *range, Z3_ast to[GRAFT_SYM_BINDERS])
{
    const liar *l = liar_of(s);
    l->hinter.hints.inside(s, range, to);
    for (uint32_t i = 0; i < range->count; i++) {
        to[i] = l->how == SILENT || l->how == FIRST ? graft_sym_int(s, 0)
                : l->how == COLLAPSED               ? range->binders[0]
                : l->how == SHIFTED                 ? range->sizes[i]
                                                    : to[i];
    }
}

static Z3_ast lie_part(graft_sym *s, uint32_t count, const Z3_ast *folds, uint32_t which,
                       const graft_sym_range *range, Z3_ast body)
{
    const liar *l = liar_of(s);
    Z3_ast other = graft_term_constant(s->z3, s->integer, "%s", l->how == POSSIBLE ? "r1" : "b1_0");
    return l->how == SILENT  ? NULL
           : l->how == FIRST ? Z3_mk_le(s->z3, range->binders[0], graft_sym_int(s, 0))
           : l->how == POSSIBLE || l->how == COLLAPSED
               ? Z3_mk_le(s->z3, range->binders[0], other)
               : l->hinter.hints.part(s, count, folds, which, range, body);
}

static bool lie_place(graft_sym *s, const graft_sym_pair *pair, Z3_ast to[GRAFT_SYM_BINDERS])
{
    const liar *l = liar_of(s);
    for (uint32_t i = 0; i < GRAFT_SYM_BINDERS; i++) {
        to[i] = graft_sym_int(s, 0);
    }
    return l->how == FIRST || (l->how != SILENT && l->hinter.hints.place(s, pair, to));
}

static bool lie_values(graft_sym *s, const graft_sym_condition *c, Z3_ast of, Z3_ast to,
                       Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS])
{
    const liar *l = liar_of(s);
    return l->how == FIRST || (l->how != SILENT && l->hinter.hints.values(s, c, of, to, values));
}

static bool lie_split(graft_sym *s, const graft_sym_instance *instance,
                      const graft_sym_side sides[2], graft_sym_split *split)
{
    const liar *l = liar_of(s);
    bool found = l->how != SILENT && l->hinter.hints.split(s, instance, sides, split);
    if (found && l->how == SHORT) {
        split->count = 1;
    } else if (l->how == UNIT) {
        *split = (graft_sym_split){.all = true};
        for (uint32_t v = 0; v < instance->rule->var_count; v++) {
            for (uint32_t i = 0; i < instance->vars[v].rank; i++) {
                split->claims[split->count++] =
                    Z3_mk_eq(s->z3, instance->vars[v].dims[i], graft_sym_int(s, 1));
            }
        }
    }
    if (l->how == PLACES) {
        Z3_ast row = graft_sym_formals(s, 2)[0];
        *split = (graft_sym_split){
            .claims = {Z3_mk_le(s->z3, row, graft_sym_int(s, 0)),
                       Z3_mk_lt(s->z3, graft_sym_int(s, 0), row)},
            .count = 2
        };
    }
    return found || l->how == UNIT || l->how == PLACES;
}

static graft_asked lie_refute(graft_sym *s, const graft_term_state *term, Z3_ast question,
                              uint32_t given_count, const Z3_ast *given)
{
    static Z3_ast one[1];
    static Z3_ast term_of_one[1];
    const liar *l = liar_of(s);
    graft_asked r = l->hinter.hints.refute(s, term, question, given_count, given);
    if (l->how == UNASKED) {
        r = (graft_asked){.formula = question};
    } else if (l->how == UNRELATED) {
        Z3_ast claim = graft_sym_arg(s, question, 0);
        Z3_ast both[2] = {question, claim};
        r = (graft_asked){.formula = Z3_mk_and(s->z3, 2, both)};
        (void)graft_prover_ask(s->prover, r.formula, GRAFT_SEARCH_LINEAR);
    } else if (l->how == COMPOUND) {
        term_of_one[0] = graft_sym_arg(s, question, 0);
        one[0] = Z3_mk_eq(s->z3, term->zero, term->zero);
        r = (graft_asked){
            .formula = Z3_mk_not(s->z3, one[0]), .count = 1, .symbols = one, .terms = term_of_one};
        (void)graft_prover_ask(s->prover, r.formula, GRAFT_SEARCH_LINEAR);
    } else if (l->how == RENAMED && graft_sym_kind(s, graft_sym_arg(s, question, 0)) == Z3_OP_EQ) {
        Z3_ast left = graft_sym_arg(s, graft_sym_arg(s, question, 0), 0);
        one[0] = Z3_mk_fresh_const(s->z3, "same", term->real);
        r.formula = Z3_mk_not(s->z3, Z3_mk_eq(s->z3, one[0], one[0]));
        (void)graft_prover_ask(s->prover, r.formula, GRAFT_SEARCH_LINEAR);
        r.count = 1;
        r.symbols = one;
        term_of_one[0] = left;
        r.terms = term_of_one;
    }
    return r;
}

static liar *open_liar(graft_env *env, graft_core *core, lie how)
{
    liar *l = GRAFT_NEW(env->unit, liar, 1);
    graft_sym_hinter_open(&l->hinter, graft_core_terms(core));
    l->how = how;
    l->hints = (graft_sym_hints){.context = &l->hinter,
                                 .can_hold = lie_can_hold,
                                 .laws = lie_laws,
                                 .solve = lie_solve,
                                 .multiples = lie_multiples,
                                 .leave_out = lie_leave_out,
                                 .learn = lie_learn,
                                 .map = lie_map,
                                 .fixed = lie_fixed,
                                 .inside = lie_inside,
                                 .part = lie_part,
                                 .place = lie_place,
                                 .values = lie_values,
                                 .split = lie_split,
                                 .refute = lie_refute};
    return l;
}

static bool is_proved(graft_env *env, const graft_rule *rule, lie how)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_prover prover;
    graft_prove_result counts;
    graft_core_result result;
    graft_prover_open(&prover, &options, &counts);
    graft_core *core = graft_core_open(&prover);
    liar *l = open_liar(env, core, how);
    graft_core_try(core, rule, &l->hints, NULL, &options, &result);
    graft_sym_hinter_close(&l->hinter);
    graft_core_close(core);
    graft_prover_close(&prover);
    return result.proved;
}

CHECK_CASE(test_lies)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        rule = rows_parse(env, cases[i].text);
        for (uint32_t how = 0; how < HINTER_COUNT; how++) {
            bool proved = is_proved(env, &rule, (lie)how);
            if (proved && !cases[i].holds) {
                fail_msg("%s hints prove %s", lie_names[how], cases[i].text);
            }
            if (!proved && cases[i].holds && (how == HONEST || (i == 0 && how < UNASKED))) {
                fail_msg("%s hints do not prove %s", lie_names[how], cases[i].text);
            }
        }
    }
}

static bool lie_into_a_sum(graft_sym *s, const graft_sym_pair *pair, Z3_ast to[GRAFT_SYM_BINDERS])
{
    Z3_ast binder = graft_term_constant(s->z3, s->integer, "b1_0");
    Z3_ast first = Z3_mk_eq(s->z3, binder, graft_sym_int(s, 0));
    (void)pair;
    to[0] = Z3_mk_ite(s->z3, first, graft_sym_int(s, 0), graft_sym_int(s, 1));
    return true;
}

/* The larger one of two: of the sums of rows of x or, `mixed`, of x(0, 0) + x(1, 1) and itself. */
static Z3_ast largest_sum(graft_sym *s, bool mixed)
{
    Z3_ast two = graft_sym_int(s, 2);
    graft_sym_range rows = graft_sym_range_open(s);
    graft_sym_range columns = graft_sym_range_open(s);
    Z3_ast row = graft_sym_range_add(s, &rows, two);
    Z3_ast index[2] = {row, graft_sym_range_add(s, &columns, two)};
    Z3_ast first = Z3_mk_eq(s->z3, index[1], graft_sym_int(s, 0));
    if (mixed) {
        index[0] = Z3_mk_ite(s->z3, first, graft_sym_int(s, 0), graft_sym_int(s, 1));
    }
    Z3_ast sum = graft_sym_fold_close(s, GRAFT_SYM_SUM, &columns,
                                      Z3_mk_app(s->z3, s->elements[0], 2, index));
    return graft_sym_fold_close(s, GRAFT_SYM_MAX, &rows, sum);
}

/* A place of a maximum whose name a sum within it would bind is none. */
CHECK_CASE(test_bound_names)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_prover prover;
    graft_prove_result counts;
    graft_prover_open(&prover, &options, &counts);
    graft_core *core = graft_core_open(&prover);
    liar *l = open_liar(env, core, HONEST);
    graft_sym *s = graft_core_terms(core);
    Z3_sort index[2] = {s->integer, s->integer};
    s->elements[0] =
        Z3_mk_func_decl(s->z3, Z3_mk_string_symbol(s->z3, "x0"), 2, index, s->term.real);
    Z3_ast rows = largest_sum(s, false);
    Z3_ast mixed = largest_sum(s, true);
    l->hints.place = lie_into_a_sum;
    s->hints = &l->hints;
    assert_false(graft_sym_is_below(s, NULL, mixed, rows));
    graft_sym_hinter_close(&l->hinter);
    graft_core_close(core);
    graft_prover_close(&prover);
}
