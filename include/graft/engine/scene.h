/* scene.h - what the network is told of a graph and of a rewrite beyond features.h: costs. */
#ifndef GRAFT_ENGINE_SCENE_H
#define GRAFT_ENGINE_SCENE_H

/* Whether a rewrite moves more, and computes and launches no less. */
static bool graft_only_adds(const graft_change *change)
{
    return change->added.bytes > change->removed.bytes &&
           change->added.flops >= change->removed.flops &&
           change->added.nodes >= change->removed.nodes;
}

int64_t graft_change_doubted(const graft_change *change)
{
    const int64_t skew = change->added.skew - change->removed.skew;
    const int64_t doubted = change->cost + (skew < 0 ? -skew : skew);
    const bool guessed = (change->added.fallback_nodes | change->removed.fallback_nodes) != 0;
    return guessed && doubted < 0 && graft_only_adds(change) ? 0 : doubted;
}

#ifndef GRAFT_WITHOUT_NETWORK

static int32_t graft_least_of(int32_t a, int32_t b) { return a < b ? a : b; }

int16_t graft_part_log(int64_t amount, uint64_t whole)
{
    const uint64_t size = amount < 0 ? 0u - (uint64_t)amount : (uint64_t)amount;
    int32_t value =
        (int32_t)graft_log_size(size) - (int32_t)graft_log_size(whole) + 64 * GRAFT_GAIN_SHIFT;
    value = size == 0 || whole == 0 || value < 0 ? 0 : graft_least_of(value, GRAFT_ACTIVATION_MOST);
    return (int16_t)(amount < 0 ? -value : value);
}

/* `scale` times the part of a whole, at most `most`, which is below 2^15; products and quotients are of
 * 32 bits. */
static int32_t graft_part_of_whole(uint64_t amount, uint64_t whole, uint32_t scale, uint32_t most)
{
    while (whole >= 1u << 16) {
        whole >>= 1;
        amount >>= 1;
    }
    if (whole == 0) {
        return 0;
    }
    amount = amount < whole ? amount : whole;
    uint32_t part = (uint32_t)amount * scale / (uint32_t)whole;
    return (int32_t)(part < most ? part : most);
}

void graft_scene_node(const graft_estimator *estimator, uint64_t whole, graft_index node,
                      int8_t *out)
{
    bool guessed = false;
    const uint64_t cost = graft_estimator_cost(estimator, node, &guessed);
    const graft_op_row *info = graft_find_op(estimator->graph->nodes[node].op);
    graft_node_features(estimator->graph, estimator->order, node, out);
    for (uint32_t i = 0; i < GRAFT_SCENE_COST - GRAFT_SCENE_FLAGS; i++) {
        out[GRAFT_SCENE_FLAGS + i] =
            info != NULL && (info->flags >> i & 1u) != 0 ? GRAFT_FEATURE_SCALE : 0;
    }
    const int32_t share = (graft_log_size(cost) - graft_log_size(whole)) / 16 + GRAFT_FEATURE_SCALE;
    out[GRAFT_SCENE_COST] = (int8_t)(cost == 0 || share < 0 ? 0 : share);
    out[GRAFT_SCENE_GUESSED] = guessed ? GRAFT_FEATURE_SCALE : 0;
}

void graft_scene_globals(const graft_estimated *now, uint64_t first, int8_t *out)
{
    out[GRAFT_SCENE_SAVED] =
        (int8_t)graft_part_of_whole(now->cost, first, GRAFT_FEATURE_SCALE, GRAFT_FEATURE_SCALE);
    out[GRAFT_SCENE_NODES] = graft_log_feature(now->nodes, 3);
    out[GRAFT_SCENE_FALLBACK] = (int8_t)graft_part_of_whole(
        now->fallback_cost, now->cost, GRAFT_FEATURE_SCALE, GRAFT_FEATURE_SCALE);
}

void graft_candidate_facts(const graft_change *change, const graft_estimated *now, int16_t *out)
{
    const int64_t cost = graft_change_doubted(change);
    const uint64_t size = cost < 0 ? 0u - (uint64_t)cost : (uint64_t)cost;
    const int32_t plain = graft_part_of_whole(size, now->cost, 20 * GRAFT_FACT_ONE, GRAFT_FACT_ONE);
    const int32_t more = (int32_t)(change->added.nodes - change->removed.nodes);
    const int32_t nodes = more < -8 ? -8 : graft_least_of(more, 8);
    graft_zero_bytes(out, GRAFT_FACT_SEEN * sizeof *out);
    out[GRAFT_FACT_GAIN] = graft_part_log(-cost, now->cost);
    out[GRAFT_FACT_GAIN_PLAIN] = (int16_t)(cost > 0 ? -plain : plain);
    out[GRAFT_FACT_REMOVED] = graft_part_log((int64_t)change->removed.cost, now->cost);
    out[GRAFT_FACT_ADDED] = graft_part_log((int64_t)change->added.cost, now->cost);
    out[GRAFT_FACT_NODES] = (int16_t)(nodes * (GRAFT_FACT_ONE / 4));
    out[GRAFT_FACT_FLOPS] =
        graft_part_log((int64_t)(change->added.flops - change->removed.flops), now->flops);
    out[GRAFT_FACT_BYTES] =
        graft_part_log((int64_t)(change->added.bytes - change->removed.bytes), now->bytes);
    out[GRAFT_FACT_WEIGHTS] = (int16_t)(graft_log_size(change->weight_bytes) / 4);
    out[GRAFT_FACT_GUESSED] = (int16_t)graft_part_of_whole(
        graft_add_saturating(change->removed.fallback_cost, change->added.fallback_cost),
        graft_add_saturating(change->removed.cost, change->added.cost), GRAFT_FACT_ONE,
        GRAFT_FACT_ONE);
    if (cost < -(int64_t)(now->cost >> GRAFT_GAIN_SHIFT)) {
        out[GRAFT_FACT_GAINS] = GRAFT_FACT_ONE;
        out[GRAFT_FACT_GAIN] = (int16_t)(out[GRAFT_FACT_GAIN] > 0 ? out[GRAFT_FACT_GAIN] : 1);
    }
}

#endif

#endif
