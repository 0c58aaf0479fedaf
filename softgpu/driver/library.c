/* Libraries and their kernels. An image may have another text for each device; all are taken when it is loaded, as the
 * program may give it back then. */
#include "library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "freed.h"
#include "function.h"
#include "handles.h"
#include "image.h"
#include "strict.h"

static struct freed freed = FREED;

struct library;

struct kernel {
  struct library *library;
  const char *name;
  struct settings settings[MOST_DEVICES];
};

/* What a library is in a context; the module is dropped already if that has ended. */
struct loaded {
  struct loaded *next;
  struct module *module; /* a reference */
};

struct library {
  _Atomic unsigned references;
  struct code *codes[MOST_DEVICES];   /* NULL: the image has nothing for that device */
  CUresult reasons[MOST_DEVICES];     /* for that */
  struct kernel *kernels;
  uint32_t kernel_count;
  struct loaded *loaded;
  bool unloaded; /* by the program: nothing more is loaded into contexts */
  pthread_mutex_t lock; /* loaded */
};

void library_hold(struct library *library) { library->references++; }

void library_release(struct library *library) {
  if (--library->references) return;
  for (int n = 0; n < MOST_DEVICES; n++)
    if (library->codes[n]) code_release(library->codes[n]);
  pthread_mutex_destroy(&library->lock);
  free(library->kernels);
  object_free(&freed, library);
}

/* Code of a text, which may be that of another device too. */
static CUresult add_code(struct library *library, CUdevice device, char *ptx, size_t bytes, struct jit *jit) {
  for (int n = 0; n < device; n++) {
    struct code *other = library->codes[n];
    if (other && other->bytes == bytes && !memcmp(other->ptx, ptx, bytes)) {
      library->codes[device] = code_hold(other);
      free(ptx);
      return CUDA_SUCCESS;
    }
  }
  return code_make(ptx, bytes, jit, &library->codes[device]);
}

/* With a file's path instead of an image. The first code that there is names the kernels. */
static CUresult fill(struct library *library, const void *image, const char *path, struct jit *jit) {
  const struct code *first = NULL;
  for (int device = 0; device < device_count(); device++) {
    char *ptx;
    size_t bytes;
    CUresult result = path ? image_file(path, device, &ptx, &bytes) : image_text(image, 0, device, &ptx, &bytes);
    if (result == CUDA_SUCCESS) result = add_code(library, device, ptx, bytes, jit);
    library->reasons[device] = result;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
    if (!first) first = library->codes[device];
  }
  if (!first) return library->reasons[0];
  library->kernel_count = first->description->kernel_count;
  library->kernels = calloc(library->kernel_count + 1u, sizeof *library->kernels);
  if (!library->kernels) return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < library->kernel_count; n++) {
    struct kernel *kernel = &library->kernels[n];
    kernel->library = library;
    kernel->name = first->description->kernels[n].name;
    for (int device = 0; device < MOST_DEVICES; device++)
      kernel->settings[device].dynamic_shared = kernel->settings[device].carveout = -1;
    if (!handle_add(KERNEL, kernel)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return handle_add(LIBRARY, library) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void forget_kernels(struct library *library) {
  for (uint32_t n = 0; library->kernels && n < library->kernel_count; n++)
    handle_is(KERNEL, &library->kernels[n], true);
}

static CUresult check_options(unsigned count, const CUlibraryOption *options, void **values, bool file) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < count; n++) {
    if (options[n] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE) return CUDA_ERROR_NOT_SUPPORTED;
    if (options[n] != CU_LIBRARY_BINARY_IS_PRESERVED || file) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static CUresult load(CUlibrary *handle, const void *image, const char *path, unsigned count, CUjit_option *options,
                     void **values) {
  struct jit jit;
  CHECK(jit_read(count, options, values, &jit));
  double start = milliseconds_now();
  struct library *library = object_make(&freed, sizeof *library);
  if (!library) return CUDA_ERROR_OUT_OF_MEMORY;
  library->references = 1;
  pthread_mutex_init(&library->lock, NULL);
  CUresult result = fill(library, image, path, &jit);
  if (result == CUDA_SUCCESS) {
    *handle = (CUlibrary)library;
  } else {
    forget_kernels(library);
    library_release(library);
  }
  jit_finish(&jit, milliseconds_now() - start);
  return result;
}

EXPORTED CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                                    unsigned int count, CUlibraryOption *library_options, void **library_values,
                                    unsigned int library_count) {
  CHECK(ready());
  if (!library || !image) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check_options(library_count, library_options, library_values, false));
  return load(library, image, NULL, count, options, values);
}

