/* onnx_text.c - see onnx_text.h. */
#include "tests/support/onnx_text.h"
#include "graph/base/bits.h"
#include "graph/base/file.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 64, GRAPHS_MOST = 8, FUNCTIONS_MOST = 8, LIST_MOST = 64, ROOM = 64 };

typedef struct {
    graft_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph; /* The one that statements go to. */
    Onnx__GraphProto *subgraphs[GRAPHS_MOST];
    uint32_t subgraph_count;
    uint32_t node_count;
    Onnx__FunctionProto *function; /* The one that statements go to; NULL: none. */
    char *words[WORDS_MOST];
    uint32_t word_count;
} text_reader;

static Onnx__GraphProto *new_graph(graft_arena *arena, char *name)
{
    Onnx__GraphProto *graph = GRAFT_NEW(arena, Onnx__GraphProto, 1);
    onnx__graph_proto__init(graph);
    graph->name = name;
    graph->node = GRAFT_NEW(arena, Onnx__NodeProto *, ROOM);
    graph->input = GRAFT_NEW(arena, Onnx__ValueInfoProto *, ROOM);
    graph->output = GRAFT_NEW(arena, Onnx__ValueInfoProto *, ROOM);
    graph->value_info = GRAFT_NEW(arena, Onnx__ValueInfoProto *, ROOM);
    graph->initializer = GRAFT_NEW(arena, Onnx__TensorProto *, ROOM);
    return graph;
}

/* Word `i`; "" past the last. */
static char *word_at(const text_reader *r, size_t i)
{
    static char none[1];
    return i < r->word_count ? r->words[i] : none;
}

static bool word_is(const text_reader *r, uint32_t i, const char *text)
{
    return i < r->word_count && strcmp(r->words[i], text) == 0;
}

/* The place of a word after `from`; word_count when it is not there. */
static uint32_t find_word(const text_reader *r, uint32_t from, const char *text)
{
    while (from < r->word_count && !word_is(r, from, text)) {
        from++;
    }
    return from;
}

/* ------------------------------------------------------------------------------ statements */

static Onnx__ValueInfoProto *make_port(text_reader *r)
{
    int64_t dims[GRAFT_MAX_RANK + 2];
    uint32_t rank = r->word_count - 2;
    assert_true(rank <= GRAFT_MAX_RANK + 2);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = strtoll(word_at(r, 2 + i), NULL, 10);
    }
    Onnx__ValueInfoProto *port =
        graft_onnx_make_port(r->arena, r->words[1], GRAFT_DTYPE_F32, dims, rank);
    for (uint32_t i = 0; i < rank; i++) {
        const char *word = word_at(r, 2 + i);
        Onnx__TensorShapeProto__Dimension *dim = port->type->tensor_type->shape->dim[i];
        if (word[0] == '?' || (word[0] >= 'A' && word[0] <= 'z')) {
            dim->has_dim_value = 0;
            dim->dim_param = word[0] == '?' ? NULL : graft_arena_strdup(r->arena, word);
        }
    }
    if (rank == 0) {
        port->type = NULL;
    }
    return port;
}

static void read_weight(text_reader *r)
{
    uint32_t equals = find_word(r, 2, "=");
    int64_t dims[GRAFT_MAX_RANK + 2];
    uint32_t rank = equals - 2;
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = strtoll(word_at(r, 2 + i), NULL, 10);
        count *= (size_t)dims[i];
    }
    float *data = GRAFT_NEW(r->arena, float, count);
    for (size_t i = 0; i < count; i++) {
        data[i] = equals < r->word_count ? strtof(word_at(r, equals + 1 + i), NULL)
                                         : 0.5F * (float)(i + 1);
    }
    r->graph->initializer[r->graph->n_initializer++] =
        graft_onnx_make_tensor(r->arena, r->words[1], GRAFT_DTYPE_F32, dims, rank, data);
}

