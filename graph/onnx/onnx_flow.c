/* onnx_flow.c - If, Loop and Scan of a model that is read to be run (see graph/flow.h). */
#include "graph/flow.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_attribute.h"
#include "graph/opaque.h"

#include <string.h>

graft_flow *graft_flow_of(const graft_model *model, const graft_node *node)
{
    return model == NULL || node->source >= model->record_count
               ? NULL
               : model->onnx->groups[model->records[node->source].onnx_node].flow;
}

static bool is_known(const graft_shape *shape)
{
    return shape->rank <= GRAFT_MAX_RANK && graft_shape_bytes(shape) > 0;
}

static bool is_one(const graft_shape *shape, uint32_t dtype)
{
    return shape->dtype == dtype && is_known(shape) && graft_shape_elements(shape) == 1;
}

/* Item `k` of a list that may not be given; 0 then. */
static int64_t item_of(const Onnx__NodeProto *node, const char *name, size_t k)
{
    const Onnx__AttributeProto *list = graft_onnx_attribute(node, name);
    return list == NULL || k >= list->n_ints ? 0 : list->ints[k];
}

/* A node whose bodies are read. */
typedef struct {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    const graft_onnx_group *group;
    graft_flow *flow;
    graft_shape *formals; /* Of what a body declares as its inputs. */
    graft_shape *outs;
    graft_flow_piece *read;
    graft_flow_piece *made;
    const char *names[2];
} flow_reader;

/* The axis of a piece, counted from the front. */
static bool set_axis(graft_flow_piece *piece, int64_t axis, int64_t direction)
{
    axis += axis < 0 ? piece->whole.rank : 0;
    piece->axis = (uint32_t)axis;
    piece->reversed = direction != 0;
    return axis >= 0 && axis < piece->whole.rank;
}

/* ----------------------------------------------------------------------- what bodies are given */

static void look_at_if(flow_reader *f)
{
    const graft_shape condition = graft_onnx_shape_of_input(f->reader, f->node, 0);
    f->flow->kind = GRAFT_FLOW_IF;
    f->flow->body_count = 2;
    if (!is_one(&condition, GRAFT_DTYPE_BOOL)) {
        f->flow->refusal = "its condition is not one truth value";
    }
}

/* The shapes of states are those that they begin with. */
static void look_at_loop(flow_reader *f, size_t inputs)
{
    const graft_shape most = graft_onnx_shape_of_input(f->reader, f->node, 0);
    const graft_shape goes = graft_onnx_shape_of_input(f->reader, f->node, 1);
    const bool limited = graft_onnx_input(f->reader->onnx, f->node, 0) != NULL;
    const bool asked = graft_onnx_input(f->reader->onnx, f->node, 1) != NULL;
    f->flow->kind = GRAFT_FLOW_LOOP;
    f->flow->body_count = 1;
    f->flow->first_state = 2;
    f->flow->state_count = f->node->n_input < 2 ? 0 : (uint32_t)f->node->n_input - 2;
    if (inputs != f->flow->state_count + 2U || (limited && !is_one(&most, GRAFT_DTYPE_I64)) ||
        (asked && !is_one(&goes, GRAFT_DTYPE_BOOL))) {
        f->flow->refusal = "its rounds are not one number and one truth value";
        return;
    }
    f->formals[0] = (graft_shape){.dtype = GRAFT_DTYPE_I64};
    f->formals[1] = (graft_shape){.dtype = GRAFT_DTYPE_BOOL};
    for (uint32_t k = 0; k < f->flow->state_count; k++) {
        f->formals[2 + k] = graft_onnx_shape_of_input(f->reader, f->node, 2 + k);
    }
}

