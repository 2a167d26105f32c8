/* onnx_units.c - what of a graph is still as it was read, and in what pieces it is written (see
 * onnx_write.h). */
#include "graph/byte_groups.h"
#include "graph/equal.h"
#include "graph/onnx/onnx_write.h"

#include <string.h>

/* ----------------------------------------------------------------------- liveness, records */

/* As many times none. */
static graft_index *new_nones(const graft_onnx_writer *writer, size_t count)
{
    graft_index *nones = GRAFT_NEW(writer->arena, graft_index, count);
    for (size_t i = 0; i < count; i++) {
        nones[i] = GRAFT_NONE;
    }
    return nones;
}

static void find_live_nodes(graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    bool *wanted = GRAFT_NEW(writer->arena, bool, graph->value_end);
    writer->live = GRAFT_NEW(writer->arena, bool, graph->node_end);
    writer->use_count = GRAFT_NEW(writer->arena, graft_index, graph->value_end);
    for (graft_index i = 0; i < graph->output_count; i++) {
        wanted[graph->outputs[i]] = true;
        writer->use_count[graph->outputs[i]]++;
    }
    for (graft_index i = writer->order.count; i-- > 0;) {
        graft_index n = writer->order.order[i];
        for (uint32_t k = 0; k < graph->nodes[n].output_count; k++) {
            writer->live[n] = writer->live[n] || wanted[graft_node_output(graph, n, k)];
        }
        for (uint32_t k = 0; writer->live[n] && k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE) {
                wanted[v] = true;
                writer->use_count[v]++;
            }
        }
    }
}

static void find_folded_nodes(graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    writer->folded = GRAFT_NEW(writer->arena, bool, graph->node_end);
    writer->kept = GRAFT_NEW(writer->arena, bool, graph->node_end);
    for (graft_index i = 0; i < writer->order.count; i++) {
        graft_index n = writer->order.order[i];
        bool folded = graph->nodes[n].is_const && graph->nodes[n].op != GRAFT_OP_OPAQUE;
        for (uint32_t k = 0; folded && k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            folded = graph->values[v].kind == GRAFT_VALUE_WEIGHT ||
                     writer->folded[graph->values[v].node];
        }
        writer->folded[n] = folded;
    }
}

static bool is_stored(const graft_onnx_writer *writer, graft_index n)
{
    return writer->folded[n] && !writer->kept[n];
}

bool graft_onnx_is_folded(const graft_onnx_writer *writer, graft_index value)
{
    const graft_value *v = &writer->graph->values[value];
    return v->kind == GRAFT_VALUE_COMPUTED && is_stored(writer, v->node);
}

static void find_nodes_of_records(graft_onnx_writer *writer)
{
    uint32_t count = writer->model->record_count;
    writer->node_of_record = new_nones(writer, count);
    for (graft_index n = 0; n < writer->graph->node_end; n++) {
        const graft_node *node = &writer->graph->nodes[n];
        if (node->op != GRAFT_OP_NONE && writer->live[n] && node->source < count) {
            writer->node_of_record[node->source] = n;
        }
    }
}

/* ----------------------------------------------------------------------------- wholeness */

/* Whether `value` is what the group's part `operand` computes, in the graph as it is now. */
static bool is_part_output(const graft_onnx_writer *writer, const graft_onnx_group *group,
                           graft_onnx_operand operand, graft_index value)
{
    graft_index n = writer->node_of_record[group->first_record + operand.index];
    return n != GRAFT_NONE && graft_node_output(writer->graph, n, operand.slot) == value;
}

/* A part that is gone because nothing reads it, e.g. the end of a Split: it may not have taken one
 * of the ONNX node's inputs with it. */
static bool may_be_missing(const graft_onnx_part *part)
{
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        if (part->inputs[i].kind == GRAFT_ONNX_OPERAND_INPUT) {
            return false;
        }
    }
    return true;
}

