/* onnx_algorithms.c - see algorithms.h. Nodes of a message are replaced by more of them; what each
 * stands for is read off what Graft made of it when the file was read. */
#include "graph/algorithms.h"

#include "graph/onnx/onnx_spell.h"
#include "graph/onnx/onnx_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET_BROADCAST = 7, CHANNELS_LEAST = 8 };

static const char *const names[GRAFT_ALGORITHM_COUNT] = {
    [GRAFT_ALGORITHM_OWN] = "as it is",
    [GRAFT_ALGORITHM_WINOGRAD_6] = "Winograd's convolution on six points",
    [GRAFT_ALGORITHM_WINOGRAD_4] = "Winograd's convolution on four points",
    [GRAFT_ALGORITHM_POOL] = "a pool over channels and roots",
    [GRAFT_ALGORITHM_TWO_SIDES] = "its two sides apart",
    [GRAFT_ALGORITHM_SUM] = "Sum",
};

const char *graft_algorithm_name(graft_algorithm algorithm) { return names[algorithm]; }

/* --------------------------------------------------------------- what a node is */

/* The part of a node that is an operator, where its group has one only; NULL otherwise. */
static const graft_onnx_part *part_of(const graft_onnx *onnx, uint32_t index, uint32_t op)
{
    const graft_onnx_part *found = NULL;
    const graft_onnx_group *group = &onnx->groups[index];
    for (uint32_t p = 0; p < group->part_count; p++) {
        if (group->parts[p].op == op) {
            found = &group->parts[p];
        }
    }
    return found;
}

/* Whether a value has the same sizes, but for the first, whatever those are that stay open: at the
 * second ones, too, and not by chance. */
static bool is_fixed(const graft_model *model, const graft_onnx_entry *entry)
{
    if (!model->is_open) {
        return true;
    }
    const graft_model *other = model->other;
    const graft_onnx_entry *there = graft_onnx_entry_named(other->onnx, entry->name);
    const graft_index value = there == NULL ? GRAFT_NONE : there->value;
    if (value == GRAFT_NONE ||
        (entry->kind == GRAFT_ONNX_COMPUTED && model->unsure[entry->index])) {
        return false;
    }
    const graft_shape *a = &model->graph.values[entry->value].shape;
    const graft_shape *b = &other->graph.values[value].shape;
    return a->rank == b->rank &&
           memcmp(a->dims + 1, b->dims + 1, (a->rank - 1U) * sizeof(a->dims[0])) == 0;
}

/* The sizes of images of binary32 that the graph has; false when input k is no such. */
static bool image_of(const graft_model *model, const Onnx__NodeProto *node, size_t k,
                     graft_shape *shape)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
    if (entry == NULL || entry->value == GRAFT_NONE) {
        return false;
    }
    *shape = model->graph.values[entry->value].shape;
    return shape->rank == 4 && shape->dtype == GRAFT_DTYPE_F32 && is_fixed(model, entry);
}

/* The weight that is a node's input k; NULL when that is none of binary32 with data and sizes. */
static const graft_model_weight *weight_of(const graft_model *model, const Onnx__NodeProto *node,
                                           size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
    const graft_model_weight *weight =
        entry == NULL || entry->weight == GRAFT_NONE ? NULL : &model->weights[entry->weight];
    const bool fits = weight != NULL && weight->data != NULL &&
                      weight->shape.rank != GRAFT_RANK_UNKNOWN &&
                      weight->shape.dtype == GRAFT_DTYPE_F32;
    return fits ? weight : NULL;
}

/* Outputs of a tile for so many taps on `points` points; 0: that is no algorithm of its own. */
static uint32_t tile_of(int32_t taps, uint32_t points)
{
    return taps == 1 ? 1 : taps == 3 ? points - 2 : taps == 5 && points == 6U ? 2 : 0;
}

