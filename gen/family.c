/* family.c - families of graphs from YAML: sizes, inputs, operators and compounds of each set. */
#include "gen/family.h"

#include "gen/attributes.h"
#include "graph/rule/ruleparse.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_CONFIGS = 1024, MAX_SETS = 64, MAX_FILES = 64 };

/* One set while it is read. */
typedef struct {
    graft_env *env;
    graft_arena *arena;
    graft_gen_set *set;
    const graft_yaml *sizes; /* NULL when there are none. */
    graft_gen_config *configs;
    uint32_t count;
} set_reader;

/* ------------------------------------------------------------------ inputs */

static graft_status read_shape(set_reader *reader, const graft_yaml *node, graft_shape *shape)
{
    if (node->kind != GRAFT_YAML_SEQUENCE || node->count > GRAFT_MAX_RANK) {
        return graft_yaml_fail(reader->env, node, "a shape is a list of at most %d sizes",
                               GRAFT_MAX_RANK);
    }
    memset(shape, 0, sizeof *shape);
    shape->rank = (uint8_t)node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        GRAFT_PASS(graft_gen_size_read(reader->env, &node->items[i], reader->sizes, 1, 64,
                                       &shape->dims[i]));
    }
    return GRAFT_OK;
}

static graft_status read_inputs(set_reader *reader, const graft_yaml *inputs, bool is_weight,
                                uint8_t dtype)
{
    if (inputs == NULL) {
        return GRAFT_OK;
    }
    if (inputs->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(reader->env, inputs, "'%s' is a mapping of names to shapes",
                               inputs->key);
    }
    for (uint32_t i = 0; i < inputs->count; i++) {
        graft_gen_set *set = reader->set;
        if (set->input_count == GRAFT_GEN_MAX_VARS) {
            return graft_yaml_fail(reader->env, &inputs->items[i], "a set has at most %d inputs",
                                   GRAFT_GEN_MAX_VARS);
        }
        graft_gen_input *input = &set->inputs[set->input_count];
        input->name = inputs->items[i].key;
        input->is_weight = is_weight;
        GRAFT_PASS(read_shape(reader, &inputs->items[i], &input->shape));
        input->shape.dtype = dtype;
        set->input_count++;
    }
    return GRAFT_OK;
}

