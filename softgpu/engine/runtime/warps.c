/* One block of a kernel with wait points: its warps take turns until all have ended or wait for other blocks. */
#include "internal.h"

#include <string.h>

/* The state of a block at its start. Of the frames only headers and wait points are cleared, but all of shared and local
 * memory, so that a kernel that reads what it has not written gives the same result every time. */
void block_start(struct worker *worker, struct block *block, uint64_t number) {
  const struct launch *launch = worker->launch;
  const uint32_t *grid = launch->request->grid;
  size_t header = sizeof(struct sg_frame) + launch->kernel->point_count * sizeof(struct sg_wait);
  set_coordinates(block->ctaid, number, grid);
  block->all = launch->warps == SG_WARP ? UINT32_MAX : (1u << launch->warps) - 1;
  block->ready = block->all;
  block->ended = block->yields = block->mixed = block->gathering = block->open = block->guess = 0;
  memset(block->barriers, 0, sizeof block->barriers);
  for (unsigned warp = 0; warp < launch->warps; warp++) {
    struct sg_frame *frame = frame_of(block, warp);
    memset(frame, 0, header);
    uint32_t left = launch->threads - warp * SG_WARP;
    frame->live = left >= SG_WARP ? UINT32_MAX : (1u << left) - 1;
    block->met_live[warp] = 0;
  }
  memset(block->shared, 0, launch->shared_bytes);
  memset(block->local, 0, launch->warps * block->local_bytes);
}

static bool call(struct worker *worker, struct block *block, unsigned warp, sg_run_warp run) {
  struct sg_env *env = &worker->env;
  uint32_t bit = 1u << warp;
  block->ready &= ~bit;
  if (((block->yields | block->mixed) & bit) && !prepare(block, warp, worker->launch->kernel->points)) return true;
  env->warp = warp;
  env->local = block->local + warp * block->local_bytes;
  int32_t status = run(env, frame_of(block, warp));
  if (status == SG_STOPPED) return false;
  return settle(worker, block, warp, status == SG_DONE);
}

/* Runs the block's warps until all have ended, or all that are left have yielded `patience` times in a row.
 * TURN_WAITED: nothing but such yields happened. */
enum turn block_turn(struct worker *worker, struct block *block, unsigned patience) {
  struct sg_env *env = &worker->env;
  sg_run_warp run = (sg_run_warp)worker->launch->kernel->run;
  enum turn waits = TURN_WAITED;
  worker->block = block;
  env->shared = block->shared;
  memcpy(env->ctaid, block->ctaid, sizeof env->ctaid);
  while (block->ended != block->all) {
    uint32_t turn = block->ready | block->yields;
    if (stopped(worker->launch)) return TURN_STOPPED;
    if (!turn) {
      fail_deadlock(worker, block);
      return TURN_STOPPED;
    }
    if (block->ready)
      waits = TURN_WAITS;
    else if (patience-- == 0)
      return waits;
    for (; turn; turn &= turn - 1)
      if (!call(worker, block, lowest(turn), run)) return TURN_STOPPED;
  }
  return TURN_ENDED;
}
