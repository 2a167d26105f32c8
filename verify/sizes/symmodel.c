/* symmodel.c - see symmodel.h. */
#include "verify/sizes/symmodel.h"

#include "verify/core/symassume.h"
#include "verify/core/symcase.h"
#include "verify/core/symshape.h"
#include "verify/sizes/hinter.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum {
    CASES_MOST = 400,
    ATOMS_MOST = 24,
    QUESTION_LIMIT = 60000,
    NUMBER_MOST = 400,
    SIZES_MOST = GRAFT_RULE_MAX_VARS * GRAFT_MAX_RANK,
    RANKS_EQUAL = 4
};

typedef struct {
    graft_env *env;
    const graft_rule *rule;
    graft_sym s;
    graft_prove_result counts;
    graft_sym_hinter hinter;
    graft_sym_instance instance;
    Z3_solver solver;
    Z3_ast atoms[ATOMS_MOST]; /* Comparisons that may turn out either way, of the case at hand. */
    uint32_t atom_count;
    uint32_t cases;
    graft_point *points;
    uint32_t count;
    uint32_t most;
} seeker;

/* ------------------------------------------------------------------- points */

static bool read_integer(const seeker *k, Z3_model model, Z3_ast term, int32_t *number)
{
    Z3_context z3 = k->s.z3;
    Z3_ast value = NULL;
    int found = 0;
    bool read = Z3_model_eval(z3, model, term, true, &value) && Z3_is_numeral_ast(z3, value) &&
                Z3_get_numeral_int(z3, value, &found);
    *number = found;
    return read;
}

static bool read_real(const seeker *k, Z3_model model, const graft_sym_attr *attr, int32_t *bits)
{
    Z3_context z3 = k->s.z3;
    float number = attr->infinite < 0 ? -HUGE_VALF : HUGE_VALF;
    Z3_ast value = NULL;
    if (attr->infinite == 0) {
        if (!Z3_model_eval(z3, model, attr->term, true, &value) || !Z3_is_numeral_ast(z3, value)) {
            return false;
        }
        number = (float)Z3_get_numeral_double(z3, value);
    }
    memcpy(bits, &number, sizeof *bits);
    return true;
}

static bool read_attr(const seeker *k, Z3_model model, const graft_pattern_node *node, uint32_t n,
                      uint32_t i, graft_point *point)
{
    const graft_sym_attr *attr = &k->instance.nodes[GRAFT_SYM_SOURCE][n].attrs[i];
    int32_t *slot = &point->slots[node->attrs[i].value];
    if (k->instance.c->chosen[node->attrs[i].value]) {
        *slot = k->instance.c->slots[node->attrs[i].value];
        return true;
    }
    if (graft_op_attr(node->op, i)->kind == GRAFT_ATTR_FLOAT) {
        return read_real(k, model, attr, slot);
    }
    return attr->term == NULL || read_integer(k, model, attr->term, slot);
}

/* The instance that a model is of; false when it is none. */
static bool read_point(const seeker *k, Z3_model model, graft_point *point)
{
    const graft_rule *rule = k->rule;
    graft_instance instance;
    bool read = true;
    memset(point, 0, sizeof *point);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        point->vars[v].rank = (uint8_t)k->instance.vars[v].rank;
        point->vars[v].dtype = GRAFT_DTYPE_F32;
        for (uint32_t i = 0; i < k->instance.vars[v].rank; i++) {
            read = read &&
                   read_integer(k, model, k->instance.vars[v].dims[i], &point->vars[v].dims[i]);
        }
    }
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count && read; i++) {
            read = node->attrs[i].kind != GRAFT_TERM_SLOT || read_attr(k, model, node, n, i, point);
        }
    }
    return read && graft_instance_build(&instance, rule, point) == GRAFT_FIT_OK;
}

