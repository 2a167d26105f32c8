/* userrules.c - see userrules.h. */
#include "verify/command/userrules.h"

#include "graph/base/file.h"
#include "graph/names.h"
#include "graph/rule/ruleprint.h"
#include "verify/lift/narrow.h"
#include "verify/sweep/boundary.h"
#include "verify/sweep/choices.h"
#include "verify/sweep/domain.h"

#include <string.h>

enum {
    RULES_MOST = 10000,
    WHERE_MOST = 32,
    NAME_MOST = 128,
    TRIED_POINTS = 60,
    TRIED_ATTEMPTS = 2000000,
    TRIED_SHAPES = 3000,
    FAR_EFFORT = 6000000
};

/* ---------------------------------------------------------------- reading */

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const char *raw; /* The file's text. */
} reader;

static graft_rule_part make_part(graft_arena *arena, const graft_yaml *node, const char *what)
{
    return (graft_rule_part){graft_arena_printf(arena, "%s:%u: %s", node->file, node->line, what),
                             node->text};
}

/* Whether a comment cuts the text off in the file: what stands in its line is the text, a blank and
 * a '#'. */
static bool is_cut_off(const reader *in, const graft_yaml *node)
{
    const char *line = in->raw;
    for (uint32_t k = 1; k < node->line && line != NULL; k++) {
        line = strchr(line, '\n');
        line += line != NULL ? 1 : 0;
    }
    size_t length = line == NULL ? 0 : strcspn(line, "\n");
    const char *begin = line == NULL ? NULL : memchr(line, node->key != NULL ? ':' : '-', length);
    const char *text = begin == NULL ? NULL : strstr(begin + 1, node->text);
    if (text == NULL || text >= line + length) {
        return false;
    }
    const char *behind = text + strlen(node->text);
    size_t blanks = strspn(behind, " \t");
    return blanks > 0 && behind[blanks] == '#';
}

static graft_status need_text(const reader *in, const graft_yaml *mapping, const char *key)
{
    const graft_yaml *node = graft_yaml_find(mapping, key);
    const char *text = NULL;
    if (node != NULL && node->kind == GRAFT_YAML_SCALAR && node->text[0] == '\0') {
        return graft_yaml_fail(in->env, node, "'%s' is empty%s", key,
                               is_cut_off(in, node) ? ": a '#' behind a blank begins a comment, "
                                                      "put the text into quotes"
                                                    : "");
    }
    return graft_yaml_text(in->env, mapping, key, &text);
}

/* `where` is one text or a list of texts. */
static graft_status read_where(const reader *in, const graft_yaml *mapping, graft_rule_part *parts,
                               uint32_t *count, uint32_t *line)
{
    graft_env *env = in->env;
    const graft_yaml *where = graft_yaml_find(mapping, "where");
    *count = 0;
    *line = 0;
    if (where == NULL) {
        return GRAFT_OK;
    }
    *line = where->line;
    if (where->kind == GRAFT_YAML_SCALAR) {
        GRAFT_PASS(need_text(in, mapping, "where"));
        parts[(*count)++] = make_part(env->unit, where, "where");
        return GRAFT_OK;
    }
    if (where->kind != GRAFT_YAML_SEQUENCE || where->count > WHERE_MOST) {
        return graft_yaml_fail(env, where, "'where' must be a text or a list of at most %d texts",
                               WHERE_MOST);
    }
    for (uint32_t i = 0; i < where->count; i++) {
        const graft_yaml *item = &where->items[i];
        if (item->kind != GRAFT_YAML_SCALAR || item->text[0] == '\0') {
            return graft_yaml_fail(env, item,
                                   "a precondition must be a text that is not empty (in quotes "
                                   "when it begins with '#')");
        }
        parts[(*count)++] = make_part(env->unit, item, "where");
    }
    return GRAFT_OK;
}

static graft_status check_name(graft_env *env, const graft_yaml *node, const char *what)
{
    for (const char *c = node->text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\') {
            return graft_yaml_fail(env, node,
                                   "the %s '%s' has a character that is not a letter, digit or "
                                   "plain sign",
                                   what, node->text);
        }
    }
    if (strlen(node->text) > NAME_MOST) {
        return graft_yaml_fail(env, node, "the %s is longer than %d characters", what, NAME_MOST);
    }
    return GRAFT_OK;
}

static graft_status read_names(const reader *in, const graft_yaml *node, graft_user_rule *rule)
{
    graft_env *env = in->env;
    GRAFT_PASS(need_text(in, node, "name"));
    const graft_yaml *name = graft_yaml_find(node, "name");
    const graft_yaml *family = graft_yaml_find(node, "family");
    rule->line = name->line;
    GRAFT_PASS(check_name(env, name, "name"));
    rule->name = graft_arena_strdup(in->arena, name->text);
    if (family != NULL) {
        GRAFT_PASS(need_text(in, node, "family"));
        GRAFT_PASS(check_name(env, family, "family"));
        rule->family = graft_arena_strdup(in->arena, family->text);
    }
    return GRAFT_OK;
}

