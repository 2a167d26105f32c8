/* rulepage.c - see rulepage.h; graph/base/page/rules.js reads what is written here. */
#include "verify/command/rulepage.h"

#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/page.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/rulewords.h"
#include "verify/command/listing.h"

#include <inttypes.h>

void graft_rulepage_append(graft_env *env, const graft_ruleset *set, const graft_rule_entry *entry,
                           graft_buffer *list)
{
    GRAFT_SCOPED(env->unit);
    graft_buffer words = {.arena = env->unit};
    graft_json json;
    graft_listing_explain(env, set, entry, &words);
    graft_json_begin(&json, env->unit);
    graft_json_add(&json,
                   "name=%s id=%s family=%s line=%s proof=%s numeric=%s gain=%d swept=%u "
                   "complete=%c solved=%u cases=%u",
                   entry->name, graft_arena_printf(env->unit, "%016" PRIx64, entry->id),
                   entry->family, graft_rule_print_line(env->unit, &entry->rule),
                   graft_proof_name(entry->proof), graft_numeric_name(entry->numeric), entry->gain,
                   entry->points, entry->complete, entry->cover, entry->cases);
    graft_rule_sketch(&json, env->unit, &entry->rule);
    graft_json_string(&json, "words", words.data);
    graft_json_append(&json, list);
}

graft_status graft_rulepage_write(graft_env *env, const graft_ruleset *set, const char *file,
                                  const char *path)
{
    graft_buffer rules = {.arena = env->life};
    graft_json json;
    graft_json_begin(&json, env->life);
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rulepage_append(env, set, &set->entries[i], &rules);
    }
    graft_json_add(&json, "version=%s file=%s solver=%s", GRAFT_VERSION, file, set->solver);
    graft_json_list(&json, "rules", &rules);
    graft_status status = graft_page_write(env, GRAFT_PAGE_RULES, graft_json_close(&json), path);
    if (status == GRAFT_OK) {
        graft_log(env, 1, "wrote %s", path);
    }
    return status;
}
