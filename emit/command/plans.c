/* plans.c - see plans.h. */
#include "emit/command/plans.h"

#include "emit/report/decisions.h"
#include "graph/base/file.h"
#include "graph/base/settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void graft_plan_pack(const graft_plan_found *found, graft_buffer *packed)
{
    graft_buffer_append(packed, found, sizeof *found);
    graft_buffer_append(packed, found->steps, found->step_count * sizeof found->steps[0]);
}

void graft_plan_unpack(graft_arena *arena, const void *packed, graft_plan_found *found)
{
    const void *steps = (const uint8_t *)packed + sizeof *found;
    memcpy(found, packed, sizeof *found);
    found->steps = GRAFT_COPY(arena, (const graft_action *)steps, found->step_count);
}

uint64_t graft_plans_rules(const graft_session *session)
{
    uint64_t hash = session->xfers.count;
    for (uint32_t r = 0; r < session->xfers.count; r++) {
        uint64_t id = graft_rule_id(&session->xfers.rules[r]);
        hash = XXH3_64bits_withSeed(&id, sizeof id, hash);
    }
    return hash;
}

uint64_t graft_plans_costs(const graft_session *session)
{
    const graft_database *database = graft_cost_database(session->cost);
    const char *device = graft_device_name(session->device);
    const char *library = graft_device_library(session->device);
    uint64_t sum = graft_cost_is_leveled(session->cost);
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *record = graft_database_at(database, i);
        if (strcmp(record->device, device) == 0 && strcmp(record->library, library) == 0) {
            double ns = record->entry.median_ns;
            sum += graft_signature_hash(&record->signature, XXH3_64bits(&ns, sizeof ns));
        }
    }
    return sum;
}

/* ------------------------------------------------------------------- the list */

/* The plan of a model on a device, or NULL. */
static graft_known_plan *find_plan(const graft_plans *plans, const char *model, const char *device)
{
    for (uint32_t i = 0; i < plans->count; i++) {
        if (strcmp(plans->items[i].model, model) == 0 &&
            strcmp(plans->items[i].device, device) == 0) {
            return &plans->items[i];
        }
    }
    return NULL;
}

static int compare_plans(const void *a, const void *b)
{
    const graft_known_plan *left = a;
    const graft_known_plan *right = b;
    int order = strcmp(left->device, right->device);
    return order != 0 ? order : strcmp(left->model, right->model);
}

/* Puts a plan in the place of that of the same model and device. Texts and steps are kept. */
static void put_plan(graft_arena *arena, graft_plans *plans, const graft_known_plan *plan)
{
    graft_known_plan *place = find_plan(plans, plan->model, plan->device);
    if (place == NULL) {
        place = &GRAFT_PUSH(arena, plans->items, plans->count, plans->capacity, 32);
    }
    *place = *plan;
    qsort(plans->items, plans->count, sizeof plans->items[0], compare_plans);
}

/* -------------------------------------------------------------------- writing */

static void print_plan(graft_buffer *text, const graft_known_plan *plan)
{
    graft_buffer_printf(text,
                        "{\"model\": \"%s\", \"device\": \"%s\", \"rules\": \"%016" PRIx64
                        "\", \"costs\": \"%016" PRIx64 "\", \"search\": \"%s\", ",
                        plan->model, plan->device, plan->rules, plan->costs, plan->search);
    graft_buffer_printf(text,
                        "\"first_ns\": %.4f, \"cost_ns\": %.4f, \"first_estimates\": %" PRIu32
                        ", \"estimates\": %" PRIu32 ", \"graphs\": %" PRIu64
                        ", \"seconds\": %.1f, \"plan\": [",
                        plan->first_ns, plan->cost_ns, plan->first_estimates, plan->estimates,
                        plan->graphs, plan->seconds);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        graft_buffer_printf(text, "%s%u, %u", i > 0 ? ", " : "", plan->steps[i].xfer,
                            plan->steps[i].location);
    }
    graft_buffer_printf(text, "]}\n");
}

static graft_status write_plans(graft_env *env, const graft_plans *plans, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    for (uint32_t i = 0; i < plans->count; i++) {
        print_plan(&text, &plans->items[i]);
    }
    return graft_file_write(env, path, text.data, text.size);
}

