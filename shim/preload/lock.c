#include "lock.h"

#include <errno.h>
#include <time.h>

enum { SPINS = 200, SHORTEST_NAP = 10000, LONGEST_NAP = 500000 }; /* nanoseconds */

void lock_wait(struct lock *lock) {
  int before = errno; /* what a program sees of it must not change */
  long nap = SHORTEST_NAP;
  for (int spins = 0;; spins++) {
    if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 && lock_try(lock)) break;
    if (spins < SPINS) {
      __builtin_ia32_pause();
    } else {
      struct timespec time = {0, nap};
      nanosleep(&time, NULL);
      if (nap < LONGEST_NAP) nap *= 2;
    }
  }
  errno = before;
}
