/* finder.h - how instances are found. For domain.c and propose.c alone.
 *
 * A plan lists, node by node and operands first, the shapes and attributes to be chosen, and where
 * what is chosen so far can be checked. A point grows along the plan: all values are tried in turn,
 * or shapes and attributes are proposed, and after a misfit the latest choices are drawn again,
 * then those before them. Samples follow what the precondition says outright (guide.h), most of
 * them. */
#pragma once

#include "graph/base/rng.h"
#include "verify/sweep/choices.h"
#include "verify/sweep/domain.h"
#include "verify/sweep/guide.h"

typedef enum graft_step_kind {
    GRAFT_STEP_NODE,  /* A new node begins. */
    GRAFT_STEP_VAR,   /* Choose the shape of `index`. */
    GRAFT_STEP_ATTRS, /* Choose the attributes from `index` on, `width` of them. */
    GRAFT_STEP_CHECK, /* The inputs so far must fit operator `as`. */
    GRAFT_STEP_INFER  /* All is chosen: infer the node's outputs. */
} graft_step_kind;

typedef struct graft_step {
    uint8_t kind; /* graft_step_kind */
    uint8_t node;
    uint8_t index;
    uint8_t width;
    uint8_t as;
    uint8_t inputs;              /* CHECK: how many are chosen. */
    bool is_number;              /* ATTRS: one integer or size; */
    bool is_groups;              /* of these, the groups of a convolution. */
    const graft_attr_info *attr; /* ATTRS: the first. */
    graft_choices fixed;         /* ATTRS: the tuples, when they do not depend on the input. */
} graft_step;

enum { GRAFT_STEPS_MOST = 256, GRAFT_RENAMED = 32, GRAFT_JUDGED_BITS = 12 };

/* What a sample came to. */
typedef struct graft_judgement {
    uint64_t hash; /* 0: none yet. */
    bool is_refused;
    bool fits;
} graft_judgement;

typedef struct graft_finder {
    graft_env *env;
    const graft_rule *rule;
    const graft_domain_options *options;
    graft_domain *domain;
    bool images;
    int32_t size_most;  /* Of a drawn shape. */
    int32_t image_most; /* Of an image's height and width. */
    int32_t palette[2]; /* The named sizes of this sample; 0: sizes are drawn evenly. */
    uint32_t step_count;
    graft_step steps[GRAFT_STEPS_MOST];
    /* The point being made. */
    graft_point point;
    uint64_t bound_slots;
    uint32_t bound_vars;
    graft_side source; /* Its attributes hold the constants, and the slots after an inference. */
    uint8_t slot_count[GRAFT_RULE_MAX_NODES]; /* Attributes of a node that are slots, */
    uint8_t slot_attrs[GRAFT_RULE_MAX_NODES][GRAFT_MAX_ATTRS]; /* and which. */
    graft_shape partial[GRAFT_RULE_MAX_NODES]; /* Output of the last CHECK; rank unknown: none. */
    graft_rng rng;
    graft_guide guide;
    bool follows; /* This sample follows the guide. */
    bool mates;   /* It proposes shapes that fit an operator's other inputs. */
    bool is_sampling;
    bool is_enough;                 /* The caller wants no more points. */
    bool near;                      /* This sample is made like the origin, */
    int32_t renamed[GRAFT_RENAMED]; /* its sizes by these: equal sizes stay equal. */
    uint32_t left;                  /* Choices that may still be made. */
    /* An enumeration: choices it may make in all, which share of the domain lies behind, and how
     * large the branch at hand is. */
    uint32_t attempts;
    double done;
    double part;
    graft_met met;                                   /* Points found. */
    graft_judgement judged[1u << GRAFT_JUDGED_BITS]; /* By the first bits of the hash. */
} graft_finder;

/* The shape of an operand of the source that has one already. */
const graft_shape *graft_finder_shape(const graft_finder *f, graft_operand operand);
/* Whether it has one: nodes of earlier steps and variables that were chosen. */
bool graft_finder_has(const graft_finder *f, graft_operand operand);

/* Proposals that are likely to fit, given what is chosen already (propose.c). Whether they do is
 * decided by shape inference alone. */

/* Begins a sample that is made like the origin: draws the sizes that take the place of its. */
void graft_propose_rename(graft_finder *f);
/* A shape for the variable of a VAR step. */
graft_shape graft_propose_shape(graft_finder *f, const graft_step *s);
/* A value for the attribute of an ATTRS step of width 1: a size or slot value that is there
 * already, since equalities are rare among independent choices. */
int32_t graft_propose_value(graft_finder *f, const graft_step *s);