/* A part's node: the same operator and attributes, inner wires as planned. */
static bool is_part_intact(const graft_onnx_writer *writer, const graft_onnx_group *group,
                           uint32_t p)
{
    const graft_onnx_part *part = &group->parts[p];
    graft_index n = writer->node_of_record[group->first_record + p];
    if (n == GRAFT_NONE) {
        return may_be_missing(part);
    }
    if (writer->graph->nodes[n].op != part->op ||
        memcmp(writer->graph->nodes[n].attrs, part->attrs, sizeof(part->attrs)) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < writer->graph->nodes[n].input_count; i++) {
        graft_onnx_operand operand = part->inputs[i];
        graft_index v = graft_node_input(writer->graph, n, i);
        const graft_value *value = &writer->graph->values[v];
        if ((operand.kind == GRAFT_ONNX_OPERAND_PART &&
             !is_part_output(writer, group, operand, v)) ||
            (operand.kind == GRAFT_ONNX_OPERAND_WEIGHT &&
             (value->kind != GRAFT_VALUE_WEIGHT || value->source != operand.index))) {
            return false;
        }
    }
    return true;
}

/* Whether output `slot` of part `p` is one of the ONNX node's outputs. */
static bool is_group_output(const graft_onnx_group *group, size_t output_count, uint32_t p,
                            uint32_t slot)
{
    for (size_t k = 0; k < output_count; k++) {
        if (group->outputs[k].kind == GRAFT_ONNX_OPERAND_PART && group->outputs[k].index == p &&
            group->outputs[k].slot == slot) {
            return true;
        }
    }
    return false;
}

/* Readings of a value by parts of the group itself. */
static graft_index count_inner_uses(const graft_onnx_writer *writer, const graft_onnx_group *group,
                                    graft_index value)
{
    graft_index count = 0;
    for (uint32_t p = 0; p < group->part_count; p++) {
        graft_index n = writer->node_of_record[group->first_record + p];
        for (uint32_t i = 0; n != GRAFT_NONE && i < writer->graph->nodes[n].input_count; i++) {
            count += graft_node_input(writer->graph, n, i) == value;
        }
    }
    return count;
}

/* Parts that read one input of the ONNX node read one value. */
static bool reads_one_value(const graft_onnx_writer *writer, const graft_onnx_group *group,
                            size_t input_count)
{
    bool one = true;
    graft_index *values = new_nones(writer, input_count);
    for (uint32_t p = 0; p < group->part_count; p++) {
        graft_index n = writer->node_of_record[group->first_record + p];
        for (uint32_t i = 0; n != GRAFT_NONE && i < writer->graph->nodes[n].input_count; i++) {
            const graft_onnx_operand *operand = &group->parts[p].inputs[i];
            graft_index v = graft_node_input(writer->graph, n, i);
            if (operand->kind == GRAFT_ONNX_OPERAND_INPUT) {
                one = one && (values[operand->index] == GRAFT_NONE || values[operand->index] == v);
                values[operand->index] = v;
            }
        }
    }
    return one;
}

/* Inner values that are not folded must not be read from outside: they have no name. */
static bool keeps_inner_values(const graft_onnx_writer *writer, const graft_onnx_group *group,
                               size_t output_count)
{
    for (uint32_t p = 0; p < group->part_count; p++) {
        graft_index n = writer->node_of_record[group->first_record + p];
        uint32_t slots = n == GRAFT_NONE ? 0 : writer->graph->nodes[n].output_count;
        for (uint32_t slot = 0; slot < slots; slot++) {
            graft_index v = graft_node_output(writer->graph, n, slot);
            if (!writer->folded[n] && !is_group_output(group, output_count, p, slot) &&
                count_inner_uses(writer, group, v) != writer->use_count[v]) {
                return false;
            }
        }
    }
    return true;
}

/* A group of folded parts alone is not written. */
static bool has_active_part(const graft_onnx_writer *writer, const graft_onnx_group *group)
{
    for (uint32_t p = 0; p < group->part_count; p++) {
        graft_index n = writer->node_of_record[group->first_record + p];
        if (n != GRAFT_NONE && !is_stored(writer, n)) {
            return true;
        }
    }
    return false;
}

