/* enumerate.c - the levels of a space: nodes whose closure has k operators, for k = 1 to depth.
 *
 * A node of level k is an operator over a closed set of k - 1 representatives, every sink of which
 * it reads. Closed sets are kept one of each orbit; a node's renamings are added with it, so
 * nothing is lost. A set of size k is a set of size k - 1 and one more representative that it can
 * feed. */
#include "gen/last.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <assert.h>
#include <string.h>

enum { MAX_AVAILABLE = GRAFT_GEN_MAX_VARS + GRAFT_MAX_OUTPUTS * GRAFT_GEN_MAX_DEPTH };

/* All closed sets of one size, one of each orbit; each is `size` sorted node numbers. */
typedef struct {
    uint32_t *nodes;
    uint32_t size;
    uint32_t count;
    uint32_t capacity;
    graft_table table;
} closed_sets;

/* A closed set while operators are applied to what it offers. */
typedef struct walker walker;
struct walker {
    graft_gen_space *space;
    const uint32_t *nodes;
    uint32_t size;
    uint32_t values[MAX_AVAILABLE]; /* Inputs, then outputs of the set's nodes; ascending. */
    uint32_t covers[MAX_AVAILABLE]; /* Bit of the node that a value comes from; 0 for inputs. */
    uint32_t value_count;
    uint32_t sinks; /* Bits of nodes that no node of the set reads. */
    uint32_t must;  /* Bits of nodes that an application must read. */
    uint32_t config;
    uint32_t args[GRAFT_MAX_INPUTS];
    graft_status (*visit)(walker *walk, const uint16_t *shapes);
    closed_sets *found;   /* Where join_set puts its sets. */
    graft_gen_last *last; /* Where list_node puts its nodes. */
    uint32_t number;      /* The set's, for list_node. */
};

/* ------------------------------------------------------------ applications */

static void offer_values(walker *walk)
{
    const graft_gen_space *space = walk->space;
    uint32_t read = 0;
    walk->value_count = 0;
    for (uint32_t i = 0; i < space->set->input_count; i++) {
        walk->covers[walk->value_count] = 0;
        walk->values[walk->value_count++] = i;
    }
    for (uint32_t i = 0; i < walk->size; i++) {
        const graft_gen_node *node = &space->nodes[walk->nodes[i]];
        for (uint32_t o = 0; o < space->set->configs[node->config].output_count; o++) {
            const graft_gen_value *value = &space->values[node->outs[o]];
            if (value->node == walk->nodes[i] && value->slot == o && !value->is_idle) {
                walk->covers[walk->value_count] = 1u << i;
                walk->values[walk->value_count++] = node->outs[o];
            }
        }
        for (uint32_t k = 0; k < GRAFT_MAX_INPUTS; k++) {
            for (uint32_t v = 0; v < walk->value_count; v++) {
                read |= walk->values[v] == node->args[k] ? walk->covers[v] : 0;
            }
        }
    }
    walk->sinks = ((1u << walk->size) - 1u) & ~read;
}

static graft_status finish_application(walker *walk)
{
    uint16_t shapes[GRAFT_MAX_OUTPUTS];
    bool fits = false;
    GRAFT_PASS(graft_gen_infer(walk->space, walk->config, walk->args, shapes, &fits));
    if (fits) {
        GRAFT_PASS(walk->visit(walk, shapes));
    }
    return GRAFT_OK;
}

/* Chooses argument i and those behind it; `covered` are the nodes read so far. */
static graft_status choose_argument(walker *walk, uint32_t i, uint32_t covered)
{
    const graft_gen_config *config = &walk->space->set->configs[walk->config];
    /* Arguments that may stand in either order, but not in the same roles, are tried in both. */
    bool is_symmetric = config->commutes && config->roles[0] == config->roles[1];
    if (i == config->input_count || i == GRAFT_MAX_INPUTS) {
        return (walk->must & ~covered) == 0 ? finish_application(walk) : GRAFT_OK;
    }
    for (uint32_t v = 0; v < walk->value_count; v++) {
        uint32_t value = walk->values[v];
        uint8_t role =
            walk->space->values[value].is_weight ? GRAFT_GEN_WEIGHT : GRAFT_GEN_ACTIVATION;
        bool ordered = !(is_symmetric && i == 1 && value < walk->args[0]);
        bool distinct = !(config->is_distinct && i == 1 && value == walk->args[0]);
        if ((config->roles[i] & role) != 0 && ordered && distinct) {
            walk->args[i] = value;
            GRAFT_PASS(choose_argument(walk, i + 1, covered | walk->covers[v]));
        }
    }
    return GRAFT_OK;
}

