/* cover.c - greedy choice of a covering set. See cover.h. */
#include "verify/sweep/cover.h"

#include "graph/base/file.h"
#include "graph/base/rng.h"

#include <assert.h>
#include <string.h>

enum {
    LEVELS = 8,       /* Values told apart at a place; rarer ones share the last. */
    PLACES_MOST = 48, /* Places past these are left out of the triples. */
    TRIALS = 24,      /* Points compared for each pick. */
    TRIPLE_BITS = LEVELS * LEVELS * LEVELS,
    WORK_BASE = 4000 /* Work that costs the solver as much as starting it. */
};

typedef struct {
    int32_t values[LEVELS];
    uint32_t count;
} place;

typedef struct {
    const graft_rule *rule;
    const graft_domain *domain;
    uint32_t place_count;
    place places[PLACES_MOST];
    uint8_t place_of[PLACES_MOST]; /* Which raw place. */
    uint8_t *levels;               /* (points, place_count) */
    uint64_t *covered;             /* Bits, by triple of places and their levels. */
} chooser;

/* ------------------------------------------------------------------ places */

static int32_t raw_value(const graft_rule *rule, const graft_point *point, uint32_t raw)
{
    if (raw < rule->slot_count) {
        return point->slots[raw];
    }
    const graft_shape *shape = &point->vars[(raw - rule->slot_count) / (1 + GRAFT_MAX_RANK)];
    uint32_t back = (raw - rule->slot_count) % (1 + GRAFT_MAX_RANK);
    if (back == 0) {
        return shape->rank;
    }
    return back <= shape->rank ? shape->dims[shape->rank - back] : 0;
}

static uint32_t find_level(place *p, int32_t value)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->values[i] == value) {
            return i;
        }
    }
    if (p->count == LEVELS) {
        return LEVELS - 1;
    }
    p->values[p->count] = value;
    return p->count++;
}

/* Keeps the places where points differ, and the level of each point there. */
static void find_places(graft_env *env, chooser *c)
{
    uint32_t raw_count = c->rule->slot_count + (uint32_t)c->rule->var_count * (1 + GRAFT_MAX_RANK);
    for (uint32_t raw = 0; raw < raw_count && c->place_count < PLACES_MOST; raw++) {
        int32_t first = raw_value(c->rule, &c->domain->points[0], raw);
        bool varies = false;
        for (uint32_t i = 1; i < c->domain->count && !varies; i++) {
            varies = raw_value(c->rule, &c->domain->points[i], raw) != first;
        }
        if (varies) {
            c->place_of[c->place_count++] = (uint8_t)raw;
        }
    }
    c->levels = GRAFT_NEW(env->scratch, uint8_t, (size_t)c->domain->count * c->place_count);
    for (uint32_t i = 0; i < c->domain->count; i++) {
        for (uint32_t k = 0; k < c->place_count; k++) {
            int32_t value = raw_value(c->rule, &c->domain->points[i], c->place_of[k]);
            c->levels[(size_t)i * c->place_count + k] = (uint8_t)find_level(&c->places[k], value);
        }
    }
}

/* ----------------------------------------------------------------- triples */

/* Counts the triples of a point that are not covered, and covers them when `mark`. */
static uint32_t count_new(chooser *c, uint32_t point, bool mark)
{
    const uint8_t *levels = &c->levels[(size_t)point * c->place_count];
    uint32_t count = 0;
    size_t triple = 0;
    for (uint32_t i = 0; i < c->place_count; i++) {
        for (uint32_t j = i + 1; j < c->place_count; j++) {
            uint32_t pair = ((uint32_t)levels[i] * LEVELS + levels[j]) * LEVELS;
            for (uint32_t k = j + 1; k < c->place_count; k++, triple++) {
                size_t bit = triple * TRIPLE_BITS + pair + levels[k];
                uint64_t mask = UINT64_C(1) << (bit & 63u);
                if ((c->covered[bit >> 6] & mask) == 0) {
                    count++;
                    c->covered[bit >> 6] |= mark ? mask : 0;
                }
            }
        }
    }
    return count;
}

static size_t covered_words(const chooser *c)
{
    size_t n = c->place_count;
    return n < 3 ? 1 : n * (n - 1) * (n - 2) / 6 * TRIPLE_BITS / 64;
}

static uint64_t work_of(const chooser *c, uint32_t point)
{
    graft_instance instance;
    graft_fit fit = graft_instance_build(&instance, c->rule, &c->domain->points[point]);
    assert(fit == GRAFT_FIT_OK);
    return fit == GRAFT_FIT_OK ? graft_instance_work(&instance) : 0;
}

/* The best of some random points, moved to the front of those not picked; its gain in new triples.
 */
