/* narrow.c - see narrow.h. */
#include "verify/narrow.h"

#include "graph/file.h"
#include "graph/ruleparse.h"
#include "graph/ruleprint.h"

static char variable_name(uint32_t v) { return (char)('a' + v); }

/* "rank(a) = 2 and same_shape(a, b)": what the variables were like. */
static const char *print_shapes(graft_arena *arena, const graft_rule *rule,
                                const graft_point *origin)
{
    graft_buffer text = {.arena = arena};
    for (uint32_t v = 0; v < rule->var_count; v++) {
        uint32_t first = 0;
        while (!graft_shape_equal(&origin->vars[first], &origin->vars[v])) {
            first++;
        }
        const char *joint = v == 0 ? "" : " and ";
        if (first < v) {
            graft_buffer_printf(&text, "%ssame_shape(%c, %c)", joint, variable_name(first),
                                variable_name(v));
        } else {
            graft_buffer_printf(&text, "%srank(%c) = %u", joint, variable_name(v),
                                (unsigned)origin->vars[v].rank);
        }
    }
    return text.data;
}

bool graft_rule_narrow(graft_env *env, const graft_rule *rule, const graft_point *origin,
                       graft_rule *narrowed)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_rule made;
    graft_rule_text text = graft_rule_print(env->scratch, rule);
    bool has_condition = text.where[0] != 0;
    const graft_rule_part source = {"source", text.source};
    const graft_rule_part target = {"target", text.target};
    const graft_rule_part where[2] = {
        {"shapes", print_shapes(env->scratch, rule, origin)},
        {"precondition", text.where                         },
    };
    bool valid =
        rule->var_count > 0 && graft_rule_parse_parts(env, &source, &target, where,
                                                      has_condition ? 2 : 1, &made) == GRAFT_OK;
    if (valid) {
        *narrowed = made;
    } else {
        graft_env_clear(env);
    }
    graft_arena_release(env->scratch, mark);
    return valid;
}
