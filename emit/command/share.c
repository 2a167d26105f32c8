/* share.c - see share.h. */
#include "emit/command/share.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "verify/pool.h"

#include <string.h>

struct graft_share {
    graft_env *env;
    const graft_share_work *work;
    uint32_t item;        /* At hand. */
    graft_buffer *answer; /* Of a child, which pieces go into; NULL: they are taken. */
    graft_status status;  /* The first failure. */
    graft_progress progress;
};

graft_status graft_share_say(graft_share *share, const void *piece, size_t bytes)
{
    const uint64_t size = bytes;
    if (share->answer == NULL) {
        graft_progress_hide(&share->progress);
        return share->work->take(share->env, share->work->context, share->item, piece, bytes);
    }
    graft_buffer_append(share->answer, &size, sizeof size);
    graft_buffer_append(share->answer, piece, bytes);
    return GRAFT_OK;
}

static graft_status find_alone(graft_share *share, uint32_t count)
{
    const graft_share_work *work = share->work;
    graft_progress_start(&share->progress, share->env, work->label, work->unit, count);
    for (uint32_t i = 0; i < count; i++) {
        share->item = i;
        GRAFT_PASS(work->find(share->env, work->context, i, share));
        graft_progress_update(&share->progress, i + 1, NULL);
    }
    graft_progress_finish(&share->progress);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- ranks */

/* Answers with the status; then pieces, each behind its size, or the message. */
static void find_in_child(graft_env *env, void *context, const graft_pool_item *item,
                          graft_buffer *answer)
{
    const graft_share *parent = context;
    graft_buffer pieces = {.arena = env->life}; /* Whoever finds may reset the answer's arena. */
    graft_share share = {.env = env, .work = parent->work, .item = item->index, .answer = &pieces};
    env->thread_count = 1; /* The children are its threads. */
    graft_env_clear(env);
    const graft_status status = parent->work->find(env, parent->work->context, item->index, &share);
    answer->arena = env->life;
    graft_buffer_append(answer, &status, sizeof status);
    if (status == GRAFT_OK) {
        graft_buffer_append(answer, pieces.data, pieces.size);
    } else {
        graft_buffer_append(answer, env->message, sizeof env->message);
    }
}

static graft_status take_pieces(graft_share *share, const uint8_t *at, const uint8_t *end)
{
    graft_status status = GRAFT_OK;
    while (at < end && status == GRAFT_OK) {
        uint64_t size = 0;
        memcpy(&size, at, sizeof size);
        at += sizeof size;
        status = graft_share_say(share, at, size);
        at += size;
    }
    return status;
}

static void take_answer(void *taker, uint32_t item, const graft_pool_result *result)
{
    graft_share *share = taker;
    graft_status status = GRAFT_OK;
    share->item = item;
    if (share->status != GRAFT_OK) {
        return;
    }
    if (result->outcome != GRAFT_POOL_DONE) {
        share->status = GRAFT_FAIL(share->env, GRAFT_INTERNAL, "%s: item %u %s", share->work->label,
                                   item, graft_pool_outcome_name(result->outcome));
        return;
    }
    const uint8_t *pieces = result->answer + sizeof status;
    memcpy(&status, result->answer, sizeof status);
    share->status = status == GRAFT_OK ? take_pieces(share, pieces, result->answer + result->bytes)
                                       : GRAFT_FAIL(share->env, status, "%s", (const char *)pieces);
}

graft_status graft_share_run(graft_env *env, uint32_t count, const graft_share_work *work)
{
    graft_share share = {.env = env, .work = work};
    const graft_pool_job job = {.label = work->label,
                                .unit = work->unit,
                                .item_count = count,
                                .run = find_in_child,
                                .context = &share,
                                .take = take_answer,
                                .taker = &share};
    if (env->ranks == NULL) {
        return find_alone(&share, count);
    }
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, count);
    GRAFT_PASS(graft_pool_run(env, env->life, &job, results));
    for (uint32_t i = 0; i < count && graft_ranks_own(env) > 0; i++) {
        take_answer(&share, i, &results[i]); /* The first rank has been told. */
    }
    return share.status;
}
