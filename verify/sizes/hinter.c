/* hinter.c - see hinter.h. */
#include "verify/sizes/hinter.h"

#include "verify/core/symassume.h"
#include "verify/core/symmatch.h"
#include "verify/instances/asking.h"
#include "verify/sizes/products.h"
#include "verify/sizes/solve.h"

#include <string.h>

enum { ARENA_BYTES = 1 << 18, TERMS_FIRST = 1024, MASK_WORDS = GRAFT_ROOM_MASK_SYMBOLS / 64 };

static graft_sym_hinter *hinter_of(const graft_sym *s) { return s->hints->context; }

/* --------------------------------------------------------------- what can hold */

/* Keeps what Z3 has found, in place of the oldest. */
static void keep_model(const graft_sym *s)
{
    graft_sym_hinter *h = hinter_of(s);
    Z3_model *place = &h->models[h->model_count % GRAFT_LIMIT(MODELS)];
    Z3_model found = Z3_solver_get_model(s->z3, s->assumed->solver);
    if (found == NULL) {
        return;
    }
    Z3_model_inc_ref(s->z3, found);
    if (h->model_count >= GRAFT_LIMIT(MODELS)) {
        Z3_model_dec_ref(s->z3, *place);
    }
    *place = found;
    h->model_count++;
}

/* Whether a model that is known makes every part of a conjunction true. */
static bool can_hold(const graft_sym *s, uint32_t count, const Z3_ast *parts)
{
    const graft_sym_hinter *h = hinter_of(s);
    Z3_context z3 = s->z3;
    bool satisfied = false;
    for (uint32_t m = 0; m < h->model_count && m < GRAFT_LIMIT(MODELS) && !satisfied; m++) {
        Z3_model model = h->models[(h->model_count - 1 - m) % GRAFT_LIMIT(MODELS)];
        satisfied = true;
        for (uint32_t i = 0; i < count && satisfied; i++) {
            Z3_ast value = NULL;
            satisfied = Z3_model_eval(z3, model, parts[i], true, &value) &&
                        Z3_get_bool_value(z3, value) == Z3_L_TRUE;
        }
    }
    return satisfied;
}

/* ------------------------------------------------------------ what is of use */

static void join_mask(graft_sym_mask *a, const graft_sym_mask *b)
{
    for (uint32_t i = 0; i < MASK_WORDS; i++) {
        a->words[i] |= b->words[i];
    }
}

static bool masks_meet(const graft_sym_mask *a, const graft_sym_mask *b)
{
    uint64_t common = 0;
    for (uint32_t i = 0; i < MASK_WORDS; i++) {
        common |= a->words[i] & b->words[i];
    }
    return common != 0;
}

static graft_sym_mask mask_of(const graft_sym *s, graft_sym_masks *m, Z3_ast term)
{
    graft_sym_mask mask = {{0}};
    const uint32_t id = Z3_get_ast_id(s->z3, term);
    while (id >= m->place_capacity) {
        m->places = graft_arena_grow(m->arena, m->places, m->place_capacity, &m->place_capacity,
                                     TERMS_FIRST, sizeof *m->places);
    }
    if (m->places[id] != 0) {
        return m->known[m->places[id] - 1];
    }
    for (uint32_t i = 0; i < graft_sym_arity(s, term); i++) {
        const graft_sym_mask part = mask_of(s, m, graft_sym_arg(s, term, i));
        join_mask(&mask, &part);
    }
    if (graft_sym_is_symbol(s, term)) {
        const bool own = m->symbol_count + 1 < GRAFT_LIMIT(MASK_SYMBOLS);
        const uint32_t bit = own ? m->symbol_count++ : 64 * MASK_WORDS - 1;
        mask.words[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    GRAFT_PUSH(m->arena, m->known, m->count, m->capacity, TERMS_FIRST) = mask;
    m->places[id] = m->count;
    return mask;
}

/* What hangs together with a question through common symbols: the rest could matter only where
 * what is known contradicts itself. */
static void leave_out(const graft_sym *s, Z3_ast question, uint32_t count, const Z3_ast *known,
                      bool *left_out)
{
    graft_sym_masks *masks = &hinter_of(s)->masks;
    graft_sym_mask reach = mask_of(s, masks, question);
    memset(left_out, true, count * sizeof *left_out);
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t i = 0; i < count; i++) {
            const graft_sym_mask mask = mask_of(s, masks, known[i]);
            if (left_out[i] && masks_meet(&mask, &reach)) {
                join_mask(&reach, &mask);
                left_out[i] = false;
                grew = true;
            }
        }
    }
}

