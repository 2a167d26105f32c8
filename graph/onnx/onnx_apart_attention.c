/* onnx_apart_attention.c - attention in its forms, as two products and a softmax (see
 * onnx_apart.h). Where several heads of queries share one of keys, their rows lie behind one
 * another in one matrix. */
#include "graph/onnx/onnx_apart.h"

#include <math.h>

/* Heads that lie behind rows, (batch, rows, heads, columns), or in front of them. */
typedef struct {
    graft_tensor x;
    bool behind;
} heads;

/* What a qk_matmul_output shows. */
enum { SHOWS_PRODUCTS, SHOWS_CAPPED, SHOWS_BIASED, SHOWS_SHARES };

typedef struct {
    graft_apart *apart;
    heads q;
    heads k; /* With those of the past. */
    heads v;
    int32_t batch;
    int32_t q_heads;
    int32_t kv_heads;
    int32_t sharing; /* Heads of queries for each of keys. */
    int32_t rows;    /* Queries. */
    int32_t columns; /* Keys. */
    int32_t size;    /* Of a key. */
    int32_t value_size;
    int32_t before;       /* Keys in front of the first query's own. */
    graft_tensor lengths; /* Keys of each item, (batch, 1, 1, 1), of which the last ones are the
                           queries' own; NULL: all are there, and `before` counts. */
    graft_tensor bias;    /* Of scores, -infinity where a key is hidden; NULL: none so far. */
    bool may_hide_all;    /* A query may see no key: what it gives is 0 then. */
    float scale;
    float softcap;      /* 0: none. */
    int64_t mode;       /* What is shown... */
    graft_tensor shown; /* ...where output `shows` is read. */
    uint32_t shows;
} attention;

/* Heads in front. */
static graft_tensor turn(const attention *a, heads x)
{
    return x.behind ? GRAFT_APART(a->apart, "Transpose perm=0,2,1,3", x.x) : x.x;
}

/* ---------------------------------------------------------------------------- what is hidden */

static void add_bias(attention *a, graft_tensor bias)
{
    a->bias = a->bias == NULL ? bias : GRAFT_APART(a->apart, "Add", a->bias, bias);
}

/* -infinity where truth values are as `hidden` says, else 0. */
static graft_tensor bias_of(const attention *a, graft_tensor truth, bool hidden)
{
    const graft_tensor seen = graft_apart_number(a->apart, 0.0F);
    const graft_tensor none = graft_apart_number(a->apart, -INFINITY);
    return GRAFT_APART(a->apart, "Where", truth, hidden ? none : seen, hidden ? seen : none);
}

static graft_tensor key_places(const attention *a)
{
    return graft_apart_range(a->apart, 0.0F, 1.0F, a->columns, 0, 1);
}

/* Those of queries among keys, moved by `offset`. */
static graft_tensor query_places(const attention *a, int64_t offset)
{
    const int64_t first = offset + (a->lengths == NULL ? a->before : -(int64_t)a->rows);
    const graft_tensor places = graft_apart_range(a->apart, (float)first, 1.0F, a->rows, 0, 2);
    return a->lengths == NULL ? places : GRAFT_APART(a->apart, "Add", a->lengths, places);
}

/* Hides keys further than `left` in front of a query and than `right` behind it; -1: none. */
static void hide_beside(attention *a, int64_t left, int64_t right)
{
    graft_apart *apart = a->apart;
    if (right >= 0) {
        const graft_tensor last = query_places(a, right);
        add_bias(a, bias_of(a, GRAFT_APART(apart, "Less", last, key_places(a)), true));
    }
    if (left >= 0) {
        const graft_tensor first = query_places(a, -left);
        add_bias(a, bias_of(a, GRAFT_APART(apart, "Less", key_places(a), first), true));
        a->may_hide_all = true; /* Of more queries than keys. */
    }
}

