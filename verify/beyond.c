/* beyond.c - see beyond.h. */
#include "verify/beyond.h"

#include "graph/rng.h"
#include "graph/rulefile.h"

#include <string.h>

enum {
    SIZE_MOST = 9,
    NAMES = 64,
    ATTEMPTS_PER_POINT = 30,
    WORK_MOST = 60000,
    ELEMENTS_MOST = 4000
};

static bool once_in(graft_rng *rng, uint32_t count) { return graft_rng_below(rng, count) == 0; }

/* The kind of the source's attribute that a slot stands for. */
static graft_attr_kind kind_of(const graft_rule *rule, uint32_t slot, bool *is_axis)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_attr_info *info = graft_op_attr(node->op, i);
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                *is_axis = strncmp(info->name, "ax", 2) == 0;
                return (graft_attr_kind)info->kind;
            }
        }
    }
    *is_axis = false;
    return GRAFT_ATTR_INT;
}

/* Other sizes in place of the sizes. */
static void rename_sizes(graft_rng *rng, const graft_rule *rule, graft_point *point)
{
    int32_t names[NAMES] = {0};
    for (int32_t i = 1; i < NAMES; i++) {
        names[i] = once_in(rng, 5) ? 1 : 1 + (int32_t)graft_rng_below(rng, SIZE_MOST);
    }
    names[1] = once_in(rng, 6) ? names[1] : 1;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        for (uint32_t i = 0; i < point->vars[v].rank; i++) {
            point->vars[v].dims[i] = names[point->vars[v].dims[i] % NAMES];
        }
    }
    for (uint32_t s = 0; s < rule->slot_count; s++) {
        bool is_axis = false;
        if (kind_of(rule, s, &is_axis) == GRAFT_ATTR_DIM && point->slots[s] > 0) {
            point->slots[s] = names[point->slots[s] % NAMES];
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
static int32_t draw_size(graft_rng *rng, const graft_rule *rule, const graft_point *point)
{
    const graft_shape *shape = &point->vars[graft_rng_below(rng, rule->var_count)];
    bool occurs = shape->rank > 0 && once_in(rng, 2);
    return occurs ? shape->dims[graft_rng_below(rng, shape->rank)]
                  : 1 + (int32_t)graft_rng_below(rng, 3);
}

/* Puts one axis into one shape, anywhere. */
static void put_one_axis(graft_rng *rng, const graft_rule *rule, graft_point *point)
{
    graft_shape *shape = &point->vars[graft_rng_below(rng, rule->var_count)];
    uint32_t at = graft_rng_below(rng, shape->rank + 1u);
    put_axis(shape, at, draw_size(rng, rule, point));
}

/* Puts axes into all shapes or some, mostly in front. */
static void put_axes(graft_rng *rng, const graft_rule *rule, graft_point *point)
{
    uint32_t more = 1 + graft_rng_below(rng, 2);
    bool all = once_in(rng, 3);
    for (; more > 0; more--) {
        int32_t common = draw_size(rng, rule, point);
        for (uint32_t v = 0; v < rule->var_count; v++) {
            graft_shape *shape = &point->vars[v];
            uint32_t at = once_in(rng, 3) ? graft_rng_below(rng, shape->rank + 1u) : 0;
            int32_t size = once_in(rng, 3) ? draw_size(rng, rule, point) : common;
            if (all || once_in(rng, 2)) {
                put_axis(shape, at, size);
            }
        }
    }
}

static void change_slots(graft_rng *rng, const graft_rule *rule, graft_point *point)
{
    for (uint32_t s = 0; s < rule->slot_count; s++) {
        bool is_axis = false;
        graft_attr_kind kind = kind_of(rule, s, &is_axis);
        if (kind == GRAFT_ATTR_FLOAT && once_in(rng, 2)) {
            float value = (float)((int32_t)graft_rng_below(rng, 71) - 30) / 8.0F;
            memcpy(&point->slots[s], &value, sizeof value);
        } else if (kind == GRAFT_ATTR_INT && once_in(rng, 4)) {
            point->slots[s] += is_axis ? 1 : 1 + (int32_t)graft_rng_below(rng, 3);
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

static void change_point(graft_rng *rng, const graft_rule *rule, change_kind kind,
                         graft_point *point)
{
    if (kind == CHANGE_ONE_RANK) {
        put_one_axis(rng, rule, point);
    }
    if (kind == CHANGE_SIZES || !once_in(rng, 4)) {
        rename_sizes(rng, rule, point);
    }
    if (kind == CHANGE_RANKS) {
        put_axes(rng, rule, point);
    }
    if (once_in(rng, 2)) {
        change_slots(rng, rule, point);
    }
}

void graft_beyond_find(graft_arena *arena, const graft_rule *rule, const graft_point *points,
                       uint32_t count, uint32_t limit, graft_domain *domain)
{
    graft_rng rng;
    *domain = (graft_domain){.points = GRAFT_NEW(arena, graft_point, limit)};
    graft_rng_seed(&rng, graft_rule_id(rule));
    for (uint32_t kind = 0; kind < CHANGE_KINDS && count > 0; kind++) {
        uint32_t share = limit * (kind + 1) / CHANGE_KINDS - domain->count;
        uint32_t attempts = share * ATTEMPTS_PER_POINT;
        uint32_t end = domain->count + share;
        for (uint32_t i = 0; i < attempts && domain->count < end; i++) {
            graft_point *point = &domain->points[domain->count];
            graft_instance instance;
            *point = points[graft_rng_below(&rng, count)];
            change_point(&rng, rule, (change_kind)kind, point);
            if (graft_instance_build(&instance, rule, point) == GRAFT_FIT_OK &&
                is_light(rule, &instance)) {
                domain->count++;
            }
        }
    }
}