/* ------------------------------------------------------- conditions, instantiated */

/* Where one of the symbols stands alone in an index, the value that makes the index `at`. False
 * when it has another value already. */
static bool match_index(const graft_sym *s, const graft_sym_condition *g, Z3_ast index, Z3_ast at,
                        Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS])
{
    while (graft_sym_is_app(s, index, s->at)) {
        index = graft_sym_arg(s, index, 1);
    }
    for (uint32_t i = 0; i < g->binder_count && !graft_sym_is_bound(s, at); i++) {
        Z3_ast rest = NULL;
        if (!graft_sym_mentions(s, index, 1, &g->binders[i])) {
            continue;
        }
        rest = graft_sym_sub(s, index, g->binders[i]);
        if (!graft_sym_mentions(s, rest, g->binder_count, g->binders)) {
            Z3_ast value = graft_sym_sub(s, at, rest);
            bool same = values[i] == NULL || values[i] == value;
            values[i] = value;
            return same;
        }
    }
    return true;
}

/* Values at which the element `of` of a condition becomes the element `to`, as far as it says.
 * False when there are none. */
static bool find_values(graft_sym *s, const graft_sym_condition *g, Z3_ast of, Z3_ast to,
                        Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS])
{
    bool matches = graft_sym_is_app(s, to, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, of)));
    for (uint32_t i = 0; matches && i < graft_sym_arity(s, of); i++) {
        matches = match_index(s, g, graft_sym_arg(s, of, i), graft_sym_arg(s, to, i), values);
    }
    return matches;
}

/* --------------------------------------------------------------------- splits */

typedef struct {
    const graft_sym *s;
    Z3_ast found; /* A size that depends on which of two sizes is broadcast. */
} broadcast_search;

static bool visit_broadcast(void *context, Z3_ast term)
{
    broadcast_search *b = context;
    if (b->found == NULL && graft_sym_is_app(b->s, term, b->s->wide)) {
        b->found = term;
    }
    return b->found == NULL;
}

/* Looks for a broadcast size where it matters: as the range of a fold, as a number, in row-major
 * places, in a window. An index along the axis is no such place. */
static bool visit_use_of_size(void *context, Z3_ast term)
{
    broadcast_search *b = context;
    const graft_sym *s = b->s;
    uint32_t count = graft_sym_arity(s, term);
    if (graft_sym_is_element(s, term) || graft_sym_is_app(s, term, s->at)) {
        return true;
    }
    for (uint32_t i = 0; i < count && b->found == NULL; i++) {
        Z3_ast arg = graft_sym_arg(s, term, i);
        if (Z3_get_sort(s->z3, arg) == s->integer && !graft_sym_is_app(s, term, s->wide)) {
            graft_sym_walk(s, arg, visit_broadcast, b);
        }
    }
    return b->found == NULL;
}

/* Where it may matter otherwise: in a shape. */
static void search_shapes(broadcast_search *b, const graft_sym_instance *instance)
{
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(instance->rule, side)->node_count; n++) {
            const graft_sym_shape *shape = &instance->nodes[side][n].shapes[0];
            for (uint32_t i = 0; i < shape->rank; i++) {
                graft_sym_walk(b->s, shape->dims[i], visit_broadcast, b);
            }
        }
    }
}

/* The three ways in which two sizes broadcast. */
static bool split_broadcast(const graft_sym *s, const graft_sym_instance *instance,
                            const graft_sym_side sides[2], graft_sym_split *split)
{
    broadcast_search b = {.s = s};
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(instance->rule, side)->node_count; n++) {
            Z3_ast value = sides[side].values[n][0];
            if (value != NULL && b.found == NULL) {
                graft_sym_walk(s, value, visit_use_of_size, &b);
            }
        }
    }
    if (b.found == NULL) {
        search_shapes(&b, instance);
    }
    if (b.found == NULL) {
        return false;
    }
    Z3_ast one = graft_sym_int(s, 1);
    Z3_ast x = graft_sym_arg(s, b.found, 0);
    Z3_ast y = graft_sym_arg(s, b.found, 1);
    while (graft_sym_is_app(s, y, s->wide)) {
        y = graft_sym_arg(s, y, 0);
    }
    *split = (graft_sym_split){
        .claims = {Z3_mk_eq(s->z3, x, y), Z3_mk_eq(s->z3, x, one), Z3_mk_eq(s->z3, y, one)},
        .count = 3
    };
    return true;
}

