/* domain.c - finding instances: the plan, how a point grows along it, sampling and enumerating. See
 * domain.h and finder.h. */
#include "verify/sweep/domain.h"

#include "graph/rule/pattern.h"
#include "graph/rule/ruletypes.h"
#include "verify/sweep/finder.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

/* ------------------------------------------------------------- points that were met */

graft_met graft_met_new(graft_arena *arena, uint64_t most)
{
    uint64_t slots = 64;
    while (slots < 2 * most) {
        slots *= 2;
    }
    return (graft_met){GRAFT_NEW(arena, uint64_t, slots), slots - 1};
}

bool graft_met_add(graft_met *met, uint64_t hash)
{
    uint64_t at = hash >> 20 & met->mask;
    for (; met->hashes[at] != 0; at = (at + 1) & met->mask) {
        if (met->hashes[at] == hash) {
            return false;
        }
    }
    met->hashes[at] = hash;
    return true;
}

bool graft_met_add_point(graft_met *met, const graft_point *point)
{
    return graft_met_add(met, XXH3_64bits(point, sizeof *point) | 1u);
}

/* -------------------------------------------------------------------- the plan */

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

static graft_step *add_step(graft_finder *f, graft_step_kind kind, uint32_t node)
{
    assert(f->step_count < GRAFT_STEPS_MOST);
    graft_step *s = &f->steps[f->step_count++];
    *s = (graft_step){.kind = (uint8_t)kind, .node = (uint8_t)node};
    return s;
}

/* Those that are not planned yet. */
static void plan_attrs(graft_finder *f, uint32_t n, uint64_t *slots)
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
            graft_step *s = add_step(f, GRAFT_STEP_ATTRS, n);
            s->index = (uint8_t)first;
            s->width = (uint8_t)width;
            s->attr = graft_op_attr(node->op, first);
            s->is_number =
                width == 1 && (s->attr->kind == GRAFT_ATTR_INT || s->attr->kind == GRAFT_ATTR_DIM);
            s->is_groups = s->is_number && s->attr->role == GRAFT_ROLE_GROUPS;
            if (node->op != GRAFT_OP_transpose && node->op != GRAFT_OP_reshape) {
                s->fixed = graft_choices_attrs(f->env->scratch, node->op, first, NULL);
            }
            *slots |= fresh;
        }
        first += width;
    }
}

static void note_attrs(graft_finder *f, uint32_t n)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
            f->slot_attrs[n][f->slot_count[n]++] = (uint8_t)i;
        } else {
            f->source.attrs[n][i] = node->attrs[i].value;
        }
    }
}

static void plan_node(graft_finder *f, uint32_t n, uint32_t *vars, uint64_t *slots)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    note_attrs(f, n);
    add_step(f, GRAFT_STEP_NODE, n);
    for (uint32_t i = 0; i < info->input_count; i++) {
        graft_operand operand = node->inputs[i];
        if (!GRAFT_OPERAND_IS_NODE(operand) && (*vars >> operand & 1u) == 0) {
            add_step(f, GRAFT_STEP_VAR, n)->index = operand;
            *vars |= 1u << operand;
        }
        for (size_t k = 0; k < sizeof early_checks / sizeof early_checks[0]; k++) {
            if (early_checks[k].op == node->op && early_checks[k].inputs == i + 1) {
                plan_attrs(f, n, slots);
                graft_step *s = add_step(f, GRAFT_STEP_CHECK, n);
                s->as = early_checks[k].as;
                s->inputs = (uint8_t)(i + 1);
            }
        }
    }
    plan_attrs(f, n, slots);
    add_step(f, GRAFT_STEP_INFER, n);
}

static bool has_window(uint32_t op)
{
    return op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add ||
           op == GRAFT_OP_max_pool || op == GRAFT_OP_avg_pool;
}

static void plan_rule(graft_finder *f)
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

/* --------------------------------------------------------------- inference */

bool graft_finder_has(const graft_finder *f, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand) || (f->bound_vars >> operand & 1u) != 0;
}

const graft_shape *graft_finder_shape(const graft_finder *f, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? &f->source.shapes[GRAFT_OPERAND_NODE_OF(operand)][GRAFT_OPERAND_SLOT_OF(operand)]
               : &f->point.vars[operand];
}

/* The attributes of a node, as far as they are chosen. */
static const int32_t *read_attrs(graft_finder *f, uint32_t n)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    int32_t *attrs = f->source.attrs[n];
    for (uint32_t i = 0; i < f->slot_count[n]; i++) {
        uint32_t at = f->slot_attrs[n][i];
        attrs[at] = f->point.slots[node->attrs[at].value];
    }
    return attrs;
}

