/* fit_text.c - what a graph's header says of memory (see fit.h). */
#include "emit/header/fit.h"

/* As the columns of the comment, and the macros, have them. */
static const graft_target targets[] = {
    {4, 4},
    {4, 2},
    {8, 4},
    {8, 2}
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static graft_status measure_all(graft_env *env, const graft_fit *fit, graft_ram *rams)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        GRAFT_PASS(graft_ram_measure(env, fit->options.policy, &fit->limits, fit->step_limit,
                                     targets[i], &rams[i]));
    }
    return GRAFT_OK;
}

static void print_parts(const graft_ram *rams, graft_buffer *text)
{
    graft_buffer_printf(text, " *\n *   bits of pointers, ids ");
    for (uint32_t i = 0; i < TARGETS; i++) {
        graft_buffer_printf(text, "%7zu, %2zu", 8 * targets[i].pointer_bytes,
                            8 * targets[i].id_bytes);
    }
    for (graft_ram_part p = 0; p < GRAFT_RAM_PARTS; p++) {
        graft_buffer_printf(text, "\n *   %-22s", graft_ram_part_name(p));
        for (uint32_t i = 0; i < TARGETS; i++) {
            graft_buffer_printf(text, "%11zu", rams[i].parts[p]);
        }
    }
    graft_buffer_printf(text, "\n *   %-22s", "in all");
    for (uint32_t i = 0; i < TARGETS; i++) {
        graft_buffer_printf(text, "%11zu", rams[i].total);
    }
    graft_buffer_printf(text, "\n *\n");
}

static void print_budget(const graft_fit *fit, graft_buffer *text)
{
    const graft_fit_options *options = &fit->options;
    if (options->budget == 0) {
        graft_buffer_printf(text, " * No budget was given (--max-ram).");
    } else {
        graft_buffer_printf(text,
                            " * The budget is %zu bytes with pointers of %zu bits (--max-ram), of "
                            "which it takes %zu.",
                            options->budget, 8 * options->pointer_bytes, fit->ram.total);
    }
    if (fit->lowered_count > 0) {
        graft_buffer_printf(text, " Lowered for that:\n");
    }
    for (uint32_t i = 0; i < fit->lowered_count; i++) {
        graft_buffer_printf(text, "%s *   %s", i > 0 ? "\n" : "", fit->lowered[i]);
    }
    graft_buffer_printf(text, " */\n");
}

/* Bytes that depend on pointers and ids, as an expression of the including program. */
static void print_macros(const graft_fit *fit, const graft_ram *rams, const char *name,
                         graft_buffer *text)
{
    graft_buffer_printf(text,
                        "#define GRAFT_GRAPH_%s_STEPS %u\n"
                        "#define GRAFT_GRAPH_%s_BUFFER_BYTES (GRAFT_NONE > 65535u ? %zu : %zu)\n"
                        "#define GRAFT_GRAPH_%s_WORK_BYTES \\\n"
                        "    (sizeof(void *) > 4 ? (GRAFT_NONE > 65535u ? %zu : %zu) \\\n"
                        "                        : (GRAFT_NONE > 65535u ? %zu : %zu))\n",
                        name, fit->step_limit, name, rams[0].buffer, rams[1].buffer, name,
                        rams[2].work, rams[3].work, rams[0].work, rams[1].work);
    if (fit->small) {
        graft_buffer_printf(text,
                            "#if GRAFT_NONE > 65535\n"
                            "#error \"this graph fits into its %zu bytes with GRAFT_SMALL_GRAPHS: "
                            "define it for the whole program\"\n"
                            "#endif\n",
                            fit->options.budget);
    }
    graft_buffer_printf(text, "\n");
}

graft_status graft_fit_print(graft_env *env, const graft_fit *fit, const graft_identifier *name,
                             graft_buffer *text)
{
    graft_ram rams[TARGETS];
    GRAFT_PASS(measure_all(env, fit, rams));
    graft_buffer_printf(text,
                        "/* Bytes of RAM with a policy of %u rules and so many steps: the graph's "
                        "struct, its buffer and\n"
                        " * the workspace, for arrays. The stack is not in it, nor are decisions "
                        "that are reported.\n",
                        fit->options.policy->rule_count);
    print_parts(rams, text);
    print_budget(fit, text);
    print_macros(fit, rams, name->capitals, text);
    return GRAFT_OK;
}
