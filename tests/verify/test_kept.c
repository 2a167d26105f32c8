/* Answers kept in a file: found again, and none that is not whole. */
#include "verify/kept.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ANSWERS = 20 };

static const char stage[] = "prove";

/* Question i has i bytes, its answer i * i. */
static graft_buffer question(graft_env *env, uint32_t i)
{
    graft_buffer text = {.arena = env->life};
    for (uint32_t k = 0; k < i; k++) {
        const uint8_t byte = (uint8_t)(i + k);
        graft_buffer_append(&text, &byte, 1);
    }
    return text;
}

static void fill_answer(uint8_t *bytes, uint32_t i)
{
    for (uint32_t k = 0; k < i * i; k++) {
        bytes[k] = (uint8_t)(i * 7 + k);
    }
}

static graft_kept *open_kept(graft_env *env, const char *path)
{
    graft_kept *kept = NULL;
    CHECK_OK(graft_kept_open(env, env->life, path, &kept));
    return kept;
}

/* The questions below `count` are answered, those from there on are not. */
static void check_answers(graft_env *env, const graft_kept *kept, uint32_t count)
{
    uint8_t want[ANSWERS * ANSWERS];
    assert_int_equal(graft_kept_count(kept), count);
    for (uint32_t i = 0; i < ANSWERS; i++) {
        const graft_buffer asked = question(env, i);
        size_t bytes = 0;
        const uint8_t *answer = graft_kept_find(kept, stage, &asked, &bytes);
        assert_null(graft_kept_find(kept, "lift", &asked, &bytes));
        if (i >= count) {
            assert_null(answer);
            continue;
        }
        fill_answer(want, i);
        assert_non_null(answer);
        assert_int_equal(bytes, i * i);
        assert_memory_equal(answer, want, i * i);
    }
}

static void add_answers(graft_env *env, graft_kept *kept, uint32_t first, uint32_t count)
{
    uint8_t answer[ANSWERS * ANSWERS];
    for (uint32_t i = first; i < first + count; i++) {
        const graft_buffer asked = question(env, i);
        fill_answer(answer, i);
        CHECK_OK(graft_kept_add(env, kept, stage, &asked, answer, i * i));
    }
}

CHECK_CASE(test_answers)
{
    const char *path = check_path("new/answers");
    graft_kept *kept = open_kept(env, path);
    check_answers(env, kept, 0);
    add_answers(env, kept, 0, ANSWERS / 2);
    check_answers(env, kept, 0); /* They are for later runs. */
    graft_kept_close(kept);
    kept = open_kept(env, path);
    check_answers(env, kept, ANSWERS / 2);
    add_answers(env, kept, ANSWERS / 2, ANSWERS / 2);
    graft_kept_close(kept);
    kept = open_kept(env, path);
    check_answers(env, kept, ANSWERS);
    graft_kept_close(kept);
}

/* Whatever byte is missing or wrong: the answers before it, and new ones behind those. */
CHECK_CASE(test_damage)
{
    const char *path = check_path("answers");
    uint8_t *whole = NULL;
    size_t size = 0;
    graft_kept *kept = open_kept(env, path);
    add_answers(env, kept, 0, 6);
    graft_kept_close(kept);
    CHECK_OK(graft_file_read(env, env->life, path, &whole, &size));
    for (size_t at = 0; at < size; at += 3) {
        for (uint32_t way = 0; way < 2; way++) {
            uint8_t *bytes = graft_arena_alloc(env->life, size);
            memcpy(bytes, whole, size);
            bytes[at] ^= 0x10;
            CHECK_OK(graft_file_write(env, path, bytes, way == 0 ? at : size));
            kept = open_kept(env, path);
            uint32_t count = graft_kept_count(kept);
            assert_true(count < 6 || way == 1); /* Padding says nothing. */
            check_answers(env, kept, count);
            add_answers(env, kept, count, 6 - count);
            graft_kept_close(kept);
            kept = open_kept(env, path);
            check_answers(env, kept, 6);
            graft_kept_close(kept);
        }
    }
}

CHECK_CASE(test_failures)
{
    const char *folder = check_folder();
    const char *path = check_path("answers");
    graft_kept *kept = open_kept(env, path);
    graft_kept *second = NULL;
    assert_int_equal(graft_kept_open(env, env->life, path, &second), GRAFT_IO);
    assert_non_null(strstr(env->message, path));
    graft_env_clear(env);
    graft_kept_close(kept);
    assert_int_equal(graft_kept_open(env, env->life, folder, &second), GRAFT_IO);
    assert_non_null(strstr(env->message, folder));
    graft_env_clear(env);
    graft_kept_close(NULL);
}
