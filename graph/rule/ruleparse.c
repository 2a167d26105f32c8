/* ruleparse.c - recursive descent over the text of a rule; nesting is bounded.
 *
 * Source nodes are numbered as they are met (the anchor first), target nodes when they are complete
 * (producers first). A term that occurs twice on a side is one node. */
#include "graph/rule/ruleparse.h"

#include "graph/base/bits.h"
#include "graph/rule/rulecode.h"
#include "graph/rule/ruleprint.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t graft_op_named(const char *name)
{
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        if (strcmp(graft_op(op)->name, name) == 0) {
            return op;
        }
    }
    return GRAFT_OP_NONE;
}

enum { NESTING_MOST = 32, TAGS_MOST = 10, WORD_MOST = 32, SLOTS_MOST = 128, NODES_MOST = 32 };

typedef struct {
    graft_env *env;
    const char *name;
    const char *text;
    const char *at;
    graft_rule *rule;
    uint32_t vars; /* Letters met, as bits. */
    bool in_source;
    bool in_floats; /* Numbers are binary32: operands of fmin, fmax and fle. */
    uint32_t nesting;
    uint32_t slot_end;
    uint8_t tag_node[TAGS_MOST];  /* Source node of number k, plus one; 0: not met. */
    uint8_t node_tag[NODES_MOST]; /* The number of the source node that owns slots. */
    /* Nodes of the side that is being read: terms that are written twice become one node only when
     * the second has been read, so that there may be more for a while than a side has. */
    graft_pattern_node nodes[NODES_MOST];
    uint32_t node_count;
} parser;

static graft_status parse_fail(const parser *p, const char *expected)
{
    return GRAFT_FAIL(p->env, GRAFT_BAD_INPUT, "%s: column %zu: %s, found '%.12s'", p->name,
                      (size_t)(p->at - p->text) + 1, expected, p->at);
}

/* ------------------------------------------------------------------ tokens */

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at)) {
        p->at++;
    }
}

/* Whether the next token is `sign`, which is then taken. */
static bool take(parser *p, const char *sign)
{
    skip_space(p);
    size_t length = strlen(sign);
    bool word = isalpha((unsigned char)sign[0]) != 0;
    if (strncmp(p->at, sign, length) != 0 ||
        (word && (isalnum((unsigned char)p->at[length]) || p->at[length] == '_'))) {
        return false;
    }
    p->at += length;
    return true;
}

static graft_status expect(parser *p, const char *sign)
{
    if (!take(p, sign)) {
        char what[WORD_MOST + 16];
        (void)snprintf(what, sizeof what, "expected '%s'", sign);
        return parse_fail(p, what);
    }
    return GRAFT_OK;
}

/* A name, looked at but not taken; its length, 0: none. */
static size_t peek_word(parser *p, char word[WORD_MOST])
{
    skip_space(p);
    size_t length = 0;
    while (length + 1 < WORD_MOST &&
           (isalnum((unsigned char)p->at[length]) || p->at[length] == '_')) {
        word[length] = p->at[length];
        length++;
    }
    word[length] = '\0';
    return length;
}

static graft_status parse_number(parser *p, long least, long most, long *value)
{
    skip_space(p);
    char *end = NULL;
    long number = strtol(p->at, &end, 10);
    GRAFT_RETURN_IF(end == p->at || number < least || number > most,
                    parse_fail(p, "expected a whole number in range"));
    p->at = end;
    *value = number;
    return GRAFT_OK;
}

/* A decimal; `bits` are those of the nearest binary32, which is 0 or infinite only if that is what
 * is written. */
static graft_status parse_float_bits(parser *p, long *bits)
{
    skip_space(p);
    char *end = NULL;
    errno = 0;
    float number = strtof(p->at, &end);
    GRAFT_RETURN_IF(end == p->at || isnan(number), parse_fail(p, "expected a decimal number"));
    GRAFT_RETURN_IF(errno == ERANGE && (number == 0.0F || isinf(number)),
                    parse_fail(p, "a decimal number is too large or too small for binary32"));
    p->at = end;
    *bits = graft_bits_of_float(number);
    return GRAFT_OK;
}

