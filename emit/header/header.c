/* header.c - see header.h. */
#include "emit/header/header.h"

#include "emit/header/engine_text.h"
#include "emit/header/identifier.h"
#include "emit/header/pairs.h"
#include "train/tariff/tariff.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { METADATA_BYTES_MOST = 4000, NUMBERS_PER_LINE = 24 };

#define NO_LAYER "{NULL, NULL, NULL, 0, 0}"

/* What the printing functions share. */
typedef struct {
    graft_env *env;
    const graft_policy *policy;
    const graft_header_options *options;
    graft_buffer *text;
    graft_header_sizes sizes;
    graft_identifier identifier;
    const char *name; /* identifier.small */
} header_printer;

/* ------------------------------------------------------------------- texts */

/* `text` as the inside of a C string; bytes that are not printable ASCII as octal. */
static void append_escaped(graft_buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            graft_buffer_printf(out, "\\%c", *c);
        } else if (*c >= ' ' && *c <= '~' && *c != '?') { /* "??" may start a trigraph. */
            graft_buffer_append(out, c, 1);
        } else {
            graft_buffer_printf(out, "\\%03o", (unsigned)(uint8_t)*c);
        }
    }
}

/* `text` inside a comment: what would end it is taken apart. */
static void append_comment(graft_buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        graft_buffer_append(out, *c == '\n' ? " " : c, 1);
        if ((c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*')) {
            graft_buffer_append(out, " ", 1);
        }
    }
}

/* ------------------------------------------------------------------ numbers */

static void open_table(header_printer *printer, const char *type, const char *table, size_t count)
{
    graft_buffer_printf(printer->text, "static const %s graft_%s_%s[%zu] = {", type, printer->name,
                        table, count);
}

static void append_number(header_printer *printer, size_t index, int64_t number)
{
    graft_buffer_printf(printer->text, "%s%" PRId64 ",",
                        index % NUMBERS_PER_LINE == 0 ? "\n    " : "", number);
}

/* What refers to a table, where there is one. */
static const char *refer(header_printer *printer, const char *table, bool exists)
{
    return exists ? graft_arena_printf(printer->env->scratch, "graft_%s_%s", printer->name, table)
                  : "NULL";
}

static void close_table(header_printer *printer) { graft_buffer_printf(printer->text, "\n};\n"); }

