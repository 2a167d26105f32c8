/* device_cpu_softmax.c - softmax and its logarithm along any axis, a vector of neighbours at a time:
 * along axes other than the last in memory the library has its reference only, a hundred times as
 * slow. Three passes: the largest, the sum of the powers, the result. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/program.h"
#include "cost/plan/nest.h"
#include "graph/base/share.h"

#include <math.h>
#include <string.h>

/* Element (o, s, i) of (outer, size, inner), s along the axis, in the order of memory. */
typedef struct {
    int64_t outer;
    int64_t size;
    int64_t inner;
} folds;

static folds folds_of(const graft_signature *s)
{
    const graft_shape *shape = &s->inputs[0];
    const uint32_t axis = (uint32_t)s->attrs[GRAFT_ATTR_softmax_axis];
    int64_t steps[GRAFT_MAX_RANK];
    graft_layout_strides(shape, s->in_layouts[0], steps);
    folds f = {.size = shape->dims[axis], .inner = steps[axis]};
    f.outer = (int64_t)graft_shape_elements(shape) / (f.size * f.inner);
    return f;
}

/* e^x for x <= 0; 0 where that is next to nothing; what is NaN stays it. */
LANES_INLINE lanes power_of(lanes x)
{
    const lanes least = lanes_of(-126.0F);
    const lanes octaves = x * lanes_of(1.44269504F); /* 1 / ln 2 */
    const lanes power = lanes_exp2(lanes_choose(octaves < least, least, octaves));
    const lanes_mask is_number = octaves <= lanes_of(0.0F);
    return lanes_choose(is_number, lanes_choose(octaves < least, lanes_of(0.0F), power), octaves);
}

LANES_INLINE lanes larger_of(lanes a, lanes b) { return lanes_choose(b > a, b, a); }

/* Of `width` neighbours, the softmax along an axis, `inner` elements from one to the next. */
LANES_INLINE void fold_apart(const folds *f, const float *in, float *out, int64_t width,
                             bool is_log)
{
    lanes most = lanes_of(-INFINITY);
    lanes sum = lanes_of(0.0F);
    for (int64_t s = 0; s < f->size; s++) {
        most = larger_of(most, lanes_load_some(in + s * f->inner, width));
    }
    for (int64_t s = 0; s < f->size; s++) {
        const lanes x = lanes_load_some(in + s * f->inner, width) - most;
        const lanes power = power_of(x);
        const lanes kept = is_log ? x : power;
        sum += power;
        memcpy(out + s * f->inner, &kept, (size_t)width * sizeof(float));
    }
    for (int lane = 0; lane < LANES && is_log; lane++) {
        sum[lane] = logf(sum[lane]);
    }
    const lanes factor = lanes_of(1.0F) / sum;
    for (int64_t s = 0; s < f->size; s++) {
        const lanes kept = lanes_load_some(out + s * f->inner, width);
        const lanes y = is_log ? kept - sum : kept * factor;
        memcpy(out + s * f->inner, &y, (size_t)width * sizeof(float));
    }
}

/* The same of one row that lies in one piece. What is behind its last whole vector is filled up with
 * what changes neither the largest nor the sum. */
LANES_INLINE void fold_row(const float *in, float *out, int64_t size, bool is_log)
{
    const int64_t whole = size / LANES * LANES;
    const size_t rest = (size_t)(size - whole) * sizeof(float);
    lanes last = lanes_of(-INFINITY);
    memcpy(&last, in + whole, rest);
    lanes most = last;
    for (int64_t i = 0; i < whole; i += LANES) {
        most = larger_of(most, lanes_load(in + i));
    }
    float largest = most[0];
    for (int lane = 1; lane < LANES; lane++) {
        largest = most[lane] > largest ? most[lane] : largest;
    }
    last -= lanes_of(largest);
    lanes powers = power_of(last);
    lanes sum = lanes_of(0.0F);
    memcpy(&sum, &powers, rest);
    for (int64_t i = 0; i < whole; i += LANES) {
        const lanes x = lanes_load(in + i) - lanes_of(largest);
        const lanes power = power_of(x);
        sum += power;
        lanes_store(out + i, is_log ? x : power);
    }
    float total = 0.0F;
    for (int lane = 0; lane < LANES; lane++) {
        total += sum[lane];
    }
    const lanes logarithm = lanes_of(logf(total));
    const lanes factor = lanes_of(1.0F / total);
    for (int64_t i = 0; i < whole; i += LANES) {
        lanes_store(out + i,
                    is_log ? lanes_load(out + i) - logarithm : lanes_load(out + i) * factor);
    }
    last = is_log ? last - logarithm : powers * factor;
    memcpy(out + whole, &last, rest);
}

static void run_part(const void *context, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = context;
    const folds f = folds_of(&kernel->signature);
    const bool is_log = kernel->signature.op == GRAFT_OP_log_softmax;
    const int64_t vectors = (f.inner + LANES - 1) / LANES;
    const graft_range own = graft_range_part(f.outer * vectors, 1, part, parts);
    for (int64_t i = own.from; i < own.to; i++) {
        const int64_t from = i % vectors * LANES;
        const int64_t at = i / vectors * f.size * f.inner + from;
        const float *in = kernel->in[0] + at;
        float *out = kernel->out[0] + at;
        if (f.inner == 1) {
            fold_row(in, out, f.size, is_log);
        } else if (f.inner - from >= LANES) {
            fold_apart(&f, in, out, LANES, is_log);
        } else {
            fold_apart(&f, in, out, f.inner - from, is_log);
        }
    }
}

static void run_softmax(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_part, kernel);
}

graft_status graft_cpu_open_plain_softmax(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    if ((s->op != GRAFT_OP_softmax && s->op != GRAFT_OP_log_softmax) || variant > 0 ||
        s->in_layouts[0] == GRAFT_LAYOUT_BLOCKED || s->in_layouts[0] != s->out_layouts[0]) {
        return GRAFT_UNSUPPORTED;
    }
    return graft_program_plain(env, kernel, "plain", run_softmax, NULL, 0);
}
