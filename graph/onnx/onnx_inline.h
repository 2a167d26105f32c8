/* onnx_inline.h - what puts nodes of one graph in place of a node of another: of a branch that an
 * If chooses (onnx_inline.c) and of a function that is called (onnx_functions.c). */
#pragma once

#include "graph/onnx/onnx.h"

typedef struct graft_inlining {
    graft_arena *arena;
    graft_names *taken;      /* All names that the model defines, and those given since. */
    graft_names *called;     /* Names of the nodes of the graph that is inlined into. */
    Onnx__NodeProto **nodes; /* Of that graph, so far. */
    uint32_t node_count;
    uint32_t node_capacity;
    graft_names *renamed; /* Of what is being inlined: numbers of `names`. */
    char **names;
    uint32_t count;
    uint32_t capacity;
} graft_inlining;

typedef struct graft_graph_list {
    Onnx__GraphProto **items;
    uint32_t count;
    uint32_t capacity;
} graft_graph_list;

/* A graph and all that its nodes have inside, outer ones first. */
graft_graph_list graft_inlining_graphs(graft_arena *arena, Onnx__GraphProto *graph);
graft_inlining graft_inlining_new(graft_arena *arena, Onnx__GraphProto *graph);
/* From now on into this one, whose nodes are then pushed, or what stands for them; at last they are
 * put in their place. */
void graft_inlining_into(graft_inlining *in, const Onnx__GraphProto *graph);
void graft_inlining_push(graft_inlining *in, Onnx__NodeProto *node);
void graft_inlining_settle(graft_inlining *in, Onnx__GraphProto *graph);
/* Forgets what was renamed in the last one. */
void graft_inlining_start(graft_inlining *in);
/* Gives new names to what was renamed, wherever it stands in a graph: one inside that defines a
 * name once more means its own as before. */
void graft_inlining_replace(graft_inlining *in, Onnx__GraphProto *graph);
void graft_inlining_rename(graft_inlining *in, const char *old, char *name);
/* Gives a name that nothing else has, which begins with `within`, unless `old` has one. */
void graft_inlining_rename_anew(graft_inlining *in, const char *within, const char *old);
/* Renames all that a branch defines, its outputs to those of the node, and pushes the nodes that
 * stand for it; initializers of the branch become the graph's. */
void graft_inlining_branch(graft_inlining *in, Onnx__GraphProto *graph, const Onnx__NodeProto *node,
                           Onnx__GraphProto *branch);
