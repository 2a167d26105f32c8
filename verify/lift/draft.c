/* draft.c - places, constraints and expressions of a candidate, and the rule they make. */
#include "verify/lift/draft.h"

#include "graph/rule/rulecode.h"

#include <string.h>

/* ------------------------------------------------------------------ places */

static graft_status find_places(graft_env *env, graft_draft *draft)
{
    const graft_pattern *source = &draft->candidate->rule.source;
    for (uint32_t n = 0; n < source->node_count; n++) {
        const graft_pattern_node *node = &source->nodes[n];
        uint32_t left = 0; /* Attributes of the present list that follow. */
        uint8_t list = 0;
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_attr_info *attr = graft_op_attr(node->op, i);
            if (draft->place_count == GRAFT_PLACES_MOST) {
                return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "the source has more than %d attributes",
                                  GRAFT_PLACES_MOST);
            }
            bool starts = left == 0;
            left = !starts ? left : node->op == GRAFT_OP_transpose ? GRAFT_MAX_RANK : 1;
            list = starts ? (uint8_t)draft->place_count : list;
            draft->places[draft->place_count++] = (graft_place){
                (uint8_t)n,           (uint8_t)i, attr->kind, list, starts ? (uint8_t)left : 0,
                node->attrs[i].value, attr};
            left--;
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------- constraints */

static void add_axes(graft_draft *draft, graft_constraint_kind kind, uint32_t a, int32_t axis_a,
                     uint32_t b, int32_t axis_b)
{
    if (draft->constraint_count < GRAFT_CONSTRAINTS_MOST) {
        draft->constraints[draft->constraint_count++] = (graft_constraint){
            (uint8_t)kind, (uint8_t)a, (uint8_t)b, (int8_t)axis_a, (int8_t)axis_b};
    }
}

static void add_constraint(graft_draft *draft, graft_constraint_kind kind, uint32_t a, uint32_t b)
{
    add_axes(draft, kind, a, 0, b, 0);
}

bool graft_attrs_alike(const graft_attr_info *a, const graft_attr_info *b)
{
    return a->role == b->role && strcmp(a->name, b->name) == 0;
}

static bool is_padding(const graft_attr_info *attr) { return attr->role == GRAFT_ROLE_PADDING; }

/* One axis: by itself, or a place of a permutation. */
static bool is_axis(const graft_attr_info *attr)
{
    return attr->role == GRAFT_ROLE_AXIS || attr->role == GRAFT_ROLE_ORDER;
}

/* Whether two may well be one number: both strides, or both paddings, but not a stride and a
 * padding. Sizes of a shape are each their own, and positions and modes what they are called. */
static bool are_comparable(const graft_attr_info *a, const graft_attr_info *b)
{
    switch (a->role) {
    case GRAFT_ROLE_EXTENT:
        return false;
    case GRAFT_ROLE_NUMBER:
    case GRAFT_ROLE_POSITION:
    case GRAFT_ROLE_MODE:
        return graft_attrs_alike(a, b);
    default:
        return a->role == b->role || (is_axis(a) && is_axis(b));
    }
}

static bool lists_equal(const graft_draft *draft, uint32_t a, uint32_t b)
{
    const graft_place *p = &draft->places[a];
    const graft_place *q = &draft->places[b];
    bool equal = p->width == q->width && p->kind == q->kind;
    for (uint32_t i = 0; equal && i < p->width; i++) {
        equal = p[i].value == q[i].value;
    }
    return equal;
}

/* Each place is linked to the first one of the same name and value, or else to the first one of the
 * same stem and value: dropping one of these equalities sets one place (and those behind it) free.
 */
static void constrain_places(graft_draft *draft)
{
    for (uint32_t b = 0; b < draft->place_count; b++) {
        const graft_place *q = &draft->places[b];
        uint32_t same_name = GRAFT_PLACES_MOST;
        uint32_t stem = GRAFT_PLACES_MOST;
        for (uint32_t a = b; a-- > 0 && q->list == b;) {
            const graft_place *p = &draft->places[a];
            bool equal = p->list == a && lists_equal(draft, a, b);
            same_name = equal && graft_attrs_alike(p->info, q->info) ? a : same_name;
            bool comparable = q->kind == GRAFT_ATTR_FLOAT || are_comparable(p->info, q->info);
            stem = equal && comparable ? a : stem;
        }
        uint32_t first = same_name < GRAFT_PLACES_MOST ? same_name : stem;
        if (first < GRAFT_PLACES_MOST) {
            add_constraint(draft, GRAFT_CONSTRAINT_PLACES_EQUAL, first, b);
        }
    }
    for (uint32_t a = 0; a < draft->place_count; a++) {
        if (draft->places[a].list == a) {
            add_constraint(draft, GRAFT_CONSTRAINT_PLACE_CONST, a, 0);
        }
    }
}

/* Axis i of variable a, counted from the last one: its being 1 and its equality with others. */
static void constrain_dim(graft_draft *draft, uint32_t a, int32_t i)
{
    const graft_shape *shapes = draft->candidate->shapes;
    int32_t size = shapes[a].dims[shapes[a].rank - i];
    if (size == 1) {
        add_axes(draft, GRAFT_CONSTRAINT_DIM_ONE, a, -i, 0, 0);
    }
    for (uint32_t b = a; b < draft->candidate->rule.var_count; b++) {
        for (int32_t j = 1; j <= shapes[b].rank; j++) {
            bool other = b > a || (j > i && size > 1);
            if (other && shapes[b].dims[shapes[b].rank - j] == size) {
                add_axes(draft, GRAFT_CONSTRAINT_DIMS_EQUAL, a, -i, b, -j);
            }
        }
    }
}

static void constrain_shapes(graft_draft *draft)
{
    const graft_rule *rule = &draft->candidate->rule;
    const graft_shape *shapes = draft->candidate->shapes;
    for (uint32_t a = 0; a < rule->var_count; a++) {
        add_constraint(draft, GRAFT_CONSTRAINT_RANK, a, 0);
        for (uint32_t b = a + 1; b < rule->var_count; b++) {
            if (graft_shape_equal(&shapes[a], &shapes[b])) {
                add_constraint(draft, GRAFT_CONSTRAINT_SAME_SHAPE, a, b);
            }
        }
    }
    for (uint32_t a = 0; a < rule->var_count; a++) {
        for (int32_t i = 1; i <= shapes[a].rank; i++) {
            constrain_dim(draft, a, i);
        }
    }
}

static void constrain_place_to_dims(graft_draft *draft, uint32_t p)
{
    const graft_place *place = &draft->places[p];
    const graft_rule *rule = &draft->candidate->rule;
    bool groups = place->info->role == GRAFT_ROLE_GROUPS;
    if (place->kind != GRAFT_ATTR_DIM && !groups) {
        return;
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        const graft_shape *shape = &draft->candidate->shapes[v];
        for (int32_t i = 1; i <= shape->rank; i++) {
            int32_t size = shape->dims[shape->rank - i];
            if (size == place->value) {
                add_axes(draft, GRAFT_CONSTRAINT_PLACE_IS_DIM, p, 0, v, -i);
            }
            if (groups && size % place->value == 0) {
                add_axes(draft, GRAFT_CONSTRAINT_DIVIDES, p, 0, v, -i);
            }
        }
    }
}

/* Binary32 bits in the order of the numbers. */
static int64_t float_key(int32_t bits)
{
    int64_t magnitude = bits & INT32_MAX;
    return bits < 0 ? -magnitude : magnitude;
}

static bool is_position(const graft_place *place)
{
    return place->info->role == GRAFT_ROLE_POSITION;
}

static void constrain_orders(graft_draft *draft)
{
    for (uint32_t a = 0; a < draft->place_count; a++) {
        const graft_place *p = &draft->places[a];
        bool floats = p->kind == GRAFT_ATTR_FLOAT;
        bool axis = p->info->role == GRAFT_ROLE_AXIS;
        if (axis) {
            add_constraint(draft, GRAFT_CONSTRAINT_PLACE_AT_MOST, a, 0);
            add_constraint(draft, GRAFT_CONSTRAINT_PLACE_AT_LEAST, a, 0);
        }
        for (uint32_t b = 0; b < draft->place_count; b++) {
            const graft_place *q = &draft->places[b];
            bool sizes =
                (is_position(p) && is_position(q)) || (axis && q->info->role == GRAFT_ROLE_AXIS);
            bool holds = floats ? float_key(p->value) <= float_key(q->value) : p->value <= q->value;
            if (a != b && p->kind == q->kind && (floats || sizes) && holds) {
                add_constraint(draft,
                               floats ? GRAFT_CONSTRAINT_FLOATS_ORDERED
                                      : GRAFT_CONSTRAINT_PLACES_ORDERED,
                               a, b);
            }
        }
    }
}

static int32_t dim_of(const graft_shape *shape, int32_t axis)
{
    axis += axis < 0 ? shape->rank : 0;
    return axis >= 0 && axis < shape->rank ? shape->dims[axis] : -1;
}

static bool list_is_const(const graft_draft *draft, uint32_t first, const int32_t *values)
{
    for (uint32_t i = first; i < first + draft->places[first].width; i++) {
        if (values[i] != draft->places[i].value) {
            return false;
        }
    }
    return true;
}

bool graft_constraint_holds(const graft_draft *draft, const graft_constraint *c,
                            const graft_shape *vars, const int32_t *values)
{
    switch ((graft_constraint_kind)c->kind) {
    case GRAFT_CONSTRAINT_PLACES_EQUAL:
        return memcmp(&values[c->a], &values[c->b], draft->places[c->a].width * sizeof *values) ==
               0;
    case GRAFT_CONSTRAINT_PLACE_CONST:
        return list_is_const(draft, c->a, values);
    case GRAFT_CONSTRAINT_SAME_SHAPE:
        return graft_shape_equal(&vars[c->a], &vars[c->b]);
    case GRAFT_CONSTRAINT_RANK:
        return vars[c->a].rank == draft->candidate->shapes[c->a].rank;
    case GRAFT_CONSTRAINT_DIMS_EQUAL: {
        int32_t size = dim_of(&vars[c->a], c->axis_a);
        return size > 0 && size == dim_of(&vars[c->b], c->axis_b);
    }
    case GRAFT_CONSTRAINT_DIM_ONE:
        return dim_of(&vars[c->a], c->axis_a) == 1;
    case GRAFT_CONSTRAINT_PLACE_IS_DIM:
        return values[c->a] == dim_of(&vars[c->b], c->axis_b);
    case GRAFT_CONSTRAINT_DIVIDES: {
        int32_t size = dim_of(&vars[c->b], c->axis_b);
        return size > 0 && values[c->a] != 0 && size % values[c->a] == 0;
    }
    case GRAFT_CONSTRAINT_PLACES_ORDERED:
        return values[c->a] <= values[c->b];
    case GRAFT_CONSTRAINT_FLOATS_ORDERED:
        return float_key(values[c->a]) <= float_key(values[c->b]);
    case GRAFT_CONSTRAINT_PLACE_AT_MOST:
        return values[c->a] <= draft->places[c->a].value;
    case GRAFT_CONSTRAINT_PLACE_AT_LEAST:
        return values[c->a] >= draft->places[c->a].value;
    }
    return false;
}

/* ------------------------------------------------------------- expressions */

static bool same_leaf(const graft_leaf *a, const graft_leaf *b)
{
    return a->kind == b->kind && a->index == b->index && a->axis == b->axis && a->value == b->value;
}

static void add_option(graft_draft *draft, uint32_t t, graft_expression e)
{
    for (uint32_t i = 0; i < draft->option_count[t]; i++) {
        const graft_expression *old = &draft->options[t][i];
        if (old->code == e.code && same_leaf(&old->a, &e.a) && same_leaf(&old->b, &e.b)) {
            return;
        }
    }
    if (draft->option_count[t] < GRAFT_EXPRESSIONS_MOST) {
        draft->options[t][draft->option_count[t]++] = e;
    }
}

static graft_leaf place_leaf(const graft_draft *draft, uint32_t p)
{
    return (graft_leaf){GRAFT_LEAF_PLACE, (uint8_t)p, 0, draft->places[p].value};
}

static void add_leaf_option(graft_draft *draft, uint32_t t, graft_leaf leaf)
{
    add_option(draft, t, (graft_expression){.code = GRAFT_CODE_END, .a = leaf});
}

/* Whether an attribute of one name can mean the same as one of another name. */
static bool names_comparable(const graft_attr_info *attr, const graft_place *place)
{
    return (is_padding(attr) && is_padding(place->info)) ||
           (is_axis(attr) && is_axis(place->info)) ||
           (attr->kind == GRAFT_ATTR_DIM && place->kind == GRAFT_ATTR_DIM) ||
           (attr->kind == place->kind && attr->kind != GRAFT_ATTR_INT);
}

/* Places that may stand for an attribute: of the same name first. */
static void offer_places(graft_draft *draft, uint32_t t, const graft_attr_info *attr, int32_t value,
                         bool same_name)
{
    for (uint32_t p = 0; p < draft->place_count; p++) {
        const graft_place *place = &draft->places[p];
        bool same = graft_attrs_alike(place->info, attr);
        if (place->value == value && same == same_name && (same || names_comparable(attr, place))) {
            add_leaf_option(draft, t, place_leaf(draft, p));
        }
    }
}

static void offer_dims_of(graft_draft *draft, uint32_t t, uint32_t v, int32_t value, bool from_end)
{
    const graft_shape *shape = &draft->candidate->shapes[v];
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == value) {
            int8_t axis = (int8_t)(from_end ? i - shape->rank : i);
            add_leaf_option(draft, t, (graft_leaf){GRAFT_LEAF_DIM, (uint8_t)v, axis, value});
        }
    }
}

