/* backend_cuda.c - the table of this back end, which graft-cuda.so gives away (see backend.h). */
#include "cost/cuda/device_cuda.h"

const graft_backend cuda_backend = {
    .abi = GRAFT_BACKEND_ABI,
    .open = cuda_device_open,
    .close = cuda_device_close,
    .present = cuda_device_present,
    .kernel_list = cuda_kernel_list,
    .kernel_open = cuda_kernel_open,
    .kernel_close = cuda_kernel_close,
    .kernel_copy_weights = cuda_kernel_copy_weights,
    .kernel_turn = cuda_kernel_turn,
    .kernel_bind = cuda_kernel_bind,
    .kernel_run = cuda_kernel_run,
    .prepare = cuda_plan_ahead,
    .measure = cuda_measure,
    .allocate = cuda_device_allocate,
    .release = cuda_device_release,
    .write = cuda_device_write,
    .read = cuda_device_read,
    .time = cuda_device_time,
};

const graft_backend *graft_backend_cuda(void);

__attribute__((visibility("default"))) const graft_backend *graft_backend_cuda(void)
{
    return &cuda_backend;
}
