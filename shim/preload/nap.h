/* Times, and short sleeps between looks at what another thread or process does. */
#ifndef TESSERA_NAP_H
#define TESSERA_NAP_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAP = 50000 };

/* Nanoseconds. */
static inline uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A signal may end it early. It is no point where a thread can be cancelled, as nanosleep would be: locks are held. */
static inline void nap(long nanoseconds) {
  int before = errno; /* what a program sees of it must not change */
  struct timespec time = {0, nanoseconds};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
  errno = before;
}

#endif