/* Sizes of variables: of the node's own operands first; axes counted from the front first. */
static void offer_dims(graft_draft *draft, uint32_t t, const graft_pattern_node *node,
                       int32_t value)
{
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        for (int from_end = 0; from_end < 2 && !GRAFT_OPERAND_IS_NODE(node->inputs[i]);
             from_end++) {
            offer_dims_of(draft, t, node->inputs[i], value, from_end == 1);
        }
    }
    for (int from_end = 0; from_end < 2; from_end++) {
        for (uint32_t v = 0; v < draft->candidate->rule.var_count; v++) {
            offer_dims_of(draft, t, v, value, from_end == 1);
        }
    }
}

/* Everything that a sum, difference or product may be made of. */
static uint32_t list_leaves(const graft_draft *draft, bool places, bool dims, graft_leaf *leaves,
                            uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t p = 0; places && p < draft->place_count && count < most; p++) {
        const graft_place *place = &draft->places[p];
        if (place->kind == GRAFT_ATTR_INT || place->kind == GRAFT_ATTR_DIM) {
            leaves[count++] = place_leaf(draft, p);
        }
    }
    for (uint32_t v = 0; dims && v < draft->candidate->rule.var_count; v++) {
        const graft_shape *shape = &draft->candidate->shapes[v];
        for (int8_t i = 0; i < (int8_t)shape->rank && count < most; i++) {
            leaves[count++] = (graft_leaf){GRAFT_LEAF_DIM, (uint8_t)v, i, shape->dims[i]};
        }
    }
    return count;
}

