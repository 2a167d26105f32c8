/* cost.c - looking up, measuring on demand, estimating, and summing (see cost.h). */
#include "cost/cost.h"

#include "cost/database/recorded.h"
#include "cost/database/shipped.h"
#include "cost/device/backend.h"
#include "cost/measure/confirm.h"
#include "cost/plan/plan.h"
#include "cost/plan/prepare.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/equal.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct graft_cost {
    graft_device *device;
    graft_database *database;
    graft_database *estimates; /* In memory only: estimated once, then looked up. */
    graft_database *leveled;   /* In memory only: times of twins; NULL: as measured. */
    graft_database *corrected; /* In memory only: the calibrated ones of both; NULL: none is. */
    graft_calibration calibration;
    graft_measure_options options;
    graft_anchor *anchor; /* Opened when something is to be measured. */
    graft_roofline roofline;
    bool estimating;
    bool borrowed;        /* Its entries are there to choose kernels by: see graft_cost_borrow. */
    uint64_t deadline_ns; /* Of measuring; 0: none. */
    bool convention;
    uint8_t layout;    /* Of the convention. */
    bool direct;       /* Only direct implementations are measured. */
    bool copies;       /* No views but aliases. */
    bool takes_pieces; /* Operators may read and write inside of larger tensors. */
    bool distant;      /* Entries of this device distinguish how far away data lie. */
    bool program;      /* Its entries are answers of a program, which lays tensors out itself. */
    bool fitted;
    const graft_model *model; /* Of graphs; NULL: not known. */
    graft_cost_statistics statistics;
    pthread_mutex_t lock; /* Of everything but looking up. */
    graft_plan_memo *memo;
    pthread_mutex_t memo_lock; /* Who does not get it at once plans without the memo. */
};

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
    graft_status status = GRAFT_OK;
    bool present = graft_device_present(cost->device);
    GRAFT_CHECK(graft_database_open(env, present ? path : NULL, &cost->database));
    GRAFT_CHECK(graft_database_open(env, NULL, &cost->estimates));
    if (!present) {
        if (path != NULL && graft_file_exists(path)) {
            GRAFT_CHECK(graft_database_merge(env, cost->database, path));
        }
        if (!graft_recorded_has(cost->database, graft_device_name(cost->device))) {
            GRAFT_CHECK(graft_shipped_merge(env, cost->database));
        }
        GRAFT_CHECK(graft_recorded_find(env, cost->database, cost->device, path));
    } else {
        graft_recorded_announce(env, cost->database, cost->device, path);
    }
done:
    return status;
}

static bool is_cudnn(const graft_cost *cost)
{
    return strstr(graft_device_library(cost->device), "cuDNN") != NULL;
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
    c->takes_pieces = c->distant || is_cudnn(c);
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
        graft_database_close(c->database);
        graft_database_close(c->estimates);
        graft_database_close(c->corrected);
        graft_plan_memo_free(c->memo);
        free(c);
    }
    return status;
}

graft_status graft_cost_save(graft_env *env, graft_cost *cost)
{
    (void)pthread_mutex_lock(&cost->lock);
    graft_status status = graft_database_save(env, cost->database);
    (void)pthread_mutex_unlock(&cost->lock);
    return status;
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
    graft_database_close(cost->database);
    graft_database_close(cost->estimates);
    graft_database_close(cost->leveled);
    graft_database_close(cost->corrected);
    graft_anchor_close(cost->anchor);
    graft_plan_memo_free(cost->memo);
    (void)pthread_mutex_destroy(&cost->lock);
    (void)pthread_mutex_destroy(&cost->memo_lock);
    free(cost);
    return status;
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
    graft_status status = GRAFT_OK;
    if (path != NULL && graft_file_exists(path)) {
        GRAFT_CHECK(graft_database_merge(env, cost->database, path));
    }
    GRAFT_CHECK(graft_shipped_borrow(env, cost->database, graft_device_name(cost->device)));
    cost->borrowed = true;
    graft_cost_set_estimating(cost, true);
done:
    return status;
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
    graft_cost_set_copies(cost, true);
}

