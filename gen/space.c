/* space.c - the tables of a space: shapes, inferences, nodes, values, renamings, closures. */
#include "gen/space.h"

#include <assert.h>
#include <string.h>

enum { MAX_SHAPES = UINT16_MAX };

static uint64_t hash_bytes(const void *data, size_t size) { return XXH3_64bits(data, size); }

/* -------------------------------------------------------------------- room */

graft_status graft_gen_space_check_room(const graft_gen_space *space, uint64_t beside_bytes)
{
    const graft_gen_room *room = &space->room;
    uint64_t used_bytes = graft_arena_used_bytes(space->arena) + room->taken_bytes + beside_bytes;
    if (room->memory_bytes == 0 || used_bytes <= room->memory_bytes) {
        return GRAFT_OK;
    }
    return GRAFT_FAIL(
        space->env, GRAFT_NO_MEMORY,
        "set %s: --memory %llu is too little: %llu MiB are needed by now; with a larger "
        "--memory and the same --work the run goes on from here",
        space->set->name, (unsigned long long)(room->memory_bytes >> 20),
        (unsigned long long)(used_bytes >> 20));
}

/* ------------------------------------------------------- shapes, inference */

static graft_status intern_shape(graft_gen_space *space, const graft_shape *shape, uint16_t *id)
{
    for (uint32_t i = 0; i < space->shape_count; i++) {
        if (graft_shape_equal(&space->shapes[i], shape)) {
            *id = (uint16_t)i;
            return GRAFT_OK;
        }
    }
    if (space->shape_count == MAX_SHAPES) {
        return GRAFT_FAIL(space->env, GRAFT_UNSUPPORTED, "set %s: more than %d shapes",
                          space->set->name, MAX_SHAPES);
    }
    space->shapes[space->shape_count] = *shape;
    *id = (uint16_t)space->shape_count++;
    return GRAFT_OK;
}

