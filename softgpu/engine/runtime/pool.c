/* The pool: its threads, which launches they may join, and what calling threads use. */
#include "internal.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t STACK = 8u << 20; /* bytes; frames of compiled code can be large */
enum { SPINS = 2000 };                /* looks at a launch's threads before sleeping until they are done */

static unsigned usable_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (unsigned)CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (unsigned)online : 1;
}

static void mark_alive(struct sg_pool *pool) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED && madvise(memory, page, MADV_WIPEONFORK) == 0) {
    pool->alive = memory;
    *pool->alive = 1;
  } else {
    if (memory != MAP_FAILED) munmap(memory, page);
    pool->process = getpid();
  }
}

/* Whether this is the process that made the pool. */
bool pool_is_here(const struct sg_pool *pool) { return pool->alive ? *pool->alive == 1 : pool->process == getpid(); }

sg_pool *sg_pool_create(unsigned workers) {
  struct sg_pool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->workers = workers ? workers : usable_cpus();
  pool->threads = calloc(pool->workers, sizeof *pool->threads);
  pool->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!pool->threads || !pool->locale) {
    if (pool->locale) freelocale(pool->locale);
    free(pool->threads);
    free(pool);
    return NULL;
  }
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->finished, NULL);
  pthread_cond_init(&pool->tick, &monotonic);
  pthread_condattr_destroy(&monotonic);
  mark_alive(pool);
  return pool;
}

unsigned sg_pool_workers(const sg_pool *pool) { return pool->workers; }

static void free_workers(struct worker *worker) {
  while (worker) {
    struct worker *next = worker->next;
    worker_destroy(worker);
    worker = next;
  }
}

void sg_pool_destroy(sg_pool *pool) {
  if (!pool || !pool_is_here(pool)) return;
  pthread_mutex_lock(&pool->lock);
  pool->closing = true;
  pthread_cond_broadcast(&pool->work);
  pthread_cond_broadcast(&pool->tick);
  pthread_mutex_unlock(&pool->lock);
  for (unsigned i = 0; i < pool->started; i++) pthread_join(pool->threads[i], NULL);
  if (pool->watched) pthread_join(pool->watchdog, NULL);
  free_workers(pool->idle);
  free_workers(pool->helpers);
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->finished);
  pthread_cond_destroy(&pool->tick);
  pthread_mutex_destroy(&pool->lock);
  if (pool->alive) munmap(pool->alive, (size_t)sysconf(_SC_PAGESIZE));
  freelocale(pool->locale);
  free(pool->threads);
  free(pool);
}

/* A thread that takes no signals of the host program. */
bool start_thread(pthread_t *thread, void *(*main)(void *), void *given) {
  sigset_t all, before;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes)) return false;
  pthread_attr_setstacksize(&attributes, STACK);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool ok = pthread_create(thread, &attributes, main, given) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return ok;
}

/* A launch that another thread may join. */
static struct launch *open_launch(const struct sg_pool *pool) {
  for (struct launch *launch = pool->active; launch; launch = launch->following)
    if (launch->called && atomic_load(&launch->open) && !stopped(launch) &&
        atomic_load(&launch->helpers) < launch->wanted &&
        atomic_load_explicit(&launch->next_block, memory_order_relaxed) < launch->blocks)
      return launch;
  return NULL;
}

static void *help(void *given) {
  struct worker *worker = given;
  struct sg_pool *pool = worker->pool;
  pthread_mutex_lock(&pool->lock);
  while (!pool->closing) {
    struct launch *launch = open_launch(pool);
    if (!launch) {
      pthread_cond_wait(&pool->work, &pool->lock);
      continue;
    }
    atomic_fetch_add(&launch->helpers, 1);
    pthread_mutex_unlock(&pool->lock);
    work_on(worker, launch);
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_sub(&launch->helpers, 1) == 1) pthread_cond_broadcast(&pool->finished);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Start threads until `count` run, as far as that can be done. */
static void start_helpers(struct sg_pool *pool, unsigned count) {
  while (pool->started < count) {
    struct worker *worker = worker_create(pool);
    if (!worker) return;
    if (!start_thread(&pool->threads[pool->started], help, worker)) {
      worker_destroy(worker);
      return;
    }
    worker->next = pool->helpers;
    pool->helpers = worker;
    pool->started++;
  }
}

/* Let threads of the pool join a launch. */
void pool_call_locked(struct launch *launch) {
  struct sg_pool *pool = launch->pool;
  if (launch->called || !launch->wanted) return;
  launch->called = true;
  start_helpers(pool, launch->wanted);
  if (launch->wanted + 1 >= pool->workers) {
    pthread_cond_broadcast(&pool->work);
    return;
  }
  for (unsigned i = 0; i < launch->wanted; i++) pthread_cond_signal(&pool->work);
}

void pool_call(struct launch *launch) {
  pthread_mutex_lock(&launch->pool->lock);
  pool_call_locked(launch);
  pthread_mutex_unlock(&launch->pool->lock);
}

/* Make a launch known to the pool; its calling thread works with the worker that comes back. NULL: no memory. */
struct worker *pool_enter(struct sg_pool *pool, struct launch *launch) {
  pthread_mutex_lock(&pool->lock);
  struct worker *worker = pool->idle;
  if (worker)
    pool->idle = worker->next;
  else
    worker = worker_create(pool);
  if (worker && !pool->watched) pool->watched = start_thread(&pool->watchdog, watch, pool);
  if (worker && !pool->watched) {
    worker_destroy(worker);
    worker = NULL;
  }
  if (worker) {
    launch->following = pool->active;
    if (pool->active) pool->active->previous = launch;
    pool->active = launch;
    pool->launches++;
    if (pool->dozing) pthread_cond_signal(&pool->tick);
  }
  pthread_mutex_unlock(&pool->lock);
  return worker;
}

/* Wait for the threads that work on a launch, and forget it. */
void pool_leave(struct sg_pool *pool, struct launch *launch, struct worker *worker) {
  for (int i = 0; i < SPINS && atomic_load_explicit(&launch->helpers, memory_order_relaxed); i++)
    __builtin_ia32_pause();
  pthread_mutex_lock(&pool->lock);
  atomic_store(&launch->open, false);
  while (atomic_load(&launch->helpers)) pthread_cond_wait(&pool->finished, &pool->lock);
  if (launch->previous)
    launch->previous->following = launch->following;
  else
    pool->active = launch->following;
  if (launch->following) launch->following->previous = launch->previous;
  worker->next = pool->idle;
  pool->idle = worker;
  pthread_mutex_unlock(&pool->lock);
}
