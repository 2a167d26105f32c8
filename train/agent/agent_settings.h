/* agent_settings.h - every number that decides how an agent is trained, read from YAML;
 * train/settings.yaml is the file that is used unless another is named, and says what each means.
 */
#pragma once

#include "graph/base/env.h"

/* SETTING(section, name, type, least, most): one row per number; `type` is integer or real. */
#define GRAFT_AGENT_SETTINGS(SETTING)                                                              \
    SETTING(environment, seed, integer, 0, 1e15)                                                   \
    SETTING(environment, location_limit, integer, 1, 1000)                                         \
    SETTING(environment, step_limit, integer, 1, 10000)                                            \
    SETTING(environment, weight_megabytes, integer, 0, 1 << 20)                                    \
    SETTING(environment, cost_limit, real, 0, 1000)                                                \
    SETTING(survey, episodes, integer, 1, 100000)                                                  \
    SETTING(survey, preference, real, 0, 10)                                                       \
    SETTING(candidates, hidden, integer, 1, 512)                                                   \
    SETTING(candidates, latent, integer, 1, 512)                                                   \
    SETTING(candidates, rounds, integer, 0, 6)                                                     \
    SETTING(candidates, width, integer, 1, 512)                                                    \
    SETTING(candidates, limit, integer, 1, 255)                                                    \
    SETTING(candidates, alike, integer, 1, 60000)                                                  \
    SETTING(candidates, sharpness, real, 0, 100)                                                   \
    SETTING(candidates, reserve, real, 0, 100)                                                     \
    SETTING(candidates, hide, real, 0, 1)                                                          \
    SETTING(candidates, updates, integer, 0, 1e7)                                                  \
    SETTING(candidates, episodes, integer, 1, 4096)                                                \
    SETTING(candidates, imitate, integer, 0, 1)                                                    \
    SETTING(candidates, transitions, integer, 1, 1e6)                                              \
    SETTING(candidates, minibatch, integer, 1, 4096)                                               \
    SETTING(candidates, epochs, integer, 1, 100)                                                   \
    SETTING(candidates, learning_rate, real, 0, 1)                                                 \
    SETTING(candidates, discount, real, 0, 1)                                                      \
    SETTING(candidates, lambda, real, 0, 1)                                                        \
    SETTING(candidates, clip, real, 0, 10)                                                         \
    SETTING(candidates, kl, real, 0, 10)                                                           \
    SETTING(candidates, entropy, real, 0, 10)                                                      \
    SETTING(candidates, step_cost, real, 0, 10)                                                    \
    SETTING(candidates, reward_scale, real, 1e-6, 100)                                             \
    SETTING(candidates, reward_end, real, 0, 1)                                                    \
    SETTING(candidates, reward_bytes, real, 0, 1)                                                  \
    SETTING(candidates, reward_flops, real, 0, 1)                                                  \
    SETTING(candidates, reward_launches, real, 0, 1)                                               \
    SETTING(foresight, hidden, integer, 1, 2048)                                                   \
    SETTING(foresight, pair, integer, 1, 512)                                                      \
    SETTING(foresight, components, integer, 1, 32)                                                 \
    SETTING(foresight, episodes, integer, 1, 4096)                                                 \
    SETTING(foresight, held_out, integer, 1, 4096)                                                 \
    SETTING(foresight, updates, integer, 0, 1e7)                                                   \
    SETTING(foresight, learning_rate, real, 0, 1)                                                  \
    SETTING(foresight, temperature, real, 0, 10)                                                   \
    SETTING(foresight, horizon, integer, 1, 10000)                                                 \
    SETTING(foresight, dreams, integer, 1, 4096)                                                   \
    SETTING(foresight, dream_updates, integer, 0, 1e7)                                             \
    SETTING(foresight, trial_every, integer, 1, 1e7)                                               \
    SETTING(search, random_episodes, integer, 0, 100000)                                           \
    SETTING(search, alpha, real, 1, 10)                                                            \
    SETTING(search, dequeues, integer, 0, 1e7)                                                     \
    SETTING(search, beam_width, integer, 0, 10000)                                                 \
    SETTING(search, beam_patience, integer, 1, 10000)                                              \
    SETTING(search, annealing_graphs, integer, 1, 1e9)                                             \
    SETTING(search, annealing_temperature, real, 1e-9, 1)                                          \
    SETTING(search, iterated_graphs, integer, 1, 1e9)

typedef int64_t graft_setting_integer;
typedef double graft_setting_real;

/* Fields are named section_name. */
typedef struct graft_agent_settings {
#define SETTING(section, name, type, least, most) graft_setting_##type section##_##name;
    GRAFT_AGENT_SETTINGS(SETTING)
#undef SETTING
} graft_agent_settings;

/* Reads a complete settings file: sections are mappings, every number must be there and within its
 * range. GRAFT_IO, or GRAFT_BAD_INPUT naming file, line and key. */
GRAFT_MUST_USE graft_status graft_agent_settings_read(graft_env *env, const char *path,
                                                      graft_agent_settings *settings);
