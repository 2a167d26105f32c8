/* ranks.c - see ranks.h. */
#include "graph/base/ranks.h"

#include "graph/base/library.h"
#include "graph/base/log.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const graft_library mpi_library = {.file = "graft-mpi.so",
                                          .variable = "GRAFT_MPI_LIBRARY",
                                          .symbol = GRAFT_RANKS_SYMBOL,
                                          .what = "library for MPI",
                                          .advice =
                                              "build with Open MPI (`make MPI=1`, docs/scale.md)",
                                          .is_open = true};

/* ------------------------------------------------------------ start and end */

/* A number of the environment; `otherwise` when it is not there. */
static uint32_t number_of(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    unsigned long number = text == NULL ? otherwise : strtoul(text, NULL, 10);
    return number > UINT32_MAX ? otherwise : (uint32_t)number;
}

graft_ranks_told graft_ranks_ask(void)
{
    const graft_ranks_told told = {.own = number_of("OMPI_COMM_WORLD_RANK", 0),
                                   .count = number_of("OMPI_COMM_WORLD_SIZE", 1),
                                   .local_count = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
    return told.count > 1 && told.own < told.count ? told : (graft_ranks_told){0, 1, 1};
}

/* Whether all ranks are one program. */
static graft_status compare_programs(graft_env *env)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *program = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->scratch, "/proc/self/exe", &program, &size));
    return graft_ranks_agree(env, "the program", XXH3_64bits(program, size));
}

graft_status graft_ranks_open(graft_env *env)
{
    graft_ranks_find find = NULL;
    if (graft_ranks_ask().count == 1 || env->ranks != NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_library_load(env, &mpi_library, &find));
    graft_ranks *ranks = GRAFT_NEW(env->life, graft_ranks, 1);
    ranks->calls = find();
    GRAFT_RETURN_IF(ranks->calls->abi != GRAFT_RANKS_ABI,
                    GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s was built for another version of Graft",
                               mpi_library.file));
    GRAFT_RETURN_IF(!ranks->calls->open(&ranks->own, &ranks->count),
                    GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "MPI does not start"));
    env->ranks = ranks;
    graft_log(env, 1, "%u ranks share the work", ranks->count);
    return compare_programs(env);
}

void graft_ranks_close(graft_env *env)
{
    if (env->ranks != NULL) {
        env->ranks->calls->close();
        env->ranks = NULL;
    }
}

void graft_ranks_stop(const graft_env *env, int exit_status)
{
    if (env->ranks != NULL) {
        env->ranks->calls->stop(exit_status);
    }
}

/* --------------------------------------------------------------- all ranks */

graft_status graft_ranks_agree(graft_env *env, const char *what, uint64_t number)
{
    uint64_t first = number;
    graft_ranks_share(env, &first, sizeof first);
    return first == number ? GRAFT_OK
                           : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: rank %u has another than rank 0",
                                        what, graft_ranks_own(env));
}

void graft_ranks_add(const graft_env *env, uint64_t *numbers, uint32_t count)
{
    if (env->ranks != NULL) {
        env->ranks->calls->add(numbers, count);
    }
}

void graft_ranks_most(const graft_env *env, uint64_t *numbers, uint32_t count)
{
    if (env->ranks != NULL) {
        env->ranks->calls->most(numbers, count);
    }
}

void graft_ranks_share(const graft_env *env, void *data, size_t bytes)
{
    if (env->ranks != NULL) {
        env->ranks->calls->share(data, bytes);
    }
}

void graft_ranks_read(graft_env *env, graft_arena *arena, const char *path, uint8_t **data,
                      size_t *size)
{
    uint64_t bytes = 0;
    *size = 0;
    if (graft_ranks_own(env) == 0 && graft_file_exists(path)) {
        if (graft_file_read(env, arena, path, data, size) == GRAFT_OK) {
            bytes = *size;
        } else {
            graft_env_clear(env);
        }
    }
    graft_ranks_share(env, &bytes, sizeof bytes);
    if (graft_ranks_own(env) > 0) {
        *data = graft_arena_alloc(arena, bytes);
    }
    graft_ranks_share(env, *data, bytes);
    *size = bytes;
}

