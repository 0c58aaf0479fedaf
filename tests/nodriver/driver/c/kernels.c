/* Modules, libraries, kernels and launches. */
#include "check.h"

/* saxpy(y, x, a, n); fill(y, value): y[i] = value + bias + table[i % 4]; where(out) stores the address of bias; wide: 8 bytes at y + 4. */
static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 bias = 7;\n"
    ".visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".visible .global .align 8 .u64 pointers[2] = {generic(bias), 0};\n"
    ".visible .entry saxpy(.param .u64 py, .param .u64 px, .param .f32 pa, .param .u32 pn)\n"
    "{ .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>;\n"
    "  ld.param.u64 %d1, [py]; ld.param.u64 %d2, [px]; ld.param.f32 %f1, [pa]; ld.param.u32 %r1, [pn];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r5, %r1; @%p ret;\n"
    "  mul.wide.u32 %d3, %r5, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
    "  ld.global.f32 %f2, [%d2]; ld.global.f32 %f3, [%d1]; fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%d1], %f3;\n"
    "  ret; }\n"
    ".visible .entry fill(.param .u64 py, .param .u32 pv)\n"
    "{ .reg .b32 %r<8>; .reg .b64 %d<6>;\n"
    "  ld.param.u64 %d1, [py]; ld.param.u32 %r1, [pv]; mov.u32 %r2, %tid.x;\n"
    "  ld.global.u32 %r3, [bias]; add.u32 %r1, %r1, %r3;\n"
    "  and.b32 %r4, %r2, 3; mul.wide.u32 %d2, %r4, 4; mov.u64 %d3, table; add.u64 %d3, %d3, %d2;\n"
    "  ld.const.u32 %r5, [%d3]; add.u32 %r1, %r1, %r5;\n"
    "  mul.wide.u32 %d4, %r2, 4; add.u64 %d1, %d1, %d4; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry wide(.param .u64 py)\n"
    "{ .reg .b64 %d<4>; ld.param.u64 %d1, [py]; mov.u64 %d2, 1; st.global.u64 [%d1+4], %d2; ret; }\n"
    ".visible .entry stop() { trap; }\n"
    ".visible .entry small() .maxntid 64, 1, 1 { ret; }\n"
    ".visible .entry shared(.param .u64 py) .reqntid 32\n"
    "{ .reg .b32 %r<4>; .reg .b64 %d<4>; .shared .align 4 .b8 room[4096];\n"
    "  ld.param.u64 %d1, [py]; mov.u32 %r1, %tid.x; st.shared.u32 [room], %r1; ld.shared.u32 %r2, [room];\n"
    "  st.global.u32 [%d1], %r2; ret; }\n";

enum { COUNT = 1000 };

static CUcontext begin(int device) {
  CUcontext context;
  OK(cuCtxCreate(&context, NULL, 0, device));
  return context;
}

static CUfunction named(CUmodule module, const char *name) {
  CUfunction function;
  OK(cuModuleGetFunction(&function, module, name));
  return function;
}

static CUdeviceptr room(size_t bytes) {
  CUdeviceptr pointer;
  OK(cuMemAlloc(&pointer, bytes));
  return pointer;
}

static void launch(CUfunction function, unsigned blocks, unsigned threads, void **arguments) {
  OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, 0, arguments, NULL));
}

static void check_saxpy(CUfunction function) {
  static float x[COUNT], y[COUNT];
  CUdeviceptr px = room(sizeof x), py = room(sizeof y);
  float a = 2;
  unsigned n = COUNT;
  for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1;
  OK(cuMemcpyHtoD(px, x, sizeof x));
  OK(cuMemcpyHtoD(py, y, sizeof y));
  launch(function, 8, 128, (void *[]){&py, &px, &a, &n});
  struct {
    CUdeviceptr y, x;
    float a;
    unsigned n;
  } packed = {py, px, a, n};
  size_t size = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, NULL, extra));
  OK(cuMemcpyDtoH(y, py, sizeof y));
  for (int i = 0; i < COUNT; i++) CHECK(y[i] == 1 + 4 * (float)i);
  size = 20;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, NULL, extra));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 256, 1, 1, 0, 0, (void *[]){&py, &px, &a, &n}, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, 0, (void *[]){&py, &px, &a, &n}, NULL));
  OK(cuMemFree(px));
  OK(cuMemFree(py));
}

static void check_fill(CUfunction function, CUmodule module) {
  unsigned found[8], value = 100, bias = 1000;
  CUdeviceptr y = room(sizeof found), address;
  size_t bytes;
  launch(function, 1, 8, (void *[]){&y, &value});
  OK(cuMemcpyDtoH(found, y, sizeof found));
  for (unsigned i = 0; i < 8; i++) CHECK(found[i] == 107 + 10 * (i % 4 + 1));
  OK(cuModuleGetGlobal(&address, &bytes, module, "bias"));
  CHECK(bytes == 4);
  OK(cuMemcpyHtoD(address, &bias, 4));
  launch(function, 1, 8, (void *[]){&y, &value});
  OK(cuMemcpyDtoH(found, y, sizeof found));
  CHECK(found[0] == 1110);
  CUdeviceptr pointers, held[2];
  OK(cuModuleGetGlobal(&pointers, &bytes, module, "pointers"));
  CHECK(bytes == 16);
  OK(cuMemcpyDtoH(held, pointers, sizeof held));
  CHECK(held[0] == address && held[1] == 0);
  GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&address, &bytes, module, "nothing"));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
  OK(cuMemFree(y));
}

