/* onnx_spell.c - see onnx_spell.h. */
#include "graph/onnx/onnx_spell.h"

#include "graph/onnx/onnx_winograd.h"
#include "graph/onnx/onnx_write.h"

#include <string.h>

enum { OPSET_SLICE_INPUTS = 10, IR_FREE_INITIALIZERS = 4 };

void graft_onnx_spelling_open(graft_arena *arena, const graft_onnx *onnx, graft_onnx_spelling *s)
{
    *s = (graft_onnx_spelling){.arena = arena, .onnx = onnx, .given = graft_names_new(arena)};
}

void graft_onnx_spell_node(graft_onnx_spelling *s, Onnx__NodeProto *node)
{
    GRAFT_PUSH(s->arena, s->nodes, s->node_count, s->node_capacity, 64) = node;
}

void graft_onnx_spell_tensor(graft_onnx_spelling *s, Onnx__TensorProto *tensor)
{
    GRAFT_PUSH(s->arena, s->tensors, s->tensor_count, s->tensor_capacity, 64) = tensor;
}

void graft_onnx_spell_own(graft_onnx_spelling *s, const Onnx__NodeProto *node, const char *x,
                          const char *y)
{
    Onnx__NodeProto *copy = GRAFT_COPY(s->arena, node, 1);
    copy->input = GRAFT_COPY(s->arena, node->input, node->n_input);
    copy->input[0] = graft_arena_strdup(s->arena, x);
    copy->output = GRAFT_NEW(s->arena, char *, 1);
    copy->output[0] = graft_arena_strdup(s->arena, y);
    graft_onnx_spell_node(s, copy);
}

/* -------------------------------------------------------------------------- file */

/* Names that are read: by what is written, by subgraphs of what stays, and as outputs. */
static graft_names *list_read(const graft_onnx_spelling *s)
{
    const Onnx__GraphProto *graph = s->onnx->proto->graph;
    graft_names *read = graft_names_new(s->arena);
    for (uint32_t i = 0; i < s->node_count; i++) {
        for (size_t k = 0; k < s->nodes[i]->n_input; k++) {
            (void)graft_names_add(read, s->nodes[i]->input[k], 0);
        }
    }
    for (uint32_t i = 0; i < s->onnx->node_count; i++) {
        for (uint32_t k = 0; k < s->onnx->groups[i].captured_count; k++) {
            const uint32_t entry = s->onnx->groups[i].captured[k];
            (void)graft_names_add(read, s->onnx->entries[entry].name, 0);
        }
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        (void)graft_names_add(read, text_or_empty(graph->output[i]->name), 0);
    }
    return read;
}

/* What was there and is still read or was not read before, and what is new. */
static void list_weights(const graft_onnx_spelling *s, Onnx__GraphProto *graph)
{
    const graft_names *read = list_read(s);
    graft_names *before = graft_names_new(s->arena);
    Onnx__TensorProto **all =
        GRAFT_NEW(s->arena, Onnx__TensorProto *, graph->n_initializer + s->tensor_count);
    size_t count = 0;
    for (uint32_t i = 0; i < s->onnx->node_count; i++) {
        const Onnx__NodeProto *node = s->onnx->proto->graph->node[i];
        for (size_t k = 0; k < node->n_input; k++) {
            (void)graft_names_add(before, node->input[k], 0);
        }
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = text_or_empty(graph->initializer[i]->name);
        if (graft_names_find(read, name) != GRAFT_NONE ||
            graft_names_find(before, name) == GRAFT_NONE) {
            all[count++] = graph->initializer[i];
        }
    }
    for (uint32_t i = 0; i < s->tensor_count; i++) {
        all[count++] = s->tensors[i];
    }
    graph->initializer = all;
    graph->n_initializer = count;
}

/* Shapes of what is still there. */
static void list_shapes(const graft_onnx_spelling *s, Onnx__GraphProto *graph)
{
    Onnx__ValueInfoProto **all = GRAFT_NEW(s->arena, Onnx__ValueInfoProto *, graph->n_value_info);
    graft_names *made = graft_names_new(s->arena);
    size_t count = 0;
    for (uint32_t i = 0; i < s->node_count; i++) {
        for (size_t k = 0; k < s->nodes[i]->n_output; k++) {
            (void)graft_names_add(made, s->nodes[i]->output[k], 0);
        }
    }
    for (size_t i = 0; i < graph->n_value_info; i++) {
        if (graft_names_find(made, text_or_empty(graph->value_info[i]->name)) != GRAFT_NONE) {
            all[count++] = graph->value_info[i];
        }
    }
    graph->value_info = all;
    graph->n_value_info = count;
}

