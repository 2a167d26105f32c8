/* suggest.c - see suggest.h. */
#include "verify/lift/suggest.h"

#include "graph/rule/rulecode.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

enum {
    PHRASE_BYTES = 12,
    PHRASES_MOST = 4096,
    POINTS_MOST = 500,
    CANDIDATES_MOST = 6,
    AXES = 4,
    GOOD_LEAST = 3
};

/* A condition as byte code, without its end. */
typedef struct {
    uint8_t code[PHRASE_BYTES];
    uint8_t size;
    uint32_t kept; /* Good points where it is true; 0: it does not exclude every bad one. */
} phrase;

typedef struct {
    graft_env *env;
    const graft_sweeper *sweeper;
    const graft_rule *rule;
    phrase *phrases; /* Simple ones first. */
    uint32_t phrase_count;
    graft_domain domain;
    uint8_t *verdicts; /* graft_sweep_verdict, by point. */
    uint32_t good_count;
} seeker;

/* ---------------------------------------------------------------- vocabulary */

static void add_phrase(seeker *s, const uint8_t *code, uint32_t size)
{
    if (s->phrase_count < PHRASES_MOST && size <= PHRASE_BYTES) {
        phrase *p = &s->phrases[s->phrase_count++];
        memcpy(p->code, code, size);
        p->size = (uint8_t)size;
    }
}

/* A leaf: dim(v, axis) or a slot. */
typedef struct {
    uint8_t code[3];
    uint8_t size;
} leaf;

static leaf dim_leaf(uint32_t v, int32_t axis)
{
    return (leaf){
        {GRAFT_CODE_DIM, (uint8_t)v, (uint8_t)(axis & 0xff)},
        3
    };
}

static leaf slot_leaf(uint32_t slot)
{
    return (leaf){
        {GRAFT_CODE_SLOT, (uint8_t)slot, 0},
        2
    };
}

static void add_relation(seeker *s, leaf a, leaf b, uint8_t code)
{
    uint8_t bytes[PHRASE_BYTES];
    memcpy(bytes, a.code, a.size);
    memcpy(&bytes[a.size], b.code, b.size);
    bytes[a.size + b.size] = code;
    add_phrase(s, bytes, (uint32_t)a.size + b.size + 1);
}

/* leaf = constant. */
static void add_constant(seeker *s, leaf a, int32_t value, uint8_t relation)
{
    uint8_t bytes[PHRASE_BYTES];
    uint32_t bits = (uint32_t)value;
    memcpy(bytes, a.code, a.size);
    uint32_t at = a.size;
    bytes[at++] = GRAFT_CODE_CONST32;
    for (uint32_t i = 0; i < 4; i++) {
        bytes[at++] = (uint8_t)(bits >> (8 * i));
    }
    if (value >= -128 && value <= 127) {
        bytes[a.size] = GRAFT_CODE_CONST8;
        bytes[a.size + 1] = (uint8_t)(bits & 0xffu);
        at = a.size + 2u;
    }
    bytes[at++] = relation;
    add_phrase(s, bytes, at);
}

/* The attribute that first mentions a slot. */
static const graft_attr_info *slot_info(const graft_rule *rule, uint32_t slot)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                return graft_op_attr(node->op, i);
            }
        }
    }
    static const graft_attr_info none = {.name = ""}; /* A valid rule mentions every slot. */
    return &none;
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
            add_constant(s, slot_leaf(slot), value, GRAFT_CODE_EQ);
        }
    }
}

/* An axis of a transpose: those past the rank are 0, and comparing them says nothing clear. */
static bool is_axis(const graft_attr_info *info) { return info->role == GRAFT_ROLE_ORDER; }

