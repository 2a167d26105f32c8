/* Costs that are measured once more beside their kin: how kin compare is what was measured side by
 * side, their level is what was known, and nobody else's cost changes. */

#include "cost/measure/confirm.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static graft_signature conv_signature(graft_env *env, int32_t activation, int32_t side)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, activation};
    const graft_shape shapes[3] = {SHAPE(1, 32, side, side), SHAPE(32, 32, 3, 3), SHAPE(32)};
    return check_signature(env, GRAFT_OP_conv_bias, attrs, shapes, 6, GRAFT_LAYOUT_NHWC);
}

static graft_signature with_layout(graft_signature s, uint32_t layout)
{
    s.in_layouts[0] = (uint8_t)layout;
    s.out_layouts[0] = (uint8_t)layout;
    return s;
}

/* Kin are settled by what was measured just now, on the level of what was known, whatever that
 * is; twins that cannot be told apart become equal, those that can stay. */
CHECK_CASE(test_settling)
{
    enum { PLAIN, ACTIVE, SLOW, BLOCKED, LOST, COUNT };
    const graft_signature plain = conv_signature(env, GRAFT_ACT_NONE, 14);
    const graft_signature kin[COUNT] = {
        plain, conv_signature(env, GRAFT_ACT_RELU, 14), conv_signature(env, GRAFT_ACT_TANH, 14),
        with_layout(plain, GRAFT_LAYOUT_BLOCKED), conv_signature(env, GRAFT_ACT_RELU6, 14)};
    const graft_cost_entry known[COUNT] = {
        {.median_ns = 50.0,  .rounds = 9},
        {.median_ns = 90.0,  .rounds = 9},
        {.median_ns = 100.0, .rounds = 9},
        {.median_ns = 30.0,  .rounds = 9},
        {.median_ns = 70.0,  .rounds = 9}
    };
    graft_cost_entry entries[COUNT] = {
        {.median_ns = 100.0, .spread_ns = 10.0, .rounds = 9},
        {.median_ns = 110.0,                  .spread_ns = 10.0,                  .rounds = 9},
        {.median_ns = 200.0,       .spread_ns = 10.0,       .rounds = 9},
        {.median_ns = 60.0,.spread_ns = 1.0,.rounds = 9},
        {.median_ns = 0.0,  .rounds = 0        },
    };
    /* known / now: 0.5, 0.82, 0.5, 0.5, so the level is 0.5. */
    graft_kin_settle(env->scratch, kin, known, entries, COUNT);
    assert_true(entries[PLAIN].median_ns == 52.5 && entries[ACTIVE].median_ns == 52.5);
    assert_true(entries[SLOW].median_ns == 100.0 && entries[BLOCKED].median_ns == 30.0);
    assert_true(entries[PLAIN].spread_ns == 5.0 && entries[LOST].rounds == 0);
    entries[PLAIN] = (graft_cost_entry){.median_ns = 100.0, .spread_ns = 10.0, .rounds = 9};
    entries[ACTIVE] = (graft_cost_entry){.median_ns = 125.0, .spread_ns = 20.0, .rounds = 9};
    graft_kin_settle(env->scratch, kin, known, entries, SLOW);
    assert_true(entries[PLAIN].median_ns == entries[ACTIVE].median_ns);
    assert_true(entries[PLAIN].median_ns > 50.0 && entries[PLAIN].median_ns < 72.0);
}

CHECK_CASE(test_twins)
{
    const graft_signature plain = conv_signature(env, GRAFT_ACT_NONE, 14);
    const graft_signature active = conv_signature(env, GRAFT_ACT_RELU, 14);
    const graft_signature other = conv_signature(env, GRAFT_ACT_NONE, 12);
    graft_signature strided = plain;
    strided.attrs[GRAFT_ATTR_conv_stride_h] = 2;
    assert_true(graft_kin_is(&plain, &active) && graft_kin_are_twins(&plain, &active));
    assert_false(graft_kin_is(&plain, &other) || graft_kin_are_twins(&plain, &other));
    assert_true(graft_kin_is(&plain, &strided));
    assert_false(graft_kin_are_twins(&plain, &strided));
    const graft_signature blocked = with_layout(plain, GRAFT_LAYOUT_BLOCKED);
    assert_true(graft_kin_is(&plain, &blocked));
    assert_false(graft_kin_are_twins(&plain, &blocked));
}

