/* Copies: one command for all of them.
 *
 * Which copies wait for their end is what the page "API synchronization behavior" of the driver's documentation says,
 * with one freedom that it leaves: what may be asynchronous is done by the calling thread where nothing comes before it
 * and it is short, or its source is pageable memory, which would have to be copied before the call returns anyway. */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "arena.h"
#include "array.h"
#include "capture.h"
#include "driver.h"
#include "mapping.h"
#include "vmm.h"

enum { MOST_PITCH = 2147483647, SHORT = 1 << 18 };

/* One side of a copy: where its rows lie. */
struct rows {
  uint64_t start;
  size_t pitch, slice; /* bytes from row to row, and from layer to layer */
};

struct extent {
  size_t row, height, depth; /* bytes, rows, layers */
};

struct copy {
  struct command command;
  CUDA_MEMCPY3D params;
  struct rows target, source;
  struct extent extent;
  struct memory target_memory, source_memory;
  void *staged; /* what is copied, when the program may change it as soon as the call returns */
};

struct memory memory_hold(uint64_t address, size_t bytes) {
  allocations_read();
  const struct allocation *found = allocation_with(address, 1);
  struct memory memory = {
      .known = found, .host = found && !on_device(found), .managed = found && found->kind == MANAGED,
      .device = found && on_device(found) ? found->device : OF_HOST};
  memory.whole = found && allocation_hold(address, bytes, &memory.held);
  allocations_release();
  /* of what is no more, or not yet there */
  if (!memory.known) memory.known = arenas_have(address) || is_reserved(address);
  return memory;
}

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* Rows that follow each other without gaps on both sides are one. */
static struct extent joined(struct rows target, struct rows source, struct extent extent) {
  if (extent.height == 1 || (target.pitch == extent.row && source.pitch == extent.row)) {
    extent.row *= extent.height;
    extent.height = 1;
    if (target.slice == extent.row && source.slice == extent.row) {
      extent.row *= extent.depth;
      extent.depth = 1;
    }
  }
  return extent;
}

/* They may overlap; what is there then is anybody's guess, unless it is one run. */
static void move(struct rows target, struct rows source, struct extent given) {
  struct extent extent = joined(target, source, given);
  for (size_t z = 0; z < extent.depth; z++)
    for (size_t y = 0; y < extent.height; y++)
      memmove(pointer(target.start + z * target.slice + y * target.pitch),
              pointer(source.start + z * source.slice + y * source.pitch), extent.row);
}

static bool is_empty(const struct copy *copy) {
  return !copy->extent.row || !copy->extent.height || !copy->extent.depth;
}

static size_t bytes_of(const struct copy *copy) { return copy->extent.row * copy->extent.height * copy->extent.depth; }

/* Rows without gaps, where these bytes lie. */
static struct rows packed(const void *at, struct extent extent) {
  return (struct rows){(uint64_t)(uintptr_t)at, extent.row, extent.row * extent.height};
}

static CUresult run(const struct command *command) {
  const struct copy *copy = (const struct copy *)command;
  if (is_empty(copy)) return CUDA_SUCCESS;
  move(copy->target, copy->staged ? packed(copy->staged, copy->extent) : copy->source, copy->extent);
  cost_copy(copy->target_memory.device, copy->source_memory.device, bytes_of(copy));
  return CUDA_SUCCESS;
}

static void end(struct command *command) {
  struct copy *copy = (struct copy *)command;
  mapping_release(copy->target_memory.held);
  mapping_release(copy->source_memory.held);
  free(copy->staged);
  free(copy);
}

/* Arrays have no addresses. */
static void show_side(FILE *to, const char *name, const struct rows *rows, const struct memory *memory, CUarray array,
                      const size_t at[3]) {
  if (array) {
    fprintf(to, ", \"%s\": {\"memory\": \"array\"", name);
    show_address(to, "array", (uint64_t)(uintptr_t)array);
    fprintf(to, ", \"at\": [%zu, %zu, %zu]}", at[0], at[1], at[2]);
    return;
  }
  const char *kind = memory->managed ? "managed" : memory->known && !memory->host ? "device" : "host";
  fprintf(to, ", \"%s\": {\"memory\": \"%s\"", name, kind);
  show_address(to, "address", rows->start);
  show_number(to, "pitch", rows->pitch);
  show_number(to, "slice", rows->slice);
  if (memory->device != OF_HOST) show_number(to, "device", (uint64_t)memory->device);
  fputc('}', to);
}

