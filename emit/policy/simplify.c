/* simplify.c - see simplify.h. */
#include "emit/policy/simplify.h"

#include "emit/command/written.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/rule/rulefile.h"
#include "models/zoo.h"

#include <stdlib.h>
#include <string.h>

/* More places of one rule are found once the first have been taken. */
enum { LOCATIONS_MOST = 64 };

graft_status graft_held_open(graft_env *env, FILE *out, graft_held *held)
{
    *held = (graft_held){.out = out};
    held->lines = open_memstream(&held->text, &held->size);
    return held->lines != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for what is printed of bodies");
}

void graft_held_settle(graft_held *held, bool kept)
{
    (void)fflush(held->lines);
    if (kept) {
        (void)fwrite(held->text, 1, held->size, held->out);
    }
    rewind(held->lines);
}

void graft_held_close(graft_held *held)
{
    if (held->lines != NULL) {
        (void)fclose(held->lines);
    }
    free(held->text);
    *held = (graft_held){.out = NULL};
}

static bool takes_part(const graft_rule_entry *entry)
{
    return entry->proof == GRAFT_PROOF_UNBOUNDED && graft_numeric_is_exact(entry->numeric) &&
           graft_rule_is_always(&entry->rule);
}

static void choose_rules(graft_arena *arena, const graft_ruleset *sets, uint32_t set_count,
                         const graft_rewrite_judge *judge, graft_xfers *xfers)
{
    uint32_t most = 0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < set_count; s++) {
        most += sets[s].count;
    }
    graft_rule *rules = GRAFT_NEW(arena, graft_rule, most);
    const char **names = GRAFT_NEW(arena, const char *, most);
    for (uint32_t s = 0; s < set_count; s++) {
        for (uint32_t i = 0; i < sets[s].count; i++) {
            const graft_rule_entry *entry = &sets[s].entries[i];
            if (takes_part(entry)) {
                rules[count] = entry->rule;
                names[count++] = entry->name;
            }
        }
    }
    graft_xfers_index(arena, rules, names, count, xfers);
    xfers->judge = judge;
}

typedef struct {
    uint32_t rule;
    graft_match match;
} place;

/* What a model's graph becomes. A node of the file that was read as several is written as one again
 * only while all of these are there, so a rule that takes one of them may leave a longer file: such
 * a place is tried, and left alone where that is so. */
typedef struct {
    const graft_model *model;
    const graft_xfers *xfers;
    uint32_t *parts; /* By ONNX node: of how many nodes it was read. */
    graft_matches matches;
    graft_state *state;
    graft_state before; /* To go back to. */
    place *left;        /* Places that were left alone. */
    uint32_t left_count;
    uint32_t left_capacity;
} rewriting;

static void count_parts(graft_env *env, rewriting *w)
{
    const graft_model *model = w->model;
    uint32_t most = 0;
    for (uint32_t r = 0; r < model->record_count; r++) {
        most = model->records[r].onnx_node >= most ? model->records[r].onnx_node + 1 : most;
    }
    w->parts = GRAFT_NEW(env->unit, uint32_t, most);
    for (uint32_t r = 0; r < model->record_count; r++) {
        w->parts[model->records[r].onnx_node]++;
    }
}

static bool takes_a_part(const rewriting *w, uint32_t rule, const graft_match *match)
{
    bool takes = false;
    for (uint32_t n = 0; n < w->xfers->rules[rule].source.node_count; n++) {
        const uint32_t source = w->state->graph.nodes[match->nodes[n]].source;
        takes = takes || (source < w->model->record_count &&
                          w->parts[w->model->records[source].onnx_node] > 1);
    }
    return takes;
}

static bool is_left(const rewriting *w, uint32_t rule, const graft_match *match)
{
    const size_t bytes = w->xfers->rules[rule].source.node_count * sizeof match->nodes[0];
    bool left = false;
    for (uint32_t i = 0; i < w->left_count && !left; i++) {
        left = w->left[i].rule == rule && memcmp(w->left[i].match.nodes, match->nodes, bytes) == 0;
    }
    return left;
}

/* *applied is false, and the graph is as it was, where the file would be longer. */
static graft_status apply_at(graft_env *env, rewriting *w, uint32_t rule, const graft_match *match,
                             bool *applied)
{
    const graft_apply_options options = {.weight_bytes_limit = 0};
    const bool apart = takes_a_part(w, rule, match);
    graft_model_form before = {.nodes = 0};
    graft_model_form after = {.nodes = 0};
    if (apart) {
        GRAFT_PASS(graft_model_form_of(env, w->model, &w->state->graph, &before));
        GRAFT_PASS(graft_state_set(env, &w->before, &w->state->graph));
    }
    GRAFT_PASS(graft_state_apply(env, w->state, &w->xfers->rules[rule], match, &options));
    if (apart) {
        GRAFT_PASS(graft_model_form_of(env, w->model, &w->state->graph, &after));
    }
    *applied = after.nodes <= before.nodes;
    if (!*applied) {
        GRAFT_PUSH(env->unit, w->left, w->left_count, w->left_capacity, 16) = (place){rule, *match};
        GRAFT_PASS(graft_state_set(env, w->state, &w->before.graph));
    }
    return GRAFT_OK;
}

/* Applies the first rule that fits; *found is false when none does. Every step leaves fewer nodes
 * in the graph, and no more in the file. */
