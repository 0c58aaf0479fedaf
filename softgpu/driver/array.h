/* Arrays: memory whose layout programs do not see. Here it is rows one after another; nothing reads them as
 * textures. */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

struct array_rows {
  uint64_t address;
  size_t row, height, depth, element; /* bytes of a row, rows of a layer, layers, bytes of an element */
};

bool array_rows(CUarray array, struct array_rows *rows); /* false: it is none */

/* A context ends: so do its arrays. */
void arrays_end(CUcontext context);

#endif
