/* Barriers with numbers and counts, bar.arrive, lanes of one warp at several points, deadlocks and errors. */
#include "check.h"

struct registers {
  uint32_t step;
  uint32_t seen;
};

enum { POINTS = 4 };

static const struct sg_point points[POINTS] = {{SG_SYNC, 30}, {SG_SYNC, 31}, {SG_RED_POPC, 32}, {SG_MEET, 33}};
static const struct sg_site sites[] = {{"bar.arrive", 40, 0, 0, 0, 0, 0}};

static struct registers *saved(struct sg_frame *frame) { return (struct registers *)(void *)&frame->points[POINTS]; }

static struct sg_kernel kernel_of(int32_t (*code)(struct sg_env *, struct sg_frame *)) {
  return (struct sg_kernel){HEAD("named", SG_WAITS), .param_bytes = 8, .static_shared = 4096,
                            .site_count = COUNT(sites), .point_count = POINTS,
                            .frame_bytes = FRAME(POINTS, sizeof(struct registers)),
                            .points = points, .sites = sites, .run = (void *)code};
}

static int32_t end(struct sg_frame *frame) {
  frame->live = 0;
  return SG_DONE;
}

/* Warp 0 fills a buffer, warp 1 empties it, with one barrier for each direction; both arrive without waiting. */
static int32_t producer_consumer(struct sg_env *env, struct sg_frame *frame) {
  enum { TIMES = 5 };
  struct registers *registers = saved(frame);
  uint32_t *buffer = (uint32_t *)(void *)env->shared, *out = (uint32_t *)(uintptr_t)param(env, 0);
  if (env->warp > 1) return end(frame);
  if (frame->resume == 0) registers->step = 0;
  if (env->warp == 0) {
    if (frame->resume) take(frame, 0);
    *buffer = 1000 + registers->step;
    if (env->helpers->arrive(env, frame, 1, 64, frame->live, 0)) return SG_STOPPED;
    if (++registers->step == TIMES) return end(frame);
    wait_at(frame, 0, frame->live, 2, 64);
    return SG_PARKED;
  }
  if (frame->resume) {
    take(frame, 1);
    out[registers->step++] = *buffer;
    if (registers->step == TIMES) return end(frame);
    if (env->helpers->arrive(env, frame, 2, 64, frame->live, 0)) return SG_STOPPED;
  }
  wait_at(frame, 1, frame->live, 1, 64);
  return SG_PARKED;
}

/* Odd lanes come to point 0 and even ones to point 2 (which counts lanes below 10), at the same barrier; the lower half
 * of each first goes through SG_MEET with the other lanes of its kind. */
static int32_t divergent(struct sg_env *env, struct sg_frame *frame) {
  static const uint32_t odd = 0xAAAAAAAA;
  uint32_t *out = (uint32_t *)(uintptr_t)param(env, 0) + 32 * env->warp;
  if (frame->resume == 0) {
    wait_at(frame, 0, frame->live & odd, 7, 0);
    wait_at(frame, 3, frame->live & ~odd, 0, 0);
    return SG_PARKED;
  }
  uint32_t met = take(frame, 3), left = take(frame, 0), right = take(frame, 2);
  if (met) {
    wait_at(frame, 2, met, 7, 0);
    frame->points[2].predicate |= met & 0x3FF;
  }
  for (unsigned lane = 0; lane < 32; lane++) {
    if (left >> lane & 1) out[lane] += 1;
    if (right >> lane & 1) out[lane] += 100 * frame->points[2].result;
  }
  frame->live &= ~(left | right);
  return parked(frame);
}

static void test_divergent(sg_pool *pool) {
  struct sg_kernel kernel = kernel_of(divergent);
  uint32_t out[96] = {0};
  uint64_t params = (uint64_t)(uintptr_t)out;
  struct test test = open_test(pool, &kernel, 1, 70);
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  run(&test);
  for (uint32_t i = 0; i < 96; i++) CHECK(out[i] == (i >= 70 ? 0 : i & 1 ? 1 : 100 * (5 + 5 + 3)));
  close_test(&test);
}

static void test_producer(sg_pool *pool) {
  struct sg_kernel kernel = kernel_of(producer_consumer);
  for (uint32_t threads = 64; threads <= 96; threads += 32) {
    uint32_t out[8] = {0};
    uint64_t params = (uint64_t)(uintptr_t)out;
    struct test test = open_test(pool, &kernel, 1, threads);
    test.launch.params = (const uint8_t *)&params;
    test.launch.params_size = 8;
    run(&test);
    for (uint32_t i = 0; i < 5; i++) CHECK(out[i] == 1000 + i);
    close_test(&test);
  }
}

/* Two arrivals of one warp are two arrivals: the count of 96 is reached by warp 0 twice and warp 1. */
static int32_t twice(struct sg_env *env, struct sg_frame *frame) {
  if (env->warp == 0) {
    for (int i = 0; i < 2; i++)
      if (env->helpers->arrive(env, frame, 1, 96, frame->live, 0)) return SG_STOPPED;
    return end(frame);
  }
  if (frame->resume) return end(frame);
  wait_at(frame, 0, frame->live, 1, 96);
  return SG_PARKED;
}

