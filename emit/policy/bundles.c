/* bundles.c - see bundles.h. */
#include "emit/policy/bundles.h"

#include "cost/device/device_program.h"
#include "emit/report/confirmed.h"
#include "graph/base/log.h"
#include "train/agent/state.h"
#include "train/search/walker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TURNS_MOST = 8,
    SCREENED_MOST = 12, /* Bundles a turn that are timed at all, fewer where files are large, */
    SCREENING_ROUNDS = 9,
    CONFIRMED_MOST = 3, /* and that are timed once more, the fastest first, until one is faster. */
    ROUNDS_MOST = 63,   /* Of these, until it is certain. */
    STEPS_MOST = 2000,
    PARTS = 4 /* Of a plan. */
};

/* Files of a turn, together: the device holds them all. */
static const double bytes_most = 1.5e9;

/* How much dearer a bundle may be by costs to be timed: sums are off by as much. */
static const double slack = 0.01;

/* What is priced alike to this part is alike: the runtime makes the same of both. */
static const double alike = 1e-9;

typedef struct {
    const char *name;    /* Of its rule, or what it is. */
    graft_action *steps; /* From the first graph. */
    uint32_t step_count;
    double predicted_ns;
    bool first;       /* It is timed before all others, whatever it is said to cost. */
    const char *path; /* Of its file; NULL: none was written. */
    double screened;  /* Of the champion's time. */
} bundle;

typedef struct {
    graft_session *session;
    graft_plan_found *found;
    graft_arena *arena;    /* Of all of it. */
    graft_walker champion; /* What is confirmed so far... */
    const char *path;      /* ...and its file; NULL: the model's own. */
    graft_walker trial;
    uint64_t *hashes; /* Of graphs that were candidates. */
    uint32_t hash_count;
    uint32_t hash_capacity;
    bundle *bundles; /* Of this turn. */
    uint32_t bundle_count;
    uint32_t bundle_capacity;
    uint32_t turn;
    uint32_t timed_count; /* Bundles, over all turns; */
    uint32_t taken_count; /* of these. */
    const char *refusal;  /* Of the device; NULL: none. */
} contest;

/* ---------------------------------------------------------------- candidates */

/* Whether the trial's graph is a new one. */
static bool is_new(contest *c)
{
    uint64_t hash = graft_state_hash(&c->trial.state);
    for (uint32_t i = 0; i < c->hash_count; i++) {
        if (c->hashes[i] == hash) {
            return false;
        }
    }
    GRAFT_PUSH(c->arena, c->hashes, c->hash_count, c->hash_capacity, 64) = hash;
    return true;
}

/* Makes the trial's graph a candidate. */
static graft_status add_bundle(graft_env *env, contest *c, const char *name, bool first)
{
    const graft_price *price = &c->session->environment.options.price;
    const graft_walker *trial = &c->trial;
    double ns = 0.0;
    if (!is_new(c)) {
        return GRAFT_OK;
    }
    c->found->evaluations++;
    graft_status status =
        price->cost_ns(env, price->context, &trial->state.graph, &trial->state.order, &ns);
    const double part = ns / c->champion.cost_ns;
    if (status != GRAFT_OK || (!first && (part > 1.0 + slack || fabs(part - 1.0) <= alike))) {
        return status;
    }
    bundle *b = &GRAFT_PUSH(c->arena, c->bundles, c->bundle_count, c->bundle_capacity, 64);
    *b =
        (bundle){.name = name, .step_count = trial->step_count, .predicted_ns = ns, .first = first};
    b->steps = GRAFT_COPY(c->arena, trial->steps, trial->step_count);
    return GRAFT_OK;
}

/* The plan that was found by costs, and its first parts. */
static graft_status add_plan(graft_env *env, contest *c)
{
    for (uint32_t part = PARTS; part > 0; part--) {
        const uint32_t count = c->found->step_count * part / PARTS;
        if (count > 0) {
            GRAFT_PASS(graft_walker_follow(env, &c->trial, c->found->steps, count));
            GRAFT_PASS(add_bundle(env, c,
                                  graft_arena_printf(c->arena, "the first %u of %u rewrites found",
                                                     count, c->found->step_count),
                                  false));
        }
    }
    return GRAFT_OK;
}

/* A rule, everywhere: where it makes new places for itself, there too if it leaves fewer nodes, for
 * otherwise it might go on without end. */
static graft_status add_rule(graft_env *env, contest *c, uint32_t xfer)
{
    const graft_rule *rule = &c->session->xfers.rules[xfer];
    const uint32_t places = graft_matches_count(&c->champion.matches, xfer);
    const uint32_t most = rule->target.node_count < rule->source.node_count ? STEPS_MOST : places;
    if (places == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_walker_join(env, &c->trial, &c->champion));
    for (uint32_t i = 0; i < most && graft_matches_count(&c->trial.matches, xfer) > 0; i++) {
        GRAFT_PASS(graft_walker_take(env, &c->trial, (graft_action){(uint16_t)xfer, 0}, 0.0));
    }
    return add_bundle(env, c, c->session->xfers.names[xfer], false);
}

