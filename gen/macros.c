/* macros.c - directions that the kept rules do not lead in, or not downhill all the way. See
 * propose.h. */
#include "gen/search.h"

#include <string.h>

/* What a search would like to make smaller: operators that run at inference, then all operators. */
static uint32_t weigh_graph(const graft_gen_search *find, uint32_t graph)
{
    return (uint32_t)find->groups.graphs[graph].live_count << 8 | find->groups.graphs[graph].size;
}

/* A walk over a group, from graph to graph by rules that can be matched. */
typedef struct {
    const graft_gen_search *find;
    uint32_t *stamps; /* By graph: the last walk that reached it. */
    uint32_t *pending;
    uint32_t depth;
    uint32_t stamp;
    bool downhill; /* Only to graphs that are lighter. */
    bool literal;  /* Only by laws that fit as they are. */
} walk;

static void follow_join(walk *w, const graft_gen_join *j)
{
    const graft_gen_search *find = w->find;
    const graft_gen_found *law = &find->laws[j->law];
    bool matched = law->alive && !law->is_lemma && (law->law.directions >> j->side & 1u) != 0;
    bool lighter = weigh_graph(find, j->to) < weigh_graph(find, j->from);
    bool allowed = (j->is_literal || !w->literal) && (lighter || !w->downhill);
    if (matched && allowed && w->stamps[j->to] != w->stamp) {
        w->stamps[j->to] = w->stamp;
        w->pending[w->depth++] = j->to;
    }
}

static bool leads_to(walk *w, uint32_t from, uint32_t to, bool downhill)
{
    const graft_gen_search *find = w->find;
    w->downhill = downhill;
    w->literal = downhill || find->groups.output_count > 1;
    w->stamp++;
    w->depth = 0;
    w->stamps[from] = w->stamp;
    w->pending[w->depth++] = from;
    while (w->depth > 0) {
        uint32_t graph = w->pending[--w->depth];
        if (graph == to) {
            return true;
        }
        for (uint32_t i = graft_gen_search_first_join(find, graph);
             i < find->sorted_count && find->joins.items[i].from == graph; i++) {
            follow_join(w, &find->joins.items[i]);
        }
        for (uint32_t i = find->macro_joins[graph]; i != GRAFT_GEN_NONE;
             i = find->joins.items[i].next) {
            follow_join(w, &find->joins.items[i]);
        }
    }
    return false;
}

/* The directions that a dropped pair is missed in; side 0 is the first of the group. A law fits up
 * to equal inner graphs where nothing is to be saved, but for pairs of outputs: two products whose
 * operands could be pieces of one concatenation are nowhere pieces of it. */
static uint8_t missed_directions(walk *w, const graft_gen_pair *p)
{
    const graft_gen_search *find = w->find;
    const uint32_t ends[2] = {p->hub, p->other};
    uint32_t directions = 0;
    for (uint32_t s = 0; s < 2; s++) {
        uint32_t from = ends[s];
        uint32_t to = ends[1 - s];
        bool saves = weigh_graph(find, to) < weigh_graph(find, from);
        if (!leads_to(w, from, to, saves)) {
            directions |= 1u << s;
        }
    }
    return (uint8_t)directions;
}

/* Makes the law of a pair, and applies it when a rule can be made of it in the directions missed.
 */
static bool take_macro(graft_gen_search *find, uint32_t number, uint8_t directions)
{
    graft_gen_trial made = *graft_gen_search_try(find, number, GRAFT_GEN_MAKE_LAW, true);
    if (!made.holds || (graft_gen_search_directions(&made.law) & directions) == 0) {
        return false;
    }
    graft_gen_trial wanted = {.number = number, .task = GRAFT_GEN_TRY_GIVEN, .given = &made.law};
    const graft_gen_trial *trial =
        graft_gen_ahead_take(find->ahead, &wanted, NULL, NULL, number + 1);
    return graft_gen_search_take(find, number, trial, directions);
}

static bool is_derived(const graft_gen_pair *p)
{
    return p->fate != GRAFT_GEN_TAKEN && p->fate != GRAFT_GEN_REFUTED;
}

graft_status graft_gen_search_macros(graft_gen_search *find)
{
    graft_progress progress;
    walk w = {.find = find};
    w.stamps = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    w.pending = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    find->macro_joins = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    memset(find->macro_joins, 0xff, find->groups.count * sizeof *find->macro_joins);
    graft_gen_ahead_forget(find->ahead);
    for (uint32_t i = 0; i < find->pair_count; i++) {
        const graft_gen_pair *p = &find->pairs[i];
        GRAFT_PASS(graft_gen_search_tell(find, &progress, i, "pairs for macros"));
        uint8_t directions = is_derived(p) ? missed_directions(&w, p) : 0;
        uint32_t before = find->joins.count;
        if (directions != 0 && take_macro(find, i, directions)) {
            for (uint32_t j = before; j < find->joins.count; j++) {
                find->joins.items[j].next = find->macro_joins[find->joins.items[j].from];
                find->macro_joins[find->joins.items[j].from] = j;
            }
        }
    }
    return GRAFT_OK;
}
