/* usage.c - see usage.h. */
#include "usage.h"

#include "file.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ one row */

/* "--out FOLDER" */
static const char *row_name(graft_arena *arena, const graft_option *option)
{
    return option->argument == NULL
               ? option->name
               : graft_arena_printf(arena, "%s %s", option->name, option->argument);
}

/* "from 3 to 10000", "up to 16", or nothing where any number will do. */
static void print_range(graft_buffer *text, const graft_option *option)
{
    bool bounded = option->takes == GRAFT_TAKES_NUMBER && option->most < INT32_MAX;
    if (bounded && option->least > 0) {
        graft_buffer_printf(text, "%" PRIu64 " to %" PRIu64, option->least, option->most);
    } else if (bounded) {
        graft_buffer_printf(text, "up to %" PRIu64, option->most);
    }
}

/* The help with the choices, the range and the default behind it. */
static const char *row_help(graft_arena *arena, const graft_option *option)
{
    graft_buffer text = {.arena = arena};
    graft_buffer more = {.arena = arena};
    graft_buffer_printf(&text, "%s", option->help);
    graft_buffer_printf(&more, "%s", "");
    for (const char *c = option->choices; c != NULL && *c != '\0'; c++) {
        graft_buffer_printf(&more, *c == '|' ? ", " : "%c", *c);
    }
    print_range(&more, option);
    if (option->initial != NULL) {
        graft_buffer_printf(&more, "%sdefault: %s", more.size > 0 ? "; " : "", option->initial);
    }
    if (option->takes == GRAFT_TAKES_LIST && option->name[0] == '-') {
        graft_buffer_printf(&more, "%smay be repeated", more.size > 0 ? "; " : "");
    }
    if (more.size > 0) {
        graft_buffer_printf(&text, "%s(%s)", text.size > 0 ? " " : "", more.data);
    }
    return text.data;
}

/* A line may be as long as in the sources. */
enum { LINE_BYTES = 100 };

/* Prints the words of a text, from column `indent` on, in lines that are indented as far. */
static void print_wrapped(const char *text, size_t indent, FILE *out)
{
    size_t column = indent;
    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > LINE_BYTES) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fprintf(out, "%.*s", (int)word, text);
        column += word;
        text += word + strspn(text + word, " ");
    }
    (void)fputc('\n', out);
}

/* Words first, then options. */
static void print_rows(graft_arena *arena, const graft_option *options, uint32_t count, FILE *out)
{
    size_t columns = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(row_name(arena, &options[i]));
        columns = length > columns ? length : columns;
    }
    for (int words = 1; words >= 0; words--) {
        for (uint32_t i = 0; i < count; i++) {
            if ((options[i].name[0] != '-') == (words == 1)) {
                (void)fprintf(out, "  %-*s  ", (int)columns, row_name(arena, &options[i]));
                print_wrapped(row_help(arena, &options[i]), columns + 4, out);
            }
        }
    }
}

/* ------------------------------------------------------------------ exit statuses */

static const struct {
    int number;
    const char *text;
} exits[] = {
    {0,                      "all that was asked was done, and all of it holds"                  },
    {GRAFT_EXIT_FALSE,       "it was done, and something is false or failed"                     },
    {GRAFT_EXIT_INPUT,       "bad usage or input: a command line, file or rule that is no good"  },
    {GRAFT_EXIT_OPEN,        "nothing is false, but something is undecided or within bounds only"},
    {GRAFT_EXIT_NO_MEMORY,   "memory ran out"                                                    },
    {GRAFT_EXIT_INTERRUPTED, "interrupted"                                                       },
};

enum { EXIT_COUNT = sizeof exits / sizeof exits[0] };

/* What a status says of a command; NULL when it never ends so. */
static const char *exit_text(const graft_command *command, uint32_t i)
{
    switch (exits[i].number) {
    case GRAFT_EXIT_FALSE:
        return command->failed != NULL ? command->failed
                                       : "what was asked failed, or could not be printed";
    case GRAFT_EXIT_OPEN:
        return command->undecided;
    default:
        return exits[i].text;
    }
}

/* ------------------------------------------------------------------ help */

void graft_usage_list(graft_arena *arena, const graft_commands *commands, FILE *out)
{
    uint32_t count = 0;
    const graft_option *common = graft_options_common(&count);
    (void)fputs("usage: graft [options] COMMAND [arguments]\n\ncommands:\n", out);
    for (uint32_t i = 0; i < commands->count; i++) {
        (void)fprintf(out, "  %-15s %s\n", commands->list[i]->name, commands->list[i]->summary);
    }
    (void)fputs("\noptions of every command:\n", out);
    print_rows(arena, common, count, out);
    (void)fputs("\nexit status:\n", out);
    for (uint32_t i = 0; i < EXIT_COUNT; i++) {
        (void)fprintf(out, "  %-10d %s\n", exits[i].number, exits[i].text);
    }
}

