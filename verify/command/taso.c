/* taso.c - from TASO's operators to a rule. See taso.h. */
#include "verify/command/taso.h"

#include <string.h>

enum { AXES = 4, SIZE_BYTES = 60, CODE_MOST = GRAFT_RULE_MAX_CODE, UNKNOWN = -1, ROUNDS = 24 };

/* A size as byte code over the inputs' sizes; NULL stands for one that is not known. */
typedef struct {
    uint8_t code[SIZE_BYTES];
    uint8_t bytes;
} size_code;

/* Where an axis was joined: what a split undoes. */
typedef struct cut cut;
struct cut {
    const size_code *size[2]; /* Of the two parts, */
    const cut *parts[2];      /* which may be joined themselves. */
};

/* A tensor. */
typedef struct {
    const size_code *sizes[AXES];
    const cut *cuts[AXES];
    int32_t rank; /* UNKNOWN: any. */
    graft_operand operand;
} tensor;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_taso_rule *from;
    graft_rule rule;
    const char *why;                     /* The first reason to give up. */
    int32_t inputs[GRAFT_RULE_MAX_VARS]; /* TASO's numbers of the variables. */
    int32_t input_ranks[GRAFT_RULE_MAX_VARS];
    int32_t ranks[2][GRAFT_TASO_OPERATORS];
    tensor tensors[2][GRAFT_TASO_OPERATORS][GRAFT_MAX_OUTPUTS];
    uint8_t conditions[CODE_MOST];
    uint32_t condition_bytes;
    uint32_t condition_count;
    uint32_t condition_starts[CODE_MOST];
    uint32_t side; /* 0: source. */
} importer;

static void give_up(importer *im, const char *why) { im->why = im->why == NULL ? why : im->why; }

/* ------------------------------------------------------------------- sizes */

static const size_code *make_size(importer *im, const uint8_t *code, uint32_t bytes)
{
    size_code *s = GRAFT_NEW(im->arena, size_code, 1);
    memcpy(s->code, code, bytes);
    s->bytes = (uint8_t)bytes;
    return s;
}

static const size_code *constant(importer *im, int32_t value)
{
    uint8_t code[5] = {GRAFT_CODE_CONST8, (uint8_t)(value & 0xff)};
    if (value >= 0 && value <= 127) {
        return make_size(im, code, 2);
    }
    code[0] = GRAFT_CODE_CONST32;
    for (uint32_t i = 0; i < 4; i++) {
        code[1 + i] = (uint8_t)((uint32_t)value >> (8 * i));
    }
    return make_size(im, code, 5);
}

static bool is_constant(const size_code *s, int32_t *value)
{
    if (s == NULL || s->bytes != 2 || s->code[0] != GRAFT_CODE_CONST8) {
        return false;
    }
    *value = s->code[1];
    return true;
}

/* a op b; small constants are computed. */
static const size_code *combine(importer *im, uint32_t op, const size_code *a, const size_code *b)
{
    int32_t x = 0;
    int32_t y = 0;
    uint8_t code[2 * SIZE_BYTES + 1];
    if (a == NULL || b == NULL || a->bytes + b->bytes + 1 > SIZE_BYTES) {
        return NULL;
    }
    if (is_constant(a, &x) && is_constant(b, &y) && op == GRAFT_CODE_SUB && x >= y) {
        return constant(im, x - y);
    }
    if (op == GRAFT_CODE_SUB && is_constant(b, &y) && y == 0) {
        return a;
    }
    if (op == GRAFT_CODE_DIV && a->bytes == b->bytes && memcmp(a->code, b->code, a->bytes) == 0) {
        return constant(im, 1);
    }
    memcpy(code, a->code, a->bytes);
    memcpy(&code[a->bytes], b->code, b->bytes);
    code[a->bytes + b->bytes] = (uint8_t)op;
    return make_size(im, code, (uint32_t)a->bytes + b->bytes + 1);
}

static const size_code *floor_half(importer *im, const size_code *a)
{
    const size_code *two = constant(im, 2);
    const size_code *odd = combine(im, GRAFT_CODE_MOD, a, two);
    int32_t value = 0;
    return is_constant(a, &value)
               ? constant(im, value / 2)
               : combine(im, GRAFT_CODE_DIV, combine(im, GRAFT_CODE_SUB, a, odd), two);
}

