/* rulefile.h - the rule set as a file (rules/graft.rules, protobuf; docs/formats.md): the rules
 * themselves and, for each, the certificate of its proof. Written by `graft rules --generate`, read
 * by every later stage. */
#pragma once

#include "graph/base/env.h"

typedef enum graft_proof {
    GRAFT_PROOF_NONE = 0,
    GRAFT_PROOF_BOUNDED = 1,  /* Holds within bounds: swept and proved at instances. */
    GRAFT_PROOF_UNBOUNDED = 3 /* Proved: for all sizes and all values of attributes. */
} graft_proof;

typedef enum graft_numeric {
    GRAFT_NUMERIC_NONE = 0,
    GRAFT_NUMERIC_EXACT = 1,         /* The same result for every IEEE input. */
    GRAFT_NUMERIC_REASSOCIATING = 2, /* Equal over the reals; rounding differs. */
    GRAFT_NUMERIC_EXACT_INTEGER = 3  /* The same numbers, through 8 bits (numeric.h). */
} graft_numeric;

/* "within-bounds", "proved"; "exact", "reassociating", "exact-integer"; "none". */
const char *graft_proof_name(uint32_t proof);
const char *graft_numeric_name(uint32_t numeric);

/* Distances of one side from the exact result, in hundredths of a unit in the last place; the
 * largest value stands for itself and all larger ones. */
typedef struct graft_rounding_side {
    uint32_t median;
    uint32_t most;
    uint32_t overflows; /* Elements without a finite result, of those that binary64 has one for. */
} graft_rounding_side;

enum { GRAFT_ROUNDING_F32, GRAFT_ROUNDING_F16, GRAFT_ROUNDING_FORMATS };
enum { GRAFT_ROUNDING_SOURCE, GRAFT_ROUNDING_TARGET, GRAFT_ROUNDING_SIDES };

/* What rounding does to a reassociating rule (verify/sweep/rounding.h). */
typedef struct graft_rounding {
    uint32_t elements; /* Measured, in each format; 0: nothing was. */
    graft_rounding_side sides[GRAFT_ROUNDING_FORMATS][GRAFT_ROUNDING_SIDES];
} graft_rounding;

typedef struct graft_rule_entry {
    graft_rule rule;
    uint64_t id;        /* graft_rule_id of `rule`. */
    const char *name;   /* Unique in the set, e.g. "conv-scale_shift=>mul-conv_bias". */
    const char *family; /* Of operators: "convolution", "dense"... */
    int32_t gain;       /* Operators saved per inference in the best case (constant weights). */
    uint8_t proof;      /* graft_proof */
    uint8_t numeric;    /* graft_numeric */
    bool complete;      /* The sweep covered the whole bounded domain. */
    uint32_t points;    /* Instances swept. */
    uint32_t cover;     /* Instances proved by the solver. */
    uint64_t resource_count;
    graft_rounding rounding;
    uint32_t cases;     /* Of ranks and axes, each proved for all sizes; 0: not that way. */
    const char *reason; /* Why it is not proved for all sizes; "" when it is, or none is known. */
    const uint8_t *cover_points; /* `cover_bytes` of them. */
    size_t cover_bytes;
    const char *const *axioms;
    uint32_t axiom_count;
} graft_rule_entry;

/* For qsort: the order of entries in a set, by family, name and id. */
int graft_rule_entry_compare(const void *a, const void *b);

typedef struct graft_ruleset {
    const char *solver; /* Name and version, e.g. "z3 4.8.12.0". */
    uint32_t count;
    graft_rule_entry *entries;
} graft_ruleset;

/* Whether a rule of this class gives the same result for every input. */
bool graft_numeric_is_exact(uint32_t numeric);
/* The ids of such rules, ascending, in `arena`. */
const uint64_t *graft_ruleset_exact(const graft_ruleset *set, graft_arena *arena, uint32_t *count);
/* The entry of this id, or NULL. */
const graft_rule_entry *graft_ruleset_find(const graft_ruleset *set, uint64_t id);
/* Whether a node of a pattern is of this operator. */
bool graft_pattern_has(const graft_pattern *pattern, uint32_t op);
/* Whether a rule may be applied wherever it fits: it only removes, or it replaces operators that
 * merely move elements by fewer of the same kinds. */
bool graft_rule_is_always(const graft_rule *rule);

/* A number that stands for the rule's content: XXH3 of its packed form. The rule must be valid. */
uint64_t graft_rule_id(const graft_rule *rule);

/* Reads a rule set into `arena`. GRAFT_IO when the file cannot be read; GRAFT_BAD_INPUT, naming
 * file, rule and field, when it is cut off or malformed, of another version, or holds a rule that
 * fails graft_rule_check, whose id is not that of its content, or whose id or name occurs twice. */
GRAFT_MUST_USE graft_status graft_rulefile_read(graft_env *env, graft_arena *arena,
                                                const char *path, graft_ruleset *set);
/* Writes a rule set atomically; equal sets give equal bytes. GRAFT_INTERNAL for an invalid rule. */
GRAFT_MUST_USE graft_status graft_rulefile_write(graft_env *env, const char *path,
                                                 const graft_ruleset *set);