/* A table of whole numbers of a type. */
#define PRINT_NUMBERS(printer, type, table, numbers, count)                                        \
    do {                                                                                           \
        const type *const numbers_ = (numbers);                                                    \
        const size_t count_ = (count);                                                             \
        open_table(printer, #type, table, count_);                                                 \
        for (size_t i = 0; i < count_; i++) {                                                      \
            append_number(printer, i, numbers_[i]);                                                \
        }                                                                                          \
        close_table(printer);                                                                      \
    } while (0)

static void print_scales(header_printer *printer, const char *table, const graft_scale *x,
                         size_t count)
{
    open_table(printer, "graft_scale", table, count);
    for (size_t i = 0; i < count; i++) {
        graft_buffer_printf(printer->text, "%s{%u, %u},", i % 8 == 0 ? "\n    " : " ",
                            x[i].multiplier, x[i].shift);
    }
    close_table(printer);
    printer->sizes.network += count * sizeof *x;
}

/* ------------------------------------------------------------------- layers */

/* The three tables of a layer, named after it. */
static void print_layer(header_printer *printer, const char *layer, const graft_dense *dense)
{
    graft_arena *scratch = printer->env->scratch;
    GRAFT_SCOPED(scratch);
    const size_t weights = (size_t)dense->inputs * dense->outputs;
    graft_buffer_printf(printer->text, "\n/* %s: %u inputs, %u outputs. */\n", layer, dense->inputs,
                        dense->outputs);
    PRINT_NUMBERS(printer, int8_t, graft_arena_printf(scratch, "%s_weights", layer), dense->weights,
                  weights);
    PRINT_NUMBERS(printer, int32_t, graft_arena_printf(scratch, "%s_bias", layer), dense->bias,
                  dense->outputs);
    print_scales(printer, graft_arena_printf(scratch, "%s_scales", layer), dense->scales,
                 dense->outputs);
    printer->sizes.network += weights + dense->outputs * sizeof dense->bias[0];
}

/* The initialiser that refers to those tables. */
static void refer_layer(header_printer *printer, const char *layer, const graft_dense *dense)
{
    const char *name = printer->name;
    graft_buffer_printf(
        printer->text, "    {graft_%s_%s_weights, graft_%s_%s_bias, graft_%s_%s_scales, %u, %u},\n",
        name, layer, name, layer, name, layer, dense->inputs, dense->outputs);
}

static void print_rounds(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    GRAFT_SCOPED(printer->env->scratch);
    graft_arena *scratch = printer->env->scratch;
    for (uint32_t r = 0; r < policy->round_count; r++) {
        const graft_policy_round *round = &policy->rounds[r];
        print_layer(printer, graft_arena_printf(scratch, "round%u_in", r), &round->incoming);
        print_layer(printer, graft_arena_printf(scratch, "round%u_out", r), &round->outgoing);
        print_layer(printer, graft_arena_printf(scratch, "round%u_node", r), &round->node);
    }
    graft_buffer_printf(printer->text, "\n");
    open_table(printer, "graft_policy_round", "rounds", policy->round_count);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        const graft_policy_round *round = &policy->rounds[r];
        graft_buffer_printf(printer->text, "%s", r == 0 ? "\n    {\n" : "    {\n");
        refer_layer(printer, graft_arena_printf(scratch, "round%u_in", r), &round->incoming);
        refer_layer(printer, graft_arena_printf(scratch, "round%u_out", r), &round->outgoing);
        refer_layer(printer, graft_arena_printf(scratch, "round%u_node", r), &round->node);
        graft_buffer_printf(printer->text, "    {%u, %u}},\n", round->keep.multiplier,
                            round->keep.shift);
    }
    graft_buffer_printf(printer->text, "};\n");
}

static void print_network(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    if (policy->hidden == 0) {
        return;
    }
    print_layer(printer, "input", &policy->input);
    if (policy->round_count > 0) {
        print_rounds(printer);
    }
    print_layer(printer, "global", &policy->global);
    print_layer(printer, "place", &policy->place);
    graft_buffer_printf(printer->text, "\n/* What each rule adds to it, and NO-OP. */\n");
    PRINT_NUMBERS(printer, int8_t, "rule_rows", policy->rule_rows, graft_policy_rows_bytes(policy));
    printer->sizes.network += graft_policy_rows_bytes(policy);
    print_layer(printer, "second", &policy->second);
    print_layer(printer, "score", &policy->score);
}

/* -------------------------------------------------------------------- costs */

static void print_trees(header_printer *printer, const graft_tariff *tariff)
{
    const size_t tests = (size_t)tariff->tree_count * GRAFT_TREE_TESTS;
    const size_t leaves = (size_t)tariff->tree_count * GRAFT_TREE_LEAVES;
    graft_buffer_printf(printer->text, "\n/* Costs of other nodes: %u trees. */\n",
                        tariff->tree_count);
    PRINT_NUMBERS(printer, uint8_t, "tariff_tests", tariff->tests, tests);
    PRINT_NUMBERS(printer, int16_t, "tariff_bounds", tariff->bounds, tests);
    PRINT_NUMBERS(printer, int16_t, "tariff_leaves", tariff->leaves, leaves);
}

