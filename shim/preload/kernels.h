/* What is known of kernels: where their parameters are. */
#ifndef TESSERA_KERNELS_H
#define TESSERA_KERNELS_H

#include "real.h"
#include "table.h"
#include "wire.h"

struct kernel {
  struct entry entry;
  uint64_t module;          /* or library */
  uint32_t known;           /* 0: nobody could say what its parameters are */
  uint32_t parameters;      /* how many */
  uint32_t parameter_bytes; /* up to the end of the last one */
  uint32_t gaps;            /* whether there are bytes between them */
  struct wire_parameter parameter[];
};

/* A function or kernel that a program launches; announced when it is met first. NULL without memory. */
const struct kernel *kernel_of(CUfunction handle);

/* A handle is a CUkernel of a library: the driver has other functions to ask about those. */
void kernel_mark(CUkernel handle, CUlibrary library);
uint64_t kernel_library(CUkernel handle); /* as it was marked; 0 if it was not */

/* What a driver that cannot be asked would say: `layout` of `count` parameters, NULL if it is not known. */
void kernel_told(uint64_t handle, uint64_t module, bool kernel, const char *name, const struct wire_parameter *layout,
                 uint32_t count);

void kernels_end(uint64_t module); /* of a module or library: their handles mean nothing any more */
void kernels_end_of(of_t *of, uint64_t what); /* those of modules that `of` names; it gets each kernel's entry */

#endif
