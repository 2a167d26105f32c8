/* Archives of arrays: what is packed comes back, what numpy writes is read, and each fault is
 * named. The files are the corpus of tests/fuzz/fuzz_npz.c. */
#include "graph/base/file.h"
#include "graph/base/npz.h"
#include "tests/support/check.h"

#include <string.h>

static const char corpus[] = "tests/fuzz/corpus/npz/";

static graft_bytes read_corpus(graft_env *env, const char *name)
{
    graft_bytes bytes = {.file = graft_arena_printf(env->life, "%s%s", corpus, name)};
    uint8_t *data = NULL;
    CHECK_OK(graft_file_read(env, env->life, bytes.file, &data, &bytes.size));
    bytes.data = data;
    return bytes;
}

static void check_tensor(const graft_run_tensor *tensor, const char *name, uint8_t dtype,
                         uint8_t rank, int32_t last)
{
    assert_string_equal(tensor->name, name);
    assert_int_equal(tensor->shape.dtype, dtype);
    assert_int_equal(tensor->shape.rank, rank);
    assert_true(rank == 0 || tensor->shape.dims[rank - 1] == last);
}

CHECK_CASE(test_numpy)
{
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    CHECK_OK(graft_npz_parse(env, env->life, read_corpus(env, "stored.npz"), &t, &count));
    assert_int_equal(count, 8);
    check_tensor(&t[0], "a", GRAFT_DTYPE_F32, 2, 3);
    check_tensor(&t[1], "b", GRAFT_DTYPE_I64, 0, 0);
    check_tensor(&t[2], "c", GRAFT_DTYPE_U8, 4, 1);
    check_tensor(&t[3], "d", GRAFT_DTYPE_BOOL, 1, 3);
    check_tensor(&t[4], "e", GRAFT_DTYPE_F16, 1, 2);
    check_tensor(&t[5], "f", GRAFT_DTYPE_F64, 1, 1);
    check_tensor(&t[6], "g", GRAFT_DTYPE_I32, 1, 2);
    check_tensor(&t[7], "h", GRAFT_DTYPE_I8, 1, 2);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal((int)((const float *)t[0].data)[i], (int)i);
    }
    assert_int_equal(*(const int64_t *)t[1].data, 3);
    CHECK_OK(graft_npz_parse(env, env->life, read_corpus(env, "deflated.npz"), &t, &count));
    assert_int_equal(count, 1);
    check_tensor(&t[0], "a", GRAFT_DTYPE_F32, 2, 50);
    CHECK_OK(graft_npz_parse(env, env->life, read_corpus(env, "version3.npz"), &t, &count));
    check_tensor(&t[0], "a", GRAFT_DTYPE_F32, 1, 2);
}

CHECK_CASE(test_faults)
{
    static const struct {
        const char *file;
        const char *message;
        graft_status status;
    } rows[] = {
        {"text",           "there is no ZIP directory",          GRAFT_BAD_INPUT  },
        {"cut.npz",        "there is no ZIP directory",          GRAFT_BAD_INPUT  },
        {"zip64.npz",      "a ZIP64 directory",                  GRAFT_BAD_INPUT  },
        {"far_header.npz", "leads nowhere",                      GRAFT_BAD_INPUT  },
        {"long_name.npz",  "leads nowhere",                      GRAFT_BAD_INPUT  },
        {"far_data.npz",   "are cut off",                        GRAFT_BAD_INPUT  },
        {"method.npz",     "neither stored nor deflated",        GRAFT_BAD_INPUT  },
        {"encrypted.npz",  "neither stored nor deflated",        GRAFT_BAD_INPUT  },
        {"not_npy.npz",    "is no .npy file",                    GRAFT_BAD_INPUT  },
        {"same_name.npz",  "array 'a' comes twice",              GRAFT_BAD_INPUT  },
        {"version9.npz",   "array 'a': it is no .npy file of",   GRAFT_BAD_INPUT  },
        {"fortran.npz",    "array 'a': fortran_order",           GRAFT_UNSUPPORTED},
        {"big_endian.npz", "array 'a': descr: none of <f4",      GRAFT_UNSUPPORTED},
        {"object.npz",     "array 'a': descr: none of <f4",      GRAFT_UNSUPPORTED},
        {"axes.npz",       "array 'a': shape: more than 6 axes", GRAFT_UNSUPPORTED},
        {"negative.npz",   "array 'a': shape: not a tuple",      GRAFT_BAD_INPUT  },
        {"overflow.npz",   "array 'a': shape: not a tuple",      GRAFT_BAD_INPUT  },
        {"unended.npz",    "array 'a': shape: not a tuple",      GRAFT_BAD_INPUT  },
        {"huge.npz",       "4 bytes of data instead of",         GRAFT_BAD_INPUT  },
        {"short.npz",      "8 bytes of data instead of 12",      GRAFT_BAD_INPUT  },
        {"twice.npz",      "array 'a': its header is not that",  GRAFT_BAD_INPUT  },
        {"no_shape.npz",   "array 'a': its header is not that",  GRAFT_BAD_INPUT  },
    };
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].file);
        const graft_bytes bytes = read_corpus(env, rows[i].file);
        const graft_status status = graft_npz_parse(env, env->life, bytes, &t, &count);
        assert_non_null(strstr(env->message, bytes.file));
        check_failed(env, status, rows[i].status, rows[i].message);
    }
}

