/* Work in streams: operations in order, what they wait for, and the threads that do them. */
#ifndef SOFTGPU_WORK_H
#define SOFTGPU_WORK_H

#include "api.h"
#include <stdbool.h>
#include <stddef.h>

struct queue;
struct operation;

/* What an operation does: it may not wait for other operations, and frees `given` if that has to be. `foreign`: it is a
 * function of the program. */
struct work {
  void (*action)(void *given);
  void *given;
  bool foreign;
};

/* Called by an action: its operation is not done when the action returns, but when the one that this returns is given
 * to `operation_end`, by any thread and perhaps before that. No thread is kept meanwhile. */
struct operation *operation_defer(void);
void operation_end(struct operation *operation);

/* A queue of a context, or NULL: no memory. `ordered`: its operations and those of the legacy queue wait for each
 * other. */
struct queue *queue_make(CUcontext context, bool legacy, bool ordered);
/* What is in it is still done; nothing may be added any more. */
void queue_drop(struct queue *queue);

/* Append an operation, to be done after `count` others too. False, and nothing is done: no memory. With `made` the
 * caller gets a reference. */
bool queue_add(struct queue *queue, const struct work *work, struct operation *const *after, size_t count,
               struct operation **made);
/* The same, and wait for it. */
bool queue_do(struct queue *queue, const struct work *work);
/* The same if it has nothing to wait for. False otherwise, and nothing is done. */
bool queue_try(struct queue *queue, const struct work *work);

/* Take a place in a queue for what other queues do. It is done after `count` operations and what else an operation that
 * is appended now has to wait for. `start`, in the queue `other`, is done when all those are; `end`, in this queue, is
 * not done before `queue_join` has said of at most `room` operations that it waits for them. The caller gets references
 * to both. */
bool queue_fork(struct queue *queue, struct queue *other, struct operation *const *after, size_t count, size_t room,
                struct operation **start, struct operation **end);
void queue_join(struct operation *end, struct operation *const *after, size_t count);

/* The last operation that was appended, with a reference; NULL when all are done. */
struct operation *queue_last(struct queue *queue);

bool operation_done(const struct operation *operation);
struct operation *operation_hold(struct operation *operation);
void operation_release(struct operation *operation);

/* Wait for an operation; the reference stays. */
void operation_wait(struct operation *operation);

/* Wait until all that was in the queues of a context is done. */
void work_wait(CUcontext context);

/* The same, and wait until a queue has fewer than so many operations. False: not all is done, but for some seconds no
 * thread has done anything. */
enum { STUCK_SECONDS = 5 };
bool work_wait_patiently(CUcontext context);
bool queue_room(struct queue *queue, size_t most);

#endif
