/* Links: several images become one, which is PTX, as every module here is. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "description.h"
#include "driver.h"
#include "files.h"
#include "freed.h"
#include "handles.h"
#include "image.h"
#include "jit.h"

struct link {
  CUcontext context; /* first: `handles_end` */
  CUdevice device;
  unsigned references; /* under `lock` */
  pthread_mutex_t turn; /* all that follows */
  struct jit jit;
  char *texts; /* of the inputs, each with a zero byte behind it */
  size_t bytes, count;
  char *image; /* NULL until it is complete */
  size_t image_bytes;
};

static struct freed freed = FREED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void release(struct link *link) {
  pthread_mutex_lock(&lock);
  bool last = !--link->references;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  pthread_mutex_destroy(&link->turn);
  free(link->texts);
  free(link->image);
  object_free(&freed, link);
}

/* A link with a reference; NULL: it is none. `remove`: it is none from now on, and has one reference less. */
static struct link *hold(CUlinkState state, bool remove) {
  struct link *link = (struct link *)state;
  pthread_mutex_lock(&lock);
  bool alive = handle_is(LINK, link, remove);
  if (alive && !remove) link->references++;
  pthread_mutex_unlock(&lock);
  return alive ? link : NULL;
}

static bool has(CUjit_option wanted, unsigned count, const CUjit_option *options) {
  for (unsigned i = 0; i < count; i++)
    if (options[i] == wanted) return true;
  return false;
}

EXPORTED CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *state) {
  struct here here;
  struct jit jit;
  CHECK(current(&here));
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  CHECK(jit_read(count, options, values, &jit));
  if (has(CU_JIT_FALLBACK_STRATEGY, count, options)) return CUDA_ERROR_INVALID_VALUE;
  struct link *link = object_make(&freed, sizeof *link);
  if (link) *link = (struct link){.context = here.context, .device = here.device, .references = 1, .jit = jit};
  if (!link || pthread_mutex_init(&link->turn, NULL) || !handle_add(LINK, link)) {
    object_free(&freed, link);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  jit_finish(&link->jit, 0);
  *state = (CUlinkState)link;
  return CUDA_SUCCESS;
}

/* Options that an input may not have: there is one log of the link. */
static CUresult check_options(unsigned count, const CUjit_option *options, void **values) {
  static const CUjit_option forbidden[] = {
      CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
      CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_TARGET};
  struct jit unused;
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
    if (has(forbidden[i], count, options)) return CUDA_ERROR_INVALID_VALUE;
  return jit_read(count, options, values, &unused);
}

/* Whether the image is what the program says. What a link makes goes for a cubin. */
static CUresult check_type(CUjitInputType type, const void *data, size_t size) {
  static const char *const names[] = {[CU_JIT_INPUT_OBJECT] = "objects of the host",
                                      [CU_JIT_INPUT_LIBRARY] = "libraries",
                                      [CU_JIT_INPUT_NVVM] = "intermediate code"};
  enum image_kind kind = image_kind(data, size);
  switch (type) {
    case CU_JIT_INPUT_PTX: return kind == IMAGE_PTX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
    case CU_JIT_INPUT_FATBINARY: return kind == IMAGE_FATBIN ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_CUBIN:
      return kind == IMAGE_CUBIN || kind == IMAGE_PTX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
    case CU_JIT_INPUT_NVVM:
      complain("a link of %s is not supported: link PTX or fatbins with PTX", names[type]);
      return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Append a text and its zero byte. */
static bool append(struct link *link, const char *text, size_t bytes) {
  char *more = realloc(link->texts, link->bytes + bytes + 1);
  if (!more) return false;
  memcpy(more + link->bytes, text, bytes + 1);
  link->texts = more;
  link->bytes += bytes + 1;
  link->count++;
  return true;
}

/* Whether a text is good PTX; `whole`: and lacks nothing. If not, the log says why. */
static CUresult check_text(struct link *link, const char *name, const char *text, size_t bytes, bool whole) {
  struct description *description;
  struct sg_failure why;
  uint8_t digest[SG_DIGEST_BYTES];
  sg_module_digest(text, bytes, digest);
  CUresult result = (whole ? module_describe : part_describe)(text, bytes, digest, &description, &why);
  if (result == CUDA_SUCCESS) {
    description_free(description);
  } else {
    char line[sizeof why.text + 128];
    snprintf(line, sizeof line, "%.100s%s%s", name ? name : "", name ? ": " : "", why.text);
    jit_error(&link->jit, line);
  }
  return result;
}

/* The turn is ours. */
static CUresult add(struct link *link, CUjitInputType type, const void *data, size_t size, const char *name) {
  char *text;
  size_t bytes;
  if (link->image) return CUDA_ERROR_INVALID_VALUE; /* it is complete */
  CHECK(check_type(type, data, size));
  CHECK(image_text(data, size, link->device, &text, &bytes));
  CUresult result = check_text(link, name, text, bytes, false);
  if (result == CUDA_SUCCESS && !append(link, text, bytes)) result = CUDA_ERROR_OUT_OF_MEMORY;
  free(text);
  return result;
}

EXPORTED CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                   unsigned int count, CUjit_option *options, void **values) {
  double start = milliseconds_now();
  CHECK(ready());
  struct link *link = hold(state, false);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = data && size ? check_options(count, options, values) : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) {
    pthread_mutex_lock(&link->turn);
    result = add(link, type, data, size, name);
    if (result != CUDA_SUCCESS && !link->jit.error.used) {
      const char *text = "an input is refused";
      cuGetErrorString(result, &text);
      jit_error(&link->jit, text);
    }
    jit_finish(&link->jit, milliseconds_now() - start);
    pthread_mutex_unlock(&link->turn);
  }
  release(link);
  return result;
}

EXPORTED CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                                   CUjit_option *options, void **values) {
  char *content;
  size_t bytes;
  CHECK(ready());
  struct link *link = hold(state, false);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  release(link);
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  CHECK(file_content(path, &content, &bytes));
  CUresult result = cuLinkAddData_v2(state, type, content, bytes, path, count, options, values);
  free(content);
  return result;
}

