/* listing.h - the rule set for people and scripts: list, search, count, explain. All
 * of it is made from the rule file alone and is the same text every time. */
#pragma once

#include "graph/base/file.h"
#include "graph/rule/rulefile.h"

/* Which rules are meant; NULL and false: whatever they are. */
typedef struct graft_listing_filter {
    const char *uses;    /* An operator that occurs on either side. */
    const char *proof;   /* graft_proof_name */
    const char *numeric; /* graft_numeric_name */
    const char *family;
    bool shrinks; /* Saves operators where its weights are constant. */
} graft_listing_filter;

/* GRAFT_BAD_INPUT, naming the option, for an operator that does not exist, and for a family that is
 * not in the set. */
GRAFT_MUST_USE graft_status graft_listing_check(graft_env *env, const graft_ruleset *set,
                                                const graft_listing_filter *filter);

/* Prints the rules that are meant, in the order of the file: two lines each, or JSON with --json.
 */
void graft_listing_print(graft_env *env, const graft_ruleset *set,
                         const graft_listing_filter *filter);
/* Prints how many of them each family has, by proof level and numeric class, and the sum. */
void graft_listing_count(graft_env *env, const graft_ruleset *set,
                         const graft_listing_filter *filter);

/* Whether `text` is the name, or the first digits (four at least) of the id. */
bool graft_listing_names(const char *text, const char *name, uint64_t id);

/* The rule of a name, or of the first digits (four at least) of an id. GRAFT_BAD_INPUT when there
 * is none, or more than one. */
GRAFT_MUST_USE graft_status graft_listing_find(graft_env *env, const graft_ruleset *set,
                                               const char *text, const graft_rule_entry **entry);
/* Appends what a rule does, where it holds and which way it pays. */
void graft_listing_explain(graft_env *env, const graft_ruleset *set, const graft_rule_entry *entry,
                           graft_buffer *out);
/* The same as one line of JSON. */
void graft_listing_explain_json(graft_env *env, const graft_ruleset *set,
                                const graft_rule_entry *entry);

/* What rounding does to a rule as a JSON object, "null" when nothing was measured; in `arena`. */
const char *graft_listing_rounding_json(graft_arena *arena, const graft_rounding *rounding);
