/* command_cost.c - `graft cost`: databases shown, joined, compared, calibrated, confirmed and
 * measured anew. */
#include "cost/command.h"
#include "cost/measure/calibrate.h"
#include "cost/measure/confirm.h"
#include "cost/measure/renew.h"
#include "cost/plan/supply.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "models/zoo.h"

#include <time.h>

enum { RANDOM_MOST = 1000000, RANDOM_SEED = 1 };

/* ----------------------------------------------------------- show and merge */

typedef struct {
    const char *out; /* To merge into. */
    graft_option_list files;
} file_choices;

/* What a record is of. */
static void begin_json(graft_env *env, const graft_database_record *record, const char *signature,
                       graft_json *json)
{
    graft_json_begin(json, env->scratch);
    graft_json_string(json, "device", record->device);
    graft_json_string(json, "library", record->library);
    graft_json_string(json, "signature", signature);
}

static void print_record(graft_env *env, const graft_database_record *record)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer signature = {.arena = env->scratch};
    const graft_cost_entry *e = &record->entry;
    const char *source = graft_cost_source_name(e);
    graft_signature_print(&record->signature, &signature);
    if (env->json) {
        graft_json json;
        begin_json(env, record, signature.data, &json);
        graft_json_string(&json, "implementation", e->implementation);
        graft_json_number(&json, "median_ns", e->median_ns);
        graft_json_number(&json, "spread_ns", e->spread_ns);
        graft_json_integer(&json, "rounds", e->rounds);
        graft_json_string(&json, "source", source);
        graft_json_end(&json, stdout);
    } else {
        (void)printf("%12.1f us +- %8.1f %4u %s  %-32s %s  [%s, %s]\n", e->median_ns / 1e3,
                     e->spread_ns / 1e3, e->rounds, source, e->implementation, signature.data,
                     record->device, record->library);
    }
}

/* What a file holds, in memory. */
static graft_status read_database(graft_env *env, const char *path, graft_database **database)
{
    GRAFT_PASS(graft_database_open(env, NULL, database));
    return graft_database_merge(env, *database, path);
}

static graft_status show_file(graft_env *env, const char *path)
{
    graft_status status = GRAFT_OK;
    graft_database *database = NULL;
    GRAFT_CHECK(read_database(env, path, &database));
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        print_record(env, graft_database_at(database, i));
    }
done:
    graft_database_close(database);
    return status;
}

static graft_status run_show(graft_env *env, void *choices)
{
    const file_choices *c = choices;
    for (uint32_t i = 0; i < c->files.count; i++) {
        GRAFT_PASS(show_file(env, c->files.items[i]));
    }
    return GRAFT_OK;
}

static graft_status run_merge(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    const file_choices *c = choices;
    graft_database *database = NULL;
    GRAFT_CHECK(graft_database_open(env, c->out, &database));
    for (uint32_t i = 0; i < c->files.count; i++) {
        GRAFT_CHECK(graft_database_merge(env, database, c->files.items[i]));
    }
    GRAFT_CHECK(graft_database_save(env, database));
    (void)fprintf(stderr, "graft: %s: %u entries\n", c->out, graft_database_count(database));
done:
    graft_database_close(database);
    return status;
}

static const graft_option show_options[] = {
    GRAFT_WORDS(file_choices, files, "FILE...", 1, UINT32_MAX, "the databases"),
};

const graft_command graft_command_cost_show = {.name = "cost show",
                                               .summary = "print the entries of cost databases",
                                               GRAFT_TAKES(file_choices, show_options),
                                               .run = run_show};

static const graft_option merge_options[] = {
    GRAFT_WORD(file_choices, out, "OUT", "the database to write; what it has already, it keeps"),
    GRAFT_WORDS(file_choices, files, "FILE...", 1, UINT32_MAX, "databases to join"),
};

const graft_command graft_command_cost_merge = {.name = "cost merge",
                                                .summary = "join cost databases",
                                                GRAFT_TAKES(file_choices, merge_options),
                                                .run = run_merge};

/* -------------------------------------------------------------------- diff */

/* Further apart than both spreads: noise would not do that. */
static bool differs(const graft_cost_entry *a, const graft_cost_entry *b)
{
    double apart = b->median_ns - a->median_ns;
    double noise = a->spread_ns + b->spread_ns;
    return apart > noise || -apart > noise;
}

