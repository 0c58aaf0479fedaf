/* What images are, and the PTX in them: text as it is, from containers that of the entry which suits the device
 * best. */
#include "image.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decree.h"
#include "driver.h"
#include "fatbin.h"
#include "files.h"

enum image_kind image_kind(const void *image, size_t limit) {
  bool magic = !limit || limit >= 4;
  if (magic && is_cubin(image, limit)) return IMAGE_CUBIN;
  if (magic && is_fatbin(image)) return IMAGE_FATBIN;
  if (magic && is_fatbin_wrapper(image)) return IMAGE_WRAPPER;
  return is_ptx(image, limit) ? IMAGE_PTX : IMAGE_UNKNOWN;
}

static CUresult checked(CUdevice device, char **ptx, size_t *bytes) {
  *bytes = strlen(*ptx); /* containers fill up with zeros */
  CUresult result = ptx_check(*ptx, *bytes, device);
  if (result != CUDA_SUCCESS) {
    free(*ptx);
    *ptx = NULL;
  }
  return result;
}

static CUresult from_text(const char *text, size_t limit, CUdevice device, char **ptx, size_t *bytes) {
  *ptx = strndup(text, limit ? limit : SIZE_MAX);
  return *ptx ? checked(device, ptx, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult from_cubin(const void *cubin, size_t limit, CUdevice device, char **ptx, size_t *bytes) {
  *ptx = decree_text(cubin, limit, bytes);
  if (*ptx) return checked(device, ptx, bytes);
  if (!decrees())
    complain("an image is machine code of a GPU alone, without PTX: compile with PTX, as in -gencode arch=compute_80,"
             "code=compute_80");
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The text for a cubin in a container. */
static char *decreed(const struct fatbin_entry *entry, size_t *bytes) {
  char *content, *text = NULL;
  size_t size;
  if (fatbin_content(entry, &content, &size) != CUDA_SUCCESS) return NULL;
  if (size) text = decree_text(content, size, bytes);
  free(content);
  return text;
}

/* What a container has, for people: "sm_75 compute_80 ...". */
static void list(const void *image, size_t limit, char *text, size_t size) {
  struct fatbin walk;
  struct fatbin_entry entry;
  *text = 0;
  if (!fatbin_begin(&walk, image, limit)) return;
  while (fatbin_next(&walk, &entry) == 1) {
    const char *kind = entry.kind == FATBIN_PTX ? "compute" : entry.kind == FATBIN_CUBIN ? "sm" : "other";
    size_t used = strlen(text);
    snprintf(text + used, size - used, " %s_%d%.1s", kind, entry.target.number, &entry.target.suffix);
  }
}

/* What suits a device best in a container. */
struct choice {
  struct fatbin_entry ptx, cubin; /* kind 0: none */
  const uint8_t *end;             /* of the container */
};

static bool choose(const void *image, size_t limit, CUdevice device, struct choice *choice) {
  struct fatbin walk;
  struct fatbin_entry entry;
  int more;
  *choice = (struct choice){0};
  if (!fatbin_begin(&walk, image, limit)) return false;
  choice->end = walk.end;
  while ((more = fatbin_next(&walk, &entry)) == 1) {
    struct target target = entry.target;
    struct fatbin_entry *best = entry.kind == FATBIN_PTX ? &choice->ptx : &choice->cubin;
    if (entry.kind == FATBIN_CUBIN && !target.suffix) target.suffix = 'f'; /* for devices with the same major number */
    if (entry.kind != FATBIN_PTX && entry.kind != FATBIN_CUBIN) continue;
    if (target_fits(target, device) && (!best->kind || target_better(entry.target, best->target))) *best = entry;
  }
  return more == 0;
}

/* The first container with something for the device; behind it there may be others where a section is a file. */
static CUresult from_fatbin(const void *image, size_t limit, CUdevice device, char **ptx, size_t *bytes) {
  const char *at = image, *end = at;
  struct choice choice;
  do {
    size_t left = limit ? limit - (size_t)(end - at) : 0;
    if (!choose(end, left, device, &choice)) return CUDA_ERROR_INVALID_IMAGE;
    *ptx = choice.cubin.kind && decrees() ? decreed(&choice.cubin, bytes) : NULL;
    if (!*ptx && choice.ptx.kind) CHECK(fatbin_content(&choice.ptx, ptx, bytes));
    if (*ptx) return checked(device, ptx, bytes);
    end = (const char *)choice.end;
  } while (limit && limit - (size_t)(end - at) >= 4 && is_fatbin(end));
  char held[256];
  list(image, limit, held, sizeof held);
  const struct card *card = device_at(device)->card;
  complain("an image has no PTX for device %d, of compute capability %d.%d; it has:%s; compile with PTX, as in -gencode "
           "arch=compute_%d%d,code=compute_%d%d", device, card->major, card->minor, *held ? held : " nothing",
           card->major, card->minor, card->major, card->minor);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult from_wrapper(const void *image, CUdevice device, char **ptx, size_t *bytes) {
  struct fatbin_wrapper wrapper;
  memcpy(&wrapper, image, sizeof wrapper);
  if ((wrapper.version != 1 && wrapper.version != 2) || !wrapper.container) return CUDA_ERROR_INVALID_IMAGE;
  return from_fatbin(wrapper.container, 0, device, ptx, bytes);
}

CUresult image_text(const void *image, size_t limit, CUdevice device, char **ptx, size_t *bytes) {
  switch (image_kind(image, limit)) {
    case IMAGE_PTX: return from_text(image, limit, device, ptx, bytes);
    case IMAGE_CUBIN: return from_cubin(image, limit, device, ptx, bytes);
    case IMAGE_FATBIN: return from_fatbin(image, limit, device, ptx, bytes);
    case IMAGE_WRAPPER:
      /* It holds addresses, so it is none where bytes were copied from elsewhere. */
      return limit ? CUDA_ERROR_INVALID_IMAGE : from_wrapper(image, device, ptx, bytes);
    default: return CUDA_ERROR_INVALID_IMAGE;
  }
}

CUresult image_file(const char *path, CUdevice device, char **ptx, size_t *bytes) {
  char *content;
  size_t size;
  CHECK(file_content(path, &content, &size));
  CUresult result = size ? image_text(content, size, device, ptx, bytes) : CUDA_ERROR_INVALID_IMAGE;
  free(content);
  return result;
}
