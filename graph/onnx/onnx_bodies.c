/* onnx_bodies.c - bodies of If, Loop and Scan are rewritten as models of their own (see onnx.h).
 *
 *      If c -> y                                 a model
 *          then_branch: r = f(x, W)       ->         input x, weight W: r = f(x, W)
 *
 * What a body reads from outside is an input of its model, of the sizes that are known outside, or a
 * weight. Of what comes back the nodes and the new weights take the body's place: what came from
 * outside stays there, the body's own inputs and outputs stay as they are, and a new name that
 * something else in the file has becomes another. Bodies within bodies are the business of whoever
 * reads the body's model. */
#include "graph/base/log.h"
#include "graph/onnx/onnx_attribute.h"
#include "graph/onnx/onnx_inline.h"

#include <string.h>

enum { IR_SETTABLE = 4, OPSET_BODIES = 7, NO_AXIS = GRAFT_MAX_RANK };

/* ------------------------------------------------------------------------ which bodies there are */

uint32_t graft_onnx_list_bodies(const Onnx__NodeProto *node, const char *names[2])
{
    const bool chooses = graft_onnx_is(node, "If");
    names[0] = chooses ? "then_branch" : "body";
    names[1] = "else_branch";
    return text_or_empty(node->domain)[0] != '\0'                       ? 0
           : chooses                                                    ? 2
           : graft_onnx_is(node, "Loop") || graft_onnx_is(node, "Scan") ? 1
                                                                        : 0;
}

/* Every If, Loop and Scan has its bodies, which make as much as the node gives. */
static graft_status check_bodies(graft_onnx_reader *reader, size_t index)
{
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    const char *names[2];
    const uint32_t count = reader->onnx->keep_all ? 0 : graft_onnx_list_bodies(node, names);
    const size_t made = node->n_output + (graft_onnx_is(node, "Loop"));
    for (uint32_t i = 0; i < count; i++) {
        const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, names[i]);
        const Onnx__GraphProto *body = attribute == NULL ? NULL : attribute->g;
        if (body == NULL || body->n_output < made) {
            return GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                              "%s: node %zu '%s' (%s): its %s has %zu outputs, not %zu",
                              reader->model->file, index, text_or_empty(node->name), node->op_type,
                              names[i], body == NULL ? 0 : body->n_output, made);
        }
    }
    return GRAFT_OK;
}

graft_status graft_onnx_look_into(graft_onnx_reader *reader, size_t index)
{
    graft_onnx *onnx = reader->onnx;
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    const graft_onnx_captured found =
        graft_onnx_find_captured(reader->arena, reader->env->scratch, onnx, node);
    onnx->groups[index].captured = found.entries;
    onnx->groups[index].captured_count = found.count;
    for (uint32_t k = 0; k < found.count; k++) {
        onnx->entries[found.entries[k]].read_count++;
    }
    if (found.undefined != NULL) {
        return GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                          "%s: node %zu '%s' (%s): its body reads '%s', which nothing produces",
                          reader->model->file, index, text_or_empty(node->name),
                          text_or_empty(node->op_type), found.undefined);
    }
    return check_bodies(reader, index);
}

bool graft_onnx_has_bodies(const Onnx__ModelProto *proto)
{
    bool has = false;
    for (size_t i = 0; proto->graph != NULL && i < proto->graph->n_node && !has; i++) {
        const char *names[2];
        has = graft_onnx_list_bodies(proto->graph->node[i], names) > 0;
    }
    return has;
}

/* Whether there is something to rewrite: two nodes, or one with bodies of its own. */
static bool has_work(const Onnx__GraphProto *body)
{
    uint32_t work = 0;
    for (size_t i = 0; body != NULL && i < body->n_node; i++) {
        const char *names[2];
        const bool constant = graft_onnx_is(body->node[i], "Constant");
        work += constant ? 0 : 1 + graft_onnx_list_bodies(body->node[i], names);
    }
    return work > 1;
}

/* ----------------------------------------------------------------------------- a body as a model */

typedef struct graft_onnx_taken {
    Onnx__AttributeProto *attribute;
    Onnx__GraphProto *old;
    size_t outer_weights; /* Of the graph around, before. */
} taken_body;

