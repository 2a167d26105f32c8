/* named.h - the numbers that a rule names, and those at which what it says may change.
 *
 * A rule that is false only past some size mostly says which: a number in its precondition, in an
 * expression or in an attribute is where a bound is reached, a window ends, a part is left out. So
 * instances are looked for at each such number, one more and one less, at what two of them sum,
 * multiply and divide to, at divisors and roots, and at a few primes, which no other number tells
 * anything of. */
#pragma once

#include "graft/graft.h"
#include "graph/base/rng.h"

enum { GRAFT_NAMED_WHOLE = 192, GRAFT_NAMED_REAL = 96, GRAFT_NAMED_MOST = 2048 };

/* Numbers of 8 bits, with a sign and without. */
enum { GRAFT_BYTE_LEAST = -128, GRAFT_BYTE_MOST = 255 };

typedef struct graft_named {
    uint32_t whole_count;
    uint32_t own_count; /* Of these, those that the rule says outright; */
    uint32_t real_count;
    bool is_past; /* it says larger ones than GRAFT_NAMED_MOST, too, which nothing is tried at. */
    int32_t whole[GRAFT_NAMED_WHOLE]; /* 1 to GRAFT_NAMED_MOST, the rule's own ones first. */
    int32_t reals[GRAFT_NAMED_REAL];  /* Binary32 bits of finite numbers. */
} graft_named;

/* Of a valid rule. */
void graft_named_read(const graft_rule *rule, graft_named *named);

/* What a slot stands for, by the first attribute of the source that it is. */
typedef enum graft_slot_kind {
    GRAFT_SLOT_NUMBER,
    GRAFT_SLOT_BYTE, /* A number of 8 bits: there are few, some below 0, and each is tried. */
    GRAFT_SLOT_AXIS,
    GRAFT_SLOT_SIZE,
    GRAFT_SLOT_REAL,
    GRAFT_SLOT_OTHER
} graft_slot_kind;

void graft_named_slots(const graft_rule *rule, uint8_t kinds[GRAFT_RULE_MAX_SLOTS]);

/* Any number of 8 bits. */
int32_t graft_named_byte(graft_rng *rng);
