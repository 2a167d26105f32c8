/* tasoimplied.c - which of TASO's rules follow from ours. See taso.h. */
#include "verify/command/taso.h"

#include "graph/base/file.h"
#include "verify/set/derive.h"
#include "verify/sweep/domain.h"

#include <string.h>

enum { POINTS = 6, ATTEMPTS = 60000 };

static graft_domain sample_points(graft_env *env, const graft_rule *rule)
{
    graft_domain domain;
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 7};
    graft_domain_find(env, env->unit, rule, &options, &domain);
    return domain;
}

/* Appends "merge, then drop": the rules of a derivation. */
static void name_derivation(graft_buffer *out, const graft_ruleset *set,
                            const graft_derivation *derivation)
{
    for (uint32_t i = 0; i < derivation->count; i++) {
        graft_buffer_printf(out, "%s%s", i > 0 ? ", then " : "",
                            set->entries[derivation->steps[i]].name);
    }
}

static bool follows(graft_env *env, const graft_rulebook *book, const graft_rule *rule,
                    const graft_domain *domain, graft_derivation *first)
{
    graft_deriver *deriver = graft_deriver_new(env->scratch);
    bool does = domain->count > 0;
    for (uint32_t i = 0; i < domain->count && does; i++) {
        graft_derivation derivation = {0};
        does = graft_derive(deriver, rule, &domain->points[i], book,
                            (graft_derive_options){GRAFT_DERIVATION_STEPS, false}, &derivation);
        *first = i == 0 ? derivation : *first;
    }
    return does;
}

/* The same as equations; `first` are the derivations from both sides. */
static bool follows_as_equations(graft_env *env, const graft_rulebook *book, const graft_rule *rule,
                                 const graft_domain *domain, graft_derivation first[2])
{
    graft_deriver *left = graft_deriver_new(env->scratch);
    graft_deriver *right = graft_deriver_new(env->scratch);
    bool does = domain->count > 0;
    for (uint32_t i = 0; i < domain->count && does; i++) {
        graft_derivation sides[2] = {{.count = 0}};
        does = graft_equate(left, right, rule, &domain->points[i], book, sides);
        if (i == 0) {
            memcpy(first, sides, sizeof sides);
        }
    }
    return does;
}

const char *graft_taso_implied(graft_env *env, graft_arena *arena, const graft_ruleset *set,
                               const graft_rule *rule, bool *as_equations)
{
    graft_domain domain = sample_points(env, rule);
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_derivation first[2] = {{.count = 0}};
    graft_buffer by = {.arena = arena};
    graft_rulebook book;
    graft_rulebook_open(&book, env->scratch);
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rulebook_add(&book, &set->entries[i].rule, i);
    }
    *as_equations = false;
    if (follows(env, &book, rule, &domain, &first[0])) {
        name_derivation(&by, set, &first[0]);
    } else if (follows_as_equations(env, &book, rule, &domain, first)) {
        *as_equations = true;
        graft_buffer_printf(&by, "as equations: from the left by ");
        name_derivation(&by, set, &first[0]);
        graft_buffer_printf(&by, "%s", first[0].count == 0 ? "nothing" : "");
        graft_buffer_printf(&by, ", from the right by ");
        name_derivation(&by, set, &first[1]);
        graft_buffer_printf(&by, "%s", first[1].count == 0 ? "nothing" : "");
    }
    graft_arena_release(env->scratch, mark);
    return by.data;
}
