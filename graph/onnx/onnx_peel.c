/* onnx_peel.c - rounds of a Loop whose sizes change become nodes of the message (see onnx.h).
 *
 *      Loop(most, goes, s) -> t, y             s1, y1 = body(0, goes, s)
 *                                      ->      t, ys = Loop(most, goes1, s1), from round 1 on
 *                                              y = Concat(y1, ys)
 *
 * This is done in a later stage, when everything that the Loop begins with is known: all rounds at
 * once where the body does not decide how many there are, else one after the other. */
#include "graph/onnx/onnx_inline.h"
#include "graph/opaque.h"

#include <inttypes.h>

enum { ROUNDS_MOST = 1 << 10, NODES_MOST = 1 << 20, OPSET_AXES_INPUT = 13 };

static const char round_name[] = "graft_round";

typedef struct {
    graft_env *env;
    const graft_onnx_source *source;
    const graft_model *model;
    graft_inlining in;
    Onnx__GraphProto *graph;
} peeling;

/* A Loop that is being peeled: what the next round begins with. */
typedef struct {
    Onnx__NodeProto *node;
    const Onnx__GraphProto *body;
    const char **state; /* Its condition, then what goes round. */
    size_t state_count; /* Without the condition. */
    const char ***rows; /* By what is collected: of each round... */
    size_t row_count;   /* ...so far. */
    int64_t at;         /* The round. */
} loop;

static const graft_model_weight *known_input(const graft_model *model, const Onnx__NodeProto *node,
                                             size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
    return entry == NULL ? NULL : graft_onnx_known_of(entry, model->weights);
}

/* Whether all that the node reads is known. */
static bool is_ready(const graft_model *model, size_t index)
{
    const Onnx__NodeProto *node = model->onnx->proto->graph->node[index];
    const graft_onnx_group *group = &model->onnx->groups[index];
    bool ready = group->is_late && graft_onnx_is(node, "Loop") && node->n_input >= 2;
    for (size_t k = 0; k < node->n_input && ready; k++) {
        ready =
            graft_onnx_input(model->onnx, node, k) == NULL || known_input(model, node, k) != NULL;
    }
    for (uint32_t k = 0; k < group->captured_count && ready; k++) {
        ready = !model->onnx->entries[group->captured[k]].late;
    }
    return ready;
}

/* A number or truth value of the node; `absent` where it is not given or none. */
static int64_t number_of(const graft_model *model, const Onnx__NodeProto *node, size_t k,
                         int64_t absent)
{
    const graft_model_weight *weight = known_input(model, node, k);
    const bool one =
        weight != NULL && weight->data != NULL && graft_shape_elements(&weight->shape) == 1 &&
        (weight->shape.dtype == GRAFT_DTYPE_I64 || weight->shape.dtype == GRAFT_DTYPE_BOOL);
    return !one                                     ? absent
           : weight->shape.dtype == GRAFT_DTYPE_I64 ? *(const int64_t *)weight->data
                                                    : *(const uint8_t *)weight->data != 0;
}

static const Onnx__NodeProto *producer_of(const Onnx__GraphProto *body, const char *name)
{
    for (size_t i = 0; i < body->n_node; i++) {
        for (size_t k = 0; k < body->node[i]->n_output; k++) {
            if (strcmp(body->node[i]->output[k], name) == 0) {
                return body->node[i];
            }
        }
    }
    return NULL;
}

/* Whether a round of a body that goes on always says so: it gives the condition back. */
static bool goes_on(const Onnx__GraphProto *body)
{
    const char *name = text_or_empty(body->output[0]->name);
    const char *given = text_or_empty(body->input[1]->name);
    const Onnx__NodeProto *node = producer_of(body, name);
    const Onnx__AttributeProto *value = node == NULL ? NULL : graft_onnx_attribute(node, "value");
    if (node != NULL && graft_onnx_lists("Identity Cast", node->op_type) && node->n_input == 1) {
        return strcmp(node->input[0], given) == 0;
    }
    return strcmp(name, given) == 0 ||
           (node != NULL && graft_onnx_is(node, "Constant") && value != NULL && value->t != NULL &&
            value->t->data_type == GRAFT_DTYPE_BOOL &&
            ((value->t->has_raw_data && value->t->raw_data.len == 1 &&
              value->t->raw_data.data[0] != 0) ||
             (value->t->n_int32_data == 1 && value->t->int32_data[0] != 0)));
}

/* A tensor of the graph, which borrows `data`. */
static const char *add_tensor(peeling *p, const char *name, uint32_t dtype, const int64_t *dims,
                              size_t rank, const void *data)
{
    p->graph->initializer = graft_onnx_append(
        p->in.arena, p->graph->initializer, p->graph->n_initializer++,
        graft_onnx_make_tensor(p->in.arena, name, (int32_t)dtype, dims, rank, data));
    return name;
}

/* A name that nothing has. */
static const char *name_anew(peeling *p, const loop *l, const char *what, size_t k)
{
    const char *name = NULL;
    uint32_t i = 0;
    do {
        name = graft_arena_printf(p->in.arena, "%s/%" PRId64 ".%s%zu.%u",
                                  text_or_empty(l->node->name), l->at, what, k, i++);
    } while (!graft_names_add(p->in.taken, name, 0));
    return name;
}

