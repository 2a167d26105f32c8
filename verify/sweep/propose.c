/* propose.c - see finder.h. */
#include "verify/sweep/finder.h"

#include <string.h>

/* --------------------------------------------------------------- what is there */

/* Shapes that the node already has: its bound inputs and what they make together. */
static uint32_t list_known(const graft_finder *f, uint32_t n, const graft_shape **known)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        graft_operand operand = node->inputs[i];
        if (graft_finder_has(f, operand)) {
            known[count++] = graft_finder_shape(f, operand);
        }
    }
    if (f->partial[n].rank <= GRAFT_MAX_RANK) {
        known[count++] = &f->partial[n];
    }
    return count;
}

/* Of a sample with named sizes mostly 1 or 2: few sizes can be large at once. */
static int32_t named_size(graft_finder *f)
{
    uint32_t way = graft_rng_below(&f->rng, 8);
    return way < 3 ? 1 : way < 5 ? 2 : f->palette[way == 5];
}

static int32_t random_size(graft_finder *f)
{
    return f->palette[0] > 0 ? named_size(f)
                             : (int32_t)graft_rng_below(&f->rng, (uint32_t)f->size_most) + 1;
}

/* Any shape; past the bounds, half of its sizes may be, and of named ones its rank. */
static graft_shape random_shape(graft_finder *f, bool images)
{
    graft_shape shape = graft_choices_shape_random(&f->rng, images);
    for (uint32_t i = 0; i < shape.rank && f->size_most > GRAFT_SIZE_MOST; i++) {
        bool other = f->palette[0] > 0 || graft_rng_below(&f->rng, 2) == 0;
        shape.dims[i] = other ? random_size(f) : shape.dims[i];
    }
    while (f->palette[0] > 0 && shape.rank < GRAFT_MAX_RANK && graft_rng_below(&f->rng, 4) == 0) {
        shape.dims[shape.rank++] = random_size(f);
    }
    return shape;
}

static int32_t random_dim(graft_finder *f, const graft_shape *shape)
{
    return shape->rank == 0 ? 1 : shape->dims[graft_rng_below(&f->rng, shape->rank)];
}

/* `shape` with some axes made 1 or another size. */
static graft_shape vary_shape(graft_finder *f, graft_shape shape)
{
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (graft_rng_below(&f->rng, 2) == 0) {
            bool one = graft_rng_below(&f->rng, 2) == 0;
            shape.dims[i] = one ? 1 : random_size(f);
        }
    }
    return shape;
}

/* The last axes of `shape`. */
static graft_shape drop_axes(graft_finder *f, const graft_shape *shape)
{
    uint32_t drop = graft_rng_below(&f->rng, shape->rank + 1u);
    graft_shape rest = {.rank = (uint8_t)(shape->rank - drop), .dtype = GRAFT_DTYPE_F32};
    memcpy(rest.dims, &shape->dims[drop], rest.rank * sizeof rest.dims[0]);
    return rest;
}

/* ------------------------------------------------------------ what fits an input */

/* A shape that broadcasts with another: the same or, axis by axis, 1 or any size where it may be,
 * with fewer axes or more of them, `rank_most` at most. */
static graft_shape broadcast_mate(graft_finder *f, const graft_shape *other, uint32_t rank_most)
{
    uint32_t way = graft_rng_below(&f->rng, 4);
    graft_shape shape = way == 1 ? drop_axes(f, other) : *other;
    for (uint32_t i = 0; i < shape.rank && way > 0; i++) {
        bool change = graft_rng_below(&f->rng, 2) == 0;
        int32_t changed = shape.dims[i] == 1 ? random_size(f) : 1;
        shape.dims[i] = change ? changed : shape.dims[i];
    }
    if (way == 2 && shape.rank < rank_most) {
        memmove(&shape.dims[1], shape.dims, shape.rank * sizeof shape.dims[0]);
        shape.dims[0] = random_size(f);
        shape.rank++;
    }
    return shape;
}

/* A factor for the other one of a matrix product: `side` 0 is the left one. */
static graft_shape product_mate(graft_finder *f, const graft_shape *other, uint32_t side)
{
    graft_shape batch = *other;
    batch.rank = (uint8_t)(other->rank - 2u);
    graft_shape shape = broadcast_mate(f, &batch, GRAFT_RANK_MOST - 2);
    shape.dims[shape.rank] = side == 0 ? random_size(f) : other->dims[other->rank - 1];
    shape.dims[shape.rank + 1] = side == 0 ? other->dims[other->rank - 2] : random_size(f);
    shape.rank += 2;
    memset(&shape.dims[shape.rank], 0, (GRAFT_MAX_RANK - shape.rank) * sizeof shape.dims[0]);
    return shape;
}

