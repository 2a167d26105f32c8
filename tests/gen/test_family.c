/* Families read from YAML: what they mean, and one clear line for everything that is wrong. */
#include "gen/gen.h"
#include "graph/base/bits.h"
#include "tests/support/check.h"

#include <string.h>

#define HEAD "family: f\norder: 1\nsets:\n  - set: s\n    depth: 2\n"

static graft_status parse(graft_env *env, const char *text, graft_gen_family *family)
{
    return graft_gen_family_parse(env, env->life, "f.yaml", text, strlen(text), family);
}

CHECK_CASE(test_set_is_read)
{
    graft_gen_family family;
    const char *text = HEAD "    outputs: 2\n"
                            "    sizes: {A: 2, B: 3}\n"
                            "    inputs:\n      x: [A, B]\n      s: []\n"
                            "    weights:\n      w: [B, 4]\n"
                            "    operators:\n"
                            "      - {op: matmul, roles: [activation, weight]}\n"
                            "      - {op: add, distinct: true, rank: 2}\n"
                            "      - {op: split, axis: [0, 1], at: A}\n"
                            "      - {op: fill, value: [0, -1.5], dim: [[B], [A, B]]}\n";
    CHECK_OK(parse(env, text, &family));
    assert_string_equal(family.name, "f");
    assert_int_equal(family.set_count, 1);
    const graft_gen_set *set = &family.sets[0];
    assert_int_equal(set->depth, 2);
    assert_int_equal(set->output_count, 2);
    assert_int_equal(set->input_count, 3);
    assert_int_equal(set->inputs[0].shape.dims[1], 3);
    assert_int_equal(set->inputs[1].shape.rank, 0);
    assert_true(set->inputs[2].is_weight);
    assert_int_equal(set->config_count, 1 + 1 + 2 + 4);
    assert_int_equal(set->configs[0].roles[1], GRAFT_GEN_WEIGHT);
    assert_true(set->configs[1].is_distinct && set->configs[1].commutes);
    assert_int_equal(set->configs[1].rank, 2);
    assert_int_equal(set->configs[3].steps[0].attrs[GRAFT_ATTR_split_axis], 1);
    assert_int_equal(set->configs[3].steps[0].attrs[GRAFT_ATTR_split_at], 2);
    const int32_t *fill = set->configs[7].steps[0].attrs;
    assert_true(graft_float_of_bits(fill[GRAFT_ATTR_fill_value]) == -1.5F);
    assert_int_equal(fill[GRAFT_ATTR_fill_dim_0], 2);
    assert_int_equal(fill[GRAFT_ATTR_fill_dim_1], 3);
    assert_int_equal(fill[GRAFT_ATTR_fill_dim_2], 0);
}

CHECK_CASE(test_groups_of_attributes)
{
    graft_gen_family family;
    const char *text = HEAD "    inputs:\n      x: [1, 2, 5, 5]\n      w: [3, 2, 3, 3]\n"
                            "    operators:\n"
                            "      - {op: conv_bias, stride: [1, 2], pad: 1, activation: relu6}\n"
                            "      - {op: conv, pad: [[1, 0, 2, 0]]}\n";
    CHECK_OK(parse(env, text, &family));
    const graft_gen_config *configs = family.sets[0].configs;
    assert_int_equal(family.sets[0].config_count, 3);
    const int32_t halved[10] = {2, 2, 1, 1, 1, 1, 1, 1, 1, GRAFT_ACT_RELU6};
    assert_memory_equal(configs[1].steps[0].attrs, halved, sizeof halved);
    const int32_t uneven[9] = {1, 1, 1, 0, 2, 0, 1, 1, 1};
    assert_memory_equal(configs[2].steps[0].attrs, uneven, sizeof uneven);
}

CHECK_CASE(test_compound_is_read)
{
    graft_gen_family family;
    const char *text = HEAD "    inputs:\n      x: [2, 3]\n"
                            "    compounds:\n"
                            "      swap:\n"
                            "        inputs: [a]\n"
                            "        steps:\n"
                            "          cut: {op: split, of: [a], axis: 0, at: 1}\n"
                            "          back: {op: concat, of: [cut.1, cut], axis: 0}\n"
                            "        outputs: [back]\n"
                            "    operators:\n      - {op: relu}\n";
    CHECK_OK(parse(env, text, &family));
    const graft_gen_config *swap = &family.sets[0].configs[1];
    assert_string_equal(swap->name, "swap");
    assert_int_equal(swap->step_count, 2);
    assert_int_equal(swap->steps[1].args[0], GRAFT_GEN_STEP(0, 1));
    assert_int_equal(swap->steps[1].args[1], GRAFT_GEN_STEP(0, 0));
    assert_int_equal(swap->outputs[0], GRAFT_GEN_STEP(1, 0));
}

typedef struct {
    const char *text;
    const char *message;
} fault;

#define INPUTS "    inputs:\n      x: [2, 3]\n"
#define OPS    "    operators:\n"