static void read_ints(text_reader *r, bool scalar)
{
    int64_t count = (int64_t)r->word_count - 3;
    int64_t *data = GRAFT_NEW(r->arena, int64_t, (size_t)count);
    assert_true(word_is(r, 2, "="));
    for (int64_t i = 0; i < count; i++) {
        data[i] = strtoll(word_at(r, (size_t)i + 3), NULL, 10);
    }
    r->graph->initializer[r->graph->n_initializer++] = graft_onnx_make_tensor(
        r->arena, r->words[1], GRAFT_DTYPE_I64, &count, scalar ? 0 : 1, data);
}

static void read_bool(text_reader *r)
{
    const int64_t none = 0;
    uint8_t *data = GRAFT_NEW(r->arena, uint8_t, 1);
    data[0] = (uint8_t)strtol(word_at(r, 3), NULL, 10);
    r->graph->initializer[r->graph->n_initializer++] =
        graft_onnx_make_tensor(r->arena, r->words[1], GRAFT_DTYPE_BOOL, &none, 0, data);
}

static void set_graph(text_reader *r, Onnx__NodeProto *node, char *name, const char *graph)
{
    graft_onnx_set_int(r->arena, node, name, 0);
    Onnx__AttributeProto *attribute = node->attribute[node->n_attribute - 1];
    attribute->has_i = 0;
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    for (uint32_t i = 0; i < r->subgraph_count; i++) {
        if (strcmp(r->subgraphs[i]->name, graph) == 0) {
            attribute->g = r->subgraphs[i];
        }
    }
    assert_non_null(attribute->g);
}

/* A list of one int64. */
static void set_tensor(text_reader *r, Onnx__NodeProto *node, char *name, const char *number)
{
    static const int64_t one = 1;
    int64_t *item = GRAFT_NEW(r->arena, int64_t, 1);
    graft_onnx_set_int(r->arena, node, name, 0);
    Onnx__AttributeProto *attribute = node->attribute[node->n_attribute - 1];
    *item = strtoll(number, NULL, 10);
    attribute->has_i = 0;
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    attribute->t = graft_onnx_make_tensor(r->arena, "", GRAFT_DTYPE_I64, &one, 1, item);
}

static void read_attribute(text_reader *r, Onnx__NodeProto *node, char *word)
{
    char *value = strchr(word, '=');
    assert_non_null(value);
    *value++ = '\0';
    if (strcmp(word, "domain") == 0) {
        node->domain = value;
    } else if (value[0] == '&') {
        graft_onnx_set_text(r->arena, node, word, "");
        node->attribute[node->n_attribute - 1]->has_s = 0;
        node->attribute[node->n_attribute - 1]->ref_attr_name = value + 1;
    } else if (value[0] == '@') {
        set_graph(r, node, word, value + 1);
    } else if (value[0] == '#') {
        set_tensor(r, node, word, value + 1);
    } else if (strchr("-0123456789", value[0]) == NULL) {
        graft_onnx_set_text(r->arena, node, word, value);
    } else if (strchr(value, ',') != NULL) {
        int64_t list[LIST_MOST];
        size_t count = 0;
        for (char *at = value; *at != '\0'; at += *at == ',') {
            list[count++] = strtoll(at, &at, 10);
        }
        graft_onnx_set_ints(r->arena, node, word, list, count);
    } else if (strchr(value, '.') != NULL) {
        graft_onnx_set_float(r->arena, node, word, strtof(value, NULL));
    } else {
        graft_onnx_set_int(r->arena, node, word, strtoll(value, NULL, 10));
    }
}

/* Makes a node of statement `node` or `function`. */
static Onnx__NodeProto *make_node(text_reader *r)
{
    const char *inputs[WORDS_MOST];
    const char *outputs[WORDS_MOST];
    uint32_t arrow = find_word(r, 2, "->");
    uint32_t colon = find_word(r, arrow, ":");
    for (uint32_t i = 2; i < arrow; i++) {
        inputs[i - 2] = word_is(r, i, "_") ? "" : r->words[i];
    }
    for (uint32_t i = arrow + 1; i < colon; i++) {
        outputs[i - arrow - 1] = word_is(r, i, "_") ? "" : r->words[i];
    }
    Onnx__NodeProto *node =
        graft_onnx_make_node(r->arena, r->words[1], inputs, arrow - 2, outputs, colon - arrow - 1);
    for (uint32_t i = colon + 1; i < r->word_count; i++) {
        read_attribute(r, node, r->words[i]);
    }
    return node;
}

