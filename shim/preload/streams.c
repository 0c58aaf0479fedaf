#include "streams.h"

#include "ask.h"
#include "contexts.h"
#include "doors.h"
#include "session.h"

struct new_stream {
  uint64_t stream, context;
};

static void fill(struct entry *entry, const void *with) {
  const struct new_stream *new = with;
  struct stream *stream = (struct stream *)(void *)entry;
  stream->lock = (struct lock){0};
  stream->capturing = 0;
  stream->place = (struct wire_place){new->stream, new->context};
}

static struct stream *add(uint64_t key, uint64_t key2, struct new_stream new) {
  return (struct stream *)(void *)table_add(&session->streams, key, key2, sizeof(struct stream), fill, &new);
}

static struct stream *default_stream(uint64_t which) {
  CUcontext context = context_now();
  uint64_t key2 = (uint64_t)(uintptr_t)context;
  if (which == PER_THREAD_STREAM) key2 ^= (uint64_t)(uintptr_t)&inside << 16; /* the address tells threads apart */
  struct entry *found = table_find(&session->streams, which, key2);
  if (found) return (struct stream *)(void *)found;
  if (context) context_known(context);
  return add(which, key2, (struct new_stream){which, (uint64_t)(uintptr_t)context});
}

/* One that the program has made. What the driver does not say of it stays 0; what it does not know is not announced. */
static struct stream *announce(CUstream handle) {
  CUcontext context = NULL;
  unsigned flags = 0;
  int priority = 0;
  struct asking asking = ask_begin();
  CUresult result = real.cuStreamGetCtx ? real.cuStreamGetCtx(handle, &context) : CUDA_SUCCESS;
  if (real.cuStreamGetFlags) real.cuStreamGetFlags(handle, &flags);
  if (real.cuStreamGetPriority) real.cuStreamGetPriority(handle, &priority);
  ask_end(asking);
  if (result == CUDA_ERROR_INVALID_HANDLE) return NULL;
  if (context) context_known(context);
  struct wire_stream *record = record_begin(WIRE_STREAM, NUMBER_cuStreamCreate, sizeof *record);
  record->handle = (uint64_t)(uintptr_t)handle;
  record->context = (uint64_t)(uintptr_t)context;
  record->flags = flags;
  record->priority = priority;
  record_end(record);
  uint64_t key = (uint64_t)(uintptr_t)handle;
  return add(key, 0, (struct new_stream){key, (uint64_t)(uintptr_t)context});
}

struct stream *stream_of(CUstream handle, bool per_thread) {
  uint64_t key = (uint64_t)(uintptr_t)handle;
  if (key == 0) key = per_thread ? PER_THREAD_STREAM : LEGACY_STREAM;
  if (key <= PER_THREAD_STREAM) return default_stream(key);
  struct entry *found = table_find(&session->streams, key, 0);
  return found ? (struct stream *)(void *)found : announce(handle);
}

bool stream_capturing(struct stream *stream, bool begins) {
  bool was = __atomic_exchange_n(&stream->capturing, begins, __ATOMIC_ACQ_REL);
  if (begins && !was) __atomic_fetch_add(&session->captures, 1, __ATOMIC_RELAXED);
  if (!begins && was) __atomic_fetch_sub(&session->captures, 1, __ATOMIC_RELAXED);
  return was;
}

void captures_over(unsigned count) { __atomic_fetch_sub(&session->captures, count, __ATOMIC_RELAXED); }

static unsigned leave(struct stream *stream) { return __atomic_exchange_n(&stream->capturing, 0, __ATOMIC_ACQ_REL); }

unsigned stream_end(CUstream handle) {
  uint64_t key = (uint64_t)(uintptr_t)handle;
  struct entry *found = table_find(&session->streams, key, 0);
  unsigned captures = found ? leave((struct stream *)(void *)found) : 0;
  table_end_key(&session->streams, key, 0);
  return captures;
}

static bool of_context(const struct entry *entry, uint64_t context) {
  return ((const struct stream *)(const void *)entry)->place.context == context;
}

unsigned streams_end(uint64_t context) {
  unsigned captures = 0;
  for (unsigned bucket = 0; bucket < TABLE_BUCKETS; bucket++)
    for (struct entry *found = session->streams.buckets[bucket]; found; found = found->next)
      if (of_context(found, context)) captures += leave((struct stream *)(void *)found);
  table_end(&session->streams, of_context, context);
  return captures;
}

bool stream_captured(const struct stream *stream) {
  if (__builtin_expect(__atomic_load_n(&session->captures, __ATOMIC_RELAXED) == 0, 1)) return false;
  if (stream->place.stream == LEGACY_STREAM) return false; /* it never can be */
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  inside++;
  /* A default stream of another context than the current one cannot be asked for; it is never meant either. */
  CUresult result = real.cuStreamIsCapturing((CUstream)(uintptr_t)stream->place.stream, &status);
  inside--;
  return result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
