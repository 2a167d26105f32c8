/* command_smt.c - see parts.h. Rules are written by children, for building the terms is most
 * of the work of proving them. */
#include "verify/command/parts.h"

#include "graph/base/bytes.h"
#include "graph/base/log.h"
#include "graph/rule/ruleprint.h"
#include "verify/export/smt.h"
#include "verify/export/theorem.h"
#include "verify/pool.h"

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

enum { INSTANCES, SIZES, THEOREM, FILE_KINDS };

/* What a child says of one rule. The message of a failure follows it, then the lines of the index.
 */
typedef struct {
    graft_status status;
    uint32_t checks[FILE_KINDS];
    uint32_t cases; /* With those of which no theorem is written. */
    uint64_t bytes;
} smt_answer;

/* The files of one rule. */
typedef struct {
    const writing *w;
    const graft_rule_entry *entry;
    smt_answer answer;
    graft_buffer lines; /* In env->life. */
} rule_files;

/* Writes a file of so many check-sats, "ID<suffix>.smt2", and its line. */
static graft_status write_text(graft_env *env, rule_files *f, uint32_t kind, const char *suffix,
                               graft_bytes text, uint32_t checks)
{
    static const char *const kinds[FILE_KINDS] = {"instances", "questions", "theorem"};
    const graft_rule_entry *e = f->entry;
    const char *path =
        graft_arena_printf(env->life, "%s/%016" PRIx64 "%s.smt2", f->w->folder, e->id, suffix);
    GRAFT_PASS(graft_file_write(env, path, text.data, text.size));
    graft_buffer_printf(&f->lines,
                        "%016" PRIx64 "\t%s\t%s\t%016" PRIx64 "%s.smt2\t%" PRIu32 "\t%s\n", e->id,
                        e->name, graft_proof_name(e->proof), e->id, suffix, checks, kinds[kind]);
    f->answer.checks[kind] += checks;
    f->answer.bytes += text.size;
    return GRAFT_OK;
}

static graft_status write_theorem(graft_env *env, void *context, const graft_theorem_file *file)
{
    rule_files *f = context;
    f->answer.cases = file->count;
    return write_text(env, f, THEOREM,
                      graft_arena_printf(env->life, ".theorem%" PRIu32, file->number),
                      (graft_bytes){.data = (const uint8_t *)file->text, .size = file->size}, 1);
}

static graft_status write_file(graft_env *env, rule_files *f, const graft_smt_claim *claim,
                               uint32_t kind)
{
    graft_buffer text = {.arena = env->life};
    uint32_t checks = 0;
    GRAFT_PASS(kind == SIZES ? graft_smt_print_sizes(env, claim, &text, &checks)
                             : graft_smt_print(env, claim, &text, &checks));
    return write_text(env, f, kind, kind == SIZES ? ".sizes" : "",
                      (graft_bytes){.data = (const uint8_t *)text.data, .size = text.size}, checks);
}

static graft_status write_rule(graft_env *env, rule_files *f)
{
    const graft_rule_entry *e = f->entry;
    graft_point *points = NULL;
    if (!graft_cover_unpack(env->unit, &e->rule, e->cover_points, e->cover_bytes, e->cover,
                            &points)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the points of its certificate are damaged");
    }
    const graft_smt_claim claim = {
        .title = graft_arena_printf(env->unit, "%s\n%s\nid %016" PRIx64 ", %s", e->name,
                                    graft_rule_print_line(env->unit, &e->rule), e->id,
                                    graft_proof_name(e->proof)),
        .solver = f->w->set->solver,
        .rule = &e->rule,
        .points = points,
        .count = e->cover,
        .unbounded = e->proof == GRAFT_PROOF_UNBOUNDED};
    if (claim.unbounded) {
        GRAFT_PASS(graft_theorem_write(env, &e->rule, claim.title, write_theorem, f));
    }
    GRAFT_PASS(write_file(env, f, &claim, INSTANCES));
    if (claim.unbounded) {
        GRAFT_PASS(write_file(env, f, &claim, SIZES));
    }
    return GRAFT_OK;
}

static void write_item(graft_env *env, void *context, const graft_pool_item *item,
                       graft_buffer *out)
{
    const writing *w = context;
    rule_files f;
    memset(&f, 0, sizeof f);
    graft_env_clear(env);
    GRAFT_SCOPED(env->life);
    f.w = w;
    f.entry = entry_of(w, item->index);
    f.lines = (graft_buffer){.arena = env->life};
    f.answer.status = write_rule(env, &f);
    graft_buffer_append(out, &f.answer, sizeof f.answer);
    graft_buffer_append(out, env->message, strlen(env->message) + 1);
    graft_buffer_append(out, f.lines.data, f.lines.size);
    graft_buffer_append(out, "", 1);
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
    const char *message = (const char *)result->answer + sizeof answer;
    graft_buffer_printf(index, "%s", message + strlen(message) + 1);
    for (uint32_t kind = 0; kind < FILE_KINDS; kind++) {
        sum->checks[kind] += answer.checks[kind];
    }
    sum->cases += answer.cases;
    sum->bytes += answer.bytes;
    return GRAFT_OK;
}

graft_status graft_smt_save(graft_env *env, const graft_ruleset *set, uint32_t sample,
                            const char *folder)
{
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
    GRAFT_PASS(graft_pool_run(env, env->life, &job, results));
    graft_buffer_printf(&index, "id\tname\tproof\tfile\tchecks\tkind\n");
    for (uint32_t i = 0; i < w.count; i++) {
        GRAFT_PASS(take_answer(env, entry_of(&w, i), &results[i], &index, &sum));
    }
    GRAFT_PASS(graft_file_write(env, path, index.data, index.size));
    graft_log(env, 1,
              "%s: %u rules, theorems of %u of %u cases, %u obligations, %u questions for all "
              "sizes, %.1f MB",
              path, w.count, sum.checks[THEOREM], sum.cases, sum.checks[INSTANCES],
              sum.checks[SIZES], (double)sum.bytes / 1e6);
    return GRAFT_OK;
}
