/* What is in modules and libraries: functions, kernels and variables, which programs look for by their names. */
#include <string.h>

#include "doors.h"
#include "hooks.h"
#include "kernels.h"
#include "memory.h"
#include "modules.h"
#include "store.h"
#include "things.h"

enum { MOST_KERNELS = 1 << 20 };

CUresult hook_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (!recording()) return real.cuModuleGetFunction(function, module, name);
  CUresult result = DRIVER(real.cuModuleGetFunction(function, module, name));
  if (result == CUDA_SUCCESS && function && *function)
    module_tell(number_of(module), number_of(*function), false, name);
  return result;
}

CUresult hook_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  if (!recording()) return real.cuLibraryGetKernel(kernel, library, name);
  CUresult result = DRIVER(real.cuLibraryGetKernel(kernel, library, name));
  if (result == CUDA_SUCCESS && kernel && *kernel) {
    kernel_mark(*kernel, library);
    module_tell(number_of(library), number_of(*kernel), true, name);
  }
  return result;
}

/* The driver fills in as many as there are, at most `count`. */
CUresult hook_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
  if (!recording()) return real.cuLibraryEnumerateKernels(kernels, count, library);
  unsigned there = 0;
  if (real.cuLibraryGetKernelCount) ASK(real.cuLibraryGetKernelCount(&there, library));
  CUresult result = DRIVER(real.cuLibraryEnumerateKernels(kernels, count, library));
  if (count > there) count = there;
  for (unsigned i = 0; result == CUDA_SUCCESS && kernels && i < count && i < MOST_KERNELS; i++)
    kernel_mark(kernels[i], library);
  return result;
}

CUresult hook_cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  if (!recording()) return real.cuLibraryGetModule(module, library);
  CUresult result = DRIVER(real.cuLibraryGetModule(module, library));
  if (result == CUDA_SUCCESS && module && *module)
    module_of_library(number_of(*module), number_of(library), NUMBER_cuLibraryGetModule);
  return result;
}

/* A driver that cannot be asked: the function is like its kernel. */
static void tell_like(CUfunction function, CUkernel kernel, CUmodule module) {
  struct wire_function *record = ledger_copy(WIRE_FUNCTION, number_of(kernel));
  if (!record) return;
  const struct wire_parameter *layout = (const void *)(record + 1);
  const char *name = (const char *)(layout + record->parameters);
  char *text = store_take(record->name_bytes + 1);
  if (text) memcpy(text, name, record->name_bytes);
  if (table_find(&session->kernels, number_of(function), 0) == NULL)
    kernel_told(number_of(function), number_of(module), false, text, record->known ? layout : NULL, record->parameters);
  store_give(text, record->name_bytes + 1);
  store_give(record, record->head.size);
}

CUresult hook_cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  if (!recording()) return real.cuKernelGetFunction(function, kernel);
  CUresult result = DRIVER(real.cuKernelGetFunction(function, kernel));
  if (result != CUDA_SUCCESS || !function || !*function) return result;
  CUmodule module = NULL;
  uint64_t library = kernel_library(kernel);
  if (real.cuFuncGetModule) ASK(real.cuFuncGetModule(&module, *function));
  if (library) module_of_library(number_of(module), library, NUMBER_cuKernelGetFunction);
  if (!driver_has(NUMBER_cuFuncGetParamInfo)) tell_like(*function, kernel, module);
  return result;
}

/* Variables. */

static void found_variable(uint64_t address, uint64_t bytes, uint64_t owner, bool managed, const char *name,
                           unsigned function) {
  if (!address || is_announced(WIRE_MEMORY, address)) return;
  struct wire_memory variable = {.address = address, .bytes = bytes, .owner = owner, .kind = WIRE_VARIABLE};
  if (!managed) variable.context = context_here();
  variable.device = managed ? -1 : device_here();
  memory_made(function, &variable, name);
}

/* Programs may leave out one of the answers: then the driver is asked again for both. */
#define VARIABLE(symbol, address_type, size_type, managed)                                                      \
  if (!recording()) return real.symbol(address, bytes, owner, name);                                            \
  CUresult result = DRIVER(real.symbol(address, bytes, owner, name));                                           \
  address_type at = address ? *address : 0;                                                                     \
  size_type size = bytes ? *bytes : 0;                                                                          \
  if (result == CUDA_SUCCESS && (!address || !bytes) && ASK(real.symbol(&at, &size, owner, name))) at = 0;   \
  if (result == CUDA_SUCCESS) found_variable(at, size, number_of(owner), managed, name, NUMBER_##symbol);       \
  return result

CUresult hook_cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned *bytes, CUmodule owner, const char *name) {
  VARIABLE(cuModuleGetGlobal, CUdeviceptr_v1, unsigned, false);
}

CUresult hook_cuModuleGetGlobal_v2(CUdeviceptr_v2 *address, size_t *bytes, CUmodule owner, const char *name) {
  VARIABLE(cuModuleGetGlobal_v2, CUdeviceptr_v2, size_t, false);
}

CUresult hook_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary owner, const char *name) {
  VARIABLE(cuLibraryGetGlobal, CUdeviceptr, size_t, false);
}

CUresult hook_cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary owner, const char *name) {
  VARIABLE(cuLibraryGetManaged, CUdeviceptr, size_t, true);
}