/* `lengths`, a whole number for each item, and `more` are how many keys there are. */
static void hide_beyond(attention *a, graft_tensor lengths, int64_t more)
{
    graft_apart *apart = a->apart;
    const graft_shape shape = graft_apart_shape(apart, lengths);
    if (graft_shape_elements(&shape) != (uint64_t)a->batch) {
        graft_apart_refuse(apart, "lengths that are not one for each item");
        return;
    }
    a->lengths = GRAFT_APART(apart, "Cast to=1", lengths);
    a->lengths = GRAFT_APART_VIEW(apart, a->lengths, a->batch, 1, 1, 1);
    a->lengths = GRAFT_APART(apart, "Add", a->lengths, graft_apart_number(apart, (float)more));
    add_bias(a, bias_of(a, GRAFT_APART(apart, "Less", key_places(a), a->lengths), false));
    a->may_hide_all = true;
}

/* A mask of numbers, or of truth values that say what is seen; keys behind it are hidden. */
static void apply_mask(attention *a, graft_tensor mask)
{
    graft_shape shape = graft_apart_shape(a->apart, mask);
    if (mask == NULL) {
        return;
    }
    const bool fits = shape.rank >= 1 && shape.rank <= 4 &&
                      shape.dims[shape.rank - 1U] <= a->columns &&
                      (shape.dtype == GRAFT_DTYPE_BOOL || shape.dtype == GRAFT_DTYPE_F32);
    if (!fits) {
        graft_apart_refuse(a->apart, "a mask that does not fit the scores");
        return;
    }
    if (shape.dtype == GRAFT_DTYPE_BOOL) {
        mask = bias_of(a, mask, false);
    }
    if (shape.dims[shape.rank - 1U] < a->columns) {
        shape.dims[shape.rank - 1U] = a->columns - shape.dims[shape.rank - 1U];
        const graft_tensor rest = graft_apart_filled(a->apart, &shape, -INFINITY);
        mask = GRAFT_APART(a->apart, "Concat axis=-1", mask, rest);
    }
    add_bias(a, mask);
    a->may_hide_all = true;
}

/* -------------------------------------------------------------------------------- the products */

/* (batch, q_heads, rows, columns), scaled. */
static graft_tensor multiply_keys(const attention *a)
{
    const int64_t rows = (int64_t)a->sharing * a->rows;
    const bool shared = a->sharing > 1;
    graft_tensor q = turn(a, a->q);
    q = shared ? GRAFT_APART_VIEW(a->apart, q, a->batch, a->kv_heads, rows, a->size) : q;
    const char *to_columns = a->k.behind ? "Transpose perm=0,2,3,1" : "Transpose perm=0,1,3,2";
    const bool early = a->columns > a->size; /* Fewer numbers are scaled. */
    q = early ? graft_apart_scaled(a->apart, q, a->scale) : q;
    graft_tensor scores =
        GRAFT_APART(a->apart, "MatMul", q, GRAFT_APART(a->apart, to_columns, a->k.x));
    scores = shared ? GRAFT_APART_VIEW(a->apart, scores, a->batch, a->q_heads, a->rows, a->columns)
                    : scores;
    return early ? scores : graft_apart_scaled(a->apart, scores, a->scale);
}

/* (batch, q_heads, rows, value_size) */
static graft_tensor multiply_values(const attention *a, graft_tensor shares)
{
    const int64_t rows = (int64_t)a->sharing * a->rows;
    const bool shared = a->sharing > 1;
    shares = shared ? GRAFT_APART_VIEW(a->apart, shares, a->batch, a->kv_heads, rows, a->columns)
                    : shares;
    const graft_tensor y = GRAFT_APART(a->apart, "MatMul", shares, turn(a, a->v));
    return shared ? GRAFT_APART_VIEW(a->apart, y, a->batch, a->q_heads, a->rows, a->value_size) : y;
}

static void show(attention *a, int64_t mode, graft_tensor scores)
{
    a->shown = a->mode == mode ? scores : a->shown;
}

/* Keeps a softmax from rows of -infinity, of which it makes no number. Factors of rows, 0 where all
 * is hidden. */
