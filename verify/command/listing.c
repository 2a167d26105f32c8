/* listing.c - see listing.h; explain.c says one rule in words. */
#include "verify/command/listing.h"

#include "graph/base/json.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"

#include <inttypes.h>
#include <string.h>

enum {
    PROOF_LEVELS = GRAFT_PROOF_UNBOUNDED + 1,
    NUMERIC_CLASSES = GRAFT_NUMERIC_EXACT_INTEGER + 1,
    NAMED_MOST = 8
};

/* Whether it says why it is not proved for all sizes. */
static bool has_reason(const graft_rule_entry *entry)
{
    return entry->proof != GRAFT_PROOF_UNBOUNDED && entry->reason != NULL &&
           entry->reason[0] != '\0';
}

/* ------------------------------------------------------------------ search */

static bool is_meant(const graft_listing_filter *filter, const graft_rule_entry *entry)
{
    const uint32_t op = filter->uses == NULL ? GRAFT_OP_NONE : graft_op_named(filter->uses);
    return (filter->uses == NULL || graft_pattern_has(&entry->rule.source, op) ||
            graft_pattern_has(&entry->rule.target, op)) &&
           (filter->proof == NULL || strcmp(graft_proof_name(entry->proof), filter->proof) == 0) &&
           (filter->numeric == NULL ||
            strcmp(graft_numeric_name(entry->numeric), filter->numeric) == 0) &&
           (filter->family == NULL || strcmp(entry->family, filter->family) == 0) &&
           (!filter->shrinks || entry->gain > 0);
}

static bool family_exists(const graft_ruleset *set, const char *name)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->entries[i].family, name) == 0) {
            return true;
        }
    }
    return false;
}

graft_status graft_listing_check(graft_env *env, const graft_ruleset *set,
                                 const graft_listing_filter *filter)
{
    if (filter->uses != NULL && graft_op_named(filter->uses) == GRAFT_OP_NONE) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--uses: no operator '%s'; their names are in graft/operators.def",
                          filter->uses);
    }
    if (filter->family != NULL && !family_exists(set, filter->family)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--family: the set has no family '%s'",
                          filter->family);
    }
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- listing */

static void print_json(graft_env *env, const graft_rule_entry *entry)
{
    graft_json json;
    graft_rule_text text = graft_rule_print(env->unit, &entry->rule);
    graft_json_begin(&json, env->unit);
    graft_json_add(
        &json, "id=%s name=%s source=%s target=%s where=%s numeric=%s rounding=(%s) proof=%s",
        graft_arena_printf(env->unit, "%016" PRIx64, entry->id), entry->name, text.source,
        text.target, text.where, graft_numeric_name(entry->numeric),
        graft_listing_rounding_json(env->unit, &entry->rounding), graft_proof_name(entry->proof));
    graft_json_strings(&json, "axioms", entry->axioms, entry->axiom_count);
    graft_json_add(&json, "points=%u cover=%u cases=%u reason=%s family=%s gain=%d", entry->points,
                   entry->cover, entry->cases, has_reason(entry) ? entry->reason : NULL,
                   entry->family, entry->gain);
    graft_json_end(&json, stdout);
}

void graft_listing_print(graft_env *env, const graft_ruleset *set,
                         const graft_listing_filter *filter)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_rule_entry *entry = &set->entries[i];
        GRAFT_SCOPED(env->unit);
        if (!is_meant(filter, entry)) {
            continue;
        }
        if (env->json) {
            print_json(env, entry);
        } else {
            (void)printf("%s (%s, %s, %s)\n    %s\n", entry->name, entry->family,
                         graft_proof_name(entry->proof), graft_numeric_name(entry->numeric),
                         graft_rule_print_line(env->unit, &entry->rule));
            if (has_reason(entry)) {
                (void)printf("    not for all sizes: %s\n", entry->reason);
            }
        }
    }
}

bool graft_listing_names(const char *text, const char *name, uint64_t id)
{
    enum { DIGITS_LEAST = 4, DIGITS = 16 };
    char digits[DIGITS + 1];
    size_t length = strlen(text);
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, id);
    return strcmp(name, text) == 0 ||
           (length >= DIGITS_LEAST && strncmp(digits, text, length) == 0);
}