/* Of what is recorded, twins that cannot be told apart have one time from then on, on this device
 * alone; those that can, and what has no twin, keep theirs. */
CHECK_CASE(test_leveling)
{
    enum { PLAIN, ACTIVE, SLOW, OTHER, COUNT };
    const graft_signature s[COUNT] = {
        conv_signature(env, GRAFT_ACT_NONE, 14), conv_signature(env, GRAFT_ACT_RELU, 14),
        conv_signature(env, GRAFT_ACT_TANH, 14), conv_signature(env, GRAFT_ACT_NONE, 12)};
    static const double ns[COUNT] = {100.0, 110.0, 200.0, 70.0};
    graft_database *from = NULL;
    graft_database *to = NULL;
    CHECK_OK(graft_database_open(env, NULL, &from));
    CHECK_OK(graft_database_open(env, NULL, &to));
    for (uint32_t i = 0; i < COUNT; i++) {
        graft_cost_entry entry = {.median_ns = ns[i], .spread_ns = 10.0, .rounds = 9};
        graft_database_select(from, "here", "library");
        graft_database_add(from, &s[i], &entry);
        entry.median_ns = 102.0;
        graft_database_select(from, "elsewhere", "library");
        graft_database_add(from, &s[i], &entry);
    }
    graft_database_select(from, "here", "library");
    graft_database_select(to, "here", "library");
    assert_int_equal(graft_kin_level(env->scratch, from, to), 2);
    assert_true(graft_database_find(to, &s[PLAIN])->median_ns == 105.0);
    assert_true(graft_database_find(to, &s[ACTIVE])->median_ns == 105.0);
    assert_true(graft_database_find(to, &s[SLOW])->median_ns == 200.0);
    assert_null(graft_database_find(to, &s[OTHER]));
    graft_database_close(from);
    graft_database_close(to);
}

/* A maximum with a constant is a relu to a search, which must not prefer one for its noise. */
CHECK_CASE(test_floors)
{
    const graft_shape image = SHAPE(1, 32, 14, 14);
    const graft_shape operands[2] = {image, (graft_shape){.dtype = GRAFT_DTYPE_F32}};
    const graft_shape images[2] = {image, image};
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_signature relu =
        check_signature(env, GRAFT_OP_relu, attrs, &image, 0, GRAFT_LAYOUT_NHWC);
    const graft_signature floor =
        check_signature(env, GRAFT_OP_max, attrs, operands, 2, GRAFT_LAYOUT_NHWC);
    const graft_signature larger =
        check_signature(env, GRAFT_OP_max, attrs, images, 0, GRAFT_LAYOUT_NHWC);
    assert_true(graft_kin_is(&relu, &floor) && graft_kin_are_twins(&floor, &relu));
    assert_false(graft_kin_is(&relu, &larger) || graft_kin_are_twins(&relu, &larger));
}

static void record(graft_env *env, const graft_device *device, const char *path,
                   const graft_signature *signatures, const double *ns, uint32_t count)
{
    graft_database *database =
        check_database_open(env, path, graft_device_name(device), graft_device_library(device));
    for (uint32_t i = 0; i < count; i++) {
        const graft_cost_entry entry = {
            .median_ns = ns[i], .rounds = 9, .implementation = "direct:jit:avx512_core"};
        graft_database_add(database, &signatures[i], &entry);
    }
    check_database_save(env, database);
}

static double cost_of(graft_env *env, graft_cost *cost, const graft_signature *signature)
{
    graft_cost_entry entry;
    CHECK_OK(graft_cost_signature(env, cost, signature, &entry));
    return entry.median_ns;
}

/* With and without an activation a convolution takes about as long; recorded is one three hundred
 * times as slow as the other, which no busy machine makes of it, both much slower than they are. */
