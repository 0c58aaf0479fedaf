#include "launch.h"

#include <string.h>

#include "hooks.h"
#include "session.h"
#include "work.h"

enum { MOST_PARAMETER_BYTES = 65536, MOST_ATTRIBUTES = 256 };

/* `extra` is a list of names and values with CU_LAUNCH_PARAM_END behind it. */
static const void *packed(void *const *extra, size_t *bytes) {
  const void *found = NULL;
  *bytes = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      found = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
      memcpy(bytes, extra[1], sizeof *bytes);
    else
      break; /* the driver will refuse it */
  }
  return found;
}

void launch_prepare(const struct launch *launch, struct launch_layout *layout) {
  *layout = (struct launch_layout){.kernel = kernel_of(launch->function), .flags = launch->flags};
  const struct kernel *kernel = layout->kernel;
  if (launch->extra && !launch->parameters) {
    layout->packed = packed(launch->extra, &layout->parameter_bytes);
    layout->flags |= WIRE_PACKED;
    if (!layout->packed && layout->parameter_bytes) layout->flags |= WIRE_PARAMETERS_UNKNOWN;
  } else if (kernel && kernel->known && (launch->parameters || !kernel->parameters)) {
    layout->parameter_bytes = kernel->parameter_bytes;
  } else {
    layout->flags |= WIRE_PARAMETERS_UNKNOWN;
  }
  if (layout->parameter_bytes > MOST_PARAMETER_BYTES) layout->flags |= WIRE_PARAMETERS_UNKNOWN;
  if (layout->flags & WIRE_PARAMETERS_UNKNOWN) layout->parameter_bytes = 0;
  unsigned attributes = launch->attributes && launch->attribute_count <= MOST_ATTRIBUTES ? launch->attribute_count : 0;
  layout->bytes = sizeof(struct wire_launch_body) + padded(layout->parameter_bytes) +
                  attributes * sizeof(struct wire_attribute);
}

/* Nearly all parameters have one of two sizes, for which the compiler has better than a call. */
static inline void copy_parameter(char *to, const void *from, size_t bytes) {
  if (bytes == 8)
    memcpy(to, from, 8);
  else if (bytes == 4)
    memcpy(to, from, 4);
  else
    memcpy(to, from, bytes);
}

static void put_parameters(char *place, const struct launch *launch, const struct launch_layout *layout) {
  const struct kernel *kernel = layout->kernel;
  if (layout->flags & WIRE_PACKED) {
    put_bytes(place, layout->packed, layout->parameter_bytes);
    return;
  }
  if (kernel->gaps) memset(place, 0, layout->parameter_bytes);
  memset(place + padded(layout->parameter_bytes) - 8, 0, 8); /* up to where the next part begins */
  for (uint32_t i = 0; i < kernel->parameters; i++)
    if (launch->parameters[i])
      copy_parameter(place + kernel->parameter[i].offset, launch->parameters[i], kernel->parameter[i].bytes);
    else
      memset(place + kernel->parameter[i].offset, 0, kernel->parameter[i].bytes);
}

void *put_launch(struct wire_launch_body *body, const struct launch *launch, const struct launch_layout *layout) {
  char *next = (char *)(body + 1);
  size_t attributes = (layout->bytes - sizeof *body - padded(layout->parameter_bytes)) / sizeof(struct wire_attribute);
  body->function = (uint64_t)(uintptr_t)launch->function;
  memcpy(body->grid, launch->grid, sizeof body->grid);
  memcpy(body->block, launch->block, sizeof body->block);
  body->shared = launch->shared;
  body->flags = layout->flags;
  body->parameter_bytes = (uint32_t)layout->parameter_bytes;
  body->attributes = (uint32_t)attributes;
  if (layout->parameter_bytes) put_parameters(next, launch, layout);
  next += padded(layout->parameter_bytes);
  for (size_t i = 0; i < attributes; i++, next += sizeof(struct wire_attribute)) {
    struct wire_attribute attribute = {.id = launch->attributes[i].id};
    memcpy(attribute.value, &launch->attributes[i].value, sizeof attribute.value);
    memcpy(next, &attribute, sizeof attribute);
  }
  return next;
}