void graft_cost_set_copies(graft_cost *cost, bool copies)
{
    cost->copies = copies || !cost->takes_pieces;
    graft_plan_memo_clear(cost->memo);
}

graft_calibration graft_cost_calibration(const graft_cost *cost) { return cost->calibration; }

graft_status graft_cost_set_calibration(graft_env *env, graft_cost *cost,
                                        const graft_calibration *calibration)
{
    graft_status status = GRAFT_OK;
    graft_database *corrected = NULL;
    if (calibration->graphs > 0) {
        GRAFT_CHECK(graft_database_open(env, NULL, &corrected));
        graft_database_select(corrected, graft_device_name(cost->device),
                              graft_device_library(cost->device));
    }
    graft_database_close(cost->corrected);
    cost->corrected = corrected;
    cost->calibration = *calibration;
    graft_plan_memo_clear(cost->memo);
done:
    return status;
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

static bool is_own(const graft_cost *cost, const graft_database_record *record)
{
    return strcmp(record->device, graft_device_name(cost->device)) == 0 &&
           strcmp(record->library, graft_device_library(cost->device)) == 0;
}

void graft_cost_statistics_of(const graft_cost *cost, graft_cost_statistics *statistics)
{
    *statistics = cost->statistics;
    statistics->entries = 0;
    for (uint32_t i = 0; i < graft_database_count(cost->database); i++) {
        const graft_database_record *record = graft_database_at(cost->database, i);
        statistics->entries += is_own(cost, record);
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
    graft_status status = GRAFT_OK;
    graft_signature signature;
    graft_cost_entry entry;
    if (cost->anchor != NULL || !cost->distant) {
        return GRAFT_OK;
    }
    GRAFT_CHECK(graft_anchor_open(env, &cost->anchor));
    graft_anchor_signature(&signature);
    const graft_cost_entry *known = graft_database_find(cost->database, &signature);
    graft_anchor_measure(cost->anchor, &entry);
    if (known == NULL || entry.median_ns < known->median_ns * clearly_faster) {
        graft_database_add(cost->database, &signature, &entry);
    } else {
        entry = *known;
    }
    graft_anchor_refer(cost->anchor, &entry);
done:
    return status;
}

graft_status graft_cost_anchor(graft_env *env, graft_cost *cost, graft_anchor **anchor)
{
    (void)pthread_mutex_lock(&cost->lock);
    graft_status status = obtain_anchor(env, cost);
    *anchor = cost->anchor;
    (void)pthread_mutex_unlock(&cost->lock);
    return status;
}

/* The lock is held. Measures `count` signatures, each listed once; of two measurements of one the
 * faster is kept. */
static graft_status measure_listed(graft_env *env, graft_cost *cost, const graft_signature *listed,
                                   uint32_t count, const graft_measure_options *options)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_cost_entry *entries = GRAFT_NEW(env->scratch, graft_cost_entry, count);
    uint64_t start_ns = graft_clock_ns();
    if (count > 0) {
        graft_measure_options anchored = *options;
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
    graft_arena_release(env->scratch, mark);
    return status;
}

/* The lock is held. Where there is too little to fit a line to and the device is here, probes are
 * measured first. */
static graft_status fit_roofline(graft_env *env, graft_cost *cost)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    const char *name = graft_device_name(cost->device);
    const char *library = graft_device_library(cost->device);
    uint32_t count = 0;
    graft_roofline_fit(env, cost->database, name, library, &cost->roofline);
    if (cost->roofline.products.points == 0 && graft_device_present(cost->device)) {
        const graft_signature *probes = graft_roofline_probes(env->scratch, &count);
        probes = list_once(env->scratch, cost, true, probes, count, &count);
        GRAFT_CHECK(measure_listed(env, cost, probes, count, &cost->options));
        graft_roofline_fit(env, cost->database, name, library, &cost->roofline);
    }
    cost->fitted = true;
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

static graft_status estimate(graft_env *env, graft_cost *cost, uint32_t op, uint64_t flops,
                             uint64_t bytes, graft_cost_entry *entry)
{
    graft_status status = GRAFT_OK;
    if (!cost->fitted) {
        GRAFT_CHECK(fit_roofline(env, cost));
    }
    if (!graft_roofline_estimate(&cost->roofline, op, flops, bytes, entry)) {
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                            "device '%s' has too few measured costs to estimate others",
                            graft_device_name(cost->device));
    }
done:
    return status;
}

/* The lock is held. Of what a program was asked and did not answer. */
static graft_status estimate_refused(graft_env *env, graft_cost *cost,
                                     const graft_signature *listed, uint32_t count)
{
    graft_status status = GRAFT_OK;
    graft_cost_entry entry;
    for (uint32_t i = 0; i < count && cost->program; i++) {
        if (graft_database_find(cost->database, &listed[i]) == NULL &&
            !is_refused(cost, &listed[i])) {
            GRAFT_CHECK(estimate(env, cost, listed[i].op, graft_signature_flops(&listed[i]),
                                 graft_signature_bytes(&listed[i]), &entry));
            graft_database_add(cost->estimates, &listed[i], &entry);
            cost->statistics.estimated++;
        }
    }
done:
    return status;
}

/* The lock is held. Measures all signatures, or what the database lacks. */
static graft_status measure_signatures(graft_env *env, graft_cost *cost, bool missing,
                                       const graft_signature *signatures, uint32_t given,
                                       const graft_measure_options *options)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    uint32_t count = 0;
    const graft_signature *listed =
        list_once(env->scratch, cost, missing, signatures, given, &count);
    GRAFT_CHECK(measure_listed(env, cost, listed, count, options));
    GRAFT_CHECK(estimate_refused(env, cost, listed, count));
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_cost_measure_again(graft_env *env, graft_cost *cost,
                                      const graft_signature *signatures, uint32_t count,
                                      const graft_measure_options *options)
{
    (void)pthread_mutex_lock(&cost->lock);
    graft_status status = measure_signatures(env, cost, false, signatures, count, options);
    (void)pthread_mutex_unlock(&cost->lock);
    return status == GRAFT_OK ? graft_cost_set_calibration(env, cost, &cost->calibration) : status;
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
    (void)pthread_mutex_lock(&cost->lock);
    while (done < count && status == GRAFT_OK && !is_late(cost)) {
        uint32_t left = count - done;
        uint32_t share = cost->deadline_ns > 0 && left > AT_ONCE ? AT_ONCE : left;
        status = measure_signatures(env, cost, true, signatures + done, share, options);
        done += share;
    }
    (void)pthread_mutex_unlock(&cost->lock);
    if (is_late(cost) && !cost->estimating) {
        graft_log(env, 1, "the time for measuring is over: what is missing is estimated");
        graft_cost_set_estimating(cost, true);
    }
    return status;
}

bool graft_cost_is_leveled(const graft_cost *cost) { return cost->leveled != NULL; }

graft_status graft_cost_level(graft_env *env, graft_cost *cost, uint32_t *count)
{
    graft_status status = GRAFT_OK;
    const char *device = graft_device_name(cost->device);
    const char *library = graft_device_library(cost->device);
    graft_database *leveled = NULL;
    *count = 0;
    if (!cost->distant) { /* Counted, or the answers of a program. */
        return GRAFT_OK;
    }
    GRAFT_CHECK(graft_database_open(env, NULL, &leveled));
    graft_database_select(leveled, device, library);
    *count = graft_kin_level(env->scratch, cost->database, device, library, leveled);
    graft_database_close(cost->leveled);
    cost->leveled = leveled;
    GRAFT_CHECK(graft_cost_set_calibration(env, cost, &cost->calibration));
done:
    return status;
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

/* As it is in a network. */
static const graft_cost_entry *find_entry(const graft_cost *cost, const graft_signature *signature)
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
        cost->borrowed ? graft_estimate_implementation(cost->database,
                                                       graft_device_name(cost->device), signature)
                       : NULL;
    if (name != NULL) {
        (void)snprintf(entry->implementation, sizeof(entry->implementation), "%s", name);
    }
}

/* The lock is held, and the entry is in neither database. */
static graft_status add_entry(graft_env *env, graft_cost *cost, const graft_signature *signature)
{
    graft_status status = GRAFT_OK;
    graft_cost_entry entry;
    if (!cost->estimating && graft_device_present(cost->device)) {
        return measure_signatures(env, cost, true, signature, 1, &cost->options);
    }
    if (!cost->distant || !graft_estimate_from_elsewhere(cost->database, signature, &entry)) {
        GRAFT_CHECK(estimate(env, cost, signature->op, graft_signature_flops(signature),
                             graft_signature_bytes(signature), &entry));
        name_estimate(cost, signature, &entry);
    }
    const graft_signature plain = without_place(cost, signature);
    graft_database_add(cost->estimates, cost->distant ? signature : &plain, &entry);
    cost->statistics.estimated++;
done:
    return status;
}

/* Finds or makes the entry of a signature. It stays valid until the cost is closed. */
static graft_status obtain_entry(graft_env *env, graft_cost *cost, const graft_signature *signature,
                                 const graft_cost_entry **entry)
{
    graft_status status = GRAFT_OK;
    *entry = find_entry(cost, signature);
    if (*entry != NULL) {
        return GRAFT_OK;
    }
    (void)pthread_mutex_lock(&cost->lock);
    *entry = find_entry(cost, signature); /* Another thread may have been first. */
    if (*entry == NULL) {
        GRAFT_CHECK(add_entry(env, cost, signature));
        *entry = find_entry(cost, signature);
    }
    if (*entry == NULL) {
        status = GRAFT_FAIL(env, GRAFT_INTERNAL, "an operator was measured without a result");
    }
done:
    (void)pthread_mutex_unlock(&cost->lock);
    return status;
}

graft_status graft_cost_signature(graft_env *env, graft_cost *cost,
                                  const graft_signature *signature, graft_cost_entry *entry)
{
    const graft_cost_entry *found = NULL;
    graft_status status = obtain_entry(env, cost, signature, &found);
    if (status == GRAFT_OK) {
        *entry = *found;
    }
    return status;
}

/* ------------------------------------------------------------------- graphs */

/* Of a weight no more counts than is written: it may be a table of which rows are taken. */
static uint64_t opaque_bytes(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    uint64_t written = 0;
    for (uint32_t k = 0; k < n->output_count; k++) {
        written += graft_cost_bytes(&graph->values[graft_node_output(graph, node, k)].shape);
    }
    uint64_t bytes = written;
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index v = graft_node_input(graph, node, k);
        uint64_t size = v == GRAFT_NONE ? 0 : graft_cost_bytes(&graph->values[v].shape);
        bytes += v != GRAFT_NONE && graph->values[v].is_const && size > written ? written : size;
    }
    return bytes;
}

