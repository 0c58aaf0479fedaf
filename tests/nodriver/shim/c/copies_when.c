/* When copies are done, and when what they copy is looked at: each part is a program of its own. */
#define __CUDA_API_VERSION_INTERNAL
#include "copies.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

enum { SMALL = 1000, LARGE = 100000, THREADS = 4, ROUNDS = 60 };

static CUstream stream, blocking;
static CUcontext context;
static CUdeviceptr_v2 to, from, managed;
static unsigned char *page, *pin, *pin_to;
static atomic_int go;

static void nap(void) {
  struct timespec time = {0, 1000000};
  nanosleep(&time, NULL);
}

static void CUDA_CB wait_for_go(void *unused) {
  (void)unused;
  while (!atomic_load(&go)) nap();
}

/* Long enough that a copy is called before it is done: else the test would only see less. */
static void CUDA_CB write_late(void *at) {
  for (int n = 0; n < 50; n++) nap();
  put_pattern(at);
}

static void make(void) {
  CUdevice device;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuCtxCreate_v2(&context, 0, device));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuMemAlloc_v2(&to, ROOM));
  OK(cuMemAlloc_v2(&from, ROOM));
  OK(cuMemAllocManaged(&managed, ROOM, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemHostAlloc((void **)&pin, ROOM, 0));
  OK(cuMemHostAlloc((void **)&pin_to, ROOM, 0));
  page = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  put_pattern(page);
  OK(cuMemcpyHtoD_v2(from, page, ROOM));
}

/* Calls that are to return although their stream stands still. */
static void asynchronous(void) {
  put_pattern(pin);
  OK(cuLaunchHostFunc(stream, wait_for_go, NULL));
  OK(cuMemcpyHtoDAsync_v2(to, pin, SMALL, stream));
  OK(cuMemcpyHtoDAsync_v2(to, pin, LARGE, stream));
  OK(cuMemcpyHtoDAsync_v2(to, page, LARGE, stream));
  OK(cuMemcpyDtoHAsync_v2(pin_to, from, LARGE, stream));
  OK(cuMemcpyDtoDAsync_v2(to, from, LARGE, stream));
  OK(cuMemsetD8Async(to, 1, LARGE, stream));
  CUdeviceptr_v2 targets[] = {to, ADDRESS(pin_to)}, sources[] = {ADDRESS(pin), from};
  size_t sizes[] = {LARGE, LARGE}, begin[] = {0};
  CUmemcpyAttributes_v1 attributes[] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
  OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, attributes, begin, 1, stream));
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  atomic_store(&go, 1);
  OK(cuStreamSynchronize(stream));
  CHECK(!memcmp(pin_to, page, LARGE));
}

static void *queue_and_go(void *unused) {
  (void)unused;
  OK(cuCtxSetCurrent(context));
  for (int n = 0; n < 50; n++) nap(); /* by then the other thread waits: else the test would only see less */
  OK(cuMemsetD8Async(to, 1, SMALL, stream));
  OK(cuMemcpyDtoDAsync_v2(to, from, SMALL, stream));
  atomic_store(&go, 1);
  return NULL;
}

/* A call that waits for its stream, while another thread has to get on in it. */
static void waiting(void) {
  pthread_t thread;
  OK(cuLaunchHostFunc(stream, wait_for_go, NULL));
  CHECK(!pthread_create(&thread, NULL, queue_and_go, NULL));
  OK(cuMemcpyDtoHAsync_v2(page, from, LARGE, stream));
  CHECK(!pthread_join(thread, NULL));
  OK(cuStreamSynchronize(stream));
}

/* Work before it writes what is copied. */
static void written_late(void) {
  for (int large = 0; large < 2; large++) {
    size_t bytes = large ? LARGE : SMALL;
    memset(pin, 0, ROOM);
    OK(cuLaunchHostFunc(NULL, write_late, pin));
    OK(cuMemcpyHtoD_v2(to, pin, bytes));
    memset(pin, 0, ROOM);
    OK(cuLaunchHostFunc(stream, write_late, pin));
    OK(cuMemcpyHtoDAsync_v2(to, pin, bytes, stream));
    OK(cuStreamSynchronize(stream));
  }
}

/* What was copied is gone as soon as the call returns. */
static void freed(void) {
  for (int n = 0; n < 20; n++) {
    unsigned char *gone = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED);
    OK(cuMemcpyDtoHAsync_v2(gone, from, LARGE, n % 2 ? stream : NULL));
    munmap(gone, LARGE);
    gone = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED);
    memcpy(gone, page, LARGE);
    OK(cuMemcpyHtoDAsync_v2(to, gone, LARGE, n % 2 ? stream : NULL));
    munmap(gone, LARGE);
  }
  OK(cuCtxSynchronize());
}

