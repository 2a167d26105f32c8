/* derive.h - whether a rule follows from a few others, one after the other, or as equations.
 *
 * Breadth first from the rule's source at one of its instances: every application of every rule of
 * the book by the engine itself, until the rule's target appears. A derivation is the list of rules
 * that were applied. So instances of a more general rule, rules in a context, renamings and
 * commuted operands are all recognised, by the very matching that will be used. */
#pragma once

#include "verify/instances/instance.h"

enum { GRAFT_DERIVATION_STEPS = 3 };

/* Whether one application of `other` does what `rule` does at each of `count` points (instances of
 * `rule`, at least one). */
bool graft_rule_follows(graft_env *env, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_rule *other);

typedef struct graft_numbered_rule {
    const graft_rule *rule; /* Borrowed. */
    uint32_t number;        /* The caller's. */
} graft_numbered_rule;

/* Which rules a derivation may use. */
typedef struct graft_rulebook {
    graft_arena *arena;
    struct graft_rulebook_page {
        graft_numbered_rule *rules;
        uint32_t count;
        uint32_t capacity;
    } by_anchor[GRAFT_OP_COUNT]; /* By the operator at which a rule is anchored. */
} graft_rulebook;

void graft_rulebook_open(graft_rulebook *book, graft_arena *arena);
void graft_rulebook_add(graft_rulebook *book, const graft_rule *rule, uint32_t number);

typedef struct graft_derivation {
    uint32_t steps[GRAFT_DERIVATION_STEPS]; /* Numbers of rules. */
    uint32_t count;
} graft_derivation;

/* Room to search in, for many searches. */
typedef struct graft_deriver graft_deriver;
graft_deriver *graft_deriver_new(graft_arena *arena);

/* Looks for a derivation of `rule` at one of its points, and finds a shortest; with `downhill` each
 * must leave fewer operators that run at inference, where those variables are weights that make
 * most of the rule (graft_price_weights). False when there is none within what the deriver looks at
 * (a few hundred intermediate graphs). */
bool graft_derive(graft_deriver *deriver, const graft_rule *rule, const graft_point *point,
                  const graft_rulebook *book, bool downhill, graft_derivation *derivation);

/* Whether a rule follows from the book as equations: rules lead from its source and from its target
 * to the same graph, and they may also be applied where an inner value of theirs has other readers,
 * for which it is computed again. Both are true of what the graphs compute; the engine does
 * neither. False when the two sides do not meet within two steps from the left and three from the
 * right, or within what the derivers look at. */
bool graft_equate(graft_deriver *left, graft_deriver *right, const graft_rule *rule,
                  const graft_point *point, const graft_rulebook *book, graft_derivation sides[2]);
