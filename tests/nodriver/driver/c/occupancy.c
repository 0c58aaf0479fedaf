/* Occupancy, as NVIDIA's published calculator has it (cuda_occupancy.h), on a card of each capability. */
#include "check.h"

#include <cuda_occupancy.h>

/* plain: no shared memory; fixed: 5000 bytes; small: blocks of up to 100 threads. */
static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry plain() { ret; }\n"
    ".visible .entry fixed(.param .u64 py)\n"
    "{ .reg .b32 %r<4>; .reg .b64 %d<4>; .shared .align 4 .b8 room[5000];\n"
    "  ld.param.u64 %d1, [py]; mov.u32 %r1, %tid.x; st.shared.u32 [room], %r1; ld.shared.u32 %r2, [room];\n"
    "  st.global.u32 [%d1], %r2; ret; }\n"
    ".visible .entry small() .maxntid 100, 1, 1 { ret; }\n";

static const size_t DYNAMIC[] = {0,     1,     1000,  4096,  12000, 16384,  20000,
                                 44000, 49152, 50000, 64000, 98304, 160000, 230000};
enum { SIZES = sizeof DYNAMIC / sizeof *DYNAMIC };

static cudaOccDeviceState STATE = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};

static int device_has(CUdevice_attribute attribute, CUdevice device) {
  int value;
  OK(cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

static cudaOccDeviceProp properties_of(CUdevice device) {
#define HAS(name) device_has(CU_DEVICE_ATTRIBUTE_##name, device)
  return (cudaOccDeviceProp){
      .computeMajor = HAS(COMPUTE_CAPABILITY_MAJOR),
      .computeMinor = HAS(COMPUTE_CAPABILITY_MINOR),
      .maxThreadsPerBlock = HAS(MAX_THREADS_PER_BLOCK),
      .maxThreadsPerMultiprocessor = HAS(MAX_THREADS_PER_MULTIPROCESSOR),
      .regsPerBlock = HAS(MAX_REGISTERS_PER_BLOCK),
      .regsPerMultiprocessor = HAS(MAX_REGISTERS_PER_MULTIPROCESSOR),
      .warpSize = HAS(WARP_SIZE),
      .sharedMemPerBlock = (size_t)HAS(MAX_SHARED_MEMORY_PER_BLOCK),
      .sharedMemPerMultiprocessor = (size_t)HAS(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
      .numSms = HAS(MULTIPROCESSOR_COUNT),
      .sharedMemPerBlockOptin = (size_t)HAS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
      .reservedSharedMemPerBlock = (size_t)HAS(RESERVED_SHARED_MEMORY_PER_BLOCK),
  };
}

static int function_has(CUfunction_attribute attribute, CUfunction function) {
  int value;
  OK(cuFuncGetAttribute(&value, attribute, function));
  return value;
}

static cudaOccFuncAttributes attributes_of(CUfunction function, int opted) {
  return (cudaOccFuncAttributes){
      .maxThreadsPerBlock = function_has(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
      .numRegs = function_has(CU_FUNC_ATTRIBUTE_NUM_REGS, function),
      .sharedSizeBytes = (size_t)function_has(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
      .shmemLimitConfig = opted ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT,
      .maxDynamicSharedSizeBytes = (size_t)function_has(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function),
      .numBlockBarriers = 1,
  };
}

static size_t of_block(int threads) { return (size_t)threads * 50; }

static void check_blocks(CUfunction function, const cudaOccDeviceProp *properties,
                         const cudaOccFuncAttributes *attributes) {
  for (int threads = 1; threads <= attributes->maxThreadsPerBlock + 40; threads += 13)
    for (int n = 0; n < SIZES; n++) {
      cudaOccResult expected;
      int found;
      CHECK(!cudaOccMaxActiveBlocksPerMultiprocessor(&expected, properties, attributes, &STATE, threads, DYNAMIC[n]));
      OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, function, threads, DYNAMIC[n]));
      CHECK(found == (threads > attributes->maxThreadsPerBlock ? 0 : expected.activeBlocksPerMultiprocessor));
    }
}

static void check_best(CUfunction function, const cudaOccDeviceProp *properties,
                       const cudaOccFuncAttributes *attributes) {
  static const int LIMITS[] = {0, 1, 32, 50, 100, 768, 1000, 5000};
  for (int n = 0; n < SIZES; n++)
    for (int m = 0; m < 8; m++)
      for (int mapped = 0; mapped < 2; mapped++) {
        cudaOccFuncAttributes limited = *attributes;
        if (LIMITS[m] && LIMITS[m] < limited.maxThreadsPerBlock) limited.maxThreadsPerBlock = LIMITS[m];
        int grid, block, expected_grid, expected_block;
        size_t (*map)(int) = mapped ? of_block : NULL;
        CHECK(!cudaOccMaxPotentialOccupancyBlockSize(&expected_grid, &expected_block, properties, &limited, &STATE, map,
                                                     DYNAMIC[n]));
        OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, map, DYNAMIC[n], LIMITS[m]));
        CHECK(grid == expected_grid && block == expected_block);
      }
}

/* What is left lets so many blocks in, and a grain more would not. */
static void check_left(CUfunction function, const cudaOccFuncAttributes *attributes) {
  for (int threads = 32, most; threads <= attributes->maxThreadsPerBlock; threads *= 2) {
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&most, function, threads, 0));
    for (int count = 1; count <= most; count++) {
      size_t left;
      int found;
      OK(cuOccupancyAvailableDynamicSMemPerBlock(&left, function, count, threads));
      OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, function, threads, left));
      CHECK(found >= count);
      OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, function, threads, left + 256));
      CHECK(found < count);
    }
  }
}

static void check_function(CUfunction function, CUdevice device) {
  cudaOccDeviceProp properties = properties_of(device);
  for (int opted = 0; opted < 2; opted++) {
    int most = (int)properties.sharedMemPerBlockOptin - function_has(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (opted) OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    cudaOccFuncAttributes attributes = attributes_of(function, opted);
    check_blocks(function, &properties, &attributes);
    check_best(function, &properties, &attributes);
    check_left(function, &attributes);
  }
}

static void check_errors(CUfunction function) {
  size_t left;
  int count, block;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, function, 0, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 32, 0));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, (CUfunction)&left, 32, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, function, 32, 0, 2));
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, function, 32, 0,
                                                          CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(&count, NULL, function, NULL, 0, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(&count, &block, function, NULL, 0, -1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSizeWithFlags(&count, &block, function, NULL, 0, 0, 4));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&left, function, 0, 32));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&left, function, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&left, function, 1000, 32));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(NULL, function, 1, 32));
}

/* Of a kernel of a library, in the current context. */
static void check_kernel(void) {
  CUlibrary library;
  CUkernel kernel;
  int count;
  OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "plain"));
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, (CUfunction)kernel, 1024, 0));
  CHECK(count == 1024 / 512);
  OK(cuLibraryUnload(library));
}

int main(void) {
  static const char *const NAMES[] = {"plain", "fixed", "small"};
  int count;
  setenv("SOFTGPU_DEVICES", "V100,T4,A100-80G,A10,L40S,H100-SXM,B200,RTX5090", 1);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK(count == 8);
  for (CUdevice device = 0; device < count; device++) {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    OK(cuCtxCreate(&context, NULL, 0, device));
    OK(cuModuleLoadData(&module, PTX));
    for (int n = 0; n < 3; n++) {
      OK(cuModuleGetFunction(&function, module, NAMES[n]));
      check_function(function, device);
    }
    check_errors(function);
    if (device == 2) check_kernel();
    OK(cuCtxDestroy(context));
  }
  return 0;
}
