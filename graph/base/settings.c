/* settings.c - libyaml's events become a tree.
 *
 * Children are collected on a stack while their parent is open and copied to their final place, in
 * one piece, when it closes. Nesting is bounded, so the parser recurses at most 32 deep; duplicate
 * keys are found by sorting, so that a hostile file costs n log n. */
#include "graph/base/settings.h"

#include "graph/base/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum { NESTING_MOST = 32, NODES_MOST = 1 << 20, MESSAGE_TEXT_BYTES = 512 };

typedef struct {
    graft_env *env;
    graft_arena *arena; /* The caller's: holds the tree. */
    const char *file;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    graft_arena *scratch;
    graft_yaml *stack; /* Children of the open collections, in scratch. */
    uint32_t stack_count;
    uint32_t stack_capacity;
    size_t node_count;
} reader;

/* --- Events ------------------------------------------------------------------------------------
 */

static uint32_t line_of(const yaml_mark_t *mark) { return (uint32_t)mark->line + 1; }

static graft_status fail_at(reader *r, const yaml_mark_t *mark, const char *what)
{
    return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "%s:%" PRIu32 ": %s", r->file, line_of(mark), what);
}

static graft_status fail_parse(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    GRAFT_RETURN_IF(p->error == YAML_MEMORY_ERROR,
                    GRAFT_FAIL(r->env, GRAFT_NO_MEMORY, "%s: no memory left to parse it", r->file));
    if (p->error == YAML_READER_ERROR) { /* Bytes that are not text have an offset, no line. */
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "%s: byte %zu: not YAML: %s", r->file,
                          p->problem_offset, p->problem);
    }
    return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "%s:%" PRIu32 ": not YAML: %s%s%s", r->file,
                      line_of(&p->problem_mark), p->problem, p->context == NULL ? "" : " ",
                      p->context == NULL ? "" : p->context);
}

static graft_status next_event(reader *r)
{
    if (r->has_event) {
        yaml_event_delete(&r->event);
        r->has_event = false;
    }
    GRAFT_RETURN_IF(yaml_parser_parse(&r->parser, &r->event) == 0, fail_parse(r));
    r->has_event = true;
    return GRAFT_OK;
}

/* --- Nodes -------------------------------------------------------------------------------------
 */

static void push_child(reader *r, const graft_yaml *child)
{
    GRAFT_PUSH(r->scratch, r->stack, r->stack_count, r->stack_capacity, 64) = *child;
}

static int compare_keys(const void *left, const void *right)
{
    const graft_yaml *const *a = left;
    const graft_yaml *const *b = right;
    int order = strcmp((*a)->key, (*b)->key);
    return order != 0 ? order : ((*a)->line > (*b)->line) - ((*a)->line < (*b)->line);
}

static graft_status check_keys_differ(reader *r, const graft_yaml *mapping)
{
    GRAFT_SCOPED(r->scratch);
    const graft_yaml **sorted = GRAFT_NEW(r->scratch, const graft_yaml *, mapping->count);
    for (uint32_t i = 0; i < mapping->count; i++) {
        sorted[i] = &mapping->items[i];
    }
    qsort(sorted, mapping->count, sizeof(graft_yaml *), compare_keys);
    for (uint32_t i = 1; i < mapping->count; i++) {
        GRAFT_RETURN_IF(strcmp(sorted[i - 1]->key, sorted[i]->key) == 0,
                        graft_yaml_fail(r->env, sorted[i],
                                        "the key '%s' stands in line %" PRIu32 " already",
                                        sorted[i]->key, sorted[i - 1]->line));
    }
    return GRAFT_OK;
}

/* Moves the children above `base` to their final place. */
static graft_status close_collection(reader *r, uint32_t base, graft_yaml *node)
{
    uint32_t count = r->stack_count - base;
    node->items = count == 0 ? NULL : GRAFT_COPY(r->arena, r->stack + base, count);
    node->count = count;
    r->stack_count = base;
    return node->kind == GRAFT_YAML_MAPPING ? check_keys_differ(r, node) : GRAFT_OK;
}