/* Whether the chosen inputs fit; remembers the output as a proposal for those not chosen yet. */
static bool check_inputs(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t attrs[GRAFT_MAX_ATTRS] = {0}; /* Those of `as`; it has no more. */
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    memcpy(attrs, read_attrs(f, s->node), graft_op(s->as)->attr_count * sizeof *attrs);
    for (uint32_t i = 0; i < graft_op(s->as)->input_count; i++) {
        in[i] = *graft_finder_shape(f, node->inputs[i < s->inputs ? i : s->inputs - 1u]);
    }
    if (graft_infer_shapes(s->as, attrs, in, out) != GRAFT_OK) {
        return false;
    }
    f->partial[s->node] = out[0];
    return true;
}

static bool infer_node(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    graft_shape in[GRAFT_MAX_INPUTS];
    uint8_t types[GRAFT_RULE_MAX_VARS];
    graft_rule_types(f->rule, f->point.slots, f->bound_slots, types);
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        in[i] = *graft_finder_shape(f, node->inputs[i]);
        in[i].dtype = GRAFT_OPERAND_IS_NODE(node->inputs[i]) ? in[i].dtype : types[node->inputs[i]];
    }
    return graft_infer_shapes(node->op, read_attrs(f, s->node), in, f->source.shapes[s->node]) ==
           GRAFT_OK;
}

/* ----------------------------------------------------------------- choosing */

static void bind_var(graft_finder *f, uint32_t var, graft_shape shape)
{
    f->point.vars[var] = shape;
    f->bound_vars |= 1u << var;
}

/* Whether a tuple agrees with the constants and the slots that have values. */
static bool agrees(const graft_finder *f, const graft_step *s, const int32_t *tuple)
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

static void bind_tuple(graft_finder *f, const graft_step *s, const int32_t *tuple)
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

static graft_choices list_choices(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    return s->fixed.count > 0 ? s->fixed
                              : graft_choices_attrs(f->env->scratch, node->op, s->index,
                                                    graft_finder_shape(f, node->inputs[0]));
}

/* ------------------------------------------------------------------ points */

static uint64_t hash_point(const graft_finder *f)
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

/* Keeps a new point. False when the caller has seen enough. */
static bool keep_point(graft_finder *f)
{
    const graft_domain_options *o = f->options;
    graft_point *point = &f->domain->points[f->domain->count++];
    *point = f->point;
    f->is_enough = f->is_sampling && o->visit != NULL && !o->visit(o->context, point);
    return !f->is_enough;
}

/* ---------------------------------------------------------------- sampling */

/* Gives the attributes of a step a tuple, if it may. */
static bool try_tuple(graft_finder *f, const graft_step *s, const int32_t *tuple)
{
    bool fits = agrees(f, s, tuple);
    if (fits) {
        bind_tuple(f, s, tuple);
    }
    return fits;
}

/* The origin's values, sizes renamed. */
static bool repeat_origin(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t tuple[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        bool slot = term->kind == GRAFT_TERM_SLOT;
        bool size = graft_op_attr(node->op, s->index + i)->kind == GRAFT_ATTR_DIM;
        int32_t value = slot ? f->options->origin->slots[term->value] : term->value;
        tuple[i] = slot && size && value >= 0 ? f->renamed[value % GRAFT_RENAMED] : value;
    }
    return try_tuple(f, s, tuple);
}

static bool is_shape_list(const graft_finder *f, const graft_step *s)
{
    return f->rule->source.nodes[s->node].op == GRAFT_OP_fill && s->width > 1;
}

/* Gives a number a value, if it is in the attribute's range. */
static bool try_value(graft_finder *f, const graft_step *s, int32_t value)
{
    return value >= s->attr->least && value <= s->attr->most && try_tuple(f, s, &value);
}

static bool try_named(graft_finder *f, const graft_step *s)
{
    const graft_named *named = f->options->named;
    if (s->attr->kind == GRAFT_ATTR_FLOAT && named->real_count > 0) {
        return try_tuple(f, s, &named->reals[graft_rng_below(&f->rng, named->real_count)]);
    }
    return s->is_number && try_value(f, s, f->palette[graft_rng_below(&f->rng, 2)]);
}