bool graft_onnx_is_known(const graft_onnx_writer *writer, uint32_t index)
{
    const graft_onnx_group *group = &writer->model->onnx->groups[index];
    const Onnx__NodeProto *node = writer->model->onnx->proto->graph->node[index];
    bool is_constant = graft_onnx_is(node, "Constant");
    return !group->is_opaque && !is_constant && !has_active_part(writer, group);
}

static bool is_group_intact(const graft_onnx_writer *writer, uint32_t index)
{
    const graft_onnx_group *group = &writer->model->onnx->groups[index];
    if (group->is_opaque) {
        return writer->node_of_record[group->first_record] != GRAFT_NONE;
    }
    bool any = false;
    for (uint32_t p = 0; p < group->part_count; p++) {
        any = any || writer->node_of_record[group->first_record + p] != GRAFT_NONE;
        if (!is_part_intact(writer, group, p)) {
            return false;
        }
    }
    const Onnx__NodeProto *node = writer->model->onnx->proto->graph->node[index];
    return any && reads_one_value(writer, group, node->n_input) &&
           keeps_inner_values(writer, group, node->n_output);
}

/* ------------------------------------------------------------------------- large constants */

/* By value: whether the file has it as it stands, for a node that is written reads it or it is an
 * output. */
static void find_needed(const graft_onnx_writer *writer, bool *needed)
{
    const graft_graph *graph = writer->graph;
    memset(needed, 0, graph->value_end * sizeof(needed[0]));
    for (graft_index i = 0; i < graph->output_count; i++) {
        needed[graph->outputs[i]] = true;
    }
    for (graft_index i = writer->order.count; i-- > 0;) {
        const graft_index n = writer->order.order[i];
        bool written = false;
        for (uint32_t k = 0; k < graph->nodes[n].output_count && !is_stored(writer, n); k++) {
            written = written || needed[graft_node_output(graph, n, k)];
        }
        for (uint32_t k = 0; k < graph->nodes[n].input_count && written; k++) {
            const graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE) {
                needed[v] = true;
            }
        }
    }
}

static bool is_of_constants(const graft_onnx_writer *writer, const graft_onnx_group *group)
{
    bool all = true;
    for (uint32_t p = 0; p < group->part_count; p++) {
        const graft_index n = writer->node_of_record[group->first_record + p];
        all = all && (n == GRAFT_NONE || writer->folded[n]);
    }
    return all;
}

/* What output `k` of an ONNX node is; GRAFT_NONE when nothing reads it. */
static graft_index value_of_output(const graft_onnx_writer *writer, const graft_onnx_group *group,
                                   size_t k)
{
    const graft_onnx_operand from = group->outputs[k];
    const graft_index n = from.kind == GRAFT_ONNX_OPERAND_PART
                              ? writer->node_of_record[group->first_record + from.index]
                              : GRAFT_NONE;
    const graft_index v = n == GRAFT_NONE ? n : graft_node_output(writer->graph, n, from.slot);
    return v == GRAFT_NONE || writer->use_count[v] == 0 ? GRAFT_NONE : v;
}

/* What a group's results may be made of, of the bytes that `spare` has by value. Where the file
 * swells each of several readers has its share of them. */
static uint64_t spare_of_inputs(const graft_onnx_writer *writer, const graft_onnx_group *group,
                                const uint64_t *spare)
{
    const bool tight = writer->model->onnx->tight;
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < group->part_count; p++) {
        const graft_index n = writer->node_of_record[group->first_record + p];
        for (uint32_t k = 0; n != GRAFT_NONE && k < writer->graph->nodes[n].input_count; k++) {
            const graft_index v = graft_node_input(writer->graph, n, k);
            const bool outer = group->parts[p].inputs[k].kind == GRAFT_ONNX_OPERAND_INPUT;
            bytes += !outer ? 0 : tight ? spare[v] / writer->use_count[v] : spare[v];
        }
    }
    return bytes;
}

