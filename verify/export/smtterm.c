/* smtterm.c - see smtterm.h. */
#include "verify/export/smtterm.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 64 };

/* ------------------------------------------------------------------ visiting */

static graft_smt_note *note_of(graft_smt_printer *p, Z3_ast term)
{
    uint32_t id = Z3_get_ast_id(p->z3, term);
    if (id >= p->note_count) {
        uint32_t count = 2 * id + 1024;
        graft_smt_note *notes = GRAFT_NEW(p->arena, graft_smt_note, count);
        if (p->note_count > 0) {
            memcpy(notes, p->notes, p->note_count * sizeof(graft_smt_note));
        }
        p->notes = notes;
        p->note_count = count;
    }
    if (p->notes[id].scope != p->scope) {
        p->notes[id] = (graft_smt_note){.scope = p->scope};
    }
    return &p->notes[id];
}

void graft_smt_begin(graft_smt_printer *p)
{
    p->scope++;
    p->names = 0;
}

/* Everybody who pushes pops again before returning. NULL stands for a closing parenthesis. */
static void push(graft_smt_printer *p, Z3_ast term)
{
    if (p->depth == p->capacity) {
        uint32_t capacity = 2 * p->capacity + 256;
        Z3_ast *stack = GRAFT_NEW(p->arena, Z3_ast, capacity);
        if (p->depth > 0) {
            memcpy(stack, p->stack, p->depth * sizeof(Z3_ast));
        }
        p->stack = stack;
        p->capacity = capacity;
    }
    p->stack[p->depth++] = term;
}

static uint32_t operand_count(const graft_smt_printer *p, Z3_ast term)
{
    return Z3_is_numeral_ast(p->z3, term) ? 0 : Z3_get_app_num_args(p->z3, Z3_to_app(p->z3, term));
}

static Z3_ast operand(const graft_smt_printer *p, Z3_ast term, uint32_t i)
{
    return Z3_get_app_arg(p->z3, Z3_to_app(p->z3, term), i);
}

static Z3_func_decl decl_of(const graft_smt_printer *p, Z3_ast term)
{
    return Z3_get_app_decl(p->z3, Z3_to_app(p->z3, term));
}

static Z3_decl_kind kind_of(const graft_smt_printer *p, Z3_ast term)
{
    return Z3_get_decl_kind(p->z3, decl_of(p, term));
}

/* --------------------------------------------------------------------- names */

static const char *sort_name(graft_smt_printer *p, Z3_sort sort)
{
    Z3_sort_kind kind = Z3_get_sort_kind(p->z3, sort);
    assert(kind == Z3_REAL_SORT || kind == Z3_INT_SORT || kind == Z3_BOOL_SORT);
    p->integers = p->integers || kind == Z3_INT_SORT;
    return kind == Z3_REAL_SORT ? "Real" : kind == Z3_INT_SORT ? "Int" : "Bool";
}

/* The name of a symbol or an unknown function. */
static void put_name(const graft_smt_printer *p, Z3_func_decl decl, char name[NAME_SIZE])
{
    Z3_symbol symbol = Z3_get_decl_name(p->z3, decl);
    bool prefixed =
        Z3_get_arity(p->z3, decl) > 0 &&
        (!p->bare || Z3_get_sort_kind(p->z3, Z3_get_domain(p->z3, decl, 0)) == Z3_REAL_SORT);
    const char *prefix = prefixed ? "fn_" : "";
    bool text = Z3_get_symbol_kind(p->z3, symbol) == Z3_STRING_SYMBOL;
    int length =
        text ? snprintf(name, NAME_SIZE, "%s%s", prefix, Z3_get_symbol_string(p->z3, symbol))
             : snprintf(name, NAME_SIZE, "%sk%d", prefix, Z3_get_symbol_int(p->z3, symbol));
    assert(length > 0 && length < NAME_SIZE);
    for (char *at = name; *at != '\0'; at++) {
        *at = isalnum((unsigned char)*at) ? *at : '_';
    }
}