/* (x - k) / s + 1, rounded down. */
static const size_code *window_count(importer *im, const size_code *x, int32_t k, int32_t s)
{
    const size_code *span = combine(im, GRAFT_CODE_SUB, x, constant(im, k));
    if (s > 1) {
        const size_code *rest = combine(im, GRAFT_CODE_MOD, span, constant(im, s));
        span =
            combine(im, GRAFT_CODE_DIV, combine(im, GRAFT_CODE_SUB, span, rest), constant(im, s));
    }
    return combine(im, GRAFT_CODE_ADD, span, constant(im, 1));
}

/* -------------------------------------------------------------- conditions */

/* Adds a condition, given as byte code, unless it is there. */
static void add_condition(importer *im, const uint8_t *code, uint32_t bytes)
{
    uint32_t size = bytes + (im->condition_count > 0 ? 1 : 0);
    for (uint32_t i = 0; i < im->condition_count; i++) {
        uint32_t start = im->condition_starts[i];
        uint32_t end =
            i + 1 < im->condition_count ? im->condition_starts[i + 1] : im->condition_bytes;
        uint32_t length = end - start - (i > 0 ? 1 : 0); /* Without the AND behind it. */
        if (length == bytes && memcmp(&im->conditions[start], code, bytes) == 0) {
            return;
        }
    }
    if (im->condition_bytes + size >= CODE_MOST) {
        give_up(im, "its preconditions need more byte code than a rule can have");
        return;
    }
    im->condition_starts[im->condition_count] = im->condition_bytes;
    memcpy(&im->conditions[im->condition_bytes], code, bytes);
    im->condition_bytes += bytes;
    if (im->condition_count++ > 0) {
        im->conditions[im->condition_bytes++] = GRAFT_CODE_AND;
    }
}

/* a relation b, where both are known and it says something. */
static void relate(importer *im, const size_code *a, const size_code *b, uint32_t relation)
{
    bool same =
        a != NULL && b != NULL && a->bytes == b->bytes && memcmp(a->code, b->code, a->bytes) == 0;
    const size_code *both = same ? NULL : combine(im, relation, a, b);
    if (both != NULL) {
        add_condition(im, both->code, both->bytes);
    }
}

static void need_rank(importer *im, uint32_t var, int32_t rank)
{
    const uint8_t code[5] = {GRAFT_CODE_RANK, (uint8_t)var, GRAFT_CODE_CONST8, (uint8_t)rank,
                             GRAFT_CODE_EQ};
    add_condition(im, code, sizeof code);
}

/* TASO's element-wise operators do not broadcast. */
static void need_same_shape(importer *im, const tensor *a, const tensor *b)
{
    if (!GRAFT_OPERAND_IS_NODE(a->operand) && !GRAFT_OPERAND_IS_NODE(b->operand)) {
        const uint8_t code[3] = {GRAFT_CODE_SAME, a->operand, b->operand};
        if (a->operand != b->operand) {
            add_condition(im, code, sizeof code);
        }
        return;
    }
    for (int32_t i = 0; i < a->rank && i < AXES; i++) {
        relate(im, a->sizes[i], b->sizes[i], GRAFT_CODE_EQ);
    }
}

/* ------------------------------------------------------------------- nodes */

static graft_pattern *pattern_of(importer *im)
{
    return im->side == 0 ? &im->rule.source : &im->rule.target;
}

/* A new node; NULL when there is no room. */
static graft_pattern_node *add_node(importer *im, uint32_t op, graft_operand a, graft_operand b,
                                    tensor *out)
{
    graft_pattern *pattern = pattern_of(im);
    if (pattern->node_count == GRAFT_RULE_MAX_NODES) {
        give_up(im, "it has more operators than a rule can have");
        return NULL;
    }
    uint32_t n = pattern->node_count++;
    graft_pattern_node *node = &pattern->nodes[n];
    node->op = (uint8_t)op;
    node->inputs[0] = a;
    node->inputs[1] = b;
    out->operand = GRAFT_OPERAND_NODE(n, 0);
    return node;
}