static void print_difference(graft_env *env, char mark, const graft_database_record *record,
                             const graft_cost_entry *other)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer signature = {.arena = env->scratch};
    graft_signature_print(&record->signature, &signature);
    if (env->json) {
        graft_json json;
        begin_json(env, record, signature.data, &json);
        graft_json_number(&json, mark == '>' ? "b_ns" : "a_ns", record->entry.median_ns);
        if (other != NULL) {
            graft_json_number(&json, "b_ns", other->median_ns);
        }
        graft_json_end(&json, stdout);
    } else {
        const char *ratio = other == NULL
                                ? "        "
                                : graft_arena_printf(env->scratch, "x %6.3f",
                                                     other->median_ns / record->entry.median_ns);
        (void)printf("%c %12.1f us %s  %s  [%s]\n", mark, record->entry.median_ns / 1e3, ratio,
                     signature.data, record->device);
    }
}

/* Entries of `from` that `with` lacks, with the mark `alone`, and, when `both`, those that
 * differ. */
static void diff_records(graft_env *env, const graft_database *from, graft_database *with,
                         char alone, uint32_t counts[2])
{
    bool both = alone == '<';
    for (uint32_t i = 0; i < graft_database_count(from); i++) {
        const graft_database_record *record = graft_database_at(from, i);
        graft_database_select(with, record->device, record->library);
        const graft_cost_entry *same = graft_database_find(with, &record->signature);
        bool differ = same != NULL && both && differs(&record->entry, same);
        counts[0] += same == NULL || both;
        counts[1] += same == NULL || differ;
        if (same == NULL) {
            print_difference(env, alone, record, NULL);
        } else if (differ) {
            print_difference(env, '!', record, same);
        }
    }
}

static graft_status run_diff(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    const file_choices *c = choices;
    graft_database *a = NULL;
    graft_database *b = NULL;
    uint32_t counts[2] = {0, 0};
    GRAFT_CHECK(read_database(env, c->files.items[0], &a));
    GRAFT_CHECK(read_database(env, c->files.items[1], &b));
    diff_records(env, a, b, '<', counts);
    diff_records(env, b, a, '>', counts);
    (void)fprintf(stderr,
                  "graft: %u entries, of which %u are in one file only or differ by more "
                  "than their spreads\n",
                  counts[0], counts[1]);
done:
    graft_database_close(a);
    graft_database_close(b);
    return status;
}

static const graft_option diff_options[] = {
    GRAFT_WORDS(file_choices, files, "FILE...", 2, 2, "the two to compare"),
};

const graft_command graft_command_cost_diff = {
    .name = "cost diff",
    .summary = "print what one of two databases lacks, or differs by more than spreads",
    .forms = "graft cost diff FILE FILE",
    GRAFT_TAKES(file_choices, diff_options),
    .run = run_diff,
};

/* --------------------------------------------------- a device and its database */

typedef struct {
    const char *device_name;
    const char *path;
    const char *models; /* To calibrate with; NULL: the whole zoo. */
    const char *file;   /* To renew, or to draw from. */
    uint32_t wanted;    /* Random sizes. */
    graft_device *device;
    graft_cost *cost;
    graft_database *from; /* What the file holds. */
} opened_cost;

/* What all of them take. */
#define DEVICE_OPTION                                                                              \
    GRAFT_TEXT(opened_cost, device_name, "--device", "NAME", "cpu", "where to measure")
#define DATABASE_OPTION                                                                            \
    GRAFT_TEXT(opened_cost, path, "--database", "FILE", NULL,                                      \
               "where costs are kept (default: the device's, in out/ or ~/.cache/graft)")

/* Does `body` with the device and its database open, and keeps what was measured. */
static graft_status with_cost(graft_env *env, opened_cost *o,
                              graft_status (*body)(graft_env *env, opened_cost *o))
{
    graft_status status = GRAFT_OK;
    o->path = o->path != NULL ? o->path : graft_device_database(env, o->device_name);
    GRAFT_CHECK(graft_device_open(env, o->device_name, 0, &o->device));
    GRAFT_CHECK(graft_cost_open(env, o->device, o->path, &o->cost));
    if (o->file != NULL) {
        GRAFT_CHECK(read_database(env, o->file, &o->from));
    }
    GRAFT_CHECK(body(env, o));
    GRAFT_CHECK(graft_cost_save(env, o->cost));
done:
    graft_database_close(o->from);
    return graft_cost_finish(env, o->cost, o->device, status);
}

/* --------------------------------------------------------------- calibrate */

