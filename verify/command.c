/* command.c - `graft rules` (see command.h). */
#include "verify/command.h"

#include "graph/json.h"
#include "graph/log.h"
#include "graph/options.h"
#include "graph/ruleprint.h"
#include "verify/generate.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- listing */

static bool rule_uses(const graft_rule *rule, const char *name)
{
    const graft_pattern *sides[2] = {&rule->source, &rule->target};
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t n = 0; n < sides[s]->node_count; n++) {
            if (strcmp(graft_op(sides[s]->nodes[n].op)->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The axioms of an entry as a JSON array. */
static const char *list_axioms(graft_arena *arena, const graft_rule_entry *entry)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_printf(&text, "[");
    for (uint32_t i = 0; i < entry->axiom_count; i++) {
        graft_buffer_printf(&text, "%s\"%s\"", i > 0 ? ", " : "", entry->axioms[i]);
    }
    graft_buffer_printf(&text, "]");
    return text.data;
}

static void print_json(graft_env *env, const graft_rule_entry *entry)
{
    graft_json json;
    graft_rule_text text = graft_rule_print(env->unit, &entry->rule);
    graft_json_begin(&json, env->unit);
    graft_json_string(&json, "id", graft_arena_printf(env->unit, "%016" PRIx64, entry->id));
    graft_json_string(&json, "name", entry->name);
    graft_json_string(&json, "source", text.source);
    graft_json_string(&json, "target", text.target);
    graft_json_string(&json, "where", text.where);
    graft_json_string(&json, "numeric", graft_numeric_name(entry->numeric));
    graft_json_string(&json, "proof", graft_proof_name(entry->proof));
    graft_json_raw(&json, "axioms", list_axioms(env->unit, entry));
    graft_json_integer(&json, "points", entry->points);
    graft_json_integer(&json, "cover", entry->cover);
    graft_json_end(&json, stdout);
}

static void print_set(graft_env *env, const graft_ruleset *set, const char *uses)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_rule_entry *entry = &set->entries[i];
        graft_mark mark = graft_arena_mark(env->unit);
        if (uses != NULL && !rule_uses(&entry->rule, uses)) {
            continue;
        }
        if (env->json) {
            print_json(env, entry);
        } else {
            (void)printf("%s (%s, %s, %s)\n    %s\n", entry->name, entry->family,
                         graft_proof_name(entry->proof), graft_numeric_name(entry->numeric),
                         graft_rule_print_line(env->unit, &entry->rule));
        }
        graft_arena_release(env->unit, mark);
    }
}

/* ------------------------------------------------------------- generating */

static void print_family(graft_env *env, const graft_ruleset *set, const char *family,
                         graft_buffer *text)
{
    graft_buffer_printf(text, "\n## %s\n\n", family);
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_rule_entry *entry = &set->entries[i];
        if (strcmp(entry->family, family) == 0) {
            graft_buffer_printf(
                text, "* `%s`: %s, %s; %u instances swept%s, %u proved by Z3\n  `%s`\n",
                entry->name, graft_proof_name(entry->proof), graft_numeric_name(entry->numeric),
                entry->points, entry->complete ? " (all)" : "", entry->cover,
                graft_rule_print_line(env->unit, &entry->rule));
        }
    }
}

/* Whether an earlier entry has the same family. */
static bool family_seen(const graft_ruleset *set, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(set->entries[j].family, set->entries[i].family) == 0) {
            return true;
        }
    }
    return false;
}

static graft_status write_listing(graft_env *env, const graft_ruleset *set, const char *path)
{
    graft_mark mark = graft_arena_mark(env->unit);
    graft_buffer text = {.arena = env->unit};
    graft_buffer_printf(
        &text,
        "# The rule set\n\nWritten by `make rules`; do not edit. %u rules, proved "
        "with %s. How to read a rule: `graph/ruleprint.h`; what its proof rests on: "
        "`docs/architecture.md` and `docs/formats.md`.\n",
        set->count, set->solver);
    for (uint32_t i = 0; i < set->count; i++) {
        if (!family_seen(set, i)) {
            print_family(env, set, set->entries[i].family, &text);
        }
    }
    graft_status status = graft_file_write(env, path, text.data, text.size);
    graft_arena_release(env->unit, mark);
    return status;
}

static void log_counts(const graft_env *env, const graft_generate_counts *counts)
{
    graft_log(
        env, 1,
        "%u candidates, %u rules; %u proved, %u refuted, %u with too few instances, %u unknown",
        counts->candidates, counts->rules, counts->proved, counts->refuted, counts->thin,
        counts->unknown);
    graft_log(env, 1, "%u follow from others, %u can only add operators, %u kept", counts->dropped,
              counts->growing, counts->kept);
}

static graft_status generate(graft_env *env, const char *folder)
{
    graft_status status = GRAFT_OK;
    const graft_gen_family *families = NULL;
    uint32_t family_count = 0;
    const graft_generate_options options = graft_generate_defaults();
    graft_generate_counts counts;
    graft_ruleset set;
    const char *path = graft_arena_printf(env->life, "%s/graft.rules", folder);
    GRAFT_CHECK(graft_gen_families_read(env, env->life,
                                        graft_arena_printf(env->life, "%s/families", folder),
                                        &families, &family_count));
    GRAFT_CHECK(graft_generate(env, env->life, families, family_count, &options, &set, &counts));
    log_counts(env, &counts);
    GRAFT_CHECK(graft_rulefile_write(env, path, &set));
    GRAFT_CHECK(write_listing(env, &set, graft_arena_printf(env->life, "%s/README.md", folder)));
    (void)printf("%s: %u rules\n", path, set.count);
done:
    return status;
}

graft_status graft_command_rules(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    const char *file = "rules/graft.rules";
    const char *uses = NULL;
    const char *folder = NULL;
    graft_ruleset set;
    const graft_option options[] = {
        {.name = "FILE",       .value = &file  },
        {.name = "--uses",     .value = &uses  },
        {.name = "--generate", .value = &folder},
    };
    GRAFT_CHECK(graft_options_parse(env, argc, argv, options, 3));
    if (folder != NULL) {
        return generate(env, folder);
    }
    GRAFT_CHECK(graft_rulefile_read(env, env->life, file, &set));
    print_set(env, &set, uses);
done:
    return status;
}
