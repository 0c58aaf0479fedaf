/* What compiled kernels and the run-time share. The Python side (softgpu/engine/abi.py) has the same offsets, and a
 * test compares both. Everything little-endian x86-64; all fields have their natural alignment.
 *
 * A compiled kernel is a shared object with one exported symbol, `softgpu_kernel`, a struct sg_kernel. It calls nothing
 * by name: the run-time reaches it through the function pointers of struct sg_helpers.
 *
 * Kernels without wait points (SG_WAITS not set) are one function that runs whole blocks:
 *     int32_t run_blocks(struct sg_env *env, uint64_t first, uint64_t last)      // linear block numbers [first, last)
 * There is at least one. The run-time sets env->ctaid of the first; the function sets those that follow, in the order x, y,
 * z, clears shared memory, and uses env->shared and env->local for one block, one warp at a time.
 *
 * Kernels with wait points are a function that runs one warp until all its lanes ended or wait:
 *     int32_t run_warp(struct sg_env *env, struct sg_frame *frame)
 * The run-time sets env->ctaid, warp, shared and local before each call. All state of the warp between calls is in its
 * frame (sg_kernel.frame_bytes, 64-byte aligned) and in its local memory. At the start of a block sg_frame and its
 * points are zero but for `live`, and local and shared memory are zero; the saved registers behind the points are not
 * cleared, so compiled code does not rely on their values.
 */
#ifndef SOFTGPU_ABI_H
#define SOFTGPU_ABI_H

#include <stdint.h>

#define SG_ABI_VERSION 2
#define SG_MAGIC 0x55504753u /* "SGPU" */
#define SG_WARP 32

/* Generic addresses: global and constant memory are host addresses (below 1 << 47); the other spaces have windows. */
#define SG_SHARED_WINDOW (1ull << 48)
#define SG_LOCAL_WINDOW (2ull << 48)
#define SG_PARAM_WINDOW (3ull << 48)
#define SG_CODE_WINDOW (4ull << 48)

/* begin declarations: what Python reads */

/* What run_blocks and run_warp return. */
enum sg_status {
  SG_DONE = 0,   /* all blocks, or all lanes of the warp, ended */
  SG_PARKED = 1, /* run_warp only: the lanes that have not ended wait, see sg_frame.points */
  SG_STOPPED = 2 /* *env->stop was set: a fault, a trap, the deadline; nothing more of the launch may run */
};

enum sg_space { SG_GENERIC = 0, SG_GLOBAL = 1, SG_CONST = 2, SG_SHARED = 3, SG_LOCAL = 4, SG_PARAM = 5 };
enum sg_access { SG_READ = 1, SG_WRITE = 2, SG_ATOMIC = 4 };

/* One instruction of the kernel that can fault or be logged. */
struct sg_site {
  const char *mnemonic; /* full mnemonic */
  uint32_t line;        /* of the PTX text */
  uint32_t width;       /* bytes that a lane accesses; 0: not a memory access */
  uint32_t align;       /* bytes that the address must be a multiple of */
  uint8_t space;        /* enum sg_space */
  uint8_t access;       /* enum sg_access */
  uint16_t word;        /* how the slow path moves it: see `load` of sg_helpers */
};

#define SG_AS_IN_MEMORY 0xffff

/* Where the addresses come from that are compared with a cache. */
enum sg_origin {
  SG_ANYWHERE = 0,
  SG_PARAMETER = 1,    /* a pointer in the parameters, at offset `number` */
  SG_VARIABLE = 2,     /* variable `number` of sg_kernel.globals */
  SG_SHARED_MEMORY = 3 /* offsets into shared memory */
};

/* What addresses are compared with: (address - start), rotated right by `shift` bits, is below `limit` exactly when
 * `extent` bytes from there are inside and the address is a multiple of 1 << shift. Inside is the allocation that the
 * pointer of `origin` lies in when the launch starts, and later the one that the run-time found last for this cache.
 * limit 0: none. */
struct sg_cache {
  uint64_t start;
  uint64_t limit;
  uint32_t extent; /* at least 1 */
  uint32_t shift;
  uint32_t origin; /* enum sg_origin */
  uint32_t number;
};

enum sg_point_kind {
  SG_YIELD = 0,   /* go on at the next turn: a loop that may wait for others */
  SG_SYNC = 1,    /* bar.sync: wait until the barrier completes */
  SG_RED_AND = 2, /* bar.red: wait, then `result` is 1 if the predicate of all participants was true */
  SG_RED_OR = 3,
  SG_RED_POPC = 4, /* `result` is the number of participants whose predicate was true */
  SG_MEET = 5      /* warp-synchronous: the compiled code looks itself whether all have come; the run-time sets
                      go = waiting whenever it calls the warp again, and calls it again when `live` changed */
};

struct sg_point {
  uint32_t kind; /* enum sg_point_kind */
  uint32_t line;
};

/* A wait point of one warp. The compiled code adds lanes to `waiting`; the run-time moves them to `go` (clearing their
 * bits in `waiting`), and the compiled code clears `go` when it takes them up. */