/* Of what the host has got, row by row. */
static void show_delivered(FILE *to, const struct copy *copy) {
  struct rows target = packed(NULL, copy->extent);
  struct extent extent = joined(target, copy->target, copy->extent);
  if (extent.height == 1 && extent.depth == 1) {
    show_digest(to, "sha256", pointer(copy->target.start), extent.row);
    return;
  }
  void *room = malloc(bytes_of(copy));
  if (!room) return;
  move(packed(room, copy->extent), copy->target, copy->extent);
  show_digest(to, "sha256", room, bytes_of(copy));
  free(room);
}

static void show(const void *command, FILE *to) {
  const struct copy *copy = command;
  const CUDA_MEMCPY3D *params = &copy->params;
  show_number(to, "row", copy->extent.row);
  show_number(to, "rows", copy->extent.height);
  show_number(to, "slices", copy->extent.depth);
  show_number(to, "bytes", bytes_of(copy));
  if (is_empty(copy)) return; /* wherever that was */
  CUarray from = params->srcMemoryType == CU_MEMORYTYPE_ARRAY ? params->srcArray : NULL;
  CUarray into = params->dstMemoryType == CU_MEMORYTYPE_ARRAY ? params->dstArray : NULL;
  show_side(to, "source", &copy->source, &copy->source_memory, from,
            (const size_t[]){params->srcXInBytes, params->srcY, params->srcZ});
  show_side(to, "destination", &copy->target, &copy->target_memory, into,
            (const size_t[]){params->dstXInBytes, params->dstY, params->dstZ});
  if (!into && (!copy->target_memory.known || copy->target_memory.host)) show_delivered(to, copy);
}

static const struct command_kind COPY = {
    .type = CU_GRAPH_NODE_TYPE_MEMCPY, .run = run, .work = "copy", .show = show, .end = end};

void copy_params(const struct command *command, CUDA_MEMCPY3D *params) {
  *params = ((const struct copy *)command)->params;
}

/* One side as a call names it. */
struct given {
  CUmemorytype type;
  const void *host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, level, pitch, height;
};

/* In an array bytes are whole elements of it. */
static CUresult find_in_array(const struct given *given, struct extent extent, struct rows *rows,
                              struct memory *memory) {
  struct array_rows in;
  if (!array_rows(given->array, &in)) return CUDA_ERROR_INVALID_HANDLE;
  if (given->x % in.element || extent.row % in.element) return CUDA_ERROR_INVALID_VALUE;
  if (given->x > in.row || extent.row > in.row - given->x || given->y > in.height ||
      extent.height > in.height - given->y || given->z > in.depth || extent.depth > in.depth - given->z)
    return CUDA_ERROR_INVALID_VALUE;
  *rows = (struct rows){in.address + (given->z * in.height + given->y) * in.row + given->x, in.row, in.height * in.row};
  *memory = (struct memory){.known = true, .whole = true}; /* that of a device is always mapped */
  return CUDA_SUCCESS;
}

