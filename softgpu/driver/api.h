/* The driver API with every form of a function under its own symbol. */
#ifndef SOFTGPU_API_H
#define SOFTGPU_API_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#endif
