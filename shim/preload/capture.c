/* Captures of streams: what they are given becomes a graph. Streams that join a capture by waiting for events are found
 * when the driver is asked about them, which is done as long as some capture may be going on. */
#include "ask.h"
#include "hooks.h"
#include "streams.h"
#include "work.h"

struct beginning {
  struct work work;
  bool was; /* a capture that was begun before */
};

static void begin(struct beginning *this, unsigned number, CUstream handle, bool per_thread, CUstreamCaptureMode mode) {
  struct stream *stream = stream_of(handle, per_thread);
  struct wire_capture *record = work_begin(&this->work, WIRE_CAPTURE_BEGIN, number, sizeof *record, stream);
  record->graph = 0;
  record->mode = mode;
  record->unused = 0;
  /* Before the call: what other threads give the stream next may be captured already. */
  this->was = stream && stream_capturing(stream, true);
  work_call(&this->work, record);
}

static CUresult begun(struct beginning *this, CUresult result) {
  if (result != CUDA_SUCCESS && this->work.stream && !this->was) stream_capturing(this->work.stream, false);
  return work_end(&this->work, result);
}

#define BEGIN(symbol, per_thread, mode, arguments)                                \
  if (!recording()) return real.symbol arguments;                                 \
  struct beginning this;                                                          \
  begin(&this, NUMBER_##symbol, stream, per_thread, mode);                        \
  return begun(&this, real.symbol arguments)

#define TO_GRAPH                                                                                                \
  CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,        \
      CUstreamCaptureMode mode

CUresult hook_cuStreamBeginCapture(CUstream stream) {
  BEGIN(cuStreamBeginCapture, false, CU_STREAM_CAPTURE_MODE_GLOBAL, (stream));
}

CUresult hook_cuStreamBeginCapture_ptsz(CUstream stream) {
  BEGIN(cuStreamBeginCapture_ptsz, true, CU_STREAM_CAPTURE_MODE_GLOBAL, (stream));
}

CUresult hook_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  BEGIN(cuStreamBeginCapture_v2, false, mode, (stream, mode));
}

CUresult hook_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  BEGIN(cuStreamBeginCapture_v2_ptsz, true, mode, (stream, mode));
}

CUresult hook_cuStreamBeginCaptureToGraph(TO_GRAPH) {
  BEGIN(cuStreamBeginCaptureToGraph, false, mode, (stream, graph, after, edges, count, mode));
}

CUresult hook_cuStreamBeginCaptureToGraph_ptsz(TO_GRAPH) {
  BEGIN(cuStreamBeginCaptureToGraph_ptsz, true, mode, (stream, graph, after, edges, count, mode));
}

/* Whether a capture is going on there, whatever has become of it; true if the driver does not say. */
static bool in_capture(const struct stream *stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  struct asking asking = ask_begin();
  if (real.cuStreamIsCapturing((CUstream)(uintptr_t)stream->place.stream, &status) != CUDA_SUCCESS)
    status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ask_end(asking);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A call that fails may have ended the capture all the same: one that was spoiled, or not joined. */
static CUresult end(struct stream *stream, unsigned number, CUresult result, const CUgraph *graph) {
  inside--;
  if (!stream) return result;
  if (result == CUDA_SUCCESS || !in_capture(stream)) {
    if (stream_capturing(stream, false)) {
      struct wire_capture *record = record_begin(WIRE_CAPTURE_END, number, sizeof *record);
      record->place = stream->place;
      record->graph = result == CUDA_SUCCESS && graph ? (uint64_t)(uintptr_t)*graph : 0;
      record->mode = record->unused = 0;
      record_end(record);
    }
  }
  lock_give(&stream->lock);
  return result;
}

#define END(symbol, per_thread)                                                   \
  if (!recording()) return real.symbol(handle, graph);                            \
  struct stream *stream = stream_of(handle, per_thread);                          \
  if (stream) lock_take(&stream->lock);                                           \
  inside++;                                                                       \
  return end(stream, NUMBER_##symbol, real.symbol(handle, graph), graph)

CUresult hook_cuStreamEndCapture(CUstream handle, CUgraph *graph) { END(cuStreamEndCapture, false); }
CUresult hook_cuStreamEndCapture_ptsz(CUstream handle, CUgraph *graph) { END(cuStreamEndCapture_ptsz, true); }
