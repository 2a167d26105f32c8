/* taso.c - from TASO's operators to the text of a rule (graph/rule/ruleparse.h). See taso.h. */
#include "verify/command/taso.h"

#include "graph/base/file.h"
#include "graph/rule/ruleparse.h"

#include <stdlib.h>
#include <string.h>

enum { AXES = 4, CONDITIONS_MOST = 64, UNKNOWN = -1, ROUNDS = 24 };

/* Where an axis was joined: what a split undoes. */
typedef struct cut cut;
struct cut {
    const char *size[2]; /* Of the two parts, */
    const cut *parts[2]; /* which may be joined themselves. */
};

/* A tensor. Its sizes are expressions over the inputs' sizes; NULL stands for one that is not
 * known. */
typedef struct {
    const char *sizes[AXES];
    const cut *cuts[AXES];
    int32_t rank;     /* UNKNOWN: any. */
    const char *term; /* As a rule has it. */
} tensor;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_taso_rule *from;
    uint32_t var_count;
    const char *why;                     /* The first reason to give up. */
    int32_t inputs[GRAFT_RULE_MAX_VARS]; /* TASO's numbers of the variables. */
    int32_t input_ranks[GRAFT_RULE_MAX_VARS];
    int32_t ranks[2][GRAFT_TASO_OPERATORS];
    tensor tensors[2][GRAFT_TASO_OPERATORS][GRAFT_MAX_OUTPUTS];
    graft_rule_part conditions[CONDITIONS_MOST];
    uint32_t condition_count;
    uint32_t number; /* Of the last operator of the source that has attributes of its own. */
    uint32_t side;   /* 0: source. */
    uint32_t to;     /* Of the operator at hand: what it is here. */
    uint32_t operators[2];
} importer;

static void give_up(importer *im, const char *why) { im->why = im->why == NULL ? why : im->why; }

#define TEXT(...) graft_arena_printf(im->arena, __VA_ARGS__)

/* ------------------------------------------------------------------- sizes */

static const char *constant(importer *im, int32_t value) { return TEXT("%d", value); }

static bool is_constant(const char *size, int32_t *value)
{
    if (size == NULL || size[strspn(size, "0123456789")] != '\0') {
        return false;
    }
    *value = (int32_t)strtol(size, NULL, 10);
    return true;
}

/* a op b; small constants are computed. */
static const char *combine(importer *im, const char *a, const char *op, const char *b)
{
    int32_t x = 0;
    int32_t y = 0;
    if (a == NULL || b == NULL) {
        return NULL;
    }
    if (op[0] == '-' && is_constant(b, &y) && (y == 0 || (is_constant(a, &x) && x >= y))) {
        return y == 0 ? a : constant(im, x - y);
    }
    return op[0] == '/' && strcmp(a, b) == 0 ? "1" : TEXT("(%s %s %s)", a, op, b);
}

/* x / by, rounded down. */
static const char *floor_part(importer *im, const char *x, int32_t by)
{
    const char *divisor = constant(im, by);
    int32_t value = 0;
    return is_constant(x, &value)
               ? constant(im, value / by)
               : combine(im, combine(im, x, "-", combine(im, x, "mod", divisor)), "/", divisor);
}

/* (x - k) / s + 1, rounded down. */
static const char *window_count(importer *im, const char *x, int32_t k, int32_t s)
{
    const char *span = combine(im, x, "-", constant(im, k));
    return combine(im, s > 1 ? floor_part(im, span, s) : span, "+", "1");
}

/* -------------------------------------------------------------- conditions */

static void need(importer *im, const char *condition)
{
    for (uint32_t i = 0; i < im->condition_count; i++) {
        if (strcmp(im->conditions[i].text, condition) == 0) {
            return;
        }
    }
    if (im->condition_count == CONDITIONS_MOST) {
        give_up(im, "it needs more preconditions than are taken");
        return;
    }
    im->conditions[im->condition_count++] = (graft_rule_part){"its preconditions", condition};
}

