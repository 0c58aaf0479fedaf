/* Full barriers: loops of any number of warps, lanes and warps that leave early, reductions, and their price. */
#include "check.h"

struct registers {
  uint32_t round;
};

enum { POINTS = 3 };

static struct registers *saved(struct sg_frame *frame) { return (struct registers *)(void *)&frame->points[POINTS]; }

/* Each warp adds up what all warps wrote in the round before: wrong as soon as one runs ahead or lags behind. */
static int32_t rounds(struct sg_env *env, struct sg_frame *frame) {
  struct registers *registers = saved(frame);
  uint32_t *shared = (uint32_t *)(void *)env->shared, total = (uint32_t)param(env, 1);
  uint64_t *out = (uint64_t *)(uintptr_t)param(env, 0);
  if (frame->resume == 0) {
    registers->round = 0;
  } else {
    uint32_t sum = 0;
    take(frame, 1);
    for (uint32_t warp = 0; warp < env->warps; warp++) sum += shared[(registers->round & 1) * 32 + warp];
    out[env->ctaid[0] * env->warps + env->warp] += sum;
    registers->round++;
  }
  if (registers->round == total) {
    frame->live = 0;
    return SG_DONE;
  }
  shared[(registers->round & 1) * 32 + env->warp] = registers->round + env->warp;
  wait_at(frame, 1, frame->live, 0, 0);
  return SG_PARKED;
}

static const struct sg_point points[POINTS] = {{SG_SYNC, 10}, {SG_SYNC, 11}, {SG_SYNC, 12}};

static const struct sg_kernel rounds_kernel = {HEAD("rounds", SG_WAITS), .param_bytes = 16, .static_shared = 256,
                                               .frame_bytes = FRAME(POINTS, sizeof(struct registers)),
                                               .point_count = POINTS, .points = points, .run = (void *)rounds};

static void test_rounds(sg_pool *pool, uint32_t blocks, uint32_t threads, uint32_t total) {
  uint32_t warps = (threads + 31) / 32;
  uint64_t *out = calloc(blocks * warps, sizeof *out), expected = 0;
  uint64_t params[2] = {(uint64_t)(uintptr_t)out, total};
  struct test test = open_test(pool, &rounds_kernel, blocks, threads);
  test.launch.params = (const uint8_t *)params;
  test.launch.params_size = sizeof params;
  run(&test);
  for (uint32_t round = 0; round < total; round++) expected += warps * round + warps * (warps - 1) / 2;
  for (uint32_t i = 0; i < blocks * warps; i++) CHECK(out[i] == expected);
  close_test(&test);
  free(out);
}

/* Warp w leaves after w rounds, and its odd lanes one round before. */
static int32_t leaving(struct sg_env *env, struct sg_frame *frame) {
  struct registers *registers = saved(frame);
  uint32_t *out = (uint32_t *)(uintptr_t)param(env, 0);
  if (frame->resume == 0) registers->round = 0;
  else {
    CHECK(take(frame, 0) == frame->live);
    registers->round++;
  }
  __atomic_fetch_add(&out[registers->round], (uint32_t)__builtin_popcount(frame->live), __ATOMIC_RELAXED);
  if (registers->round + 1 >= env->warp) frame->live &= 0x55555555;
  if (registers->round >= env->warp) frame->live = 0;
  if (frame->live) wait_at(frame, 0, frame->live, 0, 0);
  return parked(frame);
}

static void test_leaving(sg_pool *pool) {
  struct sg_kernel kernel = rounds_kernel;
  uint32_t out[64] = {0};
  uint64_t params[2] = {(uint64_t)(uintptr_t)out, 0};
  kernel.run = (void *)leaving;
  struct test test = open_test(pool, &kernel, 1, 500);
  test.launch.params = (const uint8_t *)params;
  test.launch.params_size = sizeof params;
  run(&test);
  for (uint32_t round = 0; round < 16; round++) {
    uint32_t lanes = 0;
    for (uint32_t warp = round; warp < 16; warp++) lanes += warp > round || round == 0 ? 32 : 16;
    if (round) lanes = (15 - round) * 32 + 16;
    if (round == 0) lanes = 500;
    else lanes -= round < 15 ? 12 : 6; /* the last warp has 20 lanes, 10 of them even */
    CHECK(out[round] == lanes);
  }
  close_test(&test);
}

