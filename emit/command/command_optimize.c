/* command_optimize.c - `graft optimize`: a model in, a rewritten model out. */
#include "cost/device/device_program.h"
#include "emit/command/command.h"
#include "emit/command/known_policy.h"
#include "emit/command/searches.h"
#include "emit/command/session_options.h"
#include "emit/command/shown_policy.h"
#include "emit/command/written.h"
#include "emit/policy/bundles.h"
#include "emit/policy/faster.h"
#include "emit/policy/follow.h"
#include "emit/policy/refine.h"
#include "emit/policy/simplify.h"
#include "emit/report/confirmed.h"
#include "emit/report/report_page.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/rule/policyfile.h"
#include "train/tariff/tariff_search.h"

#include <string.h>

enum { LIMIT_MOST = 10000000, CHECKS_MOST = 1000, SECONDS_MOST = 1000000 };

typedef struct optimize_run {
    graft_session_options options;
    const char *out;
    const char *body; /* Which body this is of, in a model that is not whole; NULL: of none. */
    graft_model_bodies bodies;
    graft_held held; /* What is printed of them. */
    const char *search;
    const char *found_by;     /* The search that found what comes out. */
    const char *table;        /* Of node costs, for the search that knows nothing else... */
    graft_tariff tariff;      /* ...as it was read, or of `guide`. */
    const char *provenance;   /* Of the table. */
    const char *policy;       /* Instead of a search... */
    graft_policy followed;    /* ...as it was read. */
    const char *const *names; /* Of its rules. */
    graft_option_list sizes;  /* NAME=N,NAME=N... for sizes that the model leaves open. */
    graft_option_list frozen; /* Likewise, for those of them that the file is to have fixed. */
    bool steps;               /* Print each rewrite. */
    bool simplify;            /* Nothing that needs costs. */
    const char *report;       /* A page to write; NULL: none. */
    const graft_shown_policy *shown; /* Of the policy that has just been made; NULL: none. */
    const char *guide;      /* Where guided search takes a table from; NULL: rules/policies. */
    uint64_t graph_count;   /* Of guided, annealing and iterated search; 0: their own. */
    uint64_t seed;          /* Of these; 0: as the settings say. */
    uint32_t dequeue_limit; /* 0: as the settings say. */
    uint32_t beam_width;    /* 0: as the settings say. */
    uint32_t pass_count;    /* Searches, each with costs that the one before has corrected. */
    uint32_t second_count;  /* For measuring and searching; 0: no end. */
    uint32_t check_count;   /* Runs of the model and the file on the same inputs. */
    graft_session session;
    graft_plan_found found;
    graft_written written;
    graft_trace trace; /* For the report. */
    bool as_it_was;    /* What came is written... */
    bool faster;       /* ...or what was found, with these algorithms in it. */
    graft_algorithms algorithms;
    uint32_t cells; /* Of recurrent nets that are one operator in it. */
    graft_confirmation confirmation;
    double difference; /* That the check found. */
} optimize_run;

static graft_status search_table(graft_env *env, optimize_run *run)
{
    graft_tariff_plan plan;
    GRAFT_PASS(graft_search_tariff(env, env->life, &run->session.environment, &run->tariff, &plan));
    run->found = plan.found;
    graft_log(
        env, 1, "table %s: %.1f us before, %.1f us after; %u of %u steps rest on its fallback",
        run->provenance, (double)plan.first.cost / GRAFT_COST_UNITS / 1e3,
        (double)plan.last.cost / GRAFT_COST_UNITS / 1e3, plan.guessed_steps, plan.found.step_count);
    return GRAFT_OK;
}

static bool by_table(const optimize_run *run) { return strcmp(run->search, "table") == 0; }

static bool by_itself(const optimize_run *run) { return strcmp(run->search, "auto") == 0; }

