/* The smaller helpers: clocks, isspacep, undefined behaviour, the workspace; and what a block finds at its start. */
#include "check.h"

static const struct sg_site sites[] = {{"ld.global.u64", 3, 8, 8, SG_GLOBAL, SG_READ, 0},
                                       {"brx.idx", 4, 0, 0, 0, 0, 0}};

static int32_t clocks(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  uint64_t clock = env->helpers->clock(env), timer = env->helpers->timer(env);
  for (int i = 0; i < 100; i++) {
    uint64_t next = env->helpers->clock(env);
    CHECK(next > clock && next - clock < 1000000000u);
    clock = next;
  }
  env->helpers->sleep(env, 4000000000u);
  CHECK(env->helpers->clock(env) - clock >= 4000000000u);
  CHECK(env->helpers->timer(env) - timer >= 4000000000u && env->helpers->timer(env) - timer < 60000000000u);
  CHECK(env->grid_id == 99 && env->dynamic_shared == 40 && env->shared_bytes == 104 && env->local_stride == 32);
  CHECK(env->globals[1] == 5678 && (uintptr_t)env->local % 64 == 0 && env->params[8] == 0);
  return SG_DONE;
}

static void test_clocks(sg_pool *pool) {
  static const char *const names[] = {"x", "y"};
  const uint64_t globals[2] = {1234, 5678};
  const struct sg_kernel kernel = {HEAD("clocks", 0), .static_shared = 60, .dynamic_base = 64, .local_bytes = 17,
                                   .global_count = 2, .globals = names, .run = (void *)clocks};
  struct test test = open_test(pool, &kernel, 1, 32);
  test.launch.grid_id = 99;
  test.launch.dynamic_shared = 40;
  test.launch.globals = globals;
  test.launch.global_count = 2;
  run(&test);
  close_test(&test);
}

static int32_t spaces(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  uint64_t at[32];
  uint32_t constant = 0xF0000000;
  for (uint64_t lane = 0; lane < 32; lane++) at[lane] = 4096 + 8 * lane;
  CHECK(env->helpers->spaces(env, at, 0xFFFF00FF, &constant) == 0);
  CHECK(constant == 0x00FF0000); /* 128 to 191 bytes from the start */
  return SG_DONE;
}

static void test_spaces(sg_pool *pool) {
  const struct sg_kernel kernel = {HEAD("spaces", 0), .run = (void *)spaces};
  struct sg_allocation table[] = {{4096, 128, 0, 0}, {4096 + 128, 64, SG_CONSTANT, 0}, {4096 + 192, 64, 0, 0}};
  struct test test = open_test(pool, &kernel, 1, 32);
  test.launch.allocations = table;
  test.launch.allocation_count = COUNT(table);
  run(&test);
  close_test(&test);
}

static int32_t undefined(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  return env->helpers->undefined(env, 0x100, 1, (uint32_t)param(env, 0)) ? SG_STOPPED : SG_DONE;
}

static void test_undefined(sg_pool *pool) {
  static const char *const texts[] = {"the thread is not in its own member mask",
                                      "the index is past the end of the list of targets",
                                      "not all threads of the warp take part",
                                      "the copy reads more bytes than it writes",
                                      "the address is no function of the module",
                                      "threads that arrive together name different barriers or counts",
                                      "other threads of the member mask never come"};
  const struct sg_kernel kernel = {HEAD("undefined", 0), .param_bytes = 8, .sites = sites, .site_count = 2,
                                   .run = (void *)undefined};
  struct test test = open_test(pool, &kernel, 1, 32);
  for (uint64_t code = 0; code < COUNT(texts); code++) {
    char text[200];
    snprintf(text, sizeof text, "kernel undefined, line 4: brx.idx: %s (block 0,0,0 thread 8,0,0)", texts[code]);
    test.launch.params = (const uint8_t *)&code;
    test.launch.params_size = 8;
    run_to(&test, SG_UNDEFINED, text);
  }
  close_test(&test);
}

/* The launch's own workspace is memory like any other, zero at the start, and not in the log. */
static int32_t workspace(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  uint64_t at[32] = {env->workspace + 56};
  CHECK(env->workspace % 64 == 0 && *(uint64_t *)(uintptr_t)at[0] == 0);
  if (env->helpers->resolve(env, at, 1, 0, NULL)) return SG_STOPPED;
  env->helpers->log(env, at, 1, 0);
  *(uint64_t *)(uintptr_t)at[0] = 1;
  at[0] = env->workspace + 64;
  return env->helpers->resolve(env, at, 1, 0, NULL) ? SG_STOPPED : SG_DONE;
}

