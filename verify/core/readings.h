/* readings.h - a rule read otherwise than in a proof: over numbers that are not real (symbits.h),
 * and plainly, for what is written down of it (symplain.h).
 *
 * The reader (symread.h) and the shapes (symshape.h) are the same text in each. What is done
 * otherwise is a table of functions that whoever reads so hands in. Proofs have none: nothing is
 * `proved` while one is set (symbolic.h), and no file with such functions is linked with them. */
#ifndef GRAFT_READINGS_H
#define GRAFT_READINGS_H

#include "verify/core/symfold.h"
#include "verify/core/symshape.h"

/* Numbers other than real ones. All terms have the sort of elements. */
typedef struct graft_sym_numbers {
    /* As graft_term_scalar. */
    Z3_ast (*scalar)(graft_sym *s, uint32_t op, Z3_ast a, Z3_ast b);
    Z3_ast (*function)(graft_sym *s, uint32_t op, Z3_ast x, const Z3_ast *attrs);
    Z3_ast (*leaky_relu)(const graft_sym *s, Z3_ast x, Z3_ast slope);
    Z3_ast (*select)(const graft_sym *s, Z3_ast c, Z3_ast a, Z3_ast b);
    /* What a softmax subtracts, of the largest of its row. */
    Z3_ast (*row_shift)(const graft_sym *s, Z3_ast largest);
    /* A float attribute: as the rule writes it, and as a real number. */
    Z3_ast (*attr)(graft_sym *s, const graft_term *written, Z3_ast term);
    Z3_ast (*size)(const graft_sym *s, Z3_ast size);
    /* A sum, mean or maximum; of means, whether what the guard leaves out is counted. */
    Z3_ast (*fold)(graft_sym *s, graft_sym_fold kind, bool counts_all, const graft_sym_range *range,
                   Z3_ast body);
    /* Whether two values are the same where `facts` hold. */
    bool (*same)(graft_sym *s, const graft_facts *facts, Z3_ast x, Z3_ast y);
} graft_sym_numbers;

/* The plain reading: nothing is simplified, solved or asked, and definitions are recorded. */
typedef struct graft_sym_recorder {
    /* A term that is a number without any symbols as that number; any other as it is. */
    Z3_ast (*numeral)(const graft_sym *s, Z3_ast term);
    /* Names the sizes of the outputs of a node: they become symbols. */
    void (*sizes)(const graft_sym *s, uint32_t side, uint32_t node, uint32_t outputs,
                  graft_sym_shape *shapes);
    void (*claims)(const graft_sym *s, const Z3_ast *claims, uint32_t count);
    /* Defines the value of an output of a node; returns its application to the formals. */
    Z3_ast (*value)(const graft_sym *s, uint32_t side, uint32_t node, uint32_t output,
                    uint32_t rank, Z3_ast value);
    /* Defines a fold; returns its application. */
    Z3_ast (*fold)(const graft_sym *s, graft_sym_fold kind, const graft_sym_range *range,
                   Z3_ast body);
} graft_sym_recorder;

#endif
