/* domain.c - enumerating and sampling instances. See domain.h. */
#include "verify/domain.h"

#include "graph/pattern.h"
#include "graph/rng.h"
#include "verify/choices.h"
#include "verify/guide.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

/* -------------------------------------------------------------------- plan */

typedef enum {
    STEP_NODE,  /* A new node begins: where sampling returns to after a misfit. */
    STEP_VAR,   /* Choose the shape of `index`. */
    STEP_ATTRS, /* Choose the attributes from `index` on, `width` of them. */
    STEP_CHECK, /* The inputs so far must fit operator `as`. */
    STEP_INFER  /* All is chosen: infer the node's outputs. */
} step_kind;

typedef struct {
    uint8_t kind; /* step_kind */
    uint8_t node;
    uint8_t index;
    uint8_t width;
    uint8_t as;
    uint8_t inputs;      /* STEP_CHECK: how many are chosen. */
    graft_choices fixed; /* STEP_ATTRS: the tuples, when they do not depend on the input. */
} step;

enum { STEPS_MOST = 256, RENAMED = 32, JUDGED_BITS = 12 };

/* What a sample came to. */
typedef struct {
    uint64_t hash; /* 0: none yet. */
    bool is_refused;
} judgement;

typedef struct {
    graft_env *env;
    const graft_rule *rule;
    const graft_domain_options *options;
    graft_domain *domain;
    bool images;
    uint32_t step_count;
    step steps[STEPS_MOST];
    /* The point being made. */
    graft_point point;
    uint64_t bound_slots;
    uint32_t bound_vars;
    graft_side source;
    graft_shape
        partial[GRAFT_RULE_MAX_NODES]; /* Output of the last STEP_CHECK; rank unknown: none. */
    graft_rng rng;
    graft_guide guide; /* Empty unless samples are guided; */
    bool follows;      /* this one is. */
    bool is_sampling;
    bool is_enough;           /* The caller wants no more points. */
    bool near;                /* This sample is made like the origin, */
    int32_t renamed[RENAMED]; /* its sizes by these: equal sizes stay equal. */
    uint32_t left;            /* Choices that may still be made. */
    uint32_t visits;
    /* Points found, as an open-addressing table of hashes. */
    uint64_t *seen;
    uint32_t seen_capacity;
    judgement judged[1u << JUDGED_BITS]; /* By the first bits of the hash. */
} finder;

/* An operator whose first `inputs` inputs and attributes are checked as those of another, so that a
 * misfit is seen before the remaining inputs are chosen. */
static const struct {
    uint8_t op;
    uint8_t inputs;
    uint8_t as;
} early_checks[] = {
    {GRAFT_OP_conv_bias,     2, GRAFT_OP_conv       },
    {GRAFT_OP_conv_bias_add, 2, GRAFT_OP_conv       },
    {GRAFT_OP_conv_bias_add, 3, GRAFT_OP_conv_bias  },
    {GRAFT_OP_matmul_bias,   2, GRAFT_OP_matmul     },
    {GRAFT_OP_scale_shift,   2, GRAFT_OP_scale_shift},
};

static step *add_step(finder *f, step_kind kind, uint32_t node)
{
    assert(f->step_count < STEPS_MOST);
    step *s = &f->steps[f->step_count++];
    *s = (step){.kind = (uint8_t)kind, .node = (uint8_t)node};
    return s;
}

static void plan_attrs(finder *f, uint32_t n, uint64_t *slots)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    for (uint32_t first = 0; first < info->attr_count;) {
        uint32_t width = graft_choices_width(node->op, first);
        uint64_t fresh = 0;
        for (uint32_t i = first; i < first + width; i++) {
            fresh |=
                node->attrs[i].kind == GRAFT_TERM_SLOT ? UINT64_C(1) << node->attrs[i].value : 0;
        }
        if ((fresh & ~*slots) != 0) {
            step *s = add_step(f, STEP_ATTRS, n);
            s->index = (uint8_t)first;
            s->width = (uint8_t)width;
            if (node->op != GRAFT_OP_transpose && node->op != GRAFT_OP_reshape) {
                s->fixed = graft_choices_attrs(f->env->scratch, node->op, first, NULL);
            }
            *slots |= fresh;
        }
        first += width;
    }
}

