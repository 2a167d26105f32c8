/* database.c - the table of measured times in memory, and its file (see database.h).
 *
 * Open addressing over pointers to records. Readers take no lock: records are immutable once their
 * pointer is stored, a replaced record's memory is kept, and a table that has grown too small is
 * replaced by a larger one while the old one stays readable until the database is closed. */
#include "cost/database/database.h"

#include "cost/database/database_text.h"
#include "graph/base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SLOTS = 1024 };

typedef struct {
    uint64_t mask; /* Slots minus one; a power of two. */
    _Atomic(const graft_database_record *) slots[];
} table;

typedef struct kept_text {
    const char *text;
    struct kept_text *next;
} kept_text;

/* Places of the records of an operator. */
typedef struct {
    uint32_t *items;
    uint32_t count;
    uint32_t capacity;
} place_list;

struct graft_database {
    graft_arena *arena;
    kept_text *texts;
    const char *path;
    const char *device; /* Selected. */
    const char *library;
    uint64_t seed; /* Of the selected device and library. */
    _Atomic(table *) table;
    const graft_database_record **records; /* In order of first addition. */
    uint32_t count;
    uint32_t capacity;
    place_list places[UINT8_MAX + 1]; /* By operator. */
    bool changed;
    pthread_mutex_t lock; /* Of additions. */
};

double graft_cost_round(double ns)
{
    double sixteenths = round(ns * 16.0);
    return sixteenths < 1.0 ? 1.0 / 16.0 : sixteenths / 16.0;
}

graft_cost_entry graft_cost_measured(const graft_signature *signature, double median_ns,
                                     double spread_ns, uint32_t rounds, const char *implementation)
{
    graft_cost_entry entry = {.median_ns = graft_cost_round(median_ns),
                              .spread_ns = graft_cost_round(spread_ns),
                              .flops = graft_signature_flops(signature),
                              .bytes = graft_signature_bytes(signature),
                              .rounds = rounds,
                              .source = GRAFT_COST_MEASURED};
    (void)snprintf(entry.implementation, sizeof(entry.implementation), "%s", implementation);
    return entry;
}

/* ---------------------------------------------------------------- in memory */

static uint64_t seed_of(const char *device, const char *library)
{
    return XXH3_64bits_withSeed(device, strlen(device), XXH3_64bits(library, strlen(library)));
}

static uint64_t hash_record(const graft_database_record *record)
{
    return graft_signature_hash(&record->signature, seed_of(record->device, record->library));
}

/* The slot that holds an equal key, or the free one where it belongs. */
static uint64_t find_slot(const table *t, uint64_t hash, const graft_signature *signature,
                          const char *device, const char *library)
{
    for (uint64_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        const graft_database_record *record =
            atomic_load_explicit(&t->slots[i], memory_order_acquire);
        if (record == NULL ||
            (graft_signature_equal(&record->signature, signature) &&
             (record->device == device || strcmp(record->device, device) == 0) &&
             (record->library == library || strcmp(record->library, library) == 0))) {
            return i;
        }
    }
}

static const graft_database_record *find_record(const graft_database *database, uint64_t hash,
                                                const graft_signature *signature,
                                                const char *device, const char *library)
{
    const table *t = atomic_load_explicit(&database->table, memory_order_acquire);
    uint64_t slot = find_slot(t, hash, signature, device, library);
    return atomic_load_explicit(&t->slots[slot], memory_order_acquire);
}

static const graft_database_record *find_equal(const graft_database *database,
                                               const graft_database_record *record)
{
    return find_record(database, hash_record(record), &record->signature, record->device,
                       record->library);
}

static void put_record(table *t, const graft_database_record *record)
{
    uint64_t slot =
        find_slot(t, hash_record(record), &record->signature, record->device, record->library);
    atomic_store_explicit(&t->slots[slot], record, memory_order_release);
}

static void grow(graft_database *database)
{
    uint32_t capacity = database->capacity == 0 ? FIRST_SLOTS / 2 : database->capacity * 2;
    const graft_database_record **records =
        GRAFT_NEW(database->arena, const graft_database_record *, capacity);
    const uint64_t slots = (uint64_t)capacity * 2;
    table *t = graft_arena_alloc(database->arena, sizeof(table) + slots * sizeof(t->slots[0]));
    t->mask = slots - 1;
    for (uint32_t i = 0; i < database->count; i++) {
        records[i] = database->records[i];
        put_record(t, records[i]);
    }
    database->records = records;
    database->capacity = capacity;
    atomic_store_explicit(&database->table, t, memory_order_release);
}

/* Names of devices and libraries are kept once each. */
static const char *keep_text(graft_database *database, const char *text)
{
    for (const kept_text *t = database->texts; t != NULL; t = t->next) {
        if (strcmp(t->text, text) == 0) {
            return t->text;
        }
    }
    kept_text *kept = GRAFT_NEW(database->arena, kept_text, 1);
    kept->text = graft_arena_strdup(database->arena, text);
    kept->next = database->texts;
    database->texts = kept;
    return kept->text;
}

