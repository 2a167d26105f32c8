/* bench.c - see bench.h. */
#include "gen/bench.h"

#include "gen/gen.h"
#include "graph/base/figures.h"
#include "graph/base/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { REPEATS = 3, SEED = 1, CHECK_SEED = 1000003, CHECK_SAMPLES = 256 };

/* `kind` is "time" on the clock or "cpu". */
static void print_time(graft_env *env, FILE *out, const char *label, const char *kind,
                       double *seconds)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    qsort(seconds, REPEATS, sizeof *seconds, graft_compare_doubles);
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", graft_arena_printf(env->scratch, "gen.%s.%s", label, kind));
    graft_json_string(&json, "unit", "s");
    graft_json_number(&json, "median", seconds[REPEATS / 2]);
    graft_json_number(&json, "low", seconds[0]);
    graft_json_number(&json, "high", seconds[REPEATS - 1]);
    graft_json_integer(&json, "threads", env->thread_count);
    graft_json_end(&json, out);
    graft_arena_release(env->scratch, mark);
}

/* The counts of one family's sets together. */
static graft_gen_counts sum_counts(const graft_candidates *run, const char *family)
{
    graft_gen_counts sum = {.graphs = 0};
    for (uint32_t i = 0; i < run->report_count; i++) {
        const graft_gen_counts *c = &run->reports[i].counts;
        if (strcmp(run->reports[i].family, family) == 0) {
            sum.graphs += c->graphs;
            sum.evaluated += c->evaluated;
            sum.keys += c->keys;
            sum.raw += c->raw;
            sum.laws += c->laws + c->macros;
            sum.candidates += c->candidates;
            sum.time_ns += c->time_ns;
            sum.memory_bytes =
                c->memory_bytes > sum.memory_bytes ? c->memory_bytes : sum.memory_bytes;
        }
    }
    return sum;
}

/* Figures are named after the family and, where it is not the one the sets name, the depth. */
static const char *make_label(graft_env *env, const char *family, uint32_t depth)
{
    return depth == 0 ? family : graft_arena_printf(env->life, "%s%u", family, depth);
}

static void print_family(graft_env *env, FILE *out, const char *family, const char *label,
                         const graft_candidates *runs)
{
    graft_gen_counts sum = sum_counts(&runs[0], family);
    const struct {
        const char *name;
        const char *unit;
        uint64_t value;
    } figures[] = {
        {"graphs",     "graphs", sum.graphs      },
        {"evaluated",  "graphs", sum.evaluated   },
        {"keys",       "keys",   sum.keys        },
        {"pairs",      "pairs",  sum.raw         },
        {"laws",       "laws",   sum.laws        },
        {"candidates", "rules",  sum.candidates  },
        {"memory",     "bytes",  sum.memory_bytes},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_figure_print_value(
            env, out, graft_arena_printf(env->scratch, "gen.%s.%s", label, figures[i].name),
            figures[i].unit, (double)figures[i].value);
        graft_arena_release(env->scratch, mark);
    }
    double seconds[REPEATS];
    for (uint32_t r = 0; r < REPEATS; r++) {
        seconds[r] = (double)sum_counts(&runs[r], family).time_ns * 1e-9;
    }
    print_time(env, out, label, "time", seconds);
}

static double measure_false_share(graft_env *env, const graft_candidates *run)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        bool holds = graft_candidate_holds(env->scratch, &run->items[i], CHECK_SEED, CHECK_SAMPLES);
        wrong += holds ? 0 : 1;
    }
    return run->count == 0 ? 0 : (double)wrong / run->count;
}

/* Processor time of this process so far. */
static double used_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* The value of "model name" in /proc/cpuinfo, or "?". */
static const char *name_processor(graft_env *env)
{
    uint8_t *text = NULL;
    size_t size = 0;
    if (graft_file_read(env, env->life, "/proc/cpuinfo", &text, &size) != GRAFT_OK) {
        graft_env_clear(env);
        return "?";
    }
    const char *line = strstr((const char *)text, "model name");
    const char *value = line == NULL ? NULL : strchr(line, ':');
    return value == NULL
               ? "?"
               : graft_arena_printf(env->life, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
}

void graft_gen_bench_machine(graft_env *env, FILE *out)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    double load[1] = {0};
    (void)getloadavg(load, 1);
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", "gen.machine");
    graft_json_string(&json, "processor", name_processor(env));
    graft_json_integer(&json, "cores", sysconf(_SC_NPROCESSORS_ONLN));
    graft_json_integer(&json, "threads", env->thread_count);
    graft_json_number(&json, "load", load[0]);
    graft_json_end(&json, out);
    graft_arena_release(env->scratch, mark);
    (void)fflush(out);
}

graft_status graft_gen_bench(graft_env *env, const char *folder, uint32_t depth, FILE *out)
{
    graft_status status = GRAFT_OK;
    const graft_gen_family *families = NULL;
    uint32_t count = 0;
    const graft_gen_options options = {.seed = SEED, .depth = depth};
    const char *slash = strrchr(folder, '/');
    const char *label = make_label(env, slash == NULL ? folder : slash + 1, depth);
    graft_candidates runs[REPEATS];
    double seconds[REPEATS];
    GRAFT_CHECK(graft_gen_families_read(env, env->life, folder, &families, &count));
    for (uint32_t r = 0; r < REPEATS; r++) {
        double before = used_seconds();
        GRAFT_CHECK(graft_gen_run(env, env->life, families, count, &options, &runs[r]));
        seconds[r] = used_seconds() - before;
    }
    for (uint32_t f = 0; f < count; f++) {
        print_family(env, out, families[f].name, make_label(env, families[f].name, depth), runs);
    }
    print_time(env, out, label, "cpu", seconds);
    graft_figure_print_value(env, out, graft_arena_printf(env->life, "gen.%s.false", label),
                             "share", measure_false_share(env, &runs[0]));
    (void)fflush(out);
done:
    return status;
}