/* ------------------------------------------------------------- everybody's */

/* Tells each rank how much there is for it: `sizes` of what this one has, `coming` of what it
 * gets. */
static void tell_sizes(const graft_env *env, const graft_buffer *sent, uint64_t *coming)
{
    uint32_t count = env->ranks->count;
    uint32_t own = env->ranks->own;
    for (uint32_t step = 0; step < count; step++) {
        uint32_t to = (own + step) % count;
        uint32_t from = (own + count - step) % count;
        uint64_t bytes = sent[to].size;
        coming[own] = step == 0 ? bytes : coming[own];
        if (step > 0) {
            env->ranks->calls->swap(to, &bytes, sizeof bytes, from, &coming[from],
                                    sizeof coming[from]);
        }
    }
}

void graft_ranks_exchange(const graft_env *env, const graft_buffer *sent, graft_buffer *received,
                          size_t *parts)
{
    uint32_t count = env->ranks->count;
    uint32_t own = env->ranks->own;
    uint64_t *coming = GRAFT_NEW(received->arena, uint64_t, count);
    size_t *first = GRAFT_NEW(received->arena, size_t, count + (size_t)1);
    tell_sizes(env, sent, coming);
    for (uint32_t r = 0; r < count; r++) {
        first[r + 1] = first[r] + coming[r];
    }
    char *data = graft_arena_alloc(received->arena, first[count] + 1);
    if (coming[own] > 0) {
        memcpy(data + first[own], sent[own].data, coming[own]);
    }
    for (uint32_t step = 1; step < count; step++) {
        uint32_t to = (own + step) % count;
        uint32_t from = (own + count - step) % count;
        env->ranks->calls->swap(to, sent[to].data, sent[to].size, from, data + first[from],
                                coming[from]);
    }
    data[first[count]] = '\0';
    *received = (graft_buffer){
        .arena = received->arena, .data = data, .size = first[count], .capacity = first[count] + 1};
    if (parts != NULL) {
        memcpy(parts, first, (count + (size_t)1) * sizeof *parts);
    }
}

void graft_ranks_gather(const graft_env *env, const graft_buffer *sent, graft_buffer *received,
                        size_t *parts)
{
    graft_buffer *same = GRAFT_NEW(received->arena, graft_buffer, env->ranks->count);
    for (uint32_t r = 0; r < env->ranks->count; r++) {
        same[r] = *sent;
    }
    graft_ranks_exchange(env, same, received, parts);
}

void graft_ranks_fill(const graft_env *env, void *array, uint32_t count, size_t element_bytes)
{
    uint32_t own = graft_ranks_own(env);
    size_t first = graft_ranks_first(env, own, count) * element_bytes;
    size_t end = graft_ranks_first(env, own + 1, count) * element_bytes;
    if (env->ranks == NULL) {
        return;
    }
    GRAFT_SCOPED(env->scratch);
    const graft_buffer sent = {.data = (char *)array + first, .size = end - first};
    graft_buffer all = {.arena = env->scratch};
    graft_ranks_gather(env, &sent, &all, NULL);
    assert(all.size == count * element_bytes);
    memcpy(array, all.data, all.size);
}

/* --------------------------------------------------------------- two ranks */

graft_status graft_ranks_send(graft_env *env, uint32_t to, const graft_buffer *message)
{
    GRAFT_RETURN_IF(
        message->size > INT_MAX,
        GRAFT_FAIL(env, GRAFT_CAPACITY, "a message of %zu bytes between ranks", message->size));
    env->ranks->calls->send(to, message->data, message->size);
    return GRAFT_OK;
}

bool graft_ranks_receive(const graft_env *env, graft_arena *arena, uint32_t *from,
                         graft_buffer *message)
{
    size_t bytes = 0;
    if (!env->ranks->calls->peek(from, &bytes)) {
        return false;
    }
    *message = (graft_buffer){
        .arena = arena, .data = graft_arena_alloc(arena, bytes), .size = bytes, .capacity = bytes};
    env->ranks->calls->take(*from, message->data, bytes);
    return true;
}