static void plan_node(finder *f, uint32_t n, uint32_t *vars, uint64_t *slots)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    bool attrs_planned = false;
    add_step(f, STEP_NODE, n);
    for (uint32_t i = 0; i < info->input_count; i++) {
        graft_operand operand = node->inputs[i];
        if (!GRAFT_OPERAND_IS_NODE(operand) && (*vars >> operand & 1u) == 0) {
            add_step(f, STEP_VAR, n)->index = operand;
            *vars |= 1u << operand;
        }
        for (size_t k = 0; k < sizeof early_checks / sizeof early_checks[0]; k++) {
            if (early_checks[k].op == node->op && early_checks[k].inputs == i + 1) {
                if (!attrs_planned) {
                    plan_attrs(f, n, slots);
                }
                attrs_planned = true;
                step *s = add_step(f, STEP_CHECK, n);
                s->as = early_checks[k].as;
                s->inputs = (uint8_t)(i + 1);
            }
        }
    }
    if (!attrs_planned) {
        plan_attrs(f, n, slots);
    }
    add_step(f, STEP_INFER, n);
}

static bool has_window(uint32_t op)
{
    return op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add ||
           op == GRAFT_OP_max_pool || op == GRAFT_OP_avg_pool;
}

static void make_plan(finder *f)
{
    uint32_t vars = 0;
    uint64_t slots = 0;
    f->source.pattern = &f->rule->source;
    graft_pattern_order(&f->rule->source, f->source.order);
    for (uint32_t i = 0; i < f->rule->source.node_count; i++) {
        plan_node(f, f->source.order[i], &vars, &slots);
        f->images = f->images || has_window(f->rule->source.nodes[i].op);
    }
}

/* ------------------------------------------------------------- inference */

static const graft_shape *source_shape(const finder *f, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? &f->source.shapes[GRAFT_OPERAND_NODE_OF(operand)][GRAFT_OPERAND_SLOT_OF(operand)]
               : &f->point.vars[operand];
}

/* Attributes [0, count) of a node, from constants and slots. */
static void read_attrs(finder *f, uint32_t n, uint32_t count, int32_t *attrs)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    memset(attrs, 0, GRAFT_MAX_ATTRS * sizeof *attrs);
    for (uint32_t i = 0; i < count; i++) {
        const graft_term *term = &node->attrs[i];
        attrs[i] = term->kind == GRAFT_TERM_SLOT ? f->point.slots[term->value] : term->value;
    }
}

/* Whether the chosen inputs fit; remembers the output as a proposal for those not chosen yet. */
static bool check_early(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    read_attrs(f, s->node, graft_op(s->as)->attr_count, attrs);
    for (uint32_t i = 0; i < graft_op(s->as)->input_count; i++) {
        in[i] = *source_shape(f, node->inputs[i < s->inputs ? i : s->inputs - 1u]);
    }
    if (graft_infer_shapes(s->as, attrs, in, out) != GRAFT_OK) {
        return false;
    }
    f->partial[s->node] = out[0];
    return true;
}

static bool infer_node(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    graft_shape in[GRAFT_MAX_INPUTS];
    read_attrs(f, s->node, graft_op(node->op)->attr_count, f->source.attrs[s->node]);
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        in[i] = *source_shape(f, node->inputs[i]);
    }
    return graft_infer_shapes(node->op, f->source.attrs[s->node], in, f->source.shapes[s->node]) ==
           GRAFT_OK;
}

/* ----------------------------------------------------------------- choosing */