void graft_onnx_spell_free_weights(graft_arena *arena, const graft_onnx *onnx,
                                   Onnx__ModelProto *proto)
{
    Onnx__GraphProto *graph = proto->graph;
    Onnx__ValueInfoProto **inputs = GRAFT_NEW(arena, Onnx__ValueInfoProto *, graph->n_input);
    size_t count = 0;
    if (proto->ir_version >= IR_FREE_INITIALIZERS) {
        return;
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        if (!graft_onnx_names_weight(onnx, graph->input[i]->name)) {
            inputs[count++] = graph->input[i];
        }
    }
    graph->input = inputs;
    graph->n_input = count;
    proto->has_ir_version = 1;
    proto->ir_version = IR_FREE_INITIALIZERS;
}

graft_status graft_onnx_spelling_write(graft_env *env, const graft_onnx_spelling *s,
                                       const char *path)
{
    Onnx__ModelProto proto = *s->onnx->proto;
    Onnx__GraphProto graph = *proto.graph;
    proto.graph = &graph;
    graph.node = s->nodes;
    graph.n_node = s->node_count;
    list_weights(s, &graph);
    list_shapes(s, &graph);
    graft_onnx_spell_free_weights(s->arena, s->onnx, &proto);
    return graft_onnx_write_message(env, path, &proto, false);
}

/* ------------------------------------------------------------------------- steps */

static bool is_taken(const graft_onnx_spelling *s, const char *name)
{
    return graft_names_find(s->onnx->names, name) != GRAFT_NONE ||
           graft_names_find(s->onnx->inner, name) != GRAFT_NONE ||
           !graft_names_add(s->given, name, 0);
}

const char *graft_onnx_spell_name(graft_onnx_spelling *s, const char *y, const char *part)
{
    const char *name = graft_arena_printf(s->arena, "%s/%s", y, part);
    for (uint32_t i = 1; is_taken(s, name); i++) {
        name = graft_arena_printf(s->arena, "%s/%s_%u", y, part, i);
    }
    return name;
}

const char *graft_onnx_spell_floats(graft_onnx_spelling *s, const char *y, const char *part,
                                    const float *data, const int64_t *dims, size_t rank)
{
    const char *name = graft_onnx_spell_name(s, y, part);
    graft_onnx_spell_tensor(
        s, graft_onnx_make_tensor(s->arena, name, GRAFT_DTYPE_F32, dims, rank, data));
    return name;
}

const char *graft_onnx_spell_ints(graft_onnx_spelling *s, const char *y, const char *part,
                                  const int64_t *items, size_t count, size_t rank)
{
    const int64_t dims[1] = {(int64_t)count};
    const char *name = graft_onnx_spell_name(s, y, part);
    int64_t *data = GRAFT_COPY(s->arena, items, count);
    graft_onnx_spell_tensor(
        s, graft_onnx_make_tensor(s->arena, name, GRAFT_DTYPE_I64, dims, rank, data));
    return name;
}

static float *new_table(graft_onnx_spelling *s, int64_t rows, int64_t columns)
{
    return GRAFT_NEW(s->arena, float, (size_t)rows *(size_t)columns);
}

/* A node of up to three inputs, up to the first NULL; its output is `out`. */
static Onnx__NodeProto *step_to(graft_onnx_spelling *s, const char *op, const char *a,
                                const char *b, const char *c, const char *out)
{
    const char *const inputs[] = {a, b, c};
    const size_t count = b == NULL ? 1 : c == NULL ? 2 : 3;
    Onnx__NodeProto *node = graft_onnx_make_node(s->arena, op, inputs, count, &out, 1);
    node->name = graft_arena_printf(s->arena, "%s/%s", out, op);
    graft_onnx_spell_node(s, node);
    return node;
}

const char *graft_onnx_spell_step(graft_onnx_spelling *s, const char *y, const char *op,
                                  const char *a, const char *b)
{
    const char *out = graft_onnx_spell_name(s, y, op);
    (void)step_to(s, op, a, b, NULL, out);
    return out;
}

