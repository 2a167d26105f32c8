/* main.c - the table of commands: what the program can do, one row each.
 *
 * A stage offers a command as `graft_command_<name>` in "<folder>/command.h": a row that says what
 * it takes (graph/base/options.h). Options that every command shares are taken out of the command
 * line first, wherever they stand before a "--". Results go to stdout, messages to stderr. */
#include "cost/command.h"
#include "emit/command/command.h"
#include "gen/command.h"
#include "graph/base/log.h"
#include "graph/base/processor.h"
#include "graph/base/ranks.h"
#include "graph/base/usage.h"
#include "models/command.h"
#include "verify/command/command.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    const char *command;
    const char *second; /* Of a command of two words. */
    bool manual;
    bool completion;
} help_choices;

static graft_status run_help(graft_env *env, void *choices);
static graft_status run_version(graft_env *env, void *choices);

static const graft_option help_options[] = {
    GRAFT_WORD(help_choices, command, "[COMMAND]", "the command to explain"),
    GRAFT_WORD(help_choices, second, "[SUBCOMMAND]", "its second word, of some"),
    GRAFT_FLAG(help_choices, manual, "--man", "print the manual page"),
    GRAFT_FLAG(help_choices, completion, "--completion", "print the completion for bash"),
};

static const graft_command command_help = {.name = "help",
                                           .summary = "list the commands, or explain one",
                                           GRAFT_TAKES(help_choices, help_options),
                                           .run = run_help};
static const graft_command command_version = {
    .name = "version", .summary = "print the version", .run = run_version};

/* In the order in which they are used. A new command is one more row. */
static const graft_command *const command_list[] = {
    &command_help,
    &command_version,
    &graft_command_gen,
    &graft_command_rules,
    &graft_command_verify,
    &graft_command_model,
    &graft_command_convert,
    &graft_command_measure,
    &graft_command_cost_show,
    &graft_command_cost_merge,
    &graft_command_cost_diff,
    &graft_command_cost_calibrate,
    &graft_command_cost_confirm,
    &graft_command_cost_renew,
    &graft_command_cost_random,
    &graft_command_cost_close,
    &graft_command_cost_table,
    &graft_command_optimize,
    &graft_command_run,
    &graft_command_policy,
    &graft_command_report,
    &graft_command_eval,
    &graft_command_emit_graph,
    &graft_command_emit_policy,
    &graft_command_bench_agents,
    &graft_command_bench,
};

static const graft_commands commands = {.list = command_list,
                                        .count = sizeof command_list / sizeof command_list[0]};

static int exit_status_of(graft_status status)
{
    switch (status) {
    case GRAFT_OK:
        return EXIT_SUCCESS;
    case GRAFT_BAD_INPUT:
    case GRAFT_IO:
    case GRAFT_CAPACITY:
    case GRAFT_UNSUPPORTED:
        return GRAFT_EXIT_INPUT;
    case GRAFT_UNDECIDED:
        return GRAFT_EXIT_OPEN;
    case GRAFT_NO_MEMORY:
        return GRAFT_EXIT_NO_MEMORY;
    case GRAFT_INTERRUPTED:
        return GRAFT_EXIT_INTERRUPTED;
    case GRAFT_REFUTED:
    case GRAFT_NO_MATCH:
    case GRAFT_INTERNAL:
        break;
    }
    return GRAFT_EXIT_FALSE;
}

/* The command that one or two words name; *words says how many. NULL when there is none. */
static const graft_command *find_command(const char *first, const char *second, int *words)
{
    size_t length = strlen(first);
    for (uint32_t i = 0; i < commands.count; i++) {
        const char *name = commands.list[i]->name;
        if (strcmp(name, first) == 0 ||
            (second != NULL && strncmp(name, first, length) == 0 && name[length] == ' ' &&
             strcmp(name + length + 1, second) == 0)) {
            *words = name[length] == '\0' ? 1 : 2;
            return commands.list[i];
        }
    }
    return NULL;
}

/* Whether names of two words begin with this one. */
static bool is_group(const char *first)
{
    size_t length = strlen(first);
    for (uint32_t i = 0; i < commands.count; i++) {
        const char *name = commands.list[i]->name;
        if (strncmp(name, first, length) == 0 && name[length] == ' ') {
            return true;
        }
    }
    return false;
}

static const char *command_name(const void *list, uint32_t i)
{
    return ((const graft_command *const *)list)[i]->name;
}

static graft_status fail_unknown(graft_env *env, const char *first, const char *second)
{
    const char *text = second != NULL && is_group(first)
                           ? graft_arena_printf(env->life, "%s %s", first, second)
                           : first;
    const char *meant = graft_options_nearest(text, command_list, commands.count, command_name);
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "no command '%s'; %s%s%s'graft help' lists them", text,
                      meant == NULL ? "" : "did you mean '", meant == NULL ? "" : meant,
                      meant == NULL ? "" : "'? ");
}

static graft_status explain(graft_env *env, const char *first, const char *second)
{
    int words = 0;
    const graft_command *found = find_command(first, second, &words);
    if (found != NULL) {
        graft_usage_explain(env->life, found, stdout);
        return GRAFT_OK;
    }
    if (second != NULL || !is_group(first)) {
        return fail_unknown(env, first, second);
    }
    for (uint32_t i = 0; i < commands.count; i++) {
        if (strncmp(commands.list[i]->name, first, strlen(first)) == 0) {
            graft_usage_explain(env->life, commands.list[i], stdout);
            (void)printf("\n");
        }
    }
    return GRAFT_OK;
}

