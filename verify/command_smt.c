/* command_smt.c - see command_smt.h. Rules are written by children, for building the terms is most
 * of the work of proving them. */
#include "verify/command_smt.h"

#include "graph/log.h"
#include "graph/ruleprint.h"
#include "verify/pool.h"
#include "verify/smtsizes.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const graft_ruleset *set;
    const char *folder;
    uint32_t count; /* Rules to write. */
} writing;

static const graft_rule_entry *entry_of(const writing *w, uint32_t item)
{
    return &w->set->entries[(uint64_t)item * w->set->count / w->count];
}

enum { INSTANCES, SIZES, FILE_KINDS };

/* What a child says of one rule; the message of a failure follows it. */
typedef struct {
    graft_status status;
    bool has[FILE_KINDS];
    uint32_t checks[FILE_KINDS];
    uint64_t bytes;
} smt_answer;

static const char *file_name(graft_arena *arena, const graft_rule_entry *entry, uint32_t kind)
{
    return graft_arena_printf(arena, "%016" PRIx64 "%s.smt2", entry->id,
                              kind == SIZES ? ".sizes" : "");
}

static graft_status write_file(graft_env *env, const writing *w, const graft_rule_entry *e,
                               const graft_smt_claim *claim, uint32_t kind, smt_answer *answer)
{
    graft_status status = GRAFT_OK;
    graft_buffer text = {.arena = env->life};
    const char *path =
        graft_arena_printf(env->life, "%s/%s", w->folder, file_name(env->unit, e, kind));
    GRAFT_CHECK(kind == SIZES ? graft_smt_print_sizes(env, claim, &text, &answer->checks[kind])
                              : graft_smt_print(env, claim, &text, &answer->checks[kind]));
    GRAFT_CHECK(graft_file_write(env, path, text.data, text.size));
    answer->has[kind] = true;
    answer->bytes += text.size;
done:
    return status;
}

static graft_status write_rule(graft_env *env, const writing *w, const graft_rule_entry *e,
                               smt_answer *answer)
{
    graft_status status = GRAFT_OK;
    graft_point *points = NULL;
    if (!graft_cover_unpack(env->unit, &e->rule, e->cover_points, e->cover_bytes, e->cover,
                            &points)) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the points of its certificate are damaged");
        goto done;
    }
    const graft_smt_claim claim = {
        .title = graft_arena_printf(env->unit, "%s\n%s\nid %016" PRIx64 ", %s", e->name,
                                    graft_rule_print_line(env->unit, &e->rule), e->id,
                                    graft_proof_name(e->proof)),
        .solver = w->set->solver,
        .rule = &e->rule,
        .points = points,
        .count = e->cover,
        .unbounded = e->proof == GRAFT_PROOF_UNBOUNDED};
    GRAFT_CHECK(write_file(env, w, e, &claim, INSTANCES, answer));
    if (graft_smt_has_sizes(&claim)) {
        GRAFT_CHECK(write_file(env, w, e, &claim, SIZES, answer));
    }
done:
    return status;
}

static void write_item(graft_env *env, void *context, const graft_pool_item *item,
                       graft_buffer *out)
{
    const writing *w = context;
    smt_answer answer;
    memset(&answer, 0, sizeof answer);
    graft_env_clear(env);
    graft_mark mark = graft_arena_mark(env->life);
    answer.status = write_rule(env, w, entry_of(w, item->index), &answer);
    graft_arena_release(env->life, mark);
    graft_buffer_append(out, &answer, sizeof answer);
    graft_buffer_append(out, env->message, strlen(env->message) + 1);
}

/* The answer of one child as index lines. */
static graft_status take_answer(graft_env *env, const graft_rule_entry *e,
                                const graft_pool_result *result, graft_buffer *index,
                                smt_answer *sum)
{
    smt_answer answer;
    if (result->outcome != GRAFT_POOL_DONE || result->bytes <= sizeof answer) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "rule '%s': the process that wrote it died",
                          e->name);
    }
    memcpy(&answer, result->answer, sizeof answer);
    if (answer.status != GRAFT_OK) {
        return GRAFT_FAIL(env, answer.status, "rule '%s': %s", e->name,
                          (const char *)result->answer + sizeof answer);
    }
    for (uint32_t kind = 0; kind < FILE_KINDS; kind++) {
        if (answer.has[kind]) {
            graft_buffer_printf(index, "%016" PRIx64 "\t%s\t%s\t%s\t%" PRIu32 "\n", e->id, e->name,
                                graft_proof_name(e->proof), file_name(env->unit, e, kind),
                                answer.checks[kind]);
            sum->checks[kind] += answer.checks[kind];
        }
    }
    sum->bytes += answer.bytes;
    return GRAFT_OK;
}

graft_status graft_smt_save(graft_env *env, const graft_ruleset *set, uint32_t sample,
                            const char *folder)
{
    graft_status status = GRAFT_OK;
    bool all = sample == 0 || sample > set->count;
    writing w = {.set = set, .folder = folder, .count = all ? set->count : sample};
    const char *path = graft_arena_printf(env->life, "%s/index.tsv", folder);
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, w.count);
    graft_buffer index = {.arena = env->life};
    smt_answer sum = {.status = GRAFT_OK};
    const graft_pool_job job = {.label = "write",
                                .unit = "rules",
                                .item_count = w.count,
                                .is_fresh = true,
                                .run = write_item,
                                .context = &w};
    GRAFT_CHECK(graft_pool_run(env, env->life, &job, results));
    graft_buffer_printf(&index, "id\tname\tproof\tfile\tchecks\n");
    for (uint32_t i = 0; i < w.count; i++) {
        GRAFT_CHECK(take_answer(env, entry_of(&w, i), &results[i], &index, &sum));
    }
    GRAFT_CHECK(graft_file_write(env, path, index.data, index.size));
    graft_log(env, 1, "%s: %u rules, %u obligations, %u questions for all sizes, %.1f MB", path,
              w.count, sum.checks[INSTANCES], sum.checks[SIZES], (double)sum.bytes / 1e6);
done:
    return status;
}
