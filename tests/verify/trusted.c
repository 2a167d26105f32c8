/* The trusted core as a program: what `make trusted` links with Z3, xxHash and libc alone, to see
 * which files a proof needs. It takes both ways to a proof, of a true and of a false rule each.
 * Prints a line for each rule. */
#include "graph/rule/pattern.h"
#include "verify/instances/pointwise.h"
#include "verify/sizes/symbolic.h"

#include <stdio.h>

/* op(a, b) = op(b, a) */
static graft_rule make_swap(uint8_t op)
{
    graft_rule rule = {.var_count = 2, .output_count = 1, .condition = 255};
    rule.source.node_count = 1;
    rule.source.nodes[0] = (graft_pattern_node){
        .op = op, .inputs = {GRAFT_OPERAND_VAR(0), GRAFT_OPERAND_VAR(1)}
    };
    rule.source.outputs[0] = GRAFT_OPERAND_NODE(0, 0);
    rule.target = rule.source;
    rule.target.nodes[0].inputs[0] = GRAFT_OPERAND_VAR(1);
    rule.target.nodes[0].inputs[1] = GRAFT_OPERAND_VAR(0);
    return rule;
}

static const char *scalar_verdict(graft_env *env, const graft_rule *rule)
{
    graft_prove_options options = graft_prove_defaults();
    graft_prove_result result;
    graft_rule scalar;
    graft_point point;
    if (!graft_pointwise_rule(rule, &scalar, &point)) {
        return "no rule of scalars";
    }
    graft_prove_rule(env, &scalar, &point, 1, &options, &result);
    return result.verdict == GRAFT_VERDICT_PROVED ? "proved" : "not proved";
}

static const char *verdict(graft_env *env, const graft_rule *rule)
{
    graft_prove_options options = graft_prove_defaults();
    graft_symbolic_result result;
    graft_symbolic_prove(env, rule, NULL, 0, &options, &result);
    return result.proved ? "proved" : "not proved";
}

int main(void)
{
    static const uint8_t ops[3] = {GRAFT_OP_add, GRAFT_OP_sub, GRAFT_OP_matmul};
    graft_env env;
    if (graft_env_open(&env) != GRAFT_OK) {
        return 1;
    }
    for (uint32_t i = 0; i < 3; i++) {
        const graft_rule rule = make_swap(ops[i]);
        const char *name = graft_op(ops[i])->name;
        printf("%s(a, b) = %s(b, a): %s; scalars: %s\n", name, name, verdict(&env, &rule),
               scalar_verdict(&env, &rule));
    }
    graft_env_close(&env);
    return 0;
}
