/* supply.c - see supply.h. */
#include "cost/plan/supply.h"

#include "graph/base/log.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, BLOCK = 16, SIZE_MOST = 8192, TRIES = 40 };

/* Larger operators take seconds to measure. */
static const uint64_t flops_most = UINT64_C(1) << 31;
static const uint64_t bytes_most = UINT64_C(1) << 26;

graft_status graft_cost_supply(graft_env *env, graft_cost *cost, const graft_signature *signatures,
                               uint32_t count)
{
    graft_status status = GRAFT_OK;
    graft_measure_options options = graft_measure_options_default();
    graft_progress progress;
    options.quiet = true;
    graft_progress_start(&progress, env, "measuring", "signatures", count);
    for (uint32_t i = 0; i < count; i += CHUNK) {
        uint32_t some = count - i < CHUNK ? count - i : CHUNK;
        status = graft_cost_measure(env, cost, &signatures[i], some, &options);
        if (status == GRAFT_OK || status == GRAFT_INTERRUPTED) {
            graft_status saved = graft_cost_save(env, cost);
            status = status == GRAFT_OK ? saved : status;
        }
        GRAFT_CHECK(status);
        graft_progress_update(&progress, i + some, NULL);
    }
done:
    graft_progress_finish(&progress);
    return status;
}

/* ------------------------------------------------------------------ variety */

/* Between a third and three times as much. */
static int32_t vary_size(int32_t size, graft_rng *rng)
{
    int32_t unit = size % BLOCK == 0 ? BLOCK : 1;
    int32_t least = size / 3 / unit > 0 ? size / 3 / unit : 1;
    int32_t most = 3 * size / unit;
    return unit * (least + (int32_t)graft_rng_below(rng, (uint32_t)(most - least + 1)));
}

static void replace_size(graft_signature *s, int32_t from, int32_t to)
{
    for (uint32_t i = 0; i < s->input_count; i++) {
        for (uint32_t k = 0; k < s->inputs[i].rank; k++) {
            int32_t *size = &s->inputs[i].dims[k];
            *size = *size == from ? to : *size;
        }
    }
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) { /* Groups of depthwise convolutions. */
        const graft_attr_info *info = graft_op_attr(s->op, i);
        bool is_size = info != NULL && strcmp(info->name, "groups") == 0;
        s->attrs[i] = is_size && s->attrs[i] == from ? to : s->attrs[i];
    }
}

bool graft_signature_vary(const graft_signature *from, graft_rng *rng, graft_signature *to)
{
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    graft_signature varied;
    memcpy(&varied, from, sizeof varied);
    if (graft_op(from->op) == NULL || from->input_count == 0) {
        return false;
    }
    for (uint32_t n = 1 + graft_rng_below(rng, 2); n > 0; n--) {
        /* Some size of the operands. */
        const graft_shape *shape = &varied.inputs[graft_rng_below(rng, varied.input_count)];
        int32_t size = shape->rank == 0 ? 1 : shape->dims[graft_rng_below(rng, shape->rank)];
        if (size > 1 && size <= SIZE_MOST) {
            replace_size(&varied, size, vary_size(size, rng));
        }
    }
    if (graft_signature_equal(&varied, from) ||
        graft_signature_outputs(&varied, outputs) != GRAFT_OK ||
        graft_signature_flops(&varied) > flops_most ||
        graft_signature_bytes(&varied) > bytes_most) {
        return false;
    }
    memcpy(to, &varied, sizeof varied);
    return true;
}

/* The records of the cost's device that can be varied, in an order of their own. */
static graft_signature *list_records(graft_env *env, const graft_cost *cost,
                                     const graft_database *from, uint32_t *count)
{
    const char *device = graft_device_name(graft_cost_device(cost));
    graft_signature *list = GRAFT_NEW(env->scratch, graft_signature, graft_database_count(from));
    *count = 0;
    for (uint32_t i = 0; i < graft_database_count(from); i++) {
        const graft_database_record *record = graft_database_at(from, i);
        if (strcmp(record->device, device) == 0 && graft_op(record->signature.op) != NULL) {
            list[(*count)++] = record->signature;
        }
    }
    qsort(list, *count, sizeof *list, graft_signature_compare);
    return list;
}

const graft_signature *graft_supply_draw(const graft_signature *list, uint32_t count, uint64_t turn,
                                         graft_rng *rng)
{
    uint32_t of_op[UINT8_MAX + 1] = {0};
    uint32_t ops = 0;
    uint32_t op = 0;
    if (turn % 2 == 0) {
        return &list[graft_rng_below(rng, count)];
    }
    for (uint32_t i = 0; i < count; i++) {
        ops += of_op[list[i].op]++ == 0;
    }
    for (uint32_t skip = graft_rng_below(rng, ops); of_op[op] == 0 || skip-- > 0;) {
        op++;
    }
    uint32_t at = 0;
    for (uint32_t skip = graft_rng_below(rng, of_op[op]); list[at].op != op || skip-- > 0;) {
        at++;
    }
    return &list[at];
}

graft_status graft_cost_supply_random(graft_env *env, graft_cost *cost, const graft_database *from,
                                      uint32_t wanted, uint64_t seed, uint32_t *count)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    uint32_t known = 0;
    const graft_signature *list = list_records(env, cost, from, &known);
    graft_signature *drawn = GRAFT_NEW(env->scratch, graft_signature, wanted);
    const graft_cost_entry entry = {.median_ns = 1.0, .rounds = 1};
    graft_database *met = NULL; /* What has been drawn. */
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    *count = 0;
    GRAFT_CHECK(graft_database_open(env, NULL, &met));
    graft_database_select(met, "drawn", "drawn");
    for (uint64_t i = 0; known > 0 && *count < wanted && i < (uint64_t)TRIES * wanted; i++) {
        graft_signature varied;
        if (graft_signature_vary(graft_supply_draw(list, known, i, &rng), &rng, &varied) &&
            bsearch(&varied, list, known, sizeof *list, graft_signature_compare) == NULL &&
            graft_database_find(met, &varied) == NULL) {
            graft_database_add(met, &varied, &entry);
            drawn[(*count)++] = varied;
        }
    }
    GRAFT_CHECK(graft_cost_supply(env, cost, drawn, *count));
done:
    graft_database_close(met);
    return status;
}
