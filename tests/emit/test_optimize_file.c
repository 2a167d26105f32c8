/* test_optimize_file.c - `graft optimize` on files that leave it little room: what cannot be
 * written is not taken, and there is a file all the same. */
#include "emit/command/command.h"
#include "graph/base/file.h"
#include "tests/support/onnx_text.h"
#include "verify/command/command.h"

#include <string.h>

enum { WORDS_MOST = 10 };

/* A model as text, and what the command made of it. */
typedef struct {
    const char *in;
    const char *out;
    uint8_t *before;
    uint8_t *after;
    size_t before_size;
    size_t after_size;
} outcome;

/* Calls a command with words up to a NULL. */
static graft_status call(graft_env *env, const graft_command *command, const char *const *words)
{
    char *argv[WORDS_MOST];
    int count = 0;
    for (; words[count] != NULL; count++) {
        memcpy(&argv[count], &words[count], sizeof(argv[count]));
    }
    return graft_command_call(env, command, count, argv);
}

/* Writes the model, and optimises it with up to two options and their values. */
static graft_status try_to_optimize(graft_env *env, const char *text, const char *const options[4],
                                    outcome *o)
{
    o->in = check_path("in.onnx");
    o->out = check_path("out.onnx");
    onnx_text_bytes(env->life, text, &o->before, &o->before_size);
    CHECK_OK(graft_file_write(env, o->in, o->before, o->before_size));
    const char *costs = check_path("costs");
    const char *words[WORDS_MOST] = {"optimize", o->in, o->out, "--database", costs};
    for (uint32_t i = 0; i < 4 && options[i] != NULL; i++) {
        words[5 + i] = options[i];
    }
    return call(env, &graft_command_optimize, words);
}

static outcome optimize(graft_env *env, const char *text, const char *option, const char *value)
{
    outcome o;
    graft_status status = try_to_optimize(env, text, (const char *[4]){option, value}, &o);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    CHECK_OK(graft_file_read(env, env->life, o.out, &o.after, &o.after_size));
    return o;
}

static void assert_same(const outcome *o)
{
    assert_int_equal(o->after_size, o->before_size);
    assert_memory_equal(o->after, o->before, o->before_size);
}

/* The transposes would cancel out, but nothing new can be written in opset 6 beside a node that
 * Graft does not know. */
CHECK_CASE(test_too_old_for_anything_new)
{
    outcome o = optimize(env,
                         "opset 6; input x 32 64 64; node Exp x -> e;"
                         "node Transpose e -> t : perm=0,2,1; node Transpose t -> u : perm=0,2,1;"
                         "node Magic u -> y; output y",
                         NULL, NULL);
    assert_same(&o);
}

/* An opaque node may have any number of inputs. */
CHECK_CASE(test_wide_node)
{
    outcome o = optimize(env,
                         "input x 1 4; node Magic x x x x x x x x x x x x x x x x x x x x x x x x x"
                         " x x x x x x x x x x -> y; output y",
                         NULL, NULL);
    assert_same(&o);
}

/* A table that is looked up at places that are known is not worked out where the file would grow by
 * it; what ends up smaller than the file is, whatever comes between. */
CHECK_CASE(test_tables_do_not_swell)
{
    static const char *const ends[] = {
        "node Add x g -> y; output y",
        "node ReduceMean g -> m : axes=0,; node Add x m -> y; output y",
    };
    for (size_t i = 0; i < 2; i++) {
        graft_buffer text = {.arena = env->life};
        graft_buffer_printf(&text, "opset 13; input x 56 1024; weight t 2 1024; ints k =");
        for (uint32_t n = 0; n < 56; n++) {
            graft_buffer_printf(&text, " %u", n * n % 7 % 2);
        }
        graft_buffer_printf(&text, "; node Gather t k -> g; %s", ends[i]);
        const outcome o = optimize(env, text.data, "--simplify", NULL);
        if (i == 0) {
            assert_same(&o);
        } else {
            assert_true(o.after_size < o.before_size);
        }
    }
}

/* A size that is fixed is a number in every declaration, and the file says that it was not. */
CHECK_CASE(test_frozen_size)
{
    graft_model *model = NULL;
    outcome o = optimize(env,
                         "input x N 4 C; node Transpose x -> t : perm=1,0,2; node Exp t -> e;"
                         "node Transpose e -> y : perm=1,0,2; info t 4 N C; output y N 4 C",
                         "--freeze", "N=3");
    CHECK_OK(graft_model_read(env, env->life, o.out, NULL, &model));
    assert_int_equal(model->size_count, 1);
    assert_string_equal(model->sizes[0].name, "C");
    const Onnx__ModelProto *proto = model->onnx->proto;
    assert_int_equal(proto->n_metadata_props, 1);
    assert_string_equal(proto->metadata_props[0]->key, "graft.frozen.N");
    assert_string_equal(proto->metadata_props[0]->value, "3");
    assert_int_equal(proto->graph->output[0]->type->tensor_type->shape->dim[0]->dim_value, 3);
}