graft_status graft_gen_infer(graft_gen_space *space, uint32_t config, const uint32_t *args,
                             uint16_t *shapes, bool *fits)
{
    const graft_gen_config *made = &space->set->configs[config];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    memset(shapes, 0, GRAFT_MAX_OUTPUTS * sizeof *shapes);
    for (uint32_t i = 0; i < made->input_count; i++) {
        in[i] = space->shapes[space->values[args[i]].shape];
    }
    *fits = graft_gen_config_infer(made, in, out);
    for (uint32_t o = 0; *fits && o < made->output_count; o++) {
        GRAFT_PASS(intern_shape(space, &out[o], &shapes[o]));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- nodes */

static uint64_t hash_application(uint32_t config, const uint32_t *args)
{
    uint32_t key[1 + GRAFT_MAX_INPUTS] = {config};
    memcpy(&key[1], args, GRAFT_MAX_INPUTS * sizeof *args);
    return hash_bytes(key, sizeof key);
}

static uint64_t hash_node(const void *owner, uint32_t node)
{
    const graft_gen_space *space = owner;
    return hash_application(space->nodes[node].config, space->nodes[node].args);
}

void graft_gen_args_normalise(const graft_gen_config *config, uint32_t *args)
{
    if (config->commutes && args[0] > args[1]) {
        uint32_t first = args[0];
        args[0] = args[1];
        args[1] = first;
    }
    for (uint32_t i = config->input_count; i < GRAFT_MAX_INPUTS; i++) {
        args[i] = GRAFT_GEN_NONE;
    }
}

uint32_t graft_gen_node_find(const graft_gen_space *space, uint32_t config, const uint32_t *args)
{
    uint32_t sorted[GRAFT_MAX_INPUTS];
    memcpy(sorted, args, sizeof sorted);
    graft_gen_args_normalise(&space->set->configs[config], sorted);
    GRAFT_EACH_ALIKE(&space->node_table, hash_application(config, sorted), number)
    {
        const graft_gen_node *node = &space->nodes[number];
        if (node->config == config && memcmp(node->args, sorted, sizeof sorted) == 0) {
            return number;
        }
    }
    return GRAFT_GEN_NONE;
}

uint32_t graft_gen_node_add(graft_gen_space *space, uint32_t config, const uint32_t *args,
                            const uint16_t *shapes, uint32_t size)
{
    const uint32_t number = space->node_count;
    graft_table_reserve(space->arena, &space->node_table, space, hash_node);
    graft_gen_node *node =
        &GRAFT_GEN_PUSH(space->arena, space->nodes, space->node_count, space->node_capacity);
    memset(node, 0xff, sizeof *node);
    memcpy(node->args, args, sizeof node->args);
    memcpy(node->shapes, shapes, sizeof node->shapes);
    node->config = (uint16_t)config;
    node->size = (uint8_t)size;
    node->live = 0;
    graft_table_insert(&space->node_table, hash_node(space, number), number);
    return number;
}

bool graft_gen_is_representative(const graft_gen_space *space, uint32_t number)
{
    const graft_gen_node *node = &space->nodes[number];
    for (uint32_t o = 0; o < space->set->configs[node->config].output_count; o++) {
        if (node->outs[o] == GRAFT_GEN_NONE) {
            return false;
        }
        const graft_gen_value *value = &space->values[node->outs[o]];
        if (value->node == number && value->slot == o && !value->is_idle) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ values */

static uint64_t hash_value(const void *owner, uint32_t value)
{
    const graft_gen_space *space = owner;
    return space->values[value].hash.low64;
}

static uint32_t find_value(const graft_gen_space *space, XXH128_hash_t hash)
{
    GRAFT_EACH_ALIKE(&space->value_table, hash.low64, number)
    {
        if (XXH128_isEqual(space->values[number].hash, hash)) {
            return number;
        }
    }
    return GRAFT_GEN_NONE;
}

static uint32_t add_value(graft_gen_space *space, const graft_gen_value *value)
{
    const uint32_t number = space->value_count;
    uint32_t capacity = space->value_capacity;
    space->data = graft_arena_grow(space->arena, space->data, number, &capacity,
                                   GRAFT_GEN_FIRST_CAPACITY, sizeof(graft_field *));
    graft_table_reserve(space->arena, &space->value_table, space, hash_value);
    graft_table_insert(&space->value_table, value->hash.low64, number);
    GRAFT_GEN_PUSH(space->arena, space->values, space->value_count, space->value_capacity) = *value;
    return number;
}

bool graft_gen_is_of_weights(const graft_gen_space *space, const graft_gen_node *node)
{
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS && node->args[i] != GRAFT_GEN_NONE; i++) {
        if (!space->values[node->args[i]].is_weight) {
            return false;
        }
    }
    return true;
}

static void assign_output(graft_gen_space *space, uint32_t number, uint32_t slot,
                          const graft_gen_print *print)
{
    graft_gen_node *node = &space->nodes[number];
    uint32_t value = find_value(space, print->hash);
    if (value == GRAFT_GEN_NONE) {
        graft_gen_value fresh = {.hash = print->hash,
                                 .node = number,
                                 .shape = node->shapes[slot],
                                 .slot = (uint8_t)slot,
                                 .size = node->size,
                                 .is_weight = graft_gen_is_of_weights(space, node),
                                 .is_idle = print->is_uniform && node->args[0] != GRAFT_GEN_NONE};
        value = add_value(space, &fresh);
    }
    node->outs[slot] = value;
    graft_gen_value *known = &space->values[value];
    if (known->node != GRAFT_GEN_NONE && known->size == node->size &&
        space->nodes[known->node].live > node->live) {
        known->node = number;
        known->slot = (uint8_t)slot;
    }
    if (space->values[value].is_idle && node->args[0] == GRAFT_GEN_NONE) {
        space->values[value].node = number; /* A constant with a name. */
        space->values[value].is_idle = false;
    }
}

static bool is_undefined(XXH128_hash_t hash) { return hash.low64 == 0 && hash.high64 == 0; }

void graft_gen_values_assign(graft_gen_space *space, uint32_t first, uint32_t end,
                             const graft_gen_print *prints)
{
    for (uint32_t n = first; n < end; n++) {
        uint32_t count = space->set->configs[space->nodes[n].config].output_count;
        const graft_gen_print *own = &prints[(size_t)(n - first) * GRAFT_MAX_OUTPUTS];
        if (is_undefined(own[0].hash) || (count == 2 && is_undefined(own[1].hash))) {
            continue;
        }
        for (uint32_t slot = 0; slot < count; slot++) {
            assign_output(space, n, slot, &own[slot]);
        }
    }
}

/* One pass of a stable counting sort of links: `key` below `key_count`. Returns where keys begin.
 */
static uint32_t *sort_links(const graft_gen_space *space, const uint32_t *from, uint32_t count,
                            uint32_t key_count, bool by_value, uint32_t *to)
{
    uint32_t *first = GRAFT_NEW(space->arena, uint32_t, (size_t)key_count + 2);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            const graft_gen_node *node = &space->nodes[from[i] / GRAFT_MAX_OUTPUTS];
            uint32_t key = by_value ? node->outs[from[i] % GRAFT_MAX_OUTPUTS] : node->config;
            if (pass == 0) {
                first[key + 2]++;
            } else {
                to[first[key + 1]++] = from[i];
            }
        }
        for (uint32_t k = 1; k <= key_count && pass == 0; k++) {
            first[k + 1] += first[k];
        }
    }
    return first;
}

void graft_gen_producers_list(graft_gen_space *space)
{
    size_t most = (size_t)space->node_count * GRAFT_MAX_OUTPUTS;
    uint32_t *links = GRAFT_NEW(space->arena, uint32_t, most);
    uint32_t *by_config = GRAFT_NEW(space->arena, uint32_t, most);
    uint32_t count = 0;
    for (uint32_t n = 0; n < space->node_count; n++) {
        for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
            if (space->nodes[n].outs[o] != GRAFT_GEN_NONE) {
                links[count++] = n * GRAFT_MAX_OUTPUTS + o;
            }
        }
    }
    (void)sort_links(space, links, count, space->set->config_count, false, by_config);
    space->producer_first = sort_links(space, by_config, count, space->value_count, true, links);
    space->producers = links;
}

