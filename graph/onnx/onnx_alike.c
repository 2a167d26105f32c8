/* onnx_alike.c - whether one executor runs two readings of a stage (graft_model_is_alike). */
#include "graph/flow.h"
#include "graph/onnx/onnx.h"

#include <string.h>

static bool are_same_texts(const char *a, const char *b)
{
    return strcmp(text_or_empty(a), text_or_empty(b)) == 0;
}

static bool are_same_nodes(const graft_graph *a, const graft_graph *b)
{
    bool same = a->node_end == b->node_end;
    for (graft_index n = 0; n < a->node_end && same; n++) {
        const graft_node *x = &a->nodes[n];
        const graft_node *y = &b->nodes[n];
        same = x->op == y->op && x->is_const == y->is_const && x->input_count == y->input_count &&
               x->output_count == y->output_count && x->first_edge == y->first_edge &&
               x->source == y->source && memcmp(x->attrs, y->attrs, sizeof x->attrs) == 0;
    }
    return same;
}

static bool are_same_values(const graft_graph *a, const graft_graph *b)
{
    bool same = a->value_end == b->value_end;
    for (graft_index v = 0; v < a->value_end && same; v++) {
        const graft_value *x = &a->values[v];
        const graft_value *y = &b->values[v];
        same = x->kind == y->kind && x->is_const == y->is_const && x->slot == y->slot &&
               x->node == y->node && x->source == y->source &&
               graft_shape_equal(&x->shape, &y->shape);
    }
    return same;
}

static bool are_same_lists(const graft_index *a, graft_index a_count, const graft_index *b,
                           graft_index b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof a[0]) == 0);
}

static bool are_same_graphs(const graft_graph *a, const graft_graph *b)
{
    return a->dtype == b->dtype && are_same_nodes(a, b) && are_same_values(a, b) &&
           are_same_lists(a->edges, a->edge_end, b->edges, b->edge_end) &&
           are_same_lists(a->outputs, a->output_count, b->outputs, b->output_count);
}

/* Weights of the file lie where they lay; others are read anew, and small. */
static bool are_same_weights(const graft_model *a, const graft_model *b)
{
    bool same = a->weight_count == b->weight_count;
    for (uint32_t i = 0; i < a->weight_count && same; i++) {
        const graft_model_weight *x = &a->weights[i];
        const graft_model_weight *y = &b->weights[i];
        same = graft_shape_equal(&x->shape, &y->shape) && x->data_bytes == y->data_bytes &&
               x->sparse == y->sparse;
        if (same && x->data != y->data) {
            same =
                x->data != NULL && y->data != NULL && memcmp(x->data, y->data, x->data_bytes) == 0;
        }
    }
    return same;
}

/* Which of the names are given. */
static bool are_given_alike(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; i < a_count && same; i++) {
        same = (text_or_empty(a[i])[0] == '\0') == (text_or_empty(b[i])[0] == '\0');
    }
    return same;
}

/* Operator, operands that are given, and attributes. Its own name counts for nothing. */
static bool are_same_protos(graft_arena *scratch, const Onnx__NodeProto *a,
                            const Onnx__NodeProto *b)
{
    bool same = are_same_texts(a->op_type, b->op_type) && are_same_texts(a->domain, b->domain) &&
                are_given_alike(a->input, a->n_input, b->input, b->n_input) &&
                are_given_alike(a->output, a->n_output, b->output, b->n_output) &&
                a->n_attribute == b->n_attribute;
    for (size_t i = 0; i < a->n_attribute && same; i++) {
        uint8_t *bytes[2] = {NULL};
        size_t sizes[2] = {0};
        graft_wire_encode(scratch, &a->attribute[i]->base, &bytes[0], &sizes[0]);
        graft_wire_encode(scratch, &b->attribute[i]->base, &bytes[1], &sizes[1]);
        same = sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
    }
    return same;
}

static bool are_same_flows(graft_arena *scratch, const graft_flow *a, const graft_flow *b)
{
    bool same = (a == NULL) == (b == NULL);
    if (same && a != NULL) {
        same = a->kind == b->kind && a->rounds == b->rounds && a->body_count == b->body_count &&
               a->refusal == NULL && b->refusal == NULL;
    }
    for (uint32_t i = 0; same && a != NULL && i < a->body_count; i++) {
        const graft_model *x = a->bodies[i].model;
        same = graft_model_is_alike(scratch, x, b->bodies[i].model) &&
               (x->input_count == 0 || memcmp(a->bodies[i].from, b->bodies[i].from,
                                              x->input_count * sizeof a->bodies[i].from[0]) == 0);
    }
    return same;
}

/* What the graph does not say of nodes that are opaque to it. */
static bool are_same_opaques(graft_arena *scratch, const graft_model *a, const graft_model *b)
{
    bool same = a->record_count == b->record_count;
    for (graft_index n = 0; n < a->graph.node_end && same; n++) {
        const graft_node *node = &a->graph.nodes[n];
        if (node->op != GRAFT_OP_OPAQUE || node->source >= a->record_count) {
            continue;
        }
        const uint32_t x = a->records[node->source].onnx_node;
        const uint32_t y = b->records[node->source].onnx_node;
        same = are_same_protos(scratch, a->onnx->proto->graph->node[x],
                               b->onnx->proto->graph->node[y]) &&
               are_same_flows(scratch, a->onnx->groups[x].flow, b->onnx->groups[y].flow);
    }
    return same;
}

bool graft_model_is_alike(graft_arena *scratch, const graft_model *a, const graft_model *b)
{
    GRAFT_SCOPED(scratch);
    return a->input_count == b->input_count && a->output_count == b->output_count &&
           a->onnx->opset == b->onnx->opset && are_same_graphs(&a->graph, &b->graph) &&
           are_same_weights(a, b) && are_same_opaques(scratch, a, b);
}
