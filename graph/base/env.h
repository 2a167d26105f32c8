/* env.h - what every fallible host function is handed: arenas, the error in flight, the log.
 *
 * Errors. A fallible function returns graft_status (declared in graft/graft.h) and is must-use. The
 * function that finds the fault calls GRAFT_FAIL with a message that is complete enough to act on:
 * what went wrong, where (file, node, field), what was expected. The first message wins; callers
 * may add a frame ("while reading x.onnx") with GRAFT_TRY. Outputs are untouched on failure.
 *
 * Memory. Three arenas by lifetime: `life` (the run), `unit` (one graph or rule; reset by whoever
 * owns the loop over units) and `scratch` (mark and release inside one function). */
#pragma once

#include "arena.h"
#include "graft/graft.h"

#include <stdbool.h>
#include <stdio.h>

enum { GRAFT_MESSAGE_BYTES = 1024 };

typedef struct graft_ranks graft_ranks;

typedef struct graft_env {
    graft_arena *life;
    graft_arena *unit;
    graft_arena *scratch;
    char message[GRAFT_MESSAGE_BYTES]; /* First failure, then frames, newest last; "" when none. */
    int verbosity;                     /* 0 errors only, 1 events (default), 2 details. */
    bool json;                         /* Results on stdout as JSON Lines. */
    uint32_t thread_count;             /* Worker threads a stage may start; 1 to the most below. */
    uint32_t asked_threads;            /* The same as the user said it; 0: not at all. */
    graft_ranks *ranks; /* Processes that share this run's work (ranks.h); NULL: it is alone. */
} graft_env;

enum { GRAFT_THREADS_MOST = 1024 };

/* Creates the three arenas. GRAFT_OK: without memory the program ends, see arena.h. */
GRAFT_MUST_USE graft_status graft_env_open(graft_env *env);
/* Frees the arenas and everything in them. */
void graft_env_close(graft_env *env);

/* Records a message unless one is already there, and returns `status`. Use through GRAFT_FAIL. */
graft_status graft_env_fail(graft_env *env, graft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends a frame to the message. Use through GRAFT_TRY. */
void graft_env_frame(graft_env *env, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Forgets the message: the failure has been dealt with. */
void graft_env_clear(graft_env *env);

/* Its value is `status` itself, so that compilers and analysers see that it is not GRAFT_OK. */
#define GRAFT_FAIL(env, status, ...)                                                               \
    (__extension__({                                                                               \
        (void)graft_env_fail((env), (status), __VA_ARGS__);                                        \
        (status);                                                                                  \
    }))

/* Evaluates `call`; on failure adds one frame, stores the code in the local `status` and goes to
 * `done`. A function that uses it declares `graft_status status = GRAFT_OK;` and has a label. The
 * `else` asks for the semicolon and cannot capture another one; a loop around it would count as a
 * level of nesting. */
#define GRAFT_TRY(env, call, ...)                                                                  \
    if ((status = (call)) != GRAFT_OK) {                                                           \
        graft_env_frame((env), __VA_ARGS__);                                                       \
        goto done;                                                                                 \
    } else                                                                                         \
        (void)0

/* Evaluates `call`; a failure is passed on to the caller at once. For functions that have nothing
 * to give back: those that have use GRAFT_TRY or GRAFT_CHECK. */
#define GRAFT_PASS(call)                                                                           \
    __extension__({                                                                                \
        const graft_status graft_passed = (call);                                                  \
        if (graft_passed != GRAFT_OK)                                                              \
            return graft_passed;                                                                   \
    })

/* Where a condition holds, gives back at once what says so: a failure, or a plan's refusal. */
#define GRAFT_RETURN_IF(condition, failure)                                                        \
    __extension__({                                                                                \
        if (condition)                                                                             \
            return (failure);                                                                      \
    })

/* As GRAFT_PASS, with a frame. */
#define GRAFT_PASS_IN(env, call, ...)                                                              \
    __extension__({                                                                                \
        const graft_status graft_passed = (call);                                                  \
        if (graft_passed != GRAFT_OK) {                                                            \
            graft_env_frame((env), __VA_ARGS__);                                                   \
            return graft_passed;                                                                   \
        }                                                                                          \
    })

/* As GRAFT_TRY, without a frame: for calls whose own message says everything. */
#define GRAFT_CHECK(call)                                                                          \
    if ((status = (call)) != GRAFT_OK) {                                                           \
        goto done;                                                                                 \
    } else                                                                                         \
        (void)0