/* The text of the scalar in r->event. */
static graft_status copy_scalar(reader *r, const char **text)
{
    const yaml_char_t *value = r->event.data.scalar.value;
    size_t length = r->event.data.scalar.length;
    GRAFT_RETURN_IF(memchr(value, '\0', length) != NULL,
                    fail_at(r, &r->event.start_mark, "a text with a zero byte"));
    char *copy = graft_arena_alloc(r->arena, length + 1);
    memcpy(copy, value, length);
    *text = copy;
    return GRAFT_OK;
}

static graft_status check_plain(reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    GRAFT_RETURN_IF(anchor != NULL,
                    fail_at(r, &r->event.start_mark, "anchors ('&name') are not used here"));
    GRAFT_RETURN_IF(tag != NULL,
                    fail_at(r, &r->event.start_mark, "tags ('!name') are not used here"));
    return GRAFT_OK;
}

static graft_status read_node(reader *r, uint32_t depth, graft_yaml *node);

/* The members up to the end of the mapping that r->event began. */
static graft_status read_members(reader *r, uint32_t depth)
{
    for (;;) {
        graft_yaml child = {.file = r->file};
        GRAFT_PASS(next_event(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) {
            return GRAFT_OK;
        }
        GRAFT_RETURN_IF(r->event.type != YAML_SCALAR_EVENT,
                        fail_at(r, &r->event.start_mark, "a key must be a text"));
        GRAFT_PASS(check_plain(r, r->event.data.scalar.anchor, r->event.data.scalar.tag));
        uint32_t line = line_of(&r->event.start_mark);
        GRAFT_PASS(copy_scalar(r, &child.key));
        GRAFT_PASS(next_event(r));
        GRAFT_PASS(read_node(r, depth + 1, &child));
        child.line = line; /* Where its key stands, which is where one looks for it. */
        push_child(r, &child);
    }
    return GRAFT_OK;
}

static graft_status read_elements(reader *r, uint32_t depth)
{
    for (;;) {
        graft_yaml child = {.file = r->file};
        GRAFT_PASS(next_event(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) {
            return GRAFT_OK;
        }
        GRAFT_PASS(read_node(r, depth + 1, &child));
        push_child(r, &child);
    }
    return GRAFT_OK;
}

static graft_status read_collection(reader *r, uint32_t depth, graft_yaml *node)
{
    uint32_t base = r->stack_count;
    GRAFT_RETURN_IF(depth == NESTING_MOST,
                    fail_at(r, &r->event.start_mark, "nested deeper than 32"));
    if (node->kind == GRAFT_YAML_MAPPING) {
        GRAFT_PASS(
            check_plain(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag));
        GRAFT_PASS(read_members(r, depth));
    } else {
        GRAFT_PASS(
            check_plain(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag));
        GRAFT_PASS(read_elements(r, depth));
    }
    return close_collection(r, base, node);
}

/* The node that r->event begins, up to its end. Keeps node->key. */
static graft_status read_node(reader *r, uint32_t depth, graft_yaml *node)
{
    node->file = r->file;
    node->line = line_of(&r->event.start_mark);
    GRAFT_RETURN_IF(++r->node_count > NODES_MOST,
                    fail_at(r, &r->event.start_mark, "more than 1048576 values"));
    if (r->event.type == YAML_SCALAR_EVENT) {
        node->kind = GRAFT_YAML_SCALAR;
        GRAFT_PASS(check_plain(r, r->event.data.scalar.anchor, r->event.data.scalar.tag));
        return copy_scalar(r, &node->text);
    }
    GRAFT_RETURN_IF(r->event.type == YAML_ALIAS_EVENT,
                    fail_at(r, &r->event.start_mark, "aliases ('*name') are not used here"));
    bool mapping = r->event.type == YAML_MAPPING_START_EVENT;
    assert(mapping || r->event.type == YAML_SEQUENCE_START_EVENT);
    node->kind = mapping ? GRAFT_YAML_MAPPING : GRAFT_YAML_SEQUENCE;
    return read_collection(r, depth, node);
}

static graft_status read_document(reader *r, graft_yaml *root)
{
    GRAFT_PASS(next_event(r));
    assert(r->event.type == YAML_STREAM_START_EVENT);
    GRAFT_PASS(next_event(r));
    GRAFT_RETURN_IF(r->event.type == YAML_STREAM_END_EVENT,
                    fail_at(r, &r->event.start_mark, "nothing in it"));
    GRAFT_PASS(next_event(r));
    GRAFT_PASS(read_node(r, 0, root));
    GRAFT_PASS(next_event(r));
    assert(r->event.type == YAML_DOCUMENT_END_EVENT);
    GRAFT_PASS(next_event(r));
    if (r->event.type != YAML_STREAM_END_EVENT) {
        return fail_at(r, &r->event.start_mark, "a second document; one is expected");
    }
    return GRAFT_OK;
}

graft_status graft_yaml_parse(graft_env *env, graft_arena *arena, const char *name,
                              const void *data, size_t size, const graft_yaml **root)
{
    reader r = {
        .env = env, .arena = arena, .scratch = arena == env->scratch ? env->unit : env->scratch};
    GRAFT_SCOPED(r.scratch);
    GRAFT_RETURN_IF(yaml_parser_initialize(&r.parser) == 0,
                    GRAFT_FAIL(env, GRAFT_NO_MEMORY, "%s: no memory left to parse it", name));
    yaml_parser_set_input_string(&r.parser, data, size);
    graft_mark mark = graft_arena_mark(arena);
    r.file = graft_arena_strdup(arena, name);
    graft_yaml *top = GRAFT_NEW(arena, graft_yaml, 1);
    graft_status status = read_document(&r, top);
    if (r.has_event) {
        yaml_event_delete(&r.event);
    }
    yaml_parser_delete(&r.parser);
    if (status == GRAFT_OK) {
        *root = top;
    } else {
        graft_arena_release(arena, mark);
    }
    return status;
}

graft_status graft_yaml_read(graft_env *env, graft_arena *arena, const char *path,
                             const graft_yaml **root)
{
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, arena, path, &data, &size));
    return graft_yaml_parse(env, arena, path, data, size, root);
}

