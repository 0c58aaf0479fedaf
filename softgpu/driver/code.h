/* PTX texts and their compiled kernels: what modules of several contexts have in common. */
#ifndef SOFTGPU_CODE_H
#define SOFTGPU_CODE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "description.h"
#include "jit.h"
#include "softgpu_engine.h"

/* A compiled form of a kernel: for one block or any, and for one way of rounding. Constant once it is made. */
struct variant {
  struct variant *next;
  struct sg_options options;
  sg_kernel_handle *handle;
  const struct sg_kernel *kernel;
  void *object;
  uint32_t *globals; /* kernel->global_count of them: which of the described variables they are */
};

struct code_kernel {
  const struct description_kernel *described;
  struct variant *_Atomic variants; /* more come, none goes */
};

struct code {
  _Atomic unsigned references;
  char *ptx;
  size_t bytes;
  uint8_t digest[SG_DIGEST_BYTES];
  struct description *description;
  struct code_kernel *kernels;
  pthread_mutex_t compiling;
};

/* The code of a PTX text, which is its own from then on, also on failure; with one reference. */
CUresult code_make(char *ptx, size_t bytes, struct jit *jit, struct code **code);
struct code *code_hold(struct code *code);
void code_release(struct code *code);

/* A form of a kernel for a block, compiled now if there is none yet; all 0: any form, whichever there is. */
CUresult code_variant(struct code *code, struct code_kernel *kernel, const uint32_t block[3], CUdevice device,
                      const struct variant **variant);

/* The compute capability that the text is for, as in 80. */
int code_target(const struct code *code);

#endif
