/* Physical memory on devices, on the host, on nodes of it, and at places that do not exist; and what is free on a
 * device. */
#include "hazard.h"

int main(void) {
  CUcontext context;
  size_t before, after, total;
  CUdeviceptr memory;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
                                     CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
                                     CU_MEM_LOCATION_TYPE_INVALID};
  for (int type = 0; type < 5; type++)
    for (int id = -1; id < 3; id++) {
      CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = types[type]}};
      CUmemGenericAllocationHandle made = 0;
      wanted.location.id = id;
      CUresult result = cuMemCreate(&made, 2 << 20, &wanted, 0);
      printf("%d %d: %d %d\n", type, id, result, result ? 0 : cuMemRelease(made));
    }
  CHECK(cuMemGetInfo(&before, &total));
  CHECK(cuMemAlloc(&memory, 64 << 20));
  CHECK(cuMemGetInfo(&after, &total));
  printf("%zu of %zu\n", before - after, total);
  return 0;
}
