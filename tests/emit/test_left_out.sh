#!/bin/sh
# What products may leave out of the engine: it decides as ever, or refuses the policy.
. tests/support/tap.sh

POLICY=rules/policies/intel-xeon-6-167-avx512.graft
"$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo
"$GRAFT" --quiet emit-graph resnet8 "$FOLDER/graft_graph.h" --name net
cat > "$FOLDER/plan.c" << 'END'
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"
static uint64_t memory[1 << 15];
int main(void)
{
    static const graft_recorded_plan plan = {1, 2, 0, 0};
    const graft_limits limits = {4, 4, 8, 1};
    const graft_optimize_options options = graft_optimize_options_default();
    graft_policy policy = GRAFT_POLICY;
    graft_graph graph;
    policy.plans = &plan;
    policy.plan_count = 1;
    return graft_graph_init(&graph, &limits, memory, sizeof memory / 2) != GRAFT_OK ||
           graft_optimize(&graph, &policy, &options, memory + (1 << 14), sizeof memory / 2, 0) != GRAFT_OK;
}
END
build() { # NAME SOURCE... with OPTION
    name=$1
    shift
    # shellcheck disable=SC2086 # No option is no word.
    gcc -std=c99 -O1 -Wall -Wextra -Werror -pedantic $OPTION -I"$FOLDER" -Iinclude "$@" -o "$FOLDER/$name"
}
decides_alike() {
    build less tests/firmware/main.c tests/firmware/host.c && "$FOLDER/less" | grep -v '^#' > "$FOLDER/less.txt" &&
        cmp "$FOLDER/all.txt" "$FOLDER/less.txt"
}
refuses_plans() {
    build plan "$FOLDER/plan.c" && ! "$FOLDER/plan" && OPTION='' && build plan "$FOLDER/plan.c" && "$FOLDER/plan"
}
OPTION=''
build all tests/firmware/main.c tests/firmware/host.c && "$FOLDER/all" | grep -v '^#' > "$FOLDER/all.txt"
check "rules are applied" grep -q '^rule' "$FOLDER/all.txt"
for OPTION in -DGRAFT_NEAR_WEIGHTS -DGRAFT_WITHOUT_CHECKS -DGRAFT_WITHOUT_KEEPING -DGRAFT_WITHOUT_PLANS; do
    check "the same with $OPTION" decides_alike