void graft_usage_explain(graft_arena *arena, const graft_command *command, FILE *out)
{
    (void)fprintf(out, "graft %s: %s\n\n%s\n", command->name, command->summary,
                  graft_command_forms(arena, command));
    if (command->option_count > 0) {
        (void)fputs("\n", out);
        print_rows(arena, command->options, command->option_count, out);
    }
    if (command->notes != NULL) {
        (void)fprintf(out, "\n%s\n", command->notes);
    }
    (void)fputs("\nexit status:\n", out);
    for (uint32_t i = 0; i < EXIT_COUNT; i++) {
        if (exit_text(command, i) != NULL) {
            (void)fprintf(out, "  %-4d %s\n", exits[i].number, exit_text(command, i));
        }
    }
}

/* ------------------------------------------------------------------ the manual page */

/* A text in roff: dashes stay dashes, and a line may begin with a dot or a quote. */
static void put_roff(const char *text, FILE *out)
{
    bool begins = true;
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\'')) {
            (void)fputs("\\&", out);
        }
        if (*text == '-') {
            (void)fputs("\\-", out);
        } else if (*text == '\\') {
            (void)fputs("\\e", out);
        } else {
            (void)fputc(*text, out);
        }
        begins = *text == '\n';
    }
}

static void put_item(const char *name, const char *text, FILE *out)
{
    (void)fputs(".TP\n.B ", out);
    put_roff(name, out);
    (void)fputs("\n", out);
    put_roff(text[0] == '\0' ? "\n" : text, out);
    (void)fputs("\n", out);
}

static void put_rows(graft_arena *arena, const graft_option *options, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        put_item(row_name(arena, &options[i]), row_help(arena, &options[i]), out);
    }
}

static void put_command(graft_arena *arena, const graft_command *command, FILE *out)
{
    (void)fprintf(out, ".SS graft %s\n", command->name);
    put_roff(command->summary, out);
    (void)fputs(".\n.PP\n.nf\n", out);
    put_roff(graft_command_forms(arena, command), out);
    (void)fputs("\n.fi\n", out);
    put_rows(arena, command->options, command->option_count, out);
    if (command->notes != NULL) {
        (void)fputs(".PP\n", out);
        put_roff(command->notes, out);
        (void)fputs("\n", out);
    }
    for (uint32_t i = 0; i < EXIT_COUNT; i++) {
        bool own = exits[i].number == GRAFT_EXIT_FALSE ? command->failed != NULL
                                                       : exits[i].number == GRAFT_EXIT_OPEN;
        if (own && exit_text(command, i) != NULL) {
            put_item(graft_arena_printf(arena, "exit status %d", exits[i].number),
                     exit_text(command, i), out);
        }
    }
}

void graft_usage_manual(graft_arena *arena, const graft_commands *commands, FILE *out)
{
    uint32_t count = 0;
    const graft_option *common = graft_options_common(&count);
    (void)fputs(
        ".TH GRAFT 1 \"\" \"Graft " GRAFT_VERSION "\" \"User commands\"\n"
        ".SH NAME\ngraft \\- proved graph substitutions for tensor programs\n"
        ".SH SYNOPSIS\n.B graft\n[options]\n.I COMMAND\n[arguments]\n"
        ".SH DESCRIPTION\nGraft rewrites neural networks by substitutions that are proved for all "
        "sizes and all values of attributes, chosen by measured costs. It proves rules of your "
        "own, optimises ONNX files, and trains policies that are emitted as one C header.\n"
        ".SH OPTIONS\nEvery command takes:\n",
        out);
    put_rows(arena, common, count, out);
    (void)fputs(".SH COMMANDS\n", out);
    for (uint32_t i = 0; i < commands->count; i++) {
        put_command(arena, commands->list[i], out);
    }
    (void)fputs(".SH EXIT STATUS\n", out);
    for (uint32_t i = 0; i < EXIT_COUNT; i++) {
        put_item(graft_arena_printf(arena, "%d", exits[i].number), exits[i].text, out);
    }
    (void)fputs(".SH ENVIRONMENT\n", out);
    put_item("GRAFT_DATA",
             "The folder that holds rules/ and train/settings.yaml, instead of the "
             "one that was installed with the program.",
             out);
    put_item("XDG_CACHE_HOME",
             "Measured costs are kept in graft/ below it, by default below "
             "~/.cache.",
             out);
}

/* ------------------------------------------------------------------ completion */

/* What completes a value or a word, from the choices or from what help calls it. */
static const char *completes(graft_arena *arena, const graft_option *option)
{
    const char *what = option->argument != NULL ? option->argument : option->name;
    if (option->choices != NULL) {
        graft_buffer words = {.arena = arena};
        for (const char *c = option->choices; *c != '\0'; c++) {
            graft_buffer_append(&words, *c == '|' ? " " : c, 1);
        }
        return graft_arena_printf(arena, "-W '%s'", words.data);
    }
    if (strstr(what, "MODEL") != NULL) {
        return "-f -W \"$(graft model --quiet 2> /dev/null | cut -d' ' -f1)\"";
    }
    if (strstr(what, "COMMAND") != NULL) {
        return "-W \"$commands\"";
    }
    if (strstr(what, "FOLDER") != NULL) {
        return "-d";
    }
    return graft_option_is_path(option) ? "-f" : "-W ''";
}