/* Adds that a symbol is a number, if Z3 says that it must be. */
static bool pin(graft_sym *s, graft_sym_split *split, Z3_ast symbol, int64_t value)
{
    if (symbol == NULL || !graft_sym_is_symbol(s, symbol) ||
        Z3_get_sort(s->z3, symbol) != s->integer) {
        return false;
    }
    Z3_ast equation = Z3_mk_eq(s->z3, symbol, graft_sym_int(s, value));
    bool must = graft_sym_holds(s, NULL, equation);
    if (must && split->count < GRAFT_LIMIT(PART_CLAIMS)) {
        split->claims[split->count++] = equation;
    }
    return must;
}

/* Sizes that must be 1 and attributes that must be 0 or 1. */
static bool pin_symbols(graft_sym *s, const graft_sym_instance *instance, graft_sym_split *split)
{
    const graft_pattern *source = graft_sym_pattern(instance->rule, GRAFT_SYM_SOURCE);
    *split = (graft_sym_split){.all = true};
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        for (uint32_t i = 0; i < instance->vars[v].rank; i++) {
            (void)pin(s, split, instance->vars[v].dims[i], 1);
        }
    }
    for (uint32_t n = 0; n < source->node_count; n++) {
        const graft_sym_node *node = &instance->nodes[GRAFT_SYM_SOURCE][n];
        for (uint32_t i = 0; i < graft_op(source->nodes[n].op)->attr_count; i++) {
            (void)(pin(s, split, node->attrs[i].term, 0) || pin(s, split, node->attrs[i].term, 1));
        }
    }
    return split->count > 0;
}

/* The alternatives of what a precondition asks, where none is known to hold. */
static bool split_alternatives(graft_sym *s, graft_sym_split *split)
{
    for (uint32_t i = 0; i < s->assumed->count; i++) {
        Z3_ast claim = s->assumed->claims[i];
        const uint32_t count = graft_sym_kind(s, claim) == Z3_OP_OR ? graft_sym_arity(s, claim) : 0;
        bool open = count > 0 && count <= GRAFT_LIMIT(PART_CLAIMS);
        *split = (graft_sym_split){.count = count};
        for (uint32_t k = 0; k < count && open; k++) {
            split->claims[k] = graft_sym_arg(s, claim, k);
            open = !graft_sym_holds(s, NULL, split->claims[k]);
        }
        if (open) {
            return true;
        }
    }
    return false;
}

static bool is_maximum(uint32_t op)
{
    return op == GRAFT_OP_max_pool || op == GRAFT_OP_reduce_max || op == GRAFT_OP_reduce_min;
}

/* Whether there is padding at an end, where a maximum is taken and that is not known. */
static bool split_padding(graft_sym *s, const graft_sym_instance *instance, graft_sym_split *split)
{
    const graft_pattern *source = graft_sym_pattern(instance->rule, GRAFT_SYM_SOURCE);
    bool wanted = false;
    for (uint32_t n = 0; n < source->node_count; n++) {
        wanted = wanted || is_maximum(source->nodes[n].op);
    }
    for (uint32_t n = 0; n < source->node_count && wanted; n++) {
        for (uint32_t i = GRAFT_ATTR_pad_before;
             i <= GRAFT_ATTR_pad_after && source->nodes[n].op == GRAFT_OP_pad; i++) {
            Z3_ast term = instance->nodes[GRAFT_SYM_SOURCE][n].attrs[i].term;
            Z3_ast zero = graft_sym_int(s, 0);
            *split = (graft_sym_split){
                .claims = {Z3_mk_eq(s->z3, term, zero), Z3_mk_lt(s->z3, zero, term)},
                  .count = 2
            };
            if (!graft_sym_holds(s, NULL, split->claims[0]) &&
                !graft_sym_holds(s, NULL, split->claims[1])) {
                return true;
            }
        }
    }
    return false;
}

static bool find_split(graft_sym *s, const graft_sym_instance *instance,
                       const graft_sym_side sides[2], graft_sym_split *split)
{
    return pin_symbols(s, instance, split) || split_broadcast(s, instance, sides, split) ||
           split_alternatives(s, split) || split_padding(s, instance, split);
}

