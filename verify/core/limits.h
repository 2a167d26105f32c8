/* limits.h - the limits of what a proof rests on, each with its text: see limits.def.
 *
 * GRAFT_ROOM_x is the size of arrays, GRAFT_LIMIT(x) how much of it may be used. The two are the
 * same number, but for the objects of tests/verify/test_limits.c: in these a test sets a limit. */
#ifndef GRAFT_LIMITS_H
#define GRAFT_LIMITS_H

#include <stdint.h>

enum {
#define LIMIT(name, value, kind, text) GRAFT_ROOM_##name = (value),
#include "verify/core/limits.def"
#undef LIMIT
};

typedef enum graft_limit {
#define LIMIT(name, value, kind, text) GRAFT_LIMIT_##name,
#include "verify/core/limits.def"
#undef LIMIT
    GRAFT_LIMIT_COUNT
} graft_limit;

#ifdef GRAFT_SMALL_LIMITS
/* tests/support/limits.h */
uint32_t graft_limit_in_test(uint32_t limit, uint32_t value);
#define GRAFT_LIMIT(name) graft_limit_in_test(GRAFT_LIMIT_##name, GRAFT_ROOM_##name)
#else
#define GRAFT_LIMIT(name) ((uint32_t)GRAFT_ROOM_##name)
#endif

/* "more than 64 conditions of definedness": why a proof ends that needs more than a graft_limit. */
const char *graft_limit_reason(uint32_t limit);

#endif
