/* limits.c - see limits.h. */
#include "verify/core/limits.h"

const char *graft_limit_reason(uint32_t limit)
{
    static const char *const reasons[GRAFT_LIMIT_COUNT] = {
#define LIMIT(name, value, kind, text) "more than " #value " " text,
#include "verify/core/limits.def"
#undef LIMIT
    };
    return limit < GRAFT_LIMIT_COUNT ? reasons[limit] : "a limit";
}
