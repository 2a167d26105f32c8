/* schedule.h - a graph as a list of steps to run: operators, the layout conversions between them,
 * and the memory regions that they read and write.
 *
 * The cost of a graph is the cost of its steps, and the executor runs these same steps, so nothing
 * is run that is not counted. Const nodes leave no step: they are run when the model is loaded; nor
 * do views: identities, reshapes of row-major tensors, and concatenations, splits and slices whose
 * pieces lie one behind the other (views.h). */
#pragma once

#include "cost/database/signature.h"
#include "cost/plan/groups.h"
#include "cost/plan/views.h"

#define GRAFT_REGION_NONE UINT32_MAX

typedef enum graft_region_kind {
    GRAFT_REGION_PLANNED = 0, /* Written by a step. */
    GRAFT_REGION_INPUT = 1,   /* An input of the graph, row-major; never overwritten. */
    GRAFT_REGION_CONST = 2    /* A weight or a result of the weight program, row-major. */
} graft_region_kind;

/* The memory of one tensor. */
typedef struct graft_region {
    uint64_t bytes;    /* 0 for the unknown shapes of opaque nodes. */
    uint64_t offset;   /* Bytes from the beginning of the root. */
    uint32_t first;    /* Step that writes it; 0 for inputs. */
    uint32_t last;     /* Last step that needs it; step_count when the graph gives it away. */
    graft_index value; /* The value that it was made for. */
    uint32_t root;     /* Itself, or the region that it lies in (in place, or a piece of it); a
                          root's life spans those of all that lie in it. */
    uint8_t kind;      /* graft_region_kind */
    uint8_t layout;
} graft_region;

typedef struct graft_step {
    graft_signature signature; /* Of an opaque node: only `op` is set. */
    const graft_group *group;  /* Of which it is the step; NULL: it is a node's own. */
    graft_index node; /* GRAFT_NONE for a conversion of `regions[operands[first]].value`. */
    uint32_t first;   /* In `operands`: regions read, then regions written. */
    uint32_t input_count;
    uint32_t output_count;
} graft_step;

typedef struct graft_schedule {
    graft_step *steps;
    graft_region *regions;
    uint32_t *operands; /* Regions; GRAFT_REGION_NONE for an omitted input of an opaque node, and
                           for constants of a group's own. */
    uint32_t *outputs;  /* Region of each output of the graph, row-major. */
    uint32_t step_count;
    uint32_t region_count;
    uint32_t operand_count;
    uint32_t output_count;
    uint64_t peak_bytes; /* Most bytes alive at one step: inputs, outputs, what lies between;
                            without weights and workspaces. */
} graft_schedule;

/* How a graph is run. `views` are those of the graph, or empty: then everything is copied. `groups`
 * are those whose nodes are one step. */
typedef struct graft_assignment {
    uint8_t *layouts;             /* By value: see layout.h. */
    graft_layout_choice *choices; /* By node. */
    graft_views views;
    graft_groups groups;
} graft_assignment;

/* The schedule of `graph` in `order`, in `arena`, as assigned. graft_cost_plan chooses by costs. */
void graft_schedule_build_as(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                             const graft_assignment *assignment, graft_schedule *schedule);
/* The same with one layout throughout, as far as operators have it (graft_layout_assign), with or
 * without views. */
void graft_schedule_build_in(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                             uint32_t layout, bool views, graft_schedule *schedule);

/* The signatures of its steps, but for opaque ones, in `arena`. */
graft_signature *graft_schedule_signatures(graft_arena *arena, const graft_schedule *schedule,
                                           uint32_t *count);

/* By node: whether it may put its result where its residual input lies, which is so when that input
 * was made by a step, is not given away, and nothing reads it, or what may share memory with it,
 * later or twice; and when the result is not to lie inside of a concatenation's. Does not depend on
 * layouts. In `arena`. */
bool *graft_schedule_overwrites(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, const graft_views *views);

static inline uint32_t graft_step_input(const graft_schedule *schedule, const graft_step *step,
                                        uint32_t k)
{
    return schedule->operands[step->first + k];
}

static inline uint32_t graft_step_output(const graft_schedule *schedule, const graft_step *step,
                                         uint32_t k)
{
    return schedule->operands[step->first + step->input_count + k];
}
