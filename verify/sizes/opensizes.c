/* opensizes.c - see opensizes.h. */
#include "verify/sizes/opensizes.h"

#include "graph/base/table.h"
#include "verify/sizes/graphsizes.h"
#include "verify/sizes/symplain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* The solver's own, for one question. All are about a few numbers: sums, quotients by numbers, and
 * products where something is reshaped. */
enum { RESOURCES_MOST = 400000 };

/* What a node's sizes follow from, and they. */
typedef struct {
    uint32_t op;     /* GRAFT_OP_NONE: nothing is known yet. */
    uint32_t source; /* Of an opaque node: its record. */
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_sym_shape in[GRAFT_MAX_INPUTS];
    graft_sym_shape out[GRAFT_MAX_OUTPUTS];
    bool understood;
} known_node;

typedef struct {
    XXH128_hash_t question; /* The rule, its attributes, and the sizes it is asked about. */
    bool holds;
} answer;

struct graft_open_sizes {
    graft_env *env;
    const graft_model *model;
    graft_prove_options options;
    graft_prove_result counts;
    graft_prover prover;
    graft_sym s;
    graft_sym_plain plain;
    Z3_solver solver;   /* Knows that every symbol is at least 1. */
    Z3_ast_map symbols; /* Of which it knows this. */
    const graft_graph *graph;
    const graft_order *order;
    bool looked;             /* `shapes` are those of the graph. */
    graft_sym_shape *shapes; /* By value; of rank GRAFT_RANK_UNKNOWN where nothing is known. */
    known_node *nodes;       /* By node. */
    uint32_t value_capacity;
    uint32_t node_capacity;
    answer *answers;
    uint32_t answer_count;
    uint32_t answer_capacity;
    graft_table table; /* Of `answers`. */
};

static void open_solver(graft_open_sizes *o)
{
    graft_prover_open(&o->prover, &o->options, &o->counts);
    graft_sym_open(&o->s, &o->prover);
    graft_sym_plain_open(&o->plain, &o->s, o->env->life);
    o->solver = Z3_mk_solver(o->s.z3);
    Z3_solver_inc_ref(o->s.z3, o->solver);
    graft_prover_set(o->s.z3, o->solver, "rlimit", RESOURCES_MOST);
    o->symbols = graft_term_map(o->s.z3);
}

void graft_open_sizes_close(graft_open_sizes *o)
{
    Z3_ast_map_dec_ref(o->s.z3, o->symbols);
    Z3_solver_dec_ref(o->s.z3, o->solver);
    graft_sym_close(&o->s);
    graft_prover_close(&o->prover);
}

graft_open_sizes *graft_open_sizes_open(graft_env *env, const graft_model *model)
{
    graft_open_sizes *o = GRAFT_NEW(env->life, graft_open_sizes, 1);
    o->env = env;
    o->model = model;
    o->options = graft_prove_defaults();
    o->options.most =
        (graft_effort){UINT64_MAX, UINT64_MAX}; /* A search asks as long as it runs. */
    open_solver(o);
    return o;
}

void graft_open_sizes_forget(graft_open_sizes *o)
{
    graft_open_sizes_close(o);
    open_solver(o);
    for (uint32_t n = 0; n < o->node_capacity; n++) {
        o->nodes[n].op = GRAFT_OP_NONE;
    }
    o->answer_count = 0;
    memset(&o->table, 0, sizeof o->table);
    o->looked = false;
}

/* Z3 keeps every term of a context, those of all questions so far. */
static bool is_half_full(const graft_open_sizes *o)
{
    const uint64_t megabyte = 1 << 20;
    return Z3_get_estimated_alloc_size() / megabyte >= o->options.memory_mb / 2;
}

/* --------------------------------------------------------- sizes as terms */

/* The size of a name, or of an axis of a value. */
static Z3_ast make_symbol(graft_open_sizes *o, const char *text)
{
    Z3_context z3 = o->s.z3;
    Z3_ast symbol = Z3_mk_const(z3, Z3_mk_string_symbol(z3, text), o->s.integer);
    if (!Z3_ast_map_contains(z3, o->symbols, symbol)) {
        Z3_ast_map_insert(z3, o->symbols, symbol, symbol);
        Z3_solver_assert(z3, o->solver, Z3_mk_le(z3, graft_sym_int(&o->s, 1), symbol));
    }
    return symbol;
}

static void write_fixed(const graft_open_sizes *o, const graft_shape *shape, graft_sym_shape *out)
{
    out->rank = shape->rank;
    for (uint32_t i = 0; shape->rank != GRAFT_RANK_UNKNOWN && i < shape->rank; i++) {
        out->dims[i] = graft_sym_int(&o->s, shape->dims[i]);
    }
}