/* The rules that are the device's own, in their order, as long as one of them fits. */
static graft_status add_own(graft_env *env, contest *c)
{
    const uint32_t count = c->session->xfers.count;
    uint32_t x = count - c->session->own;
    const uint32_t first = x;
    GRAFT_PASS(graft_walker_join(env, &c->trial, &c->champion));
    for (uint32_t steps = 0; x < count && steps < STEPS_MOST; steps++) {
        x = first;
        while (x < count && graft_matches_count(&c->trial.matches, x) == 0) {
            x++;
        }
        if (x < count) {
            GRAFT_PASS(graft_walker_take(env, &c->trial, (graft_action){(uint16_t)x, 0}, 0.0));
        }
    }
    if (c->trial.step_count > c->champion.step_count) {
        GRAFT_PASS(add_bundle(env, c, "the device's own rules", true));
    }
    return GRAFT_OK;
}

static int compare_predicted(const void *a, const void *b)
{
    const bundle *p = a;
    const bundle *q = b;
    return p->first != q->first
               ? q->first - p->first
               : (p->predicted_ns > q->predicted_ns) - (p->predicted_ns < q->predicted_ns);
}

static int compare_screened(const void *a, const void *b)
{
    const double x = ((const bundle *)a)->screened;
    const double y = ((const bundle *)b)->screened;
    return (x > y) - (x < y);
}