/* Sums, differences and products are computed here: they are tried of many pairs. */
static bool computes(uint32_t code, int32_t a, int32_t b, int32_t value)
{
    int64_t result = code == GRAFT_CODE_ADD   ? (int64_t)a + b
                     : code == GRAFT_CODE_SUB ? (int64_t)a - b
                                              : (int64_t)a * b;
    bool floats = code == GRAFT_CODE_FMIN || code == GRAFT_CODE_FMAX;
    return (!floats || graft_code_compute(code, a, b, &result)) && result == value;
}

static void offer_pairs(graft_draft *draft, uint32_t t, int32_t value, const graft_leaf *leaves,
                        uint32_t count, uint32_t code)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = code == GRAFT_CODE_SUB ? 0 : i + 1; j < count; j++) {
            if (i != j && computes(code, leaves[i].value, leaves[j].value, value)) {
                add_option(draft, t, (graft_expression){(uint8_t)code, leaves[i], leaves[j]});
            }
        }
    }
}

/* min and max of two bounds: those of the same name first. */
static void offer_float_pairs(graft_draft *draft, uint32_t t, const graft_attr_info *attr,
                              int32_t value)
{
    graft_leaf leaves[GRAFT_PLACES_MOST];
    uint32_t count = 0;
    for (uint32_t p = 0; p < draft->place_count; p++) {
        const graft_place *place = &draft->places[p];
        if (place->kind == GRAFT_ATTR_FLOAT && graft_attrs_alike(place->info, attr)) {
            leaves[count++] = place_leaf(draft, p);
        }
    }
    offer_pairs(draft, t, value, leaves, count, GRAFT_CODE_FMAX);
    offer_pairs(draft, t, value, leaves, count, GRAFT_CODE_FMIN);
}