static void print_tariff(header_printer *printer)
{
    const graft_tariff *tariff = printer->policy->tariff;
    const bool rows = tariff->row_count > 0;
    const bool trees = tariff->tree_count > 0;
    if (rows) {
        graft_buffer_printf(printer->text, "\n/* Costs of nodes: %u rows. */\n", tariff->row_count);
        PRINT_NUMBERS(printer, uint32_t, "tariff_keys", tariff->keys, tariff->row_count);
        PRINT_NUMBERS(printer, uint16_t, "tariff_values", tariff->values, tariff->row_count);
    }
    if (trees) {
        print_trees(printer, tariff);
    }
    /* Without designators, which C++ before 2020 lacks. */
    graft_buffer_printf(printer->text, "\nstatic const graft_tariff graft_%s_tariff = {\n",
                        printer->name);
    graft_buffer_printf(printer->text, "    %s, %s, %u, %uu,\n    %s, %s, %s, %u, %u,\n    {",
                        refer(printer, "tariff_keys", rows), refer(printer, "tariff_values", rows),
                        tariff->row_count, tariff->seed, refer(printer, "tariff_tests", trees),
                        refer(printer, "tariff_bounds", trees),
                        refer(printer, "tariff_leaves", trees), tariff->tree_count, tariff->still);
    for (uint32_t i = 0; i < GRAFT_TARIFF_ROOFS; i++) {
        const graft_roof *roof = &tariff->roofs[i];
        graft_buffer_printf(printer->text, "%s{%d, %d, %d}", i > 0 ? ", " : "", roof->node,
                            roof->byte, roof->flop);
    }
    graft_buffer_printf(printer->text, "},\n};\n");
    printer->sizes.costs = graft_tariff_bytes(tariff);
}

/* ---------------------------------------------------------- rules and plans */

static void print_rule(header_printer *printer, uint32_t r)
{
    const graft_policy *policy = printer->policy;
    const char *const *names = printer->options->rule_names;
    uint32_t first = policy->rule_offsets[r];
    graft_buffer_printf(printer->text, "    /* %u", r);
    if (names != NULL) {
        graft_buffer_printf(printer->text, " ");
        append_comment(printer->text, names[r]);
    }
    graft_buffer_printf(printer->text, " */\n    ");
    for (uint32_t i = first; i < policy->rule_offsets[r + 1]; i++) {
        graft_buffer_printf(printer->text, "%u,%s", policy->rules[i],
                            (i - first) % NUMBERS_PER_LINE == NUMBERS_PER_LINE - 1 ? "\n    " : "");
    }
    graft_buffer_printf(printer->text, "\n");
}

static void print_rules(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    uint32_t count = policy->rule_count;
    uint32_t bytes = policy->rule_offsets[count];
    graft_buffer_printf(printer->text, "\n/* Rules: %u in %u bytes. */\n", count, bytes);
    open_table(printer, "uint8_t", "rules", bytes);
    graft_buffer_printf(printer->text, "\n");
    for (uint32_t r = 0; r < count; r++) {
        print_rule(printer, r);
    }
    graft_buffer_printf(printer->text, "};\n");
    PRINT_NUMBERS(printer, uint32_t, "rule_offsets", policy->rule_offsets, (size_t)count + 1);
    if (policy->rule_pairs != NULL) {
        PRINT_NUMBERS(printer, uint8_t, "rule_pairs", policy->rule_pairs, GRAFT_PAIRS_BYTES);
    }
    PRINT_NUMBERS(printer, uint8_t, "rule_flags", policy->rule_flags, count);
    printer->sizes.rules = graft_rules_bytes(policy);
}

/* For products that tell what was done; others leave them out. */
static void print_names(header_printer *printer)
{
    const char *const *names = printer->options->rule_names;
    if (names == NULL) {
        return;
    }
    graft_buffer_printf(printer->text,
                        "\n#ifdef GRAFT_RULE_NAMES\n"
                        "const char *const graft_policy_%s_names[%u] = {\n",
                        printer->name, printer->policy->rule_count);
    for (uint32_t r = 0; r < printer->policy->rule_count; r++) {
        graft_buffer_printf(printer->text, "    \"");
        append_escaped(printer->text, names[r]);
        graft_buffer_printf(printer->text, "\",\n");
    }
    graft_buffer_printf(printer->text, "};\n#endif\n");
}

