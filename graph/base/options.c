/* options.c - see options.h. */
#include "options.h"

#include "file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 40 };

/* ------------------------------------------------------------------ mistyped names */

static uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* How many letters must be changed, added, left out or swapped with their neighbour. */
static uint32_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    uint32_t d[NAME_MOST + 1][NAME_MOST + 1];
    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (uint32_t)(i + j);
                continue;
            }
            d[i][j] = least_of(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                               1 + least_of(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = least_of(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a_length][b_length];
}

const char *graft_options_nearest(const char *text, const void *names, uint32_t count,
                                  const char *(*name)(const void *names, uint32_t i))
{
    enum { BEGINNING = 3 }; /* Letters that name what they begin. */
    const char *nearest = NULL;
    uint32_t best = UINT32_MAX;
    text += strspn(text, "-");
    size_t length = strcspn(text, "=");
    for (uint32_t i = 0; i < count; i++) {
        const char *bare = name(names, i) + strspn(name(names, i), "-");
        size_t bare_length = strlen(bare);
        if (length == 0 || length > NAME_MOST || bare_length > NAME_MOST) {
            continue;
        }
        bool begins = length >= BEGINNING && strncmp(text, bare, length) == 0;
        uint32_t apart = begins ? 1 : distance(text, length, bare, bare_length);
        if (apart < best && apart <= (least_of((uint32_t)length, (uint32_t)bare_length) + 1) / 3) {
            best = apart;
            nearest = name(names, i);
        }
    }
    return nearest;
}

static const char *option_name(const void *options, uint32_t i)
{
    const char *name = ((const graft_option *)options)[i].name;
    return name[0] == '-' ? name : "";
}

/* "does not understand 'x'", and what may have been meant. */
static graft_status fail_unknown(graft_env *env, const graft_command *command, const char *text)
{
    uint32_t common_count = 0;
    const graft_option *common = graft_options_common(&common_count);
    const char *meant =
        graft_options_nearest(text, command->options, command->option_count, option_name);
    if (meant == NULL) {
        meant = graft_options_nearest(text, common, common_count, option_name);
    }
    if (meant != NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s does not understand '%s'; did you mean %s?",
                          command->name, text, meant);
    }
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s does not understand '%s'; see graft help %s",
                      command->name, text, command->name);
}

/* ------------------------------------------------------------------ values */

/* A whole number from `least` to `most`; `name` is for the message. */
static graft_status parse_number(graft_env *env, const char *name, const char *text, uint64_t least,
                                 uint64_t most, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    GRAFT_RETURN_IF(text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' || value < least ||
                        value > most,
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                               "%s needs a number from %" PRIu64 " to %" PRIu64 ", has '%s'", name,
                               least, most, text));
    *number = value;
    return GRAFT_OK;
}

static graft_status set_number(graft_env *env, const graft_option *option, const char *text,
                               void *field)
{
    uint64_t number = 0;
    graft_status status =
        parse_number(env, option->name, text, option->least, option->most, &number);
    if (status == GRAFT_OK && option->bytes == sizeof(uint32_t)) {
        const uint32_t narrow = (uint32_t)number;
        memcpy(field, &narrow, sizeof narrow);
    } else if (status == GRAFT_OK) {
        memcpy(field, &number, sizeof number);
    }
    return status;
}

/* "a, b or c" of "a|b|c". */
static const char *print_choices(graft_arena *arena, const char *choices)
{
    graft_buffer text = {.arena = arena};
    const char *last = strrchr(choices, '|');
    for (const char *c = choices; *c != '\0'; c++) {
        if (*c != '|') {
            graft_buffer_append(&text, c, 1);
        } else {
            graft_buffer_printf(&text, "%s", c == last ? " or " : ", ");
        }
    }
    return text.data;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    while (*choices != '\0') {
        size_t choice = strcspn(choices, "|");
        if (choice == length && strncmp(choices, text, length) == 0) {
            return true;
        }
        choices += choice + (choices[choice] == '|');
    }
    return false;
}

