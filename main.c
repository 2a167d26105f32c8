/* main.c - the table of commands: what the program can do, one row each.
 *
 * A stage offers a command as `graft_status graft_command_<name>(graft_env *, int argc, char
 * **argv)` in "<folder>/command.h"; argv[0] is the command's name. Options that every command
 * shares are taken out of the command line here, wherever they stand before a "--". Results go to
 * stdout, messages to stderr. Exit status: 0 when all that was asked was done, 2 for a command line
 * that makes no sense, 130 when interrupted, 70 when memory ran out, 1 for every other failure. */
#include "cost/bench.h"
#include "cost/command.h"
#include "emit/bench_price.h"
#include "emit/bench_search.h"
#include "emit/bench_speed.h"
#include "emit/bench_views.h"
#include "emit/command.h"
#include "gen/bench.h"
#include "gen/command.h"
#include "graph/figures.h"
#include "graph/file.h"
#include "graph/log.h"
#include "graph/options.h"
#include "models/command.h"
#include "train/bench.h"
#include "verify/bench.h"
#include "verify/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char version[] = "0.1.0";

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130, THREADS_MOST = 1024 };

typedef struct {
    const char *name;
    const char *help;
    graft_status (*run)(graft_env *env, int argc, char **argv);
} command;

static graft_status command_help(graft_env *env, int argc, char **argv);
static graft_status command_version(graft_env *env, int argc, char **argv);
static graft_status command_bench(graft_env *env, int argc, char **argv);

/* In the order in which they are used. A new command is one more row. */
static const command commands[] = {
    {"help",       "list the commands",                                command_help            },
    {"version",    "print the version",                                command_version         },
    {"gen",        "list the substitutions that the families propose", graft_command_gen       },
    {"rules",      "list the rule set, or generate it",                graft_command_rules     },
    {"verify",     "prove or refute rules that you wrote",             graft_command_verify    },
    {"model",      "write a model of the zoo, or list them",           graft_command_model     },
    {"convert",    "read an ONNX model and write it again",            graft_command_convert   },
    {"measure",    "time the operators of a model on this machine",    graft_command_measure   },
    {"cost",       "show or merge cost databases",                     graft_command_cost      },
    {"optimize",   "rewrite a model by search",                        graft_command_optimize  },
    {"policy",     "train a policy for a model and write its header",  graft_command_policy    },
    {"report",     "check and measure what a policy found",            graft_command_report    },
    {"emit-graph", "write a model's graph as a C table",               graft_command_emit_graph},
    {"bench",      "run the benchmarks of one stage or of all",        command_bench           },
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *out)
{
    (void)fputs("usage: graft [options] COMMAND [arguments]\n\ncommands:\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
    (void)fputs("\noptions of every command:\n"
                "  --json       print results as JSON Lines\n"
                "  --quiet      print errors only\n"
                "  --verbose    print details\n"
                "  --threads N  worker threads (default: the processors of this machine)\n",
                out);
}

static graft_status command_help(graft_env *env, int argc, char **argv)
{
    (void)env;
    (void)argc;
    (void)argv;
    print_help(stdout);
    return GRAFT_OK;
}

static graft_status command_version(graft_env *env, int argc, char **argv)
{
    (void)env;
    (void)argc;
    (void)argv;
    (void)printf("graft %s\n", version);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ benchmarks */

/* The families of the rule set; TASO's operators, three of them and four; five of a few. */
static graft_status bench_gen(graft_env *env, const graft_bench *bench)
{
    static const struct {
        const char *folder;
        uint32_t depth;
    } works[] = {
        {"rules/families", 0},
        {"rules/taso",     0},
        {"rules/taso",     4},
        {"rules/deep",     5},
    };
    graft_status status = GRAFT_OK;
    graft_gen_bench_machine(env, bench->out);
    for (size_t i = 0; i < sizeof works / sizeof works[0] && status == GRAFT_OK; i++) {
        status = graft_gen_bench(env, graft_file_shipped(env, works[i].folder), works[i].depth,
                                 bench->out);
    }
    return status;
}

static graft_status bench_cost(graft_env *env, const graft_bench *bench)
{
    graft_status status = graft_price_bench(env, bench);
    return status == GRAFT_OK ? graft_cost_bench(env, bench) : status;
}

static graft_status bench_numerics(graft_env *env, const graft_bench *bench)
{
    graft_numerics_bench(env, bench->out);
    return GRAFT_OK;
}

static graft_status bench_verify(graft_env *env, const graft_bench *bench)
{
    return graft_verify_bench(env, graft_file_shipped(env, "rules/graft.rules"),
                              graft_file_shipped(env, "rules/families"),
                              graft_file_shipped(env, "tests/verify/corpus/mutants.yaml"),
                              bench->out);
}

/* Each prints JSON Lines. A new benchmark is one more row. */
static const struct {
    const char *name;
    graft_status (*run)(graft_env *env, const graft_bench *bench);
    bool models; /* Those that it runs over can be chosen. */
} benches[] = {
    {"gen",      bench_gen,          false},
    {"cost",     bench_cost,         true },
    {"search",   graft_search_bench, true },
    {"order",    graft_order_bench,  true },
    {"numerics", bench_numerics,     false},
    {"speed",    graft_speed_bench,  true },
    {"verify",   bench_verify,       false},
    {"views",    graft_views_bench,  true },
};

enum { BENCH_COUNT = sizeof(benches) / sizeof(benches[0]) };

/* Runs one benchmark into `folder`/NAME.json, which grows with it, and prints it. */
static graft_status run_bench(graft_env *env, size_t number, const char *folder, graft_bench *bench)
{
    graft_status status = GRAFT_OK;
    graft_figures figures;
    const char *path = graft_arena_printf(env->life, "%s/%s.json", folder, benches[number].name);
    GRAFT_CHECK(graft_figures_open(env, path, &figures));
    bench->out = figures.stream;
    GRAFT_TRY(env, graft_figures_close(&figures, benches[number].run(env, bench)),
              "in benchmark %s", benches[number].name);
done:
    return status;
}

/* graft bench [NAME] [--models A,B...] [--out DIR] */
static graft_status command_bench(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    const char *name = NULL;
    const char *folder = "out/bench";
    const char *models = NULL;
    graft_bench bench = {.models = NULL};
    bool found = false;
    const graft_option table[] = {
        {.name = "NAME",     .value = &name  },
        {.name = "--models", .value = &models},
        {.name = "--out",    .value = &folder},
    };
    GRAFT_CHECK(graft_options_parse(env, argc, argv, table, sizeof(table) / sizeof(table[0])));
    if (models != NULL) {
        bench.models = graft_options_names(env->life, models, &bench.model_count);
    }
    for (size_t i = 0; i < BENCH_COUNT; i++) {
        if (name == NULL ? models == NULL || benches[i].models
                         : strcmp(name, benches[i].name) == 0) {
            if (models != NULL && !benches[i].models) {
                return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "benchmark %s has no models to choose",
                                  name);
            }
            GRAFT_CHECK(run_bench(env, i, folder, &bench));
            found = true;
        }
    }
    if (!found) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "no benchmark '%s'", name);
    }
