/* rulecode.c - see rulecode.h. */
#include "graph/rulecode.h"

#include <string.h>

uint32_t graft_code_next(const graft_rule *rule, uint32_t at)
{
    return at + 1 + graft_code_operand_bytes(rule->code[at]);
}

uint32_t graft_code_share(graft_rule *rule, uint32_t start)
{
    uint32_t size = rule->code_bytes - start;
    uint32_t first = 0; /* Of the expression looked at. */
    for (uint32_t at = 0; at < start;) {
        uint32_t next = graft_code_next(rule, at);
        if (rule->code[at] == GRAFT_CODE_END) {
            if (next - first == size && memcmp(&rule->code[first], &rule->code[start], size) == 0) {
                memset(&rule->code[start], 0, size);
                rule->code_bytes = (uint8_t)start;
                return first;
            }
            first = next;
        }
        at = next;
    }
    return start;
}
