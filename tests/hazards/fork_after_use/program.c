/* Uses the driver, forks, and uses it in the child too; the parent goes on afterwards. */
#include "hazard.h"

#include <sys/wait.h>
#include <unistd.h>

static int answer(const char *who) {
  CUdevice device;
  CUdeviceptr memory = 0;
  int first = cuDeviceGet(&device, 0), second = cuMemAlloc(&memory, 64), third = cuCtxSynchronize(), again = cuInit(0);
  return printf("%s %d %d %d %d\n", who, first, second, third, again) < 0;
}

int main(void) {
  CUcontext context;
  int status;
  setvbuf(stdout, NULL, _IONBF, 0);
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  if (answer("before")) return 1;
  pid_t child = fork();
  if (child == 0) _exit(answer("child") || launch((CUfunction)context, NULL) == CUDA_ERROR_UNKNOWN);
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return answer("after");
}