CHECK_CASE(test_kin)
{
    enum { PLAIN, ACTIVE, OTHER, COUNT };
    const char *path = check_path("costs");
    const graft_signature s[COUNT] = {conv_signature(env, GRAFT_ACT_NONE, 14),
                                      conv_signature(env, GRAFT_ACT_RELU, 14),
                                      conv_signature(env, GRAFT_ACT_NONE, 12)};
    const double ns[COUNT] = {1e8, 3e10, 5e8};
    graft_device *device = check_device_open(env);
    graft_cost_statistics statistics;
    uint32_t count = 0;
    record(env, device, path, s, ns, COUNT);
    graft_cost *cost = check_cost_open(env, device, path);
    assert_true(cost_of(env, cost, &s[ACTIVE]) == ns[ACTIVE]);
    CHECK_OK(graft_cost_confirm(env, cost, &s[PLAIN], 1, NULL, &count));
    assert_int_equal(count, 2);
    double plain_ns = cost_of(env, cost, &s[PLAIN]);
    double active_ns = cost_of(env, cost, &s[ACTIVE]);
    assert_true(active_ns / plain_ns > 1.0 / 30.0 && active_ns / plain_ns < 30.0);
    assert_true(plain_ns > ns[PLAIN] && active_ns < ns[ACTIVE]);
    assert_true(cost_of(env, cost, &s[OTHER]) == ns[OTHER]);
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.entries, COUNT + 1); /* And the anchor. */
}

/* A journal says that the first pair of kin was settled before: only the other one is measured, and
 * the journal goes. One of another device says nothing. */
CHECK_CASE(test_resumed)
{
    enum { COUNT = 4 };
    const char *path = check_path("costs");
    const char *journal = check_path("journal");
    const double ns[COUNT] = {1e8, 3e10, 1e8, 3e10};
    const graft_signature s[COUNT] = {
        conv_signature(env, GRAFT_ACT_NONE, 14), conv_signature(env, GRAFT_ACT_RELU, 14),
        conv_signature(env, GRAFT_ACT_NONE, 12), conv_signature(env, GRAFT_ACT_RELU, 12)};
    graft_device *device = check_device_open(env);
    for (uint32_t own = 0; own < 2; own++) {
        graft_cost *cost = NULL;
        uint32_t count = 0;
        const char *text = graft_arena_printf(
            env->life, "confirming %s, %s\n%016" PRIx64 "\n%016" PRIx64 "\n",
            own != 0 ? graft_device_name(device) : "another", graft_device_library(device),
            graft_signature_hash(&s[0], 0), graft_signature_hash(&s[1], 0));
        CHECK_OK(graft_file_write(env, journal, text, strlen(text)));
        record(env, device, path, s, ns, COUNT);
        CHECK_OK(graft_cost_open(env, device, path, &cost));
        CHECK_OK(graft_cost_confirm(env, cost, s, COUNT, journal, &count));
        assert_int_equal(count, own != 0 ? 2 : COUNT);
        assert_true((cost_of(env, cost, &s[1]) == ns[1]) == (own != 0));
        assert_true(cost_of(env, cost, &s[3]) < ns[3]);
        assert_false(graft_file_exists(journal));
        CHECK_OK(graft_cost_close(env, cost));
    }
}

/* In a process of its own, as the signal stays noticed: what is settled by then, here nothing, is
 * written down. */
CHECK_CASE(test_interrupted)
{
    const char *path = check_path("costs");
    const char *journal = check_path("journal");
    const double ns[2] = {1e8, 3e8};
    const graft_signature s[2] = {conv_signature(env, GRAFT_ACT_NONE, 14),
                                  conv_signature(env, GRAFT_ACT_RELU, 14)};
    graft_device *device = check_device_open(env);
    int exit_status = 1;
    record(env, device, path, s, ns, 2);
    pid_t child = fork();
    if (child == 0) {
        graft_cost *cost = NULL;
        uint32_t count = 0;
        bool sound = graft_cost_open(env, device, path, &cost) == GRAFT_OK;
        graft_interrupt_install();
        (void)raise(SIGINT);
        sound = sound &&
                graft_cost_confirm(env, cost, s, 2, journal, &count) == GRAFT_INTERRUPTED &&
                count == 0 && strstr(env->message, "interrupted") != NULL;
        _exit(sound ? 0 : 1);
    }
    assert_true(waitpid(child, &exit_status, 0) == child);
    assert_int_equal(exit_status, 0);
    assert_true(graft_file_exists(journal));
}

/* Nothing is known of it: nothing to confirm. */
CHECK_CASE(test_unknown)
{
    const graft_signature s = conv_signature(env, GRAFT_ACT_NONE, 10);
    graft_device *device = check_device_open(env);
    uint32_t count = 1;
    graft_cost *cost = check_cost_open(env, device, NULL);
    CHECK_OK(graft_cost_confirm(env, cost, &s, 1, NULL, &count));
    assert_int_equal(count, 0);
}
