/* What a call does with host memory, and when, is what the page "API synchronization behavior" of the driver's
 * documentation says. Where that leaves it open, the call is taken to be as asynchronous as it may be, and no lock is
 * held meanwhile as if it waited. */
#include "copying.h"

#include <errno.h>
#include <string.h>

#include "content.h"
#include "doors.h"
#include "later.h"
#include "session.h"
#include "store.h"

static bool of_host(const struct wire_side *side) { return side->kind == WIRE_SIDE_HOST; }

static bool may_wait(const struct memory *memory) {
  return memory->kind == MEMORY_PAGEABLE || memory->kind == MEMORY_MANAGED || memory->kind == MEMORY_UNKNOWN;
}

/* What the call has read or written when it returns. Between devices it waits for nothing; what it does with managed
 * memory is not said. */
static void set_waiting(struct copy *copy, struct copy_way way) {
  const struct wire_copy_body *body = &copy->body;
  bool from = of_host(&body->from), to = of_host(&body->to);
  bool managed = body->from.kind == WIRE_SIDE_MANAGED || body->to.kind == WIRE_SIDE_MANAGED;
  copy->synchronous = !copy->order && ((from && to) || (!way.async && (from || to) && !managed));
  copy->waits = copy->synchronous || way.between || may_wait(&copy->sides.to) || may_wait(&copy->sides.from);
}

/* Content that is there already. */
static void tell_now(struct copy *copy, const struct rows *rows) {
  if (!rows_readable(rows)) return; /* what the driver makes of it is its own affair */
  if (rows->bytes <= WIRE_INLINE_BYTES) {
    rows_read(rows, copy->inline_bytes);
    content_of(copy->inline_bytes, rows->bytes, copy->body.content);
    copy->body.content_kind = WIRE_INLINE_CONTENT;
    copy->body.inline_bytes = rows->bytes;
  } else if (rows_content(rows, payloads_wanted(), copy->body.content)) {
    copy->body.content_kind = WIRE_HASHED_CONTENT;
  }
}

/* A source of a synchronous copy is read in its turn, after work that may write it, and is still there when the call
 * has returned: only then it is sure what it was. A few bytes are told now, and again if they turn out to be others. */
static void tell_source_at_once(struct copy *copy, const struct rows *rows) {
  if (rows->bytes <= WIRE_INLINE_BYTES)
    tell_now(copy, rows);
  else
    copy->body.content_kind = WIRE_LATER_CONTENT;
  if (copy->body.content_kind != WIRE_NO_CONTENT) copy->source = TELL_AFTER;
}

/* Host functions are illegal in a captured stream's graph, as that would be launched again and again, and in the legacy
 * stream if it has to wait for captured streams. There the bytes are told as they are at the call, with WIRE_PINNED. */
static bool takes_host_functions(const struct stream *stream, bool captured) {
  if (!stream || captured) return false;
  return stream->place.stream != LEGACY_STREAM || !__atomic_load_n(&session->captures, __ATOMIC_RELAXED);
}

static bool read_at_call(const struct copy *copy) {
  if (copy->order) return copy->order != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return copy->sides.from.kind == MEMORY_PAGEABLE;
}

static void prepare(struct copy *copy, struct copy_way way, const struct stream *stream, bool captured) {
  struct wire_copy_body *body = &copy->body;
  struct rows rows;
  bool in_stream = takes_host_functions(stream, captured);
  body->flags = 0;
  set_waiting(copy, way);
  if (captured) copy->synchronous = false;
  if (copy->synchronous) body->flags |= WIRE_SYNCHRONOUS;
  if (rows_of(body, &body->from, &copy->sides.from, &rows)) {
    if (copy->synchronous) {
      tell_source_at_once(copy, &rows);
    } else if (!captured && read_at_call(copy)) {
      tell_now(copy, &rows);
    } else {
      body->flags |= WIRE_PINNED;
      if (payloads_wanted() && in_stream) {
        body->content_kind = WIRE_LATER_CONTENT;
        copy->source = TELL_IN_STREAM;
      } else if (payloads_wanted()) {
        tell_now(copy, &rows);
      }
    }
  }
  if (rows_of(body, &body->to, &copy->sides.to, &rows)) {
    if (!copy->synchronous) body->flags |= WIRE_PINNED;
    if (payloads_wanted() && copy->synchronous)
      copy->target = TELL_AFTER;
    else if (payloads_wanted() && in_stream)
      copy->target = copy->waits ? TELL_SOON : TELL_IN_STREAM;
  }
}

static size_t record_bytes(const struct copy *copy) {
  return sizeof(struct wire_copy) + padded(copy->body.inline_bytes);
}

static void put_copy(struct wire_copy *record, const struct copy *copy) {
  record->body = copy->body;
  put_bytes(record + 1, copy->inline_bytes, copy->body.inline_bytes);
}

static struct stream *stream_for(struct copy_way way) { return stream_of(way.stream, way.per_thread); }