static graft_status parse_var(parser *p, uint8_t *var)
{
    skip_space(p);
    GRAFT_RETURN_IF(*p->at < 'a' || *p->at >= 'a' + GRAFT_RULE_MAX_VARS ||
                        isalnum((unsigned char)p->at[1]) || p->at[1] == '_',
                    parse_fail(p, "expected a variable, a to h"));
    *var = (uint8_t)(*p->at++ - 'a');
    p->vars |= 1u << *var;
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- code */

static graft_status emit(parser *p, uint32_t byte)
{
    GRAFT_RETURN_IF(p->rule->code_bytes == GRAFT_RULE_MAX_CODE,
                    parse_fail(p, "the rule has too much code"));
    p->rule->code[p->rule->code_bytes++] = (uint8_t)byte;
    return GRAFT_OK;
}

static graft_status emit_number(parser *p, long value)
{
    bool small = value >= -128 && value <= 127;
    GRAFT_PASS(emit(p, small ? GRAFT_CODE_CONST8 : GRAFT_CODE_CONST32));
    for (uint32_t i = 0; i < (small ? 1u : 4u); i++) {
        GRAFT_PASS(emit(p, ((uint32_t)value >> (8 * i)) & 0xffu));
    }
    return GRAFT_OK;
}

static graft_status find_slot(parser *p, uint32_t tag, const char *name, uint8_t *slot)
{
    bool is_fixed = false;
    if (tag < TAGS_MOST && p->tag_node[tag] != 0) {
        const graft_pattern_node *nodes = p->in_source ? p->nodes : p->rule->source.nodes;
        const graft_pattern_node *node = &nodes[p->tag_node[tag] - 1];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (strcmp(graft_op_attr(node->op, i)->name, name) != 0) {
                continue;
            }
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                *slot = (uint8_t)node->attrs[i].value;
                return GRAFT_OK;
            }
            is_fixed = true;
        }
    }
    return parse_fail(
        p, is_fixed
               ? graft_arena_printf(p->env->scratch,
                                    "the attribute '%s' is fixed in the source, so the target has "
                                    "to repeat its value",
                                    name)
               : "no source operator of this number has such an attribute slot");
}

/* "#k.name" behind its "#". */
static graft_status parse_slot(parser *p, uint8_t *slot)
{
    char word[WORD_MOST];
    long tag = 0;
    GRAFT_PASS(parse_number(p, 1, TAGS_MOST - 1, &tag));
    GRAFT_PASS(expect(p, "."));
    size_t length = peek_word(p, word);
    GRAFT_PASS(find_slot(p, (uint32_t)tag, word, slot));
    p->at += length;
    return GRAFT_OK;
}

static graft_status parse_expression(parser *p);

/* name(x, y): two expressions. */
static graft_status parse_call(parser *p, uint32_t code)
{
    graft_status status = GRAFT_OK;
    bool outside = p->in_floats;
    p->in_floats = code >= GRAFT_CODE_FMIN;
    GRAFT_CHECK(expect(p, "("));
    GRAFT_CHECK(parse_expression(p));
    GRAFT_CHECK(expect(p, ","));
    GRAFT_CHECK(parse_expression(p));
    GRAFT_CHECK(expect(p, ")"));
    GRAFT_CHECK(emit(p, code));
done:
    p->in_floats = outside;
    return status;
}

/* dim(v,axis), rank(v), const(v), same_shape(v, v): a leaf on variables. */
static graft_status parse_var_leaf(parser *p, uint32_t code)
{
    uint8_t var = 0;
    long axis = 0;
    GRAFT_PASS(emit(p, code));
    GRAFT_PASS(expect(p, "("));
    GRAFT_PASS(parse_var(p, &var));
    GRAFT_PASS(emit(p, var));
    if (code == GRAFT_CODE_DIM) {
        GRAFT_PASS(expect(p, ","));
        GRAFT_PASS(parse_number(p, -GRAFT_MAX_RANK, GRAFT_MAX_RANK - 1, &axis));
        GRAFT_PASS(emit(p, (uint32_t)axis & 0xffu));
    } else if (code == GRAFT_CODE_SAME) {
        GRAFT_PASS(expect(p, ","));
        GRAFT_PASS(parse_var(p, &var));
        GRAFT_PASS(emit(p, var));
    }
    return expect(p, ")");
}