/* Which bytes those are; pitch and height that are 0 are the least that hold the copy. */
static CUresult find(const struct given *given, struct extent extent, struct rows *rows, struct memory *memory) {
  size_t width, height, slice, offset, line, last;
  if (given->level) return CUDA_ERROR_INVALID_VALUE;
  if (given->type == CU_MEMORYTYPE_ARRAY) return find_in_array(given, extent, rows, memory);
  if (given->type != CU_MEMORYTYPE_HOST && given->type != CU_MEMORYTYPE_DEVICE && given->type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (given->pitch > MOST_PITCH || __builtin_add_overflow(given->x, extent.row, &width) ||
      __builtin_add_overflow(given->y, extent.height, &height))
    return CUDA_ERROR_INVALID_VALUE;
  if ((given->pitch && given->pitch < width) || (given->height && given->height < height))
    return CUDA_ERROR_INVALID_VALUE;
  *rows = (struct rows){.pitch = given->pitch ? given->pitch : width};
  size_t layer = given->height ? given->height : height;
  if (!extent.row || !extent.height || !extent.depth) return CUDA_SUCCESS;
  if (__builtin_mul_overflow(layer, rows->pitch, &slice) || __builtin_mul_overflow(given->z, slice, &offset) ||
      __builtin_mul_overflow(given->y, rows->pitch, &line) || __builtin_add_overflow(offset, line, &offset) ||
      __builtin_add_overflow(offset, given->x, &offset) || __builtin_mul_overflow(extent.depth - 1, slice, &last) ||
      __builtin_mul_overflow(extent.height - 1, rows->pitch, &line) || __builtin_add_overflow(last, line, &last) ||
      __builtin_add_overflow(last, extent.row, &last))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = given->type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)given->host : given->device, end;
  if (!base || __builtin_add_overflow(base, offset, &rows->start) || __builtin_add_overflow(rows->start, last, &end))
    return CUDA_ERROR_INVALID_VALUE;
  rows->slice = slice;
  if (given->type == CU_MEMORYTYPE_HOST)
    *memory = memory_hold(rows->start, last);
  else /* from where the call says that its memory is: what lies outside of that is not other memory */
    *memory = memory_hold(base, offset + last);
  bool partly_registered = given->type == CU_MEMORYTYPE_HOST && memory->host && !memory->whole;
  if (partly_registered) memory->known = false;
  if (memory->known ? !memory->whole : given->type == CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

static CUresult make(const CUDA_MEMCPY3D *params, const struct stream_place *place, struct copy **made) {
  if (!params || params->reserved0 || params->reserved1) return CUDA_ERROR_INVALID_VALUE;
  struct copy *copy = malloc(sizeof *copy);
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  copy->command = command_begin(&COPY, place);
  copy->params = *params;
  copy->extent = (struct extent){params->WidthInBytes, params->Height, params->Depth};
  copy->target_memory = copy->source_memory = (struct memory){.known = false, .device = OF_HOST};
  copy->staged = NULL;
  struct given target = {params->dstMemoryType, params->dstHost, params->dstDevice, params->dstArray,
                         params->dstXInBytes, params->dstY, params->dstZ, params->dstLOD, params->dstPitch,
                         params->dstHeight};
  struct given source = {params->srcMemoryType, params->srcHost, params->srcDevice, params->srcArray,
                         params->srcXInBytes, params->srcY, params->srcZ, params->srcLOD, params->srcPitch,
                         params->srcHeight};
  CUresult result = find(&target, copy->extent, &copy->target, &copy->target_memory);
  if (result == CUDA_SUCCESS) result = find(&source, copy->extent, &copy->source, &copy->source_memory);
  if (result == CUDA_SUCCESS)
    *made = copy;
  else
    command_release(&copy->command);
  return result;
}

CUresult copy_command(const CUDA_MEMCPY3D *params, const struct stream_place *place, struct command **made) {
  struct copy *copy;
  CHECK(make(params, place, &copy));
  *made = &copy->command;
  return CUDA_SUCCESS;
}

/* Read the source now: what the program writes there later does not matter any more. */
static bool stage(struct copy *copy) {
  copy->staged = malloc(bytes_of(copy));
  if (!copy->staged) return false;
  move(packed(copy->staged, copy->extent), copy->source, copy->extent);
  return true;
}

/* Do a copy in a stream, or now if `soon`, unless something comes before it. `unread`: its source may change when the
 * call has returned. Takes the command. */
static CUresult later(const struct stream_place *place, struct copy *copy, bool soon, bool unread) {
  CUresult result;
  if ((soon || unread) && submit_now(place, &copy->command, &result)) return result;
  if (unread && !stage(copy)) {
    command_release(&copy->command);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return submit(place, false, &copy->command);
}

static bool is_short(const struct copy *copy) {
  return copy->extent.row <= SHORT && copy->extent.row * copy->extent.height <= SHORT &&
         copy->extent.row * copy->extent.height * copy->extent.depth <= SHORT;
}

CUresult copy_call(struct way way, const CUDA_MEMCPY3D *params) {
  struct stream_place place;
  struct copy *copy;
  CHECK(stream_place(way.stream, way.own, &place));
  if (way.synchronous) CHECK(capture_permits_stream(&place));
  CHECK(make(params, &place, &copy));
  if (is_empty(copy)) {
    command_release(&copy->command);
    return CUDA_SUCCESS;
  }
  bool to_device = copy->target_memory.known && !copy->target_memory.host;
  bool from_device = copy->source_memory.known && !copy->source_memory.host;
  if (is_captured(&place)) return submit(&place, false, &copy->command);
  if (!copy->target_memory.known || (!to_device && !from_device) || (way.synchronous && !(to_device && from_device)) ||
      copy->target_memory.managed || copy->source_memory.managed)
    return submit(&place, true, &copy->command);
  return later(&place, copy, is_short(copy), !copy->source_memory.known);
}

CUresult copy_batch(struct way way, const struct copy_order *copies, size_t count, size_t *failed) {
  struct stream_place place;
  *failed = SIZE_MAX;
  CHECK(stream_place(way.stream, way.own, &place));
  if (is_captured(&place)) return capture_refuse(&place);
  struct copy **made = malloc(count * sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  size_t done = 0;
  while (done < count && result == CUDA_SUCCESS) {
    result = make(&copies[done].params, &place, &made[done]);
    if (result == CUDA_SUCCESS)
      done++;
    else
      *failed = done;
  }
  for (size_t n = 0; n < done; n++) {
    bool unread = copies[n].source == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    if (result != CUDA_SUCCESS || is_empty(made[n]))
      command_release(&made[n]->command);
    else
      result = later(&place, made[n], is_short(made[n]), unread);
  }
  free(made);
  return result;
}