static uint32_t judge_taps(const int32_t taps[2])
{
    uint32_t others = 0;
    if (taps[0] == 1 && taps[1] == 1) {
        return 0;
    }
    if (tile_of(taps[0], 6) > 0 && tile_of(taps[1], 6) > 0) {
        others |= 1U << GRAFT_ALGORITHM_WINOGRAD_6;
    }
    if (tile_of(taps[0], 4) > 0 && tile_of(taps[1], 4) > 0) {
        others |= 1U << GRAFT_ALGORITHM_WINOGRAD_4;
    }
    return others;
}

/* A convolution with weights, one group, and steps of one. */
static void judge_convolution(const graft_model *model, const Onnx__NodeProto *node,
                              const graft_onnx_part *part, graft_onnx_site *site)
{
    const graft_model_weight *filter = weight_of(model, node, 1);
    const int32_t *attrs = part->attrs;
    if (filter == NULL || filter->shape.rank != 4 ||
        (graft_onnx_input(model->onnx, node, 2) != NULL && weight_of(model, node, 2) == NULL) ||
        attrs[GRAFT_ATTR_conv_groups] != 1 || attrs[GRAFT_ATTR_conv_stride_h] != 1 ||
        attrs[GRAFT_ATTR_conv_stride_w] != 1 || attrs[GRAFT_ATTR_conv_dilation_h] != 1 ||
        attrs[GRAFT_ATTR_conv_dilation_w] != 1) {
        return;
    }
    site->filter = filter;
    site->bias = weight_of(model, node, 2);
    site->y = part->outputs[0];
    site->taps[0] = filter->shape.dims[2];
    site->taps[1] = filter->shape.dims[3];
    site->pads[0] = attrs[GRAFT_ATTR_conv_pad_top];
    site->pads[1] = attrs[GRAFT_ATTR_conv_pad_left];
    if (site->x.dims[1] >= CHANNELS_LEAST && site->y.dims[1] >= CHANNELS_LEAST) {
        site->others = judge_taps(site->taps);
    }
}

/* LRN with the powers that roots make. */
static void judge_normalisation(const Onnx__NodeProto *node, graft_onnx_site *site)
{
    graft_onnx_plan plan = {.node = node};
    const int64_t size = graft_plan_int(&plan, "size", 0);
    site->numbers[GRAFT_LRN_ALPHA] = graft_plan_float(&plan, "alpha", 1e-4F);
    site->numbers[GRAFT_LRN_BETA] = graft_plan_float(&plan, "beta", 0.75F);
    site->numbers[GRAFT_LRN_BIAS] = graft_plan_float(&plan, "bias", 1.0F);
    site->y = site->x;
    if (plan.refusal == NULL && size >= 1 && size <= site->x.dims[1] &&
        (site->numbers[GRAFT_LRN_BETA] == 0.75F || site->numbers[GRAFT_LRN_BETA] == 0.5F)) {
        site->taps[0] = (int32_t)size;
        site->others = 1U << GRAFT_ALGORITHM_POOL;
    }
}

/* PRelu with a slope for each channel. */
static void judge_prelu(const graft_model *model, const Onnx__NodeProto *node,
                        graft_onnx_site *site)
{
    const graft_model_weight *slope = weight_of(model, node, 1);
    const uint32_t rank = slope == NULL ? 0 : slope->shape.rank;
    site->y = site->x;
    if (rank >= 3 && slope->shape.dims[rank - 3] == site->x.dims[1] &&
        graft_shape_elements(&slope->shape) == (uint64_t)site->x.dims[1]) {
        site->filter = slope;
        site->others = 1U << GRAFT_ALGORITHM_TWO_SIDES;
    }
}

/* Whether a normalisation reads a value, in one node or in the first of its parts. */
static bool is_normalised(const graft_onnx *onnx, const char *name)
{
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        const Onnx__NodeProto *node = onnx->proto->graph->node[i];
        const char *type = text_or_empty(node->op_type);
        if (node->n_input > 0 && strcmp(node->input[0], name) == 0 &&
            (strcmp(type, "LayerNormalization") == 0 || strcmp(type, "ReduceMean") == 0)) {
            return true;
        }
    }
    return false;
}