static void bind_var(finder *f, uint32_t var, graft_shape shape)
{
    f->point.vars[var] = shape;
    f->bound_vars |= 1u << var;
}

/* Whether a tuple agrees with the constants and the slots that have values. */
static bool tuple_agrees(const finder *f, const step *s, const int32_t *tuple)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    graft_point trial; /* Only the slots of this tuple are read. */
    uint64_t bound = f->bound_slots;
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        if (term->kind == GRAFT_TERM_CONST) {
            if (term->value != tuple[i]) {
                return false;
            }
            continue;
        }
        uint64_t bit = UINT64_C(1) << term->value;
        int32_t known = (f->bound_slots & bit) != 0 ? f->point.slots[term->value]
                        : (bound & bit) != 0        ? trial.slots[term->value]
                                                    : tuple[i];
        if (known != tuple[i]) {
            return false;
        }
        trial.slots[term->value] = tuple[i];
        bound |= bit;
    }
    return true;
}

static void bind_tuple(finder *f, const step *s, const int32_t *tuple)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        if (term->kind == GRAFT_TERM_SLOT) {
            f->point.slots[term->value] = tuple[i];
            f->bound_slots |= UINT64_C(1) << term->value;
        }
    }
}

static graft_choices attr_choices(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    return s->fixed.count > 0 ? s->fixed
                              : graft_choices_attrs(f->env->scratch, node->op, s->index,
                                                    source_shape(f, node->inputs[0]));
}

/* ------------------------------------------------------------------ points */

static uint64_t hash_point(const finder *f)
{
    uint8_t bytes[GRAFT_RULE_MAX_VARS * (GRAFT_MAX_RANK + 1) + GRAFT_RULE_MAX_SLOTS * 4];
    size_t size = 0;
    for (uint32_t v = 0; v < f->rule->var_count; v++) {
        bytes[size++] = f->point.vars[v].rank;
        for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
            bytes[size++] = (uint8_t)f->point.vars[v].dims[i];
        }
    }
    memcpy(&bytes[size], f->point.slots, f->rule->slot_count * sizeof f->point.slots[0]);
    size += f->rule->slot_count * sizeof f->point.slots[0];
    return XXH3_64bits(bytes, size) | 1u;
}

static bool is_new(finder *f, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 20) & (f->seen_capacity - 1);
    while (f->seen[at] != 0) {
        if (f->seen[at] == hash) {
            return false;
        }
        at = (at + 1) & (f->seen_capacity - 1);
    }
    f->seen[at] = hash;
    return true;
}

/* Keeps a new point. False when the caller has seen enough. */
static bool keep_point(finder *f)
{
    const graft_domain_options *o = f->options;
    graft_point *point = &f->domain->points[f->domain->count++];
    *point = f->point;
    f->is_enough = f->is_sampling && o->visit != NULL && !o->visit(o->context, point);
    return !f->is_enough;
}

/* Takes the finished point if both sides fit. False when no more are wanted. */
static bool take_point(finder *f)
{
    graft_instance instance;
    switch (graft_instance_build(&instance, f->rule, &f->point)) {
    case GRAFT_FIT_OK:
        if (f->domain->count == f->options->points) {
            return false;
        }
        return !is_new(f, hash_point(f)) || keep_point(f);
    case GRAFT_FIT_TARGET:
        f->domain->refused++;
        return true;
    case GRAFT_FIT_SOURCE:
    case GRAFT_FIT_CONDITION:
        break;
    }
    return true;
}

/* -------------------------------------------------------------- enumeration */

static bool enumerate(finder *f, uint32_t at);

static bool enumerate_shapes(finder *f, uint32_t at)
{
    uint32_t count = graft_choices_shape_count(f->images);
    for (uint32_t i = 0; i < count; i++) {
        bind_var(f, f->steps[at].index, graft_choices_shape(i));
        if (!enumerate(f, at + 1)) {
            return false;
        }
    }
    return true;
}

