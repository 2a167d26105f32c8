/* device_answers.h - what a device that is a program may answer (docs/devices.md), read with
 * suspicion: it is another's program.
 *
 * An answer is one line, a JSON object. It is read by the parser of settings, as all JSON is YAML;
 * members that are not asked for are passed over. Every failure is GRAFT_BAD_INPUT with a message
 * that says what is wrong with the answer, and leaves the results as they were. */
#pragma once

#include "graph/base/env.h"

enum { GRAFT_ANSWER_PROTOCOL = 1 };

/* What a device says of itself. Texts are printable ASCII without quotes and backslashes. */
typedef struct graft_answer_hello {
    char name[33];
    char version[33];
    char hardware[129];
    char options[41];         /* "" when it has none. */
    uint32_t threads;         /* At least 1. */
    bool times_models;        /* It understands "time_models". */
    bool has[GRAFT_OP_COUNT]; /* By operator: whether it runs it; all of them if it does not say. */
    const char *const *fuses; /* Rules, not parsed, in env->life; NULL: it does not say. */
    uint32_t fuse_count;
} graft_answer_hello;

/* The time of one run. */
typedef struct graft_answer_time {
    double median_ns; /* From 1 to an hour. */
    double spread_ns; /* From 0 to an hour. */
    uint32_t rounds;  /* That they are of; 1 when it does not say. */
} graft_answer_time;

typedef struct graft_answer_line {
    const char *text; /* Without its newline. */
    size_t size;
    uint32_t id; /* Of the question that it is to answer. */
} graft_answer_line;

/* Each sets *refusal, in `arena`, to the device's own words where it says that it cannot do what it
 * is asked (a member "unsupported"), and then nothing else; to NULL otherwise. */
GRAFT_MUST_USE graft_status graft_answer_read_hello(graft_env *env, graft_arena *arena,
                                                    const graft_answer_line *line,
                                                    const char **refusal,
                                                    graft_answer_hello *hello);
GRAFT_MUST_USE graft_status graft_answer_read_time(graft_env *env, graft_arena *arena,
                                                   const graft_answer_line *line,
                                                   const char **refusal, graft_answer_time *time);
/* Of each of `count` models as many times as there are rounds: times[k][round], each as in
 * graft_answer_time. */
GRAFT_MUST_USE graft_status graft_answer_read_turns(graft_env *env, graft_arena *arena,
                                                    const graft_answer_line *line,
                                                    const char **refusal, uint32_t count,
                                                    uint32_t rounds, double *const *times);
