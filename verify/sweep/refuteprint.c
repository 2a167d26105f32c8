/* refuteprint.c - a refutation as text and as JSON. See refute.h. */
#include "verify/sweep/refute.h"

#include "graph/rule/ruleprint.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The shortest decimal that reads back to the same binary32; `quoted`: what is no number, in
 * quotes. */
static void print_float(graft_buffer *out, float value, bool quoted)
{
    char text[32];
    if (!isfinite(value)) {
        const char *name = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
        graft_buffer_printf(out, quoted ? "\"%s\"" : "%s", name);
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (!(strtof(text, NULL) < value) && !(strtof(text, NULL) > value)) {
            break;
        }
    }
    graft_buffer_printf(out, "%s", text);
}

static void print_values(graft_buffer *out, const graft_refutation *r, uint32_t v)
{
    uint64_t count = graft_shape_elements(&r->point.vars[v]);
    graft_buffer_printf(out, "[");
    for (uint64_t i = 0; i < count; i++) {
        graft_buffer_printf(out, i > 0 ? ", " : "");
        print_float(out, r->values[v][i], true);
    }
    graft_buffer_printf(out, "]");
}

static void print_shape(graft_buffer *out, const graft_shape *shape)
{
    graft_buffer_printf(out, "[");
    for (uint32_t i = 0; i < shape->rank; i++) {
        graft_buffer_printf(out, "%s%d", i > 0 ? ", " : "", shape->dims[i]);
    }
    graft_buffer_printf(out, "]");
}

/* The slot's value as its attribute is written. */
static const char *slot_value(graft_arena *arena, const graft_rule *rule, uint32_t slot,
                              int32_t value)
{
    const graft_term term = {value, GRAFT_TERM_CONST};
    return graft_rule_print_term(arena, rule, &term, graft_slot_attr(rule, slot)->kind);
}

void graft_refutation_print(graft_buffer *out, const graft_rule *rule, const graft_refutation *r)
{
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(out, "    %c: shape ", 'a' + (int)v);
        print_shape(out, &r->point.vars[v]);
        graft_buffer_printf(out, " = ");
        print_values(out, r, v);
        graft_buffer_printf(out, "\n");
    }
    for (uint32_t s = 0; s < rule->slot_count; s++) {
        graft_buffer_printf(out, "    %s = %s\n", graft_rule_print_slot(out->arena, rule, s),
                            slot_value(out->arena, rule, s, r->point.slots[s]));
    }
    graft_buffer_printf(out, "    output %u, element %" PRIu64 ": source ", r->output, r->element);
    print_float(out, r->source, false);
    graft_buffer_printf(out, ", target ");
    print_float(out, r->target, false);
    graft_buffer_printf(out, "%s\n", r->replayed ? "" : " (in exact arithmetic, rounded)");
}

void graft_refutation_json(graft_buffer *out, const graft_rule *rule, const graft_refutation *r)
{
    graft_buffer_printf(out, "{\"shapes\": {");
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(out, "%s\"%c\": ", v > 0 ? ", " : "", 'a' + (int)v);
        print_shape(out, &r->point.vars[v]);
    }
    graft_buffer_printf(out, "}, \"attributes\": {");
    for (uint32_t s = 0; s < rule->slot_count; s++) {
        graft_buffer_printf(out, "%s\"%s\": \"%s\"", s > 0 ? ", " : "",
                            graft_rule_print_slot(out->arena, rule, s),
                            slot_value(out->arena, rule, s, r->point.slots[s]));
    }
    graft_buffer_printf(out, "}, \"inputs\": {");
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(out, "%s\"%c\": ", v > 0 ? ", " : "", 'a' + (int)v);
        print_values(out, r, v);
    }
    graft_buffer_printf(out, "}, \"output\": %u, \"element\": %" PRIu64 ", \"source\": ", r->output,
                        r->element);
    print_float(out, r->source, true);
    graft_buffer_printf(out, ", \"target\": ");
    print_float(out, r->target, true);
    graft_buffer_printf(out, ", \"replayed\": %s}", r->replayed ? "true" : "false");
}
