/* The barriers of a block: arrival by warp, completion, and the results of bar.red (PTX manual, section 9.7.13.1). A
 * warp arrives when all its lanes that have not ended have come, and then counts as 32 threads. Without a count, a
 * barrier waits for every warp of the block that has not ended. */
#include "internal.h"

#include <string.h>

bool is_barrier(uint32_t kind) { return kind >= SG_SYNC && kind <= SG_RED_POPC; }

/* The barrier of a number, which expects `expected` threads (0: all) here as elsewhere. NULL: the launch failed. */
struct barrier *barrier_join(struct worker *worker, struct block *block, uint32_t number, uint32_t expected,
                             uint32_t line, int lane) {
  if (number >= BARRIERS) {
    fail(worker, SG_UNDEFINED, line, lane, "barrier %u does not exist (0 to 15 do)", number);
    return NULL;
  }
  if (expected % SG_WARP) {
    fail(worker, SG_UNDEFINED, line, lane, "barrier count %u is not a positive multiple of the warp size", expected);
    return NULL;
  }
  struct barrier *barrier = &block->barriers[number];
  if (!barrier->used) {
    barrier->used = 1;
    barrier->expected = expected;
    block->open |= 1u << number;
  } else if (barrier->expected != expected) {
    fail(worker, SG_UNDEFINED, line, lane, "barrier %u expects %u threads here and %u elsewhere (0: all)", number,
         expected, barrier->expected);
    return NULL;
  }
  return barrier;
}

/* What all participants of a bar.red had to say. */
struct votes {
  uint32_t present;
  uint32_t true_count;
};

static uint32_t result_of(uint32_t kind, struct votes votes) {
  switch (kind) {
    case SG_RED_AND: return votes.true_count == votes.present;
    case SG_RED_OR: return votes.true_count > 0;
    default: return votes.true_count;
  }
}

/* The lanes of a warp that wait at a point for the completing barrier. */
static uint32_t lanes_at(const struct block *block, const struct sg_point *points, uint32_t number, unsigned warp,
                         uint32_t point) {
  const struct sg_wait *wait = &frame_of(block, warp)->points[point];
  if (!wait->waiting || !is_barrier(points[point].kind) || wait->barrier != number) return 0;
  return wait->waiting & block->counted[number][warp];
}

static struct votes count_votes(const struct block *block, const struct sg_point *points, uint32_t number,
                                uint32_t warps, uint32_t split) {
  struct votes votes = {0, 0};
  for (uint32_t left = warps; left; left &= left - 1) {
    unsigned warp = lowest(left);
    bool apart = split >> warp & 1;
    const struct sg_frame *frame = frame_of(block, warp);
    uint32_t first = apart ? 0 : block->place[warp], last = apart ? block->point_count : first + 1;
    for (uint32_t point = first; point < last; point++) {
      if (points[point].kind < SG_RED_AND || points[point].kind > SG_RED_POPC) continue;
      uint32_t lanes = apart ? lanes_at(block, points, number, warp, point) : frame->points[point].waiting;
      votes.present += (uint32_t)__builtin_popcount(lanes);
      votes.true_count += (uint32_t)__builtin_popcount(lanes & frame->points[point].predicate);
    }
  }
  return votes;
}

static void let_go(struct sg_wait *wait, uint32_t lanes) {
  wait->go |= lanes;
  wait->waiting &= ~lanes;
  wait->predicate &= ~lanes;
}

static void let_split_go(struct block *block, const struct sg_point *points, uint32_t number, unsigned warp,
                         struct votes votes) {
  struct sg_frame *frame = frame_of(block, warp);
  for (uint32_t point = 0; point < block->point_count; point++) {
    uint32_t lanes = lanes_at(block, points, number, warp, point);
    if (!lanes) continue;
    let_go(&frame->points[point], lanes);
    frame->points[point].result = result_of(points[point].kind, votes);
  }
  block->mixed |= 1u << warp;
}

static void complete(struct worker *worker, struct block *block, struct barrier *barrier) {
  const struct sg_point *points = worker->launch->kernel->points;
  uint32_t number = (uint32_t)(barrier - block->barriers), warps = barrier->waiting, split = barrier->split;
  bool reduces = worker->launch->handle->reduces;
  struct votes votes = {0, 0};
  if (reduces) votes = count_votes(block, points, number, warps, split);
  barrier->count = barrier->waiting = barrier->split = 0;
  if (!barrier->gathers) {
    barrier->used = 0;
    block->open &= ~(1u << number);
  }
  block->ready |= warps;
  for (uint32_t left = warps & ~split; left; left &= left - 1) {
    unsigned warp = lowest(left);
    uint32_t point = block->place[warp];
    struct sg_frame *frame = frame_of(block, warp);
    struct sg_wait *wait = &frame->points[point];
    if (reduces) wait->result = result_of(points[point].kind, votes);
    let_go(wait, wait->waiting);
    frame->resume = point + 1;
  }
  for (uint32_t left = warps & split; left; left &= left - 1)
    let_split_go(block, points, number, lowest(left), votes);
}

/* Let those that wait at a barrier go on if enough have come. */
void barrier_check(struct worker *worker, struct block *block, struct barrier *barrier) {
  bool enough = barrier->expected ? barrier->count >= barrier->expected
                                  : barrier->waiting && (barrier->waiting | block->ended) == block->all;
  if (enough) complete(worker, block, barrier);
}

/* All lanes of a warp have come. */
void barrier_arrived(struct worker *worker, struct block *block, struct barrier *barrier, unsigned warp, bool waits) {
  barrier->count += SG_WARP;
  if (waits) barrier->waiting |= 1u << warp;
  barrier_check(worker, block, barrier);
}

int32_t arrive_helper(struct sg_env *env, struct sg_frame *frame, uint32_t number, uint32_t expected, uint32_t mask,
                      uint32_t site) {
  struct worker *worker = worker_of(env);
  struct block *block = worker->block;
  uint32_t line = worker->launch->kernel->sites[site].line, bit = 1u << env->warp;
  if (!mask) return 0;
  int lane = (int)lowest(mask);
  if (!expected)
    return fail(worker, SG_UNDEFINED, line, lane, "barrier count 0 is not a positive multiple of the warp size");
  if (!block) return 0; /* nobody waits in such a kernel */
  struct barrier *barrier = barrier_join(worker, block, number, expected, line, lane);
  if (!barrier) return -1;
  uint32_t *gathered = &block->gathered[number][env->warp];
  uint32_t had = barrier->gathers & bit ? *gathered : 0;
  if (had & mask)
    return fail(worker, SG_UNDEFINED, line, (int)lowest(had & mask),
                "the thread arrives again at barrier %u before the rest of its warp has come", number);
  if (frame->live & ~(had | mask)) {
    *gathered = had | mask;
    barrier->gathers |= bit;
    block->gathering |= bit;
    return 0;
  }
  barrier->gathers &= ~bit;
  barrier_arrived(worker, block, barrier, env->warp, false);
  return 0;
}
