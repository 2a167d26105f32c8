/* onnx_stage.h - nodes of a later stage that are worked out while it is read; private to
 * onnx_stage.c and onnx_told.c. */
#pragma once

#include "graph/onnx/onnx.h"

/* One node, all of whose inputs are known. */
typedef struct graft_onnx_known {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    graft_shape *in;   /* Rank GRAFT_RANK_UNKNOWN: not given, or not known. */
    const void **data; /* NULL likewise. */
    bool of_data;
    bool none; /* An input that is no list of settings has no elements. */
} graft_onnx_known;

/* Elements and shape of an entry; false where they are not known. */
bool graft_onnx_find_known(const graft_onnx_reader *reader, const graft_onnx_entry *entry,
                           graft_shape *shape, const void **data);
/* What a node, its bodies included, reads: how much, and at place `k`; NULL: not given. */
size_t graft_onnx_read_count(const graft_onnx *onnx, uint32_t index);
graft_onnx_entry *graft_onnx_read_at(const graft_onnx *onnx, uint32_t index, size_t k);
/* False when an input, or what a body reads, is not known; `k` has the others then. In scratch. */
bool graft_onnx_know(graft_onnx_reader *reader, uint32_t index, graft_onnx_known *k);
/* Works out what finds its size (found.h), what reads tensors without elements, and what the folding
 * of constants leaves out; false for other nodes. Then the outputs are known. */
bool graft_onnx_work_out(const graft_onnx_known *k);
/* The same where no result has elements, which shapes alone tell, so that data may be missing, or
 * where each of its elements is a sum of none. */
bool graft_onnx_work_out_none(const graft_onnx_known *k);