/* Paddings of a pad operator and of a window add up. */
static void offer_paddings(graft_draft *draft, uint32_t t, const graft_attr_info *attr,
                           int32_t value)
{
    graft_leaf leaves[GRAFT_PLACES_MOST];
    uint32_t count = 0;
    bool has_pad = false;
    for (uint32_t p = 0; p < draft->place_count; p++) {
        const graft_place *place = &draft->places[p];
        bool pad = is_padding(place->info) && place->kind == GRAFT_ATTR_DIM;
        has_pad = has_pad || pad;
        if (pad || graft_attrs_alike(place->info, attr)) {
            leaves[count++] = place_leaf(draft, p);
        }
    }
    for (uint32_t i = 0; has_pad && is_padding(attr) && i < count; i++) {
        const graft_place *own = &draft->places[leaves[i].index];
        for (uint32_t j = 0; graft_attrs_alike(own->info, attr) && j < count; j++) {
            if (i != j && leaves[i].value + leaves[j].value == value) {
                add_option(draft, t, (graft_expression){GRAFT_CODE_ADD, leaves[i], leaves[j]});
            }
        }
    }
}

/* The first place of a source node of the same operator whose attributes from `first` on are the
 * same list; GRAFT_PLACES_MOST: none. */
static uint32_t find_same_list(const graft_draft *draft, const graft_pattern_node *node,
                               uint32_t first)
{
    uint32_t count = graft_op(node->op)->attr_count - first;
    for (uint32_t p = 0; p + count <= draft->place_count; p++) {
        const graft_place *place = &draft->places[p];
        bool same =
            draft->candidate->rule.source.nodes[place->node].op == node->op && place->attr == first;
        for (uint32_t i = 0; i < count && same; i++) {
            same = place[i].value == node->attrs[first + i].value;
        }
        if (same) {
            return p;
        }
    }
    return GRAFT_PLACES_MOST;
}

