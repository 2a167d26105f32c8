/* store.c - see store.h. */
#include "gen/store.h"

#include "graph/base/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the memory that is left records take a small part: graphs that turn out to be wanted, and the
 * search for laws, take most. */
enum { RECORD_SHARE = 64 };
enum { PARTITION_BITS = 6, PARTITIONS = 1 << PARTITION_BITS, FIRST_RECORDS = 1 << 14 };

static const uint64_t magic = UINT64_C(0x6b72616d74666167);

enum { MARKS = 2 };

/* The mark's file: the last mark and the one before. */
typedef struct {
    uint64_t magic;
    graft_gen_mark marks[MARKS];
    uint64_t sizes[MARKS][PARTITIONS];
} mark_file;

struct graft_gen_store {
    graft_env *env;
    const char *folder; /* NULL: none. */
    graft_gen_record *records;
    size_t count;
    size_t capacity;
    size_t most; /* Records in memory before they are written out. */
    int files[PARTITIONS];
    uint64_t sizes[PARTITIONS]; /* Bytes. */
    uint64_t peak_bytes;
    mark_file marked;
    bool spilled;
    bool ahead; /* Of the mark. */
};

/* ------------------------------------------------------------------- memory */

static graft_status reserve(graft_gen_store *store, size_t count)
{
    if (count <= store->capacity) {
        return GRAFT_OK;
    }
    graft_gen_record *records = realloc(store->records, count * sizeof *records);
    if (records == NULL) {
        return GRAFT_FAIL(store->env, GRAFT_NO_MEMORY, "no memory for %zu records of graphs",
                          count);
    }
    store->records = records;
    store->capacity = count;
    uint64_t bytes = count * sizeof *records;
    store->peak_bytes = bytes > store->peak_bytes ? bytes : store->peak_bytes;
    return GRAFT_OK;
}

static int compare_records(const void *a, const void *b)
{
    const graft_gen_record *x = a;
    const graft_gen_record *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_records(graft_gen_store *store)
{
    if (store->count > 0) {
        qsort(store->records, store->count, sizeof *store->records, compare_records);
    }
}

/* -------------------------------------------------------------------- files */

static uint32_t partition_of(uint64_t key) { return (uint32_t)(key >> (64 - PARTITION_BITS)); }

/* What ranks tell their files apart by. */
static const char *whose(graft_env *env)
{
    return env->ranks == NULL ? ""
                              : graft_arena_printf(env->scratch, ".%u-of-%u", graft_ranks_own(env),
                                                   graft_ranks_count(env));
}

static const char *file_path(graft_env *env, const char *folder, uint32_t partition)
{
    return graft_arena_printf(env->scratch, "%s/part-%02u%s", folder, partition, whose(env));
}

static const char *mark_path(graft_env *env, const char *folder)
{
    return graft_arena_printf(env->scratch, "%s/mark%s", folder, whose(env));
}

static graft_status fail_file(const graft_gen_store *store, uint32_t partition, const char *what)
{
    return GRAFT_FAIL(store->env, GRAFT_IO, "%s: cannot %s: %s",
                      file_path(store->env, store->folder, partition), what, strerror(errno));
}

/* Opens the files and cuts them to the sizes that count. */
static graft_status open_files(graft_gen_store *store)
{
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        store->files[p] =
            open(file_path(store->env, store->folder, p), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (store->files[p] < 0 || ftruncate(store->files[p], (off_t)store->sizes[p]) != 0) {
            return fail_file(store, p, "open it");
        }
    }
    return GRAFT_OK;
}

static graft_status write_all(graft_gen_store *store, uint32_t partition, const void *data,
                              size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t written = pwrite(store->files[partition], (const char *)data + done, bytes - done,
                                 (off_t)(store->sizes[partition] + done));
        if (written < 0 && errno != EINTR) {
            return fail_file(store, partition, "write it");
        }
        done += written > 0 ? (size_t)written : 0;
    }
    store->sizes[partition] += bytes;
    return GRAFT_OK;
}

/* Appends the records in memory to the files. */
static graft_status spill(graft_gen_store *store)
{
    size_t end = 0;
    sort_records(store);
    for (size_t first = 0; first < store->count; first = end) {
        uint32_t partition = partition_of(store->records[first].key);
        for (end = first; end < store->count && partition_of(store->records[end].key) == partition;
             end++) {
        }
        GRAFT_PASS(write_all(store, partition, &store->records[first],
                             (end - first) * sizeof *store->records));
    }
    store->spilled = store->spilled || store->count > 0;
    store->ahead = store->ahead || store->count > 0;
    store->count = 0;
    return GRAFT_OK;
}

static graft_status read_partition(graft_gen_store *store, uint32_t partition)
{
    size_t bytes = (size_t)store->sizes[partition];
    GRAFT_PASS(reserve(store, bytes / sizeof *store->records));
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(store->files[partition], (char *)store->records + done, bytes - done,
                            (off_t)done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return fail_file(store, partition, "read it");
        }
        done += got > 0 ? (size_t)got : 0;
    }
    store->count = bytes / sizeof *store->records;
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- marks */

/* Reads the marks that this store's folder holds; all zero when there are none. */
static void read_marks(graft_gen_store *store)
{
    uint8_t *data = NULL;
    size_t size = 0;
    const char *path = mark_path(store->env, store->folder);
    if (!graft_file_exists(path)) {
        return;
    }
    if (graft_file_read(store->env, store->env->scratch, path, &data, &size) != GRAFT_OK) {
        graft_env_clear(store->env);
        return;
    }
    if (size == sizeof store->marked) {
        memcpy(&store->marked, data, size);
    }
}

