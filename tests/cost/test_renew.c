/* A database recorded anew: what is lacking is measured, at the level of what was recorded where
 * the library is the same, and as the clock says elsewhere. */
#include "cost/measure/renew.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <string.h>

enum { SIGNATURES = 3, FACTOR = 1000000 };

/* A convolution for Winograd's algorithm and its twin with a bias; a relu. */
static void list_signatures(graft_env *env, graft_signature list[SIGNATURES])
{
    const int32_t conv[GRAFT_MAX_ATTRS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    const int32_t none[GRAFT_MAX_ATTRS] = {0};
    const graft_shape in[GRAFT_MAX_INPUTS] = {
        {.rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {1, 32, 14, 14}},
        {.rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {32, 32, 3, 3} },
        {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {32}           },
    };
    list[0] = check_signature(env, GRAFT_OP_conv, conv, in, 2, GRAFT_LAYOUT_NHWC);
    list[1] = check_signature(env, GRAFT_OP_conv_bias, conv, in, 6, GRAFT_LAYOUT_NHWC);
    list[2] = check_signature(env, GRAFT_OP_relu, none, in, 0, GRAFT_LAYOUT_NHWC);
}

/* An old database in which each took `factor` times what the library's first implementation takes
 * now. */
static graft_database *record_old(graft_env *env, graft_device *device, const char *library,
                                  const graft_signature *list, double factor)
{
    graft_database *old = NULL;
    const char *only[SIGNATURES];
    graft_cost_entry entries[SIGNATURES];
    graft_measure_options options = graft_measure_options_default();
    graft_kernel_name names[SIGNATURES][GRAFT_KERNEL_MOST];
    for (uint32_t i = 0; i < SIGNATURES; i++) {
        uint32_t count = 0;
        CHECK_OK(graft_kernel_list(env, device, &list[i], names[i], &count));
        only[i] = names[i][strcmp(names[i][0].text, "plain") == 0 ? 1 : 0].text;
    }
    options.quiet = true;
    options.only = only;
    CHECK_OK(graft_measure(env, device, list, SIGNATURES, &options, entries));
    CHECK_OK(graft_database_open(env, NULL, &old));
    graft_database_select(old, graft_device_name(device), library);
    for (uint32_t i = 0; i < SIGNATURES; i++) {
        assert_string_equal(entries[i].implementation, only[i]);
        entries[i].median_ns = graft_cost_round(entries[i].median_ns * factor);
        graft_database_add(old, &list[i], &entries[i]);
    }
    return old;
}

static const char *other_version(graft_env *env, const graft_device *device, bool library)
{
    const char *own = graft_device_library(device);
    const char *plain = strstr(own, ", plain ");
    assert_non_null(plain);
    return graft_arena_printf(env->life, "%s%.*s, plain 0%s", library ? "older " : "",
                              (int)(plain - own), own, strchr(plain + 1, ','));
}

/* Of a signature that two costs have: how much dearer it is in the second. */
static double ratio_of(const graft_cost *a, const graft_cost *b, const graft_signature *s)
{
    const graft_cost_entry *entries[2] = {graft_database_find(graft_cost_database(a), s),
                                          graft_database_find(graft_cost_database(b), s)};
    assert_non_null(entries[0]);
    assert_non_null(entries[1]);
    return entries[1]->median_ns / entries[0]->median_ns;
}

CHECK_CASE(test_levels)
{
    graft_device *device = check_device_open(env);
    graft_signature list[SIGNATURES];
    graft_cost *costs[2] = {NULL};
    list_signatures(env, list);
    for (uint32_t i = 0; i < 2; i++) { /* Another library, then the same. */
        uint32_t measured = 0;
        uint32_t count = 0;
        graft_database *old =
            record_old(env, device, other_version(env, device, i == 0), list, FACTOR);
        CHECK_OK(graft_cost_open(env, device, NULL, &costs[i]));
        CHECK_OK(graft_cost_renew(env, costs[i], old, &measured, &count));
        assert_int_equal(measured, SIGNATURES);
        assert_int_equal(count, SIGNATURES);
        CHECK_OK(graft_cost_renew(env, costs[i], old, &measured, &count));
        assert_int_equal(measured, 0);
        graft_database_close(old);
    }
    for (uint32_t k = 0; k < SIGNATURES; k++) {
        double ratio = ratio_of(costs[0], costs[1], &list[k]);
        if (ratio < FACTOR / 1e3 || ratio > FACTOR * 1e3) { /* However busy the machine is. */
            fail_msg("signature %u: %g times as dear, expected about %d times", k, ratio, FACTOR);
        }
    }
    CHECK_OK(graft_cost_close(env, costs[0]));
    CHECK_OK(graft_cost_close(env, costs[1]));
}
