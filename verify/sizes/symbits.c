/* symbits.c - see symbits.h. */
#include "verify/sizes/symbits.h"

#include "verify/sizes/symsame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

graft_sym_bits *graft_sym_bits_of(const graft_sym *s) { return (graft_sym_bits *)s->numbers; }

Z3_ast graft_sym_bits_apply(const graft_sym_bits *bits, graft_sym_operation operation, Z3_ast x,
                            Z3_ast y)
{
    return Z3_mk_app(bits->z3, bits->operations[operation], y == NULL ? 1 : 2, (Z3_ast[]){x, y});
}

Z3_ast graft_sym_bits_constant(const graft_sym_bits *bits, uint32_t value)
{
    return graft_term_constant(bits->z3, bits->real, "float%08" PRIx32, value);
}

/* -------------------------------------------------------------- the algebra */

static Z3_ast lift_float_bits(void *k, int32_t value)
{
    return graft_sym_bits_constant(k, (uint32_t)value);
}

static Z3_ast lift_bits(void *k, int32_t value)
{
    float number = (float)value;
    int32_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    return lift_float_bits(k, bits);
}

#define BINARY(name, OPERATION)                                                                    \
    static Z3_ast name##_bits(void *k, Z3_ast a, Z3_ast b)                                         \
    {                                                                                              \
        return graft_sym_bits_apply(k, GRAFT_SYM_BITS_##OPERATION, a, b);                          \
    }
#define UNARY(name, OPERATION)                                                                     \
    static Z3_ast name##_bits(void *k, Z3_ast x)                                                   \
    {                                                                                              \
        return graft_sym_bits_apply(k, GRAFT_SYM_BITS_##OPERATION, x, NULL);                       \
    }
BINARY(sum, SUM)
BINARY(product, PRODUCT)
BINARY(difference, DIFFERENCE)
BINARY(quotient, QUOTIENT)
BINARY(max, MAX)
BINARY(min, MIN)
BINARY(round, ROUND)
BINARY(less, LESS)
BINARY(equal, EQUAL)
BINARY(remainder, REMAINDER)
UNARY(exp, EXP)
UNARY(sqrt, SQRT)
UNARY(erf, ERF)
UNARY(sigmoid, SIGMOID)
UNARY(tanh, TANH)

/* Only in FUNCTION rows, which are read whole. */
static Z3_ast no_bits(void *k, Z3_ast x)
{
    (void)k, (void)x;
    abort();
}
#define log_bits no_bits
#define sin_bits no_bits
#define cos_bits no_bits

#define NUM    Z3_ast
#define ALG(f) f##_bits
#include "graph/meaning/operator_scalars.inc"

static Z3_ast read_scalar(graft_sym *s, uint32_t op, Z3_ast a, Z3_ast b)
{
    void *bits = graft_sym_bits_of(s);
    return op == GRAFT_OP_quantise ? round_bits(bits, a, b) : scalar_bits(bits, op, a, b);
}

/* Nobody computes it in the steps of its body: of its bits nothing is known. */
static Z3_ast read_function(graft_sym *s, uint32_t op, Z3_ast x, const Z3_ast *attrs)
{
    Z3_ast args[1 + GRAFT_MAX_ATTRS] = {x};
    const uint32_t count = 1u + graft_op(op)->attr_count;
    for (uint32_t i = 1; i < count; i++) {
        args[i] = attrs[i - 1];
    }
    return Z3_mk_app(
        s->z3,
        graft_term_declare(s->z3, count, s->term.real, s->term.real, "bits_%s", graft_op(op)->name),
        count, args);
}

/* --------------------------------------------------------- what rules write */

bool graft_sym_bits_is_constant(const graft_sym *s, Z3_ast term, float *value)
{
    const char *prefix = "float";
    if (!graft_sym_is_symbol(s, term)) {
        return false;
    }
    Z3_symbol name = Z3_get_decl_name(s->z3, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, term)));
    const char *text = Z3_get_symbol_string(s->z3, name);
    if (strncmp(text, prefix, strlen(prefix)) != 0) {
        return false;
    }
    uint32_t bits = (uint32_t)strtoul(text + strlen(prefix), NULL, 16);
    memcpy(value, &bits, sizeof bits);
    return true;
}