static graft_status apply_first(graft_env *env, rewriting *w, bool *found)
{
    const graft_apply_options options = {.weight_bytes_limit = 0};
    graft_matches_find(&w->matches, w->state, &options);
    *found = false;
    for (uint32_t r = 0; r < w->xfers->count && !*found; r++) {
        for (uint32_t i = 0; i < graft_matches_count(&w->matches, r) && !*found; i++) {
            const graft_match *match = graft_matches_get(&w->matches, r, i);
            if (!is_left(w, r, match)) {
                GRAFT_PASS(apply_at(env, w, r, match, found));
            }
        }
    }
    return GRAFT_OK;
}

graft_status graft_simplify_rewrite(graft_env *env, const graft_session *session,
                                    const graft_graph *graph, graft_graph **simplified,
                                    uint32_t *step_count)
{
    GRAFT_SCOPED(env->unit);
    const graft_limits limits = graft_state_limits(graph);
    graft_xfers xfers;
    graft_ruleset sets[2] = {session->rules};
    rewriting w = {.model = session->model, .xfers = &xfers};
    bool found = true;
    *step_count = 0;
    GRAFT_PASS(graft_rulefile_read(env, env->unit, graft_file_shipped(env, "rules/simplify.rules"),
                                   &sets[1]));
    choose_rules(env->unit, sets, 2, session->judge, &xfers);
    count_parts(env, &w);
    graft_matches_open(env->unit, &xfers, LOCATIONS_MOST, &w.matches);
    w.state = GRAFT_NEW(env->life, graft_state, 1);
    graft_state_open(env->life, &limits, w.state);
    graft_state_open(env->unit, &limits, &w.before);
    GRAFT_PASS(graft_state_set(env, w.state, graph));
    while (found) {
        GRAFT_PASS(apply_first(env, &w, &found));
        *step_count += found;
    }
    *simplified = &w.state->graph;
    return GRAFT_OK;
}

/* A model, or a body of one, as a model of its own. */
typedef struct {
    const graft_session_options *options;
    const char *body; /* Which one; NULL: it is whole. */
    const char *out;
    graft_held held; /* What is printed of bodies within it; its own lines go where these go. */
} simplification;

static void print_outcome(graft_env *env, const graft_session *session, const simplification *what,
                          const graft_written *written, uint32_t step_count)
{
    const uint32_t before = graft_written_operators(env, session->model);
    const uint32_t after = graft_written_operators(env, written->model);
    const char *name = what->body != NULL ? what->body : session->model->file;
    if (what->body == NULL) {
        graft_written_print_kinds(env, session, written);
    }
    if (env->json) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, what->body != NULL ? "body" : "model", name);
        graft_json_add(&json, "operators_before=%u operators_after=%u rules_applied=%u", before,
                       after, step_count);
        graft_json_end(&json, what->held.out);
    } else {
        (void)fprintf(what->held.out, "%s: %u operators -> %u operators by %u rewrites\n", name,
                      before, after, step_count);
    }
}

static graft_status simplify_body(graft_env *env, void *context, const graft_model_body *body);

static void settle_bodies(void *context, bool kept)
{
    graft_held_settle(&((simplification *)context)->held, kept);
}

static graft_status simplify_file(graft_env *env, simplification *what, FILE *lines)
{
    graft_status status = GRAFT_OK;
    const graft_session_options *options = what->options;
    const char *out = what->out;
    const graft_model_bodies bodies = {simplify_body, settle_bodies, what,
                                       graft_arena_printf(env->life, "%s.body", out)};
    graft_session session = {.settable = !options->constants};
    graft_written written = {.model = NULL};
    graft_graph *graph = NULL;
    uint32_t step_count = 0;
    const graft_model_options reading = {.sizes = options->sizes,
                                         .size_count = options->size_count,
                                         .keep_open = true,
                                         .frozen = options->frozen,
                                         .frozen_count = options->frozen_count,
                                         .settable = session.settable,
                                         .bodies = &bodies};
    const graft_model_write_options writing = {.simplify = true};
    GRAFT_CHECK(graft_held_open(env, lines, &what->held));
    GRAFT_CHECK(graft_model_open(env, env->life, options->model, &reading, &session.model));
    GRAFT_TRY(env, graft_rulefile_read(env, env->life, options->rules, &session.rules),
              "while reading the rule set; `make rules` makes it anew");
    graft_session_open_judge(env, &session);
    GRAFT_CHECK(graft_simplify_rewrite(env, &session, &session.model->graph, &graph, &step_count));
    GRAFT_CHECK(graft_model_write(env, session.model, graph, out, &writing));
    GRAFT_CHECK(graft_written_read(env, &session, out, &written));
    print_outcome(env, &session, what, &written, step_count);
done:
    graft_held_close(&what->held);
    if (session.open != NULL) {
        graft_open_sizes_close(session.open);
    }
    return status;
}

static graft_status simplify_body(graft_env *env, void *context, const graft_model_body *body)
{
    GRAFT_SCOPED(env->life);
    const simplification *whole = context;
    const off_t before = ftello(whole->held.lines);
    graft_session_options options = *whole->options;
    options.model = body->path;
    options.sizes = body->sizes;
    options.size_count = body->size_count;
    options.frozen_count = 0;
    simplification what = {.options = &options, .body = body->where, .out = body->path};
    if (whole->body != NULL) {
        what.body = graft_arena_printf(env->life, "%s in %s", body->where, whole->body);
    }
    const graft_status status = simplify_file(env, &what, whole->held.lines);
    if (status != GRAFT_OK) {
        (void)fseeko(whole->held.lines, before, SEEK_SET);
    }
    return status;
}

graft_status graft_simplify_file(graft_env *env, const graft_session_options *options,
                                 const char *out)
{
    simplification what = {.options = options, .out = out};
    return simplify_file(env, &what, stdout);
}