static Onnx__OperatorSetIdProto *make_set(graft_arena *arena, char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *set = GRAFT_NEW(arena, Onnx__OperatorSetIdProto, 1);
    onnx__operator_set_id_proto__init(set);
    set->domain = domain;
    set->has_version = 1;
    set->version = version;
    return set;
}

static void begin_function(text_reader *r)
{
    Onnx__NodeProto *node = make_node(r);
    Onnx__FunctionProto *function = GRAFT_NEW(r->arena, Onnx__FunctionProto, 1);
    onnx__function_proto__init(function);
    function->domain = graft_arena_strdup(r->arena, "own");
    function->name = node->op_type;
    function->input = node->input;
    function->n_input = node->n_input;
    function->output = node->output;
    function->n_output = node->n_output;
    function->attribute_proto = node->attribute;
    function->n_attribute_proto = node->n_attribute;
    function->opset_import = GRAFT_NEW(r->arena, Onnx__OperatorSetIdProto *, 2);
    function->opset_import[0] = make_set(r->arena, NULL, r->model->opset_import[0]->version);
    function->opset_import[1] = make_set(r->arena, function->domain, 1);
    function->n_opset_import = 2;
    if (r->model->n_functions == 0) {
        r->model->functions = GRAFT_NEW(r->arena, Onnx__FunctionProto *, FUNCTIONS_MOST);
    }
    assert_true(r->model->n_functions < FUNCTIONS_MOST);
    r->model->functions[r->model->n_functions++] = r->function = function;
    r->graph = new_graph(r->arena, function->name);
}

/* Of a subgraph or of a function. */
static void end_graph(text_reader *r)
{
    if (r->function != NULL) {
        r->function->node = r->graph->node;
        r->function->n_node = r->graph->n_node;
        r->function = NULL;
    }
    r->graph = r->model->graph;
}

static void read_statement(text_reader *r)
{
    if (word_is(r, 0, "opset") && r->function != NULL) {
        r->function->opset_import[0]->version = strtoll(word_at(r, 1), NULL, 10);
    } else if (word_is(r, 0, "opset")) {
        r->model->opset_import[0]->version = strtoll(word_at(r, 1), NULL, 10);
    } else if (word_is(r, 0, "ir")) {
        r->model->ir_version = strtoll(word_at(r, 1), NULL, 10);
    } else if (word_is(r, 0, "input")) {
        r->graph->input[r->graph->n_input++] = make_port(r);
    } else if (word_is(r, 0, "output")) {
        r->graph->output[r->graph->n_output++] = make_port(r);
    } else if (word_is(r, 0, "info")) {
        r->graph->value_info[r->graph->n_value_info++] = make_port(r);
    } else if (word_is(r, 0, "weight")) {
        read_weight(r);
    } else if (word_is(r, 0, "ints") || word_is(r, 0, "scalar")) {
        read_ints(r, word_is(r, 0, "scalar"));
    } else if (word_is(r, 0, "bools")) {
        read_bool(r);
    } else if (word_is(r, 0, "node")) {
        Onnx__NodeProto *node = make_node(r);
        node->name = graft_arena_printf(r->arena, "n%u", r->node_count++);
        r->graph->node[r->graph->n_node++] = node;
    } else if (word_is(r, 0, "function")) {
        begin_function(r);
    } else if (word_is(r, 0, "graph")) {
        r->subgraphs[r->subgraph_count++] = r->graph = new_graph(r->arena, r->words[1]);
    } else if (word_is(r, 0, "end")) {
        end_graph(r);
    } else {
        fail_msg("no statement '%s'", r->words[0]);
    }
}

