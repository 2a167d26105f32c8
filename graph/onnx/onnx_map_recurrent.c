/* onnx_map_recurrent.c - planners of LSTM, GRU and RNN, which come apart into their steps where the
 * options say so (graft_model_options.unroll; see onnx.h).
 *
 * Shapes are those of the ONNX specification: X (steps, batch, features), W (directions, gates *
 * units, features), R (directions, gates * units, units), B (directions, 2 * gates * units). One
 * product multiplies the inputs of all steps, one of each step its gates. */
#include "graph/onnx/onnx.h"

#include <string.h>

typedef graft_onnx_operand operand;

/* A node, and the direction of it that is planned. */
typedef struct net {
    graft_onnx_plan *plan;
    int32_t gates;
    int32_t steps;
    int32_t batch;
    int32_t features;
    int32_t units;
    int32_t directions;
    bool reverse;     /* The first direction. */
    bool batch_first; /* Of X, Y and states. */
    bool linear;      /* GRU: the reset gate comes after the product. */
    int32_t direction;
    operand
        recurrent;    /* (units, gates * units); of a GRU that is not linear: (units, 2 * units), */
    operand of_reset; /* and what the reset state is multiplied by, (units, units). */
    operand bias;     /* (gates * units), behind that product; of a GRU that is linear. */
    operand h;        /* (batch, units) */
    operand c;        /* Likewise, of an LSTM. */
} net;

/* ------------------------------------------------------------------------------ pieces */

static operand slice(net *n, operand x, int32_t axis, int32_t start, int32_t end)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {[GRAFT_ATTR_slice_axis] = axis,
                                            [GRAFT_ATTR_slice_start] = start,
                                            [GRAFT_ATTR_slice_end] = end};
    const bool whole = start == 0 && end == graft_plan_shape(n->plan, x).dims[axis];
    return whole ? x : graft_plan_add1(n->plan, GRAFT_OP_slice, attrs, x);
}

/* Cuts `at` off the front; *rest is what is left. */
static operand cut(net *n, operand x, int32_t axis, int32_t at, operand *rest)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_split_axis] = axis, [GRAFT_ATTR_split_at] = at};
    operand first = graft_plan_add1(n->plan, GRAFT_OP_split, attrs, x);
    *rest = first;
    rest->slot = 1;
    return first;
}

static operand join(net *n, operand a, operand b, int32_t axis)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {[GRAFT_ATTR_concat_axis] = axis};
    const operand inputs[GRAFT_MAX_INPUTS] = {a, b};
    return graft_plan_add(n->plan, GRAFT_OP_concat, attrs, inputs);
}

/* `order` begins with the order of x's axes; the rest does not count. */
static operand transpose(net *n, operand x, const int32_t order[4])
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {order[0], order[1], order[2], order[3]};
    return graft_plan_add1(n->plan, GRAFT_OP_transpose, attrs, x);
}

static operand of(net *n, uint32_t op, operand x) { return graft_plan_add1(n->plan, op, NULL, x); }

static operand both(net *n, uint32_t op, operand a, operand b)
{
    return graft_plan_add2(n->plan, op, NULL, a, b);
}

/* What input `k` has for the direction, without that axis; its rank is then `rank`. */
static operand of_direction(net *n, operand x, uint32_t rank)
{
    const graft_shape shape = graft_plan_shape(n->plan, x);
    x = slice(n, x, 0, n->direction, n->direction + 1);
    return graft_plan_reshape(n->plan, x, shape.dims + 1, rank);
}

/* A matrix of weights, turned. */
static operand read_matrix(net *n, uint32_t k)
{
    static const int32_t swapped[4] = {1, 0};
    return transpose(n, of_direction(n, graft_plan_input(n->plan, k), 2), swapped);
}

/* An initial state (batch, units); zeros when it is not given. */
static operand read_state(net *n, uint32_t k)
{
    static const int32_t swapped[4] = {1, 0, 2};
    const int32_t dims[] = {n->batch, n->units};
    if (!graft_plan_has_input(n->plan, k)) {
        return graft_plan_constant(n->plan, 0.0F, dims, 2);
    }
    operand state = graft_plan_input(n->plan, k);
    return of_direction(n, n->batch_first ? transpose(n, state, swapped) : state, 2);
}

/* ------------------------------------------------------------------------------- steps */

