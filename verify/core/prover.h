/* prover.h - asking Z3 whether a formula is unsatisfiable. Unknown, an exhausted resource limit and a
 * crash are no proofs.
 *
 * Limits are Z3's own resource counts, never a clock: verdicts are the same on every machine with
 * the same Z3. The caller runs this in a child process (pool.h), for the solver may crash or hang.
 */
#ifndef GRAFT_PROVER_H
#define GRAFT_PROVER_H

#include "verify/core/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <z3.h>

/* Is given each formula that Z3 found unsatisfiable, in its context: what a proof rests on. */
typedef struct graft_prove_listener {
    void (*hear)(void *context, Z3_context z3, Z3_ast formula);
    void *context;
} graft_prove_listener;

/* What proofs take or may take, in counts that are the same on every machine. */
typedef struct graft_effort {
    uint64_t resource_count; /* The solver's own. */
    uint64_t
        term_count; /* Distinct terms over symbolic sizes that were brought to a normal form. */
} graft_effort;

/* Why what is asked past that is unknown. */
#define GRAFT_PROVE_SPENT "the rule has had its share of the solver"
typedef struct graft_prove_options {
    uint32_t resource_limit; /* Of one question to the solver. */
    uint32_t memory_mb;      /* Of the solver. */
    graft_effort most;       /* Of all that is asked in one call; what is left then is unknown. */
    bool solver_is_mute; /* Every answer counts as unknown: for tests that nothing gets through. */
    const graft_prove_listener *listener; /* Borrowed; or NULL. */
} graft_prove_options;

/* What `make rules` uses. */
graft_prove_options graft_prove_defaults(void);

typedef struct graft_prove_result {
    uint8_t verdict;    /* graft_verdict */
    uint32_t points;    /* Proved one after the other. */
    uint32_t failed;    /* Index of the point that was not, unless proved. */
    uint32_t questions; /* Put to the solver. */
    uint64_t resource_count;
    char reason[GRAFT_ROOM_SOLVER_REASON]; /* The solver's, when unknown. */
} graft_prove_result;

/* Z3 is asked whether a formula about numbers is unsatisfiable: it is multiplied out, then searched
 * for numbers that make it true. */
typedef enum graft_search {
    GRAFT_SEARCH_NONE,
    GRAFT_SEARCH_LINEAR,
    GRAFT_SEARCH_REAL_CLOSED,
    GRAFT_SEARCH_GENERAL,   /* Nonlinear, by the older simplex, */
    GRAFT_SEARCH_GENERAL_2, /* and by the newer one. */
    GRAFT_SEARCH_COUNT
} graft_search;

/* A solver at work on one task after another: proofs about one rule and its like, which share its
 * context and what it has proved. `options` and `result` are borrowed; the result is cleared, and
 * then counts the task's questions and resources and holds the last reason for an unknown. */
typedef struct graft_prover {
    Z3_context z3; /* Owned. */
    const graft_prove_options *options;
    graft_prove_result *result;
    Z3_tactic searches[GRAFT_SEARCH_COUNT]; /* By graft_search, as far as it was made. */
    Z3_ast_map unsatisfiable;               /* Formulas of which Z3 said so. */
    Z3_ast_map names;                       /* Of who asks (asking.h): nothing rests on it. */
    uint64_t resource_base;                 /* The context's count when the task began, */
    uint64_t resource_last;                 /* and now. */
} graft_prover;

/* The options' `memory_mb` is that of all tasks. */
void graft_prover_open(graft_prover *p, const graft_prove_options *options,
                       graft_prove_result *result);
/* Ends a task and begins another. */
void graft_prover_begin(graft_prover *p, const graft_prove_options *options,
                        graft_prove_result *result);
void graft_prover_close(graft_prover *p);

/* Z3's answer to what a solver of the prover's context was told, counted. */
Z3_lbool graft_prover_check(graft_prover *p, Z3_solver solver);
/* Whether the task has taken all the resources that its options grant. */
bool graft_prover_is_spent(const graft_prover *p);
/* Tells the listener, if there is one, of a formula that is unsatisfiable. */
void graft_prover_tell(const graft_prover *p, Z3_ast formula);
/* Notes why an answer is unknown. */
void graft_prover_note(const graft_prover *p, const char *why);

/* Z3's answer to a question about numbers; what is unsatisfiable is kept. */
Z3_lbool graft_prover_ask(graft_prover *p, Z3_ast question, graft_search kind);

/* What Z3 was asked in place of a conjunction: `formula`, in which `terms` of it are symbols, that
 * is, constants. */
typedef struct graft_asked {
    Z3_ast formula;
    uint32_t count;
    const Z3_ast *symbols;
    const Z3_ast *terms;
} graft_asked;

/* Whether the conjunction of `parts` (the keys of a map) is unsatisfiable because Z3 said so of the
 * formula: with the terms for its symbols it is a conjunction of some of the parts. What holds for
 * no numbers at all holds for none that are these terms, and more parts make nothing true. So
 * nothing rests on how the formula was found. */
bool graft_prover_refutes(const graft_prover *p, const graft_asked *r, Z3_ast_map parts);

/* Sets a number among the parameters of a solver: "rlimit" is what one question may take. */
void graft_prover_set(Z3_context z3, Z3_solver solver, const char *parameter, uint32_t number);

/* Z3's simplifier set to multiply out, to so many times the monomials: one sum of monomials for
 * equal polynomials. The caller releases it. */
Z3_params graft_prover_som(Z3_context z3, uint32_t monomials);

#endif
