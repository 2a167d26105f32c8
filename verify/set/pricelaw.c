/* pricelaw.c - costs as polynomials of sizes, by exact interpolation. See price.h.
 *
 * With k sizes there are 3^k grid points: each size at its value, one more and two more. The counts
 * there, turned axis by axis into coefficients of 1, x and x^2 (times 2, to stay whole), are the
 * coefficients of the polynomial times 2^k. */
#include "verify/set/price.h"

#include "graph/base/file.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

enum { GRID_MOST = 2187, SIDES = 2, COUNTS = GRAFT_PRICE_KINDS * SIDES, POINTS_TRIED = 16 };

__extension__ typedef __int128 wide;

/* A number of the point: a size of a variable, or a slot. */
typedef struct {
    bool is_slot;
    uint8_t index;
    uint8_t axis;
} member;

typedef struct {
    member members[GRAFT_PRICE_MEMBERS];
    uint32_t count;
} group;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_rule *rule;
    uint32_t weights;
    graft_point point;
    group groups[GRAFT_PRICE_SIZES];
    uint32_t group_count;
} finder;

static int32_t *number_at(graft_point *point, const member *m)
{
    return m->is_slot ? &point->slots[m->index] : &point->vars[m->index].dims[m->axis];
}

static bool is_instance(const finder *f, const graft_point *point)
{
    graft_instance instance;
    return graft_instance_build(&instance, f->rule, point) == GRAFT_FIT_OK;
}

/* ------------------------------------------------------------------ groups */

/* Every size of the point, and the slots that are sizes. */
static uint32_t list_members(const finder *f, member *list)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < f->rule->var_count; v++) {
        for (uint32_t i = 0; i < f->point.vars[v].rank && count < GRAFT_PRICE_MEMBERS; i++) {
            list[count++] = (member){false, (uint8_t)v, (uint8_t)i};
        }
    }
    uint64_t seen = 0;
    for (uint32_t n = 0; n < f->rule->source.node_count; n++) {
        const graft_pattern_node *node = &f->rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_term *term = &node->attrs[i];
            bool size =
                term->kind == GRAFT_TERM_SLOT && graft_op_attr(node->op, i)->kind == GRAFT_ATTR_DIM;
            if (size && (seen >> term->value & 1u) == 0 && count < GRAFT_PRICE_MEMBERS) {
                seen |= UINT64_C(1) << term->value;
                list[count++] = (member){true, (uint8_t)term->value, 0};
            }
        }
    }
    return count;
}

/* Whether the point stays an instance when all members grow together, by one and by two. */
static bool can_grow(const finder *f, const group *g)
{
    graft_point point = f->point;
    for (int step = 0; step < 2; step++) {
        for (uint32_t i = 0; i < g->count; i++) {
            (*number_at(&point, &g->members[i]))++;
        }
        if (!is_instance(f, &point)) {
            return false;
        }
    }
    return g->count > 0;
}

/* Whether `first` and two of the others can grow together; `others` may be given fewer. */
static bool try_few(const finder *f, const member *others, uint32_t count, const member *first,
                    group *found)
{
    *found = (group){.count = 1, .members = {*first}};
    if (can_grow(f, found)) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        *found = (group){
            .count = 2, .members = {*first, others[i]}
        };
        if (can_grow(f, found)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            *found = (group){
                .count = 3, .members = {*first, others[i], others[k]}
            };
            if (can_grow(f, found)) {
                return true;
            }
        }
    }
    return false;
}

/* A least group with member `first` that can grow: up to three members of the same value that have
 * no group yet, or else all of them, of which one after the other is left out where possible. */
static bool find_group(const finder *f, const member *list, const bool *taken, uint32_t count,
                       uint32_t first, group *found)
{
    member others[GRAFT_PRICE_MEMBERS];
    uint32_t other_count = 0;
    graft_point point = f->point;
    int32_t value = *number_at(&point, &list[first]);
    for (uint32_t i = 0; i < count; i++) {
        if (i != first && !taken[i] && *number_at(&point, &list[i]) == value) {
            others[other_count++] = list[i];
        }
    }
    if (try_few(f, others, other_count, &list[first], found)) {
        return true;
    }
    *found = (group){.count = 1 + other_count, .members = {list[first]}};
    memcpy(&found->members[1], others, other_count * sizeof *others);
    if (!can_grow(f, found)) {
        return false;
    }
    for (uint32_t i = found->count; i-- > 1;) {
        group less = *found;
        less.count--;
        less.members[i] = less.members[less.count];
        if (can_grow(f, &less)) {
            *found = less;
        }
    }
    return true;
}

