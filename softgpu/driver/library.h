/* Libraries: images that belong to no context; their kernels are loaded into each context that uses them. */
#ifndef SOFTGPU_LIBRARY_H
#define SOFTGPU_LIBRARY_H

#include "module.h"

struct library;
void library_hold(struct library *library);
void library_release(struct library *library);

/* A library's kernel in the context of `place`. */
CUresult kernel_function(CUkernel handle, const struct stream_place *place, struct function **function);

#endif
