/* elimination.c - variable elimination (see elimination.h). */
#include "cost/plan/elimination.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { JOINT_SCOPE = 16, JOINT_FACTORS = 64 };

typedef struct {
    double *table;
    uint32_t scope[JOINT_SCOPE];
    uint32_t steps[JOINT_SCOPE]; /* In the table, from one state of the variable to the next. */
    uint32_t scope_count;
} factor;

/* Factors of a variable are a list of links; those that are used up are skipped. */
typedef struct link {
    factor *factor;
    struct link *next;
} link;

typedef struct {
    link *links;
    uint32_t states;
    bool eliminated;
    uint32_t scope_count;
    uint32_t *scope;     /* When eliminated: the variables that its best state depends on... */
    const uint8_t *best; /* ...and that state, by theirs. */
} variable;

struct graft_elimination {
    graft_arena *arena;
    variable *variables;
    uint32_t variable_count;
    uint32_t variable_most;
    uint32_t factor_count;
    uint32_t factor_most;
};

graft_elimination *graft_elimination_new(graft_arena *arena, uint32_t variable_most,
                                         uint32_t factor_most)
{
    graft_elimination *p = GRAFT_NEW(arena, graft_elimination, 1);
    p->arena = arena;
    p->variables = GRAFT_NEW(arena, variable, variable_most);
    p->variable_most = variable_most;
    p->factor_most = factor_most;
    return p;
}

uint32_t graft_elimination_variable(graft_elimination *problem, uint32_t state_count)
{
    assert(problem->variable_count < problem->variable_most);
    assert(state_count >= 1 && state_count <= GRAFT_ELIMINATION_STATES);
    problem->variables[problem->variable_count].states = state_count;
    return problem->variable_count++;
}

static factor *new_factor(graft_elimination *p, uint32_t scope_count, const uint32_t *scope)
{
    factor *f = GRAFT_NEW(p->arena, factor, 1);
    uint32_t entries = 1;
    f->scope_count = scope_count;
    for (uint32_t i = 0; i < scope_count; i++) {
        variable *v = &p->variables[scope[i]];
        link *l = GRAFT_NEW(p->arena, link, 1);
        *l = (link){.factor = f, .next = v->links};
        v->links = l;
        f->scope[i] = scope[i];
        f->steps[i] = entries;
        entries *= v->states;
    }
    f->table = GRAFT_NEW(p->arena, double, entries);
    return f;
}

double *graft_elimination_factor(graft_elimination *problem, uint32_t scope_count,
                                 const uint32_t *scope)
{
    assert(scope_count <= GRAFT_FACTOR_SCOPE && problem->factor_count < problem->factor_most);
    problem->factor_count++;
    return new_factor(problem, scope_count, scope)->table;
}

/* ------------------------------------------------------------------ one variable */

/* What eliminating a variable joins. */
typedef struct {
    factor *factors[JOINT_FACTORS];
    uint32_t factor_count;
    uint32_t scope[JOINT_SCOPE]; /* The other variables. */
    uint32_t scope_count;
    uint64_t entries; /* Of the joint table, the variable itself included. */
    bool fits;
} joint;

static void join_scope(const graft_elimination *p, uint32_t v, const factor *f, joint *j)
{
    for (uint32_t i = 0; i < f->scope_count; i++) {
        uint32_t at = 0;
        while (at < j->scope_count && j->scope[at] != f->scope[i]) {
            at++;
        }
        if (f->scope[i] == v || at < j->scope_count) {
            continue;
        }
        if (at == JOINT_SCOPE) {
            j->fits = false;
            return;
        }
        j->scope[j->scope_count++] = f->scope[i];
        j->entries *= p->variables[f->scope[i]].states;
        j->fits = j->fits && j->entries <= GRAFT_ELIMINATION_ENTRIES;
    }
}

static void find_joint(const graft_elimination *p, uint32_t v, joint *j)
{
    j->factor_count = 0;
    j->scope_count = 0;
    j->entries = p->variables[v].states;
    j->fits = true;
    for (const link *l = p->variables[v].links; l != NULL && j->fits; l = l->next) {
        if (l->factor->table == NULL) {
            continue; /* Used up. */
        }
        if (j->factor_count == sizeof(j->factors) / sizeof(j->factors[0])) {
            j->fits = false;
            break;
        }
        j->factors[j->factor_count++] = l->factor;
        join_scope(p, v, l->factor, j);
    }
}

/* The steps of each of the joint's factors along the joint's variables, and along v (the last). */
typedef struct {
    uint32_t steps[JOINT_FACTORS][JOINT_SCOPE + 1];
    uint32_t places[JOINT_FACTORS];
} walker;

static void start_walk(const joint *j, uint32_t v, walker *w)
{
    for (uint32_t f = 0; f < j->factor_count; f++) {
        const factor *from = j->factors[f];
        w->places[f] = 0;
        memset(w->steps[f], 0, (j->scope_count + 1) * sizeof(w->steps[f][0]));
        for (uint32_t i = 0; i < from->scope_count; i++) {
            uint32_t at = 0;
            while (from->scope[i] != v && j->scope[at] != from->scope[i]) {
                at++;
            }
            w->steps[f][from->scope[i] == v ? j->scope_count : at] = from->steps[i];
        }
    }
}

static double find_least(const joint *j, const walker *w, uint32_t states, uint8_t *best)
{
    double least = (double)INFINITY;
    *best = 0;
    for (uint32_t s = 0; s < states; s++) {
        double sum = 0.0;
        for (uint32_t f = 0; f < j->factor_count; f++) {
            sum += j->factors[f]->table[w->places[f] + s * w->steps[f][j->scope_count]];
        }
        if (sum < least) {
            least = sum;
            *best = (uint8_t)s;
        }
    }
    return least;
}

