/* recorded.c - see recorded.h. */
#include "cost/database/recorded.h"

#include "graph/base/file.h"
#include "graph/base/log.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------- rules/costs */

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

/* Another device of the database, of the records from `first` on, than `device`; NULL when no name
 * shares a word with its. */
static const char *find_nearest(const graft_database *database, uint32_t first, const char *device)
{
    const char *nearest = NULL;
    uint32_t most = 0;
    for (uint32_t i = first; i < graft_database_count(database); i++) {
        const char *name = graft_database_at(database, i)->device;
        if ((i > first && name == graft_database_at(database, i - 1)->device) ||
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

/* Among those that come with Graft, in env->life; NULL also when they cannot be read. */
static const char *find_shipped(graft_env *env, const char *device)
{
    graft_database *database = NULL;
    const char *nearest = NULL;
    if (graft_database_open(env, NULL, &database) != GRAFT_OK ||
        graft_shipped_merge(env, database) != GRAFT_OK) {
        graft_env_clear(env); /* It is a hint. */
    }
    if (database != NULL) {
        nearest = find_nearest(database, 0, device);
        nearest = nearest == NULL ? NULL : graft_arena_strdup(env->life, nearest);
    }
    graft_database_close(database);
    return nearest;
}

/* What the database's own device lacks and another one has. */
static void borrow_from(graft_database *database, const char *other)
{
    const uint32_t count = graft_database_count(database);
    for (uint32_t i = 0; i < count; i++) {
        const graft_database_record *record = graft_database_at(database, i);
        if (strcmp(record->device, other) == 0 && record->signature.op != GRAFT_COST_FACTOR &&
            graft_database_find(database, &record->signature) == NULL) {
            graft_database_add(database, &record->signature, &record->entry);
        }
    }
}

graft_status graft_shipped_borrow(graft_env *env, graft_database *database, const char *device)
{
    const uint32_t own_count = graft_database_count(database);
    GRAFT_PASS(graft_shipped_merge(env, database));
    const char *near[] = {own_count > 0 ? find_nearest(database, 0, device) : NULL,
                          find_nearest(database, own_count, device)};
    for (uint32_t i = 0; i < 2; i++) {
        if (near[i] != NULL) {
            borrow_from(database, near[i]);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- names */

static uint32_t count_records(const graft_database *database, const char *device,
                              const char *library)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *record = graft_database_at(database, i);
        count += strcmp(record->device, device) == 0 && strcmp(record->library, library) == 0;
    }
    return count;
}

/* Whether the word is in the name, and is no part of a number there. */
static bool contains(const char *name, const char *word, size_t size)
{
    bool found = false;
    for (bool after_digit = false; !found && *name != '\0'; name++) {
        const bool cut = isdigit((unsigned char)*word) &&
                         (after_digit || isdigit((unsigned char)name[strnlen(name, size)]));
        found = strncasecmp(name, word, size) == 0 && !cut;
        after_digit = isdigit((unsigned char)*name) != 0;
    }
    return found || size == 0;
}

bool graft_recorded_means(const char *name, const char *wanted)
{
    bool found = true;
    while (*wanted != '\0' && found) {
        size_t size = strcspn(wanted, "-");
        while (isdigit((unsigned char)*wanted) && wanted[size] == '-' &&
               isdigit((unsigned char)wanted[size + 1])) {
            size += 1 + strcspn(wanted + size + 1, "-");
        }
        found = contains(name, wanted, size);
        wanted += size + (wanted[size] == '-');
    }
    return found;
}

/* Texts are kept once each, so equal ones have equal addresses. */
graft_status graft_recorded_find(graft_env *env, const graft_database *database,
                                 graft_device *device, const char *path)
{
    const graft_database_record *found = NULL;
    const char *wanted = graft_device_name(device);
    uint32_t most = 0;
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *record = graft_database_at(database, i);
        bool named =
            strstr(record->device, wanted) != NULL || graft_recorded_means(record->device, wanted);
        if (!named || (found != NULL && found->device == record->device &&
                       found->library == record->library)) {
            continue;
        }
        if (found != NULL && found->device != record->device) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "device '%s' is ambiguous in %s and rules/costs: '%s', '%s'", wanted,
                              path == NULL ? "memory" : path, found->device, record->device);
        }
        uint32_t count = count_records(database, record->device, record->library);
        found = count > most ? record : found;
        most = count > most ? count : most;
    }
    if (found == NULL) {
        const char *nearest = find_shipped(env, wanted);
        return GRAFT_FAIL(
            env, GRAFT_BAD_INPUT,
            "device '%s' is neither this machine's ('cpu'; 'cuda' for its GPU), nor a "
            "program (docs/devices.md), nor recorded in %s or rules/costs%s%s%s; "
            "`make gpu-check` records a GPU (docs/gpu.md)",
            wanted, path == NULL ? "memory" : path,
            nearest == NULL ? "" : ", where the nearest is '", nearest == NULL ? "" : nearest,
            nearest == NULL ? "" : "'");
    }
    graft_device_identify(device, found->device, found->library);
    return GRAFT_OK;
}

bool graft_recorded_has(const graft_database *database, const char *wanted)
{
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        if (strstr(graft_database_at(database, i)->device, wanted) != NULL) {
            return true;
        }
    }
    return false;
}

void graft_recorded_announce(graft_env *env, const graft_database *database,
                             const graft_device *device, const char *path)
{
    const char *name = graft_device_name(device);
    if (path == NULL || env->verbosity == 0 ||
        count_records(database, name, graft_device_library(device)) > 0) {
        return;
    }
    const char *nearest = graft_device_is_program(device) ? NULL : find_shipped(env, name);
    graft_log(env, 1,
              "%s has no costs of this machine ('%s') with the library and kernels of now: they "
              "are measured here, and kept there",
              path, name);
    if (nearest != NULL) {
        graft_log(env, 1, "--device '%s' takes those of the nearest recorded device instead",
                  nearest);
    }
}