static graft_status search_by(graft_env *env, optimize_run *run, const char *name)
{
    const graft_search_choice choice = {.name = name,
                                        .dequeues = run->dequeue_limit,
                                        .width = run->beam_width,
                                        .graphs = run->graph_count,
                                        .seed = run->seed,
                                        .tariff = &run->tariff,
                                        .cost = run->session.cost};
    if (strcmp(name, "guided") == 0) {
        const char *device = graft_device_name(run->session.device);
        const char *path = run->guide;
        if (path == NULL) {
            path = graft_known_policy_nearest(env, device);
            GRAFT_PASS(graft_known_policy_tariff(env, device, &path, &run->tariff));
        }
        if (path != NULL) {
            graft_log(env, 1, "guided by %s", path);
        }
    }
    GRAFT_PASS(graft_search_run(env, env->life, &run->session.environment, &run->session.settings,
                                &choice, &run->found));
    return graft_search_finish(env, env->life, &run->session.environment, &run->found);
}

/* Greedy search, and guided search on top, which sees what pays together only, were it that single
 * gains are within the noise. Its rewrites are taken where they gain something beside greedy's. */
static graft_status search_auto(graft_env *env, optimize_run *run)
{
    enum { GRAPHS = 300 };
    static const double enough = 0.999;
    GRAFT_PASS(search_by(env, run, "greedy"));
    run->found_by = "greedy";
    const graft_plan_found greedy = run->found;
    const uint64_t asked = run->graph_count;
    run->graph_count = asked > 0 ? asked : GRAPHS;
    graft_status status = search_by(env, run, "guided");
    run->graph_count = asked;
    GRAFT_PASS(status);
    const graft_plan_found guided = run->found;
    if (guided.cost_ns < enough * greedy.cost_ns) {
        run->found_by = "guided";
    } else {
        run->found = greedy;
    }
    run->found.evaluations = greedy.evaluations + guided.evaluations;
    run->found.seconds = greedy.seconds + guided.seconds;
    run->found.cut = greedy.cut || guided.cut;
    return status;
}

static graft_status search(graft_env *env, optimize_run *run)
{
    run->found_by = run->search;
    return by_table(run)    ? search_table(env, run)
           : by_itself(run) ? search_auto(env, run)
                            : search_by(env, run, run->search);
}

static graft_status search_once(graft_env *env, void *context, graft_plan_found *found)
{
    optimize_run *run = context;
    GRAFT_PASS(search(env, run));
    *found = run->found;
    return GRAFT_OK;
}

/* Searches as often as the command line says. */
static graft_status search_passes(graft_env *env, optimize_run *run)
{
    enum { ROUNDS = 21 };
    graft_refine_report report;
    const graft_refine_options options = {
        .search = search_once, .context = run, .passes = run->pass_count, .rounds = ROUNDS};
    return run->pass_count == 0 ? search(env, run)
                                : graft_refine(env, &run->session, &options, &run->found, &report);
}

/* A rewrite a line: the rule, and what it is worth where it stands. */
static void print_steps(graft_env *env, const optimize_run *run, FILE *out)
{
    const graft_environment *environment = &run->session.environment;
    double before_ns = environment->first_ns;
    for (uint32_t i = 0; i < run->found.step_count; i++) {
        const char *rule = environment->xfers->names[run->found.steps[i].xfer];
        const double ns = run->trace.steps[i].ns;
        if (env->json) {
            graft_json_print(env->scratch, out, "step=%u rule=%s cost_ns_after=%g", i, rule, ns);
        } else {
            (void)fprintf(out, "%4u  %9.3f us  %+9.3f us  %s\n", i + 1, ns / 1e3,
                          (ns - before_ns) / 1e3, rule);
        }
        before_ns = ns;
    }
}

/* Leaves the rewritten graph as the environment's state. */
static graft_status rewrite(graft_env *env, optimize_run *run)
{
    graft_environment *environment = &run->session.environment;
    graft_trace_open(env->life, run->session.model, &environment->first.graph, &run->trace);
    if (run->policy != NULL) {
        const graft_follow_options options = {.path = run->policy,
                                              .policy = &run->followed,
                                              .names = run->names,
                                              .exact = run->options.exact,
                                              .all = run->shown != NULL,
                                              .trace = run->report != NULL ? &run->trace : NULL};
        return graft_follow(env, &run->session, &options, &run->found);
    }
    GRAFT_PASS(search_passes(env, run));
    if (graft_device_times_models(run->session.device)) {
        environment->options.deadline_ns = run->options.deadline_ns;
        GRAFT_PASS(graft_bundles_search(env, &run->session, &run->found));
    }
    return graft_trace_replay(env, &run->trace, environment, run->found.steps,
                              run->found.step_count);
}

