/* explain.c - one rule in words: what it does, where it holds, which way it pays. See listing.h. */
#include "graph/base/json.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/rulewords.h"
#include "verify/command/listing.h"
#include "verify/set/price.h"
#include "verify/set/reverse.h"
#include "verify/sweep/cover.h"

#include <inttypes.h>

enum { POINTS_READ = 64 };

/* What is found out about an entry before anything is said. */
typedef struct {
    graft_env *env;
    const graft_ruleset *set;
    const graft_rule_entry *entry;
    graft_point *points;
    uint32_t point_count; /* 0: the certificate's points cannot be read. */
    uint32_t weights;
    const graft_point *largest; /* Of them; NULL: none. */
    graft_price before;         /* There. */
    graft_price after;
    const char *reverse; /* A sentence. */
} account;

/* Prices the instance that is the most work. */
static void price_largest(account *a)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < a->point_count; i++) {
        graft_instance instance;
        bool fits = graft_instance_build(&instance, &a->entry->rule, &a->points[i]) == GRAFT_FIT_OK;
        uint64_t work = fits ? graft_instance_work(&instance) : 0;
        if (fits && (a->largest == NULL || work > most)) {
            most = work;
            a->largest = &a->points[i];
            a->before = graft_price_side(&instance, &instance.source, a->weights);
            a->after = graft_price_side(&instance, &instance.target, a->weights);
        }
    }
}

/* What is known of the opposite direction. */
static const char *describe_reverse(const account *a)
{
    graft_rule reversed;
    const char *why = graft_rule_reverse(&a->entry->rule, &reversed);
    graft_arena *arena = a->env->unit;
    if (why != NULL) {
        return graft_arena_printf(arena, "The reverse cannot be matched: %s.", why);
    }
    if (graft_rule_gain(&reversed) == INT32_MIN) {
        return "The reverse would match nothing: its outputs depend on no input.";
    }
    const char *name = graft_rule_find_reverse(a->env, a->set, a->entry, &reversed);
    if (name != NULL) {
        return graft_arena_printf(arena, "The reverse is in the set, as (a case of) %s.", name);
    }
    return graft_arena_printf(
        arena, "The reverse is not in the set: %s (graft rules --both FILE adds it).",
        graft_rule_print_line(arena, &reversed));
}

static account make_account(graft_env *env, const graft_ruleset *set, const graft_rule_entry *entry)
{
    account a = {.env = env, .set = set, .entry = entry};
    a.weights = graft_price_weights(&entry->rule);
    if (graft_cover_unpack(env->unit, &entry->rule, entry->cover_points, entry->cover_bytes,
                           entry->cover, &a.points)) {
        a.point_count = entry->cover < POINTS_READ ? entry->cover : POINTS_READ;
    }
    price_largest(&a);
    a.reverse = describe_reverse(&a);
    return a;
}

static const char *list_weights(graft_arena *arena, uint32_t weights)
{
    graft_buffer out = {.arena = arena};
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        if ((weights >> v & 1u) != 0) {
            graft_buffer_printf(&out, "%s%c", out.size > 0 ? ", " : "", 'a' + (int)v);
        }
    }
    return out.size > 0 ? out.data : "none";
}

/* -------------------------------------------------------------------- text */

static void append_where(const account *a, graft_buffer *out)
{
    uint32_t count = 0;
    const char *const *parts = graft_rule_words_where(a->env->unit, &a->entry->rule, &count);
    graft_buffer_printf(out, "\nIt holds wherever the shapes of both sides fit%s\n",
                        count > 0 ? " and" : "; it has no precondition.");
    for (uint32_t i = 0; i < count; i++) {
        graft_buffer_printf(out, "  - %s%s\n", parts[i], i + 1 < count ? "," : ".");
    }
}

static void append_proof(const account *a, graft_buffer *out)
{
    const graft_rule_entry *e = a->entry;
    const char *const numerics[] = {
        [GRAFT_NUMERIC_NONE] = "no numeric class",
        [GRAFT_NUMERIC_EXACT] = "the same bits for every input (exact)",
        [GRAFT_NUMERIC_REASSOCIATING] = "equal over the reals, rounded differently (reassociating)",
        [GRAFT_NUMERIC_EXACT_INTEGER] = "the same integers for every input (exact-integer)"};
    graft_buffer_printf(out,
                        "\nProof: %s. %u instances%s evaluated without a difference, %u proved "
                        "element by element by %s.\n",
                        graft_proof_name(e->proof), e->points,
                        e->complete ? " (all within the bounds)" : "", e->cover, a->set->solver);
    if (e->cases > 0) {
        graft_buffer_printf(out, "For all sizes: %u case%s of ranks and axes, shapes symbolic.\n",
                            e->cases, e->cases == 1 ? "" : "s");
    } else if (e->reason != NULL && e->reason[0] != '\0') {
        graft_buffer_printf(out, "Not proved for all sizes: %s.\n", e->reason);
    }
    for (uint32_t i = 0; i < e->axiom_count; i++) {
        graft_buffer_printf(out, "  - axiom %s\n", e->axioms[i]);
    }
    graft_buffer_printf(out, "Results: %s.\n", numerics[e->numeric <= 3 ? e->numeric : 0]);
}

static const char *const format_names[GRAFT_ROUNDING_FORMATS] = {"binary32", "binary16"};

