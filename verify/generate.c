/* generate.c - the pipeline. See generate.h. */
#include "verify/pipeline.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/ruleprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

graft_generate_options graft_generate_defaults(void)
{
    return (graft_generate_options){.check = graft_check_defaults()};
}

static uint64_t timeval_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * UINT64_C(1000);
}

uint64_t graft_pipeline_clock_ns(void)
{
    static const int who[2] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct rusage usage = {0};
        (void)getrusage(who[i], &usage);
        sum_ns += timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
    }
    return sum_ns;
}

bool graft_pipeline_has(const graft_pipeline *p, uint64_t id)
{
    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].id == id) {
            return true;
        }
    }
    return false;
}

graft_status graft_pipeline_judge(const graft_pipeline *p, const graft_pool_result *results,
                                  uint32_t count, const char *what)
{
    for (uint32_t i = 0; i < count; i++) {
        if (results[i].outcome == GRAFT_POOL_KILLED) {
            return GRAFT_FAIL(p->env, GRAFT_UNDECIDED,
                              "%s: item %u was killed after running out of time", what, i);
        }
        if (results[i].outcome != GRAFT_POOL_DONE) {
            graft_log(p->env, 1, "%s: item %u %s; it is rejected", what, i,
                      graft_pool_outcome_name(results[i].outcome));
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- the set */

static graft_rule_entry make_entry(const graft_pipeline *p, const graft_lifted *r)
{
    graft_rule_entry entry = graft_check_entry(&r->check, &r->rule);
    entry.name = graft_rule_print_name(p->arena, &r->rule);
    entry.family = graft_arena_strdup(p->arena, p->candidates->items[r->candidate].family);
    entry.reason = graft_arena_strdup(p->arena, r->check.unbounded.reason);
    return entry;
}

/* Rules of the same operators get the first digits of their id behind their names. */
static void make_names_unique(graft_pipeline *p, graft_ruleset *set)
{
    bool *repeated = GRAFT_NEW(p->arena, bool, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool same = strcmp(set->entries[i].name, set->entries[k].name) == 0;
            repeated[i] = repeated[i] || same;
            repeated[k] = repeated[k] || same;
        }
    }
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rule_entry *e = &set->entries[i];
        if (repeated[i]) {
            e->name = graft_arena_printf(p->arena, "%s~%06" PRIx64, e->name, e->id >> 40);
        }
    }
}

static void make_set(graft_pipeline *p, graft_ruleset *set)
{
    set->solver = graft_prove_solver(p->arena);
    set->count = p->rule_count;
    set->entries = GRAFT_NEW(p->arena, graft_rule_entry, p->rule_count);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        set->entries[i] = make_entry(p, &p->rules[i]);
    }
    qsort(set->entries, set->count, sizeof *set->entries, graft_rule_entry_compare);
    make_names_unique(p, set);
}

/* ------------------------------------------------- going on after an interruption */

/* A hash of all that answers depend on besides what was asked: the program, the solver and the
 * options. */
static graft_status identify_run(const graft_pipeline *p, uint64_t *identity)
{
    GRAFT_SCOPED(p->env->scratch);
    const graft_check_options *c = &p->options->check;
    uint8_t *program = NULL;
    size_t size = 0;
    const uint64_t words[] = {
        c->points,
        c->cover,
        c->prove.resource_limit,
        c->prove.memory_mb,
        c->prove.most.resource_count,
        c->prove.most.term_count,
        c->prove.solver_is_mute,
    };
    const char *solver = graft_prove_solver(p->env->scratch);
    GRAFT_PASS(graft_file_read(p->env, p->env->scratch, "/proc/self/exe", &program, &size));
    *identity = XXH3_64bits_withSeed(
        words, sizeof words, XXH3_64bits(program, size) ^ XXH3_64bits(solver, strlen(solver)));
    return GRAFT_OK;
}

/* Sets room->folder to the run's own and opens the answers in it; ranks but the first keep none. */
static graft_status open_work(graft_pipeline *p, graft_gen_room *room)
{
    uint64_t identity = 0;
    if (room->folder == NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(identify_run(p, &identity));
    room->folder = graft_arena_printf(p->arena, "%s/%016" PRIx64, room->folder, identity);
    if (graft_ranks_own(p->env) > 0) {
        return GRAFT_OK;
    }
    const char *path = graft_arena_printf(p->arena, "%s/answers", room->folder);
    GRAFT_PASS(graft_kept_open(p->env, p->arena, path, &p->kept));
    if (graft_kept_count(p->kept) > 0) {
        graft_log(p->env, 1, "%s: %u answers of a run that was interrupted", path,
                  graft_kept_count(p->kept));
    }
    return GRAFT_OK;
}

void graft_generate_forget(const graft_generate_options *options,
                           const graft_generate_counts *counts)
{
    if (counts->work != NULL) {
        graft_file_remove_folder(counts->work);
        (void)rmdir(options->room.folder); /* Unless it holds anything else. */
    }
}

/* ------------------------------------------------------------------ the pipeline */

/* Of all ranks. */
static void add_times(const graft_env *env, graft_generate_times *times)
{
    uint64_t all[] = {times->propose_ns, times->lift_ns, times->sweep_ns, times->select_ns,
                      times->prove_ns};
    graft_ranks_add(env, all, sizeof all / sizeof all[0]);
    *times = (graft_generate_times){all[0], all[1], all[2], all[3], all[4]};
}

static graft_status make_rules(graft_pipeline *p)
{
    p->counts->candidates = p->candidates->count;
    uint64_t start_ns = graft_pipeline_clock_ns();
    GRAFT_PASS(graft_pipeline_lift(p));
    p->counts->times.lift_ns = graft_pipeline_clock_ns() - start_ns;
    return graft_pipeline_prove(p);
}

graft_status graft_generate(graft_env *env, const graft_gen_family *families, uint32_t family_count,
                            const graft_generate_options *options, graft_ruleset *set,
                            graft_generate_counts *counts)
{
    graft_status status = GRAFT_OK;
    graft_candidates candidates;
    graft_gen_options propose = {.seed = 1, .room = options->room};
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_pipeline p = {.env = env,
                        .arena = env->life,
                        .candidates = &candidates,
                        .options = options,
                        .sweeper = sweeper,
                        .counts = counts};
    graft_sweep_open(sweeper);
    memset(counts, 0, sizeof *counts);
    GRAFT_CHECK(graft_pipeline_open_provers(&p));
    GRAFT_CHECK(graft_ranks_open(env));
    GRAFT_CHECK(open_work(&p, &propose.room));
    uint64_t start_ns = graft_pipeline_clock_ns();
    GRAFT_CHECK(graft_gen_run(env, env->life, families, family_count, &propose, &candidates));
    counts->times.propose_ns = graft_pipeline_clock_ns() - start_ns;
    GRAFT_CHECK(make_rules(&p));
    add_times(env, &counts->times);
    make_set(&p, set);
    counts->work = propose.room.folder;
done:
    graft_kept_close(p.kept);
    graft_pool_close(p.provers);
    return status;
}