/* ----------------------------------------------------------------------- folds */

static bool find_map(graft_sym *s, const graft_sym_pair *pair, uint32_t way,
                     Z3_ast to[GRAFT_SYM_BINDERS])
{
    return graft_sym_find_map(&hinter_of(s)->maps, s, pair, way, to);
}

/* --------------------------------------------------------------------- numbers */

/* Neither a number nor a function of numbers. */
static bool is_other(const graft_sym *s, Z3_ast term, const void *context)
{
    Z3_sort sort = Z3_get_sort(s->z3, term);
    (void)context;
    return sort == s->integer ||
           (graft_sym_kind(s, term) == Z3_OP_UNINTERPRETED && sort == s->boolean);
}

static bool is_pure(const graft_sym *s, Z3_ast term)
{
    return graft_sym_find(s, term, true, is_other, NULL) == NULL;
}

/* The question as an obligation: two sides where it is about an equation. Assumptions that mention
 * integers are left out, and nobody is asked what itself does. */
static graft_asked refute(graft_sym *s, const graft_term_state *term, Z3_ast question,
                          uint32_t given_count, const Z3_ast *given)
{
    graft_sym_hinter *h = hinter_of(s);
    graft_asked asked = {.formula = question};
    Z3_ast pure[GRAFT_ROOM_GIVEN];
    uint32_t pure_count = 0;
    if (!is_pure(s, question)) {
        return asked;
    }
    for (uint32_t i = 0; i < given_count; i++) {
        if (is_pure(s, given[i])) {
            pure[pure_count++] = given[i];
        }
    }
    graft_arena_reset(h->arena);
    graft_obligation o = {.arena = h->arena, .z3 = s->z3, .term = *term, .checked = true};
    Z3_ast claim = graft_sym_arg(s, question, 0);
    bool pair = graft_sym_kind(s, claim) == Z3_OP_EQ;
    Z3_ast left = pair ? graft_sym_arg(s, claim, 0) : NULL;
    Z3_ast right = pair ? graft_sym_arg(s, claim, 1) : NULL;
    const graft_obligation_parts parts = {.left = &left,
                                          .right = &right,
                                          .element_count = pair ? 1 : 0,
                                          .wanted = &claim,
                                          .wanted_count = pair ? 0 : 1,
                                          .given = pure,
                                          .given_count = pure_count};
    graft_obligation_state(&o, &parts);
    Z3_ast name = graft_obligation_name(&o, 0);
    if (!Z3_ast_map_contains(s->z3, h->unanswered, name) &&
        !graft_ask_refute(s->prover, &o, &asked)) {
        Z3_ast_map_insert(s->z3, h->unanswered, name, name);
    }
    return asked;
}

/* --------------------------------------------------------------------- opening */

void graft_sym_hinter_open(graft_sym_hinter *h, const graft_sym *s)
{
    *h = (graft_sym_hinter){
        .hints = {.context = h,
                  .can_hold = can_hold,
                  .laws = graft_sym_list_products,
                  .solve = graft_sym_find_solution,
                  .multiples = graft_sym_list_multiples,
                  .leave_out = leave_out,
                  .learn = keep_model,
                  .map = find_map,
                  .place = graft_sym_find_place,
                  .fixed = graft_sym_find_fixed,
                  .inside = graft_sym_find_inside,
                  .part = graft_sym_find_part,
                  .values = find_values,
                  .split = find_split,
                  .refute = refute},
        .s = s,
        .masks = {.arena = graft_arena_new(ARENA_BYTES)},
        .unanswered = graft_term_map(s->z3),
        .arena = graft_arena_new(ARENA_BYTES)
    };
}

void graft_sym_hinter_begin(graft_sym_hinter *h) { Z3_ast_map_reset(h->s->z3, h->unanswered); }

void graft_sym_hinter_close(graft_sym_hinter *h)
{
    Z3_ast_map_dec_ref(h->s->z3, h->unanswered);
    graft_arena_free(h->masks.arena);
    graft_arena_free(h->arena);
    for (uint32_t m = 0; m < h->model_count && m < GRAFT_LIMIT(MODELS); m++) {
        Z3_model_dec_ref(h->s->z3, h->models[m]);
    }
}
