/* Kernels: their attributes and parameters. */
#include "function.h"

#include <stdatomic.h>

#include "driver.h"
#include "handles.h"
#include "library.h"
#include "strict.h"

enum {
  USUAL_SHARED = 49152, /* of a block, unless it asks for more */
  MOST_THREADS = 1024,
};

static void hold(void *function) { module_hold(((struct function *)function)->module); }

void function_let_go(struct function **function) {
  if (*function) module_release((*function)->module);
}

bool function_held(CUfunction handle, struct function **function) {
  if (!handle_hold(FUNCTION, handle, hold)) return false;
  *function = (struct function *)handle;
  return true;
}

CUresult function_of(CUfunction handle, const struct stream_place *place, struct function **function) {
  return function_held(handle, function) ? CUDA_SUCCESS : kernel_function((CUkernel)handle, place, function);
}

int settings_dynamic_shared(const struct settings *settings, int fixed) {
  int set = settings->dynamic_shared;
  return set >= 0 ? set : fixed < USUAL_SHARED ? USUAL_SHARED - fixed : 0;
}

int most_threads(const struct description_kernel *described) {
  return described->max_threads && described->max_threads < MOST_THREADS ? (int)described->max_threads : MOST_THREADS;
}

void function_use(struct function *function) {
  if (!function->used && !atomic_exchange(&function->used, true)) strict_load(function->module->context);
}

static int constant_bytes(const struct code *code) {
  uint64_t sum = 0;
  for (uint32_t n = 0; n < code->description->variable_count; n++)
    if (code->description->variables[n].constant) sum += code->description->variables[n].size;
  return (int)sum;
}

CUresult attribute_get(int *value, CUfunction_attribute attribute, struct code *code, struct code_kernel *kernel,
                       const struct settings *settings, CUdevice device) {
  static const uint32_t any[3];
  const struct description_kernel *described = kernel->described;
  const struct variant *variant;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = most_threads(described); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = constant_bytes(code); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)described->registers; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = code_target(code); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 10 * device_at(device)->card->major + device_at(device)->card->minor;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = settings->carveout; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = described->cluster[0] != 0; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = (int)described->cluster[0]; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = (int)described->cluster[1]; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = (int)described->cluster[2]; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = 0; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  CHECK(code_variant(code, kernel, any, device, &variant));
  int fixed = (int)variant->kernel->static_shared;
  *value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES  ? fixed
           : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)variant->kernel->local_bytes
                                                             : settings_dynamic_shared(settings, fixed);
  return CUDA_SUCCESS;
}

CUresult attribute_set(CUfunction_attribute attribute, int value, struct code *code, struct code_kernel *kernel,
                       struct settings *settings, CUdevice device) {
  static const uint32_t any[3];
  const struct variant *variant;
  switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      CHECK(code_variant(code, kernel, any, device, &variant));
      if (value < 0 || value > device_at(device)->card->shared_per_block - (int)variant->kernel->static_shared)
        return CUDA_ERROR_INVALID_VALUE;
      settings->dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: /* a hint */
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings->carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return value ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult parameter_info(const struct code_kernel *kernel, size_t index, size_t *offset, size_t *size) {
  if (!offset || index >= kernel->described->parameter_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->described->parameters[index].offset;
  if (size) *size = kernel->described->parameters[index].size;
  return CUDA_SUCCESS;
}

/* By handle. These functions take those of libraries' kernels too, as launches do, in the current context. */

CUresult function_here(CUfunction handle, struct function **function) {
  struct stream_place place;
  CHECK(ready());
  if (function_held(handle, function)) return CUDA_SUCCESS;
  if (!handle_is(KERNEL, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
  CHECK(context_place(NULL, &place));
  return kernel_function((CUkernel)handle, &place, function);
}

EXPORTED CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  return attribute_get(value, attribute, function->module->code, function->kernel, function->settings,
                       function->module->device);
}

EXPORTED CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  return attribute_set(attribute, value, function->module->code, function->kernel, function->settings,
                       function->module->device);
}

/* Hints on caches, which mean nothing here. */
EXPORTED CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  return config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuFuncGetModule(CUmodule *module, CUfunction handle) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  *module = (CUmodule)function->module;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuFuncGetName(const char **name, CUfunction handle) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = function->kernel->described->name;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  return parameter_info(function->kernel, index, offset, size);
}

EXPORTED CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle) {
  HELD_FUNCTION function = NULL;
  CHECK(function_here(handle, &function));
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  *state = function->kernel->variants ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuFuncLoad(CUfunction handle) {
  static const uint32_t any[3];
  HELD_FUNCTION function = NULL;
  const struct variant *variant;
  CHECK(function_here(handle, &function));
  function_use(function);
  return code_variant(function->module->code, function->kernel, any, function->module->device, &variant);
}
