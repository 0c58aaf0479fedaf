/* A kernel of examples/kernels.ptx from C: compiled now or taken from the cache, then launched on all cores.
 *
 *     cc -I softgpu/engine/runtime examples/engine.c softgpu/lib/libsoftgpu-engine.so -o engine
 *     LD_LIBRARY_PATH=softgpu/lib ./engine examples/kernels.ptx
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "softgpu_engine.h"

enum { COUNT = 1000, BLOCK = 128 };

static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*bytes);
  if (text && fread(text, 1, *bytes, file) != *bytes) {
    free(text);
    text = NULL;
  }
  fclose(file);
  return text;
}

int main(int count, char **arguments) {
  size_t bytes = 0;
  char *ptx = count == 2 ? read_file(arguments[1], &bytes) : NULL;
  if (!ptx) {
    fprintf(stderr, "usage: %s kernels.ptx\n", arguments[0]);
    return 2;
  }
  uint8_t digest[SG_DIGEST_BYTES];
  sg_module_digest(ptx, bytes, digest);
  struct sg_options options = {{BLOCK, 1, 1}, 0, 0};
  struct sg_loaded loaded;
  struct sg_failure failure;
  if (sg_load_kernel(ptx, bytes, digest, "saxpy", &options, &loaded, &failure) != SG_ANSWERED) {
    fprintf(stderr, "%s\n", failure.text);
    return 1;
  }
  char error[512];
  sg_kernel_handle *kernel;
  if (sg_kernel_wrap(loaded.kernel, &kernel, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }

  static float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1;
  /* saxpy(y, x, a, n): the parameter block as the kernel declares it. */
  struct {
    float *y, *x;
    float a;
    int n;
  } params = {y, x, 2, COUNT};
  struct sg_allocation allocations[2] = {{(uint64_t)(uintptr_t)x, sizeof x, 0, 0}, {(uint64_t)(uintptr_t)y, sizeof y, 0, 0}};
  if (&x[0] > &y[0]) {
    struct sg_allocation first = allocations[0];
    allocations[0] = allocations[1], allocations[1] = first; /* sorted by start */
  }
  struct sg_launch launch = {.kernel = kernel, .grid = {(COUNT + BLOCK - 1) / BLOCK, 1, 1}, .block = {BLOCK, 1, 1},
                             .params = (const uint8_t *)&params, .params_size = sizeof params,
                             .allocations = allocations, .allocation_count = 2};
  struct sg_result result;
  memset(&result, 0, sizeof result);
  sg_pool *pool = sg_pool_create(0);
  int status = sg_launch_run(pool, &launch, &result);
  if (status) fprintf(stderr, "%s\n", result.message);
  else printf("y[0] = %g, y[%d] = %g\n", (double)y[0], COUNT - 1, (double)y[COUNT - 1]);
  sg_result_free(&result);
  sg_pool_destroy(pool);
  sg_kernel_close(kernel);
  free(ptx);
  return status != SG_OK;
}
