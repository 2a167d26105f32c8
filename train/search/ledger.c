/* ledger.c - see ledger.h. */
#include "train/search/ledger.h"

#include "graph/equal.h"
#include "train/tariff/tariff.h"

#include <string.h>

/* Nodes that a row which was given counts for; rows that fit before the tables grow; how often a
 * cost counts that is an estimate. */
enum { GIVEN_WEIGHT = 4, FIRST_ROWS = 256, DOUBT = 2 };

static void grow(graft_ledger *ledger)
{
    uint32_t capacity = 2 * ledger->capacity + FIRST_ROWS;
    graft_ledger_row *rows = GRAFT_NEW(ledger->arena, graft_ledger_row, capacity);
    uint32_t *keys = GRAFT_NEW(ledger->arena, uint32_t, capacity);
    uint16_t *values = GRAFT_NEW(ledger->arena, uint16_t, capacity);
    if (ledger->row_count > 0) {
        memcpy(rows, ledger->rows, ledger->row_count * sizeof *rows);
        memcpy(keys, ledger->keys, ledger->row_count * sizeof *keys);
        memcpy(values, ledger->values, ledger->row_count * sizeof *values);
    }
    ledger->rows = rows;
    ledger->keys = keys;
    ledger->values = values;
    ledger->capacity = capacity;
    ledger->tariff.keys = keys;
    ledger->tariff.values = values;
}

void graft_ledger_open(graft_arena *arena, const graft_tariff *tariff, graft_ledger *ledger)
{
    *ledger = (graft_ledger){.arena = arena, .tariff = *tariff};
    do {
        grow(ledger);
    } while (ledger->capacity < tariff->row_count + 1);
    for (uint32_t i = 0; i < tariff->row_count; i++) {
        ledger->keys[i] = tariff->keys[i];
        ledger->values[i] = tariff->values[i];
        ledger->rows[i] = (graft_ledger_row){.key = tariff->keys[i],
                                             .given = tariff->values[i],
                                             .value = tariff->values[i],
                                             .is_given = true};
    }
    ledger->row_count = tariff->row_count;
}

/* The row of a key, made where there is none. */
static uint32_t obtain_row(graft_ledger *ledger, uint32_t key)
{
    uint32_t at = 0;
    uint32_t after = ledger->row_count;
    while (at < after) {
        uint32_t middle = at + (after - at) / 2;
        if (ledger->keys[middle] < key) {
            at = middle + 1;
        } else {
            after = middle;
        }
    }
    if (at < ledger->row_count && ledger->keys[at] == key) {
        return at;
    }
    if (ledger->row_count == ledger->capacity) {
        grow(ledger);
    }
    const size_t moved = ledger->row_count - at;
    memmove(&ledger->rows[at + 1], &ledger->rows[at], moved * sizeof ledger->rows[0]);
    memmove(&ledger->keys[at + 1], &ledger->keys[at], moved * sizeof ledger->keys[0]);
    memmove(&ledger->values[at + 1], &ledger->values[at], moved * sizeof ledger->values[0]);
    ledger->rows[at] = (graft_ledger_row){.key = key};
    ledger->keys[at] = key;
    ledger->tariff.row_count = ++ledger->row_count;
    return at;
}

static void note_node(graft_ledger *ledger, const graft_graph *graph, graft_index node, double ns)
{
    graft_form form;
    graft_form_of_node(graph, node, &form);
    uint32_t at = obtain_row(ledger, graft_tariff_key(ledger->tariff.seed, graft_form_hash(&form)));
    graft_ledger_row *row = &ledger->rows[at];
    row->op = form.op;
    row->count++;
    row->sum_ns += ns;
    double given_ns =
        row->is_given ? (double)graft_tariff_value(row->given) / GRAFT_COST_UNITS : 0.0;
    double weight = row->is_given ? GIVEN_WEIGHT : 0.0;
    row->value =
        graft_tariff_encode((given_ns * weight + row->sum_ns) / (weight + (double)row->count));
    ledger->values[at] = row->value;
}

graft_status graft_ledger_note(graft_env *env, graft_ledger *ledger, graft_cost *cost,
                               const graft_state *state)
{
    GRAFT_SCOPED(env->scratch);
    const graft_graph *graph = &state->graph;
    graft_cost_node *by_node = GRAFT_NEW(env->scratch, graft_cost_node, graph->node_end);
    graft_cost_total total;
    GRAFT_PASS(graft_cost_nodes(env, cost, graph, &state->order, by_node, &total));
    const graft_index *same = graft_equal_find(env->scratch, graph, &state->order);
    for (graft_index i = 0; i < state->order.count; i++) {
        graft_index n = state->order.order[i];
        if (!graph->nodes[n].is_const && !graft_equal_is_merged(graph, same, n)) {
            note_node(ledger, graph, n,
                      by_node[n].ns * (by_node[n].estimated_count > 0 ? DOUBT : 1));
        }
    }
    return GRAFT_OK;
}

bool graft_ledger_knows(graft_ledger *ledger, const graft_graph *graph, const graft_rule *rule,
                        const graft_made *made)
{
    bool knows = true;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        graft_form form;
        if (made->nodes[n].node.is_const) {
            continue;
        }
        graft_form_of_made(graph, made, n, &form);
        uint32_t key = graft_tariff_key(ledger->tariff.seed, graft_form_hash(&form));
        uint32_t at = graft_tariff_row(&ledger->tariff, key);
        if (at < ledger->row_count) {
            ledger->rows[at].op = form.op;
        }
        knows = knows && at < ledger->row_count;
    }
    return knows;
}

void graft_ledger_blur(graft_ledger *ledger, const graft_blur *blurs, uint32_t count)
{
    for (uint32_t i = 0; i < ledger->row_count; i++) {
        const graft_ledger_row *row = &ledger->rows[i];
        ledger->values[i] = graft_blur_value(blurs, count, row->key, row->op, row->value);
    }
}

graft_tariff graft_ledger_copy(graft_arena *arena, const graft_ledger *ledger)
{
    graft_tariff copy = ledger->tariff;
    copy.keys = GRAFT_COPY(arena, ledger->keys, ledger->row_count);
    copy.values = GRAFT_COPY(arena, ledger->values, ledger->row_count);
    return copy;
}
