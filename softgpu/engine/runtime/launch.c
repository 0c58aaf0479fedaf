/* A launch: its checks, who works on it, and its result. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

static const unsigned MXCSR = 0x1f80; /* all exceptions masked, round to nearest, no flushing */
static const uint64_t DEADLINE_MS = 600000;
static const uint64_t LONGEST_MS = 1ull << 40; /* what still fits into nanoseconds */
static const uint64_t MEMORY_LIMIT = 1ull << 30;
static const uint64_t ALONE = 20000; /* nanoseconds of work for which no other thread is woken */
static const uint64_t CHUNK = 2000;  /* nanoseconds of work that are not divided between threads */
static const uint32_t LARGEST_GRID[3] = {2147483647, 65535, 65535};
static const uint32_t LARGEST_BLOCK[3] = {1024, 1024, 64};

const struct sg_helpers helpers = {
    .resolve = resolve_helper,
    .load = load_helper,
    .log = log_helper,
    .trap = trap_helper,
    .undefined = undefined_helper,
    .print = print_helper,
    .assert_fail = assert_helper,
    .clock = read_clock,
    .timer = read_timer,
    .arrive = arrive_helper,
    .sleep = sleep_nanoseconds,
    .spaces = spaces_helper,
    .store = store_helper,
    .gather = gather_helper,
    .scatter = scatter_helper,
    .copy = copy_helper,
};

static void reset(struct sg_result *result) {
  result->status = SG_OK;
  result->line = 0;
  result->message[0] = 0;
  result->mnemonic[0] = 0;
  result->address = 0;
  result->width = 0;
  result->space = 0;
  result->access = 0;
  result->has_thread = 0;
  memset(result->block, 0, sizeof result->block);
  memset(result->thread, 0, sizeof result->thread);
  result->nanoseconds = 0;
  result->workspace = 0;
  memset(result->counts, 0, sizeof result->counts);
  result->counter_count = 0;
  result->read.count = result->written.count = result->atomic.count = 0;
  result->output_size = 0;
}

void sg_result_free(struct sg_result *result) {
  free(result->counters);
  free(result->read.items);
  free(result->written.items);
  free(result->atomic.items);
  free(result->output);
  memset(result, 0, sizeof *result);
}

__attribute__((format(printf, 3, 4))) static bool refuse(const struct sg_kernel *kernel, struct sg_result *result,
                                                         const char *format, ...) {
  char what[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(result->message, sizeof result->message, "kernel %.80s: %s", kernel->name, what);
  result->status = SG_BAD_LAUNCH;
  return false;
}

static bool check_extents(const struct sg_launch *request, const struct sg_kernel *kernel, struct sg_result *result) {
  const uint32_t *g = request->grid, *b = request->block;
  for (int i = 0; i < 3; i++) {
    if (!g[i] || g[i] > LARGEST_GRID[i])
      return refuse(kernel, result, "grid %u,%u,%u: extents must lie between 1 and 2147483647,65535,65535", g[0], g[1],
                    g[2]);
    if (!b[i] || b[i] > LARGEST_BLOCK[i])
      return refuse(kernel, result, "block %u,%u,%u: extents must lie between 1 and 1024,1024,64", b[0], b[1], b[2]);
  }
  uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
  if (threads > SG_MOST_THREADS)
    return refuse(kernel, result, "block %u,%u,%u: %llu threads, more than %d", b[0], b[1], b[2],
                  (unsigned long long)threads, SG_MOST_THREADS);
  const uint32_t *fixed = kernel->block;
  if (fixed[0] && (fixed[0] != b[0] || fixed[1] != b[1] || fixed[2] != b[2]))
    return refuse(kernel, result, "block %u,%u,%u: compiled for %u,%u,%u", b[0], b[1], b[2], fixed[0], fixed[1],
                  fixed[2]);
  return true;
}

static bool check_memory(const struct sg_launch *request, const struct sg_kernel *kernel, struct sg_result *result) {
  uint64_t size = kernel->param_bytes, most = (size + 7) / 8 * 8;
  if (request->params_size < size || request->params_size > most || (size && !request->params))
    return refuse(kernel, result, "%llu bytes of parameters; it takes %llu", (unsigned long long)request->params_size,
                  (unsigned long long)size);
  uint64_t shared = (uint64_t)kernel->dynamic_base + request->dynamic_shared;
  if (shared > SG_MOST_SHARED || kernel->static_shared > SG_MOST_SHARED)
    return refuse(kernel, result, "%llu bytes of shared memory, more than %d",
                  (unsigned long long)(shared > SG_MOST_SHARED ? shared : kernel->static_shared), SG_MOST_SHARED);
  if (request->global_count != kernel->global_count || (kernel->global_count && !request->globals))
    return refuse(kernel, result, "%llu addresses of module variables; it uses %u",
                  (unsigned long long)request->global_count, kernel->global_count);
  return true;
}

uint64_t sg_check_allocations(const struct sg_allocation *table, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const struct sg_allocation *a = &table[i];
    if (a->start >> 47 || a->size > (1ull << 47) - a->start) return i;
    if (i && a->start < a[-1].start + a[-1].size) return i;
  }
  return count;
}

