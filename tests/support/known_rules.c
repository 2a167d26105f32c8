/* known_rules.c - see known_rules.h. The rules stand for the features of the engine: several roots,
 * several outputs, targets that are variables, byte code, commuted operands, weight programs. */
#include "tests/support/known_rules.h"

#include "tests/support/build.h"
#include "tests/support/rows.h"

static const char *const true_rules[] = {
    /* Variables as targets; a variable may be const, and what reads it then becomes const. */
    "identity(a) = a",
    "max(a, a) = a",
    "max(min(a, b), b) = b",
    "max(a, min(a, b)) = a",
    "mul(a, fill#1(value=1.0)) = a",
    "add(fill#1(value=0.0), a) = a",
    "transpose(transpose(a, axis=[1, 0]), axis=[1, 0]) = a",
    "transpose(transpose(a, axis=[1, 2, 0]), axis=[2, 0, 1]) = a",
    "add(sub(a, b), b) = a",
    "concat(split#1(a).0, split#1(a).1, axis=#1.axis) = a",
    ("[split#1(concat(a, b, axis=1), axis=1).0, split#1(concat(a, b, axis=1), axis=1).1] = [a, b] "
     "where #1.at = dim(a,1)"),
    "[identity(a), relu(identity(a))] = [a, relu(a)]",
    "[tanh(identity(a)), identity(a)] = [tanh(a), a]",

    /* Const targets. */
    "sub(a, a) = fill(value=0.0, dim=[dim(a,0), dim(a,1)]) where rank(a) = 2",
    "mul(a, fill#1(value=0.0)) = fill#1(value=0.0)",

    /* Commuted and regrouped operands. */
    "add(a, b) = add(b, a)",
    "mul(a, b) = mul(b, a)",
    "add(add(a, b), c) = add(a, add(b, c))",
    "mul(mul(a, b), c) = mul(a, mul(b, c))",
    "mul(a, add(b, c)) = add(mul(a, b), mul(a, c))",
    "add(mul(a, b), mul(a, c)) = mul(a, add(b, c))",
    "add(a, sub(b, c)) = sub(add(a, b), c)",
    "sub(a, sub(b, c)) = add(sub(a, b), c)",
    "add(a, a) = mul(a, fill(value=2.0, dim=[]))",
    "add(mul(a, fill#1(value=0.5)), mul(b, fill#1(value=0.5))) ="
    " mul(add(a, b), fill#1(value=0.5))",
    "mul(add(a, fill(value=2.0, dim=[])), fill(value=2.0, dim=[])) ="
    " add(mul(a, fill(value=2.0, dim=[])), fill(value=4.0, dim=[]))",
    "min(a, max(b, c)) = max(min(a, b), min(a, c))",
    "add(max(a, b), c) = max(add(a, c), add(b, c))",
    "mul(a, div(b, c)) = div(mul(a, b), c)",
    "div(a, div(b, c)) = div(mul(a, c), b)",
    "mul(sqrt(a), sqrt(b)) = sqrt(mul(a, b))",

    /* Growing ones fill the tables. */
    "relu(a) = relu(relu(a))",
    "relu(relu(a)) = relu(a)",
    "relu(a) = max(a, fill(value=0.0, dim=[]))",
    ("tanh(a) = concat(tanh(slice(a, axis=0, start=0, end=dim(a,0) / 2)), "
     "tanh(slice(a, axis=0, start=dim(a,0) / 2, end=dim(a,0))), axis=0) where 3 <= rank(a)"),
    "relu(leaky_relu#1(a)) = relu(a)",
    "leaky_relu#1(relu(a)) = relu(a)",
    "relu(clip#1(a)) = clip(a, low=fmax(#1.low, 0), high=#1.high) where fle(0, #1.high)",
    ("clip#1(clip#2(a)) = clip(a, low=fmax(#1.low, #2.low), high=fmin(#1.high, #2.high)) "
     "where fle(#1.low, #2.high) and fle(#2.low, #1.high)"),

    /* Several roots. */
    "[add(a, b), mul(a, b)] = [add(b, a), mul(b, a)]",
    "[add(a, b), sub(a, b), mul(a, b)] = [add(a, b), sub(a, b), mul(a, b)]",
    "[relu(a), tanh(relu(a)), add(relu(a), b)] = [relu(a), tanh(relu(a)), add(b, relu(a))]",
    ("[relu(a), relu(b)] = [split(relu(concat(a, b, axis=0)), axis=0, at=dim(a,0)).0, "
     "split(relu(concat(a, b, axis=0)), axis=0, at=dim(a,0)).1]"),
    ("[conv#1(a, b), conv#1(a, c)] = [split(conv#1(a, concat(b, c, axis=0)), axis=1, "
     "at=dim(b,0)).0, "
     "split(conv#1(a, concat(b, c, axis=0)), axis=1, at=dim(b,0)).1] where #1.groups = 1"),
    ("[matmul(a, b), matmul(a, c)] = [matmul(a, add(sub(b, c), c)), matmul(a, c)] "
     "where same_shape(b, c)"),
    "[exp(a), exp(identity(b))] = [exp(a), exp(b)]",

    /* Several outputs of one node; an output that nobody reads. */
    ("[split#1(a, axis=1).0, split#1(a, axis=1).1] = [slice(a, axis=1, start=0, end=#1.at), "
     "slice(a, axis=1, start=#1.at, end=dim(a,1))]"),
    "[split#1(relu(a)).0, split#1(relu(a)).1] = [relu(split#1(a).0), relu(split#1(a).1)]",
    "[relu(split#1(a).0), relu(split#1(a).1)] = [split#1(relu(a)).0, split#1(relu(a)).1]",
    "concat#1(relu(a), relu(b)) = relu(concat#1(a, b))",
    "relu(concat#1(a, b)) = concat#1(relu(a), relu(b))",
    "concat#1(concat#1(a, b), c) = concat#1(a, concat#1(b, c))",
    "slice#1(concat(a, b, axis=0), axis=0) = slice#1(a, axis=0) where #1.end <= dim(a,0)",
    ("slice#1(concat(a, b, axis=1), axis=1) = "
     "slice(b, axis=1, start=#1.start - dim(a,1), end=#1.end - dim(a,1)) where dim(a,1) <= "
     "#1.start"),
    ("slice#1(slice#2(a), axis=#2.axis) = "
     "slice(a, axis=#2.axis, start=#2.start + #1.start, end=#2.start + #1.end)"),
    ("pad#1(pad#2(a), axis=#2.axis, value=#2.value) = "
     "pad#2(a, before=#1.before + #2.before, after=#1.after + #2.after)"),

    /* Movement of data past computation. */
    "tanh(transpose#1(a)) = transpose#1(tanh(a))",
    "sigmoid(reshape#1(a)) = reshape#1(sigmoid(a))",
    "erf(slice#1(a)) = slice#1(erf(a))",
    "exp(identity(a)) = identity(exp(a))",
    "reshape#1(reshape#2(a)) = reshape#1(a)",
    "softmax(transpose(a, axis=[1, 0]), axis=1) = transpose(softmax(a, axis=0), axis=[1, 0])",
    ("matmul(transpose(a, axis=[1, 0]), transpose(b, axis=[1, 0])) = "
     "transpose(matmul(b, a), axis=[1, 0])"),
    "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))",
    "matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where same_shape(a, b)",
    "reduce_mean#1(add(a, b)) = add(reduce_mean#1(a), reduce_mean#1(b)) where same_shape(a, b)",
    "global_avg_pool(a) = reduce_mean(a, axes=12, keep=1)",
    "avg_pool#1(sub(a, b)) = sub(avg_pool#1(a), avg_pool#1(b)) where same_shape(a, b)",
    "max_pool#1(relu(a)) = relu(max_pool#1(a))",
    "relu(max_pool#1(a)) = max_pool#1(relu(a))",

    /* Fusion, with weights that are computed once. */
    "relu(conv_bias#1(a, b, c, activation=none)) = conv_bias#1(a, b, c, activation=relu)",
    "tanh(matmul_bias(a, b, c, activation=none)) = matmul_bias(a, b, c, activation=tanh)",
    "add(matmul(a, b), c) = matmul_bias(a, b, c, activation=none)",
    "add(conv_bias#1(a, b, c, activation=none), d) = conv_bias_add#1(a, b, c, d, activation=none)",
    ("relu(conv_bias_add#1(a, b, c, d, activation=none)) = "
     "conv_bias_add#1(a, b, c, d, activation=relu)"),
    "conv_transpose#1(add(a, b), c) = add(conv_transpose#1(a, c), conv_transpose#1(b, c))"
    " where same_shape(a, b)",
    "conv#1(a, b) = conv_bias#1(a, b, fill(value=0.0, dim=[dim(b,0)]), activation=none)",
    "scale_shift(scale_shift(a, b, c), d, e) = scale_shift(a, mul(b, d), add(mul(c, d), e))",
    ("scale_shift(conv#1(a, b), c, d) = "
     "conv_bias#1(a, mul(b, reshape(c, dim=[dim(c,0), 1, 1, 1])), d, activation=none) "
     "where const(b) and const(c)"),
    ("conv#1(pad#2(a, axis=2, value=0.0), b) = conv#1(a, b, pad_top=#1.pad_top + #2.before, "
     "pad_bottom=#1.pad_bottom + #2.after)"),
    "conv#1(a, add(b, c)) = add(conv#1(a, b), conv#1(a, c)) where same_shape(b, c)",
    "add(conv#1(a, b), conv#1(a, c)) = conv#1(a, add(b, c)) where same_shape(b, c)",
    /* What other tests begin with: two are here once more, and so drawn more often. */
    RULE_FUSE_RELU,
    RULE_FOLD_SCALE,
    RULE_MERGE_MATMUL,
    RULE_DROP_IDENTITY,
};

