/* Peer access: what can be enabled, by whom, and until when. Devices are an A100-80G and an L40S, with
 * access to each other. */
#include "check.h"

static void pairs(void) {
  int value;
  OK(cuDeviceCanAccessPeer(&value, 0, 1));
  CHECK(value == 1);
  OK(cuDeviceCanAccessPeer(&value, 1, 1));
  CHECK(value == 0);
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, 0, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceCanAccessPeer(NULL, 0, 1));
  OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0));
  CHECK(value == 1);
  OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0));
  CHECK(value == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, 99, 1, 0));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, -1));
}

int main(void) {
  CUcontext first, same, other, next;
  OK(cuInit(0));
  pairs();
  OK(cuCtxCreate(&first, NULL, 0, 0));
  OK(cuCtxCreate(&same, NULL, 0, 0));
  OK(cuCtxCreate(&other, NULL, 0, 1));
  OK(cuCtxSetCurrent(first));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(NULL, 0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(first, 0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess((CUcontext)&first, 0));
  GIVES(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(same, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(other, 1));
  GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(other));
  OK(cuCtxEnablePeerAccess(other, 0));
  GIVES(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(other, 0));
  OK(cuCtxSetCurrent(other));
  GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(first)); /* the other direction is another matter */
  OK(cuCtxEnablePeerAccess(first, 0));
  OK(cuCtxSetCurrent(first));
  OK(cuCtxDisablePeerAccess(other));
  OK(cuCtxEnablePeerAccess(other, 0));
  OK(cuCtxDestroy(other)); /* and so it is gone, although another context may get its handle */
  OK(cuCtxCreate(&next, NULL, 0, 1));
  OK(cuCtxSetCurrent(first));
  GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(next));
  OK(cuCtxEnablePeerAccess(next, 0));
  OK(cuCtxDestroy(first));
  OK(cuCtxDestroy(same));
  OK(cuCtxDestroy(next));
  return 0;
}
