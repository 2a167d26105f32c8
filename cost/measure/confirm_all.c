/* confirm_all.c - see confirm_all.h. The journal is a line with the device and its library, then a
 * line per settled signature: its hash. */
#include "cost/measure/confirm_all.h"

#include "cost/measure/confirm.h"
#include "graph/base/file.h"
#include "graph/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint64_t save_ns = 60000000000U;

typedef struct {
    graft_env *env;
    graft_cost *cost;
    const char *journal;
    graft_anchor *anchor; /* NULL: a device that measures in its own way, without distances. */
    bool *taken;          /* By record: it is settled, or has no kin. */
    bool *settled;
    uint64_t saved_at_ns;
    uint32_t count;
} confirmation;

/* ------------------------------------------------------------------- journal */

static const char *journal_head(const confirmation *c)
{
    const graft_device *device = graft_cost_device(c->cost);
    return graft_arena_printf(c->env->scratch, "confirming %s, %s\n", graft_device_name(device),
                              graft_device_library(device));
}

static uint64_t hash_record(const confirmation *c, uint32_t i)
{
    return graft_signature_hash(&graft_database_at(graft_cost_database(c->cost), i)->signature, 0);
}

static bool is_listed(const char *lines, uint64_t hash)
{
    char line[24];
    (void)snprintf(line, sizeof(line), "\n%016" PRIx64 "\n", hash);
    return strstr(lines, line) != NULL;
}

/* Takes what an earlier run has settled. */
static graft_status read_journal(confirmation *c)
{
    GRAFT_SCOPED(c->env->scratch);
    const graft_database *database = graft_cost_database(c->cost);
    uint8_t *data = NULL;
    size_t size = 0;
    if (c->journal == NULL || !graft_file_exists(c->journal)) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_file_read(c->env, c->env->scratch, c->journal, &data, &size));
    const char *text = graft_arena_printf(c->env->scratch, "%.*s", (int)size, (const char *)data);
    const char *head = journal_head(c);
    if (strncmp(text, head, strlen(head)) != 0) {
        graft_log(c->env, 1, "%s is of another device or library: all is confirmed anew",
                  c->journal);
        return GRAFT_OK;
    }
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        c->settled[i] = is_listed(text + strlen(head) - 1, hash_record(c, i));
        c->taken[i] = c->settled[i];
    }
    return GRAFT_OK;
}

/* The costs first: what a journal says is settled must be in the database. */
static graft_status save_settled(confirmation *c)
{
    GRAFT_SCOPED(c->env->scratch);
    graft_buffer text = {.arena = c->env->scratch};
    GRAFT_PASS(graft_cost_save(c->env, c->cost));
    c->saved_at_ns = graft_clock_ns();
    if (c->journal == NULL) {
        return GRAFT_OK;
    }
    graft_buffer_printf(&text, "%s", journal_head(c));
    for (uint32_t i = 0; i < graft_database_count(graft_cost_database(c->cost)); i++) {
        if (c->settled[i]) {
            graft_buffer_printf(&text, "%016" PRIx64 "\n", hash_record(c, i));
        }
    }
    return graft_file_write(c->env, c->journal, text.data, text.size);
}

/* ----------------------------------------------------------------------- kin */

/* The recorded kin of a signature that are not taken yet, as records. */
static uint32_t *take_kin(confirmation *c, const graft_signature *signature, uint32_t *count)
{
    const graft_database *database = graft_cost_database(c->cost);
    uint32_t *kin = GRAFT_NEW(c->env->scratch, uint32_t, graft_database_count(database));
    *count = 0;
    for (uint32_t r = 0; r < graft_database_count(database); r++) {
        const graft_database_record *record = graft_database_at(database, r);
        if (!c->taken[r] && graft_database_selects(database, record) &&
            graft_kin_is(signature, &record->signature)) {
            c->taken[r] = true;
            kin[(*count)++] = r;
        }
    }
    return kin;
}

