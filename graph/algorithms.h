/* algorithms.h - other algorithms for what nodes of a file compute, written out in ONNX's operators.
 *
 * A runtime has its own algorithm for an operator, and no better one may be within its reach. Where
 * the better one is made of operators that the runtime does well, a file can bring it along: equal
 * in real numbers, more nodes, and faster there or not, which only its clock says
 * (emit/policy/faster.h). No rule: it holds at the sizes of one node, and what it adds are tables of
 * numbers.
 *
 *   Winograd's      convolutions of 3 or 5 taps with steps of one (onnx_winograd.h)
 *   by a pool       LRN: the mean of squares of neighbouring channels by AveragePool, and roots
 *   by two sides    PRelu: relu(x) - slope relu(-x), in convolutions of one channel each
 *   Sum             Add before a normalisation, which a runtime makes one kernel of both of, slower
 *                   than the two: the same bits, and no such kernel
 *
 * Classes are nodes that differ in their weights at most: they take as long. */
#pragma once

#include "graph/model.h"

typedef enum graft_algorithm {
    GRAFT_ALGORITHM_OWN = 0,    /* The node as it is. */
    GRAFT_ALGORITHM_WINOGRAD_6, /* On tiles that take six points: F(4,3), F(2,5). */
    GRAFT_ALGORITHM_WINOGRAD_4, /* Four points: F(2,3). */
    GRAFT_ALGORITHM_POOL,
    GRAFT_ALGORITHM_TWO_SIDES,
    GRAFT_ALGORITHM_SUM, /* Only wholes tell: alone, there is nothing to be one kernel with. */
    GRAFT_ALGORITHM_COUNT
} graft_algorithm;

/* Its name, for messages. */
const char *graft_algorithm_name(graft_algorithm algorithm);

typedef struct graft_algorithm_class {
    const char *what; /* The operator and its sizes, for messages. */
    uint32_t first;   /* The first of its nodes, by place in the file. */
    uint32_t count;   /* Nodes. */
    uint32_t others;  /* Bit a: graft_algorithm a can do it. */
    double work;      /* Of all its nodes: a measure of their time as they are. */
    graft_algorithm chosen;
    double part; /* What the chosen one takes of the own one's time, when that is known. */
} graft_algorithm_class;

typedef struct graft_algorithms {
    const graft_model *model;
    graft_algorithm_class *classes; /* Those of most work first. */
    uint32_t count;
    uint32_t *class_of; /* By node of the file; GRAFT_NONE: it has its own algorithm only. */
} graft_algorithms;

/* Whether a file is one that other algorithms can be written into. None where Graft does not take it
 * apart or bound its sizes. */
bool graft_algorithms_fit(const graft_model *model);

/* The classes of a model, in env->life, all with their own algorithm chosen. None where
 * graft_algorithms_fit says so; where sizes stay open, of sums, and
 * of nodes that these change in nothing but the number of images. Nodes in subgraphs, of types
 * other than binary32, or whose weights are no constants have none. */
void graft_algorithms_find(graft_env *env, const graft_model *model, graft_algorithms *algorithms);

/* Nodes that have another algorithm than their own chosen. */
uint32_t graft_algorithms_changed(const graft_algorithms *algorithms);

/* Writes the model's file with the chosen algorithms. The rest of it, names and outputs included,
 * stays; weights that nothing reads any more are left out. Fails as graft_model_write does. */
GRAFT_MUST_USE graft_status graft_algorithms_write(graft_env *env,
                                                   const graft_algorithms *algorithms,
                                                   const char *path);

/* Writes a model of one node of a class by an algorithm but GRAFT_ALGORITHM_SUM, between two
 * convolutions that scale each channel: as neighbours have it that like a layout of their own. */
GRAFT_MUST_USE graft_status graft_algorithms_write_alone(graft_env *env,
                                                         const graft_algorithms *algorithms,
                                                         uint32_t class, graft_algorithm algorithm,
                                                         const char *path);
