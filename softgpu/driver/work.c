/* Work in streams.
 *
 * A queue's operations are done one after another; its first one may have to wait for operations of other queues. It
 * then stands in the list of those that the missing one wakes, so that nobody looks at a queue in vain. Queues whose
 * first operation can be done stand in the list `ready`, from where threads take them. Whoever waits for an operation
 * does itself what is in its queue, so that work that is waited for at once never changes threads; but nothing of other
 * queues, which might go on only after this thread has, and no functions of the program, for the same reason. */
#include "work.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "driver.h"
#include "thread.h"

/* Threads look around for a moment before they sleep, as waking one takes longer than most small operations. */
enum { MOST_THREADS = 64, IDLE_SECONDS = 2, LOOKING_NANOSECONDS = 20000 };

struct operation {
  struct operation *next; /* in its queue */
  struct queue *queue;
  struct work work;
  struct operation **after; /* references; those before `waited` are done */
  size_t waits, waited;
  struct queue *woken; /* queues that wait for this one, by `follower` */
  unsigned references;
  _Atomic bool done; /* set with the lock */
  bool open;         /* it is not known yet what it waits for */
  struct moment begin, end; /* of the modelled clock: before which it cannot begin; when it ended */
};

struct queue {
  struct queue *next, *previous;     /* of all with work */
  struct queue *follower, *leader;   /* in `ready`; the first one also in the list of those that an operation wakes */
  CUcontext context;
  struct operation *first, *last;
  size_t count; /* of operations */
  bool legacy, ordered, dropped, ready;
};

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP; /* everything here; held for moments */
static pthread_cond_t calls = PTHREAD_COND_INITIALIZER;    /* `called` has grown: for idle threads */
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* something was done, or is ready: for those who wait */
static struct queue *busy;                                 /* with operations that are not done */
static struct queue *ready_first, *ready_last;
static _Thread_local struct operation *doing;              /* by this thread; NULL once it is deferred */
static _Atomic unsigned ready_count;
static unsigned running;         /* operations that threads do */
static unsigned long long ended; /* operations, ever */
/* threads: all; without work; asleep; of these, told of some */
static unsigned threads, looking, idle, called, waiting;

static void release(struct operation *operation) {
  if (!operation || --operation->references) return;
  free(operation->after);
  free(operation);
}

struct operation *operation_hold(struct operation *operation) {
  pthread_mutex_lock(&lock);
  operation->references++;
  pthread_mutex_unlock(&lock);
  return operation;
}

void operation_release(struct operation *operation) {
  pthread_mutex_lock(&lock);
  release(operation);
  pthread_mutex_unlock(&lock);
}

bool operation_done(const struct operation *operation) { return operation->done; }

struct queue *queue_make(CUcontext context, bool legacy, bool ordered) {
  struct queue *queue = calloc(1, sizeof *queue);
  if (queue) *queue = (struct queue){.context = context, .legacy = legacy, .ordered = ordered};
  return queue;
}

void queue_drop(struct queue *queue) {
  pthread_mutex_lock(&lock);
  queue->dropped = true;
  bool empty = !queue->first;
  pthread_mutex_unlock(&lock);
  if (empty) free(queue);
}

static void *serve(void *given);

static void call_somebody(void) {
  if (looking >= ready_count) return;
  if (idle) {
    idle--;
    called++;
    pthread_cond_signal(&calls);
    return;
  }
  if (threads < MOST_THREADS && thread_begin(serve)) threads++;
}

static void ready_add(struct queue *queue) {
  queue->ready = true;
  ready_count++;
  queue->follower = NULL;
  queue->leader = ready_last;
  *(ready_last ? &ready_last->follower : &ready_first) = queue;
  ready_last = queue;
}

static void ready_remove(struct queue *queue) {
  queue->ready = false;
  ready_count--;
  *(queue->leader ? &queue->leader->follower : &ready_first) = queue->follower;
  *(queue->follower ? &queue->follower->leader : &ready_last) = queue->leader;
}

/* Put a queue, which has a first operation that nobody does, where it belongs now. True when that can be done. */
static bool place(struct queue *queue) {
  struct operation *first = queue->first;
  if (first->open) return false;
  for (; first->waited < first->waits && first->after[first->waited]->done; first->waited++)
    clock_after(&first->begin, &first->after[first->waited]->end);
  if (first->waited == first->waits) {
    ready_add(queue);
    return true;
  }
  struct operation *missing = first->after[first->waited];
  queue->follower = missing->woken;
  missing->woken = queue;
  return false;
}

static void place_and_call(struct queue *queue) {
  if (place(queue)) call_somebody(); /* and who waits is told by `finish`, as something else was done */
}

