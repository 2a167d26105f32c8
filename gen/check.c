/* check.c - laws on fresh samples. See check.h. */
#include "gen/check.h"

#include <string.h>

enum {
    MEMORY_BYTES = 64 << 20,  /* Remembered by a checker at most. */
    ENOUGH_WITHOUT_ORDER = 4, /* Samples that tell where no order is asked. */
    MOST_STEPS = 2 * GRAFT_GEN_MAX_CLOSURE,
    MOST_TENSORS = GRAFT_GEN_LAW_VARS + MOST_STEPS * GRAFT_MAX_OUTPUTS
};

/* ----------------------------------------------------------------- tensors */

/* What a variable's numbers depend on. */
typedef struct {
    graft_shape shape;
    uint64_t seed;
    uint32_t draw;
    graft_gen_draw how;
} tensor_key;

struct graft_gen_tensor {
    tensor_key key;
    uint64_t hash;
    graft_field *data;
};

static uint64_t hash_key(const tensor_key *key)
{
    uint64_t words[GRAFT_MAX_RANK + 4] = {
        key->seed, key->draw, (uint64_t)key->how.stream << 1 | (key->how.is_weight ? 1u : 0u),
        (uint64_t)key->how.most << 8 | key->shape.rank};
    for (uint32_t i = 0; i < key->shape.rank; i++) {
        words[4 + i] = (uint64_t)key->shape.dims[i];
    }
    return XXH3_64bits(words, (4 + (size_t)key->shape.rank) * sizeof words[0]);
}

static uint64_t hash_tensor(const void *owner, uint32_t number)
{
    return ((const graft_gen_checker *)owner)->tensors[number].hash;
}

static bool same_key(const tensor_key *a, const tensor_key *b)
{
    return a->seed == b->seed && a->draw == b->draw && a->how.stream == b->how.stream &&
           a->how.most == b->how.most && a->how.is_weight == b->how.is_weight &&
           graft_shape_equal(&a->shape, &b->shape);
}

static graft_field *draw_tensor(graft_arena *arena, const tensor_key *key)
{
    graft_field *data = GRAFT_NEW(arena, graft_field, (size_t)graft_shape_elements(&key->shape));
    graft_gen_sample_fresh(key->seed, key->draw, key->how, &key->shape, data);
    return data;
}

/* The numbers of a variable: remembered ones, or drawn now. */
static const graft_field *take_tensor(graft_gen_checker *checker, const tensor_key *key)
{
    if (checker->memory == NULL) {
        return draw_tensor(checker->scratch, key);
    }
    graft_table *table = &checker->table;
    uint64_t hash = hash_key(key);
    graft_table_reserve(checker->memory, table, checker, hash_tensor);
    GRAFT_EACH_ALIKE(table, hash, number)
    {
        const struct graft_gen_tensor *known = &checker->tensors[number];
        if (known->hash == hash && same_key(&known->key, key)) {
            return known->data;
        }
    }
    graft_table_insert(table, hash, checker->count);
    struct graft_gen_tensor *tensor =
        &GRAFT_GEN_PUSH(checker->memory, checker->tensors, checker->count, checker->capacity);
    *tensor = (struct graft_gen_tensor){*key, hash, draw_tensor(checker->memory, key)};
    return tensor->data;
}

/* Forgets everything when it has become too much. */
static void bound_memory(graft_gen_checker *checker)
{
    if (checker->memory != NULL && graft_arena_used_bytes(checker->memory) > MEMORY_BYTES) {
        graft_arena_reset(checker->memory);
        *checker = (graft_gen_checker){.scratch = checker->scratch, .memory = checker->memory};
    }
}

/* ------------------------------------------------------------------- plans */

/* One configuration to run; tensors are numbered, variables first. */
typedef struct {
    const graft_gen_config *config;
    graft_shape shapes[GRAFT_GEN_CONFIG_TENSORS];
    uint16_t in[GRAFT_MAX_INPUTS];
    uint16_t out; /* The first output. */
} plan_step;

