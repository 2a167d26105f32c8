/* processor.h - a program that was built for newer processors than this one says so, before an
 * instruction that this one lacks ends it with a signal. */
#pragma once

#include <stdint.h>

/* Bits, a row each in processor.c. */
enum {
    GRAFT_PROCESSOR_SSE42 = 1,
    GRAFT_PROCESSOR_AVX = 2,
    GRAFT_PROCESSOR_FMA = 4,
    GRAFT_PROCESSOR_AVX2 = 8,
    GRAFT_PROCESSOR_BMI2 = 16,
    GRAFT_PROCESSOR_AVX512 = 32,
    GRAFT_PROCESSOR_XOP = 64
};

/* What the compiler may use in the file that asks. */
enum {
    GRAFT_PROCESSOR_NEEDS = 0
#ifdef __SSE4_2__
                            | GRAFT_PROCESSOR_SSE42
#endif
#ifdef __AVX__
                            | GRAFT_PROCESSOR_AVX
#endif
#ifdef __FMA__
                            | GRAFT_PROCESSOR_FMA
#endif
#ifdef __AVX2__
                            | GRAFT_PROCESSOR_AVX2
#endif
#ifdef __BMI2__
                            | GRAFT_PROCESSOR_BMI2
#endif
#ifdef __AVX512VL__
                            | GRAFT_PROCESSOR_AVX512
#endif
#ifdef __XOP__
                            | GRAFT_PROCESSOR_XOP
#endif
};

/* Ends the program with a message and exit status 1 when this processor lacks one of them. To be
 * called before anything else runs. */
void graft_processor_check(uint32_t needs);
