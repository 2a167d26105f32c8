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
    graft_status (*run)(graft_env *env, int argc, char **argv);
    const char *text; /* What it does, in a line; the forms of its command line; its options. */
} command;

static graft_status command_help(graft_env *env, int argc, char **argv);
static graft_status command_version(graft_env *env, int argc, char **argv);
static graft_status command_bench(graft_env *env, int argc, char **argv);

static const char help_text[] = "list the commands, or explain one\n\n"
                                "graft help [COMMAND]\n";
static const char version_text[] = "print the version\n\n"
                                   "graft version\n";
static const char gen_text[] =
    "list the substitutions that the families propose\n\n"
    "graft gen [--family NAME] [--depth N] [--counts] ...\n\n"
    "  --families FOLDER  the families (default: rules/families)\n"
    "  --family NAME      one of them alone\n"
    "  --depth N          operators of the largest graphs (default: what each set says)\n"
    "  --counts           how many graphs, keys and candidates, not the candidates\n"
    "  --seed N           of the random tensors (default: 1)\n"
    "  --work FOLDER      where an interrupted run goes on, and what memory does not hold goes\n"
    "  --memory MIB       what all of it may take\n";
static const char rules_text[] =
    "list the rule set, or generate it\n\n"
    "graft rules [FILE] [--uses OP] [--shrinks] ...    list a rule set (rules/graft.rules)\n"
    "graft rules --generate FOLDER                     make one from FOLDER/families\n\n"
    "  --uses OP          rules with this operator\n"
    "  --proof LEVEL      unbounded or bounded\n"
    "  --numeric CLASS    exact or reassociating\n"
    "  --family NAME      rules of one family\n"
    "  --shrinks          rules that save operators\n"
    "  --count            how many by family, proof level and numeric class\n"
    "  --explain RULE     one rule, by name or identity, in words\n"
    "  --dot FILE         and as a Graphviz picture\n"
    "  --page FILE        the list as Markdown\n"
    "  --both FILE        the set with the other direction of its rules, where that is proved\n"
    "  --taso FILE        what the set says of the rules in a TASO file\n"
    "  --export-taso FILE the rules that TASO's format can say\n"
    "  --check-derivations FILE  that the dropped rules in FILE follow from the set\n"
    "  --families FOLDER  with --generate: other families\n"
    "  --work FOLDER      where it goes on when it was interrupted; emptied at the end\n"
    "  --memory MIB       what enumerating may take; what does not fit goes there\n";
static const char verify_text[] =
    "prove or refute rules that you wrote\n\n"
    "graft verify FILE.yaml [--merge]              prove or refute rules (docs/rule-format.md)\n"
    "graft verify --emit-smt FOLDER [--sample N]   write the obligations of a rule set\n"
    "graft verify --unbounded [--only NAME]        prove the rules of a set for all sizes again\n\n"
    "  --rules FILE       the rule set (default: rules/graft.rules)\n"
    "  --merge            add what is proved and does not follow to the set\n"
    "  --no-suggest       look for no missing precondition\n"
    "  --sample N         N rules, spread over the set\n"
    "  --only NAME        one rule\n";
static const char model_text[] = "write a model of the zoo, or list them\n\n"
                                 "graft model                     list the zoo\n"
                                 "graft model NAME OUT.onnx       write one of its models\n\n"
                                 "  --seed N           of the weights\n";
static const char convert_text[] =
    "read an ONNX model and write it again\n\n"
    "graft convert IN OUT.onnx\n\n"
    "  --size NAME=N      a size that the model leaves open; may be repeated\n"
    "  --external-data    large weights into a file beside it\n";
static const char measure_text[] =
    "time the operators of a model on this machine\n\n"
    "graft measure MODEL       a name of the zoo or an ONNX file\n\n"
    "  --device NAME      (default: cpu)\n"
    "  --database FILE    where costs are kept (default: the device's under out/)\n"
    "  --rounds N         of each measurement\n"
    "  --plot FILE.svg    the roofline\n";
static const char cost_text[] =
    "show or merge cost databases\n\n"
    "graft cost show FILE...              the entries of databases\n"
    "graft cost merge OUT FILE...         join them\n"
    "graft cost diff FILE FILE            what one lacks, or differs by more than spreads\n"
    "graft cost calibrate [--models A,B]  measure whole models and fit what sums lack\n"
    "graft cost confirm                   measure what the database has beside its kin again\n"
    "graft cost renew FILE                measure what FILE has with the kernels of now\n\n"
    "  --device NAME      (default: cpu)\n"
    "  --database FILE    (default: the device's under out/)\n";

