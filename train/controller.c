/* controller.c - see controller.h. */
#include "train/controller.h"

#include "train/kernels.h"
#include "train/losses.h"
#include "train/numeric.h"

#include <assert.h>
#include <string.h>

static const float relu_gain = 1.41421356F;
static const float head_gain = 0.05F;
static const float noop_bias = -2.0F;

graft_controller_size graft_controller_defaults(graft_controller_size size)
{
    size.locations = size.locations == 0 ? GRAFT_LOCATIONS_DEFAULT : size.locations;
    size.hidden = size.hidden == 0 ? 64 : size.hidden;
    size.layers = size.layers == 0 ? 2 : size.layers;
    size.xfer_embedding = size.xfer_embedding == 0 ? 16 : size.xfer_embedding;
    return size;
}

static void add_parameters(graft_controller *controller)
{
    static const char *const names[6][2] = {
        {"trunk0.weight",         "trunk0.bias"        },
        {"trunk1.weight",         "trunk1.bias"        },
        {"xfer.weight",           "xfer.bias"          },
        {"location.trunk.weight", "location.trunk.bias"},
        {"location.weight",       "location.bias"      },
        {"value.weight",          "value.bias"         },
    };
    const graft_controller_size *size = &controller->size;
    graft_parameters *set = &controller->parameters;
    uint32_t inputs = size->latent + (size->counts_input ? size->xfers : 0);
    uint32_t hidden = size->hidden;
    for (uint32_t k = 0; k < size->layers; k++) {
        controller->trunk[k] =
            graft_parameters_layer(set, names[k], k == 0 ? inputs : hidden, hidden, relu_gain);
    }
    controller->xfer_head =
        graft_parameters_layer(set, names[2], hidden, size->xfers + 1, head_gain);
    controller->xfer_table =
        graft_parameters_add(set, "xfers", size->xfers + 1, size->xfer_embedding, 1.0F);
    controller->location_trunk =
        graft_parameters_layer(set, names[3], hidden + size->xfer_embedding, hidden, relu_gain);
    controller->location_head =
        graft_parameters_layer(set, names[4], hidden, size->locations, head_gain);
    controller->value_head = graft_parameters_layer(set, names[5], hidden, 1, head_gain);
}

void graft_controller_init(graft_controller *controller, graft_arena *arena,
                           const graft_controller_size *size, uint64_t seed)
{
    assert(size->latent > 0 && size->xfers > 0 && size->locations > 0);
    assert(size->layers == 1 || size->layers == 2);
    controller->size = *size;
    graft_parameters_init(&controller->parameters, "controller");
    add_parameters(controller);
    graft_parameters_seal(&controller->parameters, arena, seed);
    graft_parameters_value(&controller->parameters, controller->xfer_head.bias)[size->xfers] =
        noop_bias;
    controller->value_scale = GRAFT_NEW(arena, float, 1);
}

/* -------------------------------------------------------------------------------------- forward */

/* (rows, xfers + 1): 1 where a choice is legal. */
static const uint8_t *mask_xfers(const graft_controller *controller, graft_arena *arena,
                                 const graft_controller_states *states)
{
    size_t xfers = controller->size.xfers;
    uint8_t *mask = GRAFT_NEW(arena, uint8_t, states->rows * (xfers + 1));
    for (size_t i = 0; i < states->rows; i++) {
        for (size_t x = 0; x < xfers; x++) {
            mask[i * (xfers + 1) + x] = states->counts[i * xfers + x] > 0 ? 1 : 0;
        }
        mask[i * (xfers + 1) + xfers] = 1;
    }
    return mask;
}

/* z, and log(1 + counts) if they are part of the input. */
static const graft_matrix *describe(const graft_controller *controller, graft_tape *tape,
                                    const graft_controller_states *states)
{
    const graft_controller_size *size = &controller->size;
    const graft_matrix *z = graft_tape_constant(tape, states->z, states->rows, size->latent);
    if (!size->counts_input) {
        return z;
    }
    size_t count = (size_t)states->rows * size->xfers;
    float *logs = GRAFT_NEW(tape->arena, float, count);
    for (size_t k = 0; k < count; k++) {
        logs[k] = graft_log(1.0F + (float)states->counts[k]);
    }
    const graft_matrix *parts[2] = {z, graft_tape_constant(tape, logs, states->rows, size->xfers)};
    return graft_concat(tape, parts, 2);
}

