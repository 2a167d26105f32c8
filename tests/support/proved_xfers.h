/* proved_xfers.h - the committed rules, as environments and searches take them. */
#pragma once

#include "train/search/matches.h"

/* All rules of rules/graft.rules with their names, in env->life; asserts that they can be read. */
graft_xfers proved_xfers(graft_env *env);
