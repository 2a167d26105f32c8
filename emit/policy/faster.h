/* faster.h - algorithms that a runtime is faster by (graph/algorithms.h), told by its own clock.
 *
 * Each class of nodes is timed alone by each algorithm that it has, in turns; what gains there by
 * more than noise is written for all of them, and the whole is held against the file once more. */
#pragma once

#include "emit/command/session.h"
#include "graph/algorithms.h"

/* Chooses algorithms for the nodes of `model`, which is what *path holds, on the session's device
 * (graft_device_times_models). *taken says whether any is confirmed; `algorithms`, in env->life,
 * then says which, and *path becomes a file of the device with them. The log says what each class
 * takes. GRAFT_INTERRUPTED when the user asked to stop; otherwise fails as writing does. */
GRAFT_MUST_USE graft_status graft_faster_find(graft_env *env, graft_session *session,
                                              const graft_model *model, const char **path,
                                              graft_algorithms *algorithms, bool *taken);

/* Holds the recurrent cells of what *path holds, `written`, as one operator each (graph/rolled.h)
 * against the file; those of the model as it came where of these there are more, as of cells that
 * rules have taken apart. *cells, when that is confirmed, is how many they are, and *path becomes a
 * file of the device with them; else 0. Fails as writing does. */
GRAFT_MUST_USE graft_status graft_faster_roll(graft_env *env, graft_session *session,
                                              const graft_model *written, const char **path,
                                              uint32_t *cells);