static void look_at_scan(flow_reader *f, size_t inputs)
{
    const Onnx__AttributeProto *count = graft_onnx_attribute(f->node, "num_scan_inputs");
    f->flow->kind = GRAFT_FLOW_SCAN;
    f->flow->body_count = 1;
    if (f->reader->onnx->opset < GRAFT_ONNX_SCAN_PLAIN || count == NULL || count->i < 1 ||
        (uint64_t)count->i > inputs || inputs != f->node->n_input) {
        f->flow->refusal = "it is a form of Scan that Graft does not know";
        return;
    }
    f->flow->read_count = (uint32_t)count->i;
    f->flow->state_count = (uint32_t)(inputs - f->flow->read_count);
    for (size_t k = 0; k < inputs; k++) {
        graft_shape shape = graft_onnx_shape_of_input(f->reader, f->node, k);
        const size_t piece = k - f->flow->state_count;
        if (k < f->flow->state_count) {
            f->formals[k] = shape;
            continue;
        }
        f->read[piece].whole = shape;
        if (!is_known(&shape) ||
            !set_axis(&f->read[piece], item_of(f->node, "scan_input_axes", piece),
                      item_of(f->node, "scan_input_directions", piece)) ||
            (piece > 0 && f->flow->rounds != (uint32_t)shape.dims[f->read[piece].axis])) {
            f->flow->refusal = "what it goes through has sizes that are not known or differ";
            return;
        }
        const uint32_t axis = f->read[piece].axis;
        f->flow->rounds = (uint32_t)shape.dims[axis];
        memmove(&shape.dims[axis], &shape.dims[axis + 1],
                (shape.rank - axis - 1) * sizeof shape.dims[0]);
        shape.dims[--shape.rank] = 0;
        f->formals[k] = shape;
    }
}

/* -------------------------------------------------------------------------- reading the bodies */

/* By input of a body's model: the input of the node that it is, or that its own input stands
 * for. */
static void list_sources(const flow_reader *f, const Onnx__GraphProto *body, graft_flow_body *made)
{
    const graft_model *model = made->model;
    uint32_t *from = GRAFT_NEW(f->reader->arena, uint32_t, model->input_count);
    graft_names *names = graft_names_new(f->reader->env->scratch);
    for (size_t k = 0; k < body->n_input; k++) {
        (void)graft_names_add(names, text_or_empty(body->input[k]->name), (uint32_t)k);
    }
    for (uint32_t k = 0; k < f->group->captured_count; k++) {
        (void)graft_names_add(names, f->reader->onnx->entries[f->group->captured[k]].name,
                              (uint32_t)f->node->n_input + k);
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        from[i] = graft_names_find(names, model->inputs[i].name);
    }
    made->from = from;
}

/* Whole numbers among a Loop's states, as they are before a round. */
typedef struct {
    bool *known; /* By state. */
    int64_t *first;
    int64_t *steps; /* What a round adds. */
} counters;

/* Takes the numbers that a round begins with for constants. */
static void know_numbers(const flow_reader *f, const counters *c, int64_t round,
                         Onnx__GraphProto *body)
{
    for (uint32_t k = 0; k < f->flow->state_count; k++) {
        const graft_shape *shape = &f->formals[2 + k];
        if (c->known[k]) {
            int64_t *number = GRAFT_NEW(f->reader->arena, int64_t, 1);
            graft_whole_put(number, shape->dtype, 0, c->first[k] + round * c->steps[k]);
            body->initializer = graft_onnx_append(
                f->reader->arena, body->initializer, body->n_initializer++,
                graft_onnx_make_tensor(f->reader->arena, text_or_empty(body->input[2 + k]->name),
                                       shape->dtype, &(int64_t){1}, shape->rank, number));
        }
    }
}

/* Reads a body, before round `round` where numbers are known. */
static graft_status read_model(flow_reader *f, uint32_t which, const counters *c, int64_t round,
                               graft_model **model)
{
    graft_env *env = f->reader->env;
    const int verbosity = env->verbosity;
    graft_model_options options = *f->reader->options;
    graft_onnx_source source = {.file = graft_arena_printf(f->reader->arena, "%s: %s of node '%s'",
                                                           f->reader->model->file, f->names[which],
                                                           f->flow->name)};
    options.sizes = NULL;
    options.size_count = 0;
    options.frozen = NULL;
    options.frozen_count = 0;
    options.given_count = 0;
    options.again = false;
    options.staged = false; /* A body whose sizes change is peeled (onnx_peel.c). */
    options.told_count = 0;
    GRAFT_PASS(graft_onnx_copy_body(f->reader, f->node, f->names[which],
                                    f->flow->kind == GRAFT_FLOW_IF ? NULL : f->formals,
                                    &source.proto));
    if (c != NULL) {
        know_numbers(f, c, round, source.proto->graph);
    }
    env->verbosity = 0;
    const graft_status status =
        graft_onnx_read_message(env, f->reader->arena, &source, &options, model);
    env->verbosity = verbosity;
    return status;
}

