/* arena.c - a chain of blocks, each larger than the last, and one spare.
 *
 *   newest                              oldest
 *   [header|####|      ] -> [header|########|..] -> NULL
 *                ^ used              ^ used at the time the next block was begun
 *
 * Memory must come out zeroed. A fresh block is zero already (calloc, which costs nothing for large
 * blocks), so each block remembers how far it was ever used: only what lies below is cleared again.
 * Under AddressSanitizer all free space is poisoned, arrays that were outgrown are, and a red zone
 * follows each allocation. */
#include "graph/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature /* clang's way of telling; gcc defines the macro itself. */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { RED_ZONE_BYTES = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
enum { RED_ZONE_BYTES = 0 };
#endif

enum { ALIGN_SMALL = 16, ALIGN_LARGE = 64, LARGE_BYTES = 64 };

/* Blocks stop doubling here; a larger request gets a block of its own size. */
static const size_t block_most_bytes = (size_t)64 << 20;

typedef struct block {
    struct block *older;
    size_t before; /* Bytes used in all older blocks. */
    size_t size;
    size_t used;
    size_t dirty; /* Bytes below this were used once and may not be zero. */
    uint8_t *data;
} block;

struct graft_arena {
    block *newest;
    block *spare; /* The largest block given back, or NULL. */
};

static size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static _Noreturn void die_without_memory(const char *what, size_t count, size_t bytes)
{
    (void)fprintf(stderr, "graft: out of memory: %s of %zu x %zu bytes\n", what, count, bytes);
    _Exit(GRAFT_EXIT_NO_MEMORY); /* Other threads may be running: no exit handlers. */
}

static block *new_block(size_t size)
{
    if (size > SIZE_MAX - 2 * ALIGN_LARGE - sizeof(block)) {
        die_without_memory("arena block", 1, size);
    }
    block *made = calloc(1, sizeof(block) + size + ALIGN_LARGE);
    if (made == NULL) {
        die_without_memory("arena block", 1, size);
    }
    uintptr_t start = (uintptr_t)made + sizeof(block);
    made->data = (uint8_t *)made + (align_up(start, ALIGN_LARGE) - (uintptr_t)made);
    made->size = size;
    ASAN_POISON_MEMORY_REGION(made->data, made->size);
    return made;
}

static void free_block(block *old)
{
    if (old != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(old->data, old->size);
        free(old);
    }
}

static void give_back(block *part, size_t used)
{
    part->used = used;
    ASAN_POISON_MEMORY_REGION(part->data + used, part->size - used);
}

/* Keeps the larger of the spare and `old`. */
static void retire_block(graft_arena *arena, block *old)
{
    give_back(old, 0);
    if (arena->spare != NULL && arena->spare->size >= old->size) {
        free_block(old);
        return;
    }
    free_block(arena->spare);
    arena->spare = old;
}

static void push_block(graft_arena *arena, size_t need)
{
    block *older = arena->newest;
    block *next = arena->spare;
    if (next != NULL && next->size >= need) {
        arena->spare = NULL;
    } else {
        size_t size = older->size < block_most_bytes / 2 ? 2 * older->size : block_most_bytes;
        next = new_block(size > need ? size : need);
    }
    next->older = older;
    next->before = older->before + older->used;
    arena->newest = next;
}

graft_arena *graft_arena_new(size_t first_bytes)
{
    graft_arena *arena = calloc(1, sizeof(*arena));
    if (arena == NULL) {
        die_without_memory("arena", 1, sizeof(*arena));
    }
    arena->newest = new_block(align_up(first_bytes > 0 ? first_bytes : 1, ALIGN_LARGE));
    return arena;
}

void graft_arena_free(graft_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (block *b = arena->newest; b != NULL;) {
        block *older = b->older;
        free_block(b);
        b = older;
    }
    free_block(arena->spare);
    free(arena);
}

void *graft_arena_alloc(graft_arena *arena, size_t bytes)
{
    size_t alignment = bytes >= LARGE_BYTES ? ALIGN_LARGE : ALIGN_SMALL;
    if (bytes > SIZE_MAX / 2) {
        die_without_memory("allocation", 1, bytes);
    }
    size_t need = bytes + RED_ZONE_BYTES;
    size_t start = align_up(arena->newest->used, alignment);
    if (start > arena->newest->size || arena->newest->size - start < need) {
        push_block(arena, need);
        start = 0;
    }
    block *b = arena->newest;
    uint8_t *memory = b->data + start;
    b->used = start + need;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    if (start < b->dirty) {
        size_t stale = b->dirty - start;
        memset(memory, 0, stale < bytes ? stale : bytes);
    }
    if (b->dirty < b->used) {
        b->dirty = b->used;
    }
    return memory;
}

void *graft_arena_array(graft_arena *arena, size_t count, size_t element_bytes)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) {
        die_without_memory("array", count, element_bytes);
    }
    return graft_arena_alloc(arena, bytes);
}

void *graft_arena_copy(graft_arena *arena, const void *from, size_t count, size_t element_bytes)
{
    void *copy = graft_arena_array(arena, count, element_bytes);
    if (count > 0) {
        memcpy(copy, from, count * element_bytes);
    }
    return copy;
}

void *graft_arena_grow(graft_arena *arena, void *array, uint32_t count, uint32_t *capacity,
                       uint32_t first, size_t element_bytes)
{
    if (count < *capacity) {
        return array;
    }
    uint32_t larger = *capacity == 0 ? first : 2 * *capacity;
    void *copy = graft_arena_array(arena, larger, element_bytes);
    if (count > 0) {
        memcpy(copy, array, count * element_bytes);
        ASAN_POISON_MEMORY_REGION(array, count * element_bytes);
    }
    *capacity = larger;
    return copy;
}

char *graft_arena_strdup(graft_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(graft_arena_alloc(arena, size), text, size);
}

char *graft_arena_printf(graft_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(length >= 0); /* Only a broken format fails. */
    char *text = graft_arena_alloc(arena, (size_t)length + 1);
    (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

graft_mark graft_arena_mark(const graft_arena *arena)
{
    return (graft_mark){.block = arena->newest, .used = arena->newest->used};
}

void graft_arena_release(graft_arena *arena, graft_mark mark)
{
    while (arena->newest != mark.block) {
        block *newest = arena->newest;
        arena->newest = newest->older;
        assert(arena->newest != NULL); /* The mark is of this arena and not yet released. */
        retire_block(arena, newest);
    }
    assert(mark.used <= arena->newest->used);
    give_back(arena->newest, mark.used);
}

void graft_scope_close(const graft_scope *scope) { graft_arena_release(scope->arena, scope->mark); }

void graft_arena_reset(graft_arena *arena)
{
    while (arena->newest->older != NULL) {
        block *newest = arena->newest;
        arena->newest = newest->older;
        retire_block(arena, newest);
    }
    if (arena->spare != NULL && arena->spare->size > arena->newest->size) {
        block *small = arena->newest;
        arena->newest = arena->spare;
        arena->newest->older = NULL;
        arena->newest->before = 0;
        arena->spare = small;
    }
    free_block(arena->spare);
    arena->spare = NULL;
    give_back(arena->newest, 0);
}

size_t graft_arena_used_bytes(const graft_arena *arena)
{
    return arena->newest->before + arena->newest->used;
}