static void test_workspace(sg_pool *pool) {
  const struct sg_kernel kernel = {HEAD("workspace", SG_LOGS), .sites = sites, .site_count = 2,
                                   .run = (void *)workspace};
  struct test test = open_test(pool, &kernel, 1, 32);
  test.launch.cooperative = 1;
  for (int i = 0; i < 2; i++) {
    run_to(&test, SG_FAULT, "outside every allocation");
    CHECK(test.result.workspace && test.result.read.count == 0);
  }
  close_test(&test);
}

enum { LOCAL = 48, SHARED = 1000 };

/* Registers behind the points are free to hold anything; all else is clean, whichever block was there before. */
static int32_t clean(struct sg_env *env, struct sg_frame *frame) {
  uint32_t expected = env->warp == 2 ? 0xFFF : ~0u;
  CHECK(frame->live == expected && frame->resume == 0 && !frame->points[0].waiting && !frame->points[0].go);
  for (int i = 0; i < 32 * LOCAL; i++) CHECK(env->local[i] == 0);
  CHECK((uintptr_t)frame % 64 == 0 && (uintptr_t)env->local % 16 == 0);
  for (int i = 4 * (int)env->warp; i < SHARED / 2; i++) CHECK(env->shared[i] == 0);
  CHECK(env->ctaid[0] < 5 && env->ctaid[1] < 7 && env->ctaid[2] < 9);
  __atomic_fetch_add((uint32_t *)(uintptr_t)param(env, 0), 1 + env->ctaid[0] + 5 * env->ctaid[1] + 35 * env->ctaid[2],
                     __ATOMIC_RELAXED);
  memset(env->local, 0xEE, 32 * LOCAL);
  memset(env->shared + SHARED / 2, 0xEE, SHARED / 2);
  memset(frame->points, 0xEE, sizeof frame->points[0] + 100);
  frame->live = 0;
  return SG_DONE;
}

static void test_clean_start(sg_pool *pool) {
  static const struct sg_point points[] = {{SG_SYNC, 1}};
  const struct sg_kernel kernel = {HEAD("clean", SG_WAITS), .param_bytes = 8, .static_shared = SHARED,
                                   .local_bytes = LOCAL, .frame_bytes = FRAME(1, 100), .point_count = 1,
                                   .points = points, .run = (void *)clean};
  uint32_t count = 0;
  uint64_t params = (uint64_t)(uintptr_t)&count;
  struct test test = open_test(pool, &kernel, 5, 76);
  test.launch.grid[1] = 7;
  test.launch.grid[2] = 9;
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  run(&test);
  CHECK(count == 3 * (315 * 316 / 2));
  close_test(&test);
}

/* A launch starts with its own caches, and with zeros behind its parameters, whatever the last one left. */
static int32_t leftovers(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  CHECK(env->caches[0].limit == 0 && env->caches[1].limit == 0 && env->caches[1].extent == 8);
  env->caches[0].limit = env->caches[1].extent = 1;
  for (int i = 4; i < 64; i++) CHECK(env->params[i] == 0 || env->params[0] == 0xFF);
  return SG_DONE;
}

static void test_leftovers(sg_pool *pool) {
  uint8_t params[40];
  static const struct sg_cache caches[] = {{.extent = 4, .shift = 2}, {.extent = 8, .origin = SG_PARAMETER, .number = 8}};
  struct sg_kernel kernel = {HEAD("leftovers", 0), .param_bytes = 40, .cache_count = 2, .caches = caches,
                             .run = (void *)leftovers};
  memset(params, 0xFF, sizeof params);
  struct test test = open_test(pool, &kernel, 1, 32);
  test.launch.params = params;
  test.launch.params_size = 40;
  run(&test);
  kernel.param_bytes = test.launch.params_size = 4;
  params[0] = 0;
  run(&test);
  close_test(&test);
}

int main(void) {
  sg_pool *pool = sg_pool_create(2);
  CHECK(sg_pool_workers(pool) == 2);
  test_clocks(pool);
  test_spaces(pool);
  test_undefined(pool);
  test_workspace(pool);
  test_leftovers(pool);
  test_clean_start(pool);
  sg_pool_destroy(pool);
  return 0;
}
