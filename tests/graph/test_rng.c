/* Seeded numbers: published vectors, golden values of the normal distribution, and
 * the polar method by hand. */
#include "graph/base/rng.h"

#include "tests/support/check.h"

#include <math.h>

/* xoshiro256** 1.0 from the state {1, 2, 3, 4}, as its authors' C code prints them. */
CHECK_CASE(test_xoshiro_vectors)
{
    static const uint64_t want[] = {
        11520u,
        0u,
        1509978240u,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    graft_rng rng = {
        .state = {1, 2, 3, 4}
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_true(graft_rng_next(&rng) == want[i]);
    }
}

/* A seed becomes four steps of splitmix64; these are its published outputs for 1234567. */
CHECK_CASE(test_splitmix_vectors)
{
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u};
    graft_rng rng = check_rng(1234567);
    for (size_t i = 0; i < 4; i++) {
        assert_true(rng.state[i] == want[i]);
    }
}

CHECK_CASE(test_streams_differ)
{
    enum { SIDE = 20 };
    uint64_t first[SIDE * SIDE + SIDE];
    size_t count = 0;
    for (uint64_t seed = 0; seed < SIDE; seed++) {
        for (uint64_t stream = 0; stream < SIDE; stream++) {
            graft_rng rng;
            graft_rng_derive(&rng, seed, stream);
            first[count++] = graft_rng_next(&rng);
        }
        graft_rng rng = check_rng(seed);
        first[count++] = graft_rng_next(&rng);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_true(first[i] != first[j]);
        }
    }
}

CHECK_CASE(test_below_is_uniform)
{
    enum { BOUND = 7, DRAWS = 70000 };
    uint32_t counts[BOUND] = {0};
    graft_rng rng = check_rng(5);
    for (int i = 0; i < DRAWS; i++) {
        uint32_t value = graft_rng_below(&rng, BOUND);
        assert_true(value < BOUND);
        counts[value]++;
    }
    for (int i = 0; i < BOUND; i++) { /* Standard deviation 93. */
        assert_in_range(counts[i], DRAWS / BOUND - 400, DRAWS / BOUND + 400);
    }
    assert_int_equal(graft_rng_below(&rng, 1), 0);
}

/* With 3 * 2^30, taking the upper half of the product alone would draw each multiple of 3 twice as
 * often as the others; a modulo would do so with the lowest third. */
CHECK_CASE(test_below_has_no_bias)
{
    enum { DRAWS = 30000 };
    const uint32_t bound = 3u << 30;
    uint32_t low = 0;
    uint32_t multiples = 0;
    graft_rng rng = check_rng(6);
    for (int i = 0; i < DRAWS; i++) {
        uint32_t value = graft_rng_below(&rng, bound);
        low += value < bound / 3 ? 1u : 0u;
        multiples += value % 3 == 0 ? 1u : 0u;
    }
    assert_in_range(low, DRAWS / 3 - 400, DRAWS / 3 + 400);
    assert_in_range(multiples, DRAWS / 3 - 400, DRAWS / 3 + 400);
}

CHECK_CASE(test_uniform_range_and_mean)
{
    enum { DRAWS = 100000 };
    double sum = 0.0;
    graft_rng rng = check_rng(7);
    for (int i = 0; i < DRAWS; i++) {
        double value = graft_rng_uniform(&rng);
        assert_true(value >= 0.0 && value < 1.0);
        sum += value;
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 0.004); /* Standard deviation 0.0009. */
}

/* Equal bits on every machine: recorded once, compared exactly. */
CHECK_CASE(test_normal_golden)
{
    static const double want[] = {
        0x1.e267c87ac62ebp+0, 0x1.4d55c9633557cp+0, 0x1.c0d732ae4b3ddp-2, -0x1.5088df52fd8fep-1,
        0x1.153c160bd1468p+0, 0x1.0252c47c3a351p-1, 0x1.d735a13d41845p-3, -0x1.ac8eb6a189369p-1,
    };
    graft_rng rng = check_rng(1);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        double value = graft_rng_normal(&rng);
        if (value != want[i]) {
            fail_msg("value %zu is %a, recorded %a", i, value, want[i]);
        }
    }
}

/* The polar method by hand with the C library's logarithm: equal to within a few last bits. */
CHECK_CASE(test_normal_agrees_with_libm)
{
    graft_rng rng = check_rng(9);
    for (int i = 0; i < 100000; i++) {
        graft_rng twin = rng;
        double x = 0.0;
        double radius = 0.0;
        do {
            x = 2.0 * graft_rng_uniform(&twin) - 1.0;
            double y = 2.0 * graft_rng_uniform(&twin) - 1.0;
            radius = x * x + y * y;
        } while (radius >= 1.0 || radius == 0.0);
        double want = x * sqrt(-2.0 * log(radius) / radius);
        double value = graft_rng_normal(&rng);
        assert_true(fabs(value - want) <= 1e-14 * fabs(want));
    }
}
