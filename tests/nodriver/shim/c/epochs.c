/* Makes and ends things on the null driver, whose calls all succeed, while nobody reads what the library records: until
 * the ring has no room left, and beyond.
 *
 *     epochs ROUNDS LAUNCHES
 *
 * In each round it launches a kernel so often, makes and ends things, and prints, as JSON, what it has made and not
 * ended: pairs of a kind (enum wire_kind) and a handle. Then it waits for a line on its standard input and makes one
 * thing more, which it prints after the last round. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire.h"

enum { PARAMETERS = 1 << 15, MOST = 1024, PAGE = 1 << 21 };

static struct { unsigned kind; uint64_t handle; } have[MOST];
static unsigned count;

static void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "error %d\n", result);
  exit(1);
}

static void *made(unsigned kind, const void *handle) {
  have[count].kind = kind;
  have[count++].handle = (uint64_t)(uintptr_t)handle;
  return (void *)(uintptr_t)handle;
}

static void *at(CUdeviceptr address) { return (void *)(uintptr_t)address; }

static void ended(unsigned kind, uint64_t handle) {
  for (unsigned i = 0; i < count; i++)
    if (have[i].kind == kind && have[i].handle == handle) {
      have[i] = have[--count];
      return;
    }
}

static CUfunction function;
static CUstream stream;
static CUcontext context;
static unsigned links;

/* With many parameters, so that there is soon no room for records. */
static void launch(void) {
  static char parameters[PARAMETERS];
  size_t bytes = sizeof parameters;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
}

/* One of each kind, and more memory. */
struct set {
  CUmodule module;
  CUfunction function;
  CUdeviceptr variable, memory[20], range;
  CUstream stream;
  CUevent event;
  CUarray array;
  CUmemGenericAllocationHandle physical;
  CUlinkState link;
};

static void make(struct set *set) {
  size_t bytes = 64;
  const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUDA_ARRAY_DESCRIPTOR shape = {8, 4, CU_AD_FORMAT_FLOAT, 2};
  void *parameters[] = {&bytes, &bytes, &bytes, &bytes};
  CUipcMemHandle shared;
  check(cuModuleLoadData(&set->module, ".version 8.0\n"));
  made(WIRE_MODULE, set->module);
  check(cuModuleGetFunction(&set->function, set->module, "k"));
  check(cuLaunchKernel(set->function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  made(WIRE_FUNCTION, set->function);
  check(cuModuleGetGlobal(&set->variable, &bytes, set->module, "v"));
  made(WIRE_MEMORY, at(set->variable));
  for (unsigned i = 0; i < 20; i++) {
    check(cuMemAlloc(&set->memory[i], 100 + i));
    made(WIRE_MEMORY, at(set->memory[i]));
  }
  check(cuIpcGetMemHandle(&shared, set->memory[0]));
  made(WIRE_EXPORT, at(set->memory[0]));
  check(cuStreamCreate(&set->stream, 1));
  made(WIRE_STREAM, set->stream);
  check(cuEventCreate(&set->event, 2));
  made(WIRE_EVENT, set->event);
  check(cuArrayCreate(&set->array, &shape));
  made(WIRE_ARRAY, set->array);
  check(cuMemAddressReserve(&set->range, 2 * PAGE, 0, 0, 0));
  made(WIRE_RESERVATION, at(set->range));
  check(cuMemCreate(&set->physical, PAGE, &property, 0));
  made(WIRE_PHYSICAL, at(set->physical));
  check(cuMemMap(set->range, PAGE, 0, set->physical, 0));
  made(WIRE_MEMORY, at(set->range));
  check(cuMemSetAccess(set->range, PAGE, &access, 1));
  made(WIRE_ACCESS, at(set->range));
  set->link = (CUlinkState)(uintptr_t)++links; /* the null driver makes none */
  check(cuLinkAddData(set->link, CU_JIT_INPUT_PTX, "text", 5, "name", 0, NULL, NULL));
  made(WIRE_LINK_INPUT, set->link);
}

static void end(const struct set *set) {
  check(cuModuleUnload(set->module));
  ended(WIRE_MODULE, (uint64_t)(uintptr_t)set->module);
  ended(WIRE_FUNCTION, (uint64_t)(uintptr_t)set->function);
  ended(WIRE_MEMORY, set->variable);
  for (unsigned i = 0; i < 20; i += 2) {
    check(cuMemFree(set->memory[i]));
    ended(WIRE_MEMORY, set->memory[i]);
  }
  ended(WIRE_EXPORT, set->memory[0]);
  check(cuStreamDestroy(set->stream));
  ended(WIRE_STREAM, (uint64_t)(uintptr_t)set->stream);
  check(cuEventDestroy(set->event));
  ended(WIRE_EVENT, (uint64_t)(uintptr_t)set->event);
  check(cuArrayDestroy(set->array));
  ended(WIRE_ARRAY, (uint64_t)(uintptr_t)set->array);
  check(cuMemUnmap(set->range, PAGE));
  ended(WIRE_MEMORY, set->range);
  ended(WIRE_ACCESS, set->range);
  check(cuMemRelease(set->physical));
  ended(WIRE_PHYSICAL, set->physical);
  check(cuMemAddressFree(set->range, 2 * PAGE));
  ended(WIRE_RESERVATION, set->range);
  check(cuLinkDestroy(set->link));
  ended(WIRE_LINK_INPUT, (uint64_t)(uintptr_t)set->link);
}

static void print(void) {
  putchar('[');
  for (unsigned i = 0; i < count; i++)
    printf("%s[%u, %llu]", i ? ", " : "", have[i].kind, (unsigned long long)have[i].handle);
  puts("]");
  fflush(stdout);
}

int main(int words, char **word) {
  struct set first, seen, unseen;
  CUmodule module;
  CUdeviceptr more;
  if (words != 3) return 2;
  const int rounds = atoi(word[1]), launches = atoi(word[2]);
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context, 0));
  made(WIRE_DEVICE, NULL);
  made(WIRE_CONTEXT, context);
  check(cuModuleLoadData(&module, ".version 8.0\n.target sm_80"));
  made(WIRE_MODULE, module);
  check(cuModuleGetFunction(&function, module, "k"));
  made(WIRE_FUNCTION, function);
  check(cuStreamCreate(&stream, 0));
  made(WIRE_STREAM, stream);
  make(&first);
  make(&seen);
  for (int i = 0; i < rounds; i++) {
    for (int n = 0; n < launches; n++) launch();
    end(&seen); /* from here on the reader learns nothing of it */
    make(&unseen);
    end(&unseen);
    make(&seen);
    print();
    if (getchar() == EOF) return 1;
    check(cuMemAlloc(&more, 7));
    made(WIRE_MEMORY, at(more));
  }
  print();
  return 0;
}