static bool same_member(const member *a, const member *b)
{
    return a->is_slot == b->is_slot && a->index == b->index && a->axis == b->axis;
}

static void find_groups(finder *f)
{
    member list[GRAFT_PRICE_MEMBERS];
    bool taken[GRAFT_PRICE_MEMBERS] = {false};
    uint32_t count = list_members(f, list);
    f->group_count = 0;
    for (uint32_t i = 0; i < count && f->group_count < GRAFT_PRICE_SIZES; i++) {
        group *g = &f->groups[f->group_count];
        if (taken[i] || !find_group(f, list, taken, count, i, g)) {
            continue;
        }
        f->group_count++;
        for (uint32_t k = 0; k < count; k++) {
            for (uint32_t m = 0; m < g->count; m++) {
                taken[k] = taken[k] || same_member(&list[k], &g->members[m]);
            }
        }
    }
}

/* ------------------------------------------------------------ interpolation */

/* The counts where group i is larger by steps[i]; false when that is no instance. */
static bool count_at(const finder *f, const uint32_t *steps, wide counts[COUNTS])
{
    graft_point point = f->point;
    graft_instance instance;
    for (uint32_t g = 0; g < f->group_count; g++) {
        for (uint32_t m = 0; m < f->groups[g].count; m++) {
            *number_at(&point, &f->groups[g].members[m]) += (int32_t)steps[g];
        }
    }
    if (graft_instance_build(&instance, f->rule, &point) != GRAFT_FIT_OK) {
        return false;
    }
    for (uint32_t s = 0; s < SIDES; s++) {
        graft_price price =
            graft_price_side(&instance, s == 0 ? &instance.source : &instance.target, f->weights);
        counts[s * GRAFT_PRICE_KINDS + GRAFT_PRICE_FLOPS] = price.flops;
        counts[s * GRAFT_PRICE_KINDS + GRAFT_PRICE_BYTES] = price.bytes;
        counts[s * GRAFT_PRICE_KINDS + GRAFT_PRICE_WEIGHT_BYTES] = price.weight_bytes;
    }
    return true;
}

static uint32_t grid_size(const finder *f)
{
    uint32_t size = 1;
    for (uint32_t g = 0; g < f->group_count; g++) {
        size *= 3;
    }
    return size;
}

/* Digits of a grid index, base 3. */
static void grid_steps(const finder *f, uint32_t at, uint32_t *steps)
{
    for (uint32_t g = 0; g < f->group_count; g++) {
        steps[g] = at % 3;
        at /= 3;
    }
}

static int32_t group_value(const finder *f, uint32_t g)
{
    graft_point point = f->point;
    return *number_at(&point, &f->groups[g].members[0]);
}

/* Values at x0, x0 + 1, x0 + 2 along one axis become twice the coefficients of 1, x, x^2. */
static void transform_axis(wide *values, uint32_t size, uint32_t stride, wide x0)
{
    for (uint32_t at = 0; at < size; at++) {
        if (at / stride % 3 != 0) {
            continue;
        }
        wide y0 = values[at];
        wide d1 = values[at + stride] - y0;
        wide d2 = values[at + 2 * stride] - 2 * values[at + stride] + y0;
        values[at] = 2 * y0 - 2 * d1 * x0 + d2 * (x0 * x0 + x0);
        values[at + stride] = 2 * d1 - d2 * (2 * x0 + 1);
        values[at + 2 * stride] = d2;
    }
}

/* The polynomial at steps off the grid, still times 2^k. */
static wide evaluate(const finder *f, const wide *coefficients, const uint32_t *steps)
{
    wide sum = 0;
    uint32_t size = grid_size(f);
    for (uint32_t at = 0; at < size; at++) {
        uint32_t powers[GRAFT_PRICE_SIZES];
        wide term = coefficients[at];
        grid_steps(f, at, powers);
        for (uint32_t g = 0; g < f->group_count; g++) {
            for (uint32_t p = 0; p < powers[g]; p++) {
                term *= group_value(f, g) + (int32_t)steps[g];
            }
        }
        sum += term;
    }
    return sum;
}

/* ----------------------------------------------------------------- printing */

static const char *member_name(const finder *f, const member *m)
{
    return m->is_slot ? graft_rule_print_slot(f->arena, f->rule, m->index)
                      : graft_arena_printf(f->arena, "%c%u", 'a' + m->index, m->axis);
}

