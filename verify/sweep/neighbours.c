/* neighbours.c - see neighbours.h. */
#include "verify/sweep/neighbours.h"

#include "verify/sweep/choices.h"

#include <string.h>

enum { MOVES_MOST = 256 };

typedef enum {
    MOVE_SIZE,
    MOVE_PUT_AXIS,
    MOVE_TAKE_AXIS,
    MOVE_SLOT,
    MOVE_SWAP_SIZES, /* Of axes `axis` and `step` of variable `index`, from the first one. */
    MOVE_SWAP_SLOTS  /* `index` and `axis`. */
} move_kind;

typedef struct {
    uint8_t kind;  /* move_kind */
    uint8_t index; /* Variable or slot. */
    uint8_t axis;  /* From the last one, so that a move of the rank does not shift it; or a slot. */
    int32_t step;  /* Or the size of a new axis. */
} move;

typedef struct {
    const graft_rule *rule;
    graft_domain domain;
    graft_met met;
    uint8_t slots[GRAFT_RULE_MAX_SLOTS]; /* graft_slot_kind */
    uint32_t end;                        /* Of the current point's share. */
    move moves[MOVES_MOST];
    uint32_t move_count;
} seeker;

static void add_move(seeker *s, move_kind kind, uint32_t index, uint32_t axis, int32_t step)
{
    if (s->move_count < MOVES_MOST) {
        s->moves[s->move_count++] = (move){(uint8_t)kind, (uint8_t)index, (uint8_t)axis, step};
    }
}

/* Sizes of one operator that change places: a product of them stays what it was. */
static void list_slot_swaps(seeker *s, const graft_pattern_node *node, const graft_point *point)
{
    uint32_t count = graft_op(node->op)->attr_count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            const graft_term *a = &node->attrs[i];
            const graft_term *b = &node->attrs[k];
            if (a->kind == GRAFT_TERM_SLOT && b->kind == GRAFT_TERM_SLOT &&
                graft_op_attr(node->op, i)->kind == GRAFT_ATTR_DIM &&
                graft_op_attr(node->op, k)->kind == GRAFT_ATTR_DIM &&
                point->slots[a->value] != point->slots[b->value]) {
                add_move(s, MOVE_SWAP_SLOTS, (uint32_t)a->value, (uint32_t)b->value, 0);
            }
        }
    }
}

static void list_swaps(seeker *s, const graft_point *point)
{
    for (uint32_t n = 0; n < s->rule->source.node_count; n++) {
        list_slot_swaps(s, &s->rule->source.nodes[n], point);
    }
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t i = 0; i < point->vars[v].rank; i++) {
            for (uint32_t k = i + 1; k < point->vars[v].rank; k++) {
                if (point->vars[v].dims[i] != point->vars[v].dims[k]) {
                    add_move(s, MOVE_SWAP_SIZES, v, i, (int32_t)k);
                }
            }
        }
    }
}

static void list_moves(seeker *s, const graft_point *point)
{
    s->move_count = 0;
    list_swaps(s, point);
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t k = 0; k < point->vars[v].rank; k++) {
            add_move(s, MOVE_SIZE, v, k, 1);
            add_move(s, MOVE_SIZE, v, k, -1);
        }
        add_move(s, MOVE_TAKE_AXIS, v, 0, 0);
        add_move(s, MOVE_PUT_AXIS, v, 0, 1);
        add_move(s, MOVE_PUT_AXIS, v, 0, 2);
    }
    for (uint32_t i = 0; i < s->rule->slot_count; i++) {
        if (s->slots[i] != GRAFT_SLOT_REAL) {
            add_move(s, MOVE_SLOT, i, 0, 1);
            add_move(s, MOVE_SLOT, i, 0, -1);
        }
    }
}

/* Images are larger in height and width. */
static int32_t most_at(const graft_shape *shape, uint32_t axis)
{
    return shape->rank == GRAFT_RANK_MOST && axis >= 2 ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST;
}

static bool move_size(graft_shape *shape, uint32_t axis, int32_t step)
{
    if (axis >= shape->rank) {
        return false;
    }
    uint32_t k = shape->rank - 1u - axis;
    shape->dims[k] += step;
    return shape->dims[k] >= 1 && shape->dims[k] <= most_at(shape, k);
}

static void swap_numbers(int32_t *a, int32_t *b)
{
    int32_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Sizes of an image past those of other tensors stay where images have them. */
static bool swap_sizes(graft_shape *shape, uint32_t i, uint32_t k)
{
    if (k >= shape->rank) {
        return false;
    }
    swap_numbers(&shape->dims[i], &shape->dims[k]);
    return shape->dims[i] <= most_at(shape, i);
}

/* False when the move leads out of the bounds. */
static bool make_move(graft_point *point, const move *m)
{
    graft_shape *shape = &point->vars[m->index % GRAFT_RULE_MAX_VARS]; /* Slots need none. */
    switch ((move_kind)m->kind) {
    case MOVE_SIZE:
        return move_size(shape, m->axis, m->step);
    case MOVE_PUT_AXIS:
        if (shape->rank >= GRAFT_RANK_MOST) {
            return false;
        }
        memmove(&shape->dims[1], &shape->dims[0], shape->rank * sizeof shape->dims[0]);
        shape->dims[0] = m->step;
        shape->rank++;
        return true;
    case MOVE_TAKE_AXIS:
        if (shape->rank == 0) {
            return false;
        }
        shape->rank--;
        memmove(&shape->dims[0], &shape->dims[1], shape->rank * sizeof shape->dims[0]);
        shape->dims[shape->rank] = 0;
        return true;
    case MOVE_SLOT:
        point->slots[m->index] += m->step;
        return true; /* Whether the operator has such a number the instance says. */
    case MOVE_SWAP_SIZES:
        return swap_sizes(shape, m->axis, (uint32_t)m->step);
    case MOVE_SWAP_SLOTS:
        swap_numbers(&point->slots[m->index], &point->slots[m->axis]);
        return true;
    }
    return false;
}

static void try_point(seeker *s, const graft_point *point)
{
    graft_instance instance;
    if (s->domain.count < s->end &&
        graft_instance_build(&instance, s->rule, point) == GRAFT_FIT_OK &&
        graft_met_add_point(&s->met, point)) {
        s->domain.points[s->domain.count++] = *point;
    }
}

static void seek_around(seeker *s, const graft_point *point)
{
    list_moves(s, point);
    for (uint32_t i = 0; i < s->move_count && s->domain.count < s->end; i++) {
        graft_point one = *point;
        if (!make_move(&one, &s->moves[i])) {
            continue;
        }
        try_point(s, &one);
        for (uint32_t k = i + 1; k < s->move_count && s->domain.count < s->end; k++) {
            graft_point two = one;
            if (make_move(&two, &s->moves[k])) {
                try_point(s, &two);
            }
        }
    }
}

graft_domain graft_neighbours_find(graft_arena *arena, const graft_rule *rule,
                                   const graft_point *points, uint32_t count, uint32_t limit)
{
    seeker s = {.rule = rule};
    s.met = graft_met_new(arena, (uint64_t)limit + count);
    graft_named_slots(rule, s.slots);
    s.domain.points = GRAFT_NEW(arena, graft_point, limit);
    for (uint32_t i = 0; i < count; i++) {
        (void)graft_met_add_point(&s.met, &points[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        s.end = (uint32_t)((uint64_t)limit * (i + 1) / count);
        seek_around(&s, &points[i]);
    }
    return s.domain;
}
