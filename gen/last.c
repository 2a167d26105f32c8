/* last.c - see last.h. */
#include "gen/last.h"

#include "gen/store.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Records have at least this part of all memory. */
enum { LEAST_SHARE = 64 };
enum { BATCH_NODES = 1 << 13, PROGRESS_LEAST = 20000, MAIL_BYTES = 1 << 20 };

static const uint64_t mark_every_ns = UINT64_C(10000000000);

struct graft_gen_last {
    graft_gen_space *space;
    graft_gen_store *store;
    graft_gen_mark mark;
    uint64_t *known; /* One-sample fingerprints of the smaller graphs' values, sorted. */
    uint32_t known_count;
    graft_gen_node *batch; /* Orbit after orbit. */
    uint32_t *orbits;      /* Where they begin in the batch. */
    uint32_t *sets;        /* By orbit: the closed set that it was made from. */
    uint64_t *keys;        /* GRAFT_MAX_OUTPUTS per node. */
    uint32_t batch_count;
    uint32_t orbit_count;
    uint32_t size;
    graft_gen_record *kept;
    uint32_t kept_count;
    uint32_t kept_capacity;
    uint64_t marked_ns;
    uint64_t order; /* Of the next record. */
    graft_arena *mail;
    graft_buffer *sent;     /* By rank: records for it, in the mail; NULL: there is one. */
    graft_gen_counts below; /* Before this level. */
    graft_progress progress;
    bool shown;
};

/* ---------------------------------------------------------- smaller graphs */

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void list_known(graft_gen_last *last)
{
    const graft_gen_space *space = last->space;
    last->known = GRAFT_NEW(space->arena, uint64_t, space->value_count);
    for (uint32_t v = 0; v < space->value_count; v++) {
        last->known[v] = graft_gen_data_print(&space->shapes[space->values[v].shape],
                                              space->data[v], GRAFT_GEN_FIRST_SAMPLES)
                             .hash.low64;
    }
    last->known_count = space->value_count;
    qsort(last->known, last->known_count, sizeof *last->known, compare_keys);
}

static bool is_known(const graft_gen_last *last, uint64_t key)
{
    return bsearch(&key, last->known, last->known_count, sizeof key, compare_keys) != NULL;
}

/* Everything that the last level depends on. */
static uint64_t identify(const graft_gen_space *space, uint32_t size)
{
    uint64_t words[6] = {space->samples.seed, size, space->node_count, space->set->output_count};
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL) {
        return 0;
    }
    (void)XXH3_64bits_reset(state);
    for (uint32_t v = 0; v < space->value_count; v++) {
        (void)XXH3_64bits_update(state, &space->values[v].hash, sizeof space->values[v].hash);
    }
    for (uint32_t c = 0; c < space->set->config_count; c++) {
        uint64_t config = graft_gen_config_hash(&space->set->configs[c]);
        (void)XXH3_64bits_update(state, &config, sizeof config);
    }
    (void)XXH3_64bits_update(state, words, sizeof words);
    uint64_t identity = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    return identity;
}

/* ------------------------------------------------------------------- opening */

/* The space's room for records: what is left of the memory, but for a least share. */
static graft_gen_room room_for_records(const graft_gen_space *space)
{
    graft_gen_room room = space->room;
    uint64_t taken_bytes = graft_arena_used_bytes(space->arena) + room.taken_bytes;
    uint64_t least_bytes = room.memory_bytes / LEAST_SHARE;
    if (room.memory_bytes > 0) {
        room.memory_bytes = taken_bytes + least_bytes < room.memory_bytes
                                ? room.memory_bytes - taken_bytes
                                : least_bytes;
    }
    return room;
}

/* Makes room for records that are for other ranks. */
static void open_mail(graft_gen_last *last)
{
    graft_env *env = last->space->env;
    if (env->ranks == NULL) {
        return;
    }
    last->mail = graft_arena_new(MAIL_BYTES);
    last->sent = GRAFT_NEW(last->space->arena, graft_buffer, graft_ranks_count(env));
    for (uint32_t r = 0; r < graft_ranks_count(env); r++) {
        last->sent[r].arena = last->mail;
    }
}