/* Sizes of a reshape or fill, axes of a transpose: those of a source node when all are the same.
 * Zeros past the rank are constants otherwise. True when nothing else is to be offered. */
static bool offer_list(graft_draft *draft, uint32_t t, const graft_pattern_node *node,
                       uint32_t index)
{
    const uint32_t role = graft_op_attr(node->op, index)->role;
    bool sizes = role == GRAFT_ROLE_EXTENT;
    if (!sizes && role != GRAFT_ROLE_ORDER) {
        return false;
    }
    uint32_t k = 0; /* Its place among those of its role, which stand together. */
    while (k < index && graft_op_attr(node->op, index - k - 1)->role == role) {
        k++;
    }
    int32_t value = node->attrs[index].value;
    uint32_t list = find_same_list(draft, node, index - k);
    if (list < GRAFT_PLACES_MOST) {
        add_leaf_option(draft, t, place_leaf(draft, list + k));
    }
    if (!sizes || value == 0) {
        add_leaf_option(draft, t, (graft_leaf){GRAFT_LEAF_CONST, 0, 0, value});
    }
    return !sizes || value == 0;
}

static void offer_whole_numbers(graft_draft *draft, uint32_t t, const graft_pattern_node *node,
                                uint32_t index)
{
    const graft_attr_info *attr = graft_op_attr(node->op, index);
    int32_t value = node->attrs[index].value;
    graft_leaf leaves[GRAFT_PLACES_MOST + GRAFT_RULE_MAX_VARS * GRAFT_MAX_RANK];
    const uint32_t most = sizeof leaves / sizeof leaves[0];
    graft_leaf constant = {GRAFT_LEAF_CONST, 0, 0, value};
    bool size = attr->kind == GRAFT_ATTR_DIM;
    if (offer_list(draft, t, node, index)) {
        return;
    }
    offer_paddings(draft, t, attr, value);
    offer_places(draft, t, attr, value, true);
    if (is_padding(attr)) {
        offer_places(draft, t, attr, value, false);
    }
    if (size && value == 1) { /* Most often the 1 of a broadcast. */
        add_leaf_option(draft, t, constant);
    }
    if (size || attr->role == GRAFT_ROLE_GROUPS) {
        offer_dims(draft, t, node, value);
    }
    if (size && value != 0) {
        uint32_t count = list_leaves(draft, false, true, leaves, most);
        offer_pairs(draft, t, value, leaves, count, GRAFT_CODE_MUL);
        count = list_leaves(draft, true, true, leaves, most);
        offer_pairs(draft, t, value, leaves, count, GRAFT_CODE_SUB);
        offer_pairs(draft, t, value, leaves, count, GRAFT_CODE_ADD);
    }
    if (draft->option_count[t] == GRAFT_EXPRESSIONS_MOST) { /* The constant has a place. */
        draft->option_count[t]--;
    }
    add_leaf_option(draft, t, constant);
    offer_places(draft, t, attr, value, false);
}

