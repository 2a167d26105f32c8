/* header.h - writes a policy as one C99 header: tables in, tables out, no logic.
 *
 * The header includes graft.h, or carries it inside when amalgamated: then that one file is all
 * that a product needs. It refuses to compile against another ABI or other features. Tables are
 * defined where GRAFT_IMPLEMENTATION is, so it may be included anywhere. The same policy gives the
 * same bytes. Format: docs/formats.md. */
#pragma once

#include "graph/base/file.h"
#include "graph/rule/operatorset.h"

typedef struct graft_header_options {
    const char *name;              /* The policy is graft_policy_<name>, as in identifier.h. */
    const char *generator;         /* What made it, e.g. "graft 0.1.0"; one line. */
    const char *const *rule_names; /* By rule, for comments; NULL: none. */
    bool amalgamate;               /* Carry the engine inside. */
    graft_operator_set operators;  /* Those that the product has; none: nobody says. */
    bool small;                    /* Define GRAFT_SMALL_GRAPHS. */
} graft_header_options;

/* Bytes of const data by kind. */
typedef struct graft_header_sizes {
    size_t rules;   /* Packed rules, their offsets and flags. */
    size_t network; /* Weights, biases, scales, embeddings. */
    size_t costs;   /* The tariff: rows and fallback. */
    size_t plans;
    size_t total;  /* With the policy's own struct, as on the host. */
    size_t header; /* Of the text. */
} graft_header_sizes;

/* The text, in `text`, whose arena is not env->scratch; `sizes` may be NULL. GRAFT_BAD_INPUT for a
 * bad name, no rules, or more than 4000 bytes of metadata. */
GRAFT_MUST_USE graft_status graft_header_print(graft_env *env, const graft_policy *policy,
                                               const graft_header_options *options,
                                               graft_buffer *text, graft_header_sizes *sizes);
/* Prints it and replaces the file `path` atomically. */
GRAFT_MUST_USE graft_status graft_header_write(graft_env *env, const graft_policy *policy,
                                               const graft_header_options *options,
                                               const char *path, graft_header_sizes *sizes);
