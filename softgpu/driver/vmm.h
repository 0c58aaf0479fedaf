/* What is mapped by cuMemMap. */
#ifndef SOFTGPU_VMM_H
#define SOFTGPU_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* Whether an address is one of a reserved range, with memory or without. */
bool is_reserved(uint64_t address);

struct piece; /* the object of an allocation that is MAPPED */
CUmemAllocationHandleType piece_types(const struct piece *piece);
unsigned long long piece_block(const struct piece *piece); /* tells memory from other memory, however it is mapped */

#endif
