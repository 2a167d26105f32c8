/* symvalue.c - see symvalue.h. */
#include "verify/sizes/symvalue.h"

#include "verify/sizes/termtable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 4, PLACES = GRAFT_ROOM_VALUE_POINTS * DRAWS };
enum { TERMS_FIRST = 1024, ARENA_BYTES = 1 << 20 };
enum { INDEX_SIZE = 3 };

#define NO_VALUE INT64_MIN

typedef struct {
    int64_t at[PLACES];
} row;

struct graft_sym_values {
    const graft_sym *s;
    graft_arena *arena;
    const graft_rule *rule;
    graft_point points[GRAFT_ROOM_VALUE_POINTS];
    uint32_t place_count;
    graft_term_table terms;
    row *rows; /* By the terms' numbers. */
    uint32_t capacity;
};

/* ------------------------------------------------------------------- meaning */

static int64_t floor_of(int64_t a, int64_t b)
{
    return b <= 0 ? NO_VALUE : a / b - (a % b < 0 ? 1 : 0);
}

static int64_t rest_of(int64_t a, int64_t b)
{
    return b <= 0 ? NO_VALUE : a % b + (a % b < 0 ? b : 0);
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t c = 0;
    return __builtin_add_overflow(a, b, &c) ? NO_VALUE : c;
}

static int64_t product_of(int64_t a, int64_t b)
{
    int64_t c = 0;
    return __builtin_mul_overflow(a, b, &c) ? NO_VALUE : c;
}

static int64_t difference_of(int64_t a, int64_t b)
{
    int64_t c = 0;
    return __builtin_sub_overflow(a, b, &c) ? NO_VALUE : c;
}

/* Of `count` operands, one by one; without a value where one has none. */
static int64_t fold(uint32_t count, const int64_t *args, int64_t (*join)(int64_t, int64_t))
{
    int64_t value = args[0];
    for (uint32_t i = 1; i < count && value != NO_VALUE; i++) {
        value = args[i] == NO_VALUE ? NO_VALUE : join(value, args[i]);
    }
    return value;
}

/* Of conditions: `decisive` where one is that, else the other, if all have values. */
static int64_t join_conditions(uint32_t count, const int64_t *args, int64_t decisive)
{
    int64_t value = 1 - decisive;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i] == decisive) {
            return decisive;
        }
        value = args[i] == NO_VALUE ? NO_VALUE : value;
    }
    return value;
}

static bool have_values(uint32_t count, const int64_t *args)
{
    for (uint32_t i = 0; i < count; i++) {
        if (args[i] == NO_VALUE) {
            return false;
        }
    }
    return true;
}

static int64_t compare(Z3_decl_kind kind, uint32_t count, const int64_t *args)
{
    if (!have_values(count, args) || count != 2) {
        return NO_VALUE;
    }
    switch ((unsigned)kind) {
    case Z3_OP_LE:
        return args[0] <= args[1];
    case Z3_OP_GE:
        return args[0] >= args[1];
    case Z3_OP_LT:
        return args[0] < args[1];
    case Z3_OP_GT:
        return args[0] > args[1];
    case Z3_OP_DISTINCT:
        return args[0] != args[1];
    default:
        return args[0] == args[1];
    }
}

static int64_t apply(Z3_decl_kind kind, uint32_t count, const int64_t *args)
{
    switch ((unsigned)kind) {
    case Z3_OP_TRUE:
        return 1;
    case Z3_OP_FALSE:
        return 0;
    case Z3_OP_ADD:
        return fold(count, args, sum_of);
    case Z3_OP_SUB:
        return fold(count, args, difference_of);
    case Z3_OP_UMINUS:
        return args[0] == NO_VALUE ? NO_VALUE : -args[0];
    case Z3_OP_MUL:
        return fold(count, args, product_of);
    case Z3_OP_IDIV:
        return fold(count, args, floor_of);
    case Z3_OP_MOD:
        return fold(count, args, rest_of);
    case Z3_OP_LE:
    case Z3_OP_GE:
    case Z3_OP_LT:
    case Z3_OP_GT:
    case Z3_OP_DISTINCT:
    case Z3_OP_EQ:
    case Z3_OP_IFF:
        return compare(kind, count, args);
    case Z3_OP_ITE:
        return args[0] == NO_VALUE ? NO_VALUE : args[args[0] != 0 ? 1 : 2];
    case Z3_OP_AND:
        return join_conditions(count, args, 0);
    case Z3_OP_OR:
        return join_conditions(count, args, 1);
    case Z3_OP_NOT:
        return args[0] == NO_VALUE ? NO_VALUE : !args[0];
    case Z3_OP_IMPLIES:
        return join_conditions(2, (int64_t[]){args[0] == NO_VALUE ? NO_VALUE : !args[0], args[1]},
                               1);
    default:
        return NO_VALUE;
    }
}