Onnx__ModelProto *onnx_text_message(graft_arena *arena, const char *text)
{
    text_reader r = {.arena = arena, .model = GRAFT_NEW(arena, Onnx__ModelProto, 1)};
    onnx__model_proto__init(r.model);
    r.model->has_ir_version = 1;
    r.model->ir_version = 8;
    r.model->n_opset_import = 1;
    r.model->opset_import = GRAFT_NEW(arena, Onnx__OperatorSetIdProto *, 1);
    r.model->opset_import[0] = make_set(arena, NULL, 13);
    r.model->graph = r.graph = new_graph(arena, graft_arena_strdup(arena, "test"));
    char *copy = graft_arena_strdup(arena, text);
    char *rest = NULL;
    for (char *part = strtok_r(copy, ";", &rest); part != NULL; part = strtok_r(NULL, ";", &rest)) {
        char *words = NULL;
        r.word_count = 0;
        for (char *word = strtok_r(part, " \n", &words); word != NULL;
             word = strtok_r(NULL, " \n", &words)) {
            assert_true(r.word_count < WORDS_MOST);
            r.words[r.word_count++] = word;
        }
        if (r.word_count > 0) {
            read_statement(&r);
        }
    }
    if (r.model->graph->n_output == 0) {
        static char y[] = "y";
        r.words[1] = y;
        r.word_count = 2;
        r.model->graph->output[r.model->graph->n_output++] = make_port(&r);
    }
    return r.model;
}

void onnx_text_bytes(graft_arena *arena, const char *text, uint8_t **data, size_t *size)
{
    graft_wire_encode(arena, &onnx_text_message(arena, text)->base, data, size);
}

void onnx_text_write(graft_env *env, const char *text, const char *path)
{
    uint8_t *data = NULL;
    size_t size = 0;
    onnx_text_bytes(env->unit, text, &data, &size);
    CHECK_OK(graft_file_write(env, path, data, size));
}

Onnx__ModelProto *onnx_text_unpack(graft_env *env, const uint8_t *data, size_t size)
{
    ProtobufCMessage *message = NULL;
    CHECK_OK(graft_wire_decode(env, env->life, (graft_bytes){"written", data, size},
                               &onnx__model_proto__descriptor, &message));
    return (Onnx__ModelProto *)message;
}

Onnx__ModelProto *onnx_text_written(graft_env *env, const graft_model *model,
                                    const graft_graph *graph)
{
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_model_pack(env, env->life, model, graph, &data, &size));
    return onnx_text_unpack(env, data, size);
}

graft_status onnx_text_read(graft_env *env, Onnx__ModelProto *proto,
                            const graft_model_options *options, graft_model **model)
{
    graft_onnx_source source = {.proto = proto, .file = "test.onnx"};
    return graft_onnx_read_message(env, env->life, &source, options, model);
}

graft_model *onnx_text_model(graft_env *env, const char *text)
{
    graft_model *model = NULL;
    graft_status status = onnx_text_read(env, onnx_text_message(env->life, text), NULL, &model);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    return model;
}

/* -------------------------------------------------------------------------------- printing */

void onnx_text_is(graft_arena *arena, const char *text, const char *expected)
{
    const bool whole = strstr(expected, "\nout ") != NULL;
    assert_string_equal(text, whole ? expected : graft_arena_printf(arena, "%s\nout y", expected));
}

static const char *value_text(graft_arena *arena, const graft_model *model,
                              const graft_graph *graph, graft_index value)
{
    if (value == GRAFT_NONE) {
        return "_";
    }
    const char *name = graft_model_value_name(model, graph, value);
    return name != NULL ? name : graft_arena_printf(arena, "%%%u", value);
}

static void print_attrs(graft_buffer *out, const graft_node *node)
{
    uint32_t count = GRAFT_MAX_ATTRS;
    while (count > 0 && node->attrs[count - 1] == 0) {
        count--;
    }
    for (uint32_t i = 0; i < count; i++) {
        const graft_attr_info *info = graft_op_attr(node->op, i);
        if (info != NULL && info->kind == GRAFT_ATTR_FLOAT) {
            graft_buffer_printf(out, " %g", (double)graft_float_of_bits(node->attrs[i]));
        } else {
            graft_buffer_printf(out, " %d", node->attrs[i]);
        }
    }
}