/* Sizes of 0 go there and back. */
CHECK_CASE(test_no_elements)
{
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    graft_bytes bytes = read_corpus(env, "empty.npz");
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(graft_npz_parse(env, env->life, bytes, &t, &count));
        assert_int_equal(count, 1);
        assert_int_equal(graft_shape_elements(&t[0].shape), 0);
        assert_int_equal(t[0].shape.rank, 2);
        CHECK_OK(graft_npz_pack(env, env->life, t, count, &bytes));
    }
}

/* What the directory leads to says itself what it is. */
CHECK_CASE(test_leads_elsewhere)
{
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    graft_bytes bytes = read_corpus(env, "stored.npz");
    uint8_t *copy = GRAFT_NEW(env->life, uint8_t, bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    bytes.data = copy;
    copy[0] ^= 1;
    check_failed(env, graft_npz_parse(env, env->life, bytes, &t, &count), GRAFT_BAD_INPUT,
                 "leads nowhere");
}

/* A byte of the data that is another is no other array. */
CHECK_CASE(test_damage)
{
    static const char *const files[] = {"stored.npz", "deflated.npz"};
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    for (size_t f = 0; f < 2; f++) {
        graft_bytes bytes = read_corpus(env, files[f]);
        uint8_t *copy = GRAFT_NEW(env->life, uint8_t, bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        bytes.data = copy;
        for (size_t at = 60; at < 100; at++) {
            copy[at] ^= 1;
            check_failed(env, graft_npz_parse(env, env->life, bytes, &t, &count), GRAFT_BAD_INPUT,
                         "array 'a': it is damaged");
            copy[at] ^= 1;
        }
        for (bytes.size--; bytes.size > 0; bytes.size--) {
            check_failed(env, graft_npz_parse(env, env->life, bytes, &t, &count), GRAFT_BAD_INPUT,
                         files[f]);
        }
    }
}

/* The flag for UTF-8 stands in front of the array and in the directory: without it numpy reads the
 * name as code page 437. */
CHECK_CASE(test_names_are_utf8)
{
    enum { LOCAL_FLAGS = 6, ENTRY_FLAGS = 8, UTF8_HIGH = 8 };
    int32_t datum = 7;
    graft_run_tensor *t = NULL;
    uint32_t count = 0;
    graft_bytes bytes = {.file = "x.npz"};
    const graft_run_tensor umlaut = {
        "\xc3\xb6", {.rank = 0, .dtype = GRAFT_DTYPE_I32},
         &datum
    };
    CHECK_OK(graft_npz_pack(env, env->life, &umlaut, 1, &bytes));
    CHECK_OK(graft_npz_parse(env, env->life, bytes, &t, &count));
    check_tensor(&t[0], umlaut.name, GRAFT_DTYPE_I32, 0, 0);
    const uint8_t *entry = memmem(bytes.data, bytes.size, "PK\1\2", 4);
    assert_non_null(entry);
    assert_int_equal(bytes.data[LOCAL_FLAGS + 1], UTF8_HIGH);
    assert_int_equal(entry[ENTRY_FLAGS + 1], UTF8_HIGH);
}

CHECK_CASE(test_refuses_to_pack)
{
    float datum = 0.0F;
    graft_bytes bytes = {.file = "x.npz"};
    const graft_run_tensor half = {
        "b", {.rank = 0, .dtype = GRAFT_DTYPE_BF16},
         &datum
    };
    check_failed(env, graft_npz_pack(env, env->life, &half, 1, &bytes), GRAFT_UNSUPPORTED,
                 "x.npz: 'b' has a type or name that .npz lacks");
}