/* Of the sizes the first is -1, whatever is left: there may be any number of images. */
static const char *reshape(graft_onnx_spelling *s, const char *y, const char *x,
                           const int64_t *sizes, size_t rank)
{
    return graft_onnx_spell_step(s, y, "Reshape", x,
                                 graft_onnx_spell_ints(s, y, "sizes", sizes, rank, 1));
}

/* The second axis and the third change places. */
static const char *turn(graft_onnx_spelling *s, const char *y, const char *x, size_t rank)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    const char *out = graft_onnx_spell_name(s, y, "Transpose");
    graft_onnx_set_ints(s->arena, step_to(s, "Transpose", x, NULL, NULL, out), "perm", order, rank);
    return out;
}

void graft_onnx_spell_scale(graft_onnx_spelling *s, int32_t channels, const float *slopes, float by,
                            const char *x, const char *y)
{
    const int64_t dims[4] = {channels, 1, 1, 1};
    float *factors = new_table(s, channels, 1);
    for (int32_t c = 0; c < channels; c++) {
        factors[c] = slopes == NULL ? by : by * slopes[c];
    }
    const char *table = graft_onnx_spell_floats(s, y, "factors", factors, dims, 4);
    graft_onnx_set_int(s->arena, step_to(s, "Conv", x, table, NULL, y), "group", channels);
}

/* -------------------------------------------------------------------- Winograd's */

/* A convolution that is being spelt. */
typedef struct {
    graft_onnx_spelling *s;
    const graft_onnx_site *site;
    const char *y;             /* Within which names are. */
    graft_onnx_winograd by[2]; /* Along rows and columns. */
    int64_t channels, filters;
    int64_t tiles[2];
    int64_t points; /* Of a tile, */
    int64_t places; /* and its outputs. */
} winograd;

/* One of the matrices. */
typedef struct {
    uint32_t rows, columns;
    const double (*items)[GRAFT_WINOGRAD_POINTS_MOST];
} matrix;

/* The product of each element of one with each of the other: (rows rows) x (columns columns). */
static const float *product_table(const winograd *w, matrix r, matrix c)
{
    float *table = new_table(w->s, r.rows * c.rows, r.columns * c.columns);
    float *at = table;
    for (uint32_t p = 0; p < r.rows; p++) {
        for (uint32_t q = 0; q < c.rows; q++) {
            for (uint32_t i = 0; i < r.columns; i++) {
                for (uint32_t j = 0; j < c.columns; j++) {
                    *at++ = (float)(r.items[p][i] * c.items[q][j]);
                }
            }
        }
    }
    return table;
}

/* What a patch is at its points: points x 1 x rows x columns. */
static const float *input_table(const winograd *w)
{
    const graft_onnx_winograd *by = w->by;
    return product_table(w, (matrix){by[0].points, by[0].points, by[0].bt},
                         (matrix){by[1].points, by[1].points, by[1].bt});
}

/* The outputs of a tile of what was found at its points: outputs x points. */
static const float *output_table(const winograd *w)
{
    const graft_onnx_winograd *by = w->by;
    return product_table(w, (matrix){by[0].outputs, by[0].points, by[0].at},
                         (matrix){by[1].outputs, by[1].points, by[1].at});
}

/* One filter of one channel at a point. */
static float filter_at(const winograd *w, const float *taps, uint32_t a, uint32_t b)
{
    const graft_onnx_winograd *r = &w->by[0];
    const graft_onnx_winograd *c = &w->by[1];
    double sum = 0.0;
    for (uint32_t i = 0; i < r->taps; i++) {
        for (uint32_t j = 0; j < c->taps; j++) {
            sum += r->g[a][i] * c->g[b][j] * (double)taps[i * c->taps + j];
        }
    }
    return (float)sum;
}

/* Filters at their points: (points filters) x channels. */
static const float *filter_table(const winograd *w)
{
    const float *data = w->site->filter->data;
    const size_t taps = (size_t)w->by[0].taps * w->by[1].taps;
    const size_t filters = (size_t)w->filters * (size_t)w->channels;
    float *table = new_table(w->s, w->points * w->filters, w->channels);
    for (size_t f = 0; f < filters; f++) {
        for (uint32_t a = 0; a < w->by[0].points; a++) {
            for (uint32_t b = 0; b < w->by[1].points; b++) {
                table[(a * w->by[1].points + b) * filters + f] =
                    filter_at(w, data + f * taps, a, b);
            }
        }
    }
    return table;
}