static graft_status read_body(flow_reader *f, uint32_t which)
{
    graft_flow_body *made = &f->flow->bodies[which];
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(f->node, f->names[which]);
    GRAFT_PASS(read_model(f, which, NULL, 0, &made->model));
    made->graph = &made->model->graph;
    list_sources(f, attribute->g, made);
    return GRAFT_OK;
}

/* ----------------------------------------------------------------------- what comes out of them */

static const graft_shape *shape_of_result(const graft_flow_body *body, size_t k)
{
    return &body->graph->values[body->graph->outputs[k]].shape;
}

static void judge_if(flow_reader *f)
{
    for (size_t k = 0; k < f->node->n_output; k++) {
        const graft_shape *shape = shape_of_result(&f->flow->bodies[0], k);
        if (!is_known(shape)) {
            f->flow->refusal = "the sizes of what it makes are not known";
        } else if (!graft_shape_equal(shape, shape_of_result(&f->flow->bodies[1], k))) {
            f->flow->refusal = "its branches make tensors of different sizes or types";
        }
        f->outs[k] = *shape;
    }
}

/* Results of a round, without a Loop's condition, that are collected. */
static void judge_collected(flow_reader *f, size_t first)
{
    const graft_flow_body *body = &f->flow->bodies[0];
    for (uint32_t k = 0; k < f->flow->made_count; k++) {
        const graft_shape *part = shape_of_result(body, first + k);
        graft_flow_piece *piece = &f->made[k];
        piece->whole = *part;
        if (!is_known(part) || part->rank == GRAFT_MAX_RANK || f->flow->rounds == 0) {
            f->flow->refusal = "the sizes of what it collects are not known";
            return;
        }
        piece->whole.rank++;
        if (!set_axis(piece, item_of(f->node, "scan_output_axes", k),
                      item_of(f->node, "scan_output_directions", k))) {
            f->flow->refusal = "it collects along an axis that is not there";
            return;
        }
        memmove(&piece->whole.dims[piece->axis + 1], &piece->whole.dims[piece->axis],
                (part->rank - piece->axis) * sizeof part->dims[0]);
        piece->whole.dims[piece->axis] = (int32_t)f->flow->rounds;
        if (graft_shape_elements(&piece->whole) > INT32_MAX) {
            f->flow->refusal = "what it collects is too large";
        }
        f->outs[f->flow->state_count + k] = piece->whole;
    }
}

static void judge_rounds(flow_reader *f)
{
    const graft_flow_body *body = &f->flow->bodies[0];
    const size_t condition = f->flow->kind == GRAFT_FLOW_LOOP;
    const size_t outputs = body->graph->output_count;
    if (outputs != f->node->n_output + condition || f->node->n_output < f->flow->state_count) {
        f->flow->refusal = "its body makes another number of results";
        return;
    }
    if (condition == 1 && !is_one(shape_of_result(body, 0), GRAFT_DTYPE_BOOL)) {
        f->flow->refusal = "its condition is not one truth value";
        return;
    }
    for (uint32_t k = 0; k < f->flow->state_count; k++) {
        const graft_shape *shape = shape_of_result(body, condition + k);
        if (!is_known(shape) || !graft_shape_equal(shape, &f->formals[f->flow->first_state + k])) {
            f->flow->refusal = "the sizes of what goes round are not known or change";
            return;
        }
        f->outs[k] = *shape;
    }
    f->flow->made_count = (uint32_t)f->node->n_output - f->flow->state_count;
    judge_collected(f, condition + f->flow->state_count);
}

/* A Loop that collects makes as many rounds as its first input says, where that is known, or as its
 * condition counts. */
