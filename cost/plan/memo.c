/* memo.c - life of a memo (see memo.h, plan.h). */
#include "cost/plan/memo.h"

#include <stdlib.h>

graft_plan_memo *graft_plan_memo_new(void) { return calloc(1, sizeof(graft_plan_memo)); }

void graft_plan_memo_free(graft_plan_memo *memo)
{
    if (memo != NULL) {
        free(memo->nodes);
        free(memo);
    }
}

void graft_plan_memo_clear(graft_plan_memo *memo)
{
    if (memo != NULL) {
        memo->shape_count = 0;
        for (uint32_t i = 0; i < memo->node_capacity; i++) {
            memo->nodes[i].known = false;
        }
    }
}

bool graft_plan_memo_fit(graft_plan_memo *memo, uint32_t node_count)
{
    if (node_count <= memo->node_capacity) {
        return true;
    }
    node_memo *nodes = calloc(node_count, sizeof(nodes[0]));
    if (nodes == NULL) {
        return false;
    }
    free(memo->nodes);
    memo->nodes = nodes;
    memo->node_capacity = node_count;
    return true;
}