static const char *number_anew(peeling *p, const loop *l, const char *what, uint32_t dtype,
                               size_t rank, int64_t number)
{
    int64_t *data = GRAFT_NEW(p->in.arena, int64_t, 1);
    graft_whole_put(data, dtype, 0, number);
    return add_tensor(p, name_anew(p, l, what, 0), dtype, &(int64_t){1}, rank, data);
}

/* A tensor as a row of what is collected. */
static const char *add_row(peeling *p, const loop *l, const char *part, size_t k)
{
    const char *row = name_anew(p, l, "row", k);
    const char *in[2] = {part, NULL};
    const bool listed = p->model->onnx->opset < OPSET_AXES_INPUT;
    if (!listed) {
        in[1] = number_anew(p, l, "axis", GRAFT_DTYPE_I64, 1, 0);
    }
    Onnx__NodeProto *node =
        graft_onnx_make_node(p->in.arena, "Unsqueeze", in, listed ? 1 : 2, &row, 1);
    if (listed) {
        graft_onnx_set_ints(p->in.arena, node, "axes", &(int64_t){0}, 1);
    }
    graft_inlining_push(&p->in, node);
    return row;
}

/* Names are changed in a copy; weights, which may be large, share their data with it. */
static graft_status copy_body(peeling *p, const Onnx__GraphProto *body, Onnx__GraphProto **copy)
{
    Onnx__GraphProto bare = *body;
    ProtobufCMessage *message = NULL;
    bare.n_initializer = 0;
    GRAFT_PASS(graft_wire_copy(p->env, p->in.arena, p->source->file, &bare.base, &message));
    *copy = (Onnx__GraphProto *)message;
    (*copy)->n_initializer = body->n_initializer;
    (*copy)->initializer = GRAFT_NEW(p->in.arena, Onnx__TensorProto *, body->n_initializer);
    for (size_t i = 0; i < body->n_initializer; i++) {
        (*copy)->initializer[i] = GRAFT_NEW(p->in.arena, Onnx__TensorProto, 1);
        *(*copy)->initializer[i] = *body->initializer[i];
    }
    return GRAFT_OK;
}

/* The nodes of one round. */
static graft_status peel_round(peeling *p, loop *l)
{
    graft_arena *arena = p->in.arena;
    const Onnx__GraphProto *body = l->body;
    Onnx__GraphProto *copy = NULL;
    GRAFT_PASS(copy_body(p, body, &copy));
    const char **outputs = GRAFT_NEW(arena, const char *, body->n_output);
    for (size_t k = 0; k < body->n_output; k++) {
        outputs[k] = name_anew(p, l, "out", k);
    }
    const Onnx__NodeProto *round =
        graft_onnx_make_node(arena, "Loop", NULL, 0, outputs, body->n_output);
    graft_inlining_start(&p->in);
    graft_inlining_rename(&p->in, copy->input[0]->name,
                          graft_borrow(number_anew(p, l, "round", GRAFT_DTYPE_I64, 0, l->at)));
    for (size_t k = 0; k <= l->state_count; k++) {
        graft_inlining_rename(&p->in, copy->input[1 + k]->name, graft_borrow(l->state[k]));
    }
    graft_inlining_branch(&p->in, p->graph, round, copy);
    for (size_t k = 0; k <= l->state_count; k++) {
        l->state[k] = outputs[k];
    }
    for (size_t k = l->state_count + 1; k < body->n_output; k++) {
        l->rows[k - l->state_count - 1][l->row_count] =
            add_row(p, l, outputs[k], k - l->state_count - 1);
    }
    l->row_count++;
    l->at++;
    return GRAFT_OK;
}

static void push_identity(peeling *p, const char *from, const char *to)
{
    if (to[0] != '\0') {
        graft_inlining_push(&p->in,
                            graft_onnx_make_node(p->in.arena, "Identity", &from, 1, &to, 1));
    }
}

/* What a Loop collects in no rounds, of parts as it declares them. */
static void add_no_rows(peeling *p, const char *name, const Onnx__ValueInfoProto *part)
{
    int64_t dims[GRAFT_MAX_RANK] = {0};
    const Onnx__TensorShapeProto *shape = graft_onnx_declared_shape(part->type);
    const size_t rank = shape == NULL || shape->n_dim >= GRAFT_MAX_RANK ? 0 : shape->n_dim;
    for (size_t i = 0; i < rank; i++) {
        dims[1 + i] = shape->dim[i]->dim_value;
    }
    add_tensor(p, name, graft_onnx_declared_dtype(part->type, GRAFT_DTYPE_F32), dims, 1 + rank, "");
}

