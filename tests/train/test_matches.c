/* Matches that are kept from graph to graph are those that finding all of them gives. */
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/priced.h"
#include "tests/support/rows.h"
#include "train/search/matches.h"

enum { GIGABYTE = 1 << 30 };
static const graft_apply_options any_weights = {.weight_bytes_limit = GIGABYTE};

typedef struct {
    graft_xfers xfers;
    graft_matches matches;
    graft_state first;
    graft_state state;
} fixture;

static void open_all(graft_env *env, const graft_graph *graph, graft_limits limits,
                     uint32_t location_limit, fixture *f)
{
    graft_state_open(env->unit, &limits, &f->first);
    graft_state_open(env->unit, &limits, &f->state);
    CHECK_OK(graft_state_set(env, &f->first, graph));
    CHECK_OK(graft_state_set(env, &f->state, graph));
    graft_matches_open(env->unit, &f->xfers, location_limit, &f->matches);
}

/* What each node depends on, where it is kept. */
static void compare_sources(const graft_state *state, const graft_changes *kept,
                            const graft_changes *anew)
{
    for (graft_index i = 0; kept->sources != NULL && i < state->order.count; i++) {
        const graft_index n = state->order.order[i];
        for (size_t w = 0; w < kept->words; w++) {
            assert_true(graft_changes_column(kept, kept->sources, w)[n] ==
                        graft_changes_column(anew, anew->sources, w)[n]);
        }
    }
}

/* Finds those of the state, and compares them with all that are found without what was kept. */
static void find_matches(graft_env *env, fixture *f)
{
    graft_matches all;
    graft_matches_find(&f->matches, &f->state,
                       &any_weights); /* What it keeps grows in env->unit. */
    GRAFT_SCOPED(env->unit);
    graft_matches_open(env->unit, &f->xfers, f->matches.location_limit, &all);
    graft_matches_find(&all, &f->state, &any_weights);
    compare_sources(&f->state, &f->matches.changes, &all.changes);
    assert_int_equal(all.count, f->matches.count);
    for (uint32_t r = 0; r < f->xfers.count; r++) {
        const graft_rule *rule = &f->xfers.rules[r];
        assert_int_equal(graft_matches_count(&all, r), graft_matches_count(&f->matches, r));
        for (uint32_t l = 0; l < graft_matches_count(&all, r); l++) {
            const graft_match *a = graft_matches_get(&all, r, l);
            const graft_match *b = graft_matches_get(&f->matches, r, l);
            assert_memory_equal(a->nodes, b->nodes, rule->source.node_count * sizeof a->nodes[0]);
            assert_memory_equal(a->vars, b->vars, rule->var_count * sizeof a->vars[0]);
            assert_memory_equal(a->slots, b->slots, rule->slot_count * sizeof a->slots[0]);
        }
    }
}

/* A state that is copied has the order that it would find. */
static void compare_copy(graft_env *env, const fixture *f)
{
    GRAFT_SCOPED(env->unit);
    const graft_graph *graph = &f->state.graph;
    const graft_order *found = &f->state.order;
    graft_state copy;
    graft_state_open(env->unit, &graph->limits, &copy);
    CHECK_OK(graft_state_copy(env, &copy, graph, found));
    const graft_order *own = &copy.order;
    const size_t id = sizeof own->order[0];
    assert_int_equal(own->count, found->count);
    assert_memory_equal(own->order, found->order, own->count * id);
    assert_memory_equal(own->position, found->position, graph->node_end * id);
    assert_memory_equal(own->use_first, found->use_first, (graph->value_end + 1) * id);
    assert_memory_equal(own->uses, found->uses, own->use_first[graph->value_end] * id);
    assert_memory_equal(own->use_count, found->use_count, graph->value_end * id);
}

/* Random rewrites from the first graph on, and back to it now and then. */
static uint32_t walk(graft_env *env, fixture *f, graft_rng *rng, uint32_t steps, uint32_t episode)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (i % episode == 0) {
            CHECK_OK(graft_state_set(env, &f->state, &f->first.graph));
        }
        find_matches(env, f);
        if (f->matches.count == 0) {
            continue;
        }
        CHECK_OK(
            graft_matches_apply(env, &f->matches, graft_matches_draw(&f->matches, rng), &f->state));
        compare_copy(env, f);
        taken++;
    }
    return taken;
}

