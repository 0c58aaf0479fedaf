/* What is mapped by cuMemMap. */
#ifndef SOFTGPU_VMM_H
#define SOFTGPU_VMM_H

#include "api.h"

struct piece; /* the object of an allocation that is MAPPED */
CUmemAllocationHandleType piece_types(const struct piece *piece);
unsigned long long piece_block(const struct piece *piece); /* tells memory from other memory, however it is mapped */

#endif