static graft_status parse_atom(parser *p)
{
    static const struct {
        const char *name;
        uint32_t code;
    } calls[] = {
        {"divides",    GRAFT_CODE_DIVIDES },
        {"min",        GRAFT_CODE_MIN     },
        {"max",        GRAFT_CODE_MAX     },
        {"fmin",       GRAFT_CODE_FMIN    },
        {"fmax",       GRAFT_CODE_FMAX    },
        {"fle",        GRAFT_CODE_FLE     },
        {"dim",        GRAFT_CODE_DIM     },
        {"rank",       GRAFT_CODE_RANK    },
        {"const",      GRAFT_CODE_IS_CONST},
        {"same_shape", GRAFT_CODE_SAME    },
    };
    uint8_t slot = 0;
    long value = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (take(p, calls[i].name)) {
            return calls[i].code <= GRAFT_CODE_SAME ? parse_var_leaf(p, calls[i].code)
                                                    : parse_call(p, calls[i].code);
        }
    }
    if (take(p, "(")) {
        GRAFT_PASS(parse_expression(p));
        GRAFT_PASS(expect(p, ")"));
    } else if (take(p, "#")) {
        GRAFT_PASS(parse_slot(p, &slot));
        GRAFT_PASS(emit(p, GRAFT_CODE_SLOT));
        GRAFT_PASS(emit(p, slot));
    } else {
        GRAFT_PASS(p->in_floats ? parse_float_bits(p, &value)
                                : parse_number(p, INT32_MIN, INT32_MAX, &value));
        GRAFT_PASS(emit_number(p, value));
    }
    return GRAFT_OK;
}

/* Infix operators by level, loosest first. */
static const struct {
    const char *sign;
    uint32_t level;
    uint32_t code;
} infixes[] = {
    {"or",  0, GRAFT_CODE_OR },
    {"and", 1, GRAFT_CODE_AND},
    {"=",   2, GRAFT_CODE_EQ },
    {"<=",  2, GRAFT_CODE_LE },
    {"+",   3, GRAFT_CODE_ADD},
    {"-",   3, GRAFT_CODE_SUB},
    {"*",   4, GRAFT_CODE_MUL},
    {"/",   4, GRAFT_CODE_DIV},
    {"mod", 4, GRAFT_CODE_MOD},
};
enum { INFIX_LEVELS = 5, LEVEL_NOT = 2 };

static graft_status parse_level(parser *p, uint32_t level)
{
    if (level == INFIX_LEVELS) {
        return parse_atom(p);
    }
    if (level == LEVEL_NOT && take(p, "not")) {
        GRAFT_PASS(parse_level(p, INFIX_LEVELS));
        return emit(p, GRAFT_CODE_NOT);
    }
    GRAFT_PASS(parse_level(p, level + 1));
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < sizeof infixes / sizeof infixes[0] && !more; i++) {
            if (infixes[i].level == level && take(p, infixes[i].sign)) {
                GRAFT_PASS(parse_level(p, level + 1));
                GRAFT_PASS(emit(p, infixes[i].code));
                more = true;
            }
        }
    }
    return GRAFT_OK;
}

static graft_status parse_expression(parser *p)
{
    GRAFT_RETURN_IF(p->nesting == NESTING_MOST, parse_fail(p, "nested too deeply"));
    p->nesting++;
    graft_status status = parse_level(p, 0);
    p->nesting--;
    return status;
}

/* -------------------------------------------------------------- attributes */

static bool parse_activation(parser *p, graft_term *term)
{
    static const char *const names[] = {"none", "relu", "relu6", "sigmoid", "tanh"};
    for (int32_t i = 0; i < GRAFT_ACT_COUNT; i++) {
        if (take(p, names[i])) {
            *term = (graft_term){i, GRAFT_TERM_CONST};
            return true;
        }
    }
    return false;
}

static graft_status parse_float(parser *p, graft_term *term)
{
    long bits = 0;
    GRAFT_PASS(parse_float_bits(p, &bits));
    *term = (graft_term){(int32_t)bits, GRAFT_TERM_CONST};
    return GRAFT_OK;
}