/* Gives the step of an opaque node the signature of a quantised operator, if it is one. */
static void describe_opaque(const graft_cost *cost, const graft_graph *graph, graft_step *step)
{
    graft_opaque opaque;
    graft_signature signature;
    if (cost->distant && cost->model != NULL &&
        graft_opaque_find(cost->model, graph, step->node, &opaque) &&
        graft_signature_of_opaque(&opaque, &signature)) {
        step->signature = signature;
    }
}

/* `*entry` points to the found entry, or to `*place`, which an opaque node's is written to. */
static graft_status find_step(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_step *step, graft_cost_entry *place,
                              const graft_cost_entry **entry)
{
    if (step->signature.op != GRAFT_OP_OPAQUE) {
        return obtain_entry(env, cost, &step->signature, entry);
    }
    (void)pthread_mutex_lock(&cost->lock);
    graft_status status =
        estimate(env, cost, GRAFT_OP_OPAQUE, 0, opaque_bytes(graph, step->node), place);
    (void)pthread_mutex_unlock(&cost->lock);
    if (status == GRAFT_OK && cost->corrected != NULL) {
        graft_calibration_apply(&cost->calibration, &step->signature, place);
    }
    *entry = place;
    return status;
}

graft_status graft_cost_step(graft_env *env, graft_cost *cost, const graft_graph *graph,
                             const graft_schedule *schedule, uint32_t step, graft_cost_entry *entry)
{
    const graft_cost_entry *found = NULL;
    graft_cost_entry place;
    graft_status status = find_step(env, cost, graph, &schedule->steps[step], &place, &found);
    if (status == GRAFT_OK) {
        *entry = *found;
    }
    return status;
}