/* The bias, at the point that counts once in each output. */
static const char *spell_bias(const winograd *w)
{
    const int64_t dims[1] = {w->points * w->filters};
    const size_t point = (size_t)w->by[0].ones * w->by[1].points + w->by[1].ones;
    if (w->site->bias == NULL) {
        return NULL;
    }
    float *table = new_table(w->s, dims[0], 1);
    memset(table, 0, (size_t)dims[0] * sizeof(table[0]));
    memcpy(table + point * (size_t)w->filters, w->site->bias->data,
           (size_t)w->filters * sizeof(table[0]));
    return graft_onnx_spell_floats(w->s, w->y, "bias", table, dims, 1);
}

/* From images to (points channels) x tiles. */
static const char *spell_patches(const winograd *w, const char *x)
{
    graft_onnx_spelling *s = w->s;
    const int32_t *size = w->site->x.dims;
    const int64_t apart[] = {-1, 1, size[2], size[3]};
    const int64_t split[] = {-1, w->channels, w->points, w->tiles[0] * w->tiles[1]};
    const int64_t joined[] = {-1, w->points * w->channels, w->tiles[0], w->tiles[1]};
    const int64_t dims[4] = {w->points, 1, w->by[0].points, w->by[1].points};
    int64_t steps[2];
    int64_t pads[4];
    for (uint32_t i = 0; i < 2; i++) {
        steps[i] = w->by[i].outputs;
        pads[i] = w->site->pads[i];
        pads[2 + i] = steps[i] * w->tiles[i] + w->by[i].taps - 1 - size[2 + i] - w->site->pads[i];
    }
    x = reshape(s, w->y, x, apart, 4);
    const char *table = graft_onnx_spell_floats(s, w->y, "at_points", input_table(w), dims, 4);
    const char *patches = graft_onnx_spell_name(s, w->y, "Conv");
    Onnx__NodeProto *conv = step_to(s, "Conv", x, table, NULL, patches);
    graft_onnx_set_ints(s->arena, conv, "strides", steps, 2);
    graft_onnx_set_ints(s->arena, conv, "pads", pads, 4);
    patches = turn(s, w->y, reshape(s, w->y, patches, split, 4), 4);
    return reshape(s, w->y, patches, joined, 4);
}

/* From (points filters) x tiles to images whose sizes are whole tiles. */
static const char *spell_tiles(const winograd *w, const char *products)
{
    graft_onnx_spelling *s = w->s;
    const int64_t dims[2] = {w->places, w->points};
    const int64_t tall = w->by[0].outputs;
    const int64_t wide = w->by[1].outputs;
    const int64_t rows = w->filters * w->tiles[0];
    const int64_t flat[] = {-1, w->points, rows * w->tiles[1]};
    const int64_t columns[] = {-1, wide, rows * w->tiles[1]};
    const int64_t lines[] = {-1, tall, rows, w->tiles[1] * wide};
    const char *out = graft_onnx_spell_step(
        s, w->y, "MatMul", graft_onnx_spell_floats(s, w->y, "outputs", output_table(w), dims, 2),
        reshape(s, w->y, products, flat, 3));
    if (wide > 1) {
        out = turn(s, w->y, reshape(s, w->y, out, columns, 3), 3);
    }
    if (tall > 1) {
        out = turn(s, w->y, reshape(s, w->y, out, lines, 4), 4);
    }
    return out;
}

/* Reshapes to images and cuts off what hangs over. */
static void spell_image(const winograd *w, const char *x)
{
    graft_onnx_spelling *s = w->s;
    const int32_t *size = w->site->y.dims;
    const int64_t image[] = {-1, w->filters, w->tiles[0] * w->by[0].outputs,
                             w->tiles[1] * w->by[1].outputs};
    const int64_t starts[2] = {0, 0};
    const int64_t ends[2] = {size[2], size[3]};
    const int64_t which[2] = {2, 3};
    if (image[2] == ends[0] && image[3] == ends[1]) {
        (void)step_to(s, "Reshape", x, graft_onnx_spell_ints(s, w->y, "sizes", image, 4, 1), NULL,
                      w->y);
        return;
    }
    x = reshape(s, w->y, x, image, 4);
    if (s->onnx->opset >= OPSET_SLICE_INPUTS) {
        const char *const inputs[4] = {x, graft_onnx_spell_ints(s, w->y, "starts", starts, 2, 1),
                                       graft_onnx_spell_ints(s, w->y, "ends", ends, 2, 1),
                                       graft_onnx_spell_ints(s, w->y, "axes", which, 2, 1)};
        graft_onnx_spell_node(s, graft_onnx_make_node(s->arena, "Slice", inputs, 4, &w->y, 1));
        return;
    }
    Onnx__NodeProto *slice = step_to(s, "Slice", x, NULL, NULL, w->y);
    graft_onnx_set_ints(s->arena, slice, "starts", starts, 2);
    graft_onnx_set_ints(s->arena, slice, "ends", ends, 2);
    graft_onnx_set_ints(s->arena, slice, "axes", which, 2);
}

