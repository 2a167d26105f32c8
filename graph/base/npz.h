/* npz.h - named tensors in a file, as numpy.savez writes them: a ZIP archive with an .npy array for
 * each. Stored or deflated entries, up to 4 GiB; arrays in C order, little-endian, of the element
 * types that the engine has (of which numpy lacks bfloat16). */
#pragma once

#include "graft/run.h"
#include "graph/base/bytes.h"
#include "graph/base/env.h"

/* Everything that it gives lies in `arena`. GRAFT_BAD_INPUT or GRAFT_UNSUPPORTED, naming the file,
 * the array and what is wrong. */
GRAFT_MUST_USE graft_status graft_npz_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                            graft_run_tensor **tensors, uint32_t *count);
/* The archive's data and size, in `arena`, into `bytes`, whose file is for messages; the same
 * tensors give the same ones. GRAFT_UNSUPPORTED for what does not fit the format. */
GRAFT_MUST_USE graft_status graft_npz_pack(graft_env *env, graft_arena *arena,
                                           const graft_run_tensor *tensors, uint32_t count,
                                           graft_bytes *bytes);
