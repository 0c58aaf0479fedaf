/* The thread that ends launches at their deadline, and lets other threads join one whose first blocks take long. */
#include "internal.h"

#include <time.h>

static const uint64_t TICK = 100000000; /* nanoseconds between looks while there are launches */
enum { QUIET_TICKS = 10 };              /* without a launch, after which it waits for the next one */

/* Returns when to look again. */
static uint64_t look(struct sg_pool *pool, uint64_t time) {
  uint64_t next = time + TICK;
  for (struct launch *launch = pool->active; launch; launch = launch->following) {
    if (time >= launch->deadline) {
      fail_deadline(launch);
      continue;
    }
    if (launch->deadline < next) next = launch->deadline;
    bool late = time > launch->started && time - launch->started >= TICK / 2;
    if (late && atomic_load(&launch->open)) pool_call_locked(launch);
  }
  return next;
}

void *watch(void *given) {
  struct sg_pool *pool = given;
  uint64_t seen = 0;
  int quiet = 0;
  pthread_mutex_lock(&pool->lock);
  while (!pool->closing) {
    uint64_t next = look(pool, now());
    quiet = pool->active || pool->launches != seen ? 0 : quiet + 1;
    seen = pool->launches;
    if (quiet > QUIET_TICKS) {
      pool->dozing = true;
      pthread_cond_wait(&pool->tick, &pool->lock);
      pool->dozing = false;
      quiet = 0;
      continue;
    }
    struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
    pthread_cond_timedwait(&pool->tick, &pool->lock, &until);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}