/* A weight that was made for a body. */
typedef struct {
    Onnx__GraphProto *body; /* NULL: it is the graph's around. */
    Onnx__TensorProto *tensor;
} new_weight;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_onnx_source *source;
    const graft_model_bodies *how;
    const graft_model *model; /* A reading of the source. */
    graft_inlining names;     /* All that the source defines, bodies included. */
    new_weight *weights;
    uint32_t weight_count;
    uint32_t weight_capacity;
    graft_onnx_bodies *bodies;
} rewriting;

/* One body. */
typedef struct {
    const Onnx__NodeProto *node;
    Onnx__AttributeProto *attribute;
    graft_names *outside; /* What it reads from there. */
    Onnx__ModelProto proto;
    Onnx__GraphProto graph;
    graft_model_body told;
} body_model;

/* A tensor that is known at all sizes; NULL where there is none for the value. */
static Onnx__TensorProto *tensor_of_entry(const rewriting *r, const graft_onnx_entry *entry)
{
    const graft_onnx_ints *ints = r->model->is_open ? NULL : entry->ints;
    Onnx__TensorProto *tensor = NULL;
    if (entry->weight != GRAFT_NONE && r->model->weights[entry->weight].tensor != NULL) {
        tensor = GRAFT_COPY(r->arena, r->model->weights[entry->weight].tensor, 1);
        tensor->name = graft_arena_strdup(r->arena, entry->name);
    } else if (entry->weight == GRAFT_NONE && ints != NULL && ints->dtype == GRAFT_DTYPE_I64) {
        const int64_t size = ints->count;
        tensor = graft_onnx_make_tensor(r->arena, graft_arena_strdup(r->arena, entry->name),
                                        GRAFT_DTYPE_I64, &size, ints->rank, ints->items);
    }
    return tensor;
}

/* A value from outside as an input of a body, without axis `dropped`. */
static Onnx__ValueInfoProto *declare_entry(const rewriting *r, const graft_onnx_entry *entry,
                                           const char *name, uint32_t dropped)
{
    const graft_graph *graph = &r->model->graph;
    const graft_shape *shape =
        entry->value == GRAFT_NONE ? NULL : &graph->values[entry->value].shape;
    int64_t dims[GRAFT_MAX_RANK] = {0};
    const bool known = shape != NULL && shape->rank <= GRAFT_MAX_RANK;
    const uint32_t rank = !known ? 0 : dropped < shape->rank ? shape->rank - 1U : shape->rank;
    Onnx__ValueInfoProto *info = graft_onnx_make_port(
        r->arena, name, known ? graft_onnx_declared_dtype(entry->type, shape->dtype) : 0, dims,
        rank);
    if (!known) {
        info->type = GRAFT_NEW(r->arena, Onnx__TypeProto, 1);
        onnx__type_proto__init(info->type);
        if (entry->type != NULL && dropped == NO_AXIS) {
            *info->type = *entry->type;
        }
        return info;
    }
    for (uint32_t i = 0, k = 0; i < shape->rank; i++) {
        if (i == dropped) {
            continue;
        }
        Onnx__TensorShapeProto__Dimension *dim = info->type->tensor_type->shape->dim[k++];
        const graft_model_axis axis = r->model->is_open
                                          ? graft_model_axis_of(r->model, graph, entry->value, i)
                                          : (graft_model_axis){.fixed = true};
        dim->has_dim_value = axis.fixed;
        dim->dim_value = axis.fixed ? shape->dims[i] : 0;
        dim->dim_param = axis.name == NULL ? NULL : graft_arena_strdup(r->arena, axis.name);
    }
    return info;
}

/* Inputs of a Scan's body that say nothing of their sizes have those of what the node reads: of its
 * state, and of what it goes through without the axis along which it does. */
