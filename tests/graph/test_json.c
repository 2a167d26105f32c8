/* JSON Lines: escapes, numbers that read back to the same double, order and separators. */
#include "graph/base/json.h"

#include "graph/base/rng.h"
#include "tests/support/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ends the object and returns the printed line, which the caller frees. */
static char *line_of(graft_json *json)
{
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    assert_non_null(out);
    graft_json_end(json, out);
    (void)fclose(out);
    assert_int_equal(strlen(line), size);
    return line;
}

static void check_line(graft_json *json, const char *want)
{
    char *line = line_of(json);
    assert_string_equal(line, want);
    free(line);
}

CHECK_CASE(test_members_in_order)
{
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "b", "x");
    graft_json_integer(&json, "a", INT64_MIN);
    graft_json_number(&json, "n", 0.1);
    graft_json_bool(&json, "yes", true);
    graft_json_bool(&json, "no", false);
    graft_json_string(&json, "none", NULL);
    graft_json_raw(&json, "list", "[1, 2]");
    check_line(&json, "{\"b\": \"x\", \"a\": -9223372036854775808, \"n\": 0.1, \"yes\": true, "
                      "\"no\": false, \"none\": null, \"list\": [1, 2]}\n");
}

/* Each conversion says the same as the function that it stands for. */
CHECK_CASE(test_several_members_at_once)
{
    graft_json one;
    graft_json all;
    graft_buffer list = {.arena = env->scratch};
    const char *volatile none = NULL; /* The compiler warns of one that it sees. */
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    graft_json_begin(&one, env->scratch);
    graft_json_string(&one, "text", "a \"=%s\"");
    graft_json_string(&one, "none", NULL);
    graft_json_raw(&one, "raw", "[1]");
    graft_json_integer(&one, "two words", -1);
    graft_json_integer(&one, "u", UINT32_MAX);
    graft_json_integer(&one, "lld", INT64_MIN);
    graft_json_integer(&one, "llu", INT64_MAX);
    graft_json_integer(&one, "zu", 1LL << 40);
    graft_json_number(&one, "g", 0.1);
    graft_json_bool(&one, "yes", true);
    graft_json_bool(&one, "no", false);
    const char *want = graft_json_line(&one);
#define MEMBERS                                                                                    \
    "text=%s none=%s raw=(%s) two words=%d u=%u lld=%lld llu=%llu zu=%zu g=%g yes=%c no=%c",       \
        "a \"=%s\"", none, "[1]", -1, UINT32_MAX, (long long)INT64_MIN,                            \
        (unsigned long long)INT64_MAX, (size_t)1 << 40, 0.1, true, false
    graft_json_begin(&all, env->scratch);
    graft_json_add(&all, MEMBERS);
    check_line(&all, want);
    graft_json_print(env->scratch, out, MEMBERS);
    (void)fclose(out);
    assert_string_equal(printed, want);
    free(printed);
    graft_json_item(&list, "a=%d", 1);
    graft_json_item(&list, "b=%d", 2);
    assert_string_equal(list.data, "{\"a\": 1},\n{\"b\": 2}");
}

CHECK_CASE(test_lists_of_objects)
{
    graft_json json;
    graft_json one;
    graft_buffer list = {.arena = env->scratch};
    graft_json_begin(&json, env->scratch);
    graft_json_list(&json, "none", &list);
    for (int64_t i = 1; i <= 2; i++) {
        graft_json_begin(&one, env->scratch);
        graft_json_integer(&one, "i", i);
        graft_json_append(&one, &list);
    }
    graft_json_list(&json, "two", &list);
    graft_json_begin(&one, env->scratch);
    graft_json_raw(&json, "object", graft_json_close(&one));
    check_line(&json, "{\"none\": [], \"two\": [{\"i\": 1},\n{\"i\": 2}], \"object\": {}}\n");
}

CHECK_CASE(test_empty_object)
{
    graft_json json;
    graft_json_begin(&json, env->scratch);
    check_line(&json, "{}\n");
}

CHECK_CASE(test_texts_are_escaped)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {"",                                     ""                                                },
        {"a\"b\\c/",                             "a\\\"b\\\\c/"                                    },
        {"\n\t\r\x01\x1f\x7f",                   "\\n\\t\\u000d\\u0001\\u001f\\u007f"              },
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3"            },
        {"\xff"
         "a",                           "\xef\xbf\xbd"
         "a"                                                                 },
        {"\xc3",                                 "\xef\xbf\xbd"                                    },
        {"\xe2\x82",                             "\xef\xbf\xbd\xef\xbf\xbd"                        },
        {"\xc0\xaf",                             "\xef\xbf\xbd\xef\xbf\xbd"                        },
        {"\xed\xa0\x80",                         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"            },
        {"\xf4\x90\x80\x80",                     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, rows[i].text, rows[i].text); /* Keys are texts as well. */
        char *want =
            graft_arena_printf(env->scratch, "{\"%s\": \"%s\"}\n", rows[i].want, rows[i].want);
        check_line(&json, want);
    }
}

CHECK_CASE(test_numbers_are_short)
{
    static const struct {
        double value;
        const char *want;
    } rows[] = {
        {0.0,       "0"                      },
        {-0.0,      "-0"                     },
        {1.0,       "1"                      },
        {-2.5,      "-2.5"                   },
        {0.1,       "0.1"                    },
        {0.1 + 0.2, "0.30000000000000004"    },
        {1e20,      "1e+20"                  },
        {123456.0,  "123456"                 },
        {DBL_MAX,   "1.7976931348623157e+308"},
        {0x1p-1074, "5e-324"                 },
        {NAN,       "null"                   },
        {INFINITY,  "null"                   },
        {-INFINITY, "null"                   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_number(&json, "x", rows[i].value);
        check_line(&json, graft_arena_printf(env->scratch, "{\"x\": %s}\n", rows[i].want));
    }
}

/* Any bits that are a finite number. */
CHECK_CASE(test_numbers_read_back)
{
    graft_rng rng = check_rng(1);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = graft_rng_next(&rng);
        double value = 0.0;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value)) {
            continue;
        }
        GRAFT_SCOPED(env->scratch);
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_number(&json, "x", value);
        char *line = line_of(&json);
        double back = strtod(line + strlen("{\"x\": "), NULL);
        assert_memory_equal(&back, &value, sizeof(value));
        free(line);
    }
}

/* The line is assembled whole: a full disk is left in the stream for the program's end to find. */
CHECK_CASE(test_write_errors_stay_in_the_stream)
{
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        CHECK_SKIP("no /dev/full here");
    }
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_end(&json, full);
    assert_int_not_equal(ferror(full), 0);
    (void)fclose(full);
}

/* A list, and an object that is wanted as text. */
CHECK_CASE(test_lists)
{
    const char *const texts[] = {"a \"b\"", "", "c"};
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_strings(&json, "some", texts, 3);
    graft_json_strings(&json, "none", NULL, 0);
    (void)graft_json_line(&json);
    assert_string_equal(json.text.data,
                        "{\"some\": [\"a \\\"b\\\"\", \"\", \"c\"], \"none\": []}\n");
}