static void add_slot_phrases(seeker *s)
{
    for (uint32_t a = 0; a < s->rule->slot_count; a++) {
        const graft_attr_info *info = slot_info(s->rule, a);
        add_slot_constants(s, a);
        if (info->kind == GRAFT_ATTR_FLOAT) {
            uint8_t order[5] = {GRAFT_CODE_CONST8, 0, GRAFT_CODE_SLOT, (uint8_t)a, GRAFT_CODE_FLE};
            add_phrase(s, order, sizeof order); /* 0 <= slot */
            add_constant(s, slot_leaf(a), 0, GRAFT_CODE_FLE);
        }
        for (uint32_t b = 0; b < s->rule->slot_count; b++) {
            if (a == b || slot_info(s->rule, b)->kind != info->kind || is_axis(info) ||
                is_axis(slot_info(s->rule, b))) {
                continue;
            }
            if (a < b) {
                add_relation(s, slot_leaf(a), slot_leaf(b), GRAFT_CODE_EQ);
            }
            add_relation(s, slot_leaf(a), slot_leaf(b),
                         info->kind == GRAFT_ATTR_FLOAT ? GRAFT_CODE_FLE : GRAFT_CODE_LE);
        }
    }
}

/* An axis against those of variable w that are counted from the same end. */
static void add_equal_sizes(seeker *s, uint32_t v, int32_t axis, uint32_t w)
{
    for (int32_t k = axis < 0 ? -AXES : 0; k < (axis < 0 ? 0 : AXES); k++) {
        if (w > v || k > axis) {
            add_relation(s, dim_leaf(v, axis), dim_leaf(w, k), GRAFT_CODE_EQ);
        }
    }
}

static void add_slot_to_size(seeker *s, uint32_t slot, leaf size)
{
    const graft_attr_info *info = slot_info(s->rule, slot);
    if (info->kind == GRAFT_ATTR_DIM) {
        add_relation(s, slot_leaf(slot), size, GRAFT_CODE_EQ);
        add_relation(s, slot_leaf(slot), size, GRAFT_CODE_LE);
        add_relation(s, size, slot_leaf(slot), GRAFT_CODE_LE);
    } else if (info->role == GRAFT_ROLE_GROUPS) {
        add_relation(s, slot_leaf(slot), size, GRAFT_CODE_DIVIDES);
        add_relation(s, slot_leaf(slot), size, GRAFT_CODE_EQ);
    }
}

static void add_size_phrases(seeker *s)
{
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (int32_t i = -AXES; i < AXES; i++) {
            add_constant(s, dim_leaf(v, i), 1, GRAFT_CODE_EQ);
            for (uint32_t w = v; w < s->rule->var_count; w++) {
                add_equal_sizes(s, v, i, w);
            }
            for (uint32_t slot = 0; slot < s->rule->slot_count; slot++) {
                add_slot_to_size(s, slot, dim_leaf(v, i));
            }
        }
    }
}

/* rank = r, rank <= r, r <= rank. */
static void add_rank_phrases(seeker *s)
{
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t rank = 0; rank <= AXES; rank++) {
            const uint8_t var = (uint8_t)v;
            const uint8_t number = (uint8_t)rank;
            const uint8_t equal[5] = {GRAFT_CODE_RANK, var, GRAFT_CODE_CONST8, number,
                                      GRAFT_CODE_EQ};
            const uint8_t most[5] = {GRAFT_CODE_RANK, var, GRAFT_CODE_CONST8, number,
                                     GRAFT_CODE_LE};
            const uint8_t least[5] = {GRAFT_CODE_CONST8, number, GRAFT_CODE_RANK, var,
                                      GRAFT_CODE_LE};
            add_phrase(s, equal, sizeof equal);
            add_phrase(s, most, sizeof most);
            add_phrase(s, least, sizeof least);
        }
    }
}

static void list_phrases(seeker *s)
{
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t w = v + 1; w < s->rule->var_count; w++) {
            const uint8_t same[3] = {GRAFT_CODE_SAME, (uint8_t)v, (uint8_t)w};
            add_phrase(s, same, sizeof same);
        }
    }
    add_slot_phrases(s);
    add_rank_phrases(s);
    add_size_phrases(s);
}

/* ------------------------------------------------------------------- points */

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
        s->good_count += s->verdicts[p] == GRAFT_SWEEP_AGREES ? 1 : 0;
    }
}

static bool phrase_holds(const seeker *s, const graft_rule *alone, const graft_point *point)
{
    const graft_shape *vars[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    int64_t result = 0;
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        vars[v] = &point->vars[v];
        is_const[v] = true;
    }
    return graft_code_run(alone, 0, vars, is_const, point->slots, &result) && result != 0;
}

