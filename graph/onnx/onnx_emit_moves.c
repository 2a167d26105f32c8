/* onnx_emit_moves.c - ONNX nodes for operators that move elements (see onnx_emit.h). Trees of
 * concats and of splits, and chains of slices and of pads, are one node each. */
#include "graph/onnx/onnx_emit.h"

void graft_onnx_emit_transpose(graft_onnx_emitter *e)
{
    Onnx__NodeProto *node = push1(e, "Transpose", in_name(e, 0), out_name(e, 0));
    set_ints32(e, node, "perm", &e->node->attrs[GRAFT_ATTR_transpose_axis_0], in_shape(e, 0)->rank);
}

void graft_onnx_emit_reshape(graft_onnx_emitter *e)
{
    int64_t dims[GRAFT_MAX_RANK];
    uint32_t rank = 0;
    while (rank < GRAFT_MAX_RANK && e->node->attrs[GRAFT_ATTR_reshape_dim_0 + rank] != 0) {
        dims[rank] = e->node->attrs[GRAFT_ATTR_reshape_dim_0 + rank];
        rank++;
    }
    (void)push2(e, "Reshape", in_name(e, 0), graft_onnx_push_ints(e->writer, "shape", dims, rank),
                out_name(e, 0));
}

/* The node of the chain that makes input `k` of `n`; GRAFT_NONE when the chain ends there. */
static graft_index absorbed_producer(const graft_onnx_writer *writer, graft_index n, uint32_t k)
{
    const graft_value *value = &writer->graph->values[graft_node_input(writer->graph, n, k)];
    return value->kind == GRAFT_VALUE_COMPUTED && writer->absorbed_into[value->node] == n
               ? value->node
               : GRAFT_NONE;
}

/* Input or output `k` of a node. */
typedef struct {
    graft_index n;
    uint32_t k;
} place;

/* The ends of a tree of nodes with two branches each, from left to right, with an explicit stack.
 */
typedef struct {
    const graft_onnx_writer *writer;
    graft_index (*absorbed)(const graft_onnx_writer *writer, graft_index n, uint32_t k);
    place *stack;
    uint32_t depth;
} tree_walk;

static tree_walk start_walk(graft_onnx_writer *writer, graft_index root,
                            graft_index (*absorbed)(const graft_onnx_writer *writer, graft_index n,
                                                    uint32_t k))
{
    tree_walk walk = {.writer = writer, .absorbed = absorbed, .depth = 1};
    walk.stack = GRAFT_NEW(writer->arena, place, writer->order.count + 1);
    walk.stack[0] = (place){.n = root};
    return walk;
}

static bool next_end(tree_walk *walk, place *end)
{
    while (walk->depth > 0) {
        place *top = &walk->stack[walk->depth - 1];
        if (top->k == 2) {
            walk->depth--;
            continue;
        }
        *end = (place){.n = top->n, .k = top->k++};
        graft_index inner = walk->absorbed(walk->writer, end->n, end->k);
        if (inner == GRAFT_NONE) {
            return true;
        }
        walk->stack[walk->depth++] = (place){.n = inner};
    }
    return false;
}

/* The operands of a tree of concats. */
void graft_onnx_emit_concat(graft_onnx_emitter *e)
{
    graft_onnx_writer *writer = e->writer;
    tree_walk walk = start_walk(writer, e->n, absorbed_producer);
    const char **operands = GRAFT_NEW(writer->arena, const char *, writer->order.count + 2);
    size_t count = 0;
    for (place end; next_end(&walk, &end);) {
        graft_index v = graft_node_input(writer->graph, end.n, end.k);
        operands[count++] = graft_onnx_value_name(writer, v);
    }
    const char *output = out_name(e, 0);
    graft_onnx_set_int(writer->arena,
                       graft_onnx_push_node(writer, "Concat", operands, count, &output, 1), "axis",
                       e->node->attrs[GRAFT_ATTR_concat_axis]);
}

/* The split that cuts output `k` of `n` further; GRAFT_NONE when the output is an end. */
static graft_index absorbed_consumer(const graft_onnx_writer *writer, graft_index n, uint32_t k)
{
    graft_index v = graft_node_output(writer->graph, n, k);
    for (graft_index u = writer->order.use_first[v]; u < writer->order.use_first[v + 1]; u++) {
        if (writer->absorbed_into[writer->order.uses[u]] == n) {
            return writer->order.uses[u];
        }
    }
    return GRAFT_NONE;
}