/* True when the node is kept and was not before. */
static bool keep_if_large(graft_onnx_writer *writer, uint32_t index, uint64_t *spare, uint64_t *all)
{
    const graft_onnx_group *group = &writer->model->onnx->groups[index];
    const size_t output_count = writer->model->onnx->proto->graph->node[index]->n_output;
    const uint64_t read = spare_of_inputs(writer, group, spare);
    const bool tight = all != NULL;
    bool kept = false;
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < group->part_count; p++) {
        const graft_index n = writer->node_of_record[group->first_record + p];
        kept = kept || (n != GRAFT_NONE && writer->kept[n]);
    }
    for (size_t k = 0; k < output_count; k++) {
        const graft_index v = value_of_output(writer, group, k);
        bytes += v == GRAFT_NONE ? 0 : graft_shape_bytes(&writer->graph->values[v].shape);
    }
    if (!kept && graft_onnx_may_grow(bytes, read, all)) {
        return false;
    }
    for (size_t k = 0; k < output_count && tight; k++) {
        const graft_index v = value_of_output(writer, group, k);
        if (v != GRAFT_NONE) {
            spare[v] = read / output_count;
        }
    }
    for (uint32_t p = 0; p < group->part_count; p++) {
        const graft_index n = writer->node_of_record[group->first_record + p];
        if (n != GRAFT_NONE) {
            writer->kept[n] = true;
        }
    }
    return !kept;
}

/* One round over all of them; true when more nodes are kept than before. */
static bool keep_large(graft_onnx_writer *writer, const bool *needed, uint64_t *spare)
{
    const graft_onnx *onnx = writer->model->onnx;
    uint64_t all = 0;
    bool more = false;
    for (graft_index v = 0; v < writer->graph->value_end; v++) {
        spare[v] = needed[v] ? 0 : graft_shape_bytes(&writer->graph->values[v].shape);
    }
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        const uint32_t index = onnx->order[i];
        const graft_onnx_group *group = &onnx->groups[index];
        if (writer->intact[index] && !group->is_opaque && is_of_constants(writer, group)) {
            more |= keep_if_large(writer, index, spare, onnx->tight ? &all : NULL);
        }
    }
    return more;
}

/* An ONNX node of weights alone that makes much of little, as ConstantOfShape does, stays a node:
 * its results would swell the file. Where the file swells all the same only what leaves it counts
 * as what a result is made of: a weight that something else still reads, as a node that stays does,
 * does not, and what makes as much of the results of a node that stays stays, too. */
static void keep_large_constants(graft_onnx_writer *writer)
{
    enum { ROUNDS_MOST = 8 };
    const graft_index count = writer->graph->value_end;
    bool *needed = GRAFT_NEW(writer->arena, bool, count);
    uint64_t *spare = GRAFT_NEW(writer->arena, uint64_t, count);
    bool more = true;
    for (uint32_t round = 0; round < ROUNDS_MOST && more; round++) {
        if (writer->model->onnx->tight) {
            find_needed(writer, needed);
        }
        more = keep_large(writer, needed, spare) && writer->model->onnx->tight;
    }
    if (more) { /* Nothing is taken to leave the file. */
        memset(needed, true, count * sizeof(needed[0]));
        (void)keep_large(writer, needed, spare);
    }
}

void graft_onnx_find_intact(graft_onnx_writer *writer)
{
    uint32_t count = writer->model->onnx->node_count;
    find_live_nodes(writer);
    find_folded_nodes(writer);
    find_nodes_of_records(writer);
    writer->intact = GRAFT_NEW(writer->arena, bool, count);
    for (uint32_t i = 0; i < count; i++) {
        writer->intact[i] = is_group_intact(writer, i);
    }
    keep_large_constants(writer);
}

/* --------------------------------------------------------------------------- untouched */

