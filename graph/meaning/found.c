/* found.c - operators that find how much they make (see found.h). */
#include "graph/meaning/found.h"

#include "graph/base/half.h"
#include "graph/meaning/algebra.h"
#include "graph/opaque.h"

#include "graph/onnx/onnx_attribute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A node and what it reads. */
typedef struct {
    graft_arena *arena;
    const Onnx__NodeProto *node;
    const graft_shape *in;
    const void *const *data;
    graft_found *outs;
} finding;

static bool has(const finding *f, size_t k)
{
    return k < f->node->n_input && f->in[k].rank != GRAFT_RANK_UNKNOWN;
}

static int64_t *make_whole(const finding *f, uint32_t k, uint32_t rank, size_t count)
{
    f->outs[k].shape = (graft_shape){.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_I64};
    f->outs[k].shape.dims[0] = (int32_t)count;
    f->outs[k].data = GRAFT_NEW(f->arena, int64_t, count * (rank == 2 ? 3 : 1));
    return f->outs[k].data;
}

/* ---------------------------------------------------------------------------------- NonZero */

static bool is_zero(const void *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_F32   ? ((const float *)data)[i] == 0.0F
           : dtype == GRAFT_DTYPE_F64 ? ((const double *)data)[i] == 0.0
                                      : graft_whole_at(data, dtype, i) == 0;
}

static bool find_non_zero(const finding *f)
{
    const graft_shape *in = &f->in[0];
    const size_t count = (size_t)graft_shape_elements(in);
    size_t found = 0;
    size_t at = 0;
    if (in->rank == 0 || graft_half_is(in->dtype) || graft_type_width(in->dtype) == 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        found += !is_zero(f->data[0], in->dtype, i);
    }
    int64_t *places = GRAFT_NEW(f->arena, int64_t, found * in->rank);
    for (size_t i = 0; i < count; i++) {
        if (is_zero(f->data[0], in->dtype, i)) {
            continue;
        }
        size_t place = i;
        for (uint32_t axis = in->rank; axis-- > 0; place /= (size_t)in->dims[axis]) {
            places[axis * found + at] = (int64_t)(place % (size_t)in->dims[axis]);
        }
        at++;
    }
    f->outs[0].shape = (graft_shape){
        .rank = 2, .dtype = GRAFT_DTYPE_I64, .dims = {in->rank, (int32_t)found}
    };
    f->outs[0].data = places;
    return true;
}

/* --------------------------------------------------------------- parts along an axis, or elements */

/* An input as `count` parts, each of `outer` pieces of `bytes` that lie `step` bytes apart. */
typedef struct {
    graft_shape shape; /* Of one that has all of them. */
    uint32_t axis;
    size_t count;
    size_t outer;
    size_t bytes;
    size_t step;
} parts;

static bool find_parts(const finding *f, parts *p)
{
    const Onnx__AttributeProto *axis = graft_onnx_attribute(f->node, "axis");
    *p = (parts){.shape = f->in[0]};
    if (axis == NULL) {
        p->shape = (graft_shape){.rank = 1, .dtype = f->in[0].dtype};
        p->shape.dims[0] = (int32_t)graft_shape_elements(&f->in[0]);
    }
    const int64_t rank = p->shape.rank;
    const int64_t along = axis == NULL ? 0 : axis->i + (axis->i < 0 ? rank : 0);
    if (along < 0 || along >= rank || graft_type_width(p->shape.dtype) == 0) {
        return false;
    }
    p->axis = (uint32_t)along;
    p->count = (size_t)p->shape.dims[along];
    p->outer = graft_axes_count(&p->shape, 0, p->axis);
    p->bytes =
        graft_axes_count(&p->shape, p->axis + 1, p->shape.rank) * graft_type_width(p->shape.dtype);
    p->step = p->count * p->bytes;
    return true;
}

/* Output 0: the parts of a list, in its order. */
static void take_parts(const finding *f, const parts *p, const size_t *list, size_t count)
{
    graft_found *out = &f->outs[0];
    out->shape = p->shape;
    out->shape.dims[p->axis] = (int32_t)count;
    uint8_t *to = GRAFT_NEW(f->arena, uint8_t, p->outer * count * p->bytes);
    out->data = to;
    for (size_t o = 0; o < p->outer; o++) {
        for (size_t i = 0; i < count; i++, to += p->bytes) {
            memcpy(to, (const uint8_t *)f->data[0] + o * p->step + list[i] * p->bytes, p->bytes);
        }
    }
}