static const graft_cost_entry *look_up(void *context, const graft_signature *signature)
{
    return find_entry(context, signature);
}

/* GPUs do so in 16 bits. A group is not asked for again where it cannot be measured. */
static bool fuses(void *context, const graft_signature *signature)
{
    const graft_cost *cost = context;
    const char *name = graft_device_name(cost->device);
    return is_cudnn(cost) && (strstr(name, ", fp16") != NULL || strstr(name, ", bf16") != NULL) &&
           graft_database_find(cost->estimates, signature) == NULL;
}

/* Measures a group, by itself: what no engine runs costs what its nodes do. */
static graft_status supply_group(graft_env *env, graft_cost *cost, const graft_signature *signature)
{
    graft_status status = GRAFT_OK;
    if (!cost->estimating && graft_device_present(cost->device)) {
        status = graft_cost_measure(env, cost, signature, 1, &cost->options);
    }
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(env, 1, "%s", env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    }
    if (status == GRAFT_OK && graft_database_find(cost->database, signature) == NULL) {
        const graft_cost_entry none = {.source = GRAFT_COST_ESTIMATED};
        (void)pthread_mutex_lock(&cost->lock);
        graft_database_add(cost->estimates, signature, &none);
        (void)pthread_mutex_unlock(&cost->lock);
    }
    return status;
}

