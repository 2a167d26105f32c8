/* exact.h - tries whether both sides of a rule give the same bits of binary32. */
#pragma once

#include "graph/rule/rulefile.h"
#include "tests/support/corpus.h"
#include "verify/instances/instance.h"

typedef enum exact_inputs {
    EXACT_SPECIAL, /* Zeros of both signs, infinities, NaN, subnormal and huge numbers. */
    EXACT_PAIRS,   /* Two of those, so that equal ones meet. */
    EXACT_NORMAL,  /* Normally distributed numbers. */
    EXACT_KINDS
} exact_inputs;

/* The bits of two numbers, payload and sign of NaN aside. */
bool exact_same_bits(float a, float b);

/* Evaluates both sides of an instance, of type `dtype`: of float16 and bfloat16, inputs and what an
 * operator makes are rounded, and operators compute in binary32. The first output of which an
 * element differs (payload and sign of NaN aside), or -1. */
int exact_compare(graft_env *env, const graft_instance *instance, exact_inputs kind, uint64_t seed,
                  uint32_t dtype);

/* Draws up to `count` instances of a rule, with sizes far past the sweep's, other ranks, and real
 * attributes that are any numbers, and compares the sides at each for each kind of inputs. How many
 * samples that were; the test fails when one differs. */
uint32_t exact_try_beyond(graft_env *env, const graft_rule_entry *entry, uint32_t count);

/* Tries to prove rules of a file of the adversarial corpus exact, every `every`-th from `first` on,
 * without any samples before. Those that are false give other bits somewhere: the test fails when
 * one is proved; and when a sample past the bounds tells the sides of one apart that is. */
void exact_try_corpus(graft_env *env, const corpus_file *file, uint32_t first, uint32_t every);
