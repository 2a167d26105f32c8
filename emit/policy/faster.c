/* faster.c - see faster.h. */
#include "emit/policy/faster.h"

#include "cost/device/device_program.h"
#include "emit/report/confirmed.h"
#include "graph/base/log.h"
#include "graph/rolled.h"
#include "train/search/search.h"

enum {
    CLASSES_MOST = 64, /* That are timed, those of most work. */
    ROUNDS = 15,       /* Of a class. */
    ROUNDS_MOST = 63   /* Of the whole. */
};

/* A class that takes more than this part of its time alone is left as it is: in the whole it has
 * other neighbours. Where that is not faster, only classes of the second are tried. */
static const double part_most[] = {0.97, 0.8};

typedef struct {
    graft_session *session;
    graft_algorithms *algorithms;
    uint32_t files;      /* That were held against the model: each has a name of its own. */
    const char *refusal; /* Of the device, in env->life; NULL: none. */
} contest;

/* A class by its algorithms; the own one comes twice, as a control. */
typedef struct {
    uint32_t count;
    graft_algorithm which[GRAFT_ALGORITHM_COUNT + 1];
    const char *paths[GRAFT_ALGORITHM_COUNT + 1];
    double *times[GRAFT_ALGORITHM_COUNT + 1];
} heat;

static graft_status write_files(graft_env *env, contest *c, uint32_t class, heat *h)
{
    const uint32_t others = c->algorithms->classes[class].others;
    h->count = 0;
    for (uint32_t a = 0; a <= GRAFT_ALGORITHM_COUNT; a++) {
        const graft_algorithm which = a < GRAFT_ALGORITHM_COUNT ? a : GRAFT_ALGORITHM_OWN;
        if (which != GRAFT_ALGORITHM_OWN && (others >> which & 1U) == 0) {
            continue;
        }
        const char *name = graft_arena_printf(env->scratch, "alone%u.onnx", a);
        h->which[h->count] = which;
        h->paths[h->count] = graft_device_file(env, c->session->device, name);
        h->times[h->count] = GRAFT_NEW(env->scratch, double, ROUNDS);
        GRAFT_PASS(
            graft_algorithms_write_alone(env, c->algorithms, class, which, h->paths[h->count]));
        h->count++;
    }
    return GRAFT_OK;
}

/* Times a class by each algorithm and chooses the fastest. */
static graft_status time_class(graft_env *env, contest *c, uint32_t number)
{
    GRAFT_SCOPED(env->scratch);
    graft_algorithm_class *class = &c->algorithms->classes[number];
    const char *refusal = NULL;
    graft_model *alone = NULL;
    double best = part_most[0];
    heat h;
    GRAFT_PASS(write_files(env, c, number, &h));
    GRAFT_PASS(graft_model_read(env, env->unit, h.paths[0], NULL, &alone));
    const graft_device_turns turns = {alone, h.paths, h.count, ROUNDS, h.times};
    GRAFT_PASS(graft_device_time_models(env, c->session->device, &turns, &refusal));
    if (refusal != NULL) {
        c->refusal = graft_arena_strdup(env->life, refusal);
        return GRAFT_OK;
    }
    for (uint32_t k = 1; k + 1 < h.count; k++) {
        const double *const pair[GRAFT_CONTENDERS] = {h.times[0], h.times[k], h.times[h.count - 1]};
        graft_comparison comparison;
        graft_comparison_of(env, pair, ROUNDS, &comparison);
        graft_log(env, 2, "%s (%u): %.3f +- %.3f of %.1f us by %s", class->what, class->count,
                  comparison.ratio, comparison.ratio_spread, comparison.a.median_ns / 1e3,
                  graft_algorithm_name(h.which[k]));
        if (comparison.ratio < best && graft_comparison_is_gain(&comparison)) {
            best = comparison.ratio;
            class->chosen = h.which[k];
            class->part = best;
        }
    }
    return GRAFT_OK;
}

/* Holds the file with what is chosen now against the one at *path. */
static graft_status confirm(graft_env *env, contest *c, const char **path, bool *taken)
{
    const char *name = graft_arena_printf(env->life, "algorithms%u.onnx", c->files++);
    const char *file = graft_device_file(env, c->session->device, name);
    const graft_confirm_pair pair = {*path, file, ROUNDS_MOST};
    graft_comparison found;
    const char *refusal = NULL;
    GRAFT_PASS(graft_algorithms_write(env, c->algorithms, file));
    GRAFT_PASS(graft_confirm_files(env, c->session, &pair, &found, &refusal));
    if (refusal != NULL) {
        c->refusal = graft_arena_strdup(env->life, refusal);
        return GRAFT_OK;
    }
    *taken = graft_comparison_is_gain(&found);
    *path = *taken ? file : *path;
    graft_log(env, 1,
              "%u operators by other algorithms: %.4f +- %.4f of the time in turns (before against "
              "itself: %.4f), %s",
              graft_algorithms_changed(c->algorithms), found.ratio, found.ratio_spread,
              found.control, *taken ? "taken" : "not beyond noise: left out");
    return GRAFT_OK;
}

