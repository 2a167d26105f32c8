/* tariff.c - see tariff.h. */
#include "train/tariff/tariff.h"

#include "cost/measure/clock.h"
#include "graph/equal.h"
#include "train/search/appraisal.h"
#include "train/tariff/tariff_trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 1024, SEEDS_MOST = 1000, ROW_BYTES = 6 };

/* What is cheaper costs as much to the fallback: rows that are a view in most contexts. */
static const double least_ns = 10.0;

/* ------------------------------------------------------------------- book */

void graft_book_open(graft_arena *arena, graft_book *book) { *book = (graft_book){.arena = arena}; }

static uint64_t hash_of(uint64_t form, uint32_t model)
{
    return form ^ (uint64_t)model * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_row(const void *book, uint32_t i)
{
    const graft_book_row *row = &((const graft_book *)book)->rows[i];
    return hash_of(row->hash, row->model);
}

/* NULL: there is none. */
static graft_book_row *find_row(const graft_book *book, uint64_t form, uint32_t model)
{
    GRAFT_EACH_ALIKE(&book->table, hash_of(form, model), i)
    {
        if (book->rows[i].hash == form && book->rows[i].model == model) {
            return &book->rows[i];
        }
    }
    return NULL;
}

static graft_book_row *obtain_row(graft_book *book, uint64_t form, uint32_t model)
{
    graft_book_row *row = find_row(book, form, model);
    if (row == NULL) {
        graft_table_reserve(book->arena, &book->table, book, hash_row);
        graft_table_insert(&book->table, hash_of(form, model), book->row_count);
        row = &GRAFT_PUSH(book->arena, book->rows, book->row_count, book->row_capacity, FIRST_ROWS);
        *row = (graft_book_row){.hash = form, .model = model};
    }
    return row;
}

/* Where a node is met. */
typedef struct {
    uint32_t model;
    uint32_t contexts;
    double total_ns;
    graft_estimator forms; /* Knows how far away weights lie. */
} setting;

static void note_node(graft_book *book, const setting *at, graft_index node,
                      const graft_cost_node *cost)
{
    graft_form form;
    graft_estimator_form(&at->forms, node, &form);
    graft_book_row *row = obtain_row(book, graft_form_hash(&form), at->model);
    if (row->count >= at->contexts) {
        return;
    }
    if (row->inputs == NULL) {
        row->inputs = GRAFT_NEW(book->arena, int16_t, GRAFT_TARIFF_INPUTS);
        graft_tariff_inputs(&form, row->inputs);
    }
    row->count++;
    row->sum_ns += cost->ns;
    row->share += 1.0 / at->total_ns;
}

graft_status graft_book_note(graft_env *env, graft_book *book, graft_cost *cost,
                             const graft_state *state, uint32_t model, uint32_t contexts)
{
    GRAFT_SCOPED(env->scratch);
    const graft_graph *graph = &state->graph;
    graft_cost_node *by_node = GRAFT_NEW(env->scratch, graft_cost_node, graph->node_end);
    graft_cost_total total;
    GRAFT_PASS(graft_cost_nodes(env, cost, graph, &state->order, by_node, &total));
    const graft_index *same = graft_equal_find(env->scratch, graph, &state->order);
    static const graft_tariff no_tariff;
    setting at = {model, contexts, total.ns, {0}};
    graft_estimated estimated;
    GRAFT_PASS(graft_estimator_make(env, env->scratch, &no_tariff, &graph->limits, &at.forms));
    GRAFT_PASS(graft_estimate_state(env, &at.forms, state, &estimated));
    for (graft_index i = 0; i < state->order.count; i++) {
        graft_index n = state->order.order[i];
        if (!graph->nodes[n].is_const && !graft_equal_is_merged(graph, same, n)) {
            note_node(book, &at, n, &by_node[n]);
        }
    }
    book->priced++;
    return GRAFT_OK;
}

bool graft_book_wants(const graft_book *book, const graft_graph *graph, const graft_rule *rule,
                      const graft_made *made, uint32_t model, uint32_t contexts)
{
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        graft_form form;
        if (made->nodes[n].node.is_const) {
            continue;
        }
        graft_form_of_made(graph, made, n, &form);
        const graft_book_row *row = find_row(book, graft_form_hash(&form), model);
        if (row == NULL || row->count < contexts) {
            return true;
        }
    }
    return false;
}

