/* rulefile.c - between graft_ruleset and the protobuf messages of rules.proto.
 *
 * Reading goes through graft_rule_check and recomputes each id, so that a rule which was damaged,
 * or edited without a proof, does not pass for a proved one. */
#include "graph/rule/rulefile.h"

#include "graph/base/file.h"
#include "graph/base/wire.h"
#include "graph/names.h"
#include "graph/rule/pattern.h"
#include "graph/rule/rules.pb-c.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Version 1 does not say where it ends. */
enum { RULEFILE_VERSION = 2, PACKED_BYTES_MOST = 4096, RULE_COUNT_MOST = 1 << 20 };

typedef Graft__Rules__RuleSet set_message;
typedef Graft__Rules__Rule rule_message;
typedef Graft__Rules__Pattern pattern_message;
typedef Graft__Rules__Node node_message;
typedef Graft__Rules__Term term_message;
typedef Graft__Rules__Certificate certificate_message;

const char *graft_proof_name(uint32_t proof)
{
    static const char *const names[] = {"none", "within-bounds", "unknown", "proved"};
    return proof < sizeof names / sizeof names[0] ? names[proof] : "unknown";
}

const char *graft_numeric_name(uint32_t numeric)
{
    static const char *const names[] = {"none", "exact", "reassociating", "exact-integer"};
    return numeric < sizeof names / sizeof names[0] ? names[numeric] : "unknown";
}

bool graft_numeric_is_exact(uint32_t numeric)
{
    return numeric == GRAFT_NUMERIC_EXACT || numeric == GRAFT_NUMERIC_EXACT_INTEGER;
}

bool graft_pattern_has(const graft_pattern *pattern, uint32_t op)
{
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        if (pattern->nodes[n].op == op) {
            return true;
        }
    }
    return false;
}

bool graft_rule_is_always(const graft_rule *rule)
{
    bool always = rule->target.node_count < rule->source.node_count;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        uint32_t op = rule->target.nodes[n].op;
        const graft_op_info *info = graft_op(op);
        always = always && info != NULL && (info->flags & GRAFT_FLAG_MOVES) != 0 &&
                 graft_pattern_has(&rule->source, op);
    }
    return always;
}

const graft_rule_entry *graft_ruleset_find(const graft_ruleset *set, uint64_t id)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->entries[i].id == id) {
            return &set->entries[i];
        }
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

const uint64_t *graft_ruleset_exact(const graft_ruleset *set, graft_arena *arena, uint32_t *count)
{
    uint64_t *ids = GRAFT_NEW(arena, uint64_t, set->count);
    *count = 0;
    for (uint32_t r = 0; r < set->count; r++) {
        if (graft_numeric_is_exact(set->entries[r].numeric)) {
            ids[(*count)++] = set->entries[r].id;
        }
    }
    qsort(ids, *count, sizeof ids[0], compare_ids);
    return ids;
}

uint64_t graft_rule_id(const graft_rule *rule)
{
    uint8_t bytes[PACKED_BYTES_MOST];
    return XXH3_64bits(bytes, graft_rule_pack(rule, bytes, sizeof bytes));
}

int graft_rule_entry_compare(const void *a, const void *b)
{
    const graft_rule_entry *x = a;
    const graft_rule_entry *y = b;
    int order = strcmp(x->family, y->family);
    order = order != 0 ? order : strcmp(x->name, y->name);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* ---------------------------------------------------------------- reading */

/* What is being read, for messages. */
typedef struct {
    graft_env *env;
    graft_arena *arena;
    const char *file;
    size_t index; /* Of the rule. */
    const char *name;
} reader;

static graft_status read_fail(const reader *in, const char *what)
{
    return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: rule %zu (%s): %s", in->file, in->index,
                      in->name, what);
}

static graft_status read_node(const reader *in, const node_message *from, graft_pattern_node *to)
{
    const graft_op_info *info = graft_op(from->op);
    GRAFT_RETURN_IF(info == NULL, read_fail(in, "an unknown operator"));
    GRAFT_RETURN_IF(from->n_inputs != info->input_count || from->n_attrs != info->attr_count,
                    read_fail(in, "a node's inputs or attributes are not those of its operator"));
    to->op = (uint8_t)from->op;
    for (size_t i = 0; i < from->n_inputs; i++) {
        GRAFT_RETURN_IF(from->inputs[i] > UINT8_MAX, read_fail(in, "an operand is out of range"));
        to->inputs[i] = (graft_operand)from->inputs[i];
    }
    for (size_t i = 0; i < from->n_attrs; i++) {
        GRAFT_RETURN_IF((uint32_t)from->attrs[i]->kind > GRAFT_TERM_CODE,
                        read_fail(in, "an attribute has an unknown kind"));
        to->attrs[i] = (graft_term){from->attrs[i]->value, (uint8_t)from->attrs[i]->kind};
    }
    return GRAFT_OK;
}

