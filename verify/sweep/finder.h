/* finder.h - how instances are found: what enumerating (domain.c) and sampling (sample.c) share.
 *
 * A plan lists, node by node and operands first, the shapes and attributes to be chosen, and where
 * what is chosen so far can be checked. A point grows along the plan. */
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
    /* Points found, as an open-addressing table of hashes. */
    uint64_t *seen;
    uint32_t seen_capacity;
    graft_judgement judged[1u << GRAFT_JUDGED_BITS]; /* By the first bits of the hash. */
} graft_finder;

/* Makes the plan of `f->rule`. */
void graft_finder_plan(graft_finder *f);

/* Whether an operator slides a window over images: these may be larger than other tensors. */
bool graft_finder_has_window(uint32_t op);

/* The shape of an operand of the source that has one already. */
const graft_shape *graft_finder_shape(const graft_finder *f, graft_operand operand);
/* Whether it has one: nodes of earlier steps and variables that were chosen. */
bool graft_finder_has(const graft_finder *f, graft_operand operand);

/* CHECK: whether the chosen inputs fit; `partial` of the node becomes what they make together. */
bool graft_finder_check(graft_finder *f, const graft_step *s);
/* INFER: whether the node's inputs and attributes fit; its outputs have shapes then. */
bool graft_finder_infer(graft_finder *f, const graft_step *s);

void graft_finder_bind_var(graft_finder *f, uint32_t var, graft_shape shape);
/* ATTRS: the tuples to choose from; they may lie in env->scratch. */
graft_choices graft_finder_choices(graft_finder *f, const graft_step *s);
/* Whether a tuple agrees with the constants and the slots that have values. */
bool graft_finder_agrees(const graft_finder *f, const graft_step *s, const int32_t *tuple);
void graft_finder_bind(graft_finder *f, const graft_step *s, const int32_t *tuple);

uint64_t graft_finder_hash(const graft_finder *f);
/* Notes the point with this hash; false when it was noted before. */
bool graft_finder_is_new(graft_finder *f, uint64_t hash);
/* Keeps the point. False when the caller has seen enough. */
bool graft_finder_keep(graft_finder *f);
