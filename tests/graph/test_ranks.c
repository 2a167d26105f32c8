/* test_ranks.c - what ranks give each other, where the other one has what this one has: swapping is
 * an echo. Real ones: tests/verify/test_mpi.sh. */
#include "graph/base/ranks.h"
#include "tests/support/check.h"

#include <string.h>

static void echo(uint32_t to, const void *sent, size_t sent_bytes, uint32_t from, void *received,
                 size_t received_bytes)
{
    assert_int_equal(to, from);
    assert_int_equal(sent_bytes, received_bytes);
    memcpy(received, sent, sent_bytes);
}

static const graft_ranks_calls echoes = {.abi = GRAFT_RANKS_ABI, .swap = echo};
static graft_ranks two = {.calls = &echoes, .own = 0, .count = 2};

/* What is gathered in the scratch arena stays when more is taken from there. */
CHECK_CASE(test_gathered_stays)
{
    size_t parts[3];
    env->ranks = &two;
    for (size_t size = 8; size <= (size_t)1 << 20; size *= 8) {
        GRAFT_SCOPED(env->scratch);
        graft_buffer sent = {.data = GRAFT_NEW(env->scratch, char, size), .size = size};
        graft_buffer received = {.arena = env->scratch};
        memset(sent.data, 'a', size);
        graft_ranks_gather(env, &sent, &received, parts);
        memset(GRAFT_NEW(env->scratch, char, 2 * size), 'b', 2 * size);
        assert_int_equal(received.size, 2 * size);
        assert_int_equal(parts[0], 0);
        assert_int_equal(parts[1], size);
        assert_int_equal(parts[2], 2 * size);
        assert_memory_equal(received.data, sent.data, size);
        assert_memory_equal(received.data + size, sent.data, size);
    }
    env->ranks = NULL;
}

CHECK_CASE(test_filled)
{
    uint32_t array[4] = {1, 2, 0, 0};
    static const uint32_t whole[4] = {1, 2, 1, 2};
    env->ranks = &two;
    graft_ranks_fill(env, array, 4, sizeof array[0]);
    assert_memory_equal(array, whole, sizeof array);
    env->ranks = NULL;
}
