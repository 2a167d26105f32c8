/* groups.h - nodes that a device runs as one: attention, from the first product to the second.
 *
 *      matmul(Q, K), times or through a number, plus a mask, softmax over the last axis, matmul with V
 *
 * with scale and mask where they are. Transpositions that bring heads in front of rows, of what is
 * read here alone, belong to it, too: the device reads the tensors before them. It is priced by a
 * signature of its own (GRAFT_COST_ATTENTION) and is one step, that of its last node, where that
 * was measured and is cheaper than the nodes one by one: plan.c decides. Two kinds are one step
 * wherever the device has them: products and sums of integers, see integers.h, and shuffles of
 * channels (Zhang et al., ShuffleNet, CVPR 2018, section 3.1),
 *
 *      reshape (n,c,...) to (n,g,c/g,...), transpose axes 1 and 2, reshape back
 *
 * between convolutions. With channels last this is one transposition, of (g,c/g) in each pixel, and
 * nothing is converted; its signature is that transposition's. */
#pragma once

#include "cost/database/signature.h"
#include "graph/model.h"

enum { GRAFT_GROUP_NODES = 8 };

/* How numbers of 8 bits are meant: (q - zero) scale. */
typedef struct graft_byte_scale {
    float scale;
    int32_t zero;
} graft_byte_scale;

typedef struct graft_group {
    graft_signature signature;
    graft_index inputs[GRAFT_MAX_INPUTS]; /* Values in the signature's layouts; GRAFT_NONE: none. */
    graft_index nodes[GRAFT_GROUP_NODES]; /* The last one first. */
    float shares[GRAFT_GROUP_NODES];      /* Of attention in a plan: what each would cost by itself,
                                             as a part of all; else 0. */
    uint32_t node_count;
    bool last; /* Operand and result are images with channels last, the signature's sizes another
                  look at the same memory. */
    /* Of one on integers: its operands and result (1 and 0 where it is binary32), and weights with
     * their scales as the model has them. */
    graft_byte_scale in[2];
    graft_byte_scale out;
    const int8_t *weights;
    const float *scales;
    bool per_channel;
    bool turned;     /* Weights lie as (columns, rows). */
    bool whole_bias; /* The bias, inputs[2], is of int32, in units of the sums. */
} graft_group;

typedef struct graft_groups {
    graft_group *list;
    uint32_t count;
    uint32_t *of; /* By node: number of its group from 1 on, 0: none. NULL: there are no groups. */
} graft_groups;

/* All attention of a graph, in `arena`. The numbers that scale are weights of `model` (NULL: no
 * group has one). `overwrites`: see graft_schedule_overwrites; a group reads when its last node
 * runs, so that none is made around a node that overwrites something. */
void graft_groups_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       const bool *overwrites, const graft_model *model, graft_groups *groups);
/* Adds all shuffles of channels, likewise, of what a convolution makes but for pointwise operators
 * and joints. */
void graft_groups_find_shuffles(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, const bool *overwrites,
                                const graft_distances *distances, graft_groups *groups);
/* Adds one, of nodes that are in none. */
void graft_group_add(graft_arena *arena, const graft_graph *graph, const graft_group *group,
                     graft_groups *groups);
/* The layouts that operand `k` is read in, and that the result is written in. */
uint32_t graft_group_layout(const graft_group *group, uint32_t k);
uint32_t graft_group_result(const graft_group *group);
/* The group of a node; NULL: it is in none. */
const graft_group *graft_group_of(const graft_groups *groups, graft_index node);

/* What a signature without numbers of 8 bits means, by the float reference, row-major: an attention
 * is the operators that it stands for, a conversion of layouts a copy. Uses `arena`. */
void graft_signature_run(graft_arena *arena, const graft_signature *signature,
                         const graft_shape *outputs, const float *const in[], float *const out[]);