static void keep_point(seeker *k, const graft_point *point)
{
    const uint64_t hash = XXH3_64bits(point, sizeof *point);
    bool known = k->count == k->most;
    for (uint32_t i = 0; i < k->count && !known; i++) {
        known = XXH3_64bits(&k->points[i], sizeof *point) == hash;
    }
    if (!known) {
        k->points[k->count++] = *point;
    }
}

/* Whether what the solver was told has a model; keeps the instance that it is of. */
static bool ask(seeker *k)
{
    graft_point point;
    if (graft_sym_is_spent(&k->s) || k->count == k->most ||
        graft_prover_check(k->s.prover, k->solver) != Z3_L_TRUE) {
        return false;
    }
    Z3_model model = Z3_solver_get_model(k->s.z3, k->solver);
    if (model != NULL) {
        Z3_model_inc_ref(k->s.z3, model);
        if (read_point(k, model, &point)) {
            keep_point(k, &point);
        }
        Z3_model_dec_ref(k->s.z3, model);
    }
    return true;
}

/* ----------------------------------------------------------------- questions */

static uint32_t list_sizes(const seeker *k, Z3_ast *sizes)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < k->rule->var_count; v++) {
        for (uint32_t i = 0; i < k->instance.vars[v].rank; i++) {
            sizes[count++] = k->instance.vars[v].dims[i];
        }
    }
    return count;
}

/* Sizes of 2 and more: all of them, else one after the other, each if it can be. */
static void ask_for_large(seeker *k)
{
    Z3_context z3 = k->s.z3;
    Z3_ast large[SIZES_MOST];
    uint32_t count = list_sizes(k, large);
    for (uint32_t i = 0; i < count; i++) {
        large[i] = Z3_mk_ge(z3, large[i], graft_sym_int(&k->s, 2));
    }
    Z3_solver_push(z3, k->solver);
    Z3_solver_assert(z3, k->solver, Z3_mk_and(z3, count, large));
    bool all = ask(k);
    Z3_solver_pop(z3, k->solver, 1);
    for (uint32_t i = 0; i < count && !all; i++) {
        Z3_solver_push(z3, k->solver);
        Z3_solver_assert(z3, k->solver, large[i]);
        bool can = ask(k);
        Z3_solver_pop(z3, k->solver, 1);
        if (can) {
            Z3_solver_assert(z3, k->solver, large[i]);
        }
    }
}

static void ask_with(seeker *k, Z3_ast claim)
{
    Z3_context z3 = k->s.z3;
    Z3_solver_push(z3, k->solver);
    if (claim != NULL) {
        Z3_solver_assert(z3, k->solver, claim);
    }
    if (ask(k)) {
        ask_for_large(k);
    }
    Z3_solver_pop(z3, k->solver, 1);
}

static bool is_comparison(const seeker *k, Z3_ast term)
{
    Z3_decl_kind kind = graft_sym_kind(&k->s, term);
    bool order = kind == Z3_OP_LE || kind == Z3_OP_GE || kind == Z3_OP_LT || kind == Z3_OP_GT;
    return order || (kind == Z3_OP_EQ &&
                     Z3_get_sort(k->s.z3, graft_sym_arg(&k->s, term, 0)) != k->s.boolean);
}

static bool visit_atom(void *context, Z3_ast term)
{
    seeker *k = context;
    bool known = !is_comparison(k, term) || k->atom_count == ATOMS_MOST;
    for (uint32_t i = 0; i < k->atom_count && !known; i++) {
        known = k->atoms[i] == term;
    }
    if (!known) {
        k->atoms[k->atom_count++] = term;
    }
    return true;
}

/* The comparisons inside a term, but not the term itself. */
static void list_atoms(seeker *k, Z3_ast term)
{
    for (uint32_t i = 0; i < graft_sym_arity(&k->s, term); i++) {
        graft_sym_walk(&k->s, graft_sym_arg(&k->s, term, i), visit_atom, k);
    }
}

