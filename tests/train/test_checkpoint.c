/* Checkpoints: what is saved comes back; anything else is refused and changes nothing. */
#include "graph/base/file.h"
#include "tests/support/check.h"
#include "train/nn/checkpoint.h"

#include <string.h>
#include <xxhash.h>

/* Two networks, scales and counters. */
typedef struct {
    graft_parameters first;
    graft_parameters second;
    graft_parameters *sets[2];
    float scale[3];
    uint64_t counter[2];
    graft_reals reals[1];
    graft_counters counters[1];
    graft_checkpoint checkpoint;
} fixture;

/* `seed` fills everything; 0 leaves zeros. */
static fixture *make_fixture(graft_env *env, uint32_t rows, uint64_t seed)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    graft_parameters_init(&f->first, "first");
    (void)graft_parameters_add(&f->first, "weight", rows, 3, 1.0F);
    (void)graft_parameters_add(&f->first, "bias", 1, 3, 1.0F);
    graft_parameters_seal(&f->first, env->life, 1);
    graft_parameters_init(&f->second, "second");
    (void)graft_parameters_add(&f->second, "table", 2, 2, 1.0F);
    graft_parameters_seal(&f->second, env->life, 2);
    f->sets[0] = &f->first;
    f->sets[1] = &f->second;
    graft_rng rng = check_rng(seed);
    for (uint32_t k = 0; k < 2; k++) {
        graft_parameters *set = f->sets[k];
        for (uint32_t p = 0; p < set->count; p++) {
            const graft_parameter *item = &set->items[p];
            for (size_t i = item->offset; i < item->offset + (size_t)item->rows * item->cols; i++) {
                set->value[i] = seed == 0 ? 0.0F : (float)graft_rng_normal(&rng);
                set->moment[i] = seed == 0 ? 0.0F : (float)graft_rng_normal(&rng);
                set->variance[i] = seed == 0 ? 0.0F : (float)graft_rng_uniform(&rng);
            }
        }
        set->step = seed == 0 ? 0 : graft_rng_next(&rng);
    }
    for (uint32_t k = 0; k < 3; k++) {
        f->scale[k] = seed == 0 ? 0.0F : (float)graft_rng_normal(&rng);
    }
    for (uint32_t k = 0; k < 2; k++) {
        f->counter[k] = seed == 0 ? 0 : graft_rng_next(&rng);
    }
    f->reals[0] = (graft_reals){"scale", f->scale, 3};
    f->counters[0] = (graft_counters){"counter", f->counter, 2};
    f->checkpoint = (graft_checkpoint){f->sets, f->reals, f->counters, 2, 1, 1};
    return f;
}

static void assert_same(const fixture *a, const fixture *b)
{
    for (uint32_t k = 0; k < 2; k++) {
        size_t bytes = a->sets[k]->size * sizeof(float);
        assert_memory_equal(a->sets[k]->value, b->sets[k]->value, bytes);
        assert_memory_equal(a->sets[k]->moment, b->sets[k]->moment, bytes);
        assert_memory_equal(a->sets[k]->variance, b->sets[k]->variance, bytes);
        assert_true(a->sets[k]->step == b->sets[k]->step);
    }
    assert_memory_equal(a->scale, b->scale, sizeof a->scale);
    assert_memory_equal(a->counter, b->counter, sizeof a->counter);
}

/* Saves a fixture; returns its bytes, in the life arena. */
static uint8_t *save(graft_env *env, const fixture *f, const char *path, size_t *size)
{
    uint8_t *data = NULL;
    CHECK_OK(graft_checkpoint_save(env, path, &f->checkpoint));
    CHECK_OK(graft_file_read(env, env->life, path, &data, size));
    return data;
}

