/* kept.c - see kept.h. */
#include "verify/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

enum { RECORD_ALIGN = 16 };

/* The start of a record. */
typedef struct {
    uint64_t question[2];
    uint64_t bytes;
    uint64_t checksum; /* Of what is before and of the answer. */
} head;

struct graft_kept {
    graft_arena *arena;
    const char *path;
    int file;
    const uint8_t **records; /* By their heads' bytes. */
    uint32_t count;
};

static head make_head(const char *stage, const graft_buffer *question)
{
    uint64_t seed = XXH3_64bits(stage, strlen(stage));
    XXH128_hash_t hash = XXH3_128bits_withSeed(question->data, question->size, seed);
    return (head){
        .question = {hash.low64, hash.high64}
    };
}

static uint64_t checksum_of(const head *h, const void *answer)
{
    uint64_t seed = XXH3_64bits(h, offsetof(head, checksum));
    return XXH3_64bits_withSeed(answer, h->bytes, seed);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

static int compare_records(const void *a, const void *b)
{
    const uint8_t *const *x = a;
    const uint8_t *const *y = b;
    return memcmp(*x, *y, sizeof(((head *)NULL)->question));
}

/* The size of the record at the start of `data`; 0 when there is no whole one. */
static size_t measure_record(const uint8_t *data, size_t size)
{
    head h;
    if (size < sizeof h) {
        return 0;
    }
    memcpy(&h, data, sizeof h);
    bool is_whole = h.bytes <= size - sizeof h && padded(h.bytes) <= size - sizeof h &&
                    checksum_of(&h, data + sizeof h) == h.checksum;
    return is_whole ? sizeof h + padded(h.bytes) : 0;
}

/* Takes the records that are whole and cuts off the rest. */
static graft_status take_records(graft_env *env, graft_kept *kept)
{
    uint8_t *data = NULL;
    size_t size = 0;
    size_t at = 0;
    uint32_t capacity = 0;
    GRAFT_PASS(graft_file_read(env, kept->arena, kept->path, &data, &size));
    for (size_t bytes; (bytes = measure_record(data + at, size - at)) > 0; at += bytes) {
        kept->records = graft_arena_grow(kept->arena, kept->records, kept->count, &capacity, 64,
                                         sizeof *kept->records);
        kept->records[kept->count++] = data + at;
    }
    if (kept->count > 0) {
        qsort(kept->records, kept->count, sizeof *kept->records, compare_records);
    }
    return ftruncate(kept->file, (off_t)at) == 0
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_IO, "%s: cannot be shortened: %s", kept->path,
                            strerror(errno));
}

graft_status graft_kept_open(graft_env *env, graft_arena *arena, const char *path,
                             graft_kept **opened)
{
    graft_status status = GRAFT_OK;
    graft_kept *kept = GRAFT_NEW(arena, graft_kept, 1);
    *kept = (graft_kept){.arena = arena, .path = graft_arena_strdup(arena, path), .file = -1};
    GRAFT_CHECK(graft_file_make_folders(env, path));
    kept->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (kept->file < 0) {
        status = GRAFT_FAIL(env, GRAFT_IO, "%s: %s", path, strerror(errno));
        goto done;
    }
    if (flock(kept->file, LOCK_EX | LOCK_NB) != 0) {
        status = GRAFT_FAIL(env, GRAFT_IO, "%s: another run has it open", path);
        goto done;
    }
    GRAFT_CHECK(take_records(env, kept));
    *opened = kept;
done:
    if (status != GRAFT_OK) {
        graft_kept_close(kept);
    }
    return status;
}

void graft_kept_close(graft_kept *kept)
{
    if (kept != NULL && kept->file >= 0) {
        (void)close(kept->file);
        kept->file = -1;
    }
}

uint32_t graft_kept_count(const graft_kept *kept) { return kept->count; }

const uint8_t *graft_kept_find(const graft_kept *kept, const char *stage,
                               const graft_buffer *question, size_t *bytes)
{
    const head wanted = make_head(stage, question);
    const uint8_t *key = (const uint8_t *)&wanted;
    const uint8_t **found = NULL;
    head h;
    if (kept->count > 0) {
        found = bsearch(&key, kept->records, kept->count, sizeof *kept->records, compare_records);
    }
    if (found == NULL) {
        return NULL;
    }
    memcpy(&h, *found, sizeof h);
    *bytes = h.bytes;
    return *found + sizeof h;
}

graft_status graft_kept_add(graft_env *env, graft_kept *kept, const char *stage,
                            const graft_buffer *question, const void *answer, size_t bytes)
{
    static const uint8_t padding[RECORD_ALIGN] = {0};
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_buffer record = {.arena = env->scratch};
    head h = make_head(stage, question);
    h.bytes = bytes;
    h.checksum = checksum_of(&h, answer);
    graft_buffer_append(&record, &h, sizeof h);
    graft_buffer_append(&record, answer, bytes);
    graft_buffer_append(&record, padding, padded(bytes) - bytes);
    ssize_t put = write(kept->file, record.data, record.size);
    bool is_whole = put >= 0 && (size_t)put == record.size;
    graft_arena_release(env->scratch, mark);
    return is_whole ? GRAFT_OK
                    : GRAFT_FAIL(env, GRAFT_IO, "%s: cannot be written: %s", kept->path,
                                 put < 0 ? strerror(errno) : "no space is left");
}