struct sg_wait {
  uint32_t waiting;
  uint32_t go;
  uint32_t barrier;   /* number of the barrier (of the lanes that came last; all waiting lanes have the same) */
  uint32_t expected;  /* threads, a multiple of 32; 0: every warp of the block */
  uint32_t predicate; /* SG_RED_*: lanes of `waiting` whose predicate is true */
  uint32_t result;    /* SG_RED_*: set by the run-time with `go` */
};

struct sg_frame {
  uint32_t live;   /* lanes that have not ended; the compiled code clears bits as lanes end */
  uint32_t resume; /* 0: the start of the kernel. Else 1 + the lowest point that has lanes in `go` */
  uint32_t reserved[2];
  struct sg_wait points[]; /* sg_kernel.point_count of them, then saved registers */
};

struct sg_env;

/* Every helper that returns int32_t returns 0 to go on, and not 0 when the kernel must return SG_STOPPED at once (the
 * helper has then recorded why and set *stop). `mask`: the active lanes. `site`: index into sg_kernel.sites. */
struct sg_helpers {
  /* 0. Slow path of every access: checks each active lane's address (in the space of the site) for bounds, alignment
   * and permission, and replaces it by the host address. If all lanes fall into one global allocation, *cache
   * (when not null) becomes that allocation. */
  int32_t (*resolve)(struct sg_env *env, uint64_t *addresses, uint32_t mask, uint32_t site, struct sg_cache *cache);
  /* 1. The slow path of a load: resolve, then copy the site's width for each active lane into `values`: element k of
   * lane l to (32 k + l) * word; with word 0 all of lane l to l * width; with SG_AS_IN_MEMORY to offsets[l] less the
   * least of the offsets. With `offsets`, lane l's address is base + offsets[l] and `addresses` is only room for 32; without,
   * `addresses` holds them. In kernels with SG_LOGS a global access is logged. */
  int32_t (*load)(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                  uint32_t site, struct sg_cache *cache, void *values);
  /* 2. Log of global accesses that 1 and 12 do not make (only in kernels compiled with SG_LOGS): addresses are
   * generic; those that are not global are left out. */
  void (*log)(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t site);
  /* 3. trap (code 0), brkpt (code 1). */
  int32_t (*trap)(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code);
  /* 4. What PTX leaves undefined and the interpreter calls UndefinedBehaviour; code: enum sg_undefined. */
  int32_t (*undefined)(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code);
  /* 5. printf for each active lane: generic addresses of the format and of the argument buffer; results[lane] is the
   * number of arguments. */
  int32_t (*print)(struct sg_env *env, const uint64_t *formats, const uint64_t *arguments, uint32_t mask, uint32_t site,
                   uint32_t *results);
  /* 6. __assertfail(message, file, line, function) of the lowest active lane. */
  int32_t (*assert_fail)(struct sg_env *env, const uint64_t *message, const uint64_t *file, const uint32_t *line,
                         const uint64_t *function, uint32_t mask, uint32_t site);
  /* 7, 8. %clock64 (advances with every read) and %globaltimer (nanoseconds). */
  uint64_t (*clock)(struct sg_env *env);
  uint64_t (*timer)(struct sg_env *env);
  /* 9. bar.arrive: the active lanes arrive and go on. */
  int32_t (*arrive)(struct sg_env *env, struct sg_frame *frame, uint32_t barrier, uint32_t expected, uint32_t mask,
                    uint32_t site);
  /* 10. nanosleep; nanoseconds is the largest of the active lanes. Advances the clock, does not sleep. */
  void (*sleep)(struct sg_env *env, uint32_t nanoseconds);
  /* 11. isspacep for lanes whose address is in no window: sets bits of *constant for those in constant allocations. */
  int32_t (*spaces)(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t *constant);
  /* 12. The slow path of a store, likewise. */
  int32_t (*store)(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                   uint32_t site, struct sg_cache *cache, void *values);
  /* 13, 14. The copies alone: `width` bytes (1, 2, 4, 8, 16 or 32) for each active lane, from or to host addresses. */
  void (*gather)(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values);
  void (*scatter)(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values);
  /* 15. cp.async where its fast path does not hold: for each active lane `lengths` bytes from `sources` (global) to
   * `targets` (shared), and zeros behind them. Five sites in order: the instruction, a read of the whole, the first
   * byte of a shorter one (with the alignment of the whole), any byte, the write. */
  int32_t (*copy)(struct sg_env *env, uint64_t *sources, uint64_t *targets, const uint32_t *lengths, uint32_t mask,
                  uint32_t site, struct sg_cache *cache);
};

