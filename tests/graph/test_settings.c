/* YAML: the tree that is read, and one clear line for everything that is refused. */
#include "graph/base/settings.h"

#include "graph/base/file.h"
#include "tests/support/check.h"

#include <string.h>

static const graft_yaml *parse(graft_env *env, const char *text)
{
    const graft_yaml *root = NULL;
    graft_status status = graft_yaml_parse(env, env->unit, "x.yaml", text, strlen(text), &root);
    if (status != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    return root;
}

CHECK_CASE(test_tree)
{
    const graft_yaml *root = parse(env, "# comment\n"
                                        "name: dense\n"
                                        "shapes:\n"
                                        "  - [2, 3]\n"
                                        "  - [4]\n"
                                        "depth: {most: 3}\n"
                                        "quoted: \"a: b\"\n"
                                        "nothing:\n");
    assert_int_equal(root->kind, GRAFT_YAML_MAPPING);
    assert_int_equal(root->count, 5);
    assert_int_equal(root->line, 2);
    assert_null(root->key);
    assert_string_equal(root->file, "x.yaml");
    assert_string_equal(root->items[0].key, "name");
    assert_string_equal(root->items[0].text, "dense");
    const graft_yaml *shapes = graft_yaml_find(root, "shapes");
    assert_int_equal(shapes->kind, GRAFT_YAML_SEQUENCE);
    assert_int_equal(shapes->line, 3);
    assert_int_equal(shapes->count, 2);
    assert_int_equal(shapes->items[0].count, 2);
    assert_string_equal(shapes->items[0].items[1].text, "3");
    assert_int_equal(shapes->items[1].line, 5);
    assert_null(shapes->items[1].key);
    const graft_yaml *depth = graft_yaml_find(root, "depth");
    assert_string_equal(graft_yaml_find(depth, "most")->text, "3");
    assert_string_equal(graft_yaml_find(root, "quoted")->text, "a: b");
    assert_string_equal(graft_yaml_find(root, "nothing")->text, "");
    assert_null(graft_yaml_find(root, "absent"));
    assert_null(graft_yaml_find(shapes, "name"));
}

CHECK_CASE(test_other_roots)
{
    assert_int_equal(parse(env, "- a\n- b\n")->count, 2);
    assert_string_equal(parse(env, "just text\n")->text, "just text");
    assert_int_equal(parse(env, "[]")->count, 0);
    assert_int_equal(parse(env, "{}")->count, 0);
    assert_string_equal(parse(env, "---\na: 1\n...\n")->items[0].key, "a");
}

/* Every refusal names file and line. */
CHECK_CASE(test_refusals)
{
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"",                       "x.yaml:1: nothing in it"                       },
        {"# only a comment\n",     "x.yaml:2: nothing in it"                       },
        {"a: 1\nb: [1, 2\nc: 3\n", "x.yaml:3: not YAML: "                          },
        {"a: 1\n\tb: 2\n",         "x.yaml:2: not YAML: "                          },
        {"a: 'open\n",             "x.yaml:2: not YAML: "                          },
        {"a: 1\nb: 2\na: 3\n",     "x.yaml:3: the key 'a' stands in line 1 already"},
        {"x:\n  {k: 1, k: 2}\n",   "x.yaml:2: the key 'k' stands in line 2 already"},
        {"a: &here 1\n",           "x.yaml:1: anchors ('&name') are not used here" },
        {"a: &here [1]\n",         "x.yaml:1: anchors ('&name') are not used here" },
        {"a: &here {b: 1}\n",      "x.yaml:1: anchors ('&name') are not used here" },
        {"&here a: 1\n",           "x.yaml:1: anchors ('&name') are not used here" },
        {"a: 1\nb: *a\n",          "x.yaml:2: aliases ('*name') are not used here" },
        {"*a : 1\n",               "x.yaml:1: a key must be a text"                },
        {"a: !!int 1\n",           "x.yaml:1: tags ('!name') are not used here"    },
        {"a: !mine {b: 1}\n",      "x.yaml:1: tags ('!name') are not used here"    },
        {"? [1, 2]\n: 3\n",        "x.yaml:1: a key must be a text"                },
        {"a: 1\n---\nb: 2\n",      "x.yaml:2: a second document; one is expected"  },
        {"a: \"x\\0y\"\n",         "x.yaml:1: a text with a zero byte"             },
        {"a: \xff\n",              "x.yaml: byte 3: not YAML: "                    },
        {"a: \x01\n",              "x.yaml: byte 3: not YAML: "                    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const graft_yaml *root = NULL;
        size_t used = graft_arena_used_bytes(env->unit);
        print_message("# row %zu: %s\n", i, rows[i].part);
        graft_status status =
            graft_yaml_parse(env, env->unit, "x.yaml", rows[i].text, strlen(rows[i].text), &root);
        check_failed(env, status, GRAFT_BAD_INPUT, rows[i].part);
        assert_null(root);
        assert_int_equal(graft_arena_used_bytes(env->unit), used);
    }
}

