/* quantised.c - quantised operators (see quantised.h): plain loops. */
#include "graph/meaning/quantised.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra.h"
#include "graph/meaning/byte_conv.h"
#include "graph/meaning/byte_product.h"
#include "graph/meaning/foreign_rows.h"

#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------------------- finding */

static bool is_given(const graft_shape *shape) { return shape->rank != GRAFT_RANK_UNKNOWN; }

/* Scale and zero point `s`, `s + 1` are of one form: one number, or one for each of `count`. The
 * zero point may be left out and is then 0. */
static bool fits_scale(const graft_opaque *opaque, uint32_t s, uint32_t type, int32_t count)
{
    const graft_shape *scale = &opaque->in[s];
    const graft_shape *zero = &opaque->in[s + 1];
    uint64_t elements = graft_shape_elements(scale);
    return is_given(scale) && scale->dtype == GRAFT_DTYPE_F32 && scale->rank <= 1 &&
           (elements == 1 || elements == (uint64_t)count) &&
           (!is_given(zero) || (zero->dtype == type && graft_shape_elements(zero) == elements));
}

static bool is_of_16_bits(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_U16 || dtype == GRAFT_DTYPE_I16;
}

static bool same_sizes(const graft_shape *a, const graft_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

/* Scales and zero points are tensors like the numbers, with one place for each block along the
 * axis; the last one may be shorter. Notes the size of a block. */
static bool fits_blocks(graft_opaque *opaque, const graft_shape *whole, int64_t block)
{
    const graft_shape *scale = &opaque->in[1];
    const graft_shape *zero = &opaque->in[2];
    graft_shape sizes = *whole;
    if (block < 1 || block > INT32_MAX || opaque->axis >= whole->rank) {
        return false;
    }
    opaque->attrs[0] = (int32_t)block;
    sizes.dims[opaque->axis] = (int32_t)((whole->dims[opaque->axis] + block - 1) / block);
    return scale->dtype == GRAFT_DTYPE_F32 && same_sizes(scale, &sizes) &&
           (!is_given(zero) || (zero->dtype == whole->dtype && same_sizes(zero, &sizes)));
}

static bool find_axis(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    int64_t axis = graft_onnx_int(node, "axis", 1);
    axis += axis < 0 ? opaque->in[0].rank : 0;
    const bool one = graft_shape_elements(&opaque->in[1]) == 1 && /* The axis then says nothing. */
                     graft_onnx_int(node, "block_size", 0) == 0;
    opaque->axis = one ? 0 : (uint32_t)axis;
    return one || (axis >= 0 && axis < opaque->in[0].rank);
}

static int32_t size_along(const graft_shape *shape, uint32_t axis)
{
    return axis < shape->rank ? shape->dims[axis] : 1;
}

static bool find_change(const Onnx__NodeProto *node, graft_opaque *opaque, bool quantises)
{
    const graft_shape *whole = quantises ? &opaque->out : &opaque->in[0];
    const graft_shape *real = quantises ? &opaque->in[0] : &opaque->out;
    const int64_t block = graft_onnx_int(node, "block_size", 0);
    const int64_t precision = graft_onnx_int(node, "precision", GRAFT_DTYPE_F32);
    opaque->kind = block != 0 || is_of_16_bits(whole->dtype) ? GRAFT_OPAQUE_CHANGE
                   : quantises                               ? GRAFT_OPAQUE_QUANTISE
                                                             : GRAFT_OPAQUE_DEQUANTISE;
    opaque->read_count = 3;
    return same_sizes(whole, real) && (precision == 0 || precision == GRAFT_DTYPE_F32) &&
           (graft_foreign_is_byte(whole->dtype) || is_of_16_bits(whole->dtype) ||
            (!quantises && whole->dtype == GRAFT_DTYPE_I32)) &&
           real->dtype == GRAFT_DTYPE_F32 && find_axis(node, opaque) &&
           (block == 0 ? fits_scale(opaque, 1, whole->dtype, size_along(real, opaque->axis))
                       : fits_blocks(opaque, whole, block));
}

/* The attributes are those of `conv`, whose shape function then says whether everything fits. */
static bool find_window(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const graft_shape made = graft_byte_conv_image(opaque->out);
    graft_shape in[2] = {graft_byte_conv_image(opaque->in[0]),
                         graft_byte_conv_image(opaque->in[3])};
    graft_shape out;
    graft_opaque conv = *opaque;
    conv.in[1] = opaque->in[3];
    in[0].dtype = GRAFT_DTYPE_F32;
    in[1].dtype = GRAFT_DTYPE_F32;
    const bool fits = graft_onnx_says(node, "auto_pad", "NOTSET", true) &&
                      opaque->out.rank == opaque->in[0].rank &&
                      graft_foreign_read_conv(node, &conv) &&
                      graft_infer_shapes(GRAFT_OP_conv, conv.attrs, in, &out) == GRAFT_OK &&
                      same_sizes(&out, &made);
    memcpy(opaque->attrs, conv.attrs, sizeof(conv.attrs));
    return fits;
}

static bool find_product(const Onnx__NodeProto *node, graft_opaque *opaque, bool is_conv)
{
    const graft_shape *in = opaque->in;
    opaque->kind = is_conv ? GRAFT_OPAQUE_QUANTISED_CONV : GRAFT_OPAQUE_QUANTISED_MATMUL;
    opaque->read_count = is_conv ? 9 : 8;
    if (!is_given(&in[3]) || !graft_foreign_is_byte(in[0].dtype) ||
        !graft_foreign_is_byte(in[3].dtype) || !graft_foreign_is_byte(opaque->out.dtype)) {
        return false;
    }
    const int32_t columns = is_conv          ? in[3].dims[0]
                            : in[3].rank > 1 ? in[3].dims[in[3].rank - 1]
                                             : 1;
    if (!fits_scale(opaque, 1, in[0].dtype, 1) || !fits_scale(opaque, 4, in[3].dtype, columns) ||
        !fits_scale(opaque, 6, opaque->out.dtype, 1)) {
        return false;
    }
    if (is_conv) {
        bool biased = is_given(&in[8]);
        return (!biased || (in[8].dtype == GRAFT_DTYPE_I32 &&
                            graft_shape_elements(&in[8]) == (uint64_t)columns)) &&
               find_window(node, opaque);
    }
    graft_shape sides[2] = {in[0], in[3]};
    graft_shape out;
    sides[0].dtype = GRAFT_DTYPE_F32;
    sides[1].dtype = GRAFT_DTYPE_F32;
    return graft_infer_shapes(GRAFT_OP_matmul, opaque->attrs, sides, &out) == GRAFT_OK &&
           same_sizes(&out, &opaque->out);
}

bool graft_quantised_is_change(const Onnx__NodeProto *node)
{
    const char *domain = node->domain == NULL ? "" : node->domain;
    return (domain[0] == '\0' || strcmp(domain, "com.microsoft") == 0) && node->op_type != NULL &&
           graft_onnx_lists("QuantizeLinear DequantizeLinear", node->op_type);
}

bool graft_quantised_find(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const char *type = node->op_type;
    return strcmp(type, "QuantizeLinear") == 0     ? find_change(node, opaque, true)
           : strcmp(type, "DequantizeLinear") == 0 ? find_change(node, opaque, false)
           : strcmp(type, "QLinearConv") == 0      ? find_product(node, opaque, true)
           : strcmp(type, "QLinearMatMul") == 0    ? find_product(node, opaque, false)
                                                   : false;
}

/* ----------------------------------------------------------------------------- running */

/* A quantised tensor with its scales and zero points. */
typedef struct {
    const void *data;
    const float *scales;
    const void *zeros; /* NULL: all 0. */
    size_t scale_step; /* 0: one for the tensor. */
    uint32_t dtype;
} tensor;

static tensor tensor_of(const graft_opaque *opaque, const void *const *in, uint32_t k, uint32_t s)
{
    return (tensor){.data = in[k],
                    .scales = in[s],
                    .zeros = in[s + 1],
                    .scale_step = graft_shape_elements(&opaque->in[s]) > 1 ? 1 : 0,
                    .dtype = opaque->in[k].dtype};
}

static int32_t zero_of(const tensor *t, uint32_t dtype, size_t channel)
{
    return t->zeros == NULL ? 0 : (int32_t)graft_whole_at(t->zeros, dtype, channel * t->scale_step);
}

/* Loops of one type, which compilers make vectors of. */
static void quantise(const float *numbers, size_t count, float scale, int32_t zero, uint32_t dtype,
                     uint8_t *out)
{
    float least = graft_foreign_least(dtype);
    for (size_t i = 0; i < count; i++) {
        out[i] = graft_foreign_round(numbers[i] / scale, (float)zero, least);
    }
}

static void dequantise(const tensor *t, size_t from, size_t count, float scale, int32_t zero,
                       float *out)
{
    if (t->dtype == GRAFT_DTYPE_I8) {
        const int8_t *bytes = (const int8_t *)t->data + from;
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)(bytes[i] - zero) * scale;
        }
    } else if (t->dtype == GRAFT_DTYPE_U8) {
        const uint8_t *bytes = (const uint8_t *)t->data + from;
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)(bytes[i] - zero) * scale;
        }
    } else {
        const int32_t *numbers = (const int32_t *)t->data + from;
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)((int64_t)numbers[i] - zero) * scale;
        }
    }
}

