/* Copies and fills, done in streams. */
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "command.h"
#include "driver.h"
#include "mapping.h"

enum side { HOST, KNOWN, EITHER }; /* any address; one that the driver knows; whichever it is */

/* How a call goes on: with the default stream of the context or of the thread, and waiting for the end or not. */
struct way {
  CUstream stream;
  bool own, waits;
};

static const struct way LEGACY = {0, false, true}, OWN = {0, true, true};

static struct way in(CUstream stream) { return (struct way){stream, false, false}; }
static struct way in_own(CUstream stream) { return (struct way){stream, true, false}; }

/* Whether bytes may be accessed, and whether the driver knows them. Of an address that it knows all of them must lie in one
 * allocation. `held` is NULL before. The lock is held. */
static bool fits(uint64_t address, size_t bytes, enum side side, bool *known, struct mapping **held) {
  *known = allocation_with(address, 1);
  if (*known) return allocation_hold(address, bytes, held) || side == HOST;
  return side != KNOWN && address;
}

struct copy {
  struct command command;
  uint64_t target, source;
  size_t bytes;
  struct mapping *held[2];
  unsigned char staged[]; /* what is copied, when the program may change it as soon as the call returns */
};

static CUresult do_copy(const struct command *command) {
  const struct copy *copy = (const struct copy *)command;
  memmove((void *)(uintptr_t)copy->target, (const void *)(uintptr_t)copy->source, copy->bytes);
  return CUDA_SUCCESS;
}

static void end_copy(struct command *command) {
  struct copy *copy = (struct copy *)command;
  mapping_release(copy->held[0]);
  mapping_release(copy->held[1]);
  free(copy);
}

static const struct command_kind COPY = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .run = do_copy, .end = end_copy};

/* Of pageable memory, what is read is taken at once, and what is written is there when the call returns. */
static CUresult copy(struct way way, uint64_t target, enum side target_side, uint64_t source, enum side source_side,
                     size_t bytes) {
  struct stream_place place;
  bool target_known = false, source_known = false;
  struct mapping *held[2] = {NULL, NULL};
  CHECK(stream_place(way.stream, way.own, &place));
  if (!bytes) return CUDA_SUCCESS;
  allocations_read();
  bool good = fits(target, bytes, target_side, &target_known, &held[0]) &&
              fits(source, bytes, source_side, &source_known, &held[1]);
  allocations_release();
  if (!target_known) way.waits = true;
  bool staged = !way.waits && !source_known;
  struct copy *made = good ? malloc(sizeof *made + (staged ? bytes : 0)) : NULL;
  if (!made) {
    mapping_release(held[0]);
    mapping_release(held[1]);
    return good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  }
  *made = (struct copy){command_begin(&COPY, &place), target, source, bytes, {held[0], held[1]}};
  if (staged) {
    memcpy(made->staged, (const void *)(uintptr_t)source, bytes);
    made->source = (uint64_t)(uintptr_t)made->staged;
  }
  return submit(&place, way.waits, &made->command);
}

#define COPIES(name, suffix, arguments, target, target_side, source, source_side)                                   \
  EXPORTED CUresult name##suffix arguments {                                                                       \
    return copy(LEGACY, (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, bytes); \
  }                                                                                                                \
  EXPORTED CUresult name##suffix##_ptds arguments {                                                                \
    return copy(OWN, (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, bytes);   \
  }

COPIES(cuMemcpy, , (CUdeviceptr target, CUdeviceptr source, size_t bytes), target, EITHER, source, EITHER)
COPIES(cuMemcpyHtoD, _v2, (CUdeviceptr target, const void *source, size_t bytes), target, KNOWN, source, HOST)
COPIES(cuMemcpyDtoH, _v2, (void *target, CUdeviceptr source, size_t bytes), target, HOST, source, KNOWN)
COPIES(cuMemcpyDtoD, _v2, (CUdeviceptr target, CUdeviceptr source, size_t bytes), target, KNOWN, source, KNOWN)

#define COPIES_ASYNC(name, suffix, parameters, target, target_side, source, source_side)                      \
  EXPORTED CUresult name##suffix parameters {                                                               \
    return copy(in(stream), (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, \
                bytes);                                                                                     \
  }                                                                                                         \
  EXPORTED CUresult name##suffix##_ptsz parameters {                                                        \
    return copy(in_own(stream), (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source,      \
                source_side, bytes);                                                                        \
  }

