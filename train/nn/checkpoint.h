/* checkpoint.h - everything needed to go on training, in one file: parameters with their Adam
 * moments and step counts, fixed scales, counters and generator states. Written atomically; all
 * numbers little-endian on every machine.
 *
 *      bytes        meaning
 *      8            "GRAFTCKP"
 *      u32, u32     format version, number of sections
 *      section      u32 kind, name, then by kind:
 *        1          parameters: u64 step, u32 count, each: name, u32 rows, u32 cols,
 *                   f32[rows cols] value, moment, variance
 *        2          reals: u32 count, f32[count]
 *        3          counters: u32 count, u64[count]
 *      u64          XXH3 (64 bits, seed 0) of everything before
 *      name         u32 length, bytes without terminator */
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
/* Fills the arrays, all or none. GRAFT_IO when the file cannot be read; GRAFT_BAD_INPUT when it is
 * no checkpoint, of another version, truncated or damaged, or describes networks of another shape;
 * the message names file, section and parameter. */
GRAFT_MUST_USE graft_status graft_checkpoint_load(graft_env *env, const char *path,
                                                  const graft_checkpoint *checkpoint);
