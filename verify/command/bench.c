/* bench.c - see bench.h. */
#include "verify/command/bench.h"

#include "graph/base/figures.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "verify/generate.h"
#include "verify/pool.h"
#include "verify/sweep/cover.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { FILTERED_MOST = 100 }; /* Rules of a set whose filter is timed, spread evenly over it. */

static const double ns_per_ms = 1e6;
static const double ns_per_s = 1e9;

/* Of this process: other programs on the machine do not count. */
static uint64_t spent_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Of children that have ended. */
static double spent_by_children(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_spread(graft_env *env, FILE *out, const char *name, double *ms, uint32_t count)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_json json;
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        sum += ms[i];
    }
    qsort(ms, count, sizeof *ms, graft_compare_doubles);
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "name", name);
    graft_json_string(&json, "unit", "ms");
    graft_json_integer(&json, "count", count);
    graft_json_number(&json, "mean", sum / (double)count);
    graft_json_number(&json, "median", ms[count / 2]);
    graft_json_number(&json, "low", ms[0]);
    graft_json_number(&json, "high", ms[count - 1]);
    graft_json_end(&json, out);
    graft_arena_release(env->scratch, mark);
}

/* -------------------------------------------------------------------- filter */

/* The first instance of the certificate, in env->life; NULL when there is none. */
static const graft_point *first_instance(graft_env *env, const graft_rule_entry *e)
{
    graft_point *points = NULL;
    bool has = e->cover > 0 && graft_cover_unpack(env->life, &e->rule, e->cover_points,
                                                  e->cover_bytes, e->cover, &points);
    return has ? &points[0] : NULL;
}

static void bench_filter(graft_env *env, const graft_ruleset *set, FILE *out)
{
    graft_check_options options = graft_check_defaults();
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    uint32_t tried = set->count < FILTERED_MOST ? set->count : FILTERED_MOST;
    double *ms = GRAFT_NEW(env->life, double, tried);
    graft_sweep_open(sweeper);
    for (uint32_t i = 0; i < tried; i++) {
        const graft_rule_entry *e = &set->entries[(uint64_t)i * set->count / tried];
        const graft_point *origin = first_instance(env, e);
        graft_check check;
        graft_arena_reset(env->unit);
        uint64_t start_ns = spent_ns();
        graft_check_filter(env, sweeper, &e->rule, origin, &options, &check);
        ms[i] = (double)(spent_ns() - start_ns) / ns_per_ms;
    }
    if (tried > 0) {
        print_spread(env, out, "verify.filter.rule", ms, tried);
    }
}

/* -------------------------------------------------------------------- proofs */

typedef struct {
    const graft_ruleset *set;
    const graft_sweeper *sweeper;
    graft_check_options options;
} prover;

/* About the first instance of the certificate, as `make rules` does. */
static void prove_entry(graft_env *env, void *context, const graft_pool_item *item,
                        graft_buffer *answer)
{
    const prover *p = context;
    const graft_rule_entry *e = &p->set->entries[item->index];
    graft_check check;
    graft_check_rule(env, p->sweeper, &e->rule, first_instance(env, e), &p->options, &check);
    graft_buffer_append(answer, &check.outcome, sizeof check.outcome);
}

static graft_status bench_proofs(graft_env *env, const graft_ruleset *set, FILE *out)
{
    graft_status status = GRAFT_OK;
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, set->count);
    prover p = {set, sweeper, graft_check_defaults()};
    uint32_t proved = 0;
    const graft_pool_job job = {.label = "prove",
                                .unit = "rules",
                                .item_count = set->count,
                                .memory_bytes = graft_pool_prover_bytes,
                                .is_fresh = true,
                                .run = prove_entry,
                                .context = &p};
    graft_sweep_open(sweeper);
    double spent = spent_by_children();
    uint64_t start_ns = graft_clock_ns();
    GRAFT_CHECK(graft_pool_run(env, env->life, &job, results));
    double seconds = (double)(graft_clock_ns() - start_ns) / ns_per_s;
    for (uint32_t i = 0; i < set->count; i++) {
        proved +=
            results[i].outcome == GRAFT_POOL_DONE && results[i].answer[0] == GRAFT_CHECK_PROVED ? 1
                                                                                                : 0;
    }
    graft_figure_print_value(env, out, "verify.prove.set", "s", seconds);
    graft_figure_print_value(env, out, "verify.prove.cpu", "s", spent_by_children() - spent);
    graft_figure_print_value(env, out, "verify.prove.children", "processes",
                             (double)env->thread_count);
    graft_figure_print_value(env, out, "verify.prove.proved", "rules", (double)proved);
    graft_figure_print_value(env, out, "verify.prove.rules", "rules", (double)set->count);
done:
    return status;
}

/* ---------------------------------------------------------------- generation */

static graft_status bench_generation(graft_env *env, const char *folder, FILE *out)
{
    graft_status status = GRAFT_OK;
    const graft_gen_family *families = NULL;
    uint32_t family_count = 0;
    graft_ruleset set;
    graft_generate_counts n;
    graft_generate_options options = graft_generate_defaults();
    GRAFT_CHECK(graft_gen_families_read(env, env->life, folder, &families, &family_count));
    uint64_t start_ns = graft_clock_ns();
    GRAFT_CHECK(graft_generate(env, families, family_count, &options, &set, &n));
    double seconds = (double)(graft_clock_ns() - start_ns) / ns_per_s;
    const struct {
        const char *name;
        uint32_t count;
    } rows[] = {
        {"candidates", n.candidates},
        {"rules",      n.rules     },
        {"refuted",    n.refuted   },
        {"thin",       n.thin      },
        {"unknown",    n.unknown   },
        {"dropped",    n.dropped   },
        {"proved",     n.proved    },
        {"kept",       n.kept      },
    };
    graft_figure_print_value(env, out, "verify.generate.time", "s", seconds);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = graft_arena_printf(env->life, "verify.generate.%s", rows[i].name);
        graft_figure_print_value(env, out, name, "rules", (double)rows[i].count);
    }
    if (n.candidates > 0) {
        graft_figure_print_value(env, out, "verify.generate.decided", "share of candidates",
                                 1.0 - (double)(n.unknown + n.thin) / (double)n.candidates);
    }
    if (n.rules > 0) {
        graft_figure_print_value(env, out, "verify.generate.decided_rules",
                                 "share of distinct rules",
                                 1.0 - (double)(n.unknown + n.thin) / (double)n.rules);
    }
done:
    return status;
}

graft_status graft_verify_bench(graft_env *env, const char *rules, const char *families, FILE *out)
{
    graft_status status = GRAFT_OK;
    graft_ruleset set;
    GRAFT_CHECK(graft_rulefile_read(env, env->life, rules, &set));
    bench_filter(env, &set, out);
    GRAFT_CHECK(bench_proofs(env, &set, out));
    GRAFT_CHECK(bench_generation(env, families, out));
done:
    return status;
}
