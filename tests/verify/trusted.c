/* The trusted core as a program: what `make trusted` links with Z3, xxHash and libc alone, to see
 * which files a proof needs. It is given a true rule and two false ones, and no hints. Prints a
 * line for each. */
#include "verify/core/core.h"

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

static const char *verdict(graft_core *core, const graft_rule *rule)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_core_result result;
    graft_core_try(core, rule, NULL, NULL, &options, &result);
    return result.proved ? "proved" : "not proved";
}

int main(void)
{
    static const uint8_t ops[3] = {GRAFT_OP_add, GRAFT_OP_sub, GRAFT_OP_matmul};
    const graft_prove_options options = graft_prove_defaults();
    graft_prove_result counts;
    graft_prover prover;
    graft_prover_open(&prover, &options, &counts);
    graft_core *core = graft_core_open(&prover);
    for (uint32_t i = 0; i < 3; i++) {
        const graft_rule rule = make_swap(ops[i]);
        const char *name = graft_op(ops[i])->name;
        printf("%s(a, b) = %s(b, a): %s\n", name, name, verdict(core, &rule));
    }
    graft_core_close(core);
    graft_prover_close(&prover);
    return 0;
}
