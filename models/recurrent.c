/* recurrent.c - recurrent cells unrolled over a few steps, with the same weights in each: the LSTM
 * (Hochreiter and Schmidhuber, 1997) gate by gate, as Keras computes it, and the cell that neural
 * architecture search found (Zoph and Le, 2017) in the form in which TASO (Jia et al., 2019)
 * optimises it: eight pairs of products, combined by a tree of functions. */
#include "models/nets.h"

#include <math.h>

/* Parts of a node's name: one module per step. */
static const char *at_step(graft_builder *builder, int step, const char *what)
{
    return graft_build_name(builder, "step_%d.%s", step, what);
}

static graft_build_value add_matrix(graft_builder *builder, const char *module, const char *part,
                                    int64_t hidden)
{
    const int64_t dims[2] = {hidden, hidden};
    return graft_build_weight(builder, module, part, dims, 2, sqrt(1.0 / (double)hidden));
}

/* ----------------------------------------------------------------------------------- LSTM */

enum { LSTM_STEPS = 16, GATES = 4 };

static const char *const gate_names[GATES] = {"i", "f", "c", "o"};

typedef struct {
    graft_build_value kernel[GATES];
    graft_build_value recurrent[GATES];
    graft_build_value bias[GATES];
} lstm_weights;

static void add_lstm_weights(graft_builder *builder, int64_t hidden, lstm_weights *w)
{
    for (int g = 0; g < GATES; g++) {
        const char *module = graft_build_name(builder, "lstm_cell.%s", gate_names[g]);
        w->kernel[g] = add_matrix(builder, module, "kernel", hidden);
        w->recurrent[g] = add_matrix(builder, module, "recurrent_kernel", hidden);
        w->bias[g] = graft_build_vector(builder, module, "bias", hidden, g == 1 ? 1.0 : 0.0, 0.05);
    }
}

/* activation(x W + b + h R) */
static graft_build_value add_gate(graft_builder *builder, const lstm_weights *w, int g, int step,
                                  const graft_build_value state[2])
{
    const char *name = at_step(builder, step, gate_names[g]);
    graft_build_value x = graft_build_matmul(state[0], w->kernel[g], name);
    x = graft_build_pair("Add", x, w->bias[g], name);
    graft_build_value h = graft_build_matmul(state[1], w->recurrent[g], name);
    x = graft_build_pair("Add", x, h, name);
    return graft_build_function(g == 2 ? "Tanh" : "Sigmoid", x, name);
}

/* One step: `h` and `c` are replaced. */
static void add_lstm_step(graft_builder *builder, const lstm_weights *w, int step,
                          graft_build_value x, graft_build_value *h, graft_build_value *c)
{
    const graft_build_value state[2] = {x, *h};
    const char *name = at_step(builder, step, "cell");
    graft_build_value gates[GATES];
    for (int g = 0; g < GATES; g++) {
        gates[g] = add_gate(builder, w, g, step, state);
    }
    graft_build_value kept = graft_build_pair("Mul", gates[1], *c, name);
    graft_build_value added = graft_build_pair("Mul", gates[0], gates[2], name);
    *c = graft_build_pair("Add", kept, added, name);
    graft_build_value shown = graft_build_function("Tanh", *c, name);
    *h = graft_build_pair("Mul", gates[3], shown, name);
}

static void build_lstm(graft_builder *builder, int64_t hidden)
{
    const int64_t sequence[3] = {LSTM_STEPS, 1, hidden};
    const int64_t row[2] = {1, hidden};
    lstm_weights w;
    graft_build_value x = graft_build_input(builder, "x", sequence, 3);
    graft_build_value h = graft_build_input(builder, "h", row, 2);
    graft_build_value c = graft_build_input(builder, "c", row, 2);
    add_lstm_weights(builder, hidden, &w);
    for (int t = 0; t < LSTM_STEPS; t++) {
        graft_build_value now = graft_build_pick(x, at_step(builder, t, "input"), 0, t);
        add_lstm_step(builder, &w, t, now, &h, &c);
    }
    graft_build_output(h, "output");
}

void graft_build_lstm256(graft_builder *builder) { build_lstm(builder, 256); }

void graft_build_lstm512(graft_builder *builder) { build_lstm(builder, 512); }

/* --------------------------------------------------------------------------------- NasRNN */

enum { NAS_STEPS = 5, NAS_PAIRS = 8, NAS_INNER = 7 };

typedef struct {
    graft_build_value input[NAS_PAIRS];
    graft_build_value state[NAS_PAIRS];
} nas_weights;

/* Nodes of the tree above the eight sums. Operands below 8 are the sums, then come the nodes. */
static const struct {
    const char *op;
    const char *functions[2];
    int operands[2];
} nas_tree[NAS_INNER] = {
    {"Add", {"Relu", "Sigmoid"}, {0, 3}  },
    {"Add", {"Sigmoid", "Tanh"}, {1, 2}  },
    {"Mul", {"Sigmoid", "Tanh"}, {4, 5}  },
    {"Mul", {"Sigmoid", "Relu"}, {6, 7}  },
    {"Add", {"Sigmoid", "Tanh"}, {9, 10} },
    {"Mul", {"Tanh", "Tanh"},    {8, 11} },
    {"Mul", {"Tanh", "Tanh"},    {12, 13}},
};

static graft_build_value add_nas_step(graft_builder *builder, const nas_weights *w, int step,
                                      graft_build_value x, graft_build_value state)
{
    graft_build_value values[NAS_PAIRS + NAS_INNER];
    for (int i = 0; i < NAS_PAIRS; i++) {
        const char *name = graft_build_name(builder, "step_%d.sum_%d", step, i);
        values[i] = graft_build_pair("Add", graft_build_matmul(state, w->state[i], name),
                                     graft_build_matmul(x, w->input[i], name), name);
    }
    for (int i = 0; i < NAS_INNER; i++) {
        const char *name = graft_build_name(builder, "step_%d.node_%d", step, i);
        graft_build_value operands[2];
        for (int k = 0; k < 2; k++) {
            operands[k] = graft_build_function(nas_tree[i].functions[k],
                                               values[nas_tree[i].operands[k]], name);
        }
        values[NAS_PAIRS + i] = graft_build_pair(nas_tree[i].op, operands[0], operands[1], name);
    }
    return graft_build_function("Tanh", values[NAS_PAIRS + NAS_INNER - 1],
                                at_step(builder, step, "state"));
}

static void build_nasrnn(graft_builder *builder, int64_t hidden)
{
    const int64_t sequence[3] = {NAS_STEPS, 1, hidden};
    const int64_t row[2] = {1, hidden};
    nas_weights w;
    graft_build_value x = graft_build_input(builder, "x", sequence, 3);
    graft_build_value state = graft_build_input(builder, "state", row, 2);
    for (int i = 0; i < NAS_PAIRS; i++) {
        const char *module = graft_build_name(builder, "cell.%d", i);
        w.input[i] = add_matrix(builder, module, "input_kernel", hidden);
        w.state[i] = add_matrix(builder, module, "state_kernel", hidden);
    }
    for (int t = 0; t < NAS_STEPS; t++) {
        graft_build_value now = graft_build_pick(x, at_step(builder, t, "input"), 0, t);
        state = add_nas_step(builder, &w, t, now, state);
    }
    graft_build_output(state, "output");
}

void graft_build_nasrnn256(graft_builder *builder) { build_nasrnn(builder, 256); }

void graft_build_nasrnn512(graft_builder *builder) { build_nasrnn(builder, 512); }
