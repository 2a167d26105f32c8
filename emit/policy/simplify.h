/* simplify.h - what is done to a model before costs count: nodes that do nothing leave it.
 *
 * Which of the proved rules take part: of a rule set and of rules/simplify.rules, those that only
 * remove nodes, or replace nodes that merely move elements by fewer of the same kinds
 * (graft_rule_is_always), and give the same bits for every input. No cost is asked. That reading
 * works out what is known beforehand and that writing leaves out equal and dead nodes is no matter
 * of rules: see model.h. */
#pragma once

#include "emit/command/session.h"

/* `*simplified` is a rewritten copy of `graph` in env->life, with room for more, by the session's
 * rules and judge. `*step_count` receives how often a rule was applied. */
GRAFT_MUST_USE graft_status graft_simplify_rewrite(graft_env *env, const graft_session *session,
                                                   const graft_graph *graph,
                                                   graft_graph **simplified, uint32_t *step_count);

/* Reads the options' model, simplifies it, writes it to `out` and prints what came of it. */
GRAFT_MUST_USE graft_status graft_simplify_file(graft_env *env,
                                                const graft_session_options *options,
                                                const char *out);