static void finish(struct operation *operation) {
  struct queue *queue = operation->queue;
  operation->done = true;
  queue->count--;
  ended++;
  for (size_t n = 0; n < operation->waits; n++) release(operation->after[n]);
  operation->waits = operation->waited = 0;
  queue->first = operation->next;
  for (struct queue *woken = operation->woken, *next; woken; woken = next) {
    next = woken->follower;
    place_and_call(woken);
  }
  operation->woken = NULL;
  if (queue->first) {
    clock_after(&queue->first->begin, &operation->end);
    place_and_call(queue);
  } else {
    queue->last = NULL;
    *(queue->previous ? &queue->previous->next : &busy) = queue->next;
    if (queue->next) queue->next->previous = queue->previous;
    if (queue->dropped) free(queue);
  }
  release(operation);
  if (waiting) pthread_cond_broadcast(&progress);
}

/* Do the first operation of a ready queue. The lock is held before and after. */
static void do_first(struct queue *queue) {
  struct operation *operation = queue->first;
  struct work work = operation->work;
  ready_remove(queue);
  running++;
  clock_enter(&operation->begin);
  pthread_mutex_unlock(&lock);
  doing = operation;
  work.action(work.given);
  struct moment end = clock_leave(work.foreign);
  pthread_mutex_lock(&lock);
  running--;
  if (doing) { /* else it may be gone */
    operation->end = end;
    finish(operation);
  }
  doing = NULL;
}

struct operation *operation_defer(void) {
  struct operation *operation = doing;
  doing = NULL;
  return operation;
}

void operation_end(struct operation *operation) {
  pthread_mutex_lock(&lock);
  clock_end(&operation->end, &operation->begin);
  finish(operation);
  pthread_mutex_unlock(&lock);
}

/* Until an operation is done, or with NULL a queue is ready, but no longer than a moment. The lock is held before and
 * after, and not in between. */