/* A sum of two computed tensors of one shape, which is normalised. */
static void judge_sum(const graft_model *model, const Onnx__NodeProto *node, graft_onnx_site *site)
{
    for (size_t k = 0; k < 2; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
        if (entry == NULL || entry->value == GRAFT_NONE || entry->weight != GRAFT_NONE) {
            return;
        }
        *(k == 0 ? &site->x : &site->y) = model->graph.values[entry->value].shape;
    }
    if (site->x.dtype == GRAFT_DTYPE_F32 && site->x.rank > 0 &&
        graft_shape_equal(&site->x, &site->y) && is_normalised(model->onnx, node->output[0])) {
        site->others = 1U << GRAFT_ALGORITHM_SUM;
    }
}

/* What is to be known of a node; `others` is 0 when it has its own algorithm only. */
static graft_onnx_site site_of(const graft_model *model, uint32_t index)
{
    const Onnx__NodeProto *node = model->onnx->proto->graph->node[index];
    const char *type = text_or_empty(node->op_type);
    graft_onnx_site site;
    memset(&site, 0, sizeof(site)); /* Classes compare all of it. */
    if (text_or_empty(node->domain)[0] != '\0' || node->n_output != 1) {
        return site;
    }
    if (strcmp(type, "Add") == 0) {
        judge_sum(model, node, &site);
        return site;
    }
    if (!image_of(model, node, 0, &site.x)) {
        return site;
    }
    const graft_onnx_part *conv = part_of(model->onnx, index, GRAFT_OP_conv);
    conv = conv == NULL ? part_of(model->onnx, index, GRAFT_OP_conv_bias) : conv;
    if (strcmp(type, "Conv") == 0 && conv != NULL) {
        judge_convolution(model, node, conv, &site);
    } else if (strcmp(type, "LRN") == 0) {
        judge_normalisation(node, &site);
    } else if (strcmp(type, "PRelu") == 0) {
        judge_prelu(model, node, &site);
    }
    return site;
}

/* ---------------------------------------------------------------------- classes */

/* Whether two nodes differ in their weights at most. */
static bool are_alike(const graft_onnx_site *a, const graft_onnx_site *b)
{
    return a->others == b->others && memcmp(a->x.dims, b->x.dims, sizeof(a->x.dims)) == 0 &&
           memcmp(a->y.dims, b->y.dims, sizeof(a->y.dims)) == 0 &&
           memcmp(a->taps, b->taps, sizeof(a->taps)) == 0 &&
           memcmp(a->pads, b->pads, sizeof(a->pads)) == 0 &&
           memcmp(a->numbers, b->numbers, sizeof(a->numbers)) == 0;
}

static graft_algorithm_class class_of_site(graft_arena *arena, const graft_model *model,
                                           uint32_t index, const graft_onnx_site *site)
{
    const char *type = model->onnx->proto->graph->node[index]->op_type;
    const int32_t *x = site->x.dims;
    const int32_t *y = site->y.dims;
    const bool conv = strcmp(type, "Conv") == 0;
    const double places = (double)graft_shape_elements(&site->y);
    const char *what =
        conv ? graft_arena_printf(arena, "Conv %dx%d, %d -> %d channels, %d x %d", site->taps[0],
                                  site->taps[1], x[1], y[1], y[2], y[3])
        : site->others == 1U << GRAFT_ALGORITHM_SUM
            ? graft_arena_printf(arena, "%s, %.0f numbers", type, places)
            : graft_arena_printf(arena, "%s, %d channels, %d x %d", type, x[1], x[2], x[3]);
    return (graft_algorithm_class){
        .what = what,
        .first = index,
        .others = site->others,
        .work = conv ? places * x[1] * site->taps[0] * site->taps[1]
                     : 400.0 * places /* Passes over memory, a power each. */};
}

static int compare_work(const void *a, const void *b)
{
    const graft_algorithm_class *x = a;
    const graft_algorithm_class *y = b;
    return x->work != y->work ? (x->work < y->work) - (x->work > y->work)
                              : (x->first > y->first) - (x->first < y->first);
}