void graft_book_pack(const graft_book *book, graft_buffer *packed)
{
    graft_buffer_append(packed, &book->priced, sizeof book->priced);
    for (uint32_t i = 0; i < book->row_count; i++) {
        graft_book_row row = book->rows[i];
        row.inputs = NULL;
        graft_buffer_append(packed, &row, sizeof row);
        graft_buffer_append(packed, book->rows[i].inputs, GRAFT_TARIFF_INPUTS * sizeof(int16_t));
    }
}

void graft_book_add(graft_book *book, const void *packed, size_t bytes)
{
    const uint8_t *at = packed;
    const uint8_t *end = at + bytes;
    uint64_t priced = 0;
    memcpy(&priced, at, sizeof priced);
    book->priced += priced;
    for (at += sizeof priced; at < end; at += GRAFT_TARIFF_INPUTS * sizeof(int16_t)) {
        graft_book_row row;
        memcpy(&row, at, sizeof row);
        at += sizeof row;
        row.inputs =
            GRAFT_COPY(book->arena, (const int16_t *)(const void *)at, GRAFT_TARIFF_INPUTS);
        *obtain_row(book, row.hash, row.model) = row;
    }
}

/* ------------------------------------------------------------------- rows */

/* A row of the table to be. */
typedef struct {
    uint64_t hash;
    double ns;
    double share;
    double worth;
    const int16_t *inputs;
    uint32_t key;
    uint16_t value;
} made_row;

static int compare_hashes(const void *a, const void *b)
{
    const made_row *x = a;
    const made_row *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_worth(const void *a, const void *b)
{
    const made_row *x = a;
    const made_row *y = b;
    int by_worth = (x->worth < y->worth) - (x->worth > y->worth);
    return by_worth != 0 ? by_worth : compare_hashes(a, b);
}

static int compare_keys(const void *a, const void *b)
{
    const made_row *x = a;
    const made_row *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

uint16_t graft_tariff_encode(double ns)
{
    double value = ns > 0.0 ? 1.0 + 1024.0 * log2(ns * GRAFT_COST_UNITS) : 0.0;
    return (uint16_t)lrint(fmin(fmax(value, ns > 0.0 ? 1.0 : 0.0), 47.0 * 1024.0));
}

/* The rows of the chosen models, those of one form joined: the mean over all contexts. */
static made_row *join_rows(graft_arena *arena, const graft_book *book, uint64_t models,
                           uint32_t *count)
{
    made_row *rows = GRAFT_NEW(arena, made_row, book->row_count);
    uint32_t *contexts = GRAFT_NEW(arena, uint32_t, book->row_count);
    uint32_t listed = 0;
    *count = 0;
    for (uint32_t i = 0; i < book->row_count; i++) {
        const graft_book_row *row = &book->rows[i];
        if ((models >> row->model & 1U) != 0 && row->count > 0) {
            rows[listed++] = (made_row){.hash = row->hash,
                                        .ns = row->sum_ns,
                                        .share = row->share,
                                        .inputs = row->inputs,
                                        .key = row->count};
        }
    }
    qsort(rows, listed, sizeof *rows, compare_hashes);
    for (uint32_t i = 0; i < listed; i++) {
        if (*count > 0 && rows[*count - 1].hash == rows[i].hash) {
            rows[*count - 1].ns += rows[i].ns;
            rows[*count - 1].share += rows[i].share;
            contexts[*count - 1] += rows[i].key;
        } else {
            contexts[*count] = rows[i].key;
            rows[(*count)++] = rows[i];
        }
    }
    for (uint32_t i = 0; i < *count; i++) {
        rows[i].ns /= (double)contexts[i];
        rows[i].value = graft_tariff_encode(rows[i].ns);
    }
    return rows;
}

/* Gives the rows keys that no two forms share, by the first seed that does. */
static bool choose_seed(made_row *rows, uint32_t count, graft_tariff *tariff)
{
    for (tariff->seed = 0; tariff->seed < SEEDS_MOST; tariff->seed++) {
        bool apart = true;
        for (uint32_t i = 0; i < count; i++) {
            rows[i].key = graft_tariff_key(tariff->seed, rows[i].hash);
        }
        qsort(rows, count, sizeof *rows, compare_keys);
        for (uint32_t i = 1; apart && i < count; i++) {
            apart = rows[i - 1].key != rows[i].key;
        }
        if (apart) {
            return true;
        }
    }
    return false;
}

static void fill_rows(graft_arena *arena, const made_row *rows, uint32_t count,
                      graft_tariff *tariff)
{
    uint32_t *keys = GRAFT_NEW(arena, uint32_t, count);
    uint16_t *values = GRAFT_NEW(arena, uint16_t, count);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = rows[i].key;
        values[i] = rows[i].value;
    }
    tariff->keys = keys;
    tariff->values = values;
    tariff->row_count = count;
}

/* --------------------------------------------------------------- fallback */

static uint16_t value_of(double ns) { return graft_tariff_encode(fmax(ns, least_ns)); }

/* What need not move a number. */
static bool is_still(const made_row *row) { return row->inputs[GRAFT_TARIFF_STILL] != 0; }

/* The median of what need not move a number: on a device with views nearly nothing, on another one
 * what a copy takes. */
static uint16_t still_value(graft_arena *scratch, const made_row *rows, uint32_t count)
{
    double *values = GRAFT_NEW(scratch, double, count);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_still(&rows[i])) {
            values[listed++] = rows[i].ns;
        }
    }
    qsort(values, listed, sizeof values[0], graft_compare_doubles);
    return listed > 0 ? graft_tariff_encode(values[listed / 2]) : 0;
}

