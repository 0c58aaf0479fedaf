/* Initialisation, version, names of results. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"
#include "results.h"

enum { VERSION = 13000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t initialised; /* the process in which cuInit has succeeded: children of a fork must not go on */

static _Thread_local bool inside; /* a function of the program that a stream has called */

CUresult ready(void) {
  if (inside) return CUDA_ERROR_NOT_PERMITTED; /* it might wait for itself */
  return initialised == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

bool set_inside(bool now) {
  bool before = inside;
  inside = now;
  return before;
}

EXPORTED CUresult cuInit(unsigned int flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  CUresult result = CUDA_SUCCESS;
  if (initialised && initialised != getpid())
    result = CUDA_ERROR_NOT_INITIALIZED;
  else if (!initialised && machine_begin())
    initialised = getpid();
  else if (!initialised)
    result = CUDA_ERROR_NO_DEVICE;
  pthread_mutex_unlock(&lock);
  return result;
}

/* SOFTGPU_DRIVER_VERSION, or that of the headers. */
EXPORTED CUresult cuDriverGetVersion(int *version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  const char *told = getenv("SOFTGPU_DRIVER_VERSION");
  char *end;
  long number = told ? strtol(told, &end, 10) : VERSION;
  if (told && (*end || number < 1000 || number > 99999)) {
    complain("SOFTGPU_DRIVER_VERSION=%.40s is no version as in 12040; %d is reported", told, VERSION);
    number = VERSION;
  }
  *version = (int)number;
  return CUDA_SUCCESS;
}

static const struct result *result_of(CUresult number) {
  for (unsigned i = 0; i < result_count; i++)
    if (results[i].number == (int)number) return &results[i];
  return NULL;
}

EXPORTED CUresult cuGetErrorName(CUresult error, const char **text) {
  const struct result *found = result_of(error);
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = found ? found->name : NULL;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGetErrorString(CUresult error, const char **text) {
  const struct result *found = result_of(error);
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = found ? found->text : NULL;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
