/* The symbolic reading of every operator against its body: what symshape.c assumes of an operator's
 * application and infers for its output, and what symread.c says an element is, instantiated at
 * random shapes and attributes and computed in the field algebra, as the body is; what it says an
 * element's bits are (symbits.h) in binary32. And each is of one of the cases of symcase.c. */
#include "graph/base/bits.h"
#include "verify/core/symread.h"

#include "graph/meaning/algebra_field.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "tests/support/exact.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"
#include "verify/sizes/hinter.h"
#include "verify/sizes/symbits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_EACH = 60, INDICES_EACH = 8, ENLARGED_MOST = 9, BOUND_MOST = 32 };

typedef struct {
    graft_env *env;
    graft_sym s;
    graft_sym_hinter hinter;
    graft_prove_options options;
    graft_rng rng;
    check_case drawn;
    graft_rule rule;
    graft_sym_case c;
    graft_sym_instance instance;
    graft_sym_side side;
    graft_field in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    graft_field out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    graft_field_state field;
    graft_sym_bits bits;
    float bits_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    float bits_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    int64_t index[GRAFT_MAX_RANK];    /* Of the element asked for. */
    Z3_ast bound[BOUND_MOST];         /* Binders of the folds around, */
    int64_t bound_values[BOUND_MOST]; /* and where they stand. */
    uint32_t bound_count;
} workspace;

/* ---------------------------------------------------------------- evaluating */

static graft_field run_scalar(workspace *w, uint32_t op, graft_field a, graft_field b)
{
    return check_scalar_field(&w->field, op, a, b);
}

static const char *name_of(const workspace *w, Z3_ast term)
{
    Z3_func_decl decl = Z3_get_app_decl(w->s.z3, Z3_to_app(w->s.z3, term));
    return Z3_get_symbol_string(w->s.z3, Z3_get_decl_name(w->s.z3, decl));
}

static int64_t integer_at(workspace *w, Z3_ast term);

/* d<v>_<i>, the i-th axis from the last, s<i>, q<i>, the last axis being q5, or a binder. */
static int64_t symbol_at(const workspace *w, Z3_ast term)
{
    for (uint32_t i = w->bound_count; i-- > 0;) {
        if (w->bound[i] == term) {
            return w->bound_values[i];
        }
    }
    const char *name = name_of(w, term);
    long first = strtol(name + 1, NULL, 10);
    switch (name[0]) {
    case 'd':
        return w->drawn.in[first]
            .dims[w->drawn.in[first].rank - strtol(strchr(name, '_') + 1, NULL, 10)];
    case 's':
        return w->drawn.attrs[first];
    case 'q':
        return w->index[first - (GRAFT_MAX_RANK - w->drawn.out[0].rank)];
    default:
        fail_msg("%s has no value", name);
        return 0;
    }
}

/* place<n>(i..., d...) and part<n>_<k>(p, d...). */
static int64_t place_at(workspace *w, Z3_ast term)
{
    const char *name = name_of(w, term); /* Good until the next one is read. */
    bool whole = name[1] == 'l';
    char *end = NULL;
    uint32_t n = (uint32_t)strtol(name + (whole ? 5 : 4), &end, 10);
    uint32_t part = whole ? 0 : (uint32_t)strtol(end + 1, NULL, 10);
    int64_t place = integer_at(w, graft_sym_arg(&w->s, term, 0));
    if (whole) {
        for (uint32_t i = 1; i < n; i++) {
            place = place * integer_at(w, graft_sym_arg(&w->s, term, n + i)) +
                    integer_at(w, graft_sym_arg(&w->s, term, i));
        }
        return place;
    }
    for (uint32_t i = n - 1; i > part; i--) {
        place /= integer_at(w, graft_sym_arg(&w->s, term, i + 1));
    }
    return place % integer_at(w, graft_sym_arg(&w->s, term, part + 1));
}

