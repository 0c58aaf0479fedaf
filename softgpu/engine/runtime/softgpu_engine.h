/* The run-time of compiled kernels: opens them, launches them on a pool of threads, and says what came out.
 *
 * Python reads the declarations between the two marks below (and those of abi.h) with cffi, so they are plain C without
 * the preprocessor. Everything here may be called from any thread; launches from several threads on one pool run side
 * by side, each on its calling thread and on those threads of the pool that are free.
 *
 * Fork: in the child of a process that had a pool the pool is unusable, as its threads are not there.
 * sg_launch_run then returns SG_BAD_LAUNCH, and sg_pool_destroy returns at once without freeing what it held.
 */
#ifndef SOFTGPU_ENGINE_H
#define SOFTGPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#pragma GCC visibility push(default)

/* begin declarations */

typedef struct sg_pool sg_pool;
typedef struct sg_kernel_handle sg_kernel_handle;

/* Most of what a launch may ask for; the extents of blocks and grids are those of CUDA. */
enum sg_limits { SG_MOST_THREADS = 1024, SG_MOST_SHARED = 232448 };

enum sg_outcome {
  SG_OK = 0,
  SG_FAULT = 1,      /* an access outside its allocation or space, misaligned, or a write to constant memory */
  SG_TRAP = 2,       /* trap or brkpt */
  SG_ASSERT = 3,     /* __assertfail */
  SG_DEADLOCK = 4,   /* no thread of a block can go on */
  SG_DEADLINE = 5,   /* not done in time */
  SG_UNDEFINED = 6,  /* what the PTX manual leaves undefined and no result could stand for */
  SG_BAD_LAUNCH = 7, /* nothing ran: extents, parameters, shared memory, the pool */
  SG_OUT_OF_MEMORY = 8
};

enum sg_allocation_flags {
  SG_CONSTANT = 1, /* a .const variable: kernels cannot write it, and accesses to it are not logged */
  SG_READ_ONLY = 2 /* kernels cannot write it */
};

/* Bytes [start, start + size) of host memory that kernels may access. */
struct sg_allocation {
  uint64_t start;
  uint64_t size;
  uint32_t flags; /* enum sg_allocation_flags */
  uint32_t reserved;
};

struct sg_launch {
  sg_kernel_handle *kernel;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared; /* bytes */
  uint32_t cooperative;    /* not 0: all blocks are resident at once, and there is a workspace */
  const uint8_t *params;   /* the parameter block; copied before the kernel starts */
  uint64_t params_size;    /* bytes: what the kernel takes, or that rounded up to 8 */
  const struct sg_allocation *allocations; /* sorted by start, disjoint; may not change while the launch runs */
  uint64_t allocation_count;
  const uint64_t *globals; /* addresses of the kernel's module variables, in the order of sg_kernel.globals */
  uint64_t global_count;
  uint64_t workspace;    /* address of 64 zero bytes in an allocation; 0: a cooperative launch gets its own */
  uint64_t grid_id;      /* %gridid */
  uint64_t deadline_ms;  /* milliseconds, kept to a tenth of a second; 0: ten minutes */
  uint64_t memory_limit; /* bytes that waiting blocks may hold (registers, local and shared memory); 0: 1 GiB */
};

/* Bytes [start, end). */
struct sg_range {
  uint64_t start;
  uint64_t end;
};

/* `count` sorted ranges that do not touch each other. */
struct sg_ranges {
  struct sg_range *items;
  uint64_t count;
  uint64_t capacity;
};

/* Zero it before its first use. Every launch fills all of it and uses its arrays again; sg_result_free frees them. */
struct sg_result {
  int32_t status;     /* enum sg_outcome */
  uint32_t line;      /* of the PTX text, for what the status says; 0: none. The same for the fields up to `thread` */
  char message[1024]; /* empty when all is well */
  char mnemonic[96];
  uint64_t address;
  uint32_t width;
  uint8_t space;  /* enum sg_space */
  uint8_t access; /* enum sg_access; 0: not about a memory access */
  uint16_t has_thread; /* 1: `thread` is known */
  uint32_t block[3];
  uint32_t thread[3];
  uint64_t nanoseconds; /* from the start of the launch to its end */
  uint64_t workspace;   /* address of the workspace the launch used, or 0 */
  uint64_t counts[SG_CLASSES]; /* executed work, by enum sg_class; zero without SG_COUNTS */
  uint64_t *counters;          /* sg_kernel.counter_count of them: threads that came by each counter */
  uint64_t counter_count;
  uint64_t counter_capacity;
  struct sg_ranges read; /* global memory that was accessed; empty without SG_LOGS */
  struct sg_ranges written;
  struct sg_ranges atomic;
  char *output; /* what printf wrote */
  uint64_t output_size;
  uint64_t output_capacity;
};

/* A pool of `workers` threads, the calling one included (0: as many as CPUs are usable). Threads start when a launch
 * first needs them and block all signals. NULL: no memory. */
sg_pool *sg_pool_create(unsigned workers);
/* Ends the threads; no launch may be running. */
void sg_pool_destroy(sg_pool *pool);
unsigned sg_pool_workers(const sg_pool *pool);

/* Opens the shared object at `path` (which holds a slash). Returns 0, or -1 with a text in error[0..size). */
int sg_kernel_open(const char *path, sg_kernel_handle **out, char *error, size_t size);
/* The same for a kernel of this process. */
int sg_kernel_wrap(const struct sg_kernel *kernel, sg_kernel_handle **out, char *error, size_t size);
const struct sg_kernel *sg_kernel_of(const sg_kernel_handle *handle);
void sg_kernel_close(sg_kernel_handle *handle);

/* The first entry of a table of allocations that is not below 1 << 47, or not behind the one before it; `count` when all
 * is well. A launch does not check its table, as that would take longer than a small kernel. */
uint64_t sg_check_allocations(const struct sg_allocation *table, uint64_t count);

/* Runs a kernel to its end; returns result->status. */
int sg_launch_run(sg_pool *pool, const struct sg_launch *launch, struct sg_result *result);
void sg_result_free(struct sg_result *result);

/* end declarations */

#pragma GCC visibility pop

#endif