/* ----------------------------------------------------------------- the file */

/* The file that came is what comes out. */
static graft_status write_as_it_was(graft_env *env, optimize_run *run, const char *path)
{
    run->found.step_count = 0;
    run->as_it_was = true;
    return graft_model_write(env, run->session.model, &run->session.model->graph, path, NULL);
}

static graft_status write_result(graft_env *env, optimize_run *run, const char *path)
{
    const graft_model_write_options options = {.simplify = true};
    return run->as_it_was
               ? write_as_it_was(env, run, path)
               : graft_model_write(env, run->session.model, &run->session.environment.state.graph,
                                   path, &options);
}

/* Rules that make new weights find no place any more. */
static graft_status forbid_weights(graft_env *env, optimize_run *run)
{
    run->session.environment.options.apply.weight_bytes_limit = 0;
    return graft_environment_reset(env, &run->session.environment);
}

/* Writes what was found. Where a new weight does not fit into its type, the search is done again
 * without new weights. */
static graft_status write_fitting(graft_env *env, optimize_run *run, const char *path)
{
    graft_status status = write_result(env, run, path);
    if (status == GRAFT_CAPACITY) {
        graft_log(env, 1, "%s: searching again without new weights", env->message);
        graft_env_clear(env);
        GRAFT_CHECK(forbid_weights(env, run));
        GRAFT_CHECK(rewrite(env, run));
        status = write_result(env, run, path);
    }
done:
    return status;
}

/* Reads back what was written. A product that fuses nothing has the graph itself, of which a file
 * takes some operators apart. */
static graft_status read_back(graft_env *env, optimize_run *run, const char *path)
{
    graft_session *session = &run->session;
    const graft_state *state = &session->environment.state;
    GRAFT_PASS(graft_written_open(env, session, path, &run->written));
    if (run->options.as_it_is && !run->as_it_was) {
        GRAFT_PASS(graft_session_total(env, session, session->model, &state->graph, &state->order,
                                       &run->written.total));
    }
    return GRAFT_OK;
}

/* Whether what was written costs more than the model did; wholes that a device times tell more. */
static bool costs_more(const optimize_run *run)
{
    const double noise = 1e-3; /* Nodes stand in another order, so their data lie elsewhere. */
    const graft_session *session = &run->session;
    return !run->as_it_was && !graft_device_times_models(session->device) &&
           run->written.total.ns > (1.0 + noise) * session->given.ns;
}

/* The graph that was only simplified is what was found. */
static graft_status forget_rewrites(graft_env *env, optimize_run *run)
{
    graft_environment *environment = &run->session.environment;
    GRAFT_PASS(graft_environment_reset(env, environment));
    graft_trace_open(env->life, run->session.model, &environment->first.graph, &run->trace);
    run->found.step_count = 0;
    run->found.cost_ns = environment->first_ns;
    return GRAFT_OK;
}

/* Writes what was found and reads it back. Where that costs more than the model did in the end, the
 * model is only simplified, or else written as it was. */
static graft_status write_file(graft_env *env, optimize_run *run, const char *path)
{
    graft_status status = write_fitting(env, run, path);
    if (status == GRAFT_UNSUPPORTED) { /* Its opset is too old for a graph that is not its own. */
        graft_log(env, 1, "%s: the model is written as it was", env->message);
        graft_env_clear(env);
        status = write_as_it_was(env, run, path);
    }
    GRAFT_PASS(status);
    GRAFT_PASS(read_back(env, run, path));
    if (costs_more(run) && run->found.step_count > 0) {
        graft_log(env, 1, "what was found costs %.3f of the model: it is only simplified",
                  run->written.total.ns / run->session.given.ns);
        GRAFT_PASS(forget_rewrites(env, run));
        GRAFT_PASS(write_result(env, run, path));
        GRAFT_PASS(read_back(env, run, path));
    }
    if (costs_more(run)) {
        graft_log(env, 1, "what was found costs %.3f of the model: the model is written as it was",
                  run->written.total.ns / run->session.given.ns);
        GRAFT_PASS(write_as_it_was(env, run, path));
        GRAFT_PASS(read_back(env, run, path));
    }
    return status;
}