CHECK_CASE(test_faults_name_the_line)
{
    /* clang-format off */
    static const fault faults[] = {
        {"family: f\norder: 1\nset: []\n", "f.yaml:3: "},
        {"order: 1\nsets: []\n", "f.yaml:"},
        {"family: f\nsets:\n  - set: s\n", "f.yaml:"},
        {"family: f\norder: 1\nsets: []\n", "f.yaml:3: a family needs 'sets'"},
        {HEAD INPUTS, "f.yaml:4: a set needs 'operators'"},
        {HEAD OPS "      - {op: relu}\n", "f.yaml:4: a set needs 'inputs' or 'weights'"},
        {HEAD INPUTS OPS "      - {op: rely}\n", "f.yaml:9: no operator 'rely'"},
        {HEAD INPUTS OPS "      - {op: relu, slope: 1}\n", "f.yaml:9: relu has no attribute 'slope'"},
        {HEAD INPUTS OPS "      - relu\n", "f.yaml:9: an operator is a mapping"},
        {HEAD INPUTS OPS "      - {op: concat, axis: 6}\n", "f.yaml:9: 6 is outside 0 to 5"},
        {HEAD INPUTS OPS "      - {op: concat, axis: A}\n", "f.yaml:9: 'A' is neither a number nor a name in 'sizes'"},
        {HEAD INPUTS OPS "      - {op: clip, low: nan, high: 1}\n", "f.yaml:9: a finite number is expected"},
        {HEAD INPUTS OPS "      - {op: matmul_bias, activation: gelu}\n", "f.yaml:9: an activation is none, relu"},
        {HEAD INPUTS OPS "      - {op: add, roles: [weight]}\n", "f.yaml:9: 'roles' is a list of 2 words"},
        {HEAD INPUTS OPS "      - {op: relu, roles: [input]}\n", "f.yaml:9: a role is activation"},
        {HEAD INPUTS OPS "      - {op: relu, rank: 9}\n", "f.yaml:9: "},
        {HEAD "    inputs:\n      x: [0]\n" OPS "      - {op: relu}\n", "f.yaml:7: 0 is outside"},
        {HEAD "    inputs:\n      x: 3\n" OPS "      - {op: relu}\n", "f.yaml:7: a shape is a list"},
        {HEAD "    inputs: [x]\n" OPS "      - {op: relu}\n", "f.yaml:6: 'inputs' is a mapping"},
        {HEAD "    sizes: {A: x}\n" INPUTS OPS "      - {op: relu}\n", "f.yaml:6: "},
        {HEAD "    depht: 3\n" INPUTS OPS "      - {op: relu}\n", "f.yaml:6: "},
        {HEAD INPUTS "    compounds:\n      c: {inputs: [a], outputs: [a]}\n" OPS "      - {op: relu}\n",
         "f.yaml:9: a compound needs 'steps'"},
        {HEAD INPUTS "    compounds:\n      c:\n        inputs: [a]\n        steps:\n          r: {op: relu, of: "
         "[b]}\n        outputs: [r]\n" OPS "      - {op: relu}\n",
         "f.yaml:12: an operand is the name of an input or of an earlier step"},
        {HEAD INPUTS "    compounds:\n      c:\n        inputs: [a]\n        steps:\n          r: {op: add, of: "
         "[a]}\n        outputs: [r]\n" OPS "      - {op: relu}\n", "f.yaml:12: 'of' is a list of 2 operands of add"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        graft_gen_family family;
        graft_status status = parse(env, faults[i].text, &family);
        if (status == GRAFT_OK) {
            fail_msg("accepted, without \"%s\":\n%s", faults[i].message, faults[i].text);
        }
        check_failed(env, status, GRAFT_BAD_INPUT, faults[i].message);
    }
}

CHECK_CASE(test_inputs_that_are_too_many)
{
    graft_gen_family family;
    graft_candidates candidates;
    const graft_gen_options options = {.seed = 1};
    const char *text = HEAD "    inputs:\n      a: [2]\n      b: [2]\n      c: [2]\n      d: [2]\n"
                            "      e: [2]\n      f: [2]\n" OPS "      - {op: relu}\n";
    CHECK_OK(parse(env, text, &family));
    check_failed(env, graft_gen_run(env, env->life, &family, 1, &options, &candidates),
                 GRAFT_UNSUPPORTED, "set s: its inputs can be exchanged in more than 120 ways");
}

CHECK_CASE(test_folder)
{
    const graft_gen_family *families = NULL;
    uint32_t count = 0;
    check_failed(env, graft_gen_families_read(env, env->life, "no/such", &families, &count),
                 GRAFT_IO, "no/such: cannot be read as a folder of families");
    check_failed(env, graft_gen_families_read(env, env->life, "tests/gen", &families, &count),
                 GRAFT_IO, "tests/gen: no .yaml file in it");
    CHECK_OK(graft_gen_families_read(env, env->life, "rules/families", &families, &count));
    for (uint32_t i = 1; i < count; i++) {
        assert_true(families[i - 1].order <= families[i].order);
    }
}
