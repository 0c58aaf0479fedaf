/* Kernels without wait points: one call runs many blocks. */
#include "internal.h"

enum { SHARES = 4 }; /* pieces of what is left, for each worker: large at first, small at the end */

/* Take blocks [*first, *last); false: none are left. */
static bool take(struct launch *launch, uint64_t *first, uint64_t *last) {
  uint64_t next = atomic_load_explicit(&launch->next_block, memory_order_relaxed);
  if (next >= launch->blocks) return false;
  uint64_t chunk = (launch->blocks - next) / ((uint64_t)SHARES * launch->pool->workers);
  if (chunk < launch->least_chunk) chunk = launch->least_chunk;
  *first = atomic_fetch_add_explicit(&launch->next_block, chunk, memory_order_relaxed);
  if (*first >= launch->blocks) return false;
  *last = launch->blocks - *first < chunk ? launch->blocks : *first + chunk;
  return true;
}

void run_blocks(struct worker *worker) {
  struct launch *launch = worker->launch;
  sg_run_blocks run = (sg_run_blocks)launch->kernel->run;
  struct block *block = block_get(worker, true);
  if (!block) return;
  worker->env.shared = block->shared;
  worker->env.local = block->local;
  uint64_t first, last;
  while (!stopped(launch) && take(launch, &first, &last)) {
    set_coordinates(worker->env.ctaid, first, launch->request->grid);
    if (run(&worker->env, first, last) != SG_DONE) break;
    worker->done += last - first;
    call_if_late(worker);
  }
  block_put(worker, block);
}
