/* Rule files that were damaged: whatever bit is changed and wherever the file ends, a rule that is
 * still read is what it was, and its certificate claims no more than it did. */
#include "graph/rule/rulefile.h"

#include "graph/base/file.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"

#include <stdio.h>

enum { RULES = 3 };

/* One proved, one that holds within bounds, and one that is exact. */
static graft_ruleset make_set(graft_env *env)
{
    static const char *const texts[RULES] = {
        "add(add(a, b), c) = add(a, add(b, c))",
        "slice#1(a) = slice(a, axis=#1.axis, start=#1.start, end=#1.end) where #1.end <= 7",
        "relu(relu(a)) = relu(a)"};
    static const char *const names[RULES] = {"first", "second", "third"};
    graft_ruleset set = {"z3 4.8.12.0", RULES, GRAFT_NEW(env->life, graft_rule_entry, RULES)};
    for (uint32_t i = 0; i < RULES; i++) {
        graft_rule_entry *e = &set.entries[i];
        *e = (graft_rule_entry){.name = names[i], .family = "user", .gain = 1, .points = 300};
        e->rule = rows_parse(env, texts[i]);
        e->id = graft_rule_id(&e->rule);
        e->proof = i == 1 ? GRAFT_PROOF_BOUNDED : GRAFT_PROOF_UNBOUNDED;
        e->numeric = i == 2 ? GRAFT_NUMERIC_EXACT : GRAFT_NUMERIC_REASSOCIATING;
        e->cases = i == 1 ? 0 : 1;
        e->reason = i == 1 ? "the sides were not proved equal" : "";
        e->rounding.elements = i == 2 ? 0 : 256;
        e->cover_points = (const uint8_t *)"";
    }
    return set;
}

/* The file after a change; what is read of it is part of what was written. */
static bool is_read(graft_env *env, const graft_ruleset *set, const char *path, const uint8_t *data,
                    size_t size)
{
    GRAFT_SCOPED(env->unit);
    graft_ruleset found = {.count = 0};
    FILE *file = fopen(path, "wb"); /* Not graft_file_write, which waits for the disk. */
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    const bool read = graft_rulefile_read(env, env->unit, path, &found) == GRAFT_OK;
    for (uint32_t i = 0; read && i < found.count; i++) {
        const graft_rule_entry *e = &found.entries[i];
        uint32_t k = 0;
        while (k < RULES && set->entries[k].id != e->id) {
            k++;
        }
        assert_true(k < RULES);
        assert_int_equal(e->proof, set->entries[k].proof);
        assert_true(e->numeric == set->entries[k].numeric ||
                    e->numeric == GRAFT_NUMERIC_EXACT_INTEGER); /* Of an exact one: it says less. */
        assert_true(e->numeric != GRAFT_NUMERIC_EXACT_INTEGER ||
                    set->entries[k].numeric == GRAFT_NUMERIC_EXACT);
    }
    graft_env_clear(env);
    return read;
}

/* Writes the set; its bytes, in env->life. */
static uint8_t *write_set(graft_env *env, const graft_ruleset *set, const char *path, size_t *size)
{
    uint8_t *data = NULL;
    CHECK_OK(graft_rulefile_write(env, path, set));
    CHECK_OK(graft_file_read(env, env->life, path, &data, size));
    assert_true(is_read(env, set, path, data, *size));
    return data;
}

/* Names, counts and the solver's version may change. */
CHECK_CASE(test_changed_bits)
{
    const char *path = check_path("set.rules");
    const graft_ruleset set = make_set(env);
    size_t size = 0;
    uint32_t read = 0;
    uint8_t *data = write_set(env, &set, path, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        read += is_read(env, &set, path, data, size) ? 1 : 0;
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    print_message("# %u of %zu changed bits are not noticed\n", read, 8 * size);
}

/* Behind a whole rule, too. */
CHECK_CASE(test_cut_off)
{
    const char *path = check_path("set.rules");
    const graft_ruleset set = make_set(env);
    size_t size = 0;
    const uint8_t *data = write_set(env, &set, path, &size);
    for (size_t end = 0; end < size; end++) {
        assert_false(is_read(env, &set, path, data, end));
    }
}

/* Pattern, certificate and name of one rule with those of another. */
CHECK_CASE(test_mixed)
{
    const char *path = check_path("set.rules");
    const struct {
        const char *fault;
        uint32_t rule;
        uint64_t id;
        const char *name;
        uint8_t proof;
        uint8_t numeric;
    } cases[] = {
        {"its id is not that of its content",  0, 1, NULL,    0,                     0                          },
        {"its name occurs twice",              1, 0, "first", 0,                     0                          },
        {"its certificate contradicts itself", 0, 0, NULL,    GRAFT_PROOF_BOUNDED,   0                          },
        {"its certificate contradicts itself", 1, 0, NULL,    GRAFT_PROOF_UNBOUNDED, 0                          },
        {"its certificate contradicts itself", 0, 0, NULL,    0,                     GRAFT_NUMERIC_EXACT        },
        {"its certificate contradicts itself", 0, 0, NULL,    0,                     GRAFT_NUMERIC_EXACT_INTEGER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_ruleset found;
        const graft_ruleset set = make_set(env);
        graft_rule_entry *e = &set.entries[cases[i].rule];
        e->id ^= cases[i].id;
        e->name = cases[i].name != NULL ? cases[i].name : e->name;
        e->proof = cases[i].proof != 0 ? cases[i].proof : e->proof;
        e->numeric = cases[i].numeric != 0 ? cases[i].numeric : e->numeric;
        CHECK_OK(graft_rulefile_write(env, path, &set));
        check_failed(env, graft_rulefile_read(env, env->life, path, &found), GRAFT_BAD_INPUT,
                     cases[i].fault);
    }
}
