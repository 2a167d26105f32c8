/* suggest.c - see suggest.h. */
#include "verify/lift/suggest.h"

#include "graph/rule/ruleprint.h"

#include <string.h>

enum { PHRASES_MOST = 4096, POINTS_MOST = 500, CANDIDATES_MOST = 6, AXES = 4, GOOD_LEAST = 3 };

/* A condition that is false at every point where the sides differ. */
typedef struct {
    const char *text;
    uint32_t kept; /* Points where they agree and it is true. */
} phrase;

typedef struct {
    graft_env *env;
    const graft_sweeper *sweeper;
    const graft_rule *rule;
    graft_rule_text text; /* Of the rule. */
    phrase *phrases;      /* Simple ones first. */
    uint32_t phrase_count;
    graft_domain domain;
    uint8_t *verdicts; /* graft_sweep_verdict, by point. */
} seeker;

/* -------------------------------------------------------------------- phrases */

/* The rule with a precondition; false when that is no valid rule. */
static bool put_condition(const seeker *s, const char *where, graft_rule *rule)
{
    return graft_rule_restate(s->env, s->text.source, s->text.target, where, rule);
}

/* How many good points a rule with one phrase for a precondition keeps; 0 when it keeps a bad one,
 * too. */
static uint32_t rate_phrase(const seeker *s, const graft_rule *alone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->domain.count; i++) {
        int64_t value = 0;
        bool holds = graft_point_compute(alone, alone->condition, &s->domain.points[i], &value) &&
                     value != 0;
        if (holds && s->verdicts[i] == GRAFT_SWEEP_DIFFERS) {
            return 0;
        }
        kept += holds && s->verdicts[i] == GRAFT_SWEEP_AGREES ? 1 : 0;
    }
    return kept >= GOOD_LEAST ? kept : 0;
}

/* Keeps a phrase if it is of use. */
static void add_phrase(seeker *s, const char *text)
{
    graft_rule alone;
    uint32_t kept = put_condition(s, text, &alone) ? rate_phrase(s, &alone) : 0;
    if (kept > 0 && s->phrase_count < PHRASES_MOST) {
        s->phrases[s->phrase_count++] = (phrase){text, kept};
    }
}

#define ADD_PHRASE(s, ...) add_phrase((s), graft_arena_printf((s)->env->unit, __VA_ARGS__))

/* ---------------------------------------------------------------- vocabulary */

static const char *slot_of(seeker *s, uint32_t slot)
{
    return graft_rule_print_slot(s->env->unit, s->rule, slot);
}

/* slot = value for the values it has where the sides agree. */
static void add_slot_constants(seeker *s, uint32_t slot)
{
    enum { VALUES_MOST = 8 };
    int32_t values[VALUES_MOST];
    uint32_t count = 0;
    for (uint32_t p = 0; p < s->domain.count; p++) {
        int32_t value = s->domain.points[p].slots[slot];
        bool known = s->verdicts[p] != GRAFT_SWEEP_AGREES || count == VALUES_MOST;
        for (uint32_t i = 0; i < count; i++) {
            known = known || values[i] == value;
        }
        if (!known) {
            values[count++] = value;
            ADD_PHRASE(s, "%s = %d", slot_of(s, slot), value);
        }
    }
}

/* An axis of a transpose: those past the rank are 0, and comparing them says nothing clear. */
static bool is_axis(const graft_attr_info *info) { return info->role == GRAFT_ROLE_ORDER; }

static void add_slot_phrases(seeker *s)
{
    for (uint32_t a = 0; a < s->rule->slot_count; a++) {
        const graft_attr_info *info = graft_slot_attr(s->rule, a);
        bool real = info->kind == GRAFT_ATTR_FLOAT;
        add_slot_constants(s, a);
        if (real) {
            ADD_PHRASE(s, "fle(0, %s)", slot_of(s, a));
            ADD_PHRASE(s, "fle(%s, 0)", slot_of(s, a));
        }
        for (uint32_t b = 0; b < s->rule->slot_count; b++) {
            const graft_attr_info *other = graft_slot_attr(s->rule, b);
            if (a == b || other->kind != info->kind || is_axis(info) || is_axis(other)) {
                continue;
            }
            if (a < b) {
                ADD_PHRASE(s, "%s = %s", slot_of(s, a), slot_of(s, b));
            }
            ADD_PHRASE(s, real ? "fle(%s, %s)" : "%s <= %s", slot_of(s, a), slot_of(s, b));
        }
    }
}

/* An axis against those of variable w that are counted from the same end. */
static void add_equal_sizes(seeker *s, uint32_t v, int32_t axis, uint32_t w)
{
    for (int32_t k = axis < 0 ? -AXES : 0; k < (axis < 0 ? 0 : AXES); k++) {
        if (w > v || k > axis) {
            ADD_PHRASE(s, "dim(%c,%d) = dim(%c,%d)", 'a' + (int)v, axis, 'a' + (int)w, k);
        }
    }
}

