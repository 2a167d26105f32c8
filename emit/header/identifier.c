/* identifier.c - see identifier.h. */
#include "emit/header/identifier.h"

#include <string.h>

graft_status graft_identifier_make(graft_env *env, const char *name, graft_identifier *identifier)
{
    size_t length = strlen(name);
    if (length == 0 || length >= GRAFT_IDENTIFIER_BYTES) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "a name has 1 to %d characters, '%s' has %zu",
                          GRAFT_IDENTIFIER_BYTES - 1, name, length);
    }
    for (size_t i = 0; i <= length; i++) {
        char c = name[i];
        bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\0';
        bool capital = c >= 'A' && c <= 'Z';
        char small = keep ? c : capital ? (char)(c - 'A' + 'a') : '_';
        identifier->small[i] = small;
        identifier->capitals[i] = small >= 'a' && small <= 'z' ? (char)(small - 'a' + 'A') : small;
    }
    return GRAFT_OK;
}