/* a relation b, where both are known and it says something. */
static void relate(importer *im, const char *a, const char *relation, const char *b)
{
    if (a != NULL && b != NULL && strcmp(a, b) != 0) {
        need(im, TEXT("%s %s %s", a, relation, b));
    }
}

static bool is_variable(const tensor *x) { return x->term[1] == '\0'; }

/* TASO's element-wise operators do not broadcast. */
static void need_same_shape(importer *im, const tensor *a, const tensor *b)
{
    if (is_variable(a) && is_variable(b)) {
        if (a->term[0] != b->term[0]) {
            need(im, TEXT("same_shape(%s, %s)", a->term, b->term));
        }
        return;
    }
    for (int32_t i = 0; i < a->rank && i < AXES; i++) {
        relate(im, a->sizes[i], "=", b->sizes[i]);
    }
}

/* ------------------------------------------------------------- attributes */

/* An operator more: what a tensor is then. */
static void set_term(importer *im, tensor *out, const char *term)
{
    if (im->operators[im->side]++ == GRAFT_RULE_MAX_NODES) {
        give_up(im, "it has more operators than a rule can have");
    }
    out->term = term;
}

/* Begins an operator that TASO computes attributes of: in the source they are slots, whose values
 * are preconditions. */
static const char *begin(importer *im, const char *op)
{
    return im->side == 0 ? TEXT("%s#%u", op, ++im->number) : op;
}

/* ", name=value", or nothing for a slot. */
static const char *put_size(importer *im, const char *name, const char *value)
{
    int32_t number = 0;
    if (value == NULL) {
        give_up(im, "an attribute depends on a size that is not known");
        return "";
    }
    if (im->side == 0 && !is_constant(value, &number)) {
        need(im, TEXT("#%u.%s = %s", im->number, name, value));
        return "";
    }
    return TEXT(", %s=%s", name, value);
}

/* Those of an operator in their order. */
static const char *put_numbers(importer *im, uint32_t op, const int32_t *values, uint32_t count)
{
    graft_buffer text = {.arena = im->arena};
    for (uint32_t i = 0; i < count; i++) {
        graft_buffer_printf(&text, ", %s=%d", graft_op_attr(op, i)->name, values[i]);
    }
    return text.data;
}

/* ---------------------------------------------------------------- operators */

static const tensor *find_tensor(importer *im, const graft_taso_tensor *t);

static int32_t need_value(importer *im, const graft_taso_operator *op, graft_taso_key key)
{
    int32_t value = 0;
    if (!graft_taso_value(op, key, &value)) {
        give_up(im, TEXT("%s lacks parameter %d", graft_taso_name(im->arena, op->type), (int)key));
    }
    return value;
}

static int32_t need_size(importer *im, const graft_taso_operator *op, graft_taso_key key,
                         int32_t most)
{
    int32_t value = need_value(im, op, key);
    if (value < 1 || value > most) {
        give_up(im, TEXT("%s: parameter %d is %d", graft_taso_name(im->arena, op->type), (int)key,
                         value));
        return 1;
    }
    return value;
}

/* The activation behind a convolution, product or pool. */
static void apply_activation(importer *im, const graft_taso_operator *op, tensor *out)
{
    static const char *const names[] = {"", "sigmoid", "relu", "tanh"};
    int32_t mode = need_value(im, op, GRAFT_TASO_ACTI);
    if (mode < 0 || mode > 3) {
        give_up(im, TEXT("activation %d does not exist", mode));
    } else if (mode != 0) {
        set_term(im, out, TEXT("%s(%s)", names[mode], out->term));
    }
}

typedef struct {
    int32_t kernel[2];
    int32_t stride[2];
    int32_t before[2];
    int32_t after[2];
    bool same;
} window;

