/* recorded.c - see recorded.h. */
#include "cost/database/recorded.h"

#include "cost/database/database_text.h"
#include "graph/base/file.h"
#include "graph/base/log.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------- rules/costs */

/* A database that comes with Graft, and the one device whose costs it has. */
typedef struct shipped_file {
    const char *path;
    const char *device;
    struct shipped_file *next;
} shipped_file;

static bool is_database(const char *name)
{
    static const char ending[] = ".costs";
    size_t length = strlen(name);
    return length > sizeof(ending) - 1 && strcmp(name + length - (sizeof(ending) - 1), ending) == 0;
}

/* The device of a file's first record, of which this much has to be read; NULL where there is none. */
static graft_status read_device(graft_env *env, const char *path, const char **device)
{
    char start[4096] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot open it", path);
    }
    start[fread(start, 1, sizeof(start) - 1, file)] = '\0';
    (void)fclose(file);
    return graft_database_parse_device(env, path, start, device);
}

/* All there are, by their paths, in env->scratch. No folder, or an empty one, is no failure. */
static graft_status list_shipped(graft_env *env, shipped_file **files)
{
    graft_status status = GRAFT_OK;
    const char *folder = graft_file_shipped(env, "rules/costs");
    DIR *entries = opendir(folder);
    const struct dirent *entry = NULL;
    *files = NULL;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (is_database(entry->d_name)) {
            shipped_file **place = files;
            shipped_file *file = GRAFT_NEW(env->scratch, shipped_file, 1);
            file->path = graft_arena_printf(env->scratch, "%s/%s", folder, entry->d_name);
            GRAFT_CHECK(read_device(env, file->path, &file->device));
            while (*place != NULL && strcmp((*place)->path, file->path) < 0) {
                place = &(*place)->next;
            }
            file->next = *place;
            *place = file->device != NULL ? file : *place;
        }
    }
done:
    if (entries != NULL) {
        (void)closedir(entries);
    }
    return status;
}

static bool is_named(const char *device, const char *wanted)
{
    return strstr(device, wanted) != NULL || graft_recorded_means(device, wanted);
}

graft_status graft_shipped_merge(graft_env *env, graft_database *database, const char *wanted)
{
    GRAFT_SCOPED(env->scratch);
    shipped_file *files = NULL;
    GRAFT_PASS(list_shipped(env, &files));
    for (const shipped_file *file = files; file != NULL; file = file->next) {
        if (is_named(file->device, wanted)) {
            GRAFT_PASS(graft_database_merge(env, database, file->path));
        }
    }
    return GRAFT_OK;
}

bool graft_shipped_has(graft_env *env, const char *wanted)
{
    GRAFT_SCOPED(env->scratch);
    shipped_file *files = NULL;
    bool found = false;
    if (list_shipped(env, &files) != GRAFT_OK) {
        graft_env_clear(env);
    }
    for (const shipped_file *file = files; !found && file != NULL; file = file->next) {
        found = graft_recorded_means(file->device, wanted);
    }
    return found;
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

/* The name that shares most words with `device`, the first of several, and is not its own. */
typedef struct {
    const char *device;
    const char *nearest; /* NULL where none shares one. */
    uint32_t most;
} nearest_name;

/* Whether it is nearer than those before. */
static bool take_nearer(nearest_name *n, const char *name)
{
    const uint32_t shared =
        strcmp(name, n->device) == 0 ? 0 : graft_shipped_likeness(name, n->device);
    const bool nearer = shared > n->most;
    n->nearest = nearer ? name : n->nearest;
    n->most = nearer ? shared : n->most;
    return nearer;
}

static nearest_name find_nearest(const graft_database *database, const char *device)
{
    nearest_name n = {.device = device};
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const char *name = graft_database_at(database, i)->device;
        if (i == 0 || name != graft_database_at(database, i - 1)->device) {
            (void)take_nearer(&n, name); /* Names are kept once each. */
        }
    }
    return n;
}

/* Among those that come with Graft, in env->life; NULL also when they cannot be read. */
static const char *find_shipped(graft_env *env, const char *device)
{
    GRAFT_SCOPED(env->scratch);
    shipped_file *files = NULL;
    nearest_name n = {.device = device};
    if (list_shipped(env, &files) != GRAFT_OK) {
        graft_env_clear(env); /* It is a hint. */
    }
    for (const shipped_file *file = files; file != NULL; file = file->next) {
        (void)take_nearer(&n, file->device);
    }
    return n.nearest == NULL ? NULL : graft_arena_strdup(env->life, n.nearest);
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

/* Whether two devices differ in their numbers of threads alone, which are named last. */
static bool is_same_processor(const char *a, const char *b)
{
    const char *end = strrchr(a, ',');
    return end != NULL && strncmp(a, b, (size_t)(end - a) + 1) == 0 && strrchr(b, ',') != NULL &&
           strrchr(b, ',') - b == end - a;
}

/* Gives the database's device what it lacks of the nearest of the files to a device. */
static graft_status borrow_nearest(graft_env *env, graft_database *database,
                                   const shipped_file *files, const char *device,
                                   const char **borrowed)
{
    const shipped_file *nearest = NULL;
    nearest_name n = {.device = device};
    for (const shipped_file *file = files; file != NULL; file = file->next) {
        nearest = take_nearer(&n, file->device) ? file : nearest;
    }
    *borrowed = n.nearest;
    if (nearest != NULL) {
        GRAFT_PASS(graft_database_merge(env, database, nearest->path));
        borrow_from(database, nearest->device);
    }
    return GRAFT_OK;
}

graft_status graft_shipped_borrow(graft_env *env, graft_database *database, const char *device)
{
    GRAFT_SCOPED(env->scratch);
    shipped_file *files = NULL;
    const char *nearest = NULL;
    const nearest_name own = find_nearest(database, device);
    nearest_name n = {.device = device};
    GRAFT_PASS(list_shipped(env, &files));
    for (const shipped_file *file = files; file != NULL; file = file->next) {
        (void)take_nearer(&n, file->device);
        if (strcmp(file->device, device) == 0) {
            GRAFT_PASS(graft_database_merge(env, database, file->path));
        }
    }
    if (own.nearest != NULL && own.most >= n.most) {
        borrow_from(database, own.nearest);
    }
    GRAFT_PASS(borrow_nearest(env, database, files, device, &nearest));
    return nearest != NULL && is_same_processor(nearest, device)
               ? borrow_nearest(env, database, files, nearest, &nearest)
               : GRAFT_OK;
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
        if (!is_named(record->device, wanted) ||
            (found != NULL && found->device == record->device &&
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
