/* Times of a program in C: `launches PTX KERNEL` loads a kernel of no parameters from the cache again and again, and
 * launches one block of 32 threads of it again and again. Prints two lines: microseconds of a load, and of a launch,
 * each as median and best. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client.h"
#include "softgpu_engine.h"

enum { LOADS = 51, BATCHES = 51, BATCH = 1000, MOST_BYTES = 1 << 24 };

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, by_size);
  printf("%.3f %.3f\n", times[count / 2], times[0]);
}

static void fail(const char *what) {
  fprintf(stderr, "launches: %s\n", what);
  exit(1);
}

int main(int count, char **words) {
  static char ptx[MOST_BYTES];
  FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
  if (!file)
    fail("cannot read the PTX");
  const size_t bytes = fread(ptx, 1, MOST_BYTES, file);
  fclose(file);
  struct sg_options options = {{32, 1, 1}, 0, 0};
  struct sg_failure failure = {""};
  struct sg_loaded loaded;
  double times[LOADS > BATCHES ? LOADS : BATCHES];
  uint8_t digest[SG_DIGEST_BYTES];
  sg_module_digest(ptx, bytes, digest);
  for (int i = -1; i < LOADS; i++) {
    const double start = microseconds();
    if (sg_load_kernel(ptx, bytes, digest, words[2], &options, &loaded, &failure))
      fail(failure.text);
    if (i >= 0) /* the first one may have been compiled */
      times[i] = microseconds() - start;
    if (i < LOADS - 1)
      dlclose(loaded.handle);
  }
  report(times, LOADS);
  if (loaded.kernel->param_bytes)
    return 0;

  char error[256];
  sg_kernel_handle *kernel;
  if (sg_kernel_wrap(loaded.kernel, &kernel, error, sizeof error))
    fail(error);
  sg_pool *pool = sg_pool_create(0);
  struct sg_launch launch = {.kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}};
  struct sg_result result = {0};
  for (int batch = 0; batch < BATCHES; batch++) {
    const double start = microseconds();
    for (int i = 0; i < BATCH; i++)
      if (sg_launch_run(pool, &launch, &result))
        fail(result.message);
    times[batch] = (microseconds() - start) / BATCH;
  }
  report(times, BATCHES);
  sg_result_free(&result);
  sg_kernel_close(kernel);
  sg_pool_destroy(pool);
  return 0;
}