static void complete_inputs(const rewriting *r, body_model *m)
{
    const Onnx__AttributeProto *count = graft_onnx_attribute(m->node, "num_scan_inputs");
    const Onnx__AttributeProto *axes = graft_onnx_attribute(m->node, "scan_input_axes");
    const size_t inputs = m->node->n_input;
    if (strcmp(m->node->op_type, "Scan") != 0 || r->model->onnx->opset < GRAFT_ONNX_SCAN_PLAIN ||
        count == NULL || count->i < 0 || (uint64_t)count->i > inputs ||
        inputs != m->attribute->g->n_input) {
        return;
    }
    const size_t states = inputs - (size_t)count->i;
    for (size_t k = 0; k < inputs; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(r->model->onnx, m->node, k);
        const Onnx__TypeProto *type = m->graph.input[k]->type;
        const bool declared =
            type != NULL && (type->tensor_type == NULL || type->tensor_type->shape != NULL);
        const bool listed = axes != NULL && k >= states && k - states < axes->n_ints;
        const int64_t axis = listed ? axes->ints[k - states] : 0;
        if (!declared && entry != NULL && entry->value != GRAFT_NONE) {
            const graft_shape *shape = &r->model->graph.values[entry->value].shape;
            const int64_t from_front = axis + (axis < 0 ? shape->rank : 0);
            const bool sound =
                shape->rank <= GRAFT_MAX_RANK && from_front >= 0 && from_front < shape->rank;
            if (k < states || sound) {
                m->graph.input[k] = declare_entry(r, entry, text_or_empty(m->graph.input[k]->name),
                                                  k < states ? NO_AXIS : (uint32_t)from_front);
            }
        }
    }
}

/* Puts what is read from outside among the body's inputs and initializers. */
static void add_outside(const rewriting *r, body_model *m)
{
    const graft_onnx *onnx = r->model->onnx;
    const Onnx__GraphProto *body = m->attribute->g;
    Onnx__NodeProto alone = *m->node;
    alone.n_attribute = 1;
    alone.attribute = &m->attribute;
    const graft_onnx_captured found =
        graft_onnx_find_captured(r->arena, r->env->scratch, onnx, &alone);
    m->graph.input = GRAFT_NEW(r->arena, Onnx__ValueInfoProto *, body->n_input + found.count);
    m->graph.initializer =
        GRAFT_NEW(r->arena, Onnx__TensorProto *, body->n_initializer + found.count);
    for (size_t i = 0; i < body->n_input; i++) {
        m->graph.input[i] = body->input[i];
    }
    for (size_t i = 0; i < body->n_initializer; i++) {
        m->graph.initializer[i] = body->initializer[i];
    }
    complete_inputs(r, m);
    m->outside = graft_names_new(r->arena);
    for (uint32_t k = 0; k < found.count; k++) {
        const graft_onnx_entry *entry = &onnx->entries[found.entries[k]];
        Onnx__TensorProto *tensor = tensor_of_entry(r, entry);
        (void)graft_names_add(m->outside, entry->name, k);
        if (tensor != NULL) {
            m->graph.initializer[m->graph.n_initializer++] = tensor;
        } else {
            m->graph.input[m->graph.n_input++] = declare_entry(r, entry, entry->name, NO_AXIS);
        }
    }
}

/* Those of the model's sizes that the body's inputs leave open. */
static void note_sizes(const rewriting *r, body_model *m)
{
    const graft_model *model = r->model;
    graft_names *open = graft_names_new(r->arena);
    graft_model_size *sizes = GRAFT_NEW(r->arena, graft_model_size, model->size_count);
    for (size_t i = 0; i < m->graph.n_input; i++) {
        const Onnx__ValueInfoProto *info = m->graph.input[i];
        const Onnx__TensorShapeProto *shape = graft_onnx_declared_shape(info->type);
        const size_t rank = shape == NULL || shape->n_dim > GRAFT_MAX_RANK ? 0 : shape->n_dim;
        for (size_t k = 0; k < rank; k++) {
            const char *name = graft_onnx_open_size(r->arena, info->name, shape, k);
            (void)graft_names_add(open, text_or_empty(name), 0);
        }
    }
    for (uint32_t i = 0; i < model->size_count; i++) {
        if (graft_names_find(open, model->sizes[i].name) != GRAFT_NONE) {
            sizes[m->told.size_count++] = model->sizes[i];
        }
    }
    m->told.sizes = sizes;
}

static void make_body(const rewriting *r, body_model *m)
{
    m->proto = *r->source->proto;
    m->proto.n_metadata_props = 0;
    m->graph = *m->attribute->g;
    m->proto.graph = &m->graph;
    add_outside(r, m);
    note_sizes(r, m);
}

