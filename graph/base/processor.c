/* processor.c - see processor.h. The Makefile compiles this file for every processor. */
#include "processor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
void graft_processor_check(uint32_t needs)
{
    __builtin_cpu_init(); /* Constructors may run before the one that does so. */
    const struct {
        uint32_t bit;
        bool here;
        const char *name;
    } features[] = {
        {GRAFT_PROCESSOR_SSE42,  __builtin_cpu_supports("sse4.2") != 0,   "SSE 4.2"},
        {GRAFT_PROCESSOR_AVX,    __builtin_cpu_supports("avx") != 0,      "AVX"    },
        {GRAFT_PROCESSOR_FMA,    __builtin_cpu_supports("fma") != 0,      "FMA"    },
        {GRAFT_PROCESSOR_AVX2,   __builtin_cpu_supports("avx2") != 0,     "AVX2"   },
        {GRAFT_PROCESSOR_BMI2,   __builtin_cpu_supports("bmi2") != 0,     "BMI2"   },
        {GRAFT_PROCESSOR_AVX512, __builtin_cpu_supports("avx512vl") != 0, "AVX-512"},
        {GRAFT_PROCESSOR_XOP,    __builtin_cpu_supports("xop") != 0,      "XOP"    },
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if ((needs & features[i].bit) != 0 && !features[i].here) {
            (void)fprintf(stderr,
                          "graft: error: this program was built for processors with %s, which this "
                          "one lacks; build Graft on this machine, or with make ARCH=x86-64\n",
                          features[i].name);
            exit(EXIT_FAILURE);
        }
    }
}
#else
void graft_processor_check(uint32_t needs) { (void)needs; }
#endif
