#include "contexts.h"

#include <string.h>

#include "ask.h"
#include "doors.h"
#include "kernels.h"
#include "session.h"
#include "streams.h"

/* Devices stand in the same table as contexts, under their ordinals, which are no addresses. */
enum { DEVICE_KEY = 1, LONGEST_NAME = 256 };

CUcontext context_now(void) {
  CUcontext context = NULL;
  inside++;
  if (real.cuCtxGetCurrent) real.cuCtxGetCurrent(&context);
  inside--;
  return context;
}

static int attribute(CUdevice_attribute which, CUdevice device) {
  int value = 0;
  real.cuDeviceGetAttribute(&value, which, device);
  return value;
}

static void device_known(CUdevice device) {
  if (table_find(&session->contexts, (uint64_t)device, DEVICE_KEY)) return;
  char name[LONGEST_NAME] = "";
  CUuuid uuid = {{0}};
  size_t memory = 0;
  struct asking asking = ask_begin();
  real.cuDeviceGetName(name, sizeof name, device);
  if (real.cuDeviceGetUuid_v2)
    real.cuDeviceGetUuid_v2(&uuid, device);
  else if (real.cuDeviceGetUuid)
    real.cuDeviceGetUuid(&uuid, device);
  real.cuDeviceTotalMem_v2(&memory, device);
  int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  int processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  ask_end(asking);
  size_t length = strnlen(name, sizeof name);
  struct wire_device *record = record_begin(WIRE_DEVICE, NUMBER_cuDeviceGet, padded(sizeof *record + length));
  record->ordinal = device;
  record->capability = (uint32_t)(10 * major + minor);
  record->memory = memory;
  memcpy(record->uuid, uuid.bytes, sizeof record->uuid);
  record->processors = (uint32_t)processors;
  record->name_bytes = (uint32_t)length;
  put_bytes(record + 1, name, length);
  record_end(record);
  table_add(&session->contexts, (uint64_t)device, DEVICE_KEY, sizeof(struct entry), NULL, NULL);
}

void context_made(CUcontext context, CUdevice device, bool primary, unsigned function) {
  uint64_t key = (uint64_t)(uintptr_t)context;
  if (table_find(&session->contexts, key, 0)) return;
  device_known(device);
  struct wire_context *record = record_begin(WIRE_CONTEXT, function, sizeof *record);
  record->handle = key;
  record->device = device;
  record->primary = primary;
  record_end(record);
  table_add(&session->contexts, key, 0, sizeof(struct entry), NULL, NULL);
}

/* A context that nobody saw being made: the driver says which device's it is. */
void context_known(CUcontext context) {
  if (table_find(&session->contexts, (uint64_t)(uintptr_t)context, 0)) return;
  CUdevice device = 0;
  CUcontext primary = NULL, popped;
  unsigned flags;
  int active = 0;
  bool other = context_now() != context;
  struct asking asking = ask_begin();
  bool pushed = other && real.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
  CUresult result = other && !pushed ? CUDA_ERROR_INVALID_CONTEXT : real.cuCtxGetDevice(&device);
  if (pushed) real.cuCtxPopCurrent_v2(&popped);
  /* Retaining an active one gives its handle, and changes nothing once it is released. */
  if (!result && real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active &&
      real.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS) {
    if (real.cuDevicePrimaryCtxRelease_v2) real.cuDevicePrimaryCtxRelease_v2(device);
    else real.cuDevicePrimaryCtxRelease(device);
  }
  ask_end(asking);
  if (!result) context_made(context, device, primary == context, NUMBER_cuCtxGetCurrent);
}

unsigned context_end(CUcontext context, unsigned function) {
  uint64_t key = (uint64_t)(uintptr_t)context;
  record_ended(WIRE_CONTEXT, key, function);
  unsigned captures = streams_end(key);
  table_end(&session->kernels, NULL, 0); /* which were of its modules the driver knows: it will be asked again */
  table_end_key(&session->contexts, key, 0);
  return captures;
}