/* A cooperative grid must fit into memory as a whole. */
static bool check_cooperative(const struct launch *launch, struct sg_result *result) {
  const struct sg_kernel *kernel = launch->kernel;
  if (!launch->request->cooperative || !(kernel->flags & SG_WAITS)) return true;
  uint64_t size = block_bytes(launch);
  if (launch->blocks <= launch->memory_limit / size) return true;
  return refuse(kernel, result, "%llu blocks cannot be resident at once: each takes %llu bytes, and the limit is %llu",
                (unsigned long long)launch->blocks, (unsigned long long)size, (unsigned long long)launch->memory_limit);
}

/* Room in the result for what the kernel counts. */
static bool make_counters(const struct sg_kernel *kernel, struct sg_result *result) {
  if (!(kernel->flags & SG_COUNTS) || !kernel->counter_count) return true;
  if (result->counter_capacity < kernel->counter_count) {
    uint64_t *counters = realloc(result->counters, kernel->counter_count * sizeof *counters);
    if (!counters) return false;
    result->counters = counters;
    result->counter_capacity = kernel->counter_count;
  }
  result->counter_count = kernel->counter_count;
  memset(result->counters, 0, kernel->counter_count * sizeof *result->counters);
  return true;
}

static void count_work(const struct sg_kernel *kernel, struct sg_result *result) {
  for (uint64_t i = 0; i < result->counter_count; i++) {
    const uint32_t *work = kernel->counter_work + i * SG_CLASSES;
    uint64_t times = result->counters[i];
    if (times)
      for (int class = 0; class < SG_CLASSES; class++) result->counts[class] += times * work[class];
  }
}

/* Kernels round to nearest and keep subnormal numbers, whatever mode the host program has set for its threads, and
   whatever those that it started have inherited. */
void work_on(struct worker *worker, struct launch *launch) {
  if (!worker_begin(worker, launch)) return;
  unsigned before = _mm_getcsr();
  _mm_setcsr(MXCSR);
  if (launch->kernel->flags & SG_WAITS)
    run_residents(worker);
  else
    run_blocks(worker);
  _mm_setcsr(before);
  worker_end(worker);
}

/* Wake other threads for a launch that takes longer than was thought. */
void call_if_late(struct worker *worker) {
  struct launch *launch = worker->launch;
  if (atomic_load_explicit(&launch->may_call, memory_order_relaxed) && now() - launch->started > ALONE) {
    atomic_store_explicit(&launch->may_call, false, memory_order_relaxed);
    pool_call(launch);
  }
}

