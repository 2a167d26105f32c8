/* rulewords.c - byte code as phrases, patterns as steps. See rulewords.h. */
#include "graph/rule/rulewords.h"

#include "graph/rule/pattern.h"
#include "graph/rule/rulecode.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

enum { DEPTH_MOST = 16, PARTS_MOST = 64 };

/* ----------------------------------------------------------------- phrases */

/* What a program has on its stack: a phrase, and, for a conjunction, its parts. */
typedef struct {
    const char *text;
    const char *parts[PARTS_MOST];
    uint32_t part_count; /* 0: `text` is the one part. */
    bool whole;          /* Needs no brackets as an operand. */
    bool number;         /* The constant `bits`. */
    int32_t bits;
} phrase;

static const char *slot_phrase(graft_arena *arena, const graft_rule *rule, uint32_t slot)
{
    const char *text = graft_rule_print_slot(arena, rule, slot); /* "#1.groups" */
    const char *dot = strchr(text, '.');
    return graft_arena_printf(arena, "%s of %.*s", dot + 1, (int)(dot - text), text);
}

static const char *axis_phrase(graft_arena *arena, int32_t axis, uint32_t var)
{
    const char letter = (char)('a' + (int)var);
    if (axis == -1) {
        return graft_arena_printf(arena, "the last size of %c", letter);
    }
    if (axis < 0) {
        return graft_arena_printf(arena, "size %d from the end of %c", -axis, letter);
    }
    return graft_arena_printf(arena, "the size of axis %d of %c", axis, letter);
}

static const char *leaf_phrase(graft_arena *arena, const graft_rule *rule,
                               const graft_code_step *step)
{
    const char var = (char)('a' + step->index);
    if (step->code <= GRAFT_CODE_CONST32) {
        return graft_arena_printf(arena, "%d", step->number);
    }
    if (step->code == GRAFT_CODE_SLOT) {
        return slot_phrase(arena, rule, step->index);
    }
    if (step->code == GRAFT_CODE_DIM) {
        return axis_phrase(arena, step->number, step->index);
    }
    if (step->code == GRAFT_CODE_RANK) {
        return graft_arena_printf(arena, "the rank of %c", var);
    }
    if (step->code == GRAFT_CODE_IS_CONST) {
        return graft_arena_printf(arena, "%c is known before inference (a weight)", var);
    }
    return graft_arena_printf(arena, "%c and %c have the same shape", var, 'a' + step->other);
}

static const char *bracket(graft_arena *arena, const phrase *x)
{
    return x->whole ? x->text : graft_arena_printf(arena, "(%s)", x->text);
}

/* How two operands are joined: "a WORD b", or "WORD a and b" for words that come first. */
static const struct {
    const char *word;
    bool first;
} joins[GRAFT_CODE_COUNT] = {
    [GRAFT_CODE_ADD] = {"plus",                 false},
    [GRAFT_CODE_SUB] = {"minus",                false},
    [GRAFT_CODE_MUL] = {"times",                false},
    [GRAFT_CODE_DIV] = {"divided (exactly) by", false},
    [GRAFT_CODE_MOD] = {"modulo",               false},
    [GRAFT_CODE_EQ] = {"equals",               false},
    [GRAFT_CODE_LE] = {"is at most",           false},
    [GRAFT_CODE_DIVIDES] = {"divides",              false},
    [GRAFT_CODE_AND] = {"and",                  false},
    [GRAFT_CODE_OR] = {"or",                   false},
    [GRAFT_CODE_MIN] = {"the smaller of",       true },
    [GRAFT_CODE_MAX] = {"the larger of",        true },
    [GRAFT_CODE_FMIN] = {"the smaller of",       true },
    [GRAFT_CODE_FMAX] = {"the larger of",        true },
    [GRAFT_CODE_FLE] = {"is at most",           false},
};

