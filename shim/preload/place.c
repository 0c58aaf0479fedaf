#include "place.h"

#include "ask.h"
#include "doors.h"

/* All that is asked for: what the driver does not know has no size. (Of unknown memory some drivers say no type, and
 * others that it is the host's.) */
struct memory memory_at(uint64_t address, uint64_t bytes) {
  unsigned type = 0;
  int managed = 0; /* a driver writes a byte of it, or all */
  CUdeviceptr_v2 start = 0;
  size_t size = 0;
  void *host = NULL;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *answers[] = {&type, &managed, &start, &size, &host};
  if (!address) return (struct memory){.kind = MEMORY_PAGEABLE};
  if (!real.cuPointerGetAttributes) return (struct memory){.kind = MEMORY_UNKNOWN};
  struct asking asking = ask_begin();
  CUresult result = real.cuPointerGetAttributes(sizeof wanted / sizeof *wanted, wanted, answers, address);
  ask_end(asking);
  if (result != CUDA_SUCCESS) return (struct memory){.kind = MEMORY_UNKNOWN};
  if (managed) return (struct memory){.kind = MEMORY_MANAGED};
  if (type == CU_MEMORYTYPE_DEVICE) return (struct memory){.kind = MEMORY_DEVICE};
  if (!size) return (struct memory){.kind = MEMORY_PAGEABLE};
  uint64_t before = address - start; /* by which name of the memory its start is told does not matter */
  if (before > size) before = (uint64_t)(uintptr_t)host - start;
  if (before > size || bytes > size - before) return (struct memory){.kind = MEMORY_PAGEABLE};
  return (struct memory){.kind = MEMORY_PINNED, .host = (uint64_t)(uintptr_t)host};
}
