/* exits.h - what every command ends with, beside 0. */
#pragma once

enum {
    GRAFT_EXIT_FALSE = 1,
    GRAFT_EXIT_INPUT = 2,
    GRAFT_EXIT_OPEN = 3,
    GRAFT_EXIT_NO_MEMORY = 70,
    GRAFT_EXIT_INTERRUPTED = 130
};
