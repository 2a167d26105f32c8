/* tasofile.c - see tasofile.h. */
#include "graph/rule/tasofile.h"

#include "graph/base/file.h"
#include "graph/base/wire.h"
#include "graph/rule/taso.pb-c.h"

enum { RULES_MOST = 1 << 20 };

typedef Graft__Taso__RuleCollection collection_message;
typedef Graft__Taso__Rule rule_message;
typedef Graft__Taso__Operator operator_message;
typedef Graft__Taso__Tensor tensor_message;
typedef Graft__Taso__Parameter parameter_message;
typedef Graft__Taso__MapOutput output_message;

const char *graft_taso_name(graft_arena *arena, int32_t type)
{
    static const char *const names[] = {
        "input",        "weight",       "any",     "conv2d",      "dropout",      "linear",
        "pool2d_max",   "pool2d_avg",   "relu",    "sigmoid",     "tanh",         "batchnorm",
        "concat",       "split",        "reshape", "transpose",   "ew_add",       "ew_mul",
        "matmul",       "mul",          "enlarge", "merge_gconv", "constant_imm", "constant_iconv",
        "constant_one", "constant_pool"};
    const int32_t count = sizeof names / sizeof names[0];
    return type >= 0 && type < count ? names[type] : graft_arena_printf(arena, "operator %d", type);
}

bool graft_taso_value(const graft_taso_operator *op, graft_taso_key key, int32_t *value)
{
    for (uint32_t i = 0; i < op->parameter_count; i++) {
        if (op->keys[i] == (int32_t)key) {
            *value = op->values[i];
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- reading */

typedef struct {
    graft_env *env;
    const char *file;
    size_t rule;
} reader;

static bool fits(const rule_message *from)
{
    bool all = from->n_srcop <= GRAFT_TASO_OPERATORS && from->n_dstop <= GRAFT_TASO_OPERATORS &&
               from->n_mappedoutput <= GRAFT_TASO_OUTPUTS;
    for (int side = 0; side < 2; side++) {
        size_t count = side == 0 ? from->n_srcop : from->n_dstop;
        operator_message *const *ops = side == 0 ? from->srcop : from->dstop;
        for (size_t i = 0; i < count && all; i++) {
            all = ops[i]->n_input <= GRAFT_TASO_INPUTS && ops[i]->n_para <= GRAFT_TASO_PARAMETERS;
        }
    }
    return all;
}

static graft_status read_operator(const reader *in, const operator_message *from, size_t place,
                                  const char *side, graft_taso_operator *to)
{
    to->type = from->type;
    to->input_count = (uint32_t)from->n_input;
    to->parameter_count = (uint32_t)from->n_para;
    for (size_t i = 0; i < from->n_input; i++) {
        to->inputs[i] = (graft_taso_tensor){from->input[i]->opid, from->input[i]->tsid};
        GRAFT_RETURN_IF(
            to->inputs[i].op >= (int64_t)place || to->inputs[i].output < 0 ||
                to->inputs[i].output > UINT8_MAX,
            GRAFT_FAIL(in->env, GRAFT_BAD_INPUT,
                       "%s: rule %zu: %s %zu reads output %d of operator %d, which does not "
                       "stand before it",
                       in->file, in->rule, side, place, to->inputs[i].output, to->inputs[i].op));
    }
    for (size_t i = 0; i < from->n_para; i++) {
        to->keys[i] = from->para[i]->key;
        to->values[i] = from->para[i]->value;
    }
    return GRAFT_OK;
}

static graft_status read_outputs(const reader *in, const rule_message *from, graft_taso_rule *to)
{
    for (size_t i = 0; i < from->n_mappedoutput; i++) {
        const output_message *m = from->mappedoutput[i];
        to->outputs[i][0] = (graft_taso_tensor){m->srcopid, m->srctsid};
        to->outputs[i][1] = (graft_taso_tensor){m->dstopid, m->dsttsid};
        for (int side = 0; side < 2; side++) {
            const graft_taso_tensor *t = &to->outputs[i][side];
            uint32_t count = side == 0 ? to->source_count : to->target_count;
            if (t->op < 0 || (uint32_t)t->op >= count || t->output < 0 || t->output > UINT8_MAX) {
                return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT,
                                  "%s: rule %zu: mappedOutput %zu names output %d of operator %d, "
                                  "which does not exist",
                                  in->file, in->rule, i, t->output, t->op);
            }
        }
    }
    to->output_count = (uint32_t)from->n_mappedoutput;
    return GRAFT_OK;
}

static graft_status read_rule(const reader *in, const rule_message *from, graft_taso_rule *to)
{
    if (!fits(from)) {
        to->too_large = true;
        return GRAFT_OK;
    }
    to->source_count = (uint32_t)from->n_srcop;
    to->target_count = (uint32_t)from->n_dstop;
    for (size_t i = 0; i < from->n_srcop; i++) {
        GRAFT_PASS(read_operator(in, from->srcop[i], i, "srcOp", &to->source[i]));
    }
    for (size_t i = 0; i < from->n_dstop; i++) {
        GRAFT_PASS(read_operator(in, from->dstop[i], i, "dstOp", &to->target[i]));
    }
    return read_outputs(in, from, to);
}

graft_status graft_taso_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                              graft_taso_rule **rules, uint32_t *count)
{
    GRAFT_SCOPED(env->scratch);
    ProtobufCMessage *message = NULL;
    reader in = {.env = env, .file = bytes.file};
    GRAFT_PASS(graft_wire_decode(env, env->scratch, bytes,
                                 &graft__taso__rule_collection__descriptor, &message));
    const collection_message *collection = (const collection_message *)message;
    if (collection->n_rule > RULES_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: more than %d rules", bytes.file, RULES_MOST);
    }
    graft_taso_rule *read = GRAFT_NEW(arena, graft_taso_rule, collection->n_rule);
    for (in.rule = 0; in.rule < collection->n_rule; in.rule++) {
        GRAFT_PASS(read_rule(&in, collection->rule[in.rule], &read[in.rule]));
    }
    *rules = read;
    *count = (uint32_t)collection->n_rule;
    return GRAFT_OK;
}

graft_status graft_taso_read(graft_env *env, graft_arena *arena, const char *path,
                             graft_taso_rule **rules, uint32_t *count)
{
    graft_bytes bytes = {.file = path};
    uint8_t *data = NULL;
    GRAFT_PASS(graft_file_read(env, env->unit, path, &data, &bytes.size));
    bytes.data = data;
    return graft_taso_parse(env, arena, bytes, rules, count);
}