/* An expression; one that is a single number or slot needs no code. */
static graft_status parse_value(parser *p, uint32_t kind, graft_term *term)
{
    uint32_t start = p->rule->code_bytes;
    skip_space(p);
    if (kind == GRAFT_ATTR_ACTIVATION && parse_activation(p, term)) {
        return GRAFT_OK;
    }
    if (kind == GRAFT_ATTR_FLOAT && *p->at != '#' && strncmp(p->at, "fm", 2) != 0) {
        return parse_float(p, term);
    }
    GRAFT_PASS(parse_expression(p));
    const graft_code_step step = graft_code_at(p->rule, start);
    const bool single = graft_code_next(p->rule, start) == p->rule->code_bytes;
    if (single && step.code == GRAFT_CODE_SLOT) {
        *term = (graft_term){step.index, GRAFT_TERM_SLOT};
    } else if (single && (step.code == GRAFT_CODE_CONST8 || step.code == GRAFT_CODE_CONST32)) {
        *term = (graft_term){step.number, GRAFT_TERM_CONST};
    } else if (p->in_source) {
        return parse_fail(p, "an attribute of the source must be a number or one attribute "
                             "variable, not an expression");
    } else {
        GRAFT_PASS(emit(p, GRAFT_CODE_END));
        *term = (graft_term){(int32_t)graft_code_share(p->rule, start), GRAFT_TERM_CODE};
        return GRAFT_OK;
    }
    p->rule->code_bytes = (uint8_t)start;
    return GRAFT_OK;
}

static graft_status parse_list(parser *p, graft_pattern_node *node, uint32_t first, uint32_t *given)
{
    const graft_op_info *info = graft_op(node->op);
    uint32_t i = first;
    while (!take(p, "]")) {
        if (i > first) {
            GRAFT_PASS(expect(p, ","));
        }
        GRAFT_RETURN_IF(i == info->attr_count, parse_fail(p, "too many values"));
        GRAFT_PASS(parse_value(p, graft_op_attr(node->op, i)->kind, &node->attrs[i]));
        i++;
    }
    for (; i < info->attr_count; i++) {
        node->attrs[i] = (graft_term){0, GRAFT_TERM_CONST};
    }
    *given |= (1u << info->attr_count) - (1u << first);
    return GRAFT_OK;
}

/* name=value, or stem=[values] for attributes stem_0, stem_1... */
static graft_status parse_attr(parser *p, graft_pattern_node *node, uint32_t *given)
{
    char word[WORD_MOST];
    char listed[WORD_MOST + 2];
    size_t length = peek_word(p, word);
    (void)snprintf(listed, sizeof listed, "%s_0", word);
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        const graft_attr_info *attr = graft_op_attr(node->op, i);
        bool list = strcmp(attr->name, listed) == 0;
        if (!list && strcmp(attr->name, word) != 0) {
            continue;
        }
        p->at += length;
        GRAFT_RETURN_IF(!take(p, "=") || (list && !take(p, "[")),
                        parse_fail(p, list ? "expected '=['" : "expected '='"));
        *given |= 1u << i;
        return list ? parse_list(p, node, i, given) : parse_value(p, attr->kind, &node->attrs[i]);
    }
    return parse_fail(p, "expected an operand or an attribute of the operator");
}

/* A source operator with a new number gets a slot for every attribute, before its operands are
 * read: they may name these slots. Those of attributes that turn out to be written are dropped in
 * the end. */
static graft_status own_slots(parser *p, graft_pattern_node *node, uint32_t index, uint32_t tag)
{
    if (!p->in_source || tag == 0 || p->tag_node[tag] != 0) {
        return GRAFT_OK;
    }
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        GRAFT_RETURN_IF(p->slot_end == SLOTS_MOST, parse_fail(p, "the rule has too many slots"));
        node->attrs[i] = (graft_term){(int32_t)p->slot_end++, GRAFT_TERM_SLOT};
    }
    p->nodes[index] = *node;
    /* Its operands are still to come: until then it equals no other node. */
    memset(p->nodes[index].inputs, UINT8_MAX, sizeof node->inputs);
    p->tag_node[tag] = (uint8_t)(index + 1);
    p->node_tag[index] = (uint8_t)tag;
    return GRAFT_OK;
}

/* Gives the attributes that were not written the slots of the same name of operator number `tag`.
 */
