/* boundary.c - see boundary.h. */
#include "verify/sweep/boundary.h"

#include "graph/rule/rulecode.h"
#include "graph/rule/rulefile.h"
#include "verify/sweep/named.h"
#include "verify/sweep/refute.h"

#include <string.h>

enum {
    GUARDS_MOST = 32,
    DEPTH_MOST = 16, /* The engine's, or the code does not run. */
    MOVES_MOST = 160,
    SCANNED = 140, /* Every number up to this is tried. */
    ELEMENTS_MOST = 2 * GRAFT_NAMED_MOST + 100,
    WORK_MOST = 60000,
    WORK_LEAST = 40,  /* Of any point: what looking at it takes beside evaluating. */
    FUNCTION_WORK = 8 /* What a function takes is that of so many operations. */
};

/* Shares of the effort: for each point that there is room for, each base, each base of the second
 * scan, each point that is drawn and each choice in drawing it. */
enum {
    EFFORT_POINT = 400,
    EFFORT_BASE = 600000,
    EFFORT_BASE_AGAIN = 150000,
    EFFORT_DRAWN = 10000,
    EFFORT_ATTEMPT = 100
};

/* Bases of shifts, and how many groups of moves are looked at for each unit of effort. */
enum { SHIFTED_MOST = 32, SHIFTS = 4 };

/* ------------------------------------------------------------------ guards */

/* The comparison that an instruction makes; 0 when it makes none. */
static uint32_t comparison_of(uint32_t code)
{
    switch (code) {
    case GRAFT_CODE_LE:
    case GRAFT_CODE_EQ:
    case GRAFT_CODE_DIVIDES:
    case GRAFT_CODE_DIV:
        return code;
    case GRAFT_CODE_MIN:
    case GRAFT_CODE_MAX:
    case GRAFT_CODE_MOD:
        return GRAFT_CODE_LE;
    default:
        return 0;
    }
}

typedef struct {
    graft_env *env;
    const graft_rule *rule;
    graft_named named;
    bool is_named[GRAFT_NAMED_MOST + 1];
    uint8_t slots[GRAFT_RULE_MAX_SLOTS]; /* graft_slot_kind */
    graft_rule *guards;                  /* Each a rule whose code is one comparison. */
    bool quotient[GUARDS_MOST];          /* Which matters by having a value. */
    uint32_t guard_count;
    graft_domain *domain;
    uint64_t weight; /* Of an operation. */
    graft_met met;
    uint32_t capacity;
    uint64_t work; /* Of the points so far, */
    uint64_t most; /* and how much it may become for now. */
} walker;

/* Adds the expression from `start` to the instruction at `at`, which becomes a comparison. */
static void add_guard(walker *w, uint32_t start, uint32_t at, uint32_t code)
{
    if (w->guard_count < GUARDS_MOST && at + 2 <= GRAFT_RULE_MAX_CODE) {
        graft_rule *guard = &w->guards[w->guard_count++];
        uint32_t size = at - start;
        w->quotient[w->guard_count - 1] = code == GRAFT_CODE_DIV;
        memcpy(guard->code, &w->rule->code[start], size);
        guard->code[size] = (uint8_t)code;
        guard->code[size + 1] = GRAFT_CODE_END;
        guard->code_bytes = (uint8_t)(size + 2);
    }
}

static void list_guards_of(walker *w, uint32_t program)
{
    uint32_t starts[DEPTH_MOST]; /* Of the expression of each value on the stack. */
    graft_code_reader reader = graft_code_open(w->rule, program, DEPTH_MOST);
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        if (step.takes == 0) {
            starts[step.place] = step.at;
        } else if (comparison_of(step.code) != 0) {
            add_guard(w, starts[step.place], step.at, comparison_of(step.code));
        }
    }
}

static void list_guards(walker *w)
{
    bool begins = true;
    w->guards = GRAFT_NEW(w->env->scratch, graft_rule, GUARDS_MOST);
    for (uint32_t at = 0; at < w->rule->code_bytes; at = graft_code_next(w->rule, at)) {
        if (begins) {
            list_guards_of(w, at);
        }
        begins = w->rule->code[at] == GRAFT_CODE_END;
    }
}