/* Both sides of a law, what they share once. */
typedef struct {
    const graft_gen_law *law;
    plan_step steps[MOST_STEPS];
    uint32_t step_count;
    graft_shape shapes[MOST_TENSORS];
    const graft_field *data[MOST_TENSORS];
    graft_field *outs[MOST_TENSORS]; /* By tensor; not for variables. */
    uint16_t outputs[2][GRAFT_MAX_OUTPUTS];
    graft_field *workspace;
} plan;

static uint16_t find_tensor(uint8_t operand, const uint16_t *outs)
{
    return GRAFT_GEN_IS_OUT(operand)
               ? (uint16_t)(outs[GRAFT_GEN_OUT_NODE(operand)] + GRAFT_GEN_OUT_SLOT(operand))
               : operand;
}

/* The step with this configuration and these inputs, or step_count. */
static uint32_t find_step(const plan *p, const plan_step *wanted)
{
    for (uint32_t s = 0; s < p->step_count; s++) {
        if (p->steps[s].config == wanted->config &&
            memcmp(p->steps[s].in, wanted->in, sizeof wanted->in) == 0) {
            return s;
        }
    }
    return p->step_count;
}

/* Adds a step with room for its outputs. False when its inputs do not fit. */
static bool add_step(plan *p, const plan_step *made, graft_arena *arena)
{
    graft_shape in[GRAFT_MAX_INPUTS];
    plan_step *step = &p->steps[p->step_count];
    *step = *made;
    step->out = (uint16_t)(GRAFT_GEN_LAW_VARS + p->step_count * GRAFT_MAX_OUTPUTS);
    for (uint32_t i = 0; i < step->config->input_count; i++) {
        in[i] = p->shapes[step->in[i]];
    }
    if (!graft_gen_config_infer(step->config, in, &p->shapes[step->out])) {
        return false;
    }
    graft_gen_config_shapes(step->config, in, step->shapes);
    for (uint32_t o = 0; o < step->config->output_count; o++) {
        uint32_t tensor = step->out + o;
        size_t count = (size_t)graft_shape_elements(&p->shapes[tensor]);
        p->outs[tensor] = GRAFT_NEW(arena, graft_field, count);
        p->data[tensor] = p->outs[tensor];
    }
    p->step_count++;
    return true;
}

static bool plan_side(plan *p, uint32_t number, graft_arena *arena)
{
    const graft_gen_side *side = &p->law->sides[number];
    uint16_t outs[GRAFT_GEN_MAX_CLOSURE] = {0};
    for (uint32_t n = 0; n < side->count; n++) {
        plan_step made = {.config = &p->law->set->configs[side->nodes[n].config]};
        for (uint32_t i = 0; i < made.config->input_count; i++) {
            made.in[i] = find_tensor(side->nodes[n].args[i], outs);
        }
        uint32_t step = find_step(p, &made);
        if (step == p->step_count && !add_step(p, &made, arena)) {
            return false;
        }
        outs[n] = p->steps[step].out;
    }
    for (uint32_t o = 0; o < p->law->output_count; o++) {
        p->outputs[number][o] = find_tensor(side->outputs[o], outs);
    }
    return true;
}

/* False when the law's shapes do not fit: it holds nowhere. */
static bool make_plan(const graft_gen_law *law, graft_arena *arena, plan *p)
{
    size_t most = 0;
    p->law = law;
    memcpy(p->shapes, law->var_shapes, sizeof law->var_shapes);
    if (!plan_side(p, 0, arena) || !plan_side(p, 1, arena)) {
        return false;
    }
    for (uint32_t s = 0; s < p->step_count; s++) {
        size_t count = graft_gen_config_workspace(p->steps[s].config, p->steps[s].shapes);
        most = count > most ? count : most;
    }
    p->workspace = GRAFT_NEW(arena, graft_field, most);
    for (uint32_t o = 0; o < law->output_count; o++) {
        if (!graft_shape_equal(&p->shapes[p->outputs[0][o]], &p->shapes[p->outputs[1][o]])) {
            return false;
        }
    }
    return true;
}