/* Nodes are copied, since reading changes them; weights, which may be large, are shared. */
graft_status graft_onnx_copy_body(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                  const char *name, const graft_shape *formals,
                                  Onnx__ModelProto **copy)
{
    const graft_onnx_source source = {.proto =
                                          graft_arena_alloc(reader->arena, sizeof *source.proto)};
    graft_model view = *reader->model;
    view.weights = reader->weights;
    const rewriting r = {
        .env = reader->env, .arena = reader->arena, .source = &source, .model = &view};
    body_model m = {.node = node, .attribute = graft_onnx_attribute(node, name)};
    ProtobufCMessage *message = NULL;
    *source.proto = *reader->onnx->proto;
    make_body(&r, &m);
    for (size_t k = 0; formals != NULL && k < m.attribute->g->n_input; k++) {
        int64_t dims[GRAFT_MAX_RANK] = {0};
        for (uint32_t i = 0; i < formals[k].rank; i++) {
            dims[i] = formals[k].dims[i];
        }
        m.graph.input[k] =
            graft_onnx_make_port(reader->arena, text_or_empty(m.graph.input[k]->name),
                                 formals[k].dtype, dims, formals[k].rank);
    }
    Onnx__TensorProto **weights = m.graph.initializer;
    const size_t weight_count = m.graph.n_initializer;
    m.graph.n_initializer = 0;
    GRAFT_PASS(
        graft_wire_copy(reader->env, reader->arena, reader->model->file, &m.proto.base, &message));
    *copy = (Onnx__ModelProto *)message;
    (*copy)->graph->initializer = weights;
    (*copy)->graph->n_initializer = weight_count;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------------ what comes back */

/* A name that something else in the file has becomes another; `own` are those of the old body. */
static void name_apart(rewriting *r, const graft_inlining *own, char *name)
{
    if (graft_names_find(own->taken, text_or_empty(name)) == GRAFT_NONE &&
        !graft_names_add(r->names.taken, text_or_empty(name), 0)) {
        graft_inlining_rename_anew(&r->names, "graft_body", name);
    }
}

static void name_all_apart(rewriting *r, Onnx__GraphProto *old, Onnx__GraphProto *graph)
{
    const graft_inlining own = graft_inlining_new(r->arena, old);
    const graft_graph_list graphs = graft_inlining_graphs(r->arena, graph);
    graft_inlining_start(&r->names);
    for (uint32_t g = 0; g < graphs.count; g++) {
        const Onnx__GraphProto *inner = graphs.items[g];
        for (size_t i = 0; i < inner->n_initializer; i++) {
            name_apart(r, &own, inner->initializer[i]->name);
        }
        for (size_t i = 0; i < inner->n_node; i++) {
            for (size_t k = 0; k < inner->node[i]->n_output; k++) {
                name_apart(r, &own, inner->node[i]->output[k]);
            }
        }
    }
    graft_inlining_replace(&r->names, graph);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (graft_names_find(own.taken, graph->initializer[i]->name) == GRAFT_NONE) {
            GRAFT_PUSH(r->arena, r->weights, r->weight_count, r->weight_capacity, 16) =
                (new_weight){graph, graph->initializer[i]};
        }
    }
}

static void drop_weight(const new_weight *weight)
{
    Onnx__GraphProto *body = weight->body;
    size_t kept = 0;
    for (size_t i = 0; i < body->n_initializer; i++) {
        if (body->initializer[i] != weight->tensor) {
            body->initializer[kept++] = body->initializer[i];
        }
    }
    body->n_initializer = kept;
}

/* One of several bodies' becomes the graph's around. */
static void move_out(const rewriting *r, new_weight *weight)
{
    Onnx__GraphProto *graph = r->source->proto->graph;
    drop_weight(weight);
    graph->initializer =
        graft_onnx_append(r->arena, graph->initializer, graph->n_initializer++, weight->tensor);
    weight->body = NULL;
}

/* New weights that several bodies made alike are stored once, outside: branches of one model share
 * what they were made of. */
static void share_weights(rewriting *r)
{
    for (uint32_t i = 0; i < r->weight_count; i++) {
        new_weight *a = &r->weights[i];
        for (uint32_t k = i + 1; k < r->weight_count; k++) {
            new_weight *b = &r->weights[k];
            if (b->body == NULL || b->body == a->body ||
                !graft_onnx_tensors_equal(a->tensor, b->tensor)) {
                continue;
            }
            if (a->body != NULL) {
                move_out(r, a);
            }
            drop_weight(b);
            graft_inlining_start(&r->names);
            graft_inlining_rename(&r->names, b->tensor->name, a->tensor->name);
            graft_inlining_replace(&r->names, b->body);
            *b = r->weights[--r->weight_count];
            k--;
        }
    }
}