/* The class of each node, by its first node, once the classes are in their order. */
static void number_classes(graft_env *env, graft_algorithms *found)
{
    const graft_model *model = found->model;
    GRAFT_SCOPED(env->scratch);
    graft_onnx_site *sites = GRAFT_NEW(env->scratch, graft_onnx_site, found->count);
    for (uint32_t c = 0; c < found->count; c++) {
        sites[c] = site_of(model, found->classes[c].first);
    }
    for (uint32_t i = 0; i < model->onnx->node_count; i++) {
        const graft_onnx_site site = site_of(model, i);
        found->class_of[i] = GRAFT_NONE;
        for (uint32_t c = 0; c < found->count && site.others != 0; c++) {
            if (are_alike(&sites[c], &site)) {
                found->class_of[i] = c;
            }
        }
    }
}

bool graft_algorithms_fit(const graft_model *model)
{
    const graft_onnx *onnx = model->onnx;
    return onnx != NULL && !onnx->keep_all && !model->is_apart &&
           (model->is_open || model->size_count == 0) && onnx->opset >= OPSET_BROADCAST;
}

void graft_algorithms_find(graft_env *env, const graft_model *model, graft_algorithms *algorithms)
{
    GRAFT_SCOPED(env->scratch);
    const uint32_t node_count = graft_algorithms_fit(model) ? model->onnx->node_count : 0;
    graft_onnx_site *sites = GRAFT_NEW(env->scratch, graft_onnx_site, node_count);
    *algorithms = (graft_algorithms){.model = model};
    algorithms->classes = GRAFT_NEW(env->life, graft_algorithm_class, node_count);
    algorithms->class_of = GRAFT_NEW(env->life, uint32_t, node_count);
    for (uint32_t i = 0; i < node_count; i++) {
        const graft_onnx_site site = site_of(model, i);
        uint32_t c = 0;
        while (c < algorithms->count && !are_alike(&sites[c], &site)) {
            c++;
        }
        if (site.others == 0) {
            continue;
        }
        if (c == algorithms->count) {
            sites[c] = site;
            algorithms->classes[algorithms->count++] = class_of_site(env->life, model, i, &site);
        }
        algorithms->classes[c].count++;
    }
    for (uint32_t c = 0; c < algorithms->count; c++) {
        algorithms->classes[c].work *= algorithms->classes[c].count;
    }
    if (algorithms->count > 0) {
        qsort(algorithms->classes, algorithms->count, sizeof(algorithms->classes[0]), compare_work);
        number_classes(env, algorithms);
    }
}

uint32_t graft_algorithms_changed(const graft_algorithms *algorithms)
{
    uint32_t changed = 0;
    for (uint32_t c = 0; c < algorithms->count; c++) {
        const graft_algorithm_class *class = &algorithms->classes[c];
        changed += class->chosen == GRAFT_ALGORITHM_OWN ? 0 : class->count;
    }
    return changed;
}

/* ---------------------------------------------------------------------- writing */

static void spell(graft_onnx_spelling *s, const graft_model *model, uint32_t index,
                  graft_algorithm algorithm, const char *x, const char *y)
{
    graft_onnx_site site = site_of(model, index);
    const Onnx__NodeProto *node = model->onnx->proto->graph->node[index];
    if (algorithm == GRAFT_ALGORITHM_POOL) {
        graft_onnx_spell_pool(s, &site, x, y);
    } else if (algorithm == GRAFT_ALGORITHM_TWO_SIDES) {
        graft_onnx_spell_two_sides(s, &site, x, y);
    } else if (algorithm == GRAFT_ALGORITHM_OWN) {
        graft_onnx_spell_own(s, node, x, y);
    } else if (algorithm == GRAFT_ALGORITHM_SUM) {
        graft_onnx_spell_own(s, node, x, y);
        s->nodes[s->node_count - 1]->op_type = graft_arena_strdup(s->arena, "Sum");
    } else {
        const uint32_t points = algorithm == GRAFT_ALGORITHM_WINOGRAD_6 ? 6 : 4;
        site.outputs[0] = tile_of(site.taps[0], points);
        site.outputs[1] = tile_of(site.taps[1], points);
        graft_onnx_spell_winograd(s, &site, x, y);
    }
}

