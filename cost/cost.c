/* cost.c - entries of operators: looking up, measuring on demand, estimating (see cost.h). */
#include "cost/cost_entries.h"

#include "cost/database/nearest.h"
#include "cost/database/recorded.h"
#include "cost/device/backend.h"
#include "cost/measure/confirm.h"
#include "graph/base/file.h"
#include "graph/base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the library's name where measure.c's protocol is in use (see device.c). Other back ends
 * measure in their own way, with data wherever it is. */
static const char protocol_mark[] = ", protocol ";
/* Part of the recorded time below which an anchor was not merely lucky. */
static const double clearly_faster = 0.97;

/* --------------------------------------------------------------- life time */

/* The database of a device that is here is a file to be added to; of one that is not, a copy in
 * memory of what is recorded: in that file or else in those that come with Graft. */
static graft_status open_databases(graft_env *env, graft_cost *cost, const char *path)
{
    bool present = graft_device_present(cost->device);
    GRAFT_PASS(graft_database_open(env, present ? path : NULL, &cost->database));
    GRAFT_PASS(graft_database_open(env, NULL, &cost->estimates));
    if (!present) {
        if (path != NULL && graft_file_exists(path)) {
            GRAFT_PASS(graft_database_merge(env, cost->database, path));
        }
        if (!graft_recorded_has(cost->database, graft_device_name(cost->device))) {
            GRAFT_PASS(graft_shipped_merge(env, cost->database, graft_device_name(cost->device)));
        }
        GRAFT_PASS(graft_recorded_find(env, cost->database, cost->device, path));
    } else {
        graft_recorded_announce(env, cost->database, cost->device, path);
    }
    return GRAFT_OK;
}

bool graft_cost_is_cudnn(const graft_cost *cost)
{
    return strstr(graft_device_library(cost->device), "cuDNN") != NULL;
}

static void free_cost(graft_cost *cost)
{
    graft_database_close(cost->database);
    graft_database_close(cost->estimates);
    graft_database_close(cost->leveled);
    graft_database_close(cost->corrected);
    graft_anchor_close(cost->anchor);
    graft_plan_memo_free(cost->memo);
    (void)pthread_mutex_destroy(&cost->lock);
    (void)pthread_mutex_destroy(&cost->memo_lock);
    free(cost);
}

graft_status graft_cost_open(graft_env *env, graft_device *device, const char *path,
                             graft_cost **cost)
{
    graft_status status = GRAFT_OK;
    graft_cost *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for costs");
    }
    c->device = device;
    c->options = graft_measure_options_default();
    c->options.quiet = true;
    c->layout = GRAFT_LAYOUT_NHWC;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->memo_lock, NULL);
    c->memo = graft_plan_memo_new(); /* Without memory for it plans are slower, not wrong. */
    GRAFT_CHECK(open_databases(env, c, path));
    c->program = graft_device_is_program(device);
    c->distant = !c->program && strstr(graft_device_library(device), protocol_mark) != NULL;
    c->takes_pieces = c->distant || graft_cost_is_cudnn(c);
    c->copies = !c->takes_pieces;
    c->convention = c->program;
    c->layout = c->program ? GRAFT_LAYOUT_PLAIN : c->layout;
    graft_database_select(c->database, graft_device_name(device), graft_device_library(device));
    graft_database_select(c->estimates, graft_device_name(device), graft_device_library(device));
    const graft_calibration calibration = graft_calibration_read(c->database);
    GRAFT_CHECK(graft_cost_set_calibration(env, c, &calibration));
done:
    if (status == GRAFT_OK) {
        *cost = c;
    } else {
        free_cost(c);
    }
    return status;
}

graft_status graft_cost_save(graft_env *env, graft_cost *cost)
{
    GRAFT_LOCKED(&cost->lock);
    return graft_database_save(env, cost->database);
}

graft_status graft_cost_close(graft_env *env, graft_cost *cost)
{
    if (cost == NULL) {
        return GRAFT_OK;
    }
    graft_status status = graft_database_save(env, cost->database);
    if (cost->statistics.estimated > 0 && !cost->borrowed) {
        graft_log(env, 1,
                  "%u costs of '%s' are estimates: its records lack them (graft measure "
                  "marks which)",
                  cost->statistics.estimated, graft_device_name(cost->device));
    }
    free_cost(cost);
    return status;
}

