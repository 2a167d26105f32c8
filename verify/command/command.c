/* command.c - `graft rules` (see command.h). */
#include "verify/command/command.h"

#include "gen/command.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/rulewords.h"
#include "verify/command/listing.h"
#include "verify/command/parts.h"
#include "verify/command/rulepage.h"
#include "verify/generate.h"
#include "verify/set/derivations.h"

/* ------------------------------------------------------------- generating */

static void log_counts(const graft_env *env, const graft_generate_counts *counts)
{
    graft_log(env, 1,
              "%u candidates, %u rules, %u more that only add operators; %u refuted, %u proved for "
              "all sizes only where restricted (%u of these two tried again so), %u with too few "
              "instances, %u follow from others, %u unknown, %u within bounds only, %u proved",
              counts->candidates, counts->rules, counts->growing, counts->refuted,
              counts->restricted, counts->narrowed, counts->thin, counts->dropped, counts->unknown,
              counts->bounded, counts->proved);
    const graft_generate_times *t = &counts->times;
    graft_log(env, 1,
              "processor time: propose %.1f s, lift %.1f s, sweep %.1f s, select %.1f s, prove "
              "%.1f s",
              (double)t->propose_ns / 1e9, (double)t->lift_ns / 1e9, (double)t->sweep_ns / 1e9,
              (double)t->select_ns / 1e9, (double)t->prove_ns / 1e9);
}

/* Makes the rules of the families in `from` (NULL: those in the folder) and writes them there. */
static graft_status generate(graft_env *env, const char *folder, const char *from,
                             const graft_gen_room *room)
{
    const graft_gen_family *families = NULL;
    uint32_t family_count = 0;
    graft_generate_options options = graft_generate_defaults();
    options.room = *room;
    from = from != NULL ? from : graft_arena_printf(env->life, "%s/families", folder);
    graft_generate_counts counts;
    graft_ruleset set;
    const char *path = graft_arena_printf(env->life, "%s/graft.rules", folder);
    GRAFT_PASS(graft_gen_families_read(env, env->life, from, &families, &family_count));
    GRAFT_PASS(graft_generate(env, families, family_count, &options, &set, &counts));
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK; /* The first rank writes. */
    }
    log_counts(env, &counts);
    GRAFT_PASS(graft_rulefile_write(env, path, &set));
    GRAFT_PASS(graft_derivations_write(
        env, graft_arena_printf(env->life, "%s/derivations.txt", folder), &counts.followers));
    graft_generate_forget(&options, &counts);
    (void)printf("%s: %u rules\n", path, set.count);
    return GRAFT_OK;
}

/* --------------------------------------------------------------- explaining */

