/* check.h - what every test program starts from: cases with a fresh graft_env each, run by cmocka.
 *
 *      CHECK_CASE(test_relu_keeps_what_is_positive)
 *      {
 *          graft_graph *graph = build_graph(env->life);
 *          CHECK_OK(graft_graph_add_output(graph, ...));
 *          ...
 *      }
 *
 * A program is its cases: tests/support/main.c finds them and runs them in the order of the file. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct check_entry {
    const char *name; /* Of a case; NULL for one of rows. */
    int line;
    void (*run)(graft_env *env, const void *row);
    const char *rows;
    size_t row_size;
    size_t row_count;
} check_entry;

/* Begins a case, which has a quiet, open `env`; its arenas are freed afterwards. The section holds
 * pointers to the entries of a program's cases. */
#define CHECK_CASE(function) CHECK_ENTRY(function, #function, NULL, 0, 1, no_row)
/* Begins a case for each row of an array, of which the first member is a name. The case has `env`
 * as above, and `place`, the row. */
#define CHECK_ROWS(function, rows)                                                                 \
    CHECK_ENTRY(function, NULL, rows, sizeof((rows)[0]), sizeof(rows) / sizeof((rows)[0]), place)
#define CHECK_ENTRY(function, name, rows, size, count, row)                                        \
    static void function(graft_env *env, const void *row);                                         \
    static const check_entry function##_entry = {name, __LINE__, function, (const char *)(rows),   \
                                                 size, count};                                     \
    static const check_entry *const function##_place                                               \
        __attribute__((section("check_cases"), used)) = &function##_entry;                         \
    static void function(__attribute__((unused)) graft_env *env,                                   \
                         __attribute__((unused)) const void *row)
/* Runs the program's cases, for a main of its own. */
int check_run_cases(void);

/* For groups of cases that a program makes itself: one whose `*state` is such an env. */
#define CHECK_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, check_open_env, check_close_env)
int check_open_env(void **state);
int check_close_env(void **state);

/* Asserts that the call succeeds; what the failure says names the status, and the message of the
 * case's env. */
#define CHECK_OK(call) check_ok(call, #call, __FILE__, __LINE__)
void check_ok(graft_status status, const char *call, const char *file, int line);

/* Asserts that `status` is `want` and that the message contains `part`; clears the message. */
void check_failed(graft_env *env, graft_status status, graft_status want, const char *part);

/* Skips the running case with a reason that the runner prints. */
#define CHECK_SKIP(...)                                                                            \
    do {                                                                                           \
        print_message("# skip: " __VA_ARGS__);                                                     \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

/* The folder of the case, which is removed with everything in it when the case ends; the path of a
 * file in it. */
const char *check_folder(void);
char *check_path(const char *name);

/* What a file holds, which is text; asserts that two files hold the same bytes, and some. */
const char *check_text(const char *path);
void check_same_files(const char *a, const char *b);

/* A generator that begins with the seed. */
graft_rng check_rng(uint64_t seed);

/* Calls `close` with the object when the case ends, however it does; the last one first. */
void check_at_end(void (*close)(void *object), void *object);