/* --------------------------------------------------------------- renamings */

uint32_t graft_gen_node_image(const graft_gen_space *space, uint32_t node, uint32_t renaming)
{
    const graft_gen_node *from = &space->nodes[node];
    const graft_gen_config *config = &space->set->configs[from->config];
    uint32_t args[GRAFT_MAX_INPUTS];
    memcpy(args, from->args, sizeof args);
    for (uint32_t i = 0; i < config->input_count; i++) {
        args[i] = graft_gen_value_image(space, args[i], renaming);
        if (args[i] == GRAFT_GEN_NONE) {
            return GRAFT_GEN_NONE;
        }
    }
    return graft_gen_node_find(space, from->config, args);
}

uint32_t graft_gen_value_image(const graft_gen_space *space, uint32_t value, uint32_t renaming)
{
    if (renaming == 0) {
        return value;
    }
    if (value < space->image_end) {
        return space->images[(size_t)value * space->renaming_count + renaming];
    }
    uint32_t node = graft_gen_node_image(space, space->values[value].node, renaming);
    return node == GRAFT_GEN_NONE ? GRAFT_GEN_NONE
                                  : space->nodes[node].outs[space->values[value].slot];
}

void graft_gen_images_extend(graft_gen_space *space)
{
    size_t row = space->renaming_count * sizeof *space->images;
    while (space->image_end < space->value_count) {
        space->images = graft_arena_grow(space->arena, space->images, space->image_end,
                                         &space->image_capacity, GRAFT_GEN_FIRST_CAPACITY, row);
        uint32_t value = space->image_end;
        uint32_t *images = &space->images[(size_t)value * space->renaming_count];
        images[0] = value;
        for (uint32_t r = 1; r < space->renaming_count; r++) {
            images[r] = value < space->set->input_count ? space->renamings[r][value]
                                                        : graft_gen_value_image(space, value, r);
        }
        space->image_end++;
    }
}

static bool may_exchange(const graft_gen_input *a, const graft_gen_input *b)
{
    return a->is_weight == b->is_weight && graft_shape_equal(&a->shape, &b->shape);
}

/* Lists the permutations that keep every input's shape and role, the identity first: counts through
 * all digit strings in lexicographic order. */
static graft_status list_renamings(graft_gen_space *space)
{
    const graft_gen_set *set = space->set;
    uint8_t digits[GRAFT_GEN_MAX_VARS] = {0};
    uint32_t at = 0;
    uint32_t used = 0; /* Bits of the digits before `at`. */
    space->renamings =
        graft_arena_array(space->arena, GRAFT_GEN_MAX_RENAMINGS, sizeof *space->renamings);
    for (;;) {
        uint8_t digit = digits[at];
        while (digit < set->input_count && ((used >> digit & 1u) != 0 ||
                                            !may_exchange(&set->inputs[at], &set->inputs[digit]))) {
            digit++;
        }
        digits[at] = digit;
        if (digit < set->input_count && at + 1 < set->input_count) {
            used |= 1u << digit;
            digits[++at] = 0;
            continue;
        }
        if (digit < set->input_count) {
            if (space->renaming_count == GRAFT_GEN_MAX_RENAMINGS) {
                return GRAFT_FAIL(space->env, GRAFT_UNSUPPORTED,
                                  "set %s: its inputs can be exchanged in more than %d ways",
                                  set->name, GRAFT_GEN_MAX_RENAMINGS);
            }
            memcpy(space->renamings[space->renaming_count++], digits, sizeof digits);
            digits[at]++;
            continue;
        }
        if (at == 0) {
            return GRAFT_OK;
        }
        at--;
        used &= ~(1u << digits[at]);
        digits[at]++;
    }
}