static int64_t place_of(uint32_t axes, const int64_t *args)
{
    int64_t place = 0;
    for (uint32_t i = 0; i < axes && place != NO_VALUE; i++) {
        place = product_of(place, args[axes + i]);
        place = place == NO_VALUE ? place : sum_of(place, args[i]);
    }
    return place;
}

static int64_t part_of(uint32_t axes, uint32_t part, const int64_t *args)
{
    int64_t place = args[0];
    for (uint32_t i = axes; i-- > part + 1 && place != NO_VALUE;) {
        place = floor_of(place, args[1 + i]);
    }
    return place == NO_VALUE ? place : rest_of(place, args[1 + part]);
}

/* Of an application of one of our own functions. */
static int64_t apply_own(const graft_sym *s, Z3_func_decl decl, uint32_t count, const int64_t *args)
{
    if (!have_values(count, args)) {
        return NO_VALUE;
    }
    if (decl == s->window) {
        int64_t steps = floor_of(args[0], args[1]);
        return steps == NO_VALUE ? NO_VALUE : sum_of(steps, 1);
    }
    if (decl == s->quotient) {
        return floor_of(args[0], args[1]);
    }
    if (decl == s->group) {
        int64_t size = floor_of(args[1], args[2]);
        return size == NO_VALUE ? NO_VALUE : floor_of(args[0], size);
    }
    if (count % 2 == 0 && count <= 2 * GRAFT_MAX_RANK && decl == s->place[count / 2]) {
        return place_of(count / 2, args);
    }
    for (uint32_t i = 0; i + 1 < count && count - 1 <= GRAFT_MAX_RANK; i++) {
        if (decl == s->part[count - 1][i]) {
            return part_of(count - 1, i, args);
        }
    }
    return NO_VALUE;
}

/* ------------------------------------------------------------------- symbols */

static uint32_t mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* The number that stands for an index below `size` at a place: the first, the last, any. */
static int64_t index_at(uint32_t place, uint32_t number, int64_t size)
{
    if (size <= 1 || place % DRAWS == 0) {
        return 0;
    }
    return place % DRAWS == 1 ? size - 1 : (int64_t)(mix(place * 1024 + number) >> 8) % size;
}

typedef enum { SYMBOL_OTHER, SYMBOL_SIZE, SYMBOL_SLOT, SYMBOL_INDEX } symbol_kind;

typedef struct {
    symbol_kind kind;
    uint32_t first; /* The variable, or the slot. */
    uint32_t axis;
} symbol;

/* Reads a letter and a number; moves on past them. */
static bool read_part(const char **text, char letter, uint32_t *number)
{
    char *end = NULL;
    if ((*text)[0] != letter || (*text)[1] < '0' || (*text)[1] > '9') {
        return false;
    }
    *number = (uint32_t)strtoul(*text + 1, &end, 10);
    *text = end;
    return true;
}

/* What a symbol stands for, by its name: symshape.c names sizes (d0_2, of the last axis but one)
 * and slots (s3), symterm.c indices (q0, r5), symread.c those that conditions bind (c1). */
