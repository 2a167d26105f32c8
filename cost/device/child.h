/* child.h - a program that answers on its standard output what is written to its standard input.
 *
 * It is started without a shell, in a process group of its own, and inherits standard error and no
 * other descriptor. It should end when its standard input does; who does not is killed. */
#pragma once

#include "graph/base/env.h"

#include <sys/types.h>

typedef struct graft_child {
    pid_t process; /* 0: none. */
    int orders;    /* Its standard input, for writing; does not block. */
    int answers;   /* Its standard output, for reading. */
} graft_child;

/* Starts arguments[0], looked up in PATH when it has no slash; the list ends with NULL.
 * GRAFT_UNSUPPORTED, with the system's reason, when it cannot be run; GRAFT_IO when there are no
 * pipes. On failure `child` has no process. */
GRAFT_MUST_USE graft_status graft_child_start(graft_env *env, char *const *arguments,
                                              graft_child *child);

/* Writes all of `size` bytes, or fails by `deadline_ns` (graft_clock_ns). GRAFT_IO when the child
 * reads no more, GRAFT_UNDECIDED when time is over, GRAFT_INTERRUPTED when the user asked to stop.
 * A child that has gone raises no SIGPIPE. */
GRAFT_MUST_USE graft_status graft_child_write(graft_env *env, const graft_child *child,
                                              const char *data, size_t size, uint64_t deadline_ns);

/* Reads one line into `line`, which has room for `most` bytes, and ends it with '\0' in place of
 * the newline; *size is without that. GRAFT_IO when the child's output ends first, GRAFT_BAD_INPUT
 * when the line is longer or something comes behind it (an answer is one line), GRAFT_UNDECIDED and
 * GRAFT_INTERRUPTED as above. */
GRAFT_MUST_USE graft_status graft_child_read_line(graft_env *env, const graft_child *child,
                                                  char *line, size_t most, uint64_t deadline_ns,
                                                  size_t *size);

/* Closes its standard input, waits for its end, `patience_ms` at most (0: not at all), then kills
 * its process group. Returns what waitpid says of it; -1 for none. `child` has no process then. */
int graft_child_end(graft_child *child, uint32_t patience_ms);
