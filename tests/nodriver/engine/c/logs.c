/* The log of accesses: exact bytes, merged over lanes, sites, blocks and workers; without constant memory. */
#include "check.h"

enum { READ, WRITE, ATOMIC };

static const struct sg_site sites[] = {{"ld.global.u32", 1, 4, 4, SG_GLOBAL, SG_READ, 0},
                                       {"st.u16", 2, 2, 2, SG_GENERIC, SG_WRITE, 0},
                                       {"atom.global.add.u64", 3, 8, 8, SG_GLOBAL, SG_ATOMIC, 0}};

/* Block n reads 32 words from the start on, writes two-byte elements at a stride of 6, backwards, and has one lane
 * update one place; all from the base in its parameters. */
static int32_t accesses(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t base = param(env, 0), at[32];
  for (uint64_t number = first; number < last; number++) {
    for (uint64_t lane = 0; lane < 32; lane++) at[lane] = base + 128 * number + 4 * lane;
    env->helpers->log(env, at, ~0u, READ);
    env->helpers->log(env, at, 0x0F0F, READ);
    for (uint64_t lane = 0; lane < 32; lane++) at[31 - lane] = base + (1 << 20) + 6 * (32 * number + lane);
    at[5] = SG_SHARED_WINDOW + 4;
    env->helpers->log(env, at, ~0u, WRITE);
    at[7] = base + (1 << 24) + 16 * number;
    env->helpers->log(env, at, 1 << 7, ATOMIC);
  }
  return SG_DONE;
}

static const struct sg_kernel kernel = {HEAD("accesses", SG_LOGS), .param_bytes = 8, .site_count = COUNT(sites),
                                        .sites = sites, .run = (void *)accesses};

static void test_exact(sg_pool *pool, uint32_t blocks) {
  uint64_t base = 1ull << 40;
  struct sg_allocation table[] = {{base - 64, 64, SG_CONSTANT, 0},
                                  {base, 1 << 19, 0, 0},
                                  {base + (1 << 24) + 16, 12, SG_CONSTANT, 0},
                                  {base + (1 << 24) + 28, 4096, 0, 0}};
  struct test test = open_test(pool, &kernel, blocks, 32);
  test.launch.params = (const uint8_t *)&base;
  test.launch.params_size = 8;
  test.launch.allocations = table;
  test.launch.allocation_count = COUNT(table);
  for (int again = 0; again < 2; again++) {
    run(&test);
    const struct sg_ranges *read = &test.result.read, *written = &test.result.written, *atomic = &test.result.atomic;
    CHECK(read->count == 1 && read->items[0].start == base && read->items[0].end == base + 128ull * blocks);
    CHECK(written->count == 31ull * blocks);
    for (uint64_t i = 0; i < written->count; i++) {
      uint64_t element = i / 31 * 32 + i % 31;
      if (i % 31 >= 26) element++; /* lane 5 wrote to shared memory: element 26 */
      CHECK(written->items[i].start == base + (1 << 20) + 6 * element);
      CHECK(written->items[i].end == written->items[i].start + 2);
    }
    CHECK(atomic->count == blocks - (blocks > 1)); /* the second lies in constant memory */
    CHECK(atomic->items[0].start == base + (1 << 24) && atomic->items[0].end == atomic->items[0].start + 8);
  }
  close_test(&test);
}

/* One access that covers constant memory in its middle. */
static int32_t across(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t at[32];
  (void)first, (void)last;
  for (uint64_t lane = 0; lane < 32; lane++) at[lane] = param(env, 0) + 4 * lane;
  env->helpers->log(env, at, ~0u, READ);
  return SG_DONE;
}

static void test_hole(sg_pool *pool) {
  uint64_t base = 1ull << 40;
  struct sg_kernel holed = kernel;
  holed.run = (void *)across;
  struct sg_allocation table[] = {{base, 16, 0, 0}, {base + 16, 10, SG_CONSTANT, 0}, {base + 26, 1000, 0, 0}};
  struct test test = open_test(pool, &holed, 1, 32);
  test.launch.params = (const uint8_t *)&base;
  test.launch.params_size = 8;
  test.launch.allocations = table;
  test.launch.allocation_count = COUNT(table);
  run(&test);
  const struct sg_range *items = test.result.read.items;
  CHECK(test.result.read.count == 2 && items[0].start == base && items[0].end == base + 16);
  CHECK(items[1].start == base + 26 && items[1].end == base + 128);
  close_test(&test);
}

/* Words from the last to the first, one call after another. */
static int32_t downward(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t at[32];
  (void)first, (void)last;
  for (uint64_t call = 0; call < 10; call++) {
    for (uint64_t lane = 0; lane < 32; lane++) at[lane] = param(env, 0) + 4 * (319 - 32 * call - lane);
    env->helpers->log(env, at, ~0u, READ);
  }
  return SG_DONE;
}

static void test_downward(sg_pool *pool) {
  uint64_t base = 1ull << 40;
  struct sg_kernel kernel_down = kernel;
  kernel_down.run = (void *)downward;
  struct test test = open_test(pool, &kernel_down, 1, 32);
  test.launch.params = (const uint8_t *)&base;
  test.launch.params_size = 8;
  run(&test);
  CHECK(test.result.read.count == 1 && test.result.read.items[0].start == base);
  CHECK(test.result.read.items[0].end == base + 1280);
  close_test(&test);
}

int main(void) {
  static const uint32_t blocks[] = {1, 2, 40, 3000};
  for (unsigned workers = 1; workers <= 3; workers += 2) {
    sg_pool *pool = sg_pool_create(workers);
    for (size_t i = 0; i < COUNT(blocks); i++) test_exact(pool, blocks[i]);
    test_hole(pool);
    test_downward(pool);
    sg_pool_destroy(pool);
  }
  return 0;
}