graft_status graft_plans_keep(graft_env *env, graft_arena *arena, graft_plans *plans,
                              const graft_known_plan *plan, const char *path)
{
    const graft_known_plan *known = find_plan(plans, plan->model, plan->device);
    const bool same = known != NULL && known->rules == plan->rules && known->costs == plan->costs;
    if (plan->estimates > plan->first_estimates || (same && known->cost_ns <= plan->cost_ns)) {
        return GRAFT_OK;
    }
    graft_known_plan kept = *plan;
    kept.device = graft_arena_strdup(arena, plan->device);
    kept.steps = GRAFT_COPY(arena, plan->steps, plan->step_count);
    put_plan(arena, plans, &kept);
    return write_plans(env, plans, path);
}

/* -------------------------------------------------------------------- reading */

static graft_status read_hash(graft_env *env, const graft_yaml *item, const char *key,
                              uint64_t *hash)
{
    const char *text = NULL;
    GRAFT_PASS(graft_yaml_text(env, item, key, &text));
    if (!graft_text_number(&text, 16, UINT64_MAX, hash) || *text != '\0') {
        return graft_yaml_fail(env, item, "'%s' must be a hash", key);
    }
    return GRAFT_OK;
}

static graft_status read_steps(graft_env *env, graft_arena *arena, const graft_yaml *item,
                               graft_known_plan *plan)
{
    const graft_yaml *list = graft_yaml_find(item, "plan");
    bool right = list != NULL && list->kind == GRAFT_YAML_SEQUENCE && list->count % 2 == 0;
    plan->step_count = right ? list->count / 2 : 0;
    plan->steps = GRAFT_NEW(arena, graft_action, plan->step_count);
    for (uint32_t i = 0; right && i < list->count; i++) {
        const char *text = list->items[i].text;
        uint64_t number = 0;
        right = list->items[i].kind == GRAFT_YAML_SCALAR &&
                graft_text_number(&text, 10, UINT16_MAX, &number) && *text == '\0';
        *(i % 2 == 0 ? &plan->steps[i / 2].xfer : &plan->steps[i / 2].location) = (uint16_t)number;
    }
    return right ? GRAFT_OK : graft_yaml_fail(env, item, "'plan' must list rules and locations");
}

static graft_status read_plan(graft_env *env, graft_arena *arena, const graft_yaml *item,
                              graft_known_plan *plan)
{
    int64_t numbers[3] = {0};
    GRAFT_PASS(graft_yaml_text(env, item, "model", &plan->model));
    GRAFT_PASS(graft_yaml_text(env, item, "device", &plan->device));
    GRAFT_PASS(graft_yaml_text(env, item, "search", &plan->search));
    GRAFT_PASS(read_hash(env, item, "rules", &plan->rules));
    GRAFT_PASS(read_hash(env, item, "costs", &plan->costs));
    GRAFT_PASS(graft_yaml_real(env, item, "first_ns", 0, 1e18, &plan->first_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "cost_ns", 0, 1e18, &plan->cost_ns));
    GRAFT_PASS(graft_yaml_real(env, item, "seconds", 0, 1e9, &plan->seconds));
    GRAFT_PASS(graft_yaml_integer(env, item, "first_estimates", 0, INT32_MAX, &numbers[0]));
    GRAFT_PASS(graft_yaml_integer(env, item, "estimates", 0, INT32_MAX, &numbers[1]));
    GRAFT_PASS(graft_yaml_integer(env, item, "graphs", 0, INT64_MAX / 2, &numbers[2]));
    plan->first_estimates = (uint32_t)numbers[0];
    plan->estimates = (uint32_t)numbers[1];
    plan->graphs = (uint64_t)numbers[2];
    return read_steps(env, arena, item, plan);
}

static graft_status take_plan(graft_env *env, graft_arena *arena, void *plans,
                              const graft_yaml *root)
{
    graft_known_plan plan;
    GRAFT_PASS(read_plan(env, arena, root, &plan));
    put_plan(arena, plans, &plan);
    return GRAFT_OK;
}

graft_status graft_plans_read(graft_env *env, graft_arena *arena, const char *path,
                              graft_plans *plans)
{
    *plans = (graft_plans){.count = 0};
    return graft_yaml_read_lines(env, arena, path, take_plan, plans);
}
