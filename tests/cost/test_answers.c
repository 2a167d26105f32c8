/* What devices that are programs answer: what is taken, and how what is wrong is named. */
#include "cost/device/device_answers.h"
#include "tests/support/check.h"

#include <string.h>

#define HELLO(name, more)                                                                          \
    "{\"id\": 7, \"protocol\": 1, \"name\": \"" name "\", \"version\": \"1\", "                    \
    "\"hardware\": \"a board\", " more "}"
#define TIME(median, spread) "{\"id\": 7, \"median_ns\": " median ", \"spread_ns\": " spread "}"

static const struct {
    const char *line;
    const char *why; /* NULL: it is taken. */
} hellos[] = {
    {HELLO("x",                                                                       "\"threads\": 2, \"times_models\": true"),                                         NULL},
    {HELLO("x",                                                                               "\"threads\": 2, \"times_models\": true, \"more\": [1]"),                                                                                                                                                        NULL},
    {HELLO("x",                                                                           "\"threads\": 2, \"times_models\": true, \"operators\": [\"relu\", \"none\"]"),
     NULL},
    {HELLO("x","\"threads\": 2, \"times_models\": true, \"operators\": \"relu\""),
     "'operators' is no list"},
    {HELLO("x",                                                                       "\"threads\": 2, \"times_models\": true, \"fuses\": [\"relu(a) = a\"]"),                                                                                                                                                                NULL},
    {HELLO("x",                                                                               "\"threads\": 2, \"times_models\": true, \"fuses\": \"relu(a) = a\""),
     "'fuses' is no list of texts"},
    {HELLO("x",                                                                           "\"threads\": 2, \"times_models\": true, \"fuses\": [[1]]"),
     "'fuses' is no list of texts"},
    {HELLO("","\"threads\": 2, \"times_models\": true"),                                                                                                                                      "'name'"},
    {HELLO("a\\\\b",                                                                       "\"threads\": 2, \"times_models\": true"),                   "'name' is not 1 to 32 printable"},
    {HELLO("123456789012345678901234567890123",                                                                               "\"threads\": 2, \"times_models\": true"),
     "'name' is not 1 to 32 printable"},
    {HELLO("x",                                                                       "\"threads\": 0, \"times_models\": true"),                   "'threads' is '0'"},
    {HELLO("x","\"threads\": 2"),"'times_models'"},
    {HELLO("x",                                       "\"threads\": 2, \"times_models\": 1"), "'times_models' is '1'"},
    {"{\"id\": 7, \"protocol\": 2}",                                                                               "'protocol' is '2'"                                                                                                                                                       },
    {"{\"id\": 7}",                                                             "'protocol'"                                                                                                                           },
    {"hello",                                                                                               "no JSON object"                                                                                                                                                                  },
    {"",                                                                       "no JSON object"                                                                           },
    {"{",                                                                               "no JSON object"                                                                                                                                  },
    {"{\"id\": 8, \"protocol\": 1}",                                                                               "is to question 8"},
    {"{\"id\": -7, \"protocol\": 1}",                                                                               "'id' is '-7'"                              },
};

static const struct {
    const char *line;
    const char *why;
} times[] = {
    {TIME("1",                 "0"),                            NULL},
    {TIME("2.5e6",                        "1e3"),                                            NULL},
    {TIME("0",                    "0"),        "'median_ns' is '0'"},
    {TIME("-5", "0"),     "'median_ns' is '-5'"},
    {TIME("NaN",                "0"),                                           "'median_ns' is 'NaN'"},
    {TIME("Infinity",                        "0"),                                              "'median_ns' is 'Infinity'"},
    {TIME("1e400",  "0"),"'median_ns' is '1e400'"},
    {TIME("1e30","0"),"'median_ns' is '1e30'"},
    {TIME("null",             "0"),                                       "'median_ns' is 'null'"},
    {TIME("5",                        "-1"),                                             "'spread_ns' is '-1'"},
    {"{\"id\": 7, \"median_ns\": 5}", "'spread_ns'"                                                                            },
    {"{\"id\": 7, \"median_ns\": 5, \"median_ns\": 6, \"spread_ns\": 0}",        "median_ns"},
    {"{\"id\": 7, \"median_ns\": 5, \"spread_ns\": 0, \"rounds\": 0}",                 "'rounds' is '0'"                   },
};