/* Whether `value` is still what the file's name stands for. */
static bool is_value_of_name(const graft_onnx_writer *writer, const char *name, graft_index value)
{
    const char *now = graft_model_value_name(writer->model, writer->graph, value);
    return now != NULL && strcmp(now, name) == 0;
}

/* Wires from outside come from where they came from. An Identity of a weight is also known by the
 * weight's name, so names are compared, not entries. */
static bool are_inputs_untouched(const graft_onnx_writer *writer, graft_index n)
{
    const graft_node *node = &writer->graph->nodes[n];
    const graft_model_record *record = &writer->model->records[node->source];
    const graft_onnx *onnx = writer->model->onnx;
    const graft_onnx_group *group = &onnx->groups[record->onnx_node];
    const Onnx__NodeProto *proto = onnx->proto->graph->node[record->onnx_node];
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(writer->graph, n, i);
        const char *name = NULL;
        if (!group->is_opaque) {
            graft_onnx_operand operand = group->parts[record->part].inputs[i];
            name = operand.kind == GRAFT_ONNX_OPERAND_INPUT ? proto->input[operand.index] : NULL;
        } else if (i < proto->n_input) {
            name = proto->input[i][0] == '\0' ? NULL : proto->input[i];
        } else {
            name = onnx->entries[group->captured[i - proto->n_input]].name;
        }
        if (name != NULL && (v == GRAFT_NONE || !is_value_of_name(writer, name, v))) {
            return false;
        }
    }
    return true;
}

bool graft_onnx_is_untouched(const graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    if (writer->opset != writer->model->onnx->opset) {
        return false;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op == GRAFT_OP_NONE || !writer->live[n]) {
            continue;
        }
        if (node->source >= writer->model->record_count ||
            !writer->intact[writer->model->records[node->source].onnx_node] ||
            !are_inputs_untouched(writer, n)) {
            return false;
        }
    }
    for (graft_index i = 0; i < graph->output_count; i++) {
        if (!is_value_of_name(writer, writer->model->outputs[i].name, graph->outputs[i])) {
            return false;
        }
    }
    return true;
}

/* -------------------------------------------------------------------------------- chains */

/* A node that is generated: live, not folded, not part of an intact group. */
static bool is_generated(const graft_onnx_writer *writer, graft_index n)
{
    const graft_node *node = &writer->graph->nodes[n];
    return writer->live[n] && !writer->folded[n] &&
           (node->source >= writer->model->record_count ||
            !writer->intact[writer->model->records[node->source].onnx_node]);
}

/* The generated node of the same operator that makes input `k` of `n` for `n` alone. */
static graft_index chain_producer(const graft_onnx_writer *writer, graft_index n, uint32_t k)
{
    const graft_graph *graph = writer->graph;
    graft_index v = graft_node_input(graph, n, k);
    if (graph->values[v].kind != GRAFT_VALUE_COMPUTED || writer->use_count[v] != 1) {
        return GRAFT_NONE;
    }
    graft_index producer = graph->values[v].node;
    return graph->nodes[producer].op == graph->nodes[n].op && is_generated(writer, producer)
               ? producer
               : GRAFT_NONE;
}

/* Slices and pads merge when no axis occurs twice; attribute 0 of both is the axis. */
static bool may_join_chain(const graft_onnx_writer *writer, graft_index producer, graft_index n)
{
    _Static_assert((int)GRAFT_ATTR_slice_axis == 0 && (int)GRAFT_ATTR_pad_axis == 0 &&
                       (int)GRAFT_ATTR_concat_axis == 0 && (int)GRAFT_ATTR_split_axis == 0,
                   "attribute 0 is the axis");
    const graft_node *nodes = writer->graph->nodes;
    int32_t axis = nodes[n].attrs[0];
    if (nodes[n].op == GRAFT_OP_concat || nodes[n].op == GRAFT_OP_split) {
        return nodes[producer].attrs[0] == axis;
    }
    if (nodes[n].op == GRAFT_OP_pad &&
        nodes[producer].attrs[GRAFT_ATTR_pad_value] != nodes[n].attrs[GRAFT_ATTR_pad_value]) {
        return false;
    }
    for (graft_index m = producer; m != GRAFT_NONE; m = chain_producer(writer, m, 0)) {
        if (nodes[m].attrs[0] == axis) {
            return false;
        }
    }
    return true;
}