static graft_tensor find_seen(attention *a)
{
    graft_apart *apart = a->apart;
    const graft_tensor none = graft_apart_number(apart, -INFINITY);
    const graft_tensor most = graft_apart_reduced(apart, "ReduceMax", a->bias, -1);
    a->bias = GRAFT_APART(apart, "Max", a->bias, graft_apart_number(apart, -1e30F));
    return GRAFT_APART(apart, "Where", GRAFT_APART(apart, "Less", none, most),
                       graft_apart_number(apart, 1.0F), graft_apart_number(apart, 0.0F));
}

/* (batch, q_heads, rows, value_size) */
static graft_tensor attend(attention *a)
{
    graft_apart *apart = a->apart;
    const bool shows = graft_apart_is_read(apart, a->shows);
    graft_tensor scores = multiply_keys(a);
    show(a, SHOWS_PRODUCTS, scores);
    if (a->softcap != 0.0F) {
        scores = GRAFT_APART(apart, "Tanh", graft_apart_scaled(apart, scores, 1.0F / a->softcap));
        scores = graft_apart_scaled(apart, scores, a->softcap);
    }
    show(a, SHOWS_CAPPED, scores);
    if (shows && a->mode == SHOWS_BIASED) {
        show(a, SHOWS_BIASED,
             a->bias == NULL ? scores : GRAFT_APART(apart, "Add", scores, a->bias));
    }
    const graft_tensor seen = a->bias != NULL && a->may_hide_all ? find_seen(a) : NULL;
    const graft_shape products = graft_apart_shape(apart, scores);
    scores = a->bias == NULL ? scores : GRAFT_APART(apart, "Add", scores, a->bias);
    const graft_shape biased = graft_apart_shape(apart, scores);
    graft_apart_refuse_if(apart, !graft_shape_equal(&products, &biased),
                          "a mask that does not fit the scores");
    graft_tensor shares = GRAFT_APART(apart, "Softmax axis=3", scores);
    const bool early = shows && a->mode == SHOWS_SHARES;
    shares = seen != NULL && early ? GRAFT_APART(apart, "Mul", shares, seen) : shares;
    show(a, SHOWS_SHARES, shares);
    const graft_tensor y = multiply_values(a, shares);
    return seen != NULL && !early ? GRAFT_APART(apart, "Mul", y, seen) : y;
}

/* Heads side by side, (batch, rows, q_heads * value_size). */
static graft_tensor join_heads(const attention *a, graft_tensor y)
{
    const int64_t columns = (int64_t)a->q_heads * a->value_size;
    y = GRAFT_APART(a->apart, "Transpose perm=0,2,1,3", y);
    return GRAFT_APART_VIEW(a->apart, y, a->batch, a->rows, columns);
}

/* ------------------------------------------------------------------------------------- heads */

/* Heads of a tensor (batch, rows, count * size), or (batch, count, rows, size). */
static heads part_heads(const attention *a, graft_tensor x, int32_t count)
{
    const graft_shape s = graft_apart_shape(a->apart, x);
    return s.rank == 4
               ? (heads){.x = x}
               : (heads){.x = GRAFT_APART_VIEW(a->apart, x, s.dims[0], s.dims[1], count, -1),
                         .behind = true};
}

/* Sizes of the heads of what part_heads takes apart: count, rows, columns. */
static bool size_heads(const attention *a, graft_tensor x, int64_t count, int32_t sizes[3])
{
    const graft_shape s = graft_apart_shape(a->apart, x);
    const bool is_joined = graft_apart_is_real(a->apart, x, 3);
    if (!is_joined && !graft_apart_is_real(a->apart, x, 4)) {
        return false;
    }
    if (is_joined && (count < 1 || s.dims[2] % count != 0)) {
        return false;
    }
    sizes[0] = is_joined ? (int32_t)count : s.dims[1];
    sizes[1] = is_joined ? s.dims[1] : s.dims[2];
    sizes[2] = is_joined ? (int32_t)(s.dims[2] / count) : s.dims[3];
    return true;
}