static bool enumerate_attrs(finder *f, uint32_t at)
{
    const step *s = &f->steps[at];
    graft_mark mark = graft_arena_mark(f->env->scratch);
    graft_choices choices = attr_choices(f, s);
    uint64_t bound = f->bound_slots;
    bool room = true;
    for (uint32_t i = 0; i < choices.count && room; i++) {
        const int32_t *tuple = &choices.tuples[(size_t)i * choices.width];
        if (tuple_agrees(f, s, tuple)) {
            bind_tuple(f, s, tuple);
            room = enumerate(f, at + 1);
            f->bound_slots = bound;
        }
    }
    graft_arena_release(f->env->scratch, mark);
    return room;
}

/* Tries everything from step `at` on. False when attempts or room ran out. */
static bool enumerate(finder *f, uint32_t at)
{
    if (at == f->step_count) {
        return take_point(f);
    }
    if (f->left == 0) {
        return false;
    }
    f->left--;
    switch ((step_kind)f->steps[at].kind) {
    case STEP_VAR:
        return enumerate_shapes(f, at);
    case STEP_ATTRS:
        return enumerate_attrs(f, at);
    case STEP_CHECK:
        return !check_early(f, &f->steps[at]) || enumerate(f, at + 1);
    case STEP_INFER:
        return !infer_node(f, &f->steps[at]) || enumerate(f, at + 1);
    case STEP_NODE:
        break;
    }
    return enumerate(f, at + 1);
}

/* ----------------------------------------------------------------- sampling */

/* Shapes that the node already has: its bound inputs and what they make together. */
static uint32_t list_known(const finder *f, uint32_t n, const graft_shape **known)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        graft_operand operand = node->inputs[i];
        if (GRAFT_OPERAND_IS_NODE(operand) || (f->bound_vars >> operand & 1u) != 0) {
            known[count++] = source_shape(f, operand);
        }
    }
    if (f->partial[n].rank <= GRAFT_MAX_RANK) {
        known[count++] = &f->partial[n];
    }
    return count;
}

static int32_t random_dim(finder *f, const graft_shape *shape)
{
    return shape->rank == 0 ? 1 : shape->dims[graft_rng_below(&f->rng, shape->rank)];
}

/* `shape` with some axes made 1 or another size. */
static graft_shape vary_shape(finder *f, graft_shape shape)
{
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (graft_rng_below(&f->rng, 2) == 0) {
            bool one = graft_rng_below(&f->rng, 2) == 0;
            shape.dims[i] = one ? 1 : (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
        }
    }
    return shape;
}

/* The last axes of `shape`. */
static graft_shape drop_axes(finder *f, const graft_shape *shape)
{
    uint32_t drop = graft_rng_below(&f->rng, shape->rank + 1u);
    graft_shape rest = {.rank = (uint8_t)(shape->rank - drop), .dtype = GRAFT_DTYPE_F32};
    memcpy(rest.dims, &shape->dims[drop], rest.rank * sizeof rest.dims[0]);
    return rest;
}

/* Another size for each size that occurs in the origin; 1 mostly stays. */
static void rename_sizes(finder *f)
{
    for (int32_t i = 0; i < RENAMED; i++) {
        uint32_t most =
            f->images && graft_rng_below(&f->rng, 2) == 0 ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST;
        f->renamed[i] = (int32_t)graft_rng_below(&f->rng, most) + 1;
    }
    f->renamed[1] = graft_rng_below(&f->rng, 4) == 0 ? f->renamed[1] : 1;
    f->renamed[0] = 0;
}

static graft_shape renamed_shape(const finder *f, graft_shape shape)
{
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = f->renamed[shape.dims[i] % RENAMED];
    }
    return shape;
}