done:
    return status;
}

/* ------------------------------------------------------------- command line */

static const command *find_command(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0) {
        name = "version";
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static graft_status parse_threads(graft_env *env, const char *text)
{
    char *end = NULL;
    errno = 0;
    long count = text == NULL ? 0 : strtol(text, &end, 10);
    if (text == NULL || errno != 0 || *end != '\0' || count < 1 || count > THREADS_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--threads needs a number from 1 to %d, has '%s'",
                          THREADS_MOST, text == NULL ? "" : text);
    }
    env->thread_count = (uint32_t)count;
    return GRAFT_OK;
}

/* Takes the common options out of argv[1..] and closes the gaps; *argc shrinks with it. */
static graft_status take_common_options(graft_env *env, int *argc, char **argv)
{
    int kept = 1;
    int i = 1;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            env->json = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            env->verbosity = 0;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            env->verbosity = 2;
        } else if (strcmp(argv[i], "--threads") == 0) {
            graft_status status = parse_threads(env, i + 1 < *argc ? argv[i + 1] : NULL);
            if (status != GRAFT_OK) {
                return status;
            }
            i++;
        } else {
            argv[kept++] = argv[i];
        }
    }
    for (; i < *argc; i++) {
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return GRAFT_OK;
}

static int report_failure(const graft_env *env, graft_status status)
{
    const char *text = env->message[0] == '\0' ? graft_status_name(status) : env->message;
    (void)fprintf(stderr, "graft: error: %s\n", text);
    return status == GRAFT_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILURE;
}

/* What was printed counts as done only once it has left: a full disk or a closed pipe is an error.
 */
static int close_output(int exit_status)
{
    if (ferror(stdout) != 0 || fclose(stdout) != 0) {
        (void)fprintf(stderr, "graft: error: cannot write to standard output\n");
        return exit_status == EXIT_SUCCESS ? EXIT_FAILURE : exit_status;
    }
    return exit_status;
}

static int run_command(graft_env *env, int argc, char **argv)
{
    if (take_common_options(env, &argc, argv) != GRAFT_OK) {
        (void)report_failure(env, GRAFT_BAD_INPUT);
        return EXIT_USAGE;
    }
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const command *chosen = find_command(argv[1]);
    if (chosen == NULL) {
        (void)fprintf(stderr, "graft: error: no command '%s'; 'graft help' lists them\n", argv[1]);
        return EXIT_USAGE;
    }
    graft_interrupt_install();
    graft_status status = chosen->run(env, argc - 1, argv + 1);
    return status == GRAFT_OK ? EXIT_SUCCESS : report_failure(env, status);
}

int main(int argc, char **argv)
{
    graft_env env;
    graft_status status = graft_env_open(&env);
    if (status != GRAFT_OK) {
        return report_failure(&env, status);
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    env.thread_count = processors > 0 ? (uint32_t)processors : 1;
    int exit_status = close_output(run_command(&env, argc, argv));
    graft_env_close(&env);
    return exit_status;
}
