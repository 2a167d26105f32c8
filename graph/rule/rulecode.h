/* rulecode.h - the byte code of a rule's attributes and precondition: how everything but the engine
 * itself (engine/code.h, which runs it) reads it. */
#pragma once

#include "graft/rule.h"

/* One instruction. */
typedef struct graft_code_step {
    uint32_t at;    /* Its offset. */
    uint32_t place; /* On the stack: its operands stand there and behind, its result goes there. */
    uint8_t code;   /* graft_code */
    uint8_t takes;  /* How many values it takes off the stack; 0: a leaf. */
    uint8_t index;  /* The slot or variable that a leaf names, */
    uint8_t other;  /* and the second variable of SAME. */
    int32_t number; /* A constant, or the axis of DIM: counted from the last when negative. */
} graft_code_step;

typedef enum graft_code_end {
    GRAFT_CODE_GOES_ON,
    GRAFT_CODE_WHOLE, /* One value is left. */
    GRAFT_CODE_DEEP,  /* More values than the reader has room for. */
    GRAFT_CODE_FAULT  /* An operand is missing, or more than one value is left. */
} graft_code_end;

/* A program that is being read in the order in which it runs. */
typedef struct graft_code_reader {
    const graft_rule *rule;
    uint32_t next;
    uint32_t depth;
    uint32_t depth_most;
    graft_code_end end;
} graft_code_reader;

/* The instruction at offset `at`; its place is 0. */
graft_code_step graft_code_at(const graft_rule *rule, uint32_t at);
/* The offset behind the instruction at offset `at`, operands included. */
uint32_t graft_code_next(const graft_rule *rule, uint32_t at);

/* The program at `offset`, for a stack of `depth_most` values. */
graft_code_reader graft_code_open(const graft_rule *rule, uint32_t offset, uint32_t depth_most);
/* The next instruction; false at the end, of which reader->end says what it is. */
bool graft_code_read(graft_code_reader *reader, graft_code_step *step);

/* What the engine computes of two numbers (of the first alone for NOT); false where it fails. */
bool graft_code_compute(uint32_t code, int32_t a, int32_t b, int64_t *result);
