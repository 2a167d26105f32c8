/* rulecode.h - the byte code of a rule's attributes, expression by expression. */
#ifndef GRAFT_RULECODE_H
#define GRAFT_RULECODE_H

#include "graft/graft.h"

/* The offset behind the instruction at offset `at`, operands included. */
uint32_t graft_code_next(const graft_rule *rule, uint32_t at);

/* Call it when an expression was written from offset `start` to the end of the code: drops it where
 * the same expression stands before. Returns the offset to refer to. So rules that say the same
 * have the same bytes, whoever wrote them. */
uint32_t graft_code_share(graft_rule *rule, uint32_t start);

#endif