/* The first of the names that begin with a text, as the end of a sentence. */
static const char *list_beginning(graft_arena *arena, const graft_ruleset *set, const char *text)
{
    const char *list = "";
    uint32_t found = 0;
    for (uint32_t i = 0; i < set->count && found <= NAMED_MOST; i++) {
        if (strncmp(set->entries[i].name, text, strlen(text)) == 0) {
            list = graft_arena_printf(arena, "%s%s%s", list,
                                      found == 0 ? "; names that begin so: " : ", ",
                                      found < NAMED_MOST ? set->entries[i].name : "...");
            found++;
        }
    }
    return list;
}

graft_status graft_listing_find(graft_env *env, const graft_ruleset *set, const char *text,
                                const graft_rule_entry **entry)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->entries[i].name, text) == 0) {
            *entry = &set->entries[i];
            return GRAFT_OK;
        }
        if (graft_listing_names(text, set->entries[i].name, set->entries[i].id)) {
            *entry = &set->entries[i];
            found++;
        }
    }
    if (found != 1) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s rule with the name or id '%s'%s",
                          found == 0 ? "no" : "more than one", text,
                          list_beginning(env->life, set, text));
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- counting */

typedef struct {
    const char *family;
    uint32_t rules;
    uint32_t proofs[PROOF_LEVELS];
    uint32_t numerics[NUMERIC_CLASSES];
    uint32_t shrinking;
} tally;

static void add_entry(tally *t, const graft_rule_entry *entry)
{
    t->rules++;
    t->proofs[entry->proof < PROOF_LEVELS ? entry->proof : 0]++;
    t->numerics[entry->numeric < NUMERIC_CLASSES ? entry->numeric : 0]++;
    t->shrinking += entry->gain > 0 ? 1 : 0;
}

/* Tallies of the families in the order of their first rule, then one of all; `count` in all. */
static const tally *tally_set(graft_arena *arena, const graft_ruleset *set,
                              const graft_listing_filter *filter, uint32_t *count)
{
    tally *tallies = GRAFT_NEW(arena, tally, (size_t)set->count + 1);
    tally sum = {.family = "all"};
    uint32_t families = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_rule_entry *entry = &set->entries[i];
        uint32_t f = 0;
        if (!is_meant(filter, entry)) {
            continue;
        }
        while (f < families && strcmp(tallies[f].family, entry->family) != 0) {
            f++;
        }
        families += f == families ? 1 : 0;
        tallies[f].family = entry->family;
        add_entry(&tallies[f], entry);
        add_entry(&sum, entry);
    }
    tallies[families] = sum;
    *count = families + 1;
    return tallies;
}

static void print_tally_json(graft_env *env, const tally *t)
{
    graft_json json;
    graft_json_begin(&json, env->unit);
    graft_json_add(&json, "family=%s rules=%u", t->family, t->rules);
    graft_json_integer(&json, graft_proof_name(GRAFT_PROOF_UNBOUNDED),
                       t->proofs[GRAFT_PROOF_UNBOUNDED]);
    graft_json_integer(&json, graft_proof_name(GRAFT_PROOF_BOUNDED),
                       t->proofs[GRAFT_PROOF_BOUNDED]);
    for (uint32_t n = 1; n < NUMERIC_CLASSES; n++) {
        graft_json_integer(&json, graft_numeric_name(n), t->numerics[n]);
    }
    graft_json_integer(&json, "shrinking", t->shrinking);
    graft_json_end(&json, stdout);
}

void graft_listing_count(graft_env *env, const graft_ruleset *set,
                         const graft_listing_filter *filter)
{
    GRAFT_SCOPED(env->unit);
    uint32_t count = 0;
    const tally *tallies = tally_set(env->unit, set, filter, &count);
    if (!env->json) {
        (void)printf("%-16s %6s %8s %15s %6s %14s %14s %10s\n", "family", "rules", "proved",
                     "within-bounds", "exact", "reassociating", "exact-integer", "shrinking");
    }
    for (uint32_t i = 0; i < count; i++) {
        const tally *t = &tallies[i];
        if (env->json) {
            print_tally_json(env, t);
            continue;
        }
        (void)printf("%-16s %6u %8u %15u %6u %14u %14u %10u\n", t->family, t->rules,
                     t->proofs[GRAFT_PROOF_UNBOUNDED], t->proofs[GRAFT_PROOF_BOUNDED],
                     t->numerics[GRAFT_NUMERIC_EXACT], t->numerics[GRAFT_NUMERIC_REASSOCIATING],
                     t->numerics[GRAFT_NUMERIC_EXACT_INTEGER], t->shrinking);
    }
}
