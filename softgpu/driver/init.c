/* Initialisation, version, names of results. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "driver.h"
#include "instrument.h"
#include "results.h"

enum { VERSION = 13000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic enum { NOT_YET, INITIALISED, FORKED } state; /* children of a fork must not go on */

static _Thread_local bool inside; /* a function of the program that a stream has called */

CUresult ready(void) {
  if (inside) return CUDA_ERROR_NOT_PERMITTED; /* it might wait for itself */
  return state == INITIALISED ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

bool set_inside(bool now) {
  bool before = inside;
  inside = now;
  return before;
}

static void forked(void) { state = FORKED; }

EXPORTED CUresult cuInit(unsigned int flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (state == FORKED) return CUDA_ERROR_NOT_INITIALIZED; /* and the lock may be taken for ever */
  pthread_mutex_lock(&lock);
  CUresult result = CUDA_SUCCESS;
  if (state == NOT_YET && !(instrument_read() && machine_begin())) result = CUDA_ERROR_NO_DEVICE;
  if (state == NOT_YET && result == CUDA_SUCCESS) {
    instrument_load();
    pthread_atfork(NULL, NULL, forked);
    state = INITIALISED;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int version;
static pthread_once_t version_once = PTHREAD_ONCE_INIT;

/* What the instrument says, or SOFTGPU_DRIVER_VERSION, or that of the headers. */
static void find_version(void) {
  const char *told = getenv("SOFTGPU_DRIVER_VERSION");
  char *end;
  long number = told ? strtol(told, &end, 10) : VERSION;
  if (told && (*end || number < 1000 || number > 99999)) {
    complain("SOFTGPU_DRIVER_VERSION=%.40s is no version as in 12040; %d is reported", told, VERSION);
    number = VERSION;
  }
  version = instrument_version() ? instrument_version() : (int)number;
}

int driver_version(void) {
  pthread_once(&version_once, find_version);
  return version;
}

EXPORTED CUresult cuDriverGetVersion(int *answer) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = driver_version();
  return CUDA_SUCCESS;
}

static const struct result *result_of(CUresult number) {
  for (unsigned i = 0; i < result_count; i++)
    if (results[i].number == (int)number) return &results[i];
  return NULL;
}

const char *result_name(CUresult result) {
  const struct result *found = result_of(result);
  return found ? found->name : NULL;
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
