/* What streams are given besides kernels, copies and graphs: host functions, events, operations on words of memory. */
#include "hooks.h"
#include "memory_operations.h"
#include "session.h"
#include "work.h"

#define WORK(symbol, prepare, arguments)                                          \
  if (!recording()) return real.symbol arguments;                                 \
  struct work work;                                                               \
  prepare;                                                                        \
  return work_end(&work, real.symbol arguments)

/* Host functions. */

static void host_function(struct work *work, unsigned number, struct stream *stream, uint64_t function, void *data,
                          bool callback) {
  struct wire_host_function *record = work_begin(work, WIRE_HOST_FUNCTION, number, sizeof *record, stream);
  record->body = (struct wire_host_function_body){function, (uint64_t)(uintptr_t)data, callback, 0};
  work_call(work, record);
}

#define HOST_FUNCTION(symbol, per_thread)                                                                            \
  CUresult hook_##symbol(CUstream stream, CUhostFn function, void *data) {                                           \
    WORK(symbol, host_function(&work, NUMBER_##symbol, stream_of(stream, per_thread), (uintptr_t)function, data,     \
                               false), (stream, function, data));                                                    \
  }

#define CALLBACK(symbol, per_thread)                                                                                 \
  CUresult hook_##symbol(CUstream stream, CUstreamCallback function, void *data, unsigned flags) {                   \
    WORK(symbol, host_function(&work, NUMBER_##symbol, stream_of(stream, per_thread), (uintptr_t)function, data,     \
                               true), (stream, function, data, flags));                                              \
  }

HOST_FUNCTION(cuLaunchHostFunc, false)
HOST_FUNCTION(cuLaunchHostFunc_ptsz, true)
CALLBACK(cuStreamAddCallback, false)
CALLBACK(cuStreamAddCallback_ptsz, true)

/* Events. */

static void event(struct work *work, enum wire_kind kind, unsigned number, struct stream *stream, CUevent event,
                  unsigned flags) {
  struct wire_event_record *record = work_begin(work, kind, number, sizeof *record, stream);
  record->body = (struct wire_event_body){(uint64_t)(uintptr_t)event, flags, 0};
  work_call(work, record);
}

_Static_assert(sizeof(struct wire_event_record) == sizeof(struct wire_event_wait), "both kinds are the same");