void graft_onnx_spell_winograd(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                               const char *y)
{
    winograd w = {.s = s,
                  .site = site,
                  .y = y,
                  .channels = site->x.dims[1],
                  .filters = site->y.dims[1],
                  .points = 1,
                  .places = 1};
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t outputs = site->outputs[i];
        graft_onnx_winograd_make(site->outputs[i], (uint32_t)site->taps[i], &w.by[i]);
        w.tiles[i] = (site->y.dims[2 + i] + outputs - 1) / outputs;
        w.points *= w.by[i].points;
        w.places *= outputs;
    }
    const int64_t dims[4] = {w.points * w.filters, w.channels, 1, 1};
    const char *patches = spell_patches(&w, x);
    const char *filters = graft_onnx_spell_floats(s, y, "filters", filter_table(&w), dims, 4);
    const char *bias = spell_bias(&w);
    const char *products = graft_onnx_spell_name(s, y, "Conv");
    graft_onnx_set_int(s->arena, step_to(s, "Conv", patches, filters, bias, products), "group",
                       w.points);
    spell_image(&w, spell_tiles(&w, products));
}

/* ------------------------------------------------------------------------- others */

static const char *number(graft_onnx_spelling *s, const char *y, const char *part, float value)
{
    float *data = new_table(s, 1, 1);
    data[0] = value;
    return graft_onnx_spell_floats(s, y, part, data, NULL, 0);
}

void graft_onnx_spell_pool(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                           const char *y)
{
    const int32_t *size = site->x.dims;
    const int64_t taps = site->taps[0];
    const int64_t window[3] = {taps, 1, 1};
    const int64_t pads[6] = {(taps - 1) / 2, 0, 0, taps - 1 - (taps - 1) / 2, 0, 0};
    const int64_t deep[] = {-1, 1, size[1], size[2], size[3]};
    const int64_t image[] = {-1, size[1], size[2], size[3]};
    const char *squares = reshape(s, y, graft_onnx_spell_step(s, y, "Mul", x, x), deep, 5);
    const char *means = graft_onnx_spell_name(s, y, "AveragePool");
    Onnx__NodeProto *pool = step_to(s, "AveragePool", squares, NULL, NULL, means);
    graft_onnx_set_ints(s->arena, pool, "kernel_shape", window, 3);
    graft_onnx_set_ints(s->arena, pool, "pads", pads, 6);
    graft_onnx_set_int(s->arena, pool, "count_include_pad", 1);
    means = graft_onnx_spell_step(s, y, "Mul", reshape(s, y, means, image, 4),
                                  number(s, y, "alpha", site->numbers[GRAFT_LRN_ALPHA]));
    const char *base = graft_onnx_spell_step(s, y, "Add", means,
                                             number(s, y, "bias", site->numbers[GRAFT_LRN_BIAS]));
    const char *root = graft_onnx_spell_step(s, y, "Sqrt", base, NULL);
    if (site->numbers[GRAFT_LRN_BETA] != 0.5F) { /* 3/4: a half and a quarter. */
        root = graft_onnx_spell_step(s, y, "Mul", root,
                                     graft_onnx_spell_step(s, y, "Sqrt", root, NULL));
    }
    (void)step_to(s, "Div", x, root, NULL, y);
}

void graft_onnx_spell_two_sides(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                                const char *y)
{
    const int32_t channels = site->x.dims[1];
    const char *minus = graft_onnx_spell_name(s, y, "minus");
    const char *below = graft_onnx_spell_name(s, y, "below");
    graft_onnx_spell_scale(s, channels, NULL, -1.0F, x, minus);
    graft_onnx_spell_scale(s, channels, site->filter->data, -1.0F,
                           graft_onnx_spell_step(s, y, "Relu", minus, NULL), below);
    (void)step_to(s, "Add", graft_onnx_spell_step(s, y, "Relu", x, NULL), below, NULL, y);
}