static graft_answer_line line_of(const char *text)
{
    return (graft_answer_line){text, strlen(text), 7};
}

CHECK_CASE(test_hello)
{
    for (size_t i = 0; i < sizeof hellos / sizeof hellos[0]; i++) {
        const char *refusal = "?";
        graft_answer_hello hello = {.threads = 99};
        const graft_answer_line line = line_of(hellos[i].line);
        print_message("# %s\n", line.text);
        graft_status status = graft_answer_read_hello(env, env->unit, &line, &refusal, &hello);
        if (hellos[i].why == NULL) {
            CHECK_OK(status);
            assert_null(refusal);
            assert_string_equal(hello.hardware, "a board");
            assert_int_equal(hello.threads, 2);
            assert_true(hello.times_models && hello.has[GRAFT_OP_relu]);
            assert_int_equal(hello.has[GRAFT_OP_add], strstr(hellos[i].line, "operators") == NULL);
            assert_int_equal(hello.fuse_count, strstr(hellos[i].line, "fuses") != NULL);
            assert_string_equal(hello.fuse_count == 0 ? "relu(a) = a" : hello.fuses[0],
                                "relu(a) = a");
        } else {
            check_failed(env, status, GRAFT_BAD_INPUT, hellos[i].why);
            assert_int_equal(hello.threads, 99);
        }
    }
}

CHECK_CASE(test_time)
{
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const char *refusal = "?";
        graft_answer_time time = {.median_ns = -1.0};
        const graft_answer_line line = line_of(times[i].line);
        print_message("# %s\n", line.text);
        graft_status status = graft_answer_read_time(env, env->unit, &line, &refusal, &time);
        if (times[i].why == NULL) {
            CHECK_OK(status);
            assert_true(time.median_ns >= 1.0 && time.rounds == 1);
        } else {
            check_failed(env, status, GRAFT_BAD_INPUT, times[i].why);
            assert_true(time.median_ns == -1.0);
        }
    }
}

CHECK_CASE(test_rounds)
{
    static const char good[] = "{\"id\": 7, \"rounds_ns\": [[1, 2], [3, 4]]}";
    static const char *const bad[] = {
        "{\"id\": 7}",
        "{\"id\": 7, \"rounds_ns\": [[1, 2]]}",
        "{\"id\": 7, \"rounds_ns\": [[1, 2], [3]]}",
        "{\"id\": 7, \"rounds_ns\": [[1, 2], [3, 0]]}",
        "{\"id\": 7, \"rounds_ns\": [[1, 2], [3, inf]]}",
        "{\"id\": 7, \"rounds_ns\": [[1, 2], [3, [4]]]}",
        "{\"id\": 7, \"rounds_ns\": {\"a\": [1, 2], \"b\": [3, 4]}}",
    };
    double numbers[4] = {0};
    double *const lists[2] = {numbers, numbers + 2};
    const char *refusal = "?";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const graft_answer_line line = line_of(bad[i]);
        check_failed(env, graft_answer_read_turns(env, env->unit, &line, &refusal, 2, 2, lists),
                     GRAFT_BAD_INPUT, "its answer");
        assert_true(numbers[0] == 0.0);
    }
    const graft_answer_line line = line_of(good);
    CHECK_OK(graft_answer_read_turns(env, env->unit, &line, &refusal, 2, 2, lists));
    assert_true(numbers[0] == 1.0 && numbers[1] == 2.0 && numbers[2] == 3.0 && numbers[3] == 4.0);
}

CHECK_CASE(test_refusal)
{
    static const char text[] = "{\"id\": 7, \"unsupported\": \"no such\\nthing\"}";
    const char *refusal = NULL;
    graft_answer_time time = {.rounds = 0};
    const graft_answer_line line = line_of(text);
    CHECK_OK(graft_answer_read_time(env, env->unit, &line, &refusal, &time));
    assert_string_equal(refusal, "no such?thing");
    assert_int_equal(time.rounds, 0);
}
