/* pairs.c - see pairs.h. */
#include "emit/header/pairs.h"

#include <assert.h>
#include <string.h>

enum { VALUES = 256 };

/* Rules on their way, and what the values of bytes are used for. */
typedef struct {
    uint8_t *bytes;
    uint32_t *offsets;
    uint32_t count;
    uint8_t *pairs;
    bool taken[VALUES];
    uint32_t depth[VALUES];         /* How many second ones wait at a time. */
    uint32_t found[VALUES][VALUES]; /* How often two stand side by side. */
} shortener;

static shortener *open_shortener(graft_arena *arena, const graft_policy *policy)
{
    shortener *s = GRAFT_NEW(arena, shortener, 1);
    const uint32_t size = policy->rule_offsets[policy->rule_count];
    s->count = policy->rule_count;
    s->bytes = GRAFT_COPY(arena, policy->rules, size);
    s->offsets = GRAFT_COPY(arena, policy->rule_offsets, (size_t)s->count + 1);
    s->pairs = GRAFT_NEW(arena, uint8_t, GRAFT_PAIRS_BYTES);
    for (uint32_t value = 0; value < VALUES; value++) {
        s->pairs[2 * value] = (uint8_t)value;
    }
    for (uint32_t r = 0; r < s->count; r++) { /* The head's last byte, too. */
        for (uint32_t i = s->offsets[r] + GRAFT_RULE_HEAD - 1; i < s->offsets[r + 1]; i++) {
            s->taken[s->bytes[i]] = true;
        }
    }
    return s;
}

static uint32_t depth_of_pair(const shortener *s, uint32_t first, uint32_t second)
{
    return s->depth[first] + 1 > s->depth[second] ? s->depth[first] + 1 : s->depth[second];
}

/* The frequent pair, the lowest of equals; false when none is there twice. Three equal bytes count
 * as two pairs. */
static bool find_pair(shortener *s, uint8_t pair[2])
{
    uint32_t most = 1;
    memset(s->found, 0, sizeof s->found);
    for (uint32_t r = 0; r < s->count; r++) {
        for (uint32_t i = s->offsets[r] + GRAFT_RULE_HEAD; i + 1 < s->offsets[r + 1]; i++) {
            s->found[s->bytes[i]][s->bytes[i + 1]]++;
        }
    }
    for (uint32_t first = 0; first < VALUES; first++) {
        for (uint32_t second = 0; second < VALUES; second++) {
            if (s->found[first][second] > most &&
                depth_of_pair(s, first, second) <= GRAFT_PAIR_DEPTH) {
                most = s->found[first][second];
                pair[0] = (uint8_t)first;
                pair[1] = (uint8_t)second;
            }
        }
    }
    return most > 1;
}

static void replace_pair(shortener *s, const uint8_t pair[2], uint8_t value)
{
    uint32_t from = 0;
    uint32_t to = 0;
    for (uint32_t r = 0; r < s->count; r++) {
        const uint32_t head_end = from + GRAFT_RULE_HEAD;
        const uint32_t end = s->offsets[r + 1];
        while (from < end) {
            const bool is_pair =
                from >= head_end && end - from > 1 && memcmp(&s->bytes[from], pair, 2) == 0;
            s->bytes[to++] = is_pair ? value : s->bytes[from];
            from += is_pair ? 2 : 1;
        }
        s->offsets[r + 1] = to;
    }
    memcpy(&s->pairs[2 * (size_t)value], pair, 2);
    s->depth[value] = depth_of_pair(s, pair[0], pair[1]);
}

graft_policy graft_rules_shorten(graft_arena *arena, const graft_policy *policy)
{
    shortener *s = open_shortener(arena, policy);
    graft_policy shorter = *policy;
    uint8_t pair[2];
    assert(policy->rule_pairs == NULL);
    for (uint32_t value = 0; value < VALUES; value++) {
        if (!s->taken[value] && find_pair(s, pair)) {
            replace_pair(s, pair, (uint8_t)value);
        }
    }
    shorter.rules = s->bytes;
    shorter.rule_offsets = s->offsets;
    shorter.rule_pairs = s->pairs;
    return graft_rules_bytes(&shorter) < graft_rules_bytes(policy) ? shorter : *policy;
}

size_t graft_rules_bytes(const graft_policy *policy)
{
    const size_t count = policy->rule_count;
    return policy->rule_offsets[count] + (count + 1) * sizeof *policy->rule_offsets + count +
           (policy->rule_pairs != NULL ? GRAFT_PAIRS_BYTES : 0);
}