/* What a kernel that must fail does at its start; `what` is its first parameter. */
static int32_t failing(struct sg_env *env, struct sg_frame *frame) {
  uint32_t first = env->warp == 0;
  switch (param(env, 0)) {
    case 0: wait_at(frame, 0, frame->live, 16, 0); break;
    case 1: wait_at(frame, 0, frame->live, 0, 33); break;
    case 2: wait_at(frame, 0, frame->live, 0, 96); break;
    case 3: wait_at(frame, 0, frame->live, 0, first ? 64 : 0); break;
    case 4: wait_at(frame, 0, frame->live, first, 0); break;
    case 5: return env->helpers->arrive(env, frame, 0, 0, frame->live, 0) ? SG_STOPPED : end(frame);
    case 6:
      for (int i = 0; i < 2; i++)
        if (env->helpers->arrive(env, frame, 0, 64, 0xF0, 0)) return SG_STOPPED;
      break;
    case 7: wait_at(frame, 0, frame->live & 0xFF, 3, 0); wait_at(frame, 3, frame->live & ~0xFFu, 0, 0); break;
    case 8: return env->helpers->undefined(env, 4, 0, SG_BARRIER_DIFFERS) ? SG_STOPPED : end(frame);
    default: break;
  }
  if (frame->resume == 4) wait_at(frame, 3, take(frame, 3), 0, 0);
  return SG_PARKED;
}

static void test_failing(sg_pool *pool) {
  static const struct { int status; const char *text; } expected[] = {
      {SG_UNDEFINED, "kernel named, line 30: barrier 16 does not exist (0 to 15 do) (block 0,0,0 thread 0,0,0)"},
      {SG_UNDEFINED, "barrier count 33 is not a positive multiple of the warp size"},
      {SG_DEADLOCK, "line 30: no thread of block 0,0,0 can go on; warp 0 lanes 0xffffffff at line 30 (barrier 0, 64 of "
                    "96 threads came); warp 1 lanes 0xffffffff at line 30 (barrier 0, 64 of 96 threads came)"},
      {SG_UNDEFINED, "line 30: barrier 0 expects 0 threads here and 64 elsewhere (0: all) (block 0,0,0 thread 32,0,0)"},
      {SG_DEADLOCK, "warp 0 lanes 0xffffffff at line 30 (barrier 1); warp 1 lanes 0xffffffff at line 30 (barrier 0)"},
      {SG_UNDEFINED, "line 40: barrier count 0 is not a positive multiple"},
      {SG_UNDEFINED, "arrives again at barrier 0 before the rest of its warp has come (block 0,0,0 thread 4,0,0)"},
      {SG_DEADLOCK, "warp 0 lanes 0x000000ff at line 30 (barrier 3); warp 0 lanes 0xffffff00 at line 33 (for other"},
      {SG_UNDEFINED, "bar.arrive: threads that arrive together name different barriers or counts (block 0,0,0 thread"},
  };
  struct sg_kernel kernel = kernel_of(failing);
  for (uint64_t what = 0; what < COUNT(expected); what++) {
    struct test test = open_test(pool, &kernel, 1, 64);
    test.launch.params = (const uint8_t *)&what;
    test.launch.params_size = 8;
    run_to(&test, expected[what].status, expected[what].text);
    close_test(&test);
  }
}

/* Warps 2 and 3 share a barrier with a count, as do 0 and 1 under another number; all use barrier 0 at the end. */
static int32_t groups(struct sg_env *env, struct sg_frame *frame) {
  struct registers *registers = saved(frame);
  uint32_t *sums = (uint32_t *)(void *)env->shared, *out = (uint32_t *)(uintptr_t)param(env, 0), group = env->warp / 2;
  uint32_t rounds = group ? 3 : 11;
  if (frame->resume == 0) registers->step = 0;
  if (frame->resume == 2) {
    take(frame, 1);
    out[env->warp] = 100 * sums[0] + sums[1];
    return end(frame);
  }
  if (frame->resume == 1) {
    take(frame, 0);
    if (registers->step++ % 2 == 0) CHECK(sums[group] == registers->step + 1);
  }
  if (registers->step < 2 * rounds) {
    if (registers->step % 2 == 0) sums[group]++;
    wait_at(frame, 0, frame->live, 4 + group, 64);
    return SG_PARKED;
  }
  wait_at(frame, 1, frame->live, 0, 128);
  return SG_PARKED;
}

static void test_groups(sg_pool *pool) {
  struct sg_kernel kernel = kernel_of(groups);
  uint32_t out[4] = {0};
  uint64_t params = (uint64_t)(uintptr_t)out;
  struct test test = open_test(pool, &kernel, 1, 128);
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  run(&test);
  for (int i = 0; i < 4; i++) CHECK(out[i] == 2206);
  close_test(&test);
}

int main(void) {
  sg_pool *pool = sg_pool_create(2);
  uint64_t nothing = 0;
  test_producer(pool);
  test_divergent(pool);
  test_groups(pool);
  struct sg_kernel kernel = kernel_of(twice);
  struct test test = open_test(pool, &kernel, 1, 64);
  test.launch.params = (const uint8_t *)&nothing;
  test.launch.params_size = 8;
  run(&test);
  close_test(&test);
  test_failing(pool);
  sg_pool_destroy(pool);
  return 0;
}