static graft_status read_pattern(const reader *in, const pattern_message *from, graft_pattern *to,
                                 uint32_t output_count)
{
    if (from == NULL || from->n_nodes > GRAFT_RULE_MAX_NODES || from->n_outputs != output_count) {
        return read_fail(in, "a pattern is missing, too large, or has another number of outputs");
    }
    to->node_count = (uint8_t)from->n_nodes;
    for (size_t n = 0; n < from->n_nodes; n++) {
        GRAFT_PASS(read_node(in, from->nodes[n], &to->nodes[n]));
    }
    for (uint32_t i = 0; i < output_count; i++) {
        GRAFT_RETURN_IF(from->outputs[i] > UINT8_MAX, read_fail(in, "an output is out of range"));
        to->outputs[i] = (graft_operand)from->outputs[i];
    }
    return GRAFT_OK;
}

static graft_status read_rule(const reader *in, const rule_message *from, graft_rule *rule)
{
    GRAFT_RETURN_IF(from->vars > GRAFT_RULE_MAX_VARS || from->slots > GRAFT_RULE_MAX_SLOTS ||
                        from->code.len > GRAFT_RULE_MAX_CODE || from->condition > UINT8_MAX ||
                        from->source == NULL || from->source->n_outputs > GRAFT_RULE_MAX_OUTPUTS,
                    read_fail(in, "variables, slots, code or outputs are out of range"));
    rule->var_count = (uint8_t)from->vars;
    rule->slot_count = (uint8_t)from->slots;
    rule->output_count = (uint8_t)from->source->n_outputs;
    rule->condition = (uint8_t)from->condition;
    rule->code_bytes = (uint8_t)from->code.len;
    if (from->code.len > 0) {
        memcpy(rule->code, from->code.data, from->code.len);
    }
    GRAFT_PASS(read_pattern(in, from->source, &rule->source, rule->output_count));
    GRAFT_PASS(read_pattern(in, from->target, &rule->target, rule->output_count));
    const char *fault = graft_rule_check(rule);
    GRAFT_RETURN_IF(fault != NULL, read_fail(in, fault));
    if (graft_rule_id(rule) != from->id) {
        return read_fail(in, "its id is not that of its content: damaged, or changed after proof");
    }
    return GRAFT_OK;
}

enum { ROUNDING_NUMBERS = 1 + 3 * GRAFT_ROUNDING_FORMATS * GRAFT_ROUNDING_SIDES };

static bool read_rounding(const certificate_message *from, graft_rounding *to)
{
    if (from->n_rounding == 0) {
        return true;
    }
    if (from->n_rounding != ROUNDING_NUMBERS) {
        return false;
    }
    const uint32_t *at = from->rounding;
    to->elements = *at++;
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++, at += 3) {
            to->sides[f][s] = (graft_rounding_side){at[0], at[1], at[2]};
        }
    }
    return true;
}

static void write_rounding(graft_arena *arena, const graft_rounding *from, certificate_message *to)
{
    if (from->elements == 0) {
        return;
    }
    uint32_t *at = GRAFT_NEW(arena, uint32_t, ROUNDING_NUMBERS);
    to->rounding = at;
    to->n_rounding = ROUNDING_NUMBERS;
    *at++ = from->elements;
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++) {
            *at++ = from->sides[f][s].median;
            *at++ = from->sides[f][s].most;
            *at++ = from->sides[f][s].overflows;
        }
    }
}

/* Whether what else a certificate says agrees with its words: another word is one bit away. */
static bool is_of_one_piece(const certificate_message *from)
{
    const bool proved = from->proof == GRAFT__RULES__PROOF__UNBOUNDED;
    const bool measured = from->numeric == GRAFT__RULES__NUMERIC__REASSOCIATING;
    return proved == (from->cases > 0) && (!proved || from->reason[0] == '\0') &&
           (measured || from->n_rounding == 0);
}

