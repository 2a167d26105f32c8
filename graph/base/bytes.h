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

/* Messages of protobuf describe what they hold as theirs to change, though nothing here does. */
static inline void *graft_borrow(const void *data)
{
    void *result = NULL;
    memcpy(&result, &data, sizeof(result));
    return result;
}
