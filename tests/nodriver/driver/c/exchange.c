/* Two processes of one machine: one exports memory and an event, the other opens them, does the same, and is killed. It
 * is a child by fork and exec, as the child of a fork alone cannot use the driver. Devices are an A100-80G and an L40S.
 * */
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { SIZE = 3 << 20, TO_CHILD = 10, FROM_CHILD = 11 };

struct handles {
  CUipcMemHandle memory;
  CUipcEventHandle event;
};

static void put(int file, const void *bytes, size_t size) { CHECK(write(file, bytes, size) == (ssize_t)size); }

static void get(int file, void *bytes, size_t size) {
  char *at = bytes;
  for (ssize_t got; size; at += got, size -= (size_t)got) CHECK((got = read(file, at, size)) > 0);
}

static void check_all(CUdeviceptr memory, unsigned char expected) {
  static unsigned char bytes[SIZE];
  OK(cuMemcpyDtoH(bytes, memory, SIZE));
  for (int n = 0; n < SIZE; n++) CHECK(bytes[n] == expected);
}

static size_t unused(void) {
  size_t bytes, total;
  OK(cuMemGetInfo(&bytes, &total));
  return bytes;
}

static void begin(CUstream *stream) {
  CUcontext context;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

/* The child reads what the parent wrote, as soon as its event says so, writes something else, and gives memory itself.
 * */
static int child(void) {
  struct handles handles;
  CUstream stream;
  CUevent event;
  CUdeviceptr memory, own;
  begin(&stream);
  put(FROM_CHILD, "x", 1);
  get(TO_CHILD, &handles, sizeof handles);
  OK(cuIpcOpenMemHandle(&memory, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuIpcOpenEventHandle(&event, handles.event));
  OK(cuStreamWaitEvent(stream, event, 0));
  OK(cuMemAlloc(&own, SIZE));
  OK(cuMemcpyDtoDAsync(own, memory, SIZE, stream));
  OK(cuMemsetD8Async(memory, 2, SIZE, stream));
  OK(cuEventRecord(event, stream));
  OK(cuStreamSynchronize(stream));
  check_all(own, 1);
  OK(cuIpcCloseMemHandle(memory));
  OK(cuIpcGetMemHandle(&handles.memory, own));
  put(FROM_CHILD, &handles, sizeof handles);
  return read(TO_CHILD, &handles, 1) != 0; /* until it is killed, or the parent has ended */
}

static pid_t start(const char *self, int *to, int *from) {
  int there[2], back[2];
  CHECK(!pipe(there) && !pipe(back));
  pid_t process = fork();
  CHECK(process >= 0);
  if (!process) {
    dup2(there[0], TO_CHILD);
    dup2(back[1], FROM_CHILD);
    close(there[1]);
    close(back[0]);
    execl(self, self, "child", (char *)NULL);
    _exit(1);
  }
  close(there[0]);
  close(back[1]);
  *to = there[1];
  *from = back[0];
  return process;
}

int main(int count, char **arguments) {
  if (count > 1) return child();
  char folder[] = "/tmp/softgpu-exchange-XXXXXX", path[200];
  CHECK(mkdtemp(folder) && !setenv("XDG_RUNTIME_DIR", folder, 1) && !setenv("SOFTGPU_MACHINE", "exchange", 1));
  int to, from;
  pid_t process = start(arguments[0], &to, &from);
  struct handles handles;
  CUstream stream;
  CUevent event;
  CUdeviceptr memory, theirs;
  begin(&stream);
  get(from, handles.memory.reserved, 1);
  size_t before = unused();
  OK(cuMemAlloc(&memory, SIZE));
  OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  OK(cuIpcGetMemHandle(&handles.memory, memory));
  OK(cuIpcGetEventHandle(&handles.event, event));
  OK(cuMemsetD8Async(memory, 1, SIZE, stream));
  OK(cuEventRecord(event, stream));
  put(to, &handles, sizeof handles);
  get(from, &handles, sizeof handles);
  OK(cuEventSynchronize(event)); /* recorded by the child last */
  check_all(memory, 2);
  OK(cuIpcOpenMemHandle(&theirs, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  check_all(theirs, 1);
  CHECK(before - unused() == 2 * SIZE);
  CHECK(!kill(process, SIGKILL) && waitpid(process, NULL, 0) == process);
  check_all(theirs, 1);
  CHECK(before - unused() == SIZE);
  OK(cuIpcCloseMemHandle(theirs));
  GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenMemHandle(&theirs, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuEventDestroy(event));
  OK(cuMemFree(memory));
  CHECK(unused() == before);
  snprintf(path, sizeof path, "%s/tessera/softgpu-exchange", folder);
  CHECK(!unlink(path)); /* nothing else is left */
  snprintf(path, sizeof path, "%s/tessera", folder);
  CHECK(!rmdir(path) && !rmdir(folder));
  return 0;
}
