/* command_graph.c - `graft emit-graph` and `graft emit-policy` (see command.h). */
#include "emit/command/command.h"
#include "emit/command/contents.h"
#include "emit/header/fit.h"
#include "emit/header/graphtable.h"
#include "emit/header/header.h"
#include "emit/header/weighttable.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/rule/policyfile.h"
#include "graph/rule/ruleparse.h"
#include "models/zoo.h"

#include <string.h>

/* A model's name without folder and ending. */
static const char *base_name(graft_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
    return graft_arena_printf(arena, "%.*s", (int)length, name);
}

typedef struct {
    const char *model;
    const char *out;
    const char *name;
    const char *weights;
    const char *policy;   /* NULL: nothing is said of memory. */
    uint64_t ram;         /* 0: not given. */
    const char *pointers; /* Their bits. */
} choices;

/* What graph and policy take of the product's memory. */
static graft_status fit_graph(graft_env *env, const choices *c, const graft_graph *graph,
                              graft_fit *fit)
{
    graft_policy *policy = GRAFT_NEW(env->life, graft_policy, 1);
    const char *const *names = NULL;
    const graft_fit_options options = {.model = c->model,
                                       .policy = policy,
                                       .budget = c->ram,
                                       .pointer_bytes = strcmp(c->pointers, "64") == 0 ? 8 : 4};
    GRAFT_PASS(graft_policyfile_read(env, env->life, c->policy, policy, &names));
    return graft_fit_make(env, graph, &options, fit);
}

static void print_written(graft_env *env, const choices *c, const graft_model *model,
                          const graft_fit *fit)
{
    const graft_index nodes = graft_graph_node_count(&model->graph);
    graft_json json;
    graft_log(env, 1, "wrote %s: %u nodes, %u of them opaque", c->out, nodes, model->opaque_count);
    if (fit != NULL) {
        graft_log(env, 1, "it takes %zu bytes of RAM with pointers of %s bits", fit->ram.total,
                  c->pointers);
    }
    if (!env->json) {
        return;
    }
    graft_json_begin(&json, env->scratch);
    graft_json_add(&json, "file=%s nodes=%u opaque=%u", c->out, nodes, model->opaque_count);
    if (fit != NULL) {
        graft_json_integer(&json, "ram", (int64_t)fit->ram.total);
    }
    graft_json_end(&json, stdout);
}

static graft_status run(graft_env *env, void *given)
{
    const choices *c = given;
    const char *name = c->name != NULL ? c->name : base_name(env->life, c->model);
    graft_model *model = NULL;
    graft_fit fit;
    const graft_fit *fitted = c->policy != NULL ? &fit : NULL;
    if (c->ram > 0 && c->policy == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--max-ram needs --policy: the workspace is for its rules and network");
    }
    if (strcmp(c->pointers, "64") == 0 && c->policy == NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--pointers needs --policy: a graph has none");
    }
    GRAFT_PASS(graft_model_open(env, env->life, c->model, NULL, &model));
    if (c->policy != NULL) {
        GRAFT_PASS(fit_graph(env, c, &model->graph, &fit));
    }
    GRAFT_PASS(graft_graphtable_write(env, &model->graph, name, fitted, c->out));
    if (c->weights != NULL) {
        GRAFT_PASS(graft_weighttable_write(env, model, name, c->weights));
    }
    print_written(env, c, model, fitted);
    return GRAFT_OK;
}

static const graft_option options[] = {
    GRAFT_WORD(choices, model, "MODEL", "a name of the zoo or an ONNX file"),
    GRAFT_OUTPUT(choices, out, "OUT.h", NULL, "the header to write"),
    GRAFT_TEXT(choices, name, "--name", "NAME", NULL, "of the table (default: the model's)"),
    GRAFT_OUTPUT(choices, weights, "--weights", "WEIGHTS.h",
                 "also the weights, matrices in 8 bits"),
    GRAFT_TEXT(choices, policy, "--policy", "POLICY.graft", NULL,
               "what will rewrite it: the header says how much RAM that takes"),
    GRAFT_NUMBER(
        choices, ram, "--max-ram", "BYTES", NULL, GRAFT_FIT_LEAST, GRAFT_FIT_MOST,
        "of graph and workspace: what loses nothing is lowered to fit, else it is refused"),
    GRAFT_CHOICE(choices, pointers, "--pointers", "BITS", "32|64", "32",
                 "of the processor that --max-ram is for"),
};