/* A part of a concatenation: the other one, another size along the axis or, unknown, along any. */
static graft_shape part_mate(graft_finder *f, const graft_pattern_node *node,
                             const graft_shape *other)
{
    const graft_term *term = &node->attrs[GRAFT_ATTR_concat_axis];
    bool known = term->kind == GRAFT_TERM_CONST && term->value < other->rank;
    graft_shape shape = *other;
    if (shape.rank > 0) {
        uint32_t axis = known ? (uint32_t)term->value : graft_rng_below(&f->rng, shape.rank);
        shape.dims[axis] = random_size(f);
    }
    return shape;
}

/* One number for each channel of an image, or for each element of the last axis. */
static graft_shape vector_mate(const graft_shape *of, bool channels)
{
    uint32_t axis = channels ? 1u : of->rank - 1u;
    return (graft_shape){{of->rank > axis ? of->dims[axis] : 1}, 1, GRAFT_DTYPE_F32};
}

/* What input `i` of a node is likely to be, given another input; false where nothing can be said.
 */
static bool propose_mate(graft_finder *f, const graft_pattern_node *node, uint32_t i,
                         const graft_shape *other, graft_shape *shape)
{
    switch (node->op) {
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
        if (other->rank < 2) {
            return false;
        }
        *shape = i < 2 ? product_mate(f, other, i) : vector_mate(other, false);
        return true;
    case GRAFT_OP_concat:
        *shape = part_mate(f, node, other);
        return true;
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        *shape = i == 2 ? vector_mate(other, true) : *other;
        return i >= 2;
    case GRAFT_OP_scale_shift:
    case GRAFT_OP_layer_norm:
        *shape = vector_mate(other, node->op == GRAFT_OP_scale_shift);
        return i >= 1;
    default:
        *shape = broadcast_mate(f, other, GRAFT_RANK_MOST);
        return graft_op(node->op)->input_count == 2 &&
               (graft_op(node->op)->flags & GRAFT_FLAG_ELEMENTWISE) != 0;
    }
}

/* A mate of what the node has. What its inputs make together counts more than the first of them. */
static bool find_source_mate(graft_finder *f, const graft_step *s, graft_shape *shape)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    uint32_t inputs = graft_op(node->op)->input_count;
    const graft_shape *other =
        f->partial[s->node].rank <= GRAFT_MAX_RANK ? &f->partial[s->node] : NULL;
    uint32_t at = inputs;
    for (uint32_t i = inputs; i-- > 0;) {
        at = node->inputs[i] == s->index ? i : at;
    }
    for (uint32_t i = 0; i < inputs && other == NULL; i++) {
        other = i != at && graft_finder_has(f, node->inputs[i])
                    ? graft_finder_shape(f, node->inputs[i])
                    : NULL;
    }
    return other != NULL && propose_mate(f, node, at, other, shape);
}

/* A mate of a variable that the target's operators put beside this one: what does not fit there is
 * no instance either. */
static bool find_target_mate(graft_finder *f, const graft_step *s, graft_shape *shape)
{
    const graft_pattern *target = &f->rule->target;
    uint32_t first = target->node_count > 0 ? graft_rng_below(&f->rng, target->node_count) : 0;
    for (uint32_t k = 0; k < target->node_count; k++) {
        const graft_pattern_node *node = &target->nodes[(first + k) % target->node_count];
        bool pairs = graft_op(node->op)->input_count == 2 && node->op != GRAFT_OP_conv;
        for (uint32_t i = 0; i < 2 && pairs; i++) {
            graft_operand other = node->inputs[1 - i];
            if (node->inputs[i] == s->index && !GRAFT_OPERAND_IS_NODE(other) && other != s->index &&
                graft_finder_has(f, other)) {
                return propose_mate(f, node, i, &f->point.vars[other], shape);
            }
        }
    }
    return false;
}

static bool find_mate(graft_finder *f, const graft_step *s, graft_shape *shape)
{
    return (graft_rng_below(&f->rng, 2) == 0 && find_target_mate(f, s, shape)) ||
           find_source_mate(f, s, shape);
}

