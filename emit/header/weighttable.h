/* weighttable.h - writes the weights of a model as C tables, for products that know their model
 * when they are compiled: matrices and filters in 8 bits, vectors and numbers in binary32. */
#pragma once

#include "graph/model.h"

/* Writes a header with an array of structs {bytes, floats, scale, count}, one for each weight of
 * the graph by the number of its source: element i is bytes[i] * scale, or floats[i] where there
 * are no bytes. Bytes are nearest to the weight, with the largest one at 127. `name` becomes part
 * of identifiers, as in identifier.h. GRAFT_UNSUPPORTED for a weight that is not binary32, or not
 * finite. */
GRAFT_MUST_USE graft_status graft_weighttable_write(graft_env *env, const graft_model *model,
                                                    const char *name, const char *path);