static bool find_compressed(const finding *f)
{
    parts p;
    size_t count = 0;
    if (!has(f, 1) || f->in[1].rank != 1 || f->in[1].dtype != GRAFT_DTYPE_BOOL ||
        !find_parts(f, &p)) {
        return false;
    }
    const size_t told = (size_t)f->in[1].dims[0];
    size_t *list = GRAFT_NEW(f->arena, size_t, p.count);
    for (size_t i = 0; i < p.count && i < told; i++) {
        list[count] = i;
        count += ((const uint8_t *)f->data[1])[i] != 0;
    }
    take_parts(f, &p, list, count);
    return true;
}

/* ----------------------------------------------------------------------------------- Unique */

/* What parts are sorted by. */
typedef struct {
    const parts *p;
    const void *data;
    uint32_t dtype;
    size_t width;
} comparing;

static int compare_elements(const comparing *c, size_t a, size_t b)
{
    if (c->dtype == GRAFT_DTYPE_F32) {
        const float x = ((const float *)c->data)[a];
        const float y = ((const float *)c->data)[b];
        return (x > y) - (x < y);
    }
    const int64_t x = graft_whole_at(c->data, c->dtype, a);
    const int64_t y = graft_whole_at(c->data, c->dtype, b);
    return (x > y) - (x < y);
}

static int compare_parts(const comparing *c, size_t a, size_t b)
{
    const size_t inner = c->p->bytes / c->width;
    int order = 0;
    for (size_t o = 0; o < c->p->outer && order == 0; o++) {
        const size_t row = o * c->p->count * inner;
        for (size_t i = 0; i < inner && order == 0; i++) {
            order = compare_elements(c, row + a * inner + i, row + b * inner + i);
        }
    }
    return order;
}

/* Of equal ones the first comes first. */
static int compare_places(const void *a, const void *b, void *context)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    const int order = compare_parts(context, x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static int compare_sizes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Nobody says what NaN is equal to. */
static bool has_nan(const finding *f)
{
    bool has = false;
    for (size_t i = 0; f->in[0].dtype == GRAFT_DTYPE_F32 && i < graft_count(&f->in[0]); i++) {
        has = has || isnan(((const float *)f->data[0])[i]);
    }
    return has;
}

static bool find_unique(const finding *f)
{
    parts p;
    const uint32_t dtype = f->in[0].dtype;
    const bool sorted = graft_onnx_int(f->node, "sorted", 1) != 0;
    if (graft_half_is(dtype) || dtype == GRAFT_DTYPE_F64 || has_nan(f) || !find_parts(f, &p)) {
        return false;
    }
    comparing c = {&p, f->data[0], dtype, graft_type_width(dtype)};
    size_t *order = GRAFT_NEW(f->arena, size_t, p.count);
    size_t *first = GRAFT_NEW(f->arena, size_t, p.count);  /* Of each kind. */
    size_t *leader = GRAFT_NEW(f->arena, size_t, p.count); /* The first that equals a part. */
    size_t *kind = GRAFT_NEW(f->arena, size_t, p.count);   /* By such a first one. */
    size_t count = 0;
    for (size_t i = 0; i < p.count; i++) {
        order[i] = i;
    }
    qsort_r(order, p.count, sizeof order[0], compare_places, &c);
    for (size_t i = 0; i < p.count; i++) {
        const bool another = i == 0 || compare_parts(&c, order[i - 1], order[i]) != 0;
        first[count] = order[i];
        count += another;
        leader[order[i]] = first[count - 1];
    }
    if (!sorted) {
        qsort(first, count, sizeof first[0], compare_sizes);
    }
    take_parts(f, &p, first, count);
    int64_t *firsts = make_whole(f, 1, 1, count);
    int64_t *inverse = make_whole(f, 2, 1, p.count);
    int64_t *counts = make_whole(f, 3, 1, count);
    for (size_t i = 0; i < count; i++) {
        firsts[i] = (int64_t)first[i];
        kind[first[i]] = i;
    }
    for (size_t i = 0; i < p.count; i++) {
        inverse[i] = (int64_t)kind[leader[i]];
        counts[inverse[i]]++;
    }
    return true;
}

/* ------------------------------------------------------------------------ NonMaxSuppression */

typedef struct {
    float score;
    uint32_t box;
} candidate;

/* Corners in order. */
typedef struct {
    float low[2];
    float high[2];
} box;

/* The best first, NaN last. */
static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a;
    const candidate *y = b;
    const bool behind = x->score < y->score || (isnan(x->score) && !isnan(y->score));
    const bool before = x->score > y->score || (!isnan(x->score) && isnan(y->score));
    return behind ? 1 : before ? -1 : (x->box > y->box) - (x->box < y->box);
}