static graft_status run_calibrate(graft_env *env, opened_cost *o)
{
    const char **models = NULL;
    uint32_t model_count = 0;
    char date[16] = "";
    graft_calibrated measured = {.count = 0};
    time_t now = time(NULL);
    struct tm parts;
    (void)strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &parts));
    if (o->models != NULL) {
        GRAFT_PASS(graft_model_names(env, env->life, o->models, &models, &model_count));
    }
    GRAFT_PASS(graft_calibrate(env, o->cost, models, model_count, date, &measured));
    const graft_calibration calibration = graft_cost_calibration(o->cost);
    graft_calibrated_print(env, &measured, &calibration, stdout);
    return GRAFT_OK;
}

static graft_status calibrate(graft_env *env, void *choices)
{
    return with_cost(env, choices, run_calibrate);
}

static const graft_option calibrate_options[] = {
    GRAFT_TEXT(opened_cost, models, "--models", "A,B", NULL, "these (default: the whole zoo)"),
    DEVICE_OPTION,
    DATABASE_OPTION,
};

const graft_command graft_command_cost_calibrate = {
    .name = "cost calibrate",
    .summary = "measure whole models, and fit what the sums of their operators lack",
    GRAFT_TAKES(opened_cost, calibrate_options),
    .run = calibrate,
};

/* ----------------------------------------------------------------- confirm */

/* All costs that the database has for the device. */
static graft_status run_confirm(graft_env *env, opened_cost *o)
{
    const graft_database *database = graft_cost_database(o->cost);
    const char *journal = graft_arena_printf(env->life, "%s.confirming", o->path);
    uint32_t records = graft_database_count(database);
    graft_signature *signatures = GRAFT_NEW(env->life, graft_signature, records);
    uint32_t count = 0;
    for (uint32_t i = 0; i < records; i++) {
        signatures[i] = graft_database_at(database, i)->signature;
    }
    GRAFT_PASS(graft_cost_confirm(env, o->cost, signatures, records, journal, &count));
    (void)printf("%u of %u costs measured again beside their kin\n", count, records);
    return GRAFT_OK;
}

static graft_status confirm(graft_env *env, void *choices)
{
    opened_cost *o = choices;
    o->path = o->path != NULL ? o->path : graft_device_database(env, o->device_name);
    if (!graft_file_exists(o->path)) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: there is no such database to confirm", o->path);
    }
    return with_cost(env, o, run_confirm);
}

static const graft_option confirm_options[] = {DEVICE_OPTION, DATABASE_OPTION};

const graft_command graft_command_cost_confirm = {
    .name = "cost confirm",
    .summary = "measure what a database has beside its kin again",
    GRAFT_TAKES(opened_cost, confirm_options),
    .run = confirm,
};

/* ------------------------------------------------------------------- renew */

/* Records what a file has with the library and the kernels of today, without repeating the searches
 * that met it. */
static graft_status run_renew(graft_env *env, opened_cost *o)
{
    uint32_t measured = 0;
    uint32_t count = 0;
    GRAFT_PASS(graft_cost_renew(env, o->cost, o->from, &measured, &count));
    (void)printf("%u of %u recorded signatures measured, the others were there\n", measured, count);
    return GRAFT_OK;
}

static graft_status renew(graft_env *env, void *choices)
{
    return with_cost(env, choices, run_renew);
}

static const graft_option renew_options[] = {
    GRAFT_WORD(opened_cost, file, "FILE", "the database to measure anew"),
    DEVICE_OPTION,
    DATABASE_OPTION,
};

const graft_command graft_command_cost_renew = {
    .name = "cost renew",
    .summary = "measure what a database has with the kernels of now",
    GRAFT_TAKES(opened_cost, renew_options),
    .run = renew,
};

/* ------------------------------------------------------------------ random */

static graft_status run_random(graft_env *env, opened_cost *o)
{
    uint32_t count = 0;
    GRAFT_PASS(graft_cost_supply_random(env, o->cost, o->from, o->wanted, RANDOM_SEED, &count));
    (void)printf("%u signatures at sizes drawn at random measured\n", count);
    return GRAFT_OK;
}

static graft_status supply_random(graft_env *env, void *choices)
{
    return with_cost(env, choices, run_random);
}

static const graft_option random_options[] = {
    GRAFT_WORD(opened_cost, file, "FILE", "the database whose operators are drawn from"),
    GRAFT_NUMBER(opened_cost, wanted, "--count", "N", "1000", 1, RANDOM_MOST, "how many"),
    DEVICE_OPTION,
    DATABASE_OPTION,
};

const graft_command graft_command_cost_random = {
    .name = "cost random",
    .summary = "measure operators of a database at random sizes, for estimates to learn from",
    GRAFT_TAKES(opened_cost, random_options),
    .run = supply_random,
};