static void prepare_launch(struct launch *launch, struct sg_pool *pool, const struct sg_launch *request,
                           struct sg_result *result) {
  const struct sg_kernel *kernel = request->kernel->kernel;
  memset(launch, 0, sizeof *launch);
  launch->pool = pool;
  launch->request = request;
  launch->handle = request->kernel;
  launch->kernel = kernel;
  launch->result = result;
  launch->blocks = (uint64_t)request->grid[0] * request->grid[1] * request->grid[2];
  launch->threads = request->block[0] * request->block[1] * request->block[2];
  launch->warps = (launch->threads + SG_WARP - 1) / SG_WARP;
  launch->shared_bytes =
      request->dynamic_shared ? kernel->dynamic_base + request->dynamic_shared : kernel->static_shared;
  launch->local_stride = (kernel->local_bytes + 15) / 16 * 16;
  launch->memory_limit = request->memory_limit ? request->memory_limit : MEMORY_LIMIT;
  launch->started = now();
  uint64_t deadline = request->deadline_ms ? request->deadline_ms : DEADLINE_MS;
  launch->deadline = launch->started + (deadline < LONGEST_MS ? deadline : LONGEST_MS) * 1000000u;
  launch->started_cycles = cycles();
  uint64_t others = pool->workers - 1;
  launch->wanted = (unsigned)(launch->blocks - 1 < others ? launch->blocks - 1 : others);
  if (request->workspace)
    result->workspace = request->workspace;
  else if (request->cooperative)
    result->workspace = (uint64_t)(uintptr_t)launch->workspace;
}

/* The parameter block at an address that suits wide loads, with zeros behind it. */
static bool copy_params(struct launch *launch, struct worker *worker) {
  size_t size = launch->request->params_size, room = (size / 64 + 2) * 64;
  uint8_t *params = buffer_get(&worker->params, room);
  if (!params) return false;
  if (size) memcpy(params, launch->request->params, size);
  memset(params + size, 0, room - size);
  launch->params = params;
  return true;
}

static void run(struct launch *launch, struct worker *worker) {
  uint64_t block_time = atomic_load_explicit(&launch->handle->block_time, memory_order_relaxed);
  launch->least_chunk = block_time && block_time < CHUNK ? CHUNK / block_time : 1;
  bool later = block_time && launch->blocks < ALONE / block_time;
  atomic_store_explicit(&launch->may_call, later && launch->wanted, memory_order_relaxed);
  atomic_store(&launch->open, true);
  if (!later && launch->wanted) pool_call(launch);
  work_on(worker, launch);
  launch->result->nanoseconds = now() - launch->started;
  if (worker->done)
    atomic_store_explicit(&launch->handle->block_time, launch->result->nanoseconds / worker->done + 1,
                          memory_order_relaxed);
}

int sg_launch_run(sg_pool *pool, const struct sg_launch *request, struct sg_result *result) {
  const struct sg_kernel *kernel = request->kernel->kernel;
  struct launch launch;
  reset(result);
  if (!check_extents(request, kernel, result) || !check_memory(request, kernel, result)) return result->status;
  if (!pool_is_here(pool)) {
    refuse(kernel, result, "the pool belongs to the process that this one was forked from");
    return result->status;
  }
  prepare_launch(&launch, pool, request, result);
  if (!check_cooperative(&launch, result)) return result->status;
  pthread_mutex_init(&launch.lock, NULL);
  struct worker *worker = make_counters(kernel, result) ? pool_enter(pool, &launch) : NULL;
  if (!worker) {
    snprintf(result->message, sizeof result->message, "kernel %.80s: no memory or no thread for it", kernel->name);
    result->status = SG_OUT_OF_MEMORY;
  } else {
    worker->launch = &launch;
    if (copy_params(&launch, worker))
      run(&launch, worker);
    else
      no_memory(worker);
    pool_leave(pool, &launch, worker);
    result->nanoseconds = now() - launch.started;
    count_work(kernel, result);
    if (kernel->flags & SG_LOGS) log_finish(&launch);
  }
  pthread_mutex_destroy(&launch.lock);
  return result->status;
}
