/* A part of a program, in a library of its own (PART), finds the driver in the way that FIND says, and computes; the
 * program loads it plainly, bound to itself first, or into a name space of its own. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "../../driver/c/check.h"

#ifndef PART
static void *stay(void *given) {
  pause();
  return given;
}

int main(int count, char **words) {
  CHECK(count == 4);
  void *library = !strcmp(words[2], "name space") ? dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW)
                  : !strcmp(words[2], "deep")     ? dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND)
                                                  : dlopen(words[1], RTLD_NOW);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  CHECK(library);
  /* Threads of another name space are none to this one's libc, which takes locks that they share as if it were alone:
   * it has to have a thread of its own. */
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, stay, NULL));
  int (*compute)(const char *);
  *(void **)&compute = dlsym(library, "compute");
  printf("%d\n", compute(words[3]));
  return 0;
}
#else
#define LINKED 0
#define NUMBERED 1
#define PLAIN 2
#define PATH 3
#define ALL_SYMBOLS 4
#define ASKED 5

#define FUNCTIONS(F)                                                                                               \
  F(cuInit) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuModuleLoadData) F(cuModuleGetFunction) F(cuMemAlloc) \
  F(cuMemcpyHtoD) F(cuMemcpyDtoH) F(cuMemcpyDtoHAsync) F(cuMemsetD32Async) F(cuLaunchKernel) F(cuLaunchHostFunc)    \
  F(cuStreamCreate) F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuStreamSynchronize)                           \
  F(cuGraphInstantiateWithFlags) F(cuGraphLaunch) F(cuMemFree)

#define TEXT(symbol) #symbol
#define POINTER(name) __typeof__(&name) name##_;
#if FIND == LINKED
#define LOOK(name) cuda.name##_ = name;
#elif FIND == ASKED
#define LOOK(name) OK(ask(#name, (void **)&cuda.name##_, 13000, 0, NULL));
#else
#define LOOK(name) CHECK((*(void **)&cuda.name##_ = dlsym(driver, TEXT(name))));
#endif

static struct {
  FUNCTIONS(POINTER)
} cuda;

static void find(const char *path) {
  (void)path;
#if FIND == PATH
  void *driver = dlopen(path, RTLD_NOW);
#elif FIND == ALL_SYMBOLS
  void *driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL) ? RTLD_DEFAULT : NULL;
#elif FIND != LINKED
  void *driver = dlopen(FIND == PLAIN ? "libcuda.so" : "libcuda.so.1", RTLD_NOW);
  CHECK(driver);
#endif
#if FIND == ASKED
  __typeof__(&cuGetProcAddress) ask;
  CHECK((*(void **)&ask = dlsym(driver, TEXT(cuGetProcAddress_v2))));
#endif
  FUNCTIONS(LOOK)
}

static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 pp, .param .u32 pv)\n"
    "{ .reg .b32 %r<5>; .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [pp]; ld.param.u32 %r1, [pv]; mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4;\n"
    "  add.u64 %d1, %d1, %d2; ld.global.u32 %r3, [%d1]; add.u32 %r4, %r3, %r1; st.global.u32 [%d1], %r4; ret; }\n";

static void CUDA_CB count_up(void *given) { ++*(unsigned *)given; }

__attribute__((visibility("default"))) int compute(const char *path) {
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUstream stream;
  CUdeviceptr memory;
  CUgraph graph;
  CUgraphExec exec;
  unsigned values[64], value = 3, called = 0, sum = 0;
  void *parameters[] = {&memory, &value};
  find(path);
  OK(cuda.cuInit_(0));
  OK(cuda.cuDevicePrimaryCtxRetain_(&context, 0));
  OK(cuda.cuCtxSetCurrent_(context));
  OK(cuda.cuModuleLoadData_(&module, PTX));
  OK(cuda.cuModuleGetFunction_(&add, module, "add"));
  OK(cuda.cuMemAlloc_(&memory, sizeof values));
  OK(cuda.cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned i = 0; i < 64; i++) values[i] = i;
  OK(cuda.cuMemcpyHtoD_(memory, values, sizeof values));
  OK(cuda.cuLaunchKernel_(add, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
  OK(cuda.cuStreamBeginCapture_(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  value = 5;
  OK(cuda.cuLaunchKernel_(add, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
  OK(cuda.cuMemsetD32Async_(memory, 9, 2, stream));
  OK(cuda.cuLaunchHostFunc_(stream, count_up, &called));
  OK(cuda.cuStreamEndCapture_(stream, &graph));
  OK(cuda.cuGraphInstantiateWithFlags_(&exec, graph, 0));
  for (int i = 0; i < 3; i++) OK(cuda.cuGraphLaunch_(exec, stream));
  OK(cuda.cuMemcpyDtoHAsync_(values, memory, sizeof values / 2, stream));
  OK(cuda.cuStreamSynchronize_(stream));
  OK(cuda.cuMemcpyDtoH_(values + 32, memory + sizeof values / 2, sizeof values / 2));
  OK(cuda.cuMemFree_(memory));
  for (int i = 0; i < 64; i++) sum += values[i];
  return (int)(sum + called);
}
#endif