/* Measures or estimates what a plan lacks. */
static graft_status supply_plan(graft_env *env, graft_cost *cost, graft_plan *plan)
{
    graft_status status = GRAFT_OK;
    const graft_cost_entry *entry = NULL;
    uint32_t count = plan->missing_count;
    plan->missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const graft_signature signature = plan->missing[i];
        if (graft_signature_is_attention(&signature)) {
            GRAFT_CHECK(supply_group(env, cost, &signature));
        } else {
            plan->missing[plan->missing_count++] = signature;
        }
    }
    if (!cost->estimating && graft_device_present(cost->device)) {
        GRAFT_CHECK(
            graft_cost_measure(env, cost, plan->missing, plan->missing_count, &cost->options));
    }
    for (uint32_t i = 0; i < plan->missing_count; i++) {
        GRAFT_CHECK(obtain_entry(env, cost, &plan->missing[i], &entry));
    }
done:
    return status;
}

/* The plan of a graph, in `arena`, when all that it needs is known. */
static graft_status find_plan(graft_env *env, graft_cost *cost, graft_arena *arena,
                              const graft_graph *graph, const graft_order *order, graft_plan *plan)
{
    graft_status status = GRAFT_OK;
    graft_plan_request request = {.graph = graph,
                                  .order = order,
                                  .source = look_up,
                                  .context = cost,
                                  .copies = cost->copies,
                                  .unblocked = is_cudnn(cost),
                                  .fuses = fuses,
                                  .integers = graft_device_head_at(cost->device)->integers,
                                  .model = cost->model};
    for (;;) {
        bool mine = pthread_mutex_trylock(&cost->memo_lock) == 0;
        request.memo = mine ? cost->memo : NULL;
        graft_plan_build(arena, &request, plan);
        if (mine) {
            (void)pthread_mutex_unlock(&cost->memo_lock);
        }
        if (plan->missing_count == 0) {
            break;
        }
        GRAFT_CHECK(supply_plan(env, cost, plan));
    }
    if (!plan->exact) {
        (void)pthread_mutex_lock(&cost->lock);
        cost->statistics.inexact++;
        (void)pthread_mutex_unlock(&cost->lock);
    }
done:
    return status;
}

