/* confirm.c - see confirm.h. */
#include "cost/measure/confirm.h"

#include "cost/measure/clock.h"

#include <math.h>
#include <string.h>

static const double told_apart_spreads = 2.0;
static const double least_spread = 0.01; /* Relative: nothing is measured better. */

/* relu(x) and max(x, constant): one loop. */
static bool is_floor(const graft_signature *s)
{
    return s->op == GRAFT_OP_relu ||
           (s->op == GRAFT_OP_max && graft_shape_elements(&s->inputs[1]) == 1);
}

bool graft_kin_is(const graft_signature *a, const graft_signature *b)
{
    bool products = graft_signature_is_product(a) && graft_signature_is_product(b);
    bool floors = is_floor(a) && is_floor(b);
    return (products || floors || a->op == b->op) && a->op != GRAFT_COST_FACTOR &&
           a->distance == b->distance && graft_shape_equal(&a->inputs[0], &b->inputs[0]) &&
           (!products || graft_shape_equal(&a->inputs[1], &b->inputs[1]));
}

/* Attributes but for the activation, which is the last one where there is one. */
static uint32_t own_attrs(const graft_signature *s)
{
    bool active = s->op == GRAFT_OP_conv_bias || s->op == GRAFT_OP_conv_bias_add ||
                  s->op == GRAFT_OP_matmul_bias;
    return graft_op(s->op)->attr_count - (active ? 1u : 0u);
}

bool graft_kin_are_twins(const graft_signature *a, const graft_signature *b)
{
    bool candidate = graft_signature_is_product(a) || (is_floor(a) && is_floor(b));
    if (!candidate || !graft_kin_is(a, b) || own_attrs(a) != own_attrs(b)) {
        return false;
    }
    /* A sum into another place copies first. */
    bool copies = (a->op == GRAFT_OP_conv_bias_add && a->in_place == 0) ||
                  (b->op == GRAFT_OP_conv_bias_add && b->in_place == 0);
    return (!copies || a->op == b->op) && a->in_layouts[0] == b->in_layouts[0] &&
           a->out_layouts[0] == b->out_layouts[0] &&
           memcmp(a->attrs, b->attrs, own_attrs(a) * sizeof(a->attrs[0])) == 0;
}

/* How fast the machine was when entries were recorded, as a part of how fast it is now. */
static double find_level(graft_arena *scratch, const graft_cost_entry *known,
                         const graft_cost_entry *entries, uint32_t count)
{
    double *ratios = GRAFT_NEW(scratch, double, count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].rounds > 0) {
            ratios[found++] = known[i].median_ns / entries[i].median_ns;
        }
    }
    return found == 0 ? 1.0 : graft_cost_quantile(ratios, found, 0.5);
}

static double spread_of(const graft_cost_entry *entry)
{
    return fmax(entry->spread_ns, entry->median_ns * least_spread);
}

static bool are_apart(const graft_cost_entry *a, const graft_cost_entry *b)
{
    return fabs(a->median_ns - b->median_ns) >
           told_apart_spreads * fmax(spread_of(a), spread_of(b));
}

/* The weighted mean of an entry and those of its twins that cannot be told from it. */
static double mean_of_twins(const graft_signature *kin, const graft_cost_entry *entries,
                            uint32_t count, uint32_t of)
{
    double sum_ns = 0.0;
    double weights = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].rounds > 0 && graft_kin_are_twins(&kin[of], &kin[i]) &&
            !are_apart(&entries[of], &entries[i])) {
            double spread_ns = spread_of(&entries[i]);
            sum_ns += entries[i].median_ns / (spread_ns * spread_ns);
            weights += 1.0 / (spread_ns * spread_ns);
        }
    }
    return weights > 0.0 ? sum_ns / weights : entries[of].median_ns;
}

void graft_kin_settle(graft_arena *scratch, const graft_signature *kin,
                      const graft_cost_entry *known, graft_cost_entry *entries, uint32_t count)
{
    GRAFT_SCOPED(scratch);
    double level = find_level(scratch, known, entries, count);
    double *means = GRAFT_NEW(scratch, double, count);
    for (uint32_t i = 0; i < count; i++) {
        means[i] = mean_of_twins(kin, entries, count, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i].median_ns = graft_cost_round(means[i] * level);
        entries[i].spread_ns = graft_cost_round(entries[i].spread_ns * level);
    }
}

/* ------------------------------------------------------------------ leveling */

/* The measured records of the selected device that can have twins. */
static const graft_database_record **list_products(graft_arena *scratch,
                                                   const graft_database *database, uint32_t *count)
{
    const uint32_t records = graft_database_count(database);
    const graft_database_record **list = GRAFT_NEW(scratch, const graft_database_record *, records);
    *count = 0;
    for (uint32_t i = 0; i < records; i++) {
        const graft_database_record *r = graft_database_at(database, i);
        if (r->entry.source == GRAFT_COST_MEASURED && graft_op(r->signature.op) != NULL &&
            graft_database_selects(database, r)) {
            list[(*count)++] = r;
        }
    }
    return list;
}

uint32_t graft_kin_level(graft_arena *scratch, const graft_database *from, graft_database *to)
{
    GRAFT_SCOPED(scratch);
    uint32_t listed = 0;
    uint32_t changed = 0;
    const graft_database_record **list = list_products(scratch, from, &listed);
    graft_signature *twins = GRAFT_NEW(scratch, graft_signature, listed);
    graft_cost_entry *entries = GRAFT_NEW(scratch, graft_cost_entry, listed);
    for (uint32_t r = 0; r < listed; r++) {
        graft_cost_entry entry = list[r]->entry;
        uint32_t count = 0;
        uint32_t own = 0;
        for (uint32_t i = 0; i < listed; i++) {
            if (i == r || graft_kin_are_twins(&list[r]->signature, &list[i]->signature)) {
                own = i == r ? count : own;
                twins[count] = list[i]->signature;
                entries[count++] = list[i]->entry;
            }
        }
        if (count > 1) {
            entry.median_ns = graft_cost_round(mean_of_twins(twins, entries, count, own));
            graft_database_add(to, &list[r]->signature, &entry);
            changed += entry.median_ns < list[r]->entry.median_ns ||
                       entry.median_ns > list[r]->entry.median_ns;
        }
    }
    return changed;
}
