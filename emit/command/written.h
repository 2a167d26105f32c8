/* written.h - the file that came out, read back: what it costs, what is in it, and whether it
 * computes what the model computed. */
#pragma once

#include "emit/command/session.h"

typedef struct graft_written {
    graft_model *model;     /* In env->life. */
    graft_cost_total total; /* By the session's price. */
} graft_written;

/* Reads the file; its price stays what it was. */
GRAFT_MUST_USE graft_status graft_written_read(graft_env *env, const graft_session *session,
                                               const char *path, graft_written *written);
/* Reads the file and prices it. */
GRAFT_MUST_USE graft_status graft_written_open(graft_env *env, graft_session *session,
                                               const char *path, graft_written *written);

/* Whether the session's model can be run as a whole: GRAFT_UNSUPPORTED, with the reason, when not.
 */
GRAFT_MUST_USE graft_status graft_written_check_able(graft_env *env, graft_session *session);
/* Runs the model and the file on the same random inputs, `rounds` times, and gives the largest
 * relative difference of their outputs (outputs.h). GRAFT_INTERNAL when it is too large. */
GRAFT_MUST_USE graft_status graft_written_check(graft_env *env, graft_session *session,
                                                const graft_written *written, uint32_t rounds,
                                                double *difference);
/* Elements of the weights in a model's file, and what one run takes, of the operators that Graft
 * knows: FLOPs, and bytes read and written by each, weights included. */
typedef enum graft_written_size {
    GRAFT_WRITTEN_PARAMETERS = 0,
    GRAFT_WRITTEN_FLOPS = 1,
    GRAFT_WRITTEN_BYTES = 2,
    GRAFT_WRITTEN_SIZES = 3
} graft_written_size;
GRAFT_MUST_USE graft_status graft_written_measure(graft_env *env, const graft_model *model,
                                                  uint64_t sizes[GRAFT_WRITTEN_SIZES]);
/* Operators by kind, before and after: a table, or JSON Lines. */
void graft_written_print_kinds(graft_env *env, const graft_session *session,
                               const graft_written *written);
/* ONNX nodes of a model's file, without constants. */
uint32_t graft_written_operators(graft_env *env, const graft_model *model);
