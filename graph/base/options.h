/* options.h - what the commands take, one row each: a command is a graft_command, each of its
 * options and words a graft_option. The parser reads the rows, and so do `--help`, the manual page
 * and the completion (usage.h), so that none of them can differ from another.
 *
 * A command keeps what it was given in a struct of its own. A row names the field, whose type is
 * checked when it is compiled:
 *
 *     typedef struct { const char *out; uint64_t rounds; bool steps; } choices;
 *
 *     static const graft_option options[] = {
 *         GRAFT_WORD(choices, out, "OUT.onnx", "the file to write"),
 *         GRAFT_NUMBER(choices, rounds, "--rounds", "N", "21", 3, 10000, "of measurements"),
 *         GRAFT_FLAG(choices, steps, "--steps", "print each rewrite"),
 *     };
 */
#pragma once

#include "env.h"
#include "graph/model.h"

#include <stddef.h>

typedef enum {
    GRAFT_TAKES_TEXT,    /* const char * */
    GRAFT_TAKES_SHIPPED, /* The same; the default is a file that comes with Graft (file.h). */
    GRAFT_TAKES_CHOICE,  /* The same; one of a few. */
    GRAFT_TAKES_NUMBER,  /* uint32_t or uint64_t */
    GRAFT_TAKES_LIST,    /* graft_option_list */
    GRAFT_TAKES_FLAG     /* bool */
} graft_takes;

/* What an option was given that may be repeated, or a word that stands for many. */
typedef struct graft_option_list {
    const char **items;
    uint32_t count;
} graft_option_list;

typedef struct graft_option {
    const char *name; /* "--out"; or "MODEL" for a word, "[FILE]" for one that may be missing, and
                         "FILE..." for all that are left. Words stand in the order of the table. */
    const char *argument; /* What help calls an option's value: "FILE", "FOLDER", "N"... */
    const char *choices;  /* "one|two|three" */
    const char *initial;  /* The default as it would be written; NULL: NULL, 0 or false. */
    const char *help;     /* What it is, in a line. */
    uint64_t least;       /* Of a number, or of the length of a list. */
    uint64_t most;
    size_t offset; /* Of the field. */
    size_t bytes;  /* Of a number. */
    graft_takes takes;
    bool required;
    bool writes; /* The path of a file that is written. */
} graft_option;

/* Where `field` is in `type`; does not compile when its type is not `held`. */
#define GRAFT_FIELD(type, field, held)                                                             \
    (offsetof(type, field) +                                                                       \
     0 * sizeof(                                                                                   \
             char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), held) ? 1 : -1]))
#define GRAFT_NUMBER_FIELD(type, field)                                                            \
    (offsetof(type, field) +                                                                       \
     0 * sizeof(                                                                                   \
             char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), uint32_t) ||        \
                          __builtin_types_compatible_p(__typeof__(((type *)0)->field), uint64_t)   \
                      ? 1                                                                          \
                      : -1]))

/* The rows. Where an option's value has a name, a word has NULL. */
#define GRAFT_ROW(held, type, field, option, text, ...)                                            \
    {                                                                                              \
        .name = (option), .help = (text), .offset = GRAFT_FIELD(type, field, held), __VA_ARGS__    \
    }
#define GRAFT_WORD(type, field, word, text)                                                        \
    GRAFT_ROW(const char *, type, field, word, text, .takes = GRAFT_TAKES_TEXT,                    \
              .required = (word)[0] != '[')
/* From `few` to `many` words. */
#define GRAFT_WORDS(type, field, word, few, many, text)                                            \
    GRAFT_ROW(graft_option_list, type, field, word, text, .takes = GRAFT_TAKES_LIST,               \
              .required = true, .least = (few), .most = (many))
#define GRAFT_TEXT(type, field, option, value, otherwise, text)                                    \
    GRAFT_ROW(const char *, type, field, option, text, .takes = GRAFT_TAKES_TEXT,                  \
              .argument = (value), .initial = (otherwise))
/* A file that is written: before anything is done it is made sure that it can be, and that no other
 * path of the command line is the same file's. A word has no `value`. */
#define GRAFT_OUTPUT(type, field, option, value, text)                                             \
    GRAFT_ROW(const char *, type, field, option, text, .takes = GRAFT_TAKES_TEXT,                  \
              .argument = (value), .required = (option)[0] != '-', .writes = true)
/* Without it the command does nothing. */
#define GRAFT_NEEDED(type, field, option, value, text)                                             \
    GRAFT_ROW(const char *, type, field, option, text, .takes = GRAFT_TAKES_TEXT,                  \
              .argument = (value), .required = true)
