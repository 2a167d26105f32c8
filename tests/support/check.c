/* check.c - see check.h. */
#include "tests/support/check.h"

#include "graph/base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int check_open_env(void **state)
{
    graft_env *env = malloc(sizeof(*env));
    if (env == NULL || graft_env_open(env) != GRAFT_OK) {
        free(env);
        return -1;
    }
    env->verbosity = 0;
    *state = env;
    return 0;
}

int check_close_env(void **state)
{
    graft_env *env = *state;
    graft_env_close(env);
    free(env);
    return 0;
}

void check_failed(graft_env *env, graft_status status, graft_status want, const char *part)
{
    assert_string_equal(graft_status_name(status), graft_status_name(want));
    if (strstr(env->message, part) == NULL) {
        fail_msg("the message is \"%s\", without \"%s\"", env->message, part);
    }
    graft_env_clear(env);
}

char *check_folder_make(void)
{
    const char *parent = getenv("TMPDIR");
    char *folder = NULL;
    assert_true(asprintf(&folder, "%s/graft-test-XXXXXX", parent == NULL ? "/tmp" : parent) > 0);
    assert_non_null(mkdtemp(folder));
    return folder;
}

void check_folder_remove(char *folder)
{
    graft_file_remove_folder(folder);
    free(folder);
}