/* --------------------------------------------------------------- convolutions */

static bool is_conv(uint32_t op)
{
    return op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add;
}

/* Whether the variable of this step is the image (0) or kernel (1) of a convolution whose other one
 * is known. */
static bool is_conv_input(const graft_finder *f, const graft_step *s, uint32_t input)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    return is_conv(node->op) && node->inputs[input] == s->index &&
           graft_finder_has(f, node->inputs[1 - input]) &&
           graft_finder_shape(f, node->inputs[1 - input])->rank == 4;
}

/* A variable that has a shape of this rank (0: any); NULL when there is none. */
static const graft_shape *other_shape(graft_finder *f, uint32_t rank)
{
    uint32_t first = graft_rng_below(&f->rng, f->rule->var_count);
    for (uint32_t i = 0; i < f->rule->var_count; i++) {
        uint32_t v = (first + i) % f->rule->var_count;
        bool fits = rank == 0 || f->point.vars[v].rank == rank;
        if ((f->bound_vars >> v & 1u) != 0 && fits) {
            return &f->point.vars[v];
        }
    }
    return NULL;
}

/* The groups that the convolution has already, or some that divide the image's channels. */
static int32_t propose_groups(graft_finder *f, const graft_pattern_node *node, int32_t channels)
{
    const graft_term *term = &node->attrs[GRAFT_ATTR_conv_groups]; /* In every convolution. */
    int32_t groups = (int32_t)graft_rng_below(&f->rng, (uint32_t)channels) + 1;
    if (term->kind == GRAFT_TERM_CONST) {
        groups = term->value;
    } else if ((f->bound_slots >> term->value & 1u) != 0) {
        groups = f->point.slots[term->value];
    }
    groups = groups < 1 || groups > channels ? 1 : groups;
    while (channels % groups != 0) {
        groups--;
    }
    return groups;
}

/* A kernel for these groups; often of the size and outputs of another one. */
static graft_shape propose_kernel(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t channels = graft_finder_shape(f, node->inputs[0])->dims[1];
    int32_t groups = propose_groups(f, node, channels);
    const graft_shape *like = graft_rng_below(&f->rng, 2) == 0 ? other_shape(f, 4) : NULL;
    if (like != NULL) {
        graft_shape same = *like;
        same.dims[1] = channels / groups;
        return same;
    }
    uint32_t most = groups < f->size_most ? (uint32_t)(f->size_most / groups) : 1u;
    most = f->palette[0] > 0 ? 2u : most;
    int32_t outputs = groups * ((int32_t)graft_rng_below(&f->rng, most) + 1);
    graft_shape kernel = {
        {outputs, channels / groups},
        4, GRAFT_DTYPE_F32
    };
    kernel.dims[2] = random_size(f);
    kernel.dims[3] = random_size(f);
    return kernel;
}

/* An image for one or more groups of the kernel, not smaller than it. */
static graft_shape propose_image(graft_finder *f, const graft_step *s)
{
    const graft_shape *kernel = graft_finder_shape(f, f->rule->source.nodes[s->node].inputs[1]);
    graft_shape image = random_shape(f, true);
    int32_t groups = random_size(f);
    bool fits = kernel->dims[1] * groups <= f->size_most;
    image.rank = 4;
    image.dims[0] = (int32_t)graft_rng_below(&f->rng, 2) + 1;
    image.dims[1] = kernel->dims[1] * (fits ? groups : 1);
    for (uint32_t i = 2; i < 4; i++) {
        int32_t more = random_size(f) - 1;
        int32_t size = kernel->dims[i] + more;
        image.dims[i] = size < f->image_most ? size : f->image_most;
    }
    return image;
}

/* An image that another shape broadcasts to. */
static graft_shape grow_image(graft_finder *f, const graft_shape *like)
{
    graft_shape image = {.rank = 4, .dtype = GRAFT_DTYPE_F32};
    for (uint32_t i = 0; i < 4; i++) {
        bool has = i + like->rank >= 4 && like->rank <= 4;
        int32_t size = has ? like->dims[i + like->rank - 4] : 1;
        image.dims[i] = size > 1 ? size : random_size(f);
    }
    return image;
}

/* A shape like that of another variable: the same, with another size, one of its sizes alone, or
 * what it broadcasts to. */
