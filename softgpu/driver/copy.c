/* Copies and fills, done in streams. */
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "driver.h"
#include "mapping.h"
#include "stream.h"

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

static CUresult submit(struct queue *queue, bool waits, void (*action)(void *), void *given) {
  struct work work = {action, given, false};
  bool added = waits ? queue_do(queue, &work) : queue_add(queue, &work, NULL, NULL);
  return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

struct copy {
  uint64_t target, source;
  size_t bytes;
  struct mapping *held[2];
  unsigned char staged[]; /* what is copied, when the program may change it as soon as the call returns */
};

static void end_copy(struct copy *copy) {
  mapping_release(copy->held[0]);
  mapping_release(copy->held[1]);
  free(copy);
}

static void do_copy(void *given) {
  struct copy *copy = given;
  memmove((void *)(uintptr_t)copy->target, (const void *)(uintptr_t)copy->source, copy->bytes);
  end_copy(copy);
}

/* Of pageable memory, what is read is taken at once, and what is written is there when the call returns. */
static CUresult copy(struct way way, uint64_t target, enum side target_side, uint64_t source, enum side source_side,
                     size_t bytes) {
  struct queue *queue;
  bool target_known = false, source_known = false;
  struct mapping *held[2] = {NULL, NULL};
  CHECK(stream_queue(way.stream, way.own, &queue));
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
  *made = (struct copy){.target = target, .source = source, .bytes = bytes, .held = {held[0], held[1]}};
  if (staged) {
    memcpy(made->staged, (const void *)(uintptr_t)source, bytes);
    made->source = (uint64_t)(uintptr_t)made->staged;
  }
  CUresult result = submit(queue, way.waits, do_copy, made);
  if (result != CUDA_SUCCESS) end_copy(made);
  return result;
}

#define COPY(name, suffix, arguments, target, target_side, source, source_side)                                   \
  EXPORTED CUresult name##suffix arguments {                                                                       \
    return copy(LEGACY, (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, bytes); \
  }                                                                                                                \
  EXPORTED CUresult name##suffix##_ptds arguments {                                                                \
    return copy(OWN, (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, bytes);   \
  }

COPY(cuMemcpy, , (CUdeviceptr target, CUdeviceptr source, size_t bytes), target, EITHER, source, EITHER)
COPY(cuMemcpyHtoD, _v2, (CUdeviceptr target, const void *source, size_t bytes), target, KNOWN, source, HOST)
COPY(cuMemcpyDtoH, _v2, (void *target, CUdeviceptr source, size_t bytes), target, HOST, source, KNOWN)
COPY(cuMemcpyDtoD, _v2, (CUdeviceptr target, CUdeviceptr source, size_t bytes), target, KNOWN, source, KNOWN)

#define COPY_ASYNC(name, suffix, parameters, target, target_side, source, source_side)                      \
  EXPORTED CUresult name##suffix parameters {                                                               \
    return copy(in(stream), (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source, source_side, \
                bytes);                                                                                     \
  }                                                                                                         \
  EXPORTED CUresult name##suffix##_ptsz parameters {                                                        \
    return copy(in_own(stream), (uint64_t)(uintptr_t)target, target_side, (uint64_t)(uintptr_t)source,      \
                source_side, bytes);                                                                        \
  }

COPY_ASYNC(cuMemcpyAsync, , (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), target, EITHER,
           source, EITHER)
COPY_ASYNC(cuMemcpyHtoDAsync, _v2, (CUdeviceptr target, const void *source, size_t bytes, CUstream stream), target, KNOWN,
           source, HOST)
COPY_ASYNC(cuMemcpyDtoHAsync, _v2, (void *target, CUdeviceptr source, size_t bytes, CUstream stream), target, HOST,
           source, KNOWN)
COPY_ASYNC(cuMemcpyDtoDAsync, _v2, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), target, KNOWN,
           source, KNOWN)

/* Fills. */

struct fill {
  uint64_t target;
  size_t pitch, row, height, element; /* bytes, but for the height in rows */
  uint32_t value;
  struct mapping *held;
};

static void end_fill(struct fill *fill) {
  mapping_release(fill->held);
  free(fill);
}

static void do_fill(void *given) {
  struct fill *fill = given;
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
  end_fill(fill);
}

/* `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch` bytes apart. */
static CUresult fill(struct way way, uint64_t target, size_t pitch, uint32_t value, size_t element, size_t width,
                     size_t height) {
  struct queue *queue;
  size_t row, last;
  struct mapping *held = NULL;
  CHECK(stream_queue(way.stream, way.own, &queue));
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
  *made = (struct fill){target, pitch, row, height, element, value, held};
  CUresult result = submit(queue, way.waits, do_fill, made);
  if (result != CUDA_SUCCESS) end_fill(made);
  return result;
}

#define FILL(bits, type)                                                                                            \
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

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
