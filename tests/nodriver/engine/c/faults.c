/* Accesses that must fail, and what is written about them; those at the edges that must not. */
#include "check.h"

enum { GLOBAL, WRITE, ATOMIC, WIDE, SHARED, LOCAL, PARAM, GENERIC, GENERIC_WRITE, CONST, TRAP };

static const struct sg_site sites[] = {
    [GLOBAL] = {"ld.global.f32", 12, 4, 4, SG_GLOBAL, SG_READ, 0},
    [WRITE] = {"st.global.u8", 13, 1, 1, SG_GLOBAL, SG_WRITE, 0},
    [ATOMIC] = {"atom.global.add.u64", 14, 8, 8, SG_GLOBAL, SG_ATOMIC, 0},
    [WIDE] = {"ld.global.v4.u32", 15, 16, 16, SG_GLOBAL, SG_READ, 0},
    [SHARED] = {"st.shared.u16", 16, 2, 2, SG_SHARED, SG_WRITE, 0},
    [LOCAL] = {"ld.local.u32", 17, 4, 4, SG_LOCAL, SG_READ, 0},
    [PARAM] = {"ld.param.u32", 18, 4, 4, SG_PARAM, SG_READ, 0},
    [GENERIC] = {"ld.u32", 19, 4, 4, SG_GENERIC, SG_READ, 0},
    [GENERIC_WRITE] = {"st.u32", 20, 4, 4, SG_GENERIC, SG_WRITE, 0},
    [CONST] = {"ld.const.u32", 21, 4, 4, SG_CONST, SG_READ, 0},
    [TRAP] = {"trap", 22, 0, 0, 0, 0, 0},
};

/* The access that the kernel makes, and what came of it. */
static struct {
  uint64_t addresses[32];
  uint32_t mask;
  uint32_t site;
  uint32_t code; /* of a trap */
  struct sg_cache cache;
  uint8_t *shared;
  uint8_t *local;
  const uint8_t *params;
  int32_t returned;
} request;

static int32_t one_access(struct sg_env *env, uint64_t first, uint64_t last) {
  for (uint64_t number = first; number < last; number++) {
    env->ctaid[0] = (uint32_t)(number % env->grid[0]);
    env->ctaid[1] = (uint32_t)(number / env->grid[0]);
    if (number != 5) continue;
    env->warp = 1;
    request.shared = env->shared;
    request.local = env->local;
    request.params = env->params;
    if (request.site == TRAP)
      request.returned = env->helpers->trap(env, request.mask, TRAP, request.code);
    else
      request.returned = env->helpers->resolve(env, request.addresses, request.mask, request.site, &request.cache);
    if (request.returned) return SG_STOPPED;
  }
  return SG_DONE;
}

static const struct sg_kernel kernel = {HEAD("access", 0), .param_bytes = 20, .static_shared = 100, .local_bytes = 24,
                                        .site_count = COUNT(sites), .sites = sites, .run = (void *)one_access};

static struct test test;
static uint8_t heap[4096];
static uint64_t base;

static void expect(uint32_t site, uint32_t mask, uint64_t address, int status, const char *text) {
  for (unsigned lane = 0; lane < 32; lane++) request.addresses[lane] = mask >> lane & 1 ? address : ~0ull;
  request.mask = mask;
  request.site = site;
  request.code = (uint32_t)address;
  request.cache = (struct sg_cache){1, 2, .extent = 1};
  if (status == SG_OK)
    run(&test);
  else
    run_to(&test, status, text);
  CHECK((request.returned != 0) == (status != SG_OK));
}

static void expect_text(uint32_t site, uint64_t address, const char *reason) {
  char text[300];
  static const char *const verbs[] = {[SG_READ] = "reads", [SG_WRITE] = "writes", [SG_ATOMIC] = "updates"};
  const struct sg_site *s = &sites[site];
  snprintf(text, sizeof text, "kernel access, line %u: %s %s %u byte%s at 0x%llx, %s (block 2,1,0 thread 0,1,2)",
           s->line, s->mnemonic, verbs[s->access], s->width, s->width == 1 ? "" : "s", (unsigned long long)address,
           reason);
  expect(site, 8, address, SG_FAULT, text);
  const struct sg_result *result = &test.result;
  CHECK(strlen(result->message) == strlen(text));
  CHECK(result->line == s->line && result->address == address && result->width == s->width);
  CHECK(result->space == s->space && result->access == s->access && strcmp(result->mnemonic, s->mnemonic) == 0);
  CHECK(result->block[0] == 2 && result->block[1] == 1 && result->block[2] == 0 && result->has_thread);
  CHECK(result->thread[0] == 0 && result->thread[1] == 1 && result->thread[2] == 2);
}