static void print_power(const finder *f, graft_buffer *out, uint32_t g, uint32_t power)
{
    if (power > 0) {
        graft_buffer_printf(out, "%s%s%s", out->size > 0 ? " " : "",
                            member_name(f, &f->groups[g].members[0]), power == 2 ? "^2" : "");
    }
}

static wide greatest_divisor(wide a, wide b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* What all terms have in common: a number and a power of each size. */
static wide find_common(const finder *f, const wide *coefficients, uint32_t *powers)
{
    wide divisor = 0;
    memset(powers, UINT8_MAX, GRAFT_PRICE_SIZES * sizeof *powers);
    for (uint32_t at = 0; at < grid_size(f); at++) {
        uint32_t own[GRAFT_PRICE_SIZES];
        grid_steps(f, at, own);
        divisor = greatest_divisor(divisor, coefficients[at]);
        for (uint32_t g = 0; g < f->group_count && coefficients[at] != 0; g++) {
            powers[g] = own[g] < powers[g] ? own[g] : powers[g];
        }
    }
    return divisor;
}

/* "a0 b1 - 2 a0 + 1": the terms without what they have in common, largest powers first. */
static const char *print_terms(const finder *f, const wide *coefficients, wide divisor,
                               const uint32_t *common, uint32_t *count)
{
    graft_buffer sum = {.arena = f->arena};
    *count = 0;
    for (uint32_t at = grid_size(f); at-- > 0;) {
        wide value = coefficients[at] / divisor;
        uint32_t powers[GRAFT_PRICE_SIZES];
        graft_buffer term = {.arena = f->arena};
        if (value == 0) {
            continue;
        }
        grid_steps(f, at, powers);
        for (uint32_t g = 0; g < f->group_count; g++) {
            print_power(f, &term, g, powers[g] - common[g]);
        }
        wide magnitude = value < 0 ? -value : value;
        const char *sign = value < 0 ? (*count > 0 ? " - " : "-") : *count > 0 ? " + " : "";
        graft_buffer_printf(&sum, "%s", sign);
        if (magnitude != 1 || term.size == 0) {
            graft_buffer_printf(&sum, "%lld%s", (long long)magnitude, term.size > 0 ? " " : "");
        }
        graft_buffer_printf(&sum, "%s", term.size > 0 ? term.data : "");
        (*count)++;
    }
    return sum.data;
}

/* NULL when a coefficient is not whole. */
static const char *print_polynomial(const finder *f, wide *coefficients)
{
    uint32_t common[GRAFT_PRICE_SIZES];
    uint32_t terms = 0;
    graft_buffer out = {.arena = f->arena};
    for (uint32_t at = 0; at < grid_size(f); at++) {
        wide scale = (wide)1 << f->group_count;
        if (coefficients[at] % scale != 0) {
            return NULL;
        }
        coefficients[at] /= scale;
    }
    wide divisor = find_common(f, coefficients, common);
    if (divisor == 0) {
        return "0";
    }
    const char *sum = print_terms(f, coefficients, divisor, common, &terms);
    if (terms == 1) {
        memset(common, 0, sizeof common);
        return print_terms(f, coefficients, 1, common, &terms);
    }
    for (uint32_t g = 0; g < f->group_count; g++) {
        print_power(f, &out, g, common[g]);
    }
    const char *factor = out.size > 0 ? out.data : "";
    if (divisor == 1 && out.size == 0) {
        return sum;
    }
    return divisor == 1 ? graft_arena_printf(f->arena, "%s (%s)", factor, sum)
                        : graft_arena_printf(f->arena, "%lld%s%s (%s)", (long long)divisor,
                                             out.size > 0 ? " " : "", factor, sum);
}

/* --------------------------------------------------------------------- law */

/* Counts on the grid; false when some point of it is no instance. */
static bool fill_grid(const finder *f, wide *const values[COUNTS])
{
    for (uint32_t at = 0; at < grid_size(f); at++) {
        uint32_t steps[GRAFT_PRICE_SIZES] = {0};
        wide counts[COUNTS];
        grid_steps(f, at, steps);
        if (!count_at(f, steps, counts)) {
            return false;
        }
        for (uint32_t c = 0; c < COUNTS; c++) {
            values[c][at] = counts[c];
        }
    }
    return true;
}

/* Steps off the grid, of four kinds. */
static uint32_t step_off_grid(const finder *f, uint32_t kind, uint32_t g)
{
    switch (kind) {
    case 0:
        return 3;
    case 1:
        return 3 + 2 * (f->group_count - g);
    case 2:
        return g == 0 ? 5 : 1;
    default:
        return g + 1 == f->group_count ? 3 : 2 * (f->group_count - g);
    }
}

/* Whether the polynomial has the counted values off the grid too. */
static bool agrees(const finder *f, uint32_t c, const wide *coefficients)
{
    uint32_t checked = 0;
    for (uint32_t kind = 0; kind < 4; kind++) {
        uint32_t steps[GRAFT_PRICE_SIZES] = {0};
        wide counts[COUNTS];
        for (uint32_t g = 0; g < f->group_count; g++) {
            steps[g] = step_off_grid(f, kind, g);
        }
        if (!count_at(f, steps, counts)) {
            continue;
        }
        checked++;
        if (evaluate(f, coefficients, steps) != counts[c] * ((wide)1 << f->group_count)) {
            return false;
        }
    }
    return checked > 0;
}

static void name_sizes(const finder *f, graft_price_law *law)
{
    law->size_count = f->group_count;
    for (uint32_t g = 0; g < f->group_count; g++) {
        graft_buffer same = {.arena = f->arena};
        for (uint32_t m = 1; m < f->groups[g].count; m++) {
            graft_buffer_printf(&same, "%s= %s", m > 1 ? " " : "",
                                member_name(f, &f->groups[g].members[m]));
        }
        law->sizes[g] = (graft_price_size){member_name(f, &f->groups[g].members[0]),
                                           same.size > 0 ? same.data : "", group_value(f, g)};
    }
}

/* Gives strides, paddings and the like their least values, one after the other, where that leaves
 * an instance: costs are polynomials there. */
static void simplify_slots(finder *f)
{
    for (uint32_t n = 0; n < f->rule->source.node_count; n++) {
        const graft_pattern_node *node = &f->rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_attr_info *info = graft_op_attr(node->op, i);
            graft_point simpler = f->point;
            if (node->attrs[i].kind != GRAFT_TERM_SLOT || info->kind != GRAFT_ATTR_INT) {
                continue;
            }
            simpler.slots[node->attrs[i].value] = info->least;
            if (is_instance(f, &simpler)) {
                f->point = simpler;
            }
        }
    }
}

