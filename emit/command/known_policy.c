/* known_policy.c - see known_policy.h. */
#include "emit/command/known_policy.h"

#include "cost/database/recorded.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/rule/policyfile.h"

#include <dirent.h>
#include <string.h>

/* How near a file's name, without its ending, is to the device's: UINT32_MAX where one says the
 * other, by its full name or by a part; 0: nothing in common. */
static uint32_t nearness(graft_arena *scratch, const char *file, const char *ending,
                         const char *device)
{
    size_t length = strlen(file);
    size_t end = strlen(ending);
    if (length <= end || strcmp(file + length - end, ending) != 0) {
        return 0;
    }
    const char *words = graft_arena_printf(scratch, "%.*s", (int)(length - end), file);
    return graft_recorded_means(device, words) || graft_recorded_means(words, device)
               ? UINT32_MAX
               : graft_shipped_likeness(words, device);
}

/* The file in a folder that ships which is nearest to the device, of those at least so near; of
 * several the first by name; NULL: none. */
static const char *find_file(graft_env *env, const char *folder, const char *ending,
                             const char *device, uint32_t least)
{
    GRAFT_SCOPED(env->scratch);
    const char *path = NULL;
    const char *where = graft_file_shipped(env, folder);
    DIR *entries = opendir(where);
    const struct dirent *entry = entries != NULL ? readdir(entries) : NULL;
    for (; entry != NULL; entry = readdir(entries)) {
        const char *found = graft_arena_printf(env->scratch, "%s/%s", where, entry->d_name);
        const uint32_t near = nearness(env->scratch, entry->d_name, ending, device);
        if (near > least || (near == least && (path == NULL || strcmp(found, path) < 0))) {
            path = graft_arena_strdup(env->life, found);
            least = near;
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    return path;
}

const char *graft_known_policy_path(graft_env *env, const char *device)
{
    return find_file(env, "rules/policies", ".graft", device, UINT32_MAX);
}

const char *graft_known_policy_nearest(graft_env *env, const char *device)
{
    return find_file(env, "rules/policies", ".graft", device, 1);
}

const char *graft_known_samples_path(graft_env *env, const char *device)
{
    return find_file(env, "rules/samples", ".costs", device, UINT32_MAX);
}

graft_status graft_known_policy_tariff(graft_env *env, const char *device, const char **path,
                                       graft_tariff *tariff)
{
    graft_policy policy;
    *tariff = (graft_tariff){.row_count = 0};
    *path = *path == NULL ? graft_known_policy_path(env, device) : *path;
    if (*path == NULL) {
        graft_log(env, 1, "rules/policies has no table of costs of '%s': it is learnt on the way",
                  device);
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_policyfile_read(env, env->life, *path, &policy, NULL));
    if (policy.tariff == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: the policy has no table of costs", *path);
    }
    *tariff = *policy.tariff;
    return GRAFT_OK;
}
