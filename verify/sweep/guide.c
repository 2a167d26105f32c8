/* guide.c - see guide.h. */
#include "verify/sweep/guide.h"

#include "graph/rule/rulecode.h"

#include <string.h>

enum { DEPTH_MOST = 16 };

/* What a subprogram is: a leaf, a conjunction whose facts are the last `fact_count` of the list, or
 * something else. */
typedef struct {
    graft_guide_leaf leaf;
    uint32_t first_fact;
    bool is_leaf;
} item;

static void add_fact(graft_guide *guide, graft_guide_leaf a, graft_guide_leaf b)
{
    if (guide->count < GRAFT_GUIDE_FACTS) {
        guide->facts[guide->count][0] = a;
        guide->facts[guide->count][1] = b;
        guide->count++;
    }
}

static item read_leaf(graft_guide *guide, const graft_code_step *step)
{
    static const uint8_t kinds[GRAFT_CODE_COUNT] = {[GRAFT_CODE_SLOT] = GRAFT_GUIDE_SLOT,
                                                    [GRAFT_CODE_DIM] = GRAFT_GUIDE_DIM,
                                                    [GRAFT_CODE_RANK] = GRAFT_GUIDE_RANK};
    item i = {.first_fact = guide->count, .is_leaf = step->code <= GRAFT_CODE_RANK};
    i.leaf = (graft_guide_leaf){kinds[step->code], step->index, 0, 0};
    if (step->code == GRAFT_CODE_DIM) {
        i.leaf.axis = (int8_t)step->number;
    } else {
        i.leaf.value = step->number;
    }
    if (step->code == GRAFT_CODE_SAME) {
        add_fact(guide, (graft_guide_leaf){GRAFT_GUIDE_SHAPE, step->index, 0, 0},
                 (graft_guide_leaf){GRAFT_GUIDE_SHAPE, step->other, 0, 0});
    }
    return i;
}

void graft_guide_read(const graft_rule *rule, graft_guide *guide)
{
    item stack[DEPTH_MOST];
    graft_code_reader reader = graft_code_open(rule, rule->condition, DEPTH_MOST);
    guide->count = 0;
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        item *a = &stack[step.place];
        const item *b = a + 1; /* The second operand, where there is one. */
        if (step.takes == 0) {
            *a = read_leaf(guide, &step);
            continue;
        }
        if (step.code != GRAFT_CODE_AND) {
            guide->count = a->first_fact; /* Facts hold inside conjunctions only. */
        }
        if (step.code == GRAFT_CODE_EQ && a->is_leaf && b->is_leaf) {
            add_fact(guide, a->leaf, b->leaf);
        }
        a->is_leaf = false;
    }
    guide->count = reader.end == GRAFT_CODE_WHOLE ? guide->count : 0;
}

/* ----------------------------------------------------------------- following */

static bool dim_of(const graft_shape *shape, int32_t axis, int32_t *value)
{
    axis += axis < 0 ? shape->rank : 0;
    if (axis < 0 || axis >= shape->rank || shape->rank > GRAFT_MAX_RANK) {
        return false;
    }
    *value = shape->dims[axis];
    return true;
}

/* The value of one side of a fact, where it is known. */
static bool leaf_value(const graft_guide_leaf *leaf, const graft_point *point, uint32_t bound_vars,
                       uint64_t bound_slots, int32_t *value)
{
    bool has_var = (bound_vars >> (leaf->index & 31u) & 1u) != 0;
    switch ((graft_guide_kind)leaf->kind) {
    case GRAFT_GUIDE_NUMBER:
        *value = leaf->value;
        return true;
    case GRAFT_GUIDE_SLOT:
        *value = point->slots[leaf->index];
        return (bound_slots >> leaf->index & 1u) != 0;
    case GRAFT_GUIDE_DIM:
        return has_var && dim_of(&point->vars[leaf->index], leaf->axis, value);
    case GRAFT_GUIDE_RANK:
        *value = point->vars[leaf->index].rank;
        return has_var;
    case GRAFT_GUIDE_SHAPE:
        break;
    }
    return false;
}

static void set_rank(graft_shape *shape, int32_t rank, const int32_t fresh[GRAFT_MAX_RANK])
{
    if (rank < 0 || rank > GRAFT_MAX_RANK || rank == shape->rank) {
        return;
    }
    for (int32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        shape->dims[i] = i < rank ? fresh[i] : 0;
    }
    shape->rank = (uint8_t)rank;
}

/* One fact, seen from `mine`, which is about the variable. */
static void follow(const graft_guide_leaf *mine, int32_t value, const int32_t fresh[GRAFT_MAX_RANK],
                   graft_shape *shape)
{
    if (mine->kind == GRAFT_GUIDE_RANK) {
        set_rank(shape, value, fresh);
    } else if (mine->kind == GRAFT_GUIDE_DIM && value >= 1) {
        int32_t axis = mine->axis + (mine->axis < 0 ? shape->rank : 0);
        if (axis >= 0 && axis < shape->rank) {
            shape->dims[axis] = value;
        }
    }
}

void graft_guide_shape(const graft_guide *guide, uint32_t var, const graft_point *point,
                       uint32_t bound_vars, const int32_t fresh[GRAFT_MAX_RANK], graft_shape *shape)
{
    for (uint32_t round = 0; round < 2; round++) { /* Ranks before sizes, whatever their order. */
        for (uint32_t i = 0; i < 2 * guide->count; i++) {
            const graft_guide_leaf *mine = &guide->facts[i / 2][i % 2];
            const graft_guide_leaf *other = &guide->facts[i / 2][1 - i % 2];
            int32_t value = 0;
            if (mine->index != var || mine->kind < GRAFT_GUIDE_DIM) {
                continue;
            }
            if (mine->kind == GRAFT_GUIDE_SHAPE && (bound_vars >> other->index & 1u) != 0) {
                *shape = point->vars[other->index];
            } else if (other->kind == GRAFT_GUIDE_DIM && other->index == var) {
                if (dim_of(shape, other->axis, &value)) {
                    follow(mine, value, fresh, shape);
                }
            } else if (leaf_value(other, point, bound_vars, 0, &value)) {
                follow(mine, value, fresh, shape);
            }
        }
    }
}

bool graft_guide_slot(const graft_guide *guide, uint32_t slot, const graft_point *point,
                      uint32_t bound_vars, uint64_t bound_slots, int32_t *value)
{
    for (uint32_t i = 0; i < 2 * guide->count; i++) {
        const graft_guide_leaf *mine = &guide->facts[i / 2][i % 2];
        const graft_guide_leaf *other = &guide->facts[i / 2][1 - i % 2];
        if (mine->kind == GRAFT_GUIDE_SLOT && mine->index == slot &&
            leaf_value(other, point, bound_vars, bound_slots, value)) {
            return true;
        }
    }
    return false;
}
