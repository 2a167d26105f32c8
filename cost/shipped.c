/* shipped.c - finding and joining rules/costs/ (see shipped.h). */
#include "cost/shipped.h"

#include "graph/file.h"

#include <dirent.h>
#include <string.h>

static bool is_database(const char *name)
{
    static const char ending[] = ".costs";
    size_t length = strlen(name);
    return length > sizeof(ending) - 1 && strcmp(name + length - (sizeof(ending) - 1), ending) == 0;
}

graft_status graft_shipped_merge(graft_env *env, graft_database *database)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    const char *folder = graft_file_shipped(env, "rules/costs");
    DIR *entries = opendir(folder);
    while (entries != NULL) {
        const struct dirent *entry = readdir(entries);
        if (entry == NULL) {
            break;
        }
        if (is_database(entry->d_name)) {
            const char *path = graft_arena_printf(env->scratch, "%s/%s", folder, entry->d_name);
            GRAFT_CHECK(graft_database_merge(env, database, path));
        }
    }
done:
    if (entries != NULL) {
        (void)closedir(entries);
    }
    graft_arena_release(env->scratch, mark);
    return status;
}
