/* The modelled clock, for what streams can do: operations of all kinds, in streams side by side and in graphs. Times by events are
 * exact, however slow this machine is, when no call comes too late; so what is timed is queued first, and let go then. */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { BYTES = 1 << 20, FILLS = 20 };

static const double BANDWIDTH = 1935e9, HOST = 31.508e9;             /* of the card */
static const double FILL = 0.9e-6, COPY = 3e-6, RECORD = 0.5e-6, WAIT = 1e-6; /* docs/clock.md */

static CUdeviceptr memory, far;
static void *pinned, *host;
static CUstream stream, other;
static CUevent first, last, between;

/* The streams wait for a flag, which is set when all calls have been made and have taken their time. */
static void begin(void) {
  *(atomic_uint *)pinned = 0;
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)pinned, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuEventRecord(first, stream));
}

static void time_is(double expected) {
  struct timespec calls_take = {0, 20000000};
  float milliseconds;
  nanosleep(&calls_take, NULL);
  *(atomic_uint *)pinned = 1;
  OK(cuEventSynchronize(last));
  OK(cuEventElapsedTime(&milliseconds, first, last));
  if (milliseconds < 0.97 * 1e3 * expected || milliseconds > 1.03 * 1e3 * expected) {
    fprintf(stderr, "%g ms, not %g\n", (double)milliseconds, 1e3 * expected);
    exit(1);
  }
}

static void fills(unsigned count, size_t bytes) {
  for (unsigned n = 0; n < count; n++) OK(cuMemsetD32Async(memory, n, bytes / 4, stream));
}

static double fill_time(size_t bytes) { return FILL + (double)bytes / BANDWIDTH; }

static void in_order(void) {
  begin();
  fills(FILLS, BYTES);
  OK(cuEventRecord(last, stream));
  time_is(FILLS * fill_time(BYTES) + RECORD);
  begin();
  OK(cuMemcpyDtoDAsync(far, memory, BYTES, stream));
  OK(cuMemcpyDtoHAsync(host, memory, BYTES, stream));
  OK(cuEventRecord(last, stream));
  time_is(2 * COPY + 2 * BYTES / BANDWIDTH + BYTES / HOST + RECORD);
}

/* Copies to the host in the other stream and fills in this one, both begun by an event; they meet at another one. */
static void side_by_side(void) {
  begin();
  OK(cuStreamWaitEvent(other, first, 0));
  OK(cuMemcpyDtoHAsync(host, far, BYTES, other));
  OK(cuEventRecord(between, other));
  fills(FILLS, BYTES);
  OK(cuStreamWaitEvent(stream, between, 0));
  OK(cuEventRecord(last, stream));
  double fills_take = FILLS * fill_time(BYTES), copy_takes = WAIT + COPY + BYTES / HOST + RECORD;
  time_is((fills_take > copy_takes ? fills_take : copy_takes) + WAIT + RECORD);
}

/* One device is filled by one stream at a time. */
static void in_turns(void) {
  begin();
  OK(cuStreamWaitEvent(other, first, 0));
  for (unsigned n = 0; n < FILLS; n++) OK(cuMemsetD32Async(far, n, BYTES / 4, other));
  OK(cuEventRecord(between, other));
  fills(FILLS, BYTES);
  OK(cuStreamWaitEvent(stream, between, 0));
  OK(cuEventRecord(last, stream));
  time_is(2 * FILLS * fill_time(BYTES) + RECORD + WAIT + RECORD);
}

static void graphs(void) {
  CUgraph graph;
  CUgraphExec exec;
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  fills(FILLS, BYTES);
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiate(&exec, graph, 0));
  begin();
  for (int n = 0; n < 3; n++) OK(cuGraphLaunch(exec, stream));
  OK(cuEventRecord(last, stream));
  time_is(3 * FILLS * fill_time(BYTES) + RECORD);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

static void count(void *given) { ++*(atomic_uint *)given; }

/* Nothing is modelled of how long these take, but they end. */
static void functions_and_values(void) {
  static atomic_uint calls;
  atomic_uint *flag = pinned;
  *flag = 0;
  OK(cuLaunchHostFunc(stream, count, &calls));
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 3, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuLaunchHostFunc(stream, count, &calls));
  OK(cuStreamWriteValue32(other, (CUdeviceptr)flag, 3, 0));
  OK(cuStreamSynchronize(stream));
  CHECK(calls == 2);
}

int main(void) {
  CUcontext context;
  setenv("SOFTGPU_CLOCK", "modelled:100", 1);
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&first, 0));
  OK(cuEventCreate(&last, 0));
  OK(cuEventCreate(&between, 0));
  OK(cuMemHostAlloc(&pinned, 4, 0));
  OK(cuMemHostAlloc(&host, BYTES, 0));
  OK(cuMemAlloc(&memory, BYTES));
  OK(cuMemAlloc(&far, BYTES));
  in_order();
  side_by_side();
  in_turns();
  graphs();
  functions_and_values();
  OK(cuCtxDestroy(context));
  return 0;
}