static graft_status fill_attrs(parser *p, graft_pattern_node *node, uint32_t tag, uint32_t given)
{
    const graft_op_info *info = graft_op(node->op);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        uint8_t slot = 0;
        if ((given >> i & 1u) != 0) {
            continue;
        }
        GRAFT_RETURN_IF(tag == 0, parse_fail(p, "an attribute of the operator before is missing"));
        if (find_slot(p, tag, graft_op_attr(node->op, i)->name, &slot) != GRAFT_OK) {
            return GRAFT_BAD_INPUT;
        }
        node->attrs[i] = (graft_term){slot, GRAFT_TERM_SLOT};
    }
    return GRAFT_OK;
}

/* Numbers the slots that source attributes have, in the order of nodes and attributes, without
 * gaps. */
static void compress_slots(parser *p)
{
    uint8_t number[SLOTS_MOST];
    graft_rule *rule = p->rule;
    memset(number, UINT8_MAX, sizeof number);
    for (int side = 0; side < 2; side++) {
        graft_pattern *pattern = side == 0 ? &rule->source : &rule->target;
        for (uint32_t n = 0; n < pattern->node_count; n++) {
            for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
                graft_term *term = &pattern->nodes[n].attrs[i];
                if (term->kind != GRAFT_TERM_SLOT) {
                    continue;
                }
                if (number[term->value] == UINT8_MAX) {
                    number[term->value] = rule->slot_count++;
                }
                term->value = number[term->value];
            }
        }
    }
    for (uint32_t at = 0; at < rule->code_bytes; at = graft_code_next(rule, at)) {
        if (rule->code[at] == GRAFT_CODE_SLOT) {
            rule->code[at + 1] = number[rule->code[at + 1]];
        }
    }
}

/* ------------------------------------------------------------------- terms */

static graft_status parse_term(parser *p, graft_operand *operand);

static graft_status parse_arguments(parser *p, graft_pattern_node *node, uint32_t *given)
{
    uint32_t inputs = 0;
    bool first = true;
    GRAFT_PASS(expect(p, "("));
    while (!take(p, ")")) {
        if (!first) {
            GRAFT_PASS(expect(p, ","));
        }
        first = false;
        if (inputs < graft_op(node->op)->input_count) {
            GRAFT_PASS(parse_term(p, &node->inputs[inputs]));
            inputs++;
        } else {
            GRAFT_PASS(parse_attr(p, node, given));
        }
    }
    GRAFT_RETURN_IF(inputs < graft_op(node->op)->input_count,
                    parse_fail(p, "the operator before has too few operands"));
    return GRAFT_OK;
}

static bool same_node(const graft_pattern_node *a, const graft_pattern_node *b)
{
    bool same = a->op == b->op;
    for (uint32_t i = 0; same && i < GRAFT_MAX_ATTRS; i++) {
        /* Equal expressions are one (graft_code_share). */
        same = a->attrs[i].kind == b->attrs[i].kind && a->attrs[i].value == b->attrs[i].value;
    }
    return same && memcmp(a->inputs, b->inputs, sizeof a->inputs) == 0;
}

/* An equal node that is already there, or `node` itself at `index`. */
static uint32_t place_node(parser *p, const graft_pattern_node *node, uint32_t index)
{
    for (uint32_t n = 0; n < p->node_count; n++) {
        if (n != index && same_node(&p->nodes[n], node)) {
            p->node_count = index; /* Its operands, if numbered after it, were merged too. */
            return n;
        }
    }
    p->nodes[index] = *node;
    return index;
}

