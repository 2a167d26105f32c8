/* costs.c - the costs of a GPU: the file that the stages add to, and the stage that measures a list
 * of signatures, which `graft cost close --list` wrote elsewhere. */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "graph/base/file.h"

#include <ctype.h>
#include <string.h>

enum { ROUNDS = 5, AT_ONCE = 16 /* Of what a fault would take along. */ };

static const uint64_t batch_ns = 200000;

/* ---------------------------------------------------------------- the file */

/* "NVIDIA H200 (sm_90, ...), fp16" gives "h200". */
static const char *short_name(graft_arena *arena, const char *name)
{
    const char *word = strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name;
    size_t size = strcspn(word, "(");
    while (size > 0 && word[size - 1] == ' ') {
        size--;
    }
    char *text = graft_arena_printf(arena, "%.*s", (int)size, word);
    for (char *c = text; *c != '\0'; c++) {
        *c = (char)(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '-');
    }
    return text;
}

/* A whole model is measured in one call: who waits for signs of life gets one after each
 * operator. */
static void beat(void *context) { (void)check_late(context); }

static graft_measure_options options_of(check_run *run)
{
    return (graft_measure_options){
        .rounds = ROUNDS, .batch_ns = batch_ns, .quiet = true, .beat = beat, .beat_context = run};
}

/* What is recorded of this GPU already is not measured again. */
static graft_status take_recorded(graft_env *env, const char *path, const char *recorded)
{
    uint8_t *text = NULL;
    size_t size = 0;
    if (graft_file_exists(path) || !graft_file_exists(recorded)) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_file_read(env, env->unit, recorded, &text, &size));
    return graft_file_write(env, path, text, size);
}

graft_status check_costs_open(check_run *run, const check_type *type, graft_device *device,
                              graft_cost **cost)
{
    graft_env *env = run->env;
    const graft_measure_options options = options_of(run);
    const char *name = short_name(env->unit, graft_device_name(device));
    if (type->type != CUDA_TF32) {
        name = graft_arena_printf(env->unit, "%s-%s", name, type->name);
    }
    const char *path = graft_arena_printf(env->unit, "%s/%s.costs", run->folder, name);
    GRAFT_PASS(
        take_recorded(env, path, graft_arena_printf(env->unit, "rules/costs/%s.costs", name)));
    GRAFT_PASS(graft_cost_open(env, device, path, cost));
    graft_cost_set_measuring(*cost, &options);
    return GRAFT_OK;
}

/* --------------------------------------------------------------- the stage */

/* Signatures of the list, which has one a line. */
static graft_status read_list(check_run *run, graft_signature **list, uint32_t *count)
{
    graft_env *env = run->env;
    uint8_t *text = NULL;
    size_t size = 0;
    uint32_t lines = 0;
    *count = 0;
    GRAFT_PASS(graft_file_read(env, env->life, run->list, &text, &size));
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
    }
    *list = GRAFT_NEW(env->life, graft_signature, lines + 1);
    for (char *line = (char *)text; *line != '\0';) {
        char *end = line + strcspn(line, "\n");
        char *next = end + (*end == '\n');
        *end = '\0';
        if (graft_signature_parse(env, line, &(*list)[*count]) != GRAFT_OK) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s, line %u is no signature: %s", run->list,
                              *count + 1, line);
        }
        (*count)++;
        line = next;
    }
    return GRAFT_OK;
}

/* Of a GPU that is not here: whether each has an implementation that can be planned. */
static graft_status plan_some(check_run *run, graft_device *device, const graft_signature *list,
                              uint32_t count, uint32_t *done)
{
    for (uint32_t i = 0; i < count && !check_late(run); i++) {
        if (check_plan(run, device, &list[i], NULL) != NULL) {
            (*done)++;
        } else {
            check_fail(run, "signature %u of the list", i);
        }
    }
    return GRAFT_OK;
}

/* All at once, which plans on every processor; one by one where that fails. */
static graft_status measure_some(check_run *run, graft_cost *cost, const graft_signature *list,
                                 uint32_t count)
{
    graft_env *env = run->env;
    const graft_measure_options options = options_of(run);
    if (graft_cost_measure(env, cost, list, count, &options) == GRAFT_OK) {
        return graft_cost_save(env, cost);
    }
    graft_env_clear(env);
    for (uint32_t i = 0; i < count && !check_late(run); i++) {
        if (graft_cost_measure(env, cost, &list[i], 1, &options) != GRAFT_OK) {
            graft_buffer text = {.arena = env->scratch};
            graft_signature_print(&list[i], &text);
            check_fail(run, "%s", text.data);
        }
    }
    return graft_cost_save(env, cost);
}

typedef struct {
    graft_signature *signatures;
    uint32_t count;
    uint32_t items; /* Of AT_ONCE signatures each. */
} signature_list;

static void report(check_run *run, check_part part, uint32_t count, uint32_t done)
{
    graft_json json;
    graft_json_begin(&json, run->env->scratch);
    graft_json_add(&json, "type=%s listed=%u", part.type->name, count);
    graft_json_integer(&json, run->described == NULL ? "measured" : "planned", done);
    graft_json_end(&json, part.file);
    (void)fprintf(stderr, "gpu-check: %s: %u of %u signatures\n", part.type->name, done, count);
}

/* Says how many signatures have a cost then, whichever process measured them, or can be planned. */
static graft_status check_type_costs(check_run *run, check_part part, void *context)
{
    graft_status status = GRAFT_OK;
    const signature_list *list = context;
    const uint32_t count = list->count;
    graft_device *device = NULL;
    graft_cost *cost = NULL;
    uint32_t done_count = 0;
    GRAFT_CHECK(check_open(run, part.type->name, "", &device));
    bool present = graft_device_present(device);
    if (present) {
        GRAFT_CHECK(check_costs_open(run, part.type, device, &cost));
    }
    for (uint32_t i = 0; i < list->items; i++) {
        const graft_signature *some = &list->signatures[(size_t)i * AT_ONCE];
        uint32_t many = count - i * AT_ONCE < AT_ONCE ? count - i * AT_ONCE : AT_ONCE;
        if (check_cut(run, part.first + i, part.first + list->items)) {
            break;
        }
        if (check_begin(run, part.first + i)) {
            GRAFT_CHECK(present ? measure_some(run, cost, some, many)
                                : plan_some(run, device, some, many, &done_count));
            check_probe(run, device);
        }
    }
    for (uint32_t i = 0; present && i < count; i++) {
        done_count += graft_database_find(graft_cost_database(cost), &list->signatures[i]) != NULL;
    }
    report(run, part, count, done_count);
done:
    return graft_cost_finish(run->env, cost, device, status);
}

graft_status check_costs(check_run *run)
{
    signature_list list;
    if (run->list == NULL) {
        return GRAFT_FAIL(run->env, GRAFT_BAD_INPUT, "no list of signatures (LIST=FILE)");
    }
    GRAFT_PASS(read_list(run, &list.signatures, &list.count));
    list.items = (list.count + AT_ONCE - 1) / AT_ONCE;
    return check_each_type(run, "costs.jsonl", list.items, check_type_costs, &list);
}