/* With all proved rules; a limit that cuts off most locations, and one that cuts off few. */
CHECK_CASE(test_models)
{
    static const struct {
        const char *model;
        uint32_t steps;
        uint32_t location_limit;
    } rows[] = {
        {"resnet8",     80, 200},
        {"resnet8",     80, 2  },
        {"dscnn",       80, 200},
        {"squeezenet",  40, 200},
        {"mobilenetv1", 40, 3  },
        {"nasrnn",      60, 200},
        {"nasrnn",      40, 5  },
        {"lstm",        20, 200},
        {"bert",        30, 200},
        {"vit",         30, 20 },
        {"inceptionv3", 12, 200},
        {"resnet50",    12, 200},
    };
    graft_xfers xfers;
    xfers = proved_xfers(env);
    graft_rng rng = check_rng(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const graft_zoo_entry *entry = NULL;
        graft_model *model = NULL;
        fixture f = {.xfers = xfers};
        CHECK_OK(graft_zoo_find(env, rows[i].model, &entry));
        CHECK_OK(graft_zoo_open(env, env->unit, entry, true, &model));
        open_all(env, &model->graph, graft_state_limits(&model->graph), rows[i].location_limit, &f);
        assert_true(walk(env, &f, &rng, rows[i].steps, 25) > 0);
        graft_arena_reset(env->unit);
    }
}

/* Sets the state to a graph; the number of matches there, compared with all of them. */
static uint32_t count_in(graft_env *env, fixture *f, const graft_graph *graph)
{
    CHECK_OK(graft_state_set(env, &f->state, graph));
    find_matches(env, f);
    return f->matches.count;
}

static void open_for(graft_env *env, graft_rule rule, const graft_graph *graph, graft_limits limits,
                     fixture *f)
{
    static const char *const name = "rule";
    graft_rule *rules = GRAFT_NEW(env->unit, graft_rule, 1);
    rules[0] = rule;
    graft_xfers_index(env->unit, rules, &name, 1, &f->xfers);
    open_all(env, graph, limits, 200, f);
}

/* x u and x v, where v depends on one or the other of two values. */
static graft_graph *build_products(graft_env *env, bool cycle)
{
    return build_text(env->unit,
                      "x = input 3 3; y = input 3 3; u = weight 3 3; a = matmul x u; f = relu a;"
                      "g = relu y; v = add y %c; b = matmul x v; out b f g",
                      cycle ? 'f' : 'g')
        .graph;
}

/* Neither product changes, but a path between them comes and goes. */
CHECK_CASE(test_paths)
{
    fixture f;
    const graft_graph *apart = build_products(env, false);
    const graft_graph *joined = build_products(env, true);
    open_for(env, rows_parse(env, RULE_MERGE_MATMUL), apart, apart->limits, &f);
    assert_int_equal(count_in(env, &f, apart), 2);
    assert_int_equal(count_in(env, &f, joined), 0);
    assert_int_equal(count_in(env, &f, apart), 2);
}

#define PAIR(op) "x = input 4; a = relu x; y = input 4; b = " op " y; out a b"

/* Nothing leads from the one operator to the other. */
CHECK_CASE(test_no_link)
{
    fixture f;
    const graft_graph *without = build_text(env->unit, PAIR("exp")).graph;
    const graft_graph *with = build_text(env->unit, PAIR("tanh")).graph;
    open_for(env, rows_parse(env, "[relu(a), tanh(b)] = [relu(a), tanh(b)]"), without,
             without->limits, &f);
    assert_int_equal(count_in(env, &f, without), 0);
    assert_int_equal(count_in(env, &f, with), 1);
    assert_int_equal(count_in(env, &f, without), 0);
}

/* Room comes and goes at the other end of the graph. */
CHECK_CASE(test_room)
{
    fixture f;
    const graft_limits limits = {12, 30, 60, 8};
    graft_graph *graphs[2];
    for (uint32_t i = 0; i < 2; i++) {
        built b = {.graph = graphs[i] = build_graph_within(env->unit, limits)};
        build_more(&b, "x = input 4; y = relu x; out y");
        for (uint32_t n = 0; n < (i == 0 ? 4 : 10); n++) {
            build_more(&b, "x = tanh x");
        }
        build_more(&b, "out x");
    }
    open_for(env, rows_parse(env, "relu(a) = relu(relu(a))"), graphs[0], limits, &f);
    assert_int_equal(count_in(env, &f, graphs[0]), 1);
    assert_int_equal(count_in(env, &f, graphs[1]), 0);
    assert_int_equal(count_in(env, &f, graphs[0]), 1);
}
