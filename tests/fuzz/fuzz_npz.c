/* Archives of arrays from hostile bytes: refused with a message that names the file, or tensors
 * whose data is there, which come back from what is packed of them. Checksums are put right first,
 * as no fuzzer finds them. */
#include "graph/base/npz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t number_at(const uint8_t *at, int bytes)
{
    return bytes == 0 ? 0 : at[0] | number_at(at + 1, bytes - 1) << 8;
}

/* Of stored entries, where their local header has no extra field. */
static void mend_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 46 <= size; at++) {
        const size_t count = number_at(data + at + 20, 4), local = number_at(data + at + 42, 4);
        const size_t first = local + 30 + number_at(data + at + 28, 2);
        if (memcmp(data + at, "PK\1\2", 4) == 0 && data[at + 10] == 0 && first <= size &&
            count <= size - first) {
            const uLong sum = crc32_z(0, data + first, count);
            for (int i = 0; i < 4; i++) {
                data[at + 16 + (size_t)i] = (uint8_t)(sum >> 8 * i);
            }
        }
    }
}

static void check_same(graft_env *env, const graft_run_tensor *tensors, uint32_t count)
{
    graft_bytes bytes = {.file = "packed"};
    graft_run_tensor *again = NULL;
    uint32_t again_count = 0;
    assert(graft_npz_pack(env, env->unit, tensors, count, &bytes) == GRAFT_OK);
    assert(graft_npz_parse(env, env->unit, bytes, &again, &again_count) == GRAFT_OK);
    assert(again_count == count);
    for (uint32_t i = 0; i < count; i++) {
        const size_t byte_count = (size_t)graft_shape_bytes(&tensors[i].shape);
        assert(strcmp(again[i].name, tensors[i].name) == 0);
        assert(graft_shape_equal(&again[i].shape, &tensors[i].shape) && byte_count > 0);
        assert(memcmp(again[i].data, tensors[i].data, byte_count) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    graft_run_tensor *tensors = NULL;
    uint32_t count = 0;
    if (size > 8192 || graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    uint8_t *copy = malloc(size + 1);
    assert(copy != NULL);
    memcpy(copy, data, size);
    mend_checksums(copy, size);
    const graft_bytes bytes = {"hostile.npz", copy, size};
    graft_status status = graft_npz_parse(&env, env.unit, bytes, &tensors, &count);
    if (status == GRAFT_OK) {
        assert(env.message[0] == '\0');
        check_same(&env, tensors, count);
    } else {
        assert(status == GRAFT_BAD_INPUT || status == GRAFT_UNSUPPORTED);
        assert(strncmp(env.message, "hostile.npz: ", 13) == 0);
    }
    free(copy);
    graft_env_close(&env);
    return 0;
}