/* Reads heads of three tensors; `kv_heads` of joined keys and values. */
static void read_heads(attention *a, const graft_tensor x[3], int64_t q_heads, int64_t kv_heads)
{
    int32_t sizes[3][3];
    bool fits = true;
    for (uint32_t i = 0; i < 3; i++) {
        const graft_shape shape = graft_apart_shape(a->apart, x[i]);
        fits = fits && size_heads(a, x[i], i == 0 ? q_heads : kv_heads, sizes[i]) &&
               (i == 0 || shape.dims[0] == a->batch);
        a->batch = i == 0 ? shape.dims[0] : a->batch;
    }
    if (!fits || sizes[0][0] % sizes[1][0] != 0 || sizes[1][0] != sizes[2][0] ||
        sizes[1][1] != sizes[2][1] || sizes[0][2] != sizes[1][2]) {
        graft_apart_refuse(a->apart, "queries, keys and values that do not fit one another");
        return;
    }
    a->q_heads = sizes[0][0];
    a->kv_heads = sizes[1][0];
    a->sharing = sizes[0][0] / sizes[1][0];
    a->rows = sizes[0][1];
    a->columns = sizes[1][1];
    a->size = sizes[0][2];
    a->value_size = sizes[2][2];
    a->q = part_heads(a, x[0], a->q_heads);
    a->k = part_heads(a, x[1], a->kv_heads);
    a->v = part_heads(a, x[2], a->kv_heads);
    a->scale = graft_apart_float(a->apart, "scale", 0.0F);
    a->scale = a->scale == 0.0F ? 1.0F / sqrtf((float)a->size) : a->scale;
}

/* What came before, (batch, kv_heads, before, columns), goes in front. */
static void prepend(attention *a, heads *x, graft_tensor past)
{
    *x = (heads){.x = GRAFT_APART(a->apart, "Concat axis=2", past, turn(a, *x))};
}

static void read_past(attention *a, graft_tensor key, graft_tensor value)
{
    if (key == NULL && value == NULL) {
        return;
    }
    const graft_shape shape = graft_apart_shape(a->apart, key);
    if (!graft_apart_is_real(a->apart, key, 4) || !graft_apart_is_real(a->apart, value, 4)) {
        graft_apart_refuse(a->apart, "keys and values of the past that do not fit");
        return;
    }
    a->before = shape.dims[2];
    prepend(a, &a->k, key);
    prepend(a, &a->v, value);
    a->columns = graft_apart_shape(a->apart, a->k.x).dims[2];
}

static void show_present(attention *a, uint32_t first)
{
    for (uint32_t k = 0; k < 2; k++) {
        heads *x = k == 0 ? &a->k : &a->v;
        if (graft_apart_is_read(a->apart, first + k)) {
            *x = (heads){.x = turn(a, *x)};
            graft_apart_result(a->apart, first + k, x->x);
        }
    }
}

/* -------------------------------------------------------------------------------- the operators */

/* Since opset 23; with lengths since 24, with windows since 25. */
void graft_apart_attention(graft_apart *apart)
{
    enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
    const Onnx__NodeProto *node = apart->node;
    attention a = {.apart = apart, .shows = 3};
    const graft_tensor x[3] = {graft_apart_input(apart, Q), graft_apart_input(apart, K),
                               graft_apart_input(apart, V)};
    const bool causal = graft_onnx_int(node, "is_causal", 0) != 0;
    const int64_t right = graft_onnx_int(node, "right_window_size", -1);
    read_heads(&a, x, graft_onnx_int(node, "q_num_heads", 0),
               graft_onnx_int(node, "kv_num_heads", 0));
    a.mode = graft_onnx_int(node, "qk_matmul_output_mode", SHOWS_PRODUCTS);
    a.softcap = graft_apart_float(apart, "softcap", 0.0F);
    if (apart->refusal != NULL) {
        return;
    }
    read_past(&a, graft_apart_input(apart, PAST_KEY), graft_apart_input(apart, PAST_VALUE));
    show_present(&a, 1);
    if (graft_apart_input(apart, LENGTHS) != NULL) {
        hide_beyond(&a, graft_apart_input(apart, LENGTHS), 0);
    }
    hide_beside(&a, graft_onnx_int(node, "left_window_size", -1), causal ? 0 : right);
    apply_mask(&a, graft_apart_input(apart, MASK));
    const graft_tensor y = attend(&a);
    graft_apart_result(apart, 3, a.shown);
    graft_apart_result(apart, 0, a.q.behind ? join_heads(&a, y) : y);
}

