/* backtracking.c - TASO's cost-based backtracking search (Jia et al., SOSP 2019, section 5; the
 * dissertation's Algorithm 2): a queue of graphs, cheapest first; every successor dearer than alpha
 * times the best is dropped. */
#include "graph/base/log.h"
#include "train/search/explored.h"

enum { FIRST_QUEUE = 1024 };

typedef struct queue {
    double alpha;
    const graft_plan_found *found;
    graft_arena *arena;
    graft_successor *heap;
    uint32_t count;
    uint32_t capacity;
} queue;

static void push(queue *q, const graft_successor *item)
{
    uint32_t i = q->count;
    GRAFT_PUSH(q->arena, q->heap, q->count, q->capacity, FIRST_QUEUE) = *item;
    while (i > 0 && graft_successor_before(item, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = *item;
}

static graft_successor pop(queue *q)
{
    const graft_successor top = q->heap[0];
    const graft_successor item = q->heap[--q->count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= q->count) {
            break;
        }
        if (child + 1 < q->count && graft_successor_before(&q->heap[child + 1], &q->heap[child])) {
            child++;
        }
        if (!graft_successor_before(&q->heap[child], &item)) {
            break;
        }
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = item;
    return top;
}

static void visit(void *search, const graft_successor *successor)
{
    queue *q = search;
    if (successor->cost_ns < q->alpha * q->found->cost_ns) {
        push(q, successor);
    }
}

graft_status graft_search_backtracking(graft_env *env, graft_arena *arena,
                                       graft_environment *environment,
                                       const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    graft_progress progress;
    GRAFT_ARENA(own, (size_t)1 << 20);
    graft_explored *explored = graft_explored_open(own, environment, found);
    queue q = {.alpha = choice->alpha, .found = found, .arena = own};
    graft_progress_start(&progress, env, "backtracking", "graphs", choice->dequeues);
    GRAFT_PASS(graft_explored_expand(env, explored, NULL, visit, &q));
    while (q.count > 0 && found->dequeues < choice->dequeues &&
           !graft_search_is_over(environment, found)) {
        const graft_successor item = pop(&q);
        GRAFT_PASS(graft_explored_expand(env, explored, &item, visit, &q));
        graft_progress_update(&progress, found->dequeues, NULL);
    }
    graft_progress_finish(&progress);
    graft_explored_trace(arena, explored);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}