graft_status graft_cost_finish(graft_env *env, graft_cost *cost, graft_device *device,
                               graft_status status)
{
    char message[GRAFT_MESSAGE_BYTES];
    memcpy(message, env->message, sizeof(message));
    graft_env_clear(env); /* Saving may add to a message. */
    graft_status closed = graft_cost_close(env, cost);
    graft_device_close(device);
    if (status != GRAFT_OK) {
        memcpy(env->message, message, sizeof(message));
    }
    return status != GRAFT_OK ? status : closed;
}

void graft_cost_set_model(graft_cost *cost, const graft_model *model) { cost->model = model; }

void graft_cost_set_measuring(graft_cost *cost, const graft_measure_options *options)
{
    cost->options = *options;
}

void graft_cost_set_estimating(graft_cost *cost, bool estimating)
{
    cost->estimating = estimating;
    graft_plan_memo_clear(cost->memo);
}

graft_status graft_cost_borrow(graft_env *env, graft_cost *cost, const char *path)
{
    if (path != NULL && graft_file_exists(path)) {
        GRAFT_PASS(graft_database_merge(env, cost->database, path));
    }
    GRAFT_PASS(graft_shipped_borrow(env, cost->database, graft_device_name(cost->device)));
    cost->borrowed = true;
    graft_cost_set_estimating(cost, true);
    return GRAFT_OK;
}

void graft_cost_set_deadline(graft_cost *cost, uint64_t deadline_ns)
{
    cost->deadline_ns = deadline_ns;
}

void graft_cost_set_convention(graft_cost *cost, bool convention)
{
    cost->convention = convention || cost->program;
}

void graft_cost_set_base(graft_cost *cost, uint32_t layout)
{
    cost->convention = true;
    cost->layout = (uint8_t)layout;
    cost->direct = true;
    graft_cost_set_copies(cost);
}

void graft_cost_set_copies(graft_cost *cost)
{
    cost->copies = true;
    graft_plan_memo_clear(cost->memo);
}

static graft_status open_memory(graft_env *env, const graft_cost *cost, graft_database **database)
{
    GRAFT_PASS(graft_database_open(env, NULL, database));
    graft_database_select(*database, graft_device_name(cost->device),
                          graft_device_library(cost->device));
    return GRAFT_OK;
}

graft_calibration graft_cost_calibration(const graft_cost *cost) { return cost->calibration; }

graft_status graft_cost_set_calibration(graft_env *env, graft_cost *cost,
                                        const graft_calibration *calibration)
{
    graft_database *corrected = NULL;
    if (calibration->graphs > 0) {
        GRAFT_PASS(open_memory(env, cost, &corrected));
    }
    graft_database_close(cost->corrected);
    cost->corrected = corrected;
    cost->calibration = *calibration;
    graft_plan_memo_clear(cost->memo);
    return GRAFT_OK;
}

graft_status graft_cost_store_calibration(graft_env *env, graft_cost *cost,
                                          const graft_calibration *calibration,
                                          const char *provenance)
{
    graft_calibration_write(calibration, provenance, cost->database);
    return graft_cost_set_calibration(env, cost, calibration);
}

graft_device *graft_cost_device(const graft_cost *cost) { return cost->device; }

const graft_database *graft_cost_database(const graft_cost *cost) { return cost->database; }

const graft_database *graft_cost_estimates(const graft_cost *cost) { return cost->estimates; }

void graft_cost_statistics_of(const graft_cost *cost, graft_cost_statistics *statistics)
{
    *statistics = cost->statistics;
    statistics->entries = 0;
    for (uint32_t i = 0; i < graft_database_count(cost->database); i++) {
        statistics->entries +=
            graft_database_selects(cost->database, graft_database_at(cost->database, i));
    }
}

/* --------------------------------------------------------------- measuring */

static int compare_signatures(const void *a, const void *b)
{
    const graft_signature *const *left = a;
    const graft_signature *const *right = b;
    return graft_signature_compare(*left, *right);
}