static graft_shape propose_shape(finder *f, const step *s)
{
    const graft_shape *known[GRAFT_MAX_INPUTS + 1];
    uint32_t count = list_known(f, s->node, known);
    if (f->near && graft_rng_below(&f->rng, 8) != 0) {
        return renamed_shape(f, f->options->origin->vars[s->index]);
    }
    if (count == 0) {
        return graft_choices_shape_random(&f->rng, f->images);
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
        return graft_choices_shape_random(&f->rng, f->images);
    }
}

/* A size or slot value that is already there: equalities are rare among independent choices. */
static int32_t propose_value(finder *f, const step *s)
{
    const graft_shape *known[GRAFT_MAX_INPUTS + 1];
    uint32_t count = list_known(f, s->node, known);
    if (f->bound_slots != 0 && (count == 0 || graft_rng_below(&f->rng, 2) == 0)) {
        uint32_t slot = graft_rng_below(&f->rng, f->rule->slot_count);
        if ((f->bound_slots >> slot & 1u) != 0) {
            return f->point.slots[slot];
        }
    }
    return count > 0 ? random_dim(f, known[graft_rng_below(&f->rng, count)]) : 1;
}

/* The origin's values, sizes renamed. */
static bool repeat_origin(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t tuple[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        bool slot = term->kind == GRAFT_TERM_SLOT;
        bool size = graft_op_attr(node->op, s->index + i)->kind == GRAFT_ATTR_DIM;
        int32_t value = slot ? f->options->origin->slots[term->value] : term->value;
        tuple[i] = slot && size && value >= 0 ? f->renamed[value % RENAMED] : value;
    }
    if (!tuple_agrees(f, s, tuple)) {
        return false;
    }
    bind_tuple(f, s, tuple);
    return true;
}

static bool is_shape_list(const finder *f, const step *s)
{
    return f->rule->source.nodes[s->node].op == GRAFT_OP_fill && s->width > 1;
}

static bool sample_attrs(finder *f, const step *s)
{
    graft_mark mark = graft_arena_mark(f->env->scratch);
    graft_choices choices = attr_choices(f, s);
    const graft_attr_info *attr = graft_op_attr(f->rule->source.nodes[s->node].op, s->index);
    uint32_t first = choices.count > 0 ? graft_rng_below(&f->rng, choices.count) : 0;
    bool found = false;
    if (f->near && graft_rng_below(&f->rng, 2) == 0) {
        found = repeat_origin(f, s);
    }
    if (!found && is_shape_list(f, s)) {
        graft_shape shape = graft_choices_shape_random(&f->rng, false);
        found = tuple_agrees(f, s, shape.dims);
        if (found) {
            bind_tuple(f, s, shape.dims);
        }
    }
    bool echo = !found && choices.width == 1 && graft_rng_below(&f->rng, 4) == 0 &&
                (attr->kind == GRAFT_ATTR_INT || attr->kind == GRAFT_ATTR_DIM);
    if (echo) {
        int32_t value = propose_value(f, s);
        found = value >= attr->least && value <= attr->most && tuple_agrees(f, s, &value);
        if (found) {
            bind_tuple(f, s, &value);
        }
    }
    for (uint32_t i = 0; i < choices.count && !found; i++) {
        const int32_t *tuple =
            &choices.tuples[(size_t)((first + i) % choices.count) * choices.width];
        found = tuple_agrees(f, s, tuple);
        if (found) {
            bind_tuple(f, s, tuple);
        }
    }
    graft_arena_release(f->env->scratch, mark);
    return found;
}

/* Whether the variable of this step is the kernel of a convolution whose image is known. */
static bool is_kernel(const finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    bool conv = node->op == GRAFT_OP_conv || node->op == GRAFT_OP_conv_bias ||
                node->op == GRAFT_OP_conv_bias_add;
    return conv && node->inputs[1] == s->index &&
           (GRAFT_OPERAND_IS_NODE(node->inputs[0]) ||
            (f->bound_vars >> node->inputs[0] & 1u) != 0) &&
           source_shape(f, node->inputs[0])->rank == 4;
}