EXPORTED CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                                        unsigned int count, CUlibraryOption *library_options, void **library_values,
                                        unsigned int library_count) {
  CHECK(ready());
  if (!library || !path) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check_options(library_count, library_options, library_values, true));
  return load(library, NULL, path, count, options, values);
}

EXPORTED CUresult cuLibraryUnload(CUlibrary handle) {
  CHECK(ready());
  if (!handle_is(LIBRARY, handle, true)) return CUDA_ERROR_INVALID_HANDLE;
  struct library *library = (struct library *)handle;
  forget_kernels(library);
  pthread_mutex_lock(&library->lock);
  struct loaded *loaded = library->loaded;
  library->loaded = NULL;
  library->unloaded = true;
  pthread_mutex_unlock(&library->lock);
  for (struct loaded *next; loaded; loaded = next) {
    next = loaded->next;
    if (handle_is(MODULE, loaded->module, true)) {
      strict_wait(loaded->module->context);
      module_drop(loaded->module);
    }
    module_release(loaded->module);
    free(loaded);
  }
  library_release(library);
  return CUDA_SUCCESS;
}

/* A variable of a call, which keeps a library from being destroyed until its end. */
#define HELD_LIBRARY __attribute__((cleanup(let_go))) struct library *

static void let_go(struct library **library) {
  if (*library) library_release(*library);
}

#define HELD_KERNEL __attribute__((cleanup(let_go_of_kernel))) struct kernel *

static void let_go_of_kernel(struct kernel **kernel) {
  if (*kernel) library_release((*kernel)->library);
}

static void hold(void *library) { library_hold(library); }
static void hold_of_kernel(void *kernel) { library_hold(((struct kernel *)kernel)->library); }

/* In contexts. */

static void share_settings(struct library *library, struct module *module) {
  for (uint32_t n = 0; n < library->kernel_count; n++) {
    struct function *function = module_function(module, library->kernels[n].name);
    if (function) function->settings = &library->kernels[n].settings[module->device];
  }
}

static CUresult module_in(struct library *library, const struct stream_place *place, struct module **module) {
  if (!library->codes[place->device]) return library->reasons[place->device];
  pthread_mutex_lock(&library->lock);
  CUresult result = library->unloaded ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  struct loaded *at = library->loaded;
  while (at && at->module->context_id != place->context_id) at = at->next;
  if (!at && result == CUDA_SUCCESS) {
    at = malloc(sizeof *at);
    result = at ? module_make(place, library->codes[place->device], library, &at->module) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
      share_settings(library, at->module);
      module_hold(at->module);
      at->next = library->loaded;
      library->loaded = at;
    } else {
      free(at);
    }
  }
  if (result == CUDA_SUCCESS) {
    module_hold(at->module);
    *module = at->module;
  }
  pthread_mutex_unlock(&library->lock);
  return result;
}

