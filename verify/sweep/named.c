/* named.c - see named.h. */
#include "verify/sweep/named.h"

#include "graph/base/bits.h"
#include "graph/rule/rulecode.h"
#include "verify/instances/instance.h"

#include <math.h>
#include <string.h>

enum { CONSTANTS_MOST = 12, DEPTH_MOST = 16 /* The engine's, or the code does not run. */ };

/* ------------------------------------------------------------------- slots */

static graft_slot_kind kind_of(const graft_attr_info *attr)
{
    switch ((graft_attr_kind)attr->kind) {
    case GRAFT_ATTR_INT:
        return attr->role == GRAFT_ROLE_BYTE       ? GRAFT_SLOT_BYTE
               : strncmp(attr->name, "ax", 2) == 0 ? GRAFT_SLOT_AXIS
                                                   : GRAFT_SLOT_NUMBER;
    case GRAFT_ATTR_DIM:
        return GRAFT_SLOT_SIZE;
    case GRAFT_ATTR_FLOAT:
        return GRAFT_SLOT_REAL;
    case GRAFT_ATTR_ACTIVATION:
        break;
    }
    return GRAFT_SLOT_OTHER;
}

void graft_named_slots(const graft_rule *rule, uint8_t kinds[GRAFT_RULE_MAX_SLOTS])
{
    memset(kinds, GRAFT_SLOT_NUMBER, GRAFT_RULE_MAX_SLOTS);
    for (uint32_t i = 0; i < rule->slot_count; i++) {
        kinds[i] = (uint8_t)kind_of(graft_slot_attr(rule, i));
    }
}

int32_t graft_named_byte(graft_rng *rng)
{
    return GRAFT_BYTE_LEAST + (int32_t)graft_rng_below(rng, GRAFT_BYTE_MOST - GRAFT_BYTE_LEAST + 1);
}

/* --------------------------------------------------------------- constants */

/* What the rule says outright. */
typedef struct {
    uint32_t whole_count;
    uint32_t real_count;
    int32_t whole[CONSTANTS_MOST]; /* At least 0. */
    float reals[CONSTANTS_MOST];
    bool is_past; /* A whole number is larger than those that are tried. */
} constants;

static void add_constant(constants *c, int64_t value)
{
    int64_t magnitude = value < 0 ? -value : value;
    if (magnitude > GRAFT_NAMED_MOST) {
        c->is_past = true;
        return;
    }
    for (uint32_t i = 0; i < c->whole_count; i++) {
        if (c->whole[i] == magnitude) {
            return;
        }
    }
    if (magnitude > 1 && c->whole_count < CONSTANTS_MOST) {
        c->whole[c->whole_count++] = (int32_t)magnitude;
    }
}

static void add_real_constant(constants *c, int32_t bits)
{
    const float value = graft_float_of_bits(bits);
    for (uint32_t i = 0; i < c->real_count; i++) {
        if (c->reals[i] == value) {
            return;
        }
    }
    if (isfinite(value) && c->real_count < CONSTANTS_MOST) {
        c->reals[c->real_count++] = value;
    }
}

static void read_attrs(constants *c, const graft_pattern *side)
{
    for (uint32_t n = 0; n < side->node_count; n++) {
        const graft_pattern_node *node = &side->nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            graft_slot_kind kind = kind_of(graft_op_attr(node->op, i));
            if (node->attrs[i].kind != GRAFT_TERM_CONST) {
                continue;
            }
            if (kind == GRAFT_SLOT_REAL) {
                add_real_constant(c, node->attrs[i].value);
            } else if (kind != GRAFT_SLOT_AXIS && kind != GRAFT_SLOT_OTHER) {
                add_constant(c, node->attrs[i].value);
            }
        }
    }
}

static bool is_constant(const graft_code_step *step)
{
    return step->code == GRAFT_CODE_CONST8 || step->code == GRAFT_CODE_CONST32;
}

/* The constants among the operands of an instruction. Whether one is the bits of a real number, its
 * size does not tell: those of the smallest are small. */
static void read_operands(constants *c, const graft_rule *rule, const graft_code_step *step,
                          const graft_code_step *operands)
{
    bool is_real = step->code >= GRAFT_CODE_FMIN;
    for (uint32_t i = 0; i < step->takes; i++) {
        is_real = is_real || (operands[i].code == GRAFT_CODE_SLOT &&
                              kind_of(graft_slot_attr(rule, operands[i].index)) == GRAFT_SLOT_REAL);
    }
    for (uint32_t i = 0; i < step->takes; i++) {
        if (is_constant(&operands[i]) && is_real) {
            add_real_constant(c, operands[i].number);
        } else if (is_constant(&operands[i])) {
            add_constant(c, operands[i].number);
        }
    }
}

/* What an instruction makes of two constants is one more. */
static void fold(graft_code_step *step, const graft_code_step *operands)
{
    int64_t result = 0;
    if (step->takes == 2 && is_constant(&operands[0]) && is_constant(&operands[1]) &&
        graft_code_compute(step->code, operands[0].number, operands[1].number, &result) &&
        result >= INT32_MIN && result <= INT32_MAX) {
        step->code = GRAFT_CODE_CONST32;
        step->number = (int32_t)result;
    }
}

