/* Compiled kernels: shared objects, or structures of this process. */
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL, or what is wrong with a kernel's description. */
static const char *flaw(const struct sg_kernel *kernel) {
  if (kernel->magic != SG_MAGIC) return "is not a compiled kernel";
  if (kernel->abi != SG_ABI_VERSION) return "is compiled for another version of the run-time";
  if (!kernel->run || !kernel->name) return "has no code or no name";
  if ((kernel->site_count && !kernel->sites) || (kernel->point_count && !kernel->points) ||
      (kernel->global_count && !kernel->globals) || (kernel->cache_count && !kernel->caches) ||
      ((kernel->flags & SG_COUNTS) && kernel->counter_count && !kernel->counter_work))
    return "lacks a table";
  size_t least = sizeof(struct sg_frame) + (size_t)kernel->point_count * sizeof(struct sg_wait);
  if ((kernel->flags & SG_WAITS) && kernel->frame_bytes < least) return "has frames too small for its wait points";
  for (uint32_t i = 0; i < kernel->point_count; i++)
    if (kernel->points[i].kind > SG_MEET) return "has a wait point of an unknown kind";
  for (uint32_t i = 0; i < kernel->cache_count; i++) {
    const struct sg_cache *cache = &kernel->caches[i];
    if (!cache->extent || cache->shift > 15 || cache->origin > SG_SHARED_MEMORY ||
        (cache->origin == SG_VARIABLE && cache->number >= kernel->global_count))
      return "has a cache of an unknown kind";
  }
  return NULL;
}

static bool reduces(const struct sg_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->point_count; i++)
    if (kernel->points[i].kind >= SG_RED_AND && kernel->points[i].kind <= SG_RED_POPC) return true;
  return false;
}

static int wrap(const char *what, const struct sg_kernel *kernel, void *object, sg_kernel_handle **out, char *error,
                size_t size) {
  const char *reason = flaw(kernel);
  struct sg_kernel_handle *handle = reason ? NULL : calloc(1, sizeof *handle);
  if (!handle) {
    snprintf(error, size, "%s %s", what, reason ? reason : "cannot be opened: no memory");
    return -1;
  }
  handle->kernel = kernel;
  handle->object = object;
  handle->reduces = reduces(kernel);
  *out = handle;
  return 0;
}

int sg_kernel_open(const char *path, sg_kernel_handle **out, char *error, size_t size) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct sg_kernel *kernel = object ? dlsym(object, "softgpu_kernel") : NULL;
  if (!kernel) {
    const char *reason = dlerror();
    snprintf(error, size, "%s", reason ? reason : "softgpu_kernel is null");
  }
  if (!kernel || wrap(path, kernel, object, out, error, size)) {
    if (object) dlclose(object);
    return -1;
  }
  return 0;
}

int sg_kernel_wrap(const struct sg_kernel *kernel, sg_kernel_handle **out, char *error, size_t size) {
  return wrap("the structure", kernel, NULL, out, error, size);
}

const struct sg_kernel *sg_kernel_of(const sg_kernel_handle *handle) { return handle->kernel; }

void sg_kernel_close(sg_kernel_handle *handle) {
  if (!handle) return;
  if (handle->object) dlclose(handle->object);
  free(handle);
}
