/* shipped.c - finding and joining rules/costs/ (see shipped.h). */
#include "cost/database/shipped.h"

#include "graph/base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <strings.h>

static bool is_database(const char *name)
{
    static const char ending[] = ".costs";
    size_t length = strlen(name);
    return length > sizeof(ending) - 1 && strcmp(name + length - (sizeof(ending) - 1), ending) == 0;
}

graft_status graft_shipped_merge(graft_env *env, graft_database *database)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
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
    return status;
}

uint32_t graft_shipped_likeness(const char *name, const char *wanted)
{
    static const char between[] = " ,()-_";
    uint32_t shared = 0;
    bool named = false; /* By more than numbers. */
    for (const char *w = wanted; *(w += strspn(w, between)) != '\0'; w += strcspn(w, between)) {
        size_t length = strcspn(w, between);
        bool found = false;
        for (const char *n = name; !found && *(n += strspn(n, between)) != '\0';
             n += strcspn(n, between)) {
            found = strcspn(n, between) == length && strncasecmp(n, w, length) == 0;
        }
        shared += found;
        named = named || (found && isalpha((unsigned char)*w) != 0);
    }
    return named ? shared : 0;
}

/* Another device of the database than `device`; NULL when no name shares a word with its. */
static const char *find_nearest(const graft_database *database, const char *device)
{
    const char *nearest = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const char *name = graft_database_at(database, i)->device;
        if ((i > 0 && name == graft_database_at(database, i - 1)->device) ||
            strcmp(name, device) == 0) {
            continue; /* Names are kept once each. */
        }
        uint32_t shared = graft_shipped_likeness(name, device);
        if (shared > most) {
            most = shared;
            nearest = name;
        }
    }
    return nearest;
}

const char *graft_shipped_nearest(graft_env *env, const char *device)
{
    graft_database *database = NULL;
    const char *nearest = NULL;
    if (graft_database_open(env, NULL, &database) != GRAFT_OK ||
        graft_shipped_merge(env, database) != GRAFT_OK) {
        graft_env_clear(env); /* It is a hint. */
    }
    if (database != NULL) {
        nearest = find_nearest(database, device);
        nearest = nearest == NULL ? NULL : graft_arena_strdup(env->life, nearest);
    }
    graft_database_close(database);
    return nearest;
}

graft_status graft_shipped_borrow(graft_env *env, graft_database *database, const char *device)
{
    graft_status status = graft_shipped_merge(env, database);
    const char *nearest = status == GRAFT_OK ? find_nearest(database, device) : NULL;
    const uint32_t count = nearest == NULL ? 0 : graft_database_count(database);
    for (uint32_t i = 0; i < count; i++) {
        const graft_database_record *record = graft_database_at(database, i);
        if (record->device == nearest && record->signature.op != GRAFT_COST_FACTOR &&
            graft_database_find(database, &record->signature) == NULL) {
            graft_database_add(database, &record->signature, &record->entry);
        }
    }
    return status;
}
