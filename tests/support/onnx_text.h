/* onnx_text.h - small ONNX models written as text, and graphs printed as text, for tests.
 *
 * A model is a list of statements separated by ';':
 *
 *      opset 13                     default domain's version; 13 when not given
 *      ir 8                         8 when not given
 *      input x 1 3 N ?              binary32; a name is an open size, ? a size without a name
 *      output y 1 2                 sizes may be left out: no declaration of the shape; y when there
 *                                   is no output
 *      info v 1 2                   a declared shape
 *      weight w 2 3                 binary32 initializer: 0.5, 1.0, 1.5 ... in row-major order
 *      weight w 3 = 1 -2.5 4        the same with given elements
 *      ints n = 1 -1                int64 list; `scalar n = 3` a scalar, `bools b = 0` a bool
 * scalar node Conv x w _ -> y _ : pads=1,1,1,1 group=1 alpha=0.5 auto_pad=VALID _ is an input or
 * output that is not given; 3, is a list of one; a number with a point is a float; domain=d is the
 * node's domain; alpha=&slope refers to a function's attribute
 * graph g; ...; end            a subgraph, which a later attribute names:
 * then_branch=@g; value=#3 is a list of one int64 as a tensor
 *
 * function f x w -> y : slope=0.5; ...; end     a function of domain `own` with its defaults, whose nodes
 * follow; opset V there is its own.
 *
 * Names of nodes are n0, n1... */
#pragma once

#include "graph/onnx/onnx.h"
#include "tests/support/check.h"

/* The message, in `arena`. Fails the test when the text makes no sense. */
Onnx__ModelProto *onnx_text_message(graft_arena *arena, const char *text);
/* Its bytes. */
void onnx_text_bytes(graft_arena *arena, const char *text, uint8_t **data, size_t *size);
/* Writes them to a file. */
void onnx_text_write(graft_env *env, const char *text, const char *path);
/* A message from its bytes, and the one that is written for `graph`; in env->life. */
Onnx__ModelProto *onnx_text_unpack(graft_env *env, const uint8_t *data, size_t size);
Onnx__ModelProto *onnx_text_written(graft_env *env, const graft_model *model,
                                    const graft_graph *graph);
/* Reads a message as a model named "test.onnx". */
GRAFT_MUST_USE graft_status onnx_text_read(graft_env *env, Onnx__ModelProto *proto,
                                           const graft_model_options *options, graft_model **model);
/* Reads a text likewise; asserts success. */
graft_model *onnx_text_model(graft_env *env, const char *text);
/* By value: the data of weights, for inputs 0, 1, 2, ..., for others NULL; in env->unit. */
const float **onnx_text_values(graft_env *env, const graft_model *model);

/* Nodes in topological order, one a line: "y = conv(x, w) 1 1 0 0 0 0 1 1 1". A value without a
 * name is %k; `out` lists the outputs. Trailing zero attributes are left out, floats are %g. */
const char *onnx_text_print(graft_arena *arena, const graft_model *model, const graft_graph *graph);
/* An ONNX graph: initializers, then nodes: "w: 2 3", "Conv x w -> y : pads=1,1,1,1". */
const char *onnx_text_print_proto(graft_arena *arena, const Onnx__GraphProto *graph);
/* Asserts that a printed graph is the expected one, of which "\nout y" may be left out. */
void onnx_text_is(graft_arena *arena, const char *text, const char *expected);