static symbol read_symbol(const graft_sym_values *v, Z3_func_decl decl)
{
    Z3_symbol name = Z3_get_decl_name(v->s->z3, decl);
    bool named = Z3_get_range(v->s->z3, decl) == v->s->integer &&
                 Z3_get_symbol_kind(v->s->z3, name) == Z3_STRING_SYMBOL;
    const char *text = named ? Z3_get_symbol_string(v->s->z3, name) : "";
    symbol x = {.kind = SYMBOL_OTHER};
    if (read_part(&text, 'd', &x.first) && read_part(&text, '_', &x.axis)) {
        x.kind = x.first < v->rule->var_count ? SYMBOL_SIZE : SYMBOL_OTHER;
    } else if (read_part(&text, 's', &x.first)) {
        x.kind = x.first < v->rule->slot_count ? SYMBOL_SLOT : SYMBOL_OTHER;
    } else if (read_part(&text, 'q', &x.first) || read_part(&text, 'r', &x.first) ||
               read_part(&text, 'c', &x.first)) {
        x.kind = SYMBOL_INDEX;
    }
    return x;
}

static int64_t symbol_at(const graft_sym_values *v, const symbol *x, uint32_t place)
{
    const graft_point *point = &v->points[place / DRAWS];
    uint32_t rank = x->kind == SYMBOL_SIZE ? point->vars[x->first].rank : 0;
    switch (x->kind) {
    case SYMBOL_SIZE:
        return x->axis > 0 && x->axis <= rank ? point->vars[x->first].dims[rank - x->axis]
                                              : NO_VALUE;
    case SYMBOL_SLOT:
        return point->slots[x->first];
    case SYMBOL_INDEX: /* Of which nothing was said. */
        return index_at(place, v->terms.count, INDEX_SIZE);
    case SYMBOL_OTHER:
        break;
    }
    return NO_VALUE;
}

static void evaluate_symbol(const graft_sym_values *v, Z3_func_decl decl, row *values)
{
    const symbol x = read_symbol(v, decl);
    for (uint32_t i = 0; i < v->place_count; i++) {
        values->at[i] = symbol_at(v, &x, i);
    }
}

/* --------------------------------------------------------------------- terms */

static uint32_t add_row(graft_sym_values *v, Z3_ast term, const row *values)
{
    uint32_t number = graft_term_table_add(&v->terms, term);
    v->rows =
        graft_arena_grow(v->arena, v->rows, number, &v->capacity, TERMS_FIRST, sizeof *v->rows);
    v->rows[number] = *values;
    return number;
}

static uint32_t row_of(graft_sym_values *v, Z3_ast term);

static void evaluate_app(graft_sym_values *v, Z3_ast term, row *values)
{
    const graft_sym *s = v->s;
    uint32_t rows[GRAFT_ROOM_VALUE_OPERANDS];
    int64_t args[GRAFT_ROOM_VALUE_OPERANDS] = {0};
    Z3_func_decl decl = Z3_get_app_decl(s->z3, Z3_to_app(s->z3, term));
    Z3_decl_kind kind = Z3_get_decl_kind(s->z3, decl);
    uint32_t count = graft_sym_arity(s, term);
    if (count == 0 && kind == Z3_OP_UNINTERPRETED) {
        evaluate_symbol(v, decl, values);
        return;
    }
    for (uint32_t i = 0; i < count && count <= GRAFT_LIMIT(VALUE_OPERANDS); i++) {
        rows[i] = row_of(v, graft_sym_arg(s, term, i));
    }
    for (uint32_t k = 0; k < v->place_count; k++) {
        for (uint32_t i = 0; i < count && count <= GRAFT_LIMIT(VALUE_OPERANDS); i++) {
            args[i] = v->rows[rows[i]].at[k];
        }
        values->at[k] = count > GRAFT_LIMIT(VALUE_OPERANDS) ? NO_VALUE
                        : kind == Z3_OP_UNINTERPRETED       ? apply_own(s, decl, count, args)
                                                            : apply(kind, count, args);
    }
}

static void evaluate(graft_sym_values *v, Z3_ast term, row *values)
{
    int64_t number = 0;
    if (Z3_is_numeral_ast(v->s->z3, term)) {
        bool whole = Z3_get_sort(v->s->z3, term) == v->s->integer &&
                     Z3_get_numeral_int64(v->s->z3, term, &number);
        for (uint32_t k = 0; k < v->place_count; k++) {
            values->at[k] = whole ? number : NO_VALUE;
        }
    } else {
        evaluate_app(v, term, values);
    }
}