static void add_parts(phrase *to, const phrase *from)
{
    for (uint32_t i = 0; i < (from->part_count > 0 ? from->part_count : 1); i++) {
        const char *part = from->part_count > 0 ? from->parts[i] : from->text;
        if (to->part_count < PARTS_MOST) {
            to->parts[to->part_count++] = part;
        }
    }
}

/* A constant among binary32 numbers stands for its bits. */
static void read_as_float(graft_arena *arena, const graft_rule *rule, phrase *x)
{
    if (x->number) {
        graft_term term = {x->bits, GRAFT_TERM_CONST};
        x->text = graft_rule_print_term(arena, rule, &term, GRAFT_ATTR_FLOAT);
    }
}

/* Joins the two topmost phrases into `a`. */
static void join_phrases(graft_arena *arena, const graft_rule *rule, uint32_t code, phrase *a,
                         phrase *b)
{
    if (code >= GRAFT_CODE_FMIN) {
        read_as_float(arena, rule, a);
        read_as_float(arena, rule, b);
    }
    phrase *joined = GRAFT_NEW(arena, phrase, 1);
    if (code == GRAFT_CODE_AND) {
        add_parts(joined, a);
        add_parts(joined, b);
    }
    joined->text = joins[code].first ? graft_arena_printf(arena, "%s %s and %s", joins[code].word,
                                                          bracket(arena, a), bracket(arena, b))
                                     : graft_arena_printf(arena, "%s %s %s", bracket(arena, a),
                                                          joins[code].word, bracket(arena, b));
    *a = *joined;
}

/* The program at `at` as a phrase; NULL on a stack fault. */
static const phrase *program_phrase(graft_arena *arena, const graft_rule *rule, uint32_t at)
{
    phrase *stack = GRAFT_NEW(arena, phrase, DEPTH_MOST);
    graft_code_reader reader = graft_code_open(rule, at, DEPTH_MOST);
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        phrase *top = &stack[step.place];
        if (step.takes == 0) {
            *top = (phrase){.text = leaf_phrase(arena, rule, &step),
                            .whole = step.code <= GRAFT_CODE_RANK,
                            .number = step.code <= GRAFT_CODE_CONST32,
                            .bits = step.number};
        } else if (step.takes == 1) {
            *top = (phrase){.text = graft_arena_printf(arena, "it is not so that %s", top->text)};
        } else {
            join_phrases(arena, rule, step.code, &top[0], &top[1]);
        }
    }
    return reader.end == GRAFT_CODE_WHOLE ? &stack[0] : NULL;
}

const char *const *graft_rule_words_where(graft_arena *arena, const graft_rule *rule,
                                          uint32_t *count)
{
    phrase *parts = GRAFT_NEW(arena, phrase, 1);
    if (rule->condition != 255) {
        const phrase *whole = program_phrase(arena, rule, rule->condition);
        static const phrase fault = {.text = "never (its program has a stack fault)"};
        add_parts(parts, whole == NULL ? &fault : whole);
    }
    *count = parts->part_count;
    return parts->parts;
}

/* ------------------------------------------------------------------- steps */

static const char *attr_phrase(graft_arena *arena, const graft_rule *rule, const graft_term *term,
                               uint32_t kind)
{
    if (term->kind == GRAFT_TERM_SLOT) {
        return slot_phrase(arena, rule, (uint32_t)term->value);
    }
    if (term->kind == GRAFT_TERM_CODE) {
        const phrase *p = program_phrase(arena, rule, (uint32_t)term->value);
        return p == NULL ? "nothing (its program has a stack fault)" : p->text;
    }
    return graft_rule_print_term(arena, rule, term, kind);
}

