/* What streams are given besides kernels and copies, and waits: in order, once each. */
#include <pthread.h>
#include <stdint.h>

#include "graph_work.h"

static void called(void *given) { (void)given; }

static void CUDA_CB callback(CUstream stream, CUresult status, void *given) {
  (void)stream;
  (void)status;
  (void)given;
}

static unsigned long long number(const void *pointer) { return (unsigned long long)(uintptr_t)pointer; }

static CUresult query_until_done(CUevent event, CUstream stream) {
  for (int i = 0; i < 100000; i++) {
    CUresult result = event ? cuEventQuery(event) : cuStreamQuery(stream);
    if (result != CUDA_ERROR_NOT_READY) return result;
  }
  return CUDA_ERROR_NOT_READY;
}

int main(void) {
  CUevent event, never;
  begin();
  OK(cuEventCreate(&event, 0));
  OK(cuEventCreate(&never, 0));
  printf("[%llu, %llu, %llu, %llu, %llu, %llu, %llu]\n", number(a), number(b), number(event), number(context),
         (unsigned long long)(uintptr_t)called, (unsigned long long)(uintptr_t)callback,
         (unsigned long long)memory);
  OK(cuStreamWaitValue32(b, memory, 5, CU_STREAM_WAIT_VALUE_GEQ)); /* until the write below */
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
  OK(cuLaunchHostFunc(a, called, &memory));
  OK(cuStreamAddCallback(a, callback, &module, 0));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuEventRecordWithFlags(event, b, CU_EVENT_RECORD_DEFAULT));
  GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  CUstreamBatchMemOpParams list[3] = {
      {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = memory + 8, .value64 = 1ull << 33}},
      {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = memory + 8, .value64 = 1ull << 33,
                     .flags = CU_STREAM_WAIT_VALUE_EQ}},
      {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER, .flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU}}};
  OK(cuStreamBatchMemOp(a, 3, list, 0));
  OK(cuStreamWriteValue32(a, memory, 6, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cuStreamSynchronize(a));
  OK(cuEventSynchronize(event));
  OK(query_until_done(event, NULL));
  OK(query_until_done(NULL, b));
  OK(query_until_done(NULL, NULL));
  OK(query_until_done(never, NULL));
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  CHECK(cuEventRecord(NULL, a) != CUDA_SUCCESS);
  CHECK(cuStreamBatchMemOp(a, 1, NULL, 0) != CUDA_SUCCESS);
  CHECK(cuCtxRecordEvent(context, event) != CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxSynchronize());
  return 0;
}
