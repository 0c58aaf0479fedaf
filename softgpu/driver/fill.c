/* Fills: one command for all of them. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "copy.h"
#include "driver.h"
#include "mapping.h"

enum { SHORT = 1 << 18, PIECE = 1 << 14 };

struct fill {
  struct command command;
  CUDA_MEMSET_NODE_PARAMS_v2 params;
  size_t row; /* bytes */
  struct memory memory;
};

/* Whether all bytes of an element are the same, as they are for 0. */
static bool is_plain(const CUDA_MEMSET_NODE_PARAMS_v2 *params) {
  unsigned byte = params->value & 0xff, bits = 8 * params->elementSize;
  return !((params->value ^ byte * 0x01010101u) << (32 - bits));
}

static bool is_empty(const CUDA_MEMSET_NODE_PARAMS_v2 *params) { return !params->width || !params->height; }

static void fill_row(uint8_t *at, const CUDA_MEMSET_NODE_PARAMS_v2 *params, size_t row) {
  if (is_plain(params)) {
    memset(at, (int)(params->value & 0xff), row);
    return;
  }
  memcpy(at, &params->value, params->elementSize); /* the lower bytes: this machine is little-endian */
  for (size_t done = params->elementSize; done < row;) { /* what there is, once more, but no more than caches hold */
    size_t more = done < PIECE ? done : PIECE;
    if (more > row - done) more = row - done;
    memcpy(at + done, at, more);
    done += more;
  }
}

static CUresult run(const struct command *command) {
  const struct fill *fill = (const struct fill *)command;
  if (is_empty(&fill->params)) return CUDA_SUCCESS;
  for (size_t y = 0; y < fill->params.height; y++)
    fill_row((uint8_t *)(uintptr_t)(fill->params.dst + y * fill->params.pitch), &fill->params, fill->row);
  cost_fill(fill->memory.device, fill->row * fill->params.height);
  return CUDA_SUCCESS;
}

static void show(const void *command, FILE *to) {
  const struct fill *fill = command;
  const CUDA_MEMSET_NODE_PARAMS_v2 *params = &fill->params;
  show_address(to, "address", params->dst);
  show_number(to, "pitch", params->pitch);
  show_number(to, "element", params->elementSize);
  show_number(to, "value", params->value & 0xffffffffu >> (32 - 8 * params->elementSize));
  show_number(to, "width", params->width);
  show_number(to, "rows", params->height);
  show_number(to, "bytes", is_empty(params) ? 0 : fill->row * params->height);
}

static void end(struct command *command) {
  mapping_release(((struct fill *)command)->memory.held);
  free(command);
}

static const struct command_kind FILL = {
    .type = CU_GRAPH_NODE_TYPE_MEMSET, .run = run, .work = "memset", .show = show, .end = end};

void fill_params(const struct command *command, CUDA_MEMSET_NODE_PARAMS_v2 *params) {
  *params = ((const struct fill *)command)->params;
}

static CUresult make(const CUDA_MEMSET_NODE_PARAMS_v2 *params, const struct stream_place *place, struct fill **made) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  struct fill fill = {command_begin(&FILL, place), .params = *params};
  size_t element = params->elementSize, last;
  fill.params.ctx = place->context;
  if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
  if (params->dst % element || (params->height > 1 && params->pitch % element)) return CUDA_ERROR_INVALID_VALUE;
  if (!is_empty(params)) {
    if (__builtin_mul_overflow(params->width, element, &fill.row) || (params->height > 1 && params->pitch < fill.row) ||
        __builtin_mul_overflow(params->height - 1, params->pitch, &last) || last + fill.row < last)
      return CUDA_ERROR_INVALID_VALUE;
    fill.memory = memory_hold(params->dst, last + fill.row);
    if (!fill.memory.whole) return CUDA_ERROR_INVALID_VALUE;
  }
  *made = malloc(sizeof fill);
  if (*made)
    **made = fill;
  else
    mapping_release(fill.memory.held);
  return *made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fill_command(const CUDA_MEMSET_NODE_PARAMS_v2 *params, const struct stream_place *place,
                      struct command **made) {
  struct fill *fill;
  CHECK(make(params, place, &fill));
  *made = &fill->command;
  return CUDA_SUCCESS;
}

/* Only into host memory a synchronous fill waits for its end, as the page "API synchronization behavior" says. */
CUresult fill_call(struct way way, const CUDA_MEMSET_NODE_PARAMS_v2 *params) {
  struct stream_place place;
  struct fill *fill;
  CUresult result;
  CHECK(stream_place(way.stream, way.own, &place));
  if (way.synchronous) CHECK(capture_permits_stream(&place));
  CHECK(make(params, &place, &fill));
  if (is_empty(params)) {
    free(fill);
    return CUDA_SUCCESS;
  }
  bool waits = way.synchronous && fill->memory.host, soon = fill->row <= SHORT && fill->row * params->height <= SHORT;
  if (!waits && soon && submit_now(&place, &fill->command, &result)) return result;
  return submit(&place, waits, &fill->command);
}

static CUresult fill(struct way way, CUdeviceptr target, size_t pitch, unsigned value, unsigned element, size_t width,
                     size_t height) {
  return fill_call(way, &(CUDA_MEMSET_NODE_PARAMS_v2){target, pitch, value, element, width, height, NULL});
}

#define FILLS(bits, type)                                                                                        \
  EXPORTED CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count) {                         \
    return fill(LEGACY, target, 0, value, bits / 8, count, 1);                                                   \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr target, type value, size_t count) {                    \
    return fill(OWN, target, 0, value, bits / 8, count, 1);                                                      \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD##bits(CUdeviceptr_v1 target, type value, unsigned int count) {                     \
    return fill(LEGACY, target, 0, value, bits / 8, count, 1);                                                   \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t count, CUstream stream) {      \
    return fill(IN(stream), target, 0, value, bits / 8, count, 1);                                               \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr target, type value, size_t count, CUstream stream) { \
    return fill(IN_OWN(stream), target, 0, value, bits / 8, count, 1);                                           \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD2D##bits##_v2(CUdeviceptr target, size_t pitch, type value, size_t width,           \
                                           size_t height) {                                                      \
    return fill(LEGACY, target, pitch, value, bits / 8, width, height);                                          \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr target, size_t pitch, type value, size_t width,      \
                                                size_t height) {                                                 \
    return fill(OWN, target, pitch, value, bits / 8, width, height);                                             \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD2D##bits(CUdeviceptr_v1 target, unsigned int pitch, type value, unsigned int width, \
                                      unsigned int height) {                                                     \
    return fill(LEGACY, target, pitch, value, bits / 8, width, height);                                          \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch, type value, size_t width,         \
                                             size_t height, CUstream stream) {                                   \
    return fill(IN(stream), target, pitch, value, bits / 8, width, height);                                      \
  }                                                                                                              \
  EXPORTED CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr target, size_t pitch, type value, size_t width,    \
                                                  size_t height, CUstream stream) {                              \
    return fill(IN_OWN(stream), target, pitch, value, bits / 8, width, height);                                  \
  }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
