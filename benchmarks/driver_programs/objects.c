/* Many objects at once. For each kind a line: microseconds to make one of the first thousand, one of the last
 * thousand, and to end one of the last and of the first thousand. */
#include "measure.h"

enum { ALLOCATIONS = 100000, OTHERS = 10000, PART = 1000 };

static void *made[ALLOCATIONS];

static void make_memory(int i) {
  CUdeviceptr pointer;
  CHECK(cuMemAlloc(&pointer, 256));
  made[i] = (void *)(size_t)pointer;
}

static void end_memory(int i) {
  CHECK(cuMemFree((CUdeviceptr)(size_t)made[i]));
}

static void make_stream(int i) {
  CHECK(cuStreamCreate((CUstream *)&made[i], CU_STREAM_DEFAULT));
}

static void end_stream(int i) {
  CHECK(cuStreamDestroy(made[i]));
}

static void make_event(int i) {
  CHECK(cuEventCreate((CUevent *)&made[i], CU_EVENT_DEFAULT));
}

static void end_event(int i) {
  CHECK(cuEventDestroy(made[i]));
}

static double part(void (*work)(int), int first, int last, int step) {
  const double begin = seconds();
  for (int i = first; i != last; i += step)
    work(i);
  return (seconds() - begin) / abs(last - first) * 1e6;
}

static void measure(const char *name, int count, void (*make)(int), void (*end)(int)) {
  const double first = part(make, 0, PART, 1);
  part(make, PART, count - PART, 1);
  const double last = part(make, count - PART, count, 1);
  const double end_last = part(end, count - 1, count - 1 - PART, -1);
  part(end, count - 1 - PART, PART - 1, -1);
  printf("%s %.4f %.4f %.4f %.4f\n", name, first, last, end_last, part(end, PART - 1, -1, -1));
}

int main(void) {
  start();
  for (int run = 0; run < 5; run++) {
    measure("allocations", ALLOCATIONS, make_memory, end_memory);
    measure("streams", OTHERS, make_stream, end_stream);
    measure("events", OTHERS, make_event, end_event);
  }
  return 0;
}