static window read_window(importer *im, const graft_taso_operator *op)
{
    window w = {0};
    int32_t pad = need_value(im, op, GRAFT_TASO_PAD);
    w.same = pad == 0;
    for (uint32_t i = 0; i < 2; i++) {
        w.kernel[i] = need_size(im, op, i == 0 ? GRAFT_TASO_KERNEL_H : GRAFT_TASO_KERNEL_W, 127);
        w.stride[i] = need_size(im, op, i == 0 ? GRAFT_TASO_STRIDE_H : GRAFT_TASO_STRIDE_W, 64);
        if (w.same && w.stride[i] > 1 && w.kernel[i] > 1) {
            give_up(im, "padding to the same size with a stride depends on the size");
        }
        w.before[i] = w.same ? (w.kernel[i] - 1) / 2 : 0;
        w.after[i] = w.same ? w.kernel[i] - 1 - w.before[i] : 0;
    }
    if (pad != 0 && pad != 1) {
        give_up(im, TEXT("padding mode %d does not exist", pad));
    }
    return w;
}

/* Height and width behind a window; they keep where they were joined. */
static void slide_window(importer *im, const window *w, const tensor *x, tensor *out)
{
    out->rank = AXES;
    for (uint32_t i = 0; i < 2; i++) {
        bool keeps = w->same && w->stride[i] == 1;
        out->sizes[2 + i] =
            keeps ? x->sizes[2 + i]
                  : window_count(im, x->sizes[2 + i], w->same ? 1 : w->kernel[i], w->stride[i]);
        out->cuts[2 + i] = x->cuts[2 + i];
    }
    out->sizes[0] = x->sizes[0];
    out->cuts[0] = x->cuts[0];
}

static void import_conv(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    const tensor *weight = find_tensor(im, &op->inputs[1]);
    const window w = read_window(im, op);
    const int32_t attrs[8] = {w.stride[0], w.stride[1], w.before[0], w.before[1],
                              w.after[0],  w.after[1],  1,           1};
    const char *name = begin(im, "conv");
    /* Inference ties the groups of the source to its shapes. */
    const char *groups =
        im->side == 0 ? ""
                      : put_size(im, "groups", combine(im, x->sizes[1], "/", weight->sizes[1]));
    set_term(im, out,
             TEXT("%s(%s, %s%s%s)", name, x->term, weight->term,
                  put_numbers(im, GRAFT_OP_conv, attrs, 8), groups));
    for (uint32_t i = 0; i < 2 && im->side == 0; i++) {
        int32_t fixed = 0;
        if (!is_constant(weight->sizes[2 + i], &fixed)) {
            relate(im, weight->sizes[2 + i], "=", constant(im, w.kernel[i]));
        } else if (fixed != w.kernel[i]) {
            give_up(im, "a kernel is not of the size that its convolution says");
        }
    }
    slide_window(im, &w, x, out);
    out->sizes[1] = weight->sizes[0];
    out->cuts[1] = weight->cuts[0];
    apply_activation(im, op, out);
}

static void import_pool(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    const window w = read_window(im, op);
    bool is_max = im->to == GRAFT_OP_max_pool;
    const int32_t attrs[10] = {w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.before[0],
                               w.before[1], w.after[0],  w.after[1],  is_max,      is_max};
    set_term(im, out,
             TEXT("%s(%s%s)", graft_op(im->to)->name, x->term,
                  put_numbers(im, im->to, attrs, graft_op(im->to)->attr_count)));
    slide_window(im, &w, x, out);
    out->sizes[1] = x->sizes[1];
    apply_activation(im, op, out);
}

static void import_matmul(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *a = find_tensor(im, &op->inputs[0]);
    const tensor *b = find_tensor(im, &op->inputs[1]);
    set_term(im, out, TEXT("matmul(%s, %s)", a->term, b->term));
    out->rank = 2;
    out->sizes[0] = a->sizes[0];
    out->cuts[0] = a->cuts[0];
    out->sizes[1] = b->sizes[1];
    out->cuts[1] = b->cuts[1];
    apply_activation(im, op, out);
}

static void import_unary(importer *im, const graft_taso_operator *op, tensor *out)
{
    *out = *find_tensor(im, &op->inputs[0]);
    set_term(im, out, TEXT("%s(%s)", graft_op(im->to)->name, out->term));
}

