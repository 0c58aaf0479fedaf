/* What a warp does next, after its code has returned: it has ended, waits at a barrier, or gets another turn. */
#include "internal.h"

#include <stdio.h>

/* All lanes of a warp that have not ended wait at one point. */
static bool settle_whole(struct worker *worker, struct block *block, unsigned warp, uint32_t point) {
  const struct sg_point *at = &worker->launch->kernel->points[point];
  const struct sg_wait *wait = &frame_of(block, warp)->points[point];
  block->place[warp] = point;
  block->guess = point;
  if (at->kind == SG_YIELD) {
    block->yields |= 1u << warp;
    return true;
  }
  struct barrier *barrier =
      barrier_join(worker, block, wait->barrier, wait->expected, at->line, (int)lowest(wait->waiting));
  if (barrier) barrier_arrived(worker, block, barrier, warp, true);
  return barrier != NULL;
}

/* Count a warp's arrival at those barriers to which all its lanes have come. `lanes`: those that wait, by barrier. */
static void gather(struct worker *worker, struct block *block, unsigned warp, const uint32_t *lanes) {
  uint32_t bit = 1u << warp, live = frame_of(block, warp)->live;
  block->gathering &= ~bit;
  for (uint32_t left = block->open; left; left &= left - 1) {
    unsigned number = lowest(left);
    struct barrier *barrier = &block->barriers[number];
    uint32_t passed = barrier->gathers & bit ? block->gathered[number][warp] : 0, waiting = lanes[number];
    while ((passed | waiting) && !(live & ~(passed | waiting))) {
      /* Lanes that have passed and are back at the barrier wait for its next completion. */
      uint32_t counted = waiting & ~passed;
      barrier->gathers &= ~bit;
      if (counted) {
        block->counted[number][warp] = counted;
        barrier->split |= bit;
      }
      barrier->used = 1;
      block->open |= 1u << number;
      barrier_arrived(worker, block, barrier, warp, counted != 0);
      waiting &= ~counted;
      passed = 0;
    }
    if (passed) block->gathering |= bit;
  }
}

/* The lanes stand at several points, or some of them have passed a bar.arrive without the others. */
static bool settle_mixed(struct worker *worker, struct block *block, unsigned warp) {
  struct sg_frame *frame = frame_of(block, warp);
  const struct sg_point *points = worker->launch->kernel->points;
  const uint32_t *met = block->met + (size_t)warp * block->point_count;
  uint32_t lanes[BARRIERS] = {0}, bit = 1u << warp;
  bool meets = false, changed = block->met_live[warp] != frame->live;
  block->mixed |= bit;
  for (uint32_t point = 0; point < block->point_count; point++) {
    const struct sg_wait *wait = &frame->points[point];
    if (wait->go) block->ready |= bit;
    if (points[point].kind == SG_MEET) {
      meets = meets || wait->waiting;
      changed = changed || wait->waiting != met[point];
    } else if (wait->waiting && points[point].kind == SG_YIELD) {
      block->yields |= bit;
    } else if (wait->waiting) {
      struct barrier *barrier = barrier_join(worker, block, wait->barrier, wait->expected, points[point].line,
                                             (int)lowest(wait->waiting));
      if (!barrier) return false;
      uint32_t counted = barrier->waiting & bit ? block->counted[wait->barrier][warp] : 0;
      lanes[wait->barrier] |= wait->waiting & ~counted;
    }
  }
  if (meets && changed) block->yields |= bit;
  gather(worker, block, warp, lanes);
  return true;
}

/* A warp without live lanes: barriers may have waited for it alone. */
static void settle_end(struct worker *worker, struct block *block, unsigned warp) {
  static const uint32_t none[BARRIERS];
  frame_of(block, warp)->live = 0;
  block->ended |= 1u << warp;
  if (block->gathering >> warp & 1) gather(worker, block, warp, none);
  for (uint32_t left = block->open; left; left &= left - 1)
    barrier_check(worker, block, &block->barriers[lowest(left)]);
}

bool settle(struct worker *worker, struct block *block, unsigned warp, bool done) {
  const struct sg_frame *frame = frame_of(block, warp);
  uint32_t live = frame->live, point = block->guess, bit = 1u << warp;
  block->mixed &= ~bit;
  if (done || !live) {
    settle_end(worker, block, warp);
    return true;
  }
  if (!(block->gathering & bit)) {
    for (uint32_t i = 0; i < block->point_count; i++) {
      if (frame->points[point].waiting == live && worker->launch->kernel->points[point].kind != SG_MEET)
        return settle_whole(worker, block, warp, point);
      if (++point == block->point_count) point = 0;
    }
  }
  return settle_mixed(worker, block, warp);
}

/* Let the lanes of a warp go on that have yielded or may have met, and find the lowest point that has any. False: none
 * can go on. */
bool prepare(struct block *block, unsigned warp, const struct sg_point *points) {
  struct sg_frame *frame = frame_of(block, warp);
  uint32_t bit = 1u << warp, *met = block->met + (size_t)warp * block->point_count;
  bool mixed = block->mixed & bit;
  uint32_t first = mixed ? 0 : block->place[warp], last = mixed ? block->point_count : first + 1;
  frame->resume = 0;
  for (uint32_t point = first; point < last; point++) {
    struct sg_wait *wait = &frame->points[point];
    if (points[point].kind == SG_MEET) met[point] = wait->waiting;
    if (points[point].kind == SG_MEET || points[point].kind == SG_YIELD) {
      wait->go |= wait->waiting;
      wait->waiting = 0;
    }
    if (wait->go && !frame->resume) frame->resume = point + 1;
  }
  block->met_live[warp] = frame->live;
  block->yields &= ~bit;
  return frame->resume != 0;
}

/* Add what a warp waits for to a text; returns its new length. */
static size_t describe(const struct worker *worker, const struct block *block, unsigned warp, char *text, size_t size,
                       size_t used, uint32_t *line) {
  const struct sg_point *points = worker->launch->kernel->points;
  const struct sg_frame *frame = frame_of(block, warp);
  for (uint32_t point = 0; point < block->point_count && used < size; point++) {
    const struct sg_wait *wait = &frame->points[point];
    if (!wait->waiting) continue;
    if (!*line) *line = points[point].line;
    int more = snprintf(text + used, size - used, "; warp %u lanes %#010x at line %u", warp, wait->waiting,
                        points[point].line);
    used += more > 0 ? (size_t)more : 0;
    if (used >= size) break;
    if (is_barrier(points[point].kind) && wait->expected)
      more = snprintf(text + used, size - used, " (barrier %u, %u of %u threads came)", wait->barrier,
                      block->barriers[wait->barrier].count, wait->expected);
    else if (is_barrier(points[point].kind))
      more = snprintf(text + used, size - used, " (barrier %u)", wait->barrier);
    else
      more = snprintf(text + used, size - used, " (for other lanes)");
    used += more > 0 ? (size_t)more : 0;
  }
  return used;
}

int fail_deadlock(struct worker *worker, struct block *block) {
  char text[600] = "";
  size_t used = 0;
  uint32_t line = 0;
  for (uint32_t left = block->all & ~block->ended; left && used < sizeof text; left &= left - 1)
    used = describe(worker, block, lowest(left), text, sizeof text, used, &line);
  return fail(worker, SG_DEADLOCK, line, -1, "no thread of block %u,%u,%u can go on%s", block->ctaid[0],
              block->ctaid[1], block->ctaid[2], text);
}
