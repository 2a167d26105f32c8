/* The policy header and the graph table of a keyword-spotting model, in the program of
 * tests/firmware: on this computer as C99 and C++ and on an emulated Cortex-M4 it decides as the
 * tools do, and takes the memory that the header says, its network's too. */
#include "emit/header/graphtable.h"
#include "emit/header/header.h"
#include "tests/support/policy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { TOOL_MISSING = 77 };

static void write_headers(graft_env *env, const policy_kit *kit)
{
    const graft_header_options options = {
        .name = "kit", .generator = "graft test", .rule_names = policy_kit_names};
    CHECK_OK(graft_header_write(env, &kit->policy, &options, check_path("graft_policy.h"), NULL));
    const graft_fit_options unbounded = {
        .model = "kit", .policy = &kit->policy, .pointer_bytes = 4};
    graft_fit fit;
    CHECK_OK(graft_fit_make(env, kit->graph, &unbounded, &fit));
    assert_true(fit.ram.parts[GRAFT_RAM_NETWORK] > 0);
    CHECK_OK(graft_graphtable_write(env, kit->graph, "kit", &fit, check_path("graft_graph.h")));
}

/* The last line of the program's second part, as the engine inside this program has it. */
static const char *expect_end(graft_env *env, const policy_kit *kit)
{
    graft_graph *graph = NULL;
    graft_report report = {.decisions = NULL};
    const graft_optimize_options options = {.weight_bytes_limit = UINT64_MAX, .step_limit = 24};
    CHECK_OK(graft_graph_renumber(env, env->life, kit->graph, &graph));
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &graph->limits, options.step_limit);
    CHECK_OK(graft_optimize(graph, &kit->policy, &options, graft_arena_alloc(env->life, bytes),
                            bytes, &report));
    return graft_arena_printf(env->life,
                              "steps %u stop %u nodes %u to %u weight bytes %" PRIu64
                              " hash %016" PRIx64 " to %016" PRIx64 "\n",
                              report.step_count, (unsigned)report.stop, report.active_before,
                              report.active_after, report.weight_bytes, report.hash_before,
                              report.hash_after);
}

CHECK_CASE(test_same_decisions)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const char *folder = check_folder();
    write_headers(env, kit);
    // NOLINTNEXTLINE(cert-env33-c): running a compiler is the point.
    int status = system(graft_arena_printf(env->life,
                                           "{ sh tests/firmware/run.sh '%s' && sh "
                                           "tests/firmware/ram.sh '%s'; } > '%s/output.txt' 2>&1",
                                           folder, folder, folder));
    const char *text = check_text(check_path("output.txt"));
    if (WIFEXITED(status) && WEXITSTATUS(status) == TOOL_MISSING) {
        CHECK_SKIP("%.*s", (int)strcspn(text, "\n"), text);
    }
    if (status != 0) {
        fail_msg("%s", text);
    }
    for (const char *line = text; *line != '\0';) {
        int length = (int)strcspn(line, "\n");
        print_message("# %.*s\n", length, line);
        line += line[length] == '\n' ? length + 1 : length;
    }
    assert_non_null(strstr(check_text(check_path("firmware.txt")), expect_end(env, kit)));
}
