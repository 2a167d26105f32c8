/* main.c - a keyword spotter without an operating system: the graph as a C table, weights of 8 bits
 * in flash. It runs the graph as given, lets Graft's policy rewrite it, and runs what came of it,
 * with kernels of its own and places for tensors that it plans itself.
 *
 * Rules do not know quantised operators (docs/status.md): activations are in binary32. Where a rule
 * scales a filter by channel, the bytes stay in flash and get a number for each channel beside
 * them. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include "graft_graph.h"
#include "graft_weights.h"
#include "kernels.h"
#include "tests/firmware/platform.h"

enum { STEPS_MOST = 64, MEMORY_BYTES = 1 << 18, OUTPUTS_MOST = 16 };

/* Operators that rules may make. */
static const uint8_t known[] = {
    GRAFT_OP_conv, GRAFT_OP_conv_bias, GRAFT_OP_matmul,     GRAFT_OP_matmul_bias,
    GRAFT_OP_add,  GRAFT_OP_mul,       GRAFT_OP_avg_pool,   GRAFT_OP_global_avg_pool,
    GRAFT_OP_relu, GRAFT_OP_reshape,   GRAFT_OP_scale_shift};

static void run_net(net *n)
{
    for (graft_index i = 0; i < n->order.count; i++) {
        if (!n->graph->nodes[n->order.order[i]].is_const) {
            run_node(n, n->order.order[i]);
        }
    }
}

/* ------------------------------------------------------------------- plan */

static void *take(net *n, size_t bytes)
{
    void *place = n->memory + n->used_bytes;
    bytes = (bytes + 7u) & ~(size_t)7u;
    if (bytes > n->memory_bytes - n->used_bytes) {
        return NULL;
    }
    n->used_bytes += bytes;
    return place;
}

/* A node of the weight program: filters of 8 bits are only looked at in another way. */
static bool fold(net *n, graft_index node)
{
    const graft_node *g = &n->graph->nodes[node];
    const graft_index value = graft_node_output(n->graph, node, 0);
    const graft_shape *shape = shape_of(n, value);
    const tensor *a = operand(n, node, 0);
    const tensor *b = operand(n, node, g->input_count - 1u);
    tensor *out = &n->tensors[value];
    const uint32_t count = count_of(n, value);
    *out = *a;
    if (g->op == GRAFT_OP_reshape) {
        return a->factors == NULL;
    }
    if (g->op == GRAFT_OP_mul && a->bytes != NULL) { /* By a number for each of the first axis. */
        const graft_index scale = graft_node_input(n->graph, node, 1);
        out->factors = b->floats;
        return a->factors == NULL && b->floats != NULL && shape_of(n, scale)->rank == shape->rank &&
               shape_of(n, scale)->dims[0] == shape->dims[0] &&
               count_of(n, scale) == (uint32_t)shape->dims[0];
    }
    if (g->op == GRAFT_OP_transpose && a->bytes != NULL) { /* Of a matrix. */
        int8_t *bytes = (int8_t *)take(n, count);
        const uint32_t columns = (uint32_t)shape->dims[1];
        for (uint32_t i = 0; bytes != NULL && i < count; i++) {
            bytes[i] = a->bytes[i % columns * (count / columns) + i / columns];
        }
        out->bytes = bytes;
        return a->factors == NULL && bytes != NULL && shape->rank == 2 && g->attrs[0] == 1;
    }
    float *floats = (float *)take(n, count * sizeof(float));
    if (floats == NULL || a->bytes != NULL || (g->op != GRAFT_OP_mul && g->op != GRAFT_OP_add)) {
        return false;
    }
    run_binary(n, node, g, floats);
    out->floats = floats;
    return true;
}

/* The place in the order of the last node that reads a value; past the end for an output. */
static graft_index last_use(const net *n, graft_index value)
{
    graft_index last = value == n->graph->outputs[0] ? n->order.count : 0;
    for (graft_index u = n->order.use_first[value]; u < n->order.use_first[value + 1]; u++) {
        const graft_index at = n->order.position[n->order.uses[u]];
        last = at > last ? at : last;
    }
    return last;
}

