/* bench.c - see bench.h. */
#include "gen/bench.h"

#include "gen/gen.h"
#include "graph/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { REPEATS = 3, SEED = 1, CHECK_SEED = 1000003, CHECK_SAMPLES = 256 };

static void print_figure(graft_env *env, FILE *out, const char *name, const char *unit,
                         double value)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", name);
    graft_json_string(&json, "unit", unit);
    graft_json_number(&json, "value", value);
    graft_json_end(&json, out);
    graft_arena_release(env->scratch, mark);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_time(graft_env *env, FILE *out, const char *family, double *seconds)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    qsort(seconds, REPEATS, sizeof *seconds, compare_doubles);
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", graft_arena_printf(env->scratch, "gen.%s.time", family));
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

static void print_family(graft_env *env, FILE *out, const char *family,
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
        print_figure(env, out,
                     graft_arena_printf(env->scratch, "gen.%s.%s", family, figures[i].name),
                     figures[i].unit, (double)figures[i].value);
        graft_arena_release(env->scratch, mark);
    }
    double seconds[REPEATS];
    for (uint32_t r = 0; r < REPEATS; r++) {
        seconds[r] = (double)sum_counts(&runs[r], family).time_ns * 1e-9;
    }
    print_time(env, out, family, seconds);
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

graft_status graft_gen_bench(graft_env *env, const char *folder, FILE *out)
{
    graft_status status = GRAFT_OK;
    const graft_gen_family *families = NULL;
    uint32_t count = 0;
    const graft_gen_options options = {.seed = SEED};
    graft_candidates runs[REPEATS];
    struct rusage usage;
    GRAFT_CHECK(graft_gen_families_read(env, env->life, folder, &families, &count));
    for (uint32_t r = 0; r < REPEATS; r++) {
        GRAFT_CHECK(graft_gen_run(env, env->life, families, count, &options, &runs[r]));
    }
    for (uint32_t f = 0; f < count; f++) {
        print_family(env, out, families[f].name, runs);
    }
    print_figure(env, out, "gen.false", "share", measure_false_share(env, &runs[0]));
    (void)getrusage(RUSAGE_SELF, &usage);
    print_figure(env, out, "gen.rss", "bytes", (double)usage.ru_maxrss * 1024);
done:
    return status;
}