/* Of an input, or of what an opaque node makes. */
static void write_given(graft_open_sizes *o, graft_index value, graft_sym_shape *out)
{
    const graft_shape *shape = &o->graph->values[value].shape;
    write_fixed(o, shape, out);
    for (uint32_t i = 0; shape->rank != GRAFT_RANK_UNKNOWN && i < shape->rank; i++) {
        const graft_model_axis axis = graft_model_axis_of(o->model, o->graph, value, i);
        const char *name = graft_model_value_name(o->model, o->graph, value);
        graft_mark mark = graft_arena_mark(o->env->scratch);
        if (axis.name != NULL) {
            out->dims[i] =
                make_symbol(o, graft_arena_printf(o->env->scratch, "size %s", axis.name));
        } else if (!axis.fixed && name != NULL) {
            out->dims[i] = make_symbol(
                o, graft_arena_printf(o->env->scratch, "axis %" PRIu32 " of %s", i, name));
        } else if (!axis.fixed) {
            out->rank = GRAFT_RANK_UNKNOWN;
        }
        graft_arena_release(o->env->scratch, mark);
        if (out->rank == GRAFT_RANK_UNKNOWN) {
            return;
        }
    }
}

/* What reshape and fill make says their attributes' number of sizes. */
static uint32_t count_made(uint32_t op, const int32_t *attrs)
{
    const uint32_t first = op == GRAFT_OP_fill ? GRAFT_ATTR_fill_dim_0 : 0;
    uint32_t made = 0;
    while ((op == GRAFT_OP_fill || op == GRAFT_OP_reshape) && made < GRAFT_MAX_RANK &&
           attrs[first + made] > 0) {
        made++;
    }
    return made;
}

/* Works out the sizes of what a node makes; those of its inputs are known. */
static void apply_node(graft_open_sizes *o, const graft_node *node, known_node *known)
{
    GRAFT_SCOPED(o->env->unit);
    graft_sym_equations *claims = GRAFT_NEW(o->env->unit, graft_sym_equations, 1);
    const graft_sym_shape *in[GRAFT_MAX_INPUTS] = {NULL};
    claims->s = &o->s;
    known->understood = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        in[i] = &known->in[i];
        known->understood = known->understood && in[i]->rank != GRAFT_RANK_UNKNOWN;
    }
    known->understood =
        known->understood && graft_sym_apply(claims, node->op, node->attrs, in,
                                             count_made(node->op, node->attrs), known->out);
    for (uint32_t k = 0; known->understood && k < node->output_count; k++) {
        for (uint32_t i = 0; i < known->out[k].rank; i++) {
            known->out[k].dims[i] =
                Z3_simplify(o->s.z3, graft_sym_write_sizes(&o->s, known->out[k].dims[i]));
        }
    }
}

static bool is_same_shape(const graft_sym_shape *a, const graft_sym_shape *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && a->rank != GRAFT_RANK_UNKNOWN && i < a->rank; i++) {
        same = a->dims[i] == b->dims[i];
    }
    return same;
}

static bool is_same_node(const known_node *a, const known_node *b, uint32_t input_count)
{
    bool same = a->op == b->op && memcmp(a->attrs, b->attrs, sizeof a->attrs) == 0;
    for (uint32_t i = 0; same && i < input_count; i++) {
        same = is_same_shape(&a->in[i], &b->in[i]);
    }
    return same;
}

/* A node of the engine's operators: as before where nothing before it has changed. */
static void look_at_node(graft_open_sizes *o, graft_index n)
{
    const graft_node *node = &o->graph->nodes[n];
    known_node *known = &o->nodes[n];
    known_node asked = {.op = node->op};
    memcpy(asked.attrs, node->attrs, sizeof asked.attrs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        asked.in[i] = o->shapes[o->graph->edges[node->first_edge + i]];
    }
    if (!is_same_node(known, &asked, node->input_count)) {
        *known = asked;
        apply_node(o, node, known);
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
        graft_sym_shape *out = &o->shapes[graft_node_output(o->graph, n, k)];
        *out = known->out[k];
        out->rank = known->understood ? out->rank : GRAFT_RANK_UNKNOWN;
    }
}