/* `room` is for as many items as the command line may hold. */
static graft_status append_item(graft_env *env, const graft_option *option, const char *text,
                                uint32_t room, void *field)
{
    graft_option_list *list = field;
    GRAFT_RETURN_IF(list->count == option->most,
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT, "'%s' is one too many", text));
    if (list->items == NULL) {
        list->items = GRAFT_NEW(env->life, const char *, room);
    }
    list->items[list->count++] = text;
    return GRAFT_OK;
}

static graft_status set_value(graft_env *env, const graft_option *option, const char *text,
                              uint32_t room, void *choices)
{
    void *field = (char *)choices + option->offset;
    switch (option->takes) {
    case GRAFT_TAKES_NUMBER:
        return set_number(env, option, text, field);
    case GRAFT_TAKES_LIST:
        return append_item(env, option, text, room, field);
    case GRAFT_TAKES_FLAG:
        *(bool *)field = true;
        return GRAFT_OK;
    case GRAFT_TAKES_CHOICE:
        if (!is_choice(option->choices, text)) {
            size_t length = strlen(option->name); /* Without the brackets of "[NAME]". */
            bool bare = option->name[0] != '[';
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%.*s is %s, not '%s'",
                              (int)(bare ? length : length - 2), option->name + (bare ? 0 : 1),
                              print_choices(env->life, option->choices), text);
        }
        break;
    case GRAFT_TAKES_TEXT:
    case GRAFT_TAKES_SHIPPED:
        break;
    }
    memcpy(field, &text, sizeof text);
    return GRAFT_OK;
}

void graft_options_defaults(graft_env *env, const graft_option *options, uint32_t count,
                            void *choices)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *initial = options[i].initial;
        if (initial != NULL && options[i].takes == GRAFT_TAKES_SHIPPED) {
            initial = graft_file_shipped(env, initial);
        }
        graft_status status =
            initial == NULL ? GRAFT_OK : set_value(env, &options[i], initial, 1, choices);
        assert(status == GRAFT_OK); /* A default is in its range. */
        (void)status;
    }
}

/* ------------------------------------------------------------------ command lines */

/* The option that an argument names, as itself or before a '='. */
static const graft_option *find_option(const graft_option *options, uint32_t count,
                                       const char *text)
{
    size_t length = strcspn(text, "=");
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(options[i].name, text, length) == 0 && options[i].name[length] == '\0') {
            return &options[i];
        }
    }
    return NULL;
}

/* The value of the option that argv[*at] names; *at moves to the last argument that is used. argv
 * ends with NULL. */
static graft_status find_value(graft_env *env, const char *command, const graft_option *option,
                               char **argv, int *at, const char **value)
{
    const char *equals = strchr(argv[*at], '=');
    *value = "";
    if (option->takes == GRAFT_TAKES_FLAG) {
        return equals == NULL ? GRAFT_OK
                              : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s takes no value", command,
                                           option->name);
    }
    if (equals != NULL) {
        *value = equals + 1;
    } else if (argv[*at + 1] != NULL) {
        *value = argv[++*at];
    } else if (option->takes != GRAFT_TAKES_NUMBER) { /* What needs a number says so itself. */
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s needs a value", command, option->name);
    }
    return GRAFT_OK;
}

