/* Random sequences of valid and invalid calls, which never crash or hang the driver.
 *
 *     fuzz SEED THREADS SHARED CALLS SECONDS PATIENCE TRACE
 *
 * Each thread makes CALLS calls, or what it can in SECONDS. SHARED 1: threads use each other's handles, and one that ends
 * something waits until no other thread calls; 0: each has its own, and nobody waits. PATIENCE: how many
 * seconds a call may take. TRACE: a file for the last calls of each thread. One thread waits after
 * each call for its work, so that the same seed makes the same calls; without the sanitizer of
 * addresses only until a dead handle happens to be that of something new. */
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

enum { MOST_THREADS = 16, LINES = 64, LINE = 512, HOST_BYTES = 4 << 20 };

static struct fuzzer fuzzers[MOST_THREADS];
static struct things own[MOST_THREADS], common;
static pthread_t workers[MOST_THREADS];
static unsigned threads, weights;
static bool shared;
static uint64_t most_calls, deadline, patience;
static char (*trace)[LINES][LINE]; /* of each thread, in a ring */
static _Atomic uint64_t lines, calls;
static _Atomic unsigned ended;
static pthread_rwlock_t turn; /* shared: for writing while something ends */
static CUcontext bases[2];    /* alive to the end */

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static _Thread_local unsigned written; /* lines of this thread */

void begin_call(struct fuzzer *f, const char *symbol, unsigned count, const uint64_t *arguments) {
  char *line = trace[f->thread][written++ % LINES];
  int length = snprintf(line, LINE, "%llu thread %u: %s(", (unsigned long long)++lines, f->thread, symbol);
  for (unsigned n = 0; n < count && length < LINE - 64; n++)
    length += snprintf(line + length, LINE - (size_t)length, arguments[n] < 4096 ? "%s%llu" : "%s0x%llx", n ? ", " : "",
                       (unsigned long long)arguments[n]);
  snprintf(line + length, LINE - (size_t)length, ")");
  f->since = now();
}

void end_call(struct fuzzer *f, CUresult result) {
  f->since = 0;
  char *line = trace[f->thread][(written - 1) % LINES];
  size_t length = strlen(line);
  snprintf(line + length, LINE - length, " = %d", (int)result);
}

static const struct fuzzed *some_call(struct fuzzer *f) {
  unsigned at = below(f, weights), n = 0;
  while (at >= fuzzed[n].weight) at -= fuzzed[n++].weight;
  return &fuzzed[n];
}

/* What calls in a new context can begin with. */
static void equip(struct fuzzer *f) {
  static const char *const names[] = {"put", "wait", "nothing", "stop"};
  CUmodule module;
  CUlibrary library;
  CUkernel kernel;
  CUfunction function;
  CUstream stream;
  CUevent event;
  CUdeviceptr memory;
  CUmemoryPool pool;
  CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  if (one_in(f, 4) && !cuMemPoolCreate(&pool, &properties)) keep_handle(f, P_CUmemoryPool, (uint64_t)(uintptr_t)pool);
  if (!cuStreamCreate(&stream, below(f, 2))) keep_handle(f, P_CUstream, (uint64_t)(uintptr_t)stream);
  for (unsigned n = 0; n < 2; n++)
    if (!cuEventCreate(&event, 0) && !cuEventRecord(event, NULL)) keep_handle(f, P_CUevent, (uint64_t)(uintptr_t)event);
  for (unsigned n = 0; n < 4; n++)
    if (!cuMemAlloc_v2(&memory, 1000u << 4 * n)) keep_memory(f, memory, 1000u << 4 * n, false);
  if (cuModuleLoadData(&module, good_image())) return;
  keep_handle(f, P_CUmodule, (uint64_t)(uintptr_t)module);
  for (unsigned n = 0; n < 4; n++)
    if (!cuModuleGetFunction(&function, module, names[n])) keep_handle(f, P_CUfunction, (uint64_t)(uintptr_t)function);
  if (!cuModuleGetFunction(&function, module, "nothing")) make_model(f, function, memory);
  if (!one_in(f, 4) || cuLibraryLoadData(&library, good_image(), NULL, NULL, 0, NULL, NULL, 0)) return;
  keep_handle(f, P_CUlibrary, (uint64_t)(uintptr_t)library);
  for (unsigned n = 0; n < 4; n++)
    if (!cuLibraryGetKernel(&kernel, library, names[n])) keep_handle(f, P_CUkernel, (uint64_t)(uintptr_t)kernel);
}

/* A context of its own, or seldom one of those that all use. */
static void new_context(struct fuzzer *f, bool base) {
  CUcontext context = NULL, old = NULL;
  if (shared) pthread_rwlock_wrlock(&turn);
  if (base) {
    cuCtxSetCurrent(bases[below(f, 2)]);
  } else if (!cuCtxGetCurrent(&old) && old && old != bases[0] && old != bases[1]) {
    cuCtxDestroy_v2(old);
    context_ended(f);
  }
  if (!base && !cuCtxCreate_v2(&context, 0, (int)below(f, 2))) {
    keep_handle(f, P_CUcontext, (uint64_t)(uintptr_t)context);
    equip(f);
  }
  if (shared) pthread_rwlock_unlock(&turn);
}