static graft_status list_bundles(graft_env *env, contest *c)
{
    c->bundle_count = 0;
    GRAFT_PASS(add_own(env, c));
    if (c->turn == 0) {
        GRAFT_PASS(add_plan(env, c));
    }
    for (uint32_t x = 0; x < c->session->xfers.count; x++) {
        GRAFT_PASS(graft_search_go_on(env));
        if (!graft_search_is_over(&c->session->environment, c->found)) {
            GRAFT_PASS(add_rule(env, c, x));
        }
    }
    if (c->bundle_count > 0) {
        qsort(c->bundles, c->bundle_count, sizeof(c->bundles[0]), compare_predicted);
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- timing */

/* Sets *path to the file of a graph; NULL when it has no form in the model's opset. */
static graft_status write_graph(graft_env *env, contest *c, const graft_graph *graph,
                                const char *name, const char **path)
{
    const graft_model_write_options options = {.simplify = true};
    *path = graft_device_file(env, c->session->device, name);
    graft_status status = graft_model_write(env, c->session->model, graph, *path, &options);
    if (status == GRAFT_UNSUPPORTED) {
        graft_env_clear(env);
        *path = NULL;
        return GRAFT_OK;
    }
    return status;
}

/* Times files in turns; times[k] has room for as many rounds. */
static graft_status time_files(graft_env *env, contest *c, const char *const *paths, uint32_t count,
                               uint32_t rounds, double **times)
{
    const char *refusal = NULL;
    for (uint32_t k = 0; k < count; k++) {
        times[k] = GRAFT_NEW(env->scratch, double, rounds);
    }
    const graft_device_turns turns = {c->session->model, paths, count, rounds, times};
    graft_status status = graft_device_time_models(env, c->session->device, &turns, &refusal);
    if (refusal != NULL) {
        c->refusal = graft_arena_strdup(c->arena, refusal);
    }
    return status;
}

/* How many bundles are timed beside the champion; two at least. */
static uint32_t count_screened(const char *champion)
{
    struct stat info;
    const double bytes =
        champion != NULL && stat(champion, &info) == 0 ? (double)info.st_size : 0.0;
    return (uint32_t)fmax(2.0, fmin(SCREENED_MOST, bytes_most / fmax(1.0, bytes)));
}

/* The champion's file, and those of the bundles that promise most. */
typedef struct {
    uint32_t count;
    const char *paths[1 + SCREENED_MOST];
    double *times[1 + SCREENED_MOST];
    bundle *bundles[1 + SCREENED_MOST]; /* From 1 on. */
} heat;

static graft_status write_files(graft_env *env, contest *c, heat *h)
{
    GRAFT_PASS(write_graph(env, c, &c->champion.state.graph, "champion.onnx", &c->path));
    const uint32_t most = count_screened(c->path);
    h->paths[0] = c->path;
    h->count = 1;
    for (uint32_t i = 0; i < c->bundle_count; i++) {
        bundle *b = &c->bundles[i];
        b->screened = HUGE_VAL;
        if (h->count > most) {
            continue;
        }
        const char *name = graft_arena_printf(env->scratch, "bundle%u.onnx", h->count);
        GRAFT_PASS(graft_walker_follow(env, &c->trial, b->steps, b->step_count));
        GRAFT_PASS(write_graph(env, c, &c->trial.state.graph, name, &b->path));
        if (b->path != NULL) {
            h->bundles[h->count] = b;
            h->paths[h->count++] = b->path;
        }
    }
    return GRAFT_OK;
}

/* How long each bundle takes, of the champion's time, in a few rounds; sorts them by that. */
static graft_status screen(graft_env *env, contest *c)
{
    GRAFT_SCOPED(env->scratch);
    heat h;
    GRAFT_PASS(write_files(env, c, &h));
    if (h.count == 1) {
        return GRAFT_OK;
    }
    GRAFT_PASS(time_files(env, c, h.paths, h.count, SCREENING_ROUNDS, h.times));
    for (uint32_t k = 1; k < h.count && c->refusal == NULL; k++) {
        const double *const pair[GRAFT_CONTENDERS] = {h.times[0], h.times[k], h.times[0]};
        bundle *b = h.bundles[k];
        graft_comparison comparison;
        graft_comparison_of(env, pair, SCREENING_ROUNDS, &comparison);
        b->screened = comparison.ratio;
        c->timed_count++;
        graft_log(env, 2, "%.3f +- %.3f of the time, %.3f predicted: %s", comparison.ratio,
                  comparison.ratio_spread, b->predicted_ns / c->champion.cost_ns, b->name);
    }
    qsort(c->bundles, c->bundle_count, sizeof(c->bundles[0]), compare_screened);
    return GRAFT_OK;
}

/* Takes a bundle when it is faster than the champion. */
static graft_status confirm(graft_env *env, contest *c, const bundle *b, bool *taken)
{
    const graft_confirm_pair pair = {c->path, b->path, ROUNDS_MOST};
    graft_comparison found;
    const char *refusal = NULL;
    GRAFT_PASS(graft_confirm_files(env, c->session, &pair, &found, &refusal));
    if (refusal != NULL) {
        c->refusal = graft_arena_strdup(c->arena, refusal);
        return GRAFT_OK;
    }
    *taken = graft_comparison_is_gain(&found);
    graft_log(env, 1, "%s: %.4f +- %.4f of the time in turns (before against itself: %.4f), %s",
              b->name, found.ratio, found.ratio_spread, found.control,
              *taken ? "taken" : "not beyond noise: left out");
    if (*taken) {
        c->taken_count++;
        GRAFT_PASS(graft_walker_follow(env, &c->champion, b->steps, b->step_count));
    }
    return GRAFT_OK;
}

static graft_status advance(graft_env *env, contest *c, bool *taken)
{
    *taken = false;
    GRAFT_PASS(list_bundles(env, c));
    GRAFT_PASS(screen(env, c));
    for (uint32_t i = 0; i < c->bundle_count && i < CONFIRMED_MOST && !*taken; i++) {
        if (c->refusal == NULL && c->bundles[i].screened < 1.0) {
            GRAFT_PASS(confirm(env, c, &c->bundles[i], taken));
        }
    }
    return GRAFT_OK;
}

static graft_status open_contest(graft_env *env, graft_session *session, graft_plan_found *found,
                                 graft_arena *arena, contest *c)
{
    *c = (contest){.session = session, .found = found, .arena = arena};
    GRAFT_PASS(graft_walker_open(env, arena, &session->environment, found, &c->champion));
    GRAFT_PASS(graft_walker_open(env, arena, &session->environment, found, &c->trial));
    (void)is_new(c); /* The first graph is none of the candidates. */
    return GRAFT_OK;
}

graft_status graft_bundles_search(graft_env *env, graft_session *session, graft_plan_found *found)
{
    const uint64_t start_ns = graft_clock_ns();
    bool taken = true;
    contest c;
    GRAFT_ARENA(arena, (size_t)1 << 20);
    GRAFT_PASS(open_contest(env, session, found, arena, &c));
    while (taken && c.turn < TURNS_MOST && !graft_search_is_over(&session->environment, found)) {
        GRAFT_PASS(graft_search_go_on(env));
        GRAFT_PASS(advance(env, &c, &taken));
        c.turn++;
    }
    if (c.refusal != NULL && c.champion.step_count == 0) {
        graft_log(env, 1, "whole models could not be timed (%s): rewrites go by costs", c.refusal);
        return GRAFT_OK;
    }
    graft_log(env, 1, "%u bundles were timed as whole models, %s", c.timed_count,
              c.taken_count == 0
                  ? "none is faster beyond noise"
                  : graft_arena_printf(arena, "%u of them faster and taken", c.taken_count));
    found->step_count = c.champion.step_count;
    found->cost_ns = c.champion.cost_ns;
    found->steps = GRAFT_COPY(env->life, c.champion.steps, c.champion.step_count);
    GRAFT_PASS(graft_plan_replay(env, &session->environment, found->steps, found->step_count));
    found->seconds += (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}