/* How all comparisons turn out. */
static uint64_t read_guards(const walker *w, const graft_point *point)
{
    uint64_t outcomes = 0;
    for (uint32_t i = 0; i < w->guard_count; i++) {
        int64_t value = 0;
        bool has = graft_point_compute(&w->guards[i], 0, point, &value);
        bool is_true = has && (w->quotient[i] || value != 0);
        outcomes = outcomes * 3 + (is_true ? 2u : has ? 1u : 0u);
    }
    return outcomes;
}

/* -------------------------------------------------------------------- points */

/* What a point takes; 0 when it is no instance or takes too much. */
static uint64_t weigh(const walker *w, const graft_point *point)
{
    graft_instance instance;
    uint64_t elements = 0;
    for (uint32_t v = 0; v < w->rule->var_count; v++) {
        elements += graft_shape_elements(&point->vars[v]);
    }
    if (elements > ELEMENTS_MOST ||
        graft_instance_build(&instance, w->rule, point) != GRAFT_FIT_OK) {
        return 0;
    }
    uint64_t work = graft_instance_work(&instance) * w->weight + WORK_LEAST;
    return work <= WORK_MOST ? work : 0;
}

static bool is_full(const walker *w)
{
    return w->work >= w->most || w->domain->count == w->capacity;
}

static void keep(walker *w, const graft_point *point, uint64_t work)
{
    if (work > 0 && !is_full(w) && graft_met_add_point(&w->met, point)) {
        w->domain->points[w->domain->count++] = *point;
        w->work += work;
    }
}

/* --------------------------------------------------------------------- moves */

/* A size or a slot that gets another number, or all of them that have the same one. */
typedef struct {
    bool is_slot;
    bool together;
    uint8_t index; /* Variable or slot. */
    uint8_t axis;
    int32_t least;
} move;

static void add_move(move *moves, uint32_t *count, move m)
{
    if (*count + 2 <= MOVES_MOST) {
        moves[(*count)++] = m;
        m.together = true;
        moves[(*count)++] = m;
    }
}

static bool is_counted(const walker *w, uint32_t slot)
{
    return w->slots[slot] == GRAFT_SLOT_NUMBER || w->slots[slot] == GRAFT_SLOT_BYTE ||
           w->slots[slot] == GRAFT_SLOT_SIZE;
}

static uint32_t list_moves(const walker *w, const graft_point *base, move *moves)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < w->rule->var_count; v++) {
        for (uint32_t i = 0; i < base->vars[v].rank; i++) {
            add_move(moves, &count, (move){false, false, (uint8_t)v, (uint8_t)i, 1});
        }
    }
    for (uint32_t i = 0; i < w->rule->slot_count; i++) {
        if (is_counted(w, i)) {
            int32_t least = w->slots[i] == GRAFT_SLOT_BYTE ? GRAFT_BYTE_LEAST : 0;
            add_move(moves, &count, (move){true, false, (uint8_t)i, 0, least});
        }
    }
    return count;
}

static int32_t number_at(const graft_point *point, const move *m)
{
    return m->is_slot ? point->slots[m->index] : point->vars[m->index].dims[m->axis];
}

/* Makes the move of `base` in `point`; false when it is one that `alone` makes as well. */
static bool move_in(const walker *w, const graft_point *base, const move *m, int32_t value,
                    graft_point *point)
{
    int32_t old = number_at(base, m);
    bool others = false;
    for (uint32_t v = 0; v < w->rule->var_count && m->together; v++) {
        for (uint32_t i = 0; i < base->vars[v].rank; i++) {
            bool same = base->vars[v].dims[i] == old;
            others = others || (same && (m->is_slot || v != m->index || i != m->axis));
            point->vars[v].dims[i] = same ? value : point->vars[v].dims[i];
        }
    }
    for (uint32_t s = 0; s < w->rule->slot_count && m->together; s++) {
        bool same = is_counted(w, s) && base->slots[s] == old;
        others = others || (same && !(m->is_slot && s == m->index));
        point->slots[s] = same ? value : point->slots[s];
    }
    if (m->is_slot) {
        point->slots[m->index] = value;
    } else {
        point->vars[m->index].dims[m->axis] = value;
    }
    return others || !m->together;
}

static bool make_move(const walker *w, const graft_point *base, const move *m, int32_t value,
                      graft_point *point)
{
    *point = *base;
    return move_in(w, base, m, value, point);
}

