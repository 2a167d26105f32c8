/* narrow.c - see narrow.h. */
#include "verify/narrow.h"

#include "graph/file.h"
#include "graph/ruleparse.h"
#include "graph/ruleprint.h"

#include <string.h>

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

/* A rule with the sides of another and the precondition `where` ("": none). */
static bool build_rule(graft_env *env, const graft_rule_text *text, const char *where,
                       graft_rule *rule)
{
    graft_rule made;
    const char *joint = where[0] == 0 ? "" : " where ";
    const char *line =
        graft_arena_printf(env->scratch, "%s = %s%s%s", text->source, text->target, joint, where);
    if (graft_rule_parse(env, "rule", line, &made) != GRAFT_OK) {
        graft_env_clear(env);
        return false;
    }
    *rule = made;
    return true;
}

bool graft_rule_narrow(graft_env *env, const graft_rule *rule, const graft_point *origin,
                       graft_rule *narrowed)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, rule);
    const char *joint = text.where[0] == 0 ? "" : " and ";
    bool valid = rule->var_count > 0;
    if (valid) {
        const char *shapes = print_shapes(env->scratch, rule, origin);
        valid = build_rule(env, &text,
                           graft_arena_printf(env->scratch, "%s%s%s", shapes, joint, text.where),
                           narrowed);
    }
    graft_arena_release(env->scratch, mark);
    return valid;
}

/* Where the part of a precondition that begins at `text` ends. */
static const char *part_end(const char *text)
{
    uint32_t depth = 0;
    for (; *text != 0 && (depth > 0 || strncmp(text, " and ", 5) != 0); text++) {
        depth += *text == '(' ? 1 : 0;
        depth -= *text == ')' ? 1 : 0;
    }
    return text;
}

bool graft_rule_without(graft_env *env, const graft_rule *rule, uint32_t part, graft_rule *weaker)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, rule);
    graft_buffer where = {.arena = env->scratch};
    uint32_t count = 0;
    graft_buffer_printf(&where, "%s", "");
    for (const char *at = text.where; *at != 0; count++) {
        const char *end = part_end(at);
        if (count != part) {
            graft_buffer_printf(&where, "%s%.*s", where.data[0] == 0 ? "" : " and ",
                                (int)(end - at), at);
        }
        at = *end == 0 ? end : end + 5;
    }
    bool valid = part < count && build_rule(env, &text, where.data, weaker);
    graft_arena_release(env->scratch, mark);
    return valid;
}
