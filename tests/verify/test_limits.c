/* Limits of proofs are refusals (verify/core/limits.def). Each limit is set to 1, 2 and 3, in
 * objects compiled for it, and the proof for all sizes is tried alone, without a sweep, a filter or
 * an instance before it: whatever it gives up for it, it proves no false rule and does not crash,
 * and where it is to refuse it says so. long_limits.c tries more of the corpus.
 *
 * And as they are, limits let none of the corpus's false rules through (`false` and `beyond` here,
 * all of them in long_corpus.c). */
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/corpus.h"
#include "tests/support/rows.h"
#include "verify/core/limits.h"
#include "verify/pool.h"
#include "verify/sizes/symbolic.h"

#include <string.h>

enum { VALUES = 3 };

/* Of the corpus's false rules every so many, others at each limit and value. */
#ifndef EVERY
#define EVERY 199
#endif

static const uint64_t item_limit_ns = UINT64_C(600000000000);

typedef enum { REFUSE, WEAKEN, FIXED } limit_kind;

typedef struct {
    uint32_t ended;   /* Tries that did not end: a crash, out of time. */
    uint32_t proved;  /* False rules proved for all sizes. */
    uint32_t unnamed; /* Limits that refuse, but no reason names them. */
    uint32_t lost;    /* True rules not proved with no limit set. */
} limits_tally;

typedef struct {
    const char *name;
    uint8_t kind; /* limit_kind */
} limit_row;

static const limit_row rows[GRAFT_LIMIT_COUNT] = {
#define LIMIT(name, value, kind, text) {#name, kind},
#include "verify/core/limits.def"
#undef LIMIT
};

/* ------------------------------------------------------------------ setting */

/* Of a child that was forked for one limit and value. */
static uint32_t limit_set = GRAFT_LIMIT_COUNT;
static uint32_t value_set;

uint32_t graft_limit_in_test(uint32_t limit, uint32_t value);

/* What is asked for in verify/core/limits.h. */
uint32_t graft_limit_in_test(uint32_t limit, uint32_t value)
{
    return limit == limit_set && value_set < value ? value_set : value;
}

/* -------------------------------------------------------------------- rules */

/* Each limit that refuses is met by one of them. */
static const char *const truths[] = {
    "matmul(matmul(a, b), c) = matmul(a, matmul(b, c)) where rank(a) = 2 and rank(b) = 2",
    "concat#1(add(a, b), add(c, d)) = add(concat#1(a, c), concat#1(b, d)) "
    "where same_shape(a, b) and same_shape(c, d) and dim(a,0) = dim(c,0)",
    "reduce_sum#1(mul(a, b)) = mul(b, reduce_sum#1(a)) where rank(b) = 0 and rank(a) = 3",
    "reshape#1(mul(a, b)) = mul(reshape#1(a), reshape#1(b)) where same_shape(a, b) and rank(a) = 3",
    "[split#1(add(a, b)).0, split#1(add(a, b)).1] = [add(split#1(a).0, b), add(split#1(a).1, b)]",
    "softmax#1(relu(a)) = softmax#1(relu(relu(a)))",
    "[max(max(a, b), min(a, c)), min(a, max(a, b))] = [max(a, b), a]",
    "div(div(a, b), c) = div(a, mul(b, c))",
    "conv#1(concat(a, b, axis=1), concat(c, d, axis=1), groups=1) = "
    "add(conv#1(a, c, groups=1), conv#1(b, d, groups=1))",
    "max_pool#1(relu(a)) = relu(max_pool#1(a))",
    "mul(b, reduce_sum#1(sqrt(a), axes=14)) = mul(reduce_sum#1(sqrt(a), axes=14), b) where rank(a) "
    "= 4",
};

enum { TRUTHS = sizeof truths / sizeof truths[0] };

/* False rules that a limit makes true where what is past it is lost: factors of a product, sizes
 * that are broadcast together, conditions of a range that has no place left to choose. */
static const char *const lies[] = {
    "avg_pool(avg_pool(a, kernel_h=2, kernel_w=1, stride_h=2, stride_w=1, pad_top=0, pad_left=0, "
    "pad_bottom=0, pad_right=0, count_pad=0), kernel_h=2, kernel_w=1, stride_h=2, stride_w=1, "
    "pad_top=0, pad_left=0, pad_bottom=1, pad_right=0, count_pad=0) = avg_pool(a, kernel_h=4, "
    "kernel_w=1, stride_h=4, stride_w=1, pad_top=0, pad_left=0, pad_bottom=2, pad_right=0, "
    "count_pad=0)",
    "add(reduce_sum(a, axes=2, keep=0), b) = add(reduce_max(reshape(reshape(a, dim=[dim(b,0), "
    "dim(a,0), dim(a,1)]), dim=[dim(a,0), dim(a,1)]), axes=2, keep=0), b) "
    "where rank(a) = 2 and rank(b) = 1 and dim(b,0) <= 1",
    "reduce_sum(add(add(a, b), c), axes=1, keep=0) = reduce_sum(slice(add(add(a, b), c), axis=0, "
    "start=0, end=max(dim(a,0), dim(b,0))), axes=1, keep=0)",
};

enum { LIES = sizeof lies / sizeof lies[0] };

typedef struct {
    uint32_t limit;
    uint32_t value;
    uint32_t first; /* Of the false rules of a file, before EVERY is applied. */
} try_item;

typedef struct {
    try_item items[GRAFT_LIMIT_COUNT * VALUES + 1];
    uint32_t item_count;
    corpus_rules files[CORPUS_FILES]; /* Those of false rules. */
    uint32_t file_count;
    graft_rule truths[TRUTHS];
    graft_rule lies[LIES];
} trial;

