/* divisor.h - the greatest common divisor of whole numbers (Euclid's algorithm). */
#pragma once

#include <stdint.h>

/* Not negative; 0 only of 0 and 0. Neither number is INT64_MIN. */
static inline int64_t graft_greatest_divisor(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