/* The names of options, all or those that take a value. */
static void put_names(const graft_option *options, uint32_t count, bool valued, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (options[i].name[0] == '-' && (!valued || options[i].takes != GRAFT_TAKES_FLAG)) {
            (void)fprintf(out, " %s", options[i].name);
        }
    }
}

static void complete_command(graft_arena *arena, const graft_command *command, FILE *out)
{
    uint32_t words = 0;
    (void)fprintf(out, "    '%s')\n        options='", command->name);
    put_names(command->options, command->option_count, false, out);
    (void)fputs("'\n        case $previous in\n", out);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        if (option->name[0] == '-' && option->takes != GRAFT_TAKES_FLAG) {
            (void)fprintf(out, "        %s) values=(%s) ;;\n", option->name,
                          completes(arena, option));
        }
    }
    (void)fputs("        esac\n        case $word in\n", out);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const graft_option *option = &command->options[i];
        if (option->name[0] != '-') {
            const char *number =
                option->takes == GRAFT_TAKES_LIST ? "*" : graft_arena_printf(arena, "%u", words++);
            (void)fprintf(out, "        %s) words=(%s) ;;\n", number, completes(arena, option));
        }
    }
    (void)fputs("        esac ;;\n", out);
}

/* Whether the first word of a name of two has been put before. */
static bool begins_again(const graft_commands *commands, uint32_t i)
{
    size_t length = strcspn(commands->list[i]->name, " ");
    return i > 0 && commands->list[i]->name[length] == ' ' &&
           strncmp(commands->list[i - 1]->name, commands->list[i]->name, length + 1) == 0;
}

/* Finds the command before the cursor, and how many words stand behind it. */
static const char completion_begins[] =
    "'\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command='' options='' second='' word=0 i part\n"
    "    local -a values=() words=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        part=${COMP_WORDS[i]}\n"
    "        case $part in\n"
    "        -*)\n"
    "            [[ \"$valued \" != *\" $part \"* ]] || i=$((i + 1))\n"
    "            continue ;;\n"
    "        esac\n"
    "        if [[ -z $command ]]; then\n"
    "            command=$part\n"
    "        elif [[ $word == 0 && \"|$pairs\" == *\"|$command $part|\"* ]]; then\n"
    "            command=\"$command $part\"\n"
    "        else\n"
    "            word=$((word + 1))\n"
    "        fi\n"
    "    done\n"
    "    case $command in\n"
    "    '') words=(-W \"$commands\") ;;\n";
static const char completion_ends[] =
    "    *)\n"
    "        second=$(tr '|' '\\n' <<< \"$pairs\" | sed -n \"s/^$command //p\")\n"
    "        words=(-W \"$second\") ;;\n"
    "    esac\n"
    "    if [[ ${#values[@]} -gt 0 ]]; then\n"
    "        words=(\"${values[@]}\")\n"
    "    elif [[ $current == -* ]]; then\n"
    "        words=(-W \"$options $common\")\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen \"${words[@]}\" -- \"$current\")\n"
    "}\n"
    "complete -o filenames -o bashdefault -F _graft graft\n";

void graft_usage_completion(graft_arena *arena, const graft_commands *commands, FILE *out)
{
    uint32_t count = 0;
    const graft_option *common = graft_options_common(&count);
    (void)fputs("# bash completion for graft, made by `graft help --completion`.\n"
                "_graft() {\n"
                "    local commands='",
                out);
    for (uint32_t i = 0; i < commands->count; i++) {
        if (!begins_again(commands, i)) {
            const char *name = commands->list[i]->name;
            (void)fprintf(out, "%s%.*s", i == 0 ? "" : " ", (int)strcspn(name, " "), name);
        }
    }
    (void)fputs("' pairs='", out);
    for (uint32_t i = 0; i < commands->count; i++) {
        if (strchr(commands->list[i]->name, ' ') != NULL) {
            (void)fprintf(out, "%s|", commands->list[i]->name);
        }
    }
    (void)fputs("' valued='", out);
    for (uint32_t i = 0; i < commands->count; i++) {
        put_names(commands->list[i]->options, commands->list[i]->option_count, true, out);
    }
    put_names(common, count, true, out);
    (void)fputs("' common='", out);
    put_names(common, count, false, out);
    (void)fputs(completion_begins, out);
    for (uint32_t i = 0; i < commands->count; i++) {
        complete_command(arena, commands->list[i], out);
    }
    (void)fputs(completion_ends, out);
}
