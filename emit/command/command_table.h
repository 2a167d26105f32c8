/* command_table.h - `graft cost` with what needs rewriting: tables of node costs, and databases
 * that hold what rewriting reaches. */
#pragma once

#include "emit/command/session.h"
#include "emit/command/share.h"
#include "train/tariff/tariff_search.h"

/* The models of a list, or "zoo": all that are not quantised. Each is of a family, whose models are
 * held out together. Fails as graft_model_names, and with GRAFT_BAD_INPUT for too many. */
typedef struct graft_table_model {
    const char *name;
    const char *family;
} graft_table_model;
enum { GRAFT_TABLE_MODELS = 64 };
GRAFT_MUST_USE graft_status graft_table_models(graft_env *env, const char *names,
                                               graft_table_model **models, uint32_t *count);

/* Calls `body` with a session for each model, one after the other, in an environment of its own: a
 * model's memory is given back before the next one is opened. Fails as it does. */
typedef graft_status graft_table_body(graft_env *env, void *context, graft_session *session,
                                      uint32_t model);
GRAFT_MUST_USE graft_status graft_table_each(graft_env *env, const graft_session_options *options,
                                             const graft_table_model *models, uint32_t count,
                                             graft_table_body *body, void *context);

/* What is to be known of several models, each by itself: as graft_share_work, with a session. */
typedef struct graft_table_work {
    const char *label;
    graft_status (*find)(graft_env *env, void *context, graft_session *session, uint32_t model,
                         graft_share *share);
    graft_status (*take)(graft_env *env, void *context, uint32_t model, const void *piece,
                         size_t bytes);
    void *context;
} graft_table_work;
/* Does it for each model, in environments as graft_table_each; ranks share it. Fails as the two
 * do. */
GRAFT_MUST_USE graft_status graft_table_share(graft_env *env, const graft_session_options *options,
                                              const graft_table_model *models, uint32_t count,
                                              const graft_table_work *work);

/* Walks through the rewrites of a session's model in every way there is, `greedy` its plan by
 * greedy search, and notes in `book` what nodes cost. */
GRAFT_MUST_USE graft_status graft_table_teach(graft_env *env, graft_session *session,
                                              graft_book *book, uint32_t model,
                                              const graft_plan_found *greedy);
/* Opens what a file has of the session's device, for fallbacks to learn from: records of another
 * machine say nothing. Fails as graft_cost_open and graft_database_merge do; the caller closes what
 * it gets, also then. */
GRAFT_MUST_USE graft_status graft_table_open_measured(graft_env *env,
                                                      const graft_session_options *options,
                                                      const char *path, graft_database **database);