static bool sample_attrs(graft_finder *f, const graft_step *s)
{
    GRAFT_SCOPED(f->env->scratch);
    graft_choices choices = list_choices(f, s);
    uint32_t at = choices.count > 0 ? graft_rng_below(&f->rng, choices.count) : 0;
    bool found = f->near && graft_rng_below(&f->rng, 2) == 0 && repeat_origin(f, s);
    if (f->palette[0] > 0 && choices.width == 1 && graft_rng_below(&f->rng, 3) == 0) {
        found = try_named(f, s);
    }
    if (!found && is_shape_list(f, s)) {
        graft_shape shape = graft_choices_shape_random(&f->rng, false);
        found = try_tuple(f, s, shape.dims);
    }
    if (!found && choices.width == 1 && graft_rng_below(&f->rng, 4) == 0 && s->is_number) {
        found = try_value(f, s, graft_propose_value(f, s));
    }
    for (uint32_t i = 0; i < choices.count && !found; i++) {
        found = try_tuple(f, s, &choices.tuples[(size_t)at * choices.width]);
        at = at + 1 < choices.count ? at + 1 : 0;
    }
    return found;
}

/* The groups of a convolution follow from its shapes. */
static bool find_groups(const graft_finder *f, const graft_step *s, int32_t *groups)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    if (!s->is_groups) {
        return false;
    }
    const graft_shape *image = graft_finder_shape(f, node->inputs[0]);
    const graft_shape *kernel = graft_finder_shape(f, node->inputs[1]);
    if (image->rank != 4 || kernel->rank != 4 || image->dims[1] % kernel->dims[1] != 0) {
        return false;
    }
    *groups = image->dims[1] / kernel->dims[1];
    return true;
}

/* Gives an attribute the value that shapes or the precondition give it; false when they give none.
 */
static bool guided_attr(graft_finder *f, const graft_step *s)
{
    const graft_term *term = &f->rule->source.nodes[s->node].attrs[s->index];
    int32_t value = 0;
    bool given = s->is_number &&
                 (find_groups(f, s, &value) ||
                  (f->follows && graft_guide_slot(&f->guide, (uint32_t)term->value, &f->point,
                                                  f->bound_vars, f->bound_slots, &value)));
    return given && try_value(f, s, value);
}

static bool sample_step(graft_finder *f, const graft_step *s)
{
    switch ((graft_step_kind)s->kind) {
    case GRAFT_STEP_VAR:
        bind_var(f, s->index, graft_propose_shape(f, s));
        return true;
    case GRAFT_STEP_ATTRS:
        return guided_attr(f, s) || sample_attrs(f, s);
    case GRAFT_STEP_CHECK:
        return check_inputs(f, s);
    case GRAFT_STEP_INFER:
        return infer_node(f, s);
    case GRAFT_STEP_NODE:
        break;
    }
    f->partial[s->node].rank = GRAFT_RANK_UNKNOWN;
    return true;
}

/* Whether no choice at this node can make it fit: what it reads already has the wrong rank. */
static bool is_hopeless(const graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    if (s->kind != GRAFT_STEP_NODE ||
        (!has_window(node->op) && node->op != GRAFT_OP_global_avg_pool)) {
        return false;
    }
    bool hopeless = false;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count && i < 2; i++) {
        graft_operand x = node->inputs[i];
        hopeless = hopeless || (graft_finder_has(f, x) && graft_finder_shape(f, x)->rank != 4);
    }
    return hopeless;
}

/* A place of the plan to return to, and what was bound there. */
typedef struct {
    uint32_t at;
    uint32_t vars;
    uint64_t slots;
    uint32_t choices; /* Made since. */
    uint32_t returns;
} anchor;

/* Of one sample. Complete points that differ in their last choices alone are hardly ever new. */
enum { RETRIES_MOST = 100, RETURNS_MOST = 12, TAKEN_MOST = 4 };

typedef struct {
    anchor anchors[GRAFT_STEPS_MOST];
    uint32_t count;
    uint32_t retries;
} trail;

static void note_step(const graft_finder *f, trail *t, uint32_t at)
{
    const graft_step *s = &f->steps[at];
    if (s->kind == GRAFT_STEP_NODE || s->kind == GRAFT_STEP_CHECK) {
        t->anchors[t->count++] = (anchor){.at = at, .vars = f->bound_vars, .slots = f->bound_slots};
    } else if (s->kind != GRAFT_STEP_INFER && t->count > 0) { /* The plan begins with a node. */
        t->anchors[t->count - 1].choices++;
    }
}