/* The form that a signature is of, whatever its layouts. */
static bool form_of_signature(const graft_signature *signature,
                              graft_shape outputs[GRAFT_MAX_OUTPUTS], graft_form *form)
{
    if (graft_op(signature->op) == NULL ||
        graft_signature_outputs(signature, outputs) != GRAFT_OK) {
        return false;
    }
    *form = (graft_form){.attrs = signature->attrs,
                         .op = signature->op,
                         .input_count = signature->input_count,
                         .output_count = signature->output_count,
                         .const_mask = signature->const_mask,
                         .bytes = graft_signature_bytes(signature),
                         .reach = graft_distance_place(signature->distance)};
    for (uint32_t i = 0; i < signature->input_count; i++) {
        bool is_const = (signature->const_mask >> i & 1U) != 0;
        uint64_t elements = graft_shape_elements(&signature->inputs[i]);
        form->inputs[i] = &signature->inputs[i];
        form->weight = is_const && form->weight == NULL ? form->inputs[i] : form->weight;
        form->input_elements += is_const ? 0 : elements;
        form->weight_elements += is_const ? elements : 0;
    }
    for (uint32_t i = 0; i < signature->output_count; i++) {
        form->outputs[i] = &outputs[i];
    }
    return true;
}

/* What the database has measured, of each form and reach the cheapest way. What need not move a
 * number was measured as a copy; only graphs tell when it is none. */