static graft_field *draw_input(const graft_gen_space *space, uint32_t input)
{
    const graft_shape *shape = &space->set->inputs[input].shape;
    size_t count = (size_t)graft_shape_elements(shape);
    graft_field *data = GRAFT_NEW(space->arena, graft_field, count * space->sample_count);
    graft_gen_draw draw = {.stream = input,
                           .most = graft_gen_set_most(space->set),
                           .is_weight = space->set->inputs[input].is_weight};
    graft_rng rng;
    graft_rng_derive(&rng, space->samples.seed, input);
    for (uint32_t k = 0; k < GRAFT_GEN_SAMPLES; k++) {
        draw.sample = k;
        graft_gen_sample(&rng, &draw, shape, data + k * count);
    }
    for (uint32_t k = 0; k < space->samples.draw_count; k++) {
        graft_gen_sample_fresh(graft_gen_fresh_seed(space), space->samples.draws[k], draw, shape,
                               data + (GRAFT_GEN_SAMPLES + k) * count);
    }
    return data;
}

graft_status graft_gen_space_open(graft_gen_space *space)
{
    assert(space->set->input_count > 0 && space->set->input_count <= GRAFT_GEN_MAX_VARS);
    space->shapes = GRAFT_NEW(space->arena, graft_shape, MAX_SHAPES);
    for (uint32_t i = 0; i < space->set->input_count; i++) {
        const graft_gen_input *input = &space->set->inputs[i];
        graft_gen_value value = {.node = GRAFT_GEN_NONE, .is_weight = input->is_weight};
        if (graft_shape_elements(&input->shape) > GRAFT_GEN_MAX_ELEMENTS) {
            return GRAFT_FAIL(space->env, GRAFT_UNSUPPORTED,
                              "set %s: input %s has more than %d elements", space->set->name,
                              input->name, GRAFT_GEN_MAX_ELEMENTS);
        }
        GRAFT_PASS(intern_shape(space, &input->shape, &value.shape));
        graft_field *data = draw_input(space, i);
        value.hash = graft_gen_data_print(&input->shape, data, space->sample_count).hash;
        uint32_t number = add_value(space, &value);
        space->data[number] = data;
    }
    GRAFT_PASS(list_renamings(space));
    graft_gen_images_extend(space);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- closures */

bool graft_gen_closure_add(graft_gen_closure *closure, uint32_t node)
{
    uint32_t at = closure->count;
    while (at > 0 && closure->nodes[at - 1] > node) {
        at--;
    }
    if (at > 0 && closure->nodes[at - 1] == node) {
        return true;
    }
    if (closure->count == GRAFT_GEN_MAX_CLOSURE) {
        return false;
    }
    memmove(&closure->nodes[at + 1], &closure->nodes[at],
            (closure->count - at) * sizeof closure->nodes[0]);
    closure->nodes[at] = node;
    closure->count++;
    return true;
}

static bool close_value(const graft_gen_space *space, uint32_t value, graft_gen_closure *closure)
{
    uint32_t node = space->values[value].node;
    return node == GRAFT_GEN_NONE || graft_gen_closure_of_node(space, node, closure);
}

bool graft_gen_closure_of_node(const graft_gen_space *space, uint32_t number,
                               graft_gen_closure *closure)
{
    const graft_gen_node *node = &space->nodes[number];
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS && node->args[i] != GRAFT_GEN_NONE; i++) {
        if (!close_value(space, node->args[i], closure)) {
            return false;
        }
    }
    return graft_gen_closure_add(closure, number);
}

uint32_t graft_gen_count_live(const graft_gen_space *space, const graft_gen_closure *closure)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < closure->count; i++) {
        count += graft_gen_is_of_weights(space, &space->nodes[closure->nodes[i]]) ? 0 : 1;
    }
    return count;
}

static bool closure_reads(const graft_gen_space *space, const graft_gen_closure *closure,
                          uint32_t node, uint32_t slot)
{
    uint32_t value = space->nodes[node].outs[slot];
    if (space->values[value].node != node || space->values[value].slot != slot) {
        return false; /* Whoever reads this value reads it from its representative. */
    }
    for (uint32_t i = 0; i < closure->count; i++) {
        for (uint32_t k = 0; k < GRAFT_MAX_INPUTS; k++) {
            if (space->nodes[closure->nodes[i]].args[k] == value) {
                return true;
            }
        }
    }
    return false;
}

uint32_t graft_gen_closure_outputs(const graft_gen_space *space, const graft_gen_closure *closure,
                                   uint32_t *outputs, uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < closure->count; i++) {
        const graft_gen_node *node = &space->nodes[closure->nodes[i]];
        for (uint32_t o = 0; o < space->set->configs[node->config].output_count; o++) {
            if (!closure_reads(space, closure, closure->nodes[i], o)) {
                if (count < capacity) {
                    outputs[count] = closure->nodes[i] * GRAFT_MAX_OUTPUTS + o;
                }
                count++;
            }
        }
    }
    return count;
}