_Static_assert(sizeof(CUlaunchAttributeValue) == 64, "an attribute's value fits");

void launch_begin(struct work *work, unsigned number, const struct launch *launch, CUstream stream, bool per_thread) {
  struct launch_layout layout;
  launch_prepare(launch, &layout);
  size_t bytes = sizeof(struct wire_head) + sizeof(struct wire_place) + layout.bytes;
  struct wire_launch *record = work_begin(work, WIRE_LAUNCH, number, bytes, stream_of(stream, per_thread));
  put_launch(&record->body, launch, &layout);
  work_call(work, record);
}

/* cuLaunchKernel and cuLaunchCooperativeKernel. */
#define LAUNCH(symbol, per_thread, how, arguments)                                                        \
  if (!recording()) return real.symbol arguments;                                                         \
  struct launch launch = {.function = f, .grid = {gridDimX, gridDimY, gridDimZ},                          \
                          .block = {blockDimX, blockDimY, blockDimZ}, .shared = sharedMemBytes,           \
                          .flags = how, .parameters = kernelParams, .extra = extra_};                     \
  struct work work;                                                                                       \
  launch_begin(&work, NUMBER_##symbol, &launch, hStream, per_thread);                                            \
  return work_end(&work, real.symbol arguments)

#define DIMENSIONS                                                                                        \
  CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,              \
      unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream, void **kernelParams
#define NAMES f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams

CUresult hook_cuLaunchKernel(DIMENSIONS, void **extra_) {
  LAUNCH(cuLaunchKernel, false, 0, (NAMES, extra_));
}

CUresult hook_cuLaunchKernel_ptsz(DIMENSIONS, void **extra_) {
  LAUNCH(cuLaunchKernel_ptsz, true, 0, (NAMES, extra_));
}

CUresult hook_cuLaunchCooperativeKernel(DIMENSIONS) {
  void **extra_ = NULL;
  LAUNCH(cuLaunchCooperativeKernel, false, WIRE_COOPERATIVE, (NAMES));
}

CUresult hook_cuLaunchCooperativeKernel_ptsz(DIMENSIONS) {
  void **extra_ = NULL;
  LAUNCH(cuLaunchCooperativeKernel_ptsz, true, WIRE_COOPERATIVE, (NAMES));
}

static bool cooperative(const CUlaunchConfig *config) {
  for (unsigned i = 0; config->attrs && i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && config->attrs[i].value.cooperative) return true;
  return false;
}

static struct launch configured(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra) {
  return (struct launch){
      .function = f,
      .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
      .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
      .shared = config->sharedMemBytes,
      .flags = cooperative(config) ? WIRE_COOPERATIVE : 0,
      .parameters = parameters,
      .extra = extra,
      .attributes = config->attrs,
      .attribute_count = config->numAttrs,
  };
}

CUresult hook_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra) {
  if (!config || !recording()) return real.cuLaunchKernelEx(config, f, parameters, extra);
  struct launch launch = configured(config, f, parameters, extra);
  struct work work;
  launch_begin(&work, NUMBER_cuLaunchKernelEx, &launch, config->hStream, false);
  return work_end(&work, real.cuLaunchKernelEx(config, f, parameters, extra));
}

CUresult hook_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra) {
  if (!config || !recording()) return real.cuLaunchKernelEx_ptsz(config, f, parameters, extra);
  struct launch launch = configured(config, f, parameters, extra);
  struct work work;
  launch_begin(&work, NUMBER_cuLaunchKernelEx_ptsz, &launch, config->hStream, true);
  return work_end(&work, real.cuLaunchKernelEx_ptsz(config, f, parameters, extra));
}
