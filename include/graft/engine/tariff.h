/* tariff.h - what a node costs: a row of a table, else regression trees. Format: policy.h. */
#ifndef GRAFT_ENGINE_TARIFF_H
#define GRAFT_ENGINE_TARIFF_H

/* ---------------------------------------------------------------- numbers */

/* round(2^30 2^(i / 32)) and round(2^30 2^(i / 1024)) */
static const uint32_t graft_exp2_coarse[32] = {
    1073741824u, 1097253708u, 1121280436u, 1145833280u, 1170923762u, 1196563654u, 1222764986u,
    1249540052u, 1276901417u, 1304861917u, 1333434672u, 1362633090u, 1392470869u, 1422962010u,
    1454120821u, 1485961921u, 1518500250u, 1551751076u, 1585730000u, 1620452965u, 1655936265u,
    1692196547u, 1729250827u, 1767116489u, 1805811301u, 1845353420u, 1885761398u, 1927054196u,
    1969251188u, 2012372174u, 2056437387u, 2101467502u,
};
static const uint32_t graft_exp2_fine[32] = {
    1073741824u, 1074468888u, 1075196443u, 1075924492u, 1076653033u, 1077382068u, 1078111597u,
    1078841619u, 1079572136u, 1080303147u, 1081034654u, 1081766656u, 1082499153u, 1083232146u,
    1083965636u, 1084699622u, 1085434106u, 1086169087u, 1086904565u, 1087640541u, 1088377016u,
    1089113990u, 1089851462u, 1090589434u, 1091327906u, 1092066877u, 1092806349u, 1093546322u,
    1094286796u, 1095027771u, 1095769248u, 1096511227u,
};

/* 2^30 times 2^(fraction / 1024), for fraction < 1024. */
static GRAFT_APART uint32_t graft_exp2_fraction(uint32_t fraction)
{
    uint64_t product = (uint64_t)graft_exp2_coarse[fraction >> 5] * graft_exp2_fine[fraction & 31u];
    return (uint32_t)((product + (UINT64_C(1) << 29)) >> 30);
}

#define GRAFT_PRICE_EXPONENT_MOST 46u

uint64_t graft_tariff_value(uint32_t value)
{
    if (value == 0) {
        return 0;
    }
    uint32_t exponent = (value - 1u) >> 10;
    if (exponent > GRAFT_PRICE_EXPONENT_MOST) {
        return (UINT64_C(1) << (GRAFT_PRICE_EXPONENT_MOST + 1u)) - 1u;
    }
    uint32_t mantissa = graft_exp2_fraction((value - 1u) & 1023u); /* Below 2^31. */
    return exponent >= 30 ? (uint64_t)mantissa << (exponent - 30u)
                          : (mantissa + (1u << (29u - exponent))) >> (30u - exponent);
}

/* floor(64 log2 n) within the accuracy of the tables, so at most GRAFT_ACTIVATION_MOST; 0 for n = 0. */
static int16_t graft_log_size(uint64_t n)
{
    uint32_t part = 0;
    uint32_t mantissa = 0;
    uint32_t exponent = graft_split_number(n, &mantissa);
    for (uint32_t step = 32; step > 0; step /= 2) {
        part += graft_exp2_fraction((part + step) * 16u) <= mantissa / 2 ? step : 0;
    }
    return (int16_t)(exponent * 64u + part);
}

/* ----------------------------------------------------------------- prices */

uint64_t graft_form_hash(const graft_form *form)
{
    uint64_t hash = graft_mix_hash(0, (uint64_t)form->op << 8 | form->const_mask);
    hash = graft_mix_hash(hash, (uint64_t)form->input_count << 16 | form->output_count);
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i += 2) {
        hash = graft_mix_hash(hash, (uint64_t)(uint32_t)form->attrs[i] << 32 |
                                        (uint32_t)form->attrs[i + 1]);
    }
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS; i++) {
        const graft_shape *shape =
            i < GRAFT_MAX_INPUTS ? form->inputs[i] : form->outputs[i - GRAFT_MAX_INPUTS];
        hash = shape != NULL ? graft_hash_shape(hash, shape)
                             : graft_mix_hash(hash, i % GRAFT_MAX_INPUTS);
    }
    if (form->input_count > GRAFT_MAX_INPUTS || form->output_count > GRAFT_MAX_OUTPUTS) {
        hash = graft_mix_hash(graft_mix_hash(hash, form->bytes), form->weight_elements);
    }
    return hash;
}

uint32_t graft_tariff_key(uint32_t seed, uint64_t form_hash)
{
    return (uint32_t)(graft_mix_hash(form_hash, seed) >> 32);
}

