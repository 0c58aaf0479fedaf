/* Memory of devices and of the host, beyond what the functions of the API do with it. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "api.h"
#include <stdint.h>

struct allocation;

/* Make memory known by its address; what it has is given back if that fails. */
CUresult memory_add(const struct allocation *allocation);
/* Give back what memory has that nobody can find any more. */
void memory_give_back(const struct allocation *allocation);

/* Give back all that a context has. */
void memory_end(CUcontext context);

/* Memory for a variable of a module, all zero; `limits`: enum sg_allocation_flags. It is known by its address like
 * other memory, but cuMemFree refuses it. It ends with its context if nobody ends it before. */
CUresult variable_make(CUcontext context, CUdevice device, uint64_t bytes, uint32_t limits, uint64_t *address);
/* Work that uses it has to be done. */
void variable_end(uint64_t address);

#endif
