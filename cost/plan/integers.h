/* integers.h - products and sums of numbers of 8 bits: groups of nodes that a device computes in
 * integers, without the binary32 tensors that stand between them in the graph.
 *
 *      quantise(activation(conv(dequantise(x), dequantise(w)) + bias))       and QLinearConv
 *      quantise(activation(matmul(dequantise(x), dequantise(w)) + bias))     and QLinearMatMul
 *      quantise(activation(dequantise(a) + dequantise(b)))
 *
 * where w are known signed numbers around 0, of one scale or one a filter or column. The activation
 * is none, relu or relu6; without a change to 8 bits behind it the result of a product is binary32.
 * A change to binary32 that others read, too, is made for these. The signature is one of
 * GRAFT_COST_INTEGER_...; with 8 bits in and out images lie with channels last.
 *
 * Sums of products are exact, which those of binary32 are not, so a result may be one unit off where
 * the sum in binary32 lies just beyond the middle between two. */
#pragma once

#include "cost/plan/groups.h"

/* Input 2 of a signature, for a product: then a factor for each of `channels`, and what is added to
 * each sum beforehand. `most` is where relu6 ends, in numbers of the result. */
enum { GRAFT_PRODUCT_ZERO, GRAFT_PRODUCT_RESULT_ZERO, GRAFT_PRODUCT_MOST, GRAFT_PRODUCT_NUMBERS };
/* For a sum: scale and zero point of both operands and of the result, and where relu6 ends. */
enum { GRAFT_SUM_MOST = 6, GRAFT_SUM_NUMBERS };

/* Adds all of a graph of `model` that is prepared (prepare.h); weights are as far away as those of
 * the products in binary32. */
void graft_integers_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                         const graft_model *model, const graft_distances *distances,
                         graft_groups *groups);

/* The constants of a group's kernel, in `arena`. `bias`: data of the value inputs[2], or NULL. */
void graft_integers_constants(graft_arena *arena, const graft_group *group, const void *bias,
                              const float *constants[GRAFT_MAX_INPUTS]);

/* Filters or columns of a product, 0 of a sum; how many numbers input 2 has. */
uint32_t graft_integers_channels(const graft_signature *signature);
uint32_t graft_integers_numbers(const graft_signature *signature);
