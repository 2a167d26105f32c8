/* Theorems as SMT-LIB, read back from their text: true ones are unsat, false ones are not, what
 * they assume can be met, and their sides compute what operators do. The laws of sums and maxima
 * are unsat. */
#include "graph/base/bits.h"
#include "verify/export/theorem.h"

#include "graph/meaning/algebra_real.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/corpus.h"
#include "tests/support/rows.h"
#include "verify/sweep/domain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <z3.h>

#define NUM                       double
#define ALG(f)                    f##_real
#define RUN(k, op, call, in, out) ((void)(k), graft_real_run((op), (call), (in), (out)))
#include "verify/instances/sides.inc"

enum { ANSWERS_MOST = 32, ELEMENTS_MOST = 4096, VALUES_EACH = 3, CASES_MOST = 6, SECONDS_MOST = 4 };

/* -------------------------------------------------------------------- asking */

typedef struct {
    char answers[ANSWERS_MOST]; /* 'u'nsat, 's'at, '?'. */
    uint32_t count;
} said;

/* Puts the text to Z3 as a stranger would: through its reader. */
static said ask(const char *text, uint32_t limit)
{
    said s = {.count = 0};
    char option[64];
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    (void)snprintf(option, sizeof option, "(set-option :rlimit %u)", limit);
    (void)Z3_eval_smtlib2_string(z3, option);
    const char *answers = Z3_eval_smtlib2_string(z3, text);
    for (const char *at = answers; *at != '\0'; at += strcspn(at, "\n") + 1) {
        if (strncmp(at, "(error", 6) == 0) {
            fail_msg("%.*s", (int)strcspn(at, "\n"), at);
        }
        assert_true(s.count < ANSWERS_MOST);
        s.answers[s.count++] = strncmp(at, "unsat", 5) == 0 ? 'u' : *at == 's' ? 's' : '?';
    }
    Z3_del_context(z3);
    return s;
}

/* Whether the question of a text is unsat. Asked in a child, for Z3 does not always keep to its
 * limit: one that takes seconds of the processor, however busy that is, does not say so. */
static bool is_unsat(const char *text, uint32_t limit)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit most = {SECONDS_MOST, SECONDS_MOST};
        (void)setrlimit(RLIMIT_CPU, &most);
        said s = ask(text, limit);
        _exit(s.answers[s.count - 1] == 'u' ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* The text with sums and maxima as functions that nothing is known of, which claims more. */
static const char *forget_definitions(graft_arena *arena, const char *text)
{
    graft_buffer out = {.arena = arena};
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "(define-fun-rec ", 16) != 0) {
            graft_buffer_printf(&out, "%.*s\n", (int)length, line);
            continue;
        }
        const char *params = strchr(line, '(');
        params = strchr(params + 1, '(');
        const char *end = strstr(params, ")) ");
        graft_buffer_printf(&out, "(declare-fun %.*s(", (int)(params - line - 16), line + 16);
        for (const char *at = params; at < end; at++) {
            graft_buffer_printf(&out, "%s", strncmp(at, " Int", 4) == 0 ? " Int" : "");
        }
        graft_buffer_printf(&out, ") %s)\n", strncmp(end + 3, "Bool", 4) == 0 ? "Bool" : "Real");
    }
    return out.data;
}

/* What is said of a rule's cases. */
typedef struct {
    uint32_t cases;
    uint32_t proved;
    uint32_t most;    /* End after so many. */
    bool until_open;  /* End at the first case that is not unsat. */
    uint32_t vacuous; /* Unsat without the goal. */
    bool look_for_these;
    uint32_t limit;
} tally;

static bool all_unsat(const said *s)
{
    bool all = s->count > 0;
    for (uint32_t i = 0; i < s->count; i++) {
        all = all && s->answers[i] == 'u';
    }
    return all;
}

/* The goal always holds: what is left are assumptions. */
static const char *without_goal(graft_arena *arena, const char *text)
{
    char *copy = graft_arena_printf(arena, "%s", text);
    char *at = strstr(copy, "(or false ; the goal");
    assert_non_null(at);
    for (const char *from = "(or true "; *from != '\0'; from++) {
        *at++ = *from;
    }
    return copy;
}

