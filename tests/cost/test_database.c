/* Signatures as text, and the cost database: what is written is read back, whatever is cut off,
 * changed or foreign is refused, two writers lose nothing, and better entries win. */
#include "cost/database/database.h"

#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A relu over `size` elements: as many different signatures as needed. */
static graft_signature relu_signature(int32_t size)
{
    graft_signature s;
    memset(&s, 0, sizeof(s));
    s.op = GRAFT_OP_relu;
    s.input_count = 1;
    s.output_count = 1;
    s.inputs[0].dims[0] = size;
    s.inputs[0].rank = 1;
    s.inputs[0].dtype = GRAFT_DTYPE_F32;
    return s;
}

static graft_cost_entry entry_of(double ns, uint32_t rounds)
{
    graft_cost_entry entry = {
        .median_ns = graft_cost_round(ns), .spread_ns = 1.5, .rounds = rounds};
    memcpy(entry.implementation, "plain", 6);
    return entry;
}

static graft_database *open_database(graft_env *env, const char *path)
{
    return check_database_open(env, path, "this \"processor\"\\1", "library 1");
}

static double find_ns(const graft_database *database, int32_t size)
{
    graft_signature s = relu_signature(size);
    const graft_cost_entry *entry = graft_database_find(database, &s);
    return entry == NULL ? 0.0 : entry->median_ns;
}

static void add_ns(graft_database *database, int32_t size, double ns, uint32_t rounds)
{
    graft_signature s = relu_signature(size);
    graft_cost_entry entry = entry_of(ns, rounds);
    graft_database_add(database, &s, &entry);
}

CHECK_CASE(test_signature_text)
{
    graft_rng rng = check_rng(11);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t draw = 0; draw < 20 && !check_case_is_lowered(op); draw++) {
            check_case drawn;
            check_case_draw(&rng, op, &drawn);
            uint32_t inputs = graft_op(op)->input_count;
            graft_signature s = check_signature(env, op, drawn.attrs, drawn.in,
                                                graft_rng_below(&rng, 1u << inputs), draw % 2);
            graft_signature back;
            graft_buffer text = {.arena = env->scratch};
            s.in_place = op == GRAFT_OP_conv_bias_add && draw % 3 == 0;
            graft_signature_print(&s, &text);
            CHECK_OK(graft_signature_parse(env, text.data, &back));
            assert_true(graft_signature_equal(&s, &back));
            assert_true(graft_signature_hash(&s, 7) == graft_signature_hash(&back, 7));
        }
    }
}

#define INTEGERS(activation, result)                                                               \
    "integer_matmul(activation=" #activation ", result=" #result ") "

/* Groups on integers: see integers.h. */
CHECK_CASE(test_integer_text)
{
    static const struct {
        const char *text;
        uint64_t flops;
    } rows[] = {
        {INTEGERS(1, 2) "u8[2,3]@row i8[3,4]@const f32[11]@const -> row own",                 48},
        {"integer_conv(stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, "
         "dilation_h=1, dilation_w=1, groups=2, activation=2, result=1) i8[1,4,6,5]@nhwc "
         "i8[8,2,3,3]@const f32[19]@const -> nhwc far",          2 * 8 * 12 * 2 * 9                           },
        {"integer_add(activation=0, result=3) u8[2,3]@row i8[2,3]@row f32[7]@const -> row",          6},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_signature s;
        graft_buffer text = {.arena = env->scratch};
        CHECK_OK(graft_signature_parse(env, rows[i].text, &s));
        graft_signature_print(&s, &text);
        assert_string_equal(text.data, rows[i].text);
        assert_int_equal(graft_signature_flops(&s), rows[i].flops);
    }
}

