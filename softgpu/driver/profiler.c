/* The profiler's switch: there is no profiler, so that nothing begins or ends. */
#include "driver.h"

EXPORTED CUresult cuProfilerStart(void) {
  struct here here;
  return current(&here);
}

EXPORTED CUresult cuProfilerStop(void) { return cuProfilerStart(); }
