/* onnx_map_einsum.c - Einsum of two operands as a matrix product, where a model is read to be run:
 * letters that both have and the result lacks are summed over, those that all three have count the
 * products, the others are rows and columns. Operands are turned into that order, and the result
 * out of it. */
#include "graph/onnx/onnx.h"

#include <string.h>

/* Letters of the axes of an operand, of the result, or of a part of them. */
typedef struct {
    char letters[GRAFT_MAX_RANK];
    uint32_t count;
} term;

static bool has_letter(const term *t, char letter)
{
    return memchr(t->letters, letter, t->count) != NULL;
}

/* Reads letters up to what is none; false when one comes twice or there are too many. */
static bool read_letters(const char **text, const char *end, term *t)
{
    for (; *text < end && **text != ',' && **text != '-'; (*text)++) {
        const char c = **text;
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c != ' ' && (!letter || t->count == GRAFT_MAX_RANK || has_letter(t, c))) {
            return false;
        }
        if (c != ' ') {
            t->letters[t->count++] = c;
        }
    }
    return true;
}

/* "a,b->c" into terms a, b, c. */
static bool read_equation(const graft_onnx_plan *plan, term terms[3])
{
    const Onnx__AttributeProto *equation = graft_plan_attribute(plan, "equation");
    const char *text = equation == NULL ? "" : (const char *)equation->s.data;
    const char *end = equation == NULL ? text : text + equation->s.len;
    bool fits = read_letters(&text, end, &terms[0]) && text < end && *text++ == ',' &&
                read_letters(&text, end, &terms[1]);
    fits = fits && end - text >= 2 && text[0] == '-' && text[1] == '>';
    text += fits ? 2 : 0;
    return fits && read_letters(&text, end, &terms[2]) && text == end;
}

/* The letters of `from` that `a` and `b` have, or have not. */
static term letters_of(const term *from, const term *a, bool in_a, const term *b, bool in_b)
{
    term t = {.count = 0};
    for (uint32_t i = 0; i < from->count; i++) {
        if (has_letter(a, from->letters[i]) == in_a && has_letter(b, from->letters[i]) == in_b) {
            t.letters[t.count++] = from->letters[i];
        }
    }
    return t;
}

static term join(const term *a, const term *b, const term *c)
{
    const term *const parts[3] = {a, b, c};
    term t = {.count = 0};
    for (uint32_t k = 0; k < 3; k++) {
        memcpy(t.letters + t.count, parts[k]->letters, parts[k]->count);
        t.count += parts[k]->count;
    }
    return t;
}

/* Turns axes of letters `from` into the order `to`, which has the same ones. */
static graft_onnx_operand turn(graft_onnx_plan *plan, graft_onnx_operand x, const term *from,
                               const term *to)
{
    int32_t axes[GRAFT_MAX_ATTRS] = {0};
    bool stays = true;
    for (uint32_t i = 0; i < to->count; i++) {
        axes[i] = (int32_t)((const char *)memchr(from->letters, to->letters[i], from->count) -
                            from->letters);
        stays = stays && axes[i] == (int32_t)i;
    }
    return stays ? x : graft_plan_add1(plan, GRAFT_OP_transpose, axes, x);
}

/* The first `batch` axes, then two: the next `rows` in one, and the rest in one. */
static graft_onnx_operand fold(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t batch,
                               uint32_t rows)
{
    const graft_shape s = graft_plan_shape(plan, x);
    int32_t dims[GRAFT_MAX_RANK + 2];
    int64_t sizes[2] = {1, 1};
    for (uint32_t i = 0; i < s.rank; i++) {
        if (i < batch) {
            dims[i] = s.dims[i];
        } else {
            sizes[i >= batch + rows] *= s.dims[i];
        }
    }
    dims[batch] = graft_plan_int32(plan, sizes[0]);
    dims[batch + 1] = graft_plan_int32(plan, sizes[1]);
    return rows == 1 && s.rank == batch + 2 ? x : graft_plan_reshape(plan, x, dims, batch + 2);
}

/* Sizes of the letters of `order`, as the operands have them; false when they differ in one. */
static bool find_sizes(const graft_shape shapes[2], const term terms[3], const term *order,
                       int32_t *dims)
{
    bool alike = true;
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < terms[k].count; i++) {
            const char *other =
                memchr(terms[1 - k].letters, terms[k].letters[i], terms[1 - k].count);
            const char *made = memchr(order->letters, terms[k].letters[i], order->count);
            alike = alike && (other == NULL || shapes[1 - k].dims[other - terms[1 - k].letters] ==
                                                   shapes[k].dims[i]);
            if (made != NULL) {
                dims[made - order->letters] = shapes[k].dims[i];
            }
        }
    }
    return alike;
}

graft_onnx_operand graft_plan_einsum(graft_onnx_plan *plan)
{
    term t[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
    if (plan->node->n_input != 2 || !graft_plan_comes_apart(plan) || !read_equation(plan, t)) {
        return graft_plan_refuse(plan, "an equation that is no product of two tensors");
    }
    graft_onnx_operand x[2] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1)};
    const graft_shape shapes[2] = {graft_plan_shape(plan, x[0]), graft_plan_shape(plan, x[1])};
    const term batch = letters_of(&t[2], &t[0], true, &t[1], true);
    const term rows = letters_of(&t[2], &t[0], true, &t[1], false);
    const term columns = letters_of(&t[2], &t[0], false, &t[1], true);
    const term summed = letters_of(&t[0], &t[1], true, &t[2], false);
    const term left = join(&batch, &rows, &summed);
    const term right = join(&batch, &summed, &columns);
    const term made = join(&batch, &rows, &columns);
    int32_t dims[3 * GRAFT_MAX_RANK];
    if (left.count != t[0].count || right.count != t[1].count || made.count != t[2].count ||
        shapes[0].rank != t[0].count || shapes[1].rank != t[1].count ||
        batch.count + 2 > GRAFT_MAX_RANK || !find_sizes(shapes, t, &made, dims)) {
        return graft_plan_refuse(plan, "an equation that is no product of two tensors");
    }
    x[0] = fold(plan, turn(plan, x[0], &t[0], &left), batch.count, rows.count);
    x[1] = fold(plan, turn(plan, x[1], &t[1], &right), batch.count, summed.count);
    graft_onnx_operand y = graft_plan_add2(plan, plan->op, NULL, x[0], x[1]);
    if (rows.count != 1 || columns.count != 1) {
        y = graft_plan_reshape(plan, y, dims, made.count);
    }
    return turn(plan, y, &made, &t[2]);
}