static void offer_expressions(graft_draft *draft, uint32_t t, const graft_pattern_node *node,
                              uint32_t index)
{
    const graft_attr_info *attr = graft_op_attr(node->op, index);
    int32_t value = node->attrs[index].value;
    if (attr->kind == GRAFT_ATTR_INT || attr->kind == GRAFT_ATTR_DIM) {
        offer_whole_numbers(draft, t, node, index);
        return;
    }
    if (attr->kind == GRAFT_ATTR_FLOAT) {
        offer_float_pairs(draft, t, attr, value);
    }
    offer_places(draft, t, attr, value, true);
    add_leaf_option(draft, t, (graft_leaf){GRAFT_LEAF_CONST, 0, 0, value});
    offer_places(draft, t, attr, value, false);
}

static graft_status find_expressions(graft_env *env, graft_draft *draft)
{
    const graft_pattern *target = &draft->candidate->rule.target;
    for (uint32_t n = 0; n < target->node_count; n++) {
        const graft_pattern_node *node = &target->nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (draft->target_count == GRAFT_TARGETS_MOST) {
                return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "the target has more than %d attributes",
                                  GRAFT_TARGETS_MOST);
            }
            offer_expressions(draft, draft->target_count++, node, i);
        }
    }
    return GRAFT_OK;
}

graft_status graft_draft_make(graft_env *env, const graft_candidate *candidate, graft_draft *draft)
{
    graft_instance instance;
    memset(draft, 0, sizeof *draft);
    draft->candidate = candidate;
    memcpy(draft->origin.vars, candidate->shapes, sizeof draft->origin.vars);
    if (graft_instance_build(&instance, &candidate->rule, &draft->origin) != GRAFT_FIT_OK) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "a candidate does not type-check as found");
    }
    GRAFT_PASS(find_places(env, draft));
    constrain_places(draft);
    constrain_shapes(draft);
    for (uint32_t p = 0; p < draft->place_count; p++) {
        constrain_place_to_dims(draft, p);
    }
    constrain_orders(draft);
    return find_expressions(env, draft);
}

/* --------------------------------------------------------------- the rule */

bool graft_choice_requires(const graft_choice *choice, uint32_t constraint)
{
    return (choice->required[constraint / 64] >> (constraint % 64) & 1u) != 0;
}

void graft_choice_set(graft_choice *choice, uint32_t constraint, bool required)
{
    uint64_t bit = UINT64_C(1) << (constraint % 64);
    uint64_t *word = &choice->required[constraint / 64];
    *word = required ? *word | bit : *word & ~bit;
}

/* Rule under construction. */
typedef struct {
    const graft_draft *draft;
    graft_rule *rule;
    uint8_t *slot_of; /* By place; UINT8_MAX: constant. */
    bool full;
} maker;

static void emit(maker *m, uint32_t byte)
{
    if (m->rule->code_bytes == GRAFT_RULE_MAX_CODE) {
        m->full = true;
        return;
    }
    m->rule->code[m->rule->code_bytes++] = (uint8_t)byte;
}