/* Links nodes that one ONNX node can stand for: producers into consumers, splits the other way. */
static void link_chains(graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    writer->absorbed_into = new_nones(writer, graph->node_end);
    for (graft_index i = 0; i < writer->order.count; i++) {
        graft_index n = writer->order.order[i];
        uint8_t op = graph->nodes[n].op;
        if (!is_generated(writer, n) || (op != GRAFT_OP_concat && op != GRAFT_OP_split &&
                                         op != GRAFT_OP_slice && op != GRAFT_OP_pad)) {
            continue;
        }
        for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
            graft_index producer = chain_producer(writer, n, k);
            if (producer == GRAFT_NONE || !may_join_chain(writer, producer, n)) {
                continue;
            }
            if (op == GRAFT_OP_split) {
                writer->absorbed_into[n] = producer;
            } else {
                writer->absorbed_into[producer] = n;
            }
        }
    }
}

/* --------------------------------------------------------------------------------- units */

static void add_unit(graft_onnx_writer *writer, graft_index root, uint32_t onnx_node)
{
    writer->units[writer->unit_count++] = (graft_onnx_unit){.root = root, .onnx_node = onnx_node};
}

/* Original nodes in the order of the file, then what is generated in the order of the graph: the
 * sort keeps this order where it can. */
static void list_units(graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    const graft_onnx *onnx = writer->model->onnx;
    writer->units =
        GRAFT_NEW(writer->arena, graft_onnx_unit, onnx->node_count + writer->order.count);
    writer->unit_of_node = new_nones(writer, graph->node_end);
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        uint32_t index = onnx->order[i];
        const graft_onnx_group *group = &onnx->groups[index];
        if (!writer->intact[index] || (!group->is_opaque && !has_active_part(writer, group))) {
            continue;
        }
        graft_index root = GRAFT_NONE;
        for (uint32_t p = 0; p < (group->is_opaque ? 1 : group->part_count); p++) {
            graft_index n = writer->node_of_record[group->first_record + p];
            if (n != GRAFT_NONE) {
                writer->unit_of_node[n] = writer->unit_count;
                root = root == GRAFT_NONE || !graph->nodes[n].is_const ? n : root;
            }
        }
        add_unit(writer, root, index);
    }
    for (graft_index i = 0; i < writer->order.count; i++) {
        graft_index n = writer->order.order[i];
        if (is_generated(writer, n) && writer->absorbed_into[n] == GRAFT_NONE) {
            writer->unit_of_node[n] = writer->unit_count;
            add_unit(writer, n, GRAFT_NONE);
        }
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        graft_index root = n;
        while (writer->absorbed_into[root] != GRAFT_NONE) {
            root = writer->absorbed_into[root];
        }
        writer->unit_of_node[n] = writer->unit_of_node[root];
    }
}

/* The unit that makes a value for another unit; GRAFT_NONE when none has to run before. */
static uint32_t producing_unit(const graft_onnx_writer *writer, graft_index value, uint32_t reader)
{
    if (value == GRAFT_NONE || writer->graph->values[value].kind != GRAFT_VALUE_COMPUTED ||
        graft_onnx_is_folded(writer, value)) {
        return GRAFT_NONE;
    }
    uint32_t unit = writer->unit_of_node[writer->graph->values[value].node];
    return unit == reader ? GRAFT_NONE : unit;
}

/* Calls for every pair of a unit and one that must run before it: counts into first[unit + 2] when
 * `items` is NULL, else lists at items[first[unit + 1]++]. */
