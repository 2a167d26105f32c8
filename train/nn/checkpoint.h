/* checkpoint.h - everything needed to go on training, in one file: parameters with their Adam
 * moments and step counts, fixed scales, counters and generator states. Written atomically; all
 * numbers little-endian.
 *
 *      bytes        meaning
 *      8            "GRAFTCKP"
 *      u64          format version
 *      u64          XXH3 of words that say what follows: names and sizes, in their order
 *      networks     each: u64 step, f32[size] value, moment, variance
 *      reals        each: f32[count]
 *      counters     each: u64[count]
 *      u64          XXH3 (64 bits, seed 0) of everything before */
#pragma once

#include "graph/base/env.h"
#include "train/nn/parameters.h"

typedef struct {
    const char *name;
    float *value;
    uint32_t count;
} graft_reals;

typedef struct {
    const char *name;
    uint64_t *value;
    uint32_t count;
} graft_counters;

/* What is saved, or where it is loaded to: the same list in the same order, all arrays the
 * caller's. */
typedef struct {
    graft_parameters *const *sets;
    const graft_reals *reals;
    const graft_counters *counters;
    uint32_t set_count;
    uint32_t reals_count;
    uint32_t counters_count;
} graft_checkpoint;

/* GRAFT_IO when the file cannot be written; an older file is then untouched. */
GRAFT_MUST_USE graft_status graft_checkpoint_save(graft_env *env, const char *path,
                                                  const graft_checkpoint *checkpoint);
/* Fills the arrays, all or none. GRAFT_IO when the file cannot be read; GRAFT_BAD_INPUT, naming it,
 * when it is no checkpoint, of another version, truncated or damaged, or holds anything of another
 * name or size. */
GRAFT_MUST_USE graft_status graft_checkpoint_load(graft_env *env, const char *path,
                                                  const graft_checkpoint *checkpoint);
