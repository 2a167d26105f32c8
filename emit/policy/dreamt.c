/* dreamt.c - see dreamt.h. */
#include "emit/policy/dreamt.h"

#include "graph/base/json.h"
#include "graph/base/log.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

graft_status graft_ground_open(graft_env *env, graft_session *session, const graft_tariff *tariff,
                               graft_ground *ground)
{
    graft_environment *real = &session->environment;
    const graft_scene_options scenes = graft_candidates_scenes(&session->settings);
    graft_environment_options options = real->options;
    ground->session = session;
    GRAFT_PASS(graft_estimator_make(env, env->life, tariff, &real->state.graph.limits,
                                    &ground->estimator));
    options.price = graft_estimator_price(&ground->estimator);
    GRAFT_PASS(graft_environment_open(env, env->life, &real->first.graph, real->xfers, &options,
                                      &ground->engine));
    GRAFT_PASS(graft_observer_open(env, env->life, real, tariff, &scenes, &ground->by_price));
    return graft_observer_open(env, env->life, &ground->engine, tariff, &scenes,
                               &ground->by_estimate);
}

static uint64_t hash_tariff(const graft_tariff *tariff, uint64_t seed)
{
    const size_t trees = tariff->tree_count;
    const uint32_t numbers[] = {tariff->row_count, tariff->seed, tariff->tree_count, tariff->still,
                                GRAFT_FEATURE_HASH};
    uint64_t hash = XXH3_64bits_withSeed(numbers, sizeof numbers, seed);
    hash = XXH3_64bits_withSeed(tariff->roofs, sizeof tariff->roofs, hash);
    hash = XXH3_64bits_withSeed(tariff->tests, trees * GRAFT_TREE_TESTS, hash);
    hash = XXH3_64bits_withSeed(tariff->keys, tariff->row_count * sizeof tariff->keys[0], hash);
    hash = XXH3_64bits_withSeed(tariff->values, tariff->row_count * sizeof tariff->values[0], hash);
    hash = XXH3_64bits_withSeed(tariff->bounds, trees * GRAFT_TREE_TESTS * sizeof tariff->bounds[0],
                                hash);
    return XXH3_64bits_withSeed(tariff->leaves,
                                trees * GRAFT_TREE_LEAVES * sizeof tariff->leaves[0], hash);
}

/* What a checkpoint belongs to: settings, rules, model, what it costs, device, tariff and
 * program. */
static uint64_t identify(graft_session *session, const graft_tariff *tariff)
{
    uint64_t hash = XXH3_64bits(&session->settings, sizeof session->settings);
    const uint64_t graph = graft_state_hash(&session->environment.first);
    const char *device = graft_device_name(session->device);
    for (uint32_t i = 0; i < session->xfers.count; i++) {
        const uint64_t id = graft_rule_id(&session->xfers.rules[i]);
        hash = XXH3_64bits_withSeed(&id, sizeof id, hash);
    }
    hash = XXH3_64bits_withSeed(&graph, sizeof graph, hash);
    hash = XXH3_64bits_withSeed(&session->environment.first_ns,
                                sizeof session->environment.first_ns, hash);
    hash = XXH3_64bits_withSeed(GRAFT_VERSION, sizeof GRAFT_VERSION, hash);
    hash = XXH3_64bits_withSeed(device, strlen(device), hash);
    return hash_tariff(tariff, hash);
}