/* So it is where no costs are asked. */
CHECK_CASE(test_frozen_and_simplified)
{
    outcome o;
    graft_model *model = NULL;
    CHECK_OK(try_to_optimize(env,
                             "input x N 4; node Identity x -> i; node Relu i -> y; output y N 4",
                             (const char *[4]){"--simplify", "--freeze", "N=3"}, &o));
    CHECK_OK(graft_model_read(env, env->life, o.out, NULL, &model));
    assert_int_equal(model->size_count, 0);
    assert_int_equal(model->inputs[0].shape.dims[0], 3);
    assert_int_equal(model->onnx->proto->n_metadata_props, 1);
}

/* Sizes that are called by how they follow from such are fixed with them; others stay open. */
CHECK_CASE(test_frozen_sum)
{
    outcome o;
    graft_model *model = NULL;
    static const char text[] = "input m N P+S; input p N P; input s N S;"
                               "node Concat p s -> c : axis=1; node Relu c -> r; node Add r m -> y;"
                               "output y N N*(P+2*S-S)";
    CHECK_OK(
        try_to_optimize(env, text, (const char *[4]){"--simplify", "--freeze", "P=5,S=3"}, &o));
    CHECK_OK(graft_model_read(env, env->life, o.out, NULL, &model));
    assert_int_equal(model->size_count, 1);
    assert_int_equal(model->inputs[0].shape.dims[1], 8);
    assert_int_equal(model->onnx->proto->n_metadata_props, 2);
    CHECK_OK(try_to_optimize(env, text, (const char *[4]){"--freeze", "P=5,S=3,N=2"}, &o));
    CHECK_OK(graft_model_read(env, env->life, o.out, NULL, &model));
    const Onnx__ValueInfoProto *y = model->onnx->proto->graph->output[0];
    assert_int_equal(y->type->tensor_type->shape->dim[1]->dim_value, 16);
}

/* A user's rules, proved for all sizes where their conditions hold: one holds at the sizes that are
 * looked at, 1 and 3, and at no more than 100; the other at all. */
CHECK_CASE(test_rules_of_a_user)
{
    static const struct {
        const char *rule;
        bool applies;
    } asked[] = {
        {"{name: twice, source: \"exp(relu(relu(a)))\", target: \"exp(relu(a))\", where: "
         "\"dim(a,0) <= 100\"}", false},
        {"{name: twice, source: \"exp(relu(relu(a)))\", target: \"exp(relu(a))\", where: \"1 <= "
         "dim(a,0)\"}",          true },
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        const char *yaml = check_path("my.yaml");
        const char *rules = check_path("my.rules");
        const char *text = graft_arena_printf(env->life, "rules:\n  - %s\n", asked[i].rule);
        static const char empty[] = "\010\001\022\013z3 4.8.12.0"; /* A set without rules. */
        CHECK_OK(graft_file_write(env, yaml, text, strlen(text)));
        CHECK_OK(graft_file_write(env, rules, empty, sizeof(empty) - 1));
        graft_status status =
            call(env, &graft_command_verify,
                 (const char *[]){"verify", yaml, "--merge", "--rules", rules, NULL});
        assert_string_equal(env->message, "");
        CHECK_OK(status);
        const outcome o =
            optimize(env,
                     "input x N 4096; node Relu x -> a; node Relu a -> b; node Exp b -> y;"
                     "output y N 4096",
                     "--rules", rules);
        graft_model *model = NULL;
        CHECK_OK(graft_model_read(env, env->life, o.out, NULL, &model));
        assert_int_equal(model->onnx->proto->graph->n_node, asked[i].applies ? 2 : 3);
    }
}

/* A policy applies its rules in the engine, where nobody asks whether they hold at all sizes. */
CHECK_CASE(test_policy_and_open_sizes)
{
    const char *text = "input x N 4; node Relu x -> y; output y N 4";
    const char *policy = "tests/versions/1.policy.graft";
    outcome o;
    assert_int_equal(try_to_optimize(env, text, (const char *[4]){"--policy", policy}, &o),
                     GRAFT_UNSUPPORTED);
    assert_non_null(strstr(env->message, "leaves the size 'N' open"));
    assert_false(graft_file_exists(o.out));
    graft_env_clear(env);
    CHECK_OK(
        try_to_optimize(env, text, (const char *[4]){"--policy", policy, "--freeze", "N=2"}, &o));
}
