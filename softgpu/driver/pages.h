/* Pages of a sparse file in memory that nobody uses any more: zero, and some of them kept, as making new ones takes
 * longer. */
#ifndef SOFTGPU_PAGES_H
#define SOFTGPU_PAGES_H

#include <stdint.h>

struct pages {
  int file;
  uint8_t *base; /* where it is mapped as a whole */
  _Atomic uint64_t kept; /* bytes, more or less: pages of which several parts are used are counted now and then only */
};

/* Bytes [start, start + size) are used from now on; they are zero. */
void pages_take(struct pages *pages, uint64_t start, uint64_t size);

/* They are used no more: they become zero. */
void pages_give(struct pages *pages, uint64_t start, uint64_t size);

/* The file goes away. */
void pages_end(struct pages *pages);

#endif