/* No value that is empty, and none that would replace another one in silence. */
static graft_status check_value(graft_env *env, const char *command, const graft_option *option,
                                const char *value, bool given)
{
    const bool is_flag = option->takes == GRAFT_TAKES_FLAG;
    if (given && !is_flag && option->takes != GRAFT_TAKES_LIST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s is given twice", command, option->name);
    }
    GRAFT_RETURN_IF(!is_flag && option->takes != GRAFT_TAKES_NUMBER && value[0] == '\0',
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s is empty", command, option->name));
    return GRAFT_OK;
}

const graft_option *graft_options_common(uint32_t *count)
{
    static const graft_option common[] = {
        GRAFT_FLAG(graft_common, json, "--json", "print results as JSON Lines"),
        GRAFT_FLAG(graft_common, quiet, "--quiet", "print errors only"),
        GRAFT_FLAG(graft_common, verbose, "--verbose", "print details"),
        GRAFT_NUMBER(
            graft_common, threads, "--threads", "N", NULL, 1, GRAFT_THREADS_MOST,
            "worker threads (default: the processors of this machine); for measure and optimize "
            "those of the device (default: one)"),
        GRAFT_FLAG(graft_common, help, "--help", "explain the command"),
        GRAFT_FLAG(graft_common, help_short, "-h", "the same"),
    };
    *count = sizeof common / sizeof common[0];
    return common;
}

graft_status graft_options_take_common(graft_env *env, int *argc, char **argv, graft_common *common)
{
    uint32_t count = 0;
    const graft_option *options = graft_options_common(&count);
    uint32_t given = 0; /* A bit each. */
    int kept = 1;
    int i = 1;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const graft_option *option = find_option(options, count, argv[i]);
        const char *value = NULL;
        if (option == NULL) {
            argv[kept++] = argv[i];
            continue;
        }
        GRAFT_PASS(find_value(env, "graft", option, argv, &i, &value));
        const uint32_t bit = 1U << (uint32_t)(option - options);
        GRAFT_PASS(check_value(env, "graft", option, value, (given & bit) != 0));
        given |= bit;
        GRAFT_PASS(set_value(env, option, value, 1, common));
    }
    for (; i < *argc; i++) {
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return GRAFT_OK;
}

/* The next word of the table that has no text yet; `given` has one entry per option. */
static const graft_option *next_word(const graft_command *command, const uint32_t *given)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        if (option->name[0] != '-' && (given[i] == 0 || option->takes == GRAFT_TAKES_LIST)) {
            return option;
        }
    }
    return NULL;
}

bool graft_option_is_path(const graft_option *option)
{
    const char *what = option->argument != NULL ? option->argument : option->name;
    const char *dot = strchr(what, '.'); /* "OUT.h" ends in one, "NAME..." does not. */
    return strstr(what, "FILE") != NULL || strstr(what, "MODEL") != NULL ||
           strstr(what, "OUT") != NULL || (dot != NULL && dot[1] != '.');
}

/* The path that a row was given; NULL: none, or it takes none. */
static const char *path_of(const graft_option *option, const void *choices)
{
    const char *path = NULL;
    if ((option->takes == GRAFT_TAKES_TEXT || option->takes == GRAFT_TAKES_SHIPPED) &&
        graft_option_is_path(option)) {
        memcpy(&path, (const char *)choices + option->offset, sizeof path);
    }
    return path;
}

static graft_status check_output(graft_env *env, const graft_command *command,
                                 const graft_option *output, const void *choices)
{
    const char *path = path_of(output, choices);
    if (path == NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_file_check(env, path));
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        const char *other = option == output ? NULL : path_of(option, choices);
        GRAFT_RETURN_IF(other != NULL && graft_file_is_same(path, other),
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s would take the place of %s, '%s'",
                                   command->name, output->name, option->name, other));
    }
    return GRAFT_OK;
}

static graft_status check_outputs(graft_env *env, const graft_command *command, const void *choices)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        if (command->options[i].writes) {
            GRAFT_PASS(check_output(env, command, &command->options[i], choices));
        }
    }
    return GRAFT_OK;
}

static graft_status check_given(graft_env *env, const graft_command *command, const uint32_t *given)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        uint64_t least = option->required && option->least == 0 ? 1 : option->least;
        bool counts = option->required || (option->takes == GRAFT_TAKES_LIST && given[i] > 0);
        if (counts && given[i] < least) {
            const char *forms = graft_command_forms(env->life, command);
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s is missing; usage: %.*s", command->name,
                              option->name, (int)strcspn(forms, "\n"), forms);
        }
    }
    return GRAFT_OK;
}

