/* usage.h - what the tables of commands and options (options.h) say to a reader: the list of
 * commands, the help of one, the manual page, and the completion for bash. */
#pragma once

#include "exits.h"
#include "options.h"

typedef struct graft_commands {
    const graft_command *const *list;
    uint32_t count;
} graft_commands;

/* All of it, as `graft help` prints it. */
void graft_usage_list(graft_arena *arena, const graft_commands *commands, FILE *out);
/* Of one command: its command lines, options and exit statuses. */
void graft_usage_explain(graft_arena *arena, const graft_command *command, FILE *out);
/* The manual page graft(1), for man. */
void graft_usage_manual(graft_arena *arena, const graft_commands *commands, FILE *out);
/* A script that bash's completion loads. */
void graft_usage_completion(graft_arena *arena, const graft_commands *commands, FILE *out);
