#include "lock.h"

#include "nap.h"

enum { SPINS = 200, SHORTEST_NAP = 10000, LONGEST_NAP = 500000 }; /* nanoseconds */

void lock_wait(struct lock *lock) {
  long time = SHORTEST_NAP;
  for (int spins = 0;; spins++) {
    if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 && lock_try(lock)) return;
    if (spins < SPINS) {
      __builtin_ia32_pause();
    } else {
      nap(time);
      if (time < LONGEST_NAP) time *= 2;
    }
  }
}