/* Takes over a mark of the same identity, if there is one: the last one that all ranks have. */
static void take_mark(graft_gen_store *store, graft_gen_mark *mark)
{
    const mark_file *file = &store->marked;
    read_marks(store);
    bool has_any = file->magic == magic && file->marks[0].identity == mark->identity;
    uint64_t least = UINT64_MAX - (has_any ? file->marks[0].walked : 0);
    graft_ranks_most(store->env, &least, 1);
    uint32_t which = file->marks[0].walked == UINT64_MAX - least ? 0 : 1;
    uint64_t lacks = !has_any || file->marks[which].walked != UINT64_MAX - least ||
                     file->marks[which].identity != mark->identity;
    graft_ranks_most(store->env, &lacks, 1);
    if (lacks != 0) {
        memset(&store->marked, 0, sizeof store->marked);
        return;
    }
    *mark = file->marks[which];
    memcpy(store->sizes, file->sizes[which], sizeof store->sizes);
    store->spilled = true;
}

graft_status graft_gen_store_mark(graft_gen_store *store, const graft_gen_mark *mark)
{
    GRAFT_SCOPED(store->env->scratch);
    if (store->folder == NULL) {
        return GRAFT_OK;
    }
    mark_file *file = &store->marked;
    GRAFT_PASS(spill(store));
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        if (fsync(store->files[p]) != 0) {
            return fail_file(store, p, "write it");
        }
    }
    file->magic = magic;
    file->marks[1] = file->marks[0];
    file->marks[0] = *mark;
    memcpy(file->sizes[1], file->sizes[0], sizeof file->sizes[1]);
    memcpy(file->sizes[0], store->sizes, sizeof file->sizes[0]);
    GRAFT_PASS(
        graft_file_write(store->env, mark_path(store->env, store->folder), file, sizeof *file));
    store->ahead = false;
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- store */

graft_status graft_gen_store_open(graft_env *env, const graft_gen_room *room, graft_gen_mark *mark,
                                  graft_gen_store **store)
{
    graft_status status = GRAFT_OK;
    graft_mark scratch = graft_arena_mark(env->scratch);
    graft_gen_store *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory for a store of graphs");
    }
    made->env = env;
    made->folder = room->folder;
    made->most = SIZE_MAX;
    memset(made->files, 0xff, sizeof made->files);
    mark->walked = 0;
    GRAFT_CHECK(reserve(made, FIRST_RECORDS));
    if (made->folder != NULL) {
        uint64_t most = room->memory_bytes / (RECORD_SHARE * sizeof *made->records);
        made->most = room->memory_bytes == 0 ? SIZE_MAX : most < 1 ? 1 : (size_t)most;
        GRAFT_CHECK(graft_file_make_folders(env, mark_path(env, made->folder)));
        take_mark(made, mark);
        GRAFT_CHECK(open_files(made));
    }
    *store = made;
done:
    graft_arena_release(env->scratch, scratch);
    if (status != GRAFT_OK) {
        graft_gen_store_close(made);
    }
    return status;
}

graft_status graft_gen_store_add(graft_gen_store *store, const graft_gen_record *record)
{
    if (store->count == store->most) {
        GRAFT_PASS(spill(store));
    }
    if (store->count == store->capacity) {
        size_t larger = 2 * store->capacity;
        GRAFT_PASS(reserve(store, larger < store->most ? larger : store->most));
    }
    store->records[store->count++] = *record;
    return GRAFT_OK;
}

static graft_status visit_keys(const graft_gen_store *store,
                               graft_status (*visit)(void *context, const graft_gen_record *records,
                                                     size_t count),
                               void *context)
{
    size_t end = 0;
    for (size_t first = 0; first < store->count; first = end) {
        for (end = first;
             end < store->count && store->records[end].key == store->records[first].key; end++) {
        }
        GRAFT_PASS(visit(context, &store->records[first], end - first));
    }
    return GRAFT_OK;
}

graft_status graft_gen_store_list(graft_gen_store *store,
                                  graft_status (*visit)(void *context,
                                                        const graft_gen_record *records,
                                                        size_t count),
                                  void *context)
{
    if (store->spilled) {
        GRAFT_PASS(spill(store));
        for (uint32_t p = 0; p < PARTITIONS; p++) {
            GRAFT_PASS(read_partition(store, p));
            sort_records(store);
            GRAFT_PASS(visit_keys(store, visit, context));
        }
        store->count = 0;
    } else {
        sort_records(store);
        GRAFT_PASS(visit_keys(store, visit, context));
    }
    return GRAFT_OK;
}

bool graft_gen_store_is_ahead(const graft_gen_store *store) { return store->ahead; }

uint64_t graft_gen_store_bytes(const graft_gen_store *store) { return store->peak_bytes; }

void graft_gen_store_close(graft_gen_store *store)
{
    for (uint32_t p = 0; p < PARTITIONS && store->folder != NULL; p++) {
        if (store->files[p] >= 0) {
            (void)close(store->files[p]);
        }
    }
    free(store->records);
    free(store);
}

void graft_gen_store_remove(graft_env *env, const char *folder)
{
    GRAFT_SCOPED(env->scratch);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        (void)unlink(file_path(env, folder, p));
    }
    (void)unlink(mark_path(env, folder));
    (void)rmdir(folder);
}
