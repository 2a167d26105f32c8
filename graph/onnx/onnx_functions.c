/* onnx_functions.c - a call of a function that the file brings along becomes the function's body,
 * in the message, before a model is read (see onnx.h).
 *
 * Each call gets a copy of the body: formal inputs become what the call reads, attributes that
 * refer to those of the function become the call's, or the function's defaults, or are left out;
 * all else gets names of its own. Calls inside of bodies follow in the next round. Nodes of a body
 * are read as the model's operator sets say, so a function of others stays a function. */
#include "graph/base/log.h"
#include "graph/onnx/onnx_inline.h"

#include <inttypes.h>
#include <string.h>

/* A model's nodes once all is inlined, and the bytes of all copies of bodies beyond twice the
 * file. */
enum { NODES_MOST = 1 << 17, BYTES_MOST = 1 << 28 };

typedef struct {
    Onnx__FunctionProto *proto;
    Onnx__GraphProto body; /* Its nodes. */
    size_t nodes;          /* What a call comes to, with all calls inside, at most... */
    size_t bytes;          /* ...the limits. */
    bool stays;
    bool called;
} function;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_onnx_source *source;
    graft_names *numbers; /* Of `functions`, by domain, name and overload. */
    function *functions;
    uint32_t count;
    size_t bytes_most;
    graft_inlining in;
    uint32_t calls; /* Inlined so far. */
} inliner;

static const char *domain_of(const char *domain)
{
    return graft_onnx_is_own_domain(domain) ? "" : domain;
}

/* ---------------------------------------------------------------------------- which there are */

static char *make_key(graft_arena *arena, const char *domain, const char *name,
                      const char *overload)
{
    return graft_arena_printf(arena, "%s\n%s\n%s", domain_of(domain), text_or_empty(name),
                              text_or_empty(overload));
}

/* The number of the function that a node calls; GRAFT_NONE for an operator. */
static uint32_t find_call(const inliner *i, const Onnx__NodeProto *node)
{
    GRAFT_SCOPED(i->env->scratch);
    return graft_names_find(i->numbers,
                            make_key(i->env->scratch, node->domain, node->op_type, node->overload));
}

static graft_status name_functions(inliner *i)
{
    for (uint32_t f = 0; f < i->count; f++) {
        Onnx__FunctionProto *proto = i->source->proto->functions[f];
        function *made = &i->functions[f];
        made->proto = proto;
        onnx__graph_proto__init(&made->body);
        made->body.node = proto->node;
        made->body.n_node = proto->n_node;
        if (!graft_names_add(i->numbers,
                             make_key(i->arena, proto->domain, proto->name, proto->overload), f)) {
            return GRAFT_FAIL(i->env, GRAFT_BAD_INPUT, "%s: function '%s' is given twice",
                              i->source->file, text_or_empty(proto->name));
        }
    }
    return GRAFT_OK;
}

/* The functions that nodes of `graph` call, each as often as it is; pushed at `items`. */
static uint32_t *push_calls(inliner *i, Onnx__GraphProto *graph, uint32_t *items, uint32_t *count,
                            uint32_t *capacity)
{
    const graft_graph_list graphs = graft_inlining_graphs(i->arena, graph);
    for (uint32_t g = 0; g < graphs.count; g++) {
        for (size_t n = 0; n < graphs.items[g]->n_node; n++) {
            const uint32_t callee = find_call(i, graphs.items[g]->node[n]);
            if (callee != GRAFT_NONE) {
                items = graft_arena_grow(i->arena, items, *count, capacity, 16, sizeof(items[0]));
                items[(*count)++] = callee;
            }
        }
    }
    return items;
}

/* ------------------------------------------------------------------------ which can be inlined */

static size_t sum_to_most(size_t a, size_t b, size_t most) { return a + b > most ? most : a + b; }