static uint32_t pick_one(chooser *c, graft_rng *rng, const uint64_t *work, uint32_t *rest,
                         uint32_t picked)
{
    uint32_t best = picked;
    uint32_t best_gain = 0;
    uint64_t best_score = 0;
    uint32_t left = c->domain->count - picked;
    for (uint32_t t = 0; t < TRIALS; t++) {
        uint32_t at = picked + (left <= TRIALS ? t : graft_rng_below(rng, left));
        if (at >= c->domain->count) {
            break;
        }
        uint32_t gain = count_new(c, rest[at], false);
        uint64_t score = ((uint64_t)gain << 24) / (WORK_BASE + work[rest[at]]);
        if (score > best_score) {
            best = at;
            best_gain = gain;
            best_score = score;
        }
    }
    uint32_t chosen = rest[best];
    rest[best] = rest[picked];
    rest[picked] = chosen;
    return best_gain;
}

graft_point *graft_cover_pick(graft_env *env, const graft_rule *rule, const graft_domain *domain,
                              uint32_t limit, uint32_t *count)
{
    graft_point *points = GRAFT_NEW(env->unit, graft_point, limit);
    GRAFT_SCOPED(env->scratch);
    chooser *c = GRAFT_NEW(env->scratch, chooser, 1);
    graft_rng rng;
    graft_rng_seed(&rng, domain->count);
    c->rule = rule;
    c->domain = domain;
    find_places(env, c);
    c->covered = GRAFT_NEW(env->scratch, uint64_t, covered_words(c));
    uint64_t *work = GRAFT_NEW(env->scratch, uint64_t, domain->count);
    uint32_t *order = GRAFT_NEW(env->scratch, uint32_t, domain->count);
    for (uint32_t i = 0; i < domain->count; i++) {
        work[i] = work_of(c, i);
        order[i] = i;
    }
    for (*count = 0; *count < limit && *count < domain->count; (*count)++) {
        uint32_t gain = pick_one(c, &rng, work, order, *count);
        if (gain == 0 && *count > 0 && c->place_count >= 3) {
            break;
        }
        (void)count_new(c, order[*count], true);
        points[*count] = domain->points[order[*count]];
    }
    return points;
}

/* ----------------------------------------------------------------- packing */

static void put_varint(graft_buffer *out, int32_t value)
{
    uint32_t zigzag = ((uint32_t)value << 1) ^ (value < 0 ? UINT32_MAX : 0u);
    do {
        uint8_t byte = (uint8_t)((zigzag & 0x7fu) | (zigzag > 0x7fu ? 0x80u : 0u));
        graft_buffer_append(out, &byte, 1);
        zigzag >>= 7;
    } while (zigzag > 0);
}

uint8_t *graft_cover_pack(graft_arena *arena, const graft_rule *rule, const graft_point *points,
                          uint32_t count, size_t *bytes)
{
    graft_buffer out = {.arena = arena};
    for (uint32_t i = 0; i < count; i++) {
        const graft_point *point = &points[i];
        for (uint32_t v = 0; v < rule->var_count; v++) {
            put_varint(&out, point->vars[v].rank);
            for (uint32_t k = 0; k < point->vars[v].rank; k++) {
                put_varint(&out, point->vars[v].dims[k]);
            }
        }
        for (uint32_t s = 0; s < rule->slot_count; s++) {
            put_varint(&out, point->slots[s]);
        }
    }
    *bytes = out.size;
    return (uint8_t *)out.data;
}

/* The next number; false at the end of the bytes or when it is too long. */
static bool get_varint(const uint8_t **at, const uint8_t *end, int32_t *value)
{
    uint64_t zigzag = 0;
    for (uint32_t shift = 0; shift < 35 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        zigzag |= (uint64_t)(byte & 0x7fu) << shift;
        if ((byte & 0x80u) == 0) {
            int64_t half = (int64_t)(zigzag >> 1);
            *value = (int32_t)((zigzag & 1u) != 0 ? -half - 1 : half);
            return zigzag <= UINT32_MAX;
        }
    }
    return false;
}

static bool get_shape(const uint8_t **at, const uint8_t *end, graft_shape *shape)
{
    int32_t rank = 0;
    if (!get_varint(at, end, &rank) || rank < 0 || rank > GRAFT_MAX_RANK) {
        return false;
    }
    *shape = (graft_shape){.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    bool good = true;
    for (int32_t k = 0; k < rank && good; k++) {
        good = get_varint(at, end, &shape->dims[k]) && shape->dims[k] > 0;
    }
    return good;
}

bool graft_cover_unpack(graft_arena *arena, const graft_rule *rule, const uint8_t *bytes,
                        size_t size, uint32_t count, graft_point **points)
{
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + size;
    bool good = count <= size || count == 0; /* A point without numbers has no use. */
    graft_point *all = GRAFT_NEW(arena, graft_point, good ? count : 0);
    for (uint32_t i = 0; i < count && good; i++) {
        for (uint32_t v = 0; v < rule->var_count && good; v++) {
            good = get_shape(&at, end, &all[i].vars[v]);
        }
        for (uint32_t s = 0; s < rule->slot_count && good; s++) {
            good = get_varint(&at, end, &all[i].slots[s]);
        }
    }
    *points = all;
    return good && at == end;
}