COPIES_ASYNC(cuMemcpyAsync, , (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), target, EITHER,
           source, EITHER)
COPIES_ASYNC(cuMemcpyHtoDAsync, _v2, (CUdeviceptr target, const void *source, size_t bytes, CUstream stream), target, KNOWN,
           source, HOST)
COPIES_ASYNC(cuMemcpyDtoHAsync, _v2, (void *target, CUdeviceptr source, size_t bytes, CUstream stream), target, HOST,
           source, KNOWN)
COPIES_ASYNC(cuMemcpyDtoDAsync, _v2, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), target, KNOWN,
           source, KNOWN)

/* Fills. */

struct fill {
  struct command command;
  uint64_t target;
  size_t pitch, row, height, element; /* bytes, but for the height in rows */
  uint32_t value;
  struct mapping *held;
};

static CUresult do_fill(const struct command *command) {
  const struct fill *fill = (const struct fill *)command;
  for (size_t y = 0; y < fill->height; y++) {
    uint8_t *at = (uint8_t *)(uintptr_t)(fill->target + y * fill->pitch);
    if (fill->element == 1) {
      memset(at, (int)fill->value, fill->row);
      continue;
    }
    memcpy(at, &fill->value, fill->element); /* the lower bytes: this machine is little-endian */
    for (size_t done = fill->element; done < fill->row;) { /* what there is, once more */
      size_t more = done < fill->row - done ? done : fill->row - done;
      memcpy(at + done, at, more);
      done += more;
    }
  }
  return CUDA_SUCCESS;
}

static void end_fill(struct command *command) {
  mapping_release(((struct fill *)command)->held);
  free(command);
}

static const struct command_kind FILL = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .run = do_fill, .end = end_fill};

/* `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch` bytes apart. */
static CUresult fill(struct way way, uint64_t target, size_t pitch, uint32_t value, size_t element, size_t width,
                     size_t height) {
  struct stream_place place;
  size_t row, last;
  struct mapping *held = NULL;
  CHECK(stream_place(way.stream, way.own, &place));
  if (target % element || pitch % element) return CUDA_ERROR_INVALID_VALUE;
  if (!width || !height) return CUDA_SUCCESS;
  if (__builtin_mul_overflow(width, element, &row) || (height > 1 && pitch < row) ||
      __builtin_mul_overflow(height - 1, pitch, &last) || last + row < last)
    return CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  bool good = allocation_hold(target, last + row, &held);
  allocations_release();
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  struct fill *made = malloc(sizeof *made);
  if (!made) {
    mapping_release(held);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *made = (struct fill){command_begin(&FILL, &place), target, pitch, row, height, element, value, held};
  return submit(&place, way.waits, &made->command);
}

#define FILLS(bits, type)                                                                                            \
  EXPORTED CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count) {                            \
    return fill(LEGACY, target, 0, value, bits / 8, count, 1);                                                      \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr target, type value, size_t count) {                       \
    return fill(OWN, target, 0, value, bits / 8, count, 1);                                                         \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t count, CUstream stream) {         \
    return fill(in(stream), target, 0, value, bits / 8, count, 1);                                                  \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr target, type value, size_t count, CUstream stream) {    \
    return fill(in_own(stream), target, 0, value, bits / 8, count, 1);                                              \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD2D##bits##_v2(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height) { \
    return fill(LEGACY, target, pitch, value, bits / 8, width, height);                                             \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr target, size_t pitch, type value, size_t width,         \
                                                size_t height) {                                                    \
    return fill(OWN, target, pitch, value, bits / 8, width, height);                                                \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch, type value, size_t width,            \
                                             size_t height, CUstream stream) {                                      \
    return fill(in(stream), target, pitch, value, bits / 8, width, height);                                         \
  }                                                                                                                 \
  EXPORTED CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr target, size_t pitch, type value, size_t width,       \
                                                  size_t height, CUstream stream) {                                 \
    return fill(in_own(stream), target, pitch, value, bits / 8, width, height);                                     \
  }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
