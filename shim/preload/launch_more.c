/* Launches that are seldom met: on several devices at once, and by the oldest functions, for which parameters, blocks
 * and shared memory were set by calls before. */
#include "doors.h"
#include "hooks.h"
#include "launch.h"
#include "session.h"
#include "work.h"

enum { MOST_DEVICES = 64 };

/* One record for each device's, before the call. It fails for all or none. */
CUresult hook_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS_v1 *list, unsigned count, unsigned flags) {
  if (!list || count > MOST_DEVICES || !recording())
    return real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  uint64_t sequences[MOST_DEVICES];
  for (unsigned i = 0; i < count; i++) {
    const CUDA_LAUNCH_PARAMS_v1 *one = &list[i];
    struct launch launch = {.function = one->function, .grid = {one->gridDimX, one->gridDimY, one->gridDimZ},
                            .block = {one->blockDimX, one->blockDimY, one->blockDimZ},
                            .shared = one->sharedMemBytes, .flags = WIRE_COOPERATIVE,
                            .parameters = one->kernelParams};
    struct work work;
    launch_begin(&work, NUMBER_cuLaunchCooperativeKernelMultiDevice, &launch, one->hStream, false);
    work_end(&work, CUDA_SUCCESS);
    sequences[i] = work.sequence;
  }
  CUresult result = real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  for (unsigned i = 0; result != CUDA_SUCCESS && i < count; i++)
    record_outcome(sequences[i], NUMBER_cuLaunchCooperativeKernelMultiDevice, result, NULL, 0);
  return result;
}

/* The parameters are in the driver, which gives them to nobody. */
static void begin_old(struct work *work, unsigned number, CUfunction f, int width, int height, CUstream stream) {
  struct launch launch = {.function = f, .grid = {(unsigned)width, (unsigned)height, 1}};
  launch_begin(work, number, &launch, stream, false);
}

CUresult hook_cuLaunch(CUfunction f) {
  if (!recording()) return real.cuLaunch(f);
  struct work work;
  begin_old(&work, NUMBER_cuLaunch, f, 1, 1, NULL);
  return work_end(&work, real.cuLaunch(f));
}

CUresult hook_cuLaunchGrid(CUfunction f, int width, int height) {
  if (!recording()) return real.cuLaunchGrid(f, width, height);
  struct work work;
  begin_old(&work, NUMBER_cuLaunchGrid, f, width, height, NULL);
  return work_end(&work, real.cuLaunchGrid(f, width, height));
}

CUresult hook_cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  if (!recording()) return real.cuLaunchGridAsync(f, width, height, stream);
  struct work work;
  begin_old(&work, NUMBER_cuLaunchGridAsync, f, width, height, stream);
  return work_end(&work, real.cuLaunchGridAsync(f, width, height, stream));
}

/* What the first call of most programs is: from here on the process is known. */
CUresult hook_cuInit(unsigned flags) {
  recording();
  inside++; /* some drivers call their own functions by way of ours */
  CUresult result = real.cuInit(flags);
  inside--;
  return result;
}