static graft_status confirm_kin(confirmation *c, const uint32_t *records, uint32_t count)
{
    graft_arena *scratch = c->env->scratch;
    const graft_database *database = graft_cost_database(c->cost);
    graft_signature *kin = GRAFT_NEW(scratch, graft_signature, count);
    graft_cost_entry *known = GRAFT_NEW(scratch, graft_cost_entry, count);
    graft_cost_entry *entries = GRAFT_NEW(scratch, graft_cost_entry, count);
    graft_measure_options options = graft_measure_options_default();
    options.anchor = c->anchor;
    options.quiet = true;
    for (uint32_t i = 0; i < count; i++) {
        kin[i] = graft_database_at(database, records[i])->signature;
        known[i] = graft_database_at(database, records[i])->entry;
    }
    GRAFT_PASS(graft_measure(c->env, graft_cost_device(c->cost), kin, count, &options, entries));
    graft_kin_settle(scratch, kin, known, entries, count);
    for (uint32_t i = 0; i < count; i++) {
        c->settled[records[i]] = true;
        if (entries[i].rounds > 0) {
            graft_cost_store(c->cost, &kin[i], &entries[i]);
        }
    }
    c->count += count;
    return GRAFT_OK;
}

static graft_status confirm_one(confirmation *c, const graft_signature *signature)
{
    GRAFT_SCOPED(c->env->scratch);
    graft_signature plain;
    uint32_t count = 0;
    memcpy(&plain, signature, sizeof(plain));
    plain.distance = c->anchor == NULL ? 0 : signature->distance;
    const uint32_t *kin = take_kin(c, &plain, &count);
    if (count > 1) { /* Alone it would be scaled to what was known. */
        GRAFT_PASS(confirm_kin(c, kin, count));
    }
    if (graft_clock_ns() - c->saved_at_ns > save_ns) {
        GRAFT_PASS(save_settled(c));
    }
    return GRAFT_OK;
}

/* After a failure, whose message is the one to report; corrected costs are forgotten. */
static graft_status finish(confirmation *c, graft_status status)
{
    graft_env quiet = *c->env;
    const graft_calibration calibration = graft_cost_calibration(c->cost);
    if (status != GRAFT_OK) {
        confirmation last = *c;
        last.env = &quiet;
        if (save_settled(&last) != GRAFT_OK) {
            graft_log(&quiet, 0, "what was confirmed is not saved: %s", quiet.message);
        }
        return status;
    }
    GRAFT_CHECK(graft_cost_set_calibration(c->env, c->cost, &calibration));
    GRAFT_CHECK(graft_cost_save(c->env, c->cost));
    if (c->journal != NULL) {
        (void)unlink(c->journal);
    }
done:
    return status;
}

graft_status graft_cost_confirm(graft_env *env, graft_cost *cost, const graft_signature *signatures,
                                uint32_t signature_count, const char *journal, uint32_t *count)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_progress progress;
    confirmation c = {.env = env, .cost = cost, .journal = journal};
    *count = 0;
    graft_progress_start(&progress, env, "confirm costs", "costs", signature_count);
    GRAFT_CHECK(graft_cost_anchor(env, cost, &c.anchor)); /* Its record is the last to be added. */
    c.taken = GRAFT_NEW(env->scratch, bool, graft_database_count(graft_cost_database(cost)));
    c.settled = GRAFT_NEW(env->scratch, bool, graft_database_count(graft_cost_database(cost)));
    c.saved_at_ns = graft_clock_ns();
    GRAFT_CHECK(read_journal(&c));
    for (uint32_t i = 0; i < signature_count && status == GRAFT_OK; i++) {
        status = confirm_one(&c, &signatures[i]);
        graft_progress_update(&progress, i + 1, NULL);
    }
    *count = c.count;
    status = finish(&c, status);
done:
    graft_progress_finish(&progress);
    return status;
}