graft_status graft_algorithms_write(graft_env *env, const graft_algorithms *algorithms,
                                    const char *path)
{
    GRAFT_SCOPED(env->scratch);
    const graft_onnx *onnx = algorithms->model->onnx;
    graft_onnx_spelling s;
    graft_onnx_spelling_open(env->scratch, onnx, &s);
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        Onnx__NodeProto *node = onnx->proto->graph->node[i];
        const uint32_t class = algorithms->class_of[i];
        const graft_algorithm chosen =
            class == GRAFT_NONE ? GRAFT_ALGORITHM_OWN : algorithms->classes[class].chosen;
        if (chosen == GRAFT_ALGORITHM_OWN) {
            graft_onnx_spell_node(&s, node);
        } else {
            spell(&s, algorithms->model, i, chosen, node->input[0], node->output[0]);
        }
    }
    return graft_onnx_spelling_write(env, &s, path);
}

/* ------------------------------------------------------------------------ alone */

/* The initializers and Constant nodes that a node reads, and the node. */
static void spell_with_weights(graft_onnx_spelling *s, const graft_model *model, uint32_t index)
{
    const Onnx__NodeProto *node = model->onnx->proto->graph->node[index];
    graft_names *given = graft_names_new(s->arena);
    for (size_t k = 1; k < node->n_input; k++) {
        const graft_model_weight *weight = weight_of(model, node, k);
        if (weight != NULL && graft_names_add(given, node->input[k], 0)) {
            bool fits = true;
            graft_onnx_spell_tensor(s, graft_onnx_make_weight(s->arena, node->input[k],
                                                              &weight->shape, weight->data, &fits));
        }
    }
    spell(s, model, index, GRAFT_ALGORITHM_OWN, "graft.x.scaled", "graft.y.own");
}

graft_status graft_algorithms_write_alone(graft_env *env, const graft_algorithms *algorithms,
                                          uint32_t class, graft_algorithm algorithm,
                                          const char *path)
{
    GRAFT_SCOPED(env->scratch);
    const graft_model *model = algorithms->model;
    const uint32_t index = algorithms->classes[class].first;
    const graft_onnx_site site = site_of(model, index);
    graft_onnx_spelling s;
    int64_t dims[2][4];
    assert(algorithm != GRAFT_ALGORITHM_SUM);
    for (uint32_t i = 0; i < 4; i++) {
        dims[0][i] = site.x.dims[i];
        dims[1][i] = site.y.dims[i];
    }
    graft_onnx_spelling_open(env->scratch, model->onnx, &s);
    graft_onnx_spell_scale(&s, site.x.dims[1], NULL, 1.0F, "graft.x", "graft.x.scaled");
    if (algorithm == GRAFT_ALGORITHM_OWN) {
        spell_with_weights(&s, model, index);
    } else {
        spell(&s, model, index, algorithm, "graft.x.scaled", "graft.y.own");
    }
    graft_onnx_spell_scale(&s, site.y.dims[1], NULL, 1.0F, "graft.y.own", "graft.y");
    Onnx__ValueInfoProto *x =
        graft_onnx_make_port(env->scratch, "graft.x", GRAFT_DTYPE_F32, dims[0], 4);
    Onnx__ValueInfoProto *y =
        graft_onnx_make_port(env->scratch, "graft.y", GRAFT_DTYPE_F32, dims[1], 4);
    Onnx__ModelProto proto = *model->onnx->proto;
    Onnx__GraphProto graph;
    onnx__graph_proto__init(&graph);
    graph.name = proto.graph->name;
    graph.input = &x;
    graph.output = &y;
    graph.n_input = graph.n_output = 1;
    graph.node = s.nodes;
    graph.n_node = s.node_count;
    graph.initializer = s.tensors;
    graph.n_initializer = s.tensor_count;
    proto.graph = &graph;
    graft_onnx_spell_free_weights(env->scratch, model->onnx, &proto);
    return graft_onnx_write_message(env, path, &proto, false);
}
