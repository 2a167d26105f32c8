/* symclass.h - cases of a proof for all sizes that are the same but for axes along which a rule
 * does nothing.
 *
 * No proof rests on it: each case is proved. Of cases that are alike one is written out as a theorem
 * (theorem.h).
 *
 * Axes of variables and nodes that an operator lines up (symaxes.h) are tied: those that
 * broadcasting aligns, that a transpose moves, that a concatenation along another axis makes equal;
 * so are the axes of the source's and the target's outputs. A set of tied axes is *idle* when no operator does
 * anything along it (sums, reads at another index, joins, cuts, counts it as the channel), no
 * program of the rule reads its size, and no tensor has two axes in it. Leaving idle axes out of a
 * case gives its *core*: ranks, and attributes that name axes, are those of what is left.
 *
 * A case holds exactly when its core does, and so when any other case with the same core does:
 *   - An instance of the core is one of the case: give every idle axis the size 1. Shape inference
 *     asks nothing of idle axes but that sizes agree or broadcast, programs read none, and both
 *     sides compute the same elements.
 *   - Let the core hold. Take an instance of the case and an index l along an idle set, and of
 * every variable the slice at l, at 0 where its size is 1 (at its last index where it is shorter
 *     still: no element at l is made of it). Each operator commutes with slicing: of what it lines
 *     up, sizes are equal or 1, and 1 in the output only where all are; and no tensor is sliced
 *     twice. Slices are instances of the core, of which the source is defined where it is in the
 *     case. So both sides agree at l, and the target is defined there. Idle sets are left out one
 *     after the other.
 * Equal cores are told by equal keys: the bytes of everything about a core that is no size. */
#ifndef GRAFT_SYMCLASS_H
#define GRAFT_SYMCLASS_H

#include "verify/core/symcase.h"

enum { GRAFT_SYM_BUSY = UINT16_MAX, GRAFT_SYM_CLASS_KEY = 400, GRAFT_SYM_CLASSES = 2048 };

typedef struct graft_sym_class {
    uint8_t key[GRAFT_SYM_CLASS_KEY];
    uint32_t length;
    /* By variable or output, and axis: the number of its idle set, or GRAFT_SYM_BUSY. */
    uint16_t var_sets[GRAFT_RULE_MAX_VARS][GRAFT_MAX_RANK];
    uint16_t output_sets[GRAFT_RULE_MAX_OUTPUTS][GRAFT_MAX_RANK];
} graft_sym_class;

/* Finds the core of a case of a valid rule. False when it is not known (a rank or an axis depends
 * on sizes): then the case stands for itself. */
bool graft_sym_class_of(const graft_rule *rule, const graft_sym_case *c, graft_sym_class *result);

/* Classes met: none where `count` is 0. */
typedef struct graft_sym_classes {
    struct {
        uint8_t key[GRAFT_SYM_CLASS_KEY];
        uint32_t length;
    } met[GRAFT_SYM_CLASSES];
    uint32_t count;
} graft_sym_classes;

/* Adds a class, as far as there is room; false when it is among them already. */
bool graft_sym_classes_add(graft_sym_classes *classes, const graft_sym_class *class);

#endif
