/* confirm.c - see confirm.h. The journal is a line with the device and its library, then a line per
 * settled signature: its hash. */
#include "cost/measure/confirm.h"

#include "cost/measure/clock.h"
#include "graph/base/file.h"
#include "graph/base/log.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const double told_apart_spreads = 2.0;
static const double least_spread = 0.01; /* Relative: nothing is measured better. */

/* relu(x) and max(x, constant): one loop. */
static bool is_floor(const graft_signature *s)
{
    return s->op == GRAFT_OP_relu ||
           (s->op == GRAFT_OP_max && graft_shape_elements(&s->inputs[1]) == 1);
}

bool graft_kin_is(const graft_signature *a, const graft_signature *b)
{
    bool products = graft_signature_is_product(a) && graft_signature_is_product(b);
    bool floors = is_floor(a) && is_floor(b);
    return (products || floors || a->op == b->op) && a->op != GRAFT_COST_FACTOR &&
           a->distance == b->distance && graft_shape_equal(&a->inputs[0], &b->inputs[0]) &&
           (!products || graft_shape_equal(&a->inputs[1], &b->inputs[1]));
}

/* Attributes but for the activation, which is the last one where there is one. */
static uint32_t own_attrs(const graft_signature *s)
{
    bool active = s->op == GRAFT_OP_conv_bias || s->op == GRAFT_OP_conv_bias_add ||
                  s->op == GRAFT_OP_matmul_bias;
    return graft_op(s->op)->attr_count - (active ? 1u : 0u);
}

bool graft_kin_are_twins(const graft_signature *a, const graft_signature *b)
{
    bool candidate = graft_signature_is_product(a) || (is_floor(a) && is_floor(b));
    if (!candidate || !graft_kin_is(a, b) || own_attrs(a) != own_attrs(b)) {
        return false;
    }
    /* A sum into another place copies first. */
    bool copies = (a->op == GRAFT_OP_conv_bias_add && a->in_place == 0) ||
                  (b->op == GRAFT_OP_conv_bias_add && b->in_place == 0);
    return (!copies || a->op == b->op) && a->in_layouts[0] == b->in_layouts[0] &&
           a->out_layouts[0] == b->out_layouts[0] &&
           memcmp(a->attrs, b->attrs, own_attrs(a) * sizeof(a->attrs[0])) == 0;
}

/* How fast the machine was when entries were recorded, as a part of how fast it is now. */
static double find_level(graft_arena *scratch, const graft_cost_entry *known,
                         const graft_cost_entry *entries, uint32_t count)
{
    double *ratios = GRAFT_NEW(scratch, double, count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].rounds > 0) {
            ratios[found++] = known[i].median_ns / entries[i].median_ns;
        }
    }
    return found == 0 ? 1.0 : graft_cost_quantile(ratios, found, 0.5);
}

static double spread_of(const graft_cost_entry *entry)
{
    return fmax(entry->spread_ns, entry->median_ns * least_spread);
}

static bool are_apart(const graft_cost_entry *a, const graft_cost_entry *b)
{
    return fabs(a->median_ns - b->median_ns) >
           told_apart_spreads * fmax(spread_of(a), spread_of(b));
}

/* The weighted mean of an entry and those of its twins that cannot be told from it. */
static double mean_of_twins(const graft_signature *kin, const graft_cost_entry *entries,
                            uint32_t count, uint32_t of)
{
    double sum_ns = 0.0;
    double weights = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].rounds > 0 && graft_kin_are_twins(&kin[of], &kin[i]) &&
            !are_apart(&entries[of], &entries[i])) {
            double spread_ns = spread_of(&entries[i]);
            sum_ns += entries[i].median_ns / (spread_ns * spread_ns);
            weights += 1.0 / (spread_ns * spread_ns);
        }
    }
    return weights > 0.0 ? sum_ns / weights : entries[of].median_ns;
}

void graft_kin_settle(graft_arena *scratch, const graft_signature *kin,
                      const graft_cost_entry *known, graft_cost_entry *entries, uint32_t count)
{
    GRAFT_SCOPED(scratch);
    double level = find_level(scratch, known, entries, count);
    double *means = GRAFT_NEW(scratch, double, count);
    for (uint32_t i = 0; i < count; i++) {
        means[i] = mean_of_twins(kin, entries, count, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i].median_ns = graft_cost_round(means[i] * level);
        entries[i].spread_ns = graft_cost_round(entries[i].spread_ns * level);
    }
}

/* ------------------------------------------------------------------ leveling */

/* The measured records of the selected device that can have twins. */
static const graft_database_record **list_products(graft_arena *scratch,
                                                   const graft_database *database, uint32_t *count)
{
    const uint32_t records = graft_database_count(database);
    const graft_database_record **list = GRAFT_NEW(scratch, const graft_database_record *, records);
    *count = 0;
    for (uint32_t i = 0; i < records; i++) {
        const graft_database_record *r = graft_database_at(database, i);
        if (r->entry.source == GRAFT_COST_MEASURED && graft_op(r->signature.op) != NULL &&
            graft_database_selects(database, r)) {
            list[(*count)++] = r;
        }
    }
    return list;
}

uint32_t graft_kin_level(graft_arena *scratch, const graft_database *from, graft_database *to)
{
    GRAFT_SCOPED(scratch);
    uint32_t listed = 0;
    uint32_t changed = 0;
    const graft_database_record **list = list_products(scratch, from, &listed);
    graft_signature *twins = GRAFT_NEW(scratch, graft_signature, listed);
    graft_cost_entry *entries = GRAFT_NEW(scratch, graft_cost_entry, listed);
    for (uint32_t r = 0; r < listed; r++) {
        graft_cost_entry entry = list[r]->entry;
        uint32_t count = 0;
        uint32_t own = 0;
        for (uint32_t i = 0; i < listed; i++) {
            if (i == r || graft_kin_are_twins(&list[r]->signature, &list[i]->signature)) {
                own = i == r ? count : own;
                twins[count] = list[i]->signature;
                entries[count++] = list[i]->entry;
            }
        }
        if (count > 1) {
            entry.median_ns = graft_cost_round(mean_of_twins(twins, entries, count, own));
            graft_database_add(to, &list[r]->signature, &entry);
            changed += entry.median_ns < list[r]->entry.median_ns ||
                       entry.median_ns > list[r]->entry.median_ns;
        }
    }
    return changed;
}

/* ----------------------------------------------------------------- measuring */

graft_status graft_kin_measure(graft_env *env, graft_cost *cost, const graft_signature *kin,
                               uint32_t count, const char *const *only, graft_cost_entry *entries)
{
    graft_measure_options options = graft_measure_options_default();
    options.quiet = true;
    options.only = only;
    memset(entries, 0, count * sizeof(entries[0]));
    GRAFT_PASS(graft_cost_anchor(env, cost, &options.anchor));
    return graft_measure(env, graft_cost_device(cost), kin, count, &options, entries);
}

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

/* ----------------------------------------------------------------- a journal */

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

/* ----------------------------------------------------------------- confirming */

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
    for (uint32_t i = 0; i < count; i++) {
        kin[i] = graft_database_at(database, records[i])->signature;
        known[i] = graft_database_at(database, records[i])->entry;
    }
    GRAFT_PASS(graft_kin_measure(c->env, c->cost, kin, count, NULL, entries));
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
    GRAFT_PASS(graft_cost_set_calibration(c->env, c->cost, &calibration));
    GRAFT_PASS(graft_cost_save(c->env, c->cost));
    if (c->journal != NULL) {
        (void)unlink(c->journal);
    }
    return GRAFT_OK;
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
