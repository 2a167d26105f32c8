/* derivations.c - see derivations.h. */
#include "verify/set/derivations.h"

#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"
#include "verify/set/plot.h"
#include "verify/set/reverse.h"
#include "verify/sweep/cover.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ writing */

static void write_instance(graft_arena *scratch, const graft_rule *rule, const graft_derived_at *at,
                           graft_buffer *text)
{
    size_t size = 0;
    const uint8_t *bytes = graft_cover_pack(scratch, rule, &at->point, 1, &size);
    graft_buffer_printf(text, "at ");
    for (size_t i = 0; i < size; i++) {
        graft_buffer_printf(text, "%02x", bytes[i]);
    }
    for (uint32_t s = 0; s < at->step_count; s++) {
        graft_buffer_printf(text, " %s%016" PRIx64, at->steps[s].reversed ? "~" : "",
                            at->steps[s].id);
    }
    graft_buffer_printf(text, "\n");
}

graft_status graft_derivations_write(graft_env *env, const char *path,
                                     const graft_followers *followers)
{
    GRAFT_SCOPED(env->unit);
    graft_buffer text = {.arena = env->unit};
    graft_buffer_printf(&text,
                        "# Rules that follow from the set, and how (verify/set/derivations.h). "
                        "Written by make rules.\n");
    for (uint32_t i = 0; i < followers->count; i++) {
        const graft_follower *f = &followers->items[i];
        graft_mark inner = graft_arena_mark(env->scratch);
        graft_buffer_printf(&text, "follows %016" PRIx64 " %s\n", f->id,
                            graft_rule_print_line(env->scratch, &f->rule));
        for (uint32_t k = 0; k < f->at_count; k++) {
            write_instance(env->scratch, &f->rule, &f->at[k], &text);
        }
        graft_arena_release(env->scratch, inner);
    }
    return graft_file_write(env, path, text.data, text.size);
}

/* ------------------------------------------------------------------ reading */

enum { FOLLOWERS_FIRST = 64 };

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const char *path;
    uint32_t line;
    graft_followers *followers;
    uint32_t capacity;
} reader;

#define BAD_LINE(in, ...)                                                                          \
    GRAFT_FAIL((in)->env, GRAFT_BAD_INPUT, "%s:%u: %s", (in)->path, (in)->line,                    \
               graft_arena_printf((in)->env->scratch, __VA_ARGS__))

/* An id of 16 digits; `*text` moves behind it. */
static bool read_id(const char **text, uint64_t *id)
{
    char digits[17] = {0};
    char *end = NULL;
    if (strspn(*text, "0123456789abcdef") != 16) {
        return false;
    }
    memcpy(digits, *text, 16);
    *id = strtoull(digits, &end, 16);
    *text += 16;
    return true;
}

static graft_status read_rule(reader *in, const char *text)
{
    graft_status status = GRAFT_OK;
    uint64_t id = 0;
    if (!read_id(&text, &id) || *text != ' ') {
        return BAD_LINE(in, "expected 'follows', an id of 16 digits and a rule");
    }
    in->followers->items =
        graft_arena_grow(in->arena, in->followers->items, in->followers->count, &in->capacity,
                         FOLLOWERS_FIRST, sizeof *in->followers->items);
    graft_follower *f = &in->followers->items[in->followers->count];
    GRAFT_TRY(in->env, graft_rule_parse(in->env, "rule", text + 1, &f->rule), "in %s:%u", in->path,
              in->line);
    f->id = graft_rule_id(&f->rule);
    if (f->id != id) {
        return BAD_LINE(in, "the rule's id is %016" PRIx64 ", not %016" PRIx64, f->id, id);
    }
    in->followers->count++;
done:
    return status;
}