const graft_command graft_command_emit_graph = {.name = "emit-graph",
                                                .summary = "write a model's graph as a C table",
                                                GRAFT_TAKES(choices, options),
                                                .run = run};

/* ----------------------------------------------------------- policies */

typedef struct {
    const char *policy;
    const char *out;
    const char *name;
    const char *operators;
    bool amalgamate;
} policy_choices;

/* A list of names. */
static graft_status read_operators(graft_env *env, const char *list, graft_operator_set *operators)
{
    char *rest = graft_arena_strdup(env->scratch, list);
    char *name = NULL;
    memset(operators, 0, sizeof(*operators));
    while ((name = strsep(&rest, ",")) != NULL) {
        const uint32_t op = graft_op_named(name);
        if (op == GRAFT_OP_NONE) {
            return GRAFT_FAIL(
                env, GRAFT_BAD_INPUT,
                "--operators: no operator '%s'; their names are in graft/operators.def", name);
        }
        graft_operator_set_add(operators, op);
    }
    return GRAFT_OK;
}

/* Leaves the policy what a product with these operators can use. */
static graft_status keep_operators(graft_env *env, const char *list, graft_policy *policy,
                                   graft_header_options *header)
{
    GRAFT_PASS(read_operators(env, list, &header->operators));
    graft_policy_keep_operators(env->life, &header->operators, policy, &header->rule_names);
    if (policy->rule_count == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--operators: no rule is about '%s' alone", list);
    }
    return GRAFT_OK;
}

static graft_status run_policy(graft_env *env, void *given)
{
    const policy_choices *c = given;
    graft_header_options header = {.generator = "graft " GRAFT_VERSION,
                                   .amalgamate = c->amalgamate};
    graft_header_sizes sizes;
    graft_policy policy;
    header.name = c->name != NULL ? c->name : base_name(env->life, c->policy);
    GRAFT_PASS(graft_policyfile_read(env, env->life, c->policy, &policy, &header.rule_names));
    if (c->operators != NULL) {
        GRAFT_PASS(keep_operators(env, c->operators, &policy, &header));
    }
    GRAFT_PASS(graft_header_write(env, &policy, &header, c->out, &sizes));
    graft_log(env, 1, "wrote %s: %u rules, %zu bytes of const data", c->out, policy.rule_count,
              sizes.total);
    if (env->json) {
        graft_json_print(
            env->scratch, stdout,
            "file=%s rules=%u rule_bytes=%lld network_bytes=%lld cost_bytes=%lld bytes=%lld",
            c->out, policy.rule_count, (long long)sizes.rules, (long long)sizes.network,
            (long long)sizes.costs, (long long)sizes.total);
    }
    return GRAFT_OK;
}

static const graft_option policy_options[] = {
    GRAFT_WORD(policy_choices, policy, "POLICY.graft", "a policy file, as graft policy writes it"),
    GRAFT_OUTPUT(policy_choices, out, "OUT.h", NULL, "the header to write"),
    GRAFT_TEXT(policy_choices, name, "--name", "NAME", NULL,
               "of the policy: graft_policy_NAME (default: the file's)"),
    GRAFT_TEXT(policy_choices, operators, "--operators", "NAME,NAME...", NULL,
               "those that the product has: rules about others are left out, and their shapes"),
    GRAFT_FLAG(policy_choices, amalgamate, "--amalgamate", "one header that holds the engine too"),
};

const graft_command graft_command_emit_policy = {.name = "emit-policy",
                                                 .summary = "write a policy file as a C header",
                                                 GRAFT_TAKES(policy_choices, policy_options),
                                                 .run = run_policy};
