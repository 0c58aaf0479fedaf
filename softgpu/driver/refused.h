/* Functions that do nothing. */
#ifndef SOFTGPU_REFUSED_H
#define SOFTGPU_REFUSED_H

/* CUDA_ERROR_NOT_SUPPORTED; `called` counts a function's calls, of which the first is logged. */
int refuse(const char *symbol, _Atomic unsigned *called);

#endif