/* Takes note of an unknown function that is applied. */
static void note_function(graft_smt_printer *p, Z3_func_decl decl, const char *name)
{
    graft_buffer line = {.arena = p->arena};
    graft_buffer_printf(&line, "(declare-fun %s (", name);
    for (uint32_t i = 0; i < Z3_get_arity(p->z3, decl); i++) {
        graft_buffer_printf(&line, "%s%s", i > 0 ? " " : "",
                            sort_name(p, Z3_get_domain(p->z3, decl, i)));
    }
    graft_buffer_printf(&line, ") %s)\n", sort_name(p, Z3_get_range(p->z3, decl)));
    if (p->functions->size == 0 || strstr(p->functions->data, line.data) == NULL) {
        graft_buffer_printf(p->functions, "%s", line.data);
    }
}

static const char *operator_name(Z3_decl_kind kind)
{
    static const struct {
        Z3_decl_kind kind;
        const char *name;
    } names[] = {
        {Z3_OP_ADD,     "+"      },
        {Z3_OP_SUB,     "-"      },
        {Z3_OP_UMINUS,  "-"      },
        {Z3_OP_MUL,     "*"      },
        {Z3_OP_DIV,     "/"      },
        {Z3_OP_IDIV,    "div"    },
        {Z3_OP_MOD,     "mod"    },
        {Z3_OP_TO_REAL, "to_real"},
        {Z3_OP_ITE,     "ite"    },
        {Z3_OP_EQ,      "="      },
        {Z3_OP_IFF,     "="      },
        {Z3_OP_NOT,     "not"    },
        {Z3_OP_AND,     "and"    },
        {Z3_OP_OR,      "or"     },
        {Z3_OP_IMPLIES, "=>"     },
        {Z3_OP_LE,      "<="     },
        {Z3_OP_LT,      "<"      },
        {Z3_OP_GE,      ">="     },
        {Z3_OP_GT,      ">"      }
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].kind == kind) {
            return names[i].name;
        }
    }
    assert(false && "the terms use an operation that is not in this table");
    return "";
}

/* ------------------------------------------------------------------- writing */

/* Rationals as SMT-LIB has them: no sign in a numeral, decimals for reals. */
static void print_numeral(graft_smt_printer *p, Z3_ast term)
{
    bool integer = Z3_get_sort_kind(p->z3, Z3_get_sort(p->z3, term)) == Z3_INT_SORT;
    const char *text = Z3_get_numeral_string(p->z3, term);
    bool negative = text[0] == '-';
    text += negative ? 1 : 0;
    size_t whole = strcspn(text, "/");
    const char *open = negative ? "(- " : "";
    const char *close = negative ? ")" : "";
    if (text[whole] == '/') {
        graft_buffer_printf(p->out, "%s(/ %.*s.0 %s.0)%s", open, (int)whole, text, text + whole + 1,
                            close);
    } else {
        graft_buffer_printf(p->out, "%s%s%s%s", open, text, integer ? "" : ".0", close);
    }
}

static void print_leaf(graft_smt_printer *p, Z3_ast term)
{
    char name[NAME_SIZE];
    Z3_lbool value = Z3_get_bool_value(p->z3, term);
    if (value != Z3_L_UNDEF) { /* First, for Z3 takes truth values for numerals. */
        graft_buffer_printf(p->out, value == Z3_L_TRUE ? "true" : "false");
    } else if (Z3_is_numeral_ast(p->z3, term)) {
        print_numeral(p, term);
    } else {
        put_name(p, decl_of(p, term), name);
        graft_buffer_printf(p->out, "%s", name);
    }
}

static bool is_written_inside(graft_smt_printer *p, Z3_ast term, Z3_decl_kind kind)
{
    return operand_count(p, term) > 0 && note_of(p, term)->name == 0 && kind_of(p, term) == kind;
}

/* Opens an operation; its operands become pending, then the end (NULL). The first operand of a sum
 * is opened too when it is a sum. */
