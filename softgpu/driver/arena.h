/* The bytes of devices. */
#ifndef SOFTGPU_ARENA_H
#define SOFTGPU_ARENA_H

#include "api.h"
#include <stdint.h>

struct block;

/* A piece of a device's memory, all zero. The block is what has to be given back. */
CUresult arena_take(CUdevice device, uint64_t bytes, struct block **block, uint64_t *address);
void arena_give(CUdevice device, struct block *block);

#endif
