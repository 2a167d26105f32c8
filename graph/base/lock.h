/* lock.h - mutexes that are held until a block ends. */
#pragma once

#include <pthread.h>

static inline void graft_lock_end(pthread_mutex_t *const *lock)
{
    (void)pthread_mutex_unlock(*lock);
}

/* Once in a block. */
#define GRAFT_LOCKED(lock)                                                                         \
    __attribute__((cleanup(graft_lock_end))) pthread_mutex_t *const graft_locked = (lock);         \
    (void)pthread_mutex_lock(graft_locked)
