/* Events: the operation that recorded one last, and when it was done. */
#include <pthread.h>
#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "command.h"
#include "driver.h"
#include "freed.h"
#include "handles.h"
#include "shared_event.h"

static const unsigned FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

/* Of one record: the event may be recorded again, or be gone, before that is done. */
struct stamp {
  _Atomic unsigned references;
  uint64_t nanoseconds; /* written by the operation, read once that is done */
  struct shared_event *shared; /* a reference, and its record, for other processes */
  uint64_t record;
};

struct event {
  CUcontext context; /* first: `handles_end` */
  unsigned long long context_id;
  unsigned flags;
  struct operation *recorded; /* NULL: never */
  struct stamp *stamp;
  struct shared_event *shared; /* NULL: it is this process's alone */
  struct queue *foreign;       /* where records of other processes are waited for */
  uint64_t record;             /* of the shared event: the one that `recorded` is about */
  struct capture_point *point; /* it was recorded in a captured stream after that */
};

static struct freed freed = FREED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* `recorded`, `stamp` and `point` of all */

static void let_go(struct stamp *stamp) {
  if (!stamp || --stamp->references) return;
  shared_event_release(stamp->shared);
  free(stamp);
}

static void take_time(void *given) {
  struct stamp *stamp = given;
  clock_step(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  clock_settle();
  stamp->nanoseconds = clock_stamp();
  if (stamp->shared) shared_event_finish(stamp->shared, stamp->record);
  let_go(stamp);
}

static void go_on(void *given) {
  (void)given;
  clock_step(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  clock_settle();
}

static void end(void *given) {
  struct event *event = given;
  if (event->recorded) operation_release(event->recorded);
  let_go(event->stamp);
  capture_point_release(event->point);
  if (event->foreign) queue_drop(event->foreign);
  shared_event_release(event->shared);
  object_free(&freed, event);
}

/* The reference to `shared` is taken. */
static CUresult make(const struct here *here, unsigned flags, struct shared_event *shared, CUevent *handle) {
  struct event *event = object_make(&freed, sizeof *event);
  if (!event) {
    shared_event_release(shared);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *event = (struct event){.context = here->context, .context_id = here->id, .flags = flags, .shared = shared};
  /* of no context: none waits for other processes as a whole */
  if (shared) event->foreign = queue_make(NULL, false, false);
  if ((shared && !event->foreign) || !handle_add(EVENT, event)) {
    end(event);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUevent)event;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventCreate(CUevent *handle, unsigned int flags) {
  struct here here;
  struct shared_event *shared = NULL;
  CHECK(current(&here));
  if (!handle || flags & ~FLAGS) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS) {
    if (!(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    CHECK(shared_event_make(here.device, &shared));
  }
  return make(&here, flags, shared, handle);
}

EXPORTED CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!handle_is(EVENT, event, false)) return CUDA_ERROR_INVALID_HANDLE;
  const struct event *found = (struct event *)event;
  return found->shared ? shared_event_handle(found->shared, handle) : CUDA_ERROR_INVALID_HANDLE;
}

EXPORTED CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
  struct here here;
  struct shared_event *shared;
  CHECK(current(&here));
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  CHECK(shared_event_open(&handle, &shared));
  return make(&here, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, event);
}

EXPORTED CUresult cuEventDestroy_v2(CUevent handle) {
  CHECK(ready());
  if (!handle_is(EVENT, handle, true)) return CUDA_ERROR_INVALID_HANDLE;
  end(handle);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventDestroy(CUevent handle) { return cuEventDestroy_v2(handle); }

void events_end(CUcontext context) { handles_end(EVENT, context, end); }

/* Commands: to record an event, or to wait for what recorded it last. */

struct about_event {
  struct command command;
  CUevent event;
};

static void end_about(struct command *command) { free(command); }

static CUresult check_event(const struct command *command) {
  CUevent event = ((const struct about_event *)command)->event;
  return handle_is(EVENT, event, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult queue_record(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                             struct operation **made) {
  CUevent handle = ((struct about_event *)command)->event;
  if (!handle_is(EVENT, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
  struct event *event = (struct event *)handle;
  struct stamp *stamp = calloc(1, sizeof *stamp);
  if (!stamp) return CUDA_ERROR_OUT_OF_MEMORY;
  stamp->references = 2;
  struct operation *operation;
  pthread_mutex_lock(&lock);
  if (event->shared) {
    stamp->shared = shared_event_hold(event->shared);
    stamp->record = shared_event_begin(event->shared);
  }
  bool added = queue_add(queue, &(struct work){take_time, stamp, false}, after, count, &operation);
  if (added) {
    event->record = stamp->record;
    if (event->recorded) operation_release(event->recorded);
    let_go(event->stamp);
    event->recorded = operation;
    event->stamp = stamp;
    capture_point_release(event->point);
    event->point = NULL;
    if (made) *made = operation_hold(operation);
  }
  pthread_mutex_unlock(&lock);
  if (!added) {
    stamp->references = 1;
    take_time(stamp);
  }
  return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult queue_wait(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                           struct operation **made);

static const struct command_kind RECORD = {
    .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .end = end_about, .queue = queue_record, .check = check_event};
static const struct command_kind WAIT = {
    .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .end = end_about, .queue = queue_wait, .check = check_event};

CUresult event_command(bool record, CUevent event, struct command **made) {
  if (!handle_is(EVENT, event, false)) return CUDA_ERROR_INVALID_HANDLE;
  struct about_event *about = malloc(sizeof *about);
  if (!about) return CUDA_ERROR_OUT_OF_MEMORY;
  *about = (struct about_event){command_begin(record ? &RECORD : &WAIT, &(struct stream_place){0}), event};
  *made = &about->command;
  return CUDA_SUCCESS;
}

CUevent event_of(const struct command *command) { return ((const struct about_event *)command)->event; }

static CUresult submit_about(const struct command_kind *kind, CUevent event, const struct stream_place *place) {
  struct about_event *made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = (struct about_event){command_begin(kind, place), event};
  return submit(place, false, &made->command);
}

/* Where an event is recorded or waited for. `external`: as a node of the graph that is captured there. */
static CUresult place_of(CUevent event, CUstream stream, bool own, bool external, struct stream_place *place) {
  CHECK(stream_place(stream, own, place));
  if (!handle_is(EVENT, event, false)) return CUDA_ERROR_INVALID_HANDLE;
  return external && !is_captured(place) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream stream, bool own, unsigned flags) {
  struct stream_place place;
  struct capture_point *point;
  if (flags & ~CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  CHECK(place_of(handle, stream, own, flags, &place));
  if (flags || !is_captured(&place)) return submit_about(&RECORD, handle, &place);
  CHECK(capture_record(&place, &point));
  struct event *event = (struct event *)handle;
  pthread_mutex_lock(&lock);
  capture_point_release(event->point);
  event->point = point;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventRecord(CUevent event, CUstream stream) { return record(event, stream, false, 0); }
EXPORTED CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return record(event, stream, true, 0); }

EXPORTED CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return record(event, stream, false, flags);
}

EXPORTED CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  return record(event, stream, true, flags);
}

/* When another process has recorded an event last, an operation that is done when that is stands for it. The lock is
 * held. */
static void look_elsewhere(struct event *event) {
  uint64_t last = shared_event_last(event->shared);
  bool foreign = last && !event->stamp, done = last && shared_event_done(event->shared, last);
  if (last == event->record && !(foreign && done)) return;
  void *given = done ? NULL : shared_event_wait_begin(event->shared, last);
  struct operation *operation = NULL;
  if (given && !queue_add(event->foreign, &(struct work){shared_event_wait, given, false}, NULL, 0, &operation))
    shared_event_wait_end(given);
  if (!done && !operation) return; /* no memory: as if it had not been recorded anew */
  if (event->recorded) operation_release(event->recorded);
  let_go(event->stamp);
  event->stamp = NULL;
  event->recorded = operation;
  event->record = last;
}

/* What recorded an event last, with a reference; NULL when nothing has. */
static CUresult last_record(CUevent handle, struct operation **recorded, struct stamp **stamp) {
  CHECK(ready());
  if (!handle_is(EVENT, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
  struct event *event = (struct event *)handle;
  pthread_mutex_lock(&lock);
  if (event->shared) look_elsewhere(event);
  *recorded = event->recorded ? operation_hold(event->recorded) : NULL;
  if (stamp && (*stamp = event->stamp)) event->stamp->references++;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

/* The same for a program that asks how far it is. */
static CUresult asked_record(CUevent handle, struct operation **recorded, struct stamp **stamp) {
  CHECK(ready());
  if (!handle_is(EVENT, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&lock);
  struct capture_point *point = capture_point_hold(((struct event *)handle)->point);
  pthread_mutex_unlock(&lock);
  CUresult result = point ? capture_ask(point) : capture_permits();
  capture_point_release(point);
  return result == CUDA_SUCCESS ? last_record(handle, recorded, stamp) : result;
}

/* What the work of an event's context came to. */
static CUresult result_of(CUevent handle) {
  const struct event *event = (struct event *)handle;
  return context_result(event->context, event->context_id);
}

EXPORTED CUresult cuEventQuery(CUevent handle) {
  struct operation *recorded;
  CHECK(asked_record(handle, &recorded, NULL));
  bool done = !recorded || operation_done(recorded);
  if (recorded) operation_release(recorded);
  return done ? result_of(handle) : CUDA_ERROR_NOT_READY;
}

EXPORTED CUresult cuEventSynchronize(CUevent handle) {
  struct operation *recorded;
  CHECK(asked_record(handle, &recorded, NULL));
  if (recorded) {
    operation_wait(recorded);
    operation_release(recorded);
  }
  return result_of(handle);
}

/* In milliseconds. */
EXPORTED CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  struct operation *recorded[2] = {NULL, NULL};
  struct stamp *stamps[2] = {NULL, NULL};
  CUevent events[2] = {start, end};
  CUresult result = milliseconds ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (int n = 0; n < 2 && result == CUDA_SUCCESS; n++) {
    result = asked_record(events[n], &recorded[n], &stamps[n]);
    if (result == CUDA_SUCCESS && (!recorded[n] || ((struct event *)events[n])->flags & CU_EVENT_DISABLE_TIMING))
      result = CUDA_ERROR_INVALID_HANDLE;
  }
  for (int n = 0; n < 2 && result == CUDA_SUCCESS; n++)
    if (!operation_done(recorded[n])) result = CUDA_ERROR_NOT_READY;
  if (result == CUDA_SUCCESS)
    *milliseconds = (float)((double)(int64_t)(stamps[1]->nanoseconds - stamps[0]->nanoseconds) / 1e6);
  for (int n = 0; n < 2; n++) {
    if (recorded[n]) operation_release(recorded[n]);
    let_go(stamps[n]);
  }
  return result;
}

EXPORTED CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

static CUresult queue_wait(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                           struct operation **made) {
  struct operation *recorded;
  CHECK(last_record(((struct about_event *)command)->event, &recorded, NULL));
  struct operation **all = malloc((count + 1) * sizeof *all);
  for (size_t n = 0; all && n < count; n++) all[n] = after[n];
  if (all && recorded) all[count] = recorded;
  bool added = all && queue_add(queue, &(struct work){go_on, NULL, false}, all, count + (recorded != NULL), made);
  free(all);
  if (recorded) operation_release(recorded);
  return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned flags, bool own) {
  struct stream_place place;
  if (flags & ~CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  CHECK(place_of(event, stream, own, flags, &place));
  pthread_mutex_lock(&lock);
  struct capture_point *point = capture_point_hold(((struct event *)event)->point);
  pthread_mutex_unlock(&lock);
  bool normal = flags || (!point && !is_captured(&place));
  CUresult result = normal ? submit_about(&WAIT, event, &place) : capture_wait(&place, point);
  capture_point_release(point);
  return result;
}

EXPORTED CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return wait_event(stream, event, flags, false);
}

EXPORTED CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  return wait_event(stream, event, flags, true);
}