static graft_status parse_application(parser *p, uint32_t op, graft_operand *operand)
{
    graft_pattern_node node;
    uint32_t given = 0;
    long tag = 0;
    long output = 0;
    memset(&node, 0, sizeof node);
    node.op = (uint8_t)op;
    GRAFT_RETURN_IF(p->node_count == NODES_MOST, parse_fail(p, "the side has too many operators"));
    uint32_t index = p->in_source ? p->node_count++ : 0;
    if (take(p, "#")) {
        GRAFT_PASS(parse_number(p, 1, TAGS_MOST - 1, &tag));
    }
    GRAFT_PASS(own_slots(p, &node, index, (uint32_t)tag));
    GRAFT_PASS(parse_arguments(p, &node, &given));
    GRAFT_PASS(fill_attrs(p, &node, (uint32_t)tag, given));
    if (!p->in_source) {
        GRAFT_RETURN_IF(p->node_count == NODES_MOST,
                        parse_fail(p, "the side has too many operators"));
        index = p->node_count++;
    }
    index = place_node(p, &node, index);
    if (graft_op(op)->output_count > 1) {
        GRAFT_PASS(expect(p, "."));
        GRAFT_PASS(parse_number(p, 0, graft_op(op)->output_count - 1, &output));
    }
    *operand = GRAFT_OPERAND_NODE(index, output);
    return GRAFT_OK;
}

static graft_status parse_term(parser *p, graft_operand *operand)
{
    char word[WORD_MOST];
    size_t length = peek_word(p, word);
    uint32_t op = length > 1 ? graft_op_named(word) : GRAFT_OP_NONE;
    GRAFT_RETURN_IF(p->nesting == NESTING_MOST, parse_fail(p, "nested too deeply"));
    p->nesting++;
    graft_status status = GRAFT_OK;
    if (length == 1) {
        status = parse_var(p, operand);
    } else if (op == GRAFT_OP_NONE) {
        status = parse_fail(p, "expected a variable or an operator");
    } else {
        p->at += length;
        status = parse_application(p, op, operand);
    }
    p->nesting--;
    return status;
}

static graft_status parse_outputs(parser *p, graft_pattern *side, uint8_t *count)
{
    *count = 0;
    if (!take(p, "[")) {
        *count = 1;
        return parse_term(p, &side->outputs[0]);
    }
    do {
        GRAFT_RETURN_IF(*count == GRAFT_RULE_MAX_OUTPUTS, parse_fail(p, "too many outputs"));
        GRAFT_PASS(parse_term(p, &side->outputs[*count]));
        (*count)++;
    } while (take(p, ","));
    return expect(p, "]");
}

static graft_status parse_side(parser *p, graft_pattern *side, uint8_t *count)
{
    p->node_count = 0;
    GRAFT_PASS(parse_outputs(p, side, count));
    GRAFT_RETURN_IF(p->node_count > GRAFT_RULE_MAX_NODES,
                    parse_fail(p, "the side has too many operators"));
    side->node_count = (uint8_t)p->node_count;
    memcpy(side->nodes, p->nodes, p->node_count * sizeof(p->nodes[0]));
    return GRAFT_OK;
}

static graft_status expect_end(parser *p, const char *what)
{
    skip_space(p);
    return *p->at == '\0' ? GRAFT_OK : parse_fail(p, what);
}

static graft_status parse_condition(parser *p)
{
    if (take(p, "where")) {
        p->rule->condition = p->rule->code_bytes;
        GRAFT_PASS(parse_expression(p));
        GRAFT_PASS(emit(p, GRAFT_CODE_END));
    }
    return expect_end(p, "expected the end of the rule");
}

static void start_rule(parser *p, graft_env *env, graft_rule *rule)
{
    *p = (parser){.env = env, .rule = rule, .in_source = true};
    memset(rule, 0, sizeof *rule);
    rule->condition = 255;
}

static void start_text(parser *p, const graft_rule_part *part)
{
    p->name = part->name;
    p->text = part->text;
    p->at = part->text;
}

static graft_status check_vars(const parser *p, uint32_t source_vars)
{
    return p->vars != source_vars || (p->vars & (p->vars + 1)) != 0
               ? parse_fail(p, "variables must be a, b, c... and all occur in the source")
               : GRAFT_OK;
}

/* The part that a fault is in: the source when it stays where there is no target. */
static const char *part_at_fault(const graft_rule *rule, const char *source, const char *target)
{
    graft_rule bare = *rule;
    memset(&bare.target, 0, sizeof bare.target); /* Every output is the first variable. */
    return graft_rule_check(&bare) != NULL ? source : target;
}

/* What is left when all texts have been read; `outputs` is the target's number, `source` stands for
 * the source in messages. */
