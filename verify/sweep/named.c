/* named.c - see named.h. */
#include "verify/sweep/named.h"

#include "graph/rule/rulecode.h"
#include "verify/instances/instance.h"

#include <math.h>
#include <string.h>

enum { CONSTANTS_MOST = 12 };

/* Bits of binary32 numbers other than 0 are larger than any size that is tried. */
static bool is_whole(int64_t value)
{
    return -GRAFT_NAMED_MOST <= value && value <= GRAFT_NAMED_MOST;
}

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
} constants;

static void add_constant(constants *c, int64_t value)
{
    int32_t magnitude = (int32_t)(value < 0 ? -value : value);
    for (uint32_t i = 0; i < c->whole_count; i++) {
        if (c->whole[i] == magnitude) {
            return;
        }
    }
    if (magnitude > 1 && c->whole_count < CONSTANTS_MOST) {
        c->whole[c->whole_count++] = magnitude;
    }
}

static void add_real_constant(constants *c, int32_t bits)
{
    float value = 0.0F;
    memcpy(&value, &bits, sizeof value);
    for (uint32_t i = 0; i < c->real_count; i++) {
        if (c->reals[i] == value) {
            return;
        }
    }
    if (isfinite(value) && c->real_count < CONSTANTS_MOST) {
        c->reals[c->real_count++] = value;
    }
}

static void add_either(constants *c, int64_t value)
{
    if (is_whole(value)) {
        add_constant(c, value);
    } else {
        add_real_constant(c, (int32_t)value);
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
                add_either(c, node->attrs[i].value);
            }
        }
    }
}

static void read_code(constants *c, const graft_rule *rule)
{
    for (uint32_t at = 0; at < rule->code_bytes; at = graft_code_next(rule, at)) {
        graft_code_step step = graft_code_at(rule, at);
        if (step.code == GRAFT_CODE_CONST8) {
            add_constant(c, step.number);
        } else if (step.code == GRAFT_CODE_CONST32) {
            add_either(c, step.number);
        }
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

/* Where squares and cubes pass a number. */
static void add_roots(graft_named *n, int64_t value)
{
    add_around(n, (int64_t)sqrt((double)value));
    add_around(n, (int64_t)cbrt((double)value));
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
        add_roots(n, c->whole[i]);
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
    int32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
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
    derive_whole(named, &c);
    derive_reals(named, &c);
}
