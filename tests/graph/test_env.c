/* The error in flight: the first message wins, frames follow, one line whatever is in it. */
#include "graph/base/env.h"

#include "tests/support/check.h"

#include <string.h>

CHECK_CASE(test_open_sets_defaults)
{
    graft_env opened;
    CHECK_OK(graft_env_open(&opened));
    assert_non_null(opened.life);
    assert_non_null(opened.unit);
    assert_non_null(opened.scratch);
    assert_string_equal(opened.message, "");
    assert_int_equal(opened.verbosity, 1);
    assert_int_equal(opened.thread_count, 1);
    assert_false(opened.json);
    graft_env_close(&opened);
    graft_env_close(&opened); /* Closing twice is harmless. */
}

CHECK_CASE(test_first_message_wins)
{
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

CHECK_CASE(test_frames_follow)
{
    bool after = false;
    assert_int_equal(try_inside(env, &after), GRAFT_BAD_INPUT);
    assert_false(after);
    assert_string_equal(env->message, "x.yaml:3: bad, while reading x.yaml");
    graft_env_clear(env);
    assert_int_equal(check_inside(env, &after), GRAFT_BAD_INPUT);
    assert_false(after);
    assert_string_equal(env->message, "x.yaml:3: bad");
}

CHECK_CASE(test_frame_without_message)
{
    graft_env_frame(env, "while sorting");
    assert_string_equal(env->message, "failed without a message, while sorting");
}

CHECK_CASE(test_long_messages_are_cut)
{
    char text[3 * GRAFT_MESSAGE_BYTES];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(GRAFT_FAIL(env, GRAFT_IO, "%s", text), GRAFT_IO);
    assert_int_equal(strlen(env->message), GRAFT_MESSAGE_BYTES - 1);
    assert_string_equal(env->message + GRAFT_MESSAGE_BYTES - 4, "...");
    graft_env_frame(env, "more"); /* No room left: nothing may be written past the end. */
    assert_int_equal(strlen(env->message), GRAFT_MESSAGE_BYTES - 1);
}

CHECK_CASE(test_message_is_one_line)
{
    assert_int_equal(GRAFT_FAIL(env, GRAFT_IO, "%s: gone", "a\nb\x1b[2J\x7f"), GRAFT_IO);
    assert_string_equal(env->message, "a?b?[2J?: gone");
}
