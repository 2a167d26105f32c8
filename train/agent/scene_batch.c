/* scene_batch.c - scenes side by side, as the networks want them; see scene.h. */
#include "train/agent/scene.h"

#include <string.h>

typedef struct {
    graft_scene_batch batch;
    const graft_sheet **sheets; /* (rule_count) */
    bool *nameless;             /* (rule_count): in a scene without names */
    uint32_t node;              /* Filled so far. */
    uint32_t edge;
    uint32_t graph;
} joining;

static uint32_t number_of_sheet(joining *j, const graft_sheet *sheet, bool nameless)
{
    uint32_t r = 0;
    while (r < j->batch.rule_count &&
           (j->sheets[r]->id != sheet->id || j->nameless[r] != nameless)) {
        r++;
    }
    if (r == j->batch.rule_count) {
        j->sheets[r] = sheet;
        j->nameless[r] = nameless;
        j->batch.rule_count++;
    }
    return r;
}

static void scale_bytes(const int8_t *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)from[i] / GRAFT_FEATURE_SCALE;
    }
}

/* Without names a node is known by what its operator is like. */
static void forget_names(float *nodes, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        memset(&nodes[(size_t)n * GRAFT_SCENE_NODE_FEATURES + GRAFT_FEATURE_operator], 0,
               (GRAFT_FEATURE_END_operator - GRAFT_FEATURE_operator + 1) * sizeof(float));
    }
}

static void add_graph(joining *j, const graft_sketch *sketch, const float *globals, bool nameless)
{
    graft_graph_batch *b = &j->batch.graphs;
    float *nodes = &b->nodes[(size_t)j->node * GRAFT_SCENE_NODE_FEATURES];
    scale_bytes(sketch->nodes, (size_t)sketch->node_count * GRAFT_SCENE_NODE_FEATURES, nodes);
    if (nameless) {
        forget_names(nodes, sketch->node_count);
    }
    scale_bytes(sketch->edges, (size_t)sketch->edge_count * GRAFT_EDGE_FEATURE_COUNT,
                &b->edges[(size_t)j->edge * GRAFT_EDGE_FEATURE_COUNT]);
    if (globals != NULL) {
        memcpy(&b->globals[(size_t)j->graph * GRAFT_SCENE_GLOBALS], globals,
               GRAFT_SCENE_GLOBALS * sizeof(float));
    }
    for (uint32_t k = 0; k < sketch->edge_count; k++) {
        b->senders[j->edge + k] = j->node + sketch->senders[k];
        b->receivers[j->edge + k] = j->node + sketch->receivers[k];
    }
    for (uint32_t k = 0; k < sketch->node_count; k++) {
        b->node_graph[j->node + k] = j->graph;
    }
    j->node += sketch->node_count;
    j->edge += sketch->edge_count;
    j->graph++;
}

static void count_graph(graft_graph_batch *b, const graft_sketch *sketch)
{
    b->graph_count++;
    b->node_count += sketch->node_count;
    b->edge_count += sketch->edge_count;
}

static void open_graphs(graft_arena *arena, graft_graph_batch *b)
{
    b->nodes = GRAFT_NEW(arena, float, (size_t)b->node_count *GRAFT_SCENE_NODE_FEATURES);
    b->edges = GRAFT_NEW(arena, float, (size_t)b->edge_count *GRAFT_EDGE_FEATURE_COUNT);
    b->globals = GRAFT_NEW(arena, float, (size_t)b->graph_count *GRAFT_SCENE_GLOBALS);
    b->senders = GRAFT_NEW(arena, uint32_t, b->edge_count);
    b->receivers = GRAFT_NEW(arena, uint32_t, b->edge_count);
    b->node_graph = GRAFT_NEW(arena, uint32_t, b->node_count);
}

