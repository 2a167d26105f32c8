/* Byte code as everything but the engine reads it (graph/rule/rulecode.h): each instruction
 * decoded, the stack followed, and the ends of programs told as the engine tells them. */
#include "graph/rule/rulecode.h"

#include "tests/support/check.h"

#include <string.h>

static graft_rule rule_of(const uint8_t *code, uint32_t bytes)
{
    graft_rule rule = {.code_bytes = (uint8_t)bytes};
    memcpy(rule.code, code, bytes);
    return rule;
}

CHECK_CASE(test_instructions)
{
    static const uint8_t code[] = {GRAFT_CODE_CONST8,
                                   0xfe,
                                   GRAFT_CODE_CONST32,
                                   1,
                                   0,
                                   0,
                                   0x80,
                                   GRAFT_CODE_SLOT,
                                   3,
                                   GRAFT_CODE_DIM,
                                   2,
                                   0xff,
                                   GRAFT_CODE_RANK,
                                   4,
                                   GRAFT_CODE_SAME,
                                   5,
                                   6,
                                   GRAFT_CODE_NOT,
                                   GRAFT_CODE_ADD,
                                   GRAFT_CODE_END};
    static const graft_code_step expected[] = {
        {.code = GRAFT_CODE_CONST8, .number = -2},
        {.code = GRAFT_CODE_CONST32,                         .number = INT32_MIN + 1},
        {.code = GRAFT_CODE_SLOT,.index = 3},
        {.code = GRAFT_CODE_DIM,   .index = 2, .number = -1},
        {.code = GRAFT_CODE_RANK,                         .index = 4},
        {.code = GRAFT_CODE_SAME,             .index = 5, .other = 6},
        {.code = GRAFT_CODE_NOT,                         .takes = 1},
        {.code = GRAFT_CODE_ADD,.takes = 2},
        {.code = GRAFT_CODE_END  }
    };
    const graft_rule rule = rule_of(code, sizeof code);
    uint32_t at = 0;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        graft_code_step step = graft_code_at(&rule, at);
        assert_int_equal(step.at, at);
        assert_int_equal(step.code, expected[i].code);
        assert_int_equal(step.takes, expected[i].takes);
        assert_int_equal(step.index, expected[i].index);
        assert_int_equal(step.other, expected[i].other);
        assert_int_equal(step.number, expected[i].number);
        at = graft_code_next(&rule, at);
    }
    assert_int_equal(at, rule.code_bytes);
}

/* Every program of up to six instructions of constants, NOT and MIN: read whole where it runs. */
CHECK_CASE(test_ends)
{
    static const uint8_t instructions[3] = {GRAFT_CODE_SLOT, GRAFT_CODE_NOT, GRAFT_CODE_MIN};
    static const int32_t slots[2] = {1, 2};
    for (uint32_t number = 0; number < 3 * 3 * 3 * 3 * 3 * 3; number++) {
        uint8_t code[16];
        uint32_t bytes = 0;
        for (uint32_t i = 0, rest = number; i < 6; i++, rest /= 3) {
            code[bytes++] = instructions[rest % 3];
            if (rest % 3 == 0) {
                code[bytes++] = (uint8_t)(i & 1);
            }
        }
        code[bytes++] = GRAFT_CODE_END;
        const graft_rule rule = rule_of(code, bytes);
        graft_code_reader reader = graft_code_open(&rule, 0, 6);
        graft_code_step step;
        int64_t result = 0;
        while (graft_code_read(&reader, &step)) {
            assert_true(step.place < 6);
        }
        assert_int_equal(reader.end == GRAFT_CODE_WHOLE,
                         graft_code_run(&rule, 0, NULL, NULL, slots, &result));
    }
}

CHECK_CASE(test_deep)
{
    static const uint8_t code[] = {GRAFT_CODE_CONST8, 1, GRAFT_CODE_CONST8, 2, GRAFT_CODE_MAX,
                                   GRAFT_CODE_END};
    const graft_rule rule = rule_of(code, sizeof code);
    graft_code_step step;
    for (uint32_t most = 1; most <= 2; most++) {
        graft_code_reader reader = graft_code_open(&rule, 0, most);
        while (graft_code_read(&reader, &step)) {
        }
        assert_int_equal(reader.end, most == 1 ? GRAFT_CODE_DEEP : GRAFT_CODE_WHOLE);
    }
    const graft_rule cut = rule_of(code, sizeof code - 1); /* It has no end. */
    graft_code_reader reader = graft_code_open(&cut, 0, 2);
    while (graft_code_read(&reader, &step)) {
    }
    assert_int_equal(reader.end, GRAFT_CODE_FAULT);
}

CHECK_CASE(test_compute)
{
    int64_t result = 0;
    assert_true(graft_code_compute(GRAFT_CODE_SUB, 3, 5, &result));
    assert_int_equal(result, -2);
    assert_true(graft_code_compute(GRAFT_CODE_NOT, 3, 5, &result));
    assert_int_equal(result, 0);
    assert_true(graft_code_compute(GRAFT_CODE_MUL, INT32_MAX, INT32_MAX, &result));
    assert_true(result == (int64_t)INT32_MAX * INT32_MAX);
    assert_false(graft_code_compute(GRAFT_CODE_DIV, 7, 2, &result));
}
