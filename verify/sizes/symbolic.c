/* symbolic.c - see symbolic.h. */
#include "verify/sizes/symbolic.h"

#include "graph/base/file.h"
#include "graph/rule/ruleprint.h"
#include "verify/sizes/hinter.h"
#include "verify/sizes/symbits.h"

#include <stdio.h>
#include <string.h>

struct graft_symbolic {
    graft_env *env;
    graft_core *proof;
    graft_sym_bits bits;
    graft_sym_hinter hinter;
};

/* "ranks 4,4,1; #1.axis=0" */
const char *graft_symbolic_print_case(graft_arena *arena, const graft_rule *rule,
                                      const graft_sym_case *c)
{
    graft_buffer out = {.arena = arena};
    graft_buffer_printf(&out, "ranks ");
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(&out, "%s%u", v > 0 ? "," : "", c->ranks[v]);
    }
    for (uint32_t i = 0; i < rule->slot_count; i++) {
        if (c->chosen[i]) {
            graft_buffer_printf(&out, " %s=%d", graft_rule_print_slot(arena, rule, i), c->slots[i]);
        } else if (c->infinite[i] != 0) {
            graft_buffer_printf(&out, " %s infinite", graft_rule_print_slot(arena, rule, i));
        }
    }
    return out.data;
}

graft_symbolic *graft_symbolic_open(graft_env *env, graft_prover *prover)
{
    graft_symbolic *p = GRAFT_NEW(env->unit, graft_symbolic, 1);
    p->env = env;
    p->proof = graft_core_open(prover);
    graft_sym_bits_open(graft_core_terms(p->proof), &p->bits);
    graft_sym_hinter_open(&p->hinter, graft_core_terms(p->proof));
    return p;
}

void graft_symbolic_close(graft_symbolic *p)
{
    graft_sym_hinter_close(&p->hinter);
    graft_core_close(p->proof);
}

/* Says in which case it failed. */
static void complete_reason(const graft_symbolic *p, const graft_rule *rule,
                            graft_core_result *result)
{
    const graft_sym_case *c = graft_core_failed_case(p->proof);
    if (c != NULL) {
        size_t length = strlen(result->reason);
        (void)snprintf(result->reason + length, sizeof result->reason - length, " (%s)",
                       graft_symbolic_print_case(p->env->unit, rule, c));
    }
}

void graft_symbolic_try(graft_symbolic *p, const graft_rule *rule,
                        const graft_prove_options *options, graft_core_result *result)
{
    GRAFT_SCOPED(p->env->unit);
    graft_sym_hinter_begin(&p->hinter);
    graft_core_try(p->proof, rule, &p->hinter.hints, NULL, options, result);
    complete_reason(p, rule, result);
}

/* Of these, the engine finds a node with its operands in either order, and the order tells zeros of
 * both signs apart. */
static bool is_choice(const graft_pattern_node *node)
{
    return (node->op == GRAFT_OP_max || node->op == GRAFT_OP_min) &&
           node->inputs[0] != node->inputs[1];
}

/* Exchanges the operands of those choices of a source whose bit is set; returns the bits that there
 * are. */
static uint32_t swap_choices(graft_pattern *source, uint32_t swaps)
{
    uint32_t all = 0;
    for (uint32_t n = 0; n < source->node_count; n++) {
        graft_pattern_node *node = &source->nodes[n];
        const graft_operand first = node->inputs[0];
        if (is_choice(node) && (swaps >> n & 1u) != 0) {
            node->inputs[0] = node->inputs[1];
            node->inputs[1] = first;
        }
        all |= is_choice(node) ? 1u << n : 0;
    }
    return all;
}

void graft_symbolic_try_exact(graft_symbolic *p, const graft_rule *rule,
                              const graft_prove_options *options, graft_core_result *result)
{
    graft_rule swapped = *rule;
    const uint32_t all = swap_choices(&swapped.source, 0);
    uint32_t swaps = 0;
    if ((uint32_t)__builtin_popcount(all) > GRAFT_LIMIT(SWAPS)) {
        *result = (graft_core_result){.reason = "maxima that are found in too many orders"};
        return;
    }
    do {
        swapped = *rule;
        (void)swap_choices(&swapped.source, swaps);
        graft_sym_hinter_begin(&p->hinter);
        graft_core_try(p->proof, &swapped, &p->hinter.hints, &p->bits.numbers, options, result);
        complete_reason(p, &swapped, result);
        swaps = (swaps - all) & all; /* The next set of these bits. */
    } while (result->same && swaps != 0);
}

void graft_symbolic_prove(graft_env *env, const graft_rule *rule,
                          const graft_prove_options *options, graft_core_result *result)
{
    graft_prover prover;
    graft_prove_result counts;
    GRAFT_SCOPED(env->unit);
    graft_prover_open(&prover, options, &counts);
    graft_symbolic *p = graft_symbolic_open(env, &prover);
    graft_symbolic_try(p, rule, options, result);
    graft_symbolic_close(p);
    graft_prover_close(&prover);
}