static void open_operation(graft_smt_printer *p, Z3_ast term)
{
    Z3_decl_kind kind = kind_of(p, term);
    bool nests = kind == Z3_OP_ADD || kind == Z3_OP_MUL;
    if (kind == Z3_OP_UNINTERPRETED) {
        char name[NAME_SIZE];
        put_name(p, decl_of(p, term), name);
        note_function(p, decl_of(p, term), name);
        graft_buffer_printf(p->out, "(%s", name);
    } else {
        graft_buffer_printf(p->out, "(%s", operator_name(kind));
    }
    push(p, NULL);
    for (;;) {
        for (uint32_t i = operand_count(p, term); i-- > 1;) {
            push(p, operand(p, term, i));
        }
        Z3_ast first = operand(p, term, 0);
        if (!nests || !is_written_inside(p, first, kind)) {
            push(p, first);
            return;
        }
        term = first;
    }
}

/* A leaf, a name or an operation. With `whole` the name of `root` itself is not used. */
static void print_term(graft_smt_printer *p, Z3_ast root, bool whole)
{
    uint32_t base = p->depth;
    push(p, root);
    for (bool first = true; p->depth > base; first = false) {
        Z3_ast term = p->stack[--p->depth];
        if (term == NULL) {
            graft_buffer_printf(p->out, ")");
            continue;
        }
        graft_buffer_printf(p->out, first ? "" : " ");
        uint32_t name = first && whole ? 0 : note_of(p, term)->name;
        if (name > 0) {
            graft_buffer_printf(p->out, "t%" PRIu32, name - 1);
        } else if (operand_count(p, term) > 0) {
            open_operation(p, term);
        } else {
            print_leaf(p, term);
        }
    }
}

void graft_smt_write(graft_smt_printer *p, Z3_ast term) { print_term(p, term, false); }

/* ------------------------------------------------------------------- sharing */

void graft_smt_count(graft_smt_printer *p, Z3_ast root)
{
    uint32_t base = p->depth;
    push(p, root);
    while (p->depth > base) {
        Z3_ast term = p->stack[--p->depth];
        uint32_t count = operand_count(p, term);
        graft_smt_note *n = note_of(p, term);
        n->uses++;
        if (n->counted) {
            continue;
        }
        n->counted = true;
        for (uint32_t i = 0; i < count; i++) {
            push(p, operand(p, term, i));
        }
    }
}

static void define_term(graft_smt_printer *p, Z3_ast term)
{
    graft_buffer_printf(p->out, "(define-fun t%" PRIu32 " () %s ", p->names,
                        sort_name(p, Z3_get_sort(p->z3, term)));
    print_term(p, term, true);
    graft_buffer_printf(p->out, ")\n");
    note_of(p, term)->name = ++p->names;
}

void graft_smt_define(graft_smt_printer *p, Z3_ast root)
{
    uint32_t base = p->depth;
    push(p, root);
    while (p->depth > base) {
        Z3_ast term = p->stack[--p->depth];
        uint32_t count = operand_count(p, term);
        graft_smt_note *n = note_of(p, term);
        if (n->done || count == 0) {
            continue;
        }
        if (n->counted) { /* Comes again when its operands are done. */
            n->counted = false;
            push(p, term);
            for (uint32_t i = count; i-- > 0;) {
                push(p, operand(p, term, i));
            }
            continue;
        }
        n->done = true;
        if (n->uses > 1) {
            define_term(p, term);
        }
    }
}

static void declare_symbol(graft_smt_printer *p, Z3_ast term)
{
    char name[NAME_SIZE];
    put_name(p, decl_of(p, term), name);
    graft_buffer_printf(p->out, "(declare-const %s %s)\n", name,
                        sort_name(p, Z3_get_sort(p->z3, term)));
}

void graft_smt_declare(graft_smt_printer *p, Z3_ast root)
{
    uint32_t base = p->depth;
    push(p, root);
    while (p->depth > base) {
        Z3_ast term = p->stack[--p->depth];
        uint32_t count = operand_count(p, term);
        graft_smt_note *n = note_of(p, term);
        if (n->declared) {
            continue;
        }
        n->declared = true;
        if (count == 0 && !Z3_is_numeral_ast(p->z3, term) &&
            Z3_get_bool_value(p->z3, term) == Z3_L_UNDEF) {
            declare_symbol(p, term);
        }
        for (uint32_t i = count; i-- > 0;) {
            push(p, operand(p, term, i));
        }
    }
}
