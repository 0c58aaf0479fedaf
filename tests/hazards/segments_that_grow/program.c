/* Memory as PyTorch's expandable segments have it: a range of addresses that is filled, and emptied, piece by piece. */
#include "hazard.h"

enum { PIECES = 4 };

int main(void) {
  CUcontext context;
  CUdeviceptr base;
  CUmemGenericAllocationHandle pieces[PIECES];
  CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  CUmemAccessDesc access = {.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t step = 0;
  unsigned value = 0;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemGetAllocationGranularity(&step, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(cuMemAddressReserve(&base, 16 * step, 0, 0, 0));
  for (int i = 0; i < PIECES; i++) {
    CHECK(cuMemCreate(&pieces[i], step, &wanted, 0));
    CHECK(cuMemMap(base + (CUdeviceptr)i * step, step, 0, pieces[i], 0));
    CHECK(cuMemSetAccess(base + (CUdeviceptr)i * step, step, &access, 1));
  }
  CHECK(cuMemsetD32(base, 42, PIECES * step / 4));
  CHECK(cuMemcpyDtoH(&value, base + PIECES * step - 4, sizeof value));
  CHECK(cuMemUnmap(base + step, 2 * step)); /* two at once */
  CHECK(cuMemUnmap(base, step));
  CHECK(cuMemUnmap(base + 3 * step, step));
  for (int i = 0; i < PIECES; i++) CHECK(cuMemRelease(pieces[i]));
  CHECK(cuMemAddressFree(base, 16 * step));
  printf("%u %zu %llx\n", value, step, (unsigned long long)base);
  return 0;
}
