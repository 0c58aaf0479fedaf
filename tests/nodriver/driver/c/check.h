/* What the test programs share. They are linked with the software driver as any program is with a driver. */
#ifndef CHECK_H
#define CHECK_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

/* That a call returns what it should. */
#define GIVES(result, call)                                                                     \
  do {                                                                                          \
    CUresult got_ = (call);                                                                     \
    if (got_ != (result)) {                                                                     \
      fprintf(stderr, "%s:%d: %s gives %d, not " #result "\n", __FILE__, __LINE__, #call, got_); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

#define OK(call) GIVES(CUDA_SUCCESS, call)

#endif
