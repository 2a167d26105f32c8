/* cases.c - see cases.h. */
#include "tests/support/cases.h"

#include "graph/meaning/algebra_float.h"
#include "tests/support/check.h"
#include "tests/support/proposal.h"

#include <string.h>

bool check_case_infer(check_case *drawn)
{
    const graft_op_info *info = graft_op(drawn->op);
    bool small = graft_infer_shapes(drawn->op, drawn->attrs, drawn->in, drawn->out) == GRAFT_OK;
    for (uint32_t i = 0; small && i < info->input_count; i++) {
        small = graft_shape_elements(&drawn->in[i]) <= CHECK_CASE_ELEMENTS;
    }
    for (uint32_t o = 0; small && o < info->output_count; o++) {
        small = graft_shape_elements(&drawn->out[o]) <= CHECK_CASE_ELEMENTS;
    }
    return small;
}

void check_case_draw(graft_rng *rng, uint32_t op, check_case *drawn)
{
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        proposal p = {.op = op};
        proposal_draw(rng, &p);
        *drawn = (check_case){.op = op};
        memcpy(drawn->attrs, p.attrs, sizeof drawn->attrs);
        memcpy(drawn->in, p.in, sizeof drawn->in);
        if (check_case_infer(drawn)) {
            return;
        }
    }
    check_case_print(drawn);
    fail_msg("no case of %s fits; the last: %s", graft_op(op)->name,
             graft_infer_explain(op, drawn->attrs, drawn->in));
}

bool check_case_is_lowered(uint32_t op)
{
    return op == GRAFT_OP_quantise || op == GRAFT_OP_dequantise || op == GRAFT_OP_less ||
           op == GRAFT_OP_equal_to || op == GRAFT_OP_logical_not || op == GRAFT_OP_select;
}

graft_call check_case_call(const check_case *drawn)
{
    return (graft_call){drawn->attrs, drawn->in, drawn->out};
}

static void print_shape(const char *label, const graft_shape *shape)
{
    print_message(" %s(", label);
    for (uint32_t i = 0; i < shape->rank; i++) {
        print_message("%s%d", i > 0 ? "," : "", shape->dims[i]);
    }
    print_message(")");
}

void check_case_print(const check_case *drawn)
{
    const graft_op_info *info = graft_op(drawn->op);
    print_message("# %s", info->name);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        print_message(" %s=%d", graft_op_attr(drawn->op, i)->name, drawn->attrs[i]);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        print_shape("in", &drawn->in[i]);
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        print_shape("out", &drawn->out[i]);
    }
    print_message("\n");
}

/* ------------------------------------------------------------------ running */

void check_case_run_field(graft_field_state *k, const check_case *c, const check_fields *in,
                          check_fields *out)
{
    const graft_field *from[GRAFT_MAX_INPUTS];
    graft_field *to[GRAFT_MAX_OUTPUTS];
    const graft_call call = check_case_call(c);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        from[i] = in[i];
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        to[o] = memset(out[o], 0xff, sizeof out[o]);
    }
    graft_field_run(k, c->op, &call, from, to);
}

void check_case_run_float(const check_case *c, const check_floats *in, check_floats *out)
{
    const float *from[GRAFT_MAX_INPUTS];
    float *to[GRAFT_MAX_OUTPUTS];
    const graft_call call = check_case_call(c);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        from[i] = in[i];
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        to[o] = memset(out[o], 0xff, sizeof out[o]);
    }
    graft_float_run(c->op, &call, from, to);
}

static const int32_t no_attrs[GRAFT_MAX_ATTRS];
static const graft_shape scalars[2] = {{.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};

graft_field check_scalar_field(graft_field_state *k, uint32_t op, graft_field a, graft_field b)
{
    const graft_call call = {no_attrs, scalars, scalars};
    const graft_field *const in[] = {&a, &b};
    graft_field result = {0, 0.0};
    graft_field *const out[] = {&result};
    graft_field_run(k, op, &call, in, out);
    return result;
}

float check_scalar_float(uint32_t op, const int32_t *attrs, float a, float b)
{
    const graft_call call = {attrs == NULL ? no_attrs : attrs, scalars, scalars};
    const float *const in[] = {&a, &b};
    float result = 0.0F;
    float *const out[] = {&result};
    graft_float_run(op, &call, in, out);
    return result;
}
