/* taso_write.h - rules as bytes of a TASO file. */
#pragma once

#include "graph/rule/tasofile.h"

/* Bytes of a file with these rules, in `arena`. */
void taso_write(graft_arena *arena, const graft_taso_rule *rules, uint32_t count, uint8_t **data,
                size_t *size);