static void read_program(constants *c, const graft_rule *rule, uint32_t program)
{
    graft_code_step stack[DEPTH_MOST]; /* What made each value on it. */
    graft_code_reader reader = graft_code_open(rule, program, DEPTH_MOST);
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        read_operands(c, rule, &step, &stack[step.place]);
        fold(&step, &stack[step.place]);
        stack[step.place] = step;
    }
}

static void read_code(constants *c, const graft_rule *rule)
{
    bool begins = true;
    for (uint32_t at = 0; at < rule->code_bytes; at = graft_code_next(rule, at)) {
        if (begins) {
            read_program(c, rule, at);
        }
        begins = rule->code[at] == GRAFT_CODE_END;
    }
}

/* ------------------------------------------------------------ whole numbers */

static void add_whole(graft_named *n, int64_t value)
{
    bool there = value < 1 || value > GRAFT_NAMED_MOST || n->whole_count == GRAFT_NAMED_WHOLE;
    for (uint32_t i = 0; i < n->whole_count && !there; i++) {
        there = n->whole[i] == value;
    }
    if (!there) {
        n->whole[n->whole_count++] = (int32_t)value;
    }
}

static void add_around(graft_named *n, int64_t value)
{
    add_whole(n, value);
    add_whole(n, value + 1);
    add_whole(n, value - 1);
}

static void add_divisors(graft_named *n, int64_t value)
{
    for (int64_t d = 2; d * d <= value; d++) {
        if (value % d == 0) {
            add_whole(n, d);
            add_whole(n, value / d);
        }
    }
}

static void derive_whole(graft_named *n, const constants *c)
{
    static const int32_t primes[] = {13, 31, 67, 101, 257, 997};
    for (uint32_t i = 0; i < c->whole_count; i++) {
        add_whole(n, c->whole[i]);
    }
    n->own_count = n->whole_count;
    for (uint32_t i = 0; i < c->whole_count; i++) {
        add_around(n, c->whole[i]);
    }
    for (uint32_t i = 0; i < c->whole_count; i++) {
        add_divisors(n, c->whole[i]);
        add_around(n, 2 * c->whole[i]);
        for (uint32_t k = 0; k < i; k++) {
            int64_t a = c->whole[i] > c->whole[k] ? c->whole[i] : c->whole[k];
            int64_t b = c->whole[i] + c->whole[k] - a;
            add_around(n, a + b);
            add_around(n, a - b);
            add_around(n, a / b);
            add_around(n, a * b);
        }
    }
    for (uint32_t i = 0; i < c->whole_count; i++) {
        /* Where squares and cubes pass a number. */
        add_around(n, (int64_t)sqrt((double)c->whole[i]));
        add_around(n, (int64_t)cbrt((double)c->whole[i]));
        add_around(n, c->whole[i] / 2);
        add_around(n, 3 * c->whole[i]);
    }
    for (uint32_t i = 0; i < sizeof primes / sizeof primes[0]; i++) {
        add_whole(n, primes[i]);
    }
}

/* ------------------------------------------------------------- real numbers */

static void add_real(graft_named *n, float value)
{
    const int32_t bits = graft_bits_of_float(value);
    bool there = !isfinite(value) || n->real_count == GRAFT_NAMED_REAL;
    for (uint32_t i = 0; i < n->real_count && !there; i++) {
        there = n->reals[i] == bits;
    }
    if (!there) {
        n->reals[n->real_count++] = bits;
    }
}

/* A number, steps from it of several sizes, and its opposite. */
static void add_steps(graft_named *n, float value)
{
    add_real(n, value);
    add_real(n, value + 1.0F);
    add_real(n, value - 1.0F);
    add_real(n, 2.0F * value);
    add_real(n, 0.5F * value);
    add_real(n, value + 0.0625F * fmaxf(fabsf(value), 0.0625F));
    add_real(n, value - 0.0625F * fmaxf(fabsf(value), 0.0625F));
    add_real(n, -value);
}

/* Numbers that lists have (choices.c), whose midpoints with others are of interest, and some that
 * are far from all of them. */
static const float usual[] = {0.0F, 0.5F, 1.0F, 2.0F, 6.0F, -1.0F, -0.0F};
static const float far[] = {0.25F, 0.75F,  1.5F,    4.0F, 9.0F, 1e-7F,
                            1e-3F, 100.0F, -100.0F, 1e6F, -1e6F};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void derive_reals(graft_named *n, const constants *c)
{
    for (uint32_t i = 0; i < c->real_count; i++) {
        add_steps(n, c->reals[i]);
    }
    for (uint32_t i = 0; i < COUNT_OF(far); i++) {
        add_real(n, far[i]);
    }
    for (uint32_t i = 0; i < c->real_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            add_real(n, 0.5F * (c->reals[i] + c->reals[k]));
            add_real(n, c->reals[i] + c->reals[k]);
            add_real(n, c->reals[i] * c->reals[k]);
        }
        for (uint32_t k = 0; k < COUNT_OF(usual); k++) {
            add_real(n, 0.5F * (c->reals[i] + usual[k]));
        }
    }
    for (uint32_t k = 0; k < COUNT_OF(usual); k++) {
        add_real(n, usual[k]);
    }
}

void graft_named_read(const graft_rule *rule, graft_named *named)
{
    constants c;
    memset(&c, 0, sizeof c);
    memset(named, 0, sizeof *named);
    read_code(&c, rule);
    read_attrs(&c, &rule->source);
    read_attrs(&c, &rule->target);
    named->is_past = c.is_past;
    derive_whole(named, &c);
    derive_reals(named, &c);
}
