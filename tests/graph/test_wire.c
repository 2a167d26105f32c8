/* test_wire.c - the walk over protobuf bytes: what is refused, where, and what survives. */
#include "graph/base/wire.h"
#include "graph/onnx/onnx.pb-c.h"
#include "tests/support/check.h"

typedef struct {
    const char *message;
    uint8_t bytes[16];
    size_t size;
} wire_row;

static const wire_row rows[] = {
    {"x: byte 0: a number does not end in ModelProto",                     {0x80},                   1},
    {"x: byte 0: a number does not end in ModelProto",
     {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
     11                                                                                               },
    {"x: byte 0: an impossible field number in ModelProto",                {0x00, 0x00},             2},
    {"x: byte 0: a kind of content that does not exist in ModelProto",     {0xfb, 0x0f},             2},
    {"x: byte 1: a number does not end in ModelProto",                     {0x08, 0x80},             2},
    {"x: byte 0: ModelProto.ir_version has another kind of content",       {0x0a, 0x00},             2},
    {"x: byte 1: ModelProto.producer_name runs past the end",              {0x12, 0x05, 'a'},        3},
    {"x: byte 2: ModelProto.producer_name holds a zero byte",              {0x12, 0x01, 0x00},       3},
    {"x: byte 3: GraphProto.name runs past the end",                       {0x3a, 0x02, 0x12, 0x01}, 4},
    {"x: byte 2: ModelProto.(unknown field) runs past the end",            {0xfa, 0x0f, 0x7f},       3},
    {"x: byte 6: TensorProto.float_data ends inside a number",
     {0x3a, 0x07, 0x2a, 0x05, 0x22, 0x03, 0x01, 0x02, 0x03},
     9                                                                                                },
    {"x: byte 6: TensorProto.int64_data holds a number that does not end",
     {0x3a, 0x05, 0x2a, 0x03, 0x3a, 0x01, 0x80},
     7                                                                                                },
};

CHECK_CASE(test_rows)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ProtobufCMessage *message = NULL;
        graft_status status =
            graft_wire_decode(env, env->unit, (graft_bytes){"x", rows[i].bytes, rows[i].size},
                              &onnx__model_proto__descriptor, &message);
        check_failed(env, status, GRAFT_BAD_INPUT, rows[i].message);
        assert_null(message);
    }
}

/* Graphs in attributes of nodes of graphs: fields 7; then 1, 5, 6 over and over. */
CHECK_CASE(test_depth)
{
    static const uint8_t tags[] = {0x0a, 0x2a, 0x32};
    for (uint32_t depth = 90; depth < 110; depth++) {
        uint8_t bytes[1024];
        size_t at = sizeof(bytes);
        for (uint32_t i = depth; i-- > 0;) { /* From the innermost outwards. */
            size_t size = sizeof(bytes) - at;
            if (size >= 0x80) {
                bytes[--at] = (uint8_t)(size >> 7);
                bytes[--at] = (uint8_t)(size | 0x80);
            } else {
                bytes[--at] = (uint8_t)size;
            }
            bytes[--at] = i == 0 ? 0x3a : tags[(i - 1) % 3];
        }
        ProtobufCMessage *message = NULL;
        graft_status status =
            graft_wire_decode(env, env->unit, (graft_bytes){"x", bytes + at, sizeof(bytes) - at},
                              &onnx__model_proto__descriptor, &message);
        if (depth < GRAFT_WIRE_DEPTH) {
            CHECK_OK(status);
        } else {
            check_failed(env, status, GRAFT_BAD_INPUT, "is nested too deep");
        }
    }
}

/* Packed and unpacked lists of numbers read the same. */
CHECK_CASE(test_packed)
{
    static const uint8_t packed[] = {0x42, 0x03, 0x01, 0xac, 0x02};
    static const uint8_t single[] = {0x40, 0x01, 0x40, 0xac, 0x02};
    const uint8_t *forms[] = {packed, single};
    for (size_t i = 0; i < 2; i++) {
        ProtobufCMessage *message = NULL;
        CHECK_OK(graft_wire_decode(env, env->unit, (graft_bytes){"x", forms[i], 5},
                                   &onnx__attribute_proto__descriptor, &message));
        const Onnx__AttributeProto *attribute = (const Onnx__AttributeProto *)message;
        assert_int_equal(attribute->n_ints, 2);
        assert_int_equal(attribute->ints[0], 1);
        assert_int_equal(attribute->ints[1], 300);
    }
}

/* Unknown fields come back, behind the known ones. */
CHECK_CASE(test_unknown_fields)
{
    static const uint8_t bytes[] = {0x08, 0x07, 0xa2, 0x06, 0x02, 'h', 'i', 0xa8, 0x06, 0x05};
    ProtobufCMessage *message = NULL;
    uint8_t *out = NULL;
    size_t size = 0;
    CHECK_OK(graft_wire_decode(env, env->unit, (graft_bytes){"x", bytes, sizeof(bytes)},
                               &onnx__model_proto__descriptor, &message));
    graft_wire_encode(env->unit, message, &out, &size);
    assert_int_equal(size, sizeof(bytes));
    assert_memory_equal(out, bytes, size);
}
