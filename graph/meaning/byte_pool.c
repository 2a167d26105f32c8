/* byte_pool.c - see byte_pool.h. First the largest of the rows under the window, then of the
 * columns: compilers make vectors of it. */
#include "graph/meaning/byte_pool.h"

#include <string.h>

static graft_window window_of(const graft_call *call, uint32_t i)
{
    const int32_t *attrs = call->attrs;
    return (graft_window){.size = call->in[0].dims[2 + i],
                          .count = call->out[0].dims[2 + i],
                          .kernel = attrs[GRAFT_ATTR_max_pool_kernel_h + i],
                          .stride = attrs[GRAFT_ATTR_max_pool_stride_h + i],
                          .before = attrs[GRAFT_ATTR_max_pool_pad_top + i],
                          .dilation = attrs[GRAFT_ATTR_max_pool_dilation_h + i]};
}

/* into(i) = max(into(i), from(i step)), bytes without a sign once `sign` is turned. */
static void take_larger(uint8_t *restrict into, const uint8_t *restrict from, int64_t count,
                        int64_t step, uint8_t sign)
{
    if (step == 1) {
        for (int64_t i = 0; i < count; i++) {
            const uint8_t x = from[i] ^ sign;
            into[i] = x > into[i] ? x : into[i];
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint8_t x = from[i * step] ^ sign;
        into[i] = x > into[i] ? x : into[i];
    }
}

static void pool_row(const graft_window windows[2], const uint8_t *plane, int64_t row, uint8_t sign,
                     uint8_t *largest, uint8_t *out)
{
    const graft_window *w = &windows[1];
    int64_t range[2];
    memset(largest, 0, (size_t)w->size);
    memset(out, 0, (size_t)w->count);
    graft_window_taps(&windows[0], row, range);
    for (int64_t tap = range[0]; tap < range[1]; tap++) {
        take_larger(largest, plane + graft_window_at(&windows[0], row, tap) * w->size, w->size, 1,
                    sign);
    }
    for (int64_t tap = 0; tap < w->kernel; tap++) {
        graft_window_positions(w, tap, range);
        if (range[0] < range[1]) {
            take_larger(out + range[0], largest + graft_window_at(w, range[0], tap),
                        range[1] - range[0], w->stride, 0);
        }
    }
    for (int64_t i = 0; i < w->count; i++) {
        out[i] ^= sign;
    }
}

void graft_byte_max_pool(graft_arena *scratch, const graft_call *call, const void *in, void *out)
{
    GRAFT_SCOPED(scratch);
    const graft_window windows[2] = {window_of(call, 0), window_of(call, 1)};
    const size_t planes = graft_axes_count(&call->out[0], 0, 2);
    const uint8_t sign = call->in[0].dtype == GRAFT_DTYPE_I8 ? -INT8_MIN : 0;
    uint8_t *largest = GRAFT_NEW(scratch, uint8_t, (size_t)windows[1].size);
    const uint8_t *plane = in;
    uint8_t *row = out;
    for (size_t i = 0; i < planes; i++, plane += windows[0].size * windows[1].size) {
        for (int64_t k = 0; k < windows[0].count; k++, row += windows[1].count) {
            pool_row(windows, plane, k, sign, largest, row);
        }
    }
}