static bool needs_context(CUresult result) {
  switch ((int)result) {
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED: return true;
    default: return false;
  }
}

/* So that no result depends on time. */
static void wait_for_all(struct fuzzer *f) {
  f->since = now();
  cuCtxSynchronize();
  for (unsigned n = 0; n < KEPT; n++) cuStreamSynchronize((CUstream)(uintptr_t)f->own->handles[P_CUstream][n]);
  f->since = 0;
}

/* Or nothing else can be done any more. */
static void end_capture(struct fuzzer *f) {
  CUgraph graph;
  CUstream stream = (CUstream)(uintptr_t)f->captured;
  f->captured = 0;
  if (shared) pthread_rwlock_rdlock(&turn);
  if (!cuStreamEndCapture(stream, &graph) && graph) keep_handle(f, P_CUgraph, (uint64_t)(uintptr_t)graph);
  if (shared) pthread_rwlock_unlock(&turn);
}

static void *work(void *given) {
  struct fuzzer *f = given;
  new_context(f, false);
  for (uint64_t n = 0; n < most_calls && now() < deadline; n++) {
    const struct fuzzed *next = some_call(f);
    if (next->ending == ENDS_ALL && !shared && threads > 1) continue;
    if (shared && next->ending)
      pthread_rwlock_wrlock(&turn);
    else if (shared)
      pthread_rwlock_rdlock(&turn);
    CUresult result = next->call(f);
    if (shared) pthread_rwlock_unlock(&turn);
    calls++;
    if (threads == 1) wait_for_all(f);
    if (f->captured && one_in(f, 40)) end_capture(f);
    if (one_in(f, 400) || needs_context(result))
      new_context(f, one_in(f, 8));
  }
  ended++;
  return NULL;
}

static void print_stack(int signal) {
  void *frames[64];
  (void)signal;
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  dprintf(STDERR_FILENO, "--\n");
}

/* The sanitizers have their own. */
static void crash(int number) {
  print_stack(number);
  signal(number, SIG_DFL);
  raise(number);
}

/* A call takes too long: where all threads are, or without gdb those that call, and an end. */
static void give_up(const struct fuzzer *hanging) {
  char command[128];
  fprintf(stderr, "thread %u hangs\n", hanging->thread);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  snprintf(command, sizeof command, "gdb -batch -p %d -ex 'thread apply all backtrace 24' 1>&2 2>/dev/null", (int)getpid());
  if (system(command))
    for (unsigned n = 0; n < threads; n++)
      if (fuzzers[n].since) {
        pthread_kill(workers[n], SIGUSR1);
        sleep(1);
      }
  abort();
}

static void watch(void) {
  while (ended < threads) {
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    for (unsigned n = 0; n < threads; n++) {
      uint64_t since = fuzzers[n].since;
      if (since && now() > since + patience) give_up(&fuzzers[n]);
    }
  }
}

static void begin(int seed, const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  size_t size = sizeof *trace * MOST_THREADS;
  if (file < 0 || ftruncate(file, (off_t)size)) exit(2);
  trace = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&turn, &attributes);
  pthread_mutex_init(&common.lock, NULL);
  signal(SIGUSR1, print_stack);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
  signal(SIGSEGV, crash);
  signal(SIGBUS, crash);
#else
  (void)crash;
#endif
  for (unsigned n = 0; n < fuzzed_count; n++) weights += fuzzed[n].weight;
  for (unsigned n = 0; n < threads; n++) {
    pthread_mutex_init(&own[n].lock, NULL);
    fuzzers[n].dice = 0x9e3779b97f4a7c15ull * (uint64_t)(1 + n + MOST_THREADS * (unsigned)seed);
    fuzzers[n].thread = n;
    fuzzers[n].own = &own[n];
    fuzzers[n].things = shared ? &common : &own[n];
    fuzzers[n].host = calloc(1, HOST_BYTES);
  }
}

int main(int count, char **given) {
  if (count != 8) return 2;
  if (personality(0xffffffff) != ADDR_NO_RANDOMIZE && personality(ADDR_NO_RANDOMIZE) != -1)
    execv("/proc/self/exe", given); /* what is beside an allocation is always the same */
  threads = (unsigned)atoi(given[2]);
  shared = atoi(given[3]);
  most_calls = strtoull(given[4], NULL, 10);
  deadline = now() + (uint64_t)(atof(given[5]) * 1e9);
  patience = (uint64_t)(atof(given[6]) * 1e9);
  begin(atoi(given[1]), given[7]);
  if (cuInit(0) || cuCtxCreate_v2(&bases[0], 0, 0) || cuCtxCreate_v2(&bases[1], 0, 1)) return 2;
  void *zero;
  if (cuMemHostAlloc(&zero, 64, CU_MEMHOSTALLOC_PORTABLE)) return 2;
  cuCtxPopCurrent_v2(NULL);
  cuCtxPopCurrent_v2(NULL);
  for (unsigned n = 0; n < threads; n++) fuzzers[n].zero = (CUdeviceptr)(uintptr_t)zero;
  for (unsigned n = 0; n < threads; n++) pthread_create(&workers[n], NULL, work, &fuzzers[n]);
  watch();
  for (unsigned n = 0; n < threads; n++) pthread_join(workers[n], NULL);
  printf("%llu calls\n", (unsigned long long)calls);
  return 0;
}
