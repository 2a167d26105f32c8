/* taso_write.c - see taso_write.h. */
#include "tests/support/taso_write.h"

#include "graph/base/wire.h"
#include "graph/rule/taso.pb-c.h"

typedef Graft__Taso__RuleCollection collection_message;
typedef Graft__Taso__Rule rule_message;
typedef Graft__Taso__Operator operator_message;
typedef Graft__Taso__Tensor tensor_message;
typedef Graft__Taso__Parameter parameter_message;
typedef Graft__Taso__MapOutput output_message;

static operator_message *write_operator(graft_arena *arena, const graft_taso_operator *from)
{
    operator_message *to = GRAFT_NEW(arena, operator_message, 1);
    graft__taso__operator__init(to);
    to->has_type = 1;
    to->type = from->type;
    to->n_input = from->input_count;
    to->input = GRAFT_NEW(arena, tensor_message *, from->input_count);
    for (uint32_t i = 0; i < from->input_count; i++) {
        tensor_message *t = GRAFT_NEW(arena, tensor_message, 1);
        graft__taso__tensor__init(t);
        t->has_opid = 1;
        t->opid = from->inputs[i].op;
        t->has_tsid = 1;
        t->tsid = from->inputs[i].output;
        to->input[i] = t;
    }
    to->n_para = from->parameter_count;
    to->para = GRAFT_NEW(arena, parameter_message *, from->parameter_count);
    for (uint32_t i = 0; i < from->parameter_count; i++) {
        parameter_message *p = GRAFT_NEW(arena, parameter_message, 1);
        graft__taso__parameter__init(p);
        p->has_key = 1;
        p->key = from->keys[i];
        p->has_value = 1;
        p->value = from->values[i];
        to->para[i] = p;
    }
    return to;
}

static output_message *write_output(graft_arena *arena, const graft_taso_tensor pair[2])
{
    output_message *to = GRAFT_NEW(arena, output_message, 1);
    graft__taso__map_output__init(to);
    to->has_srcopid = 1;
    to->srcopid = pair[0].op;
    to->has_srctsid = 1;
    to->srctsid = pair[0].output;
    to->has_dstopid = 1;
    to->dstopid = pair[1].op;
    to->has_dsttsid = 1;
    to->dsttsid = pair[1].output;
    return to;
}

static rule_message *write_rule(graft_arena *arena, const graft_taso_rule *from)
{
    rule_message *to = GRAFT_NEW(arena, rule_message, 1);
    graft__taso__rule__init(to);
    to->n_srcop = from->source_count;
    to->srcop = GRAFT_NEW(arena, operator_message *, from->source_count);
    for (uint32_t i = 0; i < from->source_count; i++) {
        to->srcop[i] = write_operator(arena, &from->source[i]);
    }
    to->n_dstop = from->target_count;
    to->dstop = GRAFT_NEW(arena, operator_message *, from->target_count);
    for (uint32_t i = 0; i < from->target_count; i++) {
        to->dstop[i] = write_operator(arena, &from->target[i]);
    }
    to->n_mappedoutput = from->output_count;
    to->mappedoutput = GRAFT_NEW(arena, output_message *, from->output_count);
    for (uint32_t i = 0; i < from->output_count; i++) {
        to->mappedoutput[i] = write_output(arena, from->outputs[i]);
    }
    return to;
}

void taso_write(graft_arena *arena, const graft_taso_rule *rules, uint32_t count, uint8_t **data,
                size_t *size)
{
    collection_message message;
    graft__taso__rule_collection__init(&message);
    message.n_rule = count;
    message.rule = GRAFT_NEW(arena, rule_message *, count);
    for (uint32_t i = 0; i < count; i++) {
        message.rule[i] = write_rule(arena, &rules[i]);
    }
    graft_wire_encode(arena, &message.base, data, size);
}