done
check "plans are refused" refuses_plans
cat > "$FOLDER/names.c" << 'END'
#define GRAFT_IMPLEMENTATION
#define GRAFT_RULE_NAMES
#include "graft_policy.h"
#include <stdio.h>
int main(void) { return puts(graft_policy_zoo_names[graft_policy_zoo.rule_count - 1]) < 0; }
END
names_rules() {
    build names "$FOLDER/names.c" && "$FOLDER/names" > "$FOLDER/name.txt" &&
        grep -qF "/* $(($(grep -o 'Rules: [0-9]*' "$FOLDER/graft_policy.h" | cut -d' ' -f2) - 1)) $(cat "$FOLDER/name.txt") */" "$FOLDER/graft_policy.h"
}
OPTION=''
check "rules have their names where they are wanted" names_rules
cat > "$FOLDER/memory.c" << 'END'
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"
#include <stdio.h>
int main(void)
{
    static const graft_limits limits[] = {{32, 64, 128, 1}, {128, 256, 512, 1}, {1024, 2048, 4096, 1}};
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        printf("| %u | %u\n", (unsigned)graft_graph_bytes(&limits[i]),
               (unsigned)graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits[i], 256));
    }
    return 0;
}
END
tells_memory() { # The page's table, whose policy has as many rules.
    OPTION='' && build memory "$FOLDER/memory.c" && "$FOLDER/memory" > "$FOLDER/large.txt" &&
        OPTION=-DGRAFT_SMALL_GRAPHS && build memory "$FOLDER/memory.c" && "$FOLDER/memory" > "$FOLDER/small.txt" || return 1
    OPTION=''
    paste -d' ' "$FOLDER/large.txt" "$FOLDER/small.txt" > "$FOLDER/rows.txt"
    sed -n '/^| nodes, values, edges/,/^$/p' docs/embedding.md | sed '1,2d; /^$/d; s/\([0-9]\),\([0-9]\)/\1\2/g' |
        cut -d'|' -f3- | sed 's/^/|/; s/ |$//' | diff - "$FOLDER/rows.txt"
}
check "docs/embedding.md tells the memory" tells_memory
# Rules about other operators would not match in this model.
OPERATORS=conv,conv_bias,conv_bias_add,matmul,matmul_bias,scale_shift,relu,add,mul,avg_pool,global_avg_pool,reshape,transpose,softmax,fill,max
keeps_some() {
    "$GRAFT" --json emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo --operators $OPERATORS > "$FOLDER/some.json" &&
        grep -q '"rules": [1-9][0-9]\{0,2\},' "$FOLDER/some.json"
}
stops_alike() { # Rules have other numbers: what they make is the same.
    build some tests/firmware/main.c tests/firmware/host.c && "$FOLDER/some" | grep '^steps' > "$FOLDER/some.txt" &&
        grep '^steps' "$FOLDER/all.txt" | cmp - "$FOLDER/some.txt"
}
refuses_operators() {
    OPTION='-DGRAFT_OPERATORS=4u'
    ! build few tests/firmware/main.c tests/firmware/host.c 2> "$FOLDER/error.txt" && grep -q 'GRAFT_OPERATORS lacks' "$FOLDER/error.txt"
}
# What rules use is known with them: a policy whose rules use more is refused, or does not compile.
knows_uses() {
    OPTION=''
    grep -q '^#define GRAFT_RULE_OUTPUTS 1$' "$FOLDER/graft_policy.h" &&
        for macro in GRAFT_RULE_CODES=1u GRAFT_RULE_OUTPUTS=0; do
            OPTION=-D$macro
            ! build few tests/firmware/main.c tests/firmware/host.c 2> "$FOLDER/error.txt" &&
                grep -q "${macro%=*} .* this policy was made for" "$FOLDER/error.txt" || return 1
        done
}
# With all operators there are such rules, and the header says so.
keeps_uses() {
    all=$(sed -n 's/^OP([0-9]*, *\([a-z_0-9]*\),.*/\1/p' include/graft/operators.def | paste -sd, -)
    "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo --operators "$all" &&
        grep -q '^#define GRAFT_RULE_OUTPUTS [2-4]$' "$FOLDER/graft_policy.h" &&
        grep -q '^#define GRAFT_OPERATORS_64 0x[1-9a-f]' "$FOLDER/graft_policy.h" && stops_alike
}
refuses_uses() { # The policy for all operators has rules of several outputs and other codes.
    "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo || return 1
    for OPTION in -DGRAFT_RULE_CODES=1u -DGRAFT_RULE_OUTPUTS=1; do
        build few tests/firmware/main.c tests/firmware/host.c && ! "$FOLDER/few" > "$FOLDER/few.txt" &&
            grep -q '^bad input' "$FOLDER/few.txt" || return 1
    done
}
refuses_graph() {
    "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo --operators conv,scale_shift,conv_bias &&
        OPTION='' build few tests/firmware/main.c tests/firmware/host.c && ! "$FOLDER/few" > "$FOLDER/few.txt" &&
        grep -q '^bad input' "$FOLDER/few.txt"
}
holds_two() { # One for all operators, then one for some.
    "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo &&
        "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/some.h" --name some --operators $OPERATORS || return 1
    printf '#define GRAFT_IMPLEMENTATION\n#include "graft_policy.h"\n#include "some.h"\n%s\n' \
        'int main(void) { return graft_policy_some.rule_count >= graft_policy_zoo.rule_count; }' > "$FOLDER/two.c"
    build two "$FOLDER/two.c" && "$FOLDER/two" || return 1
    printf '#define GRAFT_IMPLEMENTATION\n#include "some.h"\n#include "graft_policy.h"\n' > "$FOLDER/two.c"
    ! build two "$FOLDER/two.c" 2> "$FOLDER/error.txt" && grep -q 'for all operators: include it before' "$FOLDER/error.txt"
}
check "two policies, of which the second is for some operators" holds_two
check "a policy for some operators" keeps_some
check "the same with some operators" stops_alike
check "others are not there" refuses_operators
check "neither is what rules do not use" knows_uses
OPTION=''
check "with all operators rules use more" keeps_uses
check "rules that use it are refused" refuses_uses
check "a graph with others is refused" refuses_graph
finish