/* What comes back takes the place of the body. */
static void take_body(rewriting *r, body_model *m, Onnx__GraphProto *graph)
{
    Onnx__GraphProto *old = m->attribute->g;
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (graft_names_find(m->outside, text_or_empty(graph->initializer[i]->name)) ==
            GRAFT_NONE) {
            graph->initializer[kept++] = graph->initializer[i];
        }
    }
    graph->n_initializer = kept;
    graph->n_input = old->n_input;
    graph->input = old->input;
    graph->n_output = old->n_output;
    graph->output = old->output;
    name_all_apart(r, old, graph);
    m->attribute->g = graph;
    GRAFT_PUSH(r->arena, r->bodies->taken, r->bodies->count, r->bodies->capacity, 8) =
        (taken_body){m->attribute, old, r->source->proto->graph->n_initializer};
}

void graft_onnx_restore_bodies(const graft_onnx_source *source, graft_onnx_bodies *bodies)
{
    for (uint32_t i = bodies->count; i-- > 0;) {
        bodies->taken[i].attribute->g = bodies->taken[i].old;
        source->proto->graph->n_initializer = bodies->taken[i].outer_weights;
    }
    bodies->count = 0;
}

static graft_status read_body(rewriting *r, body_model *m)
{
    ProtobufCMessage *message = NULL;
    GRAFT_PASS(
        graft_wire_read(r->env, r->arena, r->how->path, &onnx__model_proto__descriptor, &message));
    take_body(r, m, ((Onnx__ModelProto *)message)->graph);
    return GRAFT_OK;
}

static graft_status rewrite_body(rewriting *r, const Onnx__NodeProto *node,
                                 Onnx__AttributeProto *attribute)
{
    graft_status status = GRAFT_OK;
    body_model m = {.node = node, .attribute = attribute};
    const char *name = text_or_empty(node->name);
    m.told.path = r->how->path;
    m.told.lean = r->bodies->lean;
    m.told.where = graft_arena_printf(
        r->arena, "%s of node '%s' (%s)", attribute->name,
        name[0] == '\0' && node->n_output > 0 ? node->output[0] : name, node->op_type);
    make_body(r, &m);
    if (graft_onnx_external_bytes(&m.graph) > GRAFT_ONNX_INLINE_MOST) {
        graft_log(r->env, 1, "%s: %s reads too much to be rewritten by itself", r->source->file,
                  m.told.where);
        return GRAFT_OK;
    }
    GRAFT_CHECK(graft_wire_write(r->env, r->how->path, &m.proto.base));
    const int verbosity = r->env->verbosity;
    r->env->verbosity -= verbosity > 0; /* Of what happens inside there is less to say. */
    status = r->how->rewrite(r->env, r->how->context, &m.told);
    r->env->verbosity = verbosity;
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(r->env, 1, "%s: %s stays as it is: %s", r->source->file, m.told.where,
                  r->env->message);
        graft_env_clear(r->env);
        status = GRAFT_OK;
        goto done;
    }
    GRAFT_TRY(r->env, status, "in %s of %s", m.told.where, r->source->file);
    GRAFT_CHECK(read_body(r, &m));
done:
    (void)remove(r->how->path);
    return status;
}

graft_status graft_onnx_rewrite_bodies(graft_env *env, graft_arena *arena,
                                       const graft_onnx_source *source,
                                       const graft_model_options *options, const graft_model *model,
                                       graft_onnx_bodies *bodies)
{
    const Onnx__GraphProto *graph = source->proto->graph;
    rewriting r = {.env = env,
                   .arena = arena,
                   .source = source,
                   .how = options->bodies,
                   .bodies = bodies,
                   .model = model,
                   .names = graft_inlining_new(arena, source->proto->graph)};
    if (model->onnx->keep_all || model->onnx->opset < OPSET_BODIES ||
        source->proto->ir_version < IR_SETTABLE) {
        return GRAFT_OK;
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const char *names[2];
        const uint32_t has = graft_onnx_list_bodies(graph->node[i], names);
        for (uint32_t k = 0; k < has; k++) {
            Onnx__AttributeProto *attribute = graft_onnx_attribute(graph->node[i], names[k]);
            if (has_work(attribute->g)) {
                GRAFT_PASS(rewrite_body(&r, graph->node[i], attribute));
            }
        }
    }
    share_weights(&r);
    return GRAFT_OK;
}