graft_status graft_gen_last_open(graft_gen_space *space, uint32_t size, graft_gen_last **last,
                                 uint32_t *resumed)
{
    graft_status status = GRAFT_OK;
    const graft_gen_room room = room_for_records(space);
    graft_gen_last *made = GRAFT_NEW(space->arena, graft_gen_last, 1);
    *made = (graft_gen_last){.space = space, .size = size};
    made->mark.identity = identify(space, size);
    made->batch = GRAFT_NEW(space->arena, graft_gen_node, BATCH_NODES);
    made->orbits = GRAFT_NEW(space->arena, uint32_t, BATCH_NODES + 1);
    made->sets = GRAFT_NEW(space->arena, uint32_t, BATCH_NODES);
    made->below = space->counts;
    made->keys = GRAFT_NEW(space->arena, uint64_t, (size_t)BATCH_NODES * GRAFT_MAX_OUTPUTS);
    list_known(made);
    open_mail(made);
    GRAFT_CHECK(graft_gen_store_open(space->env, &room, &made->mark, &made->store));
    space->counts.graphs += made->mark.graphs;
    space->counts.evaluated += made->mark.evaluated;
    made->marked_ns = graft_clock_ns();
    if (made->mark.walked > 0) {
        graft_log(space->env, 1, "%s: going on behind %" PRIu64 " graphs", space->set->name,
                  made->mark.graphs);
    }
    *last = made;
    *resumed = (uint32_t)made->mark.walked;
done:
    if (status != GRAFT_OK) {
        graft_arena_free(made->mail);
    }
    return status;
}

/* -------------------------------------------------------------------- orbits */

/* Whether the node is an application over the set. */
static bool is_offered(const graft_gen_node *node, const graft_gen_offer *offer)
{
    uint32_t covered = 0;
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS && node->args[i] != GRAFT_GEN_NONE; i++) {
        uint32_t k = 0;
        while (k < offer->count && offer->values[k] != node->args[i]) {
            k++;
        }
        if (k == offer->count) {
            return false;
        }
        covered |= offer->covers[k];
    }
    return (offer->must & ~covered) == 0;
}

/* The renaming of a node; false when one of its arguments is not in the space. */
static bool rename_node(const graft_gen_space *space, const graft_gen_node *node, uint32_t renaming,
                        graft_gen_node *image)
{
    const graft_gen_config *config = &space->set->configs[node->config];
    *image = *node;
    for (uint32_t i = 0; i < config->input_count; i++) {
        image->args[i] = graft_gen_value_image(space, node->args[i], renaming);
        if (image->args[i] == GRAFT_GEN_NONE) {
            return false;
        }
    }
    graft_gen_args_normalise(config, image->args);
    return true;
}

static bool has_node(const graft_gen_node *nodes, uint32_t count, const graft_gen_node *node)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(nodes[i].args, node->args, sizeof node->args) == 0) {
            return true;
        }
    }
    return false;
}

static graft_status add_record(graft_gen_last *last, const graft_gen_node *node, uint64_t key,
                               bool known)
{
    graft_gen_record record = {
        .key = key, .order = last->order++, .config = node->config, .is_known = known ? 1 : 0};
    memcpy(record.args, node->args, sizeof record.args);
    if (last->sent == NULL) {
        return graft_gen_store_add(last->store, &record);
    }
    /* The first bits of keys are the store's. */
    graft_buffer_append(&last->sent[key % graft_ranks_count(last->space->env)], &record,
                        sizeof record);
    return GRAFT_OK;
}

/* What is known of an orbit: a bit for each output whose value smaller graphs compute too. */
static uint32_t find_known(const graft_gen_last *last, const uint64_t *keys, uint32_t outputs)
{
    uint32_t known = is_known(last, keys[0]) ? 1 : 0;
    return known | (outputs == 2 && is_known(last, keys[1]) ? 2u : 0u);
}

/* What tells which renamings of a graph are remembered: the fingerprints of the outputs that are
 * not known, the lesser one first. */
static void order_keys(const uint64_t *keys, uint32_t outputs, uint32_t known, uint64_t *ordered)
{
    uint64_t first = (known & 1u) != 0 && outputs == 2 ? keys[1] : keys[0];
    uint64_t second = outputs == 1 || (known & 2u) != 0 ? first : keys[1];
    ordered[0] = first < second ? first : second;
    ordered[1] = first < second ? second : first;
}

/* The least fingerprints of an orbit, and what is known of it. False when one of its graphs is
 * undefined. */
static bool find_least(const graft_gen_last *last, uint32_t first, uint32_t end, uint32_t outputs,
                       uint32_t *known, uint64_t *least)
{
    uint64_t own[2];
    *known = find_known(last, &last->keys[(size_t)first * GRAFT_MAX_OUTPUTS], outputs);
    for (uint32_t n = first; n < end; n++) {
        const uint64_t *keys = &last->keys[(size_t)n * GRAFT_MAX_OUTPUTS];
        if (keys[0] == 0 || (outputs == 2 && keys[1] == 0)) {
            return false;
        }
        order_keys(keys, outputs, *known, own);
        if (n == first || own[0] < least[0] || (own[0] == least[0] && own[1] < least[1])) {
            memcpy(least, own, sizeof own);
        }
    }
    return true;
}