/* The lowest place for a value that is made at `at`, beside those that live then. */
static size_t find_place(const net *n, graft_index value, graft_index at)
{
    const size_t bytes = count_of(n, value) * sizeof(float);
    size_t place = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (graft_index v = 0; v < n->graph->value_end; v++) {
            const float *data = n->tensors[v].data;
            if (data == NULL || v == value || last_use(n, v) < at) {
                continue;
            }
            const size_t begin = (size_t)((const unsigned char *)data - n->memory) - n->used_bytes;
            const size_t end = begin + count_of(n, v) * sizeof(float);
            if (place < end && begin < place + bytes) {
                place = end;
                moved = true;
            }
        }
    }
    return place;
}

static bool place_value(net *n, graft_index value, graft_index at)
{
    const size_t place = find_place(n, value, at);
    const size_t end = place + count_of(n, value) * sizeof(float);
    n->tensors[value].data = (float *)(void *)(n->memory + n->used_bytes + place);
    n->plan_bytes = end > n->plan_bytes ? end : n->plan_bytes;
    return end <= n->memory_bytes - n->used_bytes;
}

/* Functions of one element write where their operand lies, when nothing reads that any more. */
static bool place_all(net *n)
{
    bool fits = place_value(n, 0, 0); /* The input: values of a table begin with it. */
    for (graft_index i = 0; fits && i < n->order.count; i++) {
        const graft_index node = n->order.order[i];
        const graft_node *g = &n->graph->nodes[node];
        const graft_index value = graft_node_output(n->graph, node, 0);
        const graft_index read = graft_node_input(n->graph, node, 0);
        if (g->is_const) {
            continue;
        }
        if ((g->op == GRAFT_OP_relu || g->op == GRAFT_OP_scale_shift ||
             g->op == GRAFT_OP_reshape) &&
            last_use(n, read) == i) {
            n->tensors[value].data = n->tensors[read].data;
        } else {
            fits = kernel_of(n, node) != KERNEL_NONE && place_value(n, value, i);
        }
    }
    return fits;
}

/* Orders the graph, runs the weight program and gives each value a place. */
static bool open_net(net *n, const graft_graph *graph)
{
    static const tensor none = {NULL, NULL, NULL, NULL, 0.0f};
    const size_t order_bytes = graft_order_bytes(&graph->limits);
    n->graph = graph;
    n->used_bytes = 0;
    n->plan_bytes = 0;
    void *order = take(n, order_bytes);
    bool fits = order != NULL && graph->value_end <= VALUES_MOST &&
                graft_order_build(&n->order, graph, order, order_bytes) == GRAFT_OK;
    for (graft_index v = 0; fits && v < graph->value_end; v++) {
        n->tensors[v] = none;
        if (graph->values[v].kind == GRAFT_VALUE_WEIGHT) {
            n->tensors[v].bytes = graft_weights_net[graph->values[v].source].bytes;
            n->tensors[v].floats = graft_weights_net[graph->values[v].source].floats;
            n->tensors[v].scale = graft_weights_net[graph->values[v].source].scale;
        }
    }
    for (graft_index i = 0; fits && i < n->order.count; i++) {
        const graft_index node = n->order.order[i];
        fits = !graph->nodes[node].is_const || fold(n, node);
    }
    return fits && place_all(n) && n->tensors[graph->outputs[0]].data != NULL;
}

/* -------------------------------------------------------------------- main */

static uint64_t graph_memory[MEMORY_BYTES / 8];
static uint64_t memory[MEMORY_BYTES / 8]; /* The engine's, and between its calls the tensors'. */
static float outputs[2][OUTPUTS_MOST];

static void write_pair(const char *name, uint32_t number)
{
    char digits[11];
    uint32_t at = 10;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    platform_write(name);
    platform_write(&digits[at]);
}

