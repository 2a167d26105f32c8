/* options.h - the arguments of a command: "--name VALUE", "--flag", and words in order. */
#ifndef GRAFT_OPTIONS_H
#define GRAFT_OPTIONS_H

#include "env.h"

/* One option or one word. Exactly one of `value` and `flag` is set; it keeps its default when the
 * option does not occur. */
typedef struct graft_option {
    const char *name;   /* "--out"; or "MODEL" for a word, words in the order of the table. */
    const char **value; /* Receives the text. */
    bool *flag;         /* Set to true. */
    bool required;
} graft_option;

/* Parses argv[1..argc). GRAFT_BAD_INPUT, naming the command and the argument, for unknown options,
 * missing values, missing or surplus words. */
GRAFT_MUST_USE graft_status graft_options_parse(graft_env *env, int argc, char **argv,
                                                const graft_option *options, uint32_t count);
/* A whole number from `least` to `most`; `name` is for the message. */
GRAFT_MUST_USE graft_status graft_options_number(graft_env *env, const char *name, const char *text,
                                                 uint64_t least, uint64_t most, uint64_t *number);

/* The names in a list with commas between them, in `arena`; empty ones are passed over. */
const char **graft_options_names(graft_arena *arena, const char *text, uint32_t *count);

#endif
