/* ahead.c - see ahead.h. Threads wait for a window of trials, take them one by one, and report when
 * none is left; the thread that asked works along. All ranks fill the same window, each tries every
 * count-th trial, and they give one another what came of it. */
#include "gen/ahead.h"

#include "gen/check.h"
#include "graph/base/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MAX_THREADS = 256,
    WINDOW_PER_THREAD = 12, /* Trials: some take much longer than others. */
    MOST_LOOKED_AT = 8192,  /* Numbers behind the one wanted. */
    SCRATCH_BYTES = 1 << 20
};

/* What one thread has to itself. */
typedef struct {
    graft_gen_ahead *ahead;
    graft_arena *joins;
    graft_gen_checker checker;
    pthread_t thread;
} worker;

struct graft_gen_ahead {
    graft_env *env;
    const graft_gen_site *site;
    graft_arena *arena;
    worker *workers; /* The first is the caller's thread. */
    uint32_t worker_count;
    uint32_t all_count;      /* Of workers of all ranks. */
    graft_gen_trial *window; /* In ascending order of numbers. */
    uint32_t capacity;
    uint32_t count;
    uint32_t taken; /* Trials before this one have had their turn. */
    atomic_uint next;
    pthread_mutex_t mutex;
    pthread_cond_t start;
    pthread_cond_t done;
    uint64_t round;
    uint32_t busy_count;
    bool is_closing;
};

/* ------------------------------------------------------------------ trials */

static void run_trial(worker *self, graft_gen_trial *trial)
{
    graft_gen_site site = *self->ahead->site;
    const graft_gen_space *space = site.groups->space;
    uint32_t output_count = site.groups->output_count;
    site.arena = self->joins;
    trial->joins = (graft_gen_joins){NULL, 0, 0};
    trial->told = GRAFT_GEN_NONE;
    switch ((graft_gen_task)trial->task) {
    case GRAFT_GEN_MAKE_LAW:
    case GRAFT_GEN_TRY_LAW:
        trial->law.output_count = output_count;
        trial->holds = graft_gen_law_make(space, &self->checker, trial->roots[0], trial->roots[1],
                                          &trial->law, &trial->told);
        break;
    case GRAFT_GEN_TRY_LEMMA:
        trial->holds =
            graft_gen_law_draw(space, trial->roots[0], trial->roots[1], output_count, &trial->law);
        break;
    case GRAFT_GEN_TRY_GIVEN:
        trial->law = *trial->given;
        trial->holds = true;
        break;
    case GRAFT_GEN_NO_TASK:
    default:
        trial->holds = false;
        break;
    }
    trial->is_refuted = trial->holds && trial->task != GRAFT_GEN_MAKE_LAW &&
                        !graft_gen_law_join(&site, &trial->law, 0, &trial->joins);
}

/* This rank's part of the window. */
static void run_window(worker *self)
{
    graft_gen_ahead *ahead = self->ahead;
    for (;;) {
        uint32_t i = atomic_fetch_add(&ahead->next, 1U) * graft_ranks_count(ahead->env) +
                     graft_ranks_own(ahead->env);
        if (i >= ahead->count) {
            return;
        }
        run_trial(self, &ahead->window[i]);
    }
}

