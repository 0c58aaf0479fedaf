/* Lanes that go their own ways to one barrier: each comes to one of three points after a number of turns of its own, or
 * ends. None may pass before all have come or ended. */
#include "check.h"

enum { YIELD, MEET, FIRST_SYNC, SYNCS = 3, POINTS = FIRST_SYNC + SYNCS, ROUNDS = 12 };

static const struct sg_point points[POINTS] = {
    {SG_YIELD, 1}, {SG_MEET, 2}, {SG_SYNC, 3}, {SG_RED_POPC, 4}, {SG_SYNC, 5}};

struct registers {
  uint32_t random;
  uint8_t round[32];
  uint8_t delay[32];
};

/* In shared memory: lanes that came to the barrier, those of them that said yes at the point that counts, and
 * those that ended. */
struct counts {
  uint32_t came[ROUNDS + 1];
  uint32_t voters[ROUNDS + 1];
  uint32_t ended[ROUNDS + 1];
};

static uint32_t next(struct registers *registers) {
  registers->random = registers->random * 1664525 + 1013904223;
  return registers->random >> 16;
}

/* All threads have come to a round's barrier or ended before it. */
static int complete(const struct sg_env *env, const struct counts *counts, uint32_t round) {
  uint32_t total = counts->came[round];
  for (uint32_t r = 0; r <= round; r++) total += counts->ended[r];
  return total == env->threads;
}

/* A lane at the start of a round, or after a turn of waiting. */
static void go_on(struct sg_frame *frame, struct registers *registers, struct counts *counts, unsigned lane) {
  uint32_t bit = 1u << lane, round = registers->round[lane];
  if (registers->delay[lane]) {
    registers->delay[lane]--;
    wait_at(frame, YIELD, bit, 0, 0);
    return;
  }
  if (round == ROUNDS || next(registers) % 40 == 0) {
    counts->ended[round]++;
    frame->live &= ~bit;
    return;
  }
  uint32_t point = FIRST_SYNC + next(registers) % SYNCS;
  counts->came[round]++;
  if (points[point].kind == SG_RED_POPC) {
    uint32_t vote = next(registers) % 2;
    counts->voters[round] += vote;
    frame->points[point].predicate |= vote << lane;
  }
  wait_at(frame, point, bit, 6, 0);
}

static int32_t wander(struct sg_env *env, struct sg_frame *frame) {
  struct registers *registers = (struct registers *)(void *)&frame->points[POINTS];
  struct counts *counts = (struct counts *)(void *)env->shared;
  uint32_t fresh = 0;
  if (frame->resume == 0) {
    memset(registers, 0, sizeof *registers);
    registers->random = (uint32_t)param(env, 0) + 77 * env->ctaid[0] + 1001 * env->warp;
    fresh = frame->live;
  }
  uint32_t alone = frame->resume && next(registers) % 4 == 0; /* only the lanes of one point go on in this call */
  uint32_t turned = alone && frame->resume != YIELD + 1 ? 0 : take(frame, YIELD), seen = 0;
  for (unsigned point = FIRST_SYNC; point < POINTS; point++) {
    uint32_t lanes = alone && frame->resume != point + 1 ? 0 : take(frame, point);
    seen |= lanes;
    for (unsigned lane = 0; lane < 32; lane++) {
      if (!(lanes >> lane & 1)) continue;
      CHECK(complete(env, counts, registers->round[lane]));
      if (points[point].kind == SG_RED_POPC)
        CHECK(frame->points[point].result == counts->voters[registers->round[lane]]);
      registers->round[lane]++;
    }
  }
  CHECK(frame->resume == 0 || turned || seen);
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!((fresh | seen | turned) >> lane & 1)) continue;
    if (!(turned >> lane & 1)) registers->delay[lane] = (uint8_t)(next(registers) % 3 ? 0 : next(registers) % 4);
    go_on(frame, registers, counts, lane);
  }
  return parked(frame);
}

static const struct sg_kernel kernel = {HEAD("wander", SG_WAITS), .param_bytes = 8,
                                        .static_shared = sizeof(struct counts),
                                        .frame_bytes = FRAME(POINTS, sizeof(struct registers)),
                                        .point_count = POINTS, .points = points, .run = (void *)wander};

int main(void) {
  static const uint32_t threads[] = {1, 5, 32, 40, 64, 200, 1024};
  sg_pool *pool = sg_pool_create(2);
  for (size_t i = 0; i < COUNT(threads); i++) {
    struct test test = open_test(pool, &kernel, 20, threads[i]);
    for (uint64_t seed = 0; seed < 10; seed++) {
      test.launch.params = (const uint8_t *)&seed;
      test.launch.params_size = 8;
      run(&test);
    }
    close_test(&test);
  }
  sg_pool_destroy(pool);
  return 0;
}