static void emit_number(maker *m, int32_t value)
{
    bool small = value >= -128 && value <= 127;
    emit(m, small ? GRAFT_CODE_CONST8 : GRAFT_CODE_CONST32);
    for (uint32_t i = 0; i < (small ? 1u : 4u); i++) {
        emit(m, ((uint32_t)value >> (8 * i)) & 0xffu);
    }
}

static void emit_place(maker *m, uint32_t p)
{
    if (m->slot_of[p] == UINT8_MAX) {
        emit_number(m, m->draft->places[p].value);
        return;
    }
    emit(m, GRAFT_CODE_SLOT);
    emit(m, m->slot_of[p]);
}

static void emit_dim(maker *m, uint32_t var, int8_t axis)
{
    emit(m, GRAFT_CODE_DIM);
    emit(m, var);
    emit(m, (uint8_t)axis);
}

static void emit_leaf(maker *m, const graft_leaf *leaf)
{
    if (leaf->kind == GRAFT_LEAF_CONST) {
        emit_number(m, leaf->value);
    } else if (leaf->kind == GRAFT_LEAF_PLACE) {
        emit_place(m, leaf->index);
    } else {
        emit_dim(m, leaf->index, leaf->axis);
    }
}

static bool leaf_is_const(const maker *m, const graft_leaf *leaf)
{
    return leaf->kind == GRAFT_LEAF_CONST ||
           (leaf->kind == GRAFT_LEAF_PLACE && m->slot_of[leaf->index] == UINT8_MAX);
}

/* `value` is the candidate's. */
static graft_term make_term(maker *m, const graft_expression *e, int32_t value)
{
    if (e->code != GRAFT_CODE_END && leaf_is_const(m, &e->a) && leaf_is_const(m, &e->b)) {
        return (graft_term){value, GRAFT_TERM_CONST};
    }
    if (e->code == GRAFT_CODE_END && e->a.kind != GRAFT_LEAF_DIM) {
        bool slot = e->a.kind == GRAFT_LEAF_PLACE && m->slot_of[e->a.index] != UINT8_MAX;
        return slot ? (graft_term){m->slot_of[e->a.index], GRAFT_TERM_SLOT}
                    : (graft_term){e->a.value, GRAFT_TERM_CONST};
    }
    graft_term term = {m->rule->code_bytes, GRAFT_TERM_CODE};
    emit_leaf(m, &e->a);
    if (e->code != GRAFT_CODE_END) {
        emit_leaf(m, &e->b);
        emit(m, e->code);
    }
    emit(m, GRAFT_CODE_END);
    return term;
}

static void join_classes(uint8_t *class_of, uint32_t count, uint8_t a, uint8_t b)
{
    for (uint32_t p = 0; p < count; p++) {
        class_of[p] = class_of[p] == (a < b ? b : a) ? (a < b ? a : b) : class_of[p];
    }
}

/* Slots are numbered by the first place of their class. */
static void assign_slots(maker *m, const graft_choice *choice)
{
    const graft_draft *d = m->draft;
    uint8_t class_of[GRAFT_PLACES_MOST];
    bool is_const[GRAFT_PLACES_MOST] = {false};
    for (uint32_t p = 0; p < d->place_count; p++) {
        class_of[p] = (uint8_t)p;
    }
    for (uint32_t i = 0; i < d->constraint_count; i++) {
        const graft_constraint *c = &d->constraints[i];
        if (!graft_choice_requires(choice, i) || c->kind != GRAFT_CONSTRAINT_PLACES_EQUAL) {
            continue;
        }
        for (uint32_t k = 0; k < d->places[c->a].width; k++) {
            join_classes(class_of, d->place_count, class_of[c->a + k], class_of[c->b + k]);
        }
    }
    for (uint32_t i = 0; i < d->constraint_count; i++) {
        const graft_constraint *c = &d->constraints[i];
        for (uint32_t k = 0; graft_choice_requires(choice, i) && k < d->places[c->a].width; k++) {
            bool fixed = c->kind == GRAFT_CONSTRAINT_PLACE_CONST;
            is_const[class_of[c->a + k]] = is_const[class_of[c->a + k]] || fixed;
        }
    }
    for (uint32_t p = 0; p < d->place_count; p++) {
        uint32_t first = class_of[p];
        m->slot_of[p] = is_const[first] ? UINT8_MAX
                        : first == p    ? m->rule->slot_count++
                                        : m->slot_of[first];
    }
}

