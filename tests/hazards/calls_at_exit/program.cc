// Calls the driver where programs end: in a destructor of a static object, in exit handlers, in a library's destructor.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

static CUstream stream;
static CUmodule module;
static CUdeviceptr memory;

static void put_away(const char *where) {
  const int first = cuStreamDestroy(stream), second = cuMemFree(memory), third = cuModuleUnload(module);
  std::printf("%s %d %d %d %d\n", where, first, second, third, cuCtxSynchronize());
  std::fflush(stdout);
}

struct Holder {
  ~Holder() { put_away("static"); }
};
static Holder holder;
static void handler() { put_away("handler"); }
__attribute__((destructor)) static void last() { put_away("destructor"); }

int main() {
  CUcontext context;
  std::atexit(handler);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  std::atexit([] { put_away("second"); });
  if (cuStreamCreate(&stream, 0) || cuMemAlloc(&memory, 64)) return 2;
  cuModuleLoadData(&module, ".version 7.5\n.target sm_75\n.address_size 64\n");
  return 0;
}
