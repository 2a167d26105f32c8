/* agent_internal.h - what the files of the agent share: checkpoint and recorded episodes. */
#ifndef GRAFT_TRAIN_AGENT_INTERNAL_H
#define GRAFT_TRAIN_AGENT_INTERNAL_H

#include "train/agent.h"

/* Writes everything needed to go on. */
GRAFT_MUST_USE graft_status graft_agent_save(graft_env *env, graft_agent *agent, const char *path);
/* Reads it back when the file is there and its identity is the agent's; *found says so. A file that
 * cannot be used is logged and left alone: training starts anew. */
void graft_agent_load(graft_env *env, graft_agent *agent, const char *path, bool *found);

/* Plays the random episodes, which the settings alone decide. */
GRAFT_MUST_USE graft_status graft_agent_record_random(graft_env *env, graft_arena *arena,
                                                      graft_agent *agent,
                                                      graft_environment *environment);
/* Plays one round of episodes by the controller and notes their actions. */
GRAFT_MUST_USE graft_status graft_agent_record_policy(graft_env *env, graft_arena *arena,
                                                      graft_agent *agent,
                                                      graft_environment *environment);
/* Plays the noted actions again. */
GRAFT_MUST_USE graft_status graft_agent_replay(graft_env *env, graft_arena *arena,
                                               graft_agent *agent, graft_environment *environment);
/* An episode as the world model sees it, in `arena`. */
graft_trajectory graft_agent_trajectory(graft_env *env, graft_arena *arena,
                                        const graft_agent *agent, const graft_episode *episode);
/* Latents of the episodes that have none yet. */
void graft_agent_trace(graft_env *env, graft_arena *arena, graft_agent *agent);

#endif
