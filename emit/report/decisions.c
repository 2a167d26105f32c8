/* decisions.c - see decisions.h. */
#include "emit/report/decisions.h"

#include "graph/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool graft_text_number(const char **text, int base, uint64_t most, uint64_t *number)
{
    char *end = NULL;
    bool starts =
        (**text >= '0' && **text <= '9') || (base == 16 && **text >= 'a' && **text <= 'f');
    errno = 0;
    unsigned long long value = starts ? strtoull(*text, &end, base) : 0;
    if (!starts || errno != 0 || value > most) {
        return false;
    }
    *text = end;
    *number = value;
    return true;
}

/* Takes `word` from the front of *text. */
static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) {
        return false;
    }
    *text += length;
    return true;
}

static bool take_step(const char **text, graft_action *step)
{
    uint64_t xfer = 0;
    uint64_t location = 0;
    if (!take_word(text, "step ") || !graft_text_number(text, 10, UINT16_MAX, &xfer) ||
        !take_word(text, " ") || !graft_text_number(text, 10, UINT16_MAX, &location) ||
        !take_word(text, "\n")) {
        return false;
    }
    *step = (graft_action){.xfer = (uint16_t)xfer, .location = (uint16_t)location};
    return true;
}

static bool take_hash(const char **text, uint64_t *hash)
{
    return take_word(text, "hash ") && graft_text_number(text, 16, UINT64_MAX, hash) &&
           take_word(text, "\n") && **text == '\0';
}

static uint32_t count_lines(const char *text)
{
    uint32_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

graft_status graft_decisions_read(graft_env *env, graft_arena *arena, const char *path,
                                  graft_decisions *decisions)
{
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, arena, path, &data, &size));
    const char *text = (const char *)data;
    graft_decisions read = {.steps = GRAFT_NEW(arena, graft_action, count_lines(text) + 1)};
    for (const char *line = text; take_step(&line, &read.steps[read.step_count]);) {
        read.step_count++;
        text = line;
    }
    if (!take_hash(&text, &read.hash)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s:%u: expected 'step RULE LOCATION', or 'hash' and nothing behind it",
                          path, read.step_count + 1);
    }
    *decisions = read;
    return GRAFT_OK;
}
