/* count.c - how many instructions an operator takes with kernels.h: what devices/cortex-m4 asks.
 *
 * The operator is a table as `graft emit-graph` writes it, that QEMU has put into memory behind its
 * length. Nodes after the first are what is fused with it: a bias, a residual input, an
 * activation. */
#define GRAFT_IMPLEMENTATION
#include "kernels.h"

#include "tests/firmware/platform.h"

enum { POOL_BYTES = 3 << 20, GRAPH_BYTES = 1 << 15, FEW_TICKS = 1000, REPEATS = 16 };

static const int32_t *const table = (const int32_t *)0x203f0000; /* As in devices/cortex-m4. */
static uint64_t graph_memory[GRAPH_BYTES / 8];
static float pool[POOL_BYTES / sizeof(float)]; /* What changes and what is fixed, of any tensor. */
static uint32_t pool_used;

static bool is_relu6(const graft_node *g)
{
    return g->op == GRAFT_OP_clip && g->attrs[0] == 0 && g->attrs[1] == 0x40c00000;
}

/* Adds the node that is all nodes of the graph in one; the first one when it is alone. */
static bool fuse(graft_graph *graph, graft_index *node)
{
    const graft_index count = graph->node_end;
    graft_node all = graph->nodes[0];
    graft_index inputs[GRAFT_MAX_INPUTS] = {0};
    for (uint32_t k = 0; k < all.input_count; k++) {
        inputs[k] = graft_node_input(graph, 0, k);
    }
    *node = 0;
    for (graft_index i = 1; i < count; i++) {
        const graft_node *g = &graph->nodes[i];
        const bool first = graft_node_input(graph, i, 0) == graft_node_output(graph, i - 1, 0);
        const bool product = all.op == GRAFT_OP_matmul_bias;
        const bool bias = g->op == GRAFT_OP_add && all.op == GRAFT_OP_matmul;
        if (bias || (g->op == GRAFT_OP_add && all.op == GRAFT_OP_conv_bias)) {
            all.op = bias ? GRAFT_OP_matmul_bias : GRAFT_OP_conv_bias_add;
            inputs[bias ? 2 : 3] = graft_node_input(graph, i, first ? 1 : 0);
        } else if (g->op == GRAFT_OP_relu || is_relu6(g)) {
            all.attrs[product ? 0 : GRAFT_ATTR_conv_bias_activation] =
                g->op == GRAFT_OP_relu ? GRAFT_ACT_RELU : GRAFT_ACT_RELU6;
        } else {
            return false;
        }
    }
    return count == 1 ||
           graft_graph_add_node(graph, all.op, all.attrs, inputs, 0, node) == GRAFT_OK;
}

/* Gives the value a place; filters have 8 bits. */
static bool place(net *n, graft_index value, bool filter)
{
    tensor *t = &n->tensors[value];
    const uint32_t count = count_of(n, value);
    const uint32_t floats = filter ? (count + 3u) / 4u : count;
    if (floats > sizeof pool / sizeof pool[0] - pool_used) {
        return false;
    }
    float *data = &pool[pool_used];
    pool_used += floats;
    for (uint32_t i = 0; i < floats; i++) {
        data[i] = (float)(i * 37u % 101u) * 0.02f - 1.0f;
    }
    t->scale = 0.01f;
    t->bytes = filter ? (const int8_t *)(const void *)data : NULL;
    t->floats = !filter && n->graph->values[value].is_const ? data : NULL;
    t->data = filter ? NULL : data;
    return true;
}

static bool place_all(net *n, graft_index node, kernel run)
{
    const graft_node *g = &n->graph->nodes[node];
    const bool weighs = run == KERNEL_CONVOLUTION || run == KERNEL_PRODUCT;
    bool fits = true;
    for (uint32_t k = 0; fits && k < (uint32_t)g->input_count + g->output_count; k++) {
        const graft_index value = graft_node_input(n->graph, node, k); /* Outputs come behind. */
        fits = place(n, value, weighs && k == 1 && n->graph->values[value].is_const);
    }
    return fits;
}

static uint32_t count_ticks(const net *n, graft_index node, uint32_t repeats)
{
    const uint32_t start = platform_ticks();
    for (uint32_t i = 0; i < repeats; i++) {
        run_node(n, node);
    }
    return platform_ticks() - start;
}

static void write_count(uint32_t count)
{
    char digits[] = "instructions 0000000000\n";
    for (uint32_t i = 22; i > 12; i--, count /= 10) {
        digits[i] = (char)('0' + count % 10);
    }
    platform_write(digits);
}

static int run(void)
{
    static net n;
    static const graft_limits limits = {16, VALUES_MOST, 64, 4};
    graft_graph graph;
    graft_index node = 0;
    if (graft_graph_init(&graph, &limits, graph_memory, sizeof graph_memory) != GRAFT_OK ||
        graft_graph_load(&graph, table + 1, (size_t)table[0]) != GRAFT_OK || graph.node_end == 0 ||
        !fuse(&graph, &node)) {
        platform_write("unsupported there is no kernel for what is fused\n");
        return 0;
    }
    n.graph = &graph;
    const kernel run = kernel_of(&n, node);
    const uint32_t op = graph.nodes[node].op;
    if (run == KERNEL_NONE) {
        platform_write("unsupported there is no kernel\n");
    } else if (!place_all(&n, node, run)) {
        platform_write("unsupported the tensors do not fit into 3 MiB\n");
    } else if (op == GRAFT_OP_identity || op == GRAFT_OP_reshape) {
        write_count(0); /* The result lies where the operand does. */
    } else {
        const uint32_t ticks = count_ticks(&n, node, 1);
        const uint32_t repeats = ticks < FEW_TICKS ? REPEATS : 1;
        const uint32_t all = repeats > 1 ? count_ticks(&n, node, repeats) : ticks;
        write_count(all * PLATFORM_TICK_INSTRUCTIONS / repeats);
    }
    return 0;
}

int main(void)
{
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: the floating-point unit is on. */
    __asm__ volatile("dsb\n isb");
    int (*volatile enter)(void) = run; /* Not inlined: it may save registers of that unit. */
    return enter();
}
