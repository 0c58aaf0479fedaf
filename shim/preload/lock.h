/* A lock of one word, which needs no library and is free when it is zero. It is never held while the driver, the loader
 * or the program runs, but for those of streams, which are held while the driver takes in their work. */
#ifndef TESSERA_LOCK_H
#define TESSERA_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lock {
  uint32_t word; /* 0: free; 1: held; 2: held, and somebody may sleep */
};

void lock_wait(struct lock *lock); /* lock.c: the slow ends */
void lock_wake(struct lock *lock);

static inline void lock_take(struct lock *lock) {
  uint32_t free = 0;
  if (!__atomic_compare_exchange_n(&lock->word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) lock_wait(lock);
}

static inline void lock_give(struct lock *lock) {
  if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2) lock_wake(lock);
}

#endif