CHECK_CASE(test_nesting_is_bounded)
{
    for (size_t depth = 30; depth <= 40; depth++) {
        char text[128] = {0};
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        const graft_yaml *root = NULL;
        graft_status status = graft_yaml_parse(env, env->unit, "x.yaml", text, strlen(text), &root);
        if (depth <= 32) {
            CHECK_OK(status);
        } else {
            check_failed(env, status, GRAFT_BAD_INPUT, "x.yaml:1: nested deeper than 32");
        }
    }
}

/* Many members: the stack of children grows, and the tree keeps their order. */
CHECK_CASE(test_wide)
{
    enum { COUNT = 5000 };
    graft_buffer text = {.arena = env->unit};
    for (int i = 0; i < COUNT; i++) {
        graft_buffer_printf(&text, "k%d: [%d, {v: %d}]\n", i, i, i);
    }
    const graft_yaml *root = parse(env, text.data);
    assert_int_equal(root->count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(root->items[i].line, i + 1);
        int64_t value = -1;
        CHECK_OK(graft_yaml_integer(env, &root->items[i].items[1], "v", 0, COUNT, &value));
        assert_int_equal(value, i);
    }
    graft_buffer_printf(&text, "k77: again\n");
    const graft_yaml *none = NULL;
    graft_status status = graft_yaml_parse(env, env->unit, "x.yaml", text.data, text.size, &none);
    check_failed(env, status, GRAFT_BAD_INPUT, "x.yaml:5001: the key 'k77' stands in line 78");
}

CHECK_CASE(test_values)
{
    const graft_yaml *root = parse(env, "t: some text\ni: -42\nr: 2.5e-3\nyes: true\nno: false\n");
    const char *text = NULL;
    int64_t integer = 0;
    double real = 0.0;
    bool flag = false;
    CHECK_OK(graft_yaml_text(env, root, "t", &text));
    assert_string_equal(text, "some text");
    CHECK_OK(graft_yaml_integer(env, root, "i", -42, 0, &integer));
    assert_int_equal(integer, -42);
    CHECK_OK(graft_yaml_real(env, root, "r", 0.0, 1.0, &real));
    assert_true(real == 2.5e-3);
    CHECK_OK(graft_yaml_real(env, root, "i", -100.0, 1.0, &real));
    assert_true(real == -42.0);
    CHECK_OK(graft_yaml_bool(env, root, "yes", &flag));
    assert_true(flag);
    CHECK_OK(graft_yaml_bool(env, root, "no", &flag));
    assert_false(flag);
}

typedef enum { TEXT, INTEGER, REAL, BOOL } wanted;

static graft_status read_value(graft_env *env, const graft_yaml *root, wanted want)
{
    const char *text = "untouched";
    int64_t integer = -99;
    double real = -99.0;
    bool flag = true;
    graft_status status = GRAFT_INTERNAL;
    switch (want) {
    case TEXT:
        status = graft_yaml_text(env, root, "v", &text);
        break;
    case INTEGER:
        status = graft_yaml_integer(env, root, "v", 1, 9, &integer);
        break;
    case REAL:
        status = graft_yaml_real(env, root, "v", 0.5, 1.5, &real);
        break;
    case BOOL:
        status = graft_yaml_bool(env, root, "v", &flag);
        break;
    }
    assert_string_equal(text, "untouched");
    assert_true(integer == -99 && real == -99.0 && flag);
    return status;
}

