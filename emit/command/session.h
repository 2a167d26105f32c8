/* session.h - everything that optimising one model needs, opened in one call: the model, the rules
 * that the device can use, their costs, and the environment over them. */
#pragma once

#include "cost/cost.h"
#include "emit/run/runtime.h"
#include "graph/model.h"
#include "graph/rule/rulefile.h"
#include "train/agent/agent_settings.h"
#include "train/search/environment.h"
#include "verify/sizes/opensizes.h"

/* What a runtime takes to call a kernel, however little that has to do: onnxruntime takes 230 to
 * 300 ns for one that has eight numbers to work on. What is measured here has none of it. */
#define GRAFT_CALL_NS 250

typedef struct graft_session_options {
    const char *model;             /* A zoo name or a path to an .onnx file. */
    const char *rules;             /* Path of a rule file. */
    const char *device;            /* "cpu", or the name of a recorded device. */
    uint32_t thread_count;         /* Of the device; 0: one, or what it says. */
    const char *database;          /* Path of the cost database; made when missing. */
    const char *settings;          /* Path of a settings file. */
    bool exact;                    /* Only rules that give identical results for every input. */
    bool within_bounds;            /* Also rules that hold within bounds only. */
    const graft_model_size *sizes; /* Values for sizes that the model leaves open. */
    uint32_t size_count;
    /* By graft_clock_ns: nothing is measured after it, what is missing is estimated, and searches
     * end; 0: none. */
    uint64_t deadline_ns;
    const graft_model_size *frozen; /* Sizes that are fixed, in the file too. */
    uint32_t frozen_count;
    uint32_t unroll; /* As in graft_model_options. */
    bool constants;  /* With `file`: initializers that are inputs too are taken for constants. */
    const graft_model_bodies *bodies; /* As in graft_model_options. */
    bool rounded; /* Rules with numbers that the model's type lacks are taken with these rounded. */
    bool estimating; /* Nothing is measured: what the database lacks is estimated. */
    bool survey;     /* Only rules that walks through the model's rewrites met (survey.h). */
    bool level;      /* Costs that differ by noise alone are equal (graft_cost_level). */
    bool fixed;      /* A model whose sizes stay open is refused. */
    bool file;       /* The result is written as a file: costs are those of what a runtime
                    makes of it (runtime.h), small gains count for nothing, and the environment
                    begins with a simplified graph (simplify.h). */
    bool
        as_it_is; /* With `file`: costs are of the graph as it is, for a product that fuses nothing. */
} graft_session_options;

typedef struct graft_session {
    graft_agent_settings settings;
    graft_model *model;
    bool settable;       /* How it was read: as in graft_model_options. */
    uint32_t unroll;     /* How it was read: as in graft_model_options. */
    graft_ruleset rules; /* As read. */
    graft_xfers xfers;   /* Those that are used, in the file's order. */
    uint32_t own;        /* Of these, the last: those of the device alone. */
    uint32_t unproved;   /* Rules left out since they hold within bounds only, */
    uint32_t refused;    /* those that the device or the numeric class cannot use... */
    uint32_t unmet;      /* ...and those that the survey left out. */
    graft_device *device;
    graft_cost *cost;
    graft_open_sizes *open;           /* NULL: the model has no open sizes. */
    const graft_rewrite_judge *sizes; /* Of them; NULL likewise. */
    const graft_rewrite_judge *judge; /* Of rewrites of a file that nobody times; may be NULL. */
    graft_runtime *runtime;           /* NULL: graphs are priced as they are. */
    uint32_t simplified;              /* With `file`: rewrites that simplified the model first. */
    graft_cost_total given;           /* With `file`: of the model before it was simplified. */
    graft_environment environment;
} graft_session;

/* Opens all of it in env->life; a model's measured operators are in the database afterwards. Fails
 * as its parts do, and with GRAFT_BAD_INPUT when a survey finds no place for any rule; close it
 * also then. */
GRAFT_MUST_USE graft_status graft_session_open(graft_env *env, const graft_session_options *options,
                                               graft_session *session);
/* Steps after which the engine's own loop is cut: those of an episode, or as many as the model has
 * operators. The loop ends by itself, so that a policy is not judged by where it was cut; a file is
 * searched as far. */
uint32_t graft_session_steps_most(const graft_session *session);
/* What calls of kernels add to a price of the session, each: costs are measured without. */
uint16_t graft_session_call_ns(const graft_session *session);
/* Opens what judges rewrites of the session's model, which is all that it reads. */
void graft_session_open_judge(graft_env *env, graft_session *session);
/* Makes of a graph that is in the file of `model`, or is to be written there, what a runtime makes
 * of it, in `arena`, where the session prices that; *calls is how many kernels it calls, as far as
 * they are priced. */
GRAFT_MUST_USE graft_status graft_session_fuse(graft_env *env, const graft_session *session,
                                               graft_arena *arena, const graft_model *model,
                                               const graft_graph **graph, const graft_order **order,
                                               uint32_t *calls);
/* What graphs of the session cost, also of other models: the environment's price. */
GRAFT_MUST_USE graft_status graft_session_price(graft_env *env, void *session,
                                                const graft_graph *graph, const graft_order *order,
                                                double *ns);
/* The schedule that such a price is of, in `arena`. */
GRAFT_MUST_USE graft_status graft_session_plan(graft_env *env, graft_session *session,
                                               graft_arena *arena, const graft_graph *graph,
                                               const graft_order *order, graft_schedule *schedule);
/* All that such a price adds up, estimates counted, for a graph that is in the file of `model` or
 * is to be written there. */
GRAFT_MUST_USE graft_status graft_session_total(graft_env *env, graft_session *session,
                                                const graft_model *model, const graft_graph *graph,
                                                const graft_order *order, graft_cost_total *total);
/* By how much the prices of two graphs can differ by chance: of what only one of them rests on. */
GRAFT_MUST_USE graft_status graft_session_noise(graft_env *env, void *session,
                                                const graft_state *before, const graft_state *after,
                                                double *ns);

/* A price that refuses graphs which rest on more estimates than the graph as given: their cost is
 * no result, and a search by such a price takes none of them. */
typedef struct graft_known_price {
    graft_session *session;
    uint32_t first_estimates; /* Of the graph as given. */
} graft_known_price;

/* The environment of the session is priced so from now on; `price` is kept. Graphs are priced as
 * they are, not as a runtime would fuse them. */
GRAFT_MUST_USE graft_status graft_known_price_set(graft_env *env, graft_session *session,
                                                  graft_known_price *price);
/* What a graph costs, and how many of the costs are estimates; refuses none. */
GRAFT_MUST_USE graft_status graft_known_price_count(graft_env *env, graft_session *session,
                                                    const graft_state *state, double *ns,
                                                    uint32_t *estimates);

/* Saves the cost database and frees what is not in an arena; returns the first failure: `status`,
 * or its own. */
GRAFT_MUST_USE graft_status graft_session_finish(graft_env *env, graft_session *session,
                                                 graft_status status);