/* Returns to the last anchor since which something was chosen, that was not returned to too often.
 * False when there is none. */
static bool go_back(graft_finder *f, trail *t, uint32_t *at)
{
    while (t->count > 0 && t->retries < RETRIES_MOST) {
        anchor *a = &t->anchors[t->count - 1];
        if (a->choices > 0 && a->returns < RETURNS_MOST) {
            a->returns++;
            a->choices = 0;
            t->retries++;
            f->bound_slots = a->slots;
            f->bound_vars = a->vars;
            *at = a->at;
            return true;
        }
        t->count--;
    }
    return false;
}

/* Sampling ends when nothing new has come for a while. */
enum { WORK_USUAL = 12000, STALE_LEAST = 2000, STALE_SHARE = 4 };

/* Takes the point if both sides fit and are quick to evaluate. Points repeat: what was said of the
 * last one with these bits of the hash is remembered. False when the point is no instance. */
static bool take_sampled(graft_finder *f, bool is_first)
{
    uint64_t hash = hash_point(f);
    graft_judgement *known = &f->judged[hash >> (64 - GRAFT_JUDGED_BITS)];
    if (known->hash != hash) {
        graft_instance instance;
        uint64_t most = f->options->work > 0 ? f->options->work : WORK_USUAL;
        graft_fit fit = graft_instance_build(&instance, f->rule, &f->point);
        *known = (graft_judgement){hash, fit == GRAFT_FIT_TARGET, fit == GRAFT_FIT_OK};
        if (fit == GRAFT_FIT_OK && graft_instance_work(&instance) <= most &&
            graft_met_add(&f->met, hash)) {
            (void)keep_point(f);
        }
    }
    f->domain->fitted += is_first && known->fits ? 1 : 0;
    f->domain->refused += is_first && known->is_refused ? 1 : 0;
    return known->fits;
}

static bool make_step(graft_finder *f, uint32_t at)
{
    return !is_hopeless(f, &f->steps[at]) && sample_step(f, &f->steps[at]);
}

/* The named sizes of a sample: the first ones, which the rule says outright, more often. */
static void draw_palette(graft_finder *f)
{
    const graft_named *named = f->options->named;
    for (uint32_t i = 0; i < 2 && named != NULL; i++) {
        uint32_t most =
            graft_rng_below(&f->rng, 2) == 0 ? named->whole_count : 1 + named->whole_count / 4;
        f->palette[i] = named->whole[graft_rng_below(&f->rng, most)];
    }
}

static void sample_point(graft_finder *f)
{
    trail t;
    t.count = 0;
    t.retries = 0;
    f->bound_slots = 0;
    f->bound_vars = 0;
    f->near = f->options->origin != NULL && graft_rng_below(&f->rng, 2) == 0;
    f->follows = f->guide.count > 0 && graft_rng_below(&f->rng, 8) != 0;
    f->mates = !f->near && graft_rng_below(&f->rng, 3) != 0;
    if (f->near) {
        graft_propose_rename(f);
    }
    draw_palette(f);
    bool done = false;
    uint32_t taken = 0; /* Complete points. */
    for (uint32_t at = 0; !done && f->left > 0; at++) {
        f->left--;
        if (at == f->step_count) {
            done = take_sampled(f, taken == 0) || ++taken == TAKEN_MOST || !go_back(f, &t, &at);
        } else if (make_step(f, at)) {
            note_step(f, &t, at);
        } else {
            done = !go_back(f, &t, &at);
        }
    }
}

static void sample_points(graft_finder *f)
{
    uint32_t stale = 0; /* Points in a row that were there already, or no instances. */
    f->left = f->options->attempts;
    while (f->left > 0 && !f->is_enough && f->domain->count < f->options->points &&
           stale < STALE_LEAST + STALE_SHARE * f->domain->count) {
        uint32_t before = f->domain->count;
        sample_point(f);
        stale = f->domain->count > before ? 0 : stale + 1;
    }
}

