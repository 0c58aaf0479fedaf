/* What the test programs share: checks, and short ways to describe and launch a kernel that is written in C. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu_engine.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A launch under construction; `made` frees what it holds. */
struct test {
  sg_pool *pool;
  sg_kernel_handle *kernel;
  struct sg_launch launch;
  struct sg_result result;
};

static inline struct test open_test(sg_pool *pool, const struct sg_kernel *kernel, uint32_t blocks, uint32_t threads) {
  struct test test = {.pool = pool};
  char error[200];
  if (sg_kernel_wrap(kernel, &test.kernel, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
  test.launch = (struct sg_launch){
      .kernel = test.kernel, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .deadline_ms = 60000};
  return test;
}

static inline int launch(struct test *test) { return sg_launch_run(test->pool, &test->launch, &test->result); }

/* Launch and expect that all is well. */
static inline void run(struct test *test) {
  if (launch(test) != SG_OK) {
    fprintf(stderr, "status %d: %s\n", test->result.status, test->result.message);
    exit(1);
  }
}

/* Launch and expect a failure whose text holds `part`. */
static inline void run_to(struct test *test, int status, const char *part) {
  launch(test);
  if (test->result.status == status && strstr(test->result.message, part)) return;
  fprintf(stderr, "status %d: %s\nexpected %d: ... %s ...\n", test->result.status, test->result.message, status, part);
  exit(1);
}

static inline void close_test(struct test *test) {
  sg_result_free(&test->result);
  sg_kernel_close(test->kernel);
}

static inline uint64_t time_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Parameters as a kernel reads them: 64-bit words. */
static inline uint64_t param(const struct sg_env *env, unsigned index) {
  uint64_t value;
  memcpy(&value, env->params + 8 * index, 8);
  return value;
}

static inline int must_stop(const struct sg_env *env) {
  return __atomic_load_n((const int32_t *)(uintptr_t)env->stop, __ATOMIC_RELAXED);
}

/* What compiled code does on the way in: the lanes to go on at a point. */
static inline uint32_t take(struct sg_frame *frame, unsigned point) {
  uint32_t lanes = frame->points[point].go;
  frame->points[point].go = 0;
  return lanes;
}

static inline void wait_at(struct sg_frame *frame, unsigned point, uint32_t lanes, uint32_t barrier,
                           uint32_t expected) {
  frame->points[point].waiting |= lanes;
  frame->points[point].barrier = barrier;
  frame->points[point].expected = expected;
}

static inline int32_t parked(const struct sg_frame *frame) { return frame->live ? SG_PARKED : SG_DONE; }

#define HEAD(title, kind) .magic = SG_MAGIC, .abi = SG_ABI_VERSION, .name = title, .flags = kind
#define FRAME(points, registers) (sizeof(struct sg_frame) + (points) * sizeof(struct sg_wait) + (registers))

#endif
