/* check_run.c - finds and runs the cases of a program (check.h). */
#include "tests/support/check.h"

#include <errno.h>
#include <stdlib.h>

/* The linker names the ends of a section. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*) */
extern const check_entry *const __start_check_cases[];
extern const check_entry *const __stop_check_cases[];
static const check_entry *const *const first_entry = __start_check_cases;
static const check_entry *const *const end_of_entries = __stop_check_cases;
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl*) */

typedef struct running_case {
    const check_entry *entry;
    const char *row;
    void *env;
} running_case;

static int open_case(void **state)
{
    running_case *running = *state;
    return check_open_env(&running->env);
}

static void run_case(void **state)
{
    const running_case *running = *state;
    running->entry->run(running->env, running->row);
}

static int close_case(void **state)
{
    running_case *running = *state;
    return check_close_env(&running->env);
}

static const char *name_of(const running_case *running)
{
    const char *const *row_name = (const void *)running->row;
    return running->entry->name == NULL ? *row_name : running->entry->name;
}

/* In the order of the file: the compiler has one of its own. */
static int compare_cases(const void *a, const void *b)
{
    const running_case *left = a;
    const running_case *right = b;
    return left->entry != right->entry ? left->entry->line - right->entry->line
                                       : (left->row > right->row) - (left->row < right->row);
}

int check_run_cases(void)
{
    size_t count = 0;
    for (const check_entry *const *e = first_entry; e < end_of_entries; e++) {
        count += (*e)->row_count;
    }
    running_case *running = calloc(count, sizeof(*running));
    struct CMUnitTest *tests = calloc(count, sizeof(*tests));
    assert_true(running != NULL && tests != NULL);
    count = 0;
    for (const check_entry *const *e = first_entry; e < end_of_entries; e++) {
        for (size_t i = 0; i < (*e)->row_count; i++) {
            running[count++] = (running_case){*e, (*e)->rows + i * (*e)->row_size, NULL};
        }
    }
    qsort(running, count, sizeof(*running), compare_cases);
    for (size_t i = 0; i < count; i++) {
        tests[i] =
            (struct CMUnitTest){name_of(&running[i]), run_case, open_case, close_case, &running[i]};
    }
    int failed = _cmocka_run_group_tests(program_invocation_short_name, tests, count, NULL, NULL);
    free(tests);
    free(running);
    return failed;
}