/* The driver takes no host function: the instrument says so. */
static void refused(void) {
  put_pattern(pin);
  OK(cuMemcpyHtoDAsync_v2(to, pin, SMALL, stream));
  OK(cuMemcpyHtoDAsync_v2(to, pin, LARGE, stream));
  OK(cuMemcpyDtoHAsync_v2(pin_to, from, LARGE, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(!memcmp(pin_to, page, LARGE));
}

static void managed_memory(void) {
  OK(cuMemcpyHtoD_v2(managed, page, SMALL));
  OK(cuMemcpyHtoDAsync_v2(to, (void *)(uintptr_t)managed, SMALL, stream));
  OK(cuMemcpyDtoH_v2(pin_to, managed, LARGE));
  OK(cuMemcpy(managed, from, SMALL));
  OK(cuMemsetD8_v2(managed, 1, SMALL));
  OK(cuMemsetD8_v2(ADDRESS(pin_to), 1, SMALL));
  OK(cuMemsetD8_v2(to, 1, SMALL));
  OK(cuCtxSynchronize());
}

/* Nothing comes into a graph but what the program asks for, and nothing makes its capture invalid. */
static void captured(void) {
  put_pattern(pin);
  for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
    CUgraph graph;
    CUgraphExec exec;
    CUstreamCaptureStatus status;
    size_t nodes = 0;
    OK(cuStreamBeginCapture_v2(stream, mode));
    OK(cuMemcpyHtoDAsync_v2(to, pin, SMALL, stream));
    OK(cuMemcpyHtoDAsync_v2(to, page, LARGE, stream));
    OK(cuMemcpyDtoHAsync_v2(pin_to, from, LARGE, stream));
    OK(cuMemcpyDtoDAsync_v2(to, from, LARGE, stream));
    OK(cuMemsetD32Async(to, 1, SMALL, stream));
    /* in other streams meanwhile */
    OK(cuMemcpyHtoDAsync_v2(to, pin, LARGE, blocking));
    OK(cuMemcpyDtoHAsync_v2(pin_to, from, LARGE, blocking));
    OK(cuMemcpyHtoDAsync_v2(to, pin, LARGE, NULL));
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK(nodes == 5);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuCtxSynchronize()); /* it copies to the same memory */
    OK(cuGraphLaunch(exec, stream));
    OK(cuCtxSynchronize());
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
  }
}

struct worker {
  pthread_t thread;
  unsigned char *page, *pin, *got;
  CUdeviceptr_v2 there;
  CUstream own;
};

static void *work(void *given) {
  struct worker *worker = given;
  OK(cuCtxSetCurrent(context));
  for (int n = 0; n < ROUNDS; n++) {
    CUstream in = n % 3 ? worker->own : stream;
    size_t bytes = n % 2 ? SMALL : LARGE;
    OK(cuMemcpyHtoDAsync_v2(worker->there, worker->pin, bytes, in));
    OK(cuMemcpyDtoHAsync_v2(worker->got, worker->there, bytes, in));
    OK(cuStreamSynchronize(in));
    CHECK(!memcmp(worker->got, worker->page, bytes));
    OK(cuMemsetD8Async(worker->there, 0, bytes, in));
    OK(cuStreamSynchronize(in));
    OK(cuMemcpyHtoD_v2(worker->there, worker->page, bytes));
    OK(cuMemcpyDtoH_v2(worker->got, worker->there, bytes));
    CHECK(!memcmp(worker->got, worker->page, bytes));
  }
  return NULL;
}

static void threads(void) {
  struct worker workers[THREADS];
  for (int n = 0; n < THREADS; n++) {
    struct worker *worker = &workers[n];
    worker->page = aligned_alloc(4096, ROOM);
    put_pattern(worker->page);
    OK(cuMemHostAlloc((void **)&worker->pin, ROOM, 0));
    OK(cuMemHostAlloc((void **)&worker->got, ROOM, 0));
    put_pattern(worker->pin);
    OK(cuMemAlloc_v2(&worker->there, ROOM));
    OK(cuStreamCreate(&worker->own, CU_STREAM_NON_BLOCKING));
    CHECK(!pthread_create(&worker->thread, NULL, work, worker));
  }
  for (int n = 0; n < THREADS; n++) CHECK(!pthread_join(workers[n].thread, NULL));
  for (int n = 0; n < THREADS; n++) free(workers[n].page);
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    void (*part)(void);
  } parts[] = {{"asynchronous", asynchronous}, {"waiting", waiting}, {"written_late", written_late},
               {"freed", freed}, {"refused", refused}, {"managed", managed_memory}, {"captured", captured},
               {"threads", threads}};
  make();
  for (size_t n = 0; count > 1 && n < sizeof parts / sizeof *parts; n++)
    if (!strcmp(parts[n].name, words[1])) {
      parts[n].part();
      return 0;
    }
  return 2;
}
