/* Memory for many small things that are freed together. */
#ifndef SOFTGPU_STORAGE_H
#define SOFTGPU_STORAGE_H

#include <stddef.h>

struct piece;

struct storage {
  struct piece *pieces; /* the latest first; begins as NULL */
};

/* Zeroed memory for `count` things of `size` bytes, aligned for any type; never for nothing. NULL: no memory. */
void *storage_take(struct storage *storage, size_t count, size_t size);
void storage_free(struct storage *storage);

#endif