void copies_begin(struct copies *copies, unsigned number, struct copy_way way) {
  int before = errno;
  struct stream *stream = stream_for(way);
  struct copy *list = copies->list, *last = &list[copies->count - 1];
  bool captured = stream && stream_captured(stream), waits = false;
  for (struct copy *copy = list; copy <= last; copy++) {
    prepare(copy, way, stream, captured);
    waits |= copy->waits;
  }
  struct wire_copy *record = work_begin(&copies->work, WIRE_COPY, number, record_bytes(list), stream);
  copies->work.waits = waits;
  put_copy(record, list);
  for (struct copy *copy = list; copy < last; copy++) {
    record = work_more(&copies->work, record, record_bytes(copy + 1));
    copy->sequence = copies->work.sequence;
    put_copy(record, copy + 1);
  }
  work_call(&copies->work, record);
  last->sequence = copies->work.sequence;
  struct rows rows;
  for (struct copy *copy = list; copy <= last; copy++)
    if (copy->source == TELL_IN_STREAM && rows_of(&copy->body, &copy->body.from, &copy->sides.from, &rows))
      tell_rows_later(stream, copy->sequence, number, &rows, true, true);
  errno = before;
}

void copies_unknown(struct copies *copies, unsigned number, struct copy_way way) {
  int before = errno;
  copies->count = 0;
  struct wire_other_work *record = work_begin(&copies->work, WIRE_OTHER_WORK, number, sizeof *record, stream_for(way));
  copies->work.waits = true;
  work_call(&copies->work, record);
  errno = before;
}

void copy_begin(struct copies *copies, unsigned number, struct copy_way way, const CUDA_MEMCPY3D_PEER *params) {
  struct copy *one = &copies->one;
  memset(one, 0, offsetof(struct copy, inline_bytes));
  copies->list = one;
  copies->count = 1;
  copies->room = 0;
  if (copy_describe(params, &one->body, &one->sides))
    copies_begin(copies, number, way);
  else
    copies_unknown(copies, number, way);
}

struct copy *copies_list(struct copies *copies, size_t count) {
  if (count > SIZE_MAX / 2 / sizeof *copies->list) return NULL;
  copies->count = count;
  copies->room = count * sizeof *copies->list;
  return copies->list = store_take(copies->room);
}

void copies_forget(struct copies *copies) { store_give(copies->list, copies->room); }

/* A synchronous copy is over. What the host has now is what was copied, if the host got it: the copy may have changed
 * its source too. */
static void tell_after(const struct copy *copy, unsigned function) {
  const struct wire_copy_body *body = &copy->body;
  bool to_host = of_host(&body->to);
  struct rows rows;
  bool there = rows_of(body, to_host ? &body->to : &body->from, to_host ? &copy->sides.to : &copy->sides.from, &rows);
  bool wanted = there && (copy->target == TELL_AFTER || body->content_kind == WIRE_LATER_CONTENT);
  rows.doubtful = false; /* the driver has been there */
  if (there && !wanted && copy->source == TELL_AFTER) {
    unsigned char now[WIRE_INLINE_BYTES];
    rows_read(&rows, now);
    wanted = memcmp(now, copy->inline_bytes, rows.bytes) != 0;
  }
  if (wanted)
    tell_rows(copy->sequence, function, &rows, payloads_wanted() && of_host(&body->from));
  else
    record_outcome(copy->sequence, function, CUDA_SUCCESS, NULL, 0);
}

/* What was copied to pageable memory is there when the call returns, with most drivers, and the program may free it at
 * once: a host function would come too late. */
static bool all_done(const struct stream *stream) {
  if (__atomic_load_n(&session->captures, __ATOMIC_RELAXED)) return false; /* then it may not be asked */
  CUstream handle = (CUstream)(uintptr_t)stream->place.stream;
  return real.cuStreamQuery && real.cuStreamQuery(handle) == CUDA_SUCCESS;
}

static void tell_target(const struct copy *copy, const struct work *work) {
  struct rows rows;
  if (!rows_of(&copy->body, &copy->body.to, &copy->sides.to, &rows)) return;
  if (copy->target == TELL_SOON && all_done(work->stream))
    tell_rows(copy->sequence, work->function, &rows, false);
  else
    tell_rows_later(work->stream, copy->sequence, work->function, &rows, false, false);
}

static void end_copy(const struct copy *copy, const struct work *work, CUresult result) {
  if (result != CUDA_SUCCESS)
    record_outcome(copy->sequence, work->function, result, NULL, 0);
  else if (copy->synchronous)
    tell_after(copy, work->function);
  else if (copy->target != TELL_NOTHING)
    tell_target(copy, work);
}

/* Of a batch that failed nobody says which copies were done. */
static void record_doubt(const struct work *work) {
  struct work doubt;
  struct wire_other_work *record = work_begin(&doubt, WIRE_OTHER_WORK, work->function, sizeof *record, work->stream);
  work_call(&doubt, record);
  work_over(&doubt);
}

CUresult copies_end(struct copies *copies, CUresult result) {
  int before = errno;
  if (!copies->count) {
    work_end(&copies->work, result);
    errno = before;
    return result;
  }
  for (size_t n = 0; n < copies->count; n++) end_copy(&copies->list[n], &copies->work, result);
  work_over(&copies->work);
  if (result != CUDA_SUCCESS && copies->count > 1) record_doubt(&copies->work);
  if (copies->room) copies_forget(copies);
  errno = before;
  return result;
}