static void print_plans(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    size_t step_count = 0;
    if (policy->plan_count == 0) {
        return;
    }
    for (uint32_t p = 0; p < policy->plan_count; p++) {
        const graft_recorded_plan *plan = &policy->plans[p];
        graft_buffer_printf(printer->text, "\n/* Plan %u: rule, location. */\n", p);
        graft_buffer_printf(printer->text, "static const graft_plan_step graft_%s_plan%u[%u] = {",
                            printer->name, p, plan->step_count > 0 ? plan->step_count : 1U);
        for (uint32_t s = 0; s < plan->step_count; s++) {
            graft_buffer_printf(printer->text, "%s{%u, %u},", s % 8 == 0 ? "\n    " : " ",
                                plan->steps[s].rule, plan->steps[s].location);
        }
        graft_buffer_printf(printer->text,
                            plan->step_count > 0 ? "\n};\n" : "{0, 0}}; /* No step. */\n");
        step_count += plan->step_count;
    }
    open_table(printer, "graft_recorded_plan", "plans", policy->plan_count);
    for (uint32_t p = 0; p < policy->plan_count; p++) {
        const graft_recorded_plan *plan = &policy->plans[p];
        graft_buffer_printf(
            printer->text,
            "\n    {UINT64_C(0x%016" PRIx64 "), UINT64_C(0x%016" PRIx64 "), graft_%s_plan%u, %u},",
            plan->graph_hash, plan->result_hash, printer->name, p, plan->step_count);
    }
    close_table(printer);
    printer->sizes.plans = step_count * sizeof(graft_plan_step) +
                           (size_t)policy->plan_count * sizeof(graft_recorded_plan);
}

/* --------------------------------------------------------------- the object */

static void refer_network(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    graft_buffer *text = printer->text;
    refer_layer(printer, "input", &policy->input);
    graft_buffer_printf(text, "    %s,\n", refer(printer, "rounds", policy->round_count > 0));
    refer_layer(printer, "global", &policy->global);
    refer_layer(printer, "place", &policy->place);
    graft_buffer_printf(text, "    graft_%s_rule_rows,\n", printer->name);
    refer_layer(printer, "second", &policy->second);
    refer_layer(printer, "score", &policy->score);
}

/* The members in the order of graft_policy: neither C99 in C++ nor older C++ know designators. */
static void print_policy(header_printer *printer)
{
    const graft_policy *policy = printer->policy;
    const char *name = printer->name;
    graft_buffer *text = printer->text;
    const char *pairs = refer(printer, "rule_pairs", policy->rule_pairs != NULL);
    graft_buffer_printf(text,
                        "\nconst graft_policy graft_policy_%s = {\n"
                        "    GRAFT_ABI, GRAFT_FEATURE_HASH,\n    \"",
                        name);
    append_escaped(text, policy->metadata);
    graft_buffer_printf(
        text,
        "\",\n    graft_%s_rules, graft_%s_rule_offsets,\n    %s, graft_%s_rule_flags,\n"
        "    %u, %u, /* rules, locations */\n"
        "    %u, %u, %u, %u, /* hidden, latent, width, rounds */\n",
        name, name, pairs, name, policy->rule_count, policy->location_limit, policy->hidden,
        policy->latent, policy->width, policy->round_count);
    if (policy->hidden > 0) {
        refer_network(printer);
    } else {
        graft_buffer_printf(text, "    " NO_LAYER ", NULL, " NO_LAYER ",\n    " NO_LAYER
                                  ", NULL, " NO_LAYER ", " NO_LAYER ",\n");
    }
    graft_buffer_printf(text, "    %u, %u,\n", policy->prior_slope, policy->prior_reserve);
    graft_buffer_printf(text, "    %s, %u,\n", refer(printer, "plans", policy->plan_count > 0),
                        policy->plan_count);
    graft_buffer_printf(text, "    &graft_%s_tariff, %u\n};\n", name, policy->decider);
}

/* ----------------------------------------------------------------- the file */

static void print_opening(header_printer *printer)
{
    graft_buffer *text = printer->text;
    const char *name = printer->name;
    graft_buffer_printf(text,
                        "/* SPDX-License-Identifier: MIT */\n"
                        "/* A policy for rewriting tensor graphs: rules, what decides, plans.\n"
                        " * Generated by ");
    append_comment(text, printer->options->generator);
    graft_buffer_printf(text,
                        "; not to be edited.\n"
                        " *\n"
                        " * Define GRAFT_IMPLEMENTATION in one C file before including this; then\n"
                        " *      graft_optimize(&graph, &graft_policy_%s, ...);\n"
                        " * %s\n"
                        " *\n"
                        " * Made from: ",
                        name,
                        printer->options->amalgamate
                            ? "The engine stands below: nothing else is needed."
                            : "Needs graft/graft.h and the files beside it.");
    append_comment(text, printer->policy->metadata);
    graft_buffer_printf(text, " */\n#ifndef GRAFT_POLICY_%s_H\n\n", printer->identifier.capitals);
}

