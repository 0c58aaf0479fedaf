/* Every piece of memory that the driver knows, by address. */
#ifndef SOFTGPU_ALLOCATIONS_H
#define SOFTGPU_ALLOCATIONS_H

#include "api.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;

enum kind { ON_DEVICE, PINNED, REGISTERED };

struct allocation {
  uint64_t start, size; /* bytes [start, start + size) */
  enum kind kind;
  unsigned flags; /* of host memory */
  CUdevice device;
  CUcontext context;   /* the one that it ends with */
  unsigned long long id; /* never used again */
  struct block *block; /* of device memory */
};

/* Nobody may add or remove while one reads. */
void allocations_read(void);
void allocations_write(void);
void allocations_release(void);

/* With the lock for reading or writing: the one that holds all of [address, address + size), a byte at least; NULL: none. */
const struct allocation *allocation_with(uint64_t address, uint64_t size);

/* With the lock for writing. */
bool allocation_add(const struct allocation *allocation); /* false: no memory, or it overlaps one that is there */
bool allocation_remove(uint64_t start, struct allocation *removed);

/* With the lock: where those of a context begin, to be freed by the caller; NULL when there are none, or no memory. */
uint64_t *allocations_of(CUcontext context, size_t *count);

/* How many there are of a kind, and their bytes. Takes the lock. */
size_t allocations_total(enum kind kind, uint64_t *bytes);

#endif
