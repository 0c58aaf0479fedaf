/* What kernels may access: memory of their own context, of peers, of the host, of pools, and what is mapped. Devices
 * are an A100-80G and an L40S. */
#include <stdint.h>

#include "check.h"

/* put(to): *to = 5; get(to, from): *to = *from; spin(flag, from): read both until the flag is set. */
static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry put(.param .u64 pto)\n"
    "{ .reg .b32 %r1; .reg .b64 %d1; ld.param.u64 %d1, [pto]; mov.u32 %r1, 5; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry get(.param .u64 pto, .param .u64 pfrom)\n"
    "{ .reg .b32 %r1; .reg .b64 %d<3>; ld.param.u64 %d1, [pto]; ld.param.u64 %d2, [pfrom];\n"
    "  ld.global.u32 %r1, [%d2]; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry spin(.param .u64 pflag, .param .u64 pfrom)\n"
    "{ .reg .b32 %r<3>; .reg .b64 %d<3>; .reg .pred %p; ld.param.u64 %d1, [pflag]; ld.param.u64 %d2, [pfrom];\n"
    "  mov.u32 %r2, 1; st.volatile.global.u32 [%d1+4], %r2;\n"
    "again: ld.volatile.global.u32 %r1, [%d2]; ld.volatile.global.u32 %r2, [%d1]; setp.eq.u32 %p, %r2, 0;\n"
    "  @%p bra again; ret; }\n";

enum { STEP = 2 << 20 };

/* A context with the kernels. */
struct side {
  CUcontext context;
  CUfunction put, get, spin;
};

static struct side begin(int device) {
  struct side side;
  CUmodule module;
  OK(cuCtxCreate(&side.context, NULL, 0, device));
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&side.put, module, "put"));
  OK(cuModuleGetFunction(&side.get, module, "get"));
  OK(cuModuleGetFunction(&side.spin, module, "spin"));
  return side;
}

static void enter(const struct side *side) { OK(cuCtxSetCurrent(side->context)); }

static CUresult run(CUfunction function, CUdeviceptr first, CUdeviceptr second) {
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, (void *[]){&first, &second}, NULL));
  return cuCtxSynchronize();
}

/* A kernel of a new context on a device may not write there (or, with `from`, not read from there). */
static void may_not(int device, CUdeviceptr to, CUdeviceptr from) {
  CUcontext before;
  OK(cuCtxGetCurrent(&before));
  struct side side = begin(device);
  CUdeviceptr own;
  if (from) OK(cuMemAlloc(&own, 4)); /* it may get the address of what was freed */
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, from ? run(side.get, own, from) : run(side.put, to, 0));
  OK(cuCtxDestroy(side.context));
  OK(cuCtxSetCurrent(before));
}

static unsigned value_at(CUdeviceptr pointer) {
  unsigned value;
  OK(cuMemcpyDtoH(&value, pointer, 4));
  return value;
}

static void contexts(const struct side *first) {
  enter(first);
  CUdeviceptr a, b;
  OK(cuMemAlloc(&a, 4));
  may_not(1, a, 0); /* nobody has allowed that */
  may_not(0, a, 0); /* every context has memory of its own */
  struct side second = begin(1);
  OK(cuCtxEnablePeerAccess(first->context, 0));
  OK(cuMemAlloc(&b, 4));
  OK(run(second.put, a, 0));
  OK(run(second.get, b, a));
  CHECK(value_at(a) == 5 && value_at(b) == 5);
  enter(first);
  may_not(0, 0, b); /* the other direction is another matter */
  enter(&second);
  OK(cuCtxDisablePeerAccess(first->context));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, run(second.put, a, 0));
  OK(cuCtxDestroy(second.context));
  enter(first);
  OK(cuMemFree(a));
  may_not(0, a, 0);
}

static void host(const struct side *first) {
  static unsigned own[2];
  unsigned *pinned;
  CUdeviceptr managed;
  struct side second = begin(1);
  enter(first);
  OK(cuMemAllocHost((void **)&pinned, 8));
  OK(cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
  CUdeviceptr to = (CUdeviceptr)(uintptr_t)pinned, from = (CUdeviceptr)(uintptr_t)own;
  may_not(0, 0, from);
  OK(cuMemHostRegister(own, sizeof own, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY));
  own[0] = 77;
  enter(&second);
  OK(run(second.get, to, from));
  OK(run(second.get, managed, to));
  CHECK(pinned[0] == 77 && *(unsigned *)(uintptr_t)managed == 77);
  may_not(1, from, 0); /* registered for reading only */
  OK(cuMemHostUnregister(own));
  may_not(1, 0, from);
  OK(cuMemFreeHost(pinned));
  OK(cuMemFree(managed));
  may_not(0, 0, to);
  OK(cuCtxDestroy(second.context));
  enter(first);
}

static void pools(const struct side *first) {
  CUmemoryPool pool;
  CUdeviceptr a;
  CUmemAccessDesc second = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemAllocAsync(&a, 4, 0));
  OK(run(first->put, a, 0));
  may_not(1, a, 0);
  struct side other = begin(1), same = begin(0);
  OK(run(same.put, a, 0)); /* pools belong to devices, not to contexts */
  enter(&other);
  OK(cuMemPoolSetAccess(pool, &second, 1));
  OK(run(other.put, a, 0));
  second.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(cuMemPoolSetAccess(pool, &second, 1));
  may_not(1, a, 0);
  OK(cuMemFreeAsync(a, 0));
  OK(cuCtxSynchronize());
  may_not(0, a, 0);
  OK(cuCtxDestroy(other.context));
  OK(cuCtxDestroy(same.context));
  enter(first);
}