/* What a scan has seen last. */
typedef struct {
    graft_point point;
    uint64_t work; /* 0: none yet. */
    uint64_t guards;
    bool turned; /* A comparison turned out otherwise at it. */
} scan;

/* Keeps the instance if it is named, or next to where a comparison turns; both sides of that. */
static void scan_point(walker *w, scan *s, const graft_point *point, bool is_named)
{
    uint64_t work = weigh(w, point);
    if (work == 0) {
        return;
    }
    uint64_t guards = read_guards(w, point);
    bool turned = s->work > 0 && guards != s->guards;
    if (turned) {
        keep(w, &s->point, s->work);
    }
    if (turned || s->turned || is_named) {
        keep(w, point, work);
    }
    *s = (scan){.point = *point, .work = work, .guards = guards, .turned = turned};
}

static void scan_move(walker *w, const graft_point *base, const move *m)
{
    const bool is_byte = m->least < 0;
    const int32_t most = is_byte ? GRAFT_BYTE_MOST : GRAFT_NAMED_MOST;
    scan s = {.work = 0};
    graft_point point;
    for (int32_t value = m->least; value <= most && !is_full(w); value++) {
        bool is_named = is_byte || w->is_named[value];
        if (value > SCANNED && !is_named) {
            continue;
        }
        if (!make_move(w, base, m, value, &point)) {
            return;
        }
        scan_point(w, &s, &point, is_named);
    }
}

static void scan_reals(walker *w, const graft_point *base, uint32_t slot)
{
    graft_point point = *base;
    for (uint32_t i = 0; i < w->named.real_count && !is_full(w); i++) {
        point.slots[slot] = w->named.reals[i];
        keep(w, &point, weigh(w, &point));
    }
}

/* Everything that one change of a point leads to, each kind of change with its share of the effort.
 */
static void scan_around(walker *w, const graft_point *base, uint64_t effort)
{
    move moves[MOVES_MOST];
    uint32_t count = list_moves(w, base, moves);
    uint32_t kinds = count + w->rule->slot_count;
    const uint64_t from = w->work;
    w->most = from + effort;
    keep(w, base, weigh(w, base));
    for (uint32_t k = 0; k < kinds; k++) {
        w->most = from + effort * (k + 1) / kinds;
        if (k >= w->rule->slot_count) {
            scan_move(w, base, &moves[k - w->rule->slot_count]);
        } else if (w->slots[k] == GRAFT_SLOT_REAL) {
            scan_reals(w, base, k);
        }
    }
}

/* ---------------------------------------------------------------------- shrinking */

/* Every size and attribute as small as it can be with the others as they are; about half of them
 * where they are drawn. */
static graft_point shrink(const walker *w, const graft_point *base, graft_rng *drawn)
{
    move moves[MOVES_MOST];
    graft_point least = *base;
    uint32_t count = list_moves(w, base, moves);
    for (uint32_t k = 0; k < count; k++) {
        graft_point point;
        int32_t value = number_at(&least, &moves[k]);
        bool done = value <= moves[k].least || (drawn != NULL && graft_rng_below(drawn, 2) == 0);
        for (int32_t to = moves[k].least; to < value && to < moves[k].least + 3 && !done; to++) {
            done = make_move(w, &least, &moves[k], to, &point) && weigh(w, &point) > 0;
            least = done ? point : least;
        }
    }
    return least;
}

/* ---------------------------------------------------------------------- shifts */

/* Adds `by` to what up to three moves change, and keeps what comes out where a comparison turns out
 * otherwise than at the base. */
static void shift_by(walker *w, const graft_point *base, const move *moves, const uint32_t group[3],
                     int32_t by)
{
    graft_point point = *base;
    for (uint32_t i = 0; i < 3; i++) {
        const move *m = &moves[group[i]];
        if (!move_in(w, base, m, number_at(base, m) + by, &point)) {
            return;
        }
    }
    uint64_t work = weigh(w, &point);
    if (work > 0 && read_guards(w, &point) != read_guards(w, base)) {
        keep(w, &point, work);
    }
}

/* A window far out has its start, its end and the size around it there: none of them moves that far
 * alone, all do by one number. Groups of three moves, the same one twice or more among them, are as
 * many as there is `effort` for. */
