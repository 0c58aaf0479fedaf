/* Every piece of memory that the driver knows, by address. */
#ifndef SOFTGPU_ALLOCATIONS_H
#define SOFTGPU_ALLOCATIONS_H

#include "api.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct block;
struct mapping;

enum kind {
  ON_DEVICE, /* of cuMemAlloc */
  VARIABLE,  /* of a module */
  POOLED,    /* of a pool */
  MAPPED,    /* by cuMemMap */
  IMPORTED,  /* of another process, by cuIpcOpenMemHandle */
  OF_GRAPH,  /* of a node that allocates it */
  PINNED,
  REGISTERED,
  MANAGED,
};

/* Devices that may read and write, a bit for each. */
struct rights {
  uint64_t read, write;
};

void rights_set(struct rights *rights, CUdevice device, CUmemAccess_flags flags);
CUmemAccess_flags rights_of(const struct rights *rights, CUdevice device);

struct allocation {
  uint64_t start, size; /* bytes [start, start + size) */
  enum kind kind;
  unsigned flags; /* of host memory */
  uint32_t limits; /* on what kernels may do with it: enum sg_allocation_flags */
  CUdevice device;
  CUcontext context;     /* the one that it ends with; NULL: none */
  unsigned long long id; /* never used again */
  struct arena *arena;   /* of device memory, with its block */
  struct block *block;
  struct mapping *mapping;     /* of memory whose addresses may be given back; a reference, but for MAPPED */
  const struct rights *rights; /* of memory that devices have rights to, and not contexts */
  void *object;                /* what it belongs to: a pool, what is mapped, what is known of managed memory */
};

/* Nobody may add or remove while one reads. */
void allocations_read(void);
void allocations_write(void);
void allocations_release(void);

/* With the lock for reading or writing: the one that holds all of [address, address + size), a byte at least; NULL:
 * none. */
const struct allocation *allocation_with(uint64_t address, uint64_t size);

/* Memory of a device, as programs are told. */
bool on_device(const struct allocation *allocation);

/* With the lock for reading or writing: whether a copy may access all of [address, address + size), a byte at least, in
 * one allocation or in neighbouring ones of one reservation. What has to stay mapped until it is done is held for the
 * caller, who gives it to `mapping_release` then; that may be nothing. */
bool allocation_hold(uint64_t address, uint64_t size, struct mapping **held);

/* With the lock for writing. */
bool allocation_add(const struct allocation *allocation); /* false: no memory, or it overlaps one that is there */
bool allocation_remove(uint64_t start, struct allocation *removed);

/* With the lock: all of them, by address. */
void allocations_walk(void (*see)(const struct allocation *allocation, void *given), void *given);

/* Grows by one whenever something is added or removed, or when who may access what has changed otherwise. */
unsigned long long allocations_state(void);
void allocations_changed(void);

/* With the lock: what has been added or removed last. */
struct change {
  unsigned long long state; /* what it became by this */
  bool added;
  struct allocation allocation; /* as it was: what it points to may be gone */
};

/* NULL: by something else, or it is long ago. */
const struct change *allocations_change(unsigned long long state);

/* With the lock: where those of a context begin, to be freed by the caller; NULL when there are none, or no memory. */
uint64_t *allocations_of(CUcontext context, size_t *count);

#endif