static graft_term constant_term(int32_t value) { return (graft_term){value, GRAFT_TERM_CONST}; }

/* A slot of the source; `value` (may be NULL) is what TASO has there. */
static graft_term slot_term(importer *im, const size_code *value)
{
    uint8_t code[SIZE_BYTES + 3] = {GRAFT_CODE_SLOT, im->rule.slot_count};
    if (im->rule.slot_count == GRAFT_RULE_MAX_SLOTS) {
        give_up(im, "it has more attributes than a rule can have");
        return constant_term(0);
    }
    if (value != NULL) {
        memcpy(&code[2], value->code, value->bytes);
        code[2 + value->bytes] = GRAFT_CODE_EQ;
        add_condition(im, code, value->bytes + 3u);
    }
    return (graft_term){im->rule.slot_count++, GRAFT_TERM_SLOT};
}

/* An attribute that TASO computes. */
static graft_term size_term(importer *im, const size_code *value)
{
    graft_rule *rule = &im->rule;
    int32_t number = 0;
    if (value == NULL) {
        give_up(im, "an attribute depends on a size that is not known");
        return constant_term(0);
    }
    if (is_constant(value, &number)) {
        return constant_term(number);
    }
    if (im->side == 0) {
        return slot_term(im, value);
    }
    if (rule->code_bytes + value->bytes + 1 > CODE_MOST) {
        give_up(im, "its attributes need more byte code than a rule can have");
        return constant_term(0);
    }
    graft_term term = {rule->code_bytes, GRAFT_TERM_CODE};
    memcpy(&rule->code[rule->code_bytes], value->code, value->bytes);
    rule->code_bytes = (uint8_t)(rule->code_bytes + value->bytes);
    rule->code[rule->code_bytes++] = GRAFT_CODE_END;
    return term;
}

/* ---------------------------------------------------------------- operators */

static const tensor *find_tensor(importer *im, const graft_taso_tensor *t);

static int32_t need_value(importer *im, const graft_taso_operator *op, graft_taso_key key)
{
    int32_t value = 0;
    if (!graft_taso_value(op, key, &value)) {
        give_up(im, graft_arena_printf(im->arena, "%s lacks parameter %d",
                                       graft_taso_name(im->arena, op->type), (int)key));
    }
    return value;
}

static int32_t need_size(importer *im, const graft_taso_operator *op, graft_taso_key key,
                         int32_t most)
{
    int32_t value = need_value(im, op, key);
    if (value < 1 || value > most) {
        give_up(im, graft_arena_printf(im->arena, "%s: parameter %d is %d",
                                       graft_taso_name(im->arena, op->type), (int)key, value));
        return 1;
    }
    return value;
}