#define EVENT(symbol, kind, per_thread, flags, parameters, arguments)                                                \
  CUresult hook_##symbol parameters {                                                                                \
    WORK(symbol, event(&work, kind, NUMBER_##symbol, stream_of(stream, per_thread), handle, flags), arguments);      \
  }

EVENT(cuEventRecord, WIRE_EVENT_RECORD, false, 0, (CUevent handle, CUstream stream), (handle, stream))
EVENT(cuEventRecord_ptsz, WIRE_EVENT_RECORD, true, 0, (CUevent handle, CUstream stream), (handle, stream))
EVENT(cuEventRecordWithFlags, WIRE_EVENT_RECORD, false, flags, (CUevent handle, CUstream stream, unsigned flags),
      (handle, stream, flags))
EVENT(cuEventRecordWithFlags_ptsz, WIRE_EVENT_RECORD, true, flags, (CUevent handle, CUstream stream, unsigned flags),
      (handle, stream, flags))
EVENT(cuStreamWaitEvent, WIRE_EVENT_WAIT, false, flags, (CUstream stream, CUevent handle, unsigned flags),
      (stream, handle, flags))
EVENT(cuStreamWaitEvent_ptsz, WIRE_EVENT_WAIT, true, flags, (CUstream stream, CUevent handle, unsigned flags),
      (stream, handle, flags))

/* Of all the streams of a context: the place has no stream. */
static void context_event(struct work *work, enum wire_kind kind, unsigned number, CUcontext context, CUevent event) {
  struct wire_event_record *record = work_begin(work, kind, number, sizeof *record, NULL);
  record->place.context = (uint64_t)(uintptr_t)context;
  record->body = (struct wire_event_body){(uint64_t)(uintptr_t)event, 0, 0};
  work_call(work, record);
}

CUresult hook_cuCtxRecordEvent(CUcontext context, CUevent handle) {
  WORK(cuCtxRecordEvent, context_event(&work, WIRE_EVENT_RECORD, NUMBER_cuCtxRecordEvent, context, handle),
       (context, handle));
}

CUresult hook_cuCtxWaitEvent(CUcontext context, CUevent handle) {
  WORK(cuCtxWaitEvent, context_event(&work, WIRE_EVENT_WAIT, NUMBER_cuCtxWaitEvent, context, handle),
       (context, handle));
}

/* Semaphores of others: what they do to memory is theirs. */

static void other(struct work *work, unsigned number, struct stream *stream) {
  struct wire_other_work *record = work_begin(work, WIRE_OTHER_WORK, number, sizeof *record, stream);
  work_call(work, record);
}

#define SEMAPHORES(symbol, params, per_thread)                                                                       \
  CUresult hook_##symbol(const CUexternalSemaphore *semaphores, const params *list, unsigned count,                  \
                         CUstream stream) {                                                                          \
    WORK(symbol, other(&work, NUMBER_##symbol, stream_of(stream, per_thread)), (semaphores, list, count, stream));   \
  }

SEMAPHORES(cuSignalExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, false)
SEMAPHORES(cuSignalExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, true)
SEMAPHORES(cuWaitExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, false)
SEMAPHORES(cuWaitExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, true)

/* Operations on words of memory. */

static void batch(struct work *work, unsigned number, struct stream *stream, const CUstreamBatchMemOpParams *list,
                  unsigned count, unsigned flags) {
  if (!memory_operations_known(list, count)) {
    other(work, number, stream);
    return;
  }
  size_t bytes = sizeof(struct wire_memory_operations) + count * sizeof(struct wire_memory_operation);
  struct wire_memory_operations *record = work_begin(work, WIRE_MEMORY_OPERATIONS, number, bytes, stream);
  put_memory_operations(&record->body, list, count, flags);
  work_call(work, record);
}

static CUstreamBatchMemOpParams one(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams made = {.pad = {0}};
  made.waitValue.operation = type;
  made.waitValue.address = address;
  made.waitValue.value64 = value;
  made.waitValue.flags = flags;
  return made;
}

#define BATCH(symbol, per_thread)                                                                                    \
  CUresult hook_##symbol(CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags) {          \
    WORK(symbol, batch(&work, NUMBER_##symbol, stream_of(stream, per_thread), list, count, flags),                   \
         (stream, count, list, flags));                                                                              \
  }

#define ONE(symbol, type, value_type, per_thread)                                                                    \
  CUresult hook_##symbol(CUstream stream, CUdeviceptr_v2 address, value_type value, unsigned flags) {                \
    CUstreamBatchMemOpParams list = one(type, address, value, flags);                                                \
    WORK(symbol, batch(&work, NUMBER_##symbol, stream_of(stream, per_thread), &list, 1, 0),                          \
         (stream, address, value, flags));                                                                           \
  }

#define FORMS(name, type, value_type)                                                                                \
  ONE(name, type, value_type, false)                                                                                 \
  ONE(name##_ptsz, type, value_type, true)                                                                           \
  ONE(name##_v2, type, value_type, false)                                                                            \
  ONE(name##_v2_ptsz, type, value_type, true)

BATCH(cuStreamBatchMemOp, false)
BATCH(cuStreamBatchMemOp_ptsz, true)
BATCH(cuStreamBatchMemOp_v2, false)
BATCH(cuStreamBatchMemOp_v2_ptsz, true)
FORMS(cuStreamWaitValue32, CU_STREAM_MEM_OP_WAIT_VALUE_32, cuuint32_t)
FORMS(cuStreamWaitValue64, CU_STREAM_MEM_OP_WAIT_VALUE_64, cuuint64_t)
FORMS(cuStreamWriteValue32, CU_STREAM_MEM_OP_WRITE_VALUE_32, cuuint32_t)
FORMS(cuStreamWriteValue64, CU_STREAM_MEM_OP_WRITE_VALUE_64, cuuint64_t)
