/* Pools: where streams get their memory from. */
#ifndef SOFTGPU_POOL_H
#define SOFTGPU_POOL_H

#include "allocations.h"

struct arena;
struct mapping;

/* A pool lives as long as its handle or any memory of it. */
struct pool {
  CUcontext context; /* first: `handles_end`; NULL, it belongs to a device */
  CUdevice device;
  CUmemAllocationHandleType types; /* that it can be exported as */
  struct arena *arena;             /* its own if it can be exported, else the device's; NULL: another process's */
  struct mapping *imported;        /* all of its memory in that process, from `base` on */
  uint64_t base, size;             /* most bytes */
  unsigned long long file;         /* which file its memory is in: for pointers that processes exchange */
  struct rights rights;            /* changed and read with the lock of the allocations */
  /* With the lock of the pools: */
  uint64_t used, most_used, most_reserved, threshold;
  int reuse[3];
  unsigned references;
  bool standard; /* a device's default one, which nobody destroys */
};

/* A pool by its handle, with a reference. */
CUresult pool_with(CUmemoryPool handle, struct pool **pool);
/* That of a device from which streams get memory now, with a reference. */
CUresult pool_current(CUdevice device, struct pool **pool);
void pool_release(struct pool *pool);

/* Of a new one with a reference; `arena` or `imported` are filled in by the caller. Then it gets a handle. */
struct pool *pool_begin(CUdevice device, CUmemAllocationHandleType types);
CUresult pool_finish(struct pool *pool, CUmemoryPool *handle);

/* Bytes are taken from it, unless that is too much, or given back. */
bool pool_use(struct pool *pool, uint64_t bytes);
void pool_unuse(struct pool *pool, uint64_t bytes);

/* pool_memory.c */
struct pooled;
struct pool *pool_of(const struct pooled *pooled);
bool pooled_leaves(const struct pooled *pooled); /* it is freed by something that is in a stream */
void pooled_end(struct pooled *pooled);

#endif
