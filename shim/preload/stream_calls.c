/* Streams and events that programs make and end. */
#include "doors.h"
#include "hooks.h"
#include "streams.h"
#include "things.h"

static CUresult made(CUstream *stream, CUresult result) {
  if (result == CUDA_SUCCESS && stream && *stream) stream_of(*stream, false);
  return result;
}

CUresult hook_cuStreamCreate(CUstream *stream, unsigned flags) {
  if (!recording()) return real.cuStreamCreate(stream, flags);
  return made(stream, DRIVER(real.cuStreamCreate(stream, flags)));
}

CUresult hook_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  if (!recording()) return real.cuStreamCreateWithPriority(stream, flags, priority);
  return made(stream, DRIVER(real.cuStreamCreateWithPriority(stream, flags, priority)));
}

/* Default streams do not end: the driver says so. */
static bool may_end(CUstream stream) { return number_of(stream) > PER_THREAD_STREAM && recording(); }

struct stream_ending {
  struct ending ending;
  unsigned captures;
};

static struct stream_ending begin(CUstream stream, unsigned function) {
  struct wire_end what = {.kind = WIRE_STREAM, .handle = number_of(stream)};
  struct ending ending = ending_begin(function, what);
  return (struct stream_ending){ending, stream_end(stream)};
}

static CUresult ended(struct stream_ending *end, CUresult result) {
  if (result == CUDA_SUCCESS) captures_over(end->captures);
  return ending_done(&end->ending, result);
}

CUresult hook_cuStreamDestroy(CUstream stream) {
  if (!may_end(stream)) return real.cuStreamDestroy(stream);
  struct stream_ending end = begin(stream, NUMBER_cuStreamDestroy);
  return ended(&end, real.cuStreamDestroy(stream));
}

CUresult hook_cuStreamDestroy_v2(CUstream stream) {
  if (!may_end(stream)) return real.cuStreamDestroy_v2(stream);
  struct stream_ending end = begin(stream, NUMBER_cuStreamDestroy_v2);
  return ended(&end, real.cuStreamDestroy_v2(stream));
}

/* Events. */

static CUresult event_made(const CUevent *event, unsigned flags, bool imported, unsigned function, CUresult result) {
  if (result != CUDA_SUCCESS || !event || !*event) return result;
  struct wire_event record = {
      .handle = number_of(*event), .context = context_here(), .flags = flags, .imported = imported};
  record_thing(WIRE_EVENT, function, 0, &record, sizeof record);
  return result;
}

CUresult hook_cuEventCreate(CUevent *event, unsigned flags) {
  if (!recording()) return real.cuEventCreate(event, flags);
  return event_made(event, flags, false, NUMBER_cuEventCreate, DRIVER(real.cuEventCreate(event, flags)));
}

CUresult hook_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle_v1 handle) {
  if (!recording()) return real.cuIpcOpenEventHandle(event, handle);
  unsigned flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING; /* as all of these have */
  CUresult result = DRIVER(real.cuIpcOpenEventHandle(event, handle));
  return event_made(event, flags, true, NUMBER_cuIpcOpenEventHandle, result);
}

static struct ending end_event(CUevent event, unsigned function) {
  return ending_begin(function, (struct wire_end){.kind = WIRE_EVENT, .handle = number_of(event)});
}

CUresult hook_cuEventDestroy(CUevent event) {
  if (!event || !recording()) return real.cuEventDestroy(event);
  struct ending ending = end_event(event, NUMBER_cuEventDestroy);
  return ending_done(&ending, real.cuEventDestroy(event));
}

CUresult hook_cuEventDestroy_v2(CUevent event) {
  if (!event || !recording()) return real.cuEventDestroy_v2(event);
  struct ending ending = end_event(event, NUMBER_cuEventDestroy_v2);
  return ending_done(&ending, real.cuEventDestroy_v2(event));
}

CUresult hook_cuIpcGetEventHandle(CUipcEventHandle_v1 *handle, CUevent event) {
  if (!recording()) return real.cuIpcGetEventHandle(handle, event);
  CUresult result = DRIVER(real.cuIpcGetEventHandle(handle, event));
  struct wire_export record = {.address = number_of(event), .kind = WIRE_EVENT};
  if (result == CUDA_SUCCESS) record_thing(WIRE_EXPORT, NUMBER_cuIpcGetEventHandle, 0, &record, sizeof record);
  return result;
}