static made_row *list_measured(graft_arena *arena, const graft_database *database, uint32_t *count)
{
    uint32_t records = graft_database_count(database);
    made_row *rows = GRAFT_NEW(arena, made_row, records);
    uint32_t listed = 0;
    *count = 0;
    for (uint32_t i = 0; i < records; i++) {
        const graft_database_record *record = graft_database_at(database, i);
        graft_shape outputs[GRAFT_MAX_OUTPUTS];
        graft_form form;
        const graft_cost_entry *entry = graft_database_find(database, &record->signature);
        if (entry == &record->entry && form_of_signature(&record->signature, outputs, &form)) {
            int16_t *inputs = GRAFT_NEW(arena, int16_t, GRAFT_TARIFF_INPUTS);
            graft_tariff_inputs(&form, inputs);
            rows[listed] = (made_row){.hash = graft_form_hash(&form) + form.reach,
                                      .ns = entry->median_ns,
                                      .inputs = inputs};
            listed += !is_still(&rows[listed]);
        }
    }
    qsort(rows, listed, sizeof *rows, compare_hashes);
    for (uint32_t i = 0; i < listed; i++) {
        if (*count > 0 && rows[*count - 1].hash == rows[i].hash) {
            rows[*count - 1].ns = fmin(rows[*count - 1].ns, rows[i].ns);
        } else {
            rows[(*count)++] = rows[i];
        }
    }
    return rows;
}

static void grow_fallback(graft_env *env, graft_arena *arena, const graft_tariff_options *options,
                          const made_row *rows, uint32_t count, graft_tariff *tariff)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t measured_count = 0;
    const made_row *measured =
        options->database == NULL ? NULL
                                  : list_measured(env->scratch, options->database, &measured_count);
    graft_tariff_sample *samples =
        GRAFT_NEW(env->scratch, graft_tariff_sample, (size_t)count + measured_count);
    uint32_t sample_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_still(&rows[i])) {
            samples[sample_count++] = (graft_tariff_sample){rows[i].inputs, value_of(rows[i].ns)};
        }
    }
    for (uint32_t i = 0; i < measured_count; i++) {
        samples[sample_count++] =
            (graft_tariff_sample){measured[i].inputs, value_of(measured[i].ns)};
    }
    uint32_t trees = options->bytes_most / 2 / GRAFT_TREE_BYTES;
    trees = options->bytes_most == 0 || options->trees < trees ? options->trees : trees;
    graft_tariff_grow(env, arena, samples, sample_count, trees, tariff);
    tariff->still = still_value(env->scratch, rows, count);
}

/* ------------------------------------------------------------------ tariff */

uint32_t graft_tariff_bytes(const graft_tariff *tariff)
{
    return tariff->row_count * ROW_BYTES + tariff->tree_count * (uint32_t)GRAFT_TREE_BYTES;
}

/* The rows that are kept, those worth most first: what graphs would be misjudged by without. */
static uint32_t choose_rows(const graft_tariff_options *options, const graft_tariff *tariff,
                            made_row *rows, uint32_t count)
{
    uint32_t used = graft_tariff_bytes(tariff);
    if (!options->rows || (options->bytes_most > 0 && used >= options->bytes_most)) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        double guess =
            tariff->tree_count == 0
                ? 0.0
                : (double)graft_tariff_value(graft_tariff_guess(tariff, rows[i].inputs).value) /
                      GRAFT_COST_UNITS;
        rows[i].worth = rows[i].share * fabs(rows[i].ns - guess);
    }
    qsort(rows, count, sizeof *rows, compare_worth);
    uint32_t room = (options->bytes_most - used) / ROW_BYTES;
    return options->bytes_most == 0 || count < room ? count : room;
}

graft_status graft_tariff_make(graft_env *env, graft_arena *arena, const graft_book *book,
                               const graft_tariff_options *options, graft_tariff *tariff)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    *tariff = (graft_tariff){.seed = 0};
    made_row *rows = join_rows(env->scratch, book, options->models, &count);
    if (options->trees > 0 && count > 0) {
        grow_fallback(env, arena, options, rows, count, tariff);
    }
    if (!choose_seed(rows, count, tariff)) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "no seed keeps the keys of %u rows apart", count);
    }
    count = choose_rows(options, tariff, rows, count);
    qsort(rows, count, sizeof *rows, compare_keys);
    fill_rows(arena, rows, count, tariff);
    return GRAFT_OK;
}
