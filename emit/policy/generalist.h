/* generalist.h - one policy for many models: `graft policy zoo`, or MODEL,MODEL,...
 *
 *      walks through the models' rewrites ──► what nodes cost ──► tariff
 *      its choices among all rules ──► the rules that pay ──► header and policy file
 *
 * What it decides by is the tariff (GRAFT_DECIDER_TARIFF in include/graft/policy.h): no model,
 * price or search is needed where it runs, and it holds for graphs that it was not made from. */
#pragma once

#include "emit/command/session.h"

typedef struct graft_generalist_options {
    graft_session_options session; /* `model`: "zoo", or names or paths with commas between. */
    const char *out;               /* The folder. */
    const char *name;              /* In C; NULL: generalist. */
    const char *held_out;          /* A family that nothing is learnt from, or NULL. "each": after a
                                      policy of all models one more for each family, without it, in
                                      the folder of its name. */
    const char *measured;          /* A database that the fallback learns from besides; NULL: the
                                      device's, of rules/samples, if it has one. */
    uint32_t flash;                /* Most bytes of rules and tariff together. */
    bool amalgamate;
    uint64_t
        *priced; /* Receives the number of graphs whose price was asked for; NULL: not wanted. */
} graft_generalist_options;

/* Bytes of rules and tariff when nothing else is asked for. */
enum { GRAFT_GENERALIST_FLASH = 112 << 10 };

/* Whether a MODEL argument means several models. */
bool graft_generalist_means(const char *model);
/* Writes graft_policy.h, policy.graft and results.json into the folder, and prints what the policy
 * finds on each model, by the database named, beside greedy search. Fails as sessions do. */
GRAFT_MUST_USE graft_status graft_generalist_make(graft_env *env,
                                                  const graft_generalist_options *options);
