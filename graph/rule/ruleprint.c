/* ruleprint.c - rules as text: patterns as terms, byte code as infix. */
#include "graph/rule/ruleprint.h"

#include "graph/base/bits.h"
#include "graph/rule/pattern.h"
#include "graph/rule/rulecode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const graft_rule *rule;
    graft_arena *arena;
    uint8_t tag[GRAFT_RULE_MAX_NODES];       /* By source node: its number k of "#k"; 0: none. */
    uint8_t slot_node[GRAFT_RULE_MAX_SLOTS]; /* Where a slot is first mentioned. */
    uint8_t slot_attr[GRAFT_RULE_MAX_SLOTS];
} printer;

/* ------------------------------------------------------------ slot numbers */

/* Gives numbers to source nodes in the order of reading (operators outside in, left to right): the
 * first node that mentions a slot owns it, and nodes that own slots are numbered. */
static void number_slots(printer *p)
{
    const graft_rule *rule = p->rule;
    uint64_t seen = 0;
    uint8_t tags = 0;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_term *term = &node->attrs[i];
            if (term->kind != GRAFT_TERM_SLOT || (seen >> term->value & 1u) != 0) {
                continue;
            }
            seen |= UINT64_C(1) << term->value;
            p->slot_node[term->value] = (uint8_t)n;
            p->slot_attr[term->value] = (uint8_t)i;
            if (p->tag[n] == 0) {
                p->tag[n] = ++tags;
            }
        }
    }
}

static void print_slot(const printer *p, graft_buffer *out, uint32_t slot)
{
    uint32_t node = p->slot_node[slot];
    uint32_t op = p->rule->source.nodes[node].op;
    graft_buffer_printf(out, "#%u.%s", p->tag[node], graft_op_attr(op, p->slot_attr[slot])->name);
}

/* ------------------------------------------------------------------- code */

/* A printed subexpression and how tightly it binds (larger: tighter; 9: an atom). */
typedef struct {
    const char *text;
    int binding;
    bool number; /* The constant `bits`. */
    int32_t bits;
} infix;

enum { CODE_STACK = 16, BIND_OR = 1, BIND_AND, BIND_RELATION, BIND_SUM, BIND_PRODUCT, BIND_ATOM };

static const char *shield(graft_arena *arena, infix x, int binding)
{
    return x.binding < binding ? graft_arena_printf(arena, "(%s)", x.text) : x.text;
}

static void print_float(graft_buffer *out, int32_t bits);

/* A constant among binary32 numbers is printed as the number whose bits it is. */
static void read_as_float(graft_arena *arena, infix *x)
{
    if (x->number) {
        graft_buffer out = {.arena = arena};
        print_float(&out, x->bits);
        x->text = out.data;
    }
}

static infix print_operator(graft_arena *arena, uint32_t code, infix a, infix b)
{
    static const struct {
        const char *sign;
        int binding; /* BIND_ATOM: a call, sign(a, b). */
    } signs[GRAFT_CODE_COUNT] = {
        [GRAFT_CODE_ADD] = {"+",       BIND_SUM     },
          [GRAFT_CODE_SUB] = {"-",       BIND_SUM     },
        [GRAFT_CODE_MUL] = {"*",       BIND_PRODUCT },
          [GRAFT_CODE_DIV] = {"/",       BIND_PRODUCT },
        [GRAFT_CODE_MOD] = {"mod",     BIND_PRODUCT },
          [GRAFT_CODE_EQ] = {"=",       BIND_RELATION},
        [GRAFT_CODE_LE] = {"<=",      BIND_RELATION},
          [GRAFT_CODE_DIVIDES] = {"divides", BIND_ATOM    },
        [GRAFT_CODE_AND] = {"and",     BIND_AND     },
          [GRAFT_CODE_OR] = {"or",      BIND_OR      },
        [GRAFT_CODE_MIN] = {"min",     BIND_ATOM    },
          [GRAFT_CODE_MAX] = {"max",     BIND_ATOM    },
        [GRAFT_CODE_FMIN] = {"fmin",    BIND_ATOM    },
          [GRAFT_CODE_FMAX] = {"fmax",    BIND_ATOM    },
        [GRAFT_CODE_FLE] = {"fle",     BIND_ATOM    },
    };
    const char *sign = signs[code].sign;
    int binding = signs[code].binding;
    if (code >= GRAFT_CODE_FMIN) {
        read_as_float(arena, &a);
        read_as_float(arena, &b);
    }
    if (binding == BIND_ATOM) {
        return (infix){graft_arena_printf(arena, "%s(%s, %s)", sign, a.text, b.text), BIND_ATOM,
                       false, 0};
    }
    /* Relations do not chain, differences and quotients group to the left. */
    const char *left = shield(arena, a, binding == BIND_RELATION ? BIND_SUM : binding);
    const char *right = shield(arena, b, binding <= BIND_AND ? binding : binding + 1);
    return (infix){graft_arena_printf(arena, "%s %s %s", left, sign, right), binding, false, 0};
}

