/* What the files of the run-time share. A launch is worked on by its calling thread and by threads of the pool; each
 * of them does so with a struct worker, whose first member is the sg_env that compiled code sees. */
#ifndef SOFTGPU_INTERNAL_H
#define SOFTGPU_INTERNAL_H

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "softgpu_engine.h"

enum {
  BARRIERS = 16,
  PADDING = 1024,               /* readable bytes behind shared and local memory, for wide loads near their ends */
  WORKSPACE_BYTES = 64,
  PATIENCE = 64                 /* turns a waiting block gets before a fresh one starts beside it */
};

struct sg_kernel_handle {
  const struct sg_kernel *kernel;
  void *object;                /* of dlopen; NULL for a wrapped kernel */
  bool reduces;                /* has bar.red */
  _Atomic uint64_t block_time; /* nanoseconds that a block took in the last launch; 0: unknown */
};

/* Memory that grows and is used again. */
struct buffer {
  void *data;
  size_t size;
};

/* State of the barrier of one number in a block. Warps are bits, numbered as in the block. */
struct barrier {
  uint32_t used; /* somebody has come since it last completed; then `expected` holds */
  uint32_t expected;
  uint32_t count;   /* threads that have arrived, 32 for a warp */
  uint32_t waiting; /* warps that have arrived and wait */
  uint32_t split;   /* those of them whose waiting lanes are not all its live lanes at one point: see `counted` */
  uint32_t gathers; /* warps of which some lanes came by bar.arrive and the rest has not come: see `gathered` */
};

/* A resident block of a kernel with wait points; of one without, only memory. */
struct block {
  struct block *next;
  size_t capacity; /* bytes behind `memory` */
  uint8_t *memory;
  uint8_t *frames;
  uint8_t *local;
  uint8_t *shared;
  uint32_t *met;      /* per warp and point: the lanes that stood at an SG_MEET point when the warp was last called */
  uint32_t *met_live; /* per warp: its live lanes then */
  size_t frame_stride;
  size_t local_bytes; /* of a warp */
  uint32_t ctaid[3];
  uint32_t point_count;
  /* Warps, as bits. */
  uint32_t all;
  uint32_t ended;
  uint32_t ready;     /* have lanes in `go`, or have not started */
  uint32_t yields;    /* go on at the next turn, or look again whether their lanes have met */
  uint32_t mixed;     /* their waiting lanes are at several points, so all points must be looked at before a call */
  uint32_t gathering; /* have lanes in some barrier's `gathered` */
  uint32_t open;      /* barriers in use, as bits */
  uint32_t guess;     /* the point where a warp came last */
  uint32_t place[SG_WARP]; /* where all lanes of a warp wait that is not in `mixed` */
  struct barrier barriers[BARRIERS];
  uint32_t counted[BARRIERS][SG_WARP];
  uint32_t gathered[BARRIERS][SG_WARP];
};

/* The accessed bytes by kind (read, written, atomic). `open` has one range for each site, which is still growing. */
struct access_log {
  struct sg_ranges kinds[3];
  struct sg_range *open;
  uint32_t open_count;
};

struct worker {
  struct sg_env env; /* first: the helpers get the worker from it */
  struct sg_pool *pool;
  struct launch *launch;
  struct block *block; /* that runs now */
  struct worker *next;
  uint64_t last_clock;
  uint64_t done;       /* blocks of this launch that ended here */
  uint32_t ids_of[3];  /* extents that thread_ids was made for */
  struct buffer caches;
  struct buffer counters;
  struct buffer thread_ids;
  struct buffer residents; /* struct block *[] */
  struct buffer text;
  struct buffer params;    /* of the calling thread's launch */
  struct block *spare;
  struct access_log log;
};