static void walk_dependencies(const graft_onnx_writer *writer, uint32_t *first, uint32_t *items)
{
    for (graft_index n = 0; n < writer->graph->node_end; n++) {
        uint32_t unit = writer->unit_of_node[n];
        for (uint32_t k = 0; unit != GRAFT_NONE && k < writer->graph->nodes[n].input_count; k++) {
            uint32_t other = producing_unit(writer, graft_node_input(writer->graph, n, k), unit);
            if (other != GRAFT_NONE && items == NULL) {
                first[unit + 2]++;
            } else if (other != GRAFT_NONE) {
                items[first[unit + 1]++] = other;
            }
        }
    }
}

/* --------------------------------------------------------------------- equal units */

/* Nodes by unit: lists that `next` links. */
typedef struct {
    graft_index *first; /* By unit. */
    graft_index *next;  /* By node. */
} unit_nodes;

static unit_nodes list_nodes_of_units(const graft_onnx_writer *writer)
{
    unit_nodes lists = {.first = new_nones(writer, writer->unit_count),
                        .next = GRAFT_NEW(writer->arena, graft_index, writer->graph->node_end)};
    for (graft_index n = writer->graph->node_end; n-- > 0;) {
        uint32_t unit = writer->unit_of_node[n];
        if (unit != GRAFT_NONE) {
            lists.next[n] = lists.first[unit];
            lists.first[unit] = n;
        }
    }
    return lists;
}

/* By value: whether its unit gives it to another one, or to who runs the model. */
static bool *find_given_values(const graft_onnx_writer *writer)
{
    const graft_graph *graph = writer->graph;
    bool *given = GRAFT_NEW(writer->arena, bool, graph->value_end);
    for (graft_index n = 0; n < graph->node_end; n++) {
        uint32_t unit = writer->unit_of_node[n];
        for (uint32_t k = 0; unit != GRAFT_NONE && k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (producing_unit(writer, v, unit) != GRAFT_NONE) {
                given[v] = true;
            }
        }
    }
    for (graft_index i = 0; i < graph->output_count; i++) {
        given[graph->outputs[i]] = true;
    }
    return given;
}

/* Whether all that a unit gives is given by units before it; then it is read from there. */
static bool is_given_before(graft_onnx_writer *writer, const unit_nodes *nodes, uint32_t unit,
                            const bool *given, const graft_index *same, const graft_index *giver)
{
    bool before = true;
    for (uint32_t pass = 0; pass < 2 && before; pass++) {
        for (graft_index n = nodes->first[unit]; n != GRAFT_NONE; n = nodes->next[n]) {
            for (uint32_t k = 0; k < writer->graph->nodes[n].output_count; k++) {
                graft_index v = graft_node_output(writer->graph, n, k);
                before = before && (!given[v] || giver[same[v]] != GRAFT_NONE);
                writer->instead[v] = pass == 1 && given[v] ? giver[same[v]] : v;
            }
        }
    }
    return before;
}

static void note_given(const graft_onnx_writer *writer, const unit_nodes *nodes, uint32_t unit,
                       const bool *given, const graft_index *same, graft_index *giver)
{
    for (graft_index n = nodes->first[unit]; n != GRAFT_NONE; n = nodes->next[n]) {
        for (uint32_t k = 0; k < writer->graph->nodes[n].output_count; k++) {
            graft_index v = graft_node_output(writer->graph, n, k);
            if (given[v] && giver[same[v]] == GRAFT_NONE) {
                giver[same[v]] = v;
            }
        }
    }
}

/* Drops what no output needs: what only units read that were dropped, or nodes whose results are
 * stored. */
