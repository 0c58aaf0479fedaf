/* What a worker keeps between launches, so that a launch in the steady state allocates nothing. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

static const size_t KEPT = 64u << 20; /* bytes of spare blocks a worker keeps between launches */

static size_t up(size_t size, size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/* At least `size` zeroed or formerly used bytes, 64-byte aligned; what was there is kept. NULL: no memory. */
void *buffer_get(struct buffer *buffer, size_t size) {
  if (size <= buffer->size && buffer->data) return buffer->data;
  size_t larger = up(size < 2 * buffer->size ? 2 * buffer->size : size ? size : 1, LINE);
  uint8_t *data = aligned_alloc(LINE, larger);
  if (!data) return NULL;
  if (buffer->data) memcpy(data, buffer->data, buffer->size);
  memset(data + buffer->size, 0, larger - buffer->size);
  free(buffer->data);
  buffer->data = data;
  buffer->size = larger;
  return data;
}

struct worker *worker_create(struct sg_pool *pool) {
  struct worker *worker = aligned_alloc(LINE, up(sizeof *worker, LINE));
  if (!worker) return NULL;
  memset(worker, 0, sizeof *worker);
  worker->pool = pool;
  return worker;
}

static void block_free(struct block *block) {
  free(block->memory);
  free(block);
}

void worker_destroy(struct worker *worker) {
  while (worker->spare) {
    struct block *block = worker->spare;
    worker->spare = block->next;
    block_free(block);
  }
  free(worker->caches.data);
  free(worker->counters.data);
  free(worker->thread_ids.data);
  free(worker->residents.data);
  free(worker->text.data);
  free(worker->params.data);
  log_free(worker);
  free(worker);
}

/* x, y and z of every thread of a block, for kernels that are compiled for any extents. */
static bool make_thread_ids(struct worker *worker, const struct launch *launch) {
  const uint32_t *extents = launch->request->block;
  if (memcmp(worker->ids_of, extents, sizeof worker->ids_of) == 0) return true;
  size_t slots = (size_t)launch->warps * SG_WARP;
  uint32_t *ids = buffer_get(&worker->thread_ids, 3 * slots * sizeof *ids);
  if (!ids) return false;
  memset(ids, 0, 3 * slots * sizeof *ids);
  uint32_t thread = 0;
  for (uint32_t z = 0; z < extents[2]; z++)
    for (uint32_t y = 0; y < extents[1]; y++)
      for (uint32_t x = 0; x < extents[0]; x++, thread++) {
        ids[thread] = x;
        ids[slots + thread] = y;
        ids[2 * slots + thread] = z;
      }
  memcpy(worker->ids_of, extents, sizeof worker->ids_of);
  return true;
}

/* Point the environment at a launch. False: no memory, and the launch has failed. */
bool worker_begin(struct worker *worker, struct launch *launch) {
  const struct sg_kernel *kernel = launch->kernel;
  struct sg_env *env = &worker->env;
  worker->launch = launch;
  worker->block = NULL;
  worker->last_clock = 0;
  worker->done = 0;
  env->caches = buffer_get(&worker->caches, kernel->cache_count * sizeof *env->caches);
  env->counters = buffer_get(&worker->counters, kernel->counter_count * sizeof *env->counters);
  bool ok = env->caches && env->counters && log_begin(worker);
  if (ok && !kernel->block[0]) ok = make_thread_ids(worker, launch);
  if (!ok) {
    no_memory(worker);
    return false;
  }
  memset(env->counters, 0, kernel->counter_count * sizeof *env->counters);
  env->params = launch->params;
  env->globals = launch->request->globals;
  env->helpers = &helpers;
  env->stop = (volatile int32_t *)&launch->stop;
  env->thread_ids = worker->thread_ids.data;
  env->workspace = launch->result->workspace;
  env->grid_id = launch->request->grid_id;
  for (int i = 0; i < 3; i++) {
    env->grid[i] = launch->request->grid[i];
    env->block[i] = launch->request->block[i];
    env->ctaid[i] = 0;
  }
  env->warp = 0;
  env->threads = launch->threads;
  env->warps = launch->warps;
  env->shared_bytes = launch->shared_bytes;
  env->dynamic_shared = launch->request->dynamic_shared;
  caches_begin(worker);
  env->local_stride = launch->local_stride;
  return true;
}

/* Hand counts and log to the result, and trim what is kept. */
void worker_end(struct worker *worker) {
  struct launch *launch = worker->launch;
  if (launch->kernel->flags & SG_COUNTS) {
    const uint64_t *counters = worker->env.counters;
    pthread_mutex_lock(&launch->lock);
    for (uint32_t i = 0; i < launch->kernel->counter_count; i++) launch->result->counters[i] += counters[i];
    pthread_mutex_unlock(&launch->lock);
  }
  if (launch->kernel->flags & SG_LOGS) log_end(worker);
  size_t kept = 0;
  for (struct block **link = &worker->spare; *link;) {
    struct block *block = *link;
    kept += block->capacity;
    if (kept <= KEPT) {
      link = &block->next;
    } else {
      *link = block->next;
      block_free(block);
    }
  }
}

/* Where the parts of a block lie in its memory, in bytes from the start; `size` is the whole. */
struct parts {
  size_t frame_stride;
  size_t local;
  size_t shared;
  size_t met;
  size_t size;
};

static struct parts parts_of(const struct launch *launch) {
  const struct sg_kernel *kernel = launch->kernel;
  bool waits = kernel->flags & SG_WAITS;
  size_t warps = waits ? launch->warps : 1, local_bytes = (size_t)SG_WARP * launch->local_stride;
  struct parts parts;
  parts.frame_stride = waits ? up(kernel->frame_bytes, LINE) : 0;
  parts.local = warps * parts.frame_stride;
  parts.shared = up(parts.local + warps * local_bytes + PADDING, 128);
  parts.met = up(parts.shared + launch->shared_bytes + PADDING, LINE);
  parts.size = up(parts.met + (waits ? warps * (kernel->point_count + 1) * sizeof(uint32_t) : 0), 128);
  return parts;
}

size_t block_bytes(const struct launch *launch) { return parts_of(launch).size; }

/* Place the parts of a block in its memory, which grows to hold them. */
static bool lay_out(struct block *block, const struct launch *launch) {
  struct parts parts = parts_of(launch);
  if (parts.size > block->capacity) {
    free(block->memory);
    block->capacity = 0;
    block->memory = aligned_alloc(128, parts.size);
    if (!block->memory) return false;
    memset(block->memory, 0, parts.size);
    block->capacity = parts.size;
  }
  block->frame_stride = parts.frame_stride;
  block->local_bytes = (size_t)SG_WARP * launch->local_stride;
  block->point_count = launch->kernel->point_count;
  block->frames = block->memory;
  block->local = block->memory + parts.local;
  block->shared = block->memory + parts.shared;
  block->met_live = (uint32_t *)(void *)(block->memory + parts.met);
  block->met = block->met_live + (launch->kernel->flags & SG_WAITS ? launch->warps : 1);
  return true;
}

/* Memory for a block. NULL: none for another one; it is only the `first` of a worker that may pass the limit, and for
 * which missing memory is a failure. */
struct block *block_get(struct worker *worker, bool first) {
  struct launch *launch = worker->launch;
  struct block *block = worker->spare;
  if (!first && atomic_load(&launch->held) >= launch->memory_limit) return NULL;
  if (block) {
    worker->spare = block->next;
  } else {
    block = calloc(1, sizeof *block);
    if (!block) {
      if (first) no_memory(worker);
      return NULL;
    }
  }
  if (!lay_out(block, launch)) {
    block_free(block);
    if (first) no_memory(worker);
    return NULL;
  }
  atomic_fetch_add(&launch->held, block_bytes(launch));
  return block;
}

void block_put(struct worker *worker, struct block *block) {
  atomic_fetch_sub(&worker->launch->held, block_bytes(worker->launch));
  block->next = worker->spare;
  worker->spare = block;
}
