/* policyfile.c - between graft_policy and the messages of policy.proto (see policyfile.h). */
#include "graph/rule/policyfile.h"

#include "graph/base/file.h"
#include "graph/base/wire.h"
#include "graph/rule/policy.pb-c.h"

#include <string.h>

enum { VERSION = 1, ABI_LEAST = 1, SHIFT_MOST = 62, MULTIPLIER_LEAST = 1 << 15 };
enum { TARIFF_OF_ONE_FOREST = 2, TARIFF_VERSION = 4 };
enum { ROOF_NUMBERS = GRAFT_TARIFF_ROOFS * sizeof(graft_roof) / sizeof(int32_t) };

typedef Graft__Policies__Policy policy_message;
typedef Graft__Policies__Dense dense_message;
typedef Graft__Policies__Round round_message;
typedef Graft__Policies__Tariff tariff_message;

/* ---------------------------------------------------------------- writing */

static ProtobufCBinaryData bytes_of(const void *data, size_t size)
{
    return (ProtobufCBinaryData){size, graft_borrow(data)};
}

static uint32_t pack_scale(graft_scale scale)
{
    return (uint32_t)scale.multiplier | (uint32_t)scale.shift << 16;
}

static uint32_t *pack_scales(graft_arena *arena, const graft_scale *scales, size_t count)
{
    uint32_t *packed = GRAFT_NEW(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        packed[i] = pack_scale(scales[i]);
    }
    return packed;
}

static int32_t *widen_ints(graft_arena *arena, const int16_t *ints, size_t count)
{
    int32_t *wide = GRAFT_NEW(arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        wide[i] = ints[i];
    }
    return wide;
}

static dense_message *encode_dense(graft_arena *arena, const graft_dense *dense)
{
    dense_message *to = GRAFT_NEW(arena, dense_message, 1);
    graft__policies__dense__init(to);
    to->inputs = dense->inputs;
    to->outputs = dense->outputs;
    to->weights = bytes_of(dense->weights, (size_t)dense->inputs * dense->outputs);
    to->n_bias = dense->outputs;
    to->bias = graft_borrow(dense->bias);
    to->n_scales = dense->outputs;
    to->scales = pack_scales(arena, dense->scales, dense->outputs);
    return to;
}

static void encode_rules(graft_arena *arena, const graft_policy *policy,
                         const char *const *rule_names, policy_message *to)
{
    uint32_t count = policy->rule_count;
    to->n_rules = count;
    to->rules = GRAFT_NEW(arena, ProtobufCBinaryData, count);
    to->n_rule_names = count;
    to->rule_names = GRAFT_NEW(arena, char *, count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t first = policy->rule_offsets[r];
        to->rules[r] = bytes_of(policy->rules + first, policy->rule_offsets[r + 1] - first);
        to->rule_names[r] = graft_borrow(rule_names[r]);
    }
    to->rule_flags = bytes_of(policy->rule_flags, count);
}

static void encode_network(graft_arena *arena, const graft_policy *policy, policy_message *to)
{
    to->input = encode_dense(arena, &policy->input);
    to->n_rounds = policy->round_count;
    to->rounds = GRAFT_NEW(arena, round_message *, policy->round_count);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        to->rounds[r] = GRAFT_NEW(arena, round_message, 1);
        graft__policies__round__init(to->rounds[r]);
        to->rounds[r]->incoming = encode_dense(arena, &policy->rounds[r].incoming);
        to->rounds[r]->outgoing = encode_dense(arena, &policy->rounds[r].outgoing);
        to->rounds[r]->node = encode_dense(arena, &policy->rounds[r].node);
        to->rounds[r]->keep = pack_scale(policy->rounds[r].keep);
    }
    to->global = encode_dense(arena, &policy->global);
    to->width = policy->width;
    to->place = encode_dense(arena, &policy->place);
    to->rule_rows = bytes_of(policy->rule_rows, graft_policy_rows_bytes(policy));
    to->second = encode_dense(arena, &policy->second);
    to->score = encode_dense(arena, &policy->score);
    to->prior_slope = policy->prior_slope;
    to->prior_reserve = policy->prior_reserve;
}