struct launch {
  _Alignas(64) _Atomic uint64_t next_block;
  _Alignas(64) _Atomic int32_t stop;
  _Atomic int32_t failed;  /* the first to set it writes why into the result */
  _Atomic uint64_t slept;  /* nanoseconds by which nanosleep advanced the clocks */
  _Atomic uint64_t held;   /* bytes of resident blocks */
  _Atomic uint64_t waits;  /* resident blocks that wait for others */
  _Atomic unsigned helpers; /* threads of the pool at work; changed under the pool's lock */
  bool called;             /* threads of the pool may join, or might have; under the lock of the pool */
  unsigned wanted;         /* of them at most */
  _Atomic bool open;       /* it is complete, and its calling thread still starts blocks */
  _Atomic bool may_call;   /* the calling thread works alone, and may call others if that takes long */
  struct sg_pool *pool;
  const struct sg_launch *request;
  struct sg_kernel_handle *handle;
  const struct sg_kernel *kernel;
  struct sg_result *result;
  pthread_mutex_t lock; /* output, counters and log in the result */
  const uint8_t *params;
  uint64_t blocks;
  uint64_t least_chunk; /* blocks that one call of a kernel without wait points runs, but for the last one */
  uint64_t memory_limit;
  uint64_t started;  /* nanoseconds of the monotonic clock */
  uint64_t deadline; /* the same */
  uint64_t started_cycles;
  uint32_t threads;
  uint32_t warps;
  uint32_t shared_bytes;
  uint32_t local_stride;
  struct launch *previous;
  struct launch *following;
  _Alignas(64) uint8_t workspace[WORKSPACE_BYTES];
};

struct sg_pool {
  pthread_mutex_t lock;
  pthread_cond_t work;     /* threads of the pool wait for launches */
  pthread_cond_t finished; /* callers wait for the threads that work on their launch */
  pthread_cond_t tick;     /* the watchdog waits */
  struct launch *active;
  struct worker *idle;   /* for calling threads */
  struct worker *helpers; /* of the pool's threads */
  pthread_t *threads;
  pthread_t watchdog;
  unsigned workers;
  unsigned started; /* threads[0..started) run */
  bool closing;
  bool watched;  /* the watchdog has started */
  bool dozing;   /* the watchdog waits without a time limit */
  uint64_t launches;
  locale_t locale; /* of printf: "C" */
  uint8_t *alive;  /* a page that is zero in the child of a fork */
  int64_t process; /* where the kernel has no such pages: the process that made the pool */
};

static inline struct worker *worker_of(struct sg_env *env) { return (struct worker *)env; }

static inline struct sg_frame *frame_of(const struct block *block, unsigned warp) {
  return (struct sg_frame *)(void *)(block->frames + warp * block->frame_stride);
}

static inline bool stopped(const struct launch *launch) {
  return atomic_load_explicit(&launch->stop, memory_order_relaxed) != 0;
}

static inline unsigned lowest(uint32_t bits) { return (unsigned)__builtin_ctz(bits); }

/* time.c: nanoseconds of the monotonic clock; helpers 7, 8 and 10. */
uint64_t now(void);
uint64_t cycles(void);
uint64_t read_clock(struct sg_env *env);
uint64_t read_timer(struct sg_env *env);
void sleep_nanoseconds(struct sg_env *env, uint32_t nanoseconds);

/* fault.c: the first failure of a launch stops it. All return -1. `lane` -1: no thread to name; `line` 0: none. */
int fail(struct worker *worker, enum sg_outcome outcome, uint32_t line, int lane, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int fail_at(struct worker *worker, enum sg_outcome outcome, uint32_t site, int lane, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int fail_access(struct worker *worker, const struct sg_site *site, int lane, uint64_t address, const char *reason);
/* Without a worker: the deadline. */
void fail_deadline(struct launch *launch);
int no_memory(struct worker *worker);
int32_t trap_helper(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code);
int32_t undefined_helper(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code);

/* memory.c. `caches_begin` gives a worker's caches what its launch starts with. `locate` gives the host address of one byte of a lane's memory and the bytes from there to the end of what
 * it lies in, or NULL. */
void caches_begin(struct worker *worker);
int32_t resolve_helper(struct sg_env *env, uint64_t *addresses, uint32_t mask, uint32_t site, struct sg_cache *cache);
/* access.c: helpers 1 and 12 to 15. */
int32_t load_helper(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                    uint32_t site, struct sg_cache *cache, void *values);
int32_t store_helper(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                     uint32_t site, struct sg_cache *cache, void *values);
void gather_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values);
void scatter_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values);
int32_t copy_helper(struct sg_env *env, uint64_t *sources, uint64_t *targets, const uint32_t *lengths, uint32_t mask,
                    uint32_t site, struct sg_cache *cache);
