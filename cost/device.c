/* device.c - opening a device, naming it, and the table of what it has (see device.h). */
#include "cost/device.h"

#include "cost/device_cpu.h"
#include "graph/file.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Changes whenever our own kernels get faster or slower: recorded costs of older ones are then not
 * taken for theirs. */
enum { PLAIN_KERNELS_VERSION = 1 };

/* --------------------------------------------------------------- identity */

/* The value of the first line `key : value` of /proc/cpuinfo, or "?". */
static const char *find_processor_field(graft_arena *arena, const char *text, const char *key)
{
    const char *line = text;
    size_t length = strlen(key);
    while (line != NULL && *line != '\0') {
        const char *end = strchr(line, '\n');
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, length) == 0 && colon != NULL && (end == NULL || colon < end) &&
            line[length + strspn(line + length, " \t")] == ':') {
            const char *value = colon + 1 + strspn(colon + 1, " \t");
            size_t size = end == NULL ? strlen(value) : (size_t)(end - value);
            return graft_arena_printf(arena, "%.*s", (int)size, value);
        }
        line = end == NULL ? NULL : end + 1;
    }
    return "?";
}

static const char *name_isa(void)
{
    static const struct {
        unsigned isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_sse41,            "sse41"           },
        {dnnl_cpu_isa_avx,              "avx"             },
        {dnnl_cpu_isa_avx2,             "avx2"            },
        {dnnl_cpu_isa_avx2_vnni,        "avx2_vnni"       },
        {dnnl_cpu_isa_avx512_core,      "avx512_core"     },
        {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
        {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
        {dnnl_cpu_isa_avx512_core_amx,  "avx512_core_amx" },
    };
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].isa == isa) {
            return names[i].name;
        }
    }
    return "generic";
}

/* Model names of virtual machines say little, so family, model and stepping stand beside them. */
static graft_status name_processor(graft_env *env, graft_device *device)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    uint8_t *text = NULL;
    size_t size = 0;
    GRAFT_TRY(env, graft_file_read(env, env->scratch, "/proc/cpuinfo", &text, &size),
              "while naming this processor");
    const char *info = (const char *)text;
    (void)snprintf(device->name, sizeof(device->name), "%s (%s-%s-%s), %s, %u thread%s",
                   find_processor_field(env->scratch, info, "model name"),
                   find_processor_field(env->scratch, info, "cpu family"),
                   find_processor_field(env->scratch, info, "model"),
                   find_processor_field(env->scratch, info, "stepping"), name_isa(),
                   device->thread_count, device->thread_count == 1 ? "" : "s");
    const dnnl_version_t *version = dnnl_version();
    (void)snprintf(device->library, sizeof(device->library), "oneDNN %d.%d.%d, plain %d",
                   version->major, version->minor, version->patch, PLAIN_KERNELS_VERSION);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

/* --------------------------------------------------------------- life time */

static graft_status start_engine(graft_env *env, graft_device *device)
{
    /* With its cache, the library's list of implementations changes once one of them was created: a
     * cached favourite is then listed twice and the second best never. */
    dnnl_status_t result = dnnl_set_primitive_cache_capacity(0);
    if (result == dnnl_success) {
        result = dnnl_engine_create(&device->engine, dnnl_cpu, 0);
    }
    if (result == dnnl_success) {
        result = dnnl_stream_create(&device->stream, device->engine, dnnl_stream_default_flags);
    }
    if (result != dnnl_success) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "oneDNN cannot be started: status %d", (int)result);
    }
    omp_set_num_threads((int)device->thread_count);
    return name_processor(env, device);
}

graft_status graft_device_open(graft_env *env, const char *name, uint32_t thread_count,
                               graft_device **device)
{
    graft_status status = GRAFT_OK;
    graft_device *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a device");
    }
    d->thread_count = thread_count > 0 ? thread_count : 1;
    (void)pthread_mutex_init(&d->lock, NULL);
    if (name[0] == '\0') {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the name of a device is empty");
    } else if (strcmp(name, "cpu") == 0) {
        status = start_engine(env, d);
    } else {
        graft_device_identify(d, name, "");
    }
    if (status == GRAFT_OK) {
        *device = d;
    } else {
        graft_device_close(d);
    }
    return status;
}

void graft_device_close(graft_device *device)
{
    if (device != NULL) {
        (void)dnnl_stream_destroy(device->stream);
        (void)dnnl_engine_destroy(device->engine);
        (void)pthread_mutex_destroy(&device->lock);
        free(device);
    }
}

const char *graft_device_name(const graft_device *device) { return device->name; }

const char *graft_device_library(const graft_device *device) { return device->library; }

void graft_device_identify(graft_device *device, const char *name, const char *library)
{
    (void)snprintf(device->name, sizeof(device->name), "%s", name);
    (void)snprintf(device->library, sizeof(device->library), "%s", library);
}

bool graft_device_present(const graft_device *device) { return device->engine != NULL; }

uint32_t graft_device_threads(const graft_device *device) { return device->thread_count; }

/* ------------------------------------------------------------- what it has */

enum { EVERY_ACTIVATION = (1 << GRAFT_ACT_COUNT) - 1 };

/* Fused operators and the activations that they may end with. oneDNN runs each of these as one
 * primitive: bias is an operand, residual and activation are post-operations. */
static const struct {
    uint32_t op;
    uint32_t attr;
    uint32_t activations; /* Bit a: enum graft_activation a. */
} fused[] = {
    {GRAFT_OP_conv_bias,     GRAFT_ATTR_conv_bias_activation,     EVERY_ACTIVATION},
    {GRAFT_OP_conv_bias_add, GRAFT_ATTR_conv_bias_add_activation, EVERY_ACTIVATION},
    {GRAFT_OP_matmul_bias,   GRAFT_ATTR_matmul_bias_activation,   EVERY_ACTIVATION},
};

bool graft_device_has(const graft_device *device, uint32_t op, const int32_t *attrs)
{
    (void)device; /* The only kind of device so far. */
    for (size_t i = 0; i < sizeof(fused) / sizeof(fused[0]); i++) {
        if (fused[i].op == op) {
            return (fused[i].activations >> (uint32_t)attrs[fused[i].attr] & 1u) != 0;
        }
    }
    return graft_op(op) != NULL;
}