/* Size names stand where a number may stand, so they must not look like one. */
static graft_status check_sizes(set_reader *reader)
{
    for (uint32_t i = 0; reader->sizes != NULL && i < reader->sizes->count; i++) {
        const graft_yaml *size = &reader->sizes->items[i];
        int64_t value = 0;
        if (reader->sizes->kind != GRAFT_YAML_MAPPING || strchr("0123456789-.", size->key[0])) {
            return graft_yaml_fail(reader->env, size, "'sizes' maps names to numbers");
        }
        GRAFT_PASS(graft_yaml_integer(reader->env, reader->sizes, size->key, 1, 64, &value));
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------- operators */

static graft_status find_op(graft_env *env, const graft_yaml *node, uint32_t *op)
{
    const char *name = NULL;
    GRAFT_PASS(graft_yaml_text(env, node, "op", &name));
    *op = graft_op_named(name);
    if (*op != GRAFT_OP_NONE) {
        return GRAFT_OK;
    }
    return graft_yaml_fail(env, graft_yaml_find(node, "op"), "no operator '%s'", name);
}

static graft_status read_roles(graft_env *env, const graft_yaml *node, graft_gen_config *config)
{
    static const char *const words[] = {"", "activation", "weight", "any"};
    const graft_yaml *roles = graft_yaml_find(node, "roles");
    memset(config->roles, GRAFT_GEN_ANY, sizeof config->roles);
    if (roles == NULL) {
        return GRAFT_OK;
    }
    if (roles->kind != GRAFT_YAML_SEQUENCE || roles->count != config->input_count) {
        return graft_yaml_fail(env, roles, "'roles' is a list of %d words, one for each input",
                               (int)config->input_count);
    }
    for (uint32_t i = 0; i < roles->count; i++) {
        const graft_yaml *role = &roles->items[i];
        uint8_t word = GRAFT_GEN_ACTIVATION;
        while (word <= GRAFT_GEN_ANY &&
               (role->kind != GRAFT_YAML_SCALAR || strcmp(role->text, words[word]) != 0)) {
            word++;
        }
        if (word > GRAFT_GEN_ANY) {
            return graft_yaml_fail(env, role, "a role is activation, weight or any");
        }
        config->roles[i] = word;
    }
    return GRAFT_OK;
}

static graft_status read_filters(graft_env *env, const graft_yaml *node, graft_gen_config *config)
{
    int64_t rank = 0;
    if (graft_yaml_find(node, "rank") != NULL) {
        GRAFT_PASS(graft_yaml_integer(env, node, "rank", 1, GRAFT_MAX_RANK, &rank));
    }
    config->rank = (uint8_t)rank;
    if (graft_yaml_find(node, "distinct") != NULL) {
        GRAFT_PASS(graft_yaml_bool(env, node, "distinct", &config->is_distinct));
    }
    if (graft_yaml_find(node, "once") != NULL) {
        GRAFT_PASS(graft_yaml_bool(env, node, "once", &config->is_once));
    }
    return GRAFT_OK;
}

static graft_gen_config *add_config(set_reader *reader)
{
    return reader->count < MAX_CONFIGS ? &reader->configs[reader->count++] : NULL;
}

void graft_gen_config_of_op(uint32_t op, graft_gen_config *config)
{
    const graft_op_info *info = graft_op(op);
    memset(config, 0, sizeof *config);
    config->name = info->name;
    config->step_count = 1;
    config->input_count = info->input_count;
    config->output_count = info->output_count;
    config->commutes = (info->flags & GRAFT_FLAG_COMMUTES) != 0;
    config->steps[0].op = (uint8_t)op;
    memset(config->roles, GRAFT_GEN_ANY, sizeof config->roles);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        config->steps[0].args[i] = GRAFT_GEN_INPUT(i);
    }
    config->outputs[0] = GRAFT_GEN_STEP(0, 0);
    config->outputs[1] = GRAFT_GEN_STEP(0, 1);
}

/* One entry of `operators`: a configuration for each choice of attribute values. */
static graft_status read_operator(set_reader *reader, const graft_yaml *node)
{
    graft_env *env = reader->env;
    uint32_t op = 0;
    graft_gen_config model = {0};
    graft_gen_choices choices = {0};
    if (node->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(env, node, "an operator is a mapping that starts with 'op'");
    }
    GRAFT_PASS(find_op(env, node, &op));
    graft_gen_config_of_op(op, &model);
    GRAFT_PASS(read_roles(env, node, &model));
    GRAFT_PASS(read_filters(env, node, &model));
    GRAFT_PASS(graft_gen_choices_read(env, node, op, reader->sizes, &choices));
    for (uint32_t i = 0; i < choices.count; i++) {
        graft_gen_config *config = add_config(reader);
        if (config == NULL) {
            return graft_yaml_fail(env, node, "a set has at most %d operators", MAX_CONFIGS);
        }
        *config = model;
        memcpy(config->steps[0].attrs, choices.attrs[i], sizeof choices.attrs[i]);
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------- compounds */

/* Finds "name" or "name.1" among the compound's inputs and the steps read so far. */
static graft_status find_operand(graft_env *env, const graft_yaml *node, const graft_yaml *inputs,
                                 const graft_yaml *steps, uint32_t step_end, uint8_t *operand)
{
    if (node->kind == GRAFT_YAML_SCALAR) {
        for (uint32_t i = 0; i < inputs->count; i++) {
            if (strcmp(inputs->items[i].text, node->text) == 0) {
                *operand = GRAFT_GEN_INPUT(i);
                return GRAFT_OK;
            }
        }
        size_t length = strcspn(node->text, ".");
        uint32_t slot = strcmp(node->text + length, ".1") == 0 ? 1 : 0;
        for (uint32_t s = 0; s < step_end; s++) {
            const char *name = steps->items[s].key;
            if (strlen(name) == length && memcmp(name, node->text, length) == 0 &&
                (slot == 1 || node->text[length] == '\0')) {
                *operand = GRAFT_GEN_STEP(s, slot);
                return GRAFT_OK;
            }
        }
    }
    return graft_yaml_fail(env, node, "an operand is the name of an input or of an earlier step");
}

static graft_status read_step(set_reader *reader, const graft_yaml *compound, uint32_t s,
                              graft_gen_step *step)
{
    graft_env *env = reader->env;
    const graft_yaml *inputs = graft_yaml_find(compound, "inputs");
    const graft_yaml *steps = graft_yaml_find(compound, "steps");
    const graft_yaml *node = &steps->items[s];
    uint32_t op = 0;
    if (node->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(env, node, "a step is a mapping with 'op' and 'of'");
    }
    GRAFT_PASS(find_op(env, node, &op));
    const graft_yaml *of = graft_yaml_find(node, "of");
    uint32_t want = graft_op(op)->input_count;
    if ((of == NULL ? 0 : of->count) != want || (of != NULL && of->kind != GRAFT_YAML_SEQUENCE)) {
        return graft_yaml_fail(env, node, "'of' is a list of %u operands of %s", want,
                               graft_op(op)->name);
    }
    step->op = (uint8_t)op;
    for (uint32_t i = 0; i < want; i++) {
        GRAFT_PASS(find_operand(env, &of->items[i], inputs, steps, s, &step->args[i]));
    }
    return graft_gen_step_attrs_read(env, node, op, reader->sizes, step->attrs);
}

static graft_status check_list(graft_env *env, const graft_yaml *compound, const char *key,
                               uint32_t most, graft_yaml_kind kind)
{
    const graft_yaml *list = graft_yaml_find(compound, key);
    if (list == NULL || list->kind != kind || list->count == 0 || list->count > most) {
        return graft_yaml_fail(env, list == NULL ? compound : list,
                               "a compound needs '%s', with 1 to %u entries", key, most);
    }
    for (uint32_t i = 0; kind == GRAFT_YAML_SEQUENCE && i < list->count; i++) {
        if (list->items[i].kind != GRAFT_YAML_SCALAR) {
            return graft_yaml_fail(env, &list->items[i], "'%s' is a list of names", key);
        }
    }
    return GRAFT_OK;
}

static graft_status read_compound(set_reader *reader, const graft_yaml *node)
{
    static const char *const allowed[] = {"inputs", "steps",    "outputs", "roles",
                                          "rank",   "distinct", "once",    NULL};
    graft_env *env = reader->env;
    GRAFT_PASS(graft_yaml_only(env, node, allowed));
    GRAFT_PASS(check_list(env, node, "inputs", GRAFT_MAX_INPUTS, GRAFT_YAML_SEQUENCE));
    GRAFT_PASS(check_list(env, node, "steps", GRAFT_GEN_MAX_STEPS, GRAFT_YAML_MAPPING));
    GRAFT_PASS(check_list(env, node, "outputs", GRAFT_MAX_OUTPUTS, GRAFT_YAML_SEQUENCE));
    const graft_yaml *inputs = graft_yaml_find(node, "inputs");
    const graft_yaml *steps = graft_yaml_find(node, "steps");
    const graft_yaml *outputs = graft_yaml_find(node, "outputs");
    graft_gen_config *config = add_config(reader);
    if (config == NULL) {
        return graft_yaml_fail(env, node, "a set has at most %d operators", MAX_CONFIGS);
    }
    config->name = node->key;
    config->input_count = (uint8_t)inputs->count;
    config->step_count = (uint8_t)steps->count;
    config->output_count = (uint8_t)outputs->count;
    GRAFT_PASS(read_roles(env, node, config));
    GRAFT_PASS(read_filters(env, node, config));
    for (uint32_t s = 0; s < steps->count; s++) {
        GRAFT_PASS(read_step(reader, node, s, &config->steps[s]));
    }
    for (uint32_t i = 0; i < outputs->count; i++) {
        GRAFT_PASS(find_operand(env, &outputs->items[i], inputs, steps, steps->count,
                                &config->outputs[i]));
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- sets */

static graft_status read_configs(set_reader *reader, const graft_yaml *node)
{
    const graft_yaml *operators = graft_yaml_find(node, "operators");
    const graft_yaml *compounds = graft_yaml_find(node, "compounds");
    if (operators == NULL || operators->kind != GRAFT_YAML_SEQUENCE || operators->count == 0) {
        return graft_yaml_fail(reader->env, operators == NULL ? node : operators,
                               "a set needs 'operators', a list");
    }
    if (compounds != NULL && compounds->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(reader->env, compounds, "'compounds' is a mapping of names");
    }
    for (uint32_t i = 0; i < operators->count; i++) {
        GRAFT_PASS(read_operator(reader, &operators->items[i]));
    }
    for (uint32_t i = 0; compounds != NULL && i < compounds->count; i++) {
        GRAFT_PASS(read_compound(reader, &compounds->items[i]));
    }
    return GRAFT_OK;
}

static graft_status read_set(graft_env *env, graft_arena *arena, const graft_yaml *node,
                             graft_gen_set *set)
{
    static const char *const allowed[] = {"set",       "depth",     "outputs",  "sizes",
                                          "inputs",    "bytes",     "booleans", "weights",
                                          "compounds", "operators", NULL};
    set_reader reader = {.env = env, .arena = arena, .set = set};
    int64_t depth = 0;
    int64_t outputs = 1;
    if (node->kind != GRAFT_YAML_MAPPING) {
        return graft_yaml_fail(env, node, "a set is a mapping that starts with 'set'");
    }
    GRAFT_PASS(graft_yaml_only(env, node, allowed));
    GRAFT_PASS(graft_yaml_text(env, node, "set", &set->name));
    GRAFT_PASS(graft_yaml_integer(env, node, "depth", 1, GRAFT_GEN_MAX_DEPTH, &depth));
    if (graft_yaml_find(node, "outputs") != NULL) {
        GRAFT_PASS(graft_yaml_integer(env, node, "outputs", 1, GRAFT_MAX_OUTPUTS, &outputs));
    }
    set->depth = (uint32_t)depth;
    set->output_count = (uint32_t)outputs;
    reader.sizes = graft_yaml_find(node, "sizes");
    reader.configs = GRAFT_NEW(arena, graft_gen_config, MAX_CONFIGS);
    GRAFT_PASS(check_sizes(&reader));
    GRAFT_PASS(read_inputs(&reader, graft_yaml_find(node, "inputs"), false, GRAFT_DTYPE_F32));
    GRAFT_PASS(read_inputs(&reader, graft_yaml_find(node, "bytes"), false, GRAFT_DTYPE_I8));
    GRAFT_PASS(read_inputs(&reader, graft_yaml_find(node, "booleans"), false, GRAFT_DTYPE_BOOL));
    GRAFT_PASS(read_inputs(&reader, graft_yaml_find(node, "weights"), true, GRAFT_DTYPE_F32));
    if (set->input_count == 0) {
        return graft_yaml_fail(env, node, "a set needs 'inputs' or 'weights'");
    }
    GRAFT_PASS(read_configs(&reader, node));
    set->configs = reader.configs;
    set->config_count = reader.count;
    return GRAFT_OK;
}

static graft_status read_family(graft_env *env, graft_arena *arena, const graft_yaml *root,
                                graft_gen_family *family)
{
    static const char *const allowed[] = {"family", "order", "about", "sets", NULL};
    int64_t order = 0;
    GRAFT_PASS(graft_yaml_only(env, root, allowed));
    GRAFT_PASS(graft_yaml_text(env, root, "family", &family->name));
    GRAFT_PASS(graft_yaml_integer(env, root, "order", 0, 1000, &order));
    family->order = (uint32_t)order;
    const graft_yaml *list = graft_yaml_find(root, "sets");
    if (list == NULL || list->kind != GRAFT_YAML_SEQUENCE || list->count == 0 ||
        list->count > MAX_SETS) {
        return graft_yaml_fail(env, list == NULL ? root : list,
                               "a family needs 'sets', a list of 1 to %d", MAX_SETS);
    }
    graft_gen_set *sets = GRAFT_NEW(arena, graft_gen_set, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        GRAFT_PASS(read_set(env, arena, &list->items[i], &sets[i]));
    }
    family->file = root->file;
    family->sets = sets;
    family->set_count = list->count;
    return GRAFT_OK;
}

graft_status graft_gen_family_parse(graft_env *env, graft_arena *arena, const char *name,
                                    const char *text, size_t size, graft_gen_family *family)
{
    const graft_yaml *root = NULL;
    GRAFT_PASS(graft_yaml_parse(env, arena, name, text, size, &root));
    return read_family(env, arena, root, family);
}

/* ------------------------------------------------------------------ folder */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_families(const void *a, const void *b)
{
    const graft_gen_family *x = a;
    const graft_gen_family *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : strcmp(x->file, y->file);
}

static uint32_t list_files(graft_arena *arena, DIR *folder, const char *path, const char **files)
{
    uint32_t count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && length > 5 &&
            strcmp(entry->d_name + length - 5, ".yaml") == 0 && count < MAX_FILES) {
            files[count++] = graft_arena_printf(arena, "%s/%s", path, entry->d_name);
        }
    }
    qsort(files, count, sizeof *files, compare_names);
    return count;
}

graft_status graft_gen_families_read(graft_env *env, graft_arena *arena, const char *path,
                                     const graft_gen_family **families, uint32_t *family_count)
{
    const char *files[MAX_FILES];
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot be read as a folder of families", path);
    }
    uint32_t count = list_files(arena, folder, path, files);
    (void)closedir(folder);
    if (count == 0) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: no .yaml file in it", path);
    }
    graft_gen_family *list = GRAFT_NEW(arena, graft_gen_family, count);
    for (uint32_t i = 0; i < count; i++) {
        const graft_yaml *root = NULL;
        GRAFT_PASS(graft_yaml_read(env, arena, files[i], &root));
        GRAFT_PASS(read_family(env, arena, root, &list[i]));
    }
    qsort(list, count, sizeof *list, compare_families);
    *families = list;
    *family_count = count;
    return GRAFT_OK;
}

uint64_t graft_gen_config_hash(const graft_gen_config *config)
{
    uint8_t rest[GRAFT_MAX_OUTPUTS + GRAFT_MAX_INPUTS + 7] = {
        config->step_count, config->input_count, config->output_count, config->rank,
        config->commutes,   config->is_distinct, config->is_once};
    memcpy(rest + 7, config->outputs, sizeof config->outputs);
    memcpy(rest + 7 + sizeof config->outputs, config->roles, sizeof config->roles);
    uint64_t hash = XXH3_64bits(rest, sizeof rest);
    for (uint32_t s = 0; s < config->step_count; s++) {
        const graft_gen_step *step = &config->steps[s];
        hash = XXH3_64bits_withSeed(step->attrs, sizeof step->attrs, hash);
        hash = XXH3_64bits_withSeed(step->args, sizeof step->args, hash + step->op);
    }
    return hash;
}