/* Without what entries of this device do not distinguish. */
static graft_signature without_place(const graft_cost *cost, const graft_signature *signature)
{
    graft_signature copy;
    memcpy(&copy, signature, sizeof(copy));
    if (!cost->program || copy.const_mask == 0) {
        copy.distance = 0;
    }
    if (cost->program) {
        copy.in_place = 0;
        memset(copy.in_layouts, GRAFT_LAYOUT_ROW, sizeof(copy.in_layouts));
        memset(copy.out_layouts, GRAFT_LAYOUT_ROW, sizeof(copy.out_layouts));
    }
    return copy;
}

/* A device that is a program may have said, or shown, that it cannot time an operator: that one is
 * estimated, and not asked for again in this run. */
static bool is_refused(const graft_cost *cost, const graft_signature *signature)
{
    return cost->program && graft_database_find(cost->estimates, signature) != NULL;
}

/* Each once: all, or what the database lacks. */
static graft_signature *list_once(graft_arena *arena, const graft_cost *cost, bool missing,
                                  const graft_signature *signatures, uint32_t count,
                                  uint32_t *listed_count)
{
    const graft_signature **sorted = GRAFT_NEW(arena, const graft_signature *, count);
    graft_signature *listed = GRAFT_NEW(arena, graft_signature, count);
    *listed_count = 0;
    graft_signature *plain = GRAFT_NEW(arena, graft_signature, cost->distant ? 0 : count);
    for (uint32_t i = 0; i < count; i++) {
        if (!cost->distant) {
            plain[i] = without_place(cost, &signatures[i]);
        }
        sorted[i] = cost->distant ? &signatures[i] : &plain[i];
    }
    qsort(sorted, count, sizeof(sorted[0]), compare_signatures);
    for (uint32_t i = 0; i < count; i++) {
        bool repeated = i > 0 && graft_signature_equal(sorted[i - 1], sorted[i]);
        if (!repeated && !(missing && (graft_database_find(cost->database, sorted[i]) != NULL ||
                                       is_refused(cost, sorted[i])))) {
            listed[(*listed_count)++] = *sorted[i];
        }
    }
    return listed;
}

/* The lock is held. What the anchor takes at its best is recorded: the first run may have met a
 * machine that was never quiet. */
static graft_status obtain_anchor(graft_env *env, graft_cost *cost)
{
    graft_signature signature;
    graft_cost_entry entry;
    if (cost->anchor != NULL || !cost->distant) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_anchor_open(env, &cost->anchor));
    graft_anchor_signature(&signature);
    const graft_cost_entry *known = graft_database_find(cost->database, &signature);
    graft_anchor_measure(cost->anchor, &entry);
    if (known == NULL || entry.median_ns < known->median_ns * clearly_faster) {
        graft_database_add(cost->database, &signature, &entry);
    } else {
        entry = *known;
    }
    graft_anchor_refer(cost->anchor, &entry);
    return GRAFT_OK;
}

graft_status graft_cost_anchor(graft_env *env, graft_cost *cost, graft_anchor **anchor)
{
    GRAFT_LOCKED(&cost->lock);
    graft_status status = obtain_anchor(env, cost);
    *anchor = cost->anchor;
    return status;
}

/* The lock is held. Measures `count` signatures, each listed once; of two measurements of one the
 * faster is kept. */
static graft_status measure_listed(graft_env *env, graft_cost *cost, const graft_signature *listed,
                                   uint32_t count, const graft_measure_options *options)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_cost_entry *entries = GRAFT_NEW(env->scratch, graft_cost_entry, count);
    uint64_t start_ns = graft_clock_ns();
    if (count > 0) {
        graft_measure_options anchored = *options;
        GRAFT_TRY(env, graft_database_check(env, cost->database),
                  "costs were not measured: --database FILE keeps them elsewhere");
        GRAFT_CHECK(obtain_anchor(env, cost));
        anchored.anchor = cost->anchor;
        anchored.direct = cost->direct;
        status = graft_measure(env, cost->device, listed, count, &anchored, entries);
    }
    for (uint32_t i = 0; i < count; i++) {
        const graft_cost_entry *known = graft_database_find(cost->database, &listed[i]);
        if (entries[i].rounds > 0 && (known == NULL || entries[i].median_ns < known->median_ns)) {
            graft_database_add(cost->database, &listed[i], &entries[i]);
        }
        cost->statistics.measured += entries[i].rounds > 0;
    }
    cost->statistics.measuring_ns += graft_clock_ns() - start_ns;