/* Remembers what matters of the batch's nodes [first, end), a graph and its renamings. */
static graft_status settle_orbit(graft_gen_last *last, uint32_t first, uint32_t end)
{
    const graft_gen_space *space = last->space;
    uint32_t outputs = space->set->configs[last->batch[first].config].output_count;
    uint32_t known = 0;
    uint64_t least[2];
    uint64_t own[2];
    if (!find_least(last, first, end, outputs, &known, least)) {
        return GRAFT_OK;
    }
    if (known == 0 && graft_gen_is_of_weights(space, &last->batch[first])) {
        return GRAFT_OK; /* Weights among themselves: no rule is applied there. */
    }
    bool all = known == (1u << outputs) - 1u;
    for (uint32_t n = first; n < end; n++) {
        const uint64_t *keys = &last->keys[(size_t)n * GRAFT_MAX_OUTPUTS];
        order_keys(keys, outputs, known, own);
        for (uint32_t o = 0; o < outputs && (all || memcmp(own, least, sizeof own) == 0); o++) {
            GRAFT_PASS(add_record(last, &last->batch[n], keys[o], (known >> o & 1u) != 0));
        }
    }
    return GRAFT_OK;
}

static graft_status settle_batch(graft_gen_last *last)
{
    if (last->batch_count == 0) {
        return GRAFT_OK;
    }
    graft_gen_evaluate_keys(last->space, last->batch, last->batch_count, last->keys);
    last->orbits[last->orbit_count] = last->batch_count;
    for (uint32_t i = 0; i < last->orbit_count; i++) {
        const uint64_t first = (uint64_t)last->sets[i] << 32; /* Of the closed set's records. */
        last->order = last->order < first ? first : last->order;
        GRAFT_PASS(settle_orbit(last, last->orbits[i], last->orbits[i + 1]));
    }
    last->mark.graphs += last->orbit_count;
    last->mark.evaluated += last->batch_count;
    last->space->counts.graphs += last->orbit_count;
    last->space->counts.evaluated += last->batch_count;
    last->orbit_count = 0;
    last->batch_count = 0;
    return GRAFT_OK;
}