static const char *const false_rules[] = {
    "sub(a, b) = sub(b, a)",
    "concat(a, b, axis=0) = concat(b, a, axis=0)",
    "softmax(a, axis=0) = softmax(a, axis=1)",
    "transpose(a, axis=[1, 0]) = a",
    "transpose(matmul(a, b), axis=[1, 0]) = transpose(matmul(b, a), axis=[1, 0])",
    "relu(add(a, b)) = add(relu(a), relu(b))",
    ("slice#1(slice#2(a), axis=#2.axis) = slice(a, axis=#2.axis, start=#1.start, "
     "end=#1.end) where #1.end - #1.start = #1.end"),
    "[split#1(a, axis=0).0, split#1(a, axis=0).1] = [split#1(a, axis=0).1, split#1(a, axis=0).0]",
    "clip#1(clip#2(a)) = clip(a, low=fmin(#1.low, #2.low), high=fmin(#1.high, #2.high))",
    "max_pool#1(add(a, b)) = add(max_pool#1(a), max_pool#1(b)) where same_shape(a, b)",
    "avg_pool#1(a) = avg_pool#1(a, count_pad=1)",
    "transpose#1(transpose#1(transpose#1(a))) = a",
    "conv#1(a, b) = conv#1(a, b, pad_top=#1.pad_bottom, pad_bottom=#1.pad_top)",
    "max_pool#1(relu(a)) = max_pool#1(leaky_relu(a, slope=0.25))",
};

