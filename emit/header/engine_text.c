/* engine_text.c - see engine_text.h. */
#include "emit/header/engine_text.h"

#include "graph/embed.h"

#include <string.h>

#define EMBED(symbol, path) GRAFT_EMBED(symbol, "include/graft/" path)

/* FILE(symbol, path under include/graft). */
#define ENGINE_FILES(FILE)                                                                         \
    FILE(graft, "graft.h")                                                                         \
    FILE(rule, "rule.h")                                                                           \
    FILE(policy, "policy.h")                                                                       \
    FILE(operators_def, "operators.def")                                                           \
    FILE(shapes_def, "shapes.def")                                                                 \
    FILE(features_def, "features.def")                                                             \
    FILE(engine_operators, "engine/operators.h")                                                   \
    FILE(engine_shapes, "engine/shapes.h")                                                         \
    FILE(engine_graph, "engine/graph.h")                                                           \
    FILE(engine_order, "engine/order.h")                                                           \
    FILE(engine_code, "engine/code.h")                                                             \
    FILE(engine_pack, "engine/pack.h")                                                             \
    FILE(engine_match, "engine/match.h")                                                           \
    FILE(engine_apply, "engine/apply.h")                                                           \
    FILE(engine_table, "engine/table.h")                                                           \
    FILE(engine_features, "engine/features.h")                                                     \
    FILE(engine_network, "engine/network.h")                                                       \
    FILE(engine_tariff, "engine/tariff.h")                                                         \
    FILE(engine_estimate, "engine/estimate.h")                                                     \
    FILE(engine_change, "engine/change.h")                                                         \
    FILE(engine_scene, "engine/scene.h")                                                           \
    FILE(engine_keep, "engine/keep.h")                                                             \
    FILE(engine_policy, "engine/policy.h")                                                         \
    FILE(engine_optimize, "engine/optimize.h")

ENGINE_FILES(EMBED)

typedef struct {
    const char *path;
    const char *begin;
    const char *end;
} engine_file;

#define LIST(symbol, path) {path, graft_text_##symbol, graft_text_##symbol##_end},
static const engine_file files[] = {ENGINE_FILES(LIST)};

enum { FILE_COUNT = sizeof(files) / sizeof(files[0]), DEPTH_MOST = 8, PATH_BYTES = 128 };

static const engine_file *find_file(const char *path)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (strcmp(files[i].path, path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

/* The path of an #include in `from`, whose folder it is relative to. False when the line is none.
 */
static bool read_include(const char *line, size_t length, const char *from, char *path)
{
    static const char start[] = "#include \"";
    if (length <= sizeof start || strncmp(line, start, sizeof start - 1) != 0) {
        return false;
    }
    const char *name = line + sizeof start - 1;
    const char *quote = memchr(name, '"', length - (sizeof start - 1));
    const char *slash = strrchr(from, '/');
    size_t folder = slash != NULL ? (size_t)(slash - from) + 1 : 0;
    if (quote == NULL || folder + (size_t)(quote - name) >= PATH_BYTES) {
        return false;
    }
    if (folder > 0 && strncmp(name, "../", 3) == 0) { /* Folders are one deep. */
        name += 3;
        folder = 0;
    }
    memcpy(path, from, folder);
    memcpy(path + folder, name, (size_t)(quote - name));
    path[folder + (size_t)(quote - name)] = '\0';
    return true;
}

/* Copies a line without its comments, and not at all when nothing else is on it. True when a comment
 * goes on in the next one, as one may have been `in_comment` before. */
static bool append_stripped(bool in_comment, const char *line, size_t length, graft_buffer *text)
{
    size_t before = text->size;
    for (size_t i = 0; i < length; i++) {
        bool pair = i + 1 < length;
        if (!in_comment && pair && line[i] == '/' && line[i + 1] == '*') {
            in_comment = true;
            i++;
        } else if (in_comment && pair && line[i] == '*' && line[i + 1] == '/') {
            in_comment = false;
            i++;
        } else if (!in_comment && (line[i] != ' ' || text->size > before)) {
            graft_buffer_append(text, &line[i], 1);
        }
    }
    while (text->size > before && text->data[text->size - 1] == ' ') {
        text->data[--text->size] = '\0';
    }
    if (text->size > before) {
        graft_buffer_append(text, "\n", 1);
    }
    return in_comment;
}

/* Copies a file that `depth` others include in a row, and what it includes in place of the #include
 * lines. Comments of tables stay out: those are included many times. */
static graft_status copy_file(graft_env *env, const engine_file *file, uint32_t depth,
                              graft_buffer *text)
{
    const bool strip = strcmp(file->path + strlen(file->path) - 4, ".def") == 0;
    bool in_comment = false;
    for (const char *line = file->begin, *end; line < file->end; line = end + 1) {
        char path[PATH_BYTES];
        const char *newline = memchr(line, '\n', (size_t)(file->end - line));
        end = newline != NULL ? newline : file->end;
        if (read_include(line, (size_t)(end - line), file->path, path)) {
            const engine_file *included = find_file(path);
            if (included == NULL || depth == DEPTH_MOST) {
                return GRAFT_FAIL(env, GRAFT_INTERNAL, "%s includes %s, which is not embedded",
                                  file->path, path);
            }
            GRAFT_PASS(copy_file(env, included, depth + 1, text));
        } else if (strip) {
            in_comment = append_stripped(in_comment, line, (size_t)(end - line), text);
        } else {
            graft_buffer_append(text, line, (size_t)(end - line));
            graft_buffer_append(text, "\n", 1);
        }
    }
    return GRAFT_OK;
}

graft_status graft_engine_text(graft_env *env, graft_buffer *text)
{
    return copy_file(env, &files[0], 1, text);
}
