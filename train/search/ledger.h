/* ledger.h - a tariff that learns from the prices met on the way.
 *
 * It begins with the rows and the fallback of a tariff. Of each graph that is priced it notes what
 * the nodes cost there, and a row becomes the mean of what it was, with some weight, and of what
 * was met. Rows can be blurred (blur.h). */
#pragma once

#include "cost/cost.h"
#include "train/agent/state.h"
#include "train/tariff/blur.h"

typedef struct graft_ledger_row {
    uint32_t key;
    uint32_t count; /* Nodes met, */
    double sum_ns;  /* and what they cost. */
    uint16_t given; /* The value of the tariff that it began with, if it had one. */
    uint16_t value; /* What it says now. */
    bool is_given;
    uint8_t op; /* 0: not known, no form of it was met. */
} graft_ledger_row;

typedef struct graft_ledger {
    graft_arena *arena;
    graft_tariff tariff; /* What the rows say, blurred or not: keys and values are the ledger's. */
    graft_ledger_row *rows; /* By key, as the tariff's. */
    uint32_t *keys;
    uint16_t *values;
    uint32_t row_count;
    uint32_t capacity;
} graft_ledger;

/* The rows and the fallback of `tariff`, which is kept; it may have none. */
void graft_ledger_open(graft_arena *arena, const graft_tariff *tariff, graft_ledger *ledger);
/* Notes what the nodes of a graph cost. Fails as graft_cost_nodes does. */
GRAFT_MUST_USE graft_status graft_ledger_note(graft_env *env, graft_ledger *ledger,
                                              graft_cost *cost, const graft_state *state);
/* Whether there is a row for every node that applying a rule would make; those that there are know
 * their operator afterwards. */
bool graft_ledger_knows(graft_ledger *ledger, const graft_graph *graph, const graft_rule *rule,
                        const graft_made *made);

/* Sets the tariff to the rows, blurred by all of these. */
void graft_ledger_blur(graft_ledger *ledger, const graft_blur *blurs, uint32_t count);

/* The tariff as it is, in `arena`. */
graft_tariff graft_ledger_copy(graft_arena *arena, const graft_ledger *ledger);