/* Counts up the states of the joint's variables, the first fastest. */
static void advance(const graft_elimination *p, const joint *j, uint8_t *at, walker *w)
{
    for (uint32_t i = 0; i < j->scope_count; i++) {
        uint32_t states = p->variables[j->scope[i]].states;
        bool carry = ++at[i] == states;
        for (uint32_t f = 0; f < j->factor_count; f++) {
            w->places[f] += w->steps[f][i];
            w->places[f] -= carry ? w->steps[f][i] * states : 0;
        }
        if (!carry) {
            return;
        }
        at[i] = 0;
    }
}

static void eliminate(graft_elimination *p, uint32_t v, const joint *j)
{
    variable *gone = &p->variables[v];
    uint32_t entries = (uint32_t)(j->entries / gone->states);
    uint8_t at[JOINT_SCOPE] = {0};
    uint8_t *best = GRAFT_NEW(p->arena, uint8_t, entries);
    walker w;
    start_walk(j, v, &w);
    factor *f = new_factor(p, j->scope_count, j->scope);
    for (uint32_t i = 0; i < entries; i++) {
        f->table[i] = find_least(j, &w, gone->states, &best[i]);
        advance(p, j, at, &w);
    }
    for (uint32_t i = 0; i < j->factor_count; i++) {
        j->factors[i]->table = NULL;
    }
    gone->eliminated = true;
    gone->scope = GRAFT_NEW(p->arena, uint32_t, j->scope_count);
    memcpy(gone->scope, j->scope, j->scope_count * sizeof(j->scope[0]));
    gone->scope_count = j->scope_count;
    gone->best = best;
}

/* ------------------------------------------------------------- where it is too wide */

/* Restricts each factor of `v` to one state: entries of other states become impossible, and the
 * variable is taken out of the factors' scopes. */
static void fix_variable(graft_elimination *p, uint32_t v, uint32_t state)
{
    for (link *l = p->variables[v].links; l != NULL; l = l->next) {
        factor *f = l->factor;
        for (uint32_t i = 0; f->table != NULL && i < f->scope_count; i++) {
            if (f->scope[i] == v) {
                f->table += (size_t)state * f->steps[i];
                f->scope_count--;
                memmove(&f->scope[i], &f->scope[i + 1], (f->scope_count - i) * sizeof(f->scope[0]));
                memmove(&f->steps[i], &f->steps[i + 1], (f->scope_count - i) * sizeof(f->steps[0]));
            }
        }
    }
    uint8_t *best = GRAFT_NEW(p->arena, uint8_t, 1);
    *best = (uint8_t)state;
    p->variables[v].eliminated = true;
    p->variables[v].best = best;
}

static double find_minimum(const graft_elimination *p, const factor *f, uint32_t v, uint32_t state)
{
    uint8_t at[JOINT_SCOPE] = {0};
    double least = (double)INFINITY;
    for (;;) {
        uint32_t place = 0;
        uint32_t i = 0;
        for (uint32_t k = 0; k < f->scope_count; k++) {
            place += f->steps[k] * (f->scope[k] == v ? state : at[k]);
        }
        least = f->table[place] < least ? f->table[place] : least;
        while (i < f->scope_count &&
               (f->scope[i] == v || ++at[i] == p->variables[f->scope[i]].states)) {
            at[i++] = 0;
        }
        if (i == f->scope_count) {
            return least;
        }
    }
}

/* The state whose factors could be least, each by itself. */
static uint32_t guess_state(const graft_elimination *p, uint32_t v)
{
    double least = (double)INFINITY;
    uint32_t best = 0;
    for (uint32_t s = 0; s < p->variables[v].states; s++) {
        double sum = 0.0;
        for (const link *l = p->variables[v].links; l != NULL; l = l->next) {
            sum += l->factor->table == NULL ? 0.0 : find_minimum(p, l->factor, v, s);
        }
        if (sum < least) {
            least = sum;
            best = s;
        }
    }
    return best;
}

/* ----------------------------------------------------------------------- all of them */

static void read_back(const graft_elimination *p, const uint32_t *order, uint8_t *states)
{
    for (uint32_t i = p->variable_count; i-- > 0;) {
        const variable *v = &p->variables[order[i]];
        uint32_t place = 0;
        uint32_t step = 1;
        for (uint32_t k = 0; k < v->scope_count; k++) {
            place += step * states[v->scope[k]];
            step *= p->variables[v->scope[k]].states;
        }
        states[order[i]] = v->best[place];
    }
}

/* Sweeps over the variables in their order (for graphs: that of the nodes) and eliminates those
 * whose joint table is as small as any that is left; the bound doubles when a sweep finds none. */
bool graft_elimination_solve(graft_elimination *problem, uint8_t *states)
{
    uint32_t *order = GRAFT_NEW(problem->arena, uint32_t, problem->variable_count);
    joint *j = GRAFT_NEW(problem->arena, joint, 1);
    uint32_t done = 0;
    bool exact = true;
    for (uint64_t bound = 8; done < problem->variable_count;) {
        uint32_t before = done;
        for (uint32_t v = 0; v < problem->variable_count; v++) {
            if (problem->variables[v].eliminated) {
                continue;
            }
            find_joint(problem, v, j);
            if (j->fits && j->entries <= bound) {
                eliminate(problem, v, j);
                order[done++] = v;
            }
        }
        if (done == before && bound < GRAFT_ELIMINATION_ENTRIES) {
            bound *= 2;
        } else if (done == before) {
            uint32_t v = 0;
            while (problem->variables[v].eliminated) {
                v++;
            }
            fix_variable(problem, v, guess_state(problem, v));
            order[done++] = v;
            exact = false;
            bound = 8;
        }
    }
    read_back(problem, order, states);
    return exact;
}
