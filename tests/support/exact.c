/* exact.c - see exact.h. */
#include "tests/support/exact.h"

#include "graph/base/half.h"
#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/beyond.h"
#include "tests/support/check.h"
#include "verify/sizes/symbolic.h"
#include "verify/sweep/cover.h"

#include <string.h>

/* `k` is the type. */
static void run_typed(const void *k, uint32_t op, const graft_call *call, const float *const *in,
                      float *const *out)
{
    const uint32_t *dtype = k;
    graft_float_run(op, call, in, out);
    for (uint32_t i = 0; i < graft_op(op)->output_count && graft_half_is(*dtype); i++) {
        (void)graft_half_round_all(*dtype, out[i], (size_t)graft_shape_elements(&call->out[i]));
    }
}

#define NUM                       float
#define ALG(f)                    f##_f32
#define RUN(k, op, call, in, out) run_typed((k), (op), (call), (in), (out))
#include "verify/instances/sides.inc"

static const uint32_t specials[] = {
    0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x00000001u, 0x80000001u,
    0x007fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0xbf800000u, 0x3dcccccdu,
};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

/* ---------------------------------------------------------------- comparing */

static float draw_input(graft_rng *rng, exact_inputs kind, uint32_t first)
{
    float value = 0.0F;
    if (kind == EXACT_NORMAL) {
        return (float)graft_rng_normal(rng);
    }
    uint32_t choices = kind == EXACT_PAIRS ? 2 : SPECIALS;
    memcpy(&value, &specials[(first + graft_rng_below(rng, choices)) % SPECIALS], sizeof value);
    return value;
}

bool exact_same_bits(float a, float b)
{
    uint32_t bits_a = 0;
    uint32_t bits_b = 0;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    return bits_a == bits_b || (a != a && b != b);
}

static const float *const *draw_inputs(graft_env *env, const graft_instance *instance,
                                       exact_inputs kind, uint64_t seed, uint32_t dtype)
{
    const float **vars = GRAFT_NEW(env->scratch, const float *, GRAFT_RULE_MAX_VARS);
    graft_rng rng = check_rng(seed);
    uint32_t first = graft_rng_below(&rng, SPECIALS);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        float *tensor = GRAFT_NEW(env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            tensor[i] = draw_input(&rng, kind, first);
        }
        if (graft_half_is(dtype)) {
            (void)graft_half_round_all(dtype, tensor, count);
        }
        vars[v] = tensor;
    }
    return vars;
}

int exact_compare(graft_env *env, const graft_instance *instance, exact_inputs kind, uint64_t seed,
                  uint32_t dtype)
{
    GRAFT_SCOPED(env->scratch);
    const float *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *const *vars = draw_inputs(env, instance, kind, seed, dtype);
    int differs = -1;
    evaluate_side_f32(&dtype, env->scratch, instance, &instance->source, vars, left);
    evaluate_side_f32(&dtype, env->scratch, instance, &instance->target, vars, right);
    for (uint32_t o = 0; o < instance->rule->output_count && differs < 0; o++) {
        size_t count = (size_t)graft_shape_elements(graft_instance_shape(
            instance, &instance->source, instance->source.pattern->outputs[o]));
        if (left[o] == NULL || right[o] == NULL) {
            return (int)o;
        }
        for (size_t i = 0; i < count && differs < 0; i++) {
            differs = exact_same_bits(left[o][i], right[o][i]) ? -1 : (int)o;
        }
    }
    return differs;
}

/* ------------------------------------------------------------------- beyond */

enum { SIZE_MOST = 17, ATTEMPTS = 200, WORK_MOST = 200000 };

typedef struct {
    const char *name;
    const graft_rule *rule;
    const graft_point *known; /* Instances. */
    uint32_t known_count;
} tried_rule;

static uint32_t try_points(graft_env *env, const tried_rule *r, graft_domain *domain)
{
    uint32_t samples = 0;
    graft_rng rng = check_rng(graft_rule_id(r->rule));
    for (uint32_t i = 0; i < domain->count; i++) {
        graft_instance instance;
        assert_int_equal(graft_instance_build(&instance, r->rule, &domain->points[i]),
                         GRAFT_FIT_OK);
        for (uint32_t kind = 0; kind < EXACT_KINDS; kind++) {
            samples++;
            if (exact_compare(env, &instance, (exact_inputs)kind, graft_rng_next(&rng),
                              GRAFT_DTYPE_F32) >= 0) {
                fail_msg("%s is not exact: %s", r->name,
                         graft_point_print(env->unit, r->rule, &domain->points[i]));
            }
        }
    }
    return samples;
}

static uint32_t try_rule(graft_env *env, const tried_rule *r, uint32_t count)
{
    graft_domain beyond;
    const graft_domain_options options = {.points = count / 2,
                                          .attempts = count / 2 * ATTEMPTS,
                                          .seed = 11,
                                          .size_most = SIZE_MOST,
                                          .work = WORK_MOST,
                                          .origin = r->known};
    graft_domain drawn = graft_domain_find(env, env->unit, r->rule, &options);
    const graft_point *from = r->known_count > 0 ? r->known : drawn.points;
    uint32_t from_count = r->known_count > 0 ? r->known_count : drawn.count;
    graft_beyond_find(env->unit, r->rule, from, from_count, count - drawn.count, &beyond);
    return try_points(env, r, &drawn) + try_points(env, r, &beyond);
}

uint32_t exact_try_beyond(graft_env *env, const graft_rule_entry *entry, uint32_t count)
{
    graft_point *known = NULL;
    assert_true(graft_cover_unpack(env->unit, &entry->rule, entry->cover_points, entry->cover_bytes,
                                   entry->cover, &known));
    return try_rule(env, &(tried_rule){entry->name, &entry->rule, known, entry->cover}, count);
}

/* ------------------------------------------------------------------- corpus */

enum { CORPUS_POINTS = 12 };

static bool is_proved_exact(graft_env *env, const graft_rule *rule)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_prover prover;
    graft_prove_result counts;
    graft_symbolic_result result;
    graft_prover_open(&prover, &options, &counts);
    graft_symbolic *symbolic = graft_symbolic_open(env, &prover);
    graft_symbolic_try_exact(symbolic, rule, &options, &result);
    graft_symbolic_close(symbolic);
    graft_prover_close(&prover);
    return result.same;
}

void exact_try_corpus(graft_env *env, const corpus_file *file, uint32_t first, uint32_t every)
{
    corpus_rules rules = corpus_read(env, file->path, first, every);
    uint32_t exact = 0;
    uint32_t samples = 0;
    for (uint32_t i = 0; i < rules.count; i++) {
        GRAFT_SCOPED(env->unit);
        if (is_proved_exact(env, &rules.rules[i])) {
            if (file->kind != CORPUS_TRUE) {
                fail_msg("%s: false, and proved exact", rules.named[i].name);
            }
            const tried_rule r = {rules.named[i].name, &rules.rules[i], NULL, 0};
            samples += try_rule(env, &r, CORPUS_POINTS);
            exact++;
        }
    }
    print_message("# %s: %u of %u exact, %u samples\n", file->path, exact, rules.count, samples);
}
