/* bytes.h - bytes from outside, and the name that stands for them in messages. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct graft_bytes {
    const char *file;
    const uint8_t *data;
    size_t size;
} graft_bytes;