/* Runs of elements of one scale. */
static graft_blocks runs_of(const graft_opaque *opaque)
{
    return opaque->op == 0 && opaque->out.rank > 0
               ? graft_blocks_of(&opaque->out, (int32_t)opaque->axis)
               : (graft_blocks){1, 1, graft_count(&opaque->out)};
}

typedef struct {
    const graft_opaque *opaque;
    const void *const *in;
    void *out;
} change;

/* Some of the elements, run by run. Of a row of the table the attributes say the scale and the zero
 * point. */
static void change_some(const void *work, uint32_t part, uint32_t parts)
{
    const change *c = work;
    const graft_opaque *opaque = c->opaque;
    const bool is_row = opaque->op != 0;
    const bool quantises = opaque->kind == GRAFT_OPAQUE_QUANTISE;
    const float own = graft_float_of_bits(opaque->attrs[GRAFT_ATTR_quantise_scale]);
    const tensor t = is_row
                         ? (tensor){.data = c->in[0], .scales = &own, .dtype = opaque->in[0].dtype}
                         : tensor_of(opaque, c->in, 0, 1);
    const uint32_t whole = quantises ? opaque->out.dtype : t.dtype;
    const graft_blocks blocks = runs_of(opaque);
    const graft_range range =
        graft_range_part((int64_t)graft_count(&opaque->out), GRAFT_SHARE_LINE, part, parts);
    size_t count = 0;
    for (size_t from = (size_t)range.from; from < (size_t)range.to; from += count) {
        const size_t channel = from / blocks.inner % blocks.size;
        const float scale = t.scales[channel * t.scale_step];
        const int32_t zero =
            is_row ? opaque->attrs[GRAFT_ATTR_quantise_zero] : zero_of(&t, whole, channel);
        const size_t run = blocks.inner - from % blocks.inner;
        count = run < (size_t)range.to - from ? run : (size_t)range.to - from;
        if (quantises) {
            quantise((const float *)t.data + from, count, scale, zero, whole,
                     (uint8_t *)c->out + from);
        } else {
            dequantise(&t, from, count, scale, zero, (float *)c->out + from);
        }
    }
}

