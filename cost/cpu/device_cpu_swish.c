/* device_cpu_swish.c - x sigmoid(alpha x) in one pass, as x / (1 + 2^(-alpha x / ln 2)): the
 * library's takes twice as long, and no less inside of a convolution. */
#include "cost/cpu/device_cpu.h"
#include "cost/cpu/lanes.h"
#include "cost/plan/nest.h"
#include "graph/base/bits.h"
#include "graph/base/share.h"

#include <string.h>

static const float most = 126.0F; /* Of powers of two. */

static float alpha_of(const graft_signature *s)
{
    return graft_float_of_bits(s->attrs[GRAFT_ATTR_swish_alpha]);
}

/* What is NaN stays it. Beyond `least`, where the result is 0 but for 2^-120 or so, stands `least`:
 * of minus infinity the limit comes out. */
LANES_INLINE lanes swish(lanes x, lanes slope, lanes least)
{
    x = lanes_choose(x < least, least, x);
    lanes power = x * slope;
    power = lanes_choose(power < -most, lanes_of(-most), power);
    return x / (lanes_exp2(power) + lanes_of(1.0F));
}

static void run_part(const void *context, uint32_t part, uint32_t parts)
{
    static const float per_octave = 1.44269504F; /* 1 / ln 2 */
    const graft_kernel *kernel = context;
    const graft_range own =
        graft_range_part((int64_t)graft_shape_elements(&kernel->outputs[0]), LANES, part, parts);
    const size_t count = (size_t)(own.to - own.from);
    const size_t whole = count / LANES * LANES;
    const float factor = -alpha_of(&kernel->signature) * per_octave;
    const lanes slope = lanes_of(factor);
    const lanes least = lanes_of(most / factor);
    const float *in = kernel->in[0] + own.from;
    float *out = kernel->out[0] + own.from;
    for (size_t i = 0; i < whole; i += LANES) {
        lanes_store(out + i, swish(lanes_load(in + i), slope, least));
    }
    float rest[LANES] = {0.0F};
    memcpy(rest, in + whole, (count - whole) * sizeof(float));
    lanes_store(rest, swish(lanes_load(rest), slope, least));
    memcpy(out + whole, rest, (count - whole) * sizeof(float));
}

static void run_swish(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_part, kernel);
}

graft_status graft_cpu_open_swish(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    if (s->op != GRAFT_OP_swish || variant > 0 || !(alpha_of(s) > 1e-30F) ||
        !graft_layout_same(&s->inputs[0], s->in_layouts[0], s->out_layouts[0])) {
        return GRAFT_UNSUPPORTED;
    }
    return graft_program_plain(env, kernel, "plain:exp2", run_swish, NULL, 0);
}
