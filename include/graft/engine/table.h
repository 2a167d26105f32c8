/* table.h - builds a graph from a table of integers (graft_record in graft.h). */
#ifndef GRAFT_ENGINE_TABLE_H
#define GRAFT_ENGINE_TABLE_H

/* What is left of a table. A reading past its end gives 0 and sets `cut_off`, as do an id that is
 * too large for this build and a type or rank that is no byte. */
typedef struct graft_table_reader {
    const int32_t *at;
    size_t left;
    bool cut_off;
} graft_table_reader;

static int32_t graft_read_number(graft_table_reader *reader)
{
    if (reader->left == 0) {
        reader->cut_off = true;
        return 0;
    }
    reader->left--;
    return *reader->at++;
}

static uint32_t graft_read_index(graft_table_reader *reader)
{
    int32_t number = graft_read_number(reader);
    reader->cut_off |= (number >= 0) & ((uint32_t)number >= GRAFT_NONE);
    return number < 0 ? GRAFT_NONE : (graft_index)number;
}

static graft_shape graft_read_table_shape(graft_table_reader *reader)
{
    graft_shape shape;
    const int32_t dtype = graft_read_number(reader);
    const int32_t rank = graft_read_number(reader);
    reader->cut_off |= (uint32_t)(dtype | rank) > UINT8_MAX;
    shape.dtype = (uint8_t)dtype;
    shape.rank = (uint8_t)rank;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        bool has = shape.rank <= GRAFT_MAX_RANK && i < shape.rank;
        shape.dims[i] = has ? graft_read_number(reader) : 0;
    }
    return shape;
}

static graft_status graft_load_source(graft_graph *graph, graft_table_reader *reader,
                                      int32_t record)
{
    graft_index value = GRAFT_NONE;
    uint32_t source = graft_read_index(reader);
    graft_shape shape = graft_read_table_shape(reader);
    /* What both records say is the kind of the value. */
    return graft_add_source_value(graph, &shape, source, (graft_value_kind)record, &value);
}

static graft_status graft_load_node(graft_graph *graph, graft_table_reader *reader)
{
    graft_index inputs[GRAFT_MAX_INPUTS];
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_index node = GRAFT_NONE;
    uint32_t op = (uint32_t)graft_read_number(reader);
    uint32_t source = graft_read_index(reader);
    const graft_op_row *info = graft_find_op(op);
    if (info == NULL) {
        return GRAFT_BAD_INPUT;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        inputs[i] = graft_read_index(reader);
    }
    for (uint32_t i = 0; i < info->attr_count; i++) {
        attrs[i] = graft_read_number(reader);
    }
    return graft_graph_add_node(graph, op, attrs, inputs, source, &node);
}

static graft_status graft_load_opaque(graft_graph *graph, graft_table_reader *reader,
                                      int32_t record)
{
    graft_index inputs[GRAFT_TABLE_MAX_OPERANDS];
    graft_shape shapes[GRAFT_TABLE_MAX_OPERANDS];
    graft_index node = GRAFT_NONE;
    uint32_t source = graft_read_index(reader);
    uint32_t input_count = (uint32_t)graft_read_number(reader);
    uint32_t output_count = (uint32_t)graft_read_number(reader);
    if (input_count > GRAFT_TABLE_MAX_OPERANDS || output_count > GRAFT_TABLE_MAX_OPERANDS) {
        return GRAFT_BAD_INPUT;
    }
    for (uint32_t i = 0; i < input_count; i++) {
        inputs[i] = graft_read_index(reader);
    }
    for (uint32_t i = 0; i < output_count; i++) {
        shapes[i] = graft_read_table_shape(reader);
    }
    graft_status status = graft_graph_add_opaque(graph, source, inputs, (uint16_t)input_count,
                                                 shapes, (uint16_t)output_count, &node);
    if (status == GRAFT_OK && record == GRAFT_RECORD_CONST) {
        graft_graph_set_repeatable(graph, node);
    }
    return status;
}

graft_status graft_graph_load(graft_graph *graph, const int32_t *table, size_t count)
{
    graft_table_reader reader = {table, count, false};
    graft_status status = GRAFT_OK;
    graft_graph_clear(graph);
    while (status == GRAFT_OK && reader.left > 0) {
        const int32_t record = graft_read_number(&reader);
        switch (record) {
        case GRAFT_RECORD_INPUT:
        case GRAFT_RECORD_WEIGHT:
            status = graft_load_source(graph, &reader, record);
            break;
        case GRAFT_RECORD_NODE:
            status = graft_load_node(graph, &reader);
            break;
        case GRAFT_RECORD_OPAQUE:
        case GRAFT_RECORD_CONST:
            status = graft_load_opaque(graph, &reader, record);
            break;
        case GRAFT_RECORD_OUTPUT:
            status = graft_graph_add_output(graph, graft_read_index(&reader));
            break;
        default:
            status = GRAFT_BAD_INPUT;
            break;
        }
        status = reader.cut_off ? GRAFT_BAD_INPUT : status;
    }
    return status;
}

#endif
