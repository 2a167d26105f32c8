/* Graphs that the first samples take for equal and that are not: tanh keeps the samples of a set so
 * small that none reaches 6, and relu(x) passes for clip(x, 0, 6). */
#include "gen/refine.h"
#include "graph/base/file.h"
#include "tests/gen/texts.h"

#define SET(depth, inputs, operators)                                                              \
    "family: t\norder: 1\nabout: order\nsets:\n  - set: s\n    depth: " depth                      \
    "\n    inputs: {" inputs "}\n" operators
#define OPERATORS                                                                                  \
    "    operators:\n      - {op: tanh}\n      - {op: relu}\n"                                     \
    "      - {op: clip, low: 0.0, high: 6.0}\n"

/* As an argument clip(x) would be relu(x), and nothing were said of it. */
static const char *const inner = SET("2", "x: [1]", OPERATORS);
static const char *const inner_laws[] = {
    "relu(clip(a, low=0, high=6)) => clip(a, low=0, high=6)",
    "clip(relu(a), low=0, high=6) => clip(a, low=0, high=6)",
    "clip(clip(a, low=0, high=6), low=0, high=6) => clip(a, low=0, high=6)",
    "relu(tanh(a)) => clip(tanh(a), low=0, high=6)",
    "relu(relu(a)) => relu(a)",
};

/* Two graphs of the last level that equal each other, and not the first of their group. */
static const char *const last = SET("1", "x: [1]",
                                    "    compounds:\n      both:\n        inputs: [x]\n"
                                    "        steps:\n          above: {op: relu, of: [x]}\n"
                                    "          below: {op: clip, of: [above], low: 0, high: 6}\n"
                                    "        outputs: [below]\n" OPERATORS);
static const char *const last_laws[] = {
    "clip(relu(a), low=0, high=6) => clip(a, low=0, high=6)",
};

/* Graphs of weights alone: no law is looked for among them, but they are arguments. */
static const char *const weights = SET("2", "x: [1]",
                                       "    weights: {w: [1]}\n    operators:\n"
                                       "      - {op: tanh, roles: [activation]}\n"
                                       "      - {op: relu, roles: [weight]}\n"
                                       "      - {op: clip, roles: [weight], low: 0, high: 6}\n"
                                       "      - {op: add, distinct: true}\n");

/* Inputs that can be exchanged: what tells f(x) and g(x) apart need not tell f(y) and g(y) apart.
 */
static const char *const renamed =
    SET("2", "x: [1], y: [1], z: [1], u: [1]", OPERATORS "      - {op: add, distinct: true}\n");

static const graft_gen_set *parse_set(graft_env *env, const char *text)
{
    graft_gen_family *family = GRAFT_NEW(env->life, graft_gen_family, 1);
    CHECK_OK(graft_gen_family_parse(env, env->life, "text", text, strlen(text), family));
    return &family->sets[0];
}

static void check_laws(graft_env *env, const char *text, const char *const *laws, size_t count,
                       uint64_t refuted)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        graft_candidates run;
        env->thread_count = threads;
        run = run_text(env, text);
        for (size_t i = 0; i < count; i++) {
            if (find_text(env, &run, laws[i]) == NULL) {
                fail_msg("missing: %s", laws[i]);
            }
        }
        assert_null(find_text(env, &run, "relu(a) => clip(a, low=0, high=6)"));
        assert_int_equal(run.reports[0].counts.refuted, refuted);
    }
}

CHECK_CASE(test_arguments_are_told_apart)
{
    check_laws(env, inner, inner_laws, sizeof inner_laws / sizeof inner_laws[0], 0);
}

CHECK_CASE(test_last_level_is_split)
{
    check_laws(env, last, last_laws, sizeof last_laws / sizeof last_laws[0], 1);
}

CHECK_CASE(test_weights_are_told_apart)
{
    const graft_gen_set *set = parse_set(env, weights);
    const graft_gen_room room = {.folder = NULL};
    const graft_gen_laws none = {.count = 0};
    uint32_t draw_count = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        graft_gen_samples samples = {.seed = seed, .arena = env->life};
        CHECK_OK(graft_gen_samples_refine(env, set, &room, &none, &samples));
        draw_count += samples.draw_count;
    }
    assert_in_range(draw_count, 1, 64);
}

/* No renaming makes one value of two. */
CHECK_CASE(test_renamings_are_told_apart)
{
    graft_gen_space space;
    const graft_gen_set *set = parse_set(env, renamed);
    const graft_gen_room room = {.folder = NULL};
    const graft_gen_laws none = {.count = 0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        graft_gen_samples samples = {.seed = seed, .arena = env->life};
        CHECK_OK(graft_gen_samples_refine(env, set, &room, &none, &samples));
        CHECK_OK(graft_gen_space_build(env, env->life, set, &samples, NULL, &space));
        for (uint32_t r = 1; r < space.renaming_count; r++) {
            bool *is_image = GRAFT_NEW(env->life, bool, space.value_count);
            for (uint32_t v = 0; v < space.value_count && space.values[v].size < 2; v++) {
                uint32_t image = graft_gen_value_image(&space, v, r);
                assert_true(image != GRAFT_GEN_NONE && !is_image[image]);
                is_image[image] = true;
            }
        }
    }
}

/* What was found is taken from the folder, unless it is of another run or damaged. */
CHECK_CASE(test_samples_are_kept)
{
    const graft_gen_set *set = parse_set(env, inner);
    const graft_gen_laws none = {.count = 0};
    const char *folder = check_folder();
    const graft_gen_room room = {.folder = folder, .identity = 1};
    const char *path = check_path("samples");
    graft_gen_samples first = {.seed = 1, .arena = env->life};
    CHECK_OK(graft_gen_samples_refine(env, set, &room, &none, &first));
    assert_in_range(first.draw_count, 1, 8);
    for (uint32_t damage = 0; damage < 2; damage++) {
        uint8_t *data = NULL;
        size_t size = 0;
        graft_gen_samples again = {.seed = 2, .arena = env->life};
        CHECK_OK(graft_file_read(env, env->life, path, &data, &size));
        data[size - 1] ^= (uint8_t)damage;
        CHECK_OK(graft_file_write(env, path, data, size));
        CHECK_OK(graft_gen_samples_refine(env, set, &room, &none, &again));
        bool same = again.draw_count == first.draw_count &&
                    memcmp(again.draws, first.draws, first.draw_count * sizeof *first.draws) == 0;
        assert_int_equal(same, damage == 0);
    }
    graft_gen_samples_remove(env, folder);
    assert_false(graft_file_exists(path));
}