static int64_t function_at(workspace *w, Z3_ast term)
{
    const graft_sym *s = &w->s;
    int64_t a = integer_at(w, graft_sym_arg(s, term, 0));
    if (graft_sym_is_app(s, term, s->group)) {
        int64_t outputs = integer_at(w, graft_sym_arg(s, term, 1));
        return a / (outputs / integer_at(w, graft_sym_arg(s, term, 2)));
    }
    if (graft_sym_is_app(s, term, s->quotient)) {
        return a / integer_at(w, graft_sym_arg(s, term, 1));
    }
    if (graft_sym_is_app(s, term, s->window)) {
        return a / integer_at(w, graft_sym_arg(s, term, 1)) + 1;
    }
    if (graft_sym_is_app(s, term, s->at)) {
        return a == 1 ? 0 : integer_at(w, graft_sym_arg(s, term, 1));
    }
    if (graft_sym_is_app(s, term, s->wide)) {
        return a == 1 ? integer_at(w, graft_sym_arg(s, term, 1)) : a;
    }
    return place_at(w, term);
}

static bool truth_at(workspace *w, Z3_ast term);

static int64_t integer_at(workspace *w, Z3_ast term)
{
    const graft_sym *s = &w->s;
    int64_t value = 0;
    if (Z3_is_numeral_ast(s->z3, term)) {
        assert_true(Z3_get_numeral_int64(s->z3, term, &value));
        return value;
    }
    uint32_t count = graft_sym_arity(s, term);
    Z3_decl_kind kind = graft_sym_kind(s, term);
    switch ((uint32_t)kind) {
    case Z3_OP_ADD:
    case Z3_OP_MUL:
    case Z3_OP_SUB:
        value = integer_at(w, graft_sym_arg(s, term, 0));
        for (uint32_t i = 1; i < count; i++) {
            int64_t x = integer_at(w, graft_sym_arg(s, term, i));
            value = kind == Z3_OP_MUL ? value * x : kind == Z3_OP_ADD ? value + x : value - x;
        }
        return value;
    case Z3_OP_MOD: {
        int64_t by = integer_at(w, graft_sym_arg(s, term, 1));
        if (by == 0) {
            fail_msg("%s: a remainder by 0", Z3_ast_to_string(s->z3, term));
            return 0;
        }
        return integer_at(w, graft_sym_arg(s, term, 0)) % by;
    }
    case Z3_OP_ITE:
        return integer_at(w,
                          graft_sym_arg(s, term, truth_at(w, graft_sym_arg(s, term, 0)) ? 1 : 2));
    case Z3_OP_UNINTERPRETED:
        return count == 0 ? symbol_at(w, term) : function_at(w, term);
    default:
        fail_msg("%s", Z3_ast_to_string(s->z3, term));
        return 0;
    }
}

static graft_field number_at(workspace *w, Z3_ast term);

/* -1, 0 or 1. */
static int compare_at(workspace *w, Z3_ast a, Z3_ast b)
{
    if (Z3_get_sort(w->s.z3, a) == w->s.integer) {
        int64_t x = integer_at(w, a);
        int64_t y = integer_at(w, b);
        return x < y ? -1 : x > y ? 1 : 0;
    }
    double x = number_at(w, a).shadow;
    double y = number_at(w, b).shadow;
    return x < y ? -1 : x > y ? 1 : 0;
}

static bool truth_at(workspace *w, Z3_ast term)
{
    const graft_sym *s = &w->s;
    uint32_t count = graft_sym_arity(s, term);
    Z3_decl_kind kind = graft_sym_kind(s, term);
    int order = 0;
    switch ((uint32_t)kind) {
    case Z3_OP_TRUE:
        return true;
    case Z3_OP_FALSE:
        return false;
    case Z3_OP_NOT:
        return !truth_at(w, graft_sym_arg(s, term, 0));
    case Z3_OP_IMPLIES:
        return !truth_at(w, graft_sym_arg(s, term, 0)) || truth_at(w, graft_sym_arg(s, term, 1));
    case Z3_OP_AND:
    case Z3_OP_OR:
        for (uint32_t i = 0; i < count; i++) {
            if (truth_at(w, graft_sym_arg(s, term, i)) != (kind == Z3_OP_AND)) {
                return kind == Z3_OP_OR;
            }
        }
        return kind == Z3_OP_AND;
    default:
        order = compare_at(w, graft_sym_arg(s, term, 0), graft_sym_arg(s, term, 1));
        return kind == Z3_OP_LE   ? order <= 0
               : kind == Z3_OP_LT ? order < 0
               : kind == Z3_OP_GE ? order >= 0
               : kind == Z3_OP_GT ? order > 0
                                  : order == 0;
    }
}