/* Makes sizes larger, and different from each other, so that none stands for another by accident
 * and windows have room. */
static void enlarge(finder *f)
{
    for (uint32_t g = 0; g < f->group_count; g++) {
        graft_point larger = f->point;
        for (uint32_t m = 0; m < f->groups[g].count; m++) {
            *number_at(&larger, &f->groups[g].members[m]) += (int32_t)(2 + f->group_count - g);
        }
        if (is_instance(f, &larger)) {
            f->point = larger;
        }
    }
}

/* The law about f->point; how many counts are polynomials. */
static uint32_t find_law(finder *f, graft_price_law *law)
{
    wide *values[COUNTS];
    uint32_t found = 0;
    find_groups(f);
    enlarge(f);
    *law = (graft_price_law){.point = f->point};
    name_sizes(f, law);
    for (uint32_t c = 0; c < COUNTS; c++) {
        values[c] = GRAFT_NEW(f->env->scratch, wide, GRID_MOST);
    }
    if (!fill_grid(f, values)) {
        return 0;
    }
    for (uint32_t c = 0; c < COUNTS; c++) {
        uint32_t stride = 1;
        for (uint32_t g = 0; g < f->group_count; g++, stride *= 3) {
            transform_axis(values[c], grid_size(f), stride, group_value(f, g));
        }
        const char *text = agrees(f, c, values[c]) ? print_polynomial(f, values[c]) : NULL;
        found += text != NULL ? 1 : 0;
        if (c < GRAFT_PRICE_KINDS) {
            law->before[c] = text;
        } else {
            law->after[c - GRAFT_PRICE_KINDS] = text;
        }
    }
    return found;
}

bool graft_price_find(graft_env *env, const graft_rule *rule, const graft_point *points,
                      uint32_t count, uint32_t weights, graft_price_law *law)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    finder *f = GRAFT_NEW(env->scratch, finder, 1);
    uint32_t best = 0;
    bool found = false;
    *f = (finder){.env = env, .arena = env->unit, .rule = rule, .weights = weights};
    for (uint32_t i = 0; i < count && i < POINTS_TRIED; i++) {
        graft_price_law tried;
        f->point = points[i];
        if (!is_instance(f, &f->point)) {
            continue;
        }
        simplify_slots(f);
        uint32_t polynomials = find_law(f, &tried);
        uint32_t score = polynomials * (GRAFT_PRICE_SIZES + 1) + tried.size_count;
        if (!found || score > best) {
            *law = tried;
            best = score;
            found = true;
        }
    }
    graft_arena_release(env->scratch, mark);
    return found;
}
