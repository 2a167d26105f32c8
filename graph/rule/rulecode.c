/* rulecode.c - see rulecode.h. */
#include "graph/rule/rulecode.h"

graft_code_step graft_code_at(const graft_rule *rule, uint32_t at)
{
    const uint8_t *b = &rule->code[at + 1];
    graft_code_step step = {.at = at, .code = rule->code[at]};
    bool leaf = step.code >= GRAFT_CODE_CONST8 && step.code <= GRAFT_CODE_SAME;
    step.takes = leaf || step.code == GRAFT_CODE_END ? 0 : step.code == GRAFT_CODE_NOT ? 1 : 2;
    if (step.code == GRAFT_CODE_CONST8) {
        step.number = (int8_t)b[0];
    } else if (step.code == GRAFT_CODE_CONST32) {
        step.number = (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                                (uint32_t)b[3] << 24);
    } else if (leaf) {
        step.index = b[0];
    }
    if (step.code == GRAFT_CODE_DIM) {
        step.number = (int8_t)b[1];
    } else if (step.code == GRAFT_CODE_SAME) {
        step.other = b[1];
    }
    return step;
}

uint32_t graft_code_next(const graft_rule *rule, uint32_t at)
{
    return at + 1 + graft_code_operand_bytes(rule->code[at]);
}

graft_code_reader graft_code_open(const graft_rule *rule, uint32_t offset, uint32_t depth_most)
{
    return (graft_code_reader){.rule = rule, .next = offset, .depth_most = depth_most};
}

bool graft_code_read(graft_code_reader *reader, graft_code_step *step)
{
    if (reader->end != GRAFT_CODE_GOES_ON) {
        return false;
    }
    if (reader->next >= reader->rule->code_bytes) {
        reader->end = GRAFT_CODE_FAULT;
        return false;
    }
    *step = graft_code_at(reader->rule, reader->next);
    if (step->code == GRAFT_CODE_END) {
        reader->end = reader->depth == 1 ? GRAFT_CODE_WHOLE : GRAFT_CODE_FAULT;
    } else if (reader->depth < step->takes) {
        reader->end = GRAFT_CODE_FAULT;
    } else if (step->takes == 0 && reader->depth == reader->depth_most) {
        reader->end = GRAFT_CODE_DEEP;
    }
    if (reader->end != GRAFT_CODE_GOES_ON) {
        return false;
    }
    reader->next = graft_code_next(reader->rule, reader->next);
    step->place = reader->depth - step->takes;
    reader->depth = step->place + 1;
    return true;
}

bool graft_code_compute(uint32_t code, int32_t a, int32_t b, int64_t *result)
{
    const int32_t numbers[2] = {a, b};
    graft_rule alone = {
        .code = {GRAFT_CODE_SLOT, 0, GRAFT_CODE_SLOT, 1}
    };
    alone.code_bytes = code == GRAFT_CODE_NOT ? 2 : 4;
    alone.code[alone.code_bytes++] = (uint8_t)code;
    alone.code[alone.code_bytes++] = GRAFT_CODE_END;
    return graft_code_run(&alone, 0, NULL, NULL, numbers, result);
}
