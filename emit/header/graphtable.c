/* graphtable.c - see graphtable.h. */
#include "emit/header/graphtable.h"

#include "emit/header/identifier.h"

#include <inttypes.h>

/* One record: where it begins in the table, and what is said about it. */
typedef struct {
    size_t first;
    const char *note;
} table_line;

typedef struct {
    const graft_graph *graph;
    const graft_order *order;
    graft_index *numbers; /* By value id: its number in the table. */
    graft_index value_count;
    graft_buffer table; /* int32_t */
    graft_buffer lines; /* table_line */
} table_builder;

static size_t table_count(const table_builder *builder)
{
    return builder->table.size / sizeof(int32_t);
}

static void add_number(table_builder *builder, int64_t number)
{
    const int32_t narrow = (int32_t)number;
    graft_buffer_append(&builder->table, &narrow, sizeof narrow);
}

static void add_index(table_builder *builder, graft_index index)
{
    add_number(builder, index == GRAFT_NONE ? -1 : (int64_t)index);
}

static void open_record(table_builder *builder, graft_record kind, const char *note)
{
    const table_line line = {table_count(builder), note};
    graft_buffer_append(&builder->lines, &line, sizeof line);
    add_number(builder, kind);
}

static void add_shape(table_builder *builder, const graft_shape *shape)
{
    add_number(builder, shape->dtype);
    add_number(builder, shape->rank);
    for (uint32_t i = 0; shape->rank <= GRAFT_MAX_RANK && i < shape->rank; i++) {
        add_number(builder, shape->dims[i]);
    }
}

static void add_sources(table_builder *builder, graft_value_kind kind)
{
    bool is_input = kind == GRAFT_VALUE_INPUT;
    for (graft_index v = 0; v < builder->graph->value_end; v++) {
        const graft_value *value = &builder->graph->values[v];
        if (value->kind == kind) {
            open_record(builder, is_input ? GRAFT_RECORD_INPUT : GRAFT_RECORD_WEIGHT,
                        is_input ? "input" : "weight");
            add_index(builder, value->source);
            add_shape(builder, &value->shape);
            builder->numbers[v] = builder->value_count++;
        }
    }
}

static void add_inputs(table_builder *builder, graft_index n)
{
    for (uint32_t i = 0; i < builder->graph->nodes[n].input_count; i++) {
        graft_index v = graft_node_input(builder->graph, n, i);
        add_index(builder, v == GRAFT_NONE ? GRAFT_NONE : builder->numbers[v]);
    }
}

static void add_node(table_builder *builder, graft_index n)
{
    const graft_node *node = &builder->graph->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    if (info != NULL) {
        open_record(builder, GRAFT_RECORD_NODE, info->name);
        add_number(builder, node->op);
        add_index(builder, node->source);
        add_inputs(builder, n);
        for (uint32_t i = 0; i < info->attr_count; i++) {
            add_number(builder, node->attrs[i]);
        }
    } else {
        open_record(builder, node->is_const ? GRAFT_RECORD_CONST : GRAFT_RECORD_OPAQUE, "opaque");
        add_index(builder, node->source);
        add_number(builder, node->input_count);
        add_number(builder, node->output_count);
        add_inputs(builder, n);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        graft_index v = graft_node_output(builder->graph, n, i);
        if (info == NULL) {
            add_shape(builder, &builder->graph->values[v].shape);
        }
        builder->numbers[v] = builder->value_count++;
    }
}

/* A node with too many inputs or outputs; GRAFT_NONE when a table can hold the graph. */
static graft_index find_too_wide(const graft_graph *graph)
{
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op == GRAFT_OP_OPAQUE && (node->input_count > GRAFT_TABLE_MAX_OPERANDS ||
                                            node->output_count > GRAFT_TABLE_MAX_OPERANDS)) {
            return n;
        }
    }
    return GRAFT_NONE;
}

static graft_status check_operands(graft_env *env, const graft_graph *graph)
{
    graft_index n = find_too_wide(graph);
    return n == GRAFT_NONE
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                            "node %u has more than %d inputs or outputs: no table for it", n,
                            GRAFT_TABLE_MAX_OPERANDS);
}

/* Fills the builder; everything lies in `arena`. */
static graft_status build_table(graft_env *env, graft_arena *arena, const graft_graph *graph,
                                table_builder *builder)
{
    size_t bytes = graft_order_bytes(&graph->limits);
    graft_order *order = GRAFT_NEW(arena, graft_order, 1);
    *builder = (table_builder){
        .graph = graph, .order = order, .table = {.arena = arena}, .lines = {.arena = arena}};
    builder->numbers = GRAFT_NEW(arena, graft_index, graph->value_end);
    GRAFT_PASS(check_operands(env, graph));
    graft_status status = graft_order_build(order, graph, graft_arena_alloc(arena, bytes), bytes);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the graph has a cycle");
    }
    add_sources(builder, GRAFT_VALUE_INPUT);
    add_sources(builder, GRAFT_VALUE_WEIGHT);
    for (graft_index i = 0; i < order->count; i++) {
        add_node(builder, order->order[i]);
    }
    for (graft_index i = 0; i < graph->output_count; i++) {
        open_record(builder, GRAFT_RECORD_OUTPUT, "output");
        add_index(builder, builder->numbers[graph->outputs[i]]);
    }
    return status;
}

/* -------------------------------------------------------------------- text */