/* A variable that has a shape of this rank (0: any); NULL when there is none. */
static const graft_shape *other_shape(finder *f, uint32_t rank)
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
static int32_t propose_groups(finder *f, const graft_pattern_node *node, int32_t channels)
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
static graft_shape propose_kernel(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t channels = source_shape(f, node->inputs[0])->dims[1];
    int32_t groups = propose_groups(f, node, channels);
    const graft_shape *like = graft_rng_below(&f->rng, 2) == 0 ? other_shape(f, 4) : NULL;
    if (like != NULL) {
        graft_shape same = *like;
        same.dims[1] = channels / groups;
        return same;
    }
    uint32_t most = groups < GRAFT_SIZE_MOST ? (uint32_t)(GRAFT_SIZE_MOST / groups) : 1u;
    int32_t outputs = groups * ((int32_t)graft_rng_below(&f->rng, most) + 1);
    graft_shape kernel = {
        {outputs, channels / groups},
        4, GRAFT_DTYPE_F32
    };
    kernel.dims[2] = (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
    kernel.dims[3] = (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
    return kernel;
}

/* Whether the variable of this step is the image of a convolution whose kernel is known. */
static bool is_image(const finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    bool conv = node->op == GRAFT_OP_conv || node->op == GRAFT_OP_conv_bias ||
                node->op == GRAFT_OP_conv_bias_add;
    return conv && node->inputs[0] == s->index &&
           (GRAFT_OPERAND_IS_NODE(node->inputs[1]) ||
            (f->bound_vars >> node->inputs[1] & 1u) != 0) &&
           source_shape(f, node->inputs[1])->rank == 4;
}

/* An image for one or more groups of the kernel, not smaller than it. */
static graft_shape propose_image(finder *f, const step *s)
{
    const graft_shape *kernel = source_shape(f, f->rule->source.nodes[s->node].inputs[1]);
    graft_shape image = graft_choices_shape_random(&f->rng, true);
    int32_t groups = (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
    bool fits = kernel->dims[1] * groups <= GRAFT_SIZE_MOST;
    image.rank = 4;
    image.dims[0] = (int32_t)graft_rng_below(&f->rng, 2) + 1;
    image.dims[1] = kernel->dims[1] * (fits ? groups : 1);
    for (uint32_t i = 2; i < 4; i++) {
        int32_t more = (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST);
        int32_t size = kernel->dims[i] + more;
        image.dims[i] = size < GRAFT_IMAGE_MOST ? size : GRAFT_IMAGE_MOST;
    }
    return image;
}

/* An image that another shape broadcasts to. */
static graft_shape grow_image(finder *f, const graft_shape *like)
{
    graft_shape image = {.rank = 4, .dtype = GRAFT_DTYPE_F32};
    for (uint32_t i = 0; i < 4; i++) {
        bool has = i + like->rank >= 4 && like->rank <= 4;
        int32_t size = has ? like->dims[i + like->rank - 4] : 1;
        image.dims[i] = size > 1 ? size : (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
    }
    return image;
}

/* A shape like that of another variable: the same, with another size, one of its sizes alone, or
 * what it broadcasts to. */
static graft_shape echo_shape(finder *f, const graft_shape *like)
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
            shape.dims[axis] = (int32_t)graft_rng_below(&f->rng, GRAFT_SIZE_MOST) + 1;
        }
        break;
    default:
        break;
    }
    return shape;
}

/* Proposals for guided samples: what convolutions ask of each other's shapes, and equal shapes. */
static graft_shape propose_guided(finder *f, const step *s)
{
    if (graft_rng_below(&f->rng, 4) != 0) {
        if (is_kernel(f, s)) {
            return propose_kernel(f, s);
        }
        if (is_image(f, s)) {
            return propose_image(f, s);
        }
    }
    const graft_shape *like = graft_rng_below(&f->rng, 3) == 0 ? other_shape(f, 0) : NULL;
    return like != NULL ? echo_shape(f, like) : propose_shape(f, s);
}

/* A proposed shape, made to follow the precondition. */
static graft_shape guided_shape(finder *f, const step *s)
{
    graft_shape shape = f->options->guided ? propose_guided(f, s) : propose_shape(f, s);
    int32_t fresh[GRAFT_MAX_RANK];
    if (f->follows) {
        for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
            uint32_t most = f->images && i >= 2 ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST;
            fresh[i] = (int32_t)graft_rng_below(&f->rng, most) + 1;
        }
        graft_guide_shape(&f->guide, s->index, &f->point, f->bound_vars, fresh, &shape);
    }
    return shape;
}