static void add_slot_to_size(seeker *s, uint32_t slot, const char *size)
{
    const graft_attr_info *info = graft_slot_attr(s->rule, slot);
    if (info->kind == GRAFT_ATTR_DIM) {
        ADD_PHRASE(s, "%s = %s", slot_of(s, slot), size);
        ADD_PHRASE(s, "%s <= %s", slot_of(s, slot), size);
        ADD_PHRASE(s, "%s <= %s", size, slot_of(s, slot));
    } else if (info->role == GRAFT_ROLE_GROUPS) {
        ADD_PHRASE(s, "divides(%s, %s)", slot_of(s, slot), size);
        ADD_PHRASE(s, "%s = %s", slot_of(s, slot), size);
    }
}

static void add_size_phrases(seeker *s)
{
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (int32_t i = -AXES; i < AXES; i++) {
            const char *size = graft_arena_printf(s->env->unit, "dim(%c,%d)", 'a' + (int)v, i);
            ADD_PHRASE(s, "%s = 1", size);
            for (uint32_t w = v; w < s->rule->var_count; w++) {
                add_equal_sizes(s, v, i, w);
            }
            for (uint32_t slot = 0; slot < s->rule->slot_count; slot++) {
                add_slot_to_size(s, slot, size);
            }
        }
    }
}

static void add_rank_phrases(seeker *s)
{
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (int32_t r = 0; r <= AXES; r++) {
            ADD_PHRASE(s, "rank(%c) = %d", 'a' + (int)v, r);
            ADD_PHRASE(s, "rank(%c) <= %d", 'a' + (int)v, r);
            ADD_PHRASE(s, "%d <= rank(%c)", r, 'a' + (int)v);
        }
    }
}

static void list_phrases(seeker *s)
{
    s->phrases = GRAFT_NEW(s->env->scratch, phrase, PHRASES_MOST);
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t w = v + 1; w < s->rule->var_count; w++) {
            ADD_PHRASE(s, "same_shape(%c, %c)", 'a' + (int)v, 'a' + (int)w);
        }
    }
    add_slot_phrases(s);
    add_rank_phrases(s);
    add_size_phrases(s);
}

/* ------------------------------------------------------------------ choosing */

static void judge_points(seeker *s)
{
    s->verdicts = GRAFT_NEW(s->env->scratch, uint8_t, s->domain.count);
    for (uint32_t p = 0; p < s->domain.count; p++) {
        graft_instance instance;
        s->verdicts[p] = GRAFT_SWEEP_UNDECIDED;
        if (graft_instance_build(&instance, s->rule, &s->domain.points[p]) == GRAFT_FIT_OK) {
            s->verdicts[p] =
                (uint8_t)graft_sweep_instance(s->env, s->sweeper, &instance, 3, p, NULL);
        }
    }
}

/* The phrase that keeps most; of equals the simpler, that is the earlier one. Each is offered once.
 */
static const char *next_phrase(seeker *s)
{
    phrase *best = NULL;
    for (uint32_t i = 0; i < s->phrase_count; i++) {
        phrase *p = &s->phrases[i];
        if (p->kept > 0 && (best == NULL || p->kept > best->kept)) {
            best = p;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    best->kept = 0;
    return best->text;
}

const char *graft_suggest_condition(graft_env *env, const graft_sweeper *sweeper,
                                    const graft_rule *rule, const graft_check_options *options)
{
    GRAFT_SCOPED(env->scratch);
    seeker s = {.env = env, .sweeper = sweeper, .rule = rule};
    const char *found = NULL;
    const graft_domain_options find = {.points = POINTS_MOST,
                                       .attempts = POINTS_MOST * 400,
                                       .enumerate = true,
                                       .seed = 0x73756767u};
    s.text = graft_rule_print(env->unit, rule);
    s.domain = graft_domain_find(env, env->unit, rule, &find);
    judge_points(&s);
    list_phrases(&s);
    const char *old = s.text.where;
    for (uint32_t tried = 0; tried < CANDIDATES_MOST && found == NULL; tried++) {
        graft_rule with;
        const char *next = next_phrase(&s);
        if (next == NULL) {
            break;
        }
        const char *both =
            old[0] == '\0' ? next : graft_arena_printf(env->unit, "(%s) and %s", old, next);
        if (put_condition(&s, both, &with)) {
            graft_check *check = GRAFT_NEW(env->scratch, graft_check, 1);
            graft_check_rule(&(graft_checking){env, sweeper, options, &with, NULL}, check);
            found = check->outcome == GRAFT_CHECK_PROVED ? next : NULL;
        }
    }
    return found;
}