static graft_status write_report(graft_env *env, optimize_run *run)
{
    const graft_report_page page = {.session = &run->session,
                                    .options = &run->options,
                                    .written = &run->written,
                                    .trace = &run->trace,
                                    .method = run->policy != NULL ? run->policy : run->found_by,
                                    .policy = run->policy,
                                    .unchanged = run->as_it_was,
                                    .cut = run->found.cut,
                                    .check_count = run->check_count,
                                    .difference = run->difference,
                                    .methods = run->shown != NULL ? run->shown->methods : NULL,
                                    .dreams = run->shown != NULL ? run->shown->dreams : NULL};
    return run->report == NULL ? GRAFT_OK : graft_report_page_write(env, &page, run->report);
}

/* Algorithms that the device is faster by, in what was written for it. */
static graft_status find_algorithms(graft_env *env, optimize_run *run, const char **candidate)
{
    if (run->options.exact || run->shown != NULL) {
        return GRAFT_OK; /* They round elsewhere, and are no part of a policy. */
    }
    GRAFT_PASS(graft_faster_roll(env, &run->session, run->written.model, candidate, &run->cells));
    if (run->cells > 0) {
        run->session.unroll = GRAFT_UNROLL_MOST; /* So that what they do is counted. */
        GRAFT_PASS(graft_written_read(env, &run->session, *candidate, &run->written));
    }
    return graft_faster_find(env, &run->session, run->written.model, candidate, &run->algorithms,
                             &run->faster);
}

/* Writes what was confirmed. */
static graft_status write_last(graft_env *env, optimize_run *run)
{
    const graft_model *model = run->written.model;
    run->faster = run->faster && !run->as_it_was;
    run->cells = run->as_it_was ? 0 : run->cells;
    run->session.unroll = run->cells > 0 ? GRAFT_UNROLL_MOST : run->options.unroll;
    if (run->faster || run->cells > 0) {
        GRAFT_PASS(run->faster ? graft_algorithms_write(env, &run->algorithms, run->out)
                               : graft_model_write(env, model, &model->graph, run->out, NULL));
        return graft_written_read(env, &run->session, run->out, &run->written);
    }
    GRAFT_PASS(write_result(env, run, run->out));
    return read_back(env, run, run->out);
}

/* Where the device times whole models, nothing comes out that it has not confirmed: the file is
 * written when that is known. */
static graft_status write_confirmed(graft_env *env, optimize_run *run)
{
    graft_session *session = &run->session;
    if (!graft_device_times_models(session->device)) {
        if (graft_device_is_program(session->device)) {
            graft_log(env, 1, "device '%s' does not time whole models here: nothing is confirmed",
                      graft_device_name(session->device));
        }
        return write_file(env, run, run->out);
    }
    const char *candidate = graft_device_file(env, session->device, "candidate.onnx");
    GRAFT_PASS(write_file(env, run, candidate));
    bool changed = !run->as_it_was && (run->found.step_count > 0 || session->simplified > 0 ||
                                       graft_written_operators(env, session->model) !=
                                           graft_written_operators(env, run->written.model));
    GRAFT_PASS(find_algorithms(env, run, &candidate));
    if (changed || run->faster || run->cells > 0) {
        run->as_it_was = false;
        GRAFT_PASS(graft_confirm(env, session, candidate, &run->confirmation));
        run->as_it_was = !run->confirmation.kept;
    }
    return write_last(env, run);
}

static graft_status print_sizes(graft_env *env, const optimize_run *run)
{
    static const char *const names[GRAFT_WRITTEN_SIZES] = {"parameters", "flops", "bytes"};
    uint64_t before[GRAFT_WRITTEN_SIZES];
    uint64_t after[GRAFT_WRITTEN_SIZES];
    GRAFT_PASS(graft_written_measure(env, run->session.model, before));
    GRAFT_PASS(graft_written_measure(env, run->written.model, after));
    for (size_t i = 0; i < GRAFT_WRITTEN_SIZES; i++) {
        if (env->json) {
            graft_json_print(env->scratch, stdout, "size=%s before=%lld after=%lld", names[i],
                             (long long)before[i], (long long)after[i]);
        } else {
            (void)printf("  %-12s %14.3f M -> %14.3f M\n", names[i], (double)before[i] / 1e6,
                         (double)after[i] / 1e6);
        }
    }
    return GRAFT_OK;
}

