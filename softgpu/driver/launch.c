/* Launches: kernels by the engine, in streams. */
#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cost.h"
#include "driver.h"
#include "function.h"
#include "instrument.h"
#include "instrument_settings.h"
#include "occupancy.h"
#include "view.h"

enum { MOST_THREADS = 1024, MOST_GLOBALS = 64, MOST_SHOWN = 4096 };

static const unsigned LARGEST_GRID[3] = {2147483647, 65535, 65535};
static const unsigned LARGEST_BLOCK[3] = {1024, 1024, 64};

/* The engine's threads, once for the process. */
static sg_pool *pool;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void make_pool(void) { pool = sg_pool_create(0); }

uint32_t launch_flags(void) {
  if (clock_on()) return SG_COUNTS | SG_LOGS;
  return instrument_wants_accesses() ? SG_LOGS : 0;
}

struct launch {
  struct command command;
  struct module *module; /* a reference */
  struct function *function;
  CUfunction handle; /* as the program named it */
  const struct variant *variant;
  uint32_t grid[3], block[3], dynamic_shared;
  bool cooperative;
  void **arguments; /* addresses in `parameters`, for those who ask what was launched */
  uint8_t parameters[];
};

static void end(struct command *command) {
  struct launch *launch = (struct launch *)command;
  module_release(launch->module);
  free(launch);
}

