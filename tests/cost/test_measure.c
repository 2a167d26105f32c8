/* Measuring: what an entry says, what larger operators cost, what an interruption leaves behind,
 * and that looking up is safe while another thread adds. */
#include "cost/cost.h"
#include "cost/measure/trial.h"
#include "graph/base/log.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const graft_measure_options quick = {.rounds = 7, .batch_ns = 50000, .quiet = true};

/* A 3x3 convolution, padded by 1. */
static graft_signature conv_signature(graft_env *env, int32_t channels, int32_t pixels,
                                      int32_t filters)
{
    const graft_shape shapes[2] = {
        {.dims = {1, channels, pixels, pixels}, .rank = 4, .dtype = GRAFT_DTYPE_F32},
        {.dims = {filters, channels, 3, 3},     .rank = 4, .dtype = GRAFT_DTYPE_F32}
    };
    const int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    return check_signature(env, GRAFT_OP_conv, attrs, shapes, 2, GRAFT_LAYOUT_NHWC);
}

CHECK_CASE(test_entries)
{
    graft_device *device = check_device_open(env);
    graft_signature list[20]; /* More than take turns at once. */
    graft_cost_entry entries[20];
    for (int32_t i = 0; i < 20; i++) {
        list[i] = conv_signature(env, 8 + i, 14, 8 + 8 * i);
    }
    CHECK_OK(graft_measure(env, device, list, 20, &quick, entries));
    for (uint32_t i = 0; i < 20; i++) {
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        bool listed = false;
        assert_int_equal(entries[i].rounds, quick.rounds);
        assert_int_equal(entries[i].source, GRAFT_COST_MEASURED);
        assert_true(entries[i].median_ns > 0.0 && entries[i].spread_ns > 0.0);
        assert_true(entries[i].median_ns * 16.0 == floor(entries[i].median_ns * 16.0));
        assert_int_equal(entries[i].flops, graft_signature_flops(&list[i]));
        CHECK_OK(graft_kernel_list(env, device, &list[i], names, &count));
        for (uint32_t k = 0; k < count; k++) {
            listed = listed || strcmp(names[k].text, entries[i].implementation) == 0;
        }
        assert_true(listed);
    }
    assert_true(entries[19].median_ns > entries[0].median_ns); /* 47 times the operations. */
}

/* For a base: no Winograd, no conversions inside, whichever is fastest. */
CHECK_CASE(test_direct)
{
    graft_device *device = check_device_open(env);
    graft_signature list[2] = {conv_signature(env, 128, 28, 128), conv_signature(env, 3, 28, 16)};
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    graft_measure_options options = quick;
    graft_cost_entry entries[2];
    uint32_t count = 0;
    uint32_t direct = 0;
    CHECK_OK(graft_kernel_list(env, device, &list[0], names, &count));
    for (uint32_t k = 0; k < count; k++) {
        direct += graft_kernel_is_direct(names[k].text);
    }
    assert_true(direct > 0 && direct < count);
    options.direct = true;
    CHECK_OK(graft_measure(env, device, list, 2, &options, entries));
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(graft_kernel_is_direct(entries[i].implementation));
    }
}

CHECK_CASE(test_absent_device)
{
    graft_signature s = conv_signature(env, 8, 8, 8);
    graft_cost_entry entry;
    graft_device *device = check_device_named(env, "far away", 1);
    check_failed(env, graft_measure(env, device, &s, 1, &quick, &entry), GRAFT_UNSUPPORTED,
                 "cannot be measured");
    assert_int_equal(entry.rounds, 0);
}

/* In a process of its own, as the signal stays noticed. 20 large operators would take seconds; the
 * signal comes at once. Exit status 0: interrupted, and nothing claims more than it has. */