enum sg_undefined {
  SG_NOT_A_MEMBER = 0,   /* a thread outside its own member mask */
  SG_BRANCH_INDEX = 1,   /* brx.idx past its list */
  SG_PARTIAL_MATRIX = 2, /* a matrix instruction in part of a warp */
  SG_COPY_SIZE = 3,      /* cp.async reads more than it writes */
  SG_CALL_TARGET = 4,    /* an indirect call of something that is no function of the module */
  SG_BARRIER_DIFFERS = 5, /* lanes that arrive together name different barriers or counts */
  SG_MISSED_MEETING = 6   /* lanes wait at a warp-synchronous instruction for others that will never come */
};

/* What compiled code sees of a launch and of the block and warp it runs. One per worker; the fields behind `stop`
 * belong to the run-time. */
struct sg_env {
  const uint8_t *params;            /*   0 kernel parameters */
  uint8_t *shared;                  /*   8 shared memory of the block, shared_bytes of it readable and writable */
  uint8_t *local;                   /*  16 local memory of the warp: lane l has local_stride bytes at l * local_stride */
  const uint64_t *globals;          /*  24 addresses of the module variables of sg_kernel.globals, in that order */
  struct sg_cache *caches;          /*  32 the worker's own, sg_kernel.cache_count of them */
  uint64_t *counters;               /*  40 sg_kernel.counter_count of them (SG_COUNTS) */
  const struct sg_helpers *helpers; /*  48 */
  volatile int32_t *stop;           /*  56 not 0: return SG_STOPPED soon; looked at on the way back in loops */
  const uint32_t *thread_ids;       /*  64 for thread t of the block: x at [t], y at [n + t], z at [2n + t], where
                                           n = 32 * warps; padded with zeros. Only used when blocks are not fixed */
  uint64_t workspace;               /*  72 grid barrier's memory of a cooperative launch (%envreg1, %envreg2), or 0 */
  uint64_t grid_id;                 /*  80 %gridid */
  uint32_t grid[3];                 /*  88 */
  uint32_t block[3];                /* 100 */
  uint32_t ctaid[3];                /* 112 */
  uint32_t warp;                    /* 124 warp of the block */
  uint32_t threads;                 /* 128 of a block */
  uint32_t warps;                   /* 132 of a block */
  uint32_t shared_bytes;            /* 136 static, padding and dynamic */
  uint32_t dynamic_shared;          /* 140 */
  uint32_t local_stride;            /* 144 */
  uint32_t reserved;                /* 148 */
  /* 152: the run-time's own fields follow */
};

/* Classes of executed work. Counts are operations of single threads, or bytes. */
enum sg_class {
  SG_INTEGER, SG_HALF, SG_SINGLE, SG_DOUBLE, SG_SPECIAL, SG_TENSOR, SG_CONVERT, SG_MOVE, SG_CONTROL, SG_BARRIER,
  SG_EXCHANGE, SG_MEMORY, SG_ATOMICS,
  SG_GLOBAL_READ, SG_GLOBAL_WRITTEN, SG_SHARED_READ, SG_SHARED_WRITTEN, SG_LOCAL_READ, SG_LOCAL_WRITTEN, SG_PARAM_READ,
  SG_PRODUCTS, /* of tensor cores, in those of f16 that take as long */
  SG_CLASSES
};

enum sg_flags {
  SG_WAITS = 1,  /* run is run_warp */
  SG_COUNTS = 2, /* fills env->counters */
  SG_LOGS = 4,   /* calls helpers->log */
  SG_PRINTS = 8
};

typedef int32_t (*sg_run_blocks)(struct sg_env *env, uint64_t first, uint64_t last);
typedef int32_t (*sg_run_warp)(struct sg_env *env, struct sg_frame *frame);

struct sg_kernel {
  uint32_t magic;          /*  0 */
  uint32_t abi;            /*  4 SG_ABI_VERSION */
  uint32_t flags;          /*  8 enum sg_flags */
  uint32_t block[3];       /* 12 extents it is compiled for; all 0: any */
  uint32_t param_bytes;    /* 24 */
  uint32_t static_shared;  /* 28 bytes */
  uint32_t dynamic_base;   /* 32 offset of dynamic shared memory */
  uint32_t local_bytes;    /* 36 local memory of a thread; sg_env.local_stride must be a multiple of 16, at least this */
  uint32_t frame_bytes;    /* 40 of a warp, sg_frame included; 0 without wait points */
  uint32_t point_count;    /* 44 */
  uint32_t site_count;     /* 48 */
  uint32_t cache_count;    /* 52 */
  uint32_t counter_count;  /* 56 */
  uint32_t global_count;   /* 60 */
  void *run;               /* 64 sg_run_blocks or sg_run_warp */
  const struct sg_point *points;     /* 72 */
  const struct sg_site *sites;       /* 80 */
  const char *const *globals;        /* 88 names of module variables */
  const uint32_t *counter_work;      /* 96 counter_count rows of SG_CLASSES numbers: work of one thread per count */
  const struct sg_cache *caches;     /* 104 cache_count of them, with start and limit 0 */
  const char *name;                  /* 112 the kernel's name */
  const char *about;                 /* 120 JSON for people and tests; the run-time does not read it */
};

/* end declarations */

#endif