/* The ends of a tree of splits. */
void graft_onnx_emit_split(graft_onnx_emitter *e)
{
    graft_onnx_writer *writer = e->writer;
    tree_walk walk = start_walk(writer, e->n, absorbed_consumer);
    const char **outputs = GRAFT_NEW(writer->arena, const char *, writer->order.count + 2);
    int64_t *sizes = GRAFT_NEW(writer->arena, int64_t, writer->order.count + 2);
    int32_t axis = e->node->attrs[GRAFT_ATTR_split_axis];
    size_t count = 0;
    for (place end; next_end(&walk, &end);) {
        graft_index v = graft_node_output(writer->graph, end.n, end.k);
        sizes[count] = writer->graph->values[v].shape.dims[axis];
        outputs[count++] = graft_onnx_value_name(writer, v);
    }
    const char *inputs[2] = {in_name(e, 0), NULL};
    bool as_input = writer->opset >= OPSET_SPLIT_INPUT;
    if (as_input) {
        inputs[1] = graft_onnx_push_ints(writer, "split", sizes, count);
    }
    Onnx__NodeProto *node =
        graft_onnx_push_node(writer, "Split", inputs, as_input ? 2 : 1, outputs, count);
    graft_onnx_set_int(writer->arena, node, "axis", axis);
    if (!as_input) {
        graft_onnx_set_ints(writer->arena, node, "split", sizes, count);
    }
}

/* A chain of slices or pads: its nodes, last first; the result is how many. At most one an axis. */
static uint32_t list_chain(const graft_onnx_emitter *e, graft_index *chain)
{
    uint32_t count = 1;
    chain[0] = e->n;
    graft_index n = absorbed_producer(e->writer, e->n, 0);
    for (; n != GRAFT_NONE && count < GRAFT_MAX_RANK; n = absorbed_producer(e->writer, n, 0)) {
        chain[count++] = n;
    }
    return count;
}

void graft_onnx_emit_slice(graft_onnx_emitter *e)
{
    graft_onnx_writer *writer = e->writer;
    graft_index chain[GRAFT_MAX_RANK];
    int64_t starts[GRAFT_MAX_RANK];
    int64_t ends[GRAFT_MAX_RANK];
    int64_t axes[GRAFT_MAX_RANK];
    uint32_t count = list_chain(e, chain);
    for (uint32_t i = 0; i < count; i++) { /* In the order in which they were applied. */
        const int32_t *attrs = writer->graph->nodes[chain[count - 1 - i]].attrs;
        starts[i] = attrs[GRAFT_ATTR_slice_start];
        ends[i] = attrs[GRAFT_ATTR_slice_end];
        axes[i] = attrs[GRAFT_ATTR_slice_axis];
    }
    const char *source =
        graft_onnx_value_name(writer, graft_node_input(writer->graph, chain[count - 1], 0));
    if (writer->opset < OPSET_SLICE_INPUTS) {
        Onnx__NodeProto *node = push1(e, "Slice", source, out_name(e, 0));
        graft_onnx_set_ints(writer->arena, node, "axes", axes, count);
        graft_onnx_set_ints(writer->arena, node, "ends", ends, count);
        graft_onnx_set_ints(writer->arena, node, "starts", starts, count);
        return;
    }
    const char *output = out_name(e, 0);
    const char *inputs[4] = {source, graft_onnx_push_ints(writer, "starts", starts, count),
                             graft_onnx_push_ints(writer, "ends", ends, count),
                             graft_onnx_push_ints(writer, "axes", axes, count)};
    (void)graft_onnx_push_node(writer, "Slice", inputs, 4, &output, 1);
}