static graft_status parse(graft_env *env, const graft_command *command, int argc, char **argv,
                          void *choices)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t *given = GRAFT_NEW(env->scratch, uint32_t, command->option_count);
    bool words_only = false;
    graft_options_defaults(env, command->options, command->option_count, choices);
    for (int i = 1; i < argc; i++) {
        if (!words_only && strcmp(argv[i], "--") == 0) {
            words_only = true;
            continue;
        }
        bool is_word = words_only || argv[i][0] != '-';
        const char *value = argv[i];
        const graft_option *option =
            is_word ? next_word(command, given)
                    : find_option(command->options, command->option_count, argv[i]);
        GRAFT_RETURN_IF(option == NULL, fail_unknown(env, command, argv[i]));
        if (!is_word) {
            GRAFT_PASS(find_value(env, command->name, option, argv, &i, &value));
        }
        GRAFT_PASS(
            check_value(env, command->name, option, value, given[option - command->options]++ > 0));
        GRAFT_PASS(set_value(env, option, value, (uint32_t)argc, choices));
    }
    GRAFT_PASS(check_given(env, command, given));
    return check_outputs(env, command, choices);
}

const char *graft_command_forms(graft_arena *arena, const graft_command *command)
{
    if (command->forms != NULL) {
        return command->forms;
    }
    graft_buffer text = {.arena = arena};
    bool options = false;
    graft_buffer_printf(&text, "graft %s", command->name);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        options = options || (option->name[0] == '-' && !option->required);
        if (option->name[0] != '-') {
            graft_buffer_printf(&text, " %s", option->name);
        } else if (option->required) {
            graft_buffer_printf(&text, " %s %s", option->name, option->argument);
        }
    }
    graft_buffer_printf(&text, "%s", options ? " [options]" : "");
    return text.data;
}

graft_status graft_command_call(graft_env *env, const graft_command *command, int argc, char **argv)
{
    void *choices = graft_arena_alloc(env->life, command->bytes);
    memset(choices, 0, command->bytes);
    GRAFT_PASS(parse(env, command, argc, argv, choices));
    return command->run(env, choices);
}

/* ------------------------------------------------------------------ lists */

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

/* Cuts the first NAME=N off *text: a comma without a '=' before it belongs to the name. */
static graft_status take_size(graft_env *env, const char *option, uint32_t least, char **text,
                              graft_model_size *size)
{
    const char *whole = *text;
    char *name = graft_arena_strdup(env->life, whole);
    char *equals = strchr(name + (name[0] != '\0'), '=');
    uint64_t value = 0;
    GRAFT_RETURN_IF(
        equals == NULL,
        GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s needs NAME=N,NAME=N..., has '%s'", option, whole));
    char *comma = strchr(equals, ',');
    *text += comma == NULL ? strlen(whole) : (size_t)(comma + 1 - name);
    if (comma != NULL) {
        *comma = '\0';
    }
    equals = strrchr(name, '=');
    *equals = '\0';
    GRAFT_PASS(parse_number(env, option, equals + 1, least, INT32_MAX, &value));
    *size = (graft_model_size){.name = name, .value = (int32_t)value};
    return GRAFT_OK;
}

graft_status graft_options_sizes(graft_env *env, const char *option, uint32_t least,
                                 const graft_option_list *list, const graft_model_size **sizes,
                                 uint32_t *count)
{
    size_t room = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        room += strlen(list->items[i]) + 1;
    }
    graft_model_size *read = GRAFT_NEW(env->life, graft_model_size, room);
    *count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        char *text = graft_arena_strdup(env->life, list->items[i]);
        do {
            GRAFT_PASS(take_size(env, option, least, &text, &read[(*count)++]));
        } while (*text != '\0');
    }
    *sizes = read;
    return GRAFT_OK;
}