graft_status graft_gen_last_add(graft_gen_last *last, const graft_gen_node *node,
                                const graft_gen_offer *offer)
{
    const graft_gen_space *space = last->space;
    if (last->batch_count + space->renaming_count > BATCH_NODES) {
        GRAFT_PASS(settle_batch(last));
    }
    uint32_t first = last->batch_count;
    uint32_t end = first;
    graft_gen_node own = *node;
    graft_gen_args_normalise(&space->set->configs[node->config], own.args);
    if (graft_gen_node_find(space, own.config, own.args) != GRAFT_GEN_NONE) {
        return GRAFT_OK;
    }
    for (uint32_t r = 0; r < space->renaming_count; r++) {
        graft_gen_node image;
        if (!rename_node(space, &own, r, &image) ||
            has_node(&last->batch[first], end - first, &image)) {
            continue;
        }
        if (memcmp(image.args, own.args, sizeof own.args) < 0 && is_offered(&image, offer)) {
            return GRAFT_OK; /* Its renaming's turn comes, or has come, over the same set. */
        }
        last->batch[end++] = image;
    }
    last->sets[last->orbit_count] = offer->set;
    last->orbits[last->orbit_count++] = first;
    last->batch_count = end;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ progress */

/* Whether there is room for what has been made so far. */
static graft_status check_room(const graft_gen_last *last)
{
    return graft_gen_space_check_room(last->space, graft_gen_store_bytes(last->store));
}

/* Gives all ranks the records of their fingerprints. */
static graft_status deliver_records(graft_gen_last *last)
{
    const graft_env *env = last->space->env;
    graft_buffer got = {.arena = last->mail};
    graft_gen_record record;
    if (last->sent == NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(settle_batch(last));
    graft_ranks_exchange(env, last->sent, &got, NULL);
    for (size_t at = 0; at < got.size; at += sizeof record) {
        memcpy(&record, got.data + at, sizeof record);
        GRAFT_PASS(graft_gen_store_add(last->store, &record));
    }
    graft_arena_reset(last->mail);
    for (uint32_t r = 0; r < graft_ranks_count(env); r++) {
        last->sent[r] = (graft_buffer){.arena = last->mail};
    }
    return GRAFT_OK;
}

/* Whether it is time for a mark, to any rank. */
static bool is_mark_due(const graft_gen_last *last)
{
    uint64_t due =
        graft_gen_store_is_ahead(last->store) || graft_clock_ns() - last->marked_ns > mark_every_ns
            ? 1
            : 0;
    graft_ranks_most(last->space->env, &due, 1);
    return due != 0;
}

graft_status graft_gen_last_pass(graft_gen_last *last, uint32_t walked, uint32_t total)
{
    const graft_gen_space *space = last->space;
    if (!last->shown && total >= PROGRESS_LEAST) {
        graft_progress_start(&last->progress, space->env, space->set->name, "sets", total);
        last->shown = true;
    }
    if (last->shown) {
        GRAFT_SCOPED(space->env->scratch);
        graft_progress_update(
            &last->progress, walked,
            graft_arena_printf(space->env->scratch, "%" PRIu64 " graphs", space->counts.graphs));
    }
    GRAFT_PASS(deliver_records(last));
    if (space->room.folder != NULL && is_mark_due(last)) {
        GRAFT_PASS(settle_batch(last));
        last->mark.walked = walked;
        GRAFT_PASS(graft_gen_store_mark(last->store, &last->mark));
        last->marked_ns = graft_clock_ns();
    }
    return check_room(last);
}

/* ----------------------------------------------------------------- finishing */

static bool same_node(const graft_gen_record *a, const graft_gen_record *b)
{
    return a->config == b->config && memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* Keeps the records of a key that more than one graph has. */
static graft_status keep_repeated(void *context, const graft_gen_record *records, size_t count)
{
    graft_gen_last *last = context;
    bool wanted = false;
    for (size_t i = 0; i < count && !wanted; i++) {
        wanted = records[i].is_known != 0 || !same_node(&records[i], &records[0]);
    }
    last->space->counts.keys += wanted ? 0 : 1;
    graft_status status = wanted ? check_room(last) : GRAFT_OK;
    for (size_t i = 0; i < count && wanted && status == GRAFT_OK; i++) {
        GRAFT_GEN_PUSH(last->space->arena, last->kept, last->kept_count, last->kept_capacity) =
            records[i];
    }
    return status;
}

static int compare_orders(const void *a, const void *b)
{
    const graft_gen_record *x = a;
    const graft_gen_record *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Shapes are inferred anew: their numbers depend on what this run has seen. */
static graft_status add_kept(graft_gen_last *last, const graft_gen_record *record)
{
    graft_gen_space *space = last->space;
    uint16_t shapes[GRAFT_MAX_OUTPUTS];
    bool fits = false;
    if (graft_gen_node_find(space, record->config, record->args) != GRAFT_GEN_NONE) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_gen_infer(space, record->config, record->args, shapes, &fits));
    if (fits) {
        (void)graft_gen_node_add(space, record->config, record->args, shapes, last->size);
    }
    return GRAFT_OK;
}

/* Gives all ranks the nodes that matter, and counts what all have made. */
static void gather_kept(graft_gen_last *last)
{
    const graft_env *env = last->space->env;
    graft_gen_counts *counts = &last->space->counts;
    const graft_gen_counts *below = &last->below;
    graft_buffer kept = {.arena = last->mail};
    uint64_t made[] = {counts->graphs - below->graphs, counts->evaluated - below->evaluated,
                       counts->keys - below->keys};
    const graft_buffer own = {.data = (char *)last->kept,
                              .size = last->kept_count * sizeof *last->kept};
    counts->stored_bytes = graft_gen_store_bytes(last->store);
    if (last->sent == NULL) {
        return;
    }
    graft_ranks_most(env, &counts->stored_bytes, 1);
    graft_ranks_add(env, made, sizeof made / sizeof made[0]);
    counts->graphs = below->graphs + made[0];
    counts->evaluated = below->evaluated + made[1];
    counts->keys = below->keys + made[2];
    graft_ranks_gather(env, &own, &kept, NULL);
    last->kept = (graft_gen_record *)(void *)kept.data;
    last->kept_count = (uint32_t)(kept.size / sizeof *last->kept);
}

graft_status graft_gen_last_finish(graft_gen_last *last, uint32_t total)
{
    graft_status status = GRAFT_OK;
    graft_gen_space *space = last->space;
    GRAFT_CHECK(settle_batch(last));
    GRAFT_CHECK(deliver_records(last));
    if (last->shown) {
        graft_progress_finish(&last->progress);
    }
    if (space->room.folder != NULL && last->mark.walked != total) {
        last->mark.walked = total;
        GRAFT_CHECK(graft_gen_store_mark(last->store, &last->mark));
    }
    GRAFT_CHECK(graft_gen_store_list(last->store, keep_repeated, last));
    gather_kept(last);
    if (last->kept_count > 0) {
        qsort(last->kept, last->kept_count, sizeof *last->kept, compare_orders);
    }
    for (uint32_t i = 0; i < last->kept_count; i++) {
        GRAFT_CHECK(add_kept(last, &last->kept[i]));
    }
done:
    graft_gen_last_close(last);
    return status;
}

void graft_gen_last_close(graft_gen_last *last)
{
    if (last->store != NULL) {
        graft_gen_store_close(last->store);
        last->store = NULL;
    }
    graft_arena_free(last->mail);
    last->mail = NULL;
}