static graft_status explain(graft_env *env, const graft_ruleset *set, const char *text,
                            const char *picture)
{
    const graft_rule_entry *entry = NULL;
    graft_buffer words = {.arena = env->life};
    graft_buffer dot = {.arena = env->life};
    GRAFT_PASS(graft_listing_find(env, set, text, &entry));
    if (picture != NULL) {
        graft_rule_picture(&dot, &entry->rule, entry->name);
        GRAFT_PASS(graft_file_write(env, picture, dot.data, dot.size));
    }
    if (env->json) {
        graft_listing_explain_json(env, set, entry);
    } else {
        graft_listing_explain(env, set, entry, &words);
        (void)fwrite(words.data, 1, words.size, stdout);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------- derivations */

enum { REPLAYED = 100, REPLAY_SEED = 1 };

static graft_status check_derivations(graft_env *env, const graft_ruleset *set, const char *path)
{
    graft_followers followers;
    graft_derivations_report report;
    GRAFT_PASS(graft_derivations_read(env, env->life, path, &followers));
    graft_derivations_check(env, set, &followers, REPLAYED, REPLAY_SEED, &report);
    if (env->json) {
        graft_json_print(env->life, stdout, "followers=%u replayed=%u failed=%u", report.total,
                         report.replayed, report.failed);
    } else {
        (void)printf("%s: %u of %u derivations replayed, %u failed\n", path, report.replayed,
                     report.total, report.failed);
    }
    return report.failed == 0
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_REFUTED, "%s: %u derivations fail", path, report.failed);
}

/* ------------------------------------------------------------- command line */

typedef struct {
    const char *file;
    const char *generate;
    const char *families;
    uint64_t memory_mib;
    graft_gen_room room;
    const char *explain;
    const char *picture;
    const char *html;
    const char *taso;
    const char *both;
    const char *derivations;
    bool count;
    graft_listing_filter filter;
} choices;

static const graft_option options[] = {
    GRAFT_SHIPPED(choices, file, "[FILE]", NULL, "rules/graft.rules", "the rule set"),
    GRAFT_TEXT(choices, filter.uses, "--uses", "OP", NULL, "rules with this operator"),
    GRAFT_CHOICE(choices, filter.proof, "--proof", "LEVEL", "proved|within-bounds", NULL,
                 "rules of this proof level"),
    GRAFT_CHOICE(choices, filter.numeric, "--numeric", "CLASS", "exact|reassociating|exact-integer",
                 NULL, "rules of this class"),
    GRAFT_TEXT(choices, filter.family, "--family", "NAME", NULL, "rules of one family"),
    GRAFT_FLAG(choices, filter.shrinks, "--shrinks", "rules that save operators"),
    GRAFT_FLAG(choices, count, "--count", "how many by family, proof level and numeric class"),
    GRAFT_TEXT(choices, explain, "--explain", "RULE", NULL,
               "one rule, by name or identity, in words"),
    GRAFT_OUTPUT(choices, picture, "--dot", "FILE", "and as a Graphviz picture"),
    GRAFT_OUTPUT(choices, html, "--html", "FILE", "as a page to search in, with pictures"),
    GRAFT_OUTPUT(choices, both, "--both", "FILE",
                 "the set with the other direction of its rules, where that is proved"),
    GRAFT_TEXT(choices, taso, "--taso", "FILE", NULL,
               "what the set says of the rules in a TASO file"),
    GRAFT_TEXT(choices, derivations, "--check-derivations", "FILE", NULL,
               "that the dropped rules in FILE follow from the set"),
    GRAFT_TEXT(choices, generate, "--generate", "FOLDER", NULL,
               "make the rules of FOLDER/families, and write them there"),
    GRAFT_TEXT(choices, families, "--families", "FOLDER", NULL, "with --generate: other families"),
    GRAFT_TEXT(choices, room.folder, "--work", "FOLDER", NULL,
               "where it goes on when it was interrupted; emptied at the end"),
    GRAFT_NUMBER(choices, memory_mib, "--memory", "MIB", NULL, 0, UINT32_MAX,
                 "what enumerating may take; what does not fit goes there"),
};

/* Only one thing is done, and only what lists or counts goes by a filter. */
static graft_status judge_actions(graft_env *env, const choices *c)
{
    const struct {
        const char *name;
        bool asked;
    } actions[] = {
        {"--generate",          c->generate != NULL   },
        {"--html",              c->html != NULL       },
        {"--taso",              c->taso != NULL       },
        {"--check-derivations", c->derivations != NULL},
        {"--both",              c->both != NULL       },
        {"--explain",           c->explain != NULL    },
        {"--count",             c->count              }
    };
    const graft_listing_filter *f = &c->filter;
    const bool filtered = f->uses != NULL || f->proof != NULL || f->numeric != NULL ||
                          f->family != NULL || f->shrinks;
    const char *asked = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (actions[i].asked && asked != NULL) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "rules: %s does not go with %s",
                              actions[i].name, asked);
        }
        asked = actions[i].asked ? actions[i].name : asked;
    }
    return filtered && asked != NULL && !c->count
               ? GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "rules: %s takes no filter: --uses, --proof, --numeric, --family and "
                            "--shrinks are for listing and --count",
                            asked)
               : GRAFT_OK;
}

static graft_status judge_choices(graft_env *env, choices *c)
{
    if (c->generate == NULL && (c->families != NULL || c->room.folder != NULL)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "rules: %s needs --generate FOLDER",
                          c->families != NULL ? "--families" : "--work");
    }
    if (c->picture != NULL && c->explain == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "rules: --dot needs --explain ID or NAME");
    }
    GRAFT_PASS(judge_actions(env, c));
    return graft_gen_room_bound(env, c->memory_mib, &c->room);
}

static graft_status run(graft_env *env, void *given)
{
    choices *c = given;
    graft_ruleset set;
    GRAFT_PASS(judge_choices(env, c));
    if (c->generate != NULL) {
        return generate(env, c->generate, c->families, &c->room);
    }
    GRAFT_PASS(graft_rulefile_read(env, env->life, c->file, &set));
    GRAFT_PASS(graft_listing_check(env, &set, &c->filter));
    if (c->html != NULL) {
        GRAFT_PASS(graft_rulepage_write(env, &set, c->file, c->html));
    } else if (c->taso != NULL) {
        GRAFT_PASS(graft_taso_report(env, &set, c->taso));
    } else if (c->derivations != NULL) {
        GRAFT_PASS(check_derivations(env, &set, c->derivations));
    } else if (c->both != NULL) {
        GRAFT_PASS(graft_both_save(env, &set, c->both));
    } else if (c->explain != NULL) {
        GRAFT_PASS(explain(env, &set, c->explain, c->picture));
    } else if (c->count) {
        graft_listing_count(env, &set, &c->filter);
    } else {
        graft_listing_print(env, &set, &c->filter);
    }
    return GRAFT_OK;
}

const graft_command graft_command_rules = {
    .name = "rules",
    .summary = "list the rule set, or generate it",
    .forms = "graft rules [FILE] [--uses OP] [--shrinks] ...    list a rule set\n"
             "graft rules --generate FOLDER                     make one from FOLDER/families",
    .failed = "with --check-derivations: some of them fail",
    GRAFT_TAKES(choices, options),
    .run = run,
    .shares = true,
};
