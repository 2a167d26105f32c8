/* pack.h - validity of a rule and its packed bytes.
 *
 *      variables | (outputs - 1) << 4,  source nodes | target nodes << 4,  slots,  condition,  code
 *      bytes,  source pattern,  target pattern,  code
 *
 * A pattern is its nodes (operator, operands, attributes) and then its outputs. An attribute is one
 * byte: 0..127 that constant, 128 + s slot s, GRAFT_PACK_CODE and an offset, GRAFT_PACK_CONST and four bytes,
 * little-endian.
 *
 * A header has them shorter, by pairs (graft_policy.rule_pairs): a byte is what it stands for, and what
 * that stands for is read before what follows. */
#ifndef GRAFT_ENGINE_PACK_H
#define GRAFT_ENGINE_PACK_H

#define GRAFT_PACK_SLOT  0x80u
#define GRAFT_PACK_CODE  0xf0u
#define GRAFT_PACK_CONST 0xf1u

/* Whether packed rules are taken to be as they were written: then reading one cannot fail. */
#ifdef GRAFT_WITHOUT_CHECKS
#define GRAFT_PACK_TRUSTED true
#else
#define GRAFT_PACK_TRUSTED false
#endif

/* ------------------------------------------------------------------ check */

static const char *graft_check_operand(const graft_rule *rule, const graft_pattern *pattern,
                                       graft_operand operand)
{
    if ((operand & 0x80u) != 0) {
        return GRAFT_FAULT("an operand has an unknown form");
    }
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        return operand < rule->var_count
                   ? NULL
                   : GRAFT_FAULT("an operand names a variable that does not exist");
    }
    uint32_t node = GRAFT_OPERAND_NODE_OF(operand);
    if (node >= pattern->node_count) {
        return GRAFT_FAULT("an operand names a pattern node that does not exist");
    }
    const graft_op_row *info = graft_find_op(pattern->nodes[node].op);
    return info != NULL && GRAFT_OPERAND_SLOT_OF(operand) < info->output_count
               ? NULL
               : GRAFT_FAULT("an operand names an output that its node does not have");
}

/* Whether `offset` is the start of a program: 0, or just behind an END. */
static bool graft_starts_program(const graft_rule *rule, int64_t offset)
{
    uint32_t at = 0;
    bool start = true;
    while (at < rule->code_bytes) {
        if (start && (int64_t)at == offset) {
            return true;
        }
        start = rule->code[at] == GRAFT_CODE_END;
        at += 1u + graft_code_operand_bytes(rule->code[at]);
    }
    return false;
}

static const char *graft_check_term(const graft_rule *rule, const graft_term *term, bool is_source)
{
    switch (term->kind) {
    case GRAFT_TERM_CONST:
        return NULL;
    case GRAFT_TERM_SLOT:
        return term->value >= 0 && term->value < rule->slot_count
                   ? NULL
                   : GRAFT_FAULT("an attribute names a slot that does not exist");
    case GRAFT_TERM_CODE:
        return !is_source && graft_starts_program(rule, term->value)
                   ? NULL
                   : GRAFT_FAULT("an attribute names byte code that is not there");
    default:
        return GRAFT_FAULT("an attribute has an unknown kind");
    }
}

static const char *graft_check_pattern_node(const graft_rule *rule, const graft_pattern *pattern,
                                            uint32_t n, bool is_source)
{
    const graft_pattern_node *node = &pattern->nodes[n];
    const graft_op_row *info = graft_find_op(node->op);
    if (info == NULL) {
        return GRAFT_FAULT("a pattern node has an unknown operator");
    }
    for (uint32_t i = 0; i < info->attr_count; i++) {
        const char *fault = graft_check_term(rule, &node->attrs[i], is_source);
        if (fault != NULL) {
            return fault;
        }
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const char *fault = graft_check_operand(rule, pattern, node->inputs[i]);
        if (fault != NULL) {
            return fault;
        }
        if (!is_source && GRAFT_OPERAND_IS_NODE(node->inputs[i]) &&
            GRAFT_OPERAND_NODE_OF(node->inputs[i]) >= n) {
            return GRAFT_FAULT("a target node reads a later one");
        }
    }
    return NULL;
}