/* The path of a file or folder; the default comes with Graft. */
#define GRAFT_SHIPPED(type, field, option, value, file, text)                                      \
    GRAFT_ROW(const char *, type, field, option, text, .takes = GRAFT_TAKES_SHIPPED,               \
              .argument = (value), .initial = (file))
/* One of "a|b|c". */
#define GRAFT_CHOICE(type, field, option, value, names, otherwise, text)                           \
    GRAFT_ROW(const char *, type, field, option, text, .takes = GRAFT_TAKES_CHOICE,                \
              .argument = (value), .choices = (names), .initial = (otherwise))
/* May be repeated. */
#define GRAFT_LIST(type, field, option, value, text)                                               \
    GRAFT_ROW(graft_option_list, type, field, option, text, .takes = GRAFT_TAKES_LIST,             \
              .argument = (value), .most = UINT32_MAX)
/* A whole number. Without a default, what is not given is 0. */
#define GRAFT_NUMBER(type, field, option, value, otherwise, lowest, highest, text)                 \
    {                                                                                              \
        .name = (option), .help = (text), .takes = GRAFT_TAKES_NUMBER, .argument = (value),        \
        .initial = (otherwise), .least = (lowest), .most = (highest),                              \
        .offset = GRAFT_NUMBER_FIELD(type, field), .bytes = sizeof(((type *)0)->field)             \
    }
#define GRAFT_FLAG(type, field, option, text)                                                      \
    GRAFT_ROW(bool, type, field, option, text, .takes = GRAFT_TAKES_FLAG)

typedef struct graft_command {
    const char *name;      /* "optimize", or two words: "cost show". */
    const char *summary;   /* What it does, in a line. */
    const char *forms;     /* Its command lines; NULL: the one that the words make. */
    const char *notes;     /* More to know, behind the options; NULL: nothing. */
    const char *failed;    /* What exit status 1 says; NULL: only what it says of every command. */
    const char *undecided; /* What exit status 3 says; NULL: it does not end so. */
    const graft_option *options;
    uint32_t option_count;
    size_t bytes; /* Of the struct that `run` gets: zero but for what the rows set. */
    graft_status (*run)(graft_env *env, void *choices);
    bool shares; /* Its work, over the ranks that mpirun starts (ranks.h); others refuse them. */
} graft_command;

/* The options and the struct of a command. */
#define GRAFT_TAKES(type, table)                                                                   \
    .options = (table), .option_count = sizeof(table) / sizeof((table)[0]), .bytes = sizeof(type)

/* What every command takes, wherever it stands. */
typedef struct graft_common {
    bool help;
    bool help_short;
    bool json;
    bool quiet;
    bool verbose;
    uint32_t threads; /* 0: not given. */
} graft_common;

const graft_option *graft_options_common(uint32_t *count);
/* Takes these out of argv[1..*argc) up to a "--", closes the gaps, and lowers *argc. */
GRAFT_MUST_USE graft_status graft_options_take_common(graft_env *env, int *argc, char **argv,
                                                      graft_common *common);
/* Sets the defaults of a table. */
void graft_options_defaults(graft_env *env, const graft_option *options, uint32_t count,
                            void *choices);
/* Parses argv[1..argc) and runs the command. Options are "--name VALUE" or "--name=VALUE"; behind a
 * "--" all are words. GRAFT_BAD_INPUT, naming the command and the argument, for unknown options,
 * missing, empty, repeated or impossible values, missing or surplus words, and outputs that would
 * take another file's place; GRAFT_IO for an output that cannot be written; otherwise what the
 * command gives. */
GRAFT_MUST_USE graft_status graft_command_call(graft_env *env, const graft_command *command,
                                               int argc, char **argv);
/* Whether what help calls it is the path of a file. */
bool graft_option_is_path(const graft_option *option);
/* The command lines of a command, one a line. */
const char *graft_command_forms(graft_arena *arena, const graft_command *command);
/* The name among `count` that a mistyped text is closest to, or NULL when none is close. Dashes in
 * front count for nothing. name(names, i) is the i-th. */
const char *graft_options_nearest(const char *text, const void *names, uint32_t count,
                                  const char *(*name)(const void *names, uint32_t i));

/* The names in a list with commas between them, in `arena`; empty ones are passed over. */
const char **graft_options_names(graft_arena *arena, const char *text, uint32_t *count);
/* The sizes NAME=N, of `least` at least, that an option was given: of a list of texts, each of which
 * may hold several with commas between them. */
GRAFT_MUST_USE graft_status graft_options_sizes(graft_env *env, const char *option, uint32_t least,
                                                const graft_option_list *list,
                                                const graft_model_size **sizes, uint32_t *count);