static tariff_message *encode_tariff(graft_arena *arena, const graft_tariff *tariff,
                                     const char *provenance)
{
    tariff_message *to = GRAFT_NEW(arena, tariff_message, 1);
    graft__policies__tariff__init(to);
    to->version = TARIFF_VERSION;
    to->feature_hash = GRAFT_FEATURE_HASH;
    to->provenance = graft_borrow(provenance);
    to->seed = tariff->seed;
    to->n_keys = to->n_values = tariff->row_count;
    to->keys = GRAFT_NEW(arena, uint32_t, tariff->row_count);
    to->values = GRAFT_NEW(arena, uint32_t, tariff->row_count);
    for (uint32_t i = 0; i < tariff->row_count; i++) {
        to->keys[i] = tariff->keys[i];
        to->values[i] = tariff->values[i];
    }
    to->still = tariff->still;
    to->tests = bytes_of(tariff->tests, tariff->tree_count * (size_t)GRAFT_TREE_TESTS);
    to->n_bounds = tariff->tree_count * (size_t)GRAFT_TREE_TESTS;
    to->bounds = widen_ints(arena, tariff->bounds, to->n_bounds);
    to->n_leaves = tariff->tree_count * (size_t)GRAFT_TREE_LEAVES;
    to->leaves = widen_ints(arena, tariff->leaves, to->n_leaves);
    to->n_roofs = ROOF_NUMBERS;
    to->roofs = graft_borrow(&tariff->roofs[0].node);
    return to;
}

static policy_message *encode_policy(graft_arena *arena, const graft_policy *policy,
                                     const char *const *rule_names)
{
    policy_message *to = GRAFT_NEW(arena, policy_message, 1);
    graft__policies__policy__init(to);
    to->version = VERSION;
    to->abi = policy->abi;
    to->feature_hash = policy->feature_hash;
    to->metadata = graft_borrow(policy->metadata == NULL ? "" : policy->metadata);
    to->location_limit = policy->location_limit;
    to->hidden = policy->hidden;
    to->latent = policy->latent;
    encode_rules(arena, policy, rule_names, to);
    to->decider = policy->decider;
    if (policy->hidden > 0) {
        encode_network(arena, policy, to);
    }
    to->tariff = policy->tariff != NULL ? encode_tariff(arena, policy->tariff, "") : NULL;
    return to;
}

void graft_policyfile_encode(graft_arena *arena, const graft_policy *policy,
                             const char *const *rule_names, uint8_t **data, size_t *size)
{
    graft_wire_encode(arena, &encode_policy(arena, policy, rule_names)->base, data, size);
}

graft_status graft_policyfile_write(graft_env *env, const graft_policy *policy,
                                    const char *const *rule_names, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    return graft_wire_write(env, path, &encode_policy(env->scratch, policy, rule_names)->base);
}

/* ---------------------------------------------------------------- reading */

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const char *file;
} reader;

static graft_status refuse(const reader *in, const char *part, const char *what)
{
    return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: %s: %s", in->file, part, what);
}

static graft_status read_scale(const reader *in, const char *part, uint32_t packed,
                               graft_scale *scale)
{
    *scale = (graft_scale){(uint16_t)(packed & UINT16_MAX), (uint8_t)(packed >> 16 & UINT8_MAX)};
    bool fits = packed >> 16 <= SHIFT_MOST &&
                (scale->multiplier == 0 || scale->multiplier >= MULTIPLIER_LEAST);
    return fits ? GRAFT_OK : refuse(in, part, "a scale is out of range");
}