static Z3_ast attr_bits(graft_sym *s, const graft_term *written, Z3_ast term)
{
    if (written->kind == GRAFT_TERM_CONST) {
        return graft_sym_bits_constant(graft_sym_bits_of(s), (uint32_t)written->value);
    }
    bool slot = graft_sym_is_symbol(s, term);
    return slot ? term : Z3_mk_fresh_const(s->z3, "computed", s->term.real);
}

Z3_ast graft_sym_bits_size(const graft_sym *s, Z3_ast size)
{
    int value = 0;
    bool number = Z3_is_numeral_ast(s->z3, size) && Z3_get_numeral_int(s->z3, size, &value);
    return number ? lift_bits(graft_sym_bits_of(s), value)
                  : graft_sym_bits_apply(graft_sym_bits_of(s), GRAFT_SYM_BITS_SIZE, size, NULL);
}

static Z3_ast leaky_relu_bits(const graft_sym *s, Z3_ast x, Z3_ast slope)
{
    return graft_sym_bits_apply(graft_sym_bits_of(s), GRAFT_SYM_BITS_LEAKY_RELU, x, slope);
}

static Z3_ast select_bits(const graft_sym *s, Z3_ast c, Z3_ast a, Z3_ast b)
{
    const graft_sym_bits *bits = graft_sym_bits_of(s);
    Z3_ast of = graft_sym_bits_apply(bits, GRAFT_SYM_BITS_WHERE, a, b);
    return graft_sym_bits_apply(bits, GRAFT_SYM_BITS_CHOSEN, c, of);
}

static Z3_ast row_shift_bits(const graft_sym *s, Z3_ast largest)
{
    return graft_sym_bits_apply(graft_sym_bits_of(s), GRAFT_SYM_BITS_SHIFT, largest, NULL);
}

/* A mean is divided once, by how many there are; by the product of the sizes, which is the same
 * where nothing is left out. */
static Z3_ast fold_bits(graft_sym *s, graft_sym_fold kind, bool counts_all,
                        const graft_sym_range *range, Z3_ast body)
{
    bool whole = Z3_get_bool_value(s->z3, range->guard) == Z3_L_TRUE;
    if (!counts_all || whole) {
        return graft_sym_fold_close(s, kind, range, body);
    }
    Z3_ast count = graft_sym_int(s, 1);
    for (uint32_t i = 0; i < range->count; i++) {
        count = graft_sym_mul(s, count, range->sizes[i]);
    }
    Z3_ast sum = graft_sym_fold_close(s, GRAFT_SYM_ORDERED_SUM, range, body);
    return read_scalar(s, GRAFT_OP_div, sum, graft_sym_bits_size(s, count));
}

void graft_sym_bits_open(const graft_sym *s, graft_sym_bits *bits)
{
    static const char *const names[GRAFT_SYM_BITS_COUNT] = {
        "bits_sum",  "bits_product", "bits_difference", "bits_quotient", "bits_max",
        "bits_min",  "bits_leaky",   "bits_round",      "bits_less",     "bits_equal",
        "bits_rest", "bits_where",   "bits_chosen",     "bits_exp",      "bits_sqrt",
        "bits_erf",  "bits_sigmoid", "bits_tanh",       "bits_shift",    "bits_size"};
    *bits = (graft_sym_bits){
        .numbers = {.scalar = read_scalar,
                    .function = read_function,
                    .leaky_relu = leaky_relu_bits,
                    .select = select_bits,
                    .row_shift = row_shift_bits,
                    .attr = attr_bits,
                    .size = graft_sym_bits_size,
                    .fold = fold_bits,
                    .same = graft_sym_same_bits},
        .z3 = s->z3,
        .real = s->term.real
    };
    for (uint32_t i = 0; i < GRAFT_SYM_BITS_COUNT; i++) {
        bits->operations[i] = graft_term_declare(
            s->z3, i < GRAFT_SYM_BITS_EXP ? 2 : 1,
            i == GRAFT_SYM_BITS_SIZE ? s->integer : s->term.real, s->term.real, "%s", names[i]);
    }
}
