/* The error in flight: the first message wins, frames follow, one line whatever is in it. */
#include "graph/base/env.h"

#include "tests/support/check.h"

#include <string.h>

static void test_open_sets_defaults(void **state)
{
    (void)state;
    graft_env env;
    assert_int_equal(graft_env_open(&env), GRAFT_OK);
    assert_non_null(env.life);
    assert_non_null(env.unit);
    assert_non_null(env.scratch);
    assert_string_equal(env.message, "");
    assert_int_equal(env.verbosity, 1);
    assert_int_equal(env.thread_count, 1);
    assert_false(env.json);
    graft_env_close(&env);
    graft_env_close(&env); /* Closing twice is harmless. */
}

static void test_first_message_wins(void **state)
{
    graft_env *env = *state;
    assert_int_equal(GRAFT_FAIL(env, GRAFT_IO, "%s: gone", "a"), GRAFT_IO);
    assert_int_equal(GRAFT_FAIL(env, GRAFT_INTERNAL, "later"), GRAFT_INTERNAL);
    assert_string_equal(env->message, "a: gone");
    graft_env_clear(env);
    assert_string_equal(env->message, "");
}

static graft_status fail_inside(graft_env *env)
{
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "x.yaml:3: bad");
}

static graft_status try_inside(graft_env *env, bool *after)
{
    graft_status status = GRAFT_OK;
    GRAFT_TRY(env, fail_inside(env), "while reading %s", "x.yaml");
    *after = true;
done:
    return status;
}

static graft_status check_inside(graft_env *env, bool *after)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(fail_inside(env));
    *after = true;
done:
    return status;
}

static void test_frames_follow(void **state)
{
    graft_env *env = *state;
    bool after = false;
    assert_int_equal(try_inside(env, &after), GRAFT_BAD_INPUT);
    assert_false(after);
    assert_string_equal(env->message, "x.yaml:3: bad, while reading x.yaml");
    graft_env_clear(env);
    assert_int_equal(check_inside(env, &after), GRAFT_BAD_INPUT);
    assert_false(after);
    assert_string_equal(env->message, "x.yaml:3: bad");
}

static void test_frame_without_message(void **state)
{
    graft_env *env = *state;
    graft_env_frame(env, "while sorting");
    assert_string_equal(env->message, "failed without a message, while sorting");
}

static void test_long_messages_are_cut(void **state)
{
    graft_env *env = *state;
    char text[3 * GRAFT_MESSAGE_BYTES];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(GRAFT_FAIL(env, GRAFT_IO, "%s", text), GRAFT_IO);
    assert_int_equal(strlen(env->message), GRAFT_MESSAGE_BYTES - 1);
    assert_string_equal(env->message + GRAFT_MESSAGE_BYTES - 4, "...");
    graft_env_frame(env, "more"); /* No room left: nothing may be written past the end. */
    assert_int_equal(strlen(env->message), GRAFT_MESSAGE_BYTES - 1);
}

static void test_message_is_one_line(void **state)
{
    graft_env *env = *state;
    assert_int_equal(GRAFT_FAIL(env, GRAFT_IO, "%s: gone", "a\nb\x1b[2J\x7f"), GRAFT_IO);
    assert_string_equal(env->message, "a?b?[2J?: gone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_sets_defaults),
        CHECK_TEST(test_first_message_wins),
        CHECK_TEST(test_frames_follow),
        CHECK_TEST(test_frame_without_message),
        CHECK_TEST(test_long_messages_are_cut),
        CHECK_TEST(test_message_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
