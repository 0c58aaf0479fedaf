/* Operations on words of memory, in records and in nodes of graphs. */
#ifndef TESSERA_MEMORY_OPERATIONS_H
#define TESSERA_MEMORY_OPERATIONS_H

#include <stdbool.h>

#include "real.h"
#include "wire.h"

/* Whether a list is there and all of it can be recorded. */
bool memory_operations_known(const CUstreamBatchMemOpParams *list, unsigned count);
/* The body and the operations behind it. */
void put_memory_operations(struct wire_memory_operations_body *body, const CUstreamBatchMemOpParams *list,
                           unsigned count, unsigned flags);

#endif