/* Gates are i, o, f, c. `x` (batch, gates * units) is what the inputs bring to them, biases
 * included. */
static void step_lstm(net *n, operand x)
{
    operand gates = both(n, GRAFT_OP_add, x, both(n, GRAFT_OP_matmul, n->h, n->recurrent));
    operand cell;
    operand o;
    operand f;
    operand open = of(n, GRAFT_OP_sigmoid, cut(n, gates, 1, 3 * n->units, &cell));
    cell = of(n, GRAFT_OP_tanh, cell);
    operand i = cut(n, open, 1, n->units, &o);
    o = cut(n, o, 1, n->units, &f);
    n->c = both(n, GRAFT_OP_add, both(n, GRAFT_OP_mul, f, n->c), both(n, GRAFT_OP_mul, i, cell));
    n->h = both(n, GRAFT_OP_mul, o, of(n, GRAFT_OP_tanh, n->c));
}

/* Gates are z, r, h; h' = (1 - z) new + z h. */
static void step_gru(net *n, operand x)
{
    const int32_t two = 2 * n->units;
    operand wanted;
    operand r;
    operand hidden = n->h; /* What is added to `wanted`, before or after the reset. */
    operand zr = cut(n, x, 1, two, &wanted);
    if (n->linear) {
        const operand inputs[GRAFT_MAX_INPUTS] = {n->h, n->recurrent, n->bias};
        operand all = graft_plan_add(n->plan, GRAFT_OP_matmul_bias, NULL, inputs);
        zr = both(n, GRAFT_OP_add, zr, cut(n, all, 1, two, &hidden));
    } else {
        zr = both(n, GRAFT_OP_add, zr, both(n, GRAFT_OP_matmul, n->h, n->recurrent));
    }
    operand z = cut(n, of(n, GRAFT_OP_sigmoid, zr), 1, n->units, &r);
    hidden = both(n, GRAFT_OP_mul, r, hidden);
    if (!n->linear) {
        hidden = both(n, GRAFT_OP_matmul, hidden, n->of_reset);
    }
    operand made = of(n, GRAFT_OP_tanh, both(n, GRAFT_OP_add, wanted, hidden));
    operand kept = both(n, GRAFT_OP_mul, z, both(n, GRAFT_OP_sub, n->h, made));
    n->h = both(n, GRAFT_OP_add, made, kept);
}

static void step_rnn(net *n, operand x)
{
    operand sum = both(n, GRAFT_OP_add, x, both(n, GRAFT_OP_matmul, n->h, n->recurrent));
    n->h = of(n, GRAFT_OP_tanh, sum);
}

typedef struct kind {
    int32_t gates;
    uint32_t activation_count;
    const char *activations[3]; /* The only ones that are known. */
    uint32_t inputs;            /* What comes behind is a peephole. */
    void (*step)(net *n, operand x);
} kind;

/* By the number of gates. */
static const kind kinds[] = {
    {4, 3, {"Sigmoid", "Tanh", "Tanh"}, 7, step_lstm},
    {3, 2, {"Sigmoid", "Tanh"},         6, step_gru },
    {1, 1, {"Tanh"},                    6, step_rnn },
};

/* -------------------------------------------------------------------------- directions */

/* The product of all inputs, (steps * batch, gates * units), with the biases that go with it. */
static operand multiply_inputs(net *n)
{
    static const int32_t swapped[4] = {1, 0, 2};
    const int32_t rows[] = {n->steps * n->batch, n->features};
    const int32_t width = n->gates * n->units;
    operand x = graft_plan_input(n->plan, 0);
    operand inputs[GRAFT_MAX_INPUTS] = {n->batch_first ? transpose(n, x, swapped) : x,
                                        read_matrix(n, 1)};
    inputs[0] = graft_plan_reshape(n->plan, inputs[0], rows, 2);
    n->bias = graft_plan_constant(n->plan, 0.0F, &width, 1);
    inputs[2] = n->bias;
    if (graft_plan_has_input(n->plan, 3)) {
        operand biases = of_direction(n, graft_plan_input(n->plan, 3), 1);
        inputs[2] = slice(n, biases, 0, 0, width);
        n->bias = slice(n, biases, 0, width, 2 * width);
    }
    if (!n->linear) {
        inputs[2] = both(n, GRAFT_OP_add, inputs[2], n->bias);
    }
    return graft_plan_add(n->plan, GRAFT_OP_matmul_bias, NULL, inputs);
}

