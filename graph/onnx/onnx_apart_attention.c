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

/* `lengths`, a whole number for each item, are how many keys there are, less `less`. */
static void hide_beyond(attention *a, graft_tensor lengths, int64_t less)
{
    graft_apart *apart = a->apart;
    const graft_shape shape = graft_apart_shape(apart, lengths);
    if (graft_shape_elements(&shape) != (uint64_t)a->batch) {
        graft_apart_refuse(apart, "lengths that are not one for each item");
        return;
    }
    a->lengths = GRAFT_APART(apart, "Cast to=1", lengths);
    a->lengths = GRAFT_APART_VIEW(apart, a->lengths, a->batch, 1, 1, 1);
    a->lengths = GRAFT_APART(apart, "Add", a->lengths, graft_apart_number(apart, (float)less));
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
    const int64_t rows = (int64_t)(a->q_heads / a->kv_heads) * a->rows;
    const bool shared = a->q_heads != a->kv_heads;
    graft_tensor q = turn(a, a->q);
    q = shared ? GRAFT_APART_VIEW(a->apart, q, a->batch, a->kv_heads, rows, a->size) : q;
    const char *to_columns = a->k.behind ? "Transpose perm=0,2,3,1" : "Transpose perm=0,1,3,2";
    graft_tensor scores =
        GRAFT_APART(a->apart, "MatMul", q, GRAFT_APART(a->apart, to_columns, a->k.x));
    scores = shared ? GRAFT_APART_VIEW(a->apart, scores, a->batch, a->q_heads, a->rows, a->columns)
                    : scores;
    return graft_apart_scaled(a->apart, scores, a->scale);
}

/* (batch, q_heads, rows, value_size) */
static graft_tensor multiply_values(const attention *a, graft_tensor shares)
{
    const int64_t rows = (int64_t)(a->q_heads / a->kv_heads) * a->rows;
    const bool shared = a->q_heads != a->kv_heads;
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
    scores = a->bias == NULL ? scores : GRAFT_APART(apart, "Add", scores, a->bias);
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