/* Adds the hint that a comment has cut off the part where the text has ended too early. */
static void explain_end(const reader *in, const graft_yaml *node, const graft_rule_part *part)
{
    const char *message = in->env->message;
    if (strncmp(message, part->name, strlen(part->name)) == 0 &&
        strstr(message, "found ''") != NULL && is_cut_off(in, node)) {
        graft_env_frame(in->env, "where the text ends: a '#' behind a blank begins a comment "
                                 "unless the text is in quotes");
    }
}

static graft_status read_parts(const reader *in, const graft_yaml *node, graft_user_rule *rule)
{
    graft_status status = GRAFT_OK;
    graft_rule_part where[WHERE_MOST];
    const graft_yaml *source = graft_yaml_find(node, "source");
    const graft_yaml *target = graft_yaml_find(node, "target");
    const graft_yaml *condition = graft_yaml_find(node, "where");
    graft_rule_parts parts = {.source = make_part(in->env->unit, source, "source"),
                              .target = make_part(in->env->unit, target, "target"),
                              .where = where};
    rule->source_line = source->line;
    rule->target_line = target->line;
    GRAFT_CHECK(read_where(in, node, where, &parts.where_count, &rule->where_line));
    status = graft_rule_parse_parts(in->env, &parts, &rule->rule, &rule->numbers);
    if (status != GRAFT_OK) {
        explain_end(in, source, &parts.source);
        explain_end(in, target, &parts.target);
    }
    for (uint32_t i = 0; status != GRAFT_OK && i < parts.where_count; i++) {
        bool alone = condition->kind == GRAFT_YAML_SCALAR;
        explain_end(in, alone ? condition : &condition->items[i], &where[i]);
    }
done:
    return status;
}

static graft_status read_rule(const reader *in, const graft_yaml *node, graft_user_rule *rule)
{
    static const char *const keys[] = {"name", "source", "target", "where", "family", NULL};
    *rule = (graft_user_rule){.name = "", .family = "user", .line = node->line};
    if (node->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(in->env, node,
                               "a rule must be a mapping with name, source and target");
    }
    GRAFT_PASS(read_names(in, node, rule));
    GRAFT_PASS(graft_yaml_only(in->env, node, keys));
    GRAFT_PASS(need_text(in, node, "source"));
    GRAFT_PASS(need_text(in, node, "target"));
    return read_parts(in, node, rule);
}

/* Takes the message of a failure for the fault of a rule. */
static void note_fault(const reader *in, graft_status status, graft_user_rule *rule)
{
    if (status != GRAFT_OK && rule->fault == NULL) {
        rule->fault = graft_arena_strdup(in->arena, in->env->message);
    }
    graft_env_clear(in->env);
}

static graft_status read_rules(const reader *in, const graft_yaml *root, graft_user_rule **rules,
                               uint32_t *count)
{
    static const char *const keys[] = {"rules", NULL};
    graft_env *env = in->env;
    const graft_yaml *list = graft_yaml_find(root, "rules");
    if (root->kind != GRAFT_YAML_MAPPING || list == NULL || list->kind != GRAFT_YAML_SEQUENCE) {
        return graft_yaml_fail(env, list != NULL ? list : root,
                               "expected 'rules:' with a list of rules");
    }
    GRAFT_PASS(graft_yaml_only(env, root, keys));
    if (list->count == 0 || list->count > RULES_MOST) {
        return graft_yaml_fail(env, list, "expected 1 to %d rules, has %u", RULES_MOST,
                               list->count);
    }
    graft_user_rule *read = GRAFT_NEW(in->arena, graft_user_rule, list->count);
    graft_names *names = graft_names_new(env->unit);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *name = NULL;
        note_fault(in, read_rule(in, &list->items[i], &read[i]), &read[i]);
        name = read[i].name;
        if (name[0] != '\0' && !graft_names_add(names, name, i)) {
            note_fault(in,
                       graft_yaml_fail(env, graft_yaml_find(&list->items[i], "name"),
                                       "the name '%s' is taken by the rule in line %u", name,
                                       read[graft_names_find(names, name)].line),
                       &read[i]);
        }
    }
    *rules = read;
    *count = list->count;
    return GRAFT_OK;
}

graft_status graft_user_rules_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                    graft_user_rule **rules, uint32_t *count)
{
    const graft_yaml *root = NULL;
    char *raw = GRAFT_NEW(env->unit, char, bytes.size + 1); /* Ends in 0. */
    const reader in = {env, arena, raw};
    if (bytes.size > 0) {
        memcpy(raw, bytes.data, bytes.size);
    }
    GRAFT_PASS(graft_yaml_parse(env, env->unit, bytes.file, bytes.data, bytes.size, &root));
    return read_rules(&in, root, rules, count);
}