/* What a graph comes to once its calls are inlined. */
static void measure(const inliner *i, Onnx__GraphProto *graph, size_t *nodes, size_t *bytes)
{
    const graft_graph_list graphs = graft_inlining_graphs(i->arena, graph);
    for (uint32_t g = 0; g < graphs.count; g++) {
        *nodes = sum_to_most(*nodes, graphs.items[g]->n_node, NODES_MOST);
        for (size_t n = 0; n < graphs.items[g]->n_node; n++) {
            const uint32_t f = find_call(i, graphs.items[g]->node[n]);
            if (f != GRAFT_NONE && !i->functions[f].stays) {
                const function *callee = &i->functions[f];
                *nodes = sum_to_most(*nodes, callee->nodes + callee->proto->n_output, NODES_MOST);
                *bytes = sum_to_most(*bytes, callee->bytes, i->bytes_most);
            }
        }
    }
}

/* The version of an operator set; 0 when it is not imported. */
static int64_t find_import(Onnx__OperatorSetIdProto *const *imports, size_t count,
                           const char *domain)
{
    for (size_t k = 0; k < count; k++) {
        if (strcmp(domain_of(imports[k]->domain), domain) == 0) {
            return imports[k]->version;
        }
    }
    return 0;
}

static void add_import(const inliner *i, const char *domain, int64_t version)
{
    Onnx__ModelProto *proto = i->source->proto;
    Onnx__OperatorSetIdProto *import = GRAFT_NEW(i->arena, Onnx__OperatorSetIdProto, 1);
    onnx__operator_set_id_proto__init(import);
    import->domain = graft_arena_strdup(i->arena, domain);
    import->version = version;
    import->has_version = 1;
    proto->opset_import =
        graft_onnx_append(i->arena, proto->opset_import, proto->n_opset_import++, import);
}

/* Whether the model reads the operators of a body as the function does: for each the same version
 * of its set, which the model is made to import if it does not. */
static bool agrees_on_sets(const inliner *i, function *f)
{
    const Onnx__ModelProto *model = i->source->proto;
    const graft_graph_list graphs = graft_inlining_graphs(i->arena, &f->body);
    for (uint32_t g = 0; g < graphs.count; g++) {
        for (size_t n = 0; n < graphs.items[g]->n_node; n++) {
            const Onnx__NodeProto *node = graphs.items[g]->node[n];
            const char *domain = domain_of(node->domain);
            const uint32_t callee = find_call(i, node);
            if (callee != GRAFT_NONE && !i->functions[callee].stays) {
                continue;
            }
            const int64_t own =
                find_import(f->proto->opset_import, f->proto->n_opset_import, domain);
            const int64_t all = find_import(model->opset_import, model->n_opset_import, domain);
            if (own != 0 && all == 0) {
                add_import(i, domain, own);
            } else if (own != all || own == 0) {
                graft_log(i->env, 1,
                          "%s: function '%s' stays: it uses %s of set '%s' in version %" PRId64
                          ", the model has %" PRId64,
                          i->source->file, text_or_empty(f->proto->name),
                          text_or_empty(node->op_type), domain, own, all);
                return false;
            }
        }
    }
    return true;
}

/* Callees are known. */
static void judge_function(inliner *i, function *f)
{
    if (domain_of(f->proto->domain)[0] == '\0') {
        f->stays = true; /* An operator of ONNX to some runtimes, the function to others. */
        return;
    }
    f->bytes = protobuf_c_message_get_packed_size(&f->proto->base);
    measure(i, &f->body, &f->nodes, &f->bytes);
    f->stays = !agrees_on_sets(i, f);
}