static infix print_leaf(const printer *p, const graft_code_step *step)
{
    graft_buffer out = {.arena = p->arena};
    const char var = (char)('a' + step->index);
    bool number = step->code <= GRAFT_CODE_CONST32;
    if (number) {
        graft_buffer_printf(&out, "%d", step->number);
    } else if (step->code == GRAFT_CODE_SLOT) {
        print_slot(p, &out, step->index);
    } else if (step->code == GRAFT_CODE_DIM) {
        graft_buffer_printf(&out, "dim(%c,%d)", var, step->number);
    } else if (step->code == GRAFT_CODE_SAME) {
        graft_buffer_printf(&out, "same_shape(%c, %c)", var, 'a' + step->other);
    } else {
        graft_buffer_printf(&out, "%s(%c)", step->code == GRAFT_CODE_RANK ? "rank" : "const", var);
    }
    return (infix){out.data, BIND_ATOM, number, step->number};
}

static const char *print_code(const printer *p, uint32_t at)
{
    infix stack[CODE_STACK] = {{0}};
    graft_code_reader reader = graft_code_open(p->rule, at, CODE_STACK);
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        infix *top = &stack[step.place];
        if (step.takes == 0) {
            *top = print_leaf(p, &step);
        } else if (step.takes == 1) {
            const char *inner = shield(p->arena, *top, BIND_ATOM);
            *top = (infix){graft_arena_printf(p->arena, "not %s", inner), BIND_RELATION, false, 0};
        } else {
            *top = print_operator(p->arena, step.code, top[0], top[1]);
        }
    }
    return reader.end == GRAFT_CODE_WHOLE ? stack[0].text : "<stack fault>";
}

/* --------------------------------------------------------------- patterns */

static void print_float(graft_buffer *out, int32_t bits)
{
    const float value = graft_float_of_bits(bits);
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (graft_bits_of_float(strtof(text, NULL)) == bits) {
            break;
        }
    }
    graft_buffer_printf(out, "%s", text);
}

static void print_term(const printer *p, graft_buffer *out, const graft_term *term, uint32_t kind)
{
    static const char *const activations[] = {"none", "relu", "relu6", "sigmoid", "tanh"};
    if (term->kind == GRAFT_TERM_SLOT) {
        print_slot(p, out, (uint32_t)term->value);
    } else if (term->kind == GRAFT_TERM_CODE) {
        graft_buffer_printf(out, "%s", print_code(p, (uint32_t)term->value));
    } else if (kind == GRAFT_ATTR_FLOAT) {
        print_float(out, term->value);
    } else if (kind == GRAFT_ATTR_ACTIVATION && term->value >= 0 && term->value < GRAFT_ACT_COUNT) {
        graft_buffer_printf(out, "%s", activations[term->value]);
    } else {
        graft_buffer_printf(out, "%d", term->value);
    }
}

/* Whether the attribute is the one that a node with the number of `owner` takes from it. */
static bool is_inherited(const printer *p, uint32_t owner, const char *name, const graft_term *term)
{
    return term->kind == GRAFT_TERM_SLOT && p->slot_node[term->value] == owner &&
           strcmp(graft_op_attr(p->rule->source.nodes[owner].op, p->slot_attr[term->value])->name,
                  name) == 0;
}

/* The source node whose attributes `node` takes over, if it has every attribute of that node that
 * both have by name; the one from which it takes most. GRAFT_RULE_MAX_NODES: none. */