/* The bits of a number of 16, as graft_foreign_round. */
static uint16_t round_16(float value, float zero, uint32_t dtype)
{
    const float least = dtype == GRAFT_DTYPE_I16 ? -32768.0F : 0.0F;
    value = rintf(value) + zero;
    value = value >= least ? value : least;
    value = value < least + 65535.0F ? value : least + 65535.0F;
    return (uint16_t)(int32_t)value;
}

static void change_one(const tensor *t, size_t i, size_t scale, uint32_t whole, void *out)
{
    const float by = t->scales[scale];
    const int32_t zero = t->zeros == NULL ? 0 : (int32_t)graft_whole_at(t->zeros, whole, scale);
    if (t->dtype != GRAFT_DTYPE_F32) {
        ((float *)out)[i] = (float)(graft_whole_at(t->data, whole, i) - zero) * by;
    } else if (is_of_16_bits(whole)) {
        ((uint16_t *)out)[i] = round_16(((const float *)t->data)[i] / by, (float)zero, whole);
    } else {
        ((uint8_t *)out)[i] = graft_foreign_round(((const float *)t->data)[i] / by, (float)zero,
                                                  graft_foreign_least(whole));
    }
}

/* To or from 16 bits, or by scales of blocks. */
static void run_other_change(const graft_opaque *opaque, const void *const *in, void *out)
{
    const tensor t = tensor_of(opaque, in, 0, 1);
    const uint32_t whole = t.dtype == GRAFT_DTYPE_F32 ? opaque->out.dtype : t.dtype;
    const size_t block = (size_t)opaque->attrs[0];
    const size_t groups = block > 0 ? (size_t)opaque->in[1].dims[opaque->axis] : 0;
    const graft_blocks blocks = runs_of(opaque);
    for (size_t run = 0; run < blocks.outer * blocks.size; run++) {
        const size_t place = run % blocks.size;
        const size_t first =
            block == 0 ? 0 : (run / blocks.size * groups + place / block) * blocks.inner;
        for (size_t i = 0; i < blocks.inner; i++) {
            change_one(&t, run * blocks.inner + i, block == 0 ? place * t.scale_step : first + i,
                       whole, out);
        }
    }
}

