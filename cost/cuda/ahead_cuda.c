/* ahead_cuda.c - planning on several threads (see device_cuda.h).
 *
 * cuDNN may be called by several threads as long as each has a handle of its own. Threads take one
 * signature after the other; each lists its implementations and makes their plans, which stay in
 * the device's cache. Nothing here runs on the GPU. */
#include "cost/cuda/device_cuda.h"

#include "graph/base/log.h"

#include <stdatomic.h>
#include <unistd.h>

typedef struct {
    graft_device *device;
    const graft_signature *signatures;
    uint32_t count;
    int verbosity;
    atomic_uint next;
    atomic_uint done;
} work;

typedef struct {
    work *work;
    const cudnn_target *target;
    pthread_t thread;
} planner;

static void *run_planner(void *context)
{
    planner *p = context;
    graft_env env;
    if (graft_env_open(&env) != GRAFT_OK) {
        return NULL;
    }
    env.verbosity = p->work->verbosity;
    for (;;) {
        uint32_t i = atomic_fetch_add(&p->work->next, 1);
        if (i >= p->work->count || graft_interrupted()) {
            break;
        }
        (void)cuda_kernel_plan_all(&env, p->work->device, p->target, &p->work->signatures[i]);
        graft_env_clear(&env); /* It fails again, with its message, where it is asked for. */
        (void)atomic_fetch_add(&p->work->done, 1);
    }
    graft_env_close(&env);
    return NULL;
}

uint32_t cuda_planner_count(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1               ? 1
           : processors > PLANNERS_MOST ? (uint32_t)PLANNERS_MOST
                                        : (uint32_t)processors;
}

uint32_t cuda_plan_ahead(graft_env *env, graft_device *device, const graft_signature *signatures,
                         uint32_t count)
{
    planner planners[PLANNERS_MOST];
    work w = {
        .device = device, .signatures = signatures, .count = count, .verbosity = env->verbosity};
    uint32_t wanted = count < cuda_planner_count() ? count : cuda_planner_count();
    uint32_t started = 0;
    while (started < wanted) {
        planner *p = &planners[started];
        *p = (planner){.work = &w};
        if (cuda_device_planner(env, device, started, &p->target) != GRAFT_OK ||
            pthread_create(&p->thread, NULL, run_planner, p) != 0) {
            graft_env_clear(env); /* With fewer, or with none, when it is asked for. */
            break;
        }
        started++;
    }
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(planners[i].thread, NULL);
    }
    return atomic_load(&w.done);
}