static graft_status read_certificate(const reader *in, const certificate_message *from,
                                     graft_rule_entry *entry)
{
    if (from == NULL || from->proof < 1 || (uint32_t)from->proof > GRAFT_PROOF_UNBOUNDED ||
        from->numeric < 1 || (uint32_t)from->numeric > GRAFT_NUMERIC_EXACT_INTEGER) {
        return read_fail(in, "no certificate, or an unknown proof level or numeric class");
    }
    GRAFT_RETURN_IF(!is_of_one_piece(from),
                    read_fail(in, "its certificate contradicts itself: damaged, or changed"));
    entry->proof =
        from->proof == GRAFT__RULES__PROOF__UNBOUNDED ? GRAFT_PROOF_UNBOUNDED : GRAFT_PROOF_BOUNDED;
    entry->numeric = (uint8_t)from->numeric;
    entry->complete = from->complete != 0;
    entry->points = from->points;
    entry->cover = from->cover;
    entry->resource_count = from->resource_count;
    GRAFT_RETURN_IF(!read_rounding(from, &entry->rounding),
                    read_fail(in, "its errors of rounding are cut off"));
    entry->cases = from->cases;
    entry->reason = graft_arena_strdup(in->arena, from->reason);
    entry->cover_points = GRAFT_COPY(in->arena, from->cover_points.data, from->cover_points.len);
    entry->cover_bytes = from->cover_points.len;
    const char **axioms = GRAFT_NEW(in->arena, const char *, from->n_axioms);
    for (size_t i = 0; i < from->n_axioms; i++) {
        axioms[i] = graft_arena_strdup(in->arena, from->axioms[i]);
    }
    entry->axioms = axioms;
    entry->axiom_count = (uint32_t)from->n_axioms;
    return GRAFT_OK;
}

static graft_status read_entry(const reader *in, const rule_message *from, graft_rule_entry *entry)
{
    GRAFT_RETURN_IF(from->name[0] == '\0', read_fail(in, "it has no name"));
    GRAFT_PASS(read_rule(in, from, &entry->rule));
    GRAFT_PASS(read_certificate(in, from->certificate, entry));
    entry->id = from->id;
    entry->gain = from->gain;
    entry->name = graft_arena_strdup(in->arena, from->name);
    entry->family = graft_arena_strdup(in->arena, from->family);
    return GRAFT_OK;
}

static graft_status check_unique(const reader *in, const graft_ruleset *set)
{
    GRAFT_SCOPED(in->env->scratch);
    graft_names *seen[2] = {graft_names_new(in->env->scratch), graft_names_new(in->env->scratch)};
    for (uint32_t i = 0; i < set->count; i++) {
        const char *const keys[2] = {
            graft_arena_printf(in->env->scratch, "%" PRIx64, set->entries[i].id),
            set->entries[i].name};
        for (int k = 0; k < 2; k++) {
            if (!graft_names_add(seen[k], keys[k], i)) {
                return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: rule %u (%s): %s occurs twice",
                                  in->file, i, keys[1], k == 0 ? "its content" : "its name");
            }
        }
    }
    return GRAFT_OK;
}

static graft_status read_set(graft_env *env, graft_arena *arena, const char *name,
                             const set_message *message, graft_ruleset *set)
{
    reader in = {env, arena, name, 0, ""};
    graft_ruleset result = {0};
    if (message->version < 1 || message->version > RULEFILE_VERSION) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: rule file version %u, this program reads %d",
                          name, message->version, RULEFILE_VERSION);
    }
    GRAFT_RETURN_IF(
        message->version > 1 && !message->whole,
        GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: cut off behind %zu rules", name, message->n_rules));
    if (message->n_rules > RULE_COUNT_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: more than %d rules", name, RULE_COUNT_MOST);
    }
    result.solver = graft_arena_strdup(arena, message->solver);
    result.count = (uint32_t)message->n_rules;
    result.entries = GRAFT_NEW(arena, graft_rule_entry, message->n_rules);
    for (size_t i = 0; i < message->n_rules; i++) {
        in.index = i;
        in.name = message->rules[i]->name;
        GRAFT_PASS(read_entry(&in, message->rules[i], &result.entries[i]));
    }
    GRAFT_PASS(check_unique(&in, &result));
    *set = result;
    return GRAFT_OK;
}

static graft_status parse_set(graft_env *env, graft_arena *arena, const char *name,
                              const uint8_t *data, size_t size, graft_ruleset *set)
{
    set_message *message = graft__rules__rule_set__unpack(NULL, size, data);
    GRAFT_RETURN_IF(message == NULL,
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: not a rule file, or cut off", name));
    graft_status status = read_set(env, arena, name, message, set);
    graft__rules__rule_set__free_unpacked(message, NULL);
    return status;
}

graft_status graft_rulefile_read(graft_env *env, graft_arena *arena, const char *path,
                                 graft_ruleset *set)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->scratch, path, &data, &size));
    return parse_set(env, arena, path, data, size, set);
}