/* All steps of the direction; returns what they put out, (steps, 1, batch, units). */
static operand plan_direction(net *n, const kind *of_kind)
{
    graft_arena *scratch = n->plan->reader->env->scratch;
    operand *inputs = GRAFT_NEW(scratch, operand, (size_t)n->steps);
    operand *states = GRAFT_NEW(scratch, operand, (size_t)n->steps);
    const int32_t dims[] = {n->steps, 1, n->batch, n->units};
    const bool backwards = n->reverse != (n->direction == 1);
    operand rest = multiply_inputs(n);
    n->recurrent = read_matrix(n, 2);
    if (of_kind->gates == 3 && !n->linear) {
        n->of_reset = slice(n, n->recurrent, 1, 2 * n->units, 3 * n->units);
        n->recurrent = slice(n, n->recurrent, 1, 0, 2 * n->units);
    }
    n->h = read_state(n, 5);
    if (of_kind->gates == 4) {
        n->c = read_state(n, 6);
    }
    for (int32_t t = 0; t < n->steps; t++) {
        inputs[t] = t + 1 < n->steps ? cut(n, rest, 0, n->batch, &rest) : rest;
    }
    for (int32_t i = 0; i < n->steps; i++) {
        const int32_t t = backwards ? n->steps - 1 - i : i;
        of_kind->step(n, inputs[t]);
        states[t] = n->h;
    }
    operand all = states[0];
    for (int32_t t = 1; t < n->steps; t++) {
        all = join(n, all, states[t], 0);
    }
    return graft_plan_reshape(n->plan, all, dims, 4);
}

/* Puts a direction's result beside those of the direction before it. */
static operand beside(net *n, operand before, operand x, int32_t axis)
{
    return n->direction == 0 ? x : join(n, before, x, axis);
}

static void plan_directions(net *n, const kind *of_kind)
{
    static const int32_t orders[3][4] = {
        {2, 0, 1, 3},
        {1, 0,  2 },
        {1, 0,  2}
    };
    const int32_t dims[] = {1, n->batch, n->units};
    operand outputs[3] = {{.kind = GRAFT_ONNX_OPERAND_NONE}};
    for (n->direction = 0; n->direction < n->directions; n->direction++) {
        outputs[0] = beside(n, outputs[0], plan_direction(n, of_kind), 1);
        outputs[1] = beside(n, outputs[1], graft_plan_reshape(n->plan, n->h, dims, 3), 0);
        if (of_kind->gates == 4) {
            outputs[2] = beside(n, outputs[2], graft_plan_reshape(n->plan, n->c, dims, 3), 0);
        }
    }
    for (uint32_t k = 0; k < 3; k++) {
        if (graft_plan_is_read(n->plan, k)) {
            graft_plan_output(n->plan, k,
                              n->batch_first ? transpose(n, outputs[k], orders[k]) : outputs[k]);
        }
    }
}

/* ----------------------------------------------------------------------------- the node */

static void read_direction(net *n)
{
    const Onnx__NodeProto *node = n->plan->node;
    n->directions = graft_onnx_says(node, "direction", "bidirectional", false) ? 2 : 1;
    n->reverse = graft_onnx_says(node, "direction", "reverse", false);
    if (n->directions == 1 && !n->reverse && !graft_onnx_says(node, "direction", "forward", true)) {
        graft_plan_refuse(n->plan, "a direction that is not known");
    }
}

static void check_activations(net *n, const kind *of_kind)
{
    const Onnx__AttributeProto *given = graft_plan_attribute(n->plan, "activations");
    bool known =
        given == NULL || given->n_strings == of_kind->activation_count * (uint32_t)n->directions;
    for (size_t i = 0; given != NULL && known && i < given->n_strings; i++) {
        known = graft_onnx_is_text(&given->strings[i],
                                   of_kind->activations[i % of_kind->activation_count]);
    }
    graft_plan_refuse_if(n->plan, !known, "activations other than the usual ones");
}