graft_controller_view graft_controller_apply(const graft_controller *controller, graft_tape *tape,
                                             const graft_controller_states *states)
{
    const graft_parameters *set = &controller->parameters;
    const graft_matrix *t = describe(controller, tape, states);
    for (uint32_t k = 0; k < controller->size.layers; k++) {
        t = graft_relu(tape, graft_layer_apply(tape, set, controller->trunk[k], t));
    }
    const uint8_t *mask = mask_xfers(controller, tape->arena, states);
    const graft_matrix *logits = graft_layer_apply(tape, set, controller->xfer_head, t);
    return (graft_controller_view){
        .trunk = t,
        .log_p = graft_log_softmax(tape, logits, mask),
        .value = graft_layer_apply(tape, set, controller->value_head, t),
        .mask = mask,
    };
}

/* (rows, locations): the first `count` of the row's xfer, at least one. */
static const uint8_t *mask_locations(const graft_controller *controller, graft_arena *arena,
                                     const graft_controller_states *states, const uint32_t *xfer)
{
    size_t xfers = controller->size.xfers;
    size_t locations = controller->size.locations;
    uint8_t *mask = GRAFT_NEW(arena, uint8_t, states->rows * locations);
    for (size_t i = 0; i < states->rows; i++) {
        assert(xfer[i] <= xfers);
        size_t count = xfer[i] < xfers ? states->counts[i * xfers + xfer[i]] : 1;
        count = count < locations ? count : locations;
        memset(mask + i * locations, 1, count > 0 ? count : 1);
    }
    return mask;
}

graft_location_view graft_controller_locate(const graft_controller *controller, graft_tape *tape,
                                            const graft_controller_states *states,
                                            const graft_matrix *trunk, const uint32_t *xfer)
{
    const graft_parameters *set = &controller->parameters;
    const graft_matrix *table = graft_tape_parameter(tape, set, controller->xfer_table);
    const graft_matrix *parts[2] = {trunk, graft_gather_rows(tape, table, xfer, states->rows)};
    const graft_matrix *u =
        graft_relu(tape, graft_layer_apply(tape, set, controller->location_trunk,
                                           graft_concat(tape, parts, 2)));
    const uint8_t *mask = mask_locations(controller, tape->arena, states, xfer);
    const graft_matrix *logits = graft_layer_apply(tape, set, controller->location_head, u);
    return (graft_location_view){graft_log_softmax(tape, logits, mask), mask};
}

/* --------------------------------------------------------------------------------------- acting */

/* A legal column of a row of log-probabilities: drawn, or the most likely one without `rng`. */
static uint32_t choose(const float *log_p, const uint8_t *mask, uint32_t cols, graft_rng *rng)
{
    float left = rng == NULL ? 0.0F : (float)graft_rng_uniform(rng);
    uint32_t best = cols;
    for (uint32_t j = 0; j < cols; j++) {
        if (mask[j] == 0) {
            continue;
        }
        best = best == cols || log_p[j] > log_p[best] ? j : best;
        if (rng == NULL) {
            continue;
        }
        left -= graft_exp(log_p[j]);
        if (left < 0.0F) {
            return j;
        }
    }
    assert(best < cols);
    return best; /* When drawing, only by rounding. */
}

void graft_controller_act(const graft_controller *controller, graft_arena *scratch,
                          const graft_controller_states *states, graft_rng *rng,
                          const graft_controller_choice *choice)
{
    graft_mark mark = graft_arena_mark(scratch);
    graft_tape tape;
    graft_tape_init(&tape, scratch, false);
    graft_tape_bind(&tape, &controller->parameters, NULL);
    uint32_t cols = controller->size.xfers + 1;
    uint32_t *xfer = GRAFT_NEW(scratch, uint32_t, states->rows);
    graft_controller_view view = graft_controller_apply(controller, &tape, states);
    for (size_t i = 0; i < states->rows; i++) {
        const float *row = view.log_p->value + i * cols;
        xfer[i] = choose(row, view.mask + i * cols, cols, rng == NULL ? NULL : &rng[i]);
        choice->xfer[i] = (uint16_t)xfer[i];
        choice->log_p[i] = row[xfer[i]];
        choice->value[i] = view.value->value[i] *
                           (*controller->value_scale > 0.0F ? *controller->value_scale : 1.0F);
    }
    graft_location_view where =
        graft_controller_locate(controller, &tape, states, view.trunk, xfer);
    size_t locations = controller->size.locations;
    for (size_t i = 0; i < states->rows; i++) {
        const float *row = where.log_p->value + i * locations;
        uint32_t at = choose(row, where.mask + i * locations, controller->size.locations,
                             rng == NULL ? NULL : &rng[i]);
        choice->location[i] = (uint16_t)at;
        choice->log_p[i] += row[at];
    }
    graft_arena_release(scratch, mark);
}