static box read_box(const float *at, bool centered)
{
    box b;
    for (uint32_t k = 0; k < 2; k++) {
        const float half = at[2 + k] / 2.0F;
        const float from = centered ? at[k] - half : at[k];
        const float to = centered ? at[k] + half : at[2 + k];
        b.low[k] = from < to ? from : to;
        b.high[k] = from < to ? to : from;
    }
    return b;
}

/* Those that stay, in groups of LANES, one behind the other; without area behind the last. */
enum { LANES = 16 };
typedef struct {
    float low[2][LANES];
    float high[2][LANES];
    float area[LANES];
} box_group;

static float area_of(const box *b) { return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]); }

/* Whether a box shares more than `most` with one of the group, of what either covers. Compilers make
 * vectors of it. */
static bool overlaps(const box_group *group, const box *b, float most)
{
    const float one = area_of(b);
    uint32_t hits = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        const float left = b->low[0] > group->low[0][i] ? b->low[0] : group->low[0][i];
        const float right = b->high[0] < group->high[0][i] ? b->high[0] : group->high[0][i];
        const float top = b->low[1] > group->low[1][i] ? b->low[1] : group->low[1][i];
        const float bottom = b->high[1] < group->high[1][i] ? b->high[1] : group->high[1][i];
        const float both = (right - left) * (bottom - top);
        const float all = one + group->area[i] - both;
        hits |= (uint32_t)(left < right) & (uint32_t)(top < bottom) & (uint32_t)(both > 0.0F) &
                (uint32_t)(one > 0.0F) & (uint32_t)(group->area[i] > 0.0F) &
                (uint32_t)(all > 0.0F) & (uint32_t)(both / all > most);
    }
    return hits != 0;
}

/* `place`: how many there are. */
static void add_to_groups(box_group *groups, size_t place, const box *b)
{
    box_group *group = &groups[place / LANES];
    const size_t i = place % LANES;
    if (i == 0) {
        *group = (box_group){.area = {0.0F}};
    }
    for (uint32_t k = 0; k < 2; k++) {
        group->low[k][i] = b->low[k];
        group->high[k][i] = b->high[k];
    }
    group->area[i] = area_of(b);
}

/* What the node says. */
typedef struct {
    bool centered;
    bool limited; /* By a score. */
    size_t count; /* Of boxes. */
    size_t most;
    float overlap_most;
    float score;
} suppression;

/* Boxes that stay, best first, into `kept`; how many. */
static size_t suppress(const suppression *s, const float *boxes, const float *scores,
                       candidate *ranked, box_group *groups, uint32_t *kept)
{
    size_t candidates = 0;
    size_t found = 0;
    for (size_t i = 0; i < s->count; i++) {
        ranked[candidates] = (candidate){scores[i], (uint32_t)i};
        candidates += !s->limited || scores[i] > s->score;
    }
    if (candidates > 0) {
        qsort(ranked, candidates, sizeof ranked[0], compare_candidates);
    }
    for (size_t i = 0; i < candidates && found < s->most; i++) {
        const box next = read_box(boxes + 4 * (size_t)ranked[i].box, s->centered);
        bool stays = true;
        for (size_t j = 0; j < found && stays; j += LANES) {
            stays = !overlaps(&groups[j / LANES], &next, s->overlap_most);
        }
        if (stays) {
            add_to_groups(groups, found, &next);
            kept[found++] = ranked[i].box;
        }
    }
    return found;
}

