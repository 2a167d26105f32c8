/* check.h - what `make gpu-check` runs on a machine with a GPU: see docs/gpu.md.
 *
 * One program without the libraries that such a machine may lack (oneDNN, Z3, OpenBLAS, libyaml,
 * cmocka). Every stage writes a file of JSON Lines, as it goes; what fails is counted and named,
 * and the program's exit status tells. */
#ifndef TESTS_CUDA_CHECK_H
#define TESTS_CUDA_CHECK_H

#include "cost/cost.h"
#include "graph/json.h"

typedef struct check_run {
    graft_env *env;
    const char *folder; /* Where results go. */
    bool is_short;      /* A short selection, for the memory checker. */
    const char
        *described;       /* A GPU that is not here: primitives are listed, not run. NULL: it is. */
    uint64_t deadline_ns; /* Of the whole program, by the clock of clock.h. */
    uint32_t failures;
} check_run;

enum { CHECK_TYPES = 4 };
extern const char *const check_types[CHECK_TYPES]; /* "fp32", "tf32", "fp16", "bf16" */

/* Opens "cuda:<type>" and options behind it. */
GRAFT_MUST_USE graft_status check_open(check_run *run, const char *type, const char *options,
                                       graft_device **device);
bool check_is_late(const check_run *run);
/* Opens `folder`/NAME for the lines of a stage. */
GRAFT_MUST_USE graft_status check_file(check_run *run, const char *name, FILE **file);
/* Counts a failure, says it on stderr and forgets the message of the environment. */
void check_fail(check_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line of a file and of the terminal: ends `json`. */
void check_line(check_run *run, graft_json *json, FILE *file);

/* Every implementation of some 70 signatures of every operator against the float reference. */
GRAFT_MUST_USE graft_status check_primitives(check_run *run);
/* Copy bandwidth, rates of products, and how near to them movement and elementwise kernels come. */
GRAFT_MUST_USE graft_status check_ceilings(check_run *run);
/* The zoo: costs of all that the rules make of it, and whole models before and after. */
GRAFT_MUST_USE graft_status check_models(check_run *run);

#endif
