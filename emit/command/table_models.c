/* table_models.c - which models a table is made of, one after the other (see command_table.h). */
#include "emit/command/command_table.h"
#include "models/zoo.h"

#include <string.h>

static const struct {
    const char *prefix;
    const char *family;
} families[] = {
    {"resnet8",     "microcontroller"},
    {"dscnn",       "microcontroller"},
    {"mobilenetv1", "microcontroller"},
    {"autoencoder", "microcontroller"},
    {"resne",       "residual"       },
    {"lstm",        "recurrent"      },
    {"nasrnn",      "recurrent"      },
    {"bert",        "transformer"    },
    {"vit",         "transformer"    },
    {"squeezenet",  "branching"      },
    {"inception",   "branching"      },
    {"nasnet",      "branching"      },
    {"mobilenet",   "mobile"         },
};

/* A model that is not of the zoo is a family of its own. */
static const char *family_of(const char *name)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(name, families[i].prefix, strlen(families[i].prefix)) == 0) {
            return families[i].family;
        }
    }
    return name;
}

graft_status graft_table_models(graft_env *env, const char *names, graft_table_model **models,
                                uint32_t *count)
{
    uint32_t named_count = 0;
    const char **named = NULL;
    if (strcmp(names, "zoo") == 0) {
        uint32_t zoo_count = 0;
        const graft_zoo_entry *zoo = graft_zoo(&zoo_count);
        named = GRAFT_NEW(env->life, const char *, zoo_count);
        for (uint32_t i = 0; i < zoo_count; i++) {
            named[named_count] = zoo[i].name;
            named_count += !zoo[i].is_quantised;
        }
    } else {
        GRAFT_PASS(graft_model_names(env, env->life, names, &named, &named_count));
    }
    if (named_count > GRAFT_TABLE_MODELS) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%u models are more than %d", named_count,
                          GRAFT_TABLE_MODELS);
    }
    *models = GRAFT_NEW(env->life, graft_table_model, named_count);
    *count = named_count;
    for (uint32_t i = 0; i < named_count; i++) {
        (*models)[i] = (graft_table_model){named[i], family_of(named[i])};
    }
    return GRAFT_OK;
}

static graft_status visit(graft_env *env, const graft_session_options *options,
                          graft_table_body *body, void *context, uint32_t model)
{
    graft_status status = GRAFT_OK;
    graft_session *session = GRAFT_NEW(env->life, graft_session, 1);
    GRAFT_CHECK(graft_session_open(env, options, session));
    GRAFT_CHECK(body(env, context, session, model));
done:
    return graft_session_finish(env, session, status);
}

/* Calls the body for a model in an environment of its own. */
static graft_status visit_apart(graft_env *env, const graft_session_options *options,
                                const graft_table_model *models, uint32_t model,
                                graft_table_body *body, void *context)
{
    graft_env own;
    graft_session_options of_model = *options;
    of_model.model = models[model].name;
    GRAFT_PASS(graft_env_open(&own));
    own.thread_count = env->thread_count;
    own.verbosity = env->verbosity > 1 ? env->verbosity : 0;
    own.json = env->json;
    graft_status status = visit(&own, &of_model, body, context, model);
    if (status != GRAFT_OK && own.message[0] != '\0') {
        status = GRAFT_FAIL(env, status, "%s: %s", models[model].name, own.message);
    }
    graft_env_close(&own);
    return status;
}

graft_status graft_table_each(graft_env *env, const graft_session_options *options,
                              const graft_table_model *models, uint32_t count,
                              graft_table_body *body, void *context)
{
    graft_status status = GRAFT_OK;
    for (uint32_t m = 0; m < count && status == GRAFT_OK; m++) {
        status = visit_apart(env, options, models, m, body, context);
    }
    return status;
}

/* ------------------------------------------------------------------- by ranks */

typedef struct {
    const graft_session_options *options;
    const graft_table_model *models;
    const graft_table_work *work;
    graft_share *share;
} sharing;

static graft_status find_with_session(graft_env *env, void *context, graft_session *session,
                                      uint32_t model)
{
    const sharing *s = context;
    return s->work->find(env, s->work->context, session, model, s->share);
}

static graft_status find_of_model(graft_env *env, void *context, uint32_t model, graft_share *share)
{
    sharing s = *(const sharing *)context;
    s.share = share;
    return visit_apart(env, s.options, s.models, model, find_with_session, &s);
}

static graft_status take_of_model(graft_env *env, void *context, uint32_t model, const void *piece,
                                  size_t bytes)
{
    const sharing *s = context;
    return s->work->take(env, s->work->context, model, piece, bytes);
}

graft_status graft_table_share(graft_env *env, const graft_session_options *options,
                               const graft_table_model *models, uint32_t count,
                               const graft_table_work *work)
{
    sharing s = {.options = options, .models = models, .work = work};
    const graft_share_work each = {.label = work->label,
                                   .unit = "models",
                                   .find = find_of_model,
                                   .take = take_of_model,
                                   .context = &s};
    return graft_share_run(env, count, &each);
}
