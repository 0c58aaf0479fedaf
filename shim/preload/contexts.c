#include "contexts.h"

#include <string.h>

#include "ask.h"
#include "doors.h"
#include "modules.h"
#include "session.h"
#include "streams.h"
#include "things.h"

/* Devices and their primary contexts stand in the same table, under ordinals, which are no addresses. */
enum { DEVICE_KEY = 1, PRIMARY_KEY = 2, LONGEST_NAME = 256 };

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

/* Under the device's ordinal, too. */
struct primary {
  struct entry entry;
  CUcontext context;
};

static void fill(struct entry *entry, const void *with) {
  memcpy(&((struct primary *)(void *)entry)->context, with, sizeof(CUcontext));
}

CUcontext primary_context(CUdevice device) {
  const struct entry *found = table_find(&session->contexts, (uint64_t)device, PRIMARY_KEY);
  return found ? ((const struct primary *)(const void *)found)->context : NULL;
}

static void set_primary(CUdevice device, CUcontext context) {
  if (primary_context(device) == context) return;
  table_end_key(&session->contexts, (uint64_t)device, PRIMARY_KEY);
  table_add(&session->contexts, (uint64_t)device, PRIMARY_KEY, sizeof(struct primary), fill, &context);
}

void context_made(CUcontext context, CUdevice device, bool primary, unsigned function) {
  uint64_t key = (uint64_t)(uintptr_t)context;
  if (primary) set_primary(device, context);
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

unsigned context_end(struct ending *ending, CUcontext context, unsigned function) {
  uint64_t key = number_of(context);
  *ending = ending_begin(function, (struct wire_end){.kind = WIRE_CONTEXT, .handle = key});
  unsigned captures = streams_end(key);
  modules_end(key);
  uses_end(key);
  table_end_key(&session->contexts, key, 0);
  return captures;
}

void context_again(CUcontext context) {
  table_add(&session->contexts, number_of(context), 0, sizeof(struct entry), NULL, NULL);
}