/* The guard has a value, by which another policy of the same name is told from this one. */
static void print_ending(header_printer *printer)
{
    graft_buffer *text = printer->text;
    const char *guard = printer->identifier.capitals;
    assert(text->data != NULL); /* All but the ending has been printed. */
    const uint32_t hash = XXH32(text->data, text->size, 0);
    graft_buffer_printf(text,
                        "\n#endif\n\n"
                        "#define GRAFT_POLICY_%s_H 0x%08" PRIx32 "u\n"
                        "#elif GRAFT_POLICY_%s_H != 0x%08" PRIx32 "u\n"
                        "#error \"another policy is called %s, too: give one of them another name "
                        "(graft emit-policy --name)\"\n"
                        "#endif\n",
                        guard, hash, guard, hash, printer->name);
}

/* A macro of the engine's, a bit for each of what is used. */
static void print_bits(header_printer *printer, const char *macro, uint64_t bits)
{
    graft_buffer_printf(printer->text,
                        "#ifndef %s\n"
                        "#define %s 0x%" PRIx64 "ull\n"
                        "#elif (%s & 0x%" PRIx64 "ull) != 0x%" PRIx64 "ull\n"
                        "#error \"%s lacks some that this policy was made for\"\n"
                        "#endif\n",
                        macro, macro, bits, macro, bits, bits, macro);
}

/* The most outputs of a rule, and the codes of the rules' programs, a bit for each. */
static graft_status find_uses(header_printer *printer, uint32_t *outputs, uint64_t *codes)
{
    graft_rule rule;
    *outputs = 1;
    *codes = 0;
    for (uint32_t r = 0; r < printer->policy->rule_count; r++) {
        if (graft_policy_rule(printer->policy, r, &rule) != GRAFT_OK) {
            return GRAFT_FAIL(printer->env, GRAFT_BAD_INPUT, "rule %u of the policy is damaged", r);
        }
        *outputs = rule.output_count > *outputs ? rule.output_count : *outputs;
        for (uint32_t at = 0; at < rule.code_bytes;
             at += 1 + graft_code_operand_bytes(rule.code[at])) {
            *codes |= UINT64_C(1) << rule.code[at];
        }
    }
    return GRAFT_OK;
}

/* What the engine may leave out. */
static graft_status print_uses(header_printer *printer)
{
    uint32_t outputs = 0;
    uint64_t codes = 0;
    GRAFT_PASS(find_uses(printer, &outputs, &codes));
    graft_buffer_printf(printer->text, "/* The operators that it was made for. */\n");
    print_bits(printer, "GRAFT_OPERATORS", printer->options->operators.words[0]);
    if (printer->options->operators.words[1] != 0) {
        print_bits(printer, "GRAFT_OPERATORS_64", printer->options->operators.words[1]);
    }
    graft_buffer_printf(printer->text, "/* What its rules use. */\n");
    print_bits(printer, "GRAFT_RULE_CODES", codes);
    graft_buffer_printf(printer->text,
                        "#ifndef GRAFT_RULE_OUTPUTS\n"
                        "#define GRAFT_RULE_OUTPUTS %u\n"
                        "#elif GRAFT_RULE_OUTPUTS < %u\n"
                        "#error \"GRAFT_RULE_OUTPUTS is less than this policy was made for\"\n"
                        "#endif\n\n",
                        outputs, outputs);
    return GRAFT_OK;
}