/* Every sequence takes all steps. */
static void check_lengths(net *n)
{
    if (graft_plan_has_input(n->plan, 4)) {
        const graft_onnx_ints *lengths = graft_plan_const_ints(n->plan, 4);
        bool full = lengths->count == (uint32_t)n->batch;
        for (uint32_t i = 0; full && i < lengths->count; i++) {
            full = lengths->items[i] == n->steps;
        }
        graft_plan_refuse_if(n->plan, !full, "sequences of several lengths");
    }
}

static bool is_shaped(net *n, uint32_t k, uint32_t rank, const int32_t *dims)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = n->plan->dtype};
    memcpy(shape.dims, dims, rank * sizeof(dims[0]));
    const graft_shape given = graft_plan_shape(n->plan, graft_plan_input(n->plan, k));
    return graft_shape_equal(&shape, &given);
}

static void check_shapes(net *n, const kind *of_kind)
{
    const int32_t width = n->gates * n->units;
    const int32_t w[] = {n->directions, width, n->features};
    const int32_t r[] = {n->directions, width, n->units};
    const int32_t b[] = {n->directions, 2 * width};
    const int32_t states[2][3] = {
        {n->directions, n->batch,      n->units},
        {n->batch,      n->directions, n->units}
    };
    bool fits = is_shaped(n, 1, 3, w) && is_shaped(n, 2, 3, r) &&
                (!graft_plan_has_input(n->plan, 3) || is_shaped(n, 3, 2, b)) &&
                graft_plan_int(n->plan, "hidden_size", n->units) == n->units;
    for (uint32_t k = 5; k < of_kind->inputs; k++) {
        fits = fits && (!graft_plan_has_input(n->plan, k) ||
                        is_shaped(n, k, 3, states[n->batch_first ? 1 : 0]));
    }
    graft_plan_refuse_if(n->plan, !fits, "shapes that do not fit");
    for (uint32_t k = of_kind->inputs; k < n->plan->node->n_input; k++) {
        graft_plan_refuse_if(n->plan, graft_plan_has_input(n->plan, k), "a peephole");
    }
}

uint32_t graft_plan_recurrent_most(const graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    enum { OF_NODE = 64, OF_STEP = 24, DIRECTIONS = 2 };
    const char *op_type = node->op_type == NULL ? "" : node->op_type;
    const bool is_one =
        strcmp(op_type, "LSTM") == 0 || strcmp(op_type, "GRU") == 0 || strcmp(op_type, "RNN") == 0;
    const uint32_t steps = reader->options == NULL ? 0 : reader->options->unroll;
    return is_one && steps > 0 ? OF_NODE + DIRECTIONS * OF_STEP * steps : 0;
}

/* `op` is the number of gates. */
graft_onnx_operand graft_plan_recurrent(graft_onnx_plan *plan)
{
    const kind *of_kind = &kinds[plan->op == 4 ? 0 : plan->op == 3 ? 1 : 2];
    const uint32_t most = plan->reader->options == NULL ? 0 : plan->reader->options->unroll;
    net n = {.plan = plan, .gates = of_kind->gates};
    GRAFT_RETURN_IF(most == 0, graft_plan_refuse(plan, "an operator that is not known"));
    const graft_shape x = graft_plan_shape(plan, graft_plan_input(plan, 0));
    const graft_shape r = graft_plan_shape(plan, graft_plan_input(plan, 2));
    n.batch_first = graft_plan_int(plan, "layout", 0) != 0;
    n.linear = graft_plan_int(plan, "linear_before_reset", 0) != 0;
    GRAFT_RETURN_IF(plan->refusal != NULL || x.rank != 3 || r.rank != 3 ||
                        graft_plan_int(plan, "input_forget", 0) != 0 || plan->opset < 7,
                    graft_plan_refuse(plan, "a form that is not known"));
    n.steps = x.dims[n.batch_first ? 1 : 0];
    n.batch = x.dims[n.batch_first ? 0 : 1];
    n.features = x.dims[2];
    n.units = r.dims[2];
    GRAFT_RETURN_IF((uint32_t)n.steps > most,
                    graft_plan_refuse(plan, "more steps than are unrolled"));
    read_direction(&n);
    check_activations(&n, of_kind);
    check_lengths(&n);
    check_shapes(&n, of_kind);
    graft_plan_outputs_at_most(plan, of_kind->gates == 4 ? 3 : 2);
    if (plan->refusal == NULL) {
        plan_directions(&n, of_kind);
    }
    return plan->outputs[0];
}
