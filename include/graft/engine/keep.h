/* keep.h - what one decision leaves for the next: at which nodes a rule does not fit.
 *
 * Whether the source of a rule with one root fits at a node depends on the nodes that it can reach from
 * there, each an operand of the one before, on their operands, and on how often their outputs are read;
 * on nothing else of the graph. So a node that lies further behind every changed node than the source is
 * deep finds what it found before. A source of k nodes reaches k - 1 nodes back; `distance` says for each
 * node how many it is to the next changed one.
 *
 * Costs are not kept: what a rewrite changes of them may depend on nodes far away that become equal.
 * With GRAFT_CHECK_KEPT defined, the matcher looks all the same, and a match stops the program. With
 * GRAFT_WITHOUT_KEEPING nothing is kept, whatever the workspace. */
#ifndef GRAFT_ENGINE_KEEP_H
#define GRAFT_ENGINE_KEEP_H

typedef struct graft_kept {
    uint64_t *prints; /* By node id: a hash of what matters of it, at the last decision. */
    /* By node id: to the next changed node back, GRAFT_KEEP_FAR for more than a rule has. */
    uint8_t *distance;
    uint8_t *nothing; /* By rule, a bit for each node id: no match there. NULL: nothing is kept. */
    size_t row_bytes;
    size_t nothing_bytes;
    graft_index nodes;
    bool forget; /* Not all was looked at: the next decision does without. */
} graft_kept;

#define GRAFT_KEEP_FAR GRAFT_RULE_MAX_NODES

static void graft_carve_kept(graft_carver *carver, const graft_policy *policy,
                             const graft_limits *limits, graft_kept *kept)
{
    kept->nodes = limits->nodes;
    kept->row_bytes = (limits->nodes + 7u) / 8u;
    kept->nothing_bytes = policy->rule_count * kept->row_bytes;
    kept->prints = (uint64_t *)graft_carve(carver, limits->nodes, sizeof(uint64_t));
    kept->distance = (uint8_t *)graft_carve(carver, limits->nodes, 1);
    kept->nothing = (uint8_t *)graft_carve(carver, policy->rule_count, kept->row_bytes);
}

static bool graft_keeps(const graft_kept *kept)
{
#ifdef GRAFT_WITHOUT_KEEPING
    (void)kept;
    return false;
#else
    return kept->nothing != NULL;
#endif
}

static void graft_open_kept(graft_kept *kept)
{
    if (graft_keeps(kept)) {
        kept->forget = true;
        graft_zero_bytes(kept->prints, kept->nodes * sizeof(uint64_t));
        graft_zero_bytes(kept->nothing, kept->nothing_bytes);
    }
}

/* Everything about a node that a source looks at, its operands' producers apart. */
static uint64_t graft_print_of_node(const graft_graph *graph, const graft_order *order, uint32_t n)
{
    const graft_node *node = &graph->nodes[n];
    uint64_t hash = graft_mix_hash((uint64_t)node->op << 1 | node->is_const, node->source);
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i += 2) {
        hash = graft_mix_hash(hash, (uint64_t)(uint32_t)node->attrs[i] << 32 |
                                        (uint32_t)node->attrs[i + 1]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t v = graft_node_input(graph, n, i);
        hash =
            graft_mix_hash(hash, (uint64_t)v << 1 | (v != GRAFT_NONE && graph->values[v].is_const));
        hash = v != GRAFT_NONE ? graft_hash_shape(hash, &graph->values[v].shape) : hash;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t v = graft_node_output(graph, n, i);
        hash = graft_mix_hash(hash, (uint64_t)v << 32 | order->use_count[v]);
    }
    return hash;
}

/* Finds what is not as it was at the last decision. */
static void graft_look_for_changes(graft_kept *kept, const graft_graph *graph,
                                   const graft_order *order)
{
    if (!graft_keeps(kept)) {
        return;
    }
    for (uint32_t n = 0; n < kept->nodes; n++) { /* What comes back there is new. */
        bool gone = n >= graph->node_end || graph->nodes[n].op == GRAFT_OP_NONE;
        kept->prints[n] = gone ? 0 : kept->prints[n];
    }
    for (uint32_t i = 0; i < order->count; i++) {
        uint32_t n = order->order[i];
        uint64_t print = graft_print_of_node(graph, order, n);
        uint8_t distance = kept->forget || print != kept->prints[n] ? 0 : GRAFT_KEEP_FAR;
        for (uint32_t k = 0; distance > 0 && k < graph->nodes[n].input_count; k++) {
            uint32_t v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED &&
                kept->distance[graph->values[v].node] + 1u < distance) {
                distance = (uint8_t)(kept->distance[graph->values[v].node] + 1u);
            }
        }
        kept->prints[n] = print;
        kept->distance[n] = distance;
    }
    kept->forget = false;
}

static bool graft_nothing_fits(const graft_kept *kept, uint32_t r, uint32_t source_nodes,
                               uint32_t anchor)
{
    return graft_keeps(kept) && kept->distance[anchor] >= source_nodes &&
           ((uint32_t)kept->nothing[r * kept->row_bytes + anchor / 8u] >> anchor % 8u & 1u) != 0;
}

static void graft_keep_finding(graft_kept *kept, const graft_rule *rule, uint32_t r,
                               uint32_t anchor, bool matched)
{
    if (graft_keeps(kept)) {
        uint8_t *byte = &kept->nothing[r * kept->row_bytes + anchor / 8u];
        uint8_t bit = (uint8_t)(1u << anchor % 8u);
        bool nothing = !matched && !graft_has_several_roots(rule);
        *byte = (uint8_t)(nothing ? *byte | bit : *byte & ~bit);
    }
}

/* Some nodes were not looked at: what is kept of them is old. */
static void graft_forget_rest(graft_kept *kept, bool rest)
{
    if (graft_keeps(kept)) {
        kept->forget = kept->forget || rest;
    }
}

#endif