static double ulps(uint32_t hundredths) { return (double)hundredths / 100.0; }

static void append_rounding(const graft_rounding *r, graft_buffer *out)
{
    if (r->elements == 0) {
        return;
    }
    graft_buffer_printf(out,
                        "Rounding, measured on %u elements (units in the last place from the exact "
                        "result, source -> target):\n",
                        r->elements);
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        const graft_rounding_side *from = &r->sides[f][GRAFT_ROUNDING_SOURCE];
        const graft_rounding_side *to = &r->sides[f][GRAFT_ROUNDING_TARGET];
        graft_buffer_printf(out,
                            "  %s: median %.2f -> %.2f, largest %.2f -> %.2f, overflows %u -> %u\n",
                            format_names[f], ulps(from->median), ulps(to->median), ulps(from->most),
                            ulps(to->most), from->overflows, to->overflows);
    }
}

static void append_price(const account *a, graft_buffer *out)
{
    const struct {
        const char *name;
        uint64_t before;
        uint64_t after;
    } rows[] = {
        {"operators:",    a->before.operators,    a->after.operators   },
        {"launches:",     a->before.launches,     a->after.launches    },
        {"FLOPs:",        a->before.flops,        a->after.flops       },
        {"bytes moved:",  a->before.bytes,        a->after.bytes       },
        {"weight bytes:", a->before.weight_bytes, a->after.weight_bytes},
    };
    graft_buffer_printf(out, "\nWhich way it pays, for one inference (weights: %s)",
                        list_weights(a->env->unit, a->weights));
    if (a->largest == NULL) {
        graft_buffer_printf(out, ":\n  The certificate has no instance that can be read.\n");
        return;
    }
    graft_buffer_printf(out, " at\n%s:\n",
                        graft_point_print(a->env->unit, &a->entry->rule, a->largest));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_buffer_printf(out, "  %-13s %" PRIu64 " -> %" PRIu64 "\n", rows[i].name,
                            rows[i].before, rows[i].after);
    }
    graft_buffer_printf(out, "  %s\n", a->reverse);
}

void graft_listing_explain(graft_env *env, const graft_ruleset *set, const graft_rule_entry *entry,
                           graft_buffer *out)
{
    account a = make_account(env, set, entry);
    graft_buffer_printf(out, "%s\n  id %016" PRIx64 ", family %s\n  %s\n", entry->name, entry->id,
                        entry->family, graft_rule_print_line(env->unit, &entry->rule));
    graft_buffer_printf(out, "\nIt replaces\n");
    graft_rule_words_steps(out, &entry->rule, true);
    graft_buffer_printf(out, "by\n");
    graft_rule_words_steps(out, &entry->rule, false);
    append_where(&a, out);
    append_proof(&a, out);
    append_rounding(&entry->rounding, out);
    append_price(&a, out);
}

/* -------------------------------------------------------------------- JSON */

static void append_side(graft_buffer *out, const char *key, const graft_rounding_side *side)
{
    graft_buffer_printf(out,
                        "\"%s\": {\"median_ulps\": %.2f, \"largest_ulps\": %.2f, "
                        "\"overflows\": %u}",
                        key, ulps(side->median), ulps(side->most), side->overflows);
}

const char *graft_listing_rounding_json(graft_arena *arena, const graft_rounding *r)
{
    graft_buffer out = {.arena = arena};
    if (r->elements == 0) {
        return "null";
    }
    graft_buffer_printf(&out, "{\"elements\": %u", r->elements);
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        graft_buffer_printf(&out, ", \"%s\": {", format_names[f]);
        append_side(&out, "source", &r->sides[f][GRAFT_ROUNDING_SOURCE]);
        graft_buffer_printf(&out, ", ");
        append_side(&out, "target", &r->sides[f][GRAFT_ROUNDING_TARGET]);
        graft_buffer_printf(&out, "}");
    }
    graft_buffer_printf(&out, "}");
    return out.data;
}

static const char *json_price(graft_arena *arena, const graft_price *price)
{
    return graft_arena_printf(arena,
                              "{\"operators\": %u, \"launches\": %u, \"flops\": %" PRIu64
                              ", \"bytes\": %" PRIu64 ", \"weight_bytes\": %" PRIu64 "}",
                              price->operators, price->launches, price->flops, price->bytes,
                              price->weight_bytes);
}

void graft_listing_explain_json(graft_env *env, const graft_ruleset *set,
                                const graft_rule_entry *entry)
{
    account a = make_account(env, set, entry);
    uint32_t count = 0;
    const char *const *parts = graft_rule_words_where(env->unit, &entry->rule, &count);
    graft_json json;
    graft_json_begin(&json, env->unit);
    graft_json_add(&json, "id=%s name=%s", graft_arena_printf(env->unit, "%016" PRIx64, entry->id),
                   entry->name);
    graft_json_strings(&json, "where", parts, count);
    graft_json_add(&json, "rounding=(%s) weights=%s",
                   graft_listing_rounding_json(env->unit, &entry->rounding),
                   list_weights(env->unit, a.weights));
    if (a.largest != NULL) {
        graft_json_add(&json, "point=%s before=(%s) after=(%s)",
                       graft_point_print(env->unit, &entry->rule, a.largest),
                       json_price(env->unit, &a.before), json_price(env->unit, &a.after));
    }
    graft_json_string(&json, "reverse", a.reverse);
    graft_json_end(&json, stdout);
}