static const struct sg_point red_points[POINTS] = {{SG_RED_POPC, 20}, {SG_RED_AND, 21}, {SG_RED_OR, 22}};

/* popc of "lane < warp", then `and` and `or` of predicates that hold in all, some and no threads. */
static int32_t reducing(struct sg_env *env, struct sg_frame *frame) {
  uint32_t *out = (uint32_t *)(uintptr_t)param(env, 0) + 8 * env->warp, point = frame->resume;
  if (point) {
    take(frame, point - 1);
    out[point - 1] = frame->points[point - 1].result;
  }
  if (point == 3) {
    frame->live = 0;
    return SG_DONE;
  }
  uint32_t all_but_one = param(env, 1) || env->warp != 1 ? frame->live : frame->live & ~2u;
  uint32_t one = !param(env, 1) && env->warp == 2 ? 8 : 0;
  frame->points[point].predicate = point == 0 ? (1u << env->warp) - 1 : point == 1 ? all_but_one : one;
  wait_at(frame, point, frame->live, point, 0);
  return SG_PARKED;
}

static void test_reducing(sg_pool *pool) {
  struct sg_kernel kernel = rounds_kernel;
  kernel.run = (void *)reducing;
  kernel.points = red_points;
  for (uint64_t all = 0; all < 2; all++) {
    uint32_t out[4][8] = {{0}};
    uint64_t params[2] = {(uint64_t)(uintptr_t)out, all};
    struct test test = open_test(pool, &kernel, 1, 100);
    test.launch.params = (const uint8_t *)params;
    test.launch.params_size = sizeof params;
    run(&test);
    for (int warp = 0; warp < 4; warp++) {
      CHECK(out[warp][0] == 0 + 1 + 2 + 3);
      CHECK(out[warp][1] == all);
      CHECK(out[warp][2] == !all);
    }
    close_test(&test);
  }
}

static void measure_blocks(sg_pool *pool) {
  enum { BLOCKS = 50000 };
  uint64_t *out = calloc(BLOCKS * 8, sizeof *out), params[2] = {(uint64_t)(uintptr_t)out, 1};
  for (uint32_t warps = 1; warps <= 8; warps *= 8) {
    struct test test = open_test(pool, &rounds_kernel, BLOCKS, 32 * warps);
    test.launch.params = (const uint8_t *)params;
    test.launch.params_size = sizeof params;
    run(&test);
    run(&test);
    printf("%2u warps: %.0f ns for each block with one barrier\n", warps, (double)test.result.nanoseconds / BLOCKS);
    close_test(&test);
  }
  free(out);
}

static void measure(sg_pool *pool) {
  enum { ROUNDS = 200000 };
  for (uint32_t warps = 1; warps <= 32; warps *= 2) {
    uint64_t out[32] = {0}, params[2] = {(uint64_t)(uintptr_t)out, ROUNDS};
    struct test test = open_test(pool, &rounds_kernel, 1, 32 * warps);
    test.launch.params = (const uint8_t *)params;
    test.launch.params_size = sizeof params;
    run(&test);
    printf("%2u warps: %.1f ns per warp and barrier\n", warps, (double)test.result.nanoseconds / ROUNDS / warps);
    close_test(&test);
  }
}

int main(int count, char **arguments) {
  sg_pool *pool = sg_pool_create(2);
  static const uint32_t threads[] = {1, 32, 33, 64, 100, 256, 1000, 1024};
  if (count > 1 && strcmp(arguments[1], "measure") == 0) {
    measure(pool);
    measure_blocks(pool);
  } else {
    for (size_t i = 0; i < COUNT(threads); i++) test_rounds(pool, 1, threads[i], 20);
    test_rounds(pool, 300, 96, 7);
    test_rounds(pool, 3, 256, 0);
    test_leaving(pool);
    test_reducing(pool);
  }
  sg_pool_destroy(pool);
  return 0;
}
