/* test_names.c - the table of names: growth, absent names, changed numbers. */
#include "graph/names.h"
#include "tests/support/check.h"

CHECK_CASE(test_many_names)
{
    enum { COUNT = 5000 };
    graft_names *names = graft_names_new(env->life);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(graft_names_add(names, graft_arena_printf(env->life, "name_%u", i), i));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        const char *name = graft_arena_printf(env->life, "name_%u", i);
        assert_int_equal(graft_names_find(names, name), i);
        assert_false(graft_names_add(names, name, 1));
    }
    assert_int_equal(graft_names_find(names, "name_5000"), GRAFT_NONE);
    assert_int_equal(graft_names_find(names, ""), GRAFT_NONE);
    graft_names_set(names, "name_7", 70);
    graft_names_set(names, "new", 71);
    assert_int_equal(graft_names_find(names, "name_7"), 70);
    assert_int_equal(graft_names_find(names, "new"), 71);
    assert_int_equal(graft_names_find(names, "name_8"), 8);
}
