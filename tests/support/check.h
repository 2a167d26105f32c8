/* check.h - what every test program starts from: cmocka and a fresh graft_env per case. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "graph/base/env.h"

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A case whose `*state` is a quiet, open graft_env; its arenas are freed afterwards. */
#define CHECK_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, check_open_env, check_close_env)
int check_open_env(void **state);
int check_close_env(void **state);

/* Asserts that `status` is `want` and that the message contains `part`; clears the message. */
void check_failed(graft_env *env, graft_status status, graft_status want, const char *part);

/* Skips the running case with a reason that the runner prints. */
#define CHECK_SKIP(...)                                                                            \
    do {                                                                                           \
        print_message("# skip: " __VA_ARGS__);                                                     \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

/* A new folder for files of this case, with everything in it removed by check_folder_remove. The
 * name is malloc'd and belongs to the caller until then. */
char *check_folder_make(void);
void check_folder_remove(char *folder);

#endif