static void look_for(const struct operation *operation) {
  struct timespec now, start;
  bool found = false;
  pthread_mutex_unlock(&lock);
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    for (int n = 0; n < 16 && !found; n++) {
      __builtin_ia32_pause();
      found = operation ? operation->done : ready_count > 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!found && (now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < LOOKING_NANOSECONDS);
  pthread_mutex_lock(&lock);
}

static void *serve(void *given) {
  (void)given;
  pthread_mutex_lock(&lock);
  for (bool late = false; !late || ready_first;) {
    while (ready_first) do_first(ready_first);
    looking++;
    look_for(NULL);
    looking--;
    if (ready_first) continue;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    idle++;
    for (late = false; !called && !late;) late = pthread_cond_timedwait(&calls, &lock, &until);
    if (called) {
      called--;
      late = false;
    } else {
      idle--;
    }
  }
  threads--;
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Until something is done or ready. False: not `for_ever`, and for some seconds no thread has done anything. With the
 * modelled clock everything may take long. The lock is held before and after. */
static bool wait_for_progress(bool for_ever) {
  unsigned long long before = ended;
  struct timespec until;
  int late = 0;
  waiting++;
  if (for_ever || clock_on()) {
    pthread_cond_wait(&progress, &lock);
  } else {
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STUCK_SECONDS;
    late = pthread_cond_timedwait(&progress, &lock, &until);
  }
  waiting--;
  return !late || running || ended != before;
}

/* False as `wait_for_progress`. The lock is held before and after. */
static bool wait_for(const struct operation *operation, bool for_ever) {
  bool looked = false;
  while (!operation->done) {
    struct queue *queue = operation->queue; /* alive: it has this operation */
    if (queue->ready && !queue->first->work.foreign) {
      do_first(queue);
    } else if (!looked) {
      looked = true;
      look_for(operation);
    } else if (!wait_for_progress(for_ever)) {
      return false;
    }
  }
  return true;
}

/* What a new operation of a queue waits for besides the one before it: work of the legacy queue, or in that one work of
 * all queues that are ordered with it. */
static bool concerns(const struct queue *queue, const struct queue *other) {
  if (other == queue || other->context != queue->context) return false;
  return queue->legacy ? other->ordered : queue->ordered && other->legacy;
}

static void nothing(void *given) { (void)given; }

static const struct work NOTHING = {nothing, NULL, false};

/* Append an operation. `quiet`: who adds it waits for it, so that nobody has to be called. With `room` it is open, and
 * as many operations may follow that it waits for. The lock is held. */
static struct operation *append(struct queue *queue, const struct work *work, struct operation *const *after,
                                size_t count, size_t room, bool quiet) {
  struct operation *operation = calloc(1, sizeof *operation);
  if (!operation) return NULL;
  size_t waits = count + room;
  for (struct queue *other = busy; other; other = other->next) waits += concerns(queue, other);
  struct operation **list = waits ? malloc(waits * sizeof *list) : NULL;
  if (waits && !list) {
    free(operation);
    return NULL;
  }
  *operation = (struct operation){.queue = queue, .work = *work, .after = list, .references = 2, .open = room,
                                  .begin = clock_issue()};
  for (size_t n = 0; n < count; n++)
    if (!after[n]->done) list[operation->waits++] = after[n];
  for (struct queue *other = busy; other; other = other->next)
    if (concerns(queue, other)) list[operation->waits++] = other->last;
  for (size_t n = 0; n < operation->waits; n++) list[n]->references++;
  queue->count++;
  if (queue->last) {
    queue->last->next = operation;
    queue->last = operation;
  } else {
    queue->first = queue->last = operation;
    queue->previous = NULL;
    queue->next = busy;
    if (busy) busy->previous = queue;
    busy = queue;
    if (place(queue) && !quiet) call_somebody();
  }
  return operation;
}

bool queue_add(struct queue *queue, const struct work *work, struct operation *const *after, size_t count,
               struct operation **made) {
  pthread_mutex_lock(&lock);
  struct operation *operation = append(queue, work, after, count, 0, false);
  if (made)
    *made = operation;
  else
    release(operation);
  pthread_mutex_unlock(&lock);
  return operation;
}

/* What it waits for, and the operation before it: that is what the other queue waits for. The lock is held. */
static struct operation *append_start(struct queue *other, struct operation *end, struct operation *before) {
  struct operation **list = malloc((end->waits + 1) * sizeof *list);
  if (!list) return NULL;
  for (size_t n = 0; n < end->waits; n++) list[n] = end->after[n];
  if (before) list[end->waits] = before;
  struct operation *start = append(other, &NOTHING, list, end->waits + (before != NULL), 0, false);
  free(list);
  return start;
}

bool queue_fork(struct queue *queue, struct queue *other, struct operation *const *after, size_t count, size_t room,
                struct operation **start, struct operation **end) {
  pthread_mutex_lock(&lock);
  struct operation *before = queue->last;
  *end = append(queue, &NOTHING, after, count, room, false);
  *start = *end ? append_start(other, *end, before) : NULL;
  if (*end && !*start) {
    (*end)->open = false;
    if (queue->first == *end) place_and_call(queue);
    release(*end);
  }
  pthread_mutex_unlock(&lock);
  return *start;
}

void queue_join(struct operation *end, struct operation *const *after, size_t count) {
  pthread_mutex_lock(&lock);
  for (size_t n = 0; n < count; n++) {
    if (!after[n]->done)
      (end->after[end->waits++] = after[n])->references++;
    else
      clock_after(&end->begin, &after[n]->end);
  }
  end->open = false;
  if (end->queue->first == end) place_and_call(end->queue);
  pthread_mutex_unlock(&lock);
}

bool queue_do(struct queue *queue, const struct work *work) {
  pthread_mutex_lock(&lock);
  struct operation *operation = append(queue, work, NULL, 0, 0, true);
  if (operation) wait_for(operation, true);
  struct moment end = operation ? operation->end : (struct moment){0, 0};
  release(operation);
  pthread_mutex_unlock(&lock);
  clock_waited(&end);
  return operation;
}

bool queue_try(struct queue *queue, const struct work *work) {
  pthread_mutex_lock(&lock);
  bool free = !queue->first;
  for (struct queue *other = busy; other && free; other = other->next) free = !concerns(queue, other);
  struct operation *operation = free ? append(queue, work, NULL, 0, 0, true) : NULL;
  if (operation) do_first(queue);
  release(operation);
  pthread_mutex_unlock(&lock);
  return operation;
}

struct operation *queue_last(struct queue *queue) {
  pthread_mutex_lock(&lock);
  struct operation *last = queue->last;
  if (last) last->references++;
  pthread_mutex_unlock(&lock);
  return last;
}

void operation_wait(struct operation *operation) {
  pthread_mutex_lock(&lock);
  wait_for(operation, true);
  struct moment end = operation->end;
  pthread_mutex_unlock(&lock);
  clock_waited(&end);
}

/* One after another, of those that are there now: others may add to the queues meanwhile. */
static bool wait_for_all(CUcontext context, bool for_ever) {
  pthread_mutex_lock(&lock);
  size_t count = 0, n = 0;
  for (struct queue *queue = busy; queue; queue = queue->next) count += queue->context == context;
  struct operation **last = malloc((count + 1) * sizeof *last);
  for (struct queue *queue = busy; last && queue; queue = queue->next)
    if (queue->context == context) (last[n++] = queue->last)->references++;
  struct moment end = {0, 0};
  bool all = true;
  for (n = 0; last && n < count; n++) {
    all = all && wait_for(last[n], for_ever);
    if (all) clock_after(&end, &last[n]->end);
    release(last[n]);
  }
  free(last);
  pthread_mutex_unlock(&lock);
  clock_waited(&end);
  return all;
}

void work_wait(CUcontext context) { wait_for_all(context, true); }

bool work_wait_patiently(CUcontext context) { return wait_for_all(context, false); }

bool queue_room(struct queue *queue, size_t most) {
  bool room = true;
  pthread_mutex_lock(&lock);
  while (room && queue->count >= most) {
    struct operation *first = queue->first;
    first->references++;
    room = wait_for(first, false);
    release(first);
  }
  pthread_mutex_unlock(&lock);
  return room;
}