static graft_status read_scales(const reader *in, const char *part, const uint32_t *packed,
                                size_t count, const graft_scale **scales)
{
    graft_scale *to = GRAFT_NEW(in->arena, graft_scale, count);
    for (size_t i = 0; i < count; i++) {
        GRAFT_PASS(read_scale(in, part, packed[i], &to[i]));
    }
    *scales = to;
    return GRAFT_OK;
}

/* int8 from -127 on: -128 would break the bound on sums. */
static graft_status read_weights(const reader *in, const char *part,
                                 const ProtobufCBinaryData *bytes, size_t count,
                                 const int8_t **weights)
{
    const int8_t *from = (const int8_t *)bytes->data;
    if (bytes->len != count) {
        return refuse(in, part, "the number of weights is not that of its inputs and outputs");
    }
    for (size_t i = 0; i < count; i++) {
        GRAFT_RETURN_IF(from[i] == INT8_MIN, refuse(in, part, "a weight is out of range"));
    }
    *weights = from;
    return GRAFT_OK;
}

static graft_status read_dense(const reader *in, const char *part, const dense_message *from,
                               graft_dense *dense)
{
    if (from == NULL || from->inputs > GRAFT_DENSE_MAX_INPUTS || from->outputs > UINT16_MAX) {
        return refuse(in, part, "the layer is missing or too large");
    }
    GRAFT_RETURN_IF(from->n_bias != from->outputs || from->n_scales != from->outputs,
                    refuse(in, part, "the number of biases or scales is not that of its outputs"));
    *dense = (graft_dense){.inputs = (uint16_t)from->inputs, .outputs = (uint16_t)from->outputs};
    GRAFT_PASS(read_weights(in, part, &from->weights, (size_t)from->inputs * from->outputs,
                            &dense->weights));
    for (size_t i = 0; i < from->n_bias; i++) {
        if (from->bias[i] > GRAFT_DENSE_MAX_BIAS || from->bias[i] < -GRAFT_DENSE_MAX_BIAS) {
            return refuse(in, part, "a bias is out of range");
        }
    }
    dense->bias = from->bias;
    return read_scales(in, part, from->scales, from->n_scales, &dense->scales);
}

static graft_status read_rules(const reader *in, const policy_message *from, graft_policy *policy)
{
    size_t count = from->n_rules;
    size_t bytes = 0;
    if (count == 0 || count >= UINT16_MAX || from->rule_flags.len != count) {
        return refuse(in, "rules", "there are none, too many, or flags for another number of them");
    }
    for (size_t r = 0; r < count; r++) {
        bytes += from->rules[r].len;
    }
    uint32_t *offsets = GRAFT_NEW(in->arena, uint32_t, count + 1);
    uint8_t *rules = graft_arena_alloc(in->arena, bytes + 1);
    for (size_t r = 0; r < count; r++) {
        graft_rule rule;
        size_t used = 0;
        const ProtobufCBinaryData *packed = &from->rules[r];
        if (graft_rule_unpack(&rule, packed->data, packed->len, &used) != GRAFT_OK ||
            used != packed->len) {
            return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: rule %zu is malformed", in->file, r);
        }
        memcpy(rules + offsets[r], packed->data, packed->len);
        offsets[r + 1] = offsets[r] + (uint32_t)packed->len;
    }
    policy->rules = rules;
    policy->rule_offsets = offsets;
    policy->rule_flags = from->rule_flags.data;
    policy->rule_count = (uint16_t)count;
    return GRAFT_OK;
}

static graft_status read_rounds(const reader *in, const policy_message *from, graft_policy *policy)
{
    GRAFT_RETURN_IF(from->n_rounds > UINT8_MAX, refuse(in, "rounds", "there are too many"));
    graft_policy_round *rounds = GRAFT_NEW(in->arena, graft_policy_round, from->n_rounds);
    for (size_t r = 0; r < from->n_rounds; r++) {
        GRAFT_PASS(
            read_dense(in, "round, incoming", from->rounds[r]->incoming, &rounds[r].incoming));
        GRAFT_PASS(
            read_dense(in, "round, outgoing", from->rounds[r]->outgoing, &rounds[r].outgoing));
        GRAFT_PASS(read_dense(in, "round, node", from->rounds[r]->node, &rounds[r].node));
        GRAFT_PASS(read_scale(in, "round, keep", from->rounds[r]->keep, &rounds[r].keep));
    }
    policy->rounds = rounds;
    policy->round_count = (uint16_t)from->n_rounds;
    return GRAFT_OK;
}