/* The place of an element in its variable; false outside of it: what is guarded plays no role. */
static bool find_element(workspace *w, Z3_ast term, uint32_t *v, size_t *place)
{
    *v = (uint32_t)strtol(name_of(w, term) + 1, NULL, 10);
    *place = 0;
    const graft_shape *shape = &w->drawn.in[*v];
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t at = integer_at(w, graft_sym_arg(&w->s, term, i));
        if (at < 0 || at >= shape->dims[i]) {
            return false;
        }
        *place = *place * (size_t)shape->dims[i] + (size_t)at;
    }
    return true;
}

static graft_field element_at(workspace *w, Z3_ast term)
{
    uint32_t v = 0;
    size_t place = 0;
    return find_element(w, term, &v, &place) ? w->in[v][place] : graft_field_integer(0);
}

/* Steps the innermost binders through their ranges; false after the last. */
static bool step_binders(workspace *w, uint32_t first, const int64_t *sizes)
{
    for (uint32_t i = w->bound_count; i-- > first;) {
        if (++w->bound_values[i] < sizes[i - first]) {
            return true;
        }
        w->bound_values[i] = 0;
    }
    return false;
}

/* Binds a fold's binders to the beginning of their ranges. How many there are. */
static uint32_t enter_fold(workspace *w, Z3_ast term, int64_t *sizes)
{
    const graft_sym *s = &w->s;
    uint32_t count = (graft_sym_arity(s, term) - 2) / 2;
    uint32_t first = w->bound_count;
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = integer_at(w, graft_sym_arg(s, term, count + i));
    }
    for (uint32_t i = 0; i < count; i++) {
        w->bound[first + i] = graft_sym_arg(s, term, i);
        w->bound_values[first + i] = 0;
    }
    w->bound_count += count;
    return count;
}

static graft_field fold_at(workspace *w, Z3_ast term, bool is_sum)
{
    const graft_sym *s = &w->s;
    uint32_t first = w->bound_count;
    int64_t sizes[GRAFT_SYM_BINDERS];
    graft_field result = graft_field_integer(0);
    bool empty = true;
    uint32_t count = enter_fold(w, term, sizes);
    do {
        if (truth_at(w, graft_sym_arg(s, term, 2 * count))) {
            graft_field x = number_at(w, graft_sym_arg(s, term, 2 * count + 1));
            result = empty && !is_sum
                         ? x
                         : run_scalar(w, is_sum ? GRAFT_OP_add : GRAFT_OP_max, result, x);
            empty = false;
        }
    } while (step_binders(w, first, sizes));
    w->bound_count = first;
    assert_true(is_sum || !empty);
    return result;
}

static graft_field rational_at(const workspace *w, Z3_ast term)
{
    const char *text = Z3_get_numeral_string(w->s.z3, term);
    char *end = NULL;
    int64_t numerator = strtoll(text, &end, 10);
    return graft_field_rational(numerator, *end == '/' ? strtoll(end + 1, NULL, 10) : 1);
}

