/* smtterm.h - Z3 terms as text of SMT-LIB 2.6, for solvers that are not Z3.
 *
 * Written here and not by Z3's own printer: that one writes what Z3 alone reads (functions named as
 * its built-in ones, bit patterns of its options), and without sharing. A term that is read more
 * than once is defined once, as t0, t1 and so on. Unknown functions get the prefix fn_; other
 * characters than letters, digits and _ in names become _.
 *
 * Terms are those that verify/ builds: numbers, integers and truth values, with arithmetic,
 * comparisons, conditionals and unknown functions; anything else is a programmer's error. */
#pragma once

#include "graph/base/file.h"

#include <z3.h>

/* What has been met of one term within a scope. */
typedef struct graft_smt_note {
    uint32_t scope;
    uint32_t uses;
    uint32_t name; /* 1 + the number in its name; 0: written out wherever it occurs. */
    bool counted;
    bool done;
    bool declared;
} graft_smt_note;

/* Writes terms of one context. The caller sets the members above the line. */
typedef struct graft_smt_printer {
    Z3_context z3;
    graft_arena *arena; /* Lives as long as the printer. */
    graft_buffer *out;
    graft_buffer *functions; /* Gets declarations of the functions met, a line each, each once. */
    bool bare;               /* Only functions of numbers get the prefix. */
    /* ---- */
    graft_smt_note *notes; /* By the number that Z3 gives a term in its context. */
    uint32_t note_count;
    Z3_ast *stack; /* Of terms still to be visited. */
    uint32_t depth;
    uint32_t capacity;
    uint32_t names;
    uint32_t scope; /* Number of the scope at hand. */
    bool integers;  /* Some term of sort Int was written. */
} graft_smt_printer;

/* Begins a scope: nothing is defined or declared in it yet. */
void graft_smt_begin(graft_smt_printer *p);
/* A term that will be written: what is written more than once will get a name. Before the first
 * graft_smt_define. */
void graft_smt_count(graft_smt_printer *p, Z3_ast root);
/* Declares the symbols in a counted term that are not declared yet (declare-const). */
void graft_smt_declare(graft_smt_printer *p, Z3_ast root);
/* Defines the terms below a counted one that are read more than once, operands first. */
void graft_smt_define(graft_smt_printer *p, Z3_ast root);
/* Writes a term, with names for what was defined. */
void graft_smt_write(graft_smt_printer *p, Z3_ast term);