static void list_target_atoms(seeker *k)
{
    const graft_pattern *target = &k->rule->target;
    for (uint32_t n = 0; n < target->node_count; n++) {
        for (uint32_t i = 0; i < graft_op(target->nodes[n].op)->attr_count; i++) {
            Z3_ast term = k->instance.nodes[GRAFT_SYM_TARGET][n].attrs[i].term;
            if (target->nodes[n].attrs[i].kind == GRAFT_TERM_CODE && term != NULL) {
                graft_sym_walk(&k->s, graft_sym_expand(&k->s, term), visit_atom, k);
            }
        }
    }
}

static bool ask_case(seeker *k, const graft_sym_case *c)
{
    const graft_sym_extra none = {.count = 0};
    const char *why = NULL;
    Z3_context z3 = k->s.z3;
    Z3_ast sizes[SIZES_MOST];
    k->atom_count = 0;
    if (graft_sym_shapes(&k->s, k->rule, c, &none, &k->instance, &why) != GRAFT_SYM_FITS) {
        return ++k->cases < CASES_MOST;
    }
    Z3_solver_push(z3, k->solver);
    for (uint32_t i = 0; i < k->s.assumed->count; i++) {
        Z3_solver_assert(z3, k->solver, k->s.assumed->claims[i]);
        list_atoms(k, k->s.assumed->claims[i]);
    }
    list_target_atoms(k);
    uint32_t count = list_sizes(k, sizes);
    for (uint32_t i = 0; i < count; i++) {
        Z3_solver_assert(z3, k->solver, Z3_mk_le(z3, sizes[i], graft_sym_int(&k->s, NUMBER_MOST)));
    }
    ask_with(k, NULL);
    for (uint32_t i = 0; i < k->atom_count; i++) {
        ask_with(k, k->atoms[i]);
        ask_with(k, Z3_mk_not(z3, k->atoms[i]));
    }
    Z3_solver_pop(z3, k->solver, 1);
    return ++k->cases < CASES_MOST && k->count < k->most && !graft_sym_is_spent(&k->s);
}

/* Where scalars stand for all shapes, what the precondition says of shapes is of interest here:
 * some cases in which all ranks are equal. */
static bool visit_case(void *context, const graft_sym_case *c)
{
    seeker *k = context;
    bool goes_on = true;
    if (!c->scalar) {
        return ask_case(k, c);
    }
    for (uint32_t rank = 0; rank <= RANKS_EQUAL && goes_on; rank++) {
        graft_sym_case equal = *c;
        equal.scalar = false;
        memset(equal.ranks, (int)rank, sizeof equal.ranks);
        memset(equal.node_ranks, (int)rank, sizeof equal.node_ranks);
        memset(equal.made, (int)rank, sizeof equal.made);
        goes_on = ask_case(k, &equal);
    }
    return goes_on;
}

uint32_t graft_symbolic_models(graft_env *env, const graft_rule *rule, uint64_t resources,
                               graft_point *points, uint32_t most)
{
    graft_prover prover;
    graft_prove_options options = graft_prove_defaults();
    GRAFT_SCOPED(env->unit);
    seeker *k = GRAFT_NEW(env->unit, seeker, 1);
    options.most.resource_count = resources;
    *k = (seeker){.env = env, .rule = rule, .points = points, .most = most};
    graft_prover_open(&prover, &options, &k->counts);
    graft_sym_open(&k->s, &prover);
    graft_sym_hinter_open(&k->hinter, &k->s);
    k->s.hints = &k->hinter.hints;
    k->solver = Z3_mk_simple_solver(k->s.z3);
    Z3_solver_inc_ref(k->s.z3, k->solver);
    graft_prover_set(k->s.z3, k->solver, "rlimit", QUESTION_LIMIT);
    (void)graft_sym_cases(rule, visit_case, k);
    uint32_t count = k->count;
    Z3_solver_dec_ref(k->s.z3, k->solver);
    graft_sym_hinter_close(&k->hinter);
    graft_sym_close(&k->s);
    graft_prover_close(&prover);
    return count;
}