static const char *graft_check_pattern(const graft_rule *rule, const graft_pattern *pattern,
                                       bool is_source)
{
    if (pattern->node_count > GRAFT_RULE_MAX_NODES) {
        return GRAFT_FAULT("a pattern has too many nodes");
    }
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const char *fault = graft_check_pattern_node(rule, pattern, n, is_source);
        if (fault != NULL) {
            return fault;
        }
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        const char *fault = graft_check_operand(rule, pattern, pattern->outputs[i]);
        if (fault != NULL) {
            return fault;
        }
    }
    return NULL;
}

/* Whether source node n is reached by an earlier node or produces an output. */
static bool graft_source_node_reached(const graft_rule *rule, uint32_t n)
{
    for (uint32_t i = 0; i < rule->output_count; i++) {
        if (GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]) == n) {
            return true;
        }
    }
    for (uint32_t m = 0; m < n; m++) {
        const graft_pattern_node *node = &rule->source.nodes[m];
        for (uint32_t i = 0; i < graft_op_rows[node->op].input_count; i++) {
            if (GRAFT_OPERAND_IS_NODE(node->inputs[i]) &&
                GRAFT_OPERAND_NODE_OF(node->inputs[i]) == n) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the source has no cycle: nodes are ticked off once all they read is. */
static bool graft_source_is_acyclic(const graft_rule *rule)
{
    uint32_t done = 0;
    for (uint32_t round = 0; round < rule->source.node_count; round++) {
        for (uint32_t n = 0; n < rule->source.node_count; n++) {
            const graft_pattern_node *node = &rule->source.nodes[n];
            bool ready = true;
            for (uint32_t i = 0; i < graft_op_rows[node->op].input_count; i++) {
                ready = ready && (!GRAFT_OPERAND_IS_NODE(node->inputs[i]) ||
                                  (done >> GRAFT_OPERAND_NODE_OF(node->inputs[i]) & 1u) != 0);
            }
            done |= ready ? 1u << n : 0u;
        }
    }
    return done == (1u << rule->source.node_count) - 1u;
}

static const char *graft_check_source(const graft_rule *rule)
{
    uint32_t vars = 0;
    uint64_t slots = 0;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        const graft_op_row *info = &graft_op_rows[node->op];
        if (!graft_source_node_reached(rule, n)) {
            return GRAFT_FAULT("a source node is not reached from the outputs in order");
        }
        for (uint32_t i = 0; i < info->input_count; i++) {
            vars |= GRAFT_OPERAND_IS_NODE(node->inputs[i]) ? 0u : 1u << node->inputs[i];
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            bool slot = node->attrs[i].kind == GRAFT_TERM_SLOT;
            slots |= slot ? UINT64_C(1) << node->attrs[i].value : 0u;
        }
    }
    if (vars != (1u << rule->var_count) - 1u) {
        return GRAFT_FAULT("a variable does not occur in the source");
    }
    if (slots != (UINT64_C(1) << rule->slot_count) - 1u) {
        return GRAFT_FAULT("a slot does not occur in the source");
    }
    return graft_source_is_acyclic(rule) ? NULL : GRAFT_FAULT("the source has a cycle");
}

static const char *graft_check_outputs(const graft_rule *rule)
{
    if (rule->output_count == 0 || rule->output_count > GRAFT_RULE_OUTPUTS) {
        return GRAFT_FAULT("a rule has no outputs, or too many");
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        if (!GRAFT_OPERAND_IS_NODE(rule->source.outputs[i])) {
            return GRAFT_FAULT("a source output is not produced by a node");
        }
        for (uint32_t j = 0; j < i; j++) {
            if (rule->source.outputs[i] == rule->source.outputs[j]) {
                return GRAFT_FAULT("a source output is named twice");
            }
        }
    }
    return GRAFT_OPERAND_NODE_OF(rule->source.outputs[0]) == 0
               ? NULL
               : GRAFT_FAULT("output 0 is not produced by source node 0");
}

static const char *graft_check_code(const graft_rule *rule)
{
    uint32_t at = 0;
    uint32_t last = GRAFT_CODE_END;
    while (at < rule->code_bytes) {
        last = rule->code[at];
        if (last > 31 || (GRAFT_RULE_CODES >> last & 1u) == 0 ||
            at + 1u + graft_code_operand_bytes(last) > rule->code_bytes) {
            return GRAFT_FAULT("byte code is unknown or cut off");
        }
        const uint8_t *operand = &rule->code[at + 1u];
        bool bad = false;
        switch (last) {
        case GRAFT_CODE_SLOT:
            bad = operand[0] >= rule->slot_count;
            break;
        case GRAFT_CODE_DIM:
        case GRAFT_CODE_RANK:
        case GRAFT_CODE_IS_CONST:
            bad = operand[0] >= rule->var_count;
            break;
        case GRAFT_CODE_SAME:
            bad = operand[0] >= rule->var_count || operand[1] >= rule->var_count;
            break;
        default:
            break;
        }
        if (bad) {
            return GRAFT_FAULT("byte code names a slot or variable that does not exist");
        }
        at += 1u + graft_code_operand_bytes(last);
    }
    if (last != GRAFT_CODE_END) {
        return GRAFT_FAULT("byte code runs off its end");
    }
    return rule->condition == 255 || graft_starts_program(rule, rule->condition)
               ? NULL
               : GRAFT_FAULT("the precondition names byte code that is not there");
}

const char *graft_rule_check(const graft_rule *rule)
{
    if (rule->var_count > GRAFT_RULE_MAX_VARS || rule->slot_count > GRAFT_RULE_MAX_SLOTS ||
        rule->source.node_count == 0) {
        return graft_tell_fault(
            GRAFT_FAULT("a rule has too many variables or slots, or an empty source"));
    }
    const char *fault = graft_check_code(rule);
    if (fault == NULL) {
        fault = graft_check_outputs(rule);
    }
    if (fault == NULL) {
        fault = graft_check_pattern(rule, &rule->source, true);
    }
    if (fault == NULL) {
        fault = graft_check_pattern(rule, &rule->target, false);
    }
    return graft_tell_fault(fault == NULL ? graft_check_source(rule) : fault);
}

/* ----------------------------------------------------------------- packing */

typedef struct graft_writer {
    uint8_t *bytes;
    size_t capacity;
    size_t size; /* Counts on past the capacity. */
} graft_writer;

static void graft_write_byte(graft_writer *writer, uint32_t byte)
{
    if (writer->size < writer->capacity) {
        writer->bytes[writer->size] = (uint8_t)(byte & 0xffu);
    }
    writer->size++;
}

static void graft_write_term(graft_writer *writer, const graft_term *term)
{
    uint32_t bits = (uint32_t)term->value;
    if (term->kind == GRAFT_TERM_SLOT) {
        graft_write_byte(writer, GRAFT_PACK_SLOT | bits);
    } else if (term->kind == GRAFT_TERM_CODE) {
        graft_write_byte(writer, GRAFT_PACK_CODE);
        graft_write_byte(writer, bits);
    } else if (bits < GRAFT_PACK_SLOT) {
        graft_write_byte(writer, bits);
    } else {
        graft_write_byte(writer, GRAFT_PACK_CONST);
        for (uint32_t shift = 0; shift < 32; shift += 8) {
            graft_write_byte(writer, bits >> shift);
        }
    }
}

static void graft_write_pattern(graft_writer *writer, const graft_rule *rule,
                                const graft_pattern *pattern)
{
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        const graft_op_row *info = &graft_op_rows[node->op];
        graft_write_byte(writer, node->op);
        for (uint32_t i = 0; i < info->input_count; i++) {
            graft_write_byte(writer, node->inputs[i]);
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            graft_write_term(writer, &node->attrs[i]);
        }
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        graft_write_byte(writer, pattern->outputs[i]);
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the writer. */
size_t graft_rule_pack(const graft_rule *rule, uint8_t *bytes, size_t capacity)
{
    if (graft_rule_check(rule) != NULL) {
        return 0;
    }
    graft_writer writer = {bytes, capacity, 0};
    graft_write_byte(&writer, (uint32_t)rule->var_count | ((uint32_t)rule->output_count - 1u) << 4);
    graft_write_byte(&writer,
                     (uint32_t)rule->source.node_count | (uint32_t)rule->target.node_count << 4);
    graft_write_byte(&writer, rule->slot_count);
    graft_write_byte(&writer, rule->condition);
    graft_write_byte(&writer, rule->code_bytes);
    graft_write_pattern(&writer, rule, &rule->source);
    graft_write_pattern(&writer, rule, &rule->target);
    for (uint32_t i = 0; i < rule->code_bytes; i++) {
        graft_write_byte(&writer, rule->code[i]);
    }
    return writer.size <= capacity ? writer.size : 0;
}

typedef struct graft_reader {
    const uint8_t *pairs; /* NULL: every byte stands for itself. */
    const uint8_t *at;
    const uint8_t *end;
    uint8_t pending[GRAFT_PAIR_DEPTH]; /* Bytes to be read before others, the last one first. */
    uint32_t pending_count;
    bool failed;
} graft_reader;

static graft_reader graft_open_reader(const uint8_t *pairs, const uint8_t *bytes, size_t capacity)
{
    graft_reader reader;
    reader.pairs = pairs;
    reader.at = bytes;
    reader.end = GRAFT_PACK_TRUSTED ? NULL : bytes + capacity;
    reader.pending_count = 0;
    reader.failed = false;
    return reader;
}

static uint8_t graft_read_byte(graft_reader *reader)
{
    uint32_t byte = 0;
    if (reader->pending_count > 0) {
        byte = reader->pending[--reader->pending_count];
    } else if (GRAFT_PACK_TRUSTED || reader->at < reader->end) {
        byte = *reader->at++;
    } else {
        reader->failed = true;
    }
    while (reader->pairs != NULL && reader->pairs[2u * byte] != byte) {
        const uint8_t *pair = &reader->pairs[2u * byte];
        if (!GRAFT_PACK_TRUSTED && reader->pending_count == GRAFT_PAIR_DEPTH) {
            reader->failed = true;
            return 0;
        }
        reader->pending[reader->pending_count++] = pair[1];
        byte = pair[0];
    }
    return (uint8_t)byte;
}

static graft_term graft_read_term(graft_reader *reader)
{
    graft_term term = {0, GRAFT_TERM_CONST};
    uint8_t first = graft_read_byte(reader);
    if (first == GRAFT_PACK_CONST) {
        uint8_t bytes[4];
        for (uint32_t i = 0; i < 4; i++) {
            bytes[i] = graft_read_byte(reader);
        }
        term.value = graft_read_signed32(bytes);
    } else if (first == GRAFT_PACK_CODE) {
        term.kind = GRAFT_TERM_CODE;
        term.value = graft_read_byte(reader);
    } else if (first >= GRAFT_PACK_SLOT) {
        term.kind = GRAFT_TERM_SLOT;
        term.value = (int32_t)(first & 0x7fu);
    } else {
        term.value = first;
    }
    return term;
}

enum { GRAFT_OP_WORDS = (GRAFT_OP_COUNT + 31) / 32 };

static bool graft_has_operator(const uint32_t *operators, uint32_t op)
{
    return (operators[op / 32] >> op % 32 & 1u) != 0;
}

/* Fails when its bytes make no sense, and at the first operator that is not in `operators`, a bit for each;
 * NULL: all are. */
static void graft_read_pattern(graft_reader *reader, const graft_rule *rule, graft_pattern *pattern,
                               const uint32_t *operators)
{
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        graft_pattern_node *node = &pattern->nodes[n];
        const uint32_t op = graft_read_byte(reader);
        const graft_op_row *info = GRAFT_PACK_TRUSTED ? &graft_op_rows[op] : graft_find_op(op);
        if ((!GRAFT_PACK_TRUSTED && info == NULL) ||
            (operators != NULL && !graft_has_operator(operators, op))) {
            reader->failed = true;
            return;
        }
        node->op = (uint8_t)op;
        for (uint32_t i = 0; i < info->input_count && i < GRAFT_MAX_INPUTS; i++) {
            node->inputs[i] = graft_read_byte(reader);
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            node->attrs[i] = graft_read_term(reader);
        }
    }
    for (uint32_t i = 0; i < graft_rule_outputs(rule) && i < GRAFT_RULE_MAX_OUTPUTS; i++) {
        pattern->outputs[i] = graft_read_byte(reader);
    }
}

/* Reads a rule as far as its bytes make sense and its source has no operator but `operators`; false when
 * that is not to the end. What the rule does not use is left as it was. */
static bool graft_read_rule(graft_rule *rule, graft_reader *reader, const uint32_t *operators)
{
    const uint8_t *head = reader->at;
    if (!GRAFT_PACK_TRUSTED && reader->end - head < (ptrdiff_t)GRAFT_RULE_HEAD) {
        return false;
    }
    const uint8_t first = head[0];
    const uint8_t counts = head[1];
    rule->var_count = first & 15u;
    rule->output_count = (uint8_t)((first >> 4) + 1u);
    rule->source.node_count = counts & 15u;
    rule->target.node_count = counts >> 4;
    rule->slot_count = head[2];
    rule->condition = head[3];
    rule->code_bytes = head[4];
    if (!GRAFT_PACK_TRUSTED && (rule->source.node_count > GRAFT_RULE_MAX_NODES ||
                                rule->target.node_count > GRAFT_RULE_MAX_NODES ||
                                rule->output_count > GRAFT_RULE_MAX_OUTPUTS)) {
        return false;
    }
    reader->at += GRAFT_RULE_HEAD - 1u;
    graft_read_pattern(reader, rule, &rule->source, operators);
    if (reader->failed) {
        return false;
    }
    graft_read_pattern(reader, rule, &rule->target, NULL);
    for (uint32_t i = 0; i < rule->code_bytes; i++) {
        rule->code[i] = graft_read_byte(reader);
    }
    return GRAFT_PACK_TRUSTED || !reader->failed;
}

/* The operator of a packed rule's anchor, source node 0. */
static uint8_t graft_packed_anchor(const uint8_t *bytes) { return bytes[5]; }

static uint32_t graft_packed_source_nodes(const uint8_t *bytes) { return bytes[1] & 15u; }

/* Reads a whole rule and checks it; *size are the bytes that it took. */
static graft_status graft_read_valid_rule(graft_rule *rule, const uint8_t *pairs,
                                          const uint8_t *bytes, size_t capacity, size_t *size)
{
    graft_reader reader = graft_open_reader(pairs, bytes, capacity);
    graft_zero_bytes(rule, sizeof *rule);
    if (!graft_read_rule(rule, &reader, NULL) ||
        rule->source.nodes[0].op != graft_packed_anchor(bytes) || graft_rule_check(rule) != NULL) {
        return GRAFT_BAD_INPUT;
    }
    *size = (size_t)(reader.at - bytes);
    return GRAFT_OK;
}

graft_status graft_rule_unpack(graft_rule *rule, const uint8_t *bytes, size_t capacity,
                               size_t *size)
{
    return graft_read_valid_rule(rule, NULL, bytes, capacity, size);
}

#endif
