/* Blocks that wait for each other: chains, a barrier of the whole grid, memory limits; and threads of one block that
 * spin on shared memory. */
#include "check.h"

struct registers {
  uint32_t step;
};

enum { POINTS = 2 };

static const struct sg_point points[POINTS] = {{SG_YIELD, 50}, {SG_SYNC, 51}};

static struct registers *saved(struct sg_frame *frame) { return (struct registers *)(void *)&frame->points[POINTS]; }

static struct sg_kernel kernel_of(int32_t (*code)(struct sg_env *, struct sg_frame *)) {
  return (struct sg_kernel){HEAD("yields", SG_WAITS), .param_bytes = 8, .static_shared = 64,
                            .frame_bytes = FRAME(POINTS, sizeof(struct registers)), .point_count = POINTS,
                            .points = points, .run = (void *)code};
}

static uint64_t load(const uint64_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }

static int32_t spin(struct sg_frame *frame) {
  wait_at(frame, 0, frame->live, 0, 0);
  return SG_PARKED;
}

static int32_t end(struct sg_frame *frame) {
  frame->live = 0;
  return SG_DONE;
}

/* Block n waits until flag n - 1 is set (`out` has one more at its start), then sets its own. */
static int32_t chain(struct sg_env *env, struct sg_frame *frame) {
  uint64_t *out = (uint64_t *)(uintptr_t)param(env, 0);
  take(frame, 0);
  uint64_t before = load(&out[env->ctaid[0]]);
  if (!before) return spin(frame);
  if (env->warp == 0) __atomic_store_n(&out[env->ctaid[0] + 1], before + 1, __ATOMIC_RELEASE);
  return end(frame);
}

/* The same against the order in which blocks start: block n waits for n + 1. */
static int32_t backward(struct sg_env *env, struct sg_frame *frame) {
  uint64_t *out = (uint64_t *)(uintptr_t)param(env, 0);
  uint32_t number = env->ctaid[0];
  take(frame, 0);
  uint64_t after = number + 1 == env->grid[0] ? 1 : load(&out[number + 1]);
  if (!after) return spin(frame);
  __atomic_store_n(&out[number], after + 1, __ATOMIC_RELEASE);
  return end(frame);
}

/* Three barriers of the whole grid, counted at out[0], each after one of the block. */
static int32_t together(struct sg_env *env, struct sg_frame *frame) {
  uint64_t *count = env->workspace ? (uint64_t *)(uintptr_t)env->workspace : (uint64_t *)(uintptr_t)param(env, 0);
  struct registers *registers = saved(frame);
  if (frame->resume == 0) {
    registers->step = 0;
    CHECK(*(uint32_t *)(void *)env->shared == 0 || env->warp);
  }
  if (frame->resume == 2) {
    take(frame, 1);
    if (env->warp == 0) {
      __atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
      *(uint32_t *)(void *)env->shared = env->ctaid[0] + 1;
    }
  }
  if (frame->resume) {
    take(frame, 0);
    if (load(count) < (registers->step + 1) * (uint64_t)env->grid[0]) return spin(frame);
    CHECK(*(uint32_t *)(void *)env->shared == env->ctaid[0] + 1);
    if (++registers->step == 3) return end(frame);
  }
  wait_at(frame, 1, frame->live, 0, 0);
  return SG_PARKED;
}

/* The last warp sets a flag in shared memory that the others wait for, each lane by itself. */
static int32_t inside(struct sg_env *env, struct sg_frame *frame) {
  uint32_t *shared = (uint32_t *)(void *)env->shared, *out = (uint32_t *)(uintptr_t)param(env, 0);
  uint32_t lanes = frame->resume ? take(frame, 0) : frame->live;
  if (env->warp + 1 == env->warps) {
    shared[0]++;
    if (shared[0] == 40) return end(frame);
    return spin(frame);
  }
  uint32_t through = shared[0] >= 32 ? lanes : lanes & ((1u << shared[0]) - 1);
  frame->live &= ~through;
  out[env->warp] += (uint32_t)__builtin_popcount(through);
  if (lanes & ~through) wait_at(frame, 0, lanes & ~through, 0, 0);
  return parked(frame);
}