static void import_element(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *a = find_tensor(im, &op->inputs[0]);
    const tensor *b = find_tensor(im, &op->inputs[1]);
    *out = *a;
    set_term(im, out, TEXT("%s(%s, %s)", graft_op(im->to)->name, a->term, b->term));
    if (op->type == GRAFT_TASO_MUL) {
        return; /* By a scalar. */
    }
    need_same_shape(im, a, b);
    for (uint32_t i = 0; i < AXES; i++) {
        out->cuts[i] = b->cuts[i] == NULL ? NULL : a->cuts[i];
        out->sizes[i] = a->sizes[i] == NULL ? b->sizes[i] : a->sizes[i];
    }
}

static int32_t need_axis(importer *im, const graft_taso_operator *op)
{
    int32_t axis = need_value(im, op, GRAFT_TASO_AXIS);
    if (axis < 0 || axis >= AXES) {
        give_up(im, TEXT("axis %d does not exist", axis));
        return 0;
    }
    return axis;
}

static void join(importer *im, const tensor *right, int32_t axis, tensor *out)
{
    const tensor left = *out;
    cut *c = GRAFT_NEW(im->arena, cut, 1);
    *c = (cut){
        {left.sizes[axis], right->sizes[axis]},
        {left.cuts[axis],  right->cuts[axis] }
    };
    for (int32_t i = 0; i < AXES; i++) {
        out->cuts[i] = right->cuts[i] == NULL ? NULL : left.cuts[i];
    }
    out->cuts[axis] = c;
    out->sizes[axis] = combine(im, left.sizes[axis], "+", right->sizes[axis]);
    set_term(im, out, TEXT("concat(%s, %s, axis=%d)", left.term, right->term, axis));
}

static void import_concat(importer *im, const graft_taso_operator *op, tensor *out)
{
    int32_t axis = need_axis(im, op);
    *out = *find_tensor(im, &op->inputs[0]);
    for (uint32_t i = 1; i < op->input_count && im->why == NULL; i++) {
        join(im, find_tensor(im, &op->inputs[i]), axis, out);
    }
}

static void import_split(importer *im, const graft_taso_operator *op, tensor out[2])
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    int32_t axis = need_axis(im, op);
    int32_t count = need_value(im, op, GRAFT_TASO_NUM_OUTPUTS);
    const cut *c = x->cuts[axis];
    if (count != 2) {
        give_up(im, TEXT("a split into %d parts", count));
    } else if (c == NULL) {
        give_up(im, "a split where nothing was joined: its place is not known");
    }
    if (im->why != NULL) {
        return;
    }
    const char *name = begin(im, "split");
    const char *at = put_size(im, "at", c->size[0]);
    set_term(im, out, TEXT("%s(%s, axis=%d%s)", name, x->term, axis, at));
    const char *both = out->term;
    for (uint32_t k = 0; k < 2; k++) {
        out[k] = *x;
        out[k].sizes[axis] = c->size[k];
        out[k].cuts[axis] = c->parts[k];
        out[k].term = TEXT("%s.%u", both, k);
    }
}

static void import_transpose(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    int32_t rank = need_size(im, op, GRAFT_TASO_NUMDIM, AXES);
    int32_t digits = need_value(im, op, GRAFT_TASO_PERM);
    const char *axes = "";
    out->rank = rank;
    for (int32_t i = rank; i-- > 0; digits /= rank) {
        int32_t axis = digits % rank;
        if (axis < 0) {
            give_up(im, "a permutation is negative");
            return;
        }
        axes = TEXT("%d%s%s", axis, i + 1 < rank ? ", " : "", axes);
        out->sizes[i] = x->sizes[axis];
        out->cuts[i] = x->cuts[axis];
    }
    set_term(im, out, TEXT("transpose(%s, axis=[%s])", x->term, axes));
}

