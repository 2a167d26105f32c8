/* simplify.h - what is done to a model before costs count: nodes that do nothing leave it.
 *
 * Which of the proved rules take part: of a rule set and of rules/simplify.rules, those that only
 * remove nodes, or replace nodes that merely move elements by fewer of the same kinds
 * (graft_rule_is_always), and give the same bits for every input. No cost is asked. That reading
 * works out what is known beforehand and that writing leaves out equal and dead nodes is no matter
 * of rules: see model.h. */
#pragma once

#include "emit/command/session.h"

/* What is printed about bodies of If, Loop and Scan, held back until it is known that they stay:
 * where they would make the file grow, they are put back and rewritten again. */
typedef struct graft_held {
    FILE *out;   /* Where the lines go in the end. */
    FILE *lines; /* Where they are printed. */
    char *text;
    size_t size;
} graft_held;

/* GRAFT_NO_MEMORY when the system has no memory for it. Closed by graft_held_close in any case. */
GRAFT_MUST_USE graft_status graft_held_open(graft_env *env, FILE *out, graft_held *held);
/* Passes on what was printed since the last call, or drops it. */
void graft_held_settle(graft_held *held, bool kept);
/* Drops what is not settled. */
void graft_held_close(graft_held *held);

/* `*simplified` is a rewritten copy of `graph` in env->life, with room for more, by the session's
 * rules and judge. `*step_count` receives how often a rule was applied. */
GRAFT_MUST_USE graft_status graft_simplify_rewrite(graft_env *env, const graft_session *session,
                                                   const graft_graph *graph,
                                                   graft_graph **simplified, uint32_t *step_count);

/* Reads the options' model, simplifies it, writes it to `out` and prints what came of it. */
GRAFT_MUST_USE graft_status graft_simplify_file(graft_env *env,
                                                const graft_session_options *options,
                                                const char *out);