static graft_status finish_rule(parser *p, const char *source, uint32_t outputs, graft_rule *rule)
{
    GRAFT_RETURN_IF(outputs != p->rule->output_count,
                    parse_fail(p, "the sides have different numbers of outputs"));
    while ((p->vars >> p->rule->var_count & 1u) != 0) {
        p->rule->var_count++;
    }
    compress_slots(p);
    GRAFT_RETURN_IF(p->rule->slot_count > GRAFT_RULE_MAX_SLOTS,
                    GRAFT_FAIL(p->env, GRAFT_BAD_INPUT, "%s: the rule has too many slots", source));
    const char *fault = graft_rule_check(p->rule);
    GRAFT_RETURN_IF(fault != NULL, GRAFT_FAIL(p->env, GRAFT_BAD_INPUT, "%s: %s",
                                              part_at_fault(p->rule, source, p->name), fault));
    *rule = *p->rule;
    return GRAFT_OK;
}

graft_status graft_rule_parse(graft_env *env, const char *name, const char *text, graft_rule *rule)
{
    graft_rule result;
    uint8_t outputs = 0;
    parser p;
    start_rule(&p, env, &result);
    start_text(&p, &(graft_rule_part){name, text});
    GRAFT_PASS(parse_side(&p, &result.source, &result.output_count));
    uint32_t source_vars = p.vars;
    p.in_source = false;
    GRAFT_PASS(expect(&p, "="));
    GRAFT_PASS(parse_side(&p, &result.target, &outputs));
    GRAFT_PASS(parse_condition(&p));
    GRAFT_PASS(check_vars(&p, source_vars));
    return finish_rule(&p, name, outputs, rule);
}

static void take_numbers(const parser *p, graft_rule_numbers *numbers)
{
    memset(numbers, 0, sizeof *numbers);
    for (uint32_t n = 0; n < p->rule->source.node_count; n++) {
        uint32_t number = graft_rule_print_number(p->rule, n);
        numbers->given[number] = number > 0 ? p->node_tag[n] : 0;
    }
}

graft_status graft_rule_parse_parts(graft_env *env, const graft_rule_parts *parts, graft_rule *rule,
                                    graft_rule_numbers *numbers)
{
    graft_rule result;
    uint8_t outputs = 0;
    parser p;
    start_rule(&p, env, &result);
    start_text(&p, &parts->source);
    GRAFT_PASS(parse_side(&p, &result.source, &result.output_count));
    GRAFT_PASS(expect_end(&p, "expected the end of the source"));
    uint32_t source_vars = p.vars;
    GRAFT_PASS(check_vars(&p, source_vars));
    p.in_source = false;
    start_text(&p, &parts->target);
    GRAFT_PASS(parse_side(&p, &result.target, &outputs));
    GRAFT_PASS(expect_end(&p, "expected the end of the target"));
    GRAFT_PASS(check_vars(&p, source_vars));
    result.condition = parts->where_count > 0 ? result.code_bytes : 255;
    for (uint32_t i = 0; i < parts->where_count; i++) {
        start_text(&p, &parts->where[i]);
        GRAFT_PASS(parse_expression(&p));
        GRAFT_PASS(expect_end(&p, "expected the end of the precondition"));
        GRAFT_PASS(check_vars(&p, source_vars));
        GRAFT_PASS(i > 0 ? emit(&p, GRAFT_CODE_AND) : GRAFT_OK);
    }
    GRAFT_PASS(parts->where_count > 0 ? emit(&p, GRAFT_CODE_END) : GRAFT_OK);
    start_text(&p, &parts->target);
    GRAFT_PASS(finish_rule(&p, parts->source.name, outputs, rule));
    if (numbers != NULL) {
        take_numbers(&p, numbers);
    }
    return GRAFT_OK;
}

uint32_t graft_code_share(graft_rule *rule, uint32_t start)
{
    uint32_t size = rule->code_bytes - start;
    uint32_t first = 0; /* Of the expression looked at. */
    for (uint32_t at = 0; at < start;) {
        uint32_t next = graft_code_next(rule, at);
        if (rule->code[at] == GRAFT_CODE_END) {
            if (next - first == size && memcmp(&rule->code[first], &rule->code[start], size) == 0) {
                memset(&rule->code[start], 0, size);
                rule->code_bytes = (uint8_t)start;
                return first;
            }
            first = next;
        }
        at = next;
    }
    return start;
}
