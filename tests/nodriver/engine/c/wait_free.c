/* Kernels without wait points: all blocks run once, counts add up, launches are refused that cannot be made. */
#include <stdbool.h>

#include "check.h"

/* Adds its block number to out[block], with a check of every address. */
static int32_t add_number(struct sg_env *env, uint64_t first, uint64_t last) {
  for (uint64_t number = first; number < last; number++) {
    if (must_stop(env)) return SG_STOPPED;
    uint64_t addresses[32];
    addresses[3] = param(env, 0) + 4 * number;
    env->ctaid[0] = (uint32_t)number;
    if (env->helpers->resolve(env, addresses, 8, 0, &env->caches[0])) return SG_STOPPED;
    CHECK(addresses[3] == param(env, 0) + 4 * number && env->caches[0].start == param(env, 0));
    *(uint32_t *)(uintptr_t)addresses[3] += (uint32_t)number;
    env->counters[0] += 32;
    env->counters[2] += 1;
  }
  return SG_DONE;
}

static const struct sg_site sites[] = {{"st.global.u32", 5, 4, 4, SG_GLOBAL, SG_WRITE, 0}};
static const uint32_t work[3][SG_CLASSES] = {
    {[SG_INTEGER] = 2, [SG_GLOBAL_WRITTEN] = 4}, {[SG_HALF] = 9}, {[SG_CONTROL] = 1, [SG_INTEGER] = 1}};
static const struct sg_cache caches[] = {{.extent = 4, .shift = 2}};
static const struct sg_kernel add_kernel = {HEAD("add_number", SG_COUNTS), .param_bytes = 12, .site_count = 1,
                                            .cache_count = 1, .counter_count = 3, .run = (void *)add_number,
                                            .sites = sites, .counter_work = work[0], .caches = caches};

static void test_every_block_once(sg_pool *pool, uint32_t blocks) {
  uint32_t *out = calloc(blocks, sizeof *out);
  uint64_t params[2] = {(uint64_t)(uintptr_t)out, 0};
  struct sg_allocation table[] = {{16, 64, 0, 0}, {(uint64_t)(uintptr_t)out, 4ull * blocks, 0, 0}};
  struct test test = open_test(pool, &add_kernel, blocks, 32);
  test.launch.params = (const uint8_t *)params;
  test.launch.params_size = 16;
  test.launch.allocations = table;
  test.launch.allocation_count = COUNT(table);
  for (int again = 1; again <= 3; again++) {
    run(&test);
    for (uint32_t i = 0; i < blocks; i++) CHECK(out[i] == i * (uint32_t)again);
    CHECK(test.result.counter_count == 3 && test.result.counters[0] == 32ull * blocks && !test.result.counters[1]);
    CHECK(test.result.counts[SG_INTEGER] == 65ull * blocks && test.result.counts[SG_CONTROL] == blocks);
    CHECK(test.result.counts[SG_GLOBAL_WRITTEN] == 128ull * blocks && !test.result.counts[SG_HALF]);
  }
  close_test(&test);
  free(out);
}

/* Notes for every thread slot the three coordinates that the run-time offers. */
static int32_t note_ids(struct sg_env *env, uint64_t first, uint64_t last) {
  uint32_t *out = (uint32_t *)(uintptr_t)param(env, 0);
  if (first == 0 && last > 0) memcpy(out, env->thread_ids, 3 * 32 * env->warps * sizeof *out);
  return SG_DONE;
}

static void test_thread_ids(sg_pool *pool) {
  static const uint32_t shapes[][3] = {{5, 3, 2}, {32, 1, 1}, {1, 7, 9}, {33, 2, 1}, {5, 3, 2}, {5, 2, 3}};
  const struct sg_kernel kernel = {HEAD("note_ids", 0), .param_bytes = 8, .run = (void *)note_ids};
  struct test test = open_test(pool, &kernel, 1, 1);
  for (size_t s = 0; s < COUNT(shapes); s++) {
    uint32_t out[3 * 1024], threads = shapes[s][0] * shapes[s][1] * shapes[s][2], slots = (threads + 31) / 32 * 32;
    uint64_t params = (uint64_t)(uintptr_t)out;
    test.launch.params = (const uint8_t *)&params;
    test.launch.params_size = 8;
    memcpy(test.launch.block, shapes[s], sizeof shapes[s]);
    run(&test);
    for (uint32_t t = 0; t < slots; t++) {
      bool inside = t < threads;
      CHECK(out[t] == (inside ? t % shapes[s][0] : 0));
      CHECK(out[slots + t] == (inside ? t / shapes[s][0] % shapes[s][1] : 0));
      CHECK(out[2 * slots + t] == (inside ? t / shapes[s][0] / shapes[s][1] : 0));
    }
  }
  close_test(&test);
}

