/* Copies beside memcpy: for each size a line with its bytes and, for memcpy and for copies to the device, from it and
 * within it, microseconds of one as median and best of RUNS runs, which alternate. A run walks through EACH bytes, so
 * that the bytes of a copy are not those of the one before it. */
#include "measure.h"

enum { RUNS = 11, KINDS = 4 };
static const size_t MOST = (size_t)256 << 20, EACH = (size_t)64 << 20;

int main(void) {
  start();
  char *from = aligned_alloc(4096, MOST), *to = aligned_alloc(4096, MOST); /* as the device's: all lie alike */
  CUdeviceptr first, second;
  if (!from || !to)
    return 1;
  memset(from, 1, MOST);
  memset(to, 2, MOST);
  CHECK(cuMemAlloc(&first, MOST));
  CHECK(cuMemAlloc(&second, MOST));
  CHECK(cuMemcpyHtoD(first, from, MOST)); /* all pages are there */
  CHECK(cuMemcpyHtoD(second, from, MOST));
  for (size_t bytes = 4096; bytes <= MOST; bytes *= 4) {
    double times[KINDS][RUNS];
    const size_t count = bytes < EACH ? EACH / bytes : 1;
    for (int run = 0; run < RUNS; run++)
      for (int kind = 0; kind < KINDS; kind++) {
        const double begin = seconds();
        for (size_t at = 0; at < count * bytes; at += bytes)
          switch (kind) {
          case 0:
            memcpy(to + at, from + at, bytes);
            __asm__ volatile("" ::"r"(to) : "memory");
            break;
          case 1:
            CHECK(cuMemcpyHtoD(first + at, from + at, bytes));
            break;
          case 2:
            CHECK(cuMemcpyDtoH(to + at, first + at, bytes));
            break;
          default:
            CHECK(cuMemcpyDtoD(second + at, first + at, bytes));
          }
        if (kind == 3)
          CHECK(cuCtxSynchronize());
        times[kind][run] = (seconds() - begin) / (double)count * 1e6;
      }
    printf("%zu", bytes);
    for (int kind = 0; kind < KINDS; kind++) {
      const double middle = median(times[kind], RUNS);
      printf(" %.4f %.4f", middle, times[kind][0]);
    }
    printf("\n");
  }
  return 0;
}
