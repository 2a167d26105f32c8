/* The committed rules changed in every way of tests/support/mutate.h: what a witness that shares no
 * code with the sweep finds false must not be accepted; and the same laws under other names, with
 * operands in another order, attributes bound and outputs in another order must not be refuted.
 *
 *      CORPUS_WRITE=FOLDER   writes what was found as mutants.yaml, beyond-mutants.yaml and
 *                            variants.yaml: the committed corpus is made of it
 *      CORPUS_SEED=N         other mutants */
#include "graph/base/file.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/corpus.h"
#include "tests/support/known_rules.h"
#include "tests/support/mutate.h"
#include "tests/support/retell.h"
#include "tests/support/witness.h"

#include <stdlib.h>
#include <string.h>

enum {
    PER_CLASS = 38,  /* Mutants wanted of each class that are false within the bounds, */
    PER_RETOLD = 38, /* and rules in other words of each kind. */
    TRIES_PER_RULE = 3,
    WITNESS_ATTEMPTS = 1500,
    WITNESS_ENOUGH = 60,
    APPLIES = 4 /* Places. */
};

/* Rules found, by what is known of them. */
typedef struct {
    graft_rule *rules;
    const char **names;
    uint32_t count;
} pile;

static pile open_pile(graft_env *env, uint32_t capacity)
{
    return (pile){GRAFT_NEW(env->life, graft_rule, capacity),
                  GRAFT_NEW(env->life, const char *, capacity), 0};
}

static void put(graft_env *env, pile *p, const graft_rule *rule, const char *family)
{
    p->rules[p->count] = *rule;
    p->names[p->count] = graft_arena_printf(env->life, "%s-%04u", family, p->count);
    p->count++;
}

static bool has(const pile *p, const graft_rule *rule)
{
    uint64_t id = graft_rule_id(rule);
    for (uint32_t i = 0; i < p->count; i++) {
        if (graft_rule_id(&p->rules[i]) == id) {
            return true;
        }
    }
    return false;
}

static uint64_t read_seed(void)
{
    const char *text = getenv("CORPUS_SEED");
    return text == NULL ? 2026 : strtoull(text, NULL, 10);
}

/* -------------------------------------------------------------------- making */

static void make_mutants(graft_env *env, const known_rules *known, pile *within, pile *beyond)
{
    for (uint32_t class = 0; class < MUTATE_CLASS_COUNT; class ++) {
        uint32_t wanted = PER_CLASS;
        graft_rng rng;
        graft_rng_derive(&rng, read_seed(), class);
        uint32_t start = graft_rng_below(&rng, known->count);
        for (uint32_t i = 0; i < known->count * TRIES_PER_RULE && wanted > 0; i++) {
            /* A prime step: neighbours in the set are alike. */
            const graft_rule *rule = &known->rules[(start + i * 97) % known->count];
            graft_rule mutant;
            if (!mutate_rule(env, &rng, rule, class, &mutant) || has(within, &mutant) ||
                has(beyond, &mutant)) {
                continue;
            }
            witness_options options = {read_seed() + i, WITNESS_ATTEMPTS, WITNESS_ENOUGH, true};
            if (witness_find(env, &mutant, &options).found) {
                put(env, within, &mutant, mutate_class_name(class));
                wanted--;
                continue;
            }
            options.within = false;
            if (witness_find(env, &mutant, &options).found) {
                put(env, beyond, &mutant, mutate_class_name(class));
            }
        }
        print_message("# %s: %u false within the bounds\n", mutate_class_name(class),
                      PER_CLASS - wanted);
    }
}

