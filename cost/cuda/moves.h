/* moves.h - from signatures to the jobs of our own kernels (see index.h). Plain C, no CUDA.
 *
 * Every operator of the table has such a job, in the row-major layout and, for images, channels
 * last: what cuDNN lacks or does badly is run by it. */
#pragma once

#include "cost/cuda/index.h"
#include "cost/cuda/real.h"
#include "cost/database/signature.h"

typedef enum cuda_job_kind {
    CUDA_JOB_MOVE,
    CUDA_JOB_TURN,
    CUDA_JOB_POINT,
    CUDA_JOB_POOL,
    CUDA_JOB_CONV,
    CUDA_JOB_PRODUCT,
    CUDA_JOB_THIN,
    CUDA_JOB_ROWS
} cuda_job_kind;

typedef struct cuda_job {
    cuda_job_kind kind;
    uint64_t threads; /* That have something to do; for rows: rows, or groups of them. */
    union {
        cuda_move move;
        cuda_turn turn;
        cuda_point point;
        cuda_window window;
        cuda_product product;
        cuda_thin thin;
        cuda_rows rows;
    } as;
} cuda_job;

/* The job of a whole operator, for elements of `type`; `outputs` are the shapes of its
 * outputs. Fused operators: only the part without bias, residual and activation,
 * which cuda_job_of_finish does. False when a layout is blocked or the operator has no job. */
bool cuda_job_of(const graft_signature *signature, const graft_shape *outputs, cuda_type type,
                 cuda_job *job);

/* out = activation(a + bias [+ residual]) for the fused operators, in the layout of the output:
 * inputs 0 to 2 of the job are the sum so far, the bias and the residual. */
void cuda_job_of_finish(const graft_signature *signature, const graft_shape *output, cuda_type type,
                        cuda_job *job);

/* A product of at most CUDA_THIN_ROWS rows in all with one matrix of at most CUDA_THIN_COLUMNS
 * columns, row-major, with its bias and activation; false for others. Inputs 0 to 2 of the job are
 * the factors and the bias. */
bool cuda_job_of_thin(const graft_signature *signature, const graft_shape *output, cuda_type type,
                      cuda_job *job);

/* A filter (O, I, h, w), computed at run time, from row-major to channels last. */
void cuda_job_of_filter(const graft_shape *filter, cuda_type type, cuda_job *job);

/* A tensor repeated along axes in which it has size 1 or that it lacks, both row-major. */
void cuda_job_of_repeat(const graft_shape *from, const graft_shape *to, cuda_type type,
                        cuda_job *job);