/* What a reader of the last line has to know. */
static void print_notes(const optimize_run *run, const char *device, uint32_t changed)
{
    const graft_cost_total *given = &run->session.given;
    const graft_cost_total *written = &run->written.total;
    (void)printf("by the costs of %s, of which %u of %u and %u of %u are estimates\n", device,
                 given->estimated_count, given->launches, written->estimated_count,
                 written->launches);
    if (run->session.model->has_halves) {
        (void)printf("float16 and bfloat16 cost here what binary32 of the same sizes does\n");
    }
    if (changed > 0) {
        (void)printf("%u operators are written by other algorithms, which these costs leave out\n",
                     changed);
    }
    graft_confirmation_print(&run->confirmation);
    if (run->found.cut) {
        (void)printf("stopped after %u s: how far it got depends on how fast this machine is\n",
                     (unsigned)run->second_count);
    }
    if (run->check_count > 0) {
        (void)printf("checked on %u random inputs: outputs agree, largest difference %.2g of the "
                     "largest magnitude\n",
                     run->check_count, run->difference);
    }
}

static void print_outcome(graft_env *env, const optimize_run *run, FILE *out)
{
    const char *device = graft_device_name(run->session.device);
    const graft_cost_total *given = &run->session.given;
    const graft_cost_total *written = &run->written.total;
    const uint32_t before = graft_written_operators(env, run->session.model);
    const uint32_t after = graft_written_operators(env, run->written.model);
    const uint32_t changed =
        run->cells + (run->faster ? graft_algorithms_changed(&run->algorithms) : 0);
    const char *name = run->body != NULL ? run->body : run->options.model;
    if (env->json) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, run->body != NULL ? "body" : "model", name);
        graft_json_string(&json, run->policy != NULL ? "policy" : "search",
                          run->policy != NULL ? run->policy : run->found_by);
        graft_json_add(
            &json,
            "operators_before=%u operators_after=%u cost_ns_before=%g cost_ns_after=%g device=%s "
            "estimates_before=%u estimates_after=%u priced_as_binary32=%c simplified=%u "
            "rules_applied=%u other_algorithms=%u graphs=%lld seconds=%g out_of_time=%c",
            before, after, given->ns, written->ns, device, given->estimated_count,
            written->estimated_count, run->session.model->has_halves, run->session.simplified,
            run->found.step_count, changed, (long long)run->found.evaluations, run->found.seconds,
            run->found.cut);
        graft_confirmation_add(&run->confirmation, &json);
        if (run->check_count > 0) {
            graft_json_add(&json, "checks=%u difference=%g", run->check_count, run->difference);
        }
        graft_json_end(&json, out);
        return;
    }
    (void)fprintf(out,
                  "%s: %u operators, %.3f ms -> %u operators, %.3f ms by %u rewrites: "
                  "predicted time 100 -> %.1f%s\n",
                  name, before, given->ns / 1e6, after, written->ns / 1e6, run->found.step_count,
                  100.0 * written->ns / given->ns,
                  run->body != NULL ? ", each time that it runs" : "");
    if (run->body == NULL) {
        print_notes(run, device, changed);
    }
}

/* ------------------------------------------------------------- the arguments */

/* Refuses an option that the search which was asked for does not read. */
static graft_status judge_search(graft_env *env, const optimize_run *run)
{
    const struct {
        const char *option;
        bool given;
        const char *searches; /* That read it. */
    } rows[] = {
        {"--table",    run->table != NULL,     "table"                                },
        {"--guide",    run->guide != NULL,     "auto|guided"                          },
        {"--graphs",   run->graph_count > 0,   "auto|guided|annealing|iterated"       },
        {"--seed",     run->seed > 0,          "auto|guided|annealing|iterated|random"},
        {"--dequeues", run->dequeue_limit > 0, "backtracking"                         },
        {"--width",    run->beam_width > 0,    "beam"                                 },
    };
    const bool searches = run->policy == NULL && !run->simplify;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].given && !(searches && strstr(rows[i].searches, run->search) != NULL)) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s is for --search %s, not for %s",
                              rows[i].option, rows[i].searches,
                              run->policy != NULL ? "--policy"
                              : run->simplify     ? "--simplify"
                                                  : run->search);
        }
    }
    return GRAFT_OK;
}