/* A product of two quantised tensors that is quantised again. */
typedef struct {
    tensor x, w;
    float out_scale;
    int32_t out_zero;
    uint32_t out_type;
    uint8_t *out;
    const int32_t *bias; /* By filter; NULL: 0. */
    size_t channels;     /* Filters or columns: */
    size_t inner;        /* so many sums of one, then as many of the next. */
} product;

static product product_of(const graft_opaque *opaque, const void *const *in, void *out)
{
    uint32_t type = opaque->out.dtype;
    return (product){.x = tensor_of(opaque, in, 0, 1),
                     .w = tensor_of(opaque, in, 3, 4),
                     .out_scale = *(const float *)in[6],
                     .out_zero = in[7] == NULL ? 0 : (int32_t)graft_whole_at(in[7], type, 0),
                     .out_type = type,
                     .out = out};
}

static void put_sums(const product *p, const int32_t *sums, size_t first, size_t count)
{
    const float zero = (float)p->out_zero;
    const float least = graft_foreign_least(p->out_type);
    size_t channel = 0;
    for (size_t from = 0; from < count; from += p->inner) {
        const uint32_t bias = p->bias == NULL ? 0 : (uint32_t)p->bias[channel];
        const float factor = p->x.scales[0] * p->w.scales[channel * p->w.scale_step] / p->out_scale;
        for (size_t i = from; i < from + p->inner; i++) {
            const int32_t sum = (int32_t)((uint32_t)sums[i] + bias);
            p->out[first + i] = graft_foreign_round((float)sum * factor, zero, least);
        }
        channel = channel + 1 == p->channels ? 0 : channel + 1;
    }
}

