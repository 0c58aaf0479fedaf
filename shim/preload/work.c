#include "work.h"

#include <string.h>

#include "session.h"

static void *record(const struct work *work, size_t bytes) {
  struct wire_other_work *record = record_begin(work->kind, work->function, bytes);
  record->head.flags = work->captured ? WIRE_CAPTURED : 0;
  record->place = work->stream ? work->stream->place : (struct wire_place){0, 0};
  return record;
}

static void *begin(struct work *work, size_t bytes) {
  work->captured = work->stream && stream_captured(work->stream);
  if (work->stream) lock_take(&work->stream->lock);
  return record(work, bytes);
}

void *work_begin(struct work *work, enum wire_kind kind, unsigned function, size_t bytes, struct stream *stream) {
  *work = (struct work){.stream = stream, .function = function, .kind = kind};
  return begin(work, bytes);
}

void *work_begin_synchronous(struct work *work, enum wire_kind kind, unsigned function, size_t bytes,
                             struct stream *stream) {
  *work = (struct work){.stream = stream, .function = function, .kind = kind, .waits = true, .synchronous = true};
  return begin(work, bytes);
}

void *work_more(struct work *work, void *before, size_t bytes) {
  work->sequence = record_end(before);
  return record(work, bytes);
}

void work_call(struct work *work, void *record) {
  work->sequence = record_end(record);
  if (work->waits && work->stream) lock_give(&work->stream->lock);
  inside++;
}

CUresult work_end(struct work *work, CUresult result) {
  if (__builtin_expect(result != CUDA_SUCCESS || work->synchronous, 0))
    record_outcome(work->sequence, work->function, result, NULL, 0);
  work_over(work);
  return result;
}

void work_over(struct work *work) {
  inside--;
  if (!work->waits && work->stream) lock_give(&work->stream->lock);
}

void record_outcome(uint64_t of, unsigned function, CUresult result, const uint8_t *content, uint64_t bytes) {
  struct wire_outcome *record = record_begin(WIRE_OUTCOME, function, sizeof *record);
  record->of = of;
  record->result = (int32_t)result;
  record->has_content = content != NULL;
  record->bytes = bytes;
  if (content)
    memcpy(record->content, content, sizeof record->content);
  else
    memset(record->content, 0, sizeof record->content);
  record_end(record);
}