/* What a search or the policy reads besides the model: faults in it are found before anything is
 * measured. */
static graft_status read_files(graft_env *env, optimize_run *run)
{
    if (run->policy != NULL) {
        GRAFT_PASS(graft_policyfile_read(env, env->life, run->policy, &run->followed, &run->names));
    }
    if (run->guide != NULL) {
        GRAFT_PASS(graft_known_policy_tariff(env, NULL, &run->guide, &run->tariff));
    }
    if (run->table != NULL) {
        GRAFT_PASS(
            graft_tarifffile_read(env, env->life, run->table, &run->tariff, &run->provenance));
    }
    return GRAFT_OK;
}

/* No folder is made for the file: one that is not there is a slip of the pen. */
static graft_status judge_place(graft_env *env, const char *out)
{
    const char *slash = strrchr(out, '/');
    const char *folder =
        slash == NULL ? "." : graft_arena_printf(env->life, "%.*s", (int)(slash - out + 1), out);
    GRAFT_PASS(graft_file_check(env, out));
    return graft_file_exists(folder)
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_IO, "cannot write %s: there is no folder %s", out, folder);
}

/* Judges all that can be judged before anything is read or measured. */
static graft_status judge_arguments(graft_env *env, optimize_run *run)
{
    if (run->simplify &&
        (run->policy != NULL || run->pass_count > 0 || run->check_count > 0 || run->steps ||
         run->report != NULL || run->options.unroll > 0 || !by_itself(run))) {
        return GRAFT_FAIL(
            env, GRAFT_BAD_INPUT,
            "--simplify asks no costs: it goes with no search, policy, check, report or --unroll");
    }
    if (run->policy != NULL && (run->steps || run->pass_count > 0)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s needs a search, not a policy",
                          run->steps ? "--steps" : "--passes");
    }
    if (run->options.rounded && (run->options.exact || run->policy != NULL)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--accept-rounded-numbers does not go with %s",
                          run->options.exact ? "--exact" : "--policy");
    }
    if (by_table(run) && run->table == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--search table needs --table FILE, as `graft cost table` writes it");
    }
    if (run->policy != NULL && !by_itself(run)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--policy makes no search: it goes without --search");
    }
    GRAFT_PASS(judge_search(env, run));
    GRAFT_PASS(read_files(env, run));
    GRAFT_PASS(graft_options_sizes(env, "--size", 1, &run->sizes, &run->options.sizes,
                                   &run->options.size_count));
    GRAFT_PASS(graft_options_sizes(env, "--freeze", 1, &run->frozen, &run->options.frozen,
                                   &run->options.frozen_count));
    return judge_place(env, run->out);
}

/* Says before the search that a check would not be possible after it. */
static graft_status prepare_check(graft_env *env, optimize_run *run)
{
    if (run->check_count > 0) {
        GRAFT_PASS_IN(env, graft_written_check_able(env, &run->session),
                      "so --check cannot be done");
    }
    return GRAFT_OK;
}

static graft_status check(graft_env *env, optimize_run *run)
{
    return run->check_count == 0 ? GRAFT_OK
                                 : graft_written_check(env, &run->session, &run->written,
                                                       run->check_count, &run->difference);
}

/* What was checked takes the place that was asked for: until then an older file stays there. */
static graft_status put_in_place(graft_env *env, const char *checked, const char *out)
{
    GRAFT_SCOPED(env->unit);
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->unit, checked, &data, &size));
    return graft_file_write(env, out, data, size);
}

/* Half of the time that there is goes to searching by costs where whole models decide. */
static void share_time(optimize_run *run)
{
    const uint64_t now_ns = graft_clock_ns();
    const uint64_t end_ns = run->options.deadline_ns;
    if (end_ns > now_ns && graft_device_times_models(run->session.device)) {
        const uint64_t half_ns = now_ns + (end_ns - now_ns) / 2;
        run->session.environment.options.deadline_ns = half_ns;
        graft_cost_set_deadline(run->session.cost, half_ns);
    }
}

