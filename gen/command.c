/* command.c - `graft gen`: options, candidates and counts as text or JSON Lines. */
#include "gen/command.h"

#include "gen/gen.h"
#include "graph/base/json.h"
#include "graph/base/ranks.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

typedef struct {
    const char *folder;
    const char *family; /* NULL: all. */
    uint64_t memory_mib;
    graft_gen_options run;
    bool counts_only;
} options;

static const graft_option rows[] = {
    GRAFT_SHIPPED(options, folder, "--families", "FOLDER", "rules/families", "the families"),
    GRAFT_TEXT(options, family, "--family", "NAME", NULL, "one of them alone"),
    GRAFT_NUMBER(options, run.depth, "--depth", "N", NULL, 0, GRAFT_GEN_MAX_DEPTH,
                 "operators of the largest graphs; 0: what each set says"),
    GRAFT_FLAG(options, counts_only, "--counts",
               "how many graphs, keys and candidates, not the candidates"),
    GRAFT_NUMBER(options, run.seed, "--seed", "N", "1", 0, UINT64_MAX, "of the random tensors"),
    GRAFT_TEXT(options, run.room.folder, "--work", "FOLDER", NULL,
               "where an interrupted run goes on, and what memory does not hold goes"),
    GRAFT_NUMBER(options, memory_mib, "--memory", "MIB", NULL, 0, UINT32_MAX,
                 "what all of it may take"),
};

graft_status graft_gen_room_bound(graft_env *env, uint64_t mebibytes, graft_gen_room *room)
{
    if (mebibytes > 0 && room->folder == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--memory MIB needs --work FOLDER");
    }
    room->memory_bytes = mebibytes << 20;
    return GRAFT_OK;
}

static graft_status choose_families(graft_env *env, const options *opts,
                                    const graft_gen_family **families, uint32_t *count)
{
    for (uint32_t i = 0; opts->family != NULL && i < *count; i++) {
        if (strcmp((*families)[i].name, opts->family) == 0) {
            *families = &(*families)[i];
            *count = 1;
            return GRAFT_OK;
        }
    }
    return opts->family == NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: no family '%s'", opts->folder, opts->family);
}

/* "(2,3) (4)": the shapes of a candidate's variables. */
static const char *print_shapes(graft_arena *arena, const graft_candidate *candidate)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_printf(&text, "%s", "");
    for (uint32_t v = 0; v < candidate->rule.var_count; v++) {
        graft_buffer_printf(&text, v == 0 ? "(" : " (");
        for (uint32_t i = 0; i < candidate->shapes[v].rank; i++) {
            graft_buffer_printf(&text, i == 0 ? "%d" : ",%d", (int)candidate->shapes[v].dims[i]);
        }
        graft_buffer_printf(&text, ")%s", candidate->is_weight[v] ? "w" : "");
    }
    return text.data;
}

static void print_candidate(graft_env *env, const graft_candidate *candidate)
{
    GRAFT_SCOPED(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, &candidate->rule);
    const char *shapes = print_shapes(env->scratch, candidate);
    if (env->json) {
        graft_json_print(env->scratch, stdout,
                         "candidate=%s family=%s set=%s source=%s target=%s shapes=%s pair=%u "
                         "skeleton=%u reversed=%c macro=%c",
                         graft_rule_print_name(env->scratch, &candidate->rule), candidate->family,
                         candidate->set, text.source, text.target, shapes, candidate->pair,
                         candidate->skeleton, candidate->is_reversed, candidate->is_macro);
    } else {
        (void)printf("%s/%s%s  %s  =>  %s   %s\n", candidate->family, candidate->set,
                     candidate->is_macro ? " (macro)" : "", text.source, text.target, shapes);
    }
}

typedef struct {
    const char *name;
    uint64_t value;
} figure;

static void print_report(graft_env *env, const graft_gen_report *report)
{
    const graft_gen_counts *c = &report->counts;
    const figure figures[] = {
        {"graphs",       c->graphs      },
        {"evaluated",    c->evaluated   },
        {"keys",         c->keys        },
        {"raw",          c->raw         },
        {"refuted",      c->refuted     },
        {"laws",         c->laws        },
        {"macros",       c->macros      },
        {"candidates",   c->candidates  },
        {"memory_bytes", c->memory_bytes},
        {"stored_bytes", c->stored_bytes},
        {"time_ns",      c->time_ns     },
    };
    GRAFT_SCOPED(env->scratch);
    graft_json json;
    if (env->json) {
        graft_json_begin(&json, env->scratch);
        graft_json_add(&json, "set=%s family=%s", report->set, report->family);
    } else {
        (void)printf("%s/%s:", report->family, report->set);
    }
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (env->json) {
            graft_json_integer(&json, figures[i].name, (int64_t)figures[i].value);
        } else {
            (void)printf(" %s %llu", figures[i].name, (unsigned long long)figures[i].value);
        }
    }
    if (env->json) {
        graft_json_end(&json, stdout);
    } else {
        (void)printf("\n");
    }
}

static graft_status run(graft_env *env, void *choices)
{
    options *opts = choices;
    const graft_gen_family *families = NULL;
    uint32_t family_count = 0;
    graft_candidates candidates;
    GRAFT_PASS(graft_gen_room_bound(env, opts->memory_mib, &opts->run.room));
    GRAFT_PASS(graft_ranks_open(env));
    GRAFT_PASS(graft_gen_families_read(env, env->life, opts->folder, &families, &family_count));
    GRAFT_PASS(choose_families(env, opts, &families, &family_count));
    GRAFT_PASS(graft_gen_run(env, env->life, families, family_count, &opts->run, &candidates));
    for (uint32_t i = 0; i < candidates.count && !opts->counts_only; i++) {
        print_candidate(env, &candidates.items[i]);
    }
    for (uint32_t i = 0; i < candidates.report_count; i++) {
        print_report(env, &candidates.reports[i]);
    }
    return GRAFT_OK;
}

const graft_command graft_command_gen = {
    .name = "gen",
    .summary = "list the substitutions that the families propose",
    GRAFT_TAKES(options, rows),
    .run = run,
    .shares = true,
};
