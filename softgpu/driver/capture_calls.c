/* The functions of captures; what they do is in `capture.c`. */
#include "capture.h"
#include "driver.h"
#include "stream.h"

static CUresult place_to_ask(CUstream stream, bool own, struct stream_place *place) {
  CHECK(stream_find(stream, own, place));
  return place->legacy ? capture_permits_legacy(place->context, true) : CUDA_SUCCESS;
}

static CUresult begin(CUstream stream, bool own, CUstreamCaptureMode mode) {
  struct stream_place place;
  CHECK(stream_find(stream, own, &place));
  return capture_begin(&place, mode, NULL, NULL, 0);
}

static CUresult begin_in(CUstream stream, bool own, CUgraph graph, const CUgraphNode *nodes,
                         const CUgraphEdgeData *data,
                         size_t count, CUstreamCaptureMode mode) {
  struct stream_place place;
  CHECK(stream_find(stream, own, &place));
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  CHECK(edges_check(data, count));
  return capture_begin(&place, mode, graph, nodes, count);
}

static CUresult end(CUstream stream, bool own, CUgraph *graph) {
  struct stream_place place;
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  CHECK(stream_find(stream, own, &place));
  return capture_end(&place, graph);
}

static CUresult inform(CUstream stream, bool own, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                       const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count) {
  struct stream_place place;
  struct capture_info info;
  if (!status || (edges && !nodes)) return CUDA_ERROR_INVALID_VALUE;
  CHECK(place_to_ask(stream, own, &place));
  CHECK(capture_inform(&place, &info));
  *status = info.status;
  if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = info.nodes;
  if (edges) *edges = info.edges;
  if (count) *count = info.count;
  return CUDA_SUCCESS;
}

static CUresult depend(CUstream stream, bool own, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                       unsigned flags) {
  struct stream_place place;
  if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  CHECK(place_to_ask(stream, own, &place));
  CHECK(edges_check(data, count));
  return capture_depend(&place, nodes, count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

#define CALLS(suffix, own)                                                                                             \
  EXPORTED CUresult cuStreamBeginCapture##suffix(CUstream stream) {                                                    \
    return begin(stream, own, CU_STREAM_CAPTURE_MODE_GLOBAL);                                                          \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode) {                       \
    return begin(stream, own, mode);                                                                                   \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamBeginCaptureToGraph##suffix(CUstream stream, CUgraph graph, const CUgraphNode *nodes,      \
                                                        const CUgraphEdgeData *data, size_t count,                    \
                                                        CUstreamCaptureMode mode) {                                   \
    return begin_in(stream, own, graph, nodes, data, count, mode);                                                     \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *graph) { return end(stream, own, graph); }    \
  EXPORTED CUresult cuStreamIsCapturing##suffix(CUstream stream, CUstreamCaptureStatus *status) {                      \
    return inform(stream, own, status, NULL, NULL, NULL, NULL, NULL);                                                  \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamGetCaptureInfo##suffix(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {   \
    return inform(stream, own, status, id, NULL, NULL, NULL, NULL);                                                    \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,  \
                                                      CUgraph *graph, const CUgraphNode **nodes, size_t *count) {      \
    return inform(stream, own, status, id, graph, nodes, NULL, count);                                                 \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamGetCaptureInfo_v3##suffix(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,  \
                                                      CUgraph *graph, const CUgraphNode **nodes,                       \
                                                      const CUgraphEdgeData **edges, size_t *count) {                  \
    return inform(stream, own, status, id, graph, nodes, edges, count);                                                \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamUpdateCaptureDependencies##suffix(CUstream stream, CUgraphNode *nodes, size_t count,       \
                                                              unsigned int flags) {                                    \
    return depend(stream, own, nodes, NULL, count, flags);                                                             \
  }                                                                                                                    \
  EXPORTED CUresult cuStreamUpdateCaptureDependencies_v2##suffix(CUstream stream, CUgraphNode *nodes,                  \
                                                                 const CUgraphEdgeData *data, size_t count,            \
                                                                 unsigned int flags) {                                 \
    return depend(stream, own, nodes, data, count, flags);                                                             \
  }

CALLS(, false)
CALLS(_ptsz, true)

EXPORTED CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  CHECK(ready());
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  *mode = capture_exchange_mode(*mode);
  return CUDA_SUCCESS;
}