/* Where the values of a term are; evaluates it when it is met first. */
static uint32_t row_of(graft_sym_values *v, Z3_ast term)
{
    uint32_t known = graft_term_table_find(&v->terms, term);
    if (known != GRAFT_TERM_ABSENT) {
        return known;
    }
    row values;
    evaluate(v, term, &values);
    return add_row(v, term, &values);
}

/* ------------------------------------------------------------------- indices */

/* Gives an index below `size` its values, unless it has some. */
static void choose_index(graft_sym_values *v, Z3_ast index, Z3_ast size)
{
    const graft_sym *s = v->s;
    if (graft_sym_kind(s, index) != Z3_OP_UNINTERPRETED || graft_sym_arity(s, index) != 0 ||
        graft_term_table_find(&v->terms, index) != GRAFT_TERM_ABSENT ||
        read_symbol(v, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, index))).kind != SYMBOL_INDEX) {
        return;
    }
    row values;
    uint32_t sizes = row_of(v, size);
    for (uint32_t k = 0; k < v->place_count; k++) {
        values.at[k] = index_at(k, v->terms.count, v->rows[sizes].at[k]);
    }
    (void)add_row(v, index, &values);
}

/* Looks for what is said to be below something: index < size, or not size <= index. */
static void choose_indices(graft_sym_values *v, Z3_ast condition)
{
    const graft_sym *s = v->s;
    Z3_decl_kind kind = graft_sym_kind(s, condition);
    if (kind == Z3_OP_AND) {
        for (uint32_t i = 0; i < graft_sym_arity(s, condition); i++) {
            choose_indices(v, graft_sym_arg(s, condition, i));
        }
    } else if (kind == Z3_OP_LT) {
        choose_index(v, graft_sym_arg(s, condition, 0), graft_sym_arg(s, condition, 1));
    } else if (kind == Z3_OP_NOT) {
        Z3_ast inner = graft_sym_arg(s, condition, 0);
        if (graft_sym_kind(s, inner) == Z3_OP_LE) {
            choose_index(v, graft_sym_arg(s, inner, 1), graft_sym_arg(s, inner, 0));
        }
    }
}

/* Past a limit of terms all are evaluated anew. */
static void limit_terms(graft_sym_values *v)
{
    if (v->terms.count > GRAFT_LIMIT(VALUE_TERMS)) {
        graft_term_table_clear(&v->terms);
    }
}

bool graft_sym_values_satisfy(graft_sym_values *v, uint32_t count, const Z3_ast *conditions)
{
    bool satisfied[PLACES];
    bool some = v->place_count > 0;
    memset(satisfied, 1, sizeof satisfied);
    limit_terms(v);
    for (uint32_t i = 0; i < count && some; i++) {
        choose_indices(v, conditions[i]);
    }
    for (uint32_t i = 0; i < count && some; i++) {
        uint32_t number = row_of(v, conditions[i]); /* Rows may move for it. */
        const row *values = &v->rows[number];
        some = false;
        for (uint32_t k = 0; k < v->place_count; k++) {
            satisfied[k] = satisfied[k] && values->at[k] == 1;
            some = some || satisfied[k];
        }
    }
    return some;
}

graft_sym_values *graft_sym_values_new(const graft_sym *s, const graft_rule *rule,
                                       const graft_point *points, uint32_t count)
{
    graft_arena *arena = graft_arena_new(ARENA_BYTES);
    assert(arena != NULL);
    graft_sym_values *v = GRAFT_NEW(arena, graft_sym_values, 1);
    uint32_t taken = count < GRAFT_LIMIT(VALUE_POINTS) ? count : GRAFT_LIMIT(VALUE_POINTS);
    v->s = s;
    v->arena = arena;
    v->rule = rule;
    for (uint32_t i = 0; i < taken; i++) { /* There may be none, and no list. */
        v->points[i] = points[i];
    }
    v->place_count = taken * DRAWS;
    graft_term_table_open(&v->terms, arena);
    return v;
}

void graft_sym_values_free(graft_sym_values *values) { graft_arena_free(values->arena); }
