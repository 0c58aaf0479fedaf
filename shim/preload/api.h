/* The driver API with every form of a function under its own symbol. */
#ifndef TESSERA_API_H
#define TESSERA_API_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#endif