/* "a" or "s1" (target: "t1"), with ".0" and ".1" for the outputs of an operator that has two. */
static const char *operand_phrase(graft_arena *arena, const graft_pattern *pattern, char stem,
                                  graft_operand x, const uint8_t *numbers)
{
    if (!GRAFT_OPERAND_IS_NODE(x)) {
        return graft_arena_printf(arena, "%c", 'a' + x);
    }
    uint32_t n = GRAFT_OPERAND_NODE_OF(x);
    if (graft_op(pattern->nodes[n].op)->output_count == 1) {
        return graft_arena_printf(arena, "%c%u", stem, numbers[n]);
    }
    return graft_arena_printf(arena, "%c%u.%u", stem, numbers[n], GRAFT_OPERAND_SLOT_OF(x));
}

/* Whether the slot of a source attribute is mentioned here for the first time: it may be anything.
 */
static bool is_free(graft_arena *arena, const graft_rule *rule, uint32_t node, uint32_t attr)
{
    const graft_pattern_node *n = &rule->source.nodes[node];
    const graft_term *term = &n->attrs[attr];
    if (term->kind != GRAFT_TERM_SLOT) {
        return false;
    }
    const char *own = graft_arena_printf(arena, "#%u.%s", graft_rule_print_number(rule, node),
                                         graft_op_attr(n->op, attr)->name);
    return strcmp(own, graft_rule_print_slot(arena, rule, (uint32_t)term->value)) == 0;
}

/* Axes and sizes past the rank are constant zeros at the end of the list: they say nothing. The
 * value that a fill begins with does. */
static uint32_t told_attrs(const graft_pattern_node *node)
{
    const uint32_t least = node->op == GRAFT_OP_fill ? 1 : 0;
    uint32_t count = graft_op(node->op)->attr_count;
    bool listed =
        node->op == GRAFT_OP_reshape || node->op == GRAFT_OP_fill || node->op == GRAFT_OP_transpose;
    while (listed && count > least && node->attrs[count - 1].kind == GRAFT_TERM_CONST &&
           node->attrs[count - 1].value == 0) {
        count--;
    }
    return count;
}

static void append_attrs(graft_buffer *out, const graft_rule *rule, bool is_source, uint32_t node)
{
    const graft_pattern *pattern = is_source ? &rule->source : &rule->target;
    const graft_pattern_node *n = &pattern->nodes[node];
    graft_arena *arena = out->arena;
    const char *separator = " with ";
    for (int free_ones = 0; free_ones < 2; free_ones++) {
        const char *word = "any ";
        for (uint32_t i = 0; i < told_attrs(n); i++) {
            const graft_attr_info *info = graft_op_attr(n->op, i);
            bool any = is_source && is_free(arena, rule, node, i);
            if (any != (free_ones == 1)) {
                continue;
            }
            if (any) {
                graft_buffer_printf(out, "%s%s%s", separator, word, info->name);
                word = "";
            } else {
                graft_buffer_printf(out, "%s%s = %s", separator, info->name,
                                    attr_phrase(arena, rule, &n->attrs[i], info->kind));
            }
            separator = ", ";
        }
    }
}

void graft_rule_words_steps(graft_buffer *out, const graft_rule *rule, bool is_source)
{
    const graft_pattern *pattern = is_source ? &rule->source : &rule->target;
    const char stem = is_source ? 's' : 't';
    uint8_t order[GRAFT_RULE_MAX_NODES] = {0};
    uint8_t numbers[GRAFT_RULE_MAX_NODES] = {0}; /* By node: its place in the order, from 1. */
    graft_pattern_order(pattern, order);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        numbers[order[k]] = (uint8_t)(k + 1);
    }
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        const graft_pattern_node *node = &pattern->nodes[order[k]];
        uint32_t number = is_source ? graft_rule_print_number(rule, order[k]) : 0;
        graft_buffer_printf(out, "    %c%u = %s", stem, k + 1, graft_op(node->op)->name);
        if (number != 0) {
            graft_buffer_printf(out, "#%u", number);
        }
        graft_buffer_printf(out, "(");
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            graft_buffer_printf(
                out, "%s%s", i > 0 ? ", " : "",
                operand_phrase(out->arena, pattern, stem, node->inputs[i], numbers));
        }
        graft_buffer_printf(out, ")");
        append_attrs(out, rule, is_source, order[k]);
        graft_buffer_printf(out, "\n");
    }
    graft_buffer_printf(out, "    gives ");
    for (uint32_t i = 0; i < rule->output_count; i++) {
        graft_buffer_printf(
            out, "%s%s", i > 0 ? ", " : "",
            operand_phrase(out->arena, pattern, stem, pattern->outputs[i], numbers));
    }
    graft_buffer_printf(out, "\n");
}