static CUresult kernel_of(CUkernel handle, struct kernel **kernel) {
  CHECK(ready());
  if (!handle_hold(KERNEL, handle, hold_of_kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *kernel = (struct kernel *)handle;
  return CUDA_SUCCESS;
}

CUresult kernel_function(CUkernel handle, const struct stream_place *place, struct function **function) {
  HELD_KERNEL kernel = NULL;
  struct module *module;
  CHECK(kernel_of(handle, &kernel));
  CHECK(module_in(kernel->library, place, &module));
  *function = module_function(module, kernel->name);
  if (!*function) module_release(module);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult library_of(CUlibrary handle, struct library **library) {
  CHECK(ready());
  if (!handle_hold(LIBRARY, handle, hold)) return CUDA_ERROR_INVALID_HANDLE;
  *library = (struct library *)handle;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLibraryGetModule(CUmodule *handle, CUlibrary library_handle) {
  HELD_LIBRARY library = NULL;
  struct stream_place place;
  HELD_MODULE module = NULL;
  CHECK(library_of(library_handle, &library));
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  CHECK(context_place(NULL, &place));
  CHECK(module_in(library, &place, &module));
  *handle = (CUmodule)module;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name) {
  HELD_LIBRARY library = NULL;
  struct stream_place place;
  HELD_MODULE module = NULL;
  CHECK(library_of(handle, &library));
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  CHECK(context_place(NULL, &place));
  CHECK(module_in(library, &place, &module));
  return module_variable(module, name, address, bytes);
}

/* Of both kinds of things no text has any. */
EXPORTED CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name) {
  HELD_LIBRARY library = NULL;
  CHECK(library_of(handle, &library));
  return name && (address || bytes) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary handle, const char *name) {
  HELD_LIBRARY library = NULL;
  CHECK(library_of(handle, &library));
  return name && function ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name) {
  HELD_LIBRARY library = NULL;
  CHECK(library_of(handle, &library));
  if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t n = 0; n < library->kernel_count; n++)
    if (!strcmp(library->kernels[n].name, name)) {
      *kernel = (CUkernel)&library->kernels[n];
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

EXPORTED CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle) {
  HELD_LIBRARY library = NULL;
  CHECK(library_of(handle, &library));
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = library->kernel_count;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int room, CUlibrary handle) {
  HELD_LIBRARY library = NULL;
  CHECK(library_of(handle, &library));
  if (!kernels || !room) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < room && n < library->kernel_count; n++) kernels[n] = (CUkernel)&library->kernels[n];
  return CUDA_SUCCESS;
}

/* Kernels. */

EXPORTED CUresult cuKernelGetFunction(CUfunction *handle, CUkernel kernel) {
  struct stream_place place;
  HELD_FUNCTION function = NULL;
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  CHECK(context_place(NULL, &place));
  CHECK(kernel_function(kernel, &place, &function));
  *handle = (CUfunction)function;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel handle) {
  HELD_KERNEL kernel = NULL;
  CHECK(kernel_of(handle, &kernel));
  if (!library) return CUDA_ERROR_INVALID_VALUE;
  *library = (CUlibrary)kernel->library;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuKernelGetName(const char **name, CUkernel handle) {
  HELD_KERNEL kernel = NULL;
  CHECK(kernel_of(handle, &kernel));
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name;
  return CUDA_SUCCESS;
}

/* A kernel's code for a device. */
static CUresult code_for(const struct kernel *kernel, CUdevice device, struct code **code, struct code_kernel **found) {
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  *code = kernel->library->codes[device];
  if (!*code) return kernel->library->reasons[device];
  const struct description_kernel *described = description_kernel((*code)->description, kernel->name);
  if (!described) return CUDA_ERROR_NOT_FOUND;
  *found = &(*code)->kernels[described - (*code)->description->kernels];
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size) {
  HELD_KERNEL kernel = NULL;
  struct code *code;
  struct code_kernel *found;
  CHECK(kernel_of(handle, &kernel));
  for (int device = 0; device < device_count(); device++)
    if (code_for(kernel, device, &code, &found) == CUDA_SUCCESS) return parameter_info(found, index, offset, size);
  return CUDA_ERROR_NOT_FOUND;
}

EXPORTED CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  HELD_KERNEL kernel = NULL;
  struct code *code;
  struct code_kernel *found;
  CHECK(kernel_of(handle, &kernel));
  CHECK(code_for(kernel, device, &code, &found));
  return attribute_get(value, attribute, code, found, &kernel->settings[device], device);
}

EXPORTED CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  HELD_KERNEL kernel = NULL;
  struct code *code;
  struct code_kernel *found;
  CHECK(kernel_of(handle, &kernel));
  CHECK(code_for(kernel, device, &code, &found));
  return attribute_set(attribute, value, code, found, &kernel->settings[device], device);
}

EXPORTED CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  HELD_KERNEL kernel = NULL;
  struct code *code;
  struct code_kernel *found;
  CHECK(kernel_of(handle, &kernel));
  CHECK(code_for(kernel, device, &code, &found));
  return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
