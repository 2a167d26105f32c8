/* rewriting.h - the model-based differential test of the graph engine: random graphs, random
 * applications of rules, both sides evaluated over exact residues.
 *
 * A graph is drawn (random_graph.h) and rewritten some times in a row, each time by a random rule
 * among those that match and at a random match; application_check looks at every step. A failure is
 * made small: outputs and nodes are left out while some match of the rule still fails. */
#pragma once

#include "graph/base/env.h"

typedef struct rewriting_options {
    const graft_rule *rules;
    uint32_t rule_count;
    uint64_t seed;
    uint64_t application_count; /* Stops after so many that could be compared. */
} rewriting_options;

typedef struct rewriting_report {
    uint64_t graph_count;
    uint64_t application_count; /* Done and compared. */
    uint64_t refused_count;
    uint64_t full_count;
    uint64_t skipped_count;
    uint64_t *applied;                  /* By rule: compared applications. */
    uint64_t operators[GRAFT_OP_COUNT]; /* Nodes of the graphs drawn. */
    const char *failure; /* NULL, or seed, rule, fault and the smallest graph found, as text. */
    graft_index failure_nodes; /* Nodes of that graph. */
} rewriting_report;

/* Ends early at the first failure. The report lies in env->life; env->unit is reset. */
void rewriting_run(graft_env *env, const rewriting_options *options, rewriting_report *report);
/* The same; prints the counts, and fails the test at a failure. */
void rewriting_check(graft_env *env, const rewriting_options *options, rewriting_report *report);