/* ----------------------------------------------------------------- picture */

/* Names and values of the attributes that are fixed or computed, each behind `before`. */
static const char *list_told(graft_arena *arena, const graft_rule *rule, bool is_source, uint32_t n,
                             const char *before)
{
    const graft_pattern_node *node = (is_source ? &rule->source : &rule->target)->nodes + n;
    graft_buffer out = {.arena = arena};
    graft_buffer_append(&out, "", 0);
    for (uint32_t i = 0; i < told_attrs(node); i++) {
        const graft_attr_info *info = graft_op_attr(node->op, i);
        if (!is_source || !is_free(arena, rule, n, i)) {
            graft_buffer_printf(&out, "%s%s = %s", before, info->name,
                                graft_rule_print_term(arena, rule, &node->attrs[i], info->kind));
        }
    }
    return out.data;
}

/* The text between quotes of a Graphviz string. */
static const char *quote(graft_arena *arena, const char *text)
{
    graft_buffer out = {.arena = arena};
    graft_buffer_append(&out, "", 0);
    for (; *text != '\0'; text++) {
        graft_buffer_printf(&out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    return out.data == NULL ? "" : out.data;
}

static void draw_operand(graft_buffer *out, char stem, graft_operand x)
{
    if (GRAFT_OPERAND_IS_NODE(x)) {
        graft_buffer_printf(out, "%c_n%u", stem, GRAFT_OPERAND_NODE_OF(x));
    } else {
        graft_buffer_printf(out, "%c_%c", stem, 'a' + x);
    }
}

/* An edge; `tail` names the output where the producer has two. */
static void draw_edge(graft_buffer *out, const graft_pattern *pattern, char stem, graft_operand x,
                      const char *to, uint32_t port)
{
    graft_buffer_printf(out, "    ");
    draw_operand(out, stem, x);
    graft_buffer_printf(out, " -> %s [headlabel=\"%u\"", to, port);
    if (GRAFT_OPERAND_IS_NODE(x) &&
        graft_op(pattern->nodes[GRAFT_OPERAND_NODE_OF(x)].op)->output_count > 1) {
        graft_buffer_printf(out, ", taillabel=\"%u\"", GRAFT_OPERAND_SLOT_OF(x));
    }
    graft_buffer_printf(out, "];\n");
}

static void draw_node(graft_buffer *out, const graft_rule *rule, bool is_source, uint32_t n)
{
    const graft_pattern *pattern = is_source ? &rule->source : &rule->target;
    const graft_pattern_node *node = &pattern->nodes[n];
    const char stem = is_source ? 's' : 't';
    uint32_t number = is_source ? graft_rule_print_number(rule, n) : 0;
    graft_buffer_printf(out, "    %c_n%u [shape=box, label=\"%s", stem, n,
                        graft_op(node->op)->name);
    if (number != 0) {
        graft_buffer_printf(out, "#%u", number);
    }
    graft_buffer_printf(out, "%s\"];\n", list_told(out->arena, rule, is_source, n, "\\n"));
    const char *name = graft_arena_printf(out->arena, "%c_n%u", stem, n);
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        draw_edge(out, pattern, stem, node->inputs[i], name, i);
    }
}

static void draw_side(graft_buffer *out, const graft_rule *rule, bool is_source)
{
    const graft_pattern *pattern = is_source ? &rule->source : &rule->target;
    const char stem = is_source ? 's' : 't';
    graft_buffer_printf(out, "  subgraph cluster_%s {\n    label=\"%s\";\n",
                        is_source ? "source" : "target", is_source ? "source" : "target");
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(out, "    %c_%c [shape=ellipse, label=\"%c\"];\n", stem, 'a' + (int)v,
                            'a' + (int)v);
    }
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        draw_node(out, rule, is_source, n);
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        const char *name = graft_arena_printf(out->arena, "%c_out%u", stem, i);
        graft_buffer_printf(out, "    %s [shape=ellipse, style=bold, label=\"output %u\"];\n", name,
                            i);
        draw_edge(out, pattern, stem, pattern->outputs[i], name, 0);
    }
    graft_buffer_printf(out, "  }\n");
}