/* The groups of a convolution follow from its shapes. */
static bool find_groups(const finder *f, const step *s, int32_t *groups)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    const graft_attr_info *attr = graft_op_attr(node->op, s->index);
    if (strcmp(attr->name, "groups") != 0) {
        return false;
    }
    const graft_shape *image = source_shape(f, node->inputs[0]);
    const graft_shape *kernel = source_shape(f, node->inputs[1]);
    if (image->rank != 4 || kernel->rank != 4 || image->dims[1] % kernel->dims[1] != 0) {
        return false;
    }
    *groups = image->dims[1] / kernel->dims[1];
    return true;
}

/* Gives an attribute the value that shapes or the precondition give it; false when they give none.
 */
static bool guided_attr(finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    const graft_term *term = &node->attrs[s->index];
    const graft_attr_info *attr = graft_op_attr(node->op, s->index);
    int32_t value = 0;
    bool fits = f->options->guided && s->width == 1 && term->kind == GRAFT_TERM_SLOT &&
                (attr->kind == GRAFT_ATTR_INT || attr->kind == GRAFT_ATTR_DIM);
    bool given = fits &&
                 (find_groups(f, s, &value) ||
                  (f->follows && graft_guide_slot(&f->guide, (uint32_t)term->value, &f->point,
                                                  f->bound_vars, f->bound_slots, &value))) &&
                 value >= attr->least && value <= attr->most && tuple_agrees(f, s, &value);
    if (given) {
        bind_tuple(f, s, &value);
    }
    return given;
}

static bool sample_step(finder *f, const step *s)
{
    switch ((step_kind)s->kind) {
    case STEP_VAR:
        bind_var(f, s->index, guided_shape(f, s));
        return true;
    case STEP_ATTRS:
        return guided_attr(f, s) || sample_attrs(f, s);
    case STEP_CHECK:
        return check_early(f, s);
    case STEP_INFER:
        return infer_node(f, s);
    case STEP_NODE:
        break;
    }
    f->partial[s->node].rank = GRAFT_RANK_UNKNOWN;
    return true;
}

/* Whether no choice at this node can make it fit: what it reads already has the wrong rank. */
static bool is_hopeless(const finder *f, const step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    bool images = has_window(node->op) || node->op == GRAFT_OP_global_avg_pool;
    bool hopeless = false;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count && i < 2; i++) {
        graft_operand x = node->inputs[i];
        bool known = GRAFT_OPERAND_IS_NODE(x) || (f->bound_vars >> x & 1u) != 0;
        hopeless = hopeless || (images && known && source_shape(f, x)->rank != 4);
    }
    return s->kind == STEP_NODE && hopeless;
}

enum { RETRIES_MOST = 200 };

/* Chooses a point; after a misfit the choices since the last success at this node are made again, a
 * bounded number of times. False when that did not help. */