static graft_field apply_at(workspace *w, Z3_ast term)
{
    static const uint8_t ops[GRAFT_TERM_FUNCTION_COUNT] = {[GRAFT_TERM_EXP] = GRAFT_OP_exp,
                                                           [GRAFT_TERM_SQRT] = GRAFT_OP_sqrt,
                                                           [GRAFT_TERM_ERF] = GRAFT_OP_erf,
                                                           [GRAFT_TERM_SIGMOID] = GRAFT_OP_sigmoid,
                                                           [GRAFT_TERM_INVERSE] = GRAFT_OP_div,
                                                           [GRAFT_TERM_LOG] = GRAFT_OP_log,
                                                           [GRAFT_TERM_SIN] = GRAFT_OP_sin,
                                                           [GRAFT_TERM_COS] = GRAFT_OP_cos,
                                                           [GRAFT_TERM_REMAINDER] =
                                                               GRAFT_OP_remainder};
    const graft_sym *s = &w->s;
    if (graft_sym_arity(s, term) == 0 && name_of(w, term)[0] == 's') {
        return graft_field_float(w->drawn.attrs[strtol(name_of(w, term) + 1, NULL, 10)]);
    }
    if (graft_sym_is_element(s, term)) {
        return element_at(w, term);
    }
    if (graft_sym_fold_kind(s, term) != GRAFT_SYM_FOLD_COUNT) {
        return fold_at(w, term, graft_sym_fold_kind(s, term) == GRAFT_SYM_SUM);
    }
    uint32_t f = 0;
    while (!graft_sym_is_app(s, term, s->term.functions[f])) {
        f++;
        assert_true(f < GRAFT_TERM_FUNCTION_COUNT);
    }
    graft_field x = number_at(w, graft_sym_arg(s, term, 0));
    if (f == GRAFT_TERM_ROUND || f == GRAFT_TERM_SCALED) {
        graft_field scale = number_at(w, graft_sym_arg(s, term, 1));
        return f == GRAFT_TERM_ROUND
                   ? graft_field_integer((int64_t)rint(x.shadow / scale.shadow))
                   : run_scalar(
                         w, GRAFT_OP_mul,
                         run_scalar(w, GRAFT_OP_sub, x, number_at(w, graft_sym_arg(s, term, 2))),
                         scale);
    }
    graft_field y = f == GRAFT_TERM_REMAINDER ? number_at(w, graft_sym_arg(s, term, 1)) : x;
    return f == GRAFT_TERM_INVERSE ? run_scalar(w, GRAFT_OP_div, graft_field_integer(1), x)
                                   : run_scalar(w, ops[f], x, y);
}

static graft_field number_at(workspace *w, Z3_ast term)
{
    const graft_sym *s = &w->s;
    if (Z3_is_numeral_ast(s->z3, term)) {
        return rational_at(w, term);
    }
    Z3_decl_kind kind = graft_sym_kind(s, term);
    graft_field value;
    switch ((uint32_t)kind) {
    case Z3_OP_ADD:
    case Z3_OP_MUL:
    case Z3_OP_SUB:
    case Z3_OP_DIV:
        value = number_at(w, graft_sym_arg(s, term, 0));
        for (uint32_t i = 1; i < graft_sym_arity(s, term); i++) {
            uint32_t op = kind == Z3_OP_ADD   ? GRAFT_OP_add
                          : kind == Z3_OP_MUL ? GRAFT_OP_mul
                          : kind == Z3_OP_SUB ? GRAFT_OP_sub
                                              : GRAFT_OP_div;
            value = run_scalar(w, op, value, number_at(w, graft_sym_arg(s, term, i)));
        }
        return value;
    case Z3_OP_UMINUS:
        value = number_at(w, graft_sym_arg(s, term, 0));
        return run_scalar(w, GRAFT_OP_sub, graft_field_integer(0), value);
    case Z3_OP_TO_REAL:
        return graft_field_integer(integer_at(w, graft_sym_arg(s, term, 0)));
    case Z3_OP_ITE:
        return number_at(w, graft_sym_arg(s, term, truth_at(w, graft_sym_arg(s, term, 0)) ? 1 : 2));
    case Z3_OP_UNINTERPRETED:
        return apply_at(w, term);
    default:
        fail_msg("%s", Z3_ast_to_string(s->z3, term));
        return graft_field_integer(0);
    }
}

/* --------------------------------------------------------------- evaluating bits */

static float bits_at(workspace *w, Z3_ast term);