/* ---------------------------------------------------------------------- those of com.microsoft */

static graft_tensor as_real(const attention *a, graft_tensor whole)
{
    return GRAFT_APART(a->apart, "Cast to=1", whole);
}

/* Whole numbers that are above 0 where a key is seen, for each item and perhaps query, or how many
 * keys an item has. What is hidden has a number added to its score. */
static void apply_padding(attention *a, graft_tensor mask)
{
    graft_apart *apart = a->apart;
    const graft_shape s = graft_apart_shape(apart, mask);
    const float filter = graft_apart_float(apart, "mask_filter_value", -10000.0F);
    if (mask == NULL) {
        return;
    }
    const bool counts = s.rank == 1 && s.dims[0] == a->batch;
    const bool fits = counts || (s.rank == 2 && s.dims[1] == a->columns) ||
                      (s.rank == 3 && s.dims[1] == a->rows && s.dims[2] == a->columns);
    if (!fits || s.dims[0] != a->batch) {
        graft_apart_refuse(apart, "a mask of a form that is not known");
        return;
    }
    const int64_t last = counts ? 1 : a->columns;
    mask = GRAFT_APART_VIEW(apart, as_real(a, mask), a->batch, 1, s.rank == 3 ? a->rows : 1, last);
    const graft_tensor from = counts ? key_places(a) : graft_apart_number(apart, 0.0F);
    add_bias(a, GRAFT_APART(apart, "Where", GRAFT_APART(apart, "Less", from, mask),
                            graft_apart_number(apart, 0.0F), graft_apart_number(apart, filter)));
}

/* A bias that is stretched over scores. */
static void apply_bias(attention *a, graft_tensor bias)
{
    if (bias != NULL) {
        add_bias(a, bias);
    }
}

/* Columns `*from` to `*from` + `count` of the last of three axes; moves on. */
static graft_tensor cut_columns(graft_apart *apart, graft_tensor x, int64_t *from, int64_t count)
{
    *from += count;
    return graft_apart_slice(apart, x, -1, *from - count, *from);
}

void graft_apart_multi_head_attention(graft_apart *apart)
{
    enum { BIAS = 3, PADDING, SCORES, PAST_KEY, PAST_VALUE, LENGTH };
    attention a = {.apart = apart, .shows = 3};
    graft_tensor x[3];
    int64_t from = 0;
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = graft_apart_input(apart, i);
        const graft_shape shape = graft_apart_shape(apart, x[i]);
        if (graft_apart_input(apart, BIAS) != NULL && shape.rank == 3) {
            x[i] = GRAFT_APART(
                apart, "Add", x[i],
                cut_columns(apart, graft_apart_input(apart, BIAS), &from, shape.dims[2]));
        }
    }
    const int64_t count = graft_onnx_int(apart->node, "num_heads", 0);
    read_heads(&a, x, count, count);
    graft_apart_refuse_if(apart, graft_apart_input(apart, LENGTH) != NULL,
                          "a past that shares its buffer");
    if (apart->refusal != NULL) {
        return;
    }
    read_past(&a, graft_apart_input(apart, PAST_KEY), graft_apart_input(apart, PAST_VALUE));
    show_present(&a, 1);
    hide_beside(&a, -1, graft_onnx_int(apart->node, "unidirectional", 0) != 0 ? 0 : -1);
    apply_padding(&a, graft_apart_input(apart, PADDING));
    apply_bias(&a, graft_apart_input(apart, SCORES));
    graft_apart_result(apart, 0, join_heads(&a, attend(&a)));
    graft_apart_result(apart, 3, a.shown);
}