/* How many good points a phrase keeps; 0 when it lets a bad one through. */
static uint32_t rate_phrase(const seeker *s, graft_rule *alone, const phrase *p)
{
    uint32_t kept = 0;
    memcpy(alone->code, p->code, p->size);
    alone->code[p->size] = GRAFT_CODE_END;
    alone->code_bytes = (uint8_t)(p->size + 1);
    for (uint32_t i = 0; i < s->domain.count; i++) {
        bool holds = phrase_holds(s, alone, &s->domain.points[i]);
        if (holds && s->verdicts[i] == GRAFT_SWEEP_DIFFERS) {
            return 0;
        }
        kept += holds && s->verdicts[i] == GRAFT_SWEEP_AGREES ? 1 : 0;
    }
    return kept >= GOOD_LEAST ? kept : 0;
}

/* ------------------------------------------------------------------ choosing */

/* Adds a phrase to the rule's precondition; false when there is no room. */
static bool add_condition(const graft_rule *rule, const phrase *p, graft_rule *better)
{
    uint32_t old = 0; /* Bytes of the old condition, without its end. */
    while (rule->condition != 255 && rule->code[rule->condition + old] != GRAFT_CODE_END) {
        old = graft_code_next(rule, rule->condition + old) - rule->condition;
    }
    uint32_t size = old + p->size + (old > 0 ? 2 : 1);
    *better = *rule;
    if (rule->code_bytes + size > GRAFT_RULE_MAX_CODE) {
        return false;
    }
    uint8_t *at = &better->code[rule->code_bytes];
    if (old > 0) {
        memcpy(at, &rule->code[rule->condition], old);
        at += old;
    }
    memcpy(at, p->code, p->size);
    at += p->size;
    if (old > 0) {
        *at++ = GRAFT_CODE_AND;
    }
    *at = GRAFT_CODE_END;
    better->condition = rule->code_bytes;
    better->code_bytes = (uint8_t)(rule->code_bytes + size);
    return graft_rule_check(better) == NULL;
}

/* The phrase that keeps most; of equals the simpler, that is the earlier one. Each is offered once.
 */
static phrase *next_phrase(seeker *s)
{
    phrase *best = NULL;
    for (uint32_t i = 0; i < s->phrase_count; i++) {
        phrase *p = &s->phrases[i];
        if (p->kept > 0 && (best == NULL || p->kept > best->kept)) {
            best = p;
        }
    }
    return best;
}

static const char *print_phrase(graft_arena *arena, const graft_rule *rule, const phrase *p)
{
    graft_rule bare = *rule;
    graft_rule alone;
    bare.condition = 255;
    return add_condition(&bare, p, &alone) ? graft_rule_print(arena, &alone).where : NULL;
}

static void find_points(seeker *s)
{
    const graft_domain_options options = {.points = POINTS_MOST,
                                          .attempts = POINTS_MOST * 400,
                                          .enumerate = true,
                                          .seed = 0x73756767u};
    graft_domain_find(s->env, s->env->unit, s->rule, &options, &s->domain);
    judge_points(s);
    s->phrases = GRAFT_NEW(s->env->scratch, phrase, PHRASES_MOST);
    list_phrases(s);
    graft_rule alone = *s->rule;
    for (uint32_t i = 0; i < s->phrase_count; i++) {
        s->phrases[i].kept = rate_phrase(s, &alone, &s->phrases[i]);
    }
}

const char *graft_suggest_condition(graft_env *env, graft_arena *arena,
                                    const graft_sweeper *sweeper, const graft_rule *rule,
                                    const graft_check_options *options, graft_rule *better)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    seeker s = {.env = env, .sweeper = sweeper, .rule = rule};
    const char *text = NULL;
    find_points(&s);
    for (uint32_t tried = 0; tried < CANDIDATES_MOST && text == NULL; tried++) {
        phrase *p = next_phrase(&s);
        graft_rule with;
        if (p == NULL) {
            break;
        }
        p->kept = 0;
        if (!add_condition(rule, p, &with)) {
            continue;
        }
        graft_check *check = GRAFT_NEW(env->scratch, graft_check, 1);
        graft_check_rule(env, sweeper, &with, NULL, options, check);
        if (check->outcome == GRAFT_CHECK_PROVED) {
            text = print_phrase(arena, rule, p);
            if (better != NULL) {
                *better = with;
            }
        }
    }
    graft_arena_release(env->scratch, mark);
    return text;
}