void graft_rule_picture(graft_buffer *out, const graft_rule *rule, const char *name)
{
    const char *where = graft_rule_print(out->arena, rule).where;
    graft_buffer_printf(out, "digraph rule {\n  rankdir=TB;\n  labelloc=t;\n  label=\"%s",
                        quote(out->arena, name));
    if (where[0] != '\0') {
        graft_buffer_printf(out, "\\nwhere %s", quote(out->arena, where));
    }
    graft_buffer_printf(out, "\";\n");
    draw_side(out, rule, true);
    draw_side(out, rule, false);
    graft_buffer_printf(out, "}\n");
}

/* ------------------------------------------------------------------ sketch */

/* Appends an operand to a list of JSON strings. */
static void sketch_operand(graft_buffer *list, graft_operand x, const uint8_t *places)
{
    const char *comma = list->size > 0 ? "," : "";
    if (!GRAFT_OPERAND_IS_NODE(x)) {
        graft_buffer_printf(list, "%s\"%c\"", comma, 'a' + x);
        return;
    }
    graft_buffer_printf(list, "%s\"%u%s\"", comma, places[GRAFT_OPERAND_NODE_OF(x)],
                        GRAFT_OPERAND_SLOT_OF(x) == 1 ? ".1" : "");
}

static const char *sketch_side(graft_arena *arena, const graft_rule *rule, bool is_source)
{
    const graft_pattern *pattern = is_source ? &rule->source : &rule->target;
    uint8_t order[GRAFT_RULE_MAX_NODES] = {0};
    uint8_t places[GRAFT_RULE_MAX_NODES] = {0};
    graft_buffer nodes = {.arena = arena};
    graft_buffer outputs = {.arena = arena};
    graft_json side;
    graft_pattern_order(pattern, order);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        places[order[k]] = (uint8_t)k;
    }
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        const graft_pattern_node *node = &pattern->nodes[order[k]];
        const uint32_t number = is_source ? graft_rule_print_number(rule, order[k]) : 0;
        const char *name = graft_op(node->op)->name;
        graft_buffer inputs = {.arena = arena};
        graft_json json;
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            sketch_operand(&inputs, node->inputs[i], places);
        }
        graft_json_begin(&json, arena);
        graft_json_string(&json, "op",
                          number == 0 ? name : graft_arena_printf(arena, "%s#%u", name, number));
        graft_json_string(&json, "with", list_told(arena, rule, is_source, order[k], "\n"));
        graft_json_list(&json, "in", &inputs);
        graft_json_append(&json, &nodes);
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        sketch_operand(&outputs, pattern->outputs[i], places);
    }
    graft_json_begin(&side, arena);
    graft_json_list(&side, "nodes", &nodes);
    graft_json_list(&side, "out", &outputs);
    return graft_json_close(&side);
}

void graft_rule_sketch(graft_json *json, graft_arena *arena, const graft_rule *rule)
{
    graft_json_raw(json, "source", sketch_side(arena, rule, true));
    graft_json_raw(json, "target", sketch_side(arena, rule, false));
}
