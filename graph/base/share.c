/* share.c - see share.h. */
#include "graph/base/share.h"

#ifdef _OPENMP
#include <omp.h>

void graft_share(int thread_count, graft_share_part part, const void *work)
{
    if (thread_count <= 1) {
        part(work, 0, 1);
        return;
    }
#pragma omp parallel num_threads(thread_count)
    part(work, (uint32_t)omp_get_thread_num(), (uint32_t)omp_get_num_threads());
}
#else
void graft_share(int thread_count, graft_share_part part, const void *work)
{
    (void)thread_count;
    part(work, 0, 1);
}
#endif

graft_range graft_range_part(int64_t count, int64_t unit, uint32_t part, uint32_t parts)
{
    const int64_t units = (count + unit - 1) / unit;
    const int64_t to = units * (part + 1) / parts * unit;
    return (graft_range){units * part / parts * unit, to < count ? to : count};
}