static bool infer(net *n, const graft_graph *graph, float *out)
{
    if (!open_net(n, graph)) {
        platform_write("the graph cannot be run here\n");
        return false;
    }
    float *in = n->tensors[0].data;
    for (uint32_t i = 0; i < count_of(n, 0); i++) {
        in[i] = (float)(i * 37u % 101u) * 0.02f - 1.0f;
    }
    const uint32_t start = platform_ticks();
    run_net(n);
    write_pair("nodes ", graft_graph_active_count(graph));
    write_pair(", instructions ", (platform_ticks() - start) * PLATFORM_TICK_INSTRUCTIONS);
    write_pair(", bytes of tensors ", (uint32_t)n->plan_bytes);
    write_pair(", of order and weight program ", (uint32_t)n->used_bytes);
    platform_write("\n");
    for (uint32_t i = 0; i < count_of(n, graph->outputs[0]) && i < OUTPUTS_MOST; i++) {
        out[i] = n->tensors[graph->outputs[0]].data[i];
    }
    return true;
}

/* Rewrites the graph by rules whose operators run_node or fold knows. */
static graft_status rewrite_graph(graft_graph *graph)
{
    static uint8_t skipped[UINT16_MAX / 8 + 1];
    static uint8_t operators[32];
    graft_optimize_options options = graft_optimize_options_default();
    graft_report report = {NULL};
    for (uint32_t i = 0; i < sizeof known; i++) {
        operators[known[i] / 8] = (uint8_t)(operators[known[i] / 8] | 1u << known[i] % 8);
    }
    graft_status status = graft_policy_skip_unrunnable(&GRAFT_POLICY, operators, skipped);
    options.skipped_rules = skipped;
    options.weight_bytes_limit = UINT64_MAX;
    options.step_limit = STEPS_MOST;
    const uint32_t start = platform_ticks();
    if (status == GRAFT_OK) {
        status = graft_optimize(graph, &GRAFT_POLICY, &options, memory, sizeof memory, &report);
    }
    write_pair("rewrites ", report.step_count);
    write_pair(", instructions ", (platform_ticks() - start) * PLATFORM_TICK_INSTRUCTIONS);
    write_pair(", bytes of graph ", (uint32_t)graft_graph_bytes(&graph->limits));
    write_pair(", of workspace ",
               (uint32_t)graft_optimize_workspace_bytes(&GRAFT_POLICY, &graph->limits, STEPS_MOST));
    platform_write("\n");
    return status;
}

static int run(void)
{
    static net n;
    const graft_limits limits = GRAFT_GRAPH_LIMITS;
    graft_graph graph;
    float apart = 0.0f;
    n.memory = (unsigned char *)memory;
    n.memory_bytes = sizeof memory;
    graft_status status = graft_graph_init(&graph, &limits, graph_memory, sizeof graph_memory);
    if (status == GRAFT_OK) {
        status = graft_graph_load(&graph, GRAFT_GRAPH, sizeof GRAFT_GRAPH / sizeof GRAFT_GRAPH[0]);
    }
    if (status != GRAFT_OK || !infer(&n, &graph, outputs[0]) || rewrite_graph(&graph) != GRAFT_OK ||
        !infer(&n, &graph, outputs[1])) {
        return 1;
    }
    for (uint32_t i = 0; i < OUTPUTS_MOST; i++) {
        const float difference = outputs[0][i] - outputs[1][i];
        apart = difference > apart ? difference : -difference > apart ? -difference : apart;
    }
    write_pair("outputs apart by parts of a million: ", (uint32_t)(apart * 1e6f));
    platform_write("\n");
    return apart < 1e-4f ? 0 : 1;
}

int main(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: the floating-point unit is on. */
    __asm__ volatile("dsb\n isb");
#endif
    int (*volatile enter)(void) = run; /* Not inlined: it may save registers of that unit. */
    return enter();
}