static graft_status open_session(graft_env *env, optimize_run *run)
{
    run->options.file = true;
    run->options.thread_count = env->asked_threads;
    run->options.fixed = run->policy != NULL;
    if (run->options.deadline_ns == 0 && run->second_count > 0) {
        run->options.deadline_ns = graft_clock_ns() + run->second_count * UINT64_C(1000000000);
    }
    GRAFT_PASS(graft_session_open(env, &run->options, &run->session));
    share_time(run);
    return GRAFT_OK;
}

graft_status graft_shown_policy_write(graft_env *env, const graft_shown_policy *shown)
{
    graft_status status = GRAFT_OK;
    optimize_run *run = GRAFT_NEW(env->life, optimize_run, 1);
    *run = (optimize_run){.options = *shown->options,
                          .out = shown->out,
                          .search = "auto", /* That is not made: there is a policy. */
                          .policy = shown->policy,
                          .report = shown->page,
                          .shown = shown};
    run->options.survey = false; /* The policy has its own rules. */
    run->options.as_it_is = true;
    GRAFT_CHECK(read_files(env, run));
    GRAFT_CHECK(open_session(env, run));
    GRAFT_CHECK(rewrite(env, run));
    GRAFT_CHECK(write_confirmed(env, run));
    GRAFT_CHECK(write_report(env, run));
done:
    return graft_session_finish(env, &run->session, status);
}

static const char beside[] = ".unchecked";

/* A message is about the file that was asked for. */
static void name_asked_file(graft_env *env)
{
    char *found = strstr(env->message, beside);
    if (found != NULL) {
        const char *rest = found + sizeof beside - 1;
        memmove(found, rest, strlen(rest) + 1);
    }
}

/* Makes the file beside its place first. */
static graft_status make_file(graft_env *env, optimize_run *run, const char *out)
{
    graft_status status = GRAFT_OK;
    run->out = graft_arena_printf(env->life, "%s%s", out, beside);
    GRAFT_CHECK(rewrite(env, run));
    GRAFT_CHECK(write_confirmed(env, run));
    GRAFT_CHECK(check(env, run));
    GRAFT_CHECK(write_report(env, run));
    GRAFT_CHECK(put_in_place(env, run->out, out));
done:
    (void)remove(run->out);
    name_asked_file(env);
    return status;
}

static graft_status open_bodies(graft_env *env, optimize_run *run, const char *path, FILE *out);

/* A body of the model that is being read, as a model of its own. */
static graft_status optimize_body(graft_env *env, void *context, const graft_model_body *body)
{
    GRAFT_SCOPED(env->life);
    graft_status status = GRAFT_OK;
    const optimize_run *whole = context;
    FILE *out = whole->held.lines;
    const off_t before = ftello(out);
    optimize_run *run = GRAFT_NEW(env->life, optimize_run, 1);
    *run = *whole;
    run->body = whole->body == NULL
                    ? body->where
                    : graft_arena_printf(env->life, "%s in %s", body->where, whole->body);
    run->options.model = body->path;
    run->options.sizes = body->sizes;
    run->options.size_count = body->size_count;
    run->options.frozen_count = 0;
    run->report = NULL;
    run->check_count = 0; /* The whole is checked. */
    GRAFT_CHECK(open_bodies(env, run, body->path, out));
    GRAFT_CHECK(open_session(env, run));
    if (body->lean) {
        GRAFT_CHECK(forbid_weights(env, run));
    }
    GRAFT_CHECK(make_file(env, run, body->path));
    if (run->steps) {
        print_steps(env, run, out);
    }
    print_outcome(env, run, out);
done:
    graft_held_close(&run->held);
    status = graft_session_finish(env, &run->session, status);
    if (status != GRAFT_OK) {
        (void)fseeko(out, before, SEEK_SET); /* What bodies within it became is of no use. */
    }
    return status;
}

static void settle_bodies(void *context, bool kept)
{
    graft_held_settle(&((optimize_run *)context)->held, kept);
}

static graft_status open_bodies(graft_env *env, optimize_run *run, const char *path, FILE *out)
{
    run->bodies = (graft_model_bodies){optimize_body, settle_bodies, run,
                                       graft_arena_printf(env->life, "%s.body", path)};
    run->options.bodies = &run->bodies;
    return graft_held_open(env, out, &run->held);
}

