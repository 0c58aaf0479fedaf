/* What the programs that copy share. */
#ifndef COPIES_H
#define COPIES_H

#include <errno.h>
#include <stdint.h>

#include "../../driver/c/check.h"

enum { ROOM = 1 << 20 };

#define ADDRESS(pointer) ((CUdeviceptr_v2)(uintptr_t)(pointer))

static inline void put_pattern(unsigned char *at) {
  for (uint32_t n = 0; n < ROOM; n++) at[n] = (unsigned char)((n * 2654435761u) >> 21);
}

#endif