static bool take_enumerated(graft_finder *f)
{
    graft_instance instance;
    switch (graft_instance_build(&instance, f->rule, &f->point)) {
    case GRAFT_FIT_OK:
        f->domain->fitted++;
        if (f->domain->count == f->options->points) {
            return false;
        }
        return !graft_met_add(&f->met, hash_point(f)) || keep_point(f);
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

static bool enumerate(graft_finder *f, uint32_t at);

/* Of `count` branches of the part at hand, the first `tried` lie behind. */
static void note_progress(graft_finder *f, double before, double part, uint32_t tried,
                          uint32_t count)
{
    f->part = part / count;
    f->done = before + f->part * tried;
}

static bool enumerate_shapes(graft_finder *f, uint32_t at)
{
    uint32_t count = graft_choices_shape_count(f->images);
    double before = f->done;
    double part = f->part;
    bool room = true;
    for (uint32_t i = 0; i < count && room; i++) {
        note_progress(f, before, part, i, count);
        bind_var(f, f->steps[at].index, graft_choices_shape(i));
        room = enumerate(f, at + 1);
    }
    f->part = part;
    return room;
}

static bool enumerate_attrs(graft_finder *f, uint32_t at)
{
    const graft_step *s = &f->steps[at];
    GRAFT_SCOPED(f->env->scratch);
    graft_choices choices = list_choices(f, s);
    uint64_t bound = f->bound_slots;
    double before = f->done;
    double part = f->part;
    bool room = true;
    for (uint32_t i = 0; i < choices.count && room; i++) {
        note_progress(f, before, part, i, choices.count);
        if (try_tuple(f, s, &choices.tuples[(size_t)i * choices.width])) {
            room = enumerate(f, at + 1);
            f->bound_slots = bound;
        }
    }
    f->part = part;
    return room;
}

/* After an eighth of its attempts, an enumeration that is not an eighth of that far in the domain
 * will not come to its end. */
enum { HOPELESS_SHARE = 8 };

static bool is_out_of_reach(const graft_finder *f)
{
    return f->left == f->attempts - f->attempts / HOPELESS_SHARE &&
           f->done * HOPELESS_SHARE * HOPELESS_SHARE < 1.0;
}

/* Tries everything from graft_step `at` on. False when attempts or room ran out, or will. */
static bool enumerate(graft_finder *f, uint32_t at)
{
    if (at == f->step_count) {
        return take_enumerated(f);
    }
    if (f->left == 0 || is_out_of_reach(f)) {
        return false;
    }
    f->left--;
    switch ((graft_step_kind)f->steps[at].kind) {
    case GRAFT_STEP_VAR:
        return enumerate_shapes(f, at);
    case GRAFT_STEP_ATTRS:
        return enumerate_attrs(f, at);
    case GRAFT_STEP_CHECK:
        return !check_inputs(f, &f->steps[at]) || enumerate(f, at + 1);
    case GRAFT_STEP_INFER:
        return !infer_node(f, &f->steps[at]) || enumerate(f, at + 1);
    case GRAFT_STEP_NODE:
        break;
    }
    return enumerate(f, at + 1);
}

static void clear_points(graft_finder *f)
{
    f->domain->count = 0;
    f->domain->fitted = 0;
    f->domain->refused = 0;
    memset(f->met.hashes, 0, (f->met.mask + 1) * sizeof *f->met.hashes);
    memset(&f->point, 0, sizeof f->point);
    if (f->options->origin != NULL) {
        f->point = *f->options->origin;
        (void)take_enumerated(f);
    }
}

/* Choices that go into enumerating, for each point wanted: a domain that needs more has too many.
 */
enum { ENUMERATED_PER_POINT = 125 };

graft_domain graft_domain_find(graft_env *env, graft_arena *arena, const graft_rule *rule,
                               const graft_domain_options *options)
{
    graft_domain domain = {.points = GRAFT_NEW(arena, graft_point, options->points)};
    GRAFT_SCOPED(env->scratch);
    graft_finder *f = GRAFT_NEW(env->scratch, graft_finder, 1);
    f->env = env;
    f->rule = rule;
    f->options = options;
    f->domain = &domain;
    f->met = graft_met_new(env->scratch, options->points);
    f->size_most = options->size_most > 0 ? (int32_t)options->size_most : GRAFT_SIZE_MOST;
    f->image_most = options->size_most > 0 ? (int32_t)options->size_most : GRAFT_IMAGE_MOST;
    graft_rng_seed(&f->rng, options->seed);
    if (rule->condition != 255) {
        graft_guide_read(rule, &f->guide);
    }
    plan_rule(f);
    if (options->enumerate) {
        clear_points(f);
        f->attempts = options->points * ENUMERATED_PER_POINT;
        f->left = f->attempts;
        f->part = 1.0;
        domain.complete = enumerate(f, 0);
    }
    if (!domain.complete) {
        f->is_sampling = true;
        clear_points(f);
        sample_points(f);
    }
    return domain;
}
