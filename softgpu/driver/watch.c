/* Memory that somebody waits for to change. One thread looks at all of it, ever less often: a sixteenth of the time
 * since something new came is what it adds to that, so that short waits are short and long ones cost nothing. */
#include "watch.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

#include "driver.h"
#include "thread.h"

enum { SHORTEST = 10000, LONGEST = 1000000, IDLE = 2000000000, PART = 16, SHARE = 8 }; /* nanoseconds; fractions */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all that follows */
static pthread_cond_t added;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct watch *watches;
static bool running;         /* the thread */
static uint64_t last_added;  /* when */
static _Atomic unsigned count; /* also read without the lock */

static void make_condition(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&added, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* And once more when one was over, as others may wait for what came after it. The lock is held. */
static void look_at_all(void) {
  for (bool again = true; again;) {
    again = false;
    for (struct watch **at = &watches; *at;) {
      struct watch *next = (*at)->next;
      if ((*at)->look(*at)) {
        *at = next;
        count--;
        again = true;
      } else {
        at = &(*at)->next;
      }
    }
  }
}

/* Until something is added, but no longer. The lock is held before and after. */
static bool wait_for(uint64_t nanoseconds) {
  uint64_t until = nanoseconds_now() + nanoseconds;
  struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
  return pthread_cond_timedwait(&added, &lock, &time) == 0;
}

static void *serve(void *given) {
  (void)given;
  prctl(PR_SET_TIMERSLACK, 1ul);
  pthread_mutex_lock(&lock);
  while (watches || wait_for(IDLE) || watches) {
    uint64_t before = nanoseconds_now();
    look_at_all();
    uint64_t after = nanoseconds_now(), pause = (after - last_added) / PART, least = SHARE * (after - before);
    if (pause < SHORTEST) pause = SHORTEST;
    if (pause > LONGEST) pause = LONGEST;
    if (watches) wait_for(pause > least ? pause : least);
  }
  running = false;
  pthread_mutex_unlock(&lock);
  return NULL;
}

bool watch_add(struct watch *watch) {
  pthread_once(&once, make_condition);
  pthread_mutex_lock(&lock);
  if (!running) running = thread_begin(serve);
  if (running) {
    watch->next = watches;
    watches = watch;
    count++;
    last_added = nanoseconds_now();
    pthread_cond_signal(&added);
  }
  bool added_one = running;
  pthread_mutex_unlock(&lock);
  return added_one;
}

void watch_now(void) {
  if (!count) return;
  pthread_mutex_lock(&lock);
  look_at_all();
  pthread_mutex_unlock(&lock);
}
