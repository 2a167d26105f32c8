/* agent_settings.c - see agent_settings.h. */
#include "train/agent/agent_settings.h"

#include "graph/base/settings.h"

#include <string.h>

typedef struct setting_row {
    const char *section;
    const char *name;
    bool is_integer;
    double least;
    double most;
    size_t offset;
} setting_row;

enum { KIND_integer = 1, KIND_real = 0 };

static const setting_row rows[] = {
#define SETTING(section, name, type, least, most)                                                  \
    {#section, #name, KIND_##type, least, most, offsetof(graft_agent_settings, section##_##name)},
    GRAFT_AGENT_SETTINGS(SETTING)
#undef SETTING
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* The section of row r, which must be a mapping of the document. */
static graft_status find_section(graft_env *env, const graft_yaml *root, const setting_row *row,
                                 const graft_yaml **section)
{
    *section = graft_yaml_find(root, row->section);
    if (*section == NULL || (*section)->kind != GRAFT_YAML_MAPPING) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s:%u: section '%s' is missing", root->file,
                          root->line, row->section);
    }
    return GRAFT_OK;
}

static graft_status read_row(graft_env *env, const graft_yaml *root, const setting_row *row,
                             graft_agent_settings *settings)
{
    const graft_yaml *section = NULL;
    unsigned char *field = (unsigned char *)settings + row->offset;
    GRAFT_PASS(find_section(env, root, row, &section));
    if (row->is_integer) {
        int64_t value = 0;
        GRAFT_PASS(graft_yaml_integer(env, section, row->name, (int64_t)row->least,
                                      (int64_t)row->most, &value));
        memcpy(field, &value, sizeof value);
    } else {
        double value = 0;
        GRAFT_PASS(graft_yaml_real(env, section, row->name, row->least, row->most, &value));
        memcpy(field, &value, sizeof value);
    }
    return GRAFT_OK;
}

/* Refuses sections and keys that no row names. */
static graft_status refuse_unknown(graft_env *env, const graft_yaml *root)
{
    const char *sections[ROW_COUNT + 1] = {NULL};
    for (size_t r = 0; r < ROW_COUNT; r++) {
        sections[r] = rows[r].section;
    }
    GRAFT_PASS(graft_yaml_only(env, root, sections));
    for (uint32_t i = 0; i < root->count; i++) {
        const char *names[ROW_COUNT + 1] = {NULL};
        size_t count = 0;
        for (size_t r = 0; r < ROW_COUNT; r++) {
            if (strcmp(rows[r].section, root->items[i].key) == 0) {
                names[count++] = rows[r].name;
            }
        }
        GRAFT_PASS(graft_yaml_only(env, &root->items[i], names));
    }
    return GRAFT_OK;
}

graft_status graft_agent_settings_read(graft_env *env, const char *path,
                                       graft_agent_settings *settings)
{
    const graft_yaml *root = NULL;
    graft_agent_settings read = {0};
    GRAFT_SCOPED(env->scratch);
    GRAFT_PASS(graft_yaml_read(env, env->scratch, path, &root));
    if (root->kind != GRAFT_YAML_MAPPING) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s:%u: expected sections", path, root->line);
    }
    GRAFT_PASS(refuse_unknown(env, root));
    for (size_t r = 0; r < ROW_COUNT; r++) {
        GRAFT_PASS(read_row(env, root, &rows[r], &read));
    }
    *settings = read;
    return GRAFT_OK;
}