static uint32_t find_owner(const printer *p, const graft_pattern_node *node)
{
    uint32_t best = GRAFT_RULE_MAX_NODES;
    uint32_t best_count = 0;
    for (uint32_t owner = 0; owner < p->rule->source.node_count; owner++) {
        uint32_t count = 0;
        bool complete = p->tag[owner] != 0;
        for (uint32_t i = 0; complete && i < graft_op(node->op)->attr_count; i++) {
            const char *name = graft_op_attr(node->op, i)->name;
            if (is_inherited(p, owner, name, &node->attrs[i])) {
                count++;
                continue;
            }
            const graft_pattern_node *from = &p->rule->source.nodes[owner];
            for (uint32_t j = 0; j < graft_op(from->op)->attr_count; j++) {
                bool owns = is_inherited(p, owner, name, &from->attrs[j]);
                complete =
                    complete && !(owns && strcmp(graft_op_attr(from->op, j)->name, name) == 0);
            }
        }
        if (complete && count > best_count) {
            best = owner;
            best_count = count;
        }
    }
    return best;
}

/* Sizes of a reshape or fill, axes of a transpose: dim_0 .. dim_5 are printed as one list, without
 * the zeros past the rank. Returns the number of attributes taken from index i, 0: not a list. */
static uint32_t print_list(const printer *p, graft_buffer *out, const graft_pattern_node *node,
                           uint32_t i)
{
    const graft_op_info *info = graft_op(node->op);
    const char *name = graft_op_attr(node->op, i)->name;
    size_t stem = strlen(name);
    if (stem < 2 || strcmp(name + stem - 2, "_0") != 0) {
        return 0;
    }
    uint32_t end = info->attr_count;
    uint32_t least = 1; /* Axes up to the largest one are all there, zeros included. */
    for (uint32_t k = i; k < end && node->op == GRAFT_OP_transpose; k++) {
        bool named = node->attrs[k].kind == GRAFT_TERM_CONST;
        uint32_t axis = named ? (uint32_t)node->attrs[k].value : 0;
        least = axis + 1 > least ? axis + 1 : least;
    }
    while (end > i + least && node->attrs[end - 1].kind == GRAFT_TERM_CONST &&
           node->attrs[end - 1].value == 0) {
        end--;
    }
    bool scalar = end == i + 1 && node->op != GRAFT_OP_transpose &&
                  node->attrs[i].kind == GRAFT_TERM_CONST && node->attrs[i].value == 0;
    graft_buffer_printf(out, ", %.*s=[", (int)(stem - 2), name);
    for (uint32_t k = i; k < end && !scalar; k++) {
        graft_buffer_printf(out, k > i ? ", " : "");
        print_term(p, out, &node->attrs[k], graft_op_attr(node->op, k)->kind);
    }
    graft_buffer_printf(out, "]");
    return info->attr_count - i;
}

static void print_attrs(const printer *p, graft_buffer *out, const graft_pattern_node *node,
                        uint32_t owner)
{
    const graft_op_info *info = graft_op(node->op);
    for (uint32_t i = 0; i < info->attr_count;) {
        const graft_attr_info *attr = graft_op_attr(node->op, i);
        if (owner < GRAFT_RULE_MAX_NODES && is_inherited(p, owner, attr->name, &node->attrs[i])) {
            i++;
            continue;
        }
        uint32_t taken = print_list(p, out, node, i);
        if (taken == 0) {
            graft_buffer_printf(out, ", %s=", attr->name);
            print_term(p, out, &node->attrs[i], attr->kind);
            taken = 1;
        }
        i += taken;
    }
}

/* The text of each node, operands before readers, then of the outputs. */
static const char *print_operand(const char *const *texts, const graft_pattern *pattern,
                                 graft_arena *arena, graft_operand operand)
{
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        return graft_arena_printf(arena, "%c", 'a' + operand);
    }
    uint32_t node = GRAFT_OPERAND_NODE_OF(operand);
    return graft_op(pattern->nodes[node].op)->output_count == 1
               ? texts[node]
               : graft_arena_printf(arena, "%s.%u", texts[node], GRAFT_OPERAND_SLOT_OF(operand));
}