/* Whether the set holds one of the operators of which there may be only one. */
static bool has_once(const walker *walk)
{
    for (uint32_t i = 0; i < walk->size; i++) {
        if (walk->space->set->configs[walk->space->nodes[walk->nodes[i]].config].is_once) {
            return true;
        }
    }
    return false;
}

static graft_status walk_set(walker *walk)
{
    bool once = has_once(walk);
    offer_values(walk);
    walk->must = walk->found == NULL ? walk->sinks : 0;
    for (walk->config = 0; walk->config < walk->space->set->config_count; walk->config++) {
        if (once && walk->space->set->configs[walk->config].is_once) {
            continue;
        }
        memset(walk->args, 0xff, sizeof walk->args);
        GRAFT_PASS(choose_argument(walk, 0, 0));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- nodes */

/* Sets the number of live operators for a new node and its renamings, which have the same. */
static void count_live(graft_gen_space *space, uint32_t first, uint32_t end)
{
    graft_gen_closure closure = {.count = 0};
    uint32_t live = graft_gen_closure_of_node(space, first, &closure)
                        ? graft_gen_count_live(space, &closure)
                        : GRAFT_GEN_MAX_CLOSURE;
    for (uint32_t n = first; n < end; n++) {
        space->nodes[n].live = (uint8_t)live;
    }
}

/* Adds a node and all its renamings. */
static graft_status make_node(walker *walk, const uint16_t *shapes)
{
    graft_gen_space *space = walk->space;
    if (graft_gen_node_find(space, walk->config, walk->args) != GRAFT_GEN_NONE) {
        return GRAFT_OK;
    }
    const graft_gen_config *config = &space->set->configs[walk->config];
    uint32_t first = space->node_count;
    for (uint32_t r = 0; r < space->renaming_count; r++) {
        uint32_t args[GRAFT_MAX_INPUTS];
        bool known = true;
        memcpy(args, walk->args, sizeof args);
        for (uint32_t i = 0; i < config->input_count; i++) {
            args[i] = graft_gen_value_image(space, args[i], r);
            known = known && args[i] != GRAFT_GEN_NONE;
        }
        graft_gen_args_normalise(config, args);
        if (!known || graft_gen_node_find(space, walk->config, args) != GRAFT_GEN_NONE) {
            continue;
        }
        if (space->node_count == GRAFT_GEN_MAX_NODES) {
            return GRAFT_FAIL(space->env, GRAFT_UNSUPPORTED, "set %s: more than %u graphs",
                              space->set->name, GRAFT_GEN_MAX_NODES);
        }
        (void)graft_gen_node_add(space, walk->config, args, shapes, walk->size + 1);
    }
    if (space->node_count > first) {
        count_live(space, first, space->node_count);
    }
    space->counts.graphs++;
    return GRAFT_OK;
}

static graft_status list_node(walker *walk, const uint16_t *shapes)
{
    graft_gen_node node = {.config = (uint16_t)walk->config};
    memcpy(node.args, walk->args, sizeof node.args);
    memcpy(node.shapes, shapes, sizeof node.shapes);
    const graft_gen_offer offer = {walk->values, walk->covers, walk->value_count, walk->must,
                                   walk->number};
    return graft_gen_last_add(walk->last, &node, &offer);
}

/* -------------------------------------------------------------- closed sets */

static uint64_t hash_set(const void *owner, uint32_t number)
{
    const closed_sets *sets = owner;
    return XXH3_64bits(&sets->nodes[(size_t)number * sets->size], sets->size * sizeof(uint32_t));
}

/* Replaces a set by the least of its renamings that consist of representatives. */
static void make_set_canonical(const graft_gen_space *space, uint32_t *nodes, uint32_t size)
{
    uint32_t least[GRAFT_GEN_MAX_DEPTH];
    memcpy(least, nodes, size * sizeof *nodes);
    for (uint32_t r = 1; r < space->renaming_count; r++) {
        graft_gen_closure image = {.count = 0};
        bool valid = true;
        for (uint32_t i = 0; i < size && valid; i++) {
            uint32_t node = graft_gen_node_image(space, nodes[i], r);
            valid = node != GRAFT_GEN_NONE && graft_gen_is_representative(space, node) &&
                    graft_gen_closure_add(&image, node);
        }
        bool smaller = false;
        for (uint32_t i = 0; valid && i < size; i++) {
            if (image.nodes[i] != least[i]) {
                smaller = image.nodes[i] < least[i];
                break;
            }
        }
        if (smaller) {
            memcpy(least, image.nodes, size * sizeof *least);
        }
    }
    memcpy(nodes, least, size * sizeof *nodes);
}

static void add_set(graft_gen_space *space, closed_sets *sets, const uint32_t *nodes)
{
    size_t bytes = sets->size * sizeof *nodes;
    sets->nodes = graft_arena_grow(space->arena, sets->nodes, sets->count, &sets->capacity,
                                   GRAFT_GEN_FIRST_CAPACITY, bytes);
    memcpy(&sets->nodes[(size_t)sets->count * sets->size], nodes, bytes);
    graft_table_reserve(space->arena, &sets->table, sets, hash_set);
    uint64_t hash = hash_set(sets, sets->count);
    GRAFT_EACH_ALIKE(&sets->table, hash, number)
    {
        if (memcmp(&sets->nodes[(size_t)number * sets->size], nodes, bytes) == 0) {
            return;
        }
    }
    graft_table_insert(&sets->table, hash, sets->count++);
}

/* The set and one more node are a set of the next size. */
static graft_status join_set(walker *walk, const uint16_t *shapes)
{
    (void)shapes;
    graft_gen_space *space = walk->space;
    uint32_t node = graft_gen_node_find(space, walk->config, walk->args);
    if (node == GRAFT_GEN_NONE || !graft_gen_is_representative(space, node)) {
        return GRAFT_OK;
    }
    graft_gen_closure joined = {.count = walk->size};
    memcpy(joined.nodes, walk->nodes, walk->size * sizeof joined.nodes[0]);
    if (!graft_gen_closure_add(&joined, node) || joined.count != walk->size + 1) {
        return GRAFT_OK; /* The node is in the set. */
    }
    make_set_canonical(space, joined.nodes, joined.count);
    add_set(space, walk->found, joined.nodes);
    return GRAFT_OK;
}

/* Visits every set; with `found`, collects the sets of the next size, else makes nodes. */
static graft_status walk_sets(graft_gen_space *space, const closed_sets *sets, closed_sets *found)
{
    walker walk = {.space = space,
                   .size = sets->size,
                   .visit = found == NULL ? make_node : join_set,
                   .found = found};
    for (uint32_t i = 0; i < sets->count; i++) {
        if ((i & 255u) == 0 && graft_interrupted()) {
            return GRAFT_FAIL(space->env, GRAFT_INTERRUPTED, "interrupted");
        }
        if ((i & 255u) == 0) {
            GRAFT_PASS(graft_gen_space_check_room(space, 0));
        }
        walk.nodes = &sets->nodes[(size_t)i * sets->size];
        GRAFT_PASS(walk_set(&walk));
    }
    return GRAFT_OK;
}

/* Lists the nodes of the last level from set `from` on: of this rank's blocks. */
static graft_status list_last(graft_gen_space *space, const closed_sets *sets, uint32_t from,
                              graft_gen_last *last)
{
    walker walk = {.space = space, .size = sets->size, .visit = list_node, .last = last};
    uint32_t ranks = graft_ranks_count(space->env);
    for (uint32_t i = from; i < sets->count; i++) {
        if (i % GRAFT_GEN_BLOCK_SETS == 0 && graft_interrupted()) {
            return GRAFT_FAIL(space->env, GRAFT_INTERRUPTED, "interrupted");
        }
        if (i % (GRAFT_GEN_BLOCK_SETS * ranks) == 0) {
            GRAFT_PASS(graft_gen_last_pass(last, i, sets->count));
        }
        if (i / GRAFT_GEN_BLOCK_SETS % ranks != graft_ranks_own(space->env)) {
            continue;
        }
        walk.number = i;
        walk.nodes = &sets->nodes[(size_t)i * sets->size];
        GRAFT_PASS(walk_set(&walk));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ levels */

/* What the values of all nodes from `first` on would take. */
static uint64_t count_data_bytes(const graft_gen_space *space, uint32_t first)
{
    uint64_t elements = 0;
    for (uint32_t n = first; n < space->node_count; n++) {
        const graft_gen_node *node = &space->nodes[n];
        for (uint32_t o = 0; o < space->set->configs[node->config].output_count; o++) {
            elements += graft_shape_elements(&space->shapes[node->shapes[o]]);
        }
    }
    return elements * space->sample_count * sizeof(graft_field);
}

/* `sets` may be NULL: closed sets are not wanted. */
static graft_status build_level(graft_gen_space *space, const closed_sets *below, closed_sets *sets)
{
    uint32_t first = space->node_count;
    GRAFT_PASS(walk_sets(space, below, NULL));
    space->counts.evaluated += space->node_count - first;
    GRAFT_PASS(graft_gen_space_check_room(space, count_data_bytes(space, first)));
    GRAFT_PASS(graft_gen_evaluate(space, first, space->node_count, true));
    graft_gen_images_extend(space);
    GRAFT_PASS(graft_gen_space_check_room(space, 0));
    if (sets != NULL) {
        GRAFT_PASS(walk_sets(space, below, sets));
    }
    return GRAFT_OK;
}

static graft_status build_last_level(graft_gen_space *space, const closed_sets *below)
{
    graft_status status = GRAFT_OK;
    uint32_t first = space->node_count;
    uint32_t from = 0;
    graft_gen_last *last = NULL;
    GRAFT_CHECK(graft_gen_last_open(space, below->size + 1, &last, &from));
    GRAFT_CHECK(list_last(space, below, from, last));
    GRAFT_CHECK(graft_gen_last_finish(last, below->count));
    for (uint32_t n = first; n < space->node_count; n++) {
        count_live(space, n, n + 1);
    }
    GRAFT_CHECK(graft_gen_evaluate(space, first, space->node_count, false));
done:
    if (last != NULL) {
        graft_gen_last_close(last);
    }
    return status;
}

static void start_space(graft_env *env, graft_arena *arena, const graft_gen_set *set,
                        const graft_gen_samples *samples, graft_gen_space *space)
{
    assert(set->depth <= GRAFT_GEN_MAX_DEPTH);
    *space = (graft_gen_space){.env = env, .arena = arena, .set = set, .samples = *samples};
    space->sample_count = GRAFT_GEN_SAMPLES + samples->draw_count;
}

/* Makes the nodes of fewer than `end` operators; lists the closed sets of the largest of them. */
static graft_status build_levels(graft_gen_space *space, uint32_t end, closed_sets *largest)
{
    *largest = (closed_sets){
        .nodes = GRAFT_NEW(space->arena, uint32_t, 1), .size = 0, .count = 1}; /* The empty set. */
    GRAFT_PASS(graft_gen_space_open(space));
    for (uint32_t size = 1; size < end; size++) {
        closed_sets sets = {.size = size};
        GRAFT_PASS(build_level(space, largest, &sets));
        *largest = sets;
    }
    return GRAFT_OK;
}

graft_status graft_gen_space_build(graft_env *env, graft_arena *arena, const graft_gen_set *set,
                                   const graft_gen_samples *samples, const graft_gen_room *room,
                                   graft_gen_space *space)
{
    closed_sets below;
    start_space(env, arena, set, samples, space);
    if (room != NULL) {
        space->room = *room;
    }
    GRAFT_PASS(build_levels(space, set->depth, &below));
    GRAFT_PASS(build_last_level(space, &below));
    graft_gen_producers_list(space);
    return graft_gen_space_check_room(space, 0);
}

graft_status graft_gen_space_build_whole(graft_env *env, graft_arena *arena,
                                         const graft_gen_set *set, const graft_gen_samples *samples,
                                         const graft_gen_room *room, graft_gen_space *space)
{
    closed_sets below;
    start_space(env, arena, set, samples, space);
    if (room != NULL) {
        space->room = *room;
        space->room.folder = NULL;
    }
    GRAFT_PASS(build_levels(space, set->depth, &below));
    GRAFT_PASS(build_level(space, &below, NULL));
    graft_gen_producers_list(space);
    return GRAFT_OK;
}
