/* library.c - see library.h. */
#include "graph/base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NAME_ROOM = 64 };

static void locate(const graft_library *library, char path[PATH_BYTES])
{
    static const char installed[] = "/../lib/graft/";
    const char *given = getenv(library->variable);
    ssize_t size = readlink("/proc/self/exe", path, PATH_BYTES - NAME_ROOM);
    if (given != NULL) {
        (void)snprintf(path, PATH_BYTES, "%s", given);
        return;
    }
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    char *end = slash == NULL ? path : slash;
    (void)snprintf(end, NAME_ROOM, "%s%s", installed, library->file);
    if (access(path, R_OK) != 0) {
        (void)snprintf(end, NAME_ROOM, "/%s", library->file);
    }
}

graft_status graft_library_load(graft_env *env, const graft_library *library, void *function)
{
    char path[PATH_BYTES];
    locate(library, path);
    if (access(path, R_OK) != 0) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "there is no %s: %s is missing; %s",
                          library->what, path, library->advice);
    }
    void *loaded = dlopen(path, RTLD_LAZY | (library->is_open ? RTLD_GLOBAL : RTLD_LOCAL));
    void *symbol = loaded == NULL ? NULL : dlsym(loaded, library->symbol);
    if (symbol == NULL) {
        /* The program ends: nothing else is there to close it for. */
        /* cppcheck-suppress resourceLeak */
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "the %s does not load: %s", library->what,
                          dlerror());
    }
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast from object to function. */
    /* It stays loaded: the function lies in it. */
    /* cppcheck-suppress resourceLeak */
    return GRAFT_OK;
}