static float bits_fold_at(workspace *w, Z3_ast term, graft_sym_fold kind)
{
    bool is_max = kind == GRAFT_SYM_ORDERED_MAX;
    uint32_t first = w->bound_count;
    int64_t sizes[GRAFT_SYM_BINDERS];
    float result = 0.0F;
    int32_t met = 0;
    uint32_t count = enter_fold(w, term, sizes);
    do {
        if (truth_at(w, graft_sym_arg(&w->s, term, 2 * count))) {
            float x = bits_at(w, graft_sym_arg(&w->s, term, 2 * count + 1));
            result = is_max && met == 0 ? x
                                        : check_scalar_float(is_max ? GRAFT_OP_max : GRAFT_OP_add,
                                                             NULL, result, x);
            met++;
        }
    } while (step_binders(w, first, sizes));
    w->bound_count = first;
    assert_true(met > 0 || kind == GRAFT_SYM_ORDERED_SUM);
    return kind == GRAFT_SYM_ORDERED_MEAN ? result / (float)met : result;
}

static float bits_operation_at(workspace *w, Z3_ast term)
{
    static const uint8_t ops[GRAFT_SYM_BITS_COUNT] = {
        [GRAFT_SYM_BITS_SUM] = GRAFT_OP_add,
        [GRAFT_SYM_BITS_PRODUCT] = GRAFT_OP_mul,
        [GRAFT_SYM_BITS_DIFFERENCE] = GRAFT_OP_sub,
        [GRAFT_SYM_BITS_QUOTIENT] = GRAFT_OP_div,
        [GRAFT_SYM_BITS_MAX] = GRAFT_OP_max,
        [GRAFT_SYM_BITS_MIN] = GRAFT_OP_min,
        [GRAFT_SYM_BITS_LEAKY_RELU] = GRAFT_OP_leaky_relu,
        [GRAFT_SYM_BITS_LESS] = GRAFT_OP_less,
        [GRAFT_SYM_BITS_EQUAL] = GRAFT_OP_equal_to,
        [GRAFT_SYM_BITS_REMAINDER] = GRAFT_OP_remainder,
        [GRAFT_SYM_BITS_EXP] = GRAFT_OP_exp,
        [GRAFT_SYM_BITS_SQRT] = GRAFT_OP_sqrt,
        [GRAFT_SYM_BITS_ERF] = GRAFT_OP_erf,
        [GRAFT_SYM_BITS_SIGMOID] = GRAFT_OP_sigmoid,
        [GRAFT_SYM_BITS_TANH] = GRAFT_OP_tanh,
        [GRAFT_SYM_BITS_SHIFT] = GRAFT_OP_identity};
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    uint32_t i = 0;
    while (i < GRAFT_SYM_BITS_COUNT && !graft_sym_is_app(&w->s, term, w->bits.operations[i])) {
        i++;
    }
    if (i == GRAFT_SYM_BITS_COUNT) { /* A function, named by its operator. */
        const char *name = name_of(w, term) + strlen("bits_");
        uint32_t op = 1;
        while (strcmp(graft_op(op)->name, name) != 0) {
            op++;
        }
        for (uint32_t k = 0; k < graft_op(op)->attr_count; k++) {
            attrs[k] = graft_bits_of_float(bits_at(w, graft_sym_arg(&w->s, term, 1 + k)));
        }
        return check_scalar_float(op, attrs, bits_at(w, graft_sym_arg(&w->s, term, 0)), 0.0F);
    }
    if (i == GRAFT_SYM_BITS_SIZE) {
        return (float)integer_at(w, graft_sym_arg(&w->s, term, 0));
    }
    float x = bits_at(w, graft_sym_arg(&w->s, term, 0));
    if (i == GRAFT_SYM_BITS_CHOSEN) {
        Z3_ast pair = graft_sym_arg(&w->s, term, 1);
        assert_true(graft_sym_is_app(&w->s, pair, w->bits.operations[GRAFT_SYM_BITS_WHERE]));
        return bits_at(w, graft_sym_arg(&w->s, pair, x != 0.0F ? 0 : 1));
    }
    float y = i < GRAFT_SYM_BITS_EXP ? bits_at(w, graft_sym_arg(&w->s, term, 1)) : 0.0F;
    if (i == GRAFT_SYM_BITS_ROUND) {
        return rintf(x / y);
    }
    if (i == GRAFT_SYM_BITS_LEAKY_RELU) {
        attrs[GRAFT_ATTR_leaky_relu_slope] = graft_bits_of_float(y);
    }
    return check_scalar_float(ops[i], attrs, x, y);
}

