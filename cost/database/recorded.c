/* recorded.c - see recorded.h. */
#include "cost/database/recorded.h"

#include "cost/database/shipped.h"
#include "graph/base/log.h"

#include <string.h>
#include <strings.h>

/* How many records a device and library have. */
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

static bool contains(const char *name, const char *word, size_t size)
{
    while (strncasecmp(name, word, size) != 0 && *name != '\0') {
        name++;
    }
    return strncasecmp(name, word, size) == 0;
}

bool graft_recorded_means(const char *name, const char *wanted)
{
    bool found = true;
    while (*wanted != '\0' && found) {
        size_t size = strcspn(wanted, "-");
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
        const char *nearest = graft_shipped_nearest(env, wanted);
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
    const char *nearest = graft_device_is_program(device) ? NULL : graft_shipped_nearest(env, name);
    graft_log(env, 1,
              "%s has no costs of this machine ('%s') with the library and kernels of now: they "
              "are measured here, and kept there",
              path, name);
    if (nearest != NULL) {
        graft_log(env, 1, "--device '%s' takes those of the nearest recorded device instead",
                  nearest);
    }
}
