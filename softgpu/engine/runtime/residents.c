/* Kernels with wait points: which blocks a worker has under way. A block that waits for other blocks stays resident
 * while fresh ones start beside it, as all blocks of a grid may have to be there before one can go on. */
#include "internal.h"

#include <sched.h>
#include <string.h>

enum { IDLE_ROUNDS = 16 }; /* rounds without progress before the CPU is offered to others */

struct residents {
  struct block **blocks;
  size_t count;
  struct block *free; /* memory of a block that has ended, for the next one */
  uint64_t fresh; /* blocks that may start before those that wait get another turn */
  unsigned idle;
};

static bool take(struct launch *launch, uint64_t *number) {
  if (atomic_load_explicit(&launch->next_block, memory_order_relaxed) >= launch->blocks) return false;
  *number = atomic_fetch_add_explicit(&launch->next_block, 1, memory_order_relaxed);
  return *number < launch->blocks;
}

/* Start another block and give it a turn. False: there is none, or no memory for it. */
static bool start(struct worker *worker, struct residents *residents, unsigned patience) {
  struct launch *launch = worker->launch;
  if (atomic_load_explicit(&launch->next_block, memory_order_relaxed) >= launch->blocks) return false;
  struct block **blocks = buffer_get(&worker->residents, (residents->count + 1) * sizeof(struct block *));
  if (!blocks) {
    no_memory(worker);
    return false;
  }
  residents->blocks = blocks;
  uint64_t number;
  if (!residents->free) residents->free = block_get(worker, residents->count == 0);
  if (!residents->free || !take(launch, &number)) return false;
  struct block *block = residents->free;
  block_start(worker, block, number);
  if (block_turn(worker, block, patience) == TURN_ENDED) {
    worker->done++;
  } else {
    residents->free = NULL;
    residents->blocks[residents->count++] = block;
    atomic_fetch_add(&launch->waits, 1);
  }
  return true;
}

/* A turn for every block that waits; whether any came further. */
static bool go_round(struct worker *worker, struct residents *residents, unsigned patience) {
  bool progress = false;
  size_t kept = 0;
  for (size_t i = 0; i < residents->count; i++) {
    struct block *block = residents->blocks[i];
    enum turn turn = stopped(worker->launch) ? TURN_STOPPED : block_turn(worker, block, patience);
    progress = progress || turn == TURN_ENDED || turn == TURN_WAITS;
    if (turn == TURN_ENDED) {
      worker->done++;
      if (residents->free)
        block_put(worker, block);
      else
        residents->free = block;
      atomic_fetch_sub(&worker->launch->waits, 1);
    } else {
      residents->blocks[kept++] = block;
    }
  }
  residents->count = kept;
  return progress;
}

void run_residents(struct worker *worker) {
  struct launch *launch = worker->launch;
  bool together = launch->request->cooperative;
  unsigned patience = together ? 1 : PATIENCE;
  struct residents residents = {0};
  while (!stopped(launch)) {
    if (residents.count == 0 || residents.fresh) {
      if (residents.fresh) residents.fresh--;
      if (start(worker, &residents, patience)) {
        call_if_late(worker);
        continue;
      }
      residents.fresh = 0;
      if (residents.count == 0) break;
    }
    if (go_round(worker, &residents, patience)) {
      residents.idle = 0;
      continue;
    }
    /* Twice as many as before, so that n resident blocks take n log n turns, but no more memory than needed. */
    residents.fresh = together ? UINT64_MAX : residents.count;
    call_if_late(worker);
    if (++residents.idle % IDLE_ROUNDS == 0) sched_yield();
  }
  for (size_t i = 0; i < residents.count; i++) block_put(worker, residents.blocks[i]);
  if (residents.free) block_put(worker, residents.free);
}