/* The activation behind a convolution, product or pool. */
static void apply_activation(importer *im, const graft_taso_operator *op, tensor *out)
{
    static const uint8_t ops[] = {GRAFT_OP_NONE, GRAFT_OP_sigmoid, GRAFT_OP_relu, GRAFT_OP_tanh};
    int32_t mode = need_value(im, op, GRAFT_TASO_ACTI);
    if (mode < 0 || mode > 3) {
        give_up(im, graft_arena_printf(im->arena, "activation %d does not exist", mode));
    } else if (mode != 0) {
        (void)add_node(im, ops[mode], out->operand, 0, out);
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
        give_up(im, graft_arena_printf(im->arena, "padding mode %d does not exist", pad));
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
    graft_pattern_node *node = add_node(im, GRAFT_OP_conv, x->operand, weight->operand, out);
    if (node == NULL) {
        return;
    }
    const int32_t attrs[8] = {w.stride[0], w.stride[1], w.before[0], w.before[1],
                              w.after[0],  w.after[1],  1,           1};
    for (uint32_t i = 0; i < 8; i++) {
        node->attrs[i] = constant_term(attrs[i]);
    }
    /* Inference ties the groups of the source to its shapes. */
    node->attrs[GRAFT_ATTR_conv_groups] =
        im->side == 0 ? slot_term(im, NULL)
                      : size_term(im, combine(im, GRAFT_CODE_DIV, x->sizes[1], weight->sizes[1]));
    for (uint32_t i = 0; i < 2 && im->side == 0; i++) {
        int32_t fixed = 0;
        if (!is_constant(weight->sizes[2 + i], &fixed)) {
            relate(im, weight->sizes[2 + i], constant(im, w.kernel[i]), GRAFT_CODE_EQ);
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
    bool is_max = op->type == GRAFT_TASO_POOL2D_MAX;
    graft_pattern_node *node =
        add_node(im, is_max ? GRAFT_OP_max_pool : GRAFT_OP_avg_pool, x->operand, 0, out);
    if (node == NULL) {
        return;
    }
    const int32_t attrs[10] = {w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.before[0],
                               w.before[1], w.after[0],  w.after[1],  is_max,      is_max};
    for (uint32_t i = 0; i < (is_max ? 10u : 9u); i++) {
        node->attrs[i] = constant_term(attrs[i]);
    }
    slide_window(im, &w, x, out);
    out->sizes[1] = x->sizes[1];
    apply_activation(im, op, out);
}

static void import_matmul(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *a = find_tensor(im, &op->inputs[0]);
    const tensor *b = find_tensor(im, &op->inputs[1]);
    (void)add_node(im, GRAFT_OP_matmul, a->operand, b->operand, out);
    out->rank = 2;
    out->sizes[0] = a->sizes[0];
    out->cuts[0] = a->cuts[0];
    out->sizes[1] = b->sizes[1];
    out->cuts[1] = b->cuts[1];
    apply_activation(im, op, out);
}

static void copy_layout(const tensor *from, tensor *to)
{
    graft_operand operand = to->operand;
    *to = *from;
    to->operand = operand;
}

static void import_unary(importer *im, const graft_taso_operator *op, uint32_t to, tensor *out)
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    (void)add_node(im, to, x->operand, 0, out);
    copy_layout(x, out);
}

static void import_element(importer *im, const graft_taso_operator *op, uint32_t to, tensor *out)
{
    const tensor *a = find_tensor(im, &op->inputs[0]);
    const tensor *b = find_tensor(im, &op->inputs[1]);
    (void)add_node(im, to, a->operand, b->operand, out);
    copy_layout(a, out);
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
        give_up(im, graft_arena_printf(im->arena, "axis %d does not exist", axis));
        return 0;
    }
    return axis;
}

/* Joins two tensors; `out` may be one of them. */
static void join(importer *im, const tensor *a, const tensor *b, int32_t axis, tensor *out)
{
    const tensor left = *a;
    const tensor right = *b;
    graft_pattern_node *node = add_node(im, GRAFT_OP_concat, left.operand, right.operand, out);
    if (node == NULL) {
        return;
    }
    node->attrs[0] = constant_term(axis);
    copy_layout(&left, out);
    for (int32_t i = 0; i < AXES; i++) {
        out->cuts[i] = right.cuts[i] == NULL ? NULL : left.cuts[i];
    }
    cut *c = GRAFT_NEW(im->arena, cut, 1);
    *c = (cut){
        {left.sizes[axis], right.sizes[axis]},
        {left.cuts[axis],  right.cuts[axis] }
    };
    out->cuts[axis] = c;
    out->sizes[axis] = combine(im, GRAFT_CODE_ADD, left.sizes[axis], right.sizes[axis]);
}

static void import_concat(importer *im, const graft_taso_operator *op, tensor *out)
{
    int32_t axis = need_axis(im, op);
    tensor sum = *find_tensor(im, &op->inputs[0]);
    for (uint32_t i = 1; i < op->input_count && im->why == NULL; i++) {
        join(im, &sum, find_tensor(im, &op->inputs[i]), axis, &sum);
    }
    *out = sum;
}

static void import_split(importer *im, const graft_taso_operator *op, tensor out[2])
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    int32_t axis = need_axis(im, op);
    int32_t count = need_value(im, op, GRAFT_TASO_NUM_OUTPUTS);
    const cut *c = x->cuts[axis];
    if (count != 2) {
        give_up(im, graft_arena_printf(im->arena, "a split into %d parts", count));
    } else if (c == NULL) {
        give_up(im, "a split where nothing was joined: its place is not known");
    }
    graft_pattern_node *node = add_node(im, GRAFT_OP_split, x->operand, 0, &out[0]);
    if (node == NULL || im->why != NULL) {
        return;
    }
    node->attrs[GRAFT_ATTR_split_axis] = constant_term(axis);
    node->attrs[GRAFT_ATTR_split_at] = size_term(im, c->size[0]);
    out[1].operand = out[0].operand | 1u;
    for (uint32_t k = 0; k < 2; k++) {
        copy_layout(x, &out[k]);
        out[k].sizes[axis] = c->size[k];
        out[k].cuts[axis] = c->parts[k];
    }
}