/* ----------------------------------------------------------------- samples */

static bool outputs_agree(const plan *p)
{
    for (uint32_t o = 0; o < p->law->output_count; o++) {
        const graft_field *left = p->data[p->outputs[0][o]];
        const graft_field *right = p->data[p->outputs[1][o]];
        size_t count = (size_t)graft_shape_elements(&p->shapes[p->outputs[0][o]]);
        for (size_t i = 0; left != right && i < count; i++) {
            if (left[i].residue != right[i].residue) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the sample says something, and what. Adds to *asked how often an order decided. */
static bool try_sample(plan *p, bool *agrees, uint64_t *asked)
{
    graft_field_state field = {0};
    for (uint32_t s = 0; s < p->step_count; s++) {
        const plan_step *step = &p->steps[s];
        const graft_field *in[GRAFT_MAX_INPUTS] = {NULL};
        for (uint32_t i = 0; i < step->config->input_count; i++) {
            in[i] = p->data[step->in[i]];
        }
        if (!graft_gen_config_run(&field, step->config, step->shapes, in, &p->outs[step->out],
                                  p->workspace)) {
            return false;
        }
    }
    *asked += field.asked_count;
    *agrees = outputs_agree(p);
    return true;
}

/* Gives the variables the numbers of a draw and tries it. */
static bool try_draw(graft_gen_checker *checker, plan *p, uint64_t seed, uint32_t draw,
                     bool *agrees, uint64_t *asked)
{
    const graft_gen_law *law = p->law;
    GRAFT_SCOPED(checker->scratch);
    int32_t most = draw >= GRAFT_GEN_WIDE_DRAWS ? INT32_MAX : graft_gen_set_most(law->set);
    for (uint32_t v = 0; v < law->var_count; v++) {
        tensor_key key = {
            .shape = law->var_shapes[v],
            .seed = seed,
            .draw = draw,
            .how = {
                    .stream = law->var_streams[v], .most = most, .is_weight = law->var_is_weight[v]}
        };
        p->data[v] = take_tensor(checker, &key);
    }
    bool says = try_sample(p, agrees, asked);
    return says;
}

bool graft_gen_law_holds(graft_gen_checker *checker, const graft_gen_law *law,
                         const graft_gen_fresh *fresh, uint32_t *told)
{
    graft_mark mark = graft_arena_mark(checker->scratch);
    plan *p = GRAFT_NEW(checker->scratch, plan, 1);
    uint32_t passed = 0;
    uint32_t wanted = fresh->count;
    uint32_t differs = GRAFT_GEN_NONE;
    uint64_t asked = 0;
    bool fits = make_plan(law, checker->scratch, p);
    bound_memory(checker);
    for (uint32_t d = 0; fits && differs == GRAFT_GEN_NONE && passed < wanted &&
                         d < GRAFT_GEN_MOST_REDRAWN * fresh->count;
         d++) {
        bool agrees = false;
        if (try_draw(checker, p, fresh->seed, fresh->first + d, &agrees, &asked)) {
            differs = agrees ? GRAFT_GEN_NONE : fresh->first + d;
            passed++;
        }
        wanted =
            asked == 0 && fresh->count > ENOUGH_WITHOUT_ORDER ? ENOUGH_WITHOUT_ORDER : fresh->count;
    }
    graft_arena_release(checker->scratch, mark);
    if (told != NULL) {
        *told = differs;
    }
    return fits && differs == GRAFT_GEN_NONE && passed >= wanted;
}

bool graft_gen_law_shows(graft_gen_checker *checker, const graft_gen_law *law, uint64_t seed,
                         uint32_t draw, bool agree)
{
    GRAFT_SCOPED(checker->scratch);
    plan *p = GRAFT_NEW(checker->scratch, plan, 1);
    uint64_t asked = 0;
    bool agrees = false;
    bool shows = make_plan(law, checker->scratch, p) &&
                 try_draw(checker, p, seed, draw, &agrees, &asked) && agrees == agree;
    return shows;
}
