/* device_answers.c - see device_answers.h. */
#include "cost/device/device_answers.h"

#include "graph/base/settings.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 4096, ROUNDS_MOST = 1000000, REFUSAL_MOST = 200 };

static const double least_ns = 1.0;
static const double most_ns = 3600e9;

static const char answer_name[] = "its answer";

/* Printable ASCII that needs no escapes wherever it is written. */
static bool is_plain(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') {
            return false;
        }
    }
    return true;
}

/* A refusal is for people: what cannot be printed is left out. */
static const char *copy_refusal(graft_arena *arena, const char *text)
{
    char *copy = graft_arena_printf(arena, "%.*s", REFUSAL_MOST, text);
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    return copy[0] == '\0' ? "it does not say why" : copy;
}

/* The object, if it answers the question; *refusal is set. */
static graft_status parse_answer(graft_env *env, graft_arena *arena, const graft_answer_line *line,
                                 const char **refusal, const graft_yaml **root)
{
    int64_t given = 0;
    const char *words = NULL;
    if (line->size < 2 || line->text[0] != '{' || line->text[line->size - 1] != '}') {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s is no JSON object", answer_name);
    }
    GRAFT_PASS(graft_yaml_parse(env, arena, answer_name, line->text, line->size, root));
    GRAFT_PASS(graft_yaml_integer(env, *root, "id", 0, UINT32_MAX, &given));
    if (given != line->id) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s is to question %u", answer_name,
                          (unsigned)given);
    }
    if (graft_yaml_find(*root, "unsupported") != NULL) {
        GRAFT_PASS(graft_yaml_text(env, *root, "unsupported", &words));
    }
    *refusal = words == NULL ? NULL : copy_refusal(arena, words);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- hello */

static graft_status read_text(graft_env *env, const graft_yaml *root, const char *key, char *text,
                              size_t bytes)
{
    const char *value = NULL;
    GRAFT_PASS(graft_yaml_text(env, root, key, &value));
    if (strlen(value) >= bytes || !is_plain(value)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s: '%s' is not 1 to %zu printable ASCII characters without quotes",
                          answer_name, key, bytes - 1);
    }
    memcpy(text, value, strlen(value) + 1);
    return GRAFT_OK;
}

/* The member "operators". Names that Graft does not know are passed over. */
static graft_status read_operators(graft_env *env, const graft_yaml *root, bool *has)
{
    const graft_yaml *list = graft_yaml_find(root, "operators");
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        const graft_op_info *info = graft_op(op);
        has[op] = list == NULL;
        for (uint32_t i = 0; info != NULL && list != NULL && i < list->count; i++) {
            const graft_yaml *item = &list->items[i];
            has[op] =
                has[op] || (item->kind == GRAFT_YAML_SCALAR && strcmp(item->text, info->name) == 0);
        }
    }
    return list == NULL || list->kind == GRAFT_YAML_SEQUENCE
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: 'operators' is no list", answer_name);
}

/* The member "fuses". Its texts are kept as they are. */
static graft_status read_fuses(graft_env *env, const graft_yaml *root, graft_answer_hello *said)
{
    const graft_yaml *list = graft_yaml_find(root, "fuses");
    if (list == NULL) {
        return GRAFT_OK;
    }
    const char **fuses = GRAFT_NEW(env->life, const char *, list->count + 1);
    for (uint32_t i = 0; list->kind == GRAFT_YAML_SEQUENCE && i < list->count; i++) {
        if (list->items[i].kind == GRAFT_YAML_SCALAR) {
            fuses[said->fuse_count++] = graft_arena_strdup(env->life, list->items[i].text);
        }
    }
    said->fuses = fuses;
    return list->kind == GRAFT_YAML_SEQUENCE && said->fuse_count == list->count
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: 'fuses' is no list of texts", answer_name);
}