static graft_status count_case(graft_env *env, void *context, const graft_theorem_file *file)
{
    tally *t = context;
    const char *text = forget_definitions(env->life, file->text);
    if (t->until_open) {
        bool unsat = is_unsat(text, t->limit);
        t->cases++;
        t->proved += unsat ? 1 : 0;
        return unsat && t->cases < t->most ? GRAFT_OK : GRAFT_FAIL(env, GRAFT_UNDECIDED, "enough");
    }
    said s = ask(text, t->limit);
    assert_int_equal(s.count, 1);
    t->cases++;
    t->proved += s.answers[0] == 'u' ? 1 : 0;
    if (t->look_for_these) {
        const char *rest = without_goal(env->life, text);
        t->vacuous += is_unsat(rest, t->limit) ? 1 : 0;
    }
    return t->cases == t->most ? GRAFT_FAIL(env, GRAFT_UNDECIDED, "enough") : GRAFT_OK;
}

static tally ask_rule(graft_env *env, const graft_rule *rule, tally how)
{
    GRAFT_SCOPED(env->life);
    if (graft_theorem_write(env, rule, NULL, count_case, &how) != GRAFT_OK) {
        graft_env_clear(env); /* Enough was seen, or a case has no reading. */
    }
    return how;
}

/* --------------------------------------------------------------------- rules */

/* `laws`: it needs laws of sums or maxima, which theorems do not state. */
static const struct {
    const char *text;
    bool laws;
} proved[] = {
    {"relu(relu(a)) = relu(a)",                                                           false},
    {"sub(sub(a, b), c) = sub(a, add(b, c))",                                             false},
    {"mul(a, div(b, c)) = div(mul(a, b), c)",                                             false},
    {"slice#1(pad#2(a)) = slice#1(pad#1(a, before=#2.before, after=#1.start, value=#2.value)) "
     "where rank(a) = 2",                                                            false},
    {"[split#1(concat#1(a, b)).0, split#1(concat#1(a, b)).1] = [a, b] where rank(a) = 2", false},
    {"transpose(transpose(a, axis=[1, 0]), axis=[1, 0]) = a",                             false},
    {"transpose#1(dequantise#2(a)) = dequantise#2(transpose#1(a)) where rank(a) = 2",     false},
    {"transpose#1(quantise#2(a)) = quantise#2(transpose#1(a)) where rank(a) = 2",         false},
    {"add(matmul(a, b), matmul(c, d)) = matmul(concat(a, c, axis=1), concat(b, d, axis=0)) "
     "where rank(a) = 2 and rank(b) = 2",                                            true },
    {"matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) "
     "where same_shape(a, b) and rank(a) = 2 and rank(c) = 2",                       true },
    {"matmul(matmul(a, b), c) = matmul(a, matmul(b, c)) "
     "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2",                            true },
    {"mul(a, matmul(b, c)) = matmul(b, mul(a, c)) where rank(a) = 0",                     true },
    {"conv#1(a, concat#2(b, c), groups=1) = concat(conv#1(a, b, groups=1), "
     "conv#1(a, c, groups=1), axis=1)",                                              true },
    {"reduce_mean#1(add(a, b), keep=1) = add(reduce_mean#1(a, keep=1), "
     "reduce_mean#1(b, keep=1)) where same_shape(a, b) and rank(a) = 2",             true },
    {"relu(reduce_max#1(a)) = reduce_max#1(relu(a)) where rank(a) = 2",                   true },
};

static const struct {
    const char *text;
} wrong[] = {
    {"sub(a, b) = sub(b, a)"},
    {"add(a, sub(b, b)) = add(a, sub(div(a, b), div(a, b)))"}, /* Only undefined. */
    {"slice#1(concat#1(a, b), start=1) = a"},
    {"matmul(a, b) = matmul(b, a)"},
    {"add(matmul(a, b), matmul(c, d)) = matmul(concat(c, a, axis=1), concat(b, d, axis=0)) "
     "where rank(a) = 2 and rank(b) = 2"},
    {"matmul(matmul(a, b), c) = matmul(a, matmul(c, b)) "
     "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2"},
    {"conv#1(add(a, b), c) = add(conv#1(a, c), conv#1(b, b)) where same_shape(a, b)"},
    {"reduce_mean#1(mul(a, b)) = mul(reduce_mean#1(a), reduce_mean#1(b)) where same_shape(a, b)"},
    {"reduce_max#1(add(a, b)) = add(reduce_max#1(a), reduce_max#1(b)) where same_shape(a, b)"},
    {"softmax#1(mul(a, a)) = mul(softmax#1(a), softmax#1(a))"},
    {"reshape#1(transpose(a, axis=[1, 0])) = reshape#1(a)"},
    {"reduce_sum(slice#1(a, axis=0, start=0), axes=1, keep=1) = reduce_sum(a, axes=1, keep=1)"},
    {"reduce_sum(concat(a, b, axis=0), axes=1, keep=1) = "
     "add(reduce_sum(a, axes=1, keep=1), reduce_sum(a, axes=1, keep=1))"},
};