static void *work(void *argument)
{
    worker *self = argument;
    graft_gen_ahead *ahead = self->ahead;
    uint64_t seen = 0;
    (void)pthread_mutex_lock(&ahead->mutex);
    while (!ahead->is_closing) {
        if (ahead->round == seen) {
            (void)pthread_cond_wait(&ahead->start, &ahead->mutex);
            continue;
        }
        seen = ahead->round;
        (void)pthread_mutex_unlock(&ahead->mutex);
        run_window(self);
        (void)pthread_mutex_lock(&ahead->mutex);
        if (--ahead->busy_count == 0) {
            (void)pthread_cond_signal(&ahead->done);
        }
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* Takes what a rank has found about a trial; returns where that ends. */
static const char *take_trial(graft_gen_ahead *ahead, graft_gen_trial *trial, const char *data)
{
    graft_gen_trial found;
    memcpy(&found, data, sizeof found);
    data += sizeof found;
    trial->holds = found.holds;
    trial->is_refuted = found.is_refuted;
    trial->told = found.told;
    trial->law = found.law;
    trial->law.set = ahead->site->groups->space->set;
    if (trial->task == GRAFT_GEN_TRY_GIVEN) {
        trial->law = *trial->given;
    }
    uint32_t count = found.joins.count;
    trial->joins = (graft_gen_joins){NULL, count, count};
    if (count > 0) {
        trial->joins.items = GRAFT_NEW(ahead->workers[0].joins, graft_gen_join, count);
        memcpy(trial->joins.items, data, count * sizeof *trial->joins.items);
    }
    return data + count * sizeof *trial->joins.items;
}

/* Gives all ranks what each has found. */
static void share_window(graft_gen_ahead *ahead)
{
    uint32_t ranks = graft_ranks_count(ahead->env);
    uint32_t own = graft_ranks_own(ahead->env);
    GRAFT_SCOPED(ahead->env->scratch);
    graft_buffer sent = {.arena = ahead->env->scratch};
    graft_buffer got = {.arena = ahead->env->scratch};
    size_t *parts = GRAFT_NEW(ahead->env->scratch, size_t, ranks + (size_t)1);
    for (uint32_t i = own; i < ahead->count; i += ranks) {
        const graft_gen_trial *trial = &ahead->window[i];
        graft_buffer_append(&sent, trial, sizeof *trial);
        graft_buffer_append(&sent, trial->joins.items,
                            trial->joins.count * sizeof *trial->joins.items);
    }
    graft_ranks_gather(ahead->env, &sent, &got, parts);
    for (uint32_t r = 0; r < ranks; r++) {
        const char *data = got.data + parts[r];
        for (uint32_t i = r; i < ahead->count && r != own; i += ranks) {
            data = take_trial(ahead, &ahead->window[i], data);
        }
    }
}

static void try_window(graft_gen_ahead *ahead)
{
    for (uint32_t t = 0; t < ahead->worker_count; t++) {
        graft_arena_reset(ahead->workers[t].joins);
    }
    atomic_store(&ahead->next, 0U);
    bool is_shared = ahead->worker_count > 1 && ahead->count > 1;
    if (is_shared) {
        (void)pthread_mutex_lock(&ahead->mutex);
        ahead->round++;
        ahead->busy_count = ahead->worker_count - 1;
        (void)pthread_cond_broadcast(&ahead->start);
        (void)pthread_mutex_unlock(&ahead->mutex);
    }
    run_window(&ahead->workers[0]);
    if (is_shared) {
        (void)pthread_mutex_lock(&ahead->mutex);
        while (ahead->busy_count > 0) {
            (void)pthread_cond_wait(&ahead->done, &ahead->mutex);
        }
        (void)pthread_mutex_unlock(&ahead->mutex);
    }
    if (ahead->env->ranks != NULL) {
        share_window(ahead);
    }
}

/* ------------------------------------------------------------------ windows */

void graft_gen_ahead_forget(graft_gen_ahead *ahead)
{
    ahead->count = 0;
    ahead->taken = 0;
}

static void fill_window(graft_gen_ahead *ahead, const graft_gen_trial *wanted,
                        graft_gen_guess *guess, void *context, uint32_t end)
{
    uint32_t most = ahead->all_count > 1 ? ahead->capacity : 1;
    uint32_t behind = end > wanted->number ? end - wanted->number : 0;
    uint32_t stop = behind > MOST_LOOKED_AT ? wanted->number + MOST_LOOKED_AT : end;
    graft_gen_ahead_forget(ahead);
    ahead->window[ahead->count++] = *wanted;
    for (uint32_t n = wanted->number + 1; n < stop && ahead->count < most; n++) {
        graft_gen_trial *trial = &ahead->window[ahead->count];
        trial->number = n;
        trial->task = GRAFT_GEN_NO_TASK;
        guess(context, n, trial);
        ahead->count += trial->task != GRAFT_GEN_NO_TASK ? 1 : 0;
    }
}

const graft_gen_trial *graft_gen_ahead_take(graft_gen_ahead *ahead, const graft_gen_trial *wanted,
                                            graft_gen_guess *guess, void *context, uint32_t end)
{
    while (ahead->taken < ahead->count && ahead->window[ahead->taken].number < wanted->number) {
        ahead->taken++;
    }
    graft_gen_trial *trial = &ahead->window[ahead->taken];
    if (ahead->taken == ahead->count || trial->number != wanted->number) {
        fill_window(ahead, wanted, guess, context, end);
        try_window(ahead);
        trial = &ahead->window[0];
    } else if (trial->task != wanted->task) {
        *trial = *wanted; /* Guessed wrong. */
        run_trial(&ahead->workers[0], trial);
    }
    return trial;
}

/* ------------------------------------------------------------------ threads */

static void open_worker(graft_gen_ahead *ahead, worker *made)
{
    made->ahead = ahead;
    made->joins = graft_arena_new(SCRATCH_BYTES);
    made->checker.scratch = graft_arena_new(SCRATCH_BYTES);
    made->checker.memory = graft_arena_new(SCRATCH_BYTES);
}

static void close_worker(worker *made)
{
    graft_arena_free(made->joins);
    graft_arena_free(made->checker.scratch);
    graft_arena_free(made->checker.memory);
}

graft_gen_ahead *graft_gen_ahead_open(graft_env *env, const graft_gen_site *site)
{
    graft_arena *arena = graft_arena_new(SCRATCH_BYTES);
    uint32_t wanted = env->thread_count < MAX_THREADS ? env->thread_count : MAX_THREADS;
    graft_gen_ahead *made = GRAFT_NEW(arena, graft_gen_ahead, 1);
    made->env = env;
    made->site = site;
    made->arena = arena;
    made->workers = GRAFT_NEW(arena, worker, wanted);
    (void)pthread_mutex_init(&made->mutex, NULL);
    (void)pthread_cond_init(&made->start, NULL);
    (void)pthread_cond_init(&made->done, NULL);
    for (uint32_t t = 0; t < wanted; t++) {
        worker *self = &made->workers[t];
        open_worker(made, self);
        if (t > 0 && pthread_create(&self->thread, NULL, work, self) != 0) {
            close_worker(self); /* Fewer threads than asked for change the time, not the result. */
            break;
        }
        made->worker_count++;
    }
    uint64_t all = made->worker_count;
    graft_ranks_add(env, &all, 1);
    made->all_count = (uint32_t)all;
    made->capacity = made->all_count * WINDOW_PER_THREAD;
    made->window = GRAFT_NEW(arena, graft_gen_trial, made->capacity + (size_t)1);
    return made;
}

uint64_t graft_gen_ahead_bytes(const graft_gen_ahead *ahead)
{
    uint64_t bytes = graft_arena_used_bytes(ahead->arena);
    for (uint32_t t = 0; t < ahead->worker_count; t++) {
        const worker *own = &ahead->workers[t];
        bytes += graft_arena_used_bytes(own->joins) + graft_arena_used_bytes(own->checker.scratch) +
                 graft_arena_used_bytes(own->checker.memory);
    }
    return bytes;
}

void graft_gen_ahead_close(graft_gen_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_closing = true;
    (void)pthread_cond_broadcast(&ahead->start);
    (void)pthread_mutex_unlock(&ahead->mutex);
    for (uint32_t t = 0; t < ahead->worker_count; t++) {
        if (t > 0) {
            (void)pthread_join(ahead->workers[t].thread, NULL);
        }
        close_worker(&ahead->workers[t]);
    }
    (void)pthread_cond_destroy(&ahead->start);
    (void)pthread_cond_destroy(&ahead->done);
    (void)pthread_mutex_destroy(&ahead->mutex);
    graft_arena_free(ahead->arena);
}
