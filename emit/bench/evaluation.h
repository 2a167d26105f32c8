/* evaluation.h - what each method finds on each model, kept cell by cell.
 *
 * A cell is a model, a method and a seed. Its result is a JSON object a line in a file that grows
 * while an evaluation runs; a cell is done anew only when the hash of what it rests on has changed:
 * the model's graph, the rules, the recorded costs, the policy, and what the method is told. */
#pragma once

#include "emit/command/command_table.h"
#include "emit/command/plans.h"
#include "emit/command/searches.h"
#include "graph/base/file.h"

/* What a method is; `drawn`: it depends on a seed. */
typedef enum graft_method_kind {
    GRAFT_METHOD_GIVEN,   /* The graph as given. */
    GRAFT_METHOD_POLICY,  /* The committed policy in the engine's own loop, no price asked. */
    GRAFT_METHOD_UNSEEN,  /* Likewise, one that was made without the model's family. */
    GRAFT_METHOD_TABLE,   /* Greedy over a table of the model's own rows, not leaning. */
    GRAFT_METHOD_REFINED, /* The policy refined on the model, see refined.h. */
    GRAFT_METHOD_SAMPLED, /* One rollout of the policy's table, sampled at a temperature. */
    GRAFT_METHOD_SEARCH   /* graft_search_run. */
} graft_method_kind;

typedef struct graft_method {
    const char *name;
    graft_method_kind kind;
    bool drawn;
    graft_search_choice choice;
} graft_method;

/* All of them, in the order of tables. */
enum { GRAFT_METHODS = 20 };
extern const graft_method graft_methods[GRAFT_METHODS];

typedef struct graft_cell {
    const char *model;
    const char *family;
    const char *method;
    uint32_t seed;
    uint64_t inputs; /* The hash. */
    double first_ns;
    double cost_ns;
    double seconds;
    double measured; /* Its time in turns with the graph as given, as a part of it; 0: not run. */
    double measured_spread;   /* Between the quartiles of rounds. */
    uint64_t peak_bytes;      /* Of activations, as planned. */
    uint32_t first_estimates; /* Costs that are estimates: of the graph as given, */
    uint32_t estimates;       /* and of the one found. */
    uint32_t steps;
    uint64_t graphs; /* Priced. */
    bool cut;
    const char *rules; /* JSON: {"name": times, ...}; "{}" where plans do not name them. */
} graft_cell;

typedef struct graft_cells {
    graft_cell *items;
    uint32_t count;
    uint32_t capacity;
} graft_cells;

/* Appends the line of a cell. */
void graft_cell_print(graft_buffer *text, const graft_cell *cell);
/* Reads a file, in `arena`; one that is not there has no cells. GRAFT_BAD_INPUT when it is broken.
 */
GRAFT_MUST_USE graft_status graft_cells_read(graft_env *env, graft_arena *arena, const char *path,
                                             graft_cells *cells);
GRAFT_MUST_USE graft_status graft_cells_write(graft_env *env, const graft_cells *cells,
                                              const char *path);
/* The cell of that name, or NULL. */
graft_cell *graft_cells_find(const graft_cells *cells, const char *model, const char *method,
                             uint32_t seed);
/* Puts a cell in the place of that of the same name. Texts are kept. */
void graft_cells_put(graft_arena *arena, graft_cells *cells, const graft_cell *cell);

/* What all cells of a run share. */
typedef struct graft_evaluation {
    graft_env *env;      /* Outlives the sessions: what is kept lies in its `life`. */
    graft_policy policy; /* For many models... */
    graft_tariff tariff; /* ...its table... */
    uint64_t policy_hash;
    graft_policy unseen; /* ...and the one that never saw the family of the model in hand. */
    uint64_t unseen_hash;
    uint64_t seconds; /* For each search. */
    uint64_t rounds;  /* Of whole graphs in turns; 0: none is run. */
    bool estimates;   /* Also graphs that rest on more of them than the one given. */
    bool again;       /* Also what is known. */
    graft_cells cells;
    const char *path;  /* Their file. */
    graft_plans plans; /* The best that are known... */
    const char *plans_path;
} graft_evaluation;

/* One cell: model, family and seed are named in `cell`. */
typedef struct graft_cell_run {
    graft_env *env;
    graft_evaluation *evaluation;
    graft_session *session; /* Priced by graft_known_price_set. */
    const graft_method *method;
    graft_cell cell;
    /* What comes out beside the cell. */
    bool made;     /* The graph that was found is the state of the session's environment. */
    bool is_known; /* By an earlier run. */
    bool has_plan; /* In the session's env->unit: */
    graft_plan_found found;
} graft_cell_run;

/* Does a cell, unless it is known. Fails as its method does. */
GRAFT_MUST_USE graft_status graft_evaluation_cell(graft_cell_run *run);