done:
    return status;
}

/* The lock is held. Where there is too little to fit a line to and the device is here, probes are
 * measured first. */
static graft_status fit_roofline(graft_env *env, graft_cost *cost)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    graft_roofline_fit(env, cost->database, &cost->roofline);
    if (cost->roofline.products.points == 0 && graft_device_present(cost->device)) {
        const graft_signature *probes = graft_roofline_probes(env->scratch, &count);
        probes = list_once(env->scratch, cost, true, probes, count, &count);
        GRAFT_PASS(measure_listed(env, cost, probes, count, &cost->options));
        graft_roofline_fit(env, cost->database, &cost->roofline);
    }
    cost->fitted = true;
    return GRAFT_OK;
}

graft_status graft_cost_estimate(graft_env *env, graft_cost *cost, uint32_t op, uint64_t flops,
                                 uint64_t bytes, graft_cost_entry *entry)
{
    if (!cost->fitted) {
        GRAFT_PASS(fit_roofline(env, cost));
    }
    if (!graft_roofline_estimate(&cost->roofline, op, flops, bytes, entry)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "device '%s' has too few measured costs to estimate others",
                          graft_device_name(cost->device));
    }
    return GRAFT_OK;
}

/* The lock is held. As the nearest measured operator is off the roofline. */
static graft_status estimate_signature(graft_env *env, graft_cost *cost,
                                       const graft_signature *signature, graft_cost_entry *entry)
{
    GRAFT_PASS(graft_cost_estimate(env, cost, signature->op, graft_signature_flops(signature),
                                   graft_signature_bytes(signature), entry));
    graft_nearest_correct(cost->database, &cost->roofline, signature, entry);
    return GRAFT_OK;
}

/* The lock is held. Of what a program was asked and did not answer. */
static graft_status estimate_refused(graft_env *env, graft_cost *cost,
                                     const graft_signature *listed, uint32_t count)
{
    graft_cost_entry entry;
    for (uint32_t i = 0; i < count && cost->program; i++) {
        if (graft_database_find(cost->database, &listed[i]) == NULL &&
            !is_refused(cost, &listed[i])) {
            GRAFT_PASS(estimate_signature(env, cost, &listed[i], &entry));
            graft_database_add(cost->estimates, &listed[i], &entry);
            cost->statistics.estimated++;
        }
    }
    return GRAFT_OK;
}

/* The lock is held. Measures all signatures, or what the database lacks. */
static graft_status measure_signatures(graft_env *env, graft_cost *cost, bool missing,
                                       const graft_signature *signatures, uint32_t given,
                                       const graft_measure_options *options)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    const graft_signature *listed =
        list_once(env->scratch, cost, missing, signatures, given, &count);
    GRAFT_PASS(measure_listed(env, cost, listed, count, options));
    return estimate_refused(env, cost, listed, count);
}

graft_status graft_cost_measure_again(graft_env *env, graft_cost *cost,
                                      const graft_signature *signatures, uint32_t count,
                                      const graft_measure_options *options)
{
    GRAFT_LOCKED(&cost->lock);
    GRAFT_PASS(measure_signatures(env, cost, false, signatures, count, options));
    return graft_cost_set_calibration(env, cost, &cost->calibration);
}

static bool is_late(const graft_cost *cost)
{
    return cost->deadline_ns > 0 && graft_clock_ns() >= cost->deadline_ns;
}

graft_status graft_cost_measure(graft_env *env, graft_cost *cost, const graft_signature *signatures,
                                uint32_t count, const graft_measure_options *options)
{
    enum { AT_ONCE = 2 }; /* Between looks at the clock. */
    graft_status status = GRAFT_OK;
    uint32_t done = 0;
    GRAFT_LOCKED(&cost->lock);
    while (done < count && status == GRAFT_OK && !is_late(cost)) {
        uint32_t left = count - done;
        uint32_t share = cost->deadline_ns > 0 && left > AT_ONCE ? AT_ONCE : left;
        status = measure_signatures(env, cost, true, signatures + done, share, options);
        done += share;
    }
    if (is_late(cost) && !cost->estimating) {
        graft_log(env, 1, "the time for measuring is over: what is missing is estimated");
        graft_cost_set_estimating(cost, true);
    }
    return status;
}

