/* attributes.c - reading attribute values: names and groups of names, lists of alternatives. */
#include "gen/attributes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const activations[GRAFT_ACT_COUNT] = {
    [GRAFT_ACT_NONE] = "none",       [GRAFT_ACT_RELU] = "relu", [GRAFT_ACT_RELU6] = "relu6",
    [GRAFT_ACT_SIGMOID] = "sigmoid", [GRAFT_ACT_TANH] = "tanh",
};

/* Which attributes of the operator a member speaks of. */
typedef struct {
    uint32_t index[GRAFT_MAX_ATTRS];
    uint32_t count;
} attr_group;

static bool read_whole(const char *text, int64_t *value)
{
    char *end = NULL;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

graft_status graft_gen_size_read(graft_env *env, const graft_yaml *node, const graft_yaml *sizes,
                                 int32_t least, int32_t most, int32_t *value)
{
    int64_t number = 0;
    if (node->kind != GRAFT_YAML_SCALAR) {
        return graft_yaml_fail(env, node, "a number or the name of a size is expected");
    }
    const graft_yaml *size = sizes == NULL ? NULL : graft_yaml_find(sizes, node->text);
    if (!read_whole(size == NULL ? node->text : size->text, &number)) {
        return graft_yaml_fail(env, node, "'%s' is neither a number nor a name in 'sizes'",
                               node->text);
    }
    if (number < least || number > most) {
        return graft_yaml_fail(env, node, "%s is outside %d to %d", node->text, (int)least,
                               (int)most);
    }
    *value = (int32_t)number;
    return GRAFT_OK;
}

static graft_status read_float(graft_env *env, const graft_yaml *node, int32_t *bits)
{
    char *end = NULL;
    float number = node->kind == GRAFT_YAML_SCALAR ? strtof(node->text, &end) : 0;
    if (end == NULL || end == node->text || *end != '\0' || !isfinite(number)) {
        return graft_yaml_fail(env, node, "a finite number is expected");
    }
    memcpy(bits, &number, sizeof *bits);
    return GRAFT_OK;
}

static graft_status read_activation(graft_env *env, const graft_yaml *node, int32_t *value)
{
    for (int32_t i = 0; node->kind == GRAFT_YAML_SCALAR && i < GRAFT_ACT_COUNT; i++) {
        if (strcmp(activations[i], node->text) == 0) {
            *value = i;
            return GRAFT_OK;
        }
    }
    return graft_yaml_fail(env, node, "an activation is none, relu, relu6, sigmoid or tanh");
}

static graft_status read_value(graft_env *env, const graft_yaml *node, const graft_attr_info *info,
                               const graft_yaml *sizes, int32_t *value)
{
    switch ((graft_attr_kind)info->kind) {
    case GRAFT_ATTR_FLOAT:
        return read_float(env, node, value);
    case GRAFT_ATTR_ACTIVATION:
        return read_activation(env, node, value);
    case GRAFT_ATTR_INT:
    case GRAFT_ATTR_DIM:
        return graft_gen_size_read(env, node, sizes, info->least, info->most, value);
    }
    return GRAFT_FAIL(env, GRAFT_INTERNAL, "attribute %s has an unknown kind", info->name);
}

static graft_status find_group(graft_env *env, const graft_yaml *member, uint32_t op,
                               attr_group *group)
{
    size_t length = strlen(member->key);
    group->count = 0;
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        const char *name = graft_op_attr(op, i)->name;
        const char *tail = strrchr(name, '_');
        if (strcmp(name, member->key) == 0 || (tail != NULL && (size_t)(tail - name) == length &&
                                               memcmp(name, member->key, length) == 0)) {
            group->index[group->count++] = i;
        }
    }
    return group->count > 0 ? GRAFT_OK
                            : graft_yaml_fail(env, member, "%s has no attribute '%s'",
                                              graft_op(op)->name, member->key);
}

/* One alternative: a scalar for every attribute of the group, or a list in their order. */
static graft_status read_alternative(graft_env *env, const graft_yaml *node, uint32_t op,
                                     const attr_group *group, const graft_yaml *sizes,
                                     int32_t *attrs)
{
    bool listed = node->kind == GRAFT_YAML_SEQUENCE;
    if (node->kind == GRAFT_YAML_MAPPING || (listed && node->count > group->count)) {
        return graft_yaml_fail(env, node, "at most %u values are expected", group->count);
    }
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t index = group->index[i];
        if (listed && i >= node->count) {
            attrs[index] = 0;
            continue;
        }
        GRAFT_PASS(read_value(env, listed ? &node->items[i] : node, graft_op_attr(op, index), sizes,
                              &attrs[index]));
    }
    return GRAFT_OK;
}

static bool is_attribute(const graft_yaml *member)
{
    static const char *const others[] = {"op", "of", "roles", "rank", "distinct", "once"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(member->key, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void set_least(uint32_t op, int32_t *attrs)
{
    memset(attrs, 0, GRAFT_MAX_ATTRS * sizeof *attrs);
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        const graft_attr_info *info = graft_op_attr(op, i);
        attrs[i] = info->kind == GRAFT_ATTR_FLOAT ? 0 : info->least;
    }
}

/* Multiplies the choices so far by the alternatives of one member. */
static graft_status multiply_choices(graft_env *env, const graft_yaml *member, uint32_t op,
                                     const graft_yaml *sizes, graft_gen_choices *choices)
{
    attr_group group;
    bool listed = member->kind == GRAFT_YAML_SEQUENCE;
    uint32_t count = listed ? member->count : 1;
    uint32_t before = choices->count;
    GRAFT_PASS(find_group(env, member, op, &group));
    if (count == 0 || before * count > GRAFT_GEN_MAX_CHOICES) {
        return graft_yaml_fail(env, member, "an operator has 1 to %d choices of attributes",
                               GRAFT_GEN_MAX_CHOICES);
    }
    for (uint32_t a = count; a-- > 0;) { /* The last first: the block of `before` is overwritten. */
        for (uint32_t i = 0; i < before; i++) {
            int32_t *attrs = choices->attrs[a * before + i];
            memmove(attrs, choices->attrs[i], sizeof choices->attrs[i]);
            GRAFT_PASS(read_alternative(env, listed ? &member->items[a] : member, op, &group, sizes,
                                        attrs));
        }
    }
    choices->count = before * count;
    return GRAFT_OK;
}

graft_status graft_gen_choices_read(graft_env *env, const graft_yaml *node, uint32_t op,
                                    const graft_yaml *sizes, graft_gen_choices *choices)
{
    choices->count = 1;
    set_least(op, choices->attrs[0]);
    for (uint32_t i = 0; i < node->count; i++) {
        if (is_attribute(&node->items[i])) {
            GRAFT_PASS(multiply_choices(env, &node->items[i], op, sizes, choices));
        }
    }
    return GRAFT_OK;
}

graft_status graft_gen_step_attrs_read(graft_env *env, const graft_yaml *node, uint32_t op,
                                       const graft_yaml *sizes, int32_t *attrs)
{
    attr_group group;
    set_least(op, attrs);
    for (uint32_t i = 0; i < node->count; i++) {
        if (is_attribute(&node->items[i])) {
            GRAFT_PASS(find_group(env, &node->items[i], op, &group));
            GRAFT_PASS(read_alternative(env, &node->items[i], op, &group, sizes, attrs));
        }
    }
    return GRAFT_OK;
}