/* What an opaque node makes is as the file says; what was found of the first outputs is kept. */
static void look_at_opaque(graft_open_sizes *o, graft_index n)
{
    const graft_node *node = &o->graph->nodes[n];
    known_node *known = &o->nodes[n];
    const bool looked = known->op == node->op && known->source == node->source;
    *known = looked ? *known : (known_node){.op = node->op, .source = node->source};
    for (uint32_t k = 0; k < node->output_count; k++) {
        const graft_index value = graft_node_output(o->graph, n, k);
        const bool kept = k < GRAFT_MAX_OUTPUTS;
        if (kept && looked) {
            o->shapes[value] = known->out[k];
            continue;
        }
        write_given(o, value, &o->shapes[value]);
        if (kept) {
            known->out[k] = o->shapes[value];
        }
    }
}

static void make_room(graft_open_sizes *o)
{
    const graft_limits *limits = &o->graph->limits;
    if (o->value_capacity < limits->values) {
        o->value_capacity = limits->values;
        o->shapes = GRAFT_NEW(o->env->life, graft_sym_shape, limits->values);
    }
    if (o->node_capacity < limits->nodes) {
        o->node_capacity = limits->nodes;
        o->nodes = GRAFT_NEW(o->env->life, known_node, limits->nodes);
    }
}

static void find_sizes(graft_open_sizes *o)
{
    make_room(o);
    for (graft_index v = 0; v < o->graph->value_end; v++) {
        const graft_value *value = &o->graph->values[v];
        o->shapes[v].rank = GRAFT_RANK_UNKNOWN;
        if (value->kind == GRAFT_VALUE_INPUT) {
            write_given(o, v, &o->shapes[v]);
        } else if (value->is_const) {
            write_fixed(o, &value->shape, &o->shapes[v]);
        }
    }
    for (graft_index i = 0; i < o->order->count; i++) {
        const graft_index n = o->order->order[i];
        const graft_node *node = &o->graph->nodes[n];
        if (node->is_const) {
            continue;
        }
        if (node->op < GRAFT_OP_COUNT) {
            look_at_node(o, n);
        } else {
            look_at_opaque(o, n);
        }
    }
    o->looked = true;
}

void graft_open_sizes_look_at(void *sizes, const graft_graph *graph, const graft_order *order)
{
    graft_open_sizes *o = sizes;
    o->graph = graph;
    o->order = order;
    o->looked = false;
    if (is_half_full(o)) {
        graft_open_sizes_forget(o);
    }
}

/* --------------------------------------------------------------- questions */

typedef struct {
    graft_sym_shape vars[GRAFT_RULE_MAX_VARS];
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
    bool is_const[GRAFT_RULE_MAX_VARS];
} question;

/* Of the numbers of the terms, which live as long as the context does. */
static XXH128_hash_t hash_question(const graft_open_sizes *o, const graft_rule *rule,
                                   const question *q)
{
    uint32_t terms[GRAFT_RULE_MAX_VARS][1 + GRAFT_MAX_RANK] = {{0}};
    for (uint32_t v = 0; v < rule->var_count; v++) {
        terms[v][0] = q->vars[v].rank;
        for (uint32_t i = 0; i < q->vars[v].rank; i++) {
            terms[v][1 + i] = Z3_get_ast_id(o->s.z3, q->vars[v].dims[i]);
        }
    }
    const XXH128_hash_t parts[4] = {
        XXH3_128bits(rule, sizeof *rule), XXH3_128bits(terms, sizeof terms),
        XXH3_128bits(q->slots, sizeof q->slots), XXH3_128bits(q->is_const, sizeof q->is_const)};
    return XXH3_128bits(parts, sizeof parts);
}

/* Ranks, and what reshape and fill make at the sample. False when an attribute has no value. */
static bool find_case(const graft_rule *rule, const graft_sym_found *found, graft_sym_case *c)
{
    for (uint32_t v = 0; v < rule->var_count; v++) {
        c->ranks[v] = (int8_t)found->sample[v]->rank;
    }
    for (uint32_t side = 0; side < 2; side++) {
        const graft_pattern *pattern = graft_sym_pattern(rule, side);
        for (uint32_t n = 0; n < pattern->node_count; n++) {
            const graft_pattern_node *node = &pattern->nodes[n];
            int32_t attrs[GRAFT_MAX_ATTRS] = {0};
            for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
                const graft_term *term = &node->attrs[i];
                int64_t number =
                    term->kind == GRAFT_TERM_SLOT ? found->slots[term->value] : term->value;
                if (term->kind == GRAFT_TERM_CODE &&
                    !graft_code_run(rule, (uint32_t)term->value, found->sample, found->is_const,
                                    found->slots, &number)) {
                    return false;
                }
                attrs[i] = number < INT32_MIN || number > INT32_MAX ? 0 : (int32_t)number;
            }
            c->made[side][n] = (int8_t)count_made(node->op, attrs);
        }
    }
    return true;
}