CHECK_CASE(test_signature_refusals)
{
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"",                                                       "the name of an operator"                                          },
        {"reluu() f32[3]@row -> row",                              "the name of an operator"                                          },
        {"relu( f32[3]@row -> row",                                "')'"                                                              },
        {"relu() f32[3@row -> row",                                "']'"                                                              },
        {"relu() f32[0]@row -> row",                               "at least 1"                                                       },
        {"relu() f32[3]@diagonal -> row",                          "a layout"                                                         },
        {"relu() f32[3]@row -> row ",                              "the end"                                                          },
        {"relu() f32[3]@nhwc -> nhwc",                             "do not fit"                                                       },
        {"relu() f32[99999999999]@row -> row",                     "a number"                                                         },
        {"matmul() f32[2,3]@row f32[2,3]@row -> row",              "do not fit"                                                       },
        {"softmax(axis=5) f32[2,3]@row -> row",                    "do not fit"                                                       },
        {"clip(low=0x00000000, high=6) f32[2]@row -> row extra",   "the end"                                                          },
        {"relu() f32[1,1,1,1,1,1,1]@row -> row",                   "']'"                                                              },
        {"relu() u8[3]@row -> row",                                "do not fit"                                                       },
        {"quantise() i8[3]@row -> row",                            "do not fit"                                                       },
        {"dequantise() f32[3]@row -> row",                         "do not fit"                                                       },
        {"quantised_matmul() f32[2,3]@row i8[3,4]@row -> row",     "do not fit"                                                       },
        {"quantised_matmul() i8[2,3]@row i8[2,4]@row -> row",      "do not fit"                                                       },
        {INTEGERS(1,                                               2) "u8[2,3]@row i8[3,4]@const f32[10]@const -> row",                 "do not fit"},
        {INTEGERS(3,                                                        2) "u8[2,3]@row i8[3,4]@const f32[11]@const -> row",                                                                                                                  "do not fit"},
        {INTEGERS(0,                                            5) "u8[2,3]@row i8[3,4]@const f32[11]@const -> row","do not fit"},
        {INTEGERS(0,2) "u8[2,3]@row u8[3,4]@const f32[11]@const -> row",                    "do not fit"},
        {INTEGERS(0,                                               2) "f32[2,3]@row i8[3,4]@const f32[11]@const -> row",                                                                                                      "do not fit"},
        {INTEGERS(0,                                                        2) "u8[2,2,3]@row i8[2,3,4]@const f32[11]@const -> row",                                                                                                                  "do not fit"},
        {"integer_add(activation=0, result=2) u8[2,3]@row u8[3]@row f32[7]@const -> row",
         "do not fit"         },
        {"integer_add(activation=0, result=1) u8[3]@row u8[3]@row f32[7]@const -> row",
         "do not fit"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_signature s;
        check_failed(env, graft_signature_parse(env, rows[i].text, &s), GRAFT_BAD_INPUT,
                     rows[i].part);
    }
}

CHECK_CASE(test_round_trip)
{
    const char *path = check_path("a/b/costs");
    graft_database *database = open_database(env, path);
    assert_int_equal(graft_database_count(database), 0);
    for (int32_t i = 1; i <= 2000; i++) { /* Enough to grow the table. */
        add_ns(database, i, 10.0 * i + 0.3, 15);
    }
    add_ns(database, 5, 7.0, 3); /* Replaces. */
    assert_int_equal(graft_database_count(database), 2000);
    check_database_save(env, database);

    database = open_database(env, path);
    assert_int_equal(graft_database_count(database), 2000);
    for (int32_t i = 1; i <= 2000; i++) {
        assert_true(find_ns(database, i) == (i == 5 ? 7.0 : graft_cost_round(10.0 * i + 0.3)));
    }
    assert_true(find_ns(database, 2001) == 0.0);
    graft_database_select(database, "another", "library 1");
    assert_true(find_ns(database, 1) == 0.0);
    graft_database_select(database, "this \"processor\"\\1", "library 2");
    assert_true(find_ns(database, 1) == 0.0);
    graft_database_close(database);
}

/* Without fsync, which would take most of the test's time. */
static void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(data, 1, size, file) == size);
    assert_int_equal(fclose(file), 0);
}

/* Cut off at every byte, and every byte changed: always refused, never half read. */
CHECK_CASE(test_damage)
{
    const char *path = check_path("costs");
    uint8_t *data = NULL;
    size_t size = 0;
    graft_database *database = open_database(env, path);
    for (int32_t i = 1; i <= 3; i++) {
        add_ns(database, i, 100.0 * i, 15);
    }
    check_database_save(env, database);
    CHECK_OK(graft_file_read(env, env->life, path, &data, &size));
    for (size_t i = 0; i < size; i++) {
        write_bytes(path, data, i);
        check_failed(env, graft_database_open(env, path, &database), GRAFT_BAD_INPUT, path);
        data[i] ^= 1;
        write_bytes(path, data, size);
        check_failed(env, graft_database_open(env, path, &database), GRAFT_BAD_INPUT, path);
        data[i] ^= 1;
    }
    write_bytes(path, data, size);
    database = open_database(env, path);
    assert_int_equal(graft_database_count(database), 3);
    graft_database_close(database);
}

CHECK_CASE(test_foreign_files)
{
    const char *folder = check_folder();
    const char *path = check_path("costs");
    graft_database *database = NULL;
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"",                                                                     "is empty"                     },
        {"hello\n",                                                              "not a cost database"          },
        {"{\"graft_costs\":2}\n",                                                "version 2; this program reads"},
        {"{\"graft_costs\":1}\n",                                                "cut off"                      },
        {"{\"graft_costs\":1}\n{\"entries\":0,\"xxh3\":\"0000000000000000\"}\n",
         "checksum differs"                                                                                     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_bytes(path, rows[i].text, strlen(rows[i].text));
        check_failed(env, graft_database_open(env, path, &database), GRAFT_BAD_INPUT, rows[i].part);
    }
    check_failed(env, graft_database_open(env, folder, &database), GRAFT_IO, folder);
}