/* Except in the base of comparisons. In scratch. */
static void prepare_graph(graft_env *env, const graft_cost *cost, const graft_graph **graph,
                          const graft_order **order)
{
    graft_prepare_bytes(env->scratch, graph);
    if (cost->program) { /* It has an order of its own. */
        graft_equal_merge(env->scratch, graph, order);
    } else if (!cost->direct) { /* Elsewhere than on processors opaque nodes run by themselves. */
        graft_prepare_graph(env->scratch, cost->distant ? cost->model : NULL, graph, order);
    }
}

graft_status graft_cost_plan(graft_env *env, graft_cost *cost, graft_arena *arena,
                             const graft_graph *graph, const graft_order *order,
                             graft_schedule *schedule)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_plan plan;
    prepare_graph(env, cost, &graph, &order);
    if (cost->convention) {
        graft_schedule_build_in(arena, graph, order, cost->layout, !cost->copies, schedule);
    } else {
        GRAFT_CHECK(find_plan(env, cost, env->scratch, graph, order, &plan));
        graft_schedule_build_as(arena, graph, order, &plan.assignment, schedule);
    }
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (schedule->steps[i].signature.op == GRAFT_OP_OPAQUE) {
            describe_opaque(cost, graph, &schedule->steps[i]);
        }
    }
done:
    if (arena != env->scratch) {
        graft_arena_release(env->scratch, mark);
    }
    return status;
}

/* Everything that is missing is measured together: interleaved, and once. */
static graft_status measure_schedule(graft_env *env, graft_cost *cost,
                                     const graft_schedule *schedule)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_status status = GRAFT_OK;
    uint32_t count = 0;
    if (!cost->estimating && graft_device_present(cost->device)) {
        graft_signature *signatures =
            GRAFT_NEW(env->scratch, graft_signature, schedule->step_count);
        for (uint32_t i = 0; i < schedule->step_count; i++) {
            if (schedule->steps[i].signature.op != GRAFT_OP_OPAQUE) {
                signatures[count++] = schedule->steps[i].signature;
            }
        }
        status = graft_cost_measure(env, cost, signatures, count, &cost->options);
    }
    graft_arena_release(env->scratch, mark);
    return status;
}

static void add_step(const graft_step *step, const graft_cost_entry *entry, graft_cost_total *sum)
{
    bool reorder = step->node == GRAFT_NONE;
    sum->ns += entry->median_ns;
    sum->reorder_ns += reorder ? entry->median_ns : 0.0;
    sum->flops += entry->flops;
    sum->bytes += entry->bytes;
    sum->launches++;
    sum->reorder_count += reorder;
    sum->estimated_count += entry->source == GRAFT_COST_ESTIMATED;
}

/* The node that a step's time is charged to: a conversion belongs to the node that comes next, one
 * for an output of the graph to the node that made the value. */
static graft_index find_owner(const graft_graph *graph, const graft_schedule *schedule, uint32_t i)
{
    for (uint32_t next = i; next < schedule->step_count; next++) {
        if (schedule->steps[next].node != GRAFT_NONE) {
            return schedule->steps[next].node;
        }
    }
    uint32_t region = graft_step_input(schedule, &schedule->steps[i], 0);
    return graph->values[schedule->regions[region].value].node;
}

/* What a step takes is its node's; of attention each node has its share. */
static void charge(graft_cost_node *by_node, const graft_step *step, graft_index owner,
                   const graft_cost_entry *entry)
{
    const graft_group *group = step->group;
    double rest_ns = entry->median_ns;
    for (uint32_t k = 1; group != NULL && k < group->node_count; k++) {
        const double ns = round(16.0 * entry->median_ns * (double)group->shares[k]) / 16.0;
        by_node[group->nodes[k]].ns += ns;
        rest_ns -= ns;
    }
    by_node[owner].ns += rest_ns;
    by_node[owner].estimated_count += entry->source == GRAFT_COST_ESTIMATED;
}