/* Key (0) or value (1) of what com.microsoft's Attention has of the past, (2, batch, heads, before,
 * size). */
static graft_tensor cut_past(const attention *a, graft_tensor past, int64_t which)
{
    const graft_shape s = graft_apart_shape(a->apart, past);
    if (past == NULL || s.rank != 5) {
        return NULL;
    }
    return GRAFT_APART_VIEW(a->apart, graft_apart_slice(a->apart, past, 0, which, which + 1),
                            s.dims[1], s.dims[2], s.dims[3], s.dims[4]);
}

static void show_both(attention *a)
{
    graft_tensor both[2];
    for (uint32_t k = 0; k < 2 && graft_apart_is_read(a->apart, 1); k++) {
        heads *x = k == 0 ? &a->k : &a->v;
        *x = (heads){.x = turn(a, *x)};
        const graft_shape s = graft_apart_shape(a->apart, x->x);
        both[k] = GRAFT_APART_VIEW(a->apart, x->x, 1, s.dims[0], s.dims[1], s.dims[2], s.dims[3]);
    }
    if (graft_apart_is_read(a->apart, 1)) {
        graft_apart_result(a->apart, 1, GRAFT_APART(a->apart, "Concat axis=0", both[0], both[1]));
    }
}

/* Of queries, keys and values side by side; `inputs` are a mask, a past, and a bias of scores. */
static void attend_to_joined(attention *a, graft_tensor all, const graft_tensor inputs[3])
{
    graft_apart *apart = a->apart;
    const Onnx__AttributeProto *sizes = graft_onnx_attribute(apart->node, "qkv_hidden_sizes");
    const int64_t count = graft_onnx_int(apart->node, "num_heads", 0);
    const graft_shape shape = graft_apart_shape(apart, all);
    graft_tensor x[3];
    int64_t from = 0;
    if (shape.rank != 3 || (sizes != NULL && sizes->n_ints != 3) ||
        (inputs[1] != NULL && graft_apart_shape(apart, inputs[1]).rank != 5) ||
        graft_onnx_int(apart->node, "do_rotary", 0) != 0) {
        graft_apart_refuse(apart, "a form that is not known");
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = cut_columns(apart, all, &from, sizes == NULL ? shape.dims[2] / 3 : sizes->ints[i]);
    }
    read_heads(a, x, count, count);
    if (apart->refusal != NULL) {
        return;
    }
    read_past(a, cut_past(a, inputs[1], 0), cut_past(a, inputs[1], 1));
    show_both(a);
    hide_beside(a, -1, graft_onnx_int(apart->node, "unidirectional", 0) != 0 ? 0 : -1);
    apply_padding(a, inputs[0]);
    apply_bias(a, inputs[2]);
    graft_apart_result(apart, 0, join_heads(a, attend(a)));
}

/* Queries, keys and values are one product of the input. */
void graft_apart_attention_of_input(graft_apart *apart)
{
    enum { INPUT, WEIGHTS, BIAS, MASK, PAST, SCORES, LENGTH };
    attention a = {.apart = apart, .shows = 2};
    const graft_tensor bias = graft_apart_input(apart, BIAS);
    const graft_tensor others[3] = {graft_apart_input(apart, MASK), graft_apart_input(apart, PAST),
                                    graft_apart_input(apart, SCORES)};
    const graft_tensor all = GRAFT_APART(apart, "MatMul", graft_apart_input(apart, INPUT),
                                         graft_apart_input(apart, WEIGHTS));
    graft_apart_refuse_if(apart, graft_apart_input(apart, LENGTH) != NULL,
                          "a past that shares its buffer");
    attend_to_joined(&a, bias == NULL ? all : GRAFT_APART(apart, "Add", all, bias), others);
}

