/* identifier.h - names of models as parts of C identifiers. */
#pragma once

#include "graph/base/env.h"

enum { GRAFT_IDENTIFIER_BYTES = 64 };

typedef struct graft_identifier {
    char small[GRAFT_IDENTIFIER_BYTES];    /* a-z 0-9 _ */
    char capitals[GRAFT_IDENTIFIER_BYTES]; /* A-Z 0-9 _ */
} graft_identifier;

/* Capitals become small letters, all else that is no letter or digit becomes _. GRAFT_BAD_INPUT
 * when the name is empty or longer than 63 bytes. */
GRAFT_MUST_USE graft_status graft_identifier_make(graft_env *env, const char *name,
                                                  graft_identifier *identifier);