graft_status graft_user_rules_read(graft_env *env, graft_arena *arena, const char *path,
                                   graft_user_rule **rules, uint32_t *count)
{
    graft_bytes bytes = {.file = path};
    uint8_t *data = NULL;
    GRAFT_PASS(graft_file_read(env, env->unit, path, &data, &bytes.size));
    bytes.data = data;
    return graft_user_rules_parse(env, arena, bytes, rules, count);
}

const char *graft_user_rule_retell(graft_arena *arena, const graft_user_rule *rule,
                                   const char *text)
{
    char *told = graft_arena_strdup(arena, text);
    for (char *c = strchr(told, '#'); c != NULL; c = strchr(c + 1, '#')) {
        uint32_t number = (uint32_t)(c[1] - '0');
        bool known = c[1] >= '0' && c[1] <= '9' && number <= GRAFT_RULE_MAX_NODES;
        if (known && rule->numbers.given[number] != 0) {
            c[1] = (char)('0' + rule->numbers.given[number]); /* Numbers are single digits. */
        }
    }
    return told;
}

/* ------------------------------------------------------------------- shapes */

/* The rule "source = source", with the same precondition or none; false when that is none. */
static bool mirror_source(graft_env *env, const graft_rule *rule, bool conditioned,
                          graft_rule *mirror)
{
    graft_rule_text text = graft_rule_print(env->unit, rule);
    return graft_rule_restate(env, text.source, text.source, conditioned ? text.where : "", mirror);
}

static graft_domain try_points(graft_env *env, const graft_rule *rule)
{
    const graft_domain_options options = {
        .points = TRIED_POINTS, .attempts = TRIED_ATTEMPTS, .enumerate = true, .seed = 1};
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    return domain;
}

/* Whether a rule has instances past the bounds. */
static bool has_far_points(graft_env *env, const graft_rule *rule)
{
    const graft_boundary_options options = {NULL, 0, FAR_EFFORT};
    const graft_domain domain = graft_boundary_find(env, rule, &options);
    return domain.count > 0;
}

/* Least values of attributes, axes in their order. */
static void plain_slots(const graft_rule *rule, graft_point *point)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                bool axes = node->op == GRAFT_OP_transpose;
                point->slots[node->attrs[i].value] =
                    axes ? (int32_t)i : graft_op_attr(node->op, i)->least;
            }
        }
    }
}

/* The reason that is met after most operators have fitted, over random shapes. */
static const char *explain_source(graft_env *env, const graft_rule *mirror)
{
    graft_rng rng;
    const char *best = "nothing fits";
    uint32_t best_progress = 0;
    graft_rng_seed(&rng, 1);
    for (uint32_t t = 0; t < TRIED_SHAPES; t++) {
        graft_point point;
        uint32_t progress = 0;
        memset(&point, 0, sizeof point);
        plain_slots(mirror, &point);
        for (uint32_t v = 0; v < mirror->var_count; v++) {
            point.vars[v] = graft_choices_shape_random(&rng, (t & 1u) != 0);
        }
        const char *why = graft_instance_explain(env->unit, mirror, &point, &progress);
        if (why != NULL && (t == 0 || progress > best_progress)) {
            best = why;
            best_progress = progress;
        }
    }
    return best;
}

/* The target fits at none of the points where source and precondition do. */
static graft_status fail_target(graft_env *env, const char *file, const graft_user_rule *rule,
                                const graft_point *point)
{
    return GRAFT_FAIL(
        env, GRAFT_BAD_INPUT,
        "%s:%u: rule '%s': the target does not fit where the source does, as at %s: "
        "%s",
        file, rule->target_line, rule->name,
        graft_user_rule_retell(env->unit, rule, graft_point_print(env->unit, &rule->rule, point)),
        graft_instance_explain(env->unit, &rule->rule, point, NULL));
}

graft_status graft_user_rule_check_shapes(graft_env *env, const char *file,
                                          const graft_user_rule *rule)
{
    GRAFT_SCOPED(env->unit);
    graft_rule bound;
    graft_rule mirror;
    if (try_points(env, &rule->rule).count > 0 || has_far_points(env, &rule->rule)) {
        return GRAFT_OK;
    }
    if (!mirror_source(env, &rule->rule, true, &bound) ||
        !mirror_source(env, &rule->rule, false, &mirror)) {
        return GRAFT_FAIL(
            env, GRAFT_BAD_INPUT,
            "%s:%u: rule '%s': no shapes fit it (sizes to 4, images to 6, ranks to 4)", file,
            rule->source_line, rule->name);
    }
    graft_domain domain = try_points(env, &bound);
    if (domain.count > 0) {
        return fail_target(env, file, rule, &domain.points[0]);
    }
    domain = try_points(env, &mirror);
    return domain.count > 0
               ? GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "%s:%u: rule '%s': the precondition holds at none of the places "
                            "tried where the source fits",
                            file, rule->where_line, rule->name)
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "%s:%u: rule '%s': no shapes fit the source (sizes to 4, images to "
                            "6, ranks to 4): %s",
                            file, rule->source_line, rule->name, explain_source(env, &mirror));
}