static graft_status run_help(graft_env *env, void *choices)
{
    const help_choices *c = choices;
    if (c->command != NULL) {
        return explain(env, c->command, c->second);
    }
    if (c->manual) {
        graft_usage_manual(env->life, &commands, stdout);
    } else if (c->completion) {
        graft_usage_completion(env->life, &commands, stdout);
    } else {
        graft_usage_list(env->life, &commands, stdout);
    }
    return GRAFT_OK;
}

static graft_status run_version(graft_env *env, void *choices)
{
    (void)choices;
    (void)printf(env->json ? "{\"version\": \"" GRAFT_VERSION "\"}\n"
                           : "graft " GRAFT_VERSION "\n");
    return GRAFT_OK;
}

/* ------------------------------------------------------------- command line */

static int report_failure(const graft_env *env, graft_status status)
{
    const char *text = env->message[0] == '\0' ? graft_status_name(status) : env->message;
    uint32_t rank = graft_ranks_ask().own;
    char whose[24] = "";
    if (rank > 0) {
        (void)snprintf(whose, sizeof whose, "rank %u: ", rank);
    }
    (void)fprintf(stderr, "graft: error: %s%s\n", whose, text);
    return exit_status_of(status);
}

/* What was printed counts as done only once it has left: a full disk or a closed pipe is
 * an error. */
static int close_output(int exit_status)
{
    if (ferror(stdout) != 0 || fclose(stdout) != 0) {
        (void)fprintf(stderr, "graft: error: cannot write to standard output\n");
        return exit_status == EXIT_SUCCESS ? GRAFT_EXIT_FALSE : exit_status;
    }
    return exit_status;
}

static graft_status run_command(graft_env *env, int argc, char **argv, const graft_common *common)
{
    int words = 1;
    const char *second = argc > 2 ? argv[2] : NULL;
    const char *first = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    const graft_command *chosen = find_command(first, second, &words);
    if (common->help || common->help_short) {
        return explain(env, first, chosen != NULL && words == 1 ? NULL : second);
    }
    if (chosen == NULL) {
        return fail_unknown(env, first, second);
    }
    if (graft_ranks_ask().count > 1 && !chosen->shares) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s does not share its work over ranks: start it without mpirun",
                          chosen->name);
    }
    graft_interrupt_install();
    return graft_command_call(env, chosen, argc - words, argv + words);
}

static int run(graft_env *env, int argc, char **argv)
{
    const graft_ranks_told told = graft_ranks_ask();
    graft_common common = {.threads = 0};
    graft_status status = graft_options_take_common(env, &argc, argv, &common);
    env->json = common.json;
    env->verbosity = common.quiet || told.own > 0 ? 0 : common.verbose ? 2 : env->verbosity;
    env->asked_threads = common.threads;
    env->thread_count = common.threads > 0 ? common.threads : env->thread_count;
    if (status == GRAFT_OK && argc < 2) {
        bool asked = common.help || common.help_short;
        graft_usage_list(env->life, &commands, asked ? stdout : stderr);
        return asked ? EXIT_SUCCESS : GRAFT_EXIT_INPUT;
    }
    status = status == GRAFT_OK ? run_command(env, argc, argv, &common) : status;
    return status == GRAFT_OK ? EXIT_SUCCESS : report_failure(env, status);
}

/* OpenBLAS starts threads when it is loaded, and one that gets no memory for its buffer asks for it
 * for ever: forks, which wait for the threads, would hang. So where memory is limited it has one. */
static bool limits_blas(void)
{
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *count = getenv(name);
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           (count == NULL || strcmp(count, "1") != 0) && setenv(name, "1", 1) == 0;
}

/* The library reads the environment before main: when it changes, the program starts once more. */
static void start_with_environment(char **argv)
{
    char program[PATH_MAX] = "";
    if (limits_blas() && readlink("/proc/self/exe", program, sizeof program - 1) > 0) {
        (void)execv(program, argv);
    }
}

/* How many threads this process may have: all processors, or its part of them. Only the first rank
 * prints and logs. */
static void set_up(graft_env *env)
{
    const graft_ranks_told told = graft_ranks_ask();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t processors = online > 0 ? (uint32_t)online : 1;
    cpu_set_t own;
    if (told.count > 1) {
        processors = processors / told.local_count;
        if (sched_getaffinity(0, sizeof own, &own) == 0 && (uint32_t)CPU_COUNT(&own) < processors) {
            processors = (uint32_t)CPU_COUNT(&own);
        }
    }
    env->thread_count = processors > 0 ? processors : 1;
    if (told.own > 0) {
        if (freopen("/dev/null", "w", stdout) == NULL) {
            (void)fclose(stdout);
        }
    }
}

/* Before main, which may be compiled to what this processor lacks. */
__attribute__((constructor)) static void check_processor(void)
{
    graft_processor_check(GRAFT_PROCESSOR_NEEDS);
}

int main(int argc, char **argv)
{
    start_with_environment(argv);
    graft_env env;
    graft_status status = graft_env_open(&env);
    if (status != GRAFT_OK) {
        return report_failure(&env, status);
    }
    set_up(&env);
    int exit_status = close_output(run(&env, argc, argv));
    if (exit_status != EXIT_SUCCESS) {
        graft_ranks_stop(&env, exit_status);
    }
    graft_ranks_close(&env);
    graft_env_close(&env);
    return exit_status;
}