int32_t spaces_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t *constant);
const uint8_t *locate(struct worker *worker, int lane, uint64_t address, uint64_t *left);

/* print.c */
int32_t print_helper(struct sg_env *env, const uint64_t *formats, const uint64_t *arguments, uint32_t mask,
                     uint32_t site, uint32_t *results);
int32_t assert_helper(struct sg_env *env, const uint64_t *message, const uint64_t *file, const uint32_t *line,
                      const uint64_t *function, uint32_t mask, uint32_t site);

/* format.c: the text of a printf for one lane; the number of arguments, or -1 after a failure. */
struct text {
  struct buffer *room;
  size_t size;
};
int format_text(struct worker *worker, int lane, uint32_t site, const char *format, size_t length, uint64_t arguments,
                struct text *out);
/* The string at a generic address, without its end; NULL: there is none, `reason` says why. */
const char *read_string(struct worker *worker, int lane, uint64_t address, size_t longest, size_t *length,
                        const char **reason);

/* log.c */
void log_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t site);
bool log_begin(struct worker *worker);
void log_end(struct worker *worker);
void log_finish(struct launch *launch);
void log_free(struct worker *worker);

/* scratch.c: what a worker keeps between launches. */
void *buffer_get(struct buffer *buffer, size_t size);
struct worker *worker_create(struct sg_pool *pool);
void worker_destroy(struct worker *worker);
bool worker_begin(struct worker *worker, struct launch *launch);
void worker_end(struct worker *worker);
size_t block_bytes(const struct launch *launch);
struct block *block_get(struct worker *worker, bool first);
void block_put(struct worker *worker, struct block *block);

/* pool.c */
struct worker *pool_enter(struct sg_pool *pool, struct launch *launch);
void pool_leave(struct sg_pool *pool, struct launch *launch, struct worker *worker);
void pool_call(struct launch *launch);
void pool_call_locked(struct launch *launch);
bool pool_is_here(const struct sg_pool *pool);
bool start_thread(pthread_t *thread, void *(*main)(void *), void *given);

/* watchdog.c */
void *watch(void *pool);

/* launch.c */
void work_on(struct worker *worker, struct launch *launch);
void call_if_late(struct worker *worker);

/* blocks.c, residents.c: all blocks of kernels without and with wait points. */
void run_blocks(struct worker *worker);
void run_residents(struct worker *worker);

/* warps.c: one block; how far it came. */
enum turn { TURN_ENDED, TURN_WAITS, TURN_WAITED, TURN_STOPPED };
void block_start(struct worker *worker, struct block *block, uint64_t number);
enum turn block_turn(struct worker *worker, struct block *block, unsigned patience);

/* settle.c: what became of a warp that returned; false: the launch failed. */
bool settle(struct worker *worker, struct block *block, unsigned warp, bool done);
bool prepare(struct block *block, unsigned warp, const struct sg_point *points);
int fail_deadlock(struct worker *worker, struct block *block);

/* barrier.c */
bool is_barrier(uint32_t kind);
struct barrier *barrier_join(struct worker *worker, struct block *block, uint32_t number, uint32_t expected,
                             uint32_t line, int lane);
void barrier_arrived(struct worker *worker, struct block *block, struct barrier *barrier, unsigned warp, bool waits);
void barrier_check(struct worker *worker, struct block *block, struct barrier *barrier);
int32_t arrive_helper(struct sg_env *env, struct sg_frame *frame, uint32_t barrier, uint32_t expected, uint32_t mask,
                      uint32_t site);

extern const struct sg_helpers helpers;

/* The indices of a block from its linear number. */
static inline void set_coordinates(uint32_t ctaid[3], uint64_t number, const uint32_t grid[3]) {
  ctaid[0] = (uint32_t)(number % grid[0]);
  ctaid[1] = (uint32_t)(number / grid[0] % grid[1]);
  ctaid[2] = (uint32_t)(number / grid[0] / grid[1]);
}

#endif