bool graft_cost_is_leveled(const graft_cost *cost) { return cost->leveled != NULL; }

graft_status graft_cost_level(graft_env *env, graft_cost *cost, uint32_t *count)
{
    graft_database *leveled = NULL;
    *count = 0;
    if (!cost->distant) { /* Counted, or the answers of a program. */
        return GRAFT_OK;
    }
    GRAFT_PASS(open_memory(env, cost, &leveled));
    *count = graft_kin_level(env->scratch, cost->database, leveled);
    graft_database_close(cost->leveled);
    cost->leveled = leveled;
    return graft_cost_set_calibration(env, cost, &cost->calibration);
}

void graft_cost_store(graft_cost *cost, const graft_signature *signature,
                      const graft_cost_entry *entry)
{
    graft_database_add(cost->database, signature, entry);
    graft_plan_memo_clear(cost->memo);
}

/* ----------------------------------------------------------------- looking up */

/* As measured or estimated. */
static const graft_cost_entry *find_plain(const graft_cost *cost, const graft_signature *signature)
{
    const graft_cost_entry *entry =
        cost->leveled == NULL ? NULL : graft_database_find(cost->leveled, signature);
    entry = entry != NULL ? entry : graft_database_find(cost->database, signature);
    return entry != NULL ||
                   (!cost->program && !cost->estimating && graft_device_present(cost->device))
               ? entry
               : graft_database_find(cost->estimates, signature);
}

const graft_cost_entry *graft_cost_find(const graft_cost *cost, const graft_signature *signature)
{
    graft_signature plain;
    if (!cost->distant) {
        plain = without_place(cost, signature);
        signature = &plain;
    }
    if (cost->corrected == NULL) {
        return find_plain(cost, signature);
    }
    const graft_cost_entry *entry = graft_database_find(cost->corrected, signature);
    const graft_cost_entry *uncorrected = entry == NULL ? find_plain(cost, signature) : NULL;
    if (uncorrected != NULL) {
        graft_cost_entry copy = *uncorrected;
        graft_calibration_apply(&cost->calibration, signature, &copy);
        graft_database_add(cost->corrected, signature, &copy);
        entry = graft_database_find(cost->corrected, signature);
    }
    return entry;
}

/* An estimate that is going to be run has to name what is run. */
static void name_estimate(const graft_cost *cost, const graft_signature *signature,
                          graft_cost_entry *entry)
{
    const char *name =
        cost->borrowed ? graft_nearest_implementation(cost->database,
                                                      graft_device_name(cost->device), signature)
                       : NULL;
    if (name != NULL) {
        (void)snprintf(entry->implementation, sizeof(entry->implementation), "%s", name);
    }
}

/* The lock is held, and the entry is in neither database. */
static graft_status add_entry(graft_env *env, graft_cost *cost, const graft_signature *signature)
{
    graft_cost_entry entry;
    if (!cost->estimating && graft_device_present(cost->device)) {
        return measure_signatures(env, cost, true, signature, 1, &cost->options);
    }
    const graft_signature known = cost->distant ? *signature : without_place(cost, signature);
    GRAFT_PASS(estimate_signature(env, cost, &known, &entry));
    name_estimate(cost, &known, &entry);
    graft_database_add(cost->estimates, &known, &entry);
    cost->statistics.estimated++;
    return GRAFT_OK;
}

graft_status graft_cost_obtain(graft_env *env, graft_cost *cost, const graft_signature *signature,
                               const graft_cost_entry **entry)
{
    *entry = graft_cost_find(cost, signature);
    if (*entry != NULL) {
        return GRAFT_OK;
    }
    GRAFT_LOCKED(&cost->lock);
    *entry = graft_cost_find(cost, signature); /* Another thread may have been first. */
    if (*entry == NULL) {
        GRAFT_PASS(add_entry(env, cost, signature));
        *entry = graft_cost_find(cost, signature);
    }
    return *entry != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_INTERNAL, "an operator was measured without a result");
}

graft_status graft_cost_signature(graft_env *env, graft_cost *cost,
                                  const graft_signature *signature, graft_cost_entry *entry)
{
    const graft_cost_entry *found = NULL;
    GRAFT_PASS(graft_cost_obtain(env, cost, signature, &found));
    *entry = *found;
    return GRAFT_OK;
}