/* Zeros about the middle of a kernel, up to a size that is given or that of another kernel. */
static void import_enlarge(importer *im, const graft_taso_operator *op, tensor *out)
{
    *out = *find_tensor(im, &op->inputs[0]);
    for (int32_t i = 0; i < 2 && im->why == NULL; i++) {
        int32_t axis = 2 + i;
        const char *wanted =
            op->input_count == 2
                ? find_tensor(im, &op->inputs[1])->sizes[axis]
                : constant(im, need_size(im, op, i == 0 ? GRAFT_TASO_KERNEL_H : GRAFT_TASO_KERNEL_W,
                                         127));
        const char *more = combine(im, wanted, "-", out->sizes[axis]);
        const char *before = floor_part(im, more, 2);
        relate(im, out->sizes[axis], "<=", wanted);
        const char *name = begin(im, "pad");
        const char *paddings = TEXT("%s%s", put_size(im, "before", before),
                                    put_size(im, "after", combine(im, more, "-", before)));
        set_term(im, out, TEXT("%s(%s, axis=%d%s, value=0)", name, out->term, axis, paddings));
        out->sizes[axis] = wanted;
        out->cuts[axis] = NULL;
    }
}

/* Of its tensors: any rank, or that of GRAFT_TASO_NUMDIM. */
enum { RANK_ANY = UNKNOWN, RANK_NAMED = UNKNOWN - 1 };

static const struct operator_row {
    int32_t type;
    uint32_t to;    /* Where one of ours is the same. */
    uint32_t least; /* Inputs. */
    uint32_t most;
    int32_t rank;
    void (*import)(importer *im, const graft_taso_operator *op, tensor *out);
} operator_rows[] = {
    {GRAFT_TASO_CONV2D,     GRAFT_OP_conv,      2, 2,                 4,          import_conv     },
    {GRAFT_TASO_POOL2D_MAX, GRAFT_OP_max_pool,  1, 1,                 4,          import_pool     },
    {GRAFT_TASO_POOL2D_AVG, GRAFT_OP_avg_pool,  1, 1,                 4,          import_pool     },
    {GRAFT_TASO_RELU,       GRAFT_OP_relu,      1, 1,                 RANK_ANY,   import_unary    },
    {GRAFT_TASO_SIGMOID,    GRAFT_OP_sigmoid,   1, 1,                 RANK_ANY,   import_unary    },
    {GRAFT_TASO_TANH,       GRAFT_OP_tanh,      1, 1,                 RANK_ANY,   import_unary    },
    {GRAFT_TASO_CONCAT,     GRAFT_OP_concat,    2, GRAFT_TASO_INPUTS, RANK_NAMED, import_concat   },
    {GRAFT_TASO_SPLIT,      GRAFT_OP_split,     1, 1,                 RANK_ANY,   import_split    },
    {GRAFT_TASO_TRANSPOSE,  GRAFT_OP_transpose, 1, 1,                 RANK_NAMED, import_transpose},
    {GRAFT_TASO_EW_ADD,     GRAFT_OP_add,       2, 2,                 RANK_ANY,   import_element  },
    {GRAFT_TASO_EW_MUL,     GRAFT_OP_mul,       2, 2,                 RANK_ANY,   import_element  },
    {GRAFT_TASO_MATMUL,     GRAFT_OP_matmul,    2, 2,                 2,          import_matmul   },
    {GRAFT_TASO_MUL,        GRAFT_OP_mul,       2, 2,                 RANK_ANY,   import_element  },
    {GRAFT_TASO_ENLARGE,    GRAFT_OP_pad,       1, 2,                 4,          import_enlarge  },
};

/* NULL when there is no operator like it. */
static const struct operator_row *find_row(const graft_taso_operator *op)
{
    for (size_t i = 0; i < sizeof operator_rows / sizeof operator_rows[0]; i++) {
        if (operator_rows[i].type == op->type) {
            return &operator_rows[i];
        }
    }
    return NULL;
}

static void import_operator(importer *im, const graft_taso_operator *op, tensor out[2])
{
    const struct operator_row *row = find_row(op);
    const char *name = graft_taso_name(im->arena, op->type);
    if (row == NULL) {
        give_up(im, TEXT("there is no operator like TASO's %s", name));
    } else if (op->input_count < row->least || op->input_count > row->most) {
        give_up(im, TEXT("%s with %u inputs", name, op->input_count));
    } else {
        im->to = row->to;
        row->import(im, op, out);
    }
}

/* ------------------------------------------------------------------- ranks */

