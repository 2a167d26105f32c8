/* gen.c - the run over all families: spaces, laws, candidates. */
#include "gen/gen.h"

#include "gen/refine.h"
#include "gen/resume.h"
#include "gen/rule.h"
#include "gen/store.h"
#include "gen/trail.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <inttypes.h>
#include <string.h>

enum { SET_ARENA_BYTES = 1 << 20 };

/* Codes of candidates and skeletons seen so far. */
typedef struct {
    XXH128_hash_t *hashes;
    uint32_t count;
    uint32_t capacity;
    graft_table table;
} code_list;

typedef struct {
    graft_env *env;
    graft_arena *arena; /* Of the results. */
    const graft_gen_options *options;
    graft_candidates *results;
    uint32_t capacity;
    uint32_t pair_count;
    graft_gen_laws laws;
    uint64_t identity; /* Of the sets so far. */
    code_list codes;
    code_list skeletons;
} runner;

/* -------------------------------------------------------------- candidates */

static uint64_t hash_code(const void *owner, uint32_t number)
{
    return ((const code_list *)owner)->hashes[number].low64;
}

/* The number of a code; sets *is_new when it was not there. */
static uint32_t number_code(graft_arena *arena, code_list *list, const int32_t *code, uint32_t size,
                            bool *is_new)
{
    XXH128_hash_t hash = XXH3_128bits(code, size * sizeof *code);
    graft_table_reserve(arena, &list->table, list, hash_code);
    *is_new = false;
    GRAFT_EACH_ALIKE(&list->table, hash.low64, number)
    {
        if (XXH128_isEqual(list->hashes[number], hash)) {
            return number;
        }
    }
    *is_new = true;
    graft_table_insert(&list->table, hash.low64, list->count);
    GRAFT_GEN_PUSH(arena, list->hashes, list->count, list->capacity) = hash;
    return list->count - 1;
}

/* Different sizes among the dimensions of the variables: the more, the clearer what depends on
 * what. */
static uint32_t count_sizes(const graft_candidate *candidate)
{
    uint64_t sizes = 0;
    for (uint32_t v = 0; v < candidate->rule.var_count; v++) {
        for (uint32_t i = 0; i < candidate->shapes[v].rank; i++) {
            sizes |= UINT64_C(1) << (candidate->shapes[v].dims[i] & 63);
        }
    }
    return (uint32_t)__builtin_popcountll(sizes);
}

/* The same rule was found before: keeps its place, and of both the shapes that say more. */
static void merge_candidate(graft_candidate *known, const graft_candidate *other)
{
    if (count_sizes(other) > count_sizes(known)) {
        known->rule = other->rule;
        memcpy(known->shapes, other->shapes, sizeof known->shapes);
        memcpy(known->is_weight, other->is_weight, sizeof known->is_weight);
    }
}

/* Adds one direction of a law unless the same rule is there. */
static bool add_direction(runner *run, const graft_gen_law *law, uint32_t source,
                          graft_gen_report *report)
{
    graft_gen_ruling ruling;
    bool is_new = false;
    if ((law->directions >> source & 1u) == 0 || !graft_gen_rule_make(law, source, &ruling)) {
        return false;
    }
    uint32_t number = number_code(run->arena, &run->codes, ruling.code, ruling.code_size, &is_new);
    if (!is_new) { /* Codes and candidates are numbered alike. */
        merge_candidate(&run->results->items[number], &ruling.candidate);
        return false;
    }
    graft_candidate *candidate = &ruling.candidate;
    candidate->family = report->family;
    candidate->set = report->set;
    candidate->pair = run->pair_count;
    candidate->is_macro = law->is_macro;
    candidate->skeleton =
        number_code(run->arena, &run->skeletons, ruling.code, ruling.skeleton_size, &is_new);
    graft_candidates *results = run->results;
    GRAFT_GEN_PUSH(run->arena, results->items, results->count, run->capacity) = *candidate;
    report->counts.candidates++;
    return true;
}

/* From more operators to fewer first. */
static void add_candidates(runner *run, const graft_gen_law *law, graft_gen_report *report)
{
    uint32_t first = law->sides[0].count < law->sides[1].count ? 1 : 0;
    bool forward = add_direction(run, law, first, report);
    bool backward = add_direction(run, law, 1 - first, report);
    if (forward && backward) {
        run->results->items[run->results->count - 1].is_reversed = true;
    }
    if (forward || backward) {
        run->pair_count++;
    }
}

/* -------------------------------------------------------------------- sets */

static graft_status find_laws(runner *run, const graft_gen_set *set, const graft_gen_room *room,
                              graft_gen_counts *counts)
{
    uint64_t start_ns = graft_clock_ns();
    graft_gen_space space;
    GRAFT_ARENA(arena, SET_ARENA_BYTES);
    graft_gen_samples samples = {.seed = run->options->seed, .arena = run->arena};
    if (arena == NULL) {
        return GRAFT_FAIL(run->env, GRAFT_NO_MEMORY, "no memory for set %s", set->name);
    }
    GRAFT_PASS(graft_gen_samples_refine(run->env, set, room, &run->laws, &samples));
    GRAFT_PASS(graft_gen_space_build(run->env, arena, set, &samples, room, &space));
    GRAFT_PASS(graft_gen_propose(&space, &run->laws));
    *counts = space.counts;
    counts->time_ns = graft_clock_ns() - start_ns;
    return GRAFT_OK;
}

