/* What the program's threads wait for, and what they hear to be done. No lock is held over a wait. */
#include "contexts.h"
#include "hooks.h"
#include "session.h"
#include "work.h"

static void fill(struct wire_synchronize *record, enum wire_waited what, uint64_t event, bool query) {
  record->event = event;
  record->what = what;
  record->query = query;
}

/* Begin a wait; `stream` NULL: for all of a context, or an event. */
static void begin(struct work *work, unsigned number, enum wire_waited what, struct stream *stream, CUcontext context,
                  CUevent event) {
  struct wire_synchronize *record = work_begin_synchronous(work, WIRE_SYNCHRONIZE, number, sizeof *record, stream);
  if (!stream) record->place.context = (uint64_t)(uintptr_t)context;
  fill(record, what, (uint64_t)(uintptr_t)event, false);
  work_call(work, record);
}

CUresult hook_cuCtxSynchronize(void) {
  if (!recording()) return real.cuCtxSynchronize();
  struct work work;
  begin(&work, NUMBER_cuCtxSynchronize, WIRE_WAITED_CONTEXT, NULL, context_now(), NULL);
  return work_end(&work, real.cuCtxSynchronize());
}

CUresult hook_cuCtxSynchronize_v2(CUcontext context) {
  if (!recording()) return real.cuCtxSynchronize_v2(context);
  struct work work;
  begin(&work, NUMBER_cuCtxSynchronize_v2, WIRE_WAITED_CONTEXT, NULL, context ? context : context_now(), NULL);
  return work_end(&work, real.cuCtxSynchronize_v2(context));
}

CUresult hook_cuEventSynchronize(CUevent event) {
  if (!recording()) return real.cuEventSynchronize(event);
  struct work work;
  begin(&work, NUMBER_cuEventSynchronize, WIRE_WAITED_EVENT, NULL, NULL, event);
  return work_end(&work, real.cuEventSynchronize(event));
}

CUresult hook_cuEventQuery(CUevent event) {
  if (!recording()) return real.cuEventQuery(event);
  inside++;
  CUresult result = real.cuEventQuery(event);
  inside--;
  if (result != CUDA_SUCCESS) return result;
  struct wire_synchronize *record = record_begin(WIRE_SYNCHRONIZE, NUMBER_cuEventQuery, sizeof *record);
  record->place = (struct wire_place){0, 0};
  fill(record, WIRE_WAITED_EVENT, (uint64_t)(uintptr_t)event, true);
  record_end(record);
  return result;
}

#define SYNCHRONIZE(symbol, per_thread)                                                                    \
  if (!recording()) return real.symbol(stream);                                                            \
  struct work work;                                                                                        \
  begin(&work, NUMBER_##symbol, WIRE_WAITED_STREAM, stream_of(stream, per_thread), NULL, NULL);            \
  return work_end(&work, real.symbol(stream))

CUresult hook_cuStreamSynchronize(CUstream stream) { SYNCHRONIZE(cuStreamSynchronize, false); }
CUresult hook_cuStreamSynchronize_ptsz(CUstream stream) { SYNCHRONIZE(cuStreamSynchronize_ptsz, true); }

/* The stream's lock is held from the question to the record: work that another thread gives it meanwhile is recorded
 * behind, and not among what is done. If another thread is just giving it work, which may take until the stream has
 * room, nothing is waited for and nothing recorded: that it was done then would be of no use. */
static CUresult queried(struct stream *held, unsigned number, CUresult result) {
  inside--;
  if (!held) return result;
  if (result == CUDA_SUCCESS) {
    struct wire_synchronize *record = record_begin(WIRE_SYNCHRONIZE, number, sizeof *record);
    record->place = held->place;
    fill(record, WIRE_WAITED_STREAM, 0, true);
    record_end(record);
  }
  lock_give(&held->lock);
  return result;
}

#define QUERY(symbol, per_thread)                                                 \
  if (!recording()) return real.symbol(handle);                                   \
  struct stream *stream = stream_of(handle, per_thread);                          \
  if (stream && !lock_try(&stream->lock)) stream = NULL;                          \
  inside++;                                                                       \
  return queried(stream, NUMBER_##symbol, real.symbol(handle))

CUresult hook_cuStreamQuery(CUstream handle) { QUERY(cuStreamQuery, false); }
CUresult hook_cuStreamQuery_ptsz(CUstream handle) { QUERY(cuStreamQuery_ptsz, true); }