static Z3_ast conjoin(graft_sym *s, const Z3_ast *claims, uint32_t count)
{
    Z3_ast all = Z3_mk_true(s->z3);
    for (uint32_t i = 0; i < count; i++) {
        all = Z3_mk_and(s->z3, 2, (Z3_ast[]){all, graft_sym_write_sizes(s, claims[i])});
    }
    return all;
}

/* Whether a precondition that asks which variables are weights is told. */
static void assert_kinds(graft_open_sizes *o, const graft_rule *rule, const question *q)
{
    Z3_context z3 = o->s.z3;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        /* As symcode.c names them. */
        Z3_ast flag = graft_term_constant(z3, o->s.boolean, "const%" PRIu32, v);
        Z3_solver_assert(z3, o->solver, q->is_const[v] ? flag : Z3_mk_not(z3, flag));
    }
}

static bool ask(graft_open_sizes *o, const graft_rule *rule, const question *q,
                const graft_sym_equations *claims, uint32_t given)
{
    Z3_context z3 = o->s.z3;
    if (claims->claim_count == given) {
        return true; /* Every claim was one about numbers. */
    }
    Z3_solver_push(z3, o->solver);
    assert_kinds(o, rule, q);
    Z3_solver_assert(z3, o->solver, conjoin(&o->s, claims->claims, given));
    Z3_ast wanted = conjoin(&o->s, &claims->claims[given], claims->claim_count - given);
    Z3_solver_assert(z3, o->solver, Z3_mk_not(z3, wanted));
    const bool holds = graft_prover_check(&o->prover, o->solver) == Z3_L_FALSE;
    Z3_solver_pop(z3, o->solver, 1);
    return holds;
}

static bool decide(graft_open_sizes *o, const graft_rule *rule, const question *q,
                   const graft_shape *const *sample)
{
    GRAFT_SCOPED(o->env->unit);
    graft_sym_equations *claims = GRAFT_NEW(o->env->unit, graft_sym_equations, 1);
    graft_sym_case *c = GRAFT_NEW(o->env->unit, graft_sym_case, 1);
    const graft_sym_found found = {
        .vars = q->vars, .sample = sample, .is_const = q->is_const, .slots = q->slots};
    uint32_t given = 0;
    claims->s = &o->s;
    const bool holds = find_case(rule, &found, c) &&
                       graft_sym_claims_of_match(&o->s, rule, c, &found, claims, &given) &&
                       ask(o, rule, q, claims, given);
    return holds;
}

static uint64_t hash_answer(const void *owner, uint32_t number)
{
    const graft_open_sizes *o = owner;
    return o->answers[number].question.low64;
}

/* The answer to a question that was asked before; or a new one, of which it is not known. */
static answer *find_answer(graft_open_sizes *o, XXH128_hash_t hash, bool *is_new)
{
    graft_table_reserve(o->env->life, &o->table, o, hash_answer);
    GRAFT_EACH_ALIKE(&o->table, hash.low64, number)
    {
        if (XXH128_isEqual(o->answers[number].question, hash)) {
            *is_new = false;
            return &o->answers[number];
        }
    }
    *is_new = true;
    graft_table_insert(&o->table, hash.low64, o->answer_count);
    answer *added =
        &GRAFT_PUSH(o->env->life, o->answers, o->answer_count, o->answer_capacity, 1024);
    *added = (answer){.question = hash};
    return added;
}

bool graft_open_sizes_hold(void *sizes, const graft_rule *rule, const graft_match *match)
{
    graft_open_sizes *o = sizes;
    const graft_shape *sample[GRAFT_RULE_MAX_VARS];
    question q;
    bool is_new = false;
    if (!o->looked) {
        find_sizes(o);
    }
    memset(&q, 0, sizeof q);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        const graft_value *value = &o->graph->values[match->vars[v]];
        sample[v] = &value->shape;
        q.vars[v] = o->shapes[match->vars[v]];
        q.is_const[v] = value->is_const;
        if (q.vars[v].rank == GRAFT_RANK_UNKNOWN) {
            return false;
        }
    }
    memcpy(q.slots, match->slots, rule->slot_count * sizeof q.slots[0]);
    answer *known = find_answer(o, hash_question(o, rule, &q), &is_new);
    if (is_new) {
        known->holds = decide(o, rule, &q, sample);
    }
    return known->holds;
}
