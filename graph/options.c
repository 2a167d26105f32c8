/* options.c - see options.h. */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const graft_option *find_option(const graft_option *options, uint32_t count,
                                       const char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(options[i].name, text) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* The next word of the table that has no text yet; `given` has one entry per option. */
static const graft_option *next_word(const graft_option *options, uint32_t count, const bool *given)
{
    for (uint32_t i = 0; i < count; i++) {
        if (options[i].name[0] != '-' && !given[i]) {
            return &options[i];
        }
    }
    return NULL;
}

static graft_status check_required(graft_env *env, const char *command, const graft_option *options,
                                   uint32_t count, const bool *given)
{
    for (uint32_t i = 0; i < count; i++) {
        if (options[i].required && !given[i]) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s is missing", command, options[i].name);
        }
    }
    return GRAFT_OK;
}

graft_status graft_options_parse(graft_env *env, int argc, char **argv, const graft_option *options,
                                 uint32_t count)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    bool *given = GRAFT_NEW(env->scratch, bool, count);
    for (int i = 1; i < argc; i++) {
        bool is_word = argv[i][0] != '-';
        const graft_option *option =
            is_word ? next_word(options, count, given) : find_option(options, count, argv[i]);
        if (option == NULL) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: what is '%s'?", argv[0], argv[i]);
            goto done;
        }
        given[option - options] = true;
        if (option->flag != NULL) {
            *option->flag = true;
        } else if (is_word || i + 1 < argc) {
            i += is_word ? 0 : 1;
            *option->value = argv[i];
        } else {
            status =
                GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s needs a value", argv[0], option->name);
            goto done;
        }
    }
    GRAFT_CHECK(check_required(env, argv[0], options, count, given));
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_options_number(graft_env *env, const char *name, const char *text,
                                  uint64_t least, uint64_t most, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' || value < least ||
        value > most) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s needs a number from %" PRIu64 " to %" PRIu64 ", has '%s'", name,
                          least, most, text);
    }
    *number = value;
    return GRAFT_OK;
}

const char **graft_options_names(graft_arena *arena, const char *text, uint32_t *count)
{
    char *copy = graft_arena_strdup(arena, text);
    const char **names = GRAFT_NEW(arena, const char *, strlen(text) + 1);
    char *rest = NULL;
    *count = 0;
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        names[(*count)++] = name;
    }
    return names;
}
