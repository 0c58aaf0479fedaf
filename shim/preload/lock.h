/* A lock of one word, which needs no library and is free when it is zero. It is never held while the loader or the
 * program runs, and while the driver does only those of streams are. Giving it back is a plain store: who waits looks
 * again and again, seldom in the end. */
#ifndef TESSERA_LOCK_H
#define TESSERA_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lock {
  uint32_t held;
};

void lock_wait(struct lock *lock); /* lock.c: until it is taken */

static inline bool lock_try(struct lock *lock) {
  uint32_t free = 0;
  return __atomic_compare_exchange_n(&lock->held, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *lock) {
  if (__builtin_expect(!lock_try(lock), 0)) lock_wait(lock);
}

static inline void lock_give(struct lock *lock) { __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE); }

#endif
