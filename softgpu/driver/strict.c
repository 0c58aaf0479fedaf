/* Strict mode.
 *
 * Programs that depend on more than real drivers promise may come to a standstill there: a thread frees memory, and
 * keeps the context until its work is done, which waits for what another thread would call next. They do here as well;
 * but when nobody has done anything for some seconds, a line says so, and the context's work has failed. */
#include "strict.h"

#include <pthread.h>

#include "driver.h"

enum { LONGEST_QUEUE = 1024, MOST_KEPT = 64 };

static bool strict;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all that follows */
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static struct {
  CUcontext context;
  pthread_t thread;
} kept[MOST_KEPT];
static _Atomic unsigned kept_count; /* also read without the lock */

bool strict_begin(void) { return flag_variable("SOFTGPU_STRICT", &strict); }

/* Whether another thread keeps it. The lock is held. */
static bool is_kept(CUcontext context) {
  for (unsigned n = 0; n < kept_count; n++)
    if (kept[n].context == context && !pthread_equal(kept[n].thread, pthread_self())) return true;
  return false;
}

static void keep(CUcontext context) {
  pthread_mutex_lock(&lock);
  while (is_kept(context) || kept_count == MOST_KEPT) pthread_cond_wait(&freed, &lock);
  kept[kept_count].context = context;
  kept[kept_count++].thread = pthread_self();
  pthread_mutex_unlock(&lock);
}

static void let_go(CUcontext context) {
  pthread_mutex_lock(&lock);
  unsigned place = 0;
  while (kept[place].context != context || !pthread_equal(kept[place].thread, pthread_self())) place++;
  kept[place] = kept[--kept_count];
  pthread_cond_broadcast(&freed);
  pthread_mutex_unlock(&lock);
}

void strict_pass(CUcontext context) {
  if (!kept_count) return;
  pthread_mutex_lock(&lock);
  while (is_kept(context)) pthread_cond_wait(&freed, &lock);
  pthread_mutex_unlock(&lock);
}

void strict_wait(CUcontext context) {
  if (!strict) {
    work_wait(context);
    return;
  }
  keep(context);
  if (!work_wait_patiently(context)) {
    complain("strict: memory or code of a context is given back or loaded, which keeps the context until its work is "
             "done; nothing of it has gone on for %d seconds", STUCK_SECONDS);
    context_fail(context, context_id(context), CUDA_ERROR_LAUNCH_TIMEOUT);
    work_wait(context);
  }
  let_go(context);
}

void strict_load(CUcontext context) {
  if (strict) strict_wait(context);
}

CUresult strict_room(const struct stream_place *place) {
  if (!strict || queue_room(place->queue, LONGEST_QUEUE)) return CUDA_SUCCESS;
  complain("strict: a stream has %d operations, more than which it takes only when some are done; none was for %d "
           "seconds", LONGEST_QUEUE, STUCK_SECONDS);
  context_fail(place->context, place->context_id, CUDA_ERROR_LAUNCH_TIMEOUT);
  return CUDA_ERROR_LAUNCH_TIMEOUT;
}