/* Leaves the laws from `first` on, which are all of one set, and its counts. */
static graft_status save_laws(const runner *run, const char *path, uint32_t first,
                              const graft_gen_counts *counts)
{
    GRAFT_SCOPED(run->env->unit);
    graft_buffer file = graft_gen_seal(run->env->unit);
    graft_buffer_append(&file, counts, sizeof *counts);
    for (uint32_t i = first; i < run->laws.count; i++) {
        graft_buffer_append(&file, &run->laws.laws[i], sizeof run->laws.laws[i]);
    }
    return graft_gen_seal_write(run->env, path, run->identity, &file);
}

/* Appends the laws of a set that an earlier run has left. False when it left none. */
static bool load_laws(runner *run, const char *path, const graft_gen_set *set,
                      graft_gen_counts *counts)
{
    GRAFT_SCOPED(run->env->unit);
    graft_gen_laws *laws = &run->laws;
    size_t size = 0;
    const uint8_t *data = graft_gen_unseal(run->env, run->env->unit, path, run->identity, &size);
    if (data == NULL) {
        return false;
    }
    memcpy(counts, data, sizeof *counts);
    for (size_t at = sizeof *counts; at < size; at += sizeof *laws->laws) {
        graft_gen_law *law = &GRAFT_GEN_PUSH(laws->arena, laws->laws, laws->count, laws->capacity);
        memcpy(law, data + at, sizeof *law);
        law->set = set;
    }
    return true;
}

/* The laws of a set: found by an earlier run that was interrupted later on, or now. */
static graft_status take_laws(runner *run, const graft_gen_family *family, const graft_gen_set *set,
                              graft_gen_counts *counts)
{
    graft_gen_room room = run->options->room;
    uint32_t known = run->laws.count;
    const char *saved = NULL;
    run->identity = graft_gen_set_identity(set, run->options->seed, run->identity);
    GRAFT_PASS(graft_ranks_agree(run->env, "the families", run->identity));
    room.identity = run->identity;
    room.taken_bytes = graft_arena_used_bytes(run->arena);
    if (room.folder != NULL) {
        room.folder =
            graft_arena_printf(run->arena, "%s/%s-%s", room.folder, family->name, set->name);
        saved = graft_arena_printf(run->arena, "%s.laws", room.folder);
        if (load_laws(run, saved, set, counts)) {
            return GRAFT_OK;
        }
    }
    GRAFT_PASS(find_laws(run, set, &room, counts));
    if (saved != NULL) {
        GRAFT_PASS(save_laws(run, saved, known, counts));
        graft_gen_trail_remove(run->env, room.folder);
        graft_gen_samples_remove(run->env, room.folder);
        graft_gen_store_remove(run->env, room.folder);
    }
    return GRAFT_OK;
}

static graft_status run_set(runner *run, const graft_gen_family *family, const graft_gen_set *set)
{
    uint32_t known = run->laws.count;
    graft_gen_report *report = &run->results->reports[run->results->report_count];
    GRAFT_PASS(take_laws(run, family, set, &report->counts));
    report->family = family->name;
    report->set = set->name;
    for (uint32_t i = known; i < run->laws.count; i++) {
        add_candidates(run, &run->laws.laws[i], report);
    }
    run->results->report_count++;
    graft_log(run->env, 1, "%s/%s: %" PRIu64 " graphs, %" PRIu64 " laws, %" PRIu64 " candidates",
              family->name, set->name, report->counts.graphs,
              report->counts.laws + report->counts.macros, report->counts.candidates);
    return GRAFT_OK;
}

/* The set with the depth that the options ask for; it must outlive the laws. */
static const graft_gen_set *choose_depth(const runner *run, const graft_gen_set *set)
{
    if (run->options->depth == 0) {
        return set;
    }
    graft_gen_set *copy = GRAFT_NEW(run->arena, graft_gen_set, 1);
    *copy = *set;
    copy->depth = run->options->depth;
    return copy;
}

graft_status graft_gen_run(graft_env *env, graft_arena *arena, const graft_gen_family *families,
                           uint32_t family_count, const graft_gen_options *options,
                           graft_candidates *candidates)
{
    graft_status status = GRAFT_OK;
    graft_candidates results = {.items = NULL};
    runner run = {.env = env, .arena = arena, .options = options, .results = &results};
    run.laws.arena = arena;
    uint32_t set_count = 0;
    for (uint32_t f = 0; f < family_count; f++) {
        set_count += families[f].set_count;
    }
    results.reports = GRAFT_NEW(arena, graft_gen_report, set_count);
    for (uint32_t f = 0; f < family_count; f++) {
        for (uint32_t s = 0; s < families[f].set_count; s++) {
            GRAFT_TRY(env, run_set(&run, &families[f], choose_depth(&run, &families[f].sets[s])),
                      "in set %s of %s", families[f].sets[s].name, families[f].file);
        }
    }
    results.skeleton_count = run.skeletons.count;
    *candidates = results;
done:
    return status;
}