/* The place of the rank of a tensor; NULL for outputs that a split alone has. */
static int32_t *rank_place(importer *im, const graft_taso_tensor *t, uint32_t side)
{
    if (t->op >= 0) {
        return &im->ranks[side][t->op];
    }
    for (uint32_t v = 0; v < im->var_count; v++) {
        if (im->inputs[v] == t->op) {
            return &im->input_ranks[v];
        }
    }
    return NULL;
}

static void set_rank(int32_t *place, int32_t rank)
{
    if (place != NULL && *place == UNKNOWN) {
        *place = rank;
    }
}

static int32_t rank_of(const int32_t *place) { return place == NULL ? UNKNOWN : *place; }

/* What an operator says of the ranks of its inputs and output. */
static void spread_ranks(importer *im, const graft_taso_operator *op, int32_t *out, uint32_t side)
{
    const struct operator_row *row = find_row(op);
    int32_t *in[GRAFT_TASO_INPUTS] = {0};
    int32_t rank = UNKNOWN;
    for (uint32_t i = 0; i < op->input_count; i++) {
        in[i] = rank_place(im, &op->inputs[i], side);
    }
    if (row != NULL && row->rank == RANK_NAMED) {
        bool is_named = graft_taso_value(op, GRAFT_TASO_NUMDIM, &rank);
        rank = is_named && rank >= 0 && rank <= AXES ? rank : UNKNOWN;
    } else if (row != NULL) {
        rank = row->rank;
    }
    if (op->type == GRAFT_TASO_MUL && op->input_count == 2) {
        set_rank(in[1], 0);
        in[1] = NULL;
    }
    rank = rank != UNKNOWN ? rank : *out;
    for (uint32_t i = 0; i < op->input_count; i++) {
        rank = rank != UNKNOWN ? rank : rank_of(in[i]);
    }
    set_rank(out, rank);
    for (uint32_t i = 0; i < op->input_count; i++) {
        set_rank(in[i], rank);
    }
}

static void find_ranks(importer *im)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < im->from->source_count; i++) {
            spread_ranks(im, &im->from->source[i], &im->ranks[0][i], 0);
        }
        for (uint32_t i = 0; i < im->from->target_count; i++) {
            spread_ranks(im, &im->from->target[i], &im->ranks[1][i], 1);
        }
    }
    for (uint32_t v = 0; v < im->var_count; v++) {
        if (im->input_ranks[v] != UNKNOWN) {
            need(im, TEXT("rank(%c) = %d", (char)('a' + v), im->input_ranks[v]));
        }
    }
}

/* ---------------------------------------------------------------- variables */

static void note_inputs(importer *im, const graft_taso_operator *ops, uint32_t count, bool known)
{
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < ops[k].input_count; i++) {
            const graft_taso_tensor *t = &ops[k].inputs[i];
            if (t->op >= 0 || rank_place(im, t, 0) != NULL) {
                continue;
            }
            if (known) {
                give_up(im, "the target reads an input that the source does not read");
            } else if (im->var_count == GRAFT_RULE_MAX_VARS) {
                give_up(im, "it has more inputs than a rule can have");
            } else {
                im->inputs[im->var_count++] = t->op;
            }
        }
    }
}

static const tensor *find_tensor(importer *im, const graft_taso_tensor *t)
{
    if (t->op >= 0) {
        return &im->tensors[im->side][t->op][t->output < GRAFT_MAX_OUTPUTS ? t->output : 0];
    }
    tensor *made = GRAFT_NEW(im->arena, tensor, 1);
    for (uint32_t v = 0; v < im->var_count; v++) {
        if (im->inputs[v] == t->op) {
            made->term = TEXT("%c", (char)('a' + v));
            made->rank = im->input_ranks[v];
            for (int32_t i = 0; i < made->rank && i < AXES; i++) {
                made->sizes[i] = TEXT("dim(%s,%d)", made->term, i);
            }
        }
    }
    return made;
}

/* ------------------------------------------------------------------- rules */

static uint32_t output_count(const graft_taso_operator *op)
{
    return op->type == GRAFT_TASO_SPLIT ? 2 : 1;
}

