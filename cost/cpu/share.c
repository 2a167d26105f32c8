/* share.c - see share.h. */
#include "cost/cpu/share.h"

#include <omp.h>

void graft_cpu_share(int thread_count, cpu_part part, const void *work)
{
    if (thread_count <= 1) {
        part(work, 0, 1);
        return;
    }
#pragma omp parallel num_threads(thread_count)
    part(work, (uint32_t)omp_get_thread_num(), (uint32_t)omp_get_num_threads());
}
