/* domain.c - enumerating instances, and what a domain is. See domain.h. */
#include "verify/sweep/domain.h"

#include "verify/sweep/finder.h"
#include "verify/sweep/sample.h"

#include <string.h>

static bool take_point(graft_finder *f)
{
    graft_instance instance;
    switch (graft_instance_build(&instance, f->rule, &f->point)) {
    case GRAFT_FIT_OK:
        f->domain->fitted++;
        if (f->domain->count == f->options->points) {
            return false;
        }
        return !graft_finder_is_new(f, graft_finder_hash(f)) || graft_finder_keep(f);
    case GRAFT_FIT_TARGET:
        f->domain->refused++;
        return true;
    case GRAFT_FIT_SOURCE:
    case GRAFT_FIT_CONDITION:
        break;
    }
    return true;
}

/* -------------------------------------------------------------- enumeration */

static bool enumerate(graft_finder *f, uint32_t at);

/* Of `count` branches of the part at hand, the first `tried` lie behind. */
static void note_progress(graft_finder *f, double before, double part, uint32_t tried,
                          uint32_t count)
{
    f->part = part / count;
    f->done = before + f->part * tried;
}

static bool enumerate_shapes(graft_finder *f, uint32_t at)
{
    uint32_t count = graft_choices_shape_count(f->images);
    double before = f->done;
    double part = f->part;
    bool room = true;
    for (uint32_t i = 0; i < count && room; i++) {
        note_progress(f, before, part, i, count);
        graft_finder_bind_var(f, f->steps[at].index, graft_choices_shape(i));
        room = enumerate(f, at + 1);
    }
    f->part = part;
    return room;
}

static bool enumerate_attrs(graft_finder *f, uint32_t at)
{
    const graft_step *s = &f->steps[at];
    GRAFT_SCOPED(f->env->scratch);
    graft_choices choices = graft_finder_choices(f, s);
    uint64_t bound = f->bound_slots;
    double before = f->done;
    double part = f->part;
    bool room = true;
    for (uint32_t i = 0; i < choices.count && room; i++) {
        note_progress(f, before, part, i, choices.count);
        const int32_t *tuple = &choices.tuples[(size_t)i * choices.width];
        if (graft_finder_agrees(f, s, tuple)) {
            graft_finder_bind(f, s, tuple);
            room = enumerate(f, at + 1);
            f->bound_slots = bound;
        }
    }
    f->part = part;
    return room;
}

/* After an eighth of its attempts, an enumeration that is not an eighth of that far in the domain
 * will not come to its end. */
enum { HOPELESS_SHARE = 8 };

static bool is_out_of_reach(const graft_finder *f)
{
    return f->left == f->attempts - f->attempts / HOPELESS_SHARE &&
           f->done * HOPELESS_SHARE * HOPELESS_SHARE < 1.0;
}

/* Tries everything from graft_step `at` on. False when attempts or room ran out, or will. */
static bool enumerate(graft_finder *f, uint32_t at)
{
    if (at == f->step_count) {
        return take_point(f);
    }
    if (f->left == 0 || is_out_of_reach(f)) {
        return false;
    }
    f->left--;
    switch ((graft_step_kind)f->steps[at].kind) {
    case GRAFT_STEP_VAR:
        return enumerate_shapes(f, at);
    case GRAFT_STEP_ATTRS:
        return enumerate_attrs(f, at);
    case GRAFT_STEP_CHECK:
        return !graft_finder_check(f, &f->steps[at]) || enumerate(f, at + 1);
    case GRAFT_STEP_INFER:
        return !graft_finder_infer(f, &f->steps[at]) || enumerate(f, at + 1);
    case GRAFT_STEP_NODE:
        break;
    }
    return enumerate(f, at + 1);
}

static void clear_points(graft_finder *f)
{
    f->domain->count = 0;
    f->domain->fitted = 0;
    f->domain->refused = 0;
    memset(f->seen, 0, f->seen_capacity * sizeof *f->seen);
    memset(&f->point, 0, sizeof f->point);
    if (f->options->origin != NULL) {
        f->point = *f->options->origin;
        (void)take_point(f);
    }
}

/* Choices that go into enumerating, for each point wanted: a domain that needs more has too many.
 */
enum { ENUMERATED_PER_POINT = 125 };

void graft_domain_find(graft_env *env, graft_arena *arena, const graft_rule *rule,
                       const graft_domain_options *options, graft_domain *domain)
{
    *domain = (graft_domain){.points = GRAFT_NEW(arena, graft_point, options->points)};
    GRAFT_SCOPED(env->scratch);
    graft_finder *f = GRAFT_NEW(env->scratch, graft_finder, 1);
    f->env = env;
    f->rule = rule;
    f->options = options;
    f->domain = domain;
    f->seen_capacity = 64;
    while (f->seen_capacity < 2 * options->points) {
        f->seen_capacity *= 2;
    }
    f->seen = GRAFT_NEW(env->scratch, uint64_t, f->seen_capacity);
    f->size_most = options->size_most > 0 ? (int32_t)options->size_most : GRAFT_SIZE_MOST;
    f->image_most = options->size_most > 0 ? (int32_t)options->size_most : GRAFT_IMAGE_MOST;
    graft_rng_seed(&f->rng, options->seed);
    if (rule->condition != 255) {
        graft_guide_read(rule, &f->guide);
    }
    graft_finder_plan(f);
    if (options->enumerate) {
        clear_points(f);
        f->attempts = options->points * ENUMERATED_PER_POINT;
        f->left = f->attempts;
        f->part = 1.0;
        domain->complete = enumerate(f, 0);
    }
    if (!domain->complete) {
        f->is_sampling = true;
        clear_points(f);
        graft_sample_points(f);
    }
}