static void find_rounds(flow_reader *f)
{
    graft_onnx_entry *entry = graft_onnx_input(f->reader->onnx, f->node, 0);
    const graft_onnx_ints *ints = entry == NULL ? NULL : graft_onnx_ints_of_entry(f->reader, entry);
    if (ints != NULL && ints->count == 1 && ints->items[0] > 0 && ints->items[0] <= INT32_MAX) {
        f->flow->rounds = (uint32_t)ints->items[0];
    }
}

/* ------------------------------------------------------------- rounds that a condition counts */

/* Result `k` of a body, where it is one whole number or truth value that is known. */
static bool find_number(const graft_model *model, uint32_t k, int64_t *number)
{
    const graft_value *value =
        k < model->graph.output_count ? &model->graph.values[model->graph.outputs[k]] : NULL;
    const graft_model_weight *weight =
        value != NULL && value->kind == GRAFT_VALUE_WEIGHT ? &model->weights[value->source] : NULL;
    const bool found =
        weight != NULL && weight->data != NULL &&
        (is_one(&weight->shape, GRAFT_DTYPE_I64) || is_one(&weight->shape, GRAFT_DTYPE_I32) ||
         is_one(&weight->shape, GRAFT_DTYPE_BOOL));
    *number = found ? graft_whole_at(weight->data, weight->shape.dtype, 0) : 0;
    return found;
}

/* The states that are known at first. */
static counters find_counters(const flow_reader *f)
{
    graft_arena *arena = f->reader->arena;
    const counters c = {GRAFT_NEW(arena, bool, f->flow->state_count),
                        GRAFT_NEW(arena, int64_t, f->flow->state_count),
                        GRAFT_NEW(arena, int64_t, f->flow->state_count)};
    for (uint32_t k = 0; k < f->flow->state_count; k++) {
        graft_onnx_entry *entry = graft_onnx_input(f->reader->onnx, f->node, 2 + k);
        const graft_onnx_ints *ints =
            entry == NULL ? NULL : graft_onnx_ints_of_entry(f->reader, entry);
        c.known[k] = ints != NULL && ints->count == 1 && ints->items[0] >= INT32_MIN &&
                     ints->items[0] <= INT32_MAX;
        c.first[k] = c.known[k] ? ints->items[0] : 0;
    }
    return c;
}

/* What a round makes of the numbers: whether another one follows. False when that is not known, or
 * when they do not grow as before; those that do not are not known any more at round 0. */
static graft_status try_round(flow_reader *f, const counters *c, int64_t round, bool *known,
                              int64_t *goes)
{
    graft_model *model = NULL;
    GRAFT_PASS(read_model(f, 0, c, round, &model));
    *known = find_number(model, 0, goes);
    for (uint32_t k = 0; k < f->flow->state_count; k++) {
        int64_t next = 0;
        const bool found = !c->known[k] || find_number(model, 1 + k, &next);
        const int64_t step = next - c->first[k] - round * c->steps[k];
        if (c->known[k] && (!found || (round > 0 && step != c->steps[k]))) {
            c->known[k] = false;
            *known = false;
        } else if (round == 0) {
            c->steps[k] = step;
        }
    }
    return GRAFT_OK;
}

/* How many rounds a Loop makes whose condition is one of numbers that grow by steps: such as are
 * asked for twice as far each time, until there is no other round, and then between. */
static graft_status count_rounds(flow_reader *f)
{
    enum { ROUNDS_MOST = 1 << 24 };
    const counters c = find_counters(f);
    int64_t before = -1; /* A round behind which there is another one. */
    int64_t last = 0;
    bool known = false;
    int64_t goes = 1;
    for (uint32_t k = 0; k <= f->flow->state_count && !known; k++) {
        GRAFT_PASS(try_round(f, &c, 0, &known, &goes)); /* Once more with what is left. */
    }
    while (known && goes != 0 && last < ROUNDS_MOST) {
        before = last;
        last = 2 * last + 1;
        GRAFT_PASS(try_round(f, &c, last, &known, &goes));
    }
    const bool ends = known && goes == 0;
    while (known && ends && last - before > 1) {
        const int64_t between = before + (last - before) / 2;
        GRAFT_PASS(try_round(f, &c, between, &known, &goes));
        *(goes != 0 ? &before : &last) = between;
    }
    f->flow->rounds = known && ends ? (uint32_t)last + 1 : 0;
    return GRAFT_OK;
}