/* Likewise of bytes. */
void graft_apart_attention_of_bytes(graft_apart *apart)
{
    enum { INPUT, WEIGHTS, BIAS, SCALE, WEIGHT_SCALE, MASK, ZERO, WEIGHT_ZERO, PAST };
    attention a = {.apart = apart, .shows = 2};
    const graft_tensor others[3] = {graft_apart_input(apart, MASK), graft_apart_input(apart, PAST)};
    const graft_apart_bytes x = {graft_apart_input(apart, INPUT), graft_apart_input(apart, ZERO),
                                 graft_apart_input(apart, SCALE)};
    const graft_apart_bytes w = {graft_apart_input(apart, WEIGHTS),
                                 graft_apart_input(apart, WEIGHT_ZERO),
                                 graft_apart_input(apart, WEIGHT_SCALE)};
    const graft_tensor all = graft_apart_of_bytes(apart, x, w);
    attend_to_joined(&a, GRAFT_APART(apart, "Add", all, graft_apart_input(apart, BIAS)), others);
}

/* Inputs of GroupQueryAttention. */
enum {
    GROUP_QUERY,
    GROUP_KEY,
    GROUP_VALUE,
    GROUP_PAST_KEY,
    GROUP_PAST_VALUE,
    GROUP_LENGTHS, /* Keys of each item, less one. */
    GROUP_TOTAL,   /* The most keys of an item. */
    GROUP_COS,
    GROUP_SIN,
    GROUP_PLACES,
    GROUP_SCORES,
    GROUP_FIRST_UNKNOWN
};

/* (batch): the place of each item's first query among keys. */
static graft_tensor first_places(const attention *a)
{
    graft_apart *apart = a->apart;
    const int64_t move = 1 - (int64_t)a->rows;
    const graft_tensor last =
        GRAFT_APART(apart, "Cast to=7", graft_apart_input(apart, GROUP_LENGTHS));
    return GRAFT_APART(apart, "Add", last, graft_apart_whole(apart, &move, 1));
}

/* Places of queries, (batch, rows). */
static graft_tensor places_of_queries(const attention *a, bool prompt)
{
    graft_apart *apart = a->apart;
    int64_t *rows = GRAFT_NEW(apart->reader->env->scratch, int64_t, (size_t)a->rows);
    const int64_t sizes[2] = {a->batch, a->rows};
    for (int32_t i = 0; i < a->rows; i++) {
        rows[i] = i;
    }
    const graft_tensor places = graft_apart_whole(apart, rows, (uint32_t)a->rows);
    return prompt ? GRAFT_APART(apart, "Expand", places, graft_apart_whole(apart, sizes, 2))
                  : GRAFT_APART(apart, "Add", graft_apart_unsqueezed(apart, first_places(a), 1),
                                places);
}

/* Turns queries and keys by where they are. */
static void rotate(attention *a, graft_tensor x[3], bool prompt)
{
    graft_apart *apart = a->apart;
    const graft_tensor given = graft_apart_input(apart, GROUP_PLACES);
    const graft_tensor places = given != NULL ? given : places_of_queries(a, prompt);
    const graft_shape cos = graft_apart_shape(apart, graft_apart_input(apart, GROUP_COS));
    const int paired = graft_onnx_int(apart->node, "rotary_interleaved", 0) != 0;
    for (uint32_t i = 0; i < 2 && cos.rank == 2; i++) {
        const char *part = graft_apart_text(
            apart, "RotaryEmbedding num_heads=%d interleaved=%d rotary_embedding_dim=%d",
            i == 0 ? a->q_heads : a->kv_heads, paired, 2 * cos.dims[1]);
        x[i] = GRAFT_APART(apart, part, x[i], graft_apart_input(apart, GROUP_COS),
                           graft_apart_input(apart, GROUP_SIN), places);
    }
}

/* Keys or values of the past and new ones: behind one another where all items are of one length,
 * else each where its item's end. */