static float bits_at(workspace *w, Z3_ast term)
{
    graft_sym_fold kind = graft_sym_fold_kind(&w->s, term);
    float value = 0.0F;
    uint32_t v = 0;
    size_t place = 0;
    if (graft_sym_kind(&w->s, term) == Z3_OP_ITE) {
        bool holds = truth_at(w, graft_sym_arg(&w->s, term, 0));
        return bits_at(w, graft_sym_arg(&w->s, term, holds ? 1 : 2));
    }
    if (graft_sym_is_element(&w->s, term)) {
        return find_element(w, term, &v, &place) ? w->bits_in[v][place] : 0.0F;
    }
    if (kind != GRAFT_SYM_FOLD_COUNT) {
        return bits_fold_at(w, term, kind);
    }
    if (graft_sym_bits_is_constant(&w->s, term, &value)) {
        return value;
    }
    if (graft_sym_arity(&w->s, term) == 0) {
        memcpy(&value, &w->drawn.attrs[strtol(name_of(w, term) + 1, NULL, 10)], sizeof value);
        return value;
    }
    return bits_operation_at(w, term);
}

/* -------------------------------------------------------------------- cases */

/* Makes sizes larger where they still fit together: equal ones alike, so that they often do. */
static void enlarge(workspace *w)
{
    for (uint32_t attempt = 0; attempt < 8; attempt++) {
        check_case larger = w->drawn;
        int32_t from = 1 + (int32_t)graft_rng_below(&w->rng, 4);
        int32_t to = from + 1 + (int32_t)graft_rng_below(&w->rng, ENLARGED_MOST);
        for (uint32_t i = 0; i < graft_op(larger.op)->input_count; i++) {
            for (uint32_t k = 0; k < larger.in[i].rank; k++) {
                larger.in[i].dims[k] = larger.in[i].dims[k] == from ? to : larger.in[i].dims[k];
            }
        }
        if (check_case_infer(&larger)) {
            w->drawn = larger;
        }
    }
}

static bool is_infinite(int32_t bits) { return (bits & INT32_MAX) == 0x7f800000; }

/* A rule of one operator whose attributes are slots, and the case that was drawn. */
static void state_rule(workspace *w)
{
    const graft_op_info *info = graft_op(w->drawn.op);
    graft_pattern_node *node = &w->rule.source.nodes[0];
    memset(&w->rule, 0, sizeof w->rule);
    memset(&w->c, 0, sizeof w->c);
    w->rule.var_count = info->input_count;
    w->rule.slot_count = info->attr_count;
    w->rule.condition = 255;
    w->rule.source.node_count = 1;
    node->op = (uint8_t)w->drawn.op;
    for (uint32_t i = 0; i < info->input_count; i++) {
        node->inputs[i] = GRAFT_OPERAND_VAR(i);
        w->c.ranks[i] = (int8_t)w->drawn.in[i].rank;
    }
    for (uint32_t i = 0; i < info->attr_count; i++) {
        int32_t value = w->drawn.attrs[i];
        node->attrs[i] = (graft_term){.value = (int32_t)i, .kind = GRAFT_TERM_SLOT};
        w->c.chosen[i] = graft_sym_is_choice(w->drawn.op, i);
        w->c.slots[i] = w->c.chosen[i] ? (int8_t)value : 0;
        bool is_float = graft_op_attr(w->drawn.op, i)->kind == GRAFT_ATTR_FLOAT;
        w->c.infinite[i] = (int8_t)(is_float && is_infinite(value) ? (value < 0 ? -1 : 1) : 0);
    }
    w->c.made[GRAFT_SYM_SOURCE][0] = (int8_t)w->drawn.out[0].rank;
    w->rule.target = w->rule.source;
    memcpy(w->c.made[GRAFT_SYM_TARGET], w->c.made[GRAFT_SYM_SOURCE], sizeof w->c.made[0]);
}