void graft_onnx_emit_pad(graft_onnx_emitter *e)
{
    graft_onnx_writer *writer = e->writer;
    graft_index chain[GRAFT_MAX_RANK];
    int64_t pads[2 * GRAFT_MAX_RANK] = {0};
    uint32_t rank = in_shape(e, 0)->rank;
    uint32_t count = list_chain(e, chain);
    float value = graft_float_of_bits(e->node->attrs[GRAFT_ATTR_pad_value]);
    for (uint32_t i = 0; i < count; i++) {
        const int32_t *attrs = writer->graph->nodes[chain[i]].attrs;
        pads[attrs[GRAFT_ATTR_pad_axis]] = attrs[GRAFT_ATTR_pad_before];
        pads[(uint32_t)attrs[GRAFT_ATTR_pad_axis] + rank] = attrs[GRAFT_ATTR_pad_after];
    }
    const char *output = out_name(e, 0);
    const char *source =
        graft_onnx_value_name(writer, graft_node_input(writer->graph, chain[count - 1], 0));
    if (writer->opset < OPSET_PAD_INPUTS) {
        Onnx__NodeProto *node = push1(e, "Pad", source, output);
        graft_onnx_set_text(writer->arena, node, "mode", "constant");
        graft_onnx_set_ints(writer->arena, node, "pads", pads, (size_t)2 * rank);
        graft_onnx_set_float(writer->arena, node, "value", value);
        return;
    }
    const char *inputs[3] = {source, graft_onnx_push_ints(writer, "pads", pads, (size_t)2 * rank),
                             push_scalar(e, "value", value)};
    Onnx__NodeProto *node = graft_onnx_push_node(writer, "Pad", inputs, 3, &output, 1);
    graft_onnx_set_text(writer->arena, node, "mode", "constant");
}

/* A Slice by starts, ends, axes and steps of one number. */
static void push_stepped(const graft_onnx_emitter *e, const int64_t numbers[4])
{
    static const char *const labels[4] = {"starts", "ends", "axes", "steps"};
    const char *output = out_name(e, 0);
    const char *inputs[5] = {in_name(e, 0)};
    for (uint32_t i = 0; i < 4; i++) {
        inputs[1 + i] = graft_onnx_push_ints(e->writer, labels[i], &numbers[i], 1);
    }
    (void)graft_onnx_push_node(e->writer, "Slice", inputs, 5, &output, 1);
}

void graft_onnx_emit_pick(graft_onnx_emitter *e)
{
    const int32_t *attrs = e->node->attrs;
    push_stepped(e, (const int64_t[]){attrs[GRAFT_ATTR_pick_start], attrs[GRAFT_ATTR_pick_end],
                                      attrs[GRAFT_ATTR_pick_axis], attrs[GRAFT_ATTR_pick_step]});
}

/* From the last element to before the first, whatever the size. */
void graft_onnx_emit_reverse(graft_onnx_emitter *e)
{
    push_stepped(e, (const int64_t[]){-1, INT64_MIN, e->node->attrs[GRAFT_ATTR_reverse_axis], -1});
}

void graft_onnx_emit_cumsum(graft_onnx_emitter *e)
{
    const int64_t axis = e->node->attrs[GRAFT_ATTR_cumsum_axis];
    Onnx__NodeProto *node =
        push2(e, "CumSum", in_name(e, 0), graft_onnx_push_ints(e->writer, "axis", &axis, 1),
              out_name(e, 0));
    graft_onnx_set_int(e->writer->arena, node, "exclusive",
                       e->node->attrs[GRAFT_ATTR_cumsum_exclusive]);
}

void graft_onnx_emit_repeat(graft_onnx_emitter *e)
{
    const graft_shape list = {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {in_shape(e, 0)->rank}};
    const char *output = out_name(e, 0);
    float scales[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        const bool own = (uint32_t)e->node->attrs[GRAFT_ATTR_repeat_axis] == i;
        scales[i] = own ? (float)e->node->attrs[GRAFT_ATTR_repeat_times] : 1.0F;
    }
    const graft_shape none = {.rank = 1, .dtype = GRAFT_DTYPE_F32};
    const bool bare = e->writer->opset >= OPSET_RESIZE_BARE;
    const char *inputs[3] = {in_name(e, 0),
                             bare ? "" : graft_onnx_push_floats(e->writer, "roi", scales, &none),
                             graft_onnx_push_floats(e->writer, "scales", scales, &list)};
    Onnx__NodeProto *node = graft_onnx_push_node(e->writer, "Resize", inputs, 3, &output, 1);
    graft_arena *arena = e->writer->arena;
    graft_onnx_set_text(arena, node, "coordinate_transformation_mode", "asymmetric");
    graft_onnx_set_text(arena, node, "mode", "nearest");
    graft_onnx_set_text(arena, node, "nearest_mode", "floor");
}
