/* beyond.c - see beyond.h. */
#include "tests/support/beyond.h"

#include "graph/base/bits.h"
#include "graph/base/rng.h"
#include "graph/rule/rulefile.h"
#include "verify/sweep/named.h"

#include <string.h>

enum { NAMES = 64, ATTEMPTS_PER_POINT = 30, WORK_MOST = 60000, ELEMENTS_MOST = 4000 };

static bool once_in(graft_rng *rng, uint32_t count) { return graft_rng_below(rng, count) == 0; }

/* What the changes of a rule's points have in common. */
typedef struct {
    graft_rng rng;
    const graft_rule *rule;
    uint8_t slots[GRAFT_RULE_MAX_SLOTS]; /* graft_slot_kind */
} changer;

/* The size that takes the place of one: the same wherever that occurs. 1 mostly stays. */
static int32_t rename_size(changer *c, int32_t names[NAMES], int32_t size)
{
    int32_t *name = &names[size % NAMES];
    if (*name == 0) {
        bool one = once_in(&c->rng, 5) || (size == 1 && !once_in(&c->rng, 6));
        *name = one ? 1 : 1 + (int32_t)graft_rng_below(&c->rng, GRAFT_BEYOND_SIZE_MOST);
    }
    return *name;
}

static void rename_sizes(changer *c, graft_point *point)
{
    int32_t names[NAMES] = {0};
    for (uint32_t v = 0; v < c->rule->var_count; v++) {
        for (uint32_t i = 0; i < point->vars[v].rank; i++) {
            point->vars[v].dims[i] = rename_size(c, names, point->vars[v].dims[i]);
        }
    }
    for (uint32_t s = 0; s < c->rule->slot_count; s++) {
        if (c->slots[s] == GRAFT_SLOT_SIZE && point->slots[s] > 0) {
            point->slots[s] = rename_size(c, names, point->slots[s]);
        }
    }
}

static void put_axis(graft_shape *shape, uint32_t at, int32_t size)
{
    if (shape->rank < GRAFT_MAX_RANK && at <= shape->rank) {
        memmove(&shape->dims[at + 1], &shape->dims[at], (shape->rank - at) * sizeof shape->dims[0]);
        shape->dims[at] = size;
        shape->rank++;
    }
}

/* A size that occurs, or a small one. */
static int32_t draw_size(changer *c, const graft_point *point)
{
    const graft_shape *shape = &point->vars[graft_rng_below(&c->rng, c->rule->var_count)];
    bool occurs = shape->rank > 0 && once_in(&c->rng, 2);
    return occurs ? shape->dims[graft_rng_below(&c->rng, shape->rank)]
                  : 1 + (int32_t)graft_rng_below(&c->rng, 3);
}

/* Puts one axis into one shape, anywhere. */
static void put_one_axis(changer *c, graft_point *point)
{
    graft_shape *shape = &point->vars[graft_rng_below(&c->rng, c->rule->var_count)];
    uint32_t at = graft_rng_below(&c->rng, shape->rank + 1u);
    put_axis(shape, at, draw_size(c, point));
}

/* Puts axes into all shapes or some, mostly in front. */
static void put_axes(changer *c, graft_point *point)
{
    uint32_t more = 1 + graft_rng_below(&c->rng, 2);
    bool all = once_in(&c->rng, 3);
    for (; more > 0; more--) {
        int32_t common = draw_size(c, point);
        for (uint32_t v = 0; v < c->rule->var_count; v++) {
            graft_shape *shape = &point->vars[v];
            uint32_t at = once_in(&c->rng, 3) ? graft_rng_below(&c->rng, shape->rank + 1u) : 0;
            int32_t size = once_in(&c->rng, 3) ? draw_size(c, point) : common;
            if (all || once_in(&c->rng, 2)) {
                put_axis(shape, at, size);
            }
        }
    }
}

static void change_slots(changer *c, graft_point *point)
{
    for (uint32_t s = 0; s < c->rule->slot_count; s++) {
        graft_slot_kind kind = (graft_slot_kind)c->slots[s];
        if (kind == GRAFT_SLOT_REAL && once_in(&c->rng, 2)) {
            const float eighths = (float)((int32_t)graft_rng_below(&c->rng, 71) - 30) / 8.0F;
            const float value =
                once_in(&c->rng, 2) ? eighths : 1.5F * (float)graft_rng_normal(&c->rng);
            point->slots[s] = graft_bits_of_float(value);
        } else if (kind == GRAFT_SLOT_BYTE && once_in(&c->rng, 2)) {
            point->slots[s] = graft_named_byte(&c->rng);
        } else if ((kind == GRAFT_SLOT_NUMBER || kind == GRAFT_SLOT_AXIS) && once_in(&c->rng, 4)) {
            point->slots[s] +=
                kind == GRAFT_SLOT_AXIS ? 1 : 1 + (int32_t)graft_rng_below(&c->rng, 3);
        }
    }
}

static bool is_light(const graft_rule *rule, const graft_instance *instance)
{
    uint64_t elements = 0;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        elements += graft_shape_elements(&instance->point->vars[v]);
    }
    return elements <= ELEMENTS_MOST && graft_instance_work(instance) <= WORK_MOST;
}

/* How a point is changed. Each gets its share of the points, since they fit unequally often. */
typedef enum { CHANGE_SIZES, CHANGE_ONE_RANK, CHANGE_RANKS, CHANGE_KINDS } change_kind;

static void change_point(changer *c, change_kind kind, graft_point *point)
{
    const bool has_axes = c->rule->var_count > 0;
    if (has_axes && kind == CHANGE_ONE_RANK) {
        put_one_axis(c, point);
    }
    if (kind == CHANGE_SIZES || !once_in(&c->rng, 4)) {
        rename_sizes(c, point);
    }
    if (has_axes && kind == CHANGE_RANKS) {
        put_axes(c, point);
    }
    if (once_in(&c->rng, 2)) {
        change_slots(c, point);
    }
}

void graft_beyond_find(graft_arena *arena, const graft_rule *rule, const graft_point *points,
                       uint32_t count, uint32_t limit, graft_domain *domain)
{
    changer c;
    *domain = (graft_domain){.points = GRAFT_NEW(arena, graft_point, limit)};
    c.rule = rule;
    graft_rng_seed(&c.rng, graft_rule_id(rule));
    graft_named_slots(rule, c.slots);
    for (uint32_t kind = 0; kind < CHANGE_KINDS && count > 0; kind++) {
        uint32_t share = limit * (kind + 1) / CHANGE_KINDS - domain->count;
        uint32_t attempts = share * ATTEMPTS_PER_POINT;
        uint32_t end = domain->count + share;
        for (uint32_t i = 0; i < attempts && domain->count < end; i++) {
            graft_point *point = &domain->points[domain->count];
            graft_instance instance;
            *point = points[graft_rng_below(&c.rng, count)];
            change_point(&c, (change_kind)kind, point);
            if (graft_instance_build(&instance, rule, point) == GRAFT_FIT_OK &&
                is_light(rule, &instance)) {
                domain->count++;
            }
        }
    }
}