static heads append_to_cache(const attention *a, heads x, graft_tensor past, int64_t total)
{
    graft_apart *apart = a->apart;
    graft_shape shape = graft_apart_shape(apart, past);
    const bool prompt = total == a->rows;
    x = (heads){.x = turn(a, x)};
    if (past == NULL) {
        return x;
    }
    if (shape.rank != 4) {
        graft_apart_refuse(apart, "keys and values of the past that do not fit");
        return x;
    }
    if (a->batch == 1 && shape.dims[2] + a->rows == total) {
        return (heads){.x = GRAFT_APART(apart, "Concat axis=2", past, x.x)};
    }
    if (shape.dims[2] < total) {
        shape.dims[2] = (int32_t)total - shape.dims[2];
        past = GRAFT_APART(apart, "Concat axis=2", past, graft_apart_filled(apart, &shape, 0.0F));
    }
    const graft_tensor places = prompt ? NULL : first_places(a);
    return (heads){.x = GRAFT_APART(apart, "TensorScatter axis=2", past, x.x, places)};
}

/* Queries, keys and values side by side, or three inputs. */
static void list_inputs(graft_apart *apart, int64_t q_heads, int64_t kv_heads, graft_tensor x[3])
{
    const graft_shape shape = graft_apart_shape(apart, graft_apart_input(apart, GROUP_QUERY));
    const int64_t all = q_heads + 2 * kv_heads;
    int64_t from = 0;
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = graft_apart_input(apart, i);
    }
    if (x[GROUP_KEY] == NULL && shape.rank == 3 && shape.dims[2] % all == 0) {
        const int64_t size = shape.dims[2] / all;
        for (uint32_t i = 0; i < 3; i++) {
            x[i] = cut_columns(apart, graft_apart_input(apart, GROUP_QUERY), &from,
                               size * (i == 0 ? q_heads : kv_heads));
        }
    }
}

/* Of the past, where it is one of a known size. A prompt begins at place 0, whatever its length. */
void graft_apart_group_query_attention(graft_apart *apart)
{
    const Onnx__NodeProto *node = apart->node;
    attention a = {.apart = apart, .shows = GROUP_FIRST_UNKNOWN};
    const int64_t q_heads = graft_onnx_int(node, "num_heads", 0);
    const int64_t kv_heads = graft_onnx_int(node, "kv_num_heads", 0);
    const int64_t total = graft_apart_known(apart, GROUP_TOTAL, 0);
    const int64_t window = graft_onnx_int(node, "local_window_size", -1);
    graft_tensor x[3];
    if (q_heads < 1 || kv_heads < 1 || q_heads > INT16_MAX || kv_heads > INT16_MAX || total < 1 ||
        total > INT32_MAX || node->n_input > GROUP_FIRST_UNKNOWN ||
        graft_onnx_int(node, "smooth_softmax", 0) > 0) {
        graft_apart_refuse(apart, "a form that is not known");
        return;
    }
    list_inputs(apart, q_heads, kv_heads, x);
    read_heads(&a, x, q_heads, kv_heads);
    if (apart->refusal != NULL) {
        return;
    }
    const bool prompt = total == a.rows;
    if (graft_onnx_int(node, "do_rotary", 0) != 0) {
        rotate(&a, x, prompt);
        read_heads(&a, x, q_heads, kv_heads);
    }
    const heads own[2] = {a.k, a.v};
    a.k = append_to_cache(&a, own[0], graft_apart_input(apart, GROUP_PAST_KEY), total);
    a.v = append_to_cache(&a, own[1], graft_apart_input(apart, GROUP_PAST_VALUE), total);
    show_present(&a, 1);
    if (prompt) {
        a.k = own[0];
        a.v = own[1];
    }
    a.columns = prompt ? a.rows : graft_apart_shape(apart, a.k.x).dims[2];
    a.before = a.columns - a.rows;
    if (!prompt && (a.batch > 1 || a.columns != total)) {
        hide_beyond(&a, graft_apart_input(apart, GROUP_LENGTHS), 1);
    }
    hide_beside(&a, window > 0 ? window - 1 : -1, 0);
    apply_bias(&a, graft_apart_input(apart, GROUP_SCORES));
    a.softcap = graft_apart_float(apart, "softcap", 0.0F);
    graft_apart_result(apart, 0, join_heads(&a, attend(&a)));
}