static graft_status read_network(const reader *in, const policy_message *from, graft_policy *policy)
{
    GRAFT_PASS(read_dense(in, "input", from->input, &policy->input));
    GRAFT_PASS(read_rounds(in, from, policy));
    GRAFT_PASS(read_dense(in, "global", from->global, &policy->global));
    GRAFT_PASS(read_dense(in, "place", from->place, &policy->place));
    GRAFT_PASS(read_weights(in, "rule rows", &from->rule_rows, graft_policy_rows_bytes(policy),
                            &policy->rule_rows));
    GRAFT_PASS(read_dense(in, "second", from->second, &policy->second));
    GRAFT_PASS(read_dense(in, "score", from->score, &policy->score));
    policy->prior_slope = from->prior_slope;
    policy->prior_reserve = from->prior_reserve;
    return GRAFT_OK;
}

static graft_status read_sizes(const reader *in, const policy_message *from, graft_policy *policy)
{
    const struct {
        uint32_t from;
        uint16_t *to;
    } sizes[] = {
        {from->location_limit, &policy->location_limit},
        {from->hidden,         &policy->hidden        },
        {from->latent,         &policy->latent        },
        {from->width,          &policy->width         },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i].from > UINT16_MAX || (sizes[i].from == 0 && (i == 0 || from->hidden > 0))) {
            return refuse(in, "sizes", "one of them is out of range");
        }
        *sizes[i].to = (uint16_t)sizes[i].from;
    }
    return GRAFT_OK;
}

static graft_status narrow_ints(const reader *in, const int32_t *ints, size_t count,
                                const int16_t **narrow)
{
    int16_t *to = GRAFT_NEW(in->arena, int16_t, count);
    for (size_t i = 0; i < count; i++) {
        GRAFT_RETURN_IF(ints[i] < INT16_MIN || ints[i] > INT16_MAX,
                        refuse(in, "trees", "a number is out of range"));
        to[i] = (int16_t)ints[i];
    }
    *narrow = to;
    return GRAFT_OK;
}

/* Trees of before halves were: both halves are the same then, each tree there twice with half of
 * its leaves. */
static graft_status split_trees(const reader *in, graft_tariff *tariff)
{
    const size_t count = tariff->tree_count;
    uint8_t *tests = GRAFT_NEW(in->arena, uint8_t, 2 * count * GRAFT_TREE_TESTS);
    int16_t *bounds = GRAFT_NEW(in->arena, int16_t, 2 * count * GRAFT_TREE_TESTS);
    int16_t *leaves = GRAFT_NEW(in->arena, int16_t, 2 * count * GRAFT_TREE_LEAVES);
    GRAFT_RETURN_IF(2 * count > UINT16_MAX, refuse(in, "trees", "there are too many"));
    for (size_t t = 0; t < 2 * count; t++) {
        const size_t from = t / 2;
        memcpy(&tests[t * GRAFT_TREE_TESTS], &tariff->tests[from * GRAFT_TREE_TESTS],
               GRAFT_TREE_TESTS * sizeof *tests);
        memcpy(&bounds[t * GRAFT_TREE_TESTS], &tariff->bounds[from * GRAFT_TREE_TESTS],
               GRAFT_TREE_TESTS * sizeof *bounds);
        for (size_t k = 0; k < GRAFT_TREE_LEAVES; k++) {
            const int32_t leaf = tariff->leaves[from * GRAFT_TREE_LEAVES + k];
            leaves[t * GRAFT_TREE_LEAVES + k] = (int16_t)(t % 2 == 0 ? leaf / 2 : leaf - leaf / 2);
        }
    }
    tariff->tests = tests;
    tariff->bounds = bounds;
    tariff->leaves = leaves;
    tariff->tree_count = (uint16_t)(2 * count);
    return GRAFT_OK;
}