static graft_status judge_functions(inliner *i)
{
    uint32_t *first = GRAFT_NEW(i->arena, uint32_t, i->count + 1);
    uint32_t *order = GRAFT_NEW(i->arena, uint32_t, i->count);
    uint32_t *items = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    uint32_t on_cycle = 0;
    for (uint32_t f = 0; f < i->count; f++) {
        first[f] = count;
        items = push_calls(i, &i->functions[f].body, items, &count, &capacity);
    }
    first[i->count] = count;
    GRAFT_RETURN_IF(!graft_onnx_sort(i->env->scratch, i->count, first, items, order, &on_cycle),
                    GRAFT_FAIL(i->env, GRAFT_BAD_INPUT, "%s: function '%s' calls itself",
                               i->source->file, text_or_empty(i->functions[on_cycle].proto->name)));
    for (uint32_t k = 0; k < i->count; k++) {
        judge_function(i, &i->functions[order[k]]);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------------------ one call */

static graft_status clone(const inliner *i, const ProtobufCMessage *from, ProtobufCMessage **to)
{
    return graft_wire_copy(i->env, i->arena, i->source->file, from, to);
}

static const Onnx__AttributeProto *find_attribute(Onnx__AttributeProto *const *attributes,
                                                  size_t count, const char *name)
{
    for (size_t a = 0; a < count; a++) {
        if (strcmp(text_or_empty(attributes[a]->name), name) == 0 &&
            text_or_empty(attributes[a]->ref_attr_name)[0] == '\0') {
            return attributes[a];
        }
    }
    return NULL;
}

/* Attributes of a node of a body become what the call, or else the function, says. */
static graft_status bind_attributes(const inliner *i, const Onnx__NodeProto *call,
                                    const Onnx__FunctionProto *proto, Onnx__NodeProto *node)
{
    size_t count = 0;
    for (size_t a = 0; a < node->n_attribute; a++) {
        Onnx__AttributeProto *attribute = node->attribute[a];
        const char *name = text_or_empty(attribute->ref_attr_name);
        if (name[0] != '\0') {
            const Onnx__AttributeProto *given =
                find_attribute(call->attribute, call->n_attribute, name);
            ProtobufCMessage *copy = NULL;
            given = given != NULL
                        ? given
                        : find_attribute(proto->attribute_proto, proto->n_attribute_proto, name);
            if (given == NULL) {
                continue;
            }
            GRAFT_PASS(clone(i, &given->base, &copy));
            ((Onnx__AttributeProto *)copy)->name = attribute->name;
            attribute = (Onnx__AttributeProto *)copy;
        }
        node->attribute[count++] = attribute;
    }
    node->n_attribute = count;
    return GRAFT_OK;
}

/* Formal inputs become those of the call. Whatever else is named inside of a body is its own, also
 * what nothing there makes: it is nothing of the model's. */
static void rename_inside(inliner *i, const Onnx__NodeProto *call, const Onnx__FunctionProto *proto,
                          const graft_graph_list *graphs)
{
    static char absent[1];
    const char *within = call->output[0];
    for (uint32_t g = 0; g < graphs->count; g++) {
        const Onnx__GraphProto *graph = graphs->items[g];
        for (size_t n = 0; n < graph->n_node; n++) {
            for (size_t k = 0; k < graph->node[n]->n_input; k++) {
                graft_inlining_rename_anew(&i->in, within, graph->node[n]->input[k]);
            }
            for (size_t k = 0; g > 0 && k < graph->node[n]->n_output; k++) {
                graft_inlining_rename_anew(&i->in, within, graph->node[n]->output[k]);
            }
        }
        for (size_t k = 0; k < graph->n_input; k++) {
            graft_inlining_rename_anew(&i->in, within, graph->input[k]->name);
        }
        for (size_t k = 0; k < graph->n_initializer; k++) {
            graft_inlining_rename_anew(&i->in, within, graph->initializer[k]->name);
        }
    }
    for (size_t k = 0; k < proto->n_input; k++) {
        graft_inlining_rename(&i->in, proto->input[k], k < call->n_input ? call->input[k] : absent);
    }
}

static graft_status inline_call(inliner *i, Onnx__GraphProto *graph, const Onnx__NodeProto *call,
                                const function *f)
{
    ProtobufCMessage *copy = NULL;
    Onnx__GraphProto body;
    GRAFT_PASS(clone(i, &f->proto->base, &copy));
    Onnx__FunctionProto *proto = (Onnx__FunctionProto *)copy;
    onnx__graph_proto__init(&body);
    body.node = proto->node;
    body.n_node = proto->n_node;
    body.n_output = call->n_output;
    body.output = GRAFT_NEW(i->arena, Onnx__ValueInfoProto *, call->n_output);
    for (size_t k = 0; k < call->n_output; k++) {
        body.output[k] = GRAFT_NEW(i->arena, Onnx__ValueInfoProto, 1);
        onnx__value_info_proto__init(body.output[k]);
        body.output[k]->name = proto->output[k];
    }
    const graft_graph_list graphs = graft_inlining_graphs(i->arena, &body);
    graft_inlining_start(&i->in);
    rename_inside(i, call, proto, &graphs);
    graft_inlining_branch(&i->in, graph, call, &body);
    for (uint32_t g = 0; g < graphs.count; g++) {
        for (size_t n = 0; n < graphs.items[g]->n_node; n++) {
            GRAFT_PASS(bind_attributes(i, call, proto, graphs.items[g]->node[n]));
        }
    }
    i->calls++;
    return GRAFT_OK;
}

/* The function that is to be put in place of a node; NULL when the node stays. */
static const function *function_for(const inliner *i, const Onnx__NodeProto *node)
{
    const uint32_t number = find_call(i, node);
    const function *f = number == GRAFT_NONE ? NULL : &i->functions[number];
    return f != NULL && !f->stays && node->n_output > 0 && node->n_output <= f->proto->n_output &&
                   node->n_input <= f->proto->n_input
               ? f
               : NULL;
}

/* ----------------------------------------------------------------------------------- all calls */

static graft_status inline_in_graph(inliner *i, Onnx__GraphProto *graph)
{
    graft_inlining_into(&i->in, graph);
    for (size_t n = 0; n < graph->n_node; n++) {
        const function *f = function_for(i, graph->node[n]);
        if (f == NULL) {
            graft_inlining_push(&i->in, graph->node[n]);
        } else {
            GRAFT_PASS(inline_call(i, graph, graph->node[n], f));
        }
    }
    graft_inlining_settle(&i->in, graph);
    return GRAFT_OK;
}

/* Functions that calls which stay need, and those that they call. */
static void drop_uncalled(inliner *i)
{
    Onnx__ModelProto *proto = i->source->proto;
    uint32_t capacity = 0;
    uint32_t count = 0;
    uint32_t *calls = push_calls(i, proto->graph, NULL, &count, &capacity);
    Onnx__FunctionProto **kept = GRAFT_NEW(i->arena, Onnx__FunctionProto *, i->count);
    for (uint32_t k = 0; k < count; k++) {
        function *f = &i->functions[calls[k]];
        if (!f->called) {
            f->called = true;
            calls = push_calls(i, &f->body, calls, &count, &capacity);
        }
    }
    proto->n_functions = 0;
    for (uint32_t f = 0; f < i->count; f++) {
        if (i->functions[f].called) {
            kept[proto->n_functions++] = i->functions[f].proto;
        }
    }
    proto->functions = kept;
}

static graft_status inline_everywhere(inliner *i)
{
    Onnx__GraphProto *graph = i->source->proto->graph;
    for (uint32_t before = UINT32_MAX; before != i->calls;) {
        before = i->calls;
        const graft_graph_list graphs = graft_inlining_graphs(i->arena, graph);
        for (uint32_t g = 0; g < graphs.count; g++) {
            GRAFT_PASS(inline_in_graph(i, graphs.items[g]));
        }
    }
    return GRAFT_OK;
}

graft_status graft_onnx_inline_functions(graft_env *env, graft_arena *arena,
                                         const graft_onnx_source *source)
{
    Onnx__ModelProto *proto = source->proto;
    size_t nodes = 0;
    size_t bytes = 0;
    if (proto->n_functions == 0 || proto->graph == NULL || proto->n_training_info > 0) {
        return GRAFT_OK;
    }
    inliner i = {.env = env,
                 .arena = arena,
                 .source = source,
                 .numbers = graft_names_new(arena),
                 .functions = GRAFT_NEW(arena, function, proto->n_functions),
                 .count = (uint32_t)proto->n_functions,
                 .bytes_most = BYTES_MOST + 2 * protobuf_c_message_get_packed_size(&proto->base)};
    GRAFT_PASS(name_functions(&i));
    GRAFT_PASS(judge_functions(&i));
    measure(&i, proto->graph, &nodes, &bytes);
    if (nodes >= NODES_MOST || bytes >= i.bytes_most) {
        graft_log(env, 1,
                  "%s: functions stay: inlined they come to more than %d nodes or %zu bytes",
                  source->file, NODES_MOST, i.bytes_most);
        return GRAFT_OK;
    }
    i.in = graft_inlining_new(arena, proto->graph);
    GRAFT_PASS(inline_everywhere(&i));
    drop_uncalled(&i);
    if (i.calls > 0) {
        graft_log(env, 1, "%s: %u calls of functions of the file become their bodies", source->file,
                  i.calls);
    }
    return GRAFT_OK;
}