/* Whether the pieces that a concatenation, split or slice joins or cuts lie one behind the other in
 * row-major order: every axis outside of the axis worked on is 1. */
static bool graft_is_contiguous(const graft_form *form)
{
    const graft_shape *result = form->outputs[0];
    bool cuts =
        GRAFT_IS(form->op, concat) || GRAFT_IS(form->op, split) || GRAFT_IS(form->op, slice);
    bool contiguous = cuts;
    for (int32_t i = 0; cuts && i < form->attrs[0]; i++) { /* Their first attribute is the axis. */
        contiguous = contiguous && result->dims[i] == 1;
    }
    return contiguous;
}

/* Logarithms of the first `count` sizes of a shape; 0 for what it has not. */
static int16_t *graft_log_dims(const graft_shape *shape, uint32_t count, int16_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        bool exists = shape != NULL && shape->rank <= GRAFT_MAX_RANK && i < shape->rank;
        *out++ = graft_log_size(exists ? (uint64_t)shape->dims[i] : 0);
    }
    return out;
}

/* Whether a node is elementwise, of two operands at most, and repeats none that has several elements. */
static bool graft_is_whole(const graft_form *form)
{
    if (form->op >= GRAFT_OP_COUNT ||
        (graft_op_rows[form->op].flags & GRAFT_FLAG_ELEMENTWISE) == 0) {
        return false;
    }
    const uint64_t elements = graft_shape_elements(form->outputs[0]);
    const uint64_t other = form->input_elements + form->weight_elements - elements;
    return other <= 1 || other == elements;
}

static const graft_shape graft_no_shape = {{0}, 0, 0};

/* What a node costs by: of a convolution or matrix product that adds to it and clips it the product
 * alone, which has the first attributes of both; of an elementwise node that repeats none of its
 * operands how much it reads and writes, no shapes, so that it costs the same before a reshape and
 * after it. */
static void graft_form_core(const graft_form *form, graft_form *core)
{
    const bool is_conv = GRAFT_IS(form->op, conv_bias) || GRAFT_IS(form->op, conv_bias_add);
    if (!is_conv && !GRAFT_IS(form->op, matmul_bias)) {
        graft_copy_bytes(core, form, sizeof *core);
        if (graft_is_whole(form)) {
            core->outputs[0] = &graft_no_shape;
            core->weight = NULL;
        }
        return;
    }
    graft_zero_bytes(core, sizeof *core);
    core->op = is_conv ? GRAFT_OP_conv : GRAFT_OP_matmul;
    core->attrs = form->attrs;
    core->reach = form->reach;
    core->input_count = 2;
    core->output_count = 1;
    for (uint32_t i = 0; i < 2; i++) {
        graft_add_operand(core, i, form->inputs[i], (form->const_mask >> i & 1u) != 0);
    }
    graft_add_result(core, 0, form->outputs[0]);
}

void graft_tariff_inputs(const graft_form *form, int16_t *out)
{
    /* Where they stand they are widened before they are written over. */
    int8_t *features = (int8_t *)out + (GRAFT_TARIFF_INPUTS * sizeof *out - GRAFT_FEATURE_COUNT);
    graft_form core;
    graft_form_core(form, &core);
    const graft_shape *result = core.outputs[0];
    graft_form_features(&core, features);
    for (uint32_t i = 0; i < GRAFT_FEATURE_COUNT; i++) {
        *out++ = graft_widen_byte(features[i]);
    }
    const uint64_t sizes[] = {graft_form_flops(&core), core.bytes, core.input_elements,
                              core.weight_elements,
                              result != NULL ? graft_shape_elements(result) : 0};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *out++ = graft_log_size(sizes[i]);
    }
    out = graft_log_dims(result, GRAFT_MAX_RANK, out);
    out = graft_log_dims(core.weight, 4, out);
    *out++ =
        GRAFT_IS(core.op, identity) || GRAFT_IS(core.op, reshape) || graft_is_contiguous(&core);
    *out = core.reach;
}

const char *graft_tariff_check(const graft_tariff *tariff)
{
    for (uint32_t i = 1; i < tariff->row_count; i++) {
        if (tariff->keys[i - 1] >= tariff->keys[i]) {
            return graft_tell_fault(GRAFT_FAULT("keys are not ascending"));
        }
    }
    for (uint32_t i = 0; i < (uint32_t)tariff->tree_count * GRAFT_TREE_TESTS; i++) {
        if (tariff->tests[i] >= GRAFT_TARIFF_INPUTS) {
            return graft_tell_fault(GRAFT_FAULT("a tree tests an input that there is not"));
        }
    }
    return NULL;
}

uint32_t graft_tariff_roof(const int16_t *inputs)
{
    return (inputs[GRAFT_FEATURE_operator + GRAFT_OP_conv] |
            inputs[GRAFT_FEATURE_operator + GRAFT_OP_matmul]) == 0;
}