static graft_status read_trees(const reader *in, const tariff_message *from, graft_tariff *tariff)
{
    size_t count = from->tests.len / GRAFT_TREE_TESTS;
    if (from->still > UINT16_MAX || count > UINT16_MAX ||
        from->tests.len != count * GRAFT_TREE_TESTS || from->n_bounds != count * GRAFT_TREE_TESTS ||
        from->n_leaves != count * GRAFT_TREE_LEAVES) {
        return refuse(
            in, "trees",
            "they have not each 15 tests, 15 bounds and 16 leaves, or `still` is out of range");
    }
    tariff->tests = from->tests.data;
    tariff->tree_count = (uint16_t)count;
    tariff->still = (uint16_t)from->still;
    GRAFT_PASS(narrow_ints(in, from->bounds, from->n_bounds, &tariff->bounds));
    GRAFT_PASS(narrow_ints(in, from->leaves, from->n_leaves, &tariff->leaves));
    if (from->version == TARIFF_OF_ONE_FOREST) {
        return split_trees(in, tariff);
    }
    return GRAFT_OK;
}

/* Of before there were roofs: a FLOP took one unit, a byte eight, and a node might take none. */
static graft_status read_roofs(const reader *in, const tariff_message *from, graft_tariff *tariff)
{
    if (from->version < TARIFF_VERSION) {
        for (uint32_t i = 0; i < GRAFT_TARIFF_ROOFS; i++) {
            tariff->roofs[i] = (graft_roof){.node = 0, .byte = 3 * 1024, .flop = 0};
        }
        return GRAFT_OK;
    }
    GRAFT_RETURN_IF(from->n_roofs != ROOF_NUMBERS,
                    refuse(in, "roofs", "the number of them is another"));
    for (size_t i = 0; i < from->n_roofs; i++) {
        GRAFT_RETURN_IF(from->roofs[i] < INT16_MIN || from->roofs[i] > INT16_MAX,
                        refuse(in, "roofs", "a number is out of range"));
    }
    memcpy(tariff->roofs, from->roofs, sizeof tariff->roofs);
    return GRAFT_OK;
}

static graft_status read_tariff(const reader *in, const tariff_message *from, graft_tariff *tariff)
{
    graft_tariff read = {
        .keys = from->keys, .row_count = (uint32_t)from->n_keys, .seed = from->seed};
    GRAFT_RETURN_IF(from->version < TARIFF_OF_ONE_FOREST || from->version > TARIFF_VERSION ||
                        from->feature_hash != GRAFT_FEATURE_HASH,
                    refuse(in, "version", "the tariff was made for another version of the engine"));
    GRAFT_RETURN_IF(from->n_keys != from->n_values || from->n_keys > UINT32_MAX / 2,
                    refuse(in, "rows", "the number of values is not that of keys"));
    uint16_t *values = GRAFT_NEW(in->arena, uint16_t, from->n_values);
    for (size_t i = 0; i < from->n_values; i++) {
        GRAFT_RETURN_IF(from->values[i] > UINT16_MAX,
                        refuse(in, "rows", "a value is out of range"));
        values[i] = (uint16_t)from->values[i];
    }
    read.values = values;
    GRAFT_PASS(read_trees(in, from, &read));
    GRAFT_PASS(read_roofs(in, from, &read));
    GRAFT_RETURN_IF(graft_tariff_check(&read) != NULL,
                    refuse(in, "tariff", graft_tariff_check(&read)));
    *tariff = read;
    return GRAFT_OK;
}