static const char *print_node(const printer *p, const graft_pattern *pattern,
                              const char *const *texts, uint32_t n)
{
    const graft_pattern_node *node = &pattern->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    graft_buffer out = {.arena = p->arena};
    bool owns = pattern == &p->rule->source && p->tag[n] != 0;
    uint32_t owner = owns ? n : find_owner(p, node);
    graft_buffer_printf(&out, "%s", info->name);
    if (owner < GRAFT_RULE_MAX_NODES) {
        graft_buffer_printf(&out, "#%u", p->tag[owner]);
    }
    graft_buffer_printf(&out, "(");
    for (uint32_t i = 0; i < info->input_count; i++) {
        graft_buffer_printf(&out, "%s%s", i > 0 ? ", " : "",
                            print_operand(texts, pattern, p->arena, node->inputs[i]));
    }
    graft_buffer attrs = {.arena = p->arena};
    print_attrs(p, &attrs, node, owner);
    size_t skip = info->input_count == 0 && attrs.size > 0 ? 2 : 0; /* The leading ", ". */
    graft_buffer_printf(&out, "%s)", attrs.size > 0 ? attrs.data + skip : "");
    return out.data;
}

static const char *print_pattern(const printer *p, const graft_pattern *pattern)
{
    const char *texts[GRAFT_RULE_MAX_NODES] = {0};
    uint8_t order[GRAFT_RULE_MAX_NODES];
    graft_pattern_order(pattern, order);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        texts[order[k]] = print_node(p, pattern, texts, order[k]);
    }
    graft_buffer out = {.arena = p->arena};
    bool several = p->rule->output_count > 1;
    graft_buffer_printf(&out, several ? "[" : "");
    for (uint32_t i = 0; i < p->rule->output_count; i++) {
        graft_buffer_printf(&out, "%s%s", i > 0 ? ", " : "",
                            print_operand(texts, pattern, p->arena, pattern->outputs[i]));
    }
    graft_buffer_printf(&out, several ? "]" : "");
    return out.data;
}

graft_rule_text graft_rule_print(graft_arena *arena, const graft_rule *rule)
{
    assert(graft_rule_check(rule) == NULL);
    printer p = {.rule = rule, .arena = arena};
    number_slots(&p);
    return (graft_rule_text){
        print_pattern(&p, &rule->source),
        print_pattern(&p, &rule->target),
        rule->condition == 255 ? "" : print_code(&p, rule->condition),
    };
}

const char *graft_rule_print_line(graft_arena *arena, const graft_rule *rule)
{
    graft_rule_text text = graft_rule_print(arena, rule);
    return graft_arena_printf(arena, "%s = %s%s%s", text.source, text.target,
                              text.where[0] == '\0' ? "" : " where ", text.where);
}

const char *graft_rule_print_slot(graft_arena *arena, const graft_rule *rule, uint32_t slot)
{
    printer p = {.rule = rule, .arena = arena};
    graft_buffer out = {.arena = arena};
    number_slots(&p);
    print_slot(&p, &out, slot);
    return out.data;
}

const char *graft_rule_print_term(graft_arena *arena, const graft_rule *rule,
                                  const graft_term *term, uint32_t kind)
{
    printer p = {.rule = rule, .arena = arena};
    graft_buffer out = {.arena = arena};
    number_slots(&p);
    print_term(&p, &out, term, kind);
    return out.data;
}

uint32_t graft_rule_print_number(const graft_rule *rule, uint32_t node)
{
    printer p = {.rule = rule};
    number_slots(&p);
    return p.tag[node];
}

/* Operators in data-flow order. */
static void name_pattern(graft_buffer *out, const graft_pattern *pattern)
{
    uint8_t order[GRAFT_RULE_MAX_NODES];
    graft_pattern_order(pattern, order);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        graft_buffer_printf(out, "%s%s", k > 0 ? "-" : "",
                            graft_op(pattern->nodes[order[k]].op)->name);
    }
    if (pattern->node_count == 0) {
        graft_buffer_printf(out, "input");
    }
}

const char *graft_rule_print_name(graft_arena *arena, const graft_rule *rule)
{
    graft_buffer out = {.arena = arena};
    name_pattern(&out, &rule->source);
    graft_buffer_printf(&out, "=>");
    name_pattern(&out, &rule->target);
    return out.data;
}