static void emit_constraint(maker *m, const graft_constraint *c)
{
    switch ((graft_constraint_kind)c->kind) {
    case GRAFT_CONSTRAINT_SAME_SHAPE:
        emit(m, GRAFT_CODE_SAME);
        emit(m, c->a);
        emit(m, c->b);
        return;
    case GRAFT_CONSTRAINT_RANK:
        emit(m, GRAFT_CODE_RANK);
        emit(m, c->a);
        emit_number(m, m->draft->candidate->shapes[c->a].rank);
        break;
    case GRAFT_CONSTRAINT_DIMS_EQUAL:
        emit_dim(m, c->a, c->axis_a);
        emit_dim(m, c->b, c->axis_b);
        break;
    case GRAFT_CONSTRAINT_DIM_ONE:
        emit_dim(m, c->a, c->axis_a);
        emit_number(m, 1);
        break;
    case GRAFT_CONSTRAINT_PLACE_IS_DIM:
        emit_place(m, c->a);
        emit_dim(m, c->b, c->axis_b);
        break;
    case GRAFT_CONSTRAINT_DIVIDES:
        emit_place(m, c->a);
        emit_dim(m, c->b, c->axis_b);
        emit(m, GRAFT_CODE_DIVIDES);
        return;
    case GRAFT_CONSTRAINT_PLACES_ORDERED:
    case GRAFT_CONSTRAINT_FLOATS_ORDERED:
        emit_place(m, c->a);
        emit_place(m, c->b);
        emit(m, c->kind == GRAFT_CONSTRAINT_FLOATS_ORDERED ? GRAFT_CODE_FLE : GRAFT_CODE_LE);
        return;
    case GRAFT_CONSTRAINT_PLACE_AT_MOST:
        emit_place(m, c->a);
        emit_number(m, m->draft->places[c->a].value);
        emit(m, GRAFT_CODE_LE);
        return;
    case GRAFT_CONSTRAINT_PLACE_AT_LEAST:
        emit_number(m, m->draft->places[c->a].value);
        emit_place(m, c->a);
        emit(m, GRAFT_CODE_LE);
        return;
    case GRAFT_CONSTRAINT_PLACES_EQUAL:
    case GRAFT_CONSTRAINT_PLACE_CONST:
        return;
    }
    emit(m, GRAFT_CODE_EQ);
}

static void emit_condition(maker *m, const graft_choice *choice)
{
    bool any = false;
    m->rule->condition = 255;
    for (uint32_t i = 0; i < m->draft->constraint_count; i++) {
        const graft_constraint *c = &m->draft->constraints[i];
        if (!graft_choice_requires(choice, i) || c->kind == GRAFT_CONSTRAINT_PLACES_EQUAL ||
            c->kind == GRAFT_CONSTRAINT_PLACE_CONST) {
            continue;
        }
        if (!any) {
            m->rule->condition = m->rule->code_bytes;
        }
        emit_constraint(m, c);
        if (any) {
            emit(m, GRAFT_CODE_AND);
        }
        any = true;
    }
    if (any) {
        emit(m, GRAFT_CODE_END);
    }
}

bool graft_draft_rule(const graft_draft *draft, const graft_choice *choice, graft_rule *rule,
                      uint8_t *slot_of)
{
    maker m = {.draft = draft, .rule = rule, .slot_of = slot_of};
    *rule = draft->candidate->rule;
    rule->slot_count = 0;
    rule->code_bytes = 0;
    memset(rule->code, 0, sizeof rule->code);
    assign_slots(&m, choice);
    for (uint32_t p = 0; p < draft->place_count; p++) {
        const graft_place *place = &draft->places[p];
        if (m.slot_of[p] != UINT8_MAX) {
            rule->source.nodes[place->node].attrs[place->attr] =
                (graft_term){m.slot_of[p], GRAFT_TERM_SLOT};
        }
    }
    uint32_t t = 0;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        graft_pattern_node *node = &rule->target.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++, t++) {
            node->attrs[i] =
                make_term(&m, &draft->options[t][choice->option[t]], node->attrs[i].value);
        }
    }
    emit_condition(&m, choice);
    return !m.full && graft_rule_check(rule) == NULL;
}
