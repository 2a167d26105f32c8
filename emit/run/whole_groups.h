/* whole_groups.h - no rewrite of a file takes a part of what runtimes compute in 8 bits. */
#pragma once

#include "graph/model.h"
#include "train/search/matches.h"

/* Who refuses matches that have a node in a group of byte_groups.h, in model->graph and its copies,
 * and asks `sizes`, which may be NULL, about others; lies in env->life. `sizes` itself where the
 * model changes nothing to or from 8 bits. */
const graft_rewrite_judge *graft_whole_groups_judge(graft_env *env, const graft_model *model,
                                                    const graft_rewrite_judge *sizes);
