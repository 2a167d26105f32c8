/* domain.h - the instances of a rule within bounded sizes: every variable's shape and every slot's
 * value for which both sides type-check and the precondition holds.
 *
 * Variables and slots are chosen node by node, operands first, and each node's shapes are inferred
 * as soon as all it needs is chosen, so that misfits are cut off early. A domain that is small
 * enough is enumerated completely; of a larger one a selection is drawn, from a generator seeded
 * with the rule's content, by proposing shapes that are likely to fit (those of the node's other
 * inputs, their sizes as vectors, broadcasts of them) beside arbitrary ones. Whether a proposal
 * fits is decided by shape inference alone. */
#pragma once

#include "verify/instances/instance.h"
#include "verify/sweep/named.h"

typedef struct graft_domain_options {
    uint32_t points;           /* Most points wanted. */
    uint32_t attempts;         /* Most choices to make before settling for the points found. */
    bool enumerate;            /* Try to enumerate everything first. */
    uint64_t seed;             /* Selections differ by it. */
    uint32_t size_most;        /* Largest size of a drawn point; 0: that of the bounds. */
    uint64_t work;             /* Most work of a drawn point (graft_instance_work); 0: the usual. */
    const graft_named *named;  /* Draw sizes and attributes from these: in each sample one or two
                                  of them, beside 1 and 2. May be NULL. */
    const graft_point *origin; /* A point where the rule is known to apply: comes first if it is an
                                  instance, and half of a selection is made like it, with other
                                  sizes in place of its sizes. May be NULL. */
    /* Called with each point of a selection as soon as it is found, in their order; when it returns
     * false no more are looked for. May be NULL. */
    bool (*visit)(void *context, const graft_point *point);
    void *context;
} graft_domain_options;

typedef struct graft_domain {
    graft_point *points; /* Distinct instances (GRAFT_FIT_OK). */
    uint32_t count;
    /* Points that were chosen without regard to the target: those that are instances, and those
     * where only the target does not fit, so that the engine refuses there. */
    uint32_t fitted;
    uint32_t refused;
    bool complete; /* These are all. */
} graft_domain;

/* Finds instances of a valid rule; `points` lie in `arena`. May find none. */
graft_domain graft_domain_find(graft_env *env, graft_arena *arena, const graft_rule *rule,
                               const graft_domain_options *options);

/* Points that were met, as an open-addressing table of hashes. */
typedef struct graft_met {
    uint64_t *hashes; /* 0: free. */
    uint64_t mask;
} graft_met;

/* Room for `most` points, in `arena`. */
graft_met graft_met_new(graft_arena *arena, uint64_t most);
/* Notes a hash, which is not 0, or a point; false when it was noted before. */
bool graft_met_add(graft_met *met, uint64_t hash);
bool graft_met_add_point(graft_met *met, const graft_point *point);
