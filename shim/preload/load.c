/* Modules and libraries are loaded and unloaded. */
#include "doors.h"
#include "file.h"
#include "hooks.h"
#include "modules.h"
#include "things.h"

static CUresult loaded(CUmodule *module, const void *data, unsigned function, CUresult result) {
  if (result != CUDA_SUCCESS || !module || !*module) return result;
  struct image image = image_of(data, 0);
  module_made(number_of(*module), context_here(), &image, NULL, function);
  return result;
}

static CUresult library_loaded(CUlibrary *library, const void *data, unsigned function, CUresult result) {
  if (result != CUDA_SUCCESS || !library || !*library) return result;
  struct image image = image_of(data, 0);
  module_made(number_of(*library), 0, &image, NULL, function);
  return result;
}

/* The driver has read the file; this library reads it once more. */
static void from_file(uint64_t handle, uint64_t context, const char *path, unsigned function) {
  struct file file;
  struct image image = {WIRE_IMAGE_UNKNOWN, NULL, 0};
  if (file_read(path, &file)) image = image_of(file.data, file.bytes);
  module_made(handle, context, &image, path, function);
  file_give(&file);
}

CUresult hook_cuModuleLoad(CUmodule *module, const char *path) {
  if (!recording()) return real.cuModuleLoad(module, path);
  CUresult result = DRIVER(real.cuModuleLoad(module, path));
  if (result == CUDA_SUCCESS && module && *module)
    from_file(number_of(*module), context_here(), path, NUMBER_cuModuleLoad);
  return result;
}

CUresult hook_cuModuleLoadData(CUmodule *module, const void *image) {
  if (!recording()) return real.cuModuleLoadData(module, image);
  return loaded(module, image, NUMBER_cuModuleLoadData, DRIVER(real.cuModuleLoadData(module, image)));
}

CUresult hook_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                 void **values) {
  if (!recording()) return real.cuModuleLoadDataEx(module, image, count, options, values);
  return loaded(module, image, NUMBER_cuModuleLoadDataEx,
                DRIVER(real.cuModuleLoadDataEx(module, image, count, options, values)));
}

CUresult hook_cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  if (!recording()) return real.cuModuleLoadFatBinary(module, image);
  return loaded(module, image, NUMBER_cuModuleLoadFatBinary, DRIVER(real.cuModuleLoadFatBinary(module, image)));
}

CUresult hook_cuModuleUnload(CUmodule module) {
  if (!module || !recording()) return real.cuModuleUnload(module);
  struct ending ending;
  module_end(&ending, number_of(module), NUMBER_cuModuleUnload);
  return ending_done(&ending, real.cuModuleUnload(module));
}

CUresult hook_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                                unsigned count, CUlibraryOption *library_options, void **library_values,
                                unsigned library_count) {
#define ARGUMENTS library, code, options, values, count, library_options, library_values, library_count
  if (!recording()) return real.cuLibraryLoadData(ARGUMENTS);
  return library_loaded(library, code, NUMBER_cuLibraryLoadData, DRIVER(real.cuLibraryLoadData(ARGUMENTS)));
#undef ARGUMENTS
}

CUresult hook_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                                    unsigned count, CUlibraryOption *library_options, void **library_values,
                                    unsigned library_count) {
#define ARGUMENTS library, path, options, values, count, library_options, library_values, library_count
  if (!recording()) return real.cuLibraryLoadFromFile(ARGUMENTS);
  CUresult result = DRIVER(real.cuLibraryLoadFromFile(ARGUMENTS));
  if (result == CUDA_SUCCESS && library && *library)
    from_file(number_of(*library), 0, path, NUMBER_cuLibraryLoadFromFile);
  return result;
#undef ARGUMENTS
}

CUresult hook_cuLibraryUnload(CUlibrary library) {
  if (!library || !recording()) return real.cuLibraryUnload(library);
  struct ending ending;
  module_end(&ending, number_of(library), NUMBER_cuLibraryUnload);
  return ending_done(&ending, real.cuLibraryUnload(library));
}