graft_status graft_answer_read_hello(graft_env *env, graft_arena *arena,
                                     const graft_answer_line *line, const char **refusal,
                                     graft_answer_hello *hello)
{
    const graft_yaml *root = NULL;
    graft_answer_hello said = {.options = ""};
    int64_t protocol = 0;
    int64_t threads = 0;
    GRAFT_PASS(parse_answer(env, arena, line, refusal, &root));
    if (*refusal != NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_yaml_integer(env, root, "protocol", GRAFT_ANSWER_PROTOCOL,
                                  GRAFT_ANSWER_PROTOCOL, &protocol));
    GRAFT_PASS(read_text(env, root, "name", said.name, sizeof(said.name)));
    GRAFT_PASS(read_text(env, root, "version", said.version, sizeof(said.version)));
    GRAFT_PASS(read_text(env, root, "hardware", said.hardware, sizeof(said.hardware)));
    if (graft_yaml_find(root, "options") != NULL) {
        GRAFT_PASS(read_text(env, root, "options", said.options, sizeof(said.options)));
    }
    GRAFT_PASS(graft_yaml_integer(env, root, "threads", 1, THREADS_MOST, &threads));
    GRAFT_PASS(graft_yaml_bool(env, root, "times_models", &said.times_models));
    GRAFT_PASS(read_operators(env, root, said.has));
    GRAFT_PASS(read_fuses(env, root, &said));
    said.threads = (uint32_t)threads;
    *hello = said;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- times */

graft_status graft_answer_read_time(graft_env *env, graft_arena *arena,
                                    const graft_answer_line *line, const char **refusal,
                                    graft_answer_time *time)
{
    const graft_yaml *root = NULL;
    graft_answer_time said = {.rounds = 1};
    int64_t rounds = 1;
    GRAFT_PASS(parse_answer(env, arena, line, refusal, &root));
    if (*refusal != NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_yaml_real(env, root, "median_ns", least_ns, most_ns, &said.median_ns));
    GRAFT_PASS(graft_yaml_real(env, root, "spread_ns", 0.0, most_ns, &said.spread_ns));
    if (graft_yaml_find(root, "rounds") != NULL) {
        GRAFT_PASS(graft_yaml_integer(env, root, "rounds", 1, ROUNDS_MOST, &rounds));
    }
    said.rounds = (uint32_t)rounds;
    *time = said;
    return GRAFT_OK;
}

/* One number of a list. */
static graft_status read_item(graft_env *env, const graft_yaml *item, double *value)
{
    const char *text = item->kind == GRAFT_YAML_SCALAR ? item->text : "[";
    char *end = NULL;
    double read = strtod(text, &end);
    if (end == text || *end != '\0' || strspn(text, "+-.0123456789eE") != strlen(text) ||
        !(read >= least_ns && read <= most_ns)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: '%.40s' is no time from 1 ns to an hour",
                          answer_name, text);
    }
    *value = read;
    return GRAFT_OK;
}

/* The member "rounds_ns": a list of `count` lists of `rounds` numbers. */
static graft_status read_lists(graft_env *env, const graft_yaml *root, uint32_t count,
                               uint32_t rounds, double *read)
{
    const graft_yaml *lists = graft_yaml_find(root, "rounds_ns");
    bool fits = lists != NULL && lists->kind == GRAFT_YAML_SEQUENCE && lists->count == count;
    for (uint32_t k = 0; k < count && fits; k++) {
        const graft_yaml *list = &lists->items[k];
        fits = list->kind == GRAFT_YAML_SEQUENCE && list->count == rounds;
        for (uint32_t i = 0; i < rounds && fits; i++) {
            GRAFT_PASS(read_item(env, &list->items[i], &read[(size_t)k * rounds + i]));
        }
    }
    if (!fits) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: 'rounds_ns' is not %u lists of %u times",
                          answer_name, count, rounds);
    }
    return GRAFT_OK;
}

graft_status graft_answer_read_turns(graft_env *env, graft_arena *arena,
                                     const graft_answer_line *line, const char **refusal,
                                     uint32_t count, uint32_t rounds, double *const *times)
{
    const graft_yaml *root = NULL;
    double *read = GRAFT_NEW(arena, double, (size_t)count *rounds);
    GRAFT_PASS(parse_answer(env, arena, line, refusal, &root));
    if (*refusal != NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(read_lists(env, root, count, rounds, read));
    for (uint32_t k = 0; k < count; k++) {
        memcpy(times[k], read + (size_t)k * rounds, rounds * sizeof(read[0]));
    }
    return GRAFT_OK;
}