static graft_shape echo_shape(graft_finder *f, const graft_shape *like)
{
    graft_shape shape = *like;
    if (f->images && graft_rng_below(&f->rng, 3) == 0) {
        return grow_image(f, like);
    }
    switch (graft_rng_below(&f->rng, 4)) {
    case 0:
        return (graft_shape){{random_dim(f, like)}, 1, GRAFT_DTYPE_F32};
    case 1:
        if (shape.rank > 0) {
            uint32_t axis = graft_rng_below(&f->rng, shape.rank);
            shape.dims[axis] = random_size(f);
        }
        break;
    default:
        break;
    }
    return shape;
}

/* ------------------------------------------------------------------- proposals */

/* 1 mostly stays. */
void graft_propose_rename(graft_finder *f)
{
    for (int32_t i = 0; i < GRAFT_RENAMED; i++) {
        int32_t most = f->images && graft_rng_below(&f->rng, 2) == 0 ? f->image_most : f->size_most;
        f->renamed[i] = (int32_t)graft_rng_below(&f->rng, (uint32_t)most) + 1;
    }
    f->renamed[1] = graft_rng_below(&f->rng, 4) == 0 ? f->renamed[1] : 1;
    f->renamed[0] = 0;
}

static graft_shape propose_likeness(graft_finder *f, const graft_step *s)
{
    const graft_shape *known[GRAFT_MAX_INPUTS + 1];
    uint32_t count = list_known(f, s->node, known);
    if (f->near && graft_rng_below(&f->rng, 8) != 0) {
        graft_shape shape = f->options->origin->vars[s->index];
        for (uint32_t i = 0; i < shape.rank; i++) {
            shape.dims[i] = f->renamed[shape.dims[i] % GRAFT_RENAMED];
        }
        return shape;
    }
    if (count == 0) {
        return random_shape(f, f->images);
    }
    const graft_shape *like = known[graft_rng_below(&f->rng, count)];
    switch (graft_rng_below(&f->rng, 8)) {
    case 0:
    case 1:
        return *like;
    case 2:
        return vary_shape(f, *like);
    case 3:
        return drop_axes(f, like);
    case 4:
        return vary_shape(f, drop_axes(f, like));
    case 5:
        return (graft_shape){{random_dim(f, like)}, 1, GRAFT_DTYPE_F32};
    default:
        return random_shape(f, f->images);
    }
}

/* What convolutions ask of each other's shapes, what other operators ask of their inputs', shapes
 * that are there already, or anything. */
static graft_shape propose_any(graft_finder *f, const graft_step *s)
{
    graft_shape shape;
    if (graft_rng_below(&f->rng, 4) != 0) {
        if (is_conv_input(f, s, 1)) {
            return propose_kernel(f, s);
        }
        if (is_conv_input(f, s, 0)) {
            return propose_image(f, s);
        }
    }
    if (f->mates && graft_rng_below(&f->rng, 4) != 0 && find_mate(f, s, &shape)) {
        return shape;
    }
    const graft_shape *like = graft_rng_below(&f->rng, 3) == 0 ? other_shape(f, 0) : NULL;
    return like != NULL ? echo_shape(f, like) : propose_likeness(f, s);
}

graft_shape graft_propose_shape(graft_finder *f, const graft_step *s)
{
    graft_shape shape = propose_any(f, s);
    int32_t fresh[GRAFT_MAX_RANK];
    if (f->follows) {
        for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
            int32_t most = f->images && i >= 2 ? f->image_most : f->size_most;
            fresh[i] = f->palette[0] > 0 ? random_size(f)
                                         : (int32_t)graft_rng_below(&f->rng, (uint32_t)most) + 1;
        }
        graft_guide_shape(&f->guide, s->index, &f->point, f->bound_vars, fresh, &shape);
    }
    return shape;
}

int32_t graft_propose_value(graft_finder *f, const graft_step *s)
{
    const graft_shape *known[GRAFT_MAX_INPUTS + 1];
    uint32_t count = list_known(f, s->node, known);
    if (f->bound_slots != 0 && (count == 0 || graft_rng_below(&f->rng, 2) == 0)) {
        uint32_t slot = graft_rng_below(&f->rng, f->rule->slot_count);
        if ((f->bound_slots >> slot & 1u) != 0) {
            return f->point.slots[slot];
        }
    }
    if (s->attr->role == GRAFT_ROLE_BYTE) {
        return graft_named_byte(&f->rng);
    }
    return count > 0 ? random_dim(f, known[graft_rng_below(&f->rng, count)]) : 1;
}
