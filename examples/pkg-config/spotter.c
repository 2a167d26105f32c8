/* spotter.c - an out-of-tree program: prints how many rules its policy has. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include <stdio.h>

int main(void) { return printf("%u rules\n", (unsigned)GRAFT_POLICY.rule_count) < 0; }
