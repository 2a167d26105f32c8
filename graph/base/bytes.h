/* bytes.h - bytes from outside, and the name that stands for them in messages. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct graft_bytes {
    const char *file;
    const uint8_t *data;
    size_t size;
} graft_bytes;

/* What is only read, for those who take no pointer to const: protobuf, and libraries of kernels. */
static inline void *graft_borrow(const void *data)
{
    void *result = NULL;
    memcpy(&result, &data, sizeof(result));
    return result;
}