static graft_status train(graft_env *env, graft_ground *ground, const char *path, uint64_t identity,
                          graft_candidates *agent, graft_dreamt_policy *dreamt)
{
    graft_status status = GRAFT_OK;
    graft_dreamer *dreamer = GRAFT_NEW(env->life, graft_dreamer, 1);
    graft_observer **observers = GRAFT_NEW(env->life, graft_observer *, 1);
    observers[0] = &ground->by_price;
    graft_dreamer_open(env, agent, observers, 1, dreamer);
    GRAFT_CHECK(graft_dreamer_run(dreamer, path, identity));
    dreamt->report = dreamer->report;
    dreamt->interactions = agent->interactions;
    dreamt->dream_steps = dreamer->progress.dream_steps;
    dreamt->world_seconds = dreamer->world_seconds;
    dreamt->dream_seconds = dreamer->dream_seconds;
    dreamt->curve = dreamer->curve;
    dreamt->updates = (uint32_t)dreamer->progress.dream_updates;
done:
    graft_dreamer_close(dreamer);
    return status;
}

graft_status graft_dreamt_make(graft_env *env, graft_session *session, const graft_tariff *tariff,
                               const char *path, graft_dreamt_policy *dreamt)
{
    graft_status status = GRAFT_OK;
    graft_ground *ground = GRAFT_NEW(env->life, graft_ground, 1);
    graft_candidates *agent = GRAFT_NEW(env->life, graft_candidates, 1);
    graft_observer *const by_estimate[] = {&ground->by_estimate};
    *dreamt = (graft_dreamt_policy){.interactions = 0};
    GRAFT_CHECK(graft_ground_open(env, session, tariff, ground));
    graft_candidates_open(env->life, &session->settings,
                          (uint64_t)session->settings.environment_seed, env->thread_count, agent);
    GRAFT_CHECK(train(env, ground, path, identify(session, tariff), agent, dreamt));
    GRAFT_CHECK(graft_policy_compile(env, agent, by_estimate, 1, &dreamt->policy));
    GRAFT_CHECK(graft_agreement_measure(env, agent, &ground->by_estimate, &dreamt->policy,
                                        &dreamt->agreement));
    graft_log(env, 1, "the integer network decides as the float one in %u of %u states",
              dreamt->agreement.same, dreamt->agreement.decisions);
done:
    if (agent->settings != NULL) {
        graft_candidates_close(agent);
    }
    return status;
}

/* Two numbers of a curve or plot; JSON has only finite ones. */
static void add_pair(graft_buffer *list, double first, double second)
{
    if (isfinite(first) && isfinite(second)) {
        graft_buffer_printf(list, "%s[%.4f,%.4f]", list->size > 0 ? "," : "", first, second);
    }
}

/* What each update of the dreams saved, and of the first held-out steps what the world model said
 * and what they brought. */
static void write_plots(graft_env *env, const graft_dreamt_policy *dreamt, graft_json *json)
{
    enum { REWARDS_MOST = 1000 };
    const graft_foresight_report *r = &dreamt->report;
    graft_buffer curve = {.arena = env->life};
    graft_buffer rewards = {.arena = env->life};
    for (uint32_t u = 0; u <= dreamt->updates; u++) {
        add_pair(&curve, (double)dreamt->curve[2 * u], (double)dreamt->curve[2 * u + 1]);
    }
    for (uint32_t t = 0; t < r->steps && t < REWARDS_MOST; t++) {
        add_pair(&rewards, r->rewards[t].said, r->rewards[t].real);
    }
    graft_json_list(json, "curve", &curve);
    graft_json_list(json, "rewards", &rewards);
}

const char *graft_dreamt_line(graft_env *env, const graft_dreamt_policy *dreamt)
{
    const graft_foresight_report *r = &dreamt->report;
    graft_json json;
    graft_json_begin(&json, env->life);
    graft_json_add(&json,
                   "interactions=%lld dream_steps=%lld world_seconds=%g dream_seconds=%g "
                   "decisions=%u decisions_of_integers_same=%u",
                   (long long)dreamt->interactions, (long long)dreamt->dream_steps,
                   dreamt->world_seconds, dreamt->dream_seconds, dreamt->agreement.decisions,
                   dreamt->agreement.same);
    graft_foresight_write(r, env->life, &json);
    write_plots(env, dreamt, &json);
    return graft_json_line(&json);
}
