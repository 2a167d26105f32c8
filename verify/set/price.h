/* price.h - which way a rule pays: what each side costs, counted, not measured.
 *
 * At one instance the operators are counted by the tables that every stage uses: graft_op_flops and
 * the bytes of the shapes that inference gives. As functions of shapes the same counts are
 * interpolated: the sizes of an instance that can be changed independently (those that must change
 * together count as one) are varied on a grid, the polynomial of degree two in each size through
 * these counts is found exactly, and it is believed only if it also gives the counts off the grid.
 */
#ifndef GRAFT_PRICE_H
#define GRAFT_PRICE_H

#include "graph/rule/rulefile.h"
#include "verify/instances/instance.h"

/* One side of an instance, for one inference. Operators that depend on weights alone run once, when
 * the model is loaded, and count only as `operators`. */
typedef struct graft_price {
    uint64_t flops;
    uint64_t bytes;        /* Read and written by operators, each on its own. */
    uint64_t weight_bytes; /* Of tensors read that are known before inference, each once. */
    uint32_t operators;
    uint32_t launches;
} graft_price;

/* `weights` has bit v set when variable v is a weight. */
graft_price graft_price_side(const graft_instance *instance, const graft_side *side,
                             uint32_t weights);
/* The variables that are weights in the best case: with the fewest launches after the rule compared
 * to before, and as few weights as possible. Bits; 0 when none need be. */
uint32_t graft_price_weights(const graft_rule *rule);

enum { GRAFT_PRICE_SIZES = 7, GRAFT_PRICE_MEMBERS = 40 };

/* A size of the instance, or several that are always equal. */
typedef struct graft_price_size {
    const char *symbol; /* "b0": the size of axis 0 of variable b. */
    const char *same;   /* The other members: "= c0 = #1.at"; "" when it has none. */
    int32_t value;      /* At the instance. */
} graft_price_size;

typedef enum graft_price_kind {
    GRAFT_PRICE_FLOPS,
    GRAFT_PRICE_BYTES,
    GRAFT_PRICE_WEIGHT_BYTES,
    GRAFT_PRICE_KINDS
} graft_price_kind;

/* A rule's costs as functions of the sizes that vary freely about one of its instances; attributes,
 * ranks and the other sizes are those of the instance. */
typedef struct graft_price_law {
    graft_point point;
    uint32_t size_count;
    graft_price_size sizes[GRAFT_PRICE_SIZES];
    const char *before[GRAFT_PRICE_KINDS]; /* "2 a0 b1 (a1 + 1)"; NULL: not a polynomial. */
    const char *after[GRAFT_PRICE_KINDS];
} graft_price_law;

/* Finds the law about an instance made from one of `count` points of the rule by giving attributes
 * their least values and enlarging sizes where that leaves it one: where most sizes vary and the
 * costs are polynomials. Texts lie in env->unit. False when no point is an instance. */
bool graft_price_find(graft_env *env, const graft_rule *rule, const graft_point *points,
                      uint32_t count, uint32_t weights, graft_price_law *law);

#endif