/* A term of a roof above a size that is none below 0: 64ths of an octave. */
static int32_t graft_raise_roof(int32_t term, int16_t size)
{
    return term + (int32_t)((uint32_t)(uint16_t)size << 4);
}

int32_t graft_tariff_base(const graft_tariff *tariff, const int16_t *inputs)
{
    const graft_roof *roof = tariff->roofs;
    if (graft_tariff_roof(inputs) != 0) {
        roof++;
    }
    const int32_t flops = graft_raise_roof(roof->flop, inputs[GRAFT_FEATURE_COUNT]);
    const int32_t bytes = graft_raise_roof(roof->byte, inputs[GRAFT_FEATURE_COUNT + 1]);
    const int32_t most = flops > bytes ? flops : bytes;
    return most > roof->node ? most : roof->node;
}

static int32_t graft_clip(int32_t value, int32_t least, int32_t most)
{
    return value < least ? least : value < most ? value : most;
}

graft_guess graft_tariff_guess(const graft_tariff *tariff, const int16_t *inputs)
{
    graft_guess guess = {0, 0};
    if (tariff->tree_count == 0) {
        return guess;
    }
    if (inputs[GRAFT_TARIFF_STILL] != 0) {
        guess.value = tariff->still;
        return guess;
    }
    int32_t value = graft_tariff_base(tariff, inputs);
    int32_t skew = 0;
    for (uint32_t t = 0; t < tariff->tree_count; t++) {
        const uint8_t *tests = tariff->tests + t * GRAFT_TREE_TESTS;
        const int16_t *bounds = tariff->bounds + t * GRAFT_TREE_TESTS;
        uint32_t i = 0;
        while (i < GRAFT_TREE_TESTS) {
            i = 2 * i + (inputs[tests[i]] > bounds[i] ? 2u : 1u);
        }
        const int32_t leaf = tariff->leaves[t * GRAFT_TREE_LEAVES + i - GRAFT_TREE_TESTS];
        value += leaf;
        skew = leaf - skew;
    }
    guess.value = (uint16_t)graft_clip(value, 0, UINT16_MAX);
    guess.skew = (int16_t)graft_clip(skew, -GRAFT_SKEW_MOST, GRAFT_SKEW_MOST);
    return guess;
}

uint32_t graft_tariff_row(const graft_tariff *tariff, uint32_t key)
{
    uint32_t low = 0;
    uint32_t high = tariff->row_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tariff->keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < tariff->row_count && tariff->keys[low] == key ? low : tariff->row_count;
}

#ifndef GRAFT_NEAR_WEIGHTS
/* Whether a convolution reads a kernel that is computed at inference. Runtimes lay kernels out anew,
 * those that are known before the first run; no samples say what the others take. */
static bool graft_makes_kernel(const graft_form *form)
{
    return GRAFT_IS_CONV(form->op) && (form->const_mask & 2u) == 0;
}
#endif

/* A cost as it is kept: a row's value, or with this bit what the fallback gave, its skew above that. */
#define GRAFT_PRICE_GUESSED 0x10000u
#define GRAFT_PRICE_SKEW    17

static uint64_t graft_cost_of(uint32_t price) { return graft_tariff_value(price & UINT16_MAX); }

static uint32_t graft_price_hashed(const graft_tariff *tariff, const graft_form *form,
                                   uint64_t hash)
{
    int16_t inputs[GRAFT_TARIFF_INPUTS];
    const uint32_t row = graft_tariff_row(tariff, graft_tariff_key(tariff->seed, hash));
    if (row < tariff->row_count) {
        return tariff->values[row];
    }
    graft_tariff_inputs(form, inputs);
    graft_guess guess = graft_tariff_guess(tariff, inputs);
#ifndef GRAFT_NEAR_WEIGHTS
    if (graft_makes_kernel(form)) {
        guess.value = (uint16_t)graft_clip(guess.value + 1024, 0, UINT16_MAX); /* Twice as much. */
    }
#endif
    return (uint32_t)(guess.skew + GRAFT_SKEW_MOST) << GRAFT_PRICE_SKEW | GRAFT_PRICE_GUESSED |
           guess.value;
}

graft_node_price graft_tariff_price(const graft_tariff *tariff, const graft_form *form)
{
    uint32_t kept = graft_price_hashed(tariff, form, graft_form_hash(form));
    graft_node_price price;
    price.cost = graft_cost_of(kept);
    price.flops = graft_form_flops(form);
    price.bytes = form->bytes;
    price.fallback = (kept & GRAFT_PRICE_GUESSED) != 0;
    return price;
}

#endif
