/* openmp.c - the threads of the program's kernels: the functions of OpenMP's runtime that gcc's
 * `parallel` and oneDNN call, in place of libgomp's (ABI: libgomp, "Implementing PARALLEL
 * construct"). Only the program has them; who links the library keeps libgomp.
 *
 *      GOMP_parallel: parts 0..n-1 ──► each goes to the thread that comes first ──► all have ended
 *
 * A region of libgomp ends when each of its threads was there. Where other programs want the
 * processors, a thread waits for one for milliseconds, at every kernel of a model. Here the caller
 * does all parts that no other thread has begun, and waits only for those that are under way. What
 * a part computes depends on its number, not on the thread.
 *
 * Parts may wait for each other (GOMP_barrier, and flags of oneDNN's own): there are as many
 * threads as parts, and one that waits holds its part. */
#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PARTS_MOST = 1024 };
/* Looks before a thread sleeps: some 20 to 60 us, as long as what stands between two kernels. */
enum { LOOKS = 1000 };

/* The region that is open: only one is at a time. `next` has its number in the upper half, then how
 * many parts it has and the next one that nobody has begun, 16 bits each. */
static struct {
    pthread_mutex_t callers;
    void (*run)(void *data);
    void *data;
    _Atomic uint64_t next;
    _Atomic uint32_t opened;  /* Regions; helpers sleep on it. */
    _Atomic uint32_t asleep;  /* Helpers. */
    _Atomic uint32_t ended;   /* Parts; the caller sleeps on it... */
    _Atomic uint32_t awaited; /* ...until there are as many as this, 0: it does not sleep. */
    _Atomic uint32_t arrived; /* At barriers of this region. */
    uint32_t helpers;
} team = {.callers = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    uint32_t part;
    uint32_t parts;   /* 0 outside of regions. */
    uint32_t barrier; /* Barriers that the part has left. */
} own;
static _Thread_local int wanted; /* By omp_set_num_threads; 0: nothing. */

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word, uint32_t count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* ------------------------------------------------------------------ parts */

/* Does the next part that nobody has begun; false when there is none. */
static bool do_one(void)
{
    uint64_t next = atomic_load_explicit(&team.next, memory_order_acquire);
    do {
        if ((uint16_t)next >= (uint16_t)(next >> 16)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&team.next, &next, next + 1,
                                                    memory_order_acq_rel, memory_order_acquire));
    /* The region stays open until this part has ended. */
    own.part = (uint16_t)next;
    own.parts = (uint16_t)(next >> 16);
    own.barrier = 0;
    team.run(team.data);
    own.parts = 0;
    own.part = 0;
    const uint32_t ended = atomic_fetch_add(&team.ended, 1) + 1;
    if (ended == atomic_load(&team.awaited)) {
        wake(&team.ended, 1);
    }
    return true;
}

static void *help(void *unused)
{
    (void)unused;
    for (;;) {
        const uint32_t opened = atomic_load(&team.opened);
        bool found = do_one();
        for (int i = 0; i < LOOKS && !found; i++) {
            relax();
            found = do_one();
        }
        if (!found) {
            atomic_fetch_add(&team.asleep, 1);
            sleep_while(&team.opened, opened);
            atomic_fetch_sub(&team.asleep, 1);
        }
    }
    return NULL;
}

/* Until all parts have ended. */
static void await(uint32_t parts)
{
    uint32_t ended = atomic_load(&team.ended);
    for (int i = 0; i < LOOKS && ended < parts; i++) {
        relax();
        ended = atomic_load(&team.ended);
    }
    atomic_store(&team.awaited, parts);
    for (ended = atomic_load(&team.ended); ended < parts; ended = atomic_load(&team.ended)) {
        sleep_while(&team.ended, ended);
    }
    atomic_store(&team.awaited, 0);
}

/* In a child the helpers are not there. */
static void forget_helpers(void)
{
    team.callers = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&team.asleep, 0);
    team.helpers = 0;
}

/* Of `parts` threads those that are lacking; fewer parts where they cannot be had. */
static uint32_t gather(uint32_t parts)
{
    static bool forgets = false;
    if (!forgets) {
        forgets = pthread_atfork(NULL, NULL, forget_helpers) == 0;
    }
    for (pthread_t thread; forgets && team.helpers + 1 < parts; team.helpers++) {
        if (pthread_create(&thread, NULL, help, NULL) != 0) {
            break;
        }
        (void)pthread_detach(thread);
    }
    return team.helpers + 1 < parts ? team.helpers + 1 : parts;
}

/* ------------------------------------------------------------ OpenMP's names */

void GOMP_parallel(void (*run)(void *), void *data, unsigned count, unsigned flags);
void GOMP_barrier(void);

int omp_get_thread_num(void) { return (int)own.part; }

int omp_get_num_threads(void) { return own.parts > 0 ? (int)own.parts : 1; }

int omp_in_parallel(void) { return own.parts > 1; }

void omp_set_num_threads(int count) { wanted = count > 0 ? count : 1; }

int omp_get_max_threads(void)
{
    cpu_set_t allowed;
    if (wanted == 0) {
        const char *set = getenv("OMP_NUM_THREADS");
        const long count = set == NULL ? 0 : strtol(set, NULL, 10);
        const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
        wanted = count > 0 && count < PARTS_MOST ? (int)count : known ? CPU_COUNT(&allowed) : 1;
    }
    return wanted;
}

/* A region within a region has one part. */
void GOMP_parallel(void (*run)(void *), void *data, unsigned count, unsigned flags)
{
    const uint32_t asked = count > 0 ? count : (uint32_t)omp_get_max_threads();
    const uint32_t outer[] = {own.part, own.parts, own.barrier};
    (void)flags; /* How threads are bound to processors. */
    if (asked <= 1 || outer[1] > 0) {
        own.part = 0;
        own.parts = 1;
        run(data);
        own.part = outer[0];
        own.parts = outer[1];
        own.barrier = outer[2];
        return;
    }
    (void)pthread_mutex_lock(&team.callers);
    const uint32_t parts = gather(asked < PARTS_MOST ? asked : PARTS_MOST);
    team.run = run;
    team.data = data;
    atomic_store(&team.ended, 0);
    atomic_store(&team.arrived, 0);
    const uint64_t opened = atomic_load(&team.opened) + 1;
    atomic_store(&team.next, opened << 32 | (uint64_t)parts << 16);
    atomic_store(&team.opened, (uint32_t)opened);
    if (atomic_load(&team.asleep) > 0) {
        wake(&team.opened, parts - 1);
    }
    while (do_one()) {
    }
    await(parts);
    (void)pthread_mutex_unlock(&team.callers);
}

void GOMP_barrier(void)
{
    if (own.parts <= 1) {
        return;
    }
    const uint32_t all = own.parts * ++own.barrier;
    atomic_fetch_add(&team.arrived, 1);
    for (uint32_t i = 0; atomic_load(&team.arrived) < all; i++) {
        if (i < LOOKS) {
            relax();
        } else {
            (void)sched_yield();
        }
    }
}