static int32_t forever(struct sg_env *env, struct sg_frame *frame) {
  (void)env;
  take(frame, 0);
  return spin(frame);
}

static void run_with(sg_pool *pool, int32_t (*code)(struct sg_env *, struct sg_frame *), uint32_t blocks,
                     uint32_t threads, void *out, uint32_t cooperative, uint64_t limit) {
  struct sg_kernel kernel = kernel_of(code);
  uint64_t params = (uint64_t)(uintptr_t)out;
  struct test test = open_test(pool, &kernel, blocks, threads);
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  test.launch.cooperative = cooperative;
  test.launch.memory_limit = limit;
  run(&test);
  close_test(&test);
}

static void measure(sg_pool *pool) {
  for (uint32_t blocks = 4; blocks <= 1024; blocks *= 4) {
    uint64_t count = 0, start = time_now();
    run_with(pool, together, blocks, 128, &count, 1, 0);
    printf("grid barrier of %4u blocks: %.1f us each\n", blocks, (double)(time_now() - start) / 3000);
  }
}

int main(int count, char **arguments) {
  enum { BLOCKS = 100 };
  if (count > 1 && strcmp(arguments[1], "measure") == 0) {
    sg_pool *pool = sg_pool_create(0);
    measure(pool);
    sg_pool_destroy(pool);
    return 0;
  }
  for (unsigned workers = 1; workers <= 3; workers += 2) {
    sg_pool *pool = sg_pool_create(workers);
    uint64_t out[BLOCKS + 1] = {1}, arrived = 0;
    uint32_t passed[3] = {0};
    run_with(pool, chain, BLOCKS, 64, out, 0, 0);
    for (uint64_t i = 0; i <= BLOCKS; i++) CHECK(out[i] == i + 1);
    memset(out, 0, sizeof out);
    run_with(pool, chain, BLOCKS, 64, (out[0] = 1, out), 0, 1);
    CHECK(out[BLOCKS] == BLOCKS + 1);
    memset(out, 0, sizeof out);
    run_with(pool, backward, BLOCKS, 32, out, 0, 0);
    CHECK(out[0] == BLOCKS + 1);
    run_with(pool, together, 50, 100, &arrived, 0, 0);
    CHECK(arrived == 150);
    run_with(pool, together, 50, 100, &arrived, 1, 0);
    run_with(pool, inside, 1, 128, passed, 0, 0);
    for (int i = 0; i < 3; i++) CHECK(passed[i] == 32);
    struct sg_kernel kernel = kernel_of(together), endless = kernel_of(forever);
    uint64_t params = (uint64_t)(uintptr_t)&arrived;
    struct test test = open_test(pool, &kernel, 1000, 32);
    test.launch.params = (const uint8_t *)&params;
    test.launch.params_size = 8;
    test.launch.cooperative = 1;
    test.launch.memory_limit = 100000;
    run_to(&test, SG_BAD_LAUNCH, "1000 blocks cannot be resident at once");
    test.launch.cooperative = 0;
    test.launch.deadline_ms = 60;
    arrived = 0;
    run_to(&test, SG_DEADLINE, "of them wait for others and fill the memory limit");
    close_test(&test);
    test = open_test(pool, &endless, 3, 64);
    test.launch.params = (const uint8_t *)&params;
    test.launch.params_size = 8;
    test.launch.deadline_ms = 30;
    run_to(&test, SG_DEADLINE, "3 of 3 blocks had started, 3 of them wait for others");
    CHECK(test.result.nanoseconds >= 30000000 && test.result.nanoseconds < 5000000000u);
    close_test(&test);
    sg_pool_destroy(pool);
  }
  return 0;
}
