/* symaxes.h - what an operator does with axes: which of its inputs' it lines up with which of its
 * output's, and along which it does something else (sums, reads at another index, joins, cuts,
 * counts channels). The third way in which graph/meaning/reading.inc is read: an index is the set
 * of the output's axes that it is made of. */
#ifndef GRAFT_SYMAXES_H
#define GRAFT_SYMAXES_H

#include "graft/rule.h"

#include <stdbool.h>

typedef struct graft_sym_axes {
    /* By input and axis, bits: the output's axes at whose index it is read, as it stands. */
    uint8_t lined[GRAFT_MAX_INPUTS][GRAFT_MAX_RANK];
    uint8_t busy_in[GRAFT_MAX_INPUTS]; /* Bits: the input's axes along which something is done, */
    uint8_t busy;                      /* and the output's, those included that nothing is lined up
                                          with. */
    uint8_t fixed; /* Bits: axes of the output that the operator has at a place of their own. */
} graft_sym_axes;

/* Of output `output`. `ranks` are the inputs'; `choices` has, by attribute, those that choose axes
 * and modes, which fit the ranks. */
graft_sym_axes graft_sym_axes_of(uint32_t op, uint32_t output, const uint32_t *ranks,
                                 uint32_t out_rank, const int32_t *choices);

#endif