/* What is left of the Loop, if anything, and its results. */
static void finish(peeling *p, loop *l, bool ended)
{
    graft_arena *arena = p->in.arena;
    const Onnx__NodeProto *node = l->node;
    const char **inputs = GRAFT_NEW(arena, const char *, node->n_input);
    const char **outputs = GRAFT_NEW(arena, const char *, node->n_output);
    for (size_t k = 0; k < node->n_output; k++) {
        const size_t row = k - l->state_count;
        outputs[k] = node->output[k];
        if (k < l->state_count || outputs[k][0] == '\0') {
            if (ended) {
                push_identity(p, l->state[1 + k], outputs[k]);
            }
            continue;
        }
        const char *behind = name_anew(p, l, "rest", row);
        if (ended) {
            add_no_rows(p, behind, l->body->output[1 + k]);
        }
        l->rows[row][l->row_count] = behind;
        Onnx__NodeProto *concat =
            graft_onnx_make_node(arena, "Concat", l->rows[row], l->row_count + 1, &outputs[k], 1);
        graft_onnx_set_int(arena, concat, "axis", 0);
        graft_inlining_push(&p->in, concat);
        outputs[k] = behind;
    }
    if (!ended) {
        for (size_t k = 0; k < node->n_input; k++) {
            inputs[k] = k == 0 ? node->input[0] : l->state[k - 1];
        }
        Onnx__NodeProto *rest =
            graft_onnx_make_node(arena, "Loop", inputs, node->n_input, outputs, node->n_output);
        rest->name = node->name;
        rest->attribute = graft_onnx_append(arena, NULL, 0, graft_onnx_attribute(node, "body"));
        rest->n_attribute = 1;
        graft_onnx_set_int(arena, rest, round_name, l->at);
        graft_inlining_push(&p->in, rest);
    }
}

static graft_status peel(peeling *p, Onnx__NodeProto *node)
{
    graft_arena *arena = p->in.arena;
    const Onnx__GraphProto *body = graft_onnx_attribute(node, "body")->g;
    loop l = {.node = node,
              .body = body,
              .at = graft_onnx_int(node, round_name, 0),
              .state_count = node->n_input - 2};
    const int64_t most = number_of(p->model, node, 0, INT64_MAX);
    const bool goes = number_of(p->model, node, 1, 1) != 0;
    const bool always = goes_on(body);
    const int64_t left = !goes || most <= l.at ? 0 : most - l.at;
    const int64_t rounds = always || left == 0 ? left : 1;
    GRAFT_RETURN_IF(
        rounds > ROUNDS_MOST || l.at + rounds > ROUNDS_MOST ||
            p->in.node_count + (size_t)rounds * body->n_node > NODES_MOST,
        GRAFT_FAIL(p->env, GRAFT_CAPACITY,
                   "%s: node '%s' (Loop): its sizes change from round to round, and it makes "
                   "more than %d rounds or %d nodes",
                   p->source->file, text_or_empty(node->name), ROUNDS_MOST, NODES_MOST));
    l.state = GRAFT_NEW(arena, const char *, node->n_input);
    l.rows = GRAFT_NEW(arena, const char **, body->n_output);
    for (size_t k = 0; k < body->n_output; k++) {
        l.rows[k] = GRAFT_NEW(arena, const char *, (size_t)rounds + 1);
    }
    for (size_t k = 1; k < node->n_input; k++) {
        l.state[k - 1] = node->input[k];
    }
    if (l.state[0][0] == '\0') {
        l.state[0] = number_anew(p, &l, "goes", GRAFT_DTYPE_BOOL, 0, 1);
    }
    for (int64_t i = 0; i < rounds; i++) {
        GRAFT_PASS(peel_round(p, &l));
    }
    finish(p, &l, rounds == left && (always || left == 0));
    return GRAFT_OK;
}

graft_status graft_onnx_peel(graft_env *env, graft_arena *arena, const graft_onnx_source *source,
                             const graft_model *model, uint32_t *count)
{
    Onnx__GraphProto *graph = source->proto->graph;
    *count = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        *count += is_ready(model, i);
    }
    if (*count == 0) {
        return GRAFT_OK;
    }
    peeling p = {.env = env,
                 .source = source,
                 .model = model,
                 .in = graft_inlining_new(arena, graph),
                 .graph = graph};
    graft_inlining_into(&p.in, graph);
    for (uint32_t k = 0; k < model->told_count; k++) {
        (void)graft_names_add(p.in.taken, model->told[k].name, 0);
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__GraphProto *body =
            is_ready(model, i) ? graft_onnx_attribute(graph->node[i], "body")->g : NULL;
        const size_t inputs = graph->node[i]->n_input;
        if (body == NULL) {
            graft_inlining_push(&p.in, graph->node[i]);
        } else if (body->n_input != inputs || body->n_output != graph->node[i]->n_output + 1 ||
                   graph->node[i]->n_output < inputs - 2 || body->n_sparse_initializer > 0) {
            return GRAFT_FAIL(
                env, GRAFT_UNSUPPORTED,
                "%s: node '%s' (Loop): its body does not fit it, or is of a form that "
                "is not run",
                source->file, text_or_empty(graph->node[i]->name));
        } else {
            GRAFT_PASS(peel(&p, graph->node[i]));
        }
    }
    graft_inlining_settle(&p.in, graph);
    return GRAFT_OK;
}