static void make_retold(graft_env *env, const known_rules *known, pile *told)
{
    for (uint32_t class = 0; class < RETELL_CLASS_COUNT; class ++) {
        uint32_t wanted = PER_RETOLD;
        graft_rng rng;
        graft_rng_derive(&rng, read_seed(), 1000 + class);
        uint32_t start = graft_rng_below(&rng, known->count);
        for (uint32_t i = 0; i < known->count && wanted > 0; i++) {
            const graft_rule *rule = &known->rules[(start + i * 97) % known->count];
            graft_rule variant;
            if (!retell_rule(env, &rng, rule, class, &variant) || has(told, &variant)) {
                continue;
            }
            /* Special cases may never apply, of which nothing could be learnt. */
            const witness_options options = {read_seed() + i, WITNESS_ATTEMPTS, APPLIES, false};
            if (witness_find(env, &variant, &options).compared == APPLIES) {
                put(env, told, &variant, retell_class_name(class));
                wanted--;
            }
        }
        print_message("# %s: %u\n", retell_class_name(class), PER_RETOLD - wanted);
    }
}

/* ------------------------------------------------------------------- writing */

static void write_pile(graft_env *env, const pile *p, const char *folder, const char *file,
                       const char *head)
{
    graft_buffer text = {.arena = env->life};
    graft_buffer_printf(&text, "%srules:\n", head);
    for (uint32_t i = 0; i < p->count; i++) {
        graft_rule_text rule = graft_rule_print(env->life, &p->rules[i]);
        graft_buffer_printf(&text, "  - {name: %s, source: \"%s\", target: \"%s\"", p->names[i],
                            rule.source, rule.target);
        if (rule.where[0] != '\0') {
            graft_buffer_printf(&text, ", where: \"%s\"", rule.where);
        }
        graft_buffer_printf(&text, "}\n");
    }
    const char *path = graft_arena_printf(env->life, "%s/%s", folder, file);
    CHECK_OK(graft_file_write(env, path, text.data, text.size));
}

static corpus_tally try_pile(graft_env *env, const pile *p, corpus_kind kind)
{
    graft_trial_options options = graft_trial_defaults();
    corpus_rules rules = {GRAFT_NEW(env->life, graft_user_rule, p->count), p->rules, p->count};
    options.suggest = false;
    for (uint32_t i = 0; i < p->count; i++) {
        rules.named[i].name = p->names[i];
    }
    return corpus_try(env, &rules, kind, &options);
}

static void check_tally(const char *what, const corpus_tally *t)
{
    print_message("# %s: %u rules, %u proved (%u unbounded), %u refuted, %u unknown, %u wrong\n",
                  what, t->count, t->proved, t->unbounded, t->refuted, t->unknown, t->wrong);
}

CHECK_CASE(test_mutants)
{
    known_rules known = known_rules_proved(env);
    const char *folder = getenv("CORPUS_WRITE");
    pile within = open_pile(env, MUTATE_CLASS_COUNT * PER_CLASS);
    pile beyond = open_pile(env, MUTATE_CLASS_COUNT * known.count * TRIES_PER_RULE);
    make_mutants(env, &known, &within, &beyond);
    if (folder != NULL) {
        write_pile(env, &within, folder, "mutants.yaml",
                   "# False rules, made by tests/verify/long_corpus_make.c from committed ones; a "
                   "witness\n# was found for each within the bounds.\n");
        write_pile(env, &beyond, folder, "beyond-mutants.yaml", "# False beyond the bounds.\n");
    }
    corpus_tally inner = try_pile(env, &within, CORPUS_FALSE);
    corpus_tally outer = try_pile(env, &beyond, CORPUS_BEYOND);
    check_tally("false within the bounds", &inner);
    check_tally("false beyond them", &outer);
    assert_int_equal(inner.wrong + outer.wrong, 0);
}

CHECK_CASE(test_retold)
{
    known_rules known = known_rules_proved(env);
    const char *folder = getenv("CORPUS_WRITE");
    pile told = open_pile(env, RETELL_CLASS_COUNT * PER_RETOLD);
    make_retold(env, &known, &told);
    if (folder != NULL) {
        write_pile(env, &told, folder, "variants.yaml",
                   "# True rules: committed ones in other words (tests/support/retell.h).\n");
    }
    corpus_tally tally = try_pile(env, &told, CORPUS_TRUE);
    check_tally("true", &tally);
    assert_int_equal(tally.wrong, 0);
}
