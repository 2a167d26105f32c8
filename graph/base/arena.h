/* arena.h - memory by lifetime: allocate freely, release all at once.
 *
 *      block 0          block 1 (larger)
 *   [#####|######|   ] [########|              ]
 *                                ^ next allocation; a mark remembers this place
 *
 * An allocation never fails visibly: when the system has no memory left the program prints one line
 * and exits with status GRAFT_EXIT_NO_MEMORY (nothing half-written: files are written whole and
 * renamed, see file.h). Memory is zeroed and aligned to 64 bytes for blocks of 64 bytes or more, to
 * 16 below that. */
#pragma once

#include "exits.h"

#include <stddef.h>
#include <stdint.h>

typedef struct graft_arena graft_arena;

typedef struct {
    void *block;
    size_t used;
} graft_mark;

/* `first_bytes` sizes the first block. */
graft_arena *graft_arena_new(size_t first_bytes);
void graft_arena_free(graft_arena *arena);
/* A new arena that is freed when the function or block ends. */
#define GRAFT_ARENA(name, first_bytes)                                                             \
    __attribute__((cleanup(graft_arena_close))) graft_arena *name = graft_arena_new(first_bytes)
static inline void graft_arena_close(graft_arena *const *arena) { graft_arena_free(*arena); }

/* Zeroed memory, never NULL; `bytes` may be 0. */
void *graft_arena_alloc(graft_arena *arena, size_t bytes);
char *graft_arena_strdup(graft_arena *arena, const char *text);
/* printf into the arena. */
char *graft_arena_printf(graft_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

graft_mark graft_arena_mark(const graft_arena *arena);
/* Gives back everything allocated since the mark. */
void graft_arena_release(graft_arena *arena, graft_mark mark);
/* Gives back, when the function or block ends, everything allocated from here on. A value that is
 * returned is computed before. */
#define GRAFT_SCOPED(arena)                                                                        \
    __attribute__((cleanup(graft_scope_close), unused))                                            \
    const graft_scope graft_scoped = {(arena), graft_arena_mark(arena)}
typedef struct {
    graft_arena *arena;
    graft_mark mark;
} graft_scope;
void graft_scope_close(const graft_scope *scope);
/* Gives back everything; keeps the largest block. */
void graft_arena_reset(graft_arena *arena);
size_t graft_arena_used_bytes(const graft_arena *arena);

/* `count` zeroed elements of `type`; the multiplication is checked. */
#define GRAFT_NEW(arena, type, count) ((type *)graft_arena_array((arena), (count), sizeof(type)))
void *graft_arena_array(graft_arena *arena, size_t count, size_t element_bytes);
/* `count` elements as those at `from`, which may be NULL for none. */
#define GRAFT_COPY(arena, from, count) graft_arena_copy((arena), (from), (count), sizeof(*(from)))
void *graft_arena_copy(graft_arena *arena, const void *from, size_t count, size_t element_bytes);
/* `array` with room for one more element behind `count`. It moves when it doubles, beginning with
 * `first` elements. What it outgrows must not be used any more; the arena keeps it. */
void *graft_arena_grow(graft_arena *arena, void *array, uint32_t count, uint32_t *capacity,
                       uint32_t first, size_t element_bytes);
/* The place of one more element of such an array, which is counted from here on. */
#define GRAFT_PUSH(arena, array, count, capacity, first)                                           \
    (*((array) =                                                                                   \
           graft_arena_grow((arena), (array), (count), &(capacity), (first), sizeof(*(array))),    \
       &(array)[(count)++]))