static graft_status run_optimize(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    optimize_run *run = choices;
    graft_session_complete(env, &run->options);
    GRAFT_CHECK(judge_arguments(env, run));
    if (run->simplify) {
        return graft_simplify_file(env, &run->options, run->out);
    }
    GRAFT_CHECK(open_bodies(env, run, run->out, stdout));
    GRAFT_CHECK(open_session(env, run));
    GRAFT_CHECK(prepare_check(env, run));
    GRAFT_CHECK(make_file(env, run, run->out));
    if (run->steps) {
        print_steps(env, run, stdout);
    }
    graft_written_print_kinds(env, &run->session, &run->written);
    GRAFT_CHECK(print_sizes(env, run));
    print_outcome(env, run, stdout);
done:
    graft_held_close(&run->held);
    return graft_session_finish(env, &run->session, status);
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(optimize_run, options.),
    GRAFT_WORD(optimize_run, out, "OUT.onnx", "the file to write"),
    GRAFT_FLAG(optimize_run, simplify, "--simplify",
               "only leave out what does nothing or is known: no costs are asked"),
    GRAFT_CHOICE(optimize_run, search, "--search", "NAME", "auto|" GRAFT_SEARCH_NAMES "|table",
                 "auto", "how to search (auto: greedy, and guided on top)"),
    GRAFT_TEXT(optimize_run, table, "--table", "FILE", NULL,
               "for --search table: what nodes cost, by graft cost table --out"),
    GRAFT_TEXT(optimize_run, guide, "--guide", "FILE", NULL,
               "for --search auto and guided: the policy.graft whose costs guide it (default: the "
               "device's in rules/policies, or the nearest device's)"),
    GRAFT_NUMBER(
        optimize_run, graph_count, "--graphs", "N", NULL, 1, LIMIT_MOST,
        "that guided (2000 if not said; auto: 300), annealing or iterated search may price"),
    GRAFT_NUMBER(optimize_run, seed, "--seed", "N", NULL, 1, LIMIT_MOST, "of these searches"),
    GRAFT_NUMBER(optimize_run, dequeue_limit, "--dequeues", "N", NULL, 1, LIMIT_MOST,
                 "graphs that backtracking looks at"),
    GRAFT_NUMBER(optimize_run, beam_width, "--width", "N", NULL, 1, LIMIT_MOST, "of the beam"),
    GRAFT_NUMBER(optimize_run, pass_count, "--passes", "N", NULL, 1, GRAFT_REFINE_PASSES_MOST,
                 "searches, each with costs that the one before has corrected"),
    GRAFT_TEXT(optimize_run, policy, "--policy", "FILE", NULL,
               "rewrite as this policy.graft says instead"),
    GRAFT_LIST(optimize_run, sizes, "--size", "NAME=N,...",
               "values for sizes that the model leaves open"),
    GRAFT_LIST(optimize_run, frozen, "--freeze", "NAME=N,...", "fix these sizes, in the file too"),
    GRAFT_FLAG(optimize_run, options.constants, "--constants",
               "take initializers that are inputs too for constants, which a caller cannot set"),
    GRAFT_FLAG(
        optimize_run, options.rounded, "--accept-rounded-numbers",
        "also rules whose numbers a 16-bit model can only have rounded: not what was proved"),
    GRAFT_NUMBER(optimize_run, options.unroll, "--unroll", "N", NULL, 1, GRAFT_UNROLL_MOST,
                 "rewrite LSTM, GRU and RNN of at most N steps by their steps"),
    GRAFT_NUMBER(optimize_run, second_count, "--seconds", "N", NULL, 1, SECONDS_MOST,
                 "for measuring and searching; speed then decides"),
    GRAFT_NUMBER(optimize_run, check_count, "--check", "N", NULL, 1, CHECKS_MOST,
                 "run the model and the file on N random inputs and compare"),
    GRAFT_FLAG(optimize_run, steps, "--steps", "print each rewrite"),
    GRAFT_OUTPUT(optimize_run, report, "--report", "FILE.html",
                 "write a page that shows what was done"),
};

const graft_command graft_command_optimize = {
    .name = "optimize",
    .summary = "rewrite a model by search",
    .failed = "with --check: the outputs differ, and nothing is written",
    GRAFT_TAKES(optimize_run, options),
    .run = run_optimize,
};
