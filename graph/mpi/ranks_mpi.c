/* ranks_mpi.c - graft-mpi.so: what ranks.h needs of Open MPI. Errors are left to MPI's own handler,
 * which names them and ends all ranks. Counts of MPI are ints: what is larger goes in pieces. */
#include "graph/base/ranks.h"

#include <mpi.h>

#ifndef OPEN_MPI
#error "graft-mpi.so is made for Open MPI: what mpirun says in the environment is its own"
#endif

enum { PIECE_BYTES = 1 << 30, TAG_SWAP = 1, TAG_MESSAGE = 2 };

static bool open_mpi(uint32_t *own, uint32_t *count)
{
    int rank = 0;
    int size = 0;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS) {
        return false;
    }
    *own = (uint32_t)rank;
    *count = (uint32_t)size;
    return true;
}

static void close_mpi(void) { (void)MPI_Finalize(); }

static void stop(int exit_status) { (void)MPI_Abort(MPI_COMM_WORLD, exit_status); }

static void add(uint64_t *numbers, uint32_t count)
{
    (void)MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void most(uint64_t *numbers, uint32_t count)
{
    (void)MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
}

static int piece_at(size_t bytes, size_t at)
{
    return at >= bytes ? 0 : bytes - at > PIECE_BYTES ? PIECE_BYTES : (int)(bytes - at);
}

static void share(void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        (void)MPI_Bcast((char *)data + at, piece_at(bytes, at), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

/* Both know both sizes, so that the pieces of one fit those of the other; there is at least one. */
static void swap(uint32_t to, const void *sent, size_t sent_bytes, uint32_t from, void *received,
                 size_t received_bytes)
{
    size_t at = 0;
    do {
        int out = piece_at(sent_bytes, at);
        int in = piece_at(received_bytes, at);
        const char *out_at = out > 0 ? (const char *)sent + at : NULL;
        char *in_at = in > 0 ? (char *)received + at : NULL;
        int to_whom = at == 0 || out > 0 ? (int)to : MPI_PROC_NULL;
        int from_whom = at == 0 || in > 0 ? (int)from : MPI_PROC_NULL;
        (void)MPI_Sendrecv(out_at, out, MPI_BYTE, to_whom, TAG_SWAP, in_at, in, MPI_BYTE, from_whom,
                           TAG_SWAP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        at += PIECE_BYTES;
    } while (at < sent_bytes || at < received_bytes);
}

static void send(uint32_t to, const void *data, size_t bytes)
{
    (void)MPI_Send(data, (int)bytes, MPI_BYTE, (int)to, TAG_MESSAGE, MPI_COMM_WORLD);
}

static bool peek(uint32_t *from, size_t *bytes)
{
    int there = 0;
    int count = 0;
    MPI_Status status;
    (void)MPI_Iprobe(MPI_ANY_SOURCE, TAG_MESSAGE, MPI_COMM_WORLD, &there, &status);
    if (there == 0) {
        return false;
    }
    (void)MPI_Get_count(&status, MPI_BYTE, &count);
    *from = (uint32_t)status.MPI_SOURCE;
    *bytes = (size_t)count;
    return true;
}

static void take(uint32_t from, void *data, size_t bytes)
{
    (void)MPI_Recv(data, (int)bytes, MPI_BYTE, (int)from, TAG_MESSAGE, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
}

/* What the program looks up by its name. */
const graft_ranks_calls *graft_ranks_mpi(void);
const graft_ranks_calls *graft_ranks_mpi(void)
{
    static const graft_ranks_calls calls = {.abi = GRAFT_RANKS_ABI,
                                            .open = open_mpi,
                                            .close = close_mpi,
                                            .stop = stop,
                                            .add = add,
                                            .most = most,
                                            .share = share,
                                            .swap = swap,
                                            .send = send,
                                            .peek = peek,
                                            .take = take};
    return &calls;
}
