// A C++17 program: what the policy makes of relu(relu(x)). Built with one file, the header that
// `graft emit-policy POLICY.graft graft_policy.h --amalgamate` writes.
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include <iostream>
#include <vector>

int main()
{
    const graft_limits limits{16, 16, 64, 1};
    std::vector<unsigned char> memory(graft_graph_bytes(&limits));
    std::vector<unsigned char> workspace(graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits, 8));
    graft_optimize_options options = graft_optimize_options_default();
    options.step_limit = 8;
    const graft_shape shape{{1, 64, 56, 56}, 4, GRAFT_DTYPE_F32};
    graft_graph graph;
    graft_index x = 0, node = 0;
    bool ok = graft_graph_init(&graph, &limits, memory.data(), memory.size()) == GRAFT_OK &&
              graft_graph_add_input(&graph, &shape, 0, &x) == GRAFT_OK;
    for (int i = 0; ok && i < 2; i++) {
        ok = graft_graph_add_node(&graph, GRAFT_OP_relu, nullptr, &x, 0, &node) == GRAFT_OK;
        x = graft_node_output(&graph, node, 0);
    }
    ok = ok && graft_graph_add_output(&graph, x) == GRAFT_OK &&
         graft_optimize(&graph, &GRAFT_POLICY, &options, workspace.data(), workspace.size(),
                        nullptr) == GRAFT_OK;
    std::cout << "nodes " << graft_graph_active_count(&graph) << '\n';
    return ok && graft_graph_active_count(&graph) == 1 ? 0 : 1;
}