static void insert(graft_database *database, const graft_database_record *record)
{
    GRAFT_LOCKED(&database->lock);
    if (database->count == database->capacity) {
        grow(database);
    }
    const graft_database_record *old = find_equal(database, record);
    graft_database_record *kept = GRAFT_NEW(database->arena, graft_database_record, 1);
    *kept = *record;
    kept->device = keep_text(database, record->device);
    kept->library = keep_text(database, record->library);
    uint32_t place = database->count;
    for (uint32_t i = 0; i < database->count && old != NULL; i++) {
        place = database->records[i] == old ? i : place;
    }
    database->records[place] = kept;
    if (place == database->count) {
        place_list *list = &database->places[kept->signature.op];
        GRAFT_PUSH(database->arena, list->items, list->count, list->capacity, 16) = place;
        database->count++;
    }
    put_record(atomic_load_explicit(&database->table, memory_order_relaxed), kept);
}

void graft_database_select(graft_database *database, const char *device, const char *library)
{
    database->device = keep_text(database, device);
    database->library = keep_text(database, library);
    database->seed = seed_of(device, library);
}

const graft_cost_entry *graft_database_find(const graft_database *database,
                                            const graft_signature *signature)
{
    const graft_database_record *record =
        find_record(database, graft_signature_hash(signature, database->seed), signature,
                    database->device, database->library);
    return record == NULL ? NULL : &record->entry;
}

void graft_database_add(graft_database *database, const graft_signature *signature,
                        const graft_cost_entry *entry)
{
    graft_database_record record = {.signature = *signature,
                                    .device = database->device,
                                    .library = database->library,
                                    .entry = *entry,
                                    .fresh = true};
    insert(database, &record);
    database->changed = true;
}

uint32_t graft_database_count(const graft_database *database) { return database->count; }

const graft_database_record *graft_database_at(const graft_database *database, uint32_t i)
{
    return database->records[i];
}

const uint32_t *graft_database_of(const graft_database *database, uint8_t op, uint32_t *count)
{
    const place_list *list = &database->places[op];
    *count = list->count;
    return list->items;
}

/* Texts are kept once each. */
bool graft_database_selects(const graft_database *database, const graft_database_record *record)
{
    return record->device == database->device && record->library == database->library;
}

/* ------------------------------------------------------------------ on disk */

/* Whether `b` should replace `a`. */
static bool is_better(const graft_cost_entry *a, const graft_cost_entry *b)
{
    if (a->source != b->source) {
        return b->source == GRAFT_COST_MEASURED;
    }
    return b->rounds > a->rounds;
}

static void receive_record(void *context, const graft_database_record *record)
{
    graft_database *database = context;
    const graft_database_record *old = find_equal(database, record);
    if (old == NULL || (!old->fresh && is_better(&old->entry, &record->entry))) {
        insert(database, record);
    }
}

static graft_status read_file(graft_env *env, graft_database *database, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->scratch, path, &data, &size));
    return graft_database_parse(env, path, (const char *)data, size, receive_record, database);
}

graft_status graft_database_open(graft_env *env, const char *path, graft_database **database)
{
    graft_status status = GRAFT_OK;
    graft_arena *arena = graft_arena_new((size_t)1 << 16);
    graft_database *d = GRAFT_NEW(arena, graft_database, 1);
    d->arena = arena;
    d->path = path == NULL ? NULL : graft_arena_strdup(arena, path);
    (void)pthread_mutex_init(&d->lock, NULL);
    grow(d);
    graft_database_select(d, "", "");
    if (path != NULL && graft_file_exists(path)) {
        GRAFT_CHECK(read_file(env, d, path));
    }
done:
    if (status == GRAFT_OK) {
        *database = d;
    } else {
        graft_database_close(d);
    }
    return status;
}

void graft_database_close(graft_database *database)
{
    if (database != NULL) {
        (void)pthread_mutex_destroy(&database->lock);
        graft_arena_free(database->arena);
    }
}

graft_status graft_database_merge(graft_env *env, graft_database *database, const char *path)
{
    database->changed = true;
    return read_file(env, database, path);
}

static graft_status write_database(graft_env *env, const graft_database *database, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text;
    const graft_database_record **records =
        GRAFT_NEW(env->scratch, const graft_database_record *, database->count);
    for (uint32_t i = 0; i < database->count; i++) {
        records[i] = database->records[i];
    }
    graft_database_print(env->scratch, records, database->count, &text);
    return graft_file_write(env, path, text.data, text.size);
}

/* The lock is the kernel's: it ends with the process, however that ends. */
static graft_status lock_file(graft_env *env, const char *path, int *file)
{
    char *name = graft_arena_printf(env->scratch, "%s.lock", path);
    *file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*file < 0) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot create the lock: %s", name, strerror(errno));
    }
    while (flock(*file, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot lock: %s", name, strerror(errno));
        }
    }
    return GRAFT_OK;
}

graft_status graft_database_check(graft_env *env, const graft_database *database)
{
    return database->path == NULL ? GRAFT_OK : graft_file_check(env, database->path);
}

graft_status graft_database_save(graft_env *env, graft_database *database)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    int file = -1;
    if (database->path == NULL || !database->changed) {
        goto done;
    }
    GRAFT_CHECK(graft_file_make_folders(env, database->path));
    GRAFT_CHECK(lock_file(env, database->path, &file));
    if (graft_file_exists(database->path)) {
        GRAFT_TRY(env, read_file(env, database, database->path),
                  "the new costs were not written: move that file away, or repair it");
    }
    GRAFT_CHECK(write_database(env, database, database->path));
    database->changed = false;
done:
    if (file >= 0) {
        (void)close(file);
    }
    return status;
}
