/* onnx_cells.h - recurrent cells in a graph; private to graph/onnx/.
 *
 * A cell is told by what it computes, not by how it is written: gates are functions of sums of
 * products with constant matrices, whether these are a product each or one that is split, of the
 * input and the state apart or side by side.
 *
 *   LSTM    c' = f c + i g, h' = o tanh(c'); i, f and o are sigmoids, g is a tanh
 *   GRU     h' = (1 - z) n + z h; n = tanh(x W + (r h) R), or linear: tanh(x W + r (h R)) */
#pragma once

#include "graph/onnx/onnx_view.h"

enum { GRAFT_LSTM_I, GRAFT_LSTM_O, GRAFT_LSTM_F, GRAFT_LSTM_G, GRAFT_LSTM_GATES };
enum { GRAFT_GRU_Z, GRAFT_GRU_R, GRAFT_GRU_N, GRAFT_GRU_GATES };
enum { GRAFT_GATE_BIASES = 8 };

/* A view times rows and columns of a constant matrix. */
typedef struct graft_gate_product {
    graft_view of;
    graft_index matrix;
    int32_t row;
    int32_t column;
} graft_gate_product;

/* What a gate is a function of. */
typedef struct graft_gate {
    graft_gate_product products[2]; /* Of a cell that was found: those of its two operands. */
    uint32_t product_count;
    struct {
        const float *data;
        bool repeats; /* It is one number. */
    } biases[GRAFT_GATE_BIASES];
    uint32_t bias_count;
    bool has_gated;
    graft_view gated; /* A product of two computed values. */
} graft_gate;

typedef struct graft_cell {
    bool is_gru;
    bool is_linear;
    int32_t units;
    uint32_t gate_count;
    graft_gate gates[GRAFT_LSTM_GATES]; /* In ONNX's order. */
    graft_gate inner;       /* Of a linear GRU: what r is multiplied by; its biases count. */
    graft_view operands[2]; /* Input and state, in any order. */
    uint32_t state;         /* Which of them is the state; of an LSTM perhaps the other one. */
    graft_view c;           /* The other state that an LSTM takes. */
    graft_index h_made;     /* Each a matrix of binary32 that is all that an ONNX node makes, and */
    graft_index c_made;     /* has a name; GRAFT_NONE: a GRU. */
    uint32_t noted[GRAFT_VIEW_NOTED_MOST]; /* ONNX nodes that the cell consists of. */
    uint32_t noted_count;
} graft_cell;

/* All cells of a graph, those first that others may read, in `arena`; how many. */
uint32_t graft_onnx_find_cells(graft_arena *arena, graft_viewer *viewer,
                               const graft_weights *weights, graft_cell **cells);

/* The biases of a gate added up, of one unit. */
float graft_gate_bias(const graft_gate *gate, int32_t unit);
/* What input k of an operand is multiplied by: the numbers of all units. */
const float *graft_gate_row(const graft_viewer *viewer, const graft_weights *weights,
                            const graft_gate_product *product, int32_t k);