static void run_body(workspace *w)
{
    const bool positive = w->drawn.op == GRAFT_OP_sqrt || w->drawn.op == GRAFT_OP_log;
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        for (size_t k = 0; k < CHECK_CASE_ELEMENTS; k++) {
            w->in[i][k] = w->drawn.in[i].dtype == GRAFT_DTYPE_BOOL
                              ? graft_field_integer((int64_t)graft_rng_below(&w->rng, 2))
                              : graft_field_random(&w->rng, positive ? 0.0 : 0.5);
        }
    }
    memset(&w->field, 0, sizeof w->field);
    check_case_run_field(&w->field, &w->drawn, w->in, w->out);
}

/* On ordinary numbers, and some zeros of both signs. */
static void run_bits_body(workspace *w)
{
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        for (size_t k = 0; k < CHECK_CASE_ELEMENTS; k++) {
            uint32_t zero = graft_rng_below(&w->rng, 8);
            float x = (float)graft_rng_normal(&w->rng);
            w->bits_in[i][k] = zero == 0 ? 0.0F : zero == 1 ? -0.0F : x;
            if (w->drawn.in[i].dtype == GRAFT_DTYPE_BOOL) {
                w->bits_in[i][k] = x < 0.0F ? 0.0F : 1.0F;
            }
        }
    }
    check_case_run_float(&w->drawn, w->bits_in, w->bits_out);
}

/* Symbolic sizes are what they are, and everything assumed of the application is true of it. */
static void check_shapes(workspace *w)
{
    const graft_op_info *info = graft_op(w->drawn.op);
    for (uint32_t v = 0; v < info->input_count; v++) {
        for (uint32_t i = 0; i < w->drawn.in[v].rank; i++) {
            assert_int_equal(integer_at(w, w->instance.vars[v].dims[i]), w->drawn.in[v].dims[i]);
        }
    }
    for (uint32_t o = 0; o < info->output_count; o++) {
        const graft_sym_shape *shape = &w->instance.nodes[GRAFT_SYM_SOURCE][0].shapes[o];
        assert_int_equal(shape->rank, w->drawn.out[o].rank);
        for (uint32_t i = 0; i < shape->rank; i++) {
            assert_int_equal(integer_at(w, shape->dims[i]), w->drawn.out[o].dims[i]);
        }
    }
    for (uint32_t i = 0; i < w->s.assumed->count; i++) {
        if (!truth_at(w, w->s.assumed->claims[i])) {
            check_case_print(&w->drawn);
            fail_msg("not so: %s", Z3_ast_to_string(w->s.z3, w->s.assumed->claims[i]));
        }
    }
}

static size_t draw_index(workspace *w, const graft_shape *shape)
{
    size_t place = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        w->index[i] = graft_rng_below(&w->rng, (uint32_t)shape->dims[i]);
        place = place * (size_t)shape->dims[i] + (size_t)w->index[i];
    }
    return place;
}

static void compare_bits(workspace *w, uint32_t output)
{
    for (uint32_t k = 0; k < INDICES_EACH; k++) {
        size_t place = draw_index(w, &w->drawn.out[output]);
        float x = bits_at(w, w->side.values[0][output]);
        float y = w->bits_out[output][place];
        if (!exact_same_bits(x, y)) {
            check_case_print(&w->drawn);
            fail_msg("bits of element %zu of output %u: %a, the body says %a: %s", place, output,
                     (double)x, (double)y, Z3_ast_to_string(w->s.z3, w->side.values[0][output]));
        }
    }
}