/* What went wrong in a kernel is a property of the instruction at that line. */
static CUresult fault(const struct sg_kernel *kernel, const struct sg_result *result) {
  for (uint32_t n = 0; n < kernel->site_count; n++) {
    const struct sg_site *site = &kernel->sites[n];
    if (site->line == result->line && !strcmp(site->mnemonic, result->mnemonic) && site->align &&
        result->address % site->align)
      return CUDA_ERROR_MISALIGNED_ADDRESS;
  }
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult outcome(const struct sg_kernel *kernel, const struct sg_result *result) {
  switch ((enum sg_outcome)result->status) {
    case SG_OK: return CUDA_SUCCESS;
    case SG_FAULT: return fault(kernel, result);
    case SG_ASSERT: return CUDA_ERROR_ASSERT;
    case SG_DEADLOCK:
    case SG_DEADLINE: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case SG_OUT_OF_MEMORY: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case SG_TRAP:
    case SG_UNDEFINED:
    case SG_BAD_LAUNCH: break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

static bool is_empty(const uint32_t grid[3]) { return !grid[0] || !grid[1] || !grid[2]; }

static CUresult run_in(const struct launch *launch, const struct view *view) {
  const struct sg_kernel *kernel = launch->variant->kernel;
  uint64_t few[MOST_GLOBALS], *globals = kernel->global_count <= MOST_GLOBALS ? few : NULL;
  if (!globals && !(globals = malloc(kernel->global_count * sizeof *globals))) return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < kernel->global_count; n++) globals[n] = launch->module->variables[launch->variant->globals[n]];
  struct sg_launch request = {
      .kernel = launch->variant->handle,
      .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
      .block = {launch->block[0], launch->block[1], launch->block[2]},
      .dynamic_shared = launch->dynamic_shared,
      .cooperative = launch->cooperative,
      .params = launch->parameters,
      .params_size = kernel->param_bytes,
      .allocations = view->table,
      .allocation_count = view->count,
      .globals = globals,
      .global_count = kernel->global_count,
  };
  struct sg_result result = {0};
  sg_launch_run(pool, &request, &result);
  if (result.output_size) {
    fwrite(result.output, 1, result.output_size, stdout);
    fflush(stdout);
  }
  if (result.status != SG_OK) complain("%s", result.message);
  cost_kernel(launch->module->device, (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2], &result);
  if (instrument_wants_accesses())
    instrument_launch(&(struct launched){.kernel = launch->function->kernel->described->name,
                                         .device = launch->module->device,
                                         .grid = launch->grid,
                                         .block = launch->block,
                                         .shared = launch->dynamic_shared},
                      &result);
  CUresult found = outcome(kernel, &result);
  sg_result_free(&result);
  if (globals != few) free(globals);
  return found;
}

static CUresult run(const struct command *command) {
  const struct launch *launch = (const struct launch *)command;
  struct view *view;
  if (is_empty(launch->grid)) {
    complain("kernel %.80s: a graph is launched before its node has got a grid",
             launch->function->kernel->described->name);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CHECK(allocations_table(launch->module->context, launch->module->context_id, launch->module->device, &view));
  CUresult result = run_in(launch, view);
  view_release(view);
  return result;
}

static void show_extent(FILE *to, const char *name, const uint32_t extent[3]) {
  fprintf(to, ", \"%s\": [%u, %u, %u]", name, extent[0], extent[1], extent[2]);
}

static void show(const void *command, FILE *to) {
  const struct launch *launch = command;
  const struct description_kernel *described = launch->function->kernel->described;
  fputs(", \"kernel\": ", to);
  line_text(to, described->name, SIZE_MAX);
  show_number(to, "device", (uint64_t)launch->module->device);
  show_extent(to, "grid", launch->grid);
  show_extent(to, "block", launch->block);
  show_number(to, "shared", launch->dynamic_shared);
  fprintf(to, ", \"cooperative\": %s", launch->cooperative ? "true" : "false");
  show_number(to, "parameter_bytes", described->parameter_bytes);
  if (described->parameter_bytes > MOST_SHOWN) {
    show_digest(to, "parameters_sha256", launch->parameters, described->parameter_bytes);
  } else {
    fputs(", \"parameters\": ", to);
    line_bytes(to, launch->parameters, described->parameter_bytes);
  }
}

static const struct command_kind LAUNCH = {
    .type = CU_GRAPH_NODE_TYPE_KERNEL, .run = run, .work = "kernel", .show = show, .end = end};

/* Arguments: one by one, or all in a buffer. */

static CUresult read_extra(void **extra, const void **buffer, size_t *bytes) {
  *buffer = NULL;
  const size_t *size = NULL;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = extra[1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  *bytes = size ? *size : 0;
  return size && (*buffer || !*size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_parameters(const struct description_kernel *described, void **arguments, void **extra,
                                uint8_t *to) {
  if (arguments && extra) return CUDA_ERROR_INVALID_VALUE;
  if (!arguments && !extra) return described->parameter_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (extra) {
    const void *buffer;
    size_t bytes;
    CHECK(read_extra(extra, &buffer, &bytes));
    if (bytes < described->parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (described->parameter_bytes) memcpy(to, buffer, described->parameter_bytes);
    return CUDA_SUCCESS;
  }
  for (uint32_t n = 0; n < described->parameter_count; n++) {
    if (!arguments[n]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(to + described->parameters[n].offset, arguments[n], described->parameters[n].size);
  }
  return CUDA_SUCCESS;
}

/* Programs make nodes of graphs before they know the grid; then an extent may be 0. */
static CUresult check_extents(const uint32_t grid[3], const uint32_t block[3],
                              const struct description_kernel *described) {
  for (int n = 0; n < 3; n++)
    if (grid[n] > LARGEST_GRID[n] || !block[n] || block[n] > LARGEST_BLOCK[n]) return CUDA_ERROR_INVALID_VALUE;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads > MOST_THREADS) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t *required = described->required;
  if (required[0] && (required[0] != block[0] || required[1] != block[1] || required[2] != block[2]))
    return CUDA_ERROR_INVALID_VALUE;
  return described->max_threads && threads > described->max_threads ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* What can only be known of the compiled kernel. */
static CUresult check_resources(const struct launch *launch) {
  const struct sg_kernel *kernel = launch->variant->kernel;
  CUdevice device = launch->module->device;
  int fixed = (int)kernel->static_shared;
  if (launch->dynamic_shared > (uint32_t)settings_dynamic_shared(launch->function->settings, fixed))
    return CUDA_ERROR_INVALID_VALUE;
  if (!launch->cooperative) return CUDA_SUCCESS;
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  uint64_t resident = (uint64_t)occupancy(device_at(device)->card, fixed + (int)launch->dynamic_shared, threads) *
                      (uint64_t)device_at(device)->card->sms;
  return blocks > resident ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult launch_command(const CUDA_KERNEL_NODE_PARAMS_v3 *params, bool cooperative, const struct stream_place *place,
                        struct command **made) {
  HELD_FUNCTION function = NULL;
  pthread_once(&pool_once, make_pool);
  if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
  CUfunction handle = params->func ? params->func : (CUfunction)params->kern;
  CHECK(function_of(handle, place, &function));
  if (function->module->context_id != place->context_id) return CUDA_ERROR_INVALID_HANDLE;
  function_use(function);
  const struct description_kernel *described = function->kernel->described;
  const uint32_t grid[3] = {params->gridDimX, params->gridDimY, params->gridDimZ};
  const uint32_t block[3] = {params->blockDimX, params->blockDimY, params->blockDimZ};
  const struct variant *variant;
  CHECK(check_extents(grid, block, described));
  CHECK(code_variant(function->module->code, function->kernel, block, place->device, &variant));
  size_t bytes = (described->parameter_bytes + 7u) / 8u * 8u;
  struct launch *launch = malloc(sizeof *launch + bytes + described->parameter_count * sizeof(void *));
  if (!launch) return CUDA_ERROR_OUT_OF_MEMORY;
  *launch = (struct launch){.command = command_begin(&LAUNCH, place), .module = function->module, .function = function,
                            .handle = handle, .variant = variant, .grid = {grid[0], grid[1], grid[2]},
                            .block = {block[0], block[1], block[2]}, .dynamic_shared = params->sharedMemBytes,
                            .cooperative = cooperative, .arguments = (void **)(void *)(launch->parameters + bytes)};
  memset(launch->parameters, 0, bytes); /* what lies between parameters */
  module_hold(launch->module);
  CUresult result = check_resources(launch);
  if (result == CUDA_SUCCESS)
    result = read_parameters(described, params->kernelParams, params->extra, launch->parameters);
  if (result != CUDA_SUCCESS) {
    end(&launch->command);
    return result;
  }
  for (uint32_t n = 0; n < described->parameter_count; n++)
    launch->arguments[n] = launch->parameters + described->parameters[n].offset;
  *made = &launch->command;
  return CUDA_SUCCESS;
}

void launch_params(const struct command *command, CUDA_KERNEL_NODE_PARAMS_v3 *params) {
  const struct launch *launch = (const struct launch *)command;
  bool kernel = launch->handle != (CUfunction)launch->function;
  *params = (CUDA_KERNEL_NODE_PARAMS_v3){
      .func = kernel ? NULL : launch->handle, .kern = kernel ? (CUkernel)launch->handle : NULL,
      .gridDimX = launch->grid[0], .gridDimY = launch->grid[1], .gridDimZ = launch->grid[2],
      .blockDimX = launch->block[0], .blockDimY = launch->block[1], .blockDimZ = launch->block[2],
      .sharedMemBytes = launch->dynamic_shared, .kernelParams = launch->arguments, .ctx = launch->module->context};
}

bool launch_is_cooperative(const struct command *command) { return ((const struct launch *)command)->cooperative; }

/* Calls. */

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS_v3 *params, bool cooperative, CUstream stream, bool own) {
  struct stream_place place;
  struct command *made;
  CHECK(stream_place(stream, own, &place));
  if (is_empty((uint32_t[]){params->gridDimX, params->gridDimY, params->gridDimZ})) return CUDA_ERROR_INVALID_VALUE;
  CHECK(launch_command(params, cooperative, &place, &made));
  return submit(&place, false, made);
}

/* Clusters of one block are blocks. */
static CUresult check_cluster(const CUlaunchAttributeValue *value) {
  bool one = value->clusterDim.x <= 1 && value->clusterDim.y <= 1 && value->clusterDim.z <= 1;
  return one ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Attributes that are hints, or whose promise holds anyhow, need nothing. */
static CUresult read_attribute(const CUlaunchAttribute *attribute, bool *cooperative) {
  switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: *cooperative = attribute->value.cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: return check_cluster(&attribute->value);
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* launches of a stream never overlap here */
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return attribute->value.deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra, bool own) {
  bool cooperative = false;
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < config->numAttrs; n++) CHECK(read_attribute(&config->attrs[n], &cooperative));
  CUDA_KERNEL_NODE_PARAMS_v3 params = {
      .func = function, .gridDimX = config->gridDimX, .gridDimY = config->gridDimY, .gridDimZ = config->gridDimZ,
      .blockDimX = config->blockDimX, .blockDimY = config->blockDimY, .blockDimZ = config->blockDimZ,
      .sharedMemBytes = config->sharedMemBytes, .kernelParams = arguments, .extra = extra};
  return launch(&params, cooperative, config->hStream, own);
}

#define PARAMS(function_, shared_, arguments_, extra_)                                                               \
  &(CUDA_KERNEL_NODE_PARAMS_v3){.func = function_, .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z,         \
                             .blockDimX = block_x, .blockDimY = block_y, .blockDimZ = block_z,                      \
                             .sharedMemBytes = shared_, .kernelParams = arguments_, .extra = extra_}

#define LAUNCHES(suffix, own)                                                                                         \
  EXPORTED CUresult cuLaunchKernel##suffix(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,   \
                                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,    \
                                           CUstream stream, void **arguments, void **extra) {                       \
    return launch(PARAMS(function, shared, arguments, extra), false, stream, own);                                   \
  }                                                                                                                  \
  EXPORTED CUresult cuLaunchCooperativeKernel##suffix(CUfunction function, unsigned grid_x, unsigned grid_y,         \
                                                      unsigned grid_z, unsigned block_x, unsigned block_y,           \
                                                      unsigned block_z, unsigned shared, CUstream stream,            \
                                                      void **arguments) {                                            \
    return launch(PARAMS(function, shared, arguments, NULL), true, stream, own);                                     \
  }                                                                                                                  \
  EXPORTED CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function, void **arguments,    \
                                             void **extra) {                                                         \
    return launch_ex(config, function, arguments, extra, own);                                                       \
  }

LAUNCHES(, false)
LAUNCHES(_ptsz, true)
