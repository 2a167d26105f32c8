/* What a device that is a program answers, from hostile bytes: read as each kind of answer, it is
 * refused with a message or is what the header promises. */
#include "cost/device/device_answers.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODELS = 2, ROUNDS = 3 };

static void check_text(const char *text, size_t bytes)
{
    assert(strnlen(text, bytes) < bytes);
    for (; *text != '\0'; text++) {
        assert(*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\');
    }
}

static bool is_time(double ns) { return ns >= 1.0 && ns <= 3600e9; }

/* What every kind has in common; true when there is an answer to look at. */
static bool check_outcome(graft_env *env, graft_status status, const char *refusal)
{
    if (status != GRAFT_OK) {
        assert(status == GRAFT_BAD_INPUT && strncmp(env->message, "its answer", 10) == 0);
        assert(strchr(env->message, '\n') == NULL);
        graft_env_clear(env);
        return false;
    }
    assert(env->message[0] == '\0');
    if (refusal != NULL) {
        assert(refusal[0] != '\0' && strlen(refusal) <= 200);
        for (; *refusal != '\0'; refusal++) {
            assert(*refusal >= ' ' && *refusal <= '~');
        }
        return false;
    }
    return true;
}

static void read_hello(graft_env *env, const graft_answer_line *line)
{
    const char *refusal = NULL;
    graft_answer_hello hello;
    memset(&hello, 0xff, sizeof hello);
    graft_status status = graft_answer_read_hello(env, env->unit, line, &refusal, &hello);
    if (check_outcome(env, status, refusal)) {
        check_text(hello.name, sizeof hello.name);
        check_text(hello.version, sizeof hello.version);
        check_text(hello.hardware, sizeof hello.hardware);
        check_text(hello.options, sizeof hello.options);
        assert(hello.name[0] != '\0' && hello.version[0] != '\0' && hello.hardware[0] != '\0');
        assert(hello.threads >= 1);
    }
}

static void read_times(graft_env *env, const graft_answer_line *line)
{
    const char *refusal = NULL;
    graft_answer_time time = {.median_ns = -1.0, .spread_ns = -1.0};
    double numbers[MODELS][ROUNDS];
    double *times[MODELS] = {numbers[0], numbers[1]};
    graft_status status = graft_answer_read_time(env, env->unit, line, &refusal, &time);
    if (check_outcome(env, status, refusal)) {
        assert(is_time(time.median_ns) && time.rounds >= 1);
        assert(time.spread_ns >= 0.0 && time.spread_ns <= 3600e9);
    }
    status = graft_answer_read_turns(env, env->unit, line, &refusal, MODELS, ROUNDS, times);
    if (check_outcome(env, status, refusal)) {
        for (uint32_t i = 0; i < MODELS * ROUNDS; i++) {
            assert(is_time(numbers[i / ROUNDS][i % ROUNDS]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    if (size > 4096 || graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    const graft_answer_line line = {(const char *)data, size, 1};
    read_hello(&env, &line);
    read_times(&env, &line);
    graft_env_close(&env);
    return 0;
}