static float real_at(const finding *f, size_t k, float absent)
{
    const bool given =
        has(f, k) && f->in[k].dtype == GRAFT_DTYPE_F32 && graft_shape_elements(&f->in[k]) == 1;
    return given ? *(const float *)f->data[k] : absent;
}

static bool find_boxes(const finding *f)
{
    const graft_shape *boxes = &f->in[0];
    const graft_shape *scores = &f->in[1];
    const bool fits = has(f, 1) && boxes->rank == 3 && scores->rank == 3 &&
                      boxes->dtype == GRAFT_DTYPE_F32 && scores->dtype == GRAFT_DTYPE_F32 &&
                      boxes->dims[0] == scores->dims[0] && boxes->dims[1] == scores->dims[2] &&
                      boxes->dims[2] == 4;
    const bool counted = has(f, 2) && graft_shape_elements(&f->in[2]) == 1;
    const int64_t most = counted ? graft_whole_at(f->data[2], f->in[2].dtype, 0) : 0;
    if (!fits) {
        return false;
    }
    const size_t count = (size_t)boxes->dims[1];
    const suppression s = {.centered = graft_onnx_int(f->node, "center_point_box", 0) != 0,
                           .limited = has(f, 4),
                           .count = count,
                           .most = most < 0                 ? 0
                                   : (uint64_t)most < count ? (size_t)most
                                                            : count,
                           .overlap_most = real_at(f, 3, 0.0F),
                           .score = real_at(f, 4, 0.0F)};
    candidate *ranked = GRAFT_NEW(f->arena, candidate, count + 1);
    box_group *groups = GRAFT_NEW(f->arena, box_group, count / LANES + 1);
    uint32_t *kept = GRAFT_NEW(f->arena, uint32_t, count + 1);
    const size_t classes = (size_t)scores->dims[1];
    int64_t *rows = NULL;
    uint32_t row_count = 0;
    uint32_t capacity = 0;
    for (size_t k = 0; k < (size_t)boxes->dims[0] * classes; k++) {
        const size_t batch = k / classes;
        const size_t found = suppress(&s, (const float *)f->data[0] + batch * count * 4,
                                      (const float *)f->data[1] + k * count, ranked, groups, kept);
        for (size_t i = 0; i < found; i++) {
            if (row_count > INT32_MAX - 3) {
                return false;
            }
            const int64_t row[3] = {(int64_t)batch, (int64_t)(k % classes), kept[i]};
            for (uint32_t j = 0; j < 3; j++) {
                GRAFT_PUSH(f->arena, rows, row_count, capacity, 96) = row[j];
            }
        }
    }
    f->outs[0].shape = (graft_shape){
        .rank = 2, .dtype = GRAFT_DTYPE_I64, .dims = {(int32_t)(row_count / 3), 3}
    };
    f->outs[0].data = rows == NULL ? GRAFT_NEW(f->arena, int64_t, 1) : rows;
    return true;
}

/* ------------------------------------------------------------------------------------ all of them */

static const struct {
    const char *op_type;
    const char *attributes;
    bool (*find)(const finding *f);
    size_t outputs;
} rows[] = {
    {"NonZero",           "",                 find_non_zero,   1},
    {"Compress",          "axis",             find_compressed, 1},
    {"Unique",            "axis sorted",      find_unique,     4},
    {"NonMaxSuppression", "center_point_box", find_boxes,      1},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static size_t find_row(const Onnx__NodeProto *node)
{
    size_t i = 0;
    while (i < ROWS && !graft_onnx_is_named(node, rows[i].op_type)) {
        i++;
    }
    return i;
}

bool graft_found_is(const Onnx__NodeProto *node) { return find_row(node) < ROWS; }

bool graft_found_run(graft_arena *arena, const Onnx__NodeProto *node, const graft_shape *in,
                     const void *const *data, graft_found *outs)
{
    const size_t row = find_row(node);
    const finding f = {arena, node, in, data, outs};
    return row < ROWS && has(&f, 0) && node->n_output <= rows[row].outputs &&
           graft_shape_elements(&in[0]) <= INT32_MAX &&
           graft_onnx_has_only(node, rows[row].attributes) && rows[row].find(&f);
}