static void import_transpose(importer *im, const graft_taso_operator *op, tensor *out)
{
    const tensor *x = find_tensor(im, &op->inputs[0]);
    int32_t rank = need_size(im, op, GRAFT_TASO_NUMDIM, AXES);
    int32_t digits = need_value(im, op, GRAFT_TASO_PERM);
    graft_pattern_node *node = add_node(im, GRAFT_OP_transpose, x->operand, 0, out);
    if (node == NULL) {
        return;
    }
    out->rank = rank;
    for (int32_t i = rank; i-- > 0; digits /= rank) {
        int32_t axis = digits % rank;
        if (axis < 0) {
            give_up(im, "a permutation is negative");
            return;
        }
        node->attrs[i] = constant_term(axis);
        out->sizes[i] = x->sizes[axis];
        out->cuts[i] = x->cuts[axis];
    }
}

/* Zeros about the middle of a kernel, up to a size that is given or that of another kernel. */
static void import_enlarge(importer *im, const graft_taso_operator *op, tensor *out)
{
    tensor x = *find_tensor(im, &op->inputs[0]);
    for (int32_t i = 0; i < 2 && im->why == NULL; i++) {
        int32_t axis = 2 + i;
        const size_code *wanted =
            op->input_count == 2
                ? find_tensor(im, &op->inputs[1])->sizes[axis]
                : constant(im, need_size(im, op, i == 0 ? GRAFT_TASO_KERNEL_H : GRAFT_TASO_KERNEL_W,
                                         127));
        const size_code *more = combine(im, GRAFT_CODE_SUB, wanted, x.sizes[axis]);
        const size_code *before = floor_half(im, more);
        relate(im, x.sizes[axis], wanted, GRAFT_CODE_LE);
        graft_pattern_node *node = add_node(im, GRAFT_OP_pad, x.operand, 0, &x);
        if (node == NULL) {
            return;
        }
        node->attrs[GRAFT_ATTR_pad_axis] = constant_term(axis);
        node->attrs[GRAFT_ATTR_pad_before] = size_term(im, before);
        node->attrs[GRAFT_ATTR_pad_after] =
            size_term(im, combine(im, GRAFT_CODE_SUB, more, before));
        node->attrs[GRAFT_ATTR_pad_value] = constant_term(0);
        x.sizes[axis] = wanted;
        x.cuts[axis] = NULL;
    }
    *out = x;
}

/* Inputs that each operator wants; 0: at least two. */
static bool has_inputs(importer *im, const graft_taso_operator *op, uint32_t least, uint32_t most)
{
    if (op->input_count < least || op->input_count > most) {
        give_up(im, graft_arena_printf(im->arena, "%s with %u inputs",
                                       graft_taso_name(im->arena, op->type), op->input_count));
    }
    return im->why == NULL;
}