static void print_node(graft_buffer *out, const graft_model *model, const graft_graph *graph,
                       graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    for (uint32_t k = 0; k < node->output_count; k++) {
        graft_buffer_printf(out, "%s%s", k > 0 ? ", " : "",
                            value_text(out->arena, model, graph, graft_node_output(graph, n, k)));
    }
    const graft_op_info *op = graft_op(node->op);
    graft_buffer_printf(out, " = %s(", op == NULL ? graft_model_node_type(model, node) : op->name);
    for (uint32_t k = 0; k < node->input_count; k++) {
        graft_buffer_printf(out, "%s%s", k > 0 ? ", " : "",
                            value_text(out->arena, model, graph, graft_node_input(graph, n, k)));
    }
    graft_buffer_printf(out, ")%s", op == NULL ? " opaque" : "");
    print_attrs(out, node);
    graft_buffer_printf(out, "\n");
}

const char *onnx_text_print(graft_arena *arena, const graft_model *model, const graft_graph *graph)
{
    graft_buffer out = {.arena = arena};
    graft_order order;
    size_t bytes = graft_order_bytes(&graph->limits);
    CHECK_OK(graft_order_build(&order, graph, graft_arena_alloc(arena, bytes), bytes));
    for (graft_index i = 0; i < order.count; i++) {
        print_node(&out, model, graph, order.order[i]);
    }
    graft_buffer_printf(&out, "out");
    for (graft_index i = 0; i < graph->output_count; i++) {
        graft_buffer_printf(&out, " %s", value_text(arena, model, graph, graph->outputs[i]));
    }
    return out.data;
}

static void print_attribute(graft_buffer *out, const Onnx__AttributeProto *attribute)
{
    graft_buffer_printf(out, " %s=", attribute->name);
    if (attribute->has_i) {
        graft_buffer_printf(out, "%lld", (long long)attribute->i);
    } else if (attribute->has_f) {
        graft_buffer_printf(out, "%g", (double)attribute->f);
    } else if (attribute->has_s) {
        graft_buffer_printf(out, "%.*s", (int)attribute->s.len, (const char *)attribute->s.data);
    } else if (attribute->g != NULL) {
        graft_buffer_printf(out, "@%s", attribute->g->name);
    }
    for (size_t i = 0; i < attribute->n_ints; i++) {
        graft_buffer_printf(out, "%s%lld", i > 0 ? "," : "", (long long)attribute->ints[i]);
    }
}

const char *onnx_text_print_proto(graft_arena *arena, const Onnx__GraphProto *graph)
{
    graft_buffer out = {.arena = arena};
    for (size_t i = 0; i < graph->n_initializer; i++) {
        graft_buffer_printf(&out, "%s:", graph->initializer[i]->name);
        for (size_t k = 0; k < graph->initializer[i]->n_dims; k++) {
            graft_buffer_printf(&out, " %lld", (long long)graph->initializer[i]->dims[k]);
        }
        graft_buffer_printf(&out, "\n");
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        graft_buffer_printf(&out, "%s", node->op_type);
        for (size_t k = 0; k < node->n_input; k++) {
            graft_buffer_printf(&out, " %s", node->input[k][0] == '\0' ? "_" : node->input[k]);
        }
        graft_buffer_printf(&out, " ->");
        for (size_t k = 0; k < node->n_output; k++) {
            graft_buffer_printf(&out, " %s", node->output[k][0] == '\0' ? "_" : node->output[k]);
        }
        graft_buffer_printf(&out, "%s", node->n_attribute > 0 ? " :" : "");
        for (size_t k = 0; k < node->n_attribute; k++) {
            print_attribute(&out, node->attribute[k]);
        }
        graft_buffer_printf(&out, "\n");
    }
    graft_buffer_printf(&out, "out");
    for (size_t i = 0; i < graph->n_output; i++) {
        graft_buffer_printf(&out, " %s", graph->output[i]->name);
    }
    return out.data;
}

const float **onnx_text_values(graft_env *env, const graft_model *model)
{
    const graft_graph *graph = &model->graph;
    const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_WEIGHT) {
            values[v] = model->weights[value->source].data;
        } else if (value->kind == GRAFT_VALUE_INPUT) {
            size_t count = (size_t)graft_shape_elements(&value->shape);
            float *data = GRAFT_NEW(env->unit, float, count);
            for (size_t i = 0; i < count; i++) {
                data[i] = (float)i;
            }
            values[v] = data;
        }
    }
    return values;
}