CHECK_CASE(test_round_trip)
{
    const char *path = check_path("a/b.ckpt");
    const fixture *saved = make_fixture(env, 4, 77);
    fixture *loaded = make_fixture(env, 4, 0);
    size_t size = 0;
    uint8_t *data = save(env, saved, path, &size);
    CHECK_OK(graft_checkpoint_load(env, path, &loaded->checkpoint));
    assert_same(saved, loaded);
    size_t again_size = 0;
    uint8_t *again = save(env, loaded, path, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(data, again, size);
}

/* The first bytes of the format, whatever the machine. */
CHECK_CASE(test_bytes_are_little_endian)
{
    const char *path = check_path("a.ckpt");
    size_t size = 0;
    const uint8_t *data = save(env, make_fixture(env, 4, 77), path, &size);
    static const uint8_t want[] = {'G', 'R', 'A', 'F', 'T', 'C', 'K', 'P', 2, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(data, want, sizeof want);
}

CHECK_CASE(test_every_truncation_is_refused)
{
    const char *path = check_path("a.ckpt");
    size_t size = 0;
    const uint8_t *data = save(env, make_fixture(env, 4, 77), path, &size);
    const fixture *untouched = make_fixture(env, 4, 5);
    fixture *target = make_fixture(env, 4, 5);
    for (size_t cut = 0; cut < size; cut++) {
        CHECK_OK(graft_file_write(env, path, data, cut));
        graft_status status = graft_checkpoint_load(env, path, &target->checkpoint);
        check_failed(env, status, GRAFT_BAD_INPUT, path);
    }
    assert_same(untouched, target);
}

CHECK_CASE(test_every_damaged_byte_is_refused)
{
    const char *path = check_path("a.ckpt");
    size_t size = 0;
    uint8_t *data = save(env, make_fixture(env, 4, 77), path, &size);
    fixture *target = make_fixture(env, 4, 0);
    for (size_t at = 0; at < size; at++) {
        data[at] ^= 0x10;
        CHECK_OK(graft_file_write(env, path, data, size));
        graft_status status = graft_checkpoint_load(env, path, &target->checkpoint);
        check_failed(env, status, GRAFT_BAD_INPUT, path);
        data[at] ^= 0x10;
    }
}

/* Files whose checksum is right, but which say something else than is expected. */
static void write_with_checksum(graft_env *env, const char *path, uint8_t *data, size_t size)
{
    uint64_t sum = XXH3_64bits(data, size - 8);
    for (uint32_t i = 0; i < 8; i++) {
        data[size - 8 + i] = (uint8_t)(sum >> (8 * i));
    }
    CHECK_OK(graft_file_write(env, path, data, size));
}

CHECK_CASE(test_foreign_files_are_refused)
{
    const char *path = check_path("a.ckpt");
    size_t size = 0;
    uint8_t *data = save(env, make_fixture(env, 4, 77), path, &size);
    fixture *target = make_fixture(env, 4, 0);
    static const struct {
        size_t at;
        uint8_t value;
        const char *message;
    } rows[] = {
        {0, 'g', "not a Graft checkpoint"   },
        {8, 3,   "of another format version"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint8_t kept = data[rows[r].at];
        data[rows[r].at] = rows[r].value;
        write_with_checksum(env, path, data, size);
        check_failed(env, graft_checkpoint_load(env, path, &target->checkpoint), GRAFT_BAD_INPUT,
                     rows[r].message);
        data[rows[r].at] = kept;
    }
    uint8_t *longer = GRAFT_NEW(env->life, uint8_t, size + 3);
    memcpy(longer, data, size);
    write_with_checksum(env, path, longer, size + 3);
    check_failed(env, graft_checkpoint_load(env, path, &target->checkpoint), GRAFT_BAD_INPUT,
                 "too long");
}

CHECK_CASE(test_other_networks_are_refused)
{
    const char *path = check_path("a.ckpt");
    size_t size = 0;
    (void)save(env, make_fixture(env, 4, 77), path, &size);
    fixture *wider = make_fixture(env, 5, 9);
    const fixture *untouched = make_fixture(env, 5, 9);
    check_failed(env, graft_checkpoint_load(env, path, &wider->checkpoint), GRAFT_BAD_INPUT,
                 "of other networks");
    assert_same(untouched, wider);
    fixture *renamed = make_fixture(env, 4, 9);
    renamed->counters[0].name = "run 2";
    check_failed(env, graft_checkpoint_load(env, path, &renamed->checkpoint), GRAFT_BAD_INPUT,
                 "of another run");
    fixture *more = make_fixture(env, 4, 0);
    more->reals[0].count = 2;
    check_failed(env, graft_checkpoint_load(env, path, &more->checkpoint), GRAFT_BAD_INPUT,
                 "of other networks, or of another run");
    more->reals[0].count = 3; /* Nothing was copied before the fault was found. */
    assert_same(make_fixture(env, 4, 0), more);
    check_failed(env, graft_checkpoint_load(env, "/nowhere/x", &more->checkpoint), GRAFT_IO,
                 "/nowhere/x");
    check_failed(env, graft_checkpoint_save(env, "/dev/null/x", &more->checkpoint), GRAFT_IO,
                 "while saving /dev/null/x");
}