static void run_conv(graft_arena *scratch, const graft_opaque *opaque, const void *const *in,
                     void *out)
{
    GRAFT_SCOPED(scratch);
    product p = product_of(opaque, in, out);
    graft_byte_conv c =
        graft_byte_conv_of(opaque->attrs, &opaque->in[0], &opaque->in[3], &opaque->out);
    const graft_byte_filter filter = {
        .data = p.w.data, .zeros = p.w.zeros, .dtype = p.w.dtype, .zero_step = p.w.scale_step};
    const graft_byte_image image = {p.x.data, p.x.dtype, zero_of(&p.x, p.x.dtype, 0)};
    const size_t images = (size_t)opaque->out.dims[0];
    int32_t *packed =
        GRAFT_NEW(scratch, int32_t, graft_byte_conv_packed_bytes(&c) / sizeof(int32_t));
    int32_t *sums = GRAFT_NEW(scratch, int32_t, graft_count(&opaque->out));
    c.threads = opaque->threads;
    p.bias = in[8];
    p.channels = c.filters;
    p.inner = graft_count(&opaque->out) / images / c.filters;
    graft_byte_conv_pack(&c, &filter, packed);
    graft_byte_conv_run_all(scratch, &c, packed, &image, images, sums);
    put_sums(&p, sums, 0, graft_count(&opaque->out));
}

/* Where the matrix of a broadcast operand begins that belongs to matrix `index` of the output. */
static size_t matrix_at(const graft_shape *shape, const graft_shape *out, size_t index)
{
    const graft_view view = graft_view_broadcast(shape, shape->rank - 2u, out, out->rank - 2u);
    size_t size = graft_axes_count(shape, shape->rank - 2u, shape->rank);
    return out->rank == 2 ? 0 : graft_view_offset(&view, view.rank, index) * size;
}

static void run_matmul(graft_arena *scratch, const graft_opaque *opaque, const void *const *in,
                       void *out)
{
    product p = product_of(opaque, in, out);
    const graft_shape *a = &opaque->in[0];
    const graft_shape *b = &opaque->in[3];
    const size_t rows = (size_t)a->dims[a->rank - 2];
    const size_t depth = (size_t)a->dims[a->rank - 1];
    const size_t columns = (size_t)b->dims[b->rank - 1];
    const size_t bytes = graft_byte_row_bytes(depth);
    const int32_t zero =
        zero_of(&p.x, p.x.dtype, 0) + (p.x.dtype == GRAFT_DTYPE_I8 ? -INT8_MIN : 0);
    p.channels = columns;
    p.inner = 1;
    for (size_t i = 0; i < graft_count(&opaque->out) / rows / columns; i++) {
        GRAFT_SCOPED(scratch);
        const graft_byte_matrix right = {
            .data = (const uint8_t *)p.w.data + matrix_at(b, &opaque->out, i),
            .zeros = p.w.zeros,
            .dtype = p.w.dtype,
            .depth = depth,
            .columns = columns,
            .depth_step = columns,
            .column_step = 1,
            .zero_step = p.w.scale_step,
        };
        const graft_byte_panels panels = graft_byte_pack(scratch, &right);
        uint8_t *data = GRAFT_NEW(scratch, uint8_t, rows * bytes);
        const graft_byte_rows left = {.data = data, .zeros = &zero, .count = rows};
        int32_t *sums = GRAFT_NEW(scratch, int32_t, rows * columns);
        for (size_t m = 0; m < rows; m++) {
            graft_byte_fill(p.x.data, p.x.dtype, matrix_at(a, &opaque->out, i) + m * depth, 1,
                            depth, data + m * bytes);
        }
        graft_byte_multiply(opaque->threads, &left, &panels, columns, 1, sums);
        put_sums(&p, sums, i * rows * columns, rows * columns);
    }
}

void graft_quantised_run(graft_arena *scratch, const graft_opaque *opaque, const void *const *in,
                         void *out)
{
    if (opaque->kind == GRAFT_OPAQUE_QUANTISED_CONV) {
        run_conv(scratch, opaque, in, out);
    } else if (opaque->kind == GRAFT_OPAQUE_QUANTISED_MATMUL) {
        run_matmul(scratch, opaque, in, out);
    } else if (opaque->kind == GRAFT_OPAQUE_CHANGE) {
        run_other_change(opaque, in, out);
    } else {
        graft_share(opaque->threads, change_some, &(change){opaque, in, out});
    }
}
