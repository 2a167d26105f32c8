/* gen.h - the stage that proposes substitutions: enumerate graphs, compare fingerprints, prune.
 *
 *      families ─► space (every value once) ─► laws (consequences left out) ─► candidates
 *
 * What comes out is likely, not proved: equal on random samples at the shapes that the family
 * draws. Proving it, finding the shapes and attributes it holds for, and rejecting what is false
 * elsewhere is the business of verify/. */
#pragma once

#include "gen/family.h"

/* Room for what does not fit. */
typedef struct graft_gen_room {
    const char *folder;    /* For records of graphs and marks to go on from; NULL: none. */
    uint64_t memory_bytes; /* That graphs, laws and what they are found with may take together;
                              records of graphs go to the folder when they have a 64th of what
                              the rest leaves; 0: any. */
    uint64_t taken_bytes;  /* Of that, by what the sets before have brought. */
    uint64_t identity;     /* Of all that the laws of what is enumerated depend on. */
} graft_gen_room;

typedef struct graft_gen_counts {
    uint64_t graphs;     /* Distinct graphs of at most `depth` operators, renamings left out. */
    uint64_t evaluated;  /* Operators evaluated: graphs with their renamings. */
    uint64_t keys;       /* Distinct fingerprints. */
    uint64_t raw;        /* Pairs of graphs with equal fingerprints, each with its group's first. */
    uint64_t refuted;    /* Of those, false on further samples. */
    uint64_t laws;       /* Of those, kept: the others follow from them. */
    uint64_t macros;     /* Of the others, kept because they save operators in one step. */
    uint64_t candidates; /* Rules made of them, in both directions where possible. */
    uint64_t memory_bytes; /* The most that was in use at once, and of that */
    uint64_t stored_bytes; /* for records of graphs that were not looked at yet. */
    uint64_t time_ns;
} graft_gen_counts;

/* A substitution with every attribute as drawn (GRAFT_TERM_CONST, no precondition). */
typedef struct graft_candidate {
    graft_rule rule;
    graft_shape shapes[GRAFT_RULE_MAX_VARS]; /* Of the variables, as drawn. */
    bool is_weight[GRAFT_RULE_MAX_VARS];     /* Drawn as a weight; the law may hold for others. */
    const char *family;
    const char *set;
    uint32_t pair;     /* The same for both directions of one law. */
    uint32_t skeleton; /* The same for candidates that differ in attributes and ranks alone;
                          numbered by first appearance. */
    bool is_reversed;  /* The other direction of the pair comes before this one. */
    bool is_macro;     /* Follows from other candidates; saves operators in one step. */
} graft_candidate;

/* One set's share. */
typedef struct graft_gen_report {
    const char *family;
    const char *set;
    graft_gen_counts counts;
} graft_gen_report;

typedef struct graft_candidates {
    graft_candidate *items;
    uint32_t count;
    uint32_t skeleton_count;
    graft_gen_report *reports;
    uint32_t report_count;
} graft_candidates;

typedef struct graft_gen_options {
    uint64_t seed;
    uint32_t depth; /* Instead of the depth that each set names; 0: as named. */
    graft_gen_room room;
} graft_gen_options;

/* Enumerates the families and lists their candidates in `arena`. A law that follows from those of
 * an earlier set is not proposed again. Equal inputs give equal bytes, whatever env->thread_count
 * is. `families` must outlive the result. Failures as of graft_gen_space_build. What was done is in
 * the work folder then, for a run that goes on from there. */
GRAFT_MUST_USE graft_status graft_gen_run(graft_env *env, graft_arena *arena,
                                          const graft_gen_family *families, uint32_t family_count,
                                          const graft_gen_options *options,
                                          graft_candidates *candidates);