/* A database that became unreadable is not overwritten. */
CHECK_CASE(test_save_keeps_damaged)
{
    const char *path = check_path("costs");
    graft_database *database = open_database(env, path);
    add_ns(database, 1, 10.0, 15);
    write_bytes(path, "precious", 8);
    check_failed(env, graft_database_save(env, database), GRAFT_BAD_INPUT, "were not written");
    graft_database_close(database);
    assert_string_equal(check_text(path), "precious");
}

enum { WRITERS = 4, TURNS = 12 };

/* One writer: opens, adds one entry, saves; many times. Exit status 0 when all went well. */
static void write_many(int writer, const char *path)
{
    graft_env env;
    int failures = graft_env_open(&env) != GRAFT_OK;
    for (int turn = 0; turn < TURNS && failures == 0; turn++) {
        graft_database *database = NULL;
        failures += graft_database_open(&env, path, &database) != GRAFT_OK;
        if (failures == 0) {
            graft_database_select(database, "this \"processor\"\\1", "library 1");
            add_ns(database, 1 + writer * TURNS + turn, 100.0, 15);
            failures += graft_database_save(&env, database) != GRAFT_OK;
            graft_database_close(database);
        }
    }
    _exit(failures);
}

CHECK_CASE(test_concurrent_writers)
{
    const char *path = check_path("costs");
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            write_many(i, path);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int exit_status = 1;
        assert_true(waitpid(children[i], &exit_status, 0) == children[i]);
        assert_int_equal(exit_status, 0);
    }
    graft_database *database = open_database(env, path);
    assert_int_equal(graft_database_count(database), WRITERS * TURNS);
    graft_database_close(database);
}

/* A writer that is killed at a random moment, again and again: the file is always whole, nothing
 * that was there is lost, and its lock keeps nobody out. */
CHECK_CASE(test_killed_writer)
{
    enum { KILLS = 25, LONGEST_US = 4000 };
    const char *path = check_path("costs");
    graft_rng rng = check_rng(41);
    uint32_t least = 0;
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        if (child == 0) {
            write_many(i, path);
        }
        (void)usleep(graft_rng_below(&rng, LONGEST_US));
        (void)kill(child, SIGKILL);
        assert_true(waitpid(child, NULL, 0) == child);
        graft_database *database = open_database(env, path);
        assert_true(graft_database_count(database) >= least);
        least = graft_database_count(database);
        add_ns(database, 100000 + i, 1.0, 15);
        CHECK_OK(graft_database_save(env, database));
        assert_true(graft_database_count(database) > least);
        least = graft_database_count(database);
        graft_database_close(database);
    }
}

/* Two files with different and common entries. */
CHECK_CASE(test_merge)
{
    const char *one = check_path("one");
    const char *two = check_path("two");
    graft_signature estimated = relu_signature(9);
    graft_cost_entry guess = {.median_ns = 50.0, .source = GRAFT_COST_ESTIMATED};
    graft_database *database = open_database(env, one);
    add_ns(database, 1, 10.0, 15);
    add_ns(database, 2, 20.0, 15);
    graft_database_add(database, &estimated, &guess);
    check_database_save(env, database);

    database = open_database(env, two);
    add_ns(database, 2, 22.0, 31); /* More rounds. */
    add_ns(database, 3, 30.0, 15);
    add_ns(database, 9, 90.0, 5); /* Measured. */
    CHECK_OK(graft_database_save(env, database));
    CHECK_OK(graft_database_merge(env, database, one));
    assert_int_equal(graft_database_count(database), 4);
    assert_true(find_ns(database, 1) == 10.0);
    assert_true(find_ns(database, 2) == 22.0);
    assert_true(find_ns(database, 3) == 30.0);
    assert_true(find_ns(database, 9) == 90.0);
    check_failed(env, graft_database_merge(env, database, check_path("none")), GRAFT_IO, "none");
    graft_database_close(database);

    database = open_database(env, one); /* The other way round. */
    CHECK_OK(graft_database_merge(env, database, two));
    assert_true(find_ns(database, 2) == 22.0);
    assert_true(find_ns(database, 9) == 90.0);
    graft_database_close(database);
}

/* The same entries in any order give the same bytes. */
CHECK_CASE(test_file_is_canonical)
{
    const char *paths[2] = {check_path("up"), check_path("down")};
    for (int way = 0; way < 2; way++) {
        graft_database *database = open_database(env, paths[way]);
        for (int32_t i = 1; i <= 50; i++) {
            int32_t n = way == 0 ? i : 51 - i;
            add_ns(database, n, 10.0 * n, 15);
        }
        check_database_save(env, database);
    }
    check_same_files(paths[0], paths[1]);
}