static void check_elements(workspace *w, uint32_t output)
{
    for (uint32_t k = 0; k < INDICES_EACH; k++) {
        size_t place = draw_index(w, &w->drawn.out[output]);
        graft_field x = number_at(w, w->side.values[0][output]);
        if (w->field.ambiguous_count + w->field.invalid_count == 0 &&
            x.residue != w->out[output][place].residue) {
            check_case_print(&w->drawn);
            fail_msg("element %zu of output %u: %s", place, output,
                     Z3_ast_to_string(w->s.z3, w->side.values[0][output]));
        }
    }
}

static bool seek_case(void *context, const graft_sym_case *c)
{
    const workspace *w = context;
    bool same = memcmp(c->ranks, w->c.ranks, sizeof c->ranks) == 0 &&
                memcmp(c->chosen, w->c.chosen, sizeof c->chosen) == 0 &&
                memcmp(c->infinite, w->c.infinite, sizeof c->infinite) == 0;
    for (uint32_t i = 0; i < w->rule.slot_count; i++) {
        same = same && (!c->chosen[i] || c->slots[i] == w->c.slots[i]);
    }
    bool made = w->drawn.op == GRAFT_OP_reshape || w->drawn.op == GRAFT_OP_fill;
    return !(same && (!made || c->made[0][0] == w->c.made[0][0]));
}

/* What the engine lets through is of one of the cases that a proof goes through. */
static void check_cases(workspace *w)
{
    bool scalar = (graft_op(w->drawn.op)->flags & GRAFT_FLAG_ELEMENTWISE) != 0 ||
                  w->drawn.op == GRAFT_OP_fill; /* Whose case stands for all. */
    if (!scalar && graft_sym_cases(&w->rule, seek_case, w)) {
        check_case_print(&w->drawn);
        fail_msg("is of no case");
    }
}

static void check_operator(workspace *w, uint32_t op)
{
    const char *why = NULL;
    const graft_sym_extra none = {.count = 0};
    uint32_t compared = 0;
    for (uint32_t k = 0; k < CASES_EACH; k++) {
        check_case_draw(&w->rng, op, &w->drawn);
        enlarge(w);
        state_rule(w);
        run_body(w);
        if (graft_sym_shapes(&w->s, &w->rule, &w->c, &none, &w->instance, &why) != GRAFT_SYM_FITS) {
            check_case_print(&w->drawn);
            fail_msg("has no symbolic shape: %s", why == NULL ? "never" : why);
        }
        check_shapes(w);
        check_cases(w);
        assert_true(graft_sym_read_side(&w->s, &w->instance, GRAFT_SYM_SOURCE, &w->side));
        for (uint32_t o = 0; o < graft_op(op)->output_count; o++) {
            check_elements(w, o);
        }
        w->s.numbers = &w->bits.numbers;
        run_bits_body(w);
        assert_true(graft_sym_read_side(&w->s, &w->instance, GRAFT_SYM_SOURCE, &w->side));
        for (uint32_t o = 0; o < graft_op(op)->output_count; o++) {
            compare_bits(w, o);
        }
        w->s.numbers = NULL;
        compared += w->field.ambiguous_count + w->field.invalid_count == 0 ? 1 : 0;
    }
    assert_true(compared > CASES_EACH / 3);
}

CHECK_CASE(test_operators)
{
    workspace *w = GRAFT_NEW(env->unit, workspace, 1);
    graft_prover prover;
    graft_prove_result result;
    w->env = env;
    w->options = graft_prove_defaults();
    graft_rng_seed(&w->rng, 7);
    graft_prover_open(&prover, &w->options, &result);
    graft_sym_open(&w->s, &prover);
    graft_sym_hinter_open(&w->hinter, &w->s);
    w->s.hints = &w->hinter.hints;
    graft_sym_bits_open(&w->s, &w->bits);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        if (graft_op(op) != NULL) {
            check_operator(w, op);
        }
    }
    graft_sym_hinter_close(&w->hinter);
    graft_sym_close(&w->s);
    graft_prover_close(&prover);
}
