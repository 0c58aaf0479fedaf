/* Memory of devices that has no address until it is mapped. */
#ifndef SOFTGPU_PHYSICAL_H
#define SOFTGPU_PHYSICAL_H

#include "api.h"
#include <stdbool.h>
#include <stdint.h>

enum { GRANULARITY = 2 << 20 }; /* bytes; as on real devices */

struct physical {
  CUcontext context;     /* first: `handles_end`; NULL, it belongs to a device */
  unsigned long long id; /* with the highest bit, which those of allocations do not have */
  CUdevice device;
  CUmemAllocationHandleType types; /* that it can be exported as */
  uint64_t size;
  int file; /* where its bytes are */
  uint64_t offset;
};

/* By a handle, or by what it is mapped as, with a reference for a mapping. */
CUresult physical_map(CUmemGenericAllocationHandle handle, struct physical **physical);
void physical_unmap(struct physical *physical);

/* One more reference of its handle, which may have had none any more. */
CUresult physical_retain(struct physical *physical, CUmemGenericAllocationHandle *handle);

#endif
