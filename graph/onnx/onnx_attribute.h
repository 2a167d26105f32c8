/* onnx_attribute.h - attributes of ONNX nodes by name, and words in lists. */
#pragma once

#include "graph/onnx/onnx.pb-c.h"

#include <stdbool.h>
#include <string.h>

static inline const char *text_or_empty(const char *text) { return text == NULL ? "" : text; }

/* Whether `word` is one of the words of `list`, which are separated by blanks. */
static inline bool graft_onnx_lists(const char *list, const char *word)
{
    const size_t size = strlen(text_or_empty(word));
    for (const char *at = list; size > 0 && *at != '\0'; at += strspn(at, " ")) {
        const size_t here = strcspn(at, " ");
        if (here == size && memcmp(at, word, size) == 0) {
            return true;
        }
        at += here;
    }
    return false;
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

/* Whether a text attribute is `text`; `absent` where it is not given. */
static inline bool graft_onnx_says(const Onnx__NodeProto *node, const char *name, const char *text,
                                   bool absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    return attribute == NULL ? absent
                             : attribute->s.len == strlen(text) &&
                                   memcmp(attribute->s.data, text, attribute->s.len) == 0;
}