/* [f(a), f(a)] = [f(a), f(a)] with one node on the right: cannot be written as text, where equal
 * terms are one node. */
static graft_rule build_rule_merge_equal(uint32_t op)
{
    graft_rule rule = {.var_count = 1, .output_count = 2, .condition = 255};
    build_pattern_node(&rule.source, op, VAR(0), 0, 0, -1);
    build_pattern_node(&rule.source, op, VAR(0), 0, 0, -1);
    build_pattern_node(&rule.target, op, VAR(0), 0, 0, -1);
    rule.source.outputs[0] = NODE(0, 0);
    rule.source.outputs[1] = NODE(1, 0);
    rule.target.outputs[0] = NODE(0, 0);
    rule.target.outputs[1] = NODE(0, 0);
    return rule;
}

/* A target node that no output needs: legal, if useless, and dead at once. */
static graft_rule build_rule_idle_node(graft_env *env)
{
    graft_rule rule = rows_parse(env, RULE_DROP_IDENTITY);
    build_pattern_node(&rule.target, GRAFT_OP_exp, VAR(0), 0, 0, -1);
    build_pattern_node(&rule.target, GRAFT_OP_erf, NODE(0, 0), 0, 0, -1);
    return rule;
}

static known_rules read_rules(graft_env *env, graft_arena *arena, const char *const *texts,
                              uint32_t count)
{
    enum { BUILT_MOST = 16 };
    known_rules known = {GRAFT_NEW(arena, graft_rule, count + BUILT_MOST), 0};
    for (uint32_t i = 0; i < count; i++) {
        known.rules[known.count++] = rows_parse(env, texts[i]);
    }
    return known;
}

/* What is used has been through the packed form. */
static void pack_rules(known_rules *known)
{
    for (uint32_t i = 0; i < known->count; i++) {
        uint8_t bytes[1024];
        size_t used = 0;
        size_t size = graft_rule_pack(&known->rules[i], bytes, sizeof bytes);
        assert_true(size > 0);
        CHECK_OK(graft_rule_unpack(&known->rules[i], bytes, size, &used));
        assert_int_equal(used, size);
    }
}

known_rules known_rules_true(graft_env *env, graft_arena *arena)
{
    known_rules known =
        read_rules(env, arena, true_rules, sizeof true_rules / sizeof true_rules[0]);
    known.rules[known.count++] = build_rule_merge_equal(GRAFT_OP_tanh);
    known.rules[known.count++] = build_rule_merge_equal(GRAFT_OP_relu);
    known.rules[known.count++] = build_rule_idle_node(env);
    pack_rules(&known);
    return known;
}

known_rules known_rules_false(graft_env *env, graft_arena *arena)
{
    known_rules known =
        read_rules(env, arena, false_rules, sizeof false_rules / sizeof false_rules[0]);
    pack_rules(&known);
    return known;
}

known_rules known_rules_proved(graft_env *env)
{
    const graft_ruleset set = rows_committed(env);
    known_rules known = {GRAFT_NEW(env->life, graft_rule, set.count), set.count};
    for (uint32_t i = 0; i < set.count; i++) {
        known.rules[i] = set.entries[i].rule;
    }
    return known;
}
