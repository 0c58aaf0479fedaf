/* Gives memory and an event to another process, in every way there is; the child uses them. */
#include "hazard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

struct given {
  CUipcMemHandle memory;
  CUipcEventHandle event;
  int file;
};

static void begin(void) {
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
}

static void import(const struct given *given, size_t step) {
  CUdeviceptr memory, place;
  CUevent event;
  CUmemGenericAllocationHandle physical;
  CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned value[2] = {0, 0};
  begin();
  CHECK(cuIpcOpenMemHandle(&memory, given->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK(cuMemcpyDtoH(&value[0], memory, 4));
  CHECK(cuIpcCloseMemHandle(memory));
  CHECK(cuIpcOpenEventHandle(&event, given->event));
  CHECK(cuEventSynchronize(event));
  CHECK(cuEventDestroy(event));
  CHECK(cuMemImportFromShareableHandle(&physical, (void *)(uintptr_t)given->file,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CHECK(cuMemAddressReserve(&place, step, 0, 0, 0));
  CHECK(cuMemMap(place, step, 0, physical, 0));
  CHECK(cuMemSetAccess(place, step, &access, 1));
  CHECK(cuMemcpyDtoH(&value[1], place, 4));
  CHECK(cuMemUnmap(place, step));
  CHECK(cuMemRelease(physical));
  CHECK(cuMemAddressFree(place, step));
  printf("%u %u\n", value[0], value[1]);
  fflush(stdout);
}

int main(int count, char **words) {
  int ends[2], status;
  struct given given;
  size_t step = 0;
  if (count == 3) {
    MUST(read(atoi(words[1]), &given, sizeof given) == sizeof given);
    import(&given, strtoull(words[2], NULL, 10));
    return 0;
  }
  MUST(!pipe(ends));
  CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
  CUmemAccessDesc access = {.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr memory, place;
  CUevent event;
  CUmemGenericAllocationHandle physical;
  begin();
  CHECK(cuMemAlloc(&memory, 4096));
  CHECK(cuMemsetD32(memory, 7, 1));
  CHECK(cuIpcGetMemHandle(&given.memory, memory));
  CHECK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventRecord(event, NULL));
  CHECK(cuIpcGetEventHandle(&given.event, event));
  CHECK(cuMemGetAllocationGranularity(&step, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(cuMemCreate(&physical, step, &wanted, 0));
  CHECK(cuMemAddressReserve(&place, step, 0, 0, 0));
  CHECK(cuMemMap(place, step, 0, physical, 0));
  CHECK(cuMemSetAccess(place, step, &access, 1));
  CHECK(cuMemsetD32(place, 8, 1));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemExportToShareableHandle(&given.file, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  /* The child becomes the same program again: a driver cannot be used after a fork. */
  char from[32], size[32];
  MUST(write(ends[1], &given, sizeof given) == sizeof given && fcntl(given.file, F_SETFD, 0) == 0);
  snprintf(from, sizeof from, "%d", ends[0]);
  snprintf(size, sizeof size, "%zu", step);
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "child", from, size, NULL);
    _exit(99);
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
