/* pairs.h - packed rules made shorter for a header: byte pair encoding (Gage, The C Users Journal
 * 12(2), 1994). As often as a value of a byte is left that no rule has, it comes to stand for the
 * two neighbours that are there most often. How they are read: rule_pairs in graft/policy.h. */
#pragma once

#include "graph/base/arena.h"

#include "graft/graft.h"

enum { GRAFT_PAIRS_BYTES = 512 };

/* The policy, whose rules are plain, with new `rules`, `rule_offsets` and `rule_pairs` in the
 * arena: as it was when that would take no less. The same rules give the same bytes. */
graft_policy graft_rules_shorten(graft_arena *arena, const graft_policy *policy);

/* What rules take of flash: their bytes, offsets, flags and pairs. */
size_t graft_rules_bytes(const graft_policy *policy);
