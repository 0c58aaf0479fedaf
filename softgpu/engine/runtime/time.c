/* Clocks. What nanosleep asks for is added to all clocks of the launch instead of being slept. */
#include "internal.h"

#include <time.h>
#include <x86intrin.h>

static uint64_t nanoseconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t now(void) { return nanoseconds_of(CLOCK_MONOTONIC); }

uint64_t cycles(void) { return __rdtsc(); }

static uint64_t slept(const struct launch *launch) {
  return atomic_load_explicit(&launch->slept, memory_order_relaxed);
}

/* Cycles since the start of the launch; every read of a worker gives more than the one before. */
uint64_t read_clock(struct sg_env *env) {
  struct worker *worker = worker_of(env);
  uint64_t time = cycles() - worker->launch->started_cycles + slept(worker->launch);
  if (time <= worker->last_clock) time = worker->last_clock + 1;
  worker->last_clock = time;
  return time;
}

uint64_t read_timer(struct sg_env *env) { return nanoseconds_of(CLOCK_REALTIME) + slept(worker_of(env)->launch); }

void sleep_nanoseconds(struct sg_env *env, uint32_t nanoseconds) {
  atomic_fetch_add_explicit(&worker_of(env)->launch->slept, nanoseconds, memory_order_relaxed);
}
