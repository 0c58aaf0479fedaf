/* Which parts of a device's memory are taken: offsets only, no bytes. */
#ifndef SOFTGPU_SPACE_H
#define SOFTGPU_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAIN 512u /* sizes are rounded up to it, and offsets are multiples, as on real devices */

struct block;

/* Two-level segregated fit (Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", 2004): a list
 * of free blocks for each class of sizes, and a bit for each list that is not empty, so that both operations take the
 * same time however many blocks there are. */
struct space {
  struct block *first; /* by offset */
  struct block *lists[40][16];
  uint64_t some;         /* first levels with a free block */
  uint16_t which[40];    /* of each first level, second levels with one */
  uint64_t size, taken;
};

bool space_begin(struct space *space, uint64_t size); /* false: no memory */
void space_end(struct space *space);

/* A block of at least `size` bytes at a multiple of `alignment`, a power of two, or NULL: no such block is free, or no
 * memory to note it. */
struct block *space_take(struct space *space, uint64_t size, uint64_t alignment);
void space_give(struct space *space, struct block *block);
uint64_t block_offset(const struct block *block);
uint64_t block_size(const struct block *block);

#endif