static void print_table(const table_builder *builder, graft_buffer *text)
{
    const int32_t *table = (const int32_t *)(const void *)builder->table.data;
    const table_line *lines = (const table_line *)(const void *)builder->lines.data;
    size_t line_count = builder->lines.size / sizeof *lines;
    for (size_t i = 0; i < line_count; i++) {
        size_t end = i + 1 < line_count ? lines[i + 1].first : table_count(builder);
        graft_buffer_printf(text, "   ");
        for (size_t k = lines[i].first; k < end; k++) {
            graft_buffer_printf(text, " %" PRId32 ",", table[k]);
        }
        graft_buffer_printf(text, " /* %s */\n", lines[i].note);
    }
}

static graft_index widen(graft_index count, graft_index more, uint32_t room)
{
    return count + (count / 2 + more) * room / GRAFT_GRAPHTABLE_ROOM;
}

graft_limits graft_graphtable_limits(const graft_graph *graph, uint32_t room)
{
    graft_index values = 0;
    graft_index edges = 0;
    for (graft_index v = 0; v < graph->value_end; v++) {
        values += graph->values[v].kind != GRAFT_VALUE_FREE;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        edges +=
            node->op == GRAFT_OP_NONE ? 0 : (graft_index)node->input_count + node->output_count;
    }
    return (graft_limits){.nodes = widen(graft_graph_node_count(graph), 16, room),
                          .values = widen(values, 32, room),
                          .edges = widen(edges, 64, room),
                          .outputs = graph->output_count > 0 ? graph->output_count : 1};
}

static void print_limits(const graft_limits *limits, const graft_identifier *name,
                         graft_buffer *text)
{
    graft_buffer_printf(text,
                        "/* {nodes, values, edges, outputs} with room for rewriting. */\n"
                        "#define GRAFT_GRAPH_%s_LIMITS {%u, %u, %u, %u}\n\n",
                        name->capitals, limits->nodes, limits->values, limits->edges,
                        limits->outputs);
}

/* The first graph of a program needs no name. */
static void print_aliases(const graft_identifier *name, bool sized, graft_buffer *text)
{
    static const char *const sizes[] = {"STEPS", "BUFFER_BYTES", "WORK_BYTES"};
    graft_buffer_printf(text,
                        "#ifndef GRAFT_GRAPH\n#define GRAFT_GRAPH graft_graph_%s\n"
                        "#define GRAFT_GRAPH_LIMITS GRAFT_GRAPH_%s_LIMITS\n",
                        name->small, name->capitals);
    for (size_t i = 0; sized && i < sizeof sizes / sizeof sizes[0]; i++) {
        graft_buffer_printf(text, "#define GRAFT_GRAPH_%s GRAFT_GRAPH_%s_%s\n", sizes[i],
                            name->capitals, sizes[i]);
    }
    graft_buffer_printf(text, "#endif\n\n#endif\n");
}

/* The text, in `text`, whose arena is not env->scratch. */
static graft_status print_header(graft_env *env, const graft_graph *graph, const char *name,
                                 const graft_fit *fit, graft_buffer *text)
{
    const graft_limits room = graft_graphtable_limits(graph, GRAFT_GRAPHTABLE_ROOM);
    GRAFT_SCOPED(env->scratch);
    graft_identifier id;
    table_builder builder;
    GRAFT_PASS(graft_identifier_make(env, name, &id));
    GRAFT_PASS(build_table(env, env->scratch, graph, &builder));
    graft_buffer_printf(
        text,
        "/* SPDX-License-Identifier: MIT */\n"
        "/* A tensor graph as a table. Generated by graft; not to be edited. Include graft.h "
        "first.\n"
        " *      graft_graph_load(&graph, graft_graph_%s,\n"
        " *                       sizeof graft_graph_%s / sizeof graft_graph_%s[0]); */\n"
        "#ifndef GRAFT_GRAPH_%s_H\n#define GRAFT_GRAPH_%s_H\n\n"
        "static const int32_t graft_graph_%s[] = {\n",
        id.small, id.small, id.small, id.capitals, id.capitals, id.small);
    print_table(&builder, text);
    graft_buffer_printf(text, "};\n\n");
    print_limits(fit != NULL ? &fit->limits : &room, &id, text);
    if (fit != NULL) {
        GRAFT_PASS(graft_fit_print(env, fit, &id, text));
    }
    print_aliases(&id, fit != NULL, text);
    return GRAFT_OK;
}

graft_status graft_graphtable_write(graft_env *env, const graft_graph *graph, const char *name,
                                    const graft_fit *fit, const char *path)
{
    if (graph->dtype != GRAFT_DTYPE_F32) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "%s: headers of graphs are for binary32, and most of this one is not",
                          path);
    }
    GRAFT_ARENA(arena, (size_t)1 << 16);
    graft_buffer text = {.arena = arena};
    GRAFT_PASS_IN(env, print_header(env, graph, name, fit, &text), "while writing %s", path);
    return graft_file_write(env, path, text.data, text.size);
}

graft_status graft_graph_renumber(graft_env *env, graft_arena *arena, const graft_graph *graph,
                                  graft_graph **renumbered)
{
    table_builder builder;
    graft_graph *copy = GRAFT_NEW(arena, graft_graph, 1);
    size_t bytes = graft_graph_bytes(&graph->limits);
    void *memory = graft_arena_alloc(arena, bytes);
    GRAFT_SCOPED(env->scratch);
    graft_status status = graft_graph_init(copy, &graph->limits, memory, bytes);
    if (status == GRAFT_OK && find_too_wide(graph) != GRAFT_NONE) {
        status = graft_graph_copy(copy, graph);
    } else if (status == GRAFT_OK) {
        GRAFT_PASS(build_table(env, env->scratch, graph, &builder));
        copy->dtype = graph->dtype;
        status = graft_graph_load(copy, (const int32_t *)(const void *)builder.table.data,
                                  table_count(&builder));
    }
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "a graph does not fit its copy");
    }
    *renumbered = copy;
    return status;
}