static void measure_interrupted(graft_env *env)
{
    graft_device *device = NULL;
    graft_signature list[20];
    graft_cost_entry entries[20];
    bool sound = graft_device_open(env, "cpu", 1, &device) == GRAFT_OK;
    for (int32_t i = 0; i < 20; i++) {
        list[i] = conv_signature(env, 64, 28 + i, 64);
    }
    graft_interrupt_install();
    (void)raise(SIGINT);
    sound = sound && graft_measure(env, device, list, 20, &quick, entries) == GRAFT_INTERRUPTED;
    for (uint32_t i = 0; i < 20; i++) {
        sound = sound && (entries[i].rounds == 0 || entries[i].rounds >= 5);
    }
    _exit(sound ? 0 : 1);
}

CHECK_CASE(test_interruption)
{
    int exit_status = 1;
    pid_t child = fork();
    if (child == 0) {
        measure_interrupted(env);
    }
    assert_true(waitpid(child, &exit_status, 0) == child);
    assert_int_equal(exit_status, 0);
}

/* --------------------------------------------------------------- two threads */

enum { ADDED = 20000 };

static graft_signature numbered(int32_t number)
{
    graft_shape shape = {.dims = {number}, .rank = 1, .dtype = GRAFT_DTYPE_F32};
    graft_signature s;
    graft_signature_of_reorder(&shape, 0, 0, &s);
    return s;
}

static void *add_many(void *context)
{
    for (int32_t i = 1; i <= ADDED; i++) {
        graft_signature s = numbered(i);
        graft_cost_entry entry = {.median_ns = i, .rounds = 15};
        graft_database_add(context, &s, &entry);
    }
    return NULL;
}

/* The reader sees an entry or none, and once it sees it, the right one. */
CHECK_CASE(test_reading_while_adding)
{
    graft_database *database = NULL;
    pthread_t thread;
    CHECK_OK(graft_database_open(env, NULL, &database));
    assert_int_equal(pthread_create(&thread, NULL, add_many, database), 0);
    for (int32_t i = 1; i <= ADDED;) {
        graft_signature s = numbered(i);
        const graft_cost_entry *entry = graft_database_find(database, &s);
        if (entry != NULL) {
            assert_true(entry->median_ns == i);
            i++;
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(graft_database_count(database), ADDED);
    graft_database_close(database);
}

/* An implementation that writes past its operands is not used, and said to be. */
CHECK_CASE(test_guards)
{
    graft_device *device = check_device_open(env);
    double samples[2 * GRAFT_KERNEL_MOST];
    graft_trial trial;
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shape = {
        .dims = {3, 5},
          .rank = 2, .dtype = GRAFT_DTYPE_F32
    };
    graft_signature s = check_signature(env, GRAFT_OP_relu, attrs, &shape, 1, GRAFT_LAYOUT_ROW);
    CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 1, &trial));
    assert_int_equal(trial.guard_count, 3);
    trial.guards[1][0] = 0; /* As the first one would have. */
    CHECK_OK(graft_trial_qualify(env, &trial));
    assert_true(trial.contestants[0].dropped);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < trial.contestant_count; i++) {
        kept += trial.contestants[i].dropped ? 0 : 1;
    }
    assert_true(kept > 0);
    graft_trial_close(&trial);
}

/* After a first look by a clock that stood still a round is still short: of hundreds of runs, not
 * of a million. How long a run takes is seen before, as processors differ. */
CHECK_CASE(test_clock_stood_still)
{
    enum { MOST_RUNS = 30000 };
    graft_device *device = check_device_open(env);
    graft_signature s = conv_signature(env, 32, 28, 32); /* 14 million operations. */
    double samples[GRAFT_KERNEL_MOST * 2];
    graft_trial trial;
    CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 1, &trial));
    CHECK_OK(graft_trial_qualify(env, &trial));
    const double run_ns = trial.contestants[0].run_ns;
    trial.contestants[0].run_ns = 0.0;
    uint64_t start_ns = graft_clock_ns();
    CHECK_OK(graft_trial_round(env, &trial, &trial.contestants[0], 1000000, NULL));
    assert_true((double)(graft_clock_ns() - start_ns) < MOST_RUNS * run_ns);
    graft_trial_close(&trial);
}
