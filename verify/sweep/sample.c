/* sample.c - see sample.h. */
#include "verify/sweep/sample.h"

#include "verify/sweep/propose.h"

/* -------------------------------------------------------------------- attributes */

/* Gives the attributes of a step a tuple, if it may. */
static bool try_tuple(graft_finder *f, const graft_step *s, const int32_t *tuple)
{
    bool fits = graft_finder_agrees(f, s, tuple);
    if (fits) {
        graft_finder_bind(f, s, tuple);
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

/* One of the numbers that the rule names. */
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
    graft_choices choices = graft_finder_choices(f, s);
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
        graft_finder_bind_var(f, s->index, graft_propose_shape(f, s));
        return true;
    case GRAFT_STEP_ATTRS:
        return guided_attr(f, s) || sample_attrs(f, s);
    case GRAFT_STEP_CHECK:
        return graft_finder_check(f, s);
    case GRAFT_STEP_INFER:
        return graft_finder_infer(f, s);
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
        (!graft_finder_has_window(node->op) && node->op != GRAFT_OP_global_avg_pool)) {
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
static bool take_point(graft_finder *f, bool is_first)
{
    uint64_t hash = graft_finder_hash(f);
    graft_judgement *known = &f->judged[hash >> (64 - GRAFT_JUDGED_BITS)];
    if (known->hash != hash) {
        graft_instance instance;
        uint64_t most = f->options->work > 0 ? f->options->work : WORK_USUAL;
        graft_fit fit = graft_instance_build(&instance, f->rule, &f->point);
        *known = (graft_judgement){hash, fit == GRAFT_FIT_TARGET, fit == GRAFT_FIT_OK};
        if (fit == GRAFT_FIT_OK && graft_instance_work(&instance) <= most &&
            graft_finder_is_new(f, hash)) {
            (void)graft_finder_keep(f);
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

/* Chooses a point. */
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
            done = take_point(f, taken == 0) || ++taken == TAKEN_MOST || !go_back(f, &t, &at);
        } else if (make_step(f, at)) {
            note_step(f, &t, at);
        } else {
            done = !go_back(f, &t, &at);
        }
    }
}

void graft_sample_points(graft_finder *f)
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