static graft_status print_engine(header_printer *printer)
{
    graft_buffer *text = printer->text;
    if (!graft_operator_set_is_empty(&printer->options->operators)) {
        GRAFT_PASS(print_uses(printer));
    }
    if (printer->options->small) {
        graft_buffer_printf(text,
                            "/* The memory that it was made for has room for ids of 16 bits. */\n"
                            "#ifndef GRAFT_SMALL_GRAPHS\n"
                            "#define GRAFT_SMALL_GRAPHS\n"
                            "#endif\n\n");
    }
    if (printer->options->amalgamate) {
        GRAFT_PASS(graft_engine_text(printer->env, text));
    } else {
        graft_buffer_printf(text, "#include \"graft/graft.h\"\n");
    }
    graft_buffer_printf(text,
                        "\n#if GRAFT_ABI != %d || GRAFT_FEATURE_HASH != 0x%08xu\n"
                        "#error \"this policy was generated for graft.h with ABI %d and features "
                        "0x%08x: generate it again\"\n"
                        "#endif\n\n",
                        GRAFT_ABI, GRAFT_FEATURE_HASH, GRAFT_ABI, GRAFT_FEATURE_HASH);
    if (graft_operator_set_is_empty(&printer->options->operators)) {
        graft_buffer_printf(text, "#if defined GRAFT_IMPLEMENTATION && defined GRAFT_OPERATORS && "
                                  "!defined GRAFT_HAS_ALL\n"
                                  "#error \"this policy is for all operators: include it before "
                                  "those for some\"\n"
                                  "#endif\n\n");
    }
    return GRAFT_OK;
}

static void print_declaration(header_printer *printer)
{
    graft_buffer_printf(printer->text,
                        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                        "extern const graft_policy graft_policy_%s;\n"
                        "extern const char *const graft_policy_%s_names[]; /* By rule, where "
                        "GRAFT_RULE_NAMES is defined. */\n"
                        "#ifdef __cplusplus\n}\n#endif\n\n"
                        "#ifndef GRAFT_POLICY\n#define GRAFT_POLICY graft_policy_%s\n#endif\n\n",
                        printer->name, printer->name, printer->name);
}

static void print_sizes(header_printer *printer)
{
    graft_header_sizes *sizes = &printer->sizes;
    sizes->total = sizes->rules + sizes->network + sizes->costs + sizes->plans +
                   sizeof(graft_policy) +
                   printer->policy->round_count * sizeof(graft_policy_round) +
                   strlen(printer->policy->metadata) + 1;
    graft_buffer_printf(
        printer->text,
        "\n/* Bytes of const data: rules %zu, network %zu, costs %zu, plans %zu; with "
        "64-bit pointers %zu in all. */\n",
        sizes->rules, sizes->network, sizes->costs, sizes->plans, sizes->total);
}

graft_status graft_header_print(graft_env *env, const graft_policy *policy,
                                const graft_header_options *options, graft_buffer *text,
                                graft_header_sizes *sizes)
{
    GRAFT_SCOPED(env->scratch);
    if (policy->rule_count == 0 || strlen(policy->metadata) > METADATA_BYTES_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "a policy to be written has at least one rule, and at most %d bytes of "
                          "metadata",
                          METADATA_BYTES_MOST);
    }
    const graft_policy shorter = graft_rules_shorten(env->scratch, policy);
    header_printer printer = {.env = env, .policy = &shorter, .options = options, .text = text};
    GRAFT_PASS(graft_identifier_make(env, options->name, &printer.identifier));
    printer.name = printer.identifier.small;
    print_opening(&printer);
    GRAFT_PASS(print_engine(&printer));
    print_declaration(&printer);
    graft_buffer_printf(text, "#ifdef GRAFT_IMPLEMENTATION\n");
    print_rules(&printer);
    print_network(&printer);
    print_tariff(&printer);
    print_names(&printer);
    print_plans(&printer);
    print_policy(&printer);
    print_sizes(&printer);
    print_ending(&printer);
    printer.sizes.header = text->size;
    if (sizes != NULL) {
        *sizes = printer.sizes;
    }
    return GRAFT_OK;
}

graft_status graft_header_write(graft_env *env, const graft_policy *policy,
                                const graft_header_options *options, const char *path,
                                graft_header_sizes *sizes)
{
    GRAFT_ARENA(arena, (size_t)1 << 20); /* The buffer grows: keep it apart. */
    graft_buffer text = {.arena = arena};
    GRAFT_PASS_IN(env, graft_header_print(env, policy, options, &text, sizes), "while writing %s",
                  path);
    return graft_file_write(env, path, text.data, text.size);
}
