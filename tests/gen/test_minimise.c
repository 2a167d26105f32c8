/* Laws that must not be dropped: each follows only with the help of one that follows from it, or
 * over a graph that is no lighter. */
#include "tests/gen/texts.h"

/* max(a, 0 - b) = relu(a + b) - b follows from a larger law which rests on pairs that follow from
 * it: with both dropped, nothing leads there. */
static const char *const circle = "family: t\n"
                                  "order: 1\n"
                                  "about: order\n"
                                  "sets:\n"
                                  "  - set: s\n"
                                  "    depth: 3\n"
                                  "    sizes: {A: 2, B: 3}\n"
                                  "    inputs: {x: [A, B], y: [A, B]}\n"
                                  "    operators:\n"
                                  "      - {op: fill, value: 0}\n"
                                  "      - {op: relu}\n"
                                  "      - {op: max}\n"
                                  "      - {op: min}\n"
                                  "      - {op: add, distinct: true}\n"
                                  "      - {op: sub, distinct: true}\n";

static const char *const kept[] = {
    "max(a, sub(fill(value=0, dim=[]), b)) => sub(relu(add(a, b)), b)",
    "sub(relu(add(a, b)), a) => max(b, sub(fill(value=0, dim=[]), a))",
};

/* A half that comes last can be moved to where the law of gelu has it, at no gain. */
static const char *const plateau = "family: t\n"
                                   "order: 1\n"
                                   "about: gelu\n"
                                   "sets:\n"
                                   "  - set: s\n"
                                   "    depth: 4\n"
                                   "    sizes: {A: 5, B: 7}\n"
                                   "    inputs: {x: [A, B]}\n"
                                   "    compounds:\n"
                                   "      erf_of_root:\n"
                                   "        inputs: [x]\n"
                                   "        steps:\n"
                                   "          root: {op: fill, of: [], value: 1.41421354}\n"
                                   "          ratio: {op: div, of: [x, root]}\n"
                                   "          error: {op: erf, of: [ratio]}\n"
                                   "        outputs: [error]\n"
                                   "      plus_one:\n"
                                   "        inputs: [x]\n"
                                   "        steps:\n"
                                   "          one: {op: fill, of: [], value: 1}\n"
                                   "          sum: {op: add, of: [x, one]}\n"
                                   "        outputs: [sum]\n"
                                   "      halve:\n"
                                   "        inputs: [x]\n"
                                   "        steps:\n"
                                   "          half: {op: fill, of: [], value: 0.5}\n"
                                   "          product: {op: mul, of: [x, half]}\n"
                                   "        outputs: [product]\n"
                                   "    operators:\n"
                                   "      - {op: gelu}\n"
                                   "      - {op: mul, distinct: true}\n";

static const char *const last_half =
    "mul(mul(a, add(fill(value=1, dim=[]), erf(div(a, fill(value=1.4142135, dim=[]))))), "
    "fill(value=0.5, dim=[])) => gelu(a)";

CHECK_CASE(test_no_law_rests_on_itself)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        graft_candidates run;
        env->thread_count = threads;
        run = run_text(env, circle);
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
            const graft_candidate *candidate = find_text(env, &run, kept[i]);
            assert_non_null(candidate);
            assert_false(candidate->is_macro);
        }
    }
}

CHECK_CASE(test_no_plateau)
{
    graft_candidates run;
    env->thread_count = 2;
    run = run_text(env, plateau);
    const graft_candidate *candidate = find_text(env, &run, last_half);
    assert_non_null(candidate);
    assert_true(candidate->is_macro);
}
