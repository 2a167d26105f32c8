/* check.h - everything that is asked of one rule before it may ship:
 *
 *      filter ─► proof for all sizes ─ proved ─► Z3 at a covering set ─► past the bounds ─► proved
 *                     └ else ───► whole sweep ─► Z3 at a covering set ─► within bounds
 *
 * The filter is a sweep of a few hundred instances: most false candidates end there, and what it
 * lets through is only worth asking about. A rule that is proved for all sizes cannot differ
 * anywhere unless our reading of an operator is wrong, so its instances are a test of that reading:
 * Z3 must prove some and find none false. Of any other rule instances are all that is known: it is
 * swept at thousands of them, and Z3 must prove every one of a covering set. Where a
 * rule has no such proof but has one where it was found, that is the better rule: most of what it
 * loses are shapes that happen to broadcast. */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/instances/prove.h"
#include "verify/lift/narrow.h"
#include "verify/sizes/symbolic.h"
#include "verify/sweep/sweep.h"

typedef struct graft_check_options {
    uint32_t points;           /* Most points of the whole sweep's first part, */
    uint32_t cover;            /* and of the covering set. */
    bool restricts;            /* Look for a restriction where a rule has no proof for all sizes. */
    graft_prove_options prove; /* `most`: of all proofs of one rule for all sizes, restrictions
                                  included; its instances may take a quarter of that once more. */
} graft_check_options;

/* What `make rules` uses. */
graft_check_options graft_check_defaults(void);

typedef enum graft_check_outcome {
    GRAFT_CHECK_SWEPT, /* No difference in the sweep; Z3 was not asked yet. */
    GRAFT_CHECK_PROVED,
    GRAFT_CHECK_REFUTED,   /* The sweep found a difference: see `sweep.counterexample`. */
    GRAFT_CHECK_THIN,      /* Too few instances within the bounds to say anything. */
    GRAFT_CHECK_SAT,       /* Z3 found a difference that the sweep did not. */
    GRAFT_CHECK_UNKNOWN,   /* Z3 gave up. */
    GRAFT_CHECK_RESTRICTED /* There is no proof for all sizes; of `restricted` there is one. */
} graft_check_outcome;

const char *graft_check_outcome_name(uint32_t outcome);

typedef struct graft_check {
    uint8_t outcome; /* graft_check_outcome */
    uint8_t numeric; /* graft_numeric */
    uint8_t proof;   /* graft_proof: what is proved. */
    bool complete;   /* The sweep was over the whole bounded domain. */
    uint32_t points; /* Instances found. */
    uint32_t past; /* Of a rule that is thin: those past the bounds that it was tried at beside. */
    uint32_t cover;
    graft_sweep_result sweep;
    graft_prove_result prove;
    graft_effort effort;             /* Of all proofs for all sizes that were tried. */
    graft_symbolic_result unbounded; /* Unless scalars stood for all sizes. */
    graft_rounding rounding;         /* Of a proved reassociating rule. */
    graft_point *instances;          /* The covering set: `cover` points, in env->unit. */
    uint8_t *cover_points;           /* The same, packed (cover.h), once proved. */
    size_t cover_bytes;
    graft_found_rule *restricted; /* The rule where attributes have the values, variables the ranks,
                                     and some the shape of others, that it was found with, as far
                                     as the proof needs that; in env->unit. */
} graft_check;

/* A valid rule, and how it is checked. */
typedef struct graft_checking {
    graft_env *env;
    const graft_sweeper *sweeper;
    const graft_check_options *options;
    const graft_rule *rule;
    const graft_point *origin; /* A point where it is known to apply; NULL: none is known. */
} graft_checking;

/* The filter: sweeps a rule at few instances and picks a covering set of these. The outcome is
 * SWEPT, REFUTED or THIN. */
void graft_check_filter(const graft_checking *c, graft_check *check);
/* The same at all the instances that a rule is swept at which has no proof for all sizes: also past
 * the bounds, for what is true up to them only is of no use, at the numbers that it names
 * (boundary.h), and beside sizes that Z3 finds where they are related (symmodel.h). Fewer than
 * forty instances in all are THIN, unless there are no others. */
void graft_check_sweep(const graft_checking *c, graft_check *check);
/* Goes on with a rule that passed the filter: the check is SWEPT, and becomes anything else. */
void graft_check_prove(const graft_checking *c, graft_check *check);
/* Filter and proof. */
void graft_check_rule(const graft_checking *c, graft_check *check);

/* The entry of a proved rule in a rule set, without name and family; what it points to is the
 * check's. */
graft_rule_entry graft_check_entry(const graft_check *check, const graft_rule *rule);
