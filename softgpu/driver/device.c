/* Devices: what they are. Attributes say what this driver does, not what the card would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum {
  PCI_DOMAIN = 0x5067, /* no hardware has this one */
  REGISTERS = 65536,   /* of an SM and of a block, in every capability from 5.0 on (CUDA C++ Programming Guide) */
  CONSTANT_MEMORY = 65536,
  USUAL_SHARED = 49152,
  RESERVED_SHARED = 1024,
  PITCH = 2147483647,
  TEXTURE_ALIGNMENT = 512,
  COPY_ENGINES = 2, /* copies to a device and from it go on side by side, and beside kernels */
  DATA_RATE = 2 /* transfers in a clock of the memory, as this attribute is meant to be multiplied by */
};

static CUresult device_of(CUdevice ordinal, const struct device **device) {
  CHECK(ready());
  *device = device_at(ordinal);
  return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuDeviceGetCount(int *count) {
  CHECK(ready());
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = device_count();
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  const struct device *found;
  CHECK(device_of(ordinal, &found));
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)length, "%s", device->card->full_name);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal) { return cuDeviceGetUuid_v2(uuid, ordinal); }

EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->memory;
  return CUDA_SUCCESS;
}

/* The first form has room for 4 GiB less a byte. */
EXPORTED CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->memory > UINT32_MAX ? UINT32_MAX : (unsigned)device->memory;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = device->card->major;
  *minor = device->card->minor;
  return CUDA_SUCCESS;
}

/* Bandwidth = clock * transfers in a clock * width of the bus. */
static int memory_clock(const struct card *card) {
  return (int)((long long)card->bandwidth * 1000 * 8 / DATA_RATE / card->bus_bits);
}

static int attribute_of(CUdevice ordinal, const struct device *device, CUdevice_attribute attribute, bool *known) {
  const struct card *card = device->card;
  *known = true;
  switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return USUAL_SHARED;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return card->shared_per_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return card->shared_per_sm;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return card->major < 8 ? 0 : RESERVED_SHARED;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return CONSTANT_MEMORY;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return PITCH;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return REGISTERS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return card->clock;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return memory_clock(card);
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return card->bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return card->l2;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return card->sms;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return card->threads_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return card->blocks_per_sm;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return card->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return card->minor;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: return TEXTURE_ALIGNMENT;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return 32;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return PCI_DOMAIN;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return ordinal + 1;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: return ordinal;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: return card->fp32 / card->fp64;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return COPY_ENGINES;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES: return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    case CU_DEVICE_ATTRIBUTE_NUMA_CONFIG: return CU_DEVICE_NUMA_CONFIG_NONE;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return -1;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT: return 1;
    default: *known = attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX; return 0;
  }
}

EXPORTED CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  bool known;
  int found = attribute_of(ordinal, device, attribute, &known);
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  *value = found;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!properties) return CUDA_ERROR_INVALID_VALUE;
  *properties = (CUdevprop){
      .maxThreadsPerBlock = 1024,
      .maxThreadsDim = {1024, 1024, 64},
      .maxGridSize = {2147483647, 65535, 65535},
      .sharedMemPerBlock = USUAL_SHARED,
      .totalConstantMemory = CONSTANT_MEMORY,
      .SIMDWidth = 32,
      .memPitch = PITCH,
      .regsPerBlock = REGISTERS,
      .clockRate = device->card->clock,
      .textureAlign = TEXTURE_ALIGNMENT,
  };
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!supported || (int)type < 0 || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}

/* domain:bus:device.function, all hexadecimal. */
EXPORTED CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice ordinal) {
  const struct device *device;
  CHECK(device_of(ordinal, &device));
  if (!text || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  int needed = snprintf(text, (size_t)length, "%04x:%02x:00.0", (unsigned)PCI_DOMAIN, (unsigned)ordinal + 1);
  return needed < length ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  CHECK(ready());
  if (!device || !text) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain, bus, place, function = 0;
  int end = 0;
  bool whole = sscanf(text, "%x:%x:%x%n.%x%n", &domain, &bus, &place, &end, &function, &end) >= 3 && !text[end];
  if (!whole) return CUDA_ERROR_INVALID_VALUE;
  if (domain != PCI_DOMAIN || place || function || !bus || bus > (unsigned)device_count())
    return CUDA_ERROR_INVALID_DEVICE;
  *device = (CUdevice)bus - 1;
  return CUDA_SUCCESS;
}