/* Allocations in `heap`: 100 bytes at 256, 64 constant ones at 512, 64 read-only ones at 576, 8 at 1024. */
static void test_global(void) {
  uint64_t a = base + 256, constant = base + 512, fixed = base + 576;
  char before[120];
  expect(GLOBAL, 8, a, SG_OK, "");
  CHECK(request.addresses[3] == a && request.addresses[2] == ~0ull);
  CHECK(request.cache.start == a && request.cache.limit == 100);
  expect(GLOBAL, ~0u, a + 96, SG_OK, "");
  expect(WIDE, 1, a + 80, SG_OK, "");
  expect_text(WIDE, a + 96, (snprintf(before, sizeof before, "past the end of the 100 bytes at 0x%llx",
                                      (unsigned long long)a), before));
  snprintf(before, sizeof before, "outside every allocation; the one before it is 100 bytes at 0x%llx",
           (unsigned long long)a);
  expect_text(GLOBAL, a + 100, before);
  expect_text(WRITE, a + 255, before);
  expect_text(ATOMIC, a + 104, before);
  snprintf(before, sizeof before, "past the end of the 8 bytes at 0x%llx", (unsigned long long)base + 1024);
  expect_text(WIDE, base + 1024, before);
  expect_text(GLOBAL, a + 2, "not aligned to 4 bytes");
  expect_text(WIDE, a + 8, "not aligned to 16 bytes");
  expect_text(GLOBAL, 0, "outside every allocation");
  expect_text(GLOBAL, base + 252, "outside every allocation");
  expect_text(GLOBAL, 1ull << 60, "which lies in no memory");
  expect_text(GLOBAL, ~3ull, "which lies in no memory");
  expect(GLOBAL, 1, constant, SG_OK, "");
  CHECK(request.cache.start == 1 && request.cache.limit == 2); /* a cache of a pointer that may be written through */
  expect(CONST, 1, constant + 60, SG_OK, "");
  CHECK(request.cache.start == constant && request.cache.limit == 64);
  expect_text(WRITE, constant, "constant memory cannot be written");
  expect_text(ATOMIC, constant, "constant memory cannot be written");
  expect_text(WRITE, fixed, "which is read-only");
  snprintf(before, sizeof before, "past the end of the 64 bytes at 0x%llx", (unsigned long long)fixed);
  expect_text(WIDE, fixed + 64, (snprintf(before, sizeof before,
                                          "outside every allocation; the one before it is 64 bytes at 0x%llx",
                                          (unsigned long long)fixed), before));
}

static void test_spread(void) {
  for (unsigned lane = 0; lane < 32; lane++) request.addresses[lane] = base + (lane == 9 ? 1024 : 256 + lane * 2);
  request.mask = 0x201;
  request.site = GLOBAL;
  request.cache = (struct sg_cache){1, 2, .extent = 1};
  run(&test);
  CHECK(request.cache.start == 1);
  request.addresses[9] += 8, request.addresses[30] = 3, request.mask |= 1u << 30;
  run_to(&test, SG_FAULT, "thread 1,2,2)"); /* lane 9 of warp 1 is thread 41, the first that faults */
  request.mask = 0;
  run(&test);
}

static void test_spaces(void) {
  expect(SHARED, 1, 98, SG_OK, "");
  CHECK(request.addresses[0] == (uint64_t)(uintptr_t)request.shared + 98 && (uintptr_t)request.shared % 128 == 0);
  expect_text(SHARED, 100, "outside the 100 bytes of shared memory");
  expect_text(SHARED, 7, "not aligned to 2 bytes");
  expect_text(SHARED, SG_SHARED_WINDOW, "outside the 100 bytes of shared memory");
  expect(LOCAL, 1u << 31, 20, SG_OK, "");
  CHECK(request.addresses[31] == (uint64_t)(uintptr_t)request.local + 31 * 32 + 20);
  expect_text(LOCAL, 24, "outside the 24 bytes of local memory");
  expect(PARAM, 1, 16, SG_OK, "");
  CHECK(request.addresses[0] == (uint64_t)(uintptr_t)request.params + 16);
  expect_text(PARAM, 20, "outside the 20 bytes of parameter memory");
  expect(GENERIC, 2, SG_SHARED_WINDOW + 96, SG_OK, "");
  CHECK(request.addresses[1] == (uint64_t)(uintptr_t)request.shared + 96 && request.cache.start == 1);
  expect(GENERIC, 2, SG_LOCAL_WINDOW + 4, SG_OK, "");
  CHECK(request.addresses[1] == (uint64_t)(uintptr_t)request.local + 32 + 4);
  expect(GENERIC, 2, SG_PARAM_WINDOW, SG_OK, "");
  expect_text(GENERIC, SG_SHARED_WINDOW + 100, "outside the 100 bytes of shared memory");
  expect_text(GENERIC, SG_LOCAL_WINDOW + 24, "outside the 24 bytes of local memory");
  expect_text(GENERIC, SG_CODE_WINDOW, "which lies in no memory");
  expect_text(GENERIC_WRITE, SG_PARAM_WINDOW + 4, "kernel parameters cannot be written");
  expect(GENERIC_WRITE, 1, SG_LOCAL_WINDOW + 20, SG_OK, "");
}

static void test_traps(void) {
  expect(TRAP, 8, 0, SG_TRAP, "kernel access, line 22: trap (block 2,1,0 thread 0,1,2)");
  expect(TRAP, 1, 1, SG_TRAP, "kernel access, line 22: breakpoint (block 2,1,0 thread 2,0,2)");
}

int main(void) {
  sg_pool *pool = sg_pool_create(1);
  uint8_t params[20] = {0};
  base = ((uint64_t)(uintptr_t)heap + 255) / 256 * 256;
  struct sg_allocation table[] = {{base + 256, 100, 0, 0},
                                  {base + 512, 64, SG_CONSTANT, 0},
                                  {base + 576, 64, SG_READ_ONLY, 0},
                                  {base + 1024, 8, 0, 0}};
  test = open_test(pool, &kernel, 3, 1);
  uint32_t grid[3] = {3, 2, 1}, block[3] = {5, 3, 3};
  memcpy(test.launch.grid, grid, sizeof grid);
  memcpy(test.launch.block, block, sizeof block);
  test.launch.params = params;
  test.launch.params_size = 20;
  test.launch.allocations = table;
  test.launch.allocation_count = COUNT(table);
  test_global();
  test_spread();
  test_spaces();
  test_traps();
  close_test(&test);
  sg_pool_destroy(pool);
  return 0;
}