static void import_side(importer *im, uint32_t side)
{
    const graft_taso_operator *ops = side == 0 ? im->from->source : im->from->target;
    uint32_t count = side == 0 ? im->from->source_count : im->from->target_count;
    im->side = side;
    for (uint32_t k = 0; k < count && im->why == NULL; k++) {
        for (uint32_t i = 0; i < ops[k].input_count; i++) {
            const graft_taso_tensor *t = &ops[k].inputs[i];
            if (t->output >= (t->op < 0 ? 1 : (int32_t)output_count(&ops[t->op]))) {
                give_up(im, "an operator reads an output that does not exist");
            }
        }
        if (im->why == NULL) {
            import_operator(im, &ops[k], im->tensors[side][k]);
        }
    }
}

static void import_outputs(importer *im, const char *texts[2])
{
    const graft_taso_rule *from = im->from;
    if (from->output_count == 0 || from->output_count > GRAFT_RULE_MAX_OUTPUTS) {
        give_up(im, "it has no outputs, or more than a rule can have");
        return;
    }
    for (uint32_t side = 0; side < 2; side++) {
        graft_buffer text = {.arena = im->arena};
        for (uint32_t i = 0; i < from->output_count; i++) {
            const graft_taso_tensor *t = &from->outputs[i][side];
            const graft_taso_operator *op = side == 0 ? &from->source[t->op] : &from->target[t->op];
            if (t->output >= (int32_t)output_count(op)) {
                give_up(im, "a mapped output does not exist");
                return;
            }
            graft_buffer_printf(&text, "%s%s", i == 0 ? "[" : ", ",
                                im->tensors[side][t->op][t->output].term);
        }
        graft_buffer_printf(&text, "]");
        texts[side] = text.data;
    }
}

/* Operators read those that stand before them. */
static void check_needed(importer *im)
{
    bool needed[GRAFT_TASO_OPERATORS] = {false};
    for (uint32_t i = 0; i < im->from->output_count; i++) {
        needed[im->from->outputs[i][0].op] = true;
    }
    for (uint32_t k = im->from->source_count; k-- > 0;) {
        const graft_taso_operator *op = &im->from->source[k];
        if (!needed[k]) {
            give_up(im, "the source has an operator that no output needs");
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (op->inputs[i].op >= 0) {
                needed[op->inputs[i].op] = true;
            }
        }
    }
}

static void import_rule(importer *im, graft_rule *rule)
{
    const char *texts[2] = {NULL, NULL};
    find_ranks(im);
    import_side(im, 0);
    import_side(im, 1);
    if (im->why == NULL) {
        import_outputs(im, texts);
    }
    if (im->why == NULL) {
        check_needed(im);
    }
    const graft_rule_parts parts = {
        .source = {"its source", texts[0]},
        .target = {"its target", texts[1]},
        .where = im->conditions,
        .where_count = im->condition_count
    };
    if (im->why == NULL && graft_rule_parse_parts(im->env, &parts, rule, NULL) != GRAFT_OK) {
        give_up(im, graft_arena_strdup(im->arena, im->env->message));
        graft_env_clear(im->env);
    }
}

const char *graft_taso_import(graft_env *env, graft_arena *arena, const graft_taso_rule *from,
                              graft_rule *rule)
{
    importer *im = GRAFT_NEW(arena, importer, 1);
    im->env = env;
    im->arena = arena;
    im->from = from;
    im->why =
        from->too_large ? "it has more operators, inputs or outputs than a rule can have" : NULL;
    for (uint32_t i = 0; i < GRAFT_RULE_MAX_VARS; i++) {
        im->input_ranks[i] = UNKNOWN;
    }
    for (uint32_t i = 0; i < GRAFT_TASO_OPERATORS; i++) {
        im->ranks[0][i] = UNKNOWN;
        im->ranks[1][i] = UNKNOWN;
    }
    note_inputs(im, from->source, from->source_count, false);
    note_inputs(im, from->target, from->target_count, true);
    if (im->why == NULL) {
        import_rule(im, rule);
    }
    return im->why;
}