/* The turn is ours. */
static CUresult complete(struct link *link) {
  struct sg_failure why;
  char *image;
  size_t bytes;
  if (!link->count) return CUDA_ERROR_INVALID_VALUE;
  if (link->count == 1) {
    image = strdup(link->texts);
    bytes = link->bytes - 1;
    if (!image) return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    CUresult result = answer_result(sg_link(link->texts, link->bytes, &image, &bytes, &why));
    if (result != CUDA_SUCCESS) {
      jit_error(&link->jit, why.text);
      return result;
    }
  }
  CUresult result = check_text(link, NULL, image, bytes, true);
  if (result != CUDA_SUCCESS) {
    free(image);
    return result;
  }
  link->image = image;
  link->image_bytes = bytes + 1;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
  double start = milliseconds_now();
  CHECK(ready());
  struct link *link = hold(state, false);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&link->turn);
  if (result == CUDA_SUCCESS && !link->image) {
    result = complete(link);
    jit_finish(&link->jit, milliseconds_now() - start);
  }
  if (result == CUDA_SUCCESS) {
    *image = link->image;
    if (size) *size = link->image_bytes; /* with the zero byte: a copy loads too */
  }
  pthread_mutex_unlock(&link->turn);
  release(link);
  return result;
}

EXPORTED CUresult cuLinkDestroy(CUlinkState state) {
  CHECK(ready());
  struct link *link = hold(state, true);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  release(link);
  return CUDA_SUCCESS;
}

/* The older forms, for programs of CUDA 5.5 and 6.0, take the same. */
EXPORTED CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *state) {
  return cuLinkCreate_v2(count, options, values, state);
}

EXPORTED CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                unsigned int count, CUjit_option *options, void **values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

EXPORTED CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                                CUjit_option *options, void **values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
