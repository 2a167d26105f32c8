/* zoo.h - the named architectures: what MODEL= and the commands understand besides a path. */
#pragma once

#include "graph/model.h"
#include "models/builder.h"

typedef struct graft_zoo_entry {
    const char *name;  /* As the user writes it. */
    const char *title; /* What it is and where its definition is published. */
    void (*build)(graft_builder *builder);
    void (*build_small)(graft_builder *builder); /* With fewer layers; NULL: not needed. */
    bool is_quantised;         /* In 8-bit numbers, normalisations folded into filters. */
    uint64_t parameters;       /* As published; what is built has exactly as many. */
    uint64_t multiply_adds;    /* Published, of convolutions and matrix products for one input. */
    double multiply_adds_unit; /* The published figure is rounded to this. */
} graft_zoo_entry;

/* All of them, in the order in which they are listed; *count is their number. */
const graft_zoo_entry *graft_zoo(uint32_t *count);
/* Of "NAME", or "NAME@BATCH" for so many inputs at once (at most 1024). GRAFT_BAD_INPUT, naming all
 * known models, when there is none of that name. */
GRAFT_MUST_USE graft_status graft_zoo_find(graft_env *env, const char *name,
                                           const graft_zoo_entry **entry);

/* Builds a model in memory, with the seed below; `small`: in its variant with fewer layers, if
 * there is one. Fails as graft_model_parse does. */
GRAFT_MUST_USE graft_status graft_zoo_open(graft_env *env, graft_arena *arena,
                                           const graft_zoo_entry *entry, bool small,
                                           graft_model **model);

/* Writes the ONNX file of a model, named as for graft_zoo_find: the same name and seed give the
 * same bytes. Also GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_zoo_build(graft_env *env, const char *name, uint64_t seed,
                                            const char *path);

/* The seed that graft_model_open uses. */
enum { GRAFT_ZOO_SEED = 1 };

/* Opens what a user means by `name`: a model of the zoo (as for graft_zoo_find; built in memory),
 * or the path of an ONNX file. A name that is neither gives GRAFT_BAD_INPUT and lists the zoo; a
 * path that cannot be read gives GRAFT_IO. `options` may be NULL. Fails as graft_model_read
 * does. */
GRAFT_MUST_USE graft_status graft_model_open(graft_env *env, graft_arena *arena, const char *name,
                                             const graft_model_options *options,
                                             graft_model **model);

/* The models in a list with commas between them, each as for graft_model_open, in `arena`; empty
 * names are passed over. What works through a list asks here first: a name that is wrong is found
 * before the first model, not hours later. GRAFT_BAD_INPUT for a name that is neither of the zoo
 * nor a path or comes twice, and for a list without any; GRAFT_IO for a file that cannot be read.
 * What is in it is not looked at. */
GRAFT_MUST_USE graft_status graft_model_names(graft_env *env, graft_arena *arena, const char *list,
                                              const char ***names, uint32_t *count);
