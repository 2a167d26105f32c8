/* tuning.h - rows of a tariff tuned to the graphs that they lead to.
 *
 * How much rows lean is one number for each operator, a compromise between models. What is sought
 * then are rows that lead to cheap graphs, model by model: direct policy search by a (1+1)
 * evolution strategy (Rechenberg, Evolutionsstrategie, 1973). A mutation changes the rows that one
 * model meets: those of an operator, or all, lean by another part, or rows are blurred (blur.h).
 * Where that model's graph gets cheaper, what the gain does not need is taken back, half of the
 * rows at a time (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002),
 * since a row is worth most as it was. What is left stays when the mean over all models gains. */
#pragma once

#include "train/tariff/leaning.h"

/* The cost of the graph that a tariff leads to on a model, in parts of the model's as given. */
typedef struct graft_tuning_judge {
    graft_status (*judge)(graft_env *env, void *context, const graft_tariff *tariff, uint32_t model,
                          double *part);
    void *context;
} graft_tuning_judge;

typedef struct graft_tuning_options {
    uint64_t models;     /* Bit m: model m counts. */
    uint32_t blurs;      /* Of each model, after all parts of all operators... */
    const double *aims;  /* ...by model: a part of its cost that prices lead to... */
    uint32_t blurs_most; /* ...and blurs while it is above. */
    double least;        /* What a mutation has to gain, in parts of a model's cost. */
    uint64_t seed;
} graft_tuning_options;

/* Tunes the values of `tariff`, whose rows are those of `rows`; new values are in env->life. Sets
 * *tuned to the number of rows that have changed. Deterministic. Fails as the judge does, and with
 * GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_tuning_search(graft_env *env, const graft_leaning_rows *rows,
                                                const graft_tuning_judge *judge,
                                                const graft_tuning_options *options,
                                                graft_tariff *tariff, uint32_t *tuned);