static void modules(void) {
  CUcontext context = begin(0);
  CUmodule module;
  CUfunction function;
  unsigned count;
  int value;
  size_t offset, size;
  OK(cuModuleLoadData(&module, PTX));
  check_saxpy(named(module, "saxpy"));
  check_fill(named(module, "fill"), module);
  GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nothing"));
  OK(cuModuleGetFunctionCount(&count, module));
  CHECK(count == 6);
  CUfunction small = named(module, "small");
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(small, 1, 1, 1, 65, 1, 1, 0, 0, NULL, NULL));
  OK(cuLaunchKernel(small, 1, 1, 1, 64, 1, 1, 0, 0, NULL, NULL));
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, small));
  CHECK(value == 64);
  CUfunction shared = named(module, "shared");
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, shared));
  CHECK(value == 4096);
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
  CHECK(value == 49152 - 4096);
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, shared));
  CHECK(value == 70);
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, shared));
  CHECK(value == 80);
  CUdeviceptr y = room(4);
  void *arguments[] = {&y};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(shared, 1, 1, 1, 32, 1, 1, 60000, 0, arguments, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(shared, 1, 1, 1, 64, 1, 1, 0, 0, arguments, NULL));
  OK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  OK(cuLaunchKernel(shared, 1, 1, 1, 32, 1, 1, 60000, 0, arguments, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
  GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchCooperativeKernel(shared, 1 << 20, 1, 1, 32, 1, 1, 0, 0, arguments));
  OK(cuLaunchCooperativeKernel(shared, 4, 1, 1, 32, 1, 1, 0, 0, arguments));
  OK(cuFuncGetParamInfo(named(module, "saxpy"), 3, &offset, &size));
  CHECK(offset == 20 && size == 4);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(named(module, "saxpy"), 4, &offset, &size));
  OK(cuModuleUnload(module));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(small, 1, 1, 1, 64, 1, 1, 0, 0, NULL, NULL));
  OK(cuCtxDestroy(context));
}

static void libraries(void) {
  CUlibrary library;
  CUkernel kernel;
  CUmodule module;
  CUdeviceptr first, second;
  int value;
  OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "saxpy"));
  GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
  OK(cuLibraryGetKernel(&kernel, library, "shared"));
  OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 90000, kernel, 1));
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
  CHECK(value == 49152 - 4096);
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 1));
  CHECK(value == 90000);
  CUcontext contexts[2] = {begin(0), begin(1)};
  OK(cuLibraryGetKernel(&kernel, library, "saxpy"));
  for (int n = 0; n < 2; n++) {
    OK(cuCtxSetCurrent(contexts[n]));
    check_saxpy((CUfunction)kernel);
    OK(cuLibraryGetModule(&module, library));
    check_fill(named(module, "fill"), module);
    GIVES(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
    OK(cuLibraryGetGlobal(n ? &second : &first, NULL, library, "bias"));
  }
  CHECK(first != second);
  OK(cuCtxDestroy(contexts[1]));
  OK(cuLibraryUnload(library));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetParamInfo(kernel, 0, NULL, NULL));
  OK(cuCtxDestroy(contexts[0]));
}

static void bad_images(void) {
  CUcontext context = begin(0);
  CUmodule module;
  char log[1000] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  GIVES(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\n.address_size 64\n.entry x( { }\n", 2, options, values));
  CHECK(strlen(log) > 0 && (size_t)values[1] >= strlen(log));
  GIVES(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "hello"));
  OK(cuCtxDestroy(context));
}

/* A kernel's error stays with its context; others go on. */
static void fails(const char *name, CUdeviceptr address, CUresult expected) {
  CUcontext context = begin(0);
  CUmodule module;
  CUstream stream;
  CUevent event;
  CUdeviceptr y = room(16);
  unsigned char bytes[16];
  float a = 1;
  unsigned n = 1;
  OK(cuModuleLoadData(&module, PTX));
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&event, 0));
  CUdeviceptr target = address ? address : y;
  void *arguments[] = {&target, &y, &a, &n};
  OK(cuLaunchKernel(named(module, name), 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
  GIVES(expected, cuStreamSynchronize(stream));
  GIVES(expected, cuStreamQuery(stream));
  GIVES(expected, cuCtxSynchronize());
  GIVES(expected, cuMemcpyDtoH(bytes, y, sizeof bytes));
  GIVES(expected, cuMemAlloc(&y, 16));
  GIVES(expected, cuEventRecord(event, stream));
  GIVES(expected, cuModuleLoadData(&module, PTX));
  OK(cuCtxDestroy(context));
}

static void errors(void) {
  CUcontext other = begin(1);
  CUdeviceptr elsewhere = room(4096);
  fails("saxpy", 0x1000, CUDA_ERROR_ILLEGAL_ADDRESS);
  fails("saxpy", elsewhere, CUDA_ERROR_ILLEGAL_ADDRESS); /* of another device, to which there is no access */
  fails("wide", 0, CUDA_ERROR_MISALIGNED_ADDRESS);
  fails("stop", 0, CUDA_ERROR_LAUNCH_FAILED);
  CUmodule module;
  OK(cuCtxSetCurrent(other));
  OK(cuModuleLoadData(&module, PTX));
  check_saxpy(named(module, "saxpy"));
  OK(cuCtxDestroy(other));
}

int main(void) {
  OK(cuInit(0));
  modules();
  libraries();
  bad_images();
  errors();
  return 0;
}