static CUmemGenericAllocationHandle memory(void) {
  CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle;
  OK(cuMemCreate(&handle, STEP, &wanted, 0));
  return handle;
}

static void allow(CUdeviceptr start, size_t size, int device, CUmemAccess_flags flags) {
  OK(cuMemSetAccess(start, size, &(CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags}, 1));
}

static void mapped(const struct side *first) {
  CUdeviceptr start;
  CUmemGenericAllocationHandle handle = memory();
  OK(cuMemAddressReserve(&start, 3 * STEP, 0, 0, 0));
  OK(cuMemMap(start, STEP, 0, handle, 0));
  OK(cuMemMap(start + STEP, STEP, 0, handle, 0));
  may_not(0, start, 0);
  allow(start, 2 * STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  allow(start, STEP, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  OK(run(first->put, start + 8, 0));
  OK(run(first->get, start, start + STEP + 8)); /* the same memory */
  CHECK(value_at(start + STEP) == 5);
  may_not(1, start, 0);
  may_not(1, 0, start + STEP);
  may_not(0, start + 2 * STEP, 0);
  struct side second = begin(1);
  CUdeviceptr own;
  OK(cuMemAlloc(&own, 4));
  OK(run(second.get, own, start + 8));
  CHECK(value_at(own) == 5);
  OK(cuMemUnmap(start, 2 * STEP));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, run(second.get, own, start + 8));
  OK(cuCtxDestroy(second.context));
  OK(cuMemAddressFree(start, 3 * STEP));
  OK(cuMemRelease(handle));
  enter(first);
}

/* What a kernel may be reading stays where it is, whoever frees it. */
static void under_way(const struct side *first) {
  volatile unsigned *flag;
  void *pinned;
  CUdeviceptr start;
  CUmemGenericAllocationHandle handle = memory();
  struct side second = begin(1);
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocHost((void **)&flag, 8));
  enter(first);
  OK(cuMemAddressReserve(&start, STEP, 0, 0, 0));
  for (int turn = 0; turn < 2; turn++) {
    OK(cuMemAllocHost(&pinned, 100));
    OK(cuMemMap(start, STEP, 0, handle, 0));
    allow(start, STEP, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)flag, from = turn ? start : (CUdeviceptr)(uintptr_t)pinned;
    flag[0] = flag[1] = 0;
    OK(cuLaunchKernel(second.spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&there, &from}, NULL));
    while (!flag[1]) {
    }
    OK(cuMemFreeHost(pinned));
    OK(cuMemUnmap(start, STEP));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    flag[0] = 1;
    OK(cuStreamSynchronize(stream));
  }
  OK(cuMemAddressFree(start, STEP));
  OK(cuMemRelease(handle));
  OK(cuCtxDestroy(second.context));
}

/* Whatever is allocated and freed between launches, each sees what there is then. */
static void changes(const struct side *first) {
  enum { COUNT = 40 };
  CUdeviceptr pieces[COUNT] = {0}, to;
  unsigned seed = 1;
  enter(first);
  OK(cuMemAlloc(&to, 4));
  for (int turn = 0; turn < 200; turn++) {
    for (unsigned n = seed % 5; n; n--) {
      seed = seed * 1103515245 + 12345;
      CUdeviceptr *piece = &pieces[seed / 65536 % COUNT];
      if (*piece) {
        OK(cuMemFree(*piece));
        *piece = 0;
      } else if (seed & 1 << 30) {
        OK(cuMemAllocAsync(piece, 512, 0));
      } else {
        OK(cuMemAlloc(piece, 512));
      }
    }
    seed = seed * 1103515245 + 12345;
    CUdeviceptr piece = pieces[seed / 65536 % COUNT];
    if (piece) OK(run(first->put, piece + 508, 0));
    if (piece) OK(run(first->get, to, piece + 508));
    CHECK(!piece || value_at(to) == 5);
  }
  for (int n = 0; n < COUNT; n++) {
    if (!pieces[n]) continue;
    OK(cuMemFree(pieces[n]));
    if (n % 10 == 0) may_not(0, pieces[n], 0);
  }
  OK(cuMemFree(to));
}

int main(void) {
  OK(cuInit(0));
  struct side first = begin(0);
  changes(&first);
  contexts(&first);
  host(&first);
  pools(&first);
  mapped(&first);
  under_way(&first);
  OK(cuCtxDestroy(first.context));
  return 0;
}
