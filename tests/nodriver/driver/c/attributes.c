/* Attributes of streams, counted uses of contexts, and questions with one answer. */
#include "check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* cuCtxAttach, cuCtxDetach */

CUresult cuProfilerStart(void); /* of a header of their own */
CUresult cuProfilerStop(void);

static int priority_of(CUstream stream) {
  CUstreamAttrValue value;
  int priority;
  OK(cuStreamGetPriority(stream, &priority));
  OK(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
  CHECK(value.priority == priority);
  return priority;
}

static CUsynchronizationPolicy policy_of(CUstream stream) {
  CUstreamAttrValue value;
  OK(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  return value.syncPolicy;
}

static CUresult set(CUstream stream, CUstreamAttrID attribute, int number) {
  CUstreamAttrValue value = {0};
  if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY) value.priority = number;
  if (attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = (CUsynchronizationPolicy)number;
  if (attribute == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN) value.memSyncDomain = (CUlaunchMemSyncDomain)number;
  if (attribute == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap.remote = (unsigned char)number;
  if (attribute == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW) value.accessPolicyWindow.num_bytes = (size_t)number;
  return cuStreamSetAttribute(stream, attribute, &value);
}

static void streams(CUcontext context) {
  CUstreamAttrValue value;
  CUstream stream, other;
  CUcontext found;
  CUgreenCtx partition = (CUgreenCtx)&value;
  OK(cuStreamCreateWithPriority(&stream, 0, -2));
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CHECK(priority_of(stream) == -2 && policy_of(stream) == CU_SYNC_POLICY_AUTO);
  OK(set(stream, CU_STREAM_ATTRIBUTE_PRIORITY, -100));
  CHECK(priority_of(stream) == -5);
  OK(set(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_SYNC_POLICY_YIELD));
  OK(set(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, 5));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 1));
  OK(set(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, 1));
  OK(set(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, set(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamGetAttribute((CUstream)&value, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
  OK(cuStreamCopyAttributes(other, stream));
  CHECK(priority_of(other) == -5 && policy_of(other) == CU_SYNC_POLICY_YIELD);
  OK(cuStreamGetAttribute(other, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
  CHECK(value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
  OK(cuStreamGetAttribute(other, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  CHECK(value.accessPolicyWindow.num_bytes == 0);
  OK(set(NULL, CU_STREAM_ATTRIBUTE_PRIORITY, 0));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, set(NULL, CU_STREAM_ATTRIBUTE_PRIORITY, -1));
  CHECK(priority_of(NULL) == 0 && policy_of(CU_STREAM_PER_THREAD) == CU_SYNC_POLICY_AUTO);
  OK(cuStreamGetCtx_v2(stream, &found, &partition));
  CHECK(found == context && !partition);
  partition = (CUgreenCtx)&value;
  OK(cuStreamGetGreenCtx(NULL, &partition));
  CHECK(!partition);
  OK(cuStreamDestroy(stream));
  OK(cuStreamDestroy(other));
}

static void counted(void) {
  CUcontext context, attached, primary, current;
  OK(cuCtxCreate(&context, NULL, 0, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&attached, 1));
  OK(cuCtxAttach(&attached, 0));
  CHECK(attached == context);
  OK(cuCtxDetach(context));
  OK(cuCtxSynchronize());
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach((CUcontext)&current));
  OK(cuCtxDetach(context));
  OK(cuCtxGetCurrent(&current));
  CHECK(current != context);
  OK(cuDevicePrimaryCtxRetain(&primary, 1));
  OK(cuCtxPushCurrent(primary));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(primary));
  OK(cuCtxAttach(&attached, 0));
  OK(cuCtxDetach(primary));
  OK(cuCtxPopCurrent(NULL));
  OK(cuDevicePrimaryCtxRelease(1));
}

static void write_one(void *given) { *(int *)given = 1; }

static void others(CUcontext context) {
  CUexecAffinityParam affinity;
  CUcontext second;
  int supported = 1, done = 0;
  OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 1));
  CHECK(supported == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_MAX, 1));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 2));
  GIVES(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  OK(cuProfilerStart());
  OK(cuProfilerStop());
  OK(cuCtxCreate(&second, NULL, 0, 1));
  CUstream stream;
  OK(cuStreamCreate(&stream, 0));
  OK(cuLaunchHostFunc(stream, write_one, &done));
  OK(cuCtxSetCurrent(context));
  OK(cuCtxSynchronize_v2(second)); /* which is not the current one */
  CHECK(done == 1);
  OK(cuCtxSynchronize_v2(NULL));
  OK(cuCtxDestroy(second));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize_v2(second));
}

int main(void) {
  CUcontext context;
  OK(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuProfilerStart());
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxAttach(&context, 0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  streams(context);
  counted();
  OK(cuCtxSetCurrent(context));
  others(context);
  OK(cuCtxDestroy(context));
  return 0;
}
