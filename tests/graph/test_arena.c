/* Arenas against a model: every byte zero when handed out, aligned, disjoint, given back in order.
 */
#include "graph/base/arena.h"

#include "graph/base/rng.h"
#include "tests/support/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/* A request that no system can satisfy must reach the arena as NULL, as it does without sanitizer.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

CHECK_CASE(test_zeroed_and_aligned)
{
    static const size_t sizes[] = {0, 1, 7, 16, 63, 64, 65, 1000, 4096, 100000, 3 << 20};
    graft_arena *arena = graft_arena_new(64);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t *memory = graft_arena_alloc(arena, sizes[i]);
            assert_non_null(memory);
            assert_int_equal((uintptr_t)memory % (sizes[i] >= 64 ? 64 : 16), 0);
            for (size_t k = 0; k < sizes[i]; k++) {
                assert_int_equal(memory[k], 0);
            }
            memset(memory, 0xab, sizes[i]); /* The next round must not see it. */
        }
        graft_arena_reset(arena);
        assert_int_equal(graft_arena_used_bytes(arena), 0);
    }
    graft_arena_free(arena);
}

/* A random walk of allocations, marks and releases; every live byte keeps its value. */
typedef struct {
    uint8_t *memory;
    size_t size;
    uint8_t value;
} piece;

enum { PIECES_MOST = 4000, MARKS_MOST = 40 };

typedef struct {
    graft_arena *arena;
    piece pieces[PIECES_MOST];
    size_t piece_count;
    graft_mark marks[MARKS_MOST];
    size_t piece_at_mark[MARKS_MOST];
    size_t bytes_at_mark[MARKS_MOST];
    size_t mark_count;
} walk;

static void check_pieces(const walk *w)
{
    size_t live = 0;
    for (size_t i = 0; i < w->piece_count; i++) {
        for (size_t k = 0; k < w->pieces[i].size; k++) {
            assert_int_equal(w->pieces[i].memory[k], w->pieces[i].value);
        }
        live += w->pieces[i].size;
    }
    assert_true(graft_arena_used_bytes(w->arena) >= live);
}

static void walk_alloc(walk *w, graft_rng *rng)
{
    size_t size = graft_rng_below(rng, 1u << graft_rng_below(rng, 13));
    uint8_t value = (uint8_t)graft_rng_below(rng, 256);
    uint8_t *memory = graft_arena_alloc(w->arena, size);
    for (size_t k = 0; k < size; k++) {
        assert_int_equal(memory[k], 0);
    }
    memset(memory, value, size);
    w->pieces[w->piece_count++] = (piece){memory, size, value};
}

static void walk_mark(walk *w)
{
    w->marks[w->mark_count] = graft_arena_mark(w->arena);
    w->bytes_at_mark[w->mark_count] = graft_arena_used_bytes(w->arena);
    w->piece_at_mark[w->mark_count++] = w->piece_count;
}

static void walk_release(walk *w, graft_rng *rng)
{
    w->mark_count = graft_rng_below(rng, (uint32_t)w->mark_count);
    graft_arena_release(w->arena, w->marks[w->mark_count]);
    w->piece_count = w->piece_at_mark[w->mark_count];
    assert_int_equal(graft_arena_used_bytes(w->arena), w->bytes_at_mark[w->mark_count]);
}

CHECK_CASE(test_random_walk)
{
    walk *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    for (uint64_t seed = 0; seed < 20; seed++) {
        graft_rng rng = check_rng(seed);
        memset(w, 0, sizeof(*w));
        w->arena = graft_arena_new(1 + graft_rng_below(&rng, 5000));
        for (int step = 0; step < 1500; step++) {
            uint32_t dice = graft_rng_below(&rng, 20);
            if (dice == 0 && w->mark_count < MARKS_MOST) {
                walk_mark(w);
            } else if (dice == 1 && w->mark_count > 0) {
                check_pieces(w);
                walk_release(w, &rng);
            } else {
                walk_alloc(w, &rng);
            }
        }
        check_pieces(w);
        graft_arena_free(w->arena);
    }
    free(w);
}

/* A scratch arena whose block boundary lies inside a loop body must not allocate in every turn. */
CHECK_CASE(test_release_keeps_a_spare)
{
    graft_arena *arena = graft_arena_new(4096);
    (void)graft_arena_alloc(arena, 4000);
    enum { TURNS = 10 };
    void *taken[TURNS];
    void *first = NULL;
    for (int i = 0; i < TURNS; i++) {
        graft_mark mark = graft_arena_mark(arena);
        void *memory = graft_arena_alloc(arena, 5000);
        if (i == 0) {
            first = memory;
        }
        assert_ptr_equal(memory, first);
        graft_arena_release(arena, mark);
        taken[i] = malloc(8192); /* Would take the place of a block that was freed. */
        assert_non_null(taken[i]);
    }
    for (int i = 0; i < TURNS; i++) {
        free(taken[i]);
    }
    graft_arena_free(arena);
}

