/* Access between devices. Which contexts have enabled it is context.c's. */
#include "driver.h"

static CUresult pair(CUdevice first, CUdevice second) {
  CHECK(ready());
  return device_at(first) && device_at(second) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool devices_are_peers(CUdevice first, CUdevice second) {
  return first != second && device_connection(first, second)->peer;
}

EXPORTED CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CHECK(pair(device, peer));
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  *can = devices_are_peers(device, peer);
  return CUDA_SUCCESS;
}

/* Atomic operations on another device's memory are those of this machine; all links are of one rank. Arrays do not
 * exist. */
EXPORTED CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                          CUdevice target) {
  CHECK(pair(source, target));
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (source == target) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = devices_are_peers(source, target); break;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
