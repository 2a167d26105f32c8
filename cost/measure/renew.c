/* renew.c - see renew.h. */
#include "cost/measure/renew.h"

#include "cost/measure/clock.h"
#include "cost/measure/confirm.h"
#include "graph/base/log.h"

#include <string.h>

static const uint64_t save_ns = 60000000000U;

/* Records of `old` that are kin, and what became of them. Each has two places: all implementations,
 * and the recorded one alone where it sets the level. */
typedef struct {
    graft_signature *signatures;
    const char **only; /* By place; NULL: all implementations. */
    const graft_database_record **known;
    graft_cost_entry *entries;
    uint32_t count; /* Places. */
} family;

/* "oneDNN 2.6.3, plain 1, protocol 3": whether two differ in our own kernels only. */
static bool is_same_library(const char *a, const char *b)
{
    static const char own[] = ", plain ";
    const char *ends[2] = {strstr(a, own), strstr(b, own)};
    if (ends[0] == NULL || ends[1] == NULL || ends[0] - a != ends[1] - b ||
        strncmp(a, b, (size_t)(ends[0] - a)) != 0) {
        return false;
    }
    const char *after[2] = {strchr(ends[0] + 1, ','), strchr(ends[1] + 1, ',')};
    return after[0] != NULL && after[1] != NULL && strcmp(after[0], after[1]) == 0;
}

/* Whether a recorded time says how fast the machine was: of an implementation that is still there,
 * as it was. */
static bool sets_level(const graft_cost *cost, const graft_database_record *record)
{
    return is_same_library(record->library, graft_device_library(graft_cost_device(cost))) &&
           record->entry.source == GRAFT_COST_MEASURED &&
           strstr(record->entry.implementation, "plain") == NULL;
}

static void add_place(family *f, const graft_database_record *record, bool alone)
{
    f->signatures[f->count] = record->signature;
    f->only[f->count] = alone ? record->entry.implementation : NULL;
    f->known[f->count++] = record;
}

/* The records of the device that are kin of number `first`, are not `taken`, and are lacking. */
static void gather_family(const graft_cost *cost, const graft_database *old, uint32_t first,
                          bool *taken, family *f)
{
    const graft_signature *of = &graft_database_at(old, first)->signature;
    f->count = 0;
    for (uint32_t i = first; i < graft_database_count(old); i++) {
        const graft_database_record *record = graft_database_at(old, i);
        if (!taken[i] && (i == first || graft_kin_is(of, &record->signature))) {
            taken[i] = true;
            if (graft_database_find(graft_cost_database(cost), &record->signature) == NULL) {
                add_place(f, record, false);
                if (sets_level(cost, record)) {
                    add_place(f, record, true);
                }
            }
        }
    }
}

static double find_level(graft_arena *scratch, const family *f)
{
    double *ratios = GRAFT_NEW(scratch, double, f->count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->only[i] != NULL && f->entries[i].rounds > 0) {
            ratios[found++] = f->known[i]->entry.median_ns / f->entries[i].median_ns;
        }
    }
    return found == 0 ? 1.0 : graft_cost_quantile(ratios, found, 0.5);
}

/* Also what there is of a family whose measuring failed. */
static void store_family(graft_env *env, graft_cost *cost, const family *f, uint32_t *measured)
{
    double level = find_level(env->scratch, f);
    for (uint32_t i = 0; i < f->count; i++) {
        graft_cost_entry entry = f->entries[i];
        if (f->only[i] == NULL && entry.rounds > 0) {
            entry.median_ns = graft_cost_round(entry.median_ns * level);
            entry.spread_ns = graft_cost_round(entry.spread_ns * level);
            graft_cost_store(cost, &f->signatures[i], &entry);
            (*measured)++;
        }
    }
}

/* The anchor is measured in its own way, factors are fitted. */
static bool *find_foreign(graft_arena *arena, const graft_cost *cost, const graft_database *old,
                          uint32_t *count)
{
    bool *foreign = GRAFT_NEW(arena, bool, graft_database_count(old));
    *count = 0;
    for (uint32_t i = 0; i < graft_database_count(old); i++) {
        const graft_database_record *record = graft_database_at(old, i);
        foreign[i] = strcmp(record->device, graft_device_name(graft_cost_device(cost))) != 0 ||
                     record->signature.op == GRAFT_COST_FACTOR;
        *count += !foreign[i];
    }
    return foreign;
}

graft_status graft_cost_renew(graft_env *env, graft_cost *cost, const graft_database *old,
                              uint32_t *measured, uint32_t *count)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    uint32_t records = graft_database_count(old);
    bool *taken = find_foreign(env->scratch, cost, old, count);
    family f = {
        .signatures = GRAFT_NEW(env->scratch, graft_signature, (size_t)2 * records),
        .only = GRAFT_NEW(env->scratch, const char *, (size_t)2 * records),
        .known = GRAFT_NEW(env->scratch, const graft_database_record *, (size_t)2 * records),
        .entries = GRAFT_NEW(env->scratch, graft_cost_entry, (size_t)2 * records),
    };
    graft_progress progress;
    uint64_t saved_at_ns = graft_clock_ns();
    *measured = 0;
    graft_progress_start(&progress, env, "renew costs", "costs", records);
    for (uint32_t i = 0; i < records; i++) {
        graft_mark inner = graft_arena_mark(env->scratch);
        if (!taken[i]) {
            gather_family(cost, old, i, taken, &f);
        }
        if (f.count > 0) {
            status = graft_kin_measure(env, cost, f.signatures, f.count, f.only, f.entries);
            store_family(env, cost, &f, measured);
            GRAFT_CHECK(status);
            f.count = 0;
        }
        if (graft_clock_ns() - saved_at_ns > save_ns) {
            GRAFT_CHECK(graft_cost_save(env, cost));
            saved_at_ns = graft_clock_ns();
        }
        graft_progress_update(&progress, i + 1, NULL);
        graft_arena_release(env->scratch, inner);
    }
done:
    graft_progress_finish(&progress);
    return status;
}