static void import_operator(importer *im, const graft_taso_operator *op, tensor out[2])
{
    static const struct {
        int32_t type;
        uint32_t to; /* GRAFT_OP_NONE: by a function of its own. */
        uint32_t least;
        uint32_t most;
        void (*import)(importer *im, const graft_taso_operator *op, tensor *out);
    } rows[] = {
        {GRAFT_TASO_CONV2D,     GRAFT_OP_NONE,    2, 2,                 import_conv     },
        {GRAFT_TASO_POOL2D_MAX, GRAFT_OP_NONE,    1, 1,                 import_pool     },
        {GRAFT_TASO_POOL2D_AVG, GRAFT_OP_NONE,    1, 1,                 import_pool     },
        {GRAFT_TASO_RELU,       GRAFT_OP_relu,    1, 1,                 NULL            },
        {GRAFT_TASO_SIGMOID,    GRAFT_OP_sigmoid, 1, 1,                 NULL            },
        {GRAFT_TASO_TANH,       GRAFT_OP_tanh,    1, 1,                 NULL            },
        {GRAFT_TASO_CONCAT,     GRAFT_OP_NONE,    2, GRAFT_TASO_INPUTS, import_concat   },
        {GRAFT_TASO_SPLIT,      GRAFT_OP_NONE,    1, 1,                 import_split    },
        {GRAFT_TASO_TRANSPOSE,  GRAFT_OP_NONE,    1, 1,                 import_transpose},
        {GRAFT_TASO_EW_ADD,     GRAFT_OP_add,     2, 2,                 NULL            },
        {GRAFT_TASO_EW_MUL,     GRAFT_OP_mul,     2, 2,                 NULL            },
        {GRAFT_TASO_MATMUL,     GRAFT_OP_NONE,    2, 2,                 import_matmul   },
        {GRAFT_TASO_MUL,        GRAFT_OP_mul,     2, 2,                 NULL            },
        {GRAFT_TASO_ENLARGE,    GRAFT_OP_NONE,    1, 2,                 import_enlarge  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].type != op->type) {
            continue;
        }
        if (has_inputs(im, op, rows[i].least, rows[i].most)) {
            if (rows[i].import != NULL) {
                rows[i].import(im, op, out);
            } else if (rows[i].least == 1) {
                import_unary(im, op, rows[i].to, out);
            } else {
                import_element(im, op, rows[i].to, out);
            }
        }
        return;
    }
    give_up(im, graft_arena_printf(im->arena, "there is no operator like TASO's %s",
                                   graft_taso_name(im->arena, op->type)));
}

/* ------------------------------------------------------------------- ranks */