CHECK_CASE(test_wrong_values)
{
    static const struct {
        const char *text;
        wanted want;
        const char *part;
    } rows[] = {
        {"a: 1\n",                    TEXT,    "x.yaml:1: the key 'v' is missing"                     },
        {"- v\n",                     TEXT,    "x.yaml:1: a mapping with the key 'v' is expected here"},
        {"a: 1\nv:\n",                TEXT,    "x.yaml:2: 'v' is empty; a text is expected"           },
        {"v: [1]\n",                  TEXT,    "x.yaml:1: 'v' is a sequence; a text is expected"      },
        {"v: {a: 1}\n",               INTEGER, "x.yaml:1: 'v' is a mapping; an integer is expected"   },
        {"v: 0\n",                    INTEGER, "'v' is '0'; an integer from 1 to 9 is expected"       },
        {"v: 10\n",                   INTEGER, "'v' is '10'; an integer"                              },
        {"v: 3x\n",                   INTEGER, "'v' is '3x'; an integer"                              },
        {"v: ' 3'\n",                 INTEGER, "'v' is ' 3'; an integer"                              },
        {"v: 0x3\n",                  INTEGER, "'v' is '0x3'; an integer"                             },
        {"v: 3.0\n",                  INTEGER, "'v' is '3.0'; an integer"                             },
        {"v: '-'\n",                  INTEGER, "'v' is '-'; an integer"                               },
        {"v: 99999999999999999999\n", INTEGER, "an integer from 1 to 9 is expected"                   },
        {"v: one\n",                  REAL,    "'v' is 'one'; a number from 0.5 to 1.5 is expected"   },
        {"v: nan\n",                  REAL,    "'v' is 'nan'; a number"                               },
        {"v: inf\n",                  REAL,    "'v' is 'inf'; a number"                               },
        {"v: 0x1p0\n",                REAL,    "'v' is '0x1p0'; a number"                             },
        {"v: 1.6\n",                  REAL,    "'v' is '1.6'; a number"                               },
        {"v: 1e\n",                   REAL,    "'v' is '1e'; a number"                                },
        {"v: yes\n",                  BOOL,    "x.yaml:1: 'v' is 'yes'; true or false is expected"    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# row %zu: %s\n", i, rows[i].part);
        const graft_yaml *root = parse(env, rows[i].text);
        check_failed(env, read_value(env, root, rows[i].want), GRAFT_BAD_INPUT, rows[i].part);
    }
}

CHECK_CASE(test_only)
{
    static const char *const allowed[] = {"a", "b", NULL};
    CHECK_OK(graft_yaml_only(env, parse(env, "b: 1\na: 2\n"), allowed));
    CHECK_OK(graft_yaml_only(env, parse(env, "{}"), allowed));
    check_failed(env, graft_yaml_only(env, parse(env, "a: 1\n\naa: 2\n"), allowed), GRAFT_BAD_INPUT,
                 "x.yaml:3: unknown key 'aa'");
    check_failed(env, graft_yaml_only(env, parse(env, "[a]"), allowed), GRAFT_BAD_INPUT,
                 "x.yaml:1: a mapping is expected here");
}

CHECK_CASE(test_read_from_a_file)
{
    const char *path = check_path("s.yaml");
    const graft_yaml *root = NULL;
    check_failed(env, graft_yaml_read(env, env->unit, path, &root), GRAFT_IO,
                 "s.yaml: cannot open: No such file");
    CHECK_OK(graft_file_write(env, path, "a: [\n", 5));
    check_failed(env, graft_yaml_read(env, env->unit, path, &root), GRAFT_BAD_INPUT,
                 "s.yaml:2: not YAML: ");
    CHECK_OK(graft_file_write(env, path, "a: 1\n", 5));
    CHECK_OK(graft_yaml_read(env, env->unit, path, &root));
    assert_string_equal(root->items[0].text, "1");
    assert_string_equal(root->file, path);
}

static graft_status add_up(graft_env *env, graft_arena *arena, void *context,
                           const graft_yaml *root)
{
    (void)arena;
    int64_t number = 0;
    graft_status status = graft_yaml_integer(env, root, "a", 0, 9, &number);
    *(int64_t *)context = 10 * *(int64_t *)context + number;
    return status;
}

/* A document a line: all of them in their order, or the line that is broken; a zero byte ends
 * none. */
CHECK_CASE(test_lines)
{
    static const struct {
        const char *text;
        size_t size;
        const char *refused; /* NULL: it is read. */
    } rows[] = {
        {"",                                   0,  NULL       },
        {"{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}", 26, NULL       },
        {"{\"a\": 1}\n{\"a\": x}\n",           18, "at line 2"},
        {"{\"a\": 1}\n\n{\"a\": 2}\n",         19, "at line 2"},
        {"{\"a\": 1}\n\0{\"a\": 2}\n",         19, "at line 2"},
    };
    const char *path = check_path("lines.jsonl");
    int64_t sum = 0;
    CHECK_OK(graft_yaml_read_lines(env, env->unit, path, add_up, &sum));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sum = 0;
        CHECK_OK(graft_file_write(env, path, rows[i].text, rows[i].size));
        graft_status status = graft_yaml_read_lines(env, env->unit, path, add_up, &sum);
        if (rows[i].refused != NULL) {
            check_failed(env, status, GRAFT_BAD_INPUT, rows[i].refused);
        } else {
            CHECK_OK(status);
            assert_int_equal(sum, rows[i].size == 0 ? 0 : 123);
        }
    }
}