/* Bytes in hexadecimal up to a blank or the end; `*text` moves behind them. */
static uint8_t *read_bytes(graft_arena *arena, const char **text, size_t *size)
{
    size_t digits = strspn(*text, "0123456789abcdef");
    uint8_t *bytes = GRAFT_NEW(arena, uint8_t, digits / 2 + 1);
    for (size_t i = 0; i < digits / 2; i++) {
        const char pair[3] = {(*text)[2 * i], (*text)[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    *text += digits;
    *size = digits / 2;
    return digits % 2 == 0 ? bytes : NULL;
}

static graft_status read_instance(reader *in, const char *text)
{
    graft_follower *f = &in->followers->items[in->followers->count - 1];
    graft_point *point = NULL;
    size_t size = 0;
    if (in->followers->count == 0 || f->at_count == GRAFT_DERIVED_INSTANCES) {
        return BAD_LINE(in, "no rule before this instance, or too many of them");
    }
    graft_derived_at *at = &f->at[f->at_count];
    const uint8_t *bytes = read_bytes(in->env->scratch, &text, &size);
    if (bytes == NULL || !graft_cover_unpack(in->env->scratch, &f->rule, bytes, size, 1, &point)) {
        return BAD_LINE(in, "not a point of the rule above");
    }
    at->point = *point;
    while (*text == ' ' && at->step_count < GRAFT_DERIVATION_STEPS) {
        graft_derived_step *step = &at->steps[at->step_count++];
        text++;
        step->reversed = *text == '~';
        text += step->reversed ? 1 : 0;
        if (!read_id(&text, &step->id)) {
            return BAD_LINE(in, "expected the id of a rule: 16 digits");
        }
    }
    if (*text != 0 || at->step_count == 0) {
        return BAD_LINE(in, "expected one to %d ids", GRAFT_DERIVATION_STEPS);
    }
    f->at_count++;
    return GRAFT_OK;
}

static graft_status read_line(reader *in, const char *line)
{
    static const char follows[] = "follows ";
    static const char at[] = "at ";
    if (line[0] == '#' || line[0] == 0) {
        return GRAFT_OK;
    }
    if (strncmp(line, follows, sizeof follows - 1) == 0) {
        return read_rule(in, line + sizeof follows - 1);
    }
    if (strncmp(line, at, sizeof at - 1) == 0) {
        return read_instance(in, line + sizeof at - 1);
    }
    return BAD_LINE(in, "expected 'follows' or 'at'");
}

graft_status graft_derivations_read(graft_env *env, graft_arena *arena, const char *path,
                                    graft_followers *followers)
{
    GRAFT_SCOPED(env->scratch);
    graft_followers read = {NULL, 0};
    reader in = {.env = env, .arena = arena, .path = path, .line = 1, .followers = &read};
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, arena, path, &data, &size));
    for (char *line = (char *)data; line < (char *)data + size; in.line++) {
        char *end = line + strcspn(line, "\n");
        *end = 0;
        GRAFT_PASS(read_line(&in, line));
        line = end + 1;
    }
    *followers = read;
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- replaying */

static const char *gather_rules(graft_env *env, const graft_ruleset *set,
                                const graft_derived_at *at, graft_rule *rules)
{
    for (uint32_t s = 0; s < at->step_count; s++) {
        const graft_rule_entry *entry = graft_ruleset_find(set, at->steps[s].id);
        if (entry == NULL) {
            return graft_arena_printf(env->scratch, "rule %016" PRIx64 " is not in the set",
                                      at->steps[s].id);
        }
        if (!at->steps[s].reversed) {
            rules[s] = entry->rule;
        } else if (graft_rule_reverse(&entry->rule, &rules[s]) != NULL) {
            return graft_arena_printf(env->scratch, "rule %016" PRIx64 " cannot be reversed",
                                      at->steps[s].id);
        }
    }
    return NULL;
}

static const char *replay_at(graft_env *env, const graft_ruleset *set, const graft_rule *rule,
                             const graft_derived_at *at)
{
    graft_instance instance;
    graft_rule *rules = GRAFT_NEW(env->scratch, graft_rule, GRAFT_DERIVATION_STEPS);
    graft_plot plots[GRAFT_DERIVATION_STEPS + 1];
    const char *trouble = gather_rules(env, set, at, rules);
    if (trouble != NULL) {
        return trouble;
    }
    for (uint32_t s = 0; s <= at->step_count; s++) {
        plots[s] = graft_plot_new(env->scratch);
    }
    if (graft_instance_build(&instance, rule, &at->point) != GRAFT_FIT_OK ||
        !graft_plot_build(&plots[0], &instance, &instance.target)) {
        return "the rule does not apply at its point";
    }
    const uint64_t wanted = graft_plot_hash(&plots[0]);
    if (wanted == 0 || !graft_plot_build(&plots[0], &instance, &instance.source)) {
        return "the rule's sides are no graphs at its point";
    }
    return graft_plot_leads(plots, rules, at->step_count, wanted)
               ? NULL
               : "the steps do not lead from its source to its target";
}

const char *graft_derivations_replay(graft_env *env, const graft_ruleset *set,
                                     const graft_follower *follower)
{
    const char *trouble = follower->at_count == 0 ? "no instance" : NULL;
    for (uint32_t i = 0; i < follower->at_count && trouble == NULL; i++) {
        trouble = replay_at(env, set, &follower->rule, &follower->at[i]);
    }
    return trouble;
}

void graft_derivations_check(graft_env *env, const graft_ruleset *set,
                             const graft_followers *followers, uint32_t most, uint64_t seed,
                             graft_derivations_report *report)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t *order = GRAFT_NEW(env->scratch, uint32_t, followers->count + 1);
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    *report = (graft_derivations_report){.total = followers->count};
    for (uint32_t i = 0; i < followers->count; i++) {
        order[i] = i;
    }
    for (uint32_t i = 0; i < followers->count && i < most; i++) {
        uint32_t pick = i + graft_rng_below(&rng, followers->count - i);
        uint32_t number = order[pick];
        order[pick] = order[i];
        graft_mark inner = graft_arena_mark(env->scratch);
        const char *trouble = graft_derivations_replay(env, set, &followers->items[number]);
        report->replayed++;
        if (trouble != NULL) {
            report->failed++;
            graft_log(env, 0, "%s: %s",
                      graft_rule_print_line(env->scratch, &followers->items[number].rule), trouble);
        }
        graft_arena_release(env->scratch, inner);
    }
}