/* The place of the rank of a tensor; NULL for outputs that a split alone has. */
static int32_t *rank_place(importer *im, const graft_taso_tensor *t, uint32_t side)
{
    if (t->op >= 0) {
        return &im->ranks[side][t->op];
    }
    for (uint32_t v = 0; v < im->rule.var_count; v++) {
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
    int32_t *in[GRAFT_TASO_INPUTS] = {0};
    int32_t rank = UNKNOWN;
    for (uint32_t i = 0; i < op->input_count; i++) {
        in[i] = rank_place(im, &op->inputs[i], side);
    }
    switch (op->type) {
    case GRAFT_TASO_CONV2D:
    case GRAFT_TASO_POOL2D_MAX:
    case GRAFT_TASO_POOL2D_AVG:
    case GRAFT_TASO_ENLARGE:
        rank = 4;
        break;
    case GRAFT_TASO_MATMUL:
        rank = 2;
        break;
    case GRAFT_TASO_CONCAT:
    case GRAFT_TASO_TRANSPOSE:
        if (!graft_taso_value(op, GRAFT_TASO_NUMDIM, &rank) || rank < 0 || rank > AXES) {
            rank = UNKNOWN;
        }
        break;
    case GRAFT_TASO_MUL:
        if (op->input_count == 2) {
            set_rank(in[1], 0);
            in[1] = NULL;
        }
        break;
    default:
        break;
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
    for (uint32_t v = 0; v < im->rule.var_count; v++) {
        if (im->input_ranks[v] != UNKNOWN) {
            need_rank(im, v, im->input_ranks[v]);
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
            } else if (im->rule.var_count == GRAFT_RULE_MAX_VARS) {
                give_up(im, "it has more inputs than a rule can have");
            } else {
                im->inputs[im->rule.var_count++] = t->op;
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
    for (uint32_t v = 0; v < im->rule.var_count; v++) {
        if (im->inputs[v] == t->op) {
            made->operand = GRAFT_OPERAND_VAR(v);
            made->rank = im->input_ranks[v];
            for (int32_t i = 0; i < made->rank && i < AXES; i++) {
                const uint8_t code[3] = {GRAFT_CODE_DIM, (uint8_t)v, (uint8_t)i};
                made->sizes[i] = make_size(im, code, sizeof code);
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

static void import_outputs(importer *im)
{
    const graft_taso_rule *from = im->from;
    if (from->output_count == 0 || from->output_count > GRAFT_RULE_MAX_OUTPUTS) {
        give_up(im, "it has no outputs, or more than a rule can have");
        return;
    }
    for (uint32_t i = 0; i < from->output_count; i++) {
        for (uint32_t side = 0; side < 2; side++) {
            const graft_taso_tensor *t = &from->outputs[i][side];
            const graft_taso_operator *op = side == 0 ? &from->source[t->op] : &from->target[t->op];
            graft_pattern *pattern = side == 0 ? &im->rule.source : &im->rule.target;
            if (t->output >= (int32_t)output_count(op)) {
                give_up(im, "a mapped output does not exist");
                return;
            }
            pattern->outputs[i] = im->tensors[side][t->op][t->output].operand;
        }
    }
    im->rule.output_count = (uint8_t)from->output_count;
}

/* Numbers source nodes from the outputs inwards, as patterns want them. Patterns are at most
 * GRAFT_RULE_MAX_NODES deep. */
static void number_node(const graft_pattern *from, graft_operand x, uint8_t *numbers,
                        uint32_t *count)
{
    uint32_t n = GRAFT_OPERAND_NODE_OF(x);
    if (!GRAFT_OPERAND_IS_NODE(x) || numbers[n] != UINT8_MAX) {
        return;
    }
    numbers[n] = (uint8_t)(*count)++;
    for (uint32_t i = 0; i < graft_op(from->nodes[n].op)->input_count; i++) {
        number_node(from, from->nodes[n].inputs[i], numbers, count);
    }
}

static graft_operand renumber(graft_operand x, const uint8_t *numbers)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? GRAFT_OPERAND_NODE(numbers[GRAFT_OPERAND_NODE_OF(x)], GRAFT_OPERAND_SLOT_OF(x))
               : x;
}

static void order_source(importer *im)
{
    const graft_pattern from = im->rule.source;
    graft_pattern *to = &im->rule.source;
    uint8_t numbers[GRAFT_RULE_MAX_NODES];
    uint32_t count = 0;
    memset(numbers, UINT8_MAX, sizeof numbers);
    for (uint32_t i = 0; i < im->rule.output_count; i++) {
        number_node(&from, from.outputs[i], numbers, &count);
        to->outputs[i] = renumber(from.outputs[i], numbers);
    }
    if (count != from.node_count) {
        give_up(im, "the source has an operator that no output needs");
        return;
    }
    for (uint32_t n = 0; n < from.node_count; n++) {
        graft_pattern_node *node = &to->nodes[numbers[n]];
        *node = from.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            node->inputs[i] = renumber(node->inputs[i], numbers);
        }
    }
}

static void finish(importer *im)
{
    graft_rule *rule = &im->rule;
    rule->condition = 255;
    if (im->condition_count > 0) {
        if (rule->code_bytes + im->condition_bytes + 1 > CODE_MOST) {
            give_up(im, "it needs more byte code than a rule can have");
            return;
        }
        rule->condition = rule->code_bytes;
        memcpy(&rule->code[rule->code_bytes], im->conditions, im->condition_bytes);
        rule->code_bytes = (uint8_t)(rule->code_bytes + im->condition_bytes);
        rule->code[rule->code_bytes++] = GRAFT_CODE_END;
    }
    const char *fault = graft_rule_check(rule);
    if (fault != NULL) {
        give_up(im, fault);
    }
}

const char *graft_taso_import(graft_env *env, graft_arena *arena, const graft_taso_rule *from,
                              graft_rule *rule)
{
    GRAFT_SCOPED(env->scratch);
    importer *im = GRAFT_NEW(env->scratch, importer, 1);
    void (*const steps[])(importer *) = {import_outputs, order_source, finish};
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
        find_ranks(im);
        import_side(im, 0);
        import_side(im, 1);
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && im->why == NULL; i++) {
        steps[i](im);
    }
    const char *why = im->why;
    if (why == NULL) {
        *rule = im->rule;
    }
    return why;
}
