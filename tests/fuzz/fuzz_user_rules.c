/* Users' rules from hostile bytes: refused with a message that names a place, or valid rules whose
 * text parses again. */
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/rulewords.h"
#include "verify/command/userrules.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    if (size > 4096 || graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    graft_user_rule *rules = NULL;
    uint32_t count = 0;
    const graft_bytes bytes = {"input", data, size};
    if (graft_user_rules_parse(&env, env.life, bytes, &rules, &count) == GRAFT_OK) {
        for (uint32_t i = 0; i < count; i++) {
            if (rules[i].fault != NULL) {
                assert(strncmp(rules[i].fault, "input:", 6) == 0);
                assert(strchr(rules[i].fault, '\n') == NULL);
                continue;
            }
            graft_rule again;
            uint32_t parts = 0;
            graft_buffer words = {.arena = env.unit};
            const char *line = graft_rule_print_line(env.unit, &rules[i].rule);
            assert(graft_rule_check(&rules[i].rule) == NULL);
            (void)graft_rule_words_where(env.unit, &rules[i].rule, &parts);
            graft_rule_words_steps(&words, &rules[i].rule, true);
            if (strstr(line, "<stack fault>") == NULL) {
                assert(graft_rule_parse(&env, "again", line, &again) == GRAFT_OK);
                assert(strcmp(graft_rule_print_line(env.unit, &again), line) == 0);
            }
        }
    } else {
        assert(strncmp(env.message, "input:", 6) == 0 && strchr(env.message, '\n') == NULL);
    }
    graft_env_close(&env);
    return 0;
}