/* Of every command that works on a model's graph with rules and costs. */
#define SESSION_USAGE                                                                              \
    "  --device NAME      whose costs count (default: cpu)\n"                                      \
    "  --rules FILE       (default: rules/graft.rules)\n"                                          \
    "  --database FILE    where costs are kept (default: the device's under out/)\n"               \
    "  --settings FILE    (default: train/settings.yaml)\n"                                        \
    "  --exact            only rules that give the same bits for every input\n"

static const char optimize_text[] =
    "rewrite a model by search\n\n"
    "graft optimize MODEL OUT.onnx      MODEL is a name of the zoo or an ONNX "
    "file\n\n" SESSION_USAGE "  --search NAME      greedy (default), backtracking, beam or random\n"
    "  --dequeues N       graphs that backtracking looks at\n"
    "  --width N          of the beam\n"
    "  --passes N         searches, each with costs that the one before has corrected\n"
    "  --policy FILE      rewrite as this policy.graft says instead\n"
    "  --steps            print each rewrite\n";
static const char policy_text[] =
    "train a policy for a model and write its header\n\n"
    "graft policy MODEL --out FOLDER    MODEL is a name of the zoo or an ONNX "
    "file\n\n" SESSION_USAGE "  --out FOLDER       for the header and all that belongs to it\n"
    "  --amalgamate       one header that holds the engine too\n";
static const char report_text[] =
    "check and measure what a policy found\n\n"
    "graft report MODEL --out FOLDER    as `graft policy` was called\n\n" SESSION_USAGE
    "  --out FOLDER       what `graft policy` wrote\n"
    "  --rounds N         of end-to-end measurements (default: 21)\n";
static const char emit_graph_text[] = "write a model's graph as a C table\n\n"
                                      "graft emit-graph MODEL OUT.h\n\n"
                                      "  --name NAME        of the table (default: the model's)\n";
static const char bench_text[] =
    "run the benchmarks of one stage or of all\n\n"
    "graft bench [NAME]      gen, cost, search, order, numerics, speed, verify or views\n\n"
    "  --models A,B       those of the benchmarks that take models\n"
    "  --out FOLDER       for the figures (default: out/bench)\n";

/* In the order in which they are used. A new command is one more row. */
static const command commands[] = {
    {"help",       command_help,             help_text      },
    {"version",    command_version,          version_text   },
    {"gen",        graft_command_gen,        gen_text       },
    {"rules",      graft_command_rules,      rules_text     },
    {"verify",     graft_command_verify,     verify_text    },
    {"model",      graft_command_model,      model_text     },
    {"convert",    graft_command_convert,    convert_text   },
    {"measure",    graft_command_measure,    measure_text   },
    {"cost",       graft_command_cost,       cost_text      },
    {"optimize",   graft_command_optimize,   optimize_text  },
    {"policy",     graft_command_policy,     policy_text    },
    {"report",     graft_command_report,     report_text    },
    {"emit-graph", graft_command_emit_graph, emit_graph_text},
    {"bench",      command_bench,            bench_text     },
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *out)
{
    (void)fputs("usage: graft [options] COMMAND [arguments]\n\ncommands:\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int line = (int)strcspn(commands[i].text, "\n");
        (void)fprintf(out, "  %-10s %.*s\n", commands[i].name, line, commands[i].text);
    }
    (void)fputs("\noptions of every command:\n"
                "  --json       print results as JSON Lines\n"
                "  --quiet      print errors only\n"
                "  --verbose    print details\n"
                "  --threads N  worker threads (default: the processors of this machine)\n"
                "  --help       explain the command\n",
                out);
}

static void explain_command(const command *explained)
{
    (void)printf("graft %s: %s", explained->name, explained->text);
}

static const command *find_command(const char *name)
{
    if (strcmp(name, "--version") == 0) {
        name = "version";
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static graft_status command_help(graft_env *env, int argc, char **argv)
{
    const command *explained = argc > 1 ? find_command(argv[1]) : NULL;
    if (argc < 2) {
        print_help(stdout);
    } else if (explained == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "no command '%s'; 'graft help' lists them",
                          argv[1]);
    } else {
        explain_command(explained);
    }
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
static graft_status take_common_options(graft_env *env, int *argc, char **argv, bool *help)
{
    int kept = 1;
    int i = 1;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *help = true;
        } else if (strcmp(argv[i], "--json") == 0) {
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
    bool help = false;
    if (take_common_options(env, &argc, argv, &help) != GRAFT_OK) {
        (void)report_failure(env, GRAFT_BAD_INPUT);
        return EXIT_USAGE;
    }
    if (argc < 2) {
        print_help(help ? stdout : stderr);
        return help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    const command *chosen = find_command(argv[1]);
    if (chosen == NULL) {
        (void)fprintf(stderr, "graft: error: no command '%s'; 'graft help' lists them\n", argv[1]);
        return EXIT_USAGE;
    }
    if (help) {
        explain_command(chosen);
        return EXIT_SUCCESS;
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