static void shift_around(walker *w, const graft_point *base, uint64_t effort)
{
    move moves[MOVES_MOST];
    const uint32_t count = list_moves(w, base, moves);
    const uint64_t groups = (uint64_t)count * count * count;
    const uint64_t tries = 1 + SHIFTS * effort / w->named.own_count;
    const uint64_t from = w->work;
    for (uint32_t k = 0; k < w->named.own_count; k++) {
        w->most = from + effort * (k + 1) / w->named.own_count;
        for (uint64_t g = 0; g < groups && !is_full(w); g += groups / tries + 1) {
            const uint32_t group[3] = {(uint32_t)(g % count), (uint32_t)(g / count % count),
                                       (uint32_t)(g / count / count)};
            if (group[0] <= group[1] && group[1] <= group[2]) {
                shift_by(w, base, moves, group, w->named.whole[k]);
            }
        }
    }
}

static void shift_points(walker *w, const graft_point *points, uint32_t count, uint64_t effort)
{
    bool shifts = w->named.own_count > 0 && w->guard_count > 0;
    uint32_t some = count < SHIFTED_MOST ? count : SHIFTED_MOST;
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    for (uint32_t i = 0; i < some && shifts; i++) {
        const graft_point base = shrink(w, &points[(uint64_t)i * count / some], &rng);
        shift_around(w, &base, effort / some);
    }
}

/* ----------------------------------------------------------------------- bases */

/* Scans around some of the points, evenly spaced, with one share of the effort each. */
static void scan_points(walker *w, const graft_point *points, uint32_t count, uint64_t bases,
                        uint64_t effort, bool shrinks)
{
    uint32_t some = count < bases ? count : (uint32_t)bases;
    for (uint32_t i = 0; i < some; i++) {
        const graft_point *base = &points[(uint64_t)i * count / some];
        graft_point least = shrinks ? shrink(w, base, NULL) : *base;
        scan_around(w, &least, effort / some / (shrinks ? 2 : 1));
        if (shrinks) {
            scan_around(w, base, effort / some / 2);
        }
    }
}

static void draw(walker *w, uint64_t effort)
{
    const graft_domain_options options = {.points = 1 + (uint32_t)(effort / EFFORT_DRAWN),
                                          .attempts = (uint32_t)(effort / EFFORT_ATTEMPT),
                                          .seed = ~graft_rule_id(w->rule) + 2,
                                          .size_most = GRAFT_NAMED_MOST,
                                          .work = WORK_MOST,
                                          .named = &w->named};
    const graft_domain drawn = graft_domain_find(w->env, w->env->unit, w->rule, &options);
    w->most = w->work + effort / 4;
    for (uint32_t i = 0; i < drawn.count; i++) {
        keep(w, &drawn.points[i], weigh(w, &drawn.points[i]));
    }
}

static void open_walker(walker *w, graft_env *env, const graft_rule *rule, uint64_t effort,
                        graft_domain *domain)
{
    w->env = env;
    w->rule = rule;
    w->domain = domain;
    w->capacity = (uint32_t)(effort / EFFORT_POINT);
    w->met = graft_met_new(env->scratch, w->capacity);
    graft_named_read(rule, &w->named);
    graft_named_slots(rule, w->slots);
    w->weight = graft_refute_needs_laws(rule) ? FUNCTION_WORK : 1;
    for (uint32_t i = 0; i < w->named.whole_count; i++) {
        w->is_named[w->named.whole[i]] = true;
    }
    list_guards(w);
}

graft_domain graft_boundary_find(graft_env *env, const graft_rule *rule,
                                 const graft_boundary_options *options)
{
    const uint64_t effort = options->effort;
    const uint64_t bases = 1 + effort / EFFORT_BASE;
    graft_domain domain = {.points = GRAFT_NEW(env->unit, graft_point, effort / EFFORT_POINT)};
    GRAFT_SCOPED(env->scratch);
    walker *w = GRAFT_NEW(env->scratch, walker, 1);
    open_walker(w, env, rule, effort, &domain);
    draw(w, effort);
    const uint32_t drawn = domain.count;
    shift_points(w, options->points, options->count, effort / 4);
    const uint32_t first = domain.count;
    scan_points(w, options->points, options->count, bases, effort / 4, true);
    scan_points(w, domain.points, drawn, bases, effort / 8, true);
    scan_points(w, &domain.points[first], domain.count - first, 1 + effort / EFFORT_BASE_AGAIN,
                effort * 3 / 8, false);
    return domain;
}
