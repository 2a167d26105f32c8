/* log.h - events on stderr, one line each; a live progress bar only when stderr is a terminal. */
#pragma once

#include "env.h"

/* Prints "graft: ..." when env->verbosity is at least `level`. Clears a live bar first. */
void graft_log(const graft_env *env, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A bar with rate and time left. On a terminal it is redrawn at most ten times a second; elsewhere
 * a line is printed at each tenth of the work. `unit` names what is counted, e.g. "operators". */
typedef struct {
    const graft_env *env;
    const char *label;
    const char *unit;
    uint64_t total;
    uint64_t done;
    uint64_t start_ns;
    uint64_t drawn_ns;
    uint32_t drawn_tenths;
} graft_progress;

void graft_progress_start(graft_progress *progress, const graft_env *env, const char *label,
                          const char *unit, uint64_t total);
/* `note` (may be NULL) is shown behind the bar, e.g. the current loss. */
void graft_progress_update(graft_progress *progress, uint64_t done, const char *note);
/* Clears a live bar before something else is printed; the next update draws it again. */
void graft_progress_hide(graft_progress *progress);
void graft_progress_finish(graft_progress *progress);

/* Monotonic clock. */
uint64_t graft_clock_ns(void);

/* Ctrl-C and SIGTERM set a flag that long loops ask for; a second signal kills at once. */
void graft_interrupt_install(void);
bool graft_interrupted(void);
/* GRAFT_INTERRUPTED where the flag is set, "interrupted while `doing`". */
GRAFT_MUST_USE graft_status graft_interrupted_while(graft_env *env, const char *doing);