CHECK_CASE(test_true_rules)
{
    uint32_t failed = 0;
    for (size_t i = 0; i < sizeof proved / sizeof proved[0]; i++) {
        const graft_rule rule = rows_parse(env, proved[i].text);
        tally t =
            ask_rule(env, &rule, (tally){.most = 4, .look_for_these = true, .limit = 4000000});
        bool fits = t.cases > 0 && (t.proved < t.cases) == proved[i].laws && t.vacuous < t.cases;
        if (!fits) {
            print_message("# %s: %u cases, %u proved, %u vacuous\n", proved[i].text, t.cases,
                          t.proved, t.vacuous);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

CHECK_CASE(test_false_rules)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const graft_rule rule = rows_parse(env, wrong[i].text);
        tally t = ask_rule(env, &rule, (tally){.until_open = true, .most = 100, .limit = 300000});
        if (t.cases == 0 || t.proved == t.cases) {
            fail_msg("%s: all of %u cases are unsat", wrong[i].text, t.cases);
        }
    }
}

/* Which cases were written. */
typedef struct {
    uint32_t written;
    uint32_t last;
    uint32_t count;
} sample;

static graft_status note_number(graft_env *env, void *context, const graft_theorem_file *file)
{
    sample *s = context;
    (void)env;
    s->count = file->count;
    if (s->written == 0) {
        assert_int_equal(file->number, 0);
    } else {
        const uint32_t step = file->number - s->last;
        const uint32_t even = (file->count - 1) / (GRAFT_THEOREM_CASES - 1);
        assert_in_range(step, even > 1 ? even : 1, even + 1);
    }
    s->last = file->number;
    s->written++;
    return GRAFT_OK;
}

/* Of many cases a sample, at even distances from the first to the last; of few cases all. */
CHECK_CASE(test_sample)
{
    static const struct {
        const char *text;
        uint32_t written;
    } rows[] = {
        {"relu(transpose#1(a)) = transpose#1(relu(a))",                     GRAFT_THEOREM_CASES},
        {"relu(reduce_max#1(a)) = reduce_max#1(relu(a)) where rank(a) = 2", 6                  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sample s = {.written = 0};
        const graft_rule rule = rows_parse(env, rows[i].text);
        CHECK_OK(graft_theorem_write(env, &rule, NULL, note_number, &s));
        assert_int_equal(s.written, rows[i].written);
        assert_int_equal(s.last, s.count - 1);
        assert_int_equal(s.count > s.written, s.written == GRAFT_THEOREM_CASES);
    }
}

/* Of the adversarial corpus: every STEPth rule, or as many as CORPUS_STEP says. */
static void try_corpus(graft_env *env, const char *path, uint32_t step)
{
    const char *text = getenv("CORPUS_STEP");
    uint32_t failed = 0;
    corpus_rules rules =
        corpus_read(env, path, 0, text == NULL ? step : (uint32_t)strtoul(text, NULL, 10));
    for (uint32_t i = 0; i < rules.count; i++) {
        tally t = ask_rule(env, &rules.rules[i],
                           (tally){.until_open = true, .most = CASES_MOST, .limit = 300000});
        if (t.cases > 0 && t.cases < CASES_MOST && t.proved == t.cases) {
            print_message("# %s: %s: all of %u cases are unsat\n", path, rules.named[i].name,
                          t.cases);
            failed++;
        }
    }
    assert_true(rules.count > 3);
    assert_int_equal(failed, 0);
}

CHECK_CASE(test_corpus)
{
    try_corpus(env, "tests/verify/corpus/false.yaml", 16);
    try_corpus(env, "tests/verify/corpus/beyond.yaml", 20);
    try_corpus(env, "tests/verify/corpus/mutants.yaml", 75);
}

/* ---------------------------------------------------------------------- laws */

static const char laws_path[] = "verify/export/laws.smt2";

CHECK_CASE(test_laws)
{
    said s = ask(check_text(laws_path), 2000000);
    assert_true(s.count > 12 && all_unsat(&s));
}

/* What the steps of their proofs assume can be met: without the goal they are not unsat. */
CHECK_CASE(test_laws_are_meant)
{
    static const char step[] = "; from n to n + 1";
    const char *laws = check_text(laws_path);
    for (const char *at = strstr(laws, step); at != NULL; at = strstr(at + 1, step)) {
        const char *goal = strstr(at, "\n(assert (not ");
        assert_non_null(goal);
        said s = ask(graft_arena_printf(env->unit, "%.*s\n(check-sat)", (int)(goal - laws), laws),
                     2000000);
        assert_int_not_equal(s.answers[s.count - 1], 'u');
    }
}

/* ------------------------------------------------------------------- reading */

static const char *const readings[] = {
    "add(a, transpose(b, axis=[1, 0])) = add(a, transpose(b, axis=[1, 0]))",
    "clip#1(transpose(a, axis=[1, 0])) = clip#1(transpose(a, axis=[1, 0]))",
    "leaky_relu#1(transpose(a, axis=[1, 0])) = leaky_relu#1(transpose(a, axis=[1, 0]))",
    "div(a, transpose(b, axis=[1, 0])) = div(a, transpose(b, axis=[1, 0]))",
    "matmul(a, b) = matmul(a, b)",
    "matmul_bias#1(a, b, c, activation=relu) = matmul_bias#1(a, b, c, activation=relu)",
    "conv#1(a, b) = conv#1(a, b)",
    "conv_bias#1(a, b, c, activation=relu6) = conv_bias#1(a, b, c, activation=relu6)",
    "scale_shift(a, b, c) = scale_shift(a, b, c)",
    "max_pool#1(a) = max_pool#1(a)",
    "avg_pool#1(a) = avg_pool#1(a)",
    "global_avg_pool(a) = global_avg_pool(a)",
    "reduce_sum#1(a) = reduce_sum#1(a)",
    "reduce_mean#1(a) = reduce_mean#1(a)",
    "reduce_max#1(a) = reduce_max#1(a)",
    "concat#1(a, b) = concat#1(a, b)",
    "split#1(a).1 = split#1(a).1",
    "slice#1(a) = slice#1(a) where rank(a) = 1",
    "pad#1(a) = pad#1(a) where rank(a) = 1",
    "reduce_sum#1(transpose(a, axis=[1, 0])) = reduce_sum#1(transpose(a, axis=[1, 0]))",
    "reshape#1(a) = reshape#1(a)",
    "relu(matmul(transpose(a, axis=[1, 0]), concat(b, b, axis=1))) = "
    "relu(matmul(transpose(a, axis=[1, 0]), concat(b, b, axis=1)))",
};

typedef struct {
    const graft_rule *rule;
    const graft_point *point;
    graft_instance instance;
    double *vars[GRAFT_RULE_MAX_VARS];
    const double *value;
    uint32_t tried; /* Elements compared. */
} reading;

static int32_t digits_of(const char *text, const char *after)
{
    return (int32_t)strtol(strstr(text, after) + strlen(after), NULL, 10);
}

/* The rank of the source's first output, by its definition. */
static uint32_t output_rank(const reading *r, const char *text)
{
    char name[48];
    uint32_t rank = 0;
    const graft_operand x = r->rule->source.outputs[0];
    (void)snprintf(name, sizeof name, "(define-fun source%u_%u (", GRAFT_OPERAND_NODE_OF(x),
                   GRAFT_OPERAND_SLOT_OF(x));
    const char *line = strstr(text, name);
    const char *end = strstr(line, ") Real");
    for (const char *at = line; at < end; at++) {
        rank += strncmp(at, "(q", 2) == 0 ? 1 : 0;
    }
    return rank;
}

/* Whether the file is about the point's ranks and chosen attributes: see its "; case" line. */
static bool is_case_of(graft_arena *arena, const reading *r, const char *text)
{
    const char *line = strstr(text, "; case ");
    const char *at = strstr(line, "ranks ") + 6;
    const char *head = graft_arena_printf(arena, "%.*s", (int)strcspn(line, "\n"), line);
    if (output_rank(r, text) !=
        graft_instance_shape(&r->instance, &r->instance.source, r->rule->source.outputs[0])->rank) {
        return false;
    }
    for (uint32_t v = 0; v < r->rule->var_count; v++) {
        if ((uint32_t)strtol(at, NULL, 10) != r->point->vars[v].rank) {
            return false;
        }
        at += strcspn(at, ", \n") + 1;
    }
    for (uint32_t i = 0; i < r->rule->slot_count; i++) {
        const char *name = graft_rule_print_slot(arena, r->rule, i);
        const char *equals = graft_arena_printf(arena, " %s=", name);
        bool infinite = strstr(head, graft_arena_printf(arena, " %s infinite", name)) != NULL;
        bool is_infinite = (r->point->slots[i] & INT32_MAX) == 0x7f800000;
        if ((strstr(head, equals) != NULL && digits_of(head, equals) != r->point->slots[i]) ||
            infinite != is_infinite) {
            return false;
        }
    }
    return true;
}

static void put_number(graft_buffer *out, double value)
{
    graft_buffer_printf(out, value < 0 ? "(- %.17f)" : "%.17f", fabs(value));
}

static void index_of(const graft_shape *shape, uint64_t place, int *index)
{
    for (uint32_t i = shape->rank; i-- > 0;) {
        index[i] = (int)(place % (uint64_t)shape->dims[i]);
        place /= (uint64_t)shape->dims[i];
    }
}

/* A variable as a function that knows all its elements. */
static void define_variable(graft_buffer *out, const reading *r, uint32_t v)
{
    const graft_shape *shape = &r->point->vars[v];
    uint64_t count = graft_shape_elements(shape);
    graft_buffer_printf(out, "(define-fun x%u (", v);
    for (uint32_t i = 0; i < shape->rank; i++) {
        graft_buffer_printf(out, "(i%u Int)", i);
    }
    graft_buffer_printf(out, ") Real ");
    for (uint64_t k = 0; k < count; k++) {
        int index[GRAFT_MAX_RANK];
        index_of(shape, k, index);
        graft_buffer_printf(out, "(ite (and true");
        for (uint32_t i = 0; i < shape->rank; i++) {
            graft_buffer_printf(out, " (= i%u %d)", i, index[i]);
        }
        graft_buffer_printf(out, ") ");
        put_number(out, r->vars[v][k]);
        graft_buffer_printf(out, " ");
    }
    graft_buffer_printf(out, "0.0");
    for (uint64_t k = 0; k < count; k++) {
        graft_buffer_printf(out, ")");
    }
    graft_buffer_printf(out, ")\n");
}

/* The number after a prefix of a line, and where it ends; NULL when the line begins otherwise. */
static const char *take_number(const char *line, const char *prefix, uint32_t *number)
{
    char *end = NULL;
    if (strncmp(line, prefix, strlen(prefix)) != 0) {
        return NULL;
    }
    *number = (uint32_t)strtoul(line + strlen(prefix), &end, 10);
    return end;
}

/* The definition that takes the place of a declaration (d<v>_<i> is the size of the i-th axis from
 * the last); false when it is of something else. */
static bool define_constant(graft_buffer *out, const reading *r, const char *line)
{
    uint32_t v = 0;
    uint32_t axis = 0;
    const char *rest = NULL;
    if ((rest = take_number(line, "(declare-const d", &v)) != NULL) {
        (void)take_number(rest, "_", &axis);
        graft_buffer_printf(out, "(define-fun d%u_%u () Int %d)\n", v, axis,
                            r->point->vars[v].dims[r->point->vars[v].rank - axis]);
    } else if ((rest = take_number(line, "(declare-const s", &v)) != NULL) {
        bool is_real = strncmp(rest, " Real", 5) == 0;
        graft_buffer_printf(out, "(define-fun s%u () %s ", v, is_real ? "Real" : "Int");
        if (is_real) {
            put_number(out, (double)graft_float_of_bits(r->point->slots[v]));
        } else {
            graft_buffer_printf(out, "%d", r->point->slots[v]);
        }
        graft_buffer_printf(out, ")\n");
    } else if (take_number(line, "(declare-fun x", &v) != NULL) {
        define_variable(out, r, v);
    } else {
        return false;
    }
    return true;
}

/* "3.5", "(- 3.5)", "(/ 7.0 2.0)", "(- (/ 7.0 2.0))", "(/ (- 7.0) 2.0)". */
static double number_of(const char *text)
{
    double value = 0;
    double below = 1;
    const char *digit = text + strcspn(text, "0123456789");
    char *end = NULL;
    value = strtod(digit, &end);
    if (strchr(text, '/') != NULL) {
        below = strtod(end + strcspn(end, "0123456789"), NULL);
    }
    return (strchr(text, '-') != NULL ? -value : value) / below;
}

/* An element of the source as the file has it, by Z3's simplifier. */
static double simplify_element(graft_env *env, const reading *r, const char *text, const int *index,
                               uint32_t rank)
{
    graft_buffer out = {.arena = env->life};
    const graft_operand x = r->rule->source.outputs[0];
    const char *end = strstr(text, "\n; ---- what the engine");
    for (const char *line = text; line < end; line += strcspn(line, "\n") + 1) {
        if (!define_constant(&out, r, line)) {
            graft_buffer_printf(&out, "%.*s\n", (int)strcspn(line, "\n"), line);
        }
    }
    graft_buffer_printf(&out, "(simplify %ssource%u_%u", rank > 0 ? "(" : "",
                        GRAFT_OPERAND_NODE_OF(x), GRAFT_OPERAND_SLOT_OF(x));
    for (uint32_t i = 0; i < rank; i++) {
        graft_buffer_printf(&out, " %d", index[i]);
    }
    graft_buffer_printf(&out, rank > 0 ? "))\n" : ")\n");
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    const char *answer = Z3_eval_smtlib2_string(z3, out.data);
    if (strncmp(answer, "(error", 6) == 0 || strstr(answer, "source") != NULL) {
        fail_msg("%s", answer);
    }
    double value = number_of(answer);
    Z3_del_context(z3);
    return value;
}

/* The file says of some elements what the operators compute. */
static graft_status compare_case(graft_env *env, void *context, const graft_theorem_file *file)
{
    reading *r = context;
    if (!is_case_of(env->life, r, file->text)) {
        return GRAFT_OK;
    }
    const graft_shape *shape =
        graft_instance_shape(&r->instance, &r->instance.source, r->rule->source.outputs[0]);
    uint64_t count = graft_shape_elements(shape);
    for (uint32_t n = 0; n < VALUES_EACH; n++) {
        int index[GRAFT_MAX_RANK];
        uint64_t element = n * (count - 1) / (VALUES_EACH - 1);
        index_of(shape, element, index);
        double value = simplify_element(env, r, file->text, index, shape->rank);
        if (!(fabs(value - r->value[element]) < 1e-6 * (1.0 + fabs(value)))) {
            fail_msg("%s at %s, element %d: %g, not %g", graft_rule_print_line(env->life, r->rule),
                     graft_point_print(env->life, r->rule, r->point), (int)element, value,
                     r->value[element]);
        }
        r->tried++;
    }
    return GRAFT_FAIL(env, GRAFT_UNDECIDED, "enough");
}

/* Compares at the first of the points that some file is about. */
static uint32_t read_points(graft_env *env, const graft_rule *rule, const graft_domain *domain)
{
    reading r = {.rule = rule};
    for (uint32_t p = 0; p < domain->count && r.tried < 2 * VALUES_EACH; p++) {
        const double *outputs[GRAFT_RULE_MAX_OUTPUTS] = {0};
        const double *vars[GRAFT_RULE_MAX_VARS];
        r.point = &domain->points[p];
        GRAFT_SCOPED(env->life);
        for (uint32_t v = 0; v < rule->var_count; v++) {
            r.vars[v] = GRAFT_NEW(env->life, double, ELEMENTS_MOST);
            vars[v] = r.vars[v];
            for (uint32_t k = 0; k < ELEMENTS_MOST; k++) {
                r.vars[v][k] = (double)((int)((k * 7919 + v * 104729) % 23) - 11) + 0.5;
            }
        }
        assert_int_equal(graft_instance_build(&r.instance, rule, r.point), GRAFT_FIT_OK);
        evaluate_side_real(NULL, env->life, &r.instance, &r.instance.source, vars, outputs);
        r.value = outputs[0];
        if (graft_theorem_write(env, rule, NULL, compare_case, &r) != GRAFT_OK) {
            graft_env_clear(env); /* The case was found. */
        }
    }
    return r.tried;
}

CHECK_CASE(test_reading)
{
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        const graft_rule rule = rows_parse(env, readings[i]);
        const graft_domain_options options = {
            .points = 24, .attempts = 20000, .seed = 11, .work = 400};
        const graft_domain domain = graft_domain_find(env, env->unit, &rule, &options);
        if (read_points(env, &rule, &domain) == 0) {
            fail_msg("%s: no instance of an exported case", readings[i]);
        }
    }
}