/* ---------------------------------------------------------------- writing */

static node_message *write_node(graft_arena *arena, const graft_pattern_node *from)
{
    const graft_op_info *info = graft_op(from->op);
    node_message *to = GRAFT_NEW(arena, node_message, 1);
    graft__rules__node__init(to);
    to->op = from->op;
    to->n_inputs = info->input_count;
    to->inputs = GRAFT_NEW(arena, uint32_t, info->input_count);
    for (uint32_t i = 0; i < info->input_count; i++) {
        to->inputs[i] = from->inputs[i];
    }
    to->n_attrs = info->attr_count;
    to->attrs = GRAFT_NEW(arena, term_message *, info->attr_count);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        term_message *term = GRAFT_NEW(arena, term_message, 1);
        graft__rules__term__init(term);
        term->kind = (Graft__Rules__Term__Kind)from->attrs[i].kind;
        term->value = from->attrs[i].value;
        to->attrs[i] = term;
    }
    return to;
}

static pattern_message *write_pattern(graft_arena *arena, const graft_pattern *from,
                                      uint32_t output_count)
{
    pattern_message *to = GRAFT_NEW(arena, pattern_message, 1);
    graft__rules__pattern__init(to);
    to->n_nodes = from->node_count;
    to->nodes = GRAFT_NEW(arena, node_message *, from->node_count);
    for (uint32_t n = 0; n < from->node_count; n++) {
        to->nodes[n] = write_node(arena, &from->nodes[n]);
    }
    to->n_outputs = output_count;
    to->outputs = GRAFT_NEW(arena, uint32_t, output_count);
    for (uint32_t i = 0; i < output_count; i++) {
        to->outputs[i] = from->outputs[i];
    }
    return to;
}

static ProtobufCBinaryData bytes_of(const uint8_t *bytes, size_t size)
{
    return (ProtobufCBinaryData){size, graft_borrow(bytes)};
}

static certificate_message *write_certificate(graft_arena *arena, const graft_rule_entry *from)
{
    certificate_message *to = GRAFT_NEW(arena, certificate_message, 1);
    graft__rules__certificate__init(to);
    to->proof = (Graft__Rules__Proof)from->proof;
    to->numeric = (Graft__Rules__Numeric)from->numeric;
    to->n_axioms = from->axiom_count;
    to->axioms = graft_borrow(from->axioms);
    to->points = from->points;
    to->complete = from->complete ? 1 : 0;
    to->cover = from->cover;
    to->cover_points = bytes_of(from->cover_points, from->cover_bytes);
    to->resource_count = from->resource_count;
    write_rounding(arena, &from->rounding, to);
    to->cases = from->cases;
    to->reason = graft_borrow(from->reason == NULL ? "" : from->reason);
    return to;
}

static rule_message *write_entry(graft_arena *arena, const graft_rule_entry *from)
{
    const graft_rule *rule = &from->rule;
    rule_message *to = GRAFT_NEW(arena, rule_message, 1);
    graft__rules__rule__init(to);
    to->id = from->id;
    to->name = graft_borrow(from->name);
    to->family = graft_borrow(from->family);
    to->vars = rule->var_count;
    to->slots = rule->slot_count;
    to->source = write_pattern(arena, &rule->source, rule->output_count);
    to->target = write_pattern(arena, &rule->target, rule->output_count);
    to->code = bytes_of(rule->code, rule->code_bytes);
    to->condition = rule->condition;
    to->gain = from->gain;
    to->certificate = write_certificate(arena, from);
    return to;
}

graft_status graft_rulefile_write(graft_env *env, const char *path, const graft_ruleset *set)
{
    GRAFT_SCOPED(env->scratch);
    set_message message;
    graft__rules__rule_set__init(&message);
    message.version = RULEFILE_VERSION;
    message.whole = 1;
    message.solver = graft_borrow(set->solver);
    message.n_rules = set->count;
    message.rules = GRAFT_NEW(env->scratch, rule_message *, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        const char *fault = graft_rule_check(&set->entries[i].rule);
        GRAFT_RETURN_IF(fault != NULL, GRAFT_FAIL(env, GRAFT_INTERNAL, "%s: rule %s: %s", path,
                                                  set->entries[i].name, fault));
        message.rules[i] = write_entry(env->scratch, &set->entries[i]);
    }
    return graft_wire_write(env, path, &message.base);
}