/* What comes back of a limit and value. */
typedef struct {
    uint32_t truths; /* Proved. */
    uint32_t proved; /* False rules. */
    bool named;      /* The reason of some rule that was not proved names the limit. */
} outcome;

static void parse_rules(graft_env *env, const char *const *texts, uint32_t count,
                        graft_rule *parsed)
{
    for (uint32_t i = 0; i < count; i++) {
        parsed[i] = rows_parse(env, texts[i]);
    }
}

static void read_rules(graft_env *env, trial *t)
{
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        if (corpus_files[f].kind != CORPUS_TRUE) {
            t->files[t->file_count++] = corpus_read(env, corpus_files[f].path, 0, 1);
        }
    }
    parse_rules(env, truths, TRUTHS, t->truths);
    parse_rules(env, lies, LIES, t->lies);
}

/* ------------------------------------------------------------------- trying */

static bool is_proved(graft_env *env, const graft_rule *rule, uint32_t limit, outcome *o)
{
    graft_symbolic_result result;
    graft_prove_options options = graft_prove_defaults();
    options.most = (graft_effort){8000000, 80000};
    graft_symbolic_prove(env, rule, &options, &result);
    const char *reason = graft_limit_reason(limit);
    o->named = o->named || (!result.proved && strstr(result.reason, reason) != NULL);
    return result.proved;
}

static void try_lie(graft_env *env, const graft_rule *rule, outcome *o)
{
    if (is_proved(env, rule, limit_set, o)) {
        o->proved++;
        print_message("# WRONG proved with %s = %u: %s\n",
                      limit_set < GRAFT_LIMIT_COUNT ? rows[limit_set].name : "no limit", value_set,
                      graft_rule_print_line(env->unit, rule));
    }
}

static void try_limit(graft_env *env, void *context, const graft_pool_item *item,
                      graft_buffer *answer)
{
    const trial *t = context;
    outcome o = {0};
    limit_set = t->items[item->index].limit;
    value_set = t->items[item->index].value;
    for (uint32_t i = 0; i < TRUTHS; i++) {
        bool proved = is_proved(env, &t->truths[i], limit_set, &o);
        o.truths += proved ? 1 : 0;
        if (!proved && limit_set == GRAFT_LIMIT_COUNT) {
            print_message("# WRONG not proved: %s\n", truths[i]);
        }
    }
    for (uint32_t i = 0; i < LIES; i++) {
        try_lie(env, &t->lies[i], &o);
    }
    for (uint32_t f = 0; f < t->file_count; f++) {
        for (uint32_t i = t->items[item->index].first % EVERY; i < t->files[f].count; i += EVERY) {
            try_lie(env, &t->files[f].rules[i], &o);
        }
    }
    graft_buffer_append(answer, &o, sizeof o);
}

/* The first item sets no limit. */
static void list_items(trial *t)
{
    t->items[t->item_count++] = (try_item){.limit = GRAFT_LIMIT_COUNT};
    for (uint32_t value = 1; value <= VALUES; value++) {
        for (uint32_t limit = 0; limit < GRAFT_LIMIT_COUNT; limit++) {
            if (rows[limit].kind != FIXED) {
                t->items[t->item_count++] = (try_item){limit, value, VALUES * limit + value};
            }
        }
    }
}

static void count_item(const trial *t, uint32_t i, const graft_pool_result *result,
                       bool named[GRAFT_LIMIT_COUNT], limits_tally *tally)
{
    const try_item *item = &t->items[i];
    outcome o;
    if (result->outcome != GRAFT_POOL_DONE) {
        tally->ended++;
        print_message("# WRONG %s = %u: %s\n", i > 0 ? rows[item->limit].name : "no limit",
                      item->value, graft_pool_outcome_name(result->outcome));
        return;
    }
    memcpy(&o, result->answer, sizeof o);
    tally->proved += o.proved;
    if (i == 0) {
        tally->lost += TRUTHS - o.truths;
    } else {
        named[item->limit] = named[item->limit] || o.named;
    }
}

CHECK_CASE(test_small_limits)
{
    trial *t = GRAFT_NEW(env->life, trial, 1);
    bool named[GRAFT_LIMIT_COUNT] = {false};
    limits_tally tally = {0};
    env->thread_count = 2;
    read_rules(env, t);
    list_items(t);
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, t->item_count);
    const graft_pool_job job = {.label = "limits",
                                .unit = "limits",
                                .item_count = t->item_count,
                                .limit_ns = item_limit_ns,
                                .is_fresh = true,
                                .run = try_limit,
                                .context = t};
    CHECK_OK(graft_pool_run(env, env->life, &job, results));
    for (uint32_t i = 0; i < t->item_count; i++) {
        count_item(t, i, &results[i], named, &tally);
    }
    for (uint32_t limit = 0; limit < GRAFT_LIMIT_COUNT; limit++) {
        if (rows[limit].kind == REFUSE && !named[limit]) {
            tally.unnamed++;
            print_message("# WRONG no reason names %s\n", rows[limit].name);
        }
    }
    print_message("# %u limits and values\n", t->item_count);
    assert_int_equal(tally.lost, 0);
    assert_int_equal(tally.ended, 0);
    assert_int_equal(tally.proved, 0);
    assert_int_equal(tally.unnamed, 0);
}

/* ------------------------------------------------------------ as limits are */

static const uint64_t proof_limit_ns = UINT64_C(10000000000);

CHECK_CASE(test_prover_alone)
{
    uint32_t proved = 0;
    env->thread_count = 2;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_kind kind = (corpus_kind)corpus_files[f].kind;
        if (kind != CORPUS_TRUE && strstr(corpus_files[f].path, "mutants") == NULL) {
            corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
            proved += corpus_try_symbolic(env, &rules, kind, proof_limit_ns);
        }
    }
    assert_int_equal(proved, 0);
}
