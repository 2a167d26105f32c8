/* wire.h - protobuf messages from bytes that nobody vouches for, and back.
 *
 * protobuf-c decodes recursively, says no more than "failed", and cuts texts at a zero byte. So the
 * bytes are first walked with the message's own description: a fault is named by its byte offset
 * and field, and what passes decodes within a bounded depth. Unknown fields are kept in the message
 * and written back. */
#pragma once

#include "bytes.h"
#include "env.h"

#include <protobuf-c/protobuf-c.h>

/* Messages inside messages, as the protobuf libraries limit them. */
enum { GRAFT_WIRE_DEPTH = 100 };

/* Decodes into `arena`, copying all of the data; nothing of the result is ever freed one by one.
 * GRAFT_BAD_INPUT "file: byte N: ..." for bytes that are not such a message, texts with zero bytes,
 * nesting deeper than GRAFT_WIRE_DEPTH. */
GRAFT_MUST_USE graft_status graft_wire_decode(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                              const ProtobufCMessageDescriptor *type,
                                              ProtobufCMessage **message);
/* The message's bytes, in `arena`: fields in the order of their numbers, then unknown ones. */
void graft_wire_encode(graft_arena *arena, const ProtobufCMessage *message, uint8_t **data,
                       size_t *size);
/* The same from and to a file, and to a copy; `file` is for messages. */
GRAFT_MUST_USE graft_status graft_wire_read(graft_env *env, graft_arena *arena, const char *path,
                                            const ProtobufCMessageDescriptor *type,
                                            ProtobufCMessage **message);
GRAFT_MUST_USE graft_status graft_wire_write(graft_env *env, const char *path,
                                             const ProtobufCMessage *message);
GRAFT_MUST_USE graft_status graft_wire_copy(graft_env *env, graft_arena *arena, const char *file,
                                            const ProtobufCMessage *from, ProtobufCMessage **to);
