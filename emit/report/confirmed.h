/* confirmed.h - a rewritten model timed as a whole by the device that it is for.
 *
 * A sum of operators' times may promise what a runtime does not keep. So a device that is a program
 * and times whole models is asked in the end: the model, the file, and the model once more as a
 * control, in turns. What is not faster there, be it by chance, does not come out. */
#pragma once

#include "cost/plan/executor.h"
#include "emit/command/session.h"
#include "graph/base/json.h"

typedef enum graft_verdict {
    GRAFT_VERDICT_NONE = 0, /* Nothing was asked: no such device, or nothing changed. */
    GRAFT_VERDICT_FASTER,   /* By more than noise (graft_comparison_is_gain). */
    GRAFT_VERDICT_SAME,     /* Not slower, and not faster by more than noise. */
    GRAFT_VERDICT_SLOWER,
    GRAFT_VERDICT_FAILED /* There are no times, for a reason that was logged. */
} graft_verdict;

typedef struct graft_confirmation {
    graft_verdict verdict;
    bool kept;                   /* The file may come out. */
    graft_comparison comparison; /* a: the model as it came; b: the file. Not when it failed. */
} graft_confirmation;

typedef struct graft_confirm_pair {
    const char *before; /* A file; NULL: the model as it came. */
    const char *after;
    uint32_t rounds_most;
} graft_confirm_pair;

/* Has the session's device time a file of the session's model against another, and that once more,
 * in turns: 21 rounds; as many again where it looks faster, since a device may open models once a
 * question, and their memory lies well or ill; and again, up to rounds_most in all, as long as it
 * may be chance. *refusal as in graft_device_time_models; only without one there is a
 * comparison. */
GRAFT_MUST_USE graft_status graft_confirm_files(graft_env *env, graft_session *session,
                                                const graft_confirm_pair *pair,
                                                graft_comparison *comparison, const char **refusal);

/* Asks the session's device (graft_device_times_models) about a file, and logs the verdict.
 * GRAFT_INTERRUPTED when the user asked to stop; GRAFT_IO when the model cannot be written. */
GRAFT_MUST_USE graft_status graft_confirm(graft_env *env, graft_session *session, const char *path,
                                          graft_confirmation *confirmation);

/* Says it: a line on standard output, members of a JSON object. Nothing for GRAFT_VERDICT_NONE. */
void graft_confirmation_print(const graft_confirmation *confirmation);
void graft_confirmation_add(const graft_confirmation *confirmation, graft_json *json);
