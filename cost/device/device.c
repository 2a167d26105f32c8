/* device.c - the processor as a device: opening it and naming it (see device.h). */
#include "cost/cpu/device_cpu.h"
#include "graph/base/file.h"
#include "graph/base/share.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Changes when our own kernels get so much faster or slower, on one thread or on several, that other
 * rewrites would pay: recorded costs of older ones are then not taken for theirs. */
enum { PLAIN_KERNELS_VERSION = 4, SHARED_KERNELS_VERSION = 5 };

/* Changes whenever times are taken in another way, so that old and new ones are never added up. */
enum { PROTOCOL_VERSION = 6 };

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
    GRAFT_SCOPED(env->scratch);
    uint8_t *text = NULL;
    size_t size = 0;
    GRAFT_PASS_IN(env, graft_file_read(env, env->scratch, "/proc/cpuinfo", &text, &size),
                  "while naming this processor");
    const char *info = (const char *)text;
    (void)snprintf(device->head.name, sizeof(device->head.name), "%s (%s-%s-%s), %s, %u thread%s",
                   find_processor_field(env->scratch, info, "model name"),
                   find_processor_field(env->scratch, info, "cpu family"),
                   find_processor_field(env->scratch, info, "model"),
                   find_processor_field(env->scratch, info, "stepping"), name_isa(),
                   device->head.thread_count, device->head.thread_count == 1 ? "" : "s");
    const dnnl_version_t *version = dnnl_version();
    (void)snprintf(device->head.library, sizeof(device->head.library),
                   "oneDNN %d.%d.%d, plain %d, protocol %d", version->major, version->minor,
                   version->patch,
                   device->head.thread_count == 1 ? PLAIN_KERNELS_VERSION : SHARED_KERNELS_VERSION,
                   PROTOCOL_VERSION);
    return GRAFT_OK;
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
    omp_set_num_threads((int)device->head.thread_count);
    device->head.groups = true;
    return name_processor(env, device);
}

graft_status graft_cpu_open(graft_env *env, const char *text, uint32_t thread_count,
                            graft_device **device)
{
    (void)text;
    graft_device *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a device");
    }
    d->head.backend = &graft_backend_cpu;
    d->head.thread_count = thread_count;
    d->shared_from = GRAFT_SHARE_LEAST;
    (void)pthread_mutex_init(&d->lock, NULL);
    *device = d; /* Closed by the caller, also when this fails. */
    return start_engine(env, d);
}

void graft_cpu_close(graft_device *device)
{
    (void)dnnl_stream_destroy(device->stream);
    (void)dnnl_engine_destroy(device->engine);
    (void)pthread_mutex_destroy(&device->lock);
    for (uint32_t i = 0; i < PROGRAM_FOUND_LISTS; i++) {
        while (device->found[i] != NULL) {
            program_found *next = device->found[i]->next;
            free(device->found[i]);
            device->found[i] = next;
        }
    }
    free(device);
}