static graft_status sum_steps(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_schedule *schedule, graft_cost_node *by_node,
                              graft_cost_total *sum)
{
    graft_status status = GRAFT_OK;
    bool complete = false;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const graft_step *step = &schedule->steps[i];
        bool opaque = step->signature.op == GRAFT_OP_OPAQUE;
        const graft_cost_entry *entry = opaque ? NULL : find_entry(cost, &step->signature);
        graft_cost_entry place;
        if (entry == NULL && !opaque && !complete) {
            GRAFT_CHECK(measure_schedule(env, cost, schedule));
            complete = true;
        }
        if (entry == NULL) {
            GRAFT_CHECK(find_step(env, cost, graph, step, &place, &entry));
        }
        add_step(step, entry, sum);
        graft_index owner = by_node == NULL ? GRAFT_NONE : find_owner(graph, schedule, i);
        if (owner != GRAFT_NONE) {
            charge(by_node, step, owner, entry);
        }
    }
    sum->peak_bytes = schedule->peak_bytes;
done:
    return status;
}

graft_status graft_cost_nodes(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, graft_cost_node *by_node,
                              graft_cost_total *total)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_schedule schedule;
    graft_cost_total sum = {.ns = 0.0};
    for (graft_index n = 0; n < graph->node_end && by_node != NULL; n++) {
        by_node[n] = (graft_cost_node){.ns = 0.0};
    }
    graft_status status = graft_cost_plan(env, cost, env->scratch, graph, order, &schedule);
    if (status == GRAFT_OK) {
        status = sum_steps(env, cost, graph, &schedule, by_node, &sum);
    }
    if (status == GRAFT_OK) {
        *total = sum;
    }
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_cost_schedule(graft_env *env, graft_cost *cost, const graft_graph *graph,
                                 const graft_schedule *schedule, graft_cost_total *total)
{
    graft_cost_total sum = {.ns = 0.0};
    graft_status status = sum_steps(env, cost, graph, schedule, NULL, &sum);
    if (status == GRAFT_OK) {
        *total = sum;
    }
    return status;
}

graft_status graft_cost_graph(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, graft_cost_total *total)
{
    return graft_cost_nodes(env, cost, graph, order, NULL, total);
}

/* Opaque nodes are no part of a plan's cost, but for those in groups. */
static graft_status add_opaque(graft_env *env, graft_cost *cost, const graft_graph *graph,
                               const graft_order *order, const graft_groups *groups, double *ns)
{
    graft_status status = GRAFT_OK;
    for (graft_index i = 0; i < order->count; i++) {
        graft_step step = {.signature.op = GRAFT_OP_OPAQUE, .node = order->order[i]};
        const graft_cost_entry *entry = NULL;
        graft_cost_entry place;
        if (graph->nodes[step.node].op == GRAFT_OP_OPAQUE && !graph->nodes[step.node].is_const &&
            graft_group_of(groups, step.node) == NULL) {
            describe_opaque(cost, graph, &step);
            GRAFT_CHECK(find_step(env, cost, graph, &step, &place, &entry));
            *ns += entry->median_ns;
        }
    }
done:
    return status;
}

graft_status graft_cost_price(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, double *ns)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_cost_total total;
    graft_plan plan;
    if (cost->convention) {
        status = graft_cost_graph(env, cost, graph, order, &total);
        *ns = status == GRAFT_OK ? total.ns : *ns;
        return status;
    }
    prepare_graph(env, cost, &graph, &order);
    GRAFT_CHECK(find_plan(env, cost, env->scratch, graph, order, &plan));
    GRAFT_CHECK(add_opaque(env, cost, graph, order, &plan.assignment.groups, &plan.ns));
    *ns = plan.ns;
done:
    graft_arena_release(env->scratch, mark);
    return status;
}
