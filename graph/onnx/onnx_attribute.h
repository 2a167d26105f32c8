/* onnx_attribute.h - attributes of ONNX nodes by name, and words in lists. */
#pragma once

#include "graph/onnx/onnx.pb-c.h"

#include <stdbool.h>
#include <string.h>

static inline const char *text_or_empty(const char *text) { return text == NULL ? "" : text; }

static inline bool graft_onnx_is(const Onnx__NodeProto *node, const char *op_type)
{
    return strcmp(text_or_empty(node->op_type), op_type) == 0;
}

/* ONNX' own domain has two names. */
static inline bool graft_onnx_is_own_domain(const char *domain)
{
    return text_or_empty(domain)[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

/* The tensor shape that a type declares; NULL for other kinds of values and for unknown ranks. */
static inline Onnx__TensorShapeProto *graft_onnx_declared_shape(const Onnx__TypeProto *type)
{
    return type == NULL || type->tensor_type == NULL ? NULL : type->tensor_type->shape;
}

/* The name of a sparse initializer is that of its values. */
static inline const char *graft_onnx_sparse_name(const Onnx__SparseTensorProto *sparse)
{
    return sparse->values == NULL ? "" : text_or_empty(sparse->values->name);
}

/* A word of a list ends at a blank. One of a row of foreign.def says more behind its name. */
#define GRAFT_ONNX_MARKS " ?#~@|"

/* Whether `word` is one of the words of `list`. */
static inline bool graft_onnx_lists(const char *list, const char *word)
{
    const size_t size = strlen(text_or_empty(word));
    for (const char *at = list; size > 0 && *at != '\0'; at += strspn(at, " ")) {
        if (strcspn(at, GRAFT_ONNX_MARKS) == size && memcmp(at, word, size) == 0) {
            return true;
        }
        at += strcspn(at, " ");
    }
    return false;
}

/* Whether a node is the operator that a table names: one of another domain than ONNX' own has the
 * domain's name before a colon. */
static inline bool graft_onnx_is_named(const Onnx__NodeProto *node, const char *name)
{
    const char *domain = graft_onnx_is_own_domain(node->domain) ? "" : node->domain;
    const size_t length = strlen(domain);
    return strncmp(name, domain, length) == 0 && (length == 0 || name[length] == ':') &&
           graft_onnx_is(node, name + length + (length > 0 ? 1 : 0));
}

/* Whether all attributes of a node are in a list, and none refers to one of a function. */
static inline bool graft_onnx_has_only(const Onnx__NodeProto *node, const char *known)
{
    bool all = true;
    for (size_t i = 0; i < node->n_attribute && all; i++) {
        all = graft_onnx_lists(known, node->attribute[i]->name) &&
              text_or_empty(node->attribute[i]->ref_attr_name)[0] == '\0';
    }
    return all;
}

/* NULL when it is not given. */
static inline Onnx__AttributeProto *graft_onnx_attribute(const Onnx__NodeProto *node,
                                                         const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(text_or_empty(node->attribute[i]->name), name) == 0) {
            return node->attribute[i];
        }
    }
    return NULL;
}

static inline int64_t graft_onnx_int(const Onnx__NodeProto *node, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    return attribute == NULL ? absent : attribute->i;
}

static inline bool graft_onnx_is_text(const ProtobufCBinaryData *data, const char *text)
{
    return data->len == strlen(text) && memcmp(data->data, text, data->len) == 0;
}

/* Whether a text attribute is `text`; `absent` where it is not given. */
static inline bool graft_onnx_says(const Onnx__NodeProto *node, const char *name, const char *text,
                                   bool absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    return attribute == NULL ? absent : graft_onnx_is_text(&attribute->s, text);
}
