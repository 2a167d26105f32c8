/* index.c - see index.h. */
#include "gen/index.h"

/* Whether the graph is to be listed; sets the node of its first root. */
static bool is_listed(const graft_gen_groups *groups, const bool *marks, uint32_t g,
                      const graft_gen_node **node)
{
    const graft_gen_graph *graph = &groups->graphs[g];
    uint32_t root = graph->roots.of[0];
    if (GRAFT_GEN_ROOT_IS_INPUT(root) || (marks != NULL && !marks[graph->hub])) {
        return false;
    }
    *node = &groups->space->nodes[root / GRAFT_MAX_OUTPUTS];
    return true;
}

void graft_gen_index_build(const graft_gen_groups *groups, const bool *marks, graft_arena *arena,
                           graft_gen_index *index)
{
    uint32_t config_count = groups->space->set->config_count;
    uint32_t *first = GRAFT_NEW(arena, uint32_t, (size_t)config_count + 2);
    const graft_gen_node *node = NULL;
    uint32_t count = 0;
    for (uint32_t g = 0; g < groups->count; g++) {
        if (is_listed(groups, marks, g, &node)) {
            first[node->config + 2u]++;
            count++;
        }
    }
    for (uint32_t c = 1; c <= config_count; c++) {
        first[c + 1] += first[c];
    }
    index->graphs = GRAFT_NEW(arena, uint32_t, (size_t)count + 1);
    for (uint32_t g = 0; g < groups->count; g++) {
        if (is_listed(groups, marks, g, &node)) {
            index->graphs[first[node->config + 1u]++] = g;
        }
    }
    index->first_by_config = first;
}