static void drop_unneeded(graft_onnx_writer *writer, const unit_nodes *nodes, const uint32_t *order)
{
    const graft_graph *graph = writer->graph;
    bool *needed = GRAFT_NEW(writer->arena, bool, writer->unit_count);
    for (graft_index i = 0; i < graph->output_count; i++) {
        uint32_t unit = producing_unit(writer, writer->instead[graph->outputs[i]], GRAFT_NONE);
        if (unit != GRAFT_NONE) {
            needed[unit] = true;
        }
    }
    for (uint32_t i = writer->unit_count; i-- > 0;) {
        uint32_t unit = order[i];
        writer->dropped[unit] = writer->dropped[unit] || !needed[unit];
        for (graft_index n = nodes->first[unit]; !writer->dropped[unit] && n != GRAFT_NONE;
             n = nodes->next[n]) {
            for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
                graft_index v = graft_node_input(graph, n, k);
                uint32_t other =
                    v == GRAFT_NONE ? v : producing_unit(writer, writer->instead[v], unit);
                if (other != GRAFT_NONE) {
                    needed[other] = true;
                }
            }
        }
    }
}

/* Runtimes look for groups of 8 bits by themselves, and do not know one that shares with
 * another. */
static bool has_grouped(const unit_nodes *nodes, uint32_t unit, const bool *grouped)
{
    bool has = false;
    for (graft_index n = nodes->first[unit]; grouped != NULL && n != GRAFT_NONE;
         n = nodes->next[n]) {
        has = has || grouped[n];
    }
    return has;
}

/* Nodes that compute the same are one, as far as units let them: an ONNX node that came apart is
 * written whole, even where a part of it equals a part of another, and is dropped whole when all
 * that it gives to others is there already. Readers turn to units that stand earlier in the order,
 * so the order stays right. */
static void merge_units(graft_onnx_writer *writer, const unit_nodes *nodes, const uint32_t *order)
{
    const graft_graph *graph = writer->graph;
    const graft_index *same = graft_equal_find(writer->arena, graph, &writer->order);
    const bool *grouped =
        graft_byte_groups_find(writer->arena, writer->model, graph, &writer->order);
    if (same == NULL) {
        return;
    }
    const bool *given = find_given_values(writer);
    graft_index *giver = new_nones(writer, graph->value_end);
    for (uint32_t i = 0; i < writer->unit_count; i++) {
        if (!has_grouped(nodes, order[i], grouped) &&
            is_given_before(writer, nodes, order[i], given, same, giver)) {
            writer->dropped[order[i]] = true;
            writer->merged_count++;
        } else {
            note_given(writer, nodes, order[i], given, same, giver);
        }
    }
}

static void drop_units(graft_onnx_writer *writer, const uint32_t *order)
{
    unit_nodes nodes = list_nodes_of_units(writer);
    writer->dropped = GRAFT_NEW(writer->arena, bool, writer->unit_count);
    writer->instead = GRAFT_NEW(writer->arena, graft_index, writer->graph->value_end);
    for (graft_index v = 0; v < writer->graph->value_end; v++) {
        writer->instead[v] = v;
    }
    if (writer->simplify) {
        merge_units(writer, &nodes, order);
    }
    drop_unneeded(writer, &nodes, order);
}

graft_status graft_onnx_form_units(graft_onnx_writer *writer, uint32_t **order)
{
    uint32_t on_cycle = 0;
    link_chains(writer);
    list_units(writer);
    uint32_t count = writer->unit_count;
    uint32_t *first = GRAFT_NEW(writer->arena, uint32_t, (size_t)count + 2);
    walk_dependencies(writer, first, NULL);
    for (uint32_t u = 0; u < count; u++) {
        first[u + 2] += first[u + 1];
    }
    uint32_t *items = GRAFT_NEW(writer->arena, uint32_t, first[count + 1]);
    walk_dependencies(writer, first, items);
    *order = GRAFT_NEW(writer->arena, uint32_t, count);
    GRAFT_RETURN_IF(!graft_onnx_sort(writer->arena, count, first, items, *order, &on_cycle),
                    GRAFT_FAIL(writer->env, GRAFT_INTERNAL,
                               "%s: nodes of the graph to write wait for each other",
                               writer->model->file));
    drop_units(writer, *order);
    return GRAFT_OK;
}