/* Counts everything, and finds out which rules there are. */
static void count_all(graft_arena *arena, joining *j, const graft_scene *const scenes[])
{
    graft_scene_batch *b = &j->batch;
    uint32_t row = 0;
    for (uint32_t s = 0; s < b->scene_count; s++) {
        b->row_count += scenes[s]->count;
        b->member_count += scenes[s]->member_count;
        count_graph(&b->graphs, &scenes[s]->graph);
    }
    j->sheets = GRAFT_NEW(arena, const graft_sheet *, b->row_count);
    j->nameless = GRAFT_NEW(arena, bool, b->row_count);
    b->row_rule = GRAFT_NEW(arena, uint32_t, b->row_count);
    for (uint32_t s = 0; s < b->scene_count; s++) {
        for (uint32_t i = 0; i < scenes[s]->count; i++) {
            b->row_rule[row++] = number_of_sheet(j, scenes[s]->sheets[i], scenes[s]->nameless);
        }
    }
    for (uint32_t r = 0; r < b->rule_count; r++) {
        count_graph(&b->graphs, &j->sheets[r]->source);
        count_graph(&b->graphs, &j->sheets[r]->target);
    }
}

static void open_rows(graft_arena *arena, graft_scene_batch *b)
{
    b->first = GRAFT_NEW(arena, uint32_t, b->scene_count + 1);
    b->row_scene = GRAFT_NEW(arena, uint32_t, b->row_count);
    b->facts = GRAFT_NEW(arena, float, (size_t)b->row_count *GRAFT_FACT_COUNT);
    b->priors = GRAFT_NEW(arena, float, b->row_count);
    b->member_nodes = GRAFT_NEW(arena, uint32_t, b->member_count);
    b->member_rows = GRAFT_NEW(arena, uint32_t, b->member_count);
    b->scene_rows = GRAFT_NEW(arena, uint32_t, b->scene_count);
    b->source_rows = GRAFT_NEW(arena, uint32_t, b->rule_count);
    b->target_rows = GRAFT_NEW(arena, uint32_t, b->rule_count);
    b->buckets = GRAFT_NEW(arena, uint32_t, b->rule_count);
}

/* `row` and `member` are how many of either there are already. */
static void add_scene(joining *j, uint32_t s, const graft_scene *scene, uint32_t *row,
                      uint32_t *member)
{
    graft_scene_batch *b = &j->batch;
    b->first[s] = *row;
    b->scene_rows[s] = s;
    for (uint32_t m = 0; m < scene->member_count; m++) {
        b->member_nodes[*member + m] = j->node + scene->member_nodes[m];
        b->member_rows[*member + m] = *row + scene->member_candidates[m];
    }
    memcpy(&b->facts[(size_t)*row * GRAFT_FACT_COUNT], scene->facts,
           (size_t)scene->count * GRAFT_FACT_COUNT * sizeof(float));
    memcpy(&b->priors[*row], scene->priors, scene->count * sizeof(float));
    for (uint32_t i = 0; i < scene->count; i++) {
        b->row_scene[*row + i] = s;
    }
    *member += scene->member_count;
    *row += scene->count;
    add_graph(j, &scene->graph, scene->globals, scene->nameless);
}

graft_scene_batch graft_scene_batch_join(graft_arena *arena, const graft_scene *const scenes[],
                                         uint32_t count)
{
    joining j = {.batch.scene_count = count};
    graft_scene_batch *b = &j.batch;
    uint32_t row = 0;
    uint32_t member = 0;
    count_all(arena, &j, scenes);
    open_graphs(arena, &b->graphs);
    open_rows(arena, b);
    for (uint32_t s = 0; s < count; s++) {
        add_scene(&j, s, scenes[s], &row, &member);
    }
    b->first[count] = row;
    for (uint32_t r = 0; r < b->rule_count; r++) {
        const uint64_t id = j.sheets[r]->id;
        b->buckets[r] = j.nameless[r] ? 0 : 1 + (uint32_t)(id % (GRAFT_RULE_BUCKETS - 1));
        b->source_rows[r] = j.graph;
        add_graph(&j, &j.sheets[r]->source, NULL, j.nameless[r]);
    }
    for (uint32_t r = 0; r < b->rule_count; r++) {
        b->target_rows[r] = j.graph;
        add_graph(&j, &j.sheets[r]->target, NULL, j.nameless[r]);
    }
    return j.batch;
}
