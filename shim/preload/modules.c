#include "modules.h"

#include <string.h>

#include "contents.h"
#include "doors.h"
#include "kernels.h"
#include "ptx_params.h"
#include "store.h"
#include "things.h"

enum { LONGEST_PATH = 4096, MOST_PARAMETERS = 4096, LARGEST_KEPT = 1 << 26 };

struct known {
  uint64_t context, of;
  uint32_t image;
  uint64_t bytes;
  uint8_t content[32];
  char *kept; /* the image itself, if only it says what its kernels' parameters are */
};

struct module {
  struct entry entry;
  struct known known;
};

static void fill(struct entry *entry, const void *with) {
  memcpy(&((struct module *)(void *)entry)->known, with, sizeof(struct known));
}

static struct module *find(uint64_t handle) {
  return handle ? (struct module *)(void *)table_find(&session->modules, handle, 0) : NULL;
}

static void announce(uint64_t handle, const struct known *known, const char *path, unsigned function) {
  size_t length = path ? strnlen(path, LONGEST_PATH) : 0;
  table_end_key(&session->modules, handle, 0);
  table_add(&session->modules, handle, 0, sizeof(struct module), fill, known);
  struct wire_module *record = record_begin(WIRE_MODULE, function, sizeof *record + padded(length));
  record->handle = handle;
  record->context = known->context;
  record->library = !known->context;
  record->image = known->image;
  record->bytes = known->bytes;
  memcpy(record->content, known->content, sizeof record->content);
  record->of = known->of;
  record->path_bytes = (uint32_t)length;
  record->unused = 0;
  put_bytes(record + 1, path, length);
  record_end(record);
}

/* Drivers since CUDA 12.4 say it themselves. */
static bool driver_tells(bool kernel) {
  return driver_has(kernel ? NUMBER_cuKernelGetParamInfo : NUMBER_cuFuncGetParamInfo);
}

static char *keep(const struct image *image) {
  bool wanted = image->kind == WIRE_IMAGE_PTX || image->kind == WIRE_IMAGE_FATBIN;
  if (!wanted || !image->bytes || image->bytes > LARGEST_KEPT || driver_tells(false)) return NULL;
  char *kept = store_take(image->bytes);
  return kept ? memcpy(kept, image->data, image->bytes) : NULL;
}

void module_made(uint64_t handle, uint64_t context, const struct image *image, const char *path, unsigned function) {
  struct known known = {.context = context, .image = image->kind, .bytes = image->bytes, .kept = keep(image)};
  if (image->bytes) contents_send(image->data, image->bytes, known.content);
  announce(handle, &known, path, function);
}

void module_of_library(uint64_t handle, uint64_t library, unsigned function) {
  if (!handle || find(handle)) return;
  struct known known = {0};
  const struct module *whole = find(library);
  if (whole) known = whole->known;
  known.context = context_here();
  known.of = library;
  known.kept = NULL;
  announce(handle, &known, NULL, function);
}

static void give_kept(struct module *module) {
  lock_take(&session->texts_lock);
  char *kept = module->known.kept;
  module->known.kept = NULL;
  lock_give(&session->texts_lock);
  store_give(kept, module->known.bytes);
}

/* Kernels of modules that nobody has announced may be of any context: the driver will be asked again. */
static bool ends_with(const struct entry *entry, uint64_t context) {
  const struct module *module = find(((const struct kernel *)(const void *)entry)->module);
  return !module || module->known.context == context;
}

static bool is_of_context(const struct entry *entry, uint64_t context) {
  return ((const struct module *)(const void *)entry)->known.context == context;
}

static bool is_of_library(const struct entry *entry, uint64_t library) {
  return ((const struct module *)(const void *)entry)->known.of == library;
}

static bool kernel_of_library(const struct entry *entry, uint64_t library) {
  const struct module *module = find(((const struct kernel *)(const void *)entry)->module);
  return module && module->known.of == library;
}

/* Those of a table that `of` names give back what they keep, and end. */
static bool let_go(const struct entry *entry, uint64_t context) {
  if (!is_of_context(entry, context)) return false;
  give_kept((struct module *)(uintptr_t)entry);
  return true;
}

void modules_end(uint64_t context) {
  kernels_end_of(ends_with, context);
  table_end(&session->modules, let_go, context);
}

/* When the call fails, what was known of it is lost, and what it keeps: its kernels' parameters are unknown then. */
void module_end(struct ending *ending, uint64_t handle, unsigned function) {
  *ending = ending_begin(function, (struct wire_end){.kind = WIRE_MODULE, .handle = handle});
  struct module *module = find(handle);
  kernels_end(handle);
  if (!module) return;
  kernels_end_of(kernel_of_library, handle);
  table_end(&session->modules, is_of_library, handle);
  give_kept(module);
  table_end_key(&session->modules, handle, 0);
}

/* What texts of an image say of a kernel; false if that is nothing, or not the same. */
static bool layout_in(const struct image *image, const char *name, struct parameter *found, size_t *count) {
  enum ptx_answer answer;
  if (image->kind == WIRE_IMAGE_PTX) {
    *count = ptx_parameters(image->data, image->bytes, name, found, MOST_PARAMETERS, &answer);
    return answer == PTX_FOUND && *count <= MOST_PARAMETERS;
  }
  bool good = false;
  size_t bytes, at = 0;
  struct parameter *other = found + MOST_PARAMETERS;
  for (const char *text; (text = image_next_text(image, &at, &bytes));) {
    size_t here = ptx_parameters(text, bytes, name, good ? other : found, MOST_PARAMETERS, &answer);
    if (answer == PTX_NO_ENTRY) continue;
    if (answer != PTX_FOUND || here > MOST_PARAMETERS) return false;
    if (good && (here != *count || memcmp(found, other, here * sizeof *found) != 0)) return false;
    *count = here;
    good = true;
  }
  return good;
}

static bool layout_of(struct module *module, const char *name, struct parameter *found, size_t *count) {
  lock_take(&session->texts_lock);
  const struct image image = {(enum wire_image)module->known.image, module->known.kept, module->known.bytes};
  bool good = image.data && layout_in(&image, name, found, count);
  lock_give(&session->texts_lock);
  return good;
}

void module_tell(uint64_t handle, uint64_t function, bool is_kernel, const char *name) {
  if (driver_tells(is_kernel) || !name) return;
  const struct entry *old = table_find(&session->kernels, function, 0);
  if (old && ((const struct kernel *)(const void *)old)->module == handle) return;
  struct module *module = find(handle);
  size_t bytes = 2 * MOST_PARAMETERS * sizeof(struct parameter), count = 0;
  struct parameter *found = store_take(bytes);
  struct wire_parameter *layout = store_take(MOST_PARAMETERS * sizeof *layout);
  bool good = module && found && layout && layout_of(module, name, found, &count);
  for (size_t i = 0; good && i < count; i++)
    layout[i] = (struct wire_parameter){(uint32_t)found[i].offset, (uint32_t)found[i].size};
  kernel_told(function, handle, is_kernel, name, good ? layout : NULL, (uint32_t)count);
  store_give(found, bytes);
  store_give(layout, MOST_PARAMETERS * sizeof *layout);
}
