/* clock.h - the clock that operators and graphs are timed with, and medians.
 *
 * With one thread it is the processor time of that thread: what other programs on the machine take
 * away is not counted, which the wall clock would. With more threads it is the wall clock. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t graft_cost_clock_ns(uint32_t thread_count)
{
    struct timespec now;
    clock_gettime(thread_count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For qsort: doubles, the least first. */
int graft_compare_doubles(const void *a, const void *b);
/* The value below which `part` (0 to 1) of the samples lie; sorts them. `count` at least 1. */
double graft_cost_quantile(double *samples, uint32_t count, double part);
/* Likewise: the median and the distance between the quartiles. */
void graft_cost_median(double *samples, uint32_t count, double *median, double *spread);
