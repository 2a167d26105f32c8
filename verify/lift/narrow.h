/* narrow.h - a second chance for a rule that was lifted too far. */
#pragma once

#include "verify/instances/instance.h"

/* A rule, and a point where it is known to apply. */
typedef struct graft_found_rule {
    graft_rule rule;
    graft_point origin;
} graft_found_rule;

/* The rule that says source = target where `where` ("": always). False, and nothing written, when
 * that is no valid rule. */
bool graft_rule_restate(graft_env *env, const char *source, const char *target, const char *where,
                        graft_rule *rule);
/* Restricts a valid rule to what it was found at: each variable to the rank that it has at
 * `origin`, and variables of one shape there to one shape. False, and nothing written, when the
 * result is no valid rule (its precondition has become too long). */
bool graft_rule_narrow(graft_env *env, const graft_rule *rule, const graft_point *origin,
                       graft_rule *narrowed);
/* The rule without part `part` of its precondition, counted from 0; false when there is none. */
bool graft_rule_without(graft_env *env, const graft_rule *rule, uint32_t part, graft_rule *weaker);

/* The slots, as bits, that are whole numbers and can be pinned; with `loose` those of them only
 * that the target does not mention. */
uint64_t graft_rule_pinnable(const graft_rule *rule, bool loose);
/* The rule with some of these slots fixed to what they are at its origin. False, and nothing
 * written, when the result is no valid rule. */
bool graft_rule_pin(graft_env *env, const graft_found_rule *found, uint64_t slots,
                    graft_found_rule *pinned);