graft_status graft_yaml_read_lines(graft_env *env, graft_arena *arena, const char *path,
                                   graft_yaml_take *take, void *context)
{
    uint8_t *data = NULL;
    size_t size = 0;
    if (!graft_file_exists(path)) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_file_read(env, arena, path, &data, &size));
    const char *line = (const char *)data;
    const char *end = line + size;
    for (uint32_t number = 1; line < end; number++) {
        const graft_yaml *root = NULL;
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop == NULL ? end : stop;
        GRAFT_PASS_IN(env, graft_yaml_parse(env, arena, path, line, (size_t)(stop - line), &root),
                      "at line %u", number);
        GRAFT_PASS_IN(env, take(env, arena, context, root), "at line %u", number);
        line = stop + 1;
    }
    return GRAFT_OK;
}

/* --- Reading values ----------------------------------------------------------------------------
 */

graft_status graft_yaml_fail(graft_env *env, const graft_yaml *node, const char *format, ...)
{
    char text[MESSAGE_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s:%" PRIu32 ": %s", node->file, node->line, text);
}

const graft_yaml *graft_yaml_find(const graft_yaml *mapping, const char *key)
{
    for (uint32_t i = 0; mapping->kind == GRAFT_YAML_MAPPING && i < mapping->count; i++) {
        if (strcmp(mapping->items[i].key, key) == 0) {
            return &mapping->items[i];
        }
    }
    return NULL;
}

static const char *what_it_is(const graft_yaml *node)
{
    if (node->kind == GRAFT_YAML_SCALAR) {
        return node->text[0] == '\0' ? "empty" : "a text";
    }
    return node->kind == GRAFT_YAML_SEQUENCE ? "a sequence" : "a mapping";
}

/* The text of the non-empty scalar `key`, or NULL with a message; `want` says what is expected. */
static const graft_yaml *find_scalar(graft_env *env, const graft_yaml *mapping, const char *key,
                                     const char *want)
{
    const graft_yaml *member = graft_yaml_find(mapping, key);
    if (member != NULL && member->kind == GRAFT_YAML_SCALAR && member->text[0] != '\0') {
        return member;
    }
    if (mapping->kind != GRAFT_YAML_MAPPING) {
        (void)graft_yaml_fail(env, mapping, "a mapping with the key '%s' is expected here", key);
    } else if (member == NULL) {
        (void)graft_yaml_fail(env, mapping, "the key '%s' is missing", key);
    } else {
        (void)graft_yaml_fail(env, member, "'%s' is %s; %s is expected", key, what_it_is(member),
                              want);
    }
    return NULL;
}

graft_status graft_yaml_text(graft_env *env, const graft_yaml *mapping, const char *key,
                             const char **value)
{
    const graft_yaml *member = find_scalar(env, mapping, key, "a text");
    if (member == NULL) {
        return GRAFT_BAD_INPUT;
    }
    *value = member->text;
    return GRAFT_OK;
}

graft_status graft_yaml_integer(graft_env *env, const graft_yaml *mapping, const char *key,
                                int64_t least, int64_t most, int64_t *value)
{
    const graft_yaml *member = find_scalar(env, mapping, key, "an integer");
    if (member == NULL) {
        return GRAFT_BAD_INPUT;
    }
    char *end = NULL;
    errno = 0;
    int64_t number = strtoll(member->text, &end, 10);
    bool whole = strspn(member->text, "+-0123456789") == strlen(member->text) && *end == '\0';
    if (!whole || end == member->text || errno != 0 || number < least || number > most) {
        return graft_yaml_fail(
            env, member, "'%s' is '%s'; an integer from %" PRId64 " to %" PRId64 " is expected",
            key, member->text, least, most);
    }
    *value = number;
    return GRAFT_OK;
}

graft_status graft_yaml_real(graft_env *env, const graft_yaml *mapping, const char *key,
                             double least, double most, double *value)
{
    const graft_yaml *member = find_scalar(env, mapping, key, "a number");
    if (member == NULL) {
        return GRAFT_BAD_INPUT;
    }
    char *end = NULL;
    double number = strtod(member->text, &end);
    bool decimal = strspn(member->text, "+-.0123456789eE") == strlen(member->text);
    if (!decimal || end == member->text || *end != '\0' || !(number >= least && number <= most)) {
        return graft_yaml_fail(env, member, "'%s' is '%s'; a number from %g to %g is expected", key,
                               member->text, least, most);
    }
    *value = number;
    return GRAFT_OK;
}

graft_status graft_yaml_bool(graft_env *env, const graft_yaml *mapping, const char *key,
                             bool *value)
{
    const graft_yaml *member = find_scalar(env, mapping, key, "true or false");
    if (member == NULL) {
        return GRAFT_BAD_INPUT;
    }
    bool is_true = strcmp(member->text, "true") == 0;
    if (!is_true && strcmp(member->text, "false") != 0) {
        return graft_yaml_fail(env, member, "'%s' is '%s'; true or false is expected", key,
                               member->text);
    }
    *value = is_true;
    return GRAFT_OK;
}

static bool is_among(const char *key, const char *const *allowed)
{
    for (; *allowed != NULL; allowed++) {
        if (strcmp(key, *allowed) == 0) {
            return true;
        }
    }
    return false;
}

graft_status graft_yaml_only(graft_env *env, const graft_yaml *mapping, const char *const *allowed)
{
    GRAFT_RETURN_IF(mapping->kind != GRAFT_YAML_MAPPING,
                    graft_yaml_fail(env, mapping, "a mapping is expected here"));
    for (uint32_t i = 0; i < mapping->count; i++) {
        GRAFT_RETURN_IF(
            !is_among(mapping->items[i].key, allowed),
            graft_yaml_fail(env, &mapping->items[i], "unknown key '%s'", mapping->items[i].key));
    }
    return GRAFT_OK;
}