/* The shapes of what an If makes that becomes a branch after this reading (onnx_inline.c): what
 * follows from them may decide another one, which need not wait for the next reading then. */
static graft_status read_choice(flow_reader *f, graft_shape *shapes)
{
    graft_onnx_entry *entry = graft_onnx_input(f->reader->onnx, f->node, 0);
    const graft_model_weight *known =
        entry == NULL ? NULL : graft_onnx_known_of(entry, f->reader->weights);
    graft_flow flow = {.name = f->node->output[0], .kind = GRAFT_FLOW_IF};
    graft_model *model = NULL;
    if (known == NULL || known->data_bytes != 1 || !is_one(&known->shape, GRAFT_DTYPE_BOOL)) {
        return GRAFT_OK;
    }
    f->flow = &flow;
    GRAFT_PASS(read_model(f, *(const uint8_t *)known->data != 0 ? 0 : 1, NULL, 0, &model));
    for (size_t k = 0; k < f->node->n_output && k < model->graph.output_count; k++) {
        shapes[k] = model->graph.values[model->graph.outputs[k]].shape;
    }
    return GRAFT_OK;
}

graft_status graft_onnx_read_flow(graft_onnx_reader *reader, uint32_t index, graft_shape *shapes)
{
    graft_arena *arena = reader->arena;
    graft_onnx_group *group = &reader->onnx->groups[index];
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    flow_reader f = {.reader = reader, .node = node, .group = group};
    const uint32_t count = graft_onnx_list_bodies(node, f.names);
    const Onnx__AttributeProto *body = count == 0 ? NULL : graft_onnx_attribute(node, f.names[0]);
    if (reader->onnx->keep_all || body == NULL) {
        return GRAFT_OK;
    }
    if (!reader->flows) {
        return count == 2 && graft_onnx_is_to_run(reader) ? read_choice(&f, shapes) : GRAFT_OK;
    }
    const size_t inputs = body->g->n_input;
    f.flow = GRAFT_NEW(arena, graft_flow, 1);
    f.formals = GRAFT_NEW(arena, graft_shape, inputs + 2);
    f.outs = GRAFT_NEW(arena, graft_shape, node->n_output);
    f.read = GRAFT_NEW(arena, graft_flow_piece, inputs);
    f.made = GRAFT_NEW(arena, graft_flow_piece, node->n_output);
    f.flow->name = text_or_empty(node->name)[0] != '\0' ? node->name : node->output[0];
    f.flow->outs = f.outs;
    f.flow->read = f.read;
    f.flow->made = f.made;
    group->flow = f.flow;
    if (count == 2) {
        look_at_if(&f);
    } else if (strcmp(node->op_type, "Loop") == 0) {
        look_at_loop(&f, inputs);
        find_rounds(&f);
    } else {
        look_at_scan(&f, inputs);
    }
    for (uint32_t k = 0; k < inputs && f.flow->refusal == NULL && count == 1; k++) {
        f.flow->refusal =
            is_known(&f.formals[k]) ? NULL : "the sizes of what its body reads are not known";
    }
    if (f.flow->refusal == NULL && f.flow->kind == GRAFT_FLOW_LOOP && f.flow->rounds == 0 &&
        node->n_output > f.flow->state_count) {
        GRAFT_PASS(count_rounds(&f));
    }
    for (uint32_t b = 0; b < count && f.flow->refusal == NULL; b++) {
        GRAFT_PASS(read_body(&f, b));
    }
    if (f.flow->refusal == NULL) {
        if (count == 2) {
            judge_if(&f);
        } else {
            judge_rounds(&f);
        }
    }
    if (f.flow->refusal == NULL) {
        memcpy(shapes, f.outs, node->n_output * sizeof shapes[0]);
    }
    return GRAFT_OK;
}
