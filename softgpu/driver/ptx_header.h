/* The first directives of a PTX text: what it is written in and for. */
#ifndef SOFTGPU_PTX_HEADER_H
#define SOFTGPU_PTX_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"

/* A compute capability as in 86, and who else may run what is compiled for it: 0: every later device; 'f': later
 * devices of the family, which have the same major number; 'a': nobody. */
struct target {
  int number;
  char suffix;
};

bool target_fits(struct target target, CUdevice device);
/* Whether the first is closer to a device that both fit. */
bool target_better(struct target first, struct target second);

/* Whether a text begins with .version, behind spaces and remarks. It ends behind `limit` bytes or before a zero byte;
 * no more of it is read than it takes to know. */
bool is_ptx(const char *text, size_t limit);

/* Whether a device can take a text of `bytes` bytes: CUDA_SUCCESS, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
 * CUDA_ERROR_NO_BINARY_FOR_GPU, or CUDA_ERROR_INVALID_PTX. All but the last are logged. */
CUresult ptx_check(const char *text, size_t bytes, CUdevice device);

#endif
