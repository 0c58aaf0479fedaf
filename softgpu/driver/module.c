/* Modules: PTX texts in contexts. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "freed.h"
#include "handles.h"
#include "image.h"
#include "library.h"
#include "memory.h"
#include "strict.h"

static struct freed freed = FREED;

/* The address of each variable, in zeroed memory. */
static CUresult place_variables(struct module *module) {
  const struct description *described = module->code->description;
  module->variables = calloc(described->variable_count + 1u, sizeof *module->variables);
  if (!module->variables) return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < described->variable_count; n++) {
    const struct description_variable *variable = &described->variables[n];
    CHECK(variable_make(module->context, module->device, variable->size ? variable->size : 1,
                        variable->constant ? SG_CONSTANT : 0, &module->variables[n]));
  }
  return CUDA_SUCCESS;
}

static void relocate(const struct module *module, uint8_t *bytes, const struct description_relocation *relocation) {
  uint64_t value = (relocation->variable < 0 ? relocation->address : module->variables[relocation->variable]) +
                   (uint64_t)relocation->addend;
  value >>= 8 * relocation->first;
  memcpy(bytes + relocation->offset, &value, relocation->bytes); /* the lower bytes: this machine is little-endian */
}

/* What variables hold at first may be addresses of others. */
static void fill_variables(const struct module *module) {
  const struct description *described = module->code->description;
  for (uint32_t n = 0; n < described->variable_count; n++) {
    const struct description_variable *variable = &described->variables[n];
    uint8_t *bytes = (uint8_t *)(uintptr_t)module->variables[n];
    if (variable->initial_bytes) memcpy(bytes, variable->initial, variable->initial_bytes);
    for (uint32_t r = 0; r < variable->relocation_count; r++) relocate(module, bytes, &variable->relocations[r]);
  }
}

static CUresult make_functions(struct module *module) {
  uint32_t count = module->code->description->kernel_count;
  module->functions = calloc(count + 1u, sizeof *module->functions);
  if (!module->functions) return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < count; n++) {
    struct function *function = &module->functions[n];
    *function = (struct function){module, &module->code->kernels[n], {-1, -1}, &function->own, false};
    if (!handle_add(FUNCTION, function)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void module_hold(struct module *module) { module->references++; }

void module_release(struct module *module) {
  if (--module->references) return;
  code_release(module->code);
  if (module->library) library_release(module->library);
  free(module->functions);
  free(module->variables);
  object_free(&freed, module);
}

void module_let_go(struct module **module) {
  if (*module) module_release(*module);
}

CUresult module_make(const struct stream_place *place, struct code *code, struct library *library,
                     struct module **made) {
  struct module *module = object_make(&freed, sizeof *module);
  if (!module) return CUDA_ERROR_OUT_OF_MEMORY;
  *module = (struct module){place->context, place->context_id, place->device, library, 1, code_hold(code), NULL, NULL};
  if (library) library_hold(library);
  CUresult result = place_variables(module);
  if (result == CUDA_SUCCESS) fill_variables(module);
  if (result == CUDA_SUCCESS) result = make_functions(module);
  if (result == CUDA_SUCCESS && !handle_add(MODULE, module)) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS)
    *made = module;
  else
    module_drop(module);
  return result;
}

void module_drop(struct module *module) {
  const struct description *described = module->code->description;
  for (uint32_t n = 0; module->functions && n < described->kernel_count; n++)
    handle_is(FUNCTION, &module->functions[n], true);
  for (uint32_t n = 0; module->variables && n < described->variable_count; n++)
    if (module->variables[n]) variable_end(module->variables[n]);
  module_release(module);
}

static void end(void *module) { module_drop(module); }

void modules_end(CUcontext context) { handles_end(MODULE, context, end); }

struct function *module_function(struct module *module, const char *name) {
  const struct description_kernel *found = description_kernel(module->code->description, name);
  return found ? &module->functions[found - module->code->description->kernels] : NULL;
}

/* Loads. */

static CUresult load(CUmodule *handle, const struct stream_place *place, char *ptx, size_t bytes, struct jit *jit) {
  struct code *code;
  struct module *module;
  CHECK(code_make(ptx, bytes, jit, &code));
  CUresult result = module_make(place, code, NULL, &module);
  if (result == CUDA_SUCCESS) *handle = (CUmodule)module;
  code_release(code);
  return result;
}

EXPORTED CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                     void **values) {
  struct stream_place place;
  struct jit jit;
  char *ptx;
  size_t bytes;
  CHECK(context_place(NULL, &place));
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  CHECK(jit_read(count, options, values, &jit));
  double start = milliseconds_now();
  CUresult result = image_text(image, 0, place.device, &ptx, &bytes);
  if (result == CUDA_SUCCESS) result = load(module, &place, ptx, bytes, &jit);
  jit_finish(&jit, milliseconds_now() - start);
  return result;
}

EXPORTED CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

EXPORTED CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

EXPORTED CUresult cuModuleLoad(CUmodule *module, const char *path) {
  struct stream_place place;
  struct jit jit;
  char *ptx;
  size_t bytes;
  CHECK(context_place(NULL, &place));
  if (!module || !path) return CUDA_ERROR_INVALID_VALUE;
  CHECK(jit_read(0, NULL, NULL, &jit));
  CHECK(image_file(path, place.device, &ptx, &bytes));
  return load(module, &place, ptx, bytes, &jit);
}

static void hold(void *module) { module_hold(module); }

static CUresult module_of(CUmodule handle, struct module **module) {
  CHECK(ready());
  if (!handle_hold(MODULE, handle, hold)) return CUDA_ERROR_INVALID_HANDLE;
  *module = (struct module *)handle;
  return CUDA_SUCCESS;
}

/* Kernels of a library, which has its own way to unload them, have modules too. */
EXPORTED CUresult cuModuleUnload(CUmodule handle) {
  HELD_MODULE module = NULL;
  CHECK(module_of(handle, &module));
  if (module->library) return CUDA_ERROR_NOT_PERMITTED;
  strict_wait(module->context);
  if (!handle_is(MODULE, handle, true)) return CUDA_ERROR_INVALID_HANDLE;
  module_drop(module);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  CHECK(ready());
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

/* What is in it. */

EXPORTED CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  HELD_MODULE module = NULL;
  CHECK(module_of(handle, &module));
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  struct function *found = module_function(module, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *function = (CUfunction)found;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle) {
  HELD_MODULE module = NULL;
  CHECK(module_of(handle, &module));
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = module->code->description->kernel_count;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule handle) {
  HELD_MODULE module = NULL;
  CHECK(module_of(handle, &module));
  if (!functions || !room) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < room && n < module->code->description->kernel_count; n++)
    functions[n] = (CUfunction)&module->functions[n];
  return CUDA_SUCCESS;
}

CUresult module_variable(const struct module *module, const char *name, CUdeviceptr *address, size_t *bytes) {
  const struct description_variable *found = description_variable(module->code->description, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  if (address) *address = module->variables[found - module->code->description->variables];
  if (bytes) *bytes = found->size;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name) {
  HELD_MODULE module = NULL;
  CHECK(module_of(handle, &module));
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  return module_variable(module, name, address, bytes);
}