static void test_bad_launches(sg_pool *pool) {
  struct sg_kernel kernel = add_kernel;
  kernel.flags = 0;
  kernel.block[0] = 64, kernel.block[1] = kernel.block[2] = 1;
  kernel.dynamic_base = 1024;
  struct test test = open_test(pool, &kernel, 1, 64);
  const struct sg_launch good = test.launch;
  uint8_t params[16] = {0};
  test.launch.grid[1] = 65536;
  run_to(&test, SG_BAD_LAUNCH, "kernel add_number: grid 1,65536,1: extents must lie between");
  test.launch = good, test.launch.block[2] = 65;
  run_to(&test, SG_BAD_LAUNCH, "block 64,1,65: extents");
  test.launch = good, test.launch.block[1] = 17;
  run_to(&test, SG_BAD_LAUNCH, "1088 threads, more than 1024");
  test.launch = good, test.launch.block[0] = 32;
  run_to(&test, SG_BAD_LAUNCH, "compiled for 64,1,1");
  test.launch = good;
  run_to(&test, SG_BAD_LAUNCH, "0 bytes of parameters; it takes 12");
  test.launch.params = params, test.launch.params_size = 17;
  run_to(&test, SG_BAD_LAUNCH, "17 bytes of parameters");
  test.launch.params_size = 12, test.launch.dynamic_shared = SG_MOST_SHARED - 1023;
  run_to(&test, SG_BAD_LAUNCH, "232449 bytes of shared memory");
  test.launch.dynamic_shared = 0, test.launch.global_count = 1;
  run_to(&test, SG_BAD_LAUNCH, "1 addresses of module variables; it uses 0");
  close_test(&test);
}

static void test_tables(void) {
  const struct sg_allocation overlap[] = {{64, 64, 0, 0}, {127, 8, 0, 0}}, touch[] = {{64, 64, 0, 0}, {128, 0, 0, 0}};
  const struct sg_allocation high[] = {{1ull << 46, 1ull << 46, 0, 0}, {1ull << 47, 1, 0, 0}};
  const struct sg_allocation wide[] = {{1ull << 46, (1ull << 46) + 1, 0, 0}};
  CHECK(sg_check_allocations(overlap, 2) == 1 && sg_check_allocations(touch, 2) == 2);
  CHECK(sg_check_allocations(high, 2) == 1 && sg_check_allocations(wide, 1) == 0);
}

static void test_bad_kernels(void) {
  sg_kernel_handle *handle;
  char error[200];
  struct sg_kernel kernel = add_kernel;
  kernel.abi++;
  CHECK(sg_kernel_wrap(&kernel, &handle, error, sizeof error) == -1 && strstr(error, "another version"));
  kernel = add_kernel, kernel.magic = 0;
  CHECK(sg_kernel_wrap(&kernel, &handle, error, sizeof error) == -1 && strstr(error, "not a compiled kernel"));
  kernel = add_kernel, kernel.flags |= SG_WAITS, kernel.frame_bytes = 8;
  CHECK(sg_kernel_wrap(&kernel, &handle, error, sizeof error) == -1 && strstr(error, "frames too small"));
  CHECK(sg_kernel_open("/nowhere/kernel.so", &handle, error, sizeof error) == -1 && strstr(error, "/nowhere"));
}

static int32_t nothing(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)env, (void)first, (void)last;
  return SG_DONE;
}

static void measure(sg_pool *pool) {
  enum { TIMES = 200000 };
  const struct sg_kernel kernel = {HEAD("nothing", 0), .run = (void *)nothing};
  for (uint32_t blocks = 1; blocks <= 1000; blocks *= 10) {
    struct test test = open_test(pool, &kernel, blocks, 256);
    for (int i = 0; i < 1000; i++) run(&test);
    uint64_t start = time_now();
    for (int i = 0; i < TIMES; i++) launch(&test);
    printf("null launch of %4u blocks: %.0f ns\n", blocks, (double)(time_now() - start) / TIMES);
    close_test(&test);
  }
}

int main(int count, char **arguments) {
  sg_pool *pool = sg_pool_create(3);
  static const uint32_t blocks[] = {1, 2, 3, 17, 1000, 100003};
  if (count > 1 && strcmp(arguments[1], "measure") == 0) {
    measure(pool);
  } else {
    for (size_t i = 0; i < COUNT(blocks); i++) test_every_block_once(pool, blocks[i]);
    test_thread_ids(pool);
    test_bad_launches(pool);
    test_tables();
    test_bad_kernels();
  }
  sg_pool_destroy(pool);
  return 0;
}