/* Classes that take a larger part of their time keep their own algorithm. */
static void leave_out(graft_algorithms *algorithms, double most)
{
    for (uint32_t i = 0; i < algorithms->count; i++) {
        graft_algorithm_class *class = &algorithms->classes[i];
        class->chosen = class->part <= most ? class->chosen : GRAFT_ALGORITHM_OWN;
    }
}

static bool is_sum(const graft_algorithm_class *class)
{
    return class->others == 1U << GRAFT_ALGORITHM_SUM;
}

/* For all sums that are normalised; how many those are. */
static uint32_t choose_for_sums(graft_algorithms *algorithms, graft_algorithm which)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < algorithms->count; i++) {
        if (is_sum(&algorithms->classes[i])) {
            algorithms->classes[i].chosen = which;
            count += algorithms->classes[i].count;
        }
    }
    return count;
}

/* Has the whole tell about sums, which nothing else can. */
static graft_status try_sums(graft_env *env, contest *c, const char **path, bool *taken)
{
    bool gains = false;
    if (choose_for_sums(c->algorithms, GRAFT_ALGORITHM_SUM) == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(confirm(env, c, path, &gains));
    (void)choose_for_sums(c->algorithms, gains ? GRAFT_ALGORITHM_SUM : GRAFT_ALGORITHM_OWN);
    *taken = *taken || gains;
    return GRAFT_OK;
}

graft_status graft_faster_find(graft_env *env, graft_session *session, const graft_model *model,
                               const char **path, graft_algorithms *algorithms, bool *taken)
{
    contest c = {.session = session, .algorithms = algorithms};
    *taken = false;
    graft_algorithms_find(env, model, algorithms);
    for (uint32_t i = 0; i < algorithms->count && i < CLASSES_MOST && c.refusal == NULL; i++) {
        GRAFT_SCOPED(env->unit);
        GRAFT_PASS(graft_search_go_on(env));
        if (!is_sum(&algorithms->classes[i])) {
            GRAFT_PASS(time_class(env, &c, i));
        }
    }
    for (size_t i = 0; i < sizeof(part_most) / sizeof(part_most[0]) && !*taken; i++) {
        const uint32_t before = graft_algorithms_changed(algorithms);
        leave_out(algorithms, part_most[i]);
        const uint32_t left = graft_algorithms_changed(algorithms);
        if (c.refusal == NULL && left > 0 && (i == 0 || left < before)) {
            GRAFT_PASS(confirm(env, &c, path, taken));
        }
    }
    leave_out(algorithms, *taken ? part_most[0] : -1.0);
    if (c.refusal == NULL) {
        GRAFT_PASS(graft_search_go_on(env));
        GRAFT_PASS(try_sums(env, &c, path, taken));
    }
    if (c.refusal != NULL) {
        graft_log(env, 1, "algorithms could not be timed (%s): the operators stay as they are",
                  c.refusal);
    }
    return GRAFT_OK;
}

graft_status graft_faster_roll(graft_env *env, graft_session *session, const graft_model *written,
                               const char **path, uint32_t *cells)
{
    const graft_model *const models[] = {written, session->model};
    const char *best = NULL;
    const char *refusal = NULL;
    graft_comparison found;
    uint32_t most = 0;
    *cells = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = graft_arena_printf(env->life, "rolled%u.onnx", i);
        const char *file = graft_device_file(env, session->device, name);
        uint32_t count = 0;
        GRAFT_PASS(graft_rolled_write(env, models[i], file, &count));
        best = count > most ? file : best;
        most = count > most ? count : most;
    }
    if (most == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_search_go_on(env));
    const graft_confirm_pair pair = {*path, best, ROUNDS_MOST};
    GRAFT_PASS(graft_confirm_files(env, session, &pair, &found, &refusal));
    if (refusal != NULL) {
        graft_log(env, 1, "recurrent cells could not be timed (%s): they stay as they are",
                  refusal);
        return GRAFT_OK;
    }
    const bool taken = graft_comparison_is_gain(&found);
    *cells = taken ? most : 0;
    *path = taken ? best : *path;
    graft_log(env, 1,
              "%u recurrent cells as whole nets: %.4f +- %.4f of the time in turns (before against "
              "itself: %.4f), %s",
              most, found.ratio, found.ratio_spread, found.control,
              taken ? "taken" : "not beyond noise: left out");
    return GRAFT_OK;
}