static bool sample_point(finder *f)
{
    uint32_t back = 0; /* Where to return to, and what was bound there. */
    uint64_t back_slots = 0;
    uint32_t back_vars = 0;
    uint32_t retries = 0;
    f->bound_slots = 0;
    f->bound_vars = 0;
    f->near = f->options->origin != NULL && graft_rng_below(&f->rng, 2) == 0;
    f->follows = f->guide.count > 0 && graft_rng_below(&f->rng, 8) != 0;
    if (f->near) {
        rename_sizes(f);
    }
    for (uint32_t at = 0; at < f->step_count; at++) {
        const step *s = &f->steps[at];
        if (f->left == 0 || (f->options->guided && is_hopeless(f, s))) {
            return false;
        }
        f->left--;
        if (sample_step(f, s)) {
            bool anchor = s->kind == STEP_NODE || s->kind == STEP_CHECK;
            back = anchor ? at : back;
            back_slots = anchor ? f->bound_slots : back_slots;
            back_vars = anchor ? f->bound_vars : back_vars;
            continue;
        }
        if (++retries > RETRIES_MOST) {
            return false;
        }
        at = back;
        f->bound_slots = back_slots;
        f->bound_vars = back_vars;
    }
    return true;
}

/* Sampling ends when nothing new has come for a while. */
enum { WORK_MOST = 40000, STALE_LEAST = 2000, STALE_SHARE = 4, ENUMERATE_SHARE = 8 };

/* Takes a sampled point if both sides fit and are quick to evaluate. Samples repeat: what was said
 * of the last point with these bits of the hash is remembered. */
static void take_sample(finder *f)
{
    uint64_t hash = hash_point(f);
    judgement *known = &f->judged[hash >> (64 - JUDGED_BITS)];
    if (known->hash != hash) {
        graft_instance instance;
        graft_fit fit = graft_instance_build(&instance, f->rule, &f->point);
        *known = (judgement){hash, fit == GRAFT_FIT_TARGET};
        if (fit == GRAFT_FIT_OK && graft_instance_work(&instance) <= WORK_MOST && is_new(f, hash)) {
            (void)keep_point(f);
        }
    }
    f->domain->refused += known->is_refused ? 1 : 0;
}

static void sample(finder *f)
{
    uint32_t stale = 0; /* Points in a row that were there already, or no instances. */
    f->left = f->options->attempts;
    while (f->left > 0 && !f->is_enough && f->domain->count < f->options->points &&
           stale < STALE_LEAST + STALE_SHARE * f->domain->count) {
        uint32_t before = f->domain->count;
        if (sample_point(f)) {
            take_sample(f);
        }
        stale = f->domain->count > before ? 0 : stale + 1;
    }
}

static void clear_points(finder *f)
{
    f->domain->count = 0;
    f->domain->refused = 0;
    memset(f->seen, 0, f->seen_capacity * sizeof *f->seen);
    memset(&f->point, 0, sizeof f->point);
    if (f->options->origin != NULL) {
        f->point = *f->options->origin;
        (void)take_point(f);
    }
}

void graft_domain_find(graft_env *env, graft_arena *arena, const graft_rule *rule,
                       const graft_domain_options *options, graft_domain *domain)
{
    *domain = (graft_domain){.points = GRAFT_NEW(arena, graft_point, options->points)};
    graft_mark mark = graft_arena_mark(env->scratch);
    finder *f = GRAFT_NEW(env->scratch, finder, 1);
    f->env = env;
    f->rule = rule;
    f->options = options;
    f->domain = domain;
    f->seen_capacity = 64;
    while (f->seen_capacity < 2 * options->points) {
        f->seen_capacity *= 2;
    }
    f->seen = GRAFT_NEW(env->scratch, uint64_t, f->seen_capacity);
    graft_rng_seed(&f->rng, options->seed);
    if (options->guided && rule->condition != 255) {
        graft_guide_read(rule, &f->guide);
    }
    make_plan(f);
    if (options->enumerate) {
        clear_points(f);
        f->left = options->attempts / ENUMERATE_SHARE;
        domain->complete = enumerate(f, 0);
    }
    if (!domain->complete) {
        f->is_sampling = true;
        clear_points(f);
        sample(f);
    }
    graft_arena_release(env->scratch, mark);
}