CHECK_CASE(test_reset_keeps_the_largest)
{
    graft_arena *arena = graft_arena_new(64);
    (void)graft_arena_alloc(arena, 10);
    void *large = graft_arena_alloc(arena, 1 << 20);
    (void)graft_arena_alloc(arena, 100); /* The large block is full: this begins a third. */
    graft_arena_reset(arena);
    void *again = graft_arena_alloc(arena, 1 << 20);
    assert_non_null(large);
    assert_non_null(again);
    assert_in_range(graft_arena_used_bytes(arena), 1 << 20, (1 << 20) + 64);
    graft_arena_free(arena);
}

CHECK_CASE(test_texts)
{
    graft_arena *arena = graft_arena_new(16);
    char *copy = graft_arena_strdup(arena, "abc");
    char *empty = graft_arena_strdup(arena, "");
    char *text = graft_arena_printf(arena, "%s-%d-%s", copy, 42, empty);
    assert_string_equal(copy, "abc");
    assert_string_equal(empty, "");
    assert_string_equal(text, "abc-42-");
    graft_arena_free(arena);
    graft_arena_free(NULL);
}

CHECK_CASE(test_copies)
{
    const uint16_t numbers[] = {1, 2, 3};
    graft_arena *arena = graft_arena_new(16);
    const uint16_t *copy = GRAFT_COPY(arena, numbers, 3);
    assert_ptr_not_equal(copy, numbers);
    assert_memory_equal(copy, numbers, sizeof numbers);
    assert_non_null(GRAFT_COPY(arena, NULL, 0));
    graft_arena_free(arena);
}

/* Runs `ask` in a child and returns its exit status; what it prints goes to `text`. */
static int exit_status_of(void (*ask)(graft_arena *), char *text, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        ask(graft_arena_new(64));
        _exit(0);
    }
    (void)close(ends[1]);
    size_t have = 0;
    ssize_t got = 0;
    while ((got = read(ends[0], text + have, size - 1 - have)) > 0) {
        have += (size_t)got;
    }
    text[have] = '\0';
    (void)close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ask_too_much(graft_arena *arena)
{
    (void)graft_arena_alloc(arena, SIZE_MAX / 2 - 4096);
}
static void ask_far_too_much(graft_arena *arena) { (void)graft_arena_alloc(arena, SIZE_MAX - 8); }
static void ask_for_a_product_that_overflows(graft_arena *arena)
{
    (void)graft_arena_array(arena, SIZE_MAX / 4 + 2, 4); /* Would wrap to 4 bytes. */
}
static void ask_for_one_too_large(graft_arena *arena)
{
    (void)arena;
    (void)graft_arena_new(SIZE_MAX / 2);
}
static void ask_for_one_far_too_large(graft_arena *arena)
{
    (void)arena;
    (void)graft_arena_new(SIZE_MAX - 200);
}

CHECK_CASE(test_no_memory_ends_the_program)
{
    static void (*const asks[])(graft_arena *) = {ask_too_much, ask_far_too_much,
                                                  ask_for_a_product_that_overflows,
                                                  ask_for_one_too_large, ask_for_one_far_too_large};
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        char text[8192];
        assert_int_equal(exit_status_of(asks[i], text, sizeof(text)), 70);
        assert_non_null(strstr(text, "graft: out of memory: "));
    }
}

CHECK_CASE(test_free_space_is_poisoned)
{
#ifdef __SANITIZE_ADDRESS__
    graft_arena *arena = graft_arena_new(4096);
    graft_mark mark = graft_arena_mark(arena);
    uint8_t *memory = graft_arena_alloc(arena, 100);
    assert_null(__asan_region_is_poisoned(memory, 100));
    assert_int_equal(__asan_address_is_poisoned(memory + 100), 1); /* The red zone behind it. */
    graft_arena_release(arena, mark);
    assert_int_equal(__asan_address_is_poisoned(memory), 1);
    assert_int_equal(__asan_address_is_poisoned(memory + 99), 1);
    graft_arena_free(arena);
#else
    CHECK_SKIP("only MODE=asan poisons free memory");
#endif
}

/* Elements stay as they are, from nothing on; the array moves when it is full, and only then. */
CHECK_CASE(test_grow)
{
    graft_arena *arena = graft_arena_new(64);
    uint16_t *items = NULL;
    uint32_t capacity = 0;
    for (uint32_t count = 0; count < 100; count++) {
        uintptr_t before = (uintptr_t)items;
        bool full = count == capacity;
        items = graft_arena_grow(arena, items, count, &capacity, 3, sizeof *items);
        if (items == NULL || ((uintptr_t)items != before) != full) {
            fail_msg("at %u elements the array %s", count, full ? "stayed" : "moved");
            return;
        }
        assert_true(capacity > count);
        items[count] = (uint16_t)(7 * count);
        for (uint32_t i = 0; i <= count; i++) {
            assert_int_equal(items[i], 7 * i);
        }
    }
    assert_int_equal(capacity, 192);
    graft_arena_free(arena);
}
