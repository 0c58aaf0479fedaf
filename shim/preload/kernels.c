#include "kernels.h"

#include <string.h>

#include "ask.h"
#include "doors.h"
#include "session.h"

enum { MARK = 1, MOST_PARAMETERS = 4096, LONGEST_NAME = 65536 };

struct told {
  uint64_t module;
  uint32_t known, count;
  const struct wire_parameter *layout;
};

static void fill(struct entry *entry, const void *with) {
  const struct told *told = with;
  struct kernel *kernel = (struct kernel *)(void *)entry;
  kernel->module = told->module;
  kernel->known = told->known;
  kernel->parameters = told->count;
  uint32_t sum = 0;
  kernel->parameter_bytes = 0;
  for (uint32_t i = 0; i < told->count; i++) {
    uint32_t end = told->layout[i].offset + told->layout[i].bytes;
    kernel->parameter[i] = told->layout[i];
    sum += told->layout[i].bytes;
    if (end > kernel->parameter_bytes) kernel->parameter_bytes = end;
  }
  kernel->gaps = sum != kernel->parameter_bytes;
}

static const struct kernel *announce(uint64_t handle, bool is_kernel, const char *name, struct told told) {
  size_t layout = told.count * sizeof *told.layout, length = name ? strnlen(name, LONGEST_NAME) : 0;
  struct kernel *kernel = (struct kernel *)(void *)table_add(&session->kernels, handle, 0,
                                                             sizeof(struct kernel) + layout, fill, &told);
  if (!kernel) return NULL;
  struct wire_function *record = record_begin(WIRE_FUNCTION, NUMBER_cuModuleGetFunction,
                                              sizeof *record + padded(layout) + padded(length));
  record->handle = handle;
  record->module = told.module;
  record->kernel = is_kernel;
  record->parameters = told.count;
  record->known = told.known;
  record->parameter_bytes = kernel->parameter_bytes;
  record->name_bytes = (uint32_t)length;
  record->unused = 0;
  put_bytes(put_bytes(record + 1, told.layout, layout), name, length);
  record_end(record);
  return kernel;
}

/* One parameter of a function or, for drivers that tell them apart, of a kernel. */
static CUresult parameter(uint64_t handle, bool is_kernel, size_t index, size_t *offset, size_t *bytes) {
  if (is_kernel) {
    if (!driver_has(NUMBER_cuKernelGetParamInfo)) return CUDA_ERROR_NOT_SUPPORTED;
    return real.cuKernelGetParamInfo((CUkernel)(uintptr_t)handle, index, offset, bytes);
  }
  if (!driver_has(NUMBER_cuFuncGetParamInfo)) return CUDA_ERROR_NOT_SUPPORTED;
  return real.cuFuncGetParamInfo((CUfunction)(uintptr_t)handle, index, offset, bytes);
}

/* How many parameters there are; -1 if the handle is none of this kind, or the driver cannot say. */
static int count_parameters(uint64_t handle, bool is_kernel) {
  for (int count = 0; count <= MOST_PARAMETERS; count++) {
    size_t offset, bytes;
    CUresult result = parameter(handle, is_kernel, (size_t)count, &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return count; /* the one behind the last */
    if (result != CUDA_SUCCESS) return -1;
  }
  return -1;
}

static const char *name_of(uint64_t handle, bool is_kernel) {
  const char *name = NULL;
  if (is_kernel && driver_has(NUMBER_cuKernelGetName)) real.cuKernelGetName(&name, (CUkernel)(uintptr_t)handle);
  if (!is_kernel && driver_has(NUMBER_cuFuncGetName)) real.cuFuncGetName(&name, (CUfunction)(uintptr_t)handle);
  return name;
}

static uint64_t module_of(uint64_t handle, bool is_kernel) {
  CUmodule module = NULL;
  CUlibrary library = NULL;
  if (is_kernel && driver_has(NUMBER_cuKernelGetLibrary))
    real.cuKernelGetLibrary(&library, (CUkernel)(uintptr_t)handle);
  if (!is_kernel && driver_has(NUMBER_cuFuncGetModule)) real.cuFuncGetModule(&module, (CUfunction)(uintptr_t)handle);
  return is_kernel ? (uint64_t)(uintptr_t)library : (uint64_t)(uintptr_t)module;
}

static const struct kernel *ask(uint64_t handle) {
  bool is_kernel = table_find(&session->kernels, handle, MARK) != NULL;
  struct asking asking = ask_begin();
  int count = count_parameters(handle, is_kernel);
  if (count < 0 && !is_kernel && count_parameters(handle, true) >= 0) {
    is_kernel = true;
    count = count_parameters(handle, true);
  }
  struct told told = {.module = module_of(handle, is_kernel), .known = count >= 0, .count = count > 0 ? count : 0};
  size_t bytes = told.count * sizeof(struct wire_parameter);
  struct wire_parameter *layout = bytes ? store_take(bytes) : NULL;
  if (bytes && !layout) told.known = told.count = 0;
  for (uint32_t i = 0; i < told.count; i++) {
    size_t offset = 0, size = 0;
    parameter(handle, is_kernel, i, &offset, &size);
    layout[i] = (struct wire_parameter){(uint32_t)offset, (uint32_t)size};
  }
  const char *name = name_of(handle, is_kernel);
  ask_end(asking);
  told.layout = layout;
  const struct kernel *made = announce(handle, is_kernel, name, told);
  store_give(layout, bytes);
  return made;
}

const struct kernel *kernel_of(CUfunction handle) {
  uint64_t key = (uint64_t)(uintptr_t)handle;
  struct entry *found = table_find(&session->kernels, key, 0);
  return found ? (const struct kernel *)(const void *)found : ask(key);
}

static void fill_mark(struct entry *entry, const void *with) {
  memcpy(&((struct kernel *)(void *)entry)->module, with, sizeof(uint64_t));
}

void kernel_mark(CUkernel handle, CUlibrary library) {
  uint64_t module = (uint64_t)(uintptr_t)library;
  table_add(&session->kernels, (uint64_t)(uintptr_t)handle, MARK, sizeof(struct kernel), fill_mark, &module);
}

uint64_t kernel_library(CUkernel handle) {
  const struct entry *found = table_find(&session->kernels, (uint64_t)(uintptr_t)handle, MARK);
  return found ? ((const struct kernel *)(const void *)found)->module : 0;
}

void kernel_told(uint64_t handle, uint64_t module, bool is_kernel, const char *name,
                 const struct wire_parameter *layout, uint32_t count) {
  table_end_key(&session->kernels, handle, 0);
  announce(handle, is_kernel, name, (struct told){module, layout != NULL, layout ? count : 0, layout});
}

static bool of_module(const struct entry *entry, uint64_t module) {
  return ((const struct kernel *)(const void *)entry)->module == module;
}

void kernels_end(uint64_t module) { table_end(&session->kernels, of_module, module); }

void kernels_end_of(of_t *of, uint64_t what) { table_end(&session->kernels, of, what); }
