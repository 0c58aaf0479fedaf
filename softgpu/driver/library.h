/* Libraries: images that belong to no context; their kernels are loaded into each context that uses them. */
#ifndef SOFTGPU_LIBRARY_H
#define SOFTGPU_LIBRARY_H

#include "module.h"

/* A library's kernel in the context of `place`. */
CUresult kernel_function(CUkernel handle, const struct stream_place *place, struct function **function);

#endif
