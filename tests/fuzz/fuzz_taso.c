/* TASO's files from hostile bytes: refused with a message, or rules that are sound: each is
 * expressible and valid, or not and says why; what is read is written and read again the same. */
#include "graph/rule/rulefile.h"
#include "tests/support/taso_write.h"
#include "verify/command/taso.h"
#include "verify/instances/instance.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void import_rules(graft_env *env, const graft_taso_rule *rules, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        graft_rule rule;
        GRAFT_SCOPED(env->unit);
        const char *why = graft_taso_import(env, env->unit, &rules[i], &rule);
        if (why == NULL) {
            assert(graft_rule_check(&rule) == NULL);
        } else {
            assert(why[0] != '\0');
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    if (size > 4096 || graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    graft_taso_rule *rules = NULL;
    uint32_t count = 0;
    const graft_bytes bytes = {"input", data, size};
    if (graft_taso_parse(&env, env.life, bytes, &rules, &count) == GRAFT_OK) {
        uint8_t *again = NULL;
        uint8_t *third = NULL;
        size_t third_size = 0;
        graft_taso_rule *reread = NULL;
        graft_bytes written = {.file = "again"};
        uint32_t recount = 0;
        import_rules(&env, rules, count);
        taso_write(env.life, rules, count, &again, &written.size);
        written.data = again;
        assert(graft_taso_parse(&env, env.life, written, &reread, &recount) == GRAFT_OK);
        assert(recount == count);
        taso_write(env.life, reread, recount, &third, &third_size);
        assert(third_size == written.size && memcmp(third, again, third_size) == 0);
    } else {
        assert(strncmp(env.message, "input:", 6) == 0 && strchr(env.message, '\n') == NULL);
    }
    graft_env_close(&env);
    return 0;
}