/* Who decides has what it needs: a tariff, and the network if it is that. */
static graft_status read_decider(const reader *in, const policy_message *from, graft_policy *policy)
{
    bool fits =
        policy->tariff != NULL && ((from->decider == GRAFT_DECIDER_NETWORK && policy->hidden > 0) ||
                                   from->decider == GRAFT_DECIDER_TARIFF);
    policy->decider = (uint8_t)from->decider;
    return fits ? GRAFT_OK : refuse(in, "decider", "what it needs is not there");
}

static graft_status read_names(const reader *in, const policy_message *from,
                               const char *const **rule_names)
{
    GRAFT_RETURN_IF(from->n_rule_names != from->n_rules,
                    refuse(in, "rules", "there are names for another number of them"));
    *rule_names = (const char *const *)from->rule_names;
    return GRAFT_OK;
}

/* `rule_names` may be NULL. */
static graft_status decode(graft_env *env, graft_arena *arena, graft_bytes bytes,
                           graft_policy *policy, const char *const **rule_names)
{
    const reader in = {env, arena, bytes.file};
    graft_policy read = {.abi = GRAFT_ABI, .feature_hash = GRAFT_FEATURE_HASH};
    ProtobufCMessage *message = NULL;
    GRAFT_PASS(
        graft_wire_decode(env, arena, bytes, &graft__policies__policy__descriptor, &message));
    const policy_message *from = (const policy_message *)message;
    if (from->version != VERSION) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "%s: a policy of version %u; this program reads version %d", in.file,
                          from->version, VERSION);
    }
    GRAFT_RETURN_IF(
        from->abi < ABI_LEAST || from->abi > GRAFT_ABI || from->feature_hash != GRAFT_FEATURE_HASH,
        refuse(&in, "features", "the policy was made for another version of the engine"));
    read.metadata = from->metadata;
    if (from->hidden > 0 && from->place == NULL) {
        return refuse(&in, "network", "it scores fixed places, which no program does any more");
    }
    GRAFT_PASS(read_sizes(&in, from, &read));
    GRAFT_PASS(read_rules(&in, from, &read));
    if (read.hidden > 0) {
        GRAFT_PASS(read_network(&in, from, &read));
    }
    if (from->tariff != NULL) {
        graft_tariff *tariff = GRAFT_NEW(arena, graft_tariff, 1);
        GRAFT_PASS(read_tariff(&in, from->tariff, tariff));
        read.tariff = tariff;
    }
    GRAFT_PASS(read_decider(&in, from, &read));
    if (rule_names != NULL) {
        GRAFT_PASS(read_names(&in, from, rule_names));
    }
    *policy = read;
    return GRAFT_OK;
}

graft_status graft_policyfile_decode(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                     graft_policy *policy)
{
    return decode(env, arena, bytes, policy, NULL);
}

graft_status graft_policyfile_read(graft_env *env, graft_arena *arena, const char *path,
                                   graft_policy *policy, const char *const **rule_names)
{
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, arena, path, &data, &size));
    return decode(env, arena, (graft_bytes){path, data, size}, policy, rule_names);
}

/* ---------------------------------------------------------------- tariffs */

graft_status graft_tarifffile_write(graft_env *env, const graft_tariff *tariff,
                                    const char *provenance, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    return graft_wire_write(env, path, &encode_tariff(env->scratch, tariff, provenance)->base);
}

graft_status graft_tarifffile_read(graft_env *env, graft_arena *arena, const char *path,
                                   graft_tariff *tariff, const char **provenance)
{
    const reader in = {env, arena, path};
    ProtobufCMessage *message = NULL;
    GRAFT_PASS(graft_wire_read(env, arena, path, &graft__policies__tariff__descriptor, &message));
    const tariff_message *from = (const tariff_message *)message;
    GRAFT_PASS(read_tariff(&in, from, tariff));
    *provenance = from->provenance;
    return GRAFT_OK;
}
