/* ranks.h - the processes that mpirun has started together: they share the work of one run.
 *
 *      rank 0   read ─ prepare ─ a part of the work ─┐ results ┌─ go on ─ write
 *      rank 1   read ─ prepare ─ a part of the work ─┘ of all  └─ go on
 *
 * Every rank does the whole run and comes to the same result, byte for byte that of one process.
 * Only what takes long is shared: each does a part, and all get the results. So whatever decides
 * how a run goes on must be the same in all: it is computed from the same input, or the first one
 * finds it out and gives it to the others (a file that an earlier run has left). The first rank
 * prints and writes; a rank that fails or dies ends all of them.
 *
 * The calls are Open MPI's, in graft-mpi.so beside the program, which is loaded when mpirun has
 * started several. That may be later than main: processes whose memory must be as in a run without
 * MPI are forked before. Without mpirun every function here does nothing, or what one rank does. */
#pragma once

#include "graph/base/file.h"

/* What graft-mpi.so exports. An error of MPI ends all ranks with its message. */
typedef struct graft_ranks_calls {
    uint32_t abi; /* GRAFT_RANKS_ABI of the header that it was compiled with. */
    /* Starts MPI; false when it cannot. */
    bool (*open)(uint32_t *own, uint32_t *count);
    void (*close)(void);
    void (*stop)(int exit_status);
    /* Sums, or largest numbers, over all ranks, in place. */
    void (*add)(uint64_t *numbers, uint32_t count);
    void (*most)(uint64_t *numbers, uint32_t count);
    /* The first rank's bytes, into all. */
    void (*share)(void *data, size_t bytes);
    /* Sends to one rank while receiving from another. */
    void (*swap)(uint32_t to, const void *sent, size_t sent_bytes, uint32_t from, void *received,
                 size_t received_bytes);
    /* A message to one rank, and whether one is there from any. */
    void (*send)(uint32_t to, const void *data, size_t bytes);
    bool (*peek)(uint32_t *from, size_t *bytes);
    void (*take)(uint32_t from, void *data, size_t bytes);
} graft_ranks_calls;

#define GRAFT_RANKS_ABI    1
#define GRAFT_RANKS_SYMBOL "graft_ranks_mpi"
typedef const graft_ranks_calls *(*graft_ranks_find)(void);

struct graft_ranks {
    const graft_ranks_calls *calls;
    uint32_t own; /* Number of this rank. */
    uint32_t count;
};

/* What mpirun says in the environment, before MPI has started. */
typedef struct graft_ranks_told {
    uint32_t own;
    uint32_t count;       /* 1 without mpirun. */
    uint32_t local_count; /* Of them on this machine. */
} graft_ranks_told;
graft_ranks_told graft_ranks_ask(void);

/* Starts MPI where mpirun has started several processes, else does nothing: env->ranks stays NULL.
 * GRAFT_UNSUPPORTED when graft-mpi.so is missing or does not start, GRAFT_BAD_INPUT when another
 * rank is another program. */
GRAFT_MUST_USE graft_status graft_ranks_open(graft_env *env);
/* The last call of a run that has succeeded, once each rank is done. */
void graft_ranks_close(graft_env *env);
/* Ends all ranks, this one included. Returns when there are no others. */
void graft_ranks_stop(const graft_env *env, int exit_status);

static inline uint32_t graft_ranks_count(const graft_env *env)
{
    return env->ranks == NULL ? 1 : env->ranks->count;
}
static inline uint32_t graft_ranks_own(const graft_env *env)
{
    return env->ranks == NULL ? 0 : env->ranks->own;
}

/* Of `count` items the first that is a rank's, when each has a part of them in turn: its part ends
 * where the next one's begins. */
static inline uint32_t graft_ranks_first(const graft_env *env, uint32_t rank, uint32_t count)
{
    return (uint32_t)((uint64_t)count * rank / graft_ranks_count(env));
}

/* What follows is called by all ranks, in the same order. */

/* Fails where a rank has another number than the first one: GRAFT_BAD_INPUT, `what` differs. */
GRAFT_MUST_USE graft_status graft_ranks_agree(graft_env *env, const char *what, uint64_t number);
/* Sums over all ranks; the largest numbers of all. */
void graft_ranks_add(const graft_env *env, uint64_t *numbers, uint32_t count);
void graft_ranks_most(const graft_env *env, uint64_t *numbers, uint32_t count);
/* The first rank's bytes, into all. */
void graft_ranks_share(const graft_env *env, void *data, size_t bytes);
/* What the first rank finds in a file of an earlier run, into `arena`; *size is 0 when there is
 * none that it can read. */
void graft_ranks_read(graft_env *env, graft_arena *arena, const char *path, uint8_t **data,
                      size_t *size);
/* Gives each rank its buffer of `sent` (one for each), and appends what all have for this one to
 * `received`, in their order; what the ranks had is in parts[0 .. count], one end behind the other
 * (NULL: not wanted). What it needs itself is in that arena, too, which may be env->scratch. */
void graft_ranks_exchange(const graft_env *env, const graft_buffer *sent, graft_buffer *received,
                          size_t *parts);
/* The same with one buffer for all. */
void graft_ranks_gather(const graft_env *env, const graft_buffer *sent, graft_buffer *received,
                        size_t *parts);

/* Gives all ranks the whole of an array of which each has filled in its part (..._first). */
void graft_ranks_fill(const graft_env *env, void *array, uint32_t count, size_t element_bytes);

/* What follows is between two ranks. Messages from one to the other arrive in their order. */

/* GRAFT_CAPACITY when it has 2 GiB or more. */
GRAFT_MUST_USE graft_status graft_ranks_send(graft_env *env, uint32_t to,
                                             const graft_buffer *message);
/* A message that has arrived, in `arena`; false when there is none. */
bool graft_ranks_receive(const graft_env *env, graft_arena *arena, uint32_t *from,
                         graft_buffer *message);
