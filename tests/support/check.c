/* check.c - see check.h. */
#include "tests/support/check.h"

#include "graph/base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the case that runs: cases run one by one. The folder is made when somebody asks for it. */
static graft_env *case_env;
static char case_folder[4096];

typedef struct closing {
    void (*close)(void *object);
    void *object;
    struct closing *next;
} closing;

static closing *case_closings; /* In the env's `life`. */

int check_open_env(void **state)
{
    graft_env *env = malloc(sizeof(*env));
    if (env == NULL || graft_env_open(env) != GRAFT_OK) {
        free(env);
        return -1;
    }
    env->verbosity = 0;
    case_env = case_env == NULL ? env : case_env;
    *state = env;
    return 0;
}

int check_close_env(void **state)
{
    graft_env *env = *state;
    for (; env == case_env && case_closings != NULL; case_closings = case_closings->next) {
        case_closings->close(case_closings->object);
    }
    if (env == case_env && case_folder[0] != '\0') {
        graft_file_remove_folder(case_folder);
        case_folder[0] = '\0';
    }
    case_env = case_env == env ? NULL : case_env;
    graft_env_close(env);
    free(env);
    return 0;
}

void check_ok(graft_status status, const char *call, const char *file, int line)
{
    if (status != GRAFT_OK) {
        print_error("%s: %s: %s\n", call, graft_status_name(status),
                    case_env == NULL ? "" : case_env->message);
        _fail(file, line);
    }
}

void check_failed(graft_env *env, graft_status status, graft_status want, const char *part)
{
    assert_string_equal(graft_status_name(status), graft_status_name(want));
    if (strstr(env->message, part) == NULL) {
        fail_msg("the message is \"%s\", without \"%s\"", env->message, part);
    }
    graft_env_clear(env);
}

const char *check_folder(void)
{
    const char *parent = getenv("TMPDIR");
    assert_non_null(case_env);
    if (case_folder[0] == '\0') {
        (void)snprintf(case_folder, sizeof(case_folder), "%s/graft-test-XXXXXX",
                       parent == NULL ? "/tmp" : parent);
        assert_non_null(mkdtemp(case_folder));
    }
    return case_folder;
}

char *check_path(const char *name)
{
    return graft_arena_printf(case_env->life, "%s/%s", check_folder(), name);
}

static size_t read_file(const char *path, uint8_t **data)
{
    size_t size = 0;
    CHECK_OK(graft_file_read(case_env, case_env->life, path, data, &size));
    return size;
}

const char *check_text(const char *path)
{
    uint8_t *text = NULL;
    const size_t size = read_file(path, &text);
    assert_int_equal(strlen((const char *)text), size); /* A zero stands behind it. */
    return (const char *)text;
}

void check_same_files(const char *a, const char *b)
{
    uint8_t *data[2] = {NULL, NULL};
    const size_t size = read_file(a, &data[0]);
    assert_true(size > 0);
    assert_int_equal(read_file(b, &data[1]), size);
    assert_memory_equal(data[0], data[1], size);
}

graft_rng check_rng(uint64_t seed)
{
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    return rng;
}

void check_at_end(void (*close)(void *object), void *object)
{
    assert_non_null(case_env);
    closing *last = GRAFT_NEW(case_env->life, closing, 1);
    *last = (closing){close, object, case_closings};
    case_closings = last;
}
