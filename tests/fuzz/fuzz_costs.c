/* Cost databases and signatures from hostile bytes: refused with a message, or read and written
 * back to the same bytes. A checksum would keep the fuzzer out, so the input is also tried with a
 * right last line behind it. */
#include "cost/database/database_text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count_record(void *context, const graft_database_record *record)
{
    uint32_t *count = context;
    assert(record->entry.median_ns > 0.0 && record->device != NULL && record->library != NULL);
    (*count)++;
}

/* Gives the number of records, or none when the text was refused. */
static uint32_t read_database(graft_env *env, const char *text, size_t size)
{
    uint32_t count = 0;
    graft_status status = graft_database_parse(env, "input", text, size, count_record, &count);
    assert(status == GRAFT_OK || (status == GRAFT_BAD_INPUT && env->message[0] != '\0'));
    assert(status == GRAFT_OK || count == 0);
    graft_env_clear(env);
    return count;
}

static void read_with_end(graft_env *env, const char *text, size_t size)
{
    graft_buffer whole = {.arena = env->unit};
    uint32_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
    }
    graft_buffer_append(&whole, text, size);
    graft_buffer_printf(&whole, "{\"entries\":%u,\"xxh3\":\"%016" PRIx64 "\"}\n",
                        lines > 0 ? lines - 1 : 0, XXH3_64bits(text, size));
    (void)read_database(env, whole.data, whole.size);
}

static void read_signature(graft_env *env, const char *text)
{
    graft_signature first;
    graft_signature second;
    graft_buffer printed = {.arena = env->unit};
    if (graft_signature_parse(env, text, &first) != GRAFT_OK) {
        assert(env->message[0] != '\0');
        graft_env_clear(env);
        return;
    }
    graft_signature_print(&first, &printed);
    assert(graft_signature_parse(env, printed.data, &second) == GRAFT_OK);
    assert(graft_signature_equal(&first, &second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    if (graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    char *text = graft_arena_alloc(env.unit, size + 1);
    memcpy(text, data, size);
    (void)read_database(&env, text, size);
    read_with_end(&env, text, size);
    read_signature(&env, text);
    graft_env_close(&env);
    return 0;
}
